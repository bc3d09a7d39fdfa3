"""CheckpointHandler: files of a training, from which it can go on.

The graph is in `<prefix>-symbol.json`; parameters and the optimizer's states after epoch E and batch B, counted from 0, in
`<prefix>-epochEbatchB.params` and `.states`; the best ones in `<prefix>-best.params` and `.states`.
"""

from __future__ import annotations

import os
import re
from typing import Any

from ....base import FileFormatError, MissingFileError
from ....fields import converted
from ....files import PathLike, as_path, make_folder
from .events import BatchEnd, EpochEnd, EstimatorError, TrainBegin
from .monitor import Monitor

__all__ = ["CheckpointHandler"]


class CheckpointHandler(TrainBegin, BatchEnd, EpochEnd):
    """Saves parameters and states every `epoch_period` epochs, and every `batch_period` batches if that is given.

    **Args** `model_dir`: the folder, which is made; `model_prefix`: what the files' names begin with; `monitor`, `mode`: the metric and
    what is better of it, see EarlyStoppingHandler; `save_best`: keep the best parameters, too; `verbose`: 1 logs what is saved;
    `max_checkpoints`: remove older files, but for the best; `resume_from_checkpoint`: go on from the newest files in the folder, and train
    only what is left of the epochs or batches. **Raises** ValueError, AssertionError (both are) for periods that do not fit what is
    counted, or if nothing is left to train; FileFormatError, MissingFileError for files that are broken or incomplete. **Source** MXNet
    `CheckpointHandler`.
    """

    def __init__(
        self,
        model_dir: PathLike,
        model_prefix: str = "model",
        monitor: Any = None,
        verbose: int = 0,
        save_best: bool = False,
        mode: str = "auto",
        epoch_period: int | None = 1,
        batch_period: int | None = None,
        max_checkpoints: int = 5,
        resume_from_checkpoint: bool = False,
    ) -> None:
        self._watched = Monitor("CheckpointHandler", monitor, mode) if save_best else None
        self.monitor = monitor
        self.verbose = verbose
        self.model_dir = os.path.expanduser(as_path(model_dir))
        self.model_prefix = model_prefix
        self.save_best = save_best
        self.best = self._watched.worst if self._watched else 0.0
        self.epoch_period = epoch_period
        self.batch_period = batch_period
        self.max_checkpoints = converted("CheckpointHandler", "max_checkpoints", "int", max_checkpoints)
        self.resume_from_checkpoint = resume_from_checkpoint
        self.saved_checkpoints: list[str] = []
        self.current_batch = 0
        self.current_epoch = 0
        self.trained_epoch = -1
        self.trained_batch = -1
        make_folder(self.model_dir)

    def train_begin(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        self.current_epoch = 0
        self.current_batch = 0
        if self._watched:
            self.best = self._watched.worst
        if self.resume_from_checkpoint:
            by_batch = bool(estimator.max_batch)
            if bool(self.batch_period) != by_batch or bool(self.epoch_period) == by_batch:
                wanted, other = ("batch", "epoch") if by_batch else ("epoch", "batch")
                raise EstimatorError(
                    "CheckpointHandler: To use resume from checkpoint, you must only specify the same type of period you used for "
                    f"training: one that counts {wanted} by {wanted} needs {wanted}_period, and {other}_period=None"
                )
            self._resume(estimator)

    def batch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if self.current_batch == 0:
            self._save_symbol(estimator)
        if self.batch_period and (self.current_batch + 1) % self.batch_period == 0:
            self._save_checkpoint(estimator)
        self.current_batch += 1

    def epoch_end(self, estimator: Any, *args: Any, **kwargs: Any) -> None:
        if self.epoch_period and (self.current_epoch + 1) % self.epoch_period == 0:
            self._save_checkpoint(estimator)
        self.current_epoch += 1

    # ---- saving

    def _path(self, name: str) -> str:
        return os.path.join(self.model_dir, name)

    def _save_symbol(self, estimator: Any) -> None:
        """Save the graph, if there is one."""
        path = self._path(f"{self.model_prefix}-symbol.json")
        if getattr(estimator.net, "_cached_graph", ()):
            estimator.net._for_inference().graph.save(path)
        else:
            estimator.logger.info(
                "Model architecture(symbol file) is not saved, please use HybridBlock to construct your model, and call net.hybridize() "
                "before passing to Estimator in order to save model architecture as %s.",
                path,
            )

    def _save_checkpoint(self, estimator: Any) -> None:
        epoch, batch = self.current_epoch, self.current_batch
        if self.resume_from_checkpoint:
            epoch += self.trained_epoch + 1
            # At the end of an epoch this batch is counted already
            batch += self.trained_batch + (0 if estimator.max_epoch else 1)
        name = f"{self.model_prefix}-epoch{epoch}batch{batch}"
        self._save(estimator, name)
        self.saved_checkpoints.append(name)
        while len(self.saved_checkpoints) > max(self.max_checkpoints, 1):
            self._remove(self.saved_checkpoints.pop(0))
        if self.verbose > 0:
            estimator.logger.info(
                "[Epoch %d] CheckpointHandler: trained total %d batches, saving model at %s with prefix: %s",
                self.current_epoch, self.current_batch + 1, self.model_dir, name,
            )  # fmt: skip
        if self._watched:
            self._save_if_best(estimator, self._watched)

    def _save_if_best(self, estimator: Any, watched: Monitor) -> None:
        value = watched.value()
        if value is None:
            return
        name, before = self.monitor.get()[0], self.best
        better = watched.is_better(value, before)
        if better:
            self._save(estimator, f"{self.model_prefix}-best")
            self.best = value
        if self.verbose > 0:
            what = (
                f"improved from {before:.5f} to {value:.5f}, updating"
                if better
                else f"did not improve from {before:.5f}, skipping updating"
            )
            estimator.logger.info("[Epoch %d] CheckpointHandler: %s %s best model", self.current_epoch, name, what)

    def _save(self, estimator: Any, name: str) -> None:
        """Save parameters and states; states first, so that whoever sees parameters finds both."""
        estimator.trainer.save_states(self._path(f"{name}.states"))
        estimator.net.save_parameters(self._path(f"{name}.params"))

    def _remove(self, name: str) -> None:
        for ending in (".params", ".states"):
            if os.path.exists(self._path(name + ending)):
                os.remove(self._path(name + ending))

    # ---- going on

    def _found(self) -> list[tuple[int, int, str]]:
        """The checkpoints in the folder, the oldest first: epoch, batch, name. Raises FileFormatError for another name."""
        found = []
        start = f"{self.model_prefix}-epoch"
        for name in os.listdir(self.model_dir):
            if name.startswith(start) and name.endswith(".params"):
                match = re.fullmatch(r"(\d+)batch(\d+)\.params", name[len(start) :])
                if match is None:
                    raise FileFormatError(
                        f"{self._path(name)}: Error parsing checkpoint file, please check your checkpoints have the format: "
                        f"{start}<epoch number>batch<batch number>.params"
                    )
                found.append((int(match[1]), int(match[2]), name[: -len(".params")]))
        return sorted(found)

    def _resume(self, estimator: Any) -> None:
        """Load the newest checkpoint, and shorten the training."""
        found = self._found()
        self.trained_epoch, self.trained_batch, newest = found[-1] if found else (-1, -1, "")
        amount = "batch" if estimator.max_batch else "epoch"
        wanted = estimator.max_batch or estimator.max_epoch
        plural = "batches" if estimator.max_batch else "epochs"
        if not found:
            estimator.logger.info("CheckpointHandler: No checkpoint found, training from scratch for %d %s", wanted, plural)
            return
        trained = self.trained_batch if estimator.max_batch else self.trained_epoch
        left = wanted - trained - 1
        if left <= 0:
            raise EstimatorError(
                f"Found checkpoint with maximum number of {amount} {wanted} reached, please specify resume_from_checkpoint=False (default "
                "value) if you want to train from scratch."
            )
        if not os.path.exists(self._path(f"{newest}.states")):
            raise MissingFileError(f"Failed to load checkpoint, {self._path(f'{newest}.states')} does not exist")
        estimator.net.load_parameters(self._path(f"{newest}.params"), ctx=estimator.context)
        estimator.trainer.load_states(self._path(f"{newest}.states"))
        self.saved_checkpoints = [name for _, _, name in found]
        if estimator.max_batch:
            estimator.max_batch = left
        else:
            estimator.max_epoch = left
        estimator.logger.warning(
            "CheckpointHandler: Checkpoint resumed from epoch %d batch %d, continue to train for %d %s ",
            self.trained_epoch, self.trained_batch, left, plural,
        )  # fmt: skip
