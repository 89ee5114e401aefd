"""Leakage of a released column about a sensitive one, in samples and in the population.

A measure (`skprivacy.measures`) acts on probabilities, a metric on samples. With few rows, even a
column that is independent of S seems to leak: `leakage_report` shows by how much.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .._typing import ColumnsLike, FloatArray, Scope, Seed
from .._validation import check_integer, check_real, message
from ..fitting.fitted_estimator import fitted_of
from ..measures import KL, L1, AlphaLift, Chi2, MaxLift, Measure, check_scope, get_measure
from ..measures.measure import leakage_in, output_values
from ..mechanism import Leakage, Mechanism, PopulationLeakage, one_secret, population_limits
from ..tables.frames import CrossTable, observed
from ..transformer import PrivacyFunnelTransformer
from .information import chance_tables, interval, jackknife

_METRICS = {
    "mutual information": (KL(), 1.0),
    "total variation": (L1(), 0.5),
    "l1": (L1(), 1.0),
    "chi2": (Chi2(), 1.0),
    "alpha-lift": (AlphaLift(), 1.0),
    "maximal leakage": (MaxLift(), 1.0),
}


# The columns of a report, by scope.
_SCOPES: dict[Scope, str] = {"average": "average", "per_output": "worst_output"}


def leakage(
    s: ColumnsLike, y: ColumnsLike, *, measure: str | Measure = "kl", scope: Scope = "per_output"
) -> float:
    """Return the leakage of y about s, on the epsilon scale of a measure.

    On average, kl is the mutual information, half of l1 the total variation, and max_lift the
    maximal leakage.

    Parameters
    ----------
    s, y : array-like or frame of n_samples rows
        The sensitive column and the released one; the columns of a frame are taken jointly.
    measure : str or Measure, default="kl"
        As in `design_mechanism`.
    scope : {"per_output", "average"}, default="per_output"
        The leakage of the worst value of y, or on average.

    Returns
    -------
    float

    Examples
    --------
    >>> from skprivacy.metrics import leakage
    >>> leakage(["a", "a", "b", "b"], [0, 0, 1, 1], measure="l1", scope="average")
    1.0
    """
    measure = get_measure(measure, "leakage")
    check_scope("leakage", scope, measure)
    sample = observed(s, y, "leakage")
    return leakage_in(scope, measure, _values(sample, measure), sample.p_y)


def leakage_per_output(
    s: ColumnsLike, y: ColumnsLike, *, measure: str | Measure = "kl"
) -> pd.Series:
    """Return the leakage of each value of y about s, on the epsilon scale of a measure.

    Parameters
    ----------
    s, y : array-like or frame of n_samples rows
        As in `leakage`.
    measure : str or Measure, default="kl"
        As in `design_mechanism`.

    Returns
    -------
    Series
        Its index holds the values of y.

    Examples
    --------
    >>> import numpy as np
    >>> from skprivacy.metrics import leakage_per_output
    >>> lifts = np.exp(leakage_per_output(list("aabb"), [0, 0, 0, 1], measure="max_lift"))
    >>> lifts.round(3).tolist()
    [1.333, 2.0]
    """
    measure, sample = (
        get_measure(measure, "leakage_per_output"),
        observed(s, y, "leakage_per_output"),
    )
    return pd.Series(measure.inverse(_values(sample, measure)), sample.y_values)


def leakage_report(
    s: ColumnsLike,
    y: ColumnsLike,
    *,
    confidence: float = 0.95,
    n_permutations: int = 200,
    random_state: Seed = 0,
) -> pd.DataFrame:
    """Return the leakage of y about S by every measure, with a baseline from permuted S.

    Parameters
    ----------
    s, y : array-like or frame of n_samples rows
        As in `leakage`.
    confidence : float, default=0.95
        The confidence of the interval for the mutual information, and of the `*_by_chance` limits.
    n_permutations : int, default=200
        How often S is permuted for the baseline.
    random_state : int, Generator or None, default=0
        The seed for drawing the permutations.

    Returns
    -------
    DataFrame
        One row per metric: the `average` over the values of y, and the `worst_output`. For each,
        also the same figure with S permuted, so that y reveals nothing: its mean as `*_baseline`,
        and its `confidence` quantile as `*_by_chance`. For the mutual information, also the
        bias-corrected estimate, `corrected`, and its interval, `low` and `high`. (Its worst output
        is a divergence.)

    Examples
    --------
    >>> import numpy as np
    >>> from skprivacy.metrics import leakage_report
    >>> rng = np.random.default_rng(0)
    >>> s, y = rng.integers(2, size=300), rng.integers(5, size=300)  # independent
    >>> leakage_report(s, y)[["average", "average_baseline"]].round(3)
                        average  average_baseline
    mutual information    0.002             0.007
    total variation       0.030             0.047
    l1                    0.061             0.093
    chi2                  0.069             0.109
    alpha-lift            0.002             0.007
    maximal leakage       0.059             0.089
    """
    owner = "leakage_report"
    check_real(owner, "confidence", confidence, low=0, high=1, low_open=True, high_open=True)
    check_integer(owner, "n_permutations", n_permutations, low=1)
    sample = observed(s, y, owner)
    tables = chance_tables(sample.counts, n_permutations, random_state)
    by_chance = np.array([_every_figure(CrossTable(table, sample.y_values)) for table in tables])
    columns = list(_SCOPES.values())
    report = pd.DataFrame(_every_figure(sample), list(_METRICS), columns)
    for i, column in enumerate(columns):
        report[f"{column}_baseline"] = by_chance[:, :, i].mean(axis=0)
        report[f"{column}_by_chance"] = np.quantile(by_chance[:, :, i], confidence, axis=0)
    report = report[sorted(report.columns)]
    corrected, _ = jackknife(sample.counts)
    low, high = interval(sample.counts, confidence, random_state)
    report.loc["mutual information", ["corrected", "low", "high"]] = corrected, low, high
    return report


def _every_figure(sample: CrossTable) -> FloatArray:
    """Return an array with a row per metric: on average and for the worst value of y."""
    figures = []
    for measure, factor in _METRICS.values():
        values = _values(sample, measure)
        figures.append(
            [factor * leakage_in(scope, measure, values, sample.p_y) for scope in _SCOPES]
        )
    return np.array(figures)


def _values(sample: CrossTable, measure: Measure) -> FloatArray:
    """Return the measure of each value of y, without the values of S that never occur."""
    return output_values(measure, sample.posteriors, sample.prior)


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

    The guarantee of a mechanism is about the joint distribution it was designed for. If that was
    estimated from rows, the true leakage is mostly larger, because the design has adapted to the
    rows. Joints the rows may have come from are drawn in two ways: from the posterior with one row
    added to every group of S, spread as P(X), which allows for pairs that no row has; and around
    the rows with one more row where it reveals most, for groups with a handful of rows. The
    leakage of the same channel is computed under each joint; the limit is the larger quantile.

    Parameters
    ----------
    mechanism : PrivacyFunnelTransformer or Mechanism
        Fitted, to a table of any kind; or designed for a joint distribution that was estimated
        from `n_samples` rows.
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
    """Return the leakage of a secret, and the counts its joint was estimated from."""
    training = None
    if isinstance(mechanism, PrivacyFunnelTransformer):
        fitted = fitted_of(mechanism)
        mechanism, training = fitted.mechanism, fitted.training
    figures = one_secret(mechanism, owner, secret)
    if training is not None:
        name = next(iter(training.secrets.groups)) if secret is None else secret
        table = training.secrets.groups[name].table(training.counts)
        rows = training.effective_rows
        if n_samples is not None:
            rows = check_integer(owner, "n_samples", n_samples, low=1)
        return figures, table * (rows / table.sum())
    if figures.p_sx is None:
        raise ValueError(
            f"{owner} needs the joint distribution, which was left out when the mechanism was "
            f"saved."
        )
    if n_samples is None and figures.n_samples is not None:
        return figures, figures.n_samples * figures.p_sx
    return figures, check_integer(owner, "n_samples", n_samples, low=1) * figures.p_sx
