"""The parameters of the transformer, checked in `fit` as scikit-learn does."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._messages import Message, Parameter
from .._validation import check_choice, check_integer, check_real, message

if TYPE_CHECKING:
    from ..transformer import PrivacyFunnelTransformer


def check_parameters(transformer: PrivacyFunnelTransformer) -> None:
    """Check the parameters that do not depend on the data; the design checks its own."""
    owner = type(transformer).__name__
    check_real(owner, "epsilon", transformer.epsilon, low=0)
    check_choice(owner, "output", transformer.output, {"label", "symbol", "posterior"})
    _check_remainder(owner, transformer.remainder)
    check_choice(owner, "handle_unknown", transformer.handle_unknown, {"resample", "error"})
    check_real(owner, "smoothing", transformer.smoothing, low=0, high_open=True)
    _check_pooling(owner, transformer.min_frequency, transformer.max_categories)
    _check_bins(owner, transformer.n_bins)
    _check_random_state(owner, transformer.random_state)
    if not isinstance(transformer.solver_options, dict | None):
        raise TypeError(
            message(owner, "solver_options", "a dict or None", transformer.solver_options)
        )


def _check_remainder(owner: str, remainder: object) -> None:
    if isinstance(remainder, str):
        check_choice(owner, "remainder", remainder, {"drop", "passthrough"})
    elif not isinstance(remainder, list | tuple):
        requirement = "'drop', 'passthrough' or a list of columns"
        raise TypeError(message(owner, "remainder", requirement, remainder))


def _check_pooling(owner: str, min_frequency: object, max_categories: object) -> None:
    if isinstance(min_frequency, numbers.Integral):
        check_integer(owner, "min_frequency", min_frequency, low=1)
    elif min_frequency is not None:
        check_real(owner, "min_frequency", min_frequency, low=0, high=1)
    if max_categories is not None:
        check_integer(owner, "max_categories", max_categories, low=1)


def _check_bins(owner: str, n_bins: Any) -> None:
    for given in n_bins.values() if isinstance(n_bins, dict) else [n_bins]:
        if given is not None and np.ndim(given) == 0:
            check_integer(owner, "n_bins", given, low=1)
        elif np.ndim(given) > 1:
            raise ValueError(message(owner, "n_bins", "a list of edges", given))


def _check_random_state(owner: str, random_state: object) -> None:
    if isinstance(random_state, numbers.Integral):
        check_integer(owner, "random_state", random_state, low=0)
    elif not isinstance(random_state, np.random.RandomState | np.random.Generator | None):
        requirement = "an int, a RandomState, a Generator or None"
        raise TypeError(message(owner, "random_state", requirement, random_state))


def check_bin_names(transformer: PrivacyFunnelTransformer, names: Sequence[Hashable]) -> None:
    """Check that `n_bins`, if it is a dict, speaks of columns that are there."""
    if not isinstance(transformer.n_bins, dict):
        return
    unknown = [name for name in transformer.n_bins if name not in names]
    if unknown:
        raise ValueError(
            Message(
                Parameter("n_bins", type(transformer).__name__),
                f" names the column {unknown[0]!r}, which X does not have.",
            )
        )
