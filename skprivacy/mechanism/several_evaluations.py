"""One channel under the joints of several secrets with X."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .evaluation import Evaluation


@dataclass(frozen=True, eq=False, repr=False)
class SeveralSecretsEvaluation:
    """A channel under the joint distributions of several secrets with X, without a budget.

    Attributes
    ----------
    secrets : dict of Evaluation
        By the name of the secret.
    together : Evaluation
        The figures for all secrets as one.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skprivacy import PrivacyFunnelTransformer
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.integers(2, size=(2, 20_000))
    >>> frame = pd.DataFrame({"a": a, "b": b, "x": rng.binomial(3, 0.3 + 0.3 * a + 0.1 * b)})
    >>> budgets = {"a": 0.05, "b": 0.1, ("a", "b"): 0.2}
    >>> fitted = PrivacyFunnelTransformer(budgets, sensitive=["a", "b"]).fit(frame)
    >>> figures = fitted.evaluate(frame)
    >>> bool(figures.secrets["b"].max_leakage <= 0.1 * (1 + 1e-9))
    True
    """

    secrets: Mapping[Any, Evaluation]
    together: Evaluation

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in {*vars(Evaluation), "p_sx", "s_labels"}:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise AttributeError(
            f"These are figures of several secrets ({', '.join(map(repr, self.secrets))}), each "
            f"with its own {name!r}: ask .secrets[{next(iter(self.secrets))!r}].{name}."
        )

    @property
    def utility(self) -> float:
        """What the channel keeps, which is the same for all secrets."""
        return self.together.utility

    @property
    def normalized_utility(self) -> float:
        """The share of the utility of X that is kept."""
        return self.together.normalized_utility

    def __repr__(self) -> str:
        figures = [f"{name}: {one.max_leakage:.6g}" for name, one in self.secrets.items()]
        figures += [f"together: {self.together.max_leakage:.6g}", f"utility={self.utility:.6g}"]
        return f"{type(self).__name__}(max_leakage of {', '.join(figures)})"
