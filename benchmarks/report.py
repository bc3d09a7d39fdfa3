"""What is made of measurements: tables, what was missed, a picture, and the results of a class put together.

A result file is JSON: {"minimx": version, "machine": {...}, "when": "2026-01-31 10:00", "rows": [{"workload", "metric", "peer", "variant",
"samples" in seconds, "median", "memory" in MB}, ...]}.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import platform
import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from harness import Bar, Row, Workload

import minimx as mx
from minimx import files

FRAMEWORKS = ("mxnet", "torch", "jax", "mlx", "onnxruntime", "tinygrad")
WIDTH = 24  # of a bar of text


def machine() -> dict[str, Any]:
    """What the measuring machine is: processor, cores, memory in GB, system, Python and NumPy."""
    processor = platform.processor() or platform.machine()
    try:
        processor = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text()).group(1)  # type: ignore[union-attr]
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    except (OSError, AttributeError, ValueError):
        memory = None
    return {
        "processor": processor,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory": memory,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": importlib.metadata.version("numpy"),
    }


# ---- tables


def metrics(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(row.metric for row in rows))


def shown(metric: str, value: float) -> str:
    """A value with its unit, three digits long."""
    if metric.endswith("(ratio)"):
        return f"{value:.3f}   "
    for unit, scale in (("s ", 1.0), ("ms", 1e3), ("us", 1e6)):
        if value * scale >= 1 or unit == "us":
            return f"{value * scale:.{max(0, 3 - len(str(int(value * scale))))}f} {unit}"
    raise AssertionError


def best_of_others(rows: Iterable[Row]) -> float | None:
    """The median of the fastest peer that is neither minimx nor a program by hand; of one by hand, if there is no other."""
    others = [row for row in rows if row.peer != "minimx"]
    chosen = [row.median for row in others if row.peer in FRAMEWORKS] or [row.median for row in others]
    return min(chosen, default=None)


def table(work: Workload, rows: Sequence[Row]) -> str:
    """Each metric: the peers by their medians, how many times the best of the others each takes (also as a bar), memory."""
    lines = [f"{work.name}  {work.title}"]
    for metric in metrics(rows):
        chosen = sorted((row for row in rows if row.metric == metric), key=lambda row: row.median)
        best = best_of_others(chosen) or chosen[0].median
        longest = max(row.median for row in chosen)
        lines.append(f"  {metric:<34}{'median':>12}{'least':>12}{'ratio':>8}{'memory':>10}")
        for row in chosen:
            bar = "█" * max(1, round(WIDTH * row.median / longest)) if row.median > 0 else ""
            values = f"{shown(metric, row.median):>12}{shown(metric, min(row.samples)):>12}{row.median / best:8.2f}{row.memory:7.0f} MB"
            lines.append(f"    {row.title:<32}{values}  {bar}")
    return "\n".join(lines)


def held(work: Workload, bar: Bar, rows: Iterable[Row]) -> tuple[str, bool | None]:
    """What minimx has of a bar, in words, and whether it is met; None if it was not measured."""

    def least(chosen: list[Row]) -> Row | None:
        return min(chosen, key=lambda row: row.median, default=None)

    rows = [row for row in rows if row.metric == bar.metric]
    mine = least([row for row in rows if row.peer == "minimx" and (not bar.variants or row.variant in bar.variants)])
    name = f"{work.name} {bar.metric}" + (f" ({' or '.join(bar.variants)})" if bar.variants else "")
    if mine is not None and bar.absolute:
        met = mine.median <= bar.limit
        return f"{name}: {shown(bar.metric, mine.median).strip()}, bar {shown(bar.metric, bar.limit).strip()}", met
    best = least([row for row in rows if ({row.peer, row.title} & set(bar.against) if bar.against else row.peer in FRAMEWORKS)])
    if mine is None or best is None:
        return f"{name}: not measured" + (f" beside {' or '.join(bar.against)}" if bar.against else ""), None
    ratio = mine.median / best.median
    return f"{name}: {ratio:.2f} of {best.title}, bar {bar.limit:g}", ratio <= bar.limit


def bars(works: Iterable[Workload], rows: Sequence[Row], unmeasured: bool = True) -> tuple[str, bool]:
    """A line for each bar, or for each that was measured, and whether all of these are met."""
    lines, all_met = [], True
    for work in works:
        mine = [row for row in rows if row.workload == work.name]
        for bar in work.bars:
            words, met = held(work, bar, mine)
            if met is None and not unmeasured:
                continue
            lines.append(f"  {'-' if met is None else 'met' if met else 'MISSED':<8}{words}")
            all_met = all_met and met is not False
    return "\n".join(lines), all_met


# ---- files


def as_json(rows: Iterable[Row]) -> dict[str, Any]:
    """What a result file has."""
    return {
        "minimx": mx.__version__,
        "machine": machine(),
        "when": time.strftime("%Y-%m-%d %H:%M"),
        "rows": [
            {
                "workload": row.workload,
                "metric": row.metric,
                "peer": row.peer,
                "variant": row.variant,
                "samples": row.samples,
                "median": row.median,
                "memory": round(row.memory, 1),
            }
            for row in rows
        ],
    }


def write_json(path: str | Path, rows: Iterable[Row]) -> None:
    """Write a result file, whole or not at all."""
    files.replace_file(str(path), [(json.dumps(as_json(rows), indent=1) + "\n").encode()])


def submit(folder: str | Path, rows: Iterable[Row], name: str | None = None) -> Path:
    """Write a result file with a name of its own into a folder that a class shares. **Args** name: whose it is; else the machine's name."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    node = re.sub(r"[^\w.-]", "-", name or platform.node()) or "machine"
    path = Path(folder) / f"{node}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.json"
    write_json(path, rows)
    return path


def read_json(path: Path) -> tuple[dict[str, Any], list[Row]]:
    """A result file. Raises ValueError, with the path, for one that is something else."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        rows = [
            Row(
                str(each["workload"]), str(each["metric"]), str(each["peer"]), str(each["variant"]),
                [float(sample) for sample in each["samples"]] or [float(each["median"])], float(each["memory"]),
            )
            for each in found["rows"]
        ]  # fmt: skip
        return {"machine": dict(found["machine"]), "when": str(found["when"])}, rows
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is no result of `python -m minimx bench`: {type(error).__name__}: {error}") from error


# ---- a class


def merged(folder: str | Path) -> tuple[str, list[tuple[str, list[Row]]]]:
    """All results in a folder, as a table a metric with a line a machine, and as rows a machine. Files that are no results are named."""
    found, broken = [], []
    for path in sorted(Path(folder).glob("*.json")):
        try:
            about, rows = read_json(path)
        except ValueError as error:
            broken.append(str(error))
        else:
            found.append((path.stem, about, rows))
    names = plain_names([stem for stem, _, _ in found])
    found = [(name, about, rows) for name, (_, about, rows) in zip(names, found)]
    if not found:
        return "\n".join([f"no results in {folder}", *broken]), []
    columns = list(dict.fromkeys((row.workload, row.metric) for _, _, rows in found for row in rows))
    lines = [
        f"{len(found)} machines, the fastest first. Time: of minimx's best variant, the median of its rounds, in s, ms or us.",
        "Ratio: that time by the best peer's on the same machine, no unit; below 1 minimx is faster.",
    ]
    for workload, metric in columns:
        lines += ["", f"{workload}  {metric}", f"  {'machine':<38}{'time':>12}{'ratio':>8}   cores x processor"]
        times = []
        for name, about, rows in found:
            chosen = [row for row in rows if (row.workload, row.metric) == (workload, metric)]
            mine = min((row.median for row in chosen if row.peer == "minimx"), default=None)
            if mine is not None:
                best = best_of_others(chosen)
                times.append((mine, name, about["machine"], best))
        for mine, name, where, best in sorted(times, key=lambda each: each[0]):
            ratio = f"{mine / best:.2f}" if best else "-"
            lines.append(
                f"  {name[:36]:<38}{shown(metric, mine):>12}{ratio:>8}   {where.get('cores')} x {where.get('processor')}"
            )
        if times:
            ratios = [mine / best for mine, _, _, best in times if best]
            ratio = f"{median(ratios):.2f}" if ratios else "-"
            lines.append(f"  {MEDIAN:<38}{shown(metric, median(each[0] for each in times)):>12}{ratio:>8}")
    return "\n".join([*lines, *broken]), [(name, rows) for name, _, rows in found]


def plain_names(stems: Sequence[str]) -> list[str]:
    """The names that `submit` was given, without the time and the number of the process behind them; a second of a name says so."""
    names = [re.sub(r"-\d{8}-\d{6}-\d+$", "", stem) for stem in stems]
    places = [names[: place + 1].count(name) for place, name in enumerate(names)]
    return [f"{name} ({place})" if place > 1 else name for name, place in zip(names, places)]


MEDIAN = "median of the class"


# ---- pictures


def chart(path: str | Path, works: Sequence[Workload], rows: Sequence[Row]) -> None:
    """Draw a panel a metric with a bar a peer, into a file (svg, png, pdf). Raises ImportError without matplotlib."""
    figure_of = importlib.import_module("matplotlib.figure").Figure
    titles = {work.name: work.title for work in works}
    panels = list(dict.fromkeys((row.workload, row.metric) for row in rows))
    heights = [sum((row.workload, row.metric) == panel for row in rows) for panel in panels]
    figure = figure_of(figsize=(8, 0.28 * sum(heights) + 0.9 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=[each + 1 for each in heights])[:, 0]
    for (workload, metric), axis in zip(panels, axes):
        chosen = sorted((row for row in rows if (row.workload, row.metric) == (workload, metric)), key=lambda row: -row.median)
        colours = ["C0" if row.peer == "minimx" else "0.7" for row in chosen]
        axis.barh([row.title for row in chosen], [row.median for row in chosen], color=colours)
        for place, row in enumerate(chosen):
            axis.annotate(" " + shown(metric, row.median).strip(), (row.median, place), va="center", fontsize=8)
        title = f"{titles[workload]}, {metric}" if workload in titles else metric
        axis.set_title(f"{workload}: {title}", fontsize=9, loc="left")
        axis.set_xlim(0, 1.2 * max(row.median for row in chosen))
        axis.tick_params(labelsize=8)
        axis.set_xticks([])
        axis.spines[["top", "right", "bottom"]].set_visible(False)
    figure.savefig(str(path))


def class_chart(path: str | Path, found: Sequence[tuple[str, list[Row]]], works: Sequence[Workload] = ()) -> None:
    """Draw the machines of a class: a panel a metric, a bar a machine, and one for their median. Raises ImportError without matplotlib."""
    rows: list[Row] = []
    for name, each in found:
        for workload, metric in dict.fromkeys((row.workload, row.metric) for row in each):
            chosen = [row for row in each if row.peer == "minimx" and (row.workload, row.metric) == (workload, metric)]
            if chosen:
                best = min(chosen, key=lambda row: row.median)
                rows.append(Row(workload, metric, name, "", best.samples, best.memory))
    for workload, metric in dict.fromkeys((row.workload, row.metric) for row in rows):
        middle = median(row.median for row in rows if (row.workload, row.metric) == (workload, metric))
        rows.append(Row(workload, metric, MEDIAN, "", [middle], 0.0))
    chart(path, works, rows)
