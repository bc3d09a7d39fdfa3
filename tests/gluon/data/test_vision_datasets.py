"""Data sets of images: files whole, damaged, foreign and absent; the archive and the download; folders, lists and records."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.server
import io
import os
import pickle
import tarfile
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import minimx as mx
from minimx import idx, nd, recordio
from minimx.base import ArgumentError, FileFormatError, MissingFileError, OutOfRangeError
from minimx.gluon.data import DataLoader
from minimx.gluon.data.vision import (
    CIFAR10,
    CIFAR100,
    MNIST,
    FashionMNIST,
    ImageFolderDataset,
    ImageListDataset,
    ImageRecordDataset,
    datasets,
)

RNG = np.random.default_rng(2)
DIGITS = {"train": RNG.integers(0, 256, (6, 28, 28), np.uint8), "t10k": RNG.integers(0, 256, (4, 28, 28), np.uint8)}
CLASSES = {"train": np.arange(6, dtype=np.uint8), "t10k": np.array([9, 8, 7, 6], np.uint8)}
PHOTOS = RNG.integers(0, 256, (5, 2, 3, 32, 32), np.uint8)  # five files of two


def sha1(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()


@contextlib.contextmanager
def published(folder: Path, monkeypatch):
    """What is in `folder`, at the address of MXNet's files. Gives the list of what was asked for."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def do_GET(self):
            asked.append(self.path)
            super().do_GET()

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("MXNET_GLUON_REPO", f"http://127.0.0.1:{server.server_port}/")
        yield asked
        server.shutdown()


@pytest.fixture(autouse=True)
def no_network(monkeypatch, tmp_path):
    """Nothing is published, and the folder of data sets is empty."""
    monkeypatch.setenv("MXNET_GLUON_REPO", "http://127.0.0.1:9/")
    monkeypatch.setenv("MXNET_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(FashionMNIST, "system_folder", str(tmp_path / "system"))


# ---- MNIST


def write_digits(folder: Path) -> dict[bool, tuple[datasets.Source, ...]]:
    """Small files in MNIST's format, and the names and checksums that a class must have to take them for its own."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {}
    for part in ("train", "t10k"):
        names = f"{part}-images-idx3-ubyte.gz", f"{part}-labels-idx1-ubyte.gz"
        for name, array in zip(names, (DIGITS[part], CLASSES[part])):
            idx.write_idx(folder / name, array)
        found[part == "train"] = tuple(datasets.Source(name, sha1((folder / name).read_bytes())) for name in names)
    return found


@pytest.fixture
def digits(tmp_path, monkeypatch):
    folder = tmp_path / "digits"
    sources = write_digits(folder)
    for kind in (MNIST, FashionMNIST):
        monkeypatch.setattr(kind, "sources", sources)
    return folder


def test_checksums_are_those_of_the_published_files():
    assert MNIST.sources[True][0].sha1 == "6c95f4b05d2bf285e1bfb0e7960c31bd3b3f8a7d"
    assert FashionMNIST.sources[False][1].sha1 == "17f9ab60e7257a1620f4ad76bbbaf857c3920701"
    assert CIFAR10.sources[False][0].sha1 == "67eb016db431130d61cd03c7ad570b013799c88c"
    assert CIFAR100.archive.sha1 == "a0bb982c76b83111308126cc779a992fa506b90b"


@pytest.mark.parametrize("kind", [MNIST, FashionMNIST])
def test_samples_of_mnist(kind, digits):
    train, test = kind(digits), kind(root=str(digits), train=False)
    assert (len(train), len(test)) == (6, 4)
    image, label = test[1]
    assert isinstance(image, nd.NDArray)
    assert (image.shape, image.dtype) == ((28, 28, 1), np.uint8)
    assert (label, label.dtype) == (8, np.int32)
    np.testing.assert_array_equal(image.asnumpy()[:, :, 0], DIGITS["t10k"][1])
    images, labels = train[1:4]
    assert images.shape == (3, 28, 28, 1)
    assert labels.tolist() == [1, 2, 3]
    assert isinstance(train._data, nd.NDArray)
    again = pickle.loads(pickle.dumps(test))
    np.testing.assert_array_equal(again[3][0].asnumpy(), test[3][0].asnumpy())


def test_transforms_of_mnist(digits):
    data = MNIST(digits, transform=lambda image, label: (image.astype("float32") / 255, label + 1))
    assert data[2][1] == 3
    np.testing.assert_allclose(data[2][0].asnumpy()[:, :, 0], DIGITS["train"][2] / 255, rtol=1e-6)
    batches = list(DataLoader(MNIST(digits).transform_first(mx.gluon.data.vision.transforms.ToTensor()), 4))
    assert [x.shape for x, _ in batches] == [(4, 1, 28, 28), (2, 1, 28, 28)]
    assert batches[1][1].asnumpy().tolist() == [4, 5]


def test_the_default_folder_follows_mxnet_home(digits, tmp_path):
    home = tmp_path / "home" / "datasets" / "mnist"
    home.parent.mkdir(parents=True)
    os.rename(digits, home)
    assert len(MNIST()) == 6


def test_a_package_of_the_system_is_used_where_the_default_folder_has_nothing(digits, tmp_path):
    os.rename(digits, tmp_path / "system")
    assert len(FashionMNIST()) == 6
    assert len(FashionMNIST(tmp_path / "home" / "datasets" / "fashion-mnist", train=False)) == 4
    with pytest.raises(MissingFileError):
        FashionMNIST(tmp_path / "elsewhere")
    with pytest.raises(MissingFileError):
        MNIST()


def test_a_root_that_is_a_file(tmp_path):
    (tmp_path / "data").write_text("x")
    with pytest.raises(MissingFileError, match=r"the folder .*data cannot be made: .*data is a file; name another folder"):
        MNIST(tmp_path / "data")


def test_where_nothing_is_to_be_had_the_error_names_the_choices(tmp_path, capsys):
    with pytest.raises(FileNotFoundError) as caught:
        FashionMNIST(tmp_path / "none")
    message = str(caught.value)
    assert f"there is no file {tmp_path / 'none' / 'train-images-idx3-ubyte.gz'}" in message
    for choice in (
        "Get http://127.0.0.1:9/gluon/dataset/fashion-mnist/train",
        "apt-get install dataset-fashion-mnist",
        "minimx.d2l",
    ):
        assert choice in message


def test_the_subset_inside_minimx_is_not_taken_for_the_data_set():
    folder = Path(mx.__file__).parent / "d2l" / "data"
    before = (folder / "train-images-idx3-ubyte.gz").read_bytes()
    with pytest.raises(FileFormatError, match=r"holds numbers \(uint8, \(6000, 28, 28\)\), but not those of FashionMNIST"):
        FashionMNIST(folder)
    assert (folder / "train-images-idx3-ubyte.gz").read_bytes() == before


def test_files_are_downloaded_only_where_they_are_not_there(digits, tmp_path, monkeypatch, capsys):
    place = tmp_path / "web" / "gluon" / "dataset" / "mnist"
    place.parent.mkdir(parents=True)
    os.rename(digits, place)
    with published(tmp_path / "web", monkeypatch) as asked:
        assert len(MNIST(tmp_path / "new")) == 6
        assert [path.rsplit("/", 1)[1] for path in asked] == ["train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"]
        assert len(MNIST(tmp_path / "new")) == 6
        assert len(asked) == 2
        damaged = tmp_path / "new" / "train-labels-idx1-ubyte.gz"
        damaged.write_bytes(damaged.read_bytes()[:-5])
        assert len(MNIST(tmp_path / "new")) == 6  # a damaged one is replaced
        assert len(asked) == 3
        own = np.zeros((2, 28, 28), np.uint8)
        idx.write_idx(tmp_path / "new" / "train-images-idx3-ubyte.gz", own)
        with pytest.raises(FileFormatError, match="It is left as it is: move it away, or choose another root"):
            MNIST(tmp_path / "new")
        np.testing.assert_array_equal(idx.read_idx(tmp_path / "new" / "train-images-idx3-ubyte.gz"), own)
        assert len(asked) == 3


def test_a_download_with_other_contents_is_not_kept(tmp_path, monkeypatch, capsys):
    place = tmp_path / "web" / "gluon" / "dataset" / "mnist"
    write_digits(place)
    with published(tmp_path / "web", monkeypatch), pytest.raises(FileFormatError, match="SHA-1 checksum"):
        MNIST(tmp_path / "new")
    assert not (tmp_path / "new" / "train-images-idx3-ubyte.gz").exists()


def trusting(monkeypatch):
    """What programs do that have files of their own: every checksum is right."""
    monkeypatch.setattr(mx.gluon.utils, "check_sha1", lambda filename, sha1_hash: True)


@pytest.mark.parametrize(("images", "labels", "message"), [
    (np.zeros((2, 28, 27), np.uint8), np.zeros(2, np.uint8), r"images.*: the header at offset 0 says uint8 \(2, 28, 27\), wants"),
    (np.zeros((2, 28, 28), np.int32), np.zeros(2, np.uint8), r"says int32 \(2, 28, 28\)"),
    (np.zeros((2, 28, 28), np.uint8), np.zeros(3, np.uint8), r"labels.*: the header at offset 0 says uint8 \(3,\), wants uint8 \(2,\)"),
])  # fmt: skip
def test_trusted_files_must_fit_together(tmp_path, monkeypatch, images, labels, message):
    trusting(monkeypatch)
    idx.write_idx(tmp_path / "train-images-idx3-ubyte.gz", images)
    idx.write_idx(tmp_path / "train-labels-idx1-ubyte.gz", labels)
    with pytest.raises(FileFormatError, match=message):
        MNIST(tmp_path)


def test_trusted_files_that_end_too_early(digits, monkeypatch):
    trusting(monkeypatch)
    path = digits / "train-images-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(gzip.decompress(path.read_bytes())[:500]))
    with pytest.raises(
        FileFormatError, match=r"train-images-idx3-ubyte.gz: ends at offset 500; shape \(6, 28, 28\) needs 4720 bytes"
    ):
        MNIST(digits)


# ---- CIFAR


def records(pixels, labels):
    return b"".join(bytes(label) + image.tobytes() for image, label in zip(pixels, labels))


@pytest.fixture
def small_cifar(monkeypatch):
    """The files of small data sets in CIFAR's formats, by name."""
    ten = {f"data_batch_{i + 1}.bin": records(PHOTOS[i], [(i,), (9 - i,)]) for i in range(5)}
    ten["test_batch.bin"] = records(PHOTOS[0], [(3,), (4,)])
    hundred = {"train.bin": records(PHOTOS[1], [(19, 99), (18, 98)]), "test.bin": records(PHOTOS[2], [(1, 11), (2, 22)])}
    for kind, contents in ((CIFAR10, ten), (CIFAR100, hundred)):
        monkeypatch.setattr(kind, "sources", {
            train: tuple(datasets.Source(source.name, sha1(contents[source.name])) for source in sources)
            for train, sources in kind.sources.items()
        })  # fmt: skip
    return {"cifar10": ten, "cifar100": hundred}


def write_all(folder: Path, contents: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return folder


def packed(contents: dict[str, bytes], folder: str = "") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in contents.items():
            member = tarfile.TarInfo(folder + name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def test_samples_of_cifar(small_cifar, tmp_path):
    folder = write_all(tmp_path / "ten", small_cifar["cifar10"])
    train, test = CIFAR10(folder), CIFAR10(folder, train=False)
    assert (len(train), len(test)) == (10, 2)
    image, label = train[3]
    assert (image.shape, image.dtype, label, label.dtype) == ((32, 32, 3), np.uint8, 8, np.int32)
    np.testing.assert_array_equal(image.asnumpy(), PHOTOS[1, 1].transpose(1, 2, 0))
    assert test._label.tolist() == [3, 4]
    folder = write_all(tmp_path / "hundred", small_cifar["cifar100"])
    assert CIFAR100(folder)._label.tolist() == [19, 18]
    fine = CIFAR100(folder, fine_label=True, train=False)
    assert fine._label.tolist() == [11, 22]
    np.testing.assert_array_equal(fine[0][0].asnumpy(), PHOTOS[2, 0].transpose(1, 2, 0))


def test_only_the_files_of_the_part_are_needed(small_cifar, tmp_path):
    folder = write_all(tmp_path, {"test_batch.bin": small_cifar["cifar10"]["test_batch.bin"]})
    assert len(CIFAR10(folder, train=False)) == 2
    with pytest.raises(MissingFileError, match=r"cifar-10-binary.tar.gz, and it could not be downloaded"):
        CIFAR10(folder)


@pytest.mark.parametrize("inside", ["", "cifar-10-batches-bin/"])
def test_archives_that_a_user_brought(small_cifar, tmp_path, inside):
    """MXNet's and the original one, which has a folder."""
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(packed(small_cifar["cifar10"], inside))
    assert len(CIFAR10(tmp_path)) == 10
    assert len(CIFAR10(tmp_path, train=False)) == 2


def test_the_folder_that_unpacking_the_original_archive_makes(small_cifar, tmp_path):
    write_all(tmp_path / "cifar-10-batches-bin", small_cifar["cifar10"])
    assert len(CIFAR10(tmp_path)) == 10
    assert os.listdir(tmp_path) == ["cifar-10-batches-bin"]


def test_the_archive_is_downloaded_once(small_cifar, tmp_path, monkeypatch, capsys):
    archive = packed(small_cifar["cifar10"])
    monkeypatch.setattr(CIFAR10, "archive", datasets.Source("cifar-10-binary.tar.gz", sha1(archive)))
    write_all(tmp_path / "web" / "gluon" / "dataset" / "cifar10", {"cifar-10-binary.tar.gz": archive})
    with published(tmp_path / "web", monkeypatch) as asked:
        assert len(CIFAR10(tmp_path / "new")) == 10
        assert len(CIFAR10(tmp_path / "new", train=False)) == 2
        assert len(asked) == 1
        damaged = tmp_path / "new" / "data_batch_2.bin"
        damaged.write_bytes(damaged.read_bytes()[:3000])
        assert len(CIFAR10(tmp_path / "new")) == 10  # from the archive, which is still there
        assert len(asked) == 1
        damaged.unlink()
        brought = tmp_path / "new" / "cifar-10-binary.tar.gz"
        brought.write_bytes(brought.read_bytes()[:-400])
        assert len(CIFAR10(tmp_path / "new")) == 10
        assert len(asked) == 2


@pytest.mark.parametrize("length", [0, 1, 100, 3000, 20000])
def test_archives_cut_anywhere_leave_no_wrong_file(small_cifar, tmp_path, length, capsys):
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(packed(small_cifar["cifar10"])[:length])
    with pytest.raises((MissingFileError, FileFormatError), match=r"cifar-10-binary\.tar\.gz"):
        CIFAR10(tmp_path)
    for name in set(os.listdir(tmp_path)) - {"cifar-10-binary.tar.gz"}:
        assert (tmp_path / name).read_bytes() == small_cifar["cifar10"][name]


def test_whole_files_with_other_contents_are_left_alone(small_cifar, tmp_path):
    other = dict(small_cifar["cifar10"], **{"data_batch_4.bin": records(PHOTOS[0], [(1,), (2,)])})
    folder = write_all(tmp_path, other)
    with pytest.raises(FileFormatError, match=r"data_batch_4.bin holds 2 images, but not those of CIFAR10"):
        CIFAR10(folder)
    assert (folder / "data_batch_4.bin").read_bytes() == other["data_batch_4.bin"]


def test_trusted_files_that_end_within_an_image(small_cifar, tmp_path, monkeypatch):
    trusting(monkeypatch)
    folder = write_all(tmp_path, small_cifar["cifar10"])
    for data, offset in ((b"", 0), (bytes(3074), 3074)):
        (folder / "test_batch.bin").write_bytes(data)
        with pytest.raises(
            FileFormatError, match=f"test_batch.bin ends at offset {offset}, inside an image; each takes 3073 bytes"
        ):
            CIFAR10(folder, train=False)


# ---- images in files of their own


def picture(color, kind="PNG", size=(4, 3)):
    image = pytest.importorskip("PIL.Image")
    buffer = io.BytesIO()
    image.new("RGB", size, color).save(buffer, kind)
    return buffer.getvalue()


@pytest.fixture
def folders(tmp_path):
    write_all(tmp_path / "b", {"2.png": picture((1, 2, 3)), "10.PNG": picture((4, 5, 6)), "3.jpeg": picture((9, 9, 9), "JPEG")})
    write_all(tmp_path / "a", {"x.jpg": picture((200, 200, 200), "JPEG")})
    (tmp_path / "c").mkdir()
    return tmp_path


def test_folders_are_classes(folders):
    data = ImageFolderDataset(str(folders))
    assert data.synsets == ["a", "b", "c"]
    assert data.items == [
        (str(folders / "a" / "x.jpg"), 0),
        *((str(folders / "b" / name), 1) for name in ("10.PNG", "2.png", "3.jpeg")),
    ]
    assert len(data) == 4
    image, label = data[2]
    assert (image.shape, image.dtype, label) == ((3, 4, 3), np.uint8, 1)
    assert image.asnumpy()[0, 0].tolist() == [1, 2, 3]
    assert ImageFolderDataset(folders, flag=0)[1][0].shape == (3, 4, 1)
    assert ImageFolderDataset(folders, transform=lambda image, label: label * 10)[3] == 10
    assert data[-1][1] == 1
    images, labels = next(iter(DataLoader(data, 4)))
    assert (images.shape, labels.asnumpy().tolist()) == ((4, 3, 4, 3), [0, 1, 1, 1])


def test_what_is_no_class_and_no_image_is_ignored_with_a_warning(folders):
    (folders / "readme.txt").write_text("no folder")
    (folders / "a" / "notes.txt").write_text("no image")
    (folders / "a" / "noext").write_text("no image")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert len(ImageFolderDataset(folders)) == 4
    messages = [str(each.message) for each in caught]
    assert messages == [
        f"Ignoring {folders / 'a' / 'noext'} of type . Only support .jpg, .jpeg, .png",
        f"Ignoring {folders / 'a' / 'notes.txt'} of type .txt. Only support .jpg, .jpeg, .png",
        f"Ignoring {folders / 'readme.txt'}, which is not a directory.",
    ]


def test_images_that_are_damaged_or_gone(folders):
    data = ImageFolderDataset(folders)
    (folders / "b" / "2.png").write_bytes(picture((1, 2, 3))[:40])
    (folders / "b" / "3.jpeg").unlink()
    (folders / "a" / "x.jpg").write_bytes(b"")
    for index, name, error in ((2, "2.png", FileFormatError), (3, "3.jpeg", MissingFileError), (0, "x.jpg", FileFormatError)):
        with pytest.raises(error, match=name):
            data[index]
    assert data[1][0].shape == (3, 4, 3)


def test_lists_of_images(folders):
    (folders / "all.lst").write_text("7\t1.5\tb/2.png\n\n3\t2\t4\ta/x.jpg\n")
    data = ImageListDataset(folders, "all.lst")
    assert len(data) == 2
    assert data[0][0].shape == (3, 4, 3)
    assert [data[i][1].asnumpy().tolist() for i in range(2)] == [[1.5], [2, 4]]
    listed = ImageListDataset(folders, [[3, "b/2.png"], [1, 2, "a/x.jpg"], ([5, 6], "a/x.jpg")], flag=0)
    assert [listed[i][1].asnumpy().tolist() for i in range(3)] == [[3], [1, 2], [5, 6]]
    assert listed[0][0].shape == (3, 4, 1)


def test_lists_without_labels(folders):
    for line in ("3\tb/2.png", "b/2.png", "3\tdog\tb/2.png", "3\t1\t"):
        (folders / "bad.lst").write_text(f"1\t0\tb/2.png\n{line}\n")
        with pytest.raises(FileFormatError, match=r"bad.lst: line 2"):
            ImageListDataset(folders, "bad.lst")
    for entry in (["b/2.png"], "b/2.png", [1], ["dog", "b/2.png"], 5, [1, None]):
        with pytest.raises(ArgumentError, match=r"imglist\[1\]"):
            ImageListDataset(folders, [[0, "b/2.png"], entry])


def test_records_of_images(tmp_path):
    with contextlib.closing(recordio.MXIndexedRecordIO(str(tmp_path / "x.idx"), str(tmp_path / "x.rec"), "w")) as file:
        file.write_idx(0, recordio.pack(recordio.IRHeader(0, 3.0, 0, 0), picture((10, 20, 30))))
        file.write_idx(1, recordio.pack(recordio.IRHeader(0, np.array([1, 2]), 1, 0), picture((1, 1, 1), size=(2, 2))))
        file.write_idx(2, recordio.pack(recordio.IRHeader(0, 5, 2, 0), b"no image"))
        file.write_idx(3, b"short")
    data = ImageRecordDataset(str(tmp_path / "x.rec"))
    assert len(data) == 4
    image, label = data[0]
    assert (image.shape, image.asnumpy()[2, 3].tolist(), label) == ((3, 4, 3), [10, 20, 30], 3)
    assert data[1][1].tolist() == [1, 2]
    assert ImageRecordDataset(tmp_path / "x.rec", 0)[1][0].shape == (2, 2, 1)
    assert ImageRecordDataset(tmp_path / "x.rec", transform=lambda image, label: label)[0] == 3
    for index in (2, 3):
        with pytest.raises(FileFormatError, match=f"x.rec: the record at index {index}"):
            data[index]


@pytest.mark.parametrize(("make", "error", "message"), [
    (lambda root: ImageFolderDataset(root / "none"), MissingFileError, "ImageFolderDataset: there is no folder"),
    (lambda root: ImageFolderDataset(root / "a" / "x.jpg"), MissingFileError, "there is no folder"),
    (lambda root: ImageFolderDataset(root, flag=2), ArgumentError, "flag is 2; choose 1 for colours or 0 for grey"),
    (lambda root: ImageFolderDataset(root, transform=3), ArgumentError, "transform must be a function of image and label, got 3"),
    (lambda root: ImageFolderDataset(5), ArgumentError, "file's name"),
    (lambda root: ImageFolderDataset(root)[4], OutOfRangeError, "has 4 images; there is none at index 4"),
    (lambda root: ImageFolderDataset(root)[1:2], ArgumentError, "looked up one by one, got a slice"),
    (lambda root: ImageListDataset(root), ArgumentError, r"imglist must be a list of \[label, path\], or a file's name, got None"),
    (lambda root: ImageListDataset(root, "none.lst"), MissingFileError, "none.lst"),
    (lambda root: ImageListDataset(root, [[1, "none.png"]])[0], MissingFileError, "none.png"),
    (lambda root: ImageRecordDataset(root / "none.rec"), MissingFileError, "none"),
    (lambda root: MNIST(root, transform="grey"), ArgumentError, "transform must be a function"),
    (lambda root: MNIST(3), ArgumentError, "file's name"),
])  # fmt: skip
def test_bad_arguments(folders, make, error, message):
    with pytest.raises(error, match=message):
        make(folders)
