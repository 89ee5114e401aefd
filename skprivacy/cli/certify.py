"""The command that certifies a saved mechanism by other rows: `certify`."""

import argparse
import math
from pathlib import Path
from typing import Any

from ..certifying import Certificate, SeveralCertificates
from ..files.held_out import certify_source
from ..fitting.fitted_estimator import fitted_of
from ..mechanism import Mechanism, SeveralSecretsMechanism
from ..transformer import PrivacyFunnelTransformer
from .column_names import check_needed
from .inputs import source_of
from .several import parts_of
from .words import listed, say


def certify_file(options: argparse.Namespace) -> None:
    """Certify a saved mechanism by the rows of a file."""
    text = Path(options.mechanism).read_text(encoding="utf-8")
    transformer = PrivacyFunnelTransformer.from_json(text)
    fitted = fitted_of(transformer)
    with source_of(options) as source:
        check_needed(options, fitted.roles.keeping([]), source.names)
        certificate = certify_source(
            fitted,
            type(transformer).__name__,
            source,
            options.sensitive,
            options.measure or transformer.mechanism_.measure,
            confidence=options.confidence,
            n_settings=options.settings,
        )
    mechanism = transformer.mechanism_
    if isinstance(certificate, SeveralCertificates):
        assert isinstance(mechanism, SeveralSecretsMechanism)
        every = [
            _facts(one, mechanism.secrets[name], parts_of(name), transformer, options)
            for name, one in certificate.secrets.items()
        ]
        shown = f"All of this holds with a confidence of {certificate.confidence:g}."
        lines = [line for facts in every for line in _sentences(facts)]
        say(options, {"confidence": certificate.confidence, "secrets": every}, [*lines, shown])
        return
    assert isinstance(mechanism, Mechanism)
    facts = _facts(certificate, mechanism, options.sensitive, transformer, options)
    say(options, facts, _sentences(facts))


def _facts(
    certificate: Certificate,
    mechanism: Mechanism,
    protected: list[str],
    transformer: PrivacyFunnelTransformer,
    options: argparse.Namespace,
) -> dict[str, Any]:
    is_own = certificate.measure == mechanism.measure
    return {
        "mechanism": options.mechanism,
        "rows": certificate.n_rows,
        "released": transformer.columns,
        "protected": protected,
        "groups": certificate.n_groups,
        "measure": certificate.measure.name,
        "confidence": certificate.confidence,
        "settings": certificate.n_settings,
        "max_leakage": certificate.max_leakage,
        "max_leakage_bound": certificate.max_leakage_bound,
        "average_leakage": certificate.average_leakage,
        "average_leakage_bound": certificate.average_leakage_bound,
        "epsilon": mechanism.epsilon,
        "scope": mechanism.scope,
        # The budget is one of the measure that the mechanism was designed with.
        "holds": certificate.holds(mechanism.epsilon) if is_own else None,
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
    return f"{what} {leakage:.4g} in these rows, and at most {bound:.4g} in their population."
