"""Notebooks for `python -m minimx run`: all code cells in order, in a kernel where nbclient and ipykernel are installed.

The kernel is this Python, whatever the notebook says, started as launch.py says, in the notebook's folder. Its outputs are
printed as they come, or go into a copy of the notebook, which is written whole when all is done. Without these packages (extra `book`)
the cells run as plain Python, with the few magic commands that need no IPython (cells.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.util
import logging
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

from .. import files
from . import launch, lent

CELLS = Path(__file__).parent / "cells.py"
OFTEN, PATIENCE = 0.3, 6.0  # seconds between two interrupts of a kernel, and until it is killed
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def can_use_kernel() -> bool:
    """Whether what runs a notebook in a kernel is installed."""
    return all(importlib.util.find_spec(name) is not None for name in ("nbclient", "nbformat", "ipykernel"))


def run(path: str, output: str | None, lend: bool) -> int:
    """Run the notebook `path`; **returns** the exit status.

    **Args** `output`: where to write the executed notebook; None: print what its cells print. A notebook that fails is written with the
    error in it, but never over the old one. `lend`: see lent.py.
    """
    if output is not None and not os.path.isdir(os.path.dirname(os.path.abspath(output))):  # before anything runs in vain
        print(f"minimx run: --output {output}: the folder {os.path.dirname(output)} is not there; make it first", file=sys.stderr)
        return 2
    if can_use_kernel():
        return run_in_kernel(path, output, lend)
    if output is not None:
        print("minimx run: to write the executed notebook takes a kernel: pip install 'minimx[book]'", file=sys.stderr)
        return 2
    print("minimx run: no kernel is installed (pip install 'minimx[book]'); the cells run as plain Python", file=sys.stderr)
    return launch.start([str(CELLS), os.path.abspath(path)], lend, os.path.dirname(os.path.abspath(path)))


def run_in_kernel(path: str, output: str | None, lend: bool) -> int:
    """See `run`."""
    nbclient, nbformat, manager = _modules("nbclient", "nbformat", "jupyter_client.manager")
    try:
        with open(path, encoding="utf-8") as file:
            notebook = nbformat.read(file, as_version=4)
    except Exception as error:  # nbformat has several, of no common class
        print(f"minimx run: {path} is no notebook: {error}", file=sys.stderr)
        return 1
    kernel = manager.AsyncKernelManager(kernel_spec_manager=_this_python(), kernel_name="python3")
    if kernel.has_trait("transport_encryption"):  # without it the kernels of 2025 warn into the notebook's output
        kernel.transport_encryption = "auto"
    folder = os.path.dirname(os.path.abspath(path))
    client = _printing(nbclient.NotebookClient)(notebook, km=kernel, timeout=None)
    client.quiet, client.owns_km, client.on_notebook_start = output is not None, True, client.listen
    failed, status = "", 0
    try:
        client.execute(cwd=folder, env=launch.environment(lend))
    except (Exception, asyncio.CancelledError, KeyboardInterrupt) as error:
        status = 1
        if client.interrupted or isinstance(error, KeyboardInterrupt):
            failed, status = "interrupted", 128 + signal.SIGINT
            logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # or it tells of the task that is still stopping the kernel
        elif isinstance(error, nbclient.exceptions.CellExecutionError):
            failed = "a cell failed"  # which the client has printed
        elif isinstance(error, nbclient.exceptions.DeadKernelError):
            failed = "the kernel died: it was stopped, or the memory did not suffice"
        else:
            raise
    if failed:
        print(f"minimx run: {path}: {failed}", file=sys.stderr)
    if output is not None and not (failed and os.path.exists(output) and os.path.samefile(output, path)):
        files.replace_file(output, [nbformat.writes(notebook).encode()])
    return status


def _modules(*names: str) -> list[Any]:
    """Modules of optional packages."""
    return [importlib.import_module(name) for name in names]


def _this_python() -> Any:
    """A manager of kernel specs that knows one kernel: this Python."""
    ipykernel, jupyter = _modules("ipykernel.kernelspec", "jupyter_client.kernelspec")

    line = launch.command(["-m", "ipykernel_launcher", "-f", "{connection_file}"])
    manager = jupyter.KernelSpecManager()
    manager.get_kernel_spec = lambda kernel_name: jupyter.KernelSpec(**{**ipykernel.get_kernel_dict(), "argv": line})
    return manager


def _printing(client: Any) -> Any:
    """The class `client`, with cells whose outputs are printed as they come; errors always are."""

    class Printing(client):  # type: ignore[misc]  # the package may be absent
        quiet = interrupted = False

        def listen(self, notebook: Any) -> None:
            """From now on Ctrl-C is for the cell that runs; nbclient would stop the kernel under itself."""
            loop = asyncio.get_running_loop()
            with contextlib.suppress(NotImplementedError):  # Windows: KeyboardInterrupt comes by itself
                loop.add_signal_handler(signal.SIGINT, lambda: setattr(self, "stopping", loop.create_task(self.stop())))

        async def stop(self) -> None:
            """Interrupt the kernel, again and again: it does not hear it between two cells. Kill it, if that helps nothing."""
            self.interrupted = True
            for _ in range(round(PATIENCE / OFTEN)):
                await self.km.interrupt_kernel()
                await asyncio.sleep(OFTEN)
            await self.km.shutdown_kernel(now=True)

        async def async_execute_cell(self, cell: Any, cell_index: int, *args: Any, **options: Any) -> Any:
            if self.interrupted:
                raise KeyboardInterrupt
            return await super().async_execute_cell(cell, cell_index, *args, **options)

        def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
            show(msg["msg_type"], msg["content"], cell_index + 1, self.quiet)
            return super().process_message(msg, cell, cell_index)

    return Printing


def show(kind: str, content: dict[str, Any], cell: int, quiet: bool) -> None:
    """Print what a cell has put out. **Args** `cell`: its number in the notebook; `quiet`: print errors only."""
    if kind == "error":
        text = "\n".join(content["traceback"])
        print(f"cell {cell}:\n{text if sys.stderr.isatty() else COLOURS.sub('', text)}", file=sys.stderr, flush=True)
        if said := lent.advice(content["ename"], content["evalue"]):
            print(said, file=sys.stderr, flush=True)
    elif kind == "stream" and not quiet:
        stream = sys.stderr if content["name"] == "stderr" else sys.stdout
        stream.write(content["text"])
        stream.flush()
    elif kind in ("execute_result", "display_data") and not quiet:
        print(content["data"].get("text/plain", ""), flush=True)
