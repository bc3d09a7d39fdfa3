"""Loops and branches in graphs: `foreach`, `while_loop`, `cond` on Symbols.

The Python function of a step is run once, with new variables in the places of what changes from step to step. What it makes in doing so
is *cut* out of the graph and becomes a subgraph of one node (control_flow.py); where it used something from outside - a weight, or a
value that was computed before - the node gets that as a further input. Nodes made by the function are told by the attribute
`__subgraph_name__`, which files keep. Book: chapter 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..attribute import AttrScope
from ..base import ArgumentError, shown
from ..nd.control_flow import iterations
from ..nd.nesting import Format, StructureError, called, flatten, pair, regroup
from ..ops.casting import identity
from .composite import Subgraph
from .control_flow import Cond, Foreach, WhileLoop
from .creation import var
from .graph import Entry, Node, apply_node, topological_order
from .symbol import Symbol

__all__ = ["cond", "foreach", "while_loop"]

MARK = "__subgraph_name__"


# ---- from a function to a subgraph


class Trace:
    """A function that is being traced: `with` it, nodes get its mark.

    `heads` are what the function gives. `cut` makes the subgraph, and says which entry of the graph around each variable stands for.
    """

    def __init__(self, name: str) -> None:
        around = AttrScope.current.get(None).get(MARK)
        stem = f"{around}${name}" if around else name
        number = AttrScope._subgraph_names[stem]
        AttrScope._subgraph_names[stem] = number + 1
        self.mark = f"{stem}{number}"
        self.heads: list[Symbol] = []
        self._scope = AttrScope(**{MARK: self.mark})

    def __enter__(self) -> Trace:
        self._scope.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._scope.__exit__(*exc)

    def variables(self, symbols: Sequence[Symbol], taken: Iterable[Symbol] = ()) -> list[Symbol]:
        """New variables that stand for `symbols` in a step, named after them."""
        names = {each.name for each in taken}
        made = []
        for symbol in symbols:
            node, index = symbol.entries[0]
            name = stem = f"{node.name}-{index}"
            count = 0
            while name in names:  # several inputs are the same: they need several names
                count += 1
                name = f"{stem}-{count}"
            names.add(name)
            made.append(var(name))
        return made

    def is_own(self, node: Node) -> bool:
        return node.attrs.get(MARK) == self.mark

    def add_heads(self, outputs: Sequence[Symbol], states: Sequence[Symbol] = (), apart: bool = False) -> None:
        """Add what the function gave. A variable, and what was made elsewhere, is copied; with `apart` a state that is an output, too."""
        together = [entry for symbol in (*outputs, *states) for entry in symbol.entries]
        inputs = {node.name for node in topological_order(together) if node.op is None}
        names = {symbol.name for symbol in outputs} if apart else set()
        for number, symbol in enumerate((*outputs, *states)):
            is_twice = number >= len(outputs) and symbol.name in names
            copy = symbol.name in inputs or is_twice or not self.is_own(symbol.entries[0][0])
            self.heads.append(identity(symbol) if copy else symbol)

    def unused(self, symbols: Sequence[Symbol]) -> list[Symbol]:
        """Those of the variables that no head depends on."""
        used = set(topological_order([each.entries[0] for each in self.heads]))
        return [symbol for symbol in symbols if symbol.entries[0][0] not in used]

    def cut(self, variables: Sequence[Symbol]) -> tuple[Subgraph, list[int | Entry]]:
        """The subgraph; and for each of its variables the number of that among `variables`, or the entry outside, that it stands for."""
        numbers = {symbol.entries[0][0]: number for number, symbol in enumerate(variables)}
        fresh: dict[Node, Node] = {}
        outside: dict[Entry, Node] = {}

        def inner(entry: Entry | None) -> Entry | None:
            if entry is None or self.is_own(entry[0]):
                return None if entry is None else (fresh[entry[0]], entry[1])
            if entry not in outside:
                outside[entry] = Node(None, entry[0].output_name(entry[1]), {})
                outside[entry].number = entry[0].number
            return outside[entry], 0

        heads = [each.entries[0] for each in self.heads]
        for node in filter(self.is_own, topological_order(heads)):
            fresh[node] = node.over([inner(entry) for entry in node.inputs])
            fresh[node].number = node.number  # the order in which they run stays that of the function
        graph = Subgraph([(fresh[node], index) for node, index in heads])
        sources: dict[Node, int | Entry] = {fresh[node]: numbers.get(node, (node, 0)) for node in fresh if node.op is None}
        sources.update((node, entry) for entry, node in outside.items())
        return graph, [sources[node] for node in graph.variables]


class Inputs:
    """The inputs of a node in the order in which its subgraphs first ask for them; each is there once."""

    def __init__(self, changing: Sequence[Symbol]) -> None:
        self.changing = changing  # what the numbers in `Trace.cut` mean
        self.places: dict[int | Entry, int] = {}

    def place(self, sources: Iterable[int | Entry]) -> tuple[int, ...]:
        return tuple([self.places.setdefault(source, len(self.places)) for source in sources])

    @property
    def entries(self) -> list[Entry]:
        return [self.changing[source].entries[0] if isinstance(source, int) else source for source in self.places]


def flat_symbols(value: Any, what: str) -> tuple[list[Symbol], Format]:
    """The Symbols of one output in `value`, and how it is built; a Symbol of several outputs counts as a list of them."""

    def singles(value: Any) -> Any:
        if isinstance(value, Symbol):
            return list(value) if len(value.entries) > 1 else value
        return [singles(each) for each in value] if isinstance(value, (list, tuple)) else value

    return flatten(singles(value), Symbol, what)


def outputs_of(node: Node) -> list[Symbol]:
    return [Symbol([entry]) for entry in node.outputs]


# ---- what users call


def foreach(body: Callable[..., Any], data: Any, init_states: Any, name: str = "foreach") -> tuple[Any, Any]:
    """Run `outputs, states = body(data[i], states)` for i = 0, 1, ...: the outputs of all steps, stacked, and the last states.

    body is called once, with Symbols for a step; the graph has one node for the loop, which serves data of all lengths.

    **Shapes** data (T, ...), or a (nested) list of such; body gets (...) of it, (1,) where data is (T,). An output (...) of body becomes
    (T, ...); states keep their shapes. **Args** `init_states`: the states of the first step, a Symbol or a (nested) list. `name`: of the
    subgraph. **Returns** a pair of Symbols, or lists built as what body returns. **Raises** AssertionError for anything but Symbols and
    lists of them, or if body does not use a state or returns states of another structure. **Gradient** that of the steps. **Source** MXNet
    `contrib.foreach`, which refuses a body that does not use all data, too.

    >>> x, start, w = mx.sym.var("x"), mx.sym.var("start"), mx.sym.var("w")
    >>> sums, last = mx.sym.contrib.foreach(lambda row, total: (row * w, total + row), x, start)
    >>> last.eval(x=mx.nd.array([[1, 2], [3, 4]]), start=mx.nd.zeros((2,)), w=mx.nd.ones((2,)))[0].asnumpy().tolist()
    [4.0, 6.0]
    """
    rows, data_form = flat_symbols(data, "foreach: data")
    states, state_form = flat_symbols(init_states, "foreach: init_states")
    if not rows:
        raise StructureError("foreach: data is empty, so nothing tells how often to run")
    with Trace(name) as trace:
        inner_rows = trace.variables(rows)
        inner_states = trace.variables(states, inner_rows)
        result = called("foreach: body", body, regroup(inner_rows, data_form), regroup(inner_states, state_form))
        given, following = pair("foreach: body", result)
        outputs, form = flat_symbols(given, "foreach: the outputs of body")
        next_states, next_form = flat_symbols(following, "foreach: the states of body")
        if next_form != state_form:
            raise StructureError("foreach: body returns states of another structure than it got")
        if not outputs and not next_states:
            raise StructureError("foreach: body returns neither outputs nor states, so there is nothing to compute")
        inner = [*inner_rows, *inner_states]
        trace.add_heads(outputs, next_states, apart=True)
        idle = [each.name for each in trace.unused(inner_states)]
        if idle:
            raise StructureError(
                f"foreach: the state arrays have to be used in the loop body, {', '.join(map(str, idle))} is not; leave it out, and "
                "return what the last step gives as an output"
            )
        spare = [identity(each) for each in trace.unused(inner_rows)]  # a loop reads all its inputs: outputs that nobody sees
        trace.heads[len(outputs) : len(outputs)] = spare
    graph, sources = trace.cut(inner)
    locations = {source: place for place, source in enumerate(sources)}
    free = [source for source in sources if not isinstance(source, int)]
    op = Foreach(
        num_args=len(sources) + 1, count=len(trace.heads), num_out_data=len(outputs) + len(spare),
        in_state_locs=tuple([locations[number] for number in range(len(rows), len(inner))]),
        in_data_locs=tuple([locations[number] for number in range(len(rows))]),
        remain_locs=tuple([locations[source] for source in free]), subgraphs=(graph,),
    )  # fmt: skip
    found = outputs_of(apply_node(op, [*(each.entries[0] for each in [*rows, *states]), *free]))
    return regroup(found, form), regroup(found[op.num_out_data :], state_form)


def while_loop(
    cond: Callable[..., Any], func: Callable[..., Any], loop_vars: Any, max_iterations: Any = None, name: str = "while_loop"
) -> tuple[Any, Any]:
    """Run `outputs, loop_vars = func(*loop_vars)` while `cond(*loop_vars)` holds, at most `max_iterations` times.

    cond and func are called once, with Symbols for a step; the graph has one node for the loop.

    **Args** `loop_vars`: a Symbol or a (nested) list; cond and func get its elements as arguments. `cond` returns a Symbol of one element,
    whose value each step waits for. `name`: of the subgraphs.
    **Returns** the outputs of all steps, stacked and filled up with zeros to `max_iterations` rows, and the last loop_vars.
    **Raises** ValueError without max_iterations or loop_vars, if cond returns no Symbol, or func another number of loop_vars.
    **Gradient** that of the steps. **Source** MXNet `contrib.while_loop`, where the rows after the last step are not initialized, and which
    refuses a func that does not use all loop_vars.

    >>> i, x = mx.sym.var("i"), mx.sym.var("x")
    >>> rows, (_, last) = mx.sym.contrib.while_loop(lambda i, x: i < 3, lambda i, x: (x, [i + 1, x * 2]), [i, x], max_iterations=4)
    >>> rows.eval(i=mx.nd.array([0]), x=mx.nd.array([1]))[0].asnumpy().tolist()
    [[1.0], [2.0], [4.0], [0.0]]
    """
    limit = iterations(max_iterations)
    if limit == 0:
        raise ArgumentError("while_loop: max_iterations is 0, wants 1 or more")
    values, form = flat_symbols(loop_vars, "while_loop: loop_vars")
    if not values:
        raise ArgumentError("while_loop: loop_vars should contain at least one element")

    def arguments(inner: Sequence[Symbol]) -> list[Any]:
        return list(inner) if form == 0 else regroup(inner, form)

    inputs = Inputs(values)
    with Trace(f"{name}_cond") as trace:
        inner = trace.variables(values)
        condition = called("while_loop: cond", cond, *arguments(inner))
        if not isinstance(condition, Symbol) or len(condition.entries) != 1:
            raise ArgumentError(f"while_loop: cond must return a Symbol of one output, got {shown(condition)}")
        trace.add_heads([condition])
    condition_graph, sources = trace.cut(inner)
    condition_places = inputs.place(sources)
    with Trace(f"{name}_func") as trace:
        inner = trace.variables(values)
        given, following = pair("while_loop: func", called("while_loop: func", func, *arguments(inner)))
        outputs, out_form = flat_symbols([] if given is None else given, "while_loop: the outputs of func")
        next_values, _ = flat_symbols([] if following is None else following, "while_loop: the loop_vars of func")
        if len(next_values) != len(values):
            raise ArgumentError(
                f"while_loop: func returns {len(next_values)} loop_vars, it got {len(values)}; their number must stay the same"
            )
        trace.add_heads(outputs, next_values)
        spare = [identity(each) for each in trace.unused(inner)]  # a loop reads all its variables: outputs that nobody sees
        trace.heads[len(outputs) : len(outputs)] = spare
    step_graph, sources = trace.cut(inner)
    step_places = inputs.place(sources)
    op = WhileLoop(
        num_args=len(inputs.places) + 2, count=len(trace.heads), num_out_data=len(outputs) + len(spare), max_iterations=limit,
        cond_input_locs=condition_places, func_input_locs=step_places,
        func_var_locs=tuple([sources.index(number) for number in range(len(values))]), subgraphs=(condition_graph, step_graph),
    )  # fmt: skip
    found = outputs_of(apply_node(op, inputs.entries))
    return regroup(found, out_form), regroup(found[op.num_out_data :], form)


def cond(pred: Any, then_func: Callable[[], Any], else_func: Callable[[], Any], name: str = "cond") -> Any:
    """`then_func()` if `pred` holds, else `else_func()`. Both are called for their graphs; the graph runs one of them.

    **Args** `pred`: a Symbol of one element, whose value is waited for. `name`: of the subgraphs. **Returns** a Symbol, or a list built as
    what then_func returns. **Raises** ValueError if the functions give different numbers of Symbols, AssertionError for anything else.
    **Gradient** that of the branch that ran; zero for what only the other one uses. **Source** MXNet `contrib.cond`.

    >>> x = mx.sym.var("x")
    >>> y = mx.sym.contrib.cond(x > 2, lambda: x * 10, lambda: x + 1)
    >>> [y.eval(x=mx.nd.array([value]))[0].asnumpy().tolist() for value in (1, 3)]
    [[2.0], [30.0]]
    """
    inputs = Inputs([])
    graphs: list[Subgraph] = []
    places: list[tuple[int, ...]] = []
    forms: list[Format] = []
    for part, function in (("pred", lambda: pred), ("then", then_func), ("else", else_func)):
        with Trace(f"{name}_{part}") as trace:
            result = called(f"cond: {part}_func", function)
            outputs, form = flat_symbols(result, "cond: pred" if part == "pred" else f"cond: what {part}_func returns")
            if part == "pred" and len(outputs) != 1:
                raise ArgumentError(f"cond: pred should always be a single output, it has {len(outputs)}")
            if not outputs:
                raise StructureError(f"cond: {part}_func returns nothing")
            trace.add_heads(outputs)
        graph, sources = trace.cut([])
        graphs.append(graph)
        places.append(inputs.place(sources))
        forms.append(form)
    _, then_count, else_count = (len(graph.heads) for graph in graphs)
    if then_count != else_count:
        raise ArgumentError(f"cond: then_func gives {then_count} outputs and else_func {else_count}; they must be equally many")
    op = Cond(
        num_args=len(inputs.places) + 3, count=then_count, cond_input_locs=places[0], then_input_locs=places[1], else_input_locs=places[2],
        subgraphs=tuple(graphs),
    )  # fmt: skip
    return regroup(outputs_of(apply_node(op, inputs.entries)), forms[1])
