"""Augmenters: what is done to an image on its way into a batch, as objects that a list can hold.

An Augmenter is called with an image and returns one; the image that it was given stays as it is (in MXNet some write into it). Those of
this package say in `changed` what they do to pixels. Here are the ones that cut, resize and mirror; those for colours are in color.py.
`CreateAugmenter` puts the usual list together. Random numbers are drawn from Python's `random` (and NumPy's global generator for lighting)
in MXNet's order: after the same seeds, the same happens.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import ArgumentError, as_dtype, shown
from ..fields import converted
from ..nd import NDArray
from .arrays import ImageError, Pixels, context_of, delivered, pixels_of
from .geometry import (
    Size,
    as_range,
    as_size,
    central_part,
    random_part,
    random_sized_part,
    renamed_area,
    resized,
    shorter_resized,
)

__all__ = [
    "Augmenter", "CastAug", "CenterCropAug", "ForceResizeAug", "HorizontalFlipAug", "RandomCropAug", "RandomOrderAug",
    "RandomSizedCropAug", "ResizeAug", "SequentialAug",
]  # fmt: skip


class Augmenter:
    """The base of all augmenters: a subclass overrides `__call__`. What its constructor hands on is what `dumps` writes.
    **Source** MXNet `image.Augmenter`.

    >>> ResizeAug(256, interp=1).dumps()
    '["resizeaug", {"size": 256, "interp": 1}]'
    """

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = {key: listed(value) for key, value in kwargs.items()}

    def dumps(self) -> Any:
        """The augmenter as text, JSON: its class and what it was made with. A list of such texts where it consists of others."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, src: NDArray) -> NDArray:
        raise NotImplementedError(f"{type(self).__name__} must override __call__, which takes an image and returns one")


class PixelAugmenter(Augmenter):
    """An augmenter that computes pixels from pixels."""

    def changed(self, pixels: Pixels) -> Pixels:
        """What becomes of `pixels` (H, W, C), which are only read."""
        raise NotImplementedError

    def __call__(self, src: NDArray) -> NDArray:
        pixels = pixels_of(type(self).__name__, src)
        changed = self.changed(pixels)
        return src if changed is pixels and isinstance(src, NDArray) else delivered(changed, context_of(src))


def listed(value: Any) -> Any:
    """`value` as JSON has it."""
    if hasattr(value, "asnumpy"):
        value = value.asnumpy()
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def as_augmenters(name: str, ts: Any, kind: type[Any] = Augmenter) -> list[Any]:
    """`ts` as a list of augmenters. Raises ArgumentError for anything that is no augmenter (a function that takes an image may be)."""
    if not isinstance(ts, (list, tuple)):
        raise ArgumentError(f"{name}: a list of augmenters is wanted, got {shown(ts)}")
    for each in ts:
        if not isinstance(each, kind) and not (kind is Augmenter and isinstance(each, Callable)):  # type: ignore[arg-type]  # isinstance knows Callable
            raise ArgumentError(f"{name}: {shown(each)} is no {kind.__name__}")
    return ts if isinstance(ts, list) else list(ts)


# ---- several of them


class SequentialAug(Augmenter):
    """The augmenters `ts`, one after the other. **Source** MXNet `image.SequentialAug`."""

    def __init__(self, ts: Sequence[Augmenter]) -> None:
        super().__init__()
        self.ts = as_augmenters("SequentialAug", ts)

    def dumps(self) -> Any:
        return [type(self).__name__.lower(), [each.dumps() for each in self.ts]]

    def __call__(self, src: NDArray) -> NDArray:
        for each in self.ts:
            src = each(src)
        return src


class RandomOrderAug(Augmenter):
    """The augmenters `ts`, each time in another order. **Source** MXNet `image.RandomOrderAug`."""

    def __init__(self, ts: Sequence[Augmenter]) -> None:
        super().__init__()
        self.ts = as_augmenters("RandomOrderAug", ts)

    def dumps(self) -> Any:
        return [type(self).__name__.lower(), [each.dumps() for each in self.ts]]

    def __call__(self, src: NDArray) -> NDArray:
        random.shuffle(self.ts)
        for each in self.ts:
            src = each(src)
        return src


# ---- sizes and parts


class ResizeAug(PixelAugmenter):
    """Resize so that the shorter side has `size` pixels: `resize_short`. **Source** MXNet `image.ResizeAug`."""

    def __init__(self, size: int, interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size = converted("ResizeAug", "size", "int", size)
        self.interp = interp

    def changed(self, pixels: Pixels) -> Pixels:
        return shorter_resized(pixels, self.size, self.interp)


class ForceResizeAug(PixelAugmenter):
    """Resize to `size` (width, height), whatever ratio the image has: `imresize`. **Source** MXNet `image.ForceResizeAug`."""

    def __init__(self, size: Sequence[int], interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size = as_size("ForceResizeAug", size)
        self.interp = interp

    def changed(self, pixels: Pixels) -> Pixels:
        return resized(pixels, *self.size, self.interp)


class RandomCropAug(PixelAugmenter):
    """Cut out a part of `size` (width, height) at a random place: `random_crop`. **Source** MXNet `image.RandomCropAug`."""

    def __init__(self, size: Sequence[int], interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size = as_size("RandomCropAug", size)
        self.interp = interp

    def changed(self, pixels: Pixels) -> Pixels:
        return random_part(pixels, self.size, self.interp)[0]


class RandomSizedCropAug(PixelAugmenter):
    """Cut out a part of random place, area and ratio: `random_size_crop`. **Source** MXNet `image.RandomSizedCropAug`."""

    def __init__(self, size: Sequence[int], area: Any, ratio: Sequence[float], interp: int = 2, *, min_area: Any = None) -> None:
        super().__init__(size=size, area=area, ratio=ratio, interp=interp)
        self.size: Size = as_size("RandomSizedCropAug", size)
        self.area = as_range("RandomSizedCropAug", "area", renamed_area(area, min_area))
        self.ratio = as_range("RandomSizedCropAug", "ratio", ratio)
        self.interp = interp

    def changed(self, pixels: Pixels) -> Pixels:
        return random_sized_part(pixels, self.size, self.area, self.ratio, self.interp)[0]


class CenterCropAug(PixelAugmenter):
    """Cut out the middle, of `size` (width, height): `center_crop`. **Source** MXNet `image.CenterCropAug`."""

    def __init__(self, size: Sequence[int], interp: int = 2) -> None:
        super().__init__(size=size, interp=interp)
        self.size = as_size("CenterCropAug", size)
        self.interp = interp

    def changed(self, pixels: Pixels) -> Pixels:
        return central_part(pixels, self.size, self.interp)[0]


class HorizontalFlipAug(PixelAugmenter):
    """Mirror the image, left to right, with probability `p`. **Source** MXNet `image.HorizontalFlipAug`."""

    def __init__(self, p: float) -> None:
        super().__init__(p=p)
        self.p = as_probability("HorizontalFlipAug", "p", p)

    def changed(self, pixels: Pixels) -> Pixels:
        return pixels[:, ::-1] if random.random() < self.p else pixels


class CastAug(PixelAugmenter):
    """Convert the image to the dtype `typ`. **Source** MXNet `image.CastAug`."""

    def __init__(self, typ: Any = "float32") -> None:
        self.typ = as_dtype(typ)
        super().__init__(type=typ if isinstance(typ, str) else self.typ.name)

    def changed(self, pixels: Pixels) -> Pixels:
        return pixels.astype(self.typ)


def as_probability(name: str, what: str, value: Any) -> float:
    """`value` as a number from 0 to 1. Raises ArgumentError."""
    number = converted(name, what, "float", value)
    if not 0 <= number <= 1:
        raise ArgumentError(f"{name}: {what} is {shown(value)}; a probability, from 0 to 1, is wanted")
    return float(number)


def as_data_shape(name: str, data_shape: Any) -> tuple[int, int, int]:
    """The shape (C, H, W) of what goes into a batch. Raises ArgumentError."""
    lengths = converted(name, "data_shape", "tuple[int, ...]", data_shape)
    if len(lengths) != 3 or min(lengths) < 1:
        raise ImageError(f"{name}: data_shape is {shown(data_shape)}; (channels, height, width) is wanted, each at least 1")
    return lengths
