"""Rows of ops/nn.py, softmax.py, norm.py and loss.py: layers, normalizations, output layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special, stats

from minimx import autograd
from minimx.base import ArgumentError, DTypeError, MXNetError, ShapeError
from minimx.ops import loss, nn, norm, softmax as soft

from .harness import Bad, Case, Maker, distinct, integers, normal, uniform

# ---- fully connected

FULLY_CONNECTED = [
    Case(
        "FullyConnected",
        lambda x, w, b: nn.FullyConnected(x, w, b, num_hidden=5),
        (normal(2, 3, 4), normal(5, 12), normal(5)),
        lambda x, w, b: np.einsum("nij,hij->nh", x, w.reshape(5, 3, 4)) + b,
        bad=(
            Bad(
                lambda nd: nd.FullyConnected(nd.ones((2, 3)), nd.ones((5, 4)), nd.ones((5,)), num_hidden=5),
                ShapeError,
                r"weight has shape \(5, 4\), data of shape \(2, 3\) needs \(5, 3\)",
            ),
            Bad(
                lambda nd: nd.FullyConnected(nd.ones((2, 3)), nd.ones((5, 3)), nd.ones((6,)), num_hidden=5),
                ShapeError,
                r"bias has shape \(6,\), num_hidden=5 needs \(5,\)",
            ),
            Bad(
                lambda nd: nd.FullyConnected(nd.ones((2, 3)), nd.ones((5, 3)), num_hidden=5),
                ArgumentError,
                "bias is missing; pass it with no_bias=False",
            ),
            Bad(
                lambda nd: nd.FullyConnected(nd.ones((2, 3)), nd.ones((5, 3)), nd.ones((5,)), num_hidden=5, no_bias=True),
                ArgumentError,
                "bias is given but not used",
            ),
            Bad(
                lambda nd: nd.FullyConnected(nd.ones((2, 3)), nd.ones((5, 3)), no_bias=True),
                ArgumentError,
                "num_hidden=0 is not positive",
            ),
            Bad(
                lambda nd: nd.FullyConnected(nd.ones((2, 3)), nd.ones((5, 3), dtype="float64"), num_hidden=5, no_bias=True),
                DTypeError,
                "data is float32 but weight is float64",
            ),
        ),
    ),
    Case(
        "FullyConnected",
        lambda x, w: nn.FullyConnected(x, w, num_hidden=5, no_bias=True, flatten=False),
        (normal(2, 3, 4), normal(5, 4)),
        lambda x, w: np.einsum("nij,hj->nih", x, w),
        label="rows",
    ),
    Case(
        "FullyConnected",
        lambda x, w, b: nn.fully_connected(x, w, b, 1),
        (normal(1, 1), normal(1, 1), normal(1)),
        lambda x, w, b: x * w + b,
        label="1x1",
    ),
    Case(
        "FullyConnected",
        lambda x, w, b: nn.FullyConnected(x, w, b, num_hidden=2),
        (normal(0, 3), normal(2, 3), normal(2)),
        lambda x, w, b: np.zeros((0, 2)),
        label="empty",
    ),
    Case(
        "FullyConnected",
        lambda x, w, b: nn.FullyConnected(x, w, b, num_hidden=2),
        (integers(-9, 9, 3, 4), integers(-9, 9, 2, 4), integers(-9, 9, 2)),
        lambda x, w, b: (x[:, None] * w).sum(-1) + b,
        label="integers",
    ),
    Case(
        "FullyConnected",
        lambda x, w, b: nn.FullyConnected(x, w, b, num_hidden=2, flatten=False),
        (normal(3), normal(2, 3), normal(2)),
        lambda x, w, b: w @ x + b,
        label="vector",
    ),
]


# ---- softmax


def cut(x: np.ndarray, length: np.ndarray, axis: int) -> np.ndarray:
    """Softmax of the first elements along an axis, by a loop; 0 behind them."""
    rows = np.moveaxis(x, axis, -1)
    result = np.zeros_like(rows)
    for index in np.ndindex(rows.shape[:-1]):
        count = length[index]
        if count:
            result[index][:count] = special.softmax(rows[index][:count])
    return np.moveaxis(result, -1, axis)


SOFTMAX = [
    Case(
        "softmax",
        soft.softmax,
        (normal(2, 3),),
        lambda x: special.softmax(x, axis=-1),
        bad=(
            Bad(lambda nd: nd.softmax(nd.ones((2, 3)), axis=2), ShapeError, "softmax: axis 2 is out of range"),
            Bad(
                lambda nd: nd.softmax(nd.ones((2, 3), dtype="int32")),
                DTypeError,
                "data is int32, wants a floating dtype; convert",
            ),
            Bad(lambda nd: nd.softmax(nd.ones((2, 3)), use_length=True), ArgumentError, "length is missing"),
            Bad(
                lambda nd: nd.softmax(nd.ones((2, 3)), nd.ones((2,), dtype="int32")),
                ArgumentError,
                "length is given but not used; .* use_length=True",
            ),
            Bad(
                lambda nd: nd.softmax(nd.ones((2, 3)), nd.ones((3,), dtype="int32"), use_length=True),
                ShapeError,
                r"length has shape \(3,\), axis 1 of data \(2, 3\) needs \(2,\)",
            ),
            Bad(
                lambda nd: nd.softmax(nd.ones((2, 3)), nd.ones((2,)), use_length=True),
                DTypeError,
                "length is float32, wants integers",
            ),
        ),
    ),
    Case(
        "softmax",
        lambda x: soft.softmax(x * 300, axis=1),
        (normal(2, 3, 2),),
        lambda x: special.softmax(x * 300, axis=1),
        label="large",
        rtol={"float32": 1e-4, "float16": np.inf},
        grad=False,
    ),  # x * 300 is rounded first; in float16 by as much as 0.1
    Case(
        "softmax",
        lambda x: soft.softmax(x, axis=0, temperature=2),
        (normal(3, 2),),
        lambda x: special.softmax(x / 2, axis=0),
        label="warm",
    ),
    Case("softmax", soft.softmax, (normal(2, 1),), np.ones_like, label="1"),
    Case("softmax", soft.softmax, (normal(0, 3),), lambda x: x, label="empty"),
    Case("softmax", soft.softmax, (normal(3, 0),), lambda x: x, label="empty-axis"),
    Case(
        "softmax",
        lambda x, n: soft.softmax(x, n, axis=1, use_length=True),
        (normal(2, 4, 3), lambda rng: np.array([[1, 4, 0], [2, 3, 9]])),
        lambda x, n: cut(x, n, 1),
        label="length",
    ),
    Case(
        "softmax",
        lambda x: soft.softmax(x, dtype="float64"),
        (normal(2, 3),),
        lambda x: special.softmax(x, axis=-1),
        label="dtype",
    ),
    Case("softmin", soft.softmin, (normal(2, 3),), lambda x: special.softmax(-x, axis=-1)),
    Case(
        "softmin",
        lambda x: soft.softmin(x, axis=0, temperature=0.5),
        (normal(2, 3),),
        lambda x: special.softmax(-2 * x, axis=0),
        label="cold",
        bad=(
            Bad(lambda nd: nd.softmin(nd.ones((2,)), use_length=True), ArgumentError, "softmin: use_length=True is not possible"),
        ),
    ),
    Case("log_softmax", soft.log_softmax, (normal(2, 3),), lambda x: special.log_softmax(x, axis=-1)),
    Case(
        "log_softmax",
        lambda x: soft.log_softmax(x, axis=1, temperature=3),
        (normal(2, 3, 2),),
        lambda x: special.log_softmax(x / 3, axis=1),
        label="warm",
        bad=(Bad(lambda nd: nd.log_softmax(nd.ones((2,)), axis=-2), ShapeError, "log_softmax: axis -2 is out of range"),),
    ),
    Case("log_softmax", soft.log_softmax, (normal(3, 0),), lambda x: x, label="empty-axis"),
    Case(
        "SoftmaxActivation",
        soft.SoftmaxActivation,
        (normal(2, 3, 2),),
        lambda x: special.softmax(x, axis=-1),
        bad=(
            Bad(
                lambda nd: nd.SoftmaxActivation(nd.ones((2, 3)), mode="foo"),
                ArgumentError,
                "mode='foo' is not known; choose one of",
            ),
        ),
    ),
    Case(
        "SoftmaxActivation",
        lambda x: soft.SoftmaxActivation(x, mode="channel"),
        (normal(2, 3, 2),),
        lambda x: special.softmax(x, axis=1),
        label="channel",
    ),
]


# ---- leaky rectifiers


def elu(x: np.ndarray, slope: float) -> np.ndarray:
    return np.where(x > 0, x, slope * (np.exp(x) - 1))


LEAKY = [
    Case(
        "LeakyReLU",
        nn.LeakyReLU,
        (distinct(3, 4),),
        lambda x: np.where(x > 0, x, 0.25 * x),
        bad=(
            Bad(
                lambda nd: nd.LeakyReLU(nd.ones((2,)), act_type="foo"),
                ArgumentError,
                "act_type='foo' is not known; choose one of leaky",
            ),
            Bad(lambda nd: nd.LeakyReLU(nd.ones((2,)), nd.ones((1,))), ArgumentError, "gamma is given but not used"),
            Bad(lambda nd: nd.LeakyReLU(nd.ones((2,)), act_type="prelu"), ArgumentError, "'gamma' is missing"),
            Bad(
                lambda nd: nd.LeakyReLU(nd.ones((2, 3)), nd.ones((2,)), act_type="prelu"),
                ShapeError,
                r"gamma has shape \(2,\), data of shape \(2, 3\) needs \(1,\) or \(3,\)",
            ),
            Bad(
                lambda nd: nd.LeakyReLU(nd.ones((2,)), act_type="rrelu", lower_bound=2),
                ArgumentError,
                "lower_bound=2 is above upper_bound",
            ),
            Bad(lambda nd: nd.LeakyReLU(nd.ones((2,), dtype="int32")), DTypeError, "data is int32, wants a floating dtype"),
        ),
    ),
    Case(
        "LeakyReLU",
        lambda x: nn.LeakyReLU(x, slope=2),
        (distinct(3, 4),),
        lambda x: np.where(x > 0, x, 2 * x),
        label="steep",
    ),
    Case(
        "LeakyReLU", lambda x: nn.LeakyReLU(x, act_type="elu", slope=0.7), (distinct(3, 4),), lambda x: elu(x, 0.7), label="elu"
    ),
    Case(
        "LeakyReLU",
        lambda x: nn.LeakyReLU(x, act_type="selu"),
        (distinct(3, 4),),
        lambda x: 1.0507009873554805 * elu(x, 1.6732632423543772),
        label="selu",
    ),
    Case("LeakyReLU", lambda x: nn.LeakyReLU(x, act_type="gelu"), (normal(3, 4),), lambda x: x * stats.norm.cdf(x), label="gelu"),
    Case("LeakyReLU", nn.LeakyReLU, (normal(0),), lambda x: x, label="empty"),
]


def outside_kernel(op: str, call: Callable[..., Any], inputs: tuple[Maker, ...], oracle: Callable[..., Any], label: str) -> Case:
    """A row of a variant whose class is not the registered one: a call of that one is added, and given no weight."""
    return Case(op, lambda *args: call(*args) + nn.LeakyReLU(args[0]) * 0, inputs, oracle, label=label)


LEAKY += [
    outside_kernel(
        "LeakyReLU",
        lambda x, gamma: nn.LeakyReLU(x, gamma, act_type="prelu"),
        (distinct(2, 3, 4), normal(3)),
        lambda x, gamma: np.where(x > 0, x, gamma[:, None] * x),
        "prelu",
    ),
    outside_kernel(
        "LeakyReLU",
        lambda x, gamma: nn.LeakyReLU(x, gamma, act_type="prelu"),
        (distinct(2, 3), normal(1)),
        lambda x, gamma: np.where(x > 0, x, gamma * x),
        "prelu-one",
    ),
    outside_kernel(
        "LeakyReLU",
        lambda x, gamma: nn.LeakyReLU(x, gamma, act_type="prelu"),
        (distinct(3), normal(3)),
        lambda x, gamma: np.where(x > 0, x, gamma * x),
        "prelu-vector",
    ),
    *(
        outside_kernel(
            "LeakyReLU",
            lambda x, gamma: nn.LeakyReLU(x, gamma, act_type="prelu"),
            (distinct(2, 3, 4), normal(*shape)),
            lambda x, gamma: np.where(x > 0, x, gamma[:, :, None] * x),
            f"prelu-{shape[0]}-{shape[1]}",
        )
        for shape in ((2, 3), (1, 3), (2, 1))
    ),
    outside_kernel(
        "LeakyReLU",
        lambda x: nn.LeakyReLU(x, act_type="rrelu"),
        (distinct(3, 4),),
        lambda x: np.where(x > 0, x, (0.125 + 0.334) / 2 * x),
        "rrelu-mean",
    ),
]


# ---- dropout, whose numbers are random: what is checked is what they must obey


def kept(x: Any, p: float, axes: tuple[int, ...] = ()) -> Any:
    """1 where the result is either 0 or the data scaled up, and the same along `axes`, else 0."""
    ones = x * 0 + 1
    result = nn.Dropout(ones, p=p, mode="always", axes=axes)
    scaled = result * (1 - p)
    legal = (scaled * (scaled - 1)).abs() < 1e-2
    for axis in axes:
        first = result.slice_axis(axis=axis, begin=0, end=1).broadcast_to(result.shape)
        legal = legal * (first == result)
    return legal


def share(x: Any, p: float) -> Any:
    """The share of elements that dropout sets to 0, rounded to tenths."""
    return ((nn.Dropout(x * 0 + 1, p=p, mode="always") == 0).mean() * 10).round() / 10


def in_training(call: Callable[..., Any]) -> Callable[..., Any]:
    def trained(*args: Any) -> Any:
        with autograd.train_mode():
            return call(*args)

    return trained


DROPOUT = [
    Case(
        "Dropout",
        nn.Dropout,
        (normal(3, 4),),
        lambda x: x,
        label="inference",
        bad=(
            Bad(lambda nd: nd.Dropout(nd.ones((2,)), p=1, mode="always"), MXNetError, "p=1 drops everything"),
            Bad(lambda nd: nd.Dropout(nd.ones((2,)), p=1.5), ArgumentError, r"p=1.5 is not a fraction of \[0, 1\)"),
            Bad(
                lambda nd: nd.Dropout(nd.ones((2,)), mode="foo"),
                ArgumentError,
                "mode='foo' is not known; choose one of training, always",
            ),
            Bad(lambda nd: nd.Dropout(nd.ones((2,)), axes=(1,)), ShapeError, "Dropout: axes: 1 is out of range"),
            Bad(lambda nd: nd.Dropout(nd.ones((2,), dtype="int32")), DTypeError, "data is int32, wants a floating dtype"),
        ),
    ),
    Case("Dropout", lambda x: nn.Dropout(x, p=0, mode="always"), (normal(3, 4),), lambda x: x, label="p0"),
    Case("Dropout", in_training(lambda x: kept(x, 0.5)), (normal(20, 10),), np.ones_like, grad=False, label="values"),
    Case("Dropout", lambda x: kept(x, 0.25, (0, 2)), (normal(3, 20, 4),), np.ones_like, grad=False, label="axes"),
    Case("Dropout", lambda x: share(x, 0.3), (normal(100, 100),), lambda x: np.array([0.3]), grad=False, label="share"),
    Case("Dropout", in_training(nn.Dropout), (normal(3, 4),), None, label="gradient"),
    Case("Dropout", lambda x: nn.Dropout(x, p=0.4, mode="always", axes=(1,)), (normal(3, 4),), None, label="gradient-axes"),
    Case("Dropout", lambda x: nn.Dropout(x, mode="always"), (normal(0, 3),), lambda x: x, label="empty"),
    outside_kernel(
        "LeakyReLU",
        in_training(lambda x: (nn.LeakyReLU(-x.abs() - 1, act_type="rrelu") / (-x.abs() - 1) - 0.23).abs() < 0.11),
        (normal(20, 10),),
        np.ones_like,
        "rrelu",
    ),
]


# ---- normalization


def standard(x: np.ndarray, axes: tuple[int, ...], eps: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mean = x.mean(axes, keepdims=True)
    deviation = np.sqrt(x.var(axes, keepdims=True) + eps)
    return (x - mean) / deviation, mean, deviation


def layer_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    result, mean, deviation = standard(x, (axis,), 1e-5)
    return np.moveaxis(np.moveaxis(result, axis, -1) * gamma + beta, -1, axis), mean, deviation


def group_norm(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, groups: int, eps: float) -> tuple[np.ndarray, ...]:
    result, mean, deviation = standard(x.reshape(len(x), groups, -1), (2,), eps)
    return (result * gamma[:, None] + beta[:, None]).reshape(x.shape), mean[..., 0], deviation[..., 0]


def l2(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    return x / np.sqrt((x**2).sum(axes, keepdims=True) + 1e-10)


NORM = [
    Case(
        "LayerNorm",
        norm.LayerNorm,
        (normal(2, 3, 4), normal(4), normal(4)),
        lambda x, gamma, beta: layer_norm(x, gamma, beta, 2)[0],
        rtol={"float16": 3e-2},  # the product with gamma is rounded twice
        bad=(
            Bad(
                lambda nd: nd.LayerNorm(nd.ones((2, 3)), nd.ones((2,)), nd.ones((3,))),
                ShapeError,
                r"gamma has shape \(2,\), data of shape \(2, 3\) needs \(3,\)",
            ),
            Bad(
                lambda nd: nd.LayerNorm(nd.ones((2, 3)), nd.ones((3,)), nd.ones((3,)), axis=2),
                ShapeError,
                "axis 2 is out of range",
            ),
            Bad(lambda nd: nd.LayerNorm(nd.ones((2, 3)), nd.ones((3,))), ArgumentError, "'beta' is missing"),
        ),
    ),
    Case(
        "LayerNorm",
        lambda x, gamma, beta: norm.LayerNorm(x, gamma, beta, axis=1, output_mean_var=True),
        (normal(2, 3, 4), normal(3), normal(3)),
        lambda x, gamma, beta: layer_norm(x, gamma, beta, 1),
        rtol={"float16": 3e-2},  # as above
        label="axis",
    ),
    Case(
        "LayerNorm",
        norm.LayerNorm,
        (normal(3), normal(3), normal(3)),
        lambda x, gamma, beta: layer_norm(x, gamma, beta, 0)[0],
        label="vector",
        rtol={"float16": 3e-2},  # as above
    ),
    Case("LayerNorm", norm.LayerNorm, (normal(0, 3), normal(3), normal(3)), lambda x, gamma, beta: x, label="empty"),
    Case(
        "InstanceNorm",
        norm.InstanceNorm,
        (normal(2, 3, 2, 2), normal(3), normal(3)),
        lambda x, gamma, beta: group_norm(x, gamma, beta, 3, 1e-3)[0],
        rtol={"float16": 3e-2},  # as above
        bad=(
            Bad(
                lambda nd: nd.InstanceNorm(nd.ones((2, 3)), nd.ones((3,)), nd.ones((3,))),
                ShapeError,
                r"data has shape \(2, 3\), wants \(N, C, ...\)",
            ),
        ),
    ),
    Case(
        "GroupNorm",
        lambda x, gamma, beta: norm.GroupNorm(x, gamma, beta, num_groups=2, output_mean_var=True),
        (normal(2, 4, 3), normal(2), normal(2)),
        lambda x, gamma, beta: group_norm(x, gamma, beta, 2, 1e-5),
        rtol={"float16": 3e-2},  # as above
        bad=(
            Bad(
                lambda nd: nd.GroupNorm(nd.ones((2, 4, 3)), nd.ones((3,)), nd.ones((3,)), num_groups=3),
                ArgumentError,
                "num_groups=3 does not divide the 4 channels",
            ),
        ),
    ),
    Case(
        "GroupNorm",
        norm.GroupNorm,
        (normal(2, 4, 3), normal(1), normal(1)),
        lambda x, gamma, beta: group_norm(x, gamma, beta, 1, 1e-5)[0],
        rtol={"float16": 3e-2},  # as above
        label="one",
    ),
    Case(
        "L2Normalization",
        norm.L2Normalization,
        (normal(2, 3, 4),),
        lambda x: l2(x, (1, 2)),
        bad=(
            Bad(
                lambda nd: nd.L2Normalization(nd.ones((2, 3)), mode="channel"),
                ShapeError,
                "mode='channel' needs at least 3 dimensions",
            ),
            Bad(lambda nd: nd.L2Normalization(nd.ones((2, 3)), mode="foo"), ArgumentError, "mode='foo' is not known"),
        ),
    ),
    Case(
        "L2Normalization",
        lambda x: norm.L2Normalization(x, mode="channel"),
        (normal(2, 3, 4),),
        lambda x: l2(x, (1,)),
        label="channel",
    ),
    Case(
        "L2Normalization",
        lambda x: norm.L2Normalization(x, mode="spatial"),
        (normal(2, 3, 2, 2),),
        lambda x: l2(x, (2, 3)),
        label="spatial",
    ),
]


# ---- output layers: the forward value is a row of the layer, the gradient that it starts with a row of its backward operator


def started(call: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of the first input with which a backward pass begins at `call`, whatever comes from above."""

    def gradient(data: Any, *others: Any) -> Any:
        leaf = data.detach()
        leaf.attach_grad()
        with autograd.record():
            output = call(leaf, *others)
        output.backward(output * 3 + 7)
        return leaf.grad

    return gradient


def loss_row(op: str, call: Callable[..., Any], inputs: tuple[Maker, ...], oracle: Callable[..., Any], label: str) -> Case:
    return Case(op, started(call), inputs, oracle, grad=False, label=f"gradient-{label}")


def softmax_output(x: np.ndarray, label: np.ndarray, **how: Any) -> np.ndarray:
    """The gradient by its definition, one example and position at a time. Classes are on axis 1."""
    result = np.zeros_like(x)
    classes, alpha = x.shape[1], how.get("alpha", 0.0)
    for place in np.ndindex(label.shape):
        at = (place[0], slice(None), *place[1:])
        true = np.full(classes, alpha / (classes - 1))
        if 0 <= label[place] < classes:
            true[label[place]] = 1 - alpha
        result[at] = special.softmax(x[at]) - true
        if label[place] == how.get("ignore"):
            result[at] = 0
    return result / how.get("divide", 1)


def softmax_rows() -> list[Case]:
    found = [
        loss_row(
            op,
            lambda x, label, how=how: loss.SoftmaxOutput(x, label, **how),
            (normal(4, 3), lambda rng: np.array([2, 0, 1, 0])),
            lambda x, label, check=check: softmax_output(x, label, **check),
            label=name,
        )
        for op in ("SoftmaxOutput", "_backward_SoftmaxOutput")
        for name, how, check in (
            ("plain", {}, {}),
            ("scale", {"grad_scale": 2}, {"divide": 0.5}),
            ("batch", {"normalization": "batch"}, {"divide": 4}),
            ("valid", {"normalization": "valid"}, {"divide": 4}),
            ("ignore", {"use_ignore": True, "ignore_label": 0}, {"ignore": 0}),
            ("ignore-valid", {"use_ignore": True, "ignore_label": 0, "normalization": "valid"}, {"ignore": 0, "divide": 2}),
            ("smooth", {"smooth_alpha": 0.3}, {"alpha": 0.3}),
        )
    ]
    found += [
        loss_row(
            "SoftmaxOutput",
            lambda x, label, how=how: loss.SoftmaxOutput(x, label, multi_output=True, **how),
            (normal(2, 3, 2, 2), lambda rng: np.array([[[0, 1], [2, 1]], [[1, 1], [0, 2]]])),
            lambda x, label, check=check: softmax_output(x, label, **check),
            label=f"multi-{name}",
        )
        for name, how, check in (
            ("plain", {}, {"divide": 4}),
            ("batch", {"normalization": "batch"}, {"divide": 8}),
            ("valid", {"normalization": "valid", "use_ignore": True, "ignore_label": 1}, {"ignore": 1, "divide": 4}),
        )
    ]
    found += [
        Case(
            "SoftmaxOutput",
            loss.SoftmaxOutput,
            (normal(4, 3), integers(0, 3, 4)),
            lambda x, label: special.softmax(x, axis=1),
            grad=False,
            bad=(
                Bad(
                    lambda nd: nd.SoftmaxOutput(nd.ones((2, 3)), nd.ones((3,))),
                    ShapeError,
                    r"label has shape \(3,\), data of shape \(2, 3\) needs \(2,\) \(class numbers\) or \(2, 3\)",
                ),
                Bad(
                    lambda nd: nd.SoftmaxOutput(nd.ones((2, 3, 4)), nd.ones((2, 3))),
                    ShapeError,
                    "for a softmax along one axis set preserve_shape",
                ),
                Bad(
                    lambda nd: nd.SoftmaxOutput(nd.ones((2, 3)), nd.ones((2,)), normalization="foo"),
                    ArgumentError,
                    "normalization='foo' is not known",
                ),
            ),
        ),
        Case(
            "SoftmaxOutput",
            lambda x, label: loss.Softmax(x, label, multi_output=True),
            (normal(2, 3, 4), integers(0, 3, 2, 4)),
            lambda x, label: special.softmax(x, axis=1),
            grad=False,
            label="multi",
        ),
        Case(
            "SoftmaxOutput",
            lambda x, label: loss.SoftmaxOutput(x, label, preserve_shape=True),
            (normal(2, 3, 4), integers(0, 4, 2, 3)),
            lambda x, label: special.softmax(x, axis=-1),
            grad=False,
            label="preserve",
        ),
        Case(
            "SoftmaxOutput",
            loss.SoftmaxOutput,
            (normal(2, 3, 4), integers(0, 12, 2)),
            lambda x, label: special.softmax(x.reshape(2, 12), axis=1).reshape(x.shape),
            grad=False,
            label="flat",
        ),
        loss_row(
            "SoftmaxOutput",
            lambda x, label: loss.SoftmaxOutput(x, label, preserve_shape=True, normalization="batch"),
            (normal(2, 3, 4), integers(0, 4, 2, 3)),
            lambda x, label: (special.softmax(x, axis=-1) - np.eye(4)[label]) / 6,
            "preserve",
        ),
        loss_row(
            "SoftmaxOutput",
            lambda x, label: loss.SoftmaxOutput(x, label, grad_scale=2),
            (normal(2, 3), uniform(0, 1, 2, 3)),
            lambda x, label: 2 * (special.softmax(x, axis=1) - label),
            "probabilities",
        ),
        loss_row(
            "SoftmaxOutput",
            lambda x, label: loss.SoftmaxOutput(x, label, out_grad=True),
            (normal(2, 3), integers(0, 3, 2)),
            lambda x, label: softmax_output(x, label) * (3 * special.softmax(x, axis=1) + 7),
            "from-above",
        ),
        Case(
            "softmax_cross_entropy",
            loss.softmax_cross_entropy,
            (normal(4, 3), integers(0, 3, 4)),
            lambda x, label: -special.log_softmax(x, axis=1)[np.arange(4), label].sum(keepdims=True),
            bad=(
                Bad(
                    lambda nd: nd.softmax_cross_entropy(nd.ones((2, 3)), nd.array([0, 3])),
                    MXNetError,
                    "label has a number outside 0 to 2, the classes",
                ),
                Bad(
                    lambda nd: nd.softmax_cross_entropy(nd.ones((2, 3)), nd.ones((3,))),
                    ShapeError,
                    r"data has shape \(2, 3\), label \(3,\); wants \(N, C\) and \(N,\)",
                ),
            ),
        ),
        Case(
            "softmax_cross_entropy",
            loss.softmax_cross_entropy,
            (normal(0, 3), integers(0, 3, 0)),
            lambda x, label: np.zeros(1),
            label="empty",
        ),
    ]
    return found


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def regression_rows() -> list[Case]:
    found = []
    for op, forward, slope in (
        ("LinearRegressionOutput", lambda x: x, lambda difference: difference),
        ("MAERegressionOutput", lambda x: x, np.sign),
        ("LogisticRegressionOutput", sigmoid, lambda difference: difference),
    ):
        call = getattr(loss, op)
        found += [
            Case(
                op,
                call,
                (normal(2, 3), normal(2, 3)),
                lambda x, label, forward=forward: forward(x),
                grad=False,
                bad=(
                    Bad(
                        lambda nd, call=call: call(nd.ones((2, 3)), nd.ones((3, 2))),
                        ShapeError,
                        r"label has shape \(3, 2\), data of shape \(2, 3\) needs as many elements",
                    ),
                    Bad(
                        lambda nd, call=call: call(nd.ones((2, 3)), nd.ones((2, 3), dtype="int32")),
                        DTypeError,
                        "data is float32 but label is int32",
                    ),
                ),
            ),
            loss_row(
                op,
                lambda x, label, call=call: call(x, label, grad_scale=2),
                (normal(2, 3), normal(2, 3)),
                lambda x, label, forward=forward, slope=slope: slope(forward(x) - label) * 2 / 3,
                "scale",
            ),
            loss_row(
                op,
                call,
                (normal(3, 1), normal(3)),
                lambda x, label, forward=forward, slope=slope: slope(forward(x) - label[:, None]),
                "column",
            ),
        ]
    return found


def svm(x: np.ndarray, label: np.ndarray, margin: float, linear: bool) -> np.ndarray:
    result = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        sign = -1 if label[place[:-1]] == place[-1] else 1
        excess = margin + sign * x[place]
        if excess > 0:
            result[place] = sign * (1 if linear else 2 * excess)
    return result


OTHER_LOSSES = [
    Case(
        "SVMOutput",
        loss.SVMOutput,
        (normal(3, 4), integers(0, 4, 3)),
        lambda x, label: x,
        grad=False,
        bad=(Bad(lambda nd: nd.SVMOutput(nd.ones((2, 3)), nd.ones((3,))), ShapeError, r"wants data \(N, C\) and label \(N,\)"),),
    ),
    *(
        loss_row(
            op,
            lambda x, label, linear=linear: loss.SVMOutput(x, label, 0.7, 0.5, use_linear=linear),
            (normal(3, 4), integers(0, 4, 3)),
            lambda x, label, linear=linear: 0.5 * svm(x, label, 0.7, linear),
            f"linear{linear:d}",
        )
        for op in ("SVMOutput", "_backward_SVMOutput")
        for linear in (False, True)
    ),
    Case("MakeLoss", loss.MakeLoss, (normal(2, 3),), lambda x: x, grad=False),
    *(
        loss_row(
            "MakeLoss",
            lambda x, how=how: loss.MakeLoss(x, grad_scale=6, **how),
            (lambda rng: np.array([[1.0, -2.0, 0.7], [0.4, 3.0, -1.0]]),),
            lambda x, value=value: np.full_like(x, value),
            name,
        )
        for name, how, value in (
            ("null", {}, 6),
            ("batch", {"normalization": "batch"}, 3),
            ("valid", {"normalization": "valid", "valid_thresh": 0.5}, 2),
            ("none-valid", {"normalization": "valid", "valid_thresh": 9}, 6),
        )
    ),
    *(
        loss_row(
            "MakeLoss",
            lambda x: loss.MakeLoss(x, grad_scale=6, normalization="batch"),
            (lambda rng, shape=shape: rng.standard_normal(shape),),
            lambda x, value=value: np.full_like(x, value),
            f"batch of {len(shape)}",
        )
        for shape, value in (((3,), 6), ((1, 3, 2), 2), ((2, 3, 1, 4), 1))
    ),
]

CASES = FULLY_CONNECTED + SOFTMAX + LEAKY + DROPOUT + NORM + softmax_rows() + regression_rows() + OTHER_LOSSES
