"""A graph as a function of arrays: what a hybridized block, an executor and `CachedOp` have in common.

For each combination of shapes, dtypes, device, training mode, and inputs whose gradients are asked for, a program is made at the first
call (program.py); later calls hand it to the engine as one operation, and leave one node on autograd's tape. A graph with an operator
that cannot be part of a program, since what it does depends on values (`boolean_mask`, `foreach`), is *interpreted*: its operators enter
the engine one by one, in the same order. So it is when somebody watches them. Book: chapters 4 and 5.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..autograd import Node as TapeNode, predict_mode, state, train_mode
from ..base import ArgumentError, DeviceError, DTypeError, MXNetError, ShapeError
from ..device import Context
from ..engine.events import watch
from ..engine.front import HAND_OVER, submit
from ..engine.var import Var
from ..nd.custom import CustomCall
from ..nd.direct import outcome
from ..nd.entry import invoke
from ..nd.ndarray import NDArray
from ..op import Op, Spec
from ..seeds import Key, next_key
from . import infer
from .backends.compiling import handed_over
from .conventions import in_node
from .graph import Entry, Node, topological_order
from .passes import mirror, switches
from .passes.specialize import is_open
from .passes.typed import TypedGraph
from .program import Part, Program, Step
from .subgraph import expanded, subgraph_nodes

#: Called with a node and its operands, or its outputs.
Watch = Callable[[Node, "Sequence[NDArray | None]"], None]

LARGEST_SEED = 1 << 18  # bytes of ones, with which backward begins, that are kept for the next time
MOST_PROGRAMS = 256  # of one graph; beyond, the oldest are dropped


class CompiledGraph:
    """A function from the arrays of a graph's variables to those of its heads.

    `heads` and `order` have all operators; `partitioned` is the same graph with parts for backends (backends/), which compute them in
    inference.

    **Args** `variables`: their order, by default depth first. `static`: keep the arenas of all programs. `has_modes`: the operators know
    already whether they are in training.
    """

    def __init__(
        self,
        name: str,
        heads: Sequence[Entry],
        variables: Sequence[Node] | None = None,
        static: bool = False,
        has_modes: bool = False,
    ) -> None:
        found = topological_order(heads)
        self.name = name
        self.variables = [node for node in found if node.op is None] if variables is None else list(variables)
        self.partitioned: list[Entry] | None = None  # the graph with parts for backends, if it has some
        if subgraph_nodes(found):
            self.partitioned = list(heads)
            heads = expanded(heads)
            found = topological_order(heads)
        self.heads = list(heads)
        self.order = sorted(found, key=lambda node: node.number) if all(_in_sequence(node) for node in found) else found
        self.static = static
        self.mirrors = mirror.wanted(self.order)  # whether the backward parts compute again what is cheap
        self.has_modes = has_modes
        self.kept: dict[Node, CustomCall] = {}
        self.bulk: int | None = None  # the most operators of a task of the backward part, if somebody has chosen
        self.several = False  # gradients are added over several devices or processes
        self.inline_limit = 0  # operators up to which `autograd.get_symbol` shows them all
        self.programs: dict[Any, Program | None] = {}
        ops = [node.op for node in self.order if node.op is not None]
        self.interpreted = any(op.data_dependent or op.composite or op.crosses_devices for op in ops)
        self.open = any(is_open(op) for op in ops)
        last = {entry: node for node in self.order for entry in node.inputs if entry is not None}
        self.dropped: dict[Node, list[Entry]] = {}  # what nobody reads after a node, when the graph is interpreted
        for entry, node in last.items():
            if entry not in self.heads:
                self.dropped.setdefault(node, []).append(entry)

    def __call__(self, arrays: Sequence[NDArray], context: Context, keys: Sequence[Key] | None = None) -> list[NDArray]:
        """The heads' values. **Raises** what operators raise for inputs that do not fit, with the node's name."""
        if self.interpreted:
            return self.interpret(arrays, context)
        wanted = tracked_among(arrays) if state.recording else ()
        found = self.program_for(arrays, context, wanted)
        if found is None:
            return self.interpret(arrays, context, keys=keys)
        return run_program(self, found, arrays, context, wanted, keys)

    def program_for(self, arrays: Sequence[NDArray], context: Context, wanted: tuple[int, ...] = ()) -> Program | None:
        """The program for arrays like these in the calling thread's mode; None if the graph must be interpreted."""
        training = None if self.has_modes else state.training
        key = (context.lane, training, switches.off, wanted, self.bulk, self.several, *[id(array.spec) for array in arrays])
        try:
            return self.programs[key]
        except KeyError:
            pass
        for node, array in zip(self.variables, arrays):
            if array.context is not context and not (array.context.host and context.host):
                raise DeviceError(
                    f"{self.name}: {node.name} is on {array.context}, the others on {context}; copy it with as_in_context()"
                )
        made: Program | None = None
        specs = [array.spec for array in arrays]
        order, parts, note = self.order, self.heads, ""
        if self.partitioned is not None and not training and not wanted:
            parts, note = handed_over(self.partitioned, self.variables, specs, context)
            order = topological_order(parts)
        try:
            made = Program(
                self.name, order, self.variables, parts, specs, context, training, wanted, switches.off, self.static, self.bulk,
                self.several, note, self.mirrors,
            )  # fmt: skip
        except MXNetError:
            if not wanted:
                raise
            # Perhaps an operator has no gradient: that is an error only of those who ask for it.
            Program(self.name, self.order, self.variables, self.heads, specs, context, training, (), switches.off, self.static)
        if made is not None and made.gradients is not None:
            ops = [node.op for node in made.gradients.graph.order if node.op is not None]
            if any(op.data_dependent for op in ops):  # the shape of something in the gradient depends on values
                made = None
        if len(self.programs) >= MOST_PROGRAMS:
            self.programs.pop(next(iter(self.programs)), None)
        self.programs[key] = made
        return made

    def program_of(self, arrays: Sequence[NDArray], context: Context) -> Program:
        """The program that a call with these arrays runs. **Raises** MXNetError if the graph is interpreted."""
        found = None
        if not self.interpreted:
            found = self.program_for(arrays, context, tracked_among(arrays) if state.recording else ())
        if found is None:
            raise MXNetError(
                f"{self.name}: this graph runs operator by operator, since what it does depends on values; it has no program"
            )
        return found

    # ---- operator by operator

    def keep_states(self) -> None:
        """Let the operators that users wrote live as long as the graph, as in an executor: else there is a new one for each run."""
        self.kept = {node: node.op.keeping() for node in self.order if isinstance(node.op, CustomCall)}

    def interpret(
        self, arrays: Sequence[NDArray], context: Context, before: Watch | None = None, after: Watch | None = None,
        contexts: Mapping[Node, Context] | None = None, keys: Sequence[Key] | None = None,
    ) -> list[NDArray]:  # fmt: skip
        """The heads' values, by operators that enter the engine one by one.

        **Args** `before` and `after` are told each node with its operands, and with its outputs; `contexts` says on which device each node
        runs, if not all on `context`; `keys` are those of the random numbers, one for each operator that draws some.
        """
        remaining = iter(keys or ())
        values: dict[Entry, NDArray] = {(node, 0): array for node, array in zip(self.variables, arrays)}
        shapes = self._shapes(arrays) if self.open else None
        for node in self.order:
            if node.op is None:
                continue
            here = context if contexts is None else contexts.get(node, context)
            operands = [None if entry is None else values[entry] for entry in node.inputs]
            if contexts is not None:
                operands = [each if each is None or each.context == here else each.as_in_context(here) for each in operands]
            if before is not None:
                before(node, operands)
            key = next(remaining, None) if node.op.needs_key else None
            outputs = self._apply(node, infer.settled(node, shapes), operands, here, key)
            values.update(((node, index), output) for index, output in enumerate(outputs))
            if after is not None:
                after(node, outputs)
            for entry in self.dropped.get(node, ()):
                values.pop(entry, None)
        return [values[entry] for entry in self.heads]

    def _apply(self, node: Node, op: Op, operands: Sequence[NDArray | None], context: Context, key: Key | None) -> list[NDArray]:
        try:
            if op.composite:
                return self.kept.get(node, op).run(operands, context)  # type: ignore[attr-defined]
            if self.has_modes and op.needs_training:
                with train_mode() if op.training else predict_mode():  # type: ignore[attr-defined]
                    return invoke(op, operands, None, context, key)
            return invoke(op, operands, None, context, key)
        except (ShapeError, DTypeError, ArgumentError) as error:
            raise in_node(node.name, error) from None

    def _shapes(self, arrays: Sequence[NDArray]) -> infer.Facts:
        known = {(node, 0): array.shape for node, array in zip(self.variables, arrays)}
        return infer.spread_shapes(
            self.order, known, {(node, 0): array.spec.dtype for node, array in zip(self.variables, arrays)}
        )


def tracked_among(arrays: Sequence[NDArray]) -> tuple[int, ...]:
    """The positions of the arrays that autograd tracks."""
    return tuple([position for position, array in enumerate(arrays) if array.node is not None and not array.node.freed])


def _in_sequence(node: Node) -> bool:
    """Whether a node was made after its inputs: composition can put later nodes in the places of variables."""
    return all(entry is None or entry[0].number < node.number for entry in node.inputs)


def run_program(
    graph: CompiledGraph,
    program: Program,
    arrays: Sequence[NDArray],
    context: Context,
    wanted: tuple[int, ...],
    keys: Sequence[Key] | None,
) -> list[NDArray]:
    """Enter a program into the engine, and on the tape if gradients are `wanted`."""
    if program.draws and keys is None:
        keys = tuple([next_key(context) for _ in range(program.draws)])
    if len(program.steps) == 1:
        outputs = entered(program.forward, arrays, context, keys)
    else:
        values = in_steps(program.steps, arrays, context, keys)
        outputs = [values[number] for number in program.heads]
    gradients = program.gradients
    if gradients is None:
        return outputs
    node = ProgramNode(graph, program, arrays, outputs, wanted, keys)
    visible = outputs[: program.outputs]
    for index, output in enumerate(visible):
        if gradients.tracked[index]:
            output.node, output.index = node, index
    return visible


def entered(part: Part, operands: Sequence[NDArray], context: Context, keys: Sequence[Key] | None) -> list[NDArray]:
    """The outputs of a part: computed at once if it is small and its inputs are there, and pending otherwise."""
    values = None
    if watch.programs is not None:
        part.timed()  # compiled here, so that it takes no time of the lane
    if part.cost <= HAND_OVER and context.host and not part.mutates:
        values = outcome(part, operands, part.specs, keys, context)
    if values is None:
        variables = submit(part, operands, part.specs, context, (None,) * len(part.specs), keys)
    else:
        variables = [Var(value) for value in values]
    return [NDArray(var, spec, context) for var, spec in zip(variables, part.specs)]


def in_steps(steps: Sequence[Step], values: Sequence[NDArray], context: Context, keys: Sequence[Key] | None) -> list[NDArray]:
    """The values, and behind them what all pieces of a part give."""
    found = list(values)
    for step in steps:
        found += entered(step.part, [found[number] for number in step.reads], context, keys)
    return found


class ProgramNode(TapeNode):
    """A run of a program on autograd's tape: one node, whatever the graph has inside."""

    __slots__ = ("graph", "program", "arrays", "values", "wanted", "keys")

    def __init__(
        self, graph: CompiledGraph, program: Program, arrays: Sequence[NDArray], outputs: Sequence[NDArray], wanted: tuple[int, ...],
        keys: Sequence[Key] | None,
    ) -> None:  # fmt: skip
        parents: list[tuple[TapeNode, int] | None] = []
        for position in wanted:
            node = arrays[position].node
            parents.append(None if node is None else (node, arrays[position].index))
        super().__init__(parents, program.outputs)
        self.graph = graph
        self.program = program
        self.arrays = [_kept(array) for array in arrays]
        self.values = [NDArray(output.var, output.spec, output.context) for output in outputs]
        self.wanted = wanted
        self.keys = keys

    def seed(self, head: NDArray) -> NDArray:
        if not head.context.host or head.spec.nbytes > LARGEST_SEED:
            return head.ones_like()
        return _ones(head.spec, head.context)  # a program changes nothing that it is given

    def vjp(self, grads: list[Any]) -> Sequence[Any]:
        gradients = self.program.gradients
        assert gradients is not None
        results: list[Any] = [None] * len(self.wanted)
        if not gradients.steps:
            return results
        seeds = [value.zeros_like() if gradient is None else gradient for gradient, value in zip(grads, self.values)]
        if state.recording:
            found = self._recorded(gradients.graph, seeds)
        else:
            sources = {"output": self.values, "input": self.arrays, "seed": seeds}
            values = [sources[kind][number] for kind, number in gradients.sources]
            context = self.program.context
            values = in_steps(gradients.steps, values, context, None)
            found = [values[number] for number, _ in gradients.found]
            for gradient, (_, unread) in zip(found, gradients.found):
                gradient.var.unclaimed = unread
        for position, gradient in zip(gradients.reached, found):
            results[position] = gradient
        return results

    def _recorded(self, graph: TypedGraph, seeds: Sequence[NDArray]) -> list[NDArray]:
        """The gradients as a function of inputs and seeds, which is itself a graph with a program, and gradients."""
        again = self.program.again
        if again is None:
            again = self.program.again = CompiledGraph(
                f"{self.graph.name}_gradient", graph.heads, graph.variables, has_modes=True
            )
        keys = self.keys
        if keys is not None:  # those of the operators that the gradients need
            keys = [keys[graph.draws[node]] for node in again.order if node.op is not None and node.op.needs_key]
        return again([*self.arrays, *seeds], self.program.context, keys)

    def free(self) -> None:
        super().free()
        self.arrays, self.values = [], []


@functools.lru_cache(64)
def _ones(spec: Spec, context: Context) -> NDArray:
    """Ones that all share. Nobody can write into them."""
    value = np.ones(spec.shape, spec.dtype)
    value.flags.writeable = False
    return NDArray(Var(value), spec, context)


def _kept(array: NDArray) -> NDArray:
    """An array for the tape: the same value with the same place, whatever becomes of the user's array."""
    array.var.viewed = True
    kept = NDArray(array.var, array.spec, array.context, array.offset)
    kept.node, kept.index = array.node, array.index
    return kept
