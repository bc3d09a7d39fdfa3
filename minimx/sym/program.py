"""A program: a graph specialized to shapes, dtypes, device and training mode, put through passes, and compiled from Python source.

    graph -> specialize -> [differentiate] -> PASSES -> [mirror, split] -> LATE_PASSES and memory plan, for each part -> source -> function

A *part* is one direction of a program, forward or backward. It is an operator to the engine: one task, one record. What the backward part
needs of the forward part's values, the forward part gives as further outputs, which nobody sees but autograd's tape. Book: chapter 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from .. import device, storage
from ..device import Context
from ..engine.events import watch
from ..engine.front import work
from ..engine.lanes import WORKERS
from ..kernels import threads
from ..kernels.fused import Loop
from ..op import Kind, Op, Spec
from .codegen import Writer
from .graph import Entry, Node
from .passes import LATE_PASSES, PASSES
from .passes.branches import by_branch
from .passes.cutting import by_cost, by_number, cut
from .passes.gradient import differentiate, split
from .passes.memory import plan_memory
from .passes.mirror import mirror
from .passes.specialize import specialize
from .passes.typed import Builder, TypedGraph, operator
from .timing import TimedWriter

KEPT = 1 << 20  # bytes: an arena up to this size is kept from run to run in any case
PIECES = 4  # of the backward part, where gradients are to be added over several devices
WORTH_CUTTING = 1e6  # nanoseconds of a backward part from which on it is cut,
WORTH_SENDING = 1 << 20  # if its gradients have so many bytes: adding fewer takes less time than a task does


class Part(Op):
    """One direction of a program, as an operator: `kernel` runs the compiled function in memory of the arena."""

    name = "program"
    kind = Kind.PROGRAM
    inputs: ClassVar[tuple[str, ...]] = ("data*",)

    def __init__(self, graph: TypedGraph, context: Context, static: bool) -> None:
        writer = Writer(graph, context)
        mutated = {entry[0] for node in graph.order for position in operator(node).mutates if (entry := node.inputs[position])}
        assert graph.plan is not None
        self.__dict__.update(
            name=graph.name,
            graph=graph,
            source=writer.source,
            function=writer.compiled(),
            clocked=None,
            context=context,
            specs=tuple(graph.specs[entry] for entry in graph.heads),
            mutates=tuple(position for position, node in enumerate(graph.variables) if node in mutated),
            nanoseconds=cost_of(graph),
            arena=graph.plan.arena,
            views=writer.views,
            loops=writer.loops,
            keeps=static or graph.plan.arena <= KEPT,
            idle=[],
        )

    graph: TypedGraph
    source: str
    function: Callable[..., list[Any]]
    clocked: Callable[..., list[Any]] | None  # the same with a clock, if somebody has watched a run
    context: Context
    specs: tuple[Spec, ...]  # of the outputs
    nanoseconds: float  # estimated
    arena: int
    views: list[tuple[Spec, int]]
    loops: dict[str, Loop]  # the groups that run in machine code when it is there, by their names in the source
    keeps: bool
    idle: list[list[Any]]  # views of arenas that no run uses now

    @property
    def cost(self) -> float:
        return self.nanoseconds

    def kernel(self, xp: Any, *arrays: Any, key: Any = None) -> Any:
        """The outputs, in a tuple. Several threads may run it at once: each has an arena of its own."""
        try:
            memory = self.idle.pop()
        except IndexError:
            memory = self._memory()
        function = self.function if watch.programs is None else self.timed()
        outputs = function(memory, key, *arrays)
        if self.keeps:
            self.idle.append(memory)
        return tuple(outputs)

    def timed(self) -> Callable[..., list[Any]]:
        """The function that tells of each operator, for those who watch."""
        if self.clocked is None:
            writer = TimedWriter(self.graph, self.context)
            assert writer.views == self.views  # it runs in the same memory
            self.__dict__["clocked"] = writer.compiled()
        assert self.clocked is not None
        return self.clocked

    def operators(self) -> list[tuple[str, Op, list[Spec], list[Spec]]]:
        """What is in it, for those who count work: of each operator its node's name, itself, and the specs of what it reads and makes."""
        specs = self.graph.specs
        return [
            (
                node.name,
                operator(node),
                [specs[entry] for entry in node.inputs if entry is not None],
                [specs[node, index] for index in range(operator(node).num_outputs)],
            )
            for node in self.graph.order
        ]

    def givers(self) -> list[str]:
        """For each output the name of the node that makes it."""
        return [node.name for node, _ in self.graph.heads]

    def _memory(self) -> list[Any]:
        """Views of a new arena."""
        if not self.views:
            return []
        arena = storage.empty(Spec.of((self.arena,), "uint8"), self.context)
        return [arena[low : low + spec.nbytes].view(spec.dtype).reshape(spec.shape) for spec, low in self.views]

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<program {self.name}>"


def cost_of(graph: TypedGraph) -> float:
    """Estimated nanoseconds of a graph."""
    return sum(node_cost(graph, node) for node in graph.order)


def nbytes_of(entries: Sequence[Entry], graph: TypedGraph) -> int:
    """Bytes of values of a graph."""
    return sum(graph.specs[entry].nbytes for entry in entries)


def node_cost(graph: TypedGraph, node: Node) -> float:
    """Estimated nanoseconds of an operator of a graph."""
    tensors = Builder(graph.specs, {})
    return work(
        operator(node),
        [None if entry is None else tensors.tensor(entry) for entry in node.inputs],  # type: ignore[misc]  # they have specs
        [graph.specs[node, index] for index in range(operator(node).num_outputs)],
    )


@dataclass(frozen=True)
class Stage:
    """A line of the report: what a pass left."""

    name: str
    nodes: int
    nbytes: int  # of the values that the nodes make
    note: str


@dataclass(frozen=True)
class Step:
    """A piece of a part, and the numbers of the values that it reads and gives."""

    part: Part
    reads: tuple[int, ...]
    gives: tuple[int, ...]


@dataclass(frozen=True)
class Gradients:
    """What the tape must know of the backward part."""

    steps: tuple[Step, ...]  # one, unless it was cut; none if all gradients are zero, whatever arrives
    sources: tuple[tuple[str, int], ...]  # the first values: ("output", n) of the forward part, ("input", n), or ("seed", n)
    found: tuple[tuple[int, bool], ...]  # for each gradient the number of its value, and whether nobody else reads that
    reached: tuple[int, ...]  # which of the inputs that were asked for have a gradient, in the order of `found`
    tracked: tuple[bool, ...]  # which outputs of the forward part depend on them
    flows: tuple[bool, ...]  # through which outputs a gradient comes that matters
    graph: TypedGraph  # from the inputs and the seeds to the gradients, for gradients of gradients


class Program:
    """A compiled graph: `source`, `report()`, and the parts that the engine runs.

    Made by `net.program(x)`, `executor.program`, or a call of a hybridized block. **Book** chapter 5.
    """

    def __init__(
        self, name: str, order: Sequence[Node], variables: Sequence[Node], heads: Sequence[Entry], given: Sequence[Spec],
        context: Context, training: bool | None, wanted: Sequence[int], off: frozenset[str], static: bool, bulk: int | None = None,
        several: bool = False, backends: str = "", mirrors: bool = False,
    ) -> None:  # fmt: skip
        """**Args** `bulk`: the most operators of a task of the backward part; `several`: gradients are added over several devices;
        `backends`: who computes parts of the graph beside this package, for the report; `mirrors`: what is cheap is computed again in the
        backward part.
        """
        self.given = tuple(given)  # specs of the inputs
        self.context = context
        self.stages: list[Stage] = []
        self.again: Any = None  # its gradients as a CompiledGraph, when somebody has asked for theirs
        graph = specialize(name, order, variables, heads, given, training)
        graph = self._noted("specialize", graph.replaced(on_gpu=device.array_module(context) is not np))
        if backends:
            graph = self._noted("backends", graph.replaced(note=backends))
        self.draws = len(graph.draws)  # how many keys of random numbers it takes
        self.outputs = len(graph.heads)
        seeds: list[Node] = []
        reached: list[int] = []
        gradient: TypedGraph | None = None
        if wanted:
            tracked = _depending(graph, [variables[position] for position in wanted])
            gradient, seeds, reached = differentiate(graph, [variables[position] for position in wanted])
            graph = self._noted("differentiate", gradient)
        for title, apply in PASSES.items():
            if title not in off:
                graph = self._noted(title, apply(graph))
        self.gradients: Gradients | None = None
        if gradient is None or not reached:
            self._make_forward("", graph.replaced(variables=tuple(variables)), off, static, several)
            if gradient is not None and any(tracked):
                self.gradients = Gradients((), (), (), (), tuple(tracked), (False,) * len(seeds), gradient)
            self._wait(static)
            return
        mirrored = mirror(graph, self.outputs, seeds, mirrors)
        if mirrored is not graph:
            graph = self._noted("mirror", mirrored)
        first, second, handed = split(graph, self.outputs, seeds)
        self._make_forward("forward", first, off, static, several)
        places = {entry: ("output", position) for position, entry in reversed(list(enumerate(first.heads)))}
        places.update(((node, 0), ("input", position)) for position, node in enumerate(variables))
        places.update(((node, 0), ("seed", position)) for position, node in enumerate(seeds))
        steps, numbers = self._steps("backward", second, self._pieces(second, bulk, several), off, static)
        read = {number for step in steps for number in step.reads}
        self.gradients = Gradients(
            steps, tuple(places[entry] for entry in handed), tuple((number, number not in read) for number in numbers), tuple(reached),
            tuple(tracked), tuple((seed, 0) in gradient.uses for seed in seeds),
            gradient.replaced(heads=gradient.heads[self.outputs :]),
        )  # fmt: skip
        self._wait(static)

    def _wait(self, static: bool) -> None:
        """Wait for loops in machine code without which the results would have other last digits; for all in a `static` program."""
        for loop in self.loops.values():
            if static or not loop.exact:
                loop.wait()

    def _noted(self, name: str, graph: TypedGraph) -> TypedGraph:
        self.stages.append(Stage(name, len(graph.order), graph.nbytes, graph.note))
        return graph

    def _part(self, title: str, graph: TypedGraph, off: frozenset[str], static: bool) -> Part:
        for name, apply in LATE_PASSES.items():
            if name not in off:
                graph = self._noted(title + name, apply(graph))
        return Part(self._noted(f"{title}memory", plan_memory(graph)), self.context, static)

    def _make_forward(self, title: str, graph: TypedGraph, off: frozenset[str], static: bool, several: bool) -> None:
        """Make the forward part: in branches, where there are cores for several, and no other devices to use them."""
        runs = [graph.order]
        if not graph.on_gpu and (WORKERS > 1 or (threads.SPARE and not several)):
            runs = by_branch(graph, lambda node: node_cost(graph, node))
        self.steps, self.heads = self._steps(title, graph, runs, off, static)
        self.forward = self.steps[0].part

    def _pieces(self, graph: TypedGraph, bulk: int | None, several: bool) -> list[list[Node]]:
        """The operators of the backward part in runs, of which each becomes a task."""
        if bulk is not None:
            return by_number(graph, bulk)
        if several and cost_of(graph) >= WORTH_CUTTING and nbytes_of(graph.heads, graph) >= WORTH_SENDING:
            return by_cost(graph, PIECES, lambda node: node_cost(graph, node))
        return [graph.order]

    def _steps(
        self, title: str, graph: TypedGraph, runs: list[list[Node]], off: frozenset[str], static: bool
    ) -> tuple[tuple[Step, ...], list[int]]:
        """A part in pieces, and the numbers of its heads among the values: first its variables, then what pieces give."""
        pieces = cut(graph, runs)
        values: list[Entry] = [(node, 0) for node in graph.variables]
        number_of = {entry: number for number, entry in enumerate(values)}
        steps = []
        for number, piece in enumerate(pieces):
            place = f"{title} {number + 1}".lstrip() if len(pieces) > 1 else title
            gives = range(len(values), len(values) + len(piece.gives))
            reads = tuple(number_of[entry] for entry in piece.reads)
            steps.append(Step(self._part(f"{place}: " if place else "", piece.graph, off, static), reads, tuple(gives)))
            if len(pieces) == 1:
                return tuple(steps), list(gives)
            values += piece.gives
            number_of.update(zip(piece.gives, gives))
        return tuple(steps), [number_of[entry] for entry in graph.heads]

    @property
    def source(self) -> str:
        """The Python source, forward part first."""
        return "\n\n".join(part.source for part in self.parts)

    @property
    def parts(self) -> list[Part]:
        """The forward part, in one piece as a rule, and the pieces of the backward part."""
        return [step.part for step in (*self.steps, *(() if self.gradients is None else self.gradients.steps))]

    @property
    def loops(self) -> dict[str, Loop]:
        """The groups of operators that run in machine code, by the names of part and loop: each has its `source` and its `state`."""
        return {f"{part.name} {name}": loop for part in self.parts for name, loop in part.loops.items()}

    def report(self) -> str:
        """What each pass did: operators and bytes of values after it, and its own words. (Bytes of one part, after the split.)

        The last lines are about loops in machine code: which operators, and whether they are compiled by now.
        """
        rows = [("pass", "operators", "bytes of values", "")]
        rows += [(stage.name, f"{stage.nodes}", f"{stage.nbytes:,}", stage.note) for stage in self.stages]
        rows += [(name, f"{loop.operators}", "", f"{loop.state}: {loop.title}") for name, loop in self.loops.items()]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        return "\n".join(
            f"{name:<{widths[0]}}  {nodes:>{widths[1]}}  {nbytes:>{widths[2]}}  {note}".rstrip()
            for name, nodes, nbytes, note in rows
        )

    def __repr__(self) -> str:
        specs = ", ".join(map(repr, self.given))
        return f"<program {self.forward.name}({specs}) on {self.context}>"


def _depending(graph: TypedGraph, wanted: Sequence[Node]) -> list[bool]:
    """For each head, whether it depends on one of the variables `wanted`."""
    depends = set(wanted)
    for node in graph.order:
        if any(entry is not None and entry[0] in depends for entry in node.inputs):
            depends.add(node)
    return [node in depends for node, _ in graph.heads]
