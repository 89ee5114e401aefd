"""Models of cells by scores: saved to files, and checked when they are loaded.

scikit-learn trusts the arrays of a model: from forged ones it would read out of bounds, or never
return. So a model must be of a known kind, have only the attributes that fitting gives it, and
arrays whose shapes, types and values fit each other.
"""

from __future__ import annotations

import base64
import binascii
import json
import zipfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder
from sklearn.utils.validation import check_array

from .._typing import BoolArray

# Sets of categories have this many words of 32 bits, so a column has at most this many categories.
_WORDS, _MOST_CATEGORIES = 8, 256


def check_model(model: Any, row: pd.DataFrame) -> None:
    """Check a classifier from an untrusted source, without calling it.

    row : one row as the model takes it. The classes of the model were checked before.
    """
    kind: Any = type(model)
    if (check := _CHECKS.get(kind)) is None:
        raise ValueError(f"{kind.__name__} is none of {', '.join(KINDS)}")
    like = _fitted_here(kind, min(len(model.classes_), 3))
    _check_like(model, like)
    check(model, like, row)


@cache
def _fitted_here(kind: Any, n_classes: int) -> Any:
    """Return a small model of a kind, fitted with the installed scikit-learn."""
    rows = np.arange(60)
    category = pd.Categorical.from_codes(rows % 3, categories=pd.RangeIndex(3))
    frame = pd.DataFrame({"x0": rows % 7 - 3.0, "x1": category})
    # With weights, some versions keep one more attribute: that there were some.
    return kind().fit(frame, rows % n_classes, np.ones(len(rows)))


def _check_like(part: Any, like: Any) -> None:
    """Check that a part of a model has the type, and no more attributes, than a genuine one.

    An additional attribute could take the place of a method.
    """
    if type(part) is not type(like) or not vars(part).keys() <= vars(like).keys():
        raise ValueError(
            f"{type(like).__name__} must be as the installed scikit-learn makes it, with no other "
            f"attributes: if the version differs, fit and save again"
        )


def _require(holds: Any, model: Any, what: str) -> None:
    if not np.all(holds):
        raise ValueError(f"{type(model).__name__} must have {what}")


def _check_numbers(model: Any, name: str, shape: tuple[int, ...], low: float = -np.inf) -> None:
    """Check the shape and numbers of an array of a model; low : all numbers must be larger."""
    array = vars(model).get(name)
    is_array = type(array) is np.ndarray and array.dtype.kind == "f" and array.shape == shape
    holds = is_array and bool((np.isfinite(array) & (array > low)).all())
    _require(holds, model, f"{name} with numbers of shape {shape}")


def _check_logistic(model: Any, like: Any, row: pd.DataFrame) -> None:
    n_scores = 1 if len(model.classes_) == 2 else len(model.classes_)
    _check_numbers(model, "coef_", (n_scores, row.shape[1]))
    _check_numbers(model, "intercept_", (n_scores,))


def _check_bayes(model: Any, like: Any, row: pd.DataFrame) -> None:
    n_classes = len(model.classes_)
    _check_numbers(model, "theta_", (n_classes, row.shape[1]))
    _check_numbers(model, "var_", (n_classes, row.shape[1]), low=0)
    _check_numbers(model, "class_prior_", (n_classes,), low=0)


def _check_boosting(model: Any, like: Any, row: pd.DataFrame) -> None:
    n_trees = 1 if len(model.classes_) == 2 else len(model.classes_)
    is_weighted = vars(model).get("_fitted_with_sw", True)
    _require(
        is_weighted is True or is_weighted is False, model, "been fitted with weights, or not"
    )
    _require(model.n_trees_per_iteration_ == n_trees, model, f"{n_trees} trees of an iteration")
    _check_numbers(model, "_baseline_prediction", (1, n_trees))
    _check_like(model._loss, like._loss)
    _check_like(model._loss.link, like._loss.link)
    is_category = _categories(model, like, _n_columns(model, like, row))
    for trees in model._predictors:
        _require(type(trees) is list and len(trees) == n_trees, model, "a tree for each class")
        for tree in trees:
            _check_like(tree, like._predictors[0][0])
            _check_tree(tree, like._predictors[0][0], is_category)


def _n_columns(model: Any, like: Any, row: pd.DataFrame) -> int:
    """Return how many columns the trees can use, after checking the steps before them."""
    steps = model._preprocessor
    if steps is None:
        return row.shape[1]
    _check_like(steps, like._preprocessor)
    known = {type(step): step for _, step, _ in like._preprocessor.transformers_}
    for _, step, _ in steps.transformers_:
        _require(type(step) in known, steps, "no steps but those of gradient boosting")
        if isinstance(step, FunctionTransformer):
            _check_like(step, known[FunctionTransformer])
            is_check = type(step.func) is partial and step.func.func is check_array
            _require(is_check, step, "check_array as its function")
        elif isinstance(step, OrdinalEncoder):
            _check_like(step, known[OrdinalEncoder])
            found = [c.dtype.kind in "iuf" and c.ndim == 1 for c in step.categories_]
            _require(found, step, "categories_ that are numbers")
    _require(steps.n_jobs is None, steps, "no processes of its own")
    return int(steps.transform(row).shape[1])


def _categories(model: Any, like: Any, n_columns: int) -> BoolArray:
    """Return which columns are categories, after checking that these fit into bit sets."""
    bins = model._bin_mapper
    _check_like(bins, like._bin_mapper)
    flags, values = bins.is_categorical_, bins.bin_thresholds_
    is_array = type(flags) is np.ndarray and flags.dtype.kind in "ub"
    _require(is_array and flags.shape == (n_columns,), bins, f"is_categorical_ of {n_columns}")
    _require(len(values) == n_columns, bins, f"bin_thresholds_ of {n_columns} columns")
    is_category = flags.astype(bool)
    for of_column in np.flatnonzero(is_category):
        found = np.asarray(values[of_column], dtype=float)
        is_bit = (found >= 0) & (found < _MOST_CATEGORIES) & (found == np.floor(found))
        _require(is_bit, bins, f"categories below {_MOST_CATEGORIES}")
    return is_category


def _check_tree(tree: Any, like: Any, is_category: BoolArray) -> None:
    """Check that a tree ends, and uses existing columns and categories."""
    nodes, bits = tree.nodes, tree.raw_left_cat_bitsets
    are_arrays = type(nodes) is type(bits) is np.ndarray
    are_nodes = are_arrays and nodes.dtype == like.nodes.dtype and nodes.ndim == 1 and len(nodes)
    _require(
        are_nodes and np.isfinite(nodes["value"]), tree, "nodes as this scikit-learn has them"
    )
    are_bits = bits.dtype == like.raw_left_cat_bitsets.dtype and bits.shape[1:] == (_WORDS,)
    _require(are_bits, tree, f"categories as {_WORDS} words each")
    at = np.flatnonzero(nodes["is_leaf"] == 0)
    inner = nodes[at]
    for side in ("left", "right"):  # children come later, so every path ends
        follows = (inner[side] > at) & (inner[side] < len(nodes))
        _require(follows, tree, "questions that lead to later ones")
    asked, of_category = inner["feature_idx"], inner["is_categorical"] != 0
    _require((asked >= 0) & (asked < len(is_category)), tree, "questions about columns")
    in_words = is_category[asked] & (inner["bitset_idx"] < len(bits))
    _require(in_words[of_category], tree, "questions about categories that it knows")


_CHECKS: dict[type, Callable[[Any, Any, pd.DataFrame], None]] = {
    HistGradientBoostingClassifier: _check_boosting,
    LogisticRegression: _check_logistic,
    GaussianNB: _check_bayes,
}

#: The names of the classifiers that a file may hold.
KINDS = tuple(kind.__name__ for kind in _CHECKS)


# Fitted models as text and back, without pickle; the only import of skops.


# skops trusts most of scikit-learn, as long as nothing is called. Here, a text may only contain
# models that can be checked afterwards, their parts,
_PARTS = (
    *("TreePredictor", "_BinMapper", "LabelEncoder", "partial", "check_array"),
    *("ColumnTransformer", "OrdinalEncoder", "FunctionTransformer", "_RemainderColsList"),
    *("HalfBinomialLoss", "CyHalfBinomialLoss", "LogitLink", "Interval"),
    *("HalfMultinomialLoss", "CyHalfMultinomialLoss", "MultinomialLogit"),
)
_OF_MODELS = ("sklearn", "_loss", "functools")  # the second up to scikit-learn 1.8

# the values in them,
_LIBRARIES = ("builtins", "numpy")

# and these loaders: others, like that of a tree, can make an object of any class.
_LOADERS = (
    *("DictNode", "ListNode", "TupleNode", "SliceNode", "JsonNode", "TypeNode"),
    *("NdArrayNode", "RandomGeneratorNode", "RandomStateNode"),
    *("ObjectNode", "FunctionNode", "PartialNode", "LossNode"),
)


def write_models(models: list[Any]) -> str:
    """Return models as text."""
    data = _skops("write").dumps(models)
    if others := _untrusted(data):
        raise ValueError(
            f"The models of ScoreCells hold {others[0]}, which a file cannot be trusted with: use "
            f"estimator=None, or one of {', '.join(KINDS)}; or pickle the transformer, and load "
            f"it only from sources you trust."
        )
    return base64.b64encode(data).decode()


def read_models(text: str) -> list[Any]:
    """Return the models in a text, which may be untrusted; `check_model` must follow."""
    io = _skops("read")
    try:
        data = base64.b64decode(text, validate=True)
        if not (others := _untrusted(data)):
            held = io.get_untrusted_types(data=data)
            trusted = [name for name in held if name.rpartition(".")[2] in _PARTS]
            models = io.loads(data, trusted=trusted)
    except binascii.Error:
        raise ValueError("models are not written as base64") from None
    except Exception as error:  # skops raises anything for texts that it has not written
        raise ValueError("models cannot be read, or are not of a kind that is trusted") from error
    if others:
        raise ValueError(
            f"models hold {others[0]}, which is refused: a file may hold {', '.join(KINDS)}. Fit "
            f"with one of these, or use a pickle from a source you trust"
        )
    if not isinstance(models, list):
        raise ValueError("models must be a list")
    return models


def _untrusted(data: bytes) -> list[str]:
    """Return the names of parts that do not belong to a model that can be checked."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        schema = json.loads(archive.read("schema.json"))
    found = []
    for module, name, loader in _parts(schema):
        library = module.partition(".")[0]
        is_part = library in _OF_MODELS and name in (*KINDS, *_PARTS)
        if loader not in _LOADERS or not (is_part or library in _LIBRARIES):
            found.append(f"{module}.{name}")
    return found


def _parts(node: Any) -> Iterator[tuple[str, str, str]]:
    """Yield the module, the class and the loader of every part of a text."""
    if isinstance(node, dict):
        if "__class__" in node:
            yield str(node.get("__module__")), str(node["__class__"]), str(node.get("__loader__"))
        node = list(node.values())
    if isinstance(node, list):
        for part in node:
            yield from _parts(part)


def _skops(verb: str) -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            f"skops is needed to {verb} the models of ScoreCells: run pip install "
            f'".[models]" in a clone.'
        ) from error
    return skops.io
