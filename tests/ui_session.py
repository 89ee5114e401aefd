"""A real server of the page in a process of its own, and requests to it."""

import http.client
import json
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

# Seconds after which something will not happen any more, even on a slow machine that is busy.
LONGEST = 300


@dataclass
class Session:
    process: subprocess.Popen
    address: str

    @property
    def port(self):
        return int(re.search(r":(\d+)/", self.address)[1])

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.port}"

    def ask(self, path, method="GET", body=None, headers=None):
        """Return (status, headers, text) of a request with exactly these headers."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONGEST)
        try:
            link.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, text in {"Host": f"127.0.0.1:{self.port}", **(headers or {})}.items():
                if text is not None:
                    link.putheader(name, text)
            if body is not None and "Transfer-Encoding" not in (headers or {}):
                link.putheader("Content-Length", str(len(body)))
            link.endheaders(body, encode_chunked="Transfer-Encoding" in (headers or {}))
            answer = link.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            link.close()

    def enter(self):
        """Return the headers of the page itself, which has come with the token."""
        status, headers, text = self.ask(self.address.removeprefix(self.origin))
        assert status == 200
        cookie = headers["set-cookie"].partition(";")[0]
        secret = re.search(r'name="secret" content="([^"]+)"', text)[1]
        return {"Cookie": cookie, "X-Skprivacy": secret, "Origin": self.origin}

    def children(self):
        """Return the processes that the server has started."""
        command = ["ps", "-ww", "--ppid", str(self.process.pid), "-o", "pid=,args="]  # uncut
        lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
        found = [int(line.split()[0]) for line in lines if "spawn_main" in line]
        assert found, lines
        return found

    def post(self, path, data, headers):
        kind = {"Content-Type": "application/json"}
        return self.ask(path, "POST", json.dumps(data).encode(), {**headers, **kind})


@contextmanager
def session(*arguments, **more):
    pytest.importorskip("starlette")
    command = [sys.executable, "-m", "skprivacy", "ui", "--no-browser", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, **pipes, **more)
    try:
        address = process.stdout.readline().strip()
        assert address.startswith("http"), process.stderr.read()
        yield Session(process, address)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=LONGEST)
        process.stdout.close()
        process.stderr.close()


def is_running(pid):
    """Whether a process has not ended; one that nobody has waited for has."""
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def until(what):
    """Wait until something is true, and return it."""
    end = time.monotonic() + LONGEST
    while not (found := what()):
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)
    return found
