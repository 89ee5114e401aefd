"""A report as text, for a terminal."""

import textwrap
from collections.abc import Iterator

from .sections import Section, Table

_WIDTH = 88


def as_text(title: str, sections: list[Section]) -> str:
    """Return the report as lines of text, with captions in place of pictures."""
    lines = [title, "=" * len(title)]
    for section in sections:
        lines += ["", section.title, "-" * len(section.title), *_lines(section)]
    return "\n".join(line.rstrip() for line in lines)


def _lines(section: Section) -> Iterator[str]:
    for paragraph in [section.lead, *section.paragraphs]:
        yield from textwrap.wrap(paragraph, _WIDTH)
    for points in section.points:
        yield from ["", f"{points.caption}:"]
        for sentence in points.sentences:
            yield from _hanging("- ", sentence)
    for figure in section.figures:
        yield from _hanging("- ", figure.caption)
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
    """Return a text after its start, and below where it starts."""
    # A fingerprint in two parts could not be searched for.
    wrapper = textwrap.TextWrapper(
        _WIDTH, initial_indent=start, subsequent_indent=" " * len(start), break_long_words=False
    )
    return wrapper.wrap(text) or [start]
