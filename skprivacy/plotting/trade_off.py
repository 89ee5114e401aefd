"""What a budget costs: utility against epsilon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._typing import FloatArray
from .._validation import message
from ..describing.numbers import percent
from ..design import privacy_utility_path
from ..mechanism import Mechanism, name_of_secret
from ..solvers import Solver
from .canvas import (
    axes_for,
    check_joint,
    mechanism_of,
    plain_ticks,
    text_of_measure,
    text_of_solver,
)

if TYPE_CHECKING:
    from ..transformer import PrivacyFunnelTransformer
    from .canvas import Axes

_VISIBLE = 1e-3  # a share that can be seen
# A path around the budget of a transformer, as shares of it: a picture shows no more. With a
# confidence, each budget takes longer.
_AROUND = np.array([0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0])
_SURELY_AROUND = _AROUND[1:]

# Where a design takes seconds rather than a moment, three show which way the curve goes.
_FEW_AROUND, _MANY_SYMBOLS = np.array([0.5, 1.0, 2.0]), 100


class PrivacyUtilityDisplay:
    """What each budget leaves of the utility, for one solver or several.

    Use `from_path` or `from_estimator`.

    Parameters
    ----------
    paths : dict of lists of Mechanism
        A curve for each: mechanisms of several budgets.
    chosen : float or dict, default=None
        A budget to mark. Of several secrets, those of each: the axis has that of the first, and
        the others are in proportion.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Artist

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from skprivacy import PrivacyUtilityDisplay, privacy_utility_path
    >>> path = privacy_utility_path([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], [0.01, 0.02, 0.05])
    >>> display = PrivacyUtilityDisplay.from_path(path, chosen=0.02)
    >>> len(display.lines_)
    1
    """

    def __init__(self, paths: dict[str, list[Any]], *, chosen: Any = None) -> None:
        self.paths = paths
        self.chosen = chosen

    @classmethod
    def from_path(
        cls,
        path: list[Mechanism] | dict[str, list[Mechanism]],
        *,
        chosen: float | Mapping[Any, float] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the mechanisms of `privacy_utility_path`.

        Parameters
        ----------
        path : list of Mechanism, or dict of lists
            A dict gives each curve its name.
        chosen : float or dict, default=None
            A budget to mark.
        ax : matplotlib Axes, default=None
            Where to draw.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> from skprivacy import PrivacyUtilityDisplay, privacy_utility_path
        >>> joint = [[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]]
        >>> solvers = ["optimal", "randomized_response"]
        >>> paths = {s: privacy_utility_path(joint, [0.01, 0.05], solver=s) for s in solvers}
        >>> display = PrivacyUtilityDisplay.from_path(paths)
        >>> [line.get_label() for line in display.lines_]
        ['optimal', 'randomized response']
        """
        paths: dict[str, Any] = {path[0].solver: path} if isinstance(path, list) and path else {}
        paths = path if isinstance(path, dict) else paths
        if not paths or not all(paths.values()):
            raise ValueError(message(cls.__name__, "path", "at least one mechanism", path))
        return cls(paths, chosen=chosen).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        transformer: PrivacyFunnelTransformer,
        *,
        epsilons: Sequence[Any] | FloatArray | None = None,
        solvers: str | Sequence[str | Solver] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw budgets around that of a fitted transformer, for the joint that it has learned.

        Parameters
        ----------
        transformer : PrivacyFunnelTransformer
            Fitted. Its epsilon is marked.
        epsilons : sequence of float, default=None
            The budgets, for several secrets a dict each; None: from a twentieth to ten times that
            of the transformer.
        solvers : list of str, default=None
            A curve for each; None: that of the transformer.
        ax : matplotlib Axes, default=None
            Where to draw.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> import pandas as pd
        >>> from skprivacy import PrivacyUtilityDisplay, PrivacyFunnelTransformer
        >>> frame = pd.DataFrame({"s": list("abab") * 50, "x": list("uuvw") * 50})
        >>> fitted = PrivacyFunnelTransformer(0.05, sensitive="s").fit(frame)
        >>> display = PrivacyUtilityDisplay.from_estimator(fitted, epsilons=[0.01, 0.05, 0.2])
        >>> display.chosen
        0.05
        """
        mechanism = mechanism_of(transformer)
        for secret in mechanism.secrets.values():
            check_joint(secret, cls)
        solvers = [solvers] if isinstance(solvers, str) else solvers
        options: dict[str, Any] = {}
        if not solvers:
            options = {name: getattr(transformer, name) for name in OWN}
        paths = {
            solver if isinstance(solver, str) else solver.name: path_around(
                mechanism, solver, epsilons, is_own=not solvers, **options
            )
            for solver in solvers or [transformer.solver]
        }
        return cls(paths, chosen=mechanism.epsilon).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw; the band shows the most that a better mechanism could keep.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw.
        """
        self.figure_, self.ax_ = axes_for(ax, (7.6, 3.8))
        self.lines_ = []
        paths = {name: _drawable(path) for name, path in self.paths.items()}
        for name, path in paths.items():
            budgets = [_budget(mechanism) for mechanism in path]
            kept = [mechanism.normalized_utility for mechanism in path]
            (line,) = self.ax_.plot(budgets, kept, label=_about_curve(name, path), lw=2)
            self.lines_.append(line)
        self._draw_bound([mechanism for path in paths.values() for mechanism in path])
        first = next(mechanism for path in self.paths.values() for mechanism in path)
        self.ax_.set(
            xscale="log",
            xlabel=_about_budget(first),
            ylabel="utility kept",
            ylim=(0, 1.03),
        )
        plain_ticks(self.ax_)
        self.ax_.yaxis.set_major_formatter("{x:.0%}")
        self.ax_.grid(alpha=0.3)
        chosen = self.chosen
        if isinstance(chosen, Mapping):
            chosen = next(iter(chosen.values()))
        if chosen and np.isfinite(chosen):
            self.ax_.axvline(chosen, color="0.45", ls="--", lw=1.2, zorder=0)
            self.ax_.annotate(
                f"ε = {chosen:g}",
                (chosen, 1.0),
                xycoords=self.ax_.get_xaxis_transform(),
                ha="center",
                va="bottom",
            )
        self.ax_.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        return self

    def _draw_bound(self, mechanisms: Sequence[Mechanism]) -> None:
        """Draw the tightest bound that any of the curves proves, above the best of them."""
        if not mechanisms:
            return
        budgets = sorted({_budget(mechanism) for mechanism in mechanisms})
        at = {budget: [m for m in mechanisms if _budget(m) == budget] for budget in budgets}
        best = np.array([max(m.normalized_utility for m in at[budget]) for budget in budgets])
        bound = [min(m.normalized_upper_bound for m in at[budget]) for budget in budgets]
        bound = np.maximum(bound, best)
        room = "room above, at most"
        if mechanisms[0].confidence is not None:  # bounds are about the rows
            room = "kept for the rows alone, at most"
        label = room if (bound - best).max() > _VISIBLE else None
        self.ax_.fill_between(budgets, best, bound, color="0.5", alpha=0.25, lw=0, label=label)
        if label is None:
            certified = "certified: no mechanism keeps more"
            self.ax_.plot(budgets, bound, color="0.2", ls=":", lw=1.4, zorder=3, label=certified)


# Parameters of a transformer that hold for its own solver only.
OWN = "max_outputs", "solver_options"


def path_around(
    mechanism: Mechanism,
    solver: str | Solver,
    epsilons: Iterable[Any] | None = None,
    *,
    is_own: bool = False,
    **options: Any,
) -> list[Mechanism]:
    """Return mechanisms for budgets around that of a mechanism, under its joint and as sure.

    Of several secrets, all budgets are multiplied by the same factors. is_own : whether the
    mechanism is what the solver designs with these options: it is then not designed again.
    """
    around = _AROUND if mechanism.confidence is None else _SURELY_AROUND
    around = _FEW_AROUND if len(mechanism.x_labels) > _MANY_SYMBOLS else around
    joints = {name: secret.joint for name, secret in mechanism.secrets.items()}
    budgets: list[Any] = _around(mechanism, around)
    if epsilons is not None:
        one = next(iter(joints))
        budgets = [each if isinstance(each, Mapping) else {one: each} for each in epsilons]
    own = {name: secret.epsilon for name, secret in mechanism.secrets.items()}
    new = [each for each in budgets if not (is_own and each == own)]
    path: list[Mechanism] = new and privacy_utility_path(
        joints,
        new,
        measure=mechanism.measure,
        scope=mechanism.scope,
        utility=mechanism.objective,
        solver=solver,
        confidence=mechanism.confidence,
        n_samples=mechanism.n_samples,
        beside=mechanism.strata,
        **options,
    )
    designed = iter(path)
    return [mechanism if is_own and each == own else next(designed) for each in budgets]


def _around(mechanism: Mechanism, around: FloatArray) -> list[dict[Any, float]]:
    """Return budgets around those of a mechanism; none that columns beside it alone exceed."""
    middle = {}
    for name, secret in mechanism.secrets.items():
        budget = secret.epsilon
        if not np.isfinite(budget):
            budget = secret.leakage_in(secret.scope)
        middle[name] = budget if 0 < budget < np.inf else 0.01
    least = 0.0 if mechanism.strata is None else _least_factor(mechanism, middle)
    factors = [float(factor) for factor in around if factor >= min(least, 1.0)]
    return [{name: factor * each for name, each in middle.items()} for factor in factors]


def _least_factor(mechanism: Mechanism, middle: Mapping[Any, float]) -> float:
    """Return the share of the budgets that the columns beside the outputs use by themselves."""
    if mechanism.confidence is not None:
        return 1.0  # smaller ones may do, but that takes long to find out
    nothing = mechanism.with_channel(mechanism.independent).secrets
    used = (each.leakage_in(mechanism.scope) / middle[name] for name, each in nothing.items())
    return max(used) * (1 + 1e-9)


def _budget(mechanism: Mechanism) -> float:
    """Return where a mechanism is on the axis: by the first of several budgets."""
    return next(iter(mechanism.secrets.values())).epsilon


def _about_budget(mechanism: Mechanism) -> str:
    """Return the label of the axis of budgets: by which measure, and for what they hold."""
    about = f"{text_of_measure(mechanism.measure)}, {mechanism.scope.replace('_', ' ')}"
    if len(mechanism.secrets) > 1:
        first, *others = map(name_of_secret, mechanism.secrets)
        about = f"{first}; {about}; {', '.join(others)} in proportion"
    if mechanism.confidence is None:
        return f"budget ε ({about})"
    sure = f"{percent(mechanism.confidence)} confidence, {mechanism.n_samples:,.0f} rows"
    return f"budget ε for the population ({about}; {sure})"


def _about_curve(name: str, path: Sequence[Mechanism]) -> str:
    """Return the label of a curve: the solver, and for what its budgets hold."""
    confidence = path[0].confidence if path else None
    if confidence is None:
        return text_of_solver(name)
    sure = f"{percent(confidence)} confidence"
    # Without a solver that was asked for, the confidence is all there is to say.
    return f"with {sure}" if name == path[0].solver else f"{text_of_solver(name)}, {sure}"


def _drawable(path: Sequence[Mechanism]) -> list[Mechanism]:
    """Return the mechanisms whose budgets have a place on a logarithmic axis, in order."""
    return sorted((each for each in path if 0 < _budget(each) < np.inf), key=_budget)
