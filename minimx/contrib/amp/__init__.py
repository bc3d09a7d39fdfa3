"""`mx.contrib.amp`: what scripts for mixed precision call, where precision is not mixed.

MXNet's `init` makes operators compute in float16, on GPUs that are faster then, and scales the loss so that small gradients do not vanish
there. Here everything is computed in the dtype of the arrays, float32 unless a network was cast, as `init` says; results are at least as
exact. The scale of the loss works as in MXNet (loss_scaler.py), so that scripts run, and networks that were cast to float16 can be trained.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any, NoReturn

from ...base import ArgumentError, MXNetError, shown
from ...gluon.trainer import Trainer
from ...optimizer import Optimizer
from .loss_scaler import LossScaler

__all__ = ["init", "init_trainer", "scale_loss", "unscale"]


class AmpError(ArgumentError, AssertionError):
    """Functions called in a wrong order, or with something else than a Trainer. (MXNet asserts some of it: hence the second base.)"""


_state = {"initialized": False}


def init(
    target_dtype: str = "float16", target_precision_ops: Any = None, conditional_fp32_ops: Any = None, fp32_ops: Any = None
) -> None:
    """What a script calls before it makes its network. **Args** `target_dtype`: "float16" or "bfloat16"; neither changes anything here, as
    a warning says. The lists of operators cannot be given. **Source** MXNet `contrib.amp.init`."""
    if str(getattr(target_dtype, "__name__", target_dtype)) not in ("float16", "bfloat16"):
        raise AmpError(f"amp.init: target_dtype is {shown(target_dtype)}; AMP currently supports only float16 or bfloat16")
    for name, given in (
        ("target_precision_ops", target_precision_ops), ("conditional_fp32_ops", conditional_fp32_ops), ("fp32_ops", fp32_ops),
    ):  # fmt: skip
        if given is not None:
            raise AmpError(
                f"amp.init: {name} chooses operators that compute in another precision, and none does here; leave it out"
            )
    if not _state["initialized"]:
        _state["initialized"] = True
        warnings.warn(
            "amp.init: minimx computes in the dtype of the arrays, so nothing becomes faster or less exact by it; only the scaling of the "
            "loss works. net.cast('float16') makes a network compute in float16",
            stacklevel=2,
        )


def init_trainer(optimizer_or_trainer: Trainer) -> None:
    """Let a Trainer watch for gradients that are not finite: it then makes no step, and the loss is scaled less.

    **Raises** AssertionError (a ValueError here, too) before `init`; TypeError for anything but a `gluon.Trainer`.
    """
    if not _state["initialized"]:
        raise AmpError("amp.init_trainer: AMP not initialized, did you forget to call amp.init()?")
    trainer = _trainer("init_trainer", optimizer_or_trainer)
    trainer._amp_loss_scaler = LossScaler()
    trainer._amp_original_scale = trainer._scale


@contextlib.contextmanager
def scale_loss(loss: Any, optimizer_or_trainer: Trainer) -> Iterator[Any]:
    """A `with` block with the loss, or a list of losses, times the present scale, for `backward`; the Trainer divides gradients by it.

    **Raises** AssertionError (a ValueError here, too) before `init_trainer`.
    """
    trainer = _trainer("scale_loss", optimizer_or_trainer)
    if trainer._amp_loss_scaler is None:
        raise AmpError("amp.scale_loss: Loss scaler is not initialized, did you forget to call amp.init_trainer()?")
    scale = trainer._amp_loss_scaler.loss_scale
    trainer._scale = trainer._amp_original_scale / scale
    yield [each * scale for each in loss] if isinstance(loss, (list, tuple)) else loss * scale


def unscale(optimizer_or_trainer: Trainer) -> None:
    """Divide the gradients by the scale now, to look at them or clip them before `step`."""
    trainer = _trainer("unscale", optimizer_or_trainer)
    for param in trainer._params:
        if param.grad_req != "null":
            for gradient in param.list_grad():
                gradient *= trainer._scale
    trainer._scale = 1.0


def _trainer(function: str, given: Any) -> Trainer:
    if isinstance(given, Trainer):
        return given
    hint = "; AMP is currently only compatible with Gluon Trainer" if isinstance(given, Optimizer) else ""
    raise AmpError(f"amp.{function}: a gluon.Trainer is wanted, got {shown(given)}{hint}")


class NotMixedError(MXNetError, NotImplementedError):
    """A conversion that there is not."""


def _not_converted(what: str, instead: str) -> Any:
    def convert(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotMixedError(f"amp.{what}: graphs are not converted to mixed precision here; {instead}")

    convert.__name__ = convert.__qualname__ = what
    convert.__doc__ = "**Raises** NotImplementedError: graphs are not converted to mixed precision here."
    return convert


convert_hybrid_block = _not_converted("convert_hybrid_block", "net.cast('float16') converts the whole network")
convert_model = _not_converted("convert_model", "the model runs as it is, in float32")
convert_symbol = _not_converted("convert_symbol", "the graph runs as it is, in float32")
convert_bucketing_module = _not_converted("convert_bucketing_module", "the model runs as it is, in float32")
