"""Several secrets stacked into one measure, for budgets per output.

S is the pair (a secret drawn at random, its value): its distributions and lifts are those of the
secrets, one below the other. Each secret has its own scale.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .._typing import FloatArray, IntArray
from .measure import Measure


@dataclass(frozen=True, eq=False)
class Block:
    """One secret in a stack; its leakage as a share of what its budget allows.

    rows : its rows in the stack; share : their probability; reference : the prior that posteriors
    are compared with; groups : the groups that the rows stand for, None for all; start : g of an
    output that reveals nothing, or its least average; scale : how much more than `start` is
    allowed; tilt : a gradient that is subtracted, None for none.
    """

    measure: Measure
    rows: slice
    share: float
    reference: FloatArray
    groups: IntArray | None
    start: float
    scale: float
    tilt: FloatArray | None = None

    def value(self, stack: FloatArray) -> FloatArray:
        """Return the share of the scale that each posterior uses."""
        posterior = self._posterior(stack)
        values = self.measure.value(posterior, self.reference) - self.start
        if self.tilt is not None:
            values = values - posterior @ self.tilt
        return values / self.scale

    def subgradient(self, stack: FloatArray) -> FloatArray:
        """Return a gradient in the rows of this secret."""
        gradient = self.measure.subgradient(self._posterior(stack), self.reference)
        if self.tilt is not None:
            gradient = gradient - self.tilt
        gradient = gradient if self.groups is None else gradient[..., self.groups]
        return gradient / (self.share * self.scale)

    def _posterior(self, stack: FloatArray) -> FloatArray:
        rows = np.asarray(stack)[..., self.rows] / self.share
        if self.groups is None:
            return rows
        posterior = np.zeros((*rows.shape[:-1], len(self.reference)))
        posterior[..., self.groups] = rows
        return posterior


@dataclass(frozen=True, eq=False, repr=False)
class Stacked(Measure):
    """The largest share of its budget that any secret uses, or a weighted sum over secrets.

    An epsilon of 1 is the budget of every secret. blocks : the secrets; weights : None for the
    largest share; implied : `implied_deviations` at epsilon = 1, None if unknown.
    """

    blocks: Sequence[Block]
    weights: FloatArray | None = None
    implied: tuple[float, float] | None = None
    name: ClassVar[str] = "stacked"

    def __repr__(self) -> str:
        return repr(self.blocks[0].measure)

    @property
    def is_strict(self) -> bool:  # type: ignore[override]
        """Whether only independence leaks nothing: not on a stratum, whose centre is not P(S)."""
        is_centred = all(block.groups is None for block in self.blocks)
        every = self.weights is None or bool((self.weights > 0).all())
        return is_centred and every and all(block.measure.is_strict for block in self.blocks)

    @property
    def jumps(self) -> bool:
        return any(block.measure.jumps for block in self.blocks)

    def value(self, posterior: FloatArray, prior: FloatArray) -> FloatArray:
        shares = self._shares(posterior)
        if self.weights is None:
            return shares.max(axis=0)
        return np.tensordot(self.weights, shares, 1)

    def _shares(self, posterior: FloatArray) -> FloatArray:
        return np.stack([block.value(posterior) for block in self.blocks])

    def subgradient(self, posterior: FloatArray, prior: FloatArray) -> FloatArray:
        """Return the subgradient of the secret with the largest share, or the weighted sum."""
        posterior = np.asarray(posterior, float)
        if self.weights is None:
            worst = self._shares(posterior).argmax(axis=0)
            weights = [(worst == i).astype(float)[..., None] for i in range(len(self.blocks))]
        else:
            weights = list(self.weights)
        gradient = np.empty(posterior.shape)
        for block, weight in zip(self.blocks, weights, strict=True):
            gradient[..., block.rows] = weight * block.subgradient(posterior)
        return gradient

    def threshold(self, epsilon: float) -> float:
        return epsilon

    def inverse(self, value: Any) -> FloatArray:
        return np.asarray(value, float)

    def implied_deviations(self, epsilon: float) -> tuple[float, float] | None:
        return self.implied if epsilon == 1 else None

    def curvature(self, largest_lift: float) -> float:
        """For weighted sums: the KL of the stack is the mean KL of the secrets."""
        if self.weights is None or any(block.groups is not None for block in self.blocks):
            return np.inf
        used = [(b, w) for b, w in zip(self.blocks, self.weights, strict=True) if w > 0]
        return max(w * b.measure.curvature(largest_lift) / (b.scale * b.share) for b, w in used)
