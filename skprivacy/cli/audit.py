"""The commands that check a release: audit and certify."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from .._messages import aligned, in_points, listed
from ..describing import SecretSummary
from ..describing.numbers import figure, limit
from ..encoding import learn_alphabet
from ..engines.file_tables import kind_of
from ..engines.files import held_out_table, read_from, sample_source
from ..fitted import secrets_of
from ..fitting.fitted_estimator import fitted_of, settings_of
from ..fitting.held_out import certified, terms_for
from ..fitting.leak_warnings import warn_of_bins
from ..fitting.tally import most_rows
from ..metrics import audit, linkage
from ..metrics.attack import attack_notes
from ..population.certificate import LeakageBounds
from ..transformer import PrivacyFunnelTransformer
from .checks import check_needed, columns_of_in, secret_keys
from .inputs import source_of
from .messages import say


def audit_file(options: argparse.Namespace) -> None:
    """Attack released columns, of the same file or of another one."""
    with source_of(options) as source:
        secrets: Any = 1.0  # a budget, which is not used, for all columns jointly
        if options.secrets is not None:
            secrets = secret_keys("--secrets", dict.fromkeys(options.secrets, 1.0), options)
        columns = columns_of_in(options, source.names)
        limit = most_rows(len(source.names))  # for both files, to sample the same rows
        rows, n_rows = sample_source(source, limit)
    views: dict[str, Any]
    if columns is not None:
        released = rows[columns]
        views = {"released": released}
    else:
        released = _released_rows(options, n_rows, limit)
        views = _views(released, rows, options.beside)
    s_columns = [rows[name] for name in options.sensitive]
    unbinned = dict.fromkeys(options.categorical)  # n_bins: None
    bins = [{"n_bins": None} if name in unbinned else {} for name in options.sensitive]
    alphabet, groups = learn_alphabet(s_columns, options.sensitive, None, bins)
    warn_of_bins(options.sensitive, alphabet, unbinned)
    exact = ["bayes_accuracy", "advantage_bound"]  # NaN: the mechanism is not known here
    attacks, lines = [], []
    for each in secrets_of("audit", secrets, options.sensitive, alphabet).groups.values():
        table = audit(sensitive=each.codes(groups), **views).drop(columns=exact)
        name, notes = [options.sensitive[p] for p in each.positions], attack_notes(table)
        attacks.append({"secret": name, "attacks": table.to_dict("records"), "notes": notes})
        lines += ["", *_audit_lines(table, name, len(rows))]
    facts = {"rows": n_rows, "rows_attacked": len(rows), "secrets": attacks}
    if options.others is not None:
        found = _linkage(options, released, rows, limit)
        facts["linkage"] = found.to_dict("records")
        lines += ["", *_linkage_lines(found, len(rows))]
    say(options, facts, lines[1:])


def _linkage(
    options: argparse.Namespace, released: pd.DataFrame, rows: pd.DataFrame, limit: int
) -> pd.DataFrame:
    """Return how well people in IN, and those who were left out, are found in a release."""
    with read_from(
        options.others,
        format=options.format,
        delimiter=options.delimiter,
        encoding=options.encoding,
        header=options.header,
        names=options.names,
    ) as source:
        others, _ = sample_source(source, limit)
    both = [name for name in released if name in rows and name in others]
    if len(both) < 2:
        raise ValueError(f"{options.others} has fewer than two columns of the release.")
    if unknown := [name for name in options.known or () if name not in both]:
        raise ValueError(f"--known names {unknown[0]!r}, which is not a column of all files.")
    return linkage(released[both], rows[both], others[both], known=options.known)


def _linkage_lines(found: pd.DataFrame, n_rows: int) -> list[str]:
    head = (
        "known",
        "members found",
        "right",
        "others found",
        "right",
        "difference",
        "95% interval",
    )
    lines = [head]
    for row in found.to_dict("records"):
        shares = (f"{row[key]:.1%}" for key in ("found", "right", "found_others", "right_others"))
        interval = f"{100 * row['low']:+z.1f} to {in_points(row['high'])}"
        lines.append((row["known"], *shares, in_points(row["difference"]), interval))
    return [
        f"Looking for {n_rows:,} people of the release and for others who were left out: found, "
        f"and all other columns guessed right.",
        "",
        *aligned(lines),
    ]


def _released_rows(options: argparse.Namespace, n_rows: int, limit: int) -> pd.DataFrame:
    """Return the released rows that correspond to the sampled rows of IN."""
    kinds = [kind_of(path, options.format)[0] for path in (options.released, options.source)]
    delimiter = options.delimiter if kinds[0] == kinds[1] else None
    # A release always has a header. If its first line were a row, there would be one too few.
    is_said = options.header is not None or options.names is not None
    with read_from(
        options.released,
        format=options.format,
        delimiter=delimiter,
        encoding=options.encoding,
        header=True if is_said else None,
    ) as source:
        released, n_released = sample_source(source, limit)
    if n_released != n_rows:
        raise ValueError(
            f"{options.released} has {n_released:,} rows and {options.source} has {n_rows:,}: a "
            f"release can only be attacked with the rows it was made from, in the same order."
        )
    there = [name for name in options.sensitive if name in released]
    if there:
        raise ValueError(f"{options.released} holds the sensitive column {there[0]!r} itself.")
    return released


def _views(released: pd.DataFrame, rows: pd.DataFrame, beside: Sequence[str]) -> dict[str, Any]:
    """Return what `audit` attacks: replaced columns, before and after, and copied ones.

    beside : columns copied under the budget, as a part of the release.
    """
    for name in beside:
        if name not in released or name not in rows:
            raise ValueError(f"--beside names {name!r}, which is not a column of both files.")
    copied = [name for name in released if name in rows and released[name].equals(rows[name])]
    if len(copied) == len(released.columns):
        return {"released": released}
    copied = [name for name in copied if name not in beside]
    attacked = [name for name in released if name not in copied]
    before = [name for name in attacked if name in rows]
    return {
        "released": released[attacked],
        "raw": rows[before] if before else None,
        "remainder": released[copied] if copied else None,
    }


def _audit_lines(table: pd.DataFrame, guessed: list[str], n_rows: int) -> list[str]:
    rows: list[tuple[Any, ...]] = [
        ("columns seen", "attacker", "right", "advantage", "95% interval")
    ]
    for row in table.to_dict("records"):
        right, advantage = f"{row['accuracy']:.1%}", in_points(row["advantage"])
        interval = f"{100 * row['low']:+z.1f} to {in_points(row['high'])}"
        rows.append((row["attacked"], row["attacker"], right, advantage, interval))
    return [
        f"{n_rows:,} rows, guessing {listed(guessed)}; a blind guess is right "
        f"{table['blind'][0]:.1%} of the time.",
        "",
        *aligned(rows),
        *(line for note in attack_notes(table) for line in ("", note)),
    ]


def certify_file(options: argparse.Namespace) -> None:
    """Certify a saved mechanism with the rows of a file."""
    text = Path(options.mechanism).read_text(encoding="utf-8")
    transformer = PrivacyFunnelTransformer.from_json(text)
    fitted, settings = fitted_of(transformer), settings_of(transformer)
    terms = terms_for(fitted, options.measure, options.confidence, options.settings)
    with source_of(options) as source:
        check_needed(options, fitted.roles.keeping([]), source.names)
        protected = [str(name) for name in fitted.roles.s_names]  # none without names
        if protected and {*protected} != {*options.sensitive}:
            raise ValueError(
                f"--sensitive {','.join(options.sensitive)} is not what {options.mechanism} "
                f"protects: use --sensitive {','.join(protected)}. If the columns have other "
                f"names here, rename them with --names."
            )
        settings = replace(settings, sensitive=options.sensitive)
        certificate = certified(fitted, settings, terms, held_out_table(fitted, source))
    summary = transformer.summary_
    every = [
        _facts(one, summary.secrets[name], options) for name, one in certificate.secrets.items()
    ]
    facts = {
        "mechanism": options.mechanism,
        "released": list(summary.released),
        "confidence": certificate.confidence,
        "secrets": every,
    }
    lines = [line for each in every for line in _sentences(each)]
    if len(every) > 1:
        lines.append(f"All of this holds at once, with a confidence of {facts['confidence']:g}.")
    say(options, facts, lines)


def _facts(
    certificate: LeakageBounds, secret: SecretSummary, options: argparse.Namespace
) -> dict[str, Any]:
    key, release = secret.key, secret.release
    columns = options.sensitive if key is None else key if isinstance(key, tuple) else [key]
    return {
        "rows": certificate.n_rows,
        "protected": list(map(str, columns)),
        "groups": certificate.n_groups,
        "measure": certificate.measure.name,
        "confidence": certificate.confidence,
        "settings": certificate.n_settings,
        "max_leakage": certificate.max_leakage,
        "max_leakage_bound": certificate.max_leakage_bound,
        "average_leakage": certificate.average_leakage,
        "average_leakage_bound": certificate.average_leakage_bound,
        "epsilon": secret.epsilon,
        "scope": release.scope,
        # The budget is on the scale of the mechanism's own measure.
        "holds": certificate.holds(secret.epsilon)
        if certificate.measure == release.measure
        else None,
    }


_LEAK = {"max": "The worst released value leaks", "average": "Released values leak on average"}


def _sentences(facts: dict[str, Any]) -> list[str]:
    head = (
        f"{facts['rows']:,} rows with {facts['groups']} groups of {listed(facts['protected'])}; "
        f"{facts['measure']}, confidence {facts['confidence']:g}."
    )
    lines = [head]
    for name, who in _LEAK.items():
        leakage, bound = facts[f"{name}_leakage"], facts[f"{name}_leakage_bound"]
        if name == "max" or not math.isnan(bound):
            lines.append(
                f"{who} {figure(leakage)} in these rows, and at most {limit(bound)} in the "
                f"population they were drawn from."
            )
    if facts["holds"] is not None:
        where = "every released value" if facts["scope"] == "per_output" else "their average"
        certified = "is certified" if facts["holds"] else "is not certified by these rows"
        lines.append(f"The budget, epsilon = {facts['epsilon']:g} for {where}, {certified}.")
    return lines
