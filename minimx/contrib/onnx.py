"""`mx.contrib.onnx`: reading ONNX files, and `export_model` under its older name.

What is read is what `mx.onnx.export_model` writes and other writers use for networks: layers, activations, shapes, reductions.
"""

from __future__ import annotations

from typing import Any

from .. import sym
from ..files import PathLike
from ..gluon import SymbolBlock
from ..gluon.weight import Devices
from ..nd import NDArray
from ..onnx import export_model, readers, readers_layers, readers_recurrent, reading
from ..sym import Symbol

__all__ = ["export_model", "get_model_metadata", "import_model", "import_to_gluon"]

_TABLES = (readers, readers_layers, readers_recurrent)  # which fill the table as they are imported


def import_model(model_file: PathLike) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """The Symbol in an ONNX file, its parameters, and its auxiliary states, by name.

    **Raises** MXNetError, with the node's name, for an operator that cannot be read; ImportError without the package onnx;
    FileNotFoundError, or MXNetError for a file that is no ONNX model. **Source** MXNet `contrib.onnx.import_model`.
    """
    return reading.read(reading.parsed(model_file))


def get_model_metadata(model_file: PathLike) -> dict[str, list[tuple[str, tuple[int, ...]]]]:
    """Names and shapes of the inputs and outputs in an ONNX file; 0 stands for an open length.

    **Returns** a dict with `input_tensor_data` and `output_tensor_data`, lists of pairs.
    **Source** MXNet `contrib.onnx.get_model_metadata`.
    """
    return reading.metadata(reading.parsed(model_file))


def import_to_gluon(model_file: PathLike, ctx: Devices = None) -> SymbolBlock:
    """The network in an ONNX file as a block, with its parameters on `ctx`. **Source** MXNet `contrib.onnx.import_to_gluon`."""
    model = reading.parsed(model_file)
    symbol, arguments, states = reading.read(model)
    values = {**arguments, **states}
    inputs = [sym.var(name) for name in symbol.list_inputs() if name not in values]
    block = SymbolBlock(symbol, inputs)
    params = block.collect_params()
    for name, array in values.items():
        param: Any = params[name]
        param._load_init(array, ctx, cast_dtype=True, dtype_source="saved")
    return block


import_model_ = import_model  # MXNet's names for what its own warn of being moved
get_model_metadata_ = get_model_metadata
import_to_gluon_ = import_to_gluon
export_model_ = export_model
