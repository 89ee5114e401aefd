"""The pass over a file that rewrites it, with X replaced by Y."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

import pandas as pd

from ..encoding import ColumnAlphabet
from ..encoding.values import family_of
from ..frames import as_table
from ..noise import RowNoise, fresh_key
from ..release import release_of
from ..transformer import PrivacyFunnelTransformer
from ..unknown_values import warn_of_unknown
from .tables import Sink, Source


def release_rows(
    transformer: PrivacyFunnelTransformer, source: Source, sink: Sink, *, is_watched: bool = False
) -> int:
    """Write the rows of a source with X replaced by Y, and return how many there were."""
    layout, owner = transformer._layout, type(transformer).__name__
    passed = transformer.remainder == "passthrough"
    header = as_table(pd.DataFrame(columns=source.names), owner)
    positions = layout.match(header, owner, passed)
    x_positions = [positions[p] for p in layout.x_positions]
    families = [_family_of(column) for column in transformer._alphabet.columns]
    release, key = release_of(transformer), fresh_key(transformer.random_state)
    n_rows, unknown = 0, Counter[Hashable]()
    for block in source.watched_blocks("releasing", is_watched):
        table = as_table(block.frame(x_positions, families), owner)
        noise = RowNoise(key, range(n_rows, n_rows + len(block)))
        released = release.replacements(table, range(len(x_positions)), noise, unknown)
        parts: dict[str, Any] = {}
        for position in layout.order(passed):
            if position in layout.x_positions:
                parts |= {str(name): column for name, column in released.get(position, [])}
            else:
                parts[str(layout.name(position))] = positions[position]
        sink.write(block, parts)
        n_rows += len(block)
    warn_of_unknown([source.names[position] for position in x_positions], unknown)
    return n_rows


def _family_of(alphabet: ColumnAlphabet) -> str:
    """Return what the values of a column of X are."""
    return family_of([value for value in alphabet.values if value is not None], "X")
