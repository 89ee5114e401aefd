"""What somebody learns who already knows a column of a row."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from example_tables import quiet_fit
from hypothesis import given
from hypothesis import strategies as st

from skprivacy import PrivacyFunnelTransformer, PrivacyReport
from skprivacy.cli import main
from skprivacy.describing.verdict import learned_beside
from skprivacy.measures import KL, get_measure

MEASURES = ["kl", "l1", "chi2", "max_lift", "alpha_lift", "lip", "parity"]


def naive(p_sx, channel, measure, codes):
    """Return the same by one loop over z, over y, and over the symbols with that z."""
    found = 0.0
    for z in set(codes.tolist()):
        for y in range(channel.shape[1]):
            together, alone = np.zeros(len(p_sx)), np.zeros(len(p_sx))
            for x in np.flatnonzero(codes == z):
                together += p_sx[:, x] * channel[x, y]
                alone += p_sx[:, x]
            if together.sum() > 0:
                occurs = alone > 0
                posterior, prior = together[occurs], alone[occurs]
                leakage = measure.leakage(posterior / posterior.sum(), prior / prior.sum())
                found = max(found, float(leakage))
    return found


def test_an_exclusive_or_tells_everything_to_whoever_knows_the_other_half():
    """S = X1 xor X2 and Y = X2: the release leaks nothing, and log 2 with x1."""
    p_sx = np.array([[1, 0, 0, 1], [0, 1, 1, 0]]) / 4  # x = (x1, x2)
    channel = np.array([[1, 0], [0, 1], [1, 0], [0, 1]], dtype=float)
    of_x1, of_x2 = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    assert learned_beside(p_sx, channel, KL(), of_x1).leakage == pytest.approx(math.log(2))
    assert learned_beside(p_sx, channel, KL(), of_x2).leakage == 0
    assert learned_beside(p_sx, channel, KL(), np.arange(4)).leakage == 0
    assert learned_beside(p_sx, channel, KL(), np.zeros(4, int)).leakage == pytest.approx(0)


@given(st.integers(0, 10**6), st.sampled_from(MEASURES), st.booleans())
def test_it_is_what_loops_find(seed, measure, with_zeros):
    rng = np.random.default_rng(seed)
    p_sx, channel = rng.random((3, 6)), rng.random((6, 4))
    if with_zeros:
        p_sx *= rng.random(p_sx.shape) < 0.7
        channel *= rng.random(channel.shape) < 0.7
        channel[:, 0] += 0.1
    p_sx[0, 0] += 0.1
    p_sx, channel = p_sx / p_sx.sum(), channel / channel.sum(axis=1, keepdims=True)
    codes = rng.integers(3, size=6)
    found = learned_beside(p_sx, channel, get_measure(measure), codes).leakage
    expected = naive(p_sx, channel, get_measure(measure), codes)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-7)


@given(st.integers(0, 10**6), st.booleans())
def test_moves_and_rows_with_large_ones_are_what_loops_find(seed, with_zeros):
    rng = np.random.default_rng(seed)
    p_sx, channel = rng.random((3, 6)), rng.random((6, 4))
    if with_zeros:
        p_sx *= rng.random(p_sx.shape) < 0.6
    p_sx[0, 0] += 0.1
    p_sx, channel = p_sx / p_sx.sum(), channel / channel.sum(axis=1, keepdims=True)
    codes, far = rng.integers(3, size=6), 0.1
    points = share = 0.0
    is_certain = False
    for z in np.unique(codes):
        alone = p_sx[:, codes == z].sum(axis=1)
        for y in range(4):
            together = p_sx[:, codes == z] @ channel[codes == z, y]
            if (size := together.sum()) > 0:
                posterior, prior = together / size, alone / alone.sum()
                move = np.abs(posterior - prior).max()
                points = max(points, move)
                is_certain |= any(
                    p > 1 - 1e-9 and q < 0.95 for p, q in zip(posterior, prior, strict=True)
                )
                share += size * (move > far)
    found = learned_beside(p_sx, channel, KL(), codes, far)
    assert found.points == pytest.approx(points, abs=1e-9)
    assert found.share == pytest.approx(share, abs=1e-9)
    assert found.is_certain == is_certain


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    s, x1, town = rng.integers(2, size=(3, 4000))
    x2 = np.where(rng.random(4000) < 0.8, x1 ^ s, rng.integers(2, size=4000))
    return pd.DataFrame({"s": s, "x1": x1, "x2": x2, "town": town, "n": rng.normal(size=4000)})


class TestTransformer:
    def test_every_released_column_and_those_beside(self, rows):
        options = {"sensitive": "s", "columns": ["x1", "x2"], "beside": ["town"]}
        fitted = quiet_fit(PrivacyFunnelTransformer(0.02, **options), rows)
        (secret,) = fitted.summary_.secrets.values()
        mechanism = fitted.mechanism_
        for position, name in enumerate(["x1", "x2", "town"]):
            values = [label[position] for label in mechanism.x_labels]
            codes = pd.factorize(np.array(values))[0]
            expected = naive(mechanism.p_sx, mechanism.channel, mechanism.measure, codes)
            assert secret.known_columns[name] == pytest.approx(expected, abs=1e-9)
        assert max(secret.known_columns.values()) > 0.02

    def test_a_single_column_tells_nothing_to_whoever_knows_it(self, rows):
        fitted = quiet_fit(PrivacyFunnelTransformer(0.02, sensitive="s", columns=["x2"]), rows)
        assert fitted.summary_.secrets[None].known_columns == {"x2": 0.0}

    def test_each_secret_has_its_own(self, rows):
        budgets = {"s": 0.02, "town": 0.02}
        options = {"sensitive": ["s", "town"], "columns": ["x1", "x2"]}
        fitted = quiet_fit(PrivacyFunnelTransformer(budgets, **options), rows)
        known = [each.known_columns for each in fitted.summary_.secrets.values()]
        assert known[0].keys() == known[1].keys() == {"x1", "x2"}
        assert known[0]["x1"] > known[1]["x1"]

    def test_of_cells_it_is_not_known(self, rows):
        options = {"sensitive": "s", "columns": ["x1", "n"], "alphabet": "cells"}
        fitted = quiet_fit(PrivacyFunnelTransformer(0.02, **options), rows)
        assert fitted.summary_.secrets[None].known_columns == {"x1": None, "n": None}

    def test_a_pool_of_combinations_is_a_value_of_its_own(self):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.integers(4, size=(500, 2)), columns=["a", "b"])
        frame["s"] = rng.integers(2, size=500)
        options = {"sensitive": "s", "columns": ["a", "b"], "max_categories": 6}
        fitted = quiet_fit(PrivacyFunnelTransformer(0.02, **options), frame)
        known = fitted.summary_.secrets[None].known_columns
        assert all(figure >= 0 for figure in known.values())


@pytest.fixture(scope="module")
def exclusive_or():
    """S = x1 xor x2: neither column tells anything, and both together tell everything."""
    s, x1 = np.array([0, 0, 1, 1] * 500), np.array([0, 1, 0, 1] * 500)
    return pd.DataFrame({"s": s, "x1": x1, "x2": s ^ x1}).astype(str)


class TestBesideTheVerdict:
    """A verdict is about people who know no part of a row, and says what others may learn."""

    SAID = (
        "This does not cover people who already know a column, which no budget bounds: in these "
        "rows, whoever knows the true {} may become certain about s; guesses move by more "
        "than 15 points in {:.1f}% of rows."
    )

    @pytest.fixture(params=[0.02, {"s": 0.02}], ids=["number", "dict"])
    def fitted(self, request, exclusive_or):
        return quiet_fit(PrivacyFunnelTransformer(request.param, sensitive="s"), exclusive_or)

    def test_right_after_the_verdict(self, fitted):
        summary, said = fitted.summary_, self.SAID.format("x2", 100)
        verdict = summary.secrets[next(iter(summary.secrets))].protection()
        assert summary.lead().startswith(f"PASS: {verdict} {said}")
        assert summary.sentences()[:2] == [verdict, said]
        assert said in fitted._repr_html_()
        assert "up to 0.6932 given x2" in repr(summary)

    def test_in_the_report(self, fitted):
        report = PrivacyReport.from_estimator(fitted, with_curve=False)
        first = report.sections[0]
        assert self.SAID.format("x2", 100) in first.lead
        assert not any("already know" in text for text in first.paragraphs)

    def test_not_where_it_is_within_the_budget(self, exclusive_or):
        rng = np.random.default_rng(0)
        rows = exclusive_or.assign(x2=rng.integers(2, size=len(exclusive_or)))
        for columns in (["x1"], ["x1", "x2"]):
            fitted = quiet_fit(
                PrivacyFunnelTransformer(0.02, sensitive="s", columns=columns), rows
            )
            assert "already know" not in fitted.summary_.lead()
            text = str(PrivacyReport.from_estimator(fitted, with_curve=False))
            assert "already knows a released column" in " ".join(text.split())

    def test_of_cells_it_is_not_known(self, rows):
        options = {"sensitive": "s", "columns": ["x1", "n"], "alphabet": "cells"}
        fitted = quiet_fit(PrivacyFunnelTransformer(0.02, **options), rows)
        assert "what they can learn from cells is not known" in fitted.summary_.lead()

    def test_the_secret_with_the_largest_multiple(self, rows):
        budgets = {"s": 0.02, "town": 0.02}
        options = {"sensitive": ["s", "town"], "columns": ["x1", "x2"]}
        fitted = quiet_fit(PrivacyFunnelTransformer(budgets, **options), rows)
        assert fitted.summary_.lead().count("This does not cover") == 1
        assert "about s by up to" in fitted.summary_.not_covered()

    @pytest.mark.parametrize("epsilon", [0, math.inf])
    def test_no_multiple_of_nothing_and_of_everything(self, exclusive_or, epsilon):
        fitted = quiet_fit(PrivacyFunnelTransformer(epsilon, sensitive="s"), exclusive_or)
        text = " ".join(str(PrivacyReport.from_estimator(fitted, with_curve=False)).split())
        assert ("Decide whether the recipient" in text) == (epsilon == 0)
        assert ("This does not cover" in text) == (epsilon == 0)

    def test_choose_and_sanitize(self, exclusive_or, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        exclusive_or.to_csv("in.csv", index=False)
        asked = ["--sensitive", "s", "--columns", "x1,x2", "--confidence", "none"]
        assert main(["sanitize", "in.csv", "out.csv", *asked, "--epsilon", "0.02"]) == 0
        assert capsys.readouterr().out.count(self.SAID.partition(";")[0].format("x1")) == 1
        assert main(["choose", "in.csv", *asked, "--max-shift", "0.05"]) == 0
        assert "This does not cover people" in capsys.readouterr().out
        assert main(["choose", "in.csv", *asked, "--max-shift", "0.05", "--json"]) == 0
        (secret,) = json.loads(capsys.readouterr().out)["secrets"]
        assert secret["known_columns"]["x1"] == pytest.approx(math.log(2))

    def test_choose_knows_columns_beside(self, exclusive_or, tmp_path, monkeypatch, capsys):
        monkeypatch.chdir(tmp_path)
        exclusive_or.to_csv("in.csv", index=False)
        asked = ["--sensitive", "s", "--columns", "x1", "--beside", "x2", "--confidence", "none"]
        assert main(["choose", "in.csv", *asked, "--keep-utility", "0.5", "--json"]) == 0
        (secret,) = json.loads(capsys.readouterr().out)["secrets"]
        assert secret["known_columns"].keys() == {"x1", "x2"}
