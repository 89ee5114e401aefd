"""Made-up rows: their budget, what they keep, and that they are the same everywhere."""

import itertools
import json
import pickle
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from documents import sealed
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog

from skprivacy import PrivacyFunnelTransformer, ScoreCells, TreeCells
from skprivacy.encoding import learn_alphabet
from skprivacy.encoding import rows as made_up
from skprivacy.encoding.columns import FEWEST_ROWS, learn_values
from skprivacy.encoding.dependencies import contradictions
from skprivacy.encoding.rows import RowTask, learn_rows
from skprivacy.fitting.fitted_estimator import fitted_of
from skprivacy.metrics import linkage
from skprivacy.releasing import output_names
from skprivacy.releasing import release as releases
from skprivacy.releasing.output_names import shown_symbols
from skprivacy.releasing.sampler import (
    IDENTITY_LANE,
    OUTPUT_LANE,
    SHOWN_LANE,
    NoiseKey,
    RowNoise,
)
from skprivacy.transformer import release_by

KEY = bytes(range(32))


def schools(n=3000, seed=0):
    """Return rows in which level follows from school, and region and country from town."""
    rng = np.random.default_rng(seed)
    sex = rng.integers(2, size=n)
    town = rng.choice([f"town {i}" for i in range(12)], n)
    school = np.clip(rng.poisson(2 + sex), 0, 6)
    return pd.DataFrame(
        {
            "sex": np.array(["f", "m"])[sex],
            "school": np.array(["none", "primary", "middle", "high", "college", "master", "phd"])[school],
            "level": school + 3,
            "town": town,
            "region": [f"region {int(t[5:]) // 3}" for t in town],
            "country": [f"country {int(t[5:]) // 6}" for t in town],
            "income": np.round(rng.lognormal(9 + 0.2 * school, 0.4), 2),
            "age": rng.integers(18, 90, n),
            "owner": rng.random(n) < 0.2 + 0.1 * school,
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def rows():
    return schools()


def quiet(funnel, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return funnel.fit(*args, **kwargs)


def funnel(cells=None, **options):
    options = {"sensitive": "sex", "alphabet": cells or TreeCells(max_cells=20)} | options
    return PrivacyFunnelTransformer(0.05, **options)


@pytest.fixture(scope="module")
def fitted(rows):
    return quiet(funnel(), rows)


@pytest.fixture(scope="module")
def with_target(rows):
    cells = ScoreCells(max_cells=12)
    made = funnel(cells, utility="target", release_target=True)
    return quiet(made, rows.drop(columns="owner"), rows["owner"])


class TestShownCells:
    @given(st.integers(0, 10**6))
    @settings(max_examples=30, deadline=None)
    def test_they_keep_the_marginal_and_match_best(self, seed):
        rng = np.random.default_rng(seed)
        n_x, n_y = rng.integers(2, 9), rng.integers(1, 7)
        p_x = rng.dirichlet(np.ones(n_x))
        channel = rng.dirichlet(np.full(n_y, 0.3), n_x)
        shown = shown_symbols(channel, p_x, None, None)
        assert_allclose(shown.sum(axis=1), 1, atol=1e-12)
        assert_allclose(p_x @ channel @ shown, p_x, atol=1e-6)
        # The naive transport problem over all pairs.
        joint = (p_x[:, None] * channel).T
        p_y = joint.sum(axis=1)
        every = np.eye(n_y * n_x).reshape(n_y, n_x, -1)
        sums = np.vstack([every.sum(axis=1), every.sum(axis=0)])
        best = linprog(-(joint / p_y[:, None]).ravel(), A_eq=sums, b_eq=[*p_y, *p_x])
        assert (p_x * np.diag(channel @ shown)).sum() == pytest.approx(-best.fun, abs=1e-5)

    @pytest.mark.parametrize("kind", ["any", "useless", "sharp"])
    @pytest.mark.parametrize("has_loss", [False, True])
    def test_ties_do_not_depend_on_the_solver(self, kind, has_loss, monkeypatch):
        rng = np.random.default_rng(0)
        n_x, n_y = 30, 6
        p_x = np.full(n_x, 1 / n_x)
        channel = {
            "any": rng.dirichlet(np.full(n_y, 0.3), n_x),
            "useless": np.full((n_x, n_y), 1 / n_y),
            "sharp": np.eye(n_y)[rng.integers(n_y, size=n_x)],
        }[kind]
        loss = np.abs(np.subtract.outer(np.arange(n_x), np.arange(n_x))) if has_loss else None
        found = shown_symbols(channel, p_x, None, loss)

        def shuffled(c, A_eq, b_eq, **options):
            columns, rows = rng.permutation(len(c)), rng.permutation(len(b_eq))
            answer = linprog(c[columns], A_eq=A_eq[rows][:, columns], b_eq=b_eq[rows], **options)
            answer.x = answer.x[np.argsort(columns)]
            return answer

        monkeypatch.setattr(output_names, "linprog", shuffled)
        for _ in range(3):
            assert_array_equal(found, shown_symbols(channel, p_x, None, loss))

    def test_strata_do_not_mix(self):
        strata = np.array([0, 0, 1, 1])
        channel = np.zeros((4, 3))
        channel[:2, :2], channel[2:, 2] = [[0.7, 0.3], [0.4, 0.6]], 1
        shown = shown_symbols(channel, np.array([0.1, 0.4, 0.3, 0.2]), strata, None)
        assert not shown[:2, 2:].any()
        assert not shown[2, :2].any()

    def test_rows_stay_beside_what_is_published(self, rows):
        # Rows that differ only in what is published are close: there is a reason to mix them.
        cells = TreeCells(max_cells=8)
        made = quiet(funnel(cells, beside="owner", utility="distortion"), rows)
        shown, mechanism = fitted_of(made).shown_given_y, made.mechanism_
        of_output = mechanism.strata[mechanism.channel.argmax(axis=0)]
        assert not shown[of_output[:, None] != mechanism.strata].any()

    def test_all_cells_are_released(self, rows, fitted):
        cells = fitted_of(fitted).alphabet
        released = pd.concat([fitted.transform(rows) for _ in range(3)])
        before = rows["town"].value_counts(normalize=True)
        after = released["town"].value_counts(normalize=True)
        assert (before - after).abs().max() < 0.02
        shown = fitted_of(fitted).shown_given_y
        assert_allclose(fitted.mechanism_.p_x @ fitted.mechanism_.channel @ shown,
                        fitted.mechanism_.p_x, atol=1e-6)  # fmt: skip
        assert (shown.sum(axis=0) > 0).sum() == cells.n_symbols


def alphabets(codes):
    found = [learn_values(pd.Series(code), None, "x", n_bins=None) for code in codes]
    return tuple(each[0] for each in found), [each[2][each[1]] for each in found]


def task(codes, groups, **options):
    columns, positions = alphabets(codes)
    n, n_groups = len(groups), int(groups.max()) + 1
    return RowTask(columns, positions, groups, n_groups, np.ones(n), np.ones(n), **options)


def every_row(model, groups):
    """Return P(row | group) of all rows of a small model, by enumeration."""
    sizes = model.sizes[:-1]
    rows = np.array(list(itertools.product(*(range(size) for size in sizes))))
    return rows, np.stack(
        [model.probability(list(rows.T), np.full(len(rows), g)) for g in range(groups)]
    )


class TestRowModel:
    @given(st.integers(0, 10**6))
    @settings(max_examples=15, deadline=None)
    def test_draws_have_the_probabilities_that_it_says(self, seed):
        rng = np.random.default_rng(seed)
        n = 900
        groups = rng.integers(3, size=n)
        a = rng.integers(3, size=n)
        codes = [a, (a + (rng.random(n) < 0.2)) % 3, rng.integers(2, size=n) + groups]
        model = learn_rows(task(codes, groups))
        found, p = every_row(model, 3)
        assert_allclose(p.sum(axis=1), 1, atol=1e-9)
        many = 20_000
        drawn, _ = model.draw(np.ones(many, dtype=int), lambda _: rng.random(many))
        index = {tuple(row): i for i, row in enumerate(found.tolist())}
        counts = np.bincount([index[tuple(row)] for row in drawn.T.tolist()], minlength=len(found))
        assert np.abs(counts / many - p[1]).max() < 5 * np.sqrt(0.25 / many)

    def test_a_question_gains_most_of_all(self):
        """Against sums over the rows on both sides, spelled out for each node and limit."""
        rng = np.random.default_rng(2)
        n, n_ranks, n_nodes = 700, 9, 3
        ranks, node = rng.integers(n_ranks, size=n), rng.integers(n_nodes, size=n)
        weights = rng.integers(1, 4, n).astype(float)
        people, level = np.minimum(weights, 2.0), ranks + rng.integers(6, size=n)
        numbers = made_up._Target(weights, people, None, level.astype(float))
        classes = made_up._Target(weights, people, level // 4, None, 4)
        for target, y in ((numbers, level[:, None]), (classes, np.eye(4)[level // 4])):
            nodes = made_up._Nodes.of(target, node, n_nodes)
            several = [ranks, np.zeros(n, dtype=int), n_ranks - 1 - ranks]
            sizes = [n_ranks, 2, n_ranks]
            found = made_up._splits(several.__getitem__, sizes, target, node, nodes)
            assert_allclose(found[0][2], found[0][0])  # backwards
            assert not found[0][1].any()
            gains, limits = found[0][0], found[1][0]

            def score(rows, y=y):
                return ((weights[rows] @ y[rows]) ** 2).sum() / weights[rows].sum()

            for i in range(n_nodes):
                each, here = {}, node == i
                for limit in range(n_ranks - 1):
                    left, right = here & (ranks <= limit), here & (ranks > limit)
                    if min(people[left].sum(), people[right].sum()) >= made_up.FEWEST_IN_LEAF:
                        each[limit] = score(left) + score(right) - score(here)
                assert limits[i] == max(each, key=each.get)
                assert_allclose(gains[i], max(each.values()))

    @pytest.mark.parametrize(("most", "at_once"), [(1, True), (2**10, True), (2**40, False)])
    def test_sums_at_once_are_exact(self, most, at_once):
        rng = np.random.default_rng(3)
        place, numbers = rng.integers(7, size=500), rng.integers(300, size=500).astype(float)
        weights = rng.integers(most, 2 * most, 500).astype(float)
        unit = made_up._unit(weights, 300)
        assert (unit > 0) is at_once
        assert not made_up._unit(weights + 0.5, 300)
        both = made_up._Target(weights, None, None, numbers, 1, unit).sums(place, 8)
        apart = made_up._Target(weights, None, None, numbers).sums(place, 8)
        for one, other in zip(both, apart, strict=True):
            assert_array_equal(one, other)

    def test_constant_columns(self):
        rng = np.random.default_rng(0)
        codes = [np.ones(300), rng.integers(3, size=300), np.full(300, "a")]
        model = learn_rows(task(codes, np.zeros(300, int)))
        drawn, _ = model.draw(np.zeros(9, dtype=int), lambda _: rng.random(9))
        assert not drawn[[0, 2]].any()

    def test_what_is_impossible_is_left_out_of_products(self):
        """P(row | group) of many columns is the product of the shares in the leaves."""
        rng = np.random.default_rng(3)
        first = rng.integers(12, size=2000)
        codes = [(first + rng.integers(2, size=2000)) % 12 for _ in range(6)]
        model = learn_rows(task(codes, np.zeros(2000, dtype=int)))
        rows, groups = [rng.integers(12, size=3000) for _ in range(6)], np.zeros(3000, dtype=int)
        expected, every = np.ones(3000), np.vstack([*rows, groups])
        for tree, walk in zip(model.trees, model._walks, strict=True):
            expected *= tree.leaves.share(walk(every, False), every[tree.column])
        assert 0 < 4 * np.count_nonzero(expected) < len(expected)
        assert_array_equal(model.probability(rows, groups), expected)

    @given(st.integers(0, 10**6))
    @settings(max_examples=20, deadline=None)
    def test_no_row_says_more_than_the_worst_output(self, seed):
        """P(s | row) is a mixture of the P(s | y): enumerated for tiny alphabets."""
        rng = np.random.default_rng(seed)
        n = 600
        groups = rng.integers(3, size=n)
        codes = [rng.integers(3, size=n), rng.integers(2, size=n) * groups]
        _, p_row = every_row(learn_rows(task(codes, groups)), 3)
        p_sx, channel = rng.dirichlet(np.ones(6)).reshape(2, 3), rng.dirichlet(np.ones(4), 3)
        shown = shown_symbols(channel, p_sx.sum(axis=0), None, None)
        p_sy = p_sx @ channel
        given_row = p_sy @ shown @ p_row
        seen = given_row.sum(axis=0) > 1e-12
        posterior = (given_row / np.maximum(given_row.sum(axis=0), 1e-300))[:, seen]
        limits = p_sy / p_sy.sum(axis=0)
        assert (posterior.max(axis=1) <= limits.max(axis=1) + 1e-9).all()
        assert (posterior.min(axis=1) >= limits.min(axis=1) - 1e-9).all()

    def test_order_of_rows_does_not_matter(self, rows):
        rng = np.random.default_rng(0)
        groups = rng.integers(4, size=len(rows))
        names = ["school", "level", "town", "age", "owner"]
        whole = task([rows[name] for name in names], groups)
        order = rng.permutation(len(rows))
        other = RowTask(
            whole.columns, [p[order] for p in whole.positions], groups[order], 4,
            whole.weights, whole.persons,
        )  # fmt: skip
        same, shuffled = learn_rows(whole), learn_rows(other)
        for one, two in zip(same.trees, shuffled.trees, strict=True):
            for key in ("orders", "limits", "left", "right"):
                assert_array_equal(getattr(one, key), getattr(two, key))
            assert_array_equal(one.leaves.codes, two.leaves.codes)
            assert_array_equal(one.leaves.weights, two.leaves.weights)

    def test_leaves_have_enough_people(self, rows):
        groups = np.zeros(len(rows), dtype=int)
        model = learn_rows(task([rows[name] for name in ("level", "age", "owner")], groups))
        for tree in model.trees:
            sums = np.add.reduceat(tree.leaves.weights, tree.leaves.starts[:-1])
            assert (sums[: tree.n_leaves] >= made_up.FEWEST_IN_LEAF).all()
        assert max(tree.n_leaves for tree in model.trees) > 1

    def test_values_that_go_with_others_have_enough_people(self):
        """In a leaf as many as in any leaf, in the whole table five."""
        rng = np.random.default_rng(0)
        n = 1500
        sector, band = rng.integers(20, size=n), rng.integers(3, size=n)
        job = (band + (rng.random(n) < 0.2)) % 3
        is_usual = rng.random(n) < 0.6
        title = [
            f"{a} {b if usual else i}"
            for i, (a, b, usual) in enumerate(zip(sector, job, is_usual, strict=True))
        ]
        model = learn_rows(task([sector, band, title], np.zeros(n, dtype=int)))
        (tree,) = (tree for tree in model.trees if tree.column == 2)
        assert tree.within.columns == (0,)
        people = np.add.reduceat(tree.leaves.weights, tree.leaves.starts[:-1])[tree.n_leaves :]
        in_leaf = tree.within.segments < tree.n_leaves * len(tree.within.combinations)
        assert in_leaf.any()
        assert (people >= np.where(in_leaf, made_up.FEWEST_IN_LEAF, FEWEST_ROWS)).all()

    def test_weights_are_not_people(self):
        """A heavy row is one person: a value with two heavy rows is never drawn."""
        rng = np.random.default_rng(0)
        n = 500
        codes = [np.where(np.arange(n) < 2, 9, rng.integers(3, size=n)), rng.integers(2, size=n)]
        columns, positions = alphabets(codes)
        weights = np.where(np.arange(n) < 2, 1e4, 1.0)
        groups = np.zeros(n, dtype=int)
        model = learn_rows(RowTask(columns, positions, groups, 1, weights, np.ones(n)))
        assert not model.codes_of(0)[list(columns[0].values).index(9)]

    @pytest.mark.parametrize("n", [1, 7, 60])
    def test_few_rows(self, n):
        rng = np.random.default_rng(0)
        model = learn_rows(
            task([rng.integers(9, size=n), rng.integers(3, size=n)], np.zeros(n, int))
        )
        codes, _ = model.draw(np.zeros(5, dtype=int), lambda _: rng.random(5))
        assert codes.shape == (2, 5)


class TestDependencies:
    def test_they_hold_in_every_row(self, rows, fitted):
        released = fitted.transform(rows)
        for left, right in [("school", "level"), ("level", "school"), ("town", "region"),
                            ("town", "country"), ("region", "country")]:  # fmt: skip
            pairs = set(zip(rows[left], rows[right], strict=True))
            assert set(zip(released[left], released[right], strict=True)) <= pairs

    def test_the_old_way_contradicts_them(self, rows):
        apart = quiet(funnel(TreeCells(max_cells=3), made_up="column_by_column"), rows)
        released = apart.transform(rows)
        pairs = set(zip(rows["town"], rows["region"], strict=True))
        assert any(
            pair not in pairs for pair in zip(released["town"], released["region"], strict=True)
        )

    def test_a_left_side_of_few_people_is_not_shown(self, rows):
        few = rows.assign(town=np.where(np.arange(len(rows)) < 4, "hamlet", rows["town"]),
                          region=np.where(np.arange(len(rows)) < 4, "valley", rows["region"]))  # fmt: skip
        made = quiet(funnel(), few)
        released = pd.concat([made.transform(few) for _ in range(5)])
        assert not released["town"].eq("hamlet").any()
        assert not released["region"].eq("valley").any()

    def test_what_follows_from_a_column_of_rare_values(self):
        """A title is nearly unique, so it is chosen among those that agree with the sector."""
        rng = np.random.default_rng(1)
        n = 2000
        title = np.where(
            rng.random(n) < 0.3, rng.integers(40, size=n), 100 + rng.integers(1500, size=n)
        )
        table = pd.DataFrame({
            "sex": rng.choice(["f", "m"], n), "title": [f"t{i}" for i in title],
            "sector": [f"s{i % 4}" for i in title], "age": rng.integers(18, 80, n),
        })  # fmt: skip
        made = quiet(funnel(), table)
        released = made.transform(table)
        named = released[released["title"].notna()]
        assert (
            named["sector"].str[1:].astype(int) == named["title"].str[1:].astype(int) % 4
        ).all()
        shares = [x["sector"].value_counts(normalize=True).sort_index() for x in (table, released)]
        assert (shares[0] - shares[1]).abs().max() < 0.06

    @pytest.mark.parametrize("gaps", ["town", "region"])
    def test_missing_values_on_some_rows(self, rows, gaps):
        """A town still has one region, whichever of both is sometimes missing."""
        some = np.random.default_rng(0).random(len(rows)) < 0.2
        table = rows.assign(**{gaps: rows[gaps].where(~some)})
        released = quiet(funnel(), table).transform(table)
        assert released[gaps].isna().mean() == pytest.approx(0.2, abs=0.04)
        both = released[["town", "region"]].dropna()
        region_of = dict(zip(rows["town"], rows["region"], strict=True))
        assert (both["town"].map(region_of) == both["region"]).all()

    def test_numbers_that_would_get_bins(self, rows):
        """A postcode has one city, and a year of birth one age, though both have many values."""
        rng = np.random.default_rng(0)
        code = 10_000 + 3 * rng.integers(320, size=len(rows))
        born = rng.integers(1930, 2010, len(rows))
        table = rows[["sex", "owner"]].assign(
            code=code, city=[f"city {i % 7}" for i in code], born=born, age=2020 - born
        )
        made = quiet(funnel(), table)
        assert not any(column.is_cut for column in fitted_of(made).alphabet.columns)
        released = made.transform(table)
        assert (released["city"] == [f"city {i % 7}" for i in released["code"]]).all()
        assert (released["age"] == 2020 - released["born"]).all()
        assert (released["code"] - released["code"].round(-1)).nunique() > 5

    @given(st.integers(0, 10**6))
    @settings(max_examples=25, deadline=None)
    def test_random_columns(self, seed):
        """Whatever follows in the table follows in every row that may be drawn."""
        rng = np.random.default_rng(seed)
        n, k = int(rng.integers(100, 800)), int(rng.integers(2, 40))
        left = rng.zipf(1.5, n).clip(max=k) - 1
        codes = [left, left % int(rng.integers(2, 5)), left // 3, rng.integers(4, size=n)]
        pair = {c: c % 5 for c in range(k)}
        codes.append(np.array([pair[c] for c in left]))
        if seed % 2:  # no number but a text
            codes = [np.array([f"x{c}" for c in code]) for code in codes]
        if seed % 3 == 0:
            codes[0] = np.where(rng.random(n) < 0.2, None, codes[0].astype(object))
        groups = rng.integers(3, size=n)
        columns, positions = alphabets(codes)
        model = learn_rows(RowTask(columns, positions, groups, 3, np.ones(n), np.ones(n)))
        drawn, _ = model.draw(rng.integers(3, size=2000), lambda _: rng.random(2000))
        _, n_wrong = contradictions(columns, positions, [
            np.where(code < len(c.values), code, -1) for code, c in zip(drawn, columns, strict=True)
        ])  # fmt: skip
        missing = [code == len(c.values) for code, c in zip(drawn, columns, strict=True)]
        assert n_wrong <= np.any(missing, axis=0).sum()
        for column, code in zip(columns, drawn, strict=True):
            assert not np.append(column.is_rare, False)[code].any()


class TestNumbers:
    def test_none_is_copied_from_a_person(self, rows, fitted):
        released = pd.concat([fitted.transform(rows) for _ in range(3)])["income"]
        counts = rows["income"].value_counts()
        of_few = set(counts[counts < 5].index)
        # Cents of incomes: chance agreement is rare, copying would be the rule.
        assert released.isin(of_few).mean() < 0.02
        assert released.round(2).equals(released)
        assert released.between(rows["income"].min(), rows["income"].max()).all()

    def test_types_stay(self, rows, fitted):
        released = fitted.transform(rows)
        assert released.dtypes.equals(rows.drop(columns="sex").dtypes)


class TestTheSameEverywhere:
    @pytest.mark.parametrize("way", releases.MADE_UP)
    def test_a_keyed_release_repeats(self, rows, way):
        made = quiet(funnel(made_up=way), rows)
        loaded = PrivacyFunnelTransformer.from_json(made.to_json())
        keyed = {"record_ids": np.arange(len(rows)), "secret_key": KEY}
        first = made.transform(rows, **keyed)
        pd.testing.assert_frame_equal(first, loaded.transform(rows, **keyed))
        pd.testing.assert_frame_equal(
            first, pickle.loads(pickle.dumps(made)).transform(rows, **keyed)
        )
        order = np.random.default_rng(0).permutation(len(rows))
        other = quiet(funnel(made_up=way), rows.iloc[order])
        again = other.transform(rows.iloc[order], record_ids=order, secret_key=KEY)
        pd.testing.assert_frame_equal(first, again.loc[first.index])
        of_polars = loaded.transform(pl.from_pandas(rows), **keyed).to_pandas()
        assert of_polars["town"].tolist() == first["town"].tolist()
        assert of_polars["income"].tolist() == first["income"].tolist()

    def test_batches(self, rows, fitted):
        batched = funnel()
        for start in range(0, len(rows), 700):
            batched = batched.partial_fit(rows.iloc[start : start + 700])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            keyed = {"record_ids": np.arange(len(rows)), "secret_key": KEY}
            here, there = (each.transform(rows, **keyed) for each in (fitted, batched))
        pd.testing.assert_frame_equal(here, there)

    def test_lanes_are_apart(self, fitted, with_target):
        """No draw of the rows shares its words with the draw of Y."""
        for each in (fitted, with_target):
            lanes = release_by(each).lanes
            assert len(set(lanes)) == len(lanes)
        one_model = release_by(PrivacyFunnelTransformer.from_json(fitted.to_json()).set_params(
            made_up="for_one_model"))  # fmt: skip
        assert len(one_model.lanes) > len(release_by(fitted).lanes)

    @pytest.mark.parametrize("way", ["for_any_use", "for_one_model"])
    def test_every_draw_has_a_lane_of_its_own(self, with_target, way):
        """What is shown follows from the output and words that no other draw uses."""
        release = replace(release_by(with_target), made_up=way)
        asked = []

        class Noted(RowNoise):
            def words(self, lane, start, stop):
                asked.append(lane)
                return super().words(lane, start, stop)

        outputs = np.arange(500) % release.channel.shape[1]
        release._decoded(outputs, Noted(NoiseKey(KEY), range(500)))
        assert len(set(asked)) == len(asked)
        assert set(asked) <= set(release.lanes) - {OUTPUT_LANE, IDENTITY_LANE}
        n_columns = len(release.alphabet.made_up)
        assert SHOWN_LANE in asked
        assert (
            len(asked) > 3 * n_columns if way == "for_one_model" else len(asked) <= 1 + n_columns
        )

    def test_a_saved_file_has_no_row(self, rows, fitted):
        text = json.loads(fitted.to_json())
        assert {"orders", "trees", "derived"} == text["row_model"].keys()

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (("trees", 0, "questions", 0, 0), 10**6),
            (("trees", 0, "starts", 0), 1),
            (("trees", 0, "weights", 0), 0),
            (("trees", 0, "codes", 0), -1),
            (("trees", 0, "column"), 99),
            (("orders", 0, 0), 99),
            (("derived",), []),
            (("trees",), []),
        ],
    )
    def test_an_edited_file_is_refused(self, fitted, path, value):
        content = json.loads(fitted.to_json())
        place = content["row_model"]
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        with pytest.raises(ValueError, match="malformed"):
            PrivacyFunnelTransformer.from_json(sealed(content))

    def test_a_file_that_shows_rare_values_is_refused(self, fitted):
        content = json.loads(fitted.to_json())
        column = content["columns"][3]  # follows from the town
        column["is_rare"] = [True] * len(column["is_rare"])
        with pytest.raises(ValueError, match="at least five people"):
            PrivacyFunnelTransformer.from_json(sealed(content))

    def test_a_small_table_can_be_saved(self):
        """Even if nothing is asked about columns, and no values go with each other."""
        rng = np.random.default_rng(14)
        n, code = 60, rng.integers(51, size=60)
        table = pd.DataFrame({
            "sex": rng.integers(2, size=n), "a": [f"a{c}" for c in code],
            "b": [f"b{c % 9}" for c in code], "c": [f"c{c % 7}" for c in code],
            "d": rng.integers(3, size=n),
        })  # fmt: skip
        cells = TreeCells(max_cells=3)
        made = PrivacyFunnelTransformer(0.3, sensitive="sex", alphabet=cells)
        made = quiet(made, table)
        model = fitted_of(made).alphabet.row_model
        assert not model.orders
        assert any(tree.within and not len(tree.within.segments) for tree in model.trees)
        loaded = PrivacyFunnelTransformer.from_json(made.to_json())
        keyed = {"record_ids": np.arange(n), "secret_key": KEY}
        released = [each.transform(table, **keyed) for each in (made, loaded)]
        pd.testing.assert_frame_equal(*released)

    def test_shown_cells_of_an_edited_file(self, fitted):
        content = json.loads(fitted.to_json())
        content["shown_given_y"][0][0] += 0.5
        with pytest.raises(ValueError, match="shown_given_y"):
            PrivacyFunnelTransformer.from_json(sealed(content))


def drawn(rng, rows, *_):
    return rng.random(len(rows))


class TestForOneModel:
    def test_rows_are_in_the_cell_that_they_show(self, with_target):
        """Retries compare with the shown cell: many more rows are in it, and none is checked
        against the cell of the true row."""
        alphabet = fitted_of(with_target).alphabet
        names = with_target.get_feature_names_out()[:-1]  # without the target
        cells = np.random.default_rng(0).integers(alphabet.n_symbols, size=1500)
        shares = []
        for n in (1, 10):
            draws = partial(drawn, np.random.default_rng(1))
            decoded = alphabet.decode_together(cells, draws, n)[:-1]
            columns = [pd.Series([v[i] for i in index]) for v, index in decoded]
            found, _ = alphabet.encode(columns, list(names))
            shares.append((found == cells).mean())
        assert shares[1] > shares[0] + 0.2

    def test_folds_follow_from_made_up_values(self, rows):
        with_ids = rows.assign(person=np.arange(len(rows)) // 2)
        made = funnel(
            ScoreCells(max_cells=8, person="person"), utility="target", made_up="for_one_model"
        )
        made = quiet(made, with_ids.drop(columns="owner"), with_ids["owner"])
        assert len(made.transform(with_ids)) == len(rows)


class TestTarget:
    def test_it_comes_last(self, rows, with_target):
        released = with_target.transform(rows)
        assert released.columns[-1] == "owner"
        assert released["owner"].dtype == bool
        assert released["owner"].mean() == pytest.approx(rows["owner"].mean(), abs=0.05)
        assert list(with_target.get_feature_names_out()) == list(released.columns)

    @pytest.mark.parametrize("output", ["symbol", "posterior"])
    def test_symbols_draw_it_from_their_posterior(self, rows, with_target, output):
        other = PrivacyFunnelTransformer.from_json(with_target.to_json()).set_params(output=output)
        released = other.transform(pd.concat([rows] * 3, ignore_index=True))
        expected = fitted_of(other).target.given_y
        if output == "symbol":
            given_y = released.groupby("cell", observed=True)["owner"].agg(["mean", "size"])
            order = [list(fitted_of(other).mechanism.y_labels).index(y) for y in given_y.index]
            off = np.abs(given_y["mean"] - expected[order, 1])
            assert (off < 5 * np.sqrt(0.25 / given_y["size"])).all()
        assert released.columns[-1] == "owner"

    def test_a_release_with_it_keeps_the_budget(self, rows, with_target):
        """An attacker who sees rows and target learns no more than Y allows."""
        fresh = schools(40_000, seed=9)
        released = with_target.transform(fresh)
        s = fresh["sex"].eq("m")
        posterior = with_target.mechanism_.secrets[None].sensitive_posterior[:, 1]
        by_target = s.groupby(released["owner"]).agg(["mean", "size"])
        slack = 5 * np.sqrt(0.25 / by_target["size"]) + 0.03
        assert (by_target["mean"] <= posterior.max() + slack).all()
        assert (by_target["mean"] >= posterior.min() - slack).all()

    def test_values(self, rows):
        made = PrivacyFunnelTransformer(0.05, sensitive="sex", columns=["level"], utility="target",
                                        release_target=True)  # fmt: skip
        released = quiet(made, rows, rows["owner"]).transform(rows)
        assert list(released) == ["level", "owner"]

    def test_rare_values(self, rows):
        target = rows["owner"].map({True: "yes", False: "no"})
        target[:4] = "perhaps"
        made = PrivacyFunnelTransformer(0.5, sensitive="sex", columns=["level"], utility="target",
                                        release_target=True)  # fmt: skip
        made = quiet(made, rows, target)
        assert (fitted_of(made).target.given_y > 0).sum(axis=0).all()
        assert not (fitted_of(made).target.common[:, 1] > 0).any()
        assert set(made.transform(rows)["owner"]) == {"no", "yes"}

    def test_it_needs_a_target(self, rows):
        with pytest.raises(ValueError, match="release_target"):
            PrivacyFunnelTransformer(0.05, sensitive="sex", release_target=True).fit(rows)

    def test_it_is_said_where_it_is_left_out(self, rows, with_target):
        made = PrivacyFunnelTransformer(0.05, sensitive="sex", columns=["level"], utility="target")
        made = quiet(made, rows, rows["owner"])
        assert "owner" not in made.transform(rows)
        assert "release_target" in made.summary_.target_sentence()
        assert not with_target.summary_.target_sentence()


class TestPools:
    def test_columns_of_a_pool_belong_together(self):
        rng = np.random.default_rng(2)
        n = 6000
        a = rng.integers(60, size=n)
        table = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "a": [f"a{i}" for i in a],
                              "b": [f"b{(i + (rng.random() < 0.1)) % 60}" for i in a]})  # fmt: skip
        made = {}
        for way in ("for_any_use", "column_by_column"):
            each = PrivacyFunnelTransformer(0.05, sensitive="sex", made_up=way, alphabet="values",
                                            max_outputs=None, min_frequency=0.016)  # fmt: skip
            made[way] = quiet(each, table).transform(table)
        agree = {k: (x["a"].str[1:] == x["b"].str[1:]).mean() for k, x in made.items()}
        assert agree["for_any_use"] >= agree["column_by_column"]

    def test_no_row_of_a_person_is_copied(self):
        """In a pool of unique rows, every column follows from the others by chance."""
        rng = np.random.default_rng(1)
        odd = pd.DataFrame({"a": rng.permutation(999)[:200], "b": rng.integers(1, 9, 200),
                            "c": rng.integers(1, 9, 200)})  # fmt: skip
        usual = pd.DataFrame({"a": np.repeat(np.arange(999), 6), "b": 0, "c": 0})
        table = "x" + pd.concat([usual, odd], ignore_index=True).astype(str)
        table["sex"] = rng.choice(["f", "m"], len(table))
        made = quiet(PrivacyFunnelTransformer(0.1, sensitive="sex", alphabet="values"), table)
        assert fitted_of(made).alphabet.is_pool.sum() == 1
        released = pd.concat([made.transform(table) for _ in range(3)])
        pooled = released[released["b"] != "x0"]
        own = set(table.iloc[-200:, :3].itertuples(index=False, name=None))
        copied = [row in own for row in pooled[["a", "b", "c"]].itertuples(index=False, name=None)]
        assert len(copied) > 300
        assert np.mean(copied) < 0.1

    def test_their_rows_are_not_read_back(self):
        """A rare number is shown as a common one, which may belong to another symbol."""
        x = pd.Series([1] * 40 + [5] * 10 + [2] * 4)  # 1 is the nearest common one to 2
        z = pd.Series(["a", "b"] * 27)
        options = [{"pooling": (None, 2)}, {}]
        alphabet, _ = learn_alphabet([x, z], ["x", "z"], None, options)
        pools = np.flatnonzero(alphabet.is_pool)
        shown = alphabet.decode_together(
            np.repeat(pools, 50), partial(drawn, np.random.default_rng(0)), 1
        )
        columns = [pd.Series([values[i] for i in index]) for values, index in shown]
        assert (alphabet.encode(columns, ["x", "z"])[0] != np.repeat(pools, 50)).any()
        assert not alphabet.can_be_read(np.arange(alphabet.n_symbols))
        assert alphabet.can_be_read(np.flatnonzero(~alphabet.is_pool))

    def test_one_column(self, rows):
        made = PrivacyFunnelTransformer(0.05, sensitive="sex", columns="town", max_categories=4)
        assert list(quiet(made, rows).transform(rows)) == ["town"]


class TestNobodyIsFound:
    def test_members_are_found_no_better_than_others(self):
        table = schools(6000, seed=4)
        members, others = table[:3000], table[3000:]
        released = quiet(funnel(), members).transform(members)
        known = ["school", "town", "age", "owner"]
        found = linkage(released, members, others, known=known)
        assert found["high"].max() < 0.05

    def test_rows_of_donors_are(self):
        table = schools(2000, seed=4)
        found = linkage(table[:1000].drop(columns="sex"), table[:1000], table[1000:])
        assert found["low"].min() > 0.5

    def test_mistakes(self, rows):
        released = rows.drop(columns="sex")
        with pytest.raises(ValueError, match="lacks the released column"):
            linkage(released, rows[["age"]], rows)
        with pytest.raises(ValueError, match="known"):
            linkage(released, rows, rows, known=["nothing"])
