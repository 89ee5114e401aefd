"""Attack a release: how well trained models guess S from it."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import norm
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    BaseCrossValidator,
    BaseShuffleSplit,
    StratifiedKFold,
    check_cv,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from .._messages import InPython, Message, doing, in_points, message_of, warn
from .._typing import BoolArray, ColumnsLike, FloatArray, IntArray
from .._validation import about, check_real, message
from ..joint import count_pairs
from ..mechanism import Guarantee, Mechanism
from ..releasing.output_names import UnreadableLabelsError
from ..tables.frames import as_columns, coded
from ..transformer import PrivacyFunnelTransformer
from .frequencies import one_release

TOGETHER = "released and remainder"


def attack_notes(attacks: pd.DataFrame) -> list[str]:
    """Return notes on figures of `audit` that look better than they are.

    >>> table = pd.DataFrame({"attacked": ["released"], "advantage": [-0.013]})
    >>> attack_notes(table)[0][:52]
    'An advantage below zero, here down to -1.3 points, i'
    """
    # Rounded to tenths of a point, as they are printed.
    notes, smallest = [], attacks["advantage"].min()
    if not round(smallest, 3) >= 0:
        notes.append(
            f"An advantage below zero, here down to {in_points(smallest)}, is noise: the attacker "
            f"fitted chance patterns in its training rows, and on held-out rows was right less "
            f"often than a blind guess. Read it as zero; it is no sign of protection."
        )
    best = attacks.groupby("attacked", sort=False)["advantage"].max()
    if TOGETHER not in best:
        return notes
    parts = best[[name for name in best.index if name not in ("raw", TOGETHER)]]
    name, largest, together = parts.idxmax(), parts.max(), best[TOGETHER]
    if not round(largest, 3) <= max(round(together, 3), 0):
        notes.append(
            f'Together, columns reveal at least as much as any of them alone. Read "{TOGETHER}" '
            f'as {in_points(largest)}, the advantage of "{name}" alone, not as the measured '
            f"{in_points(together)}: the other columns, or chance, misled the attackers."
        )
    return notes


Attacker: TypeAlias = BaseEstimator | dict[str, BaseEstimator]
Splits: TypeAlias = int | BaseCrossValidator | BaseShuffleSplit | Iterable[Any]

# Histogram gradient boosting takes up to 255 categories.
_MOST_CATEGORIES = 255

# With at least this many rows, in all and in the smallest group, boosting stops early by the loss
# on a tenth of them: it guesses better, and takes a fraction of the time.
_ENOUGH_ROWS, _ENOUGH_OF_EACH = 2000, 20


# An attacker who looks for one person knows this many columns of that person, or all but one.
_MOST_KNOWN = 7

# Numbers with more values than this agree if they are in the same of so many equal parts.
_MOST_PARTS = 50


class BayesTable(ClassifierMixin, BaseEstimator):
    """Guess the class seen most often with the same row; for unseen rows, the commonest class.

    With enough rows, no attacker does better on a column with few values.

    Examples
    --------
    >>> from skprivacy.metrics.attack import BayesTable
    >>> BayesTable().fit([[0], [0], [1]], ["a", "a", "b"]).predict([[1], [0], [7]]).tolist()
    ['b', 'a', 'a']
    """

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Count how often each class occurs with each distinct row."""
        codes, self._rows = coded(np.asarray(X), "X")
        self.classes_, targets = np.unique(np.asarray(y), return_inverse=True)
        counts = count_pairs(targets, codes, None)
        self._guesses = np.append(counts.argmax(axis=0), counts.sum(axis=1).argmax())
        return self

    def predict(self, X: npt.ArrayLike) -> npt.NDArray[Any]:
        """Return the guess for each row."""
        check_is_fitted(self)
        codes, rows = coded(np.asarray(X), "X")
        return self.classes_[self._guesses[self._rows.get_indexer(rows)[codes]]]


def audit(
    released: ColumnsLike,
    sensitive: ColumnsLike,
    *,
    raw: ColumnsLike | None = None,
    mechanism: Mechanism | Guarantee | PrivacyFunnelTransformer | None = None,
    remainder: ColumnsLike | None = None,
    attacker: Attacker | None = None,
    cv: Splits = 5,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Train classifiers to guess S from a release, and compare them with a blind guess.

    Parameters
    ----------
    released : array-like or frame
        The released columns, with those published beside them under the budget. They are attacked
        together, and may come from several releases of the same rows.
    sensitive : array-like or frame
        S of the same rows.
    raw : array-like or frame, default=None
        The columns before they were replaced, for comparison.
    mechanism : Mechanism, Guarantee or PrivacyFunnelTransformer, default=None
        What released them. Adds exact figures if `released` is a single release of it and
        `sensitive` is what it protects. A transformer knows its secret by column names: another
        column of `fit` is not the secret, even with the same values, while unnamed or renamed
        columns are taken as the only secret. With several secrets, the figures are about the one
        with the columns of `sensitive`, or about all together.
    remainder : array-like or frame, default=None
        Columns published alongside, outside of the budget. They are attacked one by one, and
        together with the release.
    attacker : classifier or dict of classifiers, default=None
        They get categories as codes. None: histogram gradient boosting, and a table of the S seen
        most often with each row.
    cv : int, splitter or iterable, default=5
        As in `sklearn.model_selection.cross_val_predict`; for an int, rows are shuffled.
    confidence : float, default=0.95
        The confidence of the intervals for the advantage.

    Returns
    -------
    DataFrame
        One row for each set of attacked columns and each attacker:

        - `attacked`: "raw", "released", "released and remainder", or a column of the remainder;
        - `attacker`;
        - `accuracy` of its guesses on held-out rows, and `blind`, the accuracy of always guessing
          the commonest S;
        - `advantage`, the difference, with its interval `low` to `high`. It can be zero although S
          leaks, if one group is so common that no released value makes another likelier. Below
          zero it is noise, and counts as zero;
        - `bayes_accuracy` and `advantage_bound`: the accuracy of the best attacker under the joint
          distribution of the design, ``sum_y max_s P(s,y)``, and the largest advantage that the
          budget allows. NaN unless the columns are a single release of the mechanism.

        ``attrs["notes"]`` lists notes on figures that look better than they are.

    Examples
    --------
    >>> import numpy as np
    >>> from skprivacy import PrivacyFunnelTransformer, audit
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(2, size=2000)
    >>> frame = pd.DataFrame({"sex": sex, "band": rng.binomial(4, 0.3 + 0.4 * sex)})
    >>> funnel = PrivacyFunnelTransformer(0.01, sensitive="sex", random_state=0)
    >>> released = funnel.fit_transform(frame)
    >>> table = audit(released, frame["sex"], raw=frame[["band"]], mechanism=funnel)
    >>> (table.groupby("attacked")["advantage"].max() > 0.1).to_dict()
    {'raw': True, 'released': False}
    """
    owner = "audit"
    check_real(owner, "confidence", confidence, low=0, high=1, low_open=True, high_open=True)
    target, values = coded(sensitive, "sensitive")
    if len(values) < 2:
        raise ValueError(about(owner, "sensitive", " must have at least two values."))
    views = _views(released, raw, remainder, len(target))
    is_enough = len(target) >= _ENOUGH_ROWS and np.bincount(target).min() >= _ENOUGH_OF_EACH
    stops_early = isinstance(cv, numbers.Integral) and bool(is_enough)
    attackers = _attackers(owner, attacker, stops_early)
    exact = _exact(views["released"], sensitive, mechanism, owner)
    report = pd.DataFrame(_attacks(views, attackers, target, cv, confidence))
    for column, figure in exact.items():
        report[column] = np.where(report["attacked"] == "released", figure, np.nan)
    report.attrs["notes"] = attack_notes(report)
    return report


def linkage(
    released: ColumnsLike,
    members: ColumnsLike,
    others: ColumnsLike,
    *,
    known: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> pd.DataFrame:
    """Test whether released rows give away the people they were made from.

    An attacker who knows some columns of a person looks for released rows that agree in all of
    them, and takes the commonest of what these rows say about the other columns. For people who
    had nothing to do with the release this works as far as people are alike. It must not work much
    better for its members.

    Parameters
    ----------
    released : array-like or frame
        The released rows.
    members : array-like or frame
        Rows with these columns, and perhaps others, of people that the release was fitted to.
    others : array-like or frame
        Rows of people from the same population, who were left out.
    known : list of column names, default=None
        What the attacker knows. None: the first seven columns, or all but the last.
    confidence : float, default=0.95
        The confidence of the intervals for the difference.

    Returns
    -------
    DataFrame
        One row for each attacker, who knows those columns, or all columns but one, where the
        figures are means over that one:

        - `known`: in words;
        - `found`, `found_others`: the share of members, and of the others, with a released row
          that agrees in all known columns;
        - `right`, `right_others`: the share that is found, with all other columns guessed right;
        - `difference` of the last two, with its interval `low` to `high`.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skprivacy.metrics import linkage
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame(rng.integers(10, size=(2000, 8)), columns=list("abcdefgh"))
    >>> members, others = people[:1000], people[1000:]
    >>> table = linkage(members, members, others)  # rows as they are give everybody away
    >>> bool(table["low"].min() > 0.8)
    True
    >>> shuffled = members.apply(lambda column: rng.permutation(column))
    >>> bool(linkage(shuffled, members, others)["high"].max() < 0.05)
    True
    """
    owner = "linkage"
    check_real(owner, "confidence", confidence, low=0, high=1, low_open=True, high_open=True)
    shown = as_columns(released, "released")
    frames = [shown]
    for name, given in {"members": members, "others": others}.items():
        columns = as_columns(given, name)
        if missing := [label for label in shown if label not in columns]:
            raise ValueError(about(owner, name, f" lacks the released column {missing[0]!r}."))
        frames.append({label: columns[label] for label in shown})
    if len(shown) < 2:
        raise ValueError(about(owner, "released", " must have at least two columns."))
    names = list(shown)
    given = names[: min(_MOST_KNOWN, len(names) - 1)] if known is None else list(known)
    if not set(given) < set(names) or not given:
        requirement = f"some of the columns {names}, but not all"
        raise ValueError(message(owner, "known", requirement, known))
    sizes = [len(next(iter(frame.values()))) for frame in frames]
    codes = [as_codes([frame[name] for frame in frames]) for name in names]
    of_known = [name in given for name in names]
    whole = _linked(codes, of_known, sizes)
    each = [_linked(codes, [other != name for other in names], sizes) for name in names]
    means = [np.mean(parts, axis=0) for parts in zip(*each, strict=True)]
    found = pd.DataFrame([_linkage_figures(part, confidence) for part in (whole, means)])
    found.insert(0, "known", [f"{len(given)} of {len(names)} columns", "all columns but one"])
    return found


def as_codes(parts: Sequence[pd.Series]) -> IntArray:
    """Return the values of a column of several tables as codes of their own, or of their part."""
    column = pd.concat([part.reset_index(drop=True) for part in parts], ignore_index=True)
    is_number = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if is_number and column.nunique() > _MOST_PARTS:
        return pd.qcut(column, _MOST_PARTS, labels=False, duplicates="drop").fillna(-1).to_numpy()
    return pd.factorize(column.astype(object), use_na_sentinel=False)[0]


def _linked(
    codes: Sequence[IntArray], is_known: Sequence[bool], sizes: Sequence[int]
) -> list[FloatArray]:
    """Return whether each member is found, each other one, and then who is guessed right."""
    n, columns = sizes[0], np.column_stack(codes)
    known, rest = (
        np.unique(columns[:, np.array(is_known) == which], axis=0, return_inverse=True)[1].reshape(
            -1
        )
        for which in (True, False)
    )
    seen, rows = np.unique(np.column_stack([known[:n], rest[:n]]), axis=0, return_counts=True)
    order = np.lexsort((rows, seen[:, 0]))  # the commonest last
    guesses = np.full(int(known.max()) + 1, -1)
    guesses[seen[order, 0]] = seen[order, 1]
    guess = guesses[known[n:]]
    found, right = (guess >= 0).astype(float), (guess == rest[n:]).astype(float)
    return [*np.split(found, [sizes[1]]), *np.split(right, [sizes[1]])]


def _linkage_figures(parts: Sequence[FloatArray], confidence: float) -> dict[str, float]:
    """Return the figures of one attacker; parts : as from `_linked`."""
    found, found_others, right, right_others = parts
    difference = right.mean() - right_others.mean()
    deviation = np.sqrt(right.var() / len(right) + right_others.var() / len(right_others))
    tail = (1 - confidence) / 2
    # Differences that no row shows are still possible: the rule of three.
    reach = norm.ppf(1 - tail) * deviation - np.log(tail) / min(len(right), len(right_others))
    return {
        "found": found.mean(),
        "found_others": found_others.mean(),
        "right": right.mean(),
        "right_others": right_others.mean(),
        "difference": difference,
        "low": difference - reach,
        "high": difference + reach,
    }


def _attacks(
    views: dict[str, dict[Hashable, pd.Series]],
    attackers: dict[str, BaseEstimator],
    target: IntArray,
    cv: Splits,
    confidence: float,
) -> list[dict[str, Any]]:
    """Return the figures of each attacker on each view."""
    if isinstance(cv, numbers.Integral):
        _check_groups(target, int(cv))
        cv = StratifiedKFold(cv, shuffle=True, random_state=0)  # tables are often sorted
    splits = list(check_cv(cv, target, classifier=True).split(target, target))
    blind = cross_val_predict(DummyClassifier(), target[:, None], target, cv=splits) == target
    rows: list[dict[str, Any]] = []
    # On a busy machine, threads that wait for each other cost far more than they gain.
    with threadpool_limits(1):
        for view, columns in views.items():
            table, is_category = _encoded(columns)
            for name, classifier in attackers.items():
                doing(f"attacking {len(rows) + 1} of {len(views) * len(attackers)}")
                fresh = _with_categories(classifier, table, is_category, target.max() + 1)
                guesses = cross_val_predict(fresh, table, target, cv=splits)
                figures = _figures(guesses == target, blind, confidence)
                rows.append({"attacked": view, "attacker": name, **figures})
    return rows


def _views(
    released: ColumnsLike, raw: ColumnsLike | None, remainder: ColumnsLike | None, n_rows: int
) -> dict[str, dict[Hashable, pd.Series]]:
    """Return the sets of columns to attack, by their names in the report."""
    views = {} if raw is None else {"raw": as_columns(raw, "raw")}
    views["released"] = as_columns(released, "released")
    if remainder is not None:
        others = as_columns(remainder, "remainder")
        others = {f"remainder: {name}": column for name, column in others.items()}
        views[TOGETHER] = views["released"] | others
        views |= {name: {name: column} for name, column in others.items()}
    for view, columns in views.items():
        for column in columns.values():
            if len(column) != n_rows:
                raise ValueError(
                    f"Found input variables with inconsistent numbers of samples: sensitive has "
                    f"{n_rows} rows, {view} has {len(column)}."
                )
    return views


def _attackers(
    owner: str, attacker: Attacker | None, stops_early: bool
) -> dict[str, BaseEstimator]:
    if attacker is None:
        when = True if stops_early else "auto"
        boosting = HistGradientBoostingClassifier(random_state=0, early_stopping=when)
        return {"gradient boosting": boosting, "Bayes table": BayesTable()}
    attackers = attacker if isinstance(attacker, dict) else {type(attacker).__name__: attacker}
    are_valid = all(
        hasattr(each, "fit") and not isinstance(each, type) and is_classifier(each)
        for each in attackers.values()
    )
    if not attackers or not are_valid:
        requirement = "a classifier, a dict of classifiers, or None"
        raise TypeError(message(owner, "attacker", requirement, attacker))
    return attackers


def _check_groups(target: IntArray, n_splits: int) -> None:
    smallest = np.bincount(target).min()
    if smallest < n_splits:
        text = Message.of(
            "The smallest group of {S} has {n_rows} rows, fewer than the {n_splits} folds{of_cv}: "
            "pool groups{or_cv}.",
            n_rows=smallest,
            n_splits=n_splits,
            of_cv=InPython(" of the 'cv' parameter of audit"),
            or_cv=InPython(", or pass a smaller cv"),
        )
        raise ValueError(text)


def _encoded(columns: dict[Hashable, pd.Series]) -> tuple[FloatArray, BoolArray]:
    """Return columns as a matrix of numbers, and whether each is categorical."""
    encoded, is_category = [], []
    for column in columns.values():
        column = column.reset_index(drop=True)
        is_number = pd.api.types.is_numeric_dtype(column)
        is_number &= not pd.api.types.is_bool_dtype(column)
        if is_number:
            values = column.to_numpy(dtype=float, na_value=np.nan)
            encoded.append(np.zeros(len(column)) if np.isnan(values).all() else values)
        else:
            codes, distinct = coded(column, "column")
            order = pd.Series(distinct.astype(str)).rank(method="first").to_numpy() - 1
            encoded.append(order[codes])
        is_category.append(not is_number)
    return np.column_stack(encoded), np.array(is_category)


def _with_categories(
    classifier: BaseEstimator, table: FloatArray, is_category: BoolArray, n_groups: int
) -> BaseEstimator:
    """Return a clone; boosting is told which columns are categorical.

    Columns with too many categories for boosting are target-encoded within each fold, and passed
    as numbers as well.
    """
    classifier = clone(classifier)
    if not isinstance(classifier, HistGradientBoostingClassifier):
        return classifier
    many = is_category & (table.max(axis=0, initial=0) >= _MOST_CATEGORIES)
    if not many.any():
        return classifier.set_params(categorical_features=is_category)
    every = np.arange(len(many))
    encoder = ColumnTransformer(
        [("shares", TargetEncoder(), every[many]), ("as they are", "passthrough", every)]
    )
    n_shares = many.sum() * (1 if n_groups == 2 else n_groups)
    few = np.concatenate([np.zeros(n_shares, bool), is_category & ~many])
    return make_pipeline(encoder, classifier.set_params(categorical_features=few))


def _figures(right: BoolArray, blind: BoolArray, confidence: float) -> dict[str, float]:
    """Return the accuracy, and the advantage over a blind guess on the same rows."""
    difference = right.astype(float) - blind
    advantage, n, tail = difference.mean(), len(difference), (1 - confidence) / 2
    # Differences that no row shows are still possible: the rule of three.
    reach = norm.ppf(1 - tail) * difference.std() / np.sqrt(n) - np.log(tail) / n
    return {
        "accuracy": right.mean(),
        "blind": blind.mean(),
        "advantage": advantage,
        "low": advantage - reach,
        "high": advantage + reach,
    }


def _exact(
    released: dict[Hashable, pd.Series],
    sensitive: ColumnsLike,
    mechanism: Mechanism | Guarantee | PrivacyFunnelTransformer | None,
    owner: str,
) -> dict[str, float]:
    """Return the accuracy of the best attacker under the joint of the design, and the bound.

    NaN unless these columns are one release of the mechanism, and this S is what it protects.
    """
    unknown = {"bayes_accuracy": np.nan, "advantage_bound": np.nan}
    if mechanism is None:
        return unknown
    try:
        found = one_release(released, as_columns(sensitive, "sensitive"), mechanism, owner)
    except NotFittedError:
        raise
    except UnreadableLabelsError as error:
        warn(Message("The exact figures of the audit are missing. ", message_of(error)))
        return unknown
    except ValueError:
        return unknown
    return {
        "bayes_accuracy": found.attacker_accuracy,
        # No budget bounds the leakage about several secrets together.
        "advantage_bound": found.advantage_bound if isinstance(found, Guarantee) else np.nan,
    }
