"""Display of utility against epsilon."""

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
    legend_above,
    mechanism_of,
    plain_ticks,
    text_of_measure,
    text_of_solver,
)

if TYPE_CHECKING:
    from ..transformer import PrivacyFunnelTransformer
    from .canvas import Axes

# The smallest share that is visible.
_VISIBLE = 1e-3

# Default budgets, as multiples of the budget of a transformer: without a confidence, with one
# (each takes longer), and with many symbols (each takes seconds, three show the trend).
_AROUND = [0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
_CONFIDENT_AROUND, _FEW_AROUND, _MANY_SYMBOLS = _AROUND[1:], [0.5, 1.0, 2.0], 100


class PrivacyUtilityDisplay:
    """The utility that each budget allows, for one solver or several.

    Use `from_path` or `from_estimator`.

    Parameters
    ----------
    paths : dict of lists of Mechanism
        Curves by name, each with mechanisms for several budgets.
    chosen : float or dict, default=None
        A budget to mark. For several secrets, a dict: the axis shows the budget of the first, and
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
        """Draw budgets around the budget of a fitted transformer, for the joint it has learned.

        Parameters
        ----------
        transformer : PrivacyFunnelTransformer
            Fitted. Its epsilon is marked.
        epsilons : sequence of float, default=None
            The budgets, for several secrets a dict each; None: from a twentieth to ten times the
            budget of the transformer.
        solvers : list of str, default=None
            A curve for each; None: the solver of the transformer.
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
            options = {"is_own": True} | {name: getattr(transformer, name) for name in OWN}
        paths = {}
        for solver in solvers or [transformer.solver]:
            name = solver if isinstance(solver, str) else solver.name
            paths[name] = path_around(mechanism, solver, epsilons, **options)
        return cls(paths, chosen=mechanism.epsilon).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw; the band shows the most utility that a better mechanism could keep.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw.
        """
        self.figure_, self.ax_ = axes_for(ax, (7.6, 3.2))
        self.lines_ = []
        paths = {name: _drawable(path) for name, path in self.paths.items()}
        for name, path in paths.items():
            budgets = [_budget(mechanism) for mechanism in path]
            # The mechanism of a smaller budget keeps a larger one too.
            kept = np.maximum.accumulate([mechanism.normalized_utility for mechanism in path])
            (line,) = self.ax_.plot(budgets, kept, label=_curve_label(name, path), lw=2)
            self.lines_.append(line)
        self._draw_bound([mechanism for path in paths.values() for mechanism in path])
        first = next(mechanism for path in self.paths.values() for mechanism in path)
        label = _budget_label(first)
        self.ax_.set(xscale="log", xlabel=label, ylabel="utility kept", ylim=(0, 1.03))
        plain_ticks(self.ax_)
        self.ax_.yaxis.set_major_formatter("{x:.0%}")
        self.ax_.grid(alpha=0.3)
        chosen = self.chosen
        if isinstance(chosen, Mapping):
            chosen = next(iter(chosen.values()))
        if chosen and np.isfinite(chosen):
            self.ax_.axvline(chosen, color="0.45", ls="--", lw=1.2, zorder=0)
            place: dict[str, Any] = {"xycoords": self.ax_.get_xaxis_transform()}
            place |= {"xytext": (4, 4), "textcoords": "offset points"}
            self.ax_.annotate(f"ε = {chosen:g}", (chosen, 0.0), **place)
        legend_above(self.ax_, 2)
        return self

    def _draw_bound(self, mechanisms: Sequence[Mechanism]) -> None:
        """Draw the tightest bound of all curves, above the best of them, where one is proven."""
        if not mechanisms:
            return
        budgets = sorted({_budget(mechanism) for mechanism in mechanisms})
        at = [[m for m in mechanisms if _budget(m) == budget] for budget in budgets]
        best = np.array([max(m.normalized_utility for m in each) for each in at])
        best = np.maximum.accumulate(best)
        bound = np.maximum([min(m.normalized_upper_bound for m in each) for each in at], best)
        is_proven = (bound < 1) | (
            best > 1 - _VISIBLE
        )  # that nothing keeps more than all is known
        if not is_proven.any():
            return
        room = "room above, at most"
        if mechanisms[0].confidence is not None:  # bounds are about the rows
            room = "kept for the rows alone, at most"
        label = room if (bound - best)[is_proven].max() > _VISIBLE else None
        style: dict[str, Any] = {"color": "0.5", "alpha": 0.25, "lw": 0, "label": label}
        self.ax_.fill_between(budgets, best, bound, where=is_proven, **style)
        if label is None and is_proven.all():
            certified = "certified: no mechanism keeps more"
            self.ax_.plot(budgets, bound, color="0.2", ls=":", lw=1.4, zorder=3, label=certified)


# Parameters of a transformer that apply only to its own solver.
OWN = "max_outputs", "solver_options"


def path_around(
    mechanism: Mechanism,
    solver: str | Solver,
    epsilons: Iterable[Any] | None = None,
    *,
    is_own: bool = False,
    **options: Any,
) -> list[Mechanism]:
    """Return mechanisms for budgets around the budget of a mechanism, otherwise like it.

    The budgets of several secrets are multiplied by the same factors. is_own : whether the
    mechanism is the solver's design with these options, so that it need not be designed again.
    """
    joints = {name: secret.joint for name, secret in mechanism.secrets.items()}
    if epsilons is None:
        budgets = _budgets_around(mechanism)
    else:
        name = next(iter(joints))
        budgets = [each if isinstance(each, Mapping) else {name: each} for each in epsilons]
    known = {name: secret.epsilon for name, secret in mechanism.secrets.items()} if is_own else {}
    new = [each for each in budgets if each != known]
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
    return [mechanism if each == known else next(designed) for each in budgets]


def _budgets_around(mechanism: Mechanism) -> list[Any]:
    """Return budgets around those of a mechanism; none that columns beside it alone exceed."""
    around = _AROUND if mechanism.confidence is None else _CONFIDENT_AROUND
    around = _FEW_AROUND if len(mechanism.x_labels) > _MANY_SYMBOLS else around
    middle = {}
    for name, secret in mechanism.secrets.items():
        budget = secret.epsilon
        if not np.isfinite(budget):
            budget = secret.leakage_in(secret.scope)
        middle[name] = budget if 0 < budget < np.inf else 0.01
    least = 0.0 if mechanism.strata is None else _least_factor(mechanism, middle)
    factors = [factor for factor in around if factor >= min(least, 1.0)]
    return [{name: factor * each for name, each in middle.items()} for factor in factors]


def _least_factor(mechanism: Mechanism, middle: Mapping[Any, float]) -> float:
    """Return the share of the budgets that the columns beside the outputs use by themselves."""
    if mechanism.confidence is not None:
        return 1.0  # a smaller factor may be enough, but takes long to find
    nothing = mechanism.with_channel(mechanism.independent).secrets
    used = (each.leakage_in(mechanism.scope) / middle[name] for name, each in nothing.items())
    return max(used) * (1 + 1e-9)


def _budget(mechanism: Mechanism) -> float:
    """Return the place of a mechanism on the axis: the budget of its first secret."""
    return next(iter(mechanism.secrets.values())).epsilon


def _budget_label(mechanism: Mechanism) -> str:
    """Return the label of the axis of budgets, with measure, scope and confidence."""
    about = f"{text_of_measure(mechanism.measure)}, {mechanism.scope.replace('_', ' ')}"
    if len(mechanism.secrets) > 1:
        first, *others = map(name_of_secret, mechanism.secrets)
        about = f"{first}; {about}; {', '.join(others)} in proportion"
    if mechanism.confidence is None:
        return f"budget ε ({about})"
    sure = f"{percent(mechanism.confidence)} confidence, {mechanism.n_samples:,.0f} rows"
    return f"budget ε for the population ({about}; {sure})"


def _curve_label(name: str, path: Sequence[Mechanism]) -> str:
    """Return the label of a curve: the solver, and the confidence."""
    confidence = path[0].confidence if path else None
    if confidence is None:
        return text_of_solver(name)
    sure = f"{percent(confidence)} confidence"
    # The solver is named only if it was chosen.
    return f"with {sure}" if name == path[0].solver else f"{text_of_solver(name)}, {sure}"


def _drawable(path: Sequence[Mechanism]) -> list[Mechanism]:
    """Return the mechanisms with positive, finite budgets, which fit on the axis, in order."""
    return sorted((each for each in path if 0 < _budget(each) < np.inf), key=_budget)
