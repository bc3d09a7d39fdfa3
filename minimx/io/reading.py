"""Which records of images are read, in which order, and how: options that the iterators over images have in common."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from .. import files
from .file_iter import check_part, shape_of, whole
from .options import require
from .records import DealtSource, Records, RecordSource

__all__ = ["Reading", "shape_of_image"]


@dataclasses.dataclass(frozen=True)
class Reading:
    """Options of reading. Each iterator adds its own."""

    path_imglist: files.PathLike = ""  # a list of labels (.lst) that replace those in the records
    num_parts: int = 1  # read one of so many parts ...
    part_index: int = 0  # ... this one
    shuffle: bool = False  # in another order in each epoch
    seed: int = 0  # of the orders
    shuffle_chunk_size: int = 0  # MB: without an index, parts of this size are read in a random order
    shuffle_chunk_seed: int = 0  # of that order
    round_batch: bool = True  # fill up the last batch of a pass with the beginning of the next one
    preprocess_threads: int = 4  # that decode images
    verbose: bool = True  # log what is read
    ctx: str = "gpu"  # "cpu" or "gpu"; makes no difference
    aug_seq: str = ""  # makes no difference

    def check(self, owner: str, aug_seq: str) -> None:
        """Raise an error for options that cannot be."""
        check_part(owner, self.num_parts, self.part_index)
        whole(owner, "preprocess_threads", self.preprocess_threads)
        size = whole(owner, "shuffle_chunk_size", self.shuffle_chunk_size, least=0)
        require(self.shuffle or not size, owner, "shuffle_chunk_size", size, "it says how to mix, and needs shuffle=True")
        require(self.ctx in ("cpu", "gpu"), owner, "ctx", self.ctx, "choose 'cpu' or 'gpu', which makes no difference here")
        require(self.aug_seq in ("", aug_seq), owner, "aug_seq", self.aug_seq, f"there is only {aug_seq!r}")

    def source(self, paths: list[str], index: files.PathLike, order_seed: int) -> RecordSource:
        """What reads the records. **Args** `index`: of the only file, "" if there is none; `order_seed`: MXNet adds it to `seed`."""
        records = Records(paths, files.as_path(index) if index else None, self.num_parts, self.part_index)
        seed = self.seed + order_seed
        if self.shuffle and self.shuffle_chunk_size and not index:
            return DealtSource(records, seed, self.shuffle_chunk_size, self.shuffle_chunk_seed)
        return RecordSource(records, seed if self.shuffle else None)

    @property
    def threads(self) -> int:
        """How many threads decode: not more than can run."""
        return min(self.preprocess_threads, os.cpu_count() or 1)


def shape_of_image(owner: str, data_shape: Any) -> tuple[int, int, int]:
    """`data_shape` as (channels, height, width). Raises ArgumentError."""
    shape = shape_of(owner, "data_shape", data_shape)
    good = len(shape) == 3 and shape[0] in (1, 3, 4)
    require(good, owner, "data_shape", shape, "(channels, height, width) is wanted, with 1, 3 or 4 channels")
    return shape[0], shape[1], shape[2]
