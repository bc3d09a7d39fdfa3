"""Groups as loops: every operator against its own kernel, operands that broadcast, the crew, and what there is without machine code."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import textwrap
import threading
from typing import Any

import numpy as np
import pytest

from minimx import kernels, nd, sym
from minimx.engine import crew
from minimx.kernels import fused, machine
from minimx.kernels.groups import Group, Step
from minimx.op import Op, Spec, find
from minimx.sym.passes.fusion import GROUPED

from .test_cupy import OPERATORS, operands_of

pytest.importorskip("llvmlite")


def loop_of(group: Group, *shapes: tuple[int, ...]) -> fused.Loop:
    walk = fused.walk_of(group.shape, shapes)
    assert walk is not None
    loop = fused.Loop(group, walk)
    loop.wait()
    assert loop.state == "compiled"
    return loop


def alone(op: Op, arrays: list[np.ndarray], want: np.ndarray) -> tuple[fused.Loop, np.ndarray]:
    """A loop of one operator, and what it computes."""
    steps = (Step(op, tuple(range(len(arrays))), want.dtype),)
    group = Group(want.shape, tuple(each.dtype for each in arrays), steps, (len(arrays),))
    loop = loop_of(group, *(each.shape for each in arrays))
    got = np.empty_like(want)
    assert loop(*arrays, got)
    return loop, got


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", OPERATORS, ids=[f"{op.name}-{number}" for number, op in enumerate(OPERATORS)])
def test_a_loop_computes_what_the_kernel_does(op: Op, dtype: str) -> None:
    arrays = operands_of(op, dtype)
    with np.errstate(all="ignore"):
        want = op.kernel(np, *arrays)
    specs = [Spec.of(each.shape, each.dtype) for each in arrays]
    if not fused.fits(op, specs, Spec.of(want.shape, want.dtype)):
        pytest.skip("a function that loops do not have")
    loop, got = alone(op, arrays, want)
    if loop.exact:
        same = (got.view(f"i{got.itemsize}") == want.view(f"i{got.itemsize}")) | (np.isnan(got) & np.isnan(want))
        assert same.all(), (got[~same], want[~same])
    else:
        np.testing.assert_allclose(got, want, 1e-6, 2e-7)


def test_what_stays_with_numpy() -> None:
    spec = {name: Spec.of((4,), name) for name in ("float16", "float32", "float64", "int32")}
    plus, exp, sin = find("_plus_scalar")(scalar=1.0), find("exp")(), find("sin")()
    assert fused.fits(plus, [spec["float32"]], spec["float32"])
    assert fused.fits(plus, [spec["float64"]], spec["float64"])
    assert fused.fits(exp, [spec["float32"]], spec["float32"])
    assert not fused.fits(exp, [spec["float64"]], spec["float64"])
    assert not fused.fits(sin, [spec["float32"]], spec["float32"])
    assert not fused.fits(plus, [spec["float16"]], spec["float16"])
    assert not fused.fits(plus, [spec["int32"]], spec["int32"])


@pytest.mark.parametrize(
    ("shape", "other"),
    [
        ((5, 40), (40,)), ((5, 40), (1, 40)), ((5, 40), (5, 1)), ((5, 40), (1, 1)), ((5, 40), ()), ((2, 3, 40), (3, 40)),
        ((2, 3, 40), (2, 3, 1)), ((2, 3, 40), (3, 1)), ((2, 3, 40), (2, 1, 1)), ((2, 3, 4, 5), (3, 1, 1)), ((2, 3, 4, 5), (1, 3, 1, 1)),
        ((2, 3, 4, 5), (2, 3, 1, 1)), ((1, 1, 40), (1, 1, 1)), ((7, 64), (7, 64)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("first", [True, False])
def test_operands_broadcast(shape: tuple[int, ...], other: tuple[int, ...], first: bool) -> None:
    random = np.random.default_rng(0)
    given = [random.standard_normal(each, np.float32) for each in ((shape, other) if first else (other, shape))]
    want = given[0] - given[1]
    if fused.walk_of(want.shape, [each.shape for each in given]) is None:
        assert (shape, other) == ((2, 3, 40), (2, 1, 1))  # neither rows of a block nor a pattern that begins anew
        return
    _, got = alone(find("broadcast_sub")(), given, want)
    np.testing.assert_array_equal(got, want)


def test_two_operands_that_begin_anew_after_different_numbers_of_rows() -> None:
    random = np.random.default_rng(0)
    x, channel, row = (random.standard_normal(shape, np.float32) for shape in ((2, 3, 4, 20), (3, 1, 1), (4, 1)))
    add = find("broadcast_add")()
    group = Group(x.shape, (x.dtype,) * 3, (Step(add, (0, 1), x.dtype), Step(add, (3, 2), x.dtype)), (3, 4))
    walk = fused.walk_of(x.shape, [x.shape, (3, 1, 1), (4, 1)])
    assert walk is None  # the first needs rows of 80, the second rows of 20
    shapes = (x.shape, (3, 4, 1), (4, 1))
    channel = random.standard_normal(shapes[1], np.float32)
    one, two = np.empty_like(x), np.empty_like(x)
    assert loop_of(group, *shapes)(x, channel, row, one, two)
    np.testing.assert_array_equal(one, x + channel)
    np.testing.assert_array_equal(two, x + channel + row)


@pytest.mark.parametrize("size", [1, 63, 64 * 16, 64 * 16 + 1, 300_001])
def test_the_parts_of_a_loop_are_all_of_it(size: int) -> None:
    bounds = fused.shares(size, 1 << 30)
    assert bounds[0][0] == 0
    assert bounds[-1][1] == size
    assert all(before[1] == after[0] for before, after in itertools.pairwise(bounds))
    assert fused.shares(size, 10) == [(0, size)]


@pytest.mark.parametrize("threads", [1, 3])
def test_the_crew_shares_a_loop(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "SIZE", threads)
    x = np.linspace(-3, 3, 1_000_003, dtype="float32")
    _, got = alone(find("square")(), [x], x * x)
    np.testing.assert_array_equal(got, x * x)


def test_one_machine_code_for_all_numbers_and_lengths() -> None:
    x = np.linspace(-1, 1, 1000, dtype="float32")
    codes = set()
    for number in (0.5, 2.0):
        loop, got = alone(find("_mul_scalar")(scalar=number), [x[: int(number * 100)]], x[: int(number * 100)])
        np.testing.assert_array_equal(got, x[: int(number * 100)] * np.float32(number))
        codes.add(loop.code)
    assert len(codes) == 1


def test_results_in_the_place_of_an_operand() -> None:
    x = np.linspace(-1, 1, 1001, dtype="float32")
    want = x * x
    group = Group(x.shape, (x.dtype,), (Step(find("square")(), (0,), x.dtype),), (1,))
    assert loop_of(group, x.shape)(x, x)
    np.testing.assert_array_equal(x, want)


def test_numpy_serves_where_kernels_are_off() -> None:
    x = np.ones(10, np.float32)
    loop, _ = alone(find("square")(), [x], x)
    before = kernels.set("numpy")
    try:
        assert not loop(x, x)
        assert not fused.compiles()
    finally:
        kernels.set(before)
    assert loop(x, x)


def test_threads_may_run_a_loop_at_once() -> None:
    x = np.linspace(-1, 1, 200_000, dtype="float32")
    loop, want = alone(find("tanh")(), [x], x)
    results = [np.empty_like(x) for _ in range(4)]

    def run(result: np.ndarray) -> None:
        for _ in range(10):
            loop(x, result)

    threads = [threading.Thread(target=run, args=(result,)) for result in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        np.testing.assert_array_equal(result, want)


def test_all_runs_of_a_program_give_the_same_bits() -> None:
    """A loop that rounds otherwise than NumPy is there before the first run."""
    x = sym.var("x")
    net = nd.CachedOp(sym.tanh(sym.exp(x * 1.375) - sym.log1p(sym.abs(x))))
    given = nd.array(np.linspace(-1, 1, GROUPED))
    first, later = net(given).asnumpy(), [net(given).asnumpy() for _ in range(20)]
    assert all((first == each).all() for each in later)


def ran(code: str, **environment: str) -> str:
    """What a process prints that runs `code`. It must end well, and say nothing else."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


PROGRAM = """
    import os, sys, threading
    import numpy as np
    import minimx as mx
    x = mx.sym.var("x")
    def net(number=0.5):
        return mx.nd.CachedOp(mx.sym.relu(x * number) + x + 1)
    given = mx.nd.ones((300, 1000))
    def loops(made):
        return list(made.graph.programs.values())[0].loops.values()
"""


def test_import_loads_no_compiler() -> None:
    code = "import sys, minimx as mx; mx.nd.ones((300, 300)).exp().asnumpy(); print('llvmlite' in sys.modules, 'numba' in sys.modules)"
    assert ran(code) == "False False\n"


@pytest.mark.parametrize(("mode", "state"), [("eager", ["compiled"]), ("off", [])])
def test_modes(mode: str, state: list[str]) -> None:
    code = (
        PROGRAM
        + """
    made = net()
    made(given).wait_to_read()
    print([loop.state for loop in loops(made)])
    """
    )
    assert ran(code, MINIMX_JIT=mode) == f"{state}\n"


def test_without_llvmlite() -> None:
    code = (
        PROGRAM
        + """
    sys.modules["llvmlite"] = None
    made = net()
    assert made(given).asnumpy().sum() == 2.5 * 300000
    print(list(loops(made)))
    """
    )
    assert ran(code) == "[]\n"


def test_with_an_llvmlite_that_does_not_work() -> None:
    code = (
        PROGRAM
        + """
    sys.modules["llvmlite.binding"] = None
    made = net()
    assert made(given).asnumpy().sum() == 2.5 * 300000
    [loop] = loops(made)
    loop.wait()
    print(loop.state)
    """
    )
    assert ran(code).startswith("not compiled: ModuleNotFoundError")


def test_the_interpreter_ends_while_loops_are_compiled() -> None:
    code = (
        PROGRAM
        + """
    from minimx.kernels import machine
    for number in range(200):
        machine.code_of(f"void loop(float *y) {{ y[{number}] = 1.0f; }}", (machine.POINTER,))
    print(made.asnumpy().sum() if (made := net()(given)) is not None else 0)
    """
    )
    assert ran(code) == f"{2.5 * 300000}\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_uses_what_is_compiled_and_compiles_nothing() -> None:
    code = (
        PROGRAM
        + """
    import warnings
    warnings.simplefilter("ignore")
    made = net(); made(given).wait_to_read(); [loop] = loops(made); loop.wait()
    child = os.fork()
    if not child:
        good = made(given).asnumpy().sum() == 2.5 * 300000
        other = mx.nd.CachedOp(mx.sym.tanh(x) * 3)
        good = good and abs(other(given).asnumpy()[0, 0] - 3 * np.tanh(1)) < 1e-5
        [new] = loops(other)
        os._exit(0 if good and loop.state == "compiled" and new.state == "not compiled yet" else 1)
    print(os.waitpid(child, 0)[1])
    """
    )
    assert ran(code) == "0\n"


def test_eager_mode_of_the_parameters() -> None:
    assert machine.MODE in ("auto", "eager", "off")
    with pytest.raises(AssertionError):
        ran("import minimx", MINIMX_JIT="sometimes")


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="a deliberate fault: rows are taken for columns")
def test_the_twin_that_reads_another_element(monkeypatch: pytest.MonkeyPatch) -> None:
    place: Any = fused.place
    monkeypatch.setattr(fused, "place", lambda *args: ("row", 0) if place(*args) == ("i", 0) else place(*args))
    x, row = np.ones((20, 20), np.float32), np.arange(20, dtype="float32")
    _, got = alone(find("broadcast_add")(), [x, row], x)
    np.testing.assert_array_equal(got, x + row)


def test_endless_new_loops_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "MOST_CODES", len(machine._codes))
    code = machine.code_of("void loop(float *y) { y[0] = 1.625f; }", (machine.POINTER,))
    machine.wait(code)
    assert code.function is None
    assert code.error is not None
    assert "already" in code.error
    machine._codes.pop(code.source)
