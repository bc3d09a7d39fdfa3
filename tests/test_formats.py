"""What a file looks like that a reader cannot read, and what every reader says of it."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import formats, gluon, nd
from minimx.base import FileFormatError, FolderError, MissingFileError


def npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, weight=np.ones(2))
    return file.getvalue()


def npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.ones(2))
    return file.getvalue()


def zipped(name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, "x")
    return file.getvalue()


def safetensors() -> bytes:
    head = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    return struct.pack("<Q", len(head)) + head + bytes(4)


#: Bytes of a file, and what is said of them.
SAMPLES: dict[str, tuple[bytes, str]] = {
    "npy": (npy(), "numpy.load opens it"),
    "npz": (npz(), "numpy.load opens it"),
    "torch": (zipped("archive/data.pkl"), "torch.load opens it"),
    "zip": (zipped("a.txt"), "a zip archive: unpack it"),
    "pickle": (pickle.dumps({"a": 1}), "a pickle, which can run anything"),
    "safetensors": (safetensors(), "safetensors.numpy.load_file opens it"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(40), "h5py opens it"),
    "gzip": (gzip.compress(b"x"), "a compressed file"),
    "bz2": (bz2.compress(b"x"), "a compressed file"),
    "png": (b"\x89PNG\r\n\x1a\n" + bytes(20), "mx.image.imread opens it"),
    "jpeg": (b"\xff\xd8\xff\xe0" + bytes(20), "mx.image.imread opens it"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "`git lfs pull` brings the file"),
    "html": (b"<!DOCTYPE html><html>404</html>", "a page of the web"),
    "json": (b'{"nodes": [], "heads": []}', "sym.load opens it if it is a graph"),
    "notebook": (b'{\n "cells": [{"cell_type": "code"}]}', "a Jupyter notebook"),
    "onnx": (b"\x08\x08\x12\x06minimx:\x20", "mx.contrib.onnx.import_model reads it"),
    "idx": (b"\0\0\x08\x01\0\0\0\x01\x05", "mx.io.MNISTIter reads it"),
    "empty": (b"", "the file is empty"),
}


@pytest.mark.parametrize("kind", SAMPLES)
def test_what_it_looks_like(kind: str) -> None:
    head, text = SAMPLES[kind]
    assert text in formats.looks_like(head)


def test_our_own_files_are_known(tmp_path: Path) -> None:
    nd.save(tmp_path / "a.params", [nd.ones(2)])
    writer = mx.recordio.MXRecordIO(str(tmp_path / "a.rec"), "w")
    writer.write(b"abc")
    writer.close()
    assert "nd.load opens it" in formats.looks_like((tmp_path / "a.params").read_bytes())
    assert "MXRecordIO" in formats.looks_like((tmp_path / "a.rec").read_bytes())


@pytest.mark.parametrize("head", [b"hello", b"1 2:3\n", b"\x00" * 20, bytes(range(200, 256))])
def test_of_others_nothing_is_said(head: bytes) -> None:
    assert formats.looks_like(head) == ""


def test_a_reader_is_not_sent_to_itself() -> None:
    assert formats.looks_like(b"{}", own="sym.load") == ""


def load_parameters(path: str) -> None:
    net = gluon.nn.Dense(2, in_units=2)
    net.load_parameters(path)


def load_states(path: str) -> None:
    net = gluon.nn.Dense(2, in_units=2)
    net.initialize()
    gluon.Trainer(net.collect_params(), "sgd", kvstore=None).load_states(path)


READERS: dict[str, Callable[[str], Any]] = {
    "nd.load": nd.load,
    "sym.load": mx.sym.load,
    "load_parameters": load_parameters,
    "load_states": load_states,
    "ParameterDict.load": lambda path: gluon.ParameterDict().load(path),
    "SymbolBlock.imports": lambda path: gluon.SymbolBlock.imports(path, ["data"]),
    "MXRecordIO": lambda path: mx.recordio.MXRecordIO(path, "r").read(),
    "MNISTIter": lambda path: mx.io.MNISTIter(image=path, label=path),
    "imread": mx.image.imread,
}


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_says_what_it_was_given(reader: str, tmp_path: Path) -> None:
    if reader == "imread":
        pytest.importorskip("PIL")
    path = tmp_path / "file"
    for kind in ("npz", "safetensors", "lfs"):
        head, text = SAMPLES[kind]
        path.write_bytes(head)
        with pytest.raises(FileFormatError) as caught:
            READERS[reader](str(path))
        assert str(path) in str(caught.value)
        assert text in str(caught.value)


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_says_what_is_not_there(reader: str, tmp_path: Path) -> None:
    if reader == "imread":
        pytest.importorskip("PIL")
    (tmp_path / "net-0000.params").write_bytes(b"")
    with pytest.raises(FolderError, match=r"it is a folder; name a file in it, such as net-0000\.params"):
        READERS[reader](str(tmp_path))
    with pytest.raises(MissingFileError, match=r"there is no file .*net-0001\.params; was .*net-0000\.params meant\?"):
        READERS[reader](str(tmp_path / "net-0001.params"))
    with pytest.raises(MissingFileError, match=r"there is no file .*: the folder .*none is not there"):
        READERS[reader](str(tmp_path / "none" / "deeper" / "net"))


def test_the_other_of_two_files(tmp_path: Path) -> None:
    """The commonest mistake: parameters for a graph, and the other way round."""
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(2, in_units=3))
    net.initialize()
    net.hybridize()
    net(nd.ones((1, 3)))
    graph, parameters = net.export(str(tmp_path / "net"))
    with pytest.raises(FileFormatError, match=r"JSON: sym\.load opens it if it is a graph"):
        nd.load(graph)
    with pytest.raises(FileFormatError, match=r"a file of arrays: nd\.load opens it, and a network's load_parameters"):
        mx.sym.load(parameters)
