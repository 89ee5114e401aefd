"""Theorems on fresh rows: what a channel leaks in the population, at most."""

from .certificate import Candidate, Certificate, certify, check_measure, failure_of
from .limits import Centre

__all__ = ["Candidate", "Centre", "Certificate", "certify", "check_measure", "failure_of"]
