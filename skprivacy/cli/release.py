"""The commands that release: sanitize and apply."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from .._messages import doing, listed, part_of
from ..describing import ReleaseSummary
from ..describing.face_value import face_value_lines
from ..describing.verdict import DEFAULT_SCALE, Scale
from ..encoding.values import scale_of
from ..engines.file_tables import PIPE, Source, sha256_of, written
from ..engines.files import fit_source, id_position, release_rows, sink_to, write_to
from ..fitting.fitted_estimator import fitted_of, set_fitted, settings_of
from ..recipes import DEFAULT_BINS, scale_text
from ..releasing.keyed import check_own_column
from ..transformer import PrivacyFunnelTransformer
from .checks import check_needed, released_columns, secret_keys
from .inputs import counting_options, source_of, transformer_for
from .messages import by_key, one_line, say, say_now, while_somebody_reads
from .values import USUAL_CONFIDENCE


@dataclass(frozen=True, eq=False)
class _Released:
    """A release, for its report; sample : rows of IN; records : names and hashes of IN and OUT."""

    transformer: PrivacyFunnelTransformer
    sample: pd.DataFrame | None
    n_rows: int
    records: list[tuple[str, str | None]]


def sanitize(options: argparse.Namespace) -> None:
    """Fit a mechanism to a file, release the file through it, and report on it."""
    scale = Scale.from_file(options.scale) if options.scale else DEFAULT_SCALE
    with ExitStack() as files:
        page = None
        if options.report:
            # Opened before any work is done, to see that it can be; written at the end.
            page = files.enter_context(written(options.report, options.force))
        released = _release(options)
        facts, lines = _outcome(released, options, scale)
        with while_somebody_reads():  # write the report even if nobody reads this
            say_now(options, lines)
        if page is not None:
            _report_on(released, page, files, options, scale)
    say(options, facts, [f"Wrote {options.report}."] if options.report else [])


def _release(options: argparse.Namespace) -> _Released:
    """Fit and release; when this returns, OUT and the mechanism are complete."""
    with source_of(options) as source, ExitStack() as files:
        transformer = _transformer(options, source)
        # They appear in reverse order: if OUT exists, so does its mechanism.
        out = files.enter_context(written(options.target, options.force))
        saved = None
        if options.save_mechanism:
            saved = files.enter_context(written(options.save_mechanism, options.force))
        stamp = source.input.stamp
        settings = settings_of(transformer)
        fitted, sample = fit_source(
            settings,
            source,
            with_sample=bool(options.report) and options.attack,
            allow_leaking=options.allow_leaking,
            **counting_options(options),
        )
        set_fitted(transformer, fitted)
        if saved is not None:
            saved.write(transformer.to_json(indent=1).encode())
        with sink_to(out, options.target, source) as sink:
            n_rows = release_rows(fitted, settings, source, sink, **options.keyed)
        records: list[tuple[str, str | None]] = []
        if options.report:
            hashed = sha256_of(source.input.raw) if options.input_hash else None
            records = [
                (_file_name(options.source, "input"), hashed),
                (_file_name(options.target, "output"), sha256_of(out)),
            ]
        if n_rows != transformer.n_samples_seen_ or source.input.stamp != stamp:
            raise RuntimeError(f"{options.source} changed while it was being read.")
        if options.report and options.force:  # an old report must not seem to be about this one
            Path(options.report).resolve().unlink(missing_ok=True)
        with while_somebody_reads():  # OUT, if it is a pipe
            files.close()
    return _Released(transformer, sample, n_rows, records)


def _transformer(options: argparse.Namespace, source: Source) -> PrivacyFunnelTransformer:
    """Return a transformer, after checking that IN has a column of ids."""
    epsilon = options.epsilon
    if isinstance(epsilon, dict):  # by secrets: a column, or several joined by a plus
        epsilon = secret_keys("--epsilon", epsilon, options)
    transformer = transformer_for(
        options,
        source.names,
        epsilon=epsilon,
        output=options.output,
        made_up=options.made_up,
        release_target=options.release_target,
        handle_unknown=options.handle_unknown,
    )
    named = {*released_columns(options, source.names), *options.sensitive}
    named |= {*(options.beside or ())}
    if options.record_ids:
        id_position(source, options.record_ids)
        check_own_column(options.record_ids, list(named))
    named.add(options.person)
    copied = _copied(options, [name for name in source.names if name not in named])
    return transformer.set_params(remainder=copied or "drop")


def _report_on(
    released: _Released,
    page: BinaryIO,
    files: ExitStack,
    options: argparse.Namespace,
    scale: Scale,
) -> None:
    """Write the report into its file, and close it."""
    from ..report import PrivacyReport  # with all that only reports need
    from ..report.appendix import FileRecord

    try:
        with part_of("making the report"):
            report = PrivacyReport.from_estimator(
                released.transformer,
                released.sample if options.attack else None,
                purpose=options.purpose,
                recipient=options.recipient,
                input_file=FileRecord(*released.records[0]),
                output_file=FileRecord(*released.records[1]),
                n_rows_out=released.n_rows,
                notes=_keyed_lines(options.record_ids),
                with_curve=options.curve,
                scale=scale,
            )
        doing("drawing the report")
        page.write(report.to_html().encode())
        files.close()
    except Exception as error:
        raise RuntimeError(
            f"The release is complete, but the report {options.report} could not be written: "
            f"{one_line(error)}"
        ) from error


def apply(options: argparse.Namespace) -> None:
    """Release a file through a saved mechanism."""
    text = Path(options.mechanism).read_text(encoding="utf-8")
    transformer = PrivacyFunnelTransformer.from_json(text)
    transformer.set_params(handle_unknown=options.handle_unknown)
    copied, fitted = _copied_by(transformer, options), fitted_of(transformer)
    with ExitStack() as files:
        source = files.enter_context(source_of(options))
        check_needed(options, fitted.roles.keeping(copied), source.names)
        sink = files.enter_context(write_to(options.target, source, force=options.force))
        n_rows = release_rows(
            fitted,
            settings_of(transformer),
            source,
            sink,
            copied=copied,
            allow_leaking=options.allow_leaking,
            **options.keyed,
        )
    summary = transformer.summary_
    facts = {
        "out": options.target,
        "rows": n_rows,
        "released": list(summary.released),
        "beside": list(summary.beside),
        "copied": copied,
        "epsilon": by_key(transformer.epsilon),
        "measure": summary.measure.name,
        "confidence": summary.confidence,
        "n_samples": summary.n_samples,
        "record_ids": options.record_ids,
    }
    lines = [f"{options.target}: {n_rows:,} rows; {_treatments(summary, copied)}."]
    if summary.confidence is not None:
        lines += [secret.revealed() for secret in summary.secrets.values()]
    say(options, facts, lines + _keyed_lines(options.record_ids))


def _copied(options: argparse.Namespace, others: Sequence[str]) -> list[str]:
    """Return the other columns to copy; ids only if they are named."""
    if options.remainder == "drop":
        return []
    if options.remainder == "passthrough":
        return [name for name in others if name != options.record_ids]
    return options.remainder


def _copied_by(transformer: PrivacyFunnelTransformer, options: argparse.Namespace) -> list[str]:
    """Return the columns that a saved mechanism copies."""
    may_leave = [] if transformer.remainder == "drop" else list(transformer.remainder)
    copied = _copied(options, may_leave)
    if unlisted := [name for name in copied if name not in may_leave]:
        raise ValueError(
            f"{options.mechanism} does not list the column {unlisted[0]!r} among those that may "
            f"be copied: name it in --remainder of the `skprivacy sanitize` that writes this file."
        )
    return copied


def _keyed_lines(record_ids: str | None) -> list[str]:
    if not record_ids:
        return []
    return [
        f"The noise comes from {record_ids} and a secret key: an unchanged row that is released "
        f"again with the same mechanism and key gets the same values."
    ]


def _file_name(path: str, direction: str) -> str:
    return f"the standard {direction}" if path == PIPE else Path(path).name


def _outcome(
    released: _Released, options: argparse.Namespace, scale: Scale
) -> tuple[dict[str, Any], list[str]]:
    """Return the result of a release: facts with --json, else lines."""
    transformer = released.transformer
    summary = fitted_of(transformer).summary_with_limits(USUAL_CONFIDENCE).on_scale(scale)
    copied = [] if transformer.remainder == "drop" else list(transformer.remainder)
    if options.json:
        facts = {
            "out": options.target,
            "report": options.report,
            "mechanism": options.save_mechanism,
            "rows": released.n_rows,
            **summary.to_dict(options.show_groups),
            "epsilon": by_key(transformer.epsilon),
            "copied": copied,
            "leaking": dict(summary.leaking),
            "record_ids": options.record_ids,
            "ordered": [*_suggested(transformer).values()],
        }
        return facts if options.output == "label" else {**facts, "fidelity": None}, []
    lead, sure = summary.lead(), transformer.confidence or "none"
    lines = [
        f"{options.target}: {released.n_rows:,} rows; {_treatments(summary, copied)} "
        f"(--utility {summary.mechanism.objective.name}, --confidence {sure}).",
        lead,
        *(
            text.replace(summary.target_sentence(), summary.target_sentence("--release-target"))
            for text in summary.sentences(options.show_groups)[1:-1]
            if text not in lead
        ),
        *_keyed_lines(options.record_ids),
        *(face_value_lines(summary.fidelity) if options.output == "label" else []),
        *_scale_lines(transformer),
        *_bins_lines(transformer, options),
    ]
    if options.save_mechanism:
        lines.append(f"Wrote {options.save_mechanism}.")
    return {}, lines


def _suggested(transformer: PrivacyFunnelTransformer) -> dict[Any, str]:
    """Return suggestions of an order for columns whose texts look like a scale."""
    fitted = fitted_of(transformer)
    found = {}
    for name, column, type_ in zip(
        fitted.x_names, fitted.alphabet.columns, fitted.types, strict=False
    ):
        order = scale_of([value for value in column.values if value is not None])
        if order is not None and not type_.is_ordered:
            found[name] = scale_text(name, order)
    return found


def _scale_lines(transformer: PrivacyFunnelTransformer) -> list[str]:
    if transformer.utility != "distortion":  # nothing else depends on an order
        return []
    return [
        f"The values of {name} look like a scale. If they are, release values "
        f"closer to the true ones with --ordered {shlex.quote(text)}."
        for name, text in _suggested(transformer).items()
    ]


def _bins_lines(transformer: PrivacyFunnelTransformer, options: argparse.Namespace) -> list[str]:
    """Return a line for columns that have fewer bins than were asked for."""
    fitted, at_edges = fitted_of(transformer), [name for name, _ in options.edges]
    if options.bins == DEFAULT_BINS or fitted.training is None:
        return []
    s_columns = getattr(fitted.training.alphabet, "columns", ())
    named = [
        *zip(fitted.x_names, fitted.alphabet.columns, strict=True),
        *zip(options.sensitive, s_columns, strict=False),
    ]
    few = [
        f"{name} {n}"
        for name, column in named
        if column.edges is not None
        and name not in at_edges
        and (n := len(column.edges) + 1) < options.bins
    ]
    if not few:
        return []
    return [
        f"Fewer bins than --bins {options.bins}: {listed(few)}. Too many rows have the same "
        f"number; --edges NAME=A,B,... cuts where you say."
    ]


def _treatments(summary: ReleaseSummary, copied: Sequence[str]) -> str:
    """Return the treatment of all columns in words."""
    text = f"{listed(summary.released)} replaced"
    if summary.beside:
        text += f", {listed(summary.beside)} published unchanged under the same budget"
    if copied:
        text += f", {listed(copied)} copied unchanged"
    return f"{text}, all other columns left out"
