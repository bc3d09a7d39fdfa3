"""UpSampling: larger images, by repeating pixels or by interpolating between them.

The first takes any number of images and brings all of them to the size of the first one's result. The second is a transposed
convolution whose filters are learned, which starts as bilinear interpolation (initializer.py). Book: chapter 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Op, Shape, Spec, T, apply, attributes, register
from ..rules import require_ndim, same_dtype
from .checks import require_choice, require_float
from .deconv import DeconvolutionLayer
from .pool import PoolingLayer
from .windows import axes_of

if TYPE_CHECKING:
    from typing_extensions import Unpack


@attributes
class UpSamplingBase(Op):
    """MXNet's UpSampling is two operators under one name. They are classes of their own, chosen when the attributes are known."""

    required = ("scale", "sample_type")

    scale: int = 0
    num_filter: int = 0
    sample_type: str = ""
    multi_input_mode: str = "concat"
    workspace: int = 512

    def check(self) -> None:
        """Raise ArgumentError unless the attributes are good."""
        require_choice(self, "sample_type", self.sample_type, "nearest", "bilinear")
        require_choice(self, "multi_input_mode", self.multi_input_mode, "concat", "sum")
        if self.scale < 1:
            raise ArgumentError(
                f"UpSampling: scale={self.scale} must not be less than 1; it says how many times as long each axis becomes"
            )

    @classmethod
    def choose(cls, **given: Any) -> Op:
        """The operator for these attributes."""
        kind = given["sample_type"]
        if isinstance(kind, str) and kind == "bilinear":
            return UpSamplingBilinear(**given, num_args=2)
        return UpSamplingLayer(**given)

    @classmethod
    def from_attrs(cls, attrs: dict[str, str]) -> Op:
        return cls.choose(**super().from_attrs(attrs).__dict__)


@register("UpSampling")
class UpSamplingLayer(UpSamplingBase):
    inputs: ClassVar = ("data*",)
    saves_inputs = False
    saves_outputs = False

    def factors(self, shapes: list[Shape]) -> list[int]:
        """How many times each input is repeated along both axes."""
        lengths = tuple(self.scale * length for length in shapes[0][2:])
        found = []
        for number, shape in enumerate(shapes):
            factor = lengths[0] // max(shape[2], 1)
            if tuple(factor * length for length in shape[2:]) != lengths:
                raise ShapeError(
                    f"UpSampling: data{number} has shape {shape}, which does not fit {lengths} a whole number of times"
                )
            found.append(factor)
        return found

    def infer(self, *data: Spec) -> Spec:
        self.check()
        dtype = same_dtype(self, *data)
        for number, spec in enumerate(data):
            require_float(self, spec, f"data{number}")
            require_ndim(self, f"data{number}", spec, 4, axes=axes_of(2))
            first = data[0].shape[: 1 if self.multi_input_mode == "concat" else 2]
            if spec.shape[: len(first)] != first:
                what = "examples" if len(first) == 1 else "examples and channels"
                raise ShapeError(
                    f"UpSampling: data{number} has shape {spec.shape}, data0 {data[0].shape}; their {what} must be as many"
                )
        self.factors([spec.shape for spec in data])
        channels = sum(spec.shape[1] for spec in data) if self.multi_input_mode == "concat" else data[0].shape[1]
        return Spec.of((data[0].shape[0], channels, *(self.scale * length for length in data[0].shape[2:])), dtype)

    def kernel(self, xp: Any, *data: Array) -> Array:
        concat = self.multi_input_mode == "concat"
        channels = sum(array.shape[1] for array in data) if concat else data[0].shape[1]
        result = xp.empty((len(data[0]), channels, *(self.scale * length for length in data[0].shape[2:])), data[0].dtype)
        start = 0
        for number, (array, factor) in enumerate(zip(data, self.factors([array.shape for array in data]))):
            part = result[:, start : start + array.shape[1]] if concat else result
            blocks = part.reshape(*array.shape[:3], factor, array.shape[3], factor)  # a view
            if concat or number == 0:
                blocks[...] = array[:, :, :, None, :, None]
            else:
                blocks += array[:, :, :, None, :, None]
            start += array.shape[1]
        return result

    def vjp(self, g: Any, y: Any, *data: Any) -> tuple[Any, ...]:
        gradients, start = [], 0
        for each, factor in zip(data, self.factors([each.shape for each in data])):
            end = start + each.shape[1]
            part = g.slice_axis(axis=1, begin=start, end=end) if self.multi_input_mode == "concat" and len(data) > 1 else g
            gradients.append(apply(PoolingLayer(kernel_size=(factor,) * 2, stride=(factor,) * 2, pool_type="sum"), part))
            start = end
        return tuple(gradients)


@attributes
class UpSamplingBilinear(UpSamplingBase):
    name = "UpSampling"
    inputs: ClassVar = ("data", "weight")
    saves_outputs = False

    num_args: int = 0  # MXNet cannot read the node without it

    def transposed(self, channels: int) -> DeconvolutionLayer:
        """The transposed convolution that interpolates: each channel has a filter of its own."""
        length = 2 * self.scale - self.scale % 2
        return DeconvolutionLayer(
            kernel_size=(length,) * 2,
            stride=(self.scale,) * 2,
            pad=(self.scale // 2,) * 2,
            num_filter=channels,
            num_group=channels,
        )

    def infer(self, data: Spec, weight: Spec) -> Spec:
        self.check()
        require_ndim(self, "data", data, 4, axes=axes_of(2))
        if self.num_filter != data.shape[1]:
            raise ArgumentError(f"UpSampling: num_filter={self.num_filter}, data of shape {data.shape} needs {data.shape[1]}")
        found = self.transposed(self.num_filter).infer(data, weight)
        assert isinstance(found, Spec)
        return found

    def fill(self, data: Spec | None, weight: Spec | None) -> tuple[Spec | None, ...]:
        if self.num_filter < 1 or self.scale < 1:
            return data, weight
        if data is not None:
            require_ndim(self, "data", data, 4, axes=axes_of(2))
        return self.transposed(self.num_filter).fill(data, weight)

    def kernel(self, xp: Any, data: Array, weight: Array) -> Array:
        return self.transposed(self.num_filter).kernel(xp, data, weight)

    def vjp(self, g: Any, y: Any, data: Any, weight: Any) -> tuple[Any, ...]:
        return self.transposed(self.num_filter).vjp(g, y, data, weight)


def UpSampling(
    *data: T,
    scale: int = 0,
    num_filter: int = 0,
    sample_type: str = "",
    multi_input_mode: str = "concat",
    workspace: int = 512,
    **how: Unpack[How],
) -> T:
    """Make images `scale` times as large.

    **Shapes** data (N, C, H, W), result (N, C, scale H, scale W). **Args** `sample_type`: "nearest" repeats each pixel, "bilinear" takes
    two arrays, data and weight (C, 1, k, k) with k = 2 scale - scale % 2, and convolves: with the weights of initializer.Bilinear it
    interpolates. `num_filter`: C, for "bilinear". `multi_input_mode`: for several arrays, all of which get the size of the first one's
    result, "concat" joins their channels, "sum" adds them. **Gradient** the sum over all copies of a pixel; that of Deconvolution.
    **Source** MXNet `UpSampling`.
    """
    given = {"scale": scale, "num_filter": num_filter, "sample_type": sample_type, "multi_input_mode": multi_input_mode}
    op = UpSamplingBase.choose(**given, workspace=workspace)
    missing = max(0, 2 - len(data)) if isinstance(op, UpSamplingBilinear) else 0
    if isinstance(op, UpSamplingBilinear) and len(data) > 2:
        raise ArgumentError(f"UpSampling: {len(data)} arrays are given, sample_type='bilinear' takes two: data and weight")
    return apply(op, *data, *[None] * missing, **how)


__all__ = ["UpSampling"]
