"""How often, how long: the tables that `dumps` gives, with MXNet's names and layout.

Durations are added up by category (`operator`, the calls that wait, a user's domains) and name; memory and a user's counters by the values
that they took. The average of such values is their mean; MXNet 1.9.1 gives half the distance between the largest and the smallest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ..engine.events import CUSTOM, OPERATOR, PROGRAM, WAIT

#: Categories under MXNet's names: scripts look for them. Its calls of the C API that take time are those that wait, as ours do.
CATEGORIES = {OPERATOR: "operator", CUSTOM: CUSTOM, PROGRAM: "program", WAIT: "MXNET_C_API"}
MEMORY = "Device Storage"  # MXNet's category of counters of memory
SORTS = ("total", "avg", "min", "max", "count")
FORMATS = ("table", "json")


class Entry:
    """Count, sum, least and largest of values that come one by one."""

    __slots__ = ("count", "total", "least", "most", "last")

    def __init__(self) -> None:
        self.count = 0
        self.total = self.last = 0.0
        self.least, self.most = float("inf"), float("-inf")

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.last = value
        if value < self.least:
            self.least = value
        if value > self.most:
            self.most = value

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0


Group = dict[str, dict[str, Entry]]  # category -> name -> entry


class Statistics:
    """What has been added up since the last reset."""

    def __init__(self) -> None:
        self.times: Group = {}
        self.memory: Group = {}
        self.counters: Group = {}

    def clear(self) -> None:
        """Begin anew."""
        self.__init__()  # type: ignore[misc]  # the state of a new one

    def table(self, sort_by: str, ascending: bool) -> str:
        """The tables as text."""
        lines = [
            "",
            "Profile Statistics:",
            "\tTimes are in milliseconds, memory is in kilobytes (1000 bytes), counters are as they were set.",
        ]
        for kind, group in (("memory", self.memory), ("time", self.times), ("counter", self.counters)):
            for category in sorted(group):
                lines += _table(category, COLUMNS[kind], _sorted(group[category], sort_by, ascending, kind == "time"))
        return "\n".join([*lines, ""])

    def json(self, sort_by: str, ascending: bool) -> str:
        """The tables as JSON: {"Time": {category: {name: {"Count", "Total", "Min", "Max", "Avg"}}}, "Memory": ..., "Unit": ...}."""
        found: dict[str, Any] = {}
        for kind, group in (("time", self.times), ("memory", self.memory), ("counter", self.counters)):
            if group or kind != "counter":
                found[kind.capitalize()] = {
                    category: {
                        name: {column.key: column.value(entry) for column in COLUMNS[kind]}
                        for name, entry in _sorted(group[category], sort_by, ascending, kind == "time")
                    }
                    for category in sorted(group)
                }
        return json.dumps({**found, "Unit": {"Time": "ms", "Memory": "kB"}}, indent=4) + "\n"


def add(group: Group, category: str, name: str, value: float) -> None:
    """Enter a value."""
    names = group.get(category)
    if names is None:
        names = group[category] = {}
    entry = names.get(name)
    if entry is None:
        entry = names[name] = Entry()
    entry.add(value)


# ---- layout


class Column(NamedTuple):
    """A column: its name in JSON, its title and width in a table, and what stands in it."""

    key: str
    title: str
    width: int
    value: Callable[[Entry], float]


def _rounded(scale: float, field: str) -> Callable[[Entry], float]:
    """A field of an entry in the table's unit, to a millionth of it."""
    return lambda entry: round(getattr(entry, field) * scale, 6)


def _count(entry: Entry) -> int:
    return entry.count


COLUMNS = {
    "time": (
        Column("Count", "Total Count", 16, _count),
        Column("Total", "Time (ms)", 16, _rounded(1e3, "total")),
        Column("Min", "Min Time (ms)", 16, _rounded(1e3, "least")),
        Column("Max", "Max Time (ms)", 16, _rounded(1e3, "most")),
        Column("Avg", "Avg Time (ms)", 16, _rounded(1e3, "mean")),
    ),
    "memory": (
        Column("Count", "Total Count", 16, _count),
        Column("Min", "Min Use  (kB)", 16, _rounded(1e-3, "least")),
        Column("Max", "Max Use  (kB)", 16, _rounded(1e-3, "most")),
        Column("Avg", "Avg Use  (kB)", 16, _rounded(1e-3, "mean")),
    ),
    "counter": (
        Column("Count", "Total Count", 16, _count),
        Column("Last", "Last Value", 16, _rounded(1, "last")),
        Column("Min", "Min Value", 16, _rounded(1, "least")),
        Column("Max", "Max Value", 16, _rounded(1, "most")),
        Column("Avg", "Avg Value", 16, _rounded(1, "mean")),
    ),
}


def _sorted(names: dict[str, Entry], sort_by: str, ascending: bool, has_total: bool) -> list[tuple[str, Entry]]:
    """The entries in the order that was asked for; equal ones by name. What has no total is sorted by its largest value instead."""
    field = {"total": "total" if has_total else "most", "avg": "mean", "min": "least", "max": "most", "count": "count"}[sort_by]
    sign = 1 if ascending else -1
    return sorted(names.items(), key=lambda item: (sign * getattr(item[1], field), item[0]))


def _table(category: str, columns: tuple[Column, ...], entries: list[tuple[str, Entry]]) -> Iterator[str]:
    """The lines of one table."""
    shown = [(" ".join(name.split()), entry) for name, entry in entries]
    width = max([25, *(len(name) + 1 for name, _ in shown)])
    yield from (category, "=================")
    for name, texts in (
        ("Name", [column.title for column in columns]),
        ("----", ["-" * len(column.title) for column in columns]),
    ):
        yield f"{name:<{width}}" + " ".join(f"{text:>{column.width}}" for text, column in zip(texts, columns))
    for name, entry in shown:
        texts = [f"{value:.4f}" if isinstance(value, float) else f"{value}" for value in (c.value(entry) for c in columns)]
        yield f"{name:<{width}}" + " ".join(f"{text:>{column.width}}" for text, column in zip(texts, columns))
    yield ""
