"""Hostile requests to a real server, and what it leaves behind."""

import gzip
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pyarrow
import pytest
from ui_session import LONGEST, is_running, session, until

import skprivacy.ui
from skprivacy.ui.worker import Bench

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")

STATIC = Path(skprivacy.ui.__file__).parent / "static"
UPLOAD = {"Content-Type": "application/octet-stream", "X-Name": "rows.csv"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def served():
    with session() as found:
        yield found


@pytest.fixture(scope="module")
def ours(served):
    return served.enter()


def test_the_page_itself_is_let_in(served, ours):
    cookie = {"Cookie": ours["Cookie"]}
    status, headers, text = served.ask("/", headers=cookie)
    assert status == 200
    assert "<title>skprivacy</title>" in text
    assert headers["cache-control"] == "no-store"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    for file in STATIC.glob("*.*"):
        assert served.ask(f"/static/{file.name}", headers=cookie)[0] == 200
    assert served.post("/secret", {}, ours)[0] == 200


def test_the_cookie_is_for_this_site_and_port_and_not_for_scripts():
    with session() as other:
        _, headers, _ = other.ask(other.address.removeprefix(other.origin))
    cookie = headers["set-cookie"]
    assert cookie.startswith(f"skprivacy-{other.port}=")
    assert {"HttpOnly", "SameSite=Strict"} <= {*cookie.split("; ")}
    assert "token" not in cookie


# Each with the status that refuses it; None takes a header away.
HOSTILE = {
    "another name for this address": ("GET", "/", {"Host": "evil.example"}, 421),
    "localhost under another port": ("GET", "/", {"Host": "127.0.0.1:1"}, 421),
    "another page": ("POST", "/cancel", {**JSON, "Origin": "http://evil.example"}, 403),
    "another port": ("POST", "/cancel", {**JSON, "Origin": "http://127.0.0.1:1"}, 403),
    "a page without an origin": ("POST", "/cancel", {**JSON, "Origin": None}, 403),
    "another site": ("GET", "/events", {"Sec-Fetch-Site": "cross-site"}, 403),
    "a form of another page": (
        "POST",
        "/cancel",
        {"Content-Type": "application/x-www-form-urlencoded"},
        415,
    ),
    "no cookie": ("GET", "/", {"Cookie": None}, 403),
    "no header": ("GET", "/events", {"X-Skprivacy": None}, 403),
    "a wrong header": ("POST", "/cancel", {**JSON, "X-Skprivacy": "0" * 43}, 403),
    "a path that leads out": ("GET", "/static/../choices.py", {}, 400),
    "a path that leads out in disguise": ("GET", "/static/%2e%2e/choices.py", {}, 400),
    "a path with a backslash": ("GET", "/static/..%5cchoices.py", {}, 400),
    "a release that is none": ("GET", "/download/release-1/%2fetc%2fpasswd", {}, 404),
    "another method": ("PUT", "/open", JSON, 405),
    "too long by its length": ("POST", "/upload", {**UPLOAD, "Content-Length": "209715201"}, 413),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_requests_are_refused(name, served, ours):
    method, path, headers, expected = HOSTILE[name]
    body = b"" if method == "POST" and "Content-Length" not in headers else None
    status, found, _ = served.ask(path, method, body, {**ours, **headers})
    assert status == expected
    assert "default-src 'none'" in found["content-security-policy"]


def test_the_token_works_once(served, ours):
    assert served.ask(served.address.removeprefix(served.origin))[0] == 403
    assert served.ask("/?token=", headers={})[0] == 403


def test_a_body_that_is_longer_than_it_said_is_cut_off(served, ours):
    pieces = (b"x" * 2**16 for _ in range(40))
    headers = {**ours, **JSON, "Transfer-Encoding": "chunked"}
    assert served.ask("/choices", "POST", pieces, headers)[0] == 413


def test_a_file_that_grows_when_it_is_decompressed_is_refused(served, ours):
    bomb = gzip.compress(b"a,b\n" + b"1,2\n" * (55 * 2**20), compresslevel=1)
    assert len(bomb) < 2**21
    headers = {**ours, **UPLOAD, "X-Name": "rows.csv.gz"}
    status, _, text = served.ask("/upload", "POST", bomb, headers)
    assert (status, "200 MB" in text) == (400, True)
    status, _, text = served.ask("/upload", "POST", b"no gzip", headers)
    assert status == 400


def test_a_table_of_repeats_is_counted_as_it_is_read(tmp_path):
    parquet, path = pytest.importorskip("pyarrow.parquet"), tmp_path / "rows.parquet"
    text = pyarrow.array(["x" * 10_000])
    parquet.write_table(pyarrow.table({"text": text.take(pyarrow.array([0] * 21_000))}), path)
    assert path.stat().st_size < 2**17
    bench = Bench(str(path), path.name, is_limited=True)
    with closing(bench._file), pytest.raises(ValueError, match="200 MB"):
        bench.look()


@pytest.mark.parametrize("path", ["/dev/zero", "/", "/etc/passwd", "/no/such.csv", "~\0.csv"])
def test_paths_that_are_no_tables_are_refused(path, served, ours, tmp_path):
    status, _, text = served.post("/open", {"path": path}, ours)
    assert status == 400
    assert "error" in text


def test_a_pipe_with_the_name_of_a_table_is_refused(served, ours, tmp_path):
    os.mkfifo(tmp_path / "rows.csv")
    status, _, text = served.post("/open", {"path": str(tmp_path / "rows.csv")}, ours)
    assert (status, "not a regular file" in text) == (400, True)


@pytest.mark.parametrize(
    "data",
    [
        [],
        {"roles": 7},
        {"roles": {"sex": "steal"}},
        {"purpose": "none"},
        {"points": "10"},
        {"points": 1e9},
        {"population": "yes"},
        {"target": 3, "purpose": "predict"},
        {"ordered": {"x": "low"}},
        {"bins": 1e6},
    ],
)
def test_choices_that_are_none_are_refused(data, served, ours):
    assert served.post("/choices", data, ours)[0] == 400


def folders():
    return {*Path(tempfile.gettempdir()).glob("skprivacy-ui-*")}


def folder_of(found):
    (folder,) = [f for f in folders() if f.name.startswith(f"skprivacy-ui-{found.process.pid}-")]
    return folder


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_copies_are_gone_when_the_page_ends(stop):
    with session() as found:
        folder = folder_of(found)
        assert folder.stat().st_mode & 0o777 == 0o700
        ours = found.enter()
        headers = {**ours, **UPLOAD, "X-Name": "..%2F..%2Frows.csv"}
        assert found.ask("/upload", "POST", b"a,b\nx,y\n", headers)[0] == 200
        (copy,) = folder.glob("*/rows.csv")
        assert copy.stat().st_mode & 0o777 == 0o600
        found.process.send_signal(stop)
        assert found.process.wait(timeout=LONGEST) in (128 + stop, -stop)
        assert not folder.exists()
        assert "Traceback" not in found.process.stderr.read()


def test_what_a_killed_page_leaves_is_removed_by_the_next():
    with session() as killed:
        folder = folder_of(killed)
        workers = killed.children()
        killed.process.kill()
        killed.process.wait()
    assert folder.exists()
    with session() as living:
        assert not folder.exists()
        with session():
            assert folder_of(living).exists()
    until(lambda: not any(map(is_running, workers)))


def test_the_browser_is_opened_without_showing_the_token(tmp_path):
    script, said = tmp_path / "browser", tmp_path / "said"
    script.write_text(
        f'#!/bin/sh\nstat -c %a "${{1#file://}}" > {said}.mode\necho "$1" > {said}\n'
    )
    script.chmod(0o755)
    with session("--browser", env={**os.environ, "BROWSER": str(script)}) as found:
        address = until(lambda: said.exists() and said.read_text().strip())
        page = Path(address.removeprefix("file://"))
        token = found.address.partition("token=")[2]
        assert token not in address
        assert token in page.read_text()
        assert Path(f"{said}.mode").read_text().strip() == "600"


IMPORTS = """
import sys
import skprivacy.ui.server
print(*sys.modules)
"""


def test_the_server_never_imports_what_is_heavy():
    pytest.importorskip("starlette")
    found = subprocess.run(
        [sys.executable, "-c", IMPORTS], check=True, capture_output=True, text=True
    )
    assert not {"numpy", "pandas", "scipy", "sklearn"} & {*found.stdout.split()}


def test_a_running_server_has_not_imported_it_either(served, ours):
    maps = Path(f"/proc/{served.process.pid}/maps")
    if not maps.exists():
        pytest.skip("there is no /proc")
    assert not [name for name in ("pandas", "sklearn", "scipy") if f"/{name}/" in maps.read_text()]


def test_nobody_but_this_machine_is_listened_to(served):
    found = subprocess.run(["ss", "-ltnH"], capture_output=True, text=True).stdout
    lines = [line.split()[3] for line in found.splitlines() if f":{served.port} " in line]
    assert not lines or lines == [f"127.0.0.1:{served.port}"]
