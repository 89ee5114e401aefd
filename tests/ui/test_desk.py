"""The desk with real processes: the order of work, cancelling, releases, and figures."""

import html
import json
import os
import shlex
import signal
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from scripts import run_script
from ui_session import until

from skprivacy import PrivacyFunnelTransformer, PrivacyReport
from skprivacy.cli import main
from skprivacy.ui.choices import STOPS, Choices
from skprivacy.ui.desk import Desk

DEMO = {"roles": {"sex": "protect", "blood_pressure": "randomise", "bmi": "randomise"}, "bins": 3}

AWKWARD = ['a, "b"', "<b>", "=1+1", "-x"]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    found = Desk(lambda: None, tmp_path_factory.mktemp("desk"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    """Return a file with a secret, awkward names, a scale, a target and a column to publish."""
    rng = np.random.default_rng(0)
    n = 600
    s = rng.integers(2, size=n)
    low = np.array(["low", "medium", "high"], dtype=object)
    rows = pd.DataFrame(
        {
            AWKWARD[0]: np.array(["yes", "no"])[s],
            AWKWARD[1]: low[np.minimum(2, rng.poisson(0.4 + 0.5 * s))],
            AWKWARD[2]: rng.integers(20, 60, size=n) + 4 * s,
            AWKWARD[3]: rng.integers(3, size=n),
            "target": np.array(["t", "u"])[rng.binomial(1, 0.3 + 0.3 * s)],
        }
    )
    path = tmp_path_factory.mktemp("people") / "people & co.csv"
    rows.to_csv(path, index=False)
    return path


def opened(desk, path=None):
    if path is None:
        desk.open_table(str(desk.folder / "patients.csv"), "patients.csv", is_demo=True)
    else:
        desk.open_table(str(path), str(path), header=True)
    until(lambda: desk.state()["error"] or desk.state().get("table", {}).get("columns"))
    assert not desk.state()["error"]
    return desk


def view(desk):
    """Return the view of the present choices, not a preview."""

    def ready():
        state = desk.state()
        assert not state["error"]
        found = state["view"]
        return found if found and not found["is_near"] else state["problem"]

    found = until(ready)
    assert isinstance(found, dict), found
    return found


def idle(desk):
    until(lambda: desk.state()["busy"] is None)
    return desk.state()


def chosen(**more):
    return Choices.from_json(DEMO | more)


def test_a_stop_is_designed_first_and_its_neighbours_next(desk):
    opened(desk).choose(chosen())
    first = view(desk)
    assert first["points"] == 10
    assert first["sentence"].startswith("Whoever sees a released row can move a guess about sex")
    state = idle(desk)
    assert [d["points"] for d in state["curve"]] == list(STOPS)
    kept = [d["kept"] for d in state["curve"]]
    assert kept == sorted(kept)
    desk.choose(chosen(points=3))
    state = desk.state()  # at once: nothing is designed
    assert state["busy"] is None
    assert state["view"]["points"] == 3
    assert not state["view"]["is_near"]


def test_values_of_the_secret_are_shown_only_if_that_is_asked_for(desk):
    opened(desk).choose(chosen())
    view(desk)
    assert "sex 1" not in json.dumps(desk.state())
    desk.show_secret(True)
    assert "sex 1" in json.dumps(desk.state())
    desk.show_secret(False)
    assert "sex 1" not in json.dumps(desk.state())


def test_a_preview_is_marked_and_never_released(desk):
    opened(desk).choose(chosen())
    view(desk)
    exact = chosen(points=11.5)
    desk.choose(exact)
    assert desk.state()["view"]["is_near"]
    with pytest.raises(ValueError, match="not designed yet"):
        desk.release(exact, False, {})
    assert not view(desk)["is_near"]


def test_a_release_is_drawn_once(desk):
    opened(desk).choose(chosen())
    view(desk)
    for _ in range(2):
        desk.release(chosen(), False, {"purpose": "", "recipient": "x"})
    found = until(lambda: (desk.state()["release"] or {}).get("is_drawn") and desk.state())
    release = found["release"]
    assert found["n_releases"] == 1
    path = desk.file(release["folder"], "released.csv")
    before = path.read_bytes()
    desk.choose(chosen(points=5))
    desk.choose(chosen())
    desk.release(chosen(), True, {})
    until(lambda: (desk.state()["release"] or {}).get("report"))
    assert path.read_bytes() == before
    assert b"sex" not in before
    assert {"report.html", "mechanism.json", "command.txt", "release.py"} <= {
        *desk.state()["release"]["files"]
    }
    assert desk.file(release["folder"], "../patients.csv") is None
    assert desk.file("release-0", "released.csv") is None


def test_another_release_warns_with_what_both_reveal_together(desk):
    opened(desk).choose(chosen())
    view(desk)
    desk.release(chosen(), False, {})
    until(lambda: (desk.state()["release"] or {}).get("is_drawn"))
    desk.cancel()  # the report
    other = chosen(points=15)
    desk.choose(other)
    view(desk)
    desk.release(other, False, {})
    warning = until(lambda: (desk.state()["release"] or {}).get("warning"))
    assert "Both releases together reveal" in warning
    assert desk.state()["n_releases"] == 1
    desk.release(other, True, {})
    release = until(
        lambda: (desk.state()["release"] or {}).get("report") and desk.state()["release"]
    )
    assert "error" not in release["report"]
    assert desk.state()["n_releases"] == release["number"] == 2
    assert [each["number"] for each in desk.state()["releases"]] == [1]
    assert desk.file(release["folder"], "released-2.csv").exists()
    report = desk.file(release["folder"], "report-2.html").read_text()
    assert html.escape(warning) in report


def test_cancelling_costs_no_import(desk):
    opened(desk).choose(chosen(points=13))
    until(lambda: (desk.state()["busy"] or {}).get("kind") == "design" or desk.state()["view"])
    with desk._lock:  # what is done cannot end meanwhile
        was_busy, spare = desk.state()["busy"] is not None, desk._workers._spare
        desk.cancel()
    assert desk.state()["busy"] is None
    desk.choose(chosen(points=14))
    assert view(desk)["points"] == 14
    assert desk._workers._current is spare or not was_busy


def test_a_process_that_dies_is_told_and_replaced(desk):
    opened(desk).choose(chosen())
    view(desk)
    idle(desk)
    os.kill(desk._workers._current._process.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    assert "has ended" in until(lambda: desk.state()["error"])
    assert desk.state()["view"]["points"] == 10
    desk.choose(chosen(points=16))
    assert view(desk)["points"] == 16


def test_a_table_that_cannot_be_read_is_told(desk, tmp_path):
    (tmp_path / "rows.csv").write_text("1,2\n3,4\n5,6\n")
    desk.open_table(str(tmp_path / "rows.csv"), "rows.csv")
    assert "may be a row" in until(lambda: desk.state()["error"])
    assert desk.state()["asks_for"] == "header"
    assert "table" not in desk.state()
    desk.open_again(header=False)
    columns = until(lambda: desk.state().get("table", {}).get("columns"))
    assert [column["name"] for column in columns] == ["c1", "c2"]
    (tmp_path / "bad.parquet").write_bytes(b"nothing")
    desk.open_table(str(tmp_path / "bad.parquet"), "bad.parquet")
    assert "Parquet" in until(lambda: desk.state()["error"])


def test_another_delimiter_is_asked_for(desk, tmp_path):
    lines = [f"{'fm'[i % 2]};{i % 3}" for i in range(200)]
    (tmp_path / "rows.csv").write_text("\n".join(["s;x", *lines]))
    desk.open_table(str(tmp_path / "rows.csv"), "rows.csv")
    assert until(lambda: desk.state()["asks_for"]) == "delimiter"
    assert "';'" in desk.state()["error"]
    desk.open_again()
    columns = until(lambda: desk.state().get("table", {}).get("columns"))
    assert [column["name"] for column in columns] == ["s", "x"]
    desk.choose(Choices.from_json({"roles": {"s": "protect", "x": "randomise"}}))
    found = view(desk)
    assert "--delimiter=;" in shlex.split(found["command"])
    assert "delimiter=';'" in found["script"]
    desk.cancel()


def test_published_columns_close_stops(desk, people):
    roles = {AWKWARD[0]: "protect", AWKWARD[2]: "randomise", "target": "beside"}
    opened(desk, people).choose(Choices.from_json({"roles": roles, "bins": 3, "points": 1}))
    problem = until(lambda: desk.state()["problem"])
    assert problem.startswith("A limit of 1 point is not possible")
    closed = idle(desk)["closed"]
    assert closed == [p for p in STOPS if p <= max(closed)]
    desk.choose(Choices.from_json({"roles": roles, "bins": 3, "points": 30}))
    assert view(desk)["rows"]["names"] == [AWKWARD[2], "target"]


CASES = {
    "near": {"ordered": {AWKWARD[1]: ["low", "medium", "high"]}},
    "predict": {"purpose": "predict", "target": "target"},
    "target released": {"purpose": "predict", "target": AWKWARD[1]},
    "information": {"purpose": "information"},
    "beside": {"beside": AWKWARD[3], "points": 30},
    "rows only": {"population": False, "pooled": 3},
}


@pytest.mark.parametrize("case", CASES)
def test_figures_are_those_of_the_command_and_the_script(
    case, desk, people, tmp_path, monkeypatch, capsys
):
    asked = dict(CASES[case])
    roles = {AWKWARD[0]: "protect", AWKWARD[1]: "randomise", AWKWARD[2]: "randomise"}
    if beside := asked.pop("beside", None):
        roles[beside] = "beside"
    opened(desk, people).choose(
        Choices.from_json({"roles": roles, "bins": 3, "points": 20} | asked)
    )
    found = view(desk)
    desk.cancel()  # the rest of the curve
    monkeypatch.chdir(tmp_path)
    words = shlex.split(found["command"])
    assert words[0] == "skprivacy"
    quick = ["--json", "--no-attack", "--no-curve"]
    assert main([words[1], *quick, *words[2:]]) == 0
    facts = json.loads(capsys.readouterr().out)
    same = {key: facts[key] for key in found["facts"]}
    assert same == found["facts"]
    released = Path("released.csv").read_bytes()
    channel = PrivacyFunnelTransformer.from_json(Path("mechanism.json").read_text())
    for name in ("released.csv", "mechanism.json", "report.html"):
        Path(name).unlink()
    Path("script.py").write_text(found["script"])
    if case != "near":  # its curve takes long
        monkeypatch.setattr(PrivacyReport, "from_estimator", Mock())
    run_script(tmp_path / "script.py")
    assert Path("report.html").exists() == (case == "near")
    again = PrivacyFunnelTransformer.from_json(Path("mechanism.json").read_text())
    assert np.array_equal(again.mechanism_.channel, channel.mechanism_.channel)
    assert Path("released.csv").read_bytes().splitlines()[0] == released.splitlines()[0]
    assert len(Path("released.csv").read_bytes().splitlines()) == len(released.splitlines())


def test_cells_are_said_to_be_made_up(desk, tmp_path):
    rng = np.random.default_rng(1)
    n = 800
    s = rng.integers(2, size=n)
    rows = pd.DataFrame({f"x{i}": rng.normal(size=n) + 0.3 * s for i in range(4)})
    rows["s"] = np.array(["f", "m"])[s]
    rows.to_csv(tmp_path / "rows.csv", index=False)
    roles = {"s": "protect", **{f"x{i}": "randomise" for i in range(4)}}
    opened(desk, tmp_path / "rows.csv").choose(Choices.from_json({"roles": roles, "points": 15}))
    found = view(desk)
    assert found["is_made_up"]
    assert not np.any(found["rows"]["is_moved"])
    desk.cancel()
