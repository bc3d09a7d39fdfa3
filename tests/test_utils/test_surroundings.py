"""Devices, environment variables, errors, repeated attempts, silence; and data sets in their files."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import hashlib
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import minimx as mx
from minimx import nd, test_utils as tu
from minimx.base import ArgumentError, FileFormatError
from minimx.gluon import utils
from minimx.gluon.data.vision.datasets import MNIST, Source


def test_devices():
    assert tu.default_context() == mx.cpu()
    try:
        tu.set_default_context(mx.cpu(1))
        assert tu.default_context() == nd.ones((1,)).context == mx.cpu(1)
    finally:
        tu.set_default_context(mx.cpu())
    with mx.device.simulate_gpus(2):
        assert list(tu.list_gpus()) == [0, 1]
    assert tu.is_op_runnable()
    assert not tu.has_tvm_ops()


def test_environment(monkeypatch):
    monkeypatch.setenv("MXNET_A", "1")
    monkeypatch.delenv("MXNET_B", raising=False)
    with tu.environment("MXNET_A", "2"):
        assert os.environ["MXNET_A"] == "2"
    seen = []
    with contextlib.suppress(RuntimeError), tu.environment({"MXNET_A": None, "MXNET_B": "x"}):
        seen += ["MXNET_A" in os.environ, mx.util.getenv("MXNET_B")]
        raise RuntimeError
    assert seen == [False, "x"]
    assert os.environ["MXNET_A"] == "1"
    assert "MXNET_B" not in os.environ
    for wrong in ((), ("A",), ("A", "B", "C")):
        with pytest.raises(ArgumentError, match="a name and a value"), tu.environment(*wrong):
            pass
    monkeypatch.setenv("CD_JOB", "1")
    assert tu.is_cd_run()


def test_errors_that_must_come():
    tu.assert_exception(int, ValueError, "x")
    with pytest.raises(AssertionError, match="int raised no ValueError"):
        tu.assert_exception(int, ValueError, "1")
    with pytest.raises(TypeError):
        tu.assert_exception(int, ValueError, None)


def test_attempts():
    calls = []

    @tu.retry(3)
    def third_time(arrives):
        """A test."""
        calls.append(arrives)
        assert len(calls) == arrives
        return "done"

    assert third_time(3) == "done"
    assert third_time.__name__ == "third_time"
    calls.clear()
    with pytest.raises(AssertionError):
        third_time(4)
    assert len(calls) == 3
    for wrong in (0, "3"):
        with pytest.raises(ArgumentError, match="a number of attempts"):
            tu.retry(wrong)


def test_silence():
    code = (
        "import os, sys, minimx.test_utils as tu\n"
        "with tu.discard_stderr():\n    print('lost', file=sys.stderr); os.write(2, b'lost, too')\n"
        "print('kept', file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "kept\n"


def test_silence_where_there_is_no_file(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with tu.discard_stderr():
        pass


def test_an_iterator_that_gives_one_batch():
    batches = tu.DummyIter(mx.io.NDArrayIter(np.arange(8.0), np.zeros(8), 4))
    assert batches.batch_size == 4
    assert batches.provide_data[0].shape == (4,)
    drawn = [next(batches) for _ in range(5)]
    assert all(batch.data[0].asnumpy().tolist() == [0, 1, 2, 3] for batch in drawn)


# ---- data


def test_download(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(utils, "download", lambda url, path, overwrite=False, retries=5: asked.append((url, path)) or path)
    assert tu.download("https://example.org/a.bin") == "a.bin"
    assert tu.download("https://example.org/a.bin", "b.bin", str(tmp_path)) == str(tmp_path / "b.bin")
    assert tu.download("https://example.org/a.bin", dirname="folder") == os.path.join("folder", "a.bin")


def idx(numbers):
    header = bytes([0, 0, 8, numbers.ndim]) + b"".join(length.to_bytes(4, "big") for length in numbers.shape)
    return header + numbers.astype(np.uint8).tobytes()


@pytest.fixture
def small_mnist(tmp_path, monkeypatch):
    """MNIST's four files with 6 and 4 images, known by their checksums, in the folder `data` and in the default one."""
    rng = np.random.default_rng(0)
    sources = {}
    for train, name, count in ((True, "train", 6), (False, "t10k", 4)):
        made = []
        for kind, numbers in (("images-idx3", rng.integers(0, 256, (count, 28, 28))), ("labels-idx1", np.arange(count))):
            packed = gzip.compress(idx(numbers), mtime=0)
            for folder in (tmp_path / "data", tmp_path / "home" / "datasets" / "mnist"):
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{name}-{kind}-ubyte.gz").write_bytes(packed)
            made.append(Source(f"{name}-{kind}-ubyte.gz", hashlib.sha1(packed).hexdigest()))
        sources[train] = tuple(made)
    monkeypatch.setattr(MNIST, "sources", sources)
    monkeypatch.setenv("MXNET_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def test_mnist_in_memory(small_mnist):
    found = tu.get_mnist()
    assert found["train_data"].shape == (6, 1, 28, 28)
    assert found["train_data"].dtype == np.float32
    assert 0.9 < found["train_data"].max() <= 1
    assert found["test_label"].tolist() == [0, 1, 2, 3]
    assert found["test_label"].dtype == np.int8


@pytest.mark.parametrize(("shape", "batch"), [((1, 28, 28), (2, 1, 28, 28)), ((784,), (2, 784))])
def test_mnist_in_batches(small_mnist, shape, batch):
    train, val = tu.get_mnist_iterator(2, shape)
    assert next(train).data[0].shape == batch
    assert sorted(label for each in val for label in each.label[0].asnumpy()) == [0, 1, 2, 3]
    assert os.path.isfile("data/train-images-idx3-ubyte")
    part, _ = tu.get_mnist_iterator(1, shape, num_parts=2, part_index=1)
    assert len(list(part)) == 3


def test_cifar_as_files_of_records(tmp_path, monkeypatch):
    """The images and labels of the data set, in the files that MXNet's examples read."""
    pixels = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), np.uint8)

    class Three:
        def __init__(self, train):
            self.train = train

        def __getitem__(self, key):
            return mx.nd.array(pixels, dtype="uint8"), np.array([7, 0, 9], np.int32)

    monkeypatch.setattr("minimx.test_utils.data.CIFAR10", Three)
    monkeypatch.chdir(tmp_path)
    tu.get_cifar10()
    assert sorted(os.listdir("data/cifar")) == ["test.lst", "test.rec", "train.lst", "train.rec"]
    batch = mx.io.ImageRecordIter(path_imgrec="data/cifar/train.rec", data_shape=(3, 32, 32), batch_size=3).next()
    np.testing.assert_array_equal(batch.data[0].asnumpy(), pixels.transpose(0, 3, 1, 2))
    assert batch.label[0].asnumpy().tolist() == [7, 0, 9]
    with open("data/cifar/test.lst") as file:
        assert file.read() == "0\t7.0\ttest/0.png\n1\t0.0\ttest/1.png\n2\t9.0\ttest/2.png\n"
    written = os.stat("data/cifar/train.rec").st_mtime_ns
    tu.get_cifar10()
    assert os.stat("data/cifar/train.rec").st_mtime_ns == written


def test_archives(tmp_path, monkeypatch):
    """An archive is unpacked once, and what is broken is not taken for it."""
    downloads = []

    def download(url, path, **options):
        downloads.append(url)
        if url.endswith(".zip"):
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("inside.txt", "text")
        else:
            with open(path, "wb") as file:
                file.write(bz2.compress(b"numbers") if url.endswith(".bz2") else b"nonsense")
        return path

    monkeypatch.setattr(utils, "download", download)
    for _ in range(2):
        tu.get_zip_data(str(tmp_path), "https://example.org/a.zip", "a.zip")
        tu.get_bz2_data(str(tmp_path), "b", "https://example.org/b.bz2", "b.bz2")
    assert downloads == ["https://example.org/a.zip", "https://example.org/b.bz2"]
    assert (tmp_path / "inside.txt").read_text() == "text"
    assert (tmp_path / "b").read_bytes() == b"numbers"
    assert not (tmp_path / "b.bz2").exists()
    with pytest.raises(FileFormatError, match="no ZIP archive"):
        tu.get_zip_data(str(tmp_path), "https://example.org/broken", "c.zip")
    with pytest.raises(FileFormatError, match="no whole bzip2 file"):
        tu.get_bz2_data(str(tmp_path), "d", "https://example.org/broken", "d.packed")
    assert not (tmp_path / "c.zip").exists()
    assert not (tmp_path / "d").exists()
