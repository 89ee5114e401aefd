"""The commands that help to choose a budget: `curve` and `choose`."""

import argparse
import io
from decimal import ROUND_FLOOR, Context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._messages import aligned
from .._typing import CountArray, FloatArray
from ..design import design_mechanism, privacy_utility_path
from ..files.counting import count_source
from ..files.locations import check_free, written
from ..fitting.encode_and_design import code_rows, design_options, distances_of
from ..fitting.inputs import FitInputs
from ..fitting.leak_warnings import warn_of_bins
from ..inverse_design import largest_epsilon, smallest_epsilon
from ..joint import as_joint
from ..measures import get_measure
from ..measures.leakage import leakage_unchanged
from ..mechanism import Mechanism
from ..plotting import PrivacyUtilityDisplay
from ..transformer import settings_of
from .inputs import is_same, source_of, transformer_for
from .people import exposed, group_facts
from .words import listed, say

_PICTURES = {".png", ".svg", ".pdf"}
_N_BUDGETS = 20
# What is shown of the largest budget must not exceed it, by more than rounding.
_FOUR_DIGITS = Context(prec=4, rounding=ROUND_FLOOR)
_ROUNDING = 1e-12


def curve(options: argparse.Namespace) -> None:
    """Show the utility that each budget keeps."""
    if options.out is not None:
        check_free(options.out, options.force)
        if is_same(options.out, options.source):
            raise ValueError(f"{options.out} is the table itself: name another file.")
        if (suffix := Path(options.out).suffix.lower()) not in _PICTURES | {".csv"}:
            raise ValueError(
                f"{options.out}: a curve is written as .csv, .png, .svg or .pdf, not {suffix!r}."
            )
    counts, design, _ = _counts(options)
    epsilons = options.epsilons or _budgets(counts, design)
    path = privacy_utility_path(counts, epsilons, **design, verbose=options.progress)
    table = pd.DataFrame([_figures(mechanism) for mechanism in path])
    if options.out is not None:
        with written(options.out, options.force) as file:
            file.write(_picture(path, suffix) if suffix != ".csv" else _csv(table))
    facts = {"out": options.out, "curve": table.to_dict("records")}
    kept = _what_is_kept(path[0], options)
    say(options, facts, [f"Wrote {options.out}."] if options.out else _curve_lines(table, kept))


def _budgets(counts: CountArray, design: dict[str, Any]) -> FloatArray:
    """Return budgets up to what X leaks as it is."""
    owner, scope = "privacy_utility_path", design["scope"]
    measure, joint = get_measure(design["measure"], owner), as_joint(counts, owner)
    unchanged = leakage_unchanged(scope, measure, joint.p_sx)
    top = unchanged if 0 < unchanged < np.inf else 1.0
    return np.geomspace(top / 200, top, _N_BUDGETS)


def _figures(mechanism: Mechanism) -> dict[str, Any]:
    return {
        "epsilon": mechanism.epsilon,
        "leakage": mechanism.leakage_in(mechanism.scope),
        "utility": mechanism.utility,
        "utility_kept": mechanism.normalized_utility,
        "utility_bound": mechanism.normalized_upper_bound,
        "objective": mechanism.objective.name,
        "outputs": len(mechanism.y_labels),
        "solver": mechanism.solver,
    }


def _what_is_kept(mechanism: Mechanism, options: argparse.Namespace) -> str:
    return mechanism.objective.in_words(listed(options.columns))


def _csv(table: pd.DataFrame) -> bytes:
    return table.to_csv(index=False, lineterminator="\n").encode()


def _picture(path: list[Mechanism], suffix: str) -> bytes:
    file = io.BytesIO()
    figure: Any = PrivacyUtilityDisplay.from_path(path).figure_
    figure.savefig(file, format=suffix[1:], dpi=150, bbox_inches="tight")
    return file.getvalue()


def _curve_lines(table: pd.DataFrame, kept_of: str) -> list[str]:
    rows = [("epsilon", "leakage", "kept", "outputs")]
    for figures in table.itertuples():
        kept = f"{figures.utility_kept:.1%}"
        rows.append(
            (f"{figures.epsilon:.4g}", f"{figures.leakage:.4g}", kept, str(figures.outputs))
        )
    return [f'"kept" is the share of {kept_of}.', "", *aligned(rows)]


def choose(options: argparse.Namespace) -> None:
    """Find the smallest budget that keeps enough, or the largest that moves no group too far."""
    if options.max_shift is not None and options.scope == "average":
        raise ValueError(
            "--max-shift needs --scope per_output: a budget on average bounds no single value."
        )
    counts, design, groups = _counts(options)
    if options.max_shift is None:
        mechanism = smallest_epsilon(counts, options.keep_utility, **design)
        lines = _lines_of_smallest(mechanism, options)
    else:
        epsilon = largest_epsilon(counts.sum(axis=1), options.max_shift, options.measure)
        mechanism = design_mechanism(counts, epsilon, **design)
        lines = _lines_of_largest(mechanism, options)
    ranges = mechanism.posterior_ranges()
    facts = {**_figures(mechanism), "groups": group_facts(ranges, groups, options)}
    if np.isfinite(mechanism.epsilon):
        lines.append(exposed(ranges, groups, options))
    say(options, facts, lines)


def _lines_of_smallest(mechanism: Mechanism, options: argparse.Namespace) -> list[str]:
    return [
        f"epsilon = {mechanism.epsilon:.4g} keeps {mechanism.normalized_utility:.1%} of "
        f"{_what_is_kept(mechanism, options)}; asked for: {options.keep_utility:.1%}."
    ]


def _lines_of_largest(mechanism: Mechanism, options: argparse.Namespace) -> list[str]:
    group, shift = f"a group of {listed(options.sensitive)}", f"{100 * options.max_shift:.4g}"
    if not np.isfinite(mechanism.epsilon):
        return [
            f"Any epsilon will do: no released value can move the probability of {group} by more "
            f"than {shift} points."
        ]
    epsilon = _FOUR_DIGITS.create_decimal_from_float(mechanism.epsilon * (1 + _ROUNDING))
    return [
        f"With epsilon = {float(epsilon):.4g}, no released value moves the probability of {group} "
        f"by more than {shift} points, judging by these rows.",
        f"It keeps {mechanism.normalized_utility:.1%} of {_what_is_kept(mechanism, options)}.",
    ]


def _counts(options: argparse.Namespace) -> tuple[CountArray, dict[str, Any], list[Any]]:
    """Return the counts of S and X in a file, the arguments of a design, and the groups of S."""
    settings = settings_of(transformer_for(options))
    with source_of(options) as source:
        counted = count_source(settings, source, is_watched=options.progress)
    coded = code_rows(settings, counted.rows)
    warn_of_bins(options.sensitive, coded.sensitive, settings.n_bins)
    inputs = FitInputs(counted.roles, counted.types, counted.rows)
    loss = distances_of(settings, inputs, coded)
    design = design_options(settings, counted.rows, coded, loss)
    return coded.counts + options.smoothing, design, coded.sensitive.labels
