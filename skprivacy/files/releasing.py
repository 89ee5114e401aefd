"""The pass over a file that rewrites it, with X replaced by Y."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Hashable
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import pandas as pd

from .._typing import IntArray
from ..fitted import Fitted
from ..fitting.leak_warnings import Judgement, warn_of_passed_through
from ..fitting.parameters import Settings
from ..releasing.group_folds import folds_of_keys
from ..releasing.release import release_of
from ..releasing.unknown_values import warn_of_unknown
from ..tables.column_types import ColumnType
from ..tables.frames import as_table
from .block_noise import noise_of_blocks
from .counting import families_of
from .delimited import DelimitedSource
from .tables import Block, Sink, Source

_CATEGORY = ColumnType("category")


def release_rows(
    fitted: Fitted,
    settings: Settings,
    source: Source,
    sink: Sink,
    *,
    record_ids: str | None = None,
    secret_key: bytes | None = None,
    copied: Container[Hashable] | None = None,
    allow_leaking: bool = True,
    is_watched: bool = False,
) -> int:
    """Write the rows of a source with X replaced by Y, and return how many there were.

    copied : which of the columns that may be copied are copied, None for all; allow_leaking :
    whether one of them may exceed the budget.
    """
    roles, owner = fitted.roles, settings.owner
    if copied is not None:
        roles = roles.keeping(copied)
        found = Judgement.restored(fitted.leaking, copied)
        warn_of_passed_through(found, fitted.mechanism.epsilon, allow_leaking)
    header = as_table(pd.DataFrame(columns=source.names), owner)
    positions = roles.match(header, owner)
    x_positions = [positions[p] for p in roles.read_positions]
    families, key_position = families_of(fitted), roles.group_in(header, owner)
    release = release_of(fitted, settings.output, settings.handle_unknown, owner)
    if isinstance(source, DelimitedSource):  # which writes categories without looking at each row
        types = zip_longest(release.types, families)
        release = replace(release, types=tuple(_CATEGORY if f == "str" else t for t, f in types))
    n_rows, unknown = 0, Counter[Hashable]()
    with noise_of_blocks(release, settings.random_state, source, record_ids, secret_key) as noise:
        for block in source.watched_blocks("releasing", is_watched):
            table = as_table(block.frame(x_positions, families), owner)
            own, of_block = range(len(x_positions)), noise.of(block, n_rows)
            folds = folds_of_block(block, key_position, source)
            released = release.replacements(table, own, of_block, unknown, folds)
            parts: dict[str, Any] = {}
            for position in roles.order:
                if position in roles.kept_positions:
                    parts[str(roles.name(position))] = positions[position]
                else:
                    parts |= {str(name): column for name, column in released.get(position, [])}
            sink.write(block, parts)
            n_rows += len(block)
        noise.check()
    warn_of_unknown([source.names[position] for position in x_positions], unknown)
    return n_rows


def folds_of_block(block: Block, position: int | None, source: Source) -> IntArray | None:
    """Return the folds of rows by their keys; position : of the column of keys, None for none."""
    if position is None:
        return None
    return folds_of_keys(block.column(position), source.names[position])
