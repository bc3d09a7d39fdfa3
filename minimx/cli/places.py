"""The checks of `doctor` that ask what surrounds the computing: folders, notebooks, processes, packages that are absent, settings."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from ..base import PACKAGE_FOLDER, data_dir, near
from ..d2l.datasets import cache_folder
from .finding import NOTE, OK, PROBLEM, Finding, install, lacking, python, setting
from .info import settings as given, version_of

#: What is slower, or otherwise, by choice.
CHOICES = {
    ("MINIMX_KERNELS", "numpy"): "oneDNN and compiled loops are off",
    ("MINIMX_JIT", "off"): "chains of elementwise operations are not compiled",
    ("MXNET_ENGINE_TYPE", "NaiveEngine"): "nothing runs at the same time, and each line waits for its result",
    ("MXNET_BACKWARD_DO_MIRROR", "1"): "gradients of graphs take less memory and more time",
    ("MXNET_MEMORY_OPT", "1"): "gradients of graphs take less memory and more time",
    ("MINIMX_LAZY", "1"): "nothing runs until a value is asked for",
}
#: Packages by what they are for.
EXTRAS = {
    "pillow": "pictures are neither read nor written (mx.image, gluon.data.vision)",
    "matplotlib": "chapters draw no figures",
    "onnx": "there are no ONNX files (mx.onnx)",
}


def folders() -> Iterator[Finding]:
    """Where downloads go: data sets and trained parameters. It must be possible to write there."""
    for name, folder in (("MXNET_HOME", Path(data_dir())), ("MINIMX_HOME", cache_folder())):
        there = next((each for each in (folder, *folder.parents) if each.exists()), folder)
        if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
            yield Finding(OK, f"downloads for {name} go to {folder}" + ("" if folder.exists() else ", made when there are any"))
        else:
            what = "cannot be written to" if there.is_dir() else "is no folder"
            text = f"downloads would go to {folder}, but {there} {what}: choose another folder"
            yield Finding(PROBLEM, text, setting(name, os.path.join(os.curdir, "downloads")))


def notebooks() -> Iterator[Finding]:
    """Jupyter, and whether notebooks run in this Python: elsewhere `import minimx` fails, or is another one."""
    version = version_of("jupyterlab")
    if version is None:
        yield lacking("JupyterLab is not installed: chapters cannot be opened here", *BOOK)
        return
    kernel = _kernel()
    if kernel is None:
        text = f"JupyterLab {version} is here, but no kernel for Python"
        yield Finding(PROBLEM, text, f"{install('ipykernel')}\n{python()} -m ipykernel install --sys-prefix")
    elif not _same(kernel):
        text = f"JupyterLab {version} runs notebooks by another Python, {kernel}, which may have no minimx"
        yield Finding(PROBLEM, text, f"{install('ipykernel')}\n{python()} -m ipykernel install --sys-prefix")
    else:
        yield Finding(OK, f"JupyterLab {version}, whose notebooks run in this Python")
    found = shutil.which("jupyter")
    if found and not _same(found):
        text = f"the command `jupyter` is that of another Python ({found}): start JupyterLab by this one"
        yield Finding(NOTE, text, f"{python()} -m jupyterlab")


#: What the chapters need (the extra `book`).
BOOK = ("jupyterlab", "ipywidgets", "matplotlib", "tqdm")


def _kernel() -> str | None:
    """The program that runs the kernel `python3`, or None if there is none."""
    done = subprocess.run(
        [sys.executable, "-m", "jupyter_client.kernelspecapp", "list", "--json"], capture_output=True, text=True, timeout=60
    )
    specs = json.loads(done.stdout).get("kernelspecs", {}) if done.returncode == 0 else {}
    line = specs.get("python3", {}).get("spec", {}).get("argv", [])
    return str(line[0]) if line else None


def _same(program: str) -> bool:
    """Whether a program is of this Python's folder; a bare name such as `python` is replaced by Jupyter with its own Python."""
    folder = os.path.dirname(program)
    return not folder or os.path.abspath(folder) == os.path.dirname(os.path.abspath(sys.executable))


def processes() -> Iterator[Finding]:
    """MPI, by which several processes train together."""
    version = version_of("mpi4py")
    if version is None:
        yield lacking("no MPI: kvstore dist_sync and horovod train in one process only", "mpi4py", "mpich")
        return
    program = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    program = program if os.path.exists(program) else shutil.which("mpiexec") or ""
    if not program:
        yield Finding(PROBLEM, f"mpi4py {version} is here, but no mpiexec, which starts processes", install("mpich"))
        return
    done = subprocess.run([sys.executable, "-c", "from mpi4py import MPI"], capture_output=True, text=True, timeout=60)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it crashed"])[-1]
        yield Finding(
            PROBLEM, f"mpi4py {version} cannot be imported: {last}", install("mpi4py", "mpich", options="--force-reinstall")
        )
    else:
        yield Finding(OK, f"mpi4py {version} with {program}")


def extras() -> Iterator[Finding]:
    """Packages that some parts need."""
    there = [f"{package} {version}" for package in EXTRAS if (version := version_of(package))]
    if there:
        yield Finding(OK, f"{', '.join(there)}")
    for package, without in EXTRAS.items():
        if version_of(package) is None:
            yield lacking(f"without {package} {without}", package)


def known_settings() -> set[str]:
    """The names of minimx's own environment variables, as its files have them."""
    names: set[str] = set()
    for path in Path(PACKAGE_FOLDER).rglob("*.py"):
        names.update(re.findall(r'"(MINIMX_[A-Z_]+)"', path.read_text(encoding="utf-8")))
    return names


def settings() -> Iterator[Finding]:
    """Environment variables: what they change, and names that mean nothing."""
    known = known_settings()
    for name, value in given().items():
        if (name, value) in CHOICES:
            yield Finding(NOTE, f"{name} is {value}: {CHOICES[name, value]}", setting(name, None))
        elif name.startswith("MINIMX_") and name not in known:
            found = near(name, known, cutoff=0.85)
            text = f"{name} is set, but nothing reads it" + (f"; was {found[0]} meant?" if found else "")
            yield Finding(NOTE, text, setting(name, None))
