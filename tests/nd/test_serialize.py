"""Files of arrays: byte for byte as MXNet 1.9.1 writes them, and safe against every damage. Book: chapter 6."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import struct
import subprocess
import sys
import tracemalloc
from typing import Any

import hypothesis.extra.numpy as npst
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import minimx as mx
from minimx import nd
from minimx.base import DTYPE_OF_CODE, ArgumentError, DTypeError, FileFormatError, MissingFileError
from minimx.nd import serialize
from minimx.nd.serialize import V1, V2, V3, decode, encode

HEAD = "12010000000000000000000000000000"
DTYPES = list(DTYPE_OF_CODE.values())

# What MXNet 1.9.1 wrote, behind the first 16 bytes; and the data.
RECORDED: dict[str, tuple[str, Any]] = {
    "list": (
        "0200000000000000c9fa93f9000000000100000003000000000000000100000000000000000000000000803f0000004000004040c9fa93f90000000002000000"
        "01000000000000000200000000000000010000000000000002000000003c00400000000000000000",
        [np.array([1, 2, 3], "float32"), np.array([[1, 2]], "float16")],
    ),
    "dict": (
        "0200000000000000c9fa93f9000000000100000001000000000000000100000000000000060000000100000000000000c9fa93f9000000000100000002000000"
        "00000000010000000000000003000000010002000000000000000100000000000000610200000000000000c3a9",
        {"a": np.array([1], "int64"), "é": np.array([1, 0], "uint8")},
    ),
    "empty": ("00000000000000000000000000000000", []),
    "float64": (
        "0100000000000000c9fa93f9000000000200000001000000000000000100000000000000010000000000000001000000000000000000f83f0000000000000000",
        [np.array([[1.5]])],
    ),
    "int8": (
        "0100000000000000c9fa93f9000000000200000001000000000000000200000000000000010000000000000005000000ff010000000000000000",
        [np.array([[-1, 1]], "int8")],
    ),
    "int32": (
        "0100000000000000c9fa93f9000000000200000001000000000000000200000000000000010000000000000004000000ffffffff010000000000000000000000",
        [np.array([[-1, 1]], "int32")],
    ),
    "bool": (
        "0100000000000000c9fa93f900000000020000000100000000000000020000000000000001000000000000000700000000010000000000000000",
        [np.array([[False, True]])],
    ),
    "no elements": (
        "0100000000000000c9fa93f90000000002000000000000000000000003000000000000000100000000000000000000000000000000000000",
        [np.zeros((0, 3), "float32")],
    ),
    "no axes": (  # saved inside np_shape
        "0300000000000000cafa93f9000000000000000001000000000000000000000000004040cafa93f9000000000100000002000000000000000100000000000000"
        "000000000000803f00000040cafa93f900000000020000000200000000000000000000000000000001000000000000000000000003000000000000000100000"
        "0000000007a01000000000000006f010000000000000065",
        {"z": np.array(3, "float32"), "o": np.array([1, 2], "float32"), "e": np.zeros((2, 0), "float32")},
    ),
}  # fmt: skip


def recorded(name: str) -> bytes:
    return bytes.fromhex(HEAD + RECORDED[name][0])


def of(data: Any) -> tuple[list[np.ndarray], list[str]]:
    """Arrays and names."""
    return (list(data.values()), list(data)) if isinstance(data, dict) else (list(data), [])


def tensors(data: Any) -> Any:
    make = lambda array: nd.array(array, dtype=array.dtype)  # noqa: E731
    return {name: make(array) for name, array in data.items()} if isinstance(data, dict) else [make(array) for array in data]


def equal(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def one(magic: int = V2, *, kind: int | None = 0, axes: int | None = None, shape: tuple[int, ...] = (2,), where: tuple[int, int] = (1, 0),
        code: int = 0, elements: bytes = bytes(8), names: bytes = bytes(8)) -> bytes:  # fmt: skip
    """A file with one array, of which any part may be wrong."""
    array = struct.pack("<I", magic) if kind is None else struct.pack("<Ii", magic, kind)
    axes = len(shape) if axes is None else axes
    array += struct.pack(f"<i{len(shape)}qiii", axes, *shape, *where, code)
    return struct.pack("<QQQ", 0x112, 0, 1) + array + elements + names


# ---- MXNet's bytes


@pytest.mark.parametrize("name", RECORDED)
def test_bytes_of_mxnet(name: str, tmp_path: pathlib.Path) -> None:
    arrays, names = of(RECORDED[name][1])
    assert b"".join(encode(arrays, names)) == recorded(name)
    read, read_names = decode(recorded(name))
    assert read_names == names
    assert all(map(equal, read, arrays))
    assert len(read) == len(arrays)
    file = tmp_path / "file.params"
    nd.save(file, tensors(RECORDED[name][1]))
    assert file.read_bytes() == recorded(name)
    again = nd.load(file)
    arrays_again, names_again = of(again)
    assert names_again == names
    assert all(equal(x.asnumpy(), y) for x, y in zip(arrays_again, arrays, strict=True))


def test_older_versions() -> None:
    """The version without storage types, and the one without a magic, whose lengths are 32 bits wide."""
    numbers = np.array([[1, 2]], "float32")
    middle = one(V1, kind=None, shape=(1, 2), elements=numbers.tobytes())
    oldest = struct.pack("<QQQ", 0x112, 0, 1) + struct.pack("<IIIiii", 2, 1, 2, 1, 0, 0) + numbers.tobytes() + bytes(8)
    for contents in (middle, oldest):
        (array,), names = decode(contents)
        assert equal(array, numbers)
        assert not names


def test_arrays_without_a_shape() -> None:
    """MXNet's NDArray that was never given a shape: nothing follows its 0 axes, except in version 3."""
    for header in (struct.pack("<Iii", V2, 0, 0), struct.pack("<Ii", V1, 0), struct.pack("<I", 0)):
        contents = struct.pack("<QQQ", 0x112, 0, 2) + header * 2 + bytes(8)
        assert [array.shape for array in decode(contents)[0]] == [(0,), (0,)]
    assert [array.shape for array in decode(one(V3, shape=(), elements=bytes(4)))[0]] == [()]


SHAPES = npst.array_shapes(min_dims=0, min_side=0, max_side=4)
ARRAYS = st.lists(st.sampled_from(DTYPES).flatmap(lambda dtype: npst.arrays(dtype, SHAPES)), max_size=4)


@given(ARRAYS, st.data())
def test_any_arrays(arrays: list[np.ndarray], data: st.DataObject) -> None:
    names = data.draw(st.one_of(st.just([]), st.lists(st.text(), min_size=len(arrays), max_size=len(arrays))))
    contents = b"".join(encode(arrays, names))
    read, read_names = decode(contents)
    assert all(equal(x, y) for x, y in zip(read, arrays, strict=True))
    assert read_names == names
    assert b"".join(encode(read, read_names)) == contents


def test_order_in_memory_does_not_matter() -> None:
    array = np.arange(12, dtype="float32").reshape(3, 4)
    for view in (array.T, array[::2, ::-1], np.asfortranarray(array), array.astype(">f4")):
        if view.dtype.isnative:
            assert equal(decode(b"".join(encode([view])))[0][0], np.ascontiguousarray(view))


def test_encode_checks() -> None:
    with pytest.raises(ArgumentError, match="1 arrays have 2 names"):
        encode([np.zeros(1)], ["a", "b"])
    with pytest.raises(DTypeError, match="cannot hold complex128"):
        encode([np.zeros(1, complex)])


# ---- damage

DAMAGED = {
    "other magic": (bytes(16) + recorded("list")[16:], r"byte 0: this is no file of arrays: it begins with 0x0"),
    "reserved": (struct.pack("<QQ", 0x112, 1) + recorded("list")[16:], "byte 0: this is no file of arrays"),
    "nothing": (b"", r"byte 0: this is no file of arrays; the file is empty"),
    "too many arrays": (struct.pack("<QQQ", 0x112, 0, 2**63), r"byte 16: 9223372036854775808 arrays do not fit into the 0 bytes"),
    "too many names": (one(names=struct.pack("<Q", 2**40)), "byte 64: there are 1099511627776 names for 1 arrays"),
    "unknown mark": (one(0xF993FACB), "byte 24: array 0 begins with the unknown mark 0xf993facb"),
    "row_sparse": (one(kind=1), r"byte 24: array 0 is sparse \(row_sparse\), and minimx has dense arrays only"),
    "csr": (one(kind=2), r"byte 24: array 0 is sparse \(csr\)"),
    "storage": (one(kind=-1), "byte 28: array 0 has the unknown storage type -1"),
    "axes": (one(axes=1000), "byte 32: array 0 has 1000 axes"),
    "negative axes": (one(V3, axes=-1), "byte 32: array 0 has -1 axes"),
    "negative length": (one(shape=(-2,)), r"byte 36: array 0 has the impossible shape \(-2,\)"),
    "overflow": (one(shape=(2**32, 2**32)), r"byte 36: array 0 has the impossible shape"),
    "overflow of none": (one(shape=(0, 2**40, 2**40)), r"byte 36: array 0 has the impossible shape"),
    "terabytes": (
        one(shape=(2**40,)),
        r"byte 56: array 0, float32 of shape \(1099511627776,\), takes 4398046511104",
    ),
    "device": (one(where=(4, 0)), r"byte 44: array 0 is on the unknown device \(4, 0\)"),
    "device number": (one(where=(1, -1)), r"byte 44: array 0 is on the unknown device \(1, -1\)"),
    "dtype": (one(code=12), "byte 52: array 0 has the unknown dtype 12"),
    "name's length": (one(names=struct.pack("<QQ", 1, 2**62)), "byte 80: name 0 takes 4611686018427387904 bytes, but 0 are left"),
    "name's letters": (one(names=struct.pack("<QQ1s", 1, 1, b"\xff")), "byte 80: name 0 is no UTF-8"),
    "more": (recorded("list") + b"x", "byte 120: 1 bytes follow the end"),
    "pickle": (b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00\x8c\x07builtins", "byte 0: this is no file of arrays"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage(name: str, tmp_path: pathlib.Path) -> None:
    contents, message = DAMAGED[name]
    with pytest.raises(FileFormatError, match=message):
        decode(contents)
    with pytest.raises(mx.MXNetError, match=f"buffer: {message}"):
        nd.load_frombuffer(contents)
    file = tmp_path / "damaged.params"
    file.write_bytes(contents)
    with pytest.raises(ValueError, match=f"damaged.params: {message}"):
        nd.load(str(file))


@pytest.mark.parametrize("name", RECORDED)
def test_every_cut(name: str) -> None:
    """A file that ends early, at whichever byte, is told from a whole one."""
    whole = recorded(name)
    for length in range(len(whole)):
        with pytest.raises(FileFormatError, match=r"byte \d+: "):
            decode(whole[:length])


def test_every_flipped_bit() -> None:
    """A damaged bit is found, or it makes another valid file: never another error, never memory for sizes that are not there."""
    tracemalloc.start()
    try:
        for whole in (recorded("dict"), recorded("no axes"), one(V1, kind=None)):
            for bit in range(8 * len(whole)):
                damaged = bytearray(whole)
                damaged[bit // 8] ^= 1 << bit % 8
                try:
                    arrays, names = decode(bytes(damaged))
                except FileFormatError:
                    continue
                assert sum(array.nbytes for array in arrays) + sum(len(name.encode()) for name in names) <= len(whole)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_every_flipped_bit_that_shows() -> None:
    """Every damaged bit of marks, counts, storage and numbers of axes is found. Damaged lengths, devices, dtypes, elements and names
    can make another valid file."""
    whole = one(shape=(2,))
    for start, end in [(0, 24), (28, 36), (64, 72)]:
        for bit in range(8 * start, 8 * end):
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            with pytest.raises(FileFormatError):
                decode(bytes(damaged))


@settings(max_examples=300)
@given(st.binary(max_size=120), st.sampled_from([b"", bytes.fromhex(HEAD), recorded("dict")[:24], recorded("dict")[:60]]))
def test_any_bytes(rest: bytes, start: bytes) -> None:
    with contextlib.suppress(FileFormatError):
        decode(start + rest)


@settings(max_examples=300)
@given(st.sampled_from(sorted(RECORDED)), st.data())
def test_any_damage(name: str, data: st.DataObject) -> None:
    """Words of the file replaced by sizes that tend to hurt."""
    damaged = bytearray(recorded(name))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(damaged) - 8))
        word = data.draw(st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1]))
        damaged[at : at + 8] = struct.pack("<Q", word)
    with contextlib.suppress(FileFormatError):
        decode(bytes(damaged))


class Shortened(io.BytesIO):
    """A file that another program cuts while it is read."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(size)[:-1]


class Emptied(io.BytesIO):
    """The same, when the headers have been read."""

    def readinto(self, buffer: Any) -> int:
        return 0


@pytest.mark.parametrize("kind", [Shortened, Emptied])
def test_file_that_shrinks(kind: type[io.BytesIO]) -> None:
    whole = recorded("list")
    with pytest.raises(FileFormatError, match="the file ended while"):
        serialize.loaded(serialize.Reader(kind(whole), len(whole), "file"))


# ---- NDArrays


def test_what_save_takes(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "x"
    nd.save(file, nd.ones((2, 3)))
    loaded = nd.load(file)
    assert isinstance(loaded, list)
    assert [array.shape for array in loaded] == [(2, 3)]
    nd.save(file, (nd.ones(1), nd.ones(2)))
    assert len(nd.load(file)) == 2
    nd.save(file, {})
    assert nd.load(file) == []
    for data, error in [
        (3, TypeError),
        (None, ValueError),
        ({1: nd.ones(1)}, TypeError),
        ({"a": np.ones(1)}, TypeError),
        ([1], TypeError),
    ]:
        with pytest.raises(error, match=r"nd\.save: data"):
            nd.save(file, data)
    with pytest.raises(TypeError, match="a file's name is wanted"):
        nd.save(3, nd.ones(1))
    with pytest.raises(TypeError, match="a file's name is wanted"):
        nd.load(b"x")
    with pytest.raises(TypeError, match="bytes are wanted"):
        nd.load_frombuffer("x")
    assert nd.load(file) == [], "a refused save left the file as it was"


def test_buffers() -> None:
    for kind in (bytes, bytearray, memoryview):
        a, e = nd.load_frombuffer(kind(recorded("dict"))).values()
        assert (a.dtype, e.dtype) == (np.int64, np.uint8)
    with pytest.raises(mx.MXNetError):
        nd.load_frombuffer(recorded("dict")[:-10])


def test_missing_file(tmp_path: pathlib.Path) -> None:
    for error in (MissingFileError, mx.MXNetError, FileNotFoundError):
        with pytest.raises(error, match="there is no file"):
            nd.load(tmp_path / "none")
    with pytest.raises(MissingFileError, match=r"the folder .*none is not there"):
        nd.save(tmp_path / "none" / "file", nd.ones(1))


def test_views_and_pending_values(tmp_path: pathlib.Path) -> None:
    """What is saved is the value when save is called, of a part of an array too."""
    x = nd.arange(12).reshape((3, 4))
    y = x * 2
    nd.save(tmp_path / "x", {"row": x[1], "sum": y + 1, "transposed": x.T})
    x[:] = 0
    loaded = nd.load(tmp_path / "x")
    numbers = np.arange(12, dtype="float32").reshape(3, 4)
    np.testing.assert_array_equal(loaded["row"].asnumpy(), numbers[1])
    np.testing.assert_array_equal(loaded["sum"].asnumpy(), 2 * numbers + 1)
    np.testing.assert_array_equal(loaded["transposed"].asnumpy(), numbers.T)


def test_failed_array(tmp_path: pathlib.Path) -> None:
    """Saving waits for the values: an array that failed raises its error, and the file stays."""
    file = tmp_path / "x"
    nd.save(file, nd.ones(1))
    before = file.read_bytes()
    with pytest.raises(mx.MXNetError, match="scale"):
        nd.save(file, [nd.ones(1), nd.random.normal(0, -1, (2, 2))])
    assert file.read_bytes() == before
    assert os.listdir(tmp_path) == ["x"]


def test_large_file(tmp_path: pathlib.Path) -> None:
    """Elements are neither copied to write nor twice to read: little memory beyond the arrays."""
    big = nd.random.uniform(shape=(1 << 22,))
    big.wait_to_read()
    file = tmp_path / "big"
    tracemalloc.start()
    nd.save(file, big)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.reset_peak()
    (loaded,) = nd.load(file)
    assert tracemalloc.get_traced_memory()[1] < (1 << 24) + (1 << 20)
    tracemalloc.stop()
    np.testing.assert_array_equal(loaded.asnumpy(), big.asnumpy())


def test_devices(tmp_path: pathlib.Path) -> None:
    """The device is written; a GPU's array comes back to it if it is there, any other to cpu(0), as in MXNet."""
    file = tmp_path / "x"
    nd.save(file, [nd.ones(1, ctx=mx.cpu(1)), nd.ones(1, ctx=mx.cpu_pinned())])
    assert struct.unpack_from("<ii", file.read_bytes(), 44) == (1, 1)
    assert [array.context for array in nd.load(file)] == [mx.cpu(0), mx.cpu(0)]
    with mx.device.simulate_gpus(2):
        nd.save(file, [nd.ones((50, 500), ctx=mx.gpu(1))])
        assert struct.unpack_from("<ii", file.read_bytes(), 52) == (2, 1)
        (loaded,) = nd.load(file)
        assert loaded.context == mx.gpu(1)
        assert (loaded + 1).asnumpy().sum() == 50_000
    with mx.device.simulate_gpus(1):
        assert nd.load(file)[0].context == mx.cpu(0)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are a matter of POSIX")
def test_pipe(tmp_path: pathlib.Path) -> None:
    """What cannot seek is read at once, and written to directly."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = subprocess.Popen([sys.executable, "-c", f"from minimx import nd; nd.save({str(pipe)!r}, dict(a=nd.ones(3)))"])
    assert nd.load(pipe)["a"].asnumpy().tolist() == [1, 1, 1]
    assert writer.wait(60) == 0
    assert not pipe.is_file()


def test_two_arrays_of_one_name() -> None:
    """A dict holds one of them: the other must not vanish without a word."""
    buffer = b"".join(encode([np.ones(2, np.float32)] * 2, ["a", "a"]))
    assert decode(buffer)[1] == ["a", "a"]
    with pytest.raises(FileFormatError, match="two arrays have the name 'a'"):
        nd.load_frombuffer(buffer)


def test_buffers_and_names_of_odd_kinds(tmp_path: pathlib.Path) -> None:
    buffer = b"".join(encode([np.ones(2, np.float32)]))
    doubled = bytes(byte for pair in zip(buffer, buffer) for byte in pair)
    assert nd.load_frombuffer(memoryview(doubled)[::2])[0].asnumpy().tolist() == [1, 1]
    for buf in (None, "text", 5, np.frombuffer(buffer, np.uint8)):
        with pytest.raises(ArgumentError, match="bytes are wanted"):
            nd.load_frombuffer(buf)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="cannot be written as UTF-8"):
        nd.save(tmp_path / "file", {"\udcff": nd.ones((1,))})
    with pytest.raises(ArgumentError, match=r"data\['b'\] must be an NDArray, got None"):
        nd.save(tmp_path / "file", {"a": nd.ones((1,)), "b": None})  # type: ignore[dict-item]
    assert not list(tmp_path.iterdir())
