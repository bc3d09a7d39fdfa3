"""SequentialModule: modules in a chain, the outputs of each being the data of the next, gradients going back the same way."""

from __future__ import annotations

import copy
import logging
from typing import Any, ClassVar

from ..base import ArgumentError
from ..checkpoint import Params
from ..initializer import Uniform
from .base_module import SGD, BaseModule, ModuleStateError, as_descriptions

__all__ = ["SequentialModule"]


class SequentialModule(BaseModule):
    """A chain of modules. One graph of all is faster; a chain may hold modules of any kind.

    **Source** MXNet `module.SequentialModule`.
    """

    META_TAKE_LABELS: ClassVar[str] = "take_labels"
    META_AUTO_WIRING: ClassVar[str] = "auto_wiring"

    def __init__(self, logger: Any = logging) -> None:
        super().__init__(logger)
        self._modules: list[BaseModule] = []
        self._metas: list[dict[str, Any]] = []
        self._label_shapes: Any = None

    def add(self, module: BaseModule, **kwargs: Any) -> SequentialModule:
        """Put a module at the end; the chain, so that calls can be chained. It must be bound anew then.

        **Args** `take_labels=True`: the module gets the batch's labels, and is asked by metrics. `auto_wiring=True`: what comes before is
        called as the module's data are.
        """
        known = (self.META_TAKE_LABELS, self.META_AUTO_WIRING)
        for key in kwargs:
            if key not in known:
                raise ModuleStateError(f'Unknown meta "{key}", a typo? There are {", ".join(known)}')
        self._modules.append(module)
        self._metas.append(kwargs)
        self.binded = self.params_initialized = self.optimizer_initialized = False
        return self

    # ---- what it is

    @property
    def data_names(self) -> list[str]:
        return self._modules[0].data_names if self._modules else []

    @property
    def output_names(self) -> list[str]:
        return self._modules[-1].output_names if self._modules else []

    @property
    def data_shapes(self) -> Any:
        self._require("bound")
        return self._modules[0].data_shapes

    @property
    def label_shapes(self) -> Any:
        self._require("bound")
        return self._label_shapes

    @property
    def output_shapes(self) -> Any:
        self._require("bound")
        return self._modules[-1].output_shapes

    # ---- binding, parameters, optimizer

    def bind(
        self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True, inputs_need_grad: bool = False,
        force_rebind: bool = False, shared_module: Any = None, grad_req: Any = "write",
    ) -> None:  # fmt: skip
        """Bind all modules, each for the outputs of the one before. See `Module.bind`."""
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if inputs_need_grad and not for_training:
            raise ModuleStateError("bind: inputs_need_grad=True needs for_training=True")
        if shared_module is not None:
            raise ModuleStateError("bind: shared_module for SequentialModule is not supported")
        if not self._modules:
            raise ModuleStateError("Attempting to bind an empty SequentialModule; add() modules first")
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        for position, (module, meta) in enumerate(zip(self._modules, self._metas)):
            if meta.get(self.META_AUTO_WIRING):
                data_shapes = _renamed(module.data_names, data_shapes)
            module.bind(
                data_shapes, label_shapes if meta.get(self.META_TAKE_LABELS) else None, for_training,
                inputs_need_grad or (for_training and position > 0), force_rebind, None, grad_req,
            )  # fmt: skip
            data_shapes = module.output_shapes
        self._label_shapes = label_shapes if any(meta.get(self.META_TAKE_LABELS) for meta in self._metas) else None
        self.binded = True

    def get_params(self) -> tuple[Params, Params]:
        self._require("bound", "parameters")
        arg_params: Params = {}
        aux_params: Params = {}
        for module in self._modules:
            arguments, states = module.get_params()
            arg_params.update(arguments)
            aux_params.update(states)
        return arg_params, aux_params

    def init_params(
        self, initializer: Any = Uniform(0.01), arg_params: Any = None, aux_params: Any = None,  # noqa: B008
        allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False,
    ) -> None:  # fmt: skip
        """See `Module.init_params`. **Raises** AssertionError if two modules have a parameter of one name."""
        if self.params_initialized and not force_init:
            return
        self._require("bound")
        owners: dict[str, int] = {}
        for layer, module in enumerate(self._modules):
            if not module.params_initialized or force_init:
                module.init_params(initializer, arg_params, aux_params, allow_missing, force_init, allow_extra)
            for name in (name for params in module.get_params() for name in params):
                if name in owners:
                    raise ModuleStateError(
                        f'Duplicated parameter names: name "{name}" in layer {layer} ({type(module).__name__}) is already used in layer '
                        f"{owners[name]} ({type(self._modules[owners[name]]).__name__})"
                    )
                owners[name] = layer
        self.params_initialized = True

    def init_optimizer(
        self, kvstore: Any = "local", optimizer: Any = "sgd", optimizer_params: Any = SGD, force_init: bool = False
    ) -> None:
        """An optimizer for each module. See `Module.init_optimizer`."""
        self._require("bound", "parameters")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring.")
            return
        for module in self._modules:
            module.init_optimizer(kvstore, optimizer, optimizer_params, force_init)
        self.optimizer_initialized = True

    # ---- computing

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        self._require("bound", "parameters")
        batch = copy.copy(data_batch)  # which keeps what else the batch may tell: bucket_key, pad
        for module in self._modules:
            module.forward(batch, is_train=is_train)
            if module is self._modules[-1]:
                return
            batch.data = module.get_outputs()
            if getattr(batch, "provide_data", None):
                batch.provide_data = [(name, data.shape) for (name, _), data in zip(module.output_shapes, batch.data)]

    def backward(self, out_grads: Any = None) -> None:
        self._require("bound", "parameters")
        for module in reversed(self._modules):
            module.backward(out_grads=out_grads)
            if module is not self._modules[0]:
                out_grads = module.get_input_grads()

    def update(self) -> None:
        self._require("bound", "parameters", "optimizer")
        for module in self._modules:
            module.update()

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        self._require("bound", "parameters")
        return self._modules[-1].get_outputs(merge_multi_context)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        self._require("bound", "parameters")
        if not self.inputs_need_grad:
            raise ModuleStateError("get_input_grads: re-bind with inputs_need_grad=True")
        return self._modules[0].get_input_grads(merge_multi_context)

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Tell a metric the outputs of those modules that take labels."""
        self._require("bound", "parameters")
        for module, meta in zip(self._modules, self._metas):
            if meta.get(self.META_TAKE_LABELS):
                module.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon: Any) -> None:
        self._require("bound")
        for module in self._modules:
            module.install_monitor(mon)


def _renamed(names: list[str], shapes: Any) -> list[tuple[str, Any]]:
    """Shapes under the names that a module has for its data."""
    given = as_descriptions(shapes, "data")
    if len(names) != len(given):
        raise ArgumentError(
            f"auto_wiring: the module has {len(names)} data, {', '.join(names)}, and {len(given)} outputs come before it"
        )
    return [(name, each.shape) for name, each in zip(names, given)]
