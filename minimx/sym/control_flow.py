"""Loops and branches as operators of a graph: `_foreach`, `_while_loop`, `_cond`.

Each holds the graphs of its functions as subgraphs (composite.py); loops.py makes them out of Python functions. To run one is to loop
in Python over the subgraph's CachedOp: the tape, modes, random keys and devices are those of its operators. Shapes and dtypes
spread through the subgraphs in both directions, so that a weight that is used only in a loop gets its shape from the loop's data.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from .. import autograd
from ..base import DTypeError, MXNetError, ShapeError
from ..device import Context
from ..nd.control_flow import blank, common_length, padded, slices, stacked, truth
from ..nd.ndarray import NDArray
from ..op import Op, Shape, Spec, called, hidden, register
from ..ops.casting import identity
from . import infer, trial
from .broadcasting import add_wanted, broadcasting_operators, copies, with_operators
from .cached_op import CachedOp
from .composite import Composite, DTypes, Shapes, Subgraph
from .graph import Node, topological_order
from .symbol import Symbol

V = TypeVar("V")

# ---- what is known of inputs and outputs: their shapes, or their dtypes


class Knowledge(Generic[V]):
    """One kind of fact, and how it goes through a subgraph and from all steps to one of them."""

    def spread(self, order: Sequence[Node], known: infer.Facts) -> infer.Facts:
        raise NotImplementedError

    def merged(self, old: V | None, new: V | None) -> V | None:
        """What two sources say together. Raises if they contradict each other."""
        raise NotImplementedError

    def length(self, value: V | None) -> int:
        """The number of steps in an array of all; 0 if it is not known."""
        return 0

    def one(self, value: V | None, stacked: bool) -> V | None:
        """From an array of all steps to that of one; `stacked`: it was put together, and has an axis more for certain."""
        return value

    def all(self, value: V | None, before: V | None, length: int) -> V | None:
        """From an array of one step to that of all, of which `before` is known."""
        return value

    def through(
        self, graph: Subgraph, inputs: Sequence[V | None], outputs: Sequence[V | None]
    ) -> tuple[list[V | None], list[V | None]]:
        """What a subgraph makes of what is known about its variables and heads."""
        known: infer.Facts = {(node, 0): value for node, value in zip(graph.variables, inputs)}
        for entry, value in zip(graph.heads, outputs):
            known[entry] = self.merged(known.get(entry), value)
        facts = self.spread(graph.order, known)
        return [facts.get((node, 0)) for node in graph.variables], [facts.get(entry) for entry in graph.heads]

    def merge_into(self, values: list[V | None], places: Sequence[int], found: Sequence[V | None]) -> None:
        for place, value in zip(places, found):
            values[place] = self.merged(values[place], value)


class OfShapes(Knowledge[Shape]):
    def spread(self, order: Sequence[Node], known: infer.Facts) -> infer.Facts:
        return infer.spread_shapes(order, known, {})

    def merged(self, old: Shape | None, new: Shape | None) -> Shape | None:
        return trial.merged(old, new)

    def length(self, value: Shape | None) -> int:
        return value[0] if value else 0

    def one(self, value: Shape | None, stacked: bool) -> Shape | None:
        if value is None or (stacked and len(value) < 2):
            return None
        return value[1:] or (1,)

    def all(self, value: Shape | None, before: Shape | None, length: int) -> Shape | None:
        if value is None:
            return before
        return (length,) if before is not None and len(before) == 1 else (length, *value)


class OfDTypes(Knowledge["np.dtype[Any]"]):
    def __init__(self, shapes: infer.Facts) -> None:
        self.shapes = shapes

    def spread(self, order: Sequence[Node], known: infer.Facts) -> infer.Facts:
        return infer.spread_dtypes(order, known, self.shapes)

    def merged(self, old: np.dtype[Any] | None, new: np.dtype[Any] | None) -> np.dtype[Any] | None:
        return infer.merged_dtype(old, new)


# ---- what all three have in common


class ControlFlow(Composite):
    """Adds to Composite how its operators infer and run. `deduced` is the one rule for shapes and dtypes."""

    def deduced(
        self, kind: Knowledge[V], inputs: Sequence[V | None], outputs: Sequence[V | None]
    ) -> tuple[list[V | None], list[V | None]]:
        raise NotImplementedError

    def deduced_shapes(self, inputs: Shapes, outputs: Shapes) -> tuple[Shapes, Shapes]:
        return self.deduced(OfShapes(), inputs, outputs)

    def deduced_dtypes(self, inputs: DTypes, outputs: DTypes, shapes: Shapes) -> tuple[DTypes, DTypes]:
        return self.deduced(OfDTypes(self.inner_shapes(shapes)), inputs, outputs)

    def inner_shapes(self, shapes: Shapes) -> infer.Facts:
        """Shapes of the entries of all subgraphs, as far as they follow from those of the inputs."""
        facts: infer.Facts = {}
        try:
            complete, _ = self.deduced_shapes(shapes, [None] * self.num_outputs)
        except MXNetError:
            return facts  # another question will find what does not fit
        for number, graph in enumerate(self.subgraphs):
            values = self.seen(number, OfShapes(), complete)
            facts.update(infer.spread_shapes(graph.order, {(node, 0): each for node, each in zip(graph.variables, values)}, {}))
        return facts

    def seen(self, number: int, kind: Knowledge[Any], inputs: Sequence[Any]) -> list[Any]:
        """What the variables of a subgraph see of the inputs."""
        return [inputs[place] for place in self.places(number)]

    def broadcasting(self) -> Composite:
        return self.with_operators([broadcasting_operators(graph.heads) for graph in self.subgraphs])

    def fitted(self, shapes: Shapes) -> Composite:
        wide = self.broadcasting()
        if wide is self:
            return self
        try:
            inputs, _ = wide.deduced_shapes(shapes, [None] * self.num_outputs)
        except MXNetError:
            return self  # whoever computes with them says what does not fit
        wanted: list[dict[Node, Op]] = []
        for number, graph in enumerate(self.subgraphs):
            operators = broadcasting_operators(graph.heads)
            values = self.seen(number, OfShapes(), inputs)
            known: infer.Facts = {(node, 0): value for node, value in zip(graph.variables, values)}
            fresh = copies(graph.heads, operators)
            order = topological_order([(fresh.get(node, node), index) for node, index in graph.heads])
            wanted.append({})
            add_wanted(wanted[-1], operators, fresh, infer.spread_shapes(order, known, {}))
        return self.with_operators(wanted)

    def with_operators(self, operators: Sequence[dict[Node, Op]]) -> Composite:
        """The operator with other operators in nodes of its subgraphs; itself if there are none."""
        if not any(operators):
            return self
        graphs = [Subgraph(with_operators(graph.heads, each)) for graph, each in zip(self.subgraphs, operators)]
        return dataclasses.replace(self, subgraphs=tuple(graphs))

    def outputs_of(self, number: int, specs: Sequence[Spec]) -> list[Spec]:
        """The specs of a subgraph's heads from those of its variables."""
        graph = self.subgraphs[number]
        shapes = None
        if any(not node.inputs and node.op is not None for node in graph.order):
            known: infer.Facts = {(node, 0): spec.shape for node, spec in zip(graph.variables, specs)}
            shapes = infer.spread_shapes(graph.order, known, {})
        found = infer.forward_specs(graph.order, dict(zip(graph.variables, specs)), shapes)
        return [found[entry] for entry in graph.heads]

    def call(self, number: int, arrays: Sequence[NDArray], context: Context) -> list[NDArray]:
        """A subgraph's heads from the arrays of its variables."""
        graph = self.subgraphs[number]
        if graph.program is None:
            graph.program = CachedOp(Symbol(graph.heads))
        outputs = graph.program(*arrays, default_ctx=context)
        return [outputs] if len(graph.heads) == 1 else outputs

    def holds(self, number: int, arrays: Sequence[NDArray], context: Context) -> bool:
        """Whether the condition that a subgraph computes is true. Nothing is differentiated through it."""
        with autograd.pause(train_mode=autograd.is_training()):
            return truth(f"{self.name}: the condition", self.call(number, arrays, context)[0])

    def require_kept(self, states: Sequence[Spec], following: Sequence[Spec]) -> None:
        """Raise unless the states after a step are what they were before it."""
        for number, (before, after) in enumerate(zip(states, following)):
            if before != after:
                error = ShapeError if before.shape != after.shape else DTypeError
                raise error(f"{self.name}: state {number} is {before} before a step and {after} after it; they must be equal")


class Aside(autograd.Node):
    """Outputs on the tape that depend on further arrays formally, with gradients of zero: the branch that was not taken used them.

    Without it `backward` would not write the gradients of weights that only that branch has.
    """

    __slots__ = ()

    def vjp(self, grads: list[Any]) -> Sequence[Any]:
        return [*grads, *[None] * (len(self.parents) - len(grads))]


def depending(outputs: list[NDArray], unused: Sequence[NDArray]) -> list[NDArray]:
    """The outputs with the arrays `unused` behind them, as far as those are tracked."""
    tracked = [array for array in unused if autograd.place(array)] if autograd.is_recording() else []
    if not tracked:
        return outputs
    parents = [autograd.place(array) for array in [*outputs, *tracked]]
    node = Aside(parents, len(outputs))
    outputs = [output.detach() for output in outputs]  # one may be an input, which must keep its place
    for index, output in enumerate(outputs):
        output.node, output.index = node, index
    return outputs


# ---- the operators


@register("_foreach")
class Foreach(ControlFlow):
    """A loop over the first axis of data. Inputs: data, states of the first step, others. Outputs: stacked ones, last states."""

    num_args: int
    count: int = called("num_outputs", default=1)
    num_out_data: int = 0
    in_state_locs: tuple[int, ...] = ()
    in_data_locs: tuple[int, ...] = ()
    remain_locs: tuple[int, ...] = ()
    subgraphs: tuple[Subgraph, ...] = hidden(default=())

    @property
    def num_outputs(self) -> int:
        return self.count

    @property
    def variables(self) -> tuple[int, ...]:
        """For each input, the variable of the subgraph that stands for it."""
        return (*self.in_data_locs, *self.in_state_locs, *self.remain_locs)

    def places(self, number: int) -> tuple[int, ...]:
        found = self.variables
        return tuple(sorted(range(len(found)), key=found.__getitem__))

    def check(self, inputs: int) -> None:
        self.require(len(self.in_data_locs) > 0, "there is no data")
        self.require(sorted(self.variables) == list(range(inputs)), f"{inputs} inputs stand at the locations {self.variables}")
        super().check(inputs)
        heads = len(self.subgraphs[0].heads)
        self.require(self.count == heads == self.num_out_data + len(self.in_state_locs), f"the subgraph has {heads} outputs")

    def seen(self, number: int, kind: Knowledge[Any], inputs: Sequence[Any]) -> list[Any]:
        count = len(self.in_data_locs)
        return [kind.one(inputs[place], False) if place < count else inputs[place] for place in self.places(0)]

    def deduced(
        self, kind: Knowledge[V], inputs: Sequence[V | None], outputs: Sequence[V | None]
    ) -> tuple[list[V | None], list[V | None]]:
        (graph,) = self.subgraphs
        data, stacked = len(self.in_data_locs), self.num_out_data
        lengths = {kind.length(value) for value in (*inputs[:data], *outputs[:stacked])} - {0}
        if len(lengths) > 1:
            raise ShapeError(f"{self.name}: data or outputs have lengths {sorted(lengths)} in the first axis; they must be equal")
        length = lengths.pop() if lengths else 0
        ins = self.seen(0, kind, inputs)
        kind.merge_into(ins, self.in_state_locs, outputs[stacked:])
        outs = [kind.one(value, True) for value in outputs[:stacked]] + [ins[place] for place in self.in_state_locs]
        ins, outs = kind.through(graph, ins, outs)
        kind.merge_into(ins, self.in_state_locs, outs[stacked:])
        found = [ins[place] for place in self.variables]
        found[:data] = [kind.all(value, before, length) for value, before in zip(found, inputs[:data])]
        whole = [kind.all(value, None, length) for value in outs[:stacked]]
        return found, whole + [ins[place] for place in self.in_state_locs]

    def infer(self, *specs: Spec) -> tuple[Spec, ...]:
        data, states = len(self.in_data_locs), len(self.in_state_locs)
        if any(not spec.shape or spec.shape[0] != specs[0].shape[0] for spec in specs[:data]):
            listed = ", ".join(str(spec.shape) for spec in specs[:data])
            raise ShapeError(f"{self.name}: data has the shapes {listed}; all must be equally long in the first axis")
        each = [spec.with_shape(spec.shape[1:] or (1,)) for spec in specs[:data]] + list(specs[data:])
        found = self.outputs_of(0, [each[place] for place in self.places(0)])
        self.require_kept(specs[data : data + states], found[self.num_out_data :])
        whole = [spec.with_shape((specs[0].shape[0], *spec.shape)) for spec in found[: self.num_out_data]]
        return (*whole, *found[self.num_out_data :])

    def run(self, operands: Sequence[NDArray], context: Context) -> list[NDArray]:
        data, stop = len(self.in_data_locs), len(self.in_data_locs) + len(self.in_state_locs)
        if common_length(self.name, operands[:data]) == 0:
            return self.without_steps(operands, context)
        arrays = [operands[place] for place in self.places(0)]
        states: Sequence[NDArray] = operands[data:stop]
        given = []
        for parts in zip(*(slices(each) for each in operands[:data])):
            for place, array in zip(self.variables, (*parts, *states)):
                arrays[place] = array
            outputs = self.call(0, arrays, context)
            states = outputs[self.num_out_data :]
            given.append(outputs[: self.num_out_data])
        return [*(stacked(self.name, number, column) for number, column in enumerate(zip(*given))), *states]

    def without_steps(self, operands: Sequence[NDArray], context: Context) -> list[NDArray]:
        """The outputs for data of length 0."""
        specs = self.infer(*(each.spec for each in operands))
        empty = [blank(spec.shape, context, spec.dtype) for spec in specs[: self.num_out_data]]
        data, stop = len(self.in_data_locs), len(self.in_data_locs) + len(self.in_state_locs)
        kept = [identity(state) for state in operands[data:stop]]
        return depending(empty + kept, operands)


@register("_while_loop")
class WhileLoop(ControlFlow):
    """A loop as long as a condition holds. Subgraphs: the condition, and a step, each with some of the node's inputs."""

    graphs: ClassVar[int] = 2

    num_args: int
    count: int = called("num_outputs", default=1)
    num_out_data: int = 0
    max_iterations: int = 1
    cond_input_locs: tuple[int, ...] = ()
    func_input_locs: tuple[int, ...] = ()
    func_var_locs: tuple[int, ...] = ()
    subgraphs: tuple[Subgraph, ...] = hidden(default=())

    @property
    def num_outputs(self) -> int:
        return self.count

    def places(self, number: int) -> tuple[int, ...]:
        return (self.cond_input_locs, self.func_input_locs)[number]

    @property
    def loop_vars(self) -> list[int]:
        """The inputs that are loop variables before the first step."""
        return [self.func_input_locs[place] for place in self.func_var_locs]

    def check(self, inputs: int) -> None:
        super().check(inputs)
        heads = len(self.subgraphs[1].heads)
        self.require(self.count == heads == self.num_out_data + len(self.func_var_locs), f"the step has {heads} outputs")
        self.require(all(0 <= each < len(self.func_input_locs) for each in self.func_var_locs), "func_var_locs are no variables")
        self.require(len(self.subgraphs[0].heads) == 1, "the condition has several outputs")
        self.require(self.max_iterations > 0, "max_iterations must be 1 or more")

    def deduced(
        self, kind: Knowledge[V], inputs: Sequence[V | None], outputs: Sequence[V | None]
    ) -> tuple[list[V | None], list[V | None]]:
        values = list(inputs)
        stacked = self.num_out_data
        kind.merge_into(values, self.loop_vars, outputs[stacked:])
        ins, _ = kind.through(self.subgraphs[0], self.seen(0, kind, values), [None])
        kind.merge_into(values, self.cond_input_locs, ins)
        outs = [kind.one(value, True) for value in outputs[:stacked]] + [values[place] for place in self.loop_vars]
        ins, outs = kind.through(self.subgraphs[1], self.seen(1, kind, values), outs)
        kind.merge_into(values, self.func_input_locs, ins)
        kind.merge_into(values, self.loop_vars, outs[stacked:])
        whole = [kind.all(value, None, self.max_iterations) for value in outs[:stacked]]
        return values, whole + [values[place] for place in self.loop_vars]

    def infer(self, *specs: Spec) -> tuple[Spec, ...]:
        (condition,) = self.outputs_of(0, [specs[place] for place in self.cond_input_locs])
        if condition.size != 1:
            raise ShapeError(f"{self.name}: the condition has shape {condition.shape}; an array of one element is wanted")
        found = self.outputs_of(1, [specs[place] for place in self.func_input_locs])
        self.require_kept([specs[place] for place in self.loop_vars], found[self.num_out_data :])
        whole = [spec.with_shape((self.max_iterations, *spec.shape)) for spec in found[: self.num_out_data]]
        return (*whole, *found[self.num_out_data :])

    def run(self, operands: Sequence[NDArray], context: Context) -> list[NDArray]:
        values = list(operands)
        given: list[list[NDArray]] = []
        while len(given) < self.max_iterations and self.holds(0, [values[place] for place in self.cond_input_locs], context):
            outputs = self.call(1, [values[place] for place in self.func_input_locs], context)
            for place, state in zip(self.loop_vars, outputs[self.num_out_data :]):
                values[place] = state
            given.append(outputs[: self.num_out_data])
        states = [values[place] for place in self.loop_vars]
        if given:
            columns = [stacked(self.name, number, column) for number, column in enumerate(zip(*given))]
            result = [*(padded(column, self.max_iterations) for column in columns), *states]
        else:
            specs = self.infer(*(each.spec for each in operands))[: self.num_out_data]
            result = [*(blank(spec.shape, context, spec.dtype) for spec in specs), *(identity(state) for state in states)]
        used = self.func_input_locs if given else ()
        return depending(result, [array for place, array in enumerate(operands) if place not in used])


@register("_cond")
class Cond(ControlFlow):
    """One of two branches. Subgraphs: the condition, and the branches, each with some of the node's inputs."""

    graphs: ClassVar[int] = 3

    num_args: int
    count: int = called("num_outputs", default=1)
    cond_input_locs: tuple[int, ...] = ()
    then_input_locs: tuple[int, ...] = ()
    else_input_locs: tuple[int, ...] = ()
    subgraphs: tuple[Subgraph, ...] = hidden(default=())

    @property
    def num_outputs(self) -> int:
        return self.count

    def places(self, number: int) -> tuple[int, ...]:
        return (self.cond_input_locs, self.then_input_locs, self.else_input_locs)[number]

    def check(self, inputs: int) -> None:
        super().check(inputs)
        heads = [len(graph.heads) for graph in self.subgraphs]
        self.require(heads == [1, self.count, self.count] and self.count > 0, f"the subgraphs have {heads} outputs")

    def deduced(
        self, kind: Knowledge[V], inputs: Sequence[V | None], outputs: Sequence[V | None]
    ) -> tuple[list[V | None], list[V | None]]:
        values, results = list(inputs), list(outputs)
        for number, graph in enumerate(self.subgraphs):
            ins, outs = kind.through(graph, self.seen(number, kind, values), results if number else [None])
            kind.merge_into(values, self.places(number), ins)
            if number:
                results = outs
        return values, results

    def infer(self, *specs: Spec) -> tuple[Spec, ...]:
        found = [self.outputs_of(number, [specs[place] for place in self.places(number)]) for number in range(3)]
        if found[0][0].size != 1:
            raise ShapeError(f"{self.name}: the condition has shape {found[0][0].shape}; an array of one element is wanted")
        for number, (one, other) in enumerate(zip(*found[1:])):
            if one != other:
                error = ShapeError if one.shape != other.shape else DTypeError
                raise error(f"{self.name}: output {number} is {one} in one branch and {other} in the other; they must be equal")
        return tuple(found[1])

    def run(self, operands: Sequence[NDArray], context: Context) -> list[NDArray]:
        chosen = 1 if self.holds(0, [operands[place] for place in self.cond_input_locs], context) else 2
        used = self.places(chosen)
        outputs = self.call(chosen, [operands[place] for place in used], context)
        return depending(outputs, [array for place, array in enumerate(operands) if place not in used])
