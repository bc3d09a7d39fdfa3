"""What training many weights needs beside the steps: norms, rates that follow from them, checks for overflow, clearing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ArgumentError, DTypeError
from ..fields import converted
from ..op import Array, How, Op, Spec, T, Tensor, apply, register
from ..rules import same_shape

if TYPE_CHECKING:
    from typing_extensions import Unpack


def euclidean(xp: Any, array: Array) -> float:
    """The Euclidean norm of all elements."""
    flat = array.reshape(-1).astype(xp.float32, copy=False) if array.dtype == xp.float16 else array.reshape(-1)
    return math.sqrt(float(xp.dot(flat, flat)))


def require_arrays(op: Op, wanted: int, data: Sequence[Spec]) -> None:
    """Raise unless there are `wanted` floating arrays of one dtype."""
    if len(data) != wanted or not data:
        raise ArgumentError(f"{op.name}: {len(data)} arrays are given, num_arrays={wanted}")
    for i, spec in enumerate(data):
        if spec.dtype.kind != "f" or spec.dtype != data[0].dtype:
            raise DTypeError(
                f"{op.name}: data{i} is {spec.dtype.name}, data0 is {data[0].dtype.name}; one floating dtype is wanted"
            )


@register("multi_sum_sq")
class MultiSumSq(Op):
    inputs: ClassVar = ("data*",)
    saves_inputs = False
    saves_outputs = False

    num_arrays: int

    def infer(self, *data: Spec) -> Spec:
        require_arrays(self, self.num_arrays, data)
        return Spec.of((self.num_arrays,), "float32")

    def kernel(self, xp: Any, *data: Array) -> Array:
        return xp.asarray([euclidean(xp, array) ** 2 for array in data], dtype=xp.float32)


def multi_sum_sq(*data: T, num_arrays: int, **how: Unpack[How]) -> T:
    """The sum of squares of each array: `y_i = sum(data_i ** 2)`.

    **Shapes** data any, result (num_arrays,), float32. **Source** MXNet `multi_sum_sq`.
    """
    return apply(MultiSumSq(num_arrays), *data, **how)


@register("multi_lars")
class MultiLars(Op):
    inputs: ClassVar = ("lrs", "weights_sum_sq", "grads_sum_sq", "wds")
    saves_inputs = False
    saves_outputs = False

    eta: float
    eps: float
    rescale_grad: float = 1.0

    def infer(self, lrs: Spec, weights_sum_sq: Spec, grads_sum_sq: Spec, wds: Spec) -> Spec:
        same_shape(self, lrs, weights_sum_sq, grads_sum_sq, wds)
        return lrs

    def kernel(self, xp: Any, lrs: Array, weights_sum_sq: Array, grads_sum_sq: Array, wds: Array) -> Array:
        weight_norm = xp.sqrt(weights_sum_sq)
        grad_norm = xp.sqrt(grads_sum_sq) * self.rescale_grad
        scaled = lrs * (self.eta * weight_norm / (grad_norm + wds * weight_norm + self.eps))
        return xp.where((weight_norm > 0) & (grad_norm > 0), scaled, lrs).astype(lrs.dtype, copy=False)


def multi_lars(
    lrs: T, weights_sum_sq: T, grads_sum_sq: T, wds: T, eta: float, eps: float, rescale_grad: float = 1.0, **how: Unpack[How]
) -> T:
    """Learning rates of LARS, a rate a layer: `lr eta |w| / (|rescale_grad g| + wd |w| + eps)`; `lr` where a norm is 0.

    **Shapes** lrs, weights_sum_sq, grads_sum_sq, wds and result (N,). **Source** MXNet `multi_lars`; You et al., 2017.
    """
    op = MultiLars(eta=eta, eps=eps, rescale_grad=rescale_grad)
    return apply(op, lrs, weights_sum_sq, grads_sum_sq, wds, **how)


# ---- overflow, and clearing


@register("multi_all_finite")
class MultiAllFinite(Op):
    """Whether all elements of all arrays are finite, as 1 or 0. Without `init_output` the last input is an earlier answer, which
    must have been 1 too."""

    inputs: ClassVar = ("data*",)
    saves_inputs = False
    saves_outputs = False

    num_arrays: int = 1
    init_output: bool = True

    def infer(self, *data: Spec) -> Spec:
        require_arrays(self, self.num_arrays, data if self.init_output else data[:-1])
        return Spec.of((1,), "float32")

    def kernel(self, xp: Any, *data: Array) -> Array:
        answer = all(bool(xp.isfinite(array).all()) for array in data)
        if not self.init_output:
            answer = answer and bool(data[-1].all())
        return xp.full((1,), answer, dtype=xp.float32)


@register("all_finite")
class AllFinite(Op):
    inputs: ClassVar = ("data", "previous?")
    saves_inputs = False
    saves_outputs = False

    init_output: bool = True

    def infer(self, data: Spec, previous: Spec | None = None) -> Spec:
        require_arrays(self, 1, (data,))
        return Spec.of((1,), "float32")

    def kernel(self, xp: Any, data: Array, previous: Array | None = None) -> Array:
        answer = bool(xp.isfinite(data).all()) and (previous is None or bool(previous.all()))
        return xp.full((1,), answer, dtype=xp.float32)


def _earlier(init_output: bool, how: Any) -> tuple[Any, ...]:
    """The earlier answer, which is in `out`, where it counts."""
    before = how.get("out")
    anew: bool = converted("all_finite", "init_output", "bool", init_output)
    return (before,) if not anew and isinstance(before, Tensor) else ()


def all_finite(data: T, init_output: bool = True, **how: Unpack[How]) -> T:
    """1 if no element is infinite or NaN, else 0.

    **Shapes** data (...), result (1,), float32. **Args** `init_output`: False keeps a 0 that is in `out` already.
    **Source** MXNet `all_finite`.
    """
    earlier = _earlier(init_output, how)
    return apply(AllFinite(not earlier), data, *earlier, **how)


def multi_all_finite(*data: T, num_arrays: int = 1, init_output: bool = True, **how: Unpack[How]) -> T:
    """1 if no element of any array is infinite or NaN, else 0.

    **Shapes** data any, result (1,), float32. **Args** `init_output`: False keeps a 0 that is in `out` already, so that many
    arrays can be checked in several calls. **Source** MXNet `multi_all_finite`.
    """
    earlier = _earlier(init_output, how)
    return apply(MultiAllFinite(num_arrays, not earlier), *data, *earlier, **how)


@register("reset_arrays")
class ResetArrays(Op):
    inputs: ClassVar = ("data*",)
    saves_inputs = False
    saves_outputs = False

    num_arrays: int

    @property
    def num_outputs(self) -> int:
        return 0

    @property
    def mutates(self) -> tuple[int, ...]:  # type: ignore[override]  # how many there are depends on the attributes
        return tuple(range(self.num_arrays))

    def infer(self, *data: Spec) -> tuple[Spec, ...]:
        if len(data) != self.num_arrays:
            raise ArgumentError(f"reset_arrays: {len(data)} arrays are given, num_arrays={self.num_arrays}")
        return ()

    def kernel(self, xp: Any, *data: Array) -> tuple[Array, ...]:
        for array in data:
            array[...] = 0
        return ()


def reset_arrays(*data: T, num_arrays: int, **how: Unpack[How]) -> Any:
    """Set all elements of all arrays to 0, in place. **Returns** an empty list. **Source** MXNet `reset_arrays`."""
    return apply(ResetArrays(num_arrays), *data, **how)


__all__ = ["all_finite", "multi_all_finite", "multi_lars", "multi_sum_sq", "reset_arrays"]
