"""Vertices by cdd's double description method: the only module that imports `cdd`."""

from typing import Any

import numpy as np

from .._typing import FloatArray
from ..exceptions import SolverError


def simplex_vertices(rows: FloatArray, offsets: FloatArray) -> FloatArray:
    """Return the vertices of ``{W >= 0, sum W = 1, rows @ W <= offsets}`` as rows.

    cdd works in floating point here and sometimes gives up; that is a `SolverError`.
    """
    cdd = _cdd()
    n_rows, n = rows.shape
    # cdd's rows are (b, -A) for b - A W >= 0; the first one is an equation.
    system = np.zeros((1 + n + n_rows, 1 + n))
    system[0, 0], system[0, 1:] = 1.0, -1.0
    system[1 : 1 + n, 1:] = np.eye(n)
    system[1 + n :, 0], system[1 + n :, 1:] = offsets, -rows
    try:
        matrix = cdd.matrix_from_array(
            system.tolist(), rep_type=cdd.RepType.INEQUALITY, lin_set={0}
        )
        generators = cdd.copy_generators(cdd.polyhedron_from_matrix(matrix)).array
    except RuntimeError as error:
        raise SolverError(f"cdd could not enumerate the vertices: {error}.") from error
    points = np.array(generators, dtype=float).reshape(-1, 1 + n)
    points = np.maximum(points[points[:, 0] == 1, 1:], 0.0)
    return points / points.sum(axis=1, keepdims=True)


def _cdd() -> Any:
    """Return the module if it is installed: it is GPL and must be compiled, hence an extra."""
    try:
        import cdd
    except ImportError as error:
        raise ImportError(
            "engine='cdd' needs the extra cdd, which is built with a C compiler: run "
            "pip install \".[cdd]\" in a clone. The default, engine='parametric', needs no extra."
        ) from error
    return cdd
