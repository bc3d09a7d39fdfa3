"""W12: the time of `import`, in a new interpreter each, beyond that of an empty one."""

from __future__ import annotations

import subprocess
import sys

from harness import Unit, main, peer, timed


def importing(module: str) -> Unit:
    """A unit that starts this interpreter with and without the import."""
    __import__(module)  # absent: say so at once

    def start(code: str) -> float:
        return timed(lambda: subprocess.run([sys.executable, "-c", code], check=True))

    return lambda: {"import": start(f"import {module}") - start("pass")}


@peer("minimx")
def _() -> Unit:
    return importing("minimx")


@peer("mxnet")
def _() -> Unit:
    return importing("mxnet")


@peer("torch")
def _() -> Unit:
    return importing("torch")


@peer("numpy")
def _() -> Unit:
    return importing("numpy")


if __name__ == "__main__":
    main("W12 import", __file__)
