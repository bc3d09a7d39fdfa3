"""Nodes without a name of the user's are called as in MXNet: after the function that was called, by whichever of its names.

automatic_names.json is written by tests/record_automatic_names.py with MXNet 1.9.1.
"""

from __future__ import annotations

import inspect
import json
import operator
import pickle
from pathlib import Path
from typing import Any

import pytest

import minimx as mx
from minimx import nd, sym
from minimx.base import ArgumentError

from . import name_cases as cases

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "mxnet-1.9.1" / "automatic_names.json").read_text())
NAMES = RECORDED["names"]
CALLABLE = [path for path in NAMES if path in cases.CALLS or path in set(cases.functions(sym))]
CALLABLE.remove("sparse.retain")  # it only says that there are no sparse arrays

#: Values for parameters that no tensor is given for, wherever a function has them.
VALUES: dict[str, Any] = {
    **dict.fromkeys(("kernel", "shape", "target_shape", "output_size", "size"), (2, 2)),
    **dict.fromkeys(("num_filter", "num_hidden", "num_outputs", "input_dim", "output_dim", "nsize", "depth", "block_size", "reps"), 2),
    **dict.fromkeys(("repeats", "heads", "out_dim", "group_size", "state_size", "num_layers", "width", "height", "indices_or_sections"), 2),
    **dict.fromkeys(("lr", "eta", "eps", "spatial_scale", "a_min", "a_max", "min_factor", "max_factor", "threshold"), 0.5),
    **dict.fromkeys(("brightness", "contrast", "saturation", "hue", "p1", "rescale_grad"), 0.5),
    **dict.fromkeys(("lrs", "wds"), (0.5,)),
    **dict.fromkeys(("axis", "begin", "low"), 0),
    **dict.fromkeys(("end", "high", "scale", "num_arrays", "num_weights"), 1),
    "act_type": "tanh", "dtype": "float32", "mode": "constant", "pad_width": (0, 0), "pooled_size": 2,
    "stype": "default", "transform_type": "affine",
}  # fmt: skip

#: What a function must be given beside that, or in its place.
ROWS: dict[str, dict[str, Any]] = {
    "LeakyReLU": {"act_type": "leaky"},
    "RNN": {"mode": "lstm"},
    "ROIPooling": {"pooled_size": (2, 2)},
    "contrib.ROIAlign": {"pooled_size": (2, 2)},
    "contrib.RROIAlign": {"pooled_size": (2, 2)},
    "UpSampling": {"sample_type": "nearest"},
    "image.adjust_lighting": {"alpha": (0.1, 0.1, 0.1)},
    "image.crop": {"x": 0, "y": 0},
    "take": {"mode": "clip"},
    "pick": {"mode": "clip"},
}


class Recorder(mx.name.NameManager):
    """Keeps the names that it gives."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[str] = []

    def get(self, name: str | None, hint: str) -> str:
        self.given.append(super().get(name, hint))
        return self.given[-1]


def call(path: str) -> None:
    """Call the function at `path` with a variable for each tensor that must be given and with VALUES for what else must be."""
    x = sym.var("x")
    operands: list[Any] = []
    named: dict[str, Any] = {}
    for name, parameter in inspect.signature(operator.attrgetter(path)(sym)).parameters.items():
        is_needed = parameter.default is parameter.empty
        kind = str(parameter.annotation).strip("'")
        if parameter.kind is parameter.VAR_POSITIONAL:
            operands += [x, x]
        elif name != "how" and kind.startswith("NDArray") and (is_needed or len(named) == 0):
            named[name] = x
        elif name in VALUES:
            named[name] = VALUES[name]
    operator.attrgetter(path)(sym)(*operands, **{**named, **ROWS.get(path.removeprefix("op."), {})})


@pytest.mark.parametrize("path", CALLABLE)
def test_name(path: str) -> None:
    run = cases.CALLS.get(path)
    with Recorder() as recorder:
        call(path) if run is None else run(sym, sym.var("x"), sym.var("y"))
    wanted = NAMES[path]
    assert recorder.given == (wanted if isinstance(wanted, list) else [wanted])


@pytest.mark.parametrize("path", RECORDED["graphs"])
def test_file_names_the_operator(path: str) -> None:
    """The name of the node is the function's, its operator the one that MXNet has."""
    with mx.name.NameManager():
        graph = cases.GRAPHS[path](sym, sym.var("x"), sym.var("y"))
    assert cases.nodes(graph) == RECORDED["graphs"][path]


def test_numbers_count_each_name() -> None:
    """Each name of an operator has numbers of its own, a prefix comes before all, and a name that is given stays."""
    x = sym.var("x")
    with mx.name.Prefix("net_"):
        made = [F(x) for F in (sym.BlockGrad, sym.stop_gradient, sym.BlockGrad)] + [sym.BlockGrad(x, name="mine")]
    assert [each.name for each in made] == ["net_blockgrad0", "net_stop_gradient0", "net_blockgrad1", "net_mine"]


SECOND = [path for path in cases.functions(sym) if hasattr(operator.attrgetter(path)(sym), "__wrapped__")]


@pytest.mark.parametrize("path", SECOND)
def test_second_name(path: str) -> None:
    """A function under another name has the parameters and the text of the first, can be pickled, and is one of MXNet's."""
    function = operator.attrgetter(path)(sym)
    assert inspect.signature(function) == inspect.signature(function.__wrapped__)
    assert function.__doc__ == function.__wrapped__.__doc__
    assert function.__name__ == path.rpartition(".")[2]
    assert pickle.loads(pickle.dumps(function)) is function
    assert path in NAMES or path.rpartition(".")[2] in NAMES


def test_second_names_are_the_same_in_nd() -> None:
    assert nd.BlockGrad is sym.BlockGrad
    assert nd.linalg.gemm2 is sym.linalg.gemm2
    x = nd.array([[1.0, 2.0], [3.0, 4.0]])
    assert nd.sum_axis(x, axis=0).asnumpy().tolist() == [4.0, 6.0]
    assert nd.linalg_gemm2(x, x).asnumpy().tolist() == [[7.0, 10.0], [15.0, 22.0]]
    out = nd.zeros((2,))
    nd.max_axis(x, axis=1, out=out)
    assert out.asnumpy().tolist() == [2.0, 4.0]


@pytest.mark.parametrize("function", [sym.BlockGrad, sym.stop_gradient, nd.BlockGrad])
def test_no_one_else_names_the_name(function: Any) -> None:
    with pytest.raises(ArgumentError, match="unknown argument hint"):
        function(sym.var("x"), hint="mine")
