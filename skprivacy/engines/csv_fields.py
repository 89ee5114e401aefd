"""Delimited text as bytes: find the fields of rows, and join fields to rows.

Fields are copied without being decoded: their text stays the same byte for byte, with leading
zeros. Quotes are written only if a text needs them: they are no part of it, and may reveal the
source of a row. A quote has a meaning only at the start of a field, and a doubled quote in a
quoted field stands for one (RFC 4180).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from .._typing import BoolArray, IntArray

_QUOTED = re.compile(rb'"((?:[^"]++|"")*+)"(.*)', re.DOTALL)
_NEWLINE, _RETURN, _QUOTE = ord("\n"), ord("\r"), ord('"')

# Masks that keep the first 0 to 8 bytes of a word of eight.
_KEPT_BYTES = np.array([(1 << 8 * n) - 1 for n in range(9)], dtype=np.uint64)

# Short fields are compared eight bytes at a time, all at once; long ones one by one. A field is
# long beyond `_LONG` bytes, or beyond `_MOST_PADDING` times the mean bytes of a row, as fewer than
# one in `_MOST_PADDING` can be.
_LONG = 256
_MOST_PADDING = 8

# Beyond this many bytes, copying a piece costs less than an index for each of its bytes.
_LONG_PIECE = 1 << 12
ODD_FACTOR = np.uint64(0x9E3779B97F4A7C15)

Bytes: TypeAlias = npt.NDArray[np.uint8]
_Words: TypeAlias = npt.NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Fields:
    """The fields of complete rows.

    text : the bytes of the rows; starts, ends : (n_rows, n_columns), of each field; row_ends :
    just past the line end of each row.
    """

    text: bytes
    starts: IntArray
    ends: IntArray
    row_ends: IntArray

    @classmethod
    def without_columns(cls, n_rows: int) -> Fields:
        """Return rows without fields."""
        nowhere = np.zeros((n_rows, 0), dtype=np.intp)
        return cls(b"", nowhere, nowhere, np.zeros(n_rows, dtype=np.intp))

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def n_columns(self) -> int:
        """The number of fields of a row."""
        return self.starts.shape[1]

    def row(self, row: int) -> list[bytes]:
        """Return the fields of a row, with their quotes."""
        spans = zip(self.starts[row].tolist(), self.ends[row].tolist(), strict=True)
        return [self.text[start:end] for start, end in spans]

    def holds(self, column: int, field: bytes) -> bool:
        """Whether a field, with its quotes, occurs in a column."""
        starts, ends = self.starts[:, column], self.ends[:, column]
        of_length = starts[ends - starts == len(field)]
        return any(self.text.startswith(field, start) for start in of_length.tolist())

    @cached_property
    def _padded(self) -> bytes:
        """The text and one more word, so that words can be read from any place in it."""
        return self.text + bytes(8)

    def distinct(
        self, column: int, rows: slice | IntArray = slice(None)
    ) -> tuple[IntArray, list[bytes]]:
        """Return a code for each row, and the distinct fields of a column, with their quotes."""
        starts, ends = self.starts[rows, column], self.ends[rows, column]
        codes, first = _factorized(self._padded, starts, ends - starts)
        spans = zip(starts[first].tolist(), ends[first].tolist(), strict=True)
        return codes, [self.text[start:end] for start, end in spans]

    def spliced(
        self,
        parts: Iterable[int | tuple[IntArray, list[bytes]]],
        delimiter: bytes,
        line_end: bytes,
    ) -> Bytes:
        """Return rows of copied columns and new ones, as an array of bytes.

        parts : in order, the position of a copied column, or (codes, texts) of a new one;
        line_end : of all rows, because their own may differ and reveal something.
        """
        more = _Pool(self.text)
        pieces: list[tuple[IntArray, IntArray]] = []
        same = np.zeros(len(self), dtype=np.intp)
        for place, part in enumerate(parts):
            before = delimiter * bool(place)
            if isinstance(part, tuple):
                codes, texts = part
                pieces.append(more.added([before + text for text in texts], codes))
            elif part and not (self._counts(b'"', part) + self._counts(b"\r", part)).any():
                # With the delimiter before it, except in the first place.
                pieces.append((self.starts[:, part] - bool(place), self.ends[:, part]))
            else:
                pieces += [more.added([before], same), self._plainly_quoted(part, delimiter, more)]
        pieces.append(more.added([line_end], same))
        return _joined(more.bytes(), pieces)

    def _counts(self, characters: bytes, column: int) -> IntArray:
        """Return how often some characters occur in each field of a column, with its quotes."""
        places = self._places(characters)
        if not len(places):
            return np.zeros(len(self), dtype=np.intp)
        ends, starts = self.ends[:, column], self.starts[:, column]
        return np.searchsorted(places, ends) - np.searchsorted(places, starts)

    @cached_property
    def _found(self) -> dict[bytes, IntArray]:
        return {}

    def _places(self, characters: bytes) -> IntArray:
        """Return the places of some characters in the text."""
        if characters not in self._found:
            is_one = np.isin(np.arange(256), list(characters))
            self._found[characters] = np.flatnonzero(is_one.take(self._array))
        return self._found[characters]

    @cached_property
    def _array(self) -> Bytes:
        return np.frombuffer(self.text, np.uint8)

    def _plainly_quoted(
        self, column: int, delimiter: bytes, more: _Pool
    ) -> tuple[IntArray, IntArray]:
        """Return starts and ends of the fields of a column, quoted only if their text needs it.

        Fields that have to be written anew are added to `more`.
        """
        starts, ends = self.starts[:, column], self.ends[:, column]
        n_quotes, n_returns = self._counts(b'"', column), self._counts(b"\r", column)
        is_quoted = (n_quotes == 2) & (self._array.take(starts) == _QUOTE)
        is_quoted &= self._array.take(np.maximum(ends - 1, 0)) == _QUOTE
        needs = self._counts(delimiter + b"\r\n", column) > 0
        is_stripped = is_quoted & ~needs
        starts, ends = starts + is_stripped, ends - is_stripped
        if len(odd := np.flatnonzero(~is_quoted & (n_quotes + n_returns > 0))):
            codes, raw = self.distinct(column, odd)
            written = [quoted(unquoted(field), delimiter) for field in raw]
            starts[odd], ends[odd] = more.added(written, codes)
        return starts, ends


class _Pool:
    """The bytes that rows are joined from: those of a text, and more."""

    def __init__(self, text: bytes) -> None:
        self._parts, self._size = [text], len(text)

    def added(self, texts: Sequence[bytes], codes: IntArray) -> tuple[IntArray, IntArray]:
        """Add some texts; return starts and ends of the text of each code."""
        sizes = np.array([len(text) for text in texts])
        begins = self._size + np.cumsum(sizes) - sizes
        self._parts += texts
        self._size += int(sizes.sum())
        return begins[codes], begins[codes] + sizes[codes]

    def bytes(self) -> Bytes:
        """Return all bytes."""
        return np.frombuffer(b"".join(self._parts), np.uint8)


def _factorized(text: bytes, starts: IntArray, lengths: IntArray) -> tuple[IntArray, IntArray]:
    """Return a code for each field, and the first row of each distinct field.

    text : padded by a word.
    """
    import pandas as pd

    is_long = lengths > min(_LONG, _MOST_PADDING * len(text) // max(1, len(starts)))
    if not is_long.any():
        return _factorized_by_words(text, starts, lengths)
    short, long = np.flatnonzero(~is_long), np.flatnonzero(is_long)
    short_codes, short_first = _factorized_by_words(text, starts[short], lengths[short])
    # Long fields one at a time.
    spans = zip(starts[long].tolist(), (starts + lengths)[long].tolist(), strict=True)
    long_codes: Any = pd.factorize(pd.Series([text[a:b] for a, b in spans], dtype=object))[0]
    long_first = np.unique(long_codes, return_index=True)[1]
    codes = np.empty(len(starts), dtype=np.intp)
    codes[short], codes[long] = short_codes, long_codes + len(short_first)
    return codes, np.concatenate([short[short_first], long[long_first]])


def _factorized_by_words(
    text: bytes, starts: IntArray, lengths: IntArray
) -> tuple[IntArray, IntArray]:
    """Factorize short fields eight bytes at a time."""
    import pandas as pd

    words = words_of(text, starts, lengths)
    mixed = np.zeros(len(starts), dtype=np.uint64)
    for word in words:
        mixed = (mixed ^ word) * ODD_FACTOR
        mixed ^= mixed >> np.uint64(29)
    codes: Any
    codes, values = pd.factorize(mixed)
    first = np.zeros(len(values), dtype=np.intp)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    if not all((word == word[first][codes]).all() for word in words):  # a collision of hashes
        codes = pd.DataFrame(dict(enumerate(words))).groupby(list(range(len(words)))).ngroup()
        codes = codes.to_numpy()
        first = np.unique(codes, return_index=True)[1]
    return codes, first


def words_of(text: bytes, starts: IntArray, lengths: IntArray) -> list[_Words]:
    """Return the lengths of fields, and their bytes as integers, eight bytes at a time.

    text : padded by a word.
    """
    every = np.ndarray((len(text) - 7,), dtype="<u8", buffer=text, strides=(1,))
    words = [lengths.astype(np.uint64)]
    for begin in range(0, int(lengths.max(initial=0)), 8):
        word = every[np.minimum(starts + begin, len(every) - 1)]
        words.append(word & _KEPT_BYTES[(lengths - begin).clip(0, 8)])
    return words


def _joined(source: Bytes, pieces: Sequence[tuple[IntArray, IntArray]]) -> Bytes:
    """Return the bytes of all pieces, row by row; pieces : starts and ends in the source."""
    starts = np.stack([start for start, _ in pieces], axis=1)
    ends = np.stack([end for _, end in pieces], axis=1)
    # Pieces that follow each other in the source are one.
    first = np.ones(starts.shape, dtype=bool)
    first[:, 1:] = starts[:, 1:] != ends[:, :-1]
    last = np.ones(starts.shape, dtype=bool)
    last[:, :-1] = first[:, 1:]
    starts, ends = starts[first], ends[last]
    copied, begin = [], 0
    for long in np.flatnonzero(ends - starts > _LONG_PIECE).tolist():
        copied += [
            gathered(source, starts[begin:long], ends[begin:long]),
            source[starts[long] : ends[long]],
        ]
        begin = long + 1
    short = gathered(source, starts[begin:], ends[begin:])
    return np.concatenate([*copied, short]) if copied else short


def gathered(source: Bytes, starts: IntArray, ends: IntArray) -> Bytes:
    """Return the bytes of short pieces, one after the other."""
    lengths = ends - starts
    positions = np.arange(lengths.sum())
    positions += np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    return source.take(positions)


def split(text: bytes, delimiter: str, n_columns: int, line: int) -> Fields:
    """Return the `Fields` of the complete rows at the start of a text.

    line : the number of its first line, for messages. Empty lines are left out, unless rows have
    a single field.
    """
    array = np.frombuffer(text, np.uint8)
    separators = _separators(text, array, delimiter)
    is_row_end = array[separators] == _NEWLINE
    n_separators = int(np.flatnonzero(is_row_end)[-1]) + 1 if is_row_end.any() else 0
    separators, is_row_end = separators[:n_separators], is_row_end[:n_separators]
    begins = np.concatenate([[0], separators[:-1] + 1]) if n_separators else separators
    if n_columns > 1:
        content = separators - ((array[separators - 1] == _RETURN) & is_row_end & (separators > 0))
        first = np.concatenate([[True], is_row_end[:-1]]) if n_separators else is_row_end
        empty = first & is_row_end & (content <= begins)
        begins, separators = begins[~empty], separators[~empty]
        is_row_end = is_row_end[~empty]
    _check_shape(array, begins, is_row_end, n_columns, line)
    starts, ends = begins.reshape(-1, n_columns), separators.reshape(-1, n_columns).copy()
    row_ends = ends[:, -1] + 1
    ends[:, -1] -= (array[ends[:, -1] - 1] == _RETURN) & (ends[:, -1] > starts[:, -1])
    return Fields(text, starts, ends, row_ends)


def first_row_end(text: bytes, delimiter: str) -> int:
    """Return the end of the first row of a text, just past its line end; 0 if there is none."""
    array = np.frombuffer(text, np.uint8)
    separators = _separators(text, array, delimiter)
    row_ends = separators[array[separators] == _NEWLINE]
    return int(row_ends[0]) + 1 if len(row_ends) else 0


def n_fields(text: bytes, delimiter: str) -> int:
    """Return the number of fields of a single row."""
    return len(_separators(text, np.frombuffer(text, np.uint8), delimiter))


def _separators(text: bytes, array: Bytes, delimiter: str) -> IntArray:
    """Return the ends of fields: delimiters and line ends that are not quoted."""
    separators = np.flatnonzero((array == ord(delimiter)) | (array == _NEWLINE))
    if _QUOTE not in text:
        return separators
    quotes = _quotes(array, ord(delimiter))
    return separators[np.searchsorted(quotes, separators) & 1 == 0]


def _check_shape(
    array: Bytes, begins: IntArray, is_row_end: BoolArray, n_columns: int, line: int
) -> None:
    """Check that every row has as many fields as the first line."""
    row_ends = np.flatnonzero(is_row_end)
    sizes = np.diff(row_ends, prepend=-1)
    wrong = np.flatnonzero(sizes != n_columns)
    if len(wrong):
        row = wrong[0]
        start = begins[row_ends[row] - sizes[row] + 1]
        line += int(np.count_nonzero(array[:start] == _NEWLINE))
        sizes_differ = f"has {sizes[row]} fields where the first line has {n_columns}"
        advice = "is a quote missing, or is the delimiter wrong?"
        raise ValueError(f"line {line:,} {sizes_differ}: {advice}")


def _quotes(array: Bytes, delimiter: int) -> IntArray:
    """Return the quotes that begin and end quoted fields, alternately; doubled ones cancel out."""
    quotes = np.flatnonzero(array == _QUOTE)
    before = array[np.maximum(quotes - 1, 0)]
    is_begin = (before == delimiter) | (before == _NEWLINE) | (quotes == 0)
    # If every quote that opens is at the start of a field or doubles the one before, they
    # alternate. Else there are quotes inside fields: 5" is not a quoted field.
    doubles = np.diff(quotes, prepend=-2) == 1
    if (is_begin | doubles)[::2].all():
        return quotes
    # Two side by side cancel out: each run leaves its first quote, or none.
    first = np.flatnonzero(~doubles)
    first = first[np.diff(first, append=len(quotes)) & 1 == 1]
    # At the start of a field a quote begins a quoted text, unless it ends one; elsewhere it can
    # only end one. So the parity of quotes at a start since the last one elsewhere decides.
    n_begin = np.cumsum(is_begin[first])
    n_before = np.maximum.accumulate(np.where(is_begin[first], 0, n_begin))
    is_inside = (n_begin - n_before) & 1 == 1
    return quotes[first[np.diff(is_inside, prepend=False)]]


def is_inside_quotes(text: bytes, delimiter: str) -> bool:
    """Whether a text ends within a quoted field."""
    return len(_quotes(np.frombuffer(text, np.uint8), ord(delimiter))) % 2 == 1


def unquoted(field: bytes) -> bytes:
    """Return the text of a field, without its quotes."""
    if not field.startswith(b'"'):
        return field
    inside = field[1:-1]
    if field.endswith(b'"') and b'"' not in inside.replace(b'""', b""):
        return inside.replace(b'""', b'"')
    found = _QUOTED.fullmatch(field)  # "a"b says ab
    return field if found is None else found[1].replace(b'""', b'"') + found[2]


def quoted(text: bytes, delimiter: bytes) -> bytes:
    """Return a text as a field, in quotes where it needs them."""
    if delimiter in text or b'"' in text or b"\n" in text or b"\r" in text:
        return b'"' + text.replace(b'"', b'""') + b'"'
    return text
