"""Scorers for the leakage and utility of a transformer in a pipeline, on held-out rows.

For `sklearn.model_selection.cross_validate` and `GridSearchCV`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils.metadata_routing import MetadataRequest

from .._messages import Message
from .._typing import ColumnsLike, FloatArray, Scope, TableLike
from .._validation import about, check_choice, check_real, message
from ..engines.lazy_frames import any_table
from ..fitting.fitted_estimator import fitted_of, settings_of
from ..fitting.held_out import utility_kept
from ..measures import SCOPES, Measure, check_scope, get_measure
from ..mechanism import Evaluation, Leakage
from ..transformer import PrivacyFunnelTransformer


def neg_leakage_scorer(
    measure: str | Measure | None = None, scope: Scope | None = None, *, secret: Any = None
) -> Callable[..., float]:
    """Return a scorer: minus the leakage of a pipeline's transformer on held-out rows.

    It is computed from the joint distribution of the rows and the channel, without drawing any Y.
    S comes from the `sensitive` columns of the transformer or, with metadata routing, from
    `sensitive_features`. Without either there is no score: y is never taken for S.

    With few rows the leakage is overestimated, because shares of few rows differ by chance. In the
    scope "per_output" one rare output decides, and the score may be mostly chance: even at an
    epsilon of 0, where nothing leaks. To choose among candidates, use ``scope="average"``.

    Parameters
    ----------
    measure : str or Measure, default=None
        None: the transformer's own.
    scope : {"per_output", "average"}, default=None
        None: the transformer's own. "average" is the one to choose by, see above.
    secret : default=None
        With several secrets, the name of one of them, a key of `epsilon`. None: the one with the
        largest leakage.

    Returns
    -------
    callable
        With the signature (estimator, X, y). If there are several transformers, it scores the
        worst of them; taken together, their outputs may leak more.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.model_selection import cross_validate
    >>> from sklearn.pipeline import make_pipeline
    >>> from skprivacy import PrivacyFunnelTransformer
    >>> from skprivacy.metrics import neg_leakage_scorer
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(2, size=900)
    >>> frame = pd.DataFrame({"sex": sex, "x": rng.binomial(4, 0.4 + 0.2 * sex)})
    >>> funnel = PrivacyFunnelTransformer(0.01, sensitive="sex")
    >>> pipeline = make_pipeline(funnel, DummyClassifier())
    >>> scoring = {"leakage": neg_leakage_scorer(scope="average")}
    >>> scores = cross_validate(pipeline, frame, frame["x"] > 1, scoring=scoring)
    >>> bool((scores["test_leakage"] > -0.04).all())
    True
    """
    owner = "neg_leakage_scorer"
    measure = None if measure is None else get_measure(measure, owner)
    if scope is not None and measure is not None:
        check_scope(owner, scope, measure)
    elif scope is not None:
        check_choice(owner, "scope", scope, SCOPES)
    return _Scorer("neg_leakage", measure, scope, secret)


def utility_scorer() -> Callable[..., float]:
    """Return a scorer: the share of the utility of X that is kept, on held-out rows.

    Returns
    -------
    callable
        With the signature (estimator, X, y). If there are several transformers, it scores the
        worst of them.

    Examples
    --------
    >>> import pandas as pd
    >>> from skprivacy import PrivacyFunnelTransformer
    >>> from skprivacy.metrics import utility_scorer
    >>> frame = pd.DataFrame({"s": list("abab") * 50, "x": list("uuvw") * 50})
    >>> fitted = PrivacyFunnelTransformer(0.05, sensitive="s").fit(frame)
    >>> 0 < utility_scorer()(fitted, frame) < 1
    True
    """
    return _Scorer("utility", None, None)


def best_within_leakage(
    at_most: float, *, score: str = "score", leakage: str = "leakage"
) -> Callable[[Mapping[str, Any]], int]:
    """Return a rule for `refit` of a search: the best score with acceptable leakage.

    Parameters
    ----------
    at_most : float
        The largest acceptable mean leakage on held-out rows.
    score, leakage : str, default="score", "leakage"
        The names of the two scorers in `scoring`; the latter from `neg_leakage_scorer`.

    Returns
    -------
    callable
        Takes `cv_results_` and returns the position of the best candidate.

    Examples
    --------
    >>> from skprivacy.metrics import best_within_leakage
    >>> results = {"mean_test_score": [0.7, 0.8, 0.9], "mean_test_leakage": [-0.01, -0.02, -0.3]}
    >>> int(best_within_leakage(0.05)(results))
    1
    """
    return _BestWithin(
        check_real("best_within_leakage", "at_most", at_most, low=0), score, leakage
    )


@dataclass(frozen=True)
class _BestWithin:
    """The rule as an object, so that a search with it can be pickled."""

    at_most: float
    score: str
    leakage: str

    def __call__(self, results: Mapping[str, Any]) -> int:
        scores, leaked = self._means(results, "score"), -self._means(results, "leakage")
        fine = np.flatnonzero((leaked <= self.at_most) & ~np.isnan(scores))
        if len(fine):
            return int(fine[scores[fine].argmax()])
        if np.isnan(leaked).all():
            raise ValueError(
                "The leakage of no candidate could be measured: the warnings of the search say "
                "why, and error_score='raise' shows the first error."
            )
        template = (
            "No candidate with a score leaks at most {at_most} on the held-out rows: the smallest "
            "mean leakage is {smallest:.4g}. Add a smaller epsilon, or raise at_most. If the "
            "smallest epsilons all have about this leakage, it is the chance of few rows: use "
            "neg_leakage_scorer with {scope='average'}, fewer folds, or more rows."
        )
        values = {"at_most": self.at_most, "smallest": np.nanmin(leaked)}
        raise ValueError(Message.of(template, **values))

    def _means(self, results: Mapping[str, Any], parameter: str) -> FloatArray:
        """Return the mean scores of the candidates by one of the two scorers."""
        name, prefix = getattr(self, parameter), "mean_test_"
        if f"{prefix}{name}" in results:
            return np.asarray(results[f"{prefix}{name}"], dtype=float)
        known = [key.removeprefix(prefix) for key in results if key.startswith(prefix)]
        advice = (
            "It needs a search with two scorers, "
            "scoring={'score': ..., 'leakage': neg_leakage_scorer(scope='average')}"
        )
        if len(known) > 1:
            advice = f"Pass {parameter}=... with one of these names"
        problem = f" is {name!r}, which is no scorer of this search: these are {known}. {advice}."
        raise ValueError(about("best_within_leakage", parameter, problem))


class _Scorer:
    """A scorer that requests `sensitive_features` through metadata routing."""

    def __init__(
        self, name: str, measure: Measure | None, scope: Scope | None, secret: Any = None
    ) -> None:
        self._name, self._measure, self._scope, self._secret = name, measure, scope, secret

    def __repr__(self) -> str:
        secret = "" if self._secret is None else f", secret={self._secret!r}"
        return f"{self._name}_scorer({self._measure!r}, {self._scope!r}{secret})"

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata request for scikit-learn."""
        request = MetadataRequest(owner=repr(self))
        request.score.add_request(param="sensitive_features", alias=True)
        return request

    def __call__(
        self,
        estimator: BaseEstimator,
        X: TableLike,
        y: ColumnsLike | None = None,
        *,
        sensitive_features: ColumnsLike | None = None,
    ) -> float:
        found = list(_transformers(estimator, X))
        if not found:
            raise ValueError(
                message(self._name, "estimator", "one with a PrivacyFunnelTransformer", estimator)
            )
        return min(
            self._score(transformer, rows, y, sensitive_features) for transformer, rows in found
        )

    def _score(
        self,
        transformer: PrivacyFunnelTransformer,
        X: Any,
        y: ColumnsLike | None,
        sensitive_features: ColumnsLike | None,
    ) -> float:
        if self._name == "utility":
            table = any_table(X, type(transformer).__name__)
            return utility_kept(fitted_of(transformer), settings_of(transformer), table, y)
        figures = transformer.evaluate(X, y, sensitive_features=sensitive_features)
        scope, leakages = self._scope or transformer.scope, []
        for each in self._chosen(figures):
            if np.count_nonzero(each.prior) < 2:
                raise ValueError(
                    "These rows have a single group of S, and what leaks cannot be measured with "
                    "them: use folds that have all groups, such as those of StratifiedKFold, "
                    "split by S."
                )
            judged = each if self._measure is None else each.with_measure(self._measure)
            leakages.append(judged.leakage_in(check_scope(repr(self), scope, judged.measure)))
        return -max(leakages)

    def _chosen(self, figures: Evaluation) -> list[Leakage]:
        secrets = figures.secrets
        if self._secret is None:
            return [*secrets.values()]
        if self._secret not in secrets:
            several = f"None or one of {list(secrets)}"
            requirement = "None for one secret" if None in secrets else several
            raise ValueError(message(self._name, "secret", requirement, self._secret))
        return [secrets[self._secret]]


def _transformers(estimator: Any, X: Any) -> Iterator[tuple[PrivacyFunnelTransformer, Any]]:
    """Yield the fitted transformers inside an estimator, each with the rows it receives."""
    if isinstance(estimator, PrivacyFunnelTransformer):
        yield estimator, X
    elif isinstance(estimator, Pipeline):
        for position, (_, step) in enumerate(estimator.steps):
            if _contains(step):
                before = estimator[:position]
                yield from _transformers(step, before.transform(X) if position else X)
    elif isinstance(estimator, ColumnTransformer):
        for _, step, columns in estimator.transformers_:
            if _contains(step):
                yield from _transformers(step, _columns(X, columns))
    elif isinstance(estimator, FeatureUnion):
        for _, step in estimator.transformer_list:
            yield from _transformers(step, X)
    elif hasattr(estimator, "best_estimator_"):
        yield from _transformers(estimator.best_estimator_, X)


def _contains(step: Any) -> bool:
    """Whether an estimator contains a PrivacyFunnelTransformer."""
    if isinstance(step, PrivacyFunnelTransformer):
        return True
    parts = getattr(step, "steps", None) or getattr(step, "transformer_list", None) or []
    parts = [*parts, *((t[0], t[1]) for t in getattr(step, "transformers_", []))]
    return any(_contains(part) for _, part in parts)


def _columns(X: Any, columns: Any) -> Any:
    if isinstance(columns, slice):
        if not hasattr(X, "iloc"):
            return np.asarray(X)[:, columns]
        return X.loc[:, columns] if isinstance(columns.stop, str) else X.iloc[:, columns]
    if hasattr(X, "iloc"):
        by_name = isinstance(columns, str) or all(isinstance(c, str) for c in columns)
        listed = [columns] if isinstance(columns, str) else list(columns)
        return X[listed] if by_name else X.iloc[:, listed]
    return X[columns] if hasattr(X, "columns") else np.asarray(X)[:, columns]
