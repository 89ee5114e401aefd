"""Designs whose budget holds for the population, with some confidence."""

from .calibration import Aim, confident_channel
from .output_limits import Sample

__all__ = ["Aim", "Sample", "confident_channel"]
