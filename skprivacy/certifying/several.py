"""Certificates of several secrets, which all hold at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .._typing import FloatArray
from ..measures import Measure
from .certificate import Candidate, Certificate, certify, failure_of


@dataclass(frozen=True, eq=False, repr=False)
class SeveralCertificates:
    """What a channel leaks about each of several secrets, at most, by rows it has not seen.

    Attributes
    ----------
    secrets : dict of Certificate
        By the name of the secret. Each has its share of the risk that a bound fails, so its own
        `confidence` is larger.
    confidence : float
        How often the bounds of all secrets hold at once, at least.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skprivacy import PrivacyFunnelTransformer
    >>> rng = np.random.default_rng(0)
    >>> sex, old = rng.integers(2, size=(2, 40_000))
    >>> band = rng.binomial(4, 0.4 + 0.1 * sex + 0.1 * old)
    >>> rows = pd.DataFrame({"sex": sex, "old": old, "band": band})
    >>> budgets = {"sex": 0.02, "old": 0.05, ("sex", "old"): 0.06}
    >>> funnel = PrivacyFunnelTransformer(budgets, sensitive=["sex", "old"])
    >>> certificates = funnel.fit(rows[:20_000]).certify(rows[20_000:])
    >>> certificates.holds({"sex": 0.1, "old": 0.2})
    True
    >>> round(certificates.secrets["sex"].confidence, 3)
    0.983
    """

    secrets: Mapping[Any, Certificate]
    confidence: float

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in {*vars(Certificate), *Certificate.__annotations__}:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise AttributeError(
            f"There is a certificate for each of several secrets "
            f"({', '.join(map(repr, self.secrets))}): ask "
            f".secrets[{next(iter(self.secrets))!r}].{name}."
        )

    def holds(self, epsilon: Mapping[Any, float]) -> bool:
        """Return whether the budgets of some secrets are certified, in the scope of the design."""
        return all(self.secrets[name].holds(budget) for name, budget in epsilon.items())

    def __repr__(self) -> str:
        each = "; ".join(f"{name}: {one!r}" for name, one in self.secrets.items())
        return f"SeveralCertificates(confidence {self.confidence:g}; {each})"


def certified_secrets(
    counts: Mapping[Any, FloatArray],
    candidates: Mapping[Any, Candidate],
    measure: Measure,
    confidence: float,
    n_settings: int,
) -> Certificate | SeveralCertificates:
    """Return the certificate of each secret, by its counts; the only one is called None."""
    failure_of(confidence, n_settings)  # checks them
    of_each = 1 - (1 - confidence) / len(counts) if len(counts) > 1 else confidence
    found = {
        name: certify(table, candidates[name], measure, of_each, n_settings)
        for name, table in counts.items()
    }
    return found[None] if None in found else SeveralCertificates(found, confidence)
