"""The store `nccl`: on simulated GPUs, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx import nd
from minimx.base import DeviceError


def test_on_simulated_gpus() -> None:
    with mx.device.simulate_gpus(3):
        kv = mx.kv.create("nccl")
        arrays = [nd.full((4,), i + 1, ctx=mx.gpu(i)) for i in range(3)]
        kv.pushpull("w", arrays)
        for array in arrays:
            np.testing.assert_array_equal(array.asnumpy(), 6)
        kv.init("v", nd.zeros((4,), ctx=mx.gpu(0)))
        kv.push("v", arrays)
        kv.pull("v", out=arrays[1])
        assert [array.asnumpy()[0] for array in arrays] == [6, 18, 6]
        with pytest.raises(DeviceError, match=r"an array of key 'w' is on cpu\(0\)"):
            kv.pushpull("w", [nd.ones((4,)), nd.ones((4,))])


@pytest.mark.skipif(mx.num_gpus() > 0, reason="there is a GPU")
def test_without_a_gpu() -> None:
    with pytest.raises(DeviceError, match=r"'nccl' adds arrays on GPUs, and there is none; use 'device'"):
        mx.kv.create("nccl")


@pytest.mark.skipif(mx.num_gpus() < 2, reason="needs two GPUs")
def test_on_gpus() -> None:
    kv = mx.kv.create("nccl")
    arrays = [nd.full((1000,), i + 1, ctx=mx.gpu(i)) for i in range(2)]
    out = [nd.empty((1000,), ctx=mx.gpu(i)) for i in range(2)]
    kv.pushpull("w", arrays, out=out)
    for array in out:
        np.testing.assert_array_equal(array.asnumpy(), 3)
    kv.pushpull("w", arrays)
    for array in arrays:
        np.testing.assert_array_equal(array.asnumpy(), 3)
