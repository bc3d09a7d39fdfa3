"""A checkpoint: a graph and its parameters in two files, `prefix-symbol.json` and `prefix-0007.params`, as MXNet writes them.

What trains a Symbol (module/, model.py) writes and reads these, and so do callbacks (callback.py). The files are those of
`HybridBlock.export`: a block is exported to the same two, and `SymbolBlock.imports` reads them. `mx.model` has the functions, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from . import files, nd, sym
from .base import ArgumentError, FileFormatError, shown
from .device import cpu
from .log import root_logger
from .nd import NDArray
from .sym import Symbol

__all__ = [
    "BatchEndParam", "Params", "as_saved", "load_checkpoint", "load_params", "params_file", "save_checkpoint", "separated"
]  # fmt: skip

Params = dict[str, NDArray]  # parameters, or auxiliary states, by name


class BatchEndParam(NamedTuple):
    """What a callback is told at the end of a batch: the epoch, the batch's number, the metric so far, and the local variables of the loop.

    **Source** MXNet `model.BatchEndParam`.
    """

    epoch: int
    nbatch: int
    eval_metric: Any
    locals: dict[str, Any] | None


def params_file(prefix: files.PathLike, epoch: int, ending: str = "params") -> str:
    """The file of an epoch's parameters: `prefix-0007.params`."""
    if not isinstance(epoch, int) or isinstance(epoch, bool):
        raise ArgumentError(f"checkpoint: epoch must be an int, got {shown(epoch)}")
    return f"{files.as_path(prefix)}-{epoch:04d}.{ending}"


def as_saved(arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray]) -> Params:
    """Parameters and states as a file has them: one dict, whose keys begin with "arg:" and "aux:"."""
    groups = (("arg", arg_params), ("aux", aux_params))
    return {f"{kind}:{name}": array.as_in_context(cpu()) for kind, params in groups for name, array in params.items()}


def separated(saved: Any, where: str) -> tuple[Params, Params]:
    """Parameters and states from the arrays of the file `where`. Raises FileFormatError for arrays that are neither."""
    if not isinstance(saved, dict):
        raise FileFormatError(
            f"{where} holds {len(saved)} arrays without names; a checkpoint's are called 'arg:...' and 'aux:...'"
        )
    groups: dict[str, Params] = {"arg": {}, "aux": {}}
    for key, array in saved.items():
        kind, colon, name = key.partition(":")
        if not colon or kind not in groups:
            raise FileFormatError(f"{where} holds an array called {key!r}; a checkpoint's are called 'arg:...' and 'aux:...'")
        groups[kind][name] = array
    return groups["arg"], groups["aux"]


def save_checkpoint(
    prefix: files.PathLike,
    epoch: int,
    symbol: Symbol | None,
    arg_params: Mapping[str, NDArray],
    aux_params: Mapping[str, NDArray],
    remove_amp_cast: bool = True,
) -> None:
    """Write `prefix-symbol.json`, unless `symbol` is None, and `prefix-<epoch>.params`. A crash leaves files that were there whole.

    **Raises** MissingFileError if the folder is not there. **Source** MXNet `model.save_checkpoint`.
    """
    if symbol is not None:
        symbol.save(f"{files.as_path(prefix)}-symbol.json", remove_amp_cast)
    name = params_file(prefix, epoch)
    nd.save(name, as_saved(arg_params, aux_params))
    root_logger().info('Saved checkpoint to "%s"', name)


def load_params(prefix: files.PathLike, epoch: int) -> tuple[Params, Params]:
    """Parameters and auxiliary states of a checkpoint, as two dicts by name.

    **Raises** MissingFileError if the file is not there, FileFormatError if it is none of parameters. **Source** MXNet
    `model.load_params`.
    """
    name = params_file(prefix, epoch)
    saved = nd.load(name)
    if not saved:
        root_logger().warning("Params file '%s' is empty", name)
        return {}, {}
    return separated(saved, name)


def load_checkpoint(prefix: files.PathLike, epoch: int) -> tuple[Symbol, Params, Params]:
    """The graph, the parameters and the auxiliary states of a checkpoint. **Raises** as `load_params`. **Source** MXNet
    `model.load_checkpoint`."""
    symbol = sym.load(f"{files.as_path(prefix)}-symbol.json")
    return (symbol, *load_params(prefix, epoch))
