"""The table of readers: for each operator of ONNX what it is here. Elementwise operators, activations, shapes, reductions.

Layers are in readers_layers.py and readers_recurrent.py.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import sym
from .activation import ACTIVATIONS
from .elementwise import UNARY
from .reading import NAMES, Reader, reads

# ---- elementwise

UNARIES = {kind: name for name, kind in UNARY.items()}
ARITHMETIC = {"Add": sym.broadcast_add, "Sub": sym.broadcast_sub, "Mul": sym.broadcast_mul, "Div": sym.broadcast_div,
              "Pow": sym.broadcast_power, "Max": sym.broadcast_maximum, "Min": sym.broadcast_minimum, "Sum": sym.broadcast_add,
              "Equal": sym.broadcast_equal, "Greater": sym.broadcast_greater, "Less": sym.broadcast_lesser,
              "GreaterOrEqual": sym.broadcast_greater_equal, "LessOrEqual": sym.broadcast_lesser_equal, "And": sym.broadcast_logical_and,
              "Or": sym.broadcast_logical_or, "Xor": sym.broadcast_logical_xor}  # fmt: skip


@reads(*UNARIES)
def unary(reader: Reader) -> Any:
    return getattr(sym, UNARIES[reader.node.op_type])(reader.input(), name=reader.name)


@reads(*ARITHMETIC)
def arithmetic(reader: Reader) -> Any:
    """Of two, or of several from the left."""
    function = ARITHMETIC[reader.node.op_type]
    first, *others = reader.inputs()
    if not others:
        return sym.identity(first, name=reader.name)
    for other in others[:-1]:
        first = function(first, other)
    return function(first, others[-1], name=reader.name)


@reads("Not")
def logical_not(reader: Reader) -> Any:
    return sym.logical_not(reader.input(), name=reader.name)


@reads("Where")
def where(reader: Reader) -> Any:
    """By arithmetic, which broadcasts: here `where` wants equal shapes."""
    condition, x, y = reader.inputs()
    like = sym.broadcast_add(x, sym.zeros_like(y))
    wide = sym.broadcast_add(sym.zeros_like(like), sym.cast(condition, "float32"))
    return sym.where(
        wide, sym.broadcast_add(x, sym.zeros_like(wide)), sym.broadcast_add(y, sym.zeros_like(wide)), name=reader.name
    )


@reads("Identity", "Dropout")
def identity(reader: Reader) -> Any:
    return sym.identity(reader.input(), name=reader.name)


@reads("Cast")
def cast(reader: Reader) -> Any:
    number = int(reader.attrs["to"])
    if number not in NAMES:
        raise reader.unsupported(f"dtype number {number} is not here")
    return sym.cast(reader.input(), "float32" if NAMES[number] == "bool" else NAMES[number], name=reader.name)


@reads("Clip")
def clip(reader: Reader) -> Any:
    low, high = (
        float(reader.attrs[key]) if key in reader.attrs else float(reader.numbers(place)) if reader.has(place) else default
        for place, key, default in ((1, "min", -math.inf), (2, "max", math.inf))
    )
    return sym.clip(reader.input(), low, high, name=reader.name)


@reads("Constant")
def constant(reader: Reader) -> Any:
    for key, dtype in (
        ("value", None),
        ("value_float", "float32"),
        ("value_floats", "float32"),
        ("value_int", "int64"),
        ("value_ints", "int64"),
    ):
        if key in reader.attrs:
            return np.asarray(reader.attrs[key], dtype)
    raise reader.unsupported(f"it has {', '.join(reader.attrs)}")


@reads("ConstantOfShape")
def constant_of_shape(reader: Reader) -> Any:
    value = np.asarray(reader.attrs.get("value", np.zeros(1, "float32")))
    like = reader.measured.get(reader.node.input[0])
    if like is not None:
        return sym.cast(sym.zeros_like(like) + float(value.reshape(-1)[0]), value.dtype, name=reader.name)
    return np.full(tuple(reader.numbers(0)), value.reshape(-1)[0], value.dtype)


# ---- activations


@reads("Softplus")
def softplus(reader: Reader) -> Any:
    assert ACTIVATIONS["softrelu"] == "Softplus"
    return sym.Activation(reader.input(), act_type="softrelu", name=reader.name)


@reads("LeakyRelu")
def leaky_relu(reader: Reader) -> Any:
    return sym.LeakyReLU(reader.input(), act_type="leaky", slope=reader.attrs.get("alpha", 0.01), name=reader.name)


@reads("Elu")
def elu(reader: Reader) -> Any:
    return sym.LeakyReLU(reader.input(), act_type="elu", slope=reader.attrs.get("alpha", 1.0), name=reader.name)


@reads("Selu")
def selu(reader: Reader) -> Any:
    return sym.LeakyReLU(reader.input(), act_type="selu", name=reader.name)


@reads("PRelu")
def prelu(reader: Reader) -> Any:
    x, slope = reader.inputs()
    return sym.broadcast_add(sym.relu(x), sym.broadcast_mul(sym.clip(x, -math.inf, 0), slope), name=reader.name)


@reads("HardSigmoid")
def hard_sigmoid(reader: Reader) -> Any:
    return sym.hard_sigmoid(
        reader.input(), alpha=reader.attrs.get("alpha", 0.2), beta=reader.attrs.get("beta", 0.5), name=reader.name
    )


@reads("Softmax")
def softmax(reader: Reader) -> Any:
    return sym.softmax(reader.input(), axis=int(reader.attrs.get("axis", -1)), name=reader.name)


@reads("LogSoftmax")
def log_softmax(reader: Reader) -> Any:
    return sym.log_softmax(reader.input(), axis=int(reader.attrs.get("axis", -1)), name=reader.name)


# ---- shapes


@reads("Reshape")
def reshape(reader: Reader) -> Any:
    return sym.reshape(reader.input(), shape=tuple(map(int, reader.numbers(1))), name=reader.name)


@reads("Flatten")
def flatten(reader: Reader) -> Any:
    axis = int(reader.attrs.get("axis", 1))
    if axis == 1:
        return sym.Flatten(reader.input(), name=reader.name)
    raise reader.unsupported(f"axis={axis}; only the batch stays apart")


@reads("Transpose")
def transpose(reader: Reader) -> Any:
    return sym.transpose(reader.input(), axes=tuple(map(int, reader.attrs.get("perm", ()))), name=reader.name)


@reads("Squeeze")
def squeeze(reader: Reader) -> Any:
    return sym.squeeze(reader.input(), axis=reader.ints(1, "axes"), name=reader.name)


@reads("Unsqueeze")
def unsqueeze(reader: Reader) -> Any:
    axes = reader.ints(1, "axes") or ()
    ndim = reader.ndim() + len(axes)
    result = reader.input()
    for axis in sorted(each % ndim for each in axes):
        result = sym.expand_dims(result, axis=axis)
    return result


@reads("Concat")
def concat(reader: Reader) -> Any:
    names = list(reader.node.input)
    if all(name in reader.constants for name in names):
        return np.concatenate([reader.constants[name] for name in names], int(reader.attrs["axis"]))
    return sym.concat(*reader.inputs(), dim=int(reader.attrs["axis"]), name=reader.name)


@reads("Split")
def split(reader: Reader) -> Any:
    axis, parts = int(reader.attrs.get("axis", 0)), reader.ints(1, "split")
    count = len(reader.node.output)
    if parts is None or len(set(parts)) == 1:
        found = sym.split(reader.input(), num_outputs=count, axis=axis, name=reader.name)
    else:
        ends = tuple(int(each) for each in np.cumsum(parts)[:-1])
        found = sym.split_v2(reader.input(), ends, axis=axis, name=reader.name)
    return list(found) if count > 1 else found


@reads("Slice")
def slice_(reader: Reader) -> Any:
    begins, ends = reader.ints(1, "starts") or (), reader.ints(2, "ends") or ()
    axes = reader.ints(3, "axes") or tuple(range(len(begins)))
    steps = reader.ints(4, "steps") or (1,) * len(begins)
    ndim = reader.ndim()
    where: list[tuple[int | None, int | None, int | None]] = [(None, None, None)] * ndim
    far = np.iinfo(np.int32).max
    for begin, end, axis, step in zip(begins, ends, axes, steps):
        beyond = end >= far if step > 0 else end <= -far
        where[axis % ndim] = (None if step < 0 and begin in (-1, far) else begin, None if beyond else end, step)
    return reader.made(sym.slice, reader.input(), **dict(zip(("begin", "end", "step"), zip(*where))))


@reads("Pad")
def pad(reader: Reader) -> Any:
    ends = reader.ints(1, "pads") or ()
    count = len(ends) // 2
    value = float(reader.numbers(2)) if reader.has(2) else float(reader.attrs.get("value", 0.0))
    width = tuple([each for axis in range(count) for each in (ends[axis], ends[count + axis])])
    return sym.pad(
        reader.input(), mode=reader.attrs.get("mode", "constant"), pad_width=width, constant_value=value, name=reader.name
    )


@reads("Tile")
def tile(reader: Reader) -> Any:
    return sym.tile(reader.input(), reps=tuple(map(int, reader.numbers(1))), name=reader.name)


@reads("Expand")
def expand(reader: Reader) -> Any:
    shape = tuple(map(int, reader.numbers(1)))
    ndim = reader.ndim()
    data = reader.input()
    for _ in range(len(shape) - ndim):
        data = sym.expand_dims(data, axis=0)
    shape = (1,) * (ndim - len(shape)) + shape
    return sym.broadcast_to(data, shape=tuple([0 if length == 1 else length for length in shape]), name=reader.name)


@reads("DepthToSpace")
def depth_to_space(reader: Reader) -> Any:
    if reader.attrs.get("mode", "DCR") != "DCR":
        raise reader.unsupported(f"mode={reader.attrs['mode']}")
    return sym.depth_to_space(reader.input(), block_size=int(reader.attrs["blocksize"]), name=reader.name)


@reads("SpaceToDepth")
def space_to_depth(reader: Reader) -> Any:
    return sym.space_to_depth(reader.input(), block_size=int(reader.attrs["blocksize"]), name=reader.name)


@reads("Shape")
def shape(reader: Reader) -> Any:
    reader.measured[reader.node.output[0]] = reader.input()
    return sym.shape_array(reader.input(), name=reader.name)


@reads("Gather")
def gather(reader: Reader) -> Any:
    axis = int(reader.attrs.get("axis", 0))
    if reader.node.input[1] in reader.constants and not reader.numbers(1).ndim:  # one element, whose axis goes
        place = int(reader.numbers(1))
        part = sym.slice_axis(reader.input(), axis=axis, begin=place, end=place + 1 if place != -1 else None)
        return sym.squeeze(part, axis=(axis,), name=reader.name)
    return sym.take(reader.input(0), reader.input(1), axis=axis, name=reader.name)


# ---- reductions

REDUCTIONS: dict[str, Callable[..., Any]] = {
    "ReduceSum": sym.sum, "ReduceMean": sym.mean, "ReduceMax": sym.max, "ReduceMin": sym.min, "ReduceProd": sym.prod,
    "ReduceL1": functools.partial(sym.norm, ord=1), "ReduceL2": sym.norm,
}  # fmt: skip


@reads(*REDUCTIONS)
def reduction(reader: Reader) -> Any:
    axes, keepdims = reader.ints(1, "axes"), bool(reader.attrs.get("keepdims", 1))
    return REDUCTIONS[reader.node.op_type](reader.input(), axis=axes, keepdims=keepdims, name=reader.name)


@reads("ArgMax", "ArgMin")
def place(reader: Reader) -> Any:
    function = sym.argmax if reader.node.op_type == "ArgMax" else sym.argmin
    found = function(reader.input(), axis=int(reader.attrs.get("axis", 0)), keepdims=bool(reader.attrs.get("keepdims", 1)))
    return sym.cast(found, "int64", name=reader.name)


@reads("TopK")
def topk(reader: Reader) -> Any:
    count = int(reader.numbers(1).reshape(-1)[0])
    ascending = not reader.attrs.get("largest", 1)
    found = sym.topk(
        reader.input(),
        axis=int(reader.attrs.get("axis", -1)),
        k=count,
        ret_typ="both",
        is_ascend=ascending,
        dtype="int64",
        name=reader.name,
    )
    return list(found)
