"""The book's plots: lines, curves that grow while a model trains, rows of images. One style, readable without colour.

matplotlib is optional and imported when the first plot is drawn. In a notebook figures are SVG, sharp at any size and searchable.
An `Animator` draws into one output and updates it, so that a page built by a program holds the last state, once.
Book: chapter 1; `figures` draws the other figures in the same style.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import ArgumentError
from ..fields import converted
from ..progress import ipython_shell
from .notebook import missing

Axes = Any  # matplotlib is not typed
Figure = Any

MOST_IMAGES = 1000  # beyond, drawing the grid takes minutes
WIDEST, TALLEST = 6.4, 3.2  # inches: what fits a page's column, and a screen beside its text

#: matplotlib settings of every figure. Lines differ in dash and shade as well as in colour (Okabe and Ito's, which stay apart for
#: colour-blind eyes); text stays text in SVG; no random number and no date enters a file, so that equal figures are equal files.
STYLE: dict[str, Any] = {
    "figure.figsize": (3.5, 2.5),
    "figure.dpi": 100,
    "font.size": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "0.88",
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "svg.fonttype": "none",
    "svg.hashsalt": "minimx",
}
COLORS = ("#0072B2", "#D55E00", "#000000", "#009E73", "#CC79A7", "#56B4E9")
DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))


@functools.cache
def pyplot() -> Any:
    """`matplotlib.pyplot`, with the book's style set. Raises MissingPackageError if matplotlib is not installed."""
    try:
        plt = importlib.import_module("matplotlib.pyplot")
    except ImportError:
        raise missing("matplotlib") from None
    plt.rcParams.update(STYLE)
    cycler = importlib.import_module("cycler").cycler
    plt.rcParams["axes.prop_cycle"] = cycler(color=COLORS, linestyle=DASHES)
    use_svg_display()
    return plt


def use_svg_display() -> None:
    """Show figures as SVG in the notebook that runs; does nothing elsewhere."""
    if ipython_shell() is None:
        return
    try:
        backend = importlib.import_module("matplotlib_inline.backend_inline")
    except ImportError:
        raise missing("matplotlib") from None
    backend.set_matplotlib_formats("svg", metadata={"Date": None})


def set_figsize(figsize: tuple[float, float] = (3.5, 2.5)) -> None:
    """Set width and height of the figures to come, in inches."""
    pyplot().rcParams["figure.figsize"] = figsize


def set_axes(
    axes: Axes,
    xlabel: str | None = None,
    ylabel: str | None = None,
    xlim: tuple[float, float] | None = None,
    ylim: tuple[float, float] | None = None,
    xscale: str = "linear",
    yscale: str = "linear",
    legend: Sequence[str] | None = None,
) -> None:
    """Labels, limits, scales and legend of matplotlib axes, in one call."""
    axes.set(xscale=xscale, yscale=yscale)
    given = {"xlabel": xlabel, "ylabel": ylabel, "xlim": xlim, "ylim": ylim}
    axes.set(**{key: value for key, value in given.items() if value is not None})
    if legend:
        axes.legend(legend)


def to_numpy(values: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """An array that matplotlib can draw, from an NDArray (waits for it), a sequence of numbers, or NumPy's own."""
    return np.asarray(values.asnumpy() if hasattr(values, "asnumpy") else values)


def _curves(values: Any) -> list[Any]:
    """One curve, or several, as a list of 1-D arrays: [1, 2], [[1, 2], [3, 4, 5]], and arrays of one or two axes."""
    if hasattr(values, "asnumpy") or isinstance(values, np.ndarray):
        array = to_numpy(values)
        return [array] if array.ndim == 1 else list(array)
    # MXNet's scalars are arrays of shape (1,)
    if len(values) and (np.ndim(values[0]) == 0 or getattr(values[0], "shape", None) == (1,)):
        return [to_numpy([float(value) for value in values])]
    return [to_numpy(curve) for curve in values]


def _listed(values: Any) -> list[Any]:
    """A number as a list of one; a sequence or an array as a list."""
    return list(values) if hasattr(values, "__len__") else [values]


def plot(
    X: Any,
    Y: Any = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    legend: Sequence[str] | None = None,
    xlim: tuple[float, float] | None = None,
    ylim: tuple[float, float] | None = None,
    xscale: str = "linear",
    yscale: str = "linear",
    fmts: Sequence[str] | None = None,
    figsize: tuple[float, float] = (3.5, 2.5),
    axes: Axes = None,
) -> None:
    """Draw curves: Y over X, or X over its positions where Y is left out; each may be one curve or a list of them.

    **Args** fmts: matplotlib's format strings, one a curve; without them the style's colours and dashes. axes: where to draw.
    **Raises** ArgumentError where the numbers of curves or of points do not agree.
    """
    heights = _curves(X if Y is None else Y)
    places = [np.arange(len(curve)) for curve in heights] if Y is None else _curves(X)
    if len(places) == 1:
        places *= len(heights)
    if [len(place) for place in places] != [len(curve) for curve in heights]:
        raise ArgumentError(f"plot: X has curves of {[len(p) for p in places]} points, Y of {[len(h) for h in heights]}")
    set_figsize(figsize)
    if axes is None:
        axes = pyplot().gca()
    axes.cla()
    for i, (place, curve) in enumerate(zip(places, heights)):
        axes.plot(place, curve, *([] if fmts is None else [fmts[i % len(fmts)]]))
    set_axes(axes, xlabel, ylabel, xlim, ylim, xscale, yscale, legend)


class Animator:
    """Curves that grow while a loop runs: `animator.add(epoch, (train_loss, test_accuracy))`.

    In a notebook the figure is one output that every `add` updates. Elsewhere nothing is shown; `animator.figure` can be saved.
    """

    def __init__(
        self,
        xlabel: str | None = None,
        ylabel: str | None = None,
        legend: Sequence[str] | None = None,
        xlim: tuple[float, float] | None = None,
        ylim: tuple[float, float] | None = None,
        xscale: str = "linear",
        yscale: str = "linear",
        fmts: Sequence[str] | None = None,
        figsize: tuple[float, float] = (3.5, 2.5),
    ) -> None:
        pyplot()
        # a figure that pyplot does not know of: the notebook would show it a second time at the end of the cell
        self.figure: Figure = importlib.import_module("matplotlib.figure").Figure(figsize=figsize)
        self.axes: Axes = self.figure.subplots()
        self._configure = functools.partial(set_axes, self.axes, xlabel, ylabel, xlim, ylim, xscale, yscale, legend)
        self.fmts = fmts
        self.X: list[list[float]] = []
        self.Y: list[list[float]] = []
        self._output: Any = None

    def add(self, x: Any, y: Any) -> None:
        """Add a point to each curve: x and y are numbers or sequences of them, None where a curve has no point now."""
        heights = _listed(y)
        places = _listed(x) * (1 if hasattr(x, "__len__") else len(heights))
        if len(places) != len(heights) or len(heights) < len(self.X):
            raise ArgumentError(f"Animator: add() got {len(places)} x and {len(heights)} y for {len(self.X)} curves")
        while len(self.X) < len(heights):
            self.X.append([])
            self.Y.append([])
        for curve, (place, height) in enumerate(zip(places, heights)):
            if place is not None and height is not None:
                self.X[curve].append(float(place))
                self.Y[curve].append(float(height))
        self._draw()

    def _draw(self) -> None:
        self.axes.cla()
        for i, (place, height) in enumerate(zip(self.X, self.Y)):
            self.axes.plot(place, height, *([] if self.fmts is None else [self.fmts[i % len(self.fmts)]]))
        self._configure()
        if ipython_shell() is None:
            return
        metadata = {"image/svg+xml": {"alt": describe(self.axes)}}
        if self._output is None:
            display = importlib.import_module("IPython.display").display
            self._output = display(self.figure, display_id=True, metadata=metadata)
        else:
            self._output.update(self.figure, metadata=metadata)


def describe(axes: Axes) -> str:
    """Alternative text of a line plot, from its labels and legend: "Line plot of loss over epoch: train, test"."""
    over = f" over {axes.get_xlabel()}" if axes.get_xlabel() else ""
    legend = axes.get_legend()
    names = ", ".join(text.get_text() for text in legend.get_texts()) if legend else ""
    what = axes.get_ylabel() or names or "values"
    return f"Line plot of {what}{over}" + (f": {names}" if names and what != names else "")


def show_images(imgs: Any, num_rows: int, num_cols: int, titles: Sequence[str] | None = None, scale: float = 1.5) -> Any:
    """Show images in a grid, with titles; `scale` inches each, less where the page is too narrow.

    **Shapes** imgs (N, H, W), (N, 1, H, W), (N, H, W, 1) or (N, H, W, 3), or a sequence of images.
    **Returns** the grid's matplotlib axes, in a flat array.
    """
    images = [_as_picture(image) for image in to_numpy(imgs)] if hasattr(imgs, "asnumpy") else [_as_picture(i) for i in imgs]
    num_rows = converted("show_images", "num_rows", "int", num_rows)
    num_cols = converted("show_images", "num_cols", "int", num_cols)
    if num_rows < 1 or num_cols < 1 or not images:
        raise ArgumentError(f"show_images: {len(images)} images in {num_rows} rows of {num_cols}; give at least one of each")
    if num_rows * num_cols > MOST_IMAGES:
        raise ArgumentError(f"show_images: {num_rows} rows of {num_cols} are too many to draw; show at most {MOST_IMAGES} images")
    title_room = 0.25 if titles else 0.0  # inches
    scale = min(scale, WIDEST / num_cols, TALLEST / num_rows - title_room)
    figsize = (num_cols * scale, num_rows * (scale + title_room))
    _, grid = pyplot().subplots(num_rows, num_cols, figsize=figsize, squeeze=False, layout="constrained")
    for i, axes in enumerate(grid.flat):
        axes.axis("off")
        if i < len(images):
            axes.imshow(images[i], cmap="gray" if images[i].ndim == 2 else None)
            if titles and i < len(titles):
                axes.set_title(titles[i], fontsize=8)
    return grid.ravel()


def _as_picture(image: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """An image as matplotlib wants it: (H, W) or (H, W, 3)."""
    array = to_numpy(image)
    if array.ndim == 3 and 1 in (array.shape[0], array.shape[2]):
        array = array.squeeze(0 if array.shape[0] == 1 else 2)
    if array.ndim != 2 and not (array.ndim == 3 and array.shape[2] in (3, 4)):
        raise ArgumentError(f"show_images: an image has shape {array.shape}; (H, W), (1, H, W) or (H, W, 3) is wanted")
    return array
