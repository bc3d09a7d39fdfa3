"""Several processes, started by mpiexec: the same parameters as one, and an end that is told when a process is lost."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

MPIEXEC = Path(sys.executable).parent / "mpiexec"
SCRIPT = Path(__file__).with_name("train.py")

pytest.importorskip("mpi4py")
pytestmark = [
    pytest.mark.skipif(not MPIEXEC.exists(), reason="there is no mpiexec beside this Python: pip install 'minimx[dist]'"),
    pytest.mark.slow,
]


def run(count: int, folder: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], dict[int, Any]]:
    """`count` processes of train.py: how they ended, and what each rank had to tell."""
    for old in folder.glob("out-*"):
        old.unlink()
    command = [sys.executable, str(SCRIPT), str(folder / "out"), *arguments]
    if count > 1:
        command = [str(MPIEXEC), "-n", str(count), *command]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90, stdin=subprocess.DEVNULL)
    return done, {int(path.name[4:]): json.loads(path.read_text()) for path in folder.glob("out-*")}


def close(found: Any, wanted: Any) -> None:
    assert len(found) == len(wanted)
    for mine, its in zip(found, wanted):
        np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The parameters that one process trains."""
    done, found = run(1, tmp_path_factory.mktemp("alone"), "trained", "device", "False")
    assert done.returncode == 0, done.stderr
    return found[0]


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize(("kvstore", "on_store"), [("dist_sync", "True"), ("dist_device_sync", "False"), ("horovod", "None")])
def test_many_processes_are_one(count: int, kvstore: str, on_store: str, tmp_path: Path, alone: Any) -> None:
    done, found = run(count, tmp_path, "trained", kvstore, on_store)
    assert done.returncode == 0, done.stderr
    assert sorted(found) == list(range(count))
    for rank in range(count):
        assert found[rank] == found[0]
    close(found[0], alone)


@pytest.mark.parametrize(("before", "after"), [(2, 4), (4, 1)])
def test_a_checkpoint_goes_on_with_another_number_of_processes(before: int, after: int, tmp_path: Path, alone: Any) -> None:
    done, _ = run(before, tmp_path, "trained", "dist_sync", "False", "0", "5", str(tmp_path))
    assert done.returncode == 0, done.stderr
    done, found = run(after, tmp_path, "trained", "dist_sync", "False", "5", "12", str(tmp_path))
    assert done.returncode == 0, done.stderr
    close(found[0], alone)


def test_values(tmp_path: Path) -> None:
    done, found = run(3, tmp_path, "values")
    assert done.returncode == 0, done.stderr
    for rank in range(3):
        assert found[rank] == {
            "rank": rank,
            "size": 3,
            "type": "dist_sync",
            "first": [3, 3],
            "pushed": [9, 9],
            "big": [6, 6, 6],
            "mixed": [[3, 3, 3]] * 3,
            "compressed": [1.5, -1.5, 0, 0],
            "horovod": [[0, 0], rank, rank, 3],
        }


def test_one_process_is_enough(tmp_path: Path) -> None:
    done, found = run(1, tmp_path, "values")
    assert done.returncode == 0, done.stderr
    assert found[0]["pushed"] == [2, 2]
    assert found[0]["compressed"] == [0.5, -0.5, 0, 0]


@pytest.mark.parametrize(
    ("how", "told"),
    [("killed", r"rank 2 \(process \d+\) is dead"), ("raises", "rank 2 has ended after 1"), ("ends", "rank 2 has ended after 1")],
)
def test_a_lost_process_is_reported_by_name(how: str, told: str, tmp_path: Path) -> None:
    done, found = run(3, tmp_path, "lost", how)
    assert sorted(found) == [0, 1], done.stderr
    for rank in (0, 1):
        assert found[rank]["seconds"] < 20
        assert re.search(told, found[rank]["error"]), found[rank]["error"]
        assert found[rank]["error"].startswith(f"rank {rank} of 3 waits for the sum of gradients")
    assert done.returncode
    if how == "killed":
        assert "rank 2" in done.stderr
        assert "was killed by signal 9" in done.stderr
    if how == "raises":
        assert "ValueError: a mistake" in done.stderr
