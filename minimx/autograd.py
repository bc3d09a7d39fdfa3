"""Automatic differentiation: the tape that `record()` writes, and `backward`, which reads it in reverse.

While a thread records, each operation on a tracked array leaves a Node: which operator ran, on what, and where its inputs
came from. `backward` walks the nodes in reverse topological order, asks each for the gradients of its inputs (the
operator's `vjp`, which is itself written with public operators), and adds them up. With `create_graph` those operations are
recorded too, so that gradients have gradients.

A tracked array is one that `attach_grad` made a leaf, or that was computed from one while recording. Arrays hold their
node; a node holds the nodes of its inputs and what its `vjp` looks at, never an output array with its node, so that there
are no reference cycles and memory is freed at once. Book: chapter 1.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from .base import ArgumentError, DeviceError, MXNetError, ShapeError, UnknownNameError, shown
from .engine.front import block_shortcuts
from .engine.var import View
from .fields import converted
from .op import Op

__all__ = [
    "Function", "backward", "get_symbol", "grad", "is_recording", "is_training", "mark_variables", "pause", "predict_mode", "record",
    "set_recording", "set_training", "train_mode",
]  # fmt: skip


class _State(threading.local):
    def __init__(self) -> None:
        self.recording = False
        self.training = False
        self.asked: set[str] | None = None  # while a graph is traced: which of these two the traced code has asked for


state = _State()  # of the calling thread

NOT_IN_GRAPH = (
    "cannot differentiate: the array is not in a computational graph. Call attach_grad() on the inputs and compute "
    "inside autograd.record(); after backward() the graph is gone unless retain_graph=True."
)
IN_PLACE = (
    "Inplace operations (+=, -=, x[:]=, etc) are not supported when recording with autograd.record(): {what}. "
    "Write y = x + 1 rather than x += 1, or move the write out of record() or into autograd.pause()."
)


class Node:
    """One recorded operation, or a leaf."""

    __slots__ = ("parents", "num_outputs", "freed")

    def __init__(self, parents: list[tuple[Node, int] | None], num_outputs: int) -> None:
        self.parents = parents  # for each input: the node that made it and which of its outputs it is
        self.num_outputs = num_outputs
        self.freed = False

    def vjp(self, grads: list[Any]) -> Sequence[Any]:
        """Gradients of the inputs from those of the outputs (None: zero)."""
        raise NotImplementedError

    def seed(self, head: Any) -> Any:
        """Ones, with which backward begins at `head`, an output of this node. What they are handed to may write into them."""
        return head.ones_like()

    def free(self) -> None:
        """Forget everything that backward needed."""
        self.parents = []
        self.freed = True


def place(array: Any) -> tuple[Node, int] | None:
    """Where an array is on the tape: its node and which of the outputs it is. None if it is not tracked, or only by a graph that is gone.

    So what backward has passed through is a constant for all that is computed from it later: a state that is carried from batch to
    batch, for instance.
    """
    node = array.node
    return None if node is None or node.freed else (node, array.index)


class Leaf(Node):
    """An array whose gradient is wanted: it holds the buffer that receives it."""

    __slots__ = ("grad", "req", "fresh")

    def __init__(self, grad: Any, req: str) -> None:
        super().__init__([], 1)
        self.grad = grad
        self.req = req
        self.fresh = False  # backward wrote it since somebody last cleared this

    def free(self) -> None:
        """Leaves stay."""


class OpNode(Node):
    """An operator that ran, with the values that its `vjp` looks at."""

    __slots__ = ("op", "inputs", "outputs")

    def __init__(self, op: Op, parents: list[tuple[Node, int] | None], inputs: list[Any], outputs: list[Any]) -> None:
        self.parents = parents  # one is made for every operation: Node.__init__ is written out here
        self.num_outputs = len(outputs)
        self.freed = False
        self.op = op
        self.inputs = inputs
        self.outputs = outputs

    def vjp(self, grads: list[Any]) -> Sequence[Any]:
        outputs = self.outputs
        if state.recording:
            # An output is a function of the inputs: its derivative goes through this node again. Only for the call, or it were a cycle.
            outputs = [output.detach() for output in outputs]
            for index, output in enumerate(outputs):
                output.node, output.index = self, index
        if len(outputs) == 1:
            return self.op.vjp(grads[0], outputs[0], *self.inputs)
        return self.op.vjp(tuple(grads), tuple(outputs), *self.inputs)

    def free(self) -> None:
        super().free()
        self.inputs, self.outputs = [], []


# ---- scopes


class _Scope:
    """Sets recording and training for a `with` block; None leaves a flag as it is. Can be used again and nested."""

    __slots__ = ("recording", "training", "_before")

    def __init__(self, recording: bool | None, training: bool | None) -> None:
        self.recording = recording
        self.training = training
        self._before: list[tuple[bool, bool]] = []

    def __enter__(self) -> None:
        self._before.append((state.recording, state.training))
        if self.recording is not None:
            set_recording(self.recording)
        if self.training is not None:
            state.training = self.training

    def __exit__(self, *exc: object) -> None:
        recording, state.training = self._before.pop()
        set_recording(recording)


def record(train_mode: bool = True) -> _Scope:
    """A scope in which operations on tracked arrays are recorded for `backward`.

    **Args** `train_mode`: whether layers such as Dropout behave as in training. **Source** MXNet `autograd.record`.
    """
    return _Scope(True, train_mode)


def pause(train_mode: bool = False) -> _Scope:
    """A scope inside `record` in which nothing is recorded."""
    return _Scope(False, train_mode)


def train_mode() -> _Scope:
    """A scope in which layers behave as in training, recorded or not."""
    return _Scope(None, True)


def predict_mode() -> _Scope:
    """A scope in which layers behave as in inference, recorded or not."""
    return _Scope(None, False)


def is_recording() -> bool:
    """Whether the calling thread records."""
    if state.asked is not None:
        state.asked.add("recording")
    return state.recording


def is_training() -> bool:
    """Whether layers behave as in training, in the calling thread."""
    if state.asked is not None:
        state.asked.add("training")
    return state.training


def set_recording(is_recording: bool) -> bool:
    """Switch recording on or off for the calling thread; what it was."""
    before = state.recording
    if type(is_recording) is not bool:
        is_recording = converted("set_recording", "is_recording", "bool", is_recording)
    state.recording = is_recording
    if before != state.recording:
        block_shortcuts(1 if state.recording else -1)
    return before


def set_training(train_mode: bool) -> bool:
    """Switch training behaviour on or off for the calling thread; what it was."""
    before, state.training = state.training, converted("set_training", "train_mode", "bool", train_mode)
    return before


# ---- leaves

GRAD_REQS = {"null": 0, "write": 1, "add": 3}


def check_req(req: Any) -> str:
    """`req` itself. Raises UnknownNameError (a KeyError, as in MXNet) if it is no way to treat gradients."""
    if not isinstance(req, str) or req not in GRAD_REQS:
        raise UnknownNameError(f"grad_req is {shown(req)}; choose one of 'write', 'add' and 'null'")
    return req


def require_arrays(what: str, arrays: Sequence[Any]) -> None:
    """Raise ArgumentError unless all of `arrays` are NDArrays."""
    for array in arrays:
        if not isinstance(array, View):
            raise ArgumentError(f"{what} must be NDArrays, got {shown(array)}")


def mark_variables(variables: Any, gradients: Any, grad_reqs: str | Sequence[str] = "write") -> None:
    """Make `variables` leaves whose gradients go into the arrays `gradients`.

    **Args** `grad_reqs`: "write" (each backward overwrites), "add" (backward adds) or "null" (no gradient), one for all or
    one each.
    **Raises** UnknownNameError (a KeyError) for another word; ArgumentError if the lists differ in length; ShapeError if a
    gradient has not its variable's shape.
    """
    variables = [variables] if not isinstance(variables, (list, tuple)) else variables
    gradients = [gradients] if not isinstance(gradients, (list, tuple)) else gradients
    reqs: list[Any] = list(grad_reqs) if isinstance(grad_reqs, (list, tuple)) else [grad_reqs] * len(variables)
    if not len(variables) == len(gradients) == len(reqs):
        raise ArgumentError(
            f"mark_variables: {len(variables)} variables, {len(gradients)} gradients and {len(reqs)} grad_reqs; one each is wanted"
        )
    require_arrays("mark_variables: variables", variables)
    require_arrays("mark_variables: gradients", [each for each, req in zip(gradients, reqs) if check_req(req) != "null"])
    for position, (variable, gradient, req) in enumerate(zip(variables, gradients, reqs)):
        if req != "null" and gradient.shape != variable.shape:
            raise ShapeError(
                f"mark_variables: variable {position} has shape {variable.shape}, its gradient {gradient.shape}; they must be equal"
            )
    for variable, gradient, req in zip(variables, gradients, reqs):
        variable.node, variable.index = Leaf(None if req == "null" else gradient, req), 0


# ---- backward


def topological_order(heads: Sequence[Node]) -> list[Node]:
    """All nodes that `heads` depend on, each after its parents."""
    order: list[Node] = []
    seen: set[Node] = set()
    for head in heads:
        stack: list[tuple[Node, int]] = [(head, 0)]
        if head in seen:
            continue
        seen.add(head)
        while stack:
            node, position = stack.pop()
            while position < len(node.parents):
                parent = node.parents[position]
                position += 1
                if parent is None or parent[0] in seen:
                    continue
                seen.add(parent[0])
                if not parent[0].parents:  # a leaf
                    order.append(parent[0])
                    continue
                stack.append((node, position))
                stack.append((parent[0], 0))
                break
            else:
                order.append(node)
    return order


def backward(heads: Any, head_grads: Any = None, retain_graph: bool = False, train_mode: bool = True) -> None:
    """Differentiate `heads` with respect to every leaf they were computed from; results go to the leaves' `.grad`.

    **Args** `heads`: array or list of arrays. `head_grads`: gradients to start from, in any dtype, None for ones. `retain_graph`: keep
    the graph for another backward. `train_mode`: the mode in which gradients are computed.
    **Raises** AssertionError if `heads` and `head_grads` differ in length; MXNetError if a head is not in a graph.
    **Source** MXNet `autograd.backward`.
    """
    listed, grads = _heads_and_grads(heads, head_grads)
    leaves = _differentiate(listed, grads, None, retain_graph, False, train_mode)
    if not leaves:
        raise MXNetError(NOT_IN_GRAPH)
    with _Scope(False, train_mode):
        for leaf, gradient in leaves:
            if leaf.req == "write":
                if gradient is None:
                    leaf.grad[:] = 0
                else:
                    leaf.grad._become(gradient)
            elif leaf.req == "add" and gradient is not None:
                leaf.grad += gradient
            leaf.fresh = True


def grad(
    heads: Any,
    variables: Any,
    head_grads: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    train_mode: bool = True,
) -> Any:
    """Gradients of `heads` with respect to `variables`, as new arrays: a list, or one array if `variables` is one.

    **Args** `create_graph`: record the computation of the gradients, so that they can be differentiated; `retain_graph`
    defaults to it.
    **Raises** MXNetError if a variable has no influence on the heads; ArgumentError for no variables. **Source** MXNet
    `autograd.grad`.
    """
    listed, grads = _heads_and_grads(heads, head_grads)
    single = not isinstance(variables, (list, tuple))
    wanted = [variables] if single else list(variables)
    if not wanted:
        raise ArgumentError("autograd.grad: the list of variables is empty")
    require_arrays("autograd.grad: variables", wanted)
    for variable in wanted:
        if variable.node is None:
            raise MXNetError(f"autograd.grad: a variable {NOT_IN_GRAPH[len('cannot differentiate: the array ') :]}")
    keep = create_graph if retain_graph is None else retain_graph
    found = _differentiate(listed, grads, [(v.node, v.index) for v in wanted], keep, create_graph, train_mode)
    results = []
    for position, ((_, gradient, reached), variable) in enumerate(zip(found, wanted)):
        if not reached:
            raise MXNetError(f"autograd.grad: the heads do not depend on variable {position}, which has no gradient then")
        if gradient is not None:
            gradient.var.unclaimed = False  # the caller has it
        results.append(variable.zeros_like() if gradient is None else gradient)
    return results[0] if single else results


def _heads_and_grads(heads: Any, head_grads: Any) -> tuple[list[Any], list[Any]]:
    listed = list(heads) if isinstance(heads, (list, tuple)) else [heads]
    require_arrays("backward: heads", listed)
    if not listed:
        raise ArgumentError("backward: the list of heads is empty; pass the array to differentiate, such as the loss")
    if head_grads is None:
        return listed, [None] * len(listed)
    grads = list(head_grads) if isinstance(head_grads, (list, tuple)) else [head_grads]
    assert len(listed) == len(grads), f"heads and head_grads must have the same length, got {len(listed)} and {len(grads)}"
    require_arrays("backward: head_grads", [gradient for gradient in grads if gradient is not None])
    for head, gradient in zip(listed, grads):
        if gradient is None:
            continue
        gradient.var.unclaimed = False  # the caller has it
        if gradient.shape != head.shape:
            raise ShapeError(f"backward: a head has shape {head.shape}, its gradient {gradient.shape}; they must be equal")
        if gradient.context.lane is not head.context.lane and not (gradient.context.host and head.context.host):
            raise DeviceError(
                f"backward: a head is on {head.context}, its gradient on {gradient.context}; copy it with as_in_context()"
            )
    return listed, grads


def _differentiate(
    heads: list[Any],
    head_grads: list[Any],
    wanted: list[tuple[Node, int]] | None,
    retain_graph: bool,
    create_graph: bool,
    training: bool,
) -> list[Any]:
    """(leaf, gradient) of all leaves that the heads were computed from; or, for the entries `wanted`, (entry, gradient, whether
    the heads were computed from it). A gradient is None if it is zero everywhere."""
    for head in heads:
        if head.node is None or head.node.freed:
            raise MXNetError(NOT_IN_GRAPH)
    order = topological_order([head.node for head in heads])
    if any(node.freed for node in order):
        raise MXNetError(NOT_IN_GRAPH)
    gradients: dict[Node, list[Any]] = {}
    kept = dict.fromkeys(wanted or ())
    with _Scope(create_graph, training):
        for head, start in zip(heads, head_grads):
            if start is None:
                start = head.node.seed(head) if wanted is None else head.ones_like()
            elif start.dtype is not head.dtype:  # as MXNet's executors do
                start = start.astype(head.dtype)
            _add(gradients, (head.node, head.index), start)
        _walk_back(order, gradients, kept)
    if not retain_graph:
        for node in order:
            node.free()
    if wanted is not None:
        reached = set(order)
        return [(entry, kept[entry], entry[0] in reached) for entry in wanted]
    return [(leaf, gradients[leaf][0] if leaf in gradients else None) for leaf in order if isinstance(leaf, Leaf)]


def _walk_back(order: list[Node], gradients: dict[Node, list[Any]], kept: dict[tuple[Node, int], Any]) -> None:
    """Hand the gradients that the last nodes have to those before them. What arrives at the entries in `kept` is entered there; where
    none are wanted, what arrives at leaves stays in `gradients`."""
    for node in reversed(order):
        own = gradients.pop(node, None)
        if own is None:
            continue
        for index, gradient in enumerate(own):
            if (node, index) in kept:
                kept[node, index] = gradient
        if isinstance(node, Leaf):
            if not kept:
                gradients[node] = own
            continue
        for parent, gradient in zip(node.parents, node.vjp(own)):
            if parent is not None and gradient is not None:
                _add(gradients, parent, gradient)


def _add(gradients: dict[Node, list[Any]], entry: tuple[Node, int], gradient: Any) -> None:
    """Add `gradient` to what has arrived at an output of a node."""
    node, index = entry
    slots = gradients.setdefault(node, [None] * node.num_outputs)
    slots[index] = gradient if slots[index] is None else slots[index] + gradient


# ---- functions with a gradient of their own


class _FunctionNode(Node):
    __slots__ = ("function", "shapes", "zeros")

    def __init__(
        self,
        function: Function,
        parents: list[tuple[Node, int] | None],
        shapes: list[tuple[int, ...]],
        zeros: list[Callable[[], Any]],
    ) -> None:
        super().__init__(parents, len(zeros))
        self.function = function
        self.shapes = shapes  # of the inputs
        self.zeros = zeros  # makes the gradient of an output that nobody used

    def vjp(self, grads: list[Any]) -> Sequence[Any]:
        full = [zeros() if gradient is None else gradient for gradient, zeros in zip(grads, self.zeros)]
        with pause(train_mode=state.training):
            result = self.function.backward(*full)
        listed = list(result) if isinstance(result, (list, tuple)) else [result]
        if len(listed) != len(self.parents):
            raise MXNetError(
                f"{type(self.function).__name__}.backward must return {len(self.parents)} gradients, one for each input of forward; "
                f"got {len(listed)}"
            )
        name = type(self.function).__name__
        for position, (gradient, shape) in enumerate(zip(listed, self.shapes)):
            if gradient is None:
                continue
            require_arrays(f"{name}.backward: its results", [gradient])
            if gradient.shape != shape:
                raise ShapeError(
                    f"{name}.backward: gradient {position} has shape {gradient.shape}, the input {shape}; they must be equal"
                )
        return listed


class Function:
    """A function with a gradient of its own: override `forward` and `backward`, which work on NDArrays and are not recorded.

    An instance is called once; what `backward` needs goes through `save_for_backward` and `saved_tensors`, or attributes.
    **Raises** AssertionError if called twice. **Source** MXNet `autograd.Function`.
    """

    _used = False  # here, for subclasses whose __init__ does not call ours
    saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *args: Any) -> None:
        self.saved_tensors = args

    def forward(self, *inputs: Any) -> Any:
        raise NotImplementedError

    def backward(self, *output_grads: Any) -> Any:
        raise NotImplementedError

    def __call__(self, *inputs: Any) -> Any:
        assert not self._used, "each Function instance can only be called once; make another"
        self._used = True
        before = set_recording(False)
        try:
            result = self.forward(*inputs)
        finally:
            set_recording(before)
        if not before:
            return result
        outputs = list(result) if isinstance(result, (list, tuple)) else [result]
        require_arrays(f"{type(self).__name__}: the inputs", inputs)
        require_arrays(f"{type(self).__name__}.forward: its results", outputs)
        parents = [place(array) for array in inputs]
        if any(parent is not None for parent in parents):
            # An output that is one of the inputs must not lose the input's own place in the graph.
            outputs = [output.detach() for output in outputs]
            node = _FunctionNode(
                self,
                parents,
                [each.shape for each in inputs],
                [output.zeros_like for output in [out.detach() for out in outputs]],
            )
            for index, output in enumerate(outputs):
                output.node, output.index = node, index
        return type(result)(outputs) if isinstance(result, (list, tuple)) else outputs[0]


get_symbol_hook: list[Callable[[Any], Any]] = []


def get_symbol(x: Any) -> Any:
    """The recorded computation of `x` as a Symbol, whose arguments are the graph's leaves. **Source** MXNet `autograd.get_symbol`."""
    require_arrays("autograd.get_symbol: x", [x])
    if not get_symbol_hook:
        raise MXNetError("autograd.get_symbol needs minimx.sym, which enters itself here when it is imported")
    return get_symbol_hook[0](x)
