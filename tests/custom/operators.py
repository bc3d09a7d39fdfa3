"""Operators that the tests of this folder write as a user would, registered under names of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

import minimx as mx
from minimx.operator import CustomOp, CustomOpProp, register


class Square(CustomOp):
    """x * x with operators of nd."""

    def forward(self, is_train: bool, req: list[str], in_data: list[Any], out_data: list[Any], aux: list[Any]) -> None:
        self.assign(out_data[0], req[0], in_data[0] * in_data[0])

    def backward(
        self, req: list[str], out_grad: list[Any], in_data: list[Any], out_data: list[Any], in_grad: list[Any], aux: list[Any]
    ) -> None:
        self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])


@register("test_square")
class SquareProp(CustomOpProp):
    def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> CustomOp:
        return Square()


class Softmax(CustomOp):
    """An output layer in NumPy: probabilities, whose gradient is that of the cross entropy with the labels."""

    def forward(self, is_train: bool, req: list[str], in_data: list[Any], out_data: list[Any], aux: list[Any]) -> None:
        scores = in_data[0].asnumpy()
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        self.assign(out_data[0], req[0], mx.nd.array(powers / powers.sum(axis=1, keepdims=True)))

    def backward(
        self, req: list[str], out_grad: list[Any], in_data: list[Any], out_data: list[Any], in_grad: list[Any], aux: list[Any]
    ) -> None:
        labels = in_data[1].asnumpy().astype(int)
        gradient = out_data[0].asnumpy()
        gradient[np.arange(len(labels)), labels] -= 1
        self.assign(in_grad[0], req[0], mx.nd.array(gradient))


@register("test_softmax")
class SoftmaxProp(CustomOpProp):
    def __init__(self) -> None:
        super().__init__(need_top_grad=False)

    def list_arguments(self) -> list[str]:
        return ["data", "label"]

    def infer_shape(self, in_shape: list[Any]) -> Any:
        return [in_shape[0], [in_shape[0][0]]], [in_shape[0]], []

    def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> CustomOp:
        return Softmax()


class Running(CustomOp):
    """x and x + its calls so far; the states count the calls of forward and of backward."""

    def forward(self, is_train: bool, req: list[str], in_data: list[Any], out_data: list[Any], aux: list[Any]) -> None:
        aux[0] += 1
        self.assign(out_data[0], req[0], in_data[0])
        self.assign(out_data[1], req[1], in_data[0] + aux[0])

    def backward(
        self, req: list[str], out_grad: list[Any], in_data: list[Any], out_data: list[Any], in_grad: list[Any], aux: list[Any]
    ) -> None:
        aux[1][:] = aux[1] + 1
        self.assign(in_grad[0], req[0], out_grad[0] + 10 * out_grad[1])


@register("test_running")
class RunningProp(CustomOpProp):
    def list_outputs(self) -> list[str]:
        return ["same", "more"]

    def list_auxiliary_states(self) -> list[str]:
        return ["calls", "gradients"]

    def infer_shape(self, in_shape: list[Any]) -> Any:
        return in_shape, [in_shape[0]] * 2, [[1]] * 2

    def create_operator(self, ctx: Any, in_shapes: Any, in_dtypes: Any) -> CustomOp:
        return Running()


class Call(CustomOp):
    """Whatever the test at hand wants: functions that are called with this object and the lists of arrays."""

    def __init__(self, forward: Any, backward: Any) -> None:
        self.functions = forward, backward
        self.kept: Any = None

    def forward(self, is_train: bool, req: list[str], in_data: list[Any], out_data: list[Any], aux: list[Any]) -> None:
        self.is_train = is_train
        self.functions[0](self, in_data, out_data)

    def backward(
        self, req: list[str], out_grad: list[Any], in_data: list[Any], out_data: list[Any], in_grad: list[Any], aux: list[Any]
    ) -> None:
        self.req = req
        self.functions[1](self, out_grad, in_grad)


def define(
    name: str, forward: Any, backward: Any = None, arguments: tuple[str, ...] = ("data",), **methods: Any
) -> type[CustomOpProp]:
    """Register an operator that calls the two functions; further `methods` override those of the description."""

    def create_operator(self: Any, ctx: Any, in_shapes: Any, in_dtypes: Any) -> CustomOp:
        return Call(forward, backward)

    own = {"list_arguments": lambda self: list(arguments), "create_operator": create_operator, **methods}
    return register(name)(type(f"{name}Prop", (CustomOpProp,), own))
