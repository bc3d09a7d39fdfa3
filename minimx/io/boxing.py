"""Objects in an image, and what happens to both together: mirrored, padded, cropped and resized, with boxes that stay on their objects.

The labels of an image are numbers in a row: how long the header is, how long the description of an object is, perhaps more for the header,
and then for each object its class, the left, upper, right and lower edge of its box, as parts of width and height, and perhaps more. Steps
and their order are those of MXNet's default augmenter for detection.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from ..base import FileFormatError
from ..ops.resampling import AUTOMATIC, resample, resolved
from .augmenting import METHODS, RANDOM_METHOD, shorter_to
from .options import require
from .recoloring import changed_hls, factored

__all__ = ["BoxAugmentation", "BoxNormalization", "Objects"]

Pixels = np.ndarray[Any, Any]
Numbers = np.ndarray[Any, np.dtype[np.float32]]

LEFT, TOP, RIGHT, BOTTOM = 1, 2, 3, 4
LEAST_PAD = 1.05  # what is hardly larger is not padded at all


class Objects:
    """The labels of an image. **Args** `labels`: the numbers; `name`: the record, for errors. **Raises** FileFormatError."""

    def __init__(self, labels: Numbers, name: str) -> None:
        header = int(labels[0]) if len(labels) >= 7 else 0
        width = int(labels[1]) if len(labels) >= 7 else 0
        if header < 2 or width < 5 or header > len(labels) or (len(labels) - header) % width:
            raise FileFormatError(
                f"{name}: {len(labels)} labels that begin with {labels[:2].tolist()} describe no objects: the length of a header, 2 or "
                "more, that of an object's description, 5 or more, the rest of the header, and the descriptions are wanted"
            )
        self.header = labels[:header]
        self.rows = labels[header:].reshape(-1, width)
        self.rows = self.rows[(self.rows[:, RIGHT] > self.rows[:, LEFT]) & (self.rows[:, BOTTOM] > self.rows[:, TOP])]

    def labels(self) -> Numbers:
        """The numbers as they stand in a record."""
        return np.concatenate([self.header, self.rows.ravel()])

    def mirror(self) -> None:
        self.rows = self.rows.copy()
        self.rows[:, [LEFT, RIGHT]] = 1 - self.rows[:, [RIGHT, LEFT]]

    def project(self, left: float, top: float, width: float, height: float) -> None:
        """Say all edges as parts of another rectangle, and cut off what lies beyond it."""
        self.rows = self.rows.copy()
        origin, size = np.array([left, top], np.float32), np.array([width, height], np.float32)
        self.rows[:, LEFT : TOP + 1] = np.maximum((self.rows[:, LEFT : TOP + 1] - origin) / size, 0)
        self.rows[:, RIGHT : BOTTOM + 1] = np.minimum((self.rows[:, RIGHT : BOTTOM + 1] - origin) / size, 1)

    def common_area(self, left: float, top: float, width: float, height: float) -> Numbers:
        """How much of a rectangle each object covers."""
        across = np.minimum(self.rows[:, RIGHT], left + width) - np.maximum(self.rows[:, LEFT], left)
        down = np.minimum(self.rows[:, BOTTOM], top + height) - np.maximum(self.rows[:, TOP], top)
        return np.maximum(across, 0) * np.maximum(down, 0)

    def areas(self) -> Numbers:
        return (self.rows[:, RIGHT] - self.rows[:, LEFT]) * (self.rows[:, BOTTOM] - self.rows[:, TOP])


@dataclasses.dataclass(frozen=True)
class BoxAugmentation:
    """Options of what happens to an image and its objects. Of those that say probabilities, 0 switches the step off. Those of cropping are
    one number, or one for each of `num_crop_sampler` ways to crop."""

    resize: int = -1  # the shorter side is made so long first, in pixels; -1: leave it
    rand_crop_prob: float = 0
    min_crop_scales: tuple[float, ...] = (0.0,)  # side of the part, of the image's
    max_crop_scales: tuple[float, ...] = (1.0,)
    min_crop_aspect_ratios: tuple[float, ...] = (1.0,)  # width by height
    max_crop_aspect_ratios: tuple[float, ...] = (1.0,)
    min_crop_overlaps: tuple[float, ...] = (0.0,)  # what an object and the part share, by what they cover together
    max_crop_overlaps: tuple[float, ...] = (1.0,)
    min_crop_sample_coverages: tuple[float, ...] = (0.0,)  # ... by the part's area
    max_crop_sample_coverages: tuple[float, ...] = (1.0,)
    min_crop_object_coverages: tuple[float, ...] = (0.0,)  # ... by the object's area
    max_crop_object_coverages: tuple[float, ...] = (1.0,)
    num_crop_sampler: int = 1
    crop_emit_mode: str = "center"  # keep objects whose center is in the part, or, "overlap", of which enough is
    emit_overlap_thresh: float = 0.3  # ... more than this part of its area
    max_crop_trials: tuple[int, ...] = (25,)
    rand_pad_prob: float = 0
    max_pad_scale: float = 1  # side of what is padded, by the image's
    max_random_hue: int = 0  # 1 is 2 degrees
    random_hue_prob: float = 0
    max_random_saturation: int = 0  # of 255
    random_saturation_prob: float = 0
    max_random_illumination: int = 0  # of 255
    random_illumination_prob: float = 0
    max_random_contrast: float = 0  # all colours times a factor between 1 - this and 1 + this
    random_contrast_prob: float = 0
    rand_mirror_prob: float = 0
    fill_value: int = 127  # what is beyond the image
    inter_method: int = 1
    resize_mode: str = "force"  # to the wanted size; "fit": as large as fits; "shrink": only if it is larger

    def check(self, owner: str) -> None:
        """Raise an error for options that cannot be."""
        require(self.inter_method in (0, 1, 2, 3, 4, AUTOMATIC, RANDOM_METHOD), owner, "inter_method", self.inter_method, METHODS)
        require(0 <= self.fill_value <= 255, owner, "fill_value", self.fill_value, "a byte is wanted, 0 to 255")
        require(self.resize == -1 or self.resize > 0, owner, "resize", self.resize, "-1 or a length is wanted")
        require(
            self.crop_emit_mode in ("center", "overlap"),
            owner,
            "crop_emit_mode",
            self.crop_emit_mode,
            "choose 'center' or 'overlap'",
        )
        modes = ("force", "shrink", "fit")
        require(self.resize_mode in modes, owner, "resize_mode", self.resize_mode, "choose 'force', 'shrink' or 'fit'")
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, tuple):
                many = len(value) in (1, max(self.num_crop_sampler, 1))
                require(many, owner, field.name, value, f"one number is wanted, or num_crop_sampler={self.num_crop_sampler}")
        for number in range(self.num_crop_sampler):
            for name in ("scales", "aspect_ratios", "overlaps", "sample_coverages", "object_coverages"):
                low, high = (_of(getattr(self, f"{which}_crop_{name}"), number) for which in ("min", "max"))
                require(
                    0 <= low <= high,
                    owner,
                    f"min_crop_{name}",
                    low,
                    f"it must be 0 or more, and not more than the largest, {high}",
                )
            top = _of(self.max_crop_scales, number)
            require(
                _of(self.min_crop_scales, number) < top <= 1,
                owner,
                "max_crop_scales",
                top,
                "more than the smallest is wanted, at most 1",
            )

    def applied(self, pixels: Pixels, objects: Objects, size: tuple[int, int], draw: np.random.Generator) -> Pixels:
        """The image as it goes into a batch, not larger than `size`; `objects` follow it."""
        if self.resize != -1:
            pixels = shorter_to(pixels, self.resize, self._method(draw))
        pixels = self._recolored(pixels, draw)
        if self.rand_mirror_prob > 0 and draw.random() < self.rand_mirror_prob:
            objects.mirror()
            pixels = pixels[:, ::-1]
        if self.rand_pad_prob > 0 and self.max_pad_scale > 1 and draw.random() < self.rand_pad_prob:
            pixels = self._padded(pixels, objects, draw)
        if self.rand_crop_prob > 0 and self.num_crop_sampler > 0 and draw.random() < self.rand_crop_prob:
            pixels = self._cropped(pixels, objects, draw)
        return self._resized(np.ascontiguousarray(pixels), size, draw)

    def _method(self, draw: np.random.Generator) -> int:
        return int(draw.integers(5)) if self.inter_method == RANDOM_METHOD else self.inter_method

    def _recolored(self, pixels: Pixels, draw: np.random.Generator) -> Pixels:
        probabilities = (
            self.random_hue_prob,
            self.random_illumination_prob,
            self.random_saturation_prob,
            self.random_contrast_prob,
        )
        if not any(probability > 0 for probability in probabilities):
            return pixels
        most = (self.max_random_hue, self.max_random_illumination, self.max_random_saturation, self.max_random_contrast)
        drawn = [draw.uniform(-1, 1) * each for each in most]
        changes = [each if draw.random() < probability else 0 for each, probability in zip(drawn, probabilities)]
        whole = [int(each) for each in changes[:3]]
        pixels = changed_hls(pixels, *whole) if any(whole) else pixels
        return factored(pixels, 0, 1 + changes[3]) if abs(changes[3]) > 1e-3 else pixels

    def _padded(self, pixels: Pixels, objects: Objects, draw: np.random.Generator) -> Pixels:
        """The image somewhere in a larger one."""
        scale = draw.uniform(1, self.max_pad_scale)
        if scale < LEAST_PAD:
            return pixels
        left, top = draw.uniform(0, scale - 1), draw.uniform(0, scale - 1)
        objects.project(-left, -top, scale, scale)
        rows, columns, channels = pixels.shape
        above, before = int(top * rows), int(left * columns)
        below, behind = int((scale - top - 1) * rows), int((scale - left - 1) * columns)
        result = np.full((above + rows + below, before + columns + behind, channels), self.fill_value, np.uint8)
        result[above : above + rows, before : before + columns] = pixels
        return result

    # ---- cropping

    def _cropped(self, pixels: Pixels, objects: Objects, draw: np.random.Generator) -> Pixels:
        """A part of the image that one of the samplers finds, or the image itself."""
        rows, columns = pixels.shape[:2]
        for number in draw.permutation(self.num_crop_sampler):
            for _ in range(_of(self.max_crop_trials, number)):
                box = self._box(number, columns / rows, draw)
                if self._accepted(number, box, objects):
                    left, top = int(box[0] * columns), int(box[1] * rows)
                    width, height = max(int(box[2] * columns), 1), max(int(box[3] * rows), 1)
                    return pixels[top : top + height, left : left + width]
        return pixels

    def _box(self, number: int, aspect: float, draw: np.random.Generator) -> tuple[float, float, float, float]:
        """Left, top, width and height of a part, of an image with this ratio of width to height."""
        scale = draw.uniform(_of(self.min_crop_scales, number), _of(self.max_crop_scales, number)) + 1e-12
        low = max(_of(self.min_crop_aspect_ratios, number) / aspect, scale * scale)
        high = min(_of(self.max_crop_aspect_ratios, number) / aspect, 1 / (scale * scale))
        ratio = math.sqrt(draw.uniform(min(low, high), max(low, high)))
        width, height = min(1.0, scale * ratio), min(1.0, scale / ratio)
        return draw.uniform(0, 1 - width), draw.uniform(0, 1 - height), width, height

    def _accepted(self, number: int, box: tuple[float, float, float, float], objects: Objects) -> bool:
        """Whether the part holds an object as it should; then the objects are projected into it."""
        if not len(objects.rows):
            return True
        common, own, part = objects.common_area(*box), objects.areas(), box[2] * box[3]
        good = np.ones(len(common), bool)
        for name, share in (
            ("overlaps", common / (own + part - common)), ("sample_coverages", common / part), ("object_coverages", common / own),
        ):  # fmt: skip
            low, high = (_of(getattr(self, f"{which}_crop_{name}"), number) for which in ("min", "max"))
            good &= (share >= low) & (share <= high)
        if self.crop_emit_mode == "center":
            x, y = ((objects.rows[:, one] + objects.rows[:, other]) / 2 for one, other in ((LEFT, RIGHT), (TOP, BOTTOM)))
            kept = (box[0] <= x) & (x < box[0] + box[2]) & (box[1] <= y) & (y < box[1] + box[3])
        else:
            kept = common / own > self.emit_overlap_thresh
        if not good.any() or not kept.any():
            return False
        objects.rows = objects.rows[kept]
        objects.project(*box)
        return True

    def _resized(self, pixels: Pixels, size: tuple[int, int], draw: np.random.Generator) -> Pixels:
        rows, columns = pixels.shape[:2]
        ratio = min(np.float32(size[0]) / np.float32(rows), np.float32(size[1]) / np.float32(columns))
        if self.resize_mode == "shrink" and rows <= size[0] and columns <= size[1]:
            return pixels
        fitted = max(int(ratio * np.float32(rows)), 1), max(int(ratio * np.float32(columns)), 1)
        new = size if self.resize_mode == "force" else fitted
        method = self._method(draw)
        return resample(pixels, *new, resolved(method, (rows, columns), new))


@dataclasses.dataclass(frozen=True)
class BoxNormalization:
    """Options of the numbers in a batch: `(pixel - mean) / std * scale`, for each channel; std 0 divides by nothing."""

    mean_img: str = ""  # a file with the mean image, which counts if no mean is given here; it is made if it is not there
    mean_r: float = 0
    mean_g: float = 0
    mean_b: float = 0
    mean_a: float = 0
    std_r: float = 0
    std_g: float = 0
    std_b: float = 0
    std_a: float = 0
    scale: float = 1

    def write(self, pixels: Pixels, into: Pixels, mean: Pixels | None) -> None:
        """Write the image (H, W, C) into a batch, as (C, H, W); `mean`: the mean image (C, H, W), if there is one."""
        means = (self.mean_r, self.mean_g, self.mean_b, self.mean_a)
        own = any(each > 0 for each in means)
        for channel, (center, std) in enumerate(zip(means, (self.std_r, self.std_g, self.std_b, self.std_a))):
            if channel < len(into):
                values = pixels[:, :, channel].astype(np.float32)
                if own or mean is not None:
                    values -= np.float32(center) if own or mean is None else mean[channel, : values.shape[0], : values.shape[1]]
                if std > 0:
                    values /= np.float32(std)
                into[channel] = values * np.float32(self.scale)


def _of(values: tuple[Any, ...], number: int) -> Any:
    """What the sampler of this number has of an option."""
    return values[number] if len(values) > 1 else values[0]
