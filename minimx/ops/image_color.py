"""The colours of images: brightness, contrast, saturation, hue, lighting, each changed by a random amount.

A network that sees a picture in another light every time learns what does not depend on the light. Each function draws a number
(`factor`), and computes in float32 on an image (H, W, C) of 1 or 3 channels, with values of [0, 255] as files have them, be they bytes or
floating; bytes are cut to whole numbers in the end, as C++ casts them. The *grey* of a pixel is 0.299 R + 0.587 G + 0.114 B, as eyes weigh
light.

As in MXNet, gradients pass these functions unchanged, as if they added a constant, which is true of lighting alone.
Geometry is in image.py, blocks of both in gluon.data.vision.transforms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import ArgumentError, ShapeError, shown
from ..op import Array, How, Op, Spec, T, apply, attributes, register
from .image import SINGLE, require_image, truncated

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..seeds import Key

GREY = (0.299, 0.587, 0.114)
#: Along which three directions the colours of ImageNet vary (columns), each times how far it goes, a standard deviation (Krizhevsky, 2012).
PRINCIPAL = (
    (55.46 * -0.5675, 4.794 * 0.7192, 1.148 * 0.4009),
    (55.46 * -0.5808, 4.794 * -0.0045, 1.148 * -0.8140),
    (55.46 * -0.5836, 4.794 * -0.6948, 1.148 * 0.4203),
)


class Recoloring(Op):
    """An image of the same shape in other colours."""

    saves_inputs = False
    saves_outputs = False

    def infer(self, data: Spec) -> Spec:
        require_image(self, data)
        if data.shape[2] not in (1, 3):
            raise ShapeError(f"{self.name}: data has shape {data.shape}, wants 1 or 3 channels on the last axis")
        return data

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (g,)


# ---- one property, changed by a factor. Images are planes here: see `planes_of`


def brightened(xp: Any, planes: Array, factor: float) -> Array:
    """Every value times `factor`."""
    planes *= planes.dtype.type(factor)
    return planes


def contrasted(xp: Any, planes: Array, factor: float) -> Array:
    """Every value `factor` times as far from the mean grey of the image."""
    means = planes.reshape(len(planes), -1).mean(axis=1, dtype=np.float64).tolist()
    grey = sum(weight * mean for weight, mean in zip(GREY, means)) if len(means) == 3 else means[0]
    planes *= planes.dtype.type(factor)
    planes += planes.dtype.type((1 - factor) * grey)
    return planes


def saturated(xp: Any, planes: Array, factor: float) -> Array:
    """Every pixel `factor` times as far from its own grey."""
    if len(planes) == 3:
        kind = planes.dtype.type
        grey = sum(plane * kind((1 - factor) * weight) for weight, plane in zip(GREY, planes))
        planes *= kind(factor)
        planes += grey
    return planes


def turned(xp: Any, planes: Array, turn: float) -> Array:
    """Every hue moved by `turn` on the circle of colours, whose length is 1; lightness and saturation stay.

    Of a pixel, the largest and the smallest channel stay what they are. A channel moves between these two as a function of the hue that
    is a trapezium: at the top for a third of the circle around its own colour, at the bottom for the opposite third.
    """
    if len(planes) == 1:
        return planes
    red, green, blue = planes
    high, low = xp.maximum(xp.maximum(red, green), blue), xp.minimum(xp.minimum(red, green), blue)
    span = high - low
    # The hue of a pixel, 0 at red, 2 at green, 4 at blue, 6 at red again; times span, so that bytes stay exact where nothing moves
    hue = xp.where(high == red, green - blue, xp.where(high == green, blue - red + 2 * span, red - green + 4 * span))
    hue += span * planes.dtype.type(6 * (turn % 1))
    circle = 6 * span
    circle += circle == 0  # a grey pixel has no hue, and needs none
    for plane, own in zip(planes, (0, 2, 4)):
        away = hue - own * span if own else hue.copy()  # from the channel's own colour
        away -= circle * xp.rint(away / circle)
        xp.abs(away, out=away)
        xp.subtract(2 * span, away, out=away)
        xp.add(low, xp.clip(away, 0, span, out=away), out=plane)
    return planes


# ---- from images and to images


def planes_of(xp: Any, data: Array) -> Array:
    """A copy of an image (H, W, C) as planes (C, H, W): of float32, or float64 if data is. What NumPy does with rows is much faster than
    what it does with the three numbers of a pixel.
    """
    return data.transpose(2, 0, 1).copy().astype(SINGLE if data.dtype != np.float64 else data.dtype, copy=False)


def image_of(xp: Any, planes: Array, dtype: np.dtype[Any]) -> Array:
    """Planes, whose memory may be used, as an image of `dtype`. What would not fit into integers is cut: in C++ a cast does that."""
    return xp.ascontiguousarray(truncated(planes, dtype).transpose(1, 2, 0))


# ---- operators that draw a factor


@attributes
class Enhancement(Recoloring):
    """One property changed by a factor that is drawn from [min_factor, max_factor)."""

    needs_key = True

    min_factor: float
    max_factor: float

    def infer(self, data: Spec) -> Spec:
        if not (0 <= self.min_factor < math.inf and 0 <= self.max_factor < math.inf):
            raise ArgumentError(
                f"{self.name}: min_factor is {shown(self.min_factor)}, max_factor {shown(self.max_factor)}; both must be at least 0"
            )
        return Recoloring.infer(self, data)

    def kernel(self, xp: Any, data: Array, key: Key) -> Array:
        factor = self.min_factor + (self.max_factor - self.min_factor) * float(key.generator(xp).random())
        return image_of(xp, self.changed(xp, planes_of(xp, data), factor), data.dtype)

    def changed(self, xp: Any, planes: Array, factor: float) -> Array:
        raise NotImplementedError


@register("_image_random_brightness")
class RandomBrightness(Enhancement):
    def changed(self, xp: Any, planes: Array, factor: float) -> Array:
        return brightened(xp, planes, factor)


@register("_image_random_contrast")
class RandomContrast(Enhancement):
    def changed(self, xp: Any, planes: Array, factor: float) -> Array:
        return contrasted(xp, planes, factor)


@register("_image_random_saturation")
class RandomSaturation(Enhancement):
    def changed(self, xp: Any, planes: Array, factor: float) -> Array:
        return saturated(xp, planes, factor)


@register("_image_random_hue")
class RandomHue(Enhancement):
    def changed(self, xp: Any, planes: Array, factor: float) -> Array:
        return turned(xp, planes, factor)


def random_brightness(data: T, min_factor: float, max_factor: float, **how: Unpack[How]) -> T:
    """An image times a number that is drawn from [min_factor, max_factor).

    **Shapes** data and result (H, W, C), C 1 or 3. **Args** the factors: at least 0; at 1 nothing changes. **Gradient** g as it is.
    **Source** MXNet `image.random_brightness`.
    """
    return apply(RandomBrightness(min_factor, max_factor), data, **how)


def random_contrast(data: T, min_factor: float, max_factor: float, **how: Unpack[How]) -> T:
    """An image whose values are moved away from its mean grey, by a number that is drawn from [min_factor, max_factor).

    **Shapes**, **Args**, **Gradient** as `random_brightness`. **Source** MXNet `image.random_contrast`.
    """
    return apply(RandomContrast(min_factor, max_factor), data, **how)


def random_saturation(data: T, min_factor: float, max_factor: float, **how: Unpack[How]) -> T:
    """An image whose pixels are moved away from their own grey, by a number that is drawn from [min_factor, max_factor).

    **Shapes**, **Args**, **Gradient** as `random_brightness`. **Source** MXNet `image.random_saturation`, whose grey lacks red and green.
    """
    return apply(RandomSaturation(min_factor, max_factor), data, **how)


def random_hue(data: T, min_factor: float, max_factor: float, **how: Unpack[How]) -> T:
    """An image whose hues are moved along the circle of colours, by a part of it that is drawn from [min_factor, max_factor).

    **Shapes** data and result (H, W, C), C 1 (where nothing changes) or 3. **Args** the factors: at least 0; whole numbers change nothing.
    **Gradient** g as it is. **Source** MXNet `image.random_hue`; bytes may be 1 apart.
    """
    return apply(RandomHue(min_factor, max_factor), data, **how)


# ---- all four


@register("_image_random_color_jitter")
class RandomColorJitter(Recoloring):
    needs_key = True

    brightness: float
    contrast: float
    saturation: float
    hue: float

    def infer(self, data: Spec) -> Spec:
        for name, value in self.__dict__.items():
            if not 0 <= value < math.inf:
                raise ArgumentError(f"{self.name}: {name} is {shown(value)}; it must be at least 0")
        return Recoloring.infer(self, data)

    def kernel(self, xp: Any, data: Array, key: Key) -> Array:
        generator = key.generator(xp)
        changes = [(brightened, self.brightness), (contrasted, self.contrast), (saturated, self.saturation), (turned, self.hue)]
        order, draws = xp.argsort(generator.random(4)).tolist(), generator.random(4).tolist()
        planes = planes_of(xp, data)
        for number in order:
            change, amount = changes[number]
            if amount > 0:
                low = max(-amount, -1.0) if change is not turned else -amount
                drawn = low + (amount - low) * draws[number]
                planes = change(xp, planes, drawn if change is turned else 1 + drawn)
                if data.dtype.kind != "f":  # the next change sees no other values than an image has
                    planes.clip(0, 255, out=planes)
        return image_of(xp, planes, data.dtype)


def random_color_jitter(data: T, brightness: float, contrast: float, saturation: float, hue: float, **how: Unpack[How]) -> T:
    """An image changed in brightness, contrast, saturation and hue, in random order.

    **Shapes** data and result (H, W, C), C 1 or 3. **Args** how much of each, at least 0: factors are drawn from
    [max(0, 1 - amount), 1 + amount), the turn of the hues from [-hue, hue). **Gradient** g as it is.
    **Source** MXNet `image.random_color_jitter`.
    """
    return apply(RandomColorJitter(brightness, contrast, saturation, hue), data, **how)


# ---- lighting


def lit(xp: Any, data: Array, alpha: Sequence[float]) -> Array:
    """`data` under another light: a colour is added that is `alpha` along the three principal directions."""
    if data.shape[2] == 1:
        return data.copy()
    planes = planes_of(xp, data)
    for plane, direction in zip(planes, PRINCIPAL):
        plane += plane.dtype.type(sum(each * amount for each, amount in zip(direction, alpha)))
    return image_of(xp, planes, data.dtype)


@register("_image_adjust_lighting")
class AdjustLighting(Recoloring):
    alpha: tuple[float, ...]

    def infer(self, data: Spec) -> Spec:
        if len(self.alpha) != 3:
            raise ArgumentError(f"{self.name}: alpha is {shown(self.alpha)}, wants three numbers")
        return Recoloring.infer(self, data)

    def kernel(self, xp: Any, data: Array) -> Array:
        return lit(xp, data, self.alpha)


@register("_image_random_lighting")
class RandomLighting(Recoloring):
    needs_key = True

    alpha_std: float = 0.05

    def infer(self, data: Spec) -> Spec:
        if not 0 <= self.alpha_std < math.inf:
            raise ArgumentError(f"{self.name}: alpha_std is {shown(self.alpha_std)}; it must be at least 0")
        return Recoloring.infer(self, data)

    def kernel(self, xp: Any, data: Array, key: Key) -> Array:
        return lit(xp, data, (key.generator(xp).standard_normal(3) * self.alpha_std).tolist())


def adjust_lighting(data: T, alpha: Sequence[float], **how: Unpack[How]) -> T:
    """An image under another light: a colour is added to all pixels.

    **Shapes** data and result (H, W, C), C 1 (where nothing changes) or 3. **Args** alpha: three numbers, how far to go along the
    directions in which the colours of photographs vary most, in standard deviations. **Gradient** g.
    **Source** MXNet `image.adjust_lighting`; Krizhevsky et al., 2012.
    """
    return apply(AdjustLighting(alpha), data, **how)  # type: ignore[arg-type]  # the operator makes a tuple of it


def random_lighting(data: T, alpha_std: float = 0.05, **how: Unpack[How]) -> T:
    """An image under a random light: `adjust_lighting` with three normal numbers of standard deviation `alpha_std`.

    **Shapes**, **Gradient** as `adjust_lighting`. **Source** MXNet `image.random_lighting`.
    """
    return apply(RandomLighting(alpha_std), data, **how)


__all__ = [
    "adjust_lighting", "random_brightness", "random_color_jitter", "random_contrast", "random_hue", "random_lighting",
    "random_saturation",
]  # fmt: skip
