"""ONNX Runtime as a peer: what minimx exports, run in a session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import prepared


def export(block: Any, shape: tuple[int, ...], path: Path) -> None:
    """Write an initialized block of minimx as an ONNX file for an input of that shape. Raises ImportError without onnx."""
    import minimx as mx

    block.hybridize()
    block(mx.nd.ones(shape)).wait_to_read()
    stem = str(path.with_suffix(""))
    block.export(stem)
    mx.onnx.export_model(f"{stem}-symbol.json", f"{stem}-0000.params", [shape], onnx_file_path=str(path))


def session(name: str, shape: tuple[int, ...], threads: int = 2, bound: bool = False) -> Callable[[], Any]:
    """A call of the prepared model `name` on an input of that shape; `bound`: input and output stay where they are."""
    import numpy as np
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    found = ort.InferenceSession(prepared(name), options, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(0).random(shape, np.float32)
    feed, output = found.get_inputs()[0].name, found.get_outputs()[0].name
    if not bound:
        return lambda: found.run(None, {feed: x})
    binding = found.io_binding()
    binding.bind_cpu_input(feed, x)
    binding.bind_output(output)
    found.run_with_iobinding(binding)
    y = binding.get_outputs()[0]
    binding.bind_ortvalue_output(output, y)

    def call() -> Any:
        found.run_with_iobinding(binding)
        return x, y  # the binding has their addresses only

    return call
