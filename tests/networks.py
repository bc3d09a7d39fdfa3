"""Random networks: a description that Hypothesis draws and shrinks, and the block that it describes.

A `Piece` is a layer, a formula, or a block with sequences of pieces inside. Which pieces fit depends on the shape that an example has at
that place, which is followed while they are drawn. tests/test_ways_to_run.py runs the networks in all ways there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from minimx import gluon
from minimx.gluon import nn

Shape = tuple[int, ...]
LARGEST = 400  # elements of an example, beyond which nothing grows


@dataclass(frozen=True)
class Piece:
    """A part of a network: what it is, its arguments, and the pieces inside."""

    kind: str
    how: tuple[tuple[str, Any], ...] = ()
    inner: tuple[tuple[Piece, ...], ...] = ()

    def __repr__(self) -> str:
        inside = [f"{key}={value!r}" for key, value in self.how] + [repr(list(part)) for part in self.inner]
        return f"{self.kind}({', '.join(inside)})"


def piece(kind: str, *inner: Sequence[Piece], **how: Any) -> Piece:
    return Piece(kind, tuple(how.items()), tuple(map(tuple, inner)))


def tamed(given: Piece) -> Piece:
    """The piece with normalizations that divide by at least one."""
    how = (*given.how, ("epsilon", 1.0)) if given.kind.startswith(("Batch", "Layer", "Group", "Instance")) else given.how
    return Piece(given.kind, how, tuple(tuple(map(tamed, part)) for part in given.inner))


# ---- formulas: functions of one tensor

SAME: dict[str, Callable[..., Any]] = {  # these keep the shape
    "affine": lambda F, x: x * 2 - 0.5,
    "from one": lambda F, x: 1 - x,
    "quotient": lambda F, x: x / 3 + 1 / (x * x + 2),
    "powers": lambda F, x: 2 ** (x * 0.1) + x**2,
    "remainder": lambda F, x: x % 0.7,
    "clip": lambda F, x: F.clip(x, -0.5, 0.8),
    "bell": lambda F, x: F.exp(-x * x),
    "root": lambda F, x: (x * x + 1).sqrt(),
    "logarithm": lambda F, x: F.log1p(F.abs(x)),
    "sign": lambda F, x: F.sign(x) * x.square(),
    "erf": lambda F, x: F.erf(x) + F.hard_sigmoid(x),
    "smooth": lambda F, x: F.smooth_l1(x, scalar=1.0),
    "softmax": lambda F, x: F.softmax(x, axis=-1),
    "softmax of channels": lambda F, x: F.softmax(x * 3, axis=1),
    "log softmax": lambda F, x: F.log_softmax(x, axis=1, temperature=2.0),
    "length": lambda F, x: F.L2Normalization(x, mode="instance"),
    "norm": lambda F, x: F.broadcast_div(x, F.norm(x, axis=1, keepdims=True) + 1),
    "centre": lambda F, x: F.broadcast_sub(x, F.mean(x, axis=1, keepdims=True)),
    "centre of last": lambda F, x: x - x.mean(axis=-1, keepdims=True),
    "below the largest": lambda F, x: F.broadcast_sub(x, x.max(axis=1, keepdims=True)),
    "mean of all": lambda F, x: x * F.mean(x, keepdims=True),
    "first example": lambda F, x: x + F.slice_axis(x, axis=0, begin=0, end=1),
    "examples": lambda F, x: F.broadcast_add(x, F.mean(x, axis=0, keepdims=True)),
    "comparison": lambda F, x: F.where(x > 0.1, x, x * x) + (x < 1),
    "stopped": lambda F, x: x * F.stop_gradient(x),
    "stopped noise": lambda F, x: x + F.BlockGrad(F.Dropout(x, p=0.5)),
    "two noises": lambda F, x: F.Dropout(x, p=0.5) + F.Dropout(x, p=0.5),
    "ones": lambda F, x: F.ones_like(x) * 0.5 + x,
    "zeros": lambda F, x: F.zeros_like(x.exp()) + x,
    "the same twice": lambda F, x: F.tanh(x) * F.tanh(x),
    "the other way round": lambda F, x: F.sin(x) - F.cos(x) + F.sin(x),
    "views": lambda F, x: F.reshape_like(x.reshape((0, -1)), x) * F.identity(x),
    "reversed": lambda F, x: F.reverse(x, axis=1) + x,
    "stack": lambda F, x: F.stack(x, x * 2).sum(axis=0),
    "list": lambda F, x: F.add_n(x, x * x, F.sin(x)),
    "axis": lambda F, x: F.expand_dims(x, axis=1).sum(axis=1),
    "halves": lambda F, x: F.elemwise_mul(*F.split(F.concat(x, x.tanh(), dim=1), num_outputs=2, axis=1)),
    "part": lambda F, x: F.slice_like(F.concat(x, x * 2, dim=1), x),
    "cumulated": lambda F, x: F.cumsum(x, axis=1),
    "nothing": lambda F, x: F.identity(x * 1),
    "loop": lambda F, x: F.contrib.foreach(lambda each, total: (F.tanh(each) + total, total * 0.5), x, F.sum(x, axis=0))[0],
    "larger": lambda F, x: F.broadcast_maximum(x, F.reverse(x, axis=-1) * 0.5),
}

#: These change it: (formula, ranks of an example, shape -> shape).
OTHER: dict[str, tuple[Callable[..., Any], tuple[int, ...], Callable[[Shape], Shape]]] = {
    "channels last": (lambda F, x: F.swapaxes(x, 1, -1), (2, 3), lambda s: (s[-1], *s[1:-1], s[0])),
    "transpose": (lambda F, x: F.transpose(x, axes=(0, 2, 3, 1)), (3,), lambda s: (s[1], s[2], s[0])),
    "mean of last": (lambda F, x: x.mean(axis=-1), (2, 3), lambda s: s[:-1]),
    "sum of channels": (lambda F, x: x.sum(axis=1), (2, 3), lambda s: s[1:]),
    "largest": (lambda F, x: F.max(x, axis=-1), (2, 3), lambda s: s[:-1]),
    "flat": (lambda F, x: x.reshape((0, -1)), (1, 2, 3), lambda s: (math.prod(s),)),
    "joined": (lambda F, x: x.reshape((0, 0, -1)), (2, 3), lambda s: (s[0], math.prod(s[1:]))),
    "new axis": (lambda F, x: x.expand_dims(2), (1, 2), lambda s: (s[0], 1, *s[1:])),
    "double": (lambda F, x: F.concat(x, x * 2, dim=1), (1, 2, 3), lambda s: (2 * s[0], *s[1:])),
    "repeat": (lambda F, x: F.repeat(x, repeats=2, axis=1), (1, 2, 3), lambda s: (2 * s[0], *s[1:])),
    "tile": (lambda F, x: F.tile(x, reps=(1, 2, 1)), (2,), lambda s: (2 * s[0], s[1])),
    "first channel": (lambda F, x: F.slice_axis(x, axis=1, begin=0, end=1), (1, 2, 3), lambda s: (1, *s[1:])),
    "every other": (
        lambda F, x: F.slice(x, begin=(None, None), end=(None, None), step=(1, 2)), (1, 2, 3), lambda s: (-(-s[0] // 2), *s[1:])
    ),
    "products": (lambda F, x: F.batch_dot(x, x, transpose_b=True), (2,), lambda s: (s[0], s[0])),
    "pair": (lambda F, x: F.stack(x, x.sin(), axis=1), (1, 2), lambda s: (2, *s)),
    "padded": (lambda F, x: F.pad(x, mode="edge", pad_width=(0, 0, 0, 0, 1, 0, 0, 2)), (3,), lambda s: (s[0], s[1] + 1, s[2] + 2)),
    "upsampled": (lambda F, x: F.UpSampling(x, scale=2, sample_type="nearest"), (3,), lambda s: (s[0], 2 * s[1], 2 * s[2])),
}  # fmt: skip


@dataclass(frozen=True)
class Formula:
    """One of the formulas by its name: unlike them, it can be pickled."""

    name: str

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, F: Any, x: Any) -> Any:
        return (SAME[self.name] if self.name in SAME else OTHER[self.name][0])(F, x)


# ---- blocks with pieces inside


def sequence(part: Sequence[Piece]) -> nn.HybridSequential:
    made = nn.HybridSequential()
    with made.name_scope():
        made.add(*map(build, part))
    return made


class Composite(gluon.HybridBlock):
    """`parts` are sequences."""

    def __init__(self, *parts: Sequence[Piece]) -> None:
        super().__init__()
        with self.name_scope():
            for part in parts:
                self.register_child(sequence(part))

    @property
    def parts(self) -> list[Any]:
        return list(self._children.values())


class Residual(Composite):
    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return x + self.parts[0](x)


class Twice(Composite):
    """A layer that is used again on what it gave."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.parts[0](self.parts[0](x))


class Siamese(Composite):
    """A layer that is used on two tensors."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.parts[0](x) + self.parts[0](x * 0.5)


class Gate(Composite):
    """A factor for each channel, which broadcasts: by Python's operator, or by name."""

    def __init__(self, part: Sequence[Piece], by_name: bool) -> None:
        super().__init__(part)
        self.by_name = by_name

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        gate = F.sigmoid(F.mean(self.parts[0](x), axis=-1, keepdims=True))
        return F.broadcast_mul(x, gate) if self.by_name else x * gate


class Halves(Composite):
    """The two halves of the channels go different ways."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        left, right = F.split(x, num_outputs=2, axis=1)
        return F.concat(self.parts[0](left), self.parts[1](right), dim=1)


class Pair(Composite):
    """Gives a nested list."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return [self.parts[0](x), (x * 2, [self.parts[1](x)])]


class Several(gluon.HybridBlock):
    """Takes what `Pair` gives."""

    def __init__(self, *parts: Sequence[Piece]) -> None:
        super().__init__()
        with self.name_scope():
            self.pair = Pair(*parts)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        first, (second, (third,)) = self.pair(x)
        return F.broadcast_mul(first, third) - second


class Branches(nn.HybridConcurrent):
    def __init__(self, *parts: Sequence[Piece]) -> None:
        super().__init__(axis=1)
        with self.name_scope():
            self.add(*map(sequence, parts))


RECURRENT = ("RNN", "LSTM", "GRU")
COMPOSITES: dict[str, Any] = {kind.__name__: kind for kind in (Residual, Twice, Siamese, Gate, Halves, Several, Branches)}


def build(given: Piece) -> Any:
    """The block that a piece describes."""
    how = dict(given.how)
    if given.kind == "formula":
        return nn.HybridLambda(Formula(how["name"]))
    if given.kind in COMPOSITES:
        return COMPOSITES[given.kind](*given.inner, **how)
    return getattr(gluon.rnn if given.kind in RECURRENT else nn, given.kind)(**how)


class Net(gluon.HybridBlock):
    """A network, with a loss if there is one. `nested`: gives its last value, the first piece's, and twice the last, in a nested list."""

    def __init__(self, body: Sequence[Piece], loss: Piece | None = None, nested: bool = False) -> None:
        super().__init__(prefix="net_")
        self.nested = nested
        with self.name_scope():
            for number, each in enumerate(body):
                setattr(self, f"piece{number}", build(each))
            self.body = [getattr(self, f"piece{number}") for number in range(len(body))]
            self.loss = None if loss is None else getattr(gluon.loss, loss.kind)(**dict(loss.how))

    def hybrid_forward(self, F: Any, x: Any, *labels: Any) -> Any:
        values = [x]
        for block in self.body:
            values.append(block(values[-1]))
        result = values[-1] if self.loss is None else self.loss(values[-1], *labels)
        return [result, (values[min(1, len(values) - 1)], [values[-1] * 2])] if self.nested else result


# ---- drawing

Drawn = tuple[Piece, Shape]
half = st.booleans()


def windows(draw: Any, lengths: Shape) -> tuple[dict[str, Any], Shape]:
    """Kernel, stride, padding and dilation that fit, and the lengths that follow."""
    axes = len(lengths)
    kernel = tuple(draw(st.integers(1, min(3, length + 1))) for length in lengths)
    padding = tuple(draw(st.integers(1 if size > length else 0, 1)) for size, length in zip(kernel, lengths))
    strides = tuple(draw(st.integers(1, 2)) for _ in lengths)
    dilation = tuple(
        draw(st.integers(1, 2)) if 2 * (size - 1) < length + 2 * pad else 1 for size, pad, length in zip(kernel, padding, lengths)
    )
    follow = tuple((lengths[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1) // strides[i] + 1 for i in range(axes))
    return {"kernel_size": kernel, "strides": strides, "padding": padding, "dilation": dilation}, follow


def one_or_all(values: dict[str, Any]) -> dict[str, Any]:
    """Tuples of length one as numbers."""
    return {key: value[0] if isinstance(value, tuple) and len(value) == 1 else value for key, value in values.items()}


def convolution(draw: Any, shape: Shape) -> Drawn:
    channels, lengths = shape[0], shape[1:]
    groups = draw(st.sampled_from([n for n in (1, 2, 3) if channels % n == 0]))
    filters = groups * draw(st.integers(1, 2))
    how, follow = windows(draw, lengths)
    how.update(channels=filters, groups=groups, use_bias=draw(half), activation=draw(st.sampled_from([None, "relu", "tanh"])))
    return piece(f"Conv{len(lengths)}D", **one_or_all(how)), (filters, *follow)


def transposed(draw: Any, shape: Shape) -> Drawn:
    channels, lengths = shape[0], shape[1:]
    groups = draw(st.sampled_from([n for n in (1, 2, 3) if channels % n == 0]))
    filters = groups * draw(st.integers(1, 2))
    kernel = tuple(draw(st.integers(1, 3)) for _ in lengths)
    strides = tuple(draw(st.integers(1, 2)) for _ in lengths)
    extra = tuple(draw(st.integers(0, stride - 1)) for stride in strides)
    how = {
        "channels": filters, "groups": groups, "kernel_size": kernel, "strides": strides, "output_padding": extra, "use_bias": draw(half)
    }  # fmt: skip
    follow = tuple(stride * (length - 1) + size + more for length, size, stride, more in zip(lengths, kernel, strides, extra))
    return piece(f"Conv{len(lengths)}DTranspose", **one_or_all(how)), (filters, *follow)


def pooling(draw: Any, shape: Shape) -> Drawn:
    how, follow = windows(draw, shape[1:])
    kind = draw(st.sampled_from(["Max", "Avg"]))
    size, strides, padding = how["kernel_size"], how["strides"], how["padding"]
    padding = tuple(min(pad, window // 2) for pad, window in zip(padding, size))
    size = tuple(min(window, length + 2 * pad) for window, length, pad in zip(size, shape[1:], padding))
    follow = tuple(
        (length + 2 * pad - window) // stride + 1 for length, pad, window, stride in zip(shape[1:], padding, size, strides)
    )
    given = {"pool_size": size, "strides": strides, "padding": padding}
    if kind == "Avg":
        given["count_include_pad"] = draw(half)
    return piece(f"{kind}Pool{len(shape) - 1}D", **one_or_all(given)), (shape[0], *follow)


def global_pooling(draw: Any, shape: Shape) -> Drawn:
    kind = draw(st.sampled_from(["Max", "Avg"]))
    return piece(f"Global{kind}Pool{len(shape) - 1}D"), (shape[0], *(1 for _ in shape[1:]))


def dense(draw: Any, shape: Shape) -> Drawn:
    units, flatten = draw(st.integers(1, 4)), draw(half)
    activation = draw(st.sampled_from([None, "relu", "sigmoid", "softsign"]))
    made = piece("Dense", units=units, flatten=flatten, use_bias=draw(half), activation=activation)
    return made, (units,) if flatten else (*shape[:-1], units)


def recurrent(draw: Any, shape: Shape) -> Drawn:
    units, both = draw(st.integers(1, 3)), draw(half)
    how = {"num_layers": draw(st.integers(1, 2)), "dropout": draw(st.sampled_from([0, 0.5]))}
    made = piece(draw(st.sampled_from(RECURRENT)), hidden_size=units, layout="NTC", bidirectional=both, **how)
    return made, (shape[0], units * (1 + both))


def formula(draw: Any, shape: Shape) -> Drawn:
    grown = math.prod(shape) > LARGEST
    fitting = [
        name for name, (_, ranks, after) in OTHER.items()
        if len(shape) in ranks and not (grown and math.prod(after(shape)) > math.prod(shape))
    ]  # fmt: skip
    name = draw(st.sampled_from(fitting))
    return piece("formula", name=name), OTHER[name][2](shape)


def branches(draw: Any, shape: Shape) -> Drawn:
    return piece("Branches", keeping(draw, shape), keeping(draw, shape)), (2 * shape[0], *shape[1:])


def changing(draw: Any, shape: Shape) -> Drawn:
    """A piece after which the shape may be another."""
    kinds = [dense, formula]
    if len(shape) > 1:
        kinds += [convolution, convolution, pooling, global_pooling]
    if len(shape) == 2:
        kinds.append(recurrent)
    if math.prod(shape) <= LARGEST:
        kinds += [branches] + [transposed] * (len(shape) > 1)
    return draw(st.sampled_from(kinds))(draw, shape)


def norm(draw: Any, shape: Shape) -> Piece:
    flags = {"center": draw(half), "scale": draw(half)}
    axis = draw(st.sampled_from([1, -1]))
    kinds = ["BatchNorm", "BatchNorm", "BatchNormReLU", "LayerNorm"]
    kind = draw(st.sampled_from([*kinds, "GroupNorm", "InstanceNorm"] if len(shape) > 1 else kinds))
    if kind.startswith("BatchNorm"):
        return piece(kind, axis=axis, use_global_stats=draw(half), momentum=draw(st.sampled_from([0.9, 0.0])), **flags)
    if kind == "GroupNorm":
        return piece(kind, num_groups=draw(st.sampled_from([n for n in (1, 2, 3) if shape[0] % n == 0])), **flags)
    if kind == "InstanceNorm":
        axis = draw(st.sampled_from([1, len(shape)]))
    return piece(kind, axis=axis, **flags)


def activation(draw: Any, shape: Shape) -> Piece:
    slopes = sorted({1, shape[0]})
    return draw(
        st.sampled_from([
            *(piece("Activation", activation=name) for name in ("relu", "sigmoid", "tanh", "softrelu", "softsign")),
            *(piece(name) for name in ("ELU", "SELU", "GELU", "Swish", "SiLU")),
            piece("LeakyReLU", alpha=0.2), *(piece("PReLU", in_channels=number) for number in slopes),
        ])
    )  # fmt: skip


def dropout(draw: Any, shape: Shape) -> Piece:
    return piece("Dropout", rate=draw(st.sampled_from([0.5, 0.2, 0])), axes=draw(st.sampled_from([(), (1,), (0,)])))


def same_formula(draw: Any, shape: Shape) -> Piece:
    return piece("formula", name=draw(st.sampled_from(sorted(SAME))))


def same_layer(draw: Any, shape: Shape) -> Piece:
    """A layer with weights whose result has the shape of the data."""
    if len(shape) > 1 and draw(half):
        axes = len(shape) - 1
        how = one_or_all({"kernel_size": (3,) * axes, "padding": (1,) * axes})
        return piece(f"Conv{axes}D", channels=shape[0], use_bias=draw(half), **how)
    return piece("Dense", units=shape[-1], flatten=len(shape) == 1, use_bias=draw(half))


def composite(draw: Any, shape: Shape) -> Piece:
    kind = draw(st.sampled_from(["Residual", "Twice", "Siamese", "Gate", "Several"] + ["Halves"] * (shape[0] % 2 == 0)))
    if kind == "Several":
        return piece(kind, keeping(draw, shape), keeping(draw, shape))
    if kind == "Halves":
        half_of = (shape[0] // 2, *shape[1:])
        return piece(kind, keeping(draw, half_of), keeping(draw, half_of))
    return piece(kind, keeping(draw, shape), **({"by_name": draw(half)} if kind == "Gate" else {}))


def keep(draw: Any, shape: Shape, composites: bool) -> Piece:
    """A piece after which the shape is the same."""
    kinds = [norm, activation, same_formula, same_formula, same_layer, dropout]
    return draw(st.sampled_from(kinds + [composite] * 2 * composites))(draw, shape)


def keeping(draw: Any, shape: Shape) -> list[Piece]:
    """A short sequence of such."""
    return [keep(draw, shape, False) for _ in range(draw(st.integers(0, 2)))]


@dataclass(frozen=True)
class Plan:
    """A network and what goes into it."""

    shape: Shape  # of an example
    tokens: int  # how many different ones, if the first layer is an Embedding; else 0
    body: tuple[Piece, ...]
    result: Shape
    loss: Piece | None
    label: str  # what kind of label the loss wants
    nested: bool

    def build(self, tame: bool = False) -> Net:
        """The network. `tame`: its normalizations do not blow up rounding errors where all values are equal."""
        return Net(tuple(map(tamed, self.body)) if tame else self.body, self.loss, self.nested)


LOSSES: tuple[tuple[Piece, str], ...] = (
    (piece("L2Loss"), "values"),
    (piece("L1Loss", weight=2.0), "values"),
    (piece("HuberLoss", rho=0.5), "values"),
    (piece("PoissonNLLLoss"), "positive"),
    (piece("SigmoidBinaryCrossEntropyLoss"), "probabilities"),
    (piece("SoftmaxCrossEntropyLoss"), "classes"),
    (piece("SoftmaxCrossEntropyLoss", sparse_label=False), "probabilities"),
    (piece("KLDivLoss", from_logits=False), "probabilities"),
    (piece("HingeLoss"), "signs"),
    (piece("SquaredHingeLoss", weight=0.5), "signs"),
    (piece("LogisticLoss"), "signs"),
    (piece("CTCLoss"), "sequence"),
)


@st.composite
def plans(draw: Any, large: bool = False) -> Plan:
    """Networks of one to six pieces. `large`: few pieces and large examples, over which elementwise operators run tile by tile."""
    body: list[Piece] = []
    tokens = 0
    if large:
        first = shape = draw(st.sampled_from([(40_000,), (3, 120, 120), (2, 20_000)]))
        count = draw(st.integers(1, 4))
        for _ in range(count):
            body.append(draw(st.sampled_from([norm, activation, same_formula, same_formula, dropout]))(draw, shape))
        return Plan(first, 0, tuple(body), shape, None, "", False)
    first = shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    if len(shape) < 3 and draw(st.integers(0, 7)) == 7:
        tokens, width = draw(st.integers(1, 5)), draw(st.integers(1, 4))
        body.append(piece("Embedding", input_dim=tokens, output_dim=width))
        shape = (*shape, width)
    for _ in range(draw(st.integers(1, 5))):
        if draw(half):
            made, shape = changing(draw, shape)
            body.append(made)
        else:
            body.append(keep(draw, shape, True))
    loss, label = None, ""
    if draw(half):
        fitting = [each for each in LOSSES if each[0].kind != "CTCLoss" or (len(shape) == 2 and shape[1] > 1)]
        loss, label = draw(st.sampled_from(fitting))
    return Plan(first, tokens, tuple(body), shape, loss, label, draw(half))
