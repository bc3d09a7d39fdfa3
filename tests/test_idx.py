"""IDX files whole and broken."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as arrays

from minimx import idx
from minimx.base import ArgumentError, FileFormatError

DTYPES = ["uint8", "int8", "int16", "int32", "float32", "float64"]


@given(data=st.data(), dtype=st.sampled_from(DTYPES), packed=st.booleans())
def test_written_and_read_again_is_equal(tmp_path_factory, data, dtype, packed):
    shape = data.draw(arrays.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5))
    array = data.draw(arrays.arrays(dtype, shape))
    path = tmp_path_factory.mktemp("idx") / "file.gz"
    idx.write_idx(path, array)
    if not packed:
        path.write_bytes(gzip.decompress(path.read_bytes()))
    again = idx.read_idx(path)
    assert again.dtype == array.dtype
    assert again.dtype.isnative
    assert again.flags.writeable
    np.testing.assert_array_equal(again, array)


@pytest.mark.parametrize("array", [np.zeros((), "uint8"), np.zeros(3, "float16"), np.zeros(3, "int64")])
def test_what_idx_has_no_code_for(tmp_path, array):
    with pytest.raises(ArgumentError, match="IDX has no code"):
        idx.write_idx(tmp_path / "file.gz", array)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def small(tmp_path):
    """A file of 2 x 3 int16, gzipped, and its unpacked bytes."""
    path = tmp_path / "small.gz"
    idx.write_idx(path, np.arange(6, dtype="int16").reshape(2, 3))
    return path, gzip.decompress(path.read_bytes())


@pytest.mark.parametrize("packed", [True, False])
def test_a_file_cut_at_any_byte_is_an_error(small, packed):
    path, unpacked = small
    whole = path.read_bytes() if packed else unpacked
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(FileFormatError, match=r"offset \d+|before byte \d+"):
            idx.read_idx(path)


def test_any_flipped_bit_of_a_gzipped_file_is_seen_or_harmless(small):
    path, _ = small
    whole, array = path.read_bytes(), idx.read_idx(path)
    harmless = 0
    for bit in range(8 * len(whole)):
        broken = bytearray(whole)
        broken[bit // 8] ^= 1 << bit % 8
        path.write_bytes(broken)
        try:
            np.testing.assert_array_equal(idx.read_idx(path), array)
            harmless += 1
        except FileFormatError:
            pass
    assert harmless < 64  # the time, the system and the flags in gzip's header: 7 bytes of no consequence


def test_any_flipped_bit_of_the_header_is_seen_or_gives_an_array(small):
    path, unpacked = small
    for bit in range(8 * 12):
        broken = bytearray(unpacked)
        broken[bit // 8] ^= 1 << bit % 8
        path.write_bytes(broken)
        with pytest.raises(FileFormatError):
            idx.read_idx(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "starts with bytes none at offset 0"),
        (b"PK\x03\x04....", "starts with bytes 50 4b 03 04 at offset 0"),
        (b"\0\0\x07\x01\0\0\0\0", "not an IDX file"),
        (b"\0\0\x08\x00", "not an IDX file"),
        (b"\0\0\x08\x03\0\0\0\x01\0\0", "ends at offset 10, inside the lengths of its 3 axes"),
        (b"\0\0\x08\x01\0\0\0\x04abc", "ends at offset 11; shape .4,. needs 12 bytes"),
        (b"\0\0\x08\x01\0\0\0\x02abc", "goes on after offset 10, where shape .2,. ends"),
        (b"\0\0\x0e\x02" + b"\xff" * 8, "bytes; at most 1073741824 are read"),
    ],
)
def test_messages_say_what_and_where(tmp_path, content, message):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=message):
        idx.read_idx(path)
    path.write_bytes(gzip.compress(content))
    with pytest.raises(FileFormatError, match=message):
        idx.read_idx(path)


def test_a_header_that_promises_terabytes_allocates_nothing(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"\0\0\x08\x04" + b"\0\xff\xff\xff" * 4 + b"x")
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match="ends at offset"):
            idx.read_idx(path, limit=1 << 200)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_a_shape_without_elements_that_no_array_can_have(tmp_path: Path) -> None:
    """NumPy bounds the other lengths, too."""
    (tmp_path / "file").write_bytes(bytes((0, 0, 8, 4)) + np.array([0, 2**32 - 1, 2**32 - 1, 2**32 - 1], ">u4").tobytes())
    with pytest.raises(FileFormatError, match="which no array can have"):
        idx.read_idx(tmp_path / "file")
