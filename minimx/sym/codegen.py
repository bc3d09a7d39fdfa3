"""From a planned graph to Python source: one function, straight on, a line an operator.

What the function computes stands in the graph (passes/), where values lie in its memory plan; here both are written down as a person
would: `fc1 = data.dot(fc1_weight.T, out=m0)`. Values are called after their nodes. NumPy's own functions are called where the kernel
of an operator is nothing else; the other operators by their kernels, whose attributes the first lines list. The source is compiled with
`compile(source, name, "exec")`, as in the first pages of chapter 3, and Python's tracebacks show its lines. Book: chapter 5.
"""

from __future__ import annotations

import builtins
import itertools
import keyword
import linecache
import math
import re
import unicodedata
import weakref
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from .. import device, storage
from ..device import Context
from ..engine import crew, execute
from ..kernels import cupy
from ..op import Kind, Op, Spec
from ..ops.activation import ACTIVATIONS, Activate, Relu
from ..ops.forms import Broadcast as BroadcastForm, Elementwise, Function, ReversedScalar, Scalar, Unary
from ..ops.linalg import Dot
from ..ops.nn import FullyConnectedLayer
from .conventions import hint_of
from .graph import Entry, Node
from .passes.constant import Constant
from .passes.memory import Buffer, Plan, Where, takes_out
from .passes.typed import TypedGraph, operator

FEW = 4096  # elements
WIDTH = 88  # of a line of source
RESERVED = {"np", "memory", "keys", "empty", "take", "give_back", "share_out", "tiles", "low", "high", "inf", "nan"}
_numbers = itertools.count(1)


class Writer:
    """Writes the function for one graph: `source` is its text, `namespace` what its names mean, `views` what it takes of the arena."""

    def __init__(self, graph: TypedGraph, context: Context) -> None:
        assert graph.plan is not None
        self.graph = graph
        self.plan: Plan = graph.plan
        self.context = context
        self.planned = device.array_module(context) is np  # CuPy has a pool of its own, on the device
        self.names = _Names()
        self.name = self.names.new(graph.name)
        self.names.taken.discard(self.name)  # inside, a value may be called so
        self.namespace: dict[str, Any] = {
            "np": device.array_module(context), "inf": math.inf, "nan": math.nan, "empty": lambda spec: storage.empty(spec, context),
            "take": execute.take_tile, "give_back": execute.give_back_tile, "share_out": crew.share_out,
        }  # fmt: skip
        self.values: dict[Entry, str] = {}
        self.views: list[tuple[Spec, int]] = []  # of the arena, in the order in which the function takes them
        self.memory: dict[Any, str] = {}  # buffer and shape -> the name of its view
        self.outside: dict[
            Any, str
        ] = {}  # what the function calls kernels, numbers, specs and tiles, each under a key of its own
        self.head: list[str] = []  # comments that say what the kernels are
        self.lines: list[str] = []
        self.source = self._write()

    # ---- the function

    def _write(self) -> str:
        arguments = []
        for node in self.graph.variables:
            self.values[node, 0] = name = self.names.new(node.name)
            arguments.append(name)
        for number, step in enumerate(self.plan.steps):
            if len(step) > 1 or step in self.graph.groups:
                (self._write_group if self.planned else self._write_fused)(number, step)
            else:
                for node in step:
                    self._write_node(node)
            self._free(number)
        results = [self._result(position, entry) for position, entry in enumerate(self.graph.heads)]
        signature = ", ".join(["memory", "keys", *arguments])
        lines = [f"def {self.name}({signature}):"]
        if self.views:
            taken = ", ".join(self.memory[view] for view in self.memory)
            lines.append(f"    [{taken}] = memory  # {self.plan.arena} bytes, kept from run to run")
        lines += [f"    {line}" for line in self.lines]
        lines.append(f"    return [{', '.join(results)}]")
        return "\n".join([*self.head, *itertools.chain.from_iterable(map(wrapped, lines))]) + "\n"

    def compiled(self) -> Callable[..., list[Any]]:
        """The function. Tracebacks find its source."""
        file = f"<minimx program {self.graph.name} {next(_numbers)}>"
        linecache.cache[file] = (len(self.source), None, self.source.splitlines(True), file)
        exec(compile(self.source, file, "exec"), self.namespace)
        function = self.namespace.pop(self.name)  # or the two would hold each other
        assert isinstance(function, FunctionType)
        weakref.finalize(function, linecache.cache.pop, file, None).atexit = False
        return function

    def _result(self, position: int, entry: Entry) -> str:
        name = self.values[entry]
        return f"np.array({name})" if position in self.plan.copied else name

    def _free(self, step: int) -> None:
        """Let go of large memory that a kernel made when the last reader has run. Without a plan kernels make all memory."""
        if step + 1 >= len(self.plan.steps):
            return
        for buffer in self.plan.deaths.get(step, ()):
            if (buffer.where is Where.KERNEL or not self.planned) and buffer.spec.nbytes >= storage.SMALL:
                names = [self.values[entry] for entry in buffer.values if self.values.get(entry, "_") != "_"]
                if names:
                    self.lines.append(f"del {', '.join(names)}")

    # ---- one operator

    def _write_node(self, node: Node) -> None:
        op = operator(node)
        if isinstance(op, Constant):
            self._write_constant(node, op)
            return
        arguments = ["None" if entry is None else self.values[entry] for entry in node.inputs]
        names = [self._name(node, index) for index in range(op.num_outputs)]
        specs = [self.graph.specs[node, index] for index in range(op.num_outputs)]
        out = self._memory(node)
        inputs = [None if entry is None else self.graph.specs[entry] for entry in node.inputs]
        shapes = ", ".join(str(spec.shape) for spec, name in zip(specs, names) if name != "_")
        # NumPy's functions make small arrays faster than we can.
        target = "" if self._is_fresh(node) and 0 < specs[0].nbytes < storage.SMALL and specs[0].shape else out
        lines = written(op, names[0], arguments, inputs, specs[0], target, self._number if specs[0].size <= FEW else literal)
        self.lines += [f"{line}  # {shapes}" for line in lines or [self._call(node, op, names, arguments, specs, out)]]

    def _call(self, node: Node, op: Op, names: list[str], arguments: list[str], specs: list[Spec], out: str | None) -> str:
        """A call of the operator's kernel."""
        keywords = [f"out={out}"] if out is not None else []
        if op.needs_key:
            keywords.append(f"key=keys[{self.graph.draws[node]}]")
        targets = ", ".join(names)
        return f"{targets} = {self._kernel(op, specs, out is not None)}({', '.join(['np', *arguments, *keywords])})"

    def _kernel(self, op: Op, specs: list[Spec], writes: bool) -> str:
        """The name under which the function finds the kernel of `op`."""
        try:
            key = (op, writes, None if writes else tuple(specs))  # one that makes its own memory knows what it should be
            found = self.outside.get(key)
        except TypeError:  # an attribute that cannot be hashed
            key, found = None, None
        if found is not None:
            return found
        name = self._global(hint_of(op).strip("_"))
        self.namespace[name] = op.kernel if writes else _settled(op, specs, self.context)
        attributes = ", ".join(f"{key}={value}" for key, value in op.attrs().items())
        attributes = attributes.encode("unicode_escape").decode()  # a line break in a text must not end the comment
        self.head.append(f"# {name} is the kernel of {op.name}({attributes})")
        if key is not None:
            self.outside[key] = name
        return name

    def _global(self, wish: str) -> str:
        """A name for something outside the function, and so not the function's."""
        name = self.names.new(wish)
        return self.names.new(wish) if name == self.name else name

    def _write_constant(self, node: Node, op: Constant) -> None:
        self.values[node, 0] = name = self._global(node.name)
        with device.activate(self.context):
            self.namespace[name] = self.namespace["np"].asarray(op.value)
        shown = str(op.value.tolist()) if op.value.size <= 4 else f"{op.value.dtype}{list(op.value.shape)}"
        self.head.append(f"# {name} = {shown}, computed beforehand")

    def _name(self, node: Node, index: int) -> str:
        """A name for an output; "_" if nobody reads it."""
        if not self.graph.uses.get((node, index)) and operator(node).num_outputs > 1:
            name = "_"
        else:
            name = self.names.new(node.name if index == 0 else f"{node.name}_{index}")
        self.values[node, index] = name
        return name

    def _is_fresh(self, node: Node) -> bool:
        """Whether an output begins here, in memory of its own."""
        return self.planned and self.plan.buffers[node, 0].where is Where.OUTPUT and (node, 0) not in self.plan.written_over

    def _number(self, value: float, spec: Spec) -> str:
        """The name of a number as an array without axes, which NumPy's functions take faster than a Python number."""
        key = ("number", repr(value), spec.dtype)  # 0.0 == -0.0
        if key not in self.outside:
            shown = f"{value:g}".replace("-", "m").replace(".", "_").replace("+", "")
            with np.errstate(all="ignore"):
                number = np.array(value, spec.dtype) if self.planned else spec.dtype.type(value)
            name = self._called(key, f"c{shown}" if spec.dtype == np.float32 else f"c{shown}_{spec.dtype.name}", number)
            self.head.append(f"# {name} is {value!r} in {spec.dtype.name}")
        return self.outside[key]

    def _called(self, key: Any, wish: str, value: Any) -> str:
        """What the function calls a `value` from outside: the same for the same `key`."""
        if key not in self.outside:
            self.outside[key] = name = self._global(wish)
            self.namespace[name] = value
        return self.outside[key]

    def _memory(self, node: Node) -> str | None:
        """Where the kernel of a node is to write: an operand's place, a view of the arena, or fresh memory. None: it makes its own."""
        entry = (node, 0)
        buffer = self.plan.buffers[entry]
        if not self.planned or not takes_out(node):
            return None
        operand = self.plan.written_over.get(entry)
        if operand is not None:
            return self.values[operand]
        if buffer.where is Where.ARENA:
            return self._view(buffer, self.graph.specs[entry])
        if buffer.where is Where.OUTPUT:
            return self._fresh(self.graph.specs[entry])
        return None

    def _view(self, buffer: Buffer, spec: Spec) -> str:
        """The name of a view of the arena."""
        key = (buffer.offset, spec)
        if key not in self.memory:
            self.memory[key] = self.names.new(f"m{len(self.memory)}")
            self.views.append((spec, buffer.offset))
        return self.memory[key]

    def _fresh(self, spec: Spec) -> str:
        """An expression for fresh memory."""
        if spec.nbytes < storage.SMALL:
            return f"np.empty({spec.shape}, {spec.dtype.name!r})"
        return f"empty({self._called(('spec', spec), f'{spec.dtype.name}_' + 'x'.join(map(str, spec.shape)), spec)})"

    # ---- a group of elementwise operators

    def _write_group(self, number: int, step: tuple[Node, ...]) -> None:
        """A function that goes over tiles, and a call that shares them out among the cores."""
        size = self.graph.specs[step[0], 0].size
        inside = {(node, 0) for node in step}
        outer: dict[Entry, str] = {}  # operand -> the name of its flat array
        for node in step:
            for entry in node.inputs:
                assert entry is not None
                if entry not in inside and entry not in outer:
                    spec = self.graph.specs[entry]
                    outer[entry] = self._flat(self.values[entry], spec, "-1" if spec.size == size else "()")
        for node in step:
            if self.plan.buffers[node, 0].where is not Where.TILE:
                name = self._name(node, 0)
                self.lines.append(f"{name} = {self._memory(node)}  # {self.graph.specs[node, 0].shape}")
                outer[node, 0] = self._flat(name, self.graph.specs[node, 0], "-1")
        function = self.names.new(f"group{number}")
        tiles = _Tiles(self, step, outer, size)
        self.lines += [
            f"def {function}(tiles):  # {', '.join(dict.fromkeys(operator(node).name.strip('_') for node in step))}",
            *(f"    {name} = take({dtype!r})" for name, dtype in tiles.scratch.items()),
            "    for low, high in tiles:",
            *(f"        {line}" for line in tiles.lines),
            *(f"    give_back({name})" for name in tiles.scratch),
            f"share_out({self._bounds(size)}, {function})",
        ]

    def _write_fused(self, number: int, step: tuple[Node, ...]) -> None:
        """A call of one kernel of a GPU for a group; values that nobody else reads are never stored."""
        inside = {(node, 0): position for position, node in enumerate(step)}
        outer: dict[Entry, int] = {}  # operand -> its number
        for node in step:
            for entry in node.inputs:
                if entry is not None and entry not in inside:
                    outer.setdefault(entry, len(outer))
        numbers = {**outer, **{entry: len(outer) + position for entry, position in inside.items()}}
        specs = self.graph.specs
        steps = tuple(
            cupy.Step(operator(node), tuple(numbers[entry] for entry in node.inputs if entry), specs[node, 0].dtype)
            for node in step
        )
        wanted = [node for node in step if self.plan.buffers[node, 0].where is not Where.TILE]
        shape = specs[step[0], 0].shape
        group = cupy.Group(shape, tuple(specs[entry].dtype for entry in outer), steps, tuple(numbers[node, 0] for node in wanted))
        name = self._called(("fused", number), f"fused{number}", cupy.Fused(group))
        self.head.append(f"# {name} is one kernel of the GPU: {', '.join(operator(node).name.strip('_') for node in step)}")
        operands = [self.values[entry] for entry in outer]
        targets = ", ".join(self._name(node, 0) for node in wanted)
        self.lines.append(f"[{targets}] = {name}({', '.join(['np', *operands])})  # {shape}")

    def after_tile(self, node: Node, step: tuple[Node, ...]) -> Sequence[str]:
        """Lines to follow those that compute a tile of `node`, one of the group `step`: see timing.py."""
        return ()

    def _flat(self, name: str, spec: Spec, shape: str) -> str:
        if len(spec.shape) == 1 and shape == "-1":
            return name
        flat = self.names.new(f"{name}_flat")
        self.lines.append(f"{flat} = {name}.reshape({shape})")
        return flat

    def _bounds(self, size: int) -> str:
        tiles = [(low, min(low + execute.TILE, size)) for low in range(0, size, execute.TILE)]
        return self._called(("tiles", size), f"tiles_of_{size}", tiles)


class _Tiles:
    """The lines that a group does for one tile, and the names of the scratch tiles it needs."""

    def __init__(self, writer: Writer, step: tuple[Node, ...], outer: dict[Entry, str], size: int) -> None:
        self.scratch: dict[str, str] = {}
        self.lines: list[str] = []
        specs = writer.graph.specs
        names = writer.names
        last = {entry: node for node in step for entry in node.inputs if entry is not None}
        values: dict[Entry, str] = {}
        idle: dict[str, list[str]] = {}  # dtype -> scratch tiles that nobody reads any more
        home: dict[Entry, str] = {}  # value that exists as a tile only -> its scratch
        for node in step:
            op = operator(node)
            for entry in node.inputs:
                assert entry is not None
                if entry not in values:
                    if specs[entry].size == size:
                        values[entry] = names.new(f"{outer[entry]}_tile")
                        self.lines.append(f"{values[entry]} = {outer[entry]}[low:high]")
                    else:
                        values[entry] = outer[entry]
            entry = (node, 0)
            for operand in dict.fromkeys(node.inputs):
                if operand in home and last[operand] is node:
                    idle.setdefault(specs[operand].dtype.name, []).append(home.pop(operand))
            if entry in outer:
                out = f"{outer[entry]}[low:high]"
            else:
                dtype = specs[entry].dtype.name
                tile = idle[dtype].pop() if idle.get(dtype) else names.new(f"t{len(self.scratch)}")
                self.scratch.setdefault(tile, dtype)
                if last.get(entry) is not None:
                    home[entry] = tile
                else:
                    idle.setdefault(dtype, []).append(tile)
                out = f"{tile}[: high - low]"
            values[entry] = name = names.new(node.name)
            arguments = [values[operand] for operand in node.inputs if operand is not None]
            inputs = [specs[operand] for operand in node.inputs if operand is not None]
            lines = written(op, name, arguments, inputs, specs[entry], out)
            self.lines += lines or [
                f"{name} = {writer._kernel(op, [specs[entry]], True)}({', '.join(['np', *arguments])}, out={out})"
            ]
            self.lines += writer.after_tile(node, step)


class _Names:
    """Identifiers, each given once."""

    def __init__(self) -> None:
        self.taken = RESERVED | set(dir(builtins))

    def new(self, wish: str) -> str:
        """An identifier like `wish`."""
        stem = re.sub(r"\W", "_", unicodedata.normalize("NFKC", wish)) or "value"  # the form in which Python compares them
        if not stem.isidentifier() or keyword.iskeyword(stem) or stem == "_":
            stem = f"v{stem}"
        if not stem.isidentifier():  # a letter that none may have
            stem = re.sub(r"\W", "_", stem, flags=re.ASCII)
        name = stem
        for number in itertools.count(1):
            if name not in self.taken:
                break
            name = f"{stem}_{number}"
        self.taken.add(name)
        return name


def wrapped(line: str) -> list[str]:
    """A line of source, its first brackets on several lines if it is too long to read."""
    code = line.partition("  # ")[0]
    start = min((code.find(bracket) for bracket in "([" if bracket in code), default=-1)
    if len(line) <= WIDTH or start < 0:
        return [line]
    depth, parts, end = 0, [""], len(line)
    for position, letter in enumerate(line[start:], start):
        depth += (letter in "([") - (letter in ")]")
        if not depth:
            end = position
            break
        if letter == "," and depth == 1:
            parts.append("")
        elif position > start:
            parts[-1] += letter
    if len(parts) == 1:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    inside = [f"{indent}   "]
    for part in parts:
        if len(inside[-1]) + len(part.strip()) + 2 > WIDTH and inside[-1].strip():
            inside.append(f"{indent}   ")
        inside[-1] += f" {part.strip()},"
    return [line[: start + 1], *inside, indent + line[end:]]


def _settled(op: Op, specs: Sequence[Spec], context: Context) -> Callable[..., Any]:
    """The kernel of an operator that makes its own memory: its results as they are promised, in the account of `context`."""
    listed = list(specs)

    def run(xp: Any, *arrays: Any, **key: Any) -> Any:
        found = execute.checked(op, xp, execute.call_kernel(op, xp, list(arrays), **key), listed, list(arrays))
        if xp is np:
            found = [storage.adopt(array, context) for array in found]
        return found[0] if len(found) == 1 else found

    return run


# ---- operators that are written as NumPy's functions


Number = Callable[[float, Spec], str]


def literal(value: float, spec: Spec) -> str:
    """A Python number as it is written in source."""
    return repr(value)


def written(
    op: Op, name: str, arguments: list[str], inputs: Sequence[Spec | None], spec: Spec, out: str | None, number: Number = literal
) -> list[str] | None:
    """Lines that compute `name` from `arguments` with NumPy's own functions; None where the kernel does more than that.

    **Args** `out`: where the result is to be; "" for fresh memory, of which NumPy takes care; None if nothing was planned. `number`: how a
    number is written.
    """
    into = f", out={out}" if out else ""
    if op.aliases:
        return [f"{name} = {arguments[0]}.reshape({spec.shape})"]
    if spec.dtype.kind != "f" or any(each is None or each.dtype is not spec.dtype for each in inputs):
        return None
    if op.kind is Kind.ELEMENTWISE:
        called = ufunc_of(op, spec)
        if called is None or out is None:
            return None
        function, before, after = called
        if not out and function.types[-1].endswith("?"):  # a comparison, which gives bool
            return None
        numbers = [[number(float(value), spec) for value in values] for values in (before, after)]
        return [f"{name} = np.{function.__name__}({', '.join([*numbers[0], *arguments, *numbers[1]])}{into})"]
    if spec.dtype.itemsize == 2:
        return None  # half precision is computed in single, by the kernels
    shapes = [each.shape for each in inputs if each is not None]
    if isinstance(op, FullyConnectedLayer) and len(shapes[0]) == 2:
        lines = [f"{name} = {arguments[0]}.dot({arguments[1]}.T{into})"]
        # NumPy adds a row to rows sooner than a vector.
        return lines if len(arguments) == 2 else [*lines, f"np.add({name}, {arguments[2]}[None], out={name})"]
    if isinstance(op, Dot) and len(shapes[0]) == len(shapes[1]) == 2:
        left = f"{arguments[0]}.T" if op.transpose_a else arguments[0]
        right = f"{arguments[1]}.T" if op.transpose_b else arguments[1]
        return [f"{name} = {left}.dot({right}{into})"]
    return None


def ufunc_of(op: Op, spec: Spec) -> tuple[np.ufunc, list[float], list[float]] | None:
    """The NumPy function that is all an elementwise operator does on floating arrays, and numbers that come before and after the arrays."""
    if isinstance(op, Activate):
        op = ACTIVATIONS[op.act_type]
    if isinstance(op, Relu) and spec.size <= FEW:  # with more numbers the kernel has a faster way
        return np.maximum, [], [0.0]
    if not isinstance(op.ufunc, np.ufunc):
        return None
    kind = type(op)
    function = op.ufunc
    if isinstance(op, Unary):
        return (function, [], []) if kind.kernel is Unary.kernel else None
    if not isinstance(op, Function):
        return None
    if isinstance(op, ReversedScalar):
        return (function, [op.scalar], []) if kind.kernel is ReversedScalar.kernel else None
    if isinstance(op, Scalar):
        return (function, [], [op.scalar]) if kind.kernel is Scalar.kernel else None
    if isinstance(op, (Elementwise, BroadcastForm)):
        return (function, [], []) if kind.kernel in (Elementwise.kernel, BroadcastForm.kernel) else None
    return None
