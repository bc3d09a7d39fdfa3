"""Operators that only arrays have, since they move values rather than compute them: copies between devices, and writes into a part.

They have no place in a graph that is saved, so they are not in the registry.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .. import device
from ..device import Context
from ..op import Array, Op, Spec, attributes
from ..ops.keys import Key


def to_numpy(value: Any, context: Context) -> np.ndarray[Any, Any]:
    """A NumPy copy of an array that lies on `context`. It takes as long as a modelled link does."""
    if type(value) is np.ndarray:
        if context.host:
            return value.copy()
        with device.crossing(context, device.cpu(), value.nbytes):
            return value.copy()
    with device.activate(context):
        return device.cupy().asnumpy(value)


@attributes
class CopyTo(Op):
    """A copy from `source` to `target`, converted to `dtype`; the gradient travels back."""

    name: ClassVar[str] = "_copyto"
    crosses_devices = True
    saves_inputs = saves_outputs = False

    dtype: np.dtype[Any]
    source: Context
    target: Context

    def lane(self, context: Context) -> Context | device.CopyLane:
        return device.copy_lane(self.source, self.target)

    def infer(self, data: Spec) -> Spec:
        return data.with_dtype(self.dtype)

    def kernel(self, xp: Any, data: Array) -> Array:
        with device.crossing(self.source, self.target, data.nbytes):
            if type(data) is xp.ndarray:
                return data.astype(self.dtype)
            if xp is np:
                return data.get().astype(self.dtype, copy=False)
            return xp.asarray(data, self.dtype)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g.as_in_context(self.source).astype(data.dtype, copy=False),)


@attributes
class IndexWrite(Op):
    """data[key] = value, in the memory of data."""

    name: ClassVar[str] = "_index_write"
    inputs: ClassVar[tuple[str, ...]] = ("data", "value")
    mutates: ClassVar[tuple[int, ...]] = (0,)

    key: Key

    @property
    def num_outputs(self) -> int:
        return 0

    def infer(self, data: Spec, value: Spec) -> tuple[Spec, ...]:
        self.key.on(data.shape).assignment(value.shape)  # raises if the value does not fit
        return ()

    def kernel(self, xp: Any, data: Array, value: Array) -> tuple[Array, ...]:
        selected = self.key.numpy(xp)
        data[selected] = value.reshape(self.key.on(data.shape).assignment(value.shape)[1])
        return ()
