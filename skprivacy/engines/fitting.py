"""What `fit` gets of a lazy frame: counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..fit_inputs import FitInputs, Roles, layout_of_names
from ..layout import Layout
from ..leak_warnings import warn_of_unjudged
from ..tally import MOST_DISTINCT, edges_of
from ..utilities import Target
from .base import LazyTable

if TYPE_CHECKING:
    from ..transformer import PrivacyFunnelTransformer


def lazy_inputs(
    settings: PrivacyFunnelTransformer,
    table: LazyTable,
    y: Any,
    sensitive_features: Any,
    sample_weight: Any,
) -> FitInputs:
    """Count S and X of a lazy frame as the parameters of a transformer name them."""
    for name, value in (
        ("sensitive_features", sensitive_features),
        ("sample_weight", sample_weight),
    ):
        if value is not None:
            raise TypeError(
                f"{name} cannot be passed beside a lazy frame, whose rows are elsewhere: make it "
                f"a column of the frame, with sensitive=... for S."
            )
    layout = layout_of_names(settings, table.names, "the frame")
    roles = _roles(settings, layout, y)
    index = table.checked_index(roles.s, type(settings).__name__)
    names = list(dict.fromkeys([*roles.s, *roles.x, *(roles.target or ())]))
    edges = edges_of(settings.n_bins, roles.x)
    columns, counts = table.count(names, edges, MOST_DISTINCT)
    if not len(counts):
        owner = type(settings).__name__
        raise ValueError(f"Found a frame with 0 rows while {owner} needs at least one row.")
    in_roles = [columns[name] for name in (*roles.s, *roles.x, *(roles.target or ()))]
    warn_of_unjudged([*index, *(layout.name(p) for p in layout.kept_positions)])
    return FitInputs(layout, table.types(roles.x), roles.rows(in_roles, counts))


def _roles(settings: PrivacyFunnelTransformer, layout: Layout, y: Any) -> Roles:
    s = tuple(layout.name(p) for p in layout.s_positions)
    x = tuple(layout.name(p) for p in layout.x_positions)
    if not (isinstance(settings.utility, str) and settings.utility == Target.name):
        return Roles(s, x)
    owner = type(settings).__name__
    if not isinstance(y, str) or y not in (layout.names or ()) or y in s:
        raise ValueError(
            f"{owner} with utility='target' needs the name of a column of the lazy frame as y, "
            f"which is not sensitive."
        )
    return Roles(s, x, (y,))
