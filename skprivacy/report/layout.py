"""Parts of a report, rendered as text and as HTML."""

from __future__ import annotations

import base64
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from html import escape
from importlib import resources
from typing import Any

import pandas as pd

from ..describing.verdict import CAUTION, PASS
from ..plotting import svg_of

# A cell to fill in by hand.
BLANK = "_" * 24


@dataclass(frozen=True, eq=False)
class Figure:
    """A picture: `draw` returns a matplotlib figure.

    alt : its title; caption : what it shows.
    """

    alt: str
    caption: str
    draw: Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Table:
    """A table of texts with a caption; its index has the row headers."""

    caption: str
    cells: pd.DataFrame

    @property
    def is_facts(self) -> bool:
        """Whether it is a list of names with a text each."""
        return len(self.cells.columns) == 1


@dataclass(frozen=True, eq=False)
class Points:
    """A list of sentences with a caption."""

    caption: str
    sentences: list[str]


@dataclass(frozen=True, eq=False)
class Section:
    """A heading and its content.

    lead : the most important sentences; status : their verdict in a word, for the colour.
    """

    title: str
    paragraphs: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    points: list[Points] = field(default_factory=list)
    lead: str = ""
    status: str = ""


def facts(caption: str, texts: dict[str, str]) -> Table:
    """Return a table of names with a text each."""
    return Table(caption, pd.DataFrame({"": texts}, dtype=object))


def rows_text(number: float) -> str:
    """Return a number of rows, which weights may make fractional: "1 row", "2.5 rows"."""
    text = f"{number:,.1f}".removesuffix(".0")
    return f"{text} row" if text == "1" else f"{text} rows"


# The report as text.


_WIDTH = 88


def as_text(title: str, sections: list[Section]) -> str:
    """Return the report as text, with captions in place of pictures."""
    lines = [title, "=" * len(title)]
    for section in sections:
        lines += ["", section.title, "-" * len(section.title), *_lines(section)]
    return "\n".join(line.rstrip() for line in lines)


def _lines(section: Section) -> Iterator[str]:
    for paragraph in [section.lead, *section.paragraphs]:
        yield from textwrap.wrap(paragraph, _WIDTH)
    for figure in section.figures:
        yield from _hanging("- ", figure.caption)
    for points in section.points:
        yield from ["", f"{points.caption}:"]
        for sentence in points.sentences:
            yield from _hanging("- ", sentence)
    for table in section.tables:
        yield from ["", f"{table.caption}:", *_rows(table)]


def _rows(table: Table) -> list[str]:
    if not table.is_facts:
        return textwrap.indent(table.cells.to_string(), "  ").splitlines()
    names = [str(name) for name in table.cells.index]
    width = max(map(len, names), default=0)
    texts = table.cells.iloc[:, 0]
    pairs = zip(names, texts, strict=True)
    return [line for name, text in pairs for line in _hanging(f"  {name:{width}}  ", str(text))]


def _hanging(start: str, text: str) -> list[str]:
    """Return a wrapped text with a hanging indent below its start."""
    # A fingerprint broken into two lines could not be searched for.
    wrapper = textwrap.TextWrapper(
        _WIDTH, initial_indent=start, subsequent_indent=" " * len(start), break_long_words=False
    )
    return wrapper.wrap(text) or [start]


# The report as HTML: one file, no network, readable on phones, in print and in dark mode.


_DARK = "screen and (prefers-color-scheme: dark)"  # not in print

# Styles of pictures on light and dark pages.
_STYLES = {
    "light": {},
    "dark": {
        "text.color": "#e6e6e6",
        "axes.labelcolor": "#e6e6e6",
        "axes.edgecolor": "#9a9a9a",
        "xtick.color": "#e6e6e6",
        "ytick.color": "#e6e6e6",
        "grid.color": "#9a9a9a",
        "legend.labelcolor": "#e6e6e6",
        "legend.facecolor": "none",
    },
}

# Pictures wider than this, and tables with as many columns, scroll on narrow pages instead of
# shrinking, with a hint. The style sheet has the same width in rem.
_WIDE, _WIDE_COLUMNS = 544, 5

# Longer words in a table may not fit on a phone.
_LONGEST_WORD = 11

# In print, longer lists of facts are set in two columns, and tables of up to so many rows are not
# broken. Cells with so many spaces are sentences.
_LIST, _SHORT, _SENTENCE = 9, 16, 4

# Below this scale, the labels of a picture cannot be read.
_SMALLEST_SCALE = 0.62

# CSS classes: green, amber, and red for all others.
_COLOURS = {PASS: "pass", CAUTION: "caution"}

_HINT = '<p class="hint">Wider than the page: scroll it sideways →</p>'


def as_page(title: str, fragment: str) -> str:
    """Return a fragment as a complete page."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n</head>\n"
        f'<body class="skprivacy-page">\n<main>\n{fragment}\n</main>\n</body>\n</html>\n'
    )


def as_fragment(title: str, sections: list[Section]) -> str:
    """Return the report as an HTML fragment, as notebooks show it."""
    style = resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    body = "\n".join(map(_section, sections))
    return (
        f"<style>\n{style}</style>\n"
        f'<article class="skprivacy-report">\n<h1>{escape(title)}</h1>\n{body}\n</article>'
    )


def _section(section: Section) -> str:
    parts = [f"<section>\n<h2>{escape(section.title)}</h2>"]
    if section.lead:
        kind = _COLOURS.get(section.status, "fail")
        parts.append(f'<p class="lead {kind}">{escape(section.lead)}</p>')
    parts += [f"<p>{escape(paragraph)}</p>" for paragraph in section.paragraphs]
    parts += map(_figure, section.figures)
    for points in section.points:
        sentences = "\n".join(f"<li>{escape(sentence)}</li>" for sentence in points.sentences)
        parts.append(f"<h3>{escape(points.caption)}</h3>\n<ul>\n{sentences}\n</ul>")
    parts += map(_table, section.tables)
    return "\n".join([*parts, "</section>"])


def _table(table: Table) -> str:
    rows = "\n".join(
        f"<tr>{_cell(name, 'th', 'row')}{''.join(map(_cell, cells))}</tr>"
        for name, *cells in table.cells.itertuples()
    )
    kind, head = "facts", ""
    if not table.is_facts:  # a name and a text need no headers
        names = [table.cells.index.name or "", *table.cells.columns]
        cells = "".join(_cell(name, "th", "col") for name in names)
        kind, head = "figures", f"<thead><tr>{cells}</tr></thead>\n"
    caption = f"<caption><span>{escape(table.caption)}</span></caption>"
    if len(table.cells) > _LIST and table.is_facts:
        kind += " list"
    elif len(table.cells) <= _SHORT:
        kind += " short"
    content = f'<table class="{kind}">\n{caption}\n{head}<tbody>\n{rows}\n</tbody></table>'
    has_blanks = not table.is_facts and BLANK in table.cells.to_numpy()
    is_wide = has_blanks or len(table.cells.columns) + 1 >= _WIDE_COLUMNS
    return _scrolling(content, table.caption, is_wide)


def _cell(content: object, tag: str = "td", scope: str = "") -> str:
    """Return a cell of a table; scope : of a header."""
    if content == BLANK:
        return '<td class="blank"></td>'
    text, start = str(content), f'{tag} scope="{scope}"' if scope else tag
    # Only long words may be broken: a number on two lines is misread.
    is_long = max(map(len, text.replace("-", " ").split()), default=0) > _LONGEST_WORD
    kinds = ["long"] * is_long + ["text"] * (text.count(" ") >= _SENTENCE)
    start += f' class="{" ".join(kinds)}"' if kinds else ""
    return f"<{start}>{escape(text)}</{tag}>"


def _scrolling(content: str, name: str, is_wide: bool) -> str:
    """Return content that fits the page or, if it `is_wide`, scrolls on narrow pages."""
    if not is_wide:
        return f'<div class="fits">{content}</div>'
    return (
        f'{_HINT}<div class="scroll" tabindex="0" role="region" '
        f'aria-label="{escape(name)}">{content}</div>'
    )


def _figure(figure: Figure) -> str:
    addresses, width, alt = {}, 0, escape(figure.alt)
    for name in ("dark", "light"):
        content, width = svg_of(partial(figure.draw, is_dark=name == "dark"), _STYLES[name])
        addresses[name] = f"data:image/svg+xml;base64,{base64.b64encode(content).decode()}"
    picture = (
        f'<picture><source media="{_DARK}" srcset="{addresses["dark"]}">'
        f'<img src="{addresses["light"]}" alt="{alt}" width="{width}" '
        f'style="--least: {_SMALLEST_SCALE * width:.0f}px"></picture>'
    )
    caption = f"<figcaption>{escape(figure.caption)}</figcaption>"
    shown = _scrolling(picture, f"{figure.alt}, figure", width > _WIDE)
    return f"<figure>{shown}{caption}</figure>"
