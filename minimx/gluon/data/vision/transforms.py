"""Transforms of images: blocks that a data set's `transform_first` takes, alone or in a row (Compose).

    train = dataset.transform_first(Compose([RandomResizedCrop(224), RandomFlipLeftRight(), ToTensor()]))

Hybrid ones are made of operators (minimx/ops/image.py, image_color.py): Compose runs neighbours of them as one program. The others
choose what to do in Python, by the functions of `mx.image`. Before ToTensor there are images (H, W, C), after it tensors (C, H, W).
Random transforms take one image at a time, so that each gets numbers of its own: operators draw them from minimx's generator
(`mx.random.seed`), the others from Python's `random` and NumPy's, as in MXNet. **Source** MXNet `gluon.data.vision.transforms`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from .... import image
from ....base import ArgumentError, DTypeError, as_dtype, shown
from ....fields import converted
from ...block import Block, HybridBlock
from ...nn import HybridSequential, Sequential

__all__ = [
    "Cast", "CenterCrop", "Compose", "CropResize", "Normalize", "RandomApply", "RandomBrightness", "RandomColorJitter",
    "RandomContrast", "RandomFlipLeftRight", "RandomFlipTopBottom", "RandomHue", "RandomLighting", "RandomResizedCrop",
    "RandomRotation", "RandomSaturation", "Resize", "Rotate", "ToTensor",
]  # fmt: skip


# ---- several


class Compose(Sequential):
    """Transforms that run one after the other; neighbours that are hybrid run as one program.

    **Args** transforms: a list of blocks. **Source** MXNet `transforms.Compose`.

    >>> from minimx.gluon.data.vision import transforms
    >>> transform = transforms.Compose([transforms.Resize(8), transforms.CenterCrop((6, 4)), transforms.ToTensor()])
    >>> transform(mx.nd.zeros((10, 12, 3), dtype="uint8")).shape
    (3, 4, 6)
    """

    def __init__(self, transforms: Sequence[Block]) -> None:
        super().__init__()
        run: list[HybridBlock] = []
        for transform in transforms:
            if not isinstance(transform, Block):
                raise ArgumentError(
                    f"Compose: a list of blocks is wanted, such as transforms.ToTensor(); it has {shown(transform)}"
                )
            if isinstance(transform, HybridBlock):
                run.append(transform)
            else:
                self._add_run(run)
                run = []
                self.add(transform)
        self._add_run(run)

    def _add_run(self, run: list[HybridBlock]) -> None:
        """Add hybrid neighbours, as one block if they are several."""
        if len(run) < 2:
            self.add(*run)
            return
        program = HybridSequential()
        program.add(*run)
        program.hybridize()
        self.add(program)


class RandomApply(Sequential):
    """With probability `p` what `transforms` makes of the image, else the image.

    **Args** transforms: a block, such as a Compose, or a list of blocks. **Source** MXNet `transforms.RandomApply`.
    """

    def __init__(self, transforms: Block | Sequence[Block], p: float = 0.5) -> None:
        super().__init__()
        if not isinstance(transforms, (list, tuple)) and not callable(transforms):
            raise ArgumentError(f"RandomApply: a block or a list of blocks is wanted, got {shown(transforms)}")
        self.transforms: Any = Compose(transforms) if isinstance(transforms, (list, tuple)) else transforms
        self.p = probability("RandomApply", "p", p)

    def forward(self, x: Any) -> Any:
        return self.transforms(x) if random.random() < self.p else x


def probability(owner: str, name: str, value: Any) -> float:
    number: float = converted(owner, name, "float", value)
    if not 0 <= number <= 1:
        raise ArgumentError(f"{owner}: {name} is a probability, between 0 and 1; got {shown(value)}")
    return number


# ---- dtypes, tensors


class Cast(HybridBlock):
    """The image in another dtype. **Source** MXNet `transforms.Cast`."""

    def __init__(self, dtype: Any = "float32") -> None:
        super().__init__()
        self._dtype = as_dtype(dtype).name

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.cast(x, self._dtype)


class ToTensor(HybridBlock):
    """An image (H, W, C) with values of [0, 255] as a tensor (C, H, W) of float32 in [0, 1]; or a batch of them.

    **Source** MXNet `transforms.ToTensor`.
    """

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.to_tensor(x)


class Normalize(HybridBlock):
    """`(x - mean) / std` of a tensor (C, H, W) or (N, C, H, W), channel by channel.

    **Args** a number, or one for each channel. **Source** MXNet `transforms.Normalize`.
    """

    def __init__(self, mean: float | Sequence[float] = 0.0, std: float | Sequence[float] = 1.0) -> None:
        super().__init__()
        self._mean = numbers("Normalize", "mean", mean)
        self._std = numbers("Normalize", "std", std)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.normalize(x, self._mean, self._std)


def numbers(owner: str, name: str, value: Any) -> tuple[float, ...]:
    """A number, a sequence of them, or an array of one axis, as a tuple."""
    given = value.asnumpy() if hasattr(value, "asnumpy") else value
    found: tuple[float, ...] = converted(owner, name, "tuple[float, ...]", given)
    return found


# ---- geometry


class Resize(HybridBlock):
    """An image, or a batch of them, in another size.

    **Args** size: (width, height), or an int for both; with `keep_ratio` the int is for the shorter side. interpolation: see
    `nd.image.resize`. **Source** MXNet `transforms.Resize`.
    """

    def __init__(self, size: int | tuple[int, int], keep_ratio: bool = False, interpolation: int = 1) -> None:
        super().__init__()
        self._keep = keep_ratio
        self._size = size
        self._interpolation = interpolation

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.resize(x, self._size, self._keep, self._interpolation)


class CropResize(HybridBlock):
    """A fixed part of an image, or of a batch of them, in another size if one is given.

    **Args** x, y: column and row of its left upper corner; width, height: of the part; size: (width, height) of the result, or an int for
    both; interpolation: see `nd.image.resize`. **Source** MXNet `transforms.CropResize`.
    """

    def __init__(
        self, x: int, y: int, width: int, height: int, size: int | tuple[int, int] | None = None, interpolation: int | None = None
    ) -> None:
        super().__init__()
        self._part = (x, y, width, height)
        self._size = size
        self._interpolation = 1 if interpolation is None else interpolation

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        part = F.image.crop(x, *self._part)
        return part if self._size is None else F.image.resize(part, self._size, False, self._interpolation)


class CenterCrop(Block):
    """The middle of an image. A smaller image is enlarged.

    **Args** size: (width, height) of the result, or an int for both; interpolation: see `nd.image.resize`.
    **Source** MXNet `transforms.CenterCrop`.
    """

    def __init__(self, size: int | tuple[int, int], interpolation: int = 1) -> None:
        super().__init__()
        self._args = (width_and_height("CenterCrop", size), interpolation)

    def forward(self, x: Any) -> Any:
        return image.center_crop(x, *self._args)[0]


class RandomResizedCrop(Block):
    """A random part of an image, in a fixed size.

    **Args** size: (width, height) of the result, or an int for both; scale: between which fractions of the image's area the part's lies;
    ratio: between which numbers its width divided by its height lies; interpolation: see `nd.image.resize`.
    **Source** MXNet `transforms.RandomResizedCrop`.
    """

    def __init__(
        self,
        size: int | tuple[int, int],
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        interpolation: int = 1,
    ) -> None:
        super().__init__()
        self._args = (width_and_height("RandomResizedCrop", size), scale, ratio, interpolation)

    def forward(self, x: Any) -> Any:
        return image.random_size_crop(x, *self._args)[0]


def width_and_height(owner: str, size: Any) -> tuple[int, int]:
    """A size as users write it. Raises ArgumentError unless it is one."""
    lengths: tuple[int, ...] = converted(owner, "size", "tuple[int, ...]", size)
    if len(lengths) not in (1, 2) or min(lengths) < 1:
        raise ArgumentError(f"{owner}: size is {shown(size)}, wants an int or (width, height), each at least 1")
    return lengths[0], lengths[-1]


class Rotate(Block):
    """A tensor (C, H, W), or a batch of them, turned about its middle; what comes from outside is 0.

    **Args** rotation_degrees: counter-clockwise; zoom_in: enlarge, so that nothing comes from outside; zoom_out: shrink, so that nothing
    is lost. **Raises** TypeError for another dtype than float32. **Source** MXNet `transforms.Rotate`.
    """

    def __init__(self, rotation_degrees: float, zoom_in: bool = False, zoom_out: bool = False) -> None:
        super().__init__()
        self._args = (rotation_degrees, zoom_in, zoom_out)

    def forward(self, x: Any) -> Any:
        require_float32("Rotate", x)
        return image.imrotate(x, *self._args)


class RandomRotation(Block):
    """A tensor (C, H, W), or each of a batch of them, turned by a random angle.

    **Args** angle_limits: the smallest and the largest angle in degrees; zoom_in, zoom_out: see `Rotate`; rotate_with_proba: with which
    probability it is turned at all. **Raises** TypeError for another dtype than float32. **Source** MXNet `transforms.RandomRotation`.
    """

    def __init__(
        self, angle_limits: Sequence[float], zoom_in: bool = False, zoom_out: bool = False, rotate_with_proba: float = 1.0
    ) -> None:
        super().__init__()
        limits = numbers("RandomRotation", "angle_limits", angle_limits)
        if len(limits) != 2 or not limits[0] < limits[1]:
            raise ArgumentError(f"RandomRotation: angle_limits must be (smaller, larger) in degrees, got {shown(angle_limits)}")
        self._args = (limits, zoom_in, zoom_out)
        self._rotate_with_proba = probability("RandomRotation", "rotate_with_proba", rotate_with_proba)

    def forward(self, x: Any) -> Any:
        if np.random.random() >= self._rotate_with_proba:
            return x
        require_float32("RandomRotation", x)
        return image.random_rotate(x, *self._args)


def require_float32(owner: str, x: Any) -> None:
    if np.dtype(x.dtype) != np.float32:
        raise DTypeError(
            f"{owner}: x is {np.dtype(x.dtype).name}; This transformation only supports float32: put it after ToTensor()"
        )


class RandomFlipLeftRight(HybridBlock):
    """With probability 1/2 the image as in a mirror. **Source** MXNet `transforms.RandomFlipLeftRight`."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_flip_left_right(x)


class RandomFlipTopBottom(HybridBlock):
    """With probability 1/2 the image upside down. **Source** MXNet `transforms.RandomFlipTopBottom`."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_flip_top_bottom(x)


# ---- colours


def factors(owner: str, name: str, value: Any) -> tuple[float, float]:
    """Between which factors to draw where the user says by how much a property may change."""
    (amount,) = amounts(owner, **{name: value})
    return max(0.0, 1 - amount), 1 + amount


def amounts(owner: str, **values: Any) -> tuple[float, ...]:
    """How much may change, of each property. Raises ArgumentError for what is no number, or less than 0."""
    for name, value in values.items():
        if not 0 <= converted(owner, name, "float", value) < float("inf"):
            raise ArgumentError(f"{owner}: {name} is {shown(value)}; it must be at least 0")
    return tuple(float(value) for value in values.values())


class RandomBrightness(HybridBlock):
    """An image times a factor that is drawn from [max(0, 1 - brightness), 1 + brightness). **Source** MXNet
    `transforms.RandomBrightness`.
    """

    def __init__(self, brightness: float) -> None:
        super().__init__()
        self._args = factors("RandomBrightness", "brightness", brightness)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_brightness(x, *self._args)


class RandomContrast(HybridBlock):
    """An image moved away from its mean grey, by a factor that is drawn from [max(0, 1 - contrast), 1 + contrast). **Source** MXNet
    `transforms.RandomContrast`.
    """

    def __init__(self, contrast: float) -> None:
        super().__init__()
        self._args = factors("RandomContrast", "contrast", contrast)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_contrast(x, *self._args)


class RandomSaturation(HybridBlock):
    """An image whose pixels are moved away from their grey, by a factor that is drawn from [max(0, 1 - saturation), 1 + saturation).
    **Source** MXNet `transforms.RandomSaturation`.
    """

    def __init__(self, saturation: float) -> None:
        super().__init__()
        self._args = factors("RandomSaturation", "saturation", saturation)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_saturation(x, *self._args)


class RandomHue(HybridBlock):
    """An image whose hues are moved by up to `hue` of the circle of colours, either way. **Source** MXNet `transforms.RandomHue`."""

    def __init__(self, hue: float) -> None:
        super().__init__()
        self._args = factors("RandomHue", "hue", hue)  # around 1, a whole turn

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_hue(x, *self._args)


class RandomColorJitter(HybridBlock):
    """An image changed in brightness, contrast, saturation and hue, in random order. **Args** how much of each, 0 for not at all: see the
    transforms of one property. **Source** MXNet `transforms.RandomColorJitter`.
    """

    def __init__(self, brightness: float = 0, contrast: float = 0, saturation: float = 0, hue: float = 0) -> None:
        super().__init__()
        self._args = amounts("RandomColorJitter", brightness=brightness, contrast=contrast, saturation=saturation, hue=hue)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_color_jitter(x, *self._args)


class RandomLighting(HybridBlock):
    """An image under a random light. **Args** alpha: the standard deviation of the noise, see `nd.image.random_lighting`.
    **Source** MXNet `transforms.RandomLighting`.
    """

    def __init__(self, alpha: float) -> None:
        super().__init__()
        (self._alpha,) = amounts("RandomLighting", alpha=alpha)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.image.random_lighting(x, self._alpha)
