"""A report as HTML: one file, no network, readable on a phone, in print and in the dark."""

import base64
from collections.abc import Callable
from html import escape
from importlib import resources
from typing import Any

from ..plotting import svg_of
from .sections import Figure, Section, Table

_DARK = "screen and (prefers-color-scheme: dark)"  # not in print

# The same picture for a light and for a dark page.
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


def as_page(title: str, fragment: str) -> str:
    """Return a fragment as a whole page."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n</head>\n"
        f'<body class="skprivacy-page">\n<main>\n{fragment}\n</main>\n</body>\n</html>\n'
    )


def as_fragment(title: str, sections: list[Section]) -> str:
    """Return the report as a part of a page: what a notebook shows."""
    style = resources.files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    body = "\n".join(map(_section, sections))
    return (
        f"<style>\n{style}</style>\n"
        f'<article class="skprivacy-report">\n<h1>{escape(title)}</h1>\n{body}\n</article>'
    )


def _section(section: Section) -> str:
    parts = [f"<section>\n<h2>{escape(section.title)}</h2>"]
    parts += [f"<p>{escape(paragraph)}</p>" for paragraph in section.paragraphs]
    parts += map(_table, section.tables)
    parts += map(_figure, section.figures)
    return "\n".join([*parts, "</section>"])


def _table(table: Table) -> str:
    head = "".join(f'<th scope="col">{escape(str(name))}</th>' for name in table.cells.columns)
    rows = "\n".join(
        f'<tr><th scope="row">{escape(str(name))}</th>'
        + "".join(f"<td>{escape(str(cell))}</td>" for cell in cells)
        + "</tr>"
        for name, *cells in table.cells.itertuples()
    )
    kind = ' class="facts"' if len(table.cells.columns) == 1 else ""
    corner = f'<th scope="col">{escape(str(table.cells.index.name or ""))}</th>'
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.caption)}">'
        f"<table{kind}>\n<caption>{escape(table.caption)}</caption>\n"
        f"<thead><tr>{corner}{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table></div>"
    )


def _figure(figure: Figure) -> str:
    images = {name: _image(figure.draw, name) for name in _STYLES}
    width = images["light"][1]
    alt = escape(figure.alt)
    return (
        f'<figure><div class="scroll" tabindex="0" role="region" aria-label="{alt}, figure">'
        f'<picture><source media="{_DARK}" srcset="{images["dark"][0]}">'
        f'<img src="{images["light"][0]}" alt="{alt}" width="{width}" '
        f'style="min-width: min({0.62 * width:.0f}px, 32rem)"></picture></div>'
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
    )


def _image(draw: Callable[..., Any], style: str) -> tuple[str, int]:
    """Return a picture as the address of its own bytes, and its width in pixels."""
    content, width = svg_of(lambda: draw(is_dark=style == "dark"), _STYLES[style])
    return "data:image/svg+xml;base64," + base64.b64encode(content).decode(), width
