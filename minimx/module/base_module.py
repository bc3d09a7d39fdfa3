"""BaseModule: the loops of training, scoring and prediction, over methods that each kind of module has.

A module is first *bound* to shapes, which makes arrays; then its parameters are initialized; then it gets an optimizer. `fit` does all
three, and for each batch calls `forward`, `backward`, `update` and `update_metric`. What is asked for too early is a ModuleStateError.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from .. import metric, nd
from ..base import ArgumentError, MXNetError, shown
from ..checkpoint import BatchEndParam, Params, as_saved, separated
from ..files import PathLike, as_path
from ..initializer import Uniform
from ..io import DataBatch, DataDesc, DataIter
from ..log import root_logger
from ..nd import NDArray
from ..sym import Symbol

__all__ = ["BaseModule", "ModuleStateError", "as_descriptions", "check_names", "described"]

Callback = Callable[..., Any]
Callbacks = Callback | Sequence[Callback] | None
SGD = (("learning_rate", 0.01),)


class ModuleStateError(MXNetError, AssertionError):
    """A module is asked for something before it is bound, initialized, or has an optimizer. (MXNet asserts it: hence the second base.)"""


def called(callbacks: Any, *args: Any) -> None:
    """Call a callback, or several, or none."""
    for callback in callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]:
        if callback is not None:
            callback(*args)


# ---- names and shapes that users give


def check_names(symbol: Symbol, names: Sequence[str], what: str, strict: bool) -> None:
    """Raise ArgumentError, or warn unless `strict`, if the symbol has not all of the arguments `names`."""
    arguments = symbol.list_arguments()
    for name in names:
        if name in arguments:
            continue
        others = [each for each in arguments if not each.endswith(("_weight", "_bias", "_gamma", "_beta"))]
        text = (
            f"the module has {what}_names={list(names)}, but {shown(name)} is no argument of its symbol. Did you mean one of "
            f"{', '.join(others) or 'none'}?"
        )
        if strict:
            raise ArgumentError(text)
        warnings.warn(text, stacklevel=3)


def as_descriptions(shapes: Any, what: str) -> list[DataDesc]:
    """Shapes as DataDesc: pairs of a name and a shape, or more of what a DataDesc has. Raises ArgumentError for anything else."""
    if not isinstance(shapes, Iterable):
        raise ArgumentError(f"{what}_shapes: a list of pairs such as ('{what}', (32, 10)) is wanted, got {shown(shapes)}")
    found = []
    for each in shapes:
        if not isinstance(each, DataDesc):
            if not isinstance(each, (tuple, list)) or not 2 <= len(each) <= 4:
                raise ArgumentError(f"{what}_shapes: pairs such as ('{what}', (32, 10)) are wanted, got {shown(each)}")
            each = DataDesc(*each)
        if not isinstance(each.name, str) or not _is_shape(each.shape):
            raise ArgumentError(
                f"{what}_shapes: a name and a tuple of int are wanted, got {shown(each.name)} and {shown(each.shape)}"
            )
        found.append(each)
    return found


def _is_shape(shape: Any) -> bool:
    return isinstance(shape, (tuple, list)) and all(isinstance(length, (int, np.integer)) for length in shape)


def described(
    data_names: Sequence[str], label_names: Sequence[str], data_shapes: Any, label_shapes: Any
) -> tuple[list[DataDesc], list[DataDesc] | None]:
    """Descriptions of data and labels. Raises ArgumentError if the data have other names than the module's, warns if labels do."""
    data = as_descriptions(data_shapes, "data")
    labels = None if label_shapes is None else as_descriptions(label_shapes, "label")
    for what, names, given in (("data", data_names, data), ("label", label_names, labels or [])):
        provided = [each.name for each in given]
        if sorted(provided) != sorted(names):
            text = f"{what}_shapes describe {provided}, but the module's {what}_names are {list(names)}"
            if what == "data":
                raise ArgumentError(text)
            warnings.warn(text, stacklevel=3)
    return data, labels


# ---- the base


class BaseModule:
    """What all modules have in common. A subclass overrides what `_missing` stands in for here.

    `binded`, `params_initialized` and `optimizer_initialized` say how far a module has come; `for_training` and `inputs_need_grad` how it
    was bound. **Source** MXNet `module.BaseModule`.
    """

    def __init__(self, logger: Any = logging) -> None:
        # The module's own functions would configure logging at the first message, and the user's basicConfig come too late.
        self.logger = root_logger() if logger is logging else logger
        self.binded = False
        self.for_training = False
        self.inputs_need_grad = False
        self.params_initialized = False
        self.optimizer_initialized = False
        self._symbol: Symbol | None = None

    def _require(self, *states: str) -> None:
        """Raise ModuleStateError unless the module is "bound", has "parameters", an "optimizer"."""
        steps = {
            "bound": (self.binded, "bind() it first"),
            "parameters": (self.params_initialized, "its parameters are not there; call init_params() first"),
            "optimizer": (self.optimizer_initialized, "it has no optimizer; call init_optimizer() first"),
        }
        for state in states:
            is_there, advice = steps[state]
            if not is_there:
                raise ModuleStateError(f"{type(self).__name__}: {advice}")

    def _missing(self, what: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} must override {what}")

    # ---- training

    def forward_backward(self, data_batch: Any) -> None:
        """`forward` and `backward` on a batch, as in training."""
        self.forward(data_batch, is_train=True)
        self.backward()

    def fit(
        self, train_data: Any, eval_data: Any = None, eval_metric: Any = "acc", epoch_end_callback: Callbacks = None,
        batch_end_callback: Callbacks = None, kvstore: Any = "local", optimizer: Any = "sgd", optimizer_params: Any = SGD,
        eval_end_callback: Callbacks = None, eval_batch_end_callback: Callbacks = None, initializer: Any = Uniform(0.01),  # noqa: B008
        arg_params: Mapping[str, NDArray] | None = None, aux_params: Mapping[str, NDArray] | None = None, allow_missing: bool = False,
        force_rebind: bool = False, force_init: bool = False, begin_epoch: int = 0, num_epoch: int | None = None,
        validation_metric: Any = None, monitor: Any = None, sparse_row_id_fn: Any = None,
    ) -> None:  # fmt: skip
        """Train on the batches of `train_data`, epochs `begin_epoch` to `num_epoch`, and log the metric after each.

        **Args** `eval_data`: scored after each epoch, by `validation_metric` or else `eval_metric`. `kvstore`: see `init_optimizer`.
        `arg_params`, `aux_params`: values to begin with; with `allow_missing` `initializer` makes the others. `force_rebind`,
        `force_init`: bind and initialize anew. `epoch_end_callback(epoch, symbol, arg_params, aux_params)`; the other callbacks get a
        BatchEndParam. Each may be a list. `monitor`: watches the batches.
        **Raises** AssertionError without `num_epoch`. **Source** MXNet `BaseModule.fit`.
        """
        if num_epoch is None:
            raise ModuleStateError("fit: please specify number of epochs, num_epoch")
        self.bind(train_data.provide_data, train_data.provide_label, for_training=True, force_rebind=force_rebind)
        if monitor is not None:
            self.install_monitor(monitor)
        if not self.params_initialized or force_init:
            self.init_params(initializer, arg_params, aux_params, allow_missing, force_init)
        self.init_optimizer(kvstore, optimizer, optimizer_params)
        validation_metric = eval_metric if validation_metric is None else validation_metric
        eval_metric = _as_metric(eval_metric)
        root_logger()  # the user may have asked for messages since this module was made
        for epoch in range(begin_epoch, num_epoch):
            begin = time.time()
            for name, value in self._fit_epoch(train_data, eval_metric, epoch, batch_end_callback, monitor, sparse_row_id_fn):
                self.logger.info("Epoch[%d] Train-%s=%f", epoch, name, value)
            self.logger.info("Epoch[%d] Time cost=%.3f", epoch, time.time() - begin)
            arg_params, aux_params = self.get_params()
            self.set_params(arg_params, aux_params)  # states such as running means differ between devices: all get their mean
            called(epoch_end_callback, epoch, self.symbol, arg_params, aux_params)
            if eval_data is not None:
                scores = self.score(
                    eval_data, validation_metric, score_end_callback=eval_end_callback,
                    batch_end_callback=eval_batch_end_callback, epoch=epoch,
                )  # fmt: skip
                for name, value in scores:
                    self.logger.info("Epoch[%d] Validation-%s=%f", epoch, name, value)
            train_data.reset()

    def _fit_epoch(
        self, train_data: Any, eval_metric: metric.EvalMetric, epoch: int, batch_end_callback: Callbacks, monitor: Any,
        sparse_row_id_fn: Any,
    ) -> list[tuple[str, Any]]:  # fmt: skip
        """Train on all batches once: names and values of the metric.

        While the devices compute, the next batch is fetched; the batch before is not touched any more then, since some iterators use
        its memory again.
        """
        eval_metric.reset()
        batches = iter(train_data)
        data_batch = next(batches, None)
        if data_batch is None:
            raise ArgumentError("fit: train_data gives no batch; was it used up? reset() it")
        nbatch = 0
        while data_batch is not None:
            if monitor is not None:
                monitor.tic()
            self.forward_backward(data_batch)
            self.update()
            self._score_batch(eval_metric, data_batch)
            data_batch = next(batches, None)
            if data_batch is not None:
                self.prepare(data_batch, sparse_row_id_fn=sparse_row_id_fn)
            if monitor is not None:
                monitor.toc_print()
            if data_batch is None:
                values = eval_metric.get_global_name_value()  # before a callback may reset it
            called(batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals()))
            nbatch += 1
        return values

    def _score_batch(self, eval_metric: metric.EvalMetric, batch: Any) -> None:
        """Tell a metric the outputs of the last `forward` and the labels of its batch, which may be cut for the devices already."""
        if isinstance(batch, list):
            self.update_metric(eval_metric, [part.label for part in batch], pre_sliced=True)
        else:
            self.update_metric(eval_metric, batch.label)

    # ---- scoring and prediction

    def _batches(self, data: Any, num_batch: int | None, reset: bool, sparse_row_id_fn: Any) -> Iterator[tuple[int, Any]]:
        """Run `forward` on the batches of `data`, at most `num_batch` of them: their numbers, and the batches."""
        self._require("bound", "parameters")
        if reset:
            data.reset()
        for number, batch in enumerate(data):
            if number == num_batch:
                return
            self.prepare(batch, sparse_row_id_fn=sparse_row_id_fn)
            self.forward(batch, is_train=False)
            yield number, batch

    def score(
        self, eval_data: Any, eval_metric: Any, num_batch: int | None = None, batch_end_callback: Callbacks = None,
        score_end_callback: Callbacks = None, reset: bool = True, epoch: int = 0, sparse_row_id_fn: Any = None,
    ) -> list[tuple[str, Any]]:  # fmt: skip
        """Names and values of a metric, or a list of them, over `eval_data`. **Source** MXNet `BaseModule.score`."""
        eval_metric = _as_metric(eval_metric)
        eval_metric.reset()
        count = 0
        for nbatch, eval_batch in self._batches(eval_data, num_batch, reset, sparse_row_id_fn):
            self._score_batch(eval_metric, eval_batch)
            called(batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals()))
            count = nbatch + 1
        called(score_end_callback, BatchEndParam(epoch, count, eval_metric, locals()))
        return eval_metric.get_name_value()

    def iter_predict(
        self, eval_data: Any, num_batch: int | None = None, reset: bool = True, sparse_row_id_fn: Any = None
    ) -> Iterator[tuple[list[NDArray], int, Any]]:
        """For each batch its outputs, without what only filled it up; its number; and the batch. **Source** MXNet
        `BaseModule.iter_predict`."""
        for number, batch in self._batches(eval_data, num_batch, reset, sparse_row_id_fn):
            yield [output[0 : output.shape[0] - (batch.pad or 0)].copy() for output in self.get_outputs()], number, batch

    def predict(
        self, eval_data: Any, num_batch: int | None = None, merge_batches: bool = True, reset: bool = True,
        always_output_list: bool = False, sparse_row_id_fn: Any = None,
    ) -> Any:  # fmt: skip
        """The outputs for an array, or for all batches of an iterator.

        **Returns** an array, or a list of them if there are several outputs or `always_output_list`; with `merge_batches=False` a list
        of the outputs' list of each batch. **Raises** ValueError for other data, AssertionError if batches differ in the number of
        outputs. **Source** MXNet `BaseModule.predict`.
        """
        self._require("bound", "parameters")
        if isinstance(eval_data, (NDArray, np.ndarray)):
            self.forward(DataBatch([nd.array(eval_data) if isinstance(eval_data, np.ndarray) else eval_data]))
            return self.get_outputs()[0].copy()
        if not isinstance(eval_data, DataIter):
            raise ArgumentError(f"predict: eval_data must be a DataIter or an array, got {shown(eval_data)}")
        found = [outputs for outputs, _, _ in self.iter_predict(eval_data, num_batch, reset, sparse_row_id_fn)]
        if not found or not merge_batches:
            return found
        if len({len(outputs) for outputs in found}) > 1:
            raise ModuleStateError("predict: batches have different numbers of outputs; merge_batches=False keeps them apart")
        merged = [nd.concatenate(list(parts)) for parts in zip(*found)]
        return merged[0] if len(merged) == 1 and not always_output_list else merged

    # ---- parameters

    def set_params(
        self, arg_params: Any, aux_params: Any, allow_missing: bool = False, force_init: bool = True, allow_extra: bool = False
    ) -> None:
        """Set parameters and auxiliary states, from dicts by name.

        **Args** `allow_missing`: those that are missing stay as they are; `allow_extra`: those that are not needed are ignored;
        `force_init`: even if there are values already. **Source** MXNet `BaseModule.set_params`.
        """
        self.init_params(None, arg_params, aux_params, allow_missing, force_init, allow_extra)

    def save_params(self, fname: PathLike) -> None:
        """Write parameters and auxiliary states to a file. A crash leaves one that was there whole."""
        nd.save(as_path(fname), as_saved(*self.get_params()))

    def load_params(self, fname: PathLike) -> None:
        """Set parameters and auxiliary states from a file. **Raises** FileFormatError, a ValueError, if it holds something else."""
        self.set_params(*separated(nd.load(as_path(fname)), f"load_params: {as_path(fname)}"))

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """The states that are no parameters: none, unless a subclass has some."""
        self._require("bound", "parameters")
        return []

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Set the states that are no parameters. **Raises** ArgumentError, as there are none unless a subclass has some."""
        self._require("bound", "parameters")
        if states or value:
            raise ArgumentError(f"set_states: {type(self).__name__} has no states")

    def prepare(self, data_batch: Any, sparse_row_id_fn: Any = None) -> None:
        """Get ready for a batch that comes next. `sparse_row_id_fn` is not called, since all parameters are dense."""
        if sparse_row_id_fn is not None:
            warnings.warn("sparse_row_id_fn is not called: all parameters are dense", stacklevel=2)

    @property
    def symbol(self) -> Any:
        """The graph; that of the current bucket, of a BucketingModule; None if there is none."""
        return self._symbol

    # ---- what each kind of module does its own way

    @property
    def data_names(self) -> list[str]:
        """Names of the data that `forward` wants."""
        self._missing("data_names")

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        self._missing("output_names")

    @property
    def data_shapes(self) -> Any:
        """Names and shapes of the data, when it is bound."""
        self._missing("data_shapes")

    @property
    def label_shapes(self) -> Any:
        """Names and shapes of the labels, when it is bound; None or [] without labels."""
        self._missing("label_shapes")

    @property
    def output_shapes(self) -> Any:
        """Names and shapes of the outputs, when it is bound."""
        self._missing("output_shapes")

    def bind(
        self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True, inputs_need_grad: bool = False,
        force_rebind: bool = False, shared_module: Any = None, grad_req: Any = "write",
    ) -> None:  # fmt: skip
        """Make the arrays for data of these shapes. `data_shapes` are `iterator.provide_data`, or pairs of a name and a shape."""
        self._missing("bind")

    def init_params(
        self, initializer: Any = Uniform(0.01), arg_params: Any = None, aux_params: Any = None,  # noqa: B008
        allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False,
    ) -> None:  # fmt: skip
        """Give parameters their first values, those of `arg_params` and `aux_params`, else those of `initializer`."""
        self._missing("init_params")

    def init_optimizer(
        self, kvstore: Any = "local", optimizer: Any = "sgd", optimizer_params: Any = SGD, force_init: bool = False
    ) -> None:
        """Get ready for `update`."""
        self._missing("init_optimizer")

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs for a batch; `is_train` is by default `for_training`."""
        self._missing("forward")

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradients from those of the outputs, which losses do not need."""
        self._missing("backward")

    def update(self) -> None:
        """Let the optimizer change the parameters by their gradients."""
        self._missing("update")

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Tell a metric the outputs and their labels; `pre_sliced`: a list of labels for each device."""
        self._missing("update_metric")

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """The outputs of the last `forward`; `merge_multi_context=False`: a list of those of each device for each."""
        self._missing("get_outputs")

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradients of the data, as `get_outputs`."""
        self._missing("get_input_grads")

    def get_params(self) -> tuple[Params, Params]:
        """Parameters and auxiliary states by name, in host memory."""
        self._missing("get_params")

    def install_monitor(self, mon: Any) -> None:
        """Have a Monitor watch the executors."""
        self._missing("install_monitor")


def _as_metric(given: Any) -> metric.EvalMetric:
    return given if isinstance(given, metric.EvalMetric) else metric.create(given)
