"""Tables and trace files: their forms, and that a file can be read whatever goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import minimx as mx
from minimx import MXNetError, engine, nd, profiler
from minimx.base import ArgumentError, MissingFileError
from minimx.engine.events import watch
from minimx.profiler import control, log
from minimx.profiler.statistics import Statistics, add

from .helpers import LARGE, counts, events, script, tables, trace

Record = Callable[..., None]


# ---- tables


def example() -> Statistics:
    statistics = Statistics()
    for name, seconds in (("dot", 0.004), ("dot", 0.002), ("exp", 0.001), ("log", 0.010)):
        add(statistics.times, "operator", name, seconds)
    for value in (1000, 4000):
        add(statistics.memory, "Device Storage", "Memory: cpu/0", value)
    add(statistics.counters, "mine", "steps", 7)
    return statistics


def test_tables_as_json() -> None:
    found = json.loads(example().json("total", False))
    assert found == {
        "Time": {
            "operator": {
                "log": {"Count": 1, "Total": 10.0, "Min": 10.0, "Max": 10.0, "Avg": 10.0},
                "dot": {"Count": 2, "Total": 6.0, "Min": 2.0, "Max": 4.0, "Avg": 3.0},
                "exp": {"Count": 1, "Total": 1.0, "Min": 1.0, "Max": 1.0, "Avg": 1.0},
            }
        },
        "Memory": {"Device Storage": {"Memory: cpu/0": {"Count": 2, "Min": 1.0, "Max": 4.0, "Avg": 2.5}}},
        "Counter": {"mine": {"steps": {"Count": 1, "Last": 7.0, "Min": 7.0, "Max": 7.0, "Avg": 7.0}}},
        "Unit": {"Time": "ms", "Memory": "kB"},
    }
    assert list(found["Time"]["operator"]) == ["log", "dot", "exp"]
    assert json.loads(Statistics().json("avg", True)) == {"Time": {}, "Memory": {}, "Unit": {"Time": "ms", "Memory": "kB"}}


@pytest.mark.parametrize(
    ("sort_by", "order"),
    [("total", "log dot exp"), ("avg", "log dot exp"), ("min", "log dot exp"), ("max", "log dot exp"), ("count", "dot exp log")],
)
def test_tables_are_sorted(sort_by: str, order: str) -> None:
    names = order.split()
    assert list(json.loads(example().json(sort_by, False))["Time"]["operator"]) == names
    up = {"total": "exp dot log", "count": "exp log dot"}.get(sort_by, "exp dot log").split()
    assert list(json.loads(example().json(sort_by, True))["Time"]["operator"]) == up


def test_tables_as_text_have_the_columns_of_mxnet() -> None:
    lines = example().table("total", False).splitlines()
    assert lines[:2] == ["", "Profile Statistics:"]
    start = lines.index("operator")
    assert lines[start + 1] == "================="
    assert lines[start + 2].split("  ")[0] == "Name"
    assert " ".join(lines[start + 2].split()) == "Name Total Count Time (ms) Min Time (ms) Max Time (ms) Avg Time (ms)"
    assert [line.split() for line in lines[start + 4 : start + 7]] == [
        ["log", "1", "10.0000", "10.0000", "10.0000", "10.0000"],
        ["dot", "2", "6.0000", "2.0000", "4.0000", "3.0000"],
        ["exp", "1", "1.0000", "1.0000", "1.0000", "1.0000"],
    ]
    assert len({len(line) for line in lines[start + 2 : start + 7]}) == 1
    assert "Memory: cpu/0" in "\n".join(lines)


def test_a_reset_begins_the_tables_anew(record: Record) -> None:
    record()
    nd.ones((2,))
    assert "_ones" in profiler.dumps(reset=True)
    nd.zeros((2,))
    assert counts() == {"_zeros": 1}


def test_tables_must_be_asked_for() -> None:
    profiler.set_config(continuous_dump=False)
    profiler.set_state("run")
    nd.ones((2,))
    with pytest.warns(UserWarning, match=r"set_config\(aggregate_stats=True\)"):
        assert profiler.dumps() == ""
    profiler.set_config(aggregate_stats=True, continuous_dump=False)
    nd.zeros((2,))
    assert counts() == {"_zeros": 1}


# ---- trace files


def test_a_trace_file_names_its_rows_and_nests(record: Record) -> None:
    record()
    name = 'a "quoted"\n\\ name, “é” 数 \ud800'
    with mx.device.simulate_gpus(1):
        nd.ones((LARGE,)).as_in_context(mx.gpu(0)).wait_to_read()
        engine.push(lambda: None, name=name, context=mx.gpu(0))
        profiler.Marker(profiler.Domain("mine"), "now").mark("global")
        profiler.set_state("stop")
    profiler.dump()
    entries = trace()
    rows = {entry["tid"]: entry["args"]["name"] for entry in entries if entry["name"] == "thread_name"}
    assert list(rows.values()) == ["cpu(0)", "gpu(0) in", "gpu(0)", "thread MainThread"]
    assert {entry["pid"] for entry in entries} == {os.getpid()}
    work = {(rows[entry["tid"]], entry["name"]) for entry in entries if entry["ph"] == "X" and entry["cat"] == "operator"}
    assert work == {("cpu(0)", "_ones"), ("gpu(0) in", "_copyto"), ("gpu(0)", name)}
    assert all(entry["ts"] >= 0 and entry["dur"] >= 0 for entry in entries if entry["ph"] == "X")
    (mark,) = [entry for entry in entries if entry["ph"] == "i"]
    assert (mark["name"], mark["s"], mark["cat"]) == ("now", "g", "mine,instant_marker")
    assert "test_files.py, line" in mark["args"]["line"]
    memory = [entry for entry in entries if entry["ph"] == "C"]
    assert memory[-1]["name"].startswith("Memory: ")
    assert memory[-1]["args"][memory[-1]["name"]] >= 0


def test_bars_of_a_row_never_overlap_but_nest(record: Record) -> None:
    """As the format demands: of two bars of a row one is inside the other, or they do not meet."""
    record()
    net = mx.gluon.nn.Dense(4)
    net.initialize()
    net.hybridize()

    def work() -> None:
        for _ in range(20):
            (net(nd.ones((2, 3))) + nd.ones((LARGE,)).sum()).asnumpy()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    profiler.dump()
    rows: dict[int, list[tuple[float, float]]] = {}
    for entry in trace():
        if entry["ph"] == "X":
            rows.setdefault(entry["tid"], []).append((entry["ts"], -entry["ts"] - entry["dur"]))
    assert len(rows) > 3
    for bars in rows.values():
        open_until: list[float] = []
        for start, negative_end in sorted(bars):
            while open_until and open_until[-1] <= start + 0.002:  # microseconds: times are rounded to a thousandth
                open_until.pop()
            assert not open_until or -negative_end <= open_until[-1] + 0.002
            open_until.append(-negative_end)


def test_files_are_whole_while_work_goes_on(record: Record) -> None:
    record()
    stop, faults = threading.Event(), []

    def read() -> None:
        while not stop.is_set():
            try:
                trace()
            except FileNotFoundError:
                pass
            except Exception as error:
                faults.append(error)

    def work() -> None:
        for _ in range(300):
            (nd.ones((50,)) + 1).asnumpy()

    threads = [threading.Thread(target=read), *(threading.Thread(target=work) for _ in range(2))]
    for thread in threads:
        thread.start()
    sizes = []
    while any(thread.is_alive() for thread in threads[1:]) or len(sizes) < 3:
        profiler.dump(False)
        sizes.append(os.path.getsize("profile.json"))
    stop.set()
    for thread in threads:
        thread.join()
    assert faults == []
    assert sizes == sorted(sizes)
    assert not [name for name in os.listdir() if name.endswith(".tmp")]


def test_a_killed_process_leaves_a_whole_file(tmp_path: Path) -> None:
    source = """
        import minimx as mx
        mx.profiler.set_config(filename="killed.json", dump_period=0.005)
        mx.profiler.set_state("run")
        print("running", flush=True)
        while True:
            (mx.nd.ones((100,)) + 1).asnumpy()
    """
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(source)], stdout=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    file = tmp_path / "killed.json"
    end = time.monotonic() + 30
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.01)
    process.kill()
    process.wait()
    process.stdout.close()
    assert any(entry["name"] == "_plus_scalar" for entry in trace(file))


def test_dump_twice_and_again_after_a_new_start(record: Record) -> None:
    record()
    nd.ones((2,))
    profiler.dump()
    assert not control.profiler.running
    first = Path("profile.json").read_text()
    profiler.dump()
    assert Path("profile.json").read_text() == first
    profiler.set_state("run")
    nd.zeros((2,))
    profiler.dump(False)
    assert control.profiler.running
    assert [entry["name"] for entry in trace() if entry.get("cat") == "operator"] == ["_zeros"]
    nd.zeros((2,))
    profiler.set_state("stop")
    profiler.set_state("run")  # goes on
    profiler.dump()
    assert [entry["name"] for entry in trace() if entry.get("cat") == "operator"] == ["_zeros", "_zeros"]


def test_a_continuous_dump_is_complete_when_the_profiler_stops() -> None:
    profiler.set_config(filename="all.json", dump_period=1000)
    profiler.set_state("run")
    (nd.ones((LARGE,)) + 1).wait_to_read()
    profiler.set_state("stop")
    assert {entry["name"] for entry in trace("all.json")} >= {"_ones", "_plus_scalar"}


def test_a_file_that_cannot_be_written(record: Record) -> None:
    with pytest.raises(MXNetError, match="has not run"):
        profiler.dump()
    record(filename="no such folder/profile.json")
    with pytest.raises(MissingFileError, match="no such folder"):
        profiler.dump()
    assert not control.profiler.running


def test_a_long_recording_is_bounded(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MOST", 5)
    record(profile_memory=False)
    for _ in range(2500):
        nd.ones((2,))
    assert counts() == {"_ones": 2500}
    assert len(events()) == 5
    profiler.dump()
    assert json.loads(Path("profile.json").read_text())["otherData"] == {"left_out": 2495}
    with pytest.warns(UserWarning, match="2495 later events are in the tables"):
        profiler.timeline()


# ---- options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"profile_everything": True}, "no option 'profile_everything'; the options are profile_all, filename"),
        ({"contiguous": True}, "no option 'contiguous'"),
        ({"profile_all": "maybe"}, "profile_all must be True or False, got 'maybe'"),
        ({"profile_memory": 3}, "profile_memory must be True or False"),
        ({"filename": ""}, "cannot be a file's name"),
        ({"filename": 3}, "a file's name is wanted"),
        ({"dump_period": "soon"}, "dump_period must be a number"),
        ({"dump_period": 0}, "dump_period is 0; a number of seconds above 0"),
        ({"dump_period": float("nan")}, "above 0"),
        ({"profile_process": "server"}, "minimx has no servers"),
        ({"profile_process": "both"}, "'worker' is the only kind"),
    ],
)
def test_bad_options(options: dict[str, object], message: str) -> None:
    before = control.profiler.config
    with pytest.raises(ArgumentError, match=message):
        profiler.set_config(**options)
    assert control.profiler.config is before


def test_bad_calls() -> None:
    for call in (lambda: profiler.set_state("go"), lambda: profiler.set_state("run", "nobody"), lambda: profiler.pause("server")):
        with pytest.raises(ArgumentError):
            call()
    with pytest.raises(KeyError):  # as in MXNet
        profiler.set_state("go")
    for options in ({"format": "xml"}, {"sort_by": "name"}, {"ascending": 2}, {"reset": "x"}, {"format": None}):
        with pytest.raises(ArgumentError, match=r"profiler\.dumps"):
            profiler.dumps(**options)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="finished"):
        profiler.dump("yes")  # type: ignore[arg-type]


def test_deprecated_names() -> None:
    with pytest.warns(UserWarning, match=r"profiler\.set_config"):
        profiler.profiler_set_config("all", "old.json")
    with pytest.warns(UserWarning, match=r"profiler\.set_state"):
        profiler.profiler_set_state("run")
    nd.ones((2,))
    with pytest.warns(UserWarning, match=r"profiler\.dump"):
        profiler.dump_profile()
    assert any(entry["name"] == "_ones" for entry in trace("old.json"))
    with pytest.warns(UserWarning, match="deprecated"), pytest.raises(ArgumentError, match="mode is 'none'"):
        profiler.profiler_set_config("none")


def test_options_as_text_and_in_mid_run(record: Record) -> None:
    record(profile_imperative="False", filename=Path("a.json"))
    nd.ones((2,))
    profiler.set_config(profile_imperative="true", aggregate_stats=1, continuous_dump=False)
    nd.zeros((2,))
    assert counts() == {"_zeros": 1}
    assert tables()["Unit"] == {"Time": "ms", "Memory": "kB"}


# ---- the process


def test_the_environment_can_start_it(tmp_path: Path) -> None:
    source = """
        import os, sys; os.chdir(sys.argv[1])
        import minimx as mx
        net = mx.gluon.nn.Dense(3); net.initialize(); net.hybridize()
        net(mx.nd.ones((2, 2))); mx.nd.ones((3,)) + 1
    """
    for mode, wanted in (("", {"FullyConnected", "_plus_scalar"}), ("1", {"FullyConnected", "_plus_scalar"}), ("0", {"FullyConnected"}),
                         ("2", {"_plus_scalar"})):  # fmt: skip
        done = script(source, str(tmp_path), MXNET_PROFILER_AUTOSTART="1", MXNET_PROFILER_MODE=mode)
        assert (done.returncode, done.stderr) == (0, "")
        assert {entry["name"] for entry in trace(tmp_path / "profile.json")} & {"FullyConnected", "_plus_scalar"} == wanted
    assert "must be at most 15" in script("import minimx", MXNET_PROFILER_MODE="16").stderr


def test_a_program_that_ends_while_it_runs_leaves_a_file(tmp_path: Path) -> None:
    done = script(
        """
        import os, sys; os.chdir(sys.argv[1])
        import minimx as mx
        mx.profiler.set_state("run")
        x = mx.nd.ones((300_000,)) + 1
        """,
        str(tmp_path),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert any(entry["name"] == "_plus_scalar" for entry in trace(tmp_path / "profile.json"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_begins_without_it(tmp_path: Path) -> None:
    done = script(
        """
        import os, sys; os.chdir(sys.argv[1])
        import minimx as mx
        from minimx.engine.events import watch
        from minimx.engine import front
        mx.profiler.set_config(continuous_dump=False)
        mx.profiler.set_state("run")
        mx.nd.ones((2,))
        child = os.fork()
        if not child:
            good = watch.direct and not watch.on and not front.shortcuts.blocked
            mx.nd.zeros((2,))
            mx.profiler.set_state("stop")
            mx.profiler.set_config(filename="child.json", continuous_dump=False)
            mx.profiler.set_state("run")
            mx.nd.full((2,), 3)
            mx.profiler.dump()
            os._exit(not good)
        _, status = os.waitpid(child, 0)
        mx.nd.arange(3)
        mx.profiler.dump()
        sys.exit(status)
        """,
        str(tmp_path),
    )
    assert (done.returncode, done.stderr) == (0, "")
    names = [
        [entry["name"] for entry in trace(tmp_path / name) if entry.get("cat") == "operator"]
        for name in ("profile.json", "child.json")
    ]
    assert names == [["_ones", "_arange"], ["_full"]]


def test_a_profiler_that_stops_leaves_no_trace_in_the_engine(record: Record) -> None:
    for _ in range(3):
        record()
        profiler.pause()
        profiler.pause()
        profiler.resume()
        profiler.set_state("run")
        profiler.set_state("stop")
        profiler.set_state("stop")
    assert watch.direct
    assert not watch.on
