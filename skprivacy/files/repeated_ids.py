"""How many rows repeat the id of another row, over a file of any size."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import BinaryIO

import numpy as np

from .._typing import IntArray
from ..releasing.noise import Words
from ..releasing.siphash import n_repeated
from .locations import temporary

RUN_ROWS = 1 << 20  # kept in memory: 8 MB
_ROW_BYTES = 8
_SHARE_BITS = 10  # of a hash, which say in which of 1,024 shares it is


class RepeatedIds(AbstractContextManager["RepeatedIds"]):
    """Hashes of ids, compared at the end.

    Beyond a million rows they go to a temporary file, 8 bytes for each row. Each run of rows in
    it is ordered by the first bits of the hashes, so that the rows of equal ids can be read
    together, a share of all ids at a time.
    """

    def __init__(self) -> None:
        self._waiting: list[Words] = []
        self._n_waiting = self._n_written = 0
        self._runs: list[IntArray] = []  # where each share begins, and the last one ends
        self._file: BinaryIO | None = None
        self._closing = ExitStack()

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def add(self, hashes: Words) -> None:
        """Take note of some rows."""
        self._waiting.append(hashes)
        self._n_waiting += len(hashes)
        if self._n_waiting >= RUN_ROWS:
            self._write(self._taken())

    def n_repeated(self) -> int:
        """Return how many rows repeat the id of an earlier row."""
        if self._file is None:
            return n_repeated(self._taken())
        self._write(self._taken())
        return sum(n_repeated(self._share(self._file, i)) for i in range(1 << _SHARE_BITS))

    def _taken(self) -> Words:
        hashes = np.concatenate([np.empty(0, dtype=np.uint64), *self._waiting])
        self._waiting, self._n_waiting = [], 0
        return hashes

    def _write(self, hashes: Words) -> None:
        if self._file is None:
            self._file = self._closing.enter_context(temporary())
        shares = (hashes >> np.uint64(64 - _SHARE_BITS)).astype(np.uint16)
        sizes = np.bincount(shares, minlength=1 << _SHARE_BITS)
        self._runs.append(self._n_written + np.concatenate([[0], sizes.cumsum()]))
        self._file.write(hashes[shares.argsort(kind="stable")].tobytes())
        self._n_written += len(hashes)

    def _share(self, file: BinaryIO, share: int) -> Words:
        pieces = []
        for run in self._runs:
            begin, end = run[share : share + 2].tolist()
            file.seek(begin * _ROW_BYTES)
            pieces.append(file.read((end - begin) * _ROW_BYTES))
        return np.frombuffer(b"".join(pieces), dtype=np.uint64)
