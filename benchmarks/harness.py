"""How a workload is measured: every peer in a process of its own, taking turns, medians of several rounds.

A workload is a file beside this one. It registers one function for each peer with `@peer("name", "variant")`; the function
does set-up and warm-up and returns another that runs one unit of work and returns {metric: seconds}; a metric that ends in
"(ratio)" has no unit. Peers that cannot be imported are left out and named.

    python benchmarks/w2_dispatch.py                              this interpreter for every peer
    python benchmarks/w2_dispatch.py --python mxnet=PATH/python   an interpreter of its own for one of them
    python benchmarks/run.py                                      all workloads
"""

from __future__ import annotations

import argparse
import json
import os
import select
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Unit = Callable[[], dict[str, float]]
now = time.perf_counter
_setups: dict[tuple[str, str], tuple[Callable[[], Unit], dict[str, str]]] = {}


def peer(name: str, variant: str = "", **environment: str) -> Callable[[Callable[[], Unit]], Callable[[], Unit]]:
    """Decorator: the set-up of a peer's variant, and variables of the environment that it needs."""

    def enter(setup: Callable[[], Unit]) -> Callable[[], Unit]:
        _setups[name, variant] = (setup, environment)
        return setup

    return enter


def timed(function: Callable[[], Any]) -> float:
    """Seconds that one call takes."""
    start = now()
    function()
    return now() - start


def serve(name: str, variant: str) -> None:
    """The process of a peer: set up, say so, then measure once for each line on standard input."""
    try:
        unit = _setups[name, variant][0]()
        unit()
    except ImportError as error:
        print(json.dumps({"absent": str(error)}), flush=True)
        return
    print(json.dumps({"ready": True}), flush=True)
    for _ in sys.stdin:
        samples: list[dict[str, float]] = []
        start = now()
        while not samples or (now() - start < 0.3 and len(samples) < 20):
            samples.append(unit())
        print(json.dumps({key: statistics.median(sample[key] for sample in samples) for key in samples[0]}), flush=True)


class Peer:
    """A live process that measures when it is asked to."""

    def __init__(self, script: str, name: str, variant: str, interpreter: str) -> None:
        self.title = f"{name} {variant}".strip()
        environment = dict(os.environ, **_setups[name, variant][1])
        self.process = subprocess.Popen(
            [interpreter, script, "--serve", name, variant],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.samples: dict[str, list[float]] = {}

    def answer(self, seconds: float) -> dict[str, Any]:
        """The next line of JSON. A peer that dies or stays silent for `seconds` gives {"absent": why}."""
        stdout = self.process.stdout
        assert stdout is not None
        while select.select([stdout], [], [], seconds)[0]:
            line = stdout.readline()
            if line.startswith("{"):
                return json.loads(line)  # type: ignore[no-any-return]  # what `serve` prints
            if not line:
                assert self.process.stderr is not None
                status = self.process.wait()
                return {"absent": (self.process.stderr.read().strip().splitlines() or [f"it ended with status {status}"])[-1]}
        self.process.kill()
        return {"absent": f"no answer in {seconds} s"}

    def ask(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        for metric, seconds in self.answer(120).items():
            self.samples.setdefault(metric, []).append(seconds)


def compare(script: str, interpreters: dict[str, str], rounds: int, wanted: set[str] | None = None) -> list[dict[str, Any]]:
    """Measure all peers of a workload in turns; rows {peer, metric, median, minimum} in seconds."""
    peers = []
    for name, variant in _setups:
        if wanted and name not in wanted:
            continue
        one = Peer(script, name, variant, interpreters.get(name, sys.executable))
        first = one.answer(300)
        if "absent" in first:
            print(f"  {one.title}: left out ({first['absent']})", file=sys.stderr)
        else:
            peers.append(one)
    for turn in range(rounds):
        for one in peers[turn % len(peers) :] + peers[: turn % len(peers)]:
            one.ask()
    rows = []
    for one in peers:
        one.process.kill()
        one.process.communicate()
        for metric, samples in one.samples.items():
            rows.append({"peer": one.title, "metric": metric, "median": statistics.median(samples), "minimum": min(samples)})
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    """Rows as text: for each metric the median, the least, and the ratio to the fastest peer that is not minimx."""
    lines = []
    for metric in dict.fromkeys(row["metric"] for row in rows):
        chosen = sorted((row for row in rows if row["metric"] == metric), key=lambda row: float(row["median"]))
        others = [row["median"] for row in chosen if not row["peer"].startswith("minimx")]
        best = min(others) if others else chosen[0]["median"]
        lines.append(f"  {metric}")
        scale, unit = (1, "  ") if metric.endswith("(ratio)") else (1e3, "ms")
        lines += [
            f"    {row['peer']:<28}{row['median'] * scale:>12.4f} {unit}   least {row['minimum'] * scale:>10.4f}"
            f"   x{row['median'] / best:.2f}"
            for row in chosen
        ]
    return "\n".join(lines)


def main(title: str, script: str) -> None:
    """The command line of a workload file."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--python", action="append", default=[], metavar="PEER=PATH", help="the interpreter that has a peer")
    parser.add_argument("--peers", help="only these, separated by commas")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path, help="append the rows to this file, a line each")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(*options.serve)
        return
    interpreters = dict(each.split("=", 1) for each in options.python)
    wanted = set(options.peers.split(",")) if options.peers else None
    print(title, flush=True)
    rows = compare(script, interpreters, options.rounds, wanted)
    print(table(rows), flush=True)
    if options.json:
        with options.json.open("a") as file:
            file.writelines(json.dumps({"workload": title, **row}) + "\n" for row in rows)
