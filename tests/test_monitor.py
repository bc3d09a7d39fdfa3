"""`mx.mon.Monitor`: which values it sees, in which batches, of executors and of blocks."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, nd, sym
from minimx.base import ArgumentError


def network() -> Any:
    x = sym.FullyConnected(sym.var("data"), num_hidden=2, name="fc_0")
    x = sym.Activation(x, act_type="sigmoid", name="act_0")
    x = sym.FullyConnected(x, num_hidden=2, name="fc_1")
    x = sym.Activation(x, act_type="sigmoid", name="act_1")
    return sym.LinearRegressionOutput(x, grad_scale=2, name="softmax")


def bound(monitor: Any) -> Any:
    executor = network().simple_bind(
        mx.cpu(), data=(1, 2), grad_req={"fc_0_weight": "write", "fc_1_weight": "write", "fc_1_bias": "write"}
    )
    for name, value in {
        "data": [[0.05, 0.10]], "softmax_label": [[0.01, 0.99]], "fc_0_weight": [[0.15, 0.20], [0.25, 0.30]], "fc_0_bias": [0.35, 0.35],
        "fc_1_weight": [[0.40, 0.45], [0.50, 0.55]], "fc_1_bias": [0.60, 0.60],
    }.items():  # fmt: skip
        executor.arg_dict[name][:] = np.array(value)
    monitor.install(executor)
    return executor


def test_values_and_gradients_are_those_of_mxnet() -> None:
    """Recorded from MXNet 1.9.1, but for gradients that nobody wants, which it does not initialize."""
    monitor = mx.mon.Monitor(1, sort=True)
    executor = bound(monitor)
    monitor.tic()
    executor.forward(is_train=True)
    executor.backward()
    found = monitor.toc()
    assert {step for step, _, _ in found} == {1}
    numbers = {name: float(text) for _, name, text in found}
    wanted = {
        "act_0_backward_output": 0.0093814675, "act_0_output": 0.5950799, "act_1_backward_output": 0.101570964, "act_1_output": 0.76222306,
        "data": 0.07905695, "fc_0_backward_output0": 0, "fc_0_backward_output1": 0.00074167014, "fc_0_backward_output2": 0,
        "fc_0_bias": 0.35, "fc_0_output": 0.38507304, "fc_0_weight": 0.23184046, "fc_1_backward_output0": 0.03894129,
        "fc_1_backward_output1": 0.060442846, "fc_1_backward_output2": 0.101570964, "fc_1_bias": 0.6, "fc_1_output": 1.166932,
        "fc_1_weight": 0.47827816, "softmax_backward_output0": 0.5462336, "softmax_backward_output1": 0, "softmax_label": 0.70007145,
        "softmax_output": 0.76222306,
    }  # fmt: skip
    assert list(numbers) == sorted(wanted)
    for name, value in wanted.items():
        assert numbers[name] == pytest.approx(value, rel=1e-5), name


def test_watching_changes_no_gradient() -> None:
    watched, plain = bound(mx.mon.Monitor(1)), bound(mx.mon.Monitor(1))
    plain.set_monitor_callback(None)
    for executor in (watched, plain):
        for _ in range(2):
            executor.forward(is_train=True)
            executor.backward()
    for one, other in zip(watched.grad_arrays, plain.grad_arrays):
        if one is not None:
            np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=1e-6)


def test_one_batch_in_so_many_and_only_some_names(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    monitor = mx.mon.Monitor(2, stat_func=lambda x: [x.max(), x], pattern="act_0")
    executor = bound(monitor)
    seen = []
    for _ in range(4):
        monitor.tic()
        executor.forward()
        seen.append(len(monitor.toc()))
    assert seen == [1, 0, 1, 0]
    executor.forward()
    assert monitor.queue == []  # outside of tic and toc nothing is collected
    monitor.tic()
    executor.forward()
    monitor.toc_print()
    assert caplog.records[0].getMessage().startswith("Batch:       5 act_0_output                   0.5")


def test_inputs_of_operators_too() -> None:
    monitor = mx.mon.Monitor(1, monitor_all=True, pattern="fc_1_")
    executor = bound(monitor)
    monitor.tic()
    executor.forward()
    names = [name for _, name, _ in monitor.toc()]
    assert names[:6] == ["fc_1_data", "fc_1_weight", "fc_1_weight", "fc_1_bias", "fc_1_bias", "fc_1_output"]


def test_a_hybridized_block() -> None:
    block = gluon.nn.HybridSequential(prefix="net_")
    with block.name_scope():
        block.add(gluon.nn.Dense(3, activation="relu"), gluon.nn.Dense(2))
    block.initialize(mx.init.One())
    block.hybridize()
    block(nd.ones((1, 2)))
    monitor = mx.mon.Monitor(1, stat_func=lambda x: x.max())
    monitor.install(block)
    monitor.tic()
    with autograd.record():
        block(nd.ones((1, 2)))
    found = {name: float(text) for _, name, text in monitor.toc()}
    assert found["net_dense0_fwd_output"] == 2
    assert found["net_dense1_fwd_output"] == 6
    assert found["net_dense1_weight"] == 1


def test_wrong_uses() -> None:
    with pytest.raises(ArgumentError, match="interval is 0, wants 1 or more"):
        mx.mon.Monitor(0)
    with pytest.raises(ArgumentError, match="an Executor or a HybridBlock is wanted, got an NDArray"):
        mx.mon.Monitor(1).install(nd.ones((1,)))
    monitor = mx.mon.Monitor(1, stat_func=lambda x: 3)
    executor = bound(monitor)
    monitor.tic()
    executor.forward()
    with pytest.raises(ArgumentError, match="stat_func must give an NDArray"):
        monitor.toc()
