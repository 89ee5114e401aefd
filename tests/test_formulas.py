"""Texts that a spreadsheet would run are written as they are, with a warning."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tables import funnel

from skprivacy.files import fit_file, transform_file
from skprivacy.files.formulas import formulas_in_texts

FORMULAS = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    '=HYPERLINK("x")',
    "\t=1",
    "--1",
    "-1e",
    "+1 2a",
]
HARMLESS = ["1", "-1", "+1.5", "-1e-5", "-.5", "a=b", "", "-", "--", "+", "x", "-1 ", "+0.25e+10"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula(text):
    assert formulas_in_texts(np.array([0, 0, 1]), [text.encode(), b"x"]) == 2


@pytest.mark.parametrize("text", HARMLESS)
def test_no_formula(text):
    assert formulas_in_texts(np.array([0, 0, 1]), [text.encode(), b"x"]) == 0


def rows(n=400):
    rng = np.random.default_rng(0)
    sex = rng.integers(2, size=n)
    bands = np.array(["low", "=A1+B2", "high", "-12"])
    return pd.DataFrame(
        {
            "sex": np.array(["f", "m"])[sex],
            "band": bands[rng.binomial(3, 0.3 + 0.3 * sex)],
            "note": np.where(rng.random(n) < 0.1, '@SUM("a,b")', "fine"),
            "change": rng.integers(-9, 9, n),
        }
    )


@pytest.mark.parametrize("out", ["out.csv", "out.tsv"])
def test_columns_are_named_once_and_no_value_is_shown(tmp_path, out):
    frame = rows()
    frame.to_csv(tmp_path / "in.csv", index=False)
    settings = funnel(columns=["band"], remainder=["note", "change"])
    fitted = fit_file(settings, tmp_path / "in.csv")
    with pytest.warns(UserWarning, match="spreadsheet may run") as caught:
        transform_file(fitted, tmp_path / "in.csv", tmp_path / out)
    (text,) = (str(warning.message) for warning in caught)
    n_notes = (frame["note"] != "fine").sum()
    assert f"'note' ({n_notes} rows)" in text
    assert "'band' (" in text
    assert "change" not in text
    assert "SUM" not in text
    assert "A1" not in text
    released = pd.read_csv(tmp_path / out, sep="," if out.endswith("csv") else "\t")
    assert released["note"].tolist() == frame["note"].tolist()  # as they are


def test_parquet_is_not_opened_by_spreadsheets(tmp_path):
    rows().to_csv(tmp_path / "in.csv", index=False)
    fitted = fit_file(funnel(columns=["band"]), tmp_path / "in.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        transform_file(fitted, tmp_path / "in.csv", tmp_path / "out.parquet")


def test_numbers_are_none(tmp_path):
    rows()[["sex", "change"]].to_csv(tmp_path / "in.csv", index=False)
    fitted = fit_file(funnel(columns=["change"]), tmp_path / "in.csv")
    transform_file(fitted, tmp_path / "in.csv", tmp_path / "out.csv")
    assert len(Path(tmp_path / "out.csv").read_text().splitlines()) == 401
