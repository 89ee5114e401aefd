"""Lines of progress: every few seconds, on the standard error, about no value."""

import io
import json
import re
import time
import warnings

import numpy as np
import pytest

from skprivacy import design_mechanism, privacy_utility_path
from skprivacy._messages import doing, part_of, watched
from skprivacy.cli import main
from skprivacy.cli import messages as progress
from skprivacy.datasets import load_diabetes_bands
from skprivacy.solvers.optimal import OptimalSolver

LINE = re.compile(r"skprivacy: [a-z][a-z0-9 ,%:]* \.\.\. \d+ s")
JOINT = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
DESIGN = ["--sensitive", "sex", "--columns", "bmi", "--confidence", "none"]


class Terminal(io.StringIO):
    """A screen that keeps all that was ever on it."""

    def isatty(self):
        return True


@pytest.fixture
def patients(tmp_path, monkeypatch):
    """Go to a folder with patients.csv, where lines are written all the time."""
    monkeypatch.chdir(tmp_path)
    for name in ("LOOK", "SOONEST", "LATEST"):
        monkeypatch.setattr(progress, name, 1e-3)
    load_diabetes_bands().to_csv("patients.csv", index=False)


def test_what_is_done_is_told_to_whoever_watches():
    told = []
    with watched(told.append):
        design_mechanism(JOINT, 0.01)
        privacy_utility_path(JOINT, [0.01, 0.02])
    doing("nothing")
    assert told == [
        "designing a mechanism",
        "designing 1 of 2 budgets",
        "designing 2 of 2 budgets",
    ]


def test_what_is_done_is_a_part_of_something():
    told = []
    with part_of("nothing that anybody watches"):
        doing("nothing")
    with watched(told.append), part_of("the whole"):
        privacy_utility_path(JOINT, [0.01, 0.02])
    assert told == ["the whole", *(f"the whole: designing {i} of 2 budgets" for i in (1, 2))]


def seconds_of_lines(is_new):
    """The moments of two minutes at which a line is due; is_new : whether something changes."""
    moments = [0.0]
    for now in np.arange(0, 120, 0.25):
        if progress.is_due(now, moments[-1], is_new):
            moments.append(now)
    return np.array(moments)


def test_a_sign_of_life_every_few_seconds_and_ever_more_rarely():
    pauses = np.diff(same := seconds_of_lines(is_new=False))
    assert pauses[0] == 3
    assert (np.diff(pauses) >= 0).all()
    assert pauses[same[:-1] < 30].max() <= 5
    assert pauses.max() <= 10
    assert len(same) < 25
    assert np.diff(seconds_of_lines(is_new=True)).max() == 3  # but what is new is told


def test_lines_where_there_is_no_terminal(patients, capsys):
    assert main(["choose", "patients.csv", *DESIGN, "--json"]) == 0
    said = capsys.readouterr()
    lines = [line for line in said.err.splitlines() if "warning" not in line]
    assert lines
    assert all(LINE.fullmatch(line) for line in lines)
    assert any("looking for a budget, design" in line for line in lines)
    assert json.loads(said.out)["epsilon"] > 0
    # Neither the column that is protected nor any of its values is named.
    assert not re.search(r"\bsex\b|female|male", " ".join(lines))


@pytest.mark.parametrize("option", ["--quiet", "-q", "--no-progress"])
def test_nothing_if_it_is_to_be_quiet(patients, capsys, option):
    assert main(["curve", "patients.csv", *DESIGN, "--epsilons", "0.01", option]) == 0
    assert "..." not in capsys.readouterr().err


def test_a_line_on_a_terminal_makes_room(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(progress, "LOOK", 1e-3)
    with progress.progress_lines(True):
        doing("waiting")
        while "waiting" not in screen.getvalue():
            time.sleep(1e-3)
        progress.clear_progress()
        print("a word", file=screen)
    shown = screen.getvalue()
    assert "\rskprivacy: waiting ... 0 s " in shown
    assert re.search(r"\r +\ra word\n", shown)
    assert shown.count("\n") == 1
    assert "\x1b" not in shown  # which not every terminal understands


def test_a_report_without_its_curve(patients, capsys):
    asked = ["--epsilon", "0.1", "--report", "r.html", "--no-curve"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main(["sanitize", "patients.csv", "out.csv", *DESIGN, *asked]) == 0
    with open("r.html", encoding="utf-8") as file:
        page = file.read()
    assert "The channel" in page
    assert "Utility kept against the budget" not in page
    told = capsys.readouterr().err
    assert "drawing the report" in told
    assert "making the report: attacking" in told
    assert not re.search(r"designing \d of [2-9]", told)


def test_the_rows_of_a_curve_are_printed_as_they_are_made(patients, monkeypatch, capsys):
    shown = []

    def solve_path(solver, task, epsilons):
        for solution in of_solver(solver, task, epsilons):
            yield solution
            shown.append(capsys.readouterr().out)

    of_solver = OptimalSolver.solve_path
    monkeypatch.setattr(OptimalSolver, "solve_path", solve_path)
    design = ["--solver", "optimal", "--epsilons", "0.05,0.01,0.02", "--quiet"]
    assert main(["curve", "patients.csv", *DESIGN, *design]) == 0
    first, second, third = shown = [*shown, capsys.readouterr().out]
    assert first.count("\n") == 6
    assert [rows.splitlines()[-1].split()[0] for rows in shown] == ["0.01", "0.02", "0.05"]
    assert second.count("\n") == third.count("\n") == 1
