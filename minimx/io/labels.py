"""A list of labels for the images of a file of records: the text file (.lst) that im2rec makes the records from.

A line is `number <tab> label [<tab> label ...] <tab> path`. An image's number in its record says which line is its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import files
from ..base import FileFormatError, shown
from .records import Image

__all__ = ["LabelList"]


class LabelList:
    """Labels by the numbers of images. **Args** `path`: the list; `width`: how many labels count, 0 for all that a line has."""

    def __init__(self, path: files.PathLike, width: int) -> None:
        self.path = files.as_path(path)
        self.labels: dict[int, np.ndarray[Any, Any]] = {}
        file, _ = files.open_file(self.path)
        with file:
            for line, text in enumerate(file, 1):
                words = text.split()
                if words:
                    number, found = self._parsed(line, words, width)
                    self.labels[number] = found

    def _parsed(self, line: int, words: list[bytes], width: int) -> tuple[int, np.ndarray[Any, Any]]:
        try:
            # The last word is the image's path. With a width, what comes behind so many labels does not count
            chosen = words[1 : 1 + width] if width else words[1:-1]
            number, labels = int(words[0]), np.array([float(word) for word in chosen], np.float32)
        except ValueError:
            number, labels = 0, np.zeros(0, np.float32)
        if not len(labels) or (width and len(labels) < width):
            raise FileFormatError(
                f"{self.path}, line {line}: `number <tab> {f'{width} labels' if width else 'labels'} <tab> path` is wanted, got "
                f"{shown(b' '.join(words))}"
            )
        return number, labels

    def of(self, image: Image) -> np.ndarray[Any, Any]:
        """The labels of an image. Raises FileFormatError if there are none."""
        if image.number not in self.labels:
            raise FileFormatError(f"{image.place}: the image has the number {image.number}, which {self.path} has no line for")
        return self.labels[image.number]
