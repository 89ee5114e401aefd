"""A process that answers at once, without the library: for the order of work, and deaths."""

import random
import time
from contextlib import suppress

NAMES = ("sex", "bmi", "age")

LONGEST = 0.02  # seconds of a task


def work(pipe):
    with suppress(EOFError, OSError):
        while True:
            task = pipe.recv()
            time.sleep(random.random() * LONGEST)
            pipe.send({"id": task["id"], "doing": "something"})
            found = answer(task["kind"], task["given"], task["table"])
            pipe.send({"id": task["id"], "found": found, "warnings": []})


def answer(kind, given, table):
    match kind:
        case "look":
            columns = [{"name": name, "examples": [], "scale": []} for name in NAMES]
            return {"fingerprint": table["path"], "columns": columns}
        case "terms":
            return {"epsilon": {}, "smallest": 0.0, "combinations": 3}
        case "design":
            if "slow" in table["path"] and given["choices"].points == 60:
                time.sleep(60)
            keys = ("epsilon", "kept", "kept_at_most", "kept_shown", "attacker", "verdict")
            return {"points": given["choices"].points, **dict.fromkeys(keys)}
        case "release":
            if "slow" in table["path"]:
                time.sleep(60)
            return {"rows": 3, "notes": []}
        case "report":
            if "slow" in table["path"]:
                time.sleep(60)
            return {"status": "PASS", "lead": ""}
        case "together":
            return {"text": "together"}
    return {}
