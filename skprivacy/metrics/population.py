"""From the joint distribution of some rows to that of the population they were drawn from."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import FloatArray, Seed
from .._validation import check_integer, check_real, message
from ..fitting.fitted_estimator import fitted_of
from ..mechanism import (
    Leakage,
    Mechanism,
    PopulationLeakage,
    one_secret,
    population_limits,
)
from ..transformer import PrivacyFunnelTransformer

_NO_JOINT = "{} needs the joint distribution, which was left out when the mechanism was saved."


def population_leakage(
    mechanism: Mechanism | Leakage | PrivacyFunnelTransformer,
    n_samples: int | None = None,
    *,
    secret: Any = None,
    confidence: float = 0.95,
    n_resamples: int = 999,
    random_state: Seed = 0,
) -> PopulationLeakage:
    """Return upper confidence limits of the leakage under the true joint distribution.

    The guarantee of a mechanism is about the joint distribution that it was designed for. If
    that was estimated from rows, the true leakage is mostly larger: the design has adapted to
    the rows. Joints that the rows may have come from are drawn in two ways: from the posterior
    with one row added to every group of S, spread as P(X), which allows for pairs that no row has;
    and around the rows with one more row where it reveals most, which takes care of groups with a
    handful of rows. The leakage of the same channel is computed under each; the limit is the
    larger quantile.

    Parameters
    ----------
    mechanism : PrivacyFunnelTransformer or Mechanism
        Fitted, to a table of any kind; or designed for a joint distribution that was estimated
        from `n_samples` rows. Of several secrets, one: ``mechanism.secrets[name]``, or `secret`.
    n_samples : int, default=None
        The number of independent rows. A transformer knows it, and so does a mechanism with a
        confidence; with weights, a transformer uses the number of equally weighted rows that carry
        as much information.
    secret : str, int or tuple, default=None
        The name of the secret that the limits are about, where there are several.
    confidence : float, default=0.95
        How often the limits should hold.
    n_resamples : int, default=999
        How many joints are drawn in each way.
    random_state : int, Generator or None, default=0
        The seed for drawing them.

    Returns
    -------
    PopulationLeakage

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> from skprivacy.metrics import population_leakage
    >>> mechanism = design_mechanism([[20, 10, 10], [10, 20, 30]], 0.02)
    >>> limits = population_leakage(mechanism, n_samples=100)
    >>> limits.max_leakage > mechanism.max_leakage
    True
    """
    owner = "population_leakage"
    check_real(owner, "confidence", confidence, low=0, high=1, low_open=True, high_open=True)
    check_integer(owner, "n_resamples", n_resamples, low=1)
    if (n_resamples + 1) * (1 - confidence) < 1:
        needed = f"at least {int(np.ceil(1 / (1 - confidence)))} for a confidence of {confidence}"
        raise ValueError(message(owner, "n_resamples", needed, n_resamples))
    figures, counts = _counted(mechanism, n_samples, secret, owner)
    return population_limits(
        figures, counts, confidence, n_draws=n_resamples, random_state=random_state
    )


def _counted(
    mechanism: Any, n_samples: int | None, secret: Any, owner: str
) -> tuple[Leakage, FloatArray]:
    """Return the figures of a secret, and the counts that its joint was estimated from."""
    training = None
    if isinstance(mechanism, PrivacyFunnelTransformer):
        fitted = fitted_of(mechanism)
        mechanism, training = fitted.mechanism, fitted.training
    if secret is not None:
        secrets = getattr(mechanism, "secrets", {})
        if secret not in secrets:
            raise ValueError(message(owner, "secret", f"one of {list(secrets)}", secret))
        mechanism = secrets[secret]
    figures = one_secret(mechanism, owner)
    if training is not None:
        name = next(iter(training.secrets.groups)) if secret is None else secret
        table = training.secrets.groups[name].table(training.counts)
        rows = training.effective_rows
        if n_samples is not None:
            rows = check_integer(owner, "n_samples", n_samples, low=1)
        return figures, table * (rows / table.sum())
    if figures.p_sx is None:
        raise ValueError(_NO_JOINT.format(owner))
    if n_samples is None and figures.n_samples is not None:
        return figures, figures.n_samples * figures.p_sx
    return figures, check_integer(owner, "n_samples", n_samples, low=1) * figures.p_sx
