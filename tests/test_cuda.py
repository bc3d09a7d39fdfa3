"""CUDA devices: what a user is told when something is missing, forked processes, lines and marks."""

from __future__ import annotations

import os
import sys
import types
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import cuda, gpu, nd
from minimx.base import DeviceError
from minimx.seeds import Key

from .engine.helpers import script
from .engine.test_stress import posix
from .fake_cupy.fixture import fake_gpus


@pytest.fixture(autouse=True)
def nothing_known() -> Any:
    cuda.forget()
    yield
    cuda.forget()


def cupy_that(error: Exception | int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `import cupy` find a module whose CUDA raises an error, or finds so many devices."""

    def count() -> int:
        if isinstance(error, Exception):
            raise error
        return error

    module = types.ModuleType("cupy")
    module.__version__ = "14.2.0"  # type: ignore[attr-defined]
    module.cuda = types.SimpleNamespace(runtime=types.SimpleNamespace(getDeviceCount=count))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cupy", module)


def test_cupy_without_a_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy_that(RuntimeError("cudaErrorInsufficientDriver: the driver is too old"), monkeypatch)
    assert mx.num_gpus() == 0
    for use in (lambda: nd.ones((2,), ctx=gpu(0)), lambda: mx.gpu_memory_info(0), lambda: nd.ones((2,)).as_in_context(gpu(1))):
        with pytest.raises(
            DeviceError,
            match=r"CuPy 14.2.0 is here, but CUDA does not start: cudaErrorInsufficientDriver.*nvidia-smi.*simulate_gpus",
        ):
            use()
    assert nd.ones((50_000,), ctx=mx.cpu_pinned()).sum().asscalar() == 50_000
    with mx.device.simulate_gpus(1):
        assert nd.ones((2,), ctx=gpu(0)).asnumpy().tolist() == [1, 1]


def test_cupy_without_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    cupy_that(0, monkeypatch)
    assert mx.num_gpus() == 0
    with pytest.raises(DeviceError, match=r"gpu\(0\) is not there: 0 GPUs are found"):
        nd.ones((2,), ctx=gpu(0))


def test_a_cupy_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "cupy.py").write_text("raise ImportError('libcublas.so.12: cannot open shared object file')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    with pytest.raises(DeviceError, match=r"installed but cannot be imported: libcublas.so.12"):
        nd.ones((2,), ctx=gpu(0))
    assert mx.num_gpus() == 0


def test_with_gpus() -> None:
    with fake_gpus(2, capacity=1 << 30):
        assert mx.num_gpus() == 2
        assert mx.gpu_memory_info(1) == (1 << 30, 1 << 30)
        x = nd.ones((1000,), ctx=gpu(1))
        x.wait_to_read()
        free, total = mx.gpu_memory_info(1)
        assert free < total
        with pytest.raises(DeviceError, match=r"gpu\(2\) is not there: 2 GPUs are found"):
            nd.ones((2,), ctx=gpu(2))
        with gpu(1):
            assert nd.zeros((2,)).context == gpu(1)
        with pytest.raises(DeviceError, match="operands are on"):
            x + nd.ones((1000,), ctx=gpu(0))
        with mx.device.simulate_gpus(3):
            assert mx.num_gpus() == 3
        assert mx.num_gpus() == 2
        assert repr(x).endswith("<NDArray 1000 @gpu(1)>")


@posix
def test_a_forked_child_is_told_that_it_has_no_gpu() -> None:
    with fake_gpus(1):
        nd.ones((2,), ctx=gpu(0)).wait_to_read()
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            answer = b"nothing"
            try:
                answer = str((nd.ones((2,)) + 1).asnumpy().tolist()).encode()
                nd.ones((2,), ctx=gpu(0)).asnumpy()
            except DeviceError as error:
                answer += str(error).encode()
            finally:
                os.write(write, answer)
                os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            answer = pipe.read().decode()
        os.waitpid(child, 0)
        assert answer.startswith("[2.0, 2.0]a GPU cannot be used in a process that was forked")
        assert nd.ones((2,), ctx=gpu(0)).asnumpy().tolist() == [1, 1]


def test_importing_minimx_does_not_import_cupy() -> None:
    assert script("import minimx, sys; print('cupy' in sys.modules, minimx.cuda.state.in_use)").strip() == "False False"


def test_a_line_waits_once_for_a_mark() -> None:
    with fake_gpus(2) as machine:
        cuda.require(0)
        one, other = cuda.line(0), cuda.line(1)
        assert cuda.line(0) is one
        assert (repr(one), repr(cuda.line(1, "in"))) == ("gpu(0)", "gpu(1) in")
        first, second = one.mark(), one.mark()
        for mark in (second, first, second):
            other.after(mark)
        one.after(first)
        assert sum(item[1] == "wait" for stream in machine.streams for item in stream.queue) == 1
        cuda.synchronize()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_gpus_uniform_numbers_are_numpys(dtype: str) -> None:
    """Whatever was drawn before, with odd and even counts, and other distributions between."""
    rng = np.random.default_rng(1)
    with fake_gpus(1):
        xp = cuda.require(0)
        with cuda.working(0):
            for _ in range(10):
                key = Key(int(rng.integers(1 << 63)), int(rng.integers(9)), int(rng.integers(1 << 40)))
                counts = rng.integers(0, 9, 6).tolist()
                mixed = [np.dtype("float32") if rng.random() < 0.5 else np.dtype(dtype) for _ in counts]
                mine = key.generator(xp)
                got = [mine.random(count, kind).get() for count, kind in zip(counts, mixed)]
                got += [mine.standard_normal(3).get(), mine.random(2, np.float32).get(), mine.permutation(7).get()]
                numpys = key.generator(np)  # not before: a thread has one
                want = [numpys.random(count, kind) for count, kind in zip(counts, mixed)]
                want += [numpys.standard_normal(3), numpys.random(2, np.float32), numpys.permutation(7)]
                for one, other in zip(got, want):
                    np.testing.assert_array_equal(one, other)
