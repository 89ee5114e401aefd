"""Joint distributions that a table of counts may have come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from .._typing import BoolArray, FloatArray

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
    size = max(1, MOST_CELLS // counts.size)
    streams = _Streams(rng)
    for start in range(0, n_draws, size):
        drawn = streams.gamma(shapes, range(start, min(start + size, n_draws)))
        posterior, rows, extra = np.split(drawn, [counts.size, 2 * counts.size], axis=1)
        tables = (-1, *counts.shape)
        yield Draws(
            posterior.reshape(tables), rows.reshape(tables), extra, smoothed / smoothed.sum()
        )


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
