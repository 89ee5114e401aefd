"""What pools and cells show, compared with a loop over their members."""

import numpy as np
import pandas as pd
import pytest

from skprivacy.encoding.alphabets import learn_alphabet, shown_pools
from skprivacy.encoding.columns import learn_column


def naive(column, positions, weights):
    """Return the values that a pool shows, and how often."""
    share = np.bincount(positions, weights, len(column.values)) * ~column.is_rare
    if share.any():
        common = np.flatnonzero(share)
        return [column.in_pool[i] for i in common], share[common] / share.sum()
    commonest = np.argmax(column.weights)
    return [None if column.is_rare[commonest] else column.in_pool[commonest]], np.ones(1)


def check(column, shown, symbols, positions, weights):
    """Compare what every pool shows with the naive loop."""
    by_symbol = shown.by_symbol()
    np.testing.assert_allclose(by_symbol.sum(axis=1), 1.0)
    for symbol, (codes, cumulated) in shown.pools.items():
        at = symbols == symbol
        values, shares = naive(column, positions[at], weights[at])
        assert [shown.values[code] for code in codes] == values
        np.testing.assert_allclose(np.diff(cumulated, prepend=0.0) / cumulated[-1], shares)
        np.testing.assert_allclose(by_symbol[symbol, codes], shares)
        assert shown.commonest(symbol) == values[np.argmax(shares)]


@pytest.mark.parametrize("n_common", [0, 1, 5])
@pytest.mark.parametrize("has_missing", [False, True])
def test_cells_show_common_values_of_their_rows(n_common, has_missing):
    rng = np.random.default_rng(n_common)
    values = np.append(np.repeat(np.arange(n_common) - 1, 6), np.arange(20, 50)).astype(float)
    if has_missing:
        values[-7:] = np.nan
    column, _ = learn_column(pd.Series(values), None, "x", n_bins=None)
    n = len(column.values)
    found = np.unique(rng.integers([9, n], size=(60, 2)), axis=0)
    found = np.vstack([found, [[9, n - 1]]])  # a cell of one value
    weights = rng.random(len(found))
    weights[:3] = 0.0
    shown = shown_pools(column, found[:, 1], found[:, 0], weights)
    assert sorted(shown.pools) == np.unique(found[:, 0]).tolist()
    check(column, shown, found[:, 0], found[:, 1], weights)


def test_values_outside_of_pools_show_themselves():
    rng = np.random.default_rng(0)
    series = [pd.Series(rng.geometric(0.3, 400) - 2), pd.Series(rng.geometric(0.5, 400) - 2)]
    options = {"n_bins": None}, {"n_bins": None}
    alphabet, _ = learn_alphabet(series, ["a", "b"], None, options)
    alphabet, _ = alphabet.pooled(12)
    symbols = alphabet.symbols[alphabet.member_of]
    assert 0 < np.count_nonzero(alphabet.is_pool) < 12
    for position, column in enumerate(alphabet.columns):
        shown, positions = alphabet.shown[position], alphabet.members[:, position]
        assert -1 in column.values
        assert sorted(shown.pools) == np.flatnonzero(alphabet.is_pool).tolist()
        assert (shown.single[alphabet.is_pool] == -1).all()
        for member, symbol in enumerate(symbols):
            if not alphabet.is_pool[symbol]:
                own = column.values[positions[member]]
                assert shown.values[shown.single[symbol]] == own
        check(column, shown, symbols, positions, alphabet.weights)
