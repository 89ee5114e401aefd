"""A fair tree in the manner of FARE (Jovanovic et al., ICML 2023), with its certificate.

Written anew after the paper and its code: a tree whose leaves are all that is released. S and the
target are 0 or 1.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import beta

# Numbers are cut at so many quantiles.
_N_BINS = 64

# How often parts of the certificate may fail: P(S), the sum over leaves. The rest is for leaves.
_FAILURES = 0.005, 0.005


@dataclass
class Node:
    """A leaf with a number, or a question: which codes of a column go left."""

    number: int | None = None
    column: int = 0
    goes_left: np.ndarray | None = None
    left: "Node | None" = None
    right: "Node | None" = None


class Codes:
    """Columns as codes: numbers cut at quantiles, categories, and one code for what is new."""

    def __init__(self, X):
        self.columns = {}
        for name, column in X.items():
            if pd.api.types.is_numeric_dtype(column):
                cuts = np.unique(np.quantile(column, np.linspace(0, 1, _N_BINS + 1)[1:-1]))
                self.columns[name] = cuts
            else:
                self.columns[name] = pd.Index(sorted(column.unique()))

    def of(self, X):
        """Return the codes of rows, a column for each column."""
        return np.column_stack(
            [self._codes(X[name], known) for name, known in self.columns.items()]
        )

    @staticmethod
    def _codes(column, known):
        if isinstance(known, np.ndarray):
            return np.searchsorted(known, column, side="left")
        codes = known.get_indexer(column)
        return np.where(codes < 0, len(known), codes)

    @property
    def is_ordered(self):
        """Which columns are numbers."""
        return [isinstance(known, np.ndarray) for known in self.columns.values()]


class FairTree:
    """Leaves that tell the target and not S, up to max_leaves of at least min_rows rows each.

    The best split is that after which ``(1 - weight) Gini(V) + weight (1/2 - Gini(S))`` is least,
    on average over rows; the leaf that gains most is split first.
    """

    def __init__(self, weight, max_leaves=24, min_rows=20):
        self.weight, self.max_leaves, self.min_rows = weight, max_leaves, min_rows

    def fit(self, X, v, s):
        """Grow the tree."""
        self.encoder = Codes(X)
        codes = self.encoder.of(X)
        self.root = Node(0)
        open_leaves = [self._best_split(self.root, np.arange(len(v)), codes, v, s)]
        self.n_leaves = 1
        while self.n_leaves < self.max_leaves:
            gain, leaf, rows, column, goes_left = max(open_leaves, key=lambda found: found[0])
            if gain <= 0:
                break
            open_leaves = [found for found in open_leaves if found[1] is not leaf]
            leaf.left, leaf.right = Node(leaf.number), Node(self.n_leaves)
            leaf.number, leaf.column, leaf.goes_left = None, column, goes_left
            self.n_leaves += 1
            is_left = goes_left[codes[rows, column]]
            for node, part in ((leaf.left, rows[is_left]), (leaf.right, rows[~is_left])):
                open_leaves.append(self._best_split(node, part, codes, v, s))
        return self

    def _best_split(self, leaf, rows, codes, v, s):
        """Return the gain of the best question, the leaf, its rows, the column, the codes."""
        best = (0.0, leaf, rows, 0, np.zeros(0, bool))
        for column, is_ordered in enumerate(self.encoder.is_ordered):
            n_codes = codes[:, column].max() + 2  # one for values that fit has not seen
            counts = [
                np.bincount(codes[rows, column], weights, n_codes)
                for weights in (None, v[rows], s[rows])
            ]
            gain, goes_left = self._best_question(np.array(counts, float), is_ordered)
            if gain > best[0]:
                best = gain, leaf, rows, column, goes_left
        return best

    def _best_question(self, counts, is_ordered):
        """Return the gain, and the codes that go left; counts : rows, those with V, with S."""
        n, n_v, _ = counts
        order = (
            np.arange(len(n)) if is_ordered else np.argsort(n_v / np.maximum(n, 1), kind="stable")
        )
        left = counts[:, order].cumsum(axis=1)
        right = left[:, -1:] - left
        impurity = self._impurity(left) + self._impurity(right)
        allowed = np.minimum(left[0], right[0]) >= self.min_rows
        impurity = np.where(allowed, impurity, np.inf)
        at = int(impurity.argmin())
        goes_left = np.zeros(len(n), bool)
        goes_left[order[: at + 1]] = True
        return float(self._impurity(left[:, -1]) - impurity[at]), goes_left

    def _impurity(self, counts):
        """Return the impurity times the number of rows."""
        n, n_v, n_s = counts
        share_v, share_s = n_v / np.maximum(n, 1), n_s / np.maximum(n, 1)
        gini_v, gini_s = 2 * share_v * (1 - share_v), 2 * share_s * (1 - share_s)
        return n * ((1 - self.weight) * gini_v + self.weight * (0.5 - gini_s))

    def apply(self, X):
        """Return the number of the leaf of each row."""
        codes, leaves = self.encoder.of(X), np.empty(len(X), int)
        waiting = [(self.root, np.arange(len(X)))]
        while waiting:
            node, rows = waiting.pop()
            if node.number is not None:
                leaves[rows] = node.number
                continue
            code = np.minimum(codes[rows, node.column], len(node.goes_left) - 1)
            is_left = node.goes_left[code]
            waiting += [(node.left, rows[is_left]), (node.right, rows[~is_left])]
        return leaves


def interval(n, n_of, failure):
    """Return the Clopper-Pearson interval of a probability."""
    low = np.where(n_of > 0, beta.ppf(failure / 2, np.maximum(n_of, 1), n - n_of + 1), 0.0)
    high = np.where(n_of < n, beta.ppf(1 - failure / 2, n_of + 1, np.maximum(n - n_of, 1)), 1.0)
    return low, high


def fare_certificate(s_train, leaves, s, other_leaves, n_leaves, failure=0.05):
    """Return the largest demographic parity distance, by three sets of rows.

    s_train : bounds P(S); leaves, s : rows that bound P(S|leaf), not those that grew the tree;
    other_leaves : rows that bound the sum over leaves. None of them decided on the tree.
    """
    of_prior, of_sum = _FAILURES
    low, high = interval(len(s_train), s_train.sum(), of_prior)
    heaviest = 1 / (2 * (1 - high)), 1 / (2 * low)
    n = np.bincount(leaves, minlength=n_leaves)
    n_s = np.bincount(leaves, s, n_leaves)
    low, high = interval(n, n_s, (failure - of_prior - of_sum) / n_leaves)
    worst = np.maximum(heaviest[0] * (1 - low), heaviest[1] * high).clip(max=max(heaviest))
    mean = worst[other_leaves].mean()
    mean += np.ptp(worst) * np.sqrt(np.log(1 / of_sum) / 2 / len(other_leaves))
    return float(min(2 * mean - 1, 1.0))
