"""Figures in prose: what a page quotes, and whether it follows from what was printed."""

import re
from typing import NamedTuple

from texts import steps_of

NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
QUOTED = re.compile(rf"(?<![\w.,/^*-])({NUMBER})(%| (?:points?|s|ms|seconds|MB|GB)\b)?(?![\w^])")
PRINTED = re.compile(rf"(?<![\w.])({NUMBER})(?:e(-?\d+))?(%?)")
EXAMPLE = r"(?m:^ *>>> .*\n(?:^ *\S.*\n)*)"
MARKDOWN_BLOCK = r"(?ms:^```.*?^```)"
# Blocks that are not prose: they are run, recorded, or drawn.
ASIDE = r"code-block|literalinclude|include|math|plot|toctree|minigallery|autosummary|auto\w+"


class Figure(NamedTuple):
    """A number as it is quoted, with its unit if it has one."""

    text: str
    value: float
    decimals: int
    unit: str


def prose_of(text, name):
    """The text of a page without examples, code, formulas and options of directives."""
    if name.endswith(".md"):
        text = re.sub(MARKDOWN_BLOCK, "", text)
        return re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)
    text = re.sub(EXAMPLE, "\n", text)
    text = re.sub(rf"(?m)^( *)\.\. (?:{ASIDE})::.*\n(?:\1 +.*\n|\n)*", "\n", text)
    text = re.sub(r"(?m)^ *:[\w-]+:(?: .*)?$", "", text)
    return re.sub(r"(?s)``.*?``|:\w+:`.*?`|<[^>`]*>`_", "", text)


def examples_in(text):
    """What a page shows that is run: examples, what commands print, blocks of Markdown."""
    blocks = [found[0] for found in re.finditer(rf"{EXAMPLE}|{MARKDOWN_BLOCK}", text)]
    return "\n".join([*blocks, *(step.output for step in steps_of(text))])


def quoted_in(prose):
    """Figures that have to come from somewhere: large, with decimals, a percent sign or a unit."""
    for found in QUOTED.finditer(prose):
        number, unit = found.groups()
        if "." in number or "," in number or unit:
            decimals = len(number.partition(".")[2])
            value = float(number.replace(",", ""))
            yield Figure(found[0].strip(), value, decimals, (unit or "").strip())


def printed_in(text):
    """Numbers in an output, and percentages."""
    text = re.sub(r"(?<=\d)_(?=\d{3})", "", text)  # as Python writes large numbers
    numbers, percentages = set(), set()
    for number, exponent, percent in PRINTED.findall(text):
        value = float(number.replace(",", "")) * 10 ** int(exponent or 0)
        (percentages if percent else numbers).add(value)
    return numbers, percentages


def is_printed(figure, printed):
    """Whether it is one of the numbers, rounded, or a number that it says as a percentage."""
    numbers, percentages = printed
    if figure.unit == "%":
        numbers = percentages | {100 * number for number in numbers}
    elif figure.unit.startswith("point"):  # a column of points has the word in its head
        numbers = numbers | {100 * number for number in numbers}
    tolerance = 0.5001 * 10**-figure.decimals
    return any(abs(number - figure.value) <= tolerance for number in numbers)
