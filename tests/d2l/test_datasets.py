"""IDX files whole and broken, the order of sources, the download, and the batches."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import threading
from pathlib import Path

import numpy as np
import pytest

import minimx as mx
from minimx.base import ArgumentError, FileFormatError, MXNetError
from minimx.d2l import datasets

from . import make_subset

# ---- the subset inside minimx


def test_the_subset_is_what_it_says():
    loaded = datasets.load_fashion_mnist(source="package", announce=False)
    assert [array.shape for array in loaded] == [(6000, 28, 28), (6000,), (1000, 28, 28), (1000,)]
    np.testing.assert_array_equal(np.bincount(loaded.train_labels), [600] * 10)
    np.testing.assert_array_equal(np.bincount(loaded.test_labels), [100] * 10)
    digests = [hashlib.sha256(array.tobytes()).hexdigest()[:16] for array in loaded]
    assert digests == ["2b17438af55637db", "f16e201ddc15b401", "3d7f6d64869a3f2d", "6b25654537ff83dd"]
    assert "MIT License" in (datasets.PACKAGE_FOLDER / "LICENSE").read_text()


@pytest.mark.skipif(not datasets.DEBIAN_FOLDER.is_dir(), reason="needs the whole data set: Debian's dataset-fashion-mnist")
def test_the_subset_made_again_is_equal():
    again = make_subset.subset_of(datasets.load_fashion_mnist(source="debian", announce=False))
    for made, shipped in zip(again, datasets.load_fashion_mnist(source="package", announce=False)):
        np.testing.assert_array_equal(made, shipped)
    for name, digest in datasets.SHA256.items():
        assert datasets._unpacked_sha256(datasets.DEBIAN_FOLDER / name) == digest


# ---- where the data comes from


def make_files(folder: Path, count: int) -> Path:
    """A tiny data set of `count` training images and one test image, blank, in the real format."""
    folder.mkdir(parents=True, exist_ok=True)
    labels = np.arange(count, dtype="uint8") % 10
    for name, array in zip(
        datasets.FILES, (np.zeros((count, 28, 28), "uint8"), labels, np.zeros((1, 28, 28), "uint8"), labels[:1])
    ):
        datasets.write_idx(folder / name, array)
    return folder


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Debian's folder and the cache, neither of which exists yet."""
    monkeypatch.setattr(datasets, "DEBIAN_FOLDER", tmp_path / "debian")
    monkeypatch.setenv("MINIMX_HOME", str(tmp_path / "home"))
    return tmp_path / "debian", tmp_path / "home" / "datasets" / "fashion-mnist"


def size_of(**how):
    return len(datasets.load_fashion_mnist(**how).train_labels)


def test_the_order_of_sources(places, tmp_path, capsys):
    debian, cache = places
    assert size_of() == 6000
    make_files(cache, 11)
    assert size_of() == 11
    make_files(debian, 12)
    assert size_of() == 12
    assert size_of(download=True) == 12
    assert size_of(source="cache") == 11
    assert size_of(source="package") == 6000
    assert size_of(root=make_files(tmp_path / "mine", 13)) == 13
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "Fashion-MNIST: 6,000 training and 1,000 test images (the subset inside minimx)"
    assert [line.split("(")[1] for line in said[1:]] == [
        "the cache)",
        "Debian's package dataset-fashion-mnist)",
        "Debian's package dataset-fashion-mnist)",
        "the cache)",
        "the subset inside minimx)",
        "the folder that was named)",
    ]


def test_unpacked_files_do_as_well(places, tmp_path):
    folder = make_files(tmp_path / "mine", 5)
    for path in list(folder.iterdir()):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    assert size_of(root=folder, announce=False) == 5


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"root": "nowhere"}, "nowhere has no train-images-idx3-ubyte.gz; check the path"),
        ({"source": "debian"}, "apt-get install dataset-fashion-mnist"),
        ({"source": "cache"}, "fill it with download=True"),
    ],
)
def test_a_named_source_that_is_absent_is_an_error(places, how, message):
    with pytest.raises(datasets.DataNotFoundError, match=message) as caught:
        datasets.load_fashion_mnist(**how)
    assert isinstance(caught.value, MXNetError)
    assert isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize(
    ("how", "message"), [({"source": "web"}, "choose 'debian'"), ({"root": ".", "source": "cache"}, "exclude")]
)
def test_bad_arguments_of_sources(how, message):
    with pytest.raises(ArgumentError, match=message):
        datasets.load_fashion_mnist(**how)


def test_files_that_do_not_belong_together(places, tmp_path):
    folder = make_files(tmp_path / "mine", 5)
    datasets.write_idx(folder / datasets.FILES[1], np.zeros(4, "uint8"))
    with pytest.raises(FileFormatError, match=r"labels of shape \(4,\) beside images of shape \(5, 28, 28\)"):
        datasets.load_fashion_mnist(folder)
    datasets.write_idx(folder / datasets.FILES[1], np.array([1, 2, 10, 3, 4], "uint8"))
    with pytest.raises(FileFormatError, match="label 10 at index 2"):
        datasets.load_fashion_mnist(folder)


# ---- the download


@pytest.fixture
def server(tmp_path, monkeypatch, places):
    """A web server on this machine with a tiny data set, in the place of the real one. Its folder."""
    folder = make_files(tmp_path / "web", 7)

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(folder))

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as web:
        thread = threading.Thread(target=web.serve_forever)
        thread.start()
        monkeypatch.setattr(datasets, "URL", f"http://127.0.0.1:{web.server_port}/")
        monkeypatch.setattr(datasets, "SHA256", {name: datasets._unpacked_sha256(folder / name) for name in datasets.FILES})
        yield folder
        web.shutdown()
        thread.join()


def test_a_download_fills_the_cache_and_is_used_again(server, places, capsys):
    _, cache = places
    assert size_of(download=True) == 7
    assert sorted(path.name for path in cache.iterdir()) == sorted(datasets.FILES)
    assert size_of() == 7
    (cache / datasets.FILES[0]).write_bytes(b"damaged")
    with pytest.raises(FileFormatError):
        datasets.load_fashion_mnist()
    assert size_of(source="download") == 7  # mends it
    captured = capsys.readouterr()
    assert [line.split("(")[1] for line in captured.out.splitlines()] == ["downloaded)", "the cache)", "downloaded)"]
    assert captured.err == ""  # no bar: nobody watches


def test_a_download_goes_where_it_is_told(server, places, tmp_path):
    assert size_of(root=tmp_path / "there", download=True, announce=False) == 7
    assert size_of(root=tmp_path / "there", announce=False) == 7
    assert not places[1].exists()


def test_a_download_of_something_else_leaves_nothing(server, places):
    datasets.write_idx(server / datasets.FILES[0], np.ones((7, 28, 28), "uint8"))
    with pytest.raises(FileFormatError, match=r"SHA-256 is .*, not"):
        datasets.load_fashion_mnist(download=True)
    assert list(places[1].iterdir()) == []
    (server / datasets.FILES[0]).write_bytes(b"<html>log in to this network</html>")
    with pytest.raises(FileFormatError, match="not to be had"):
        datasets.load_fashion_mnist(download=True)
    (server / datasets.FILES[0]).unlink()
    with pytest.raises(OSError, match="404"):
        datasets.load_fashion_mnist(download=True)
    assert list(places[1].iterdir()) == []


# ---- batches


def test_batches_of_training_and_of_testing():
    train, test = mx.d2l.load_data_fashion_mnist(256, source="package", announce=False)
    assert (len(train), len(test)) == (24, 4)
    seen = [(X.shape, y.shape) for X, y in test]
    assert seen == [((256, 1, 28, 28), (256,))] * 3 + [((232, 1, 28, 28), (232,))]
    X, y = next(iter(test))
    assert (X.dtype, y.dtype) == (np.float32, np.int32)
    np.testing.assert_array_equal(X.asnumpy()[:, 0], test.images[:256].astype("float32") / 255)
    np.testing.assert_array_equal(y.asnumpy(), test.labels[:256])
    assert 0 == X.asnumpy().min() < X.asnumpy().max() == 1


def test_a_pass_has_every_image_once_in_an_order_that_the_seed_decides():
    images = np.zeros((10, 2, 2), "uint8")
    batches = datasets.Batches(images, np.arange(10, dtype="uint8"), 4, shuffle=True)

    def a_pass():
        return [int(label) for _, y in batches for label in y.asnumpy()]

    mx.random.seed(3)
    first, second = a_pass(), a_pass()
    assert sorted(first) == sorted(second) == list(range(10))
    assert first != second
    mx.random.seed(3)
    assert a_pass() == first


@pytest.mark.parametrize(("batch_size", "resize"), [(0, None), (-1, None), (4, 0)])
def test_bad_sizes_of_batches(batch_size, resize):
    with pytest.raises(ArgumentError, match="must be at least 1"):
        mx.d2l.load_data_fashion_mnist(batch_size, resize, source="package", announce=False)


@pytest.mark.parametrize(("length", "size"), [(6, 9), (6, 4), (28, 96), (5, 5), (4, 1), (1, 3)])
def test_resizing_is_bilinear(length, size):
    image = np.random.default_rng(0).random((2, length, length + 2), dtype="float32")
    expected = np.empty((2, size, size))
    for i in range(size):
        for j in range(size):
            y = min(max((i + 0.5) * length / size - 0.5, 0), length - 1)
            x = min(max((j + 0.5) * (length + 2) / size - 0.5, 0), length + 1)
            top, left = int(y), int(x)
            bottom, right = min(top + 1, length - 1), min(left + 1, length + 1)
            upper = image[:, top, left] * (1 - (x - left)) + image[:, top, right] * (x - left)
            lower = image[:, bottom, left] * (1 - (x - left)) + image[:, bottom, right] * (x - left)
            expected[:, i, j] = upper * (1 - (y - top)) + lower * (y - top)
    np.testing.assert_allclose(datasets.resize_images(image, size), expected, atol=1e-6)


def test_resizing_agrees_with_mxnet():
    # recorded from MXNet 1.9.1's transforms.Resize(9) on uint8, which rounds to whole levels in fixed point
    image = (np.arange(36) * 7).reshape(1, 6, 6).astype("float32")
    row = [0, 3, 8, 13, 17, 22, 27, 31, 35]
    np.testing.assert_allclose(datasets.resize_images(image, 9)[0, 0], row, atol=1)


def test_resized_batches():
    _, test = mx.d2l.load_data_fashion_mnist(500, resize=14, source="package", announce=False)
    assert [X.shape for X, _ in test] == [(500, 1, 14, 14)] * 2


def test_names_of_classes():
    assert mx.d2l.get_fashion_mnist_labels(mx.nd.array([0, 9, 5])) == ["t-shirt", "ankle boot", "sandal"]
    assert mx.d2l.get_text_labels(np.array([1])) == ["trouser"]


def test_names_that_are_no_files() -> None:
    """A number would be a file that is open already: 0 is the keyboard."""
    for name in (0, None, "", "a\0b"):
        with pytest.raises(ArgumentError, match="name"):
            datasets.read_idx(name)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="name"):
        datasets.load_fashion_mnist(b"folder")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="write_idx: a NumPy array is wanted, got"):
        datasets.write_idx("file", [1, 2])  # type: ignore[arg-type]


def test_class_numbers_that_do_not_exist() -> None:
    for labels in ([-1], [10], [0.5], mx.nd.array([11])):
        with pytest.raises(IndexError, match="there is no class"):
            datasets.get_fashion_mnist_labels(labels)
    for labels in ("90", None, 3, [[1, 2]], ["a"]):
        with pytest.raises(ArgumentError, match="a list of class numbers is wanted"):
            datasets.get_fashion_mnist_labels(labels)  # type: ignore[arg-type]


def test_sizes_of_batches_and_images() -> None:
    for batch_size, resize in ((0, None), (4, 0), (4, 10**9)):
        with pytest.raises(ArgumentError, match="resize"):
            datasets.load_data_fashion_mnist(batch_size, resize, source="package", announce=False)
    with pytest.raises(ArgumentError, match=r"batch_size must be an int, got 2\.5"):
        datasets.load_data_fashion_mnist(2.5, source="package", announce=False)  # type: ignore[arg-type]
