"""The layers of a network that have no subject of their own: fully connected, leaky rectifiers, dropout.

Softmax is in softmax.py, normalizations are in norm.py, the output layers that start a backward pass in loss.py. A fully
connected layer is one product of matrices and one addition, and its gradient is two products and a sum. Book: chapters 1 and 4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ArgumentError, MXNetError, ShapeError
from ..op import NOT_GIVEN, Array, How, Kind, Op, Shape, Spec, T, apply, attributes, beside, hidden, is_constant, register
from ..rules import filled, normalize_axis, same_dtype
from .binary import broadcast_mul
from .checks import require_choice, require_float, require_input, require_shape
from .linalg import dot, product_of
from .shape import as_shape
from .special import erf, erf_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


# ---- fully connected


@register("FullyConnected", "_sparse_FullyConnected")
class FullyConnectedLayer(Op):
    kind = Kind.GEMM
    inputs: ClassVar = ("data", "weight", "bias?")
    takes_out = True
    saves_outputs = False
    required = ("num_hidden",)

    num_hidden: int
    no_bias: bool = False
    flatten: bool = True

    def wants(self, name: str) -> bool:
        return name == "bias" and not self.no_bias

    def _columns(self, shape: Shape) -> int:
        if len(shape) == 2:
            return shape[1]
        return math.prod(shape[1:]) if self.flatten else shape[-1]

    def infer(self, data: Spec, weight: Spec, bias: Spec | None = None) -> Spec:
        if self.num_hidden < 1:
            raise ArgumentError(f"FullyConnected: num_hidden={self.num_hidden} is not positive; give the number of outputs")
        if (bias is None) != self.no_bias:
            require_input(self, "bias", bias, not self.no_bias, "pass it with no_bias=False, or leave it out with no_bias=True")
        dtype = data.dtype
        if weight.dtype is not dtype or (bias is not None and bias.dtype is not dtype):
            same_dtype(self, data, weight, *(() if bias is None else (bias,)))
        if not data.shape:
            raise ShapeError("FullyConnected: data has no axis, wants at least 1 dimension")
        # Messages are made only when they are wanted: this rule is asked for every layer of every call.
        wanted = (self.num_hidden, self._columns(data.shape))
        if weight.shape != wanted:
            require_shape(self, "weight", weight, wanted, f"data of shape {data.shape}")
        if bias is not None and bias.shape != (self.num_hidden,):
            require_shape(self, "bias", bias, (self.num_hidden,), f"num_hidden={self.num_hidden}")
        return Spec.of((*(data.shape[:1] if self.flatten else data.shape[:-1]), self.num_hidden), dtype)

    def fill(self, data: Spec | None, weight: Spec | None, *bias: Spec | None) -> tuple[Spec | None, ...]:
        if data is not None and data.ndim and self._columns(data.shape):
            weight = filled(weight, (self.num_hidden, self._columns(data.shape)), data)
        if data is not None and data.ndim and weight is not None and weight.ndim == 2 and (data.ndim == 2 or not self.flatten):
            data = filled(data, (*data.shape[:-1], weight.shape[1]), data)
        like = weight or data
        return (data, weight, *(filled(spec, (self.num_hidden,), like) if like is not None else spec for spec in bias))

    def kernel(self, xp: Any, data: Array, weight: Array, bias: Array | None = None, out: Array | None = None) -> Array:
        if out is None and data.ndim == 2 and data.dtype.char != "e":  # a small layer, whose time is not all arithmetic
            product = data.dot(weight.T)
            return product if bias is None else xp.add(product, bias[None], out=product)
        shape = (*(data.shape[:1] if self.flatten else data.shape[:-1]), self.num_hidden)
        rows = data if data.ndim == 2 else data.reshape(math.prod(shape[:-1]), weight.shape[1])
        if out is None:
            out = xp.empty(shape, data.dtype)
        target = out.reshape(len(rows), self.num_hidden)
        product_of(xp, rows, weight.T, target)
        if bias is not None:
            xp.add(target, bias[None], out=target)
        return out

    def vjp(self, g: Any, y: Any, data: Any, weight: Any, *bias: Any) -> tuple[Any, ...]:
        rows, head = data, g
        if len(data.shape) != 2:
            count = math.prod(g.shape[:-1])
            rows, head = data.reshape((count, weight.shape[1])), g.reshape((count, self.num_hidden))
        to_data = None if is_constant(data) else dot(head, weight)  # that of a network's input would be as much work as any
        return (
            to_data if to_data is None or rows is data else to_data.reshape(data.shape),
            None if is_constant(weight) else dot(head, rows, transpose_a=True),
            *(head.sum(axis=0) if each is not None else None for each in bias),
        )


def FullyConnected(
    data: T | None = NOT_GIVEN,
    weight: T | None = None,
    bias: T | None = None,
    num_hidden: int = 0,
    no_bias: bool = False,
    flatten: bool = True,
    **how: Unpack[How],
) -> T:
    """A fully connected layer: `y = data weight' + bias`.

    **Shapes** data (N, ...) is taken as (N, K) if `flatten`, else (..., K); weight (M, K), bias (M,), result (N, M) or (..., M).
    **Args** `num_hidden`: M; `no_bias`: there is no bias. **Gradient** `g weight`, `g' data`, the sum of g over all rows.
    **Source** MXNet `FullyConnected`.
    """
    op = FullyConnectedLayer(num_hidden, no_bias, flatten)
    return apply(op, data, weight, *(() if bias is None and op.no_bias else (bias,)), **how)


fully_connected = FullyConnected


# ---- leaky rectifiers

SELU_ALPHA = 1.6732632423543772
SELU_SCALE = 1.0507009873554805
RECTIFIERS = ("leaky", "elu", "selu", "gelu", "prelu", "rrelu")


@attributes
class LeakyRectifier(Op):
    """MXNet's LeakyReLU is six functions under one name. Four are elementwise; prelu learns its slope and rrelu draws it, so that
    they are classes of their own, chosen when the attributes are known."""

    act_type: str = "leaky"
    slope: float = 0.25
    lower_bound: float = 0.125
    upper_bound: float = 0.334

    @classmethod
    def choose(cls, act_type: str, slope: float, lower_bound: float, upper_bound: float) -> Op:
        """The operator for `act_type`. Raises ArgumentError for an unknown one."""
        kinds = {"prelu": PReLU, "rrelu": RReLU}
        kind = kinds.get(act_type, LeakyReLULayer) if isinstance(act_type, str) else LeakyReLULayer  # which refuses it
        return kind(act_type, slope, lower_bound, upper_bound)

    @classmethod
    def from_attrs(cls, attrs: dict[str, str]) -> Op:
        op = super().from_attrs(attrs)
        assert isinstance(op, LeakyRectifier)
        return cls.choose(op.act_type, op.slope, op.lower_bound, op.upper_bound)


@register("LeakyReLU")
class LeakyReLULayer(LeakyRectifier):
    kind = Kind.ELEMENTWISE

    def infer(self, data: Spec) -> Spec:
        require_choice(self, "act_type", self.act_type, *RECTIFIERS)
        require_float(self, data)
        return data

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        if self.act_type == "leaky":
            # The identity lies above the other line on the right of 0 and below it on the left, unless that line is steeper.
            return (xp.maximum if self.slope <= 1 else xp.minimum)(data, data * data.dtype.type(self.slope), out=out)
        if self.act_type == "gelu":
            bell = erf_of(xp, data * data.dtype.type(math.sqrt(0.5)))
            bell += 1
            bell *= data
            return xp.multiply(bell, data.dtype.type(0.5), out=out)
        scale, slope = (SELU_SCALE, SELU_ALPHA) if self.act_type == "selu" else (1.0, self.slope)
        # exp(x) - 1 of the negative part, which is 0 where the data is positive.
        left = xp.minimum(data, data.dtype.type(0))
        xp.expm1(left, out=left)
        left *= data.dtype.type(slope)
        result = xp.maximum(data, data.dtype.type(0), out=out)
        result += left
        if scale != 1.0:
            result *= data.dtype.type(scale)
        return result

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        if self.act_type == "leaky":
            return (g * ((data > 0) * (1.0 - self.slope) + self.slope),)
        if self.act_type == "gelu":
            below = erf(data * math.sqrt(0.5)) * 0.5 + 0.5
            return (g * (below + data * (data * data * -0.5).exp() * (1.0 / math.sqrt(2.0 * math.pi))),)
        scale, slope = (SELU_SCALE, SELU_ALPHA) if self.act_type == "selu" else (1.0, self.slope)
        positive = data > 0
        # left of 0 the slope is scale * slope * exp(data), which is how far the function is above its limit
        return (g * (positive * scale + (1.0 - positive) * (y + scale * slope)),)


@attributes
class PReLU(LeakyRectifier):
    name = "LeakyReLU"
    inputs: ClassVar = ("data", "gamma")
    saves_outputs = False

    def _channels(self, shape: Shape) -> int:
        return shape[1] if len(shape) > 1 else shape[0]

    def infer(self, data: Spec, gamma: Spec) -> Spec:
        require_float(self, data)
        same_dtype(self, data, gamma)
        if not data.ndim:
            raise ShapeError("LeakyReLU: data has no axis, wants at least 1 dimension")
        wanted = data.shape[:2][-gamma.ndim :]  # as long as these axes, or 1
        if not 1 <= gamma.ndim <= len(wanted) or any(own not in (1, length) for own, length in zip(gamma.shape, wanted)):
            raise ShapeError(
                f"LeakyReLU: gamma has shape {gamma.shape}, data of shape {data.shape} needs (1,) or ({self._channels(data.shape)},)"
                + f", or {data.shape[:2]} for slopes that each example has for itself" * (data.ndim > 1)
            )
        return data

    def fill(self, data: Spec | None, gamma: Spec | None) -> tuple[Spec | None, ...]:
        return (data, gamma) if data is None or not data.ndim else (data, filled(gamma, (self._channels(data.shape),), data))

    def _shape(self, data: Shape, gamma: Shape) -> Shape:
        """The shape in which gamma, whose last axis are the channels, broadcasts over the data, whose axis 1 they are."""
        lead = min(len(data), 2) - len(gamma)
        return ((1,) * lead + gamma + (1,) * len(data))[: len(data)]

    def kernel(self, xp: Any, data: Array, gamma: Array) -> Array:
        return xp.where(data > 0, data, data * gamma.reshape(self._shape(data.shape, gamma.shape)))

    def vjp(self, g: Any, y: Any, data: Any, gamma: Any) -> tuple[Any, ...]:
        shape = self._shape(data.shape, gamma.shape)
        left = g * (data <= 0)
        summed = tuple(axis for axis, length in enumerate(shape) if length == 1)
        weighed = left * data
        to_gamma = weighed.sum(axis=summed) if summed else weighed
        return g * (data > 0) + broadcast_mul(left, gamma.reshape(shape)), to_gamma.reshape(gamma.shape)


@attributes
class RReLU(LeakyRectifier):
    name = "LeakyReLU"
    needs_key = True
    needs_training = True
    saves_outputs = True

    training: bool = hidden(default=False)

    @property
    def num_outputs(self) -> int:
        return 2 if self.training else 1

    @property
    def num_visible(self) -> int:
        return 1

    def infer(self, data: Spec) -> Spec | tuple[Spec, ...]:
        require_float(self, data)
        if not self.lower_bound <= self.upper_bound:
            raise ArgumentError(f"LeakyReLU: lower_bound={self.lower_bound} is above upper_bound={self.upper_bound}")
        return (data, data) if self.training else data

    def kernel(self, xp: Any, data: Array, key: Any) -> Any:
        if not self.training:
            return xp.where(data > 0, data, data * data.dtype.type((self.lower_bound + self.upper_bound) / 2))
        slopes = key.generator(xp).random(data.shape, dtype=xp.float32)
        slopes *= self.upper_bound - self.lower_bound
        slopes += self.lower_bound
        slopes = slopes.astype(data.dtype, copy=False)
        return xp.where(data > 0, data, data * slopes), slopes

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        head, slopes = (g[0], y[1]) if self.training else (g, (self.lower_bound + self.upper_bound) / 2)
        return (None if head is None else head * (data > 0) + head * (data <= 0) * slopes,)


def LeakyReLU(
    data: T,
    gamma: T | None = None,
    act_type: str = "leaky",
    slope: float = 0.25,
    lower_bound: float = 0.125,
    upper_bound: float = 0.334,
    **how: Unpack[How],
) -> T:
    """Rectifiers that let something through on the left of 0; `y = data` on the right (but for selu and gelu).

    `act_type` "leaky": `slope x`; "elu": `slope (e^x - 1)`; "selu": elu with fixed constants, scaled; "gelu": `x P(X < x)`, X normal;
    "prelu": `gamma x`, gamma one for each channel (axis 1), one for all, or one for each of each example; "rrelu": `u x`, u drawn from
    [lower_bound, upper_bound) for each element in training, their mean otherwise.

    **Shapes** data and result (N, C, ...), gamma (C,), (1,) or (N, C). **Gradient** the slope times g. **Source** MXNet
    `LeakyReLU` (which also returns the slopes of rrelu, and whose slope of selu left of 0 is up to a tenth off).
    """
    op = LeakyRectifier.choose(act_type, slope, lower_bound, upper_bound)
    if isinstance(op, PReLU):
        return apply(op, data, gamma, **how)
    if gamma is not None:
        raise ArgumentError(f"LeakyReLU: gamma is given but not used; act_type={act_type!r} has none, 'prelu' has")
    return apply(op, data, **how)


# ---- dropout


@register("Dropout")
class DropoutLayer(Op):
    needs_key = True
    needs_training = True
    saves_inputs = False

    p: float = 0.5
    mode: str = "training"
    axes: tuple[int, ...] = ()
    cudnn_off: bool | None = False
    training: bool = hidden(default=False)

    @property
    def active(self) -> bool:
        """Whether anything is dropped."""
        return (self.training or self.mode == "always") and self.p != 0

    @property
    def num_outputs(self) -> int:
        return 2 if self.active else 1

    @property
    def num_visible(self) -> int:
        return 1

    def infer(self, data: Spec) -> Spec | tuple[Spec, ...]:
        require_choice(self, "mode", self.mode, "training", "always")
        require_float(self, data)
        if not 0 <= self.p <= 1:
            raise ArgumentError(f"Dropout: p={self.p} is not a fraction of [0, 1)")
        mask = self._mask_shape(data.shape)
        return (data, data.with_shape(mask)) if self.active else data

    def _mask_shape(self, shape: Shape) -> Shape:
        shared = [normalize_axis(self, axis, len(shape), "axes:") for axis in self.axes]
        return tuple(1 if axis in shared else length for axis, length in enumerate(shape))

    def kernel(self, xp: Any, data: Array, key: Any) -> Any:
        if not self.active:
            return data.copy()
        keep = 1 - self.p
        if keep <= 0:
            raise MXNetError("Dropout: p=1 drops everything, so that nothing is left to scale up; choose p below 1")
        shape = self._mask_shape(data.shape)
        drawn = key.generator(xp).random(dtype=xp.float32, out=beside(xp, data, shape, xp.float32))
        mask = drawn if data.dtype == drawn.dtype else beside(xp, data, shape, data.dtype)
        xp.less(drawn, keep, out=mask)
        mask *= data.dtype.type(1 / keep)
        return xp.multiply(data, mask, out=beside(xp, data, data.shape, data.dtype)), mask

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        if not self.active:
            return (g,)
        head, mask = g[0], y[1]
        if head is None:  # a second derivative asks for that of the mask, which is constant
            return (None,)
        return (head * mask if mask.shape == data.shape else broadcast_mul(head, mask),)


def Dropout(
    data: T,
    p: float = 0.5,
    mode: str = "training",
    axes: tuple[int, ...] = (),
    cudnn_off: bool | None = False,
    **how: Unpack[How],
) -> T:
    """Set a random fraction `p` of the elements to 0 and scale the others up by `1 / (1 - p)`; in training only, unless `mode` is
    "always".

    **Shapes** data and result (...). **Args** `p` of [0, 1); `axes`: along these all elements share their fate. **Raises**
    MXNetError, where the result is read, if p is 1. **Gradient** g for what was kept, scaled likewise. **Source** MXNet
    `Dropout`; Srivastava et al., 2014.
    """
    return apply(DropoutLayer(p, mode, as_shape(axes), cudnn_off), data, **how)


__all__ = ["Dropout", "FullyConnected", "LeakyReLU", "fully_connected"]
