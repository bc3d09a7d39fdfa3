"""What happens to a decoded image before it is in a batch: resized, turned, padded, cropped, recoloured (Augmentation), and then written
into the batch, mirrored and normalized (Normalization).

The order of steps and their arithmetic are those of MXNet's default augmenter. Random numbers come from a generator that stands for the
image, so that what is drawn depends on the seed, the epoch and the image, and not on the thread that happens to decode it.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from ..base import ShapeError
from ..ops.resampling import AUTOMATIC, resample, resolved
from .options import require
from .recoloring import changed_hls, factored, lit
from .warping import warped

__all__ = ["Augmentation", "Normalization", "shorter_to"]

Pixels = np.ndarray[Any, Any]
Size = tuple[int, int]  # height and width

RANDOM_METHOD = 10  # of interpolation
METHODS = "choose 0 nearest, 1 bilinear, 2 cubic, 3 area, 4 Lanczos, 9 by the sizes or 10 at random"
HUGE = 1e10


@dataclasses.dataclass(frozen=True)
class Augmentation:
    """Options of the shape and the colours of an image. Those that begin with max_, min_, rand, or name a colour, are drawn anew for each
    image. All lengths are in pixels."""

    resize: int = -1  # the shorter side is made so long first; -1: leave it
    rand_crop: bool = False  # cut out at random, not from the middle
    random_resized_crop: bool = False  # cut out a part of random area and aspect, and resize it
    max_rotate_angle: int = 0  # degrees, in both directions
    rotate: int = -1  # degrees, the same for all images; takes the place of max_rotate_angle
    rotate_list: tuple[int, ...] = ()  # degrees, one of which is drawn; takes the place of both
    max_aspect_ratio: float = 0  # width by height: up to 1 + this, or up to this if min_aspect_ratio is given
    min_aspect_ratio: float | None = None
    max_shear_ratio: float = 0
    max_crop_size: int = -1  # cut out a square with sides between these two, and resize it
    min_crop_size: int = -1
    max_random_scale: float = 1
    min_random_scale: float = 1
    max_random_area: float = 1  # of random_resized_crop, as a part of the image
    min_random_area: float = 1
    max_img_size: float = HUGE  # after turning and scaling
    min_img_size: float = 0
    brightness: float = 0  # factors between 1 - this and 1 + this
    contrast: float = 0
    saturation: float = 0
    pca_noise: float = 0  # standard deviation along the principal directions of ImageNet's colours
    random_h: int = 0  # hue, 1 is 2 degrees
    random_s: int = 0  # saturation, of 255
    random_l: int = 0  # lightness, of 255
    fill_value: int = 255  # what is beyond the image
    inter_method: int = 1
    pad: int = 0  # so many pixels on each side

    def check(self, owner: str) -> None:
        """Raise an error for options that cannot be, or not together."""
        require(self.inter_method in (0, 1, 2, 3, 4, AUTOMATIC, RANDOM_METHOD), owner, "inter_method", self.inter_method, METHODS)
        require(0 <= self.fill_value <= 255, owner, "fill_value", self.fill_value, "a byte is wanted, 0 to 255")
        require(self.resize == -1 or self.resize > 0, owner, "resize", self.resize, "-1 or a length is wanted")
        require(self.pad >= 0, owner, "pad", self.pad, "0 or more pixels are wanted")
        low, high = self._aspects()
        for name, smaller, larger in (
            ("random_scale", self.min_random_scale, self.max_random_scale),
            ("random_area", self.min_random_area, self.max_random_area),
            ("crop_size", self.min_crop_size, self.max_crop_size),
            ("aspect_ratio", low, high),
        ):
            require(smaller <= larger, owner, f"min_{name}", smaller, f"it must not be more than the largest, {larger}")
        require(
            low > 0, owner, "max_aspect_ratio", self.max_aspect_ratio, "the smallest ratio of width to height must be more than 0"
        )
        require(self.min_random_scale > 0, owner, "min_random_scale", self.min_random_scale, "it must be more than 0")
        require(
            not (self.random_resized_crop and (self.rand_crop or self.max_crop_size != -1 or self._scales())),
            owner, "random_resized_crop", True,
            "it cannot be together with rand_crop, max_crop_size, min_crop_size, max_random_scale or min_random_scale",
        )  # fmt: skip
        require(
            self.inter_method != 0 or not self._is_affine(),
            owner,
            "inter_method",
            0,
            "an image that is turned or scaled needs 1 to 4",
        )

    def _aspects(self) -> tuple[float, float]:
        """The smallest and the largest ratio of width to height."""
        if self.min_aspect_ratio is not None:
            return self.min_aspect_ratio, self.max_aspect_ratio
        return 1 - self.max_aspect_ratio, 1 + self.max_aspect_ratio

    def _scales(self) -> bool:
        return self.max_random_scale != 1 or self.min_random_scale != 1

    def _is_affine(self) -> bool:
        """Whether the image is turned, sheared or scaled."""
        return (
            self.max_rotate_angle > 0
            or self.max_shear_ratio > 0
            or self.rotate > 0
            or bool(self.rotate_list)
            or self._scales()
            or (not self.random_resized_crop and self._aspects() != (1, 1))
            or self.max_img_size != HUGE
            or self.min_img_size != 0
        )

    def applied(self, pixels: Pixels, size: Size, draw: np.random.Generator, name: str) -> Pixels:
        """The image (H, W, C) as it goes into a batch, of this size. Raises ShapeError, with `name`, if it cannot."""
        if self.resize != -1:
            pixels = shorter_to(pixels, self.resize, self._method(draw))
        if self._is_affine():
            pixels = self._warped(pixels, draw)
        if self.pad:
            pixels = self._padded(pixels)
        part = None
        if self.random_resized_crop:
            part = self._random_part(pixels, size, draw)
        elif self.max_crop_size != -1 or self.min_crop_size != -1:
            part = self._random_square(pixels, size, draw, name)
        return self._recolored(self._cropped(pixels, size, draw) if part is None else part, draw)

    def _method(self, draw: np.random.Generator, old: Size = (0, 0), new: Size = (0, 0)) -> int:
        """The method of interpolation. Without sizes 9 stays, for `resample` to decide."""
        if self.inter_method == RANDOM_METHOD:
            return int(draw.integers(5))
        return resolved(self.inter_method, old, new) if old != new else self.inter_method

    # ---- shape

    def _warped(self, pixels: Pixels, draw: np.random.Generator) -> Pixels:
        single = np.float32
        shear = single(draw.random() * self.max_shear_ratio * 2 - self.max_shear_ratio)
        angle = int(draw.integers(-self.max_rotate_angle, self.max_rotate_angle + 1)) if self.rotate <= 0 else self.rotate
        if self.rotate_list:
            angle = self.rotate_list[int(draw.integers(len(self.rotate_list)))]
        cosine, sine = single(math.cos(angle / 180 * math.pi)), single(math.sin(angle / 180 * math.pi))
        scale = ratio = single(1)
        if not self.random_resized_crop:
            low, high = self._aspects()
            scale = single(draw.random() * (self.max_random_scale - self.min_random_scale) + self.min_random_scale)
            ratio = single(draw.random() * (high - low) + low)
        tall = single(2) * scale / (single(1) + ratio)
        wide = ratio * tall
        rows, columns = pixels.shape[:2]
        height, width = (single(max(self.min_img_size, min(self.max_img_size, scale * side))) for side in (rows, columns))
        matrix = np.array(
            [[tall * cosine - shear * sine * wide, tall * sine + shear * cosine * wide, 0], [-sine * wide, cosine * wide, 0]],
            single,
        )
        matrix[:, 2] = (np.array([width, height], single) - matrix[:, :2] @ np.array([columns, rows], single)) / 2
        new = max(int(height), 1), max(int(width), 1)
        method = max(self._method(draw, (rows, columns), new), 1)  # nearest, which may be drawn, is not among OpenCV's here
        return warped(pixels, matrix, *new, method, self.fill_value)

    def _padded(self, pixels: Pixels) -> Pixels:
        border = np.array([self.fill_value] * 3 + [0], np.uint8)[: pixels.shape[2]]  # opacity is filled with 0, as in MXNet
        height, width, channels = pixels.shape
        result = np.empty((height + 2 * self.pad, width + 2 * self.pad, channels), np.uint8)
        result[:] = border
        result[self.pad : -self.pad, self.pad : -self.pad] = pixels
        return result

    def _random_part(self, pixels: Pixels, size: Size, draw: np.random.Generator) -> Pixels | None:
        """A part of random area and aspect, resized; None if none was found that fits, or none is wanted."""
        low, high = self._aspects()
        if self.max_random_area == self.min_random_area == low == high == 1:
            return None
        rows, columns = pixels.shape[:2]
        for _ in range(10):
            area = rows * columns * draw.uniform(self.min_random_area, self.max_random_area)
            ratio = draw.uniform(low, high)
            height, width = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
            if draw.random() > 0.5:
                height, width = width, height
            if 0 < height <= rows and 0 < width <= columns:
                top, left = int(draw.integers(rows - height + 1)), int(draw.integers(columns - width + 1))
                part = pixels[top : top + height, left : left + width]
                return resample(part, *size, self._method(draw, (height, width), size))
        return None

    def _random_square(self, pixels: Pixels, size: Size, draw: np.random.Generator, name: str) -> Pixels:
        rows, columns = pixels.shape[:2]
        if min(rows, columns) < self.max_crop_size:
            raise ShapeError(
                f"{name}: the image has {rows} x {columns} pixels, which is less than max_crop_size={self.max_crop_size}"
            )
        side = int(draw.integers(max(self.min_crop_size, 1), self.max_crop_size + 1))
        part = self._cut(pixels, (side, side), draw)
        return resample(part, *size, self._method(draw, (side, side), size))

    def _cropped(self, pixels: Pixels, size: Size, draw: np.random.Generator) -> Pixels:
        """A part of the wanted size, of an image that is enlarged first if it is smaller."""
        method = self._method(draw, pixels.shape[:2], size)
        if pixels.shape[0] < size[0]:
            pixels = resample(pixels, size[0], _scaled(pixels.shape[1], size[0], pixels.shape[0]), method)
        if pixels.shape[1] < size[1]:
            pixels = resample(pixels, _scaled(pixels.shape[0], size[1], pixels.shape[1]), size[1], method)
        return self._cut(pixels, size, draw)

    def _cut(self, pixels: Pixels, size: Size, draw: np.random.Generator) -> Pixels:
        top, left = pixels.shape[0] - size[0], pixels.shape[1] - size[1]
        top, left = (int(draw.integers(top + 1)), int(draw.integers(left + 1))) if self.rand_crop else (top // 2, left // 2)
        return pixels[top : top + size[0], left : left + size[1]]

    # ---- colours

    def _recolored(self, pixels: Pixels, draw: np.random.Generator) -> Pixels:
        strengths = (self.brightness, self.contrast, self.saturation)
        if any(strength > 0 for strength in strengths):
            factors = [1 + draw.uniform(-strength, strength) for strength in strengths]
            for what in draw.permutation(3):
                pixels = factored(pixels, int(what), factors[what])
        ranges = (self.random_h, self.random_l, self.random_s)
        if any(ranges):
            # A sum of two numbers, so that small changes are more frequent
            changes = [int((draw.random() + 4 * draw.random()) / 5 * 2 * each - each) for each in ranges]
            pixels = changed_hls(pixels, *changes)
        return lit(pixels, draw.normal(0, self.pca_noise, 3)) if self.pca_noise > 0 else pixels


def _scaled(length: int, new: int, old: int) -> int:
    """`length` times `new` by `old`, as C++ computes it."""
    return int(np.float32(new) / np.float32(old) * np.float32(length))


def shorter_to(pixels: Pixels, length: int, method: int) -> Pixels:
    """The image with its shorter side `length` pixels long, and the same aspect."""
    height, width = pixels.shape[:2]
    new = (length * height // width, length) if height > width else (length, length * width // height)
    return resample(pixels, new[0], new[1], method)


@dataclasses.dataclass(frozen=True)
class Normalization:
    """Options of the numbers in a batch: `(pixel - mean) * contrast * scale / std + illumination * scale / std`, for each channel."""

    mirror: bool = False  # left and right exchanged
    rand_mirror: bool = False  # ... for every other image, at random
    mean_img: str = ""  # a file with the mean image; it is made if it is not there
    mean_r: float = 0
    mean_g: float = 0
    mean_b: float = 0
    mean_a: float = 0
    std_r: float = 1
    std_g: float = 1
    std_b: float = 1
    std_a: float = 1
    scale: float = 1
    max_random_contrast: float = 0  # around 1
    max_random_illumination: float = 0  # around 0

    def check(self, owner: str) -> None:
        """Raise an error for options that cannot be."""
        for name in ("std_r", "std_g", "std_b", "std_a"):
            require(getattr(self, name) != 0, owner, name, 0, "a number to divide by is wanted, 1 to leave the channel as it is")

    def write(self, pixels: Pixels, into: Pixels, draw: np.random.Generator, mean: Pixels | None) -> None:
        """Write the image (H, W, C) into a batch, as (C, H, W) of its dtype; `mean`: the mean image (C, H, W), if there is one."""
        flip = (self.rand_mirror and bool(draw.integers(2))) or self.mirror
        target = into[:, :, ::-1] if flip else into
        planes = np.ascontiguousarray(pixels.transpose(2, 0, 1))
        if into.dtype == np.uint8:
            target[:] = planes
        elif into.dtype == np.int8:
            self._write_signed(planes, target, mean)
        else:
            self._write_numbers(planes, target, draw, mean)

    def _means(self) -> tuple[float, ...]:
        return self.mean_r, self.mean_g, self.mean_b, self.mean_a

    def _write_signed(self, planes: Pixels, target: Pixels, mean: Pixels | None) -> None:
        for channel, plane in enumerate(planes):
            # C++ rounds halves away from zero
            center = self._means()[channel] if mean is None else mean[channel]
            whole = np.trunc(center + np.copysign(0.5, center)).astype(np.int32)
            target[channel] = np.clip(plane.astype(np.int32) - whole, -128, 127)

    def _write_numbers(self, planes: Pixels, target: Pixels, draw: np.random.Generator, mean: Pixels | None) -> None:
        single = np.float32
        most = single(self.max_random_contrast), single(self.max_random_illumination)
        first, second = (single(draw.random()) * each * single(2) - each for each in most)
        contrast, light = (first + single(1)) * single(self.scale), second * single(self.scale)
        for channel, (plane, std) in enumerate(zip(planes, (self.std_r, self.std_g, self.std_b, self.std_a))):
            center = single(self._means()[channel]) if mean is None else mean[channel]
            numbers = np.subtract(plane, center, out=target[channel])
            factor, shift = contrast / single(std), light / single(std)
            if factor != 1:
                numbers *= factor
            if shift != 0:
                numbers += shift
