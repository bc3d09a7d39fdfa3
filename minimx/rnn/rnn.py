"""Checkpoints of recurrent networks: in the file the weights of each gate lie apart, so that fused and single cells can read them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..base import ArgumentError
from ..checkpoint import Params, load_checkpoint, save_checkpoint
from ..files import PathLike
from ..nd import NDArray
from ..sym import Symbol
from .rnn_cell import BaseRNNCell

__all__ = ["do_rnn_checkpoint", "load_rnn_checkpoint", "rnn_unroll", "save_rnn_checkpoint"]

Cells = BaseRNNCell | Sequence[BaseRNNCell]


def rnn_unroll(
    cell: BaseRNNCell, length: int, inputs: Any = None, begin_state: Any = None, input_prefix: str = "", layout: str = "NTC"
) -> tuple[Any, list[Symbol]]:
    """`cell.unroll(length, inputs, ...)`, with a warning. **Source** MXNet `rnn.rnn_unroll`, where it fails."""
    warnings.warn("rnn_unroll is deprecated. Please call cell.unroll directly.", DeprecationWarning, stacklevel=2)
    if inputs is None or input_prefix:
        raise ArgumentError("rnn_unroll: inputs are wanted, a Symbol or a list of one for each step; make them with sym.var")
    return cell.unroll(length, inputs, begin_state, layout)


def save_rnn_checkpoint(
    cells: Cells,
    prefix: PathLike,
    epoch: int,
    symbol: Symbol,
    arg_params: Mapping[str, NDArray],
    aux_params: Mapping[str, NDArray],
) -> None:
    """`model.save_checkpoint` of parameters that all `cells` have unpacked. **Source** MXNet `rnn.save_rnn_checkpoint`."""
    for cell in _listed(cells):
        arg_params = cell.unpack_weights(arg_params)
    save_checkpoint(prefix, epoch, symbol, arg_params, aux_params)


def load_rnn_checkpoint(cells: Cells, prefix: PathLike, epoch: int) -> tuple[Symbol, Params, Params]:
    """`model.load_checkpoint`, with parameters that all `cells` have packed. **Source** MXNet `rnn.load_rnn_checkpoint`."""
    symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
    for cell in _listed(cells):
        arg_params = cell.pack_weights(arg_params)
    return symbol, arg_params, aux_params


def do_rnn_checkpoint(cells: Cells, prefix: PathLike, period: int = 1) -> Callable[..., None]:
    """A callback for the end of an epoch: `save_rnn_checkpoint` every `period` epochs. **Source** MXNet `rnn.do_rnn_checkpoint`."""

    def save(iter_no: int, sym: Any = None, arg: Any = None, aux: Any = None) -> None:
        if (iter_no + 1) % int(max(1, period)) == 0:
            save_rnn_checkpoint(cells, prefix, iter_no + 1, sym, arg, aux)

    return save


def _listed(cells: Cells) -> Sequence[BaseRNNCell]:
    return [cells] if isinstance(cells, BaseRNNCell) else cells
