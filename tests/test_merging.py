"""Fewer outputs: merged one cheap pair after another, without ever adding leakage."""

import json

import numpy as np
import pandas as pd
import pytest
from example_tables import funnel, people, quiet_fit
from reference import random_joint

from skprivacy import compare_mechanisms, design_mechanism, privacy_utility_path
from skprivacy.budgets import mechanism_for_utility
from skprivacy.channels import merged_to, tidied
from skprivacy.cli import main
from skprivacy.utilities import Guess, MutualInformation, Target

JOINT = np.random.default_rng(3).random((3, 7))


def naive(channel, p_x, utility, n_outputs):
    """Try every pair, each time anew."""
    while channel.shape[1] > n_outputs:
        n = channel.shape[1]
        tried = []
        for i in range(n):
            for j in range(i + 1, n):
                merged = np.delete(channel, j, axis=1)
                merged[:, i] += channel[:, j]
                tried.append((utility.of_channel(p_x, merged), merged))
        channel = max(tried, key=lambda pair: pair[0])[1]
    return channel


@pytest.mark.parametrize("n_outputs", [1, 2, 4])
@pytest.mark.parametrize(
    "utility",
    [MutualInformation(), Guess(), Target(np.random.default_rng(0).random((3, 6)))],
    ids=["information", "guess", "target"],
)
def test_the_pair_that_costs_least_is_merged(utility, n_outputs):
    rng = np.random.default_rng(1)
    for _ in range(5):
        channel, p_x = rng.dirichlet(np.full(7, 0.3), size=6), rng.dirichlet(np.ones(6))
        merged = merged_to(channel, p_x, utility, n_outputs)
        assert merged.shape == (6, n_outputs)
        np.testing.assert_allclose(merged.sum(axis=1), 1)
        expected = utility.of_channel(p_x, naive(channel, p_x, utility, n_outputs))
        assert utility.of_channel(p_x, merged) == pytest.approx(expected, abs=1e-12)


def test_an_output_of_a_loss_that_hardly_ever_occurs_is_left_out():
    channel = np.array([[1 - 1e-12, 1e-12, 0.0], [0.0, 0.0, 1.0], [0.3, 0.0, 0.7]])
    merged = tidied(channel, np.full(3, 1 / 3), Guess(), 0.0)
    np.testing.assert_allclose(merged, [[1.0, 0.0], [0.0, 1.0], [0.3, 0.7]], atol=1e-15)


def test_an_output_that_never_occurs_is_merged_for_nothing():
    channel = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    merged = merged_to(channel, np.array([0.5, 0.5]), MutualInformation(), 2)
    assert MutualInformation().of_channel(np.array([0.5, 0.5]), merged) == pytest.approx(np.log(2))


@pytest.mark.parametrize("scope", ["per_output", "average"])
@pytest.mark.parametrize("measure", ["kl", "max_lift", "parity"])
def test_a_design_with_few_outputs_keeps_its_budget(measure, scope):
    rng = np.random.default_rng(2)
    for _ in range(5):
        joint = random_joint(rng, largest=(4, 7))
        options = {"measure": measure, "scope": scope}
        free = design_mechanism(joint, 0.03, **options)
        few = design_mechanism(joint, 0.03, max_outputs=2, **options)
        assert len(few.y_labels) <= 2
        assert few.leakage_in(scope) <= 0.03 * (1 + 1e-9) + 1e-12
        assert few.utility <= free.utility + 1e-9
        assert few.upper_bound >= free.utility - 1e-9


def test_every_design_has_the_option():
    (one,) = privacy_utility_path(JOINT, [0.02], max_outputs=3)
    assert one.utility == design_mechanism(JOINT, 0.02, max_outputs=3).utility
    assert len(mechanism_for_utility(JOINT, 0.3, max_outputs=3).y_labels) <= 3
    table = compare_mechanisms(JOINT, [0.02], ["auto", "watchdog"], max_outputs=3)
    assert table["outputs"].max() <= 3
    path = privacy_utility_path(JOINT, [0.001, 0.01, 0.1, 9.0], max_outputs=3)
    assert (np.diff([each.utility for each in path]) >= 0).all()
    fitted = quiet_fit(funnel(max_outputs=2), people())
    assert len(fitted.mechanism_.y_labels) == 2
    assert fitted.transform(people())["band"].nunique() <= 2


def test_a_smaller_number_after_batches_takes_effect():
    streamed = funnel().partial_fit(people())
    assert len(streamed.mechanism_.y_labels) > 2
    assert len(streamed.set_params(max_outputs=2).mechanism_.y_labels) == 2


def test_the_option_of_the_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    people().to_csv("in.csv", index=False)
    design = ["--sensitive", "sex", "--columns", "band", "--max-outputs", "2"]
    assert main(["sanitize", "in.csv", "out.csv", *design, "--epsilon", "0.02", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"] == 2
    assert pd.read_csv("out.csv")["band"].nunique() == 2
    assert main(["curve", "in.csv", *design, "--epsilons", "0.02", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["curve"][0]["outputs"] == 2
    assert main(["choose", "in.csv", *design, "--keep-utility", "0.99"]) == 1
    assert "Ask for less, or allow more outputs: --max-outputs 2." in capsys.readouterr().err


@pytest.mark.parametrize(("value", "error"), [(0, ValueError), (2.5, TypeError), ("3", TypeError)])
def test_bad_numbers(value, error):
    with pytest.raises(error, match="'max_outputs' parameter of design_mechanism"):
        design_mechanism(JOINT, 0.1, max_outputs=value)
