"""From a planned graph to Python source: one function, straight on, a line an operator.

What the function computes stands in the graph (passes/), where values lie in its memory plan; here both are written down as a person
would: `fc1 = data.dot(fc1_weight.T, out=m0)`. Values are called after their nodes. NumPy's own functions are called where the kernel
of an operator is nothing else; the other operators by their kernels, whose attributes the first lines list; kernels that follow each
other may become one call (runs.py). The source is compiled with
`compile(source, name, "exec")`, as in the first pages of chapter 3, and Python's tracebacks show its lines. Book: chapter 5.
"""

from __future__ import annotations

import itertools
import linecache
import math
import weakref
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np

from .. import device, kernels, storage
from ..device import Context
from ..engine import crew, execute
from ..kernels import chain, fused
from ..op import Kind, Op, Spec
from .conventions import hint_of
from .graph import Entry, Node
from .names import Names, wrapped
from .passes.constant import Constant
from .passes.memory import Buffer, Plan, Where, takes_out
from .passes.typed import TypedGraph, operator
from .runs import Kernel, Run, RunWriter, Small
from .ufuncs import FEW, literal, written

_numbers = itertools.count(1)


class Writer(RunWriter):
    """Writes the function for one graph: `source` is its text, `namespace` what its names mean, `views` what it takes of the arena."""

    chains = True  # whether kernels that follow each other may become one call

    def __init__(self, graph: TypedGraph, context: Context) -> None:
        assert graph.plan is not None
        self.graph = graph
        self.plan: Plan = graph.plan
        self.context = context
        self.planned = device.array_module(context) is np  # CuPy has a pool of its own, on the device
        self.chains = self.planned and self.chains and fused.compiles()
        self.names = Names()
        self.name = self.names.new(graph.name)
        self.names.taken.discard(self.name)  # inside, a value may be called so
        self.namespace: dict[str, Any] = {
            "np": device.array_module(context), "inf": math.inf, "nan": math.nan, "empty": lambda spec: storage.empty(spec, context),
            "take": execute.take_tile, "give_back": execute.give_back_tile, "share_out": crew.share_out,
        }  # fmt: skip
        self.values: dict[Entry, str] = {}
        self.views: list[tuple[Spec, int]] = []  # of the arena, in the order in which the function takes them
        self.memory: dict[Any, str] = {}  # buffer and shape -> the name of its view
        # What the function calls kernels, numbers, specs and tiles, each under a key of its own.
        self.outside: dict[Any, str] = {}
        self.loops: dict[str, fused.Loop | chain.Chain] = {}  # what runs in machine code, by the function's names for it
        self.head: list[str] = []  # comments that say what the kernels are
        self.lines: list[str] = []
        self.run = Run()  # kernels that may become one call
        self.source = self._write()

    # ---- the function

    def _write(self) -> str:
        arguments = []
        for node in self.graph.variables:
            self.values[node, 0] = name = self.names.new(node.name)
            arguments.append(name)
        for number, step in enumerate(self.plan.steps):
            self.number = number
            if len(step) > 1 or step in self.graph.groups:
                (self._write_group if self.planned else self._write_fused)(number, step)
            else:
                for node in step:
                    self._write_node(node)
            self._free(number)
        self._end_run()
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
                    self.run.after(self.lines, f"del {', '.join(names)}")

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
        library = None if not self.planned else kernels.faster(op, inputs, self.context)

        def lines(out: str | None, target: str | None) -> list[str]:
            found = None
            if library is None:
                number = self._number if specs[0].size <= FEW else literal
                found = written(op, names[0], arguments, inputs, specs[0], target, number)
            found = found or [self._call(node, op, names, arguments, specs, out, library)]
            return [f"{line}  # {shapes}" for line in found]

        # NumPy's functions make small arrays faster than we can.
        target = "" if self._is_fresh(node) and 0 < specs[0].nbytes < storage.SMALL and specs[0].shape else out
        plain = lines(out, target)
        if op.aliases:
            self.run.beside(self.lines, plain)
            return
        given = [argument for argument in arguments if argument != "None"]
        if self.planned and library is None and self._write_sum(op, given, names[0], inputs, specs[0], plain):
            return
        link: Kernel | None = library
        if link is None and self.chains:
            link = self._small(op, inputs, specs[0])
        if out is None or link is None or not (isinstance(link, Small) or chain.can_link(link)):
            self._end_run()
            self.lines += plain
            return
        results = [self.names.new("unused") if name == "_" else name for name in names]  # a kernel writes all its outputs
        memory = [out, *map(self._fresh, specs[1:])]

        def otherwise() -> list[str]:
            if isinstance(link, Small) and op.kind is Kind.GEMM:  # all runs are to give the same bits, whoever makes the call
                return [f"{self._call(node, op, names, arguments, specs, names[0], link.make())}  # {shapes}"]
            return lines(names[0], names[0])

        places = [f"{name} = {place}  # {spec.shape}" for name, place, spec in zip(results, memory, specs)]
        self._add(link, [*given, *results], plain, places, otherwise)

    def _call(
        self,
        node: Node,
        op: Op,
        names: list[str],
        arguments: list[str],
        specs: list[Spec],
        out: str | None,
        library: kernels.Faster | None,
    ) -> str:
        """A call of the operator's kernel, or of a library's in its place."""
        keywords = [f"out={out}"] if out is not None else []
        if op.needs_key:
            keywords.append(f"key=keys[{self.graph.draws[node]}]")
        targets = ", ".join(names)
        return f"{targets} = {self._kernel(op, specs, out is not None, library)}({', '.join(['np', *arguments, *keywords])})"

    def _kernel(self, op: Op, specs: list[Spec], writes: bool, library: kernels.Faster | None = None) -> str:
        """The name under which the function finds the kernel of `op`, or that of a library."""
        try:
            key = (op, writes, None if writes else tuple(specs), library)  # one that makes its own memory knows what it should be
            found = self.outside.get(key)
        except TypeError:  # an attribute that cannot be hashed
            key, found = None, None
        if found is not None:
            return found
        name = self._global(hint_of(op).strip("_"))
        kernel = library or op.kernel
        self.namespace[name] = kernel if writes else _settled(op, specs, self.context, library)
        attributes = ", ".join(f"{key}={value}" for key, value in op.attrs().items())
        attributes = attributes.encode("unicode_escape").decode()  # a line break in a text must not end the comment
        self.head.append(
            f"# {name} is the kernel of {op.name}({attributes}){'' if library is None else f', by {library.library}'}"
        )
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
            self.namespace[name] = self.namespace["np"].asarray(op.value, order="C")
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


def _settled(op: Op, specs: Sequence[Spec], context: Context, library: kernels.Faster | None = None) -> Callable[..., Any]:
    """The kernel of an operator that makes its own memory, or a library's: results as they are promised, in the account of `context`."""
    listed = list(specs)

    def run(xp: Any, *arrays: Any, **key: Any) -> Any:
        made = execute.call_kernel(op, xp, list(arrays), **key) if library is None else library(xp, *arrays, **key)
        found = execute.checked(op, xp, made if type(made) is tuple else (made,), listed, list(arrays))
        if xp is np:
            found = [storage.adopt(array, context) for array in found]
        return found[0] if len(found) == 1 else found

    return run
