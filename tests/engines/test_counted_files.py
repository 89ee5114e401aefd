"""One count of a file for many designs, files that are open, several releases."""

import io
from itertools import product

import numpy as np
import pandas as pd
import pytest

from skprivacy import PrivacyFunnelTransformer, PrivacyLeakWarning, repetition
from skprivacy.exceptions import BesideError
from skprivacy.files import count_file, fit_file, leakage_together, transform_file
from skprivacy.measures import KL
from skprivacy.metrics import information_by_column, mutual_information
from skprivacy.progress import watched

SCALE = ["low", "medium", "high"]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    n = 1200
    s = rng.integers(2, size=n)
    return pd.DataFrame(
        {
            "s": np.array(["f", "m"])[s],
            "x": rng.integers(6, size=n) + s,
            "scale": np.array(SCALE)[np.minimum(2, rng.poisson(0.6 + 0.5 * s))],
            "z": np.array(["u", "v"])[rng.binomial(1, 0.4 + 0.2 * s)],
            "v": np.array(["n", "y"])[rng.binomial(1, 0.3 + 0.2 * s)],
        }
    )


@pytest.fixture(scope="module", params=["rows.csv", "rows.tsv.gz", "rows.parquet"])
def path(rows, tmp_path_factory, request):
    path = tmp_path_factory.mktemp("rows") / request.param
    if path.suffix == ".parquet":
        rows.to_parquet(path)
    else:
        rows.to_csv(path, index=False, sep="\t" if ".tsv" in path.suffixes else ",")
    return path


@pytest.fixture(scope="module")
def text_file(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "rows.csv"
    rows.to_csv(path, index=False)
    return path


def funnel(**parameters):
    given = {"sensitive": ["s"], "columns": ["x", "scale"]}
    return PrivacyFunnelTransformer(**(given | parameters))


def test_every_design_is_that_of_its_own_fit(path):
    counted = count_file(funnel(utility="target"), path, target="v")
    assert counted.n_rows == 1200
    assert counted.n_combinations == 21
    for found, epsilon in zip(counted.path([0.02, 0.1]), [0.02, 0.1], strict=True):
        alone = fit_file(funnel(epsilon=epsilon, utility="target"), path, target="v")
        assert np.array_equal(found.mechanism_.channel, alone.mechanism_.channel)
        assert found.summary_.to_dict() == alone.summary_.to_dict()
        assert found.n_samples_seen_ == 1200


def test_a_largest_shift_takes_the_place_of_a_budget(text_file):
    counted = count_file(funnel(), text_file)
    fitted = counted.fit(max_shift=0.1, max_factor=1.1)
    moves = fitted.summary_.secrets[None].ranges
    assert (moves["allowed_high"] - moves["prior"] <= 0.1).all()
    assert (moves["allowed_high"] <= 1.1 * moves["prior"]).all()
    assert fitted.epsilon == counted.epsilon_for_shift(0.1, 1.1)
    for wrong in ({}, {"epsilon": 0.1, "max_shift": 0.1}):
        with pytest.raises(ValueError, match="not both"):
            counted.fit(**wrong)


def test_budgets_are_asked_for_when_they_are_needed(text_file):
    asked = []

    def budgets():
        for epsilon in (0.1, 0.2, 0.3):
            asked.append(epsilon)
            yield epsilon

    path = count_file(funnel(columns=["x"]), text_file).path(budgets())
    assert next(path).epsilon == 0.1
    assert asked == [0.1]


@pytest.mark.parametrize("confidence", [None, 0.95])
def test_published_columns_need_the_smallest_budget(confidence, text_file):
    beside = funnel(columns=["x"], beside=["z"], confidence=confidence)
    counted = count_file(beside, text_file)
    counted.fit(counted.smallest_epsilon)
    with pytest.raises(BesideError):
        counted.fit(0.9 * counted.smallest_epsilon)
    assert count_file(funnel(), text_file).smallest_epsilon == 0


def test_an_open_file_is_read_and_stays_open(path, tmp_path):
    with open(path, "rb") as file:
        fitted = fit_file(funnel(), file)
        assert transform_file(fitted, file, tmp_path / "out.csv") == 1200
        assert not file.closed
    alone = fit_file(funnel(), path)
    assert np.array_equal(fitted.mechanism_.channel, alone.mechanism_.channel)


def test_a_stream_of_bytes_needs_a_format(rows):
    file = io.BytesIO(rows.to_csv(index=False).encode())
    assert fit_file(funnel(), file, format="csv").n_samples_seen_ == 1200
    with pytest.raises(ValueError, match="no suffix"):
        fit_file(funnel(), file)


def test_texts_count_as_in_an_ordered_frame(rows, path):
    given = {"columns": ["scale"], "utility": "distortion", "epsilon": 0.05}
    fitted = count_file(funnel(**given, ordered={"scale": SCALE}), path).fit(0.05)
    dtype = pd.CategoricalDtype(SCALE, ordered=True)
    framed = funnel(**given).fit(rows.assign(scale=rows["scale"].astype(dtype)))
    assert fitted.mechanism_.x_labels == tuple(SCALE)
    assert np.array_equal(fitted.mechanism_.channel, framed.mechanism_.channel)
    assert fitted.fidelity_.columns["mean_shift"].notna().all()
    together = leakage_together([fitted], path)
    assert together.max_leakage == pytest.approx(fitted.mechanism_.max_leakage)


def naive_together(funnels, rows):
    """Return KL of the worst pair of outputs, from the rows one by one."""
    s = (rows["s"] == "m").to_numpy()
    prior, worst, given_row = np.bincount(s) / len(s), 0.0, []
    for fitted in funnels:
        labels, symbols = list(fitted.mechanism_.x_labels), fitted.symbols(rows)
        single = symbols.iloc[:, 0] if symbols.shape[1] == 1 else symbols.apply(tuple, axis=1)
        given_row.append(fitted.mechanism_.channel[[labels.index(each) for each in single]])
    for outputs in product(*(range(each.shape[1]) for each in given_row)):
        of_row = np.prod([each[:, y] for each, y in zip(given_row, outputs, strict=True)], axis=0)
        joint = np.array([of_row[~s].sum(), of_row[s].sum()])
        if joint.sum() > 1e-9:
            worst = max(worst, float(KL().leakage(joint / joint.sum(), prior)))
    return worst


def test_what_two_releases_reveal_together(rows, text_file):
    funnels = [
        fit_file(funnel(columns=columns, epsilon=epsilon), text_file)
        for columns, epsilon in [(["x"], 0.02), (["x", "scale"], 0.05)]
    ]
    found = leakage_together(funnels, text_file)
    assert found.is_exact
    assert found.max_leakage == pytest.approx(naive_together(funnels, rows), rel=1e-9)
    assert found.max_leakage > 0.05
    alone = leakage_together(funnels[1:], text_file)
    assert alone.max_leakage == pytest.approx(funnels[1].mechanism_.max_leakage)
    loaded = PrivacyFunnelTransformer.from_json(funnels[0].to_json())
    with pytest.raises(ValueError, match="must be fitted, not loaded"):
        leakage_together([loaded], text_file)


def test_too_many_outputs_are_bounded(text_file, monkeypatch):
    funnels = [fit_file(funnel(columns=["x"], epsilon=0.05), text_file)] * 2
    exact = leakage_together(funnels, text_file)
    monkeypatch.setattr(repetition, "MOST_CELLS", 1)
    bound = leakage_together(funnels, text_file)
    assert not bound.is_exact
    assert bound.max_leakage >= exact.max_leakage
    assert bound.average_leakage >= exact.average_leakage
    assert "<=" in repr(bound)


@pytest.mark.filterwarnings(f"ignore::{PrivacyLeakWarning.__module__}.PrivacyLeakWarning")
def test_swaps_by_column_are_the_joint_of_values(rows):
    fitted = funnel(utility="distortion", n_bins=3, epsilon=0.05).fit(rows)
    symbols, mechanism = fitted.symbols(rows), fitted.mechanism_
    assert {*symbols["x"]} == {*fitted.categories_[0]}
    joint = mechanism.p_x[:, None] * mechanism.channel
    for i, (name, swaps) in enumerate(fitted.swaps_.items()):
        naive = pd.DataFrame(0.0, swaps.index, swaps.columns)
        for x, row in zip(mechanism.x_labels, joint, strict=True):
            for y, share in zip(mechanism.y_labels, row, strict=True):
                naive.loc[str(x[i]), str(y[i])] += share
        assert np.allclose(naive, swaps)
        kept = np.diag(swaps.iloc[:, :-1]).sum()
        assert kept == pytest.approx(fitted.fidelity_.columns.loc[name, "unchanged"])
        assert swaps.sum(axis=1).to_numpy() == pytest.approx(
            symbols[name].value_counts(normalize=True)[list(swaps.index)].to_numpy()
        )


def test_what_each_column_gives_away(rows):
    found = information_by_column(rows.drop(columns="s"), rows["s"])
    shares = rows["s"].value_counts(normalize=True).to_numpy()
    entropy = -(shares * np.log(shares)).sum()
    for name in ("x", "scale", "z"):
        assert found[name] == pytest.approx(mutual_information(rows["s"], rows[name]) / entropy)
    odd = pd.DataFrame({"same": rows["s"], "lists": [[1]] * len(rows), "one": 1})
    found = information_by_column(odd, rows["s"])
    assert found["same"] == pytest.approx(1, abs=0.01)
    assert np.isnan(found["lists"])
    assert found["one"] == 0
    assert information_by_column(odd, odd["one"]).isna().all()


def test_progress_can_cancel_and_leaves_the_transformer_as_it_was(text_file, tmp_path):
    fitted = fit_file(funnel(), text_file)
    before = fitted.mechanism_

    def cancel(what):
        raise InterruptedError(what)

    with pytest.raises(InterruptedError), watched(cancel):
        fit_file(fitted, text_file)
    assert fitted.mechanism_ is before
    with pytest.raises(InterruptedError), watched(cancel):
        transform_file(fitted, text_file, tmp_path / "out.csv")
    assert not [*tmp_path.iterdir()]
