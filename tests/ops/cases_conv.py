"""Rows of ops/conv.py: convolutions and their transposes, against loops over results and windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minimx.base import ArgumentError, DTypeError, ShapeError
from minimx.op import apply
from minimx.ops import conv, deconv

from .harness import Bad, Case, normal


def full(value: Sequence[int] | None, ndim: int, default: int) -> tuple[int, ...]:
    return tuple(value) if value else (default,) * ndim


def convolution(
    x: np.ndarray,
    w: np.ndarray,
    b: np.ndarray | None = None,
    stride: Sequence[int] | None = None,
    dilate: Sequence[int] | None = None,
    pad: Sequence[int] | None = None,
    groups: int = 1,
) -> np.ndarray:
    """One result at a time: the elements under its window, weighed and summed."""
    ndim, kernel = x.ndim - 2, w.shape[2:]
    stride, dilate, pad = full(stride, ndim, 1), full(dilate, ndim, 1), full(pad, ndim, 0)
    framed = np.pad(x, [(0, 0), (0, 0), *((p, p) for p in pad)])
    spans = [d * (k - 1) + 1 for d, k in zip(dilate, kernel)]
    counts = [(length - span) // s + 1 for length, span, s in zip(framed.shape[2:], spans, stride)]
    result = np.zeros((len(x), len(w), *counts))
    for filter_number in range(len(w)):
        group = filter_number // (len(w) // groups)
        channels = slice(group * w.shape[1], (group + 1) * w.shape[1])
        for place in np.ndindex(*counts):
            window = tuple(slice(p * s, p * s + span, d) for p, s, span, d in zip(place, stride, spans, dilate))
            under = framed[(slice(None), channels, *window)]
            result[(slice(None), filter_number, *place)] = (under * w[filter_number]).sum(tuple(range(1, x.ndim)))
    return result if b is None else result + b.reshape(-1, *[1] * ndim)


def last(array: np.ndarray) -> np.ndarray:
    """The channels, which are axis 1, as the last axis."""
    return np.moveaxis(array, 1, -1)


def first(array: np.ndarray) -> np.ndarray:
    return np.moveaxis(array, -1, 1)


def row(
    data: tuple[int, ...], filters: int, kernel: tuple[int, ...], label: str, bias: bool = True, groups: int = 1, **window: Any
) -> Case:
    """A row of Convolution."""
    weight = (filters, data[1] // groups, *kernel)
    inputs = (normal(*data), normal(*weight)) + ((normal(filters),) if bias else ())
    return Case(
        "Convolution",
        lambda *given: conv.Convolution(*given, kernel=kernel, num_filter=filters, num_group=groups, no_bias=not bias, **window),
        inputs,
        lambda *given: convolution(*given, groups=groups, **window),
        # float16: sums of many products whose terms cancel, compared with float64 of the rounded inputs
        rtol={"float32": 1e-4, "float16": 5e-2, "float64": 1e-11},
        label=label,
    )


def bad(match: str, error: type[Exception] = ArgumentError, data: tuple[int, ...] = (1, 4, 5, 5), **given: Any) -> Bad:
    """A bad call of Convolution."""
    wanted: dict[str, Any] = {"kernel": (3, 3), "num_filter": 2, "no_bias": True, "weight": (2, 4, 3, 3), "dtype": "float32"}
    wanted.update(given)
    weight, dtype = wanted.pop("weight"), wanted.pop("dtype")
    return Bad(lambda nd: nd.Convolution(nd.ones(data, dtype=dtype), nd.ones(weight), **wanted), error, match)


BAD = (
    bad("kernel is required: 1, 2 or 3 lengths", kernel=()),
    bad(r"kernel=\(3, 0\) must not be less than 1", kernel=(3, 0)),
    bad(r"stride=\(0, 1\) must not be less than 1", stride=(0, 1)),
    bad(r"pad=\(-1, 0\) must not be less than 0", pad=(-1, 0)),
    bad(r"dilate=\(1,\) has 1 lengths, kernel=\(3, 3\) has 2", dilate=1),
    bad(r"kernel must be an int or a tuple of int, got 'a'", kernel="a"),
    bad(r"num_filter=0 is not positive", num_filter=0),
    bad(r"num_group=3 does not divide the channels of data \(1, 4, 5, 5\): 4", num_group=3),
    bad(r"num_group=4 does not divide num_filter: 2", num_group=4),
    bad(r"num_group=0 does not divide", num_group=0),
    bad(r"layout='NCW' is not one for 2 axes; choose NCHW or NHWC", layout="NCW"),
    bad(r"data needs 4 axes \(batch, channels, height, width\), got \(4, 5, 5\)", ShapeError, (4, 5, 5)),
    bad(r"weight has shape \(2, 4, 3, 3\), data of shape \(1, 5, 5, 5\) needs \(2, 5, 3, 3\)", ShapeError, (1, 5, 5, 5)),
    bad(r"reaches over \(3, 3\), but data has \(2, 5\) with its padding", ShapeError, (1, 4, 2, 5)),
    bad(r"reaches over \(5, 7\), but data has \(5, 5\) with its padding", ShapeError, dilate=(2, 3)),
    bad("bias is missing; pass it with no_bias=False", no_bias=False),
    bad("data is int32, wants a floating dtype", DTypeError, dtype="int32"),
    bad("data is float64 but weight is float32", DTypeError, dtype="float64"),
    Bad(
        lambda nd: nd.Convolution(nd.ones((1, 1, 3)), nd.ones((2, 1, 3)), nd.ones((3,)), kernel=(3,), num_filter=2),
        ShapeError,
        r"bias has shape \(3,\), num_filter=2 needs \(2,\)",
    ),
    Bad(
        lambda nd: nd.Convolution(nd.ones((1, 1, 3)), nd.ones((2, 1, 3)), nd.ones((2,)), kernel=(3,), num_filter=2, no_bias=True),
        ArgumentError,
        "bias is given but not used",
    ),
)

CONVOLUTION = [
    Case(
        "Convolution",
        lambda x, w, b: conv.Convolution(x, w, b, (3, 3), num_filter=4),
        (normal(2, 3, 5, 6), normal(4, 3, 3, 3), normal(4)),
        convolution,
        rtol={"float32": 1e-4, "float16": 5e-2, "float64": 1e-11},  # sums of products whose terms cancel
        bad=BAD,
    ),
    row((2, 3, 7), 4, (3,), "1D", stride=(2,), pad=(1,), dilate=(2,)),
    row((1, 2, 4, 5, 6), 3, (2, 3, 3), "3D", stride=(1, 2, 1), pad=(1, 0, 2)),
    row((2, 3, 8, 7), 4, (3, 2), "strided", bias=False, stride=(3, 2), pad=(2, 1)),
    row((2, 2, 9, 8), 3, (3, 3), "dilated", dilate=(3, 2), pad=(2, 3)),
    row((2, 4, 5, 4), 6, (3, 3), "groups", groups=2, pad=(1, 1)),
    row((3, 4, 6, 5), 4, (3, 3), "depthwise", groups=4, pad=(1, 1), stride=(2, 1)),
    row((2, 3, 6, 5), 6, (3, 2), "depthwise-twice", bias=False, groups=3, dilate=(2, 1), pad=(0, 1)),
    row((3, 4, 3, 5), 2, (1, 1), "1x1"),
    row((3, 4, 3, 5), 6, (1, 1), "1x1-groups", groups=2),
    row((2, 3, 5, 4), 2, (1, 1), "1x1-strided", stride=(2, 3)),
    row((2, 3, 3, 3), 2, (1, 1), "1x1-padded", pad=(1, 1)),
    row((1, 1, 1, 1), 1, (1, 1), "ones"),
    row((2, 3, 4, 4), 5, (4, 4), "whole"),
    row((1, 1, 1, 2), 1, (3, 3), "mostly-padding", pad=(3, 3), stride=(2, 2)),
    row((0, 2, 4, 4), 3, (3, 3), "empty"),
    Case(
        "Convolution",
        lambda x, w, b: conv.Convolution(x, w, b, (3, 2), (2, 1), (1, 2), (1, 1), 4, 2, layout="NHWC"),
        (normal(2, 5, 4, 6), normal(4, 3, 2, 3), normal(4)),
        lambda x, w, b: last(convolution(first(x), first(w), b, (2, 1), (1, 2), (1, 1), 2)),
        rtol={"float32": 1e-4, "float16": 5e-2, "float64": 1e-11},  # as above
        label="channels-last",
    ),
    Case(
        "Convolution",
        lambda x, w: conv.Convolution(
            x, w, kernel=3, pad=[1], stride="(1,)", num_filter=2, no_bias=True, layout="NCW", workspace=1
        ),
        (normal(1, 2, 5), normal(2, 2, 3)),
        lambda x, w: convolution(x, w, pad=(1,)),
        rtol={"float32": 1e-4, "float16": 5e-2, "float64": 1e-11},  # as above
        label="attributes-of-other-types",
    ),
]


# ---- the operators that are its gradients


def transposed(
    g: np.ndarray, w: np.ndarray, lengths: Sequence[int], stride: Sequence[int], pad: Sequence[int], groups: int = 1
) -> np.ndarray:
    """Each element of `g` puts its filter, weighed by it, where its window was."""
    channels = w.shape[1] * groups
    framed = np.zeros((len(g), channels, *(length + 2 * p for length, p in zip(lengths, pad))))
    for number in range(g.shape[1]):
        group = number // (g.shape[1] // groups)
        into = slice(group * w.shape[1], (group + 1) * w.shape[1])
        for place in np.ndindex(*g.shape[2:]):
            window = tuple(slice(p * s, p * s + k) for p, s, k in zip(place, stride, w.shape[2:]))
            part = g[(slice(None), number, *place)].reshape(-1, *[1] * (w.ndim - 1)) * w[number]
            target = framed[(slice(None), into, *window)]
            target += part[tuple(slice(0, n) for n in target.shape)]  # beyond the end there is nothing to add to
    return framed[(slice(None), slice(None), *(slice(p, p + length) for p, length in zip(pad, lengths)))]


GEOMETRY: dict[str, Any] = {"kernel_size": (3, 2), "stride": (2, 1), "dilate": (1, 1), "pad": (1, 0), "num_group": 2}


def weights(x: np.ndarray, g: np.ndarray) -> np.ndarray:
    """The gradient of each weight: the convolution is linear in it."""
    result = np.zeros((g.shape[1], x.shape[1] // 2, 3, 2))
    for place in np.ndindex(*result.shape):
        unit = np.zeros_like(result)
        unit[place] = 1
        result[place] = (convolution(x, unit, None, (2, 1), None, (1, 0), 2) * g).sum()
    return result


def backward(call: Callable[..., Any], shapes: tuple[tuple[int, ...], ...]) -> Callable[[Any], Any]:
    """A call with arrays of ones of these shapes."""
    return lambda nd: call(*[nd.ones(shape) for shape in shapes])


def to_data(g: Any, w: Any) -> Any:
    return apply(conv.ConvolutionData(**GEOMETRY, lengths=(6, 4)), g, w)


def to_weight(x: Any, g: Any) -> Any:
    return apply(conv.ConvolutionWeight(**GEOMETRY), x, g)


GRADIENTS = [
    Case(
        "_backward_Convolution_data",
        to_data,
        (normal(2, 4, 3, 3), normal(4, 3, 3, 2)),
        lambda g, w: transposed(g, w, (6, 4), (2, 1), (1, 0), 2),
        rtol={"float32": 1e-4, "float16": 5e-2, "float64": 1e-11},  # as above
        bad=(
            Bad(
                backward(to_data, ((2, 4, 3, 2), (4, 3, 3, 2))),
                ShapeError,
                r"head has shape \(2, 4, 3, 2\), data of lengths \(6, 4\) needs \(3, 3\)",
            ),
            Bad(
                backward(to_data, ((2, 4, 3, 3), (4, 3, 2, 3))),
                ShapeError,
                r"weight has shape \(4, 3, 2, 3\), .* needs \(4, 3, 3, 2\)",
            ),
        ),
    ),
    Case(
        "_backward_Convolution_weight",
        to_weight,
        (normal(2, 6, 6, 4), normal(2, 4, 3, 3)),
        weights,
        rtol={"float32": 1e-4, "float16": 5e-2, "float64": 1e-11},  # as above
        bad=(
            Bad(
                backward(to_weight, ((2, 6, 6, 4), (2, 4, 3, 2))),
                ShapeError,
                r"head has shape \(2, 4, 3, 2\), data of shape \(2, 6, 6, 4\) needs \(2, 4, 3, 3\)",
            ),
        ),
    ),
]


# ---- Deconvolution


def deconvolution(
    x: np.ndarray,
    w: np.ndarray,
    b: np.ndarray | None = None,
    stride: Sequence[int] | None = None,
    dilate: Sequence[int] | None = None,
    pad: Sequence[int] | None = None,
    adj: Sequence[int] | None = None,
    target_shape: Sequence[int] | None = None,
    groups: int = 1,
) -> np.ndarray:
    """Filters with zeros between their elements, put down for each element; then the padding is cut off on both sides."""
    ndim = x.ndim - 2
    stride, dilate, pad, adj = full(stride, ndim, 1), full(dilate, ndim, 1), full(pad, ndim, 0), full(adj, ndim, 0)
    kernel = [d * (k - 1) + 1 for d, k in zip(dilate, w.shape[2:])]
    wide = np.zeros((*w.shape[:2], *kernel))
    wide[(slice(None), slice(None), *(slice(None, None, d) for d in dilate))] = w
    whole = [s * (n - 1) + k for s, n, k in zip(stride, x.shape[2:], kernel)]
    lengths = [n - 2 * p + a for n, p, a in zip(whole, pad, adj)]
    if target_shape:
        lengths, pad = list(target_shape), tuple((n - t + 1) // 2 for n, t in zip(whole, target_shape))
    result = transposed(x, wide, lengths, stride, pad, groups)
    return result if b is None else result + b.reshape(-1, *[1] * ndim)


def back(
    data: tuple[int, ...], filters: int, kernel: tuple[int, ...], label: str, bias: bool = True, groups: int = 1, **window: Any
) -> Case:
    """A row of Deconvolution."""
    weight = (data[1], filters // groups, *kernel)
    inputs = (normal(*data), normal(*weight)) + ((normal(filters),) if bias else ())
    return Case(
        "Deconvolution",
        lambda *given: deconv.Deconvolution(
            *given, kernel=kernel, num_filter=filters, num_group=groups, no_bias=not bias, **window
        ),
        inputs,
        lambda *given: deconvolution(*given, groups=groups, **window),
        rtol={"float32": 1e-4, "float16": 5e-2, "float64": 1e-11},  # as above
        label=label,
    )


def refused(match: str, error: type[Exception] = ArgumentError, **given: Any) -> Bad:
    """A bad call of Deconvolution, of data (1, 4, 5, 5)."""
    wanted: dict[str, Any] = {"kernel": (3, 3), "num_filter": 2, "weight": (4, 2, 3, 3), **given}
    weight = wanted.pop("weight")
    return Bad(lambda nd: nd.Deconvolution(nd.ones((1, 4, 5, 5)), nd.ones(weight), **wanted), error, match)


DECONVOLUTION = [
    Case(
        "Deconvolution",
        lambda x, w: deconv.Deconvolution(x, w, kernel=(3, 2), num_filter=4),
        (normal(2, 3, 4, 5), normal(3, 4, 3, 2)),
        deconvolution,
        rtol={"float32": 1e-4, "float16": 5e-2, "float64": 1e-11},  # as above
        bad=(
            refused(r"weight has shape \(2, 4, 3, 3\), .* needs \(4, 2, 3, 3\)", ShapeError, weight=(2, 4, 3, 3)),
            refused(r"adj=\(1, 1\) must be less than stride=\(1, 1\)", adj=(1, 1)),
            refused(r"adj=\(-1, 0\) must not be less than 0", adj=(-1, 0)),
            refused(r"adj=\(1,\) has 1 lengths, kernel=\(3, 3\) has 2", adj=1),
            refused(r"target_shape=\(8, 5\), the results for .* end at \(7, 7\)", ShapeError, target_shape=(8, 5)),
            refused(r"target_shape=\(6, 5\) leaves an odd number of \(7, 7\) results over", ShapeError, target_shape=(6, 5)),
            refused(r"nothing is left of \(7, 7\) results without pad=\(4, 0\)", ShapeError, pad=(4, 0)),
            refused("bias is missing; pass it with no_bias=False", no_bias=False),
            refused("num_group=3 does not divide the channels", num_group=3),
        ),
    ),
    back((2, 3, 4), 2, (3,), "1D", stride=(2,), pad=(1,), adj=(1,)),
    back((1, 2, 2, 3, 2), 3, (2, 3, 3), "3D", stride=(1, 2, 1), pad=(0, 1, 1)),
    back((2, 4, 3, 4), 6, (3, 3), "groups", groups=2, stride=(2, 3), adj=(0, 2)),
    back((2, 4, 3, 4), 4, (3, 2), "depthwise", False, 4, stride=(2, 1), pad=(1, 0)),
    back((2, 3, 3, 2), 2, (3, 3), "dilated", dilate=(2, 3), stride=(2, 2), pad=(1, 2)),
    back((1, 2, 3, 4), 2, (4, 4), "target", stride=(2, 2), pad=(7, 7), adj=(1, 1), target_shape=(7, 8)),
    back((1, 1, 1, 1), 1, (1, 1), "ones"),
    Case(
        "Deconvolution",
        lambda x, w, b: deconv.Deconvolution(
            x, w, b, (3, 2), (2, 1), pad=(1, 0), num_filter=6, num_group=2, no_bias=False, layout="NHWC"
        ),
        (normal(2, 3, 4, 4), normal(4, 3, 2, 3), normal(6)),
        lambda x, w, b: last(deconvolution(first(x), first(w), b, (2, 1), pad=(1, 0), groups=2)),
        rtol={"float32": 1e-4, "float16": 5e-2, "float64": 1e-11},  # as above
        label="channels-last",
    ),
]

CASES = [*CONVOLUTION, *GRADIENTS, *DECONVOLUTION]
