"""MXNet's output layers: operators whose forward pass is a prediction and whose backward pass is the gradient of a loss.

`SoftmaxOutput(data, label)` returns probabilities, and its gradient is that of the cross entropy, whatever gradient arrives from
above: a backward pass starts here. Older programs, which bind symbols rather than record losses, are written with them.
`MakeLoss` makes such an output of any value. Book: chapter 4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from ..base import MXNetError, ShapeError
from ..op import NOT_GIVEN, Array, How, Op, Shape, Spec, T, also_called, apply, attributes, register
from ..rules import filled, same_dtype
from .binary import broadcast_div, broadcast_mul
from .checks import accurate, require_choice, require_float
from .indexing import one_hot
from .softmax import softmax, softmax_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

NORMALIZATIONS = ("null", "batch", "valid")


# ---- softmax with cross entropy


@attributes
class SoftmaxLoss(Op):
    """The attributes that SoftmaxOutput and its gradient share, and how they see the data."""

    grad_scale: float = 1.0
    ignore_label: float = -1.0
    multi_output: bool = False
    use_ignore: bool = False
    preserve_shape: bool = False
    normalization: str = "null"
    out_grad: bool = False
    smooth_alpha: float = 0.0

    def layout(self, shape: Shape) -> Shape:
        """Data of `shape` as (examples, classes, positions): a softmax for each example and position."""
        if self.multi_output:
            return shape[0], shape[1], math.prod(shape[2:])
        if self.preserve_shape:
            return math.prod(shape[:-1]), shape[-1], 1
        return shape[0], math.prod(shape[1:]), 1

    def label_shapes(self, shape: Shape) -> list[Shape]:
        """The shapes that a label of class numbers may have; the first is what an unknown one is given."""
        if self.multi_output:
            return [(shape[0], math.prod(shape[2:])), (shape[0], *shape[2:]), (shape[0], 1, *shape[2:])]
        return [shape[:-1] if self.preserve_shape else shape[:1]]


@register("SoftmaxOutput", "Softmax")
class SoftmaxOutputLayer(SoftmaxLoss):
    inputs: ClassVar = ("data", "label")
    is_loss = True

    def infer(self, data: Spec, label: Spec) -> Spec:
        require_choice(self, "normalization", self.normalization, *NORMALIZATIONS)
        require_float(self, data)
        if data.ndim < 2:
            raise ShapeError(f"SoftmaxOutput: data has shape {data.shape}, wants at least 2 dimensions")
        allowed = self.label_shapes(data.shape)
        if label.shape != data.shape and label.shape not in allowed:
            wanted = " or ".join(map(str, dict.fromkeys(allowed)))
            hint = (
                ""
                if self.preserve_shape or data.ndim == 2
                else "; for a softmax along one axis set preserve_shape or multi_output"
            )
            raise ShapeError(
                f"SoftmaxOutput: label has shape {label.shape}, data of shape {data.shape} needs {wanted} (class numbers) "
                f"or {data.shape} (probabilities){hint}"
            )
        return data

    def fill(self, data: Spec | None, label: Spec | None) -> tuple[Spec | None, ...]:
        return (data, label) if data is None or data.ndim < 2 else (data, filled(label, self.label_shapes(data.shape)[0], data))

    def kernel(self, xp: Any, data: Array, label: Array) -> Array:
        seen = accurate(xp, data).reshape(self.layout(data.shape))
        return softmax_of(xp, seen, 1).astype(data.dtype, copy=False).reshape(data.shape)

    def vjp(self, g: Any, y: Any, data: Any, label: Any) -> tuple[Any, ...]:
        backward = SoftmaxOutputGradient(
            self.grad_scale,
            self.ignore_label,
            self.multi_output,
            self.use_ignore,
            self.preserve_shape,
            self.normalization,
            self.out_grad,
            self.smooth_alpha,
        )
        return apply(backward, y, label, *((g,) if self.out_grad else ())), None


@register("_backward_SoftmaxOutput")
class SoftmaxOutputGradient(SoftmaxLoss):
    """Probabilities minus the true ones, scaled; 0 for ignored labels."""

    inputs: ClassVar = ("prob", "label", "head?")

    def infer(self, prob: Spec, label: Spec, head: Spec | None = None) -> Spec:
        return prob

    def kernel(self, xp: Any, prob: Array, label: Array, head: Array | None = None) -> Array:
        wide = accurate(xp, prob)
        if label.shape == prob.shape:
            gradient = (wide - label) * wide.dtype.type(self.grad_scale)
        else:
            gradient = self._of_classes(xp, wide, label)
        if head is not None:
            gradient *= head
        return gradient.astype(prob.dtype, copy=False)

    def _of_classes(self, xp: Any, prob: Array, label: Array) -> Array:
        """The gradient for class numbers."""
        examples, classes, positions = self.layout(prob.shape)
        number = label.reshape(examples, 1, positions).astype(xp.int64)
        counted = number != int(self.ignore_label)
        gradient = prob.reshape(examples, classes, positions).copy()
        other = 0.0
        if self.smooth_alpha and not self.multi_output:  # as in MXNet, which smooths no multi_output
            other = self.smooth_alpha / max(classes - 1, 1)
            gradient -= gradient.dtype.type(other)
        true = number == xp.arange(classes).reshape(1, classes, 1)
        gradient -= true * gradient.dtype.type(1 - (self.smooth_alpha if other else 0.0) - other)
        if self.use_ignore:
            gradient *= counted
        scale = self.grad_scale
        if self.normalization == "valid":
            scale /= max(int(counted.sum()), 1)
        else:
            scale /= positions * (examples if self.normalization == "batch" else 1)
        gradient *= gradient.dtype.type(scale)
        return gradient.reshape(prob.shape)


def SoftmaxOutput(
    data: T | None = NOT_GIVEN,
    label: T | None = None,
    grad_scale: float = 1.0,
    ignore_label: float = -1.0,
    multi_output: bool = False,
    use_ignore: bool = False,
    preserve_shape: bool = False,
    normalization: str = "null",
    out_grad: bool = False,
    smooth_alpha: float = 0.0,
    **how: Unpack[How],
) -> T:
    """Softmax whose backward pass is the gradient of the cross entropy with `label`: `(y - one_hot(label)) grad_scale`.

    **Shapes** data and result (N, C), label (N,) of class numbers, or (N, C) of probabilities. With `multi_output` data (N, C,
    ...) and label (N, ...): a softmax for each position, its gradient divided by the number of positions; with `preserve_shape`
    data (..., C) and label (...); otherwise all but the first axis are one. **Args** `use_ignore`: no gradient where the label is
    `ignore_label`; `normalization`: "batch" divides by the number of examples, "valid" by the number of labels other than
    `ignore_label`; `smooth_alpha`: the probability that is taken from the true class and shared out among the others; `out_grad`:
    multiply by the gradient from above, which is ignored otherwise. **Source** MXNet `SoftmaxOutput` (where `out_grad` multiplies
    by the wrong array, and data of more than two dimensions without `preserve_shape` wants a label of another shape than it
    uses).
    """
    op = SoftmaxOutputLayer(
        grad_scale,
        ignore_label,
        multi_output,
        use_ignore,
        preserve_shape,
        normalization,
        out_grad,
        smooth_alpha,
    )
    return apply(op, data, label, **how)


Softmax = also_called("Softmax", SoftmaxOutput)


@register("softmax_cross_entropy")
class SoftmaxCrossEntropy(Op):
    inputs: ClassVar = ("data", "label")
    saves_outputs = False

    def infer(self, data: Spec, label: Spec) -> Spec:
        require_float(self, data)
        if data.ndim != 2 or label.shape != data.shape[:1]:
            raise ShapeError(f"softmax_cross_entropy: data has shape {data.shape}, label {label.shape}; wants (N, C) and (N,)")
        return data.with_shape((1,))

    def kernel(self, xp: Any, data: Array, label: Array) -> Array:
        number = label.astype(xp.int64)
        if ((number < 0) | (number >= data.shape[1])).any():
            raise MXNetError(f"softmax_cross_entropy: label has a number outside 0 to {data.shape[1] - 1}, the classes of data")
        wide = accurate(xp, data)
        if not data.size:
            return xp.zeros((1,), data.dtype)
        shifted = wide - wide.max(1, keepdims=True)
        losses = xp.log(xp.exp(shifted).sum(1)) - shifted[xp.arange(len(number)), number]
        return losses.sum(keepdims=True).astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any, label: Any) -> tuple[Any, ...]:
        true = one_hot(label, data.shape[1], dtype=data.dtype)
        return broadcast_mul(softmax(data) - true, g.reshape((1, 1))), None


def softmax_cross_entropy(data: T, label: T, **how: Unpack[How]) -> T:
    """Sum over the examples of the cross entropy of softmax: `y = -sum_n log softmax(data_n)[label_n]`.

    **Shapes** data (N, C), label (N,) of class numbers, result (1,). **Raises** MXNetError, where the result is read, for a label
    that is no class. **Gradient** `g (softmax(data) - one_hot(label))`. **Source** MXNet `softmax_cross_entropy`.
    """
    return apply(SoftmaxCrossEntropy(), data, label, **how)


# ---- regression


@attributes
class RegressionOutput(Op):
    """A prediction whose gradient is that of a distance from the label, averaged over the numbers of an example."""

    inputs: ClassVar = ("data", "label")
    is_loss = True

    grad_scale: float = 1.0

    def infer(self, data: Spec, label: Spec) -> Spec:
        require_float(self, data)
        same_dtype(self, data, label)
        if not data.ndim or not label.ndim or label.shape[0] != data.shape[0] or label.size != data.size:
            raise ShapeError(
                f"{self.name}: label has shape {label.shape}, data of shape {data.shape} needs as many elements, in as many examples"
            )
        return data

    def fill(self, data: Spec | None, label: Spec | None) -> tuple[Spec | None, ...]:
        if data is None:
            return data, label
        flat = data.ndim == 2 and data.shape[1] == 1
        return data, filled(label, data.shape[:1] if flat else data.shape, data)

    def kernel(self, xp: Any, data: Array, label: Array) -> Array:
        return data.copy()

    def slope(self, difference: Any) -> Any:
        """Derivative of the distance with respect to the difference from the label; a tensor."""
        return difference

    def vjp(self, g: Any, y: Any, data: Any, label: Any) -> tuple[Any, ...]:
        target = label if label.shape == y.shape else label.reshape(y.shape)
        scale = self.grad_scale / max(math.prod(y.shape[1:]), 1)
        return self.slope(y - target) * scale, None


@register("LinearRegressionOutput", "_sparse_LinearRegressionOutput")
class LinearRegressionLayer(RegressionOutput):
    pass


@register("MAERegressionOutput", "_sparse_MAERegressionOutput")
class MAERegressionLayer(RegressionOutput):
    def slope(self, difference: Any) -> Any:
        return difference.sign()


@register("LogisticRegressionOutput", "_sparse_LogisticRegressionOutput")
class LogisticRegressionLayer(RegressionOutput):
    def kernel(self, xp: Any, data: Array, label: Array) -> Array:
        result = xp.exp(xp.negative(data))
        result += 1
        return xp.reciprocal(result, out=result)


def LinearRegressionOutput(data: T, label: T | None = None, grad_scale: float = 1.0, **how: Unpack[How]) -> T:
    """The data itself, whose backward pass is the gradient of half the squared error: `(data - label) grad_scale / M`.

    **Shapes** data, label and result (N, ...) with M elements an example; the label may also be (N,) if M is 1.
    **Gradient** as said, whatever comes from above. **Source** MXNet `LinearRegressionOutput`.
    """
    return apply(LinearRegressionLayer(grad_scale), data, label, **how)


def MAERegressionOutput(data: T, label: T | None = None, grad_scale: float = 1.0, **how: Unpack[How]) -> T:
    """The data itself, whose backward pass is the gradient of the absolute error: `sign(data - label) grad_scale / M`.

    **Shapes** as for LinearRegressionOutput. **Source** MXNet `MAERegressionOutput`.
    """
    return apply(MAERegressionLayer(grad_scale), data, label, **how)


def LogisticRegressionOutput(data: T, label: T | None = None, grad_scale: float = 1.0, **how: Unpack[How]) -> T:
    """`y = 1 / (1 + exp(-data))`, whose backward pass is the gradient of the cross entropy: `(y - label) grad_scale / M`.

    **Shapes** as for LinearRegressionOutput; labels are probabilities. **Source** MXNet `LogisticRegressionOutput`.
    """
    return apply(LogisticRegressionLayer(grad_scale), data, label, **how)


# ---- support vector machine


@attributes
class SVMLoss(Op):
    """The attributes that SVMOutput and its gradient share."""

    margin: float = 1.0
    regularization_coefficient: float = 1.0
    use_linear: bool = False


@register("SVMOutput")
class SVMOutputLayer(SVMLoss):
    inputs: ClassVar = ("data", "label")
    is_loss = True

    def infer(self, data: Spec, label: Spec) -> Spec:
        require_float(self, data)
        if data.ndim < 2 or label.shape != data.shape[:-1]:
            raise ShapeError(f"SVMOutput: label has shape {label.shape}, data {data.shape}; wants data (N, C) and label (N,)")
        return data

    def fill(self, data: Spec | None, label: Spec | None) -> tuple[Spec | None, ...]:
        return (data, label) if data is None or data.ndim < 2 else (data, filled(label, data.shape[:-1], data))

    def kernel(self, xp: Any, data: Array, label: Array) -> Array:
        return data.copy()

    def vjp(self, g: Any, y: Any, data: Any, label: Any) -> tuple[Any, ...]:
        backward = SVMOutputGradient(self.margin, self.regularization_coefficient, self.use_linear)
        return apply(backward, data, label), None


@register("_backward_SVMOutput")
class SVMOutputGradient(SVMLoss):
    """Gradient of the hinge of each class's score, or of its square."""

    inputs: ClassVar = ("data", "label")

    def infer(self, data: Spec, label: Spec) -> Spec:
        return data

    def kernel(self, xp: Any, data: Array, label: Array) -> Array:
        true = label.astype(xp.int64)[..., None] == xp.arange(data.shape[-1])
        sign = xp.where(true, data.dtype.type(-1), data.dtype.type(1))
        # how far the score is on the wrong side of the margin: the true class wants to be above it, the others below its negative
        excess = data.dtype.type(self.margin) + sign * data
        slope = (excess > 0).astype(data.dtype) if self.use_linear else 2 * xp.maximum(excess, data.dtype.type(0))
        return (sign * slope * data.dtype.type(self.regularization_coefficient)).astype(data.dtype, copy=False)


def SVMOutput(
    data: T,
    label: T | None = None,
    margin: float = 1.0,
    regularization_coefficient: float = 1.0,
    use_linear: bool = False,
    **how: Unpack[How],
) -> T:
    """The scores themselves, whose backward pass is the gradient of the hinge loss, one class against the rest, squared unless
    `use_linear`.

    **Shapes** data and result (N, C), label (N,) of class numbers. **Args** `margin`: the wanted distance of a score from 0;
    `regularization_coefficient` scales the gradient. **Gradient** as said, whatever comes from above. **Source** MXNet
    `SVMOutput`.
    """
    return apply(SVMOutputLayer(margin, regularization_coefficient, use_linear), data, label, **how)


# ---- any value as a loss


@register("MakeLoss")
class MakeLossLayer(Op):
    is_loss = True
    saves_outputs = False

    grad_scale: float = 1.0
    valid_thresh: float = 0.0
    normalization: str = "null"

    def infer(self, data: Spec) -> Spec:
        require_choice(self, "normalization", self.normalization, *NORMALIZATIONS)
        require_float(self, data)
        return data

    def kernel(self, xp: Any, data: Array) -> Array:
        return data.copy()

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        scale = self.grad_scale
        if self.normalization == "batch":
            scale /= max(math.prod(data.shape[:-1]), 1)
        gradient = data.ones_like() * scale
        if self.normalization == "valid":
            count = (data > self.valid_thresh).sum().reshape((1,) * len(data.shape))
            gradient = broadcast_div(gradient, count + (count == 0))
        return (gradient,)


def MakeLoss(data: T, grad_scale: float = 1.0, valid_thresh: float = 0.0, normalization: str = "null", **how: Unpack[How]) -> T:
    """The data itself, as a loss to be minimized: a backward pass starts here with gradient `grad_scale`.

    **Shapes** data and result (...). **Args** `normalization`: "batch" divides the gradient by the number of rows along the last axis,
    which is 1 for a vector (MXNet takes all axes but the last for the batch), "valid" by the number of elements above `valid_thresh`.
    **Gradient** as said, whatever comes from above. **Source** MXNet `MakeLoss`.
    """
    return apply(MakeLossLayer(grad_scale, valid_thresh, normalization), data, **how)


__all__ = [
    "LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput", "MakeLoss", "SVMOutput", "Softmax", "SoftmaxOutput",
    "softmax_cross_entropy",
]  # fmt: skip
