"""What the report says about single groups of S: how far a released value moves their shares."""

import pandas as pd

from ..describing import exposure, ranges_of, reached_or_allowed, shown
from ..mechanism import Mechanism
from .sections import Table

# Groups that the table lists, at most: the most exposed ones.
_MOST_GROUPS = 20


def most_exposed_group(mechanism: Mechanism) -> str:
    """Say how far the probability of the most exposed group can move."""
    return exposure(mechanism.posterior_ranges(), [shown(label) for label in _labels(mechanism)])


def exposed_groups(mechanism: Mechanism, protected: str) -> Table:
    """Return the table of how far the probability of each group can move; protected : S."""
    ranges = mechanism.posterior_ranges()
    cells = pd.DataFrame(
        {
            "allowed by the budget": _between(ranges, "allowed"),
            "reached in the rows": _between(ranges, "reached"),
            "share": [f"{share:.1%}" for share in ranges["prior"]],
        },
        index=pd.Index([shown(label)[1:-1] for label in _labels(mechanism)], name="group"),
    )
    widths = pd.Series([found.width for found in ranges_of(ranges)])
    kept = widths.sort_values(ascending=False, kind="stable").index[:_MOST_GROUPS].sort_values()
    some = f" ({_MOST_GROUPS} of {len(cells)} groups: the most exposed)"
    caption = f"The probability of each group of {protected}, for whoever sees a released value"
    return Table(caption + (some if len(kept) < len(cells) else ""), cells.iloc[kept])


def _labels(mechanism: Mechanism) -> tuple[object, ...]:
    return mechanism.s_labels or ()


def _between(ranges: pd.DataFrame, kind: str) -> list[str]:
    if ranges[f"{kind}_low"].isna().any():
        return ["anything"] * len(ranges)
    return ["{} to {}".format(*found.ends()) for found in reached_or_allowed(ranges, kind)]
