"""The session: what is wanted, what is known, and in which order the rest is made. No HTTP.

The stops of the slider are the points of the curve. The one that is looked at is designed first,
then its neighbours while nobody waits. All are kept, so that a stop that is known shows at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from .choices import REPORT, STOPS, Choices, in_points, numbered
from .worker import Workers

# What nobody waits for any more may run for this long: a new process takes longer to start.
_PATIENCE = 1.0

# Beyond this many combinations of values, a design takes a while.
_MANY = 100

_UNCLEAR = (
    "The first line of {name} may be a row rather than a header: a row that is taken for a header "
    "would be published unchanged. Which is it?"
)

_ONE_COLUMN = "{name} has one column only. Does {delimiter} separate its columns?"

_DIED = (
    "The process that computes has ended, perhaps for lack of memory. What was known is kept: "
    "choose fewer columns or fewer bins, or try again."
)

_CLOSED = (
    "A limit of {points} is not possible: a value in the columns that are published as they are "
    "tells more about {about}, or has too few rows to be sure that it does not. The bars of the "
    "columns show averages."
)

_NO_REPORT = "it was stopped."


@dataclass(eq=False)
class _Release:
    """A release: drawn once, and written into a folder."""

    choices: Choices
    folder: Path
    number: int  # of the releases of a table
    handover: dict[str, str | None]
    together: str  # what it reveals with those before
    facts: dict[str, Any] | None = None  # None while it is drawn
    report: dict[str, Any] | None = None

    @property
    def given(self) -> dict[str, Any]:
        """What the process needs to make it."""
        place = {"folder": str(self.folder), "number": self.number}
        return {"choices": self.choices, **place, **self.handover}

    def report_task(self) -> _Task:
        """Return the task to write its report."""
        said = f"This is release {self.number} of this table. {self.together}"
        return _Task("report", self.given | {"notes": [said] if self.together else []})

    def files(self) -> list[str]:
        """Return the names of the files that are there."""
        return sorted(path.name for path in self.folder.iterdir() if path.suffix != ".part")


@dataclass(eq=False)
class _Session:
    """What is known about one table."""

    table: dict[str, Any]
    number: int
    look: dict[str, Any] | None = None
    given_away: dict[tuple[str, ...], dict[str, Any]] = field(default_factory=dict)
    terms: dict[Choices, dict[str, Any]] = field(default_factory=dict)
    views: dict[Choices, dict[str, Any]] = field(default_factory=dict)
    failed: dict[Choices, dict[str, Any]] = field(default_factory=dict)
    releases: dict[Choices, _Release] = field(default_factory=dict)
    choices: Choices = field(default_factory=Choices)
    together: tuple[list[Choices], str] = field(default_factory=lambda: ([], ""))

    def warning_of(self, choices: Choices) -> str:
        """Return what these choices reveal with all releases that there are, if it is known."""
        releases, text = self.together
        return text if releases == [*self.releases, choices] else ""


@dataclass(eq=False)
class _Task:
    """Something the process does; waited_for : whether somebody waits for it."""

    kind: str
    given: dict[str, Any]
    waited_for: bool = True
    id: int = 0
    began: float = 0.0
    doing: str = ""

    @property
    def choices(self) -> Choices | None:
        """The choices that it is for."""
        return self.given.get("choices")


class Desk:
    """A table, and the work on it.

    changed : called whenever there is something new to see; folder : for copies and releases.
    """

    def __init__(self, changed: Callable[[], None], folder: Path) -> None:
        self._changed, self.folder = changed, folder
        self._lock, self._numbers = threading.RLock(), count(1)
        self._session: _Session | None = None
        self._queue: list[_Task] = []
        self._running: _Task | None = None
        self._unclear: dict[str, Any] | None = None  # a table, until that is explained
        self._asks_for = ""  # its "header" or "delimiter"
        # By the content of a table: opening it again does not undo its releases.
        self._released: dict[str, dict[Choices, _Release]] = {}
        self._is_paused, self._shows_secret, self._error, self._asked = False, False, "", 0
        self._workers = Workers(self._told)

    def close(self) -> None:
        """End the processes."""
        self._workers.end()

    # What the page asks for.

    def open_table(
        self,
        path: str,
        name: str,
        *,
        is_demo: bool = False,
        is_copy: bool = False,
        header: bool | None = None,
        delimiter: str | None = None,
    ) -> None:
        """Open a table; header : whether its first line is one, None to look at it."""
        with self._lock:
            self._give_up()
            table = {"path": path, "name": name, "is_demo": is_demo, "is_limited": is_copy}
            table |= {"header": header, "delimiter": delimiter}
            self._unclear, self._asks_for = None, ""
            self._session, self._queue = _Session(table, next(self._numbers)), [_Task("look", {})]
            self._is_paused, self._shows_secret, self._error = False, False, ""
            self._next()

    def open_again(self, header: bool | None = None) -> None:
        """Open the table whose first line, or delimiter, was not clear."""
        with self._lock:
            if (table := self._unclear) is None:
                raise ValueError("No table waits for this.")
            how = {"is_demo": table["is_demo"], "is_copy": table["is_limited"]}
            how["delimiter"] = table["delimiter"]
            self.open_table(table["path"], table["name"], **how, header=header)

    def choose(self, choices: Choices) -> int:
        """Show what these choices lead to, as soon as it is known; return their number."""
        with self._lock:
            session = self._opened()
            known = {column["name"] for column in (session.look or {"columns": []})["columns"]}
            named = {*choices.protect, *choices.randomise, *choices.beside}
            named |= {choices.target} if choices.target else set()
            if unknown := named - known:
                raise ValueError(f"There is no column {min(unknown)!r}.")
            session.choices, self._is_paused, self._error = choices, False, ""
            session.failed.pop(choices, None)
            self._asked += 1
            self._make_way(choices)
            self._next()
            return self._asked

    def show_secret(self, is_shown: bool) -> None:
        """Show or hide values of the protected columns."""
        with self._lock:
            self._shows_secret = is_shown
            self._changed()

    def cancel(self) -> None:
        """Stop what is being done, until the next choice."""
        with self._lock:
            self._give_up()
            self._changed()

    def release(self, choices: Choices, is_confirmed: bool, handover: Mapping[str, str]) -> None:
        """Draw a release, once; another one of the same table needs a confirmation."""
        with self._lock:
            session = self._opened()
            if choices not in session.views:
                raise ValueError("This is not designed yet: wait until its figures are there.")
            if (known := session.releases.get(choices)) is not None:
                if known.report is None or "error" not in known.report:
                    return
                known.report = None
                self._queue.append(known.report_task())
            elif session.releases and not (is_confirmed and session.warning_of(choices)):
                together = {"releases": [*session.releases, choices]}
                self._queue.insert(0, _Task("together", together))
            else:
                folder = self.folder / f"release-{next(self._numbers)}"
                folder.mkdir(mode=0o700)
                said = {name: text or None for name, text in handover.items()}
                number = 1 + max((each.number for each in session.releases.values()), default=0)
                release = _Release(choices, folder, number, said, session.warning_of(choices))
                session.releases[choices] = release
                self._queue[:0] = [_Task("release", release.given), release.report_task()]
            self._make_way(None)
            self._next()

    def file(self, folder: str, name: str) -> Path | None:
        """Return a file of a release, None if there is no such file."""
        with self._lock:
            every = [] if self._session is None else list(self._session.releases.values())
            found = [r for r in every if r.folder.name == folder and r.facts is not None]
            return found[0].folder / name if found and name in found[0].files() else None

    def state(self) -> dict[str, Any]:
        """Return all that the page shows, ready for JSON."""
        with self._lock:
            shown: dict[str, Any] = {"stops": STOPS, "error": self._error, "busy": self._busy()}
            shown |= {"asks_for": self._asks_for, "asked": self._asked}
            if self._session is None:
                return shown
            return shown | self._state_of(self._session)

    # What the process says.

    def _told(self, message: dict[str, Any]) -> None:
        with self._lock:
            task, session = self._running, self._session
            if "died" in message and (task is None or task.id == message["id"]):
                self._give_up()
                self._error = _DIED
            elif task is None or session is None or task.id != message["id"]:
                return
            elif "doing" in message:
                task.doing = message["doing"]
            else:
                self._running = None
                if "error" in message:
                    self._failed(session, task, message)
                else:
                    self._done(session, task, message)
                self._next()
            self._changed()

    def _failed(self, session: _Session, task: _Task, message: dict[str, Any]) -> None:
        text = message["error"]
        if task.kind in ("design", "terms"):
            session.failed[task.given["choices"]] = message
            if task.kind == "terms":
                self._is_paused = True
        elif task.kind == "report":
            session.releases[task.given["choices"]].report = {"error": text}
        else:
            self._error = text
        if task.kind == "look":
            if message["asks_for_header"]:
                self._unclear, self._asks_for = session.table, "header"
                self._error = _UNCLEAR.format(name=session.table["name"])
            elif delimiter := message["delimiter"]:
                self._asks_for = "delimiter"
                self._unclear = session.table | {"delimiter": delimiter}
                shown = {"name": session.table["name"], "delimiter": repr(delimiter)}
                self._error = _ONE_COLUMN.format(**shown)
            self._session = None
        if task.kind == "release":
            del session.releases[task.given["choices"]]
            self._queue = [each for each in self._queue if each.choices != task.choices]

    def _done(self, session: _Session, task: _Task, message: dict[str, Any]) -> None:
        found, choices = message["found"], task.choices or session.choices
        match task.kind:
            case "look":
                session.releases = self._released.setdefault(found.pop("fingerprint"), {})
                session.look = found
            case "given_away":
                session.given_away[tuple(task.given["protect"])] = found
            case "terms":
                session.terms[choices.at(0)] = found
            case "design":
                session.views[choices] = found | {"warnings": message["warnings"]}
            case "together":
                session.together = task.given["releases"], found["text"]
            case "release":
                session.releases[choices].facts = found
            case "report":
                session.releases[choices].report = found

    # Order.

    def _opened(self) -> _Session:
        if self._session is None or self._session.look is None:
            raise ValueError("No table is open.")
        return self._session

    def _make_way(self, choices: Choices | None) -> None:
        """Stop what nobody waits for any more; most of it ends by itself before that.

        choices : that are waited for, None for a release.
        """
        task = self._running
        if task is None or task.kind not in ("design", "terms"):
            return  # it takes no time
        doing, views = task.choices, self._opened().views
        is_neighbour = choices is not None and doing is not None and doing.at(0) == choices.at(0)
        if doing == choices or (is_neighbour and choices in views):
            return
        left = max(0.0, _PATIENCE - (time.monotonic() - task.began))
        timer = threading.Timer(left, self._stop_if, [task])
        timer.daemon = True
        timer.start()

    def _stop_if(self, task: _Task) -> None:
        with self._lock:
            if self._running is task and not self._is_wanted(task):
                self._stop()
                self._next()

    def _is_wanted(self, task: _Task) -> bool:
        wanted = self._session.choices if self._session else None
        return not self._queue and task.choices == wanted

    def _stop(self) -> None:
        if self._running is not None:
            self._running = None
            self._workers.cancel()

    def _give_up(self) -> None:
        """Stop what is being done, and forget what waits: nothing is tried again by itself."""
        given_up, self._queue, self._is_paused = [self._running, *self._queue], [], True
        self._stop()
        for task in given_up:
            if task is not None and self._session is not None:
                self._forget(task, self._session)

    def _forget(self, task: _Task, session: _Session) -> None:
        """Let nobody wait for a task that will not be done."""
        choices = task.choices or session.choices
        match task.kind:
            case "look":
                self._session = None
            case "release":
                session.releases.pop(choices, None)
            case "report" if choices in session.releases:
                session.releases[choices].report = {"error": _NO_REPORT}

    def _next(self) -> None:
        """Begin what is wanted most, if nothing is running."""
        if self._running is None and self._session is not None:
            task = self._queue.pop(0) if self._queue else self._wanted(self._session)
            if task is not None:
                self._begin(task, self._session)
        self._changed()

    def _wanted(self, session: _Session) -> _Task | None:
        choices = session.choices
        if session.look is None or self._is_paused:
            return None
        if choices.protect and choices.protect not in session.given_away:
            return _Task("given_away", {"protect": choices.protect}, waited_for=False)
        if choices.missing():
            return None
        if choices.at(0) not in session.terms:
            return _Task("terms", {"choices": choices})
        known = {*session.views, *session.failed}
        unknown = (stop for p in choices.stops() if (stop := choices.at(p)) not in known)
        found = next((each for each in unknown if not self._is_closed(session, each)), None)
        return None if found is None else _Task("design", {"choices": found}, found == choices)

    def _begin(self, task: _Task, session: _Session) -> None:
        task.id, task.began = next(self._numbers), time.monotonic()
        self._running = task
        given = {"id": task.id, "kind": task.kind, "given": task.given, "table": session.table}
        self._workers.do(given)

    def _is_closed(self, session: _Session, choices: Choices) -> bool:
        """Whether columns that are published as they are do not allow a stop."""
        terms, failed = session.terms.get(choices.at(0)), session.failed.get(choices)
        if failed is not None:
            return bool(failed["is_beside"])
        key = str(float(choices.points))
        return (
            terms is not None and terms["epsilon"].get(key, terms["smallest"]) < terms["smallest"]
        )

    # What the page shows.

    def _busy(self) -> dict[str, Any] | None:
        if (task := self._running) is None:
            return None
        return {
            "kind": task.kind,
            "points": None if task.choices is None else task.choices.points,
            "waited_for": task.waited_for,
            "doing": task.doing,
            "seconds": time.monotonic() - task.began,
            "number": task.id,
        }

    def _state_of(self, session: _Session) -> dict[str, Any]:
        choices, terms = session.choices, session.terms.get(session.choices.at(0))
        failed = session.failed.get(choices)
        view = self._view(session)
        n = None if terms is None else terms["combinations"]
        closed = [p for p in STOPS if self._is_closed(session, choices.at(p))]
        problem = choices.missing()
        if not problem and self._is_closed(session, choices):
            problem = _CLOSED.format(points=in_points(choices.points), about=choices.about)
            if is_open := [in_points(p) for p in STOPS if p not in closed]:
                problem += f" Possible are {is_open[0]} and more."
        elif not problem and failed is not None:
            problem = failed["error"]
        is_stopped = not problem and self._is_paused and choices not in session.views
        return {
            "table": self._table(session),
            "choices": choices.to_json(),
            "given_away": session.given_away.get(choices.protect),
            "problem": "Stopped." if is_stopped else problem,
            "is_stopped": is_stopped,
            "combinations": n if n is not None and n > _MANY else None,
            "closed": closed,
            "view": view,
            "curve": self._curve(session),
            "release": self._release(session, choices),
            "n_releases": len(session.releases),
            "releases": [
                {"number": each.number, "choices": each.choices.to_json()}
                for each in session.releases.values()
                if each.choices != choices and each.facts is not None
            ],
            "shows_secret": self._shows_secret,
        }

    def _table(self, session: _Session) -> dict[str, Any]:
        """Return the columns, without values of those that are protected."""
        facts = {"name": session.table["name"], "is_demo": session.table["is_demo"]}
        facts["number"] = session.number
        if session.look is None:
            return facts | {"columns": []}
        hidden = () if self._shows_secret else session.choices.protect
        columns = [
            column | {"examples": [], "scale": []} if column["name"] in hidden else column
            for column in session.look["columns"]
        ]
        return facts | session.look | {"columns": columns}

    def _view(self, session: _Session) -> dict[str, Any] | None:
        """Return the view of the choices, or of the nearest stop that is known, marked so."""
        choices = session.choices
        if choices.missing():
            return None
        known = (p for p in choices.stops() if choices.at(p) in session.views)
        if (points := next(known, None)) is None:
            return None
        view = session.views[choices.at(points)]
        hidden: dict[str, Any] = {"groups": [], "sentence_named": None}
        hidden = {} if self._shows_secret else hidden
        return view | hidden | {"is_near": points != choices.points}

    def _curve(self, session: _Session) -> list[dict[str, Any]]:
        choices = session.choices
        if choices.missing():
            return []
        keys = ("points", "epsilon", "kept", "kept_at_most", "kept_shown", "attacker", "verdict")
        found = (session.views.get(choices.at(points)) for points in sorted(choices.stops()))
        return [{key: view[key] for key in keys} for view in found if view is not None]

    def _release(self, session: _Session, choices: Choices) -> dict[str, Any] | None:
        """Return the release of these choices, or the warning before another one."""
        if (release := session.releases.get(choices)) is None:
            warning = session.warning_of(choices)
            return {"warning": warning} if warning else None
        if release.facts is None:
            return {"is_drawn": False}
        report = numbered(REPORT, release.number)
        files = [name for name in release.files() if name != report or release.report]
        shown = {"is_drawn": True, "folder": release.folder.name, "files": files}
        shown |= {"handover": release.handover, "number": release.number}
        return shown | release.facts | {"report": release.report}
