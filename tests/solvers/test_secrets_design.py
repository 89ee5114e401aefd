"""Several secrets with budgets of their own: against closed forms, grids and naive leakages."""

import numpy as np
import pytest
from naive_leakages import NAIVE, RNG, leakages, on_a_grid, tables
from scipy.special import rel_entr
from scripts import run_script

from skprivacy import design_mechanism, privacy_utility_path
from skprivacy.budgets import mechanism_for_utility


def assert_within(mechanism, each, budgets, measure, scope):
    """Check every budget of every secret from the floats of the channel."""
    for name, table in each.items():
        found, p_y = leakages(mechanism.channel, table, measure)
        if scope == "per_output":
            reached = found.max()
        elif measure == "max_lift":
            reached = np.log(p_y[p_y > 0] @ np.exp(found))
        else:
            reached = p_y[p_y > 0] @ found
        assert reached <= budgets[name] * (1 + 1e-8) + 1e-11
        assert mechanism.secrets[name].leakage_in(scope) == pytest.approx(reached, abs=1e-12)


class TestOptimum:
    def test_two_symbols_in_closed_form(self):
        """The allowed posteriors are the intersection of two intervals; its ends are used."""
        sex, race = np.array([[0.3, 0.1], [0.2, 0.4]]), np.array([[0.1, 0.4], [0.4, 0.1]])
        budgets = {"sex": 0.01, "race": 0.03}
        mechanism = design_mechanism({"sex": sex, "race": race}, budgets)
        grid = np.linspace(0, 1, 200_001)
        allowed = np.ones(len(grid), dtype=bool)
        for name, table in (("sex", sex), ("race", race)):
            given = np.outer(grid, table[:, 0] / 0.5) + np.outer(1 - grid, table[:, 1] / 0.5)
            allowed &= rel_entr(given, table.sum(axis=1)).sum(axis=1) <= budgets[name]
        low, high = grid[allowed][[0, -1]]
        weight = (0.5 - low) / (high - low)
        entropies = [-rel_entr([w, 1 - w], 1.0).sum() for w in (low, high)]
        most = np.log(2) - (1 - weight) * entropies[0] - weight * entropies[1]
        assert mechanism.utility == pytest.approx(most, abs=1e-5)
        assert mechanism.gap < 1e-5

    @pytest.mark.parametrize("scope", ["per_output", "average"])
    @pytest.mark.parametrize("seed", range(3))
    def test_three_symbols_on_a_grid(self, seed, scope):
        each, _ = tables(seed, n_x=3)
        budgets = {"s0": 0.004, "s1": 0.02}
        mechanism = design_mechanism(each, budgets, scope=scope)
        reached = on_a_grid(each, budgets, scope, steps=150)
        assert reached <= mechanism.upper_bound + 1e-9
        assert mechanism.utility >= reached - 1e-5
        assert mechanism.utility == pytest.approx(reached, abs=0.01)
        assert mechanism.gap < 1e-4

    @pytest.mark.parametrize("scope", ["per_output", "average"])
    def test_one_secret_where_the_other_has_no_budget(self, scope):
        each, _ = tables(4)
        both = design_mechanism(each, {"s0": 0.01, "s1": np.inf}, scope=scope)
        alone = design_mechanism(each["s0"], 0.01, scope=scope)
        np.testing.assert_array_equal(both.channel, alone.channel)
        assert both.upper_bound == alone.upper_bound

    @pytest.mark.parametrize("scope", ["per_output", "average"])
    def test_only_a_joint_secret(self, scope):
        _, joint = tables(5)
        several = design_mechanism({("a", "b"): joint}, {("a", "b"): 0.02}, scope=scope)
        np.testing.assert_array_equal(
            several.channel, design_mechanism(joint, 0.02, scope=scope).channel
        )

    @pytest.mark.parametrize("measure", list(NAIVE))
    def test_never_below_the_joint_budget_that_implies_all(self, measure):
        each, joint = tables(6)
        budgets = {"s0": 0.03, "s1": 0.06}
        separate = design_mechanism(each, budgets, measure=measure)
        together = design_mechanism(joint, 0.03, measure=measure)
        assert separate.utility >= together.utility - 1e-9
        assert separate.upper_bound >= together.utility - 1e-9

    def test_no_budget_at_all_releases_x_itself(self):
        each, _ = tables(7)
        mechanism = design_mechanism(each, dict.fromkeys(each, np.inf))
        assert mechanism.normalized_utility == pytest.approx(1)

    def test_perfect_privacy_of_all(self):
        each, _ = tables(8, n_x=8)
        mechanism = design_mechanism(each, dict.fromkeys(each, 0.0))
        assert mechanism.utility > 0.1
        assert mechanism.gap < 1e-4
        for name, table in each.items():
            assert leakages(mechanism.channel, table, "max_lift")[0].max() < 1e-11, name

    @pytest.mark.filterwarnings("ignore:The search has stopped")  # it is told how far at most
    @pytest.mark.parametrize("measure", list(NAIVE))
    def test_perfect_privacy_of_one(self, measure):
        each, _ = tables(9, n_x=7)
        budgets = {"s0": 0.05, "s1": 0.0}
        mechanism = design_mechanism(each, budgets, measure=measure)
        assert_within(mechanism, each, budgets, measure, "per_output")
        strict = design_mechanism(each, dict.fromkeys(each, 0.0), measure=measure)
        assert strict.utility - 1e-6 <= mechanism.utility <= mechanism.upper_bound

    def test_exclusive_or(self):
        """Each secret alone is safe in Y = X, and both together are told."""
        alone, joint = np.full((2, 2), 0.25), np.array([[1, 0], [0, 1], [0, 1], [1, 0]]) / 4
        mechanism = design_mechanism({"one": alone, "other": alone}, {"one": 0, "other": 0})
        both = mechanism.renamed(together=(joint, ("00", "01", "10", "11")))
        assert mechanism.normalized_utility == pytest.approx(1)
        assert both.together.max_leakage == pytest.approx(np.log(2))


@pytest.mark.parametrize("scope", ["per_output", "average"])
@pytest.mark.parametrize("measure", list(NAIVE))
@pytest.mark.parametrize("n_tables", [5, pytest.param(9, marks=pytest.mark.slow)])
def test_every_budget_is_kept(measure, scope, n_tables):
    """Against leakages computed by hand; thousands of cases are in benchmarks/several_secrets.py."""
    for seed in range(n_tables):
        rng = RNG([seed, len(measure), len(scope)])
        sizes = tuple(rng.integers(2, 4, size=2))
        each, _ = tables(seed, sizes, n_x=int(rng.integers(3, 6)), power=rng.choice([1, 3]))
        budgets = {name: 10 ** rng.uniform(-3, -0.5) for name in each}
        utility = rng.choice(["mutual_information", "guess"])
        mechanism = design_mechanism(each, budgets, measure=measure, scope=scope, utility=utility)
        assert_within(mechanism, each, budgets, measure, scope)
        assert mechanism.utility <= mechanism.upper_bound + 1e-12


@pytest.mark.slow
def test_thousands_of_designs(capsys):
    """Those of both kinds that the benchmark checks by hand."""
    run_script("benchmarks/several_secrets.py")
    printed = capsys.readouterr().out
    assert printed.count("2000 random designs") == printed.count(": 0 exceed a budget") == 2


class TestInterface:
    def test_figures_of_one_secret_are_asked_of_it(self):
        each, _ = tables(0)
        mechanism = design_mechanism(each, {"s0": 0.01, "s1": 0.02})
        for name in ("p_sx", "leakage", "max_leakage", "s_labels"):
            with pytest.raises(AttributeError, match=rf"mechanism.secrets\['s0'\].{name}"):
                getattr(mechanism, name)
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            mechanism.nonsense  # noqa: B018
        assert mechanism.secrets["s1"].epsilon == 0.02
        assert mechanism.epsilon == {"s0": 0.01, "s1": 0.02}

    def test_a_path_takes_dicts(self):
        each, _ = tables(1)
        budgets = [{"s0": 0.1, "s1": 0.1}, {"s0": 0.01, "s1": 0.1}, {"s0": 0.1, "s1": 0.01}]
        path = privacy_utility_path(each, budgets)
        assert [mechanism.epsilon for mechanism in path] == budgets
        assert path[0].utility >= max(path[1].utility, path[2].utility)

    def test_the_smallest_factor(self):
        each, _ = tables(2)
        mechanism = mechanism_for_utility(each, 0.6, proportions={"s0": 1, "s1": 10})
        assert mechanism.epsilon["s1"] == pytest.approx(10 * mechanism.epsilon["s0"])
        assert 0.6 <= mechanism.normalized_utility < 0.601

    def test_confidence_is_shared(self):
        each, _ = tables(3)
        counts = {name: np.round(4000 * table) for name, table in each.items()}
        x = sum(counts["s0"])
        counts["s1"][0] += x - counts["s1"].sum(axis=0)  # the same rows
        mechanism = design_mechanism(counts, {"s0": 0.01, "s1": 0.05}, confidence=0.95)
        assert mechanism.confidence == 0.95
        for secret in mechanism.secrets.values():
            assert secret.confidence == pytest.approx(0.975)
            assert secret.population_limit.max_leakage <= secret.epsilon
        assert mechanism.normalized_utility > 0.3


class TestBadInput:
    each, _ = tables(0)

    @pytest.mark.parametrize(
        ("budgets", "message"),
        [
            ({"s0": 0.1}, "no budget for the secret 's1'"),
            ({"s0": 0.1, "s1": 0.1, "x": 1}, "a budget for 'x', which is not one of the secrets"),
            (0.1, "must be a dict with a budget for each of"),
            ({"s0": 0.1, "s1": -1}, "range"),
        ],
    )
    def test_budgets(self, budgets, message):
        with pytest.raises((ValueError, TypeError), match=message):
            design_mechanism(self.each, budgets)

    def test_budgets_of_one_table(self):
        with pytest.raises(TypeError, match="'epsilon' parameter .* a number"):
            design_mechanism(self.each["s0"], {"s0": 0.1})

    def test_marginals_that_disagree(self):
        other = {**self.each, "s1": self.each["s1"][:, ::-1]}
        with pytest.raises(ValueError, match=r"marginals of X differ by up to 0\."):
            design_mechanism(other, {"s0": 0.1, "s1": 0.1})

    def test_proportions(self):
        with pytest.raises(TypeError, match="'proportions' parameter of mechanism_for_utility"):
            mechanism_for_utility(self.each, 0.5)

    @pytest.mark.parametrize("solver", ["watchdog", "randomized_response"])
    def test_a_solver_that_cannot_says_so(self, solver):
        with pytest.raises(
            ValueError, match=f"{solver!r} .* scope='average' with several secrets"
        ):
            design_mechanism(self.each, {"s0": 1e-3, "s1": 1e-3}, scope="average", solver=solver)
        with pytest.raises(ValueError, match="needs a single secret"):
            design_mechanism(
                self.each, {"s0": 1e-3, "s1": 1e-3}, measure="chi2", solver="chi2_design"
            )
