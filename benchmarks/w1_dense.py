"""W1: three small layers, Dense 512-256-128-2, forward, one sample at a time. Little arithmetic: what a call of a layer costs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from harness import Unit, main, peer, timed

SIZES = (512, 256, 128, 2)
COUNT = 500
STATIC = {"static_alloc": True, "static_shape": True}


def loop(net: Callable[[Any], Any], x: Any, finish: Callable[[], Any] = lambda: None) -> Unit:
    """The unit of work: calls of `net`, one after the other, and then `finish`."""

    def run() -> None:
        for _ in range(COUNT):
            net(x)
        finish()

    return lambda: {"a call": timed(run) / COUNT}


def in_gluon(mx: Any, how: dict[str, bool] | None) -> Unit:
    """The unit of work in MXNet's API, hybridized with the options `how` unless that is None."""
    nn = mx.gluon.nn
    net = nn.HybridSequential()
    for units in SIZES[1:-1]:
        net.add(nn.Dense(units, activation="relu"))
    net.add(nn.Dense(SIZES[-1]))
    net.initialize()
    if how is not None:
        net.hybridize(**how)
    x = mx.nd.random.normal(shape=(1, SIZES[0]))
    net(x).wait_to_read()
    return loop(net, x, mx.nd.waitall)


@peer("minimx", "eager")
def _() -> Unit:
    import minimx as mx

    return in_gluon(mx, None)


@peer("minimx", "hybridized")
def _() -> Unit:
    import minimx as mx

    return in_gluon(mx, {})


@peer("minimx", "static")
def _() -> Unit:
    import minimx as mx

    return in_gluon(mx, STATIC)


@peer("mxnet", "eager", OMP_NUM_THREADS="1")
def _() -> Unit:
    import mxnet as mx

    return in_gluon(mx, None)


@peer("mxnet", "hybridized", OMP_NUM_THREADS="1")
def _() -> Unit:
    import mxnet as mx

    return in_gluon(mx, {})


@peer("mxnet", "static", OMP_NUM_THREADS="1")
def _() -> Unit:
    import mxnet as mx

    return in_gluon(mx, STATIC)


def in_torch() -> tuple[Any, Any]:
    """The network and its input in PyTorch."""
    import torch
    from torch import nn

    layers: list[Any] = []
    for inputs, units in itertools.pairwise(SIZES):
        layers += [nn.Linear(inputs, units), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).eval(), torch.randn(1, SIZES[0])


@peer("torch", "eager", OMP_NUM_THREADS="1")
def _() -> Unit:
    return loop(*in_torch())


@peer("torch", "inference", OMP_NUM_THREADS="1")
def _() -> Unit:
    import torch

    net, x = in_torch()
    return loop(torch.inference_mode()(net), x)


@peer("torch", "traced", OMP_NUM_THREADS="1")
def _() -> Unit:
    import torch

    net, x = in_torch()
    with torch.no_grad():
        traced = torch.jit.freeze(torch.jit.trace(net, x))
    return loop(torch.inference_mode()(traced), x)


def weights() -> list[tuple[Any, Any]]:
    """Weight and bias of each layer, as NumPy arrays."""
    import numpy as np

    random = np.random.default_rng(0)
    return [
        (random.standard_normal((units, inputs), np.float32) / inputs**0.5, np.zeros(units, np.float32))
        for inputs, units in itertools.pairwise(SIZES)
    ]


@peer("jax", "jit")
def _() -> Unit:
    import jax
    import jax.numpy as jnp

    @jax.jit
    def net(layers: Any, x: Any) -> Any:
        for weight, bias in layers[:-1]:
            x = jnp.maximum(x @ weight.T + bias, 0)
        weight, bias = layers[-1]
        return x @ weight.T + bias

    layers = [(jnp.asarray(weight), jnp.asarray(bias)) for weight, bias in weights()]
    last: list[Any] = [None]

    def call(x: Any) -> None:
        last[0] = net(layers, x)

    return loop(call, jnp.ones((1, SIZES[0])), lambda: last[0].block_until_ready())


@peer("onnxruntime")
def _() -> Unit:
    import numpy as np
    import onnx
    import onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper

    nodes, values, name = [], [], "x"
    for number, (weight, bias) in enumerate(weights()):
        values += [numpy_helper.from_array(weight, f"w{number}"), numpy_helper.from_array(bias, f"b{number}")]
        nodes.append(helper.make_node("Gemm", [name, f"w{number}", f"b{number}"], [f"dense{number}"], transB=1))
        name = f"dense{number}"
        if number < len(SIZES) - 2:
            nodes.append(helper.make_node("Relu", [name], [f"relu{number}"]))
            name = f"relu{number}"
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, SIZES[0]))]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (1, SIZES[-1]))]
    model = helper.make_model(
        helper.make_graph(nodes, "dense", inputs, outputs, values), opset_imports=[helper.make_opsetid("", 17)]
    )
    model.ir_version = min(onnx.IR_VERSION, 10)
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return loop(lambda x: session.run(None, {"x": x}), np.ones((1, SIZES[0]), np.float32))


@peer("numpy")
def _() -> Unit:
    import numpy as np

    layers = weights()

    def net(x: Any) -> Any:
        for number, (weight, bias) in enumerate(layers):
            x = x.dot(weight.T)
            x += bias
            if number < len(layers) - 1:
                np.maximum(x, 0, out=x)
        return x

    return loop(net, np.ones((1, SIZES[0]), np.float32))


if __name__ == "__main__":
    main("W1 three small layers, one sample", __file__)
