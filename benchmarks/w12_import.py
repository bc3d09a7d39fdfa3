"""W12: the time of `import`, in a new interpreter each, beyond that of an empty one."""

from __future__ import annotations

import subprocess
import sys

from harness import Bar, Unit, Workload, timed

IMPORT, BEYOND = "import", "beyond NumPy's"

work = Workload(__file__, "import", bars=(Bar(BEYOND, 0.15, absolute=True),))


def importing(module: str) -> Unit:
    """A unit that starts this interpreter with the import, with NumPy's alone, and with none."""
    __import__(module)  # absent: say so at once

    def start(code: str) -> float:
        return timed(lambda: subprocess.run([sys.executable, "-c", code], check=True))

    def run() -> dict[str, float]:
        whole = start(f"import {module}")
        found = {IMPORT: whole - start("pass")}
        return found if module == "numpy" else {**found, BEYOND: whole - start("import numpy")}

    return run


@work.peer("minimx")
def _() -> Unit:
    return importing("minimx")


@work.peer("mxnet")
def _() -> Unit:
    return importing("mxnet")


@work.peer("torch")
def _() -> Unit:
    return importing("torch")


@work.peer("jax")
def _() -> Unit:
    return importing("jax")


@work.peer("numpy")
def _() -> Unit:
    return importing("numpy")


if __name__ == "__main__":
    work.main()
