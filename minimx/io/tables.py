"""CSVIter: batches of the rows of text files, numbers with commas between them.

Blocks of lines are split by NumPy's C code as a table; only a block in which that fails is looked at line by line, to say which line is
wrong. A file is read again in each pass and never is in memory as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import files
from ..base import DTypeError, FileFormatError, as_dtype, shown
from ..fields import converted
from .batch import BatchError
from .file_iter import Loaded, MXDataIter, check_ctx, one_axis, shape_of, whole
from .passes import Place, batches

__all__ = ["CSVIter", "paths_of"]

Array = np.ndarray[Any, Any]

#: How much text makes a block, in characters.
BLOCK = 1 << 20

#: In a number of which only the whole part would count.
NOT_WHOLE = frozenset(".eEnNiI")


class CSVIter(MXDataIter):
    """Batches of rows of numbers from text files (CSV).

    **Args** `data_csv`: a file, a folder of files, or several of them with `;` between; `data_shape`: of an example, whose numbers are a
    row; `label_csv`, `label_shape`: the same of labels, a row for each row of data; without `label_csv` all labels are 0; `batch_size`;
    `round_batch`: fill up the last batch of a pass with the beginning of the next one, which goes on behind that, else with what the batch
    before it had there; `prefetch_buffer`: how many batches are read ahead, by a thread; `dtype`: float32, int32 or int64. `ctx` makes no
    difference. **Raises** MissingFileError, ArgumentError; FileFormatError for a row of other things than numbers, or of too few or too
    many, with file and line. **Source** MXNet `io.CSVIter`, which reads "1.5" as 1, and "010" as 8, if whole numbers are wanted.

    >>> import pathlib, tempfile; path = pathlib.Path(tempfile.mkdtemp(), "table.csv")
    >>> _ = path.write_text("1,2\\n3,4\\n5,6\\n")
    >>> [(batch.data[0].asnumpy().tolist(), batch.pad) for batch in CSVIter(data_csv=path, data_shape=(2,), batch_size=2)]
    [([[1.0, 2.0], [3.0, 4.0]], 0), ([[5.0, 6.0], [1.0, 2.0]], 1)]
    """

    def __init__(
        self,
        *,
        data_csv: files.PathLike,
        data_shape: Any,
        batch_size: int,
        label_csv: files.PathLike | None = "NULL",
        label_shape: Any = (1,),
        round_batch: bool = True,
        prefetch_buffer: int = 4,
        ctx: str = "gpu",
        dtype: Any = None,
        data_name: str = "data",
        label_name: str = "softmax_label",
    ) -> None:
        check_ctx("CSVIter", ctx)
        kind = as_dtype(None if dtype == "None" else dtype)
        if kind not in (np.float32, np.int32, np.int64):
            raise DTypeError(f"CSVIter: dtype is {kind.name}; choose float32, int32 or int64")
        reader = _TableReader(
            Table(paths_of("CSVIter", "data_csv", data_csv), shape_of("CSVIter", "data_shape", data_shape), kind),
            None
            if label_csv in ("NULL", None)
            else Table(paths_of("CSVIter", "label_csv", label_csv), shape_of("CSVIter", "label_shape", label_shape), kind),
            whole("CSVIter", "batch_size", batch_size),
            converted("CSVIter", "round_batch", "bool", round_batch),
        )
        super().__init__(reader, Place(), prefetch_buffer, data_name, label_name)


def paths_of(owner: str, name: str, value: Any) -> list[str]:
    """The files that `value` names: a path, or several with `;` between; of a folder, its files in the order of their names.

    **Raises** MissingFileError; BatchError if there is nothing to read.
    """
    found: list[str] = []
    for part in files.as_path(value).split(";"):
        path = os.path.expanduser(files.as_path(part))
        inside = [os.path.join(path, each) for each in sorted(os.listdir(path))] if os.path.isdir(path) else [path]
        for each in inside:
            if each == path or os.path.isfile(each):
                file, size = files.open_file(each)
                file.close()
                found += [each] if size else []
    if not found:
        raise BatchError(f"{owner}: {name}={shown(value)} is empty; there is nothing to read")
    return found


class _TableReader:
    """Makes batches of a table of data and one of labels."""

    random = None

    def __init__(self, data: Table, label: Table | None, batch_size: int, round_batch: bool) -> None:
        self.data = data
        self.label = label
        self.batch_size = batch_size
        self.round_batch = round_batch

    def epoch(self) -> _Rows:
        return _Rows(self.data.blocks(), None if self.label is None else self.label.blocks(), self)

    def batches(self, start: Place) -> Iterator[Loaded]:
        width = 1 if self.label is None else self.label.width
        before = _zeros(self.batch_size, self.data.width, self.data.dtype), _zeros(self.batch_size, width, self.data.dtype)
        numbers = np.zeros(self.batch_size, np.uint64)
        for parts, pad, resume, restart in batches(self, start, self.batch_size, self.round_batch):
            columns = [
                np.concatenate(column) if len(column) > 1 else column[0] for column in zip(*(part.columns for part in parts))
            ]
            if pad and not self.round_batch:
                columns = [np.concatenate([column, old[len(column) :]]) for column, old in zip(columns, (*before, numbers))]
            data, label, numbers = columns
            if not self.round_batch:  # what is handed out may be changed
                before = data.copy(), label.copy()
            shape = (1,) if self.label is None else self.label.shape
            shaped = one_axis(label.reshape(-1, *shape))
            yield Loaded(data.reshape(-1, *self.data.shape), shaped, pad, numbers.copy(), resume, restart)


def _zeros(rows: int, width: int, dtype: Any) -> Array:
    return np.zeros((rows, width), dtype)


class _Columns(Sequence[Any]):
    """Some rows: of data, of labels, and their numbers."""

    def __init__(self, columns: tuple[Array, Array, Array]) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, index: Any) -> Any:
        return tuple(column[index] for column in self.columns)


class _Rows:
    """The rows of both tables, once."""

    def __init__(self, data: Iterator[Array], label: Iterator[Array] | None, reader: _TableReader) -> None:
        self.data = _Blocks(data, reader.data)
        self.label = None if label is None or reader.label is None else _Blocks(label, reader.label)
        self.reader = reader
        self.used = 0

    def take(self, count: int) -> _Columns:
        data = self.data.take(count)
        label = self._labels(len(data))
        numbers = np.arange(self.used, self.used + len(data), dtype=np.uint64)
        self.used += len(data)
        return _Columns((data, label, numbers))

    def _labels(self, count: int) -> Array:
        if self.label is None:
            return _zeros(count, 1, self.reader.data.dtype)
        label = self.label.take(count)
        if len(label) < count:
            raise FileFormatError(
                f"{', '.join(self.label.table.paths)}: there are {self.used + len(label)} rows of labels, and more rows of data"
            )
        return label


class _Blocks:
    """Rows of a table, any number at a time."""

    def __init__(self, blocks: Iterator[Array], table: Table) -> None:
        self.blocks = blocks
        self.table = table
        self.rest = _zeros(0, table.width, table.dtype)

    def take(self, count: int) -> Array:
        parts, missing = [], count
        while missing:
            if not len(self.rest):
                block = next(self.blocks, None)
                if block is None:
                    break
                self.rest = block
            parts.append(self.rest[:missing])
            self.rest = self.rest[missing:]
            missing -= len(parts[-1])
        return np.concatenate(parts) if parts else _zeros(0, self.table.width, self.table.dtype)


class Table:
    """Text files with a row of numbers for each example.

    **Args** `shape`: of an example; `dtype`: of the numbers.
    """

    def __init__(self, paths: list[str], shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.paths = paths
        self.shape = shape
        self.width = int(np.prod(shape))
        self.dtype = dtype

    def blocks(self) -> Iterator[Array]:
        """The rows, a block of lines at a time. Raises FileFormatError."""
        for path in self.paths:
            before = 0
            # A mark of the byte order may come first; other bytes than ASCII are in no number
            with open(path, encoding="utf-8-sig", errors="replace") as file:
                while lines := file.readlines(BLOCK):
                    block = self._block(lines)
                    yield self._line_by_line(path, before, lines) if block is None else block
                    before += len(lines)

    def _block(self, lines: list[str]) -> Array | None:
        """The rows of a block without faults, else None."""
        rows = [line for line in lines if not line.isspace()]
        if not rows or (self.dtype.kind == "i" and any(not NOT_WHOLE.isdisjoint(row) for row in rows)):
            return None
        try:
            table = np.loadtxt(rows, self.dtype, comments=None, delimiter=",", ndmin=2, encoding=None)
        except (ValueError, TypeError, OverflowError):
            return None
        return table if table.shape == (len(rows), self.width) else None

    def _line_by_line(self, path: str, before: int, lines: list[str]) -> Array:
        """The rows of a block. Empty lines do not count, nor commas at the end of one."""
        numbers = enumerate(lines, before + 1)
        rows = [self._row(f"{path}, line {number}", line) for number, line in numbers if not line.isspace()]
        return np.array(rows, self.dtype).reshape(-1, self.width)

    def _row(self, where: str, line: str) -> Array:
        fields = [field.strip() for field in line.rstrip(",\r\n\t ").split(",")]
        if len(fields) != self.width:
            raise FileFormatError(
                f"{where}: a row of {self.width} numbers is wanted, for shape {self.shape}; here are {len(fields)} fields"
            )
        number: Any = int if self.dtype.kind == "i" else float
        row = []
        for field in fields:
            try:
                row.append(number(field if "_" not in field else ""))  # Python would take 1_000 for a number
            except ValueError:
                wanted = "a whole number" if self.dtype.kind == "i" else "a number"
                hint = "; take a line of headings out of the file" if where.endswith("line 1") else ""
                raise FileFormatError(f"{where}: {wanted} is wanted, here is {shown(field)}{hint}") from None
        if self.dtype.kind == "i" and not np.iinfo(self.dtype).min <= min(row) <= max(row) <= np.iinfo(self.dtype).max:
            raise FileFormatError(f"{where}: there is a number that does not fit into {self.dtype.name}")
        return np.array(row, self.dtype)
