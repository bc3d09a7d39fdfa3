"""The backend ONEDNN: inference of networks of convolutions, as few calls of oneDNN as there are layers.

Programs use oneDNN's kernels anyway (minimx/kernels). Here a part of the graph is known to run for inference only, with parameters that
stay, so that more can be done beforehand: normalizations go into the filters, filters into the layout that the library likes best, once
for as long as nobody changes them (`Prepared`). And a convolution adds what is to be added to its results, and applies the activation,
before it writes them: these are its *post-ops*. Images lie with the channels last from the first convolution to the last.

MXNet calls the library by its older name, MKLDNN, which is a backend here, too. Book: chapter 13.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import kernels, storage
from ...base import MXNetError
from ...device import Context
from ...kernels import library
from ...kernels.onednn.convolution import layer
from ...kernels.onednn.primitive import Eltwise, PostOps, Routine, Sum
from ...op import Op, Spec
from ...ops.activation import Activate, Relu
from ...ops.binary import BroadcastAdd, ElementwiseAdd
from ...ops.conv import ConvolutionLayer
from ...ops.nn import LeakyReLULayer
from ...ops.unary import Clip
from ..composite import Subgraph
from ..graph import Entry, Node
from ..passes import PASSES
from ..passes.constant import Constant
from ..passes.memory import ALIGNMENT, Buffer, Where, arrange
from ..passes.typed import TypedGraph, operator
from .backend import Backend, Compiled, register
from .prepared import Prepared

TAKEN = frozenset(
    ("Convolution", "Convolution_v1", "FullyConnected", "BatchNorm", "BatchNormWithReLU", "Pooling", "Activation", "LeakyReLU", "relu",
     "sigmoid", "tanh", "clip", "softmax", "elemwise_add", "broadcast_add", "add_n", "elemwise_mul", "broadcast_mul", "_plus_scalar",
     "_mul_scalar", "Concat", "Flatten", "Reshape", "Dropout", "_copy")
)  # fmt: skip
WORTH = ("Convolution", "Convolution_v1", "FullyConnected")
ACTIVATIONS = {"relu": Eltwise(32), "tanh": Eltwise(33), "sigmoid": Eltwise(41), "softrelu": Eltwise(39, 1.0)}
RECTIFIERS = {"leaky": 32, "elu": 34}
Values = list[Any]  # arrays by the numbers of values; None before they are made, and after their last use
Step = Callable[[Values], None]


@register
class OneDNN(Backend):
    """oneDNN for what networks of convolutions are made of. Its rectifiers take NaN for 0. **Source** MXNet's backend of that name."""

    name = "ONEDNN"

    def takes(self, node: Node) -> bool:
        return node.op is not None and node.op.name in TAKEN

    def accepts(self, graph: Subgraph) -> bool:
        return any(node.op is not None and node.op.name in WORTH for node in graph.order)

    def require(self) -> None:
        if library.find() is None:
            raise MXNetError(f"backend {self.name}: oneDNN is not installed; pip install minimx[fast]")

    def compile(self, graph: TypedGraph, context: Context, options: Any) -> Compiled | None:
        if graph.on_gpu or not kernels.found() or any(graph.specs[head].dtype.char != "f" for head in graph.heads):
            return None
        for apply in PASSES.values():
            graph = apply(graph)
        plans: dict[int, Plan] = {}  # code is generated for a number of threads

        def run(*arrays: Any) -> Sequence[Any]:
            number = kernels.threads.share(kernels.threads.WORTH_SHARING)
            plan = plans.get(number)
            if plan is None:
                with library.threads(number):
                    plan = plans[number] = Plan(graph, context)
            return plan(arrays)

        return run


@register
class MKLDNN(OneDNN):
    """The same by its older name."""

    name = "MKLDNN"


def epilogue(op: Op) -> Eltwise | None:
    """What a convolution can apply to its results for an elementwise operator; None if it cannot."""
    if isinstance(op, Relu):
        return ACTIVATIONS["relu"]
    if isinstance(op, Activate):
        return ACTIVATIONS.get(op.act_type)
    if isinstance(op, LeakyReLULayer) and op.act_type in RECTIFIERS:
        return Eltwise(RECTIFIERS[op.act_type], op.slope)
    if isinstance(op, Clip):
        return Eltwise(46, op.a_min, op.a_max)
    return None


class Chain:
    """A convolution and the operators behind it that it can do as well."""

    def __init__(self, graph: TypedGraph, node: Node, readers: dict[Entry, list[Node]], used: set[Node]) -> None:
        self.node = node
        self.nodes = [node]
        self.post: PostOps = ()
        self.added: Entry | None = None  # what is added to the results
        entry: Entry = (node, 0)
        while graph.uses[entry] == 1 and len(readers.get(entry, ())) == 1:
            reader = readers[entry][0]
            op = operator(reader)
            function = epilogue(op)
            if function is None:
                if reader in used or self.added is not None or not isinstance(op, (ElementwiseAdd, BroadcastAdd)):
                    break
                other = next((each for each in reader.inputs if each != entry), None)
                if other is None or graph.specs[other] is not graph.specs[entry]:
                    break
                self.added, function = other, None
            self.post = (*self.post, Sum() if function is None else function)
            self.nodes.append(reader)
            entry = (reader, 0)
        used.update(self.nodes)
        self.result = entry


class Plan:
    """The steps of a part for some number of threads: what is made of parameters beforehand, and what runs each time."""

    def __init__(self, graph: TypedGraph, context: Context) -> None:
        self.graph, self.context = graph, context
        self.number: dict[Entry, int] = {}  # of values
        for node in graph.variables:
            self.number[node, 0] = len(self.number)
        self.parameters = [place for place, node in enumerate(graph.variables) if node in graph.parameters]
        self.early: list[tuple[Step, list[int]]] = []  # of parameters alone, and the numbers of what each reads
        self.steps: list[Step] = []
        self.fixed = {(graph.variables[place], 0) for place in self.parameters}
        self.kept: set[int] = set()  # numbers of values that the early steps make, and a run reads
        self.read: set[int] = set()  # numbers of values that the steps of a run read
        self.buffers: dict[int, Buffer] = {}  # places of values, by number, in an arena that stays from run to run
        self.last: dict[Entry, int] = {}  # the position of the last reader, a chain's at its end
        self.idle: list[dict[int, Any]] = []  # views of arenas that no run uses now, by the numbers of values
        readers: dict[Entry, list[Node]] = {}
        for node in graph.order:
            for entry in dict.fromkeys(node.inputs):
                if entry is not None:
                    readers.setdefault(entry, []).append(node)
        self._write(readers)
        self.arena = arrange(list(dict.fromkeys(self.buffers.values())))
        # Heads, and whether each is somebody else's memory, too, so that it must be copied.
        self.heads = [(self.number[entry], entry in self.fixed or not self._is_own(entry)) for entry in graph.heads]
        self.kept &= self.read.union(number for number, _ in self.heads)
        self.prepared = Prepared(self._prepare)

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        values: Values = [None] * len(self.number)
        values[: len(arrays)] = arrays
        for place, value in self.prepared(*(arrays[place] for place in self.parameters)):
            values[place] = value
        try:
            memory = self.idle.pop()
        except IndexError:
            memory = self._memory()
        for number, view in memory.items():
            values[number] = view
        for step in self.steps:
            step(values)
        self.idle.append(memory)
        return [values[place].copy() if shared else values[place] for place, shared in self.heads]

    def _memory(self) -> dict[int, Any]:
        """Views of a new arena."""
        arena = storage.empty(Spec.of((self.arena + ALIGNMENT,), "uint8"), self.context)
        arena = arena[-arena.ctypes.data % ALIGNMENT :]
        return {
            number: arena[buffer.offset : buffer.offset + buffer.spec.nbytes].view(buffer.spec.dtype).reshape(buffer.spec.shape)
            for number, buffer in self.buffers.items()
        }

    def _prepare(self, *arrays: Any) -> list[tuple[int, Any]]:
        """What the early steps make of the parameters, by number."""
        values: Values = [None] * len(self.number)
        for place, array in zip(self.parameters, arrays):
            values[place] = array
        last = {number: place for place, (_, sources) in enumerate(self.early) for number in sources}
        for place, (step, sources) in enumerate(self.early):
            step(values)
            _let_go(values, [number for number in sources if last[number] == place and number not in self.kept])
        return [(place, values[place]) for place in self.kept]

    # ---- writing the steps

    def _write(self, readers: dict[Entry, list[Node]]) -> None:
        graph, used = self.graph, set[Node]()
        chains: dict[Node, Chain] = {}  # by the last operator, where all that it reads is there
        inside: set[Node] = set()
        for node in graph.order:
            if type(operator(node)) is ConvolutionLayer and not self._is_fixed(node):
                chain = Chain(graph, node, readers, used)
                chains[chain.nodes[-1]] = chain
                inside.update(chain.nodes)
        last = self.last
        position = {node: place for place, node in enumerate(graph.order)}
        for chain in chains.values():
            position.update((node, position[chain.nodes[-1]]) for node in chain.nodes)
        for node in graph.order:
            for entry in node.inputs:
                if entry is not None:
                    last[entry] = max(last.get(entry, 0), position[node])
        heads = set(graph.heads)
        for place, node in enumerate(graph.order):
            if node in inside and node not in chains:
                continue
            dying = [entry for entry, end in last.items() if end == place and entry not in heads and entry not in self.fixed]
            if node in chains:
                self._write_chain(chains[node], place, dying)
            else:
                self._write_node(node, place)
            gone = [self.number[entry] for entry in dying if entry in self.number and entry[0].op is not None]
            gone = [number for number in gone if number not in self.buffers]
            if gone:
                self.steps.append(lambda values, gone=tuple(gone): _let_go(values, gone))  # type: ignore[misc]

    def _is_fixed(self, node: Node) -> bool:
        return all(entry is None or entry in self.fixed for entry in node.inputs) and not operator(node).needs_key

    def _new(self, entry: Entry) -> int:
        return self.number.setdefault(entry, len(self.number))

    def _placed(self, entry: Entry, place: int) -> bool:
        """Give a value that a step is to write a place in the arena; False for one that needs memory of its own in each run."""
        if entry in self.graph.heads or not self._is_own(entry):
            return False
        self.buffers[self._new(entry)] = Buffer(Where.ARENA, self.graph.specs[entry], place, self.last.get(entry, place))
        return True

    def _write_node(self, node: Node, place: int) -> None:
        """An operator by its kernel, or by a library's."""
        op = operator(node)
        specs = [None if entry is None else self.graph.specs[entry] for entry in node.inputs]
        kernel: Any = kernels.faster(op, specs, self.context) or op.kernel
        sources = [None if entry is None else self.number[entry] for entry in node.inputs]
        targets = [self._new((node, index)) for index in range(op.num_outputs)]
        spec, context = self.graph.specs[node, 0], self.context
        writes = op.takes_out or (op.kind.value == "elementwise" and op.num_outputs == 1)
        is_early = isinstance(op, Constant) or self._is_fixed(node)
        is_placed = writes and not is_early and self._placed((node, 0), place)

        def step(values: Values) -> None:
            arrays = [None if source is None else values[source] for source in sources]
            how = {}
            if writes:
                how["out"] = values[targets[0]] if is_placed else storage.empty(spec, context)
            made = kernel(np, *arrays, **how)
            for target, value in zip(targets, made if isinstance(made, tuple) else (made,)):
                values[target] = np.ascontiguousarray(value)

        if is_early:
            self.early.append((step, [source for source in sources if source is not None]))
            self.fixed.update((node, index) for index in range(op.num_outputs))
            self.kept.update(targets)
        else:
            self.steps.append(step)
            self.read.update(source for source in sources if source is not None)

    def _write_chain(self, chain: Chain, place: int, dying: list[Entry]) -> None:
        """A convolution with what follows it; its filters are brought into the library's layout, early if they are parameters."""
        node, graph = chain.node, self.graph
        op = operator(node)
        assert isinstance(op, ConvolutionLayer)
        data, weight, bias = (*node.inputs, None)[:3]
        assert data is not None
        assert weight is not None
        specs = graph.specs
        made = layer(op, self.context, specs[data], specs[weight], None if bias is None else specs[bias], chain.post)
        if made is None or specs[data].dtype.char != "f":
            for each in chain.nodes:
                self._write_node(each, place)
            return
        run, reorder = made
        packed = self._packed(node, weight, reorder)
        operands = [self.number[data], packed, *(() if bias is None else (self.number[bias],))]
        target, spec, context = self._new(chain.result), specs[chain.result], self.context
        added = None if chain.added is None else self.number[chain.added]
        in_place = chain.added is not None and chain.added in dying and chain.added != data and self._is_own(chain.added)
        if in_place and added in self.buffers:
            assert added is not None
            is_placed = in_place = self._is_own(chain.result) and chain.result not in graph.heads
            if is_placed:
                buffer = self.buffers[target] = self.buffers[added]
                buffer.last = max(buffer.last, self.last.get(chain.result, place))
        else:
            is_placed = not in_place and self._placed(chain.result, place)

        def step(values: Values) -> None:
            if added is not None and in_place:
                result = values[added]
            else:
                result = values[target] if is_placed else storage.empty(spec, context)
                if added is not None:
                    result[...] = values[added]
            run(*(values[operand] for operand in operands), result)
            values[target] = result

        self.steps.append(step)
        self.read.update(operands if added is None else (*operands, added))

    def _is_own(self, entry: Entry) -> bool:
        """Whether the memory of a value is that of no other: not an input's, and not seen in another shape."""
        views = (node for node in self.graph.order if entry in node.inputs and operator(node).aliases)
        return entry[0].op is not None and not entry[0].op.aliases and next(views, None) is None

    def _packed(self, node: Node, weight: Entry, reorder: Routine) -> int:
        """The number of the filters in the library's layout."""
        source, target = self.number[weight], self._new((node, -1))
        nbytes = reorder.values[1].layout.nbytes

        def step(values: Values) -> None:
            packed = storage.empty(Spec.of((nbytes,), "uint8"), self.context)
            reorder(values[source], packed)
            values[target] = packed

        if weight in self.fixed:
            self.early.append((step, [source]))
            self.kept.add(target)
        else:
            self.steps.append(step)
            self.read.add(source)
        return target


def _let_go(values: Values, places: Sequence[int]) -> None:
    """Let the memory of values that nobody reads any more serve the next."""
    for place in places:
        values[place] = None
