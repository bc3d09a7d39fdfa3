"""An ONNX file: made of a converted graph by the package onnx, checked, and written whole or not at all."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from .. import files
from ..base import ArgumentError, MXNetError
from .graph import OPSET, TYPES, Dynamic, Graph, OnnxNode, UnsupportedError, Value

PRODUCER = "minimx"
IR_VERSION = 8  # of the file format: the oldest that has all that is used here


class MissingPackageError(MXNetError, ImportError):
    """An optional package is not installed."""


def package_onnx() -> Any:
    """The package onnx. **Raises** MissingPackageError, which says how to install it."""
    try:
        return importlib.import_module("onnx")
    except ImportError as error:
        raise MissingPackageError(
            f"ONNX files are made by the package onnx, which cannot be imported ({error}): pip install 'minimx[onnx]'"
        ) from None


def model_of(graph: Graph, outputs: Sequence[Value], names: dict[Dynamic, str]) -> Any:
    """The `onnx.ModelProto` of a converted graph. `names`: what open lengths are called in the file."""
    onnx = package_onnx()
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    nodes = []
    kept = graph.needed([value.name for value in outputs])
    for node in kept:
        require_types(graph, node)
        attrs = dict(node.attrs)
        if node.kind == "ConstantOfShape":
            attrs["value"] = numpy_helper.from_array(attrs["value"])
        nodes.append(helper.make_node(node.kind, node.inputs, node.outputs, name=node.name, **attrs))
    used = {name for node in kept for name in node.inputs}
    constants = [numpy_helper.from_array(array, name) for name, array in graph.constants.items() if name in used]

    def described(value: Value) -> Any:
        if value.dtype.name not in TYPES:
            raise ArgumentError(f"{value.name} has dtype {value.dtype.name}, which ONNX has not; cast it")
        lengths = [length if isinstance(length, int) else names.get(length) for length in value.shape]
        return helper.make_tensor_value_info(value.name, TYPES[value.dtype.name], lengths)

    made = helper.make_graph(
        nodes, PRODUCER, [described(each) for each in graph.sources], [described(each) for each in outputs], constants
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name=PRODUCER)


def require_types(graph: Graph, node: OnnxNode) -> None:
    """Raise UnsupportedError if an operator of ONNX does not take a dtype that it would get, or not two that differ."""
    onnx = package_onnx()
    declared = onnx.defs.get_schema(node.kind, OPSET, "").inputs
    bound: dict[str, str] = {}  # dtypes that several inputs must have in common, by ONNX's name for them
    for position, name in enumerate(node.inputs):
        if not name:
            continue
        dtype = next((each.dtype for each in graph.sources if each.name == name), None) or graph.dtype(name)
        wanted = declared[min(position, len(declared) - 1)]
        called = onnx.TensorProto.DataType.Name(TYPES[dtype.name]).lower() if dtype.name in TYPES else dtype.name
        if f"tensor({called})" not in wanted.types:
            raise UnsupportedError(f"node {node.name}: {node.kind} of ONNX does not take {dtype.name}; cast it to float32 before")
        if bound.setdefault(wanted.type_str, dtype.name) != dtype.name:
            raise UnsupportedError(
                f"node {node.name}: {node.kind} of ONNX wants inputs of one dtype, and gets {bound[wanted.type_str]} and {dtype.name}"
            )


def serialized(model: Any) -> bytes:
    """The bytes of a file. **Raises** MXNetError for a model that is too large for one."""
    try:
        return bytes(model.SerializeToString())
    except Exception as error:  # protobuf's own, whose module differs between versions
        raise MXNetError(f"the model cannot be written as one file; ONNX's limit is 2 GB: {error}") from None


def check(model: Any) -> None:
    """Raise MXNetError if the model breaks a rule of ONNX: a fault of a converter."""
    onnx = package_onnx()
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        raise MXNetError(f"ONNX's checker refuses the model: {error}") from None


def write(model: Any, path: files.PathLike) -> None:
    files.replace_file(path, [serialized(model)])
