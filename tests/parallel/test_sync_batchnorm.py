"""BatchNorm over the parts of a batch on several devices is BatchNorm over the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, nd
from minimx.gluon import nn
from minimx.gluon.contrib.nn import SyncBatchNorm
from minimx.ops import meeting
from minimx.parallel import split_and_load

RANDOM = np.random.default_rng(0)
DATA, LABEL = RANDOM.normal(2, 3, size=(7, 3, 4, 4)), RANDOM.normal(size=(7, 2))


def trained(devices: list[Any], hybridize: bool, steps: int = 5) -> list[np.ndarray[Any, Any]]:
    """The parameters and running statistics of a small net with two such layers."""
    mx.random.seed(1)
    norms = [
        SyncBatchNorm(num_devices=len(devices), in_channels=4) if len(devices) > 1 else nn.BatchNorm(in_channels=4) for _ in "ab"
    ]
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, in_channels=3), norms[0], nn.Activation("relu"), nn.Conv2D(4, 1, in_channels=4), norms[1])
    net.add(nn.Dense(2, in_units=16))
    net.initialize(mx.init.Normal(0.3), ctx=devices)
    if hybridize:
        net.hybridize()
    trainer, loss = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.05, "momentum": 0.9}), gluon.loss.L2Loss()
    for _ in range(steps):
        with autograd.record():
            parts = zip(split_and_load(DATA, devices, even_split=False), split_and_load(LABEL, devices, even_split=False))
            losses = [loss(net(x), y) for x, y in parts]
        autograd.backward(losses)
        trainer.step(len(DATA))
    found = [param.list_data() for param in net.collect_params().values()]
    for arrays in found:
        for array in arrays[1:]:
            np.testing.assert_allclose(array.asnumpy(), arrays[0].asnumpy(), rtol=1e-6, atol=1e-7)
    return [arrays[0].asnumpy() for arrays in found]


@pytest.mark.parametrize("count", [2, 3, 9])  # with 9 devices two have nothing
@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("host", [False, True])
def test_many_devices_are_one(count: int, hybridize: bool, host: bool) -> None:
    with mx.device.simulate_gpus(count):
        many = trained([(mx.cpu if host else mx.gpu)(i) for i in range(count)], hybridize)
    for mine, its in zip(many, trained([mx.cpu()], hybridize)):
        np.testing.assert_allclose(mine, its, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("hybridize", [False, True])
def test_lazy_work_does_not_keep_the_others_waiting(hybridize: bool) -> None:
    """What lies in an open segment together with a meeting is computed before it: the other device may need it to come."""
    devices = [mx.cpu(0), mx.cpu(1)]
    with mx.engine.lazy():
        many = trained(devices, hybridize)
    for mine, its in zip(many, trained(devices, hybridize)):
        np.testing.assert_allclose(mine, its, rtol=1e-5, atol=1e-6)


def test_a_device_that_does_not_come_is_an_error_not_a_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "PATIENCE", 1)
    layer = SyncBatchNorm(num_devices=2, in_channels=3, prefix="alone_")
    layer.initialize()
    with autograd.record():
        y = layer(nd.array(DATA))
    with pytest.raises(mx.MXNetError, match=r"only cpu\(0\) came for 'alone_' in 1 s, and 2 devices are to meet"):
        y.asnumpy()
    assert not meeting._rounds
    with mx.engine.naive(), autograd.record(), pytest.raises(mx.MXNetError, match="use the asynchronous engine"):
        layer(nd.array(DATA))


def test_what_has_no_gradient() -> None:
    with mx.device.simulate_gpus(2):
        devices = [mx.gpu(0), mx.gpu(1)]
        vectors = [[nd.ones((3,), ctx=device) for _ in range(4)] for device in devices]
        for array in (each[0] for each in vectors):
            array.attach_grad()
        with autograd.record():
            found = [
                nd.contrib.SyncBatchNorm(x, *vector, ndev=2, key="k", output_mean_var=True)
                for x, vector in zip(split_and_load(DATA, devices, even_split=False), vectors)
            ]
        for result, mean, variance in found:
            np.testing.assert_allclose(mean.asnumpy(), DATA.mean(axis=(0, 2, 3)), rtol=1e-4)
            np.testing.assert_allclose(variance.asnumpy(), DATA.var(axis=(0, 2, 3)), rtol=1e-4)
            assert result.shape[1:] == DATA.shape[1:]
            with pytest.raises(ValueError, match="no gradient where they are those of several devices"):
                autograd.grad(mean, vectors[0][0])
