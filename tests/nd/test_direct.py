"""The short way of small operators: which take it, and that nobody can tell from results, errors and memory."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, engine, nd
from minimx.engine import front
from minimx.nd import direct, entry
from minimx.op import share_out, sharing
from minimx.ops.activation import Relu
from minimx.ops.nn import FullyConnectedLayer


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the operators that go the long way."""
    names: list[str] = []
    submit = entry.submit

    def logged(op: Any, *rest: Any) -> Any:
        names.append(op.name)
        return submit(op, *rest)

    monkeypatch.setattr(entry, "submit", logged)
    return names


def test_small_operators_on_arrays_that_are_there_do_without_the_engine(entered: list[str]) -> None:
    x = nd.array([[-1, 2], [3, -4]])
    assert nd.relu(x).asnumpy().tolist() == [[0, 2], [3, 0]]
    assert nd.relu(x[1]).asnumpy().tolist() == [3, 0]
    assert nd.FullyConnected(x, nd.ones((3, 2)), None, num_hidden=3, no_bias=True).asnumpy().tolist() == [[1] * 3, [-1] * 3]
    assert entered == []


def test_others_go_the_long_way(entered: list[str]) -> None:
    x = nd.ones((2, 2))
    nd.relu(nd.ones((300, 300)))  # large
    nd.relu(x, out=x)
    nd.Dropout(x)  # random
    nd.split(x, 2)  # several outputs
    with engine.lazy():
        nd.sign(x)
    with engine.naive(), pytest.raises(mx.MXNetError):  # what fails is run again on the long way, which raises it
        nd.linalg.potrf(-x)
    assert entered[1:] == ["relu", "relu", "Dropout", "SliceChannel", "sign", "_linalg_potrf"]


def test_a_value_that_is_pending_is_waited_for() -> None:
    with engine.lazy():
        x = nd.ones((2,)) * 3
    assert nd.relu(x).asnumpy().tolist() == [3, 3]


def test_an_error_waits_in_the_result() -> None:
    y = nd.take(nd.array([1, 2]), nd.array([5]), mode="raise")
    with pytest.raises(mx.MXNetError, match="index 5 is out of bounds"):
        y.asnumpy()
    with engine.naive(), pytest.raises(mx.MXNetError, match="index 5 is out of bounds"):
        nd.take(nd.array([1, 2]), nd.array([5]), mode="raise")


def test_there_are_no_warnings() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(nd.log(nd.array([-1])).asnumpy()).all()


def test_results_have_memory_of_their_own() -> None:
    x = nd.array([1, 2])
    y = nd.expand_dims(x, 0)
    x[:] = 5
    assert y.asnumpy().tolist() == [[1, 2]]


def test_an_operator_may_run_inside_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a finalizer, which Python may call in the middle of a kernel."""
    kernel = Relu.kernel
    inner: list[Any] = []

    def calling(self: Any, xp: Any, data: Any, out: Any = None) -> Any:
        if not inner:
            inner.append(None)
            inner[0] = nd.relu(nd.array([-7, 7])).asnumpy().tolist()
        return kernel(self, xp, data, out)

    monkeypatch.setattr(Relu, "kernel", calling)
    assert nd.relu(nd.array([-1, 1])).asnumpy().tolist() == [0, 1]
    assert inner == [[0, 7]]


def test_what_is_recorded_has_gradients_of_any_order(entered: list[str]) -> None:
    x = nd.array([2, -3])
    x.attach_grad()
    with autograd.record():
        (slope,) = autograd.grad(nd.square(x) * x, [x], create_graph=True)
        slope.backward()
    assert x.grad.asnumpy().tolist() == [12, -18]
    assert entered == []


def test_a_gradient_is_copied_into_memory_that_is_shared() -> None:
    x = nd.array([2, 3])
    x.attach_grad()
    outside = np.from_dlpack(x.grad)
    with autograd.record():
        y = x * x
    y.backward()
    assert outside.tolist() == x.grad.asnumpy().tolist() == [4, 6]


def test_a_gradient_does_not_overtake_what_reads_the_one_before() -> None:
    x = nd.array([2, 3])
    x.attach_grad()
    x.grad[:] = 1
    with engine.lazy():
        before = x.grad * 10
    with autograd.record():
        y = x * x
    y.backward()
    assert x.grad.asnumpy().tolist() == [4, 6]
    assert before.asnumpy().tolist() == [10, 10]


def test_the_estimate_is_that_of_the_engine() -> None:
    for rows in (1, 1000):
        op, inputs = FullyConnectedLayer(256, no_bias=True), [nd.ones((rows, 512)), nd.ones((256, 512))]
        spec = op.infer(*(each.spec for each in inputs))
        dear = front.work(op, inputs, (spec,)) > front.INLINE
        assert direct._cheap(op, [each.asnumpy() for each in inputs], spec, 1 << 20) != dear


def test_work_of_a_kernel_is_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for threads in (sharing[:], []):
        monkeypatch.setattr("minimx.op.sharing", threads)
        done: list[int] = []
        share_out(list(range(10)), done.extend)
        assert sorted(done) == list(range(10))
