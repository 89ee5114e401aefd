"""The words that a reader of the report may not know."""

from ..measures import KL, Measure
from .sections import Section, facts

WORDS = {
    "attacker": "Whoever tries to learn from the release what is protected. It is assumed that "
    "attackers know how the release was made.",
    "blind guess": "The best guess of somebody who sees no release: always the most frequent one.",
    "budget": "Also epsilon: the most that the release may leak. Zero allows nothing; what it "
    "allows in percent is under 'What leaks'.",
    "channel": "The table of chances by which each symbol becomes one released value or another.",
    "confidence": "How often a limit that is found in this way is right: with 95%, in 95 of 100 "
    "tables like this one.",
    "group": "All people who have the same value in the protected column.",
    "leakage": "How much a released value changes what is known about the group of a person, on "
    "the scale of the budget.",
    "nat": "The unit of information, and of leakage by the measure kl. One answer of yes or no, "
    "if both were equally likely, is 0.69 nats.",
    "points": "Percentage points, the difference of two percentages: 53% are 3 points more than "
    "50%.",
    "population": "All people whom the rows could have been about. The sample is the rows "
    "themselves.",
    "symbol": "What the channel takes as one thing: a value, a range of numbers, a pool of rare "
    "values, or a cell of rows that are alike.",
}


def glossary() -> Section:
    """Return what the words mean."""
    return Section("Words", tables=[facts("Words of this report", WORDS)])


def unit(measure: Measure) -> str:
    """Return the unit of leakage as the end of a caption, if it has one."""
    return ", in nats" if isinstance(measure, KL) else ""
