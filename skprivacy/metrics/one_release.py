"""Whether columns are one release of a mechanism, and S is what it protects."""

from __future__ import annotations

from collections.abc import Hashable

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from .._messages import Message, Parameter
from .._typing import ColumnsLike, IntArray
from .._validation import message
from ..mechanism import Mechanism
from ..releasing.read_back import outputs_of
from ..tables.cross_tables import coded
from ..transformer import PrivacyFunnelTransformer


def outputs_and_mechanism(
    released: ColumnsLike, mechanism: Mechanism | PrivacyFunnelTransformer, owner: str
) -> tuple[Mechanism, IntArray]:
    """Return the mechanism, and the output of each released row."""
    if isinstance(mechanism, PrivacyFunnelTransformer):
        check_is_fitted(mechanism)
        return mechanism.mechanism_, outputs_of(mechanism, released)
    if not isinstance(mechanism, Mechanism):
        requirement = "a Mechanism or a fitted PrivacyFunnelTransformer"
        raise TypeError(message(owner, "mechanism", requirement, mechanism))
    codes, values = coded(released, "released")
    positions = pd.Index(mechanism.y_labels, tupleize_cols=False).get_indexer(values)
    if (positions < 0).any():
        unknown = values[positions < 0].tolist()[0]
        raise ValueError(
            Message(
                Parameter("released", owner),
                f" must hold outputs of the mechanism. Got {unknown!r}, which is none of its "
                f"y_labels.",
            )
        )
    return mechanism, positions[codes]


def one_release(
    released: dict[Hashable, pd.Series],
    sensitive: dict[Hashable, pd.Series],
    mechanism: Mechanism | PrivacyFunnelTransformer,
    owner: str,
) -> Mechanism:
    """Return the mechanism, if these columns are one release of it that protects this S.

    released, sensitive : dicts of columns. Anything else is a `ValueError`.
    """
    transformer = mechanism if isinstance(mechanism, PrivacyFunnelTransformer) else None
    table = pd.DataFrame({k: v.reset_index(drop=True) for k, v in released.items()})
    mechanism, _ = outputs_and_mechanism(table, mechanism, owner)
    if mechanism.p_sx is None:
        raise ValueError("The joint distribution was left out.")
    if transformer is None:
        n_columns, (first, *more) = 1, sensitive.values()
        protects = not more and set(coded(first, "sensitive")[1]) == set(mechanism.s_labels or ())
    else:
        n_columns = _n_released(transformer)
        _, unknown = transformer._sensitive.encode(list(sensitive.values()), list(sensitive))
        protects = not unknown
    if len(released) != n_columns or not protects:
        raise ValueError("More columns than one release, or another S.")
    return mechanism


def _n_released(transformer: PrivacyFunnelTransformer) -> int:
    """Return how many columns a transformer makes of X."""
    return len(transformer.get_feature_names_out()) - len(transformer._roles.kept_positions)
