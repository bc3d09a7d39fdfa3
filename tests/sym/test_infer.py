"""Inference of shapes and dtypes, in both directions. Expected results were checked with MXNet 1.9.1, which sometimes knows less."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import minimx as mx
from minimx import nd, sym
from minimx.base import MXNetError, ShapeError
from minimx.op import Op
from minimx.sym import trial

Shape = tuple[int, ...]
a, b, c, data = (sym.var(name) for name in ("a", "b", "c", "data"))


def shapes_of(net: Any, **known: Shape) -> dict[str, Shape]:
    """What is inferred of the arguments and outputs, by name."""
    args, outs, aux = net.infer_shape_partial(**known)
    names = net.list_arguments() + net.list_outputs() + net.list_auxiliary_states()
    return dict(zip(names, args + outs + aux))


# ---- shapes, forwards


def test_all_shapes_follow_from_the_datas() -> None:
    net = sym.FullyConnected(
        sym.Activation(sym.FullyConnected(data, num_hidden=5, name="f"), act_type="relu"), num_hidden=3, name="g"
    )
    assert net.infer_shape(data=(2, 4)) == ([(2, 4), (5, 4), (5,), (3, 5), (3,)], [(2, 3)], [])
    assert net.infer_shape((2, 4)) == net.infer_shape(data=(2, 4))


@pytest.mark.parametrize(
    ("net", "known", "output"),
    [
        (sym.exp(a), (0, 4), (0, 4)),
        (a + 1, (0, 4), (0, 4)),
        (sym.sum(a, axis=1), (0, 3, 4), (0, 4)),
        (sym.sum(a, axis=0, keepdims=True), (0, 3), (1, 3)),
        (sym.transpose(a, axes=(0, 3, 2, 1)), (0, 3, 8, 9), (0, 9, 8, 3)),
        (sym.Flatten(a), (0, 3, 4), (0, 12)),
        (sym.reshape(a, shape=(-1, 4)), (0, 3, 4), (0, 4)),
        (sym.reshape(a, shape=(0, -1)), (0, 3, 4), (0, 12)),
        (sym.softmax(a), (0, 0), (0, 0)),
        (sym.split(a, num_outputs=3)[1], (0, 6), (0, 2)),
        (sym.expand_dims(a, axis=1), (0, 4), (0, 1, 4)),
        (sym.tile(a, reps=(2, 3)), (0, 4), (0, 12)),
        (sym.slice(a, begin=(1,), end=(3,)), (0, 4), (0, 4)),  # cut at the end of a short axis: not known
        (sym.slice_axis(a, axis=0, begin=1, end=3), (0, 4), (2, 4)),  # refuses a short axis: known
        (sym.Embedding(a, input_dim=9, output_dim=2), (0, 5), (0, 5, 2)),
        (sym.argmax(a, axis=1), (0, 4), (0,)),
        (sym.Dropout(a), (0, 4), (0, 4)),
        (sym.shape_array(a), (0, 4), (2,)),
    ],
)
def test_open_lengths_stay_open(net: Any, known: Shape, output: Shape) -> None:
    assert net.infer_shape_partial(a=known)[1] == [output]


def test_open_lengths_of_several_inputs() -> None:
    assert shapes_of(sym.dot(a, b, name="y"), a=(0, 3, 4), b=(4, 5))["y_output"] == (0, 3, 5)
    assert shapes_of(sym.batch_dot(a, b, name="y"), a=(0, 3, 4), b=(0, 4, 5))["y_output"] == (0, 3, 5)
    assert shapes_of(sym.batch_dot(a, b, name="y"), a=(0, 3, 4), b=(0, 0, 5))["y_output"] == ()
    assert shapes_of(sym.pick(a, b, axis=1, name="y"), a=(0, 3, 3), b=(0, 3))["y_output"] == (0, 3)
    assert shapes_of(sym.take(a, b, name="y"), a=(0, 4), b=(2, 0))["y_output"] == (2, 0, 4)
    assert shapes_of(sym.broadcast_add(a, b, name="y"), a=(0, 3, 4), b=(4,))["y_output"] == (0, 3, 4)
    assert shapes_of(sym.where(a, b, c, name="y"), a=(0, 2), b=(0, 2), c=(0, 2))["y_output"] == ()
    assert shapes_of(sym.where(a, b, c, name="y"), a=(2, 2), b=(2, 2), c=(2, 2))["y_output"] == (2, 2)


# ---- shapes, backwards and sideways


def test_elementwise_operators_share_what_their_neighbours_know() -> None:
    assert shapes_of(a + b, a=(0, 10), b=(12, 0)).items() >= {"a": (12, 10), "b": (12, 10)}.items()
    assert shapes_of(sym.exp(a) + sym.var("y", shape=(2, 3)))["a"] == (2, 3)
    assert shapes_of(sym.add_n(a, b, c), c=(2, 3))["a"] == (2, 3)
    net = sym.softmax(sym.LayerNorm(sym.Dropout(a), name="n")) * sym.var("y", shape=(2, 3))
    assert shapes_of(net).items() >= {"a": (2, 3), "n_gamma": (3,)}.items()


@pytest.mark.parametrize(
    ("net", "known", "output", "found"),
    [
        (sym.FullyConnected(a, num_hidden=21), (0, 10), (5, 21), (5, 10)),
        (sym.FullyConnected(a, num_hidden=21, flatten=False), (0, 0, 10), (5, 6, 21), (5, 6, 10)),
        (sym.split(a, num_outputs=10, axis=1, squeeze_axis=True)[1], (0, 10), (5,), (5, 10)),
        (sym.split(a, num_outputs=3)[1], (0, 15, 0), (3, 5, 2), (3, 15, 2)),
        (sym.split(a, num_outputs=3)[0], (0, 0), (3, 5), (3, 15)),
        (sym.transpose(a, axes=(2, 0, 1)), (0, 0, 0), (2, 3, 4), (3, 4, 2)),
        (sym.Flatten(a), (0, 3, 4), (5, 12), (5, 3, 4)),
        (sym.sum(a, axis=1), (0, 3, 0), (5, 6), (5, 3, 6)),
        (sym.tile(a, reps=(2, 3)), (0, 0), (4, 9), (2, 3)),
        (sym.repeat(a, repeats=2, axis=1), (0, 0), (4, 6), (4, 3)),
        (sym.expand_dims(a, axis=0), (0, 0), (1, 4, 6), (4, 6)),
        (sym.Embedding(a, input_dim=9, output_dim=2), (0, 0), (4, 6, 2), (4, 6)),
        (sym.take(sym.var("table", shape=(7, 3)), a), (0,), (5, 3), (5,)),
        (sym.pad(a, mode="constant", pad_width=(0, 0, 0, 0, 1, 2, 3, 4)), (0, 0, 0, 0), (1, 2, 8, 9), (1, 2, 5, 2)),
        (sym.slice(a, begin=(None, 1), end=(None, None)), (0, 0), (2, 4), (2, 5)),
        (sym.slice(a, begin=(0, 0), end=(None, None), step=(1, 2)), (0, 0), (2, 4), (2, 0)),  # 7 or 8: not known
        (sym.reshape(a, shape=(-1, 4)), (0, 3), (6, 4), (8, 3)),
    ],
)
def test_data_follows_from_the_output(net: Any, known: Shape, output: Shape, found: Shape) -> None:
    together = sym.elemwise_add(net, sym.var("y", shape=output))
    assert shapes_of(together, a=known)["a"] == found


@pytest.mark.parametrize(
    ("shape", "reverse", "whole", "output"),
    [
        ((6, 1, -2), False, (2, 3, 5, 6), (6, 1, 5, 6)),
        ((-4, 16, 4), False, (64,), (16, 4)),
        ((-2, 1, 30), True, (2, 3, 5, 6), (2, 3, 1, 30)),
        ((-3, -1), False, (2, 3, 5, 6), (6, 30)),
    ],
)
def test_a_length_follows_from_the_size_of_the_reshaped(shape: Shape, reverse: bool, whole: Shape, output: Shape) -> None:
    """Each length in turn is unknown. The output's shape is known from what it is added to."""
    net = sym.reshape(a, shape=shape, reverse=reverse) + sym.ones(output)
    for axis in range(len(whole)):
        open_shape = tuple(0 if each == axis else length for each, length in enumerate(whole))
        assert net.infer_shape(a=open_shape) == ([whole], [output], [])


def test_inputs_of_concat() -> None:
    net = sym.concat(a, b, dim=1) + sym.var("y", shape=(2, 0))
    assert shapes_of(net, a=(0, 10), b=(0, 5)).items() >= {"a": (2, 10), "b": (2, 5), "y": (2, 15)}.items()
    net = sym.concat(a, b, dim=-1) + sym.var("y", shape=(2, 15))
    assert shapes_of(net, a=(0, 10)).items() >= {"a": (2, 10), "b": (2, 5)}.items()


def test_weights_complete_what_a_caller_left_open() -> None:
    weight = sym.var("weight", shape=(128, 0))
    net = sym.FullyConnected(data, weight, num_hidden=128, name="f")
    assert net.infer_shape(data=(10, 784))[0] == [(10, 784), (128, 784), (128,)]
    assert shapes_of(net, weight=(128, 5), data=(3, 0)).items() >= {"data": (3, 5), "f_output": (3, 128)}.items()


def test_a_weight_used_twice_is_known_once() -> None:
    net = sym.FullyConnected(data, num_hidden=1, no_bias=True, name="f")
    net = sym.sum(sym.abs(net.get_internals()["f_weight"])) + sym.sum(net)
    assert net.infer_shape(data=(5, 13))[0] == [(1, 13), (5, 13)]


def test_open_lengths_of_nodes_without_inputs_follow_from_their_use() -> None:
    net = sym.zeros((0, 3)) + data
    assert net.infer_shape(data=(2, 3))[1] == [(2, 3)]
    np.testing.assert_array_equal(net.eval(data=nd.ones((2, 3)))[0].asnumpy(), np.ones((2, 3)))
    assert net.simple_bind(mx.cpu(), data=(4, 3)).forward()[0].shape == (4, 3)


# ---- what is given, and what comes back


def test_minus_one_is_an_open_length_too() -> None:
    net = sym.ones((2, -1)) + sym.transpose(sym.ones((3, -1)))
    assert net.bind(mx.cpu(), {}).forward()[0].shape == (2, 3)


def test_a_call_overrides_what_a_variable_says() -> None:
    x = sym.var("x", shape=(2, 3))
    assert sym.exp(x).infer_shape()[1] == [(2, 3)]
    assert sym.exp(x).infer_shape(x=(4, 5))[1] == [(4, 5)]


def test_unknown_shapes() -> None:
    net = sym.FullyConnected(data, num_hidden=4, name="f")
    assert net.infer_shape_partial() == ([(), (), ()], [()], [])
    assert net.infer_shape_partial(data=()) == ([(), (), ()], [()], [])
    with pytest.warns(UserWarning, match="Cannot decide shape of data: None, f_weight"):
        assert net.infer_shape() == (None, None, None)
    with pytest.warns(UserWarning, match="Cannot decide shape"):
        assert sym.var("x", shape=(0, 3)).infer_shape() == (None, None, None)


def test_contradictions_name_the_node() -> None:
    net = sym.FullyConnected(data, num_hidden=10, name="f")
    for ask in (net.infer_shape, net.infer_shape_partial):
        with pytest.raises(MXNetError, match="Error in operator f: FullyConnected: weight has shape"):
            ask(data=(2, 3), f_weight=(10, 4))
    with pytest.raises(MXNetError, match=r"Error in operator .* by one neighbour, and .* by another"):
        (sym.transpose(a) + (a + b)).infer_shape(b=(2, 3))
    with pytest.raises(MXNetError):
        shapes_of(sym.exp(a) + sym.var("y", shape=(2, 3)), a=(0, 0, 0))


def test_wrong_questions() -> None:
    net = sym.FullyConnected(data, num_hidden=10)
    with pytest.raises(MXNetError, match="no argument is called nope"):
        net.infer_shape(nope=(2, 3))
    for wrong in (3, [2, 3], ("a",)):
        with pytest.raises(TypeError):
            net.infer_shape(data=wrong)
    with pytest.raises(ValueError, match="not both"):
        net.infer_shape((2, 3), data=(2, 3))
    with pytest.raises(MXNetError, match="4 values are given"):
        net.infer_shape(None, None, None, (1,))
    with pytest.raises(MXNetError, match="is no shape"):
        sym.var("x", __shape__="two").infer_shape()


# ---- dtypes


def test_dtypes_spread() -> None:
    net = sym.FullyConnected(data, num_hidden=4, name="f")
    half, single, double = np.float16, np.float32, np.float64
    assert net.infer_type(data="float16") == ([half] * 3, [half], [])
    assert net.infer_type(f_weight="float64") == ([double] * 3, [double], [])
    assert net.infer_type(None, "float64") == ([double] * 3, [double], [])
    assert net.infer_type_partial() == ([None] * 3, [None], [])
    cast = sym.SoftmaxOutput(sym.FullyConnected(sym.Cast(data, dtype="float32"), num_hidden=4), name="s")
    assert cast.infer_type(data="float16") == ([half, single, single, single], [single], [])
    assert cast.infer_type_partial() == ([None, single, single, single], [single], [])


@pytest.mark.parametrize(
    ("net", "known", "args", "outs"),
    [
        (a + b, {"b": "float16"}, ["float16", "float16"], ["float16"]),
        (a > b, {"a": "int32"}, ["int32", "int32"], ["int32"]),
        (sym.one_hot(a, 3), {}, [None], ["float32"]),
        (sym.shape_array(a), {}, [None], ["int64"]),
        (sym.Embedding(a, input_dim=3, output_dim=2), {"a": "int32"}, ["int32", "float32"], ["float32"]),
        (sym.take(a, b), {"b": "int32"}, [None, "int32"], [None]),
        (sym.take(a, b), {"a": "float64", "b": "int32"}, ["float64", "int32"], ["float64"]),
        (sym.where(a, b, c), {"b": "float16"}, [None, "float16", "float16"], ["float16"]),
        (sym.topk(a, ret_typ="both"), {}, [None], [None, "float32"]),
        (sym.argmax(a, axis=0), {"a": "float16"}, ["float16"], ["float16"]),
        (sym.exp(sym.var("x", dtype="float64")), {}, ["float64"], ["float64"]),
        (sym.exp(sym.var("x", dtype="float64")), {"x": "float16"}, ["float16"], ["float16"]),
        (sym.zeros((2,), dtype="int8") + a, {}, ["int8"], ["int8"]),
        (sym.exp(a) + sym.Cast(b, dtype="float16"), {}, ["float16", None], ["float16"]),
    ],
)
def test_dtypes_by_operator(net: Any, known: dict[str, str], args: list[str | None], outs: list[str | None]) -> None:
    def classes(names: list[str | None]) -> list[Any]:
        return [None if name is None else np.dtype(name).type for name in names]

    found = net.infer_type_partial(**known)
    assert found[:2] == (classes(args), classes(outs))


def test_dtypes_that_do_not_fit() -> None:
    with pytest.raises(MXNetError, match="Error in operator f: "):
        sym.FullyConnected(data, num_hidden=4, name="f").infer_type(data="float16", f_weight="float32")
    with pytest.raises(MXNetError, match="no argument is called nope"):
        sym.exp(a).infer_type(nope="float16")
    with pytest.raises(TypeError):
        sym.exp(a).infer_type(a="complex64")
    with pytest.warns(UserWarning, match="Cannot decide dtype of a: None"):
        assert sym.exp(a).infer_type() == (None, None, None)


# ---- inference never claims what is not so


@st.composite
def networks(draw: Any) -> tuple[Any, dict[str, Shape]]:
    """A random graph, and shapes of its arguments that fit."""
    sizes = st.integers(1, 6)
    known: dict[str, Shape] = {}
    batch = draw(sizes)

    def fresh(shape: Shape) -> Any:
        name = f"x{len(known)}"
        known[name] = shape
        return sym.var(name)

    width = draw(sizes)
    pool = [fresh((batch, width))]
    for _ in range(draw(st.integers(1, 6))):
        net = pool[draw(st.integers(0, len(pool) - 1))]
        shape = net.infer_shape(**{name: known[name] for name in net.list_arguments() if name in known})[1][0]
        kind = draw(
            st.sampled_from(
                [
                    "exp",
                    "scalar",
                    "add",
                    "broadcast",
                    "dense",
                    "concat",
                    "transpose",
                    "tile",
                    "reshape",
                    "sum",
                    "softmax",
                    "slice",
                ]
            )
        )
        if kind == "exp":
            net = sym.exp(net)
        elif kind == "scalar":
            net = 1 - net
        elif kind == "add":
            net = net + fresh(shape)
        elif kind == "broadcast":
            net = sym.broadcast_mul(net, fresh(tuple(length if draw(st.booleans()) else 1 for length in shape)))
        elif kind == "dense":
            net = sym.FullyConnected(net, num_hidden=draw(sizes))
        elif kind == "concat":
            net = sym.concat(net, fresh((shape[0], draw(sizes))), dim=1)
        elif kind == "transpose":
            net = sym.transpose(net)
        elif kind == "tile":
            net = sym.tile(net, reps=(draw(st.integers(1, 3)), 2))
        elif kind == "reshape":
            net = sym.reshape(net, shape=(-1, 1))
        elif kind == "sum":
            net = sym.sum(net, axis=1, keepdims=True)
        elif kind == "softmax":
            net = sym.softmax(net)
        else:
            net = sym.slice_axis(net, axis=0, begin=0, end=draw(st.integers(1, shape[0])))
        pool.append(net)
    top = pool[-1]
    arguments = top.list_arguments()
    return top, {name: shape for name, shape in known.items() if name in arguments}


def agrees(found: Shape, true: Shape) -> bool:
    return not found or (len(found) == len(true) and all(length in (0, wanted) for length, wanted in zip(found, true)))


@settings(deadline=None, max_examples=120)
@given(networks(), st.data())
def test_what_is_inferred_from_a_part_is_true(made: tuple[Any, dict[str, Shape]], draws: Any) -> None:
    net, true = made
    args, outs, _ = net.infer_shape(**true)
    hidden = {
        name: tuple(0 if draws.draw(st.booleans()) else length for length in shape)
        for name, shape in true.items()
        if draws.draw(st.integers(0, 3))
    }
    part = sym.elemwise_add(net, sym.var("out", shape=outs[0])) if draws.draw(st.booleans()) else net
    found_args, found_outs, _ = part.infer_shape_partial(**hidden)
    for name, found in zip(part.list_arguments(), found_args):
        true_shape = outs[0] if name == "out" else dict(zip(net.list_arguments(), args))[name]
        assert agrees(found, true_shape), (name, found, true_shape)
    assert agrees(found_outs[0], outs[0])


@settings(deadline=None, max_examples=30)
@given(networks())
def test_what_is_inferred_is_what_comes_out(made: tuple[Any, dict[str, Shape]]) -> None:
    net, true = made
    executor = net.simple_bind(mx.cpu(), grad_req="null", **true)
    args, outs, _ = net.infer_shape(**true)
    assert [array.shape for array in executor.arg_arrays] == args
    assert [array.shape for array in executor.forward()] == outs


# ---- the trials themselves


def test_trials_ask_an_operator_that_cannot_be_hashed() -> None:
    x = nd.ones((4, 3))
    x.attach_grad()
    with mx.autograd.record():
        y = x[::2, 1:]  # an index with slices: not hashable before Python 3.12
    graph = mx.autograd.get_symbol(y)
    assert graph.infer_shape(var0=(4, 3))[1] == [(2, 2)]
    assert graph.infer_shape_partial(var0=(0, 3))[1] in ([(0, 2)], [()])


def test_operators_that_stretch_do_not_keep_shapes() -> None:
    pair = (True, True)
    assert trial.keeps_shape((a + b).entries[0][0].op, pair, 3) == (True, True)
    assert trial.keeps_shape(sym.broadcast_add(a, b).entries[0][0].op, pair, 3) == (False, False)
    assert trial.keeps_shape(sym.squeeze(a).entries[0][0].op, (True,), 2) == (False,)
    assert trial.keeps_shape(sym.reshape(a, shape=(-1,)).entries[0][0].op, (True,), 1) == (False,)


def test_an_operator_without_a_rule_is_named() -> None:
    class WithoutARule(Op):
        name = "without_a_rule"

    net = sym.Symbol._apply(WithoutARule(), [sym.var("x")], {"name": "n"})
    with pytest.raises(MXNetError, match="Error in operator n: without_a_rule has no rule of shapes"):
        net.infer_shape(x=(2, 3))


def test_a_wrong_number_of_axes_is_said_before_all_lengths_are_known() -> None:
    convolution = sym.Convolution(data, kernel=(3, 3), num_filter=2, name="c")
    wanted = r"Error in operator c: Convolution: data needs 4 axes \(batch, channels, height, width\), got "
    for shape, shown in (((3, 4), r"\(3, 4\)"), ((0, 4), r"\(0, 4\)")):
        for ask in (convolution.infer_shape, convolution.infer_shape_partial):
            with pytest.raises(ShapeError, match=wanted + shown):
                ask(data=shape)
        with pytest.raises(ShapeError, match=f"data needs 4 axes .* got {shown}"):
            sym.Pooling(data, kernel=(2, 2)).infer_shape(data=shape)
    with pytest.raises(ShapeError, match="BatchNorm: axis 3 is out of range for an array of 2 dimensions"):
        sym.BatchNorm(data, axis=3).infer_shape(data=(3, 4))


def test_a_range_gets_its_length_from_what_it_is_combined_with() -> None:
    x = sym.var("x")
    for step, repeat, wanted in ((0.1, 1, [2.0, 2.1, 2.2, 2.3, 2.4, 2.5]), (-1.0, 2, [2, 2, 1, 1, 0, 0])):
        net = x + sym.arange(start=2, step=step, repeat=repeat, infer_range=True)
        np.testing.assert_allclose(net.eval(x=nd.zeros(6))[0].asnumpy(), wanted, 1e-6)
    net = x + sym.arange(start=2, repeat=2, infer_range=True)
    with pytest.raises(ShapeError, match=r"numbers that come 2 times each cannot be an array of shape \(3,\)"):
        net.eval(x=nd.zeros(3))
