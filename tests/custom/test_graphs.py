"""`sym.Custom` and `F.Custom`: names, shapes, files, executors, hybridized blocks."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, nd, sym
from minimx.base import ArgumentError, DTypeError, MXNetError, ShapeError

from .operators import define

VALUES = {
    "data": np.random.RandomState(0).randn(4, 3), "fc_weight": np.random.RandomState(1).randn(5, 3),
    "fc_bias": np.random.RandomState(2).randn(5), "softmax_label": np.array([0, 1, 2, 4]),
}  # fmt: skip


def classifier(own: bool = True) -> Any:
    scores = sym.FullyConnected(sym.var("data"), num_hidden=5, name="fc")
    return sym.Custom(data=scores, name="softmax", op_type="test_softmax") if own else sym.SoftmaxOutput(scores, name="softmax")


# ---- the graph


def test_names() -> None:
    graph = classifier()
    assert graph.list_arguments() == ["data", "fc_weight", "fc_bias", "softmax_label"]
    assert graph.list_outputs() == ["softmax_output"]
    running = sym.Custom(sym.var("x"), op_type="test_running", name="r")
    assert running.list_arguments() == ["x"]
    assert running.list_auxiliary_states() == ["r_calls", "r_gradients"]
    assert running.list_outputs() == ["r_same", "r_more"]
    with mx.name.NameManager():
        assert sym.Custom(op_type="test_square").list_inputs() == ["custom0_data"]


def test_shapes_follow_in_order() -> None:
    assert classifier().infer_shape(data=(4, 3)) == ([(4, 3), (5, 3), (5,), (4,)], [(4, 5)], [])
    assert classifier().infer_shape_partial(data=(0, 3)) == ([(0, 3), (5, 3), (5,), (0,)], [(0, 5)], [])
    assert classifier().infer_shape_partial() == ([(), (), (), ()], [()], [])
    running = sym.Custom(sym.var("x"), op_type="test_running")
    assert running.infer_shape(x=(2, 2)) == ([(2, 2)], [(2, 2), (2, 2)], [(1,), (1,)])
    assert running.infer_type(x="float64") == ([np.float64], [np.float64] * 2, [np.float64] * 2)


def test_shapes_that_contradict_the_description() -> None:
    with pytest.raises(ShapeError, match=r"Error in operator softmax: .*\(7,\)"):
        classifier().infer_shape(data=(4, 3), softmax_label=(7,))
    running = sym.Custom(sym.var("x"), sym.var("a"), sym.var("b"), op_type="test_running", name="r")
    with pytest.raises(DTypeError, match="Error in operator r"):
        running.infer_type(x="float64", a="float32")


def test_a_rule_that_fails_is_an_error_only_when_all_is_known() -> None:
    def infer_shape(self: Any, shapes: Any) -> Any:
        assert shapes[0][0] == 2, "the first axis must have length 2"
        return shapes, [shapes[0]]

    define("test_strict", lambda op, ins, outs: None, infer_shape=infer_shape)
    graph = sym.Custom(sym.var("x"), op_type="test_strict", name="s")
    assert graph.infer_shape_partial() == ([()], [()], [])
    with pytest.raises(MXNetError, match=r"Error in operator s: .*AssertionError: the first axis must have length 2"):
        graph.infer_shape(x=(3,))


def test_json_pickle_and_copies() -> None:
    define("test_option", lambda op, ins, outs: None, __init__=lambda self, size="1": mx.operator.CustomOpProp.__init__(self))
    graph = sym.Custom(sym.var("x"), op_type="test_option", size=(3, 3), name="o", attr={"__note__": "n"})
    text = graph.tojson()
    assert '"op": "Custom"' in text
    assert graph.list_attr() == {"op_type": "test_option", "size": "(3, 3)", "__note__": "n"}
    for again in (sym.load_json(text), pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph), copy.copy(graph)):
        assert again.tojson() == text
        assert again.infer_shape(x=(2,)) == ([(2,)], [(2,)], [])


def test_a_file_with_an_unknown_operator() -> None:
    text = classifier().tojson().replace("test_softmax", "never_registered")
    with pytest.raises(MXNetError, match=r"no operator is registered as 'never_registered'.* before it is used or loaded"):
        sym.load_json(text)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sym.Custom(sym.var("x")), "op_type is missing"),
        (lambda: sym.Custom(sym.var("x"), sym.var("y"), op_type="test_square"), "2 inputs are given; it takes data"),
        (lambda: sym.Custom(nd.ones((2,)), sym.var("y"), op_type="test_softmax"), "Symbol"),
        (lambda: sym.Custom(sym.var("x"), op_type="test_square", out=nd.ones((2,))), "out= receives a value"),
    ],
)
def test_wrong_calls(call: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        call()


def test_a_function_of_sym_computes_with_arrays() -> None:
    assert sym.Custom(nd.array([3]), op_type="test_square").asscalar() == 9


# ---- executors


def bound(graph: Any, **how: Any) -> Any:
    executor = graph.simple_bind(mx.cpu(), data=(4, 3), **how)
    for name, value in VALUES.items():
        executor.arg_dict[name][:] = value
    return executor


@pytest.mark.parametrize("grad_req", ["write", "add"])
def test_an_output_layer_equals_softmax_output(grad_req: str) -> None:
    mine, theirs = bound(classifier(), grad_req=grad_req), bound(classifier(own=False), grad_req=grad_req)
    for executor in (mine, theirs):
        for _ in range(2):
            executor.forward(is_train=True)
            executor.backward()
    for one, other in zip(mine.outputs + mine.grad_arrays[:3], theirs.outputs + theirs.grad_arrays[:3]):
        np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())


def test_one_that_is_no_output_layer_needs_head_gradients() -> None:
    executor = sym.Custom(sym.var("x"), op_type="test_square", name="s").simple_bind(mx.cpu(), x=(2,))
    executor.forward(is_train=True, x=nd.array([1, 2]))
    with pytest.raises(MXNetError, match="output s is no loss, so its gradient is needed"):
        executor.backward()
    executor.backward(nd.array([1, 10]))
    assert executor.grad_dict["x"].asnumpy().tolist() == [2, 40]


def test_an_executor_has_one_instance_and_keeps_states() -> None:
    made: list[Any] = []

    def forward(op: Any, in_data: Any, out_data: Any) -> None:
        op.kept = 1 if op.kept is None else op.kept + 1
        out_data[0][:] = op.kept

    def create_operator(self: Any, *given: Any) -> Any:
        made.append(create(self, *given))
        return made[-1]

    create = define("test_counter", forward).create_operator
    define("test_counter", forward, create_operator=create_operator)
    graph = sym.Custom(sym.var("x"), op_type="test_counter")
    first, second = graph.simple_bind(mx.cpu(), x=(1,)), graph.simple_bind(mx.cpu(), x=(1,))
    assert [each.forward()[0].asscalar() for each in (first, first, second, first)] == [1, 2, 1, 3]
    assert len(made) == 2


def test_states_of_an_executor() -> None:
    graph = sym.Custom(sym.var("x"), op_type="test_running", name="r")
    executor = graph.simple_bind(mx.cpu(), x=(2,))
    for step in (1, 2, 3):
        executor.forward(is_train=True, x=nd.array([1, 2]))
        executor.backward([nd.array([1, 1]), nd.array([0, 2])])
        assert [each.asscalar() for each in executor.aux_arrays] == [step, step]
        assert executor.grad_dict["x"].asnumpy().tolist() == [1, 21]


def test_a_monitor_sees_it() -> None:
    seen: list[str] = []
    executor = bound(classifier())
    executor.set_monitor_callback(lambda name, array: seen.append(name), monitor_all=True)
    executor.forward()
    assert seen[-4:] == ["fc_output", "softmax_data", "softmax_label", "softmax_label"] or seen[-1] == "softmax_output"


def test_inside_a_loop_of_a_graph() -> None:
    def body(each: Any, total: Any) -> Any:
        total = total + sym.Custom(each, op_type="test_square")
        return total, total

    outputs, last = sym.contrib.foreach(body, sym.var("data"), sym.var("start"))
    executor = sym.Group([outputs, last]).bind(
        mx.cpu(), {"data": nd.array([[1], [2], [3]]), "start": nd.zeros((1,))}, {"data": nd.zeros((3, 1))}
    )
    assert [each.asnumpy().ravel().tolist() for each in executor.forward(is_train=True)] == [[1, 5, 14], [14]]
    executor.backward([nd.zeros((3, 1)), nd.ones((1,))])
    assert executor.grad_dict["data"].asnumpy().ravel().tolist() == [2, 4, 6]


# ---- blocks


class Classifier(gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.scores = gluon.nn.Dense(5)

    def hybrid_forward(self, F: Any, x: Any, label: Any) -> Any:
        return F.Custom(self.scores(x), label, op_type="test_softmax", name="softmax")


def test_hybridized_exported_and_imported(tmp_path: Path) -> None:
    block = Classifier()
    block.initialize(mx.init.Xavier())
    x, label = nd.array(VALUES["data"]), nd.array(VALUES["softmax_label"])
    results = []
    for active in (False, True):
        block.hybridize(active)
        for batch in (4, 3):  # another shape, another instance
            with autograd.record():
                y = block(x[:batch], label[:batch])
            y.backward()
            results.append((y.asnumpy(), block.scores.weight.grad().asnumpy()))
    for (value, gradient), (other, other_gradient) in zip(results[:2], results[2:]):
        np.testing.assert_array_equal(value, other)
        np.testing.assert_array_equal(gradient, other_gradient)
    path = str(tmp_path / "net")
    block.export(path)
    again = gluon.SymbolBlock.imports(f"{path}-symbol.json", ["data0", "data1"], f"{path}-0000.params")
    np.testing.assert_array_equal(again(x, label).asnumpy(), results[0][0])


class Counting(gluon.HybridBlock):
    def __init__(self) -> None:
        super().__init__()
        self.calls = self.params.get("calls", shape=(1,), init="zeros", grad_req="null")
        self.gradients = self.params.get("gradients", shape=(1,), init="zeros", grad_req="null")

    def hybrid_forward(self, F: Any, x: Any, calls: Any, gradients: Any) -> Any:
        return F.Custom(x, calls, gradients, op_type="test_running")


@pytest.mark.parametrize("active", [False, True])
def test_states_of_a_block(active: bool) -> None:
    block = Counting()
    block.initialize()
    block.hybridize(active)
    x = nd.ones((2,))
    x.attach_grad()
    for step in (1, 2):
        with autograd.record():
            _, more = block(x)
        more.backward()
        assert more.asnumpy().tolist() == [1 + step] * 2
        assert (block.calls.data().asscalar(), block.gradients.data().asscalar()) == (step, step)


@pytest.mark.parametrize("flags", [{}, {"static_alloc": True, "static_shape": True}])
def test_each_call_of_a_hybridized_block_has_an_instance_of_its_own(flags: dict[str, bool]) -> None:
    def forward(op: Any, in_data: Any, out_data: Any) -> None:
        op.kept = in_data[0].copy()
        out_data[0][:] = in_data[0]

    define("test_own", forward, lambda op, heads, grads: grads[0].__setitem__(slice(None), op.kept))
    block = gluon.nn.HybridLambda(lambda F, x: F.Custom(x, op_type="test_own"))
    block.hybridize(**flags)
    x, y = nd.array([1]), nd.array([2])
    x.attach_grad()
    y.attach_grad()
    with autograd.record():
        total = block(x) + block(y)
    total.backward()
    assert (x.grad.asscalar(), y.grad.asscalar()) == (1, 2)


def test_a_graph_with_one_has_no_program() -> None:
    block = Classifier()
    block.initialize()
    block.hybridize()
    with pytest.raises(MXNetError, match="it has no program"):
        block.program(nd.ones((2, 3)), nd.zeros((2,)))
