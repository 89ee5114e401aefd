"""A channel under a joint distribution: what it keeps and what it leaks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from .._typing import FloatArray, IntArray, Labels, Scope
from ..joint import readonly
from ..measures import Measure, lift
from ..measures.leakage import leakage_in, output_values, posteriors
from ..repair import independent
from ..utilities import (
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
    groups : ndarray of shape (n_x,) or None
        Where columns are published beside Y, their value for each symbol of X, as a number. Every
        output belongs to one of these groups, so that its figures are those of both together.

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
    groups: IntArray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", get_utility(self.objective, type(self).__name__))
        if self.p_sx is not None:  # a p_x given along with a joint could contradict it
            object.__setattr__(self, "p_x", np.sum(self.p_sx, axis=0))
        for name in ("channel", "p_sx", "p_x"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, readonly(np.array(value, dtype=float, order="C")))
        if self.groups is not None:
            groups = np.array(self.groups, dtype=np.intp)
            groups.flags.writeable = False
            object.__setattr__(self, "groups", groups)

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
        about = measure, self.objective
        return Evaluation(channel, self.p_sx, *labels, *about, self.p_x, self.groups)

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

    @property
    def cell_utility(self) -> float:
        """The `normalized_utility` of symbols as they are: less than 1 if they are cells of X."""
        return self._normalized(self.objective.of_identity(self.p_x))

    @cached_property
    def independent(self) -> FloatArray:
        """The channel that tells no more than the columns beside it, with the same P(Y).

        P(Y) in every row, or P(Y|z) where columns z are published beside Y.
        """
        return readonly(independent(self.channel, self.p_x, self.groups))

    @property
    def unseen(self) -> FloatArray:
        """What values of X that nobody has seen are drawn from: P(Y) in one row.

        Where columns z are published beside Y, P(Y|z), a row for each z.
        """
        if self.groups is None:
            return self.p_y[None]
        return self.independent[np.unique(self.groups, return_index=True)[1]]

    @cached_property
    def least_utility(self) -> float:
        """The utility of releasing nothing, or nothing but the columns beside."""
        return self.objective.least(self.p_x, self.groups)

    def _normalized(self, utility: float) -> float:
        smallest = self.least_utility
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
