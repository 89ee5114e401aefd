"""The comparison of ways to release a table: its fair tree, its tables, and the page about it."""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scripts import run_script
from sklearn.tree import DecisionTreeClassifier

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "trade_off.rst").read_text()
RECORDED = (ROOT / "docs" / "measured" / "trade_off.txt").read_text()
ON_REAL_TABLES = (ROOT / "docs" / "measured" / "real_tables.txt").read_text()


@pytest.fixture
def fair_tree(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import fair_tree

    yield fair_tree
    del sys.modules["fair_tree"]


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    import trade_off_tables

    yield trade_off_tables
    del sys.modules["trade_off_tables"]


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    s = rng.integers(2, size=n)
    X = pd.DataFrame({"a": rng.integers(20, size=n), "b": rng.integers(20, size=n) + 5 * s})
    X["town"] = rng.choice(list("uvw"), size=n)
    v = (rng.random(n) < X["a"] / 20 * (X["town"] != "u")).to_numpy(int)
    return X, s, v


def test_without_a_weight_the_tree_is_that_of_scikit_learn(fair_tree):
    X, s, v = people(1000)
    ours = fair_tree.FairTree(0.0, max_leaves=6, min_rows=20).fit(X[["a", "b"]], v, s)
    theirs = DecisionTreeClassifier(max_leaf_nodes=6, min_samples_leaf=20, random_state=0)
    theirs.fit(X[["a", "b"]], v)
    both = pd.crosstab(ours.apply(X), theirs.apply(X[["a", "b"]])).to_numpy()
    assert both.shape == (6, 6)
    assert ((both > 0).sum(axis=0) == 1).all()


def test_with_a_weight_leaves_tell_less_about_s(fair_tree):
    X, s, v = people(4000)
    told = []
    for weight in (0.0, 0.9):
        tree = fair_tree.FairTree(weight, max_leaves=8).fit(X, v + s > 1, s)
        shares = pd.crosstab(s, tree.apply(X), normalize="index").to_numpy()
        told.append(abs(shares[0] - shares[1]).sum())
    assert told[1] < told[0] / 2


def test_the_tree_takes_categories_that_it_has_not_seen(fair_tree):
    X, s, v = people(500)
    tree = fair_tree.FairTree(0.0, max_leaves=4).fit(X, v, s)
    leaves = tree.apply(X.assign(town="new", a=1000))
    assert set(leaves) <= set(range(4))


def test_the_certificate_of_the_tree_holds(fair_tree):
    X, s, _ = people(400)
    tree = fair_tree.FairTree(0.0, max_leaves=4).fit(X, s, s)  # as unfair as it can be
    many, groups, _ = people(200_000, seed=1)
    shares = pd.crosstab(groups, tree.apply(many), normalize="index").to_numpy()
    true = abs(shares[0] - shares[1]).sum() / 2
    found = []
    for seed in range(2, 102):
        rows, sensitive, _ = people(6000, seed)
        leaves = tree.apply(rows)
        parts = sensitive[:2000], leaves[2000:4000], sensitive[2000:4000], leaves[4000:]
        found.append(fair_tree.fare_certificate(*parts, n_leaves=4))
    assert np.mean(np.array(found) >= true) >= 0.95
    assert np.mean(found) < true + 0.3


def test_the_truth_about_the_generated_table_is_true(tables):
    drawn = tables.draw_people(100_000, 0)
    for chance, truth in (
        (tables.chance_of_s(drawn.X), drawn.s),
        (tables.chance_of_v(drawn.X), drawn.v),
    ):
        bands = pd.qcut(chance, 10, labels=False)
        means = pd.DataFrame({"said": chance, "true": truth}).groupby(bands).mean()
        assert abs(means["said"] - means["true"]).max() < 0.02


def test_the_parts_of_a_split_share_no_row(tables):
    split = tables.diabetes().split(0)
    rows = [set(part.X.index) for part in (split.fit, split.choose, split.report)]
    assert [len(each) for each in rows] == [200, 100, 142]
    assert len(set.union(*rows)) == 442


@pytest.mark.slow
def test_the_comparison_runs(monkeypatch, capsys):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # which it sets
    arguments = ["nowhere.csv", "--quick", "--table", "diabetes"]
    arguments += ["--method", "raw", "--method", "fair_trees", "--method", "aif360"]
    run_script("benchmarks/trade_off.py", *arguments)
    text = capsys.readouterr().out
    assert "200 rows to fit, 100 to choose by, 142 to report, 9 columns" in text
    assert "raw                    0 of 3" in text
    assert "aif360 did not run: no Python with AIF360 was given" in text


def recorded_lines():
    """Figures by table, part ("all" or a limit), method and setting, and name of the column."""
    found, heads = {}, []
    for text in RECORDED.split("\ntable ")[1:]:
        table, part = text.split(":")[0], "all"
        for line in text.splitlines()[2:]:
            if limit := re.match(r"limit ([\d.]+)", line):
                part = limit[1]
            elif "attacker" in line:
                heads = cells_in(line, part)
            elif line[23:38].strip() and not line.startswith("the true"):
                name = line[:23].strip(), line[23:38].strip()
                cells = dict(zip(heads, cells_in(line, part), strict=True))
                found[table, part, *(name if part == "all" else name[:1])] = cells
    return found


def cells_in(line, part):
    """Eight figures, then a ninth (the truth, if it is known) or three verdicts."""
    widths = [9] * 9 if part == "all" else [9] * 8 + [16] * 3
    ends = 38 + np.cumsum(widths)
    return [line[end - width : end].strip() for end, width in zip(ends, widths, strict=True)]


def shown_tables():
    """Tables of the page: what they are about, their heads, and their lines."""
    for about, text in re.findall(r"\.\. table:: (.+)\n\n((?:   .+\n)+)", PAGE):
        ruler, head, _, *lines, _ = text.splitlines()
        spans = [column.span() for column in re.finditer("=+", ruler)]
        lines = [line.replace("\\-", "- ") for line in (head, *lines)]  # a "-" alone is a list
        cut = [[line[start:end].strip() for start, end in spans] for line in lines]
        yield about, cut[0], cut[1:]


def test_every_table_of_the_page_is_what_was_recorded():
    recorded, n_cells = recorded_lines(), 0
    for about, head, lines in shown_tables():
        table, limit = re.fullmatch(r"(.+), limit ([\d.]+)", about).groups()
        reached = {
            key[2] for key, line in recorded.items() if key[:2] == (table, limit) and line["AUC"]
        }
        assert {name for name, *_ in lines} == reached, about
        for name, *cells in lines:
            for column, cell in zip(head[1:], cells, strict=True):
                assert cell == recorded[table, limit, name][column], (about, name, column)
                n_cells += 1
    assert n_cells > 400


def test_every_figure_in_the_text_of_the_page_was_recorded():
    text = re.sub(r"\.\. table:: .+\n\n((?:   .+\n)+)", "", PAGE)
    figures = set(re.findall(r"\b0\.\d{3}\b", text))
    assert len(figures) > 5
    assert figures <= set(re.findall(r"\b[01]\.\d{3}\b", RECORDED + ON_REAL_TABLES))
