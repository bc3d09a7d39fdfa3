"""CreateAugmenter: the usual list of augmenters, from a few words."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base import shown
from ..nd import array
from .arrays import ImageError
from .augment import (
    Augmenter,
    CastAug,
    CenterCropAug,
    HorizontalFlipAug,
    RandomCropAug,
    RandomSizedCropAug,
    ResizeAug,
    as_data_shape,
)
from .color import ColorJitterAug, ColorNormalizeAug, HueJitterAug, LightingAug, RandomGrayAug

__all__ = ["CreateAugmenter"]

# Of the images of ImageNet: mean and standard deviation of red, green and blue; and their principal axes.
MEAN = np.array([123.68, 116.28, 103.53])
STD = np.array([58.395, 57.12, 57.375])
EIGENVALUES = np.array([55.46, 4.794, 1.148])
EIGENVECTORS = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])


def CreateAugmenter(
    data_shape: tuple[int, int, int],
    resize: int = 0,
    rand_crop: bool = False,
    rand_resize: bool = False,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    hue: float = 0,
    pca_noise: float = 0,
    rand_gray: float = 0,
    inter_method: int = 2,
) -> list[Augmenter]:
    """A list of augmenters that bring an image to `data_shape` (C, H, W), as float32 (H, W, C).

    **Args** `resize`: first make the shorter side so long. `rand_crop`: cut out a part at a random place, else the middle; `rand_resize`:
    of random area and ratio too. `rand_mirror`: mirror every second image. `mean`, `std`: for each colour, or True for ImageNet's.
    `brightness`, `contrast`, `saturation`, `hue`: how far to change them at random, from 0 to 1. `pca_noise`: standard deviation of a
    colour that is added. `rand_gray`: probability of becoming grey. `inter_method`: as `interp` of `imresize`. **Raises** ArgumentError.
    **Source** MXNet `image.CreateAugmenter`.

    >>> [type(each).__name__ for each in CreateAugmenter((3, 224, 224), resize=256, mean=True)]
    ['ResizeAug', 'CenterCropAug', 'CastAug', 'ColorNormalizeAug']
    """
    _, height, width = as_data_shape("CreateAugmenter", data_shape)
    augmenters: list[Augmenter] = [ResizeAug(resize, inter_method)] if resize > 0 else []
    if rand_resize:
        if not rand_crop:
            raise ImageError("CreateAugmenter: rand_resize is a kind of random crop; give rand_crop=True as well")
        augmenters.append(RandomSizedCropAug((width, height), 0.08, (3.0 / 4.0, 4.0 / 3.0), inter_method))
    else:
        augmenters.append((RandomCropAug if rand_crop else CenterCropAug)((width, height), inter_method))
    if rand_mirror:
        augmenters.append(HorizontalFlipAug(0.5))
    augmenters.append(CastAug())
    mean, std = (
        array(usual) if given is True else given for given, usual in ((mean, MEAN), (std, STD))
    )  # float32, as `dumps` shows
    return augmenters + colour_augmenters(
        "CreateAugmenter", mean, std, brightness, contrast, saturation, hue, pca_noise, rand_gray
    )


def colour_augmenters(
    name: str,
    mean: Any,
    std: Any,
    brightness: float,
    contrast: float,
    saturation: float,
    hue: float,
    pca_noise: float,
    rand_gray: float,
) -> list[Augmenter]:
    """The augmenters of colours, for images of float32."""
    augmenters: list[Augmenter] = []
    if brightness or contrast or saturation:
        augmenters.append(ColorJitterAug(brightness, contrast, saturation))
    if hue:
        augmenters.append(HueJitterAug(hue))
    if pca_noise > 0:
        augmenters.append(LightingAug(pca_noise, EIGENVALUES, EIGENVECTORS))
    if rand_gray > 0:
        augmenters.append(RandomGrayAug(rand_gray))
    mean, std = colours(name, "mean", mean, MEAN), colours(name, "std", std, STD)
    if mean is not None or std is not None:
        augmenters.append(ColorNormalizeAug(mean, std))
    return augmenters


def colours(name: str, what: str, value: Any, usual: Any) -> Any:
    """A number for each colour: `value`, or `usual` if that is True. Raises ImageError."""
    if value is True:
        return usual
    if value is None or value is False:
        return None
    shape = getattr(value, "shape", None)
    if shape not in ((1,), (3,)):
        given = shown(value) + (f" of shape {shape}" if shape else "")
        raise ImageError(f"{name}: {what} must be True, or an array of 3 numbers, or of 1, got {given}")
    return value
