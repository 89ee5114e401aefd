"""Whether columns are one release of a mechanism, and S is what it protects."""

from __future__ import annotations

from collections.abc import Hashable

import pandas as pd

from .._messages import Message, Parameter
from .._typing import ColumnsLike, IntArray
from .._validation import message
from ..mechanism import Mechanism
from ..releasing.output_names import names_out
from ..releasing.read_back import outputs_of
from ..tables.cross_tables import coded
from ..transformer import PrivacyFunnelTransformer, fitted_of


def outputs_and_mechanism(
    released: ColumnsLike, mechanism: Mechanism | PrivacyFunnelTransformer, owner: str
) -> tuple[Mechanism, IntArray]:
    """Return the mechanism, and the output of each released row."""
    if isinstance(mechanism, PrivacyFunnelTransformer):
        fitted = fitted_of(mechanism)
        return fitted.mechanism, outputs_of(fitted, released, mechanism.output)
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
                f" must hold outputs of the mechanism. Got {unknown!r}, which is not one of its "
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
    """Return the mechanism if these columns are one release of it that protects this S.

    released, sensitive : dicts of columns. If they are not, raise a `ValueError`.
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
        fitted = fitted_of(transformer)
        assert fitted.training is not None  # or there would be no joint
        every = names_out(fitted.roles, fitted.posterior.labels, transformer.output)
        n_columns = len(every) - len(fitted.roles.kept_positions)
        _, unknown = fitted.training.alphabet.encode(list(sensitive.values()), list(sensitive))
        protects = not unknown
    if len(released) != n_columns or not protects:
        raise ValueError("More columns than one release, or another S.")
    return mechanism
