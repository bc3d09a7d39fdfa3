"""The file `*-model.json` of `Block.save`: the tree of a network, with the names of its blocks and the graphs of hybridized ones.

It has no code in it: `load` goes over a network that the same code made again, and gives its blocks the names they had, so that
graphs and parameters in the files find each other. A block is found by its class and its number in a walk over the tree.
"""

from __future__ import annotations

import json
from typing import Any

from .. import files
from ..base import FileFormatError


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
        tree = json.loads(contents)
        _restore(block, _Counter(), tree)
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, json.JSONDecodeError) as error:
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
    entry = tree[counter.key(block)] = {"orig_name": block.name, **block._save_graph()}
    entry["children"] = {child.name: name for name, child in block._children.items()}
    for child in block._children.values():
        _describe(child, counter, entry)


def _restore(block: Any, counter: _Counter, tree: dict[str, Any]) -> None:
    """Give `block` and what is below it what `tree` says."""
    entry = tree[counter.key(block)]
    block._name = entry["orig_name"]
    old, new = block.params.prefix, f"{block.name}_" if block.name else ""
    block.params._params = {
        new + name[len(old) :] if name.startswith(old) else name: param for name, param in block.params.items()
    }
    for child in block._children.values():
        _restore(child, counter, entry)
    names = entry["children"]
    block._children = {names[child.name]: child for child in block._children.values()}
    block._load_graph(entry)
