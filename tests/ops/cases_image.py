"""Rows of ops/image.py and image_color.py. Images are drawn with the values that files have, 0 to 255."""

from __future__ import annotations

from typing import Any

import numpy as np

from minimx.base import ArgumentError, DTypeError, ShapeError
from minimx.ops import image, image_color

from .harness import Bad, Case, integers, normal, uniform

GREY = np.array([0.299, 0.587, 0.114])
SINGLE_WEIGHTS = {"float64": 1e-6}  # OpenCV's weights are float32 for every image


def bilinear(x: np.ndarray, height: int, width: int) -> np.ndarray:
    """(H, W, C) in another size, by straight lines between the centres of pixels."""

    def along(x: np.ndarray, axis: int, new: int) -> np.ndarray:
        old = x.shape[axis]
        places = (np.arange(new) + 0.5) * old / new - 0.5
        return np.apply_along_axis(lambda line: np.interp(places, np.arange(old), line), axis, x)

    return along(along(x, 0, height), 1, width)


def turned(x: np.ndarray, turn: float) -> np.ndarray:
    """Hues moved through Python's own conversion of colours, pixel by pixel."""
    import colorsys

    def pixel(rgb: np.ndarray) -> Any:
        hue, lightness, saturation = colorsys.rgb_to_hls(*(rgb / 255))
        return np.array(colorsys.hls_to_rgb((hue + turn) % 1, lightness, saturation)) * 255

    return np.apply_along_axis(pixel, 2, x)


GEOMETRY: list[Case] = [
    Case("_image_to_tensor", lambda x: image.to_tensor(x), (uniform(0, 255, 4, 5, 3),), lambda x: x.transpose(2, 0, 1) / 255,
         dtypes=("float32",), label="image"),
    Case("_image_to_tensor", lambda x: image.to_tensor(x.astype("uint8")), (integers(0, 256, 2, 3, 4, 1),),
         lambda x: x.transpose(0, 3, 1, 2) / 255, False,
         dtypes=("float32",), label="batch"),
    Case("_image_to_tensor", lambda x: image.to_tensor(x), (integers(0, 9, 0, 3, 4, 3),), lambda x: np.zeros((0, 3, 3, 4)), False,
         label="empty", bad=(
        Bad(lambda nd: nd.image.to_tensor(nd.ones((2, 3))), ShapeError,
            r"data needs 3 or 4 axes \(batch, height, width, channels\), got \(2, 3\)"),
    )),
    Case("_image_normalize", lambda x: image.normalize(x, 0.5, 0.25), (normal(3, 4, 5),), lambda x: (x - 0.5) / 0.25,
         label="numbers"),
    Case("_image_normalize", lambda x: image.normalize(x, (0.1, 0.2, 0.3), [1, 2, 4]), (normal(2, 3, 2, 2),),
         lambda x: (x - np.array([0.1, 0.2, 0.3]).reshape(3, 1, 1)) / np.array([1, 2, 4]).reshape(3, 1, 1), label="channels"),
    Case("_image_normalize", lambda x: image.normalize(x), (normal(1, 2, 2),), lambda x: x, label="defaults", bad=(
        Bad(lambda nd: nd.image.normalize(nd.ones((4, 4, 3))), ShapeError, r"wants 1 or 3 channels on axis 0; to_tensor makes"),
        Bad(lambda nd: nd.image.normalize(nd.ones((3, 4, 4)), (1, 2)), ShapeError, r"mean has 2 values, data .* needs 1 or 3"),
        Bad(lambda nd: nd.image.normalize(nd.ones((1, 4, 4)), 0, (1, 2, 3)), ShapeError, r"std has 3 values, data .* needs 1 or 1"),
        Bad(lambda nd: nd.image.normalize(nd.ones((3, 4))), ShapeError, r"needs 3 or 4 axes"),
        Bad(lambda nd: nd.image.normalize(nd.ones((3, 4, 4), dtype="uint8")), DTypeError, r"data is uint8, .* call to_tensor first"),
        Bad(lambda nd: nd.image.normalize(nd.ones((3, 4, 4)), "red"), ArgumentError, r"mean must be a number or a tuple of numbers"),
    )),
    Case("_image_crop", lambda x: image.crop(x, 1, 2, 3, 2), (normal(5, 4, 3),), lambda x: x[2:4, 1:4], label="image"),
    Case("_image_crop", lambda x: image.crop(x, x=0, y=1, width=2, height=1), (normal(2, 2, 2, 5),), lambda x: x[:, 1:, :2],
         label="batch", bad=(
        Bad(lambda nd: nd.image.crop(nd.ones((4, 4, 3)), 2, 0, 3, 1), ArgumentError, r"x=2 and width=3 .* whose width is 4"),
        Bad(lambda nd: nd.image.crop(nd.ones((4, 4, 3)), 0, -1, 3, 1), ArgumentError, r"y=-1 and height=1 .* whose height is 4"),
        Bad(lambda nd: nd.image.crop(nd.ones((4, 4, 3)), 0, 0, 0, 1), ArgumentError, r"x=0 and width=0 must select a part"),
        Bad(lambda nd: nd.image.crop(nd.ones((4, 4)), 0, 0, 1, 1), ShapeError, r"needs 3 or 4 axes"),
    )),
    Case("_image_resize", lambda x: image.resize(x, (7, 5)), (normal(4, 3, 2),), lambda x: bilinear(x, 5, 7), False,
         rtol=SINGLE_WEIGHTS, label="larger"),
    Case("_image_resize", lambda x: image.resize(x, 2), (normal(2, 5, 7, 1),), lambda x: np.stack([bilinear(y, 2, 2) for y in x]),
         False, label="batch"),
    Case("_image_resize", lambda x: image.resize(x, 4, keep_ratio=True), (normal(5, 8, 3),), lambda x: bilinear(x, 4, 6), False,
         rtol=SINGLE_WEIGHTS, label="shorter"),
    Case("_image_resize", lambda x: image.resize(x, (4, 6), interp=0), (normal(2, 2, 3),),
         lambda x: x.repeat(3, 0).repeat(2, 1), False, label="nearest"),
    Case("_image_resize", lambda x: image.resize(x, (2, 1), interp=3), (normal(3, 4, 2),),
         lambda x: x.reshape(1, 3, 2, 2, 2).mean(axis=(1, 3)), False, label="area", bad=(
        Bad(lambda nd: nd.image.resize(nd.ones((4, 4, 3)), ()), ArgumentError, r"size is \(\), wants an int or \(width, height\)"),
        Bad(lambda nd: nd.image.resize(nd.ones((4, 4, 3)), (2, 0)), ArgumentError, r"size is \(2, 0\), wants .* at least 1"),
        Bad(lambda nd: nd.image.resize(nd.ones((4, 4, 3)), 10**6), ArgumentError, r"1000000 x 1000000 pixels .* from 1 to 32767"),
        Bad(lambda nd: nd.image.resize(nd.ones((4, 4, 3)), 2, interp=7), ArgumentError, r"interp is 7; choose one of 0 nearest"),
        Bad(lambda nd: nd.image.resize(nd.array(np.ones((0, 4, 3))), 2), ShapeError, r"not empty"),
        Bad(lambda nd: nd.image.resize(nd.ones((4, 4)), 2), ShapeError, r"needs 3 or 4 axes"),
    )),
    Case("_cvimresize", lambda x: image.imresize(x, 3, 6), (normal(4, 5, 3),), lambda x: bilinear(x, 6, 3), False,
         rtol=SINGLE_WEIGHTS, bad=(
        Bad(lambda nd: image.imresize(nd.ones((4, 4, 3)), 0, 3), ArgumentError, r"3 x 0 pixels were asked for"),
    )),
    Case("_image_flip_left_right", lambda x: image.flip_left_right(x), (normal(2, 3, 3),), lambda x: x[:, ::-1], label="image"),
    Case("_image_flip_left_right", lambda x: image.flip_left_right(x), (normal(2, 2, 3, 1),), lambda x: x[:, :, ::-1],
         label="batch", bad=(
        Bad(lambda nd: nd.image.flip_left_right(nd.ones((2, 3))), ShapeError, r"needs 3 or 4 axes"),
    )),
    Case("_image_flip_top_bottom", lambda x: image.flip_top_bottom(x), (normal(3, 2, 4),), lambda x: x[::-1], label="image"),
    Case("_image_flip_top_bottom", lambda x: image.flip_top_bottom(x), (integers(0, 256, 2, 2, 3, 1),), lambda x: x[:, ::-1],
         label="batch"),
    Case("_image_random_flip_left_right", lambda x: image.random_flip_left_right(x), (normal(3, 1, 3),), lambda x: x, False, bad=(
        Bad(lambda nd: nd.image.random_flip_left_right(nd.ones((2, 3, 4, 1))), ShapeError, r"needs 3 axes \(height, width"),
    )),
    Case("_image_random_flip_top_bottom", lambda x: image.random_flip_top_bottom(x), (normal(1, 3, 3),), lambda x: x, False),
    Case("_cvcopyMakeBorder", lambda x: image.copyMakeBorder(x, 1, 0, 2, 1, value=7), (normal(2, 3, 3),),
         lambda x: np.pad(x, ((1, 0), (2, 1), (0, 0)), constant_values=7), False, label="number"),
    Case("_cvcopyMakeBorder", lambda x: image.copyMakeBorder(x, 0, 1, 0, 0, values=(1, 2, 3, 4)), (integers(0, 9, 2, 1, 3),),
         lambda x: np.concatenate([x, np.array([[[1, 2, 3]]])]), False, label="color"),
    *(Case("_cvcopyMakeBorder", lambda x, kind=kind: image.copyMakeBorder(x, 2, 1, 0, 1, type=kind), (normal(3, 4, 1),),
           lambda x, mode=mode: np.pad(x, ((2, 1), (0, 1), (0, 0)), mode), False, label=mode)
      for kind, mode in ((1, "edge"), (2, "symmetric"), (3, "wrap"), (4, "reflect"))),
    Case("_cvcopyMakeBorder", lambda x: image.copyMakeBorder(x, 0, 0, 0, 0), (normal(1, 1, 2),), lambda x: x, False, label="none",
         bad=(
        Bad(lambda nd: image.copyMakeBorder(nd.ones((2, 2, 3)), -1, 0, 0, 0), ArgumentError, r"none may be negative"),
        Bad(lambda nd: image.copyMakeBorder(nd.ones((2, 2, 3)), 1, 0, 0, 0, type=5), ArgumentError, r"type is 5; choose one of 0 con"),
        Bad(lambda nd: image.copyMakeBorder(nd.ones((2, 2, 3)), 1, 0, 0, 0, values=(1, 2)), ArgumentError, r"values has 2 numbers"),
        Bad(lambda nd: image.copyMakeBorder(nd.ones((2, 2)), 1, 0, 0, 0), ShapeError, r"needs 3 axes"),
    )),
]  # fmt: skip


def enhanced(op: str, call: Any, oracle: Any, label: str = "", *bad: Bad) -> Case:
    """A row of a function of colours, whose factor is certain. The gradient is tested in test_image.py: it is no true one."""
    return Case(op, call, (uniform(0, 255, 3, 4, 3),), oracle, False, label=label, bad=bad)


COLORS: list[Case] = [
    enhanced("_image_random_brightness", lambda x: image_color.random_brightness(x, 1.5, 1.5), lambda x: x * 1.5, "",
             Bad(lambda nd: nd.image.random_brightness(nd.ones((2, 2, 3)), -1, 1), ArgumentError, r"min_factor is -1"),
             Bad(lambda nd: nd.image.random_brightness(nd.ones((2, 2, 3)), 1, float("inf")), ArgumentError, r"max_factor inf"),
             Bad(lambda nd: nd.image.random_brightness(nd.ones((2, 2, 4)), 1, 1), ShapeError, r"wants 1 or 3 channels on the last"),
             Bad(lambda nd: nd.image.random_brightness(nd.ones((2, 2, 2, 3)), 1, 1), ShapeError, r"needs 3 axes")),
    enhanced("_image_random_contrast", lambda x: image_color.random_contrast(x, 0.5, 0.5), lambda x: x * 0.5 + (x @ GREY).mean() * 0.5),
    Case("_image_random_contrast", lambda x: image_color.random_contrast(x, 2, 2), (uniform(0, 255, 3, 4, 1),),
         lambda x: 2 * x - x.mean(), False, label="grey"),
    enhanced("_image_random_saturation", lambda x: image_color.random_saturation(x, 1.25, 1.25),
             lambda x: 1.25 * x - 0.25 * (x @ GREY)[:, :, None]),
    Case("_image_random_saturation", lambda x: image_color.random_saturation(x, 2, 2), (uniform(0, 255, 3, 4, 1),), lambda x: x, False,
         label="grey"),
    enhanced("_image_random_hue", lambda x: image_color.random_hue(x, 0.3, 0.3), lambda x: turned(x, 0.3), "third"),
    enhanced("_image_random_hue", lambda x: image_color.random_hue(x, 2, 2), lambda x: x, "whole"),
    Case("_image_random_hue", lambda x: image_color.random_hue(x, 0.5, 0.5), (uniform(0, 255, 3, 4, 1),), lambda x: x, False, label="grey"),
    enhanced("_image_random_color_jitter", lambda x: image_color.random_color_jitter(x, 0, 0, 0, 0), lambda x: x, "nothing"),
    enhanced("_image_random_color_jitter", lambda x: image_color.random_color_jitter(x, 0.1, 0.2, 0.3, 0.4), None, "all",
             Bad(lambda nd: nd.image.random_color_jitter(nd.ones((2, 2, 3)), 0, -0.1, 0, 0), ArgumentError, r"contrast is -0.1")),
    Case("_image_adjust_lighting", lambda x: image_color.adjust_lighting(x, (0.1, 0.2, -0.3)), (uniform(0, 255, 2, 2, 3),),
         lambda x: x + np.array([-2.595856, -2.9450898, -4.04757116]),
         rtol={"float64": 1e-8}, label="colour", bad=(  # the digits that stand here
        Bad(lambda nd: nd.image.adjust_lighting(nd.ones((2, 2, 3)), (1, 2)), ArgumentError, r"alpha is \(1, 2\), wants three"),
    )),
    Case("_image_adjust_lighting", lambda x: image_color.adjust_lighting(x, (1, 2, 3)), (uniform(0, 255, 2, 2, 1),), lambda x: x,
         label="grey"),
    Case("_image_random_lighting", lambda x: image_color.random_lighting(x, 0), (uniform(0, 255, 2, 2, 3),), lambda x: x, label="dark",
         bad=(Bad(lambda nd: nd.image.random_lighting(nd.ones((2, 2, 3)), -1), ArgumentError, r"alpha_std is -1"),)),
    Case("_image_random_lighting", lambda x: image_color.random_lighting(x), (uniform(0, 255, 2, 2, 3),), None, label="light"),
]  # fmt: skip

CASES = GEOMETRY + COLORS
