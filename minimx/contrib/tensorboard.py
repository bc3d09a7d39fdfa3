"""`mx.contrib.tensorboard`: metrics of a training as curves in TensorBoard."""

from __future__ import annotations

import importlib
from typing import Any

from ..base import MXNetError

__all__ = ["LogMetricsCallback"]

#: Packages with a class SummaryWriter, which writes TensorBoard's files.
WRITERS = ("mxboard", "tensorboardX", "torch.utils.tensorboard")


class MissingWriterError(MXNetError, ImportError):
    """No package that writes TensorBoard's files is installed."""


class LogMetricsCallback:
    """A callback for the end of a batch or an epoch: writes the values of `param.eval_metric` to TensorBoard's files, at `param.epoch`.

    **Args** `logging_dir`: the folder, which `tensorboard --logdir` shows; `prefix`: what the names of metrics begin with. **Raises**
    ImportError unless mxboard, tensorboardX or PyTorch is installed (MXNet logs it, and fails at the first value). **Source** MXNet
    `contrib.tensorboard.LogMetricsCallback`, which takes mxboard only.
    """

    def __init__(self, logging_dir: str, prefix: str | None = None) -> None:
        self.prefix = prefix
        self.summary_writer = _writer_class()(logging_dir)

    def __call__(self, param: Any) -> None:
        if param.eval_metric is None:
            return
        for name, value in param.eval_metric.get_name_value():
            self.summary_writer.add_scalar(
                name if self.prefix is None else f"{self.prefix}-{name}", value, global_step=param.epoch
            )


def _writer_class() -> Any:
    for name in WRITERS:
        try:
            return importlib.import_module(name).SummaryWriter
        except ImportError:
            continue
    raise MissingWriterError(
        "TensorBoard's files are written by a package that is not installed: pip install tensorboardX (mxboard, or PyTorch with "
        "tensorboard, will do, too)"
    )
