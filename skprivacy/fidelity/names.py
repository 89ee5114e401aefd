"""Which symbol of X each output is read as, where nobody has named the outputs."""

from scipy.optimize import linear_sum_assignment

from .._typing import FloatArray, IntArray


def closest_names(p_xy: FloatArray, loss: FloatArray) -> IntArray:
    """Return a symbol for each output, so that the expected loss is smallest.

    p_xy : (n_x, n_y), P(X, Y); loss : of reading the symbol of the row as that of the column. No
    two outputs get the same symbol, unless there are more outputs than symbols.
    """
    expected = p_xy.T @ loss
    names = expected.argmin(axis=1)
    outputs, symbols = linear_sum_assignment(expected)
    names[outputs] = symbols
    return names
