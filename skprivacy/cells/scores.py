"""ScoreCells: cells of rows with about the same P(target|x) and P(S|x).

All that a design for a target V needs of a row x is P(V|x) and P(S|x). Models estimate them. Cells
are parts of the plane of both scores, or of a line: the rank of the first among rows that are
alike in the second. A model remembers the S of rows that it was fitted to, so each row, old or
new, is scored by models that have not seen a row like it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from scipy.special import xlogy
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils.validation import check_memory
from threadpoolctl import threadpool_limits

from .._messages import Message
from .._numerics import one_thread
from .._typing import FloatArray, IntArray
from .._validation import check_choice, message
from .additive import AdditiveModel, CodedColumn, coded_columns, fit_additive, is_quick
from .cells import N_FOLDS, CellColumn, Cells, CellTask, Partition, folds_of_rows
from .lines import PARTS, CellLine, lines, score_rules
from .trees import CellTree, fit_tree

# With several threads, fitting takes many times as long if other programs use the cores: boosting
# by OpenMP, logistic regression by linear algebra, of which `one_thread` takes care.
one_openmp_thread = partial(threadpool_limits.wrap, limits=1, user_api="openmp")

# Rows that occur more often than this are weighted instead of repeated.
_MOST_REPEATED = 1000

# This many rows of each fold are scored twice; the scores may differ by this much, for rounding.
_MOST_REPEATS, _NO_DIFFERENCE = 100, 1e-6

# Boosting has a leaf for so many rows, within limits: with few rows, large trees learn noise.
_ROWS_PER_LEAF, _FEWEST_LEAVES, _MOST_LEAVES = 500, 4, 31

# The inverse penalties of logistic regression that are tried.
_STRENGTHS = (0.1, 1.0)

# Forecasts below this count as this much in a log loss. Losses and worths are compared to so many
# digits: which one is best must not depend on rounding.
_SMALLEST_FORECAST, _LOSS_DIGITS, _WORTH_DIGITS = 0.5 / PARTS, 6, 9


@dataclass(frozen=True, eq=False)
class Scorer:
    """Models of one variable, for each fold, and the scores made of their probabilities.

    parts : one or two kinds of models, of which the mean is taken, each with one for every fold;
    None if all rows of the fold's models had the same value, which is then in `constants`.
    directions : each score is the mean of a number between 0 and 1 that every class has; of shape
    (n_scores, n_classes).
    """

    parts: tuple[tuple[Any, ...], ...]
    constants: tuple[int, ...]
    directions: FloatArray

    @property
    def n_scores(self) -> int:
        return self.directions.shape[0]

    @property
    def n_classes(self) -> int:
        return self.directions.shape[1]

    def scores(self, rows: ScoredRows) -> IntArray:
        """Return the scores of rows, in hundredths, from models that have not seen them."""
        scores = np.empty((len(rows.folds), self.n_scores), dtype=np.int16)
        for fold in range(N_FOLDS):
            of_fold = np.flatnonzero(rows.folds == fold)
            found = self.probabilities(rows.at(of_fold), fold)
            scores[of_fold] = in_hundredths(found, self.directions)
        return scores

    def probabilities(self, rows: ScoredRows, fold: int) -> FloatArray:
        """Return the probability of each class, by the models of a fold."""
        found = np.zeros((len(rows.folds), self.n_classes))
        for part in self.parts:
            if (model := part[fold]) is None:
                found[:, self.constants[fold]] += 1.0
            elif isinstance(model, AdditiveModel):
                found[:, model.classes] += model.probabilities(rows.codes)
            elif len(found):
                found[:, np.asarray(model.classes_, dtype=int)] += _predicted(model, rows.frame)
        return found / len(self.parts)


def _predicted(model: Any, frame: pd.DataFrame) -> FloatArray:
    given = np.asarray(model.predict_proba(frame), dtype=float)
    if given.shape != (len(frame), len(model.classes_)) or not np.isfinite(given).all():
        problem = f"predict_proba of {type(model).__name__}, the estimator of ScoreCells, "
        raise ValueError(problem + "must give a finite number for each row and class.")
    return given


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows as models take them; folds : of each row, which chooses the models."""

    columns: tuple[CodedColumn, ...]
    codes: IntArray
    folds: IntArray

    @classmethod
    def of(
        cls, columns: Sequence[CellColumn], codes: IntArray, folds: IntArray | None
    ) -> ScoredRows:
        fold = folds_of_rows(columns, codes) if folds is None else folds
        return cls(coded_columns(columns), codes, fold)

    @property
    def frame(self) -> pd.DataFrame:
        """Numbers, and categories named by their codes, which not every model needs."""
        parts: dict[str, Any] = {}
        for position, (n_codes, places) in enumerate(self.columns):
            of_column = self.codes[:, position]
            if places is not None:
                parts[f"x{position}"] = np.append(places, np.nan)[of_column]
            else:
                every = pd.RangeIndex(n_codes)
                parts[f"x{position}"] = pd.Categorical.from_codes(of_column, categories=every)
        return pd.DataFrame(parts)

    def at(self, positions: IntArray) -> ScoredRows:
        """Return some of the rows."""
        return ScoredRows(self.columns, self.codes[positions], self.folds[positions])


def in_hundredths(probabilities: FloatArray, directions: FloatArray) -> IntArray:
    """Return the scores of rows with these probabilities of classes."""
    # Without a matrix product, whose rounding could depend on the rows beside a row.
    sums = [(probabilities * of_class).sum(axis=1) for of_class in directions]
    return np.rint(PARTS * np.column_stack(sums)).astype(np.int16)


def directions_of(shares: FloatArray, has_order: bool) -> FloatArray:
    """Return the directions of a variable with these shares of its classes.

    Of ordered classes, the mid-rank; else whether it is a class, for each class but the first.
    """
    if not has_order or len(shares) < 3:
        return np.eye(len(shares))[1:]
    ranks = np.cumsum(shares) - shares / 2
    return ((ranks - ranks[0]) / (ranks[-1] - ranks[0]))[None, :]


@dataclass(frozen=True, eq=False)
class ScorePartition(Partition):
    """Cells by the scores of the target and of S.

    cut : from scores to cells; digest : a hash of the scores of the rows of `fit`, which
    identifies the models; information : what the scores of the target say about it, in nats.
    """

    target: Scorer
    sensitive: Scorer
    cut: CellTree | CellLine
    digest: str
    information: float

    @property
    def n_cells(self) -> int:
        return self.cut.n_cells

    @one_thread
    @one_openmp_thread()
    def cells(
        self, columns: Sequence[CellColumn], codes: IntArray, folds: IntArray | None = None
    ) -> IntArray:
        rows = ScoredRows.of(columns, codes, folds)
        return self.cut.cells(np.hstack([self.target.scores(rows), self.sensitive.scores(rows)]))

    def in_words(self, columns: Sequence[CellColumn], names: Sequence[Hashable]) -> list[str]:
        of_target = _score_names("target", self.target.n_scores)
        of_s = _score_names("S", self.sensitive.n_scores)
        if isinstance(self.cut, CellLine):
            return self.cut.in_words(of_target, of_s)
        return score_rules(self.cut, of_target + of_s)

    def rules(self) -> list[Any]:
        return ["scores", self.digest, self.cut.to_lists()]


def _score_names(name: str, n_scores: int) -> list[str]:
    if n_scores == 1:
        return [f"score of {name}"]
    return [f"score {i} of {name}" for i in range(1, n_scores + 1)]


class ScoreCells(Cells):
    """Cells that keep what X says about a target: for utility="target".

    Parameters
    ----------
    estimator : classifier, default=None
        A classifier with `predict_proba` that scores rows, from a pandas frame with numbers as
        floats and categories as pandas categories. A `random_state` of None is set to 0, so that
        a second fit to the same rows gives the same cells. Files can only hold
        `HistGradientBoostingClassifier`, `LogisticRegression` and `GaussianNB`. None: gradient
        boosting, a logistic regression of values and ranks, or the mean of both, whichever
        forecasts best for rows that it has not seen; for the target and for S apart. Of large
        tables, boosting alone.
    max_cells : int, default=64
        The largest number of cells.
    cut : {"best", "plane", "line"}, default="best"
        How rows are divided: "plane" cuts the plane of both scores with a small tree; "line" cuts
        the rank of the score of the target, taken among rows with a similar score of S, among all
        rows, or between these. "best" is what keeps most about the target within the budget.
    person : str or int, default=None
        Column of X with person ids, by name or position, if people have several rows: integers or
        texts, none missing. No row is then scored by a model that has seen another row of the
        same person, and values and leaves of made-up rows have enough people. `fit` and
        `transform` read the column; it is not part of any score, and never released. None: every
        row is a different person.
    memory : str or object with the joblib.Memory interface, default=None
        As in `sklearn.pipeline.Pipeline`: models are kept in this folder, and not fitted again to
        the same rows. A search over budgets fits the same models for each budget. The folder holds
        models that have seen S, and excerpts of the rows: protect it as you protect the table, and
        delete it afterwards. None: nothing is kept.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skprivacy import PrivacyFunnelTransformer, ScoreCells
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame(rng.normal(size=(2000, 5)), columns=list("abcde"))
    >>> s, v = rng.random((2, 2000)) < 1 / (1 + np.exp(-table[["a", "b"]].to_numpy().T))
    >>> funnel = PrivacyFunnelTransformer(
    ...     0.05, utility="target", alphabet=ScoreCells(max_cells=16), output="symbol"
    ... )
    >>> funnel.fit_transform(table, v, sensitive_features=s).shape
    (2000, 1)
    """

    name: ClassVar[str] = "score"
    needs_target: ClassVar[bool] = True

    def __init__(
        self,
        estimator: Any = None,
        max_cells: int = 64,
        person: Any = None,
        memory: Any = None,
        cut: str = "best",
    ) -> None:
        self.estimator = estimator
        self.max_cells = max_cells
        self.cut = cut
        self.person = person
        self.memory = memory

    def check(self) -> None:
        super().check()
        model = self.estimator
        is_model = hasattr(model, "predict_proba") and not isinstance(model, type)
        if model is not None and not is_model:
            problem = "The 'estimator' parameter of ScoreCells must be a classifier with "
            raise TypeError(problem + f"predict_proba. Got {self.estimator!r}.")
        if isinstance(self.person, list | bool | np.ndarray) or callable(self.person):
            requirement = "the name or the position of one column, or None"
            raise TypeError(message("ScoreCells", "person", requirement, self.person))
        check_choice("ScoreCells", "cut", self.cut, ("best", "plane", "line"))
        check_memory(self.memory)

    @one_thread
    @one_openmp_thread()
    def learn(self, task: CellTask) -> tuple[ScorePartition, IntArray | None]:
        assert task.s is not None
        assert task.v is not None  # both come with a target
        if task.folds is not None and len(np.unique(task.folds)) < 2:
            problem = "There are so few people that no model can leave out some to score them: "
            advice = "use rows of more people, or leave out {person}."
            raise ValueError(Message.of(problem + advice))
        rows = ScoredRows.of(task.columns, task.codes, task.folds)
        learned = check_memory(self.memory).cache(_learned)
        given = rows, task.weights, task.n_rows, self.estimator
        target, of_target = learned(task.v.codes, task.v.has_order, *given)
        sensitive, of_s = learned(task.s.codes, task.s.has_order, *given)
        if self.estimator is not None:
            for scorer in (target, sensitive):
                _check_repeats(scorer, rows, type(self.estimator).__name__)
        along = in_hundredths(of_target, target.directions)
        across = in_hundredths(of_s, sensitive.directions)
        cut, both = self._best_cut(along, across, task), np.hstack([along, across])
        information = _information(of_target, task.v.codes, task.weights)
        digest = hashlib.blake2b(both.astype("<i2").tobytes()).hexdigest()
        partition = ScorePartition(target, sensitive, cut, digest, information)
        # Other models than ours may round the score of a row differently beside other rows.
        return partition, cut.cells(both) if self.estimator is None else None

    def _best_cut(
        self, of_target: IntArray, of_s: IntArray, task: CellTask
    ) -> CellTree | CellLine:
        """Return the cut of the largest worth, by a plane of scores or along a line."""
        both, cuts = np.hstack([of_target, of_s]), list[CellTree | CellLine]()
        if self.cut != "line":
            cuts.append(_plane(both, task, self.max_cells))
        if self.cut != "plane":
            cuts += lines(of_target, of_s, task, self.max_cells)
        if len(cuts) == 1:
            return cuts[0]
        assert task.worth is not None  # it comes with a target
        worths = [task.worth(cut.cells(both)) for cut in cuts]
        return cuts[int(np.argmax(np.round(worths, _WORTH_DIGITS)))]


def _learned(
    classes: IntArray,
    has_order: bool,
    rows: ScoredRows,
    weights: FloatArray,
    n_rows: float,
    estimator: Any,
) -> tuple[Scorer, FloatArray]:
    """Return models for each fold, fitted to the rows of all other folds, and probabilities.

    These are of rows by models that have not seen them. Without an estimator, the models are those
    with the smallest log loss there.
    """
    strengths: tuple[float, ...] = ()
    if estimator is None:
        weights = weights * (n_rows / weights.sum())
        strengths = _STRENGTHS if is_quick(rows.columns, len(classes)) else ()
    by_fold, constants = [], []
    for fold in range(N_FOLDS):
        seen = np.flatnonzero(rows.folds != fold)
        values = np.unique(classes[seen])
        constants.append(int(values[0]) if len(values) else 0)
        models: list[Any] = [None] * (1 + len(strengths))
        if len(values) > 1:
            given = rows.at(seen), classes[seen], weights[seen]
            models = [_boosting(*given) if estimator is None else _fitted(estimator, *given)]
            if strengths:
                models += fit_additive(rows.columns, given[0].codes, *given[1:], strengths)
        by_fold.append(models)
    directions = directions_of(np.bincount(classes, weights) / weights.sum(), has_order)
    each = [Scorer((part,), tuple(constants), directions) for part in zip(*by_fold, strict=True)]
    found = [_out_of_fold(scorer, rows) for scorer in each]
    losses = [_log_loss(forecast, classes, weights) for forecast in found]
    if strengths:  # the mean of boosting and the better of the others
        best = 1 + int(np.argmin(losses[1:]))
        each.append(replace(each[0], parts=each[0].parts + each[best].parts))
        found.append((found[0] + found[best]) / 2)
        losses.append(_log_loss(found[-1], classes, weights))
    chosen = int(np.argmin(losses))
    return each[chosen], found[chosen]


def _out_of_fold(scorer: Scorer, rows: ScoredRows) -> FloatArray:
    """Return the probabilities of each row, by models that have not seen it."""
    found = np.empty((len(rows.folds), scorer.n_classes))
    for fold in range(N_FOLDS):
        of_fold = np.flatnonzero(rows.folds == fold)
        found[of_fold] = scorer.probabilities(rows.at(of_fold), fold)
    return found


def _log_loss(forecast: FloatArray, classes: IntArray, weights: FloatArray) -> float:
    """Return the log loss of forecasts, to the digits that every processor repeats."""
    of_class = forecast[np.arange(len(classes)), classes].clip(_SMALLEST_FORECAST)
    return round(float(-np.average(np.log(of_class), weights=weights)), _LOSS_DIGITS)


def _boosting(rows: ScoredRows, classes: IntArray, weights: FloatArray) -> Any:
    """Return gradient boosting with trees that are the larger, the more rows there are."""
    most_leaves = int(np.clip(weights.sum() // _ROWS_PER_LEAF, _FEWEST_LEAVES, _MOST_LEAVES))
    boosting = HistGradientBoostingClassifier(
        max_iter=60,
        max_leaf_nodes=most_leaves,
        min_samples_leaf=20,
        l2_regularization=5.0,
        early_stopping=False,
        categorical_features="from_dtype",
        random_state=0,
    )
    same = (weights == weights[0]).all()
    return boosting.fit(rows.frame, classes, None if same else weights)


def _fitted(estimator: Any, rows: ScoredRows, classes: IntArray, weights: FloatArray) -> Any:
    """Return the user's model of rows, repeated, since not every estimator takes weights."""
    weighting, places = {"sample_weight": weights}, np.arange(len(classes))
    if (weights == np.rint(weights)).all() and weights.max() <= _MOST_REPEATED:
        places, weighting = np.repeat(places, weights.astype(int)), {}
    model = clone(estimator)
    parameters = model.get_params().items()
    unseeded = [n for n, v in parameters if n.endswith("random_state") and v is None]
    model.set_params(**dict.fromkeys(unseeded, 0))
    model.fit(rows.frame.iloc[places], classes[places], **weighting)
    _check_classes(model, np.unique(classes))
    return model


def _check_classes(model: Any, given: IntArray) -> None:
    """Check that a model has exactly the classes it was given."""
    named = f"{type(model).__name__}, the estimator of ScoreCells,"
    if not hasattr(model, "classes_"):
        raise ValueError(f"{named} has no classes_ after fit, as scikit-learn classifiers have.")
    if not np.array_equal(np.sort(model.classes_), given):
        problem = f"{named} has other classes_ after fit than it was given: "
        raise ValueError(problem + "its predict_proba must have a column for each class.")


def _check_repeats(scorer: Scorer, rows: ScoredRows, name: str) -> None:
    """Check that the score of a row depends neither on chance nor on the other rows."""
    for fold in range(N_FOLDS):
        some = np.flatnonzero(rows.folds == fold)[:_MOST_REPEATS]
        first = scorer.probabilities(rows.at(some), fold)
        again = scorer.probabilities(rows.at(some[::-2]), fold)
        if not np.allclose(first[::-2], again, rtol=0, atol=_NO_DIFFERENCE):
            raise ValueError(
                f"predict_proba of {name}, the estimator of ScoreCells, gives a row another score "
                f"when it is asked again: rows would move between cells. If it draws at random, "
                f"set its random_state to an integer; it must score each row by itself."
            )


def _plane(scores: IntArray, task: CellTask, max_cells: int) -> CellTree:
    """Return a tree that divides the space of scores, each scaled to variance 1."""
    mean = np.average(scores, axis=0, weights=task.weights)
    spread = np.sqrt(np.average((scores - mean) ** 2, axis=0, weights=task.weights))
    scaled = scores / np.where(spread > 0, spread, 1.0)
    return fit_tree(scores, scaled, task, max_cells, [(i, None) for i in range(scores.shape[1])])


def _information(forecast: FloatArray, classes: IntArray, weights: FloatArray) -> float:
    """Return what forecasts say about classes: H(V) minus their log loss."""
    share = np.bincount(classes, weights) / weights.sum()
    entropy = -float(np.sum(xlogy(share, share)))
    return max(0.0, entropy - _log_loss(forecast, classes, weights))
