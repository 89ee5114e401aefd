"""Attack a release with trained models, and read the figures with care."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable
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

from .._messages import SENSITIVE, InPython, Message, Parameter, doing, in_points, message_of, warn
from .._typing import BoolArray, ColumnsLike, FloatArray, IntArray
from .._validation import check_real, message
from ..joint import count_pairs
from ..mechanism import Guarantee, Mechanism
from ..releasing.output_names import UnreadableLabelsError
from ..tables.frames import as_columns, coded
from ..transformer import PrivacyFunnelTransformer
from .frequencies import one_release

TOGETHER = "released and remainder"


def attack_notes(attacks: pd.DataFrame) -> list[str]:
    """Return sentences about figures of `audit` that look better than they are.

    >>> table = pd.DataFrame({"attacked": ["released"], "advantage": [-0.013]})
    >>> attack_notes(table)[0][:52]
    'An advantage below zero, here down to -1.3 points, i'
    """
    # In tenths of a point: smaller differences are not seen.
    notes, smallest = [], attacks["advantage"].min()
    if not round(smallest, 3) >= 0:
        notes.append(
            f"An advantage below zero, here down to {in_points(smallest)}, is noise: the attacker "
            f"took chance in the rows it learned from for a pattern, and on rows that it had not "
            f"seen was right less often than a blind guess. Read it as zero; it is no sign of "
            f"protection."
        )
    best = attacks.groupby("attacked", sort=False)["advantage"].max()
    if TOGETHER not in best:
        return notes
    parts = best[[name for name in best.index if name not in ("raw", TOGETHER)]]
    name, largest, together = parts.idxmax(), parts.max(), best[TOGETHER]
    if not round(largest, 3) <= max(round(together, 3), 0):
        notes.append(
            f'Together, the columns give away no less than any of them: "{TOGETHER}" counts as '
            f'{in_points(largest)}, the advantage of "{name}" alone, and not as the '
            f"{in_points(together)} that were measured: the other columns, or chance, misled the "
            f"attackers."
        )
    return notes


# The attacker's view: how well S can be guessed from what is released.


Attacker: TypeAlias = BaseEstimator | dict[str, BaseEstimator]
Splits: TypeAlias = int | BaseCrossValidator | BaseShuffleSplit | Iterable[Any]

# Histogram gradient boosting takes up to 255 categories.
_MOST_CATEGORIES = 255
_MANY_ROWS = 20_000

# With as many rows, and in the smallest group, boosting puts a tenth of the rows aside to see when
# it has learned enough: it guesses better, and takes a fraction of the time.
_ENOUGH_ROWS, _ENOUGH_OF_EACH = 2000, 20


class BayesTable(ClassifierMixin, BaseEstimator):
    """Guess the value seen most often with the same row; for unseen rows, the commonest value.

    With enough rows, no attacker does better on a column with few values.

    Examples
    --------
    >>> from skprivacy.metrics.attack import BayesTable
    >>> BayesTable().fit([[0], [0], [1]], ["a", "a", "b"]).predict([[1], [0], [7]]).tolist()
    ['b', 'a', 'a']
    """

    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Count how often each value occurs with each row."""
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
    """Attack a release, and report how much better S can be guessed from it than blindly.

    Classifiers are trained to predict S, and judged on rows they have not seen.

    Parameters
    ----------
    released : array-like or frame
        The released columns, taken together, with those that were published beside them under the
        budget; they may come from several releases of the same rows.
    sensitive : array-like or frame
        S of the same rows.
    raw : array-like or frame, default=None
        The columns before they were replaced, for comparison.
    mechanism : Mechanism, Guarantee or PrivacyFunnelTransformer, default=None
        What released them. It adds the accuracy of the best attacker under the joint distribution
        of the design, and the most that the budget allows, if `released` is one release of it and
        `sensitive` is what it protects. A transformer knows its secret by the names of the
        columns: another column of `fit` is not the secret, even if it has the same values. What
        has no name, or a new one, is taken as the only secret. Of several, the figures are those
        of the one whose columns `sensitive` has, or of all together.
    remainder : array-like or frame, default=None
        The columns that are published alongside the released ones. They are attacked one by one,
        and together with the release: what they give away, the release cannot protect.
    attacker : classifier or dict of classifiers, default=None
        None: histogram gradient boosting, and a table of the S seen most often with each row.
        They get categories as codes.
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
        - `accuracy`, that of its guesses on held-out rows, and `blind`, that of always guessing
          the commonest S;
        - `advantage`, the difference, with its interval `low` to `high`. It can be zero even
          though S leaks: if one group is so common that no released value makes another likelier.
          Below zero it is noise, and counts as zero;
        - `bayes_accuracy` and `advantage_bound`, where the columns are one release of the
          mechanism: the accuracy of the best attacker under the joint distribution of the
          design, ``sum_y max_s P(s,y)``, and the largest advantage that the budget allows.

        ``attrs["notes"]`` are sentences about figures that look better than they are: advantages
        below zero, and columns that seem to give away less together than one of them alone.

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
        raise ValueError(Message(Parameter("sensitive", owner), " must have at least two values."))
    views = _views(released, raw, remainder, len(target))
    is_split_evenly = isinstance(cv, numbers.Integral)
    is_enough = len(target) >= _ENOUGH_ROWS and np.bincount(target).min() >= _ENOUGH_OF_EACH
    attackers = _attackers(owner, attacker, bool(is_split_evenly and is_enough))
    exact = _exact(views["released"], sensitive, mechanism, owner)
    if is_split_evenly:
        _check_groups(target, int(cv))  # type: ignore[arg-type]
        cv = StratifiedKFold(cv, shuffle=True, random_state=0)  # tables are often sorted
    splits = list(check_cv(cv, target, classifier=True).split(target, target))
    blind = cross_val_predict(DummyClassifier(), target[:, None], target, cv=splits) == target
    rows: list[dict[str, Any]] = []
    # On few rows, threads that wait for each other on a busy machine cost more than they gain.
    with threadpool_limits(1 if len(target) < _MANY_ROWS else None):
        for view, columns in views.items():
            table, is_category = _encoded(columns)
            for name, classifier in attackers.items():
                doing(f"attacking {len(rows) + 1} of {len(views) * len(attackers)}")
                told = _told(classifier, table, is_category, len(values))
                guesses = cross_val_predict(told, table, target, cv=splits)
                figures = _figures(guesses == target, blind, confidence)
                rows.append({"attacked": view, "attacker": name, **figures})
    report = pd.DataFrame(rows)
    for column, figure in exact.items():
        report[column] = np.where(report["attacked"] == "released", figure, np.nan)
    report.attrs["notes"] = attack_notes(report)
    return report


def _views(
    released: ColumnsLike, raw: ColumnsLike | None, remainder: ColumnsLike | None, n_rows: int
) -> dict[str, dict[Hashable, pd.Series]]:
    """Return what the attackers see: ``{name: columns}``."""
    views = {} if raw is None else {"raw": as_columns(raw, "raw")}
    views["released"] = as_columns(released, "released")
    if remainder is not None:
        others = as_columns(remainder, "remainder")
        views[TOGETHER] = views["released"] | {
            f"remainder: {name}": column for name, column in others.items()
        }
        views |= {f"remainder: {name}": {name: column} for name, column in others.items()}
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
    are_fine = all(
        hasattr(each, "fit") and not isinstance(each, type) and is_classifier(each)
        for each in attackers.values()
    )
    if not attackers or not are_fine:
        requirement = "a classifier, a dict of classifiers, or None"
        raise TypeError(message(owner, "attacker", requirement, attacker))
    return attackers


def _check_groups(target: IntArray, n_splits: int) -> None:
    smallest = np.bincount(target).min()
    if smallest < n_splits:
        raise ValueError(
            Message(
                "The smallest group of ",
                SENSITIVE,
                f" has {smallest} rows, fewer than the {n_splits} folds",
                InPython(" of the 'cv' parameter of audit"),
                ": pool groups",
                InPython(", or pass a smaller cv"),
                ".",
            )
        )


def _encoded(columns: dict[Hashable, pd.Series]) -> tuple[FloatArray, BoolArray]:
    """Return columns as a matrix of numbers, and which are categories."""
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


def _told(
    classifier: BaseEstimator, table: FloatArray, is_category: BoolArray, n_groups: int
) -> BaseEstimator:
    """Return a fresh classifier that is told which columns are categories, if it can be.

    If a column has too many categories for boosting, they are encoded by how often each group
    occurs with them, within each fold, and by their order.
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
    """Return the accuracy, and the advantage over the blind guess on the same rows."""
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
    """Return what the best attacker reaches under the joint of the design, and the bound.

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
        # No budget bounds what is known about several secrets together.
        "advantage_bound": found.advantage_bound if isinstance(found, Guarantee) else np.nan,
    }
