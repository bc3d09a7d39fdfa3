"""The data sets that MXNet's examples begin with, and files from the network.

`get_mnist`, `get_cifar10` and their relatives take the data sets from where `gluon.data.vision` has them, which downloads what is not
there.
"""

from __future__ import annotations

import bz2
import gzip
import os
import shutil
import zipfile
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from .. import files, recordio
from ..base import FileFormatError
from ..gluon import utils
from ..gluon.data.vision import CIFAR10, MNIST
from ..io import MNISTIter

__all__ = ["download", "get_bz2_data", "get_cifar10", "get_mnist", "get_mnist_iterator", "get_mnist_ubyte", "get_zip_data"]

FOLDER = "data"  # in the current one, as for MXNet's examples
CHUNK = 1 << 20


def download(url: str, fname: str | None = None, dirname: str | None = None, overwrite: bool = False, retries: int = 5) -> str:
    """Get the file at the address `url` unless it is there. **Returns** its path: `fname`, or the last part of `url`, in `dirname`.

    See `gluon.utils.download`, which can check what came. **Source** MXNet `test_utils`, like all names here.
    """
    name = fname or url.rsplit("/", 1)[-1]
    return utils.download(url, name if dirname is None else os.path.join(dirname, name), overwrite, retries=retries)


def get_mnist() -> dict[str, np.ndarray[Any, Any]]:
    """MNIST as NumPy arrays: "train_data" and "test_data" (N, 1, 28, 28) from 0 to 1, "train_label" and "test_label" (N,).

    **Raises** MissingFileError where the data set is not there and cannot be downloaded.
    """
    found = {}
    for name in ("train", "test"):
        images, labels = MNIST(train=name == "train")[:]
        found[f"{name}_data"] = images.asnumpy().transpose(0, 3, 1, 2).astype(np.float32) / 255
        found[f"{name}_label"] = np.asarray(labels, dtype=np.int8)
    return found


def get_mnist_ubyte() -> None:
    """Have the four files of MNIST, unpacked, in the folder `data` of the current one."""
    for train in (True, False):
        names = [source.name for source in MNIST.sources[train]]
        if not all(os.path.isfile(_unpacked(name)) for name in names):
            MNIST(root=FOLDER, train=train)
            for name in names:
                with gzip.open(os.path.join(FOLDER, name)) as packed:
                    files.replace_file(_unpacked(name), _chunks(packed))


def _unpacked(name: str) -> str:
    return os.path.join(FOLDER, name.removesuffix(".gz"))


def _chunks(file: IO[bytes] | gzip.GzipFile | bz2.BZ2File) -> Iterator[bytes]:
    """What is left of a file, piece by piece."""
    return iter(lambda: file.read(CHUNK), b"")


def get_mnist_iterator(
    batch_size: int, input_shape: tuple[int, ...], num_parts: int = 1, part_index: int = 0
) -> tuple[MNISTIter, MNISTIter]:
    """Iterators over the images to train with and over those to test with, both shuffled; see `get_mnist_ubyte`.

    **Args** `input_shape`: (1, 28, 28), or (784,) for flat images; `num_parts`, `part_index`: read one of so many parts.
    """
    get_mnist_ubyte()
    train, test = (
        MNISTIter(
            image=_unpacked(f"{name}-images-idx3-ubyte"), label=_unpacked(f"{name}-labels-idx1-ubyte"), batch_size=batch_size,
            input_shape=input_shape, flat=len(input_shape) != 3, num_parts=num_parts, part_index=part_index,
        )
        for name in ("train", "t10k")
    )  # fmt: skip
    return train, test


def get_cifar10() -> None:
    """Have CIFAR-10 in the folder `data/cifar` of the current one: `train.rec` and `test.rec`, and lists `train.lst` and `test.lst`.

    Images are stored as PNG files, which takes Pillow. **Raises** MissingFileError where the data set is not there and cannot be
    downloaded.
    """
    folder = os.path.join(FOLDER, "cifar")
    files.make_folder(folder)
    for name in ("train", "test"):
        records, listing = (os.path.join(folder, f"{name}.{ending}") for ending in ("rec", "lst"))
        if os.path.isfile(records) and os.path.isfile(listing):
            continue
        images, labels = CIFAR10(train=name == "train")[:]
        pixels = images.asnumpy()[..., ::-1]  # `pack_img` wants blue first
        with recordio.MXRecordIO(records, "w") as file:
            for number, label in enumerate(labels):
                file.write(
                    recordio.pack_img(recordio.IRHeader(0, float(label), number, 0), pixels[number], img_fmt=".png", quality=3)
                )
        lines = [f"{number}\t{float(label)}\t{name}/{number}.png\n".encode() for number, label in enumerate(labels)]
        files.replace_file(listing, lines)  # last: it says that the records are there


def get_zip_data(data_dir: str, url: str, data_origin_name: str) -> None:
    """Download the ZIP archive `url` into the folder `data_dir`, as `data_origin_name`, and unpack it there; unless it is there."""
    archive = os.path.join(data_dir, data_origin_name)
    if os.path.exists(archive):
        return
    utils.download(url, f"{archive}.part")
    try:
        with zipfile.ZipFile(f"{archive}.part") as opened:
            opened.extractall(data_dir)  # which writes nothing outside of it
    except zipfile.BadZipFile as error:
        raise FileFormatError(f"{url} is no ZIP archive: {error}") from None
    shutil.move(f"{archive}.part", archive)  # last: it says that all is there


def get_bz2_data(data_dir: str, data_name: str, url: str, data_origin_name: str) -> None:
    """Download the bzip2 file `url` and unpack it as `data_name` in the folder `data_dir`; unless it is there.

    **Args** `data_origin_name`: what the packed file is called until then.
    """
    target, packed = os.path.join(data_dir, data_name), os.path.join(data_dir, data_origin_name)
    if os.path.exists(target):
        return
    utils.download(url, packed)
    try:
        with bz2.open(packed) as opened:
            files.replace_file(target, _chunks(opened))
    except (OSError, EOFError) as error:
        raise FileFormatError(f"{packed} is no whole bzip2 file: {error}") from error
    os.remove(packed)
