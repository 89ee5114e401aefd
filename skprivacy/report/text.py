"""A report as text, for a terminal."""

import textwrap

from .sections import Section

_WIDTH = 88


def as_text(title: str, sections: list[Section]) -> str:
    """Return the report as lines of text, with captions in place of pictures."""
    lines = [title, "=" * len(title)]
    for section in sections:
        lines += ["", section.title, "-" * len(section.title)]
        for paragraph in section.paragraphs:
            lines += textwrap.wrap(paragraph, _WIDTH)
        for figure in section.figures:
            lines += textwrap.wrap(
                figure.caption, _WIDTH, initial_indent="- ", subsequent_indent="  "
            )
        for table in section.tables:
            lines += ["", f"{table.caption}:"]
            lines += textwrap.indent(table.cells.to_string(), "  ").splitlines()
    return "\n".join(line.rstrip() for line in lines)
