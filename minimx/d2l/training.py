"""Linear regression, a loss, a step of gradient descent, accuracy: what the book writes in the open once and then reuses.

Everything is written with `minimx.nd` alone, and nothing waits for a value until it is needed: `evaluate_accuracy` sums on the
device and asks once at the end. Names and formulas are those of the MXNet edition of *Dive into Deep Learning*. Book: chapter 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from .. import nd
from ..base import ArgumentError, ShapeError, shown
from ..device import Context, cpu, gpu, num_gpus
from ..fields import converted
from ..nd import NDArray


def synthetic_data(w: NDArray, b: float, num_examples: int) -> tuple[NDArray, NDArray]:
    """Points of a noisy linear function: `y = X w + b + noise`, X from N(0, 1), the noise from N(0, 0.01 ** 2).

    **Shapes** w (D,) or (D, 1); X (num_examples, D); y (num_examples, 1).
    """
    if not isinstance(w, NDArray):
        raise ArgumentError(f"synthetic_data: w must be an NDArray, got {shown(w)}; make one with nd.array(...)")
    features = nd.random.normal(0, 1, shape=(num_examples, w.size))
    labels = nd.dot(features, w.reshape((-1, 1))) + b
    return features, labels + nd.random.normal(0, 0.01, shape=labels.shape)


def data_iter(batch_size: int, features: NDArray, labels: NDArray) -> Iterator[tuple[NDArray, NDArray]]:
    """Batches of examples, in a random order; the last one is smaller where the batch size does not divide their number."""
    batch_size = converted("data_iter", "batch_size", "int", batch_size)
    for name, array in (("features", features), ("labels", labels)):
        if not isinstance(array, NDArray):
            raise ArgumentError(f"data_iter: {name} must be an NDArray, got {shown(array)}; make one with nd.array(...)")
    if batch_size < 1 or len(features) != len(labels):
        raise ArgumentError(
            f"data_iter: batch_size={batch_size}, {len(features)} features, {len(labels)} labels; "
            "batch_size must be at least 1, and each feature needs a label"
        )
    order = nd.random.shuffle(nd.arange(len(features), dtype="int32"))
    for start in range(0, len(features), batch_size):
        rows = order[start : start + batch_size]
        yield features.take(rows), labels.take(rows)


def linreg(X: NDArray, w: NDArray, b: NDArray) -> NDArray:
    """The linear model: `X w + b`."""
    return nd.dot(X, w) + b


def squared_loss(y_hat: NDArray, y: NDArray) -> NDArray:
    """Half the squared error of each element: `(y_hat - y) ** 2 / 2`, y in the shape of y_hat."""
    return (y_hat - y.reshape(y_hat.shape)) ** 2 / 2


def sgd(params: Iterable[NDArray], lr: float, batch_size: int) -> None:
    """A step of stochastic gradient descent, in place: `p -= lr * p.grad / batch_size`, the gradient being a batch's sum."""
    if not isinstance(params, Iterable):
        raise ArgumentError(f"sgd: params must be a list of NDArrays, got {shown(params)}")
    for i, param in enumerate(params):
        if not isinstance(param, NDArray):
            raise ArgumentError(f"sgd: parameter {i} must be an NDArray, got {shown(param)}")
        if param.grad is None:
            raise ArgumentError(f"sgd: parameter {i} has no gradient; call its attach_grad() before the forward pass")
        param[:] = param - lr * param.grad / batch_size


def accuracy(y_hat: NDArray, y: NDArray) -> float:
    """The fraction of rows whose largest score is at the label: y_hat (N, classes), y (N,). Waits for the value."""
    return float(_hits(y_hat, y).asscalar()) / len(y)


def evaluate_accuracy(
    data: Iterable[tuple[NDArray, NDArray]], net: Callable[[NDArray], NDArray], ctx: Context | None = None
) -> float:
    """The fraction of all examples of `data` whose class `net` finds; the batches are moved to `ctx` where it is given."""
    if not callable(net) or not (isinstance(data, Iterable) or hasattr(data, "__getitem__")):
        order = ": they are in the wrong order" if callable(data) and isinstance(net, Iterable) else ""
        raise ArgumentError(
            f"evaluate_accuracy(data, net): data must yield batches, and net be a network or a function; got {shown(data)} and "
            f"{shown(net)}{order}"
        )
    hits: Any = 0
    count = 0
    for batch in data:
        if not isinstance(batch, (list, tuple)) or len(batch) != 2:
            raise ArgumentError(f"evaluate_accuracy: a batch of data must be a pair (X, y), got {shown(batch)}")
        X, y = batch
        if ctx is not None:
            X, y = X.as_in_context(ctx), y.as_in_context(ctx)
        hits = hits + _hits(net(X), y)
        count += len(y)
    if not count:
        raise ArgumentError("evaluate_accuracy: data has no batch; an iterator that was gone through once is empty")
    return float(hits.asscalar()) / count


def _hits(y_hat: NDArray, y: NDArray) -> NDArray:
    """How many rows of scores have their largest at the label; still pending."""
    if not isinstance(y_hat, NDArray) or not isinstance(y, NDArray):
        raise ArgumentError(f"accuracy: scores and labels must be NDArrays, got {shown(y_hat)} and {shown(y)}")
    if y_hat.ndim != 2 or y.shape != y_hat.shape[:1]:
        raise ShapeError(f"accuracy: scores have shape {y_hat.shape}, labels {y.shape}; (N, classes) and (N,) are wanted")
    return (y_hat.argmax(axis=1) == y.astype("float32")).sum()


def try_gpu(i: int = 0) -> Context:
    """gpu(i) if there is such a device, else cpu()."""
    number: int = converted("try_gpu", "i", "int", i)
    return gpu(number) if num_gpus() > number else cpu()


def try_all_gpus() -> Sequence[Context]:
    """Every GPU, or [cpu()] where there is none."""
    return [gpu(i) for i in range(num_gpus())] or [cpu()]
