"""What a batch is, and what gives batches: DataDesc, DataBatch and the base of all iterators, DataIter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..base import ArgumentError, mx_real_t, shown
from ..keywords import name_unknown

__all__ = ["BatchError", "DataBatch", "DataDesc", "DataIter"]


class BatchError(ArgumentError, AssertionError):
    """Data that cannot be a batch, or be cut into batches. (MXNet asserts some of it: hence the second base.)"""


class _NameAndShape(NamedTuple):
    name: str
    shape: Any


class DataDesc(_NameAndShape):
    """Name and shape of an array of each batch: a pair, which also knows the `dtype` and what the axes mean (`layout`, "N" being the
    examples). **Source** MXNet `io.DataDesc`.

    >>> DataDesc("data", (8, 1, 28, 28))
    DataDesc[data,(8, 1, 28, 28),<class 'numpy.float32'>,NCHW]
    """

    dtype: Any
    layout: str | None

    def __new__(cls, name: str, shape: Any, dtype: Any = mx_real_t, layout: str | None = "NCHW") -> DataDesc:
        made = super().__new__(cls, name, shape)
        made.dtype, made.layout = dtype, layout
        return made

    def __repr__(self) -> str:
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @staticmethod
    def get_batch_axis(layout: str | None) -> int:
        """The axis of the examples: that of "N" in `layout`, 0 without a layout, -1 if there is none."""
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(shapes: Iterable[tuple[str, Any]], types: Iterable[tuple[str, Any]] | None) -> list[DataDesc]:
        """Descriptions from pairs of name and shape, and pairs of name and dtype."""
        if types is None:
            return [DataDesc(name, shape) for name, shape in shapes]
        of_name = dict(types)
        return [DataDesc(name, shape, of_name[name]) for name, shape in shapes]


class DataBatch:
    """A batch: `data` and `label`, lists of arrays; `pad`, how many examples at the end only fill it up; `index`, which examples these are.
    **Source** MXNet `io.DataBatch`."""

    def __init__(
        self,
        data: Sequence[Any] | None,
        label: Sequence[Any] | None = None,
        pad: int | None = None,
        index: Any = None,
        bucket_key: Any = None,
        provide_data: list[DataDesc] | None = None,
        provide_label: list[DataDesc] | None = None,
    ) -> None:
        for what, arrays in (("data", data), ("label", label)):
            if arrays is not None and not isinstance(arrays, (list, tuple)):
                raise BatchError(f"DataBatch: {what} must be a list of arrays, got {shown(arrays)}; write [{what}]")
        self.data = data
        self.label = label
        self.pad = pad
        self.index = index
        self.bucket_key = bucket_key
        self.provide_data = provide_data
        self.provide_label = provide_label

    def __str__(self) -> str:
        data = [each.shape for each in self.data or ()]
        label = [each.shape for each in self.label] if self.label else None
        return f"{type(self).__name__}: data shapes: {data} label shapes: {label}"


@name_unknown
class DataIter:
    """The base of all iterators. A subclass overrides `iter_next`, `getdata`, `getlabel`, `getpad` and `reset`, or `next` as a whole, and
    has `provide_data` and `provide_label`. **Source** MXNet `io.DataIter`."""

    provide_data: Any
    provide_label: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        name_unknown(cls)

    def __init__(self, batch_size: int = 0) -> None:
        self.batch_size = batch_size

    def __iter__(self) -> DataIter:
        return self

    def __next__(self) -> DataBatch:
        return self.next()

    def reset(self) -> None:
        """Go back to the beginning of the data."""

    def next(self) -> DataBatch:
        """The next batch. Raises StopIteration at the end of the data."""
        if not self.iter_next():
            raise StopIteration
        return DataBatch(self.getdata(), self.getlabel(), self.getpad(), self.getindex())

    def iter_next(self) -> bool:
        """Move on to the next batch, and say whether there is one."""
        raise NotImplementedError(f"{type(self).__name__} must override iter_next, or next")

    def getdata(self) -> list[Any]:
        """The data of the current batch."""
        raise NotImplementedError(f"{type(self).__name__} must override getdata, or next")

    def getlabel(self) -> list[Any] | None:
        """The labels of the current batch."""
        return None

    def getindex(self) -> Any:
        """The numbers of the examples in the current batch, or None if the iterator does not know them."""
        return None

    def getpad(self) -> int | None:
        """How many examples at the end of the current batch only fill it up."""
        return None
