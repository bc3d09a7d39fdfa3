"""Graphs as text: MXNet 1.9's JSON, written byte for byte as MXNet does, and read from every version since 0.8.

    {"nodes": [{"op", "name", "attrs", "inputs": [[node, output, version], ...]}, ...], "arg_nodes", "node_row_ptr", "heads", "attrs"}

Nodes stand in topological order, variables are the operator "null", attributes are strings in the order of their keys. The version of
an entry says how often operators have written to it: running means have version 1 where BatchNorm takes them. Book: chapter 3.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from typing import Any

from ..base import ArgumentError, FileFormatError, MXNetError
from ..op import NODE_KEYS, Op, input_names
from .conventions import stored_outputs
from .graph import Entry, Node, made_variable, parsed, topological_order

VERSION = 10901  # of MXNet, whose format this is
OLDEST = 800  # files of version 0.8 and before do not say their version


# ---- writing


def to_json(heads: Sequence[Entry], remove_amp_cast: bool = True) -> str:
    """The graph of `heads` in MXNet's JSON. Casts that automatic mixed precision put in are left out unless told otherwise."""
    if remove_amp_cast:
        heads = _without_casts(heads)
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
        nodes.append(record)
    rows = [0]
    for node in order:
        rows.append(rows[-1] + stored_outputs(node.op))
    graph = {
        "nodes": nodes,
        "arg_nodes": [position for position, node in enumerate(order) if node.op is None],
        "node_row_ptr": rows,
        "heads": [[number[node], index, writes.get((node, index), 0)] for node, index in heads],
        "attrs": {"mxnet_version": ["int", VERSION]},
    }
    return _text(graph, 0)


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


def save(heads: Sequence[Entry], fname: str | os.PathLike[str], remove_amp_cast: bool = True) -> None:
    """Write the JSON to the file `fname`. A crash leaves a file that was there before as it was."""
    if not isinstance(fname, (str, os.PathLike)):
        raise ArgumentError(f"save: fname must be a string, got {type(fname).__name__}")
    text = to_json(heads, remove_amp_cast)
    path = os.fspath(fname)
    beside = f"{path}.{os.getpid()}.tmp"
    try:
        with open(beside, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


# ---- reading


def read_file(fname: str | os.PathLike[str]) -> list[Entry]:
    """The heads of the graph in a file. Raises FileFormatError if it cannot be read or is no graph."""
    if not isinstance(fname, (str, os.PathLike)):
        raise ArgumentError(f"load: fname must be a string, got {type(fname).__name__}")
    try:
        with open(fname, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"load: {os.fspath(fname)} cannot be read: {error}") from None
    return from_json(text)


def from_json(text: str) -> list[Entry]:
    """The heads of a graph from MXNet's JSON of any version. Raises FileFormatError for anything else."""
    if not isinstance(text, str):
        raise ArgumentError(f"load_json: a string is wanted, got {type(text).__name__}")
    try:
        graph = json.loads(text)
    except ValueError as error:
        raise FileFormatError(f"load_json: this is no JSON: {error}") from None
    try:
        version = int(graph.get("attrs", {}).get("mxnet_version", ["int", OLDEST])[1])
        nodes: list[Node] = []
        writes: dict[Entry, int] = {}
        for record in graph["nodes"]:
            nodes.append(_node(record, nodes, version))
            _note_writes(nodes[-1], record["inputs"], nodes, writes)
        heads = [(nodes[int(head[0])], int(head[1])) for head in graph["heads"]]
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, MXNetError):
            raise  # an operator or attribute that is not known: the message says so
        raise FileFormatError(f"load_json: the JSON is no graph of MXNet: {type(error).__name__}: {error}") from None
    return heads


def _node(record: dict[str, Any], nodes: list[Node], version: int) -> Node:
    """The node that `record` describes, over the `nodes` before it."""
    name, op_name = record["name"], record["op"]
    # Before 1.0 attributes were called "attr", and before 0.9 the operator's own "param".
    attrs = {**record.get("param", {}), **record.get("attr", {}), **record.get("attrs", {})}
    entries = [(nodes[int(entry[0])], int(entry[1])) for entry in record["inputs"]]
    if version < 905 and op_name in ("argmax", "argmin") and attrs.get("axis") == "-1":
        del attrs["axis"]  # the default of then, which meant all axes
    own = {key: text for key, text in attrs.items() if not any(plain in key for plain in NODE_KEYS) or key.startswith("__")}
    if op_name == "null":
        node = Node(None, name, own)
    else:
        op = parsed(name, op_name, own)
        node = Node(op, name, own, _placed(op, entries, name, own))
    for key, text in attrs.items():
        if key not in own and not key.startswith("__"):
            _set_plain(node, key, text)
    return node


def _note_writes(node: Node, listed: Sequence[Sequence[int]], nodes: Sequence[Node], writes: dict[Entry, int]) -> None:
    """Where the inputs that a file lists say that a state was written to before the graph was made, note it in its variable.

    `writes` counts those of the graph so far.
    """
    versions = {(nodes[int(each[0])], int(each[1])): int(each[2]) for each in listed if len(each) > 2}
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
        raise FileFormatError(f"load_json: node {name} has {len(entries)} inputs, {op.name} takes {len(declared)}")
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
