"""Reading images' records epoch after epoch: in the file's order or at random, the whole file or a part of it.

With an index (`path_imgidx`) any record can be read at once, so that an epoch is a permutation of all records. Without, a file is read from
the beginning to the end, a chunk at a time, and records change places within a chunk: a file that is smaller than that is mixed as
thoroughly. Parts are equal numbers of records with an index, else equal numbers of bytes, cut where a record begins. Orders and parts are
those of MXNet, and of its library dmlc-core.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import files
from ..base import FileFormatError
from ..recordfile import MAGIC, RecordReader, read_index
from ..recordio import unpack
from .batch import BatchError
from .shuffling import Shuffler

__all__ = ["DealtSource", "Image", "RecordSource", "Records"]

#: How many bytes of a file are mixed together where there is no index.
CHUNK = 8 << 20

#: What dmlc-core adds to the seed of the order of parts.
DEALER_SEED = 666

#: How much is searched at once for the beginning of a record, in bytes.
WINDOW = 1 << 16


class Image(NamedTuple):
    """A record: where it is, for errors; the image's number, its labels, and its bytes, compressed."""

    place: str
    number: int
    labels: np.ndarray[Any, Any]
    content: bytes


def image_of(record: bytes, place: str) -> Image:
    """The image in a record. Raises FileFormatError."""
    try:
        header, content = unpack(record)
    except FileFormatError as error:
        raise FileFormatError(f"{place}: {error}") from None
    return Image(place, header.id, np.atleast_1d(np.asarray(header.label, np.float32)), content)


class Records:
    """The files of records and which part of them counts.

    **Args** `paths`: the files; `index`: the index of the only one, if there is one; `num_parts`, `part_index`: read one of so many parts.
    """

    def __init__(self, paths: list[str], index: str | None, num_parts: int, part_index: int) -> None:
        if index is not None and len(paths) > 1:
            raise BatchError(f"path_imgidx is the index of one file of records; here are {len(paths)}")
        self.paths = paths
        self.index = index
        self.num_parts = num_parts
        self.part_index = part_index

    def offsets(self) -> list[int]:
        """Where the records of this part begin, by the index."""
        assert self.index is not None
        found = sorted(offset for _, offset in read_index(self.index, int))
        if not found:
            raise FileFormatError(f"{self.index} has no entries; it is no index of records")
        step = -(-len(found) // self.num_parts)
        return found[step * self.part_index : step * (self.part_index + 1)]

    def ranges(self) -> list[tuple[str, int, int]]:
        """The files of this part, each with the bytes between which its records begin."""
        sizes = []
        for path in self.paths:
            file, size = files.open_file(path)
            file.close()
            sizes.append(size)
        step = -(-sum(sizes) // self.num_parts)
        step += -step % 4
        begin, end, at, found = step * self.part_index, step * (self.part_index + 1), 0, []
        for path, size in zip(self.paths, sizes):
            if begin < at + size and end > at:
                found.append((path, max(begin - at, 0), min(end - at, size)))
            at += size
        return found

    def in_order(self) -> Iterator[tuple[Image, int, int]]:
        """The images of this part, with where in the file their records begin and end."""
        for path, begin, end in self.ranges():
            reader = RecordReader(path)
            try:
                reader.offset = _next_record(reader, begin)
                end = _next_record(reader, end)
                while (start := reader.offset) < end and (record := reader.next()) is not None:
                    yield image_of(record, f"{path}, byte {start}"), start, reader.offset
            finally:
                reader.close()


def _next_record(reader: RecordReader, begin: int) -> int:
    """Where the first record begins that does so at the byte `begin`, a multiple of 4, or behind it."""
    while 0 < begin < reader.size:
        reader.file.seek(begin)
        words = np.frombuffer(reader.file.read(WINDOW + 4)[: -((reader.size - begin) % 4) or None], "<u4")
        kinds = words[1:] >> 29
        found = np.flatnonzero((words[:-1] == MAGIC) & (kinds <= 1))
        if len(found):
            return begin + 4 * int(found[0])
        begin += WINDOW
    return min(begin, reader.size)


class RecordSource:
    """Images, epoch after epoch. **Args** `seed`: of the orders, None for the file's own."""

    def __init__(self, records: Records, seed: int | None) -> None:
        self.records = records
        self._shuffler = None if seed is None else Shuffler(seed)
        self._epoch = 0  # how many have begun

    @property
    def random(self) -> Any:
        """Which epoch comes next, and where the generators of orders stand. It can be set back there."""
        return self._standing()

    @random.setter
    def random(self, random: Any) -> None:
        self._stand(random)

    def _standing(self) -> Any:
        return self._epoch, None if self._shuffler is None else self._shuffler.state

    def _stand(self, random: Any) -> None:
        self._epoch, state = random
        if self._shuffler is not None:
            self._shuffler.state = state

    def epoch(self) -> RecordEpoch:
        self._epoch += 1
        return RecordEpoch(self._images(), self._epoch)

    def _images(self) -> Iterator[Image]:
        return self._mixed_by_index() if self.records.index is not None else self._mixed_by_chunk(self.records)

    def _mixed_by_index(self) -> Iterator[Image]:
        offsets = self.records.offsets()
        if self._shuffler is not None:
            self._shuffler.shuffle(offsets)
        reader = RecordReader(self.records.paths[0])
        try:
            for offset in offsets:
                record = reader.next(offset)
                if record is None:
                    raise reader.error(offset, f"{self.records.index} says that a record is here, but the file ends before")
                yield image_of(record, f"{reader.path}, byte {offset}")
        finally:
            reader.close()

    def _mixed_by_chunk(self, records: Records) -> Iterator[Image]:
        if self._shuffler is None:
            for image, _, _ in records.in_order():
                yield image
            return
        for chunk in self._chunks(records):
            self._shuffler.shuffle(chunk)
            yield from chunk

    def _chunks(self, records: Records) -> Iterator[list[Image]]:
        """The images of one chunk after the other. The last record that begins in a chunk belongs to the next one, unless the file ends."""
        chunk: list[Image] = []
        begin = last = before = 0  # bytes read: where the chunk begins, and where the record before this one and this one do
        for image, start, end in records.in_order():
            if len(chunk) > 1 and before > begin + CHUNK - 8:
                yield chunk[:-1]
                begin, chunk = last, chunk[-1:]
            chunk.append(image)
            last, before = before, before + end - start
        if len(chunk) > 1 and before >= begin + CHUNK:
            yield chunk[:-1]
            chunk = chunk[-1:]
        if chunk:
            yield chunk


class DealtSource(RecordSource):
    """Images of a large file without an index: parts of it are read in a random order, and records mixed within each.

    **Args** `size`: of such a part, in MB; `order_seed`: of the order of the parts.
    """

    def __init__(self, records: Records, seed: int, size: int, order_seed: int) -> None:
        super().__init__(records, seed)
        total = sum(os.path.getsize(path) for path in records.paths)
        self._count = max(math.ceil(total * 1.1 / (records.num_parts * (size << 20))), 1)
        self._dealer = Shuffler(DEALER_SEED + records.part_index + records.num_parts + self._count + order_seed)
        self._order = list(range(self._count))

    def _standing(self) -> Any:
        return super()._standing(), self._dealer.state, tuple(self._order)

    def _stand(self, random: Any) -> None:
        super()._stand(random[0])
        self._dealer.state = random[1]
        self._order = list(random[2])

    def _images(self) -> Iterator[Image]:
        records = self.records
        self._dealer.shuffle(self._order)  # the last order becomes the next one
        for part in tuple(self._order):
            number = records.part_index * self._count + part
            yield from self._mixed_by_chunk(Records(records.paths, None, records.num_parts * self._count, number))


class RecordEpoch:
    """The images of an epoch, with a number for each: how many came before it."""

    def __init__(self, images: Iterator[Image], number: int) -> None:
        self.images = images
        self.number = number
        self.used = 0

    def take(self, count: int) -> list[tuple[Image, int, int]]:
        """The next images, `count` at most, with the epoch's number and their own."""
        found = []
        for image in self.images:
            found.append((image, self.number, self.used))
            self.used += 1
            if len(found) == count:
                break
        return found
