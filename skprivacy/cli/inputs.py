"""What several commands do with their options."""

import argparse
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from ..files.opening import read_from
from ..files.tables import Source
from ..transformer import PrivacyFunnelTransformer


def is_same(path: str, other: str) -> bool:
    """Return whether two paths lead to the same file."""
    return Path(path).resolve() == Path(other).resolve()


def source_of(options: argparse.Namespace) -> AbstractContextManager[Source]:
    """Return the table IN, to be opened."""
    return read_from(
        options.source,
        kind=options.format,
        delimiter=options.delimiter,
        encoding=options.encoding,
        header=options.header,
        names=options.names,
    )


def transformer_for(options: argparse.Namespace, **more: Any) -> PrivacyFunnelTransformer:
    """Return a transformer with the parameters that the options name."""
    edges = dict(options.edges)
    named = [*options.columns, *options.sensitive]
    for option, given in {"--edges": edges, "--categorical": options.categorical}.items():
        if unknown := [name for name in given if name not in named]:
            raise ValueError(
                f"{option} names {unknown[0]!r}, which is neither released nor sensitive."
            )
    if options.smoothing and options.confidence is not None:
        raise ValueError(
            "--smoothing needs --confidence none: a confidence allows for chance in its own way."
        )
    bins = dict.fromkeys(options.columns, options.bins) | dict.fromkeys(options.categorical)
    return PrivacyFunnelTransformer(
        sensitive=options.sensitive,
        columns=options.columns,
        measure=options.measure,
        scope=options.scope,
        utility=options.utility,
        solver=options.solver,
        max_outputs=options.max_outputs,
        confidence=options.confidence,
        n_bins=bins | edges,
        min_frequency=options.min_frequency,
        max_categories=options.max_categories,
        smoothing=options.smoothing,
        **more,
    )
