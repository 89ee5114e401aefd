"""Displays, in scikit-learn's idiom: what a budget costs, what a mechanism does, what it leaks.

matplotlib is imported when something is drawn.
"""

import io

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._validation import message
from .design import privacy_utility_path
from .mechanism import Mechanism
from .naming import readable

# Above this many rows or columns of a channel, numbers in its cells cannot be read.
_MOST_ANNOTATED = 18
_MOST_TICKS = 40
_LONGEST_LABEL = 22

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

    def __init__(self, paths, *, chosen=None):
        self.paths = paths
        self.chosen = chosen

    @classmethod
    def from_path(cls, path, *, chosen=None, ax=None):
        """Draw the mechanisms of `privacy_utility_path`.

        Parameters
        ----------
        path : list of Mechanism, or dict of lists
            A dict gives each curve its name.
        chosen : float, default=None
            A budget to mark.
        ax : matplotlib Axes, default=None
            Where to draw.
        """
        paths = path if isinstance(path, dict) else {path[0].solver: path}
        return cls(paths, chosen=chosen).plot(ax=ax)

    @classmethod
    def from_estimator(cls, transformer, *, epsilons=None, solvers=None, ax=None):
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
        """
        mechanism = _mechanism_of(transformer, cls)
        if epsilons is None:
            epsilons = (mechanism.epsilon or 0.01) * _AROUND
        problem = {
            "measure": mechanism.measure,
            "scope": mechanism.scope,
            "utility": mechanism.objective,
        }
        paths = {
            solver: privacy_utility_path(mechanism.p_sx, epsilons, solver=solver, **problem)
            for solver in solvers or [transformer.solver]
        }
        return cls(paths, chosen=mechanism.epsilon).plot(ax=ax)

    def plot(self, ax=None):
        """Draw; the band is what a better mechanism could keep at most.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw.
        """
        self.figure_, self.ax_ = _axes(ax, (5.6, 3.8))
        self.lines_ = []
        for name, path in self.paths.items():
            path = sorted(path, key=lambda mechanism: mechanism.epsilon)
            budgets = [mechanism.epsilon for mechanism in path]
            kept = [mechanism.normalized_utility for mechanism in path]
            (line,) = self.ax_.plot(budgets, kept, label=_text_of_solver(name), lw=2)
            self.lines_.append(line)
        self._draw_bound()
        measure = path[0].measure
        self.ax_.set(
            xscale="log",
            xlabel=f"budget ε ({type(measure).__name__}, {path[0].scope.replace('_', ' ')})",
            ylabel="utility kept",
            ylim=(0, 1.03),
        )
        self.ax_.yaxis.set_major_formatter("{x:.0%}")
        self.ax_.grid(alpha=0.3)
        if self.chosen:
            self.ax_.axvline(self.chosen, color="0.45", ls="--", lw=1.2, zorder=0)
            self.ax_.annotate(
                f"ε = {self.chosen:g}",
                (self.chosen, 1.0),
                xycoords=self.ax_.get_xaxis_transform(),
                ha="center",
                va="bottom",
            )
        self.ax_.legend(loc="best", frameon=False)
        return self

    def _draw_bound(self):
        """Draw the tightest bound that one of the curves proves, above the best of them."""
        tables = {}
        for mechanism in (m for path in self.paths.values() for m in path):
            best, bound = tables.get(mechanism.epsilon, (0.0, 1.0))
            room = mechanism.utility / mechanism.normalized_utility if mechanism.utility else 1.0
            above = mechanism.normalized_utility + mechanism.gap / max(room, 1e-300)
            tables[mechanism.epsilon] = (
                max(best, mechanism.normalized_utility),
                min(bound, above),
            )
        budgets = sorted(tables)
        best, bound = zip(*(tables[budget] for budget in budgets), strict=True)
        bound = np.maximum(bound, best)
        label = "room above, at most" if np.max(np.subtract(bound, best)) > 1e-3 else None
        self.ax_.fill_between(budgets, best, bound, color="0.5", alpha=0.25, lw=0, label=label)
        if label is None:  # too thin to be seen
            self.ax_.plot([], [], " ", label="certified: no mechanism keeps more")


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

    def __init__(self, mechanism):
        self.mechanism = mechanism

    @classmethod
    def from_mechanism(cls, mechanism, *, ax=None):
        """Draw a mechanism."""
        return cls(_checked(mechanism, cls)).plot(ax=ax)

    @classmethod
    def from_estimator(cls, transformer, *, ax=None):
        """Draw the mechanism of a fitted transformer."""
        return cls(_mechanism_of(transformer, cls, needs_joint=False)).plot(ax=ax)

    def plot(self, ax=None, *, cmap="Blues"):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; it is divided in two.
        cmap : str or matplotlib Colormap, default="Blues"
            The colours of probabilities.
        """
        channel = self.mechanism.channel
        n_x, n_y = channel.shape
        size = (min(14, 2.6 + 0.62 * n_y), min(12, 2.2 + 0.42 * n_x))
        self.figure_, (self.ax_p_y_, self.ax_) = _divided(
            ax, size, nrows=2, height_ratios=[1, max(2.0, 0.45 * n_x)]
        )
        image = self.ax_.imshow(channel, cmap=cmap, vmin=0, vmax=1, aspect="auto")
        if max(n_x, n_y) <= _MOST_ANNOTATED:
            for x, y in np.argwhere(channel >= 0.005):
                red, green, blue, _ = image.cmap(image.norm(channel[x, y]))
                is_bright = 0.3 * red + 0.6 * green + 0.1 * blue > 0.5
                options = {"ha": "center", "va": "center", "fontsize": "small"}
                color = "black" if is_bright else "white"
                self.ax_.text(y, x, f"{channel[x, y]:.2f}", color=color, **options)
        _label_ticks(self.ax_.yaxis, self.mechanism.x_labels)
        _label_ticks(self.ax_.xaxis, self.mechanism.y_labels, rotation=40)
        self.ax_.set(xlabel="released Y", ylabel="X")
        self.ax_p_y_.bar(range(n_y), self.mechanism.p_y, color="0.6")
        self.ax_p_y_.set(xlim=(-0.5, n_y - 0.5), xticks=[], ylabel="P(Y)")
        self.ax_p_y_.spines[["top", "right"]].set_visible(False)
        return self


class LeakageDisplay:
    """What each output leaks, against the budget, and what it says about S.

    Use `from_mechanism` or `from_estimator`.

    Parameters
    ----------
    mechanism : Mechanism
        With its joint distribution.

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

    def __init__(self, mechanism):
        self.mechanism = mechanism

    @classmethod
    def from_mechanism(cls, mechanism, *, ax=None):
        """Draw a mechanism."""
        return cls(_checked(mechanism, cls)).plot(ax=ax)

    @classmethod
    def from_estimator(cls, transformer, *, ax=None):
        """Draw the mechanism of a fitted transformer."""
        return cls(_mechanism_of(transformer, cls)).plot(ax=ax)

    def plot(self, ax=None):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; it is divided in two.
        """
        n_y = len(self.mechanism.y_labels)
        size = (9.5, min(12, 1.6 + 0.36 * n_y))
        self.figure_, (self.ax_, self.ax_posterior_) = _divided(ax, size, ncols=2)
        self._draw_leakage()
        self._draw_posteriors()
        for axis in (self.ax_, self.ax_posterior_):
            axis.set_ylim(n_y - 0.4, -0.6)
            axis.spines[["top", "right"]].set_visible(False)
        return self

    def _draw_leakage(self):
        mechanism = self.mechanism
        self.ax_.barh(range(len(mechanism.leakage)), mechanism.leakage, color="tab:blue")
        per_output = mechanism.scope == "per_output"
        shown = [mechanism.max_leakage]
        if np.isfinite(mechanism.epsilon):
            label = "budget, for every output" if per_output else "budget, on average"
            self.ax_.axvline(mechanism.epsilon, color="tab:red", lw=1.6, label=label)
            shown.append(mechanism.epsilon)
        if not per_output:
            average = mechanism.average_leakage
            self.ax_.axvline(average, color="black", ls=":", lw=1.6, label="leakage on average")
        self.ax_.set_xlim(0, 1.15 * max(*shown, 1e-12))
        self.ax_.set(xlabel=f"leakage ({type(mechanism.measure).__name__})", ylabel="released Y")
        if self.ax_.lines:
            _legend_above(self.ax_, 2)
        _label_ticks(self.ax_.yaxis, mechanism.y_labels)

    def _draw_posteriors(self):
        mechanism, axis = self.mechanism, self.ax_posterior_
        prior = mechanism.p_sx.sum(axis=1)
        for i, label in enumerate(readable(mechanism.s_labels)[:8]):
            color = f"C{i}"
            axis.axvline(prior[i], color=color, lw=1, alpha=0.6)
            axis.scatter(
                mechanism.sensitive_posterior[:, i], range(len(mechanism.y_labels)),
                color=color, s=26, label=_short(label), zorder=3,
            )  # fmt: skip
        axis.set(xlabel="P(S | y); lines: P(S)", xlim=(0, 1), yticks=[])
        axis.xaxis.set_major_formatter("{x:.0%}")
        _legend_above(axis, 4)


def svg_of(draw, style):
    """Return the SVG file of a figure that is drawn in a style, and its width in pixels."""
    import matplotlib.pyplot as plt

    with plt.rc_context({**style, "svg.hashsalt": "skprivacy", "svg.fonttype": "path"}):
        figure, content = draw(), io.BytesIO()
        figure.savefig(content, format="svg", transparent=True, metadata={"Date": None})
    plt.close(figure)
    return content.getvalue(), round(96 * figure.get_figwidth())


def _mechanism_of(transformer, display, needs_joint=True):
    check_is_fitted(transformer)
    return _checked(transformer.mechanism_, display, needs_joint)


def _checked(mechanism, display, needs_joint=True):
    if not isinstance(mechanism, Mechanism):
        raise TypeError(message(display.__name__, "mechanism", "a Mechanism", mechanism))
    if needs_joint and mechanism.p_sx is None:
        raise ValueError(
            f"{display.__name__} needs the joint distribution, which was left out when this "
            f"mechanism was saved."
        )
    return mechanism


def _axes(ax, size):
    import matplotlib.pyplot as plt

    if ax is None:
        figure, ax = plt.subplots(figsize=size, layout="constrained")
        return figure, ax
    return ax.figure, ax


def _divided(ax, size, **grid):
    """Return a figure and two axes; those given are divided."""
    import matplotlib.pyplot as plt

    shape = grid.pop("nrows", 1), grid.pop("ncols", 1)
    if ax is None:
        figure, axes = plt.subplots(
            *shape, figsize=size, layout="constrained", gridspec_kw=grid or None
        )
        return figure, axes
    ax.set_axis_off()
    cells = ax.get_subplotspec().subgridspec(*shape, **grid)
    return ax.figure, [ax.figure.add_subplot(cell) for cell in cells]


def _legend_above(axis, ncols):
    axis.legend(fontsize="small", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=ncols)


def _label_ticks(axis, labels, rotation=0):
    """Label the rows or columns of a picture, not more of them than can be read."""
    step = 1 + (len(labels) - 1) // _MOST_TICKS
    texts = [_short(text) for text in readable(labels)]
    axis.set_ticks(range(0, len(labels), step), texts[::step])
    if rotation:
        axis.set_tick_params(rotation=rotation)
        for label in axis.get_ticklabels():
            label.set_horizontalalignment("right")
            label.set_rotation_mode("anchor")


def _short(text):
    return text if len(text) <= _LONGEST_LABEL else text[: _LONGEST_LABEL - 1] + "…"


def _text_of_solver(name):
    return str(name).replace("_", " ")
