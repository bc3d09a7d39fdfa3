"""The file `*-model.json` of `Block.save`: the tree of a network, with the names of its blocks and the graphs of hybridized ones.

It has no code in it: `load` goes over a network that the same code made again, and gives its blocks the names they had, so that
graphs and parameters in the files find each other. A block is found by its class and its number in a walk over the tree.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from .. import files
from ..base import FileFormatError, MXNetError, shown


def save(block: Any, filename: str) -> None:
    """Write the tree below `block`."""
    tree: dict[str, Any] = {}
    _describe(block, _Counter(), tree)
    files.replace_file(filename, [json.dumps(tree).encode()])


def load(block: Any, filename: str) -> None:
    """Give the tree below `block` the names and graphs of the file. Raises FileFormatError if it is another tree."""
    file, _ = files.open_file(filename)
    with file:
        contents = file.read()
    try:
        found = list(_pairs(block, _Counter(), json.loads(contents)))
        for each, entry in found:  # all is looked at before anything changes
            each._graph_in(entry)
        for each, entry in reversed(found):  # children first: a block calls them by their names
            _restore(each, entry)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        if isinstance(error, MXNetError):
            raise
        raise FileFormatError(
            f"{filename} does not describe this network ({type(error).__name__}: {error}). Make the network by the code that made the "
            "saved one"
        ) from error


class _Counter:
    """Numbers the blocks of a walk."""

    def __init__(self) -> None:
        self.count = 0

    def key(self, block: Any) -> str:
        key = f"{type(block).__name__.lower()}{self.count}"
        self.count += 1
        return key


def _describe(block: Any, counter: _Counter, tree: dict[str, Any]) -> None:
    """Enter `block` and what is below it into `tree`."""
    entry = tree[counter.key(block)] = {"orig_name": block.name, "params": list(block.params), **block._save_graph()}
    entry["children"] = {child.name: name for name, child in block._children.items()}
    for child in block._children.values():
        _describe(child, counter, entry)


def _pairs(block: Any, counter: _Counter, tree: dict[str, Any]) -> Iterator[tuple[Any, dict[str, Any]]]:
    """`block` and all below it, each with what `tree` says of it. Raises KeyError and the like where that does not fit."""
    entry = tree[counter.key(block)]
    listed = entry.get("params", [])
    if not isinstance(listed, list) or len(set(listed)) != len(listed):
        raise ValueError(f"the names of the parameters of {block.name} are {shown(listed)}")
    _require_texts([entry["orig_name"], *listed])
    yield block, entry
    for child in block._children.values():
        first, *others = _pairs(child, counter, entry)
        _require_texts([entry["children"][first[1]["orig_name"]]])
        yield first
        yield from others


def _require_texts(values: list[Any]) -> None:
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"{shown(value)} stands for a name")


def _restore(block: Any, entry: dict[str, Any]) -> None:
    """Give `block`, whose children have their names already, what `entry` says."""
    block._name = entry["orig_name"]
    block.params._params = dict(zip(_saved_names(block, entry), block.params.values()))
    for name, param in block.params.items():
        param._rename(name)
    keys = [entry["children"][child.name] for child in block._children.values()]
    if len(set(keys)) == len(keys):  # else a child stands at several places, or several have one name: the file tells one place
        block._children = dict(zip(keys, block._children.values()))
    block._load_graph(entry)


def _saved_names(block: Any, entry: dict[str, Any]) -> list[str]:
    """What the parameters of `block` were called; files of MXNet tell it by the block's name alone."""
    listed: list[str] = entry.get("params", [])
    if len(listed) == len(block.params.keys()):
        return listed
    old, new = block.params.prefix, f"{block.name}_" if block.name else ""
    return [new + name[len(old) :] if name.startswith(old) else name for name in block.params]
