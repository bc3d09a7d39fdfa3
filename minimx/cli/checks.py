"""The checks of `doctor` that ask what computes: versions, the cores and their threads, BLAS, oneDNN, LLVM, GPUs."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import threadpoolctl

import minimx as mx

from .. import cuda
from ..kernels import machine, threads
from ..kernels.onednn import library
from .finding import NOTE, OK, PROBLEM, Finding, install, lacking, python, setting
from .info import version_of

NEWEST_TESTED = (3, 14)
LEAST_NUMPY = (1, 26)
#: What sets the number of BLAS's or OpenMP's threads.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
CGROUP = "/sys/fs/cgroup/cpu.max"
DRIVER_OF_CUDA_13 = 580  # the first NVIDIA driver with CUDA 13
LOOP = "void loop(float *x, long low, long high) { for (long i = low; i < high; i++) { x[i] = x[i] * 2.0f; } }"


def versions() -> Iterator[Finding]:
    """Python, NumPy, and whether the files are those of the version that pip knows."""
    now = sys.version_info[:2]
    if now > NEWEST_TESTED:
        newest = ".".join(map(str, NEWEST_TESTED))
        yield Finding(NOTE, f"Python {platform.python_version()} is newer than {newest}, the newest that minimx is tested with")
    if tuple(map(int, np.__version__.split(".")[:2])) < LEAST_NUMPY:
        text = f"NumPy {np.__version__} is too old: {'.'.join(map(str, LEAST_NUMPY))} or newer is wanted"
        yield Finding(PROBLEM, text, install("numpy>=1.26", options="--upgrade"))
    known = version_of("minimx")
    if known is not None and known != mx.__version__:
        text = f"pip knows minimx {known}, but these files are minimx {mx.__version__}: an old copy lies in the way"
        yield Finding(PROBLEM, text, f"{python()} -m pip uninstall minimx\n{install('minimx')}")
    real = version_of("mxnet")
    if real is not None:
        text = f"MXNet {real} is installed, too: `import mxnet` is MXNet, unless `import minimx.compat.mxnet` stands before it"
        yield Finding(NOTE, text)


def arithmetic() -> Iterator[Finding]:
    """A network with known weights, as Python code and as a program: values and gradients must be right."""
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    weight = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    net = mx.gluon.nn.Dense(2, activation="relu", in_units=4)
    net.initialize(ctx=mx.cpu())
    net.weight.set_data(mx.nd.array(weight))
    y = np.maximum(data @ weight.T, 0)
    for way in ("as Python code", "as a program"):
        with mx.autograd.record():
            found = net(mx.nd.array(data))
        found.backward()
        gradient = net.weight.grad().asnumpy()
        if not (
            np.allclose(found.asnumpy(), y, atol=1e-4) and np.allclose(gradient, (y > 0).T.astype(np.float32) @ data, atol=1e-3)
        ):
            yield Finding(
                PROBLEM, f"a layer computes wrong numbers when it runs {way}: {found.asnumpy().tolist()} for {y.tolist()}"
            )
            return
        net.hybridize()
    yield Finding(OK, "a layer and its gradient, as Python code and as a program, give the right numbers")


def available() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def quota() -> float | None:
    """The cores' worth of time that a container allows, or None."""
    try:
        most, period = Path(CGROUP).read_text().split()
        return None if most == "max" else int(most) / int(period)
    except (OSError, ValueError):
        return None


def cores() -> Iterator[Finding]:
    """How many cores there are to use, and whether threads start at all."""
    mine, allowed = available(), quota()
    try:
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
    except RuntimeError as error:
        yield Finding(PROBLEM, f"threads do not start here ({error}): the engine runs everything at once in the calling thread")
    if allowed is not None and allowed < mine and not any(name in os.environ for name in THREADS):
        number = max(1, int(allowed))
        text = (
            f"this container may use {allowed:g} cores, but sees {mine}; as many threads would stop each other. "
            f"Say so before Python starts"
        )
        yield Finding(PROBLEM, text, setting("OMP_NUM_THREADS", str(number)))
    else:
        total = os.cpu_count() or mine
        yield Finding(
            OK, f"{mine} core{'s' * (mine != 1)}" + (f" of {total}, which is what this process may use" * (mine < total))
        )


def blas() -> Iterator[Finding]:
    """The library that multiplies matrices for NumPy, and its threads."""
    found = [each for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"]
    if not found:  # Apple's Accelerate is not known to threadpoolctl
        yield Finding(OK, f"NumPy {np.__version__}; its BLAS shares its threads out by itself")
        return
    best = max(found, key=lambda each: int(each["num_threads"]))
    number, mine = int(best["num_threads"]), available()
    words = (
        f"NumPy {np.__version__}; its BLAS is {best['internal_api']} {best['version']} with {number} thread{'s' * (number != 1)}"
    )
    allowed = min(mine, max(1, int(quota() or mine)))
    if number == 1 < allowed:
        names = [name for name in THREADS if os.environ.get(name, "").split(",")[0] == "1"]
        why = f", for {' and '.join(names)} is 1" if names else ""
        text = f"{words}, but there are {allowed} cores{why}: products of matrices take {allowed} times as long as they need"
        yield Finding(PROBLEM, text, "\n".join(setting(name, None) for name in names))
    else:
        yield Finding(OK, words)


def layers() -> Iterator[Finding]:
    """oneDNN, which computes convolution, pooling and normalization."""
    lib = library.find()
    if lib is not None:
        yield Finding(
            OK, f"oneDNN {lib.version} computes convolutions, pooling and normalization, with {threads.FULL} threads at most"
        )
        return
    for trouble in library.troubles():
        yield Finding(
            PROBLEM, f"oneDNN is here, but does not serve: {trouble}", install("onednn-cpu-gomp", options="--force-reinstall")
        )
    if sys.platform == "linux" and platform.machine() == "x86_64":
        text = "oneDNN is not installed: convolutions run on NumPy, and take several times as long"
        yield lacking(text, "onednn-cpu-gomp")
    else:
        text = f"there is no wheel of oneDNN for {platform.system()} {platform.machine()}: convolutions run on NumPy"
        yield Finding(NOTE, text)


def loops() -> Iterator[Finding]:
    """LLVM, by the package llvmlite, which makes one loop of several elementwise operations."""
    version = version_of("llvmlite")
    if version is None:
        text = "llvmlite is not installed: chains of elementwise operations run on NumPy, in tiles"
        yield lacking(text, "llvmlite")
        return
    code = machine.Code(LOOP, (machine.POINTER, machine.LONG, machine.LONG))
    code.compile()
    if code.error:
        yield Finding(PROBLEM, f"llvmlite {version} compiles no loop: {code.error}", install("llvmlite", options="--upgrade"))
    else:
        yield Finding(OK, f"llvmlite {version} compiles chains of elementwise operations to one loop")


def openmp() -> Iterator[Finding]:
    """Two OpenMP runtimes in one process make twice the threads, and may wait for each other for ever."""
    found = [each for each in threadpoolctl.threadpool_info() if each["user_api"] == "openmp"]
    paths = sorted({str(each["filepath"]) for each in found})
    if len(paths) > 1:
        text = (
            f"{len(paths)} OpenMP runtimes are loaded, which take each other's cores, and may hang or crash: {', '.join(paths)}"
        )
        mkl = any(each["internal_api"] == "mkl" for each in threadpoolctl.threadpool_info())
        yield Finding(
            PROBLEM, text, setting("MKL_THREADING_LAYER", "GNU") if mkl else install("numpy", options="--force-reinstall")
        )


def driver() -> tuple[str, int] | None:
    """What `nvidia-smi` says of the first GPU: its name, and the driver's number; None without it."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return None
    try:
        line = [command, "--query-gpu=name,driver_version", "--format=csv,noheader"]
        done = subprocess.run(line, capture_output=True, text=True, timeout=20, check=True)
        name, version = done.stdout.splitlines()[0].rsplit(",", 1)
        return name.strip(), int(version.split(".")[0])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None


def gpus() -> Iterator[Finding]:
    """GPUs, and CuPy, which computes on them."""
    found = driver()
    packages = {name: version_of(name) for name in ("cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x", "cupy")}
    there = [name for name, version in packages.items() if version]
    fitting = "cupy-cuda13x" if found and found[1] >= DRIVER_OF_CUDA_13 else "cupy-cuda12x"
    if len(there) > 1:
        text = f"{' and '.join(there)} are installed in one place, and overwrite each other's files"
        yield Finding(PROBLEM, text, f"{python()} -m pip uninstall {' '.join(there)}\n{install(fitting)}")
    elif not there and found is None:
        yield Finding(OK, "no GPU; mx.device.simulate_gpus(n) makes gpu(0) to gpu(n-1) of host memory")
    elif not there and found is not None:
        yield lacking(f"a GPU is here ({found[0]}, driver {found[1]}), but CuPy, which computes on it, is not", fitting)
    else:
        yield _gpus_by_cupy(there[0], packages[there[0]], found is not None, fitting)


def _gpus_by_cupy(package: str, version: str | None, driven: bool, fitting: str) -> Finding:
    """What CuPy finds, with a sum on the first GPU. Without a driver that is no fault; with one it is."""
    try:
        number = cuda.count()
        if not number:
            return Finding(NOTE, f"{package} {version} is installed, and finds no GPU")
        total = float(cuda.cupy().ones(3).sum())
        if total == 3:
            return Finding(OK, f"{number} GPU{'s' * (number != 1)} by {package} {version}")
        return Finding(PROBLEM, f"{package} {version} says that 1 + 1 + 1 is {total:g} on the first GPU")
    except Exception as error:  # CuPy has an error for each way in which CUDA can fail
        words = " ".join(str(error).split())
        return Finding(PROBLEM, words, install(fitting, options="--upgrade")) if driven else Finding(NOTE, words)
