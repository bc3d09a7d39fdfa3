"""Operators that users write: `CustomOp` computes, `CustomOpProp` describes, `register` enters the description under a name.

    @mx.operator.register("square")
    class SquareProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Square()  # a CustomOp with forward and backward

    y = mx.nd.Custom(x, op_type="square")

The description is asked by the rules here, which make an operator of it like all others: it has names of inputs, shapes, dtypes, and a
place in MXNet's files. What it computes is Python code on arrays, so it runs a layer above: nd/custom.py. Book: chapter 2.
"""

from __future__ import annotations

import itertools
import logging
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar

import numpy as np

from ..base import ArgumentError, DTypeError, MXNetError, ShapeError, as_dtype, shown
from ..op import Op, Shape, Spec, attributes

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["DESCRIPTIONS", "CustomOp", "CustomOpProp", "UserDefined", "register"]

Class = TypeVar("Class", bound=type)
Shapes: TypeAlias = "Sequence[Shape | None]"
DTypes: TypeAlias = "Sequence[np.dtype[Any] | None]"


# ---- what users derive from


class CustomOp:
    """What a user's operator computes: a subclass overrides `forward`, and `backward` if it has a gradient.

    An instance belongs to one call, or to one executor: what `forward` keeps in it is there for `backward`. Both run in the engine,
    as a task of the device's lane, in no matter which thread. They get arrays whose values are there, and may use arrays, `asnumpy`,
    autograd, and other operators of any kind. What they raise is raised where the result is read. **Source** MXNet `operator.CustomOp`.
    """

    def forward(self, is_train: bool, req: list[str], in_data: list[Any], out_data: list[Any], aux: list[Any]) -> None:
        """Compute `out_data` from `in_data`; `aux` are states that it may change. `req[i]` says how `out_data[i]` is to be written."""

    def backward(
        self, req: list[str], out_grad: list[Any], in_data: list[Any], out_data: list[Any], in_grad: list[Any], aux: list[Any]
    ) -> None:
        """Compute `in_grad` from `out_grad`, the gradients of the outputs, and what `forward` saw. `req[i]` belongs to `in_grad[i]`."""

    def assign(self, dst: Any, req: str, src: Any) -> None:
        """Write `src` into `dst` as `req` says: "write" or "inplace" overwrite, "add" adds, "null" does nothing."""
        if req in ("write", "inplace"):
            dst[:] = src
        elif req == "add":
            dst[:] += src
        elif req != "null":
            raise ArgumentError(
                f"assign: req is {shown(req)}; it is one of 'write', 'inplace', 'add' and 'null', as forward gets it"
            )


class CustomOpProp:
    """What a user's operator is: its inputs and outputs, their shapes and dtypes. A subclass overrides what differs from the defaults.

    It is made with the keywords of the call, as strings: `mx.nd.Custom(x, op_type="crop", size=3)` makes `CropProp(size="3")`.
    **Args** `need_top_grad`: whether `backward` looks at the gradients of the outputs. An output layer, which knows its loss, does not;
    then executors start backward from it. **Source** MXNet `operator.CustomOpProp`.
    """

    def __init__(self, need_top_grad: bool = True) -> None:
        self.need_top_grad_ = need_top_grad

    def list_arguments(self) -> list[str]:
        """Names of the inputs that are no states."""
        return ["data"]

    def list_outputs(self) -> list[str]:
        """Names of the outputs."""
        return ["output"]

    def list_auxiliary_states(self) -> list[str]:
        """Names of the states: further inputs, which `forward` may change, such as running means."""
        return []

    def infer_shape(self, in_shape: list[Any]) -> Any:
        """Shapes of arguments, outputs and states, as three lists (or two, without states), from those of the arguments.

        In a graph some may be unknown yet: [] is an unknown shape, -1 an unknown length.
        """
        return in_shape, [in_shape[0]] * len(self.list_outputs()), []

    def infer_type(self, in_type: list[Any]) -> Any:
        """Dtypes of arguments, outputs and states, as three lists (or two), from those of the arguments; None is an unknown one."""
        first = in_type[0]
        return in_type, [first] * len(self.list_outputs()), [first] * len(self.list_auxiliary_states())

    def infer_storage_type(self, in_stype: list[str]) -> Any:
        """Kinds of storage. Only "default", dense arrays, exists here, so nobody asks."""
        return in_stype, ["default"] * len(self.list_outputs()), ["default"] * len(self.list_auxiliary_states())

    def infer_storage_type_backward(
        self, ograd_stype: list[str], in_stype: list[str], out_stype: list[str], igrad_stype: list[str], aux_stype: list[str]
    ) -> Any:
        """Kinds of storage in `backward`; see above."""
        return ograd_stype, in_stype, out_stype, igrad_stype, aux_stype

    def declare_backward_dependency(self, out_grad: list[int], in_data: list[int], out_data: list[int]) -> list[int]:
        """Which arrays `backward` looks at, among numbers that stand for all; the others are not kept for it."""
        return [*(out_grad if self.need_top_grad_ else []), *in_data, *out_data]

    def create_operator(self, ctx: Any, in_shapes: list[list[int]], in_dtypes: list[Any]) -> CustomOp:
        """The operator for inputs (arguments, then states) of these shapes and dtypes, NumPy's classes, on the device `ctx`."""
        return CustomOp()


DESCRIPTIONS: dict[str, Callable[..., CustomOpProp]] = {}  # what `register` has entered


def register(reg_name: str) -> Callable[[Class], Class]:
    """Class decorator: enter a subclass of CustomOpProp under `reg_name`, the `op_type` of calls. **Source** MXNet `operator.register`.

    A name that is taken is taken over, as when a notebook's cell runs again; calls and graphs from before keep what they had.
    """
    if not isinstance(reg_name, str) or not reg_name:
        raise ArgumentError(f"operator.register: a name is wanted, as in @register('square'), got {shown(reg_name)}")

    def enter(prop_cls: Class) -> Class:
        if not isinstance(prop_cls, type) or not issubclass(prop_cls, CustomOpProp):
            raise ArgumentError(f"operator.register: a subclass of CustomOpProp is wanted, got {shown(prop_cls)}")
        before = DESCRIPTIONS.get(reg_name)
        if before is not None and getattr(before, "__qualname__", None) != prop_cls.__qualname__:
            logging.getLogger().warning(
                "%s replaces %s as the custom operator %r", prop_cls.__qualname__, before.__qualname__, reg_name
            )
        DESCRIPTIONS[reg_name] = prop_cls
        return prop_cls

    return enter


register("custom_op")(CustomOpProp)


# ---- the operator that a description makes


def asked(op_type: str, what: str, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a user's method gives. Raises ArgumentError for what it raises, unless that is an MXNetError; the user's error is its cause."""
    try:
        return method(*args, **kwargs)
    except MXNetError:
        raise
    except Exception as error:
        raise ArgumentError(f"Custom {op_type}: {what} raised {type(error).__name__}: {error}") from error


def names(op_type: str, prop: CustomOpProp, method: str) -> tuple[str, ...]:
    """What a list method of a description gives. Raises ArgumentError for anything but names."""
    found = asked(op_type, method, getattr(prop, method))
    if not isinstance(found, (list, tuple)) or not all(isinstance(name, str) and name for name in found):
        raise ArgumentError(f"Custom {op_type}: {method} must give a list of names, got {shown(found)}")
    return tuple(found)


class Needed(NamedTuple):
    """Numbers of the arrays that `backward` looks at."""

    heads: frozenset[int]  # gradients of outputs
    arguments: frozenset[int]
    outputs: frozenset[int]


def needed(op_type: str, prop: CustomOpProp, arguments: int, outputs: int) -> Needed:
    """What declare_backward_dependency says. Raises ArgumentError for numbers that stand for nothing."""
    starts = (0, outputs, outputs + arguments, 2 * outputs + arguments)
    groups = [list(range(start, stop)) for start, stop in itertools.pairwise(starts)]
    found = asked(op_type, "declare_backward_dependency", prop.declare_backward_dependency, *map(list, groups))
    if not isinstance(found, (list, tuple, set)) or not all(each in range(starts[-1]) for each in found):
        raise ArgumentError(
            f"Custom {op_type}: declare_backward_dependency must give numbers that it got, 0 to {starts[-1] - 1}, got {shown(found)}"
        )
    return Needed(*(frozenset(each - start for each in found if each in group) for start, group in zip(starts, groups)))


@attributes
class UserDefined(Op):
    """An operator with a description, made by `made`. Two are never equal, as each may draw numbers, print or keep a state."""

    composite: ClassVar[bool] = True

    op_type: str = ""
    options: tuple[tuple[str, str], ...] = ()  # the keywords of the call
    prop: Any = None  # the description
    inputs: tuple[str, ...] = ()  # type: ignore[misc]  # each operator has its own: arguments, then states
    aux: tuple[int, ...] = ()  # type: ignore[misc]
    mutates: tuple[int, ...] = ()  # type: ignore[misc]
    output_names: tuple[str, ...] = ()
    needed: Any = None  # Needed
    is_loss: bool = False  # type: ignore[misc]  # backward needs no gradients of outputs

    @classmethod
    def made(cls, op_type: Any, options: dict[str, Any]) -> Self:
        """The operator that is registered as `op_type`, with the keywords of a call. Raises ArgumentError if they do not fit."""
        if op_type is None:
            raise ArgumentError("Custom: op_type is missing: the name under which the operator was registered")
        description = DESCRIPTIONS.get(op_type) if isinstance(op_type, str) else None
        if description is None:
            raise ArgumentError(
                f"Custom: no operator is registered as {shown(op_type)}; there are {', '.join(sorted(DESCRIPTIONS))}. Run the code that "
                "registers it, @mx.operator.register, before it is used or loaded from a file"
            )
        texts = {key: asked(op_type, f"str() of {key}", str, value) for key, value in options.items()}
        prop = asked(op_type, f"{description.__qualname__}()", description, **texts)
        arguments, states = names(op_type, prop, "list_arguments"), names(op_type, prop, "list_auxiliary_states")
        outputs = names(op_type, prop, "list_outputs")
        looks_at = needed(op_type, prop, len(arguments), len(outputs))
        aux = tuple(range(len(arguments), len(arguments) + len(states)))
        return cls(
            op_type=op_type, options=tuple(sorted(texts.items())), prop=prop, inputs=arguments + states, aux=aux, mutates=aux,
            output_names=outputs, needed=looks_at, is_loss=not looks_at.heads,
        )  # fmt: skip

    @classmethod
    def from_attrs(cls, attrs: dict[str, str]) -> Self:
        own = {key: text for key, text in attrs.items() if not key.startswith("__") and key != "op_type"}
        return cls.made(attrs.get("op_type"), own)

    def attrs(self) -> dict[str, str]:
        return {"op_type": self.op_type, **dict(self.options)}

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    @property
    def num_outputs(self) -> int:
        return len(self.output_names)

    # ---- shapes and dtypes

    def infer(self, *specs: Spec) -> tuple[Spec, ...]:
        """The outputs' specs from those of arguments and states, which must be what the description says."""
        shapes, out_shapes = self._shapes([list(spec.shape) for spec in specs])
        dtypes, out_dtypes = self._dtypes([spec.dtype for spec in specs])
        for name, spec, shape, dtype in zip(self.inputs, specs, shapes, dtypes):
            if shape is not None and shape != spec.shape:
                raise ShapeError(f"Custom {self.op_type}: {name} has shape {spec.shape}, infer_shape wants {shape}")
            if dtype is not None and dtype != spec.dtype:
                raise DTypeError(
                    f"Custom {self.op_type}: {name} is {spec.dtype.name}, infer_type wants {dtype.name}; use astype()"
                )
        made = []
        for name, shape, dtype in zip(self.output_names, out_shapes, out_dtypes):
            if shape is None or min(shape) < 0:
                raise ShapeError(
                    f"Custom {self.op_type}: infer_shape gives {shape or []} for {name}, which is no shape of an array"
                )
            if dtype is None:
                raise DTypeError(f"Custom {self.op_type}: infer_type does not say which dtype {name} has")
            made.append(Spec.of(shape, dtype))
        return tuple(made)

    def deduced_shapes(self, inputs: Shapes, outputs: Shapes) -> tuple[Shapes, Shapes]:
        """All that follows for shapes in a graph, where None is an unknown one and 0 an unknown length."""
        try:
            found = self._shapes([[length or -1 for length in shape or ()] for shape in inputs])
        except MXNetError:
            if all(shape is not None and 0 not in shape for shape in inputs):
                raise
            return inputs, outputs  # a user's rule need not be ready for what is unknown
        ins, outs = ([None if shape is None else tuple(max(each, 0) for each in shape) for shape in group] for group in found)
        return ins, outs

    def deduced_dtypes(self, inputs: DTypes, outputs: DTypes, shapes: Shapes) -> tuple[DTypes, DTypes]:
        """All that follows for dtypes in a graph, where None is an unknown one."""
        try:
            return self._dtypes(inputs)
        except MXNetError:
            if all(dtype is not None for dtype in inputs):
                raise
            return inputs, outputs

    def _shapes(self, given: Sequence[list[int]]) -> tuple[list[Shape | None], list[Shape | None]]:
        """Shapes of inputs and of outputs as the description says; None for []."""

        def shape_of(value: Any) -> Shape | None:
            try:
                return tuple(map(operator.index, value)) or None
            except TypeError:
                raise ArgumentError(f"Custom {self.op_type}: infer_shape gives {shown(value)} where a shape is wanted") from None

        ins, outs, states = ([shape_of(each) for each in group] for group in self._told("infer_shape", given))
        return ins + states, outs

    def _dtypes(self, given: DTypes) -> tuple[list[np.dtype[Any] | None], list[np.dtype[Any] | None]]:
        """Dtypes of inputs and of outputs as the description says."""
        found = self._told("infer_type", [None if dtype is None else dtype.type for dtype in given])
        ins, outs, states = ([None if each is None else as_dtype(each) for each in group] for group in found)
        return ins + states, outs

    def _told(self, method: str, given: Sequence[Any]) -> list[list[Any]]:
        """What infer_shape or infer_type says to the arguments' part of `given`: three lists, of as many values as there should be."""
        counts = {
            "arguments": len(self.inputs) - len(self.aux), "outputs": len(self.output_names), "auxiliary states": len(self.aux)
        }  # fmt: skip
        found = asked(self.op_type, method, getattr(self.prop, method), list(given[: counts["arguments"]]))
        groups = list(found) if isinstance(found, (list, tuple)) else []
        groups += [[]] if len(groups) == 2 else []
        if len(groups) != 3 or not all(isinstance(group, (list, tuple)) for group in groups):
            raise ArgumentError(
                f"Custom {self.op_type}: {method} must give 2 or 3 lists: of arguments, outputs and auxiliary states"
            )
        for group, (what, count) in zip(groups, counts.items()):
            if len(group) != count:
                raise ArgumentError(f"Custom {self.op_type}: {method} gives {len(group)} {what}, there are {count}")
        return [list(group) for group in groups]
