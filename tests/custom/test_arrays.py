"""`nd.Custom`: values, gradients, states, keywords, and what descriptions may get wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, nd
from minimx.base import ArgumentError, DeviceError, DTypeError, MXNetError, ShapeError
from minimx.operator import CustomOp, CustomOpProp, register

from .operators import define

# ---- values and gradients


def test_value_and_gradient() -> None:
    x = nd.array([1, 2, 3])
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, op_type="test_square")
        z = (y * y).sum()
    z.backward()
    assert y.asnumpy().tolist() == [1, 4, 9]
    assert x.grad.asnumpy().tolist() == [4, 32, 108]


def test_gradients_are_added_and_overwritten_as_the_leaf_says() -> None:
    for req, wanted in (("write", 2.0), ("add", 4.0)):
        x = nd.ones((2,))
        x.attach_grad(req)
        for _ in range(2):
            with autograd.record():
                y = nd.Custom(x, op_type="test_square")
            y.backward()
        assert x.grad.asnumpy().tolist() == [wanted] * 2


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32"])
def test_dtypes_are_those_of_the_data(dtype: str) -> None:
    y = nd.Custom(nd.array([1, 2, 3], dtype=dtype), op_type="test_square")
    assert y.dtype == np.dtype(dtype)
    assert y.asnumpy().tolist() == [1, 4, 9]


def test_an_array_without_elements() -> None:
    x = nd.array(np.zeros((0, 3), np.float32))
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, op_type="test_square")
    y.backward()
    assert y.shape == x.grad.shape == (0, 3)


def test_a_view_is_read_where_it_lies() -> None:
    x = nd.array([[1, 2], [3, 4]])
    assert nd.Custom(x[1], op_type="test_square").asnumpy().tolist() == [9, 16]
    assert nd.Custom(x.T, op_type="test_square").asnumpy().tolist() == [[1, 9], [4, 16]]


def test_inputs_by_name_and_by_position() -> None:
    data, label = nd.array([[1, 2]]), nd.array([1])
    calls = [
        nd.Custom(data, label, op_type="test_softmax"),
        nd.Custom(data=data, label=label, op_type="test_softmax", name="ignored"),
        nd.Custom(data, label=label, op_type="test_softmax"),
    ]
    for each in calls:
        np.testing.assert_allclose(each.asnumpy(), [[0.26894143, 0.7310586]], rtol=1e-6)


def test_an_output_layer_ignores_what_comes_from_above() -> None:
    data = nd.array([[1, 2]])
    data.attach_grad()
    with autograd.record():
        loss = 100 * nd.Custom(data, nd.array([1]), op_type="test_softmax")
    loss.backward()
    np.testing.assert_allclose(data.grad.asnumpy(), [[0.26894143, -0.26894143]], rtol=1e-5)


def test_several_outputs_and_states() -> None:
    x, calls, gradients = nd.array([1, 2]), nd.zeros((1,)), nd.zeros((1,))
    x.attach_grad()
    for step in (1, 2):
        with autograd.record():
            same, more = nd.Custom(x, calls, gradients, op_type="test_running")
        more.backward()
        assert same.asnumpy().tolist() == [1, 2]
        assert more.asnumpy().tolist() == [1 + step, 2 + step]
        assert x.grad.asnumpy().tolist() == [10, 10]
        assert (calls.asscalar(), gradients.asscalar()) == (step, step)


def test_a_state_that_is_part_of_an_array() -> None:
    states = nd.zeros((2, 1))
    nd.Custom(nd.ones((2,)), states[0], states[1], op_type="test_running")
    assert states.asnumpy().tolist() == [[1], [0]]


def test_a_gradient_for_one_of_two_inputs() -> None:
    seen: list[Any] = []

    def backward(op: Any, out_grad: Any, in_grad: Any) -> None:
        seen.append(op.req)
        in_grad[1][:] = 3 * out_grad[0]

    define("test_one_of_two", lambda op, ins, outs: outs[0].__setitem__(slice(None), ins[0] + ins[1]), backward, ("a", "b"))
    a, b = nd.ones((2,)), nd.ones((2,))
    b.attach_grad()
    with autograd.record():
        y = nd.Custom(a, b, op_type="test_one_of_two")
    y.backward()
    assert b.grad.asnumpy().tolist() == [3, 3]
    assert seen == [["null", "write"]]


def test_what_forward_keeps_is_there_for_backward() -> None:
    def forward(op: Any, in_data: Any, out_data: Any) -> None:
        op.kept = in_data[0].asnumpy() > 0
        out_data[0][:] = in_data[0].asnumpy() * op.kept

    def backward(op: Any, out_grad: Any, in_grad: Any) -> None:
        in_grad[0][:] = out_grad[0].asnumpy() * op.kept

    define("test_kept", forward, backward)
    x = nd.array([-1, 2])
    x.attach_grad()
    with autograd.record():
        first = nd.Custom(x, op_type="test_kept")
        second = nd.Custom(-x, op_type="test_kept")  # another call, another instance
        both = first + second
    both.backward()
    assert x.grad.asnumpy().tolist() == [-1, 1]


def test_autograd_inside() -> None:
    def forward(op: Any, in_data: Any, out_data: Any) -> None:
        assert not autograd.is_recording()
        op.kept = in_data[0].copy()
        op.kept.attach_grad()
        with autograd.record():
            op.result = nd.Custom(op.kept, op_type="test_square").exp()
        out_data[0][:] = op.result

    def backward(op: Any, out_grad: Any, in_grad: Any) -> None:
        op.result.backward(out_grad[0])
        in_grad[0][:] = op.kept.grad

    define("test_inside", forward, backward)
    x = nd.array([0.5, 1])
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, op_type="test_inside")
    y.backward()
    np.testing.assert_allclose(y.asnumpy(), np.exp([0.25, 1]), rtol=1e-6)
    np.testing.assert_allclose(x.grad.asnumpy(), np.exp([0.25, 1]) * [1, 2], rtol=1e-6)


def test_the_mode_is_that_of_the_call() -> None:
    modes: list[Any] = []

    def forward(op: Any, in_data: Any, out_data: Any) -> None:
        modes.append((op.is_train, autograd.is_training(), mx.current_context()))

    define("test_mode", forward)
    x = nd.ones((1,), ctx=mx.cpu(1))
    with autograd.train_mode():
        y = nd.Custom(x, op_type="test_mode")
    with autograd.predict_mode():
        y.wait_to_read()
    nd.Custom(nd.ones((1,)), op_type="test_mode").wait_to_read()
    assert modes == [(True, True, mx.cpu(1)), (False, False, mx.cpu(0))]


def test_no_inputs() -> None:
    define(
        "test_no_inputs",
        lambda op, ins, outs: outs[0].__setitem__(slice(None), np.arange(3)),
        arguments=(),
        __init__=lambda self, length: CustomOpProp.__init__(self) or setattr(self, "length", int(length)),
        infer_shape=lambda self, shapes: ([], [[self.length]], []),
        infer_type=lambda self, dtypes: ([], [np.float32], []),
    )
    with autograd.record():
        assert nd.Custom(op_type="test_no_inputs", length=3).asnumpy().tolist() == [0, 1, 2]


def test_out_receives_the_outputs() -> None:
    target = nd.zeros((2,))
    assert nd.Custom(nd.array([2, 3]), op_type="test_square", out=target) is target
    assert target.asnumpy().tolist() == [4, 9]
    with pytest.raises(ShapeError, match=r"out has shape \(3,\), the result \(2,\)"):
        nd.Custom(nd.array([2, 3]), op_type="test_square", out=nd.zeros((3,)))


def test_what_is_not_assigned_is_zero() -> None:
    define("test_nothing", lambda op, ins, outs: None)
    assert nd.Custom(nd.ones((2,)), op_type="test_nothing").asnumpy().tolist() == [0, 0]


@pytest.mark.parametrize(("req", "wanted"), [("write", 5), ("inplace", 5), ("add", 6), ("null", 1)])
def test_assign(req: str, wanted: float) -> None:
    for source in (nd.array([5, 5]), np.array([5, 5]), 5):
        target = nd.ones((2,))
        CustomOp().assign(target, req, source)
        assert target.asnumpy().tolist() == [wanted] * 2
    with pytest.raises(ArgumentError, match="req is 'overwrite'"):
        CustomOp().assign(nd.ones((2,)), "overwrite", 5)


# ---- keywords and descriptions


def test_keywords_arrive_as_strings() -> None:
    seen: list[dict[str, Any]] = []

    @register("test_keywords")
    class Prop(CustomOpProp):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__()
            seen.append(kwargs)

    nd.Custom(nd.ones((1,)), op_type="test_keywords", a=True, b=(3, 3), c=None, d=np.float32(0.5), e="x", f=1e-6)
    assert seen == [{"a": "True", "b": "(3, 3)", "c": "None", "d": "0.5", "e": "x", "f": "1e-06"}]


def test_what_create_operator_gets() -> None:
    seen: list[Any] = []

    def create_operator(self: Any, *given: Any) -> CustomOp:
        seen.append(given)
        return CustomOp()

    define(
        "test_create", None, create_operator=create_operator, list_auxiliary_states=lambda self: ["state"],
        infer_shape=lambda self, shapes: (shapes, shapes, [[7]]),
    )  # fmt: skip
    nd.Custom(nd.ones((2, 3)), nd.ones((7,)), op_type="test_create")
    assert seen == [(mx.cpu(0), [[2, 3], [7]], [np.float32, np.float32])]


def test_a_name_can_be_taken_over(caplog: pytest.LogCaptureFixture) -> None:
    define("test_taken", lambda op, ins, outs: outs[0].__setitem__(slice(None), 1))
    define("test_taken", lambda op, ins, outs: outs[0].__setitem__(slice(None), 2))
    assert not caplog.records  # the same class again: a notebook's cell that ran twice
    assert nd.Custom(nd.ones((1,)), op_type="test_taken").asscalar() == 2
    register("test_taken")(CustomOpProp)
    assert "CustomOpProp replaces test_takenProp as the custom operator 'test_taken'" in caplog.text


@pytest.mark.parametrize("wrong", [None, "", 3, int])
def test_register_wants_a_name(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match=r"a name is wanted, as in @register\('square'\)"):
        register(wrong)


def test_register_wants_a_description() -> None:
    for wrong in (CustomOp, 3, CustomOpProp()):
        with pytest.raises(ArgumentError, match="a subclass of CustomOpProp is wanted"):
            register("test_wrong")(wrong)  # type: ignore[type-var]


X = nd.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nd.Custom(X), ArgumentError, "op_type is missing"),
        (lambda: nd.Custom(X, op_type=3), ArgumentError, "no operator is registered as 3; there are .*custom_op.*@mx.operator.register"),
        (lambda: nd.Custom(X, op_type="absent"), ArgumentError, "no operator is registered as 'absent'"),
        (lambda: nd.Custom(op_type="test_square"), ArgumentError, "Custom test_square: input 'data' is missing; it takes data"),
        (lambda: nd.Custom(X, op_type="test_softmax"), ArgumentError, "input 'label' is missing; it takes data, label"),
        (lambda: nd.Custom(X, X, op_type="test_square"), ArgumentError, "2 inputs are given; it takes data"),
        (lambda: nd.Custom(x=X, op_type="test_square"), ArgumentError, "no input is called 'x'; it takes data"),
        (lambda: nd.Custom(X, data=X, op_type="test_square"), ArgumentError, "data is given twice"),
        (lambda: nd.Custom(np.ones(3), op_type="test_square"), ArgumentError, "data must be an NDArray, got a NumPy array"),
        (lambda: nd.Custom(X, mx.sym.var("label"), op_type="test_softmax"), ArgumentError, "is a Symbol"),
        (lambda: nd.Custom(X, op_type="test_square", a=1), ArgumentError, r"SquareProp\(\) raised TypeError: .*'a'"),
        (lambda: nd.Custom(X, nd.ones((3,)), op_type="test_softmax"), ShapeError, r"label has shape \(3,\), infer_shape wants \(2,\)"),
        (
            lambda: nd.Custom(X, nd.ones((1,)), nd.ones((1,), dtype="int32"), op_type="test_running"),
            DTypeError,
            "gradients is int32, infer_type wants float32",
        ),
        (lambda: nd.Custom(X, nd.ones((2,), ctx=mx.cpu(1)), op_type="test_softmax").asnumpy(), None, ""),
    ],
)  # fmt: skip
def test_wrong_calls(call: Any, error: Any, message: str) -> None:
    if error is None:
        call()  # devices of the host may be mixed, as everywhere
        return
    with pytest.raises(error, match=message):
        call()


def test_devices_cannot_be_mixed() -> None:
    with mx.device.simulate_gpus(1):
        with pytest.raises(DeviceError, match=r"operands are on cpu\(0\) and gpu\(0\)"):
            nd.Custom(X, nd.ones((2,), ctx=mx.gpu(0)), op_type="test_softmax")


def raising(*args: Any, **kwargs: Any) -> Any:
    raise LookupError("a fault of the user")


@pytest.mark.parametrize(
    ("methods", "error", "message"),
    [
        ({"list_arguments": lambda self: "data"}, ArgumentError, "list_arguments must give a list of names, got 'data'"),
        ({"list_outputs": lambda self: [1]}, ArgumentError, "list_outputs must give a list of names"),
        ({"list_auxiliary_states": raising}, ArgumentError, "list_auxiliary_states raised LookupError: a fault of the user"),
        ({"infer_shape": raising}, ArgumentError, "infer_shape raised LookupError: a fault of the user"),
        ({"infer_shape": lambda self, shapes: None}, ArgumentError, "infer_shape must give 2 or 3 lists"),
        ({"infer_shape": lambda self, shapes: (shapes, [])}, ArgumentError, "infer_shape gives 0 outputs, there are 1"),
        ({"infer_shape": lambda self, shapes: (shapes, [[2.5]])}, ArgumentError, r"infer_shape gives \[2.5\] where a shape is wanted"),
        ({"infer_shape": lambda self, shapes: (shapes, [3])}, ArgumentError, "infer_shape gives 3 where a shape is wanted"),
        ({"infer_shape": lambda self, shapes: (shapes, [[]])}, ShapeError, r"infer_shape gives \[\] for output"),
        ({"infer_shape": lambda self, shapes: (shapes, [[-2]])}, ShapeError, r"infer_shape gives \(-2,\) for output"),
        ({"infer_shape": lambda self, shapes: ([[9]], shapes)}, ShapeError, r"data has shape \(2, 3\), infer_shape wants \(9,\)"),
        ({"infer_type": lambda self, types: (types, ["no"], [])}, DTypeError, "dtype 'no' is not supported"),
        ({"infer_type": lambda self, types: (types, [None])}, DTypeError, "does not say which dtype output has"),
        ({"declare_backward_dependency": lambda self, *given: [7]}, ArgumentError, r"0 to 2, got \[7\]"),
        ({"create_operator": raising}, ArgumentError, "create_operator raised LookupError"),
        ({"create_operator": lambda self, *given: None}, ArgumentError, "create_operator must give a CustomOp, got NoneType"),
    ],
)  # fmt: skip
def test_wrong_descriptions(methods: dict[str, Any], error: type[Exception], message: str) -> None:
    define("test_wrong_description", lambda op, ins, outs: None, **methods)
    with pytest.raises(error, match=message):
        nd.Custom(X, op_type="test_wrong_description")


# ---- what backward may look at


def test_backward_sees_only_what_it_declared() -> None:
    def backward(op: Any, out_grad: Any, in_grad: Any) -> None:
        assert out_grad[0].shape == ()
        in_grad[0][:] = out_grad[0] + 1

    define("test_unseen", lambda op, ins, outs: None, backward, declare_backward_dependency=lambda self, heads, ins, outs: [])
    x = nd.ones((2,))
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, op_type="test_unseen")
    y.backward()
    with pytest.raises(MXNetError, match="backward looks at an array that declare_backward_dependency did not name"):
        x.grad.asnumpy()


def test_a_value_that_backward_does_not_need_is_not_kept() -> None:
    define(
        "test_not_kept", lambda op, ins, outs: None, lambda op, heads, grads: None,
        declare_backward_dependency=lambda self, heads, ins, outs: heads,
    )  # fmt: skip
    x = nd.ones((2,))
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x * 2, op_type="test_not_kept")
    assert [array.var.value for array in (*y.node.inputs, *y.node.outputs)] == [None, None]


def test_gradients_of_gradients_are_refused_when_they_are_asked_for() -> None:
    x = nd.array([3])
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x, op_type="test_square")
        slope = autograd.grad(y, x, create_graph=True)
    assert slope.asscalar() == 6
    with pytest.raises(MXNetError, match="what its backward computes has no gradient"):
        slope.backward()


def test_a_computed_state_cannot_be_written() -> None:
    x = nd.zeros((1,))
    x.attach_grad()
    with autograd.record(), pytest.raises(MXNetError, match="Inplace operations"):
        nd.Custom(nd.ones((1,)), x + 1, nd.zeros((1,)), op_type="test_running")


def test_a_state_that_has_a_gradient_never_gets_one() -> None:
    """As a parameter has that a block passes as a state; with MXNet, too, it is only written."""
    x, calls = nd.array([1, 2]), nd.zeros((1,))
    x.attach_grad()
    calls.attach_grad()
    calls.grad[:] = 7
    with autograd.record():
        _, more = nd.Custom(x, calls, nd.zeros((1,)), op_type="test_running")
    more.backward()
    assert x.grad.asnumpy().tolist() == [10, 10]
    assert (calls.asscalar(), calls.grad.asscalar(), calls._fresh_grad) == (1, 7, False)


def test_get_symbol() -> None:
    x = nd.ones((2,))
    x.attach_grad()
    with autograd.record():
        y = nd.Custom(x * 2, op_type="test_square")
    graph = autograd.get_symbol(y)
    assert graph.list_arguments() == ["var0"]
    assert graph.eval(var0=nd.array([1, 2]))[0].asnumpy().tolist() == [4, 16]
