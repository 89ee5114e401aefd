"""Symbols of X together with the values of columns beside it."""

import pickle

import numpy as np
import pandas as pd
import pytest

from skprivacy.encoding import PairedAlphabet, learn_alphabet, paired
from skprivacy.fidelity import gower

X = pd.Series(["a", "b", "b", "c", "a", "c"])
Z = pd.Series([1, 1, 2, 2, 1, 1])


def learned(weights=None):
    inner, x_codes = learn_alphabet([X], ["x"], weights, [{}])
    beside, z_codes = learn_alphabet([Z], ["z"], weights, [{"n_bins": None}])
    return paired(inner, x_codes, beside, z_codes, weights)


class TestPairs:
    def test_those_that_occur_by_z(self):
        alphabet, codes = learned()
        assert alphabet.labels == [("a", 1), ("b", 1), ("c", 1), ("b", 2), ("c", 2)]
        assert codes.tolist() == [0, 1, 3, 4, 0, 2]
        assert alphabet.strata.tolist() == [0, 0, 0, 1, 1]
        assert alphabet.x_symbols.tolist() == [0, 1, 2, 1, 2]
        assert alphabet.weights.tolist() == [2, 1, 1, 1, 1]
        assert alphabet.stratum_names(["z"]) == ["z = 1", "z = 2"]

    def test_weights(self):
        alphabet, _ = learned(np.array([1.0, 2, 3, 4, 5, 6]))
        assert alphabet.weights.tolist() == [6, 2, 6, 3, 4]

    def test_a_pair_that_was_not_seen_is_unknown_within_its_z(self):
        alphabet, _ = learned()
        x, z = pd.Series(["a", "b", "d", "d", None]), pd.Series([2, 2, 1, 2, 1])
        symbols, unknown = alphabet.encode([x, z], ["x", "z"])
        assert symbols.tolist() == [-2, 3, -1, -2, -1]
        assert unknown == {"x": 3, None: 1}

    @pytest.mark.parametrize("value", [3, None])
    def test_a_value_beside_x_that_was_not_seen_is_an_error(self, value):
        alphabet, _ = learned()
        z = pd.Series([1, value, value], dtype=object)
        with pytest.raises(ValueError, match=r"The column 'z', in beside, .* in 2 rows: .*leave"):
            alphabet.encode([X[:3], z], ["x", "z"])

    def test_a_combination_beside_x_that_was_not_seen(self):
        inner, x_codes = learn_alphabet([X], ["x"], None, [{}])
        columns = [Z, pd.Series(list("uvuvuv"))]
        beside, z_codes = learn_alphabet(columns, ["z", "w"], None, [{}, {}])
        alphabet, _ = paired(inner, x_codes, beside, z_codes, None)
        assert (alphabet.encode([X, *columns], ["x", "z", "w"])[0] >= 0).all()
        new = [pd.Series([2]), pd.Series(["u"])]
        assert alphabet.encode([X[:1], *new], ["x", "z", "w"])[0].tolist()[0] < 0
        fewer, z_codes = learn_alphabet([c[:3] for c in columns], ["z", "w"], None, [{}, {}])
        alphabet, _ = paired(inner, x_codes[:3], fewer, z_codes, None)
        with pytest.raises(
            ValueError, match=r"The combination of 'z', 'w', in beside, .*\(2, 'v'"
        ):
            alphabet.encode([X[:1], pd.Series([2]), pd.Series(["v"])], ["x", "z", "w"])

    def test_what_is_shown_is_x_alone(self):
        alphabet, _ = learned()
        outputs = np.array([0, 1, 2])
        ((values, codes),) = alphabet.decode(np.array([0, 3, 4]), outputs, None)
        assert [values[code] for code in codes] == ["a", "b", "c"]
        assert len(alphabet.columns) == 1
        assert len(alphabet.read_columns) == 2
        assert alphabet.can_be_read(np.arange(5))
        shown = alphabet.shown[0]
        assert [shown.values[i] for i in shown.single] == ["a", "b", "c", "b", "c"]

    def test_members_are_those_of_x(self):
        alphabet, _ = learned()
        (table,) = alphabet.tables()
        assert table.tolist() == [[2, 0, 0, 0, 0], [0, 1, 0, 1, 0], [0, 0, 1, 0, 1]]
        assert (alphabet.matches() == (alphabet.x_symbols[:, None] == alphabet.x_symbols)).all()
        assert (gower(alphabet, [False], [1.0]) == 1 - alphabet.matches()).all()

    def test_pickle(self):
        alphabet, codes = learned()
        alphabet.encode([X, Z], ["x", "z"])
        copy = pickle.loads(pickle.dumps(alphabet))
        assert isinstance(copy, PairedAlphabet)
        assert copy.encode([X, Z], ["x", "z"])[0].tolist() == codes.tolist()
