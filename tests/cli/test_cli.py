"""The command line: what it writes, what it says, and what it never does."""

import gzip
import hashlib
import io
import itertools
import json
import os
import random
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skprivacy import PrivacyFunnelTransformer
from skprivacy.cli import main
from skprivacy.datasets import load_diabetes_bands
from skprivacy.describing.numbers import limit as limit_text
from skprivacy.fitting import learn as encode_and_design
from skprivacy.fitting import tally
from skprivacy.measures import KL

DESIGN = ["--sensitive", "sex", "--columns", "blood_pressure,bmi"]
QUICK = ["--sensitive", "sex", "--columns", "bmi"]  # for the population, which takes longer
ALONE = ["--confidence", "none"]
COLUMNS = ["epsilon", "leakage", "kept", "verdict", "attacker", "outputs"]
ROUND = {"1.000000", "2.000000", "5.000000"}
KEPT = {
    "distortion": "the closeness to the true values of blood_pressure and bmi, beyond a blind guess",
    "mutual_information": "the information in blood_pressure and bmi",
    "guess": "the chance of guessing blood_pressure and bmi, beyond a blind guess",
}


@pytest.fixture
def patients(tmp_path, monkeypatch):
    """Return a table that is also in patients.csv of the folder that we are in."""
    monkeypatch.chdir(tmp_path)
    table = load_diabetes_bands().astype(str)
    table["zip"] = [f"{number:05d}" for number in range(len(table))]
    table.to_csv("patients.csv", index=False)
    return table


def write_many(n_copies):
    """Write many.csv, which has the rows of patients.csv many times."""
    header, _, rows = Path("patients.csv").read_text().partition("\n")
    with open("many.csv", "w") as file:
        file.write(f"{header}\n")
        file.writelines(itertools.repeat(rows, n_copies))


def run(*arguments):
    return main([str(argument) for argument in arguments])


class TestSanitize:
    def test_it_replaces_columns_and_leaves_the_sensitive_one_out(self, patients, capsys):
        arguments = [
            *DESIGN,
            *ALONE,
            "--epsilon",
            0.02,
            "--save-mechanism",
            "m.json",
            "--report",
            "r.html",
            "--remainder",
            "zip",
            "--allow-leaking",
            "--recipient",
            "Ward <3>",
        ]
        assert run("sanitize", "patients.csv", "out.csv", *arguments) == 0
        released = pd.read_csv("out.csv", dtype=str)
        assert list(released) == ["blood_pressure", "bmi", "zip"]
        assert released["zip"].tolist() == patients["zip"].tolist()
        assert (released["bmi"] != patients["bmi"]).any()
        said, warned = capsys.readouterr()
        first, second = said.splitlines()[:2]
        assert first.startswith("out.csv: 442 rows; blood_pressure and bmi replaced, zip copied")
        assert first.endswith("(--utility distortion, --confidence none).")
        assert second.startswith("CAUTION: Moderate protection of sex, in these rows")
        assert "at most epsilon = 0.02 about sex (kl; reached: 0.02)" in said
        assert said.splitlines()[-2:] == ["Wrote m.json.", "Wrote r.html."]
        assert warned.startswith("skprivacy: warning: What the columns zip reveal about the")
        assert "skprivacy: warning: --epsilon holds for these rows only" in warned
        assert warned.count("\n") == 2
        saved = PrivacyFunnelTransformer.from_json(Path("m.json").read_text())
        assert saved.mechanism_.epsilon == 0.02
        page = Path("r.html").read_text()
        assert "Ward &lt;3&gt;" in page
        hashes = [
            hashlib.sha256(Path(name).read_bytes()).hexdigest()
            for name in ("patients.csv", "out.csv")
        ]
        assert all(
            each in page for each in [*hashes, "patients.csv: 442 rows", "out.csv: 442 rows"]
        )
        assert hashes[0] not in said + warned + Path("m.json").read_text()
        assert sorted(os.listdir()) == ["m.json", "out.csv", "patients.csv", "r.html"]

    def test_json_for_machines(self, patients, capsys):
        arguments = [*DESIGN, *ALONE, "--epsilon", 0.02, "--json", "--remainder", "drop"]
        assert run("sanitize", "patients.csv", "out.csv", *arguments) == 0
        facts = json.loads(capsys.readouterr().out)
        funnel = PrivacyFunnelTransformer(
            0.02, sensitive="sex", columns=["blood_pressure", "bmi"], utility="distortion"
        ).fit(patients)
        assert facts["rows"] == 442
        assert facts["objective"] == "distortion"
        assert facts["kept"] == pytest.approx(funnel.mechanism_.normalized_utility)
        (secret,) = facts["secrets"]
        assert (secret["secret"], secret["epsilon"], facts["epsilon"]) == (None, 0.02, 0.02)
        assert secret["max_leakage"] <= 0.02 * (1 + 1e-9) < secret["population_limit"]
        assert (facts["verdict"], facts["confidence"]) == ("moderate", None)
        (few_rows,) = facts["warnings"]
        assert "--confidence 0.95 keeps the budget there too" in few_rows
        assert list(pd.read_csv("out.csv")) == ["blood_pressure", "bmi"]
        fidelity = funnel.fidelity_
        assert facts["fidelity"]["unchanged"] == pytest.approx(fidelity.unchanged)
        assert facts["fidelity"]["columns"]["bmi"]["mean_shift"] is None
        assert facts["fidelity"]["swaps"][0]["share"] == pytest.approx(fidelity.swaps["share"][0])
        priors = funnel.p_sx_.sum(axis=1)
        assert [group["prior"] for group in secret["groups"]] == pytest.approx(priors)
        assert "group" not in secret["groups"][0]

    def test_it_says_what_people_will_see(self, patients, capsys):
        design = [*DESIGN, *ALONE, "--epsilon", 0.02]
        assert run("sanitize", "patients.csv", "out.csv", *design) == 0
        said = capsys.readouterr().out
        assert (
            "of the most exposed group from 46.8% to between 36.9% and 56.9%, at most, if" in said
        )
        assert "Taken at face value, 88.5% of the rows have their true values:" in said
        dash = "\N{EN DASH}"
        assert f"  bmi                 88.5%{dash:>12}{dash:>13}            0.086" in said
        assert "Never released" not in said
        assert "swaps:\n  73% of '105 to 133, 23.2 to 25.7' are" in said
        assert "sex 1" not in said
        assert "sex 2" not in said

    def test_values_that_are_never_released(self, patients, capsys):
        s, x = np.repeat(["a", "b"], 300), np.repeat(["of a", "common"], [60, 540])
        x[:2] = "rare"  # which is not named
        pd.DataFrame({"s": s, "x": x}).to_csv("in.csv", index=False)
        design = ["in.csv", "out.csv", "--sensitive", "s", "--epsilon", 0, *ALONE, "--force"]
        assert run("sanitize", *design) == 0
        assert "\nNever released: 'of a' and 1 more.\n" in capsys.readouterr().out
        assert set(pd.read_csv("out.csv")["x"]) == {"common"}
        assert run("sanitize", *design, "--json") == 0
        (gone,) = json.loads(capsys.readouterr().out)["fidelity"]["never_released"]
        assert gone == {"column": "x", "value": "of a", "rows": pytest.approx(58 / 600)}

    def test_a_terminal_without_our_letters(self, patients, monkeypatch):
        screen = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
        monkeypatch.setattr("sys.stdout", screen)
        assert run("sanitize", "patients.csv", "out.csv", *DESIGN, *ALONE, "--epsilon", 0.02) == 0
        screen.flush()
        assert rb"\u2013" in screen.buffer.getvalue()

    def test_groups_are_named_if_asked_for(self, patients, capsys):
        arguments = [*DESIGN, *ALONE, "--epsilon", 0.02, "--show-groups"]
        assert run("sanitize", "patients.csv", "out.csv", *arguments) == 0
        assert "the probability of 'sex 2' from 46.8% to" in capsys.readouterr().out
        assert run("sanitize", "patients.csv", "o.csv", *arguments, "--json") == 0
        groups = json.loads(capsys.readouterr().out)["secrets"][0]["groups"]
        assert [group["group"] for group in groups] == ["sex 1", "sex 2"]
        assert run("choose", "patients.csv", *DESIGN, *ALONE, "--show-groups") == 0
        assert "the probability of 'sex 2' from 46.8% to" in capsys.readouterr().out

    def test_numbers_are_compared_as_they_were(self, patients, capsys):
        rng = np.random.default_rng(0)
        rows = pd.DataFrame({"s": rng.integers(2, size=900), "n": rng.normal(size=900).round(1)})
        rows.assign(n=rows["n"] + rows["s"]).to_csv("in.csv", index=False)
        design = ["--sensitive", "s", "--columns", "n", "--epsilon", 0.05]
        assert run("sanitize", "in.csv", "out.csv", *design) == 0
        said = capsys.readouterr().out
        assert "\n  n                     " in said
        assert "\n  n, before binning  " in said

    def test_the_options_reach_the_design(self, patients, capsys):
        arguments = [
            "--measure",
            "alpha_lift:alpha=4",
            "--scope",
            "average",
            "--solver",
            "optimal",
        ]
        arguments += ["--utility", "guess", "--max-categories", 3, "--smoothing", 0.5]
        arguments += ["--output", "symbol", "--json", "--epsilon", 0.01, *DESIGN, *ALONE]
        assert run("sanitize", "patients.csv", "out.csv", *arguments) == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["measure"], facts["scope"], facts["solver"]) == (
            "alpha_lift",
            "average",
            "optimal",
        )
        assert facts["symbols"] <= 9
        assert "blood_pressure|bmi" in pd.read_csv("out.csv")

    @pytest.mark.parametrize("output", ["label", "symbol", "posterior"])
    def test_people_get_values_close_to_the_true_ones(self, patients, capsys, output):
        arguments = [*DESIGN, *ALONE, "--epsilon", 0.02, "--output", output]
        assert run("sanitize", "patients.csv", "out.csv", *arguments) == 0
        assert f"It keeps 84.3% of {KEPT['distortion']}; no mech" in capsys.readouterr().out

    @pytest.mark.parametrize("solver", ["algorithm1", "optimal", "randomized_response"])
    def test_every_solver_takes_the_default_utility(self, patients, capsys, solver):
        arguments = [*DESIGN, "--epsilon", 0.02, "--solver", solver, "--json"]
        assert run("sanitize", "patients.csv", "out.csv", *arguments) == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["solver"], facts["objective"]) == (solver, "distortion")

    def test_numbers_are_cut(self, patients, capsys):
        patients["age"] = np.random.default_rng(0).normal(50, 9, len(patients))
        patients.to_csv("patients.csv", index=False)
        arguments = [
            "--sensitive",
            "sex",
            "--columns",
            "age",
            "--epsilon",
            0,
            "--json",
            "--remainder",
            "drop",
        ]
        assert run("sanitize", "patients.csv", "bins.csv", *arguments, "--bins", 3) == 0
        assert json.loads(capsys.readouterr().out)["symbols"] == 3
        edges = ["--edges", "age=40,50"]
        assert run("sanitize", "patients.csv", "edges.csv", *arguments, *edges) == 0
        assert json.loads(capsys.readouterr().out)["symbols"] == 3
        shown = pd.read_csv("edges.csv", dtype=str)["age"].map(float)
        assert shown.isin(patients["age"]).all()
        assert run("sanitize", "patients.csv", "no.csv", *arguments, "--edges", "bmi=1,2") == 1
        assert (
            "--edges names 'bmi', which is neither released nor sensitive"
            in capsys.readouterr().err
        )

    def test_sensitive_numbers_are_not_cut_in_silence(self, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        rng = np.random.default_rng(0)
        code = rng.integers(24, size=2_000)
        parity = np.where(code % 2, "odd", "even")
        pd.DataFrame({"code": code, "x": parity}).to_csv("in.csv", index=False)
        arguments = [
            "in.csv",
            "out.csv",
            "--sensitive",
            "code",
            "--columns",
            "x",
            "--epsilon",
            0.02,
            *ALONE,
        ]
        assert run("sanitize", *arguments) == 0
        warned = capsys.readouterr().err
        assert "the bin of a number is protected, not the number" in warned
        assert "--categorical code. To choose the bins, give --edges" in warned
        assert run("sanitize", *arguments, "--categorical", "code", "--force", "--json") == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["kept"] < 0.25
        assert not any("bins" in warning for warning in facts["warnings"])
        common = ["in.csv", "--sensitive", "code"]
        quick = ["--columns", "x", "--confidence", "none"]
        for command in (["curve", *common, *quick, "--epsilons", "0.1"],
                        ["choose", *common, *quick],
                        ["audit", *common, "--released", "x"]):  # fmt: skip
            assert run(*command) == 0
            assert "the bin of a number is protected" in capsys.readouterr().err
            assert run(*command, "--categorical", "code") == 0
            assert "bins" not in capsys.readouterr().err

    def test_the_budget_holds_in_the_file(self, patients, capsys):
        rows = pd.concat([patients] * 200)[["sex", "bmi"]]
        rows.to_csv("many.csv", index=False)
        arguments = ["--sensitive", "sex", "--columns", "bmi", "--epsilon", 0.005]
        assert run("sanitize", "many.csv", "out.csv", *arguments) == 0
        released = pd.read_csv("out.csv")["bmi"]
        joint = pd.crosstab(rows["sex"].to_numpy(), released).to_numpy()
        posterior, prior = joint / joint.sum(axis=0), joint.sum(axis=1) / joint.sum()
        leakage = (posterior * np.log(posterior / prior[:, None])).sum(axis=0)
        assert leakage.max() < 0.005 + 6 * np.sqrt(2 * 0.005 / joint.sum(axis=0).min())
        raw = pd.crosstab(rows["sex"], rows["bmi"]).to_numpy()
        raw = raw / raw.sum(axis=0)
        assert (raw * np.log(raw / prior[:, None])).sum(axis=0).max() > 0.05


class TestConfidence:
    """Budgets that hold for the population, unless they are asked for the rows alone."""

    design = ("--sensitive", "sex", "--columns", "bmi", "--epsilon", 0.05)

    def test_what_is_said_of_the_rows_and_of_the_population(self, patients, capsys):
        save = ["--save-mechanism", "m.json"]
        assert run("sanitize", "patients.csv", "out.csv", *self.design, *save) == 0
        said, warned = capsys.readouterr()
        saved = PrivacyFunnelTransformer.from_json(Path("m.json").read_text()).mechanism_
        assert (saved.confidence, saved.n_samples) == (0.95, 442)
        mechanism = self.fitted(patients).mechanism_
        limit = mechanism.population_limit.max_leakage
        assert mechanism.max_leakage < limit <= 0.05
        assert (
            f"with 95% confidence, from 442 rows (kl; limit: {limit_text(limit)}; in these rows: "
            f"{mechanism.max_leakage:.4g})" in said
        )
        assert "in the population too (95% confidence)" in said
        assert "--confidence" not in warned
        assert run("apply", "m.json", "patients.csv", "again.csv") == 0
        *_, last = capsys.readouterr().out.splitlines()
        assert "with 95% confidence, from 442 rows (kl; as its file claims)" in last

    def fitted(self, patients, **options):
        options = {"utility": "distortion", "confidence": 0.95, **options}
        funnel = PrivacyFunnelTransformer(0.05, sensitive="sex", columns=["bmi"], **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return funnel.fit(patients)

    def test_for_machines(self, patients, capsys):
        more = ["--confidence", 0.8, "--scope", "average", "--json"]
        assert run("sanitize", "patients.csv", "out.csv", *self.design, *more) == 0
        facts = json.loads(capsys.readouterr().out)
        mechanism = self.fitted(patients, confidence=0.8, scope="average").mechanism_
        assert (facts["confidence"], facts["n_samples"]) == (0.8, 442)
        (secret,) = facts["secrets"]
        assert secret["population_limit"] == mechanism.population_limit.average_leakage
        assert secret["average_leakage"] < secret["population_limit"] <= 0.05

    def test_on_average(self, patients, capsys):
        assert run("sanitize", "patients.csv", "o.csv", *self.design, "--scope", "average") == 0
        said = capsys.readouterr().out
        assert "released values reveal at most epsilon = 0.05 about sex on average" in said

    def test_a_mechanism_without_one_claims_nothing(self, patients, capsys):
        save = ["--save-mechanism", "m.json"]
        assert run("sanitize", "patients.csv", "out.csv", *self.design, *ALONE, *save) == 0
        capsys.readouterr()
        assert run("apply", "m.json", "patients.csv", "again.csv", "--json") == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["confidence"], facts["n_samples"]) == (None, None)
        assert run("apply", "m.json", "patients.csv", "more.csv") == 0
        assert capsys.readouterr().out.count("\n") == 1

    def test_a_curve_is_about_the_population(self, patients, capsys):
        curve = ["curve", "patients.csv", *DESIGN, "--epsilons", "0.05,0.1"]
        assert run(*curve) == 0
        about, _, attacker, _, header, first, _ = capsys.readouterr().out.splitlines()
        assert "a blind guess is right 53.2% of the time" in attacker
        assert "with 95% confidence" in about
        assert header.split() == COLUMNS
        epsilon, limit = map(float, first.split()[:2])
        assert run(*curve, "--json") == 0
        figures = json.loads(capsys.readouterr().out)["curve"][0]
        assert figures["leakage"] < figures["population_limit"] <= limit <= epsilon == 0.05

    @pytest.mark.parametrize("aim", [["--keep-utility", 0.9], ["--max-shift", 0.1]])
    def test_choose_says_what_few_rows_cost(self, patients, capsys, aim):
        choose = ["choose", "patients.csv", "--sensitive", "sex", "--columns", "bmi", *aim]
        assert run(*choose) == 0
        said = capsys.readouterr().out
        assert "in the population too (95% confidence)" in said
        found = re.search(
            r"^For these rows alone \(--confidence none\), the same budget would keep (\S+)%; about "
            r"([\d,]+) rows like these would keep (\d+)%\.$",
            said,
            re.MULTILINE,
        )
        alone, enough, kept = (float(text.replace(",", "")) for text in found.groups())
        assert run(*choose, "--json") == 0
        facts = json.loads(capsys.readouterr().out)
        assert 100 * facts["kept"] < kept < alone
        assert enough > 442
        assert facts["more_rows"] == {"rows": enough, "kept": pytest.approx(kept / 100)}
        assert facts["kept_for_rows_alone"] == pytest.approx(alone / 100, abs=1e-3)
        assert run(*choose, *ALONE, "--json") == 0
        facts = json.loads(capsys.readouterr().out)
        assert (facts["more_rows"], facts["kept_for_rows_alone"]) == (None, None)
        assert any("holds for these rows only" in warning for warning in facts["warnings"])

    def test_many_rows_cost_next_to_nothing(self, patients, capsys):
        write_many(500)
        design = ["--sensitive", "sex", "--columns", "bmi", "--max-shift", 0.1]
        assert run("choose", "many.csv", *design) == 0
        assert "More rows would hardly keep more." in capsys.readouterr().out

    def test_a_large_table_is_not_designed_for_again_and_again(self, patients, capsys):
        pairs = patients["zip"].where(np.arange(len(patients)) % 2 == 0).ffill()
        patients.assign(zip=pairs).to_csv("patients.csv", index=False)
        few = ["--sensitive", "sex", "--columns", "zip", "--max-categories", 40, "--json"]
        assert run("choose", "patients.csv", *few, "--max-shift", 0.3) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["more_rows"] is None
        assert facts["kept_for_rows_alone"] >= facts["kept"]

    def test_nothing_can_be_shown_to_leak_nothing(self, patients, capsys):
        design = ["--sensitive", "sex", "--columns", "bmi", "--epsilon", 0]
        assert run("sanitize", "patients.csv", "out.csv", *design) == 0
        said, warned = capsys.readouterr()
        assert "Use a larger --epsilon, or --confidence none." in warned
        assert "(kl; limit: 0; in these rows: 0)" in said

    def test_the_demo_for_the_rows_alone(self, patients, capsys):
        assert run("demo", "here", *ALONE) == 0
        said, warned = capsys.readouterr()
        assert "warning: --epsilon holds for these rows only" in warned
        assert "Without --confidence none, it holds for the population too" in " ".join(
            said.split()
        )
        assert said.endswith("--epsilon 0.02 --confidence none\n")
        assert "CAUTION: Moderate protection of sex, in these rows only" in " ".join(said.split())


class TestRemainder:
    """What is copied beside the release: nothing that was not asked for."""

    @pytest.fixture
    def beside(self, patients):
        rng = np.random.default_rng(0)
        patients["club"] = patients["sex"].where(rng.random(442) < 0.9, "sex 1")
        patients["coin"] = rng.choice(["heads", "tails"], 442)
        patients.to_csv("patients.csv", index=False)
        return patients

    design = ("--sensitive", "sex", "--columns", "bmi", "--epsilon", 0.02)

    def sanitize(self, *arguments):
        return run("sanitize", "patients.csv", "out.csv", *self.design, "--force", *arguments)

    def test_nothing_is_copied_unless_it_is_asked_for(self, beside, capsys):
        assert self.sanitize() == 0
        assert list(pd.read_csv("out.csv")) == ["bmi"]
        assert self.sanitize("--remainder", "coin,zip") == 1  # each row has a zip of its own
        assert "zip reveal about the sensitive columns cannot be judged" in capsys.readouterr().err
        assert self.sanitize("--remainder", "coin,zip", "--allow-leaking") == 0
        assert list(pd.read_csv("out.csv")) == ["bmi", "zip", "coin"]
        assert self.sanitize("--remainder", "sex") == 1
        assert "'sex' is both sensitive and in --remainder" in capsys.readouterr().err

    def test_a_column_that_alone_exceeds_the_budget_is_refused(self, beside, capsys):
        assert self.sanitize("--remainder", "coin,club") == 1
        said = capsys.readouterr().err
        assert "reveal more about the sensitive columns on their own than --epsilon 0.02 " in said
        assert " allows: club (0." in said
        assert "--allow-leaking copies them anyway" in said
        assert said.count("\n") == 1
        assert "out.csv" not in os.listdir()
        assert self.sanitize("--remainder", "passthrough", "--allow-leaking") == 0
        warning = capsys.readouterr().err.splitlines()
        assert [line.split()[0] for line in warning[1:4]] == ["column", "blood_pressure", "club"]
        assert not any("{" in line for line in warning)

    def test_what_the_table_alone_tells_is_told_before_the_design(
        self, beside, capsys, monkeypatch
    ):
        monkeypatch.setattr(encode_and_design, "design_task", None)
        assert self.sanitize("--remainder", "club") == 1
        assert "allows: club (0." in capsys.readouterr().err
        assert self.sanitize("--beside", "zip") == 1
        assert "'zip', in --beside: 442 values" in capsys.readouterr().err

    def test_ids_are_copied_only_if_they_are_named(self, beside):
        run("key", "secret.key")
        keyed = ("--record-ids", "zip", "--key-file", "secret.key", "--allow-leaking")
        assert self.sanitize(*keyed, "--remainder", "passthrough") == 0
        assert list(pd.read_csv("out.csv")) == ["blood_pressure", "bmi", "club", "coin"]
        assert self.sanitize(*keyed, "--remainder", "zip") == 0
        assert list(pd.read_csv("out.csv")) == ["bmi", "zip"]

    def test_a_saved_mechanism_copies_what_it_lists_and_warns_alike(self, beside, capsys):
        save = ("--save-mechanism", "m.json", "--allow-leaking")
        assert self.sanitize("--remainder", "coin,club", *save) == 0
        capsys.readouterr()

        def apply(*arguments):
            return run("apply", "m.json", "patients.csv", "new.csv", "--force", *arguments)

        assert apply() == 0
        assert list(pd.read_csv("new.csv")) == ["bmi"]
        assert apply("--remainder", "coin") == 0
        assert list(pd.read_csv("new.csv")) == ["bmi", "coin"]
        assert apply("--remainder", "passthrough") == 1
        assert "club (0." in capsys.readouterr().err
        assert apply("--remainder", "passthrough", "--allow-leaking") == 0
        assert list(pd.read_csv("new.csv")) == ["bmi", "club", "coin"]
        assert "\n  club" in capsys.readouterr().err
        assert apply("--remainder", "blood_pressure") == 1
        assert "does not list the column 'blood_pressure'" in capsys.readouterr().err


class TestApply:
    @pytest.fixture(autouse=True)
    def saved(self, patients, capsys):
        arguments = ["--sensitive", "sex", "--columns", "bmi", "--epsilon", 0.02]
        arguments += ["--remainder", "zip", "--allow-leaking", "--save-mechanism", "m.json"]
        run("sanitize", "patients.csv", "out.csv", *arguments)
        capsys.readouterr()

    def test_it_needs_no_sensitive_column_and_lets_none_through(self, patients, capsys):
        patients.drop(columns="sex").to_csv("new.csv", index=False)
        assert run("apply", "m.json", "new.csv", "new_out.csv") == 0
        assert run("apply", "m.json", "patients.csv", "again.csv") == 0
        for name in ("new_out.csv", "again.csv"):
            assert list(pd.read_csv(name)) == ["bmi"]
        said = capsys.readouterr().out
        assert "new_out.csv: 442 rows; bmi replaced, all other columns left out." in said
        assert "sex 1" not in Path("m.json").read_text()

    def test_unknown_values_are_an_error_unless_told_otherwise(self, patients, capsys):
        patients.loc[7, "bmi"] = "unheard of"
        patients.to_csv("new.csv", index=False)
        assert run("apply", "m.json", "new.csv", "new_out.csv") == 1
        error = capsys.readouterr().err
        assert "unknown values in column 'bmi' during transform: 'unheard of'" in error
        assert "--handle-unknown resample" in error
        assert "new_out.csv" not in os.listdir()
        assert (
            run("apply", "m.json", "new.csv", "new_out.csv", "--handle-unknown", "resample") == 0
        )
        assert capsys.readouterr().err.count("Values that fit did not see") == 1
        assert len(pd.read_csv("new_out.csv")) == 442

    def test_a_mechanism_that_was_fitted_in_python(self, patients):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(
            {
                "s": rng.integers(2, size=400).astype(bool),
                "n": rng.normal(size=400),
                "flag": rng.random(400) < 0.4,
                "day": pd.Timestamp("2026-01-01")
                + pd.to_timedelta(rng.integers(9, size=400), unit="D"),
            }
        )
        funnel = PrivacyFunnelTransformer(
            0.001, sensitive="s", columns=["n", "flag", "day"], n_bins=3
        )
        funnel.fit(frame)
        Path("python.json").write_text(funnel.to_json())
        frame.drop(columns="s").to_csv("frame.csv", index=False)
        frame.to_parquet("frame.parquet")
        for name in ("frame.csv", "frame.parquet"):
            assert run("apply", "python.json", name, f"out_of_{name}") == 0
        released = pd.read_csv("out_of_frame.csv", parse_dates=["day"], dtype={"n": str})
        assert released["flag"].dtype == bool
        assert set(released["n"].map(float)) <= set(frame["n"])
        assert set(released["day"]) <= set(frame["day"])
        assert (
            pd.read_parquet("out_of_frame.parquet").dtypes.to_dict()
            == frame.dtypes.drop("s").to_dict()
        )

    def test_what_cannot_be_applied(self, patients, capsys):
        Path("broken.json").write_text("{}")
        patients.drop(columns="bmi").to_csv("less.csv", index=False)
        for arguments, text in [
            (("broken.json", "patients.csv"), "schema"),
            (("none.json", "patients.csv"), "none.json: No such file or directory"),
            (
                ("m.json", "less.csv"),
                "m.json needs the column 'bmi', which less.csv does not have. Nor does it",
            ),
        ]:
            assert run("apply", *arguments, "x.csv") == 1
            error = capsys.readouterr().err
            assert text in error
            assert error.count("\n") == 1
        Path("m.csv").write_text(Path("m.json").read_text())
        assert run("apply", "m.csv", "patients.csv", "m.csv", "--force") == 1
        assert "is the mechanism itself" in capsys.readouterr().err

    def test_an_empty_table_stays_one(self, patients):
        patients.iloc[:0].to_csv("empty.csv", index=False)
        patients.iloc[:0].to_parquet("empty.parquet")
        arguments = ["--remainder", "zip", "--allow-leaking"]
        assert run("apply", "m.json", "empty.csv", "none.csv", *arguments) == 0
        assert Path("none.csv").read_text() == "bmi,zip\n"
        assert run("apply", "m.json", "empty.parquet", "none.parquet", *arguments) == 0
        assert pd.read_parquet("none.parquet").shape == (0, 2)


class TestOtherCommands:
    @pytest.mark.parametrize(
        "design",
        [[*DESIGN, *ALONE], QUICK, pytest.param(DESIGN, marks=pytest.mark.slow)],
        ids=["rows", "population", "population of two columns"],
    )
    def test_choose_finds_the_budget_that_curve_and_sanitize_confirm(
        self, patients, capsys, design
    ):
        assert run("choose", "patients.csv", *design, "--keep-utility", 0.9, "--json") == 0
        chosen = json.loads(capsys.readouterr().out)
        assert 0.9 - 1e-9 <= chosen["kept"] < 0.91
        epsilons = f"0,{chosen['epsilon']}"
        assert run("curve", "patients.csv", *design, "--epsilons", epsilons, "--json") == 0
        curve = json.loads(capsys.readouterr().out)["curve"]
        assert curve[1]["kept"] == pytest.approx(chosen["kept"])
        assert curve[0]["leakage"] < 1e-9
        assert chosen["objective"] == curve[0]["objective"] == "distortion"
        arguments = [*design, "--epsilon", chosen["epsilon"], "--json"]
        assert run("sanitize", "patients.csv", "out.csv", *arguments) == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["kept"] == pytest.approx(chosen["kept"])

    @pytest.mark.parametrize(
        ("utility", "epsilon", "kept"),
        [
            ("distortion", 0.04725, "80.9%"),
            ("mutual_information", 0.01626, "88.4%"),
            ("guess", 0.03608, "83.7%"),
        ],
    )
    def test_they_say_what_is_kept(self, patients, capsys, utility, epsilon, kept):
        chosen = () if utility == "distortion" else ("--utility", utility)
        assert run("choose", "patients.csv", *DESIGN, *ALONE, *chosen) == 0
        said = f"--epsilon {epsilon} keeps 90.0% of {KEPT[utility]}; asked for: 90.0%.\n"
        assert capsys.readouterr().out.startswith(said)
        assert run("curve", "patients.csv", *DESIGN, *ALONE, "--epsilons", "0.01", *chosen) == 0
        said = capsys.readouterr().out
        first, second, _, empty, header, row = said.splitlines()
        assert "in these rows; in the population" in first
        assert second == f'"kept" is the share of {KEPT[utility]}.'
        assert (empty, header.split()) == ("", COLUMNS)
        assert row.split()[:3] == ["0.01", "0.01", kept]
        assert len(row) == len(header)

    def test_a_target_is_a_utility(self, patients, capsys):
        design = ["patients.csv", "--sensitive", "sex", "--columns", "bmi", *ALONE, "--json"]
        curve = ["curve", *design, "--epsilons", "0.01"]
        assert run(*curve, "--utility", "target", "--target", "blood_pressure") == 0
        assert json.loads(capsys.readouterr().out)["curve"][0]["objective"] == "target"
        assert run(*curve, "--utility", "target") == 1
        assert "--utility target needs --target" in capsys.readouterr().err
        assert run(*curve, "--utility", "guess", "--target", "blood_pressure") == 1
        assert ": leave out --utility guess." in capsys.readouterr().err

    def test_solvers_are_told_their_own_options_only(self, patients, capsys):
        curve = ["curve", "patients.csv", *DESIGN, *ALONE, "--epsilons", "0.01"]
        assert run(*curve, "--solver-options", "tol=0.01,max_time=60") == 0
        assert run(*curve, "--solver-options", "scope=average") == 1
        assert "unexpected option 'scope'" in capsys.readouterr().err
        assert run(*curve, "--solver-options", "colour=red") == 1
        assert "unexpected option 'colour'" in capsys.readouterr().err
        with pytest.raises(SystemExit):
            run(*curve, "--solver-options", "tol")

    def test_distances_between_numbers_are_those_of_the_fit(self, patients, capsys):
        rng = np.random.default_rng(0)
        rows = {"s": rng.integers(2, size=500), "n": rng.integers(6, size=500)}
        pd.DataFrame(rows).assign(n=rows["n"] + rows["s"]).to_csv("in.csv", index=False)
        design = ["--sensitive", "s", "--columns", "n", "--smoothing", 1, "--json", *ALONE]
        assert run("curve", "in.csv", *design, "--epsilons", "0.01") == 0
        (found,) = json.loads(capsys.readouterr().out)["curve"]
        assert run("sanitize", "in.csv", "out.csv", *design, "--epsilon", 0.01) == 0
        facts = json.loads(capsys.readouterr().out)
        assert found["kept"] == pytest.approx(facts["kept"])

    def test_the_largest_epsilon_that_moves_no_group_too_far(self, patients, capsys):
        shift = ["choose", "patients.csv", *DESIGN, *ALONE, "--max-shift", 0.05]
        assert run(*shift) == 0
        said = capsys.readouterr().out
        assert said.startswith("With --epsilon 0.005007, no released value moves the probability")
        assert f"It keeps 77.9% of {KEPT['distortion']}" in said
        assert "from 46.8% to between 41.8% and 51.9%, at most" in said
        assert run(*shift, "--json") == 0
        facts = json.loads(capsys.readouterr().out)
        assert 0.005007 <= facts["epsilon"] < 0.005008  # what is shown is rounded down
        assert facts["kept"] == pytest.approx(0.7785, abs=1e-4)
        funnel = PrivacyFunnelTransformer(
            facts["epsilon"], sensitive="sex", columns=["blood_pressure", "bmi"]
        ).fit(patients)
        ranges = funnel.mechanism_.posterior_ranges()
        moved = ranges.filter(like="reached").sub(ranges["prior"], axis=0).abs()
        assert moved.max(axis=None) == pytest.approx(0.05, abs=1e-6)

    def test_where_no_release_moves_a_group_that_far_any_epsilon_will_do(self, patients, capsys):
        patients.assign(sex="one").to_csv("one.csv", index=False)
        for file, shift, points, times in (
            ("patients.csv", 0.6, 60, 5),
            ("one.csv", 0.125, 12.5, 3),
        ):
            assert run("choose", file, *QUICK, "--max-shift", shift) == 0
            assert capsys.readouterr().out == (
                f"Any epsilon will do: no released value can move the probability of a group of "
                f"sex by more than {points} points, or to more than {times} times what it was.\n"
            )
            assert run("choose", file, *QUICK, "--max-shift", shift, "--json") == 0
            facts = json.loads(capsys.readouterr().out)
            assert (facts["epsilon"], facts["kept"]) == (None, 1)
        assert run("choose", "patients.csv", *QUICK, "--max-shift", 0) == 0
        assert "With --epsilon 0, no released value" in capsys.readouterr().out
        assert run("choose", "patients.csv", *QUICK, "--max-shift", 0.05, "--measure", "l1") == 0
        assert "With --epsilon 0.1, no released value" in capsys.readouterr().out

    def test_a_factor_beside_the_shift(self, patients, capsys):
        rare = patients.assign(sex=np.where(np.arange(len(patients)) % 50 == 0, "a", "b"))
        rare.to_csv("rare.csv", index=False)
        found = {}
        for factor in (None, 2, 3, "inf"):
            option = [] if factor is None else ["--max-factor", factor]
            shift = ["choose", "rare.csv", *QUICK, *ALONE, "--max-shift", 0.05, *option]
            assert run(*shift) == 0
            said = capsys.readouterr().out
            assert ("or to more than" in said) == (factor != "inf")
            assert run(*shift, "--json") == 0
            found[factor] = json.loads(capsys.readouterr().out)
        assert found[None]["epsilon"] == found[2]["epsilon"]
        assert found[2]["epsilon"] < found[3]["epsilon"] < found["inf"]["epsilon"]
        assert found[3]["secrets"][0]["factor"] == pytest.approx(3, abs=1e-6)
        assert run("choose", "rare.csv", *QUICK, "--max-factor", 2) == 1
        assert "--max-factor needs --max-shift" in capsys.readouterr().err

    def test_what_is_printed_keeps_what_was_asked_for(self, patients, capsys):
        for share in (0.3, 0.45, 0.6, 0.75):
            asked = *QUICK, *ALONE, "--utility", "mutual_information"
            assert run("choose", "patients.csv", *asked, "--keep-utility", share) == 0
            epsilon = capsys.readouterr().out.split()[1]
            assert run("curve", "patients.csv", *asked, "--epsilons", epsilon, "--json") == 0
            (found,) = json.loads(capsys.readouterr().out)["curve"]
            assert found["kept"] >= share - 1e-9

    def test_what_a_shift_cannot_be_had_for(self, patients, capsys, monkeypatch):
        shift = ["choose", "patients.csv", *DESIGN, "--max-shift", 0.05]
        assert run(*shift, "--scope", "average") == 1
        assert capsys.readouterr().err == (
            "skprivacy: error: --max-shift needs --scope per_output: a budget on average bounds no "
            "single value.\n"
        )
        monkeypatch.setattr(KL, "is_monotone", False)
        assert run(*shift) == 1
        assert capsys.readouterr().err == (
            "skprivacy: error: --measure must be one for which fusing groups adds no leakage "
            "(is_monotone). Got KL() instead.\n"
        )
        for option, text in (
            (["--keep-utility", 0.9], "--keep-utility: not allowed with argument --max-shift"),
            (["--max-shift", 5], "--max-shift: 5 is not a share between 0 and 1"),
            (["--max-factor", 0.5], "--max-factor: 0.5 is not a number of at least 1"),
        ):
            with pytest.raises(SystemExit) as exited:
                run(*shift, *option)
            assert exited.value.code == 2
            assert text in capsys.readouterr().err

    def test_curves(self, patients, capsys):
        assert run("curve", "patients.csv", *DESIGN, *ALONE, "-o", "curve.png") == 0
        assert Path("curve.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert run("curve", "patients.csv", *QUICK, "-o", "curve.csv") == 0
        table = pd.read_csv("curve.csv")
        assert 4 <= len(table) <= 8
        assert all(f"{epsilon:e}"[:8] in ROUND for epsilon in table["epsilon"])
        assert (np.diff(table["attacker"]) > -0.01).all()
        assert (np.diff(table["kept"]) > -1e-9).all()
        assert table["kept"].iloc[-1] == pytest.approx(1)
        assert (table["leakage"] < table["population_limit"]).all()
        assert (table["population_limit"] <= table["epsilon"] * (1 + 1e-9)).all()
        assert set(table["confidence"]) == {0.95}
        assert run("curve", "patients.csv", *DESIGN, *ALONE, "-o", "alone.csv") == 0
        alone = pd.read_csv("alone.csv")
        assert len(alone) == 8
        assert alone["population_limit"].isna().all()
        assert run("curve", "patients.csv", *DESIGN, "-o", "curve.txt") == 1
        assert ".csv, .png, .svg or .pdf" in capsys.readouterr().err
        assert run("curve", "patients.csv", *DESIGN, "-o", "patients.csv", "--force") == 1
        assert "is the table itself" in capsys.readouterr().err

    def test_an_audit_of_two_files(self, patients, capsys):
        run("sanitize", "patients.csv", "out.csv", *DESIGN, "--epsilon", 0, "--remainder", "drop")
        capsys.readouterr()
        assert (
            run("audit", "patients.csv", "--sensitive", "sex", "--released", "out.csv", "--json")
            == 0
        )
        (found,) = json.loads(capsys.readouterr().out)["secrets"]
        attacks = pd.DataFrame(found["attacks"])
        best = attacks.groupby("attacked")["advantage"].max()
        assert best["raw"] > 0.05 > best["released"]
        is_below_zero = bool(round(attacks["advantage"].min(), 3) < 0)
        assert any("is noise" in note for note in found["notes"]) == is_below_zero
        assert run("audit", "patients.csv", "--sensitive", "sex", "--released", "bmi") == 0
        text = capsys.readouterr().out
        assert "442 rows, guessing sex; a blind guess is right 53.2% of the time." in text
        gains = r"released .* \d\d\.\d%  [+-]\d\.\d points  [+-]\d+\.\d to [+-]\d+\.\d points$"
        assert len(re.findall(gains, text, re.MULTILINE)) == 2

    def test_an_audit_in_another_encoding(self, patients, capsys):
        options = ["--delimiter", ";", "--encoding", "latin-1"]
        patients["bmi"] += "ä"
        patients.to_csv("in.csv", index=False, sep=";", encoding="latin-1")
        design = ["--sensitive", "sex", "--columns", "bmi", "--epsilon", 0, "--remainder", "drop"]
        for out in ("out.csv", "out.tsv", "out.csv.gz"):
            assert run("sanitize", "in.csv", out, *design, *options) == 0
            assert run("audit", "in.csv", "--sensitive", "sex", "--released", out, *options) == 0

    def test_copied_columns_are_told_from_replaced_ones(self, patients, capsys):
        patients.drop(columns="zip").to_csv("patients.csv", index=False)
        arguments = ["--sensitive", "sex", "--columns", "bmi", "--epsilon", 0]
        arguments += ["--remainder", "passthrough", "--allow-leaking"]
        assert run("sanitize", "patients.csv", "out.csv", *arguments) == 0
        assert run("audit", "patients.csv", "--sensitive", "sex", "--released", "out.csv") == 0
        assert "remainder: blood_pressure" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (("--sensitive", "sx", "--released", "bmi"), "does not have: did you mean 'sex'?"),
            (
                ("--sensitive", "sex", "--released", "bmx"),
                "is no file, and names the column 'bmx'",
            ),
            (("--sensitive", "sex", "--released", "sex,bmi"), "the sensitive column 'sex' itself"),
            (("--sensitive", "sex", "--released", "short.csv"), "short.csv has 10 rows and"),
            (("--sensitive", "sex", "--released", "same.csv"), "holds the sensitive column 'sex'"),
        ],
    )
    def test_what_cannot_be_audited(self, patients, capsys, arguments, text):
        patients[:10].to_csv("short.csv", index=False)
        patients.to_csv("same.csv", index=False)
        assert run("audit", "patients.csv", *arguments) == 1
        assert text in capsys.readouterr().err

    def test_the_demo_never_writes_over_an_older_one(self, patients, capsys):
        os.mkdir("skprivacy-demo")
        assert run("demo", *ALONE, "--json") == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["folder"] == "skprivacy-demo-2"
        assert sorted(os.listdir("skprivacy-demo-2")) == facts["files"]
        released = pd.read_csv("skprivacy-demo-2/released.csv")
        assert list(released.select_dtypes("number")) == ["blood_pressure", "bmi"]
        assert released.nunique().tolist() == [3, 3]
        kept = {row["release"]: row["kept"] for row in facts["table"]}
        arguments = [*DESIGN, *ALONE, "--bins", 3, "--epsilon", 0.05, "--json"]
        assert run("sanitize", "skprivacy-demo-2/patients.csv", "out.csv", *arguments) == 0
        own = json.loads(capsys.readouterr().out)["kept"]
        assert own == pytest.approx(kept["epsilon = 0.05"])
        assert run("demo", "skprivacy-demo-2") == 1
        assert "already exists" in capsys.readouterr().err


class TestCertify:
    @pytest.fixture
    def halves(self, patients):
        """Write m.json, designed with half of the patients, and held_out.csv, the other half."""
        patients[::2].to_csv("design.csv", index=False)
        patients[1::2].to_csv("held_out.csv", index=False)
        design = [*DESIGN, "--epsilon", 0.02, "--save-mechanism", "m.json"]
        assert run("sanitize", "design.csv", "out.csv", *design) == 0
        return patients[1::2]

    @pytest.fixture
    def saved(self, halves, capsys):
        capsys.readouterr()
        return PrivacyFunnelTransformer.from_json(Path("m.json").read_text())

    def test_it_is_that_of_the_transformer(self, halves, saved, capsys):
        assert run("certify", "m.json", "held_out.csv", "--sensitive", "sex", "--json") == 0
        (facts,) = json.loads(capsys.readouterr().out)["secrets"]
        expected = saved.certify(halves)
        for name in ("max_leakage", "average_leakage"):
            for figure in (name, f"{name}_bound"):
                assert facts[figure] == pytest.approx(getattr(expected, figure))
        assert (facts["rows"], facts["groups"], facts["holds"]) == (221, 2, False)

    def test_what_it_says(self, halves, saved, capsys):
        more = ["--measure", "parity", "--confidence", 0.9, "--settings", 2]
        assert run("certify", "m.json", "held_out.csv", "--sensitive", "sex", *more) == 0
        first, worst, average = capsys.readouterr().out.splitlines()
        assert first == "221 rows with 2 groups of sex; parity, confidence 0.9."
        expected = saved.certify(halves, measure="parity", confidence=0.9, n_settings=2)
        assert f"at most {limit_text(expected.max_leakage_bound)} in the population" in worst
        assert f"at most {limit_text(expected.average_leakage_bound)} in the popul" in average
        assert run("certify", "m.json", "held_out.csv", "--sensitive", "sex") == 0
        *_, last = capsys.readouterr().out.splitlines()
        budget = "The budget, epsilon = 0.02 for every released value, is not certified by these"
        assert last == f"{budget} rows."
        lip = ["--sensitive", "sex", "--measure", "lip"]
        assert run("certify", "m.json", "held_out.csv", *lip) == 0
        assert "average" not in capsys.readouterr().out

    def test_a_budget_that_is_certified(self, patients, capsys):
        write_many(50)
        arguments = ["--sensitive", "sex", "--columns", "bmi", "--epsilon", 0.5]
        design = [*arguments, "--measure", "parity", "--scope", "average"]
        assert run("sanitize", "patients.csv", "o.csv", *design, "--save-mechanism", "m.json") == 0
        assert run("certify", "m.json", "many.csv", "--sensitive", "sex") == 0
        *_, last = capsys.readouterr().out.splitlines()
        assert last == "The budget, epsilon = 0.5 for their average, is certified."

    def test_missing_values_are_a_group_in_any_kind_of_file(self, halves, saved, capsys):
        rows = halves.assign(sex=halves["sex"].where(np.arange(221) % 4 > 0))
        rows.to_csv("gaps.csv", index=False)
        rows.to_parquet("gaps.parquet", row_group_size=50)
        expected = saved.certify(rows)
        assert expected.n_groups == 3
        for name in ("gaps.csv", "gaps.parquet"):
            assert run("certify", "m.json", name, "--sensitive", "sex", "--json") == 0
            (facts,) = json.loads(capsys.readouterr().out)["secrets"]
            assert facts["groups"] == 3
            assert facts["max_leakage_bound"] == pytest.approx(expected.max_leakage_bound)

    def test_several_sensitive_columns_are_taken_jointly(self, halves, capsys):
        rows = halves.assign(other=np.where(np.arange(221) % 3 > 0, "a", "b"))
        rows.to_csv("more.csv", index=False)
        asked = ["--sensitive", "sex,other", *QUICK[2:], *ALONE, "--epsilon", 0.02]
        assert run("sanitize", "more.csv", "both.csv", *asked, "--save-mechanism", "b.json") == 0
        capsys.readouterr()
        saved = PrivacyFunnelTransformer.from_json(Path("b.json").read_text())
        assert run("certify", "b.json", "more.csv", "--sensitive", "other,sex", "--json") == 0
        (facts,) = json.loads(capsys.readouterr().out)["secrets"]
        expected = saved.certify(rows, sensitive_features=rows[["sex", "other"]])
        assert facts["groups"] == expected.n_groups == 4
        assert facts["max_leakage_bound"] == pytest.approx(expected.max_leakage_bound)

    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (
                ["held_out.csv", "--sensitive", "bmi"],
                "--sensitive bmi is not what m.json protects",
            ),
            (["held_out.csv", "--sensitive", "age"], "--sensitive names the column 'age'"),
            (["held_out.csv", "--sensitive", "zip"], "use --sensitive sex."),
            (["held_out.csv", "--sensitive", "sex,zip"], "use --sensitive sex."),
            (
                ["many.csv", "--sensitive", "sex"],
                "more than 8 groups of the sensitive columns",
            ),
            (["held_out.csv", "--sensitive", "sex", "--confidence", 1], "--confidence must be"),
            (["none.csv", "--sensitive", "sex"], "none.csv has no rows."),
            (
                ["one.csv", "--sensitive", "sex"],
                "The rows have a single group of the sensitive columns",
            ),
        ],
    )
    def test_what_cannot_be_certified(self, halves, capsys, arguments, text):
        halves[:0].to_csv("none.csv", index=False)
        halves.assign(sex=halves["zip"]).to_csv("many.csv", index=False)
        halves[halves["sex"] == halves["sex"].iloc[0]].to_csv("one.csv", index=False)
        capsys.readouterr()
        assert run("certify", "m.json", *arguments) == 1
        said = capsys.readouterr().err
        assert text in said
        assert said.count("\n") == 1


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "text"),
        [
            (
                ["patients.csv", "patients.csv", "--force"],
                "OUT is IN (patients.csv): name another file, or the table is lost",
            ),
            (["none.csv", "x.csv"], "none.csv: No such file or directory"),
            (["patients.csv", "no/x.csv"], "The folder 'no' does not exist"),
            (["patients.csv", "x.xls"], "'x.xls' has no suffix of a kind of table"),
            (["patients.csv", "x.csv", "--report", "x.csv"], "are the same file"),
            (["patients.csv", "x.csv", "--purpose", "a study"], "name its file with --report"),
            (["patients.csv", "-", "--json"], "--json prints to standard output"),
            (["patients.csv", "x.csv", "--report", "-"], "must be a separate file"),
            (
                ["patients.csv", "x.csv", "--save-mechanism", "patients.csv", "--force"],
                "must be a separate file",
            ),
            (["patients.csv", "x.csv", "--delimiter", ";"], "is that the delimiter"),
            (["patients.csv", "x.csv", "--smoothing", 1], "--smoothing needs --confidence none:"),
        ],
    )
    def test_one_line_and_exit_code_1(self, patients, capsys, arguments, text):
        assert run("sanitize", *arguments, *DESIGN, "--epsilon", 0.1) == 1
        error = capsys.readouterr().err
        assert error.startswith("skprivacy: error: ")
        assert text in error
        assert error.count("\n") == 1
        assert os.listdir() == ["patients.csv"]

    def test_a_first_line_that_may_be_a_row_is_not_shown(self, patients, capsys):
        Path("people.csv").write_text("Anna,f,tall\nBert,m,short\n")
        arguments = ["--sensitive", "sex", "--columns", "size", "--epsilon", 0.1]
        assert run("sanitize", "people.csv", "x.csv", *arguments) == 1
        said = capsys.readouterr().err
        assert "Anna" not in said
        assert "use --no-header" in said
        assert run("sanitize", "people.csv", "x.csv", *arguments, "--no-header") == 1
        assert "It has the columns 'c1', 'c2', 'c3'." in capsys.readouterr().err

    @pytest.mark.parametrize("job", ["job", "smoker"])
    def test_a_first_row_is_not_told_by_mistake(self, tmp_path, monkeypatch, capsys, job):
        """Even where it looks like a header, and one of its values like a name."""
        monkeypatch.chdir(tmp_path)
        lines = ["HIV+ since 1999,smoker,north", *["HIV-,nurse,n", "HIV+,clerk,s"] * 150]
        Path("nohead.csv").write_text("\n".join(lines) + "\n")
        options = ["--sensitive", "illness", "--columns", job, "--epsilon", 0.1]
        assert run("sanitize", "nohead.csv", "out.csv", *options) == 1
        said = capsys.readouterr().err
        assert "--sensitive names the column 'illness', which nohead.csv does not have." in said
        assert "1999" not in said
        assert "north" not in said

    def test_errors_of_the_library_speak_of_options(self, patients, capsys):
        arguments = ["--sensitive", "sex", "--columns", "bmx", "--epsilon", 0.1]
        assert run("sanitize", "patients.csv", "x.csv", *arguments) == 1
        assert "which patients.csv does not have: did you mean 'bmi'?" in capsys.readouterr().err
        arguments = ["--sensitive", "SEX", "--columns", "bmi", "--epsilon", 0.1]
        assert run("sanitize", "patients.csv", "x.csv", *arguments) == 1
        assert (
            "--sensitive names the column 'SEX', which patients.csv does not have: did you "
            in (said := capsys.readouterr().err)
        )
        assert (
            "mean 'sex'? If its first line is a header, --header lists its columns here.\n" in said
        )
        assert run("sanitize", "patients.csv", "x.csv", *arguments, "--header") == 1
        said = capsys.readouterr().err
        assert "mean 'sex'? It has the columns 'sex', 'blood_pressure', 'bmi', 'zip'.\n" in said
        arguments = ["--sensitive", "sex", "--columns", "sex", "--epsilon", 0.1]
        assert run("sanitize", "patients.csv", "x.csv", *arguments) == 1
        assert "is both sensitive and in --columns" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("option", "text"),
        [
            (["--epsilon", "-1"], "argument --epsilon: -1 is not a finite number of at least 0"),
            (["--epsilon", "nan"], "nan is not a finite number of at least 0"),
            (["--epsilon", "much"], "'much' is not a number"),
            (["--epsilon", "0,02"], "'0,02' is not a number: write 0.02"),
            (["--measure", "kk"], "'kk' is not one of kl, l1"),
            (["--measure", "alpha_lift:alpha=0.5"], "alpha"),
            (["--measure", "kl:beta=1"], "argument --measure"),
            (["--columns", "a,,b"], "has an empty name in it"),
            (["--columns", "a,", "b"], "write names as age,region, without spaces"),
            (["--columns", ""], "has an empty name in it"),
            (["--edges", "age=3,2"], "with increasing edges"),
            (["--edges", "age=nan"], "with increasing edges"),
            (["--columns", "a\nb"], "is not a list of names"),
            (["--measure", "kl:owner=3"], "unexpected keyword argument 'owner'"),
            (["--edges", "40"], "is not of the form age=18,40,65"),
            (["--bins", "0"], "is not a whole number of at least 1"),
            (["--confidence", "2"], "'2' is neither a share between 0 and 0.9999, such as 0.95"),
            (["--confidence", "0"], "'0' is neither a share between 0 and 0.9999"),
            (["--confidence", "abc"], "'abc' is neither a share between 0 and 0.9999"),
            (["--confidence", "nan"], "such as 0.95, nor none"),
            (["--min-frequency", "1.5"], "is not a share between 0 and 1"),
            (["--delimiter", "ab"], "is not a single ASCII character"),
            (["--encoding", "utf-16"], "is not compatible with ASCII"),
            (["--encoding", "latin-99"], "is not an encoding"),
        ],
    )
    def test_what_is_not_understood_exits_with_2(self, patients, capsys, option, text):
        with pytest.raises(SystemExit) as exited:
            run("sanitize", "patients.csv", "x.csv", *DESIGN, "--epsilon", 0.1, *option)
        assert exited.value.code == 2
        error = capsys.readouterr().err
        assert error.startswith("skprivacy sanitize: error: ")
        assert text in error
        assert error.count("\n") == 1

    def test_a_command_that_does_not_exist(self, capsys):
        for arguments in [["sanitise"], [], ["demo", "--scop"]]:
            with pytest.raises(SystemExit) as exited:
                main(arguments)
            assert exited.value.code == 2
            assert capsys.readouterr().err.count("\n") == 1

    def test_too_many_values_ask_for_edges(self, patients, capsys, monkeypatch):
        monkeypatch.setattr(tally, "MOST_DISTINCT", 100)
        patients["age"] = np.random.default_rng(0).normal(50, 9, len(patients))
        patients.to_csv("patients.csv", index=False)
        arguments = ["--sensitive", "sex", "--columns", "age", "--epsilon", 0.1]
        assert run("sanitize", "patients.csv", "x.csv", *arguments) == 1
        error = capsys.readouterr().err
        assert "More than 100 distinct combinations of sex, age" in error
        assert "give its edges, --edges age=A,B,..." in error
        assert run("sanitize", "patients.csv", "x.csv", *arguments, "--edges", "age=40,50") == 0

    def test_names_with_commas_go_in_quotes(self, patients):
        patients.rename(columns={"bmi": "weight, height"}).to_csv("odd.csv", index=False)
        arguments = [
            "--sensitive",
            "sex",
            "--columns",
            '"weight, height",blood_pressure',
            "--epsilon",
            0,
        ]
        assert run("sanitize", "odd.csv", "x.csv", *arguments) == 0
        assert (
            Path("x.csv").read_text().splitlines(keepends=True)[0]
            == 'blood_pressure,"weight, height"\n'
        )

    @pytest.mark.parametrize("how", ["a", "w"])
    def test_a_file_that_changes_between_the_passes(self, patients, capsys, monkeypatch, how):
        from skprivacy.cli import release

        def fit_and_change(*arguments, **options):
            sample = fit_source(*arguments, **options)
            with open("patients.csv", how) as file:
                file.write("sex 1,84 to 93,18 to 23.2,99999\n" if how == "a" else text)
            return sample

        text = Path("patients.csv").read_text().replace("sex 1", "sex 2")

        fit_source = release.fit_source
        monkeypatch.setattr(release, "fit_source", fit_and_change)
        assert run("sanitize", "patients.csv", "x.csv", *DESIGN, "--epsilon", 0.1) == 1
        assert "patients.csv changed while it was being read" in capsys.readouterr().err
        assert os.listdir() == ["patients.csv"]


def shell(command, **options):
    return subprocess.run(command, shell=True, check=False, capture_output=True, **options)


class TestProcesses:
    command = f"{sys.executable} -m skprivacy"
    design = "--sensitive sex --columns bmi --epsilon 0.02 --confidence none"

    def test_pipes(self, patients, capsys):
        ran = shell(
            f"cat patients.csv | {self.command} sanitize - - {self.design} --remainder drop"
        )
        assert ran.returncode == 0
        assert len(pd.read_csv(io.BytesIO(ran.stdout))) == 442
        assert b"-: 442 rows" in ran.stderr
        text = gzip.compress(patients.to_csv(index=False, sep="\t").encode())
        Path("patients.tsv.gz").write_bytes(text)
        assert self.run_from_a_pipe("patients.tsv.gz", "-", "--format", "tsv") == 0
        assert capsys.readouterr().out.splitlines()[0] == "bmi"
        patients.to_parquet("patients.parquet")
        assert self.run_from_a_pipe("patients.parquet", "out.csv") == 0
        assert len(pd.read_csv("out.csv")) == 442

    def run_from_a_pipe(self, path, target, *options):
        """Run the command here; its input is a pipe as in the shell."""
        with (
            subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat,
            io.TextIOWrapper(cat.stdout) as pipe,
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setattr("sys.stdin", pipe)
            return run("sanitize", "-", target, *self.design.split(), *options)

    def test_the_standard_output_by_its_other_name(self, patients, capfd):
        ran = shell(f"{self.command} sanitize patients.csv /dev/stdout {self.design} | cat")
        assert len(pd.read_csv(io.BytesIO(ran.stdout))) == 442
        assert b"442 rows" in ran.stderr
        # Here it is a file, as it is after > in the shell.
        assert run("sanitize", "patients.csv", "/dev/stdout", *self.design.split()) == 0
        assert len(pd.read_csv(io.StringIO(capfd.readouterr().out))) == 442

    @pytest.mark.slow
    def test_memory_does_not_grow_with_the_file(self, patients):
        for n_copies in (500, 1000):  # 8 and 15 MB, in blocks of 4
            write_many(n_copies)
            os.rename("many.csv", f"{n_copies}.csv")
        arguments = ["out.csv", *self.design.split(), "--force"]
        # Its own peak: that of a child as its parent sees it begins with that of the parent.
        script = (
            f"from skprivacy.cli import main\n"
            f"for n_copies in (500, 1000):\n"
            f"    assert main(['sanitize', f'{{n_copies}}.csv', *{arguments}]) == 0\n"
            f"    print(open('/proc/self/status').read())"
        )
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
        peaks = re.findall(rb"^VmHWM:\s+(\d+) kB$", ran.stdout, re.MULTILINE)
        first, second = (int(peak) / 1024 for peak in peaks)
        assert second < first + 20

    def test_a_reader_that_has_seen_enough(self, patients):
        write_many(200)
        ran = shell(f"{self.command} sanitize many.csv - {self.design} | head -1")
        assert ran.stdout == b"bmi\n"
        assert b"Traceback" not in ran.stderr
        assert b"error" not in ran.stderr

    def test_closed_streams(self, patients, monkeypatch, capsys):
        ran = shell(f"{self.command} sanitize patients.csv - {self.design} >&-")
        assert (ran.returncode, ran.stderr.count(b"\n")) == (1, 1)
        monkeypatch.setattr(sys, "stdin", None)  # which is what Python makes of <&-
        assert run("sanitize", "-", "x.csv", *self.design.split()) == 1
        assert capsys.readouterr().err.count("\n") == 1

    @pytest.mark.slow
    def test_a_process_without_the_standard_error(self, patients):
        ran = shell(f"{self.command} sanitize patients.csv out.csv {self.design} 2>&-")
        assert ran.returncode == 0
        assert len(pd.read_csv("out.csv")) == 442

    def test_errors_leave_the_standard_output_empty(self, patients, capfd):
        assert run("apply", "nothing.json", "patients.csv", "x.csv") == 1
        assert capfd.readouterr().out == ""

    def test_told_to_stop_it_leaves_nothing(self, patients):
        write_many(2500)
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "skprivacy",
                "sanitize",
                "many.csv",
                "out.csv",
                *self.design.split(),
            ],
            stderr=subprocess.DEVNULL,
        )
        while process.poll() is None and not any(name.endswith(".part") for name in os.listdir()):
            time.sleep(0.01)
        process.terminate()
        assert process.wait(60) == 143
        assert sorted(os.listdir()) == ["many.csv", "patients.csv"]

    @pytest.mark.slow
    def test_killed_at_any_moment_there_is_no_file_or_a_complete_one(self, patients):
        rows = pd.concat([patients] * 40)
        rows.to_csv("many.csv", index=False)
        command = [sys.executable, "-m", "skprivacy", "sanitize", "many.csv", "out.csv"]
        command += [*self.design.split(), "--remainder", "zip", "--allow-leaking"]
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        takes, n_complete = time.perf_counter() - began, 0
        moments = random.Random(0)
        for _ in range(12):
            Path("out.csv").unlink(missing_ok=True)
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            time.sleep(1.5 * takes * moments.random())
            process.kill()
            process.wait()
            if os.path.exists("out.csv"):
                assert pd.read_csv("out.csv", dtype=str)["zip"].tolist() == rows["zip"].tolist()
                n_complete += 1
        assert 0 < n_complete < 12
        left = [name for name in os.listdir() if name.endswith(".part")]
        ran = subprocess.run([*command, "--force"], check=True, capture_output=True, text=True)
        assert ran.stderr.count("is an unfinished 'out.csv'") == len(left)
