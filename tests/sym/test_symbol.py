"""Symbols: names, outputs, composition, attributes, and what they refuse. Expected texts were checked with MXNet 1.9.1."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, nd, sym
from minimx.attribute import AttrScope
from minimx.base import MXNetError, NotImplementedForSymbol
from minimx.name import NameManager, Prefix
from minimx.ops import public


@pytest.fixture(autouse=True)
def _fresh_names() -> Any:
    with NameManager():
        yield


def dense(data: Any = None, name: str = "fc", **how: Any) -> Any:
    return sym.FullyConnected(sym.var("data") if data is None else data, num_hidden=4, name=name, **how)


# ---- names


@pytest.mark.parametrize(
    ("make", "name", "op"),
    [
        (lambda a, b: a + b, "_plus0", "elemwise_add"),
        (lambda a, b: a + 1, "_plusscalar0", "_plus_scalar"),
        (lambda a, b: 1 - a, "_rminusscalar0", "_rminus_scalar"),
        (lambda a, b: a * b, "_mul0", "elemwise_mul"),
        (lambda a, b: -a, "_mulscalar0", "_mul_scalar"),
        (lambda a, b: a / b, "_div0", "elemwise_div"),
        (lambda a, b: 2 / a, "_rdivscalar0", "_rdiv_scalar"),
        (lambda a, b: a % 2, "_modscalar0", "_mod_scalar"),
        (lambda a, b: a**b, "_power0", "_power"),
        (lambda a, b: a > b, "_greater0", "_greater"),
        (lambda a, b: 1 > a, "_lesser_scalar0", "_lesser_scalar"),  # noqa: SIM300 - the mirrored operator
        (lambda a, b: a == 2, "_equal_scalar0", "_equal_scalar"),
        (lambda a, b: abs(a), "abs0", "abs"),
        (lambda a, b: sym.maximum(a, b), "_maximum0", "_maximum"),
        (lambda a, b: sym.pow(2, a), "_rpowerscalar0", "_rpower_scalar"),
        (lambda a, b: sym.broadcast_add(a, b), "broadcast_add0", "broadcast_add"),
        (lambda a, b: sym.Flatten(a), "flatten0", "Flatten"),
        (lambda a, b: a.reshape((2, -1)), "reshape0", "Reshape"),
        (lambda a, b: sym.identity(a), "identity0", "_copy"),
        (lambda a, b: sym.swapaxes(a, 0, 1), "swapaxes0", "SwapAxis"),
        (lambda a, b: sym.linalg.gemm2(a, b), "gemm20", "_linalg_gemm2"),
        (lambda a, b: sym.contrib.arange_like(a), "arange_like0", "_contrib_arange_like"),
        (lambda a, b: sym.random.uniform(shape=(2,)), "_random_uniform0", "_random_uniform"),
        (lambda a, b: sym.zeros((2, 3)), "_zeros0", "_zeros"),
    ],
)  # fmt: skip
def test_automatic_names_are_mxnets(make: Any, name: str, op: str) -> None:
    made = make(sym.var("a"), sym.var("b"))
    assert (made.name, made.entries[0][0].op.name) == (name, op)


@pytest.mark.parametrize(
    "method", ["flip", "sum", "sort", "argmax", "expand_dims", "softmax", "flatten", "squeeze", "zeros_like", "broadcast_axes"]
)
def test_methods_name_nodes_as_functions_do(method: str) -> None:
    how = {"axis": 1} if method in ("flip", "sum", "sort", "argmax", "expand_dims", "squeeze") else {}
    if method == "broadcast_axes":
        how = {"axis": (2,), "size": (5,)}
    assert getattr(sym.var("data"), method)(**how).name == f"{method}0"


def test_names_count_for_each_operator_and_start_anew_in_a_new_manager() -> None:
    data = sym.var("data")
    assert [sym.exp(data).name, sym.exp(data).name, sym.log(data).name] == ["exp0", "exp1", "log0"]
    with NameManager():
        assert sym.exp(data).name == "exp0"
    assert sym.exp(data).name == "exp2"
    assert sym.FullyConnected(data, num_hidden=2, name="").name == "fullyconnected0"


def test_a_prefix_goes_before_operators_and_not_before_variables() -> None:
    with Prefix("net_"):
        made = dense()
        assert made.list_arguments() == ["data", "net_fc_weight", "net_fc_bias"]
        assert (made + 1).name == "net__plusscalar0"


def test_a_manager_of_the_users_own() -> None:
    class Loud(NameManager):
        def get(self, name: str | None, hint: str) -> str:
            return super().get(name, hint).upper()

    with Loud():
        assert sym.exp(sym.var("x")).name == "EXP0"
    assert sym.exp(sym.var("x")).name == "exp0"


def test_managers_and_scopes_belong_to_their_thread() -> None:
    seen: list[Any] = []

    def other() -> None:
        seen.append(sym.exp(sym.var("x")).name)
        seen.append(AttrScope.current.get(None))
        NameManager.current = Prefix("p_")
        seen.append(sym.exp(sym.var("x")).name)

    with AttrScope(__group__="a"):
        sym.exp(sym.var("x"))
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert AttrScope.current._attr == {"__group__": "a"}
    assert seen == ["exp0", {}, "p_exp0"]
    assert sym.exp(sym.var("x")).name == "exp1"


def test_a_manager_may_be_entered_twice() -> None:
    manager = NameManager()
    before = NameManager.current
    with manager, manager:
        assert NameManager.current is manager
    assert NameManager.current is before


# ---- inputs and outputs


def test_missing_inputs_become_variables() -> None:
    assert dense().list_arguments() == ["data", "fc_weight", "fc_bias"]
    assert dense(no_bias=True).list_arguments() == ["data", "fc_weight"]
    assert sym.SoftmaxOutput(sym.var("data"), name="softmax").list_arguments() == ["data", "softmax_label"]
    assert sym.Embedding(sym.var("data"), input_dim=3, output_dim=2, name="e").list_arguments() == ["data", "e_weight"]
    assert sym.softmax(sym.var("data"), use_length=True, name="s").list_arguments() == ["data", "s_length"]
    assert sym.SequenceLast(sym.var("data"), use_sequence_length=True, name="s").list_arguments() == ["data", "s_sequence_length"]
    assert sym.LeakyReLU(sym.var("data"), act_type="prelu", name="r").list_arguments() == ["data", "r_gamma"]
    assert sym.LeakyReLU(sym.var("data"), name="r").list_arguments() == ["data"]


def test_an_operator_without_any_input() -> None:
    assert sym.FullyConnected(num_hidden=2, name="f").list_arguments() == ["f_data", "f_weight", "f_bias"]
    with mx.name.NameManager():
        assert sym.FullyConnected(num_hidden=2).list_arguments() == [
            f"fullyconnected0_{each}" for each in ("data", "weight", "bias")
        ]
        assert sym.softmax(axis=0).list_arguments() == ["softmax0_data"]
    with pytest.raises(MXNetError, match="an NDArray or a Symbol is wanted"):
        sym.FullyConnected(None, num_hidden=2)


def test_arguments_are_listed_depth_first_and_once() -> None:
    a, b = sym.var("a"), sym.var("b")
    assert ((b + a) * (a - b)).list_arguments() == ["b", "a"]
    assert (sym.var("a") + sym.var("a")).list_arguments() == ["a", "a"]  # two variables of one name


def test_outputs() -> None:
    data = sym.var("data")
    parts = sym.split(data, num_outputs=3, name="parts")
    assert (len(parts), parts.list_outputs()) == (3, ["parts_output0", "parts_output1", "parts_output2"])
    assert [part.list_outputs() for part in parts] == [["parts_output0"], ["parts_output1"], ["parts_output2"]]
    assert data.list_outputs() == ["data"]
    assert sym.topk(data, ret_typ="both", name="t").list_outputs() == ["t_output0", "t_output1"]
    assert sym.Dropout(data, name="d").list_outputs() == ["d_output"]
    assert sym.LayerNorm(data, name="n", output_mean_var=True).list_outputs() == ["n_output", "n_mean", "n_std"]
    assert sym.make_loss(data, name="m").list_outputs() == ["m_loss"]


def test_selecting_outputs() -> None:
    parts = sym.split(sym.var("data"), num_outputs=3, name="parts")
    net = sym.Group([dense(), parts])
    assert net["fc_output"].list_outputs() == ["fc_output"]
    assert net[1].list_outputs() == ["parts_output0"]
    assert parts[0:2].list_outputs() == ["parts_output0", "parts_output1"]
    with pytest.raises(ValueError, match="no output is called 'nope'"):
        net["nope"]
    with pytest.raises(ValueError, match="several outputs are called 'fc_output'"):
        sym.Group([dense(), dense()])["fc_output"]
    with pytest.raises(IndexError):
        net[4]
    with pytest.raises(IndexError):
        net[-1]
    with pytest.raises(TypeError):
        net[1.0]
    with pytest.raises(TypeError):
        parts[2:1]


def test_groups() -> None:
    net = sym.Group([dense(), sym.var("x")])
    assert (len(net), net.name, repr(net)) == (2, None, "<Symbol group [fc, x]>")
    assert repr(net[0]) == "<Symbol fc>"
    assert net.attr("__x__") is None
    for wrong in ([], [1], dense()):
        with pytest.raises(TypeError):
            sym.Group(wrong)


def test_internals_and_children() -> None:
    net = sym.Activation(dense(), act_type="relu", name="act")
    internals = net.get_internals()
    assert internals.list_outputs() == ["data", "fc_weight", "fc_bias", "fc_output", "act_output"]
    assert internals["fc_output"].list_arguments() == ["data", "fc_weight", "fc_bias"]
    assert net.get_children().list_outputs() == ["fc_output"]
    assert net.get_children().get_children().list_outputs() == ["data", "fc_weight", "fc_bias"]
    assert sym.var("x").get_children() is None


# ---- composition


def test_composition_replaces_variables_in_a_copy() -> None:
    first, second = dense(), dense(sym.var("in"), name="fc2")
    both = second(**{"in": first}, name="top")
    assert (both.name, both.list_arguments()) == ("top", ["data", "fc_weight", "fc_bias", "fc2_weight", "fc2_bias"])
    assert (second.name, second.list_arguments()) == ("fc2", ["in", "fc2_weight", "fc2_bias"])
    shared = second(**{"in": first, "fc2_weight": sym.var("w")})
    assert shared.list_arguments() == ["data", "fc_weight", "fc_bias", "w", "fc2_bias"]


def test_composition_refuses() -> None:
    net, other = dense(), sym.var("x")
    with pytest.raises(MXNetError, match="no input is called 'nope'"):
        net(nope=other)
    with pytest.raises(TypeError, match="must be a Symbol, got int"):
        net(data=3)
    with pytest.raises(TypeError, match="beside named ones"):
        net(other, data=other)
    with pytest.raises(MXNetError, match="by name"):
        net(other)
    with pytest.raises(MXNetError, match="2 outputs"):
        net(data=sym.Group([other, other]))


# ---- attributes


def test_attributes_of_variables() -> None:
    x = sym.var("x", shape=(0, 3), dtype="float16", lr_mult=2, wd_mult=0.5, init="zeros", attr={"mood": "good"}, __far__=1)
    assert x.list_attr() == {
        "mood": "good", "__shape__": "(0, 3)", "__lr_mult__": "2", "__wd_mult__": "0.5", "__dtype__": "2", "__init__": "zeros",
        "__far__": "1", "lr_mult": "2", "wd_mult": "0.5",
    }  # fmt: skip
    assert (x.attr("lr_mult"), x.attr("__lr_mult__"), x.attr("mood"), x.attr("nope")) == ("2", "2", "good", None)
    for wrong in ({"far": 1}, {"attr": {"mood": 1}}, {"stype": "row_sparse"}):
        with pytest.raises(ValueError):
            sym.var("x", **wrong)
    with pytest.raises(TypeError):
        sym.var(3)


def test_attributes_of_operators_reach_their_variables() -> None:
    net = dense(attr={"__mood__": "so so", "lr_mult": "3"}, wd_mult=1, __far__="2")
    for name in ("fc", "fc_weight", "fc_bias"):
        attrs = net.attr_dict()[name]
        assert (
            attrs.items() >= {"__mood__": "so so", "__lr_mult__": "3", "lr_mult": "3", "__wd_mult__": "1", "__far__": "2"}.items()
        )
        assert attrs["num_hidden"] == "4"
    assert "data" not in net.attr_dict()
    with pytest.raises(MXNetError, match="unknown attribute 'mood'"):
        dense(attr={"mood": "bad"})
    with pytest.raises(MXNetError, match="unknown argument mood"):
        dense(mood="bad")


def test_scopes_nest_and_what_is_given_wins() -> None:
    with AttrScope(__group__="4", __data__="great"):
        outer = sym.exp(sym.var("x"))
        with AttrScope(__group__="5"):
            inner = sym.exp(sym.var("x"), attr={"__data__": "small"})
        after = sym.var("y", attr={"group": "1"})
    assert outer.list_attr() == {"__group__": "4", "__data__": "great"}
    assert inner.list_attr() == {"__group__": "5", "__data__": "small"}
    assert after.list_attr() == {"__group__": "4", "__data__": "great", "group": "1"}
    assert sym.exp(sym.var("x")).list_attr() == {}
    with pytest.raises(ValueError):
        AttrScope(lr_mult=1)  # type: ignore[arg-type]


def test_setting_attributes() -> None:
    net = dense()
    net._set_attr(__x__="1", lr_mult="2")
    assert (net.attr("__x__"), net.attr("lr_mult")) == ("1", "2")
    net._set_attr(num_hidden="7")
    assert net.infer_shape(data=(2, 3))[1] == [(2, 7)]
    net.get_internals()["fc_weight"]._set_attr(__y__="1")  # nodes are shared between a graph and its parts
    assert net.attr_dict()["fc_weight"]["__y__"] == "1"
    with pytest.raises(ValueError):
        net._set_attr(__x__=1)
    with pytest.raises(MXNetError, match="belongs to the input 'weight'"):
        net._set_attr(weight_lr_mult="1")
    with pytest.raises(MXNetError, match="unknown argument 'nope'"):
        net._set_attr(nope="1")
    with pytest.raises(MXNetError, match="several nodes"):
        sym.Group([net, net + 1])._set_attr(__x__="1")


# ---- copies


def test_copies_are_equal_and_apart() -> None:
    net = dense()
    for twin in (copy.copy(net), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert twin.tojson() == net.tojson()
        twin._set_attr(__x__="1")
        assert net.attr("__x__") is None


# ---- what a Symbol refuses


def test_what_needs_a_value_is_refused() -> None:
    x = sym.var("x")
    for ask in ("asnumpy", "asscalar", "item", "wait_to_read", "copy", "as_in_context", "detach", "backward", "attach_grad"):
        with pytest.raises(NotImplementedForSymbol, match=ask):
            getattr(x, ask)()
    with pytest.raises(NotImplementedForSymbol):
        x += 1


@pytest.mark.parametrize(
    ("ask", "match"),
    [
        (bool, r"bool\(\), which `if`, .* \(use F.where, which .*, or F.contrib.cond"),
        (lambda x: 3 in [x], "F.where"),
        (float, r"float\(\) is not"), (int, "F.contrib.while_loop"), (complex, "complex"), (round, "F.round"),
        (range, "a whole number, as for range"), (lambda x: [1, 2][x], "F.take"), (np.asarray, "a NumPy array of it"),
        (np.array, "F, which"),
        (np.tanh, "numpy.tanh is not .* such as F.tanh"), (np.add.reduce, "numpy.add is not"),
        (lambda x: np.maximum(x, 1), "numpy.maximum"),
    ],
)  # fmt: skip
def test_what_python_and_numpy_ask_of_a_value(ask: Any, match: str) -> None:
    with pytest.raises(NotImplementedForSymbol, match=match):
        ask(sym.var("x"))
    with pytest.raises(NotImplementedForSymbol, match=r"x\[...\] = value"):
        sym.var("x")[0] = 1


def test_numbers_of_numpy_are_operands() -> None:
    x = sym.var("x")
    value = {"x": nd.array([4.0])}
    assert (np.float32(2) * x + np.int64(3) - np.float64(1)).eval(**value)[0].asscalar() == 10
    assert (np.float32(2) / x).eval(**value)[0].asscalar() == 0.5
    assert (np.float32(4) == x).eval(**value)[0].asscalar() == 1
    assert (np.int32(5) > x).eval(**value)[0].asscalar() == 1
    for mixed in (lambda: np.ones(3) * x, lambda: x * np.ones(3)):
        with pytest.raises(TypeError, match=r"ndarray|NumPy array"):
            mixed()


def test_elements_are_not_selected() -> None:
    for index in ((slice(None), slice(1, None)), None, ..., 1.5, sym.var("i")):
        with pytest.raises(TypeError, match="Elements are selected by slice_axis"):
            sym.var("x")[index]
    with pytest.raises(IndexError, match=r"has 1. Elements are selected by slice_axis\(\)"):
        sym.var("x")[1]
    assert sym.Group([sym.var("x"), sym.var("y")])[np.int64(1)].name == "y"


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: sym.relu(sym.var("x"), name=5), "name must be a str"), (lambda: sym.relu(sym.var("x"), attr=["a"]), "attr must be a dict"),
        (lambda: sym.var("x", shape="ab"), "shape must be an int or a tuple"),
        (lambda: sym.split(sym.var("x"), 10**12), "1000000000000 outputs"),
        (lambda: sym.var("x") + nd.ones(1), "params.get_constant"),
    ],
)  # fmt: skip
def test_odd_arguments(make: Any, match: str) -> None:
    with pytest.raises(MXNetError, match=match):
        make()


@pytest.mark.parametrize("other", [nd.ones((2,)), "s", None, np.ones(3), [1]])
def test_operands_of_other_kinds(other: Any) -> None:
    x = sym.var("x")
    with pytest.raises(TypeError):
        x + other
    with pytest.raises(TypeError):
        other - x
    with pytest.raises(TypeError):
        assert x == other


def test_operators_take_single_outputs_of_symbols_alone() -> None:
    x = sym.var("x")
    with pytest.raises(TypeError, match="weight is an NDArray and another operand a Symbol"):
        sym.FullyConnected(x, nd.ones((2, 2)), num_hidden=2)
    with pytest.raises(MXNetError, match="2 outputs, one is wanted"):
        sym.exp(sym.split(x, num_outputs=2))
    with pytest.raises(MXNetError, match="out= receives a value"):
        sym.exp(x, out=x)


def test_numpys_numbers_are_numbers() -> None:
    assert (sym.var("x") + np.float32(3)).attr("scalar") == "3.0"
    assert (sym.var("x") * np.int64(3)).attr("scalar") == "3"


# ---- the namespace


def test_operators_are_the_same_functions_as_of_arrays() -> None:
    differing = {name for name in public.__all__ if getattr(sym, name) is not getattr(nd, name)}
    # These take Symbols of equal shapes, which their twins do not ask for; the others draw without a device.
    assert differing <= {"maximum", "minimum", "power", "hypot", "gamma"}
    assert mx.symbol.Symbol is mx.sym.Symbol is mx.Symbol
    assert mx.symbol.FullyConnected is sym.FullyConnected
    assert sym.op.exp is sym.exp


def test_nodes_without_inputs() -> None:
    assert sym.zeros((2, 3)).list_attr() == {"shape": "(2, 3)", "dtype": "float32"}
    assert sym.full(2, 4).list_attr() == {"shape": "(2,)", "dtype": "float32", "value": "4.0"}
    assert sym.arange(3).list_attr() == {
        "start": "3", "stop": "None", "step": "1.0", "repeat": "1", "infer_range": "False", "dtype": "float32",
    }  # fmt: skip
    assert sym.linspace(0, 1, 5).list_attr() == {"start": "0", "stop": "1", "num": "5", "endpoint": "True", "dtype": "float32"}
    assert sym.eye(3, name="unit").list_attr() == {"N": "3", "M": "0", "k": "0", "dtype": "float32"}
    np.testing.assert_array_equal(sym.arange(1, 7, 2).eval()[0].asnumpy(), [1, 3, 5])
    np.testing.assert_array_equal(sym.linspace(0, 1, 3, dtype="float64").eval()[0].asnumpy(), [0, 0.5, 1])
    np.testing.assert_array_equal(sym.eye(2, 3, 1).eval()[0].asnumpy(), np.eye(2, 3, 1))
    np.testing.assert_array_equal(
        (sym.ones((2, 2), dtype="int32") + sym.full((2, 2), 2, "int32")).eval()[0].asnumpy(), [[3, 3], [3, 3]]
    )
    assert sym.zeros((1,), __layout__="NC").attr("__layout__") == "NC"
    with pytest.raises(TypeError):
        sym.zeros("ab")
    with pytest.raises(MXNetError, match="unknown argument colour"):
        sym.zeros((2,), colour="red")


def test_functions_of_equal_shapes_or_a_number() -> None:
    a, b = sym.var("a"), sym.var("b")
    given = {"a": nd.array([1, 4]), "b": nd.array([3, 2])}
    for made, wanted in (
        (sym.maximum(a, b), [3, 4]), (sym.maximum(a, 2), [2, 4]), (sym.minimum(3, a), [1, 3]), (sym.power(a, 2), [1, 16]),
        (sym.pow(2, b), [8, 4]), (sym.hypot(a, b), [np.sqrt(10), np.sqrt(20)]),
    ):  # fmt: skip
        np.testing.assert_allclose(
            made.eval(**{name: given[name] for name in made.list_arguments()})[0].asnumpy(), wanted, rtol=1e-6
        )
    assert sym.maximum(2, 3) == 3
    with pytest.raises(TypeError):
        sym.maximum("a", 2)
    with pytest.raises(MXNetError):
        sym.maximum(a, b).infer_shape(a=(2,), b=(1,))


def test_random_nodes_depend_on_the_seed() -> None:
    net = sym.random.normal(1, 2, shape=(4,)) + sym.random.uniform(sym.var("low"), sym.var("high"), shape=()) * 0
    given = {"low": nd.zeros((4,)), "high": nd.ones((4,))}
    mx.random.seed(3)
    first = net.eval(**given)[0].asnumpy()
    second = net.eval(**given)[0].asnumpy()
    mx.random.seed(3)
    assert (net.eval(**given)[0].asnumpy() == first).all()
    assert (first != second).any()
    assert sym.random.randint(0, 3, shape=(2, 2)).infer_shape() == ([], [(2, 2)], [])
    assert sym.random.multinomial(sym.var("p"), get_prob=True).list_outputs() == [
        "_sample_multinomial0_output0", "_sample_multinomial0_output1",
    ]  # fmt: skip
    with pytest.raises(MXNetError, match="low is a Symbol, high is not"):
        sym.random.uniform(sym.var("low"), 3)


# ---- the tape as a graph


def test_get_symbol_shows_the_recorded_computation() -> None:
    x, weight = nd.array([[1, 2, 3]]), nd.ones((2, 3))
    x.attach_grad()
    with autograd.record():
        y = x * x + 2 * x - 1
        z = sym_free = nd.FullyConnected(y, weight, no_bias=True, num_hidden=2)
    assert autograd.get_symbol(y).list_arguments() == ["var0"]
    graph = autograd.get_symbol(z)
    assert graph.list_arguments() == ["var0", "null0"]
    np.testing.assert_array_equal(graph.eval(var0=x, null0=weight)[0].asnumpy(), sym_free.asnumpy())
    assert autograd.get_symbol(x).list_outputs() == ["var0"]
    with pytest.raises(MXNetError, match="not in a computational graph"):
        autograd.get_symbol(weight)


def test_get_symbol_of_one_of_several_outputs() -> None:
    x = nd.array([[1, 2, 3]])
    x.attach_grad()
    with autograd.record():
        part = nd.split(x, num_outputs=3, axis=1)[1]
    assert autograd.get_symbol(part).list_outputs() == ["node_0_output1"]


def test_get_symbol_of_a_function_with_its_own_gradient() -> None:
    class Double(autograd.Function):
        def forward(self, x: Any) -> Any:
            return x * 2

        def backward(self, dy: Any) -> Any:
            return dy * 2

    x = nd.ones((2,))
    x.attach_grad()
    with autograd.record():
        y = Double()(x)
    with pytest.raises(MXNetError, match="no operator"):
        autograd.get_symbol(y)


@pytest.mark.parametrize(
    ("make", "missing"),
    [
        (lambda F, x: F.FullyConnected(x), "FullyConnected: num_hidden"), (lambda F, x: F.Convolution(x), "Convolution: kernel"),
        (lambda F, x: F.Convolution(x, kernel=(3, 3)), "Convolution: num_filter"),
        (lambda F, x: F.Deconvolution(x, kernel=(3, 3)), "Deconvolution: num_filter"), (lambda F, x: F.Pooling(x), "Pooling: kernel"),
        (lambda F, x: F.Embedding(x, output_dim=3), "Embedding: input_dim"),
        (lambda F, x: F.Embedding(x, input_dim=3), "Embedding: output_dim"),
        (lambda F, x: F.RNN(x, num_layers=1, mode="lstm"), "RNN: state_size"), (lambda F, x: F.im2col(x), "im2col: kernel"),
    ],
)  # fmt: skip
def test_attributes_that_must_be_given_are_asked_for_at_once(make: Any, missing: str) -> None:
    for F, x in ((sym, sym.var("x")), (nd, nd.ones((1, 1, 3, 3)))):
        with pytest.raises(ValueError, match=f"{missing} is required"):
            make(F, x)


def test_more_attributes_that_must_be_given() -> None:
    x = sym.var("x")
    for make, missing in (
        (lambda: sym.LRN(x), "nsize"),
        (lambda: sym.UpSampling(x), "scale"),
        (lambda: sym.col2im(x), "output_size"),
    ):
        with pytest.raises(ValueError, match=f"{missing} is required"):
            make()
    assert sym.Pooling(x, global_pool=True).list_arguments() == ["x"]
    text = '{"nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "%s", "name": "n", "attrs": {}, "inputs": [[0, 0, 0]]}],'
    text += ' "arg_nodes": [0], "heads": [[1, 0, 0]]}'
    for op, missing in (("FullyConnected", "num_hidden is"), ("Convolution", "kernel is"), ("slice", "begin and end are")):
        with pytest.raises(ValueError, match=f"Error in operator n: {op}: {missing} required"):
            sym.load_json(text % op)


def test_arrays_of_numpy_are_not_called_ndarray() -> None:
    x, ones = sym.var("x"), np.ones(3)
    for mixed in (lambda: x + ones, lambda: ones - x, lambda: sym.broadcast_add(x, ones), lambda: sym.concat(x, ones)):
        with pytest.raises(TypeError, match=r"a NumPy array.*params\.get_constant"):
            mixed()
    with pytest.raises(TypeError, match=r"got a NumPy array; make one with nd\.array"):
        sym.relu(ones)  # type: ignore[type-var]  # that is the point
