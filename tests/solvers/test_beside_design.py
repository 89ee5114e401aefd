"""Designs beside columns that are published: no output mixes beside, every pair is in budget."""

import numpy as np
import pytest
from naive_leakages import NAIVE, RNG, leakages, on_a_grid, tables
from scipy.special import rel_entr

from skprivacy import design_mechanism
from skprivacy.budgets import mechanism_for_utility
from skprivacy.utilities import Distortion

BESIDE = ["old", "old", "old", "young", "young", "young"]


def joint_table(seed, n_x=6):
    return tables(seed, n_x=n_x, power=1)[1]


def mixes(channel, beside):
    return any(len({beside[x] for x in np.flatnonzero(column)}) > 1 for column in channel.T)


@pytest.mark.parametrize("scope", ["per_output", "average"])
@pytest.mark.parametrize("measure", list(NAIVE))
def test_every_pair_is_within_the_budget(measure, scope):
    beside = ["old", "old", "young", "young"]
    for seed in range(6):
        rng = RNG([seed, len(measure)])
        p_sx = joint_table(seed, n_x=4)
        p_sz = np.stack([p_sx[:, :2].sum(axis=1), p_sx[:, 2:].sum(axis=1)], axis=1)
        epsilon = leakages(np.eye(2), p_sz, measure)[0].max() * rng.uniform(1.01, 2)
        asked = {"measure": measure, "scope": scope, "beside": beside}
        utility = rng.choice(["mutual_information", "guess"])
        mechanism = design_mechanism(p_sx, epsilon, utility=utility, **asked)
        assert not mixes(mechanism.channel, beside)
        found, p_y = leakages(mechanism.channel, p_sx, measure)
        if scope == "average":
            found = p_y @ (np.exp(found) if measure == "max_lift" else found)
            found = np.log(found) if measure == "max_lift" else found
        assert np.max(found) <= epsilon * (1 + 1e-8) + 1e-11
        assert mechanism.utility <= mechanism.upper_bound + 1e-12
        assert 0 <= mechanism.normalized_utility <= 1 + 1e-9


@pytest.mark.parametrize("scope", ["per_output", "average"])
@pytest.mark.parametrize("seed", range(3))
def test_three_symbols_on_a_grid(seed, scope):
    p_sx, beside = joint_table(seed, n_x=3), np.array([0, 0, 1])
    prior = p_sx.sum(axis=1)
    p_sz = np.stack([p_sx[:, :2].sum(axis=1), p_sx[:, 2]], axis=1)
    told = rel_entr(p_sz / p_sz.sum(axis=0), prior[:, None]).sum(axis=0)
    epsilon = 1.1 * (told.max() if scope == "per_output" else p_sz.sum(axis=0) @ told)
    mechanism = design_mechanism(p_sx, epsilon, beside=beside, scope=scope)
    reached = on_a_grid({"s": p_sx}, {"s": epsilon}, scope, 300, beside)
    assert reached <= mechanism.upper_bound + 1e-9
    assert mechanism.utility == pytest.approx(reached, abs=0.01)
    assert mechanism.utility >= reached - 1e-5
    assert mechanism.gap < 1e-4


def test_utility_is_what_is_told_beyond_the_group():
    p_sx = joint_table(1)
    mechanism = design_mechanism(p_sx, 10.0, beside=BESIDE)
    assert mechanism.normalized_utility == pytest.approx(1)
    p_sz = np.stack([p_sx[:, :3].sum(axis=1), p_sx[:, 3:].sum(axis=1)], axis=1)
    least = leakages(np.eye(2), p_sz, "kl")[0].max()
    one_each = design_mechanism(p_sx, least * 1.01, beside=BESIDE, max_outputs=2)
    assert one_each.normalized_utility == pytest.approx(0, abs=1e-9)


def test_outputs_that_rounding_or_absence_leaves_open_tell_the_group_only():
    p_sx = np.insert(joint_table(2), 0, 0.0, axis=1)  # a symbol that does not occur
    mechanism = design_mechanism(p_sx, 0.3, beside=["young", *BESIDE])
    np.testing.assert_allclose(mechanism.channel[0], mechanism.independent[0])
    assert not mixes(mechanism.channel, ["young", *BESIDE])


def test_several_secrets_beside_a_column():
    each, _ = tables(3, power=1)
    budgets = {"s0": 0.3, "s1": 0.5}
    for scope in ("per_output", "average"):
        mechanism = design_mechanism(each, budgets, beside=BESIDE, scope=scope)
        assert not mixes(mechanism.channel, BESIDE)
        for name, secret in mechanism.secrets.items():
            assert secret.leakage_in(scope) <= budgets[name] * (1 + 1e-9)
        assert mechanism.gap < 2e-3


def test_a_loss_never_reads_one_group_as_another():
    loss = np.abs(np.subtract.outer(range(6), range(6)))
    mechanism = design_mechanism(joint_table(4), 0.2, utility=Distortion(loss), beside=BESIDE)
    assert not mixes(mechanism.channel, BESIDE)
    assert mechanism.gap < 1e-3


def test_a_budget_for_the_population():
    counts = np.round(5000 * joint_table(5))
    mechanism = design_mechanism(counts, 0.25, beside=BESIDE, confidence=0.95)
    assert mechanism.population_limit.max_leakage <= 0.25
    assert not mixes(mechanism.channel, BESIDE)
    assert mechanism.normalized_utility > 0.2
    with pytest.raises(ValueError, match="rows do not exclude that"):
        design_mechanism(counts, 0.02, beside=BESIDE, confidence=0.95)


def test_the_smallest_budget_starts_with_what_groups_tell():
    p_sx = joint_table(6)
    mechanism = mechanism_for_utility(p_sx, 0.5, beside=BESIDE)
    assert 0.5 <= mechanism.normalized_utility < 0.501
    least = mechanism_for_utility(p_sx, 0.0, beside=BESIDE)
    with pytest.raises(ValueError, match="No mechanism keeps"):
        design_mechanism(p_sx, least.epsilon * 0.999, beside=BESIDE)


class TestBadInput:
    p_sx = np.array([[0.4, 0.05, 0.05], [0.05, 0.05, 0.4]])

    def test_a_group_that_tells_too_much(self):
        message = r"the value 'b' says 0\.\d+ about S by itself. Set epsilon to at least 0\.\d+"
        with pytest.raises(ValueError, match=message) as caught:
            design_mechanism(self.p_sx, 0.01, beside=["a", "a", "b"])
        smallest = float(str(caught.value).partition("at least ")[2].partition(",")[0])
        design_mechanism(self.p_sx, smallest, beside=["a", "a", "b"])

    def test_on_average(self):
        with pytest.raises(ValueError, match=r"their values say 0\.\d+ on average"):
            design_mechanism(self.p_sx, 0.01, beside=["a", "a", "b"], scope="average")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"beside": [0, 1]}, "a value for each of the 3 symbols"),
            ({"beside": "abc"}, "a value for each of the 3 symbols"),
            ({"beside": [0, 1, 2], "max_outputs": 2}, "at least 3, one for each value"),
        ],
    )
    def test_groups(self, options, message):
        with pytest.raises(ValueError, match=message):
            design_mechanism(self.p_sx, 0.9, **options)

    def test_a_group_that_does_not_occur(self):
        p_sx = np.hstack([self.p_sx, np.zeros((2, 1))])
        with pytest.raises(ValueError, match="the value 'c'"):
            design_mechanism(p_sx, 0.9, beside=["a", "a", "b", "c"])
