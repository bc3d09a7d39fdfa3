"""PythonModule: a module without parameters whose computation is Python code; PythonLossModule: a loss of that kind.

They stand in a SequentialModule, behind modules that have parameters.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from .. import nd
from ..base import ArgumentError
from ..checkpoint import Params
from ..initializer import Uniform
from ..nd import NDArray
from .base_module import SGD, BaseModule, ModuleStateError, as_descriptions

__all__ = ["PythonLossModule", "PythonModule"]


class PythonModule(BaseModule):
    """A subclass overrides `_compute_output_shapes`, `forward`, `backward`, `get_outputs` and `get_input_grads`; parameters it has none.

    **Args** `data_names`, `label_names`, `output_names`: of what it takes and gives. **Source** MXNet `module.PythonModule`.
    """

    def __init__(
        self, data_names: Sequence[str], label_names: Sequence[str] | None, output_names: Sequence[str], logger: Any = logging
    ) -> None:
        super().__init__(logger)
        self._data_names = list(data_names)
        self._label_names = None if label_names is None else list(label_names)
        self._output_names = list(output_names)
        self._data_shapes: Any = None
        self._label_shapes: Any = None
        self._output_shapes: Any = None

    @property
    def data_names(self) -> list[str]:
        return self._data_names

    @property
    def output_names(self) -> list[str]:
        return self._output_names

    @property
    def data_shapes(self) -> Any:
        return self._data_shapes

    @property
    def label_shapes(self) -> Any:
        return self._label_shapes

    @property
    def output_shapes(self) -> Any:
        return self._output_shapes

    def bind(
        self, data_shapes: Any, label_shapes: Any = None, for_training: bool = True, inputs_need_grad: bool = False,
        force_rebind: bool = False, shared_module: Any = None, grad_req: Any = "write",
    ) -> None:  # fmt: skip
        """Take note of the shapes. **Raises** AssertionError for other names than the module's, or another grad_req than "write"."""
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        if grad_req != "write":
            raise ModuleStateError("bind: Python module only support write gradient")
        labels = None if label_shapes is None else as_descriptions(label_shapes, "label")
        for what, names, shapes in (
            ("data", self._data_names, as_descriptions(data_shapes, "data")), ("label", self._label_names or [], labels),
        ):  # fmt: skip
            if shapes is not None and [each.name for each in shapes] != names:
                raise ModuleStateError(
                    f"bind: {what}_shapes describe {[each.name for each in shapes]}, the module's names are {names}"
                )
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self._data_shapes, self._label_shapes = data_shapes, label_shapes
        self._output_shapes = self._compute_output_shapes()
        self.binded = True

    def _compute_output_shapes(self) -> list[tuple[str, Any]]:
        """Names and shapes of the outputs, from `_data_shapes` and `_label_shapes`."""
        self._missing("_compute_output_shapes")

    def get_params(self) -> tuple[Params, Params]:
        return {}, {}

    def init_params(
        self, initializer: Any = Uniform(0.01), arg_params: Any = None, aux_params: Any = None,  # noqa: B008
        allow_missing: bool = False, force_init: bool = False, allow_extra: bool = False,
    ) -> None:  # fmt: skip
        """There are no parameters."""
        self.params_initialized = True

    def init_optimizer(
        self, kvstore: Any = "local", optimizer: Any = "sgd", optimizer_params: Any = SGD, force_init: bool = False
    ) -> None:
        """There is nothing to update."""
        self.optimizer_initialized = True

    def update(self) -> None:
        """There is nothing to update."""

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Tell a metric the outputs, if the module was bound with labels."""
        if self._label_shapes is None:
            return
        if pre_sliced:
            raise ArgumentError("PythonModule does not support presliced labels")
        eval_metric.update(labels, self.get_outputs())


class PythonLossModule(PythonModule):
    """A loss whose gradient is Python code. Its output is what it gets, the scores.

    **Args** `name`: the output is called `<name>_output`. `grad_func`: from scores and labels to the gradient of the scores, an NDArray
    or a NumPy array; a subclass may override `_backward_impl` instead, which sets `_scores_grad` from `_scores` and `_labels`.
    **Source** MXNet `module.PythonLossModule`.
    """

    def __init__(
        self, name: str = "pyloss", data_names: Sequence[str] = ("data",), label_names: Sequence[str] = ("softmax_label",),
        logger: Any = logging, grad_func: Callable[[NDArray, NDArray], Any] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(data_names, label_names, [f"{name}_output"], logger)
        if len(self._data_names) != 1 or len(self._label_names or ()) != 1:
            raise ModuleStateError("PythonLossModule: one name of data and one of labels are wanted")
        if grad_func is not None and not callable(grad_func):
            raise ModuleStateError(f"PythonLossModule: grad_func must be a function, got {type(grad_func).__name__}")
        self._name = name
        self._grad_func = grad_func
        self._scores: Any = None
        self._labels: Any = None
        self._scores_grad: Any = None

    def _compute_output_shapes(self) -> list[tuple[str, Any]]:
        return [(self._output_names[0], self._data_shapes[0][1])]

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Keep scores and labels for `backward`."""
        self._scores = data_batch.data[0]
        if self.for_training if is_train is None else is_train:
            self._labels = data_batch.label[0]

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        _require_merged(merge_multi_context)
        return [self._scores]

    def backward(self, out_grads: Any = None) -> None:
        """Compute the gradient of the scores. **Raises** AssertionError for `out_grads`: a loss has none."""
        if out_grads is not None:
            raise ModuleStateError("backward: for a loss module, out_grads should be None")
        if not self.for_training:
            raise ModuleStateError("backward: re-bind with for_training=True to run backward")
        self._backward_impl()

    def _backward_impl(self) -> None:
        if self._grad_func is None:
            self._missing("_backward_impl, or pass grad_func")
        gradient = self._grad_func(self._scores, self._labels)
        self._scores_grad = gradient if isinstance(gradient, NDArray) else nd.array(gradient)

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        _require_merged(merge_multi_context)
        return [self._scores_grad]


def _require_merged(merge_multi_context: bool) -> None:
    if not merge_multi_context:
        raise ModuleStateError("merge_multi_context must be True: a Python module computes on no devices of its own")
