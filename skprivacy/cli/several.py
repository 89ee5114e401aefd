"""What the commands say where several secrets have budgets of their own."""

import argparse
from collections.abc import Mapping
from typing import Any

from ..mechanism import Mechanism, SeveralSecretsMechanism, name_of_secret, said_together
from .people import exposed, group_facts
from .populations import population_facts, revealed
from .words import key_of, listed

AnyMechanism = Mechanism | SeveralSecretsMechanism


def parts_of(name: Any) -> list[str]:
    """Return the columns of a secret."""
    return list(map(str, name)) if isinstance(name, tuple) else [str(name)]


def budget_fact(mechanism: AnyMechanism) -> Any:
    """Return for machines the budget, or that of each secret."""
    if isinstance(mechanism, Mechanism):
        return mechanism.epsilon
    return {key_of(name): budget for name, budget in mechanism.epsilon.items()}


def leakage_facts(mechanism: AnyMechanism, options: argparse.Namespace) -> dict[str, Any]:
    """Return for machines what leaks; of several secrets, about each and about all together."""
    if isinstance(mechanism, Mechanism):
        return {
            "max_leakage": mechanism.max_leakage,
            "average_leakage": mechanism.average_leakage,
            **population_facts(mechanism),
        }
    assert mechanism.together is not None  # fit knows all columns of S
    return {
        "confidence": mechanism.confidence,
        "n_samples": mechanism.n_samples,
        "secrets": [_facts(name, m, options) for name, m in mechanism.secrets.items()],
        "together": {
            "max_leakage": mechanism.together.max_leakage,
            "average_leakage": mechanism.together.average_leakage,
        },
    }


def _facts(name: Any, secret: Mechanism, options: argparse.Namespace) -> dict[str, Any]:
    return {
        "secret": key_of(name),
        "epsilon": secret.epsilon,
        **leakage_facts(secret, options),
        "groups": group_facts(secret.posterior_ranges(), secret.s_labels, options),
    }


def revealed_lines(mechanism: AnyMechanism, options: argparse.Namespace) -> list[str]:
    """Say what released values reveal about each secret, and about all together."""
    if isinstance(mechanism, Mechanism):
        return _lines(mechanism, listed(options.sensitive), options)
    each = mechanism.secrets.items()
    lines = [line for name, m in each for line in _lines(m, name_of_secret(name), options)]
    return [*lines, said_together(mechanism)]


def _lines(secret: Mechanism, name: str, options: argparse.Namespace) -> list[str]:
    return [
        *revealed(secret, name),
        exposed(secret.posterior_ranges(), secret.s_labels, options),
    ]


def secret_keys(given: Mapping[str, float], sensitive: list[str]) -> dict[Any, float]:
    """Return budgets by column, or by a tuple of columns where these are joined by a plus."""
    return {_key(text, sensitive): budget for text, budget in given.items()}


def _key(text: str, sensitive: list[str]) -> Any:
    parts = text.split("+")
    return text if text in sensitive or len(parts) == 1 else tuple(parts)
