"""From a graph of ours to one of ONNX: each node is given to the converter of its operator, in order.

What depends on nothing but parameters is computed here, with the operators' own kernels, and becomes a constant of the file. Lengths that
are to stay open are found by trial: shapes are inferred for several lengths of the inputs, and what differs between them is open.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base import MXNetError
from ..op import Op, Spec
from ..sym.conventions import in_node
from ..sym.graph import Entry, Node
from .graph import CONVERTERS, Dynamic, Graph, Length, UnsupportedError, Value

MOST_FOLDED = 1 << 26  # elements of a constant that is computed
FILLED = {"_zeros": 0.0, "_ones": 1.0}


@dataclass(frozen=True)
class Source:
    """A graph that is to be converted: nodes in order with their operators, and the specs of all entries in each trial."""

    order: Sequence[Node]
    ops: Mapping[Node, Op]
    heads: Sequence[Entry]
    trials: Sequence[Mapping[Entry, Spec]]
    inputs: Sequence[Node]  # variables that the file asks for
    constants: Mapping[Node, np.ndarray[Any, Any]]  # values of the others

    def shape(self, entry: Entry) -> tuple[Length, ...]:
        """The shape of an entry: numbers where all trials agree."""
        shapes = [trial[entry].shape for trial in self.trials]
        return tuple([each[0] if len(set(each)) == 1 else Dynamic(each) for each in zip(*shapes)])

    def value(self, entry: Entry, name: str) -> Value:
        return Value(name, self.shape(entry), self.trials[0][entry].dtype)


def walk(source: Source, output_names: Sequence[str]) -> tuple[Graph, list[Value]]:
    """The graph in ONNX, and its outputs, called `output_names`. **Raises** UnsupportedError, with the node, for what has no form there."""
    graph = Graph()
    graph.names.update(node.name for node in source.order if node.op is None)
    graph.names.update(output_names)
    values: dict[Entry, Value] = {}
    reserved: dict[Entry, str] = {}
    for entry, name in zip(source.heads, output_names):
        reserved.setdefault(entry, name)
    for node in source.order:
        if node in source.constants:
            values[node, 0] = Value(node.name, source.shape((node, 0)), source.trials[0][node, 0].dtype, source.constants[node])
        elif node.op is None:
            values[node, 0] = source.value((node, 0), node.name)
            if node in source.inputs:
                graph.sources.append(values[node, 0])
        else:
            for index, value in enumerate(_converted(graph, source, node, values, reserved)):
                values[node, index] = value
    outputs = []
    for (node, index), name in zip(source.heads, output_names):
        if (node, index) not in values:
            raise UnsupportedError(f"node {node.name}: its output {index} has no form in ONNX here")
        value = values[node, index]
        if value.name != name:
            graph.stem = node.name
            made = graph.node("Identity", value)
            graph.rename(made, name, len(graph.nodes) - 1)
        outputs.append(Value(name, source.shape((node, index)), value.dtype))
    return graph, outputs


def _converted(
    graph: Graph, source: Source, node: Node, values: Mapping[Entry, Value], reserved: Mapping[Entry, str]
) -> list[Value]:
    """What stands for the outputs of a node."""
    op = source.ops[node]
    graph.stem = node.name
    graph.outputs = [source.value((node, index), "") for index in range(op.num_outputs)]
    missing = [entry for entry in node.inputs if entry is not None and entry not in values]
    if missing:
        raise UnsupportedError(
            f"node {node.name}: it reads output {missing[0][1]} of {missing[0][0].name}, which has no form in ONNX here"
        )
    inputs = [None if entry is None else values[entry] for entry in node.inputs]
    if op.name in FILLED and any(isinstance(length, Dynamic) for length in graph.outputs[0].shape):
        return [Value(graph.fresh(node.name), graph.outputs[0].shape, graph.outputs[0].dtype, fill=FILLED[op.name])]
    folded = _folded(graph, op, inputs)
    if folded is not None:
        names = [graph.fresh(node.output_name(index)) for index in range(len(folded))]
        return [Value(name, array.shape, array.dtype, array) for name, array in zip(names, folded)]
    converter = CONVERTERS.get(op.name)
    if converter is None:
        raise UnsupportedError(
            f"node {node.name}: the operator {op.name} has no form in ONNX here; write the model without it, or define one with "
            f"@mx.onnx.converts({op.name!r}) (mx.onnx.get_operator_support() lists those that have)"
        )
    start = len(graph.nodes)
    try:
        result = converter(graph, op, *inputs)
    except UnsupportedError:
        raise
    except MXNetError as error:
        raise in_node(node.name, error) from None
    made = []
    for index, each in enumerate(result if isinstance(result, list) else [result]):
        if isinstance(each, Value):  # an input that is an output, too
            made.append(each)
            continue
        entry = node, index
        if each in graph.constants:
            made.append(Value(each, source.shape(entry), graph.constants[each].dtype, graph.constants[each]))
            continue
        name = reserved.get(entry) or graph.fresh(node.output_name(index))
        graph.rename(each, name, start)
        made.append(source.value(entry, name))
    return made


def _folded(graph: Graph, op: Op, inputs: Sequence[Value | None]) -> list[np.ndarray[Any, Any]] | None:
    """The outputs of an operator whose inputs are all constant; None if it must stay in the graph."""
    if op.needs_key or op.mutates or op.data_dependent or op.composite or op.crosses_devices:
        return None
    if any(value is not None and value.array is None for value in inputs):
        return None
    if any(isinstance(length, Dynamic) for output in graph.outputs for length in output.shape):
        return None
    if any(math.prod(length for length in output.shape if isinstance(length, int)) > MOST_FOLDED for output in graph.outputs):
        return None
    with np.errstate(all="ignore"):
        found = op.kernel(np, *[None if value is None else value.array for value in inputs])
    arrays = found if isinstance(found, tuple) else (found,)
    return [np.array(array, dtype=output.dtype) for array, output in zip(arrays, graph.outputs)]
