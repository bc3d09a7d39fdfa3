"""`mx.recordio`: files of records, in which data sets of many small pieces (usually images) are one large file to the disk.

MXRecordIO goes through such a file from the beginning to the end; with an index beside it, it is a table (MXIndexedRecordIO). `pack` and
`unpack` put a header (IRHeader: labels and numbers) before the bytes of an image. Files travel both ways between MXNet and this module,
which reads nothing but these formats: nothing is ever unpickled. The formats, and what becomes of files that are half written, are in
recordfile.py.
"""

from __future__ import annotations

import numbers
import os
import struct
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import codec, files
from .base import ArgumentError, DTypeError, FileFormatError, MXNetError, UnknownNameError, shown
from .recordfile import Bytes, RecordReader, RecordWriter, read_index

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["IRHeader", "MXIndexedRecordIO", "MXRecordIO", "pack", "pack_img", "unpack", "unpack_img"]

reopening = threading.Lock()  # held while a file is opened again after a fork


class RecordModeError(ArgumentError, AssertionError):
    """Reading a file that is being written, or writing one that is being read. (MXNet asserts it: hence the second base.)"""


class ForkedError(MXNetError):
    """A file that was opened before this process was forked."""


class MXRecordIO:
    """A file of records, read (`flag="r"`) or written (`flag="w"`) from the beginning to the end.

    It may be used in a `with` statement; if that is left by an error, a file that was being written stays recognizably incomplete. A
    process that was forked cannot go on with it (reading at keys excepted), but may `reset()` it. **Raises** MissingFileError;
    FileFormatError, with the offset, where a file is damaged or cut off: whatever was read before is right.
    **Source** MXNet `recordio.MXRecordIO`, which also closes a file that is pickled.

    >>> import tempfile; path = tempfile.mkdtemp() + "/data.rec"
    >>> with MXRecordIO(path, "w") as record:
    ...     record.write(b"a record")
    >>> MXRecordIO(path, "r").read()
    b'a record'
    """

    def __init__(self, uri: files.PathLike, flag: str) -> None:
        self.uri = files.as_path(uri)
        self.flag = flag
        self.pid: int | None = None
        self.is_open = False
        self.open()

    # ---- opening and closing

    def open(self) -> None:
        """Open the file, which is empty then if it is to be written."""
        if self.flag not in ("r", "w"):
            raise ArgumentError(f"recordio: flag={shown(self.flag)}; choose 'r' to read or 'w' to write")
        self.close()
        self.writable = self.flag == "w"
        self._stream: RecordReader | RecordWriter = self._opened()
        # Closes the file when this object is forgotten, and when the program ends.
        self._closing = weakref.finalize(self, self._stream.close)
        self.pid = os.getpid()
        self.is_open = True

    def _opened(self) -> RecordReader | RecordWriter:
        return RecordWriter(self.uri, None) if self.writable else RecordReader(self.uri)

    def close(self) -> None:
        """Close the file; what was written is complete then."""
        if not self.is_open:
            return
        self.is_open = False
        self.pid = None
        self._closing()

    def reset(self) -> None:
        """Begin anew: at the first record, or with an empty file."""
        self.close()
        self.open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        if kind is not None and self.is_open and isinstance(self._stream, RecordWriter):
            self._stream.abandon()
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        if self.is_open and self.writable:
            raise ArgumentError(f"recordio: {self.uri} is being written and cannot be copied or pickled; close it first")
        return {key: value for key, value in self.__dict__.items() if key not in ("_stream", "_closing")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        was_open, self.is_open = self.is_open, False
        if was_open:
            self.open()

    # ---- records

    def write(self, buf: Bytes) -> None:
        """Append a record. **Args** `buf`: bytes, fewer than 2^29."""
        writer = self._writer()
        if not isinstance(buf, (bytes, bytearray, memoryview)):
            hint = "; encode text, as in text.encode()" if isinstance(buf, str) else ""
            raise DTypeError(f"recordio: a record is bytes, got {shown(buf)}{hint}")
        writer.write(buf)

    def read(self) -> bytes | None:
        """The next record, or None when there is no more."""
        return self._reader().next()

    def tell(self) -> int:
        """The offset, in bytes, at which the next record begins that is read or written."""
        return self._writer().offset if self.writable else self._reader().offset

    def _writer(self) -> RecordWriter:
        self._require("write")
        assert isinstance(self._stream, RecordWriter)
        return self._stream

    def _reader(self, reopen: bool = False) -> RecordReader:
        self._require("read", reopen)
        assert isinstance(self._stream, RecordReader)
        return self._stream

    def _require(self, what: str, reopen: bool = False) -> None:
        """Raise an error unless the file is open in this process, to do `what`."""
        if not self.is_open:
            raise ArgumentError(f"recordio: {self.uri} is closed; open() it again, or make a new object")
        if self.writable != (what == "write"):
            mode = "written" if self.writable else "read"
            raise RecordModeError(f"recordio: {self.uri} is being {mode}; to {what} it, open it with flag={what[0]!r}")
        if self.pid != os.getpid():
            if not reopen:
                raise ForkedError(
                    f"recordio: {self.uri} was opened in another process, which it would share its place in the file with; reset() it"
                )
            with reopening:
                if self.pid != os.getpid():
                    self.reset()


class MXIndexedRecordIO(MXRecordIO):
    """A file of records with an index, so that a record can be read by its key.

    **Args** `idx_path`: the index, a text file; `uri`: the file of records; `flag`: "r" or "w"; `key_type`: what makes a key of a text.
    Threads may share it; a forked process opens the files again. **Raises** as MXRecordIO; KeyError for an unknown key.
    **Source** MXNet `recordio.MXIndexedRecordIO`.

    >>> import tempfile; path = tempfile.mkdtemp() + "/data.rec"
    >>> with MXIndexedRecordIO(path + ".idx", path, "w") as record:
    ...     record.write_idx(7, b"seven")
    >>> MXIndexedRecordIO(path + ".idx", path, "r").read_idx(7)
    b'seven'
    """

    def __init__(self, idx_path: files.PathLike, uri: files.PathLike, flag: str, key_type: Callable[[Any], Any] = int) -> None:
        self.idx_path = files.as_path(idx_path)
        self.idx: dict[Any, int] = {}  # offsets by key
        self.keys: list[Any] = []  # in the order of the file
        self.key_type = key_type
        super().__init__(uri, flag)

    def _opened(self) -> RecordReader | RecordWriter:
        entries = [] if self.writable else read_index(self.idx_path, self.key_type)
        self.idx = dict(entries)
        self.keys = [key for key, _ in entries]
        return RecordWriter(self.uri, self.idx_path) if self.writable else RecordReader(self.uri)

    def seek(self, idx: Any) -> None:
        """Let `read` go on with the record of the key `idx`."""
        self._reader(reopen=True).offset = self._offset_of(idx)

    def read_idx(self, idx: Any) -> bytes:
        """The record of the key `idx`."""
        reader = self._reader(reopen=True)
        offset = self._offset_of(idx)
        record = reader.next(offset)
        if record is None:
            raise reader.error(
                offset, f"{self.idx_path} says that the record of key {shown(idx)} is here, but the file ends before"
            )
        return record

    def write_idx(self, idx: Any, buf: Bytes) -> None:
        """Append a record with the key `idx`."""
        try:
            key = self.key_type(idx)
        except (ValueError, TypeError):
            raise ArgumentError(f"recordio: {shown(idx)} cannot be a key; {shown(self.key_type)} does not take it") from None
        if any(mark in str(key) for mark in "\t\r\n"):
            raise ArgumentError(f"recordio: a key is one word or line in the index, without tabs; got {shown(key)}")
        offset = self.tell()
        self.write(buf)
        self._writer().index.append(f"{key}\t{offset}\n")
        self.idx[key] = offset
        self.keys.append(key)

    def _offset_of(self, idx: Any) -> int:
        try:
            return self.idx[idx]
        except (KeyError, TypeError):
            few = ", ".join(shown(key) for key in self.keys[:3]) + (", ..." if len(self.keys) > 3 else "")
            raise UnknownNameError(
                f"recordio: {self.idx_path} has no key {shown(idx)}; its {len(self.keys)} keys are {few or 'none'}"
            ) from None


# ---- labels and images


class IRHeader(NamedTuple):
    """What stands before the bytes of an image in a record: `label`, a number, or numbers as a NumPy array; `flag`, how many of these there
    are, 0 for a number; `id` and `id2`, two numbers that say which image it is. **Source** MXNet `recordio.IRHeader`."""

    flag: int
    label: Any
    id: int
    id2: int

    def __repr__(self) -> str:
        return f"HEADER(flag={self.flag!r}, label={self.label!r}, id={self.id!r}, id2={self.id2!r})"


IR_HEADER = struct.Struct("<IfQQ")


def pack(header: tuple[Any, ...], s: Bytes) -> bytes:
    """A record of `header` and the bytes `s`. The header's flag is set as its label needs it.

    **Raises** ArgumentError for a header that is no IRHeader, or for labels that are no numbers. **Source** MXNet `recordio.pack`.

    >>> unpack(pack(IRHeader(0, [1, 2], 7, 0), b"pixels"))
    (HEADER(flag=2, label=array([1., 2.], dtype=float32), id=7, id2=0), b'pixels')
    """
    if not isinstance(s, (bytes, bytearray, memoryview)):
        raise DTypeError(f"recordio.pack: the bytes of an image are wanted, got {shown(s)}")
    try:
        header = IRHeader(*header)
        if isinstance(header.label, numbers.Number):
            return IR_HEADER.pack(0, header.label, header.id, header.id2) + bytes(s)
        labels = header.label.asnumpy() if hasattr(header.label, "asnumpy") else header.label
        labels = np.asarray(labels, "<f4")
        return IR_HEADER.pack(labels.size, 0, header.id, header.id2) + labels.tobytes() + bytes(s)
    except (TypeError, ValueError, OverflowError, struct.error) as error:
        raise ArgumentError(
            f"recordio.pack: {shown(header)} is no header ({error}); it is (flag, label, id, id2): "
            "a number or numbers as label, whole numbers from 0 as id and id2"
        ) from None


def unpack(s: Bytes) -> tuple[IRHeader, bytes]:
    """The header and the bytes of an image that `pack` put into the record `s`.

    **Raises** FileFormatError if it is too short for that. **Source** MXNet `recordio.unpack`.
    """
    if not isinstance(s, (bytes, bytearray, memoryview)):
        raise DTypeError(f"recordio.unpack: a record is bytes, got {shown(s)}")
    if len(s) < IR_HEADER.size:
        raise FileFormatError(
            f"recordio.unpack: the record has {len(s)} bytes, the header of an image takes {IR_HEADER.size}; was it made by pack()?"
        )
    header = IRHeader(*IR_HEADER.unpack_from(s))
    begin = IR_HEADER.size + 4 * header.flag
    if begin > len(s):
        raise FileFormatError(
            f"recordio.unpack: the record has {len(s)} bytes, its header and {header.flag} labels take {begin}; was it made by pack()?"
        )
    if header.flag:
        header = header._replace(label=np.frombuffer(s, "<f4", header.flag, IR_HEADER.size).astype(np.float32, copy=False))
    return header, bytes(s[begin:])


def pack_img(header: tuple[Any, ...], img: Any, quality: int = 95, img_fmt: str = ".jpg") -> bytes:
    """A record of `header` and an image. Needs Pillow (`pip install 'minimx[image]'`).

    **Args** `img (H, W)`, `(H, W, 1)`, `(H, W, 3)` or `(H, W, 4)`: an array of uint8 with OpenCV's order of colours, blue, green, red; for
    an image of `mx.image`, red first, give `img[:, :, ::-1]`. `quality`: of JPEG, 1 to 100; of PNG, how hard to compress, 1 to 9.
    `img_fmt`: ".jpg" or ".png". **Source** MXNet `recordio.pack_img`.
    """
    return pack(header, codec.encode(codec.swapped(codec.as_pixels("recordio.pack_img", img)), img_fmt, quality))


def unpack_img(s: Bytes, iscolor: int = -1) -> tuple[IRHeader, np.ndarray[Any, Any]]:
    """The header and the image in the record `s`. Needs Pillow (`pip install 'minimx[image]'`).

    **Args** `iscolor`: 1 for colours, blue, green, red as in OpenCV; 0 for grey `(H, W)`; -1 as the image is: grey, colours, or colours
    and opacity. **Raises** FileFormatError for what is no image (MXNet gives None for it). **Source** MXNet `recordio.unpack_img`.
    """
    header, data = unpack(s)
    pixels = codec.decode(data, iscolor, upright=iscolor != codec.AS_STORED, name="recordio.unpack_img")
    return header, codec.swapped(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
