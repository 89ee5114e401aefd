"""Tables in files, whatever their kind: read block by block, written block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd
from tqdm.auto import tqdm

from .._progress import doing
from .._typing import IntArray
from ..tables.column_types import ColumnType
from .locations import Input


class Source(ABC):
    """A table in a file.

    names : of its columns; input : the `Input` that it is read from.
    """

    names: list[str]
    input: Input

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Yield the rows from the start as `Block`s, at least one."""

    @abstractmethod
    def type_of(self, position: int, values: pd.Series) -> ColumnType:
        """Return the type of a column; values : all that it has, as what they mean."""

    def watched_blocks(self, what: str, is_watched: bool) -> Iterator[Block]:
        """Yield the blocks, with a progress bar on the standard error if it is watched."""
        size, raw = self.input.size, self.input.raw
        options: dict[str, Any] = {"unit": "B", "unit_scale": True, "disable": not is_watched}
        doing(f"{what} rows")
        with tqdm(total=size, desc=what, **options) as bar:
            for block in self.blocks():
                yield block
                read = min(raw.tell(), size)
                doing(f"{what} rows, {read / size:.0%} of the file" if size else f"{what} rows")
                bar.update(read - bar.n)
            bar.update(size - bar.n)

    def check_names(self) -> None:
        """Check that each name stands for one column."""
        twice = [name for name, count in Counter(self.names).items() if count > 1]
        if twice:
            raise ValueError(f"{self.input.name}: the column {twice[0]!r} appears twice.")


class Block(ABC):
    """Some rows of a table."""

    @abstractmethod
    def __len__(self) -> int:
        """Return how many rows there are."""

    @abstractmethod
    def column(self, position: int, rows: slice | IntArray = slice(None)) -> pd.Series:
        """Return a column as a pandas Series; of a text file, texts as a category."""

    @abstractmethod
    def frame(self, positions: Sequence[int], families: Sequence[str]) -> Any:
        """Return columns as a frame that a transformer takes.

        families : what the texts of each are, "numbers" or "str" for instance.
        """


class Sink(ABC):
    """A table that is being written."""

    @abstractmethod
    def write(self, block: Block, parts: Mapping[str, Any]) -> None:
        """Write the rows of a block.

        parts : ``{name: part}`` in order; a part is the position of a column that is copied, or
        a new column.
        """

    def warn(self) -> None:  # noqa: B027
        """Warn, once all rows are written, of what people who open the file should know."""

    @abstractmethod
    def close(self) -> None:
        """Write what is still missing."""
