"""Columns of files that are published beside a release."""

import numpy as np
import pandas as pd
import pytest
from example_tables import people

from skprivacy import PrivacyFunnelTransformer
from skprivacy.cli import main
from skprivacy.files import fit_file, transform_file

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = people()[["sex", "band", "label"]]
    table["grade"] = np.arange(len(table)) % 3
    table["paid"] = np.where(table["label"], "high", "low")
    table = table.drop(columns="label")
    table.to_csv("rows.csv", index=False)
    table.to_parquet("rows.parquet")
    return table


def funnel(epsilon=0.3, **options):
    beside = {"sensitive": "sex", "beside": ["paid", "grade"], "random_state": 0}
    return PrivacyFunnelTransformer(epsilon, **beside | options)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_is_fitted_and_released_like_a_frame(rows, kind):
    here, there = funnel().fit(rows), fit_file(funnel(), f"rows.{kind}")
    assert (here.mechanism_.channel == there.mechanism_.channel).all()
    assert transform_file(there, f"rows.{kind}", "out.csv") == len(rows)
    released = pd.read_csv("out.csv")
    assert released.columns.tolist() == ["band", "grade", "paid"]
    assert released[["grade", "paid"]].equals(rows[["grade", "paid"]].astype(released.dtypes[1:]))


def test_how_a_value_was_written_does_not_leave(rows):
    """1 and 1.0, quoted or not: that could be a copy of S."""
    lines = ["sex,band,grade,paid"]
    for sex, band, grade, paid in rows.itertuples(index=False):
        lines.append(f'f,{band},{grade}.0,"{paid}"' if sex == "f" else f"m,{band},{grade},{paid}")
    with open("odd.csv", "w") as file:
        file.write("\n".join(lines) + "\n")
    transform_file(fit_file(funnel(), "odd.csv"), "odd.csv", "out.csv")
    with open("out.csv") as file:
        written = {tuple(line.strip().split(",")[1:]) for line in list(file)[1:]}
    assert written == {(str(grade), paid) for grade in range(3) for paid in ("high", "low")}


def test_the_command_line(rows, capsys):
    design = ["--sensitive", "sex", "--columns", "band", "--beside", "paid", "--epsilon", "0.2"]
    alone = ["--confidence", "none"]
    asked = ["sanitize", "rows.csv", "out.csv", *design, "--save-mechanism", "m.json", *alone]
    assert main(asked) == 0
    said = capsys.readouterr().out
    assert "band replaced, paid published unchanged under the same budget, all other" in said
    assert pd.read_csv("out.csv")["paid"].equals(
        rows["paid"].astype(pd.read_csv("out.csv")["paid"].dtype)
    )
    assert main(["apply", "m.json", "rows.csv", "again.csv"]) == 0
    assert main(["certify", "m.json", "rows.csv", "--sensitive", "sex"]) == 0
    attack = ["audit", "rows.csv", "--sensitive", "sex", "--released", "out.csv"]
    assert main([*attack, "--beside", "paid"]) == 0
    assert "remainder" not in capsys.readouterr().out
    curve = [part for part in design if part not in ("--epsilon", "0.2")]
    assert main(["curve", "rows.csv", *curve, *alone]) == 0
    assert main(["choose", "rows.csv", *curve, *alone]) == 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--columns band,paid --beside paid --epsilon 1", "is both in --beside and in --columns"),
        ("--columns band --beside sex --epsilon 1", "is both sensitive and in --beside"),
        ("--columns band --beside paid --epsilon 0.001", "the value 'paid = "),
        ("--columns band --beside home --epsilon 1", "--beside names the column 'home'"),
    ],
)
def test_errors_name_options(rows, capsys, options, sentence):
    asked = ["sanitize", "rows.csv", "out.csv", "--sensitive", "sex", *options.split()]
    assert main([*asked, "--confidence", "none"]) == 1
    assert sentence in capsys.readouterr().err
