"""What the tests here share: a network as an ONNX file, and what ONNX Runtime makes of that."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import gluon, nd

pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

from minimx.onnx import export_model  # noqa: E402  # after it is known that onnx is there


def session(path: Any) -> Any:
    """An ONNX file, ready to run in this thread."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def exported(net: gluon.HybridBlock, arrays: list[Any], folder: Any, **how: Any) -> str:
    """The ONNX file of a network for arguments like `arrays`."""
    net.hybridize()
    net(*arrays)
    symbol_file, param_file = net.export(folder / "net")
    shapes = [array.shape for array in arrays]
    types = [array.dtype for array in arrays]
    return export_model(symbol_file, param_file, shapes, types, folder / "net.onnx", **how)


def leaves(result: Any) -> list[np.ndarray]:
    if isinstance(result, (list, tuple)):
        return [leaf for each in result for leaf in leaves(each)]
    return [result.asnumpy()]


def check(
    net: gluon.HybridBlock, arrays: list[np.ndarray], folder: Any, limit: float = 1e-5, back: bool = True, **how: Any
) -> Any:
    """Assert that the file of a network gives in ONNX Runtime what the network gives, and when it is read back; the session."""
    given = [nd.array(array, dtype=array.dtype) for array in arrays]
    expected = leaves(net(*given))
    running = session(exported(net, given, folder, **how))
    names = [each.name for each in running.get_inputs()]
    for mine, its in zip(expected, running.run(None, dict(zip(names, arrays))), strict=True):
        assert its.shape == mine.shape
        np.testing.assert_allclose(its, mine, rtol=limit, atol=limit)
    if back:
        again = mx.contrib.onnx.import_to_gluon(folder / "net.onnx")
        for mine, its in zip(expected, leaves(again(*[given[number] for number in order_of(again, names)])), strict=True):
            np.testing.assert_allclose(its, mine, rtol=limit, atol=limit)
    return running


def order_of(block: gluon.SymbolBlock, names: list[str]) -> list[int]:
    """For each input of a block that was read, the number of the argument that it was."""
    return [names.index(variable.name) for variable in block._traces[0].inputs]
