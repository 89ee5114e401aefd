"""The pass over a file that certifies what was fitted, by rows that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from .._messages import Message, Named
from .._typing import FloatArray, IntArray
from ..certifying import (
    Certificate,
    SeveralCertificates,
    certified_secrets,
    check_measure,
    failure_of,
)
from ..fitted import Fitted
from ..fitting.held_out import candidate, count_codes, n_symbols, symbols_of
from ..measures import Measure
from ..mechanism import SeveralSecretsMechanism
from ..secret_columns import columns_of_secrets
from ..tables.cross_tables import coded
from ..tables.frames import as_table
from .releasing import families_of, folds_of_block
from .tables import Block, Source


def certify_source(
    fitted: Fitted,
    owner: str,
    source: Source,
    sensitive: Sequence[str],
    measure: Measure,
    *,
    confidence: float = 0.95,
    n_settings: int = 1,
    is_watched: bool = False,
) -> Certificate | SeveralCertificates:
    """Return the `Certificate` of what was loaded; the groups of S are those of the file.

    sensitive : the names of its columns. Texts are groups as they are written.
    """
    failure_of(confidence, n_settings)  # errors come before any work is done
    header = as_table(pd.DataFrame(columns=source.names), owner)
    x_positions = fitted.roles.read_in(header, owner)
    s_positions = header.positions(owner, "sensitive", sensitive)
    secrets: dict[Any, tuple[int, ...]] = {None: tuple(range(len(s_positions)))}
    if isinstance(fitted.mechanism, SeveralSecretsMechanism):
        secrets = columns_of_secrets(owner, fitted.mechanism.epsilon, sensitive)
    if both := [source.names[p] for p in s_positions if p in x_positions]:
        told = f"The column {both[0]!r} is released: it cannot be among those of "
        raise ValueError(Message(told, Named("sensitive"), "."))
    key_position = fitted.roles.group_in(header, owner)
    families, groups = families_of(fitted), Groups(n_symbols(fitted))
    for block in source.watched_blocks("certifying", is_watched):
        table = as_table(block.frame(x_positions, families), owner)
        folds = folds_of_block(block, key_position, source)
        x_codes = symbols_of(fitted, table.named(range(len(x_positions))), folds)
        groups.add(_columns(block, s_positions), x_codes)
        for positions in secrets.values():
            check_measure(measure, len(groups.of(positions)))
    if not groups.counts:
        raise ValueError(f"{source.input.name} has no rows.")
    counts = {name: np.array(list(groups.of(p).values())) for name, p in secrets.items()}
    chosen = {name: candidate(fitted, len(table), name) for name, table in counts.items()}
    return certified_secrets(counts, chosen, measure, confidence, n_settings)


def _columns(block: Block, positions: Sequence[int]) -> pd.DataFrame:
    return pd.DataFrame({position: block.column(position) for position in positions})


class Groups:
    """The groups of S in a file, and how often each symbol of X occurs in them."""

    def __init__(self, n_symbols: int) -> None:
        self.n_symbols = n_symbols
        self.counts: dict[tuple[object, ...], FloatArray] = {}

    def add(self, s_columns: pd.DataFrame, x_codes: IntArray) -> None:
        """Count some more rows."""
        if not len(x_codes):
            return
        codes, _ = coded(s_columns, "S")
        _, firsts = np.unique(codes, return_index=True)
        found = count_codes(codes, x_codes, (len(firsts), self.n_symbols))
        rows = s_columns.iloc[firsts].itertuples(index=False, name=None)
        for row, counted in zip(rows, found, strict=True):
            # NaN differs from itself: here all missing values are the same.
            group = tuple(None if pd.isna(value) else value for value in row)
            self.counts[group] = self.counts.get(group, 0.0) + counted

    def of(self, positions: tuple[int, ...]) -> dict[tuple[object, ...], FloatArray]:
        """Return the counts for the groups that some columns of S have."""
        found: dict[tuple[object, ...], FloatArray] = {}
        for group, counted in self.counts.items():
            part = tuple(group[p] for p in positions)
            found[part] = found.get(part, 0.0) + counted
        return found
