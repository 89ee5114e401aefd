"""ScoreCells: cells of rows with about the same P(target|x) and P(S|x).

All that a design for a target V needs of a row x is P(V|x) and P(S|x). Models estimate them, and a
small tree divides the space of these scores. A model remembers the S of rows that it was fitted
to, so each row, old or new, is scored by models that have not seen a row like it.
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
from sklearn.utils.validation import check_memory
from threadpoolctl import threadpool_limits

from .._messages import Message
from .._typing import FloatArray, IntArray
from .._validation import message
from .cells import N_FOLDS, CellColumn, Cells, CellTask, Partition, folds_of_rows
from .trees import CellTree, fit_tree, rules_in_words

# With several threads, fitting is many times slower if other programs use the cores.
one_thread = partial(threadpool_limits.wrap, limits=1, user_api="openmp")

# Rows that occur more often than this are weighted instead of repeated.
_MOST_REPEATED = 1000

# This many rows of each fold are scored twice; the scores may differ by this much, for rounding.
_MOST_REPEATS, _NO_DIFFERENCE = 100, 1e-6

# Scores are rounded to multiples of 1 / PARTS, so that ties are exact.
PARTS = 100


@dataclass(frozen=True, eq=False)
class Scorer:
    """Models of one variable, one for each fold; n_classes : the number of its values.

    A model is None if all its rows had the same value, which is then in `constants`.
    """

    models: tuple[Any, ...]
    constants: tuple[int, ...]
    n_classes: int

    def scores(self, frame: pd.DataFrame, folds: IntArray) -> IntArray:
        """Return the probability of each class but the first, in hundredths.

        folds : of each row, which chooses the model.
        """
        scores = np.empty((len(frame), self.n_classes - 1), dtype=np.int16)
        for fold in range(N_FOLDS):
            rows = np.flatnonzero(folds == fold)
            scores[rows] = np.rint(PARTS * self.probabilities(frame.iloc[rows], fold)[:, 1:])
        return scores

    def probabilities(self, frame: pd.DataFrame, fold: int) -> FloatArray:
        """Return the probability of each class."""
        found = np.zeros((len(frame), self.n_classes))
        if (model := self.models[fold]) is None:
            found[:, self.constants[fold]] = 1.0
        elif len(frame):
            given = np.asarray(model.predict_proba(frame), dtype=float)
            if given.shape != (len(frame), len(model.classes_)) or not np.isfinite(given).all():
                problem = f"predict_proba of {type(model).__name__}, the estimator of ScoreCells, "
                raise ValueError(problem + "must give a finite number for each row and class.")
            found[:, np.asarray(model.classes_, dtype=int)] = given
        return found


@dataclass(frozen=True, eq=False)
class ScorePartition(Partition):
    """Cells by the scores of the target and of S.

    digest : a hash of the scores of the rows of `fit`, which identifies the models; information :
    what the score of the target says about it, in nats.
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
        frame = model_frame(columns, codes)
        scores = [scorer.scores(frame, fold) for scorer in (self.target, self.sensitive)]
        return self.tree.cells(np.hstack(scores))

    def in_words(self, columns: Sequence[CellColumn], names: Sequence[Hashable]) -> list[str]:
        of_target = _score_names("target", self.target.n_classes)
        return rules_in_words(
            self.tree,
            of_target + _score_names("S", self.sensitive.n_classes),
            lambda _, code: str(code),
            lambda _, code: f"{code / PARTS:.2f}",
            or_missing="",
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
        A classifier with `predict_proba` that scores rows, from a pandas frame with numbers as
        floats and categories as pandas categories. A `random_state` of None is set to 0, so that
        a second fit to the same rows gives the same cells. None: gradient boosting
        (`HistGradientBoostingClassifier`). Files can only hold this model, `LogisticRegression`
        and `GaussianNB`.
    max_cells : int, default=64
        The largest number of cells.
    person : str or int, default=None
        Column of X with person ids, by name or position, if people have several rows: integers or
        texts, none missing. No row is then scored by a model that has seen another row of the
        same person. `fit` and `transform` read the column; it is not part of any score, and never
        released. None: every row is a different person.
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
        self, estimator: Any = None, max_cells: int = 64, person: Any = None, memory: Any = None
    ) -> None:
        self.estimator = estimator
        self.max_cells = max_cells
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
        check_memory(self.memory)

    @one_thread()
    def learn(self, task: CellTask) -> tuple[ScorePartition, IntArray | None]:
        assert task.s_codes is not None
        assert task.v_codes is not None  # both come with a target
        if (fold := task.folds) is None:
            fold = folds_of_rows(task.columns, task.codes)
        elif len(np.unique(fold)) < 2:
            problem = "There are so few people that no model can leave out some to score them: "
            advice = "use rows of more people, or leave out {person}."
            raise ValueError(Message.of(problem + advice))
        frame = model_frame(task.columns, task.codes)
        learned = check_memory(self.memory).cache(self._learned)
        target, of_target = learned(self.estimator, frame, fold, task.v_codes, task.weights)
        sensitive, of_s = learned(self.estimator, frame, fold, task.s_codes, task.weights)
        if self.estimator is not None:
            for scorer in (target, sensitive):
                _check_repeats(scorer, frame, fold, type(self.estimator).__name__)
        scores = np.hstack([of_target, of_s])
        tree = _cut(scores, task, self.max_cells)
        information = _information(of_target, task.v_codes, task.weights)
        digest = hashlib.blake2b(scores.astype("<i2").tobytes()).hexdigest()
        partition = ScorePartition(target, sensitive, tree, digest, information)
        # Other models than trees may round the score of a row differently beside other rows.
        return partition, tree.cells(scores) if self.estimator is None else None

    @staticmethod
    def _learned(
        estimator: Any, frame: pd.DataFrame, fold: IntArray, classes: IntArray, weights: FloatArray
    ) -> tuple[Scorer, IntArray]:
        """Return models for each fold, fitted to the rows of all other folds, and all scores."""
        models, constants = [], []
        for left_out in range(N_FOLDS):
            seen = np.flatnonzero(fold != left_out)
            values = np.unique(classes[seen])
            constants.append(int(values[0]) if len(values) else 0)
            can_fit = len(values) > 1
            models.append(_fitted(estimator, frame, classes, weights, seen) if can_fit else None)
        scorer = Scorer(tuple(models), tuple(constants), int(classes.max()) + 1)
        return scorer, scorer.scores(frame, fold)


def _fitted(
    estimator: Any, frame: pd.DataFrame, classes: IntArray, weights: FloatArray, rows: IntArray
) -> Any:
    """Return a model of some rows, repeated, since not every estimator takes weights."""
    weight = weights[rows]
    if estimator is None:
        weighted = None if (weight == weight[0]).all() else weight
        options = {"early_stopping": False, "categorical_features": "from_dtype"}
        boosting = HistGradientBoostingClassifier(
            max_iter=60, min_samples_leaf=40, random_state=0, **options
        )
        return boosting.fit(frame.iloc[rows], classes[rows], weighted)
    weighting = {"sample_weight": weight}
    if (weight == np.rint(weight)).all() and weight.max() <= _MOST_REPEATED:
        rows, weighting = np.repeat(rows, weight.astype(int)), {}
    model = clone(estimator)
    parameters = model.get_params().items()
    unseeded = [n for n, v in parameters if n.endswith("random_state") and v is None]
    model.set_params(**dict.fromkeys(unseeded, 0))
    model.fit(frame.iloc[rows], classes[rows], **weighting)
    _check_classes(model, np.unique(classes[rows]))
    return model


def _check_classes(model: Any, given: IntArray) -> None:
    """Check that a model has exactly the classes it was given."""
    named = f"{type(model).__name__}, the estimator of ScoreCells,"
    if not hasattr(model, "classes_"):
        raise ValueError(f"{named} has no classes_ after fit, as scikit-learn classifiers have.")
    if not np.array_equal(np.sort(model.classes_), given):
        problem = f"{named} has other classes_ after fit than it was given: "
        raise ValueError(problem + "its predict_proba must have a column for each class.")


def _check_repeats(scorer: Scorer, frame: pd.DataFrame, fold: IntArray, name: str) -> None:
    """Check that the score of a row depends neither on chance nor on the other rows."""
    for k in range(N_FOLDS):
        some = frame.iloc[np.flatnonzero(fold == k)[:_MOST_REPEATS]]
        first, again = scorer.probabilities(some, k), scorer.probabilities(some[::-2], k)
        if not np.allclose(first[::-2], again, rtol=0, atol=_NO_DIFFERENCE):
            raise ValueError(
                f"predict_proba of {name}, the estimator of ScoreCells, gives a row another score "
                f"when it is asked again: rows would move between cells. If it draws at random, "
                f"set its random_state to an integer; it must score each row by itself."
            )


def model_frame(columns: Sequence[CellColumn], codes: IntArray) -> pd.DataFrame:
    """Return codes as a frame for models: numbers, and categories named by their codes."""
    parts: dict[str, Any] = {}
    for position, column in enumerate(columns):
        of_column = codes[:, position]
        if column.has_order:
            parts[f"x{position}"] = np.append(column.places, np.nan)[of_column]
        else:
            every = pd.RangeIndex(column.n_codes)
            parts[f"x{position}"] = pd.Categorical.from_codes(of_column, categories=every)
    return pd.DataFrame(parts)


def _cut(scores: IntArray, task: CellTask, max_cells: int) -> CellTree:
    """Return a tree that divides the space of scores, each scaled to variance 1."""
    mean = np.average(scores, axis=0, weights=task.weights)
    spread = np.sqrt(np.average((scores - mean) ** 2, axis=0, weights=task.weights))
    scaled = scores / np.where(spread > 0, spread, 1.0)
    return fit_tree(scores, scaled, task, max_cells, [(i, None) for i in range(scores.shape[1])])


def _information(scores: IntArray, classes: IntArray, weights: FloatArray) -> float:
    """Return what scores say about classes: H(V) minus the log loss of the scores."""
    share = np.bincount(classes, weights)
    share = share / share.sum()
    first = PARTS - scores.sum(axis=1, keepdims=True)
    forecast = np.clip(np.hstack([first, scores]) / PARTS, 0.5 / PARTS, 1.0)
    forecast /= forecast.sum(axis=1, keepdims=True)
    gain = np.log(forecast[np.arange(len(classes)), classes]) - np.log(share[classes])
    return max(0.0, float(np.average(gain, weights=weights)))
