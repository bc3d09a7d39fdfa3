"""What all metrics have in common, and those that are made of others: several at once, a function, a loss that is a number already.

A metric is fed with lists of labels and predictions, `update(labels, preds)`, and asked with `get()` for its name and value since the last
`reset()`. Most are a quotient: `sum_metric`, what was collected, by `num_inst`, how much it was collected from. Both are kept twice, since
`reset_local()` forgets only the one and `get_global()` answers from the other. Reading the values of predictions waits for them. Book:
chapter 4.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

from ..base import ArgumentError, MXNetError, ShapeError
from ..nd import NDArray
from ..registry import Registry

__all__ = ["CompositeEvalMetric", "CustomMetric", "EvalMetric", "Loss", "alias", "check_label_shapes", "create", "np", "register"]

Values = numpy.ndarray[Any, Any]
Result = tuple[Any, Any]  # a name and a value, or lists of them


class MetricShapeError(ShapeError, AssertionError):
    """Labels and predictions that do not fit. (MXNet asserts some of it: hence the second base.)"""


class MetricArgumentError(ArgumentError, AssertionError):
    """An argument of a metric that does not fit. (MXNet asserts: hence the second base.)"""


def check_label_shapes(labels: Any, preds: Any, wrap: bool = False, shape: bool = False) -> tuple[Any, Any]:
    """Labels and predictions, which must be equally many or, with `shape`, have the same shape. `wrap` makes lists of single arrays.

    **Raises** ValueError if they differ. **Source** MXNet `metric.check_label_shapes`.
    """
    sizes = (labels.shape, preds.shape) if shape else (len(labels), len(preds))
    if sizes[0] != sizes[1]:
        raise MetricShapeError(f"Shape of labels {sizes[0]} does not match shape of predictions {sizes[1]}")
    if wrap:
        labels, preds = ([each] if isinstance(each, NDArray) else each for each in (labels, preds))
    return labels, preds


def naming_shapes(update: Callable[[Any, Any, Any], None]) -> Callable[[Any, Any, Any], None]:
    """A decorator of `update`: errors about shapes say which metric it is, and what the shapes of its arguments are."""

    @functools.wraps(update)
    def checked(self: Any, labels: Any, preds: Any) -> None:
        try:
            update(self, labels, preds)
        except ValueError as error:
            if isinstance(error, MXNetError) and not isinstance(error, ShapeError):
                raise
            wanted, found = shapes_of(labels), shapes_of(preds)
            swapped = any(len(label) > len(pred) for label, pred in zip(wanted, found))
            raise MetricShapeError(
                f"{type(self).__name__}.update(labels, preds): {error}; labels have shapes {wanted}, preds {found}"
                + ("; the labels come first, are they swapped?" if swapped else "")
            ) from None

    return checked


def shapes_of(arrays: Any) -> list[tuple[int, ...]]:
    """The shapes of arrays in a list, or of a single one."""
    listed = [arrays] if hasattr(arrays, "shape") else arrays
    return [getattr(each, "shape", ()) for each in listed]


def as_values(array: Any) -> Values:
    """The elements of an array; waits for them."""
    return array.asnumpy() if isinstance(array, NDArray) else numpy.asarray(array)


class EvalMetric:
    """The base of all metrics. A subclass overrides `update`, and `reset` if it keeps more than a quotient.

    **Args** `name`: what `get` calls it; `output_names`, `label_names`: which of the arrays given to `update_dict` count, None for all;
    `has_global_stats`: the subclass feeds the global quotient too; others are noted for `get_config`. **Source** MXNet
    `metric.EvalMetric`.
    """

    sum_metric: Any
    global_sum_metric: Any

    def __init__(
        self, name: str, output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None, **kwargs: Any
    ) -> None:
        self.name = str(name)
        self.output_names = output_names
        self.label_names = label_names
        self._has_global_stats = kwargs.pop("has_global_stats", False)
        self._kwargs = kwargs
        self.num_inst: float = 0
        self.global_num_inst: float = 0
        self.reset()

    def __str__(self) -> str:
        return f"EvalMetric: {dict(self.get_name_value())}"

    def get_config(self) -> dict[str, Any]:
        """The class's name and the arguments, from which `create` makes an equal one."""
        return {
            **self._kwargs, "metric": type(self).__name__, "name": self.name, "output_names": self.output_names,
            "label_names": self.label_names,
        }  # fmt: skip

    # ---- feeding

    def update(self, labels: Any, preds: Any) -> None:
        """Take in a batch: a list of labels and one of predictions, in the same order."""
        raise NotImplementedError(f"{type(self).__name__} must override update")

    def update_dict(self, label: Mapping[str, Any], pred: Mapping[str, Any]) -> None:
        """Take in a batch by names; those of `label_names` and `output_names` count."""
        self.update(selected(label, self.label_names, "label"), selected(pred, self.output_names, "output"))

    def _add(self, total: Any, count: float) -> None:
        """Add to both quotients."""
        self.sum_metric += total
        self.global_sum_metric += total
        self.num_inst += count
        self.global_num_inst += count

    def reset(self) -> None:
        """Forget everything."""
        self.global_num_inst = 0
        self.global_sum_metric = 0.0
        self.reset_local()

    def reset_local(self) -> None:
        """Forget all but what `get_global` needs."""
        self.num_inst = 0
        self.sum_metric = 0.0

    # ---- asking

    def _value(self, total: Any, count: float) -> Any:
        """The metric from a sum and a count."""
        return total / count

    def get(self) -> Result:
        """Name and value since the last `reset` or `reset_local`; NaN if nothing came since."""
        return self.name, self._value(self.sum_metric, self.num_inst) if self.num_inst else math.nan

    def get_global(self) -> Result:
        """Name and value since the last `reset`."""
        if not self._has_global_stats:
            return self.get()
        return self.name, self._value(self.global_sum_metric, self.global_num_inst) if self.global_num_inst else math.nan

    def get_name_value(self) -> list[tuple[str, Any]]:
        """`get` as a list of pairs."""
        return pairs(self.get())

    def get_global_name_value(self) -> list[tuple[str, Any]]:
        """`get_global` as a list of pairs."""
        return pairs(self.get_global())


def selected(arrays: Mapping[str, Any], names: Sequence[str] | None, what: str) -> list[Any]:
    """The arrays of these names, in their order; all without names."""
    if names is None:
        return list(arrays.values())
    missing = [name for name in names if name not in arrays]
    if missing:
        raise MissingNameError(f"metric: there is no {what} called {', '.join(missing)}; there are {', '.join(arrays) or 'none'}")
    return [arrays[name] for name in names]


class MissingNameError(ArgumentError, KeyError):
    """An array that a metric wants and that is not among those given."""

    __str__ = Exception.__str__  # KeyError would show the message as Python writes a string


def pairs(result: Result) -> list[tuple[str, Any]]:
    names, values = (each if isinstance(each, list) else [each] for each in result)
    return list(zip(names, values))


_registry: Registry[EvalMetric] = Registry(EvalMetric, "metric")
register = _registry.register
alias = _registry.alias


def create(metric: Any, *args: Any, **kwargs: Any) -> EvalMetric:
    """A metric from its name, a function of label and prediction (CustomMetric), or a list of these (CompositeEvalMetric).

    A metric is returned as it is. **Raises** ValueError for an unknown name. **Source** MXNet `metric.create`.

    >>> from minimx import metric
    >>> accuracy = metric.create("acc")
    >>> accuracy.update([mx.nd.array([0, 1])], [mx.nd.array([[0.9, 0.1], [0.6, 0.4]])])
    >>> accuracy.get()
    ('accuracy', 0.5)
    """
    if callable(metric) and not isinstance(metric, EvalMetric):
        return CustomMetric(metric, *args, **kwargs)
    if isinstance(metric, list):
        composite = CompositeEvalMetric()
        for each in metric:
            composite.add(create(each, *args, **kwargs))
        return composite
    return _registry.create(metric, *args, **kwargs)


@alias("composite")
@register
class CompositeEvalMetric(EvalMetric):
    """Several metrics at once; `get` gives lists of names and values. **Source** MXNet `metric.CompositeEvalMetric`."""

    def __init__(
        self, metrics: Sequence[Any] | None = None, name: str = "composite", output_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        self.metrics = [create(each) for each in metrics or ()]
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def add(self, metric: Any) -> None:
        """Add another metric, or one from what `create` takes."""
        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> EvalMetric:
        """The metric number `index`. **Raises** ValueError if there is none. (MXNet returns that error instead.)"""
        if not -len(self.metrics) <= index < len(self.metrics):
            raise ArgumentError(f"Metric index {index} is out of range 0 and {len(self.metrics)}")
        return self.metrics[index]

    def update_dict(self, label: Mapping[str, Any], pred: Mapping[str, Any]) -> None:
        if self.label_names is not None:
            label = {name: array for name, array in label.items() if name in self.label_names}
        if self.output_names is not None:
            pred = {name: array for name, array in pred.items() if name in self.output_names}
        for metric in self.metrics:
            metric.update_dict(label, pred)

    def update(self, labels: Any, preds: Any) -> None:
        for metric in self.metrics:
            metric.update(labels, preds)

    def reset(self) -> None:
        for metric in self.metrics:
            metric.reset()

    def reset_local(self) -> None:
        for metric in self.metrics:
            metric.reset_local()

    def get(self) -> Result:
        return joined([metric.get() for metric in self.metrics])

    def get_global(self) -> Result:
        return joined([metric.get_global() for metric in self.metrics])

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "metrics": [metric.get_config() for metric in self.metrics]}


def joined(results: list[Result]) -> Result:
    """Several results as lists of names and values."""
    both = [pair for result in results for pair in pairs(result)]
    return [name for name, _ in both], [value for _, value in both]


# ---- what is a number already, and functions


@register
class Loss(EvalMetric):
    """The mean of predictions that are losses; labels do not count. **Source** MXNet `metric.Loss`."""

    def __init__(
        self, name: str = "loss", output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None
    ) -> None:
        super().__init__(name, output_names, label_names, has_global_stats=True)

    def update(self, _: Any, preds: Any) -> None:
        for pred in [preds] if isinstance(preds, NDArray) else preds:
            values = as_values(pred)
            self._add(float(values.sum(dtype=numpy.float64)), values.size)


@register
class Torch(Loss):
    """Loss under an old name. **Source** MXNet `metric.Torch`."""

    def __init__(
        self, name: str = "torch", output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None
    ) -> None:
        super().__init__(name, output_names, label_names)


@register
class Caffe(Loss):
    """Loss under an old name. **Source** MXNet `metric.Caffe`."""

    def __init__(
        self, name: str = "caffe", output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None
    ) -> None:
        super().__init__(name, output_names, label_names)


@register
class CustomMetric(EvalMetric):
    """A metric from a function of a label and a prediction, both NumPy arrays, that gives a number, or a sum and a count.

    **Args** `allow_extra_outputs`: there may be more predictions than labels. **Source** MXNet `metric.CustomMetric`.
    """

    def __init__(
        self, feval: Callable[[Values, Values], Any], name: str | None = None, allow_extra_outputs: bool = False,
        output_names: Sequence[str] | None = None, label_names: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        if name is None:
            name = getattr(feval, "__name__", type(feval).__name__)
            name = f"custom({name})" if "<" in name else name
        super().__init__(
            name, output_names, label_names, feval=feval, allow_extra_outputs=allow_extra_outputs, has_global_stats=True
        )
        self._feval = feval
        self._allow_extra_outputs = allow_extra_outputs

    def update(self, labels: Any, preds: Any) -> None:
        if not self._allow_extra_outputs:
            labels, preds = check_label_shapes(labels, preds, True)
        for label, pred in zip(labels, preds):
            result = self._feval(as_values(label), as_values(pred))
            self._add(*(result if isinstance(result, tuple) else (result, 1)))

    def get_config(self) -> dict[str, Any]:
        """**Raises** NotImplementedError: a function cannot be written down."""
        raise NotImplementedError("CustomMetric cannot be serialized")


def np(numpy_feval: Callable[[Values, Values], Any], name: str | None = None, allow_extra_outputs: bool = False) -> CustomMetric:
    """A CustomMetric from a function of two NumPy arrays. **Source** MXNet `metric.np`."""

    def feval(label: Values, pred: Values) -> Any:
        return numpy_feval(label, pred)

    feval.__name__ = getattr(numpy_feval, "__name__", type(numpy_feval).__name__)
    return CustomMetric(feval, name, allow_extra_outputs)
