"""Displays: what is drawn is what the mechanism says."""

import sys
from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from example_tables import funnel, people, quiet_fit
from numpy.testing import assert_allclose

from skprivacy import (
    LeakageDisplay,
    MechanismDisplay,
    PrivacyFunnelTransformer,
    PrivacyUtilityDisplay,
    design_mechanism,
    privacy_utility_path,
)
from skprivacy.metrics import population_leakage
from skprivacy.plotting.canvas import plain_ticks, short

mpl.use("agg")

JOINT = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
EPSILONS = [0.05, 0.005, 0.02]


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def transformer():
    return funnel().fit(people())


class TestPrivacyUtility:
    def test_curves(self):
        paths = {
            name: privacy_utility_path(JOINT, EPSILONS, solver=name)
            for name in ("optimal", "watchdog")
        }
        display = PrivacyUtilityDisplay.from_path(paths, chosen=0.02)
        for line, path in zip(display.lines_, paths.values(), strict=True):
            path = sorted(path, key=lambda mechanism: mechanism.epsilon)
            assert_allclose(line.get_xdata(), [m.epsilon for m in path])
            assert_allclose(line.get_ydata(), [m.normalized_utility for m in path])
        labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert labels == ["optimal", "watchdog", "certified: no mechanism keeps more"]
        assert all(
            handle.get_linestyle() != "None" for handle in display.ax_.get_legend().get_lines()
        )
        assert display.ax_.texts[0].get_text() == "ε = 0.02"

    def test_the_band_is_what_could_be_kept_at_most(self):
        path = privacy_utility_path(JOINT, EPSILONS, confidence=0.9, n_samples=500)
        display = PrivacyUtilityDisplay.from_path(path)
        (band,) = display.ax_.collections
        heights = np.concatenate([part.vertices[:, 1] for part in band.get_paths()])
        bounds = [mechanism.normalized_upper_bound for mechanism in path]
        assert_allclose(heights.max(), max(bounds))
        assert max(bounds) < 1

    @pytest.mark.parametrize("utility", ["mutual_information", "guess"])
    def test_what_is_not_proven_has_no_band(self, utility):
        path = privacy_utility_path(JOINT, EPSILONS, utility=utility, solver="watchdog")
        display = PrivacyUtilityDisplay.from_path(path)
        assert list(display.ax_.collections) == []
        labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert labels == ["watchdog"]

    def test_a_larger_budget_keeps_no_less(self):
        best = design_mechanism(JOINT, 0.02)
        worse = design_mechanism(JOINT, 0.021, solver="watchdog")
        assert worse.normalized_utility < best.normalized_utility
        kept = PrivacyUtilityDisplay.from_path([best, worse]).lines_[0].get_ydata()
        assert_allclose(kept, best.normalized_utility)

    def test_budgets_without_a_place_on_the_axis(self):
        path = privacy_utility_path(JOINT, [0.0, 0.02, np.inf])
        display = PrivacyUtilityDisplay.from_path(path, chosen=np.inf)
        assert display.lines_[0].get_xdata().tolist() == [0.02]
        display.figure_.canvas.draw()
        with pytest.raises(ValueError, match="'path' .* at least one mechanism"):
            PrivacyUtilityDisplay.from_path([])

    @pytest.mark.parametrize("solver", ["auto", "watchdog"])
    def test_with_a_confidence_it_says_for_what_budgets_hold(self, solver):
        asked = {"confidence": 0.9, "n_samples": 500}
        path = privacy_utility_path(JOINT, EPSILONS, solver=solver, **asked)
        display = PrivacyUtilityDisplay.from_path(path)
        labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        proven = ["kept for the rows alone, at most"] if solver == "auto" else []
        assert labels == ["with 90% confidence", *proven]
        expected = "budget ε for the population (kl, per output; 90% confidence, 500 rows)"
        assert display.ax_.get_xlabel() == expected
        named = PrivacyUtilityDisplay.from_path({"this one": path}).lines_[0].get_label()
        assert named == "this one, 90% confidence"

    def test_a_fitted_transformer_is_drawn_as_sure_as_it_is(self):
        sure = quiet_fit(funnel(0.1, confidence=0.95), people(600))
        display = PrivacyUtilityDisplay.from_estimator(sure, epsilons=[0.05, 0.1])
        expected = sure.mechanism_.normalized_utility
        assert_allclose(display.lines_[0].get_ydata()[1], expected, atol=0.02)

    def test_from_estimator(self, transformer):
        figure, ax = plt.subplots()
        display = PrivacyUtilityDisplay.from_estimator(
            transformer, epsilons=[0.001, 0.01], solvers=["auto", "watchdog"], ax=ax
        )
        assert display.ax_ is ax
        assert display.figure_ is figure
        kept = display.lines_[0].get_ydata()
        assert_allclose(kept[1], transformer.mechanism_.normalized_utility, atol=1e-6)
        around = PrivacyUtilityDisplay.from_estimator(transformer).lines_[0].get_xdata()
        assert around.min() < 0.01 < around.max()

    @pytest.mark.parametrize(
        ("budgets", "expected"),
        [
            ((0.01, 0.04), ["0.01", "0.02", "0.03", "0.04"]),
            ((0.009, 0.11), ["0.01", "0.02", "0.05", "0.1"]),
            ((0.0000009, 1.1), ["0.000001", "0.00001", "0.0001", "0.001", "0.01", "0.1", "1"]),
        ],
    )
    def test_budgets_are_plain_numbers(self, budgets, expected):
        _, ax = plt.subplots()
        ax.set(xscale="log", xlim=budgets)
        plain_ticks(ax)
        assert [label.get_text() for label in ax.get_xticklabels()] == expected
        assert len(ax.get_xticks(minor=True)) == 0


class TestMechanism:
    def test_the_channel_and_p_y(self, transformer):
        display = MechanismDisplay.from_estimator(transformer)
        mechanism = transformer.mechanism_
        assert_allclose(display.ax_.images[0].get_array(), mechanism.channel)
        heights = [bar.get_height() for bar in display.ax_p_y_.patches]
        assert_allclose(heights, mechanism.p_y)
        rows = [label.get_text() for label in display.ax_.get_yticklabels()]
        assert rows == list(mechanism.x_labels)
        shown = {text.get_text() for text in display.ax_.texts}
        assert f"{mechanism.channel.max():.2f}" in shown

    def test_large_channels_can_still_be_read(self):
        joint = np.random.default_rng(0).random((2, 60))
        display = MechanismDisplay.from_mechanism(
            design_mechanism(joint, 0.01, solver="subset_merging")
        )
        assert not display.ax_.texts
        assert len(display.ax_.get_yticks()) == 40
        assert display.ax_.get_ylabel() == "X: 40 of 60"

    def test_long_and_joint_labels(self):
        mechanism = design_mechanism(JOINT, 0.02)
        labels = ("x" * 60, ("a", 1), None)
        display = MechanismDisplay.from_mechanism(mechanism.renamed(x_labels=labels))
        texts = [label.get_text() for label in display.ax_.get_yticklabels()]
        assert texts[0] == "x" * 15 + "…" + "x" * 14
        assert texts[1:] == ["a, 1", "missing"]

    @pytest.mark.parametrize(
        "labels",
        [
            [f"{'department of statistics' * 3} {i}" for i in range(3)],
            [f"{i} {'department of statistics' * 3}" for i in range(3)],
            ["a" * 9 + str(i) + "b" * 40 + str(i // 2) + "c" * 9 for i in range(4)],
            [f"{'same' * 9}{i}{'same' * 9}" for i in range(3)],
            ["short", "a" * 40],
        ],
    )
    def test_long_labels_stay_different(self, labels):
        found = short(labels)
        assert len(set(found)) == len(labels)
        assert all(len(text) <= 32 for text in found)
        assert ["…" in text for text in found] == [len(label) > 30 for label in labels]

    def test_labels_are_nothing_but_text(self):
        mechanism = design_mechanism(JOINT, 0.02)
        labels = ("$10 to $20", r"$\frac$", "_hidden")
        display = MechanismDisplay.from_mechanism(mechanism.renamed(x_labels=labels))
        display.figure_.canvas.draw()
        assert display.ax_.get_yticklabels()[0].get_text() == r"\$10 to \$20"
        groups = mechanism.renamed(s_labels={None: ("_a", "_b")})
        legend = LeakageDisplay.from_mechanism(groups).ax_posterior_.get_legend()
        assert [text.get_text() for text in legend.get_texts()] == [" _a", " _b"]

    def test_without_the_joint(self, transformer):
        shipped = PrivacyFunnelTransformer.from_json(transformer.to_json())
        assert MechanismDisplay.from_estimator(shipped).ax_.images
        assert MechanismDisplay.from_mechanism(shipped.mechanism_).ax_.images
        with pytest.raises(ValueError, match="needs the joint distribution, which was left out"):
            LeakageDisplay.from_estimator(shipped)


class TestLeakage:
    @pytest.mark.parametrize("scope", ["per_output", "average"])
    def test_bars_against_the_budget(self, scope):
        mechanism = design_mechanism(JOINT, 0.02, scope=scope)
        display = LeakageDisplay.from_mechanism(mechanism)
        widths = [bar.get_width() for bar in display.ax_.patches]
        assert_allclose(widths, mechanism.leakage)
        lines = [line.get_xdata()[0] for line in display.ax_.lines]
        expected = [0.02] if scope == "per_output" else [0.02, mechanism.average_leakage]
        assert_allclose(lines, expected)

    def test_posteriors_against_the_prior(self):
        mechanism = design_mechanism(JOINT, 0.02)
        display = LeakageDisplay.from_mechanism(mechanism)
        drawn = [np.asarray(c.get_offsets())[:, 0] for c in display.ax_posterior_.collections]
        assert_allclose(np.array(drawn).T, mechanism.sensitive_posterior)
        priors = [line.get_xdata()[0] for line in display.ax_posterior_.lines]
        assert_allclose(priors, [0.4, 0.6])

    def test_given_axes_are_divided(self, transformer):
        figure, axes = plt.subplots(1, 2)
        display = LeakageDisplay.from_estimator(transformer, ax=axes[1])
        assert display.figure_ is figure
        assert display.ax_ is not axes[1]
        figure.canvas.draw()
        with pytest.raises(ValueError, match="'ax' parameter must come from plt.subplots"):
            LeakageDisplay.from_estimator(transformer, ax=figure.add_axes([0, 0, 1, 1]))

    @pytest.mark.parametrize("measure", ["kl", "lip"])
    def test_an_infinite_budget(self, measure):
        joint = [[0.2, 0.1, 0.1], [0.1, 0.0, 0.5]]
        mechanism = design_mechanism(joint, np.inf, measure=measure)
        LeakageDisplay.from_mechanism(mechanism).figure_.canvas.draw()

    def test_limits_for_the_population(self, transformer):
        limits = population_leakage(transformer)
        display = LeakageDisplay.from_estimator(transformer, limits=limits)
        assert_allclose(display.ax_.lines[-2].get_xdata(), limits.per_output)

    def test_a_mechanism_with_a_confidence_has_limits_of_its_own(self):
        mechanism = design_mechanism(JOINT, 0.1, confidence=0.95, n_samples=2000)
        display = LeakageDisplay.from_mechanism(mechanism)
        limits = mechanism.population_limit
        assert_allclose(display.ax_.lines[-2].get_xdata(), limits.per_output)
        labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        budget = "budget, for every output in the population"
        assert labels == [budget, "population, 95% limit", "population, worst of all"]

    def test_many_groups_and_outputs(self):
        mechanism = design_mechanism(
            np.random.default_rng(0).random((12, 60)), 0.5, solver="watchdog"
        )
        display = LeakageDisplay.from_mechanism(mechanism)
        assert "4 smaller groups are not drawn" in display.ax_posterior_.get_xlabel()

    def test_the_worst_of_many_is_drawn(self):
        joint = np.random.default_rng(0).random((2, 60))
        mechanism = design_mechanism(joint, 2.0, solver="watchdog")
        least = int(np.argmin(mechanism.leakage))
        limits = population_leakage(mechanism, n_samples=1000)
        per_output = limits.per_output.copy()
        per_output.iloc[least] = 9.0
        limits = replace(limits, per_output=per_output, max_leakage=10.0)
        display = LeakageDisplay.from_mechanism(mechanism, limits=limits)
        *_, each, worst = display.ax_.lines
        assert len(each.get_xdata()) == 40
        assert max(each.get_xdata()) == 9.0
        assert worst.get_xdata()[0] == 10.0


@pytest.mark.parametrize("display", [MechanismDisplay, LeakageDisplay])
def test_bad_mechanism(display):
    with pytest.raises(TypeError, match=f"'mechanism' parameter of {display.__name__}"):
        display.from_mechanism(np.eye(2))


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[plot\]" in a clone'):
        LeakageDisplay.from_mechanism(design_mechanism(JOINT, 0.02))
