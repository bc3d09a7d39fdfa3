"""The benchmarks: what is made of measurements, a peer that fails, and the command line from end to end. Nothing here is timed."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def modules() -> Iterator[tuple[Any, Any]]:
    """`harness` and `report`, which stand beside the workloads and are imported by name there."""
    before: dict[str, ModuleType | None] = {name: sys.modules.get(name) for name in ("harness", "report")}
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import harness
        import report

        yield harness, report
    finally:
        sys.path.remove(str(BENCHMARKS))
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module


def rows_of(harness: Any, **medians: float) -> list[Any]:
    """Rows of a workload W0: torch_eager=0.002 is the median of PyTorch's variant eager."""
    found = []
    for title, median in medians.items():
        peer, _, variant = title.partition("_")
        found.append(harness.Row("W0", "a call", peer, variant, [median * 2, median, median], 100.0))
    return found


def test_a_table_has_the_ratio_to_the_best_of_the_others(modules: tuple[Any, Any]) -> None:
    harness, report = modules
    work = harness.Workload("w0_nothing.py", "nothing")
    rows = rows_of(harness, torch_eager=0.004, minimx_eager=0.001, torch_compiled=0.002, numpy=0.0005)
    lines = report.table(work, rows).splitlines()
    assert lines[0] == "W0  nothing"
    titles = [line[4:36].strip() for line in lines[2:]]
    assert titles == ["numpy", "minimx eager", "torch compiled", "torch eager"]
    assert [float(line[60:68]) for line in lines[2:]] == [0.25, 0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    ("metric", "value", "words"),
    [
        ("a call", 0.25, "250 ms"), ("a call", 3.14159, "3.14 s "), ("a call", 2.5e-6, "2.50 us"), ("a call", 1e-8, "0.01 us"),
        ("a call", 12.3e-3, "12.3 ms"), ("one / two (ratio)", 0.5555, "0.555   "), ("a call", 1234.5, "1234 s "),
    ],
)  # fmt: skip
def test_values_have_three_digits(modules: tuple[Any, Any], metric: str, value: float, words: str) -> None:
    assert modules[1].shown(metric, value) == words


def test_what_minimx_is_held_to(modules: tuple[Any, Any]) -> None:
    harness, report = modules
    rows = rows_of(harness, minimx_eager=0.003, minimx_static=0.001, torch_eager=0.002, mxnet_eager=0.004, numpy=0.0001)
    bars = (
        harness.Bar("a call", 1.0),
        harness.Bar("a call", 1.2, variants=("eager",)),
        harness.Bar("a call", 1.0, variants=("eager",), against=("mxnet",)),
        harness.Bar("a call", 1.0, against=("numpy",)),
        harness.Bar("a call", 1.0, against=("jax jit",)),
        harness.Bar("a call", 0.001, absolute=True),
        harness.Bar("a call", 0.0005, absolute=True),
    )
    words, met = report.bars([harness.Workload("w0_nothing.py", "nothing", bars=bars)], rows)
    assert not met
    assert words.splitlines() == [
        "  met     W0 a call: 0.50 of torch eager, bar 1",
        "  MISSED  W0 a call (eager): 1.50 of torch eager, bar 1.2",
        "  met     W0 a call (eager): 0.75 of mxnet eager, bar 1",
        "  MISSED  W0 a call: 10.00 of numpy, bar 1",
        "  -       W0 a call: not measured beside jax jit",
        "  met     W0 a call: 1.00 ms, bar 1.00 ms",
        "  MISSED  W0 a call: 1.00 ms, bar 500 us",
    ]


def test_names_of_a_class_are_plain(modules: tuple[Any, Any]) -> None:
    stems = ["ada-20260131-100000-4711", "ada-20260131-110000-12", "bo-b", "my-laptop-2-20260131-100000-1"]
    assert modules[1].plain_names(stems) == ["ada", "ada (2)", "bo-b", "my-laptop-2"]


def test_a_class_in_one_table(modules: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    harness, report = modules
    rows = rows_of(harness, minimx_eager=0.003, minimx_static=0.001, torch_eager=0.002)
    first = report.submit(tmp_path / "results", rows, "ada")
    second = first.with_name("other.json")
    found = json.loads(first.read_text())
    found["rows"] = found["rows"][:1]
    second.write_text(json.dumps(found))
    (tmp_path / "results" / "broken.json").write_text('{"rows": [1]}')
    words, machines = report.merged(tmp_path / "results")
    assert {name for name, _ in machines} == {"ada", "other"}  # not ada-20260131-100000-4711
    assert "2 machines, the fastest first." in words
    head = words.splitlines().index("W0  a call") + 1
    assert words.splitlines()[head] == "  machine                                       time   ratio   cores x processor"
    assert words.splitlines()[head + 1].startswith("  ada                                        1.00 ms    0.50   ")
    assert "  median of the class                        2.00 ms    0.50" in words.splitlines()
    assert "broken.json is no result of `python -m minimx bench`" in words
    mine = next(line for line in words.splitlines() if line.strip().startswith("ada "))
    assert "1.00 ms" in mine
    assert "0.50" in mine
    assert report.read_json(first)[1] == rows
    pytest.importorskip("matplotlib")
    drawn: list[list[Any]] = []
    original = report.chart
    monkeypatch.setattr(report, "chart", lambda path, works, rows: (drawn.append(rows), original(path, works, rows)))
    report.class_chart(tmp_path / "class.svg", machines)
    monkeypatch.undo()
    assert [(row.title, row.median) for row in drawn[0]] == [("ada", 0.001), ("other", 0.003), ("median of the class", 0.002)]
    report.chart(tmp_path / "rows.svg", [], machines[0][1])
    assert "<svg" in (tmp_path / "class.svg").read_text()
    assert "<svg" in (tmp_path / "rows.svg").read_text()


def test_a_folder_without_results(modules: tuple[Any, Any], tmp_path: Path) -> None:
    assert modules[1].merged(tmp_path) == (f"no results in {tmp_path}", [])


PEERS = """
import os, sys
from harness import Workload, prepared

work = Workload(__file__, "peers that fail")

@work.files
def _(folder):
    (folder / "answer").write_text("42")

@work.peer("good")
def _():
    number = float(open(prepared("answer")).read())
    return lambda: {"a number": number}

@work.peer("absent")
def _():
    import a_package_that_there_is_not

@work.peer("wrong")
def _():
    raise ValueError("this cannot be set up")

@work.peer("dies", LATER="1")
def _():
    left = [2]
    def unit():
        left[0] -= 1
        if left[0] < 0:
            print("killed by itself", file=sys.stderr, flush=True)
            os._exit(int(os.environ["LATER"]))
        return {"a number": 1.0}
    return unit

if __name__ == "__main__":
    work.main()
"""


def test_a_peer_that_fails_is_left_out(modules: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    harness, _ = modules
    path = tmp_path / "w0_peers.py"
    path.write_text(PEERS)
    monkeypatch.setenv("PYTHONPATH", str(BENCHMARKS))
    names: dict[str, Any] = {"__file__": str(path), "__name__": "w0_peers"}
    exec(compile(PEERS, str(path), "exec"), names)
    work = names["work"]
    told: list[str] = []
    rows = harness.measure(work, list(work.setups), {}, 2, 0.0, told.append)
    assert [row.title for row in rows] == ["good"]
    assert rows[0].samples == [42.0, 42.0]
    assert rows[0].memory > 1
    left = [words for words in told if "left out" in words]
    assert left == [
        "absent: left out (No module named 'a_package_that_there_is_not')",
        "wrong: left out (ValueError: this cannot be set up)",
        "dies: left out (killed by itself)",
    ]


def test_a_limit_of_time_ends_the_rounds(modules: tuple[Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One round there always is."""
    harness, _ = modules
    path = tmp_path / "w0_peers.py"
    path.write_text(PEERS)
    monkeypatch.setenv("PYTHONPATH", str(BENCHMARKS))
    names: dict[str, Any] = {"__file__": str(path), "__name__": "w0_peers"}
    exec(compile(PEERS, str(path), "exec"), names)
    (row,) = harness.measure(names["work"], [("good", "")], {}, 5, 0.0, lambda words: None, limit=0.0)
    assert row.samples == [42.0]


def test_a_peer_that_never_answers(modules: tuple[Any, Any], tmp_path: Path) -> None:
    """It is given up after its time, and killed."""
    harness, _ = modules
    path = tmp_path / "w0_silent.py"
    path.write_text("import time\ntime.sleep(600)\n")
    work = harness.Workload(str(path), "silence")
    work.peer("silent")(lambda: None)
    peer = harness.Peer(work, "silent", "", sys.executable, str(tmp_path))
    assert peer.answer(0.05) == {"absent": "no answer in 0.05 s"}
    peer.close()
    assert peer._process.poll() is not None
    assert not peer._reader.is_alive()


def test_a_quick_run_measures_a_variant_a_peer(modules: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    harness, _ = modules
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    run = importlib.import_module("run")
    work = harness.Workload("w0_nothing.py", "nothing")
    for peer, variant in [("torch", "eager"), ("torch", "traced"), ("torch", "compiled"), ("mlx", "compiled"), ("numpy", "")]:
        work.peer(peer, variant)(lambda: None)
    for variant in ("eager", "hybridized"):
        work.peer("minimx", variant)(lambda: None)
    chosen = [f"{peer} {variant}".strip() for peer, variant in run.quick_setups(work)]
    assert chosen == ["torch traced", "numpy", "minimx eager", "minimx hybridized"]
    sys.modules.pop("run")


def test_whose_results_they_are(modules: tuple[Any, Any], tmp_path: Path) -> None:
    harness, report = modules
    path = report.submit(tmp_path, rows_of(harness, minimx_eager=0.003), "Ada L.")
    assert path.name.startswith("Ada-L.-")
    bars = (harness.Bar("a call", 1.0), harness.Bar("a call", 0.1, absolute=True))
    work = harness.Workload("w0_nothing.py", "nothing", bars=bars)
    assert report.bars([work], report.read_json(path)[1], unmeasured=False)[0] == "  met     W0 a call: 3.00 ms, bar 100 ms"


def test_the_command_line(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "minimx", "bench", "w2", "--peers", "numpy", "--rounds", "1", "--json", "found.json"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "W2  what an operation costs" in done.stdout
    assert "W2 a * a + 2: not measured beside torch" in done.stdout
    rows = json.loads((tmp_path / "found.json").read_text())["rows"]
    assert {(row["peer"], row["variant"]) for row in rows} == {("minimx", "eager"), ("minimx", "hybridized"), ("numpy", "")}
    assert all(row["median"] > 0 and row["memory"] > 10 for row in rows)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["W99"], "there is no workload W99; there are W1, W2, W3"),
        (["--rounds", "0"], "--rounds 0: at least 1"),
        (["--python", "torch"], "--python torch: PEER=PATH is wanted"),
        (["--merge", "nowhere"], "no results in nowhere"),
        (["--chart", "class.xyz"], "--chart class.xyz: a name that ends in .svg, .png, .pdf is wanted"),
        (["--as", "ada"], "--as NAME goes with --submit FOLDER"),
    ],
)
def test_bad_input(tmp_path: Path, arguments: list[str], words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "minimx", "bench", *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert words in done.stdout + done.stderr
