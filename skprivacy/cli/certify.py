"""The command that certifies a saved mechanism by other rows: `certify`."""

import argparse
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..certifying import LeakageBounds
from ..describing import SecretSummary, figure, limit
from ..files.counting import held_out_table
from ..fitting.fitted_estimator import fitted_of, settings_of
from ..fitting.held_out import certified, terms_for
from ..transformer import PrivacyFunnelTransformer
from .column_names import check_needed
from .inputs import source_of
from .words import listed, say


def certify_file(options: argparse.Namespace) -> None:
    """Certify a saved mechanism by the rows of a file."""
    text = Path(options.mechanism).read_text(encoding="utf-8")
    transformer = PrivacyFunnelTransformer.from_json(text)
    fitted, settings = fitted_of(transformer), settings_of(transformer)
    terms = terms_for(fitted, options.measure, options.confidence, options.settings)
    with source_of(options) as source:
        check_needed(options, fitted.roles.keeping([]), source.names)
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
        lines.append(f"All of this holds at once with a confidence of {facts['confidence']:g}.")
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
        # The budget is one of the measure that the mechanism was designed with.
        "holds": certificate.holds(secret.epsilon)
        if certificate.measure == release.measure
        else None,
    }


def _sentences(facts: dict[str, Any]) -> list[str]:
    head = (
        f"{facts['rows']:,} rows with {facts['groups']} groups of {listed(facts['protected'])}; "
        f"{facts['measure']}, confidence {facts['confidence']:g}."
    )
    lines = [head, _figures("The worst released value leaks", "max", facts)]
    if not math.isnan(facts["average_leakage_bound"]):
        lines.append(_figures("Released values leak on average", "average", facts))
    if facts["holds"] is not None:
        where = "every released value" if facts["scope"] == "per_output" else "their average"
        certified = "is certified" if facts["holds"] else "is not certified by these rows"
        lines.append(f"The budget, epsilon = {facts['epsilon']:g} for {where}, {certified}.")
    return lines


def _figures(what: str, name: str, facts: dict[str, Any]) -> str:
    leakage, bound = facts[f"{name}_leakage"], facts[f"{name}_leakage_bound"]
    return (
        f"{what} {figure(leakage)} in these rows, and at most {limit(bound)} in the population "
        f"they were drawn from."
    )
