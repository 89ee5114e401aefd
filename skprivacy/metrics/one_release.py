"""Whether columns are one release of a mechanism, and S is what it protects."""

from __future__ import annotations

from collections.abc import Hashable

import pandas as pd

from .._messages import Message, Parameter
from .._typing import ColumnsLike, IntArray
from .._validation import message
from ..encoding import UNKNOWN
from ..fitted import Fitted, Training
from ..fitting.fitted_estimator import fitted_of
from ..mechanism import Leakage, Mechanism, one_secret
from ..releasing.output_names import names_out
from ..releasing.read_back import outputs_of
from ..tables.cross_tables import coded
from ..tables.vectors import are_made_up
from ..transformer import PrivacyFunnelTransformer


def outputs_and_mechanism(
    released: ColumnsLike,
    mechanism: Mechanism | PrivacyFunnelTransformer,
    owner: str,
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
) -> Leakage:
    """Return what leaks about this S, if these columns are one release of a mechanism.

    released, sensitive : dicts of columns. If they are not, raise a `ValueError`. Of several
    secrets it is the one that these columns are, or all of them together.
    """
    transformer = mechanism if isinstance(mechanism, PrivacyFunnelTransformer) else None
    table = pd.DataFrame({k: v.reset_index(drop=True) for k, v in released.items()})
    if transformer is None:
        found = one_secret(mechanism, owner)
    of_rows, _ = outputs_and_mechanism(table, mechanism, owner)
    if any(secret.p_sx is None for secret in of_rows.secrets.values()):
        raise ValueError("The joint distribution was left out.")
    if transformer is None:
        n_columns, (first, *more) = 1, sensitive.values()
        protects = not more and set(coded(first, "sensitive")[1]) == set(found.s_labels or ())
    else:
        fitted = fitted_of(transformer)
        assert fitted.training is not None  # or there would be no joint
        every = names_out(fitted.roles, fitted.posterior.labels, transformer.output)
        n_columns = len(every) - len(fitted.roles.kept_positions)
        found, protects = _protected(fitted, fitted.training, sensitive)
    if len(released) != n_columns or not protects:
        raise ValueError("More columns than one release, or another S.")
    return found


def _protected(
    fitted: Fitted, training: Training, sensitive: dict[Hashable, pd.Series]
) -> tuple[Leakage, bool]:
    """Return what leaks about the secret that some columns are, and whether they are one."""
    secrets, together = fitted.mechanism.secrets, fitted.mechanism.together
    if None in secrets:
        _, unknown = training.alphabet.encode(list(sensitive.values()), list(sensitive))
        return secrets[None], not unknown
    names = list(training.names)
    if are_made_up(names) and len(sensitive) == len(names):
        names = list(sensitive)
    if any(name not in names for name in sensitive):
        raise ValueError("Another S.")
    positions = {names.index(name) for name in sensitive}
    columns = training.alphabet.columns
    codes = [columns[names.index(name)].encode(c, name) for name, c in sensitive.items()]
    is_known = all((code != UNKNOWN).all() for code in codes)
    for name, groups in training.secrets.groups.items():
        if set(groups.positions) == positions:
            return secrets[name], is_known
    if together is None or len(positions) < len(names):
        raise ValueError("Another S.")
    return together, is_known
