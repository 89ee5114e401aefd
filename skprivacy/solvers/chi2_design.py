r"""The chi-squared design of Zamani et al.: a binary Y, by a singular value decomposition.

``P(X|Y) = P(X) -/+ eps C^-1 (sqrt(P(S)) * L)`` with ``C = P(S|X)``, for Y uniform on two symbols.
Both outputs have ``chi2 = eps^2 |L|^2 = eps^2``. For small eps, I(X;Y) is about half of
``eps^2 |P(X)^-1/2 C^-1 P(S)^1/2 L|^2``, so L is the top right singular vector of that matrix among
those orthogonal to ``sqrt(P(S))``: the posteriors of S must sum to 1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .._messages import InPython, Message, Setting
from .._typing import FloatArray
from ..exceptions import SolverError
from ..joint import Joint
from ..measures import Chi2
from ..measures.stacked import Stacked
from .base import Solution, Solver
from .task import DesignTask


@dataclass(frozen=True)
class Chi2DesignSolver(Solver):
    """The closed form for `chi2` and small epsilon, where P(S|X) is square and invertible.

    Optimal for two symbols of X, and nearly optimal for more if epsilon is small.

    Examples
    --------
    >>> from skprivacy import design_mechanism
    >>> joint = [[0.0625, 0.3], [0.1875, 0.45]]
    >>> mechanism = design_mechanism(joint, 0.05, measure="chi2", solver="chi2_design")
    >>> round(mechanism.utility, 8)
    0.07287184
    """

    name: ClassVar[str] = "chi2_design"

    def requirement(self, task: DesignTask) -> str | None:
        if isinstance(task.measure, Stacked):
            return "a single secret, and no columns beside the release"
        return None if isinstance(task.measure, Chi2) else Message(Setting("measure", "chi2"))

    def solve_path(self, task: DesignTask, epsilons: Sequence[float]) -> Iterator[Solution]:
        """Move the posterior of X by epsilon along one direction, and back."""
        joint = task.joint
        if len(joint.p_x) == 1:
            yield from (Solution(np.ones((1, 1))) for _ in epsilons)
            return
        direction = _direction(joint)
        largest = 1 / np.abs(direction / joint.p_x).max()
        for epsilon in epsilons:
            if epsilon > largest:
                raise SolverError(
                    Message(
                        f"The solver 'chi2_design' needs a small epsilon, at most {largest:.6g} "
                        f"here: beyond it ",
                        InPython("P(X|Y)", "a probability"),
                        f" would be negative. Got {epsilon:g}. Use ",
                        Setting("solver", "optimal"),
                        ".",
                    )
                )
            step = np.clip(epsilon * direction / joint.p_x, -1.0, 1.0)  # within, up to rounding
            yield Solution(np.column_stack([1 - step, 1 + step]) / 2)


def _direction(joint: Joint) -> FloatArray:
    """Return ``C^-1 (sqrt(P(S)) * L)``: how the posterior of X moves, per epsilon."""
    n_s, n_x = joint.p_sx.shape
    given_x = joint.p_sx / joint.p_x
    rank = np.linalg.matrix_rank(given_x)
    if n_s != n_x or rank < n_x:
        raise SolverError(
            Message(
                InPython(
                    f"The solver 'chi2_design' needs a square and invertible P(S|X). Got {n_s} x "
                    f"{n_x} of rank {rank}. (Symbols that never occur do not count, and copies of "
                    f"a symbol of S count once.) Use ",
                    f"The solver 'chi2_design' needs as many groups of the sensitive columns as "
                    f"released values, none of them a mixture of others. Got {n_s} and {n_x}. "
                    f"Use ",
                ),
                Setting("solver", "optimal"),
                ".",
            )
        )
    root = np.sqrt(joint.p_s)
    matrix = np.linalg.solve(given_x, np.diag(root))
    # sqrt(P(S)) is a right singular vector itself, with the smallest singular value, 1.
    others = np.eye(n_s) - np.outer(root, root)
    _, _, right = np.linalg.svd(matrix / np.sqrt(joint.p_x)[:, None] @ others)
    direction = matrix @ (others @ right[0])
    # Scaled to length 1 in chi2 as computed: it holds even where P(S|X) is nearly singular.
    length = np.sqrt(joint.p_s @ (joint.deviations @ direction) ** 2)
    return direction / length
