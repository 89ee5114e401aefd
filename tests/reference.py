"""Naive implementations that the fast ones are compared with, and joints to compare them on."""

from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog

from skprivacy.geometry import Points
from skprivacy.measures import KL, L1, AlphaLift, Chi2, Lip, MaxLift, Measure, Parity

THREE_BY_THREE = np.array([[0.90, 0.08, 0.40], [0.025, 0.82, 0.05], [0.075, 0.10, 0.55]]) / 3
EXAMPLE_1 = np.array([[0.25, 0.4], [0.75, 0.6]]) * [0.25, 0.75]


# Every measure, with other parameters too.
MEASURES = [
    "kl",
    "l1",
    "chi2",
    "max_lift",
    AlphaLift(2),
    AlphaLift(5),
    "lip",
    Lip(lower=0.1),
    "parity",
]


def random_joint(rng, largest=(5, 8)):
    """Return a joint of a random size and kind: plain, with zeros, tiny, rank-deficient, tied."""
    n_s, n_x = rng.integers(2, largest[0] + 1), rng.integers(2, largest[1] + 1)
    joint = rng.random((n_s, n_x))
    kind = rng.choice(["plain", "zeros", "tiny", "low rank", "integers"])
    if kind == "zeros":
        joint *= rng.random((n_s, n_x)) < 0.6
    elif kind == "tiny":
        joint *= 10.0 ** -rng.integers(0, 10, size=(n_s, n_x))
    elif kind == "low rank":
        rank = rng.integers(1, min(n_s, n_x) + 1)
        joint = rng.random((n_s, rank)) @ rng.random((rank, n_x))
    elif kind == "integers":
        joint = rng.integers(0, 4, size=(n_s, n_x)).astype(float)
    if joint.sum() == 0:
        joint[0, 0] = 1.0
    return joint / joint.sum()


def exact_max_lift_vertices(p_sx, bound):
    """Return the vertices of (22) in rational arithmetic, by trying every basis."""
    p_sx = [[Fraction(float(p)) for p in row] for row in p_sx]
    p_s, p_x = [sum(row) for row in p_sx], [sum(column) for column in zip(*p_sx, strict=True)]
    total, bound = sum(p_s), Fraction(float(bound))
    lifts = [
        [p * total / (a * b) for p, b in zip(row, p_x, strict=True)]
        for row, a in zip(p_sx, p_s, strict=True)
    ]
    return _exact_vertices(lifts, [bound] * len(lifts))


def _exact_vertices(rows, offsets):
    n, vertices = len(rows[0]), set()
    for m in range(1, n + 1):
        for support in combinations(range(n), m):
            for active in combinations(range(len(rows)), m - 1):
                system = [[rows[r][x] for x in support] for r in active] + [[Fraction(1)] * m]
                solution = _solve(system, [offsets[r] for r in active] + [Fraction(1)])
                if solution is None or min(solution) < 0:
                    continue
                point = [Fraction(0)] * n
                for x, value in zip(support, solution, strict=True):
                    point[x] = value
                sides = (sum(a * w for a, w in zip(row, point, strict=True)) for row in rows)
                if all(side <= offset for side, offset in zip(sides, offsets, strict=True)):
                    vertices.add(tuple(point))
    return np.array(sorted(vertices), dtype=float)


def exact_vertices(rows, offsets):
    """Return the vertices of the simplex cut by ``rows @ W <= offsets``, in rational arithmetic."""
    rows = [[Fraction(float(value)) for value in row] for row in rows]
    return _exact_vertices(rows, [Fraction(float(value)) for value in offsets])


def _solve(matrix, right):
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(len(rows)):
        pivot = next((r for r in range(i, len(rows)) if rows[r][i] != 0), None)
        if pivot is None:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for r in range(len(rows)):
            if r != i:
                rows[r] = [v - rows[r][i] * w for v, w in zip(rows[r], rows[i], strict=True)]
    return [row[-1] for row in rows]


def imported_cdd():
    """Return cdd, which has no wheel; without a compiler, what needs it is skipped."""
    return pytest.importorskip("cdd", reason="the extra cdd is not installed: nothing is compared")


def cdd_vertices(lifts, bound):
    """Return the vertices of (22) by cdd, in floating point."""
    cdd = imported_cdd()

    n_x = lifts.shape[1]
    inequalities = [[0.0, *row] for row in np.eye(n_x)]
    inequalities += [[bound, *-row] for row in lifts]
    system = [[1.0, *[-1.0] * n_x], *inequalities]
    matrix = cdd.matrix_from_array(system, rep_type=cdd.RepType.INEQUALITY, lin_set={0})
    generators = cdd.copy_generators(cdd.polyhedron_from_matrix(matrix)).array
    return np.array(generators)[:, 1:].clip(0)


def entropy(points):
    return -np.where(points > 0, points * np.log(np.where(points > 0, points, 1)), 0).sum(axis=-1)


def best_weights(points, p_x):
    """Solve the linear program (23)."""
    result = linprog(entropy(points), A_eq=points.T, b_eq=p_x, method="highs")
    assert result.success, result.message
    return result.x


def naive_algorithm1(p_sx, epsilons, *, eps_last, n_between=5, n_last=500, delta=0.05):
    """Return I(X;Y) for each epsilon by the paper's pseudocode, a line after the other (kl)."""
    p_s, p_x = p_sx.sum(axis=1), p_sx.sum(axis=0)
    lifts = p_sx / p_x / p_s[:, None]

    def leakage(points):
        posterior = points @ (lifts * p_s[:, None]).T
        ratio = posterior / p_s
        return np.where(ratio > 0, posterior * np.log(np.where(ratio > 0, ratio, 1)), 0).sum(
            axis=1
        )

    ends = [*epsilons, eps_last]
    counts = [n_between] * (len(epsilons) - 1) + [n_last]
    grids = [  # line 3
        [ends[i] + k * (ends[i + 1] - ends[i]) / n for k in range(n)] for i, n in enumerate(counts)
    ]
    polytopes = [np.vstack([cdd_vertices(lifts, np.exp(e)) for e in grid]) for grid in grids]
    leakages = [leakage(points) for points in polytopes]
    utilities, in_use = [], np.empty((0, len(p_x)))
    for i, epsilon in enumerate(epsilons):
        vertices = cdd_vertices(lifts, np.exp(epsilon))
        candidates = [vertices[best_weights(vertices, p_x) > 0], in_use]  # lines 3 and 6
        for points, values in zip(polytopes[i:], leakages[i:], strict=True):  # lines 7 to 11
            candidates.append(points[((1 - delta) * epsilon <= values) & (values <= epsilon)])
        candidates = np.vstack(candidates)
        weights = best_weights(candidates, p_x)  # line 12
        in_use = candidates[weights > 0]
        utilities.append(entropy(p_x) - weights @ entropy(candidates))
    return np.array(utilities)


@cache
def simplex_grid(n, steps):
    """Return all points of the simplex whose entries are multiples of 1 / steps."""
    if n == 1:
        return np.ones((1, 1))
    parts = []
    for first in range(steps + 1):
        rest = simplex_grid(n - 1, steps - first) if first < steps else np.zeros((1, n - 1))
        parts.append(np.hstack([np.full((len(rest), 1), first), (steps - first) * rest]))
    return np.vstack(parts) / steps


def best_on_grid(p_sx, epsilon, measure, scope, utility, steps=80):
    """Return the best utility of a mixture of points of a grid, by one linear program."""
    p_s, p_x = p_sx.sum(axis=1), p_sx.sum(axis=0)
    grid = np.vstack([simplex_grid(len(p_x), steps), p_x])
    leakage = measure.value(grid @ (p_sx / p_x).T, p_s)
    values = utility.value(Points.from_dense(grid))
    threshold = measure.threshold(epsilon)
    options = {"A_eq": grid.T, "b_eq": p_x}
    if scope == "average":
        options |= {"A_ub": leakage[None], "b_ub": [threshold]}
    else:
        keep = leakage <= threshold + 1e-15
        values, options["A_eq"] = values[keep], grid[keep].T
    result = linprog(-values, **options)
    assert result.success, result.message
    return utility.offset(p_x) - result.fun


def naive_value(measure, posterior, prior):
    """The table of measures, symbol by symbol."""
    pairs = list(zip(posterior, prior, strict=True))
    lifts = [t / p for t, p in pairs]
    match measure:
        case KL():
            return sum(t * np.log(t / p) for t, p in pairs if t > 0)
        case L1():
            return sum(abs(t - p) for t, p in pairs)
        case Chi2():
            return sum((t - p) ** 2 / p for t, p in pairs)
        case MaxLift():
            return max(lifts)
        case AlphaLift(alpha=alpha):
            return sum(p * (t / p) ** alpha for t, p in pairs) ** (1 / alpha)
        case Lip(lower=None):
            return max(max(lifts), np.divide(1, min(lifts)))
        case Lip(lower=lower):
            return max(lifts) if min(lifts) >= np.exp(-lower) else np.inf
        case Parity():
            return max(abs(a - b) for a in lifts for b in lifts) / 2


class Hellinger(Measure):
    """A measure that the package does not know."""

    name = "hellinger"

    def value(self, posterior, prior):
        return ((np.sqrt(posterior) - np.sqrt(prior)) ** 2).sum(axis=-1) / 2

    def subgradient(self, posterior, prior):
        return (1 - np.sqrt(prior / np.maximum(posterior, 1e-12))) / 2

    def threshold(self, epsilon):
        return epsilon**2

    def inverse(self, value):
        return np.sqrt(value)
