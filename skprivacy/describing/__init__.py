"""Summaries of a release for readers who do not know the theory."""

from .summary import ReleaseSummary, SecretSummary
from .verdict import Verdict

__all__ = ["ReleaseSummary", "SecretSummary", "Verdict"]
