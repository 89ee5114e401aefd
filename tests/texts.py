"""What pages show of commands, and whether that is what commands print."""

import re
import textwrap
from typing import NamedTuple

CONSOLE = r"(?m)^( *)\.\. code-block:: console\n\n((?:\1   .*\n|\n)+)"
NUMBER = r"[+-]?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"


class Step(NamedTuple):
    """A command after a prompt, and what a page shows below it, which may be nothing."""

    command: str
    output: str


def steps_of(text):
    """The steps in the blocks of a page that are marked as console."""
    blocks = "\n".join(textwrap.dedent(found[2]) for found in re.finditer(CONSOLE, text))
    _, *parts = re.split(r"(?m)^\$ ", blocks.replace("\\\n", ""))
    for part in parts:
        command, _, output = part.partition("\n")
        yield Step(" ".join(command.split()), output.strip("\n"))


def is_said(shown, said, tolerance=0.05, noise=0.0):
    """Whether a text is what was said: the same words, and figures that are close.

    A design with a confidence comes from a search: rounding, which differs from one processor to
    the next, may lead it to another channel that is as good. Where lines end does not matter, and
    "..." stands for whatever is left out. noise : of figures that are drawn anew.
    """
    said, pieces = " ".join(said.split()), [" ".join(p.split()) for p in shown.split("...")]
    pattern = " ?.*? ?".join(_of_words(piece) for piece in pieces)
    if not (found := re.fullmatch(pattern, said)):
        return False
    pairs = zip(_figures(shown), map(_value, found.groups()), strict=True)
    return all(
        abs(a - b) <= max(tolerance * max(1.0 if a > 1 else 0.2, abs(a)), noise) for a, b in pairs
    )


def _of_words(piece):
    words = map(re.escape, re.split(NUMBER, piece))
    return f"({NUMBER})".join(words)


def _figures(text):
    return [_value(number) for number in re.findall(NUMBER, text)]


def _value(number):
    return float(number.replace(",", ""))
