"""Several secrets with budgets of their own, on the command line."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skprivacy import PrivacyFunnelTransformer
from skprivacy.cli import main

SECRETS = ["--sensitive", "sex,race", "--columns", "band"]
ALONE = ["--confidence", "none"]


@pytest.fixture
def people(tmp_path, monkeypatch):
    """Return rows that are also in people.csv of the folder that we are in."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    sex, race = rng.integers(2, size=8000), rng.choice(3, p=[0.5, 0.3, 0.2], size=8000)
    band = np.array(list("abcd"))[rng.binomial(3, 0.3 + 0.2 * sex + 0.1 * race)]
    table = pd.DataFrame({"sex": sex, "race": race, "band": band}).astype(str)
    table.to_csv("people.csv", index=False)
    return table


def run(*arguments):
    return main([str(argument) for argument in arguments])


def facts(capsys, *arguments):
    assert run(*arguments, "--json") == 0
    return json.loads(capsys.readouterr().out)


def sanitize(*arguments):
    return "sanitize", "people.csv", "out.csv", *SECRETS, *ALONE, *arguments


class TestSanitize:
    def test_it_says_what_is_revealed_about_each_secret(self, people, capsys):
        assert run(*sanitize("--epsilon", "sex=0.02,race=0.05", "--report", "r.html")) == 0
        said = capsys.readouterr()
        assert "at most epsilon = 0.02 about sex" in said.out
        assert "at most epsilon = 0.05 about race" in said.out
        assert "separate budgets do not bound this" in said.out
        assert "What leaks about race" in Path("r.html").read_text(encoding="utf-8")

    def test_warnings_speak_of_options(self, people, capsys):
        assert run(*sanitize("--epsilon", "sex=5,race=5")) == 0
        assert "--epsilon protects next to nothing" in capsys.readouterr().err

    def test_facts(self, people, capsys):
        found = facts(capsys, *sanitize("--epsilon", "sex=0.02,race=0.05,sex+race=0.06"))
        assert found["epsilon"] == {"sex": 0.02, "race": 0.05, "sex+race": 0.06}
        for each in found["secrets"]:
            assert each["max_leakage"] <= each["epsilon"] * (1 + 1e-9)
        assert [len(each["groups"]) for each in found["secrets"]] == [2, 3, 6]
        assert found["together"] <= 0.06 * (1 + 1e-9)

    @pytest.mark.parametrize(
        ("epsilon", "said"),
        [
            ("sex=0.1", "--epsilon does not name the sensitive column 'race'"),
            ("sex=0.1,race=1,age=1", "'age', which is not a column of --sensitive"),
            ("sex+age=0.1,race=1", "'age', which is not a column of --sensitive"),
            ("sex+sex=0.1,race=1", "'sex+sex' twice"),
            ("sex=-1,race=1", "-1 is not a finite number of at least 0"),
            ("sex=0.1,sex=0.2", "with each name once"),
            ("sex,race", "is not a number"),
            ("sex=0.1,race", "with each name once"),
        ],
    )
    def test_budgets_that_make_no_sense(self, people, capsys, epsilon, said):
        try:
            code = run(*sanitize("--epsilon", epsilon))
        except SystemExit as stopped:  # argparse
            code = stopped.code
        assert code != 0
        error = capsys.readouterr().err
        assert said in error
        assert "tuple" not in error
        assert not Path("out.csv").exists()


class TestSavedMechanisms:
    def test_apply_and_certify(self, people, capsys):
        save = "--save-mechanism", "m.json"
        assert run(*sanitize("--epsilon", "sex=0.02,race=0.05", *save)) == 0
        loaded = PrivacyFunnelTransformer.from_json(Path("m.json").read_text())
        assert loaded.epsilon == {"sex": 0.02, "race": 0.05}
        capsys.readouterr()
        applied = facts(capsys, "apply", "m.json", "people.csv", "again.csv")
        assert applied["epsilon"] == {"sex": 0.02, "race": 0.05}
        certify = "certify", "m.json", "people.csv", "--sensitive"
        found = facts(capsys, *certify, "sex,race")
        assert found["confidence"] == 0.95
        assert [each["protected"] for each in found["secrets"]] == [["sex"], ["race"]]
        assert [each["groups"] for each in found["secrets"]] == [2, 3]
        assert found["secrets"][0]["confidence"] == 0.975
        assert run(*certify, "sex,race") == 0
        assert "at once, with a confidence of 0.95." in capsys.readouterr().out
        assert run(*certify, "sex") != 0
        assert "use --sensitive sex,race." in capsys.readouterr().err

    @pytest.mark.parametrize("epsilon", ["0.02", "sex=0.02"])
    def test_another_column_is_not_certified(self, people, capsys, epsilon):
        design = "--sensitive", "sex", "--columns", "band", *ALONE, "--epsilon", epsilon
        save = "--save-mechanism", "m.json"
        assert run("sanitize", "people.csv", "out.csv", *design, *save) == 0
        capsys.readouterr()
        assert run("certify", "m.json", "people.csv", "--sensitive", "race") == 1
        said = capsys.readouterr().err
        assert "--sensitive race is not what m.json protects: use --sensitive sex." in said
        assert "--names" in said


class TestExplore:
    def test_curve_is_a_factor_times_the_proportions(self, people, capsys):
        asked = "--proportions", "sex=1,race=10", "--epsilons", "0.001,0.01"
        found = facts(capsys, "curve", "people.csv", *SECRETS, *ALONE, *asked)
        budgets = [(each["epsilon sex"], each["epsilon race"]) for each in found["curve"]]
        assert budgets == [(0.001, 0.01), (0.01, 0.1)]
        kept = [each["kept"] for each in found["curve"]]
        assert kept == sorted(kept)
        assert run("curve", "people.csv", *SECRETS, *ALONE, *asked) == 0
        *_, header, row, _ = capsys.readouterr().out.splitlines()
        assert header.split()[:4] == ["epsilon", "leakage", "together", "kept"]
        assert row.startswith("sex=0.001,race=0.01 ")
        assert run("curve", "people.csv", *SECRETS, *ALONE, *asked[:2], "-o", "curve.png") == 0
        assert Path("curve.png").exists()

    def test_choose_finds_one_factor(self, people, capsys):
        asked = "--proportions", "sex=1,race=10", "--keep-utility", "0.7"
        found = facts(capsys, "choose", "people.csv", *SECRETS, *ALONE, *asked)
        assert found["epsilon"]["race"] == pytest.approx(10 * found["epsilon"]["sex"])
        assert found["kept"] == pytest.approx(0.7, abs=1e-3)

    def test_one_secret_with_a_name(self, people, capsys):
        one = "--sensitive", "sex", "--columns", "band"
        assert run("choose", "people.csv", *one, "--proportions", "sex=1") == 0
        assert capsys.readouterr().out.startswith("--epsilon sex=0.")
        assert (
            run("curve", "people.csv", *one, "--proportions", "sex=2", "--epsilons", "0.01") == 0
        )
        assert "\nsex=0.02 " in capsys.readouterr().out
        assert run("sanitize", "people.csv", "out.csv", *one, "--epsilon", "sex=0.02") == 0
        assert "protection of sex" in capsys.readouterr().out

    def test_a_shift_is_about_one_secret(self, people, capsys):
        asked = "--proportions", "sex=1,race=10", "--max-shift", "0.05"
        assert run("choose", "people.csv", *SECRETS, *ALONE, *asked) != 0
        assert "leave out --proportions" in capsys.readouterr().err

    def test_audit_guesses_each_secret(self, people, capsys):
        asked = "--released", "band", "--secrets", "sex,sex+race"
        sensitive = "--sensitive", "sex,race"
        found = facts(capsys, "audit", "people.csv", *sensitive, *asked)
        assert [each["secret"] for each in found["secrets"]] == [["sex"], ["sex", "race"]]
        blind = [each["attacks"][0]["blind"] for each in found["secrets"]]
        assert blind[0] > 0.4 > blind[1]

    @pytest.mark.parametrize(
        ("option", "forgets", "adds"),
        [("--secrets", "sex", "sex,race,age"), ("--proportions", "sex=1", "sex=1,race=2,age=1")],
    )
    def test_the_option_that_is_wrong_is_blamed(self, people, capsys, option, forgets, adds):
        command = "audit" if option == "--secrets" else "curve"
        columns = ["--released", "band"] if option == "--secrets" else ["--columns", "band"]
        for given, column in ((forgets, "race"), (adds, "age")):
            asked = "--sensitive", "sex,race", *columns, option, given
            assert run(command, "people.csv", *asked) == 1
            said = capsys.readouterr().err
            assert f"{option} " in said
            assert repr(column) in said
            assert "--epsilon" not in said
