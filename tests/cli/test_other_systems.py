"""The commands where the system is another one: Windows has fewer names, and locks open files."""

import ast
import io
import os
import signal
import sys
import tempfile
from pathlib import Path

import pandas as pd
import pytest

import skprivacy
from skprivacy.cli import main

DESIGN = ["--sensitive", "sex", "--columns", "bmi", "--confidence", "none"]
QUICK = ["--bins", "3", "--quiet"]

# What Python does not have on Windows, as far as anything like this package might use it.
MISSING = {
    os: (
        "fchmod fchown chown lchown chroot fork forkpty wait waitpid killpg mkfifo mknod nice "
        "getuid geteuid getgid getegid getgroups getpgid setsid uname sysconf confstr pread "
        "pwrite readv writev sendfile statvfs fstatvfs posix_fallocate posix_fadvise lockf "
        "sched_getaffinity sync O_NOFOLLOW O_DIRECTORY O_CLOEXEC O_NONBLOCK O_SYNC O_TMPFILE"
    ),
    signal: "SIGHUP SIGKILL SIGALRM SIGPIPE SIGUSR1 SIGUSR2 SIGCHLD SIGQUIT alarm setitimer",
}
MODULES = ["fcntl", "grp", "pwd", "resource", "termios", "tty"]


def if_closed(change):
    """Return what changes a path, but as on Windows: no file that is open can be changed."""
    folder = Path("/proc/self/fd")

    def changed(path, *more, **named):
        changing = os.path.realpath(path)
        if folder.exists():
            assert changing not in [os.path.realpath(each) for each in folder.iterdir()]
        return change(path, *more, **named)

    return changed


@pytest.fixture
def windows(monkeypatch):
    """Take away what Windows does not have; on Windows, all of this is so already."""
    for module, names in MISSING.items():
        for name in names.split():
            monkeypatch.delattr(module, name, raising=False)
    for name in MODULES:
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("replace", "rename", "unlink"):
        monkeypatch.setattr(os, name, if_closed(getattr(os, name)))
    monkeypatch.setattr(tempfile, "TemporaryFile", tempfile.NamedTemporaryFile)


@pytest.fixture
def patients(tmp_path, monkeypatch):
    """Return a table that is also in patients.csv of the folder that we are in."""
    monkeypatch.chdir(tmp_path)
    table = skprivacy.datasets.load_diabetes_patients()
    table.insert(0, "patient", range(len(table)))
    Path("patients.csv").write_bytes(table.to_csv(index=False, lineterminator="\n").encode())
    return table


def run(*arguments):
    assert main(list(arguments)) == 0, arguments


def sanitize(target, *more, source="patients.csv"):
    run("sanitize", source, target, *DESIGN, *QUICK, "--epsilon", "0.05", *more)


@pytest.mark.usefixtures("patients", "windows")
class TestOnWindows:
    def test_a_release_with_all_that_belongs_to_it(self):
        run("key", "secret.key")
        keyed = ["--record-ids", "patient", "--key-file", "secret.key"]
        more = ["--report", "r.html", "--no-curve", "--save-mechanism", "m.json", *keyed]
        for _ in range(2):  # the second time, everything is replaced
            sanitize("out.csv", *more, "--force")
        run("apply", "m.json", "patients.csv", "again.csv", *keyed)
        run("apply", "m.json", "patients.csv", "again.parquet", *keyed)
        assert Path("again.csv").read_bytes() == Path("out.csv").read_bytes()
        assert pd.read_parquet("again.parquet").equals(pd.read_csv("out.csv"))
        run("certify", "m.json", "patients.csv", "--sensitive", "sex", "--quiet")
        run("audit", "patients.csv", "--sensitive", "sex", "--released", "out.csv", "--quiet")

    def test_line_ends_are_the_same_as_elsewhere(self):
        run("key", "secret.key")
        sanitize("out.csv", "--save-mechanism", "m.json", "--report", "r.html", "--no-attack")
        run("curve", "patients.csv", *DESIGN, *QUICK, "--epsilons", "0.05", "--out", "curve.csv")
        for name in ("secret.key", "out.csv", "m.json", "r.html", "curve.csv"):
            assert b"\r" not in Path(name).read_bytes(), name

    def test_budgets(self, capsys):
        run("choose", "patients.csv", *DESIGN, *QUICK, "--max-shift", "0.05")
        run("curve", "patients.csv", *DESIGN, *QUICK, "--epsilons", "0.05", "--out", "curve.png")
        assert sorted(os.listdir()) == ["curve.png", "patients.csv"]

    def test_the_demo(self):
        run("demo", "shown", "--confidence", "none", "--quiet")
        assert sorted(os.listdir("shown")) == ["patients.csv", "released.csv", "report.html"]
        assert b"\r" not in b"".join(path.read_bytes() for path in Path("shown").iterdir())

    @pytest.mark.parametrize("kind", ["csv", "parquet"])
    def test_pipes(self, patients, monkeypatch, kind):
        if kind == "parquet":
            patients.to_parquet("patients.parquet")
        pipes = io.BytesIO(Path(f"patients.{kind}").read_bytes()), io.BytesIO()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipes[0], encoding="cp1252"))
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(pipes[1], encoding="cp1252"))
        sanitize("-", source="-")
        pipes[1].seek(0)
        released = {"csv": pd.read_csv, "parquet": pd.read_parquet}[kind](pipes[1])
        assert len(released) == len(patients)

    def test_a_key_is_not_said_to_be_secret_where_nobody_knows(self, capsys):
        run("key", "secret.key")
        assert "a new key, which everybody who can read files in its folder can read" in (
            capsys.readouterr().out
        )
        Path("secret.key").chmod(0o644)
        sanitize("out.csv", "--record-ids", "patient", "--key-file", "secret.key")
        assert "chmod" not in capsys.readouterr().err

    def test_a_failure_leaves_nothing_that_is_open(self, monkeypatch):
        monkeypatch.setattr("skprivacy.cli.release.release_rows", lambda *_, **__: 441)
        more = ["--epsilon", "0.05", "--report", "r.html", "--save-mechanism", "m.json"]
        assert main(["sanitize", "patients.csv", "out.csv", *DESIGN, *QUICK, *more]) == 1
        assert os.listdir() == ["patients.csv"]


def test_letters_that_the_screen_does_not_have(patients, monkeypatch):
    patients["группа"] = patients["sex"].map({"female": "ж", "male": "м"}).fillna("ж")
    Path("cyrillic.csv").write_bytes(patients.to_csv(index=False).encode())
    screens = [io.TextIOWrapper(io.BytesIO(), encoding="cp1252", errors="strict")]
    screens += [io.TextIOWrapper(io.BytesIO(), encoding="cp1252", errors="backslashreplace")]
    monkeypatch.setattr(sys, "stdout", screens[0])
    monkeypatch.setattr(sys, "stderr", screens[1])  # as Python sets it up
    names = ["--sensitive", "группа", "--columns", "bmi,sex", "--confidence", "none"]
    files = ["--report", "r.html", "--no-attack", "--no-curve", "--save-mechanism", "m.json"]
    assert (
        main(["sanitize", "cyrillic.csv", "ц.csv", *names, *QUICK, "--epsilon", "1", *files]) == 0
    )
    assert "группа" in Path("r.html").read_text(encoding="utf-8")
    assert Path("ц.csv").exists()


class TestNamesOfFiles:
    @pytest.mark.parametrize("name", ["OUT.csv", "./out.csv"])
    def test_names_that_may_be_one_file_are_refused(self, patients, capsys, name):
        design = ["patients.csv", "out.csv", *DESIGN, "--epsilon", "0.05"]
        assert main(["sanitize", *design, "--save-mechanism", name]) == 1
        assert "are the same file" in capsys.readouterr().err

    def test_the_table_by_another_name_is_not_replaced(self, patients, capsys):
        os.link("patients.csv", "other.csv")
        assert main(["sanitize", "patients.csv", "other.csv", *DESIGN, "--epsilon", "1"]) == 1
        assert "OUT is IN" in capsys.readouterr().err

    def test_names_that_differ_where_both_exist_are_two_files(self, patients):
        Path("PATIENTS.csv").write_text("old")
        if len(os.listdir()) == 2:  # not on Windows and macOS
            sanitize("PATIENTS.csv", "--force")
            assert patients.equals(pd.read_csv("patients.csv"))


def calls_of(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func).split(".")[-1], node


def is_of_text(name, call):
    """Whether a call opens a file for text."""
    if name in ("read_text", "write_text"):
        return True
    texts = [each.value for each in call.args[1:2] if isinstance(each, ast.Constant)]
    return name in ("open", "fdopen") and "b" not in "".join(map(str, texts))


def test_a_file_of_text_has_an_encoding_and_the_same_line_ends_everywhere():
    found = 0
    for path in Path(skprivacy.__file__).parent.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name, call in calls_of(tree):
            if is_of_text(name, call) and ast.unparse(call.func) != "os.open":
                given = {keyword.arg for keyword in call.keywords}
                assert "encoding" in given, (path, call.lineno)
                is_written = name in ("write_text", "fdopen")
                assert not is_written or "newline" in given, (path, call.lineno)
                found += 1
    assert found > 3


def test_no_process_is_started():
    starting = {"multiprocessing", "concurrent", "joblib", "subprocess", "loky"}
    for path in Path(skprivacy.__file__).parent.rglob("*.py"):
        if path.parts[-2:] == ("ui", "worker.py"):
            continue  # the page is served while another process computes
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [
                alias.name for alias in getattr(node, "names", []) if isinstance(node, ast.Import)
            ]
            if isinstance(node, ast.ImportFrom) and node.names[0].name != "parent_process":
                names += [node.module or ""]  # to ask whether this is a worker starts none
            assert not starting & {name.split(".")[0] for name in names}, path
