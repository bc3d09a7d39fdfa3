"""The backend ONEDNN: what it computes is what programs compute; parameters that change are seen."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, kernels, nd, storage
from minimx.gluon import nn
from minimx.sym.backends.onednn import Plan

from .passes.test_layout import NETS

pytestmark = pytest.mark.skipif(not kernels.found(), reason="oneDNN is not installed (extra fast)")


def data(*shape: int) -> Any:
    return nd.array(np.random.default_rng(1).standard_normal(shape), dtype="float32")


def listed(made: Any) -> list[np.ndarray]:
    return [each.asnumpy() for each in (made if isinstance(made, (list, tuple)) else [made])]


def check(net: gluon.HybridBlock, x: Any, backend: str = "ONEDNN") -> None:
    """The backend computes a part of the net, and the results are those without it."""
    wanted = listed(net(x))
    net.optimize_for(x, backend=backend)
    for got, right in zip(listed(net(x)), wanted, strict=True):
        np.testing.assert_allclose(got, right, 1e-4, 1e-5 * max(1.0, np.abs(right).max()))
    assert f"by {backend}" in net.program(x).report()


def moved_statistics(net: gluon.HybridBlock, x: Any) -> None:
    """Running means that are not 0."""
    for _ in range(2):
        with autograd.record():
            made = net(x)
        autograd.backward(made)


@pytest.mark.parametrize("make", NETS, ids=lambda make: make.__name__)
def test_networks(make: Callable[[], gluon.HybridBlock]) -> None:
    net, x = make(), data(2, 4, 13, 11)
    net.initialize(mx.init.Xavier())
    moved_statistics(net, x)
    check(net, x)


@pytest.mark.parametrize("name", ["resnet18_v1", "mobilenetv2_0.25"])
def test_zoo(name: str) -> None:
    net = mx.gluon.model_zoo.vision.get_model(name, classes=10)
    net.initialize(mx.init.Xavier())
    check(net, data(1, 3, 64, 64), "MKLDNN")


class Post(gluon.HybridBlock):
    """Convolutions with all that they can do behind them, in other orders, and what must not be put into them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = [nn.Conv2D(16, 3, padding=1) for _ in range(6)]
        for layer in self.layers:
            self.register_child(layer)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        a, b, c, d, e, f = self.layers
        first = F.Activation(a(x), act_type="sigmoid")
        second = F.LeakyReLU(b(first), act_type="elu", slope=0.5) + first  # a sum behind the activation, of a value that lives on
        third = F.clip(c(second) + d(second), -0.5, 0.5)  # two convolutions, of which one can add the other
        fourth = e(third)
        fifth = F.Activation(fourth, act_type="softrelu") + fourth  # read twice: it stays a value
        return F.tanh(f(fifth)) * 2 + first, fourth


def test_what_convolutions_do_as_well() -> None:
    net = Post()
    net.initialize(mx.init.Xavier())
    check(net, data(3, 16, 9, 10))


def test_parameters_that_change() -> None:
    """New values by `set_data`, in place, and by training count at once."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3, in_channels=4), nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(16, 1))
    net.initialize()
    x = data(2, 4, 8, 8)
    net(x)
    net.optimize_for(x, backend="ONEDNN")
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.5})

    def in_numpy() -> np.ndarray:
        before = kernels.set("numpy")
        try:
            with autograd.predict_mode():
                value = x
                for layer in net:
                    value = layer(value)
                return value.asnumpy()
        finally:
            kernels.set(before)

    for change in range(3):
        np.testing.assert_allclose(net(x).asnumpy(), in_numpy(), 1e-4, 1e-4)
        if change == 0:
            net[0].weight.set_data(net[0].weight.data() * 2)
        else:
            with autograd.record():
                loss = (net(x) ** 2).sum()
            loss.backward()
            trainer.step(100)
    np.testing.assert_allclose(net(x).asnumpy(), in_numpy(), 1e-4, 1e-4)


def test_several_threads() -> None:
    net = NETS[0]()
    net.initialize()
    inputs = [data(2, 4, 13, 11) * number for number in range(4)]
    net(inputs[0])
    net.optimize_for(inputs[0], backend="ONEDNN")
    wanted = [net(each).asnumpy() for each in inputs]
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(5):
                np.testing.assert_array_equal(net(inputs[number]).asnumpy(), wanted[number])
        except BaseException as error:  # threads keep it to themselves
            failures.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_filters_are_brought_into_place_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    prepare = Plan._prepare

    def counted(self: Plan, *arrays: Any) -> Any:
        made.append(1)
        return prepare(self, *arrays)

    monkeypatch.setattr(Plan, "_prepare", counted)
    net = nn.Conv2D(16, 3, in_channels=4)
    net.initialize()
    x = data(2, 4, 8, 8)
    net.optimize_for(x, backend="ONEDNN")
    for _ in range(3):
        net(x).wait_to_read()
    assert len(made) == 1


def test_views() -> None:
    """A value that is seen in another shape is not written over, and results are nobody else's memory."""

    class Net(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Conv2D(16, 1), nn.Conv2D(16, 1)

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            y = self.one(x)
            z = y.reshape((0, 0, 0, 0))
            return self.two(z) + z, y.reshape((0, -1)), F.flatten(x)

    net, x = Net(), data(2, 16, 5, 5)
    net.initialize()
    before = x.asnumpy()
    check(net, x)
    net(x)[2][:] = 7
    np.testing.assert_array_equal(x.asnumpy(), before)


def test_other_dtypes_stay() -> None:
    net = nn.Conv2D(4, 3, in_channels=4)
    net.initialize()
    net.cast("float64")
    x = data(2, 4, 8, 8).astype("float64")
    net.optimize_for(x, backend="ONEDNN")
    assert "ONEDNN declines" in net.program(x).report()


def test_it_must_be_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minimx.sym.backends.onednn.library.find", lambda: None)
    net = nn.Conv2D(4, 3, in_channels=4)
    net.initialize()
    with pytest.raises(mx.MXNetError, match=r"pip install minimx\[fast\]"):
        net.optimize_for(data(2, 4, 8, 8), backend="ONEDNN")


def test_of_parameters_only_what_runs_read_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the filters into which BatchNorm was folded, of which the packed ones were made."""
    plans: list[Plan] = []
    write = Plan._write
    monkeypatch.setattr(Plan, "_write", lambda self, readers: (plans.append(self), write(self, readers))[1])
    net, x = nn.HybridSequential(), data(1, 16, 12, 12)
    net.add(nn.Conv2D(32, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"))
    net.initialize(mx.init.Xavier())
    moved_statistics(net, x)
    check(net, x)
    assert len(plans[-1].kept) == 2  # packed filters, and biases


def repeated(count: int) -> gluon.HybridBlock:
    """Convolutions of 128 channels, each with a normalization whose factors go into the filters: 576 KiB a layer."""
    net = nn.HybridSequential()
    for _ in range(count):
        net.add(nn.Conv2D(128, 3, padding=1, in_channels=128), nn.BatchNorm(in_channels=128), nn.Activation("relu"))
    net.initialize(mx.init.Xavier())
    return net


def test_filters_on_their_way_are_let_go() -> None:
    """While filters are prepared there is one set that is scaled and not yet in the library's layout, not one of each layer."""
    net, x = repeated(8), data(1, 128, 8, 8)
    net.optimize_for(x, backend="ONEDNN")
    nd.waitall()
    storage.reset_peak(mx.cpu())
    before = storage.stats(mx.cpu())["live"]
    wanted = net(x).asnumpy()
    after = storage.stats(mx.cpu())
    filters = 1 << 20  # bytes of the size class
    assert 8 * filters <= after["live"] - before < 9 * filters
    assert after["peak"] - after["live"] < 3 * filters
    np.testing.assert_array_equal(net(x).asnumpy(), wanted)


def test_values_between_steps_share_an_arena(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain of layers whose images shrink needs the two largest at once, and no more."""
    plans: list[Plan] = []
    made = Plan.__init__
    monkeypatch.setattr(Plan, "__init__", lambda plan, *args: plans.append(plan) or made(plan, *args))
    net = nn.HybridSequential()
    for _ in range(4):
        net.add(nn.Conv2D(16, 3, padding=1), nn.Activation("relu"), nn.MaxPool2D())
    net.initialize(mx.init.Xavier())
    x = data(2, 16, 64, 64)
    check(net, x)
    image = 4 * 2 * 16 * 64 * 64
    assert {plan.arena for plan in plans} == {2 * image}
