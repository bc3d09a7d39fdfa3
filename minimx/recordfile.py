"""The format of files of records, and what reads and writes them (mx.recordio opens these for users).

A record is any bytes. In the file each stands behind a header, and is filled up with zeros to a multiple of 4 bytes:

    uint32 magic 0xced7230a | uint32 part << 29 | length | the bytes | 0 to 3 zeros

Wherever in such a file a reader begins, the next magic at a multiple of 4 is the beginning of a record. So that this holds, a record that
has the magic itself at such a place is cut there: the magic is left out, and the parts follow each other, each with a header; `part` is
1 in the first one, 2 in those between, 3 in the last, and 0 in a record of one part. All numbers are little-endian. An index is a text
file with a line `key <tab> offset` for each record.

**Half-written files.** Records go straight into the target file, as in MXNet. But the last 4 bytes of what was written are held back until
more follows or `close`: whenever a program is killed, the file ends within a record, and its reader says so (MXNet's does, too). The index
is written by `close`, whole or not at all.
"""

from __future__ import annotations

import contextlib
import os
import struct
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from . import files, formats
from .base import ArgumentError, FileFormatError, MissingFileError, shown

Bytes = bytes | bytearray | memoryview

MAGIC = 0xCED7230A
MAGIC_BYTES = struct.pack("<I", MAGIC)
PART_HEADER = struct.Struct("<II")
LONGEST = (1 << 29) - 1  # the three bits above say which part it is
WHOLE, FIRST, MIDDLE, LAST = range(4)
HELD_BACK = 4  # bytes


def framed(record: Bytes) -> bytes:
    """`record` as it stands in a file."""
    record = bytes(record)
    if len(record) > LONGEST:
        raise ArgumentError(f"a record of {len(record)} bytes is too long; at most {LONGEST} fit into one, so cut it up")
    cuts = _places_of_magic(record) if MAGIC_BYTES in record else []
    pieces: list[bytes] = []
    begin = 0
    for number, cut in enumerate(cuts):
        pieces += PART_HEADER.pack(MAGIC, (MIDDLE if number else FIRST) << 29 | cut - begin), record[begin:cut]
        begin = cut + 4
    pieces += PART_HEADER.pack(MAGIC, (LAST if cuts else WHOLE) << 29 | len(record) - begin), record[begin:]
    return b"".join(pieces) + bytes(-len(record) % 4)


def _places_of_magic(record: bytes) -> list[int]:
    """Where in `record`, at multiples of 4, the magic stands."""
    words = np.frombuffer(record, "<u4", len(record) // 4)
    return [int(place) * 4 for place in np.flatnonzero(words == MAGIC)]


class RecordReader:
    """Reads records one after the other, or at given offsets. Threads may share it; a forked process may not."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.file, self.size = files.open_file(path)
        self.lock = threading.Lock()
        self.offset = 0  # where the next record begins; it stays there if that is damaged

    def next(self, at: int | None = None) -> bytes | None:
        """The next record, or the one at the offset `at`; None at the end of the file. Raises FileFormatError."""
        with self.lock:
            if at is not None:
                self.offset = at
            self.file.seek(self.offset)
            end = self.offset
            parts: list[bytes] = []
            while True:
                kind, part = self._part(end, not parts)
                if part is None:
                    return None
                end += PART_HEADER.size + len(part) + -len(part) % 4
                parts.append(part)
                if kind in (WHOLE, LAST):
                    break
            self.offset = end
        return parts[0] if len(parts) == 1 else MAGIC_BYTES.join(parts)

    def _part(self, offset: int, first: bool) -> tuple[int, bytes | None]:
        """The part of a record that begins at `offset`, where the file stands: which part it is, and its bytes."""
        head = self.file.read(PART_HEADER.size)
        if not head and first:
            return WHOLE, None
        if len(head) < PART_HEADER.size:
            raise self.error(offset, f"a record's header takes {PART_HEADER.size} bytes, but {len(head)} are left")
        magic, word = PART_HEADER.unpack(head)
        kind, length = word >> 29, word & LONGEST
        if magic != MAGIC:
            raise self.error(
                offset, f"a record begins with {MAGIC:#x}, here is {magic:#x}", self._told(head) if offset == 0 else ""
            )
        if kind not in ((WHOLE, FIRST) if first else (MIDDLE, LAST)):
            wanted = "a record begins" if first else "a record of several parts goes on"
            raise self.error(offset, f"{wanted} here, but this is part {kind} of one")
        taken, left = length + -length % 4, self.size - offset - PART_HEADER.size
        body = self.file.read(taken) if taken <= left else b""
        if len(body) < taken:
            raise self.error(offset, f"a record of {taken} bytes begins here, but {max(left, 0)} are left")
        return kind, body if length == taken else body[:length]

    def _told(self, head: bytes) -> str:
        """What a file is that does not begin with a record."""
        return formats.looks_like(head + self.file.read(formats.HEAD))

    def error(self, offset: int, message: str, told: str = "") -> FileFormatError:
        return FileFormatError(
            f"{self.path}: byte {offset}: {message}; the file is cut off, damaged, or no file of records{told}"
        )

    def close(self) -> None:
        self.file.close()


class RecordWriter:
    """Writes records one after the other, and at the end their index. What a forked process does with it reaches no file."""

    def __init__(self, path: str, index_path: str | None) -> None:
        self.path = path
        self.index_path = index_path
        self.index: list[str] = []
        self.process = os.getpid()
        self.offset = 0  # where the next record will begin
        self.held = b""  # the last bytes, which are not in the file yet
        if index_path is not None:
            _forget(index_path)
        try:
            self.file = open(path, "wb", buffering=0)  # noqa: SIM115  # a buffer would be written by forked processes, too
        except FileNotFoundError:
            raise MissingFileError(f"{path} cannot be written: the folder {os.path.dirname(path)} is not there") from None

    def write(self, record: Bytes) -> None:
        frame = framed(record)
        data = self.held + frame
        self._store(data[:-HELD_BACK])
        self.held = data[-HELD_BACK:]
        self.offset += len(frame)

    def _store(self, data: bytes) -> None:
        """Append `data` to the file, or leave it as it was."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self.file.write(rest) :]
        except OSError as error:
            with contextlib.suppress(OSError):  # a pipe cannot go back
                end = self.offset - len(self.held)
                self.file.seek(end)
                self.file.truncate(end)
            if error.filename is None:
                error.filename = self.path  # the system does not say which file the disk is too full for
            raise

    def close(self) -> None:
        """Write what was held back, then the index."""
        if self.file.closed:
            return
        with self.file:
            if self.process != os.getpid():
                return
            self._store(self.held)
        if self.index_path is not None:
            files.replace_file(self.index_path, ["".join(self.index).encode()])

    def abandon(self) -> None:
        """Leave the file as if the program had been killed: it is seen to be incomplete."""
        self.file.close()


def _forget(index_path: str) -> None:
    """Remove an index whose records are about to be overwritten. Raises MissingFileError if it could not be written again."""
    path = os.path.realpath(index_path)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise MissingFileError(f"{index_path} cannot be written: the folder {folder} is not there")
    if os.path.isdir(path):
        raise ArgumentError(f"{index_path} cannot be written: it is a folder; idx_path names a file")
    if os.path.isfile(path):
        os.unlink(path)


def read_index(path: str, key_type: Callable[[Any], Any]) -> list[tuple[Any, int]]:
    """Keys and offsets of an index. Raises MissingFileError if there is none, FileFormatError for a line that is neither."""
    try:
        file, _ = files.open_file(path)
    except MissingFileError as error:
        told = "it is the index that MXIndexedRecordIO and im2rec write beside the records; without it MXRecordIO reads them in order"
        raise MissingFileError(f"{error}; {told}") from None
    entries: list[tuple[Any, int]] = []
    at = 0
    with file:
        for line in file:
            fields = line.strip().split(b"\t")
            try:
                entries.append((key_type(fields[0].decode()), _offset(fields[1])))
            except (ValueError, TypeError, IndexError):
                if fields != [b""]:
                    raise FileFormatError(
                        f"{path}: byte {at}: a line of an index is a key, a tab and an offset, got {shown(line)}"
                    ) from None
            at += len(line)
    return entries


def _offset(text: bytes) -> int:
    offset = int(text)
    if not 0 <= offset < 1 << 63:
        raise ValueError
    return offset
