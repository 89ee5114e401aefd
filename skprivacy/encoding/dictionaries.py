"""Columns of Arrow that are dictionary-encoded: codes without decoding a row.

pyarrow need not be imported: its objects have all the methods needed here.
"""

from typing import Any

import numpy as np

from .._typing import IntArray
from ..codes import UNKNOWN, look_up, narrow


def dictionary_codes(column: Any) -> tuple[IntArray, list[Any]]:
    """Return codes, -1 for missing, and the values of a ChunkedArray of dictionaries.

    Dictionaries may differ from chunk to chunk and repeat a value; both dictionaries and indices
    may have missing ones. Some of the values may not occur.
    """
    code_of: dict[Any, int] = {}
    codes: list[IntArray] = [np.empty(0, dtype=np.int8)]
    dictionary, table = None, np.array([UNKNOWN])
    for chunk in column.chunks:
        if dictionary is None or not chunk.dictionary.equals(dictionary):
            dictionary = chunk.dictionary
            table = narrow(np.array([*_codes_of(dictionary.to_pylist(), code_of), UNKNOWN]))
        codes.append(_looked_up(table, chunk.indices))
    return np.concatenate(codes) if len(codes) > 2 else codes[-1], list(code_of)


def _codes_of(values: list[Any], code_of: dict[Any, int]) -> list[int]:
    """Return the codes of values; new values get the next codes."""
    return [UNKNOWN if v is None else code_of.setdefault(v, len(code_of)) for v in values]


def _looked_up(table: IntArray, indices: Any) -> IntArray:
    if not indices.null_count:
        return look_up(table, indices.to_numpy())
    codes = look_up(table, indices.fill_null(0).to_numpy())
    codes[indices.is_null().to_numpy(zero_copy_only=False)] = UNKNOWN
    return codes
