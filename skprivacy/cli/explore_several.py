"""What `curve` and `choose` do for several secrets: one factor for given proportions."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._typing import CountArray, FloatArray
from ..design import privacy_utility_path
from ..inverse_design import smallest_epsilon
from ..joint import as_joint
from ..limits import limit_unchanged
from ..measures import get_measure
from ..measures.leakage import leakage_unchanged
from ..mechanism import SeveralSecretsMechanism
from ..secret_columns import Secrets
from .curve_rows import CurveRows
from .people import about_attacker
from .round_budgets import round_budgets
from .words import key_of

_OWNER = "privacy_utility_path"


@dataclass(frozen=True, eq=False)
class SeveralTables:
    """What a file says about several secrets, whose budgets are in some proportions.

    counts : of pairs (s, x), smoothed, for all columns of S; labels : of these s; secrets : with
    the proportions as budgets, up to a factor; design : what a design is asked for.
    """

    counts: CountArray
    labels: tuple[Any, ...]
    secrets: Secrets
    proportions: Mapping[Any, float]
    design: dict[str, Any]

    @property
    def tables(self) -> dict[Any, CountArray]:
        """The table of each secret."""
        return self.secrets.tables(self.counts)

    def factors(self) -> list[float]:
        """Return factors up to that with which all budgets allow X as it is."""
        needed = [self._unchanged(t) / self.proportions[n] for n, t in self.tables.items()]
        finite = [x for x in needed if 0 < x < np.inf]
        return round_budgets(max(finite, default=1.0))

    def _unchanged(self, table: CountArray) -> float:
        scope, joint = self.design["scope"], as_joint(table, _OWNER)
        measure = get_measure(self.design["measure"], _OWNER)
        if (confidence := self.design["confidence"]) is None:
            return leakage_unchanged(scope, measure, joint.p_sx)
        of_each = 1 - (1 - confidence) / len(self.proportions)
        rows: FloatArray = self.design["n_samples"] * joint.p_sx
        return limit_unchanged(rows, measure, scope, of_each)

    def path(self, factors: Sequence[float]) -> list[SeveralSecretsMechanism]:
        """Return a mechanism for each factor."""
        budgets = [{name: f * p for name, p in self.proportions.items()} for f in factors]
        tables: Mapping[Any, Any] = self.tables
        path = privacy_utility_path(tables, budgets, **self.design)
        return [self.with_together(mechanism) for mechanism in path]

    def smallest(self, utility_at_least: float) -> SeveralSecretsMechanism:
        """Return the mechanism with the smallest budgets that keep enough."""
        asked = {"proportions": dict(self.proportions), **self.design}
        return self.with_together(smallest_epsilon(self.tables, utility_at_least, **asked))

    def with_together(self, mechanism: SeveralSecretsMechanism) -> SeveralSecretsMechanism:
        """Return a mechanism with what it reveals about all secrets jointly."""
        return mechanism.with_together(as_joint(self.counts, _OWNER).p_sx, self.labels)


def several_figures(mechanism: SeveralSecretsMechanism) -> dict[str, Any]:
    """Return for machines what the budgets of several secrets keep."""
    each = {key_of(name): secret for name, secret in mechanism.secrets.items()}
    assert mechanism.together is not None
    return {
        **{f"epsilon {key}": secret.epsilon for key, secret in each.items()},
        **{f"leakage {key}": secret.leakage_in(secret.scope) for key, secret in each.items()},
        "leakage together": mechanism.together.leakage_in(mechanism.scope),
        "confidence": mechanism.confidence,
        "n_samples": mechanism.n_samples,
        "utility": mechanism.utility,
        "utility_kept": mechanism.normalized_utility,
        "utility_bound": mechanism.normalized_upper_bound,
        **{f"attacker {key}": secret.attacker_accuracy for key, secret in each.items()},
        "objective": mechanism.objective.name,
        "outputs": len(mechanism.y_labels),
        "solver": mechanism.solver,
    }


def several_rows(options: argparse.Namespace, tables: SeveralTables, names: str) -> CurveRows:
    """Return what prints the table of a curve of several secrets; names : of X."""
    keys = list(map(key_of, tables.proportions))
    head = [*(f"{key} =" for key in keys), *(f"leaks {key}" for key in keys), "together", "kept"]
    head += [*(f"attacker {key}" for key in keys), "outputs"]

    def above(mechanism: SeveralSecretsMechanism) -> list[str]:
        is_sure = mechanism.confidence is not None
        where = "in the population, at most" if is_sure else "in these rows"
        return [
            f'"kept" is the share of {mechanism.objective.in_words(names)}; leakage is {where}, '
            f'and "together" what is known about all secrets jointly, in these rows, which no '
            f"budget bounds unless there is one for all.",
            about_attacker("a secret", list(mechanism.secrets.values())),
        ]

    def row(made: SeveralSecretsMechanism) -> list[str]:
        mechanism = tables.with_together(made)
        assert mechanism.together is not None
        secrets = [mechanism.secrets[name] for name in tables.proportions]
        budgets, leakages = zip(*((s.epsilon, s.leakage_at_most(s)) for s in secrets), strict=True)
        figures = [*budgets, *leakages, mechanism.together.leakage_in(mechanism.scope)]
        attackers = [secret.attacker_accuracy for secret in secrets]
        shares = [f"{x:.1%}" for x in (mechanism.normalized_utility, *attackers)]
        return [*(f"{x:.4g}" for x in figures), *shares, str(len(mechanism.y_labels))]

    return CurveRows(options, head, above, row)


def chosen_line(mechanism: SeveralSecretsMechanism, names: str, asked: str) -> str:
    """Say which budgets keep enough."""
    budgets = ",".join(f"{key_of(name)}={x:.4g}" for name, x in mechanism.epsilon.items())
    return (
        f"--epsilon {budgets} keeps {mechanism.normalized_utility:.1%} of "
        f"{mechanism.objective.in_words(names)}; asked for: {asked}."
    )
