"""`python -m minimx info`: versions, devices and settings, in a form to paste into a question. doctor.py says what is wrong with them."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform

import minimx

#: What `pip install 'minimx[extra]'` adds, by the extra that brings it.
OPTIONAL = {
    "llvmlite": "fast",
    "onednn-cpu-gomp": "fast",
    "cupy-cuda12x": "cuda12",
    "cupy-cuda13x": "cuda13",
    "mpi4py": "dist",
    "onnx": "onnx",
    "onnxruntime": "onnxruntime",
    "pillow": "image",
    "matplotlib": "book",
    "jupyterlab": "book",
    "tqdm": "book",
}


def version_of(package: str) -> str | None:
    """The installed version of `package`, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def heading() -> str:
    """minimx, Python and the system in a line."""
    return f"minimx {minimx.__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"


def settings() -> dict[str, str]:
    """The environment variables that are meant for minimx."""
    return {name: os.environ[name] for name in sorted(os.environ) if name.startswith(("MXNET_", "MINIMX_"))}


def run(chosen: argparse.Namespace) -> int:
    """Print what a report of a fault should begin with."""
    print(heading())
    print(f"cores: {os.cpu_count()}, GPUs: {minimx.num_gpus()}")
    print(f"numpy {version_of('numpy')}, threadpoolctl {version_of('threadpoolctl')}")
    for package, extra in OPTIONAL.items():
        print(f"{package} {version_of(package) or f'not installed (extra {extra})'}")
    found = minimx.kernels.found()
    print(f"kernels: {', '.join(f'{library} {version}' for library, version in found.items()) or 'those of NumPy'}")
    for name, value in settings().items():
        print(f"{name}={value}")
    return 0
