"""Leakages written down by hand, and the best mechanisms on a grid, for several secrets."""

import numpy as np
from scipy.optimize import linprog
from scipy.special import rel_entr

RNG = np.random.default_rng

# Of one output with posterior t, where the prior is p, on the scale of epsilon.
NAIVE = {
    "kl": lambda t, p: rel_entr(t, p).sum(),
    "l1": lambda t, p: np.abs(t - p).sum(),
    "max_lift": lambda t, p: np.log((t / p).max()),
}


def tables(seed, sizes=(2, 3), n_x=6, power=2):
    """Return the tables of several secrets, and that of all as one."""
    joint = RNG(seed).random((*sizes, n_x)) ** power + 1e-3
    joint /= joint.sum()
    axes = range(len(sizes))
    each = {f"s{j}": joint.sum(axis=tuple(a for a in axes if a != j)) for j in axes}
    return each, joint.reshape(-1, n_x)


def leakages(channel, table, measure):
    """Return what each output leaks, and how often it occurs, without any code of the package."""
    p_sy = table @ channel
    p_y, prior = p_sy.sum(axis=0), table.sum(axis=1)
    return np.array([NAIVE[measure](p_sy[:, y] / p_y[y], prior) for y in np.flatnonzero(p_y)]), p_y


def on_a_grid(each, budgets, scope, steps, groups=None):
    """Return the most I(X;Y) of posteriors on a grid of the simplex of three symbols (kl)."""
    first, second = np.meshgrid(np.arange(steps + 1), np.arange(steps + 1))
    keep = first + second <= steps
    points = np.stack([first[keep], second[keep], steps - first[keep] - second[keep]], axis=1)
    points = points / steps
    if groups is not None:
        points = points[[len(set(groups[w > 0])) == 1 for w in points]]
    charges = []
    for name, table in each.items():
        given = points @ (table / table.sum(axis=0)).T
        charges.append(rel_entr(given, table.sum(axis=1)).sum(axis=1) / budgets[name])
    p_x = next(iter(each.values())).sum(axis=0)
    worth = rel_entr(points, np.ones(3)).sum(axis=1)
    if scope == "per_output":
        keep = np.max(charges, axis=0) <= 1
        rows, right = None, None
        points, worth = points[keep], worth[keep]
    else:
        rows, right = np.array(charges), np.ones(len(charges))
    answer = linprog(-worth, A_ub=rows, b_ub=right, A_eq=points.T, b_eq=p_x)
    return -answer.fun - rel_entr(p_x, np.ones(3)).sum()
