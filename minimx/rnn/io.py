"""Sentences as data: words become numbers, and sentences of similar length batches, for a BucketingModule."""

from __future__ import annotations

import bisect
import logging
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import nd
from ..base import ArgumentError, MXNetError, shown
from ..io import DataBatch, DataDesc, DataIter

__all__ = ["BucketSentenceIter", "encode_sentences"]


class UnknownWordError(MXNetError, AssertionError):
    """A word that the vocabulary lacks. (MXNet asserts that it has it: hence the second base.)"""


def encode_sentences(
    sentences: Sequence[Sequence[str]], vocab: dict[str, int] | None = None, invalid_label: int = -1, invalid_key: str = "\n",
    start_label: int = 0, unknown_token: str | None = None,
) -> tuple[list[list[int]], dict[str, int]]:  # fmt: skip
    """Sentences with numbers for words, and the vocabulary.

    **Args** `vocab`: the numbers of words; None for a new one, which begins at `start_label`, and in which `invalid_label` stands for
    `invalid_key`. `unknown_token`: stands for words that `vocab` lacks, and is entered into it. **Raises** AssertionError for such a word
    without `unknown_token`. **Source** MXNet `rnn.encode_sentences`, which gives the token another number each time.

    >>> encode_sentences([["a", "b"], ["b", "c"]])
    ([[0, 1], [1, 2]], {'\\n': -1, 'a': 0, 'b': 1, 'c': 2})
    """
    is_new = vocab is None
    words = {invalid_key: invalid_label} if vocab is None else vocab
    free = start_label
    coded: list[list[int]] = []
    for sentence in sentences:
        numbers = []
        for word in sentence:
            if word not in words and not is_new and not unknown_token:
                raise UnknownWordError(f"encode_sentences: Unknown token {shown(word)}; pass unknown_token=, or no vocab")
            known = unknown_token if word not in words and unknown_token else word
            if known not in words:
                free += free == invalid_label
                words[known] = free
                free += 1
            numbers.append(words[known])
        coded.append(numbers)
    return coded, words


class BucketSentenceIter(DataIter):
    """Batches of sentences; the label of each word is the next one.

    A sentence goes into the smallest bucket in which it has room, and is filled up with `invalid_label`. Batches come in random order, of
    sentences in random order, by the generators of `random` and `numpy.random`.

    **Args** `sentences`: lists of numbers. `buckets`: lengths; by default all lengths that fill a batch. `data_name`, `label_name`: what
    the arrays are called. `layout`: "NT" for arrays (batch size, length), "TN" for (length, batch size). **Source** MXNet
    `rnn.BucketSentenceIter`.
    """

    def __init__(
        self, sentences: Sequence[Sequence[int]], batch_size: int, buckets: Sequence[int] | None = None, invalid_label: int = -1,
        data_name: str = "data", label_name: str = "softmax_label", dtype: Any = "float32", layout: str = "NT",
    ) -> None:  # fmt: skip
        super().__init__(batch_size)
        if layout not in ("NT", "TN"):
            raise ArgumentError(
                f"BucketSentenceIter: Invalid layout {shown(layout)}: Must be NT (batch major) or TN (time major)"
            )
        if not buckets:
            buckets = [int(length) for length in np.flatnonzero(np.bincount([len(each) for each in sentences]) >= batch_size)]
        gathered: dict[int, list[Any]] = {length: [] for length in sorted(buckets)}
        lengths = list(gathered)
        for sentence in sentences:
            place = bisect.bisect_left(lengths, len(sentence))
            if place < len(lengths):
                row = np.full(lengths[place], invalid_label, dtype)
                row[: len(sentence)] = sentence
                gathered[lengths[place]].append(row)
        left_out = len(sentences) - sum(map(len, gathered.values()))
        if left_out:
            logging.getLogger().warning("discarded %d sentences longer than the largest bucket.", left_out)
        self.buckets = [length for length, rows in gathered.items() if rows]
        if not self.buckets:
            raise ArgumentError(
                f"BucketSentenceIter: no sentence has room in the buckets {shown(lengths)}, or no length fills a batch"
            )
        self.data = [np.array(gathered[length], dtype) for length in self.buckets]
        self.data_name, self.label_name = data_name, label_name
        self.dtype, self.layout, self.invalid_label = dtype, layout, invalid_label
        self.major_axis = layout.find("N")
        self.default_bucket_key = max(self.buckets)
        whole = (batch_size, self.default_bucket_key)
        self.provide_data = [DataDesc(data_name, whole if layout == "NT" else whole[::-1], layout=layout)]
        self.provide_label = [DataDesc(label_name, whole if layout == "NT" else whole[::-1], layout=layout)]
        #: Bucket and first sentence of each batch.
        self.idx = [
            (bucket, begin) for bucket, rows in enumerate(self.data) for begin in range(0, len(rows) - batch_size + 1, batch_size)
        ]
        self.reset()

    def reset(self) -> None:
        """Begin again, in another order."""
        self.curr_idx = 0
        random.shuffle(self.idx)
        self.nddata: list[nd.NDArray] = []
        self.ndlabel: list[nd.NDArray] = []
        for rows in self.data:
            np.random.shuffle(rows)
            labels = np.full_like(rows, self.invalid_label)
            labels[:, :-1] = rows[:, 1:]
            self.nddata.append(nd.array(rows, dtype=self.dtype))
            self.ndlabel.append(nd.array(labels, dtype=self.dtype))

    def next(self) -> DataBatch:
        """The next batch, with its `bucket_key`. Raises StopIteration at the end."""
        if self.curr_idx == len(self.idx):
            raise StopIteration
        bucket, begin = self.idx[self.curr_idx]
        self.curr_idx += 1
        data, label = (arrays[bucket][begin : begin + self.batch_size] for arrays in (self.nddata, self.ndlabel))
        if self.layout == "TN":
            data, label = data.T, label.T
        return DataBatch(
            [data], [label], pad=0, bucket_key=self.buckets[bucket],
            provide_data=[DataDesc(self.data_name, data.shape, layout=self.layout)],
            provide_label=[DataDesc(self.label_name, label.shape, layout=self.layout)],
        )  # fmt: skip
