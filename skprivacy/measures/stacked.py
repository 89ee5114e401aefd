"""Several secrets stacked into one measure, for budgets per output.

S is "one of the secrets, drawn at random, and its value": its distributions are those of the
secrets, one below the other, and so are its lifts. Each secret has its own scale.
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
    """One secret in a stack: what an output says about it, in units of what it may say.

    measure : of leakage; rows : of the stack; share : their probability; reference : the prior
    that posteriors are compared with; kept : which of its groups the rows are, None for all;
    start : g of an output that says nothing, or the least that it is on average; scale : how much
    more than that is allowed; tilt : a gradient that is subtracted, None for none.
    """

    measure: Measure
    rows: slice
    share: float
    reference: FloatArray
    kept: IntArray | None
    start: float
    scale: float
    tilt: FloatArray | None = None

    def value(self, stack: FloatArray) -> FloatArray:
        """Return the share of the scale that each of some posteriors takes."""
        posterior = self._posterior(stack)
        values = self.measure.value(posterior, self.reference) - self.start
        if self.tilt is not None:
            values = values - posterior @ self.tilt
        return values / self.scale

    def subgradient(self, stack: FloatArray) -> FloatArray:
        """Return a gradient with respect to the rows of this secret."""
        gradient = self.measure.subgradient(self._posterior(stack), self.reference)
        if self.tilt is not None:
            gradient = gradient - self.tilt
        gradient = gradient if self.kept is None else gradient[..., self.kept]
        return gradient / (self.share * self.scale)

    def _posterior(self, stack: FloatArray) -> FloatArray:
        own = np.asarray(stack)[..., self.rows] / self.share
        if self.kept is None:
            return own
        whole = np.zeros((*own.shape[:-1], len(self.reference)))
        whole[..., self.kept] = own
        return whole


@dataclass(frozen=True, eq=False, repr=False)
class Stacked(Measure):
    """The secret that takes most of what it may take, or a weighted sum over secrets.

    An epsilon of 1 is the budget of all of them. blocks : the secrets; weights : None for the
    largest share; implied : deviations of lifts that are surely within the budget, if known.
    """

    blocks: Sequence[Block]
    weights: FloatArray | None = None
    implied: tuple[float, float] | None = None
    name: ClassVar[str] = "stacked"

    def __repr__(self) -> str:
        return repr(self.blocks[0].measure)

    @property
    def is_strict(self) -> bool:  # type: ignore[override]
        """Whether only independence leaks nothing; not so where priors are not the centre."""
        is_centred = all(block.kept is None for block in self.blocks)
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
        """Return the subgradient of the secret that is exceeded most, or the weighted sum."""
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
        """Of a sum over secrets: the KL of the stack is the mean of those of the secrets."""
        if self.weights is None or any(block.kept is not None for block in self.blocks):
            return np.inf
        used = [(b, w) for b, w in zip(self.blocks, self.weights, strict=True) if w > 0]
        return max(w * b.measure.curvature(largest_lift) / (b.scale * b.share) for b, w in used)
