"""Every row of the operator table whose operator has a form in ONNX: the file computes in ONNX Runtime what the operator does here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minimx import autograd, nd, sym
from minimx.base import MXNetError
from minimx.op import REGISTRY

from ..ops.harness import Case
from ..ops.test_cases import CASES, flat, make

pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

from minimx.onnx.export import export_model, get_operator_support, inputs_of  # noqa: E402  # after it is known that onnx is there
from minimx.onnx.graph import TYPES, UnsupportedError  # noqa: E402

SUPPORTED = set(get_operator_support())
#: Rows of elementwise operators about sizes, which make no difference to a node of ONNX.
SIZES = ("empty", "single", "no axes")
ROWS = [(name, case) for name, case in CASES.items() if case.op in SUPPORTED and case.label not in SIZES]
#: Rows about values for which ONNX promises nothing.
OTHERWISE = {
    "argmax-ties": "ArgMax of ONNX does not say what it does with NaN",
    "ROIPooling-(3, 2) 0.0": "ONNX Runtime refuses a scale of 0",
    "ROIPooling-odd regions": "ONNX Runtime refuses regions of no picture",
    "_contrib_ROIAlign-odd regions": "ONNX Runtime refuses regions of no picture",
    "broadcast_div-integers by 0": "ONNX Runtime raises an error for an integer divided by 0",
}
TOLERANCE = {"float16": 2e-2, "float32": 1e-4, "float64": 1e-6}


def test_converters_are_for_operators() -> None:
    for name in SUPPORTED:
        assert REGISTRY[name].name == name


def run(path: str, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of an ONNX file. Skips what ONNX allows and this runtime has not."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return session.run(None, {each.name: feeds[each.name] for each in session.get_inputs()})
    except Exception as error:
        if "NOT_IMPLEMENTED" in str(error) or "Could not find an implementation" in str(error):
            pytest.skip(f"ONNX Runtime has not implemented it: {str(error)[:160]}")
        raise


@pytest.mark.parametrize(("name", "case"), ROWS, ids=[name for name, _ in ROWS])
def test_row(name: str, case: Case, tmp_path: Any) -> None:
    if name in OTHERWISE:
        pytest.skip(OTHERWISE[name])
    arrays = make(name, case, case.dtypes[0])
    try:
        outputs = [
            each for output in flat(case.call(*[sym.var(f"x{number}") for number in range(len(arrays))])) for each in output
        ]
        graph = sym.Group(outputs)
    except (MXNetError, TypeError, AttributeError, ValueError, AssertionError, IndexError) as error:
        pytest.skip(f"the row's call is not for Symbols: {type(error).__name__}: {error}")
    if not all(str(array.dtype) in TYPES and array.size and array.ndim for array in arrays):
        pytest.skip("ONNX has no such dtype, its runtimes no arrays without elements, or MXNet none without axes")
    wanted = {f"x{number}": nd.array(array, dtype=array.dtype) for number, array in enumerate(arrays)}
    used = [each for each in graph.list_inputs() if each in wanted]
    with autograd.predict_mode():
        outputs = nd.CachedOp(graph)(*[wanted[each] for each in used])
        expected = [output.asnumpy() for output in flat(outputs)]
    if not all(output.size for output in expected):
        pytest.skip("runtimes of ONNX have no arrays without elements")
    constant = {each: wanted[each] for each in used[1:] if case.op in ("Deconvolution", "Convolution")}
    feeds = {node.name: wanted[node.name].asnumpy() for node in inputs_of(graph.entries, constant)}
    try:
        path = export_model(
            graph,
            constant,
            [array.shape for array in feeds.values()],
            [array.dtype for array in feeds.values()],
            tmp_path / "row.onnx",
        )
    except UnsupportedError as error:
        pytest.skip(str(error))
    got = run(path, feeds)
    assert len(got) == len(expected)
    for mine, its in zip(expected, got):
        assert its.shape == mine.shape
        assert its.dtype == mine.dtype
        if case.op.startswith("_random"):  # other numbers of the same distribution
            continue
        limit = TOLERANCE.get(mine.dtype.name, 0)
        np.testing.assert_allclose(its, mine, rtol=limit, atol=limit)
