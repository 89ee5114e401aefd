"""The commands that help to choose a budget: `curve` and `choose`."""

import argparse
import io
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._progress import doing, part_of, taken
from .._typing import CountArray, FloatArray
from ..describing import percent, single_group
from ..design import design_mechanism, privacy_utility_path
from ..files.counting import count_source
from ..files.locations import check_free, written
from ..fitting.encode_and_design import code_rows, design_options, distances_of
from ..fitting.fitted_estimator import settings_of
from ..fitting.inputs import FitInputs
from ..fitting.leak_warnings import warn_of_bins, warn_of_chance
from ..fitting.several_warnings import warn_of_chance_in_several
from ..inverse_design import largest_epsilon, smallest_epsilon
from ..joint import as_joint
from ..limits import limit_unchanged
from ..measures import Measure, get_measure
from ..measures.leakage import leakage_unchanged
from ..mechanism import Mechanism
from ..plotting import PrivacyUtilityDisplay
from ..secret_columns import Secrets
from ..utilities import NO_UTILITY, get_utility
from .choices import KEPT_UTILITY
from .curve_rows import CurveRows
from .explore_several import SeveralTables, chosen_line, several_figures, several_rows
from .few_rows import cost_facts, cost_lines, cost_of_rows
from .inputs import counting_options, is_same, proportions_for, source_of, transformer_for
from .people import about_attacker, exposed, group_facts
from .populations import population_facts
from .round_budgets import round_budgets
from .several import budget_fact, leakage_facts, revealed_lines
from .words import key_of, listed, say, say_now

_PICTURES = {".png", ".svg", ".pdf"}
# What is shown of the largest budget must not exceed it, by more than rounding.
_FOUR_DIGITS = Context(prec=4, rounding=ROUND_FLOOR)
_ROUNDING = 1e-12
# A limit for the population is drawn anew for every table: this much apart, one is not the other.
_SURELY = 1.05


@dataclass(frozen=True, eq=False)
class _Table:
    """What a file says: counts of S and X, and what a design is asked for.

    smoothed : the counts that it is made for; groups : the labels of S; names : of the columns
    of X; secrets : what is protected; learned_for : the budget that cells were learned for, of
    several secrets that of each, None where symbols are values.
    """

    counts: CountArray
    smoothed: CountArray
    n_rows: int
    design: dict[str, Any]
    groups: list[Any]
    names: str
    secrets: Secrets
    learned_for: float | Mapping[Any, float] | None

    @property
    def kept_by_symbols(self) -> float:
        """The share of the utility of the table that its symbols keep as they are."""
        utility = get_utility(self.design["utility"], "choose")
        p_x = as_joint(self.smoothed, "choose").p_x
        span, smallest = utility.span(p_x), utility.smallest(p_x)
        return (utility.of_identity(p_x) - smallest) / span if span > NO_UTILITY else 1.0

    def about_cells(self) -> list[str]:
        """Say what budget cells were learned for, if there are any."""
        if self.learned_for is None:
            return []
        return [
            f"The {self.counts.shape[1]} cells were learned once, for epsilon = "
            f"{_written(self.learned_for)}: learned for a smaller one they may be fewer, for a "
            f"larger one more."
        ]

    def cell_facts(self) -> dict[str, Any]:
        """Return the same for machines."""
        if self.learned_for is None:
            return {}
        return {"cells": self.counts.shape[1], "cells_learned_for": _fact(self.learned_for)}

    def of_several(self, proportions: Mapping[Any, float]) -> SeveralTables:
        """Return the same for several secrets."""
        about = self.secrets, proportions, self.design
        return SeveralTables(self.smoothed, tuple(self.groups), *about)


def _written(budget: float | Mapping[Any, float]) -> str:
    """Return a budget, or those of several secrets, as they are given to --epsilon."""
    if not isinstance(budget, Mapping):
        return f"{budget:.4g}"
    return ",".join(f"{key_of(name)}={each:.4g}" for name, each in budget.items())


def _fact(budget: float | Mapping[Any, float]) -> Any:
    if not isinstance(budget, Mapping):
        return budget
    return {key_of(name): each for name, each in budget.items()}


def curve(options: argparse.Namespace) -> None:
    """Show the utility that each budget keeps."""
    suffix = None if options.out is None else _suffix_of_out(options)
    found = _counted(options, options.epsilons or ())
    if options.out is None:
        say_now(options, found.about_cells())
    path, figures = _path(found, options)
    table = pd.DataFrame(figures)
    if suffix is not None:
        with written(options.out, options.force) as file:
            file.write(_picture(path, suffix) if suffix != ".csv" else _csv(table))
    facts = {"out": options.out, "curve": table.to_dict("records"), **found.cell_facts()}
    lines = [*found.about_cells(), f"Wrote {options.out}."] if options.out else []
    say(options, facts, lines)


def _suffix_of_out(options: argparse.Namespace) -> str:
    """Return what kind of file a curve is written to, checked before any work is done."""
    check_free(options.out, options.force)
    if is_same(options.out, options.source):
        raise ValueError(f"{options.out} is the table itself: name another file.")
    if (suffix := Path(options.out).suffix.lower()) not in _PICTURES | {".csv"}:
        raise ValueError(
            f"{options.out}: a curve is written as .csv, .png, .svg or .pdf, not {suffix!r}."
        )
    if suffix in _PICTURES and not find_spec("matplotlib"):
        raise ValueError(
            f'{options.out}: pictures need matplotlib: run pip install ".[plot]" in a clone, or '
            f"write a .csv."
        )
    return suffix


def _path(found: _Table, options: argparse.Namespace) -> tuple[list[Any], list[dict[str, Any]]]:
    """Return the mechanisms of a curve and their figures; print each unless there is a file."""
    is_printed = options.out is None
    if options.proportions is None:
        doing("looking for budgets to show")
        epsilons = options.epsilons or _budgets(found.smoothed, found.design)
        rows = _curve_rows(found, options)
        with taken(rows.print) if is_printed else nullcontext():
            path = privacy_utility_path(found.smoothed, epsilons, **found.design)
        return path, [_figures(each) for each in path]
    several = found.of_several(proportions_for(options))
    doing("looking for budgets to show")
    factors = options.epsilons or several.factors()
    rows = several_rows(options, several, found.names)
    with taken(rows.print) if is_printed else nullcontext():
        each = several.path(factors)
    return each, [several_figures(mechanism) for mechanism in each]


def _budgets(counts: CountArray, design: dict[str, Any]) -> list[float]:
    """Return budgets up to what X leaks as it is, in the population if it is about that."""
    owner, scope = "privacy_utility_path", design["scope"]
    measure, joint = get_measure(design["measure"], owner), as_joint(counts, owner)
    unchanged = leakage_unchanged(scope, measure, joint.p_sx)
    if (confidence := design["confidence"]) is not None:
        rows: FloatArray = design["n_samples"] * joint.p_sx
        unchanged = limit_unchanged(rows, measure, scope, confidence)
    top = unchanged if 0 < unchanged < np.inf else 1.0
    return round_budgets(top, _beside(design, joint.p_sx, measure))


def _beside(design: dict[str, Any], p_sx: FloatArray, measure: Measure) -> float:
    """Return what columns beside the release reveal alone: no smaller budget allows them."""
    if "groups" not in design:
        return 0.0
    codes, _ = pd.factorize(pd.Series(design["groups"]))
    alone = p_sx @ np.eye(codes.max() + 1)[codes]
    if (confidence := design["confidence"]) is None:
        return leakage_unchanged(design["scope"], measure, alone) * (1 + _ROUNDING)
    rows: FloatArray = design["n_samples"] * alone
    return _SURELY * limit_unchanged(rows, measure, design["scope"], confidence)


def _figures(mechanism: Mechanism) -> dict[str, Any]:
    return {
        "epsilon": mechanism.epsilon,
        "leakage": mechanism.leakage_in(mechanism.scope),
        **population_facts(mechanism),
        "utility": mechanism.utility,
        "utility_kept": mechanism.normalized_utility,
        "utility_bound": mechanism.normalized_upper_bound,
        "attacker": mechanism.attacker_accuracy,
        "objective": mechanism.objective.name,
        "outputs": len(mechanism.y_labels),
        "solver": mechanism.solver,
    }


def _csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False, lineterminator="\n").encode()


def _picture(path: list[Any], suffix: str) -> bytes:
    file = io.BytesIO()
    figure: Any = PrivacyUtilityDisplay.from_path(path).figure_
    figure.savefig(file, format=suffix[1:], dpi=150, bbox_inches="tight")
    return file.getvalue()


def _curve_rows(found: _Table, options: argparse.Namespace) -> CurveRows:
    """Return what prints the table of a curve."""
    is_sure = found.design["confidence"] is not None
    leaks = ("leakage", *(["population"] if is_sure else []))

    def above(mechanism: Mechanism) -> list[str]:
        return [
            f'"kept" is the share of {mechanism.objective.in_words(found.names)}.',
            _about_leakage(mechanism),
            about_attacker(listed(options.sensitive), [mechanism]),
        ]

    def row(mechanism: Mechanism) -> list[str]:
        leakages = [mechanism.leakage_in(mechanism.scope)]
        leakages += [mechanism.leakage_at_most(mechanism)] if is_sure else []
        shown = (f"{figure:.4g}" for figure in (mechanism.epsilon, *leakages))
        shares = mechanism.normalized_utility, mechanism.attacker_accuracy
        return [*shown, *(f"{x:.1%}" for x in shares), str(len(mechanism.y_labels))]

    return CurveRows(options, ("epsilon", *leaks, "kept", "attacker", "outputs"), above, row)


def _about_leakage(mechanism: Mechanism) -> str:
    if mechanism.confidence is None:
        return '"leakage" is in these rows; in the population that they are from, it may be more.'
    return (
        f'"leakage" is in these {mechanism.n_samples:,.0f} rows; "population" is the most that it '
        f"is in the population that they are from, with {percent(mechanism.confidence)} "
        f"confidence."
    )


def choose(options: argparse.Namespace) -> None:
    """Find the smallest budget that keeps enough, or the largest that moves no group too far."""
    if options.max_shift is not None and options.scope == "average":
        raise ValueError(
            "--max-shift needs --scope per_output: a budget on average bounds no single value."
        )
    if options.max_shift is not None and options.proportions is not None:
        raise ValueError(
            "--max-shift finds a budget for one secret: leave out --proportions, and run it for "
            "each column of --sensitive."
        )
    found = _counted(options)
    counts, design = found.smoothed, found.design
    if options.proportions is not None:
        _choose_of_several(found, options)
        return
    if options.max_shift is None:
        needed, asked = _needed(found, options)
        mechanism = smallest_epsilon(counts, needed, **design)
        lines = _lines_of_smallest(mechanism, found.names, asked)
    else:
        epsilon = largest_epsilon(counts.sum(axis=1), options.max_shift, options.measure)
        mechanism = design_mechanism(counts, epsilon, **design)
        lines = _lines_of_largest(mechanism, found.names, options)
    warn_of_chance(mechanism, found.counts, found.n_rows)
    say_now(options, lines)  # what few rows cost takes more designs
    with part_of("what few rows cost"):
        cost = cost_of_rows(mechanism, counts, design)
    lines = cost_lines(cost)
    ranges = mechanism.posterior_ranges()
    groups = {"groups": group_facts(ranges, found.groups, options)}
    if np.isfinite(mechanism.epsilon):
        lines.append(exposed(ranges, found.groups, options))
    facts = {**_figures(mechanism), **cost_facts(cost), **groups, **found.cell_facts()}
    say(options, facts, [*lines, *found.about_cells()])


def _choose_of_several(found: _Table, options: argparse.Namespace) -> None:
    """Find the smallest factor of given proportions that keeps enough."""
    needed, asked = _needed(found, options)
    mechanism = found.of_several(proportions_for(options)).smallest(needed)
    tables = found.secrets.tables(found.counts)
    warn_of_chance_in_several(mechanism, tables, found.n_rows)
    lines = [chosen_line(mechanism, found.names, asked)]
    lines += revealed_lines(mechanism, options)
    facts = {"epsilon": budget_fact(mechanism), **several_figures(mechanism)}
    facts |= {**leakage_facts(mechanism, options), **found.cell_facts()}
    say(options, facts, [*lines, *found.about_cells()])


def _needed(found: _Table, options: argparse.Namespace) -> tuple[float, str]:
    """Return the share of the utility to keep, and how to say that.

    Cells cannot keep all of a table: by default, it is a share of what they keep.
    """
    if (share := options.keep_utility) is not None:
        return share, f"{share:.1%}"
    most = 1.0 if found.learned_for is None else found.kept_by_symbols
    needed = KEPT_UTILITY * most
    if (said := f"{most:.1%}") == "100.0%":
        return needed, f"{needed:.1%}"
    return needed, (
        f"{needed:.1%}, which is {KEPT_UTILITY:.0%} of the {said} that cells keep (a "
        f"--keep-utility is a share of all)"
    )


def _lines_of_smallest(mechanism: Mechanism, names: str, asked: str) -> list[str]:
    lines = [
        f"epsilon = {mechanism.epsilon:.4g} keeps {mechanism.normalized_utility:.1%} of "
        f"{mechanism.objective.in_words(names)}; asked for: {asked}."
    ]
    if mechanism.confidence is not None:
        lines.append(_population_line(mechanism))
    return lines


def _population_line(mechanism: Mechanism) -> str:
    if len(mechanism.s_labels or ()) < 2:
        return single_group("S")
    return f"It holds in the population {_of_rows(mechanism)}."


def _of_rows(mechanism: Mechanism) -> str:
    """Say which population a budget with a confidence is about."""
    assert mechanism.confidence is not None
    return (
        f"that these {mechanism.n_samples:,.0f} rows are from, with "
        f"{percent(mechanism.confidence)} confidence"
    )


def _lines_of_largest(mechanism: Mechanism, names: str, options: argparse.Namespace) -> list[str]:
    group, shift = f"a group of {listed(options.sensitive)}", f"{100 * options.max_shift:.4g}"
    if not np.isfinite(mechanism.epsilon):
        return [
            f"Any epsilon will do: no released value can move the probability of {group} by more "
            f"than {shift} points."
        ]
    epsilon = _FOUR_DIGITS.create_decimal_from_float(mechanism.epsilon * (1 + _ROUNDING))
    where = ", judging by these rows"
    if mechanism.confidence is not None:
        where = f" in the population {_of_rows(mechanism)}, if its groups have the same shares"
    return [
        f"With epsilon = {float(epsilon):.4g}, no released value moves the probability of {group} "
        f"by more than {shift} points{where}.",
        f"It keeps {mechanism.normalized_utility:.1%} of {mechanism.objective.in_words(names)}.",
    ]


def _counted(options: argparse.Namespace, epsilons: Sequence[float] = ()) -> _Table:
    """Return the counts of S and X in a file, and what a design for them is asked for.

    epsilons : budgets, as far as they are known: cells are learned once, for the smallest.
    """
    budget: dict[str, Any] = {"epsilon": min(epsilons)} if epsilons else {}
    if options.proportions is not None:
        factor, proportions = min(epsilons, default=1.0), proportions_for(options)
        budget = {"epsilon": {name: factor * each for name, each in proportions.items()}}
    with source_of(options) as source:
        settings = settings_of(transformer_for(options, source.names, **budget))
        counted = count_source(settings, source, **counting_options(options))
    coded = code_rows(settings, counted.rows)
    warn_of_bins(options.sensitive, coded.sensitive, settings.n_bins)
    inputs = FitInputs(counted.roles, counted.types, counted.rows).released_as(
        coded.names, coded.alphabet.of_cells
    )
    loss = distances_of(settings, inputs, coded)
    design = design_options(settings, inputs.rows, coded, loss)
    counts, groups = coded.counts, coded.sensitive.labels
    smoothed, names = counts + options.smoothing, listed(coded.names)
    learned_for = settings.epsilon if coded.alphabet.of_cells else None
    about = design, groups, names, coded.secrets, learned_for
    return _Table(counts, smoothed, coded.n_effective, *about)
