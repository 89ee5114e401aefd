"""What the report says about the population that the rows are from."""

import math

from ..describing import percent, single_group
from ..mechanism import (
    FAR_ABOVE,
    USUAL_CONFIDENCE,
    Mechanism,
    PopulationLeakage,
    SeveralSecretsMechanism,
)

# With less confidence than this, a limit is no reason to call a budget kept.
_HARDLY_SURE = 0.5


def verdict(mechanism: Mechanism, limits: PopulationLeakage, rows: str) -> str:
    """Say whether the budget holds for the population, before anything else.

    rows : what it was learned from.
    """
    limit, epsilon = limits.leakage_in(mechanism.scope), mechanism.epsilon
    if len(mechanism.s_labels or ()) < 2:
        return single_group("S")
    if epsilon == math.inf:
        return "There is no budget to keep: epsilon is infinite."
    sure = f"with {percent(limits.confidence)} confidence"
    if _is_kept(mechanism, limit):
        is_sure = limits.confidence >= _HARDLY_SURE
        how = "PASS for the population" if is_sure else "NOT SURE for the population"
        return f"{how}: {sure} at most {limit:.4g} <= epsilon = {epsilon:g}, from {rows}."
    return (
        f"NOT KEPT for the population: {sure} up to {limit:.4g}, which exceeds epsilon = "
        f"{epsilon:g}. The budget holds only for these {rows}; "
        f"confidence={USUAL_CONFIDENCE:g} makes it hold for the population."
    )


def caveat(mechanism: Mechanism, limits: PopulationLeakage) -> list[str]:
    """Say what can be done where the budget is far exceeded in the population."""
    limit = limits.leakage_in(mechanism.scope)
    if _is_kept(mechanism, limit) or limit <= FAR_ABOVE * mechanism.epsilon:
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
            f"themselves it is no more."
        )
    return (
        f"The budget is about the joint distribution as estimated from the rows of fit. The "
        f"release was fitted to these rows, and under the true distribution it may leak more: the "
        f"last column is an upper limit on that, with {sure} confidence."
    )


def what_it_is_about(mechanism: Mechanism | SeveralSecretsMechanism) -> str:
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
