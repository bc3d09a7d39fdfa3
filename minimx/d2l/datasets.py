"""The book's data: Fashion-MNIST, from wherever it is at hand, as batches of NDArrays.

*The order of sources* (`load_fashion_mnist`): a folder that you name, Debian's package, the cache, and the subset of 6,000 + 1,000 real
images that comes with minimx (data/README.md says how it was made). The network is touched only where `download=True` asks for it.
One printed line says what was used. The files' format is read by `minimx.idx`. Book: chapter 1.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from .. import nd
from ..base import ArgumentError, FileFormatError, MXNetError, OutOfRangeError, shown
from ..fields import converted
from ..files import as_path
from ..idx import read_idx as read_idx, write_idx as write_idx
from ..nd import NDArray
from .notebook import progress

Images = np.ndarray[Any, np.dtype[Any]]


class DataNotFoundError(MXNetError, FileNotFoundError):
    """Data that is not where it was looked for; the message says how to get it."""


MOST_PIXELS = 4096  # to a side of a resized image
CHUNK = 1 << 20  # bytes read at a time


# ---- Fashion-MNIST: names, files, sources

LABELS = ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
FILES = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
URL = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"
#: SHA-256 of the unpacked files: the same however they were compressed.
SHA256 = {
    "train-images-idx3-ubyte.gz": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1-ubyte.gz": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "t10k-images-idx3-ubyte.gz": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1-ubyte.gz": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}
DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")
PACKAGE_FOLDER = Path(__file__).with_name("data")
SOURCES = {
    "path": "the folder that was named",
    "debian": "Debian's package dataset-fashion-mnist",
    "cache": "the cache",
    "package": "the subset inside minimx",
    "download": "downloaded",
}
REMEDY = {
    "path": "check the path, or leave `root` out to use the subset inside minimx, or pass download=True to fetch the data there",
    "debian": "install it with `apt-get install dataset-fashion-mnist`, or use source='package'",
    "cache": "fill it with download=True, or use source='package'",
    "package": "the installation is damaged; install minimx again",
}


def get_fashion_mnist_labels(labels: NDArray | Images | Sequence[Any]) -> list[str]:
    """The names of the classes whose numbers are `labels`.

    >>> get_fashion_mnist_labels([9, 0])
    ['ankle boot', 't-shirt']
    """
    if isinstance(labels, NDArray):
        labels = labels.asnumpy()
    numbers = np.asarray(labels) if isinstance(labels, (np.ndarray, list, tuple, range)) else np.zeros(())
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iuf"):
        raise ArgumentError(f"get_fashion_mnist_labels: a list of class numbers is wanted, got {shown(labels)}")
    wrong = numbers[~np.isin(numbers, range(len(LABELS)))]
    if wrong.size:
        raise OutOfRangeError(f"get_fashion_mnist_labels: there is no class {wrong[0]}; the numbers are 0 to {len(LABELS) - 1}")
    return [LABELS[int(number)] for number in numbers]


get_text_labels = get_fashion_mnist_labels


def cache_folder() -> Path:
    """Where downloaded data lies: MINIMX_HOME, or ~/.cache/minimx."""
    home = os.environ.get("MINIMX_HOME")
    return (Path(home) if home else Path.home() / ".cache" / "minimx") / "datasets" / "fashion-mnist"


class FashionMNIST(NamedTuple):
    """The data set in memory: images (N, 28, 28) and labels (N,) of uint8."""

    train_images: Images
    train_labels: Images
    test_images: Images
    test_labels: Images


def load_fashion_mnist(
    root: str | os.PathLike[str] | None = None, source: str | None = None, download: bool = False, announce: bool = True
) -> FashionMNIST:
    """Fashion-MNIST from the first source that has it: `root`, Debian's package, the cache, the subset inside minimx.

    **Args** root: a folder with the four IDX files, gzipped or not; only this folder is looked at then.
    source: "debian", "cache", "package" or "download", to use just that one (a text that prints numbers fixes "package").
    download: the whole data set is wanted; where no folder has it, fetch it (30 MB) into `root` or the cache, and check it.
    announce: print a line that says what was used.
    **Raises** DataNotFoundError (a FileNotFoundError) where a named source is absent; FileFormatError for a damaged file.
    """
    kind, folder = _find(None if root is None else Path(as_path(root)), source, download)
    loaded = FashionMNIST(*(read_idx(_path_of(folder, name)) for name in FILES))
    _check(loaded, folder)
    if announce:
        counts = f"{len(loaded.train_labels):,} training and {len(loaded.test_labels):,} test images"
        print(f"Fashion-MNIST: {counts} ({SOURCES[kind]})")
    return loaded


def _find(root: Path | None, source: str | None, download: bool) -> tuple[str, Path]:
    """The source to use, by name, and its folder; downloads where that was asked for."""
    if source is not None and not (isinstance(source, str) and source in ("debian", "cache", "package", "download")):
        raise ArgumentError(f"load_fashion_mnist: source={shown(source)}; choose 'debian', 'cache', 'package' or 'download'")
    folders = {"debian": DEBIAN_FOLDER, "cache": cache_folder(), "package": PACKAGE_FOLDER}
    if root is not None:
        if source is not None:
            raise ArgumentError(f"load_fashion_mnist: root and source={shown(source)} exclude each other; give one of them")
        order, folders = ["path"], {"path": root}
    elif source == "download" or download:
        order = [] if source == "download" else ["debian", "cache"]
    else:
        order = ["debian", "cache", "package"] if source is None else [source]
    for kind in order:
        if all(_path_of(folders[kind], name).is_file() for name in FILES):
            return kind, folders[kind]
    if download or source == "download":
        target = folders.get("path", cache_folder())
        download_fashion_mnist(target)
        return "download", target
    kind = order[-1]
    missing = next(name for name in FILES if not _path_of(folders[kind], name).is_file())
    raise DataNotFoundError(f"Fashion-MNIST: {folders[kind]} has no {missing}; {REMEDY[kind]}")


def _path_of(folder: Path, name: str) -> Path:
    """The file `name` in `folder`, or its unpacked twin if only that is there."""
    unpacked = folder / name.removesuffix(".gz")
    return unpacked if unpacked.is_file() and not (folder / name).is_file() else folder / name


def _check(loaded: FashionMNIST, folder: Path) -> None:
    """Raise FileFormatError unless images and labels belong together."""
    for images, labels, name in (
        (loaded.train_images, loaded.train_labels, FILES[1]),
        (loaded.test_images, loaded.test_labels, FILES[3]),
    ):
        if images.dtype != np.uint8 or images.ndim != 3 or labels.shape != images.shape[:1] or not labels.size:
            raise FileFormatError(f"{folder / name}: labels of shape {labels.shape} beside images of shape {images.shape}")
        if labels.dtype != np.uint8 or labels.max() >= len(LABELS):
            raise FileFormatError(
                f"{folder / name}: label {labels.max()} at index {labels.argmax()}; there are {len(LABELS)} classes"
            )


@contextlib.contextmanager
def _written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file that appears as `path` only when it is complete, so that a crash leaves an old file whole."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as out:
            yield out
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def download_fashion_mnist(folder: Path) -> None:
    """Fetch the four files into `folder`, with a progress bar; each gets its name only after its SHA-256 was found right.

    **Raises** OSError where the network fails, FileFormatError where something else than the data came.
    """
    import urllib.request  # here, because it takes longer to import than all of minimx.d2l, and most never need it

    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        if (folder / name).is_file() and _unpacked_sha256(folder / name) == SHA256[name]:
            continue
        with urllib.request.urlopen(URL + name, timeout=60) as answer, _written_whole(folder / name) as out:
            chunks = -(-answer.length // CHUNK) if answer.length else None
            pieces = iter(functools.partial(answer.read, CHUNK), b"")
            for i, piece in enumerate(progress(pieces, f"{name} (MiB)", total=chunks)):
                if i == 64:
                    raise FileFormatError(f"{URL}{name}: more than 64 MiB came; this is not Fashion-MNIST")
                out.write(piece)
            out.flush()
            found = _unpacked_sha256(Path(out.name))
            if found != SHA256[name]:
                raise FileFormatError(f"{URL}{name}: unpacked SHA-256 is {found}, not {SHA256[name]}; try again later")


def _unpacked_sha256(path: Path) -> str:
    """SHA-256 of what a gzipped file holds, or what is wrong with it."""
    digest = hashlib.sha256()
    try:
        with gzip.open(path) as stream:
            while piece := stream.read(CHUNK):
                digest.update(piece)
    except (OSError, EOFError, zlib.error) as error:
        return f"not to be had ({error})"
    return digest.hexdigest()


# ---- batches


class Batches:
    """What a training loop goes through: `for X, y in batches`, with X (B, 1, H, W) float32 in [0, 1] and y (B,) int32.

    The images stay bytes in memory, a quarter of their size as float32; a batch is converted when its turn comes. Where `shuffle`
    is set, each pass has a new order, drawn from minimx's generator: `mx.random.seed` makes it repeatable. The last batch of
    a pass is smaller where the batch size does not divide the number of images.
    """

    def __init__(self, images: Images, labels: Images, batch_size: int, shuffle: bool, resize: int | None = None) -> None:
        batch_size = converted("load_data_fashion_mnist", "batch_size", "int", batch_size)
        resize = converted("load_data_fashion_mnist", "resize", "int | None", resize)
        if batch_size < 1 or (resize is not None and not 1 <= resize <= MOST_PIXELS):
            raise ArgumentError(
                f"load_data_fashion_mnist: batch_size is {batch_size}, resize {resize}; both must be at least 1, "
                f"resize at most {MOST_PIXELS}"
            )
        self.images, self.labels, self.batch_size, self.shuffle, self.resize = images, labels, batch_size, shuffle, resize

    def __len__(self) -> int:
        """Batches in a pass."""
        return -(-len(self.labels) // self.batch_size)

    def __iter__(self) -> Iterator[tuple[NDArray, NDArray]]:
        count = len(self.labels)
        order = nd.random.shuffle(nd.arange(count, dtype="int32")).asnumpy() if self.shuffle else np.arange(count)
        for start in range(0, count, self.batch_size):
            rows = order[start : start + self.batch_size]
            pixels = self.images[rows].astype(np.float32) / 255
            if self.resize is not None:
                pixels = resize_images(pixels, self.resize)
            yield nd.array(pixels[:, None]), nd.array(self.labels[rows], dtype="int32")


def load_data_fashion_mnist(
    batch_size: int,
    resize: int | None = None,
    root: str | os.PathLike[str] | None = None,
    *,
    source: str | None = None,
    download: bool = False,
    announce: bool = True,
) -> tuple[Batches, Batches]:
    """Fashion-MNIST as two iterators of batches: for training, in a new order each pass, and for testing.

    **Args** resize: height and width wanted, by bilinear interpolation. The others are those of `load_fashion_mnist`.
    **Returns** `train_iter, test_iter`, of class `Batches`.
    """
    loaded = load_fashion_mnist(root, source, download, announce)
    return (
        Batches(loaded.train_images, loaded.train_labels, batch_size, shuffle=True, resize=resize),
        Batches(loaded.test_images, loaded.test_labels, batch_size, shuffle=False, resize=resize),
    )


def resize_images(images: Images, size: int) -> Images:
    """`images` (N, H, W) as (N, size, size): bilinear, pixel centres at half-integers as in MXNet's `Resize`.

    Interpolation is linear and works on rows and columns apart, so that it is a product with a thin matrix on either side.
    """
    rows, columns = (_bilinear_matrix(length, size) for length in images.shape[1:])
    resized: Images = rows @ images @ columns.T
    return resized


def _bilinear_matrix(length: int, size: int) -> Images:
    """The matrix (size, length) that takes `length` samples to `size`."""
    places = np.clip((np.arange(size) + 0.5) * length / size - 0.5, 0, length - 1)
    return np.maximum(0, 1 - np.abs(places[:, None] - np.arange(length))).astype(np.float32)
