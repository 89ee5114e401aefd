"""What a mechanism does: its channel as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..mechanism import Mechanism
from .canvas import MOST_TICKS, checked, count_of, divided, label_ticks, mechanism_of

if TYPE_CHECKING:
    from ..transformer import PrivacyFunnelTransformer
    from .canvas import Axes, Colormap

# Above this many rows or columns of a channel, numbers in its cells cannot be read.
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

    def plot(self, ax: Axes | None = None, *, cmap: str | Colormap = "Blues") -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; it is divided in two.
        cmap : str or matplotlib Colormap, default="Blues"
            The colours of probabilities.
        """
        # The most frequent ones, in their order.
        shares = self.mechanism.p_x, self.mechanism.p_y
        rows, columns = (np.sort(np.argsort(-p, kind="stable")[:MOST_TICKS]) for p in shares)
        channel = self.mechanism.channel[np.ix_(rows, columns)]
        n_x, n_y = channel.shape
        size = (min(14, 2.6 + 0.62 * n_y), min(12, 2.2 + 0.42 * n_x))
        self.figure_, (self.ax_p_y_, self.ax_) = divided(
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
        label_ticks(self.ax_.yaxis, [x_labels[i] for i in rows])
        label_ticks(self.ax_.xaxis, [y_labels[i] for i in columns], rotation=40)
        self.ax_.set(
            xlabel=count_of("released Y", n_y, y_labels), ylabel=count_of("X", n_x, x_labels)
        )
        self.ax_p_y_.bar(range(n_y), self.mechanism.p_y[columns], color="0.6")
        self.ax_p_y_.set(xlim=(-0.5, n_y - 0.5), xticks=[], ylabel="P(Y)")
        self.ax_p_y_.spines[["top", "right"]].set_visible(False)
        return self
