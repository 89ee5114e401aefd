"""Made-up rows: columns drawn one after another, each from the leaf of a tree.

A row of a group (a cell, or a pool of rare combinations) is made up column by column. The columns
that are already drawn, and the group, lead to a leaf of a small tree; the next column is drawn
from the values that people in this leaf have. All counts are sums of whole numbers, and ties are
broken by position, so the trees depend neither on the processor nor on the order of rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from .._typing import BoolArray, CountArray, FloatArray, IntArray
from ..codes import UNKNOWN, chunks
from .columns import FEWEST_ROWS, ColumnAlphabet
from .dependencies import COVERED, CodedColumn, dependency
from .values import as_numbers

# Every leaf has at least this many people. (With 25, someone who knows seven columns of a person
# of `fit` guesses the rest better than that of others by more than sampling explains.)
FEWEST_IN_LEAF = 40

# Splits compare at most this many ranks of a column, classes of a value, and orders of a source.
_MOST_RANKS, _MOST_CLASSES, _MOST_ORDERS = 48, 8, 4

# A question is asked only if it explains more than chance would: its gain, in units of the
# variance within the node, is then at least this. (Chance finds some among hundreds of questions.)
_LEAST_GAIN = 3.0

_DEEPEST = 24

# Of more features than this, a tree asks about those with the largest gains as a first question;
# of still more, about fewer of them, so that wide tables take no longer for each column.
_MOST_FEATURES, _FEWEST_FEATURES = 40, 12

# Features are compared together while their tables have at most so many entries: the processor's
# cache holds them.
_MOST_ENTRIES = 1 << 15

# Beyond this many combinations of columns, codes cannot be packed into one integer.
_MOST_PACKED = 2.0**60

# Rows are drawn in parts of this size, which stay in the cache.
_PART = 1 << 14


@dataclass(frozen=True, eq=False)
class Leaves:
    """Distributions of the codes of a column.

    starts : where each distribution begins in the other two, and their length; codes : in
    ascending order within a distribution; weights : of the codes.
    """

    starts: IntArray
    codes: IntArray
    weights: FloatArray

    @cached_property
    def _ends(self) -> FloatArray:
        """The cumulative share of each code, plus the number of its distribution."""
        sizes = np.diff(self.starts)
        numbers = np.repeat(np.arange(len(sizes)), sizes)
        sums = np.cumsum(self.weights)
        before = np.append(0.0, sums)[self.starts[:-1]]
        totals = sums[self.starts[1:] - 1] - before
        return numbers + np.minimum((sums - before[numbers]) / totals[numbers], 1.0)

    def draw(self, number: IntArray, uniform: FloatArray) -> tuple[IntArray, FloatArray]:
        """Return a code for each row, and a number from [0, 1) that is independent of it."""
        ends, wanted = self._ends, number + uniform
        at = np.searchsorted(ends, wanted, side="right")
        at = np.clip(at, self.starts[number], self.starts[number + 1] - 1)
        below = np.where(at == self.starts[number], number, ends[at - 1])
        left = (wanted - below) / np.maximum(ends[at] - below, np.finfo(float).tiny)
        return self.codes[at], left.clip(0.0, np.nextafter(1.0, 0.0))

    def share(self, number: IntArray, code: IntArray) -> FloatArray:
        """Return the probability of a code in a distribution, row by row."""
        n_codes = int(max(self.codes.max(), code.max(initial=0))) + 1
        of_entry = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
        entries, wanted = of_entry * n_codes + self.codes, number * n_codes + code
        at = np.searchsorted(entries, wanted).clip(max=len(entries) - 1)
        totals = np.add.reduceat(self.weights, self.starts[:-1])
        return np.where(entries[at] == wanted, self.weights[at] / totals[number], 0.0)


@dataclass(frozen=True, eq=False)
class Within:
    """Distributions of a column among the values that go with those of other columns.

    columns : the others; combinations : of their codes, packed; segments : packed (leaf,
    combination) with a distribution, in order, which come after those of the leaves.
    """

    columns: tuple[int, ...]
    combinations: IntArray
    segments: IntArray

    def number(self, leaf: IntArray, codes: Any, sizes: Sequence[int], n_leaves: int) -> IntArray:
        """Return the distribution of each row, -1 for none."""
        found = np.full(len(leaf), UNKNOWN)
        if not len(self.segments):
            return found
        known = _packed([codes[c] for c in self.columns], [sizes[c] for c in self.columns])
        n_k = len(self.combinations)
        k = np.searchsorted(self.combinations, known).clip(max=n_k - 1)
        for number in (np.full(len(leaf), n_leaves), leaf):  # the whole table, then the leaf
            key = number * n_k + k
            at = np.searchsorted(self.segments, key).clip(max=len(self.segments) - 1)
            found = np.where(self.segments[at] == key, n_leaves + at, found)
        return np.where(self.combinations[k] == known, found, UNKNOWN)


def _packed(codes: Sequence[Any], sizes: Sequence[int]) -> IntArray:
    packed = np.zeros(len(codes[0]), dtype=np.int64)
    for code, size in zip(codes, sizes, strict=True):
        packed = packed * size + code
    return packed


@dataclass(frozen=True, eq=False)
class ColumnTree:
    """How one column is drawn.

    column : its number; orders, limits, left, right : the questions. A row goes left if its rank
    in the order is at most the limit; an order of -1 marks a leaf, whose distribution is `left`.
    within : if the column must go with others that are drawn before it.
    """

    column: int
    orders: IntArray
    limits: IntArray
    left: IntArray
    right: IntArray
    leaves: Leaves
    within: Within | None = None

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return int(np.count_nonzero(self.orders == UNKNOWN))


@dataclass(frozen=True, eq=False)
class RowModel:
    """How rows of a group are made up.

    sizes : the number of codes of each column, and the number of groups; orders : (source, rank
    of each of its codes), where the source after the last column is the group; trees : in the
    order in which columns are drawn; derived : (column, source, code for each code of the source);
    by_group : whether the first nodes of a tree are the groups, else all rows start at the first.
    """

    sizes: tuple[int, ...]
    orders: tuple[tuple[int, IntArray], ...]
    trees: tuple[ColumnTree, ...]
    derived: tuple[tuple[int, int, IntArray], ...] = ()
    by_group: bool = False

    def __getstate__(self) -> dict[str, Any]:
        # Without cached properties, which are computed again where they are used.
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @property
    def n_columns(self) -> int:
        """The number of columns."""
        return len(self.sizes) - 1

    def codes_of(self, column: int) -> BoolArray:
        """Return whether each code of a column may be drawn."""
        found = np.zeros(self.sizes[column], dtype=bool)
        for tree in self.trees:
            if tree.column == column:
                found[tree.leaves.codes] = True
                found[-1] |= tree.within is not None
        for derived, source, of_source in self.derived:
            if derived == column:
                found[of_source[self.codes_of(source)]] = True
        return found

    @property
    def fixed(self) -> set[int]:
        """The columns that follow from another one: each code is shown as one value."""
        limiting = (tree.within.columns for tree in self.trees if tree.within is not None)
        return {column for column, _, _ in self.derived}.union(*limiting)

    def draw(self, groups: IntArray, draws: Callable[[int], FloatArray]) -> tuple[Any, Any]:
        """Return codes, and numbers from [0, 1) independent of them, both (n_columns, n).

        draws : a number from [0, 1) for each row, by column.
        """
        n = len(groups)
        codes = np.zeros((self.n_columns + 1, n), dtype=np.int32)
        codes[-1] = groups
        left = np.zeros((self.n_columns, n))
        uniform = {tree.column: draws(tree.column) for tree in self.trees}
        for rows in chunks(n, _PART):
            part = np.ascontiguousarray(codes[:, rows])
            for tree, walk in zip(self.trees, self._walks, strict=True):
                numbers = self._numbers(tree, walk, part)
                drawn = tree.leaves.draw(np.maximum(numbers, 0), uniform[tree.column][rows])
                # No common value fits: a missing one.
                part[tree.column] = np.where(numbers < 0, self.sizes[tree.column] - 1, drawn[0])
                left[tree.column, rows] = drawn[1]
                for column, source, of_source in self.derived:
                    if source == tree.column:
                        part[column] = of_source[part[source]]
            codes[:, rows] = part
        return codes[:-1], left

    def probability(self, codes: Sequence[IntArray], groups: IntArray) -> FloatArray:
        """Return the probability that a row of a group is made up with just these codes.

        codes : of the first columns; those that are drawn after them do not matter.
        """
        n_others = self.n_columns - len(codes)
        others = np.zeros((n_others, len(groups)), dtype=np.int32)
        every = np.vstack([*codes, *others, groups], dtype=np.int32)
        shares = np.zeros(len(groups))
        found, rows = np.ones(len(groups)), np.arange(len(groups))
        for tree, walk in zip(self.trees, self._walks, strict=True):
            if tree.column >= len(codes):
                continue
            if 2 * np.count_nonzero(found) < len(found):  # what is impossible stays so
                possible = np.flatnonzero(found)
                found, rows = found[possible], rows[possible]
                every = every.take(possible, axis=1)
            number = self._numbers(tree, walk, every)
            share = tree.leaves.share(np.maximum(number, 0), every[tree.column])
            found *= np.where(number < 0, 0.0, share)
        for column, source, of_source in self.derived:
            if column >= len(codes):
                continue
            found *= of_source[every[source]] == every[column]
        shares[rows] = found
        return shares

    def _numbers(self, tree: ColumnTree, walk: _Walk, codes: Any) -> IntArray:
        """Return the distribution that a column of each row is drawn from, -1 for none."""
        leaf = walk(codes, self.by_group)
        if tree.within is None:
            return leaf
        return tree.within.number(leaf, codes, self.sizes, tree.n_leaves)

    @cached_property
    def _walks(self) -> list[_Walk]:
        """The questions of each tree, for fast look-ups."""
        return [_Walk.of(tree, self.orders, self.sizes) for tree in self.trees]


@dataclass(frozen=True, eq=False)
class _Walk:
    """A tree whose questions are tables; leaves lead to themselves.

    sources, offsets : of each node: what it asks about, and where its answers begin in `answers`;
    next : the next node for both answers; leaf : the leaf of a node; depth : of the tree.
    """

    sources: IntArray
    offsets: IntArray
    answers: IntArray
    next: IntArray
    leaf: IntArray
    depth: int

    @classmethod
    def of(cls, tree: ColumnTree, orders: Any, sizes: Sequence[int]) -> _Walk:
        is_leaf = tree.orders == UNKNOWN
        answers, offsets = [np.zeros(max(sizes), dtype=np.int8)], np.zeros(len(is_leaf), dtype=int)
        sources, depth = np.zeros(len(is_leaf), dtype=int), np.zeros(len(is_leaf), dtype=int)
        n = max(sizes)
        for node in np.flatnonzero(~is_leaf):
            source, ranks = orders[tree.orders[node]]
            sources[node], offsets[node] = source, n
            answers.append((ranks > tree.limits[node]).astype(np.int8))
            n += len(ranks)
            depth[[tree.left[node], tree.right[node]]] = depth[node] + 1
        here = np.arange(len(is_leaf))
        following = np.column_stack(
            [np.where(is_leaf, here, tree.left), np.where(is_leaf, here, tree.right)]
        )
        found = sources, offsets, np.concatenate(answers), following.ravel()
        return cls(*found, tree.left, int(depth.max()))

    def __call__(self, codes: IntArray, by_group: bool) -> IntArray:
        """Return the leaf of each row; codes : (n_sources, n), groups last."""
        n = codes.shape[1]
        rows, flat = np.arange(n), codes.reshape(-1)
        at = codes[-1].astype(np.intp) if by_group else np.zeros(n, dtype=np.intp)
        for _ in range(self.depth):
            value = flat.take(self.sources.take(at) * n + rows)
            answer = self.answers.take(self.offsets.take(at) + value)
            at = self.next.take(2 * at + answer)
        return self.leaf.take(at)


# Learning.


@dataclass(frozen=True, eq=False)
class RowTask:
    """Rows that a model is learned from.

    columns : their alphabets; positions : for each column, the position of each row's value;
    groups : of the rows, -1 for rows that only say what follows from what; n_groups : how many
    there are; weights, persons : of the rows; a row stands for at least so many people; n_last :
    how many columns at the end are drawn after all others, which never follow from them; by_group
    : whether values of a group are drawn for this group only, however few people are in it.
    """

    columns: tuple[ColumnAlphabet, ...]
    positions: Sequence[IntArray]
    groups: IntArray
    n_groups: int
    weights: FloatArray
    persons: FloatArray
    by_group: bool = False
    n_last: int = 0


def learn_rows(task: RowTask) -> RowModel:
    """Return how rows like these are made up.

    Values that fewer than five people have are never drawn: of a number the nearest common one
    stands for it, and a rare category is left out.
    """
    stand_ins = [_stand_ins(column) for column in task.columns]
    codes = [table[of] for table, of in zip(stand_ins, task.positions, strict=True)]
    sizes = (*(len(column.values) + 1 for column in task.columns), task.n_groups)
    order, derived, within = _plan(task, codes)
    growing = _Growing(task, codes, sizes)
    known: list[int] = []
    trees = []
    for column in order:
        trees.append(growing.tree(column, known, within.get(column, ())))
        known += [column, *(c for c, source, _ in derived if source == column)]
    model = tuple(growing.orders), tuple(trees), tuple(derived)
    return RowModel(sizes, *model, task.by_group)


def _stand_ins(column: ColumnAlphabet) -> IntArray:
    """Return the code that is drawn for each value: its own, unless it is rare.

    The code after the last one is that of values that are left out.
    """
    n = len(column.values)
    common = ~column.is_rare & (column.symbols != UNKNOWN)
    table = np.where(common, np.arange(n), n)
    known = np.arange(n - column.has_missing)
    shown = known[common[known]]
    if column.is_measured and len(shown):
        places = line_of(column)
        rare = known[~common[known]]
        order = np.argsort(places[shown], kind="stable")
        line = places[shown][order]
        middles = line[1:] / 2 + line[:-1] / 2  # the sum of two could be infinite
        table[rare] = shown[order][np.searchsorted(middles, places[rare])]
    return table


def line_of(column: ColumnAlphabet) -> FloatArray:
    """Return the values of a column of numbers or times, or its bins, as places on a line."""
    n = len(column.values) - column.has_missing
    if column.is_cut:
        return np.arange(n, dtype=float)
    return as_numbers(pd.Series(list(column.values[:n]), dtype=object), "X")


def _plan(
    task: RowTask, codes: Sequence[IntArray]
) -> tuple[list[int], list[tuple[int, int, IntArray]], dict[int, tuple[int, ...]]]:
    """Return the columns in the order of drawing, those that follow, and those that limit others.

    A column with fewer values is drawn earlier. What follows from a column is looked up, if that
    column's common values are nearly all rows. Otherwise the later of both columns is drawn among
    the values that go with the earlier one.
    """
    every, n_first = range(len(task.columns)), len(task.columns) - task.n_last
    coded = [CodedColumn.of(*pair) for pair in zip(task.columns, task.positions, strict=True)]
    n_values = [column.n for column in coded]
    follows = {
        (a, b): found
        for a, b in itertools.permutations(every, 2)
        if (found := dependency(coded[a], coded[b], task.persons)) is not None
    }
    source = _sources(task, codes, n_values, [p for p in follows if follows[p].is_whole])
    in_order = sorted(every, key=lambda c: (c >= n_first, n_values[c], c))
    order = [c for c in in_order if c not in source]
    ready: list[int] = []
    within = {}
    for a in order:
        if limiting := [b for b in ready if (a, b) in follows or (b, a) in follows]:
            sizes = np.cumprod([n_values[b] + 1.0 for b in limiting])
            within[a] = tuple(limiting[: np.count_nonzero(sizes < _MOST_PACKED)])
        ready += [a, *(b for b, of in source.items() if of == a)]
    derived = [(b, a, _as_codes(follows[a, b].image, n_values[b])) for b, a in source.items()]
    return order, derived, within


def _sources(
    task: RowTask,
    codes: Sequence[IntArray],
    n_values: Sequence[int],
    follows: Sequence[tuple[int, int]],
) -> dict[int, int]:
    """Return the columns that are looked up, and what each of them follows from."""
    persons = np.where(task.groups != UNKNOWN, task.persons, 0.0)
    first = range(len(n_values) - task.n_last)
    covered = [
        c for c in first if persons[codes[c] < n_values[c]].sum() >= COVERED * persons.sum()
    ]
    source: dict[int, int] = {}
    for a in sorted(covered, key=lambda c: (-n_values[c], not task.columns[c].is_measured, c)):
        if a not in source:
            taken = {*source, *source.values()}
            source |= {b: a for left, b in follows if left == a and b not in taken}
    return source


def _as_codes(image: IntArray, n_values: int) -> IntArray:
    """Return a look-up table for all codes, with that of values that are left out."""
    return np.append(np.where(image == UNKNOWN, n_values, image), n_values)


class _Growing:
    """Trees of several columns of the same rows; `orders` are shared."""

    def __init__(self, task: RowTask, codes: Sequence[IntArray], sizes: tuple[int, ...]) -> None:
        self.orders: list[tuple[int, IntArray]] = []
        self._numbers: dict[tuple[int, bytes], int] = {}
        self._ranks_of, self._order_of = cache(self._measured_ranks), cache(self._in_order)
        self._task, self._sizes = task, sizes
        self._codes = [*codes, task.groups]
        self._unit = _unit(task.weights, max(sizes))

    def tree(self, column: int, known: Sequence[int], within: tuple[int, ...]) -> ColumnTree:
        """Return the tree of a column; known : the columns that are drawn before it."""
        is_drawn = self._codes[column] < self._sizes[column] - 1
        drawn = np.flatnonzero(is_drawn & (self._task.groups != UNKNOWN))
        questions, leaf = self._questions(column, known, drawn)
        n_leaves = int(np.count_nonzero(questions[0] == UNKNOWN))
        numbers, rows = leaf, drawn
        limited = None
        if within:
            limited, number, row = self._limited(column, within, leaf, drawn, n_leaves)
            numbers, rows = np.append(leaf, number), np.append(drawn, row)
        bare = np.setdiff1d(np.arange(n_leaves), numbers)  # without a common value
        code = np.append(self._codes[column][rows], np.repeat(self._instead(column), len(bare)))
        weight = np.append(self._task.weights[rows], np.ones(len(bare)))
        leaves = _leaves(np.append(numbers, bare), code, weight, self._sizes[column])
        return ColumnTree(column, *questions, leaves, limited)

    def _questions(
        self, column: int, known: Sequence[int], drawn: IntArray
    ) -> tuple[tuple[IntArray, IntArray, IntArray, IntArray], IntArray]:
        """Return the questions of a tree, as in `ColumnTree`, and the leaf of each row."""
        task = self._task
        n_roots = task.n_groups if task.by_group else 1
        roots = task.groups[drawn] if task.by_group else np.zeros(len(drawn), int)
        target = self._target(column, drawn)
        found = list(self._orders(known, drawn, target)) if len(drawn) else []
        found = self._promising(found, drawn, target, roots, n_roots)
        features = np.empty((len(found), len(drawn)), dtype=int)
        for feature, order in zip(features, found, strict=True):
            feature[:] = self._ranks_in(order, drawn)
        sizes = _sizes(found)
        asked, limits, left, right, leaf = _grow(features, sizes, target, roots, n_roots)
        orders = asked.copy()
        for feature in np.unique(asked[asked != UNKNOWN]):
            orders[asked == feature] = self._number(found[feature])
        return (orders, limits, left, right), leaf

    def _limited(
        self,
        column: int,
        within: tuple[int, ...],
        leaf: IntArray,
        drawn: IntArray,
        n_leaves: int,
    ) -> tuple[Within, IntArray, IntArray]:
        """Return `Within`, and the (distribution, row) pairs that it is made of.

        Distributions are of enough people in a leaf, which are preferred, or in the whole table.
        Rows with a number that another one stands for go with nothing.
        """
        of_leaf = np.full(len(self._task.groups), UNKNOWN)
        of_leaf[drawn] = leaf
        goes = self._codes[column] < self._sizes[column] - 1
        for other in (column, *within):
            code, position = self._codes[other], self._task.positions[other]
            goes &= (code == position) | (code == self._sizes[other] - 1)
        rows = np.flatnonzero(goes)
        packed = _packed(
            [self._codes[other][rows] for other in within], [self._sizes[c] for c in within]
        )
        combinations, k = np.unique(packed, return_inverse=True)
        n_k = len(combinations)
        inside = np.flatnonzero(of_leaf[rows] != UNKNOWN)
        segment = np.append(of_leaf[rows[inside]] * n_k + k[inside], n_leaves * n_k + k)
        rows = np.append(rows[inside], rows)
        people = np.bincount(segment, self._task.persons[rows], (n_leaves + 1) * n_k)
        fewest = np.repeat([FEWEST_IN_LEAF, FEWEST_ROWS], [n_leaves * n_k, n_k])
        is_kept = people >= fewest
        number = np.cumsum(is_kept) - 1 + n_leaves
        kept = np.flatnonzero(is_kept[segment])
        found = Within(within, combinations, np.flatnonzero(is_kept))
        return found, number[segment[kept]], rows[kept]

    def _instead(self, column: int) -> int:
        """Return the commonest value; if that is rare too, a missing one."""
        alphabet = self._task.columns[column]
        commonest = int(np.argmax(alphabet.weights))
        return len(alphabet.values) if alphabet.is_rare[commonest] else commonest

    def _target(self, column: int, rows: IntArray) -> _Target:
        """Return what a tree predicts of some rows."""
        codes, weights = _at(self._codes[column], rows), _at(self._task.weights, rows)
        persons = None
        if not np.array_equal(self._task.persons, self._task.weights):
            persons = _at(self._task.persons, rows)
        if self._task.columns[column].is_measured:
            places = np.argsort(self._order_of(column))  # exact in sums, unlike values
            return _Target(weights, persons, None, places[codes].astype(float), 1, self._unit)
        totals = np.bincount(codes, weights, self._sizes[column])
        ranks = np.empty(len(totals), dtype=int)
        ranks[np.argsort(-totals, kind="stable")] = np.arange(len(totals))
        n_classes = max(1, min(_MOST_CLASSES, int(np.count_nonzero(totals))))
        return _Target(weights, persons, ranks[codes].clip(max=n_classes - 1), None, n_classes)

    def _orders(
        self, known: Sequence[int], rows: IntArray, target: _Target
    ) -> Iterator[tuple[int, IntArray]]:
        """Yield the orders of the columns that are drawn before, and of the group."""
        group = len(self._sizes) - 1
        for source in (*known, group):
            if source != group and self._task.columns[source].is_measured:
                orders = [self._ranks_of(source)]
            else:
                codes = _at(self._codes[source], rows)
                orders = self._by_shares(codes, target, self._sizes[source])
            yield from ((source, ranks) for ranks in orders if ranks.any())

    def _ranks_in(self, order: tuple[int, IntArray], rows: IntArray) -> IntArray:
        """Return the rank of some rows in an order."""
        source, ranks = order
        return ranks.take(_at(self._codes[source], rows))

    def _promising(
        self,
        orders: list[tuple[int, IntArray]],
        rows: IntArray,
        target: _Target,
        roots: IntArray,
        n_roots: int,
    ) -> list[tuple[int, IntArray]]:
        """Return the orders that gain most as a first question, and those of the group itself."""
        if len(orders) <= _MOST_FEATURES:
            return orders
        nodes, sizes = _Nodes.of(target, roots, n_roots), _sizes(orders)
        every, _ = _splits(lambda i: self._ranks_in(orders[i], rows), sizes, target, roots, nodes)
        of_group = [source == len(self._sizes) - 1 for source, _ in orders]
        gains = np.where(of_group, np.inf, every.sum(axis=1))
        most = max(_FEWEST_FEATURES, _MOST_FEATURES**2 // len(orders))
        best = np.argsort(-gains, kind="stable")[:most]
        return [orders[i] for i in sorted(best)]

    def _by_shares(self, codes: IntArray, target: _Target, size: int) -> list[IntArray]:
        """Return orders of categories or groups by what the next column is among them."""
        weight, sums = target.sums(codes, size)
        shares = sums[:_MOST_ORDERS] / np.where(weight > 0, weight, 1.0)
        return list(_ranks(np.argsort(shares, axis=1, kind="stable"), weight))

    def _measured_ranks(self, source: int) -> IntArray:
        """Return the rank of each code of a column of numbers or times."""
        weights = np.bincount(self._codes[source], self._task.weights, self._sizes[source])
        return _ranks(self._order_of(source)[None], weights)[0]

    def _in_order(self, source: int) -> IntArray:
        """Return the codes of a column of numbers or times in order, missing ones last."""
        line = line_of(self._task.columns[source])
        return np.append(
            np.argsort(line, kind="stable"), np.arange(len(line), self._sizes[source])
        )

    def _number(self, order: tuple[int, IntArray]) -> int:
        """Return the position of an order among all that are used."""
        source, ranks = order
        number = self._numbers.setdefault((source, ranks.tobytes()), len(self.orders))
        if number == len(self.orders):
            self.orders.append(order)
        return number


def _at(of_rows: npt.NDArray[Any], rows: IntArray) -> npt.NDArray[Any]:
    """Return the entries of some rows, in order; mostly they are all rows."""
    return of_rows if len(rows) == len(of_rows) else of_rows.take(rows)


def _ranks(orders: IntArray, weights: CountArray) -> IntArray:
    """Return the rank of each code: codes in an order, in at most `_MOST_RANKS` parts.

    orders : one or more, as rows. Parts have about the same weight.
    """
    in_order = weights[orders]
    before = np.cumsum(in_order, axis=1) - in_order
    total = max(float(weights.sum()), np.finfo(float).tiny)
    part = np.floor(before * _MOST_RANKS / total)
    is_new = np.diff(part, axis=1, prepend=part[:, :1]) != 0
    ranks = np.empty(orders.shape, dtype=int)
    np.put_along_axis(ranks, orders, np.cumsum(is_new, axis=1), axis=1)
    return ranks


def _leaves(number: IntArray, code: IntArray, weight: FloatArray, n_codes: int) -> Leaves:
    """Return the distributions of the codes with each number, all of which occur."""
    packed, of_row = np.unique(number * n_codes + code, return_inverse=True)
    weights = np.bincount(of_row, weight)
    starts = np.searchsorted(packed // n_codes, np.arange(int(number.max()) + 2))
    return Leaves(starts, packed % n_codes, weights.astype(float))


def _unit(weights: FloatArray, most: int) -> float:
    """Return a power of two so large that ``unit * number + 1``, summed, holds both sums.

    That of whole weights is the remainder, and that of whole numbers below `most` the quotient:
    one sum takes half the time of two. 0 if they are not whole, or do not fit into a float.
    """
    unit = 2.0 ** np.ceil(np.log2(weights.sum() + 1))
    fits = most * unit**2 <= 2.0**53
    return float(unit) if fits and (weights == np.floor(weights)).all() else 0.0


@dataclass(frozen=True, eq=False)
class _Target:
    """What a tree predicts of each row: a class, or a number.

    weights : of the rows; persons : in each row, None if these are the weights; classes : from 0
    to n_classes - 1, or None; numbers : whole ones, or None; unit : see `_unit`.
    """

    weights: FloatArray
    persons: FloatArray | None
    classes: IntArray | None
    numbers: FloatArray | None
    n_classes: int = 1
    unit: float = 0.0

    def at(self, rows: IntArray) -> _Target:
        """Return the same for some rows."""
        persons = None if self.persons is None else self.persons[rows]
        classes = None if self.classes is None else self.classes[rows]
        numbers = None if self.numbers is None else self.numbers[rows]
        given = persons, classes, numbers, self.n_classes, self.unit
        return _Target(self.weights[rows], *given)

    def sums(self, place: IntArray, n: int) -> tuple[CountArray, CountArray]:
        """Return the weight in each of n places, and the weight of each class, or of numbers."""
        if self.classes is None and self.unit:
            both = np.bincount(place, self._weighted, n)
            sums = np.floor(both / self.unit)
            return both - sums * self.unit, sums[None]
        if self.classes is None:
            sums = np.bincount(place, self._weighted, n)[None]
            return np.bincount(place, self.weights, n), sums
        k = self.n_classes
        sums = np.bincount(place * k + self.classes, self.weights, n * k).reshape(n, k).T
        return sums.sum(axis=0), np.ascontiguousarray(sums)

    @cached_property
    def _weighted(self) -> FloatArray:
        assert self.numbers is not None
        return self.weights * (self.numbers * self.unit + 1 if self.unit else self.numbers)

    def people(self, place: IntArray, weight: CountArray) -> CountArray:
        """Return the number of people in each place; weight : in each."""
        if self.persons is None:
            return weight
        return np.bincount(place, self.persons, weight.size).reshape(weight.shape)


@dataclass(frozen=True, eq=False)
class _Nodes:
    """The nodes of one level of a tree.

    weight, people : in each; sums : see `_Target`; score : the sum of squared sums over the
    weight; a split gains the scores of both parts less that of the whole; noise : the gain that a
    meaningless question has on average.
    """

    weight: CountArray
    sums: CountArray
    people: CountArray
    score: FloatArray
    noise: FloatArray

    @classmethod
    def of(cls, target: _Target, node: IntArray, n: int) -> _Nodes:
        """Return n nodes; node : of each row."""
        weight, sums = target.sums(node, n)
        score, weights = _score(weight, sums), target.weights
        squares = weights if target.numbers is None else weights * target.numbers**2
        within = np.maximum(np.bincount(node, squares, n) - score, 0.0)
        # Heavy people are noisier.
        of_row = weights if target.persons is None else weights**2 / target.persons
        total = np.where(weight > 0, weight, 1.0)
        noise = within / total * (np.bincount(node, of_row, n) / total)
        return cls(weight, sums, target.people(node, weight), score, noise)

    def at(self, nodes: IntArray) -> _Nodes:
        """Return some of the nodes."""
        each: tuple[Any, ...] = self.weight, self.sums, self.people, self.score, self.noise
        return _Nodes(*(of[..., nodes] for of in each))


def _score(weight: CountArray, sums: CountArray) -> FloatArray:
    return (sums**2).sum(axis=0) / np.where(weight > 0, weight, 1.0)


def _sizes(orders: Sequence[tuple[int, IntArray]]) -> list[int]:
    """Return the number of ranks of each order."""
    return [int(ranks.max()) + 1 for _, ranks in orders]


def _grow(
    features: IntArray,
    sizes: Sequence[int],
    target: _Target,
    roots: IntArray,
    n_roots: int,
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Return the questions of a tree, level by level, and the leaf of each row.

    features : the rank of each row (column) in some orders; sizes : the number of ranks of each;
    roots : the node where each row starts. Questions are arrays as in `ColumnTree`, with the
    number of a feature in place of an order.
    """
    nodes: list[list[int]] = [[UNKNOWN, 0, 0, 0] for _ in range(n_roots)]
    of_row, open_nodes = roots.copy(), np.arange(n_roots)
    for _ in range(_DEEPEST):
        place = np.full(len(nodes), UNKNOWN)
        place[open_nodes] = np.arange(len(open_nodes))
        places = place.take(of_row)
        rows = np.flatnonzero(places >= 0)
        here = rows, _at(places, rows), len(open_nodes)
        split, which, limits = _best_splits(features, sizes, target, *here)
        if not len(split):
            break
        for i, feature, limit in zip(open_nodes[split], which, limits, strict=True):
            nodes[i] = [int(feature), int(limit), len(nodes), len(nodes) + 1]
            nodes += [[UNKNOWN, 0, 0, 0], [UNKNOWN, 0, 0, 0]]
        table = np.array(nodes)
        asked, limit, left, right = np.ascontiguousarray(table.T)
        rows = np.flatnonzero(asked.take(of_row) != UNKNOWN)
        node = _at(of_row, rows)
        ranks = features.take(asked.take(node) * len(of_row) + rows)
        goes_left = ranks <= limit.take(node)
        of_row[rows] = np.where(goes_left, left.take(node), right.take(node))
        open_nodes = table[open_nodes[split]][:, 2:].ravel()
    table = np.array(nodes)
    is_leaf = table[:, 0] == UNKNOWN
    leaf = np.cumsum(is_leaf) - 1
    table[is_leaf, 2] = table[is_leaf, 3] = leaf[is_leaf]
    asked, limits, left, right = table.T
    return asked, limits, left, right, leaf[of_row]


def _best_splits(
    features: IntArray,
    sizes: Sequence[int],
    target: _Target,
    rows: IntArray,
    node: IntArray,
    n_nodes: int,
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the nodes that are split, and the feature and the limit of each best split.

    sizes : the number of ranks of each feature; rows : those in the nodes; node : of each of them.
    """
    target = target.at(rows)
    nodes = _Nodes.of(target, node, n_nodes)
    open_ = np.flatnonzero(nodes.people >= 2 * FEWEST_IN_LEAF)
    if len(open_) < n_nodes:
        place = np.full(n_nodes, UNKNOWN)
        place[open_] = np.arange(len(open_))
        kept = np.flatnonzero(place[node] >= 0)
        rows, node = rows[kept], place[node[kept]]
        target, nodes = target.at(kept), nodes.at(open_)
    if not (len(open_) and sizes):
        return (np.empty(0, dtype=int),) * 3
    gains, limits = _splits(lambda i: _at(features[i], rows), sizes, target, node, nodes)
    which, each = gains.argmax(axis=0), np.arange(len(open_))
    split = np.flatnonzero(gains[which, each] > _LEAST_GAIN * nodes.noise)
    return open_[split], which[split], limits[which, each][split]


def _splits(
    ranks_of: Callable[[int], IntArray],
    sizes: Sequence[int],
    target: _Target,
    node: IntArray,
    nodes: _Nodes,
) -> tuple[FloatArray, IntArray]:
    """Return the gain and the limit of the best split of each node (column) by each feature.

    ranks_of : the rank of each row, by the number of a feature; sizes : the number of ranks of
    each; node : of each row.
    """
    shape = len(sizes), len(nodes.weight)
    gains, limits = np.zeros(shape), np.zeros(shape, dtype=int)
    for n_ranks in sorted(set(sizes)):
        alike, first = np.flatnonzero(np.equal(sizes, n_ranks)), node * n_ranks
        most = _MOST_ENTRIES // (shape[1] * n_ranks * target.n_classes)
        for some in chunks(len(alike), max(1, most)):
            cells = (first + ranks_of(i) for i in alike[some])
            found = _splits_alike(cells, n_ranks, target, nodes)
            gains[alike[some]], limits[alike[some]] = (of.reshape(-1, shape[1]) for of in found)
    return gains, limits


def _splits_alike(
    cells: Iterable[IntArray], n_ranks: int, target: _Target, nodes: _Nodes
) -> tuple[FloatArray, IntArray]:
    """Return the same for features of as many ranks; cells : for each, node and rank of rows."""
    n, tables, people = len(nodes.weight), [], []
    for of_feature in cells:
        tables.append(target.sums(of_feature, n * n_ranks))
        people.append(target.people(of_feature, tables[-1][0]))
    left, left_people = (
        np.concatenate(of_places).reshape(-1, n, n_ranks).cumsum(axis=2)
        for of_places in ([weight for weight, _ in tables], people)
    )
    right_people = nodes.people[:, None] - left_people  # none after the last rank
    is_large = (left_people >= FEWEST_IN_LEAF) & (right_people >= FEWEST_IN_LEAF)
    gains, large = np.zeros(left.size), np.flatnonzero(is_large)
    at, below = large // n_ranks % n, left.take(large)
    sums = np.concatenate([sums for _, sums in tables], axis=1)
    of_left = sums.reshape(-1, left.size // n_ranks, n_ranks).cumsum(axis=2)
    of_left = of_left.reshape(-1, left.size)[:, large]
    of_right = _score(nodes.weight[at] - below, nodes.sums[:, at] - of_left)
    gains[large] = _score(below, of_left) + of_right - nodes.score[at]
    by_node = gains.reshape(-1, n_ranks)[:, :-1]
    best = by_node.argmax(axis=1)
    return by_node[np.arange(len(best)), best], best
