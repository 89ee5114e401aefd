"""What the report says where several secrets have budgets of their own."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ..describing import percent
from ..fitted import Fitted
from ..mechanism import (
    Mechanism,
    PopulationLeakage,
    SeveralSecretsMechanism,
    name_of_secret,
    population_limits,
    said_together,
)
from .populations import caveat, verdict
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
    mechanism: SeveralSecretsMechanism,
    limits: Limits,
    facts: Mapping[str, str],
    said: list[str],
    learned_from: str,
) -> Section:
    """Return the first section: each secret with its budget, and all of them together.

    facts : those that do not depend on S; said : sentences on what is kept, and beside.
    """
    paragraphs = [
        f"{name_of_secret(name)}: {verdict(secret, limits[name], learned_from)}"
        for name, secret in mechanism.secrets.items()
    ]
    paragraphs += [*said, said_together(mechanism)]
    far = [caveat(secret, limits[name]) for name, secret in mechanism.secrets.items()]
    paragraphs += next((texts for texts in far if texts), [])
    tables = [Table("The release", pd.DataFrame({"value": dict(facts)}))]
    return Section("In short", paragraphs, [*tables, _secrets(mechanism, limits)])


def _secrets(mechanism: SeveralSecretsMechanism, limits: Limits) -> Table:
    """Return the table of all secrets: budgets, and what leaks about each."""
    assert mechanism.together is not None  # fit knows all columns of S
    rows = {
        name_of_secret(name): _figures(secret, limits[name])
        for name, secret in mechanism.secrets.items()
    }
    reached = f"{mechanism.together.leakage_in(mechanism.scope):.4f}"
    rows["all together"] = {
        "groups": str(len(mechanism.together.s_labels or ())),
        "budget": "none",
        "in the rows": reached,
        "population, limit": "none",
        "confidence": "none",
    }
    cells = pd.DataFrame.from_dict(rows, orient="index").rename_axis("secret")
    return Table(f"Each secret, {mechanism.scope.replace('_', ' ')}", cells)


def _figures(secret: Mechanism, limits: PopulationLeakage) -> dict[str, str]:
    return {
        "groups": str(len(secret.s_labels or ())),
        "budget": f"{secret.epsilon:g}",
        "in the rows": f"{secret.leakage_in(secret.scope):.4f}",
        "population, limit": f"{limits.leakage_in(secret.scope):.4f}",
        "confidence": percent(limits.confidence),
    }
