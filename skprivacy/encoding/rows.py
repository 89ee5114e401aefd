"""Made-up rows: columns drawn one after another, each from the leaf of a tree.

A row of a group (a cell, or a pool of rare combinations) is made up column by column. The columns
that are already drawn, and the group, lead to a leaf of a small tree; the next column is drawn
from the values that people in this leaf have. All counts are sums of whole numbers, and ties are
broken by position, so the trees depend neither on the processor nor on the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import Any

import numpy as np
import pandas as pd

from .._typing import BoolArray, CountArray, FloatArray, IntArray
from ..codes import UNKNOWN, chunks
from .columns import ColumnAlphabet
from .values import as_numbers

# Every leaf has at least this many people. (With 25, someone who knows seven columns of a person
# of `fit` guesses the rest better than that of others by more than sampling explains.)
FEWEST_IN_LEAF = 40

# A dependency counts if values with at least five people make up this share of its left side.
_COVERED = 0.9

# Splits compare at most this many ranks of a column, classes of a value, and orders of a source.
_MOST_RANKS, _MOST_CLASSES, _MOST_ORDERS = 48, 8, 4

# A question is asked only if it explains more than chance would: its gain, in units of the
# variance within the node, is then at least this. (Chance finds some among hundreds of questions.)
_LEAST_GAIN = 8.0

_DEEPEST = 24

# Of more features than this, a tree asks about those with the largest gains as a first question;
# of still more, about fewer of them, so that wide tables take no longer for each column.
_MOST_FEATURES, _FEWEST_FEATURES = 40, 12

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
class ColumnTree:
    """How one column is drawn.

    column : its number; orders, limits, left, right : the questions. A row goes left if its rank
    in the order is at most the limit; an order of -1 marks a leaf, whose distribution is `left`.
    within : columns that follow from this one and are drawn before it; combinations : of their
    codes, packed; segments : packed (leaf, combination) with a distribution, in order, which come
    after those of the leaves.
    """

    column: int
    orders: IntArray
    limits: IntArray
    left: IntArray
    right: IntArray
    leaves: Leaves
    within: tuple[int, ...] = ()
    combinations: IntArray | None = None
    segments: IntArray | None = None

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
                found[-1] |= tree.segments is not None
        for derived, source, of_source in self.derived:
            if derived == column:
                found[of_source[self.codes_of(source)]] = True
        return found

    @property
    def fixed(self) -> set[int]:
        """The columns that follow from another one: each code is shown as one value."""
        found = {column for column, _, _ in self.derived}
        return found | {column for tree in self.trees for column in tree.within}

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
                numbers = _segments(tree, walk(part, self.by_group), part, self.sizes)
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
        every = np.vstack([*codes, *np.zeros((n_others, len(groups)), dtype=int), groups])
        found = np.ones(len(groups))
        for tree, walk in zip(self.trees, self._walks, strict=True):
            if tree.column >= len(codes):
                continue
            number = _segments(tree, walk(every, self.by_group), every, self.sizes)
            share = tree.leaves.share(np.maximum(number, 0), every[tree.column])
            found *= np.where(number < 0, 0.0, share)
        for column, source, of_source in self.derived:
            if column >= len(codes):
                continue
            found *= of_source[every[source]] == every[column]
        return found

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


def _segments(tree: ColumnTree, leaf: IntArray, codes: Any, sizes: Sequence[int]) -> IntArray:
    """Return the distribution of each row, -1 for none."""
    if tree.combinations is None or tree.segments is None:
        return leaf
    known = _packed([codes[column] for column in tree.within], [sizes[c] for c in tree.within])
    k = np.searchsorted(tree.combinations, known).clip(max=len(tree.combinations) - 1)
    n_k = len(tree.combinations)
    found = np.full(len(leaf), UNKNOWN)
    for number in (np.full(len(leaf), tree.n_leaves), leaf):  # the whole table, then the leaf
        key = number * n_k + k
        at = np.searchsorted(tree.segments, key).clip(max=len(tree.segments) - 1)
        found = np.where(tree.segments[at] == key, tree.n_leaves + at, found)
    return np.where(tree.combinations[k] == known, found, UNKNOWN)


def _packed(codes: Sequence[Any], sizes: Sequence[int]) -> IntArray:
    packed = np.zeros(len(codes[0]), dtype=np.int64)
    for code, size in zip(codes, sizes, strict=True):
        packed = packed * size + code
    return packed


# Learning.


@dataclass(frozen=True, eq=False)
class RowTask:
    """Rows that a model is learned from.

    columns : their alphabets; positions : for each column, the position of each row's value;
    groups : of the rows; n_groups : how many there are; weights, persons : of the rows; a row
    stands for at least so many people; n_last : how many columns at the end are drawn after all
    others, which never follow from them; by_group : whether values of a group are drawn for this
    group only, however few people are in it.
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

    A column with fewer codes is drawn earlier. What follows from a column is looked up, if that
    column's common values are nearly all rows. Otherwise the column is drawn among the values that
    agree with what follows from it.
    """
    every = range(len(task.columns))
    n_values = [len(column.values) for column in task.columns]
    measured = [column.is_measured for column in task.columns]
    follows = {
        (a, b): found
        for a in every
        for b in every
        if a != b and (found := _following(task, a, b)) is not None
    }
    total, n_first = task.persons.sum(), len(n_values) - task.n_last
    covered = [
        c < n_first
        and (task.by_group or task.persons[codes[c] < n_values[c]].sum() >= _COVERED * total)
        for c in every
    ]
    source: dict[int, int] = {}
    for a in sorted(every, key=lambda c: (-n_values[c], not measured[c], c)):
        if a not in source and covered[a]:
            source |= {b: a for b in every if (a, b) in follows and b not in source}
    in_order = sorted(every, key=lambda c: (c >= n_first, n_values[c], c))
    order = [c for c in in_order if c not in source]
    ready: list[int] = []
    within = {}
    for a in order:
        if limiting := [b for b in ready if (a, b) in follows]:
            sizes = np.cumprod([n_values[b] + 1.0 for b in limiting])
            within[a] = tuple(limiting[: np.count_nonzero(sizes < _MOST_PACKED)])
        for b in order:
            if b not in (*ready, a) and (a, b) in follows:
                source[b] = a
        ready += [a, *(b for b, of in source.items() if of == a)]
    order = [c for c in order if c not in source]
    within = {a: limits for a, limits in within.items() if a in order}
    derived = [(b, a, _as_codes(follows[a, b], n_values[b])) for b, a in source.items()]
    return order, derived, within


def _as_codes(following: IntArray, n_values: int) -> IntArray:
    """Return a look-up table for all codes, with that of values that are left out."""
    return np.append(np.where(following == UNKNOWN, n_values, following), n_values)


def _following(task: RowTask, a: int, b: int) -> IntArray | None:
    return _image(*((task.positions[c], len(task.columns[c].values)) for c in (a, b)))


def _image(left: tuple[IntArray, int], right: tuple[IntArray, int]) -> IntArray | None:
    """Return the value on the right for each on the left, if it follows in every row, else None.

    left, right : the value of each row, and the number of values. -1 for values of no row.
    """
    (of_left, n_left), (of_right, n_right) = left, right
    found = np.full(n_left, UNKNOWN)
    first = slice(0, 1000)  # most columns fail at once
    found[of_left[first]] = of_right[first]
    if n_right > n_left or (found[of_left[first]] != of_right[first]).any():
        return None
    found[of_left] = of_right
    is_constant = len(np.unique(found[found != UNKNOWN])) < 2
    return None if is_constant or (found[of_left] != of_right).any() else found


def contradictions(
    columns: Sequence[ColumnAlphabet],
    positions: Sequence[IntArray],
    released: Sequence[IntArray],
) -> tuple[list[tuple[int, int, int]], int]:
    """Return (column, column that follows from it, contradicting rows), and all such rows.

    positions, released : for each column, the position of the value of each row, before and
    after. What follows only because nearly every row has a value of its own does not count.
    """
    found, is_wrong = [], np.zeros(len(released[0]), dtype=bool)
    for a, left in enumerate(columns):
        if (~left.is_rare)[positions[a]].mean() < _COVERED:
            continue
        for b, right in enumerate(columns):
            sides = (positions[a], len(left.values)), (positions[b], len(right.values))
            if a == b or (image := _image(*sides)) is None:
                continue
            expected = np.append(image, UNKNOWN)[released[a]]
            wrong = (expected != UNKNOWN) & (expected != released[b])
            found.append((a, b, int(wrong.sum())))
            is_wrong |= wrong
    return found, int(is_wrong.sum())


class _Growing:
    """Trees of several columns of the same rows; `orders` are shared."""

    def __init__(self, task: RowTask, codes: Sequence[IntArray], sizes: tuple[int, ...]) -> None:
        self.orders: list[tuple[int, IntArray]] = []
        self._ranks_of = cache(self._measured_ranks)
        self._task, self._sizes = task, sizes
        self._codes = [*codes, task.groups]

    def tree(self, column: int, known: Sequence[int], within: tuple[int, ...]) -> ColumnTree:
        """Return the tree of a column; known : the columns that are drawn before it."""
        drawn = np.flatnonzero(self._codes[column] < self._sizes[column] - 1)
        if not len(drawn):  # no value is common: the commonest, or a missing one
            return self._constant(column)
        target = self._codes[column][drawn]
        weights, persons = self._task.weights[drawn], self._task.persons[drawn]
        wanted = self._target(column, target, weights, weights**2 / persons)
        roots = self._task.groups[drawn] if self._task.by_group else np.zeros(len(drawn), int)
        n_roots = self._task.n_groups if self._task.by_group else 1
        features = list(self._features(known, drawn, wanted))
        features = _promising(features, len(self._sizes) - 1, wanted, persons, roots, n_roots)
        grown = _grow([f[1:] for f in features], wanted, persons, roots, n_roots)
        asked, limits, left, right, leaf = grown
        orders = asked.copy()
        for feature in np.unique(asked[asked != UNKNOWN]):
            orders[asked == feature] = self._number(features[feature][0])
        n_leaves = int(np.count_nonzero(asked == UNKNOWN))
        number, row = leaf, np.arange(len(drawn))
        combinations = segments = None
        if within:
            sizes = [self._sizes[c] for c in within]
            of_row = _packed([self._following_codes(column, c, target) for c in within], sizes)
            combinations, k = np.unique(of_row, return_inverse=True)
            segments, more, rows = _limited(leaf, k, persons, n_leaves, len(combinations))
            number, row = np.append(leaf, more), np.append(row, rows)
        code, weight = target[row], weights[row]
        bare = np.setdiff1d(np.arange(n_leaves), number)  # groups without a common value
        number, code = (
            np.append(number, bare),
            np.append(code, np.repeat(self._instead(column), len(bare))),
        )
        leaves = _leaves(number, code, np.append(weight, np.ones(len(bare))), self._sizes[column])
        questions = orders, limits, left, right
        return ColumnTree(column, *questions, leaves, within, combinations, segments)

    def _following_codes(self, column: int, other: int, codes: IntArray) -> IntArray:
        """Return the codes of another column that follow from codes of this one."""
        table = np.zeros(self._sizes[column], dtype=int)
        table[self._task.positions[column]] = self._codes[other]
        return table[codes]

    def _instead(self, column: int) -> int:
        """Return the commonest value; if that is rare too, a missing one."""
        alphabet = self._task.columns[column]
        commonest = int(np.argmax(alphabet.weights))
        return len(alphabet.values) if alphabet.is_rare[commonest] else commonest

    def _constant(self, column: int) -> ColumnTree:
        """Return the tree of a column without any common value."""
        n = self._task.n_groups if self._task.by_group else 1
        ends, here, codes = np.full(n, UNKNOWN), np.arange(n), np.full(n, self._instead(column))
        leaves = Leaves(np.arange(n + 1), codes, np.ones(n))
        return ColumnTree(column, ends, np.zeros(n, int), here, here, leaves)

    def _target(
        self, column: int, codes: IntArray, weights: FloatArray, squares: FloatArray
    ) -> _Target:
        if self._task.columns[column].is_measured:
            places = np.argsort(self._in_order(column))  # exact in sums, unlike values
            return _Target(weights, squares, None, 1, places[codes].astype(float))
        totals = np.bincount(codes, weights, self._sizes[column])
        ranks = np.empty(len(totals), dtype=int)
        ranks[np.argsort(-totals, kind="stable")] = np.arange(len(totals))
        n_classes = max(1, min(_MOST_CLASSES, int(np.count_nonzero(totals))))
        classes = ranks[codes].clip(max=n_classes - 1)
        return _Target(weights, squares, classes, n_classes, None)

    def _features(
        self, known: Sequence[int], rows: IntArray, target: _Target
    ) -> Iterator[tuple[tuple[int, IntArray], IntArray, int]]:
        """Yield orders, the rank of each row in them, and the number of ranks."""
        group = len(self._sizes) - 1
        for source in (*known, group):
            codes = self._codes[source][rows]
            if source != group and self._task.columns[source].is_measured:
                orders = [self._ranks_of(source)]
            else:
                orders = self._by_shares(codes, target, self._sizes[source])
            for ranks in orders:
                if ranks.max() > 0:
                    yield (source, ranks), ranks[codes], int(ranks.max()) + 1

    def _by_shares(self, codes: IntArray, target: _Target, size: int) -> list[IntArray]:
        """Return orders of categories or groups by what the next column is among them."""
        weight, sums = target.sums(codes, size)
        shares = sums / np.where(weight > 0, weight, 1.0)
        orders = (np.argsort(share, kind="stable") for share in shares[:_MOST_ORDERS])
        return [_ranks(order, weight) for order in orders]

    def _measured_ranks(self, source: int) -> IntArray:
        """Return the rank of each code of a column of numbers or times."""
        weights = np.bincount(self._codes[source], self._task.weights, self._sizes[source])
        return _ranks(self._in_order(source), weights)

    def _in_order(self, source: int) -> IntArray:
        """Return the codes of a column of numbers or times in order, missing ones last."""
        line = line_of(self._task.columns[source])
        return np.append(
            np.argsort(line, kind="stable"), np.arange(len(line), self._sizes[source])
        )

    def _number(self, order: tuple[int, IntArray]) -> int:
        """Return the position of an order among all that are used."""
        source, ranks = order
        for number, (other, known) in enumerate(self.orders):
            if other == source and np.array_equal(ranks, known):
                return number
        self.orders.append(order)
        return len(self.orders) - 1


def _limited(
    leaf: IntArray, k: IntArray, persons: FloatArray, n_leaves: int, n_k: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Return distributions of a column among values that agree with others.

    They are (segments, numbers, rows), as in `ColumnTree`; in a leaf, only those of enough people.
    """
    packed = np.append(leaf * n_k + k, n_leaves * n_k + k)
    people = np.bincount(packed, np.tile(persons, 2), (n_leaves + 1) * n_k)
    fewest = np.append(np.full(n_leaves * n_k, float(FEWEST_IN_LEAF)), np.ones(n_k))
    kept = (people >= fewest) & (people > 0)
    number = np.cumsum(kept) - 1 + n_leaves
    rows = np.flatnonzero(kept[packed])
    return np.flatnonzero(kept), number[packed[rows]], rows % len(leaf)


def _ranks(order: IntArray, weights: CountArray) -> IntArray:
    """Return the rank of each code: codes in an order, in at most `_MOST_RANKS` parts.

    Parts have about the same weight.
    """
    before = np.cumsum(weights[order]) - weights[order]
    total = max(float(weights.sum()), np.finfo(float).tiny)
    part = np.floor(before * _MOST_RANKS / total)
    is_new = np.append(False, part[1:] != part[:-1])
    ranks = np.empty(len(order), dtype=int)
    ranks[order] = np.cumsum(is_new)
    return ranks


def _leaves(number: IntArray, code: IntArray, weight: FloatArray, n_codes: int) -> Leaves:
    """Return the distributions of the codes with each number, all of which occur."""
    packed, of_row = np.unique(number * n_codes + code, return_inverse=True)
    weights = np.bincount(of_row, weight)
    starts = np.searchsorted(packed // n_codes, np.arange(int(number.max()) + 2))
    return Leaves(starts, packed % n_codes, weights.astype(float))


@dataclass(frozen=True, eq=False)
class _Target:
    """What a tree predicts of each row: a class, or a number.

    weights : of the rows; squares : the total of squared weights of the people in each row;
    classes : from 0 to n_classes - 1, or None; numbers : whole ones.
    """

    weights: FloatArray
    squares: FloatArray
    classes: IntArray | None
    n_classes: int
    numbers: FloatArray | None

    def at(self, rows: IntArray) -> _Target:
        """Return the same for some rows."""
        classes = None if self.classes is None else self.classes[rows]
        numbers = None if self.numbers is None else self.numbers[rows]
        weights = self.weights[rows], self.squares[rows]
        return _Target(*weights, classes, self.n_classes, numbers)

    def sums(self, place: IntArray, n: int) -> tuple[CountArray, CountArray]:
        """Return the weight in each of n places, and the weight of each class, or of numbers."""
        if self.classes is None:
            assert self.numbers is not None
            sums = np.bincount(place, self.weights * self.numbers, n)[None]
            return np.bincount(place, self.weights, n), sums
        k = self.n_classes
        sums = np.bincount(place * k + self.classes, self.weights, n * k).reshape(n, k).T
        return sums.sum(axis=0), np.ascontiguousarray(sums)

    def noise(self, node: IntArray, weight: CountArray, score: FloatArray) -> FloatArray:
        """Return the gain that a meaningless question has on average, in each node."""
        squares = self.weights if self.numbers is None else self.weights * self.numbers**2
        within = np.maximum(np.bincount(node, squares, len(weight)) - score, 0.0)
        heavy = np.bincount(node, self.squares, len(weight))  # heavy people are noisier
        total = np.where(weight > 0, weight, 1.0)
        return within / total * (heavy / total)


def _grow(
    features: Sequence[tuple[IntArray, int]],
    target: _Target,
    persons: FloatArray,
    roots: IntArray,
    n_roots: int,
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Return the questions of a tree, level by level, and the leaf of each row.

    features : the rank of each row in some order, and the number of ranks; roots : the node where
    each row starts. Questions are arrays as in `ColumnTree`, with the number of a feature in place
    of an order.
    """
    nodes: list[list[int]] = [[UNKNOWN, 0, 0, 0] for _ in range(n_roots)]
    of_row, open_nodes = roots.copy(), np.arange(n_roots)
    for _ in range(_DEEPEST):
        place = np.full(len(nodes), UNKNOWN)
        place[open_nodes] = np.arange(len(open_nodes))
        rows = np.flatnonzero(place[of_row] >= 0)
        here = place[of_row[rows]], target.at(rows), persons[rows], len(open_nodes)
        gains, which, limits = _best_splits([(r[rows], n) for r, n in features], *here)
        split = np.flatnonzero(gains > 0)
        if not len(split):
            break
        for i in split:
            nodes[open_nodes[i]] = [int(which[i]), int(limits[i]), len(nodes), len(nodes) + 1]
            nodes += [[UNKNOWN, 0, 0, 0], [UNKNOWN, 0, 0, 0]]
        table = np.array(nodes)
        for feature in np.unique(which[split]):
            moving = rows[table[of_row[rows], 0] == feature]
            node = table[of_row[moving]]
            goes_left = features[feature][0][moving] <= node[:, 1]
            of_row[moving] = np.where(goes_left, node[:, 2], node[:, 3])
        open_nodes = table[open_nodes[split]][:, 2:].ravel()
    table = np.array(nodes)
    is_leaf = table[:, 0] == UNKNOWN
    leaf = np.cumsum(is_leaf) - 1
    table[is_leaf, 2] = table[is_leaf, 3] = leaf[is_leaf]
    asked, limits, left, right = table.T
    return asked, limits, left, right, leaf[of_row]


def _promising(
    features: list[tuple[tuple[int, IntArray], IntArray, int]],
    group: int,
    target: _Target,
    persons: FloatArray,
    roots: IntArray,
    n_roots: int,
) -> list[tuple[tuple[int, IntArray], IntArray, int]]:
    """Return the features that gain most as a first question, and those of the group itself."""
    if len(features) <= _MOST_FEATURES:
        return features
    weight, sums = target.sums(roots, n_roots)
    people, none = np.bincount(roots, persons, n_roots), np.zeros(n_roots)
    every = weight, sums, people, _score(weight, sums), none
    of_persons = None if np.array_equal(persons, target.weights) else persons
    gains = [
        np.inf
        if source == group
        else _splits(roots * n + ranks, n, target, of_persons, *every)[0].sum()
        for (source, _), ranks, n in features
    ]
    most = max(_FEWEST_FEATURES, _MOST_FEATURES**2 // len(features))
    best = np.argsort(-np.array(gains), kind="stable")[:most]
    return [features[i] for i in sorted(best)]


def _best_splits(
    features: Sequence[tuple[IntArray, int]],
    node: IntArray,
    target: _Target,
    persons: FloatArray,
    n_nodes: int,
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the gain, the feature and the limit of the best split of each node.

    The gain is 0 for a node that is not split. The score of a part is the sum of squared sums over
    its weight; a split gains the scores of both parts less that of the whole.
    """
    best, which = np.zeros(n_nodes), np.zeros(n_nodes, dtype=int)
    limits = np.zeros(n_nodes, dtype=int)
    weight, sums = target.sums(node, n_nodes)
    people, whole = np.bincount(node, persons, n_nodes), _score(weight, sums)
    least = _LEAST_GAIN * target.noise(node, weight, whole)
    open_ = np.flatnonzero(people >= 2 * FEWEST_IN_LEAF)
    if not len(open_):
        return best, which, limits
    if len(open_) < n_nodes:  # only nodes that can be split
        place = np.full(n_nodes, UNKNOWN)
        place[open_] = np.arange(len(open_))
        rows = np.flatnonzero(place[node] >= 0)
        features = [(ranks[rows], n) for ranks, n in features]
        node, target, persons = place[node[rows]], target.at(rows), persons[rows]
    same = np.array_equal(persons, target.weights)
    every = weight[open_], sums[:, open_], people[open_], whole[open_], least[open_]
    for number, (ranks, n_ranks) in enumerate(features):
        found = _splits(node * n_ranks + ranks, n_ranks, target, None if same else persons, *every)
        better = open_[found[0] > best[open_]]
        at = found[0] > best[open_]
        best[better], which[better], limits[better] = found[0][at], number, found[1][at]
    return best, which, limits


def _splits(
    cells: IntArray,
    n_ranks: int,
    target: _Target,
    persons: FloatArray | None,
    weight: CountArray,
    sums: CountArray,
    people: CountArray,
    whole: FloatArray,
    least: FloatArray,
) -> tuple[FloatArray, IntArray]:
    """Return the gain and the limit of the best split of each node by one feature."""
    n = len(weight)
    of_cells, sums_of_cells = target.sums(cells, n * n_ranks)
    left = of_cells.reshape(n, n_ranks).cumsum(axis=1)[:, :-1]
    left_sums = sums_of_cells.reshape(-1, n, n_ranks).cumsum(axis=2)[:, :, :-1]
    left_people = left
    if persons is not None:
        counted = np.bincount(cells, persons, n * n_ranks).reshape(n, n_ranks)
        left_people = counted.cumsum(axis=1)[:, :-1]
    node, limit = np.nonzero(
        (left_people >= FEWEST_IN_LEAF) & (people[:, None] - left_people >= FEWEST_IN_LEAF)
    )
    gains = np.zeros((n, n_ranks - 1))
    below, above = left[node, limit], weight[node] - left[node, limit]
    of_left = left_sums[:, node, limit]
    gain = _score(below, of_left) + _score(above, sums[:, node] - of_left) - whole[node]
    gains[node, limit] = np.where(gain > least[node], gain, 0.0)
    best = gains.argmax(axis=1)
    return gains[np.arange(n), best], best


def _score(weight: CountArray, sums: CountArray) -> FloatArray:
    return (sums**2).sum(axis=0) / np.where(weight > 0, weight, 1.0)
