"""The table of a curve, printed row by row: each row takes a design."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .words import say_now

# Of each column, before all of its figures are known: 1.234e-05.
_WIDTH = 9


@dataclass(eq=False)
class CurveRows:
    """Prints a row for each mechanism, the first one below what explains the table.

    head : the names of the columns; above : the lines above them, by the first mechanism; row :
    the texts of a row, by its mechanism.
    """

    options: argparse.Namespace
    head: Sequence[str]
    above: Callable[[Any], list[str]]
    row: Callable[[Any], Sequence[str]]
    has_begun: bool = field(default=False, init=False)

    def print(self, mechanism: Any) -> None:
        """Print the row of a mechanism."""
        lines = [] if self.has_begun else [*self.above(mechanism), "", self._line(self.head)]
        say_now(self.options, [*lines, self._line(self.row(mechanism))])
        self.has_begun = True

    def _line(self, texts: Sequence[str]) -> str:
        widths = [max(_WIDTH, len(name)) for name in self.head]
        first, *others = zip(texts, widths, strict=True)
        cells = [first[0].ljust(first[1]), *(text.rjust(width) for text, width in others)]
        return "  ".join(cells).rstrip()
