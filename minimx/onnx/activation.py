"""Converters of activation functions, and of the softmax and its kin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .graph import Graph, Operand, UnsupportedError, Value, converts

ACTIVATIONS = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "softrelu": "Softplus", "softsign": "Softsign"}


@converts("Activation")
def activation(graph: Graph, op: Any, data: Value) -> Any:
    return activated(graph, op.act_type, data)


def activated(graph: Graph, name: str, data: Operand) -> str:
    if name == "log_sigmoid":
        return graph.node("Log", graph.node("Sigmoid", data))
    if name == "mish":
        return graph.node("Mul", data, graph.node("Tanh", graph.node("Softplus", data)))
    if name not in ACTIVATIONS:
        raise UnsupportedError(
            f"{graph.stem}: the activation {name!r} has no form in ONNX here; there are {', '.join(ACTIVATIONS)}"
        )
    return graph.node(ACTIVATIONS[name], data)


@converts("LeakyReLU")
def leaky_relu(graph: Graph, op: Any, data: Value, gamma: Value | None = None) -> Any:
    kind = op.act_type
    if kind == "leaky":
        return graph.node("LeakyRelu", data, alpha=float(op.slope))
    if kind == "rrelu":  # in inference the slope is the mean of those that training draws
        return graph.node("LeakyRelu", data, alpha=(op.lower_bound + op.upper_bound) / 2)
    if kind == "elu":
        return graph.node("Elu", data, alpha=float(op.slope))
    if kind == "selu":
        return graph.node("Selu", data)
    if kind == "gelu":
        inner = graph.node("Erf", graph.node("Mul", data, graph.number(math.sqrt(0.5), data)))
        half = graph.node("Mul", data, graph.number(0.5, data))
        return graph.node("Mul", half, graph.node("Add", inner, graph.number(1, data)))
    assert gamma is not None
    slope: Operand = gamma
    first = 1 if gamma.ndim == 1 and data.ndim > 1 else 0  # the axis of the data that its first axis is: channels, or examples
    beyond = data.ndim - first - gamma.ndim
    if beyond > 0 and gamma.shape != (1,):
        slope = graph.node("Unsqueeze", gamma, graph.ints(*range(gamma.ndim, gamma.ndim + beyond)))
    return graph.node("PRelu", data, slope)


@converts("hard_sigmoid")
def hard_sigmoid(graph: Graph, op: Any, data: Value) -> Any:
    return graph.node("HardSigmoid", data, alpha=float(op.alpha), beta=float(op.beta))


# ---- softmax and its kin


@converts("softmax")
def softmax(graph: Graph, op: Any, data: Value, length: Value | None = None) -> Any:
    return normalized(graph, "Softmax", op, data, data, length)


@converts("log_softmax")
def log_softmax(graph: Graph, op: Any, data: Value, length: Value | None = None) -> Any:
    return normalized(graph, "LogSoftmax", op, data, data, length)


@converts("softmin")
def softmin(graph: Graph, op: Any, data: Value, length: Value | None = None) -> Any:
    return normalized(graph, "Softmax", op, graph.node("Neg", data), data, length)


def normalized(graph: Graph, kind: str, op: Any, operand: Operand, data: Value, length: Value | None) -> str:
    if op.temperature not in (None, 1.0):
        operand = graph.node("Div", operand, graph.number(op.temperature, data))
    axis = graph.axis(op.axis, data)
    beyond: str | None = None
    if op.use_length and length is not None:
        beyond = beyond_length(graph, data, axis, length)
        lowest = graph.number(-np.inf, data)
        operand = graph.node("Where", beyond, lowest, operand)
    result = graph.node(kind, operand, axis=axis)
    if beyond is not None:
        result = graph.node("Where", beyond, graph.number(0, data), result)
    wanted = graph.outputs[0].dtype
    return result if wanted == data.dtype else graph.cast(result, wanted)


def beyond_length(graph: Graph, data: Value, axis: int, length: Value) -> str:
    """Where elements along `axis` lie beyond the lengths, which are given for all other axes."""
    places = [1] * data.ndim
    places[axis] = graph.fixed(data, axis)
    numbers = graph.array(np.arange(places[axis]).reshape(places), np.int64)
    lengths = graph.node("Unsqueeze", graph.indices(length), graph.ints(axis))
    return graph.node("GreaterOrEqual", numbers, lengths)


@converts("SoftmaxOutput")
def softmax_output(graph: Graph, op: Any, data: Value, label: Value | None = None) -> Any:
    """The label counts for the gradient only."""
    if op.multi_output or op.preserve_shape or data.ndim == 2:
        return graph.node("Softmax", data, axis=1 if op.multi_output else data.ndim - 1)
    flat = graph.node("Softmax", graph.node("Flatten", data, axis=1), axis=1)
    return graph.node("Reshape", flat, graph.shape(data.shape, flat, data.shape))


@converts("SoftmaxActivation")
def softmax_activation(graph: Graph, op: Any, data: Value) -> Any:
    return graph.node("Softmax", data, axis=1 if op.mode == "channel" else data.ndim - 1)


@converts("LinearRegressionOutput", "MAERegressionOutput", "SVMOutput")
def regression_output(graph: Graph, op: Any, data: Value, label: Value | None = None) -> Any:
    return data


@converts("LogisticRegressionOutput")
def logistic_output(graph: Graph, op: Any, data: Value, label: Value | None = None) -> Any:
    return graph.node("Sigmoid", data)
