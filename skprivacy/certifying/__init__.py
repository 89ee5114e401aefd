"""Theorems on fresh rows: what a channel leaks in the population, at most."""

from .certificate import Candidate, Certificate, certify, check_measure, failure_of
from .limits import Centre
from .several import SeveralCertificates, certified_secrets

__all__ = [
    "Candidate",
    "Centre",
    "Certificate",
    "SeveralCertificates",
    "certified_secrets",
    "certify",
    "check_measure",
    "failure_of",
]
