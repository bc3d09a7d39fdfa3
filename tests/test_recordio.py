"""Files of records: MXNet 1.9.1's bytes, which were recorded, both ways; damage is noticed; threads, forks and kills do no harm."""

from __future__ import annotations

import copy
import errno
import gc
import os
import pickle
import signal
import struct
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import minimx as mx
from minimx.base import ArgumentError, DTypeError, FileFormatError, MissingFileError, MXNetError
from minimx.recordfile import RecordReader, framed
from minimx.recordio import IRHeader, MXIndexedRecordIO, MXRecordIO, pack, pack_img, unpack, unpack_img

posix = pytest.mark.skipif(os.name != "posix", reason="fork and signals of POSIX")
MAGIC = struct.pack("<I", 0xCED7230A)

# Records, and how MXNet writes them (hexadecimal): of several parts where the magic stands at a multiple of 4.
FRAMED = {
    b"": "0a23d7ce00000000",
    b"a": "0a23d7ce0100000061000000",
    b"abcd": "0a23d7ce0400000061626364",
    MAGIC: "0a23d7ce00000020" "0a23d7ce00000060",
    b"x" + MAGIC + b"yyy": "0a23d7ce08000000" "780a23d7ce797979",
    b"abcd" + MAGIC + b"q": "0a23d7ce0400002061626364" "0a23d7ce0100006071000000",
    MAGIC + MAGIC: "0a23d7ce00000020" "0a23d7ce00000040" "0a23d7ce00000060",
    b"12345678" + MAGIC + b"abcd" + MAGIC + b"1":
        "0a23d7ce080000203132333435363738" "0a23d7ce0400004061626364" "0a23d7ce0100006031000000",
    bytes(5): "0a23d7ce050000000000000000000000",
}  # fmt: skip


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "data.rec")


def written(path, *records):
    with MXRecordIO(path, "w") as record:
        for each in records:
            record.write(each)
    return path


def all_of(path):
    with MXRecordIO(path, "r") as record:
        return list(iter(record.read, None))


# ---- the format


def test_bytes_as_mxnet(path):
    written(path, *FRAMED)
    with open(path, "rb") as file:
        assert file.read().hex() == "".join(FRAMED.values())
    assert all_of(path) == list(FRAMED)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.sampled_from([MAGIC, b"a", b"bc", b"\n#", b"wxyz"]), max_size=8).map(b"".join), max_size=6))
def test_what_is_written_is_read(tmp_path_factory, records):
    path = written(str(tmp_path_factory.mktemp("any") / "data.rec"), *records)
    assert all_of(path) == records
    assert os.path.getsize(path) == sum(len(framed(each)) for each in records)
    for each in records:  # the magic stands at a multiple of 4 only where a part begins
        words = np.frombuffer(framed(each), "<u4")
        assert (words == 0xCED7230A).sum() == 1 + sum(each[at : at + 4] == MAGIC for at in range(0, len(each), 4))


def test_what_a_record_may_be(path):
    written(path, bytearray(b"ab"), memoryview(b"cd"))
    assert all_of(path) == [b"ab", b"cd"]
    with MXRecordIO(path, "w") as record:
        for value, hint in (("text", r"encode text, as in text.encode\(\)"), (None, "got None"), (3, "got 3")):
            with pytest.raises(DTypeError, match=hint):
                record.write(value)


def test_too_long(path, monkeypatch):
    monkeypatch.setattr("minimx.recordfile.LONGEST", 10)
    with MXRecordIO(path, "w") as record, pytest.raises(ArgumentError, match="a record of 11 bytes is too long; at most 10"):
        record.write(bytes(11))


# ---- damage


def test_every_way_to_be_cut_off(path):
    whole = b"".join(framed(each) for each in (b"abc", b"wxyz" + MAGIC + b"q"))
    ends = {0: 0, 12: 1, len(whole): 2}  # at these a file has so many whole records
    for end in range(len(whole)):
        with open(path, "wb") as file:
            file.write(whole[:end])
        if end in ends:
            assert len(all_of(path)) == ends[end]
            continue
        with MXRecordIO(path, "r") as record:
            if end > 12:
                assert record.read() == b"abc"
            for _ in range(2):  # and again: nobody who goes on reading gets something else, or waits for ever
                with pytest.raises(FileFormatError, match=r"data.rec: byte \d+: .* left; the file is cut off"):
                    record.read()


@pytest.mark.parametrize(("data", "message"), [
    (b"\x00" * 16, "byte 0: a record begins with 0xced7230a, here is 0x0"),
    (framed(b"abcd") + b"zzzz" * 2, "byte 12: a record begins with 0xced7230a, here is 0x7a7a7a7a"),
    (MAGIC + struct.pack("<I", 3 << 29), "byte 0: a record begins here, but this is part 3 of one"),
    (MAGIC + struct.pack("<I", 1 << 29) + framed(b""), "byte 8: a record of several parts goes on here, but this is part 0"),
    (MAGIC + struct.pack("<I", (1 << 29) - 1) + b"ab", "byte 0: a record of 536870912 bytes begins here, but 2 are left"),
])  # fmt: skip
def test_damage(path, data, message):
    with open(path, "wb") as file:
        file.write(data)
    with pytest.raises(FileFormatError, match=message):
        all_of(path)


@posix
@pytest.mark.parametrize(("count", "length"), [(1, 0), (3, 8), (4, 5)])
def test_a_killed_writer_leaves_no_file_that_looks_whole(path, count, length):
    program = f"""
import os, signal
from minimx.recordio import MXIndexedRecordIO
record = MXIndexedRecordIO({path + ".idx"!r}, {path!r}, "w")
for key in range({count}):
    record.write_idx(key, bytes({length}))
os.kill(os.getpid(), signal.SIGKILL)
"""
    with open(path + ".idx", "w") as file:
        file.write("0\t0\n")  # an index of something else
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == -signal.SIGKILL
    with MXRecordIO(path, "r") as record:
        assert [record.read() for _ in range(count - 1)] == [bytes(length)] * (count - 1)
        with pytest.raises(FileFormatError):
            record.read()
    with pytest.raises(MissingFileError):
        MXIndexedRecordIO(path + ".idx", path, "r")


def test_an_error_inside_with(path):
    def fail():
        with MXIndexedRecordIO(path + ".idx", path, "w") as record:
            record.write_idx(1, b"abc")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not os.path.exists(path + ".idx")
    with pytest.raises(FileFormatError):
        all_of(path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux that is full")
def test_a_full_disk():
    record = MXRecordIO("/dev/full", "w")
    with pytest.raises(OSError, match="/dev/full"):
        record.write(b"abcd")
    record.close()


def test_a_failed_write_leaves_nothing(path, monkeypatch):
    record = MXRecordIO(path, "w")
    record.write(b"one")
    monkeypatch.setattr(record._stream, "file", Failing(record._stream.file))
    with pytest.raises(OSError, match="no space"):
        record.write(b"two")
    monkeypatch.undo()
    record.write(b"three")
    record.close()
    assert all_of(path) == [b"one", b"three"]


class Failing:
    """A file that takes three bytes, and no more."""

    def __init__(self, file):
        self.file = file
        self.taken = 0

    def write(self, data):
        if self.taken:
            raise OSError(errno.ENOSPC, "no space")
        self.taken = self.file.write(data[:3])
        return self.taken

    def __getattr__(self, name):
        return getattr(self.file, name)


# ---- opening, closing


def test_forgotten_writers_are_closed(path):
    record = MXIndexedRecordIO(path + ".idx", path, "w")
    record.write_idx(5, b"five")
    del record
    gc.collect()
    assert MXIndexedRecordIO(path + ".idx", path, "r").read_idx(5) == b"five"


def test_a_program_that_ends_closes_its_files(path):
    program = f"import minimx; r = minimx.recordio.MXIndexedRecordIO({path + '.idx'!r}, {path!r}, 'w'); r.write_idx(1, b'x')"
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=60)
    assert MXIndexedRecordIO(path + ".idx", path, "r").read_idx(1) == b"x"


def test_reset_and_tell(path):
    record = MXRecordIO(path, "w")
    record.write(b"lost")
    record.reset()
    assert record.tell() == 0
    record.write(b"abc")
    assert record.tell() == 12
    record.close()
    record.close()
    reader = MXRecordIO(path, "r")
    assert (reader.read(), reader.tell(), reader.read(), reader.read()) == (b"abc", 12, None, None)
    reader.reset()
    assert reader.read() == b"abc"
    assert (reader.uri, reader.flag, reader.writable, reader.is_open) == (path, "r", False, True)


@pytest.mark.parametrize(("do", "error", "message"), [
    (lambda path: MXRecordIO(path, "a"), ValueError, "flag='a'; choose 'r' to read or 'w' to write"),
    (lambda path: MXRecordIO(path + "x", "r"), FileNotFoundError, "there is no file"),
    (lambda path: MXRecordIO(path + "x/y", "w"), FileNotFoundError, "cannot be written: the folder .* is not there"),
    (lambda path: MXRecordIO("", "r"), ArgumentError, "cannot be a file's name"),
    (lambda path: MXIndexedRecordIO(path + "x", path, "r"), FileNotFoundError, "there is no file"),
    (lambda path: MXIndexedRecordIO(path + "x/y", path + "z", "w"), FileNotFoundError, "the folder .* is not there"),
    (lambda path: MXIndexedRecordIO(os.path.dirname(path), path + "z", "w"), ArgumentError, "it is a folder"),
    (lambda path: MXRecordIO(path, "r").write(b""), AssertionError, "is being read; to write it, open it with flag='w'"),
    (lambda path: MXRecordIO(path, "w").read(), AssertionError, "is being written; to read it, open it with flag='r'"),
    (lambda path: pickle.dumps(MXRecordIO(path, "w")), ArgumentError, "is being written and cannot be copied or pickled"),
])  # fmt: skip
def test_bad_use(path, do, error, message):
    written(path, b"a")
    with pytest.raises(error, match=message) as raised:
        do(path)
    assert isinstance(raised.value, MXNetError)


def test_closed(path):
    record = MXRecordIO(written(path, b"a"), "r")
    record.close()
    with pytest.raises(ValueError, match="is closed; open"):
        record.read()
    record.open()
    assert record.read() == b"a"


def test_pickle_and_copy_open_the_file_again(path):
    written(path, b"a", b"b")
    record = MXRecordIO(path, "r")
    assert record.read() == b"a"
    for again in (pickle.loads(pickle.dumps(record)), copy.deepcopy(record), copy.copy(record)):
        assert again.read() == b"a"
    assert record.read() == b"b"  # MXNet closes it
    record.close()
    assert not pickle.loads(pickle.dumps(record)).is_open


# ---- the index


def test_index_as_mxnet(tmp_path):
    path, idx = str(tmp_path / "a.rec"), str(tmp_path / "a.idx")
    record = MXIndexedRecordIO(idx, path, "w")
    for key in range(3):
        record.write_idx(key, b"abc" * key)
    assert (record.keys, record.idx, record.tell()) == ([0, 1, 2], {0: 0, 1: 8, 2: 20}, 36)
    record.write(b"without a key")
    record.close()
    with open(idx) as file:
        assert file.read() == "0\t0\n1\t8\n2\t20\n"
    reader = MXIndexedRecordIO(idx, path, "r")
    assert (reader.keys, reader.idx) == ([0, 1, 2], {0: 0, 1: 8, 2: 20})
    assert (reader.read_idx(np.int64(1)), reader.read()) == (b"abc", b"abcabc")
    reader.seek(2)
    assert (reader.read(), reader.read(), reader.read()) == (b"abcabc", b"without a key", None)
    with pytest.raises(KeyError, match="has no key 7; its 3 keys are 0, 1, 2"):
        reader.read_idx(7)
    with pytest.raises(KeyError, match=r"has no key \[1\]"):
        reader.seek([1])


def test_keys_that_are_text(path):
    record = MXIndexedRecordIO(path + ".idx", path, "w", key_type=str)
    for key, value in (("a b", b"1"), ("ü", b"2"), ("a b", b"3")):
        record.write_idx(key, value)
    with pytest.raises(ArgumentError, match="without tabs"):
        record.write_idx("a\tb", b"")
    record.close()
    reader = MXIndexedRecordIO(path + ".idx", path, "r", key_type=str)
    assert (reader.keys, reader.read_idx("a b"), reader.read_idx("ü")) == (["a b", "ü", "a b"], b"3", b"2")


def test_a_key_that_is_none(path):
    record = MXIndexedRecordIO(path + ".idx", path, "w")
    with pytest.raises(ValueError, match="'x' cannot be a key; the type int does not take it"):
        record.write_idx("x", b"")


@pytest.mark.parametrize("line", ["2", "x\t8", "2\tx", "2\t-8", "2\t1e3", "\xff\t8", f"2\t{1 << 70}"])
def test_damaged_index(path, line):
    written(path, b"a")
    with open(path + ".idx", "w", encoding="latin1") as file:
        file.write(f"1\t0\n\n{line}\n")
    with pytest.raises(
        FileFormatError, match=r"data\.rec\.idx: byte 5: a line of an index is a key, a tab and an offset, got b'"
    ):
        MXIndexedRecordIO(path + ".idx", path, "r")


def test_an_index_of_another_file(path):
    written(path, b"abcdefgh")
    with open(path + ".idx", "w") as file:
        file.write("1\t8\n2\t16\n3\t1000\n")
    reader = MXIndexedRecordIO(path + ".idx", path, "r")
    for key, message in (
        (1, "byte 8: a record begins with"),
        (2, "byte 16: .*idx says that the record of key 2 is here"),
        (3, "byte 1000"),
    ):
        with pytest.raises(FileFormatError, match=message):
            reader.read_idx(key)


# ---- threads and processes


def many(path):
    records = [bytes([number % 256]) * (number % 97) + MAGIC * (number % 3) for number in range(200)]
    with MXIndexedRecordIO(path + ".idx", path, "w") as writer:
        for key, record in enumerate(records):
            writer.write_idx(key, record)
    return MXIndexedRecordIO(path + ".idx", path, "r"), records


def read_by_threads(reader, records):
    wrong = []

    def read(seed):
        for key in np.random.default_rng(seed).integers(0, len(records), 300):
            if reader.read_idx(key) != records[key]:
                wrong.append(key)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def test_threads_share_a_reader(path):
    assert read_by_threads(*many(path)) == []


@posix
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python 3.12: a fork beside other threads; it is what is tested
def test_a_forked_process_opens_the_file_again(path):
    reader, records = many(path)
    reader.read_idx(7)
    child = os.fork()
    if not child:
        status = 1
        try:
            try:
                reader.read()
            except RuntimeError as error:
                status = 0 if "was opened in another process" in str(error) and not read_by_threads(reader, records) else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert reader.read() == records[8]


@posix
def test_a_forked_process_leaves_what_is_written_alone(path):
    program = f"""
import os, sys
from minimx.recordio import MXRecordIO
record = MXRecordIO({path!r}, "w")
record.write(b"one")
if not os.fork():
    try:
        record.write(b"of the child")
    except RuntimeError:
        sys.exit(0)  # with all that Python does at the end
os.wait()
record.write(b"two")
"""
    subprocess.run([sys.executable, "-W", "error::ResourceWarning", "-c", program], check=True, timeout=60)
    assert all_of(path) == [b"one", b"two"]


def test_reader_is_usable_by_itself(path):
    reader = RecordReader(written(path, b"a", b"b"))
    assert (reader.next(), reader.offset, reader.next(12), reader.next(), reader.next(0)) == (b"a", 12, b"b", None, b"a")
    reader.close()


# ---- labels


def test_pack_as_mxnet():
    assert (
        pack(IRHeader(0, [1, 2], 3, 4), b"abc").hex() == "0200000000000000030000000000000004000000000000000000803f00000040616263"
    )
    assert pack((9, 1.5, 3, 4), b"abc").hex() == "000000000000c03f03000000000000000400000000000000616263"
    header, image = unpack(pack(IRHeader(0, mx.nd.array([1, 2]), 3, 4), b"abc"))
    assert (header.flag, header.label.tolist(), header.label.dtype, header.id, header.id2, image) == (
        2,
        [1, 2],
        np.float32,
        3,
        4,
        b"abc",
    )
    assert unpack(pack((9, 1.5, 3, 4), b"abc")) == ((0, 1.5, 3, 4), b"abc")
    assert repr(unpack(pack((9, 1.5, 3, 4), b""))[0]) == "HEADER(flag=0, label=1.5, id=3, id2=4)"
    assert unpack(pack((0, [], 1, 0), b"x"))[1] == b"x"


@pytest.mark.parametrize(("header", "message"), [
    ((0, "a", 0, 0), "could not convert string to float"),
    ((0, 1), r"\(0, 1\) is no header"),
    (3, "3 is no header"),
    ((0, 1, -1, 0), "whole numbers from 0"),
    ((0, 1, 0, 1 << 64), "is no header"),
    ((0, 1, 0.5, 0), "is no header"),
    ((0, 1e300, 0, 0), "is no header"),
])  # fmt: skip
def test_bad_headers(header, message):
    with pytest.raises(ArgumentError, match=message):
        pack(header, b"")


def test_bad_records():
    with pytest.raises(DTypeError, match="the bytes of an image are wanted, got 'text'"):
        pack((0, 1, 0, 0), "text")
    with pytest.raises(DTypeError, match="a record is bytes, got 'text'"):
        unpack("text")
    with pytest.raises(FileFormatError, match="the record has 23 bytes, the header of an image takes 24"):
        unpack(bytes(23))
    with pytest.raises(FileFormatError, match="its header and 2 labels take 32; was it made by pack"):
        unpack(pack((0, [1, 2], 0, 0), b"")[:-1])


# ---- images, in OpenCV's order of colours


def test_images_go_in_and_come_out():
    pixels = (np.arange(5 * 7 * 3) * 37 % 256).reshape(5, 7, 3).astype(np.uint8)
    header, image = unpack_img(pack_img((0, 3, 1, 0), pixels, quality=9, img_fmt=".png"))
    assert (header.label, header.id) == (3, 1)
    np.testing.assert_array_equal(image, pixels)
    np.testing.assert_array_equal(
        mx.image.imdecode(unpack(pack_img((0, 3, 1, 0), pixels, img_fmt=".PNG"))[1]).asnumpy(), pixels[:, :, ::-1]
    )
    for other in (pixels[:, :, 0], np.dstack([pixels, pixels[:, :, :1]])):
        np.testing.assert_array_equal(unpack_img(pack_img((0, 3, 1, 0), other, img_fmt=".png"))[1], other)
    grey = unpack_img(pack_img((0, 3, 1, 0), pixels, img_fmt=".png"), iscolor=0)[1]
    assert grey.shape == (5, 7)
    smooth = np.full((16, 16, 3), (30, 90, 200), np.uint8)
    np.testing.assert_allclose(unpack_img(pack_img((0, 3, 1, 0), smooth, 100))[1].astype(int), smooth.astype(int), atol=3)
    assert len(pack_img((0, 3, 1, 0), pixels, 10)) < len(pack_img((0, 3, 1, 0), pixels, 95))


@pytest.mark.parametrize(("image", "how", "error", "message"), [
    (np.zeros((2, 2, 3)), {}, DTypeError, r"dtype float64; files have uint8, from 0 to 255: use astype\('uint8'\)"),
    (np.zeros((2, 2, 2), np.uint8), {}, mx.base.ShapeError, r"shape \(2, 2, 2\); \(H, W\), \(H, W, 1\), \(H, W, 3\) or"),
    (np.zeros((0, 2, 3), np.uint8), {}, mx.base.ShapeError, "at least one pixel"),
    ([[1]], {}, DTypeError, "an image is an array"),
    (np.zeros((2, 2, 3), np.uint8), {"img_fmt": ".bmp"}, ArgumentError, "cannot be written as '.bmp'; choose '.jpg' or '.png'"),
    (np.zeros((2, 2, 3), np.uint8), {"quality": 101}, ArgumentError, "quality is 101"),
])  # fmt: skip
def test_images_that_cannot_be_packed(image, how, error, message):
    with pytest.raises(error, match=message):
        pack_img((0, 1, 0, 0), image, **how)


def test_no_image_in_a_record():
    with pytest.raises(FileFormatError, match="unpack_img: 3 bytes that begin with b'abc' are no image"):
        unpack_img(pack((0, 1, 0, 0), b"abc"))
    with pytest.raises(ArgumentError, match="2 does not say which channels are wanted"):
        unpack_img(pack((0, 1, 0, 0), b"abc"), iscolor=2)


def test_an_index_that_is_not_there_is_told_from_the_records(tmp_path):
    with MXRecordIO(str(tmp_path / "a.rec"), "w") as writer:
        writer.write(b"abc")
    with pytest.raises(
        MissingFileError, match=r"there is no file .*a\.idx; it is the index that .* write beside the records; without it"
    ):
        MXIndexedRecordIO(str(tmp_path / "a.idx"), str(tmp_path / "a.rec"), "r")
