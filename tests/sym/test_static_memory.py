"""`hybridize(static_alloc=True)`: when it has run, a network takes no more memory from the system, neither for values nor between them."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, kernels, nd, storage
from minimx.gluon import nn
from minimx.kernels import machine

LARGE = 1 << 19  # bytes: every value of the networks here has more, and what Python needs for a call has less
WARM = 3  # calls: of the second, the outputs of the first are still there

pytestmark = pytest.mark.skipif(not kernels.found(), reason="NumPy's kernels of convolutions take memory of their own")


def sequence(*layers: Any) -> Any:
    net = nn.HybridSequential()
    net.add(*layers)
    return net


class Attention(gluon.HybridBlock):
    """A block of a transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.out = nn.Dense(3 * 64, flatten=False), nn.Dense(64, flatten=False)
        self.norm, self.drop = nn.LayerNorm(), nn.Dropout(0.1)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        query, key, value = F.split(self.project(x), 3, axis=2)
        weights = F.softmax(F.batch_dot(query, key, transpose_b=True) / 8)
        return self.norm(x + self.drop(self.out(F.batch_dot(self.drop(weights), value))))


NETWORKS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "dense": (lambda: sequence(nn.Dense(512, "relu"), nn.Dropout(0.5), nn.BatchNorm(), nn.Dense(512, "tanh")), (512, 512)),
    "images": (
        lambda: sequence(
            nn.Conv2D(32, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(64, 3, padding=1), nn.MaxPool2D(),
            nn.BatchNorm(), nn.LeakyReLU(0.1), nn.Conv2D(64, 3, padding=1), nn.AvgPool2D(2, 1),
        ),
        (8, 16, 48, 48),
    ),
    "attention": (Attention, (40, 64, 64)),
}  # fmt: skip


def most_taken(call: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Of calls that are warm: the most bytes that NumPy and Python had at once beyond those before, and blocks of new memory for a pool."""
    taken = []
    from_system = storage.Pool._from_system
    monkeypatch.setattr(storage.Pool, "_from_system", lambda pool, size: taken.append(size) or from_system(pool, size))
    for code in list(machine._codes.values()):  # what other tests left to be compiled takes memory in a thread of its own
        machine.wait(code)
    storage.pool(mx.cpu()).trim(0)  # what other tests left would hide it
    # A gradient takes over the memory of the last one when this thread comes to it: a worker that is given its turn before needs more.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1.0)
    for _ in range(WARM):
        call()
        nd.waitall()
    taken.clear()
    tracemalloc.start()
    try:
        most = 0
        for _ in range(3):
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            call()
            nd.waitall()
            most = max(most, tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
        sys.setswitchinterval(interval)
    return most, len(taken)


def prepared(name: str) -> tuple[Any, Any]:
    make, shape = NETWORKS[name]
    net = make()
    net.initialize(mx.init.Xavier())
    net.hybridize(static_alloc=True)
    return net, nd.array(np.random.default_rng(0).standard_normal(shape))


@pytest.mark.parametrize("name", NETWORKS)
def test_inference_takes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net, x = prepared(name)
    most, blocks = most_taken(lambda: net(x), monkeypatch)
    assert (most < LARGE, blocks) == (True, 0), most


@pytest.mark.parametrize("name", NETWORKS)
def test_a_step_of_training_takes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net, x = prepared(name)
    net(x)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.01, "momentum": 0.9})
    loss = gluon.loss.L2Loss()
    loss.hybridize(static_alloc=True)
    label = nd.zeros(net(x).shape)

    def step() -> None:
        with autograd.record():
            each = loss(net(x), label)
        each.backward()
        trainer.step(len(x))

    most, blocks = most_taken(step, monkeypatch)
    assert (most < LARGE, blocks) == (True, 0), most


def test_what_a_user_holds_is_not_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs that somebody keeps stay as they are; each further call needs memory for its own, and for nothing else."""
    net, x = prepared("dense")
    inputs = [x * (number + 1) for number in range(WARM + 3)]
    held: list[Any] = []
    _, blocks = most_taken(lambda: held.append(net(inputs[len(held)])), monkeypatch)
    assert blocks <= 3
    for given, array in zip(inputs, held):
        np.testing.assert_array_equal(array.asnumpy(), net(given).asnumpy())
