"""`Custom`: operators that users write, on arrays. What such an operator is stands in ops/custom.py; here it runs.

A call is a function that is pushed to the engine: it reads the inputs, and writes the outputs and the auxiliary states. When its turn has
come, in whichever thread, the user's `forward` gets arrays of its own on the same memory. They have Vars of their own, so that all it
does with them - computing, reading, autograd - goes through the engine again, without waiting for the task in which it runs. `backward`
is pushed in the same way, by the node that the call leaves on the tape. Book: chapter 2.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Container, Iterator, Sequence
from typing import Any

import numpy as np

from .. import autograd, device
from ..autograd import Node, OpNode, place, state
from ..base import ArgumentError, DeviceError, MXNetError
from ..device import Context, current_context
from ..engine import events
from ..engine.front import push, value_of
from ..engine.var import Failure, Var, View
from ..op import Spec, Tensor, apply, hidden, is_node_key, register
from ..ops.custom import CustomOp, UserDefined, asked
from .entry import NOT_KEPT, check_writes, from_array, targets_of, wrong_operand
from .ndarray import NDArray

__all__ = ["Custom"]

Arrays = Sequence[NDArray]


Method = Callable[[list[NDArray], list[NDArray], list[NDArray]], None]


class Worker:
    """A user's CustomOp for operands of some specs on a device, and how the engine runs its methods: one after the other.

    `specs` are those of its outputs.
    """

    __slots__ = ("context", "op", "op_type", "specs", "turn")

    def __init__(self, op_type: str, op: CustomOp, context: Context, specs: Sequence[Spec]) -> None:
        self.op_type = op_type
        self.op = op
        self.context = context
        self.specs = specs
        self.turn = Var()

    def push(
        self, what: str, method: Method, given: Sequence[NDArray | None], specs: Sequence[Spec], states: Arrays,
        reads: Sequence[Var] = (), writes: Sequence[Var] = (),
    ) -> list[NDArray]:  # fmt: skip
        """New arrays of `specs`, which `method`, `what` of the user, will compute when the engine runs it.

        It is called with arrays of the values `given` (None: it may not look there), the arrays to compute, and those of `states`.
        """
        outputs = [NDArray(Var(), spec, self.context) for spec in specs]
        training = state.training
        name = self.op_type if what == "forward" else f"_{what}_{self.op_type}"

        def task(*values: Any) -> None:
            remaining = iter(values)
            inputs = [self._unseen(what) if each is None else local(next(remaining), each) for each in given]
            aux = [local(next(remaining), each) for each in states]
            made = [zeros_on(self.context, spec) for spec in specs]
            with own_scope(self.context, training), events.custom(name, self.context):
                self._call(what, method, inputs, made, aux)
            for output, array in zip(outputs, made):
                output.var.value = value_of(array)

        looked_at: list[View | Var] = [each for each in given if each is not None]
        written: list[View | Var] = [*states, *(output.var for output in outputs), self.turn, *writes]
        push(task, [*looked_at, *reads], written, self.context, name, sum(spec.nbytes for spec in specs))
        return outputs

    def _unseen(self, what: str) -> NDArray:
        """Stands for an array that `backward` said it does not look at: reading it is an error. It has no shape, as in MXNet."""
        var = Var()
        error = MXNetError(
            f"Custom {self.op_type}: {what} looks at an array that declare_backward_dependency did not name (for out_grad see "
            "need_top_grad)"
        )
        var.ready, var.failure = False, Failure(error, self.op_type, None)
        return NDArray(var, Spec.of((), np.float32), self.context)

    def _call(self, what: str, method: Method, inputs: list[NDArray], made: list[NDArray], aux: list[NDArray]) -> None:
        """Call a user's method, and return when all is done that it has queued on the arrays: others may write to their memory then.

        Raises MXNetError for what it raises, which is the error's cause, and for what it may not do.
        """
        readable = [array for array in inputs if array.var.ready]
        targets, states = list(made), list(aux)
        try:
            method(list(inputs), targets, states)
        except MXNetError:
            raise
        except Exception as error:
            raise MXNetError(f"Custom {self.op_type}: {what} raised {type(error).__name__}: {error}") from error
        finally:
            for array in (*inputs, *made, *aux):
                array.wait_to_write()
        for array in readable:
            try:
                array.wait_to_read()
            except MXNetError as error:  # this memory cannot be written: the write has failed
                target = "out_data" if what == "forward" else "in_grad"
                raise ArgumentError(
                    f"Custom {self.op_type}: {what} writes to an array that it may only read; work on a copy(), and assign results to "
                    f"{target}"
                ) from error
        for array in (*made, *aux):
            array.wait_to_read()
        for name, before, after in (("out_data" if what == "forward" else "in_grad", made, targets), ("aux", aux, states)):
            if len(before) != len(after) or any(one is not other for one, other in zip(before, after)):
                raise ArgumentError(
                    f"Custom {self.op_type}: {what} puts another array into the list {name}, which nobody sees; write into the one that is "
                    f"there: self.assign({name}[0], req[0], value), or {name}[0][:] = value"
                )


def local(value: Any, array: NDArray) -> NDArray:
    """An array on the memory `value` of `array`, with a Var of its own. What is written to it goes into that memory, or is refused."""
    var = Var(value)
    var.shared = True
    return NDArray(var, array.spec, array.context)


def zeros_on(context: Context, spec: Spec) -> NDArray:
    with device.activate(context):
        return from_array(device.array_module(context).zeros(spec.shape, spec.dtype), context)


@contextlib.contextmanager
def own_scope(context: Context, training: bool) -> Iterator[None]:
    """What a user's method finds, in whichever thread it runs: nothing is recorded, arrays are made on its device, NumPy warns."""
    asked_before, state.asked = state.asked, None  # the thread may be in the middle of tracing a block
    try:
        with context, autograd.pause(train_mode=training), np.errstate(all="warn", under="ignore"):
            yield
    finally:
        state.asked = asked_before


# ---- the operator


@register("Custom")
class CustomCall(UserDefined):
    """An operator with a description, as arrays, graphs and files have it."""

    workers: dict[Any, Worker] | None = hidden(default=None)  # by device, shapes and dtypes, if they outlive a call

    def keeping(self) -> CustomCall:
        """The operator with workers that stay from call to call, for an executor."""
        return dataclasses.replace(self, workers={})

    def vjp(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Never asked, as the tape has a node of its own (below). It is here because there is a gradient."""
        raise NotImplementedError

    def run(self, operands: Arrays, context: Context) -> list[NDArray]:
        """The outputs, which are pending. Raises what the description says about operands that do not fit."""
        count = len(operands) - len(self.aux)
        arguments, states = operands[:count], operands[count:]
        tracked = state.recording and any(place(operand) for operand in operands)
        if states and state.recording:
            # A state may be a parameter that has a place for a gradient, and never gets one.
            leaves = (each.detach() if isinstance(each.node, autograd.Leaf) else each for each in states)
            check_writes(self, [*arguments, *leaves], (), tracked)
        worker = self._worker(context, [operand.spec for operand in operands])
        training = state.training

        def forward(given: list[NDArray], made: list[NDArray], aux: list[NDArray]) -> None:
            worker.op.forward(is_train=training, req=["write"] * len(made), in_data=given, out_data=made, aux=aux)

        done = Var()
        outputs = worker.push("forward", forward, arguments, worker.specs, states, writes=[done])
        if tracked:
            node = CustomNode(self, worker, done, arguments, states, outputs)
            for index, output in enumerate(outputs):
                output.node, output.index = node, index
        return outputs

    def _worker(self, context: Context, specs: Sequence[Spec]) -> Worker:
        """The one of these operands, if workers are kept and there is one, else a new one."""
        key = (context, *specs)
        found = None if self.workers is None else self.workers.get(key)
        if found is None:
            out_specs = self.infer(*specs)
            shapes, dtypes = [list(spec.shape) for spec in specs], [spec.dtype.type for spec in specs]
            op = asked(self.op_type, "create_operator", self.prop.create_operator, context, shapes, dtypes)
            if not isinstance(op, CustomOp):
                raise ArgumentError(f"Custom {self.op_type}: create_operator must give a CustomOp, got {type(op).__name__}")
            found = Worker(self.op_type, op, context, out_specs)
            if self.workers is not None:
                self.workers[key] = found
        return found


# ---- the tape


class CustomNode(OpNode):
    """A call on autograd's tape. It keeps what `backward` looks at, and the worker."""

    __slots__ = ("done", "states", "worker")

    op: CustomCall

    def __init__(self, op: CustomCall, worker: Worker, done: Var, arguments: Arrays, states: Arrays, outputs: Arrays) -> None:
        places = [place(array) for array in arguments]
        inputs = [saved(array, number in op.needed.arguments) for number, array in enumerate((*arguments, *states))]
        for array, origin in zip(inputs, places):
            array.node, array.index = origin or (None, 0)
        results = [saved(array, number in op.needed.outputs) for number, array in enumerate(outputs)]
        super().__init__(op, [*places, *[None] * len(states)], inputs, results)
        self.worker: Worker | None = worker
        self.done = done  # it has failed if `forward` has
        self.states = states

    def vjp(self, grads: list[Any]) -> Sequence[Any]:
        op, worker, needed = self.op, self.worker, self.op.needed
        assert worker is not None
        count = len(op.inputs) - len(op.aux)
        wanted = [parent is not None for parent in self.parents[:count]]
        heads = [
            None if number not in needed.heads else zeros_on(worker.context, output.spec) if gradient is None else gradient
            for number, (gradient, output) in enumerate(zip(grads, self.outputs))
        ]
        given = [*heads, *seen(self.inputs[:count], needed.arguments), *seen(self.outputs, needed.outputs)]
        req = ["write" if each else "null" for each in wanted]

        def backward(given: list[NDArray], made: list[NDArray], aux: list[NDArray]) -> None:
            stop = len(heads) + count
            out_grad, in_data, out_data = given[: len(heads)], given[len(heads) : stop], given[stop:]
            worker.op.backward(req=req, out_grad=out_grad, in_data=in_data, out_data=out_data, in_grad=made, aux=aux)

        found = worker.push(
            "backward", backward, given, [array.spec for array in self.inputs[:count]], self.states, reads=[self.done]
        )
        if state.recording:
            sources = [
                None if each is None or each.node is None else (each.node, each.index) for each in given[: len(heads) + count]
            ]
            node = Last(op.op_type, sources, count)
            for index, gradient in enumerate(found):
                gradient.node, gradient.index = node, index
        return [gradient if each else None for gradient, each in zip(found, wanted)] + [None] * len(op.aux)

    def free(self) -> None:
        super().free()
        self.worker, self.states = None, []


class Last(Node):
    """Gradients that a user's `backward` has computed, on the tape: they have no gradients themselves."""

    __slots__ = ("op_type",)

    def __init__(self, op_type: str, parents: list[tuple[Node, int] | None], num_outputs: int) -> None:
        super().__init__(parents, num_outputs)
        self.op_type = op_type

    def vjp(self, grads: list[Any]) -> Sequence[Any]:
        raise MXNetError(
            f"Custom {self.op_type}: what its backward computes has no gradient; for gradients of gradients write it with operators of nd"
        )


def saved(array: NDArray, is_needed: bool) -> NDArray:
    """An array for the tape, without its place there; without its value if that is not needed."""
    if not is_needed:
        return NDArray(NOT_KEPT, array.spec, array.context)
    return array.detach()


def seen(arrays: Arrays, numbers: Container[int]) -> list[NDArray | None]:
    """Those of `arrays` whose number is among `numbers`, None in the place of others."""
    return [array if number in numbers else None for number, array in enumerate(arrays)]


# ---- what users call


def called(data: Sequence[Any], op_type: str | None, kwargs: dict[str, Any]) -> tuple[CustomCall, list[Any], dict[str, Any]]:
    """From a call: the operator, its operands (None for missing ones), and keywords that are for the node of a graph."""
    named = {key: value for key, value in kwargs.items() if isinstance(value, Tensor)}
    how = {key: value for key, value in kwargs.items() if key in ("name", "attr") or is_node_key(key)}
    op = CustomCall.made(op_type, {key: value for key, value in kwargs.items() if key not in named and key not in how})
    takes = ", ".join(op.inputs) or "no inputs"
    if len(data) > len(op.inputs):
        raise ArgumentError(f"Custom {op.op_type}: {len(data)} inputs are given; it takes {takes}")
    operands = [*data, *[None] * (len(op.inputs) - len(data))]
    for key, value in named.items():
        if key not in op.inputs:
            raise ArgumentError(f"Custom {op.op_type}: no input is called {key!r}; it takes {takes}")
        position = op.inputs.index(key)
        if operands[position] is not None:
            raise ArgumentError(f"Custom {op.op_type}: {key} is given twice, by position and by name")
        operands[position] = value
    return op, operands, how


def Custom(*data: Any, op_type: str | None = None, **kwargs: Any) -> Any:
    """The operator that `mx.operator.register` has entered as `op_type`, on inputs in the order of its arguments and states, or by name.

    **Args** `kwargs`: inputs by name; `out`: arrays that receive the outputs; all others go to the operator's CustomOpProp, as strings.
    **Returns** an array, or a list if there are several outputs. Their values are pending. **Raises** ArgumentError for an unknown
    `op_type` or wrong inputs, and what the CustomOpProp raises. Errors of `forward` wait in the outputs. **Gradient** that of
    `CustomOp.backward`. **Source** MXNet `nd.Custom`, which takes no inputs by name.
    """
    out = kwargs.pop("out", None)
    op, operands, how = called(data, op_type, kwargs)
    if any(isinstance(operand, Tensor) and not isinstance(operand, NDArray) for operand in operands):
        return apply(op, *operands, **how, out=out)
    context = common_context(op, operands)
    outputs = op.run(operands, context)
    if out is not None:
        for target, output in zip(targets_of(op, out, [each.spec for each in outputs], context), outputs):
            assert target is not None
            target[:] = output  # type: ignore[index]  # it is an NDArray
        return out
    return outputs[0] if len(outputs) == 1 else outputs


def common_context(op: UserDefined, operands: Sequence[Any]) -> Context:
    """The device on which all operands are. Raises DeviceError if they differ, ArgumentError for what is no NDArray."""
    context = None
    for position, operand in enumerate(operands):
        if operand is None:
            raise ArgumentError(f"Custom {op.op_type}: input {op.inputs[position]!r} is missing; it takes {', '.join(op.inputs)}")
        if not isinstance(operand, NDArray):
            wrong_operand(op, operands, position)
        context = context or operand.context
        if operand.context is not context and not (operand.context.host and context.host):
            raise DeviceError(
                f"Custom {op.op_type}: operands are on {context} and {operand.context}; copy one with as_in_context()"
            )
    return context or current_context()
