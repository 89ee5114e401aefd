"""What `fit` learns from labelled rows: alphabets, counts, and the mechanism for them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .._messages import Message, Named, Setting
from .._typing import CountArray, IntArray, NamedColumns
from .._warnings import warn
from ..codes import UNKNOWN, count, take
from ..design import design_mechanism
from ..encoding import DEFAULT_BINS, Alphabet, learn_alphabet
from ..encoding.bins import BinsLike
from ..joint import count_pairs
from ..mechanism import Mechanism
from ..releasing.output_names import name_outputs
from ..releasing.sampler import within_budget_as_sampled
from ..solvers import most_symbols
from ..utilities import Target, Utility
from .inputs import LabelledRows

if TYPE_CHECKING:
    from ..transformer import PrivacyFunnelTransformer


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows as symbols, with the alphabets that they are written in.

    counts : of pairs (s, x), weighted; group_sizes : rows for each s, without weights.
    """

    sensitive: Alphabet
    alphabet: Alphabet
    s_codes: IntArray
    x_codes: IntArray
    counts: CountArray
    group_sizes: CountArray


def code_rows(settings: PrivacyFunnelTransformer, rows: LabelledRows) -> CodedRows:
    """Learn the alphabets of S and X as the parameters of a transformer ask, and count pairs."""
    sensitive, s_codes = code_sensitive(settings, rows)
    alphabet, x_codes = _learn(settings, rows, rows.x_columns)
    alphabet, x_codes = _pooled(settings, alphabet, x_codes, sensitive.n_symbols)
    counts = count_pairs(s_codes, x_codes, rows.weights)
    sizes = count(s_codes, sensitive.n_symbols, rows.multiplicities)[:-1]
    return CodedRows(sensitive, alphabet, s_codes, x_codes, counts, sizes)


def code_sensitive(
    settings: PrivacyFunnelTransformer, rows: LabelledRows
) -> tuple[Alphabet, IntArray]:
    """Learn the alphabet of S, and return it with the symbol of each row."""
    return _learn(settings, rows, rows.s_columns, is_sensitive=True)


def _learn(
    settings: PrivacyFunnelTransformer,
    rows: LabelledRows,
    columns: NamedColumns,
    is_sensitive: bool = False,
) -> tuple[Alphabet, IntArray]:
    """Return the alphabet of columns of some rows taken jointly, and the symbol of each row."""
    pooling = (None, None) if is_sensitive else (settings.min_frequency, settings.max_categories)
    options = [
        {
            "n_bins": _bins_of(settings.n_bins, label, is_sensitive),
            "pooling": pooling,
            "multiplicities": rows.multiplicities,
        }
        for label in columns
    ]
    return learn_alphabet(list(columns.values()), list(columns), rows.weights, options)


def _bins_of(n_bins: Any, label: Hashable, is_sensitive: bool) -> BinsLike | None:
    if isinstance(n_bins, dict):
        return n_bins.get(label, DEFAULT_BINS)
    if is_sensitive and np.ndim(n_bins) == 1:  # edges are for X
        return DEFAULT_BINS
    return n_bins


def _pooled(
    settings: PrivacyFunnelTransformer, alphabet: Alphabet, codes: IntArray, n_s: int
) -> tuple[Alphabet, IntArray]:
    """Pool the rarest symbols where the design would take long."""
    n_x, kept = alphabet.n_symbols, most_symbols(n_s)
    if settings.solver != "auto" or n_x <= kept:
        return alphabet, codes
    pooled, symbols = alphabet.pooled(kept)
    warn(
        Message(
            f"X has {n_x} symbols, too many for a design in seconds with {n_s} sensitive groups: "
            f"the {n_x - kept + 1} rarest are pooled into one. Set ",
            Named("max_categories"),
            ", ",
            Named("min_frequency"),
            " or ",
            Named("n_bins"),
            ", or release fewer columns jointly, to choose yourself what is pooled; ",
            Setting("solver", "column_generation"),
            " designs for all of them.",
        )
    )
    return pooled, take(np.append(symbols, UNKNOWN), codes)


def target_of(
    settings: PrivacyFunnelTransformer,
    rows: LabelledRows,
    coded: CodedRows,
) -> Target:
    """Return the utility I(V;Y) of rows with a target V."""
    assert rows.target is not None
    _, v_codes = _learn(settings, rows, rows.target, is_sensitive=True)
    return Target(count_pairs(v_codes, coded.x_codes, rows.weights))


def design(
    settings: PrivacyFunnelTransformer, coded: CodedRows, utility: str | Utility
) -> tuple[Mechanism, IntArray]:
    """Return the mechanism as it is sampled, and which symbol of X names each output."""
    mechanism = design_mechanism(
        coded.counts + settings.smoothing,
        settings.epsilon,
        measure=settings.measure,
        scope=settings.scope,
        utility=utility,
        solver=settings.solver,
        **(settings.solver_options or {}),
    )
    mechanism, names = name_outputs(mechanism)
    labels = coded.alphabet.labels
    mechanism = replace(
        mechanism,
        s_labels=tuple(coded.sensitive.labels),
        x_labels=tuple(labels),
        y_labels=tuple(labels[name] for name in names),
    )
    return within_budget_as_sampled(mechanism), names
