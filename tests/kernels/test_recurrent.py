"""Recurrent layers as loops in machine code against the operator's NumPy kernel: outputs, last states, and all gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from minimx import autograd, gluon, kernels, nd, random
from minimx.kernels import recurrent
from minimx.ops.rnn import RecurrentAdjoint, RecurrentLayer

pytest.importorskip("llvmlite")

LIMIT = 1e-5  # of the largest number in an array
MODES = ("lstm", "gru", "rnn_tanh", "rnn_relu")


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    before = kernels.set("auto")
    yield
    kernels.set(before)


def operands(op: RecurrentLayer, steps: int, batch: int, inputs: int, ends: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    layers = op.num_layers * op.directions
    parameters = rng.standard_normal(op.parameter_count(inputs)) * 0.7 / op.state_size**0.5
    shapes = [(steps, batch, inputs), (layers, batch, op.length), *[(layers, batch, op.state_size)] * op.has_cell]
    data, *states = (rng.standard_normal(shape) for shape in shapes)
    return [each.astype("float32") for each in (data, parameters, *states, *([] if ends is None else [np.asarray(ends)]))]


def call(op: RecurrentLayer, arrays: list[nd.NDArray]) -> list[nd.NDArray]:
    """The output and the last states."""
    names = ["state"] + ["state_cell"] * op.has_cell + ["sequence_length"] * op.use_sequence_length
    return nd.RNN(*arrays[:2], **dict(zip(names, arrays[2:])), **{**op.attrs(), "state_outputs": True})


def results(op: RecurrentLayer, given: list[np.ndarray], forth: str, back: str, seed: int = 0) -> list[np.ndarray]:
    """The outputs in training, and the gradients of everything, with kernels of two choices."""
    arrays = [nd.array(each) for each in given]
    learning = arrays[: len(arrays) - op.use_sequence_length]
    for each in learning:
        each.attach_grad()
    random.seed(seed)
    kernels.set(forth)
    rng = np.random.default_rng(3)
    with autograd.record():
        outputs = call(op, arrays)
        total = nd.add_n(*[(each * nd.array(rng.standard_normal(each.shape))).sum() for each in outputs])
    total.wait_to_read()
    kernels.set(back)
    total.backward()
    return [each.asnumpy() for each in (*outputs, *(each.grad for each in learning))]


def assert_close(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    assert len(found) == len(wanted)
    for number, (got, want) in enumerate(zip(found, wanted)):
        np.testing.assert_allclose(
            got, want, rtol=0, atol=LIMIT * max(1.0, float(np.abs(want).max(initial=0))), err_msg=str(number)
        )


#: steps, batch, inputs, units, and what else: odd sizes, single ones, and more steps than one block has
SIZES = [(4, 1, 1, 1), (5, 3, 4, 7), (6, 33, 9, 50), (40, 5, 3, 8), (9, 16, 24, 24), (70, 1, 6, 13)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("steps", "batch", "inputs", "units"), SIZES)
def test_sizes(mode: str, steps: int, batch: int, inputs: int, units: int) -> None:
    check(RecurrentLayer(units, 1, mode), steps, batch, inputs)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ends", [None, [6, 0, 1, 2, 3, 4, 5, 6, 2]])
def test_layers_and_directions(mode: str, ends: Any) -> None:
    check(RecurrentLayer(11, 3, mode, True, use_sequence_length=ends is not None), 6, 9, 5, ends)


@pytest.mark.parametrize(
    "attributes",
    [
        {"projection_size": 5},
        {"projection_size": 40, "bidirectional": True},
        {"lstm_state_clip_min": -0.2, "lstm_state_clip_max": 0.3},
        {"lstm_state_clip_min": -0.2, "lstm_state_clip_max": 0.3, "lstm_state_clip_nan": True, "projection_size": 3},
    ],
    ids=["projection", "wide projection", "clip", "clip and projection"],
)
@pytest.mark.parametrize("ends", [None, [7, 0, 1, 6, 7]])
def test_projections_and_limits(attributes: dict[str, Any], ends: Any) -> None:
    check(RecurrentLayer(26, 2, "lstm", use_sequence_length=ends is not None, **attributes), 7, 5, 4, ends)


def check(op: RecurrentLayer, steps: int, batch: int, inputs: int, ends: Any = None) -> None:
    """In training and outside, and where the ways forth and back are made by different kernels."""
    given = operands(op, steps, batch, inputs, ends)
    wanted = results(op, given, "numpy", "numpy")
    for forth, back in (("auto", "auto"), ("auto", "numpy"), ("numpy", "auto")):
        assert_close(results(op, given, forth, back), wanted)
    kernels.set("auto")
    found = call(op, [nd.array(each) for each in given])
    assert_close([each.asnumpy() for each in found], wanted[: len(found)])


def test_dropout_between_layers_draws_the_same_numbers() -> None:
    op = RecurrentLayer(8, 3, "gru", True, p=0.4)
    given = operands(op, 5, 4, 6, None)
    wanted = results(op, given, "numpy", "numpy", seed=5)
    for choices in (("auto", "auto"), ("auto", "numpy"), ("numpy", "auto")):
        assert_close(results(op, given, *choices, seed=5), wanted)


def test_a_gradient_outside_training_takes_the_steps_again() -> None:
    op = RecurrentLayer(6, 2, "lstm", True)
    given = operands(op, 5, 3, 4, None)
    found = []
    for choice in ("auto", "numpy"):
        kernels.set(choice)
        arrays = [nd.array(each) for each in given]
        for each in arrays:
            each.attach_grad()
        with autograd.record(train_mode=False):
            outputs = call(op, arrays)
        autograd.backward(outputs)
        found.append([each.grad.asnumpy() for each in arrays])
    assert_close(*found)


@pytest.mark.parametrize("mode", MODES)
def test_a_sequence_with_nan_leaves_the_others_alone(mode: str) -> None:
    op = RecurrentLayer(9, 1, mode)
    given = operands(op, 6, 7, 4, None)
    given[0][2, 3, 1] = np.nan
    with_nan, without = (
        call(op, [nd.array(each) for each in (data, *given[1:])])[0].asnumpy() for data in (given[0], np.nan_to_num(given[0]))
    )
    assert np.isnan(with_nan[2:, 3]).all()
    assert not np.isnan(np.delete(with_nan, 3, axis=1)).any()
    np.testing.assert_array_equal(np.delete(with_nan, 3, axis=1), np.delete(without, 3, axis=1))


def test_the_same_bits_in_each_run_and_in_a_program() -> None:
    net = gluon.rnn.LSTM(20, num_layers=2, bidirectional=True, input_size=10)
    net.initialize()
    x = nd.array(np.random.default_rng(0).standard_normal((12, 24, 10)))
    runs = []
    for hybrid in (False, False, True, True):
        net.hybridize(hybrid)
        with autograd.record():
            y = net(x)
        y.backward()
        runs.append([y.asnumpy(), *(each.grad().asnumpy() for each in net.collect_params().values())])
    for run in runs[1:]:
        for got, want in zip(run, runs[0]):
            np.testing.assert_array_equal(got, want)


def test_who_uses_it() -> None:
    """The table has it for float32 and for enough steps; NumPy's kernel serves the others, and where loops cannot be compiled."""

    def made(steps: int, dtype: str = "float32") -> Any:
        arrays = [each.astype(dtype) for each in operands(op, steps, 2, 3, None)]
        return kernels.kernel_of(op, [*arrays, None], nd.zeros(1).context)

    op = RecurrentLayer(4, 1, "lstm")
    assert isinstance(made(recurrent.FEWEST_STEPS).made(1), recurrent.Layers)
    assert made(recurrent.FEWEST_STEPS).implementation == "loops in machine code"
    assert made(recurrent.FEWEST_STEPS - 1) == op.kernel
    assert made(recurrent.FEWEST_STEPS, "float64") == op.kernel
    kernels.set("numpy")
    assert made(recurrent.FEWEST_STEPS) == op.kernel


def test_numpy_serves_where_the_loops_are_not_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrent.Machine, "is_compiled", lambda self: False)
    op = RecurrentLayer(4, 1, "gru")
    given = operands(op, 5, 2, 3, None)
    for got, want in zip(results(op, given, "auto", "auto"), results(op, given, "numpy", "numpy")):
        np.testing.assert_array_equal(got, want)


def test_an_adjoint_without_a_gradient_of_the_output() -> None:
    op, back = RecurrentLayer(5, 1, "lstm"), RecurrentAdjoint(5, 1, "lstm")
    data, parameters, *states = operands(op, 6, 3, 4, None)
    head = np.ones((1, 3, 5), "float32")
    arrays = [None, head, None, data, parameters, *states, None, None, None]
    kernel = kernels.kernel_of(back, arrays, nd.zeros(1).context)
    assert kernel != back.kernel
    assert_close(list(kernel(np, *arrays)), list(back.kernel(np, *arrays)))


def test_arrays_with_gaps() -> None:
    op = RecurrentLayer(5, 1, "gru", True)
    given = operands(op, 6, 4, 3, None)
    kernel = kernels.kernel_of(op, [*given, None], nd.zeros(1).context)
    wide = [np.repeat(each, 2, axis=-1)[..., ::2] for each in given]
    for got, want in zip(kernel(np, *wide, None), kernel(np, *given, None)):
        np.testing.assert_array_equal(got, want)
