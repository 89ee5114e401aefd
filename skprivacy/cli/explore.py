"""The commands that help to choose a budget: curve and choose."""

from __future__ import annotations

import argparse
import io
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import ceil, floor, inf, log10
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._messages import doing, on_each_result, part_of
from .._typing import CountArray, FloatArray, IntArray
from ..budgets import (
    epsilon_beside,
    epsilon_for_shift,
    factor_for,
    mechanism_for_utility,
    rows_needed,
)
from ..describing import ReleaseSummary
from ..describing.numbers import limit, percent, rounded_down
from ..design import design_mechanism, privacy_utility_path
from ..engines.file_tables import written
from ..engines.files import count_source
from ..fitted import Secrets
from ..fitting.fitted_estimator import settings_of
from ..fitting.inputs import FitInputs
from ..fitting.leak_warnings import warn_of_bins, warn_of_chance
from ..fitting.learn import code_rows, design_options, distances_of
from ..joint import as_joint, confidence_of_each
from ..measures import get_measure
from ..measures.measure import leakage_unchanged
from ..mechanism import Mechanism
from ..plotting import PrivacyUtilityDisplay
from ..population.limits import limit_unchanged
from ..utilities import NO_UTILITY, get_utility
from .checks import secret_keys
from .inputs import counting_options, source_of, transformer_for
from .messages import as_option, budgets_of, by_key, given, key_of, say, say_now
from .values import KEPT_UTILITY

# Maximum number of budgets on a curve: each takes a design.
_MOST = 8

# With fewer round budgets than this, use ones with two digits.
_FEW = 4


def round_budgets(top: float, least: float = 0.0) -> list[float]:
    """Return up to eight budgets, 1, 2 or 5 times a power of ten, the last at least `top`.

    least : lower bound of the budgets.
    """
    powers = range(floor(log10(top)) - _MOST, ceil(log10(top)) + 1)
    round_ones = [float(f"{digit}e{power}") for power in powers for digit in (1, 2, 5)]
    last = next(i for i, budget in enumerate(round_ones) if budget >= top)
    found = [budget for budget in round_ones[: last + 1] if budget >= least][-_MOST:]
    if len(found) >= _FEW:
        return found
    closer = np.geomspace(max(least, top / 200), max(top, least), _MOST)
    return sorted({float(limit(budget, digits=2)) for budget in closer})


# What few rows cost, and how many would be enough.


# Differences in utility below the first are ignored; aims are multiples of the second.
_HARDLY, _ROUND = 0.01, 0.05

# Aim for this share of what few rows cost: no number of rows makes up for all of it.
_MADE_UP_FOR = 0.9

# With larger tables, repeated designs would take too long.
_MOST_CELLS = 64


@dataclass(frozen=True)
class CostOfRows:
    """The share of the utility that is kept, and what more rows would keep.

    kept : by the design; alone : by a design for these rows alone; aim, enough : a share between
    the two and about how many rows it takes, None if unknown.
    """

    kept: float
    alone: float
    aim: float | None = None
    enough: int | None = None


def cost_of_rows(mechanism: Mechanism, tables: Any, design: dict[str, Any]) -> CostOfRows | None:
    """Return what a design with a confidence costs; None without a confidence or a budget.

    tables, design : what the mechanism was designed for.
    """
    secrets = mechanism.secrets.values()
    if mechanism.confidence is None or any(secret.epsilon == inf for secret in secrets):
        return None
    asked = {**design, "confidence": None, "n_samples": None}
    kept, epsilon = mechanism.normalized_utility, given(budgets_of(mechanism))
    alone = max(kept, design_mechanism(tables, epsilon, **asked).normalized_utility)
    # A round share that more rows might keep.
    aim = _ROUND * floor((kept + _MADE_UP_FOR * (alone - kept)) / _ROUND)
    n_cells = sum(secret.p_sx.size for secret in secrets if secret.p_sx is not None)
    if aim <= kept + _HARDLY or n_cells > _MOST_CELLS or mechanism.strata is not None:
        return CostOfRows(kept, alone)
    asked = {name: value for name, value in design.items() if name != "n_samples"}
    try:
        enough = rows_needed(tables, epsilon, aim, **asked)
    except ValueError:  # no number of rows is enough
        return CostOfRows(kept, alone)
    return CostOfRows(kept, alone, aim, enough)


def cost_lines(cost: CostOfRows | None) -> list[str]:
    """Return sentences on what few rows cost."""
    if cost is None:
        return []
    if cost.alone - cost.kept < _HARDLY:
        return ["More rows would hardly keep more."]
    text = f"For these rows alone (--confidence none), the same budget would keep {cost.alone:.1%}"
    if cost.enough is None:
        return [f"{text}."]
    return [f"{text}; about {cost.enough:,} rows like these would keep {cost.aim:.0%}."]


def cost_facts(cost: CostOfRows | None) -> dict[str, Any]:
    """Return the figures for machines."""
    if cost is None:
        return {"kept_for_rows_alone": None, "more_rows": None}
    more = None if cost.enough is None else {"rows": cost.enough, "kept": cost.aim}
    return {"kept_for_rows_alone": cost.alone, "more_rows": more}


# Budgets are a factor times proportions; a single secret has the key None and the proportion 1.


# The width of a column of a curve, printed before all figures are known: 1.234e-05.
_WIDTH = 9
# Separates the figures of several secrets.
_SEPARATOR = " / "


@dataclass(frozen=True, eq=False)
class _Table:
    """The counts of S and X in a file, and the options of a design.

    smoothed : the counts to design for; labels : of the groups of S; names, protected, beside :
    the columns of X, of S, and published beside X; codes : for each column of X and beside, its
    value in each symbol; proportions : of the budgets; learned_for : the budgets that cells were
    learned for, None if symbols are values.
    """

    counts: CountArray
    smoothed: CountArray
    n_rows: int
    design: dict[str, Any]
    labels: tuple[Any, ...]
    names: tuple[str, ...]
    protected: tuple[str, ...]
    beside: tuple[str, ...]
    codes: Sequence[IntArray | None]
    secrets: Secrets
    proportions: Mapping[Any, float]
    learned_for: Mapping[Any, float] | None

    @property
    def tables(self) -> dict[Any, pd.DataFrame]:
        """The counts for each secret, with the labels of its groups."""
        labels = {name: groups.labels for name, groups in self.secrets.groups.items()}
        return {
            name: pd.DataFrame(table, pd.Index(labels[name], tupleize_cols=False))
            for name, table in self.secrets.tables(self.smoothed).items()
        }

    def budgets(self, factor: float) -> dict[Any, float]:
        """Return the budget of each secret."""
        return {name: factor * each for name, each in self.proportions.items()}

    def factors(self) -> list[float]:
        """Return round factors, up to one at which all budgets allow X unchanged."""
        tables = {n: as_joint(t, "curve").p_sx for n, t in self.tables.items()}
        top = [self._unchanged(p_sx) / self.proportions[n] for n, p_sx in tables.items()]
        least = [self._beside(p_sx) / self.proportions[n] for n, p_sx in tables.items()]
        return round_budgets(max((x for x in top if 0 < x < np.inf), default=1.0), max(least))

    def _unchanged(self, p_sx: FloatArray) -> float:
        """Return the leakage of X unchanged; with a confidence, its limit for the population."""
        scope, measure = self.design["scope"], get_measure(self.design["measure"], "curve")
        if (confidence := self.design["confidence"]) is None:
            return leakage_unchanged(scope, measure, p_sx)
        of_each = confidence_of_each(confidence, len(self.proportions))
        rows: FloatArray = self.design["n_samples"] * p_sx
        return limit_unchanged(rows, measure, scope, of_each)

    def _beside(self, p_sx: FloatArray) -> float:
        """Return what the columns beside reveal alone: smaller budgets are impossible."""
        if "beside" not in self.design:
            return 0.0
        codes, _ = pd.factorize(pd.Series(self.design["beside"]))
        n_rows, confidence = self.design["n_samples"] or 1.0, self.design["confidence"]
        of_each = confidence and confidence_of_each(confidence, len(self.proportions))
        counts = n_rows * p_sx @ np.eye(codes.max() + 1)[codes]
        return epsilon_beside(counts, self.design["measure"], self.design["scope"], of_each)

    def summary(self, mechanism: Any) -> ReleaseSummary:
        """Return the summary of a mechanism, with all secrets together."""
        joint = as_joint(self.smoothed, "curve").p_sx
        return ReleaseSummary(
            mechanism.renamed(together=(joint, self.labels)),
            released=self.names,
            beside=self.beside,
            protected=self.protected,
            codes=self.codes,
            of_rows=True,
        )

    @property
    def kept_by_symbols(self) -> float:
        """The share of the utility that releasing the symbols unchanged would keep."""
        utility = get_utility(self.design["utility"], "choose")
        p_x = as_joint(self.smoothed, "choose").p_x
        span, smallest = utility.span(p_x), utility.smallest(p_x)
        return (utility.of_identity(p_x) - smallest) / span if span > NO_UTILITY else 1.0

    def about_cells(self) -> list[str]:
        """Return a sentence on the budget that cells were learned for, if there are any."""
        if self.learned_for is None:
            return []
        return [
            f"The {self.counts.shape[1]} cells were learned once, for --epsilon "
            f"{as_option(self.learned_for)}: a smaller epsilon may lead to fewer cells, a larger "
            f"one to more."
        ]

    def cell_facts(self) -> dict[str, Any]:
        """Return the figures on cells for machines."""
        if self.learned_for is None:
            return {}
        return {"cells": self.counts.shape[1], "cells_learned_for": by_key(self.learned_for)}


def curve(options: argparse.Namespace) -> None:
    """Show the utility that each budget keeps."""
    found = _counted(options, options.epsilons or ())
    if options.out is None:
        say_now(options, found.about_cells())
    doing("looking for budgets to show")
    factors = options.epsilons or found.factors()
    budgets = [given(found.budgets(factor)) for factor in factors]
    rows = _CurveRows(options, found, max(_WIDTH, *(len(as_option(each)) for each in budgets)))
    with on_each_result(rows.print) if options.out is None else nullcontext():
        path = privacy_utility_path(given(found.tables), budgets, **found.design)
    table = pd.DataFrame([_figures(found.summary(mechanism)) for mechanism in path])
    if options.out is not None:
        suffix = Path(options.out).suffix.lower()
        with written(options.out, options.force) as file:
            csv = table.to_csv(index=False, lineterminator="\n").encode()
            file.write(csv if suffix == ".csv" else _picture(path, suffix))
    facts = {"out": options.out, "curve": table.to_dict("records"), **found.cell_facts()}
    lines = [*found.about_cells(), f"Wrote {options.out}."] if options.out else []
    say(options, facts, lines)


def _figures(summary: ReleaseSummary) -> dict[str, Any]:
    """Return the figures of a mechanism for machines, flat, as a row of a table."""
    mechanism: Any = summary.mechanism
    each = {
        "" if key is None else f" {key_of(key)}": secret for key, secret in summary.secrets.items()
    }
    together = {"leakage together": summary.together} if len(each) > 1 else {}
    return {
        **{f"epsilon{of}": secret.epsilon for of, secret in each.items()},
        **{f"leakage{of}": secret.leakage for of, secret in each.items()},
        **{f"population_limit{of}": secret.limit for of, secret in each.items()},
        **together,
        "confidence": summary.confidence,
        "n_samples": summary.n_samples,
        "utility": mechanism.utility,
        "kept": summary.kept,
        "kept_at_most": summary.kept_at_most,
        **{f"attacker{of}": secret.secret.attacker_accuracy for of, secret in each.items()},
        "verdict": summary.verdict.level,
        "objective": mechanism.objective.name,
        "outputs": len(mechanism.y_labels),
        "solver": mechanism.solver,
    }


def _picture(path: list[Any], suffix: str) -> bytes:
    file = io.BytesIO()
    figure: Any = PrivacyUtilityDisplay.from_path(path).figure_
    figure.savefig(file, format=suffix[1:], dpi=150, bbox_inches="tight")
    return file.getvalue()


@dataclass(eq=False)
class _CurveRows:
    """Prints a row for each mechanism; before the first, an explanation of the columns.

    width : of the column with budgets.
    """

    options: argparse.Namespace
    table: _Table
    width: int
    has_begun: bool = field(default=False, init=False)

    def print(self, mechanism: Any) -> None:
        """Print the row of a mechanism."""
        summary = self.table.summary(mechanism)
        row = _row(summary)
        lines = [] if self.has_begun else [*_explained(summary), "", self._line(summary, row)]
        say_now(self.options, [*lines, self._line(summary, row.values())])
        self.has_begun = True

    def _line(self, summary: ReleaseSummary, texts: Iterable[str]) -> str:
        first, *others = texts
        n = len(summary.secrets)
        of_each = _WIDTH * n + len(_SEPARATOR) * (n - 1)
        widths = [of_each, *([_WIDTH] * (len(others) - 3)), of_each, _WIDTH]
        cells = (text.rjust(width) for text, width in zip(others, widths, strict=True))
        return "  ".join([first.ljust(self.width), *cells])


def _row(summary: ReleaseSummary) -> dict[str, str]:
    """Return a row of a curve: texts by column names."""
    mechanism: Any = summary.mechanism
    secrets = summary.secrets.values()
    leakages = (s.leakage if s.limit is None else s.limit for s in secrets)
    attackers = (f"{s.secret.attacker_accuracy:.1%}" for s in secrets)
    together = {} if summary.together is None else {"together": limit(summary.together)}
    return {
        "epsilon": as_option(budgets_of(mechanism)),
        "leakage": _SEPARATOR.join(map(limit, leakages)),
        **(together if len(secrets) > 1 else {}),
        "kept": f"{summary.kept:.1%}",
        "verdict": summary.verdict.level,
        "attacker": _SEPARATOR.join(attackers),
        "outputs": str(mechanism.channel.shape[1]),
    }


def _explained(summary: ReleaseSummary) -> list[str]:
    """Explain the columns of a curve."""
    where = "in these rows; in the population they were drawn from, it may be more"
    if summary.confidence is not None:
        where = (
            f"in the population the {summary.n_samples:,.0f} rows were drawn from: an upper limit "
            f"with {percent(summary.confidence)} confidence"
        )
    x_names = summary.x_name(is_one=True)
    secrets = list(summary.secrets.values())
    names = _SEPARATOR.join(secret.name for secret in secrets)
    blind = [s.secret.attacker_accuracy - s.secret.attacker_advantage for s in secrets]
    lines = [
        f'"leakage" is what a released value reveals about {names} {where}.',
        f'"kept" is the share of {summary.mechanism.objective.in_words(x_names)}.',
        f'"attacker" is how often the best possible attacker guesses {names} correctly; a blind '
        f"guess is right {_SEPARATOR.join(f'{x:.1%}' for x in blind)} of the time.",
    ]
    if len(secrets) > 1:
        lines.append('"together" is the leakage about all of them as one, in these rows only.')
    return lines


def choose(options: argparse.Namespace) -> None:
    """Find the smallest budget that keeps enough, or the largest that moves no group too far."""
    found = _counted(options)
    if options.max_shift is None:
        needed, asked = _needed(found, options)
        proportions = None if None in found.proportions else found.proportions
        asked_for = {"proportions": proportions, **found.design}
        design = mechanism_for_utility(given(found.tables), needed, **asked_for)
        summary = found.summary(design)
        kept_of = summary.mechanism.objective.in_words(summary.x_name(is_one=True))
        lines = [
            f"--epsilon {as_option(budgets_of(design))} keeps {summary.kept:.1%} of {kept_of}; "
            f"asked for: {asked}."
        ]
    else:
        prior = found.smoothed.sum(axis=1)
        epsilon = epsilon_for_shift(prior, options.max_shift, options.measure, options.max_factor)
        budgets = dict.fromkeys(found.tables, epsilon)
        summary = found.summary(design_mechanism(found.tables, budgets, **found.design))
        lines = _lines_of_largest(summary, options)
    mechanism: Any = summary.mechanism
    warn_of_chance(mechanism, found.secrets.tables(found.counts), found.n_rows)
    secrets = list(summary.secrets.values())
    if all(np.isfinite(secret.epsilon) for secret in secrets):
        exposed = [f"{s.revealed()} {s.exposure(options.show_groups)}" for s in secrets]
        lines += [summary.lead(), *exposed]
    say_now(options, lines)  # before the cost of few rows, which takes more designs
    with part_of("computing what few rows cost"):
        cost = cost_of_rows(mechanism, given(found.tables), found.design)
    facts = {"epsilon": by_key(budgets_of(mechanism)), **_figures(summary), **cost_facts(cost)}
    facts |= {"secrets": [secret.to_dict(options.show_groups) for secret in secrets]}
    say(options, facts | found.cell_facts(), [*cost_lines(cost), *found.about_cells()])


def _needed(found: _Table, options: argparse.Namespace) -> tuple[float, str]:
    """Return the share of the utility to keep, as a number and in words.

    The default is a share of what cells can keep, which is not everything.
    """
    if (share := options.keep_utility) is not None:
        return share, f"{share:.1%}"
    most = 1.0 if found.learned_for is None else found.kept_by_symbols
    needed = KEPT_UTILITY * most
    if (said := f"{most:.1%}") == "100.0%":
        return needed, f"{needed:.1%}"
    return needed, (
        f"{needed:.1%}, which is {KEPT_UTILITY:.0%} of the {said} that cells can keep "
        f"(--keep-utility would be a share of everything)"
    )


def _lines_of_largest(summary: ReleaseSummary, options: argparse.Namespace) -> list[str]:
    (secret,) = summary.secrets.values()
    group, shift = f"a group of {secret.name}", options.max_shift
    factor = factor_for(shift) if options.max_factor is None else options.max_factor
    far = f"by more than {100 * shift:.4g} points"
    if factor < inf:
        far += f", or to more than {factor:.4g} times what it was"
    if not np.isfinite(secret.epsilon):
        return [
            f"Any epsilon will do: no released value can move the probability of {group} {far}."
        ]
    shares = "" if summary.confidence is None else ", if groups have the same shares there"
    return [
        f"With --epsilon {rounded_down(secret.epsilon)}, no released value moves the probability "
        f"of {group} {far}{summary.for_whom()}{shares}.",
        summary.kept_sentence(),
    ]


def _counted(options: argparse.Namespace, factors: Sequence[float] = ()) -> _Table:
    """Return the counts of S and X in a file, and the options of designs for them.

    factors : of the budgets, if known; cells are learned once, for the smallest.
    """
    proportions: dict[Any, float] = {None: 1.0}
    if options.proportions is not None:
        proportions = secret_keys("--proportions", options.proportions, options)
    is_asked = options.proportions is not None or factors
    smallest = {name: min(factors, default=1.0) * each for name, each in proportions.items()}
    budget = {"epsilon": given(smallest)} if is_asked else {}
    with source_of(options) as source:
        settings = settings_of(transformer_for(options, source.names, **budget))
        counted = count_source(settings, source, **counting_options(options))
    coded = code_rows(settings, counted.rows)
    warn_of_bins(options.sensitive, coded.sensitive, settings.n_bins)
    inputs = FitInputs(counted.roles, counted.types, counted.rows).released_as(
        coded.names, coded.alphabet.of_cells
    )
    loss = distances_of(settings, inputs, coded)
    return _Table(
        coded.counts,
        coded.counts + options.smoothing,
        coded.n_effective,
        design_options(settings, inputs.rows, coded, loss),
        tuple(coded.sensitive.labels),
        tuple(map(str, coded.names)),
        tuple(options.sensitive),
        tuple(options.beside or ()),
        coded.alphabet.column_codes(),
        coded.secrets,
        proportions,
        coded.secrets.budgets if coded.alphabet.of_cells else None,
    )
