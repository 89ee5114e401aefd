"""Whether rows with the same id have the same X, over a file of any size."""

from __future__ import annotations

import tempfile
from contextlib import AbstractContextManager, ExitStack
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from .._typing import IntArray
from ..noise import Words

_ROW = np.dtype([("id", "<u8"), ("symbol", "<i4")])
_RUN_ROWS = 1 << 20  # that are kept in memory: 12 MB
_SHARE_BITS = 10  # of an id, that say in which of 1,024 shares it is


class RepeatedIds(AbstractContextManager["RepeatedIds"]):
    """Hashes of ids with symbols of X, compared at the end.

    Beyond a million rows they go to a temporary file, 12 bytes for each row. It has no name and
    only this user can read it. Each run of rows in it is ordered by the first bits of the hashes,
    so that the rows of equal ids can be read together, a share of all ids at a time.
    """

    def __init__(self) -> None:
        self._waiting: list[npt.NDArray[Any]] = []
        self._n_waiting = self._n_written = 0
        self._runs: list[IntArray] = []  # where each share begins, and the last one ends
        self._file: BinaryIO | None = None
        self._closing = ExitStack()

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def add(self, hashes: Words, symbols: IntArray) -> None:
        """Take note of some rows."""
        rows = np.empty(len(hashes), dtype=_ROW)
        rows["id"], rows["symbol"] = hashes, symbols
        self._waiting.append(rows)
        self._n_waiting += len(rows)
        if self._n_waiting >= _RUN_ROWS:
            self._write(self._taken())

    def n_mixed(self) -> int:
        """Return how many ids come with different symbols."""
        if self._file is None:
            return _n_mixed(self._taken())
        self._write(self._taken())
        return sum(_n_mixed(self._share(self._file, i)) for i in range(1 << _SHARE_BITS))

    def _taken(self) -> npt.NDArray[Any]:
        rows = np.concatenate([np.empty(0, dtype=_ROW), *self._waiting])
        self._waiting, self._n_waiting = [], 0
        return rows

    def _write(self, rows: npt.NDArray[Any]) -> None:
        if self._file is None:
            self._file = self._closing.enter_context(
                tempfile.TemporaryFile(prefix="skprivacy-")  # noqa: SIM115  # the stack closes it
            )
        shares = (rows["id"] >> np.uint64(64 - _SHARE_BITS)).astype(np.uint16)
        sizes = np.bincount(shares, minlength=1 << _SHARE_BITS)
        self._runs.append(self._n_written + np.concatenate([[0], sizes.cumsum()]))
        self._file.write(rows[shares.argsort(kind="stable")].tobytes())
        self._n_written += len(rows)

    def _share(self, file: BinaryIO, share: int) -> npt.NDArray[Any]:
        pieces = []
        for run in self._runs:
            begin, end = run[share : share + 2].tolist()
            file.seek(begin * _ROW.itemsize)
            pieces.append(file.read((end - begin) * _ROW.itemsize))
        return np.frombuffer(b"".join(pieces), dtype=_ROW)


def _n_mixed(rows: npt.NDArray[Any]) -> int:
    ids, symbols = rows["id"], rows["symbol"]
    order = np.lexsort((symbols, ids))
    ids, symbols = ids[order], symbols[order]
    differ = (ids[1:] == ids[:-1]) & (symbols[1:] != symbols[:-1])
    return len(np.unique(ids[1:][differ]))
