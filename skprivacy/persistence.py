"""Fitted transformers as JSON documents, with alphabets and cells."""

from __future__ import annotations

import datetime
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator

from ._json import Place, encode_label, is_zone, label_key, read_document, write_document
from ._typing import BoolArray, FloatArray, IntArray
from .cells import CellAlphabet
from .cells.additive import AdditiveModel
from .cells.cells import N_FOLDS, CellColumn, Partition
from .cells.lines import PARTS, CellLine
from .cells.models import check_model, read_models, write_models
from .cells.scores import ScoredRows, ScorePartition, Scorer
from .cells.trees import LEAF, CellTree, TreePartition
from .codes import UNKNOWN
from .encoding import Alphabet, PairedAlphabet, ValueAlphabet
from .encoding.columns import ColumnAlphabet
from .encoding.rows import ColumnTree, Leaves, RowModel, Within
from .fitted import Fitted, Posterior, ReleasedTarget
from .measures import Measure
from .mechanism import Mechanism, make_mechanism
from .releasing.output_names import check_names_out, names_out
from .releasing.release import MADE_UP
from .tables.table import FAMILIES, LIBRARIES, UNITS, ColumnRoles, ColumnType, is_name
from .utilities import UTILITIES, MutualInformation, Utility

ALPHABET_KEYS = ("columns", "combinations", "symbols", "members", "member_of", "weights", "people")

_COLUMN_KEYS = (
    "values", "labels", "symbols", "weights", "in_pool", "is_rare", "edges", "bounds",
    "has_missing",
)  # fmt: skip

# Probabilities in a file add up to 1 within this.
_CLOSE = 1e-9

# Weights up to this size have a finite sum.
HEAVIEST = 1e300


def alphabet_content(alphabet: ValueAlphabet) -> dict[str, Any]:
    """Return an alphabet as JSON values."""
    columns, *arrays, people = ALPHABET_KEYS
    listed = {name: getattr(alphabet, name).tolist() for name in arrays}
    listed[people] = None if alphabet.people is None else alphabet.people.tolist()
    return {columns: [write_column(column) for column in alphabet.columns], **listed}


def write_column(column: ColumnAlphabet) -> dict[str, Any]:
    """Return the alphabet of one column as JSON values."""
    content: dict[str, Any] = {key: getattr(column, key) for key in _COLUMN_KEYS}
    for key, part in content.items():
        if isinstance(part, tuple):
            content[key] = [encode_label(label) for label in part]
        elif isinstance(part, np.ndarray):
            content[key] = part.tolist()
    return content


def read_alphabet(part: dict[str, Place]) -> ValueAlphabet:
    """Return the alphabet after checking all of it: a wrong one would release wrong values."""
    columns = tuple(map(read_column, part["columns"].items(fewest=1)))
    symbols = _read_codes(part["symbols"])
    combinations = read_rows(part["combinations"], len(symbols), [c.n_symbols for c in columns])
    for column, codes in zip(columns, combinations.T, strict=True):
        check_all(part["combinations"], codes, column.n_symbols)
    member_of = _read_codes(part["member_of"], len(symbols))
    members = read_rows(part["members"], len(member_of), [len(c.values) for c in columns])
    parts = [column.symbols[of] for column, of in zip(columns, members.T, strict=True)]
    fits = np.stack(parts, axis=1) == combinations[member_of]
    part["members"].require(fits, "a value in the combination that member_of names")
    weights = part["weights"].numbers(len(member_of), low=0, high=HEAVIEST)
    n_members = len(member_of)
    people = part["people"].optional(lambda p: p.numbers(n_members, low=1, high=HEAVIEST))
    return ValueAlphabet(columns, combinations, symbols, members, member_of, weights, people)


def _read_codes(place: Place, n: int | None = None) -> IntArray:
    """Return codes that include every number below n; n : by default, their maximum + 1."""
    codes = place.integers(None, low=0, high=(place.length() if n is None else n) - 1)
    check_all(place, codes, codes.max() + 1 if n is None else n)
    return codes


def check_all(place: Place, codes: IntArray, n: int) -> None:
    """Check that codes include every number from 0 to n - 1."""
    if len(missing := np.setdiff1d(np.arange(n), codes)):
        got = f"{place.path} must have every number from 0 to {n - 1}. Got no {missing[0]}."
        raise place.malformed(got)


def _same(labels: Iterable[Any], others: Iterable[Any]) -> BoolArray:
    """Return whether labels are equal, one by one."""
    return np.array([label_key(a) == label_key(b) for a, b in zip(labels, others, strict=True)])


def read_rows(place: Place, length: int, sizes: list[int]) -> IntArray:
    """Return rows of codes in lexicographic order; sizes : the number of codes of each column."""
    rows = place.integers(length, len(sizes), low=0, high=max(sizes) - 1)
    place.require(rows < sizes, "a number that its column has")
    later, earlier = rows[1:], rows[:-1]
    first = (later != earlier).argmax(axis=1)[:, None]
    ascends = np.take_along_axis(later, first, axis=1) > np.take_along_axis(earlier, first, axis=1)
    place.require(np.append(True, ascends), "a row that comes after the previous one in order")
    return rows


def read_column(place: Place) -> ColumnAlphabet:
    """Return the alphabet of one column after checking it."""
    part = place.keys(*_COLUMN_KEYS)
    values = tuple(item.label() for item in part["values"].items(fewest=1))
    n, has_missing = len(values), part["has_missing"].flag()
    edges = part["edges"].optional(lambda edges: _read_edges(edges, n - has_missing))
    column = ColumnAlphabet(
        values,
        part["labels"].labels(n),
        part["symbols"].integers(n, low=0 if edges is None else UNKNOWN, high=n - 1),
        part["weights"].numbers(n, low=0, high=HEAVIEST),
        tuple(item.label() for item in part["in_pool"].items(n)),
        np.array([item.flag() for item in part["is_rare"].items(n)]),
        edges,
        _read_bounds(part["bounds"], edges),
        has_missing,
    )
    check_all(part["symbols"], column.symbols, max(1, column.n_symbols))
    _check_nulls(part, column)
    check = _check_categories if edges is None else _check_bins
    check(part, column)
    return column


def _read_edges(place: Place, n_bins: int) -> FloatArray:
    place.require(n_bins > 0, "null for a column that has no values")
    edges = place.numbers(n_bins - 1)
    place.require(edges > np.append(-np.inf, edges)[:-1], "larger than the previous one")
    return edges


def _read_bounds(place: Place, edges: FloatArray | None) -> tuple[float, float]:
    low, high = (float(item.number()) for item in place.items(2))
    if edges is None:
        place.require(np.array([low == -math.inf, high == math.inf]), "infinite without bins")
        return low, high
    points = [low, *edges, high]
    is_outside = np.array([low < points[1], high > points[-2]])
    place.require(is_outside, "outside the edges, with the lower one first")
    return low, high


def _check_nulls(part: dict[str, Place], column: ColumnAlphabet) -> None:
    """Check that only the missing value, which is last, and values of empty bins are null."""
    must_be_null = column.symbols == UNKNOWN
    last = len(column.symbols) - 1
    if column.has_missing:
        part["symbols"][last].integer(low=0, high=last)
        must_be_null[last] = True
    is_null = np.array([value is None for value in column.values])
    requirement = "null for an empty bin and as the missing value, and only there"
    part["values"].require(is_null == must_be_null, requirement)


def _check_categories(part: dict[str, Place], column: ColumnAlphabet) -> None:
    """Check that values are present and distinct, and that they are their own labels."""
    is_there = [value is None or not pd.isna(value) for value in column.values]
    part["values"].require(np.array(is_there), "a value")
    part["values"].different(column.values, "a value")
    for key in ("labels", "in_pool"):
        is_same = _same(column.values, getattr(column, key))
        part[key].require(is_same, "the value at the same position")


def _check_bins(part: dict[str, Place], column: ColumnAlphabet) -> None:
    """Check that bins have names, and values of one kind within their edges."""
    is_bin = np.arange(len(column.values)) < len(column.values) - column.has_missing
    is_name = [isinstance(label, str) for label in column.labels]
    part["labels"].require(is_name == is_bin, "a text for a bin, null for the missing value")
    seen = np.flatnonzero([value is not None for value in column.values])
    part["values"].require(len(seen) > 0, "a list with a value for at least one bin")
    values = [column.values[i] for i in seen]
    fits = np.ones(len(column.values), dtype=bool)
    fits[seen] = [_kind(value) == _kind(values[0]) is not None for value in values]
    part["values"].require(fits, "a finite number, or a time like those before it")
    with part["values"].making():
        fits[seen] = column.positions_of(values, part["values"].path)[:-1] == seen
    part["values"].require(fits, "a value in its own bin")
    pairs = zip(column.values, column.in_pool, strict=True)
    alike = [_kind(value) == _kind(shown) for value, shown in pairs]
    requirement = "of the same kind as in values: a number, a time or null"
    part["in_pool"].require(np.array(alike), requirement)


def _kind(value: object) -> type | None:
    """Return the kind of a finite number or a time, None for other values."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float if math.isfinite(value) else None
    return type(value) if isinstance(value, datetime.date | datetime.timedelta) else None


# Columns that are published beside a release.


def read_beside(place: Place, inner: Alphabet) -> PairedAlphabet:
    """Return the pairs of values beside X and symbols of X; inner : the alphabet of X."""
    part = place.keys(*ALPHABET_KEYS, "pairs", "pair_weights")
    beside = read_alphabet(part)
    _check_exact(part, beside)
    n_z, n_pairs = beside.n_symbols, len(part["pairs"].items(fewest=1))
    pairs = read_rows(part["pairs"], n_pairs, [n_z, inner.n_symbols])
    check_all(part["pairs"], pairs[:, 0], n_z)
    weights = part["pair_weights"].numbers(n_pairs, low=0, high=HEAVIEST)
    part["pair_weights"].require(weights > 0, "positive")
    return PairedAlphabet(inner, beside, pairs, weights)


def _check_exact(part: dict[str, Place], beside: ValueAlphabet) -> None:
    """Check that values are neither cut nor pooled: the budget is about each of them."""
    for i, column in enumerate(beside.columns):
        symbols = part["columns"][i]["symbols"]
        sizes = np.bincount(column.symbols[column.symbols >= 0], minlength=column.n_symbols)
        is_exact = column.edges is None and bool((sizes == 1).all())
        symbols.require(is_exact, "a different symbol for every value of a column beside X")
    sizes = np.bincount(beside.symbols, minlength=beside.n_symbols)
    part["symbols"].require(bool((sizes == 1).all()), "a different symbol for every combination")


# Cells.


# Limited, because a short file could claim any number.
_MOST_CLASSES = 10_000

CELL_KEYS = ("columns", "questions", "counted", "scores", "row_model", "target_columns")


def cell_content(alphabet: CellAlphabet) -> dict[str, Any]:
    """Return cells as JSON values: their rules, and models if they need some."""
    partition = alphabet.partition
    assert isinstance(partition, TreePartition | ScorePartition)
    cut, scores = partition.cut, None
    if isinstance(partition, ScorePartition):
        scores = _scores_content(partition, alphabet.cell_columns)
    return {
        "columns": [write_column(column) for column in alphabet.columns],
        "questions": (cut.bins if isinstance(cut, CellLine) else cut).to_lists(),
        "counted": [[part.tolist() for part in counted] for counted in alphabet.counted],
        "scores": scores,
        "row_model": None if alphabet.row_model is None else _rows_content(alphabet.row_model),
        "target_columns": [write_column(column) for column in alphabet.target_columns],
    }


# The arrays of `ColumnTree` that are its questions, and those of its `Leaves`.
_QUESTIONS, _LEAVES = ("orders", "limits", "left", "right"), ("starts", "codes", "weights")


def _rows_content(model: RowModel) -> dict[str, Any]:
    """Return how rows are made up as JSON values: questions of trees and counts of leaves."""
    trees = [
        {
            "column": tree.column,
            "questions": np.column_stack([getattr(tree, key) for key in _QUESTIONS]).tolist(),
            **{key: getattr(tree.leaves, key).tolist() for key in _LEAVES},
            "within": None if tree.within is None else _within_content(tree.within),
        }
        for tree in model.trees
    ]
    orders = [[source, ranks.tolist()] for source, ranks in model.orders]
    derived = [[column, source, codes.tolist()] for column, source, codes in model.derived]
    return {"orders": orders, "trees": trees, "derived": derived}


def _within_content(within: Within) -> dict[str, Any]:
    lists = {key: getattr(within, key).tolist() for key in ("combinations", "segments")}
    return {"columns": list(within.columns), **lists}


def _read_rows(place: Place, columns: Sequence[ColumnAlphabet], n_groups: int) -> RowModel:
    """Return how rows are made up: every column once, from columns that are drawn before it."""
    part = place.keys("orders", "trees", "derived")
    sizes = (*(len(column.values) + 1 for column in columns), n_groups)
    orders = []
    for item in part["orders"].items():
        source, ranks = item.items(2)
        at = source.integer(low=0, high=len(columns))
        orders.append((at, ranks.integers(sizes[at], low=0, high=sizes[at] - 1)))
    derived = []
    for item in part["derived"].items():
        column, source, codes = item.items(3)
        pair = (place.integer(low=0, high=len(columns) - 1) for place in (column, source))
        to, of = pair
        derived.append((to, of, codes.integers(sizes[of], low=0, high=sizes[to] - 1)))
    known, trees = [len(columns)], []
    for item in part["trees"].items(fewest=1):
        tree = _read_row_tree(item, columns, sizes, orders, known)
        trees.append(tree)
        known += [tree.column, *(to for to, of, _ in derived if of == tree.column)]
    is_once = sorted(known) == list(range(len(columns) + 1))
    place.require(is_once, "a model that draws every column once")
    model = RowModel(sizes, tuple(orders), tuple(trees), tuple(derived))
    rare = [(model.codes_of(i)[:-1] & column.is_rare).any() for i, column in enumerate(columns)]
    place.require(not any(rare), "a model of values that at least five people have")
    return model


def _read_row_tree(
    place: Place,
    columns: Sequence[ColumnAlphabet],
    sizes: Sequence[int],
    orders: Sequence[tuple[int, IntArray]],
    known: Sequence[int],
) -> ColumnTree:
    part = place.keys("column", "questions", *_LEAVES, "within")
    column = part["column"].integer(low=0, high=len(columns) - 1)
    questions = part["questions"]
    n = questions.length()
    highest = max(n, *sizes, len(orders))
    asked, limits, left, right = questions.integers(n, 4, low=-1, high=highest).T
    is_leaf = asked == UNKNOWN
    may_ask = np.array([*(source in known for source, _ in orders), False])
    fits = is_leaf | may_ask[np.minimum(asked, len(orders))]
    questions.require(fits, "a question about a column that is drawn before")
    _check_shape(questions, is_leaf, left, right)
    n_leaves = int(is_leaf.sum())
    within = part["within"].optional(lambda p: _read_within(p, known[1:], n_leaves))
    n_segments = 0 if within is None else len(within.segments)
    leaves = _read_leaves(part, n_leaves + n_segments, sizes[column])
    return ColumnTree(column, asked, limits, left, right, leaves, within)


def _read_within(place: Place, drawn: Sequence[int], n_leaves: int) -> Within:
    part = place.keys("columns", "combinations", "segments")
    columns = tuple(
        item.integer(low=0, high=max(drawn, default=0)) for item in part["columns"].items(fewest=1)
    )
    part["columns"].require(set(columns) <= {*drawn}, "columns that are drawn before")
    combinations, segments = (_read_rising(part[key]) for key in ("combinations", "segments"))
    part["segments"].require(segments < (n_leaves + 1) * len(combinations), "of a leaf")
    return Within(columns, combinations, segments)


def _read_leaves(part: Mapping[str, Place], n: int, n_codes: int) -> Leaves:
    """Return n distributions of codes."""
    codes = part["codes"].integers(None, low=0, high=n_codes - 1)
    starts = part["starts"].integers(n + 1, low=0, high=len(codes))
    is_rising = np.diff(starts, prepend=-1) > 0
    is_whole = starts[0] == 0 and starts[-1] == len(codes)
    part["starts"].require(is_rising & is_whole, "rising from 0 to the number of codes")
    number = np.repeat(np.arange(n), np.diff(starts)) * n_codes + codes
    part["codes"].require(np.diff(number, prepend=-1) > 0, "in order within a distribution")
    weights = part["weights"].numbers(len(codes), low=0, high=HEAVIEST)
    part["weights"].require(weights > 0, "positive")
    return Leaves(starts, codes, weights)


def _read_rising(place: Place) -> IntArray:
    found = place.integers(place.length(), low=0, high=2**62)
    place.require(np.diff(found, prepend=-1) > 0, "larger than the previous one")
    return found


def _read_target(place: Place, mechanism: Mechanism, n_columns: int) -> ReleasedTarget:
    part = place.keys(*ALPHABET_KEYS, "types", "given_y")
    alphabet = read_alphabet(part)
    part["columns"].items(n_columns)
    types = tuple(map(_read_type, part["types"].items(n_columns)))
    shape = len(mechanism.y_labels), alphabet.n_symbols
    return ReleasedTarget(alphabet, types, part["given_y"].numbers(*shape, low=0, high=1))


def _read_shown(place: Place, mechanism: Mechanism) -> FloatArray:
    """Return P(shown symbol | y), which keeps to the symbols beside the same published values."""
    shape = len(mechanism.y_labels), len(mechanism.x_labels)
    found = place.numbers(*shape, low=0, high=1)
    place.require(np.abs(found.sum(axis=1) - 1) <= _CLOSE, "probabilities that sum to 1")
    if (strata := mechanism.strata) is not None:
        of_output = strata[mechanism.channel.argmax(axis=0)]
        is_same = of_output[:, None] == strata
        place.require(is_same | (found == 0), "0 for symbols beside other published values")
    return found


_SCORES_KEYS = ("scorers", "models", "line", "digest", "information")


def _scores_content(partition: ScorePartition, columns: Sequence[CellColumn]) -> dict[str, Any]:
    scorers, cut = (partition.target, partition.sensitive), partition.cut
    fitted = [
        next((list(part) for part in of.parts if not _is_additive(part)), []) for of in scorers
    ]
    models = write_models(fitted) if any(fitted) else None
    _check_scorers(columns, *scorers)  # as when it is read
    line = None
    if isinstance(cut, CellLine):
        line = {"ends": cut.ends.tolist(), "cells": cut.table.tolist()}
    return {
        "scorers": [_scorer_content(scorer) for scorer in scorers],
        "models": models,
        "line": line,
        "digest": partition.digest,
        "information": partition.information,
    }


def _is_additive(part: Sequence[Any]) -> bool:
    return any(isinstance(model, AdditiveModel) for model in part)


def _scorer_content(scorer: Scorer) -> dict[str, Any]:
    additive = [part for part in scorer.parts if _is_additive(part)]
    return {
        "directions": scorer.directions.tolist(),
        "constants": list(scorer.constants),
        "additive": [_additive_content(model) for model in additive[0]] if additive else None,
    }


def _additive_content(model: AdditiveModel | None) -> dict[str, Any] | None:
    if model is None:
        return None
    return {
        "classes": model.classes.tolist(),
        "constant": model.constant.tolist(),
        "tables": [table.tolist() for table in model.tables],
    }


def read_cells(part: dict[str, Place]) -> CellAlphabet:
    """Return cells after checking all of them: wrong ones would release wrong values."""
    columns = tuple(map(read_column, part["columns"].items(fewest=1)))
    coded = [CellColumn(column) for column in columns]
    scores = part["scores"].optional(lambda place: place.keys(*_SCORES_KEYS))
    if scores is None:
        tree = _read_tree(part["questions"], [(c.has_order, c.n_codes) for c in coded])
        partition: Partition = TreePartition(tree)
    else:
        target, sensitive = _read_scorers(scores, coded)
        cut = _read_cut(part["questions"], scores["line"], target, sensitive)
        information = float(scores["information"].number(low=0))
        digest = scores["digest"].text()
        partition = ScorePartition(target, sensitive, cut, digest, information)
    counted = [
        _read_counted(place, len(column.values), partition.n_cells)
        for place, column in zip(part["counted"].items(len(columns)), columns, strict=True)
    ]
    targets = tuple(map(read_column, part["target_columns"].items()))
    drawn = (*columns, *targets)
    row_model = part["row_model"].optional(lambda p: _read_rows(p, drawn, partition.n_cells))
    return CellAlphabet(columns, partition, tuple(counted), None, row_model, targets)


def _read_cut(
    questions: Place, line: Place, target: Scorer, sensitive: Scorer
) -> CellTree | CellLine:
    """Return how the scores are divided; the questions are those of the plane, or of bins of S."""
    n_scores = sensitive.n_scores + (target.n_scores if line.value is None else 0)
    tree = _read_tree(questions, [(True, PARTS + 1)] * n_scores)
    if line.value is None:
        return tree
    part = line.keys("ends", "cells")
    ends = part["ends"].numbers(target.n_scores + 1, low=0, high=1)
    cells = part["cells"].integers(tree.n_cells, PARTS + 1, low=0, high=tree.n_cells * PARTS)
    is_each = bool(np.isin(np.arange(cells.max() + 1), cells).all())
    part["cells"].require(is_each, "the numbers of cells, from 0 on")
    return CellLine(ends, tree, cells)


def _read_scorers(part: dict[str, Place], columns: Sequence[CellColumn]) -> list[Scorer]:
    scorers = [_read_scorer(place, columns) for place in part["scorers"].items(2)]
    n_classes = [scorer.n_classes for scorer in scorers]
    if part["models"].value is not None:
        with part["models"].making():
            models = read_models(part["models"].text())
            _check_models(models, n_classes, len(columns))
            scorers = [
                replace(scorer, parts=(tuple(of), *scorer.parts)) if of else scorer
                for scorer, of in zip(scorers, models, strict=True)
            ]
            _check_scorers(columns, *scorers)
    for place, scorer in zip(part["scorers"].items(2), scorers, strict=True):
        place.require(len(scorer.parts) > 0, "an object with models")
    return scorers


def _read_scorer(place: Place, columns: Sequence[CellColumn]) -> Scorer:
    """Return a scorer with its additive models, if it has any."""
    part = place.keys("directions", "constants", "additive")
    rows = part["directions"].items(fewest=1)
    n_classes = rows[0].length()
    part["directions"].require(n_classes <= _MOST_CLASSES, f"of at most {_MOST_CLASSES} classes")
    directions = part["directions"].numbers(len(rows), n_classes, low=0, high=1)
    constants = part["constants"].integers(N_FOLDS, low=0, high=n_classes - 1)
    additive = part["additive"].optional(
        lambda models: tuple(
            model.optional(partial(_read_additive, n_classes=n_classes, columns=columns))
            for model in models.items(N_FOLDS)
        )
    )
    return Scorer(() if additive is None else (additive,), tuple(constants.tolist()), directions)


def _read_additive(place: Place, n_classes: int, columns: Sequence[CellColumn]) -> AdditiveModel:
    part = place.keys("classes", "constant", "tables")
    classes = part["classes"].integers(None, low=0, high=n_classes - 1)
    part["classes"].require(_are_classes(classes, n_classes), "two or more classes, in order")
    n_odds = len(classes) - 1
    tables = [
        table.numbers(column.n_codes + 1, n_odds)
        for table, column in zip(part["tables"].items(len(columns)), columns, strict=True)
    ]
    return AdditiveModel(classes, part["constant"].numbers(n_odds), tuple(tables))


def _check_scorers(columns: Sequence[CellColumn], *scorers: Scorer) -> None:
    """Check that every model is sound and can score a row."""
    codes = np.zeros((1, len(columns)), dtype=int)
    rows = ScoredRows.of(columns, codes, np.zeros(1, dtype=np.intp))
    for scorer, fold in itertools.product(scorers, range(N_FOLDS)):
        try:
            for model in (part[fold] for part in scorer.parts):
                if not isinstance(model, AdditiveModel | None):
                    check_model(model, rows.frame)
            scorer.probabilities(rows, fold)
        except ValueError as error:
            raise ValueError(f"every model must score a row of these columns: {error}") from error
        except Exception as error:  # any error inside a model that may have been edited
            raise ValueError("every model must score a row of these columns") from error


def _check_models(models: list[Any], n_classes: list[int], n_columns: int) -> None:
    """Check that there is a classifier for each fold, with these classes and columns."""
    if len(models) != 2 or any(len(of) not in (0, N_FOLDS) for of in models):
        raise ValueError(f"there must be {N_FOLDS} models of the target, and as many of S")
    for of, n in zip(models, n_classes, strict=True):
        for model in of:
            if model is None:
                continue
            classes = np.asarray(getattr(model, "classes_", ()))
            is_model = isinstance(model, BaseEstimator) and hasattr(model, "predict_proba")
            if not is_model or not _are_classes(classes, n):
                raise ValueError("every model must be a classifier of these classes")
            if getattr(model, "n_features_in_", None) != n_columns:
                raise ValueError(f"every model must take {n_columns} columns")


def _are_classes(classes: Any, n_classes: int) -> bool:
    """Whether these are some of the integers below `n_classes`, in ascending order."""
    if classes.ndim != 1 or classes.dtype.kind not in "iu" or len(classes) < 2:
        return False
    increase = (np.diff(classes.astype(float)) > 0).all()
    return bool(increase and classes[0] >= 0 and classes[-1] < n_classes)


def _read_tree(place: Place, asked: Sequence[tuple[bool, int]]) -> CellTree:
    """Return the tree; asked : for each column, whether codes are ordered, and how many."""
    n = place.length()
    has_order, n_codes = (np.array(part) for part in zip(*asked, strict=True))
    table = place.integers(n, 5, low=-1, high=max(n, int(n_codes.max())))
    of, codes, is_category, left, right = table.T
    is_leaf = of == LEAF
    place.require(of < len(asked), "a question about an existing column")
    fits = np.where(is_leaf, is_category == 0, is_category == ~has_order[of])
    place.require(fits, "a question that its column allows")
    place.require(is_leaf | (codes < n_codes[of]), "a question about a code that its column has")
    _check_shape(place, is_leaf, left, right)
    return CellTree(of, codes, is_category.astype(bool), left, right)


def _check_shape(place: Place, is_leaf: Any, left: IntArray, right: IntArray) -> None:
    """Check that every question but the first is reached from exactly one earlier question."""
    n, cells = len(is_leaf), np.cumsum(is_leaf) - 1
    here = np.arange(n)
    is_next = is_leaf | ((left > here) & (right > here) & (left < n) & (right < n))
    place.require(is_next, "a question whose answers lead to later ones")
    place.require(~is_leaf | ((left == cells) & (right == cells)), "the cell that comes next")
    followed = np.sort(np.concatenate([left[~is_leaf], right[~is_leaf]]))
    if not np.array_equal(followed, np.arange(1, n)):
        raise place.malformed(f"{place.path} must lead to every question but the first once.")


def _read_counted(
    place: Place, n_values: int, n_cells: int
) -> tuple[IntArray, IntArray, FloatArray]:
    values, cells, weights = place.items(3)
    n = values.length()
    found = cells.integers(n, low=0, high=n_cells - 1)
    if len(np.unique(found)) < n_cells:
        raise cells.malformed(f"{cells.path} must have every cell.")
    of_value = values.integers(n, low=0, high=n_values - 1)
    pairs = zip(of_value.tolist(), found.tolist(), strict=True)
    values.different(pairs, "a value of the same cell")
    return of_value, found, weights.numbers(n, low=0, high=HEAVIEST)


# Fitted transformers: encoder and channel, no P_SX, no S.


# The parameters that matter after fit; budget and measure are in the mechanism.
_PARAMETERS = {
    "output": ("label", "symbol", "posterior"),
    "made_up": MADE_UP,
    "handle_unknown": ("resample", "error"),
}

# Limited, because a short file could claim any number of columns without names.
_MOST_COLUMNS = 1_000_000


def write_transformer(fitted: Fitted, parameters: Mapping[str, Any], indent: int | None) -> str:
    """Return the JSON text of a fitted transformer, with the parameters that matter after fit."""
    roles = fitted.roles
    mechanism = fitted.mechanism.content(include_joint=False)
    content: dict[str, Any] = {
        "parameters": {name: encode_label(parameters[name]) for name in _PARAMETERS},
        "layout": {
            "names": None if roles.names is None else [encode_label(n) for n in roles.names],
            "n_columns": roles.n_columns,
            "replaced": _labels(roles, roles.x_positions),
            "copied": _labels(roles, roles.kept_positions),
            "leaking": [
                {"column": encode_label(name), "leakage": None if np.isnan(x) else encode_label(x)}
                for name, x in fitted.leaking.items()
            ],
            "sensitive": [encode_label(name) for name in roles.s_names],
        },
        "types": [type_.to_dict() for type_ in fitted.types],
        **_alphabet_content(fitted.alphabet),
    }
    if roles.person_position is not None:
        (content["layout"]["person"],) = _labels(roles, [roles.person_position])
    if roles.beside_positions:
        content["layout"]["beside"] = _labels(roles, roles.beside_positions)
    if (of_target := fitted.of_target) is not None:
        labels = [encode_label(label) for label in of_target.labels]
        content["target"] = {"labels": labels, "given_y": of_target.given_y.tolist()}
    if fitted.target is not None:
        content["layout"]["target"] = list(map(encode_label, roles.target_names))
        content["released_target"] = {
            **alphabet_content(fitted.target.alphabet),
            "types": [type_.to_dict() for type_ in fitted.target.types],
            "given_y": fitted.target.given_y.tolist(),
        }
    if fitted.shown_given_y is not None:
        content["shown_given_y"] = fitted.shown_given_y.tolist()
    content |= {"names": mechanism.pop("names"), "mechanism": mechanism}
    return write_document("transformer", content, indent)


def _alphabet_content(alphabet: Alphabet) -> dict[str, Any]:
    if isinstance(alphabet, PairedAlphabet):
        beside = {
            **alphabet_content(alphabet.beside),
            "pairs": alphabet.pairs.tolist(),
            "pair_weights": alphabet.weights.tolist(),
        }
        return {**_alphabet_content(alphabet.inner), "beside": beside}
    if isinstance(alphabet, CellAlphabet):
        return cell_content(alphabet)
    assert isinstance(alphabet, ValueAlphabet)
    return alphabet_content(alphabet)


def _labels(roles: ColumnRoles, positions: Sequence[int]) -> list[Any]:
    return list(map(encode_label, roles.names_or_positions(positions)))


def read_transformer(
    text: str, measure: Measure | None, utility: Utility | None
) -> tuple[dict[str, Any], Fitted]:
    """Return the parameters of a transformer, and what was fitted."""
    document = read_document(text, "transformer")
    present = document.members()
    of_cells = "questions" in present
    listed = "target", "beside", "shown_given_y", "released_target"
    optional = [key for key in listed if key in present]
    keys = [*(CELL_KEYS if of_cells else ALPHABET_KEYS), *optional]
    part = document.keys("parameters", "layout", "types", *keys, "names", "mechanism")
    given = part["parameters"].keys(*_PARAMETERS)
    parameters: dict[str, Any] = {key: given[key].text(*_PARAMETERS[key]) for key in given}
    alphabet: Alphabet = read_cells(part) if of_cells else read_alphabet(part)
    n_replaced, n_beside = len(alphabet.columns), 0
    if "beside" in part:
        alphabet = read_beside(part["beside"], alphabet)
        n_beside = len(alphabet.beside.columns)
    roles, leaking = _read_roles(part["layout"], n_replaced, n_beside, of_cells)
    if roles.person_position is not None:
        by_scores = of_cells and part["scores"].optional(lambda _: True) is not None
        part["layout"]["person"].require(by_scores, "left out where cells are not by scores")
    types = tuple(map(_read_type, part["types"].items(len(roles.typed_positions))))
    mechanism = make_mechanism(part["mechanism"], measure, utility)
    x_labels = part["mechanism"]["x_labels"]
    x_labels.items(len(alphabet.labels))
    is_same = _same(mechanism.x_labels, alphabet.labels)
    x_labels.require(is_same, "the label that this symbol has in columns")
    _check_strata(part["mechanism"], mechanism.strata, alphabet.strata)
    mechanism = mechanism.renamed(symbol_of_output=_read_symbols(part["names"], mechanism))
    of_target = None
    if "target" in part:  # P(V|y)
        target = part["target"].keys("labels", "given_y")
        labels, n_outputs = target["labels"].labels(), len(mechanism.y_labels)
        given_y = target["given_y"].numbers(n_outputs, len(labels), low=0, high=1)
        of_target = Posterior(labels, given_y)
    shown = _read_shown(part["shown_given_y"], mechanism) if "shown_given_y" in part else None
    released = None
    if "released_target" in part:
        released = _read_target(part["released_target"], mechanism, len(roles.target_names))
    is_known = bool(roles.target_names) == (released is not None)
    part["layout"].require(is_known, "a layout that names a target only if it is released")
    fitted = Fitted(roles, types, alphabet, mechanism, leaking, of_target, shown, released)
    with part["layout"].making():
        check_names_out(names_out(roles, fitted.posterior.labels, parameters["output"]))
    budgets = {name: secret.epsilon for name, secret in mechanism.secrets.items()}
    parameters["epsilon"] = budgets.get(None, budgets)
    for name in ("measure", "scope", "confidence"):
        parameters[name] = getattr(mechanism, name)
    parameters["columns"] = roles.names_or_positions(roles.x_positions)
    parameters["sensitive"] = roles.names_or_positions(roles.s_positions) or None
    parameters["remainder"] = roles.names_or_positions(roles.kept_positions) or "drop"
    parameters["beside"] = roles.names_or_positions(roles.beside_positions) or None
    parameters["alphabet"] = "cells" if of_cells else "values"
    parameters["release_target"] = released is not None
    parameters["utility"] = utility or _utility_parameter(mechanism.objective)
    return parameters, fitted


def _utility_parameter(objective: Utility) -> str:
    """Return the parameter that leads to an objective: that of cells is of each column."""
    return objective.name if objective.name in UTILITIES else MutualInformation.name


def _read_roles(
    place: Place, n_replaced: int, n_beside: int, of_cells: bool
) -> tuple[ColumnRoles, dict[Any, float]]:
    keys = ["names", "n_columns", "replaced", "copied", "leaking", "sensitive"]
    keys += ["beside"] * bool(n_beside)
    keys += [key for key in ("person", "target") if key in place.members()]
    part = place.keys(*keys)
    n_columns = part["n_columns"].integer(low=1, high=_MOST_COLUMNS)
    names = part["names"].optional(lambda names: _read_column_names(names, n_columns))
    columns = {name: p for p, name in enumerate(range(n_columns) if names is None else names)}
    sensitive = tuple(item.label() for item in part["sensitive"].items())
    hidden = tuple(columns[name] for name in sensitive if name in columns)
    found: dict[str, tuple[int, ...]] = {"sensitive": hidden, "beside": ()}
    for key, length in {"replaced": n_replaced, "copied": None, "beside": n_beside}.items():
        if key in part:
            positions = _read_columns(part[key], columns, length)
            taken = [position for others in found.values() for position in others]
            part[key].require(~np.isin(positions, taken), "a column without another role")
            found[key] = positions
    replaced, copied, beside = found["replaced"], found["copied"], found["beside"]
    leaking = dict(_read_leaking(item, columns, copied) for item in part["leaking"].items())
    person = None
    if "person" in part:
        person = columns.get(part["person"].label())
        is_free = person is not None and person not in (*hidden, *replaced, *copied, *beside)
        part["person"].require(is_free, "a column that is neither sensitive nor released")
    kept = replaced, hidden, sensitive, copied
    target = tuple(item.label() for item in part["target"].items()) if "target" in part else ()
    return ColumnRoles(names, n_columns, *kept, of_cells, person, beside, target), leaking


def _read_columns(place: Place, columns: dict[Any, int], length: int | None) -> tuple[int, ...]:
    """Return the positions of the columns in a list of names."""
    labels = [item.label() for item in place.items(length)]
    place.require(np.array([label in columns for label in labels], dtype=bool), "a column")
    place.different(labels, "a column")
    return tuple(columns[label] for label in labels)


def _read_leaking(
    place: Place, columns: dict[Any, int], copied: tuple[int, ...]
) -> tuple[Any, float]:
    part = place.keys("column", "leakage")
    name = part["column"].label()
    part["column"].require(columns.get(name) in copied, "a column that is copied")
    leakage = part["leakage"].optional(lambda leakage: float(leakage.number(low=0)))
    return name, np.nan if leakage is None else leakage


def _read_type(place: Place) -> ColumnType:
    part = place.keys("family", "bits", "unit", "zone", "is_ordered", "library", "native")
    family = part["family"].text(*FAMILIES)
    bits = part["bits"].optional(lambda bits: bits.integer(low=8, high=128))
    unit = part["unit"].optional(lambda unit: unit.text(*UNITS))
    if family in ("int", "uint", "float"):
        sizes = (16, 32, 64) if family == "float" else (8, 16, 32, 64, 128)
        part["bits"].require(bits in sizes, f"one of {', '.join(map(str, sizes))}")
    if family in ("time", "duration"):
        part["unit"].require(unit is not None, f"one of {', '.join(UNITS)}")
    zone = part["zone"].optional(lambda zone: zone.text())
    part["zone"].require(zone is None or is_zone(zone), "the name of a time zone, or null")
    native = part["native"].text()
    part["native"].require(is_name(native), "the name of a type")
    is_ordered, library = part["is_ordered"].flag(), part["library"].text(*LIBRARIES)
    return ColumnType(family, bits, unit, zone, is_ordered, library, native)


def _read_column_names(place: Place, n_columns: int) -> list[Any]:
    names = place.labels(n_columns)
    place.different(names, "a name")
    place.require(~np.array(list(map(_has_na, names))), "a name that can be compared with others")
    return list(names)


def _has_na(name: object) -> bool:
    return name is pd.NA or (isinstance(name, tuple) and any(map(_has_na, name)))


def _check_strata(place: Place, strata: IntArray | None, expected: IntArray | None) -> None:
    """Check that the strata of symbols are the values beside X in their pairs."""
    if expected is None:
        place.require(strata is None, "a mechanism without strata, where no columns are beside X")
        return
    place.require(strata is not None, "a mechanism with strata, which columns beside X have")
    place["strata"].require(strata == expected, "the first number of its pair")


def _read_symbols(place: Place, mechanism: Mechanism) -> IntArray:
    """Return the symbol that each output is named after, which has the same label."""
    symbols = place.integers(len(mechanism.y_labels), low=0, high=len(mechanism.x_labels) - 1)
    place.different(symbols.tolist(), "a symbol")
    if (strata := mechanism.strata) is not None:
        is_same = strata[symbols] == strata[mechanism.channel.argmax(axis=0)]
        place.require(is_same, "a symbol with the same columns beside it as this output")
    is_same = _same(mechanism.y_labels, (mechanism.x_labels[x] for x in symbols))
    place.require(is_same, "the symbol with the label of this output")
    return symbols
