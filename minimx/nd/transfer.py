"""Operators that only arrays have, since they move values rather than compute them: copies between devices, and writes into a part.

They have no place in a graph that is saved, so they are not in the registry.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from .. import cuda, device
from ..device import Context
from ..engine.events import clock, waited, watch
from ..op import Array, Op, Spec, attributes
from ..ops.keys import Key
from ..ops.subscript import write
from ..storage import SMALL, empty, is_pinned


def to_numpy(value: Any, context: Context, told: bool = True) -> np.ndarray[Any, Any]:
    """A NumPy copy of an array that lies on `context`. It takes as long as a modelled link does. `told`: to those who watch waits."""
    if watch.waits is not None and told and value.nbytes >= SMALL:
        start = clock()
        copy = to_numpy(value, context, told=False)
        waited(start, "copy to NumPy", f"{value.nbytes} bytes")
        return copy
    if type(value) is np.ndarray:
        if context.host:
            return value.copy()
        with device.crossing(context, device.cpu(), value.nbytes):
            return value.copy()
    copied: np.ndarray[Any, Any] = cuda.to_host(value, context.device_id)
    return copied


@attributes
class CopyTo(Op):
    """A copy from `source` to `target`, converted to `dtype`; the gradient travels back."""

    name: ClassVar[str] = "_copyto"
    crosses_devices = True
    takes_out = True
    saves_inputs = saves_outputs = False

    dtype: np.dtype[Any]
    source: Context
    target: Context

    def lane(self, context: Context) -> Context | device.CopyLane:
        return device.copy_lane(self.source, self.target)

    def infer(self, data: Spec) -> Spec:
        return data.with_dtype(self.dtype)

    def kernel(self, xp: Any, data: Array, out: Array | None = None) -> Array:
        with device.crossing(self.source, self.target, data.nbytes):
            if out is not None and type(data) is np.ndarray:
                np.copyto(out, data, casting="unsafe")  # as astype
                return out
            if xp is np:
                return self._to_host(data)
            if type(data) is np.ndarray:
                copy = xp.asarray(data)
                if is_pinned(data):  # the GPU reads it by itself: nobody may write there before it has
                    xp.cuda.get_current_stream().synchronize()
            else:
                copy = data if self.source is self.target else cuda.brought(data, self.target.device_id)
            return copy.copy() if copy is data and copy.dtype == self.dtype else copy.astype(self.dtype, copy=False)

    def _to_host(self, data: Array) -> Array:
        pinned = empty(Spec.of(data.shape, data.dtype), self.target) if self.target.device_type == "cpu_pinned" else None
        if type(data) is not np.ndarray:
            return cuda.to_host(data, self.source.device_id, pinned).astype(self.dtype, copy=False)
        if pinned is None:
            return data.astype(self.dtype)
        pinned[...] = data
        return pinned.astype(self.dtype, copy=False)

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
        if xp is not np and xp.may_share_memory(data, value):
            value = value.copy()  # a GPU's threads run in any order: some would read what others have written
        write(xp, data, self.key, value.reshape(self.key.on(data.shape).assignment(value.shape)[1]))
        return ()
