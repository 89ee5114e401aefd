"""Leakage of several fresh releases of the same row, taken together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import comb, gammaln

from ._typing import BoolArray, FloatArray, IntArray, Scope
from ._validation import check_integer
from .describing.numbers import limit
from .encoding.alphabets import combine
from .joint import count_pairs
from .measures import KL, MaxLift, Measure
from .measures.measure import leakage_in, output_values, posteriors
from .mechanism import Evaluation, Leakage, Mechanism, one_secret
from .utilities import mutual_information

# Largest number of counts of outputs, times the numbers for each: half a second and 200 MB. With
# |S| = 4 and |X| = |Y| = 7 there are 180,000 counts for k = 19.
MOST_CELLS = 4_000_000

# Outputs whose likelihoods agree to this many digits are proportional.
_DIGITS = 12

# More releases than this change nothing, and do not fit into a float.
_MOST_RELEASES = 2**1000


@dataclass(frozen=True, eq=False, repr=False)
class RepeatedLeakage:
    """Leakage of k fresh releases of the same row: exact figures, or upper bounds on them.

    Attributes
    ----------
    k : int
        Number of releases.
    measure : Measure
        The measure of leakage.
    is_exact : bool
        Whether the figures are exact. Otherwise they are upper bounds.
    max_leakage, average_leakage : float
        Leakage of the worst k outputs and on average over them, on the epsilon scale; the average
        is NaN for a measure without one.
    sensitive_information : float
        ``I(S; Y_1, ..., Y_k)`` in nats.
    attacker_accuracy : float
        How often the best attacker guesses S from k outputs.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> from skprivacy.repetition import repeated_release_leakage
    >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
    >>> repeated_release_leakage(mechanism, 3)
    RepeatedLeakage(KL(), k=3: max_leakage=0.085673, average_leakage=0.0335311, sensitive_...
    """

    k: int
    measure: Measure
    is_exact: bool
    max_leakage: float
    average_leakage: float
    sensitive_information: float
    attacker_accuracy: float

    def leakage_in(self, scope: Scope) -> float:
        """Return the leakage in a scope.

        Examples
        --------
        >>> from skprivacy import design_mechanism
        >>> from skprivacy.repetition import repeated_release_leakage
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> twice = repeated_release_leakage(mechanism, 2)
        >>> twice.leakage_in("average") < twice.leakage_in("per_output")
        True
        """
        return self.max_leakage if scope == "per_output" else self.average_leakage

    def __repr__(self) -> str:
        names = ("max_leakage", "average_leakage", "sensitive_information", "attacker_accuracy")
        found = [(name, getattr(self, name)) for name in names]
        each = [f"{n}={x:.6g}" if self.is_exact else f"{n}<={limit(x, 6)}" for n, x in found]
        return f"{type(self).__name__}({self.measure!r}, k={self.k}: {', '.join(each)})"


def repeated_release_leakage(
    mechanism: Mechanism | Evaluation | Leakage, k: int, *, secret: Any = None
) -> RepeatedLeakage:
    """Return what k fresh, independent releases of the same row reveal about S together.

    This is not k times the leakage of one release: releases that reveal nothing one by one may
    reveal much together. The order of the outputs does not matter, so the figures are exact sums
    over how often each output occurs, if there are not too many such counts. Beyond that, they are
    upper bounds, most of which do not grow with k.

    Parameters
    ----------
    mechanism : Mechanism or Evaluation
        The channel, the joint distribution and the measure.
    k : int
        Number of releases, each with fresh noise.
    secret : str, int or tuple, default=None
        Name of the secret, if there are several.

    Returns
    -------
    RepeatedLeakage

    Notes
    -----
    Let G be X with symbols merged that have equal rows of the channel: no number of releases
    tells them apart. The bounds are the figures of releasing G itself,

    - per output, ``max_x g(P(S | G = x))``, and on average the mean of these: g is convex;
    - ``I(S;G)``, and ``sum_x max_s P(s, x)`` for the attacker;

    and, if smaller,

    - ``I(S; Y_1, ..., Y_k) <= k eta I(X;Y)``, where eta is the largest total variation between
      two of the distributions ``P(S | G = x)``; for ``kl`` this is the average leakage;
    - k times the maximal leakage from X to Y, for the average of ``max_lift``.

    Examples
    --------
    One release reveals nothing about S. Two are always equal if S is the first group, and in half
    of the cases if it is the second.

    >>> from skprivacy import design_mechanism
    >>> from skprivacy.repetition import repeated_release_leakage
    >>> mechanism = design_mechanism([[0.25, 0.25, 0.0], [0.0, 0.0, 0.5]], epsilon=0)
    >>> round(mechanism.sensitive_information, 6)
    0.0
    >>> round(repeated_release_leakage(mechanism, 2).sensitive_information, 6)
    0.215762

    Any number of releases reveals at most what X reveals:

    >>> repeated_release_leakage(mechanism, 10**9)
    RepeatedLeakage(KL(), k=1000000000: max_leakage<=0.693148, average_leakage<=0.693148, ...
    """
    owner = "repeated_release_leakage"
    leakage = one_secret(mechanism, owner, secret)
    k = check_integer(owner, "k", k, low=1)
    if k == 1:
        one = leakage.max_leakage, leakage.average_leakage, leakage.sensitive_information
        return RepeatedLeakage(1, leakage.measure, True, *one, leakage.attacker_accuracy)
    release = _Release.of(leakage)
    is_exact = release.n_cells(k) <= MOST_CELLS
    figures = release.exact_figures(k) if is_exact else release.bounds(k)
    return RepeatedLeakage(k, leakage.measure, is_exact, *figures)


_Figures = tuple[float, float, float, float]


@dataclass(frozen=True, eq=False)
class _Release:
    """A channel under a joint; symbols and outputs that act alike are merged."""

    p_sx: FloatArray
    channel: FloatArray
    measure: Measure

    @classmethod
    def of(cls, leakage: Leakage) -> _Release:
        """Leave out symbols of probability zero, and merge symbols and outputs."""
        p_sx, channel = leakage.joint, leakage.channel
        s, x = p_sx.sum(axis=1) > 0, p_sx.sum(axis=0) > 0
        # Symbols are merged only if their rows are equal to the last bit: bounds must hold for
        # every k.
        channel, groups = np.unique(channel[x], axis=0, return_inverse=True)
        p_sx = _merged(p_sx[np.ix_(s, x)].T, groups.reshape(-1)).T
        return cls(p_sx, _merged(channel.T, _directions(channel.T)).T, leakage.measure)

    @property
    def p_x(self) -> FloatArray:
        return self.p_sx.sum(axis=0)

    @property
    def prior(self) -> FloatArray:
        return self.p_sx.sum(axis=1)

    @property
    def _s_given_x(self) -> FloatArray:
        """``P(S | X = x)`` as rows."""
        return (self.p_sx / self.p_x).T

    def _blocks(self) -> Iterator[tuple[BoolArray, BoolArray]]:
        """Yield masks of symbols and outputs of each connected block of the channel.

        Releases of the same row are all in one block.
        """
        n_x, n_y = self.channel.shape
        x, y = self.channel.nonzero()
        graph = csr_array((np.ones(len(x)), (x, n_x + y)), shape=(n_x + n_y, n_x + n_y))
        n_blocks, block = connected_components(graph, directed=False)
        for i in range(n_blocks):
            yield block[:n_x] == i, block[n_x:] == i

    def n_cells(self, k: int) -> float:
        """Return the number of floats for all counts of outputs; it may be infinity."""
        sizes = [int(y.sum()) for _, y in self._blocks()]
        n_types = sum(comb(min(k, _MOST_RELEASES) + n_y - 1.0, n_y - 1.0) for n_y in sizes)
        return float(n_types * (sum(self.p_sx.shape) + max(sizes)))

    def exact_figures(self, k: int) -> _Figures:
        """Return the figures, summed over all counts of outputs."""
        log_joint = np.concatenate([self._log_joint(k, *block) for block in self._blocks()])
        # The probability of counts may underflow; their posterior is exact.
        likeliest = log_joint.max(axis=1)
        log_joint, likeliest = log_joint[likeliest > -np.inf], likeliest[likeliest > -np.inf]
        relative = np.exp(log_joint - likeliest[:, None])
        total = relative.sum(axis=1)
        weights = np.exp(likeliest) * total
        posterior = (relative / total[:, None]) @ self._s_given_x
        return self._figures(posterior, weights / weights.sum())

    def _log_joint(self, k: int, x: BoolArray, y: BoolArray) -> FloatArray:
        """Return ``log P(counts, X)`` for all counts of k outputs y, -inf where it is zero."""
        k = min(k, MOST_CELLS)  # k is larger only with a single output, where it has no effect
        counts = _compositions(k, int(y.sum()))
        channel = self.channel[np.ix_(x, y)]
        log_channel = np.log(np.where(channel > 0, channel, 1.0))
        possible = counts @ (channel.T == 0) == 0
        log_orders = gammaln(k + 1) - gammaln(counts + 1).sum(axis=1)
        log_joint = np.full((len(counts), len(x)), -np.inf)
        log_given_x = log_orders[:, None] + counts @ log_channel.T
        log_joint[:, x] = np.where(possible, log_given_x + np.log(self.p_x[x]), -np.inf)
        return log_joint

    def _figures(self, posterior: FloatArray, weights: FloatArray) -> _Figures:
        """Return all figures; posterior : P(S|output) as rows; weights : P(output)."""
        values = self.measure.value(posterior, self.prior)
        return (
            leakage_in("per_output", self.measure, values, weights),
            leakage_in("average", self.measure, values, weights),
            float(weights @ KL().value(posterior, self.prior)),
            float(weights @ posterior.max(axis=1)),
        )

    def bounds(self, k: int) -> _Figures:
        """Return upper bounds: see the notes of `repeated_release_leakage`."""
        releases = float(min(k, _MOST_RELEASES))
        worst, average, information, accuracy = self._figures(self._s_given_x, self.p_x)
        utility = mutual_information(self.p_x[:, None] * self.channel)
        # The largest total variation between what two symbols reveal about S.
        contraction = max(
            float(np.abs(self._s_given_x - row).sum(axis=1).max()) / 2 for row in self._s_given_x
        )
        information = min(information, releases * contraction * utility)
        if isinstance(self.measure, KL):
            average = information
        elif isinstance(self.measure, MaxLift):
            average = min(average, releases * float(np.log(self.channel.max(axis=0).sum())))
        return worst, average, information, accuracy


def _directions(rows: FloatArray) -> IntArray:
    """Return a group for each row, the same for proportional rows; -1 for zero rows."""
    largest = rows.max(axis=1, keepdims=True)
    # Significant digits matter: a probability of 1e-20 may decide between groups.
    digits, powers = np.frexp(rows / np.where(largest > 0, largest, 1.0))
    groups = np.unique(np.hstack([digits.round(_DIGITS), powers]), axis=0, return_inverse=True)[1]
    return np.where(largest[:, 0] > 0, groups.reshape(-1), -1)


def _merged(rows: FloatArray, groups: IntArray) -> FloatArray:
    """Return the sums of the rows of each group, leaving out the rows of group -1."""
    merged = np.zeros((groups.max() + 1, rows.shape[1]))
    np.add.at(merged, groups[groups >= 0], rows[groups >= 0])
    return merged[merged.any(axis=1)]


def _compositions(k: int, n: int) -> IntArray:
    """Return all ways to write k as a sum of n whole numbers in order, as rows."""
    rows, left = np.empty((1, 0), dtype=np.int64), np.array([k])
    for _ in range(n - 1):
        origin = np.repeat(np.arange(len(left)), left + 1)
        first = np.repeat((left + 1).cumsum() - (left + 1), left + 1)
        taken = np.arange(len(origin)) - first
        rows, left = np.column_stack([rows[origin], taken]), left[origin] - taken
    return np.column_stack([rows, left])


# Releases of one row by several mechanisms, each with noise of its own.


@dataclass(frozen=True, eq=False, repr=False)
class LeakageTogether:
    """What several releases of the same rows reveal together: made by `leakage_together`.

    Attributes
    ----------
    measure : Measure
        The measure of leakage.
    is_exact : bool
        Whether the figures are exact. Otherwise they are upper bounds: those of releasing all
        columns of all releases unchanged.
    max_leakage, average_leakage : float
        Leakage of the worst combination of outputs, and on average.
    attacker_accuracy : float
        How often the best attacker guesses S.
    ranges : DataFrame
        One row per group of S: its share `prior`, and how far the released values together may
        move it, `low` and `high`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> from skprivacy import PrivacyFunnelTransformer
    >>> from skprivacy.files import fit_file, leakage_together

    A secret that is the exclusive or of two columns: each of them says nothing alone.

    >>> path = Path(tempfile.mkdtemp()) / "rows.csv"
    >>> rows = pd.DataFrame({"a": list("xxyy") * 50, "b": list("uvuv") * 50})
    >>> rows.assign(s=list("0110") * 50).to_csv(path, index=False)
    >>> funnels = [
    ...     fit_file(PrivacyFunnelTransformer(0, sensitive="s", columns=[name]), path)
    ...     for name in ("a", "b")
    ... ]
    >>> leakage_together(funnels, path)
    LeakageTogether(KL(): max_leakage=0.693147, average_leakage=0.693147)
    """

    measure: Measure
    is_exact: bool
    max_leakage: float
    average_leakage: float
    attacker_accuracy: float
    ranges: pd.DataFrame

    def __repr__(self) -> str:
        sign = "=" if self.is_exact else "<="
        found = [(n, getattr(self, n)) for n in ("max_leakage", "average_leakage")]
        return (
            f"{type(self).__name__}({self.measure!r}: "
            f"{', '.join(f'{name}{sign}{x:.6g}' for name, x in found)})"
        )


def leakage_of_all(
    mechanisms: Sequence[Mechanism],
    s_codes: IntArray,
    x_codes: Sequence[IntArray],
    weights: FloatArray,
) -> LeakageTogether:
    """Return the leakage of one output of each mechanism; codes, weights : of distinct rows.

    P(s, y1, y2) = sum over x of P(s, x) P(y1|x) P(y2|x), where x is a symbol of every mechanism.
    """
    sizes = [len(mechanism.p_x) for mechanism in mechanisms]
    symbols, of_row = combine(x_codes, sizes)
    p_sy = count_pairs(s_codes, of_row, weights) / weights.sum()
    n_outputs = math.prod(len(mechanism.p_y) for mechanism in mechanisms)
    if is_exact := n_outputs * max(p_sy.shape) <= MOST_CELLS:
        channel = np.ones((len(symbols), 1))
        for mechanism, x in zip(mechanisms, symbols.T, strict=True):
            channel = (channel[:, :, None] * mechanism.channel[x][:, None, :]).reshape(len(x), -1)
        p_sy = p_sy @ channel
    prior, p_y, measure = p_sy.sum(axis=1), p_sy.sum(axis=0), mechanisms[-1].measure
    p_sy, p_y = p_sy[:, p_y > 0], p_y[p_y > 0]
    given_y = posteriors(p_sy, p_y, prior)
    values = output_values(measure, given_y, prior)
    worst, average = (leakage_in(s, measure, values, p_y) for s in ("per_output", "average"))
    ranges = {"prior": prior, "low": given_y.min(axis=0), "high": given_y.max(axis=0)}
    right = float(p_sy.max(axis=0).sum())
    return LeakageTogether(measure, is_exact, worst, average, right, pd.DataFrame(ranges))
