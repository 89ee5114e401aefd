"""Joint distributions that a table of counts may have come from."""

from __future__ import annotations

from collections.abc import Iterator
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
    size = max(1, MOST_CELLS // counts.size)
    for start in range(0, n_draws, size):
        shape = min(size, n_draws - start), *counts.shape
        posterior, rows = rng.gamma(smoothed, size=shape), rng.gamma(counts, size=shape)
        extra = rng.exponential(size=shape[:2])
        yield Draws(posterior, rows, extra, smoothed / smoothed.sum())
