"""Module: a Symbol, the devices it runs on, its parameters and their optimizer.

The executors are in an executor group (executor_group.py); how gradients reach the weights stands in stores.py. Parameters are held twice:
on the devices, where they are trained, and in host memory, `_arg_params`, where they are initialized, saved and asked for. After an update
the second ones are out of date (`_params_dirty`) until somebody asks.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence
from typing import Any

from .. import files, nd, optimizer as opt
from ..base import ArgumentError, ShapeError, shown
from ..checkpoint import Params, load_checkpoint, params_file
from ..device import Context, cpu
from ..files import PathLike
from ..initializer import InitDesc, Uniform
from ..io import DataDesc
from ..log import root_logger
from ..nd import NDArray
from ..parallel.kvstore import in_file, read_states
from ..sym import Symbol
from .base_module import SGD, BaseModule, ModuleStateError, check_names, described
from .executor_group import DataParallelExecutorGroup
from .stores import create_store, fill_store, match_states, update_by_updater, update_in_store

__all__ = ["Module"]


class Module(BaseModule):
    """Trains a Symbol.

    **Args** `data_names`, `label_names`: arguments that are data, and labels; `state_names`: arguments that are neither, but set with
    `set_states`; all others are parameters, of which `fixed_param_names` are not trained. `context`: a device or several, among which a
    batch is shared out in proportion to `work_load_list`. `group2ctxs`: devices by the attribute `ctx_group` of nodes, a dict for all or
    one for each device. `compression_params`: for a store that compresses gradients. **Source** MXNet `module.Module`.

    >>> net = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2), name="softmax")
    >>> data = mx.io.NDArrayIter(np.eye(4), np.array([0, 1, 0, 1]), batch_size=2)
    >>> module = mx.mod.Module(net)
    >>> module.fit(data, num_epoch=3, optimizer_params={"learning_rate": 1.0})
    """

    def __init__(
        self, symbol: Symbol, data_names: Sequence[str] | None = ("data",), label_names: Sequence[str] | None = ("softmax_label",),
        logger: Any = logging, context: Any = None, work_load_list: Sequence[float] | None = None,
        fixed_param_names: Sequence[str] | None = None, state_names: Sequence[str] | None = None, group2ctxs: Any = None,
        compression_params: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(logger)
        if not isinstance(symbol, Symbol):
            raise ArgumentError(f"Module: symbol must be a Symbol, got {shown(symbol)}")
        self._context: list[Context] = list(context) if isinstance(context, (list, tuple)) else [context or cpu()]
        if not self._context or not all(isinstance(each, Context) for each in self._context):
            raise ArgumentError(f"Module: context must be a device such as mx.cpu(), or a list of them, got {shown(context)}")
        self._work_load_list = list(work_load_list or [1] * len(self._context))
        if len(self._work_load_list) != len(self._context):
            raise ModuleStateError(f"Module: {len(self._work_load_list)} workloads are given for {len(self._context)} devices")
        self._symbol: Symbol = symbol
        self._data_names, self._label_names = list(data_names or ()), list(label_names or ())
        self._state_names, self._fixed_param_names = list(state_names or ()), list(fixed_param_names or ())
        for what, names, strict in (
            ("data", self._data_names, True), ("label", self._label_names, False), ("state", self._state_names, True),
            ("fixed_param", self._fixed_param_names, True),
        ):  # fmt: skip
            check_names(symbol, names, what, strict)
        inputs = {*self._data_names, *self._label_names, *self._state_names}
        self._param_names = [name for name in symbol.list_arguments() if name not in inputs]
        self._aux_names = symbol.list_auxiliary_states()
        self._output_names = symbol.list_outputs()
        self._group2ctxs = group2ctxs
        self._compression_params = compression_params
        self._arg_params: Params | None = None
        self._aux_params: Params | None = None
        self._params_dirty = False
        self._grad_req: Any = None
        self._optimizer: opt.Optimizer | None = None
        self._kvstore: Any = None
        self._update_on_kvstore = False
        self._updater: opt.Updater | None = None
        self._preload_opt_states: str | None = None
        self._states_loaded = False
        self._reset_bind()

    def _reset_bind(self) -> None:
        self.binded = False
        self._exec_group: Any = None  # a DataParallelExecutorGroup, when it is bound
        self._data_shapes: list[DataDesc] | None = None
        self._label_shapes: list[DataDesc] | None = None

    # ---- files

    @staticmethod
    def load(prefix: PathLike, epoch: int, load_optimizer_states: bool = False, **kwargs: Any) -> Module:
        """A module of a checkpoint's graph and parameters, to be bound. `kwargs` are those of `Module`.

        **Args** `load_optimizer_states`: `init_optimizer` will load the states saved beside it. **Source** MXNet `Module.load`.
        """
        symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
        module = Module(symbol, **kwargs)
        module._arg_params, module._aux_params = arg_params, aux_params
        module.params_initialized = True
        if load_optimizer_states:
            module._preload_opt_states = params_file(prefix, epoch, "states")
        return module

    def save_checkpoint(
        self, prefix: PathLike, epoch: int, save_optimizer_states: bool = False, remove_amp_cast: bool = True
    ) -> None:
        """Write `prefix-symbol.json`, `prefix-<epoch>.params`, and perhaps `prefix-<epoch>.states`.

        A crash leaves files that were there whole. **Source** MXNet `Module.save_checkpoint`.
        """
        self._symbol.save(f"{files.as_path(prefix)}-symbol.json", remove_amp_cast)
        name = params_file(prefix, epoch)
        self.save_params(name)
        root_logger().info('Saved checkpoint to "%s"', name)
        if save_optimizer_states:
            states = params_file(prefix, epoch, "states")
            self.save_optimizer_states(states)
            root_logger().info('Saved optimizer state to "%s"', states)

    # ---- what it is

    @property
    def data_names(self) -> list[str]:
        return self._data_names

    @property
    def label_names(self) -> list[str]:
        """Names of the labels."""
        return self._label_names

    @property
    def output_names(self) -> list[str]:
        return self._output_names

    @property
    def data_shapes(self) -> Any:
        self._require("bound")
        return self._data_shapes

    @property
    def label_shapes(self) -> Any:
        self._require("bound")
        return self._label_shapes

    @property
    def output_shapes(self) -> Any:
        self._require("bound")
        return self._exec_group.get_output_shapes()

    # ---- binding

    def bind(
        self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True, inputs_need_grad: bool = False,
        force_rebind: bool = False, shared_module: Any = None, grad_req: Any = "write",
    ) -> None:  # fmt: skip
        """Make executors and their arrays for batches of these shapes. Parameters that are there already stay.

        **Args** `data_shapes`, `label_shapes`: `iterator.provide_data` and `provide_label`, or pairs of a name and a shape. `for_training`:
        with gradients; `inputs_need_grad`: of the data, too. `force_rebind`: even if it is bound, else that is ignored. `shared_module`: a
        bound module with the same parameters, whose arrays and optimizer it uses. `grad_req`: "write", "add" or "null" for all, or a
        list or dict by argument. **Source** MXNet `Module.bind`.
        """
        if force_rebind:
            self._reset_bind()
        if self.binded:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if inputs_need_grad and not for_training:
            raise ModuleStateError("bind: inputs_need_grad=True needs for_training=True")
        if shared_module is not None and not (isinstance(shared_module, Module) and shared_module.params_initialized):
            raise ModuleStateError("bind: shared_module must be a Module that is bound and initialized")
        data, labels = described(self._data_names, self._label_names, data_shapes, label_shapes)
        self._exec_group = DataParallelExecutorGroup(
            self._symbol, self._context, self._work_load_list, data, labels, self._param_names, for_training, inputs_need_grad,
            None if shared_module is None else shared_module._exec_group, self.logger, self._fixed_param_names, grad_req,
            self._state_names, self._group2ctxs,
        )  # fmt: skip
        self.for_training, self.inputs_need_grad, self._grad_req = for_training, inputs_need_grad, grad_req
        self._data_shapes, self._label_shapes = data, labels
        self.binded = True
        if shared_module is not None:
            self.params_initialized = True
            self._arg_params, self._aux_params = shared_module._arg_params, shared_module._aux_params
            if shared_module.optimizer_initialized:
                self.borrow_optimizer(shared_module)
        elif self.params_initialized:
            self._exec_group.set_params(self._arg_params, self._aux_params)
        else:
            self._arg_params = _blank(self._param_names, self._exec_group.param_arrays)
            self._aux_params = _blank(self._aux_names, self._exec_group.aux_arrays)

    def reshape(self, data_shapes: Any, label_shapes: Any = None) -> None:
        """Bind for batches of other shapes; parameters stay. `forward` does it by itself. **Source** MXNet `Module.reshape`."""
        self._require("bound")
        data, labels = described(self._data_names, self._label_names, data_shapes, label_shapes)
        self._exec_group.reshape(data, labels)
        self._data_shapes, self._label_shapes = data, labels

    # ---- parameters

    def get_params(self) -> tuple[Params, Params]:
        """Parameters and auxiliary states by name, in host memory: the module's own, which the next call overwrites."""
        self._require("parameters")
        if self._params_dirty:
            self._exec_group.get_params(self._arg_params, self._aux_params)
            self._params_dirty = False
        assert self._arg_params is not None
        assert self._aux_params is not None
        return self._arg_params, self._aux_params

    def init_params(
        self, initializer: Any = Uniform(0.01), arg_params: Any = None, aux_params: Any = None,  # noqa: B008
        allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False,
    ) -> None:  # fmt: skip
        """Give parameters and states their first values: those of the dicts, else those that `initializer` makes.

        **Args** `allow_missing`: dicts need not have all. `force_init`: even if there are values, else that is ignored with a warning.
        Names that the symbol has not are ignored, as in MXNet, whatever `allow_extra` says. **Raises** RuntimeError for a missing value.
        **Source** MXNet `Module.init_params`.
        """
        if self.params_initialized and not force_init:
            warnings.warn("Parameters already initialized and force_init=False. init_params call ignored.", stacklevel=2)
            return
        self._require("bound")
        if self.params_initialized:
            self.get_params()  # what is missing stays as it is on the devices
        attrs = self._symbol.attr_dict()
        for targets, given in ((self._arg_params, arg_params), (self._aux_params, aux_params)):
            assert targets is not None
            for name in sorted(targets):
                if given is not None and name in given:
                    _copy(name, given[name], targets[name])
                elif given is not None and not allow_missing:
                    raise ArgumentError(f"init_params: {name} is not presented; allow_missing=True does without")
                elif initializer is not None:
                    initializer(InitDesc(name, attrs.get(name)), targets[name])
                elif given is None:
                    raise ArgumentError(f"init_params: there is neither a value for {name} nor an initializer")
        self.params_initialized, self._params_dirty = True, False
        self._exec_group.set_params(self._arg_params, self._aux_params)

    def set_params(
        self, arg_params: Any, aux_params: Any, allow_missing: bool = False, force_init: bool = True, allow_extra: bool = False
    ) -> None:
        """Set parameters and states, from dicts by name.

        **Args** `allow_missing`: those that are missing stay as they are; `allow_extra`: those that the symbol has not are ignored then.
        `force_init`: even if there are values. **Raises** RuntimeError for a missing value, ValueError for a name that the symbol has
        not. **Source** MXNet `Module.set_params`.
        """
        if not allow_missing:
            self.init_params(None, arg_params, aux_params, allow_missing, force_init, allow_extra)
            return
        if self.params_initialized and not force_init:
            warnings.warn("Parameters already initialized and force_init=False. set_params call ignored.", stacklevel=2)
            return
        self._require("bound")
        self._exec_group.set_params(arg_params, aux_params, allow_extra=allow_extra)
        self.params_initialized = self._params_dirty = True

    # ---- the optimizer

    def init_optimizer(
        self, kvstore: Any = "local", optimizer: Any = "sgd", optimizer_params: Any = SGD, force_init: bool = False
    ) -> None:
        """Make an optimizer, or take one.

        **Args** `kvstore`: where the gradients of several devices are added up, and weights updated: "local", "device", or a KVStore; None
        for devices that train apart, whose mean are the parameters. `optimizer`: a name, or an Optimizer. `optimizer_params`: a dict,
        or pairs; `rescale_grad` is 1 / batch size by default. `force_init`: even if there is one, else that is ignored.
        **Source** MXNet `Module.init_optimizer`.
        """
        self._require("bound", "parameters")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring...")
            return
        arg_params, _ = self.get_params()
        store, updates = create_store(kvstore, len(self._context), arg_params)
        rescale_grad = 1.0 / self._examples(store)
        devices = 1 if updates else len(self._context)
        names = {
            index * devices + device: name for index, name in enumerate(self._exec_group.param_names) for device in range(devices)
        }
        self._optimizer = self._as_optimizer(optimizer, optimizer_params, names, rescale_grad)
        self._kvstore, self._update_on_kvstore, self._updater = store, updates, None
        if store is not None:
            if self._compression_params:
                store.set_gradient_compression(self._compression_params)
            if updates:
                store.set_optimizer(self._optimizer)
            fill_store(store, self._exec_group.param_names, self._exec_group.param_arrays)
        if not updates:
            self._updater = opt.get_updater(self._optimizer)
        self.optimizer_initialized = True
        if self._preload_opt_states is not None:
            self.load_optimizer_states(self._preload_opt_states)
            self._preload_opt_states = None

    def _examples(self, store: Any) -> int:
        """Examples of a batch, of all processes together if these add up their gradients."""
        size = self._exec_group.batch_size or 1
        kind = str(getattr(store, "type", ""))
        return size * store.num_workers if "dist" in kind and "_sync" in kind else size

    def _as_optimizer(self, optimizer: Any, params: Any, names: dict[int, str], rescale_grad: float) -> opt.Optimizer:
        if isinstance(optimizer, str):
            return opt.create(
                optimizer, **{"rescale_grad": rescale_grad, "sym": self._symbol, "param_idx2name": names, **dict(params)}
            )
        if not isinstance(optimizer, opt.Optimizer):
            raise ArgumentError(f"init_optimizer: an Optimizer or its name is wanted, got {shown(optimizer)}")
        if optimizer.rescale_grad != rescale_grad:
            warnings.warn(
                "Optimizer created manually outside Module but rescale_grad is not normalized to 1.0/batch_size/num_workers "
                f"({optimizer.rescale_grad} vs. {rescale_grad}). Is this intended?",
                stacklevel=3,
            )
        if not optimizer.idx2name:
            optimizer.idx2name = dict(names)
        return optimizer

    def borrow_optimizer(self, shared_module: Module) -> None:
        """Use the optimizer of another module, and its states: buckets train the same parameters."""
        if not shared_module.optimizer_initialized:
            raise ModuleStateError("borrow_optimizer: the other module has none; call its init_optimizer() first")
        self._optimizer, self._updater = shared_module._optimizer, shared_module._updater
        self._kvstore, self._update_on_kvstore = shared_module._kvstore, shared_module._update_on_kvstore
        self.optimizer_initialized = True

    def save_optimizer_states(self, fname: PathLike) -> None:
        """Write the optimizer's states, such as momentum, to a file. A crash leaves one that was there whole."""
        self._require("optimizer")
        if self._updater is None:
            self._kvstore.save_optimizer_states(fname)
        else:
            files.replace_file(fname, [self._updater.get_states()])

    def load_optimizer_states(self, fname: PathLike) -> None:
        """Read the optimizer's states from a file. **Raises** FileFormatError if it holds something else, MissingFileError."""
        self._require("optimizer")
        if self._updater is None:
            self._kvstore.load_optimizer_states(fname)
        else:
            with in_file(fname):
                self._updater.set_states(read_states(fname))
        self._states_loaded = True

    def _match_states(self) -> None:
        """Bring loaded states to the keys by which they are asked for, as they may come from another number of devices."""
        self._states_loaded = False
        updater = self._updater or getattr(self._kvstore, "_updater", None)
        if isinstance(updater, opt.Updater):
            devices = 0 if self._updater is None else len(self._context)
            match_states(updater, self._exec_group.param_names, devices)

    # ---- computing

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Compute the outputs for a batch, or for a list of one for each device.

        A batch of other shapes than those bound binds anew, for a moment or for good; executors for the last few shapes are kept.
        **Source** MXNet `Module.forward`.
        """
        self._require("bound", "parameters")
        self._fit_shapes(data_batch)
        self._exec_group.forward(data_batch, is_train)

    def _fit_shapes(self, data_batch: Any) -> None:
        """Reshape if a batch has other shapes than those that the module is bound for."""
        shapes = _whole_shapes(data_batch)
        bound = self._data_shapes or []
        if shapes == [tuple(each.shape) for each in bound]:
            return
        if len(shapes) != len(bound):
            names = ", ".join(each.name for each in bound)
            raise ArgumentError(f"forward: the batch has {len(shapes)} arrays of data, the module wants {names}")
        first = data_batch[0] if isinstance(data_batch, list) else data_batch
        data: Any = None if first is not data_batch else getattr(data_batch, "provide_data", None)
        labels: Any = None if first is not data_batch else getattr(data_batch, "provide_label", None)
        if not data:
            data = [DataDesc(each.name, shape, each.dtype, each.layout) for each, shape in zip(bound, shapes)]
        if not labels and getattr(first, "label", None) and self._label_shapes:
            parts = len(data_batch) if isinstance(data_batch, list) else 1
            labels = [
                DataDesc(each.name, (label.shape[0] * parts, *label.shape[1:]), each.dtype, each.layout)
                for each, label in zip(self._label_shapes, first.label)
            ]
        self.reshape(data, labels or None)

    def backward(self, out_grads: Any = None) -> None:
        """Compute gradients from those of the outputs, an array or a list; losses need none. **Source** MXNet `Module.backward`."""
        self._require("bound", "parameters")
        self._exec_group.backward(out_grads=out_grads)

    def update(self) -> None:
        """Change the parameters by their gradients, as the optimizer says. **Source** MXNet `Module.update`."""
        self._require("bound", "parameters", "optimizer")
        self._params_dirty = True
        group = self._exec_group
        if self._states_loaded:
            self._match_states()
        if self._updater is None:
            update_in_store(self._kvstore, group.param_names, group.param_arrays, group.grad_arrays)
            return
        update_by_updater(
            self._updater, self._kvstore, group.param_names, group.param_arrays, group.grad_arrays, len(self._context)
        )

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        self._require("bound", "parameters")
        self._exec_group.update_metric(eval_metric, labels, pre_sliced)

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        self._require("bound", "parameters")
        return self._exec_group.get_outputs(merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        self._require("bound", "parameters")
        return self._exec_group.get_input_grads(merge_multi_context)

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """The arrays of `state_names`, a list of those of all devices for each; `merge_multi_context` must be False."""
        self._require("bound", "parameters")
        return self._exec_group.get_states(merge_multi_context)

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Set the arrays of `state_names` from such lists, or all to a number."""
        self._require("bound", "parameters")
        self._exec_group.set_states(states, value)

    def install_monitor(self, mon: Any) -> None:
        self._require("bound")
        self._exec_group.install_monitor(mon)


def _blank(names: Sequence[str], arrays: Sequence[Sequence[NDArray]]) -> Params:
    """Zeros in host memory like the arrays of these names."""
    return {name: nd.zeros(copies[0].shape, cpu(), copies[0].dtype) for name, copies in zip(names, arrays)}


def _copy(name: str, value: Any, target: NDArray) -> None:
    """Copy a parameter's value. Raises ArgumentError for what is no array, ShapeError for one of another shape."""
    if not isinstance(value, NDArray):
        raise ArgumentError(f"the value of {name} must be an NDArray, got {shown(value)}")
    if value.shape != target.shape:
        raise ShapeError(f"the value of {name} has shape {value.shape}, the symbol wants {target.shape}")
    if value is not target:
        value.copyto(target)


def _whole_shapes(data_batch: Any) -> list[tuple[int, ...]]:
    """The shapes of a batch's data; of a list of batches, one for each device, those of all together."""
    if not isinstance(data_batch, list):
        return [tuple(each.shape) for each in data_batch.data]
    if not data_batch:
        raise ArgumentError("forward: the list of batches is empty; one for each device is wanted")
    found = []
    for arrays in zip(*(batch.data for batch in data_batch)):
        if len({array.shape for array in arrays}) > 1:
            raise BatchShapeError("forward: all batches of a list must have the same shapes")
        found.append((len(arrays) * arrays[0].shape[0], *arrays[0].shape[1:]))
    return found


class BatchShapeError(ShapeError, AssertionError):
    """Batches for several devices that differ in shape. (MXNet asserts it: hence the second base.)"""
