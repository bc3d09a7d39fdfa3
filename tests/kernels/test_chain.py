"""Chains: several kernels as one call give what they give one by one, in any number of threads, and step aside where they cannot serve."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, kernels, nd
from minimx.gluon import nn
from minimx.kernels import chain, machine, slices, steps, threads
from minimx.ops import optim_multi
from minimx.sym.codegen import Writer

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.skipif(not chain.exists(), reason="oneDNN is not installed (extra fast)")


def lenet() -> gluon.HybridBlock:
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(6, 5, activation="sigmoid"), nn.MaxPool2D(2, 2), nn.Conv2D(16, 5, activation="tanh"), nn.MaxPool2D(2, 2),
        nn.Dense(60, activation="relu"), nn.Dense(10),
    )  # fmt: skip
    net.initialize(mx.init.Xavier())
    return net


def images(count: int = 128) -> nd.NDArray:
    return nd.array(np.random.default_rng(0).standard_normal((count, 1, 28, 28), np.float32))


def gradients(net: gluon.HybridBlock, x: nd.NDArray) -> list[np.ndarray]:
    """The outputs and the gradients of all parameters."""
    with autograd.record():
        y = net(x)
    y.backward()
    learnt = [each for each in net.collect_params().values() if each.grad_req != "null"]
    return [y.asnumpy(), *(each.grad().asnumpy() for each in learnt)]


def chains(net: gluon.HybridBlock, x: nd.NDArray) -> list[chain.Chain]:
    with autograd.record():
        program = net.program(x)
    return [each for each in program.loops.values() if isinstance(each, chain.Chain)]


def compare(got: list[np.ndarray], want: list[np.ndarray]) -> None:
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, 2e-5, 2e-6 * max(1.0, float(np.abs(other).max())))


def test_a_program_is_mostly_one_call_each_way() -> None:
    net, x = lenet(), images()
    want = gradients(net, x)
    net.hybridize(static_alloc=True)
    compare(gradients(net, x), want)
    forward, *backward = chains(net, x)
    assert forward.state == "ready"
    assert forward.operators >= 7
    assert sum(each.operators for each in backward) >= 10
    with autograd.record():
        report = net.program(x).report()
    assert "ready: in one call" in report


def test_the_calls_are_written_out_below() -> None:
    net, x = lenet(), images()
    net.hybridize()
    source = "".join(net.program(x).source.split())
    assert "ifnotchain0(" in source
    assert re.search(r"conv(\d+)_fwd=convolution\(np,data,conv\1_weight,conv\1_bias,out=conv\1_fwd,?\)", source)


def one_by_one(make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """What a program gives whose chains always step aside."""
    with monkeypatch.context() as patch:
        patch.setattr(chain.Chain, "__call__", lambda self, *arrays: False)
        return make()


@pytest.mark.parametrize("number", [1, 2])
def test_it_computes_what_its_links_do_to_the_bit(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "FULL", number)
    monkeypatch.setattr(slices, "CACHE", 1 << 40)
    kernels.forget()
    net, x = lenet(), images()
    net.hybridize(static_alloc=True)
    got = gradients(net, x)
    assert not any(each.sections for each in chains(net, x))
    for one, other in zip(got, one_by_one(lambda: gradients(net, x), monkeypatch), strict=True):
        np.testing.assert_array_equal(one, other)
    kernels.forget()


def normalized() -> gluon.HybridBlock:
    """Layers with BatchNorm between them; one does not scale, and one has statistics that stay."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3, in_channels=3), nn.BatchNorm(), nn.Activation("relu"), nn.Conv2D(24, 3), nn.BatchNorm(scale=False))
    net.add(nn.Conv2D(20, 3), nn.BatchNorm(use_global_stats=True), nn.Activation("relu"), nn.GlobalAvgPool2D(), nn.Dense(5))
    net.initialize(mx.init.Xavier())
    return net


def statistics(net: gluon.HybridBlock) -> list[np.ndarray]:
    return [each.data().asnumpy() for name, each in net.collect_params().items() if "running" in name]


@pytest.mark.parametrize("number", [1, 2])
def test_batchnorm_is_a_link(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "FULL", number)
    monkeypatch.setattr("minimx.kernels.fused.SHARED", 1 << 10)
    kernels.forget()
    net, x = normalized(), nd.array(np.random.default_rng(0).standard_normal((16, 3, 20, 20), np.float32))
    want = gradients(net, x)
    before = statistics(net)
    net.hybridize(static_alloc=True)
    got = gradients(net, x)
    for one, other in zip(got, want, strict=True):  # a bias before BatchNorm has no gradient but what rounding leaves
        np.testing.assert_allclose(one, other, 2e-5, 1e-5 * max(1.0, float(np.abs(other).max())))
    assert all((one != other).any() for one, other in zip(statistics(net)[:4], before))
    moved = statistics(net)
    names = [link.kernel.op.name for each in chains(net, x) for link in each.links if isinstance(link.kernel, kernels.Faster)]
    assert (names.count("BatchNorm"), names.count("_backward_BatchNorm")) == (3, 2)
    for value, parameter in zip(before, (each for name, each in net.collect_params().items() if "running" in name)):
        parameter.set_data(nd.array(value))
    again = one_by_one(lambda: gradients(net, x), monkeypatch)
    for one, other in zip([*got, *moved], [*again, *statistics(net)], strict=True):
        np.testing.assert_array_equal(one, other)
    compare([net(x).asnumpy()], [one_by_one(lambda: net(x).asnumpy(), monkeypatch)])  # in inference nobody reads mean and scale
    kernels.forget()


def test_elements_under_no_window_get_no_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(8, 3), nn.MaxPool2D(2, 2), nn.Conv2D(8, 3))  # of 9 rows and columns, one is left over
    net.initialize(mx.init.Xavier())
    x = nd.array(np.random.default_rng(0).standard_normal((16, 3, 11, 11), np.float32))
    want = gradients(net, x)
    net.hybridize(static_alloc=True)
    nd.ones((1 << 18,)).wait_to_read()  # memory that is not 0, for the pool
    compare(gradients(net, x), want)
    assert chains(net, x)[-1].operators > 2


def test_several_threads_run_it_at_once() -> None:
    net, batches = lenet(), [images(count) for count in (128, 128, 128, 32)]
    net.hybridize(static_alloc=True)
    want = [net(x).asnumpy() for x in batches]
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for _ in range(20):
                compare([net(batches[number]).asnumpy()], [want[number]])
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(len(batches))]
    for each in workers:
        each.start()
    for each in workers:
        each.join(60)
    assert not failures


def test_code_for_other_numbers_of_threads_is_made_by_two_at_once() -> None:
    """Several runs of one program begin together, so that two threads make what neither has found; both go on with the same."""
    for size in range(12):
        net = nn.HybridSequential()
        for _ in range(4):
            net.add(nn.Conv2D(16, 3, padding=1, in_channels=16, activation="relu"))
        net.initialize()
        x = nd.ones((3 + size, 16, 20 + size % 7, 28))
        want = net(x).asnumpy()
        net.hybridize()
        net(x).wait_to_read()
        outputs: list[Any] = []
        workers = [threading.Thread(target=lambda: outputs.extend(net(x) for _ in range(4))) for _ in range(3)]  # noqa: B023  # joined here
        for each in workers:
            each.start()
        for each in workers:
            each.join(60)
        compare([each.asnumpy() for each in outputs], [want] * 12)


def test_kernels_turned_off_turn_it_off() -> None:
    net, x = lenet(), images()
    net.hybridize()
    want = net(x).asnumpy()
    [found] = chains(net, x)[:1]
    before = kernels.set("numpy")
    try:
        assert not found(*[None] * found.count)  # type: ignore[list-item]  # it looks at none
        compare([net(x).asnumpy()], [want])
    finally:
        kernels.set(before)


def test_an_input_with_gaps_is_computed_one_by_one() -> None:
    net, x = lenet(), images()
    net.hybridize(static_alloc=True)
    want = net(x).asnumpy()
    part = net.program(x).forward
    wide = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), np.float32)
    wide[..., ::2] = x.asnumpy()
    names = [node.name for node in part.graph.variables]
    given = {name: each.data().asnumpy() for name, each in net.collect_params().items()}
    arrays = [wide[..., ::2] if name == "data" else next(v for k, v in given.items() if k.endswith(name)) for name in names]
    compare([part.kernel(np, *arrays)[0]], [want])


def test_a_profiled_program_shows_every_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the profiler writes profile.json there
    assert Writer.chains
    net, x = lenet(), images()
    net.hybridize()
    net(x).wait_to_read()
    mx.profiler.set_config(profile_all=True, aggregate_stats=True)
    mx.profiler.set_state("run")
    net(x).wait_to_read()
    mx.profiler.set_state("stop")
    table = mx.profiler.dumps(reset=True)
    assert all(name in table for name in ("Convolution", "Pooling", "FullyConnected"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_computes_the_same() -> None:
    net, x = lenet(), images()
    net.hybridize(static_alloc=True)
    want = net(x).asnumpy()
    child = os.fork()
    if not child:
        same = np.allclose(net(x).asnumpy(), want, 1e-5, 1e-5)
        os._exit(0 if same else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_primitive_that_fails_is_an_error() -> None:
    net, x = lenet(), images()
    net.hybridize(static_alloc=True)
    net(x).wait_to_read()
    found = next(each for each in net.program(x).loops.values() if isinstance(each, chain.Chain))
    [frames] = found.frames.values()
    rows = frames[0].alive[-2]  # the list of calls
    execute = frames[0].lib.addresses["dnnl_primitive_execute"]
    first = int(np.flatnonzero(rows[:, 0] == execute)[0])
    rows[first, 1] = 0  # no primitive
    with pytest.raises(mx.MXNetError, match="primitive_execute failed with status"):
        net(x).wait_to_read()


# ---- steps of an optimizer


def updates(together: bool, monkeypatch: pytest.MonkeyPatch, name: str, size: int) -> list[np.ndarray]:
    """Weights after three steps."""
    with monkeypatch.context() as patch:
        if not together:
            patch.setattr("minimx.ops.optim_multi.joining", [])
        random = np.random.default_rng(0)
        weights = [nd.array(random.standard_normal(shape, np.float32)) for shape in ((size, 5), (3,), (1,), (7, size))]
        optimizer = mx.optimizer.create(name, learning_rate=0.1)
        numbers = list(range(len(weights)))
        states = [optimizer.create_state(number, weight) for number, weight in zip(numbers, weights)]
        for _ in range(3):
            optimizer.update(numbers, weights, [weight * 0.3 for weight in weights], states)
        return [weight.asnumpy() for weight in weights]


@pytest.mark.parametrize("name", ["sgd", "nag", "adam", "rmsprop", "adagrad", "ftrl"])
@pytest.mark.parametrize("size", [4, 60_000])
def test_steps_of_several_weights_in_one_call(name: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[bool] = []

    def watched(*arguments: Any) -> bool:
        made.append(steps.together(*arguments))
        return made[-1]

    machine.wait(chain.player())
    updates(True, monkeypatch, name, size)  # the loops are compiled by now, or while we wait
    for code in list(machine._codes.values()):
        machine.wait(code)
    monkeypatch.setattr("minimx.ops.optim_multi.joining", [watched])
    got = updates(True, monkeypatch, name, size)
    assert made == [True] * 3 or name in ("rmsprop", "adagrad", "ftrl", "nag")
    for one, other in zip(got, updates(False, monkeypatch, name, size), strict=True):
        np.testing.assert_array_equal(one, other)


def test_weights_that_overlap_are_updated_one_by_one() -> None:
    memory = np.arange(10, dtype=np.float32)
    operator = mx.optimizer.create("sgd", learning_rate=0.1)._operator(None, 0.1, 0.0, 1)
    assert not steps.together(optim_multi.Steps((operator,)), [memory[:6], memory[3:9]])
    assert memory.tolist() == list(range(10))


@pytest.mark.parametrize("name", ["sgd", "adam"])
@pytest.mark.parametrize(("gradients", "copies"), [(2, 1), (3, 2), (1, 2), (2, 0)])
def test_gradients_are_added_and_weights_copied_in_the_same_loop(name: str, gradients: int, copies: int) -> None:
    random = np.random.default_rng(0)
    optimizer = mx.optimizer.create(name, learning_rate=0.1, wd=0.01)
    operators, data = [], []
    for shape in ((70, 5), (3,), (1,)):
        weight = nd.array(random.standard_normal(shape))
        state = optimizer.create_state(0, weight)
        held = [each for each in (state if isinstance(state, tuple) else (state,)) if each is not None]
        operators.append(optimizer._operator(state, 0.1, 0.01, 1))
        data += [weight, *(nd.array(random.standard_normal(shape)) for _ in range(gradients)), *held]
    op = optim_multi.Steps(tuple(operators), gradients, copies)
    given = [array.asnumpy() for array in data]
    machine.wait(chain.player())
    op.kernel(np, *[array.copy() for array in given])  # compiles
    for code in list(machine._codes.values()):
        machine.wait(code)
    made: list[bool] = []

    def watched(*arguments: Any) -> bool:
        made.append(steps.together(*arguments))
        return made[-1]

    found = []
    for joining in ([watched], []):
        arrays = [array.copy() for array in given]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(optim_multi, "joining", joining)
            found.append([*arrays, *op.kernel(np, *arrays)])
        for number, (_, (weight, *_)) in enumerate(op.each(arrays)):
            for copy in found[-1][len(given) :][number * copies : (number + 1) * copies]:
                np.testing.assert_array_equal(copy, weight)
    assert made == [True]
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_copies_of_a_weight_that_comes_twice_are_those_after_both_steps() -> None:
    memory, gradient = np.ones(5, np.float32), np.ones(5, np.float32)
    step = mx.optimizer.create("sgd", learning_rate=1.0)._operator(None, 1.0, 0.0, 1)
    for _ in range(3):  # compiled or not
        memory[:] = 1
        copies = optim_multi.Steps((step, step), 1, 1).kernel(np, memory, gradient, memory, gradient)
        assert [each.tolist() for each in (memory, *copies)] == [[-1] * 5] * 3
        for code in list(machine._codes.values()):
            machine.wait(code)
