"""What each command does."""

import argparse
import io
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from decimal import ROUND_FLOOR, Context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .._messages import aligned, in_points
from .._typing import CountArray, FloatArray
from ..design import design_mechanism, privacy_utility_path
from ..encoding import learn_alphabet
from ..files.block_noise import id_position
from ..files.counting import count_source, fit_source, sample_source
from ..files.locations import check_free, is_pipe, kind_of, written
from ..files.opening import read_from, write_to
from ..files.releasing import release_rows
from ..files.tables import Source
from ..fitting.encode_and_design import code_rows, design_options, distances_of
from ..fitting.inputs import FitInputs
from ..fitting.leak_warnings import warn_of_bins
from ..fitting.row_sample import most_rows
from ..inverse_design import largest_epsilon, smallest_epsilon
from ..joint import as_joint
from ..measures import get_measure
from ..measures.leakage import leakage_unchanged
from ..mechanism import Mechanism
from ..metrics import audit
from ..plotting import PrivacyUtilityDisplay
from ..releasing.keyed import check_own_column
from ..report import PrivacyReport
from ..report.sections import Section
from ..transformer import PrivacyFunnelTransformer, fitted_of, set_fitted, settings_of
from .key_files import read_key
from .words import listed, say

_PICTURES = {".png", ".svg", ".pdf"}
_N_BUDGETS = 20
# What is shown of the largest budget must not exceed it, by more than rounding.
_FOUR_DIGITS = Context(prec=4, rounding=ROUND_FLOOR)
_ROUNDING = 1e-12


def sanitize(options: argparse.Namespace) -> None:
    """Fit a mechanism to a file and release the file through it."""
    outputs = [options.target, options.report, options.save_mechanism]
    _check_outputs([path for path in outputs if path], options)
    keyed = _keyed(options)
    transformer = _transformer(
        options,
        epsilon=options.epsilon,
        output=options.output,
        handle_unknown=options.handle_unknown,
    )
    with _source(options) as source, ExitStack() as files:
        if options.record_ids:  # errors come before any work is done
            id_position(source, options.record_ids)
            check_own_column(options.record_ids, [*options.columns, *options.sensitive])
        named = {*options.columns, *options.sensitive}
        copied = _copied(options, [name for name in source.names if name not in named])
        transformer.set_params(remainder=copied or "drop")
        # Written last, committed last: where OUT is, the others are.
        sink = files.enter_context(write_to(options.target, source, force=options.force))
        stamp = source.input.stamp
        settings = settings_of(transformer)
        fitted, sample = fit_source(
            settings,
            source,
            with_sample=bool(options.report),
            allow_leaking=options.allow_leaking,
            is_watched=options.progress,
        )
        set_fitted(transformer, fitted)
        if options.save_mechanism:
            file = files.enter_context(written(options.save_mechanism, options.force))
            file.write(transformer.to_json(indent=1).encode())
        if options.report:
            file = files.enter_context(written(options.report, options.force))
            file.write(_report(transformer, sample, options).to_html().encode())
        n_rows = release_rows(fitted, settings, source, sink, **keyed, is_watched=options.progress)
        if n_rows != transformer.n_samples_seen_ or source.input.stamp != stamp:
            raise RuntimeError(f"{options.source} changed while it was being read.")
    facts = _facts(transformer, n_rows, options)
    say(options, facts, _sentences(facts, _what_is_kept(transformer.mechanism_, options)))


def apply(options: argparse.Namespace) -> None:
    """Release a file through a saved mechanism."""
    _check_outputs([options.target], options)
    if _is_same(options.target, options.mechanism):
        raise ValueError(f"{options.target} is the mechanism itself: name another file.")
    keyed = _keyed(options)
    text = Path(options.mechanism).read_text(encoding="utf-8")
    transformer = PrivacyFunnelTransformer.from_json(text)
    transformer.set_params(handle_unknown=options.handle_unknown)
    copied = _copied_by(transformer, options)
    with _source(options) as source, write_to(options.target, source, force=options.force) as sink:
        n_rows = release_rows(
            fitted_of(transformer),
            settings_of(transformer),
            source,
            sink,
            copied=copied,
            allow_leaking=options.allow_leaking,
            **keyed,
            is_watched=options.progress,
        )
    facts = {
        "out": options.target,
        "rows": n_rows,
        "released": transformer.columns,
        "copied": copied,
        "epsilon": transformer.mechanism_.epsilon,
        "measure": transformer.mechanism_.measure.name,
        "record_ids": options.record_ids,
    }
    lines = [f"{options.target}: {n_rows:,} rows; {_what_became(facts)}."]
    say(options, facts, lines + _keyed_lines(options.record_ids))


def _copied(options: argparse.Namespace, others: Sequence[str]) -> list[str]:
    """Return which of the other columns are copied; ids are only if they are named."""
    if options.remainder == "drop":
        return []
    if options.remainder == "passthrough":
        return [name for name in others if name != options.record_ids]
    return options.remainder


def _copied_by(transformer: PrivacyFunnelTransformer, options: argparse.Namespace) -> list[str]:
    """Return which columns a saved mechanism copies."""
    may_leave = [] if transformer.remainder == "drop" else list(transformer.remainder)
    copied = _copied(options, may_leave)
    if unlisted := [name for name in copied if name not in may_leave]:
        raise ValueError(
            f"{options.mechanism} does not list the column {unlisted[0]!r} among those that may "
            f"be copied: pass --remainder to the `skprivacy sanitize` that writes it."
        )
    return copied


def curve(options: argparse.Namespace) -> None:
    """Show the utility that each budget keeps."""
    if options.out is not None:
        check_free(options.out, options.force)
        if _is_same(options.out, options.source):
            raise ValueError(f"{options.out} is the table itself: name another file.")
        if (suffix := Path(options.out).suffix.lower()) not in _PICTURES | {".csv"}:
            raise ValueError(
                f"{options.out}: a curve is written as .csv, .png, .svg or .pdf, not {suffix!r}."
            )
    counts, design = _counts(options)
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
    counts, design = _counts(options)
    if options.max_shift is None:
        mechanism = smallest_epsilon(counts, options.keep_utility, **design)
        lines = _lines_of_smallest(mechanism, options)
    else:
        epsilon = largest_epsilon(counts.sum(axis=1), options.max_shift, options.measure)
        mechanism = design_mechanism(counts, epsilon, **design)
        lines = _lines_of_largest(mechanism, options)
    say(options, _figures(mechanism), lines)


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


def audit_file(options: argparse.Namespace) -> None:
    """Attack released columns, of the same file or of another one."""
    with _source(options) as source:
        limit = most_rows(len(source.names))  # for both files: the same rows of each
        rows, n_rows = sample_source(source, limit, is_watched=options.progress)
    for name in options.sensitive:
        if name not in rows:
            raise ValueError(f"{options.source} has no column {name!r}: it has {list(rows)}.")
    columns = options.released.split(",")
    if set(columns) <= set(rows):
        if shared := [name for name in columns if name in options.sensitive]:
            raise ValueError(f"--released names the sensitive column {shared[0]!r} itself.")
        views: dict[str, Any] = {"released": rows[columns]}
    elif Path(options.released).exists():
        views = _views(_released_rows(options, n_rows, limit), rows)
    else:
        raise ValueError(
            f"--released {options.released} is neither a file nor columns of {options.source}, "
            f"which has {list(rows)}."
        )
    s_columns = [rows[name] for name in options.sensitive]
    kept = dict.fromkeys(options.categorical)  # n_bins: None
    bins = [{"n_bins": None} if name in kept else {} for name in options.sensitive]
    alphabet, groups = learn_alphabet(s_columns, options.sensitive, None, bins)
    warn_of_bins(options.sensitive, alphabet, kept)
    table = audit(sensitive=groups, **views).drop(columns=["bayes_accuracy", "advantage_bound"])
    facts = {"rows": n_rows, "rows_attacked": len(rows), "attacks": table.to_dict("records")}
    say(options, facts, _audit_lines(table, options, len(rows)))


def _released_rows(options: argparse.Namespace, n_rows: int, limit: int) -> pd.DataFrame:
    """Return rows of the released file: the same ones as from the other file."""
    kinds = [kind_of(path, options.format)[0] for path in (options.released, options.source)]
    delimiter = options.delimiter if kinds[0] == kinds[1] else None
    # A release always has a header. If its first line were a row, there would be one too few.
    is_said = options.header is not None or options.names is not None
    with read_from(
        options.released,
        kind=options.format,
        delimiter=delimiter,
        encoding=options.encoding,
        header=True if is_said else None,
    ) as source:
        released, n_released = sample_source(source, limit, is_watched=options.progress)
    if n_released != n_rows:
        raise ValueError(
            f"{options.released} has {n_released:,} rows and {options.source} has {n_rows:,}: a "
            f"release can only be attacked with the rows that it was made from, in the same order."
        )
    there = [name for name in options.sensitive if name in released]
    if there:
        raise ValueError(f"{options.released} holds the sensitive column {there[0]!r} itself.")
    return released


def _views(released: pd.DataFrame, rows: pd.DataFrame) -> dict[str, Any]:
    """Tell the columns that were replaced from those that were copied."""
    copied = [name for name in released if name in rows and released[name].equals(rows[name])]
    new = [name for name in released if name not in copied]
    if not new:
        return {"released": released}
    before = [name for name in new if name in rows]
    return {
        "released": released[new],
        "raw": rows[before] if before else None,
        "remainder": released[copied] if copied else None,
    }


def _audit_lines(table: pd.DataFrame, options: argparse.Namespace, n_rows: int) -> list[str]:
    rows: list[tuple[Any, ...]] = [
        ("columns seen", "attacker", "right", "advantage", "95% interval")
    ]
    for row in table.to_dict("records"):
        right, advantage = f"{row['accuracy']:.1%}", in_points(row["advantage"])
        interval = f"{100 * row['low']:+z.1f} to {in_points(row['high'])}"
        rows.append((row["attacked"], row["attacker"], right, advantage, interval))
    return [
        f"{n_rows:,} rows, guessing {listed(options.sensitive)}; a blind guess is right "
        f"{table['blind'][0]:.1%} of the time.",
        "",
        *aligned(rows),
    ]


def _check_outputs(paths: Sequence[str], options: argparse.Namespace) -> None:
    """Check before any work is done that files may be written, and that no two are the same."""
    for path in paths:
        check_free(path, options.force)
    if not is_pipe(options.target):
        kind_of(options.target)
    elif options.json:
        raise ValueError("--json prints to the standard output: OUT must be a file, not a pipe.")
    beside = [path for path in paths if path is not options.target]
    if any(is_pipe(path) or _is_same(path, options.source) for path in beside):
        raise ValueError(
            f"{', '.join(beside)}: each of these must be a file of its own, neither a pipe nor IN."
        )
    if len({str(Path(path).resolve()) for path in paths}) < len(paths):
        raise ValueError(f"Two of the outputs {', '.join(paths)} are the same file.")


def _keyed(options: argparse.Namespace) -> dict[str, Any]:
    """Return the ids and the key of a keyed release, nothing for any other."""
    if options.record_ids is None and options.key_file is None:
        return {}
    if not options.record_ids or not options.key_file:
        raise ValueError("--record-ids and --key-file go together: give both, or neither.")
    outputs = [getattr(options, name, None) for name in ("target", "report", "save_mechanism")]
    if any(_is_same(path, options.key_file) for path in outputs if path):
        raise ValueError(f"{options.key_file} is the key itself: name another file.")
    return {"record_ids": options.record_ids, "secret_key": read_key(options.key_file)}


def _keyed_lines(record_ids: str | None) -> list[str]:
    if not record_ids:
        return []
    return [
        f"The noise comes from {record_ids} and a secret key: released again with the same "
        f"mechanism and key, an unchanged row gets the same values."
    ]


def _report(
    transformer: PrivacyFunnelTransformer, sample: pd.DataFrame, options: argparse.Namespace
) -> PrivacyReport:
    report = PrivacyReport.from_estimator(transformer, sample)
    if lines := _keyed_lines(options.record_ids):
        report.sections.insert(-2, Section("Several releases", lines))  # before the limits
    return report


def _is_same(path: str, other: str) -> bool:
    return Path(path).resolve() == Path(other).resolve()


def _source(options: argparse.Namespace) -> AbstractContextManager[Source]:
    return read_from(
        options.source,
        kind=options.format,
        delimiter=options.delimiter,
        encoding=options.encoding,
        header=options.header,
        names=options.names,
    )


def _transformer(options: argparse.Namespace, **more: Any) -> PrivacyFunnelTransformer:
    """Return a transformer with the parameters that the options name."""
    edges = dict(options.edges)
    named = [*options.columns, *options.sensitive]
    for option, given in {"--edges": edges, "--categorical": options.categorical}.items():
        if unknown := [name for name in given if name not in named]:
            raise ValueError(
                f"{option} names {unknown[0]!r}, which is neither released nor sensitive."
            )
    bins = dict.fromkeys(options.columns, options.bins) | dict.fromkeys(options.categorical)
    return PrivacyFunnelTransformer(
        sensitive=options.sensitive,
        columns=options.columns,
        measure=options.measure,
        scope=options.scope,
        utility=options.utility,
        solver=options.solver,
        n_bins=bins | edges,
        min_frequency=options.min_frequency,
        max_categories=options.max_categories,
        smoothing=options.smoothing,
        **more,
    )


def _counts(options: argparse.Namespace) -> tuple[CountArray, dict[str, Any]]:
    """Return the counts of S and X in a file, and the arguments of a design for them."""
    settings = settings_of(_transformer(options))
    with _source(options) as source:
        counted = count_source(settings, source, is_watched=options.progress)
    coded = code_rows(settings, counted.rows)
    warn_of_bins(options.sensitive, coded.sensitive, settings.n_bins)
    inputs = FitInputs(counted.roles, counted.types, counted.rows)
    loss = distances_of(settings, inputs, coded)
    design = design_options(settings, counted.rows, coded, loss)
    return coded.counts + options.smoothing, design


def _facts(
    transformer: PrivacyFunnelTransformer, n_rows: int, options: argparse.Namespace
) -> dict[str, Any]:
    """Return the outcome of a release, for machines."""
    mechanism = transformer.mechanism_
    files = {"out": options.target, "report": options.report, "mechanism": options.save_mechanism}
    return {
        **files,
        "rows": n_rows,
        "released": options.columns,
        "copied": [] if transformer.remainder == "drop" else transformer.remainder,
        "protected": options.sensitive,
        "epsilon": mechanism.epsilon,
        "measure": mechanism.measure.name,
        "scope": mechanism.scope,
        "max_leakage": mechanism.max_leakage,
        "average_leakage": mechanism.average_leakage,
        "utility_kept": mechanism.normalized_utility,
        "utility_bound": mechanism.normalized_upper_bound,
        "objective": mechanism.objective.name,
        "symbols": len(mechanism.x_labels),
        "outputs": len(mechanism.y_labels),
        "solver": mechanism.solver,
        "record_ids": options.record_ids,
    }


def _what_became(facts: dict[str, Any]) -> str:
    names = facts["copied"]
    as_they_are = "as it is" if len(names) == 1 else "as they are"
    copied = f", {listed(names)} copied {as_they_are}" if names else ""
    return f"{listed(facts['released'])} replaced{copied}, all other columns left out"


def _sentences(facts: dict[str, Any], kept_of: str) -> list[str]:
    protected, is_worst = listed(facts["protected"]), facts["scope"] == "per_output"
    where = "every released value reveals" if is_worst else "released values on average reveal"
    reached = facts["max_leakage" if is_worst else "average_leakage"]
    lines = [
        f"{facts['out']}: {facts['rows']:,} rows; {_what_became(facts)}.",
        f"Judging by these rows, {where} at most epsilon = {facts['epsilon']:g} about {protected} "
        f"({facts['measure']}; reached: {reached:.4g}).",
        f"The release keeps {facts['utility_kept']:.1%} of {kept_of}; no mechanism for these "
        f"{facts['symbols']:,} symbols (values, bins and pools) keeps more than "
        f"{min(1.0, facts['utility_bound']):.1%}.",
    ]
    lines += _keyed_lines(facts["record_ids"])
    return lines + [f"Wrote {facts[key]}." for key in ("report", "mechanism") if facts[key]]
