"""`nd.image`: functions of images, which MXNet keeps apart. Files of images are read in `mx.image`."""

from ..ops.image import (
    crop,
    flip_left_right,
    flip_top_bottom,
    normalize,
    random_flip_left_right,
    random_flip_top_bottom,
    resize,
    to_tensor,
)
from ..ops.image_color import (
    adjust_lighting,
    random_brightness,
    random_color_jitter,
    random_contrast,
    random_hue,
    random_lighting,
    random_saturation,
)

__all__ = [
    "adjust_lighting", "crop", "flip_left_right", "flip_top_bottom", "normalize", "random_brightness", "random_color_jitter",
    "random_contrast", "random_flip_left_right", "random_flip_top_bottom", "random_hue", "random_lighting",
    "random_saturation", "resize", "to_tensor",
]  # fmt: skip
