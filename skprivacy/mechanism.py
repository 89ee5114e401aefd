"""The frozen answer: a channel, what it reveals about S, and the budget that it provably keeps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
import pandas as pd

from ._json import label_key, write_document
from ._json_reader import Place, read_document
from ._messages import Message, Parameter
from ._typing import FloatArray, Labels, Scope, TableLike
from ._validation import check_real, message
from .joint import as_joint, readonly
from .measures import Measure, check_scope, lift
from .measures.leakage import leakage_in, output_values, posteriors
from .measures.ranges import posterior_ranges
from .mechanism_json import ROW_TOLERANCE, fields_content, read_fields
from .utilities import (
    BOUND_TOLERANCE,
    NO_UTILITY,
    MutualInformation,
    Utility,
    get_utility,
    mutual_information,
)


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """A channel P(Y|X) under a joint distribution P_SX: what it keeps and what it leaks.

    Attributes
    ----------
    channel : ndarray of shape (n_x, n_y)
        ``P(Y = y | X = x)``; rows sum to 1.
    p_sx : ndarray of shape (n_s, n_x)
        The joint distribution that all figures are about.
    s_labels, x_labels, y_labels : tuple
        Names of the symbols.
    measure : Measure
        The measure of leakage.
    objective : Utility
        What `utility` measures: what the channel was designed for.
    p_x : ndarray of shape (n_x,)
        The distribution of X.

    Examples
    --------
    A channel under a joint distribution other than that of its design:

    >>> from skprivacy import design_mechanism
    >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
    >>> evaluation = mechanism.evaluate([[0.25, 0.1, 0.05], [0.05, 0.2, 0.35]])
    >>> round(evaluation.max_leakage, 3)
    0.076
    >>> round(evaluation.attacker_accuracy, 3)
    0.643
    """

    channel: FloatArray
    p_sx: FloatArray | None
    s_labels: Labels | None
    x_labels: Labels
    y_labels: Labels
    measure: Measure
    objective: Utility = field(default_factory=MutualInformation)
    p_x: FloatArray = None  # type: ignore[assignment]  # that of p_sx, once made

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", get_utility(self.objective, type(self).__name__))
        if self.p_sx is not None:  # a p_x given along with a joint could contradict it
            object.__setattr__(self, "p_x", np.sum(self.p_sx, axis=0))
        for name in ("channel", "p_sx", "p_x"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, readonly(np.array(value, dtype=float, order="C")))

    def with_channel(self, channel: FloatArray) -> Evaluation:
        """Return the figures of another channel under the same joint.

        Examples
        --------
        What releasing X itself would leak:

        >>> import numpy as np
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> round(mechanism.with_channel(np.eye(3)).max_leakage, 3)
        0.145
        """
        return self._evaluation(channel, self.measure)

    def with_measure(self, measure: Measure) -> Evaluation:
        """Return the figures of the same channel by another measure.

        Examples
        --------
        >>> from skprivacy import L1, design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02, measure="kl")
        >>> round(mechanism.with_measure(L1()).max_leakage, 3)
        0.198
        """
        return self._evaluation(self.channel, measure)

    def _evaluation(self, channel: FloatArray, measure: Measure) -> Evaluation:
        labels = self.s_labels, self.x_labels, self.y_labels
        return Evaluation(channel, self.p_sx, *labels, measure, self.objective, self.p_x)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # numpy unlocks arrays when they are copied or unpickled
        self.__dict__.update(state)
        for value in state.values():
            if isinstance(value, np.ndarray):
                readonly(value)

    @cached_property
    def p_y(self) -> FloatArray:
        """``P(Y)``, of shape (n_y,)."""
        return readonly(self.p_x @ self.channel)

    @cached_property
    def posterior(self) -> FloatArray:
        """``P(X | Y = y)``, of shape (n_y, n_x); P(X) for an output of probability zero."""
        return readonly(posteriors(self.p_x[:, None] * self.channel, self.p_y, self.p_x))

    @cached_property
    def sensitive_posterior(self) -> FloatArray:
        """``P(S | Y = y)``, of shape (n_y, n_s); P(S) for an output of probability zero."""
        return readonly(posteriors(self._p_sy, self.p_y, self._joint.sum(axis=1)))

    @property
    def _joint(self) -> FloatArray:
        if self.p_sx is None:
            raise AttributeError(
                "This mechanism was saved without its joint distribution, so what it leaks is "
                "not known here. Use evaluate(p_sx) with a joint of your own."
            )
        return self.p_sx

    @property
    def _p_sy(self) -> FloatArray:
        return self._joint @ self.channel

    @cached_property
    def _values(self) -> FloatArray:
        """g of every output, over the symbols of S that occur."""
        return output_values(self.measure, self.sensitive_posterior, self._joint.sum(axis=1))

    @cached_property
    def leakage(self) -> FloatArray:
        """Leakage of each output on the eps scale of the measure, of shape (n_y,)."""
        return readonly(np.array(self.measure.inverse(self._values), dtype=float))

    @property
    def max_leakage(self) -> float:
        """The leakage of the worst output."""
        return leakage_in("per_output", self.measure, self._values, self.p_y)

    @cached_property
    def average_leakage(self) -> float:
        """Leakage on average over outputs, eps scale; NaN for a measure without an average."""
        return leakage_in("average", self.measure, self._values, self.p_y)

    def leakage_in(self, scope: Scope) -> float:
        """Return the leakage that a budget of some scope is about.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> [round(mechanism.leakage_in(scope), 3) for scope in ("per_output", "average")]
        [0.02, 0.017]
        """
        return self.max_leakage if scope == "per_output" else self.average_leakage

    @cached_property
    def sensitive_information(self) -> float:
        """``I(S;Y)`` in nats."""
        return mutual_information(self._p_sy)

    @cached_property
    def attacker_accuracy(self) -> float:
        """How often the best attacker, who knows the joint and the channel, guesses S from Y.

        ``sum_y max_s P(s,y)``.
        """
        return float(self._p_sy.max(axis=0).sum())

    @property
    def attacker_advantage(self) -> float:
        """How much more often that is right than the best blind guess."""
        return max(0.0, self.attacker_accuracy - float(self._joint.sum(axis=1).max()))

    @cached_property
    def _output_lifts(self) -> FloatArray:
        return lift(self.sensitive_posterior, self._joint.sum(axis=1)).max(axis=1)

    @property
    def max_lift(self) -> float:
        """The largest ``P(s|y) / P(s)``."""
        return float(self._output_lifts.max())

    @cached_property
    def utility(self) -> float:
        """The utility that the channel was designed for: ``I(X;Y)`` unless `objective` differs."""
        return self.objective.of_channel(self.p_x, self.channel)

    @cached_property
    def mutual_information(self) -> float:
        """``I(X;Y)`` in nats, whatever the objective."""
        return mutual_information(self.p_x[:, None] * self.channel)

    @cached_property
    def _largest_utility(self) -> float:
        return self.objective.largest(self.p_x)

    @property
    def normalized_utility(self) -> float:
        """The share of the utility of X that is kept, beyond what a constant output has.

        1 where there is none to keep.
        """
        return self._normalized(self.utility)

    def _normalized(self, utility: float) -> float:
        smallest = self.objective.smallest(self.p_x)
        room = self._largest_utility - smallest
        return (utility - smallest) / room if room > NO_UTILITY else 1.0

    def table(self) -> pd.DataFrame:
        """Return a DataFrame with one row per output.

        Columns: the probability of the output, its leakage and largest lift (not for a mechanism
        saved without its joint), and the posterior of each symbol of X.

        Examples
        --------
        >>> import pandas as pd
        >>> from skprivacy import design_mechanism
        >>> counts = pd.DataFrame([[20, 10, 10], [10, 20, 30]], columns=list("abc"))
        >>> design_mechanism(counts, 0.01, solver="watchdog").table().round(3).reset_index()
           y  probability  leakage  max_lift  P(a|y)  P(b|y)  P(c|y)
        0  0          0.3    0.009     1.111   0.000     1.0   0.000
        1  1          0.7    0.002     1.071   0.429     0.0   0.571
        """
        figures = {"probability": self.p_y}
        if self.p_sx is not None:
            figures |= {"leakage": self.leakage, "max_lift": self._output_lifts}
        names = [*figures, *(f"P({label}|y)" for label in self.x_labels)]
        index = pd.Index(self.y_labels, name="y", tupleize_cols=False)
        columns = np.column_stack([*figures.values(), self.posterior])
        return pd.DataFrame(columns, columns=names, index=index)

    def _figures(self) -> Iterator[str]:
        """Yield what `repr` says about leakage and utility."""
        n_x, n_y = self.channel.shape
        yield f"{n_x} symbols -> {n_y} outputs"
        if self.p_sx is None:
            yield "joint left out"
        else:
            yield f"max_leakage={self.max_leakage:.6g}"
            yield f"average_leakage={self.average_leakage:.6g}"
        yield f"utility={self.utility:.6g} ({self.normalized_utility:.1%} of the largest)"
        if not isinstance(self.objective, MutualInformation):
            yield f"objective={self.objective!r}"
            yield f"I(X;Y)={self.mutual_information:.6g}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.measure!r}: {', '.join(self._figures())})"


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(Evaluation):
    """A channel P(Y|X) that keeps a privacy budget under a joint distribution P_SX.

    Made by `design_mechanism`. A mechanism with a joint that breaks its budget cannot exist:
    leakage is computed from the floats of the channel itself whenever the object is made,
    including when it is loaded. The guarantee is about `p_sx`, the joint distribution it was
    designed for. If that was left out of a saved mechanism, the budget is only what its file
    claims.

    Attributes
    ----------
    epsilon : float
        The budget.
    scope : str
        "per_output" or "average": which leakage is within the budget.
    solver : str
        The name of the solver that was used.
    upper_bound : float
        No mechanism with a leakage of at most `epsilon` has a larger utility.

    Examples
    --------
    >>> from skprivacy import Mechanism, design_mechanism
    >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
    >>> mechanism.channel.sum(axis=1).round(12).tolist()
    [1.0, 1.0, 1.0]
    >>> bool(mechanism.max_leakage <= 0.02 * (1 + 1e-9))
    True
    >>> Mechanism.from_json(mechanism.to_json()).utility == mechanism.utility
    True
    """

    epsilon: float = field(kw_only=True)
    scope: Scope = field(kw_only=True)
    solver: str = field(kw_only=True)
    # None means that no bound is known: it is then replaced by the largest utility.
    upper_bound: float = field(kw_only=True, default=None)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real("Mechanism", "epsilon", self.epsilon, low=0)
        check_scope("Mechanism", self.scope, self.measure)
        self._check_distributions()
        self._check_budget()
        largest = self._largest_utility
        bound = largest if self.upper_bound is None else min(self.upper_bound, largest)
        # A bound below the utility by more than rounding would be wrong, not tight.
        if not bound >= self.utility - BOUND_TOLERANCE * max(1.0, largest):
            raise ValueError(message("Mechanism", "upper_bound", f">= {self.utility}", bound))
        object.__setattr__(self, "upper_bound", float(max(bound, self.utility)))

    def _check_distributions(self) -> None:
        if self.p_sx is not None:
            as_joint(self.p_sx, "Mechanism")
            if not abs(self.p_sx.sum() - 1) <= ROW_TOLERANCE:
                raise ValueError(f"p_sx must sum to 1. Got a sum of {self.p_sx.sum()}.")
        if self.channel.ndim != 2 or self.p_x.shape != self.channel.shape[:1]:
            raise ValueError(
                f"The channel must have one row for each of the {len(self.p_x)} symbols of X. "
                f"Got shape {self.channel.shape}."
            )
        if not (self.channel >= 0).all():  # NaN fails too
            raise ValueError("The channel must hold probabilities: no negative numbers, no NaN.")
        error = np.abs(self.channel.sum(axis=1) - 1).max()
        if not error <= ROW_TOLERANCE:
            raise ValueError(f"The rows of the channel must sum to 1. They are off by {error}.")
        self._check_labels()
        error = np.abs(self.p_y @ self.posterior - self.p_x).max()
        if not error <= ROW_TOLERANCE or not abs(self.p_x.sum() - 1) <= ROW_TOLERANCE:
            raise ValueError("The channel does not reproduce the distribution of X.")

    def _check_labels(self) -> None:
        counts = {"x_labels": self.channel.shape[0], "y_labels": self.channel.shape[1]}
        if self.p_sx is not None:
            counts["s_labels"] = len(self.p_sx)
        for name, count in counts.items():
            labels = getattr(self, name)
            keys = {(type(label), label_key(label)) for label in labels}
            if not isinstance(labels, tuple) or len(labels) != count or len(keys) != count:
                requirement = f"a tuple of {count} different names"
                raise ValueError(message("Mechanism", name, requirement, labels))
        if not isinstance(self.solver, str):
            raise TypeError(message("Mechanism", "solver", "a str", self.solver))

    def _check_budget(self) -> None:
        if self.p_sx is None:
            return
        leakage = self.leakage_in(self.scope)
        if not leakage <= self.measure.budget(self.epsilon):
            raise ValueError(
                f"The channel breaks its budget: epsilon={self.epsilon} for {self.measure!r}, "
                f"{self.scope}, but its leakage is {leakage}."
            )

    @property
    def gap(self) -> float:
        """The most utility that a better mechanism could add."""
        return self.upper_bound - self.utility

    @property
    def normalized_upper_bound(self) -> float:
        """The `normalized_utility` that no mechanism within the budget exceeds."""
        return self._normalized(self.upper_bound)

    @property
    def advantage_bound(self) -> float:
        """How much more often than blindly S can be guessed from Y, at most, given the budget."""
        prior = self._joint.sum(axis=1)
        return min(self.measure.advantage(self.epsilon, prior), 1 - float(prior.max()))

    def posterior_ranges(self) -> pd.DataFrame:
        """Return how far a released value moves the probability of each group of S.

        Returns
        -------
        DataFrame
            One row per group. `prior` is its share; `reached_low` and `reached_high` are the
            smallest and the largest P(s|y); `allowed_low` and `allowed_high` are what the budget
            alone allows, whatever the channel. A budget on average allows single outputs anything:
            these are then NaN.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> mechanism.posterior_ranges().round(2).reset_index()
           s  prior  reached_low  reached_high  allowed_low  allowed_high
        0  0    0.4          0.3           0.5          0.3           0.5
        1  1    0.6          0.5           0.7          0.5           0.7
        """
        prior, posteriors = self._joint.sum(axis=1), self.sensitive_posterior[self.p_y > 0]
        allowed = np.full((len(prior), 2), np.nan)
        if self.scope == "per_output":
            allowed = posterior_ranges(self.measure, prior, self.epsilon)
        figures = {
            "prior": prior,
            "reached_low": posteriors.min(axis=0),
            "reached_high": posteriors.max(axis=0),
            "allowed_low": allowed[:, 0],
            "allowed_high": allowed[:, 1],
        }
        labels = pd.Index(self.s_labels or (), name="s", tupleize_cols=False)
        return pd.DataFrame(figures, index=labels)

    def evaluate(self, p_sx: TableLike) -> Evaluation:
        """Return all figures of the channel under another joint distribution.

        Parameters
        ----------
        p_sx : array-like or DataFrame of shape (n_s, n_x)
            Probabilities or counts. S may have symbols other than those of the design. The columns
            of a DataFrame are matched with `x_labels`.

        Returns
        -------
        Evaluation
            It has no budget: under another joint the channel may leak more.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> drifted = mechanism.evaluate([[0.3, 0.1, 0.0], [0.0, 0.2, 0.4]])
        >>> bool(drifted.max_leakage > mechanism.max_leakage)
        True
        """
        owner = "Mechanism.evaluate"
        if isinstance(p_sx, pd.DataFrame):
            p_sx = self._match_columns(p_sx, owner)
        joint = as_joint(p_sx, owner)
        if len(joint.x_labels) != len(self.x_labels):
            raise ValueError(
                Message(
                    Parameter("p_sx", owner),
                    f" must have {len(self.x_labels)} columns, one per symbol of X. Got "
                    f"{len(joint.x_labels)}.",
                )
            )
        return Evaluation(
            self.channel,
            joint.p_sx,
            joint.s_labels,
            self.x_labels,
            self.y_labels,
            self.measure,
            self.objective.elsewhere(),
        )

    def _match_columns(self, p_sx: pd.DataFrame, owner: str) -> pd.DataFrame:
        # By position: a list of booleans or of tuples would not select columns.
        ours = {label_key(label): label for label in self.x_labels}
        theirs = {label_key(label): i for i, label in enumerate(p_sx.columns.tolist())}
        missing = [label for key, label in ours.items() if key not in theirs]
        unknown = [p_sx.columns[i] for key, i in theirs.items() if key not in ours]
        if missing or unknown:
            raise ValueError(
                f"The columns of the 'p_sx' parameter of {owner} must be the symbols of X. "
                f"Missing: {missing[:5]}; unknown: {unknown[:5]}."
            )
        return p_sx.iloc[:, [theirs[key] for key in ours]]

    def _figures(self) -> Iterator[str]:
        claimed = "claimed " if self.p_sx is None else ""
        yield f"{claimed}epsilon={self.epsilon:.6g} {self.scope}"
        yield from super()._figures()
        yield f"gap<={self.gap:.2g}"
        yield f"solver={self.solver!r}"

    def to_json(self, *, include_joint: bool = True, indent: int | None = None) -> str:
        """Return the mechanism as JSON text, exact to the last bit.

        Parameters
        ----------
        include_joint : bool, default=True
            False leaves out P_SX, the symbols of S and the table of a target: whoever applies
            the channel needs none of them. Leakage cannot be computed from such a file. (The
            channel itself was designed for P_SX, and an expert can still infer a little about it
            from the channel.)
        indent : int, default=None
            As in `json.dumps`.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> "p_sx" in mechanism.to_json(), "p_sx" in mechanism.to_json(include_joint=False)
        (True, False)
        """
        return write_document("mechanism", mechanism_content(self, include_joint), indent)

    @classmethod
    def from_json(
        cls, text: str, *, measure: Measure | None = None, utility: Utility | None = None
    ) -> Self:
        """Return the mechanism that `to_json` wrote, after checking all of it.

        Parameters
        ----------
        text : str
            The JSON text. If it is not what `to_json` writes, a ValueError names the place.
        measure : Measure, default=None
            Needed for a mechanism designed with a measure of your own.
        utility : Utility, default=None
            Needed for a mechanism designed for a utility of your own.

        Examples
        --------
        >>> from skprivacy import Mechanism, design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> shipped = Mechanism.from_json(mechanism.to_json(include_joint=False))
        >>> shipped.p_sx is None and bool((shipped.channel == mechanism.channel).all())
        True
        """
        return make_mechanism(read_document(text, "mechanism"), cls, measure, utility)


def mechanism_content(mechanism: Mechanism, include_joint: bool) -> dict[str, Any]:
    """Return what a document says about a mechanism."""
    made = {each.name: getattr(mechanism, each.name) for each in fields(mechanism)}
    return fields_content(made, include_joint)


M = TypeVar("M", bound=Mechanism)


def make_mechanism(
    place: Place, make: type[M], measure: Measure | None, utility: Utility | None = None
) -> M:
    """Return the mechanism at some place; it checks itself that its fields fit together."""
    read = read_fields(place, measure, utility)
    with place.making():
        return make(**read)
