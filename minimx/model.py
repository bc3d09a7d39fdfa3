"""`mx.model`: checkpoints, and FeedForward, the way to train that scripts used before `mx.mod.Module`.

FeedForward looks like a classifier of scikit-learn: `fit(X, y)`, `predict(X)`, `score(X)`, on NumPy arrays as well as on iterators. It does
all with modules (module/).
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import metric
from .base import ArgumentError, DTypeError, MXNetError, shown
from .callback import LogValidationMetricsCallback
from .checkpoint import BatchEndParam, Params, load_checkpoint, load_params, save_checkpoint
from .device import Context, cpu
from .files import PathLike
from .initializer import Uniform
from .io import DataIter, NDArrayIter
from .module import BucketingModule, Module
from .module.base_module import BaseModule, ModuleStateError, called
from .nd import NDArray
from .sym import Symbol

__all__ = ["BatchEndParam", "FeedForward", "load_checkpoint", "load_params", "save_checkpoint"]


class FeedForward:
    """Trains a Symbol, and predicts with it. Deprecated, as in MXNet: `mx.mod.Module` does the same.

    **Args** `symbol`: the graph, or a function from the key of a bucket to one. `ctx`: a device, or several. `num_epoch`: epochs to train,
    from `begin_epoch`; `epoch_size`: batches of an epoch, by default all. `optimizer`: a name, whose arguments are `kwargs`, or an
    Optimizer. `numpy_batch_size`: examples of a batch, where data are arrays. `arg_params`, `aux_params`: values to begin with;
    `allow_extra_params`: these may have names that the symbol has not. **Source** MXNet `model.FeedForward`.
    """

    def __init__(
        self, symbol: Symbol | Callable[[Any], Symbol], ctx: Any = None, num_epoch: int | None = None, epoch_size: int | None = None,
        optimizer: Any = "sgd", initializer: Any = Uniform(0.01), numpy_batch_size: int = 128,  # noqa: B008
        arg_params: Params | None = None, aux_params: Params | None = None, allow_extra_params: bool = False, begin_epoch: int = 0,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        warnings.warn("model.FeedForward has been deprecated. Please use mod.Module instead.", DeprecationWarning, stacklevel=2)
        if not isinstance(symbol, Symbol) and not callable(symbol):
            raise ArgumentError(f"FeedForward: symbol must be a Symbol, or a function that gives one, got {shown(symbol)}")
        self.symbol: Any = symbol if isinstance(symbol, Symbol) else None
        self.sym_gen = None if isinstance(symbol, Symbol) else symbol
        self.ctx: list[Context] = list(ctx) if isinstance(ctx, (list, tuple)) else [ctx or cpu()]
        self.num_epoch, self.begin_epoch, self.epoch_size = num_epoch, begin_epoch, epoch_size
        self.optimizer, self.kwargs = optimizer, dict(kwargs)
        self.initializer = initializer
        self.numpy_batch_size = numpy_batch_size
        self.arg_params, self.aux_params = arg_params, aux_params
        self.allow_extra_params = allow_extra_params
        self._predictor: Module | None = None
        if self.symbol is not None:
            self._check_arguments()

    def _check_arguments(self) -> None:
        """Raise ArgumentError if two arguments or states have one name; drop values that the symbol does not need, if that is allowed."""
        for what, names in (("argument", self.symbol.list_arguments()), ("auxiliary state", self.symbol.list_auxiliary_states())):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ArgumentError(
                    f"FeedForward: several {what}s of the symbol are called {', '.join(twice)}; give them other names"
                )
        if self.allow_extra_params:
            known = {*self.symbol.list_arguments(), *self.symbol.list_auxiliary_states()}
            self.arg_params, self.aux_params = (
                params and {name: array for name, array in params.items() if name in known}
                for params in (self.arg_params, self.aux_params)
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_predictor": None}

    # ---- data

    def _as_iterator(self, X: Any, y: Any, is_train: bool) -> DataIter:
        """Arrays as an iterator over batches; an iterator as it is. **Raises** ValueError, TypeError for what does not fit."""
        if isinstance(X, DataIter):
            return X
        if not isinstance(X, (np.ndarray, NDArray)):
            raise DTypeError(f"FeedForward: X must be DataIter, NDArray or numpy.ndarray, got {shown(X)}")
        if y is None:
            if is_train:
                raise ArgumentError("FeedForward: y must be specified when X is an array")
            y = np.zeros(X.shape[0])
        if not isinstance(y, (np.ndarray, NDArray)):
            raise DTypeError(f"FeedForward: y must be an array when X is one, got {shown(y)}")
        if X.shape[0] != y.shape[0]:
            raise ArgumentError(f"FeedForward: X has {X.shape[0]} examples, and y {y.shape[0]} labels; they must be equally many")
        if y.ndim == 2 and y.shape[1] == 1:
            y = y.reshape(-1)
        if y.ndim != 1:
            raise ArgumentError(f"FeedForward: y has shape {y.shape}; labels must be of shape (N,), or (N, 1)")
        last = "roll_over" if is_train else "pad"
        return NDArrayIter(X, y, min(X.shape[0], self.numpy_batch_size), shuffle=is_train, last_batch_handle=last)

    def _as_evaluation(self, eval_data: Any) -> DataIter | None:
        """An iterator over what a training is evaluated on: None, an iterator, or a pair of data and labels."""
        if eval_data is None or isinstance(eval_data, DataIter):
            return eval_data
        if not isinstance(eval_data, (tuple, list)) or len(eval_data) != 2:
            raise DTypeError(f"Eval data must be DataIter, or a pair of data and labels, got {shown(eval_data)}")
        data, labels = (np.array(each) if isinstance(each, list) else each for each in eval_data)
        if data is None:
            raise ArgumentError("Eval data is NONE")
        return data if labels is None and isinstance(data, DataIter) else self._as_iterator(data, labels, is_train=True)

    # ---- training

    def fit(
        self, X: Any, y: Any = None, eval_data: Any = None, eval_metric: Any = "acc", epoch_end_callback: Any = None,
        batch_end_callback: Any = None, kvstore: Any = "local", logger: Any = None, work_load_list: Sequence[float] | None = None,
        monitor: Any = None, eval_end_callback: Any = LogValidationMetricsCallback(), eval_batch_end_callback: Any = None,  # noqa: B008
    ) -> None:  # fmt: skip
        """Train on `X`, an iterator or an array with labels `y`.

        **Args** `eval_data`: scored after each epoch, an iterator or a pair of data and labels. The others are those of `Module.fit`.
        **Raises** AssertionError if `num_epoch` was not given. **Source** MXNet `FeedForward.fit`.
        """
        if self.num_epoch is None:
            raise ModuleStateError("FeedForward.fit: num_epoch was not given; FeedForward(symbol, num_epoch=10) trains 10 epochs")
        logger = logger or logging.getLogger()
        data, eval_data = self._as_iterator(X, y, is_train=True), self._as_evaluation(eval_data)
        module = self._trained(data, kvstore, logger, work_load_list)
        if monitor is not None:
            module.install_monitor(monitor)
        eval_metric = eval_metric if isinstance(eval_metric, metric.EvalMetric) else metric.create(eval_metric)
        data.reset()
        for epoch in range(self.begin_epoch, self.num_epoch):
            begin = time.time()
            eval_metric.reset()
            self._fit_epoch(module, data, eval_metric, epoch, batch_end_callback, monitor, logger)
            logger.info("Epoch[%d] Time cost=%.3f", epoch, time.time() - begin)
            self.arg_params, self.aux_params = module.get_params()
            called(epoch_end_callback, epoch, self.symbol, self.arg_params, self.aux_params)
            if eval_data is not None:
                module.score(eval_data, eval_metric, None, eval_batch_end_callback, eval_end_callback, epoch=epoch)
                eval_data.reset()
        self._predictor = None

    def _trained(self, data: DataIter, kvstore: Any, logger: Any, work_load_list: Any) -> BaseModule:
        """A module that is ready to be trained on `data`."""
        data_names, label_names = ([name for name, *_ in shapes] for shapes in (data.provide_data, data.provide_label))
        how = {"logger": logger, "context": self.ctx, "work_load_list": work_load_list}
        module: BaseModule
        if self.sym_gen is not None:
            generate, key = self.sym_gen, data.default_bucket_key  # type: ignore[attr-defined]  # an iterator with buckets has it
            self.symbol = generate(key)
            self._check_arguments()
            module = BucketingModule(lambda key: (generate(key), data_names, label_names), key, **how)
        else:
            module = Module(self.symbol, data_names, label_names, **how)
        module.bind(data.provide_data, data.provide_label)
        module.init_params(self.initializer, self.arg_params, self.aux_params, allow_missing=True)
        module.init_optimizer(kvstore, self.optimizer, self.kwargs)
        return module

    def _fit_epoch(
        self, module: BaseModule, data: DataIter, eval_metric: Any, epoch: int, batch_end_callback: Any, monitor: Any, logger: Any
    ) -> None:
        """Train on all batches, or as many as an epoch has: then it goes on where the last one ended."""
        nbatch = 0
        while True:
            for batch in data:
                if monitor is not None:
                    monitor.tic()
                module.forward_backward(batch)
                module.update()
                if monitor is not None:
                    monitor.toc_print()
                module.update_metric(eval_metric, batch.label)
                nbatch += 1
                called(batch_end_callback, BatchEndParam(epoch, nbatch, eval_metric, locals()))
                if nbatch == self.epoch_size:
                    return
            logger.info("Epoch[%d] Resetting Data Iterator", epoch)
            data.reset()
            if self.epoch_size is None:
                return
            if nbatch == 0:
                raise ArgumentError("FeedForward.fit: the data have no batch")

    @staticmethod
    def create(
        symbol: Any, X: Any, y: Any = None, ctx: Any = None, num_epoch: int | None = None, epoch_size: int | None = None,
        optimizer: Any = "sgd", initializer: Any = Uniform(0.01), eval_data: Any = None, eval_metric: Any = "acc",  # noqa: B008
        epoch_end_callback: Any = None, batch_end_callback: Any = None, kvstore: Any = "local", logger: Any = None,
        work_load_list: Any = None, eval_end_callback: Any = LogValidationMetricsCallback(),  # noqa: B008
        eval_batch_end_callback: Any = None, **kwargs: Any,
    ) -> FeedForward:  # fmt: skip
        """A model, made and trained. **Source** MXNet `FeedForward.create`."""
        model = FeedForward(symbol, ctx, num_epoch, epoch_size, optimizer, initializer, **kwargs)
        model.fit(
            X, y, eval_data, eval_metric, epoch_end_callback, batch_end_callback, kvstore, logger, work_load_list, None, eval_end_callback,
            eval_batch_end_callback,
        )  # fmt: skip
        return model

    # ---- prediction, on the first device

    def _ready(self, data: DataIter) -> Module:
        """A module bound for prediction on `data`, with the parameters of this model."""
        if self.symbol is None or self.arg_params is None:
            raise MXNetError("FeedForward: there are no parameters; fit() the model, or pass arg_params")
        names = [name for name, *_ in data.provide_data]
        labels = [
            name for name in self.symbol.list_arguments() if name.endswith("label") and name not in (*names, *self.arg_params)
        ]
        if self._predictor is None or self._predictor.data_names != names:
            self._predictor = Module(self.symbol, names, None, context=self.ctx[0], state_names=labels)
        # What it is bound for stands here; an executor for other shapes of the labels, too, is another one.
        self._predictor.bind(data.provide_data, for_training=False, force_rebind=True)
        self._predictor.init_params(None, self.arg_params, self.aux_params or {}, force_init=True)
        return self._predictor

    def predict(self, X: Any, num_batch: int | None = None, return_data: bool = False, reset: bool = True) -> Any:
        """The outputs for `X`, an iterator or an array, as NumPy arrays: one, or a list if there are several.

        **Args** `num_batch`: batches at most. `return_data`: give data and labels back, too, in a triple. **Source** MXNet
        `FeedForward.predict`.
        """
        data = self._as_iterator(X, None, is_train=False)
        outputs: list[list[Any]] = []
        inputs: list[list[Any]] = []
        labels: list[list[Any]] = []
        for results, _, batch in self._ready(data).iter_predict(data, num_batch, reset):
            count = results[0].shape[0]
            outputs.append(results)
            if return_data:
                inputs.append([array[0:count] for array in batch.data])
                labels.append([array[0:count] for array in batch.label or []])
        if not outputs:
            raise ArgumentError("FeedForward.predict: the data have no batch; were they used up? reset=True begins anew")
        return tuple(map(_joined, (outputs, inputs, labels))) if return_data else _joined(outputs)

    def score(
        self, X: Any, eval_metric: Any = "acc", num_batch: int | None = None, batch_end_callback: Any = None, reset: bool = True
    ) -> Any:
        """The value of a metric over the data and labels of an iterator. **Source** MXNet `FeedForward.score`."""
        data = self._as_iterator(X, None, is_train=False)
        eval_metric = eval_metric if isinstance(eval_metric, metric.EvalMetric) else metric.create(eval_metric)
        module = self._ready(data)
        for nbatch, batch in module._batches(data, num_batch, reset, None):
            eval_metric.update(batch.label, module.get_outputs())
            called(batch_end_callback, BatchEndParam(0, nbatch, eval_metric, locals()))
        return eval_metric.get()[1]

    # ---- files

    def save(self, prefix: PathLike, epoch: int | None = None, remove_amp_cast: bool = True) -> None:
        """Write a checkpoint, by default of the last epoch. **Source** MXNet `FeedForward.save`."""
        epoch = self.num_epoch if epoch is None else epoch
        if epoch is None:
            raise ModuleStateError("FeedForward.save: epoch is missing")
        save_checkpoint(prefix, epoch, self.symbol, self.arg_params or {}, self.aux_params or {}, remove_amp_cast)

    @staticmethod
    def load(prefix: PathLike, epoch: int, ctx: Any = None, **kwargs: Any) -> FeedForward:
        """A model of a checkpoint, which `fit` trains further. `kwargs` are those of FeedForward. **Source** MXNet `FeedForward.load`."""
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        return FeedForward(symbol, ctx, arg_params=arg_params, aux_params=aux_params, begin_epoch=epoch, **kwargs)


def _joined(batches: list[list[NDArray]]) -> Any:
    """Arrays of all batches, one after the other: one, or a list if each batch has several."""
    joined = [np.concatenate([array.asnumpy() for array in parts]) for parts in zip(*batches)]
    return joined[0] if len(joined) == 1 else joined
