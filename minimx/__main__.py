"""The command line: `python -m minimx`.

    python -m minimx info                 versions, devices, and which optional packages are there
    python -m minimx bench [WORKLOAD ...] the benchmarks of the source tree, as a table

`info` is what a question about an installation should begin with.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import runpy
import sys
from pathlib import Path

import minimx

#: What `pip install minimx[extra]` adds, by the extra that brings it.
OPTIONAL = {
    "numba": "fast",
    "onednn-cpu-gomp": "fast",
    "cupy-cuda12x": "cuda12",
    "cupy-cuda13x": "cuda13",
    "mpi4py": "dist",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "matplotlib": "book",
    "jupyterlab": "book",
    "tqdm": "book",
}
BENCHMARKS = Path(__file__).parents[1] / "benchmarks" / "run.py"


def version_of(package: str) -> str | None:
    """The installed version of `package`, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def info() -> None:
    """Print what a report of a fault should begin with."""
    print(f"minimx {minimx.__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    print(f"cores: {os.cpu_count()}, GPUs: {minimx.num_gpus()}")
    print(f"numpy {version_of('numpy')}, threadpoolctl {version_of('threadpoolctl')}")
    for package, extra in OPTIONAL.items():
        print(f"{package} {version_of(package) or f'not installed (extra {extra})'}")
    for name in sorted(name for name in os.environ if name.startswith(("MXNET_", "MINIMX_"))):
        print(f"{name}={os.environ[name]}")


def main() -> int:
    """Run the command that the arguments name; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m minimx", description=(__doc__ or "").split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("info", help="versions, devices, optional packages")
    bench = commands.add_parser("bench", help="run the benchmarks of the source tree")
    bench.add_argument("arguments", nargs=argparse.REMAINDER, help="workloads and options of benchmarks/run.py")
    chosen = parser.parse_args()
    if chosen.command == "info":
        info()
        return 0
    if not BENCHMARKS.is_file():
        print("the benchmarks are in the source tree, not in the wheel: clone it, and run this command there", file=sys.stderr)
        return 1
    sys.argv = [str(BENCHMARKS), *chosen.arguments]
    sys.path.insert(0, str(BENCHMARKS.parent))
    runpy.run_path(str(BENCHMARKS), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
