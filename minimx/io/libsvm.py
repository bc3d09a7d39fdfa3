"""LibSVMIter: batches of examples that text files write down sparsely, as `label index:value index:value ...`.

There are no sparse arrays here, so that a batch is dense: as many numbers as it has features for each example, most of them zeros. Between
the file and the batch, examples stay sparse.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import files
from ..base import DTypeError, FileFormatError, as_dtype, shown
from ..fields import converted
from .batch import BatchError
from .file_iter import Loaded, MXDataIter, check_ctx, check_part, one_axis, shape_of, whole
from .passes import Place, batches
from .tables import paths_of

__all__ = ["LibSVMIter"]

Array = np.ndarray[Any, Any]

#: How much text makes a block, in bytes.
BLOCK = 1 << 20


class LibSVMIter(MXDataIter):
    """Batches of examples from files of LibSVM's format, with indices that count from 0. Data is dense here.

    **Args** `data_libsvm`: a file, a folder of files, or several of them with `;` between; `data_shape`: how many features there are,
    (n,); `label_libsvm`, `label_shape`: the same of labels of several numbers, dense as well; without them the label is the number that
    begins the line; `num_parts`, `part_index`: read one of so many parts, cut at ends of lines; `batch_size`; `round_batch`: fill up the
    last batch of a pass with the beginning of the next one, which goes on behind that, else with zeros; `prefetch_buffer`: how many
    batches are read ahead. `ctx` makes no difference; `dtype` can be float32. **Raises** MissingFileError, ArgumentError; FileFormatError,
    with file and line, for what is no example, and for an index beyond `data_shape`, which MXNet writes out of bounds. **Source** MXNet
    `io.LibSVMIter`, whose data is sparse (csr) and which needs `round_batch`.

    >>> import pathlib, tempfile; path = pathlib.Path(tempfile.mkdtemp(), "data.t")
    >>> _ = path.write_text("1 0:0.5 2:1.5\\n-2\\n")
    >>> batch = LibSVMIter(data_libsvm=path, data_shape=(3,), batch_size=2).next()
    >>> batch.data[0].asnumpy().tolist(), batch.label[0].asnumpy().tolist()
    ([[0.5, 0.0, 1.5], [0.0, 0.0, 0.0]], [1.0, -2.0])
    """

    def __init__(
        self,
        *,
        data_libsvm: files.PathLike,
        data_shape: Any,
        batch_size: int,
        label_libsvm: files.PathLike | None = "NULL",
        label_shape: Any = (1,),
        num_parts: int = 1,
        part_index: int = 0,
        round_batch: bool = True,
        prefetch_buffer: int = 4,
        ctx: str = "gpu",
        dtype: Any = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
    ) -> None:
        check_ctx("LibSVMIter", ctx)
        if as_dtype(None if dtype == "None" else dtype) != np.float32:
            raise DTypeError(f"LibSVMIter: dtype is {shown(dtype)}; batches are float32, use astype() on them")
        part = check_part("LibSVMIter", num_parts, part_index)
        shapes = [shape_of("LibSVMIter", "data_shape", data_shape), shape_of("LibSVMIter", "label_shape", label_shape)]
        labelled = label_libsvm not in ("NULL", None)
        if len(shapes[0]) != 1 or len(shapes[1]) != 1 or (shapes[1] == (1,)) == labelled:
            raise BatchError(
                f"LibSVMIter: data_shape is {shapes[0]}, label_shape {shapes[1]}; both have one axis, and label_shape is (1,) without "
                "label_libsvm and longer with it"
            )
        label = _File(paths_of("LibSVMIter", "label_libsvm", label_libsvm), shapes[1][0], *part) if labelled else None
        reader = _SparseReader(
            _File(paths_of("LibSVMIter", "data_libsvm", data_libsvm), shapes[0][0], *part),
            label,
            whole("LibSVMIter", "batch_size", batch_size),
            converted("LibSVMIter", "round_batch", "bool", round_batch),
        )
        super().__init__(reader, Place(), prefetch_buffer, data_name, label_name)


class _Rows(NamedTuple):
    """Examples: the number that begins each line, how many features each has, and of all in a row their indices and values."""

    first: Array
    counts: Array
    indices: Array
    values: Array

    @property
    def size(self) -> int:
        return len(self.first)

    def split(self, count: int) -> tuple[_Rows, _Rows]:
        """The first `count` examples, and the others."""
        cut = int(self.counts[:count].sum())
        return (
            _Rows(self.first[:count], self.counts[:count], self.indices[:cut], self.values[:cut]),
            _Rows(self.first[count:], self.counts[count:], self.indices[cut:], self.values[cut:]),
        )

    @staticmethod
    def joined(parts: Sequence[_Rows]) -> _Rows:
        return _Rows(*(np.concatenate(column) for column in zip(*parts)))

    def written(self, into: Array) -> Array:
        """The features, as rows of `into`."""
        into[np.repeat(np.arange(self.size), self.counts), self.indices] = self.values
        return into


NOTHING = _Rows(np.zeros(0, np.float32), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


class _Examples(Sequence[Any]):
    """Examples with their labels and numbers."""

    def __init__(self, data: _Rows, label: _Rows | None, begin: int) -> None:
        self.data = data
        self.label = label
        self.numbers = np.arange(begin, begin + data.size, dtype=np.uint64)

    def __len__(self) -> int:
        return self.data.size

    def __getitem__(self, index: Any) -> Any:
        return self.numbers[index]


class _SparseReader:
    """Makes batches of a file of data and one of labels."""

    random = None

    def __init__(self, data: _File, label: _File | None, batch_size: int, round_batch: bool) -> None:
        self.data = data
        self.label = label
        self.batch_size = batch_size
        self.round_batch = round_batch

    def epoch(self) -> _Epoch:
        return _Epoch(self.data, self.label)

    def batches(self, start: Place) -> Iterator[Loaded]:
        for parts, pad, resume, restart in batches(self, start, self.batch_size, self.round_batch):
            rows = _Rows.joined([part.data for part in parts])
            data = rows.written(np.zeros((self.batch_size, self.data.width), np.float32))
            if self.label is None:
                label = np.zeros((self.batch_size, 1), np.float32)
                label[: rows.size, 0] = rows.first
            else:
                labels = _Rows.joined([part.label for part in parts])
                label = labels.written(np.zeros((self.batch_size, self.label.width), np.float32))
            numbers = np.zeros(self.batch_size, np.uint64)
            numbers[: rows.size] = np.concatenate([part.numbers for part in parts])
            yield Loaded(data, one_axis(label), pad, numbers, resume, restart)


class _Epoch:
    """The examples of the files, once."""

    def __init__(self, data: _File, label: _File | None) -> None:
        self.data = _Taker(data)
        self.label = None if label is None else _Taker(label)
        self.used = 0

    def take(self, count: int) -> _Examples:
        data = self.data.take(count)
        label = None if self.label is None else self.label.take(data.size)
        if label is not None and label.size < data.size:
            raise FileFormatError(f"LibSVMIter: there are {self.used + label.size} labels, and more examples")
        found = _Examples(data, label, self.used)
        self.used += data.size
        return found


class _Taker:
    """The examples of a file, any number at a time."""

    def __init__(self, file: _File) -> None:
        self.blocks = file.blocks()
        self.rest = NOTHING

    def take(self, count: int) -> _Rows:
        parts, missing = [NOTHING], count
        while missing:
            if not self.rest.size:
                block = next(self.blocks, None)
                if block is None:
                    break
                self.rest = block
            part, self.rest = self.rest.split(missing)
            parts.append(part)
            missing -= part.size
        return _Rows.joined(parts)


class _File:
    """Text files in LibSVM's format, or a part of them. **Args** `width`: how many features there are."""

    def __init__(self, paths: list[str], width: int, num_parts: int, part_index: int) -> None:
        self.paths = paths
        self.width = width
        self.num_parts = num_parts
        self.part_index = part_index

    def blocks(self) -> Iterator[_Rows]:
        """The examples, a block of lines at a time. Raises FileFormatError."""
        sizes = []
        for path in self.paths:
            file, size = files.open_file(path)
            file.close()
            sizes.append(size)
        step = -(-sum(sizes) // self.num_parts)
        begin, end = step * self.part_index, step * (self.part_index + 1)
        at = 0
        for path, size in zip(self.paths, sizes):
            if begin < at + size and end > at:
                yield from self._file_blocks(path, max(begin - at, 0), end - at)
            at += size

    def _file_blocks(self, path: str, begin: int, end: int) -> Iterator[_Rows]:
        """The examples of the lines that begin behind the byte `begin`, unless it is 0, and not behind `end`: so parts fit together."""
        file, _ = files.open_file(path)
        with file:
            if begin:
                file.seek(begin)
                file.readline()
            number = 0
            while (left := end - file.tell() + 1) > 0 and (lines := file.readlines(min(BLOCK, left))):
                name = f"{path}, behind byte {begin}" if begin else path
                found = self._together(lines)
                yield self._one_by_one(name, number, lines) if found is None else found
                number += len(lines)

    def _one_by_one(self, name: str, before: int, lines: list[bytes]) -> _Rows:
        rows = [self._row(f"{name}, line {number}", line) for number, line in enumerate(lines, before + 1)]
        return _Rows.joined([NOTHING, *(row for row in rows if row is not None)])

    def _together(self, lines: list[bytes]) -> _Rows | None:
        """The examples of lines without faults, remarks and empty ones, else None."""
        counts = np.array([line.count(b":") for line in lines])
        if any(len(line.split()) != count + 1 for line, count in zip(lines, counts)):
            return None
        words = b" ".join(lines).replace(b":", b" ").split()
        try:
            numbers = np.fromiter(map(float, words), np.float64, len(lines) + 2 * int(counts.sum()))
        except ValueError:
            return None
        starts = np.cumsum(counts * 2 + 1) - (counts * 2 + 1)
        pairs = np.delete(numbers, starts).reshape(-1, 2)
        indices = pairs[:, 0].astype(np.int64)
        if (indices != pairs[:, 0]).any() or (len(indices) and not 0 <= indices.min() <= indices.max() < self.width):
            return None
        return _Rows(numbers[starts].astype(np.float32), counts, indices, pairs[:, 1].astype(np.float32))

    def _row(self, where: str, line: bytes) -> _Rows | None:
        """The example of a line, or None if it has none."""
        words = line.partition(b"#")[0].split()
        if not words:
            return None
        try:
            first = float(words[0].partition(b":")[0])  # a weight may follow, which does not count
            pairs = [word.partition(b":") for word in words[1:] if not word.startswith(b"qid:")]
            indices = [int(index) for index, _, _ in pairs]
            values = [float(value) if mark else 1.0 for _, mark, value in pairs]
        except ValueError as error:
            told = textwrap.shorten(str(error), 90, placeholder="...")  # a word of a file that is no text can be long
            raise FileFormatError(f"{where}: a line is `label index:value index:value ...`; {told}") from None
        for index in indices:
            if not 0 <= index < self.width:
                raise FileFormatError(f"{where}: index {index}; there are {self.width} features, numbered from 0")
        return _Rows(
            np.array([first], np.float32), np.array([len(indices)]), np.array(indices, np.int64), np.array(values, np.float32)
        )
