"""Fitted models as text and back, without pickle; the only import of skops."""

from __future__ import annotations

import base64
import binascii
import json
import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import Any

from .model_checks import KINDS

# To skops most of scikit-learn is harmless, as long as nothing is called. Nothing is made from a
# text but models that can be checked afterwards, what these are made of,
_PARTS = (
    *("TreePredictor", "_BinMapper", "LabelEncoder", "partial", "check_array"),
    *("ColumnTransformer", "OrdinalEncoder", "FunctionTransformer", "_RemainderColsList"),
    *("HalfBinomialLoss", "CyHalfBinomialLoss", "LogitLink", "Interval"),
    *("HalfMultinomialLoss", "CyHalfMultinomialLoss", "MultinomialLogit"),
)
_OF_MODELS = ("sklearn", "_loss", "functools")  # the second up to scikit-learn 1.8

# what they hold,
_LIBRARIES = ("builtins", "numpy")

# and by these loaders: that of a tree, say, makes one of any class that it is told.
_LOADERS = (
    *("DictNode", "ListNode", "TupleNode", "SliceNode", "JsonNode", "TypeNode"),
    *("NdArrayNode", "RandomGeneratorNode", "RandomStateNode"),
    *("ObjectNode", "FunctionNode", "PartialNode", "LossNode"),
)


def write_models(models: list[Any]) -> str:
    """Return models as text."""
    data = _skops("write").dumps(models)
    if others := _others(data):
        raise ValueError(
            f"The models of ScoreCells hold {others[0]}, which a file cannot be trusted with: use "
            f"estimator=None, or one of {', '.join(KINDS)}; or pickle the transformer, and load "
            f"it only where you trust its source."
        )
    return base64.b64encode(data).decode()


def read_models(text: str) -> list[Any]:
    """Return the models that a text holds, unchecked; it may come from anybody."""
    io = _skops("read")
    try:
        data = base64.b64decode(text, validate=True)
        others = _others(data)
        models = None if others else _made(io, data)
    except binascii.Error:
        raise ValueError("models are not written as base64") from None
    except Exception as error:  # whatever skops meets in a text that it has not written
        raise ValueError("models cannot be read, or are not of a kind that is trusted") from error
    if others:
        raise ValueError(
            f"models hold {others[0]}, which is refused: a file may hold {', '.join(KINDS)}. Fit "
            f"with one of these, or use a pickle where you trust its source"
        )
    if not isinstance(models, list):
        raise ValueError("models must be a list")
    return models


def _made(io: Any, data: bytes) -> Any:
    """Return what is written, once it is known to hold nothing else; io : of skops."""
    held = io.get_untrusted_types(data=data)
    return io.loads(data, trusted=[name for name in held if name.rpartition(".")[2] in _PARTS])


def _others(data: bytes) -> list[str]:
    """Return the names of what is written that no model which can be checked is made of."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        parts = list(_parts(json.loads(archive.read("schema.json"))))
    return [
        f"{module}.{name}" for module, name, loader in parts if not _is_known(module, name, loader)
    ]


def _is_known(module: str, name: str, loader: str) -> bool:
    library = module.partition(".")[0]
    is_part = library in _OF_MODELS and name in (*KINDS, *_PARTS)
    return (is_part or library in _LIBRARIES) and loader in _LOADERS


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
            f"To {verb} cells by scores, which hold models, skops is needed: run "
            f'pip install ".[models]" in a clone.'
        ) from error
    return skops.io
