"""Programs by themselves: their source, their report, what they are made for, and what becomes of errors in them."""

from __future__ import annotations

import gc
import linecache
import re
import threading
import traceback
import weakref
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, engine, gluon, kernels, nd, storage, sym
from minimx.base import ArgumentError, MXNetError
from minimx.engine.execute import GROUPED
from minimx.gluon import nn
from minimx.sym import Symbol, compiled, names
from minimx.sym.program import KEPT, Program

from ..engine.helpers import notes

x, y = sym.var("x"), sym.var("y")


def programs(cached: Any) -> list[Program]:
    return [each for each in cached.graph.programs.values() if each is not None]


def only(cached: Any) -> Program:
    [program] = programs(cached)
    return program


def small_net() -> nn.HybridSequential:
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(4, activation="tanh", in_units=3), nn.Dropout(0.5), nn.Dense(2, in_units=4))
    net.initialize("ones")
    net.hybridize()
    return net


def without_shapes(source: str) -> list[str]:
    """Lines without the comments behind them."""
    return [re.sub(r"  # .*", "", line) for line in source.splitlines()]


# ---- what can be read


def test_the_source_of_a_small_network() -> None:
    assert (
        small_net().program(nd.ones((2, 3))).source
        == """\
def net(
    memory, keys, data, net_dense0_weight, net_dense0_bias, net_dense1_weight,
    net_dense1_bias,
):
    [m0] = memory  # 32 bytes, kept from run to run
    net_dense0_fwd = data.dot(net_dense0_weight.T, out=m0)  # (2, 4)
    net_dense0_fwd += net_dense0_bias[None]  # (2, 4)
    net_dense0_tanh_fwd = np.tanh(net_dense0_fwd, out=net_dense0_fwd)  # (2, 4)
    net_dense1_fwd = net_dense0_tanh_fwd.dot(net_dense1_weight.T)  # (2, 2)
    net_dense1_fwd += net_dense1_bias[None]  # (2, 2)
    return [net_dense1_fwd]
"""
    )


def test_the_source_with_gradients() -> None:
    """Inside record() there is a second function, which takes gradients of the outputs and what the first one hands over."""
    net = small_net()
    assert "net_backward" not in net.program(nd.ones((2, 3))).source
    with autograd.record():
        source = " ".join(net.program(nd.ones((2, 3))).source.split())  # however it is wrapped
    assert "# dropout is the kernel of Dropout()" in source
    assert "net_dropout0_fwd, net_dropout0_fwd_1 = dropout( np, net_dense0_tanh_fwd, key=keys[0], )" in source
    assert "return [net_dense1_fwd, net_dropout0_fwd, net_dropout0_fwd_1, net_dense0_tanh_fwd]" in source
    assert "def net_backward( memory, keys, net_dense1_fwd_head_grad, net_dense1_weight, net_dropout0_fwd_output," in source
    assert "return [ net_dense0_fwd_grad_dot, net_dense0_fwd_grad_sum, net_dense1_fwd_grad_dot" in source


def test_the_source_of_a_group() -> None:
    before = kernels.set("numpy")
    try:
        cached = nd.CachedOp(sym.tanh(x * 2) + x, name="chain")
        cached(nd.ones((GROUPED,)))
    finally:
        kernels.set(before)
    lines = without_shapes(only(cached).source)
    assert "def chain(memory, keys, x):" in lines
    assert "    def group0(tiles):" in lines
    assert f"    share_out(tiles_of_{GROUPED}, group0)" in lines
    assert sum("t0[: high - low]" in line for line in lines) == 2  # the scratch tile serves twice, and then the output


def test_the_source_of_a_group_that_is_a_loop() -> None:
    pytest.importorskip("llvmlite")
    cached = nd.CachedOp(sym.elemwise_add(sym.tanh(x * 2, name="tanh0"), x, name="sum"), name="chain")
    cached(nd.ones((GROUPED,)))
    program = only(cached)
    lines = [re.sub(r"_mulscalar\d+", "_mulscalar0", line) for line in without_shapes(program.source)]
    at = lines.index("    if not loop0(x, sum_1):")
    assert lines[at + 1 : at + 4] == [
        "        _mulscalar0 = np.multiply(x, 2.0)", "        tanh0 = np.tanh(_mulscalar0)", "        sum_1 = np.add(tanh0, x, out=sum_1)",
    ]  # fmt: skip
    assert "# loop0 is a loop in machine code: mul_scalar, tanh, elemwise_add" in program.source
    assert "float x2 = tanh(x1);" in program.loops["chain loop0"].source
    assert program.report().splitlines()[-1].startswith("chain loop0")


def test_a_small_group_is_a_loop_whose_operands_broadcast() -> None:
    pytest.importorskip("llvmlite")
    cached = nd.CachedOp(sym.broadcast_mul(sym.exp(sym.broadcast_add(x, y)), y), name="rows")
    given = nd.array(np.linspace(-1, 1, 200 * 50).reshape(200, 50)), nd.array(np.linspace(1, 2, 50).reshape(1, 50))
    got = cached(*given).asnumpy()
    program = only(cached)
    assert "np.exp" in program.source  # what NumPy does while there is no loop
    assert list(program.loops) == ["rows loop0"]
    before = kernels.set("numpy")
    try:
        np.testing.assert_allclose(cached(*given).asnumpy(), got, 1e-6)
    finally:
        kernels.set(before)
    np.testing.assert_array_equal(cached(*given).asnumpy(), got)


def test_a_group_without_a_loop() -> None:
    """Compiling is off, a function is not among those of loops, or a dtype is not."""
    cached = nd.CachedOp(sym.tanh(x * 2) + x, name="chain")
    before = kernels.set("numpy")
    try:
        cached(nd.ones((GROUPED,)))
    finally:
        kernels.set(before)
    assert not only(cached).loops
    assert "    def group0(tiles):" in without_shapes(only(cached).source)
    for net, dtype in (
        (sym.arcsinh(x) * 2, "float32"),
        (x * 2 + 1, "float16"),
        (sym.exp(x) * 2, "float64"),
        (x * 2 + 1, "int32"),
    ):
        cached = nd.CachedOp(net)
        cached(nd.ones((GROUPED,), dtype=dtype))
        assert not only(cached).loops


def test_the_report() -> None:
    with autograd.record():
        rows = [line.split() for line in small_net().program(nd.ones((2, 3))).report().splitlines()]
    assert [row[0] for row in rows] == [
        "pass", "specialize", "differentiate", "batchnorm", "folding", "subexpressions", "deadcode", "layout", "forward:", "forward:",
        "backward:", "backward:",
    ]  # fmt: skip
    assert rows[1][1:] == ["4", "144"]  # operators, bytes: four of 2 x 4 (dropout has a mask), and one of 2 x 2
    plain = small_net().program(nd.ones((2, 3)))
    assert "1 without effect" in plain.report()  # dropout
    assert [stage.nodes for stage in plain.stages] == [4, 4, 3, 3, 3, 3, 3, 3]


def test_repr() -> None:
    program = small_net().program(nd.ones((2, 3)))
    assert repr(program) == "<program net(float32[2, 3], float32[4, 3], float32[4], float32[2, 4], float32[2]) on cpu(0)>"
    assert repr(program.forward) == "<program net>"


# ---- names


@pytest.mark.parametrize(
    "names",
    [
        ["class", "None", "lambda", "v_class"],
        ["np", "memory", "keys", "empty", "take", "share_out", "low", "inf", "nan"],
        ["print", "len", "range", "float"],
        ["same", "same", "same_1", "same"],
        ["x y", "x.y", "x-y", "x_y"],
        ["1st", "", "_", "__"],
        ["m0", "t0", "group0", "tiles_of_2", "program", "c2", "c2_1"],
        ["数据", "标签", "weight_\u03b1"],
        ["ﬁ", "fi", "ｃlass", "x²", "·", "a\u0301", "\u00e1"],  # Python reads some of these as others, and takes some for no letters
        ["line\nbreak", "tab\t", 'quote"', "back\\slash", "# comment"],
    ],
)  # fmt: skip
def test_names_that_clash_or_are_no_identifiers(names: list[str]) -> None:
    variables = [sym.var(name) for name in names]
    graph = sym.tanh(variables[0] * 2)
    for variable in variables[1:]:
        graph = sym.elemwise_add(graph, variable * 2, name=variable.name)
    cached = nd.CachedOp(graph, name=names[0])
    found = cached(*[nd.full((2,), number) for number in range(len(names))])
    assert found.asnumpy().tolist() == [2 * sum(range(len(names)))] * 2


def test_attributes_stay_in_their_comment() -> None:
    """A file may hold any text as an attribute; it must not become code."""
    graph = sym.contrib.SyncBatchNorm(x, key="a\nraise SystemExit\n\0\r#", ndev=1, name="norm")
    cached = nd.CachedOp(sym.load_json(graph.tojson()))
    cached(nd.ones((2, 3)), *[nd.ones((3,))] * 4).wait_to_read()
    assert r"(key=a\nraise SystemExit\n\x00\r#)" in only(cached).source.splitlines()[0]


def test_numbers_are_told_apart() -> None:
    """Whatever they are called: 1.05 and 105, 0 and -0, the largest and what lies beyond."""
    values = [1.05, 15, 105, 1.5e1, 1e-3, 1e3, 0.0, -0.0, 1e300, float("inf"), -1.5, 0.1, 0.10000001]
    cached = nd.CachedOp(sym.Group([1 / (x * value) if value == 0 else x + value for value in values]))
    for dtype in ("float32", "float64"):
        outputs = cached(nd.ones((2,), dtype=dtype))
        for output, value in zip(outputs, values):
            with np.errstate(all="ignore"):
                one, number = np.ones((), dtype), np.asarray(value).astype(dtype)
                assert output.asnumpy()[0] == (1 / (one * number) if value == 0 else one + number)


# ---- what goes in and comes out


def test_many_inputs() -> None:
    variables = [sym.var(f"input_{number}") for number in range(300)]
    cached = nd.CachedOp(sym.add_n(*variables))
    assert cached(*[nd.full((2,), number) for number in range(300)]).asnumpy().tolist() == [sum(range(300))] * 2
    arguments = only(cached).source.split("):")[0].splitlines()
    assert len(arguments) > 30
    assert max(map(len, arguments)) < 120


def test_no_inputs() -> None:
    cached = nd.CachedOp(sym.zeros((2, 3)) + 1, name="ones")
    first = cached()
    assert "computed beforehand" in only(cached).source
    first[:] = 5  # not the constant itself
    assert cached().asnumpy().tolist() == [[1, 1, 1]] * 2
    assert nd.CachedOp(sym.random.normal(shape=(4,)))().shape == (4,)
    assert nd.CachedOp(sym.zeros((2,)))(default_ctx=mx.cpu(1)).context == mx.cpu(1)


def test_arrays_without_elements() -> None:
    cached = nd.CachedOp(sym.Group([sym.exp(x) + 1, sym.FullyConnected(x, y, num_hidden=2, no_bias=True)]))
    data, weight = nd.zeros((2, 3))[0:0], nd.ones((2, 3))
    data.attach_grad()
    weight.attach_grad()
    with autograd.record():
        outputs = cached(data, weight)
    assert [output.shape for output in outputs] == [(0, 3), (0, 2)]
    autograd.backward(outputs)
    assert data.grad.shape == (0, 3)
    assert weight.grad.asnumpy().tolist() == [[0, 0, 0]] * 2


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_floating_dtypes(dtype: str) -> None:
    cached = nd.CachedOp(sym.sqrt(sym.FullyConnected(x, y, num_hidden=2, no_bias=True)) * 0.1 + (x > 1))
    found = cached(nd.array([[1, 8], [4, 5]], dtype=dtype), nd.ones((2, 2), dtype=dtype))
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_allclose(found.asnumpy(), np.array([[0.3, 1.3], [1.3, 1.3]]), 1e-3)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_whole_numbers(dtype: str) -> None:
    cached = nd.CachedOp(sym.elemwise_add(x * 3, sym.cast(y, dtype)) - 1)
    found = cached(nd.array([100, 2], dtype=dtype), nd.array([7.5, 2.9]))
    assert found.dtype == np.dtype(dtype)
    with np.errstate(over="ignore"):
        want = np.array([100, 2], dtype) * np.array(3, dtype) + np.array([7, 2], dtype) - np.array(1, dtype)
    np.testing.assert_array_equal(found.asnumpy(), want)


def test_an_array_of_another_device_is_refused() -> None:
    with mx.device.simulate_gpus(1), pytest.raises(MXNetError, match=r"sum_of: y is on gpu\(0\), the others on cpu\(0\)"):
        nd.CachedOp(x + y, name="sum_of")(nd.ones((2,)), nd.ones((2,), ctx=mx.gpu(0)))


# ---- errors


def failing() -> Any:
    """A graph with two outputs, of which one fails in training."""
    return nd.CachedOp(sym.Group([sym.exp(x), sym.Dropout(x, p=1, name="drop_all")]), name="breaks")


@pytest.mark.parametrize("size", [2, 300_000])
def test_a_failure_is_that_of_all_outputs_and_of_nothing_else(size: int) -> None:
    cached, data = failing(), nd.ones((size,))
    with autograd.train_mode():
        outputs = cached(data)
    later = outputs[0] + 1
    for each in (*outputs, later):
        with pytest.raises(MXNetError, match="Dropout: p=1 drops everything") as caught:
            each.asnumpy()
        assert re.search("breaks was queued by .*test_program.py, line", notes(caught.value))
    assert data.asnumpy()[0] == 1
    assert cached(data)[1].asnumpy()[0] == 1  # inference
    with autograd.train_mode(), pytest.raises(MXNetError, match="drops everything"), engine.naive():
        cached(data)
    outputs[0][:] = 3  # overwriting ends the failure
    assert outputs[0].asnumpy()[0] == 3


def test_a_traceback_shows_the_line_of_the_program() -> None:
    cached = failing()
    with pytest.raises(MXNetError) as caught, autograd.train_mode(), engine.naive():
        cached(nd.ones((2,)))
    shown = "".join(traceback.format_exception(caught.value))
    assert re.search(
        r'File "<minimx program breaks \d+>", line \d+, in breaks\n    drop_all, _ = dropout\(np, x, key=keys\[0\]\)', shown
    )


def test_a_failed_run_leaves_the_program_usable() -> None:
    """Its arena may be in any state, and the next run takes one all the same."""
    cached = nd.CachedOp(sym.dot(sym.dot(x, x), sym.Dropout(x, p=1)), {"static_alloc": True})
    data = nd.array([[1, 2], [3, 4]])
    for _ in range(3):
        with autograd.train_mode(), pytest.raises(MXNetError):
            cached(data).asnumpy()
        assert cached(data).asnumpy().tolist() == [[37, 54], [81, 118]]


def test_a_misfit_is_an_error_of_the_call() -> None:
    cached = nd.CachedOp(sym.dot(x, y, name="product"))
    for _ in range(2):
        with pytest.raises(MXNetError, match="Error in operator product: dot"):
            cached(nd.ones((2, 3)), nd.ones((2, 3)))
    assert cached(nd.ones((2, 3)), nd.ones((3, 2))).shape == (2, 2)


def test_what_has_no_gradient_still_runs_forward() -> None:
    """That is an error of those who ask for the gradient, and so in MXNet."""
    cached = nd.CachedOp(sym.op.signsgd_update(x, y, lr=1.0, name="update"))
    data = nd.ones((2,))
    data.attach_grad()
    with autograd.record():
        found = cached(data, nd.ones((2,)))
    assert found.asnumpy().tolist() == [0, 0]
    with pytest.raises(MXNetError, match="signsgd_update has no gradient"):
        found.backward()


# ---- gradients of gradients


def first_gradients(call: Any, data: Any, train_mode: bool = True) -> list[np.ndarray]:
    """Output, and gradient of its sum of squares, which is recorded itself."""
    mx.random.seed(4)
    data.attach_grad()
    with autograd.record(train_mode=train_mode):
        output = call(data)
        (gradient,) = autograd.grad((output * output).sum(), [data], create_graph=True)
    return [output.asnumpy(), gradient.asnumpy()]


@pytest.mark.parametrize("train_mode", [True, False])
@pytest.mark.parametrize("has_gradient", [True, False])
def test_recorded_gradients_draw_the_numbers_of_the_forward_pass(train_mode: bool, has_gradient: bool) -> None:
    """Those of the operators that they need, in the mode of that pass; also where they have no gradient, and so no program."""

    def graph(data: Any) -> Any:
        F = sym if isinstance(data, Symbol) else nd
        noise = F.BlockGrad(F.Dropout(data, p=0.5)) + F.Dropout(F.Dropout(data, p=0.2) * 2, p=0.5)
        return noise if has_gradient else F.ctc_loss(noise, F.zeros((2, 1)))

    data = nd.random.normal(shape=(3, 2, 4))
    for one, other in zip(first_gradients(nd.CachedOp(graph(x)), data, train_mode), first_gradients(graph, data, train_mode)):
        np.testing.assert_allclose(one, other, 1e-5, 1e-6)


def test_recorded_gradients_are_compiled_once() -> None:
    cached, data = nd.CachedOp(sym.tanh(x) * x), nd.ones((2,))
    for _ in range(2):
        first_gradients(cached, data)
    [program] = [each for each in programs(cached) if each.gradients is not None]
    assert len(program.again.programs) == 1


# ---- how many there are, and when


def test_a_program_for_each_shape_dtype_mode_and_device() -> None:
    cached = nd.CachedOp(sym.Dropout(x, p=0.5) * 2)
    for data in (nd.ones((2,)), nd.ones((2,)), nd.ones((3,)), nd.ones((2,), dtype="float64"), nd.ones((2,), ctx=mx.cpu(1))):
        cached(data)
    assert len(programs(cached)) == 4
    with autograd.train_mode():
        cached(nd.ones((2,)))
    assert len(programs(cached)) == 5
    data = nd.ones((2,))
    with autograd.record():
        cached(data)
    assert len(programs(cached)) == 5  # nothing asks for gradients
    data.attach_grad()
    with autograd.record():
        cached(data)
    assert [program.gradients is not None for program in programs(cached)] == [False] * 5 + [True]


def test_the_oldest_programs_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "MOST_PROGRAMS", 3)
    cached = nd.CachedOp(x + 1)
    for length in range(1, 6):
        cached(nd.ones((length,)))
    assert [program.given[0].shape for program in programs(cached)] == [(3,), (4,), (5,)]
    assert cached(nd.ones((1,))).asscalar() == 2


def test_a_program_that_is_dropped_leaves_nothing_behind() -> None:
    def sources() -> int:
        return sum("fleeting" in file for file in linecache.cache)

    cached = nd.CachedOp(sym.dot(x, x) + 1, name="fleeting")
    cached(nd.ones((2, 2)))
    assert sources() == 1
    program = weakref.ref(only(cached))
    cached.graph.programs.clear()
    gc.collect()
    assert program() is None
    assert sources() == 0


def test_first_calls_of_several_threads() -> None:
    cached = nd.CachedOp(sym.dot(sym.tanh(sym.dot(x, x)), x) + 1)
    data = nd.array([[1, 2], [3, 4]]) * 0.1
    start = threading.Barrier(6)
    found: list[Any] = []

    def call() -> None:
        start.wait(10)
        found.append(cached(data).asnumpy())

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(found) == 6
    assert len(programs(cached)) == 1
    for each in found:
        np.testing.assert_array_equal(each, found[0])


def test_where_a_program_can_be_had() -> None:
    net, data = small_net(), nd.ones((2, 3))
    program = net.program(data)
    net(data)
    assert net.program(data) is program  # the one that runs
    with autograd.record():
        assert net.program(data).gradients is not None
        assert net.program(data) is not program
    net.hybridize(False)
    assert net.program(data).source == program.source  # what it would be as a graph
    with pytest.raises(MXNetError, match="there must be one NDArray"):
        net.program(3)
    picks = nn.HybridLambda(lambda F, x: F.contrib.boolean_mask(x, x.sum(axis=1)))
    with pytest.raises(MXNetError, match="it has no program"):
        picks.program(nd.ones((2, 2)))


def test_the_program_of_an_executor() -> None:
    bound = (sym.Dropout(x, p=0.5, name="drop") * y).simple_bind(
        mx.cpu(), x=(2, 3), y=(2, 3), grad_req={"x": "write", "y": "null"}
    )
    assert "dropout" not in bound.program.source
    assert bound.program.gradients is None
    bound.forward(is_train=True)
    assert "dropout(np, x, key=keys[0])" in bound.program.source
    gradients = bound.program.gradients
    assert gradients is not None
    (step,) = gradients.steps
    assert [spec.shape for spec in step.part.specs] == [(2, 3)]  # of x alone
    picks = sym.contrib.boolean_mask(x, y).bind(mx.cpu(), {"x": nd.ones((2, 3)), "y": nd.ones((2,))})
    with pytest.raises(MXNetError, match="it has no program"):
        _ = picks.program


# ---- memory and devices


def chain_of_products(count: int) -> Symbol:
    graph = x
    for _ in range(count):
        graph = sym.dot(graph, x)
    return graph


def test_the_arena_does_not_grow_with_the_length_of_a_chain() -> None:
    arenas = []
    for count in (4, 40):
        cached = nd.CachedOp(chain_of_products(count))
        cached(nd.ones((16, 16)))
        arenas.append(only(cached).forward.arena)
    assert arenas == [2 * 16 * 16 * 4] * 2


def test_a_large_arena_is_kept_if_memory_is_static() -> None:
    side = int((KEPT / 4) ** 0.5) + 1
    for static in (False, True):
        cached = nd.CachedOp(chain_of_products(2), {"static_alloc": static})
        before = storage.stats()["live"]
        data = nd.zeros((side, side))
        cached(data).wait_to_read()
        assert len(only(cached).forward.idle) == static
        del data
        assert (storage.stats()["live"] - before >= KEPT) == static


def test_on_a_gpu() -> None:
    """A simulated one: memory is that of the device, also of what kernels make for themselves, and its bound holds."""
    large = 200_000 * 4
    cached = nd.CachedOp(sym.sort(sym.exp(x) * 2) + x)
    with mx.device.simulate_gpus(1, memory=20 * large):
        data = nd.ones((200_000,), ctx=mx.gpu(0))
        found = cached(data)
        assert found.context == mx.gpu(0)
        np.testing.assert_allclose(found.asnumpy()[:2], 2 * np.e + 1, 1e-6)
        assert repr(only(cached)).endswith("on gpu(0)>")
        live = storage.stats(mx.gpu(0))["live"]
        assert 2 * large <= live <= 6 * large
    with mx.device.simulate_gpus(1, memory=3 * large):
        data = nd.ones((200_000,), ctx=mx.gpu(0))
        cached = nd.CachedOp(sym.Group([sym.exp(x), sym.tanh(x), sym.sin(x)]))
        with pytest.raises(mx.base.OutOfMemoryError):
            cached(data)[0].asnumpy()


@pytest.mark.parametrize("size", [4, 1 << 19])
@pytest.mark.parametrize(
    "name", ["relu", "relu_1", "np", "tiles", "memory", "group0", "activation", "float32_524288", "tiles_of_524288"]
)
def test_a_node_may_be_called_like_a_kernel_or_like_the_program(name: str, size: int) -> None:
    x = sym.var("x")
    net = sym.relu(sym.Activation(x, act_type="softrelu", name="softrelu"), name=name)
    for data in (nd.ones((size,)), -nd.ones((size,))):
        np.testing.assert_allclose(net.eval(x=data)[0].asnumpy(), np.log1p(np.exp(data.asnumpy())), 1e-6)


def test_a_dropped_program_is_gone_at_once() -> None:
    cached = nd.CachedOp(sym.relu(x * 2 + 1))
    cached(nd.ones((3,)))
    function = weakref.ref(only(cached).forward.function)
    gc.disable()
    try:
        cached.graph.programs.clear()
        assert function() is None  # with its constants, and the arena
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("line", "want"),
    [
        ("    x = y  # " + "(1, 2), " * 20, 1),  # a comment stays whole
        ("    def group1(tiles):  # " + "tanh, " * 30, 1),
        ("    return [" + ", ".join(f"value_{i}" for i in range(20)) + "]", 5),
        ("    x = f(np, g(" + ", ".join(f"v{i}" for i in range(40)) + "), out=z)  # (2, 3)", 4),
    ],
)
def test_long_lines_are_wrapped_at_their_own_brackets(line: str, want: int) -> None:
    lines = names.wrapped(line)
    assert "".join(each.strip() for each in lines).replace(",", "").replace(" ", "") == line.replace(",", "").replace(" ", "")
    assert (len(lines) == 1) == (want == 1)


@pytest.mark.parametrize("name", ["c2", "float32_524288", "tiles_of_524288", "plus"])
@pytest.mark.parametrize("size", [4, 1 << 19])
def test_a_program_or_its_input_may_be_called_like_a_number_or_a_spec(name: str, size: int) -> None:
    for net in (nd.CachedOp(x + 2, name=name), nd.CachedOp(sym.var(name) + 2)):
        assert (net(nd.ones((size,))).asnumpy() == 3).all()


def test_the_backward_part_can_be_cut_into_tasks() -> None:
    """As many operators a task as are asked for; the gradients are those of one task, and the last layers' come first."""
    found = {}
    for size in (None, 0, 1, 3, 1000):
        mx.random.seed(1)
        net = gluon.nn.HybridSequential()
        for units in (5, 4, 3):
            net.add(gluon.nn.Dense(units, activation="tanh", in_units=units + 1), gluon.nn.BatchNorm(in_channels=units))
        net.initialize(mx.init.Normal(0.5))
        net.hybridize(backward_bulk_size=size)
        data = nd.array(np.random.default_rng(0).normal(size=(7, 6)))
        data.attach_grad()
        with autograd.record():
            y = net(data)
            program = net.program(data)
        y.backward()
        found[size] = [data.grad.asnumpy()]
        found[size] += [param.grad().asnumpy() for param in net.collect_params().values() if param.grad_req != "null"]
        found[size] += [param.data().asnumpy() for param in net.collect_params().values()]
        assert program.gradients is not None
        steps = program.gradients.steps
        if size is None:
            (whole,) = steps
        else:
            assert len(steps) == -(-len(whole.part.graph.order) // max(1, size))
    for size in (0, 1, 3, 1000):
        for mine, its in zip(found[size], found[None]):
            np.testing.assert_array_equal(mine, its)
    with pytest.raises(ArgumentError, match="backward_bulk_size is -1"):
        mx.nd.CachedOp(x * 2, {"backward_bulk_size": -1})


def test_gradients_for_several_devices_come_in_pieces() -> None:
    devices = [mx.cpu(0), mx.cpu(1)]
    net = gluon.nn.HybridSequential()
    net.add(*[gluon.nn.Dense(400, in_units=400) for _ in range(6)])
    net.initialize(ctx=devices)
    net.hybridize()
    data = nd.ones((200, 400))
    with autograd.record():
        net(data)
        program = net.program(data)
    assert program.gradients is not None
    assert len(program.gradients.steps) == 4
    assert "def hybridsequential" in program.source
    assert "backward 4: memory" in program.report()
