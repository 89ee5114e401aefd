"""Theorems on fresh rows: what a channel leaks in the population, at most."""

from .certificate import (
    Candidate,
    Certificate,
    LeakageBounds,
    Terms,
    certificate_of,
    certify,
    check_measure,
)
from .limits import Centre

__all__ = [
    "Candidate",
    "Centre",
    "Certificate",
    "LeakageBounds",
    "Terms",
    "certificate_of",
    "certify",
    "check_measure",
]
