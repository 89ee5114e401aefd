"""Texts that are the same but for their figures, where these depend a little on the machine."""

import re

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def _figures(text):
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def alike(shown, said, tolerance=0.05):
    """Whether two texts have the same words, and figures that are close.

    A design with a confidence comes from a search: rounding, which differs from one processor to
    the next, may lead it to another channel that is as good.
    """
    words = [" ".join(NUMBER.sub("0", text).split()) for text in (shown, said)]
    if words[0] != words[1]:
        return False
    pairs = zip(_figures(shown), _figures(said), strict=True)
    return all(abs(a - b) <= tolerance * max(1.0 if a > 1 else 0.2, a) for a, b in pairs)


def is_said(shown, said, tolerance=0.05):
    """Whether some lines of a long text are alike the lines that are shown."""
    lines, wanted = said.splitlines(), shown.strip("\n").splitlines()
    starts = range(len(lines) - len(wanted) + 1)
    parts = ("\n".join(lines[start : start + len(wanted)]) for start in starts)
    return any(alike("\n".join(wanted), part, tolerance) for part in parts)
