"""Data sets of images that lie in files of their own, in folders or in a list, or in a record file.

An image is decoded when its sample is asked for, by Pillow (the extra `image`): an NDArray (H, W, C) of uint8. Images differ in size, so a
transform, or the DataLoader's `batchify_fn`, makes them equal before they are batched. The well-known data sets are in datasets.py.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .... import files, image, nd, recordio
from ....base import ArgumentError, FileFormatError, MissingFileError, OutOfRangeError, shown
from ....image.listing import from_items, read_list
from ..dataset import Dataset, RecordFileDataset

__all__ = ["ImageFolderDataset", "ImageListDataset", "ImageRecordDataset"]

Transform = Callable[..., Any]
EXTENSIONS = (".jpg", ".jpeg", ".png")


class ImageFolderDataset(Dataset):
    """Images in folders, of which each is a class: `root/car/0001.jpg`, `root/bus/7.png`. Needs Pillow.

    **Args** root: the folder of folders. flag: 1 for three channels, 0 for one, grey. transform: a function of image and label, whose
    result is the sample. Folders and images are taken in the order of their names; an empty folder is a class, too. What is no folder,
    or no .jpg, .jpeg, .png, is ignored with a warning. **Raises** FileFormatError for an image that is damaged, when it is asked for.
    **Source** MXNet `gluon.data.vision.ImageFolderDataset`.

    `synsets` has the names of the classes, `items` a pair (file, label) for each image.
    """

    def __init__(self, root: files.PathLike, flag: int = 1, transform: Transform | None = None) -> None:
        self._root = os.path.expanduser(files.as_path(root))
        self._flag = checked_flag("ImageFolderDataset", flag)
        self._transform = checked_transform("ImageFolderDataset", transform)
        self._exts = list(EXTENSIONS)
        self.synsets: list[str] = []
        self.items: list[tuple[str, int]] = []
        self._list_images(self._root)

    def _list_images(self, root: str) -> None:
        """Fill `synsets` and `items`."""
        for folder in listed("ImageFolderDataset", root):
            path = os.path.join(root, folder)
            if not os.path.isdir(path):
                warnings.warn(f"Ignoring {path}, which is not a directory.", stacklevel=3)
                continue
            label = len(self.synsets)
            self.synsets.append(folder)
            for name in listed("ImageFolderDataset", path):
                file = os.path.join(path, name)
                extension = os.path.splitext(name)[1]
                if extension.lower() in self._exts:
                    self.items.append((file, label))
                else:
                    warnings.warn(f"Ignoring {file} of type {extension}. Only support {', '.join(self._exts)}", stacklevel=3)

    def __getitem__(self, idx: Any) -> Any:
        file, label = at(self.items, idx, f"{self._root} has {len(self.items)} images")
        pixels = image.imread(file, self._flag)
        return (pixels, label) if self._transform is None else self._transform(pixels, label)

    def __len__(self) -> int:
        return len(self.items)


def listed(owner: str, folder: str) -> list[str]:
    """The names in a folder, sorted. Raises MissingFileError if there is no such folder."""
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFileError(f"{owner}: there is no folder {folder}") from None


def checked_flag(owner: str, flag: Any) -> int:
    if isinstance(flag, (bool, int, np.integer)) and flag in (0, 1):
        return int(flag)
    raise ArgumentError(f"{owner}: flag is {shown(flag)}; choose 1 for colours or 0 for grey")


def checked_transform(owner: str, transform: Any) -> Transform | None:
    if transform is not None and not callable(transform):
        raise ArgumentError(f"{owner}: transform must be a function of image and label, got {shown(transform)}")
    return transform


def at(items: Sequence[Any], index: Any, size: str) -> Any:
    """The item at `index`. Raises OutOfRangeError (an IndexError) if there is none."""
    if isinstance(index, slice):
        raise ArgumentError(f"{size}; they are looked up one by one, got a slice as index")
    try:
        return items[index]
    except IndexError:
        raise OutOfRangeError(f"{size}; there is none at index {shown(index)}") from None


class ImageListDataset(Dataset):
    """Images that a list names, each with one or more labels. Needs Pillow.

    **Args** root: the folder in which the images are. imglist: a list of `[label, ..., path]`, or the name of a file in `root` with a line
    `number <tab> label <tab> ... <tab> path` for each image, as MXNet's im2rec writes it (`.lst`). flag: 1 for three channels, 0 for one,
    grey. **Returns**, of a sample, the image and an array of its labels, float32. **Raises** FileFormatError for a line, ArgumentError
    for an entry, that has no label. **Source** MXNet 2 `gluon.data.vision.ImageListDataset`; 1.9.1 has none.
    """

    def __init__(self, root: files.PathLike = ".", imglist: files.PathLike | Sequence[Any] | None = None, flag: int = 1) -> None:
        self._root = os.path.expanduser(files.as_path(root))
        self._flag = checked_flag("ImageListDataset", flag)
        if isinstance(imglist, (str, os.PathLike)):
            self._items = [*read_list(os.path.join(self._root, files.as_path(imglist)), np.dtype(np.float32)).values()]
        elif isinstance(imglist, (list, tuple)):
            self._items = [*from_items("ImageListDataset", imglist, np.dtype(np.float32)).values()]
        else:
            raise ArgumentError(
                f"ImageListDataset: imglist must be a list of [label, path], or a file's name, got {shown(imglist)}"
            )

    def __getitem__(self, idx: Any) -> Any:
        labels, path = at(self._items, idx, f"the list has {len(self._items)} images")
        return image.imread(os.path.join(self._root, path), self._flag), nd.array(labels)

    def __len__(self) -> int:
        return len(self._items)


class ImageRecordDataset(RecordFileDataset):
    """Images in a record file, as tools/im2rec.py of MXNet writes them, with its index beside it: see `mx.recordio`. Needs Pillow.

    **Args** filename: of the record file, `x.rec`. flag: 1 for three channels, 0 for one, grey. transform: a function of image and label,
    whose result is the sample. **Returns**, of a sample, the image and its label: a number, or a NumPy array of several.
    **Raises** FileFormatError, when its sample is asked for, for a record or an image that is damaged. **Source** MXNet
    `gluon.data.vision.ImageRecordDataset`.
    """

    def __init__(self, filename: files.PathLike, flag: int = 1, transform: Transform | None = None) -> None:
        super().__init__(filename)
        self._flag = checked_flag("ImageRecordDataset", flag)
        self._transform = checked_transform("ImageRecordDataset", transform)

    def __getitem__(self, idx: Any) -> Any:
        record = super().__getitem__(idx)
        try:
            header, data = recordio.unpack(record)
            pixels = image.imdecode(data, self._flag)
        except FileFormatError as error:
            raise FileFormatError(f"{self.filename}: the record at index {idx}: {error}") from None
        return (pixels, header.label) if self._transform is None else self._transform(pixels, header.label)
