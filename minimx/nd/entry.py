"""How an operator that is applied to arrays enters the engine and the tape.

`invoke` is the one way in: it infers shapes, checks devices and writes, submits the work, and returns arrays whose values
may still be pending. `Array` is what it needs of an array; NDArray (ndarray.py) adds what users call. Book: chapter 1.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from .. import autograd, device, storage
from ..autograd import IN_PLACE, Node, OpNode
from ..base import ArgumentError, DeviceError, DTypeError, MXNetError, ShapeError, as_dtype, shown
from ..device import Context, current_context
from ..engine import streams
from ..engine.events import watch, watched
from ..engine.front import submit, value_of, wait as engine_wait
from ..engine.var import Failure, Var, View, window
from ..op import Op, Spec, Tensor, advice_on_list, kind_of
from ..ops.creation import require_storable
from ..rules import require_given
from ..seeds import Key, next_key
from .direct import computed

autograd_state = autograd.state


class Array(View):
    """A part of memory with a place on the tape."""

    __slots__ = ("index", "node")

    make: ClassVar[Any]  # the class of the arrays that `invoke` returns: NDArray, which enters itself here

    def __init__(self, var: Var, spec: Spec, context: Context, offset: int = -1) -> None:
        self.var = var
        self.spec = spec
        self.context = context
        self.offset = offset
        self.node: Node | None = None  # where it came from, if it is tracked: the node and which of its outputs
        self.index = 0

    def take_over(self, other: Array) -> bool:
        """Become the value of `other` by taking its memory, if nobody else can see that or this one's; else do nothing: False."""
        mine, its = self.var, other.var
        if not its.unclaimed or its.viewed or mine.viewed or mine.shared or self.offset >= 0 or other.offset >= 0:
            return False
        if self.spec is not other.spec or self.context is not other.context:
            return False
        its.unclaimed = False
        self.var = its
        return True


def from_array(value: Any, context: Context) -> Any:
    """A NumPy array that nobody else sees any more, as an NDArray on `context`.

    It travels there before the call returns; a single number costs nothing on the way, it could be an argument of the kernel.
    """
    spec = Spec.of(value.shape, as_dtype(value.dtype))
    xp = device.array_module(context)
    if xp is np:
        value = np.ascontiguousarray(value) if value.ndim else value
        if not context.host and value.size > 1:
            with device.crossing(device.cpu(), context, value.nbytes):
                value = storage.adopt(value, context)
            return Array.make(Var(value), spec, context)
        return Array.make(Var(storage.adopt(value, context)), spec, context)
    line = streams.line_of(context)
    assert line is not None
    with streams.Work(line, what="copy from NumPy") as work:
        var = Var(xp.asarray(value))
    work.made(var, fresh=True)
    return Array.make(var, spec, context)


def host_numbers(value: Any, dtype: np.dtype[Any], who: str) -> np.ndarray[Any, Any]:
    """A C-contiguous copy of the numbers in `value` (nested lists, a NumPy array, ...) as `dtype`, for the user's call `who`.

    **Raises** DTypeError for complex numbers, times and records; ArgumentError for what is no array of numbers.
    """
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "cmMV":
        raise DTypeError(f"{who}: {value.dtype} cannot become {dtype.name}; take a real part of it, or convert it with astype()")
    if isinstance(value, Tensor) and not isinstance(value, Array):
        raise ArgumentError(f"{who}: {shown(value)} has no value until it is bound")
    if dtype.kind in "iu" and isinstance(value, (int, float, np.integer, np.floating)):
        require_storable(who, value, dtype)
    try:
        if value is None or (isinstance(value, np.ndarray) and value.dtype.kind == "O" and None in value.tolist()):
            raise TypeError("None is no number")
        with np.errstate(all="ignore"):
            return np.array(value, dtype, order="C")
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ArgumentError(f"{who}: no {dtype.name} array can be made of {shown(value)}: {error}") from None


def wrong_operand(op: Op, operands: Sequence[Any], position: int) -> NoReturn:
    """Raise the error for an operand that is no NDArray."""
    operand = operands[position]
    name = op.inputs[min(position, len(op.inputs) - 1)].rstrip("?*")
    if isinstance(operand, Tensor):
        raise ArgumentError(
            f"{op.name}: {name} is a {type(operand).__name__} and another operand an NDArray; they cannot be mixed"
        )
    advice = advice_on_list(operand, op) or "; make one with nd.array(...)"
    raise ArgumentError(f"{op.name}: {name} must be an NDArray, got {kind_of(operand)}{advice}")


def invoke(
    op: Op, operands: Sequence[Array | None], out: Any = None, context: Context | None = None, key: Key | None = None
) -> list[Any]:
    """Enter `op` into the engine and on the tape; its output arrays (those of `out` where given).

    **Args** `key`: of the random numbers that it draws, if they are to be those of another call; None for the next.
    **Raises** synchronously what the rule of shapes raises, DeviceError for operands on different devices, and MXNetError
    for a write that autograd could not follow. Errors in the kernel wait in the outputs.
    """
    specs: list[Any] = []
    arrays: list[Any] | None = [] if out is None and op.pure else None  # the operands' values; None if some are not there yet
    elements = 0
    tracked = False
    recording = autograd_state.recording
    for operand in operands:
        if operand is None:
            wanted = op.inputs[min(len(specs), len(op.inputs) - 1)]
            if not wanted.endswith("?"):
                require_given(op)  # else the message would be about a weight where its length was forgotten
                raise ArgumentError(f"{op.name}: input {wanted.rstrip('*')!r} is missing; it is None where an NDArray is wanted")
            specs.append(None)
            if arrays is not None:
                arrays.append(None)
            continue
        if not isinstance(operand, Array):
            wrong_operand(op, operands, len(specs))
        spec = operand.spec
        specs.append(spec)
        if recording and operand.node is not None and not operand.node.freed:
            tracked = True
        if arrays is not None:
            elements += spec.size
            if not operand.var.ready:
                arrays = None
            else:
                value = operand.var.value
                arrays.append(value if operand.offset < 0 else window(value, operand.offset, spec))
        if operand.context is not context:
            if context is None:
                context = operand.context
            elif not (operand.context.host and context.host) and not op.crosses_devices:
                raise DeviceError(f"{op.name}: operands are on {context} and {operand.context}; copy one with as_in_context()")
    if context is None:
        context = current_context()
    if not context.host:
        device.array_module(context)  # raises if the GPU is not there
        arrays = None
    if op.needs_training:
        op = dataclasses.replace(op, training=autograd_state.training)
    if op.data_dependent:
        for operand in operands:
            if operand is not None:
                engine_wait(operand)
        return _invoke_at_once(op, operands, context, out)
    inferred: Any = op.infer(*specs)
    if arrays is not None and type(inferred) is Spec:
        value = computed(op, arrays, inferred, elements + inferred.size, context)
        if value is not None:
            output = Array.make(Var(value), inferred, context)
            if tracked:
                record(op, operands, [output])
            return [output]
    out_specs: tuple[Spec, ...] = inferred if type(inferred) is tuple else (inferred,)
    targets: Sequence[Array | None] = (None,) * len(out_specs)
    if out is not None:
        targets = targets_of(op, out, out_specs, context)
    if recording and (out is not None or op.mutates):
        check_writes(op, operands, targets, tracked)
    if op.needs_key and key is None:
        key = next_key(context)
    variables = submit(op, operands, out_specs, context, targets, key)
    outputs = [
        Array.make(var, spec, context) if target is None else target for var, spec, target in zip(variables, out_specs, targets)
    ]
    if tracked:
        record(op, operands, outputs)
    return outputs


def _invoke_at_once(op: Op, operands: Sequence[Array | None], context: Context, out: Any) -> list[Any]:
    """Run an operator whose output's shape depends on data, which is there."""
    if out is not None:
        raise ArgumentError(f"{op.name}: the output's shape depends on the data, so out= cannot be given")
    xp = device.array_module(context)
    values = [None if operand is None else value_of(operand) for operand in operands]
    reads = [operand.var for operand in operands if operand is not None]
    line = streams.line_of(context)
    with contextlib.nullcontext() if line is None else streams.Work(line, reads, (), op.name), np.errstate(all="ignore"):
        if watch.direct:
            results = op.kernel(xp, *values)
        else:
            results = watched(_kernel_of, op, xp, values, [], None, context)
    listed = results if type(results) is tuple else (results,)
    outputs = [Array.make(Var(xp.ascontiguousarray(value)), Spec.of(value.shape, value.dtype), context) for value in listed]
    if autograd_state.recording and any(operand is not None and autograd.place(operand) for operand in operands):
        record(op, operands, outputs)
    return outputs


def _kernel_of(op: Op, xp: Any, values: list[Any], *others: Any) -> Any:
    return op.kernel(xp, *values)


def targets_of(op: Op, out: Any, out_specs: Sequence[Spec], context: Context) -> list[Array | None]:
    """The arrays of `out`, checked against what the operator gives; outputs that the caller does not see get none."""
    listed: list[Any] = list(out) if isinstance(out, (list, tuple)) else [out]
    if len(listed) not in (op.num_visible, len(out_specs)):
        raise ArgumentError(f"{op.name}: out has {len(listed)} arrays, the operator gives {op.num_visible}")
    for target, spec in zip(listed, out_specs):
        if not isinstance(target, Array):
            raise ArgumentError(f"{op.name}: out must be an NDArray, got {type(target).__name__}")
        if target.spec.shape != spec.shape:
            raise ShapeError(f"{op.name}: out has shape {target.spec.shape}, the result {spec.shape}; they must be equal")
        if target.context is not context and not (target.context.host and context.host):
            raise DeviceError(f"{op.name}: out is on {target.context}, the result on {context}; make out with ctx={context}")
        if target.spec.dtype != spec.dtype:
            raise DTypeError(f"{op.name}: out is {target.spec.dtype.name}, the result {spec.dtype.name}; they must be equal")
    return listed + [None] * (len(out_specs) - len(listed))


def check_writes(op: Op, operands: Sequence[Array | None], targets: Sequence[Array | None], tracked: bool) -> None:
    """Raise MXNetError if a write while recording would change a value that the graph needs, or miss a gradient.

    Overwriting the whole of an untracked array with a tracked value is recorded: the array becomes that value.
    """
    # An operator that changes an input has a gradient that does not look at it: there, that it reads it is no fault.
    written = [(-1, target) for target in targets] + [(position, operands[position]) for position in op.mutates]
    for own, target in written:
        if target is None:
            continue
        if autograd.place(target):
            raise MXNetError(IN_PLACE.format(what=f"{op.name} would overwrite an array that is in the graph"))
        if not tracked:
            continue
        others = (operand for position, operand in enumerate(operands) if position != own)
        if any(operand is not None and operand.var is target.var for operand in others):
            raise MXNetError(IN_PLACE.format(what=f"{op.name} reads the array that it would overwrite"))


NOT_KEPT = Var()  # stands for a value that an operator said its gradient does not look at: reading it is a fault
NOT_KEPT.ready = False
NOT_KEPT.failure = Failure(MXNetError("a gradient looks at a value that its operator did not save: a fault of minimx"), "", None)


def record(op: Op, operands: Sequence[Array | None], outputs: Sequence[Array]) -> None:
    """Enter an operation on the tape: the outputs become tracked."""
    make, no_value = Array.make, NOT_KEPT
    parents: list[tuple[Node, int] | None] = []
    inputs: list[Array | None] = []
    saved = op.saves_inputs
    some = type(saved) is not bool
    for position, operand in enumerate(operands):
        if operand is None:
            parents.append(None)
            inputs.append(None)
            continue
        node = operand.node
        if node is not None and node.freed:
            node = None
        parents.append(None if node is None else (node, operand.index))
        if position in saved if some else saved:  # type: ignore[operator]  # it is a tuple, or a bool
            operand.var.viewed = True
            kept = make(operand.var, operand.spec, operand.context, operand.offset)
            kept.node, kept.index = node, operand.index  # so that gradients can be differentiated again
        else:
            kept = make(no_value, operand.spec, operand.context)
        inputs.append(kept)
    # Outputs are kept without their node, which would hold them, and they it.
    saved = op.saves_outputs
    some = type(saved) is not bool
    kept_outputs = [
        make(output.var, output.spec, output.context, output.offset)
        if (position in saved if some else saved)  # type: ignore[operator]
        else make(no_value, output.spec, output.context)
        for position, output in enumerate(outputs)
    ]
    for output in outputs:
        output.var.viewed = True
    node = OpNode(op, parents, inputs, kept_outputs)
    for index, output in enumerate(outputs):
        output.node, output.index = node, index
