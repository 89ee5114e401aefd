"""ScoreCells: cells of rows that say the same about a target, and about S.

All that a design for a target V needs of a row x is P(V|x) and P(S|x). Models estimate them, and a
small tree cuts the space of these scores. A score that has seen a row remembers its S: so each row
is scored by models that have not seen a row like it, whether it is one of `fit` or a new one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeRegressor
from threadpoolctl import threadpool_limits

from .._messages import Message, Named
from .._typing import FloatArray, IntArray
from .._validation import message
from .cells import N_FOLDS, CellColumn, Cells, CellTask, Partition, folds_of_rows
from .trees import CellTree, as_cell_tree, rules_in_words

# Threads that wait for each other are many times slower where other programs use the cores.
one_thread = partial(threadpool_limits.wrap, limits=1, user_api="openmp")

# Rows that occur more often than this are weighted instead of repeated.
_MOST_REPEATED = 1000

# So many rows of each fold are scored twice, and may differ by rounding.
_MOST_REPEATS = 100
_NO_DIFFERENCE = 1e-6

# Scores are rounded to so many parts of 1, so that ties are ties.
PARTS = 100


@dataclass(frozen=True, eq=False)
class Scorer:
    """Models of one variable, one for each fold; classes : how many values it has.

    None stands for a model of rows that all have the same value, which `constant` tells.
    """

    models: tuple[Any, ...]
    constants: tuple[int, ...]
    n_classes: int

    def scores(self, frame: pd.DataFrame, fold: int) -> IntArray:
        """Return the probability of each class but the first, in hundredths."""
        return np.rint(PARTS * self.probabilities(frame, fold)[:, 1:]).astype(np.int16)

    def probabilities(self, frame: pd.DataFrame, fold: int) -> FloatArray:
        """Return the probability of each class."""
        found = np.zeros((len(frame), self.n_classes))
        if (model := self.models[fold]) is None:
            found[:, self.constants[fold]] = 1.0
        elif len(frame):
            given = np.asarray(model.predict_proba(frame), dtype=float)
            if given.shape != (len(frame), len(model.classes_)) or not np.isfinite(given).all():
                told = f"predict_proba of {type(model).__name__}, the estimator of ScoreCells, "
                raise ValueError(told + "must give a finite number for each row and class.")
            found[:, np.asarray(model.classes_, dtype=int)] = given
        return found


@dataclass(frozen=True, eq=False)
class ScorePartition(Partition):
    """Cells by the scores of the target and of S.

    digest : of the scores of the rows that they were learned from, which other models would not
    give; information : what the score of the target says about it, in nats.
    """

    target: Scorer
    sensitive: Scorer
    tree: CellTree
    digest: str
    information: float

    @property
    def n_cells(self) -> int:
        return self.tree.n_cells

    @one_thread()
    def cells(
        self, columns: Sequence[CellColumn], codes: IntArray, folds: IntArray | None = None
    ) -> IntArray:
        fold = folds_of_rows(columns, codes) if folds is None else folds
        return self.tree.cells(_scores(self.target, self.sensitive, columns, codes, fold))

    def in_words(self, columns: Sequence[CellColumn], names: Sequence[Hashable]) -> list[str]:
        of_target = _score_names("target", self.target.n_classes)
        return rules_in_words(
            self.tree.paths(),
            of_target + _score_names("S", self.sensitive.n_classes),
            lambda _, code: str(code),
            lambda _, code: f"{code / PARTS:.2f}",
            may_miss=False,
        )

    def rules(self) -> list[Any]:
        return ["scores", self.digest, self.tree.to_lists()]


def _score_names(name: str, n_classes: int) -> list[str]:
    if n_classes == 2:
        return [f"score of {name}"]
    return [f"score {i} of {name}" for i in range(1, n_classes)]


class ScoreCells(Cells):
    """Cells that keep what X says about a target: for utility="target".

    Parameters
    ----------
    estimator : classifier, default=None
        It scores rows, from a pandas frame with numbers as floats and categories as pandas
        categories, and must have `predict_proba`. A `random_state` of None is set to 0, so that
        a second fit to the same rows gives the same cells. None: gradient boosting
        (`HistGradientBoostingClassifier`). Files hold no other models than these,
        `LogisticRegression` and `GaussianNB`.
    max_cells : int, default=64
        How many cells there are at most.
    person : str or int, default=None
        The column of X, by name or position, that tells whose row a row is, where a person may
        have several: integers or texts, none missing. No row is then scored by a model that has
        seen another row of that person. `fit` and `transform` read the column; it is not part of
        any score, and never released. None: rows are of different people.

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

    def __init__(self, estimator: Any = None, max_cells: int = 64, person: Any = None) -> None:
        self.estimator = estimator
        self.max_cells = max_cells
        self.person = person

    def check(self) -> None:
        super().check()
        model = self.estimator
        is_model = hasattr(model, "predict_proba") and not isinstance(model, type)
        if model is not None and not is_model:
            told = "The 'estimator' parameter of ScoreCells must be a classifier with "
            raise TypeError(told + f"predict_proba. Got {self.estimator!r}.")
        if isinstance(self.person, list | bool | np.ndarray) or callable(self.person):
            requirement = "the name or the position of one column, or None"
            raise TypeError(message("ScoreCells", "person", requirement, self.person))

    @one_thread()
    def learn(self, task: CellTask) -> ScorePartition:
        assert task.s_codes is not None
        assert task.v_codes is not None  # both come with a target
        frame, fold = model_frame(task.columns, task.codes), _folds_of(task)
        target = self._scorer(frame, fold, task.v_codes, task.weights)
        sensitive = self._scorer(frame, fold, task.s_codes, task.weights)
        if self.estimator is not None:
            for scorer in (target, sensitive):
                _check_repeats(scorer, frame, fold, type(self.estimator).__name__)
        scores = _scores(target, sensitive, task.columns, task.codes, fold)
        tree = _cut(scores, task, min(self.max_cells, task.most_cells))
        information = _information(scores[:, : target.n_classes - 1], task.v_codes, task.weights)
        digest = hashlib.blake2b(scores.astype("<i2").tobytes()).hexdigest()
        return ScorePartition(target, sensitive, tree, digest, information)

    def _scorer(
        self, frame: pd.DataFrame, fold: IntArray, classes: IntArray, weights: FloatArray
    ) -> Scorer:
        """Return models for each fold, which have seen the rows of all others."""
        models: list[Any] = []
        constants = []
        for left_out in range(N_FOLDS):
            seen = np.flatnonzero(fold != left_out)
            values = np.unique(classes[seen])
            constants.append(int(values[0]) if len(values) else 0)
            models.append(None)
            if len(values) > 1:
                models[-1] = self._fitted(frame, classes, weights, seen)
        return Scorer(tuple(models), tuple(constants), int(classes.max()) + 1)

    def _fitted(
        self, frame: pd.DataFrame, classes: IntArray, weights: FloatArray, rows: IntArray
    ) -> Any:
        """Return a model of some rows; not every estimator takes weights, so rows are repeated."""
        own = weights[rows]
        if self.estimator is None:
            weighted = None if (own == own[0]).all() else own
            options = {"max_iter": 60, "min_samples_leaf": 40, "early_stopping": False}
            of_types = {"categorical_features": "from_dtype", "random_state": 0}
            boosting = HistGradientBoostingClassifier(**options, **of_types)
            return boosting.fit(frame.iloc[rows], classes[rows], weighted)
        if (own == np.rint(own)).all() and own.max() <= _MOST_REPEATED:
            rows, weighting = np.repeat(rows, own.astype(int)), {}
        else:
            weighting = {"sample_weight": own}
        model = _seeded(self.estimator)
        model.fit(frame.iloc[rows], classes[rows], **weighting)
        _check_classes(model, np.unique(classes[rows]))
        return model


def _seeded(estimator: Any) -> Any:
    """Return a new estimator like another one that draws the same whenever it is fitted."""
    model = clone(estimator)
    own = model.get_params().items()
    is_open = [name for name, value in own if name.endswith("random_state") and value is None]
    return model.set_params(**dict.fromkeys(is_open, 0))


def _check_classes(model: Any, given: IntArray) -> None:
    """Check that a model says which classes its scores are of, and that it has got these."""
    named = f"{type(model).__name__}, the estimator of ScoreCells,"
    if not hasattr(model, "classes_"):
        told = f"{named} has no classes_ after fit: "
        raise ValueError(told + "it must be a classifier as in scikit-learn.")
    if not np.array_equal(np.sort(model.classes_), given):
        told = f"{named} has other classes_ after fit than it was given: "
        raise ValueError(told + "its predict_proba must be about each of these.")


def _check_repeats(scorer: Scorer, frame: pd.DataFrame, fold: IntArray, name: str) -> None:
    """Check that scores of a row are the same whenever, and with whichever rows, it is scored."""
    for k in range(N_FOLDS):
        some = frame.iloc[np.flatnonzero(fold == k)[:_MOST_REPEATS]]
        first, again = scorer.probabilities(some, k), scorer.probabilities(some[::-2], k)
        if not np.allclose(first[::-2], again, rtol=0, atol=_NO_DIFFERENCE):
            raise ValueError(
                f"predict_proba of {name}, the estimator of ScoreCells, gives a row another score "
                f"when it is asked again: rows would move between cells. If it draws at random, "
                f"set its random_state to an integer; it must score each row by itself."
            )


def _folds_of(task: CellTask) -> IntArray:
    """Return the folds of rows: by the keys of people if there are any, else by their values."""
    if task.folds is None:
        return folds_of_rows(task.columns, task.codes)
    if len(np.unique(task.folds)) < 2:
        told = "The rows are of so few people that no model can be learned from some of them, "
        why = "and score the others: use rows of more people, or leave out ", Named("person")
        raise ValueError(Message(told, *why, "."))
    return task.folds


def model_frame(columns: Sequence[CellColumn], codes: IntArray) -> pd.DataFrame:
    """Return codes as models take them: numbers, and categories called by their code."""
    parts: dict[str, Any] = {}
    for position, column in enumerate(columns):
        own = codes[:, position]
        if column.has_order:
            parts[f"x{position}"] = np.append(column.places, np.nan)[own]
        else:
            every = pd.RangeIndex(column.n_codes)
            parts[f"x{position}"] = pd.Categorical.from_codes(own, categories=every)
    return pd.DataFrame(parts)


def _scores(
    target: Scorer,
    sensitive: Scorer,
    columns: Sequence[CellColumn],
    codes: IntArray,
    fold: IntArray,
) -> IntArray:
    """Return the scores of each row, by the models of its fold."""
    n_of_target = target.n_classes - 1
    scores = np.empty((len(codes), n_of_target + sensitive.n_classes - 1), dtype=np.int16)
    frame = model_frame(columns, codes)
    for k in range(N_FOLDS):
        rows = np.flatnonzero(fold == k)
        part = frame.iloc[rows]
        scores[rows, :n_of_target] = target.scores(part, k)
        scores[rows, n_of_target:] = sensitive.scores(part, k)
    return scores


def _cut(scores: IntArray, task: CellTask, n_cells: int) -> CellTree:
    """Return a tree that cuts the space of scores, in which each has a variance of 1."""
    mean = np.average(scores, axis=0, weights=task.weights)
    spread = np.sqrt(np.average((scores - mean) ** 2, axis=0, weights=task.weights))
    scaled = scores / np.where(spread > 0, spread, 1.0)
    regressor = DecisionTreeRegressor(
        max_leaf_nodes=max(2, n_cells),
        min_weight_fraction_leaf=task.least_share,
        min_samples_leaf=task.fewest_distinct,
        random_state=0,
    ).fit(scores, scaled, task.weights)
    return as_cell_tree(regressor.tree_, [(i, None) for i in range(scores.shape[1])])


def _information(scores: IntArray, classes: IntArray, weights: FloatArray) -> float:
    """Return what scores say about classes: H(V) less the loss of the scores as a forecast."""
    share = np.bincount(classes, weights)
    share = share / share.sum()
    first = PARTS - scores.sum(axis=1, keepdims=True)
    forecast = np.clip(np.hstack([first, scores]) / PARTS, 0.5 / PARTS, 1.0)
    forecast /= forecast.sum(axis=1, keepdims=True)
    own = np.arange(len(classes))
    gain = np.log(forecast[own, classes]) - np.log(share[classes])
    return max(0.0, float(np.average(gain, weights=weights)))
