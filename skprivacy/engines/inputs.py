"""What `fit` gets from a lazy frame: counts."""

from __future__ import annotations

from typing import Any

from ..fitting.inputs import CountedColumns, FitInputs, roles_of_names
from ..fitting.leak_warnings import warn_of_unjudged
from ..fitting.parameters import Settings
from ..fitting.tally import MOST_DISTINCT, edges_of
from ..tables.column_roles import ColumnRoles
from .base import LazyTable


def lazy_inputs(
    settings: Settings,
    table: LazyTable,
    y: Any,
    sensitive_features: Any,
    sample_weight: Any,
) -> FitInputs:
    """Count S and X of a lazy frame as the settings name them."""
    for name, value in (
        ("sensitive_features", sensitive_features),
        ("sample_weight", sample_weight),
    ):
        if value is not None:
            raise TypeError(
                f"{name} cannot be passed alongside a lazy frame, whose rows are elsewhere: make "
                f"it a column of the frame, and use sensitive=... for S."
            )
    roles = roles_of_names(settings, table.names, "the frame")
    counted = _counted(settings, roles, y)
    index = table.checked_index(counted.s, settings.owner)
    names = list(dict.fromkeys([*counted.s, *counted.x, *(counted.target or ())]))
    edges = edges_of(settings.n_bins, counted.x)
    columns, counts = table.count(names, edges, MOST_DISTINCT)
    if not len(counts):
        owner = settings.owner
        raise ValueError(f"Found a frame with 0 rows while {owner} needs at least one row.")
    in_order = [columns[name] for name in (*counted.s, *counted.x, *(counted.target or ()))]
    warn_of_unjudged([*index, *(roles.name(p) for p in roles.kept_positions)])
    rows = counted.rows(in_order, counts, is_coarse=bool(edges))
    return FitInputs(roles, table.types(counted.x), rows)


def _counted(settings: Settings, roles: ColumnRoles, y: Any) -> CountedColumns:
    s = tuple(roles.name(p) for p in roles.s_positions)
    x = tuple(roles.name(p) for p in roles.x_positions)
    if not settings.has_target:
        return CountedColumns(s, x)
    owner = settings.owner
    if not isinstance(y, str) or y not in (roles.names or ()) or y in s:
        raise ValueError(
            f"{owner} with utility='target' needs the name of a column of the lazy frame as y, "
            f"one that is not sensitive."
        )
    return CountedColumns(s, x, (y,))
