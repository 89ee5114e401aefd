"""Estimate the distribution of X from released values; recognise releases of a mechanism."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pandas as pd

from .._typing import BoolArray, ColumnsLike, FloatArray, IntArray, Labels
from .._validation import about, message
from ..encoding import UNKNOWN
from ..fitted import Fitted, Training
from ..fitting.fitted_estimator import fitted_of
from ..mechanism import Guarantee, Leakage, Mechanism, one_secret
from ..releasing.output_names import names_out, outputs_of
from ..tables.frames import are_made_up, coded
from ..transformer import PrivacyFunnelTransformer


def _outputs(released: ColumnsLike, y_labels: Labels, owner: str) -> IntArray:
    """Return the output of each released row."""
    codes, values = coded(released, "released")
    positions = pd.Index(y_labels, tupleize_cols=False).get_indexer(values)
    if (positions < 0).any():
        unknown = values[positions < 0].tolist()[0]
        problem = f" must hold outputs of the mechanism. Got {unknown!r}, which is not one of its "
        raise ValueError(about(owner, "released", problem + "y_labels."))
    return positions[codes]


def one_release(
    released: dict[Hashable, pd.Series],
    sensitive: dict[Hashable, pd.Series],
    mechanism: Mechanism | Guarantee | PrivacyFunnelTransformer,
    owner: str,
) -> Leakage:
    """Return the leakage about S, if the released columns are one release of a mechanism.

    Otherwise, raise a `ValueError`. With several secrets, the one with these sensitive columns is
    meant, or all of them together.
    """
    table = pd.DataFrame({k: v.reset_index(drop=True) for k, v in released.items()})
    if isinstance(mechanism, PrivacyFunnelTransformer):
        fitted = fitted_of(mechanism)
        outputs_of(fitted, table, mechanism.output)
        if fitted.training is None:
            raise ValueError("The joint distribution was left out.")
        every = names_out(fitted.roles, fitted.posterior.labels, mechanism.output)
        if len(released) != len(every) - len(fitted.roles.kept_positions):
            raise ValueError("More columns than one release.")
        return _protected(fitted, fitted.training, sensitive)
    found = one_secret(mechanism, owner, advice="mechanism.secrets[{!r}]")
    _outputs(table, found.y_labels, owner)
    groups = [set(coded(column, "sensitive")[1]) for column in sensitive.values()]
    if found.p_sx is None or len(released) > 1 or groups != [set(found.s_labels or ())]:
        raise ValueError("The joint was left out, more columns than one release, or another S.")
    return found


def _protected(
    fitted: Fitted, training: Training, sensitive: dict[Hashable, pd.Series]
) -> Leakage:
    """Return the leakage about the secret with these columns, or about all secrets together."""
    mechanism, names = fitted.mechanism, list(training.names)
    is_other = any(name in (fitted.roles.names or ()) and name not in names for name in sensitive)
    is_only = len(mechanism.secrets) == 1 or are_made_up(names)
    is_renamed = len(sensitive) == len(names) and not {*sensitive} & {*names}
    if is_only and is_renamed and not is_other:
        sensitive = dict(zip(names, sensitive.values(), strict=True))
    if any(name not in names for name in sensitive):
        raise ValueError("Another S.")
    columns = training.alphabet.columns
    for name, column in sensitive.items():
        if (columns[names.index(name)].encode(column, name) == UNKNOWN).any():
            raise ValueError("Another S.")
    positions = {names.index(name) for name in sensitive}
    for key, groups in training.secrets.groups.items():
        if set(groups.positions) == positions:
            return mechanism.secrets[key]
    if mechanism.together is None or len(positions) < len(names):
        raise ValueError("Another S.")
    return mechanism.together


# Singular values of the channel below this share of the largest indicate linear dependence.
_DEPENDENT = 1e-10

# A symbol of X can be estimated if the residual of its unit vector is smaller than this.
_DETERMINED = 1e-8


def estimate_distribution(
    released: ColumnsLike,
    mechanism: Mechanism | PrivacyFunnelTransformer,
    *,
    by: ColumnsLike | None = None,
) -> pd.DataFrame:
    """Estimate the frequencies of X without bias, from released rows.

    The noise biases counts of released values toward each other: ``P(Y) = P(Y|X) P(X)``. Solving
    for P(X) gives unbiased estimates with larger standard errors; they can be negative. Symbols
    that the channel merges cannot be told apart: their estimates are NaN. Standard errors are
    those for the population the rows were drawn from. Rows whose X was unknown to `fit` are draws
    from P(Y) of the design, and pull the estimates toward it.

    Parameters
    ----------
    released : array-like or frame
        The released rows. For a transformer, its output; for a mechanism, a column of
        `y_labels`.
    mechanism : PrivacyFunnelTransformer or Mechanism
        What released them.
    by : array-like or frame, default=None
        Another column of the same rows, or several taken jointly, to cross-tabulate with X. It
        must not have influenced the noise. (Columns published beside the release have; they are
        part of X here, whose symbols are pairs with them.)

    Returns
    -------
    DataFrame
        Columns `estimate` and `standard_error`, one row per symbol of X; with `by`, one row for
        each pair of a symbol and a value, as shares of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skprivacy import design_mechanism
    >>> from skprivacy.metrics import estimate_distribution
    >>> mechanism = design_mechanism([[4, 3, 1], [2, 3, 3]], 0.01, solver="randomized_response")
    >>> rng = np.random.default_rng(0)
    >>> x = rng.choice(3, size=20_000, p=[0.5, 0.3, 0.2])
    >>> y = [rng.choice(3, p=mechanism.channel[symbol]) for symbol in x]
    >>> estimate_distribution(y, mechanism).round(2).reset_index()
       x  estimate  standard_error
    0  0      0.50            0.01
    1  1      0.31            0.01
    2  2      0.19            0.01
    """
    owner = "estimate_distribution"
    if isinstance(mechanism, PrivacyFunnelTransformer):
        fitted = fitted_of(mechanism)
        outputs = outputs_of(fitted, released, mechanism.output)
        mechanism = fitted.mechanism
    elif isinstance(mechanism, Mechanism):
        outputs = _outputs(released, mechanism.y_labels, owner)
    else:
        requirement = "a Mechanism or a fitted PrivacyFunnelTransformer"
        raise TypeError(message(owner, "mechanism", requirement, mechanism))
    inverse, known = _left_inverse(mechanism)
    labels = pd.Index(mechanism.x_labels, name="x", tupleize_cols=False)
    n_y, n_rows = len(mechanism.y_labels), len(outputs)
    if not n_rows:
        raise ValueError(f"Found array with 0 sample(s) while {owner} needs at least one row.")

    def estimates(of: IntArray) -> pd.DataFrame:
        shares = np.bincount(of, minlength=n_y) / n_rows
        return _estimates(inverse, known, shares, n_rows, labels)

    if by is None:
        return estimates(outputs)
    groups, values = coded(by, "by")
    if len(groups) != len(outputs):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: released has "
            f"{len(outputs)} rows, by has {len(groups)}."
        )
    tables = {value: estimates(outputs[groups == i]) for i, value in enumerate(values)}
    # Arrays of objects, which keep tuples whole.
    x, other = (np.array([*each, None], object)[:-1] for each in (labels, tables))
    pairs = [np.tile(x, len(tables)), np.repeat(other, len(labels))]
    index = pd.MultiIndex.from_arrays(pairs, names=["x", "by"])
    return pd.concat(tables.values()).set_axis(index)


def _left_inverse(mechanism: Mechanism) -> tuple[FloatArray, BoolArray]:
    """Return A with ``A P(Y) = P(X)``, and whether it determines each symbol of X.

    Outputs are weighted by their expected errors under P(X) of the design.
    """
    scale = np.sqrt(np.where(mechanism.p_y > 0, mechanism.p_y, 1.0))
    # A symbol that never occurred has no channel of its own.
    matrix = np.where(mechanism.p_x > 0, mechanism.channel.T, 0.0) / scale[:, None]
    left, singular, right = np.linalg.svd(matrix, full_matrices=False)
    large = singular > _DEPENDENT * singular.max()
    inverse = right[large].T / singular[large] @ left[:, large].T
    # A symbol is determined if its unit vector is in the row space of the channel.
    outside = np.abs(right[large].T @ right[large] - np.eye(matrix.shape[1])).max(axis=1)
    return inverse / scale, outside < _DETERMINED


def _estimates(
    inverse: FloatArray, known: BoolArray, shares: FloatArray, n: int, labels: pd.Index
) -> pd.DataFrame:
    """Return estimates and standard errors: multinomial shares times a matrix."""
    estimate = inverse @ shares
    with np.errstate(divide="ignore", invalid="ignore"):  # one row tells nothing about its error
        variance = (inverse**2 @ shares - estimate**2) / np.float64(n - 1)
    figures = {"estimate": estimate, "standard_error": np.sqrt(np.maximum(variance, 0.0))}
    return pd.DataFrame({name: np.where(known, f, np.nan) for name, f in figures.items()}, labels)
