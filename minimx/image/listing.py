"""Which images an ImageIter reads, and their labels: lists in Python, and MXNet's files of lists (`.lst`), which im2rec writes.

A line of such a file is `number <tab> label [<tab> label ...] <tab> path`, the path below a root folder.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import files
from ..base import ArgumentError, FileFormatError, shown

Labels = np.ndarray[Any, np.dtype[Any]]


def as_labels(values: Any, dtype: np.dtype[Any]) -> Labels:
    """`values` as labels of `dtype`. Raises ValueError, TypeError for what is no number, or has a fraction that `dtype` lacks."""
    numbers = np.array(values, np.float64)
    labels: Labels = numbers.astype(dtype)
    if dtype.kind == "i" and not np.array_equal(labels, numbers):
        raise ValueError(f"labels of dtype {dtype.name} are whole numbers")
    return labels


class Entry(NamedTuple):
    """An image: its labels, and the path below the root folder."""

    label: Labels
    path: str


def read_list(path: files.PathLike, dtype: np.dtype[Any]) -> dict[int, Entry]:
    """The entries of a `.lst` file by their numbers. Raises FileFormatError, with the line, for one that is no entry."""
    file, _ = files.open_file(path)
    entries: dict[int, Entry] = {}
    with file:
        for number, line in enumerate(file, start=1):
            fields = line.strip().split(b"\t")
            if fields == [b""]:
                continue
            try:
                if len(fields) < 3:
                    raise ValueError("it has no label")
                key = int(fields[0])
                entry = Entry(as_labels([float(field) for field in fields[1:-1]], dtype), os.fsdecode(fields[-1]))
                if key in entries:
                    raise ValueError(f"the number {key} was there before")
            except ValueError as error:
                raise FileFormatError(
                    f"{files.as_path(path)}: line {number}: number, labels, path with tabs between are wanted, got {shown(line)}: {error}"
                ) from None
            entries[key] = entry
    return entries


def from_items(name: str, items: Sequence[Any], dtype: np.dtype[Any]) -> dict[str, Entry]:
    """The entries of a list of [label, path], [[label, ...], path] or [label, ..., path], numbered from "1" on."""
    entries: dict[str, Entry] = {}
    for number, item in enumerate(items, start=1):
        if not isinstance(item, (list, tuple)) or len(item) < 2 or not isinstance(item[-1], str):
            raise ArgumentError(f"{name}: imglist[{number - 1}] is {shown(item)}; [label, path] or [label, ..., path] is wanted")
        given = item[0] if len(item) == 2 else item[:-1]
        try:
            label = as_labels(given.asnumpy() if hasattr(given, "asnumpy") else given, dtype)
        except (TypeError, ValueError):
            raise ArgumentError(
                f"{name}: imglist[{number - 1}] has the label {shown(given)}; numbers of dtype {dtype.name} are wanted"
            ) from None
        if not label.size:
            raise ArgumentError(f"{name}: imglist[{number - 1}] has no label; give a number, or 0 where labels do not matter")
        entries[str(number)] = Entry(label.reshape(-1) if label.ndim == 0 else label, item[-1])
    return entries
