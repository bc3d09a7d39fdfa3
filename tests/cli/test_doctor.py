"""`python -m minimx doctor`: what each check says of installations that lack something, or are wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from minimx import __main__ as command
from minimx.cli import checks, doctor, finding, places
from minimx.cli.finding import NOTE, OK, PROBLEM, Finding

BLAS = {"user_api": "blas", "internal_api": "openblas", "version": "0.3", "num_threads": 4, "filepath": "libopenblas.so"}


def found(check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    return list(check())


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets the libraries with threads that are said to be loaded."""

    def load(*libraries: dict[str, Any]) -> None:
        monkeypatch.setattr(checks.threadpoolctl, "threadpool_info", lambda: list(libraries))

    return load


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets the packages that are said to be installed."""

    def install(**versions: str) -> None:
        for module in (checks, places):
            monkeypatch.setattr(module, "version_of", lambda name: versions.get(name.replace("-", "_")))

    return install


def test_the_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CHECKS", (checks.arithmetic,))
    monkeypatch.setattr(sys, "argv", ["minimx", "doctor"])
    assert command.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("minimx ")
    assert lines[3] == "  ok      a layer and its gradient, as Python code and as a program, give the right numbers"
    assert lines[-1].startswith("No problem, 0 notes.")


def test_a_problem_is_exit_status_1(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Iterator[Finding]:
        yield Finding(NOTE, "could be had", "pip install it")
        raise OSError("no such device")

    monkeypatch.setattr(doctor, "CHECKS", (broken, checks.arithmetic))
    monkeypatch.setattr(sys, "argv", ["minimx", "doctor"])
    assert command.main() == 1
    text = capsys.readouterr().out
    assert "  note    could be had\n          > pip install it\n" in text
    assert "  problem the check of broken failed: OSError: no such device\n" in text
    assert "  ok      a layer" in text
    assert "1 problem, 1 note." in text


def test_one_command_for_all_that_could_be_had() -> None:
    found = [finding.lacking("no numba", "numba"), finding.lacking("no numba, and no onnx", "numba", "onnx")]
    assert doctor.summary(found).splitlines()[-1].endswith("pip install numba onnx")
    assert len(doctor.summary(found[:1]).splitlines()) == 1


def test_all_checks_in_a_process_of_its_own() -> None:
    """Whatever this machine has: each line has a state, and the status says whether there is a problem."""
    done = subprocess.run([sys.executable, "-m", "minimx", "doctor"], capture_output=True, text=True, timeout=110)
    assert done.stderr == ""
    states = [line[2:10].strip() for line in done.stdout.splitlines()[3:] if line.startswith("  ") and line[2:10].strip()]
    assert set(states) <= {OK, NOTE, PROBLEM}
    assert len(states) >= 10
    assert "failed:" not in done.stdout
    assert done.returncode == int(PROBLEM in states)


def test_one_thread_for_all_cores(pools: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "available", lambda: 8)
    monkeypatch.setattr(checks, "quota", lambda: None)
    monkeypatch.setenv("OMP_NUM_THREADS", "1,2")
    pools({**BLAS, "num_threads": 1})
    (one,) = found(checks.blas)
    assert one.state == PROBLEM
    assert "openblas 0.3 with 1 thread, but there are 8 cores, for OMP_NUM_THREADS is 1" in one.text
    assert one.remedy == finding.setting("OMP_NUM_THREADS", None)
    pools(BLAS)
    assert [each.state for each in checks.blas()] == [OK]
    pools()
    assert "by itself" in found(checks.blas)[0].text


def test_a_container_that_allows_less_than_it_shows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(checks, "available", lambda: 64)
    monkeypatch.setattr(checks, "CGROUP", str(tmp_path / "cpu.max"))
    for name in checks.THREADS:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "cpu.max").write_text("250000 100000\n")
    (one,) = found(checks.cores)
    assert one.state == PROBLEM
    assert "may use 2.5 cores, but sees 64" in one.text
    assert one.remedy == finding.setting("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert found(checks.cores)[0].state == OK
    for text in ("max 100000\n", "nonsense\n"):
        (tmp_path / "cpu.max").write_text(text)
        assert checks.quota() is None
    (tmp_path / "cpu.max").unlink()
    assert checks.quota() is None


def test_two_openmp_runtimes(pools: Callable[..., None]) -> None:
    gnu = {"user_api": "openmp", "internal_api": "openmp", "filepath": "libgomp.so"}
    pools(BLAS, gnu, gnu)
    assert found(checks.openmp) == []
    pools({**BLAS, "internal_api": "mkl"}, gnu, {**gnu, "filepath": "libiomp5.so"})
    (one,) = found(checks.openmp)
    assert one.state == PROBLEM
    assert "libgomp.so, libiomp5.so" in one.text
    assert one.remedy == finding.setting("MKL_THREADING_LAYER", "GNU")


def test_without_faster_kernels(packages: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    packages()
    monkeypatch.setattr(checks.library, "find", lambda: None)
    monkeypatch.setattr(checks.library, "troubles", lambda: ["libdnnl.so.3: for threads of kind 4"])
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(checks.platform, "machine", lambda: "x86_64")
    assert [each.state for each in checks.layers()] == [PROBLEM, NOTE]
    assert found(checks.layers)[1].remedy.endswith("pip install onednn-cpu-gomp")
    monkeypatch.setattr(checks.platform, "machine", lambda: "aarch64")
    assert found(checks.layers)[1].remedy == ""
    assert found(checks.loops)[0].remedy.endswith("pip install llvmlite")


def test_a_gpu_without_cupy(packages: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    packages()
    monkeypatch.setattr(checks, "driver", lambda: None)
    assert [each.state for each in checks.gpus()] == [OK]
    for number, package in ((580, "cupy-cuda13x"), (550, "cupy-cuda12x")):
        monkeypatch.setattr(checks, "driver", lambda number=number: ("H200", number))
        (one,) = found(checks.gpus)
        assert one.state == NOTE
        assert one.remedy.endswith(f"pip install {package}")
    packages(cupy_cuda12x="14.0", cupy_cuda13x="14.0")
    assert "overwrite each other's files" in found(checks.gpus)[0].text


def test_the_driver_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(checks.shutil, "which", lambda name: None)
    assert checks.driver() is None
    if os.name == "posix":
        program = tmp_path / "nvidia-smi"
        program.write_text("#!/bin/sh\necho 'NVIDIA H200, 580.12.01'\necho 'NVIDIA H200, 580.12.01'\n")
        program.chmod(0o755)
        monkeypatch.setattr(checks.shutil, "which", lambda name: str(program))
        assert checks.driver() == ("NVIDIA H200", 580)
        program.write_text("#!/bin/sh\nexit 9\n")
        assert checks.driver() is None


def test_folders_for_downloads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MXNET_HOME", str(tmp_path / "data"))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MINIMX_HOME", str(tmp_path / "file" / "inside"))
    good, bad = found(places.folders)
    assert good == Finding(OK, f"downloads for MXNET_HOME go to {tmp_path / 'data'}, made when there are any")
    assert bad.state == PROBLEM
    assert f"{tmp_path / 'file'} is no folder" in bad.text
    assert bad.remedy == finding.setting("MINIMX_HOME", os.path.join(os.curdir, "downloads"))
    monkeypatch.setattr(places.os, "access", lambda path, mode: False)
    assert "cannot be written to" in found(places.folders)[0].text


def test_notebooks(packages: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places.shutil, "which", lambda name: None)
    packages()
    assert "JupyterLab is not installed" in found(places.notebooks)[0].text
    packages(jupyterlab="4.0")
    for kernel, state in ((None, PROBLEM), ("/another/bin/python", PROBLEM), (sys.executable, OK), ("python", OK)):
        monkeypatch.setattr(places, "_kernel", lambda kernel=kernel: kernel)
        assert [each.state for each in places.notebooks()] == [state]
    monkeypatch.setattr(places.shutil, "which", lambda name: "/another/bin/jupyter")
    assert found(places.notebooks)[1].remedy.endswith("-m jupyterlab")


def test_mpi(packages: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    packages()
    assert found(places.processes)[0].remedy.endswith("pip install mpi4py mpich")
    packages(mpi4py="4.0")
    monkeypatch.setattr(places.shutil, "which", lambda name: None)
    monkeypatch.setattr(places.os.path, "exists", lambda path: False)
    assert found(places.processes)[0].remedy.endswith("pip install mpich")


def test_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"MINIMX_KERNELS": "numpy", "MINIMX_KERNEL": "numpy", "MINIMX_XYZ": "1", "MXNET_HOME": "x", "MINIMX_JIT": "eager"}
    monkeypatch.setattr(places, "given", lambda: variables)
    words = [each.text for each in places.settings()]
    assert words == [
        "MINIMX_KERNELS is numpy: oneDNN and compiled loops are off",
        "MINIMX_KERNEL is set, but nothing reads it; was MINIMX_KERNELS meant?",
        "MINIMX_XYZ is set, but nothing reads it",
    ]


def test_what_is_installed_twice_or_too_old(packages: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    packages(minimx="0.0.1", mxnet="1.9.1")
    monkeypatch.setattr(checks.np, "__version__", "1.25.2")
    states = [(each.state, each.text.split(" ")[0]) for each in checks.versions()]
    assert states == [(PROBLEM, "NumPy"), (PROBLEM, "pip"), (NOTE, "MXNet")]


def test_commands_are_for_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding.shutil, "which", lambda name: sys.executable if name == "python" else None)
    assert finding.install("numba", options="--upgrade") == "python -m pip install --upgrade numba"
    monkeypatch.setattr(finding.shutil, "which", lambda name: "/usr/bin/python")
    monkeypatch.setattr(sys, "executable", "/home/ada/my venv/bin/python")
    assert finding.install("a>=1") == "'/home/ada/my venv/bin/python' -m pip install 'a>=1'"
    monkeypatch.setattr(finding.importlib.util, "find_spec", lambda name: None)
    assert finding.install("numba") == "uv pip install --python '/home/ada/my venv/bin/python' numba"


def test_a_library_that_is_there_and_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "libdnnl.so.3").write_text("not a library")
    monkeypatch.setattr(checks.library, "_places", lambda: iter([str(tmp_path / "libdnnl.so.3"), str(tmp_path / "absent")]))
    (why,) = checks.library.troubles()
    assert "libdnnl.so.3" in why
