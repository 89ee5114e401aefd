"""Columns that are published beside a release, as a part of a JSON document, read with care."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._json_reader import Place
from .alphabet_json import (
    ALPHABET_KEYS,
    HEAVIEST,
    alphabet_content,
    check_all,
    read_alphabet,
    read_rows,
)
from .alphabets import Alphabet, ValueAlphabet
from .paired import PairedAlphabet


def beside_content(alphabet: PairedAlphabet) -> dict[str, Any]:
    """Return what a document says about the columns beside X."""
    return {
        **alphabet_content(alphabet.beside),
        "pairs": alphabet.pairs.tolist(),
        "pair_weights": alphabet.weights.tolist(),
    }


def read_beside(place: Place, inner: Alphabet) -> PairedAlphabet:
    """Return the pairs of the columns beside X and symbols of X; inner : these symbols."""
    part = place.keys(*ALPHABET_KEYS, "pairs", "pair_weights")
    beside = read_alphabet(part)
    _check_exact(part, beside)
    n_z, n_pairs = beside.n_symbols, part["pairs"].length()
    part["pairs"].items(fewest=1)
    pairs = read_rows(part["pairs"], n_pairs, [n_z, inner.n_symbols])
    check_all(part["pairs"], pairs[:, 0], n_z)
    weights = part["pair_weights"].numbers(n_pairs, low=0, high=HEAVIEST)
    part["pair_weights"].require(weights > 0, "positive")
    return PairedAlphabet(inner, beside, pairs, weights)


def _check_exact(part: dict[str, Place], beside: ValueAlphabet) -> None:
    """Check that values are neither cut nor pooled: the budget is about each of them."""
    for i, column in enumerate(beside.columns):
        symbols = part["columns"][i]["symbols"]
        own = np.bincount(column.symbols[column.symbols >= 0], minlength=column.n_symbols) == 1
        is_exact = column.edges is None and bool(own.all())
        symbols.require(is_exact, "a symbol of its own for every value of a column beside X")
    own = np.bincount(beside.symbols, minlength=beside.n_symbols) == 1
    part["symbols"].require(bool(own.all()), "a symbol of its own for every combination")
