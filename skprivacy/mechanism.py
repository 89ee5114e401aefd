"""The frozen answer: a channel, what it says about S, and the budget that it provably keeps."""

import json
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from ._labels import decode_label, encode_label
from ._validation import check_real, message
from .joint import as_joint, readonly
from .measures import (
    MEASURES,
    Measure,
    budget_with_tolerance,
    check_scope,
    get_measure,
    lift,
)
from .utilities import get_utility, mutual_information

_SCHEMA = "skprivacy.mechanism"
_SCHEMA_VERSION = 1

# How far the rows of a channel may be from 1.
_ROW_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """A channel P(Y|X) under a joint distribution P_SX: what is kept and what leaks.

    Attributes
    ----------
    channel : ndarray of shape (n_x, n_y)
        ``P(Y = y | X = x)``; rows sum to 1.
    p_sx : ndarray of shape (n_s, n_x)
        The joint distribution that all figures are about.
    p_x : ndarray of shape (n_x,)
        The distribution of X.
    s_labels, x_labels, y_labels : tuple
        Names of the symbols.
    measure : Measure
        The measure of leakage.
    objective : str
        The name of the utility.
    """

    channel: np.ndarray
    p_sx: np.ndarray | None
    p_x: np.ndarray
    s_labels: tuple | None
    x_labels: tuple
    y_labels: tuple
    measure: Measure
    objective: str = "mutual_information"

    def __post_init__(self):
        for name in ("channel", "p_sx", "p_x"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, readonly(np.array(value, dtype=float)))

    def __setstate__(self, state):
        # numpy unlocks arrays when they are copied or unpickled
        self.__dict__.update(state)
        for value in state.values():
            if isinstance(value, np.ndarray):
                readonly(value)

    @cached_property
    def p_y(self):
        """``P(Y)``, of shape (n_y,)."""
        return readonly(self.p_x @ self.channel)

    @cached_property
    def posterior(self):
        """``P(X | Y = y)``, of shape (n_y, n_x); P(X) for an output of probability zero."""
        return readonly(self._given_output(self.p_x[:, None] * self.channel, self.p_x))

    @cached_property
    def sensitive_posterior(self):
        """``P(S | Y = y)``, of shape (n_y, n_s); P(S) for an output of probability zero."""
        return readonly(self._given_output(self._p_sy, self._joint.sum(axis=1)))

    def _given_output(self, joint_with_output, prior):
        rows = joint_with_output.T / np.where(self.p_y > 0, self.p_y, 1.0)[:, None]
        return np.where((self.p_y > 0)[:, None], rows, prior)

    @property
    def _joint(self):
        if self.p_sx is None:
            raise AttributeError(
                "This mechanism was saved without its joint distribution, so what it leaks is "
                "not known here. Use evaluate(p_sx) with a joint of your own."
            )
        return self.p_sx

    @property
    def _p_sy(self):
        return self._joint @ self.channel

    @cached_property
    def _values(self):
        """g of every output."""
        return self.measure.value(self.sensitive_posterior, self._joint.sum(axis=1))

    @cached_property
    def leakage(self):
        """Leakage of each output on the eps scale of the measure, of shape (n_y,)."""
        return readonly(np.array(self.measure.inverse(self._values), dtype=float))

    @property
    def max_leakage(self):
        """The leakage of the worst output."""
        return float(self.leakage.max())

    @cached_property
    def average_leakage(self):
        """Leakage on average over outputs, eps scale; NaN for a measure without an average."""
        if "average" not in self.measure.scopes:
            return float("nan")
        return float(self.measure.inverse(self.p_y @ self._values))

    @cached_property
    def sensitive_information(self):
        """``I(S;Y)`` in nats."""
        return mutual_information(self._p_sy)

    @cached_property
    def _output_lifts(self):
        return lift(self.sensitive_posterior, self._joint.sum(axis=1)).max(axis=1)

    @property
    def max_lift(self):
        """The largest ``P(s|y) / P(s)``."""
        return float(self._output_lifts.max())

    @cached_property
    def utility(self):
        """The utility in nats: ``I(X;Y)``."""
        return get_utility(self.objective).of_channel(self.p_x, self.channel)

    @cached_property
    def _largest_utility(self):
        return get_utility(self.objective).largest(self.p_x)

    @property
    def normalized_utility(self):
        """The share of the largest utility that is kept; 1 where there is none to keep."""
        return self.utility / self._largest_utility if self._largest_utility > 0 else 1.0

    def table(self):
        """Return a DataFrame with one row per output.

        Columns: the probability of the output, its leakage and largest lift (not for a mechanism
        saved without its joint), and the posterior of each symbol of X.
        """
        columns = {"probability": self.p_y}
        if self.p_sx is not None:
            columns |= {"leakage": self.leakage, "max_lift": self._output_lifts}
        for x, label in enumerate(self.x_labels):
            columns[f"P({label}|y)"] = self.posterior[:, x]
        index = pd.Index(self.y_labels, name="y", tupleize_cols=False)
        return pd.DataFrame(columns, index=index)

    def _figures(self):
        """Return what `repr` says of leakage and utility."""
        n_x, n_y = self.channel.shape
        yield f"{n_x} symbols -> {n_y} outputs"
        if self.p_sx is None:
            yield "joint left out"
        else:
            yield f"max_leakage={self.max_leakage:.6g}"
            yield f"average_leakage={self.average_leakage:.6g}"
        yield f"utility={self.utility:.6g} ({self.normalized_utility:.1%} of the largest)"

    def __repr__(self):
        return f"{type(self).__name__}({self.measure!r}: {', '.join(self._figures())})"


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(Evaluation):
    """A channel P(Y|X) that keeps a privacy budget under a joint distribution P_SX.

    Made by `design_mechanism`. A mechanism cannot exist that breaks its budget: leakage is
    computed from the floats of the channel itself when the object is made, also when it is
    loaded. The guarantee is about `p_sx`, the joint distribution it was designed for.

    Attributes
    ----------
    epsilon : float
        The budget.
    scope : str
        "per_output" or "average": which leakage is within the budget.
    solver : str
        The name of the solver that was used.
    upper_bound : float
        No mechanism within the budget has a larger utility.

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
    scope: str = field(kw_only=True)
    solver: str = field(kw_only=True)
    upper_bound: float | None = field(kw_only=True, default=None)

    def __post_init__(self):
        super().__post_init__()
        check_real("Mechanism", "epsilon", self.epsilon, low=0)
        check_scope("Mechanism", self.scope, self.measure)
        self._check_distributions()
        self._check_budget()
        largest = self._largest_utility
        bound = largest if self.upper_bound is None else min(self.upper_bound, largest)
        # A bound below the utility by more than rounding would be wrong, not tight.
        if not bound >= self.utility - 1e-9 * max(1.0, largest):
            raise ValueError(message("Mechanism", "upper_bound", f">= {self.utility}", bound))
        object.__setattr__(self, "upper_bound", max(bound, self.utility))

    def _check_distributions(self):
        if self.channel.ndim != 2 or self.p_x.shape != self.channel.shape[:1]:
            raise ValueError(
                f"The channel must have one row for each of the {len(self.p_x)} symbols of X. "
                f"Got shape {self.channel.shape}."
            )
        if not (self.channel >= 0).all():  # NaN fails too
            raise ValueError("The channel must hold probabilities: no negative numbers, no NaN.")
        error = np.abs(self.channel.sum(axis=1) - 1).max()
        if not error <= _ROW_TOLERANCE:
            raise ValueError(f"The rows of the channel must sum to 1. They are off by {error}.")
        self._check_labels()
        error = np.abs(self.p_y @ self.posterior - self.p_x).max()
        if not error <= _ROW_TOLERANCE or not abs(self.p_x.sum() - 1) <= _ROW_TOLERANCE:
            raise ValueError("The channel does not reproduce the distribution of X.")

    def _check_labels(self):
        counts = {"x_labels": self.channel.shape[0], "y_labels": self.channel.shape[1]}
        if self.p_sx is not None:
            as_joint(self.p_sx, "Mechanism")
            counts["s_labels"] = len(self.p_sx)
        for name, count in counts.items():
            if len(getattr(self, name)) != count:
                raise ValueError(message("Mechanism", name, f"{count} names", getattr(self, name)))

    def _check_budget(self):
        if self.p_sx is None:
            return
        leakage = self.max_leakage if self.scope == "per_output" else self.average_leakage
        if not leakage <= budget_with_tolerance(self.epsilon):
            raise ValueError(
                f"The channel breaks its budget: epsilon={self.epsilon} for {self.measure!r}, "
                f"{self.scope}, but its leakage is {leakage}."
            )

    @property
    def gap(self):
        """How much utility a better mechanism could have at most."""
        return self.upper_bound - self.utility

    def evaluate(self, p_sx):
        """Return all figures of the channel under another joint distribution.

        Parameters
        ----------
        p_sx : array-like or DataFrame of shape (n_s, n_x)
            Probabilities or counts. S may have other symbols than in the design. The columns of
            a DataFrame are matched with `x_labels`.

        Returns
        -------
        Evaluation
            There is no budget in it: under another joint the channel may leak more.

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
                f"The 'p_sx' parameter of {owner} must have {len(self.x_labels)} columns, one per "
                f"symbol of X. Got {len(joint.x_labels)}."
            )
        return Evaluation(
            self.channel,
            joint.p_sx,
            joint.p_x,
            joint.s_labels,
            self.x_labels,
            self.y_labels,
            self.measure,
            self.objective,
        )

    def _match_columns(self, p_sx, owner):
        missing = [label for label in self.x_labels if label not in p_sx.columns]
        unknown = [label for label in p_sx.columns if label not in self.x_labels]
        if missing or unknown:
            raise ValueError(
                f"The columns of the 'p_sx' parameter of {owner} must be the symbols of X. "
                f"Missing: {missing[:5]}; unknown: {unknown[:5]}."
            )
        return p_sx[list(self.x_labels)]

    def _figures(self):
        yield f"epsilon={self.epsilon:.6g} {self.scope}"
        yield from super()._figures()
        yield f"gap<={self.gap:.2g}"
        yield f"solver={self.solver!r}"

    def to_json(self, *, include_joint=True, indent=None):
        """Return the mechanism as JSON text, to the last bit.

        Parameters
        ----------
        include_joint : bool, default=True
            False leaves out P_SX and the symbols of S: whoever applies the channel needs
            neither. Leakage cannot be computed from such a file.
        indent : int, default=None
            As in `json.dumps`.
        """
        content = {
            "schema": _SCHEMA,
            "version": _SCHEMA_VERSION,
            "epsilon": encode_label(self.epsilon),
            "measure": {key: encode_label(value) for key, value in self.measure.to_dict().items()},
            "scope": self.scope,
            "objective": self.objective,
            "solver": self.solver,
            "upper_bound": self.upper_bound,
            "x_labels": [encode_label(label) for label in self.x_labels],
            "y_labels": [encode_label(label) for label in self.y_labels],
            "channel": self.channel.tolist(),
        }
        if include_joint and self.p_sx is not None:
            content["s_labels"] = [encode_label(label) for label in self.s_labels]
            content["p_sx"] = self.p_sx.tolist()
        else:
            content["p_x"] = self.p_x.tolist()
        return json.dumps(content, allow_nan=False, indent=indent)

    @classmethod
    def from_json(cls, text, *, measure=None):
        """Return the mechanism that `to_json` wrote, after checking all of it.

        Parameters
        ----------
        text : str
            The JSON text.
        measure : Measure, default=None
            Needed for a mechanism designed with a measure of your own.

        Examples
        --------
        >>> from skprivacy import Mechanism, design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> shipped = Mechanism.from_json(mechanism.to_json(include_joint=False))
        >>> shipped.p_sx is None and (shipped.channel == mechanism.channel).all()
        np.True_
        """
        return _from_content(cls, _parse(text), measure)


def _parse(text):
    try:
        content = json.loads(text)
    except (TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"This is not the JSON text of a mechanism: {error}.") from error
    if not isinstance(content, dict) or content.get("schema") != _SCHEMA:
        raise ValueError(f"This is not the JSON text of a mechanism: no schema {_SCHEMA!r}.")
    if content.get("version") != _SCHEMA_VERSION:
        raise ValueError(
            f"This mechanism has schema version {content.get('version')!r}; this version of "
            f"skprivacy reads version {_SCHEMA_VERSION}."
        )
    return content


def _from_content(cls, content, measure):
    try:
        measure = _read_measure(content["measure"], measure)
        p_sx, s_labels = _read_joint(content)
        return cls(
            np.array(content["channel"], dtype=float),
            p_sx,
            np.array(content["p_x"], dtype=float) if p_sx is None else p_sx.sum(axis=0),
            s_labels,
            tuple(decode_label(label) for label in content["x_labels"]),
            tuple(decode_label(label) for label in content["y_labels"]),
            measure,
            content["objective"],
            epsilon=decode_label(content["epsilon"]),
            scope=content["scope"],
            solver=content["solver"],
            upper_bound=content["upper_bound"],
        )
    except KeyError as error:
        raise ValueError(f"The JSON text of this mechanism lacks {error}.") from error
    except TypeError as error:
        raise ValueError(f"The JSON text of this mechanism is malformed: {error}.") from error


def _read_joint(content):
    if "p_sx" not in content:
        return None, None
    s_labels = tuple(decode_label(label) for label in content["s_labels"])
    return np.array(content["p_sx"], dtype=float), s_labels


def _read_measure(saved, given):
    saved = {key: decode_label(value) for key, value in saved.items()}
    name = saved.pop("name")
    if given is None and name not in MEASURES:
        raise ValueError(
            f"This mechanism was designed with a measure of the user's own ({name!r}): pass it "
            f"as from_json(text, measure=...)."
        )
    measure = get_measure(name, "Mechanism.from_json", **saved) if given is None else given
    if measure.name != name:
        raise ValueError(f"This mechanism was designed with {name!r}, not with {given!r}.")
    return measure
