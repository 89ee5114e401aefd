"""What X was, from rows of Y: unbiased frequencies, because released counts are not."""

import numpy as np
import pandas as pd

from .._validation import message
from ..mechanism import Mechanism
from ..released import outputs_of
from ..transformer import PrivacyFunnelTransformer
from .samples import coded

# Singular values of the channel below this, of the largest, are dependence.
_DEPENDENT = 1e-10


def estimate_distribution(released, mechanism, *, by=None):
    """Return unbiased frequencies of X, from released rows.

    Counts of released values are biased toward each other by the noise: ``P(Y) = P(Y|X) P(X)``.
    Solving for P(X) gives estimates without bias, with larger standard errors; they can be
    negative. Where the channel merges symbols, no estimate can tell them apart: these are NaN.

    Parameters
    ----------
    released : array-like or frame
        The released rows. For a transformer, its output; for a mechanism, a column of
        `y_labels`.
    mechanism : PrivacyFunnelTransformer or Mechanism
        What released them.
    by : array-like, default=None
        Another column of the same rows: its cross table with X is returned. It must not have
        influenced the noise.

    Returns
    -------
    DataFrame
        Columns `estimate` and `standard_error`, one row per symbol of X; with `by`, for each pair
        of a symbol and a value, as shares of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from skprivacy import design_mechanism, estimate_distribution
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
    mechanism, outputs = _outputs(released, mechanism, owner)
    inverse, known = _left_inverse(mechanism)
    labels = pd.Index(mechanism.x_labels, name="x", tupleize_cols=False)
    n_y = len(mechanism.y_labels)
    if by is None:
        shares = np.bincount(outputs, minlength=n_y) / len(outputs)
        return _estimates(inverse, known, shares, len(outputs), labels)
    groups, values = coded(by, "by")
    if len(groups) != len(outputs):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: released has "
            f"{len(outputs)} rows, by has {len(groups)}."
        )
    tables = {
        value: _estimates(
            inverse,
            known,
            np.bincount(outputs[groups == group], minlength=n_y) / len(outputs),
            len(outputs),
            labels,
        )
        for group, value in enumerate(values)
    }
    return pd.concat(tables, names=["by"]).swaplevel().sort_index(level=1, sort_remaining=False)


def _outputs(released, mechanism, owner):
    """Return the mechanism, and the output of each released row."""
    if isinstance(mechanism, PrivacyFunnelTransformer):
        return mechanism.mechanism_, outputs_of(mechanism, released)
    if not isinstance(mechanism, Mechanism):
        requirement = "a Mechanism or a fitted PrivacyFunnelTransformer"
        raise TypeError(message(owner, "mechanism", requirement, mechanism))
    codes, values = coded(released, "released")
    positions = pd.Index(mechanism.y_labels, tupleize_cols=False).get_indexer(values)
    if (positions < 0).any():
        unknown = values[positions < 0].tolist()[0]
        raise ValueError(
            f"The 'released' parameter of {owner} must hold outputs of the mechanism. Got "
            f"{unknown!r}, which is none of its y_labels."
        )
    return mechanism, positions[codes]


def _left_inverse(mechanism):
    """Return A with ``A P(Y) = P(X)``, and for which symbols of X it is determined.

    Outputs are weighted by their expected errors under P(X) of the design.
    """
    scale = np.sqrt(np.where(mechanism.p_y > 0, mechanism.p_y, 1.0))
    # A symbol that never occurred has no channel of its own.
    matrix = np.where(mechanism.p_x > 0, mechanism.channel.T, 0.0) / scale[:, None]
    left, singular, right = np.linalg.svd(matrix, full_matrices=False)
    large = singular > _DEPENDENT * singular.max()
    inverse = right[large].T / singular[large] @ left[:, large].T
    # A symbol is determined if its unit vector is in the row space of the channel.
    known = np.abs(right[large].T @ right[large] - np.eye(matrix.shape[1])).max(axis=1) < 1e-8
    return inverse / scale, known


def _estimates(inverse, known, shares, n, labels):
    """Return estimates and standard errors: shares of a multinomial, multiplied by a matrix."""
    estimate = inverse @ shares
    variance = (inverse**2 @ shares - estimate**2) / n
    figures = {"estimate": estimate, "standard_error": np.sqrt(np.maximum(variance, 0.0))}
    return pd.DataFrame({name: np.where(known, f, np.nan) for name, f in figures.items()}, labels)
