"""Designs whose budget holds for the population, with some confidence."""

from .confident_design import ConfidentDesign

__all__ = ["ConfidentDesign"]
