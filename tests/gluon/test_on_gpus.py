"""Whole programs on stand-ins for GPUs: training on two of them, optimizers, files, indices, random numbers, operators of users.

Each has the very values that it has on simulated GPUs or on the CPU. Where there are real GPUs, the training runs on those, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, gpu, nd
from minimx.gluon import nn

from ..fake_cupy.fixture import fake_gpus


def network() -> Any:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, activation="relu"), nn.BatchNorm(), nn.MaxPool2D(), nn.Flatten(), nn.Dense(16, activation="tanh"))
    net.add(nn.Dropout(0.3), nn.LeakyReLU(0.1), nn.Dense(3))
    return net


def trained(
    contexts: list[Any], hybrid: bool, optimizer: str = "adam", steps: int = 3, store: str = "device"
) -> list[np.ndarray]:
    """The losses and the parameters after a few steps on batches that are split among devices."""
    mx.random.seed(3)
    for context in contexts:
        mx.random.seed(3, context)
    net = network()
    net.initialize(mx.init.Xavier())
    net(nd.ones((1, 2, 8, 8)))
    net.collect_params().reset_ctx(contexts)
    if hybrid:
        net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), optimizer, {"learning_rate": 0.01}, kvstore=store)
    loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(steps):
        data = gluon.utils.split_and_load(nd.array(rng.standard_normal((8, 2, 8, 8))), contexts)
        labels = gluon.utils.split_and_load(nd.array(rng.integers(0, 3, 8)), contexts)
        with autograd.record():
            parts = [loss_of(net(each), label) for each, label in zip(data, labels)]
        for part in parts:
            part.backward()
        trainer.step(8)
        losses += [part.asnumpy() for part in parts]
    weights = [array.asnumpy() for parameter in net.collect_params().values() for array in parameter.list_data()]
    nd.waitall()
    return losses + weights


def equal(got: list[np.ndarray], want: list[np.ndarray], rtol: float = 0.0) -> None:
    assert len(got) == len(want)
    for one, other in zip(got, want):
        np.testing.assert_allclose(one, other, rtol, rtol)


@pytest.mark.parametrize("store", ["device", "local"])
@pytest.mark.parametrize("hybrid", [False, True], ids=["operators", "programs"])
def test_training_on_two_gpus(hybrid: bool, store: str) -> None:
    with mx.device.simulate_gpus(2):
        want = trained([gpu(0), gpu(1)], hybrid, store=store)
    for seed in range(2):
        with fake_gpus(2, seed):
            equal(trained([gpu(0), gpu(1)], hybrid, store=store), want, 5e-6)  # on a CPU oneDNN makes products, in another order


@pytest.mark.skipif(mx.num_gpus() < 1, reason="needs a GPU")
@pytest.mark.parametrize("hybrid", [False, True], ids=["operators", "programs"])
def test_training_on_real_gpus(hybrid: bool) -> None:
    count = min(mx.num_gpus(), 2)
    got = trained([gpu(number) for number in range(count)], hybrid)
    with mx.device.simulate_gpus(count):
        want = trained([gpu(number) for number in range(count)], hybrid)
    equal(got, want, 1e-3)


OPTIMIZERS = sorted(set(mx.optimizer.Optimizer.opt_registry) - {"test", "ccsgd"})


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer(name: str) -> None:
    """Two steps in single and in half precision with a master copy: weights are those of the CPU."""

    def updated(context: Any) -> list[np.ndarray]:
        mx.random.seed(5, context)
        results = []
        for dtype, several in (("float32", False), ("float16", True)):
            updater = mx.optimizer.get_updater(mx.optimizer.create(name, multi_precision=several))
            weight = nd.array(np.linspace(-1, 1, 12).reshape(3, 4), ctx=context, dtype=dtype)
            for step in range(2):
                updater(0, nd.array(np.cos(np.arange(12) + step).reshape(3, 4), ctx=context, dtype=dtype), weight)
            results.append(weight.astype("float32").asnumpy())
        return results

    want = updated(mx.cpu())
    with fake_gpus(1, 7):
        equal(updated(gpu(0)), want, 1e-6)


def test_files_of_arrays_on_a_gpu(tmp_path: Path) -> None:
    with fake_gpus(1, 1):
        arrays = {"a": nd.array([[1, 2], [3, 4]], ctx=gpu(0)), "b": nd.arange(5, ctx=gpu(0), dtype="int32")}
        nd.save(str(tmp_path / "arrays"), arrays)
        found = nd.load(str(tmp_path / "arrays"))
        assert found["a"].asnumpy().tolist() == [[1, 2], [3, 4]]
        assert found["b"].asnumpy().tolist() == [0, 1, 2, 3, 4]
        net = network()
        net.initialize(ctx=gpu(0))
        want = net(nd.ones((1, 2, 8, 8), ctx=gpu(0))).asnumpy()
        net.save_parameters(str(tmp_path / "net"))
        other = network()
        other.load_parameters(str(tmp_path / "net"), ctx=gpu(0))
        np.testing.assert_array_equal(other(nd.ones((1, 2, 8, 8), ctx=gpu(0))).asnumpy(), want)


KEYS: list[Any] = [
    1, -1, slice(1, 3), slice(None, None, -1), slice(0, 4, 2), (slice(None), 1), (slice(1, 3), slice(0, 2)), ..., (..., 0), None,
    [0, 2, 2], ([0, 1], [1, 1]), (slice(None), [0, 0, 2]), np.array([[0, 1], [2, 3]]), np.array([True, False, True, True]),
    ([3, 0], slice(1, 3)),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=[str(key) for key in KEYS])
def test_indices(key: Any) -> None:
    """Reading at a key, writing numbers, arrays and a part of the array itself there; of several values for an element the last stays."""

    def used(context: Any) -> list[np.ndarray]:
        x = nd.arange(12, ctx=context).reshape((4, 3))
        found = [x[key].asnumpy()]
        y = x.copy()
        y[key] = 7
        found.append(y.asnumpy())
        z = x.copy()
        z[key] = nd.array(np.arange(found[0].size).reshape(found[0].shape) * 0.5, ctx=context)
        found.append(z.asnumpy())
        z[0:3] = z[1:4]  # overlapping parts of one memory
        found.append(z.asnumpy())
        return found

    want = used(mx.cpu())
    with fake_gpus(1, 3):
        equal(used(gpu(0)), want)


DRAWS: list[Any] = [
    lambda nd: nd.random.uniform(2, 5, (300,)), lambda nd: nd.random.normal(1, 2, (300,)), lambda nd: nd.random.gamma(2, 3, (300,)),
    lambda nd: nd.random.exponential(2, (300,)), lambda nd: nd.random.poisson(4, (300,)), lambda nd: nd.random.randint(0, 9, (300,)),
    lambda nd: nd.random.negative_binomial(3, 0.4, (300,)), lambda nd: nd.shuffle(nd.arange(300)),
    lambda nd: nd.random.multinomial(nd.array([0.2, 0.3, 0.5]), shape=300), lambda nd: nd.random.uniform(0, 1, (7, 43), dtype="float64"),
    lambda nd: nd.random.uniform(nd.array([0, 5]), nd.array([1, 9]), shape=(50,)), lambda nd: nd.Dropout(nd.ones((300,)), mode="always"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(DRAWS)))
def test_random_numbers_are_those_of_the_cpu(number: int) -> None:
    """Devices that are seeded one by one with the same number draw the same numbers."""

    def drawn(context: Any) -> list[np.ndarray]:
        mx.random.seed(11, context)
        with context:
            return [DRAWS[number](nd).asnumpy() for _ in range(3)]

    want = drawn(mx.cpu())
    with fake_gpus(1, number):
        equal(drawn(gpu(0)), want)


class Doubled(mx.operator.CustomOp):
    def forward(self, is_train: bool, req: Any, in_data: Any, out_data: Any, aux: Any) -> None:
        assert in_data[0].asnumpy().shape == (3,)
        self.assign(out_data[0], req[0], in_data[0] * 2)

    def backward(self, req: Any, out_grad: Any, in_data: Any, out_data: Any, in_grad: Any, aux: Any) -> None:
        self.assign(in_grad[0], req[0], out_grad[0] * 2)


@mx.operator.register("doubled_on_gpus")
class DoubledProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx: Any, shapes: Any, dtypes: Any) -> Doubled:
        return Doubled()


def test_operators_of_users_and_loops() -> None:
    with fake_gpus(1, 2):
        x = nd.array([1, 2, 3], ctx=gpu(0))
        x.attach_grad()
        with autograd.record():
            y = nd.Custom(x + 1, op_type="doubled_on_gpus")
            outputs, state = nd.contrib.foreach(lambda row, state: (row * state, state + row), y, nd.ones((1,), ctx=gpu(0)))
            total = outputs.sum() + state.sum()
        total.backward()
        assert y.asnumpy().tolist() == [4, 6, 8]
        assert outputs.asnumpy().reshape(-1).tolist() == [4, 30, 88]
        assert x.grad.context == gpu(0)
        assert np.isfinite(x.grad.asnumpy()).all()


def test_statistics_over_several_gpus() -> None:
    """SyncBatchNorm: the devices' kernels meet in host memory."""

    def normalized(contexts: list[Any]) -> list[np.ndarray]:
        layer = mx.gluon.contrib.nn.SyncBatchNorm(num_devices=len(contexts))
        layer.initialize(ctx=contexts)
        parts = [nd.array(np.arange(12).reshape(2, 3, 2) + 5 * number, ctx=each) for number, each in enumerate(contexts)]
        with autograd.record():
            outputs = [layer(part) for part in parts]
            loss = [(output * output * output).sum() for output in outputs]
        autograd.backward(loss)
        return [output.asnumpy() for output in outputs]

    with mx.device.simulate_gpus(2):
        want = normalized([gpu(0), gpu(1)])
        nd.waitall()
    with fake_gpus(2, 4):
        equal(normalized([gpu(0), gpu(1)]), want, 1e-6)


def test_the_store_nccl() -> None:
    with fake_gpus(3, 5):
        store = mx.kv.create("nccl")
        arrays = [nd.full((50,), number + 1, ctx=gpu(number)) for number in range(3)]
        for _ in range(3):
            store.pushpull("w", arrays)
            for array in arrays:
                array *= 0.5
        for array in arrays:
            np.testing.assert_array_equal(array.asnumpy(), (1 + 2 + 3) / 2 * 1.5 * 1.5)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_sums_over_several_gpus(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Along a tree, around a ring, and of two bits a number."""
    for large, compressed in ((1 << 30, False), (10, False), (1 << 30, True)):
        monkeypatch.setattr("minimx.parallel.reduction.LARGE", large)
        with fake_gpus(count, count):
            store = mx.kv.create("device")
            if compressed:
                store.set_gradient_compression({"type": "2bit", "threshold": 1.0})
            arrays = [nd.full((23,), number + 1, ctx=gpu(number)) for number in range(count)]
            store.init("w", nd.zeros((23,), ctx=gpu(0)))
            outputs = [nd.zeros((23,), ctx=gpu(number)) for number in range(count)]
            for _ in range(2):
                store.pushpull("w", arrays, out=outputs)
            for output in outputs:
                assert (output.asnumpy() == (count if compressed else count * (count + 1) / 2)).all()
