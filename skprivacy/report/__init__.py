"""A report on a release, for whoever signs it off."""

from .privacy_report import PrivacyReport

__all__ = ["PrivacyReport"]
