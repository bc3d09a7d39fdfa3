"""Gradients in two bits a number, for links that are slower than the devices.

Each number becomes +threshold, -threshold or 0. What is lost by that is kept in a residual on the device, and added to the next gradient,
so that nothing is lost for good: after many steps the sum of what was sent is as good as the sum of the gradients.
F. Seide and others, "1-bit stochastic gradient descent" (2014), in the form of MXNet's 2bit. Book: chapter 11.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ..base import ArgumentError, shown
from ..fields import converted
from ..nd import NDArray
from ..nd.entry import invoke
from ..op import Array, Op, Shape, Spec, attributes
from ..rules import same_shape

TYPES = ("none", "2bit")


@attributes
class Quantize(Op):
    """Two bits for each number of gradient + residual, which keeps the rest: a row of bits "above", a row "below"."""

    name: ClassVar[str] = "quantize_2bit"
    inputs: ClassVar[tuple[str, ...]] = ("gradient", "residual")
    mutates: ClassVar[tuple[int, ...]] = (1,)

    threshold: float

    def infer(self, gradient: Spec, residual: Spec) -> Spec:
        same_shape(self, gradient, residual)
        return Spec.of((2, -(-gradient.size // 8)), np.dtype("uint8"))

    def kernel(self, xp: Any, gradient: Array, residual: Array) -> Array:
        residual += gradient
        above, below = residual >= self.threshold, residual <= -self.threshold
        residual -= self.threshold * above
        residual += self.threshold * below
        return xp.stack([xp.packbits(above), xp.packbits(below)])


@attributes
class Dequantize(Op):
    """The numbers that `Quantize` sent."""

    name: ClassVar[str] = "dequantize_2bit"
    inputs: ClassVar[tuple[str, ...]] = ("bits",)

    threshold: float
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def infer(self, bits: Spec) -> Spec:
        return Spec.of(self.shape, self.dtype)

    def kernel(self, xp: Any, bits: Array) -> Array:
        size = int(np.prod(self.shape, dtype=np.int64))
        above, below = (xp.unpackbits(row)[:size].view(np.int8) for row in bits)
        return ((above - below) * self.dtype.type(self.threshold)).astype(self.dtype).reshape(self.shape)


class Compression:
    """How a store compresses, with the residual of each key on each device.

    **Args** `params`: {"type": "2bit", "threshold": 0.5}; "none" compresses nothing. **Raises** ArgumentError for anything else.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        if not isinstance(params, Mapping):
            raise ArgumentError(
                f"gradient compression: a dict such as {{'type': '2bit', 'threshold': 0.5}} is wanted, got {shown(params)}"
            )
        unknown = [key for key in params if key not in ("type", "threshold")]
        if unknown or "type" not in params:
            wrong = f"it has no {shown(unknown[0])}" if unknown else "'type' is missing"
            raise ArgumentError(
                f"gradient compression: {wrong}; wanted are 'type' and perhaps 'threshold', as in {{'type': '2bit', 'threshold': 0.5}}"
            )
        self.type = params["type"]
        if self.type not in TYPES:
            raise ArgumentError(
                f"gradient compression: there is no type {shown(self.type)}; choose one of {', '.join(map(repr, TYPES))}"
            )
        self.threshold = converted("gradient compression", "threshold", "float", params.get("threshold", 0.5))
        if not 0 < self.threshold < float("inf"):
            raise ArgumentError(f"gradient compression: the threshold must be greater than 0, got {self.threshold}")
        self.residuals: dict[tuple[Any, int], NDArray] = {}

    def sent(self, key: Any, place: int, gradient: NDArray) -> NDArray:
        """The bits of a gradient, on its device. `place` is the number of the device among those of the key."""
        residual = self.residuals.get((key, place))
        if residual is None:
            residual = self.residuals[key, place] = gradient.zeros_like()
        bits: NDArray = invoke(Quantize(self.threshold), [gradient, residual])[0]
        return bits

    def received(self, bits: NDArray, shape: Shape, dtype: Any) -> NDArray:
        """What arrived of a gradient of `shape`."""
        gradient: NDArray = invoke(Dequantize(self.threshold, tuple(shape), np.dtype(dtype)), [bits])[0]
        return gradient
