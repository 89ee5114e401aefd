"""The solver that "auto" stands for, by utility and number of vertices."""

from typing import Any

from ..geometry.lift_polytopes import count_bases
from ..utilities import DEFAULT_TOL
from .base import DesignTask

# Above this many vertices of (22), a certificate takes longer than it is worth to most users.
_MOST_BASES = 60_000

# With one degree of freedom of S there are only pairs: on average, at some twenty places each.
_MOST_SYMBOLS_IN_PAIRS = 400

# Where X has no more symbols than this, a loss is certified as exactly as anything else.
_FEW_SYMBOLS = 12

# Alphabets of X for which a design takes seconds, not minutes, by the number of values of S: with
# one there is nothing to do, with two there are pairs, with more, columns are generated.
_MOST_SYMBOLS = {1: 1000, 2: 500}
_MOST_SYMBOLS_ELSE = 64


def automatic(task: DesignTask) -> tuple[str, dict[str, Any]]:
    """Return the name of the solver, and the options that differ from its defaults."""
    measure, scope = task.measure, task.scope
    n_s, n_x = task.joint.p_sx.shape
    if task.utility.as_loss(n_x) is not None and not measure.jumps:
        return "one_per_label", {"tol": DEFAULT_TOL} if n_x <= _FEW_SYMBOLS else {}
    rank = min(n_s, n_x)
    if scope == "per_output" and measure.is_lift_box:
        low, _ = measure.implied_deviations(1.0) or (-1.0, 1.0)
        few = count_bases(n_s, n_x, rank, sides=1 if low == -1 else 2) <= _MOST_BASES
        return ("max_lift" if few else "column_generation"), {}
    if rank <= 2 and scope == "per_output":
        return "optimal", {}
    if count_bases(n_s, n_x, rank) <= _MOST_BASES:
        return "optimal", {"start": "algorithm1"}
    if rank <= 2 and n_x <= _MOST_SYMBOLS_IN_PAIRS:
        return "optimal", {}
    return "column_generation", {}


def most_symbols(n_s: int) -> int:
    """Return the number of symbols of X that "auto" handles within seconds."""
    return _MOST_SYMBOLS.get(n_s, _MOST_SYMBOLS_ELSE)
