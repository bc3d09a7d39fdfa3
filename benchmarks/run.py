"""The benchmarks: workloads, each measured for minimx and for the peers that are installed, taking turns.

    python -m minimx bench [W1 W6 ...]       all workloads, or some
    python -m minimx bench --quick           five of them, in a minute or two
    python -m minimx bench --json FILE --chart FILE.svg
    python -m minimx bench --quick --submit results/ --as ada   one more machine of a class, under the name ada,
    python -m minimx bench --merge results/ --chart class.svg   and all of them together

Peers are looked for in this interpreter, and in what `make bench` installs beside the source tree. MXNet 1.9.1 wants a Python of its own,
3.11 or older: `--python mxnet=PATH/python`, which works for the others, too.
"""

from __future__ import annotations

import argparse
import importlib
import io
import json
import math
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # also where `python -m minimx bench` runs this file

import report  # noqa: E402  # beside this file
from harness import Row, Workload, measure  # noqa: E402

#: How to get a peer.
INSTALL = {
    "numpy": "pip install numpy",
    "torch": "pip install torch",
    "jax": "pip install jax",
    "mlx": "pip install 'mlx[cpu]'",
    "onnxruntime": "pip install onnxruntime onnx",
    "mxnet": "with Python 3.11 or older, in a venv of its own: pip install mxnet==1.9.1 numpy==1.23.5",
}
PYTHON = "Scripts/python.exe" if sys.platform == "win32" else "bin/python"
BESIDE = (".venv-peers", ".venv-mxnet")  # what `make bench` installs
ROUNDS, SECONDS = 7, 0.3
QUICK_ROUNDS, QUICK_SECONDS = 3, 0.15
QUICK_LIMIT = 9.0  # seconds a workload, after which no further round begins: a minute, also where many peers are installed
PICTURES = (".svg", ".png", ".pdf")
SLOW = "compiled"  # variants that take long to set up


def workloads() -> list[Workload]:
    """All of them, in order."""
    paths = sorted(HERE.glob("w[0-9]*.py"), key=lambda path: int(path.name.split("_")[0][1:]))
    return [importlib.import_module(path.stem).work for path in paths]


def interpreters(given: dict[str, str]) -> dict[str, str]:
    """An interpreter for each peer that is to be had: as given, or this one, or one in a venv beside the source tree."""
    found = dict(given)
    ask = f"import importlib.util as u, json; print(json.dumps([n for n in {list(INSTALL)} if u.find_spec(n)]))"
    for python in (sys.executable, *(str(HERE.parent / folder / PYTHON) for folder in BESIDE)):
        if Path(python).exists():
            done = subprocess.run([python, "-c", ask], capture_output=True, text=True, cwd=HERE)
            for name in json.loads(done.stdout) if done.returncode == 0 else []:
                found.setdefault(name, python)
    return {**found, "minimx": given.get("minimx", sys.executable)}


class Progress:
    """A line at a terminal that says what is measured and how much is left; elsewhere only what was left out is told."""

    def __init__(self, steps: int) -> None:
        self.steps, self.done, self.begun = steps, 0, time.monotonic()
        self.what = ""  # which workload
        self.width = 0 if not sys.stderr.isatty() else 20

    def step(self, words: str) -> None:
        self.done += 1
        if "left out" in words:
            self.clear()
            print(f"  {self.what} {words}", file=sys.stderr, flush=True)
        elif self.width:
            full = min(self.width, round(self.width * self.done / self.steps))
            line = f"{'█' * full}{'░' * (self.width - full)} {time.monotonic() - self.begun:4.0f} s  {self.what} {words}"
            print(f"\r\033[K{line[:100]}", end="", file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self.width:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def options(arguments: list[str]) -> argparse.Namespace:
    """The command line, checked."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(
        prog="python -m minimx bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("workloads", nargs="*", metavar="W1", help="names of workloads; all of them if there is none")
    parser.add_argument("--quick", action="store_true", help="few workloads, few rounds: a minute or two")
    parser.add_argument("--peers", help="only these, separated by commas, beside minimx")
    parser.add_argument("--python", action="append", default=[], metavar="PEER=PATH", help="the interpreter that has a peer")
    parser.add_argument("--rounds", type=int, help=f"of turns, {ROUNDS} unless --quick")
    parser.add_argument("--json", metavar="FILE", help="write what was measured")
    parser.add_argument("--chart", metavar="FILE", help="draw it: .svg, .png or .pdf (needs matplotlib)")
    parser.add_argument("--submit", metavar="FOLDER", help="write the results into a folder that a class shares")
    parser.add_argument(
        "--as", dest="name", metavar="NAME", help="with --submit: whose results they are; the machine's name if it is not said"
    )
    parser.add_argument("--merge", metavar="FOLDER", help="measure nothing; show the results in that folder together")
    parser.add_argument("--check", action="store_true", help="exit with status 1 if minimx misses what it is held to")
    chosen = parser.parse_args(arguments)
    for each in chosen.python:
        if "=" not in each:
            parser.error(f"--python {each}: PEER=PATH is wanted, such as mxnet=.venv-mxnet/bin/python")
    if chosen.chart and not chosen.chart.endswith(PICTURES):
        parser.error(f"--chart {chosen.chart}: a name that ends in {', '.join(PICTURES)} is wanted")
    if chosen.chart and find_spec("matplotlib") is None:  # to be told after the measurements would be too late
        parser.error("--chart needs matplotlib: pip install matplotlib")
    if chosen.name is not None and not chosen.submit:
        parser.error("--as NAME goes with --submit FOLDER")
    if chosen.rounds is not None and chosen.rounds < 1:
        parser.error(f"--rounds {chosen.rounds}: at least 1")
    return chosen


def quick_setups(work: Workload) -> list[tuple[str, str]]:
    """What a quick run measures: all of minimx, and of each peer the last variant that is soon set up, which is its fastest."""
    last = {peer: variant for peer, variant in work.setups if variant != SLOW}
    return [(peer, variant) for peer, variant in work.setups if peer == "minimx" or last.get(peer) == variant]


def run(works: list[Workload], chosen: argparse.Namespace) -> list[Row]:
    """Measure workloads, and print the table of each as soon as it is done."""
    found = interpreters(dict(each.split("=", 1) for each in chosen.python))
    for name, how in INSTALL.items():
        if name not in found and any(name == peer for work in works for peer, _ in work.setups):
            print(f"  {name} is not installed ({how})", file=sys.stderr)
    peers = set(found if chosen.peers is None else chosen.peers.split(",")) | {"minimx"}
    rounds = chosen.rounds or (QUICK_ROUNDS if chosen.quick else ROUNDS)
    peers &= set(found)
    wanted = [[each for each in (quick_setups(work) if chosen.quick else work.setups) if each[0] in peers] for work in works]
    progress = Progress(sum(len(each) * (rounds + 1) for each in wanted))
    rows: list[Row] = []
    for work, variants in zip(works, wanted):
        seconds = QUICK_SECONDS if chosen.quick else SECONDS
        progress.what = work.name
        limit = QUICK_LIMIT if chosen.quick and chosen.rounds is None else math.inf
        mine = measure(work, variants, found, rounds, seconds, progress.step, limit)
        progress.clear()
        print(report.table(work, mine), flush=True)
        rows += mine
    return rows


def main(arguments: list[str] | None = None) -> None:
    """The command line. Exits with status 1 for --check, if a bar is missed."""
    chosen = options(sys.argv[1:] if arguments is None else arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # bars, into a file on Windows
    if chosen.merge:
        words, found = report.merged(chosen.merge)
        print(words)
        if not found:
            sys.exit(1)
        if chosen.chart:
            report.class_chart(chosen.chart, found, workloads())
        return
    every = workloads()
    names = {name.upper() for name in chosen.workloads}
    unknown = names - {work.name for work in every}
    if unknown:
        sys.exit(f"bench: there is no workload {', '.join(sorted(unknown))}; there are {', '.join(work.name for work in every)}")
    works = [work for work in every if (work.name in names if names else work.quick or not chosen.quick)]
    rows = run(works, chosen)
    if chosen.json:
        report.write_json(chosen.json, rows)
    if chosen.submit:
        print(f"written: {report.submit(chosen.submit, rows, chosen.name)}")
    if chosen.chart:
        report.chart(chosen.chart, works, rows)
    words, met = report.bars(works, rows, unmeasured=not chosen.quick)
    if words and not chosen.submit:  # a class's machines are slower or faster, and no student has missed anything
        print(f"what minimx is held to\n{words}")
    if chosen.check and not met:
        sys.exit(1)


if __name__ == "__main__":
    main()
