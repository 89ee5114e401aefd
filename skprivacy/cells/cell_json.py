"""Cells as a part of a JSON document, read with care."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._json_reader import Place
from .._typing import FloatArray, IntArray
from ..encoding.alphabet_json import HEAVIEST, read_column, write_column
from .alphabet import CellAlphabet
from .base import Partition
from .columns import CellColumn
from .folds import N_FOLDS
from .model_checks import check_model
from .models import read_models, write_models
from .score_cells import PARTS, ScorePartition, Scorer, model_frame
from .tree_cells import TreePartition
from .trees import LEAF, CellTree

# A short file could claim any number.
_MOST_CLASSES = 10_000

CELL_KEYS = ("columns", "questions", "counted", "scores")


def cell_content(alphabet: CellAlphabet) -> dict[str, Any]:
    """Return what a document says about cells: their rules, and models if they need some."""
    partition = alphabet.partition
    assert isinstance(partition, TreePartition | ScorePartition)
    return {
        "columns": [write_column(column) for column in alphabet.columns],
        "questions": partition.tree.to_lists(),
        "counted": [[part.tolist() for part in counted] for counted in alphabet.counted],
        "scores": None
        if isinstance(partition, TreePartition)
        else _scores_content(partition, alphabet.cell_columns),
    }


def _scores_content(partition: ScorePartition, columns: Sequence[CellColumn]) -> dict[str, Any]:
    scorers = partition.target, partition.sensitive
    models = write_models([list(scorer.models) for scorer in scorers])
    _check_scorers(columns, *scorers)  # what is written can be read
    return {
        "n_classes": [scorer.n_classes for scorer in scorers],
        "constants": [list(scorer.constants) for scorer in scorers],
        "models": models,
        "digest": partition.digest,
        "information": partition.information,
    }


def read_cells(part: dict[str, Place]) -> CellAlphabet:
    """Return cells after checking all of it: a wrong one would draw from the wrong rows."""
    columns = tuple(map(read_column, part["columns"].items(fewest=1)))
    coded = [CellColumn(column) for column in columns]
    scorers = part["scores"].optional(lambda place: _read_scorers(place, coded))
    if scorers is None:
        tree = _read_tree(part["questions"], [(c.has_order, c.n_codes) for c in coded])
        partition: Partition = TreePartition(tree)
    else:
        n_scores = sum(scorer.n_classes - 1 for scorer in scorers)
        tree = _read_tree(part["questions"], [(True, PARTS + 1)] * n_scores)
        digest = part["scores"]["digest"].text()
        information = float(part["scores"]["information"].number(low=0))
        partition = ScorePartition(*scorers, tree, digest, information)
    counted = [
        _read_counted(place, len(column.values), tree.n_cells)
        for place, column in zip(part["counted"].items(len(columns)), columns, strict=True)
    ]
    return CellAlphabet(columns, partition, tuple(counted))


def _read_scorers(place: Place, columns: Sequence[CellColumn]) -> tuple[Scorer, Scorer]:
    part = place.keys("n_classes", "constants", "models", "digest", "information")
    n_classes = part["n_classes"].integers(2, low=1, high=_MOST_CLASSES).tolist()
    constants = part["constants"].integers(2, N_FOLDS, low=0, high=_MOST_CLASSES)
    fits = constants < np.array(n_classes)[:, None]
    part["constants"].require(fits, "one of the classes")
    with part["models"].making():
        models = read_models(part["models"].text())
        _check_models(models, n_classes, len(columns))
        target, sensitive = (
            Scorer(tuple(of), tuple(given.tolist()), n)
            for of, given, n in zip(models, constants, n_classes, strict=True)
        )
        _check_scorers(columns, target, sensitive)
    return target, sensitive


def _check_scorers(columns: Sequence[CellColumn], *scorers: Scorer) -> None:
    """Check that every model is sound and scores a row, before rows depend on it."""
    row = model_frame(columns, np.zeros((1, len(columns)), dtype=int))
    for scorer, fold in itertools.product(scorers, range(N_FOLDS)):
        try:
            if scorer.models[fold] is not None:
                check_model(scorer.models[fold], row)
            scorer.scores(row, fold)
        except ValueError as error:
            raise ValueError(f"every model must score a row of these columns: {error}") from error
        except Exception as error:  # whatever is wrong inside a model that anybody may have made
            raise ValueError("every model must score a row of these columns") from error


def _check_models(models: list[Any], n_classes: list[int], n_columns: int) -> None:
    """Check that there is a classifier for each fold, with these classes and columns."""
    if len(models) != 2 or any(len(of) != N_FOLDS for of in models):
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
    """Return whether these are some of the first integers, in their order."""
    if classes.ndim != 1 or classes.dtype.kind not in "iu" or len(classes) < 2:
        return False
    increase = (np.diff(classes.astype(float)) > 0).all()
    return bool(increase and classes[0] >= 0 and classes[-1] < n_classes)


def _read_tree(place: Place, asked: Sequence[tuple[bool, int]]) -> CellTree:
    """Return the questions; asked : of each column, whether codes are places, and how many."""
    n = place.length()
    has_order, n_codes = (np.array(part) for part in zip(*asked, strict=True))
    table = place.integers(n, 5, low=-1, high=max(n, int(n_codes.max())))
    of, codes, is_category, left, right = table.T
    is_leaf = of == LEAF
    place.require(of < len(asked), "a question about a column that there is")
    fits = np.where(is_leaf, is_category == 0, is_category == ~has_order[of])
    place.require(fits, "a question that its column allows")
    place.require(is_leaf | (codes < n_codes[of]), "a question about a code that its column has")
    _check_shape(place, is_leaf, left, right)
    return CellTree(of, codes, is_category.astype(bool), left, right)


def _check_shape(place: Place, is_leaf: Any, left: IntArray, right: IntArray) -> None:
    """Check that every question but the first follows exactly one earlier one."""
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
