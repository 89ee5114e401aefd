"""What the report says where several secrets have budgets of their own."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ..describing import DOES_NOT_APPLY, percent
from ..fitted import Fitted
from ..mechanism import (
    Mechanism,
    PopulationLeakage,
    SeveralSecretsMechanism,
    name_of_secret,
    population_limits,
    said_together,
)
from .populations import FAIL, Verdict, caveat, promise, verdict, worst
from .sections import Section, Table

Limits = Mapping[Any, PopulationLeakage]

# How many joints are drawn for limits, as `population_leakage` does.
_DRAWS = 999


def limits_of_each(fitted: Fitted, confidence: float) -> Limits:
    """Return what may leak in the population about each secret: all limits hold at once."""
    mechanism, training = fitted.mechanism, fitted.training
    assert isinstance(mechanism, SeveralSecretsMechanism)
    assert training is not None  # or there would be no report
    of_each = 1 - (1 - confidence) / len(mechanism.secrets)
    share = training.effective_rows / training.counts.sum()
    tables = training.secrets.tables(training.counts)
    return {
        name: secret.population_limit
        or population_limits(secret, tables[name] * share, of_each, n_draws=_DRAWS)
        for name, secret in mechanism.secrets.items()
    }


def several_in_short(
    mechanism: SeveralSecretsMechanism, limits: Limits, said: list[str], learned_from: str
) -> tuple[Section, str]:
    """Return the first section, on each secret and on all together, and the worst outcome.

    said : sentences on what is kept, and beside.
    """
    verdicts = {
        name_of_secret(name): verdict(secret, limits[name], name_of_secret(name))
        for name, secret in mechanism.secrets.items()
    }
    outcome = worst([each.population for each in verdicts.values()])
    far = [caveat(secret, limits[name]) for name, secret in mechanism.secrets.items()]
    paragraphs = [
        *promise(mechanism, outcome, learned_from),
        *said,
        said_together(mechanism),
        *next((texts for texts in far if texts), []),
    ]
    table = _secrets(mechanism, limits, verdicts)
    return Section("In short", paragraphs, [table], lead=_lead(limits, verdicts)), outcome


def _lead(limits: Limits, verdicts: Mapping[str, Verdict]) -> str:
    """Return one line for all secrets: the worst outcome, and for which of them."""
    sample = worst([each.sample for each in verdicts.values()])
    population = worst([each.population for each in verdicts.values()])
    of_all = [name for name, each in verdicts.items() if each.population == population]
    which = "" if len(of_all) == len(verdicts) else f" about {', '.join(of_all)}"
    sure = percent(1 - sum(1 - each.confidence for each in limits.values()))
    secrets = f"{len(verdicts)} secrets, each against a budget of its own."
    if population == FAIL:
        return (
            f"{sample} in the sample. {FAIL} in the population{which}: the true figures may be as "
            f"high as in the table ({sure} sure), above the budgets there. {secrets}"
        )
    return (
        f"{sample} in the sample, {population} in the population{which} (with {sure} confidence): "
        f"{secrets}"
    )


def _secrets(
    mechanism: SeveralSecretsMechanism, limits: Limits, verdicts: Mapping[str, Verdict]
) -> Table:
    """Return the table of all secrets: budgets, and what leaks about each."""
    assert mechanism.together is not None  # fit knows all columns of S
    rows = {
        name_of_secret(name): _figures(secret, limits[name], verdicts[name_of_secret(name)])
        for name, secret in mechanism.secrets.items()
    }
    reached = f"{mechanism.together.leakage_in(mechanism.scope):.4f}"
    rows["all together"] = {
        "population, limit": DOES_NOT_APPLY,
        "budget": DOES_NOT_APPLY,
        "in the rows": reached,
        "confidence": DOES_NOT_APPLY,
        "groups": str(len(mechanism.together.s_labels or ())),
    }
    cells = pd.DataFrame.from_dict(rows, orient="index").rename_axis("secret")
    return Table(f"Each secret, {mechanism.scope.replace('_', ' ')}", cells)


def _figures(secret: Mechanism, limits: PopulationLeakage, found: Verdict) -> dict[str, str]:
    reached, limit = (figures.leakage_in(secret.scope) for figures in (secret, limits))
    return {
        "population, limit": f"{found.population} {limit:.4f}",
        "budget": f"{secret.epsilon:g}",
        "in the rows": f"{found.sample} {reached:.4f}",
        "confidence": percent(limits.confidence),
        "groups": str(len(secret.s_labels or ())),
    }
