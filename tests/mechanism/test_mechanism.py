import copy
import dataclasses
import datetime
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from documents import sealed
from numpy.testing import assert_allclose
from reference import THREE_BY_THREE, Hellinger, entropy

from skprivacy import Evaluation, Mechanism, design_mechanism
from skprivacy._json import decode_label, encode_label
from skprivacy.measures import KL, MEASURES, AlphaLift, Lip
from skprivacy.mechanism import Channel, Guarantee
from skprivacy.utilities import Target, get_utility

# What a channel and a guarantee are made of.
CHANNEL = "channel", "p_x", "x_labels", "y_labels", "objective", "strata", "symbol_of_output"
GUARANTEE = "p_sx", "s_labels", "measure", "scope"


@pytest.fixture(scope="module")
def counts():
    return pd.DataFrame(
        [[41, 30, 10, 0], [20, 31, 33, 7]],
        index=pd.Index(["f", "m"], name="sex"),
        columns=["low", "middle", "high", "top"],
    )


@pytest.fixture(scope="module")
def mechanism(counts):
    return design_mechanism(counts, 0.02)


class TestFigures:
    """Every figure against its definition."""

    def test_shapes_and_labels(self, mechanism):
        n_y = len(mechanism.y_labels)
        assert mechanism.channel.shape == (4, n_y)
        assert mechanism.posterior.shape == (n_y, 4)
        assert mechanism.s_labels == ("f", "m")
        assert mechanism.x_labels == ("low", "middle", "high", "top")
        assert mechanism.y_labels == tuple(range(n_y))
        assert mechanism.leakage.shape == (n_y,)

    def test_distributions(self, mechanism, counts):
        p_sx = counts.to_numpy() / counts.to_numpy().sum()
        assert_allclose(mechanism.p_sx, p_sx, rtol=1e-15)
        assert_allclose(mechanism.channel.sum(axis=1), 1, atol=1e-15)
        assert_allclose(mechanism.p_y, p_sx.sum(axis=0) @ mechanism.channel, atol=1e-15)
        assert_allclose(mechanism.p_y @ mechanism.posterior, p_sx.sum(axis=0), atol=1e-15)

    def test_leakage(self, mechanism):
        p_sy = mechanism.p_sx @ mechanism.channel
        posterior = (p_sy / p_sy.sum(axis=0)).T
        prior = p_sy.sum(axis=1)
        divergence = (posterior * np.log(posterior / prior)).sum(axis=1)
        assert_allclose(mechanism.leakage, divergence, atol=1e-15)
        assert mechanism.max_leakage == mechanism.leakage.max()
        assert_allclose(mechanism.average_leakage, mechanism.p_y @ divergence)
        assert_allclose(mechanism.sensitive_information, mechanism.p_y @ divergence)
        assert_allclose(mechanism.max_lift, (posterior / prior).max())

    def test_utility(self, mechanism):
        p_x = mechanism.p_sx.sum(axis=0)
        utility = entropy(p_x) - mechanism.p_y @ entropy(mechanism.posterior)
        assert_allclose(mechanism.utility, utility)
        assert_allclose(mechanism.normalized_utility, utility / entropy(p_x))
        assert mechanism.mutual_information == mechanism.utility
        assert utility <= mechanism.upper_bound <= utility + 1e-5 * entropy(p_x)
        assert mechanism.gap == mechanism.upper_bound - mechanism.utility

    def test_average_leakage_is_converted_after_averaging(self):
        mechanism = design_mechanism(THREE_BY_THREE, 0.3, measure="max_lift")
        lifts = mechanism.sensitive_posterior / THREE_BY_THREE.sum(axis=1)
        maximal_leakage = np.log(mechanism.p_y @ lifts.max(axis=1))
        assert_allclose(mechanism.average_leakage, maximal_leakage)

    def test_lip_has_no_average(self):
        assert np.isnan(design_mechanism(THREE_BY_THREE, 0.3, measure="lip").average_leakage)

    def test_outputs_are_in_the_order_of_their_likeliest_symbol(self, mechanism):
        likeliest = mechanism.posterior.argmax(axis=1)
        assert (np.diff(likeliest) >= 0).all()

    def test_table(self, mechanism):
        table = mechanism.table()
        assert list(table.columns[:3]) == ["probability", "leakage", "max_lift"]
        assert_allclose(table["probability"].sum(), 1)
        assert_allclose(table[[f"P({x}|y)" for x in mechanism.x_labels]], mechanism.posterior)
        assert table.index.tolist() == list(mechanism.y_labels)

    def test_repr_tells_the_budget_and_what_was_reached(self, mechanism):
        text = repr(mechanism)
        assert text.startswith("Mechanism(KL(): 4 symbols -> ")
        for part in (
            "epsilon=0.02 per_output",
            "max_leakage=0.02",
            "utility=",
            "gap<=",
            "solver='optimal'",
        ):
            assert part in text


class TestFrozen:
    def test_attributes(self, mechanism):
        for frozen in (mechanism, mechanism.secrets[None], mechanism.y_given_x):
            with pytest.raises(dataclasses.FrozenInstanceError):
                frozen.epsilon = 1.0
        with pytest.raises(TypeError, match="does not support item assignment"):
            mechanism.secrets["other"] = mechanism.secrets[None]

    @pytest.mark.parametrize("name", ["channel", "p_sx", "p_y", "posterior", "leakage"])
    def test_arrays(self, mechanism, name):
        for same in (mechanism, copy.deepcopy(mechanism), pickle.loads(pickle.dumps(mechanism))):
            with pytest.raises(ValueError, match="read-only"):
                getattr(same, name)[0] = 0.0

    def test_the_arrays_of_the_caller_stay_the_callers(self):
        p_sx = THREE_BY_THREE.copy()
        mechanism = design_mechanism(p_sx, 0.1)
        p_sx[0, 0] = 0.0
        assert mechanism.p_sx[0, 0] > 0


class TestNoMechanismBreaksItsBudget:
    def made(self, mechanism, **changed):
        """The same mechanism, made from its parts with some of them changed."""
        channel = [changed.pop(name, getattr(mechanism, name)) for name in CHANNEL]
        y_given_x = Channel(*channel)
        parts = {name: getattr(mechanism, name) for name in GUARANTEE} | {"epsilon": 0.02}
        parts = {name: changed.pop(name, part) for name, part in parts.items()}
        secrets = changed.pop("secrets", None) or {None: Guarantee(y_given_x, **parts)}
        return Mechanism(y_given_x, secrets, **{"solver": "optimal"} | changed)

    def test_from_its_parts_it_is_the_same(self, mechanism):
        assert self.made(mechanism).to_json() != ""
        assert (self.made(mechanism).leakage == mechanism.leakage).all()

    def test_a_smaller_epsilon(self, mechanism):
        with pytest.raises(
            ValueError, match=r"breaks its budget: epsilon=0\.019 .* leakage is 0\.0"
        ):
            self.made(mechanism, epsilon=0.019)
        with pytest.raises(ValueError, match="breaks its budget"):
            mechanism.with_budgets({None: 0.019}, mechanism.upper_bound)

    def test_the_identity_channel(self, mechanism):
        with pytest.raises(ValueError, match="breaks its budget"):
            self.made(mechanism, channel=np.eye(4), y_labels=tuple(range(4)))

    def test_what_was_judged_for_another_channel(self, mechanism):
        with pytest.raises(ValueError, match="about the same channel"):
            self.made(mechanism, channel=mechanism.channel.copy(), secrets=mechanism.secrets)

    def test_what_was_judged_for_another_number_of_rows(self):
        counts = np.array([[200, 100, 90], [90, 200, 310]])
        sure = design_mechanism(counts, 0.1, confidence=0.95)
        same = {"y_given_x": sure.y_given_x, "secrets": sure.secrets, "solver": "optimal"}
        assert Mechanism(**same, confidence=0.95).epsilon == 0.1
        for confidence in (None, 0.99):
            with pytest.raises(ValueError, match="equal shares of the risk"):
                Mechanism(**same, confidence=confidence)

    @pytest.mark.parametrize(
        ("change", "text"),
        [
            (lambda channel: channel * 1.001, "rows of the channel must sum to 1"),
            (lambda channel: channel - 0.5, "no negative numbers"),
            (lambda channel: channel * np.nan, "no NaN"),
            (lambda channel: channel[:-1], "one row for each of the 4 symbols"),
            (lambda channel: np.hstack([channel, channel * 0]), "'y_labels' parameter"),
        ],
    )
    def test_a_channel_that_is_none(self, mechanism, change, text):
        with pytest.raises(ValueError, match=text):
            self.made(mechanism, channel=change(mechanism.channel))

    def test_a_joint_that_is_no_distribution(self, mechanism):
        with pytest.raises(ValueError, match=r"p_sx must sum to 1\. Got"):
            self.made(mechanism, p_sx=mechanism.p_sx / 1000)

    def test_p_x_cannot_contradict_the_joint(self, mechanism):
        with pytest.raises(ValueError, match="does not have the distribution of X"):
            self.made(mechanism, p_x=np.array([1.0, 0, 0, 0]))

    def test_an_asymmetric_bound_holds_even_at_an_infinite_epsilon(self):
        unchanged = design_mechanism(np.eye(3), np.inf)
        with pytest.raises(ValueError, match="breaks its budget"):
            self.made(unchanged, epsilon=np.inf, measure=Lip(lower=0.1))

    def test_a_bound_below_the_utility(self, mechanism):
        with pytest.raises(ValueError, match="'upper_bound' parameter of Mechanism must be >="):
            self.made(mechanism, upper_bound=0.01)


class TestNames:
    def test_other_names_cost_nothing(self):
        counts = np.array([[200, 100, 90], [90, 200, 310]])
        sure = design_mechanism(counts, 0.1, confidence=0.95)
        assert sure.leakage.max() == sure.max_leakage
        named = sure.renamed(x_labels=("a", "b", "c"), s_labels={None: ("f", "m")})
        assert named.x_labels == ("a", "b", "c")
        assert named.s_labels == ("f", "m")
        assert named.channel is sure.channel
        assert named.leakage is sure.leakage  # computed once
        assert named.population_limit.per_output.index.tolist() == list(named.y_labels)

    def test_names_are_checked(self, mechanism):
        with pytest.raises(ValueError, match="a tuple of 4 different names"):
            mechanism.renamed(x_labels=("a", "a", "b", "c"))


class TestOnlyNamesCanBeChanged:
    """A channel that was judged is never replaced by one that was not."""

    @pytest.mark.parametrize(
        "field", [{"matrix": np.eye(3)}, {"p_x": [0.9, 0.05, 0.05]}, {"strata": None}]
    )
    def test_other_fields_are_refused(self, field):
        mechanism = design_mechanism(THREE_BY_THREE, 0.02)
        for named in (mechanism, mechanism.y_given_x):
            with pytest.raises(TypeError, match=next(iter(field))):
                named.renamed(**field)

    def test_a_guarantee_is_not_given_to_another_channel(self):
        one, other = (design_mechanism(THREE_BY_THREE, e) for e in (0.02, 0.5))
        with pytest.raises(ValueError, match="Only names"):
            one.secrets[None].renamed(other.y_given_x)
        with pytest.raises(ValueError, match="same channel"):
            Mechanism(other.y_given_x, one.secrets, "mine")

    @pytest.mark.parametrize("labels", [("a", "b"), ("a", "b", "b"), ["a", "b", "c"], "abc"])
    def test_names_of_groups_are_checked(self, labels):
        with pytest.raises(ValueError, match="s_labels"):
            design_mechanism(THREE_BY_THREE, 0.02).renamed(s_labels={None: labels})

    def test_names_of_a_secret_that_is_not_there(self):
        with pytest.raises(ValueError, match="typo"):
            design_mechanism(THREE_BY_THREE, 0.02).renamed(s_labels={"typo": ("a", "b", "c")})

    def test_figures_cannot_be_written_to(self):
        with pytest.raises(ValueError, match="read-only"):
            design_mechanism(THREE_BY_THREE, 0.02).secrets[None].output_lifts[:] = 1


def test_posteriors_are_those_of_the_secret_itself():
    """An output that only one row of one secret can have is not hidden by another marginal."""
    first = np.array([[0.3, 0.2, 0.0], [0.2, 0.3, 0.0]])
    second = first + np.array([[-9e-10, 0, 9e-10], [0, 0, 0]])
    matrix = np.array([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1.0]])
    channel = Channel(matrix, first.sum(axis=0), tuple("abc"), (0, 1, 2), get_utility("guess"))
    with pytest.raises(ValueError, match="distribution of X"):
        Guarantee(channel, second, ("s", "t"), KL(), epsilon=1e-6, scope="per_output")


def test_a_value_beside_without_rows_has_an_output():
    matrix = np.eye(3)
    channel = Channel(
        matrix, [0.5, 0.5, 0.0], tuple("abc"), (0, 1, 2), get_utility("guess"), [0, 0, 1]
    )
    assert_allclose(channel.unseen, [[0.5, 0.5, 0], [0, 0, 1]])


class TestEvaluate:
    def test_under_its_own_joint_nothing_changes(self, mechanism):
        same = mechanism.evaluate(mechanism.p_sx)
        assert type(same) is Evaluation
        assert_allclose(same.leakage, mechanism.leakage, atol=1e-15)
        assert_allclose(same.utility, mechanism.utility)

    def test_under_another_joint_the_budget_may_break(self, mechanism, counts):
        drifted = counts * np.array([[3, 1, 1, 1], [1, 1, 1, 1]])
        evaluation = mechanism.evaluate(drifted)
        assert evaluation.max_leakage > mechanism.epsilon
        assert_allclose(evaluation.p_sx.sum(), 1)
        assert "Evaluation(KL(): 4 symbols" in repr(evaluation)

    def test_columns_are_matched_by_name_and_s_may_have_other_symbols(self, mechanism, counts):
        split = pd.concat([counts / 2, counts.rename(index={"f": "F", "m": "M"}) / 2])
        evaluation = mechanism.evaluate(split[["top", "high", "low", "middle"]])
        assert_allclose(evaluation.leakage, mechanism.leakage, atol=1e-12)
        assert evaluation.s_labels == ("f", "m", "F", "M")

    @pytest.mark.parametrize(
        "labels",
        [[True, False], [("a", 1), ("b", 2)], [np.nan, 1.0], [None, "a"], [1, "1"]],
        ids=str,
    )
    def test_columns_of_any_label(self, labels):
        columns = pd.Index(labels, tupleize_cols=False)
        counts = pd.DataFrame([[30, 10], [10, 30]], columns=columns)
        mechanism = design_mechanism(counts, 0.02)
        evaluation = mechanism.evaluate(counts.iloc[:, ::-1])
        assert_allclose(evaluation.leakage, mechanism.leakage, atol=1e-15)
        assert mechanism.table().shape[1] == 5

    def test_a_row_of_s_that_never_occurs_changes_nothing(self):
        class Naive(Hellinger):
            """A measure that knows nothing of zeros."""

            def value(self, posterior, prior):
                return np.abs((np.asarray(posterior) ** 2 / prior).sum(axis=-1) - 1)

            def subgradient(self, posterior, prior):
                return 2 * np.asarray(posterior) / prior

        mechanism = design_mechanism(np.vstack([THREE_BY_THREE, [0, 0, 0]]), 0.1, measure=Naive())
        assert mechanism.max_leakage <= 0.1 * (1 + 1e-9)

    def test_outputs_that_cannot_occur_say_nothing(self):
        mechanism = design_mechanism(np.eye(3), np.inf)
        evaluation = mechanism.evaluate([[1, 0, 0], [0, 1, 0]])
        assert evaluation.leakage[2] == 0
        assert_allclose(evaluation.posterior[2], [0.5, 0.5, 0])

    def test_errors(self, mechanism, counts):
        with pytest.raises(ValueError, match=r"Missing: \['top'\]; unknown: \['best'\]"):
            mechanism.evaluate(counts.rename(columns={"top": "best"}))
        with pytest.raises(ValueError, match="must have 4 columns.* Got 3"):
            mechanism.evaluate(np.ones((2, 3)))


class TestJson:
    @pytest.mark.parametrize("measure", [*sorted(MEASURES), AlphaLift(5), Lip(lower=0.4)], ids=str)
    @pytest.mark.parametrize("epsilon", [0.0, 0.1, np.inf])
    def test_without_loss(self, measure, epsilon):
        mechanism = design_mechanism(THREE_BY_THREE, epsilon, measure=measure)
        text = mechanism.to_json()
        again = Mechanism.from_json(text)
        for name in (*CHANNEL, *GUARANTEE, "epsilon", "solver", "upper_bound", "confidence"):
            left, right = getattr(mechanism, name), getattr(again, name)
            assert np.array_equal(left, right) if isinstance(left, np.ndarray) else left == right
        assert again.to_json() == text
        json.loads(text, parse_constant=pytest.fail)  # strict JSON: no NaN, no Infinity

    def test_without_the_joint(self, mechanism):
        text = mechanism.to_json(include_joint=False)
        content = json.loads(text)
        assert not {"p_sx", "s_labels"} & set(content)
        shipped = Mechanism.from_json(text)
        assert (shipped.channel == mechanism.channel).all()
        assert (shipped.p_y == mechanism.p_y).all()
        assert shipped.utility == mechanism.utility
        assert "joint left out" in repr(shipped)
        assert "claimed epsilon=0.02" in repr(shipped)
        assert list(shipped.table().columns[:2]) == ["probability", "P(low|y)"]
        assert shipped.to_json() == text
        with pytest.raises(AttributeError, match=r"without its joint.*evaluate\(p_sx\)"):
            _ = shipped.leakage
        evaluation = shipped.evaluate(mechanism.p_sx)
        assert_allclose(evaluation.leakage, mechanism.leakage, atol=1e-15)

    def test_no_number_of_the_joint_is_in_it(self, mechanism):
        numbers = json.loads(mechanism.to_json(include_joint=False), parse_float=str)
        flat = json.dumps(numbers)
        assert '"f"' not in flat
        assert not any(repr(float(p)) in flat for p in mechanism.p_sx.sum(axis=1))
        # "top" has one sex only: there P(X) is the joint, and P(X) may be known.
        assert not any(repr(float(p)) in flat for p in mechanism.p_sx[:, :3].ravel())

    def test_labels(self):
        zone = pd.Timestamp("2024-03-31 01:30:00.123456789", tz="Europe/Berlin")
        labels = [
            "text", 3, 2.5, True, None, ("a", 1, (2.0, None)), float("inf"), pd.NaT, pd.NA,
            pd.Timestamp("2024-01-02"), zone, pd.Timedelta("1 day 2 h"),
            datetime.date(2024, 1, 2), pd.Interval(0.1, 0.3, closed="left"), np.float64(0.1),
        ]  # fmt: skip
        for label in labels:
            again = decode_label(json.loads(json.dumps(encode_label(label), allow_nan=False)))
            assert again is label or (again == label and not isinstance(again, np.generic))
            assert isinstance(again, type(label)) or isinstance(label, np.generic)
        assert str(decode_label(encode_label(zone)).tz) == "Europe/Berlin"
        assert np.isnan(decode_label(encode_label(float("nan"))))

    def test_a_label_that_json_cannot_hold(self):
        counts = pd.DataFrame([[1, 2], [2, 1]], columns=[frozenset("a"), frozenset("b")])
        with pytest.raises(TypeError, match="type frozenset cannot be written as JSON. Rename it"):
            design_mechanism(counts, 0.1).to_json()

    def test_the_table_of_a_target_is_left_out_with_the_joint(self):
        target = Target([[0.9, 0.5, 0.1], [0.1, 0.5, 0.9]])
        mechanism = design_mechanism(THREE_BY_THREE, 0.1, utility=target)
        assert Mechanism.from_json(mechanism.to_json()).objective == target
        text = mechanism.to_json(include_joint=False)
        assert "p_vx" not in text
        assert "0.9," not in text
        shipped = Mechanism.from_json(text)
        assert shipped.utility == mechanism.utility
        assert shipped.normalized_utility == mechanism.normalized_utility
        assert "target, whose data was left out" in repr(shipped)
        assert shipped.to_json(include_joint=False) == text
        assert_allclose(shipped.evaluate(THREE_BY_THREE).utility, mechanism.mutual_information)

    def test_a_measure_of_the_users_own(self):
        mechanism = design_mechanism(THREE_BY_THREE, 0.1, measure=Hellinger())
        text = mechanism.to_json()
        with pytest.raises(
            ValueError, match=r'\(measure.name is "hellinger"\): pass it as from_json'
        ):
            Mechanism.from_json(text)
        with pytest.raises(ValueError, match=r"designed with {'name': 'hellinger'}, not with KL"):
            Mechanism.from_json(text, measure=KL())
        weaker = design_mechanism(THREE_BY_THREE, 0.1, measure=AlphaLift(2)).to_json()
        with pytest.raises(ValueError, match="not with AlphaLift"):
            Mechanism.from_json(weaker, measure=AlphaLift(1.2))
        again = Mechanism.from_json(text, measure=Hellinger())
        assert (again.leakage == mechanism.leakage).all()

    @pytest.mark.parametrize(
        ("change", "text"),
        [
            ({"epsilon": 0.001}, "breaks its budget"),
            ({"epsilon": -1}, r"secrets\[0\].epsilon must be a number of at least 0. Got -1"),
            ({"version": 99}, "format version 99.*update skprivacy"),
            ({"schema": "other"}, "no schema 'skprivacy.mechanism'"),
            ({"scope": "sometimes"}, "scope must be one of 'per_output', 'average'"),
            ({"objective": "profit"}, "objective must be an object"),
            (
                {"objective": {"name": "profit"}},
                r"user-defined utility \(objective.name is \"profit\"\)",
            ),
            (
                {"objective": {"name": "target", "p_vx": [[1.0]]}},
                r"objective.p_vx\[0\] must be a list of 4",
            ),
            ({"measure": {"name": "kl", "alpha": 2}}, "measure.alpha is not a key"),
            ({"measure": "kl"}, "measure must be an object"),
            ({"solver": 3}, "solver must be a text. Got 3"),
            ({"version": True}, "format version true"),
            ({"x_labels": "abcd"}, "x_labels must be a list"),
            (
                {"x_labels": ["a", "a", "b", "c"]},
                r"x_labels\[1\] must be a label that is not in the list already",
            ),
            ({"comment": "mine"}, "comment is not a key that skprivacy writes"),
            ({"channel": [[1.0]]}, "channel must be a list of 4. Got a list of 1"),
            ({"channel": "abc"}, "channel must be a list"),
            (
                {"x_labels": [{"pickle": "x"}, 1, 2, 3]},
                r"x_labels\[0\] must be .* a label as skprivacy writes it",
            ),
            (
                {"p_sx": [[-1.0, 1.0, 0.5, 0.5]], "s_labels": ["a"]},
                r"p_sx\[0\]\[0\] must be a finite number from 0 to 1",
            ),
        ],
    )
    def test_all_of_it_is_checked_on_load(self, mechanism, change, text):
        content = json.loads(mechanism.to_json())
        of_secret = {"epsilon", "p_sx", "s_labels"} & change.keys()
        (content["secrets"][0] if of_secret else content).update(change)
        with pytest.raises(ValueError, match=text):
            Mechanism.from_json(sealed(content))

    @pytest.mark.parametrize("name", ["channel", "secrets", "measure", "x_labels", "solver"])
    def test_nothing_may_be_missing(self, mechanism, name):
        content = json.loads(mechanism.to_json())
        del content[name]
        with pytest.raises(ValueError, match=f"malformed: {name} is missing"):
            Mechanism.from_json(sealed(content))

    @pytest.mark.parametrize("text", ["", "{", "[]", "3", None])
    def test_not_json_at_all(self, text):
        with pytest.raises(ValueError, match="not the JSON text of a mechanism"):
            Mechanism.from_json(text)
