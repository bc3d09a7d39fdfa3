"""The layout pass: images handed on with the channels last; results as without it; filters, heads and states as they were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, kernels, nd
from minimx.gluon import nn
from minimx.sym import passes

pytestmark = pytest.mark.skipif(not kernels.found(), reason="oneDNN is not installed (extra fast)")


def residual() -> gluon.HybridBlock:
    """Convolutions, normalizations, a sum, pooling, and a dense layer behind it."""

    class Net(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.side = (
                nn.Conv2D(16, 3, 1, 1),
                nn.Conv2D(24, 3, 2, 1),
                nn.Conv2D(24, 1, 2, use_bias=False),
            )
            self.one, self.two = nn.BatchNorm(), nn.BatchNorm(scale=False)
            self.dense = nn.Dense(5)

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            y = F.relu(self.one(self.first(x)))
            y = F.Activation(self.two(self.second(y)) + self.side(y), act_type="tanh")
            return self.dense(F.Pooling(y, kernel=(2, 2), stride=(2, 2), pool_type="max"))

    return Net()


def branches() -> gluon.HybridBlock:
    """Branches that are joined, global pooling, a value that is a head, too."""

    class Net(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two, self.three = nn.Conv2D(16, 1), nn.Conv2D(16, 3, padding=1, groups=2), nn.Conv2D(17, 3)

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            y = F.concat(self.one(x), F.LeakyReLU(self.two(x)) * 2, x, dim=1)
            z = self.three(F.Pooling(y, kernel=(3, 3), pad=(1, 1), pool_type="avg"))
            return F.Pooling(z, global_pool=True, pool_type="avg"), y, F.softmax(y, axis=1), y.transpose((0, 2, 1, 3))

    return Net()


def separable() -> gluon.HybridBlock:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3, strides=2), nn.Conv2D(16, 3, groups=16, padding=1), nn.BatchNorm(), nn.Conv2D(20, 1), nn.Flatten())
    return net


NETS: list[Callable[[], gluon.HybridBlock]] = [residual, branches, separable]


def everything(net: gluon.HybridBlock, x: Any) -> list[np.ndarray]:
    """Outputs in training and out of it, all gradients, and states."""
    net.hybridize()
    x.attach_grad()
    for parameter in net.collect_params(".*running.*").values():
        parameter.set_data(nd.ones(parameter.shape) * 0.5)
    with autograd.record():
        made = net(x)
        outputs = list(made) if isinstance(made, (list, tuple)) else [made]
        weights = [nd.array(np.random.default_rng(3).standard_normal(each.shape), dtype="float32") for each in outputs]
        total = nd.add_n(*[(each * weight).sum().reshape((1,)) for each, weight in zip(outputs, weights)])
    total.backward()
    more = net(x)
    found = [*outputs, *(more if isinstance(more, (list, tuple)) else [more]), x.grad]
    parameters = net.collect_params().values()
    found += [each.grad() if each.grad_req != "null" else each.data() for each in parameters]
    return [each.asnumpy() for each in found]


@pytest.mark.parametrize("make", NETS, ids=lambda make: make.__name__)
def test_results_are_the_same(make: Callable[[], gluon.HybridBlock]) -> None:
    net = make()
    net.initialize(mx.init.Xavier())
    x = nd.array(np.random.default_rng(0).standard_normal((2, 4, 13, 11)), dtype="float32")
    net(x)
    with passes.without("layout"):
        wanted = everything(net, x)
    for got, right in zip(everything(net, x), wanted, strict=True):
        np.testing.assert_allclose(got, right, 1e-4, 5e-5 * max(1.0, np.abs(right).max()))  # sums in another order


def test_what_the_program_does() -> None:
    """Between convolutions nothing is turned round; the report says how much is."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3), nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(16, 3), nn.MaxPool2D(2), nn.Conv2D(16, 3))
    net.initialize()
    net.hybridize()
    program = net.program(nd.zeros((2, 3, 40, 40)))
    calls = [line for line in program.source.splitlines() if "= transpose" in line and not line.startswith("#")]
    assert len(calls) == 2  # on the way in, and on the way out
    assert "5 operators with the channels last, 2 transposes" in program.report()
    with passes.without("layout"):
        assert "transpose" not in net.program(nd.zeros((3, 3, 40, 40))).source


def test_what_stays() -> None:
    """Double precision, few channels, other dimensions, few numbers, and NumPy's kernels."""
    for dtype, channels, layer in (("float64", 16, nn.Conv2D), ("float32", 4, nn.Conv2D), ("float32", 16, nn.Conv1D)):
        net = nn.HybridSequential()
        for _ in range(2):
            net.add(layer(channels, 3))
        net.initialize()
        net.cast(dtype)
        net.hybridize()
        shape = (2, 3, 9, 9) if layer is nn.Conv2D else (2, 3, 9)
        assert "nothing to hand on" in net.program(nd.zeros(shape, dtype=dtype)).report()
    net = residual()
    net.initialize()
    net(nd.zeros((1, 3, 9, 9)))
    net.hybridize()
    with autograd.train_mode():
        assert "would magnify rounding" in net.program(nd.zeros((1, 3, 9, 9))).report()
        assert "with the channels last" in net.program(nd.zeros((8, 3, 9, 9))).report()
    before = kernels.set("numpy")
    try:
        net = separable()
        net.initialize()
        net.hybridize()
        assert "NumPy's kernels are best as it is" in net.program(nd.zeros((2, 3, 9, 9))).report()
    finally:
        kernels.set(before)
