"""The process that reads, designs and releases, and the handle with which it can be cancelled.

A design is cancelled by killing the process, whatever it is in the middle of. A spare one that has
imported the library takes its place. The server imports this module: here, nothing that is heavy
is imported before it is used.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from .._messages import message_of, watched
from ..engines.file_tables import sha256_of
from .choices import MECHANISM, REPORT, STOPS, Choices, numbered

if TYPE_CHECKING:
    from ..files import CountedFile, Reading
    from ..transformer import PrivacyFunnelTransformer
    from .columns import Overview

# Seconds between two messages of progress.
_SOONEST = 0.1

# More bytes than this of an upload are refused, counted after decompression.
MOST_BYTES = 200 * 2**20


class Bench:
    """A table, and what was made of it."""

    def __init__(
        self,
        path: str,
        name: str,
        is_limited: bool = False,
        header: bool | None = None,
        delimiter: str | None = None,
    ) -> None:
        from .columns import open_regular

        self.path, self.name = path, name
        self._reading: Reading = {"header": header, "delimiter": delimiter}
        self._file: BinaryIO = open_regular(path)
        self._counted: dict[Choices, CountedFile] = {}
        self._fitted: dict[Choices, PrivacyFunnelTransformer] = {}
        self._is_limited = is_limited
        self._stamp = self._state()

    @cached_property
    def overview(self) -> Overview:
        """The columns of the table."""
        from .columns import Overview

        return Overview.of(self._file, **self._reading)

    def look(self) -> dict[str, Any]:
        """Describe the columns."""
        if self._is_limited:
            _check_size(self._file)
        found = self.overview
        n, columns = len(found.rows), found.described()
        names = [column["name"] for column in columns]  # they depend on the first line
        fingerprint = f"{sha256_of(self._file)} {names}"
        facts = {"rows": found.n_rows, "looked_at": n, "columns": columns}
        return {**facts, "fingerprint": fingerprint}

    def given_away(self, protect: Sequence[str]) -> dict[str, float | None]:
        """Return what each column gives away alone."""
        return self.overview.given_away(protect)

    def terms(self, choices: Choices) -> dict[str, Any]:
        """Return the budget of each stop, and the smallest one that published columns allow."""
        counted = self._count(choices)
        return {
            "epsilon": {str(x): counted.epsilon_for_shift(x / 100) for x in map(float, STOPS)},
            "smallest": counted.smallest_epsilon,
            "combinations": counted.n_combinations,
        }

    def design(self, choices: Choices) -> dict[str, Any]:
        """Return the view of a design."""
        from .views import N_ROWS, view_of

        view = view_of(self._fit(choices), self.overview.rows.head(N_ROWS))
        return view | {"points": choices.points} | self._recipes(choices)

    def release(
        self, choices: Choices, folder: str, number: int, **handover: Any
    ) -> dict[str, Any]:
        """Draw a release, and write it with the mechanism, the command and the script."""
        from ..files import transform_file

        funnel, place = self._fit(choices), Path(folder)
        if self._state() != self._stamp:
            raise RuntimeError(f"{self.name} has changed since it was opened: open it again.")
        out = place / numbered(f"released{self._suffix}", number)
        n_rows = transform_file(funnel, self._file, out, **self._reading)
        notes = []
        try:
            (place / numbered(MECHANISM, number)).write_text(
                funnel.to_json(indent=1), encoding="utf-8", newline="\n"
            )
        except ImportError as error:  # models of cells need skops
            notes.append(str(error))
        recipes = self._recipes(choices, number, **handover)
        texts = {"release.py": recipes["script"], "command.txt": recipes["command"] + "\n"}
        for name, text in texts.items():
            (place / numbered(name, number)).write_text(text, encoding="utf-8", newline="\n")
        return {"rows": n_rows, "out": out.name, "notes": notes, **recipes}

    def report(
        self, choices: Choices, folder: str, number: int, **handover: Any
    ) -> dict[str, Any]:
        """Write the report on a release."""
        from ..report import PrivacyReport

        report = PrivacyReport.from_estimator(
            self._fit(choices),
            self.overview.rows,
            input_file=self.path,
            output_file=Path(folder) / numbered(f"released{self._suffix}", number),
            n_rows_out=self.overview.n_rows,
            **handover,
        )
        report.save(Path(folder) / numbered(REPORT, number))
        return {"status": report.sections[0].status, "lead": report.sections[0].lead}

    def together(self, releases: Sequence[Choices]) -> dict[str, Any]:
        """Say what several releases reveal together about what any of them protects."""
        from ..files import leakage_together
        from .views import together_in_words

        said = []
        for last in {each.protect: each for each in releases}.values():
            others = [each for each in releases if each is not last]
            fitted = [self._fit(each) for each in (*others, last)]
            found = leakage_together(fitted, self._file, **self._reading)
            said.append(together_in_words(found, last.about, len(fitted)))
        return {"text": " ".join(said)}

    def _recipes(self, choices: Choices, number: int = 1, **handover: Any) -> dict[str, str]:
        epsilon: Any = self._fit(choices).epsilon  # a number
        more = {**self._reading, **handover}
        return choices.recipes(epsilon, self.name, number, self._suffix, **more)

    @property
    def _suffix(self) -> str:
        suffixes = [suffix.lower() for suffix in Path(self.path).suffixes if suffix != ".gz"]
        return suffixes[-1] if suffixes and suffixes[-1] in (".tsv", ".parquet") else ".csv"

    def _state(self) -> tuple[int, int]:
        status = os.fstat(self._file.fileno())
        return status.st_size, status.st_mtime_ns

    def _count(self, choices: Choices) -> CountedFile:
        from ..files import count_file

        key = choices.at(0)
        if key not in self._counted:
            self._counted = {}  # memory: only the choices that are being looked at
            more: Any = {"target": choices.target, **self._reading}
            self._counted[key] = count_file(choices.transformer(), self._file, **more)
        return self._counted[key]

    def _fit(self, choices: Choices) -> PrivacyFunnelTransformer:
        if choices not in self._fitted:
            fitted = self._count(choices).fit(max_shift=choices.points / 100)
            self._fitted[choices] = fitted
        return self._fitted[choices]


def _check_size(file: BinaryIO) -> None:
    """Refuse a Parquet file that is too large decompressed; texts were counted before."""
    if not str(file.name).lower().endswith((".parquet", ".pq")):
        return
    from ..engines.files import read_from

    with read_from(file) as source:
        if source.is_larger_than(MOST_BYTES):  # type: ignore[attr-defined]
            raise ValueError(TOO_LARGE)


TOO_LARGE = (
    "The file has more than 200 MB once it is decompressed: open it by its path, so that nothing "
    "is copied."
)


def demo_table(path: str) -> None:
    """Write the table of the demo."""
    from ..datasets import load_diabetes_patients

    table = load_diabetes_patients()
    table.insert(0, "patient", range(1, len(table) + 1))
    table.to_csv(path, index=False, lineterminator="\n", float_format="%g")


# The process. ------------------------------------------------------------------------------------


def work(pipe: Connection) -> None:
    """Do one task after another, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from tqdm import tqdm

    from .. import files, report  # noqa: F401  # a spare process has imported what takes long
    from . import columns, views  # noqa: F401

    tqdm.set_lock(threading.RLock())  # one of the system's would be left when this is killed
    bench, opened = None, None
    with suppress(EOFError, OSError):
        while True:
            task: dict[str, Any] = pipe.recv()
            try:
                if opened != task["table"]:
                    bench, opened = None, None  # what follows may fail
                    bench, opened = _bench_for(**task["table"]), task["table"]
                pipe.send(_answer(pipe, bench, task))
            except Exception as error:
                pipe.send({"id": task["id"], **_told(error, Path(task["table"]["path"]))})


def _bench_for(path: str, is_demo: bool, **more: Any) -> Bench:
    if is_demo and not Path(path).exists():
        demo_table(path)
    return Bench(path, **more)


def _answer(pipe: Connection, bench: Any, task: dict[str, Any]) -> dict[str, Any]:
    from .views import in_words

    last = 0.0

    def tell(what: str) -> None:
        nonlocal last
        if (now := time.monotonic()) - last >= _SOONEST:
            last = now
            pipe.send({"id": task["id"], "doing": what})

    with warnings.catch_warnings(record=True) as caught, watched(tell):
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        found = getattr(bench, task["kind"])(**task["given"])
    said = list(dict.fromkeys(in_words(each.message) for each in caught))
    return {"id": task["id"], "found": found, "warnings": said}


def _told(error: Exception, path: Path) -> dict[str, Any]:
    """Return an error for the page; a table in our own folder goes by its name."""
    from ..exceptions import BesideError
    from .views import in_words

    text = in_words(error)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    kinds = {
        "is_beside": isinstance(error, BesideError),
        "asks_for_header": getattr(message_of(error), "parameter", "") == "header",
        "delimiter": _delimiter_in(error),
    }
    return {"error": text.replace(f"{path.parent}{os.sep}", ""), **kinds}


def _delimiter_in(error: Exception) -> str | None:
    """Return the delimiter that a message proposes."""
    parts = getattr(message_of(error), "parts", ())
    settings = (part for part in parts if getattr(part, "parameter", "") == "delimiter")
    return next((part.value for part in settings), None)


def _end_with_parent() -> None:
    """End this process when the server has gone, even if it was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


# Its handle. -------------------------------------------------------------------------------------


@contextmanager
def _unheard() -> Iterator[None]:
    """Start processes that do not hear Ctrl-C, not even before `work`: the server ends them."""
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # its first start would undo what follows
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Process:
    """One process; tell : gets its messages, and None when it has gone."""

    _context = multiprocessing.get_context("spawn")

    def __init__(self, tell: Callable[[_Process, dict[str, Any] | None], None]) -> None:
        self.pipe, child = self._context.Pipe()
        self.task_id = 0  # the last task that it was given
        self._process = self._context.Process(target=work, args=(child,), daemon=True)
        with _unheard():
            self._process.start()
        child.close()
        threading.Thread(target=self._listen, args=(tell,), daemon=True).start()

    def _listen(self, tell: Callable[[_Process, dict[str, Any] | None], None]) -> None:
        message: dict[str, Any] | None = {}
        while message is not None:
            try:
                message = self.pipe.recv()
            except (EOFError, OSError):
                message = None
            tell(self, message)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.join()


class Workers:
    """A process that works, and a spare one, which starts once the first has begun to answer.

    One that has gone is replaced when there is something to do.

    tell : gets each message of the process that works, and {"id": of its last task, "died": True}
    when that has died.
    """

    def __init__(self, tell: Callable[[dict[str, Any]], None]) -> None:
        self._tell, self._lock, self._is_over = tell, threading.Lock(), False
        self._current: _Process | None = None
        self._spare: _Process | None = None
        with self._lock:
            self._ready()

    def _ready(self) -> _Process:
        """Return the process that works; it starts if there is none."""
        if self._current is None:
            self._current, self._spare = self._spare or _Process(self._told), None
        return self._current

    def _told(self, process: _Process, message: dict[str, Any] | None) -> None:
        with self._lock:
            is_current = process is self._current and not self._is_over
            if message is None:
                message = {"id": process.task_id, "died": True}
                self._current = None if is_current else self._current
                self._spare = None if process is self._spare else self._spare
            elif is_current and self._spare is None:
                with suppress(OSError):  # there are too many processes
                    self._spare = _Process(self._told)
        if is_current:
            self._tell(message)

    def do(self, task: dict[str, Any]) -> None:
        """Give the process a task, or another one if it has died."""
        with self._lock:
            is_given = self._is_over or self._gave(task) or self._gave(task)
        if not is_given:
            self._tell({"id": task["id"], "died": True})

    def _gave(self, task: dict[str, Any]) -> bool:
        try:
            process = self._ready()
            process.task_id = task["id"]
            process.pipe.send(task)
        except OSError:  # it has died, or cannot be started
            self._current = None
            return False
        return True

    def cancel(self) -> None:
        """Kill the process; the spare one takes its place."""
        with self._lock:
            gone, self._current = self._current, None
        if gone is not None:
            gone.kill()

    def end(self) -> None:
        """Kill both."""
        with self._lock:
            self._is_over = True
            every = {self._current, self._spare} - {None}
        for process in every:
            process.kill()  # type: ignore[union-attr]
