"""`mx.image.det`: images with objects in them. Augmenters that keep boxes and pixels together, and the iterator ImageDetIter.

The labels of an image are an array `(objects, 5 or more)`: class, left, top, right, bottom, and whatever else a data set has. The sides
of a box are fractions of the image's width and height.
"""

from .augment import DetAugmenter, DetBorrowAug, DetHorizontalFlipAug, DetRandomSelectAug
from .crop import DetRandomCropAug
from .iterator import ImageDetIter
from .pad import DetRandomPadAug
from .usual import CreateDetAugmenter, CreateMultiRandCropAugmenter

__all__ = [
    "CreateDetAugmenter", "CreateMultiRandCropAugmenter", "DetAugmenter", "DetBorrowAug", "DetHorizontalFlipAug",
    "DetRandomCropAug", "DetRandomPadAug", "DetRandomSelectAug", "ImageDetIter",
]  # fmt: skip
