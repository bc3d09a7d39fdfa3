"""What a user's methods may do while the engine runs them: fail, wait, push, call each other, from threads and processes of any kind."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, engine, nd, sym
from minimx.base import ArgumentError, MXNetError, ShapeError

from ..engine.conftest import gates, idle_engine  # noqa: F401  # fixtures
from ..engine.helpers import LARGE, PATIENT, Gates, notes, pending, script, with_workers
from .operators import define

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(autouse=True)
def no_failures_left() -> Iterator[None]:
    yield
    engine.waitall()


def put(array: Any, value: Any) -> None:
    array[:] = value


# ---- asynchrony


def test_a_call_returns_at_once(gates: Gates) -> None:  # noqa: F811
    x, gate = pending(gates)
    y = nd.Custom(x, op_type="test_square")
    z = nd.Custom(y, op_type="test_square") + 1
    assert y.shape == z.shape == (4,)
    assert not y.var.ready
    gate.set()
    assert z.asnumpy().tolist() == [2] * 4


def test_it_starts_without_a_sync() -> None:
    ran = threading.Event()
    define("test_starts", lambda op, ins, outs: ran.set())
    kept = nd.Custom(nd.ones((1,)), op_type="test_starts")
    assert ran.wait(PATIENT)
    del kept


@pytest.mark.parametrize("scope", [engine.lazy, engine.naive, lambda: engine.bulk(4)])
def test_modes(scope: Any) -> None:
    x = nd.array([1, 2])
    x.attach_grad()
    with scope():
        with autograd.record():
            y = nd.Custom(x + 1, op_type="test_square") * 2
        y.backward()
        assert y.asnumpy().tolist() == [8, 18]
    assert x.grad.asnumpy().tolist() == [8, 12]


def test_an_input_may_be_overwritten_after_the_call(gates: Gates) -> None:  # noqa: F811
    gate = gates.hold()
    x = nd.ones((LARGE,))
    y = nd.Custom(x, op_type="test_square")
    x[:] = 5
    x[0] = 7
    gate.set()
    assert y.asnumpy().max() == 1


def test_work_on_inputs_that_forward_did_not_wait_for_ends_before_they_change() -> None:
    def forward(op: Any, in_data: Any, out_data: Any) -> None:
        op.kept = in_data[0] * 3  # large enough to be queued

    define("test_queued", forward, lambda op, heads, grads: put(grads[0], op.kept))
    x = nd.ones((LARGE,))
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, op_type="test_queued")
    with autograd.pause():
        x[0:LARGE] = 2
        x[1] = 4
    y.backward()
    assert set(x.grad.asnumpy()) == {3}


# ---- deadlocks


def test_forward_runs_in_the_thread_that_waits(gates: Gates) -> None:  # noqa: F811
    gate = gates.hold()  # the lane's only worker
    threads: list[Any] = []
    define("test_thread", lambda op, ins, outs: threads.append(threading.current_thread()))
    nd.Custom(nd.ones((1,)), op_type="test_thread").wait_to_read()
    gate.set()
    assert threads == [threading.current_thread()]


def test_what_is_recorded_after_a_call_does_not_hold_it_up(gates: Gates) -> None:  # noqa: F811
    """The thread that waits runs forward, while it has recorded what waits for the call: forward must not record into that."""
    gate = gates.hold()

    def forward(op: Any, in_data: Any, out_data: Any) -> None:
        put(out_data[0], (nd.Custom(in_data[0] * 2, op_type="test_square") * 2).asnumpy())

    define("test_records", forward)
    y = nd.Custom(nd.ones((LARGE,)), op_type="test_records")
    z = y + 1
    y.wait_to_read()
    gate.set()
    assert z.asnumpy().max() == 9


def test_a_pushed_function_may_use_arrays_in_the_thread_that_waits(gates: Gates) -> None:  # noqa: F811
    gate = gates.hold()
    x, seen = nd.ones((LARGE,)), []

    def function(value: np.ndarray) -> None:
        seen.append(float((nd.ones((LARGE,)) * 2).sum().asscalar()))
        value[:] = 3

    engine.push(function, writes=[x])
    y = x + 1
    x.wait_to_read()
    gate.set()
    assert y.asnumpy().max() == 4
    assert seen == [2 * LARGE]


def test_forward_waits_for_arrays_of_the_outside(gates: Gates) -> None:  # noqa: F811
    other = nd.ones((LARGE,))
    define("test_outside", lambda op, ins, outs: put(outs[0], (other * 2 + after).asnumpy()))
    gate = gates.hold()
    y = nd.Custom(nd.ones((LARGE,)), op_type="test_outside")
    after = other + 5  # recorded later, not begun
    gate.set()
    assert y.asnumpy().max() == 8


def test_waiting_for_its_own_output_is_an_error() -> None:
    define("test_own_output", lambda op, ins, outs: y.wait_to_read())
    with engine.lazy():
        gate = nd.ones((1,)) * 2
    y = nd.Custom(gate, op_type="test_own_output")
    with pytest.raises(MXNetError, match="would wait for ever"):
        y.wait_to_read()


def test_waitall_inside() -> None:
    define("test_waitall", lambda op, ins, outs: (put(outs[0], ins[0] * 2), nd.waitall()))
    assert nd.Custom(nd.ones((LARGE,)), op_type="test_waitall").asnumpy().max() == 2


def test_many_calls_one_after_the_other() -> None:
    x = nd.ones((2,))
    x.attach_grad()
    with autograd.record():
        y = x
        for _ in range(300):
            y = nd.Custom(y, op_type="test_square")
    y.backward()
    assert x.grad.asnumpy().tolist() == [float("inf")] * 2 or x.grad.asnumpy()[0] > 1e38


def test_nested_calls() -> None:
    def forward(op: Any, in_data: Any, out_data: Any) -> None:
        depth = int(in_data[0].asscalar())
        put(out_data[0], nd.Custom(in_data[0] - 1, op_type="test_nested") + 1 if depth else 0)

    define("test_nested", forward)
    assert nd.Custom(nd.array([20]), op_type="test_nested").asscalar() == 20


@pytest.mark.parametrize("size", [3, LARGE])
def test_many_threads(size: int) -> None:
    def forward(op: Any, in_data: Any, out_data: Any) -> None:
        put(out_data[0], nd.array(in_data[0].asnumpy()) * 2)

    define("test_threads", forward, lambda op, heads, grads: put(grads[0], heads[0].asnumpy() * 2))
    results: list[Any] = []

    def work(number: int) -> None:
        for _ in range(10):
            x = nd.array(np.full(size, number, np.float32))
            x.attach_grad()
            with autograd.record():
                y = nd.Custom(nd.Custom(x, op_type="test_threads"), op_type="test_square")
            y.backward()
            results.append((y.asnumpy()[0] == 4 * number**2, x.grad.asnumpy()[-1] == 8 * number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENT)
    assert results == [(True, True)] * 60


def test_calls_of_one_executor_run_in_order() -> None:
    order: list[str] = []

    def forward(op: Any, in_data: Any, out_data: Any) -> None:
        order.append("forward")
        put(out_data[0], 1)

    define("test_order", forward, lambda op, heads, grads: order.append("backward"))
    device = with_workers(3)
    executor = sym.Custom(sym.var("x"), op_type="test_order").simple_bind(device, x=(1,))
    for _ in range(20):
        executor.forward(is_train=True)
        executor.backward(nd.ones((1,)))
    nd.waitall()
    assert order == ["forward", "backward"] * 20


def test_two_processes() -> None:
    code = """
import os, sys
sys.path.insert(0, sys.argv[1])
import minimx as mx
import tests.custom.operators
x = mx.nd.array([1, 2, 3])
before = mx.nd.Custom(x, op_type="test_square")
child = os.fork()
if child == 0:
    ok = mx.nd.Custom(before, op_type="test_square").asnumpy().tolist() == [1, 16, 81]
    os._exit(0 if ok else 1)
print(os.waitpid(child, 0)[1], before.asnumpy().tolist())
"""
    from ..engine.helpers import ROOT

    assert script(code, str(ROOT)) == "0 [1.0, 4.0, 9.0]\n"


# ---- failures


def test_a_failure_is_raised_at_the_sync_with_the_users_own_traceback() -> None:
    def forward(op: Any, in_data: Any, out_data: Any) -> None:
        raise KeyError("no such key")

    define("test_fails", forward)
    y = nd.Custom(nd.ones((2,)), op_type="test_fails")  # the line that queued it
    z = y + 1
    for array in (y, z, y):
        with pytest.raises(MXNetError, match="Custom test_fails: forward raised KeyError: 'no such key'") as caught:
            array.asnumpy()
        text = "".join(traceback.format_exception(caught.value))
        assert 'raise KeyError("no such key")' in text
        assert "test_fails was queued by" in text
        assert "# the line that queued it" in text
        assert isinstance(caught.value.__cause__, KeyError)
    assert nd.Custom(nd.array([3]), op_type="test_square").asscalar() == 9  # all else is alive


def test_an_error_of_minimx_passes_as_it_is() -> None:
    define("test_shapes", lambda op, ins, outs: put(outs[0], nd.ones((7,))))
    with pytest.raises(ShapeError, match=r"\(7,\)"):
        nd.Custom(nd.ones((2,)), op_type="test_shapes").asnumpy()


@pytest.mark.parametrize("size", [3, LARGE])
def test_a_failure_of_what_forward_queued(size: int) -> None:
    define("test_late", lambda op, ins, outs: put(outs[0], nd.random.normal(0, -1, shape=ins[0].shape)))
    y = nd.Custom(nd.ones((size,)), op_type="test_late")
    with pytest.raises(MXNetError, match="scale is -1") as caught:
        y.asnumpy()
    assert "test_late was queued by" in notes(caught.value)


def test_a_failure_in_backward() -> None:
    def backward(op: Any, out_grad: Any, in_grad: Any) -> None:
        raise ValueError("no gradient today")

    define("test_fails_back", lambda op, ins, outs: put(outs[0], ins[0]), backward)
    x, other = nd.ones((2,)), nd.ones((2,))
    x.attach_grad()
    other.attach_grad()
    with autograd.record():
        y = nd.Custom(x, op_type="test_fails_back") + other
    y.backward()
    assert other.grad.asnumpy().tolist() == [1, 1]
    with pytest.raises(MXNetError, match="Custom test_fails_back: backward raised ValueError: no gradient today") as caught:
        x.grad.asnumpy()
    assert "_backward_test_fails_back was queued by" in notes(caught.value)
    x.attach_grad()
    with autograd.record():
        y = x * 2
    y.backward()
    assert x.grad.asnumpy().tolist() == [2, 2]


def test_backward_does_not_run_after_a_failed_forward() -> None:
    calls: list[str] = []

    def forward(op: Any, in_data: Any, out_data: Any) -> None:
        raise ValueError("boom")

    define(
        "test_half", forward, lambda op, heads, grads: calls.append("backward"),
        declare_backward_dependency=lambda self, heads, ins, outs: [],
    )  # fmt: skip
    x = nd.ones((2,))
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, op_type="test_half")
    y.backward()
    with pytest.raises(MXNetError, match="boom"):
        x.grad.asnumpy()
    assert not calls


def test_a_failed_input_is_not_computed_with() -> None:
    calls: list[str] = []
    define("test_poisoned", lambda op, ins, outs: calls.append("forward"))
    bad = nd.random.normal(0, -1, shape=(2,))
    y = nd.Custom(bad, op_type="test_poisoned")
    with pytest.raises(MXNetError, match="scale is -1"):
        y.asnumpy()
    assert not calls


def test_an_executor_lives_on_after_a_failure() -> None:
    def forward(op: Any, in_data: Any, out_data: Any) -> None:
        if in_data[0].asscalar() < 0:
            raise ValueError("negative")
        put(out_data[0], in_data[0] * 2)

    define("test_negative", forward, lambda op, heads, grads: put(grads[0], 2))
    executor = sym.Custom(sym.var("x"), op_type="test_negative").simple_bind(mx.cpu(), x=(1,))
    for value in (1, -1, 3):
        executor.forward(is_train=True, x=nd.array([value]))
        executor.backward(nd.ones((1,)))
        if value < 0:
            with pytest.raises(MXNetError, match="negative"):
                executor.outputs[0].asnumpy()
        else:
            assert executor.outputs[0].asscalar() == 2 * value
            assert executor.grad_arrays[0].asscalar() == 2


WRITES = {
    "all": lambda array: put(array, 5), "a part": lambda array: array.__setitem__(0, 5), "in place": lambda array: array.__iadd__(1),
    "out": lambda array: nd.relu(array, out=array), "a view": lambda array: put(array.reshape(-1)[1:], 5),
}  # fmt: skip


@pytest.mark.parametrize("size", [3, LARGE])
@pytest.mark.parametrize("how", WRITES)
def test_inputs_are_read_only(how: str, size: int) -> None:
    define("test_writes", lambda op, ins, outs: WRITES[how](ins[0]), lambda op, heads, grads: WRITES[how](heads[0]))
    x = nd.ones((size,)) * -2
    y = nd.Custom(x, op_type="test_writes")
    with pytest.raises(ArgumentError, match="forward writes to an array that it may only read"):
        y.asnumpy()
    assert set(x.asnumpy()) == {-2}


def test_results_are_written_not_put_into_the_lists() -> None:
    """`out_data[0] = value` would leave zeros for the result."""
    x = nd.array([1, 2])
    x.attach_grad()
    define("test_puts_outputs", lambda op, ins, outs: outs.__setitem__(0, ins[0] * 2))
    with pytest.raises(
        ArgumentError, match=r"test_puts_outputs: forward puts another array into the list out_data.*out_data\[0\]\[:\] ="
    ):
        nd.Custom(x, op_type="test_puts_outputs").asnumpy()
    define("test_puts_gradients", lambda op, ins, outs: put(outs[0], 1), lambda op, heads, grads: grads.append(heads[0]))
    with autograd.record():
        y = nd.Custom(x, op_type="test_puts_gradients")
    y.backward()
    with pytest.raises(ArgumentError, match="backward puts another array into the list in_grad"):
        x.grad.asnumpy()


def test_a_later_write_through_a_kept_array_is_seen_nowhere_else() -> None:
    kept: list[Any] = []
    define("test_keeps", lambda op, ins, outs: (put(outs[0], 1), kept.append(outs[0])))
    y = nd.Custom(nd.ones((2,)), op_type="test_keeps")
    assert y.asnumpy().tolist() == [1, 1]
    kept[0][:] = 5
    assert y.asnumpy().tolist() == [1, 1]
