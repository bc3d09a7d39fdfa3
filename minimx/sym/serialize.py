"""Graphs as text: MXNet 1.9's JSON, written byte for byte as MXNet does, and read from every version since 0.8.

    {"nodes": [{"op", "name", "attrs", "inputs": [[node, output, version], ...]}, ...], "arg_nodes", "node_row_ptr", "heads", "attrs"}

A node of a loop or a branch has "subgraphs", too, which are graphs of the same form without "attrs".
Nodes stand in topological order, variables are the operator "null", attributes are strings in the order of their keys. The version of
an entry says how often operators have written to it: running means have version 1 where BatchNorm takes them. Book: chapter 6.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeVar

from .. import files, formats
from ..base import ArgumentError, FileFormatError, MXNetError, shown
from ..op import NODE_KEYS, Op, input_names
from .composite import Composite
from .conventions import in_node, stored_outputs
from .graph import Entry, Node, made_variable, parsed, topological_order
from .unknown import require_known

VERSION = 10901  # of MXNet, whose format this is
OLDEST = 800  # files of version 0.8 and before do not say their version

V = TypeVar("V")
KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a string"}  # what JSON calls them


# ---- writing


def to_json(heads: Sequence[Entry], remove_amp_cast: bool = True) -> str:
    """The graph of `heads` in MXNet's JSON. Casts that automatic mixed precision put in are left out unless told otherwise."""
    if remove_amp_cast:
        heads = _without_casts(heads)
    return _text({**_graph(heads), "attrs": {"mxnet_version": ["int", VERSION]}}, 0)


def _graph(heads: Sequence[Entry]) -> dict[str, Any]:
    """A graph, or a subgraph, as JSON has it."""
    order = topological_order(heads)
    number = {node: position for position, node in enumerate(order)}
    writes: dict[Entry, int] = {}
    nodes: list[Any] = []
    for node in order:
        for position in node.op.aux if node.op is not None else ():
            entry = node.inputs[position] if position < len(node.inputs) else None
            if entry is not None:
                writes[entry] = writes.get(entry, entry[0].earlier) + 1
        record: dict[str, Any] = {"op": "null" if node.op is None else node.op.name, "name": node.name}
        if node.attrs:
            record["attrs"] = dict(sorted(node.attrs.items()))
        record["inputs"] = [[number[entry[0]], entry[1], writes.get(entry, 0)] for entry in node.inputs if entry is not None]
        if isinstance(node.op, Composite):
            record["subgraphs"] = [_graph(each.heads) for each in node.op.subgraphs]
        nodes.append(record)
    rows = [0]
    for node in order:
        rows.append(rows[-1] + stored_outputs(node.op))
    return {
        "nodes": nodes,
        "arg_nodes": [position for position, node in enumerate(order) if node.op is None],
        "node_row_ptr": rows,
        "heads": [[number[node], index, writes.get((node, index), 0)] for node, index in heads],
    }


def _without_casts(heads: Sequence[Entry]) -> list[Entry]:
    """The graph with each amp_cast and amp_multicast replaced by what it casts; the graph itself where there are none."""
    order = topological_order(heads)
    if not any(node.op is not None and node.op.name in ("amp_cast", "amp_multicast") for node in order):
        return list(heads)
    instead: dict[Entry, Entry] = {}

    def seen_through(entry: Entry) -> Entry:
        return instead.get(entry, entry)

    for node in order:
        if node.op is not None and node.op.name in ("amp_cast", "amp_multicast"):
            for index, entry in enumerate(node.inputs):
                assert entry is not None
                instead[node, index] = seen_through(entry)
        elif any(entry in instead for entry in node.inputs if entry is not None):
            fresh = Node(
                node.op, node.name, node.attrs, [None if entry is None else seen_through(entry) for entry in node.inputs]
            )
            instead.update(((node, index), (fresh, index)) for index in range(stored_outputs(node.op)))
    return [seen_through(entry) for entry in heads]


def _text(value: Any, depth: int) -> str:
    """JSON with the line breaks of MXNet's writer: objects of one member and lists of at most ten lists or numbers stay on a line."""
    if isinstance(value, dict):
        members = [f"{json.dumps(key, ensure_ascii=False)}: {_text(each, depth + 1)}" for key, each in value.items()]
        return _wrapped("{", members, "}", depth, broken=len(members) > 1)
    if isinstance(value, list):
        long = len(value) > 10 or (bool(value) and isinstance(value[0], dict))
        return _wrapped("[", [_text(each, depth + 1) for each in value], "]", depth, broken=long)
    return json.dumps(value, ensure_ascii=False)


def _wrapped(opening: str, parts: list[str], closing: str, depth: int, broken: bool) -> str:
    if not broken:
        return opening + ", ".join(parts) + closing
    margin = "\n" + "  " * (depth + 1)
    return opening + margin + f", {margin}".join(parts) + "\n" + "  " * depth + closing


def save(heads: Sequence[Entry], fname: files.PathLike, remove_amp_cast: bool = True) -> None:
    """Write the JSON to the file `fname`. A crash leaves a file that was there before as it was."""
    files.as_path(fname)
    try:
        contents = to_json(heads, remove_amp_cast).encode()
    except UnicodeEncodeError as error:
        text = error.object[max(error.start - 20, 0) : error.end]
        raise ArgumentError(f"save: a name or attribute, near {shown(text)}, cannot be written as UTF-8; rename it") from None
    files.replace_file(fname, [contents])


# ---- reading: whatever a file says is checked before it is used


def read_file(fname: files.PathLike) -> list[Entry]:
    """The heads of the graph in a file. Raises MissingFileError if it is not there, FileFormatError if it is no graph."""
    path = files.as_path(fname)
    file, _ = files.open_file(path)
    with file:
        data = file.read()
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        told = formats.looks_like(data, own="sym.load")
        raise FileFormatError(f"load: {path} is no text: byte {error.start} is no UTF-8{told}") from None
    return from_json(text, f"load: {path}")


def from_json(text: str, where: str = "load_json") -> list[Entry]:
    """The heads of a graph from MXNet's JSON of any version. Raises FileFormatError for anything else; `where` begins its message."""
    if not isinstance(text, str):
        raise ArgumentError(f"{where}: a string is wanted, got {type(text).__name__}")
    try:
        graph = json.loads(text)
    except (ValueError, RecursionError) as error:
        told = formats.looks_like(text.encode(errors="replace"), own="sym.load")
        raise FileFormatError(f"{where}: this is no JSON: {error}{told}") from None
    try:
        require_known(graph, where)
        return _heads(graph, _version(graph))
    except FileFormatError as error:
        raise FileFormatError(f"{where}: the JSON is no graph of MXNet: {error}") from None
    except RecursionError:
        raise FileFormatError(f"{where}: the JSON is no graph of MXNet: subgraphs are nested too deeply") from None


def _member(record: Any, key: str, kind: type[V], owner: str, default: V | None = None) -> V:
    """What `record`, which `owner` names, has under `key`: of the type `kind`; `default` if it is not there."""
    if not isinstance(record, dict):
        raise FileFormatError(f"{owner} is {shown(record)}, wants an object")
    found = record.get(key, default)
    if not isinstance(found, kind):
        got = f"{key!r} is {shown(found)}" if key in record else f"there is no {key!r}"
        raise FileFormatError(f"{got} in {owner}, wants {KINDS[kind]}")
    return found


def _version(graph: Any) -> int:
    """The version of MXNet that wrote a file."""
    given = _member(_member(graph, "attrs", dict, "the graph", {}), "mxnet_version", list, "'attrs'", ["int", OLDEST])
    if len(given) != 2 or type(given[1]) is not int:
        raise FileFormatError(f"'mxnet_version' is {shown(given)}, wants a pair such as ['int', {VERSION}]")
    return given[1]


def _entry(listed: Any, nodes: Sequence[Node], owner: str) -> Entry:
    """The output that [node, output] or [node, output, version] means, which `owner` reads."""
    if not isinstance(listed, list) or len(listed) not in (2, 3) or any(type(each) is not int for each in listed):
        raise FileFormatError(f"{owner} is {shown(listed)}, wants the numbers [node, output, version]")
    number, index = listed[:2]
    if not 0 <= number < len(nodes):
        raise FileFormatError(f"{owner} is node {shown(number)}; it must be one of the {len(nodes)} nodes before it")
    node = nodes[number]
    outputs = 1 if node.op is None else node.op.num_outputs
    if not 0 <= index < outputs:
        raise FileFormatError(f"{owner} is output {shown(index)} of node {node.name}, which has {outputs}")
    return node, index


def _heads(graph: Any, version: int) -> list[Entry]:
    """The heads of a graph, or of a subgraph, that JSON has."""
    nodes: list[Node] = []
    writes: dict[Entry, int] = {}
    for number, record in enumerate(_member(graph, "nodes", list, "the graph")):
        nodes.append(_node(record, number, nodes, version))
        _note_writes(nodes[-1], record["inputs"], nodes, writes)
    heads = _member(graph, "heads", list, "the graph")
    if not heads:
        raise FileFormatError("'heads' is empty: the graph has no outputs")
    return [_entry(head, nodes, f"head {position}") for position, head in enumerate(heads)]


def _node(record: Any, number: int, nodes: list[Node], version: int) -> Node:
    """The node that `record`, the one of this number, describes, over the `nodes` before it."""
    name, op_name = (_member(record, key, str, f"node {number}") for key in ("name", "op"))
    owner = f"node {number} ({shown(name)})"
    attrs: dict[str, str] = {}
    for key in ("param", "attr", "attrs"):  # before 1.0 attributes were called "attr", and before 0.9 the operator's own "param"
        attrs.update(_member(record, key, dict, owner, {}))
    for key, text in attrs.items():
        if not isinstance(text, str):
            raise FileFormatError(f"attribute {key!r} of {owner} is {shown(text)}, wants a string")
    listed = _member(record, "inputs", list, owner)
    entries = [_entry(each, nodes, f"input {position} of {owner}") for position, each in enumerate(listed)]
    if version < 905 and op_name in ("argmax", "argmin") and attrs.get("axis") == "-1":
        del attrs["axis"]  # the default of then, which meant all axes
    own = {key: text for key, text in attrs.items() if not any(plain in key for plain in NODE_KEYS) or key.startswith("__")}
    if op_name == "null":
        if entries:
            raise FileFormatError(f"{owner} is a variable, and has inputs")
        node = Node(None, name, own)
    else:
        op = parsed(name, op_name, own)
        if isinstance(op, Composite):
            graphs = _member(record, "subgraphs", list, owner, [])
            try:
                op = op.with_subgraphs([_heads(each, version) for each in graphs], len(entries))
            except MXNetError as error:
                raise in_node(name, error) from None
        node = Node(op, name, own, _placed(op, entries, name, own))
    for key, text in attrs.items():
        if key not in own and not key.startswith("__"):
            _set_plain(node, key, text)
    return node


def _note_writes(node: Node, listed: Sequence[Sequence[int]], nodes: Sequence[Node], writes: dict[Entry, int]) -> None:
    """Where the inputs that a file lists say that a state was written to before the graph was made, note it in its variable.

    `writes` counts those of the graph so far.
    """
    versions = {(nodes[each[0]], each[1]): each[2] for each in listed if len(each) > 2}
    for position in node.op.aux if node.op is not None else ():
        entry = node.inputs[position]
        if entry is not None and entry in versions:
            if entry not in writes:
                entry[0].earlier = max(versions[entry] - 1, 0)
            writes[entry] = writes.get(entry, 0) + 1


def _set_plain(node: Node, key: str, text: str) -> None:
    """An attribute such as `lr_mult` of the node, or `weight_lr_mult` of its input, as old files have them."""
    for plain in NODE_KEYS:
        if key == plain:
            node.attrs[f"__{plain}__"] = text
            return
        if key.endswith(f"_{plain}") and node.op is not None:
            wanted = key[: -len(plain) - 1]
            names = input_names(node.op, len(node.inputs))
            entry = node.inputs[names.index(wanted)] if wanted in names else None
            if entry is not None and entry[0].op is None:
                entry[0].attrs[f"__{plain}__"] = text
                return
    node.attrs[key] = text


def _placed(op: Op, entries: list[Entry], name: str, attrs: dict[str, str]) -> list[Entry | None]:
    """The inputs that a file lists, at their places among the operator's inputs, of which optional ones may be absent.

    Files before 0.9 lack the auxiliary states: variables are made for them.
    """
    declared = list(op.inputs)
    if declared and declared[-1].endswith("*"):
        return list(entries)
    needed = [not each.endswith("?") or op.wants(each.rstrip("?")) for each in declared]
    if len(entries) > sum(needed):
        needed = [position < len(entries) for position in range(len(declared))]
    if len(entries) > len(declared):
        raise FileFormatError(f"node {shown(name)} has {len(entries)} inputs, {op.name} takes {len(declared)}")
    remaining = iter(entries)
    placed: list[Entry | None] = []
    for each, wanted in zip(declared, needed):
        if wanted:
            placed.append(next(remaining, None) or (made_variable(op, each.rstrip("?"), name, attrs), 0))
        else:
            placed.append(None)
    return placed


# ---- for people


def describe(heads: Sequence[Entry]) -> str:
    """The graph in words: its outputs, and for each node its operator, inputs and attributes."""
    lines = ["Symbol Outputs:"]
    lines += [f"\toutput[{position}]={node.name}({index})" for position, (node, index) in enumerate(heads)]
    for node in topological_order(heads):
        if node.op is None:
            lines.append(f"Variable:{node.name}")
            continue
        lines += ["--------------------", f"Op:{node.op.name}, Name={node.name}", "Inputs:"]
        present = [entry for entry in node.inputs if entry is not None]
        lines += [
            f"\targ[{position}]={source.name}({index}){' version=0' if source.op is None else ''}"
            for position, (source, index) in enumerate(present)
        ]
        if node.attrs:
            lines += ["Attrs:"] + [f"\t{key}={text}" for key, text in sorted(node.attrs.items())]
    return "\n".join(lines) + "\n"
