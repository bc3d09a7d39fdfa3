"""The command line: `python -m minimx`.

    python -m minimx info                 versions, devices, and which optional packages are there
    python -m minimx bench [WORKLOAD ...] the benchmarks: minimx beside what else is installed (--quick: in a minute)
    python -m minimx run SCRIPT [...]     a script, `-m` module or notebook written for MXNet, unchanged
    python -m minimx names PATTERN ...    how minimx has what MXNet calls so
    python -m minimx im2rec PREFIX ROOT   a folder of images as lists (--list), and as files of records

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

from .compat import names as compat_names, run
from .image import im2rec

#: What `pip install minimx[extra]` adds, by the extra that brings it.
OPTIONAL = {
    "numba": "fast",
    "onednn-cpu-gomp": "fast",
    "cupy-cuda12x": "cuda12",
    "cupy-cuda13x": "cuda13",
    "mpi4py": "dist",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "pillow": "image",
    "matplotlib": "book",
    "jupyterlab": "book",
    "tqdm": "book",
}
#: In the wheel they are inside the package.
BENCHMARKS = [root / "benchmarks" / "run.py" for root in Path(__file__).parents[:2]]


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
    commands.add_parser("bench", help="run the benchmarks", add_help=False)
    commands.add_parser("run", help="run a script, module or notebook in which `import mxnet` means minimx", add_help=False)
    names = commands.add_parser("names", help="MXNet's names, and what minimx has otherwise")
    names.add_argument("pattern", nargs="+", help="a part of a name such as nd.topk, or a pattern such as 'gluon.rnn.*'")
    im2rec.add_arguments(commands.add_parser("im2rec", help="lists and files of records of a folder of images"))
    if sys.argv[1:2] == ["run"]:  # all that follows is for it, and for the script
        return run.main(sys.argv[2:])
    if sys.argv[1:2] == ["bench"]:
        return bench(sys.argv[2:])
    chosen = parser.parse_args()
    if chosen.command == "info":
        info()
        return 0
    if chosen.command == "im2rec":
        return im2rec.run(chosen)
    return compat_names.main(chosen.pattern)


def bench(arguments: list[str]) -> int:
    """Run the benchmarks, which are scripts beside the package, or, in the wheel, in it."""
    script = next((path for path in BENCHMARKS if path.is_file()), None)
    if script is None:
        print(f"minimx bench: {BENCHMARKS[0]} is missing; install minimx again", file=sys.stderr)
        return 1
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent))
    runpy.run_path(str(script), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
