"""Designs, scores and attackers use one thread, and leave the others as they were."""

from threading import Thread

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_info, threadpool_limits

from skprivacy import PrivacyFunnelTransformer, ScoreCells, audit, design_mechanism
from skprivacy import design as designs
from skprivacy._numerics import one_thread
from skprivacy.metrics.attack import BayesTable


def n_threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    np.eye(2) @ np.eye(2)
    with threadpool_limits(2, user_api="blas"):
        yield n_threads()


def test_one_thread_inside_and_as_many_as_before_outside(two_threads):
    inner = one_thread(n_threads)
    assert one_thread(lambda: (n_threads(), inner(), n_threads()))() == ({1}, {1}, {1})
    assert n_threads() == two_threads
    with pytest.raises(ZeroDivisionError):
        one_thread(lambda: 1 / 0)()
    assert n_threads() == two_threads


def test_it_holds_until_the_last_is_done(two_threads):
    @one_thread
    def longer():
        shorter = Thread(target=one_thread(lambda: None))
        shorter.start()
        shorter.join()
        return n_threads()

    assert longer() == {1}
    assert n_threads() == two_threads


JOINT = np.array([[20, 10, 10], [10, 20, 30]])
ROWS = pd.DataFrame(np.repeat(np.argwhere(JOINT), JOINT.ravel(), axis=0), columns=["s", "x"])
ROWS = ROWS.sample(frac=1, random_state=0, ignore_index=True)


@pytest.mark.parametrize(
    "design",
    [
        lambda: design_mechanism(JOINT, 0.02),
        lambda: PrivacyFunnelTransformer(0.02, sensitive="s", confidence=None).fit(ROWS),
    ],
    ids=["design_mechanism", "fit"],
)
def test_every_design_has_it(two_threads, monkeypatch, design):
    seen, judge = [], designs.judge_and_repair

    def watched(*given, **options):
        seen.append(n_threads())
        return judge(*given, **options)

    monkeypatch.setattr(designs, "judge_and_repair", watched)
    design()
    assert seen == [{1}]


def test_models_of_scores_have_one_of_any_kind():
    class Watching(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.update(each["num_threads"] for each in threadpool_info())
            return super().fit(X, y, sample_weight)

        def predict_proba(self, X):
            seen.update(each["num_threads"] for each in threadpool_info())
            return super().predict_proba(X)

    seen = set()
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(400, 2)), columns=["x", "y"])
    s, v = rng.integers(2, size=(2, 400))
    funnel = PrivacyFunnelTransformer(
        0.1, utility="target", alphabet=ScoreCells(Watching()), output="symbol"
    )
    with threadpool_limits(2):
        funnel.fit(rows, v, sensitive_features=s).transform(rows)
    assert seen == {1}


def test_attackers_have_one_of_any_kind():
    class Watching(BayesTable):
        def fit(self, X, y):
            seen.update(each["num_threads"] for each in threadpool_info())
            return super().fit(X, y)

    seen = set()
    with threadpool_limits(2):
        many = pd.concat([ROWS] * 300)
        audit(many[["x"]], many["s"], attacker=Watching())
    assert seen == {1}
