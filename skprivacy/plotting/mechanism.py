"""Displays of one mechanism: its channel, and its leakage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._validation import check_integer
from ..describing.numbers import percent
from ..mechanism import Guarantee, Mechanism
from .canvas import (
    MOST_TICKS,
    checked,
    checked_secret,
    count_of,
    divided,
    label_ticks,
    legend_above,
    mechanism_of,
    text_of_measure,
    texts_of,
)

if TYPE_CHECKING:
    from ..metrics import PopulationLeakage
    from ..transformer import PrivacyFunnelTransformer
    from .canvas import Axes, Colormap


# With more rows or columns than this, numbers in the cells of a channel cannot be read.
_MOST_ANNOTATED = 18


class MechanismDisplay:
    """The channel P(Y|X) as a heat map, with P(Y) above.

    Use `from_mechanism` or `from_estimator`.

    Parameters
    ----------
    mechanism : Mechanism

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the heat map.
    ax_p_y_ : matplotlib Axes
        Axes of P(Y).
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
        return cls(checked(mechanism, cls)).plot(ax=ax)

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
        return cls(mechanism_of(transformer)).plot(ax=ax)

    def plot(
        self, ax: Axes | None = None, *, cmap: str | Colormap = "Blues", most: int = MOST_TICKS
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; it is divided in two.
        cmap : str or matplotlib Colormap, default="Blues"
            The colours of probabilities.
        most : int, default=40
            Maximum number of rows and of columns: the most frequent ones are drawn.
        """
        check_integer(type(self).__name__, "most", most, low=1)
        # The most frequent symbols and outputs, in their order.
        shares = self.mechanism.p_x, self.mechanism.p_y
        rows, columns = (np.sort(np.argsort(-p, kind="stable")[:most]) for p in shares)
        channel = self.mechanism.channel[np.ix_(rows, columns)]
        n_x, n_y = channel.shape
        size = (min(14, 2.6 + 0.55 * n_y), min(12, 1.8 + 0.3 * n_x))
        self.figure_, (self.ax_p_y_, self.ax_) = divided(
            ax, size, nrows=2, height_ratios=[1, min(6.0, max(2.0, 0.45 * n_x))]
        )
        image = self.ax_.imshow(channel, cmap=cmap, vmin=0, vmax=1, aspect="auto")
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": "small"}
        for x, y in np.argwhere(channel >= 0.005) if max(n_x, n_y) <= _MOST_ANNOTATED else ():
            red, green, blue, _ = image.cmap(image.norm(channel[x, y]))
            color = "black" if 0.3 * red + 0.6 * green + 0.1 * blue > 0.5 else "white"
            self.ax_.text(y, x, f"{channel[x, y]:.2f}", color=color, **style)
        x_labels, y_labels = self.mechanism.x_labels, self.mechanism.y_labels
        label_ticks(self.ax_.yaxis, [x_labels[i] for i in rows])
        label_ticks(self.ax_.xaxis, [y_labels[i] for i in columns], rotation=40)
        self.ax_.set(
            xlabel=count_of("released Y", n_y, y_labels), ylabel=count_of("X", n_x, x_labels)
        )
        self.ax_p_y_.bar(range(n_y), self.mechanism.p_y[columns], color="0.6")
        self.ax_p_y_.set(xlim=(-0.5, n_y - 0.5), xticks=[], ylabel="P(Y)")
        self.ax_p_y_.spines[["top", "right"]].set_visible(False)
        return self


# Leakage of a mechanism, output by output.


_MARKERS = "osD^vP*X"  # one for each group of S that is drawn

# Widths of the legend of groups, and of the marker of an entry, in letters.
_LEGEND_WIDTH, _MARKER_WIDTH = 52, 7


class LeakageDisplay:
    """Leakage of each output, compared with the budget, and its posterior P(S|y).

    Use `from_mechanism` or `from_estimator`.

    Parameters
    ----------
    mechanism : Mechanism
        With its joint distribution.
    limits : PopulationLeakage, default=None
        Limits of the leakage in the population to mark. None: the limits of the mechanism, if it
        has a confidence.
    secret : str, int or tuple, default=None
        Name of the secret to draw, if there are several.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes of the leakage of each output.
    ax_posterior_ : matplotlib Axes
        Axes of P(S|y) against P(S).
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from skprivacy import LeakageDisplay, design_mechanism
    >>> mechanism = design_mechanism([[0.2, 0.1, 0.1], [0.1, 0.2, 0.3]], 0.02)
    >>> LeakageDisplay.from_mechanism(mechanism).ax_.get_xlabel()
    'leakage (kl)'
    """

    def __init__(
        self,
        mechanism: Mechanism | Guarantee,
        *,
        limits: PopulationLeakage | None = None,
        secret: Any = None,
    ) -> None:
        self.mechanism = mechanism
        self._secret = checked_secret(mechanism, secret, type(self))
        self.limits = self._secret.population_limit if limits is None else limits

    @classmethod
    def from_mechanism(
        cls,
        mechanism: Mechanism | Guarantee,
        *,
        limits: PopulationLeakage | None = None,
        secret: Any = None,
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
        return cls(mechanism, limits=limits, secret=secret).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls,
        transformer: PrivacyFunnelTransformer,
        *,
        limits: PopulationLeakage | None = None,
        secret: Any = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the mechanism of a fitted transformer.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("agg")
        >>> import pandas as pd
        >>> from skprivacy import LeakageDisplay, PrivacyFunnelTransformer
        >>> from skprivacy.metrics import population_leakage
        >>> frame = pd.DataFrame({"s": list("abab") * 50, "x": list("uuvw") * 50})
        >>> fitted = PrivacyFunnelTransformer(0.05, sensitive="s").fit(frame)
        >>> limits = population_leakage(fitted)
        >>> display = LeakageDisplay.from_estimator(fitted, limits=limits)
        >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
        ['budget, for every output', 'population, 95% limit', 'population, worst of all']
        """
        return cls(mechanism_of(transformer), limits=limits, secret=secret).plot(ax=ax)

    def plot(self, ax: Axes | None = None, *, most: int = MOST_TICKS) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; it is divided in two.
        most : int, default=40
            Maximum number of outputs: those that leak most are drawn.
        """
        check_integer(type(self).__name__, "most", most, low=1)
        # The outputs that leak most in the rows, and the one with the largest limit.
        drawn = np.argsort(-self._secret.leakage, kind="stable")[:most]
        if self.limits is not None:
            worst = int(np.argmax(self.limits.per_output.to_numpy()))
            drawn[-1] = drawn[-1] if worst in drawn else worst
        self._outputs = np.sort(drawn)
        n_y = len(self._outputs)
        size = (9.5, min(12, 2.2 + 0.28 * n_y))
        self.figure_, (self.ax_, self.ax_posterior_) = divided(ax, size, ncols=2)
        self._draw_leakage()
        self._draw_posteriors()
        for axis in (self.ax_, self.ax_posterior_):
            axis.set_ylim(n_y - 0.4, -0.6)
            axis.spines[["top", "right"]].set_visible(False)
        return self

    def _draw_leakage(self) -> None:
        mechanism, axis = self._secret, self.ax_
        leakage, n_y = mechanism.leakage[self._outputs], len(self._outputs)
        shown = [*leakage, mechanism.epsilon]
        if self.limits is not None:
            shown += [*self.limits.per_output.iloc[self._outputs], self.limits.max_leakage]
        end = 1.15 * max((x for x in shown if np.isfinite(x) and x > 0), default=1.0)
        axis.barh(range(n_y), np.minimum(leakage, end), color="tab:blue")
        is_each = mechanism.scope == "per_output"
        if np.isfinite(mechanism.epsilon):
            label = "budget, for every output" if is_each else "budget, on average"
            if mechanism.confidence is not None:
                label += " in the population"
            axis.axvline(mechanism.epsilon, color="tab:red", lw=1.6, label=label)
        if not is_each:
            average = mechanism.average_leakage
            axis.axvline(average, color="0.5", ls=":", lw=2, label="leakage on average")
        if self.limits is not None:
            limits = self.limits.per_output.iloc[self._outputs]
            label = f"population, {percent(self.limits.confidence)} limit"
            at = np.minimum(limits, end)
            axis.plot(at, range(n_y), "|", color="tab:orange", ms=11, mew=2, label=label)
            worst, label = min(self.limits.max_leakage, end), "population, worst of all"
            axis.axvline(worst, color="tab:orange", ls="--", lw=1.2, label=label)
        axis.set(xlim=(0, end), xlabel=f"leakage ({text_of_measure(mechanism.measure)})")
        axis.set_ylabel(count_of("released Y", n_y, mechanism.y_labels))
        if axis.lines:
            legend_above(axis, 1)
        label_ticks(axis.yaxis, [mechanism.y_labels[i] for i in self._outputs])

    def _draw_posteriors(self) -> None:
        mechanism, axis = self._secret, self.ax_posterior_
        prior, labels = mechanism.prior, texts_of(mechanism.s_labels or ())
        groups = np.sort(np.argsort(-prior, kind="stable")[: len(_MARKERS)])
        for i, group in enumerate(groups):
            axis.axvline(prior[group], color=f"C{i}", lw=1, alpha=0.6)
            posterior = mechanism.sensitive_posterior[self._outputs, group]
            style: dict[str, Any] = {"color": f"C{i}", "marker": _MARKERS[i], "s": 26, "zorder": 3}
            axis.scatter(posterior, range(len(posterior)), label=labels[group], **style)
        left_out = len(prior) - len(groups)
        more = f"; {left_out} smaller groups are not drawn" if left_out else ""
        axis.set(xlabel=f"P(S | y); lines: P(S){more}", xlim=(0, 1), yticks=[])
        axis.xaxis.set_major_formatter("{x:.0%}")
        longest = max(map(len, labels), default=0)
        legend_above(axis, max(1, int(_LEGEND_WIDTH / (longest + _MARKER_WIDTH))))
