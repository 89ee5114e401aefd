"""What `fit` gets from a lazy frame: counts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cells import Cells
from ..cells.buckets import N_BUCKETS
from ..fitting.encode_and_design import cells_taught_by
from ..fitting.inputs import CountedColumns, FitInputs, LabelledRows, roles_of_names
from ..fitting.known_cells import cell_name
from ..fitting.leak_warnings import warn_of_unjudged
from ..fitting.learned_cells import cells_of
from ..fitting.many_rows import cells_instead
from ..fitting.parameters import Settings
from ..fitting.tally import MOST_DISTINCT, TooManyRowsError, edges_of
from ..fitting.teachers import MOST_ROWS, Buckets, Sample
from ..tables.column_roles import ColumnRoles
from .base import LazyTable

# Rows that teach may differ in S, in the target and in what is beside them.
_MOST_TEACHERS = 10 * MOST_ROWS


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
    beside = [y] if settings.has_target and isinstance(y, str) else []
    roles = roles_of_names(settings, table.names, "the frame", beside)
    counted = _counted(settings, roles, y)
    index = table.checked_index(counted.s, settings.owner)
    rows = _rows(settings, table, counted)
    _check_not_empty(settings, rows)
    warn_of_unjudged([*index, *(roles.name(p) for p in roles.kept_positions)])
    return FitInputs(roles, table.types([*map(roles.name, roles.typed_positions)]), rows)


def _rows(settings: Settings, table: LazyTable, counted: CountedColumns) -> LabelledRows:
    """Count values where they are few enough, else cells."""
    cells = cells_of(settings)
    if counted.groups and cells is not None:  # each key would be a row of its own
        return _rows_in_cells(settings, table, counted, cells)
    edges = edges_of(settings.n_bins, counted.x)
    try:
        names = list(dict.fromkeys(counted.in_table))
        columns, counts = table.count(names, edges, MOST_DISTINCT)
    except TooManyRowsError as error:
        cells = cells_instead(settings, len(counted.x), error)
        return _rows_in_cells(settings, table, counted, cells)
    in_order = [columns[name] for name in counted.in_table]
    return counted.rows(in_order, counts, is_coarse=bool(edges))


def _check_not_empty(settings: Settings, rows: LabelledRows) -> None:
    if not rows.n_rows:
        owner = settings.owner
        raise ValueError(f"Found a frame with 0 rows while {owner} needs at least one row.")


def _rows_in_cells(
    settings: Settings, table: LazyTable, counted: CountedColumns, cells: Cells
) -> LabelledRows:
    """Learn cells from some rows of a lazy frame, and count them in all of it."""
    known = cells_taught_by(settings, _teachers(settings, table, counted, cells), cells)
    names = list(dict.fromkeys([*counted.s, *counted.beside, *(counted.target or ())]))
    in_cells = counted.in_cells(cell := cell_name(names))
    edges = edges_of(settings.n_bins, ())
    found, counts = table.numbered(known, names, cell).count([*names, cell], edges, MOST_DISTINCT)
    return in_cells.rows([found[name] for name in in_cells.in_table], counts, cells=known)


def _teachers(
    settings: Settings, table: LazyTable, counted: CountedColumns, cells: Cells
) -> LabelledRows:
    """Return the rows of a lazy frame that teach cells: by the sizes of buckets, some of these."""
    buckets, bucket = Buckets.of(settings, counted, cells), "bucket"
    found, counts = table.numbered(buckets, (), bucket).count([bucket], {}, N_BUCKETS)
    sizes = np.bincount(found[bucket].to_numpy(dtype=np.intp), counts, N_BUCKETS)
    sample = Sample.of_sizes(buckets, sizes, int(counts.sum()))
    names = [name for name in dict.fromkeys(counted.in_table) if name not in counted.groups]
    kept = table.numbered(sample.kept(counted.groups), names, fold := cell_name(names))
    found, counts = kept.count([*names, fold], {}, _MOST_TEACHERS)
    in_order = [found[fold if name in counted.groups else name] for name in counted.in_table]
    rows = counted.rows(in_order, counts)
    _check_not_empty(settings, rows)
    return sample.weighted(rows)


def _counted(settings: Settings, roles: ColumnRoles, y: Any) -> CountedColumns:
    s = tuple(roles.name(p) for p in roles.s_positions)
    x = tuple(roles.name(p) for p in roles.x_positions)
    groups, beside = roles.group_names, tuple(roles.name(p) for p in roles.beside_positions)
    if not settings.has_target:
        return CountedColumns(s, x, groups=groups, beside=beside)
    owner = settings.owner
    if not isinstance(y, str) or y not in (roles.names or ()) or y in (*s, *groups):
        raise ValueError(
            f"{owner} with utility='target' needs the name of a column of the lazy frame as y, "
            f"one that is not sensitive{' and does not tell people apart' if groups else ''}."
        )
    return CountedColumns(s, x, (y,), groups, beside)
