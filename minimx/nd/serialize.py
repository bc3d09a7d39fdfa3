"""Files of arrays: MXNet's `.params`, read and written byte for byte as MXNet 1.9.1 does.

    list    uint64 0x112, uint64 0 | uint64 count, the arrays | uint64 count, the names (0 of them, or one for each array) array
    uint32 magic | int32 storage type | int32 axes, int64 lengths | int32 device type, int32 number | int32 dtype | the elements
    name    uint64 length | UTF-8

All numbers are little-endian. The magic tells versions apart: 0xF993fac9 is the usual one; 0xF993faca has NumPy's meaning of
shapes, in which an array may have no axes; 0xF993fac8 has no storage type; and in the oldest files there is no magic, the number
of axes (small, where a magic is large) comes first and lengths are uint32.

Reading goes over the headers first and checks every size against the bytes that are there, before any memory is taken: a file
that is cut off or damaged raises FileFormatError with the offset. Then the elements are read straight into the arrays. Nothing is
ever unpickled, nothing a file says is run. Book: chapter 6.
"""

from __future__ import annotations

import io
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from .. import device, files, formats, storage
from ..base import CODE_OF_DTYPE, DTYPE_OF_CODE, FLOAT32, ArgumentError, DTypeError, FileFormatError, shown
from ..device import Context, cpu, gpu
from ..engine.front import value_of
from ..engine.var import Var
from ..op import MOST_AXES, Shape, Spec
from . import transfer
from .entry import from_array
from .ndarray import NDArray

LIST_MAGIC = 0x112
BEGINNING = struct.pack("<QQ", LIST_MAGIC, 0)
V1, V2, V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
DENSE = 0
SPARSE = {1: "row_sparse", 2: "csr"}
CPU_0 = (1, 0)  # a device as in a file: type and number


class Entry(NamedTuple):
    """What the header of an array says, and where its elements begin."""

    shape: Shape
    dtype: np.dtype[Any]
    device: tuple[int, int]
    start: int


# ---- reading


class Reader:
    """A walk over the bytes of a file, in which every step is checked against its size."""

    def __init__(self, file: BinaryIO, size: int, name: str) -> None:
        self.file = file
        self.size = size
        self.name = name
        self.offset = 0

    def error(self, message: str, offset: int | None = None) -> FileFormatError:
        return FileFormatError(f"{self.name}: byte {self.offset if offset is None else offset}: {message}")

    def need(self, count: int, what: str) -> None:
        """Raise FileFormatError unless `count` more bytes are there."""
        if count > self.size - self.offset:
            raise self.error(
                f"{what} takes {count} bytes, but {self.size - self.offset} are left; the file is cut off or damaged"
            )

    def head(self) -> bytes:
        """The first bytes, as far as there are any; the reader stays where it is."""
        self.file.seek(0)
        return self.file.read(formats.HEAD)

    def take(self, count: int, what: str) -> bytes:
        self.need(count, what)
        self.file.seek(self.offset)
        taken = self.file.read(count)
        if len(taken) != count:
            raise self.error(f"the file ended while {what} was read")
        self.offset += count
        return taken

    def number(self, code: str, what: str) -> int:
        """The next number, by its code in the module struct."""
        return int(struct.unpack("<" + code, self.take(struct.calcsize(code), what))[0])

    def skip(self, count: int, what: str) -> None:
        self.need(count, what)
        self.offset += count

    def elements(self, entry: Entry, array: np.ndarray[Any, Any]) -> None:
        """Read the elements of `entry` into `array`."""
        if not array.size:
            return
        rest = array.reshape(-1).view(np.uint8).data
        self.file.seek(entry.start)
        while rest:
            count = self.file.readinto(rest)  # type: ignore[attr-defined]  # every binary file that is opened has it
            if not count:
                raise self.error("the file ended while elements were read", entry.start)
            rest = rest[count:]
        if sys.byteorder == "big":
            array.byteswap(inplace=True)


def read_list(reader: Reader) -> tuple[list[Entry], list[str]]:
    """The headers and the names of a list of arrays."""
    head = reader.head()
    if not BEGINNING.startswith(head[: len(BEGINNING)]) or not head:
        begins = f": it begins with {int.from_bytes(head[:8], 'little'):#x}, wants {LIST_MAGIC:#x} and 0" if head else ""
        raise reader.error(f"this is no file of arrays{begins}{formats.looks_like(head)}", 0)
    reader.skip(len(BEGINNING), "the header")
    at = reader.offset
    count = reader.number("Q", "the number of arrays")
    if count * 4 > reader.size - reader.offset:
        raise reader.error(f"{count} arrays do not fit into the {reader.size - reader.offset} bytes that are left", at)
    entries = [read_entry(reader, f"array {i}") for i in range(count)]
    at = reader.offset
    names = reader.number("Q", "the number of names")
    if names not in (0, count):
        raise reader.error(f"there are {names} names for {count} arrays", at)
    named = [read_name(reader, f"name {i}") for i in range(names)]
    if reader.offset != reader.size:
        raise reader.error(f"{reader.size - reader.offset} bytes follow the end; the file is damaged")
    return entries, named


def read_entry(reader: Reader, what: str) -> Entry:
    """The header of an array; the reader goes on behind its elements."""
    begin = reader.offset
    magic = reader.number("I", what)
    length = "q"
    if magic in (V2, V3):
        kind = reader.number("i", what)
        if kind in SPARSE:
            raise reader.error(
                f"{what} is sparse ({SPARSE[kind]}), and minimx has dense arrays only; in MXNet, tostype('default') converts it",
                begin,
            )
        if kind != DENSE:
            raise reader.error(f"{what} has the unknown storage type {kind}", reader.offset - 4)
        axes = reader.number("i", what)
    elif magic == V1:
        axes = reader.number("i", what)
    elif magic <= MOST_AXES:
        axes, length = magic, "I"
    else:
        raise reader.error(f"{what} begins with the unknown mark {magic:#x}", begin)
    if axes == 0 and magic != V3:
        return Entry((0,), FLOAT32, CPU_0, reader.offset)  # an NDArray that was never given a shape: nothing follows
    if not 0 <= axes <= MOST_AXES:
        raise reader.error(f"{what} has {axes} axes; 0 to {MOST_AXES} are possible", reader.offset - 4)
    at = reader.offset
    shape = struct.unpack(f"<{axes}{length}", reader.take(axes * struct.calcsize("<" + length), f"the shape of {what}"))
    found = read_device(reader, what)
    code = reader.number("i", f"the dtype of {what}")
    if code not in DTYPE_OF_CODE:
        raise reader.error(f"{what} has the unknown dtype {code}", reader.offset - 4)
    entry = Entry(shape, DTYPE_OF_CODE[code], found, reader.offset)
    size = entry.dtype.itemsize
    extent = size  # the bytes if lengths of 0 did not count: NumPy holds no shape beyond a 64-bit number
    for axis in shape:
        size *= axis
        extent *= axis or 1
    if min(shape, default=0) < 0 or extent >= 1 << 63:
        raise reader.error(f"{what} has the impossible shape {shape}", at)
    reader.skip(size, f"{what}, {entry.dtype.name} of shape {shape},")
    return entry


def read_device(reader: Reader, what: str) -> tuple[int, int]:
    at = reader.offset
    kind, number = reader.number("i", f"the device of {what}"), reader.number("i", f"the device of {what}")
    if kind not in Context.devtype2str or number < 0:
        raise reader.error(f"{what} is on the unknown device ({kind}, {number})", at)
    return kind, number


def read_name(reader: Reader, what: str) -> str:
    length = reader.number("Q", what)
    at = reader.offset
    try:
        return reader.take(length, what).decode()
    except UnicodeDecodeError:
        raise reader.error(f"{what} is no UTF-8", at) from None


def decode(buffer: bytes | bytearray | memoryview) -> tuple[list[np.ndarray[Any, Any]], list[str]]:
    """The arrays in the bytes of a file, and their names (none, or one each).

    **Raises** FileFormatError, with the offset, if the bytes are no such file, or a part of one.
    """
    reader = buffer_reader(buffer)
    entries, names = read_list(reader)
    arrays = []
    for entry in entries:
        arrays.append(np.empty(entry.shape, entry.dtype))
        reader.elements(entry, arrays[-1])
    return arrays, names


def buffer_reader(buffer: bytes | bytearray | memoryview) -> Reader:
    view = memoryview(buffer)
    return Reader(io.BytesIO(view if view.contiguous else view.tobytes()), view.nbytes, "buffer")


# ---- writing


def encode(
    arrays: Sequence[np.ndarray[Any, Any]], names: Sequence[str] = (), devices: Sequence[tuple[int, int]] | None = None
) -> Iterator[bytes | memoryview]:
    """The bytes of a file with `arrays`, piece by piece; the elements are not copied.

    **Args** names: none, or one for each array. devices: type and number of each array's device, cpu(0) by default. **Raises**
    ArgumentError if the numbers differ; DTypeError for a dtype that MXNet has not.
    """
    if names and len(names) != len(arrays):
        raise ArgumentError(f"{len(arrays)} arrays have {len(names)} names; wants none or one each")
    for array in arrays:
        if array.dtype not in CODE_OF_DTYPE:
            raise DTypeError(f"a file cannot hold {array.dtype.name}; convert the array, astype('float32')")
    # Only version 3 can say "no axes". MXNet reads files of one version, and this one inside `np_shape` only
    version = V3 if any(array.ndim == 0 for array in arrays) else V2
    return pieces(version, arrays, names, devices or [CPU_0] * len(arrays))


def pieces(
    version: int, arrays: Sequence[np.ndarray[Any, Any]], names: Sequence[str], devices: Sequence[tuple[int, int]]
) -> Iterator[bytes | memoryview]:
    yield struct.pack("<QQQ", LIST_MAGIC, 0, len(arrays))
    for array, where in zip(arrays, devices):
        layout = f"<Iii{array.ndim}qiii"
        yield struct.pack(layout, version, DENSE, array.ndim, *array.shape, *where, CODE_OF_DTYPE[array.dtype])
        if array.size:
            little = np.asarray(array, array.dtype.newbyteorder("<"), order="C")
            yield little.reshape(-1).view(np.uint8).data
    yield struct.pack("<Q", len(names))
    for name in names:
        encoded = name.encode()
        yield struct.pack("<Q", len(encoded)) + encoded


# ---- NDArrays


def save(fname: files.PathLike, data: NDArray | Sequence[NDArray] | Mapping[str, NDArray]) -> None:
    """Write an array, a list of arrays, or a dict of names and arrays to a file that MXNet reads too.

    Waits for the values. The file is replaced when the new one is complete: a crash leaves the old one. Arrays without axes make
    a file that MXNet reads inside `mx.np_shape(True)` only. **Raises** ArgumentError for other data; MissingFileError; the error
    of an array that failed. **Source** MXNet `nd.save`.
    """
    files.as_path(fname)
    names: list[str] = []
    if isinstance(data, NDArray):
        arrays = [data]
    elif isinstance(data, Mapping):
        names, arrays = list(data), list(data.values())
    elif isinstance(data, (list, tuple)):
        arrays = list(data)
    else:
        raise ArgumentError(f"nd.save: data must be an NDArray, a list or a dict of them, got {shown(data)}")
    for position, array in enumerate(arrays):
        if not isinstance(array, NDArray):
            entry = shown(names[position]) if names else position
            raise ArgumentError(f"nd.save: data[{entry}] must be an NDArray, got {shown(array)}")
    for name in names:
        if not isinstance(name, str):
            raise ArgumentError(f"nd.save: data must have names that are str, got {shown(name)}")
        try:
            name.encode()
        except UnicodeEncodeError:
            raise ArgumentError(f"nd.save: the name {shown(name)} cannot be written as UTF-8") from None
    devices = [(array.context.device_typeid, array.context.device_id) for array in arrays]
    files.replace_file(fname, encode([host_value(array) for array in arrays], names, devices))


def host_value(array: NDArray) -> np.ndarray[Any, Any]:
    """The value in host memory, not copied if it is there already."""
    value = value_of(array)
    return value if type(value) is np.ndarray else transfer.to_numpy(value, array.context)


def load(fname: files.PathLike) -> list[NDArray] | dict[str, NDArray]:
    """The arrays in a file, of MXNet's or ours: a list, or a dict if they have names. A single array comes as a list of one.

    An array that was saved on a GPU comes to that GPU if it is there; all others to cpu(0). **Raises** FileFormatError, with the
    offset, for a file that is cut off or damaged, or that holds sparse arrays; MissingFileError. **Source** MXNet `nd.load`.
    """
    file, size = files.open_file(fname)
    with file:
        return loaded(Reader(file, size, files.as_path(fname)))


def load_frombuffer(buf: bytes | bytearray | memoryview) -> list[NDArray] | dict[str, NDArray]:
    """The arrays in the bytes of a file: see `load`. **Source** MXNet `nd.load_frombuffer`."""
    if not isinstance(buf, (bytes, bytearray, memoryview)):
        raise ArgumentError(f"nd.load_frombuffer: bytes are wanted, got {shown(buf)}")
    return loaded(buffer_reader(buf))


def loaded(reader: Reader) -> list[NDArray] | dict[str, NDArray]:
    entries, names = read_list(reader)
    if len(set(names)) != len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise reader.error(f"two arrays have the name {shown(twice)}, and a dict holds one; the file is damaged")
    arrays = [load_entry(reader, entry) for entry in entries]
    return dict(zip(names, arrays)) if names else arrays


def load_entry(reader: Reader, entry: Entry) -> NDArray:
    context = cpu()
    if entry.device[0] == gpu().device_typeid and entry.device[1] < device.num_gpus():
        context = gpu(entry.device[1])
    on_host = device.array_module(context) is np
    spec = Spec.of(entry.shape, entry.dtype)
    value = storage.empty(spec, context if on_host else cpu())
    reader.elements(entry, value)
    return NDArray(Var(value), spec, context) if on_host else from_array(value, context)
