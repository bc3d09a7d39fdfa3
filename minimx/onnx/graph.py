"""An ONNX graph while it is written, and the table of converters.

ONNX describes a graph as lists of nodes over named values, with constants beside them. Here such a graph grows: a converter, one small
function for an operator of ours, is told what is known about the operator's inputs and outputs (`Value`) and appends nodes of ONNX to the
`Graph`. Converters stand in a table by the operator's name, a family a file; `export.py` walks a graph of ours and asks them. Nothing in
here needs the package onnx: the lists become its objects at the end (`model.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..base import ArgumentError, MXNetError

OPSET = 13  # of the operators that are written: what every runtime of the last years reads

#: ONNX's numbers for dtypes.
TYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10, "float64": 11,
    "uint32": 12, "uint64": 13,
}  # fmt: skip


GIVE_BOOL = ("And", "Equal", "Greater", "GreaterOrEqual", "IsNaN", "Less", "LessOrEqual", "Not", "Or", "Xor")
GIVE_INT64 = ("ArgMax", "ArgMin", "Shape", "Size")


class UnsupportedError(MXNetError, NotImplementedError):
    """Something that has no form in ONNX, or none here."""


@dataclass(frozen=True)
class Dynamic:
    """A length that is open in the exported file: what it is in each of the trials that the shapes were inferred for.

    Two that were equal in all trials are the same length; so it is known that a reshaped batch is still the batch.
    """

    trials: tuple[int, ...]

    def __repr__(self) -> str:
        return "?"


Length: TypeAlias = "int | Dynamic"


@dataclass(frozen=True)
class Value:
    """A value of the graph: its name in ONNX, what is known of its shape, its dtype, and the value itself where that is constant.

    `fill`: all elements are this number, in an array that need not be written down (the zeros with which a recurrent layer begins).
    """

    name: str
    shape: tuple[Length, ...]
    dtype: np.dtype[Any]
    array: np.ndarray[Any, Any] | None = None
    fill: float | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f"


@dataclass
class OnnxNode:
    """A node of ONNX: operator, names of inputs ("" for an absent one) and outputs, attributes."""

    kind: str
    inputs: list[str]
    outputs: list[str]
    attrs: dict[str, Any]
    name: str


Operand: TypeAlias = "Value | str | None"


class Graph:
    """Nodes and constants so far. Converters append with `node`, and make constants with `array`, `ints` and `number`."""

    def __init__(self) -> None:
        self.nodes: list[OnnxNode] = []
        self.constants: dict[str, np.ndarray[Any, Any]] = {}
        self.sources: list[Value] = []  # the inputs of the graph
        self.names: set[str] = set()
        self.stem = "node"  # what new names begin with: the name of the node of ours that is converted
        self.outputs: list[Value] = []  # of that node, as far as they are known
        self.dtypes: dict[str, np.dtype[Any]] = {}  # of all values that nodes make

    def fresh(self, wish: str) -> str:
        """A name like `wish` that no value has yet."""
        name, number = wish, 0
        while name in self.names:
            number += 1
            name = f"{wish}_{number}"
        self.names.add(name)
        return name

    # ---- nodes

    def node(self, kind: str, *inputs: Operand, **attrs: Any) -> str:
        """Append a node with one output; the name of that. Attributes that are None are left out."""
        return self.nodes_of(kind, inputs, 1, **attrs)[0]

    def nodes_of(self, kind: str, inputs: Sequence[Operand], outputs: int, **attrs: Any) -> list[str]:
        """Append a node with several outputs; their names."""
        names = [self.name_of(each) for each in inputs]
        while names and not names[-1]:
            names.pop()
        made = [self.fresh(f"{self.stem}_{kind.lower()}") for _ in range(outputs)]
        given = {key: value for key, value in attrs.items() if value is not None}
        for position, name in enumerate(made):
            self.dtypes[name] = self._dtype_of(kind, position, inputs, given)
        self.nodes.append(OnnxNode(kind, names, made, given, made[0]))
        return made

    def name_of(self, operand: Operand) -> str:
        """The name by which a node reads a value."""
        if operand is None:
            return ""
        if isinstance(operand, str):
            return operand
        if operand.fill is not None and operand.array is None:
            return self._filled(operand)
        if operand.array is not None and operand.name not in self.constants:
            self.constants[operand.name] = operand.array
        return operand.name

    def dtype(self, operand: Operand) -> np.dtype[Any]:
        """The dtype of a value."""
        if isinstance(operand, Value):
            return operand.dtype
        assert operand is not None
        return self.constants[operand].dtype if operand in self.constants else self.dtypes[operand]

    def _dtype_of(self, kind: str, position: int, inputs: Sequence[Operand], attrs: dict[str, Any]) -> np.dtype[Any]:
        """The dtype of an output, by the rules of ONNX."""
        if kind == "Cast":
            return np.dtype(next(name for name, number in TYPES.items() if number == attrs["to"]))
        if kind in GIVE_BOOL:
            return np.dtype(bool)
        if kind in GIVE_INT64 or (kind == "TopK" and position == 1):
            return np.dtype("int64")
        if kind in ("RandomNormal", "RandomUniform"):
            return np.dtype(next(name for name, number in TYPES.items() if number == attrs["dtype"]))
        if kind == "ConstantOfShape":
            return attrs["value"].dtype
        return self.dtype(inputs[1 if kind == "Where" else 0])

    def needed(self, names: Sequence[str]) -> list[OnnxNode]:
        """The nodes that values called `names` depend on, in order."""
        wanted = set(names)
        kept = []
        for node in reversed(self.nodes):
            if wanted.intersection(node.outputs):
                kept.append(node)
                wanted.update(node.inputs)
        return kept[::-1]

    def rename(self, before: str, after: str, start: int) -> None:
        """Call a value that a node from number `start` on makes `after`."""
        for node in self.nodes[start:]:
            node.inputs = [after if name == before else name for name in node.inputs]
            node.outputs = [after if name == before else name for name in node.outputs]
        self.dtypes[after] = self.dtypes[before]

    # ---- constants

    def array(self, value: Any, dtype: Any = None) -> str:
        """The name of a constant array; equal ones are written once."""
        array = np.ascontiguousarray(np.asarray(value, dtype)) if np.ndim(value) else np.asarray(value, dtype)
        for name in self.constants:
            other = self.constants[name]
            if (
                other.size <= 16
                and other.shape == array.shape
                and other.dtype == array.dtype
                and other.tobytes() == array.tobytes()
            ):
                return name
        name = self.fresh("constant")
        self.constants[name] = array
        return name

    def ints(self, *values: int) -> str:
        """A constant list of integers, as shapes and axes are given."""
        return self.array(list(values), np.int64)

    def number(self, value: float, like: Value) -> str:
        """A constant number of the dtype of `like`."""
        return self.array(value, like.dtype)

    # ---- what many converters do

    def cast(self, operand: Operand, dtype: Any) -> str:
        """The value converted to a dtype."""
        name = np.dtype(dtype).name
        if name not in TYPES:
            raise UnsupportedError(f"{self.stem}: ONNX has no {name} here")
        return self.node("Cast", operand, to=TYPES[name])

    def indices(self, value: Value) -> Operand:
        """Numbers of elements, which may be floating numbers here and are int64 in ONNX."""
        return value if value.dtype == np.int64 else self.cast(value, np.int64)

    def reshaped(self, operand: Operand, before: Sequence[Length], after: Sequence[Length]) -> str:
        """The value, of the shape `before`, in the shape `after`."""
        return self.node("Reshape", operand, self.shape(after, operand, before))

    def shape(self, wanted: Sequence[Length], operand: Operand = None, before: Sequence[Length] = ()) -> str:
        """A shape as the input of a Reshape of `operand`, or, without one, of other nodes: open lengths are taken from the inputs."""
        codes: list[int | None] = []
        for axis, length in enumerate(wanted):
            same = operand is not None and axis < len(before) and before[axis] == length and length != 0
            codes.append(length if isinstance(length, int) else 0 if same else None)
        if operand is not None and codes.count(None) == 1:
            codes[codes.index(None)] = -1
        if None not in codes:
            return self.ints(*[code for code in codes if code is not None])
        strange = [length for length in wanted if isinstance(length, Dynamic) and not self.is_input(length)]
        parts = []
        for length in wanted:
            if isinstance(length, int):
                parts.append(self.ints(length))
            else:  # one that is nowhere else is what is left for it
                parts.append(self.ints(-1) if strange == [length] and operand is not None else self.length(length))
        return self.node("Concat", *parts, axis=0)

    def is_input(self, wanted: Dynamic) -> bool:
        """Whether an input of the graph has this length."""
        return any(wanted in source.shape for source in self.sources)

    def length(self, wanted: Dynamic) -> str:
        """An open length as a list of one integer: that of an input of the graph. Raises UnsupportedError if none has it."""
        for source in self.sources:
            if wanted in source.shape:
                axis = source.shape.index(wanted)
                return self.node("Gather", self.node("Shape", source), self.ints(axis), axis=0)
        raise UnsupportedError(
            f"{self.stem}: a shape depends on lengths that are open in another way than by being one of them; fix some of them in "
            "dynamic_input_shapes"
        )

    def _filled(self, value: Value) -> str:
        """An array of one number, of a shape with open lengths."""
        fill = np.full((1,), value.fill, value.dtype)
        return self.node("ConstantOfShape", self.shape(value.shape), value=fill)

    def permuted(self, operand: Operand, axes: Sequence[int]) -> Operand:
        """The value with its axes in another order; itself if that is the order. A constant is written down in the new order."""
        if isinstance(operand, Value) and operand.array is not None:
            return self.array(operand.array.transpose(axes))
        return operand if list(axes) == list(range(len(axes))) else self.node("Transpose", operand, perm=list(axes))

    def fixed(self, value: Value, axis: int) -> int:
        """A length that must be known. Raises UnsupportedError if it is open."""
        length = value.shape[axis]
        if isinstance(length, int):
            return length
        raise UnsupportedError(
            f"{self.stem}: axis {axis} of {value.name} must have a fixed length; fix it in dynamic_input_shapes"
        )

    def axis(self, axis: int, value: Value) -> int:
        """An axis counted from the front."""
        return axis + value.ndim if axis < 0 else axis


Converter: TypeAlias = Callable[..., Any]
C = TypeVar("C", bound=Converter)
CONVERTERS: dict[str, Converter] = {}


def converts(*names: str) -> Callable[[C], C]:
    """Decorator: the function converts the operators called `names`.

    It is called with the graph, the operator, and a Value for each input, None for an absent one; it returns what is to stand for the
    output: a name, a Value, or a list of them.
    """

    def enter(function: C) -> C:
        for name in names:
            if name in CONVERTERS:
                raise ArgumentError(f"operator {name} has two converters")
            CONVERTERS[name] = function
        return function

    return enter
