"""Axes, ticks and labels of all displays; the only import of matplotlib, and only to draw."""

from __future__ import annotations

import io
from collections.abc import Callable, Hashable, Iterable, Sequence, Sized
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._validation import message
from ..measures import Measure
from ..mechanism import Guarantee, Mechanism, one_secret
from ..releasing.output_names import readable

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.axis import Axis as Axis
    from matplotlib.colors import Colormap as Colormap
    from matplotlib.figure import Figure as Figure
    from matplotlib.figure import SubFigure as SubFigure

    from ..transformer import PrivacyFunnelTransformer

MOST_TICKS = 40
_LONGEST_LABEL = 30

# Leading digits of the ticks of a logarithmic axis, and the most ticks for which they are used.
_STEPS = {tuple(range(1, 10)): 6, (1, 2, 5): 9, (1,): np.inf}


def pyplot() -> Any:
    """Return matplotlib.pyplot if it is installed."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Displays and the pictures of a report need matplotlib: run "
            'pip install ".[plot]" in a clone.'
        ) from error
    return plt


def svg_of(draw: Callable[[], Figure], style: dict[str, Any]) -> tuple[bytes, int]:
    """Return (a figure drawn in a style, as an SVG file; its width in pixels)."""
    plt = pyplot()
    with plt.style.context("default"), plt.rc_context({**style, "svg.hashsalt": "skprivacy"}):
        figure, content = draw(), io.BytesIO()
        figure.savefig(content, format="svg", transparent=True, metadata={"Date": None})
    plt.close(figure)
    return content.getvalue(), round(96 * figure.get_figwidth())


def checked(mechanism: object, display: type) -> Mechanism:
    """Return a mechanism, after checking its type."""
    if not isinstance(mechanism, Mechanism):
        raise TypeError(message(display.__name__, "mechanism", "a Mechanism", mechanism))
    return mechanism


def checked_secret(mechanism: object, secret: Any, display: type) -> Guarantee:
    """Return the guarantee of one secret of a mechanism, with its joint distribution."""
    found = one_secret(mechanism, display.__name__, secret)
    if not isinstance(found, Guarantee):
        raise TypeError(message(display.__name__, "mechanism", "a Mechanism", mechanism))
    check_joint(found, display)
    return found


def check_joint(secret: Guarantee, display: type) -> None:
    """Check that a mechanism has the joint distribution of a secret."""
    if secret.p_sx is None:
        raise ValueError(
            f"{display.__name__} needs the joint distribution, which was left out when the "
            f"mechanism was saved."
        )


def mechanism_of(transformer: PrivacyFunnelTransformer) -> Mechanism:
    """Return the mechanism of a fitted transformer."""
    check_is_fitted(transformer)
    return transformer.mechanism_


def axes_for(ax: Axes | None, size: tuple[float, float]) -> tuple[Figure | SubFigure, Axes]:
    """Return a figure and axes to draw on, new ones if none are given."""
    if ax is None:
        figure, ax = pyplot().subplots(figsize=size, layout="constrained")
        return figure, ax
    return ax.figure, ax


def divided(
    ax: Axes | None, size: tuple[float, float], **grid: Any
) -> tuple[Figure | SubFigure, Sequence[Axes]]:
    """Return a figure and two axes, which divide the given one if there is one."""
    shape = grid.pop("nrows", 1), grid.pop("ncols", 1)
    if ax is None:
        figure, axes = pyplot().subplots(
            *shape, figsize=size, layout="constrained", gridspec_kw=grid or None
        )
        return figure, axes
    place = ax.get_subplotspec()
    if place is None:
        raise ValueError("The 'ax' parameter must come from plt.subplots: it is divided in two.")
    ax.set_axis_off()
    cells = place.subgridspec(*shape, **grid)
    return ax.figure, [ax.figure.add_subplot(cells[i]) for i in range(2)]


def legend_above(axis: Axes, ncols: int) -> None:
    """Put the legend above the axes."""
    place: dict[str, Any] = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    axis.legend(fontsize="small", frameon=False, ncols=ncols, **place)


def label_ticks(axis: Axis, labels: Sequence[Hashable], rotation: float = 0) -> None:
    """Label the rows or columns of a picture; if there are too many to read, every n-th."""
    step = 1 + (len(labels) - 1) // MOST_TICKS
    axis.set_ticks(range(0, len(labels), step), texts_of(labels)[::step])
    if rotation:
        axis.set_tick_params(rotation=rotation)
        for label in axis.get_ticklabels():
            label.set_horizontalalignment("right")
            label.set_rotation_mode("anchor")


def count_of(name: str, n_shown: int, labels: Sized) -> str:
    """Return the name of an axis, with a note if not all labels are shown."""
    return name if n_shown == len(labels) else f"{name}: {n_shown} of {len(labels)}"


def plain_ticks(axis: Axes) -> None:
    """Label a logarithmic x axis with plain numbers: 0.01, 0.02, 0.05."""
    low, high = axis.get_xlim()
    tens = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    for steps, most in _STEPS.items():
        ticks = np.outer(tens, steps).ravel()
        ticks = ticks[(ticks >= low) & (ticks <= high)]
        if len(ticks) <= most:
            break
    texts = [np.format_float_positional(float(f"{tick:.6g}"), trim="-") for tick in ticks]
    axis.set_xticks(ticks, texts)
    axis.set_xticks([], minor=True)


def texts_of(labels: Iterable[Hashable]) -> list[str]:
    """Return labels as in the report, shortened."""
    return short(readable(labels, ", ", "missing"))


def short(texts: Sequence[str], longest: int = _LONGEST_LABEL) -> list[str]:
    """Return texts cut to a length, still different, and escaped for matplotlib."""
    kept = longest - 1
    # Cut out the middle, unless that is where they differ.
    for tail in sorted(range(kept + 1), key=lambda tail: abs(tail - kept // 2)):
        found = [_cut(text, tail, longest) for text in texts]
        if len(set(found)) == len(set(texts)):
            return [_escaped(text) for text in found]
    return [_escaped(f"{_cut(text, kept // 2, longest)}#{i}") for i, text in enumerate(texts)]


def _cut(text: str, tail: int, longest: int) -> str:
    """Return a text cut to a length; tail : number of characters kept at its end."""
    if len(text) <= longest:
        return text
    return f"{text[: longest - 1 - tail]}…{text[len(text) - tail :]}"


def _escaped(text: str) -> str:
    # $ starts a formula, and a label that starts with _ is left out of legends.
    return (" " if text.startswith("_") else "") + text.replace("$", r"\$")


def text_of_measure(measure: Measure) -> str:
    """Return the name of a measure in words, with its parameters."""
    parameters = {k: v for k, v in measure.to_dict().items() if k != "name" and v is not None}
    listed = (f"{name} {value:g}" for name, value in parameters.items())
    return ", ".join([measure.name.replace("_", " "), *listed])


def text_of_solver(name: str) -> str:
    """Return the name of a solver in words."""
    return str(name).replace("_", " ")
