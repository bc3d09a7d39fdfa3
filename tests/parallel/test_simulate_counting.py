"""Floating-point operations, counted one by one by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minimx import nd
from minimx.op import Spec
from minimx.ops.binary import ElementwiseAdd
from minimx.parallel.simulate import TaskGraph, Work, record
from minimx.parallel.simulate.counting import flops

# Of 8 images: 6 channels of 18 x 18 numbers, each a sum over 4 channels and 3 x 3 places.
CONVOLUTION = 2 * (8 * 6 * 18 * 18) * (4 * 3 * 3)


def recorded(function: Any) -> TaskGraph:
    with record() as graph:
        function().wait_to_read()
    return graph


@pytest.mark.parametrize(
    ("function", "shapes", "how", "expected"),
    [
        (nd.dot, [(64, 300), (300, 200)], {}, 2 * 64 * 300 * 200),
        (nd.FullyConnected, [(64, 30, 10), (200, 300)], {"no_bias": True, "num_hidden": 200}, 2 * 64 * 300 * 200),
        (nd.batch_dot, [(5, 60, 100), (5, 100, 80)], {}, 5 * 2 * 60 * 100 * 80),
        (nd.Convolution, [(8, 4, 20, 20), (6, 4, 3, 3)], {"no_bias": True, "kernel": (3, 3), "num_filter": 6}, CONVOLUTION),
        (
            nd.Convolution, [(8, 4, 20, 20), (6, 2, 3, 3)], {"no_bias": True, "kernel": (3, 3), "num_filter": 6, "num_group": 2},
            CONVOLUTION // 2,
        ),
        (nd.Deconvolution, [(8, 6, 18, 18), (6, 4, 3, 3)], {"kernel": (3, 3), "num_filter": 4}, CONVOLUTION),
    ],
)  # fmt: skip
def test_products_and_convolutions(function: Any, shapes: list[tuple[int, ...]], how: dict[str, Any], expected: int) -> None:
    operands = [nd.ones(shape) for shape in shapes]
    graph = recorded(lambda: function(*operands, **how))
    (found,) = [task for task in graph if isinstance(task, Work) and task.flops]
    assert found.flops == pytest.approx(expected)


def test_gradients_of_a_convolution_take_as_much_each() -> None:
    from minimx import autograd

    data, weight = nd.ones((8, 4, 20, 20)), nd.ones((6, 4, 3, 3))
    for array in (data, weight):
        array.attach_grad()

    def step() -> Any:
        with autograd.record():
            y = nd.Convolution(data, weight, no_bias=True, kernel=(3, 3), num_filter=6)
        y.backward()
        return weight.grad

    large = [task.flops for task in recorded(step) if isinstance(task, Work) and task.flops > 1e6]
    assert large == pytest.approx([CONVOLUTION] * 3, rel=0.01)  # a part shares its task with small neighbours


def test_a_recurrent_layer_uses_its_weights_in_every_step() -> None:
    steps, batch, inputs, hidden = 7, 32, 20, 50
    size = hidden * (inputs + hidden + 2)
    parameters, state = nd.ones((size,)) / 100, nd.zeros((1, batch, hidden))
    graph = recorded(
        lambda: nd.RNN(nd.ones((steps, batch, inputs)), parameters, state, state_size=hidden, num_layers=1, mode="rnn_tanh")
    )
    assert max(getattr(task, "flops", 0.0) for task in graph) == pytest.approx(2 * steps * batch * size)


def test_anything_else_is_one_operation_a_number() -> None:
    spec = Spec.of((3, 4), np.dtype("float32"))
    assert flops(ElementwiseAdd(), [spec, spec], [spec]) == 12
    assert flops(ElementwiseAdd(), [], []) == 0
