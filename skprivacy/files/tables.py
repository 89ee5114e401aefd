"""Tables in files, whatever their kind: read block by block, written block by block."""

from abc import ABC, abstractmethod

from tqdm.auto import tqdm


class Source(ABC):
    """A table in a file.

    names : of its columns; input : the `Input` that it is read from.
    """

    @abstractmethod
    def blocks(self):
        """Yield the rows from the start as `Block`s, at least one."""

    def watched_blocks(self, doing, is_watched):
        """Yield the blocks, with a progress bar on the standard error if it is watched."""
        size, raw = self.input.size, self.input.raw
        options = {"unit": "B", "unit_scale": True, "disable": not is_watched}
        with tqdm(total=size, desc=doing, **options) as bar:
            for block in self.blocks():
                yield block
                bar.update(min(raw.tell(), size) - bar.n)
            bar.update(size - bar.n)

    def check_names(self):
        """Check that a name stands for one column."""
        twice = [name for name in self.names if self.names.count(name) > 1]
        if twice:
            raise ValueError(f"{self.input.name}: the column {twice[0]!r} is there twice.")


class Block(ABC):
    """Some rows of a table."""

    @abstractmethod
    def __len__(self):
        """Return how many rows there are."""

    @abstractmethod
    def column(self, position, rows=slice(None)):
        """Return a column as a pandas Series; of a text file, texts as a category."""

    @abstractmethod
    def frame(self, positions, families):
        """Return columns as a frame that a transformer takes.

        families : what the texts of each are, "numbers" or "str" for instance.
        """


class Sink(ABC):
    """A table that is being written."""

    @abstractmethod
    def write(self, block, parts):
        """Write the rows of a block.

        parts : ``{name: part}`` in order; a part is the position of a column that is copied, or
        a new column.
        """

    @abstractmethod
    def close(self):
        """Write what is still missing."""
