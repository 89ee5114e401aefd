"""Whole tables on the command line: cells, a target, and no list of columns."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skprivacy import PrivacyFunnelTransformer
from skprivacy.cli import checks, main
from skprivacy.cli.arguments import parser
from skprivacy.fitting import tally
from skprivacy.fitting.parameters import ALPHABETS

X = ["age", "town", "pay", "owner", "score"]
ALONE = ["--confidence", "none", "--utility", "mutual_information"]
DESIGN = ["--sensitive", "sex", "--epsilon", 0.1]


@pytest.fixture
def people(tmp_path, monkeypatch):
    """Return a table that is also in people.csv of the folder that we are in."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    sex, n = rng.integers(2, size=1500), 1500
    table = pd.DataFrame({
        "id": [f"p{i:05d}" for i in range(n)],
        "age": rng.integers(18, 90, n) + 4 * sex,
        "town": rng.choice(["Aix", "Bonn", "Cork"], n),
        "pay": rng.normal(9 - sex, 2, n).round(3),
        "owner": rng.random(n) < 0.3,
        "score": rng.normal(size=n).round(3),
        "sex": np.array(["f", "m"])[sex],
    })  # fmt: skip
    table["bought"] = np.where(rng.normal(table["pay"] + table["score"]) > 9, "yes", "no")
    table.to_csv("people.csv", index=False)
    return table


def run(*arguments):
    return main([str(argument) for argument in arguments])


def test_a_whole_table_without_a_list_of_columns(people, capsys):
    options = [*DESIGN, *ALONE, "--save-mechanism", "m.json", "--json"]
    assert run("sanitize", "people.csv", "out.csv", *options) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["released"] == [*X, "bought"]
    assert facts["alphabet"] == "cells"
    told = " ".join(facts["warnings"])
    assert "too many combinations of values, or mostly unique ones: rows that are alike" in told
    assert "Set --alphabet cells to silence this warning, --alphabet values to keep" in told
    assert "Left out of the release: 'id', which has a different value" in told
    assert list(pd.read_csv("out.csv")) == [*X, "bought"]
    # Rows with values of their own have a cell as well.
    people.head(3).assign(town="Delft", age=7).to_csv("new.csv", index=False)
    assert run("apply", "m.json", "new.csv", "again.csv") == 0
    assert "age, town, pay, owner, score and bought replaced" in capsys.readouterr().out
    assert pd.read_csv("again.csv")["town"].isin(people["town"]).all()


def test_what_other_options_name_is_not_released(people, capsys):
    options = [*DESIGN, "--target", "bought", "--confidence", "none", "--max-cells", 8]
    assert run("key", "secret.key") == 0
    options += ["--record-ids", "id", "--key-file", "secret.key", "--remainder", "score"]
    assert run("sanitize", "people.csv", "out.csv", *options, "--allow-leaking") == 0
    assert list(pd.read_csv("out.csv")) == X
    said = capsys.readouterr().out
    assert "age, town, pay and owner replaced, score copied unchanged" in said
    assert "no mechanism within the budget keeps more" in said
    assert "Released rows are made up: their columns are drawn together" in said
    assert "pooled" not in said
    options = [*DESIGN, "--columns", "pay,bought", "--target", "bought", "--bins", 3]
    assert run("sanitize", "people.csv", "both.csv", *options) == 0
    assert list(pd.read_csv("both.csv")) == ["pay", "bought"]


def test_a_mechanism_with_models_is_applied_elsewhere(people, capsys):
    options = [*DESIGN, "--target", "bought", "--confidence", "none", "--max-cells", 8]
    assert run("sanitize", "people.csv", "out.csv", *options, "--save-mechanism", "m.json") == 0
    people.drop(columns=["sex", "bought"]).to_csv("new.csv", index=False)
    assert run("apply", "m.json", "new.csv", "again.csv") == 0
    assert list(pd.read_csv("again.csv")) == list(pd.read_csv("out.csv"))


@pytest.mark.parametrize("curve", [["--no-curve"], pytest.param([], marks=pytest.mark.slow)])
def test_rows_of_a_person_stay_together(people, capsys, curve):
    people["person"] = np.arange(len(people)) // 3
    people.to_csv("people.csv", index=False)
    options = [*DESIGN, "--confidence", "none", "--person", "person"]
    options += ["--report", "r.html", *curve]
    options += ["--target", "bought", "--max-cells", 8, "--save-mechanism", "m.json"]
    options += ["--columns", "age,pay,score", "--remainder", "passthrough", "--allow-leaking"]
    assert run("sanitize", "people.csv", "out.csv", *options) == 0
    assert list(pd.read_csv("out.csv")) == ["id", "age", "town", "pay", "owner", "score", "bought"]
    assert run("apply", "m.json", "people.csv", "again.csv") == 0
    assert list(pd.read_csv("again.csv")) == ["age", "pay", "score"]
    people.to_csv("new.csv", columns=["age", "pay", "score"], index=False)
    capsys.readouterr()
    assert run("apply", "m.json", "new.csv", "new_out.csv") == 1
    assert "'person' tells which rows are of the same person" in capsys.readouterr().err
    assert run("certify", "m.json", "people.csv", "--sensitive", "sex") == 0
    assert run("sanitize", "people.csv", "o.csv", *DESIGN, "--person", "person") == 1
    assert "--person is for cells" in capsys.readouterr().err
    wrong = ["--person", "age", "--target", "bought", "--columns", "age,pay"]
    assert run("sanitize", "people.csv", "o.csv", *DESIGN, *wrong) == 1
    assert "'age' is both in --person and" in capsys.readouterr().err


def test_without_an_extra_nothing_is_begun(people, capsys, monkeypatch):
    monkeypatch.setattr(checks, "find_spec", lambda name: None)
    options = [*DESIGN, "--target", "bought", "--save-mechanism", "m.json"]
    assert run("sanitize", "people.csv", "out.csv", *options) == 1
    assert "--save-mechanism needs skops" in capsys.readouterr().err
    assert run("sanitize", "people.csv", "out.csv", *DESIGN, "--report", "r.html") == 1
    assert "--report needs matplotlib" in capsys.readouterr().err
    assert run("sanitize", "people.csv", "out.parquet", *DESIGN) == 1
    assert "out.parquet: Parquet files need pyarrow" in capsys.readouterr().err
    assert run("curve", "people.csv", "--sensitive", "sex", "-o", "curve.png") == 1
    assert "curve.png: pictures need matplotlib" in capsys.readouterr().err
    assert sorted(path.name for path in Path().iterdir()) == ["people.csv"]


def test_cells_are_counted_where_values_are_too_many(people, capsys, monkeypatch):
    monkeypatch.setattr(tally, "MOST_DISTINCT", 500)
    options = [*DESIGN, *ALONE, "--columns", "pay,town"]
    assert run("sanitize", "people.csv", "out.csv", *options) == 0
    warned = capsys.readouterr().err
    assert "too many combinations of values to count: rows that are alike share a cell" in warned
    assert "--alphabet cells to silence this warning" in warned
    assert "give the edges of numbers in --edges, or release fewer" in warned
    assert run("sanitize", "people.csv", "no.csv", *options, "--alphabet", "values") == 1
    assert (
        "Or let rows that are alike share a symbol: --alphabet cells." in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    "arguments", [["curve", "--epsilons", "0.02,0.2"], ["choose", "--keep-utility", "0.2"]]
)
def test_exploring_cells(people, capsys, arguments):
    command, *options = arguments
    options += ["--sensitive", "sex", *ALONE, "--max-cells", 8]
    assert run(command, "people.csv", *options) == 0
    said = capsys.readouterr().out
    assert "the information in a column, on average over all columns" in said
    assert "The 8 cells were learned once, for --epsilon 0.02: " in said


@pytest.mark.parametrize("kept", [["--target", "bought", "--confidence", "none"], ALONE])
def test_the_usual_aim_is_a_share_of_what_cells_keep(people, capsys, kept):
    options = ["--sensitive", "sex", *kept, "--max-cells", 8]
    assert run("choose", "people.csv", *options, "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert 2 <= facts["cells"] <= 8
    assert facts["cells_learned_for"] == 0.02
    assert run("choose", "people.csv", *options) == 0
    said = capsys.readouterr().out
    most = float(re.search(r"which is 90% of the ([\d.]+)% that cells can keep", said)[1]) / 100
    assert most < 0.95
    assert facts["kept"] == pytest.approx(0.9 * most, abs=1e-3)
    assert run("choose", "people.csv", *options, "--keep-utility", most + 0.01) == 1
    assert "--keep-utility is 0." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "sex"], "--target must name a column of the file that is neither sensitive"),
        (["--target", "income"], "--target names the column 'income', which people.csv does not"),
        (["--target", "bought", "--utility", "guess"], ": leave out --utility guess"),
        (["--max-cells", "9", "--alphabet", "values"], "--max-cells is about cells"),
        (["--max-cells", "1"], "--max-cells must be"),
        (["--columns", "id,pay", "--alphabet", "cells"], "Leave it out of --columns"),
        (["--remainder", "passthrough"], "--remainder passthrough needs --columns"),
    ],
)  # fmt: skip
def test_what_does_not_go_together(people, capsys, options, message):
    assert run("sanitize", "people.csv", "out.csv", *DESIGN, *options) == 1
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in Path().iterdir()) == ["people.csv"]


def test_the_choices_are_those_of_the_library():
    commands = next(action.choices for action in parser()._actions if action.choices)
    for name in ("sanitize", "curve", "choose"):
        options = {option: a for a in commands[name]._actions for option in a.option_strings}
        assert options["--alphabet"].choices == ALPHABETS
        assert PrivacyFunnelTransformer().alphabet == options["--alphabet"].default
