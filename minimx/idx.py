"""IDX files: the format of MNIST and of the data sets that followed it; a header that says how much follows, and then the numbers.

    two zero bytes, a byte for the dtype, a byte for the number of axes | the length of each axis, uint32 | the elements, last axis fastest

All numbers are big-endian. The files are usually gzipped. Nothing in a file is believed before it is checked, so that a broken file is a
FileFormatError and never a crash or a huge allocation. gluon.data.vision and d2l read their data sets with it. Book: chapter 1.
"""

from __future__ import annotations

import math
import os
from typing import IO, Any

import numpy as np

from . import files, formats
from .base import ArgumentError, FileFormatError, shown

Numbers = np.ndarray[Any, np.dtype[Any]]

IDX_DTYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
GZIP_MAGIC = b"\x1f\x8b"
CHUNK = 1 << 20  # bytes read at a time: memory grows with what a file really holds, not with what its header promises


def read_idx(path: str | os.PathLike[str], limit: int = 1 << 30) -> Numbers:
    """The array in an IDX file, gzipped or not.

    **Args** limit: the most bytes that the elements may take.
    **Returns** a fresh, writable array in the machine's byte order.
    **Raises** FileFormatError with the offset where the file is not what it should be; MissingFileError, OSError if it cannot be read.
    **Source** the format of the original MNIST files.
    """
    import gzip  # here, as most programs read no such file
    import zlib

    raw, _ = files.open_file(path)
    with raw:
        packed = raw.read(2) == GZIP_MAGIC
        raw.seek(0)
        # GzipFile checks length and CRC when it meets the end, which _read_elements makes sure to reach
        stream: IO[bytes] = gzip.GzipFile(fileobj=raw) if packed else raw  # type: ignore[assignment]  # GzipFile is one in all but name
        try:
            return _read_elements(stream, os.fspath(path), limit)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise FileFormatError(f"{path}: damaged gzip data before byte {raw.tell()} ({error}); get the file again") from None


def _read_elements(stream: IO[bytes], path: str, limit: int) -> Numbers:
    """The body of `read_idx`, on the unpacked stream. Offsets in its messages count unpacked bytes."""
    magic = _read_up_to(stream, 4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in IDX_DTYPES or not 1 <= magic[3] <= 32:
        told = formats.looks_like(magic + stream.read(formats.HEAD))
        raise FileFormatError(f"{path}: starts with bytes {bytes(magic).hex(' ') or 'none'} at offset 0; not an IDX file{told}")
    lengths = _read_up_to(stream, 4 * magic[3])
    if len(lengths) < 4 * magic[3]:
        raise FileFormatError(f"{path}: ends at offset {4 + len(lengths)}, inside the lengths of its {magic[3]} axes")
    shape = tuple(int(length) for length in np.frombuffer(lengths, ">u4"))
    dtype = np.dtype(IDX_DTYPES[magic[2]])
    start = 4 + len(lengths)
    wanted = math.prod(shape) * dtype.itemsize  # Python integers: no overflow
    if wanted > limit:
        raise FileFormatError(f"{path}: the header at offset 4 says shape {shape}, {wanted} bytes; at most {limit} are read")
    elements = _read_up_to(stream, wanted)
    if len(elements) < wanted:
        raise FileFormatError(f"{path}: ends at offset {start + len(elements)}; shape {shape} needs {start + wanted} bytes")
    if stream.read(1):
        raise FileFormatError(f"{path}: goes on after offset {start + wanted}, where shape {shape} ends")
    if math.prod(length or 1 for length in shape) >= 1 << 59:  # NumPy has no such array, be it empty
        raise FileFormatError(f"{path}: the header at offset 4 says shape {shape}, which no array can have")
    return np.frombuffer(elements, dtype).reshape(shape).astype(dtype.newbyteorder("="), copy=False)


def _read_up_to(stream: IO[bytes], count: int) -> bytearray:
    """`count` bytes, or as many as there are."""
    gathered = bytearray()
    while len(gathered) < count:
        piece = stream.read(min(CHUNK, count - len(gathered)))
        if not piece:
            break
        gathered += piece
    return gathered


def write_idx(path: str | os.PathLike[str], array: Numbers) -> None:
    """Write `array` to `path` as a gzipped IDX file: equal arrays give equal bytes (no name, no time in the header).

    **Raises** ArgumentError for a dtype or a number of axes that IDX has no code for.
    """
    if not isinstance(array, np.ndarray):
        raise ArgumentError(f"write_idx: a NumPy array is wanted, got {shown(array)}")
    dtype = array.dtype.newbyteorder(">")
    codes = [code for code, name in IDX_DTYPES.items() if np.dtype(name) == dtype]
    if not codes or not 1 <= array.ndim <= 32:
        raise ArgumentError(f"write_idx: IDX has no code for a {array.dtype} array of {array.ndim} axes")
    import gzip

    header = bytes((0, 0, codes[0], array.ndim)) + np.array(array.shape, ">u4").tobytes()
    packed = gzip.compress(header + np.ascontiguousarray(array, dtype).tobytes(), compresslevel=9, mtime=0)
    files.replace_file(path, [packed])
