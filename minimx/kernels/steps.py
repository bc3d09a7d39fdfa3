"""Steps of optimizers as loops in machine code: SGD, Adam and their relatives, each from the formula that NumPy computes.

An update operator's `step` (ops/optim.py) is a few lines of NumPy, each of which goes over the weight, the gradient or a state. Here such
a method is called once with arrays that compute nothing but note what is asked of them; what they have noted is the body of a loop that
goes over all once. So a formula is written once, and a new optimizer has its loop for nothing. Numbers, such as the learning rate, are
arguments of the loop: a schedule needs no other machine code.

The loop does the same operations in the same order, so its results are NumPy's to the bit; until it is compiled, NumPy serves. A method
that asks for something else than arithmetic, element by element, stays with NumPy. Book: chapter 5.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..op import Array
from ..ops import optim, optim_multi
from . import calls, machine
from .expressions import CLIP, MAXIMUM, MINIMUM, ONE
from .fused import compiles
from .onednn import library
from .threads import WORTH_SHARING, share

TYPES = {"float32": "float", "float64": "double"}
NS_PER_ELEMENT = 0.3  # of an array that is read or written
BINARY = {"add": "({0} + {1})", "subtract": "({0} - {1})", "multiply": "({0} * {1})", "divide": "({0} / {1})"}
#: NumPy's functions as expressions.
FUNCTIONS = {
    **BINARY, "maximum": MAXIMUM, "minimum": MINIMUM, "clip": CLIP.replace("{n0}", "{1}").replace("{n1}", "{2}"),
    **{name: ONE[name] for name in ("square", "sqrt", "sign", "abs", "negative")},
}  # fmt: skip


class UntraceableError(Exception):
    """A step asks for something that no loop has."""


class Noted:
    """An array in a step that is noted down: `value` is the name that the loop has for its elements at this point."""

    __array_ufunc__ = None  # a NumPy array must not take it for a number

    def __init__(self, notes: Notes, value: str) -> None:
        self.notes = notes
        self.value = value

    def __setitem__(self, key: Any, value: Any) -> None:
        if key is not Ellipsis:
            raise UntraceableError("only all of an array is set")
        self.value = self.notes.operand(value)

    def __getattr__(self, name: str) -> Any:
        raise UntraceableError(f"an attribute: {name}")

    def __bool__(self) -> bool:
        raise UntraceableError("a decision that depends on values")

    def __neg__(self) -> Noted:
        return self.notes.call("negative", self)


class Notes:
    """What was asked so far: `lines` of a loop, and its `numbers`. It is also the module `xp` that the step gets."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.lines: list[str] = []
        self.numbers: list[float] = []

    def operand(self, value: Any) -> str:
        """The name of an array's elements, or of a number."""
        if isinstance(value, Noted):
            return value.value
        if isinstance(value, (int, float, np.floating)):
            self.numbers.append(float(value))
            return f"s{len(self.numbers) - 1}"
        raise UntraceableError(f"an operand of type {type(value).__name__}")

    def call(self, name: str, *operands: Any, out: Noted | None = None) -> Noted:
        """Note a function; its result is `out`, if that is given."""
        value = f"v{len(self.lines)}"
        self.lines.append(f"{self.kind} {value} = {FUNCTIONS[name].format(*map(self.operand, operands), T=self.kind)};")
        if out is None:
            return Noted(self, value)
        out.value = value
        return out

    def empty_like(self, like: Noted) -> Noted:
        return Noted(self, "nothing")

    def __getattr__(self, name: str) -> Any:
        if name not in FUNCTIONS:
            raise UntraceableError(f"a function: {name}")
        return functools.partial(self.call, name)


def _operators() -> None:
    """Python's operators of arrays: `a + b`, `2 + b`, `a += b`."""

    def plain(name: str) -> Callable[..., Any]:
        return lambda self, other: self.notes.call(name, self, other)

    def reflected(name: str) -> Callable[..., Any]:
        return lambda self, other: self.notes.call(name, other, self)

    def in_place(name: str) -> Callable[..., Any]:
        return lambda self, other: self.notes.call(name, self, other, out=self)

    for symbol, name in (("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("truediv", "divide")):
        setattr(Noted, f"__{symbol}__", plain(name))
        setattr(Noted, f"__r{symbol}__", reflected(name))
        setattr(Noted, f"__i{symbol}__", in_place(name))


_operators()


class Step:
    """A step as a loop: called as the method is, on flat arrays. `numpy`: the method itself, for what the loop cannot do.

    With `more` gradients, which are added to the first, and `copies` of the new weight, it is only for `together`.
    """

    def __init__(self, numpy: Callable[..., Array], arrays: int, dtype: np.dtype[Any], more: int = 0, copies: int = 0) -> None:
        self.numpy = numpy
        self.arrays = arrays
        self.dtype = dtype
        notes = Notes(TYPES[dtype.name])
        given = [Noted(notes, f"x{number}") for number in range(arrays)]
        result = numpy(notes, *given, out=Noted(notes, "nothing"))
        if not isinstance(result, Noted) or given[1].value != "x1":
            raise UntraceableError("a result that is no array, or a gradient that is changed")
        self.numbers = notes.numbers
        self.source = written(notes, [each.value for each in given], result.value, more, copies)
        kinds = (machine.POINTER,) * (arrays + 1 + more + copies) + (machine.NUMBERS[dtype.name],) * len(self.numbers)
        self.code = machine.code_of(self.source, (*kinds, machine.LONG, machine.LONG))
        self.bits = [machine.bits(number, machine.NUMBERS[dtype.name]) for number in self.numbers]

    def __call__(self, xp: Any, *arrays: Array, out: Array | None) -> Array:
        function = self.code.function
        result = np.empty_like(arrays[0]) if out is None else out
        every = (*arrays, result)
        if function is None or any(each.dtype is not self.dtype or not each.flags.c_contiguous for each in every):
            return self.numpy(xp, *arrays, out=out)
        pointers = [machine.address(each) for each in every]
        begins = sorted(pointers)
        if overlap(begins, [begin + result.nbytes for begin in begins]):
            return self.numpy(xp, *arrays, out=out)
        function(*pointers, *self.numbers, 0, result.size)
        return result


def overlap(begins: Sequence[int], ends: Sequence[int]) -> bool:
    """Whether some arrays overlap, in the order in which they begin, and are not the same: what is written for an element of one would be
    read for another of the other.
    """
    neighbours = zip(begins, ends, begins[1:], ends[1:])
    return any(second < end and (second, last) != (first, end) for first, end, second, last in neighbours)


#: How many pairs of arrays are the same, and how many overlap otherwise.
OVERLAPS = """\
void loop(long *begins, long *nbytes, long *found, long low, long high) {
    found[0] = 0;
    found[1] = 0;
    for (long i = low; i < high; i++) {
        long begin = begins[i];
        long end = begin + nbytes[i];
        long same = 0;
        long other = 0;
        for (long j = 0; j < i; j++) {
            bool touch = begins[j] < end && begin < begins[j] + nbytes[j];
            bool alike = begins[j] == begin && begins[j] + nbytes[j] == end;
            same += touch && alike ? 1 : 0;
            other += touch && !alike ? 1 : 0;
        }
        found[0] = found[0] + same;
        found[1] = found[1] + other;
    }
}
"""


def overlaps() -> machine.Code:
    """The machine code of OVERLAPS."""
    return machine.code_of(OVERLAPS, (machine.POINTER,) * 3 + (machine.LONG,) * 2)


class Joined:
    """The loops of many steps as one list of calls, for weights of given sizes. Only addresses and rates are written for each run."""

    def __init__(
        self, loops: Sequence[Step], sizes: Sequence[int], more: int, copies: int, threads: int, lib: library.Library
    ) -> None:
        """**Args** `more`, `copies`: for each step, as in Step."""
        self.codes = [loop.code for loop in loops]  # what is here finds it by them: they must live as long
        self.player = calls.player()
        team = (lib.addresses["omp_get_thread_num"], lib.addresses["omp_get_num_threads"])
        fields: list[int] = []
        places: list[tuple[int, int]] = []  # (which field, which value of a run)
        rows: list[tuple[int, int, int]] = []  # the address of a loop, where its fields begin, on how many threads
        widths = [loop.arrays + more for loop in loops]
        first, copy = 0, sum(widths)
        rate = copy + copies * len(loops)
        nbytes = [size * loop.dtype.itemsize for loop, size in zip(loops, sizes)]
        self.nbytes = np.concatenate([np.repeat(nbytes, widths), np.repeat(nbytes, copies)]).astype(np.int64)  # of each array
        self.overlaps = overlaps().function
        self.found = np.zeros(2, np.int64)
        for loop, size, width in zip(loops, sizes, widths):
            rates = len(loop.bits)
            own = [first, first + 1, *range(first + 2 + more, first + width), first]  # weight, gradient, states, the new weight
            own += [*range(first + 2, first + 2 + more), *range(copy, copy + copies), *range(rate, rate + rates)]
            rows.append((loop.code.part, len(fields), threads if NS_PER_ELEMENT * size * width >= WORTH_SHARING else 1))
            places += [(len(fields) + place, value) for place, value in enumerate(own)]
            fields += [*[0] * len(own), size, 64, 0, *team]
            first, copy, rate = first + width, copy + copies, rate + rates
        self.fields = np.array(fields, np.int64)
        base, shared = machine.address(self.fields), lib.addresses["GOMP_parallel"]
        self.table = np.array(
            [
                (part, base + 8 * start, 0, 0, 0, 0) if shares == 1 else (shared, part, base + 8 * start, shares, 0, 0)
                for part, start, shares in rows
            ],
            np.int64,
        )
        self.patches = np.array([(base + 8 * field, value, 0) for field, value in places], np.int64)
        self.count = len(self.nbytes)
        self.values = np.zeros(rate, np.int64)
        self.places = [machine.address(each) for each in (self.values, self.nbytes, self.found)]
        self.alone = copies > 0  # no array may come twice: the copies of a weight's first step would be too early
        self.arguments = (
            machine.address(self.table), len(self.table), machine.address(self.patches), len(self.patches), machine.address(self.values),
        )  # fmt: skip

    def run(self, arrays: Sequence[Array], rates: list[int]) -> bool:
        """Run it on arrays, those of the steps, then copies. One thread at a time may. False, and nothing is done, where they overlap."""
        machine.addresses(arrays, self.values)
        self.values[self.count :] = rates
        self.overlaps(*self.places, 0, self.count)
        same, other = self.found.tolist()
        if other or (same and self.alone):
            return False
        self.player.function(*self.arguments)
        return True


_joined: dict[tuple[Any, ...], list[Joined]] = {}  # those that no thread uses now


def together(op: optim_multi.Steps, data: Sequence[Array], copies: Sequence[Array] = ()) -> bool:
    """Make all steps of `op` on contiguous arrays by one call, and write the copies of weights that it wants; False, and nothing is done,
    if that has to be done one by one.
    """
    lib = library.find() if compiles() else None
    if lib is None or not lib.is_parallel or calls.player().function is None or overlaps().function is None:
        return False
    found: dict[tuple[int, int], Any] = {}  # of a step and a dtype, the loop
    weights = [data[first] for first in op.firsts]
    kinds = [(id(step), id(weight.dtype)) for step, weight in zip(op.steps, weights)]
    for kind, step, weight in zip(kinds, op.steps, weights):
        if kind not in found:
            found[kind] = None if step.mixed else faster(step.step, len(step.inputs), weight.dtype, op.gradients - 1, op.copies)
            if not isinstance(found[kind], Step) or not found[kind].code.part or found[kind].dtype is not weight.dtype:
                return False
    loops = [found[kind] for kind in kinds]
    sizes = [weight.size for weight in weights]
    threads = share(NS_PER_ELEMENT * sum(sizes) * len(data) / len(weights))
    key = (threads, op.gradients, op.copies, *[id(loop.code) for loop in loops], *sizes)
    idle = _joined.get(key)
    if idle is None:
        if len(_joined) >= MOST:
            _joined.clear()
        idle = _joined.setdefault(key, [])
    try:
        joined = idle.pop()
    except IndexError:
        joined = Joined(loops, sizes, op.gradients - 1, op.copies, threads, lib)
    done = joined.run([*data, *copies], [bits for loop in loops for bits in loop.bits])
    idle.append(joined)
    return done


def written(notes: Notes, after: list[str], result: str, more: int, copies: int) -> str:
    """The loop's text. `after`: the values of the arrays that were given when all is done."""
    kind = notes.kind
    parameters = [f"{kind} *a{number}" for number in range(len(after))] + [f"{kind} *r"]
    parameters += [f"{kind} *g{number}" for number in range(more)] + [f"{kind} *c{number}" for number in range(copies)]
    parameters += [f"{kind} s{number}" for number in range(len(notes.numbers))] + ["long low", "long high"]
    inside = [f"{kind} {'y' if more and number == 1 else f'x{number}'} = a{number}[i];" for number in range(len(after))]
    for number in range(more):  # the sum of the gradients so far, at last x1
        inside.append(f"{kind} y{number} = g{number}[i];")
        total = "x1" if number == more - 1 else f"t{number}"
        inside.append(f"{kind} {total} = ({'y' if number == 0 else f't{number - 1}'} + y{number});")
    inside += notes.lines
    inside += [f"a{number}[i] = {value};" for number, value in enumerate(after) if number > 1 and value != f"x{number}"]
    inside += [f"{array}[i] = {result};" for array in ("r", *(f"c{number}" for number in range(copies)))]
    lines = [f"        {line}" for line in inside]
    return "\n".join([f"void loop({', '.join(parameters)}) {{", "    for (long i = low; i < high; i++) {", *lines, "    }", "}"])


_made: dict[tuple[Any, ...], Step | None] = {}  # what was asked for -> its loop; None if it has none
MOST = 1024


def faster(step: Callable[..., Array], arrays: int, dtype: np.dtype[Any], more: int = 0, copies: int = 0) -> Callable[..., Array]:
    """A step that is called as `step` is, with so many arrays: its loop, or itself. With `more` or `copies` see Step.

    `step` is a method of an operator, or a `functools.partial` of a function. Loops are kept by the operators' attributes.
    """
    if not compiles():
        return step
    if isinstance(step, functools.partial):
        key = (step.func, *step.args, arrays, dtype, more, copies)
    else:
        op = step.__self__  # type: ignore[attr-defined]  # a method
        key = (type(op), *op.__dict__.values(), arrays, dtype, more, copies)
    try:
        found = _made[key]
    except KeyError:
        found = _traced(step, arrays, dtype, more, copies)
        if len(_made) >= MOST:  # of a schedule, each step has numbers of its own
            _made.clear()
        _made[key] = found
    except TypeError:  # an attribute that cannot be hashed
        return step
    return step if found is None else found


def _traced(step: Callable[..., Array], arrays: int, dtype: np.dtype[Any], more: int, copies: int) -> Step | None:
    wide = dtype if dtype.itemsize >= 4 else np.dtype(np.float32)  # half precision is computed in single
    try:
        return Step(step, arrays, wide, more, copies)
    except Exception:  # whatever it is that Noted cannot do; a real fault shows when NumPy makes the step
        return None


optim.compiling.append(faster)
optim.joining.append(together)
