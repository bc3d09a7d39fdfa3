"""n devices, each with its part of a batch, are one device with the whole batch: the same parameters after twenty steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon
from minimx.gluon import nn

STEPS, BATCH = 20, 7  # no number of devices divides it

#: Every optimizer that does the same to every number whatever the device, with arguments under which twenty steps stay tame.
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "sgd": {"momentum": 0.9, "wd": 0.01},
    "nag": {"momentum": 0.9},
    "signum": {"momentum": 0.9, "wd_lh": 0.01},
    "ftml": {},
    "lars": {"momentum": 0.9},
    "lbsgd": {"momentum": 0.9},
    "dcasgd": {"momentum": 0.9},
    "adam": {},
    "adamw": {"wd": 0.1},
    "adagrad": {},
    "rmsprop": {"centered": True},
    "adadelta": {},
    "ftrl": {},
    "adamax": {},
    "nadam": {},
    "lamb": {"wd": 0.1},
    "groupadagrad": {},
    "test": {"rescale_grad": 0.01},
}


def trained(devices: list[Any], optimizer: str, hybridize: bool, **how: Any) -> list[np.ndarray[Any, Any]]:
    """The parameters of a small net after STEPS steps, those of the first device; all devices are checked to have the same."""
    mx.random.seed(1)
    net = nn.HybridSequential()
    biased = optimizer != "groupadagrad"  # which is for matrices
    net.add(nn.Dense(6, activation="tanh", in_units=4, use_bias=biased), nn.Dense(3, in_units=6, use_bias=biased))
    net.initialize(mx.init.Normal(0.5), ctx=devices)
    if hybridize:
        net.hybridize()
    arguments = {"learning_rate": 0.01, **OPTIMIZERS[optimizer]}
    trainer = gluon.Trainer(net.collect_params(), optimizer, arguments, **how)
    loss, random = gluon.loss.L2Loss(), np.random.default_rng(2)
    for _ in range(STEPS):
        batch = [random.normal(size=(BATCH, width)).astype(np.float32) for width in (4, 3)]
        parts = [gluon.utils.split_and_load(each, devices, even_split=False) for each in batch]
        with autograd.record():
            losses = [loss(net(x), y) for x, y in zip(*parts)]
        autograd.backward(losses)
        trainer.step(BATCH)
    for param in net.collect_params().values():
        first, *others = (array.asnumpy() for array in param.list_data())
        for other in others:
            np.testing.assert_array_equal(other, first)
    return [param.data(devices[0]).asnumpy() for param in net.collect_params().values()]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("on_store", [True, False])
def test_every_optimizer(optimizer: str, on_store: bool) -> None:
    one = trained([mx.cpu()], optimizer, False)
    with mx.device.simulate_gpus(3):
        many = trained([mx.gpu(i) for i in range(3)], optimizer, True, update_on_kvstore=on_store)
    for mine, its in zip(many, one):
        np.testing.assert_allclose(mine, its, rtol=2e-4, atol=2e-5)  # float32, and sums in another order


@pytest.mark.parametrize("kvstore", ["local", "device"])
@pytest.mark.parametrize("count", [2, 5, 9])  # 9 devices for 7 rows: two have nothing to do
@pytest.mark.parametrize("host", [True, False])
def test_any_number_of_devices(kvstore: str, count: int, host: bool) -> None:
    one = trained([mx.cpu()], "sgd", True)
    with mx.device.simulate_gpus(count, bandwidth=1e9, latency=1e-5):
        many = trained([(mx.cpu if host else mx.gpu)(i) for i in range(count)], "sgd", True, kvstore=kvstore)
    for mine, its in zip(many, one):
        np.testing.assert_allclose(mine, its, rtol=2e-4, atol=2e-5)
