"""Steps of optimizers as loops: every one of them, bit for bit as NumPy makes it, and what cannot be a loop."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import kernels, nd, optimizer
from minimx.base import MXNetError
from minimx.kernels import machine, steps
from minimx.ops import optim, optim_adam, optim_adaptive
from minimx.ops.optim import Update

pytest.importorskip("llvmlite")

HAVE_NO_LOOP = {"GroupAdaGradUpdate"}  # it takes a mean of each row
GIVEN = {"lr": 0.1, "t": 3, "eta": 0.9, "momentum": 0.9, "rescale_grad": 0.5, "wd_lh": 0.01, "gamma1": 0.9}
KINDS: list[dict[str, Any]] = [{"wd": 0.0}, {"wd": 0.01, "clip_gradient": 0.3, "clip_grad": 0.3, "clip_weights": 0.4}]


def updates() -> Iterator[Update]:
    """Every update operator, with and without weight decay and clipping."""
    for module in (optim, optim_adam, optim_adaptive):
        for cls in vars(module).values():
            if not isinstance(cls, type) or not issubclass(cls, Update) or cls.__module__ != module.__name__:
                continue
            if "inputs" not in cls.__dict__:
                continue  # a base of some
            names = {field.name for field in dataclasses.fields(cls)}
            for kind in KINDS:
                yield cls(**{name: value for name, value in {**GIVEN, **kind}.items() if name in names})


UPDATES = list(updates())


def arrays_of(op: Update, dtype: str) -> list[np.ndarray]:
    """A weight, a gradient, and states that a step can have met: averages of squares above the squares of averages."""
    random = np.random.default_rng(0)
    count = len(op.inputs) - op.mixed
    made = [
        random.standard_normal(1003) * 0.1,
        random.standard_normal(1003),
        *(random.random(1003) + 1 for _ in range(count - 2)),
    ]
    if "g" in op.inputs:
        made[list(op.inputs).index("g")] *= 0.1
    return [array.astype(dtype) for array in made]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", UPDATES, ids=[f"{type(op).__name__}-{number % 2}" for number, op in enumerate(UPDATES)])
def test_a_loop_makes_the_step_that_numpy_makes(op: Update, dtype: str) -> None:
    by_numpy = arrays_of(op, dtype)
    found = steps.faster(op.step, len(by_numpy), np.dtype(dtype))
    if type(op).__name__ in HAVE_NO_LOOP:
        assert not isinstance(found, steps.Step)
        return
    assert isinstance(found, steps.Step)
    found.code.compile()
    assert found.code.error is None
    by_loop = [array.copy() for array in by_numpy]
    want = op.step(np, *by_numpy, out=np.empty_like(by_numpy[0]))
    got = found(np, *by_loop, out=np.empty_like(by_loop[0]))
    for one, other in zip((got, *by_loop), (want, *by_numpy)):
        np.testing.assert_array_equal(one, other)


def test_the_new_weight_takes_the_place_of_the_old() -> None:
    op = optim.SGDMomUpdate(lr=0.1, momentum=0.9)
    weight, grad, mom = arrays_of(op, "float32")
    want = op.step(np, weight, grad, mom.copy(), out=None)
    found = steps.faster(op.step, 3, weight.dtype)
    assert isinstance(found, steps.Step)
    found.code.compile()
    assert found(np, weight, grad, mom, out=weight) is weight
    np.testing.assert_array_equal(weight, want)


def test_parts_of_one_array() -> None:
    op = optim.SGDUpdate(lr=0.5)
    found = steps.faster(op.step, 2, np.dtype("float32"))
    assert isinstance(found, steps.Step)
    found.code.compile()
    memory = np.arange(1, 101, dtype="float32")
    want = memory[1:] - np.float32(0.5) * memory[:-1]
    found(np, memory[1:], memory[:-1], out=memory[1:])
    np.testing.assert_array_equal(memory[1:], want)


def test_one_machine_code_for_all_rates() -> None:
    made = [steps.faster(optim.SGDUpdate(lr=rate).step, 2, np.dtype("float32")) for rate in (0.1, 0.2, 0.1)]
    assert made[0] is made[2]
    assert made[0].code is made[1].code  # type: ignore[attr-defined]
    assert "float v0 = (x1 * s0);" in made[0].source  # type: ignore[attr-defined]


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(
    ("name", "arguments"), [("sgd", {"momentum": 0.9}), ("nag", {"momentum": 0.9}), ("adam", {}), ("adamw", {})]
)
def test_an_optimizer_makes_the_same_steps_with_and_without_loops(name: str, arguments: dict[str, Any], count: int) -> None:
    def trained() -> list[np.ndarray]:
        update = optimizer.get_updater(optimizer.create(name, learning_rate=0.1, wd=0.01, **arguments))
        shapes = [(300, 500), (7,), (1, 3)][:count]
        weights = [nd.array(np.linspace(-1, 1, int(np.prod(shape))).reshape(shape)) for shape in shapes]
        for step in range(4):
            grads = [(weight * (step + 1)).sin() for weight in weights]
            update(list(range(count)), grads, weights)
            nd.waitall()
        return [weight.asnumpy() for weight in weights]

    with_loops = trained()
    before = kernels.set("numpy")
    try:
        without = trained()
    finally:
        kernels.set(before)
    for one, other in zip(with_loops, without):
        np.testing.assert_array_equal(one, other)


def test_half_precision_is_computed_in_single() -> None:
    weight, grad = nd.ones((5,), dtype="float16"), nd.ones((5,), dtype="float16")
    for _ in range(2):
        nd.sgd_update(weight, grad, lr=0.25, out=weight)
        nd.waitall()
    assert weight.asnumpy().tolist() == [0.5] * 5


class Strange(Update):
    """Steps that are no loops."""

    inputs = ("weight", "grad")

    def __init__(self, what: str) -> None:
        self.__dict__.update(what=what, rescale_grad=1.0, clip_gradient=-1.0)

    def step(self, xp: Any, weight: Any, grad: Any, *states: Any, out: Any) -> Any:
        what = self.__dict__["what"]
        if what == "sum":
            return weight - grad / grad.sum()
        if what == "function":
            return xp.where(grad > 0, weight, grad)
        if what == "decision":
            return weight if grad else grad
        if what == "part":
            weight[:2] = grad
        if what == "gradient":
            grad *= 2.0
        if what == "error":
            raise MXNetError("no")
        return weight if what != "number" else 3.0


@pytest.mark.parametrize("what", ["sum", "function", "decision", "part", "gradient", "error", "number"])
def test_what_is_no_loop_stays_with_numpy(what: str) -> None:
    method = Strange(what).step
    assert steps.faster(method, 2, np.dtype("float32")) == method


def test_attributes_that_cannot_be_hashed() -> None:
    method = Strange([1]).step  # type: ignore[arg-type]
    assert steps.faster(method, 2, np.dtype("float32")) == method
    function = partial(optim_adam.stride, 0.5)
    assert isinstance(steps.faster(function, 2, np.dtype("float32")), steps.Step)


def test_kernels_are_off() -> None:
    before = kernels.set("numpy")
    try:
        method = optim.SGDUpdate(lr=0.1).step
        assert steps.faster(method, 2, np.dtype("float32")) == method
    finally:
        kernels.set(before)


def test_many_rates_do_not_fill_the_memory() -> None:
    for number in range(3 * steps.MOST):
        steps.faster(optim.SGDUpdate(lr=1 + number / 1000).step, 2, np.dtype("float32"))
    assert len(steps._made) <= steps.MOST
    assert mx.nd.ones(1).asscalar() == 1


def test_which_arrays_overlap() -> None:
    random = np.random.default_rng(0)
    code = steps.overlaps()
    machine.wait(code)
    for _ in range(100):
        begins, nbytes = random.integers(0, 400, 40), random.integers(1, 20, 40)
        begins[::7], nbytes[::7] = begins[3], nbytes[3]
        found = np.zeros(2, np.int64)
        code.function(*map(machine.address, (begins, nbytes, found)), 0, len(begins))
        met = [
            (begins[i], nbytes[i]) == (begins[j], nbytes[j])
            for i in range(40)
            for j in range(i)
            if begins[i] < begins[j] + nbytes[j] and begins[j] < begins[i] + nbytes[i]
        ]
        assert found.tolist() == [met.count(True), met.count(False)]


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="a deliberate fault: a state is not written back")
def test_the_twin_that_forgets_a_state(monkeypatch: pytest.MonkeyPatch) -> None:
    written = steps.written
    monkeypatch.setattr(steps, "written", lambda notes, after, result, *more: written(notes, [*after[:2], "x2"], result, *more))
    op = optim.SGDMomUpdate(lr=0.1875, momentum=0.8125)
    weight, grad, mom = arrays_of(op, "float32")
    found = steps.Step(op.step, 3, weight.dtype)
    found.code.compile()
    want = mom.copy()
    op.step(np, weight, grad, want, out=None)
    found(np, weight, grad, mom, out=None)
    np.testing.assert_array_equal(mom, want)
