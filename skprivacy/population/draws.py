"""Draws of joint distributions that a table of counts may come from, and the leakage in each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .._typing import BoolArray, FloatArray, IntArray
from ..measures import Measure
from ..measures.base import ShippedMeasure, output_values, posteriors

# Draws are made in batches with at most this many cells in all: 32 MB.
MOST_CELLS = 2**22


@dataclass(frozen=True, eq=False)
class Draws:
    """A batch of joints around a table of counts, drawn in two ways, none of them normalised.

    posterior : Dirichlet(N + N_x / n), in which every group of S has one more row, spread as P(X);
    rows : Dirichlet(N), in which no row is added; extra : the weight of one more row there, an
    Exp(1) for each group of S; estimate : the mean of `posterior`, normalised.
    """

    posterior: FloatArray
    rows: FloatArray
    extra: FloatArray
    estimate: FloatArray

    @property
    def seen(self) -> BoolArray:
        """Which symbols of X have rows. Nothing is known of the others: no draw has them."""
        return self.estimate.sum(axis=0) > 0


def draws_around(counts: FloatArray, n_draws: int, rng: np.random.Generator) -> Iterator[Draws]:
    """Yield joints around a table of counts N(s, x), in batches of bounded size.

    A group of S without rows is drawn as well: it may merely be rare.
    """
    counts = np.asarray(counts, float)
    # Half a row per cell, Jeffreys' prior, would drown small groups on wide alphabets.
    smoothed = counts + counts.sum(axis=0) / counts.sum()
    shapes = np.concatenate([smoothed.ravel(), counts.ravel(), np.ones(len(counts))])
    size, streams = max(1, MOST_CELLS // counts.size), _Streams(rng)
    for start in range(0, n_draws, size):
        drawn = streams.gamma(shapes, range(start, min(start + size, n_draws)))
        posterior, rows, extra = np.split(drawn, [counts.size, 2 * counts.size], axis=1)
        posterior, rows = (part.reshape(-1, *counts.shape) for part in (posterior, rows))
        yield Draws(posterior, rows, extra, smoothed / smoothed.sum())


class _Streams:
    """A stream of random numbers for each draw, which no other draw has a part in.

    Gamma variables are drawn by rejection. In one stream, a comparison that comes out differently
    on another processor would change all that follows.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._bits = np.random.Philox(key=rng.integers(2**63))
        self._rng, self._state = np.random.Generator(self._bits), self._bits.state

    def gamma(self, shapes: FloatArray, indices: Iterable[int]) -> FloatArray:
        """Return gamma variables of some shapes, a row for the stream of each index."""
        indices = list(indices)
        drawn = np.empty((len(indices), len(shapes)))
        for row, index in zip(drawn, indices, strict=True):
            self._state["state"]["counter"][:] = 0, 0, index, 0
            self._bits.state = self._state
            self._rng.standard_gamma(shapes, out=row)
        return drawn


# Leakage of a channel under each of many joints, with and without one more row. ------------------


# Figures that differ by less than this share of the largest are the same.
_TIED = 1e-9

# So many groups of S are tried for one more row, which may well weigh as much as so many rows.
_ALL_GROUPS, _SOME_ROWS = 16, 3.0


@dataclass(frozen=True, eq=False)
class Figures:
    """g for each joint, as rows: on average over outputs, and of each output.

    The average is NaN for a measure that has none, and where it is not asked for.
    """

    average: FloatArray
    per_output: FloatArray

    @classmethod
    def joined(cls, batches: Iterable[Figures]) -> Figures:
        """Return the figures of all batches."""
        averages, each = zip(*((b.average, b.per_output) for b in batches), strict=True)
        return cls(np.concatenate(averages), np.concatenate(each))


def from_posterior(channel: FloatArray, draws: Draws, measure: Measure) -> Figures:
    """Return the figures under joints from the posterior."""
    p_sy, p_s = _with_y(draws.posterior, channel)
    p_y, values = _values(measure, p_sy, p_s)
    has_average = "average" in measure.scopes
    return Figures((p_y * values).sum(axis=1) if has_average else _unknown(values), values)


def with_one_more_row(
    channel: FloatArray, draws: Draws, measure: Measure, with_average: bool = True
) -> Figures:
    """Return the figures with one more row, of the group of S for which they are largest.

    For each output, the row has the symbol of X that gives it most often; on average, the one that
    raises the average most. The average takes most of the time: without it, it is NaN.
    """
    p_sy, p_s = _with_y(draws.rows, channel)
    likeliest = [channel[draws.seen].max(axis=0, keepdims=True)] * len(draws.estimate)

    def added(rows: Sequence[FloatArray]) -> Iterator[tuple[FloatArray, FloatArray]]:
        for s in _worst_groups(measure, p_sy, p_s, rows):
            for row in rows[s]:
                yield _values(measure, *_added(p_sy, p_s, s, draws.extra[:, s], row))

    each = np.max([values for _, values in added(likeliest)], axis=0)
    if not with_average or "average" not in measure.scopes:
        return Figures(_unknown(each), each)
    telling = [np.unique(channel[row], axis=0) for row in _steepest(measure, draws, channel)]
    averages = [(p_y * values).sum(axis=1) for p_y, values in added(telling)]
    return Figures(np.max(averages, axis=0), each)


def _worst_groups(
    measure: Measure, p_sy: FloatArray, p_s: FloatArray, rows: Sequence[FloatArray]
) -> IntArray:
    """Return the groups of S of which one more row may matter most.

    All of them, unless there are many: then those for which it does on average over the draws.
    """
    if p_s.shape[1] <= _ALL_GROUPS:
        return np.arange(p_s.shape[1])
    p_sy, p_s = p_sy.mean(axis=0, keepdims=True), p_s.mean(axis=0, keepdims=True)
    weight, reached = np.array([_SOME_ROWS]), []
    for s, own in enumerate(rows):
        joints = (_added(p_sy, p_s, s, weight, row) for row in own)
        reached.append(max(_values(measure, *joint)[1].max() for joint in joints))
    return np.argsort(reached)[-_ALL_GROUPS:]


def _with_y(joints: FloatArray, channel: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return P(s, y) and P(s) of each joint, not normalised either."""
    n_draws, n_s, n_x = joints.shape
    p_sy = joints.reshape(-1, n_x) @ channel  # one large product is faster than many small ones
    return p_sy.reshape(n_draws, n_s, -1), joints.sum(axis=2)


def _added(
    p_sy: FloatArray, p_s: FloatArray, s: int, weight: FloatArray, p_y_given_x: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return P(s, y) and P(s) with one more row of group s, of some weight in each joint."""
    p_sy, p_s = p_sy.copy(), p_s.copy()
    p_sy[:, s] += weight[:, None] * p_y_given_x
    p_s[:, s] += weight
    return p_sy, p_s


def _values(measure: Measure, p_sy: FloatArray, p_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return P(y) and g of each output, for each joint as rows."""
    total = p_s.sum(axis=1, keepdims=True)
    priors, p_y = p_s / total, p_sy.sum(axis=1)
    if not isinstance(measure, ShippedMeasure):  # its prior need not have more than one axis
        each = zip(p_sy, p_y, priors, strict=True)
        values = [output_values(measure, posteriors(*one), one[-1]) for one in each]
        return p_y / total, np.array(values)
    rows = p_sy.transpose(0, 2, 1) / np.where(p_y > 0, p_y, 1.0)[..., None]
    rows = np.where((p_y > 0)[..., None], rows, priors[:, None])
    return p_y / total, measure.value(rows, priors[:, None])


def _unknown(values: FloatArray) -> FloatArray:
    return np.full(len(values), np.nan)


def _steepest(measure: Measure, draws: Draws, channel: FloatArray) -> BoolArray:
    """Return the symbols of X with which a row of each group raises the average of g most.

    By the slope of sum P(y) g(P(S|y)) in P(s, x), but for what is the same for all x. Of those
    that tie, by how much P(y|x) differs from P(y); all that still tie, because which one is first
    is a matter of rounding.
    """
    prior, p_sy = draws.estimate.sum(axis=1), draws.estimate @ channel
    rows = posteriors(p_sy, p_sy.sum(axis=0), prior)
    slope = measure.subgradient(rows, prior)
    slope += (measure.value(rows, prior) - (slope * rows).sum(axis=1))[:, None]
    p_y = p_sy.sum(axis=0)
    steepest = _largest(np.where(draws.seen, (channel @ slope).T, -np.inf))
    apart = np.where(p_y > 0, channel**2 / np.where(p_y > 0, p_y, 1.0), 0.0).sum(axis=1)
    return _largest(np.where(steepest, apart, -np.inf))


def _largest(figures: FloatArray) -> BoolArray:
    """Return where the largest figures of each row are."""
    largest = figures.max(axis=1, keepdims=True)
    return figures >= largest - _TIED * np.abs(largest)
