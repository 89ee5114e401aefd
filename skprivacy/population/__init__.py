"""Statements about the population: confidence limits, designs within them, certificates."""

from .certificate import Certificate, LeakageBounds

__all__ = ["Certificate", "LeakageBounds"]
