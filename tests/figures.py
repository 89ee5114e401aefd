"""Figures in prose: what a page quotes, and whether it follows from what was printed."""

import re
from typing import NamedTuple

NUMBER = r"\d[\d,]*(?:\.\d+)?|\.\d+"
QUOTED = re.compile(rf"(?<![\w.,/^*-])({NUMBER})(%| (?:points?|s|ms|seconds|MB|GB)\b)?(?![\w^])")
PRINTED = re.compile(rf"(?<![\w.])({NUMBER})(?:e(-?\d+))?(%?)")
# Blocks that are not prose: they are run, recorded, or drawn.
ASIDE = r"code-block|literalinclude|include|math|plot|toctree|minigallery|autosummary|auto\w+"


class Figure(NamedTuple):
    """A number as it is quoted: with decimals, as a percentage, or with a unit."""

    text: str
    value: float
    decimals: int
    is_percentage: bool


def prose_of(rst):
    """The text of a page without examples, code, formulas and options of directives."""
    text = re.sub(r"^( *)>>> .*\n(?:\1\S.*\n|\1 .*\n)*", "\n", rst, flags=re.MULTILINE)
    text = re.sub(rf"^( *)\.\. (?:{ASIDE})::.*\n(?:\1 +.*\n|\n)*", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"^ *:[\w-]+:.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"``.*?``", "", text, flags=re.DOTALL)
    return re.sub(r":\w+:`.*?`|<[^>]*>", "", text, flags=re.DOTALL)


def prose_of_markdown(text):
    """The same of a page in Markdown: without blocks of code, code in lines, and links."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)


def quoted_in(prose):
    """Figures that have to come from somewhere: with decimals, a percent sign, or a unit."""
    for found in QUOTED.finditer(prose):
        number, unit = found.groups()
        if "." in number or unit:
            decimals = len(number.partition(".")[2])
            value = float(number.replace(",", ""))
            is_percentage = unit in ("%", " points", " point")
            yield Figure(found[0].strip(), value, decimals, is_percentage)


def printed_in(text):
    """Numbers in an output, each as a number and, if it may be one, as a percentage."""
    numbers, percentages = set(), set()
    for number, exponent, percent in PRINTED.findall(text):
        value = float(number.replace(",", "")) * 10 ** int(exponent or 0)
        (percentages if percent else numbers).add(value)
    return numbers, percentages


def is_printed(figure, printed):
    """Whether it is one of the numbers, rounded, or a number that it says as a percentage."""
    numbers, percentages = printed
    if figure.is_percentage:
        # A column of percentages or of points may have its sign in the head alone.
        numbers = percentages | numbers | {100 * number for number in numbers}
    tolerance = 0.5001 * 10**-figure.decimals
    return any(abs(number - figure.value) <= tolerance for number in numbers)
