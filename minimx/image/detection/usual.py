"""CreateDetAugmenter: the usual list of augmenters for detection, from a few words."""

from __future__ import annotations

from typing import Any

from ..arrays import ImageError
from ..augment import CastAug, ForceResizeAug, ResizeAug, as_data_shape
from ..usual import colour_augmenters
from .augment import DetAugmenter, DetBorrowAug, DetHorizontalFlipAug, DetRandomSelectAug
from .crop import DetRandomCropAug
from .pad import DetRandomPadAug

__all__ = ["CreateDetAugmenter", "CreateMultiRandCropAugmenter"]


def CreateMultiRandCropAugmenter(
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = (0.75, 1.33),
    area_range: Any = (0.05, 1.0),
    min_eject_coverage: Any = 0.3,
    max_attempts: Any = 50,
    skip_prob: float = 0,
) -> DetRandomSelectAug:
    """Several DetRandomCropAug, of which one is chosen at random each time.

    **Args** those of DetRandomCropAug; each may be a list, with a value for each augmenter, and what is no list goes for all of them.
    `skip_prob`: the probability of choosing none. **Raises** ArgumentError for lists of different lengths.
    **Source** MXNet `image.CreateMultiRandCropAugmenter`.

    >>> len(CreateMultiRandCropAugmenter(min_object_covered=[0.1, 0.5, 0.9]).aug_list)
    3
    """
    arguments = {
        "min_object_covered": min_object_covered,
        "aspect_ratio_range": aspect_ratio_range,
        "area_range": area_range,
        "min_eject_coverage": min_eject_coverage,
        "max_attempts": max_attempts,
    }
    lists = {name: value if isinstance(value, list) else [value] for name, value in arguments.items()}
    count = max(len(values) for values in lists.values())
    for name, values in lists.items():
        if len(values) not in (1, count):
            raise ImageError(
                f"CreateMultiRandCropAugmenter: {name} has {len(values)} values, another argument {count}; give one or as many"
            )
    augmenters: list[DetAugmenter] = [
        DetRandomCropAug(**{name: values[number % len(values)] for name, values in lists.items()}) for number in range(count)
    ]
    return DetRandomSelectAug(augmenters, skip_prob=skip_prob)


def CreateDetAugmenter(
    data_shape: tuple[int, int, int],
    resize: int = 0,
    rand_crop: float = 0,
    rand_pad: float = 0,
    rand_gray: float = 0,
    rand_mirror: bool = False,
    mean: Any = None,
    std: Any = None,
    brightness: float = 0,
    contrast: float = 0,
    saturation: float = 0,
    pca_noise: float = 0,
    hue: float = 0,
    inter_method: int = 2,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = (0.75, 1.33),
    area_range: tuple[float, float] = (0.05, 3.0),
    min_eject_coverage: Any = 0.3,
    max_attempts: int = 50,
    pad_val: Any = (127, 127, 127),
) -> list[DetAugmenter]:
    """A list of augmenters that bring an image and its boxes to `data_shape` (C, H, W), as float32 (H, W, C).

    **Args** `resize`, `mean`, `std`, `brightness`, `contrast`, `saturation`, `hue`, `pca_noise`, `rand_gray`, `inter_method`: as of
    `CreateAugmenter`. `rand_crop`, `rand_pad`: probabilities of cutting out a part, and of a larger canvas. `rand_mirror`: mirror every
    second image. The others are those of DetRandomCropAug (which may be lists, for several of them) and DetRandomPadAug, whose canvas has
    at most the upper end of `area_range`. **Raises** ArgumentError. **Source** MXNet `image.CreateDetAugmenter`.
    """
    _, height, width = as_data_shape("CreateDetAugmenter", data_shape)
    augmenters: list[DetAugmenter] = []
    if resize > 0:
        augmenters.append(DetBorrowAug(ResizeAug(resize, inter_method)))
    if rand_crop > 0:
        augmenters.append(
            CreateMultiRandCropAugmenter(
                min_object_covered, aspect_ratio_range, area_range, min_eject_coverage, max_attempts, skip_prob=1 - rand_crop
            )
        )
    if rand_mirror:
        augmenters.append(DetHorizontalFlipAug(0.5))
    if rand_pad > 0:  # late, when the image is as small as it becomes
        canvas = DetRandomPadAug(aspect_ratio_range, (1.0, area_range[1]), max_attempts, pad_val)
        augmenters.append(DetRandomSelectAug([canvas], 1 - rand_pad))
    augmenters.append(DetBorrowAug(ForceResizeAug((width, height), inter_method)))
    augmenters.append(DetBorrowAug(CastAug()))
    colours = colour_augmenters("CreateDetAugmenter", mean, std, brightness, contrast, saturation, hue, pca_noise, rand_gray)
    return augmenters + [DetBorrowAug(each) for each in colours]
