"""The commands that release: sanitize, apply and key."""

from __future__ import annotations

import argparse
import os
import re
import secrets
import stat
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any, BinaryIO

import pandas as pd

from .._messages import UNSAVED, doing, listed, part_of, warn
from ..describing import ReleaseSummary
from ..engines.file_tables import (
    PIPE,
    Source,
    check_free,
    has_modes,
    is_pipe,
    kind_of,
    sha256_of,
    written,
)
from ..engines.files import fit_source, id_position, release_rows, sink_to, write_to
from ..exceptions import PrivacyLeakWarning
from ..fitting.fitted_estimator import fitted_of, set_fitted, settings_of
from ..releasing.keyed import check_own_column
from ..transformer import PrivacyFunnelTransformer
from .inputs import (
    check_needed,
    counting_options,
    is_same,
    released_columns,
    secret_keys,
    source_of,
    transformer_for,
)
from .messages import by_key, face_value_lines, one_line, say, say_now, while_somebody_reads
from .values import USUAL_CONFIDENCE

_N_BYTES = 32
_MOST_FILE_BYTES = 1 << 10
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_KEY = re.compile(rb"\s*((?:[0-9a-fA-F]{2}){16,})\s*")


def key(options: argparse.Namespace) -> None:
    """Write a new key to a file that, on systems with file modes, only this user can read."""
    path = options.file
    if path == PIPE:
        raise ValueError("A key is never printed: name a file.")
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise FileExistsError(
            f"{path!r} already exists, and a key is never replaced: name another file."
        ) from None
    try:
        with os.fdopen(handle, "w", encoding="ascii", newline="\n") as file:
            file.write(secrets.token_hex(_N_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        Path(path).unlink()
        raise
    readers = "only you" if has_modes() else "everybody who can read files in its folder"
    lines = [
        f"{path}: a new key, which {readers} can read.",
        "Keep it: without it, rows that are released again get new values. Keep it secret: with "
        "it and the ids, the noise can be undone.",
    ]
    say(options, {"key_file": path}, lines)


def read_key(path: str) -> bytes:
    """Return the key in a file, which has at least 32 hexadecimal digits."""
    with open(path, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        text = file.read(_MOST_FILE_BYTES + 1)
    found = _KEY.fullmatch(text)
    if found is None or len(text) > _MOST_FILE_BYTES:
        raise ValueError(
            f"{path} does not hold a key: an even number of at least 32 hexadecimal digits on one "
            f"line, and nothing else. `skprivacy key FILE` makes one."
        )
    if has_modes() and stat.S_ISREG(mode) and mode & _OTHERS:
        warn(
            f"{path} can be read by other users, who could undo the noise with it: run chmod 600 "
            f"{path}",
            PrivacyLeakWarning,
        )
    return bytes.fromhex(found[1].decode())


@dataclass(frozen=True, eq=False)
class _Released:
    """A release, for its report; sample : rows of IN; records : names and hashes of IN and OUT."""

    transformer: PrivacyFunnelTransformer
    sample: pd.DataFrame | None
    n_rows: int
    records: list[tuple[str, str | None]]


def sanitize(options: argparse.Namespace) -> None:
    """Fit a mechanism to a file, release the file through it, and report on it."""
    outputs = [options.target, options.report, options.save_mechanism]
    _check_outputs([path for path in outputs if path], options)
    _check_report_options(options)
    keyed = _keyed(options)
    is_cells = options.alphabet != "values"
    if options.save_mechanism and options.target_column and is_cells and not find_spec("skops"):
        raise ValueError(
            "--save-mechanism needs skops to write cells for a --target, which hold models: run "
            'pip install ".[models]" in a clone, or use --alphabet values, or leave out '
            "--save-mechanism."
        )
    with ExitStack() as files:
        page = None
        if options.report:
            # Opened before any work is done, to see that it can be; written at the end.
            page = files.enter_context(written(options.report, options.force))
        released = _release(options, keyed)
        facts, lines = _outcome(released, options)
        with while_somebody_reads():  # write the report even if nobody reads this
            say_now(options, lines)
        if page is not None:
            _report_on(released, page, files, options)
    say(options, facts, [f"Wrote {options.report}."] if options.report else [])


def _release(options: argparse.Namespace, keyed: dict[str, Any]) -> _Released:
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
            n_rows = release_rows(fitted, settings, source, sink, **keyed)
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
    released: _Released, page: BinaryIO, files: ExitStack, options: argparse.Namespace
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
    _check_outputs([options.target], options)
    if is_same(options.target, options.mechanism):
        raise ValueError(f"{options.target} is the mechanism itself: name another file.")
    keyed = _keyed(options)
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
            **keyed,
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


def _check_outputs(paths: Sequence[str], options: argparse.Namespace) -> None:
    """Check, before any work is done, that outputs can be written and are different files."""
    if not is_pipe(options.target) and is_same(options.target, options.source):
        raise ValueError(f"OUT is IN ({options.source}): name another file, or the table is lost.")
    for path in paths:
        check_free(path, options.force)
    if is_pipe(options.target):
        if options.json:
            raise ValueError("--json prints to standard output: OUT must be a file, not a pipe.")
    elif kind_of(options.target)[0] == "parquet" and not find_spec("pyarrow"):
        raise ValueError(
            f"{options.target}: Parquet files need pyarrow: run pip install "
            '".[files]" in a clone, or write a .csv.'
        )
    others = [path for path in paths if path is not options.target]
    if any(is_pipe(path) or is_same(path, options.source) for path in others):
        raise ValueError(
            f"{', '.join(others)}: each of these must be a separate file, neither a pipe nor IN."
        )
    if any(is_same(*pair) for pair in combinations(paths, 2)):
        raise ValueError(f"Two of the outputs {', '.join(paths)} are the same file.")


def _keyed(options: argparse.Namespace) -> dict[str, Any]:
    """Return the ids and the key of a keyed release; empty for other releases."""
    if options.record_ids is None and options.key_file is None:
        return {}
    if not options.record_ids or not options.key_file:
        raise ValueError("--record-ids and --key-file go together: use both, or neither.")
    outputs = [getattr(options, name, None) for name in ("target", "report", "save_mechanism")]
    if any(is_same(path, options.key_file) for path in outputs if path):
        raise ValueError(f"{options.key_file} is the key itself: name another file.")
    if not getattr(options, "save_mechanism", True):
        advice = " Use --save-mechanism, and release other rows with `skprivacy apply`."
        warn(UNSAVED + advice, PrivacyLeakWarning)
    return {"record_ids": options.record_ids, "secret_key": read_key(options.key_file)}


def _keyed_lines(record_ids: str | None) -> list[str]:
    if not record_ids:
        return []
    return [
        f"The noise comes from {record_ids} and a secret key: an unchanged row that is released "
        f"again with the same mechanism and key gets the same values."
    ]


def _check_report_options(options: argparse.Namespace) -> None:
    """Check, before any work is done, that options fit a report, and that it can be made."""
    if options.report and not find_spec("matplotlib"):
        raise ValueError(
            '--report needs matplotlib for its pictures: run pip install ".[plot]" in a clone, or '
            "leave out --report."
        )
    for option in ("--purpose", "--recipient"):
        if getattr(options, option.strip("-")) is not None and not options.report:
            raise ValueError(f"{option} is a part of the report: name its file with --report.")


def _file_name(path: str, direction: str) -> str:
    return f"the standard {direction}" if path == PIPE else Path(path).name


def _outcome(released: _Released, options: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Return the result of a release: facts with --json, else lines."""
    transformer = released.transformer
    summary = fitted_of(transformer).summary_with_limits(USUAL_CONFIDENCE)
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
        }
        return facts if options.output == "label" else {**facts, "fidelity": None}, []
    lead, sure = summary.lead(), transformer.confidence or "none"
    lines = [
        f"{options.target}: {released.n_rows:,} rows; {_treatments(summary, copied)} "
        f"(--utility {summary.mechanism.objective.name}, --confidence {sure}).",
        lead,
        *(text for text in summary.sentences(options.show_groups)[1:-1] if text not in lead),
        *_keyed_lines(options.record_ids),
        *(face_value_lines(summary.fidelity) if options.output == "label" else []),
    ]
    if options.save_mechanism:
        lines.append(f"Wrote {options.save_mechanism}.")
    return {}, lines


def _treatments(summary: ReleaseSummary, copied: Sequence[str]) -> str:
    """Return the treatment of all columns in words."""
    text = f"{listed(summary.released)} replaced"
    if summary.beside:
        text += f", {listed(summary.beside)} published unchanged under the same budget"
    if copied:
        text += f", {listed(copied)} copied unchanged"
    return f"{text}, all other columns left out"
