"""`mx.util`: environment variables, GPUs, and the switches of the NumPy interface, all of which are off."""

from __future__ import annotations

import os
import types

import pytest

import minimx as mx
from minimx import device, util
from minimx.base import ArgumentError, DeviceError


def test_environment_variables(monkeypatch):
    monkeypatch.delenv("MXNET_SOMETHING", raising=False)
    assert util.getenv("MXNET_SOMETHING") is None
    util.setenv("MXNET_SOMETHING", "1")
    assert util.getenv("MXNET_SOMETHING") == os.environ["MXNET_SOMETHING"] == "1"
    util.setenv("MXNET_SOMETHING", None)
    util.setenv("MXNET_SOMETHING", None)
    assert "MXNET_SOMETHING" not in os.environ


def test_folders(tmp_path):
    for _ in range(2):
        util.makedirs(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()


def test_gpus():
    with mx.device.simulate_gpus(2, memory=1 << 20):
        assert util.get_gpu_count() == 2
        held = mx.nd.zeros((1 << 16,), ctx=mx.gpu(1))  # smaller ones are not counted
        held.wait_to_read()
        free, total = util.get_gpu_memory(1)
        assert total == 1 << 20
        assert free <= total - (1 << 18)
        with pytest.raises(DeviceError, match="simulated in host memory and no CUDA device"):
            util.get_cuda_compute_capability(mx.gpu(0))
        with pytest.raises(DeviceError):
            util.get_cuda_compute_capability(mx.gpu(5))
    for wrong in (mx.cpu(), 0):
        with pytest.raises(ValueError, match=r"a GPU's context such as mx\.gpu\(0\)"):
            util.get_cuda_compute_capability(wrong)


def test_compute_capability(monkeypatch):
    cuda = types.SimpleNamespace(Device=lambda number: types.SimpleNamespace(compute_capability="90"))
    monkeypatch.setattr(device, "array_module", lambda context: types.SimpleNamespace(cuda=cuda))
    assert util.get_cuda_compute_capability(mx.gpu(0)) == 90


def test_the_numpy_interface_is_off_and_can_be_switched_off():
    assert util.is_np_array() is util.is_np_shape() is mx.is_np_array() is mx.is_np_shape() is False
    assert util.set_np_shape(False) is False
    util.reset_np()
    util.set_np(shape=False, array=False)
    for scope in (util.np_shape, util.np_array):
        with scope(False):
            assert mx.nd.ones((2,)).sum().shape == (1,)

        @scope(False)
        def decorated(x):
            return x + 1

        assert [decorated(1), decorated(2)] == [2, 3]


@pytest.mark.parametrize(
    "switch",
    [
        util.set_np, lambda: util.set_np(shape=True, array=False), lambda: util.set_np_shape(True), lambda: mx.set_np_shape(1),
        util.np_shape, util.np_array,
    ],
)  # fmt: skip
def test_switching_it_on_is_refused(switch):
    with pytest.raises(mx.MXNetError, match=r"the NumPy interface .*leave npx.set_np\(\) out"):
        switch()
    with pytest.raises(NotImplementedError):
        switch()


@pytest.mark.parametrize("mark", [util.use_np, util.use_np_shape, util.use_np_array])
def test_marked_functions_can_be_defined_and_not_called(mark):
    @mark
    def function():
        """Its docstring."""

    @mark
    class Net(mx.gluon.HybridBlock):
        pass

    assert function.__doc__ == "Its docstring."
    assert issubclass(Net, mx.gluon.HybridBlock)
    with pytest.raises(NotImplementedError, match=f"function is marked with {mark.__name__}: the NumPy"):
        function()
    with pytest.raises(NotImplementedError, match="Net is marked with"):
        Net()
    with pytest.raises(ArgumentError, match="a function or a class is wanted, got 3"):
        mark(3)


def test_the_place_of_a_function():
    @util.set_module("mxnet.somewhere")
    def function():
        pass

    assert function.__module__ == "mxnet.somewhere"
    assert util.set_module(None)(function).__module__ == "mxnet.somewhere"
