"""What the report says about the population that the rows are from."""

import math

from ..describing import percent
from ..mechanism import Mechanism, PopulationLeakage

# A limit for the population of more than this many budgets is called far above the budget.
_FAR = 2.0

_SURE = 0.95


def verdict(mechanism: Mechanism, limits: PopulationLeakage) -> str:
    """Say whether the budget holds for the population, before anything else."""
    limit, epsilon = limits.leakage_in(mechanism.scope), mechanism.epsilon
    if len(mechanism.s_labels or ()) < 2:
        return "The rows show a single group of S: nothing is known about others."
    if epsilon == math.inf:
        return "There is no budget to keep: epsilon is infinite."
    sure = f"with {percent(limits.confidence)} confidence"
    if _is_kept(mechanism, limit):
        return (
            f"PASS for the population: {sure} at most {limit:.4g} <= epsilon = {epsilon:g}, from "
            f"{limits.n_samples:,} rows."
        )
    return (
        f"NOT KEPT for the population: {sure} up to {limit:.4g}, which exceeds epsilon = "
        f"{epsilon:g}. The budget holds for these {limits.n_samples:,} rows only; "
        f"confidence={_SURE:g} makes it hold for the population."
    )


def caveat(mechanism: Mechanism, limits: PopulationLeakage) -> list[str]:
    """Say what can be done where the budget is far exceeded in the population."""
    limit = limits.leakage_in(mechanism.scope)
    if _is_kept(mechanism, limit) or limit <= _FAR * mechanism.epsilon:
        return []
    return [
        "What may leak in the population is far above the budget: there are too few rows for this "
        "many symbols and groups. Besides a confidence, more rows help, and so does pooling "
        "symbols of X or groups of S."
    ]


def rows_and_population(mechanism: Mechanism, limits: PopulationLeakage) -> str:
    """Say what the columns of leakage are about."""
    sure = percent(limits.confidence)
    if mechanism.confidence is not None:
        return (
            f"The budget holds for the population that the rows of fit were drawn from: the last "
            f"column is an upper limit of what leaks there, with {sure} confidence. In the rows "
            f"themselves it is less."
        )
    return (
        f"The budget is about the joint distribution as estimated from the rows of fit. The "
        f"release was fitted to these rows, and under the true distribution it may leak more: the "
        f"last column is an upper limit on that, with {sure} confidence."
    )


def what_it_is_about(mechanism: Mechanism) -> str:
    """Say for what the guarantee holds, as the first of what it does not cover."""
    about = "the joint distribution of S and X as estimated from the rows of fit"
    if mechanism.confidence is not None:
        about = (
            f"the population that the rows of fit were drawn from, independently of each other, "
            f"with {percent(mechanism.confidence)} confidence"
        )
    return (
        f"The guarantee is about {about}, and about one release of each row. Within that, the "
        f"attacker may know the joint distribution and the channel."
    )


def _is_kept(mechanism: Mechanism, limit: float) -> bool:
    # As mechanisms are checked: rounding does not count.
    return limit <= mechanism.measure.budget(mechanism.epsilon)
