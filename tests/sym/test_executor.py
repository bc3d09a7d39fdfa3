"""Executors: binding, forward, backward, reshaping. Expected behaviour was checked with MXNet 1.9.1."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, nd, sym
from minimx.base import MXNetError
from minimx.name import NameManager

CPU = mx.cpu()
a, b, data = (sym.var(name) for name in ("a", "b", "data"))


@pytest.fixture(autouse=True)
def _fresh_names() -> Any:
    with NameManager():
        yield


def arrays() -> tuple[Any, Any]:
    return nd.array([1, 2, 3]), nd.array([4, 5, 6])


def same(array: Any, wanted: Any) -> None:
    np.testing.assert_allclose(array.asnumpy(), wanted, rtol=1e-6)


def classifier() -> Any:
    hidden = sym.Activation(sym.FullyConnected(data, num_hidden=5, name="f"), act_type="tanh", name="t")
    return sym.SoftmaxOutput(sym.FullyConnected(hidden, num_hidden=3, name="g"), name="s")


def fill_randomly(executor: Any) -> None:
    rng = np.random.default_rng(3)
    for name, array in executor.arg_dict.items():
        array[:] = rng.integers(0, 3, array.shape) if name.endswith("label") else rng.standard_normal(array.shape)


# ---- bind


def test_bind_to_lists_or_dicts() -> None:
    x, y = arrays()
    gx, gy = nd.zeros((3,)), nd.zeros((3,))
    for args, grads in (([x, y], [gx, gy]), ({"b": y, "a": x, "other": y}, {"b": gy, "a": gx})):
        executor = sym.elemwise_mul(a, b, name="product").bind(CPU, args, grads)
        same(executor.forward(is_train=True)[0], [4, 10, 18])
        executor.backward(nd.array([1, 10, 100]))
        same(gx, [4, 50, 600])
        same(gy, [1, 20, 300])
    assert executor.arg_dict["a"] is x
    assert executor.grad_arrays[0] is gx
    assert list(executor.output_dict) == ["product_output"]


def test_bind_without_gradients() -> None:
    x, y = arrays()
    executor = (a * b).bind(CPU, [x, y])
    same(executor.forward(is_train=True)[0], [4, 10, 18])
    assert executor.grad_dict == {"a": None, "b": None}
    executor.backward(nd.ones((3,)))  # nothing to do
    partly = (a * b).bind(CPU, [x, y], {"b": nd.zeros((3,))})
    partly.forward()
    partly.backward(nd.ones((3,)))
    assert partly.grad_dict["a"] is None
    same(partly.grad_dict["b"], [1, 2, 3])


def test_requests() -> None:
    x, y = arrays()
    for req in ({"a": "add"}, ["add", "null"]):
        gx, gy = nd.ones((3,)), nd.ones((3,))
        executor = (a * b).bind(CPU, [x, y], [gx, gy], grad_req=req)
        for _ in range(2):
            executor.forward(is_train=True)
            executor.backward(nd.ones((3,)))
        same(gx, [9, 11, 13])
        same(gy, [1, 1, 1])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x, y: (a * b).bind(CPU, [x]), ValueError),
        (lambda x, y: (a * b).bind(CPU, {"a": x}), ValueError),
        (lambda x, y: (a * b).bind(CPU, (x, y)), TypeError),
        (lambda x, y: (a * b).bind(CPU, [x, 3]), TypeError),
        (lambda x, y: (a * b).bind(3, [x, y]), TypeError),
        (lambda x, y: (a * b).bind(CPU, [x, y], [x]), ValueError),
        (lambda x, y: (a * b).bind(CPU, [x, y], [x, y], grad_req="often"), ValueError),
        (lambda x, y: (a * b).bind(CPU, [x, y], [x, y], grad_req=["write"]), ValueError),
        (lambda x, y: (a * b).bind(CPU, [x, y], [x, y], grad_req=3), TypeError),
        (lambda x, y: (a * b).bind(CPU, [x, y[:2]]), MXNetError),
        (lambda x, y: (a * b).bind(CPU, [x, y.astype("float16")]), MXNetError),
    ],
)
def test_bind_refuses(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call(*arrays())


def test_errors_of_shape_name_the_node() -> None:
    x, y = arrays()
    with pytest.raises(MXNetError, match="Error in operator product: elemwise_mul: lhs has shape"):
        sym.elemwise_mul(a, b, name="product").bind(CPU, [x, y[:2]])


# ---- forward


def test_forward_takes_values_by_name() -> None:
    x, y = arrays()
    executor = (a * b).bind(CPU, [x, y])
    same(executor.forward(a=np.array([7.0, 8, 9]))[0], [28, 40, 54])
    same(x, [7, 8, 9])
    same(executor.forward(b=nd.ones((3,)))[0], [7, 8, 9])
    with pytest.raises(TypeError, match="no argument is called 'z'"):
        executor.forward(z=x)
    with pytest.raises(ValueError, match="argument a has shape"):
        executor.forward(a=nd.ones((2,)))
    with pytest.raises(ValueError, match="must be an NDArray or a NumPy array"):
        executor.forward(a=[1, 2, 3])


def test_outputs_keep_their_memory() -> None:
    x, y = arrays()
    executor = (a * b).bind(CPU, [x, y])
    same(executor.outputs[0], [0, 0, 0])  # before the first run
    first = executor.forward()[0]
    x[:] = 0
    executor.forward()
    same(first, [0, 0, 0])


def test_modes() -> None:
    executor = sym.Dropout(data, p=0.5).simple_bind(CPU, data=(1000,))
    executor.arg_dict["data"][:] = 1
    same(executor.forward(is_train=False)[0], np.ones(1000))
    assert set(executor.forward(is_train=True)[0].asnumpy()) == {0.0, 2.0}
    with autograd.record():
        same(executor.forward()[0], np.ones(1000))  # the caller's mode does not matter
    assert executor.outputs[0].node is None


def test_several_outputs_and_shared_nodes() -> None:
    shared = sym.exp(a)
    parts = sym.split(shared, num_outputs=3, axis=0)
    net = sym.Group([parts, shared * shared, a])
    executor = net.simple_bind(CPU, a=(3,))
    executor.arg_dict["a"][:] = nd.array([0, 1, 2])
    outputs = executor.forward(is_train=True)
    assert [output.shape for output in outputs] == [(1,), (1,), (1,), (3,), (3,)]
    executor.backward([nd.ones((1,)), nd.ones((1,)) * 2, nd.zeros((1,)), nd.ones((3,)), nd.ones((3,)) * 5])
    e = np.exp([0, 1, 2])
    np.testing.assert_allclose(executor.grad_dict["a"].asnumpy(), e * [1, 2, 0] + 2 * e * e + 5, rtol=1e-5)
    np.testing.assert_allclose(outputs[3].asnumpy(), e * e, rtol=1e-5)


def test_a_failure_in_a_kernel_shows_where_the_output_is_read() -> None:
    net = sym.take(a, b, mode="raise") + 1
    executor = net.bind(CPU, {"a": nd.ones((3, 2)), "b": nd.array([7])})
    output = executor.forward()[0]
    with pytest.raises(MXNetError):
        output.asnumpy()
    same(executor.forward(b=np.array([1.0]))[0], [[2, 2]])


def test_executors_work_in_any_thread() -> None:
    x, y = arrays()
    found: list[Any] = []

    def work() -> None:
        executor = (a * b).bind(CPU, [x, y])
        found.append(executor.forward()[0].asnumpy())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    np.testing.assert_array_equal(found[0], [4, 10, 18])


# ---- backward


def test_gradients_equal_those_of_autograd() -> None:
    executor = classifier().simple_bind(CPU, data=(4, 6))
    fill_randomly(executor)
    values = {name: array.copy() for name, array in executor.arg_dict.items()}
    for array in values.values():
        array.attach_grad()
    with autograd.record():
        hidden = nd.Activation(
            nd.FullyConnected(values["data"], values["f_weight"], values["f_bias"], num_hidden=5), act_type="tanh"
        )
        out = nd.SoftmaxOutput(nd.FullyConnected(hidden, values["g_weight"], values["g_bias"], num_hidden=3), values["s_label"])
    out.backward()
    same(executor.forward(is_train=True)[0], out.asnumpy())
    executor.backward()
    for name, gradient in executor.grad_dict.items():
        same(gradient, values[name].grad.asnumpy())


def test_head_gradients() -> None:
    x, y = arrays()
    executor = (a * b).bind(CPU, [x, y], [nd.zeros((3,)), nd.zeros((3,))])
    executor.backward(nd.ones((3,)))  # without a forward pass before
    same(executor.grad_dict["a"], [4, 5, 6])
    executor.forward()
    for head in (nd.ones((3,)) * 2, [nd.ones((3,)) * 2], {"_mul0_output": nd.ones((3,)) * 2}):
        executor.backward(head)  # several times after one forward, even one not for training
        same(executor.grad_dict["a"], [8, 10, 12])
    with pytest.raises(MXNetError, match="output _mul0 is no loss"):
        executor.backward()
    executor.backward([nd.ones((3,)), nd.ones((7,))])  # MXNet's own tests give more than there are outputs
    same(executor.grad_dict["a"], [4, 5, 6])
    with pytest.raises(TypeError):
        executor.backward([np.ones(3)])
    with pytest.raises(MXNetError, match="they must be equal"):
        executor.backward(nd.ones((2,)))


def test_losses_need_no_head_gradient() -> None:
    net = sym.Group([sym.make_loss(a * 2), sym.BlockGrad(b * 3)])
    executor = net.simple_bind(CPU, a=(2,), b=(2,))
    executor.grad_dict["b"][:] = 7
    executor.forward(is_train=True)
    executor.backward()
    same(executor.grad_dict["a"], [2, 2])
    same(executor.grad_dict["b"], [0, 0])  # no output depends on it
    mixed = sym.Group([sym.make_loss(a), b + 1]).simple_bind(CPU, a=(2,), b=(2,))
    mixed.forward(is_train=True)
    with pytest.raises(MXNetError, match="output _plusscalar0 is no loss"):
        mixed.backward()


def test_what_cannot_be_differentiated_is_refused_when_bound() -> None:
    rows = sym.batch_take(a, b)
    with pytest.raises(RuntimeError, match=r"batch_take .* is not differentiable"):
        rows.simple_bind(CPU, a=(4, 3), b=(4,), type_dict={"b": "int32"})
    rows.simple_bind(CPU, a=(4, 3), b=(4,), grad_req="null").forward()
    blocked = sym.BlockGrad(rows).simple_bind(CPU, a=(4, 3), b=(4,))
    blocked.forward()
    blocked.backward()
    same(blocked.grad_dict["a"], np.zeros((4, 3)))


def test_the_callers_tape_is_left_alone() -> None:
    x, y = arrays()
    x.attach_grad()
    with autograd.record():
        z = x * x
        executor = (a * b).bind(CPU, [x, y], [nd.zeros((3,)), nd.zeros((3,))])
        executor.forward(is_train=True)
    z.backward()
    same(x.grad, [2, 4, 6])
    executor.backward(nd.ones((3,)))
    same(x.grad, [2, 4, 6])
    same(executor.grad_dict["a"], [4, 5, 6])


# ---- simple_bind


def test_simple_bind_makes_zeros() -> None:
    executor = classifier().simple_bind(CPU, data=(2, 4))
    assert {name: array.shape for name, array in executor.arg_dict.items()} == {
        "data": (2, 4), "f_weight": (5, 4), "f_bias": (5,), "g_weight": (3, 5), "g_bias": (3,), "s_label": (2,),
    }  # fmt: skip
    for array in (*executor.arg_arrays, *executor.grad_arrays, *executor.outputs):
        assert not array.asnumpy().any()
    assert executor.aux_dict == {}
    assert list(executor.output_dict) == ["s_output"]


def test_simple_bind_requests_and_dtypes() -> None:
    executor = classifier().simple_bind(CPU, data=(2, 4), grad_req={"f_weight": "write"})
    assert [name for name, gradient in executor.grad_dict.items() if gradient is not None] == ["f_weight"]
    half = classifier().simple_bind(CPU, data=(2, 4), type_dict={"data": "float16"})
    assert {array.dtype for array in half.arg_arrays} == {np.float16}
    mixed = sym.FullyConnected(sym.Cast(data, dtype="float16"), num_hidden=2).simple_bind(CPU, data=(2, 3))
    assert [array.dtype for array in mixed.arg_arrays] == [np.float32, np.float16, np.float16]
    assert sym.exp(sym.var("x", shape=(2, 3), dtype="float64")).simple_bind(CPU).outputs[0].dtype == np.float64


@pytest.mark.parametrize(
    ("how", "match"),
    [
        ({}, "cannot decide the shapes of data: None"),
        ({"data": (2, 4), "f_weight": (5, 5)}, "data: \\(2, 4\\)\nf_weight: \\(5, 5\\)\nError in operator f"),
        ({"data": (2, 4), "grad_req": "often"}, "grad_req is 'often'"),
        ({"data": (2, 4), "grad_req": ["write"]}, "grad_req has 1 entries"),
        ({"data": (2, 4), "grad_req": {}}, "grad_req is empty"),
        ({"data": (2, 4), "stype_dict": {"data": "csr"}}, "storage types"),
    ],
)
def test_simple_bind_refuses(how: dict[str, Any], match: str) -> None:
    with pytest.raises(RuntimeError, match=f"simple_bind error. Arguments:\n(.|\n)*{match}"):
        classifier().simple_bind(CPU, **how)


def test_simple_bind_shares_arrays() -> None:
    first = classifier().simple_bind(CPU, data=(4, 6))
    buffer: dict[str, Any] = {}
    second = classifier().simple_bind(
        CPU, data=(2, 6), shared_exec=first, shared_arg_names=["f_weight", "f_bias", "g_weight", "g_bias"], shared_buffer=buffer
    )
    assert second.arg_dict["f_weight"] is first.arg_dict["f_weight"]
    assert second.grad_dict["g_bias"] is first.grad_dict["g_bias"]
    assert sorted(buffer) == ["data", "grad of data", "grad of s_label", "s_label"]
    third = classifier().simple_bind(CPU, data=(1, 6), shared_buffer=buffer)
    third.arg_dict["data"][:] = 3
    same(second.arg_dict["data"], [[3] * 6, [0] * 6])
    with pytest.raises(RuntimeError, match="f_weight is shared"):
        classifier().simple_bind(CPU, data=(2, 7), shared_exec=first, shared_arg_names=["f_weight"])


# ---- changes


def test_reshape_shares_memory() -> None:
    net = sym.FullyConnected(data, num_hidden=4, name="f")
    big = net.simple_bind(CPU, data=(5, 4))
    big.arg_dict["data"][:] = 1
    big.arg_dict["f_weight"][:] = 1
    small = big.reshape(data=(3, 4))
    same(small.forward()[0], np.full((3, 4), 4.0))
    same(big.outputs[0][:3], np.full((3, 4), 4.0))
    assert small.arg_dict["f_weight"] is big.arg_dict["f_weight"]
    small.arg_dict["data"][:] = 2
    same(big.arg_dict["data"], [[2] * 4] * 3 + [[1] * 4] * 2)
    bigger = big.reshape(allow_up_sizing=True, data=(6, 4))
    bigger.arg_dict["data"][:] = 0
    same(big.arg_dict["data"][4], [1] * 4)
    assert bigger.arg_dict["f_weight"] is big.arg_dict["f_weight"]
    with pytest.raises(MXNetError, match="allow_up_sizing=True"):
        big.reshape(data=(6, 4))
    with pytest.raises(MXNetError, match="partial_shaping=True"):
        big.reshape(data=(5, 3))
    assert big.reshape(data=(5, 3), partial_shaping=True).arg_dict["f_weight"].shape == (4, 3)
    with pytest.raises(MXNetError, match="no argument is called nope"):
        big.reshape(nope=(5, 3))


def test_reshape_keeps_shapes_that_variables_were_made_with() -> None:
    """PReLU would give each channel a slope of its own, if it were not said that there is one."""
    net = sym.LeakyReLU(data, sym.var("slope", shape=(1,)), act_type="prelu")
    executor = net.simple_bind(CPU, data=(2, 3)).reshape(data=(1, 3))
    assert executor.arg_dict["slope"].shape == (1,)
    assert executor.forward()[0].shape == (1, 3)


def test_reshape_trains_on() -> None:
    executor = classifier().simple_bind(CPU, data=(4, 6))
    fill_randomly(executor)
    small = executor.reshape(data=(2, 6), s_label=(2,))
    small.forward(is_train=True)
    small.backward()
    assert small.grad_dict["data"].shape == (2, 6)
    assert executor.grad_dict["f_weight"].asnumpy().any()
    assert small.grad_dict["f_weight"] is executor.grad_dict["f_weight"]


def test_copy_params_from() -> None:
    executor = classifier().simple_bind(CPU, data=(2, 4))
    executor.copy_params_from({"f_bias": nd.ones((5,), dtype="float16")}, {})
    same(executor.arg_dict["f_bias"], np.ones(5))
    executor.copy_params_from({"nope": nd.ones((5,))}, allow_extra_params=True)
    with pytest.raises(ValueError, match="no argument is called 'nope'"):
        executor.copy_params_from({"nope": nd.ones((5,))})
    with pytest.raises(ValueError, match="no auxiliary state is called 'nope'"):
        executor.copy_params_from({}, {"nope": nd.ones((5,))})
    with pytest.raises(MXNetError):
        executor.copy_params_from({"f_bias": nd.ones((4,))})


def test_monitors_see_values_as_they_are_made() -> None:
    net = sym.Activation(sym.FullyConnected(data, num_hidden=4, name="f"), act_type="relu", name="r") + sym.Dropout(a, name="d")
    executor = net.simple_bind(CPU, data=(5, 4), a=(5, 4))
    seen: list[tuple[str, Any]] = []
    executor.set_monitor_callback(lambda name, array: seen.append((name, array.shape)))
    executor.forward(is_train=True)
    assert seen == [
        ("f_output", (5, 4)),
        ("r_output", (5, 4)),
        ("d_output", (5, 4)),
        ("d_mask", (5, 4)),
        ("_plus0_output", (5, 4)),
    ]
    seen.clear()
    executor.set_monitor_callback(lambda name, array: seen.append((name, None)), monitor_all=True)
    executor.reshape(data=(2, 4), a=(2, 4)).forward(is_train=True)
    assert [name for name, _ in seen] == [
        "data", "f_data", "f_weight", "f_weight", "f_bias", "f_bias", "f_output", "r_input0", "r_output", "a", "d_data", "d_output",
        "d_mask", "_plus0_lhs", "_plus0_rhs", "_plus0_output",
    ]  # fmt: skip


def test_dictionaries_need_names_that_differ() -> None:
    executor = (sym.var("x") + sym.var("x")).bind(CPU, [nd.ones((2,)), nd.ones((2,))])
    same(executor.forward()[0], [2, 2])
    with pytest.raises(ValueError, match="several have one name"):
        executor.arg_dict  # noqa: B018


def test_debug_str_tells_the_memory() -> None:
    text = (a * 2).simple_bind(CPU, a=(1024, 1024)).debug_str()
    assert "Op:_mul_scalar, Name=_mulscalar0" in text
    assert text.endswith("Total 4 MB allocated\n")


def test_eval() -> None:
    x, y = arrays()
    found = (a * b).eval(a=x, b=y)
    assert isinstance(found, list)
    same(found[0], [4, 10, 18])
    same((a * b).eval(CPU, a=x, b=y)[0], [4, 10, 18])
    with pytest.raises(ValueError, match="args lacks b"):
        (a * b).eval(a=x)


# ---- devices


def test_groups_run_on_their_devices() -> None:
    with mx.AttrScope(ctx_group="first"):
        x = sym.var("x")
        hidden = sym.exp(x * 2)
    with mx.AttrScope(ctx_group="second"):
        net = sym.FullyConnected(hidden, num_hidden=1, no_bias=True, name="f")
    devices = {"first": mx.cpu(1), "second": mx.cpu(2)}
    executor = net.simple_bind(CPU, x=(2, 3), group2ctx=devices)
    assert {name: array.context for name, array in executor.arg_dict.items()} == {"x": mx.cpu(1), "f_weight": mx.cpu(2)}
    executor.arg_dict["f_weight"][:] = 1
    output = executor.forward(is_train=True)[0]
    assert output.context == mx.cpu(2)
    same(output, [[3], [3]])
    executor.backward(nd.ones((2, 1), ctx=mx.cpu(2)))
    same(executor.grad_dict["x"], np.full((2, 3), 2.0))
    assert executor.reshape(x=(1, 3)).forward()[0].context == mx.cpu(2)


def test_a_variable_without_a_group_is_where_it_is_used() -> None:
    x = sym.var("x")
    with mx.AttrScope(__ctx_group__="far"):
        net = sym.exp(x)
    executor = net.simple_bind(CPU, x=(2,), group2ctx={"far": mx.cpu(3)})
    assert executor.arg_dict["x"].context == executor.outputs[0].context == mx.cpu(3)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (
            lambda: (a * b).bind(CPU, [*arrays()], [nd.zeros(4), nd.zeros(3)]),
            r"a has shape \(3,\), its array in args_grad \(4,\)",
        ),
        (lambda: (a * b).bind(CPU, [*arrays()], [*arrays()], [["write"], "add"]), "grad_req is"),
        (lambda: (a * b).simple_bind(CPU, a=[3]), "shape of a: a tuple is wanted, got list"),
        (lambda: bound().backward({"out": nd.ones(3)}), "no output is called out; there are product_output"),
        (lambda: bound().set_monitor_callback(5), "a function is wanted, got 5"),
    ],
)
def test_arguments_that_do_not_fit(call: Any, match: str) -> None:
    with pytest.raises(MXNetError, match=match):
        call()


def bound() -> Any:
    executor = sym.elemwise_mul(a, b, name="product").bind(CPU, [*arrays()], [*arrays()])
    executor.forward(is_train=True)
    return executor
