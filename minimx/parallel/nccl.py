"""`nccl`: gradients of several GPUs added by NVIDIA's library, through CuPy. On simulated GPUs the ring of reduction.py takes its place.

NCCL's sum is a call on every GPU at once, so it is one task of the engine that writes the arrays of all of them, and that queues work on
the streams of all. Book: chapter 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import cuda, device, engine
from ..base import DeviceError, DTypeError
from ..nd import NDArray
from ..op import Array
from .base import factories
from .kvstore import KVStore
from .reduction import all_reduce, spread

__all__ = ["NCCLStore"]


class NCCLStore(KVStore):
    """A store for arrays on GPUs. **Raises** DeviceError without a GPU, and for arrays elsewhere. **Source** MXNet `kvstore`, type nccl."""

    at_once = False

    def __init__(self, kind: str = "nccl") -> None:
        super().__init__(kind)
        if not device.num_gpus():
            raise DeviceError(
                "kvstore.create: 'nccl' adds arrays on GPUs, and there is none; use 'device', or minimx.device.simulate_gpus(n)"
            )
        self._groups: dict[tuple[int, ...], Any] = {}  # numbers of GPUs -> their communicators

    def _total(self, key: Any, arrays: Sequence[NDArray]) -> NDArray:
        copies = [array.copy() for array in arrays] if len(arrays) > 1 else list(arrays)
        self._reduce(key, copies, copies)
        return copies[0]

    def _reduce(self, key: Any, arrays: Sequence[NDArray], targets: Sequence[NDArray]) -> None:
        for array in arrays:
            if array.context.device_type != "gpu":
                raise DeviceError(f"kvstore 'nccl': an array of key {key!r} is on {array.context}; it adds arrays on GPUs only")
        if len(arrays) == 1 or device.array_module(arrays[0].context) is np:
            all_reduce(arrays, targets)
            return
        sums = arrays if all(target is array for target, array in zip(targets, arrays)) else [array.copy() for array in arrays]
        numbers = tuple(array.context.device_id for array in arrays)
        engine.push(lambda *values: self._add(numbers, values), writes=sums, context=arrays[0].context, name="nccl")
        if sums is not arrays:
            spread(sums[0], targets)

    def _add(self, numbers: tuple[int, ...], values: Sequence[Array]) -> None:
        """Every array becomes the sum of all, one on each GPU of `numbers`; runs on a lane."""
        nccl = device.cupy().cuda.nccl
        if numbers not in self._groups:
            self._groups[numbers] = nccl.NcclCommunicator.initAll(list(numbers))
        kinds = {"float16": nccl.NCCL_FLOAT16, "float32": nccl.NCCL_FLOAT32, "float64": nccl.NCCL_FLOAT64,
                 "int32": nccl.NCCL_INT32, "int64": nccl.NCCL_INT64, "int8": nccl.NCCL_INT8, "uint8": nccl.NCCL_UINT8}  # fmt: skip
        kind = kinds.get(values[0].dtype.name)
        if kind is None:
            raise DTypeError(f"kvstore 'nccl': {values[0].dtype.name} cannot be added by NCCL")
        lines = [cuda.line(number) for number in numbers]
        with cuda.together(lines):
            nccl.groupStart()
            for line, communicator, value in zip(lines, self._groups[numbers], values):
                with cuda.queueing(line):
                    communicator.allReduce(value.data.ptr, value.data.ptr, value.size, kind, nccl.NCCL_SUM, line.stream.ptr)
            nccl.groupEnd()


factories["nccl"] = NCCLStore
