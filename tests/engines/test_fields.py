"""Delimited text: fields found and copied as bytes, and what their texts mean."""

import csv
import io
import time
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skprivacy.engines import csv_fields as fields_module
from skprivacy.engines.csv_fields import (
    Fields,
    first_row_end,
    is_inside_quotes,
    quoted,
    split,
    unquoted,
)
from skprivacy.engines.csv_files import as_texts, converted
from skprivacy.engines.csv_text import are_numbers

FIELD = st.text(st.sampled_from('ab,"\n\t 0é'), max_size=5)
LONG_FIELD = st.builds(str.__mul__, FIELD, st.sampled_from([1, 1, 1, 7, 60, 1000]))
ANY_FIELD = st.text(st.sampled_from('ab,"\n\r0é'), max_size=5)  # where all are quoted


def naive_quotes(text):
    """The quotes that begin and end quoted fields, one character after the other."""
    kept, i = [], 0
    while i < len(text):
        if text[i] == '"' and len(kept) % 2 and text[i + 1 : i + 2] == '"':
            i += 1  # a doubled one
        elif text[i] == '"' and (len(kept) % 2 or text[:i][-1:] in ("", ",", "\n")):
            kept.append(i)
        i += 1
    return kept


class TestFields:
    @given(st.lists(st.tuples(FIELD, FIELD, FIELD), max_size=8), st.sampled_from(["\n", "\r\n"]))
    def test_fields_are_those_of_the_csv_module(self, rows, line_end):
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator=line_end).writerows(rows)
        fields = split(text.getvalue().encode(), ",", 3, 1)
        found = [
            [fields.text[a:b] for a, b in zip(starts, ends, strict=True)]
            for starts, ends in zip(fields.starts, fields.ends, strict=True)
        ]
        assert [[unquoted(f).decode() for f in row] for row in found] == [list(r) for r in rows]

    @given(st.text(st.sampled_from('a,"\n'), max_size=12), st.integers(1, 3))
    def test_any_text_is_read_like_the_csv_module_or_refused(self, text, n_columns):
        text = text.removesuffix("\n") + "\n"
        expected = [
            row for row in csv.reader(io.StringIO(text, newline="")) if row or n_columns == 1
        ]
        expected = [row or [""] for row in expected]
        if any(len(row) != n_columns for row in expected):
            return
        try:
            fields = split(text.encode(), ",", n_columns, 1)
        except ValueError:
            return
        if len(fields) < len(expected):  # a quoted field that does not end is not complete
            assert text.count('"') % 2 or '"' in text
            return
        for column in range(n_columns):
            codes, values = fields.distinct(column)
            texts = [unquoted(values[code]).decode() for code in codes]
            assert texts == [row[column] for row in expected]

    @given(st.lists(st.tuples(ANY_FIELD, ANY_FIELD, ANY_FIELD), min_size=1, max_size=6))
    def test_splicing_copies_texts(self, rows):
        text = io.StringIO(newline="")
        csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
        fields = split(text.getvalue().encode(), ",", 3, 1)
        codes = np.arange(len(rows)) % 2
        spliced = fields.spliced([0, (codes, [b"yes", b"no"]), 2], b",", b"\n").tobytes().decode()
        again = list(csv.reader(io.StringIO(spliced, newline="")))
        assert again == [[a, ["yes", "no"][i % 2], c] for i, (a, _, c) in enumerate(rows)]
        plainly = [b",".join(quoted(field.encode(), b",") for field in row) for row in rows]
        copied = fields.spliced([0, 1, 2], b",", b"\n").tobytes()
        assert copied == b"".join(row + b"\n" for row in plainly)
        dropped = fields.spliced([1, 2], b",", b"\n").tobytes().decode()
        assert list(csv.reader(io.StringIO(dropped, newline=""))) == [[b, c] for _, b, c in rows]

    @given(st.lists(st.tuples(ANY_FIELD, st.booleans(), st.booleans()), min_size=1, max_size=8))
    def test_how_a_field_was_quoted_is_not_copied(self, drawn):
        """Of two rows with one text, none tells which of them had quotes."""

        def written(text, has_quotes):
            field = quoted(text.encode(), b",")
            return b'"%s"' % field if has_quotes and not field.startswith(b'"') else field

        def copied(rows):
            text = b"".join(b"x,%s,y\n" % row for row in rows)
            return split(text, ",", 3, 1).spliced([1, 0], b",", b"\n").tobytes()

        texts, *has_quotes = zip(*drawn, strict=True)
        assert copied(map(written, texts, has_quotes[0])) == copied(
            map(written, texts, has_quotes[1])
        )

    @pytest.mark.parametrize(
        ("field", "expected"),
        [
            (b'"a"', b"a"),
            (b'""', b""),
            (b'"a"b', b"ab"),
            (b'"a,b"', b'"a,b"'),
            (b'5" pipe', b'"5"" pipe"'),
            (b"a\rb", b'"a\rb"'),
            (b'"007"', b"007"),
        ],
    )
    def test_quotes_are_where_a_text_needs_them(self, field, expected):
        fields = split(b"%s,x\n" % field, ",", 2, 1)
        assert fields.spliced([0, 1], b",", b"\n").tobytes() == b"%s,x\n" % expected

    @pytest.mark.parametrize("order", list(permutations(range(3))))
    def test_columns_may_be_copied_in_any_order(self, order):
        fields = split(b"a,bb,ccc\r\nd,ee,\r\n", ",", 3, 1)
        rows = [[b"a", b"bb", b"ccc"], [b"d", b"ee", b""]]
        expected = b"".join(b",".join(row[c] for c in order) + b"\r\n" for row in rows)
        assert fields.spliced(list(order), b",", b"\r\n").tobytes() == expected
        new = (np.array([1, 0]), [b"x", b"yy"])
        expected = b"".join(
            b",".join([row[order[0]], text, row[order[1]]]) + b"\r\n"
            for row, text in zip(rows, [b"yy", b"x"], strict=True)
        )
        assert fields.spliced([order[0], new, order[1]], b",", b"\r\n").tobytes() == expected

    def test_a_quote_inside_of_a_field_is_a_character(self):
        fields = split(b'5" pipe,a\n"x,y",b\n6",c\n', ",", 2, 1)
        codes, values = fields.distinct(0)
        assert [values[code] for code in codes] == [b'5" pipe', b'"x,y"', b'6"']

    def test_what_is_not_complete_is_left(self):
        assert len(split(b'a,b\n"c\n', ",", 2, 1)) == 1
        assert len(split(b"", ",", 2, 1)) == 0

    def test_a_row_with_too_few_fields_is_named(self):
        with pytest.raises(ValueError, match="line 12 has 1 fields where the first line has 2"):
            split(b'a,"b\nb"\n\nc\n', ",", 2, 9)

    def test_long_fields_and_colliding_ones(self, monkeypatch):
        rows = [b"x" * 1000 if i == 3 else b"%d" % (i % 5) for i in range(100)]
        text = b"\n".join(rows) + b"\n"
        codes, values = split(text, ",", 1, 1).distinct(0)
        assert [values[code] for code in codes] == rows
        monkeypatch.setattr(
            "skprivacy.engines.csv_fields.ODD_FACTOR", np.uint64(0)
        )  # all mixed alike
        codes, values = split(text[:40], ",", 1, 1).distinct(0)
        assert [values[code] for code in codes] == rows[:3]
        codes, values = split(b"a\nb\na\nabcdefghi\n", ",", 1, 1).distinct(0)
        assert [values[code] for code in codes] == [b"a", b"b", b"a", b"abcdefghi"]

    @given(st.lists(st.tuples(LONG_FIELD, LONG_FIELD), min_size=1, max_size=30), st.booleans())
    def test_long_fields_among_short_ones(self, rows, all_quoted):
        text = io.StringIO(newline="")
        quoting = csv.QUOTE_ALL if all_quoted else csv.QUOTE_MINIMAL
        csv.writer(text, quoting=quoting, lineterminator="\n").writerows(rows)
        fields = split(text.getvalue().encode(), ",", 2, 1)
        for column in range(2):
            codes, values = fields.distinct(column)
            assert len(set(values)) == len(values)
            assert [unquoted(values[code]).decode() for code in codes] == [r[column] for r in rows]
            assert fields.holds(column, values[codes[-1]])
        assert [unquoted(field).decode() for field in fields.row(0)] == list(rows[0])
        new = (np.zeros(len(rows), dtype=int), [b"new"])
        spliced = fields.spliced([1, new, 0], b",", b"\n").tobytes().decode()
        again = list(csv.reader(io.StringIO(spliced, newline="")))
        assert again == [[b, "new", a] for a, b in rows]

    @given(st.text(st.sampled_from('a,"\n'), max_size=20))
    def test_which_line_ends_and_delimiters_are_quoted(self, text):
        quotes = naive_quotes(text)
        assert is_inside_quotes(text.encode(), ",") == len(quotes) % 2
        ends = [i for i, c in enumerate(text) if c == "\n" and sum(q < i for q in quotes) % 2 == 0]
        assert first_row_end(text.encode(), ",") == (ends[0] + 1 if ends else 0)

    @pytest.mark.parametrize(
        "field",
        [b"x" * (1 << 24), b'"%s"' % (b'x\n,""' * (1 << 21)), b'a"%s' % (b'b"' * (1 << 22))],
        ids=["plain", "quoted", "quotes inside"],
    )
    def test_a_field_of_many_megabytes(self, field, monkeypatch):
        words, asked = fields_module.words_of, []

        def counted(text, starts, lengths):
            asked.append(int(lengths.max(initial=0)))
            return words(text, starts, lengths)

        monkeypatch.setattr(fields_module, "words_of", counted)
        began = time.perf_counter()
        fields = split(b"1,short\n2,%s\n3,short\n" % field, ",", 2, 1)
        codes, values = fields.distinct(1)
        assert unquoted(values[codes[1]]) == unquoted(field)
        assert codes[0] == codes[2] != codes[1]
        copied = fields.spliced([1, (np.zeros(3, dtype=int), [b"new"])], b",", b"\n").tobytes()
        written = quoted(unquoted(field), b",")
        assert copied == b"short,new\n%s,new\nshort,new\n" % written
        assert max(asked) <= 256  # eight bytes of all fields at a time, for so many only
        assert time.perf_counter() - began < 20

    def test_fields_are_quoted_where_they_must_be(self):
        assert quoted(b"plain", b",") == b"plain"
        assert quoted(b'a,"b"', b",") == b'"a,""b"""'
        assert isinstance(split(b"a\n", ",", 1, 1), Fields)


class TestTexts:
    @pytest.mark.parametrize(
        ("texts", "expected"),
        [
            (["1", "2.5", "-3e4", " 7 ", "", "NA"], True),
            (["00123", "12"], False),
            (["0", "0.5", "10"], True),
            (["1", "two"], False),
            (["", "NA"], False),
            (["inf", "1"], False),
            (["9223372036854775807", "1"], True),
            (["10000000000000000001", "10000000000000000002"], False),
            (["9007199254740993", "1.5"], False),
            (["\u0661", "1"], False),
        ],
    )
    def test_which_columns_are_numbers(self, texts, expected):
        assert are_numbers(texts) is expected

    def test_long_texts_are_read_once(self):
        began = time.perf_counter()
        digits = "1" * 100_000
        assert not are_numbers([digits + "x"])
        assert not are_numbers([f"1.{digits}e5x", " " * 100_000 + "x"])
        assert not are_numbers([digits])  # not told apart from others
        assert are_numbers([f"1.{digits}"])
        with pytest.raises(ValueError, match="too large to be exact"):
            converted(pd.Series(pd.Categorical([digits])), "numbers", "age")
        zeros = pd.Series(pd.Categorical(["0" * 5000 + "7", "-" + "0" * 5000]))
        assert converted(zeros, "numbers", "age").tolist() == [7, 0]
        assert time.perf_counter() - began < 5

    def test_texts_and_back(self):
        column = pd.Series(pd.Categorical(["1", "", "20", "NA", "1"]))
        numbers = converted(column, "numbers", "n")
        assert numbers.tolist() == [1, pd.NA, 20, pd.NA, 1]
        codes, texts = as_texts(numbers)
        assert [texts[code] for code in codes] == ["1", "", "20", "", "1"]
        floats = converted(pd.Series(pd.Categorical(["1.50", "2", "1e300"])), "numbers", "n")
        assert as_texts(floats)[1] == ["1.5", "2", "1e+300", ""]
        assert converted(
            pd.Series(pd.Categorical(["true", "False", ""])), "bool", "b"
        ).tolist() == [
            True,
            False,
            pd.NA,
        ]
        times = converted(pd.Series(pd.Categorical(["2026-01-02", ""])), "times", "t")
        assert times[0] == pd.Timestamp("2026-01-02")
        assert times.isna().tolist() == [False, True]
        categories = converted(pd.Series(pd.Categorical(["NA", "", "00"])), "str", "s")
        assert categories.isna().tolist() == [False, True, False]

    @pytest.mark.parametrize(
        ("family", "word"), [("numbers", "a number"), ("bool", "true or false")]
    )
    def test_a_text_that_does_not_mean_that(self, family, word):
        with pytest.raises(
            ValueError, match=f"column 'age' holds a text where {word} is expected"
        ):
            converted(pd.Series(pd.Categorical(["old"])), family, "age")
