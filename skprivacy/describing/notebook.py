"""A mechanism in a notebook: sentences, and the channel as a small coloured table."""

from collections.abc import Sequence
from html import escape

import numpy as np

from .._typing import FloatArray, Labels
from .numbers import shown

# The rows and columns of the table, at most: the most frequent ones.
_MOST_SYMBOLS = 12

_STYLE = (
    "<style>"
    ".skprivacy-mechanism {font-size: .9em; line-height: 1.45; max-width: 60em}"
    ".skprivacy-mechanism p {margin: .2em 0}"
    ".skprivacy-mechanism div {overflow-x: auto}"
    ".skprivacy-mechanism table {border-collapse: collapse; margin-top: .6em; font-size: .9em}"
    ".skprivacy-mechanism caption {text-align: left; padding-bottom: .3em}"
    ".skprivacy-mechanism th {font-weight: normal; text-align: left; padding: .15em .5em}"
    ".skprivacy-mechanism tbody th {white-space: nowrap}"
    ".skprivacy-mechanism td {text-align: right; padding: .15em .5em; min-width: 3em}"
    "</style>"
)


def as_html(
    sentences: Sequence[str],
    channel: FloatArray,
    shares: tuple[FloatArray, FloatArray],
    labels: tuple[Labels, Labels],
) -> str:
    """Return a part of a page; shares, labels : P(X) and P(Y), and their symbols."""
    rows, columns = (_most_frequent(share) for share in shares)
    left_out = sum(channel.shape) - len(rows) - len(columns)
    caption = "The channel: how often a value of X (rows) is released as each value (columns)"
    caption += ", for the most frequent ones" if left_out else ""
    head = "".join(f'<th scope="col">{_text(labels[1][y])}</th>' for y in columns)
    body = "".join(
        f'<tr><th scope="row">{_text(labels[0][x])}</th>'
        + "".join(_cell(channel[x, y]) for y in columns)
        + "</tr>"
        for x in rows
    )
    paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    return (
        f'{_STYLE}<div class="skprivacy-mechanism">{paragraphs}<div><table>'
        f"<caption>{caption}</caption><thead><tr><td></td>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div></div>"
    )


def _most_frequent(share: FloatArray) -> list[int]:
    """Return the most frequent symbols, in their order."""
    return sorted(np.argsort(-share, kind="stable")[:_MOST_SYMBOLS].tolist())


def _text(label: object) -> str:
    return escape(shown(label)[1:-1])


def _cell(share: float) -> str:
    """Return a cell whose colour is as strong as its share; readable on light and dark pages."""
    text = f"{share:.0%}" if share >= 0.005 else ""
    return f'<td style="background: rgba(66, 133, 200, {0.75 * share:.2f})">{text}</td>'
