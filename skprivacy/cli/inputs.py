"""The input table and the transformer, as options describe them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..cells import ScoreCells, TreeCells
from ..engines.file_tables import Source
from ..engines.files import read_from
from ..transformer import PrivacyFunnelTransformer
from .checks import about_cells, check_columns, check_design, released_columns
from .values import UTILITIES


@contextmanager
def source_of(options: argparse.Namespace) -> Iterator[Source]:
    """Yield the table IN, after checking that it has all columns that options name."""
    with read_from(
        options.source,
        format=options.format,
        delimiter=options.delimiter,
        encoding=options.encoding,
        header=options.header,
        names=options.names,
    ) as source:
        check_columns(options, source.names)
        yield source


def transformer_for(
    options: argparse.Namespace, names: Sequence[str], **more: Any
) -> PrivacyFunnelTransformer:
    """Return a transformer with parameters from options; names : the columns of IN."""
    check_design(options, names)
    columns = released_columns(options, names)
    bins = dict.fromkeys(columns, options.bins) | dict.fromkeys(options.categorical)
    return PrivacyFunnelTransformer(
        sensitive=options.sensitive,
        columns=options.columns,
        beside=options.beside,
        measure=options.measure,
        scope=options.scope,
        utility=options.utility or (UTILITIES[0] if options.target_column is None else "target"),
        solver=options.solver,
        solver_options=dict(options.solver_options) or None,
        max_outputs=options.max_outputs,
        confidence=options.confidence,
        alphabet=_alphabet(options),
        n_bins=bins | dict(options.edges),
        ordered=dict(options.ordered) or None,
        min_frequency=options.min_frequency,
        max_categories=options.max_categories,
        smoothing=options.smoothing,
        **more,
    )


def _alphabet(options: argparse.Namespace) -> Any:
    """Return the alphabet; options about cells imply cells."""
    if not (given := about_cells(options)):
        return options.alphabet
    return TreeCells(**given) if options.target_column is None else ScoreCells(**given)


def counting_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return arguments for counting: columns that are released only if they are named."""
    ids = getattr(options, "record_ids", None)
    return {"target": options.target_column, "apart": [] if ids is None else [ids]}
