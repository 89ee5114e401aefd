"""What a report consists of, whatever it is shown as."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

# A cell to be filled in by hand.
BLANK = "_" * 24


@dataclass(frozen=True, eq=False)
class Figure:
    """A picture: `draw` returns a matplotlib figure.

    alt : what it is; caption : what can be seen in it.
    """

    alt: str
    caption: str
    draw: Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Table:
    """A table of texts, with a caption; its index has the headers of the rows."""

    caption: str
    cells: pd.DataFrame

    @property
    def is_facts(self) -> bool:
        """Whether it is a list of names, each with a text."""
        return len(self.cells.columns) == 1


@dataclass(frozen=True, eq=False)
class Points:
    """A list of sentences, with a caption."""

    caption: str
    sentences: list[str]


@dataclass(frozen=True, eq=False)
class Section:
    """A heading, and what is below it.

    lead : the one line that matters most; status : what it says, in a word.
    """

    title: str
    paragraphs: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    points: list[Points] = field(default_factory=list)
    lead: str = ""
    status: str = ""


def facts(caption: str, texts: dict[str, str], of: str = "") -> Table:
    """Return a table of names, each with a text; of : what the names are."""
    cells = pd.DataFrame({"": texts}, dtype=object)
    return Table(caption, cells.rename_axis(of))
