"""Displays, in scikit-learn's idiom: what a budget costs, what a mechanism does, what it leaks.

matplotlib is imported when something is drawn.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Hashable, Iterable, Sequence, Sized
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._typing import FloatArray, IntArray
from ._validation import message
from .design import privacy_utility_path
from .mechanism import Mechanism
from .naming import readable
from .solvers import Solver

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure, SubFigure

    from .metrics import PopulationLeakage
    from .transformer import PrivacyFunnelTransformer

# Above this many rows or columns of a channel, numbers in its cells cannot be read.
_MOST_ANNOTATED = 18
_MOST_TICKS = 40
_LONGEST_LABEL = 22
_MOST_GROUPS = 8
_VISIBLE = 1e-3  # a share that can be seen
_MARKERS = "osD^vP*X"

# A path around the budget of a transformer, as shares of it.
_AROUND = np.geomspace(0.05, 10, 16)


class PrivacyUtilityDisplay:
    """What each budget leaves of the utility, for one solver or several.

    Use `from_path` or `from_estimator`.

    Parameters
    ----------
    paths : dict of lists of Mechanism
        A curve for each: mechanisms of several budgets.
    chosen : float, default=None
        A budget to mark.

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

    def __init__(self, paths: dict[str, list[Mechanism]], *, chosen: float | None = None) -> None:
        self.paths = paths
        self.chosen = chosen

    @classmethod
    def from_path(
        cls,
        path: list[Mechanism] | dict[str, list[Mechanism]],
        *,
        chosen: float | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the mechanisms of `privacy_utility_path`.

        Parameters
        ----------
        path : list of Mechanism, or dict of lists
            A dict gives each curve its name.
        chosen : float, default=None
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
        paths = path if isinstance(path, dict) else {path[0].solver: path} if path else {}
        if not paths or not all(paths.values()):
            raise ValueError(message(cls.__name__, "path", "at least one mechanism", path))
        return cls(paths, chosen=chosen).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        transformer: PrivacyFunnelTransformer,
        *,
        epsilons: Sequence[float] | FloatArray | None = None,
        solvers: str | Sequence[str | Solver] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the budgets around that of a fitted transformer, under what it has learned.

        Parameters
        ----------
        transformer : PrivacyFunnelTransformer
            Fitted. Its epsilon is marked.
        epsilons : sequence of float, default=None
            The budgets; None: from a twentieth to ten times that of the transformer.
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
        mechanism = _mechanism_of(transformer, cls)
        solvers = [solvers] if isinstance(solvers, str) else solvers
        options = {} if solvers else transformer.solver_options or {}
        paths = {
            solver if isinstance(solver, str) else solver.name: path_around(
                mechanism, solver, epsilons, **options
            )
            for solver in solvers or [transformer.solver]
        }
        return cls(paths, chosen=mechanism.epsilon).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw; the band is what a better mechanism could keep at most.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw.
        """
        self.figure_, self.ax_ = _axes(ax, (7.6, 3.8))
        self.lines_ = []
        paths = {name: _drawable(path) for name, path in self.paths.items()}
        for name, path in paths.items():
            budgets = [mechanism.epsilon for mechanism in path]
            kept = [mechanism.normalized_utility for mechanism in path]
            (line,) = self.ax_.plot(budgets, kept, label=_text_of_solver(name), lw=2)
            self.lines_.append(line)
        self._draw_bound([mechanism for path in paths.values() for mechanism in path])
        first = next(mechanism for path in self.paths.values() for mechanism in path)
        self.ax_.set(
            xscale="log",
            xlabel=f"budget ε ({type(first.measure).__name__}, {first.scope.replace('_', ' ')})",
            ylabel="utility kept",
            ylim=(0, 1.03),
        )
        self.ax_.yaxis.set_major_formatter("{x:.0%}")
        self.ax_.grid(alpha=0.3)
        if self.chosen and np.isfinite(self.chosen):
            self.ax_.axvline(self.chosen, color="0.45", ls="--", lw=1.2, zorder=0)
            self.ax_.annotate(
                f"ε = {self.chosen:g}",
                (self.chosen, 1.0),
                xycoords=self.ax_.get_xaxis_transform(),
                ha="center",
                va="bottom",
            )
        self.ax_.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
        return self

    def _draw_bound(self, mechanisms: Sequence[Mechanism]) -> None:
        """Draw the tightest bound that one of the curves proves, above the best of them."""
        if not mechanisms:
            return
        budgets = sorted({mechanism.epsilon for mechanism in mechanisms})
        at = {budget: [m for m in mechanisms if m.epsilon == budget] for budget in budgets}
        best = np.array([max(m.normalized_utility for m in at[budget]) for budget in budgets])
        bound = [min(m.normalized_upper_bound for m in at[budget]) for budget in budgets]
        bound = np.maximum(bound, best)
        label = "room above, at most" if (bound - best).max() > _VISIBLE else None
        self.ax_.fill_between(budgets, best, bound, color="0.5", alpha=0.25, lw=0, label=label)
        if label is None:
            self.ax_.plot([], [], " ", label="certified: no mechanism keeps more")


def path_around(
    mechanism: Mechanism,
    solver: str | Solver,
    epsilons: Iterable[float] | None = None,
    **options: Any,
) -> list[Mechanism]:
    """Return mechanisms for budgets around that of a mechanism, under its joint."""
    if epsilons is None:
        middle = mechanism.epsilon
        if not np.isfinite(middle):
            middle = mechanism.leakage_in(mechanism.scope)
        epsilons = (middle if 0 < middle < np.inf else 0.01) * _AROUND
    return privacy_utility_path(
        mechanism._joint,
        epsilons,
        measure=mechanism.measure,
        scope=mechanism.scope,
        utility=mechanism.objective,
        solver=solver,
        **options,
    )


def _drawable(path: Sequence[Mechanism]) -> list[Mechanism]:
    """Return the mechanisms whose budgets have a place on a logarithmic axis, in order."""
    drawable = [mechanism for mechanism in path if 0 < mechanism.epsilon < np.inf]
    return sorted(drawable, key=lambda mechanism: mechanism.epsilon)


class MechanismDisplay:
    """The channel P(Y|X) as a heat map, with P(Y) above.

    Use `from_mechanism` or `from_estimator`.

    Parameters
    ----------
    mechanism : Mechanism

    Attributes
    ----------
    ax_ : matplotlib Axes
        Of the heat map.
    ax_p_y_ : matplotlib Axes
        Of P(Y).
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from skprivacy import MechanismDisplay, design_mechanism
    >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
    >>> MechanismDisplay.from_mechanism(mechanism).ax_.get_ylabel()
    'X'
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism

    @classmethod
    def from_mechanism(cls, mechanism: Mechanism, *, ax: Axes | None = None) -> Self:
        """Draw a mechanism.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> from skprivacy import MechanismDisplay, design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> display = MechanismDisplay.from_mechanism(mechanism)
        >>> [label.get_text() for label in display.ax_.get_yticklabels()]
        ['0', '1', '2']
        """
        return cls(_checked(mechanism, cls, needs_joint=False)).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls, transformer: PrivacyFunnelTransformer, *, ax: Axes | None = None
    ) -> Self:
        """Draw the mechanism of a fitted transformer.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> import pandas as pd
        >>> from skprivacy import MechanismDisplay, PrivacyFunnelTransformer
        >>> frame = pd.DataFrame({"s": list("abab") * 50, "x": list("uuvw") * 50})
        >>> fitted = PrivacyFunnelTransformer(0.05, sensitive="s").fit(frame)
        >>> display = MechanismDisplay.from_estimator(fitted)
        >>> [label.get_text() for label in display.ax_.get_yticklabels()]
        ['u', 'v', 'w']
        """
        return cls(_mechanism_of(transformer, cls, needs_joint=False)).plot(ax=ax)

    def plot(self, ax: Axes | None = None, *, cmap: str | Colormap = "Blues") -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; it is divided in two.
        cmap : str or matplotlib Colormap, default="Blues"
            The colours of probabilities.
        """
        rows, columns = self._shown()
        channel = self.mechanism.channel[np.ix_(rows, columns)]
        n_x, n_y = channel.shape
        size = (min(14, 2.6 + 0.62 * n_y), min(12, 2.2 + 0.42 * n_x))
        self.figure_, (self.ax_p_y_, self.ax_) = _divided(
            ax, size, nrows=2, height_ratios=[1, min(6.0, max(2.0, 0.45 * n_x))]
        )
        image = self.ax_.imshow(channel, cmap=cmap, vmin=0, vmax=1, aspect="auto")
        if max(n_x, n_y) <= _MOST_ANNOTATED:
            for x, y in np.argwhere(channel >= 0.005):
                red, green, blue, _ = image.cmap(image.norm(channel[x, y]))
                is_bright = 0.3 * red + 0.6 * green + 0.1 * blue > 0.5
                style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "small"}
                color = "black" if is_bright else "white"
                self.ax_.text(y, x, f"{channel[x, y]:.2f}", color=color, **style)
        x_labels, y_labels = self.mechanism.x_labels, self.mechanism.y_labels
        _label_ticks(self.ax_.yaxis, [x_labels[i] for i in rows])
        _label_ticks(self.ax_.xaxis, [y_labels[i] for i in columns], rotation=40)
        self.ax_.set(xlabel=_of("released Y", n_y, y_labels), ylabel=_of("X", n_x, x_labels))
        self.ax_p_y_.bar(range(n_y), self.mechanism.p_y[columns], color="0.6")
        self.ax_p_y_.set(xlim=(-0.5, n_y - 0.5), xticks=[], ylabel="P(Y)")
        self.ax_p_y_.spines[["top", "right"]].set_visible(False)
        return self

    def _shown(self) -> list[IntArray]:
        """Return the rows and columns to draw: the most frequent ones, in their order."""
        shares = self.mechanism.p_x, self.mechanism.p_y
        return [np.sort(np.argsort(-share, kind="stable")[:_MOST_TICKS]) for share in shares]


class LeakageDisplay:
    """What each output leaks, against the budget, and what it says about S.

    Use `from_mechanism` or `from_estimator`.

    Parameters
    ----------
    mechanism : Mechanism
        With its joint distribution.
    limits : PopulationLeakage, default=None
        Limits of the leakage under the true joint distribution, to be marked.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Of the leakage of each output.
    ax_posterior_ : matplotlib Axes
        Of P(S|y) against P(S).
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from skprivacy import LeakageDisplay, design_mechanism
    >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
    >>> LeakageDisplay.from_mechanism(mechanism).ax_.get_xlabel()
    'leakage (KL)'
    """

    def __init__(self, mechanism: Mechanism, *, limits: PopulationLeakage | None = None) -> None:
        self.mechanism = mechanism
        self.limits = limits

    @classmethod
    def from_mechanism(
        cls,
        mechanism: Mechanism,
        *,
        limits: PopulationLeakage | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw a mechanism.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> from skprivacy import LeakageDisplay, design_mechanism
        >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
        >>> display = LeakageDisplay.from_mechanism(mechanism)
        >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
        ['budget, for every output']
        """
        return cls(_checked(mechanism, cls), limits=limits).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        transformer: PrivacyFunnelTransformer,
        *,
        limits: PopulationLeakage | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the mechanism of a fitted transformer.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> import pandas as pd
        >>> from skprivacy import LeakageDisplay, PrivacyFunnelTransformer, population_leakage
        >>> frame = pd.DataFrame({"s": list("abab") * 50, "x": list("uuvw") * 50})
        >>> fitted = PrivacyFunnelTransformer(0.05, sensitive="s").fit(frame)
        >>> limits = population_leakage(fitted)
        >>> display = LeakageDisplay.from_estimator(fitted, limits=limits)
        >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
        ['budget, for every output', 'population, 95% limit']
        """
        return cls(_mechanism_of(transformer, cls), limits=limits).plot(ax=ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; it is divided in two.
        """
        mechanism = self.mechanism
        # With many outputs, those that leak most.
        most = np.argsort(-mechanism.leakage, kind="stable")[:_MOST_TICKS]
        self._outputs = np.sort(most)
        n_y = len(self._outputs)
        size = (9.5, min(12, 1.6 + 0.36 * n_y))
        self.figure_, (self.ax_, self.ax_posterior_) = _divided(ax, size, ncols=2)
        self._draw_leakage()
        self._draw_posteriors()
        for axis in (self.ax_, self.ax_posterior_):
            axis.set_ylim(n_y - 0.4, -0.6)
            axis.spines[["top", "right"]].set_visible(False)
        return self

    def _draw_leakage(self) -> None:
        mechanism, axis = self.mechanism, self.ax_
        leakage, n_y = mechanism.leakage[self._outputs], len(self._outputs)
        shown = [*leakage, mechanism.epsilon]
        if self.limits is not None:
            shown += self.limits.per_output.iloc[self._outputs].tolist()
        end = 1.15 * max((x for x in shown if np.isfinite(x) and x > 0), default=1.0)
        axis.barh(range(n_y), np.minimum(leakage, end), color="tab:blue")
        self._draw_lines(axis)
        if self.limits is not None:
            limits = self.limits.per_output.iloc[self._outputs]
            label = f"population, {self.limits.confidence:.0%} limit"
            at = np.minimum(limits, end)
            axis.plot(at, range(n_y), "|", color="tab:orange", ms=11, mew=2, label=label)
        name = type(mechanism.measure).__name__
        axis.set(xlim=(0, end), xlabel=f"leakage ({name})")
        axis.set_ylabel(_of("released Y", n_y, mechanism.y_labels))
        if axis.lines:
            _legend_above(axis, 2)
        _label_ticks(axis.yaxis, [mechanism.y_labels[i] for i in self._outputs])

    def _draw_lines(self, axis: Axes) -> None:
        """Draw the budget and, on average, what is reached."""
        mechanism, per_output = self.mechanism, self.mechanism.scope == "per_output"
        if np.isfinite(mechanism.epsilon):
            label = "budget, for every output" if per_output else "budget, on average"
            axis.axvline(mechanism.epsilon, color="tab:red", lw=1.6, label=label)
        if not per_output:
            average = mechanism.average_leakage
            axis.axvline(average, color="0.5", ls=":", lw=2, label="leakage on average")

    def _draw_posteriors(self) -> None:
        mechanism, axis = self.mechanism, self.ax_posterior_
        prior, labels = mechanism._joint.sum(axis=1), readable(mechanism.s_labels or ())
        groups = np.sort(np.argsort(-prior, kind="stable")[:_MOST_GROUPS])
        for i, group in enumerate(groups):
            axis.axvline(prior[group], color=f"C{i}", lw=1, alpha=0.6)
            posterior = mechanism.sensitive_posterior[self._outputs, group]
            style: dict[str, Any] = {"color": f"C{i}", "marker": _MARKERS[i], "s": 26, "zorder": 3}
            axis.scatter(posterior, range(len(posterior)), label=_short(labels[group]), **style)
        left_out = len(prior) - len(groups)
        more = f"; {left_out} smaller groups are not drawn" if left_out else ""
        axis.set(xlabel=f"P(S | y); lines: P(S){more}", xlim=(0, 1), yticks=[])
        axis.xaxis.set_major_formatter("{x:.0%}")
        _legend_above(axis, 4)


def _pyplot() -> Any:
    """Return matplotlib.pyplot, if it is there."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Displays and the pictures of a report need matplotlib: pip install 'skprivacy[plot]'."
        ) from error
    return plt


def svg_of(draw: Callable[[], Figure], style: dict[str, Any]) -> tuple[bytes, int]:
    """Return the SVG file of a figure that is drawn in a style, and its width in pixels."""
    plt = _pyplot()
    with plt.style.context("default"), plt.rc_context({**style, "svg.hashsalt": "skprivacy"}):
        figure, content = draw(), io.BytesIO()
        figure.savefig(content, format="svg", transparent=True, metadata={"Date": None})
    plt.close(figure)
    return content.getvalue(), round(96 * figure.get_figwidth())


def _mechanism_of(
    transformer: PrivacyFunnelTransformer, display: type, needs_joint: bool = True
) -> Mechanism:
    check_is_fitted(transformer)
    return _checked(transformer.mechanism_, display, needs_joint)


def _checked(mechanism: object, display: type, needs_joint: bool = True) -> Mechanism:
    if not isinstance(mechanism, Mechanism):
        raise TypeError(message(display.__name__, "mechanism", "a Mechanism", mechanism))
    if needs_joint and mechanism.p_sx is None:
        raise ValueError(
            f"{display.__name__} needs the joint distribution, which was left out when this "
            f"mechanism was saved."
        )
    return mechanism


def _axes(ax: Axes | None, size: tuple[float, float]) -> tuple[Figure | SubFigure, Axes]:
    if ax is None:
        figure, ax = _pyplot().subplots(figsize=size, layout="constrained")
        return figure, ax
    return ax.figure, ax


def _divided(
    ax: Axes | None, size: tuple[float, float], **grid: Any
) -> tuple[Figure | SubFigure, Sequence[Axes]]:
    """Return a figure and two axes; those given are divided."""
    shape = grid.pop("nrows", 1), grid.pop("ncols", 1)
    if ax is None:
        figure, axes = _pyplot().subplots(
            *shape, figsize=size, layout="constrained", gridspec_kw=grid or None
        )
        return figure, axes
    place = ax.get_subplotspec()
    if place is None:
        raise ValueError("The 'ax' parameter must be from plt.subplots: it is divided in two.")
    ax.set_axis_off()
    cells = place.subgridspec(*shape, **grid)
    return ax.figure, [ax.figure.add_subplot(cells[i]) for i in range(2)]


def _legend_above(axis: Axes, ncols: int) -> None:
    axis.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=ncols)


def _label_ticks(axis: Axis, labels: Sequence[Hashable], rotation: float = 0) -> None:
    """Label the rows or columns of a picture, not more of them than can be read."""
    step = 1 + (len(labels) - 1) // _MOST_TICKS
    texts = [_short(text) for text in readable(labels)]
    axis.set_ticks(range(0, len(labels), step), texts[::step])
    if rotation:
        axis.set_tick_params(rotation=rotation)
        for label in axis.get_ticklabels():
            label.set_horizontalalignment("right")
            label.set_rotation_mode("anchor")


def _of(name: str, n_shown: int, labels: Sized) -> str:
    """Say that not all are shown, if so."""
    return name if n_shown == len(labels) else f"{name}: {n_shown} of {len(labels)}"


def _short(text: str) -> str:
    """Return a label that is not too long, and nothing but text to matplotlib."""
    if len(text) > _LONGEST_LABEL:
        text = text[: _LONGEST_LABEL - 1] + "…"
    # $ starts a formula, and a label that starts with _ is left out of legends.
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")


def _text_of_solver(name: str) -> str:
    return str(name).replace("_", " ")
