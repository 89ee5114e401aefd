"""Several secrets, and columns that are published beside a release: their tables, checked."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ._messages import Message, Named, Parameter
from ._typing import FloatArray, IntArray, Labels, TableLike
from ._validation import check_real, message
from .joint import Joint, as_joint, readonly

# Marginals of X may differ by this much: it is rounding.
_SAME_MARGINALS = 1e-9


def joints_of(tables: TableLike | Mapping[Any, TableLike], owner: str) -> dict[Any, Joint]:
    """Return the joint of each secret with X, all with the same P(X).

    tables : a dict of them, or that of the only secret, which is called None.
    """
    if not isinstance(tables, Mapping):
        return {None: as_joint(tables, owner)}
    if not tables:
        raise ValueError(Message(Parameter("p_sx", owner), " must hold at least one table."))
    joints = {name: as_joint(table, owner, f"p_sx[{name!r}]") for name, table in tables.items()}
    (first, reference), *others = joints.items()
    for name, joint in others:
        _check_same_x(first, reference, name, joint, owner)
    # The last digits of P(X) differ between tables of probabilities.
    same = {name: _with_marginal(joint, reference.p_x) for name, joint in others}
    return {first: reference, **same}


def _check_same_x(first: Any, reference: Joint, name: Any, joint: Joint, owner: str) -> None:
    about = f"The tables of {first!r} and {name!r} given to {owner} must be about the same X"
    if len(joint.p_x) != len(reference.p_x):
        sizes = f"{len(reference.p_x)} and {len(joint.p_x)} columns"
        raise ValueError(f"{about}. Got {sizes}.")
    if joint.x_labels != reference.x_labels:
        raise ValueError(f"{about}, with the same labels in the same order.")
    apart = np.abs(joint.p_x - reference.p_x)
    if apart.max() > _SAME_MARGINALS:
        worst = int(apart.argmax())
        raise ValueError(
            f"{about}: their marginals of X differ by up to {apart.max():.3g}, at "
            f"{reference.x_labels[worst]!r}. Count all tables from the same rows."
        )


def _with_marginal(joint: Joint, p_x: FloatArray) -> Joint:
    own = joint.p_x
    scaled = joint.p_sx * np.divide(p_x, own, out=np.ones_like(p_x), where=own > 0)
    return Joint(readonly(scaled / scaled.sum()), joint.s_labels, joint.x_labels)


def stacked_joint(joints: Mapping[Any, Joint]) -> Joint:
    """Return the joint of X and "one of the secrets, drawn at random, and its value"."""
    stack = np.vstack([joint.p_sx for joint in joints.values()]) / len(joints)
    labels = tuple((name, label) for name, joint in joints.items() for label in joint.s_labels)
    return Joint(readonly(stack), labels, next(iter(joints.values())).x_labels)


def check_budgets(
    owner: str, epsilon: Any, tables: Any, parameter: str = "epsilon"
) -> dict[Any, float]:
    """Return the budget of each secret; tables : as in `joints_of`."""
    if not isinstance(tables, Mapping):
        if isinstance(epsilon, Mapping):
            requirement = "a number where there is one table: pass a table for each secret"
            raise TypeError(message(owner, parameter, requirement, epsilon))
        return {None: check_real(owner, parameter, epsilon, low=0)}
    names = list(tables)
    if not isinstance(epsilon, Mapping):
        requirement = f"a dict with a budget for each of {names}"
        raise TypeError(message(owner, parameter, requirement, epsilon))
    for name in names:
        if name not in epsilon:
            raise ValueError(
                Message(
                    Parameter(parameter, owner),
                    f" has no budget for the secret {name!r}: give it one, for instance ",
                    Named("epsilon"),
                    f"[{name!r}] = 0.02, or infinity if it need not be protected.",
                )
            )
    for name in epsilon:
        if name not in names:
            raise ValueError(
                Message(
                    Parameter(parameter, owner),
                    f" has a budget for {name!r}, which is not one of the secrets: {names}.",
                )
            )
    return {n: check_real(owner, f"{parameter}[{n!r}]", epsilon[n], low=0) for n in names}


def as_given(budgets: Mapping[Any, float]) -> float | dict[Any, float]:
    """Return budgets as `epsilon` of a mechanism has them: a number for a single secret."""
    return dict(budgets) if len(budgets) > 1 else next(iter(budgets.values()))


def check_groups(
    groups: Sequence[Hashable] | npt.ArrayLike | None,
    p_x: FloatArray,
    max_outputs: int | None,
    owner: str,
) -> tuple[IntArray | None, Labels]:
    """Return the group of each symbol as a number, and what groups are called."""
    if groups is None:
        return None, ()
    given = list(groups) if isinstance(groups, Sequence) else np.asarray(groups).tolist()
    if isinstance(groups, str) or not isinstance(given, list) or len(given) != len(p_x):
        requirement = f"a list with the group of each of the {len(p_x)} symbols of X"
        raise ValueError(message(owner, "groups", requirement, groups))
    labels = tuple(dict.fromkeys(given))
    codes = np.array([labels.index(label) for label in given])
    sizes = np.bincount(codes, p_x, len(labels))
    if (sizes == 0).any():
        empty = labels[int(sizes.argmin())]
        raise ValueError(
            Message(
                Parameter("groups", owner),
                f" has the group {empty!r}, none of whose symbols occurs: leave them out.",
            )
        )
    if max_outputs is not None and max_outputs < len(labels):
        raise ValueError(
            Message(
                Parameter("max_outputs", owner),
                f" must be at least {len(labels)}, one output for each group. Got {max_outputs}.",
            )
        )
    return codes, labels
