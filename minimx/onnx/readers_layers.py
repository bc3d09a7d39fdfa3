"""Readers of layers: convolutions, pooling, products of matrices, normalizations.

ONNX pads each side of an axis on its own; here both sides get the same, and what is more at the end is padding before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import sym
from ..sym import Symbol
from .reading import Reader, reads


def one_sided(reader: Reader, count: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Padding that is equal on both sides, and what is more at the ends."""
    if reader.attrs.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise reader.unsupported(f"auto_pad={reader.attrs['auto_pad']} has other paddings for other lengths")
    pads = tuple(map(int, reader.attrs.get("pads", (0,) * (2 * count))))
    return pads[:count], tuple([high - low for low, high in zip(pads[:count], pads[count:])])


def padded(reader: Reader, data: Symbol, more: Sequence[int], value: float) -> Symbol:
    """`data` with padding at the ends only, if some is wanted."""
    if not any(more):
        return data
    if min(more) < 0:
        raise reader.unsupported(f"pads={reader.attrs['pads']} has more at the beginning than at the end")
    if len(more) == 1:
        wide = sym.expand_dims(data, axis=3)
        return sym.squeeze(sym.pad(wide, mode="constant", pad_width=(0, 0, 0, 0, 0, more[0], 0, 0), constant_value=value), axis=3)
    width = [0, 0, 0, 0, *(length for each in more for length in (0, each))]
    return sym.pad(data, mode="constant", pad_width=tuple(width), constant_value=value)


def window(reader: Reader, kernel: Sequence[int]) -> dict[str, Any]:
    count = len(kernel)
    return {"kernel": tuple(map(int, kernel)), "stride": tuple(map(int, reader.attrs.get("strides", (1,) * count)))}


@reads("Conv")
def conv(reader: Reader) -> Any:
    shape = reader.numbers(1).shape
    pad, more = one_sided(reader, len(shape) - 2)
    dilate = tuple(map(int, reader.attrs.get("dilations", (1,) * len(pad))))
    data = padded(reader, reader.input(), more, 0.0)
    return reader.made(
        sym.Convolution, data, *reader.inputs()[1:], num_filter=shape[0], num_group=int(reader.attrs.get("group", 1)), pad=pad,
        dilate=dilate, no_bias=not reader.has(2), **window(reader, shape[2:]),
    )  # fmt: skip


@reads("ConvTranspose")
def conv_transpose(reader: Reader) -> Any:
    shape, groups = reader.numbers(1).shape, int(reader.attrs.get("group", 1))
    pad, more = one_sided(reader, len(shape) - 2)
    if any(more) or "output_shape" in reader.attrs:
        raise reader.unsupported("its padding differs from side to side, or follows from output_shape")
    return reader.made(
        sym.Deconvolution, num_filter=shape[1] * groups, num_group=groups, pad=pad, no_bias=not reader.has(2),
        dilate=tuple(map(int, reader.attrs.get("dilations", (1,) * len(pad)))),
        adj=tuple(map(int, reader.attrs.get("output_padding", (0,) * len(pad)))), **window(reader, shape[2:]),
    )  # fmt: skip


@reads("MaxPool", "AveragePool")
def pool(reader: Reader) -> Any:
    kernel = reader.attrs["kernel_shape"]
    if any(each != 1 for each in reader.attrs.get("dilations", ())):
        raise reader.unsupported("a window with gaps does not exist here")
    pad, more = one_sided(reader, len(kernel))
    is_max = reader.node.op_type == "MaxPool"
    counted = is_max or bool(reader.attrs.get("count_include_pad", 0))
    if any(more) and not counted:
        raise reader.unsupported("a mean without the padding, which differs from side to side")
    data = padded(reader, reader.input(), more, float(np.finfo("float32").min) if is_max else 0.0)
    return sym.Pooling(
        data, pool_type="max" if is_max else "avg", pad=pad, pooling_convention="full" if reader.attrs.get("ceil_mode") else "valid",
        count_include_pad=counted, name=reader.name, **window(reader, kernel),
    )  # fmt: skip


@reads("GlobalAveragePool", "GlobalMaxPool")
def global_pool(reader: Reader) -> Any:
    kind = "avg" if reader.node.op_type == "GlobalAveragePool" else "max"
    return sym.Pooling(reader.input(), global_pool=True, kernel=(1,) * (reader.ndim() - 2), pool_type=kind, name=reader.name)


@reads("Gemm")
def gemm(reader: Reader) -> Any:
    """`alpha a b + beta c`: a fully connected layer where it is one."""
    alpha, beta = (float(reader.attrs.get(key, 1.0)) for key in ("alpha", "beta"))
    left, right = bool(reader.attrs.get("transA", 0)), bool(reader.attrs.get("transB", 0))
    if alpha == beta == 1.0 and not left and right and reader.node.input[1] in reader.constants:
        shape = reader.numbers(1).shape
        plain = not reader.has(2) or reader.shapes.get(reader.node.input[2]) == (shape[0],)
        if plain:
            return reader.made(sym.FullyConnected, num_hidden=shape[0], no_bias=not reader.has(2), flatten=False)
    product = sym.dot(reader.input(0), reader.input(1), transpose_a=left, transpose_b=right) * alpha
    return sym.broadcast_add(product, reader.input(2) * beta, name=reader.name) if reader.has(2) else product


@reads("MatMul")
def matmul(reader: Reader) -> Any:
    axes = reader.ndim(0), reader.ndim(1)
    if axes[1] == 2 or axes == (1, 1):
        return sym.dot(reader.input(0), reader.input(1), name=reader.name)
    if axes[0] == axes[1]:
        shapes = [reader.shapes[name][:-2] for name in reader.node.input]
        if shapes[0] == shapes[1]:
            return sym.linalg.gemm2(reader.input(0), reader.input(1), name=reader.name)
    raise reader.unsupported(f"a product of {axes[0]} and {axes[1]} axes that broadcasts")


@reads("BatchNormalization")
def batch_norm(reader: Reader) -> Any:
    eps, momentum = float(reader.attrs.get("epsilon", 1e-5)), float(reader.attrs.get("momentum", 0.9))
    return reader.made(sym.BatchNorm, eps=eps, momentum=momentum, fix_gamma=False)


@reads("InstanceNormalization")
def instance_norm(reader: Reader) -> Any:
    return reader.made(sym.InstanceNorm, eps=float(reader.attrs.get("epsilon", 1e-5)))


@reads("LRN")
def lrn(reader: Reader) -> Any:
    return sym.LRN(
        reader.input(), nsize=int(reader.attrs["size"]), alpha=reader.attrs.get("alpha", 1e-4), beta=reader.attrs.get("beta", 0.75),
        knorm=reader.attrs.get("bias", 1.0), name=reader.name,
    )  # fmt: skip
