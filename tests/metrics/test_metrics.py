"""Metrics on samples: numbers of known tables, and intervals that cover."""

import numpy as np
import pandas as pd
import pytest
from example_tables import funnel, people
from numpy.testing import assert_allclose
from scipy.stats import binomtest
from sklearn.metrics import mutual_info_score

from skprivacy import PrivacyFunnelTransformer, design_mechanism, metrics
from skprivacy.budgets import epsilon_for_shift
from skprivacy.metrics import population_leakage
from skprivacy.metrics.information import interval, jackknife, plain
from skprivacy.utilities import mutual_information as exact_information

RNG = np.random.default_rng


def rows_of(counts):
    """Return columns with the given table of counts."""
    s, y = np.indices(counts.shape)
    return np.repeat(s.ravel(), counts.ravel()), np.repeat(y.ravel(), counts.ravel())


COUNTS = np.array([[30, 10, 5], [10, 20, 25]])
S, Y = rows_of(COUNTS)


def assert_covers(covered, nominal, significance=1e-3):
    """Fail if the truth was covered significantly less often than it should be."""
    covered = np.asarray(covered)
    test = binomtest(int(covered.sum()), len(covered), nominal, alternative="less")
    assert test.pvalue > significance, f"covered {covered.mean():.3f} of {len(covered)}"


def joint_of(rng, shape, strength):
    """Return a joint between independence (0) and random entries (1)."""
    joint = rng.random(shape)
    joint /= joint.sum()
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    return strength * joint + (1 - strength) * independent


TABLES = [
    (shape, strength, n)
    for shape in [(2, 2), (4, 7), (5, 16)]
    for strength in (0.0, 0.1, 0.5, 1.0)
    for n in (100, 1000)
]  # fmt: skip
DESIGNS = [
    (measure, scope, n)
    for measure in ("kl", "chi2", "max_lift")
    for scope in ("per_output", "average")
    for n in (300, 3000)
]


class TestNumbers:
    def test_mutual_information(self):
        plain_estimate = metrics.mutual_information(S, Y, corrected=False)
        assert_allclose(plain_estimate, mutual_info_score(S, Y))
        assert metrics.mutual_information(S, Y) < plain_estimate

    def test_the_jackknife_leaves_out_one_row_at_a_time(self):
        n = len(S)
        without = [mutual_info_score(np.delete(S, i), np.delete(Y, i)) for i in range(n)]
        estimate, variance = jackknife(COUNTS)
        assert_allclose(estimate, n * mutual_info_score(S, Y) - (n - 1) * np.mean(without))
        assert_allclose(variance, (n - 1) * np.var(without))

    def test_against_a_mechanism_with_the_same_joint(self):
        # Y = X: the metrics are the measures of the empirical joint.
        mechanism = design_mechanism(COUNTS, np.inf)
        order = [int(np.flatnonzero(column)[0]) for column in mechanism.channel.T]
        for measure in ("l1", "chi2", "max_lift", "alpha_lift", "kl"):
            figures = design_mechanism(COUNTS, np.inf, measure=measure)
            each = metrics.leakage_per_output(S, Y, measure=measure)
            assert_allclose(each[order], figures.leakage)
            for scope in ("per_output", "average"):
                ours = metrics.leakage(S, Y, measure=measure, scope=scope)
                assert_allclose(ours, figures.leakage_in(scope))
        assert_allclose(metrics.leakage(S, Y), mechanism.max_leakage)

    def test_series_are_labelled_by_released_values(self):
        each = metrics.leakage_per_output(S, np.array(["a", "b", "c"])[Y], measure="max_lift")
        assert each.index.tolist() == ["a", "b", "c"]
        p_s = COUNTS.sum(axis=1) / COUNTS.sum()
        assert_allclose(np.exp(each), (COUNTS / COUNTS.sum(axis=0) / p_s[:, None]).max(axis=0))

    def test_several_columns_are_taken_jointly(self):
        frame = pd.DataFrame({"one": Y, "two": [None, "u"] * (len(Y) // 2)})
        joint = frame["one"].astype(str) + frame["two"].fillna("none")
        assert_allclose(metrics.mutual_information(S, frame), metrics.mutual_information(S, joint))

    def test_kinds_of_columns(self):
        pl = pytest.importorskip("polars")
        expected = metrics.mutual_information(S, Y)
        for kind in (list, pd.Series, pl.Series, lambda y: pd.Series(y).astype("category")):
            assert_allclose(metrics.mutual_information(kind(S), kind(Y)), expected)

    @pytest.mark.parametrize(
        ("s", "y", "text"),
        [([1, 2], [1], "s has 2 rows, y has 1"), ([], [], "0 sample")],
    )
    def test_bad_columns(self, s, y, text):
        with pytest.raises(ValueError, match=text):
            metrics.mutual_information(s, y)

    def test_bad_confidence(self):
        with pytest.raises(ValueError, match=r"'confidence' .* Got 95"):
            metrics.mutual_information_interval(S, Y, confidence=95)

    def test_a_constant_column_may_hide_a_value(self):
        low, high = metrics.mutual_information_interval(np.zeros(1000), np.arange(1000) % 3)
        assert low == 0.0
        assert 0.0 < high < 0.03
        _, fewer = metrics.mutual_information_interval(np.zeros(10), np.arange(10) % 3)
        assert fewer > 0.5


@pytest.mark.parametrize("figure", [metrics.leakage, metrics.leakage_report])
def test_unique_rows_seem_to_give_s_away(figure):
    frame = people(400)
    with pytest.warns(UserWarning, match="nearly every row is unique"):
        figure(frame["sex"], frame["noise"])
    figure(frame["sex"], frame["noise"].round(0))  # without a warning


def test_a_column_of_groups_has_no_sizes():
    with pytest.raises(TypeError, match="one for each group of S.*Series.value_counts"):
        epsilon_for_shift(people(100)["sex"], 0.05)


class TestReport:
    def test_a_baseline_beside_each_figure(self):
        report = metrics.leakage_report(S, Y)
        for scope, column in (("average", "average"), ("per_output", "worst_output")):
            l1 = metrics.leakage(S, Y, measure="l1", scope=scope)
            assert_allclose(report.loc[["l1", "total variation"], column], [l1, l1 / 2])
        assert (report["average"] > report["average_baseline"]).all()
        low, high = metrics.mutual_information_interval(S, Y)
        assert_allclose(
            report.loc["mutual information", ["low", "high"]].astype(float), [low, high]
        )

    def test_without_a_relation_the_figures_are_those_of_chance(self):
        rng = RNG(0)
        averages = []
        for _ in range(60):
            s, y = rng.integers(3, size=400), rng.integers(6, size=400)
            report = metrics.leakage_report(s, y, n_permutations=40)
            averages.append(report["average"] - report["average_baseline"])
        averages = pd.concat(averages, axis=1)
        error = averages.std(axis=1) / np.sqrt(60)
        assert (averages.mean(axis=1).abs() < 4 * error).all()


class TestIntervals:
    """Bias-corrected estimates and intervals of I(S;Y), by Monte Carlo."""

    def simulate(self, shape, strength, n, repeats, seed):
        rng = RNG(seed)
        covered, errors, plain_errors = [], [], []
        for _ in range(repeats):
            joint = joint_of(rng, shape, strength)
            truth = exact_information(joint)
            counts = rng.multinomial(n, joint.ravel()).reshape(shape)
            low, high = interval(counts, 0.95, rng)
            covered.append(low <= truth + 1e-12 and truth <= high + 1e-12)
            errors.append(jackknife(counts)[0] - truth)
            plain_errors.append(plain(counts) - truth)
        return covered, np.array(errors), np.array(plain_errors)

    def test_cover_and_correct_the_bias(self):
        everything = []
        for seed, case in enumerate(TABLES):
            covered, errors, plain_errors = self.simulate(*case, repeats=20, seed=seed)
            everything += covered
            if case[0] != (2, 2):
                assert abs(errors.mean()) < abs(plain_errors.mean()) / 2
        assert_covers(everything, 0.95)

    @pytest.mark.parametrize(
        ("p_s", "given_0", "given_1", "n"),
        [(0.05, 0.02, 0.3, 1000), (0.02, 0.02, 0.3, 2000), (0.01, 0.1, 0.9, 100)],
    )
    def test_cover_for_a_rare_group(self, p_s, given_0, given_1, n):
        rng = RNG(3)
        joint = np.array(
            [
                [(1 - p_s) * (1 - given_0), (1 - p_s) * given_0],
                [p_s * (1 - given_1), p_s * given_1],
            ]
        )
        truth, covered = exact_information(joint), []
        for _ in range(150):
            counts = rng.multinomial(n, joint.ravel()).reshape(2, 2)
            low, high = interval(counts, 0.95, rng)
            covered.append(low <= truth <= high)
        assert_covers(covered, 0.95)

    @pytest.mark.slow
    @pytest.mark.parametrize("case", TABLES, ids=str)
    def test_cover_in_every_case(self, case):
        covered, errors, _ = self.simulate(*case, repeats=1000, seed=1)
        assert_covers(covered, 0.95)
        bias, spread = errors.mean(), errors.std() / np.sqrt(len(errors))
        # What is left is of the second order: 1 / n^2 times the square of the degrees of freedom.
        second_order = (np.prod(case[0]) / case[2]) ** 2
        assert abs(bias) < 4 * spread + second_order


class TestPopulation:
    """Upper limits of the leakage under the true joint, by Monte Carlo."""

    def simulate(self, measure, scope, n, repeats, seed, confidence=0.9):
        rng = RNG(seed)
        covered = []
        for _ in range(repeats):
            joint = joint_of(rng, (3, 5), 1.0)
            counts = rng.multinomial(n, joint.ravel()).reshape(joint.shape)
            problem = {"measure": measure, "scope": scope, "solver": "auto"}
            mechanism = design_mechanism(counts, 0.05, **problem)
            truth = mechanism.evaluate(joint)
            limits = population_leakage(
                mechanism, n, confidence=confidence, n_resamples=199, random_state=rng
            )
            covered.append([
                truth.max_leakage <= limits.max_leakage,
                truth.average_leakage <= limits.average_leakage,
                *(truth.leakage <= limits.per_output.to_numpy()),
            ])  # fmt: skip
        worst = [row[0] for row in covered]
        average = [row[1] for row in covered]
        return worst, average, [np.mean(row[2:]) for row in covered]

    def test_limits_cover(self):
        worst, average, each = [], [], []
        for seed, case in enumerate(DESIGNS):
            for total, part in zip(
                (worst, average, each), self.simulate(*case, repeats=5, seed=seed), strict=True
            ):
                total += part
        assert_covers(worst, 0.9)
        assert_covers(average, 0.9)
        assert np.mean(each) > 0.9

    @pytest.mark.slow
    @pytest.mark.parametrize("case", DESIGNS, ids=str)
    def test_limits_cover_in_every_case(self, case):
        worst, average, each = self.simulate(*case, repeats=300, seed=2, confidence=0.95)
        assert_covers(worst, 0.95)
        assert_covers(average, 0.95)
        assert np.mean(each) > 0.94

    @pytest.mark.parametrize("measure", ["kl", "max_lift"])
    def test_limits_cover_a_small_group(self, measure):
        rng, covered = RNG(4), []
        for _ in range(60):
            joint = np.vstack([0.97 * rng.dirichlet(np.ones(5)), 0.03 * rng.dirichlet(np.ones(5))])
            covered.append(self.holds(rng, joint, 300, 0.02, measure))
        assert_covers(covered, 0.95)

    def test_limits_cover_a_small_group_with_rare_symbols(self):
        """Half a row in every cell would drown the group."""
        p_x = 1 / np.arange(1, 17)
        p_x /= p_x.sum()
        rare = 0.7 * p_x + np.repeat([0.0, 0.1], [13, 3])
        joint, rng = np.vstack([0.98 * p_x, 0.02 * rare]), RNG(0)
        covered = [self.holds(rng, joint, 1000, 0.1, "max_lift") for _ in range(200)]
        assert_covers(covered, 0.95)

    def holds(self, rng, joint, n, epsilon, measure):
        """Draw rows, design for them, and return whether the limit of the worst output holds."""
        counts = rng.multinomial(n, joint.ravel()).reshape(joint.shape)
        mechanism = design_mechanism(counts, epsilon, measure=measure)
        limits = population_leakage(mechanism, n, n_resamples=199, random_state=rng)
        return mechanism.evaluate(joint).max_leakage <= limits.max_leakage

    def test_limits_are_about_the_rows_and_not_about_smoothing(self):
        frame = people(300)
        limits = {
            smoothing: population_leakage(funnel(smoothing=smoothing).fit(frame)).average_leakage
            for smoothing in (0.0, 20.0)
        }
        assert limits[20.0] > 1.5 * limits[0.0]  # the channel was designed for another joint

    def test_weights_count_as_fewer_rows(self):
        frame = people(2000)
        weights = np.where(np.arange(2000) < 200, 10.0, 0.1)
        even, uneven = (
            population_leakage(funnel().fit(frame, sample_weight=w)) for w in (None, weights)
        )
        assert even.n_samples == 2000
        assert 200 <= uneven.n_samples < 300
        assert uneven.max_leakage > even.max_leakage

    def test_the_limits_shrink_with_the_rows(self):
        mechanism = design_mechanism([[30, 10, 5], [10, 20, 25]], 0.02)
        limits = [population_leakage(mechanism, n).max_leakage for n in (100, 1000, 100_000)]
        assert limits[0] > limits[1] > limits[2] > mechanism.max_leakage
        assert_allclose(limits[2], 0.02, rtol=0.1)

    def test_a_secret_by_its_name(self):
        table, other = [[30, 10, 5], [10, 20, 25]], [[20, 20, 10], [20, 10, 20]]
        several = design_mechanism({"a": table, "b": other}, {"a": 0.02, "b": 0.05})
        for name in ("a", "b"):
            same = population_leakage(several.secrets[name], 100)
            assert population_leakage(several, 100, secret=name).max_leakage == same.max_leakage
        alone = design_mechanism({"a": table}, {"a": 0.02})
        assert population_leakage(alone, 100).max_leakage > alone.secrets["a"].max_leakage

    def test_bad_arguments(self):
        mechanism = design_mechanism([[30, 10, 5], [10, 20, 25]], 0.02)
        with pytest.raises(ValueError, match="'n_samples' .* Got 0"):
            population_leakage(mechanism, 0)
        with pytest.raises(TypeError, match="'mechanism' .* a Mechanism"):
            population_leakage(COUNTS, 100)
        with pytest.raises(TypeError, match="'n_samples' .* Got None"):
            population_leakage(mechanism)
        shipped = PrivacyFunnelTransformer.from_json(funnel().fit(people()).to_json())
        with pytest.raises(ValueError, match="needs the joint distribution, which was left out"):
            population_leakage(shipped)
