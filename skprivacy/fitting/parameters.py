"""The parameters of the transformer, checked in `fit` as scikit-learn does."""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._messages import Message
from .._typing import Scope
from .._validation import about, check_choice, check_confidence, check_integer, check_real, message
from ..cells import Cells
from ..fitted import check_budget, columns_of_secrets
from ..measures import Measure
from ..releasing.release import MADE_UP
from ..solvers import Solver
from ..utilities import Distortion, Target, Utility

# Whether the symbols of X are combinations of values, or cells.
ALPHABETS = ("auto", "values", "cells")

# The parameters that a design depends on; the roles of columns are fixed by the first batch.
_OF_DESIGN = (
    "epsilon", "measure", "scope", "utility", "solver", "max_outputs", "confidence",
    "solver_options", "alphabet", "draws_together", "release_target",
    "n_bins", "ordered", "min_frequency", "max_categories", "smoothing",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Settings:
    """The current parameters of a transformer; owner : its name, for messages."""

    owner: str
    epsilon: float | Mapping[Any, float]
    sensitive: Any
    columns: Any
    beside: Any
    measure: str | Measure
    scope: Scope
    utility: str | Utility
    solver: str | Solver
    max_outputs: int | None
    confidence: float | None
    solver_options: dict[str, Any] | None
    output: str
    made_up: str
    release_target: bool
    remainder: Any
    alphabet: Any
    n_bins: Any
    ordered: Mapping[Any, Sequence[Any]] | None
    min_frequency: float | None
    max_categories: int | None
    smoothing: float
    handle_unknown: str
    random_state: Any

    def parameters(self) -> dict[str, Any]:
        """Return all parameters by name, in alphabetical order."""
        return {name: value for name, value in sorted(vars(self).items()) if name != "owner"}

    def check(self) -> None:
        """Check the parameters that do not depend on the data; the design checks its own."""
        owner = self.owner
        check_budget(owner, self.epsilon)
        check_choice(owner, "output", self.output, {"label", "symbol", "posterior"})
        check_choice(owner, "made_up", self.made_up, MADE_UP)
        if not isinstance(self.release_target, bool):
            requirement = "True or False"
            raise TypeError(message(owner, "release_target", requirement, self.release_target))
        if self.release_target and not self.has_target:
            needs = " needs {utility='target'}, and y: there is no target that could be released."
            raise ValueError(about(owner, "release_target", Message.of(needs)))
        if isinstance(self.remainder, str):
            check_choice(owner, "remainder", self.remainder, {"drop", "passthrough"})
        elif not isinstance(self.remainder, list | tuple):
            requirement = "'drop', 'passthrough' or a list of columns"
            raise TypeError(message(owner, "remainder", requirement, self.remainder))
        if isinstance(self.alphabet, Cells):
            self.alphabet.check()
        elif isinstance(self.alphabet, type) and issubclass(self.alphabet, Cells):
            requirement = f"an instance of {self.alphabet.__name__}, not the class"
            raise TypeError(message(owner, "alphabet", requirement, self.alphabet))
        else:
            others = ", TreeCells(...) or ScoreCells(...)"
            check_choice(owner, "alphabet", self.alphabet, ALPHABETS, others)
        check_choice(owner, "handle_unknown", self.handle_unknown, {"resample", "error"})
        check_real(owner, "smoothing", self.smoothing, low=0, high_open=True)
        if self.confidence is not None:
            check_confidence(owner, self.confidence)
            if self.smoothing:
                # Rows that nobody has seen would make the limit for the population too low.
                needs, got = " must be 0 with a {confidence}. Got {got}.", self.smoothing
                raise ValueError(about(owner, "smoothing", Message.of(needs, got=got)))
        self._check_ordered()
        if isinstance(self.min_frequency, numbers.Integral):
            check_integer(owner, "min_frequency", self.min_frequency, low=1)
        elif self.min_frequency is not None:
            check_real(owner, "min_frequency", self.min_frequency, low=0, high=1)
        if self.max_categories is not None:
            check_integer(owner, "max_categories", self.max_categories, low=1)
        for given in self.n_bins.values() if isinstance(self.n_bins, dict) else [self.n_bins]:
            if given is not None and np.ndim(given) == 0:
                check_integer(owner, "n_bins", given, low=1)
            elif np.ndim(given) > 1:
                raise ValueError(message(owner, "n_bins", "a list of edges", given))
        if isinstance(self.random_state, numbers.Integral):
            check_integer(owner, "random_state", self.random_state, low=0)
        elif not isinstance(self.random_state, np.random.RandomState | np.random.Generator | None):
            requirement = "an int, a RandomState, a Generator or None"
            raise TypeError(message(owner, "random_state", requirement, self.random_state))

    def _check_ordered(self) -> None:
        if self.ordered is None:
            return
        if not isinstance(self.ordered, Mapping):
            requirement = "a dict with the values of columns, each list in ascending order"
            raise TypeError(message(self.owner, "ordered", requirement, self.ordered))
        for name, values in self.ordered.items():
            is_list = not isinstance(values, str) and len(set(values)) == len(list(values)) > 1
            if not is_list:
                requirement = "a list of at least two different values, in ascending order"
                raise ValueError(message(self.owner, f"ordered[{name!r}]", requirement, values))

    def order_of(self, name: Hashable) -> Sequence[Any] | None:
        """Return the order of the values of a column, if one is given."""
        return (self.ordered or {}).get(name)

    @property
    def has_target(self) -> bool:
        """Whether the utility is about a target, the y of `fit`."""
        return isinstance(self.utility, str) and self.utility == Target.name

    @property
    def is_plain(self) -> bool:
        """Whether the utility is information, and the budget is for the rows as they are."""
        name = getattr(self.utility, "name", self.utility)
        return self.confidence is None and name in ("mutual_information", "target")

    @property
    def has_distances(self) -> bool:
        """Whether the utility is closeness to X, with distances computed from its columns."""
        is_named = isinstance(self.utility, str) and self.utility == Distortion.name
        return is_named or (isinstance(self.utility, Distortion) and self.utility.is_automatic)

    @property
    def draws_together(self) -> bool:
        """Whether the columns of a made-up row are drawn together."""
        return self.made_up != "column_by_column"

    def column_weights(self, names: Sequence[Any]) -> list[float]:
        """Return the weights of the columns of X in the distances of symbols."""
        if isinstance(self.utility, Distortion) and self.utility.is_automatic:
            return self.utility.weights_of(list(names), self.owner)
        return [1.0] * len(names)

    @property
    def person(self) -> Any:
        """The column with person ids, None if there is none."""
        return self.alphabet.person if isinstance(self.alphabet, Cells) else None

    def for_batches(self) -> Settings:
        """Return the settings for rows that came in batches, where "auto" means values."""
        return replace(self, alphabet="values") if self.alphabet == "auto" else self

    @property
    def of_design(self) -> tuple[Any, ...]:
        """A key that is equal for two settings only if they lead to the same design."""
        return tuple(frozen(getattr(self, name)) for name in _OF_DESIGN)

    def check_names(self, names: Sequence[Hashable], s_names: Sequence[Hashable]) -> None:
        """Check that bins are for columns that exist, and budgets for all columns of S."""
        for unknown in (name for name in self.ordered or {} if name not in (*names, *s_names)):
            where = f" names the column {unknown!r}, which X does not have."
            raise ValueError(about(self.owner, "ordered", where))
        bins = self.n_bins if isinstance(self.n_bins, dict) else {}
        for unknown in (name for name in bins if name not in names and name not in s_names):
            where = f" names the column {unknown!r}, which X does not have."
            raise ValueError(about(self.owner, "n_bins", where))
        if isinstance(self.epsilon, Mapping):
            columns_of_secrets(self.owner, self.epsilon, s_names)


class _Identity:
    """A wrapper that equals only wrappers of the same object."""

    def __init__(self, value: object) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other._value is self._value

    __hash__ = None  # type: ignore[assignment]


def frozen(value: Any) -> Any:
    """Return a snapshot of a parameter, to compare; later changes of its lists do not matter."""
    if isinstance(value, Mapping):
        return [(key, frozen(part)) for key, part in value.items()]
    if isinstance(value, Cells):
        return type(value), frozen(value.get_params())
    if isinstance(value, list | tuple) or np.ndim(value) == 1:
        return [frozen(part) for part in value]
    if value is None or isinstance(
        value, str | numbers.Number | np.generic | datetime.date | datetime.timedelta
    ):
        return type(value), value  # one category and a share of 1.0 are not the same
    return _Identity(value)
