"""Designs whose budget holds for the population, with some confidence."""

from .broad_design import BroadConfidentDesign
from .confident_design import ConfidentDesign

__all__ = ["BroadConfidentDesign", "ConfidentDesign"]
