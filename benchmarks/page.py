"""How long the page of ``skprivacy ui`` lets one wait, in a real browser.

Run ``python benchmarks/page.py`` on a machine that does nothing else; it needs playwright and
Debian's chromium, and takes half a minute. Seconds by the clock are the shortest of three runs;
seconds of CPU are those of the server and of the process that computes, browser left out.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import sync_playwright

RUNS = 3
QUIET = ["--no-sandbox", "--disable-gpu"]

# Seconds from a change of a control until something is shown.
AFTER = """async ([id, how, points]) => {
    const control = document.getElementById(id);
    const isThere = points
        ? () => document.title.startsWith(`${points} points`)
        : () => document.getElementById("busy").hidden;
    const start = performance.now();
    if (how === "click") control.click();
    else {
        control.value = how;
        control.dispatchEvent(new Event("input"));
    }
    while (!isThere()) await new Promise(requestAnimationFrame);
    return (performance.now() - start) / 1000;
}"""


@contextmanager
def served():
    """Yield (address, process) of a new server."""
    command = [sys.executable, "-m", "skprivacy", "ui", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip(), process
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def cpu(pid):
    """Return the seconds of CPU of a process, on Linux."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def workers(pid):
    """Return the processes that compute, the first one first."""
    command = ["ps", "-ww", "--ppid", str(pid), "-o", "pid=,args="]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    return sorted(int(line.split()[0]) for line in lines if "spawn_main" in line)


def many():
    """Return a table whose design takes a while."""
    rows = ((i, i * i * i % 7 > 2) for i in range(4000))
    lines = [f"{'fm'[s]},a{i * i % 15 + (i % 9 == 0) * s},b{i * 7 % 16}" for i, s in rows]
    return "\n".join(["s,a,b", *lines])


def one_run(browser, path):
    """Return figures, in the order of `NAMES`."""
    start = time.perf_counter()
    with served() as (address, process):
        page = browser.new_page()
        page.goto(address)
        page.wait_for_selector("#demo")
        usable, server_cpu = time.perf_counter() - start, cpu(process.pid)
        page.click("#demo")
        clicked = time.perf_counter()
        page.wait_for_selector("#epsilon:not(:empty)")
        sentence, worker_cpu = time.perf_counter() - clicked, cpu(workers(process.pid)[0])
        page.wait_for_selector("#curve circle:nth-of-type(9)")
        page.wait_for_selector("#busy", state="hidden")
        known = page.evaluate(AFTER, ["slider", "4", "7"])
        page.click("#open > summary")
        page.fill("#path", str(path))
        page.click("#by-path button")
        for name, role in (("s", "protect"), ("a", "randomise"), ("b", "randomise")):
            page.get_by_label(f"What happens to {name}", exact=True).select_option(role)
        page.wait_for_selector("#many:not([hidden])")
        page.wait_for_selector("#busy:not(.aside) #cancel:visible")
        cancelled = page.evaluate(AFTER, ["cancel", "click", None])
        page.close()
        return usable, server_cpu, sentence, worker_cpu, known, cancelled


NAMES = {
    "page usable, from the command": None,
    "  of that, CPU of the server": None,
    "sentence of the demo, from the click": 3,
    "  until then, CPU of what computes": 3,
    "a stop that is known": 0.3,
    "cancel": 1,
}


def main():
    """Print the shortest of some runs."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.csv"
        path.write_text(many())
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=program, args=QUIET)
        runs = [one_run(browser, path) for _ in range(RUNS)]
        browser.close()
    print(f"{'seconds':38}{'taken':>6}{'aim':>6}")
    for (name, aim), found in zip(NAMES.items(), zip(*runs, strict=True), strict=True):
        print(f"{name:38}{min(found):6.2f}{'' if aim is None else aim:>6}")


if __name__ == "__main__":
    main()
