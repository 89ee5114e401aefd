"""A release is in place before its report is made, and stays whatever becomes of the report."""

import json
import os
import stat
from pathlib import Path

import pandas as pd
import pytest

from skprivacy import PrivacyReport
from skprivacy.cli import main, release
from skprivacy.datasets import load_diabetes_bands
from skprivacy.engines.file_tables import written

DESIGN = ["--sensitive", "sex", "--columns", "bmi", "--confidence", "none", "--epsilon", "0.1"]
REPORT = ["--report", "r.html", "--no-curve"]


@pytest.fixture
def patients(tmp_path, monkeypatch):
    """Go to a folder with nothing but patients.csv."""
    monkeypatch.chdir(tmp_path)
    load_diabetes_bands().to_csv("patients.csv", index=False)


def sanitize(*options, target="out.csv"):
    return main(["sanitize", "patients.csv", target, *DESIGN, *options])


def fail_with(monkeypatch, error):
    """Let no report be made."""

    def fail(*_, **__):
        assert len(pd.read_csv("out.csv")) == 442  # which is there by now
        raise error

    monkeypatch.setattr(PrivacyReport, "from_estimator", fail)


def files():
    return sorted(set(os.listdir()) - {"patients.csv"})


class TestTheReport:
    def test_its_failure_leaves_the_release_and_is_told(self, patients, capsys, monkeypatch):
        fail_with(monkeypatch, ValueError("no ink"))
        assert sanitize(*REPORT, "--save-mechanism", "m.json") == 1
        assert files() == ["m.json", "out.csv"]
        said = capsys.readouterr()
        assert said.out.startswith("out.csv: 442 rows; bmi replaced")
        assert "Wrote m.json." in said.out
        assert said.err.splitlines()[-1] == (
            "skprivacy: error: The release is complete, but the report r.html could not be "
            "written: no ink"
        )

    def test_machines_are_told_by_the_exit_code(self, patients, capsys, monkeypatch):
        fail_with(monkeypatch, ValueError("no ink"))
        assert sanitize(*REPORT, "--json") == 1
        assert files() == ["out.csv"]
        assert capsys.readouterr().out == ""

    def test_whoever_stops_it_has_the_release_and_its_figures(self, patients, capsys, monkeypatch):
        fail_with(monkeypatch, KeyboardInterrupt())
        assert sanitize(*REPORT) == 130
        assert files() == ["out.csv"]
        assert capsys.readouterr().out.startswith("out.csv: 442 rows; bmi replaced")

    def test_one_of_an_older_release_is_not_left_beside_a_new_one(self, patients, monkeypatch):
        Path("r.html").write_text("PASS")
        fail_with(monkeypatch, ValueError("no ink"))
        assert sanitize(*REPORT, "--force") == 1
        assert files() == ["out.csv"]

    def test_one_that_is_replaced_keeps_its_permissions(self, patients):
        Path("r.html").write_text("PASS")
        Path("r.html").chmod(0o640)
        assert sanitize(*REPORT, "--no-attack", "--force") == 0
        assert stat.S_IMODE(os.stat("r.html").st_mode) == 0o640
        assert "DOCTYPE" in Path("r.html").read_text()

    def test_a_file_that_appears_meanwhile_is_not_overwritten(self, patients, capsys, monkeypatch):
        def appear(_):
            Path("r.html").write_text("somebody else")
            return "ours"

        monkeypatch.setattr(PrivacyReport, "to_html", appear)
        assert sanitize(*REPORT, "--no-attack") == 1
        assert files() == ["out.csv", "r.html"]
        assert Path("r.html").read_text() == "somebody else"
        assert "release is complete, but the report r.html could not" in capsys.readouterr().err

    def test_where_it_cannot_be_written_nothing_is_computed(self, patients, capsys, monkeypatch):
        monkeypatch.setattr(release, "fit_source", lambda *_, **__: pytest.fail("computed"))
        long = "r" * 245 + ".html"  # allowed, but there is no room for ".part"
        assert sanitize("--report", long) == 1
        assert files() == []
        assert capsys.readouterr().err.count("\n") == 1

    def test_a_release_that_fails_leaves_none(self, patients, monkeypatch):
        Path("r.html").write_text("PASS")
        monkeypatch.setattr(release, "release_rows", lambda *_, **__: 441)
        assert sanitize(*REPORT, "--save-mechanism", "m.json", "--force") == 1
        assert files() == ["r.html"]
        assert Path("r.html").read_text() == "PASS"  # the old one, with its release

    def test_a_reader_that_has_seen_enough_does_not_stop_it(self, patients, monkeypatch):
        def close(*_):
            raise BrokenPipeError

        monkeypatch.setattr("shutil.copyfileobj", close)
        monkeypatch.setattr("os.dup2", lambda *_: None)
        assert sanitize(*REPORT, "--no-attack", target="-") == 0
        assert files() == ["r.html"]


class TestWithoutAttackers:
    def test_nobody_attacks_and_the_report_says_so(self, patients, capsys, monkeypatch):
        monkeypatch.setattr(
            "skprivacy.report.attackers.audit", lambda *_, **__: pytest.fail("attacked")
        )
        assert sanitize(*REPORT, "--no-attack", "--json") == 0
        page = " ".join(Path("r.html").read_text(encoding="utf-8").split())
        assert "No attack was tried: no model was trained to guess sex" in page
        assert json.loads(capsys.readouterr().out)["verdict"] in page

    def test_otherwise_they_do(self, patients):
        assert sanitize(*REPORT) == 0
        assert "Models were trained to guess sex" in Path("r.html").read_text(encoding="utf-8")


class TestKilledRuns:
    def test_the_next_one_names_what_was_left(self, patients, capsys):
        killed = written("out.csv")
        killed.__enter__().write(b"half")  # and never ended
        (left,) = files()
        assert sanitize() == 0
        assert files() == [left, "out.csv"]
        warned = capsys.readouterr().err
        assert f"skprivacy: warning: {str(Path(left).resolve())!r} is an unfinished" in warned
        assert "delete it" in warned

    def test_files_of_others_are_not_named(self, tmp_path, recwarn):
        for name in (
            ".my.csv.part",
            ".out.csv.part",
            ".out.csv.0123.part",
            "out.csv.01234567.part",
        ):
            (tmp_path / name).touch()
        with written(tmp_path / "out.csv") as file, written(tmp_path / "o[u]t.csv"):
            file.write(b"all")
        assert not recwarn
