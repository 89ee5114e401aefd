"""A process that dies, or is stopped, at any moment: nobody waits for ever."""

import random
import sys
import time
from contextlib import suppress

import pytest
import quick_worker
from ui_session import until

from skprivacy.ui import worker
from skprivacy.ui.choices import Choices
from skprivacy.ui.desk import Desk

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.setattr(worker, "work", quick_worker.work)
    found = Desk(lambda: None, tmp_path)
    yield found
    found.close()


def chosen(points=10):
    return Choices.from_json({"roles": {"sex": "protect", "bmi": "randomise"}, "points": points})


def is_shown(desk):
    view = desk.state()["view"]
    return view is not None and not view["is_near"]


def processes(desk):
    return [found for found in (desk._workers._current, desk._workers._spare) if found]


def opened(desk, path="rows.csv", points=10):
    desk.open_table(path, path)
    until(lambda: desk.state().get("table", {}).get("columns"))
    desk.choose(chosen(points))
    until(lambda: is_shown(desk))
    return desk


def is_settled(desk):
    """Whether nothing is shown as going on."""
    state = desk.state()
    release = state.get("release") or {}
    is_drawing = release.get("is_drawn") is False
    is_reporting = release.get("is_drawn") and release["report"] is None
    is_reading = "table" in state and not state["table"]["columns"]
    return not (state["busy"] or is_drawing or is_reporting or is_reading)


def random_act(desk, r):
    with suppress(ValueError):  # a release of what is not designed, say
        kind = r.random()
        if kind < 0.15 or not desk.state().get("table", {}).get("columns"):
            desk.open_table("rows.csv", "rows.csv")
        elif kind < 0.7:
            desk.choose(chosen(r.choice([5, 10, 45, 50])))
        elif kind < 0.8:
            desk.cancel()
        else:
            desk.release(desk._session.choices, r.random() < 0.7, {})


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_nobody_waits_for_ever(seed, desk):
    r = random.Random(seed)
    for _ in range(300 if seed else 60):
        random_act(desk, r)
        time.sleep(r.choice([0, 0.005, 0.05]) * r.random())
        every = processes(desk)
        for process in r.choice([[], every[:1], every[1:], every]):
            process.kill()
        if r.random() < 0.5:
            until(lambda: is_settled(desk))
    until(lambda: is_settled(desk))
    opened(desk)


def test_a_process_that_dies_before_it_can_work_is_told(desk):
    desk._workers._current.kill()
    until(lambda: desk.state()["error"])
    opened(desk)


def test_a_table_that_is_being_read_is_given_up(desk):
    with desk._lock:  # nothing is done meanwhile
        desk.open_table("rows.csv", "rows.csv")
        desk._workers._current.kill()
    until(lambda: desk.state()["error"])
    assert "table" not in desk.state()


@pytest.mark.parametrize("how", ["kill", "cancel", "open"])
def test_a_release_that_is_being_drawn_is_given_up(how, desk):
    opened(desk, "slow.csv")
    desk.release(chosen(), False, {})
    until(lambda: (desk.state()["busy"] or {}).get("kind") == "release")
    assert desk.state()["release"] == {"is_drawn": False}
    if how == "kill":
        desk._workers._current.kill()
        until(lambda: desk.state()["error"])
    elif how == "cancel":
        desk.cancel()
    else:
        opened(desk, "slow.csv")
    assert desk.state()["release"] is None
    assert is_shown(desk)


def test_a_release_that_waits_is_given_up_too(desk):
    opened(desk, "slow.csv")
    desk.choose(chosen(60))
    until(lambda: (desk.state()["busy"] or {}).get("points") == 60)
    with desk._lock:  # that is designed, and the release waits
        desk._session.views[chosen(60)] = desk._session.views[chosen()]
        desk.release(chosen(60), False, {})
        desk._workers._current.kill()
    until(lambda: desk.state()["error"])
    assert desk.state()["n_releases"] == 0


def test_a_report_that_was_stopped_can_be_asked_for_again(desk, monkeypatch):
    opened(desk)
    with desk._lock:
        desk.release(chosen(), False, {})
        release = desk._session.releases[chosen()]
        release.facts = {"rows": 3, "notes": []}
        desk._running, desk._queue = None, desk._queue[-1:]  # only the report is left
        desk.cancel()
    assert desk.state()["release"]["report"] == {"error": "it was stopped."}
    desk.release(chosen(), False, {})
    assert until(lambda: desk.state()["release"]["report"])["status"] == "PASS"


def test_opening_a_table_again_does_not_undo_its_releases(desk):
    opened(desk)
    desk.release(chosen(), False, {})
    until(lambda: is_settled(desk))
    before = desk.state()["release"]
    assert opened(desk, points=20).state()["release"] is None
    desk.release(chosen(20), False, {})
    assert until(lambda: desk.state()["release"])["warning"] == "together"
    assert opened(desk).state()["release"] == before
    assert opened(desk, "other.csv").state()["n_releases"] == 0


def test_a_warning_is_about_all_releases(desk):
    opened(desk)
    for points in (20, 30):  # both are warned of beside the first only
        desk.release(chosen(), False, {})
        desk.choose(chosen(points))
        until(lambda: is_shown(desk) and is_settled(desk))
        desk.release(chosen(points), True, {})
        assert until(lambda: desk.state()["release"])["warning"]
    desk.release(chosen(30), True, {})
    until(lambda: is_settled(desk))
    desk.choose(chosen(20))
    assert desk.state()["release"] is None
    desk.release(chosen(20), True, {})
    assert until(lambda: desk.state()["release"])["warning"]
    assert desk.state()["n_releases"] == 2
