"""Fitted models as text and back, without pickle; the only import of skops."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from .boosted_trees import is_boosting

# What gradient boosting is made of, besides what skops knows to be harmless. Nothing else is made
# from a text, whatever it asks for.
_TREES = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"
_TRUSTED = ("functools.partial", _TREES, "sklearn.utils.validation.check_array")


def write_models(models: list[Any]) -> str:
    """Return models as text."""
    data = _skops("write").dumps(models)
    held = _untrusted(data, "write")
    others = [name for name in held if name not in _TRUSTED]
    if _has_hidden_trees(models, held):
        others.append("gradient boosting inside another model")
    if others:
        raise ValueError(
            f"The models of ScoreCells hold {others[0]}, which a file cannot be trusted with: use "
            f"estimator=None, or another estimator of scikit-learn; or pickle the transformer, "
            f"and load it only where you trust its source."
        )
    return base64.b64encode(data).decode()


def read_models(text: str) -> list[Any]:
    """Return the models that a text holds; it may come from anybody."""
    io = _skops("read")
    try:
        data = base64.b64decode(text, validate=True)
        models = io.loads(data, trusted=list(_TRUSTED))
        hidden = _has_hidden_trees(models, _untrusted(data, "read"))
    except binascii.Error:
        raise ValueError("models are not written as base64") from None
    except Exception as error:  # whatever skops meets in a text that it has not written
        raise ValueError("models cannot be read, or are not of a kind that is trusted") from error
    if not isinstance(models, list):
        raise ValueError("models must be a list")
    if hidden:
        raise ValueError("models must not hold gradient boosting inside another model")
    return models


def _has_hidden_trees(models: list[list[Any]], held: list[str]) -> bool:
    """Return whether there are trees that cannot be checked; held : the types of all parts."""
    every = [model for of in models for model in of if model is not None]
    return _TREES in held and not all(map(is_boosting, every))


def _untrusted(data: bytes, verb: str) -> list[str]:
    return list(_skops(verb).get_untrusted_types(data=data))


def _skops(verb: str) -> Any:
    try:
        import skops.io
    except ImportError as error:
        raise ImportError(
            f"To {verb} cells by scores, which hold models, skops is needed: run "
            f'pip install ".[models]" in a clone.'
        ) from error
    return skops.io
