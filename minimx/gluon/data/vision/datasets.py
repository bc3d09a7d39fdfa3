"""The well-known data sets of images, in memory: MNIST, FashionMNIST, CIFAR10, CIFAR100.

They are read from a folder, by default `datasets/<name>` in the folder that MXNET_HOME names (`~/.mxnet`); what is not there is
downloaded. They are the whole data set or an error: every file is known by its SHA-1 checksum. A damaged file is replaced by a download;
one that is whole but has other contents is somebody's work, and is left alone.

A sample is (image, label): an NDArray (H, W, C) of uint8, and an int32. Data sets of your own images are in image_files.py.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .... import files, idx, nd
from ....base import FileFormatError
from ... import repository, utils
from ..dataset import _DownloadedDataset
from .image_files import ImageFolderDataset, ImageListDataset, ImageRecordDataset

__all__ = [
    "CIFAR10", "CIFAR100", "FashionMNIST", "ImageFolderDataset", "ImageListDataset", "ImageRecordDataset", "MNIST",
]  # fmt: skip

Numbers = np.ndarray[Any, np.dtype[Any]]
Transform = Callable[..., Any]


class Source(NamedTuple):
    """A file that a data set is read from, and the SHA-1 checksum of its contents."""

    name: str
    sha1: str


class Known(_DownloadedDataset):
    """A data set whose files are known, in the folder `root`."""

    #: What it is called in the folder of data sets, and where it is published.
    namespace: ClassVar[str]

    def __init__(self, root: files.PathLike | None, train: bool, transform: Transform | None) -> None:
        self._train = train
        self._default_root = os.path.join(files.data_dir(), "datasets", self.namespace)
        super().__init__(self._default_root if root is None else root, transform)

    def _url(self, name: str) -> str:
        return repository.url(f"gluon/dataset/{self.namespace}", name)

    def _is_there(self, source: Source) -> bool:
        """Whether `root` has the file, with the right contents."""
        path = os.path.join(self._root, source.name)
        return os.path.isfile(path) and utils.check_sha1(path, source.sha1)

    def _foreign(self, path: str, source: Source, holds: str, advice: str) -> FileFormatError:
        """The error for a file that is whole, but another one than the data set's: a download must not replace it."""
        return FileFormatError(
            f"{path} holds {holds}, but not those of {type(self).__name__}: its SHA-1 checksum is not {source.sha1}. It is left as it "
            f"is: move it away, or choose another root, and the original is downloaded.{advice}"
        )

    def _keep(self, images: Numbers, labels: Numbers) -> None:
        self._data = nd.array(images, dtype=images.dtype)
        self._label = labels.astype(np.int32)


# ---- MNIST


class MNIST(Known):
    """Handwritten digits: 60,000 images to train with and 10,000 to test with, (28, 28, 1), in 10 classes.

    **Args** root: the folder of the files `train-images-idx3-ubyte.gz` and so on; `datasets/mnist` by default. train: which of the two
    parts. transform: a function of image and label, whose result is the sample. **Raises** FileFormatError, MissingFileError (a
    FileNotFoundError) where the files are others, or are not there and cannot be downloaded. **Source** MXNet
    `gluon.data.vision.MNIST`; Y. LeCun et al., 1998.
    """

    namespace = "mnist"
    sources: ClassVar[dict[bool, tuple[Source, Source]]] = {
        True: (
            Source("train-images-idx3-ubyte.gz", "6c95f4b05d2bf285e1bfb0e7960c31bd3b3f8a7d"),
            Source("train-labels-idx1-ubyte.gz", "2a80914081dc54586dbdf242f9805a6b8d2a15fc"),
        ),
        False: (
            Source("t10k-images-idx3-ubyte.gz", "c3a25af1f52dad7f726cce8cacb138654b760d48"),
            Source("t10k-labels-idx1-ubyte.gz", "763e7fa3757d93b0cdec073cef058b2004252c17"),
        ),
    }
    #: A folder where a package of the system puts the files.
    system_folder: ClassVar[str | None] = None
    #: What else a user may do who has no network.
    advice: ClassVar[str] = ""

    def __init__(self, root: files.PathLike | None = None, train: bool = True, transform: Transform | None = None) -> None:
        super().__init__(root, train, transform)

    def _get_data(self) -> None:
        images, labels = (self._path(source) for source in self.sources[bool(self._train)])
        pixels, classes = idx.read_idx(images), idx.read_idx(labels)
        if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[1:] != (28, 28):
            raise FileFormatError(f"{images}: the header at offset 0 says {pixels.dtype} {pixels.shape}, wants uint8 (N, 28, 28)")
        if classes.dtype != np.uint8 or classes.shape != pixels.shape[:1]:
            raise FileFormatError(
                f"{labels}: the header at offset 0 says {classes.dtype} {classes.shape}, wants uint8 ({len(pixels)},), one for each image"
            )
        self._keep(pixels[..., None], classes)

    def _path(self, source: Source) -> str:
        """The file to read: in `root`, in the system's folder, or downloaded."""
        if self._is_there(source):
            return os.path.join(self._root, source.name)
        path = os.path.join(self._root, source.name)
        if os.path.isfile(path) and (found := contents(path)):
            raise self._foreign(path, source, found, " minimx.idx.read_idx reads any file of this format.")
        if self.system_folder is not None and os.path.abspath(self._root) == os.path.abspath(self._default_root):
            packaged = os.path.join(self.system_folder, source.name)
            if os.path.isfile(packaged):
                return packaged
        return repository.fetch(self._root, source.name, source.sha1, self._url(source.name), advice=self.advice)


def contents(path: str) -> str:
    """What is in an IDX file, in words; nothing if it is damaged."""
    try:
        numbers = idx.read_idx(path)
    except FileFormatError:
        return ""
    return f"numbers ({numbers.dtype}, {numbers.shape})"


class FashionMNIST(MNIST):
    """Articles of clothing, in the format of MNIST: 60,000 images to train with and 10,000 to test with, (28, 28, 1), in 10 classes.

    Where the default folder lacks a file, Debian's package dataset-fashion-mnist has it. The subset inside minimx is not taken for the data
    set: `minimx.d2l.load_data_fashion_mnist` reads that. **Args**, **Raises** as `MNIST`, with the folder `datasets/fashion-mnist`.
    **Source** MXNet `gluon.data.vision.FashionMNIST`; H. Xiao et al., 2017.
    """

    namespace = "fashion-mnist"
    sources: ClassVar[dict[bool, tuple[Source, Source]]] = {
        True: (
            Source("train-images-idx3-ubyte.gz", "0cf37b0d40ed5169c6b3aba31069a9770ac9043d"),
            Source("train-labels-idx1-ubyte.gz", "236021d52f1e40852b06a4c3008d8de8aef1e40b"),
        ),
        False: (
            Source("t10k-images-idx3-ubyte.gz", "626ed6a7c06dd17c0eec72fa3be1740f146a2863"),
            Source("t10k-labels-idx1-ubyte.gz", "17f9ab60e7257a1620f4ad76bbbaf857c3920701"),
        ),
    }
    system_folder = "/usr/share/datasets/fashion-mnist"
    advice = (
        "Debian and Ubuntu have the data set as a package (apt-get install dataset-fashion-mnist); minimx.d2l.load_data_fashion_mnist "
        "works offline, with a subset of 6,000 + 1,000 images that comes with minimx."
    )


# ---- CIFAR


class CIFAR10(Known):
    """Small photographs: 50,000 to train with and 10,000 to test with, (32, 32, 3), in 10 classes.

    **Args** root: the folder of the files `data_batch_1.bin` and so on, or of the archive that has them (MXNet's or the original one,
    `cifar-10-binary.tar.gz`); `datasets/cifar10` by default. train, transform, **Raises** as `MNIST`. **Source** MXNet
    `gluon.data.vision.CIFAR10`; A. Krizhevsky, 2009.
    """

    namespace = "cifar10"
    archive: ClassVar[Source] = Source("cifar-10-binary.tar.gz", "fab780a1e191a7eda0f345501ccd62d20f7ed891")
    folder_in_archive: ClassVar[str] = "cifar-10-batches-bin"  # of the original one; MXNet's has none
    sources: ClassVar[dict[bool, tuple[Source, ...]]] = {
        True: (
            Source("data_batch_1.bin", "aadd24acce27caa71bf4b10992e9e7b2d74c2540"),
            Source("data_batch_2.bin", "c0ba65cce70568cd57b4e03e9ac8d2a5367c1795"),
            Source("data_batch_3.bin", "1dd00a74ab1d17a6e7d73e185b69dbf31242f295"),
            Source("data_batch_4.bin", "aab85764eb3584312d3c7f65fd2fd016e36a258e"),
            Source("data_batch_5.bin", "26e2849e66a845b7f1e4614ae70f4889ae604628"),
        ),
        False: (Source("test_batch.bin", "67eb016db431130d61cd03c7ad570b013799c88c"),),
    }
    #: How many labels stand before the pixels of an image, and which of them counts.
    labels: ClassVar[int] = 1
    label: int = 0

    def __init__(self, root: files.PathLike | None = None, train: bool = True, transform: Transform | None = None) -> None:
        super().__init__(root, train, transform)

    def _get_data(self) -> None:
        places = {source: self._found(source) for source in self.sources[bool(self._train)]}
        missing = [source for source, place in places.items() if place is None]
        if missing:
            self._unpack(missing)
        paths = [place or os.path.join(self._root, source.name) for source, place in places.items()]
        images, labels = (np.concatenate(parts) for parts in zip(*map(self._read, paths)))
        self._keep(images, labels)

    def _found(self, source: Source) -> str | None:
        """Where a file is, in `root` or in the folder of it that unpacking the original archive makes."""
        for name in (source.name, os.path.join(self.folder_in_archive, source.name)):
            if self._is_there(Source(name, source.sha1)):
                return os.path.join(self._root, name)
        return None

    def _read(self, path: str) -> tuple[Numbers, Numbers]:
        """Images and labels of a file: records of labels, and the red, the green and the blue pixels of an image."""
        length = self.labels + 3 * 32 * 32
        numbers = np.fromfile(path, np.uint8)
        if not numbers.size or numbers.size % length:
            raise FileFormatError(f"{path} ends at offset {numbers.size}, inside an image; each takes {length} bytes")
        records = numbers.reshape(-1, length)
        return records[:, self.labels :].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), records[:, self.label]

    def _unpack(self, missing: Sequence[Source]) -> None:
        """Take the files from the archive, which is downloaded if it is not there or damaged."""
        for source in missing:
            path = os.path.join(self._root, source.name)
            size = os.path.getsize(path) if os.path.isfile(path) else 0
            if size and size % (self.labels + 3 * 32 * 32) == 0:
                holds = f"{size // (self.labels + 3 * 32 * 32)} images"
                raise self._foreign(path, source, holds, "")
        packed = os.path.join(self._root, self.archive.name)
        if not os.path.isfile(packed) or not self._unpacked(packed, missing):
            packed = repository.fetch(self._root, self.archive.name, self.archive.sha1, self._url(self.archive.name))
            if not self._unpacked(packed, missing):
                raise FileFormatError(
                    f"{packed} is not the archive of {type(self).__name__}: it lacks {missing[0].name}, or has another one"
                )

    def _unpacked(self, packed: str, missing: Sequence[Source]) -> bool:
        """Whether an archive has all of the files; they are in `root` then, or as many as came before the archive's damage."""
        import tarfile  # here, as few programs unpack anything
        import zlib

        left = {source.name: source.sha1 for source in missing}
        try:
            with tarfile.open(packed) as archive:
                for member in archive:
                    name = member.name.rsplit("/", 1)[-1]
                    if member.isfile() and name in left:
                        file = archive.extractfile(member)
                        data = file.read() if file is not None else b""
                        if hashlib.sha1(data).hexdigest() != left.pop(name):
                            return False
                        files.replace_file(os.path.join(self._root, name), [data])
        except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
            if getattr(error, "filename", None) is not None:  # the disk, which no download would mend
                raise
            return False
        return not left


class CIFAR100(CIFAR10):
    """Small photographs: 50,000 to train with and 10,000 to test with, (32, 32, 3), in 100 classes, which make up 20 larger ones.

    **Args** fine_label: count the 100 classes, else the 20. The others as `CIFAR10`, with the folder `datasets/cifar100`, files
    `train.bin` and `test.bin`, and the archive `cifar-100-binary.tar.gz`. **Source** MXNet `gluon.data.vision.CIFAR100`;
    A. Krizhevsky, 2009.
    """

    namespace = "cifar100"
    archive = Source("cifar-100-binary.tar.gz", "a0bb982c76b83111308126cc779a992fa506b90b")
    folder_in_archive = "cifar-100-binary"
    sources: ClassVar[dict[bool, tuple[Source, ...]]] = {
        True: (Source("train.bin", "e207cd2e05b73b1393c74c7f5e7bea451d63e08e"),),
        False: (Source("test.bin", "8fb6623e830365ff53cf14adec797474f5478006"),),
    }
    labels = 2

    def __init__(
        self, root: files.PathLike | None = None, fine_label: bool = False, train: bool = True, transform: Transform | None = None
    ) -> None:
        self.label = 1 if fine_label else 0
        super().__init__(root, train, transform)
