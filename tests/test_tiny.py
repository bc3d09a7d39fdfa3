"""One look at every layer, in a few seconds, before all other tests: what is badly broken shows here."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, cpu, engine, nd

pytestmark = pytest.mark.timeout(30)


def test_base() -> None:
    assert issubclass(mx.MXNetError, RuntimeError)
    with pytest.raises(ValueError, match="cannot be broadcast together"):
        nd.ones((2, 3)) + nd.ones((4,))


def test_device() -> None:
    with cpu(1):
        assert nd.ones((2,)).context == mx.current_context() == cpu(1)
    with mx.device.simulate_gpus(1):
        assert (nd.ones((2,), ctx=mx.gpu(0)) + 1).as_in_context(cpu()).asnumpy().tolist() == [2, 2]


def test_storage() -> None:
    before = mx.storage.stats(cpu(8))["live"]
    x = nd.ones((1 << 16,), ctx=cpu(8)) + 1
    x.wait_to_read()
    assert mx.storage.stats(cpu(8))["live"] == before + (1 << 18)
    del x
    engine.waitall()
    assert mx.storage.stats(cpu(8))["live"] == before


def test_operators() -> None:
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    a = nd.array(x)
    assert np.allclose(nd.exp(a).asnumpy(), np.exp(x))
    assert np.allclose((a.T * 2).asnumpy(), x.T * 2)
    assert np.allclose(nd.dot(a, a, transpose_b=True).asnumpy(), x @ x.T, atol=1e-6)
    assert np.allclose(a.sum(axis=1).asnumpy(), x.sum(1), atol=1e-6)
    assert np.allclose(nd.softmax(a).sum(axis=-1).asnumpy(), 1)
    assert a[1:3, 2].asnumpy().tolist() == x[1:3, 2].tolist()
    assert nd.concat(a, a, dim=0).shape == (6, 4)


def test_engine() -> None:
    x = nd.zeros((100_000,))
    for _ in range(10):
        x += 1
        engine.push(lambda value: np.multiply(value, 2, out=value), writes=[x], context=cpu(1))
    wanted = 0
    for _ in range(10):
        wanted = (wanted + 1) * 2
    assert (x.asnumpy() == wanted).all()
    with engine.lazy():
        y = x + 1
    assert y.asnumpy()[0] == wanted + 1
    engine.push(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        engine.waitall()
    engine.waitall()


def test_views_and_writes() -> None:
    x = nd.zeros((3, 4))
    x[1][2:] = 5
    x.reshape((-1,))[0] = 7
    x[[0, 2], [3, 3]] = 9
    assert x.asnumpy().tolist() == [[7, 0, 0, 9], [0, 0, 5, 5], [0, 0, 0, 9]]


def test_autograd() -> None:
    x = nd.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with autograd.record():
        y = (x * x * x).sum()
    y.backward()
    assert x.grad.asnumpy().tolist() == [3, 12, 27]
    with autograd.record():
        first = autograd.grad((x * x * x).sum(), [x], create_graph=True)[0]
    first.backward()
    assert x.grad.asnumpy().tolist() == [6, 12, 18]


def test_random() -> None:
    mx.random.seed(3)
    one = nd.random.normal(shape=(100,)).asnumpy()
    mx.random.seed(3)
    assert (nd.random.normal(shape=(100,)).asnumpy() == one).all()
    assert abs(one.mean()) < 0.5


def test_files(tmp_path: object) -> None:
    path = f"{tmp_path}/arrays.params"
    nd.save(path, {"w": nd.ones((2, 3)), "b": nd.zeros((3,), dtype="int32")})
    found = nd.load(path)
    assert {name: (array.shape, array.dtype) for name, array in found.items()} == {
        "w": ((2, 3), np.float32), "b": ((3,), np.int32),
    }  # fmt: skip


def test_learning() -> None:
    """Linear regression by gradient descent finds the line."""
    mx.random.seed(0)
    inputs = nd.random.normal(shape=(200, 2))
    targets = nd.dot(inputs, nd.array([[2.0], [-3.4]])) + 4.2
    w, b = nd.zeros((2, 1)), nd.zeros((1,))
    for parameter in (w, b):
        parameter.attach_grad()
    for _ in range(100):
        with autograd.record():
            loss = ((nd.dot(inputs, w) + b - targets) ** 2).mean()
        loss.backward()
        for parameter in (w, b):
            parameter -= 0.1 * parameter.grad
    assert np.allclose(w.asnumpy().ravel(), [2, -3.4], atol=1e-3)
    assert np.allclose(b.asnumpy(), 4.2, atol=1e-3)


def test_nothing_heavy_is_imported() -> None:
    import subprocess

    code = "import sys, minimx; print(*{'scipy', 'matplotlib', 'pandas', 'numba', 'cupy', 'torch'} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")
