"""A fitted transformer as plain data for the page: figures and sentences of its summary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from .._messages import InPython, Mention, Message, message_of
from .._typing import FloatArray
from ..describing import ReleaseSummary
from ..describing.face_value import at_face_value, never_released
from ..describing.numbers import Range, at_most, limit, shown
from ..describing.summary import plain
from ..fitting.fitted_estimator import fitted_of
from ..repetition import LeakageTogether
from ..transformer import PrivacyFunnelTransformer
from .choices import CONFIDENCE
from .columns import as_text

N_ROWS = 20

# Values of a column that are shown, or groups of them; the others are one line, unless they are
# fewer than this share of the rows.
_MOST_VALUES, _NEGLIGIBLE = 14, 1e-9


def view_of(funnel: PrivacyFunnelTransformer, rows: pd.DataFrame) -> dict[str, Any]:
    """Return what the page shows of a design; rows : the first ones of the table."""
    summary = fitted_of(funnel).summary_with_limits(CONFIDENCE)  # as commands do
    (secret,) = summary.secrets.values()
    found, mechanism = secret.ranges.reset_index(drop=True), summary.mechanism
    right, more = secret.in_rows.attacker_accuracy, secret.in_rows.attacker_advantage
    view = {
        "epsilon": funnel.epsilon,
        "sentence": secret.guess(),
        "sentence_named": secret.guess(show_groups=True),
        "range": found.loc[secret.most_exposed].to_dict(),
        "groups": _groups(summary),
        "verdict": summary.verdict.level,
        "status": summary.status,
        "lead": summary.lead(),
        # Whoever has the table can randomise it: what helps with the release helps with the table.
        "attacker": {
            "right": right,
            "blind": right - more,
            "raw": max(right, _unprotected(funnel)),
        },
        "revealed": secret.revealed(),
        "kept": summary.kept,
        "kept_at_most": summary.kept_at_most,
        "kept_text": _kept(summary),
        "vanished": never_released(summary.fidelity),
        "kept_shown": [f"{summary.kept:.1%}", at_most(summary.kept_at_most)],
        "face_value": at_face_value(summary.fidelity),
        "is_made_up": bool(summary.fidelity.of_cells),
        "symbols": len(mechanism.x_labels),
        "columns": _columns(funnel, summary),
        "rows": _rows(funnel, summary, rows),
        "facts": summary.to_dict(),
    }
    return plain(view)


def _unprotected(funnel: PrivacyFunnelTransformer) -> float:
    """Return how often the best attacker is right about the columns as they are, in bins."""
    return float(funnel.p_sx_.max(axis=0).sum())


def _kept(summary: ReleaseSummary) -> str:
    """Return what a share of is kept, and how that stands against what is possible."""
    what = f"of {summary.mechanism.objective.in_words(summary.x_name(True))} is kept"
    kept, most = f"{summary.kept:.1%}", at_most(summary.kept_at_most)
    if kept == most or summary.mechanism.is_certified:
        return f"{what}: no method keeps more at this protection."
    return f"{what}. No method can keep more than {most} at this protection."


def _groups(summary: ReleaseSummary) -> list[dict[str, Any]]:
    """Return the range of each group, with its name."""
    (secret,) = summary.secrets.values()
    names = [shown(label)[1:-1] for label in secret.secret.s_labels or ()]
    ranges: list[Any] = secret.ranges.to_dict("records")
    return [{"name": name, **each} for name, each in zip(names, ranges, strict=True)]


def _columns(funnel: PrivacyFunnelTransformer, summary: ReleaseSummary) -> list[dict[str, Any]]:
    """Return each column before and after: shares of its values, and swaps."""
    figures, found = summary.fidelity.columns, []
    for name, swaps in funnel.swaps_.items():
        has_order = not np.isnan(figures.loc[name, "mean_shift"])
        swaps = swaps.set_axis(_without_name(str(name), list(swaps.index)))
        table = _few(swaps, _neighbours(swaps) if has_order else _commonest(swaps))
        before = table.sum(axis=1).to_numpy()
        shares = table.to_numpy() / np.where(before > 0, before, 1.0)[:, None]
        found.append(
            {
                "name": str(name),
                "values": list(table.index),
                "before": before.tolist(),
                "after": table.sum(axis=0).tolist(),
                "swaps": shares.tolist(),
                **figures.loc[name].to_dict(),
            }
        )
    return found


def _without_name(name: str, labels: Sequence[str]) -> list[str]:
    """Return labels of bins without the name of the column, which stands above them."""
    are_bins = all(label == "missing" or label.startswith(f"{name} ") for label in labels)
    return [label.removeprefix(f"{name} ") if are_bins else label for label in labels]


def _shares(swaps: pd.DataFrame) -> FloatArray:
    """Return the share of rows with each value, before and after on average."""
    shares: FloatArray = (swaps.sum(axis=1).to_numpy() + swaps.sum(axis=0).to_numpy()[:-1]) / 2
    return shares


def _commonest(swaps: pd.DataFrame) -> list[list[int]]:
    """Return the positions of the most frequent values; all others come last, as none."""
    most = np.argsort(-_shares(swaps), kind="stable").tolist()
    kept = most if len(most) <= _MOST_VALUES else most[: _MOST_VALUES - 1]
    return [[position] for position in sorted(kept)]


def _neighbours(swaps: pd.DataFrame) -> list[list[int]]:
    """Return the positions of values of a scale, in groups of about equal size."""
    shares = _shares(swaps)
    n = len(shares)
    if n <= _MOST_VALUES:
        return [[position] for position in range(n)]
    is_missing = [label == "missing" for label in swaps.index]
    middles = np.cumsum(shares) - shares / 2
    group = np.minimum(middles / shares.sum() * (_MOST_VALUES - 1), _MOST_VALUES - 2).astype(int)
    group = np.where(is_missing, _MOST_VALUES, group)
    return [np.flatnonzero(group == each).tolist() for each in np.unique(group)]


def _few(swaps: pd.DataFrame, groups: list[list[int]]) -> pd.DataFrame:
    """Return a square table with a line for each group of values, and one for all others."""
    place = np.full(len(swaps) + 1, len(groups))
    for i, group in enumerate(groups):
        place[group] = i
    table = np.zeros((len(groups) + 1, len(groups) + 1))
    np.add.at(table, (place[:-1, None], place[None, :]), swaps.to_numpy())
    names = [[swaps.index[position] for position in group] for group in groups]
    labels = [name[0] if len(name) == 1 else f"{name[0]} to {name[-1]}" for name in names]
    n = len(groups) + bool(table[-1].sum() + table[:, -1].sum() > _NEGLIGIBLE)
    labels = [*labels, "others"][:n]
    return pd.DataFrame(table[:n, :n], labels, labels)


def _rows(
    funnel: PrivacyFunnelTransformer, summary: ReleaseSummary, rows: pd.DataFrame
) -> dict[str, Any]:
    """Return some rows before and after; never the protected columns."""
    after = funnel.transform(rows.head(N_ROWS))
    names = list(map(str, after.columns))  # with a target, last
    before = rows[names].head(N_ROWS)
    texts = _texts(before, names), _texts(after, names)
    is_moved = np.array(texts[0], dtype=object) != np.array(texts[1], dtype=object)
    if summary.fidelity.of_cells:
        is_moved[:] = False
    else:  # a value of the same bin has not moved
        changed = funnel.symbols(before) != funnel.symbols(after)
        is_moved[:, : len(summary.released)] = changed.to_numpy()
    return {
        "names": names,
        "before": texts[0],
        "after": texts[1],
        "is_moved": is_moved.tolist(),
    }


def _texts(rows: pd.DataFrame, names: Sequence[str]) -> list[list[str]]:
    columns = [list(map(as_text, rows[name].astype(object))) for name in names]
    return [list(row) for row in zip(*columns, strict=True)]


def together_in_words(found: LeakageTogether, about: str, n: int) -> str:
    """Return a sentence on what several releases reveal together."""
    moves = [Range(*row) for row in found.ranges.itertuples(index=False)]
    furthest = max(moves, key=lambda move: (round(move.width, 9), move.growth))
    bound = "" if found.is_exact else "at most "
    every, has = ("Both", "both") if n == 2 else (f"All {n}", f"all {n}")
    return (
        f"{every} releases together reveal {bound}{limit(found.max_leakage)} about {about} in "
        f"these rows: whoever has {has} can move a guess from {furthest.in_words()}."
    )


# Messages of the library in words of the page. ---------------------------------------------------


_WORDS = {
    "epsilon": "the protection",
    "max_shift": "the protection",
    "confidence": "the confidence",
    "n_bins": "the number of bins",
    "max_categories": "pooling of rare values",
    "min_frequency": "pooling of rare values",
    "columns": "the columns to randomise",
    "sensitive": "the columns to protect",
    "beside": "the columns to publish as they are",
    "target": "the column to predict",
    "ordered": "the order of the texts",
    "header": "the first line",
}


# Stands for a parameter that the page does not have: sentences about it are left out.
_UNKNOWN = "\0"


def in_words(given: BaseException | str) -> str:
    """Return a message of the library, with the words of the page for parameters."""
    text = message_of(given) if isinstance(given, BaseException) else given
    said = text.rendered(_rendered) if isinstance(text, Message) else text
    sentences = re.split(r"(?<=[.:;]) ", " ".join(said.split()))
    known = [sentence for sentence in sentences if _UNKNOWN not in sentence]
    return " ".join(known) or type(given).__name__


def _rendered(mention: Mention) -> str:
    if isinstance(mention, InPython):
        other = mention.elsewhere
        return other if isinstance(other, str) else _rendered(other)
    parameter = getattr(mention, "parameter", None)
    return str(mention) if parameter is None else _WORDS.get(parameter, _UNKNOWN)
