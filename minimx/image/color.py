"""Colours of images: normalizing them, and augmenters that change brightness, contrast, saturation, hue.

All of these scale and add, so they want floating numbers: an image of bytes goes through CastAug first. The order of colours is red, green,
blue.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from ..base import ArgumentError, shown
from ..fields import converted
from ..nd import NDArray, array
from .arrays import Pixels, require_floating
from .augment import Augmenter, PixelAugmenter, RandomOrderAug, as_probability

__all__ = [
    "BrightnessJitterAug", "ColorJitterAug", "ColorNormalizeAug", "ContrastJitterAug", "HueJitterAug", "LightingAug",
    "RandomGrayAug", "SaturationJitterAug", "color_normalize",
]  # fmt: skip

# How much red, green and blue add to brightness, of the signal that NTSC transmits (ITU-R BT.601).
BRIGHTNESS = np.array([0.299, 0.587, 0.114], np.float32)
# From red, green, blue to NTSC's brightness and two differences of colours, which hue turns like a plane; and back.
TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
FROM_YIQ = np.array([[1.0, 0.956, 0.621], [1.0, -0.272, -0.647], [1.0, -1.107, 1.705]])
GREY = np.repeat(np.array([[0.21], [0.72], [0.07]], np.float32), 3, axis=1)


def color_normalize(src: NDArray, mean: Any, std: Any = None) -> NDArray:
    """(src - mean) / std, written into `src`, as in MXNet; either may be None.

    **Shapes** src `(H, W, C)`; mean, std `(C,)` or `(1,)`, arrays or numbers. **Returns** src. **Raises** DTypeError for another dtype than
    that of mean and std. **Source** MXNet `image.color_normalize`.
    """
    if not isinstance(src, NDArray):
        raise ArgumentError(f"color_normalize: src must be an NDArray, got {shown(src)}")
    if mean is not None:
        src -= mean
    if std is not None:
        src /= std
    return src


class ColorAugmenter(PixelAugmenter):
    """An augmenter that computes with colours."""

    def changed(self, pixels: Pixels) -> Pixels:
        require_floating(type(self).__name__, pixels)
        return self.recoloured(pixels)

    def recoloured(self, pixels: Pixels) -> Pixels:
        raise NotImplementedError


def brightness_of(name: str, pixels: Pixels) -> Pixels:
    """The brightness of each pixel, (H, W, 1)."""
    if pixels.shape[2] != 3:
        raise ArgumentError(f"{name}: the image has shape {pixels.shape}; three channels, red, green, blue, are wanted")
    return pixels @ BRIGHTNESS.astype(pixels.dtype)[:, None]


def factor(strength: float) -> float:
    """A random number around 1, at most `strength` away."""
    return 1.0 + random.uniform(-strength, strength)


class BrightnessJitterAug(ColorAugmenter):
    """Multiply the image by 1 plus a random number from -brightness to brightness. **Source** MXNet `image.BrightnessJitterAug`."""

    def __init__(self, brightness: float) -> None:
        super().__init__(brightness=brightness)
        self.brightness = converted("BrightnessJitterAug", "brightness", "float", brightness)

    def recoloured(self, pixels: Pixels) -> Pixels:
        return pixels * pixels.dtype.type(factor(self.brightness))


class ContrastJitterAug(ColorAugmenter):
    """Move each pixel towards the image's mean brightness, or away from it, by a random part up to `contrast`.
    **Source** MXNet `image.ContrastJitterAug`."""

    def __init__(self, contrast: float) -> None:
        super().__init__(contrast=contrast)
        self.contrast = converted("ContrastJitterAug", "contrast", "float", contrast)

    def recoloured(self, pixels: Pixels) -> Pixels:
        kept = factor(self.contrast)
        mean = brightness_of("ContrastJitterAug", pixels).mean(dtype=np.float64)
        changed = pixels * pixels.dtype.type(kept)
        changed += pixels.dtype.type((1.0 - kept) * mean)
        return changed


class SaturationJitterAug(ColorAugmenter):
    """Move each pixel towards its own brightness, which is grey, or away from it, by a random part up to `saturation`.
    **Source** MXNet `image.SaturationJitterAug`."""

    def __init__(self, saturation: float) -> None:
        super().__init__(saturation=saturation)
        self.saturation = converted("SaturationJitterAug", "saturation", "float", saturation)

    def recoloured(self, pixels: Pixels) -> Pixels:
        kept = factor(self.saturation)
        grey = brightness_of("SaturationJitterAug", pixels)
        grey *= pixels.dtype.type(1.0 - kept)
        changed = pixels * pixels.dtype.type(kept)
        changed += grey
        return changed


class HueJitterAug(ColorAugmenter):
    """Turn the colours' hue by a random part, up to `hue`, of half a circle. **Source** MXNet `image.HueJitterAug`."""

    def __init__(self, hue: float) -> None:
        super().__init__(hue=hue)
        self.hue = converted("HueJitterAug", "hue", "float", hue)

    def recoloured(self, pixels: Pixels) -> Pixels:
        angle = random.uniform(-self.hue, self.hue) * np.pi
        cosine, sine = np.cos(angle), np.sin(angle)
        turn = np.array([[1.0, 0.0, 0.0], [0.0, cosine, -sine], [0.0, sine, cosine]])
        return times(pixels, (FROM_YIQ @ turn @ TO_YIQ).T, "HueJitterAug")


def times(pixels: Pixels, matrix: Pixels, name: str) -> Pixels:
    """Each pixel, as a row of three colours, times a matrix."""
    if pixels.shape[2] != 3:
        raise ArgumentError(f"{name}: the image has shape {pixels.shape}; three channels, red, green, blue, are wanted")
    flat: Pixels = pixels.reshape(-1, 3) @ matrix.astype(pixels.dtype)
    return flat.reshape(pixels.shape)


class ColorJitterAug(RandomOrderAug):
    """Brightness, contrast and saturation, in random order; those whose strength is 0 are left out.
    **Source** MXNet `image.ColorJitterAug`."""

    def __init__(self, brightness: float, contrast: float, saturation: float) -> None:
        ts: list[Augmenter] = []
        if brightness > 0:
            ts.append(BrightnessJitterAug(brightness))
        if contrast > 0:
            ts.append(ContrastJitterAug(contrast))
        if saturation > 0:
            ts.append(SaturationJitterAug(saturation))
        super().__init__(ts)


class LightingAug(ColorAugmenter):
    """Add a random colour, normally distributed along the principal axes of the colours of natural images (as AlexNet was trained).

    **Args** `alphastd`: its standard deviation; `eigval` (3,) and `eigvec` (3, 3): the axes' lengths and directions.
    **Source** MXNet `image.LightingAug`.
    """

    def __init__(self, alphastd: float, eigval: Any, eigvec: Any) -> None:
        super().__init__(alphastd=alphastd, eigval=eigval, eigvec=eigvec)
        self.alphastd = converted("LightingAug", "alphastd", "float", alphastd)
        self.eigval = numbers_of("LightingAug", "eigval", eigval, (3,))
        self.eigvec = numbers_of("LightingAug", "eigvec", eigvec, (3, 3))

    def recoloured(self, pixels: Pixels) -> Pixels:
        alpha = np.random.normal(0, self.alphastd, size=(3,))
        return pixels + np.dot(self.eigvec * alpha, self.eigval).astype(pixels.dtype)


class ColorNormalizeAug(ColorAugmenter):
    """(image - mean) / std; either may be None. **Args** `mean`, `std`: a number for each channel, as an array or a list.
    **Source** MXNet `image.ColorNormalizeAug`."""

    def __init__(self, mean: Any, std: Any) -> None:
        super().__init__(mean=mean, std=std)
        self.mean = mean if mean is None or isinstance(mean, NDArray) else array(mean)
        self.std = std if std is None or isinstance(std, NDArray) else array(std)
        self._mean, self._std = (None if each is None else each.asnumpy() for each in (self.mean, self.std))

    def recoloured(self, pixels: Pixels) -> Pixels:
        for what, numbers in (("mean", self._mean), ("std", self._std)):
            if numbers is not None and numbers.shape not in ((1,), pixels.shape[2:]):
                raise ArgumentError(
                    f"ColorNormalizeAug: {what} has shape {numbers.shape}, an image of shape {pixels.shape} needs {pixels.shape[2:]}"
                )
        changed = pixels if self._mean is None else pixels - self._mean.astype(pixels.dtype)
        if self._std is None:
            return changed
        return np.divide(changed, self._std.astype(pixels.dtype), out=None if changed is pixels else changed)


class RandomGrayAug(ColorAugmenter):
    """Make the image grey, in three equal channels, with probability `p`. **Source** MXNet `image.RandomGrayAug`."""

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p = as_probability("RandomGrayAug", "p", p)

    def recoloured(self, pixels: Pixels) -> Pixels:
        return times(pixels, GREY, "RandomGrayAug") if random.random() < self.p else pixels


def numbers_of(name: str, what: str, value: Any, shape: tuple[int, ...]) -> Pixels:
    """`value` as an array of `shape`. Raises ArgumentError."""
    try:
        numbers = np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value, np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != shape:
        raise ArgumentError(f"{name}: {what} must be an array of shape {shape}, got {shown(value)} of shape {numbers.shape}")
    return numbers
