"""What the report says about cells, and about a target that may be known beside the release."""

from ..fitted import Fitted
from ..measures.leakage import leakage_in, output_values, posteriors
from .sections import Section, Table

# As many cells as fit on a page.
_MOST_LISTED = 30

_WHAT_CELLS_ARE = (
    "Rows that are alike share a cell. The channel is designed for cells: it says which cell is "
    "released for the cell of a row, and what is shown depends on the released cell alone. So "
    "every figure about it holds for whole rows, and a row with values that were never seen "
    "has a cell too."
)


def cells_section(fitted: Fitted) -> list[Section]:
    """Return the rules of the largest cells, if symbols are cells."""
    if (described := fitted.cells) is None:
        return []
    largest = described.sort_values("share", ascending=False, kind="stable").head(_MOST_LISTED)
    title = f"All {len(described)} cells"
    if len(largest) < len(described):
        title = (
            f"The {len(largest)} largest of {len(described)} cells, "
            f"{largest['share'].sum():.0%} of the rows"
        )
    shown = largest[["share", "rule"]].assign(share=[f"{x:.1%}" for x in largest["share"]])
    return [Section("The cells", [_WHAT_CELLS_ARE], [Table(title, shown)])]


def target_beside(fitted: Fitted, protected: str) -> list[str]:
    """Say what whoever knows the target as well as the release learns; protected : S."""
    training, mechanism = fitted.training, fitted.mechanism
    if training is None or training.with_target is None:
        return []
    counts = training.with_target / training.with_target.sum()
    p_s = counts.sum(axis=(1, 2))
    together = (counts @ mechanism.channel).reshape(len(p_s), -1)  # P(s, (v, y))
    p_vy = together.sum(axis=0)
    values = output_values(mechanism.measure, posteriors(together, p_vy, p_s), p_s)
    figure = leakage_in(mechanism.scope, mechanism.measure, values, p_vy)
    alone = counts.sum(axis=2)
    p_v = alone.sum(axis=0)
    by_target = output_values(mechanism.measure, posteriors(alone, p_v, p_s), p_s)
    of_target = leakage_in(mechanism.scope, mechanism.measure, by_target, p_v)
    return [
        f"The target is not part of the release. Together with it, a released value reveals up to "
        f"{figure:.4g} about {protected} in these rows; the target alone, {of_target:.4g}. To "
        f"publish the target too, release it with the others, or beside them, under the budget."
    ]
