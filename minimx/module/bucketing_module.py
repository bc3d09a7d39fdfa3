"""BucketingModule: a graph for each length of the data, with the same parameters.

Sentences differ in length, and a graph that is unrolled over time has one. So sentences of similar length are gathered in *buckets*; a
function `sym_gen` makes the graph of a bucket, from the bucket's key, such as its length; and a batch says which bucket it belongs to. Each
bucket has a Module, which is made when its first batch comes, and shares its arrays with that of the default, largest bucket.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .. import nd, sym
from ..base import ArgumentError, shown
from ..checkpoint import Params, load_params, params_file
from ..device import cpu
from ..files import PathLike, as_path
from ..initializer import Uniform
from ..name import NameManager
from .base_module import SGD, BaseModule, ModuleStateError
from .module import Module

__all__ = ["BucketingModule"]


class BucketingModule(BaseModule):
    """Trains graphs that share parameters, one for each bucket.

    **Args** `sym_gen`: from a bucket's key to a triple: symbol, names of data, names of labels. `default_bucket_key`: that of the bucket to
    bind first, usually the largest. The others are those of `Module`. **Source** MXNet `module.BucketingModule`.
    """

    def __init__(
        self, sym_gen: Callable[[Any], Any], default_bucket_key: Any = None, logger: Any = logging, context: Any = None,
        work_load_list: Any = None, fixed_param_names: Any = None, state_names: Any = None, group2ctxs: Any = None,
        compression_params: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(logger)
        if default_bucket_key is None:
            raise ModuleStateError("BucketingModule: default_bucket_key is missing, the key of the bucket to bind first")
        self._default_bucket_key = default_bucket_key
        self._sym_gen = sym_gen
        self._options = {
            "logger": logger, "context": cpu() if context is None else context, "work_load_list": work_load_list,
            "fixed_param_names": fixed_param_names, "state_names": state_names, "group2ctxs": group2ctxs,
            "compression_params": compression_params,
        }  # fmt: skip
        self._params_dirty = False
        self._grad_req: Any = None
        self._monitor: Any = None
        self._reset_bind()
        self._module(default_bucket_key)  # raises if the names do not fit

    def _reset_bind(self) -> None:
        self.binded = False
        self._buckets: dict[Any, Module] = {}
        self._curr_module: Any = None  # a Module, when it is bound
        self._curr_bucket_key: Any = None

    def _generated(self, key: Any) -> tuple[Any, Any, Any]:
        """Symbol, names of data and names of labels of a bucket. Automatic names are the same for all."""
        with NameManager():
            found = self._sym_gen(key)
        if not isinstance(found, (tuple, list)) or len(found) != 3:
            raise ArgumentError(f"BucketingModule: sym_gen must give (symbol, data_names, label_names), got {shown(found)}")
        return found[0], found[1], found[2]

    def _module(self, key: Any, symbol: Any = None) -> Module:
        """A new module for a bucket."""
        generated, data_names, label_names = self._generated(key)
        return Module(generated if symbol is None else symbol, data_names, label_names, **self._options)

    # ---- files

    def save_checkpoint(
        self, prefix: PathLike, epoch: int, remove_amp_cast: bool = False, save_optimizer_states: bool = False
    ) -> None:
        """Write the parameters, `prefix-<epoch>.params`; the graph of each bucket, `prefix-<key>-symbol.json`; and the buckets' keys,
        `prefix.buckets`; with `save_optimizer_states` also `prefix-<epoch>.states`.

        **Raises** ArgumentError for keys that are no whole numbers: the file holds nothing else. **Source** MXNet
        `BucketingModule.save_checkpoint`.
        """
        if not self._buckets:
            raise ModuleStateError("Empty BucketingModule cannot be saved; bind() it first")
        keys = list(self._buckets)
        if not all(isinstance(key, (int, np.integer)) for key in keys):
            raise ArgumentError(f"save_checkpoint: keys of buckets must be whole numbers to be saved, got {shown(keys)}")
        self.save_params(params_file(prefix, epoch))
        for key, module in self._buckets.items():
            module.symbol.save(f"{as_path(prefix)}-{key}-symbol.json", remove_amp_cast)
        nd.save(f"{as_path(prefix)}.buckets", nd.array(keys, dtype="int32"))
        if save_optimizer_states:
            self._curr_module.save_optimizer_states(params_file(prefix, epoch, "states"))

    @staticmethod
    def load(prefix: PathLike, epoch: int, sym_gen: Any = None, default_bucket_key: Any = None, **kwargs: Any) -> BucketingModule:
        """A module of what `save_checkpoint` wrote, to be bound. `sym_gen` is the one that was used then; `kwargs` are those of
        `BucketingModule`. **Source** MXNet `BucketingModule.load`."""
        if sym_gen is None or default_bucket_key is None:
            raise ModuleStateError("sym_gen and default_bucket_key are required for loading BucketingModule")
        saved: Any = nd.load(f"{as_path(prefix)}.buckets")
        keys = saved[0].asnumpy().tolist()
        symbols = {key: sym.load(f"{as_path(prefix)}-{key}-symbol.json") for key in keys}
        return BucketingModule.load_dict(symbols, sym_gen, default_bucket_key, *load_params(prefix, epoch), **kwargs)

    @staticmethod
    def load_dict(
        sym_dict: Mapping[Any, Any] | None = None, sym_gen: Any = None, default_bucket_key: Any = None,
        arg_params: Params | None = None, aux_params: Params | None = None, **kwargs: Any,
    ) -> BucketingModule:  # fmt: skip
        """A module of symbols by bucket, and of parameters, to be bound. **Source** MXNet `BucketingModule.load_dict`."""
        for name, value in (
            ("sym_dict", sym_dict), ("sym_gen", sym_gen), ("default_bucket_key", default_bucket_key), ("arg_params", arg_params),
            ("aux_params", aux_params),
        ):  # fmt: skip
            if value is None:
                raise ModuleStateError(f"{name} needs to be provided for BucketingModule.load_dict")
        assert sym_dict is not None
        loaded = BucketingModule(sym_gen, default_bucket_key, **kwargs)
        if default_bucket_key not in sym_dict:
            raise ArgumentError(f"load: there is no bucket {shown(default_bucket_key)}, only {shown(list(sym_dict))}")
        loaded._buckets = {key: loaded._module(key, symbol) for key, symbol in sym_dict.items()}
        loaded._curr_module = loaded._buckets[default_bucket_key]
        loaded._curr_module._arg_params, loaded._curr_module._aux_params = arg_params, aux_params
        loaded._curr_module.params_initialized = loaded.params_initialized = True
        return loaded

    # ---- what it is

    @property
    def data_names(self) -> list[str]:
        return self._curr_module.data_names if self.binded else list(self._generated(self._default_bucket_key)[1] or ())

    @property
    def output_names(self) -> list[str]:
        return self._curr_module.output_names if self.binded else self._generated(self._default_bucket_key)[0].list_outputs()

    @property
    def data_shapes(self) -> Any:
        self._require("bound")
        return self._curr_module.data_shapes

    @property
    def label_shapes(self) -> Any:
        self._require("bound")
        return self._curr_module.label_shapes

    @property
    def output_shapes(self) -> Any:
        self._require("bound")
        return self._curr_module.output_shapes

    @property
    def symbol(self) -> Any:
        """The graph of the current bucket."""
        self._require("bound")
        return self._curr_module.symbol

    # ---- binding

    def bind(
        self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True, inputs_need_grad: bool = False,
        force_rebind: bool = False, shared_module: Any = None, grad_req: Any = "write",
    ) -> None:  # fmt: skip
        """Bind the default bucket, for data of these shapes; the others are bound when their batches come. See `Module.bind`."""
        params = self.get_params() if self.params_initialized else None
        if force_rebind:
            self._reset_bind()
        if self.binded:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if shared_module is not None:
            raise ModuleStateError("bind: shared_module for BucketingModule is not supported")
        key = self._default_bucket_key
        module = self._buckets.get(key) or self._module(key)
        module.bind(data_shapes, label_shapes, for_training, inputs_need_grad, grad_req=grad_req)
        self.for_training, self.inputs_need_grad, self._grad_req = for_training, inputs_need_grad, grad_req
        self._buckets[key] = self._curr_module = module
        self._curr_bucket_key = key
        self.binded = True
        if params is not None:
            self.set_params(*params)

    def switch_bucket(self, bucket_key: Any, data_shapes: Any, label_shapes: Any = None) -> None:
        """Make a bucket the current one. If it is new it is bound for data of these shapes. **Source** MXNet
        `BucketingModule.switch_bucket`."""
        self._require("bound")
        module = self._buckets.get(bucket_key)
        if module is None:
            module = self._module(bucket_key)
        if not module.binded:
            module.bind(
                data_shapes, label_shapes, self.for_training, self.inputs_need_grad,
                shared_module=self._buckets[self._default_bucket_key], grad_req=self._grad_req,
            )  # fmt: skip
            if self._monitor is not None:
                module.install_monitor(self._monitor)
            self._buckets[bucket_key] = module
        self._curr_module, self._curr_bucket_key = module, bucket_key

    def prepare(self, data_batch: Any, sparse_row_id_fn: Any = None) -> None:
        """Bind the bucket of a batch that comes next, if it is new."""
        self._require("bound", "parameters")
        before = self._curr_bucket_key
        self._switch_to(data_batch)
        self._curr_module.prepare(data_batch, sparse_row_id_fn=sparse_row_id_fn)
        self.switch_bucket(before, None)

    def _switch_to(self, data_batch: Any) -> None:
        self.switch_bucket(data_batch.bucket_key, data_batch.provide_data, data_batch.provide_label)

    # ---- parameters and optimizer

    def get_params(self) -> tuple[Params, Params]:
        self._require("parameters")
        self._curr_module._params_dirty = self._params_dirty
        params = self._curr_module.get_params()
        self._params_dirty = False
        return params

    def init_params(
        self, initializer: Any = Uniform(0.01), arg_params: Any = None, aux_params: Any = None,  # noqa: B008
        allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False,
    ) -> None:  # fmt: skip
        """See `Module.init_params`."""
        if self.params_initialized and not force_init:
            return
        self._require("bound")
        if self.params_initialized:
            self.get_params()  # of the bucket that was trained last
        self._curr_module.init_params(initializer, arg_params, aux_params, allow_missing, force_init, allow_extra)
        self._params_dirty = False
        self.params_initialized = True

    def set_params(
        self, arg_params: Any, aux_params: Any, allow_missing: bool = False, force_init: bool = True, allow_extra: bool = False
    ) -> None:
        """See `Module.set_params`."""
        if not allow_missing:
            self.init_params(None, arg_params, aux_params, allow_missing, force_init)
            return
        if self.params_initialized and not force_init:
            warnings.warn("Parameters already initialized and force_init=False. set_params call ignored.", stacklevel=2)
            return
        self._require("bound")
        self._curr_module.set_params(arg_params, aux_params, allow_missing, force_init, allow_extra)
        self.params_initialized = self._params_dirty = True

    def init_optimizer(
        self, kvstore: Any = "local", optimizer: Any = "sgd", optimizer_params: Any = SGD, force_init: bool = False
    ) -> None:
        """One optimizer for all buckets. See `Module.init_optimizer`."""
        self._require("bound", "parameters")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring.")
            return
        self._curr_module.init_optimizer(kvstore, optimizer, optimizer_params, force_init=force_init)
        for module in self._buckets.values():
            if module is not self._curr_module:
                module.borrow_optimizer(self._curr_module)
        self.optimizer_initialized = True

    # ---- computing, in the current bucket

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Switch to the batch's bucket, `data_batch.bucket_key`, and compute its outputs."""
        self._require("bound", "parameters")
        self._switch_to(data_batch)
        self._curr_module.forward(data_batch, is_train=is_train)

    def backward(self, out_grads: Any = None) -> None:
        self._require("bound", "parameters")
        self._curr_module.backward(out_grads=out_grads)

    def update(self) -> None:
        self._require("bound", "parameters", "optimizer")
        self._params_dirty = True
        self._curr_module.update()

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        self._require("bound", "parameters")
        return self._curr_module.get_outputs(merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        self._require("bound", "parameters")
        return self._curr_module.get_input_grads(merge_multi_context)

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        self._require("bound", "parameters")
        return self._curr_module.get_states(merge_multi_context)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        self._require("bound", "parameters")
        self._curr_module.set_states(states, value)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        self._require("bound", "parameters")
        self._curr_module.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Any) -> None:
        self._require("bound")
        self._monitor = mon
        for module in self._buckets.values():
            if module.binded:
                module.install_monitor(mon)
