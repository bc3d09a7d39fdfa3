"""The driver of the operator table: every row of cases_*.py in this folder, put through the same checks.

What a row says is in harness.py. A check is a function here, so that a failure names both: `test_gradient[softmax-axis0]`.
Derivatives are compared along random directions: `<w, J v>` from finite differences must equal `<J' w, v>` from autograd, for one
random v and w a row; a wrong entry anywhere in the Jacobian shows with certainty, at the price of two evaluations.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, engine, nd
from minimx.engine.front import value_of
from minimx.nd import entry
from minimx.op import REGISTRY, Kind, Op, Spec, apply
from minimx.ops.unary import Exp

from .harness import Bad, Case, normal

RTOL = {"float16": 2e-2, "float32": 1e-5, "float64": 1e-12}
EPS, LIMIT = 1e-6, 1e-6  # the step of finite differences, and the relative error that derivatives may have


def collect() -> dict[str, Case]:
    """All rows, by an identifier that stays the same when rows of other operators come and go."""
    found: dict[str, Case] = {}
    folder = importlib.import_module(__package__)
    for module in sorted(pkgutil.iter_modules(folder.__path__), key=lambda module: module.name):
        if not module.name.startswith("cases_"):
            continue
        for case in importlib.import_module(f"{__package__}.{module.name}").CASES:
            name = stem = f"{case.op}-{case.label}" if case.label else case.op
            count = 1
            while name in found:
                count += 1
                name = f"{stem}-{count}"
            found[name] = case
    return found


CASES = collect()


def rows(**conditions: bool) -> pytest.MarkDecorator:
    """Parametrize over the rows whose fields have the given truth values."""
    chosen = [(name, case) for name, case in CASES.items() if all(bool(getattr(case, k)) == v for k, v in conditions.items())]
    return pytest.mark.parametrize(("name", "case"), chosen, ids=[name for name, _ in chosen])


# ---- running a row


def floating(array: np.ndarray) -> bool:
    return array.dtype.kind == "f"


def make(name: str, case: Case, dtype: str) -> list[np.ndarray]:
    """The row's inputs: floating ones in `dtype`, others as they come. The same numbers every time."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    made = [np.asarray(maker(rng)) for maker in case.inputs]
    return [array.astype(dtype) if floating(array) else array for array in made]


def tensors(arrays: list[np.ndarray]) -> list[Any]:
    return [nd.array(array, dtype=array.dtype) for array in arrays]


def flat(result: Any) -> list[Any]:
    """One tensor or array, or (nested) lists of them, as a list."""
    if isinstance(result, (list, tuple)):
        return [leaf for each in result for leaf in flat(each)]
    return [result]


def read(result: Any) -> list[np.ndarray]:
    """The values of all outputs: raises what failed on the way."""
    return [output.asnumpy() for output in flat(result)]


def run(case: Case, arrays: list[np.ndarray]) -> list[Any]:
    """The outputs of the row's call, with the random numbers that follow one seed."""
    mx.random.seed(1)
    return flat(case.call(*tensors(arrays)))


def expected(case: Case, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The oracle's answer for exactly these inputs, computed in float64."""
    assert case.oracle is not None
    wide = [array.astype(np.float64) if floating(array) else array for array in arrays]
    with np.errstate(all="ignore"):
        return [np.asarray(array) for array in flat(case.oracle(*wide))]


def compare(got: list[Any], want: list[np.ndarray], rtol: float) -> None:
    """Equal shapes, and equal numbers up to `rtol` of each, or of 1 (of the largest, if that is less than 1)."""
    assert len(got) == len(want), f"{len(got)} outputs, the oracle has {len(want)}"
    for output, wanted in zip(got, want):
        alike = output.shape == wanted.shape or (wanted.shape, output.shape) == ((), (1,))  # MXNet reduces to (1,)
        assert alike, f"shape {output.shape}, the oracle has {wanted.shape}"
        finite = np.abs(wanted[np.isfinite(wanted)])
        scale = min(1.0, float(finite.max())) if finite.size else 1.0
        np.testing.assert_allclose(output.asnumpy().astype(wanted.dtype), wanted.reshape(output.shape), rtol, rtol * scale)


def check_forward(name: str, case: Case, dtype: str) -> None:
    arrays = make(name, case, dtype)
    got = run(case, arrays)
    if case.oracle is None:
        read(got)
    else:
        compare(got, expected(case, arrays), (case.rtol or {}).get(dtype, RTOL[dtype]))


# ---- the value, and what the kernel promises

VALUES = [(name, dtype) for name, case in CASES.items() for dtype in case.dtypes]


@pytest.mark.parametrize(("name", "dtype"), VALUES, ids=[f"{name}-{dtype}" for name, dtype in VALUES])
def test_forward(name: str, dtype: str) -> None:
    """The value is the oracle's, in every dtype of the row."""
    check_forward(name, CASES[name], dtype)


@rows()
def test_float16(name: str, case: Case) -> None:
    """What takes float32 takes float16, with an error to match."""
    if "float32" not in case.dtypes or "float16" in case.dtypes or not any(map(floating, make(name, case, "float32"))):
        pytest.skip("no floating input, or float16 is tested as a dtype of the row")
    if (case.rtol or {}).get("float16") == np.inf:
        pytest.skip("the row's numbers are none of float16's")
    check_forward(name, case, "float16")


@dataclass
class Call:
    """An operator as it entered the engine."""

    op: Op
    arrays: list[np.ndarray | None]
    specs: list[Spec]


@contextlib.contextmanager
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Call]]:
    """A scope that logs what enters the engine, with copies of its inputs."""
    log: list[Call] = []
    submit = entry.submit

    def logged(op: Op, inputs: Any, out_specs: Any, *rest: Any) -> Any:
        log.append(Call(op, [None if view is None else np.array(value_of(view)) for view in inputs], list(out_specs)))
        return submit(op, inputs, out_specs, *rest)

    with monkeypatch.context() as patch, engine.front.no_shortcuts():
        patch.setattr(entry, "submit", logged)
        patch.setattr(entry, "computed", lambda *rest: None)  # the short way of small operators does without `submit`
        yield log


def copies(call: Call) -> list[Any]:
    return [None if array is None else array.copy() for array in call.arrays]


@rows()
def test_kernel(name: str, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row runs the operator that it names, whose kernel keeps its promises: shape and dtype as inferred, fresh memory; and
    elementwise ones the same values with `out`, in place, and on tiles."""
    with calls(monkeypatch) as log:
        run(case, make(name, case, case.dtypes[0]))
    # Some have kernels that run without entering the engine, and composite ones none.
    at_once = REGISTRY[case.op].data_dependent or REGISTRY[case.op].composite
    called = at_once or any(type(call.op) is REGISTRY[case.op] for call in log)
    assert called, f"{case.op} was not called, but {[c.op.name for c in log]}"
    for call in log:
        op = call.op
        if op.needs_key or op.data_dependent or type(op) is not REGISTRY[case.op]:
            continue
        inferred = op.infer(*[None if array is None else Spec.of(array.shape, array.dtype) for array in call.arrays])
        assert list(inferred if isinstance(inferred, tuple) else (inferred,)) == call.specs
        with np.errstate(all="ignore"):
            check_kernel(call)


def check_kernel(call: Call) -> None:
    op, arrays = call.op, copies(call)
    results = op.kernel(np, *arrays)
    assert isinstance(results, tuple) == (op.num_outputs != 1)
    results = list(results) if isinstance(results, tuple) else [results]
    assert [(array.shape, array.dtype) for array in results] == [(spec.shape, spec.dtype) for spec in call.specs]
    for result in results:
        assert result.flags.c_contiguous
        for array in arrays:
            shared = array is not None and np.shares_memory(result, array)
            assert not shared or op.aliases or op.mutates, "the result shares memory with an input"
    if op.kind is not Kind.ELEMENTWISE and not op.takes_out:
        return
    (spec, *_), (result, *_) = call.specs, results
    out = np.full(spec.shape, 77, spec.dtype)  # what the memory held before must not matter
    made = op.kernel(np, *copies(call), out=out)
    assert (made[0] if isinstance(made, tuple) else made) is out
    np.testing.assert_array_equal(out, result)
    if op.kind is not Kind.ELEMENTWISE:
        return
    for i, array in enumerate(call.arrays):
        if array is not None and (array.shape, array.dtype) == (spec.shape, spec.dtype):
            given = copies(call)
            op.kernel(np, *given, out=given[i])
            np.testing.assert_array_equal(given[i], result, err_msg=f"in place of input {i}")
    if all(array.shape == spec.shape for array in call.arrays if array is not None):
        rows_of = [array.reshape(-1) for array in copies(call)]
        tiles = [op.kernel(np, *[row[i : i + 2] for row in rows_of], out=np.empty_like(result).reshape(-1)[i : i + 2])
                 for i in range(0, spec.size, 2)]  # fmt: skip
        if tiles:
            np.testing.assert_allclose(np.concatenate(tiles), result.reshape(-1), rtol=1e-6)  # SIMD tails round differently


@rows()
def test_engines(name: str, case: Case) -> None:
    """The asynchronous engine, the lazy scope and NaiveEngine give equal results."""
    arrays = make(name, case, case.dtypes[0])
    usual = read(run(case, arrays))
    for scope in (engine.lazy, engine.naive):
        with scope():
            other = read(run(case, arrays))
        assert len(other) == len(usual)
        for got, want in zip(other, usual):
            assert got.dtype == want.dtype
            np.testing.assert_allclose(got, want, rtol=1e-6, err_msg=scope.__name__)  # a tile's SIMD tail rounds differently


# ---- gradients


def project(weights: list[np.ndarray], arrays: list[np.ndarray]) -> float:
    return float(sum(np.sum(weight * array) for weight, array in zip(weights, arrays)))


class Derivative:
    """A row as a function of its floating inputs, in float64, with random weights on its outputs."""

    def __init__(self, name: str, case: Case) -> None:
        self.case = case
        self.arrays = make(name, case, "float64")
        self.places = [i for i, array in enumerate(self.arrays) if floating(array)]
        self.rng = np.random.default_rng(zlib.crc32(name.encode()) + 1)
        self.start = [self.arrays[i] for i in self.places]
        outputs = self.recorded(self.start)[1]
        self.weights = [self.rng.standard_normal(output.shape) for output in outputs]

    def directions(self) -> list[np.ndarray]:
        return [self.rng.standard_normal(array.shape) for array in self.start]

    def recorded(self, point: list[np.ndarray]) -> tuple[list[Any], list[Any]]:
        """The floating inputs as leaves, and the floating outputs, computed while recording."""
        arrays = list(self.arrays)
        for i, array in zip(self.places, point):
            arrays[i] = array
        mx.random.seed(1)
        given = tensors(arrays)
        leaves = [given[i] for i in self.places]
        for leaf in leaves:
            leaf.attach_grad()
        with autograd.record():
            outputs = flat(self.case.call(*given))
        return leaves, [output for output in outputs if np.dtype(output.dtype).kind == "f"]

    def value(self, point: list[np.ndarray]) -> float:
        return project(self.weights, [output.asnumpy() for output in self.recorded(point)[1]])

    def gradient(self, point: list[np.ndarray]) -> list[np.ndarray]:
        leaves, outputs = self.recorded(point)
        autograd.backward(outputs, tensors(self.weights))
        return [leaf.grad.asnumpy() for leaf in leaves]

    def weighted_gradient(self, point: list[np.ndarray], weights: list[np.ndarray]) -> float:
        """`sum <u, x * dF/dx>`. The factor x ties it to the inputs even where the gradient itself is constant."""
        return project(weights, [x * slope for x, slope in zip(point, self.gradient(point))])

    def second(self, weights: list[np.ndarray]) -> list[np.ndarray]:
        """The gradient of `weighted_gradient`."""
        leaves, outputs = self.recorded(self.start)
        with autograd.record():
            slopes = autograd.grad(outputs, leaves, tensors(self.weights), create_graph=True)
            total = [leaf * slope for leaf, slope in zip(leaves, slopes)]
        autograd.backward(total, tensors(weights))
        return [leaf.grad.asnumpy() for leaf in leaves]

    def along(self, function: Any, direction: list[np.ndarray]) -> float:
        """The slope of `function` along `direction`, by central differences."""
        ahead, behind = ([x + step * v for x, v in zip(self.start, direction)] for step in (EPS, -EPS))
        return float((function(ahead) - function(behind)) / (2 * EPS))


def agree(got: float, want: float) -> None:
    assert abs(got - want) <= LIMIT * max(1.0, abs(want)), f"autograd says {got}, finite differences say {want}"


def check_gradient(name: str, case: Case) -> None:
    row = Derivative(name, case)
    direction = row.directions()
    agree(project(direction, row.gradient(row.start)), row.along(row.value, direction))


def check_second(name: str, case: Case) -> None:
    row = Derivative(name, case)
    direction, weights = row.directions(), row.directions()
    want = row.along(lambda point: row.weighted_gradient(point, weights), direction)
    agree(project(direction, row.second(weights)), want)


def skip_unless_differentiable(name: str, case: Case) -> None:
    if "float64" not in case.dtypes or not any(map(floating, make(name, case, "float64"))):
        pytest.skip("no floating input in float64")


@rows(grad=True)
def test_gradient(name: str, case: Case) -> None:
    skip_unless_differentiable(name, case)
    check_gradient(name, case)


@rows(grad=True, second=True)
def test_second_order(name: str, case: Case) -> None:
    skip_unless_differentiable(name, case)
    check_second(name, case)


# ---- errors

BAD = [(f"{name}-{i}", bad) for name, case in CASES.items() for i, bad in enumerate(case.bad)]


@pytest.mark.parametrize("bad", [bad for _, bad in BAD], ids=[name for name, _ in BAD])
def test_bad(bad: Bad) -> None:
    """A bad call raises its error, with a message that helps."""
    with pytest.raises(bad.error, match=bad.match):
        read(bad.call(nd))


# ---- the table itself


def test_every_operator_has_a_row() -> None:
    unknown = sorted({case.op for case in CASES.values()} - set(REGISTRY))
    assert not unknown, f"rows of operators that are not registered: {unknown}"
    covered = {REGISTRY[case.op] for case in CASES.values()}
    # Loops and branches run graphs, which no row has: tests/sym/test_control_flow.py puts them through the same checks.
    missing = sorted({cls.name for cls in REGISTRY.values() if not cls.composite} - {cls.name for cls in covered})
    assert not missing, f"operators without a row in tests/ops/cases_*.py: {missing}"


class WrongExp(Exp):
    """Exp with the wrong sign in its gradient."""

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (-g * y,)


EXP = Case("exp", nd.exp, (normal(2, 3),), np.exp)
WRONG = replace(EXP, call=lambda x: apply(WrongExp(), x))


@pytest.mark.parametrize("check", [check_gradient, check_second, lambda name, case: check_forward(name, case, "float32")])
def test_right_twin(check: Any) -> None:
    check("exp", EXP)


@pytest.mark.xfail(raises=AssertionError, strict=True, reason="a deliberate fault: it shows that the oracle bites")
@pytest.mark.parametrize("check", [check_gradient, check_second])
def test_wrong_sign_in_gradient(check: Any) -> None:
    check("exp", WRONG)


@pytest.mark.xfail(raises=AssertionError, strict=True, reason="a deliberate fault: it shows that the oracle bites")
def test_wrong_sign_in_value() -> None:
    check_forward("exp", replace(EXP, oracle=lambda x: -np.exp(x)), "float32")
