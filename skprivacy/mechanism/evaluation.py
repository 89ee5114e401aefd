"""Evaluation: a channel, and what it leaks about one or more secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from .._typing import FloatArray, IntArray, Labels, Scope, TableLike
from ..channels import Channel, Frozen, doc_of, of_channel
from ..joint import as_joint
from ..measures import Measure, get_measure
from ..utilities import MutualInformation, Utility, get_utility
from .guarantee import Leakage


def of_secret(kind: type[Leakage], name: str) -> Any:
    """Return a property that is a figure of the only secret."""

    def figure(self: Figures) -> Any:
        return getattr(self.only_secret(name), name)

    return property(figure, doc=doc_of(kind, name))


def of_all(name: str, doc: str) -> Any:
    """Return a property that is the same for all secrets."""
    return property(attrgetter(f"_first.{name}"), doc=doc)


class Figures(Frozen):
    """The figures of a channel, and those of its secret where it has one.

    Where there are several secrets, each has its own figures, in `secrets`.
    """

    y_given_x: Channel
    secrets: Mapping[Any, Any]
    together: Leakage | None

    _kind: ClassVar[str] = "evaluation"
    _first: Any  # of the secrets

    channel: FloatArray = of_channel("matrix")
    p_x: FloatArray = of_channel("p_x")
    p_y: FloatArray = of_channel("p_y")
    posterior: FloatArray = of_channel("posterior")
    x_labels: Labels = of_channel("x_labels")
    y_labels: Labels = of_channel("y_labels")
    strata: IntArray | None = of_channel("strata")
    objective: Utility = of_channel("objective")
    utility: float = of_channel("utility")
    normalized_utility: float = of_channel("normalized_utility")
    cell_utility: float = of_channel("cell_utility")
    least_utility: float = of_channel("least_utility")
    mutual_information: float = of_channel("mutual_information")
    independent: FloatArray = of_channel("independent")
    unseen: FloatArray = of_channel("unseen")

    p_sx: FloatArray | None = of_secret(Leakage, "p_sx")
    s_labels: Labels | None = of_secret(Leakage, "s_labels")
    sensitive_posterior: FloatArray = of_secret(Leakage, "sensitive_posterior")
    leakage: FloatArray = of_secret(Leakage, "leakage")
    max_leakage: float = of_secret(Leakage, "max_leakage")
    average_leakage: float = of_secret(Leakage, "average_leakage")
    leakage_in: Callable[[Scope], float] = of_secret(Leakage, "leakage_in")
    sensitive_information: float = of_secret(Leakage, "sensitive_information")
    attacker_accuracy: float = of_secret(Leakage, "attacker_accuracy")
    attacker_advantage: float = of_secret(Leakage, "attacker_advantage")
    max_lift: float = of_secret(Leakage, "max_lift")

    measure: Measure = of_all("measure", "The measure of leakage.")

    def __post_init__(self) -> None:
        self._set(secrets=MappingProxyType(dict(self.secrets)))
        known = [*self.secrets.values(), *([self.together] if self.together else [])]
        if not self.secrets or not all(each.y_given_x is self.y_given_x for each in known):
            raise ValueError("There must be a secret, and all must be about the same channel.")
        self._set(_first=known[0])
        if self.together is None and len(self.secrets) == 1:
            self._set(together=known[0])

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "secrets": dict(self.secrets)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({**state, "secrets": MappingProxyType(state["secrets"])})

    def only_secret(self, asked: str) -> Any:
        """Return the only secret; of several, one must be named. asked : what is wanted of it."""
        if len(self.secrets) == 1:
            return self._first
        names = ", ".join(map(repr, self.secrets))
        raise AttributeError(
            f"This {self._kind} is about several secrets ({names}), each with its own {asked!r}: "
            f"ask {self._kind}.secrets[{next(iter(self.secrets))!r}].{asked}."
        )

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
        y_given_x = self.y_given_x.with_matrix(channel)
        return self._evaluated(y_given_x, lambda each: each.with_channel(y_given_x))

    def with_measure(self, measure: Measure) -> Evaluation:
        """Return the figures of the same channel by another measure.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> from skprivacy.measures import L1
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02, measure="kl")
        >>> round(mechanism.with_measure(L1()).max_leakage, 3)
        0.198
        """
        return self._evaluated(self.y_given_x, lambda each: each.with_measure(measure))

    def _evaluated(self, channel: Channel, figures: Callable[[Leakage], Leakage]) -> Evaluation:
        secrets = {name: figures(each) for name, each in self.secrets.items()}
        if self.together is None or len(secrets) == 1:
            return Evaluation(channel, secrets)
        return Evaluation(channel, secrets, figures(self.together))

    def table(self) -> pd.DataFrame:
        """Return a DataFrame with one row per output.

        Columns: the probability of the output, its leakage and largest lift (not for a mechanism
        saved without its joint; of several secrets, those of each), and the posterior of each
        symbol of X.

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
        for name, secret in self.secrets.items():
            about = "" if len(self.secrets) == 1 else f" {name}"
            if secret.p_sx is not None:
                figures |= {f"leakage{about}": secret.leakage}
                figures |= {f"max_lift{about}": secret.output_lifts}
        names = [*figures, *(f"P({label}|y)" for label in self.x_labels)]
        index = pd.Index(self.y_labels, name="y", tupleize_cols=False)
        columns = np.column_stack([*figures.values(), self.posterior])
        return pd.DataFrame(columns, columns=names, index=index)

    def _figures(self) -> Iterator[str]:
        """Yield what `repr` says about leakage and utility."""
        n_x, n_y = self.channel.shape
        yield f"{n_x} symbols -> {n_y} outputs"
        for name, secret in self.secrets.items():
            told = ", ".join(secret._figures())
            yield told if len(self.secrets) == 1 else f"{name}: ({told})"
        if len(self.secrets) > 1 and self.together is not None:
            yield f"together: ({', '.join(self.together._figures())})"
        yield f"utility={self.utility:.6g} ({self.normalized_utility:.1%} of the largest)"
        if not isinstance(self.objective, MutualInformation):
            yield f"objective={self.objective!r}"
            yield f"I(X;Y)={self.mutual_information:.6g}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.measure!r}: {', '.join(self._figures())})"


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Figures):
    """A channel P(Y|X) under the joint of X with one or more secrets, without budgets.

    Figures of a secret are attributes where there is one; of several, ``evaluation.secrets[name]``
    has those of each.

    Attributes
    ----------
    y_given_x : Channel
        The channel, with names of its symbols and what it was designed for.
    secrets : dict of Leakage
        What leaks about each secret; an only one without a name is called None.
    together : Leakage or None
        What leaks about all secrets as one, where that is known.

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

    y_given_x: Channel
    secrets: Mapping[Any, Leakage]
    together: Leakage | None = None

    @classmethod
    def of_channel(
        cls,
        channel: FloatArray,
        p_sx: TableLike,
        measure: str | Measure = "kl",
        utility: str | Utility = "mutual_information",
    ) -> Evaluation:
        """Return the figures of any channel.

        Parameters
        ----------
        channel : array-like of shape (n_x, n_y)
            ``P(Y = y | X = x)``; rows sum to 1.
        p_sx : array-like or DataFrame of shape (n_s, n_x)
            The joint distribution, as in `design_mechanism`.
        measure, utility
            As in `design_mechanism`.

        Examples
        --------
        >>> from skprivacy import Evaluation
        >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
        >>> merged = Evaluation.of_channel([[1, 0], [0, 1], [0, 1]], joint)
        >>> round(merged.max_leakage, 3), round(merged.normalized_utility, 3)
        (0.145, 0.561)
        """
        owner = "Evaluation.of_channel"
        joint, wanted = as_joint(p_sx, owner), get_utility(utility, owner)
        labels = joint.x_labels, tuple(range(np.shape(channel)[-1]))
        y_given_x = Channel(channel, joint.p_x, *labels, wanted)
        about = joint.p_sx, joint.s_labels, get_measure(measure, owner)
        return cls(y_given_x, {None: Leakage(y_given_x, *about)})
