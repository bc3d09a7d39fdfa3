"""What MXNet 1.9.1 is asked about files of images (tests/record_io.py), and minimx too (test_images.py, test_detection.py).

A case: which file of records in tests/data/io, the shape of an image in the batch, and further options.
"""

import numpy as np

CHANNELS = {"png": 3, "jpeg": 3, "grey": 1, "opaque": 4}

CASES = {
    "plain": ("png", (3, 12, 12), {}),
    "of grey": ("grey", (3, 12, 12), {}),
    "of opacity": ("opaque", (3, 12, 12), {}),
    "to grey": ("png", (1, 12, 12), {}),
    "with opacity": ("opaque", (4, 12, 12), {"pad": 2, "fill_value": 9}),
    "jpeg": ("jpeg", (3, 12, 12), {}),
    "jpeg to grey": ("jpeg", (1, 12, 12), {}),
    "wide": ("png", (3, 6, 20), {}),
    "tall": ("png", (3, 20, 3), {}),
    "pixel": ("png", (3, 1, 1), {}),
    **{
        f"method {method}, resize {length}": ("png", (3, 12, 12), {"inter_method": method, "resize": length})
        for method in (0, 1, 2, 3, 4, 9)
        for length in (8, 17)
    },
    "enlarged by method 9": ("png", (3, 28, 28), {"inter_method": 9}),
    "padded": ("png", (3, 12, 12), {"pad": 3, "fill_value": 7}),
    "normalized": (
        "png", (3, 12, 12), {"mean_r": 123.68, "mean_g": 116.28, "mean_b": 103.53, "std_r": 58.395, "std_g": 57.12, "std_b": 57.375}
    ),
    "scaled and mirrored": ("png", (3, 12, 12), {"mirror": True, "scale": 1 / 255.0, "mean_r": 3.5}),
    "bytes": ("png", (3, 12, 12), {"dtype": "uint8", "mean_r": 3, "scale": 2}),
    "signed bytes": ("png", (3, 12, 12), {"dtype": "int8", "mean_r": 123.5, "mean_g": 116.4, "mean_b": -3.5}),
    **{f"turned by {angle}": ("png", (3, 12, 12), {"rotate": angle, "fill_value": 40}) for angle in (10, 45, 90, 200)},
    "turned, method 2": ("png", (3, 12, 12), {"rotate": 33, "inter_method": 2}),
    "turned, method 4": ("png", (3, 12, 12), {"rotate": 20, "inter_method": 4}),
    "smaller": ("png", (3, 12, 12), {"max_random_scale": 0.5, "min_random_scale": 0.5}),
    "larger": ("png", (3, 12, 12), {"max_random_scale": 1.7, "min_random_scale": 1.7}),
    "other aspect": ("png", (3, 12, 12), {"max_aspect_ratio": 1.5, "min_aspect_ratio": 1.5}),
    "at most": ("png", (3, 12, 12), {"max_img_size": 15}),
    "at least": ("png", (3, 12, 12), {"min_img_size": 15}),
    "square": ("png", (3, 12, 12), {"max_crop_size": 5, "min_crop_size": 5}),
}  # fmt: skip

BOXES = {
    "forced": {},
    "fit": {"resize_mode": "fit"},
    "shrunk": {"resize_mode": "shrink"},
    "resized": {"resize": 15, "inter_method": 9},
    "mirrored": {"rand_mirror_prob": 1.0},
    "normalized": {"mean_r": 3.0, "mean_g": 4.0, "std_r": 2.0, "scale": 0.5},
    "divided": {"std_b": 3.0},
    "room": {"label_pad_width": 30, "label_pad_value": -2.0},
}

SIZES = [(16, 20), (25, 13), (8, 8), (30, 30), (5, 21)]


def pixels(channels):
    """The images of a file."""
    random = np.random.RandomState(3)
    for height, width in SIZES:
        y, x = np.mgrid[:height, :width]
        waves = [127 + 100 * np.sin(x / (3 + k) + k) * np.cos(y / (4 + k)) for k in range(channels)]
        yield np.clip(np.stack(waves, -1) + random.normal(0, 9, (height, width, channels)), 0, 255).astype(np.uint8)


def boxes():
    """The labels of the images in boxes.rec."""
    random = np.random.RandomState(5)
    for number in range(len(SIZES)):
        labels = [2, 5]
        for kind in range(1 + number % 3):
            left, top = random.uniform(0, 0.5, 2)
            labels += [kind, left, top, left + random.uniform(0.1, 0.5), top + random.uniform(0.1, 0.5)]
        if number % 2:
            labels += [9, 0.5, 0.5, 0.4, 0.6]  # no box at all
        yield labels


def compact(array):
    """An array with as few bytes as its numbers need."""
    for dtype in (np.uint8, np.int8):
        if (array == array.astype(dtype)).all():
            return array.astype(dtype)
    return array
