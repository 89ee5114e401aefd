"""The noise of a file, block by block: fresh, or by the ids in one of its columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .._messages import Message, Named
from .._typing import Seed
from ..releasing.keyed import RecordKeys, RecordNoise, RecordSource, repeated
from ..releasing.noise import FreshSource, Noise, NoiseKey, RowNoise
from ..releasing.noise_sources import noise_source
from ..releasing.release import Release
from ..tables.frames import as_table
from .repeated_ids import RepeatedIds

if TYPE_CHECKING:
    from .tables import Block, Source


class BlockNoise(ABC):
    """Where the noise of the blocks of a file comes from."""

    @abstractmethod
    def of(self, block: Block, first: int) -> Noise:
        """Return the noise of a block; first : the number of its first row."""

    def check(self) -> None:  # noqa: B027
        """Check, after the last block, that no two rows had the same noise."""


@contextmanager
def noise_of_blocks(
    release: Release,
    random_state: Seed | np.random.RandomState,
    source: Source,
    record_ids: str | None,
    secret_key: bytes | None,
) -> Iterator[BlockNoise]:
    """Yield the noise of a file: by `record_ids`, the name of a column of ids, or else fresh."""
    if record_ids is not None and not isinstance(record_ids, str):
        raise TypeError(
            Message(
                Named("record_ids"),
                f" must be the name of a column of {source.input.name}. Got a value of type "
                f"{type(record_ids).__name__}.",
            )
        )
    noise = noise_source(release, random_state, record_ids, secret_key)
    if isinstance(noise, FreshSource):
        yield _FreshBlocks(noise.key)
        return
    assert isinstance(noise, RecordSource)
    position = id_position(source, noise.column)
    with RepeatedIds() as seen:
        yield _KeyedBlocks(noise.keys, source, position, seen)


def id_position(source: Source, column: str) -> int:
    """Return the position of the column of ids, which must be there."""
    header = as_table(pd.DataFrame(columns=source.names), "transform_file")
    (position,) = header.positions("transform_file", "record_ids", [column])
    return position


class _FreshBlocks(BlockNoise):
    def __init__(self, key: NoiseKey) -> None:
        self._key = key

    def of(self, block: Block, first: int) -> RowNoise:
        return RowNoise(self._key, range(first, first + len(block)))


class _KeyedBlocks(BlockNoise):
    def __init__(self, keys: RecordKeys, source: Source, position: int, seen: RepeatedIds) -> None:
        self._keys, self._source, self._position, self._seen = keys, source, position, seen

    def of(self, block: Block, first: int) -> RecordNoise:
        ids = block.column(self._position)
        if _are_missing(ids).any():
            raise self._missing_error()
        noise = RecordNoise(self._keys, ids)
        self._seen.add(noise.identities())
        return noise

    def _missing_error(self) -> ValueError:
        """Return an error that says how many ids are missing in all of the file."""
        n_missing = n_rows = 0
        for block in self._source.blocks():
            n_missing += int(_are_missing(block.column(self._position)).sum())
            n_rows += len(block)
        return ValueError(
            Message(
                Named("record_ids"),
                f" names {self._source.names[self._position]!r}, which is missing in "
                f"{n_missing:,} of the {n_rows:,} rows of {self._source.input.name}: every row "
                f"needs an id of its own.",
            )
        )

    def check(self) -> None:
        if (n_repeated := self._seen.n_repeated()) > 0:
            name, file = self._source.names[self._position], self._source.input.name
            raise ValueError(
                Message(
                    Named("record_ids"),
                    f" names {name!r}, which must be unique in {file}: {repeated(n_repeated)}",
                )
            )


def _are_missing(ids: pd.Series) -> pd.Series:
    """Tell which ids are missing: empty fields of a text file, nulls of a Parquet file."""
    return ids.isna() | ids.eq("").fillna(False).astype(bool)
