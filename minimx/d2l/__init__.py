"""`from minimx import d2l`: the helpers of the book's chapters, with the names of *Dive into Deep Learning*.

Instruments (`timing`), data (`datasets`), the loop's pieces (`training`), plots (`plots`), timelines (`figures`), graphs and memory
(`diagrams`), answers to exercises (`exercises`), the notebook itself (`notebook`), the network of all chapters (`network`), how fast
each makes it (`scoreboard`), and things to play with (`widgets`).
`import minimx` does not import this package, and this package imports matplotlib, tqdm and IPython only when they are used.
"""

from __future__ import annotations

from typing import Any

from ..base import did_you_mean
from . import diagrams, figures, scoreboard
from .datasets import Batches, get_fashion_mnist_labels, get_text_labels, load_data_fashion_mnist, load_fashion_mnist
from .exercises import check
from .network import LENET_SHAPES, LeNet, lenet, lenet_batches, lenet_loss, lenet_net, lenet_params, lenet_step
from .notebook import progress, show_source
from .plots import Animator, plot, pyplot, set_axes, set_figsize, show_images, use_svg_display
from .timing import Accumulator, Benchmark, Timer
from .training import (
    accuracy,
    data_iter,
    evaluate_accuracy,
    linreg,
    sgd,
    squared_loss,
    synthetic_data,
    try_all_gpus,
    try_gpu,
)
from .widgets import ClusterExplorer, EngineStepper

#: What is imported when it is first asked for.
LATER = ("plt",)


def __getattr__(name: str) -> Any:
    """`d2l.plt` is matplotlib.pyplot, imported when it is asked for."""
    if name == "plt":
        return pyplot()
    said = "" if name.startswith("_") else did_you_mean(name, __all__)
    raise AttributeError(f"module 'minimx.d2l' has no attribute {name!r}{said}", name=name)


__all__ = [
    "Accumulator", "Animator", "Batches", "Benchmark", "ClusterExplorer", "EngineStepper", "LENET_SHAPES", "LeNet", "Timer",
    "accuracy", "check", "data_iter", "diagrams", "evaluate_accuracy", "figures", "get_fashion_mnist_labels", "get_text_labels",
    "lenet", "lenet_batches", "lenet_loss", "lenet_net", "lenet_params", "lenet_step", "linreg", "load_data_fashion_mnist",
    "load_fashion_mnist", "plot", "progress", "scoreboard", "set_axes", "set_figsize", "sgd", "show_images", "show_source",
    "squared_loss", "synthetic_data", "try_all_gpus", "try_gpu", "use_svg_display",
]  # fmt: skip
