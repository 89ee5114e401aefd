"""What a report consists of, whatever it is shown as."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pandas as pd


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


@dataclass(frozen=True, eq=False)
class Section:
    """A heading, and what is below it."""

    title: str
    paragraphs: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
