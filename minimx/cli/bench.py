"""`python -m minimx bench`: the benchmarks, which are scripts beside the package, or, in the wheel, in it. They read their own options."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from ..base import PACKAGE_FOLDER

#: In the wheel they are inside the package.
PLACES = [folder / "benchmarks" / "run.py" for folder in (Path(PACKAGE_FOLDER), Path(PACKAGE_FOLDER).parent)]


def main(arguments: Sequence[str]) -> int:
    """Run the benchmarks with `arguments`; the exit status."""
    script = next((path for path in PLACES if path.is_file()), None)
    if script is None:
        print(f"minimx bench: {PLACES[0]} is missing; install minimx again", file=sys.stderr)
        return 1
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent))
    runpy.run_path(str(script), run_name="__main__")
    return 0
