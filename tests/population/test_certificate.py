"""Certificates: what they say, what they prove, and what they refuse."""

import pickle
from itertools import product

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import binom

from skprivacy import PrivacyFunnelTransformer
from skprivacy.measures import KL, MEASURES, Lip, Parity, get_measure
from skprivacy.measures.measure import leakage_in, output_values, posteriors
from skprivacy.population.certificate import (
    Box,
    Candidate,
    Centre,
    PopulationLimits,
    Terms,
    certify,
    largest_average,
    largest_distance,
    largest_values,
    means,
    parity_margin,
    population_limits,
    shares,
    vertices,
)

TWO = np.array([[0.20, 0.15, 0.10, 0.05], [0.05, 0.10, 0.15, 0.20]])
THREE = np.array([[0.16, 0.10, 0.06, 0.04], [0.06, 0.10, 0.12, 0.10], [0.03, 0.05, 0.08, 0.10]])
RARE = np.array([[0.012, 0.006, 0.002], [0.30, 0.20, 0.10], [0.10, 0.18, 0.10]])


def candidate_for(p_sx, channel, scope="per_output", prior=None):
    centre = Centre(p_sx.sum(axis=1) if prior is None else prior, p_sx.sum(axis=0) @ channel)
    return Candidate(channel, tuple(range(channel.shape[1])), scope, centre)


def drawn(p_sx, n, rng):
    """Return the counts of n rows, every group among them."""
    while True:
        counts = rng.multinomial(n, p_sx.ravel()).reshape(p_sx.shape).astype(float)
        if counts.sum(axis=1).all():
            return counts


def values_of(measure, p_sx, channel):
    prior, p_y = p_sx.sum(axis=1), p_sx.sum(axis=0) @ channel
    return output_values(measure, posteriors(p_sx @ channel, p_y, prior), prior), p_y


def true_figures(measure, p_sx, channel):
    values, p_y = values_of(measure, p_sx, channel)
    scopes = "per_output", "average"
    return [leakage_in(scope, measure, values, p_y) for scope in scopes]


class TestLimits:
    def test_shares_fail_exactly_as_often_as_they_say(self):
        box = shares(np.array([3.0, 17.0]), 0.01)
        assert_allclose(binom.sf(2, 20, box.low[0]), 0.01)
        assert_allclose(binom.cdf(3, 20, box.high[0]), 0.01)
        assert_allclose(box.low + box.high[::-1], 1)

    def test_shares_of_nothing_and_of_everything(self):
        box = shares(np.array([0.0, 20.0]), 0.01)
        assert_allclose(box.low, [0, 0.01 ** (1 / 20)])
        assert_allclose(box.high, [1 - 0.01 ** (1 / 20), 1])

    def test_means_are_those_of_maurer_and_pontil(self):
        values = np.array([0.0, 0.5, 0.5, 2.0])
        box = means(values.mean(), (values**2).mean(), 2.0, 4, 0.1)
        radius = np.sqrt(2 * values.var(ddof=1) * np.log(20) / 4) + 14 * np.log(20) / 9
        assert_allclose([box.low, box.high], values.mean() + np.array([-radius, radius]))

    def test_they_are_those_of_the_rows_one_by_one(self):
        rng = np.random.default_rng(0)
        counts, channel = drawn(THREE, 5000, rng), rng.dirichlet(np.ones(3), size=4)
        centre = Centre(np.array([0.5, 0.2, 0.3]), np.array([0.3, 0.3, 0.4]))
        rows = np.repeat(np.indices(counts.shape).reshape(2, -1), counts.ravel().astype(int), 1)
        each = 0.05 / (2 * (3 * 3 + 3 + 3))
        prior = shares(counts.sum(axis=1), each)
        low, high = np.empty((3, 3)), np.empty((3, 3))
        for y, s in product(range(3), range(3)):
            c, q0, p0 = channel[rows[1], y], centre.p_y[y], centre.prior[s]
            z = (c - q0) * ((rows[0] == s) - p0)
            span = np.ptp(np.outer(channel[:, y] - q0, [-p0, 1 - p0]))
            of_z = means(z.mean(), (z**2).mean(), span, 5000, each)
            of_y = means(c.mean(), (c**2).mean(), np.ptp(channel[:, y]), 5000, each)
            corners = product(
                (of_z.low, of_z.high), (of_y.low, of_y.high), (of_y.low, of_y.high),
                (prior.low[s], prior.high[s]),
            )  # fmt: skip
            shifts = [(z - (q - q0) * (p - p0)) / other for z, q, other, p in corners]
            low[y, s], high[y, s] = min(shifts), max(shifts)
        limits = population_limits(counts, channel, centre, 0.05)
        expected = Box(low, high).summing_to(0.0)
        assert_allclose(limits.shifts.low, expected.low)
        assert_allclose(limits.shifts.high, expected.high)

    @pytest.mark.parametrize("p_sx", [TWO, THREE, RARE])
    def test_they_hold_what_the_rows_say(self, p_sx):
        rng = np.random.default_rng(1)
        counts, channel = drawn(p_sx, 300, rng), rng.dirichlet(np.ones(3), size=p_sx.shape[1])
        centre = candidate_for(p_sx, channel).centre
        limits = population_limits(counts, channel, centre, 0.05)
        joint = counts / counts.sum()
        prior, p_y = joint.sum(axis=1), joint.sum(axis=0) @ channel
        shifts = (joint @ channel / p_y).T - prior
        for box, figures in zip(
            (limits.prior, limits.p_y, limits.shifts), (prior, p_y, shifts), strict=True
        ):
            assert (box.low <= figures + 1e-12).all()
            assert (box.high >= figures - 1e-12).all()

    def test_a_column_that_hardly_varies(self):
        """Squares of numbers that are far from 0 would lose the variance to rounding."""
        channel = 0.5 + np.outer([0, 1e-9, 2e-9, 3e-9], [1, -1])
        counts = np.full((2, 4), 50.0)
        p_y = population_limits(counts, channel, Centre(np.ones(2) / 2, np.ones(2) / 2), 0.05).p_y
        scaled = means(1.5, 3.5, 3.0, 400, 0.05 / (2 * (2 + 2 + 1)))  # of 0, 1, 2, 3
        assert_allclose(p_y.high - p_y.low, 1e-9 * (scaled.high - scaled.low), rtol=1e-5)


class TestLargest:
    def test_vertices_of_a_cut_box(self):
        found = vertices(Box(np.array([0.2, 0.1, 0.3]), np.array([0.4, 0.5, 0.6])), 1.0)
        expected = [
            [0.2, 0.2, 0.6],
            [0.2, 0.5, 0.3],
            [0.3, 0.1, 0.6],
            [0.4, 0.1, 0.5],
            [0.4, 0.3, 0.3],
        ]
        assert_allclose(np.unique(found.round(9), axis=0), expected)

    @pytest.mark.parametrize("name", MEASURES)
    @pytest.mark.parametrize("width", [0.02, 0.3])  # with the wide one posteriors may be negative
    def test_no_point_within_limits_leaks_more(self, name, width):
        rng, measure = np.random.default_rng(2), get_measure(name)
        prior = Box(np.array([0.08, 0.25, 0.5]), np.array([0.12, 0.35, 0.6])).summing_to(1.0)
        shift = Box(np.array([[-0.2, -1.0, -0.4]]) * width, np.array([[0.5, 0.7, 1.0]]) * width)
        shift = shift.summing_to(0.0)
        limits = PopulationLimits(prior, Box(np.ones(1), np.ones(1)), shift)
        (bound,) = largest_values(measure, limits)
        p = rng.dirichlet(np.ones(len(vertices(prior, 1.0))), 4000) @ vertices(prior, 1.0)
        points = vertices(Box(shift.low[0], shift.high[0]), 0.0)
        d = rng.dirichlet(np.full(len(points), 0.3), 4000) @ points
        allowed = (p + d >= 0).all(axis=1)
        assert allowed.sum() > 500
        reached = [measure.value(q + e, q) for q, e in zip(p[allowed], d[allowed], strict=True)]
        assert max(reached) <= bound * (1 + 1e-12)
        if width < 0.1:
            assert max(reached) > 1 + 0.5 * (bound - 1) if bound > 1 else max(reached) > bound / 3

    def test_for_two_groups_it_is_a_corner(self):
        limits = PopulationLimits(
            Box(np.array([0.3, 0.6]), np.array([0.4, 0.7])),
            Box(np.ones(1), np.ones(1)),
            Box(np.array([[-0.05, -0.1]]), np.array([[0.1, 0.05]])),
        )
        corners = [
            KL().value([p + d, 1 - p - d], [p, 1 - p]) for p in (0.3, 0.4) for d in (-0.05, 0.1)
        ]
        assert_allclose(largest_values(KL(), limits), max(corners))
        assert_allclose(largest_values(get_measure("l1"), limits), 0.2)
        assert_allclose(largest_values(get_measure("max_lift"), limits), 1 + 0.1 / 0.3)
        assert_allclose(largest_values(Lip(lower=0.1), limits), np.inf)

    def test_negative_posteriors_are_not_allowed_for(self):
        """P(s|y) is between 0 and 0.2 at most: a shift of -0.3 cannot be."""
        limits = PopulationLimits(
            Box(np.array([0.1, 0.8]), np.array([0.2, 0.9])),
            Box(np.ones(1), np.ones(1)),
            Box(np.array([[-0.3, 0.0]]), np.array([[0.0, 0.3]])),
        )
        certain = max(KL().value([0, 1], [p, 1 - p]) for p in (0.1, 0.2))
        (bound,) = largest_values(KL(), limits)
        assert np.isfinite(bound)
        assert bound >= certain

    def test_the_largest_average_fills_the_worst_outputs_first(self):
        p_y = Box(np.array([0.1, 0.2, 0.3]), np.array([0.3, 0.6, 0.5]))
        assert_allclose(largest_average(np.array([3.0, 1.0, 2.0]), p_y), 0.9 + 0.2 + 1.0)
        assert largest_average(np.array([3.0, np.inf, 2.0]), p_y) == np.inf
        never = Box(np.array([0.0, 0.5, 0.5]), np.array([0.0, 0.5, 0.5]))
        assert_allclose(largest_average(np.array([np.inf, 1.0, 2.0]), never), 1.5)


class TestParity:
    def test_the_margin(self):
        channel = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
        margin = parity_margin(np.array([100.0, 400.0]), channel, 0.05)
        assert_allclose(margin, 0.7 * np.sqrt(np.log(20) / 2 * (1 / 100 + 1 / 400)))

    def test_distances_of_many_rows_are_bounded(self):
        few = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.5, 0.4, 0.1]])
        assert_allclose(largest_distance(few), 0.7)
        assert largest_distance(np.vstack([few] * 1000)) == pytest.approx(0.7)
        assert largest_distance(few[:1]) == 0

    @pytest.mark.parametrize("p_sx", [TWO, THREE])
    def test_the_average_is_certified_by_it(self, p_sx):
        rng = np.random.default_rng(3)
        counts, channel = drawn(p_sx, 500, rng), rng.dirichlet(np.ones(3), size=4)
        got = certify(counts, candidate_for(p_sx, channel), Terms(Parity(), 0.9, 2))
        margin = parity_margin(counts.sum(axis=1), channel, 0.05)
        assert_allclose(got.average_leakage_bound - got.average_leakage, margin)


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize(
    ("p_sx", "n"), [(TWO, 400), (THREE, 2000), (RARE, 2000)], ids=["two", "three", "rare"]
)
class TestTheTheorem:
    def test_it_holds_sample_after_sample(self, name, p_sx, n):
        """Bounds that fail in 5% of samples at most: of 50, these never do."""
        rng, measure = np.random.default_rng(4), get_measure(name)
        for _ in range(50):
            channel = rng.dirichlet(np.full(3, 0.5), size=p_sx.shape[1])
            worst, average = true_figures(measure, p_sx, channel)
            uniform = np.full(len(p_sx), 1 / len(p_sx))
            chosen = candidate_for(p_sx, channel, prior=uniform)
            got = certify(drawn(p_sx, n, rng), chosen, Terms(measure))
            assert got.max_leakage_bound >= worst
            assert np.isnan(average) or got.average_leakage_bound >= average
            assert (got.leakage_bound >= got.leakage).all()

    def test_it_approaches_what_is_true(self, name, p_sx, n):
        rng, measure = np.random.default_rng(5), get_measure(name)
        channel = 0.8 * np.eye(p_sx.shape[1])[:, :3] + 0.2 / 3
        channel /= channel.sum(axis=1, keepdims=True)
        worst, average = true_figures(measure, p_sx, channel)
        got = certify(drawn(p_sx, 10**9, rng), candidate_for(p_sx, channel), Terms(measure))
        assert_allclose([got.max_leakage, got.max_leakage_bound], worst, rtol=0.02)
        assert_allclose([got.average_leakage, got.average_leakage_bound], average, rtol=0.02)


class TestCertificate:
    @pytest.fixture(scope="class")
    @staticmethod
    def rows():
        rng = np.random.default_rng(6)
        s = rng.integers(2, size=8000)
        return pd.DataFrame(
            {"s": np.where(s, "anna", "bert"), "x": rng.binomial(3, 0.4 + 0.2 * s)}
        )

    @pytest.fixture(scope="class")
    @staticmethod
    def fitted(rows):
        funnel = PrivacyFunnelTransformer(0.02, sensitive="s", utility="distortion")
        return funnel.fit(rows[:4000])

    def test_it_says_what_evaluate_says_and_more(self, fitted, rows):
        got, plain = fitted.certify(rows[4000:]), fitted.evaluate(rows[4000:])
        assert_allclose(got.leakage, plain.leakage)
        assert_allclose(got.average_leakage, plain.average_leakage)
        assert got.max_leakage_bound > got.max_leakage == pytest.approx(plain.max_leakage)
        assert got.average_leakage_bound > got.average_leakage
        assert (got.n_rows, got.n_groups, got.y_labels) == (4000, 2, fitted.mechanism_.y_labels)

    def test_it_holds_or_not(self, fitted, rows):
        got = fitted.certify(rows[4000:])
        assert got.holds(got.max_leakage_bound)
        assert not got.holds(got.max_leakage_bound - 1e-6)
        assert got.holds(got.average_leakage_bound, "average")
        assert got.bound_in("average") < got.bound_in("per_output")
        assert not fitted.certify(rows[4000:], measure=Lip()).holds(9, "average")

    def test_it_names_no_value_of_s(self, fitted, rows):
        got = fitted.certify(rows[4000:], n_settings=3)
        said = "Certificate(KL(): 4,000 rows, 2 groups, confidence 0.95; one of 3 settings; max_"
        assert repr(got).startswith(said)
        assert "average" not in repr(fitted.certify(rows[4000:], measure="lip"))
        assert "anna" not in repr(got)
        assert b"anna" not in pickle.dumps(got)

    def test_more_settings_or_confidence_cost_something(self, fitted, rows):
        bounds = [
            fitted.certify(rows[4000:], **more).max_leakage_bound
            for more in ({}, {"confidence": 0.99}, {"n_settings": 5}, {"n_settings": 6})
        ]
        assert bounds[0] < bounds[1] < bounds[3]
        assert_allclose(bounds[1], bounds[2])

    def test_it_works_for_one_that_was_loaded(self, fitted, rows):
        loaded = PrivacyFunnelTransformer.from_json(fitted.to_json())
        got, again = fitted.certify(rows[4000:]), loaded.certify(rows[4000:])
        assert_allclose(again.leakage, got.leakage)
        assert again.max_leakage_bound == pytest.approx(got.max_leakage_bound, rel=0.1)
        apart = loaded.set_params(sensitive=None)
        same = apart.certify(rows[["x"]][4000:], sensitive_features=rows["s"][4000:])
        assert same.max_leakage_bound == again.max_leakage_bound
        both = apart.certify(
            rows[["x"]][4000:],
            sensitive_features=rows[["s", "s"]][4000:].set_axis(["a", "b"], axis=1),
        )
        assert both.max_leakage_bound == again.max_leakage_bound

    def test_s_may_come_separately(self, fitted, rows):
        funnel = PrivacyFunnelTransformer(0.02, utility="distortion")
        funnel.fit(rows[["x"]][:4000], sensitive_features=rows["s"][:4000])
        got = funnel.certify(rows[["x"]][4000:], sensitive_features=rows["s"][4000:])
        assert got.max_leakage_bound == fitted.certify(rows[4000:]).max_leakage_bound

    def test_values_that_were_not_seen(self, fitted, rows):
        """Of X, they say nothing about S; of S, nothing is proven about them."""
        other = rows[4000:].assign(x=99)
        assert_allclose(fitted.certify(other).leakage, 0, atol=1e-12)
        other.loc[other.index[:100], "s"] = ["carl", "dora"] * 50
        with pytest.raises(ValueError, match=r"2\.5% of these rows have values of S that fit did"):
            fitted.certify(other)

    def test_a_target_is_not_needed(self, rows):
        funnel = PrivacyFunnelTransformer(0.02, sensitive="s", utility="target")
        funnel.fit(rows[:4000], rows["x"][:4000] > 1)
        assert funnel.certify(rows[4000:]).max_leakage < 0.1

    def test_weights_count_rows_in_evaluate(self, fitted, rows):
        few = rows[4000:4200]
        weights = np.arange(200) % 4
        weighted = fitted.evaluate(few, sample_weight=weights)
        repeated = fitted.evaluate(few.loc[few.index.repeat(weights)])
        assert_allclose(weighted.p_sx, repeated.p_sx, rtol=1e-14)
        assert weighted.utility == pytest.approx(repeated.utility)
        doubled = fitted.evaluate(few, sample_weight=2.0 * weights)
        assert_allclose(doubled.p_sx, weighted.p_sx, rtol=1e-14)

    def test_weights_prove_nothing(self, fitted, rows):
        with pytest.raises(TypeError, match="sample_weight.*largest weight"):
            fitted.certify(rows[4000:], sample_weight=np.ones(4000))

    def test_rows_that_are_kept_by_their_weights_do(self, fitted):
        """The advice to those who have weights: such rows are draws from what is weighted."""
        rng, found = np.random.default_rng(7), []
        weight = np.array([[1.0, 0.3, 0.6, 0.2], [0.4, 0.9, 0.1, 0.7]])
        population = TWO * weight / (TWO * weight).sum()
        channel = np.eye(4) * 0.6 + 0.1
        worst, average = true_figures(KL(), population, channel)
        for _ in range(200):
            kept = rng.binomial(rng.multinomial(3000, TWO.ravel()), weight.ravel()).reshape(2, 4)
            got = certify(kept * 1.0, candidate_for(population, channel), Terms(KL(), 0.9))
            held = got.max_leakage_bound >= worst and got.average_leakage_bound >= average
            found.append(held)
        assert np.mean(found) >= 0.9

    def test_a_secret_with_a_name(self, rows):
        """Its figures are members of the certificate, as those of the only one without a name."""
        plain = PrivacyFunnelTransformer(0.02, sensitive="s").fit(rows[:4000])
        named = PrivacyFunnelTransformer({"s": 0.02}, sensitive="s").fit(rows[:4000])
        got, same = named.certify(rows[4000:]), plain.certify(rows[4000:])
        assert list(same.secrets) == [None]
        assert got.secrets["s"].max_leakage_bound == got.max_leakage_bound
        assert_allclose(got.leakage_bound, same.leakage_bound, rtol=1e-6)
        assert got.confidence == got.secrets["s"].confidence == 0.95
        assert got.holds({"s": 0.1}) == got.holds(0.1) == same.holds({None: 0.1})
        with pytest.raises(AttributeError, match="no attribute 'max'"):
            _ = got.max

    @pytest.mark.filterwarnings("ignore:More is revealed about all sensitive")
    def test_several_secrets_share_the_risk(self, rows):
        t = (rows["x"] + np.arange(len(rows)) % 3) > 2
        both = rows.assign(t=t)
        funnel = PrivacyFunnelTransformer({"s": 0.1, "t": 0.1}, sensitive=["s", "t"])
        got = funnel.fit(both[:4000]).certify(both[4000:])
        assert got.secrets["s"].confidence == pytest.approx(0.975)
        assert got.confidence == 0.95
        assert not got.holds({"s": 9.0, "t": 0.0})
        for figure in ("max_leakage_bound", "leakage", "n_rows"):
            with pytest.raises(AttributeError, match=r"certificate\.secrets\['s'\]"):
                getattr(got, figure)
        with pytest.raises(AttributeError, match=r"secrets\['s'\]\.holds"):
            got.holds(0.1)
        assert pickle.loads(pickle.dumps(got)).secrets.keys() == got.secrets.keys()

    def test_arrays_that_nobody_changes(self, fitted, rows):
        with pytest.raises(ValueError, match="read-only"):
            fitted.certify(rows[4000:]).leakage_bound[0] = 0


class TestErrors:
    @pytest.fixture
    def fitted(self):
        rows = pd.DataFrame({"s": list("abab") * 50, "x": list("uuvw") * 50})
        return PrivacyFunnelTransformer(0.05, sensitive="s", utility="distortion").fit(rows)

    @pytest.mark.parametrize(
        ("parameters", "text"),
        [
            (
                {"confidence": 1.0},
                r"'confidence' parameter of certify must be a float in the range",
            ),
            ({"confidence": 0}, r"'confidence' parameter of certify"),
            ({"n_settings": 0}, r"'n_settings' parameter of certify must be an int in the range"),
            ({"measure": "no"}, r"'measure' parameter of certify must be one of"),
        ],
    )
    def test_parameters(self, fitted, parameters, text):
        with pytest.raises(ValueError, match=text):
            fitted.certify(pd.DataFrame({"s": ["a", "b"], "x": ["u", "v"]}), **parameters)

    @pytest.mark.parametrize(
        ("s", "text"),
        [
            ("aaaa", "1 of the 2 groups of S"),
            ("", r"Found array with 0 sample\(s\)"),
        ],
    )
    def test_rows(self, fitted, s, text):
        with pytest.raises(ValueError, match=text):
            fitted.certify(pd.DataFrame({"s": list(s), "x": ["u"] * len(s)}))

    def test_a_single_group(self, fitted):
        loaded = PrivacyFunnelTransformer.from_json(fitted.to_json())
        with pytest.raises(ValueError, match="a single group of S"):
            loaded.certify(pd.DataFrame({"s": ["a"] * 9, "x": ["u"] * 9}))

    def test_too_many_groups(self, fitted):
        loaded = PrivacyFunnelTransformer.from_json(fitted.to_json())
        rows = pd.DataFrame({"s": range(9), "x": ["u"] * 9})
        with pytest.raises(ValueError, match=r"more than 8 groups of S, the most that kl"):
            loaded.certify(rows)
        assert loaded.certify(rows, measure="parity").n_groups == 9

    def test_a_measure_of_ones_own(self, fitted):
        class Own(KL):
            name = "own"

        with pytest.raises(ValueError, match="no bound is proven for"):
            fitted.certify(pd.DataFrame({"s": ["a", "b"], "x": ["u", "v"]}), measure=Own())

    def test_it_must_be_fitted(self):
        with pytest.raises(Exception, match="not fitted"):
            PrivacyFunnelTransformer(sensitive="s").certify(pd.DataFrame({"s": ["a"], "x": ["u"]}))
