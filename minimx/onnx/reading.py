"""Reading ONNX files: a Symbol and its parameters, from the operators that models of networks have.

The other way round from the converters beside this file, it is a table by ONNX's names. A `Reader` holds what is known of each value: its
Symbol, and its numbers where it is a constant, since shapes and axes come as constants in ONNX and are attributes here. A file is data: it
is checked, and never trusted. Used by `mx.contrib.onnx`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from .. import nd, sym
from ..base import FileFormatError, MXNetError, as_dtype, shown
from ..files import PathLike, as_path, open_file
from ..nd import NDArray
from ..sym import Symbol
from .graph import TYPES, UnsupportedError
from .model import package_onnx

NAMES = {number: name for name, number in TYPES.items()}


class Reader:
    """The values of a file so far, by name."""

    def __init__(self) -> None:
        self.symbols: dict[str, Symbol] = {}
        self.constants: dict[str, np.ndarray[Any, Any]] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}  # of all values, as far as the package onnx infers them
        self.measured: dict[str, Symbol] = {}  # of what a value is the shape
        self.node: Any = None  # that is read now
        self.attrs: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """What the Symbol of the node is to be called."""
        return str(self.node.name or self.node.output[0])

    def has(self, position: int) -> bool:
        return position < len(self.node.input) and bool(self.node.input[position])

    def input(self, position: int = 0) -> Symbol:
        """An input as a Symbol. A constant becomes a variable, a parameter of that name."""
        if not self.has(position):
            raise self.error(f"input {position} is missing")
        return self.symbol(self.node.input[position])

    def inputs(self) -> list[Symbol]:
        return [self.symbol(name) for name in self.node.input if name]

    def made(self, function: Callable[..., Any], *operands: Symbol, **attrs: Any) -> Any:
        """What a function of `mx.sym` makes of `operands`, by default of all inputs, under the node's name."""
        return function(*(operands or self.inputs()), **attrs, name=self.name)

    def symbol(self, name: str) -> Symbol:
        if name not in self.symbols:
            if name not in self.constants:
                raise self.error(f"there is no value {name!r} before it")
            self.symbols[name] = sym.var(name)
        return self.symbols[name]

    def numbers(self, position: int) -> np.ndarray[Any, Any]:
        """An input that must be constant."""
        name = self.node.input[position]
        if name not in self.constants:
            raise self.unsupported(f"its input {name!r} is computed, and must be constant here")
        return self.constants[name]

    def ints(self, position: int, attribute: str) -> tuple[int, ...] | None:
        """A list of integers: an attribute in old files, an input in newer ones; None if it is absent."""
        if attribute in self.attrs:
            return tuple(map(int, self.attrs[attribute]))
        return tuple(map(int, self.numbers(position).reshape(-1))) if self.has(position) else None

    def ndim(self, position: int = 0) -> int:
        shape = self.shapes.get(self.node.input[position])
        if shape is None:
            raise self.unsupported(f"the number of axes of {self.node.input[position]!r} is not known")
        return len(shape)

    def error(self, what: str) -> FileFormatError:
        return FileFormatError(f"node {shown(self.name)} ({self.node.op_type}): {what}")

    def unsupported(self, what: str) -> UnsupportedError:
        return UnsupportedError(f"node {shown(self.name)}: the operator {self.node.op_type} of ONNX cannot be read: {what}")


Reading = Callable[[Reader], Any]
R = TypeVar("R", bound=Reading)
READERS: dict[str, Reading] = {}


def reads(*kinds: str) -> Callable[[R], R]:
    """Decorator: the function makes Symbols of the operators of ONNX called `kinds`: one, or a list for several outputs."""

    def enter(function: R) -> R:
        READERS.update(dict.fromkeys(kinds, function))
        return function

    return enter


# ---- files


def parsed(model_file: PathLike) -> Any:
    """The model in a file, checked. **Raises** MissingFileError, or FileFormatError for what is no ONNX model."""
    onnx = package_onnx()
    path = as_path(model_file)
    file, _ = open_file(path)
    with file:
        contents = file.read()
    try:
        model = onnx.load_model_from_string(contents)
        onnx.checker.check_model(model)
    except Exception as error:  # protobuf's own, and the checker's
        raise FileFormatError(f"import_model: {path} is no ONNX model: {error}") from None
    return model


def read(model: Any) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """The graph of a model, its arguments and its auxiliary states."""
    onnx = package_onnx()
    reader = Reader()
    graph = onnx.shape_inference.infer_shapes(model).graph
    for tensor in graph.initializer:
        reader.constants[tensor.name] = onnx.numpy_helper.to_array(tensor)
        reader.shapes[tensor.name] = reader.constants[tensor.name].shape
    for each in (*graph.input, *graph.value_info, *graph.output):
        if each.type.tensor_type.HasField("shape"):
            reader.shapes[each.name] = tuple([length.dim_value for length in each.type.tensor_type.shape.dim])
    for each in graph.input:
        if each.name not in reader.constants:
            dtype = NAMES.get(each.type.tensor_type.elem_type)
            reader.symbols[each.name] = sym.var(each.name, dtype=None if dtype in (None, "float32") else dtype)
    for node in graph.node:
        _read_node(onnx, reader, node)
    outputs = [reader.symbol(each.name) for each in graph.output]
    symbol = outputs[0] if len(outputs) == 1 else sym.Group(outputs)
    arguments = {name: as_array(reader.constants[name]) for name in symbol.list_arguments() if name in reader.constants}
    states = {name: as_array(reader.constants[name]) for name in symbol.list_auxiliary_states() if name in reader.constants}
    return symbol, arguments, states


def as_array(array: np.ndarray[Any, Any]) -> NDArray:
    """A constant as an array; one without axes, which MXNet does not know, has one."""
    return nd.array(array.reshape(1) if not array.ndim else array, dtype=as_dtype(array.dtype))


def _read_node(onnx: Any, reader: Reader, node: Any) -> None:
    reader.node = node
    reader.attrs = {each.name: _value(onnx, each) for each in node.attribute}
    if node.domain not in ("", "ai.onnx") or node.op_type not in READERS:
        raise reader.unsupported("there is no reader for it")
    try:
        found = READERS[node.op_type](reader)
    except MXNetError as error:
        if isinstance(error, (UnsupportedError, FileFormatError)):
            raise
        raise reader.error(str(error)) from None
    if isinstance(found, np.ndarray):
        reader.constants[node.output[0]] = found
        return
    for name, symbol in zip(node.output, found if isinstance(found, list) else [found]):
        if name:
            reader.symbols[name] = symbol


def _value(onnx: Any, attribute: Any) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return onnx.numpy_helper.to_array(value) if attribute.type == onnx.AttributeProto.TENSOR else value


def metadata(model: Any) -> dict[str, list[tuple[str, tuple[int, ...]]]]:
    """Names and shapes of inputs and outputs; 0 stands for an open length."""
    constants = {tensor.name for tensor in model.graph.initializer}

    def described(values: Sequence[Any]) -> list[tuple[str, tuple[int, ...]]]:
        return [
            (each.name, tuple([length.dim_value for length in each.type.tensor_type.shape.dim]))
            for each in values
            if each.name not in constants
        ]

    return {"input_tensor_data": described(model.graph.input), "output_tensor_data": described(model.graph.output)}
