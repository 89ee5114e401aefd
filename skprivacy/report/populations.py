"""What the report says about the rows, and about the population that they are from."""

import math
from dataclasses import dataclass

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

# What leaks less than this is nothing but rounding.
_ROUNDING = 1e-12

# From the best to the worst.
PASS, NO_VERDICT, NOT_SURE, FAIL = "PASS", "NO VERDICT", "NOT SURE", "FAIL"
_ORDER = (PASS, NO_VERDICT, NOT_SURE, FAIL)


_TO_DO = {
    PASS: [
        "Check that the files and the columns below are the right ones.",
        "Read what the recipient may and may not conclude.",
    ],
    NO_VERDICT: ["Do not sign: there is nothing that this release was checked against."],
    NOT_SURE: ["Do not sign yet: ask for figures that are more certain."],
    FAIL: [
        f"Do not sign yet: send it back, and ask for a release with a confidence of "
        f"{USUAL_CONFIDENCE:g}, which keeps the budget in the population too. As it is, it can be "
        f"signed for these rows only."
    ],
}


@dataclass(frozen=True)
class Verdict:
    """Whether a budget is kept in the sample and in the population; line : both, with figures."""

    sample: str
    population: str
    line: str


def verdict(mechanism: Mechanism, limits: PopulationLeakage, protected: str) -> Verdict:
    """Return whether the budget is kept, before anything else; protected : the names of S."""
    reached, limit = (figures.leakage_in(mechanism.scope) for figures in (mechanism, limits))
    if len(mechanism.s_labels or ()) < 2:
        return Verdict(NO_VERDICT, NO_VERDICT, f"{NO_VERDICT}: {single_group(protected)}")
    if mechanism.epsilon == math.inf:
        line = "There is no budget to keep: epsilon is infinite."
        return Verdict(NO_VERDICT, NO_VERDICT, f"{NO_VERDICT}: {line}")
    sample = PASS if _is_kept(mechanism, reached) else FAIL
    population = PASS if limits.confidence >= _HARDLY_SURE else NOT_SURE
    population = population if _is_kept(mechanism, limit) else FAIL
    start, sure = f"{sample} in the sample ({_figure(reached)})", percent(limits.confidence)
    budget = f"{mechanism.epsilon:g}{' on average' if mechanism.scope == 'average' else ''}"
    line = (
        f"{start}, {population} in the population (at most {_figure(limit)}, with {sure} "
        f"confidence): the budget is epsilon = {budget}."
    )
    if population == FAIL:
        line = (
            f"{start}. {FAIL} in the population: the true figure may be as high as "
            f"{_figure(limit)} ({sure} sure), above the budget of {budget}."
        )
    return Verdict(sample, population, line)


def _figure(leakage: float) -> str:
    if math.isinf(leakage):
        return "infinity"
    return "0" if leakage < _ROUNDING else f"{leakage:.4g}"


def worst(outcomes: list[str]) -> str:
    """Return the worst of several outcomes."""
    return max(outcomes, key=_ORDER.index)


def promise(mechanism: Mechanism | SeveralSecretsMechanism, outcome: str, rows: str) -> list[str]:
    """Say that the release was made for the rows alone, where that is so.

    outcome : whether the budget is kept in the population; rows : what it was learned from.
    """
    if mechanism.confidence is not None or outcome == NO_VERDICT:
        return []
    though = " There are enough rows: it is kept there all the same."
    return [
        f"The release was made to keep the budget in these {rows}, and not among all people whom "
        f"they stand for.{though if outcome == PASS else ''}"
    ]


def to_do(outcome: str) -> list[str]:
    """Say what to do before anybody signs; outcome : for the population."""
    return _TO_DO[outcome]


def caveat(mechanism: Mechanism, limits: PopulationLeakage) -> list[str]:
    """Say what can be done where the budget is far exceeded in the population."""
    limit = limits.leakage_in(mechanism.scope)
    if _is_kept(mechanism, limit) or limit <= FAR_ABOVE * mechanism.epsilon:
        return []
    return [
        "What may leak in the population is far above the budget: there are too few rows for this "
        "many symbols and groups. More rows help, and so does putting values or groups together."
    ]


def rows_and_population(mechanism: Mechanism, limits: PopulationLeakage) -> str:
    """Say what the columns of leakage are about."""
    sure = percent(limits.confidence)
    if mechanism.confidence is not None:
        return (
            f"The budget holds for the population that the rows were drawn from: the first "
            f"column of figures has upper limits of what leaks there, with {sure} confidence. In "
            f"the rows themselves no more leaks than that."
        )
    return (
        f"The budget holds for the rows. The release was fitted to them, and in the population "
        f"that they are from it may leak more: the first column of figures has upper limits on "
        f"that, with {sure} confidence."
    )


def what_it_is_about(mechanism: Mechanism | SeveralSecretsMechanism) -> str:
    """Say for what the guarantee holds."""
    about = "these rows"
    if mechanism.confidence is not None:
        about = (
            f"the population that the rows were drawn from, independently of each other, with "
            f"{percent(mechanism.confidence)} confidence"
        )
    return (
        f"The guarantee is about {about}, and about one release of each row. The attacker may "
        f"know the channel, and everything about the rows as a whole."
    )


def _is_kept(mechanism: Mechanism, limit: float) -> bool:
    # As mechanisms are checked: rounding does not count.
    return limit <= mechanism.measure.budget(mechanism.epsilon)
