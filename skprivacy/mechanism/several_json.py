"""A mechanism for several secrets as a part of a document: what they share, and each secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._json import encode_label, label_key
from .._json_reader import Place
from .._typing import FloatArray, Labels
from ..measures import Measure
from ..utilities import Utility
from .mechanism import Mechanism, make_mechanism, mechanism_content

# What each secret has of its own; the rest is what the mechanism of each has in common.
_OWN, _OF_JOINT = ("epsilon",), ("s_labels", "p_sx")

# As in designs: the marginals of X in the tables of secrets differ by rounding only.
_SAME_MARGINALS = 1e-9


@dataclass(frozen=True, eq=False)
class SeveralParts:
    """What a mechanism for several secrets is made of; together : P_SX of all as one, labels."""

    secrets: Mapping[Any, Mechanism]
    confidence: float | None
    together: tuple[FloatArray, Labels] | None


def several_content(parts: SeveralParts, include_joint: bool) -> dict[str, Any]:
    """Return what a document says about a mechanism for several secrets."""
    contents = {n: mechanism_content(m, include_joint) for n, m in parts.secrets.items()}
    first = next(iter(contents.values()))
    shared = {key: first[key] for key in first if key not in (*_OWN, *_OF_JOINT)}
    if parts.confidence is not None:
        shared["confidence"] = float(parts.confidence)  # of all secrets at once
    shared["secrets"] = [
        {
            "name": encode_label(name),
            **{key: content[key] for key in (*_OWN, *_OF_JOINT) if key in content},
        }
        for name, content in contents.items()
    ]
    if include_joint and parts.together is not None:
        p_sx, s_labels = parts.together
        labels = [encode_label(label) for label in s_labels]
        shared["together"] = {"s_labels": labels, "p_sx": p_sx.tolist()}
    return shared


def read_several(place: Place, measure: Measure | None, utility: Utility | None) -> SeveralParts:
    """Return what the mechanism for several secrets at some place is made of, all checked."""
    listed = place.key("secrets").items(fewest=1)
    names = [_read_name(each.key("name")) for each in listed]
    place["secrets"].different(map(label_key, names), "a secret")
    confidence = place["confidence"].number(low=0) if "confidence" in place.members() else None
    made = {
        name: make_mechanism(_OneSecret(place, each, len(listed)), Mechanism, measure, utility)
        for name, each in zip(names, listed, strict=True)
    }
    first, *others = made.values()
    for each, other in zip(listed[1:], others, strict=True):
        if (first.p_sx is None) != (other.p_sx is None):
            raise each.malformed(f"{each.path} has a joint and others have none, or none itself.")
        _check_same_x(each, first.p_x, other.p_x)
    together = _read_together(place, first) if "together" in place.members() else None
    return SeveralParts(made, confidence, together)


def _read_name(place: Place) -> Any:
    name = place.label()
    place.require(name is not None and label_key(name) != label_key(float("nan")), "a name")
    return name


def _check_same_x(place: Place, p_x: FloatArray, other: FloatArray) -> None:
    apart = float(np.abs(p_x - other).max())
    if not apart <= _SAME_MARGINALS:
        raise place.malformed(f"{place.path}.p_sx differs by {apart:.3g} in its marginal of X.")


def _read_together(place: Place, first: Mechanism) -> tuple[FloatArray, Labels]:
    at = place["together"]
    part = at.keys(*_OF_JOINT)
    if first.p_sx is None:
        raise at.malformed(f"{at.path} is there although the secrets have no joints.")
    s_labels = part["s_labels"].secret().labels()
    part["s_labels"].secret().different(map(label_key, s_labels), "a label")
    p_sx = part["p_sx"].numbers(len(s_labels), len(first.p_x), low=0, high=1)
    _check_same_x(at, first.p_x, p_sx.sum(axis=0))
    return p_sx, s_labels


class _OneSecret(Place):
    """A mechanism for several secrets, read as one for one of them."""

    __slots__ = ("_n_secrets", "_own")

    def __init__(self, place: Place, own: Place, n_secrets: int) -> None:
        shared = {k: v for k, v in place.value.items() if k not in ("secrets", "together")}
        told = {key: own.value[key] for key in own.value if key != "name"}
        super().__init__({**shared, **told}, place.kind, place.path)
        self._own, self._n_secrets = own, n_secrets
        for key in self._foreign():
            raise place.malformed(f"{own.path}.{key} is not a key that skprivacy writes.")

    def _foreign(self) -> Iterator[str]:
        return (key for key in self._own.value if key not in ("name", *_OWN, *_OF_JOINT))

    def __getitem__(self, step: str | int) -> Place:
        if step in (*_OWN, *_OF_JOINT) and step in self._own.value:
            return self._own[step]
        place = super().__getitem__(step)
        if step == "confidence":  # each secret has its share of the risk
            sure = place.number(low=0, high=1)
            return Place(1 - (1 - sure) / self._n_secrets, place.kind, place.path)
        return place
