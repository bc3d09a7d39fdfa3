"""`export_model`: a Symbol and its parameters as a file that ONNX Runtime, TVM, TensorRT, browsers and many others run."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .. import nd
from ..base import ArgumentError, MXNetError, ShapeError, as_dtype, shown
from ..files import PathLike, as_path
from ..nd import NDArray
from ..op import Op, Spec, input_names
from ..sym import Symbol, load
from ..sym.graph import Entry, Node, topological_order
from ..sym.infer import complete, declared_shape, settled, spread_shapes
from ..sym.subgraph import expanded
from .graph import CONVERTERS, Dynamic
from .model import check, model_of, package_onnx, write
from .walk import Source, walk

logger = logging.getLogger(__name__)

__all__ = ["export_model", "get_operator_support"]


def export_model(
    sym: Symbol | PathLike,
    params: Any,
    in_shapes: Sequence[Sequence[int]] | None = None,
    in_types: Any = np.float32,
    onnx_file_path: PathLike = "model.onnx",
    verbose: bool = False,
    dynamic: bool = False,
    dynamic_input_shapes: Sequence[Sequence[Any]] | None = None,
    run_shape_inference: bool = False,
    input_type: Any = None,
    input_shape: Sequence[Sequence[int]] | None = None,
) -> str:
    """Write a model for inference as an ONNX file, and return its path.

    Inputs are the variables without a parameter, in the order of `sym.list_inputs()`; labels of loss layers are left out.

    **Args** `sym`, `params`: a Symbol and a dict of its parameters by name (with or without `arg:` and `aux:`), or a list of two such
    dicts, arguments and auxiliary states; or the names of the files that `HybridBlock.export` writes. `in_shapes`: a shape for each input;
    a variable's own where it is None. `in_types`: a dtype, or one for each input. `dynamic`: lengths may differ when the file is used:
    those that are None, or a name, in `dynamic_input_shapes`, a tuple for each input; without it all, as far as the model allows.
    `verbose`: log each operator. `run_shape_inference`: note the shapes of all values in the file. `input_type`, `input_shape`: older
    names of `in_types` and `in_shapes`.
    **Raises** MXNetError, naming node and operator, for what has no form in ONNX; ImportError without the package onnx; ValueError for
    arguments that do not fit the graph. **Source** MXNet `onnx.export_model`.
    """
    package_onnx()
    graph, arrays = loaded(sym, params)
    heads = expanded(graph.entries)
    given = in_shapes if input_shape is None else input_shape
    inputs = inputs_of(heads, arrays)
    everything = inputs_of(heads, arrays, labels=True)
    if isinstance(given, (list, tuple)) and len(given) == len(everything):
        inputs = everything  # whoever gives shapes of labels has them in the file
    shapes = checked_shapes(inputs, given)
    dtypes = checked_types(inputs, in_types if input_type is None else input_type)
    wanted = open_lengths(inputs, shapes, dynamic_input_shapes) if dynamic else {}
    source, names = prepared(heads, inputs, shapes, dtypes, arrays, wanted, explicit=dynamic_input_shapes is not None)
    converted, outputs = walk(source, unique(graph.list_outputs()))
    if verbose:
        for node in converted.nodes:
            logger.warning("%s: %s(%s) -> %s", node.name, node.kind, ", ".join(node.inputs), ", ".join(node.outputs))
    model = model_of(converted, outputs, names)
    check(model)
    if run_shape_inference:
        model = package_onnx().shape_inference.infer_shapes(model)
    path = as_path(onnx_file_path)
    write(model, path)
    return path


def unique(names: Sequence[str]) -> list[str]:
    """The names of outputs; one that is there twice gets a number."""
    found: list[str] = []
    for name in names:
        candidates = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(1)))
        found.append(next(each for each in candidates if each not in found))
    return found


def get_operator_support(opset_version: int | None = None) -> list[str]:
    """The names of the operators that have a form in ONNX. **Source** MXNet `onnx.get_operator_support`."""
    return sorted(CONVERTERS)


# ---- what is given


def loaded(sym: Any, params: Any) -> tuple[Symbol, dict[str, np.ndarray[Any, Any]]]:
    """The Symbol and its parameters as NumPy arrays by name."""
    if isinstance(sym, (str, os.PathLike)):
        sym = load(sym)
    if not isinstance(sym, Symbol):
        raise ArgumentError(f"export_model: sym must be a Symbol or the name of a file, got {shown(sym)}")
    if isinstance(params, (str, os.PathLike)):
        path = as_path(params)
        params = nd.load(path) or {}  # a file without arrays has no names either
        if not isinstance(params, dict):
            raise ArgumentError(f"export_model: {path} has no names; a file of HybridBlock.export is wanted")
    dicts = [params] if isinstance(params, Mapping) else params
    if not isinstance(dicts, (list, tuple)) or not all(isinstance(each, Mapping) for each in dicts):
        raise ArgumentError(
            f"export_model: params must be a dict, a list of two dicts, or the name of a file, got {shown(params)}"
        )
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for name, array in ((name, array) for each in dicts for name, array in each.items()):
        if not isinstance(array, (NDArray, np.ndarray)):
            raise ArgumentError(f"export_model: params must hold NDArrays, got {shown(array)} for {name}")
        arrays[name[4:] if name.startswith(("arg:", "aux:")) else name] = array.asnumpy() if isinstance(array, NDArray) else array
    return sym, arrays


def inputs_of(heads: Sequence[Entry], arrays: Mapping[str, Any], labels: bool = False) -> list[Node]:
    """The variables without a parameter; without those that are nothing but `labels` of a loss, unless they are wanted."""
    order = topological_order(heads)
    only_label: dict[Node, bool] = {}
    for node in order:
        if node.op is not None:
            for entry, called in zip(node.inputs, input_names(node.op, len(node.inputs))):
                if entry is not None and entry[0].op is None:
                    is_label = called == "label" and node.op.is_loss and not labels
                    only_label[entry[0]] = only_label.get(entry[0], True) and is_label
    return [node for node in order if node.op is None and node.name not in arrays and not only_label.get(node)]


def checked_shapes(inputs: Sequence[Node], given: Sequence[Sequence[int]] | None) -> list[tuple[int, ...]]:
    """A shape for each input."""
    names = ", ".join(node.name for node in inputs)
    if given is None:
        declared = [declared_shape(node) for node in inputs]
        if any(shape is None or 0 in shape for shape in declared):
            raise ShapeError(f"export_model: in_shapes is wanted, a list with the shapes of the inputs {names}")
        return [shape for shape in declared if shape is not None]
    if isinstance(given, tuple) and all(isinstance(each, int) for each in given):
        given = [given]  # one shape
    if not isinstance(given, (list, tuple)) or not all(
        isinstance(shape, (list, tuple)) and all(isinstance(each, (int, np.integer)) and each > 0 for each in shape)
        for shape in given
    ):
        raise ArgumentError(f"export_model: in_shapes must be a list of tuples of positive int, got {shown(given)}")
    if len(given) != len(inputs):
        raise ShapeError(
            f"export_model: in_shapes has {len(given)} shapes, the model {len(inputs)} inputs without a parameter: {names}"
        )
    return [tuple(map(int, shape)) for shape in given]


def checked_types(inputs: Sequence[Node], given: Any) -> list[np.dtype[Any]]:
    """A dtype for each input."""
    listed = list(given) if isinstance(given, (list, tuple)) else [given] * len(inputs)
    if len(listed) != len(inputs):
        raise ArgumentError(f"export_model: in_types has {len(listed)} dtypes, the model {len(inputs)} inputs")
    return [as_dtype(each) for each in listed]


# ---- lengths that stay open

Groups = dict[Any, list[tuple[int, int]]]  # a length that is one in several places: (number of the input, axis)


def open_lengths(inputs: Sequence[Node], shapes: Sequence[tuple[int, ...]], given: Sequence[Sequence[Any]] | None) -> Groups:
    """Which lengths are to be open, those that are the same together: with the same name, or equal lengths of the same axis."""
    if given is None:
        given = [(None,) * len(shape) for shape in shapes]
    if not isinstance(given, (list, tuple)) or len(given) != len(inputs):
        raise ArgumentError(f"export_model: dynamic_input_shapes must be a list of {len(inputs)} tuples, got {shown(given)}")
    groups: Groups = {}
    for number, (node, shape, wanted) in enumerate(zip(inputs, shapes, given)):
        if not isinstance(wanted, (list, tuple)) or len(wanted) != len(shape):
            raise ArgumentError(
                f"export_model: dynamic_input_shapes has {shown(wanted)} for {node.name}, whose shape is {shape}; a tuple of "
                f"{len(shape)} is wanted, None or a name for each open length"
            )
        for axis, (length, each) in enumerate(zip(shape, wanted)):
            if isinstance(each, str) or each is None:
                groups.setdefault(each or (axis, length), []).append((number, axis))
            elif each != length:
                raise ArgumentError(
                    f"export_model: dynamic_input_shapes has {shown(each)} for axis {axis} of {node.name}, in_shapes {length}"
                )
    return groups


def prepared(
    heads: Sequence[Entry],
    inputs: Sequence[Node],
    shapes: Sequence[tuple[int, ...]],
    dtypes: Sequence[np.dtype[Any]],
    arrays: Mapping[str, np.ndarray[Any, Any]],
    wanted: Groups,
    explicit: bool,
) -> tuple[Source, dict[Dynamic, str]]:
    """The graph with all shapes, for each trial of the open lengths; and what those are called."""
    order = topological_order(heads)
    constants = {node: arrays[node.name] for node in order if node.op is None and node.name in arrays}
    known_types = {**{node: array.dtype for node, array in constants.items()}, **dict(zip(inputs, dtypes))}

    def specs_for(lengths: Sequence[tuple[int, ...]]) -> dict[Entry, Spec]:
        known = {**{node: array.shape for node, array in constants.items()}, **dict(zip(inputs, lengths))}
        return complete(heads, known, known_types)

    trials = [specs_for(shapes)]
    opened: list[tuple[Any, list[tuple[int, int]]]] = []
    for key, places in wanted.items():
        found = tried(specs_for, shapes, places, wanted)
        if found is not None:
            trials.append(found[0])
            opened.append((key, found[1]))
        elif explicit:
            where = ", ".join(f"axis {axis} of {inputs[number].name}" for number, axis in places)
            raise ShapeError(
                f"export_model: {where} cannot be open: the model works with the length {shapes[places[0][0]][places[0][1]]} only"
            )
    base = dict(zip(inputs, shapes))
    facts = spread_shapes(order, {(node, 0): spec.shape for (node, _), spec in trials[0].items() if node.op is None}, {})
    ops: dict[Node, Op] = {}
    for node in order:
        if node.op is not None:
            op = settled(node, facts)
            ops[node] = dataclasses.replace(op, training=False) if op.needs_training else op
    source = Source(order, ops, heads, trials, [node for node in order if node in base], constants)
    names: dict[Dynamic, str] = {}
    for key, places in opened:
        for number, axis in places:
            length = source.shape((inputs[number], 0))[axis]
            if isinstance(length, Dynamic):
                names.setdefault(
                    length, key if isinstance(key, str) else "batch" if axis == 0 else f"{inputs[number].name}_{axis}"
                )
    return source, names


def tried(
    specs_for: Any, shapes: Sequence[tuple[int, ...]], places: list[tuple[int, int]], groups: Groups
) -> tuple[dict[Entry, Spec], list[tuple[int, int]]] | None:
    """Shapes for a length twice as large: of these places alone, or together with all that are equally long. None if neither fits."""
    length = shapes[places[0][0]][places[0][1]]
    equal = [place for each in groups.values() for place in each if shapes[place[0]][place[1]] == length]
    for chosen in (places, equal):
        longer = [
            tuple([2 * each if (number, axis) in chosen else each for axis, each in enumerate(shape)])
            for number, shape in enumerate(shapes)
        ]
        try:
            return specs_for(longer), chosen
        except MXNetError:
            continue
    return None
