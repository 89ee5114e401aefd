"""What the commands say about the population that the rows are from."""

from typing import Any

from ..describing import percent, single_group
from ..mechanism import Mechanism, SeveralSecretsMechanism, name_of_secret

# What leaks less than this is nothing but rounding.
_ROUNDING = 1e-12


def population_facts(mechanism: Mechanism | SeveralSecretsMechanism) -> dict[str, Any]:
    """Return for machines how sure a budget is: nothing but None where it is for the rows."""
    limit = None
    if isinstance(mechanism, Mechanism) and mechanism.p_sx is not None:
        limit = None if mechanism.confidence is None else mechanism.leakage_at_most(mechanism)
    return {
        "confidence": mechanism.confidence,
        "n_samples": mechanism.n_samples,
        "population_limit": limit,
    }


def revealed(mechanism: Mechanism, protected: str) -> list[str]:
    """Say what released values reveal, in the rows and in their population."""
    is_worst, measure = mechanism.scope == "per_output", mechanism.measure.name
    where = "every released value reveals" if is_worst else "released values on average reveal"
    reached = mechanism.leakage_in(mechanism.scope)
    if mechanism.confidence is None:
        return [
            f"Judging by these rows, {where} at most epsilon = {mechanism.epsilon:g} about "
            f"{protected} ({measure}; reached: {reached:.4g})."
        ]
    if len(mechanism.s_labels or ()) < 2:
        return [single_group(protected)]
    limit = mechanism.leakage_at_most(mechanism)
    reached, limit = (0.0 if figure < _ROUNDING else figure for figure in (reached, limit))
    return [
        f"In these {mechanism.n_samples:,.0f} rows, {where} at most {reached:.4g} about "
        f"{protected} ({measure}).",
        f"In the population that they are from, that is at most {limit:.4g}, with "
        f"{percent(mechanism.confidence)} confidence: within epsilon = {mechanism.epsilon:g}.",
    ]


def claimed(mechanism: Mechanism | SeveralSecretsMechanism) -> list[str]:
    """Say for what a saved budget holds, if its file has a confidence."""
    if mechanism.confidence is None:
        return []
    return [
        f"As the mechanism claims, {_budgets(mechanism)} for the population that the "
        f"{mechanism.n_samples:,.0f} rows of its design are from, with "
        f"{percent(mechanism.confidence)} confidence."
    ]


def _budgets(mechanism: Mechanism | SeveralSecretsMechanism) -> str:
    if isinstance(mechanism, Mechanism):
        return f"epsilon = {mechanism.epsilon:g} holds"
    each = (f"{budget:g} about {name_of_secret(n)}" for n, budget in mechanism.epsilon.items())
    return f"epsilon = {', '.join(each)} hold"
