"""What a careless or malicious user may do: wrong arguments to every public function, sizes that ask for terabytes, nonsense in the
environment, abuse of devices, files, threads and the tape. The answer is an error of minimx, which says what and where, or a value; never
another error, a crash, a hang or a huge allocation.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import types
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, nd
from minimx.base import (
    ArgumentError,
    DeviceError,
    DTypeError,
    MXNetError,
    OutOfMemoryError,
    OutOfRangeError,
    ShapeError,
    UnknownNameError,
)
from minimx.nd import NDArray
from minimx.op import Spec

from .ops import test_cases as table


@pytest.fixture(autouse=True)
def no_failures_left() -> Iterator[None]:
    """Arrays that fail are among the wrong arguments, and not all are read."""
    yield
    with contextlib.suppress(MXNetError):
        nd.waitall()


# ---- every public function, with wrong values for each of its arguments

NAMESPACES = {"nd": nd, "nd.contrib": nd.contrib, "nd.image": nd.image, "nd.linalg": nd.linalg, "nd.random": nd.random}
FUNCTIONS: dict[str, Callable[..., Any]] = {}
for space_name, space in NAMESPACES.items():
    for function_name in space.__all__:
        candidate = inspect.unwrap(getattr(space, function_name))  # second names of a function do as it does
        if isinstance(candidate, types.FunctionType) and candidate not in FUNCTIONS.values():
            FUNCTIONS[f"{space_name}.{function_name}"] = candidate
FILES = {"nd.save", "nd.load", "nd.load_frombuffer"}  # tests of their own, below

Call = tuple[tuple[Any, ...], dict[str, Any]]


class Odd:
    """An object of which nothing is known, and whose text must not be asked for."""

    def __repr__(self) -> str:
        raise AssertionError("the text of a stranger was asked for")


def array(*shape: int, dtype: str = "float32", ctx: mx.Context | None = None) -> NDArray:
    return nd.array(np.ones(shape, dtype), ctx=ctx, dtype=dtype)


#: Values that fit few arguments. None asks for so much that a generous machine could give it.
WRONG: dict[str, Callable[[], Any]] = {
    "None": lambda: None, "'abc'": lambda: "abc", "''": lambda: "", "bytes": lambda: b"x", "[]": list, "()": lambda: (),
    "dict": lambda: {1: 2}, "object": Odd, "class": lambda: int, "function": lambda: len, "slice": lambda: slice(None),
    "generator": lambda: iter((1,)), "-1": lambda: -1, "-2**63": lambda: -(2**63), "2**62": lambda: 2**62, "10**400": lambda: 10**400,
    "10**5000": lambda: 10**5000, "nan": lambda: float("nan"), "inf": lambda: float("inf"), "1.5": lambda: 1.5, "1j": lambda: 1j,
    "True": lambda: True, "np.int64": lambda: np.int64(1), "np.bool_": lambda: np.bool_(True), "np.complex64": lambda: np.complex64(1j),
    "Fraction": lambda: Fraction(1, 3), "numpy": lambda: np.array([1, 2]), "numpy of str": lambda: np.array(["a"]),
    "numpy of objects": lambda: np.array([Odd(), None], object), "dtype": lambda: np.dtype("complex64"), "[None]": lambda: [None],
    "[nan]": lambda: [float("nan")], "[10**400]": lambda: [10**400], "ragged": lambda: [[1, 2], [3]], "(2**62, 4)": lambda: (2**62, 4),
    "(1,) * 70": lambda: (1,) * 70, "(-1, 0)": lambda: (-1, 0), "array (2, 3)": lambda: array(2, 3), "array (1,)": lambda: array(1),
    "array (0, 3)": lambda: array(0, 3), "array ()": array, "array of int8": lambda: array(2, 3, dtype="int8"),
    "array of bool": lambda: array(2, 3, dtype="bool"), "array of 32 axes": lambda: array(*(1,) * 32),
    "array on gpu": lambda: array(2, 3, ctx=mx.gpu(0)), "failed array": lambda: nd.random.normal(0, -1, (2, 3)),
    "list of arrays": lambda: [array(2, 3), None], "symbol": lambda: mx.sym.Variable("s"), "context": lambda: mx.gpu(7),
}  # fmt: skip


def arguments_of(frame: types.FrameType, function: Callable[..., Any]) -> Call:
    """The arguments with which the function whose frame begins was called, but those that have their defaults."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        value = frame.f_locals[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            args.extend(value)
        elif parameter.kind is parameter.VAR_KEYWORD:
            kwargs.update(value)
        elif parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            args.append(value)
        elif value is not parameter.default:
            kwargs[name] = value
    return tuple(args), kwargs


@contextlib.contextmanager
def recorded() -> Iterator[dict[str, Call]]:
    """A scope in which the first call of each public function in this thread enters its arguments into the dict."""
    calls: dict[str, Call] = {}
    names = {function.__code__: name for name, function in FUNCTIONS.items()}

    def watch(frame: types.FrameType, event: str, _: Any) -> None:
        if event == "call" and (name := names.get(frame.f_code)) is not None and name not in calls:
            calls[name] = arguments_of(frame, FUNCTIONS[name])

    sys.setprofile(watch)
    try:
        yield calls
    finally:
        sys.setprofile(None)


@pytest.fixture(scope="module")
def legal() -> dict[str, Call]:
    """A legal call of each public function: most come from the table of operator cases."""
    with recorded() as calls:
        for name, case in table.CASES.items():
            table.run(case, table.make(name, case, "float32"))
    pair = (array(2, 3), array(2, 3))
    calls |= {name: (pair, {}) for name in ("nd.elemwise_add", "nd.elemwise_sub", "nd.elemwise_mul", "nd.elemwise_div")}
    calls |= {
        "nd.concatenate": ((list(pair),), {}), "nd.moveaxis": ((array(2, 3), 0, 1), {}), "nd.empty": (((2, 3),), {}),
        "nd.from_numpy": ((np.ones((2, 3), np.float32),), {}), "nd.from_dlpack": ((np.ones((2, 3), np.float32),), {}),
        "nd.to_dlpack_for_read": ((array(2),), {}), "nd.to_dlpack_for_write": ((array(2),), {}), "nd.waitall": ((), {}),
        "nd.random.randn": ((2, 3), {}), "nd.random_exponential": ((1.0, (2,)), {}), "nd.random_uniform": ((0.0, 1.0, (2,)), {}),
        "nd.normal": ((0.0, 1.0, (2,)), {}), "nd.random_poisson": ((1.0, (2,)), {}), "nd.random_gamma": ((1.0, 1.0, (2,)), {}),
        "nd.random_negative_binomial": ((1, 0.5, (2,)), {}), "nd.random_randint": ((0, 5, (2,)), {}),
        "nd.random_generalized_negative_binomial": ((1.0, 1.0, (2,)), {}),
        "nd.contrib.rand_zipfian": ((array(2), 3, 10), {}),
        "nd.contrib.foreach": ((lambda row, total: (row, total + row), array(2, 3), array(3)), {}),
        "nd.contrib.while_loop": ((lambda x: x < 4, lambda x: (x, x + 1), array(1)), {"max_iterations": 5}),
        "nd.contrib.cond": ((array(1), lambda: array(2), lambda: array(3)), {}),
    }  # fmt: skip
    return calls


def arrays_in(value: Any) -> Iterator[NDArray]:
    if isinstance(value, NDArray):
        yield value
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from arrays_in(each)


def fresh(value: Any) -> Any:
    """Copies of the arrays in an argument: a call may write into them."""
    if isinstance(value, NDArray):
        return value.copy()
    return type(value)(fresh(each) for each in value) if type(value) in (list, tuple) else value


def survives(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """What is wrong with the answer to a call, if anything: the arrays that it gives are read, too."""
    try:
        for result in arrays_in(function(*args, **kwargs)):
            result.asnumpy()
    except MXNetError as error:
        return None if len(str(error)) > 12 else f"says only {error}"
    except TypeError as error:  # Python's own answer to a call that does not fit the signature names function and argument
        return None if function.__name__ + "()" in str(error) else f"{type(error).__name__}: {error}"
    except (OverflowError, ZeroDivisionError) as error:
        numbers = all(isinstance(each, (int, float, np.generic, Fraction)) for each in args)
        return None if numbers else f"{type(error).__name__}: {error}"  # arithmetic on Python's numbers is Python's
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def variants(name: str, call: Call) -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """`call` with each argument, and some that it has not, replaced by each wrong value."""
    args, kwargs = call
    for position in range(len(args)):
        for label, make in WRONG.items():
            changed = list(fresh(args))
            changed[position] = make()
            yield f"argument {position} = {label}", tuple(changed), {key: fresh(each) for key, each in kwargs.items()}
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    plain = [key for key, each in parameters.items() if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    for key in {*plain[len(args) :], *kwargs, "out", "nonsense"}:
        for label, make in WRONG.items():
            yield f"{key} = {label}", fresh(args), {**{other: fresh(each) for other, each in kwargs.items()}, key: make()}


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in FILES])
def test_wrong_arguments(name: str, legal: dict[str, Call]) -> None:
    """Every wrong value of every argument gives an error of minimx, at once or when the result is read, or a value."""
    assert name in legal, "no row of the table of operator cases calls this function"
    with mx.device.simulate_gpus(1):
        faults = [
            f"{label}: {fault}"
            for label, args, kwargs in variants(name, legal[name])
            if (fault := survives(FUNCTIONS[name], args, kwargs)) is not None
        ]
        with contextlib.suppress(MXNetError):
            nd.waitall()
    assert not faults, "\n".join(faults[:10])


def test_the_search_for_faults_finds_them() -> None:
    """The twin: a function that leaves its argument unchecked."""

    def careless(data: NDArray, axis: int = 0) -> NDArray:
        return data.sum(axis=int(axis))

    assert survives(careless, (array(2, 3),), {"axis": 1}) is None
    assert "invalid literal" in str(survives(careless, (array(2, 3),), {"axis": "abc"}))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: nd.softmax(x, axis="abc"), ArgumentError, "softmax: axis must be an int, got 'abc'"),
        (lambda x: nd.softmax(x, axis=1.0), ArgumentError, "softmax: axis must be an int, got 1.0"),
        (lambda x: nd.softmax(x, temperature=[]), ArgumentError, r"softmax: temperature must be a number or None, got \[\]"),
        (lambda x: x.sum(axis=(0, "b")), ArgumentError, r"sum: axis must be an int or a tuple of int or None, got \(0, 'b'\)"),
        (lambda x: x.sum(keepdims=2), ArgumentError, "sum: keepdims must be True or False, got 2"),
        (lambda x: nd.topk(x, k=2**70), ArgumentError, "topk: k is 1180591620717411303424, which does not fit into 64 bits"),
        (lambda x: nd.LayerNorm(x, x, x, eps=10**400), ArgumentError, "LayerNorm: eps is 1000.*000, which is beyond all floating"),
        (lambda x: nd.one_hot(x, 3, dtype="complex64"), DTypeError, "one_hot: dtype 'complex64' is not supported; use one of"),
        (lambda x: nd.Embedding(x, x, input_dim=x, output_dim=2), ArgumentError, "Embedding: input_dim must be .*, got an NDArray"),
        (lambda x: nd.zeros((2, 3), out="abc"), ArgumentError, "_zeros: out must be an NDArray, got 'abc'"),
        (lambda x: x + 10**400, ArgumentError, "beyond all floating numbers"),
        (lambda x: x + np.array(["a"]), ArgumentError, "no float32 array can be made of"),
        (lambda x: x + np.ones(3, complex), DTypeError, "complex128 cannot become float32"),
        (lambda x: np.ones(3, complex) + x, DTypeError, "np.add: complex128 cannot become float32"),
        (lambda x: nd.array(np.ones(3, complex)), DTypeError, "nd.array: complex128 cannot become float32"),
        (lambda x: nd.array(None), ArgumentError, "nd.array: no float32 array can be made of None"),
        (lambda x: nd.array(mx.sym.Variable("s")), ArgumentError, "a Symbol has no value until it is bound"),
        (lambda x: nd.concat(x, None), ArgumentError, "Concat: input 'data' is missing; it is None"),
        (lambda x: x.as_in_context("cpu"), ArgumentError, "a Context such as mx.cpu.* is wanted, got 'cpu'"),
        (lambda x: x.reshape("ab"), ArgumentError, "shape must be an int or a tuple of int, got 'ab'"),
        (bool, ShapeError, "truth value"),
    ],
)  # fmt: skip
def test_errors_name_operator_and_argument(call: Callable[[NDArray], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(array(2, 3))


SPACES = [(nd, [nd.ones((2, 3)), nd.ones((2, 3))], "arrays"), (mx.sym, [mx.sym.var("a"), mx.sym.var("b")], "symbols")]


@pytest.mark.parametrize(("space", "tensors", "word"), SPACES, ids=["nd", "sym"])
@pytest.mark.parametrize(
    "name", ["stack", "concat", "add_n", "ElementWiseSum", "khatri_rao", "UpSampling", "multi_sum_sq", "amp_multicast"]
)
def test_a_list_where_tensors_are_wanted_one_by_one(space: Any, tensors: list[Any], word: str, name: str) -> None:
    needs = {
        "UpSampling": {"scale": 2, "sample_type": "nearest"},
        "multi_sum_sq": {"num_arrays": 2},
        "amp_multicast": {"num_outputs": 2},
    }
    place, own = space.__name__.rpartition(".")[2], {"ElementWiseSum": "add_n", "UpSampling": "upsampling"}.get(name, name)
    for given in (tensors, tuple(tensors)):
        with pytest.raises(ArgumentError, match=rf"; give the {word} one by one: {place}\.(?i:{own})\(\*{word}\)$"):
            getattr(space, name)(given, **needs.get(name, {}))


@pytest.mark.parametrize(("space", "tensors", "word"), SPACES, ids=["nd", "sym"])
@pytest.mark.parametrize(
    "name", ["mean", "sum", "max", "exp", "relu", "norm", "softmax", "flatten", "clip", "maximum", "isfinite"]
)
def test_a_list_where_one_tensor_is_wanted(space: Any, tensors: list[Any], word: str, name: str) -> None:
    rest: Any = {"clip": (0, 1), "maximum": (2,)}.get(name, ())
    place = space.__name__.rpartition(".")[2]
    function = getattr(space.contrib if name == "isfinite" else space, name)
    with pytest.raises(ArgumentError, match=rf"; join them with {place}\.stack\(\*{word}\) or {place}\.concat\(\*{word}\)$"):
        function(tensors, *rest)
    with pytest.raises(ArgumentError) as caught:
        function([1.0, 2.0], *rest)
    assert "join them" not in str(caught.value)


def test_a_list_beside_a_tensor() -> None:
    x, s = nd.ones((2,)), mx.sym.var("s")
    with pytest.raises(
        ArgumentError, match=r"stack: data must be an NDArray, got list; give the arrays one by one: nd.stack\(\*arrays\)$"
    ):
        nd.stack(x, [x, x])
    with pytest.raises(
        ArgumentError, match=r"dot: rhs must be an NDArray, got list; join them with nd.stack\(\*arrays\) or nd.concat"
    ):
        nd.dot(x, [x, x])
    parts = gluon.utils.split_and_load(nd.ones((4, 2)), [mx.cpu(0), mx.cpu(1)])
    layer = gluon.nn.Dense(1, in_units=2)
    layer.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    with pytest.raises(ArgumentError, match=r"got list; they are on several devices: call it for each part, as in \[net\(part\)"):
        layer(parts)
    with pytest.raises(
        ArgumentError, match=r"stack: data is .*, a Symbol is wanted; give the symbols one by one: sym.stack\(\*symbols\)$"
    ):
        mx.sym.stack(s, [s, s])


def test_text_is_understood_as_in_mxnet() -> None:
    """MXNet hands all attributes over as text."""
    x = nd.array([[3, 1, 2]])
    assert nd.topk(x, axis="1", k="2", is_ascend="True").asnumpy().tolist() == [[1, 2]]
    assert x.sum(axis="(0, 1)", keepdims="true").shape == (1, 1)
    assert x.sum(axis=np.array([0, 1])).shape == (1,)


# ---- sizes


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nd.ones((2**40, 2**40)), OutOfMemoryError, r"float32 cannot have the shape .* has 2\*\*82 bytes or more"),
        (lambda: nd.zeros(2**62), OutOfMemoryError, "no memory has"),
        (lambda: nd.ones((1,) * 33), ShapeError, "33 axes; at most 32"),
        (lambda: nd.ones((2,)).broadcast_to((2**62, 2)), OutOfMemoryError, "broadcast|memory"),
        (lambda: nd.ones((2,)).reshape((1,) * 40 + (2,)), ShapeError, "at most 32"),
        (lambda: nd.array(np.ones((1,) * 31))[(None,) * 5], ShapeError, "36 axes"),
        (lambda: nd.arange(0, float("inf")), ArgumentError, "there is no number of numbers"),
        (lambda: nd.arange(0, 1, 1e-300), OutOfMemoryError, "memory"),
        (lambda: nd.tile(nd.ones((2,)), (2**62, 2**62)), OutOfMemoryError, "memory"),
    ],
)  # fmt: skip
def test_sizes_that_no_memory_has(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    """The call itself refuses them: nothing is queued."""
    with pytest.raises(error, match=text):
        call()


def test_shapes_are_plain_numbers() -> None:
    assert [type(n) for n in Spec.of((np.int64(7), np.int32(11), 13), "float32").shape] == [int, int, int]


TERABYTES = """
    import resource, time
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
    import minimx as mx
    from minimx import nd
    row = nd.ones((1 << 20,))
    asked = [
        lambda: nd.ones((1 << 40,)), lambda: nd.zeros((1 << 20, 1 << 20)), lambda: nd.full((1 << 40,), 2.0), lambda: nd.arange(1 << 40),
        lambda: nd.eye(1 << 20), lambda: nd.random.uniform(shape=(1 << 40,)), lambda: row.broadcast_to((1 << 20, 1 << 20)),
        lambda: nd.one_hot(row, 1 << 20), lambda: nd.tile(row, 1 << 20), lambda: nd.repeat(row, 1 << 20), lambda: nd.diag(row),
        lambda: nd.dot(row.reshape((-1, 1)), row.reshape((1, -1))), lambda: nd.empty((1 << 40,)), lambda: nd.linspace(0, 1, 1 << 40),
        lambda: nd.histogram(row, 1 << 40, (0, 1))[1],
        lambda: nd.pad(row.reshape((1, 1, 1, -1)), "constant", (0, 0, 0, 0, 0, 1 << 40, 0, 0)),
        lambda: nd.contrib.arange_like(nd.ones((3,)), repeat=1 << 40).asnumpy() is None or 1 / 0,
    ]
    start = time.perf_counter()
    for number, ask in enumerate(asked):
        try:
            ask().asnumpy()
        except (mx.base.OutOfMemoryError, ZeroDivisionError):
            continue
        print("no error", number)
    print("done", nd.ones((3,)).sum().asscalar(), time.perf_counter() - start < 30)
"""


def child(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What a Python of its own says to a program."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(mx.__file__)), **environment},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.skipif(sys.platform != "linux", reason="bounds the address space as Linux does")
def test_asking_for_terabytes() -> None:
    """Each call, or the read of its result, raises OutOfMemoryError in a process of 3 GiB, and what comes after works."""
    answer = child(TERABYTES)
    assert answer.stdout.strip() == "done 3.0 True", answer.stdout + answer.stderr


# ---- writes and indices


@pytest.mark.parametrize("key", [slice(None), 0, [0, 1], slice(None, None, 2)], ids=str)
@pytest.mark.parametrize(
    ("dtype", "value", "error"),
    [
        ("uint8", 300, DTypeError), ("uint8", -1, DTypeError), ("int32", float("nan"), DTypeError), ("int64", 2**63, DTypeError),
        ("int32", np.int64(2**40), DTypeError), ("float32", 10**400, ArgumentError), ("float32", "a", ArgumentError),
        ("float32", None, ArgumentError), ("float32", np.complex64(1j), (DTypeError, ArgumentError)),
        ("float32", [[1], [1, 2]], ArgumentError),
        ("float32", np.array([None, 1], object), ArgumentError), ("float32", Odd(), ArgumentError),
    ],
)  # fmt: skip
def test_values_that_cannot_be_written(key: Any, dtype: str, value: Any, error: Any) -> None:
    """All ways to write refuse the same values, and the array stays as it was."""
    x = nd.zeros((3,), dtype=dtype)
    with pytest.raises(error):
        x[key] = value
    assert x.asnumpy().tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (nd.array([np.inf]), OutOfRangeError), (nd.array([np.nan]), DTypeError), (nd.array([1e30]), OutOfRangeError),
        (np.array([2**64 - 1], np.uint64), OutOfRangeError), ([10**30], ArgumentError), ((None,) * 40, ShapeError),
        (10**30, OutOfRangeError), (Odd(), ArgumentError), (mx.sym.Variable("s"), MXNetError), ([None], ArgumentError),
    ],
)  # fmt: skip
def test_indices_that_reach_nothing(key: Any, error: type[Exception]) -> None:
    """Numbers that would become others as 64-bit integers are refused, not wrapped."""
    with pytest.raises(error):
        nd.ones((2, 3))[key]


# ---- devices


def test_contexts_are_values() -> None:
    with pytest.raises(ArgumentError, match="is a value and does not change"):
        mx.cpu(1).device_id = 5
    assert str(mx.cpu(1)) == "cpu(1)"
    with pytest.raises(KeyError, match="device type 'tpu' is unknown; choose one of cpu, gpu"):
        mx.Context("tpu")
    for number in (1.5, "a", None, 2**70, nd.ones((1,))):
        with pytest.raises(ArgumentError, match="Context: device_id"):
            mx.cpu(number)
    with pytest.raises(ArgumentError, match="default_ctx must be a Context"):
        mx.Context.default_ctx = "cpu"


def test_out_on_another_device() -> None:
    with mx.device.simulate_gpus(2):
        there = nd.ones((2,), ctx=mx.gpu(1))
        with pytest.raises(DeviceError, match=r"broadcast_add: out is on gpu\(1\), the result on cpu\(0\)"):
            nd.add(nd.ones((2,)), nd.ones((2,)), out=there)
        x = nd.ones((2,))
        x.attach_grad()
        with autograd.record():
            y = x * 2
        with pytest.raises(DeviceError, match=r"its gradient on gpu\(1\)"):
            y.backward(there)
    for count in (-1, 10**12, "two", None):
        with pytest.raises(ArgumentError, match="simulate_gpus: count"):
            mx.device.simulate_gpus(count)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MINIMX_SIMULATED_GPUS", "10000000000000"),
        ("MINIMX_MEM_POOL_TYPE", "Big"),
        ("MXNET_ENGINE_TYPE", "Fast"),
        ("MINIMX_LAZY", "yes"),
    ],
)
def test_nonsense_in_the_environment(name: str, value: str) -> None:
    """The import says which variable is wrong."""
    answer = child("import minimx", **{name: value})
    assert answer.returncode == 1
    assert f"ArgumentError: environment variable {name}='{value}': " in answer.stderr


# ---- the tape


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: autograd.backward(None), ArgumentError, "heads must be NDArrays, got None"),
        (lambda x: autograd.backward([]), ArgumentError, "the list of heads is empty"),
        (lambda x: autograd.backward([x], [1.0]), ArgumentError, "head_grads must be NDArrays, got 1.0"),
        (lambda x: autograd.backward([x], [nd.ones((3,))]), ShapeError, r"head has shape \(2,\), its gradient \(3,\)"),
        (lambda x: autograd.grad(x, "x"), ArgumentError, "variables must be NDArrays, got 'x'"),
        (lambda x: autograd.get_symbol(3), ArgumentError, "get_symbol: x must be NDArrays, got 3"),
        (lambda x: autograd.mark_variables([x], [None]), ArgumentError, "gradients must be NDArrays, got None"),
        (lambda x: autograd.mark_variables([x], [nd.ones((1,))]), ShapeError, "variable 0 has shape"),
        (lambda x: autograd.mark_variables([x], [x], Odd()), UnknownNameError, "grad_req is an Odd; choose one of"),
        (lambda x: x.attach_grad("often"), KeyError, "grad_req is 'often'; choose one of 'write', 'add' and 'null'"),
        (lambda x: x.attach_grad(nd.random.normal(0, -1, (1,))), UnknownNameError, "grad_req is an NDArray"),
        (lambda x: autograd.set_recording("maybe"), ArgumentError, "is_recording must be True or False"),
    ],
)  # fmt: skip
def test_abuse_of_autograd(call: Callable[[NDArray], Any], error: type[Exception], text: str) -> None:
    x = nd.ones((2,))
    x.attach_grad()
    with pytest.raises(error, match=text):
        call(x)
    assert not autograd.is_recording()
    assert x.grad is not None  # the leaf is as it was


def test_a_very_long_tape() -> None:
    """Backward through it, and its deletion in a thread of little stack, do not recurse."""
    x = nd.ones((1,))
    x.attach_grad()
    with autograd.record():
        y = x
        for _ in range(20_000):
            y = y * 1.0
    y.backward()
    assert x.grad.asscalar() == 1

    def forget() -> None:
        with autograd.record():
            z = x
            for _ in range(40_000):
                z = z + 1
        del z

    before = threading.stack_size(1 << 20)  # an eighth of the usual
    try:
        thread = threading.Thread(target=forget)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()


# ---- copies, threads, other libraries


def test_copies_of_views_pending_and_failed_arrays() -> None:
    x = nd.array(np.arange(6).reshape(2, 3))
    for twin in (pickle.loads(pickle.dumps(x[1])), copy.deepcopy(x[1]), copy.copy(x[1])):
        twin[:] = 0
    assert x[1].asnumpy().tolist() == [3, 4, 5]
    large = nd.ones((500, 500))
    assert pickle.loads(pickle.dumps(nd.dot(large, large)))[0, 0].asscalar() == 500
    with pytest.raises(MXNetError, match="scale is -1"):
        pickle.dumps(nd.random.normal(0, -1, (2,)))


def test_threads_that_add_to_one_array() -> None:
    total = nd.zeros((1000,))

    def add() -> None:
        nonlocal total
        for _ in range(100):
            total += 1

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total.asnumpy().tolist() == [800] * 1000


def test_memory_of_other_libraries() -> None:
    matrix = np.ones((2, 2), np.float32).view(np.matrix)  # whose * is a product of matrices
    x = nd.from_numpy(matrix)
    assert (x * x).asnumpy().tolist() == [[1, 1], [1, 1]]
    capsule = nd.ones((2,)).to_dlpack_for_read()
    nd.from_dlpack(capsule)
    with pytest.raises(ArgumentError, match="from_dlpack: a PyCapsule cannot be shared"):
        nd.from_dlpack(capsule)
    with pytest.raises(ArgumentError, match="from_dlpack: an array with __dlpack__ or a DLPack capsule is wanted, got 3"):
        nd.from_dlpack(3)
    with pytest.raises(ArgumentError, match=r"from_numpy: a NumPy array is wanted, got \[1\]"):
        nd.from_numpy([1])
