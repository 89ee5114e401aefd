"""Cells know no more about S on the rows that they were learned from than on new ones.

A short run of benchmarks/honest_cells.py, with small models.
"""

import sys
from pathlib import Path

import pytest
from sklearn.tree import DecisionTreeClassifier

from skprivacy import ScoreCells

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    import honest_cells

    yield honest_cells
    del sys.modules["honest_cells"]


@pytest.mark.parametrize("by_chance", [True, False])
def test_scores_of_rows_that_models_have_not_seen_are_honest(benchmark, by_chance):
    model = DecisionTreeClassifier(min_samples_leaf=10, random_state=0)
    for kind, is_honest in ((ScoreCells, True), (benchmark.ScoresInSample, False)):
        found = benchmark.mean_of_tables(
            kind(model, 16, cut="plane"), 1000, 2, by_chance, n_tables=4
        )
        assert found.passes == is_honest, (kind.__name__, found)
