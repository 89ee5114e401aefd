"""Texts that a spreadsheet would run: they are copied as they are, and a warning names the column."""

import csv
import io
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skprivacy import PrivacyFunnelTransformer
from skprivacy.cli import main
from skprivacy.engines.csv_fields import split
from skprivacy.engines.csv_files import formulas_in_fields, formulas_in_texts
from skprivacy.engines.csv_text import is_number
from skprivacy.files import fit_file, transform_file

FORMULAS = [
    "=1+1",
    '=HYPERLINK("http://example.com")',
    "@SUM(1)",
    "+49 30 1234",
    "-x",
    "-2+3+cmd|' /C calc'!D2",
    "-5+3",
    "-e5",
    "+-5",
    "\t=1",
    "\r=1",
    "-" + "1" * 100 + "+A1",
]
OTHERS = ["", "a", "1", "-1", "+1", "-1.5e-3", "-.5", "-5 ", "-", "--", "- -", "1=1", "a@b", " "]


def counted(text, n_columns, columns):
    return formulas_in_fields(split(text.encode(), ",", n_columns, 1), columns).tolist()


class TestFormulas:
    @pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    def test_formulas_are_told_from_numbers_and_dashes(self, quoting):
        for text in [*FORMULAS, *OTHERS]:
            rows = io.StringIO(newline="")
            csv.writer(rows, quoting=quoting, lineterminator="\n").writerow(["x", text, "-1"])
            expected = int(text in FORMULAS)
            assert counted(rows.getvalue(), 3, [1]) == [expected], text
            assert counted(rows.getvalue(), 3, [2, 1]) == [0, expected], text
            assert formulas_in_texts(np.array([0, 1, 0]), [text.encode(), b""]) == 2 * expected

    @given(st.lists(st.text(st.sampled_from("=+-@1.eE ax"), max_size=6), max_size=8))
    def test_what_is_not_a_formula_is_a_number_or_begins_otherwise(self, texts):
        for text in texts:
            found = formulas_in_texts(np.zeros(1, dtype=int), [text.encode()])
            may_be = text.startswith(tuple("=+-@")) and not is_number(text)
            assert found <= may_be
            if may_be and not found:  # nothing that is computed: dashes, or 1.2.3
                assert not set(text) & set("ax")
                assert set(text) <= set("=+-@ ") or text.count(".") + text.lower().count("e") > 0
        rows = "".join(f"x,{text}\n" for text in texts)
        each = [formulas_in_texts(np.zeros(1, dtype=int), [text.encode()]) for text in texts]
        assert counted(rows, 2, [1]) == [sum(each)]

    def test_nothing_copied_and_nothing_there(self):
        assert counted("a,=b\n", 2, []) == []
        assert counted("", 2, [0, 1]) == [0, 0]


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(0)
    sex = rng.integers(2, size=4000)
    rows = pd.DataFrame(
        {
            "change": rng.normal(size=4000).round(3),
            "note": ["fine", "=1+1", '@"x", y', "-"] * 1000,
            "sex": np.where(sex, "m", "f"),
            "band": np.array(["-low", "mid", "+high"])[rng.binomial(2, 0.3 + 0.4 * sex)],
        }
    )
    rows.to_csv(tmp_path / "in.csv", index=False)
    rows.to_csv(tmp_path / "in.tsv", index=False, sep="\t")
    rows.to_parquet(tmp_path / "in.parquet")
    return rows


def funnel(**parameters):
    parameters = {
        "epsilon": 0.02,
        "remainder": "passthrough",
        "handle_unknown": "error",
    } | parameters
    return PrivacyFunnelTransformer(sensitive=["sex"], columns=["band"], **parameters)


class TestWarning:
    @pytest.mark.parametrize("name", ["in.csv", "in.tsv", "in.parquet"])
    @pytest.mark.parametrize("out", ["out.csv", "out.tsv.gz"])
    def test_columns_copied_and_released_are_named(self, tmp_path, people, name, out):
        transformer = fit_file(funnel(), tmp_path / name)
        with pytest.warns(UserWarning, match="as formulas") as caught:
            transform_file(transformer, tmp_path / name, tmp_path / out)
        (said,) = [str(warning.message) for warning in caught]
        assert "'note' (2,000 rows)" in said
        assert "'change'" not in said
        separator = "\t" if "tsv" in out else ","
        released = pd.read_csv(tmp_path / out, sep=separator, dtype=str)
        n_formulas = released["band"].isin(["-low", "+high"]).sum()
        assert f"'band' ({n_formulas:,} rows)" in said
        assert released["note"].tolist() == people["note"].tolist()
        assert not any(text in said for text in ("1+1", "low", "high", '"x"'))

    def test_none_for_parquet_and_none_after_an_error(self, tmp_path, people):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            transformer = fit_file(funnel(), tmp_path / "in.csv")
            transform_file(transformer, tmp_path / "in.csv", tmp_path / "out.parquet")
            people.assign(band="new").to_csv(tmp_path / "new.csv", index=False)
            with pytest.raises(ValueError, match="unknown values"):
                transform_file(transformer, tmp_path / "new.csv", tmp_path / "out.csv")

    def test_only_what_is_written_counts(self, tmp_path, people):
        transformer = fit_file(funnel(remainder="drop"), tmp_path / "in.csv")
        with pytest.warns(UserWarning, match=r"values of 'band' \([\d,]+ rows\) as formulas"):
            transform_file(transformer, tmp_path / "in.csv", tmp_path / "out.csv")

    def test_the_command_says_so_once(self, tmp_path, people, capsys):
        target = str(tmp_path / "out.csv")
        design = ["--sensitive", "sex", "--columns", "band", "--epsilon", "0.02", "--json"]
        source = str(tmp_path / "in.csv")
        assert main(["sanitize", source, target, *design, "--remainder", "passthrough"]) == 0
        said = capsys.readouterr()
        assert said.err.count("as formulas") == 1
        (found,) = [w for w in json.loads(said.out)["warnings"] if "as formulas" in w]
        assert "import these columns as text, or drop them" in found
