"""`gluon.contrib.data.text`: text to train language models with, as sequences of token numbers.

Each sample is a sequence of `seq_len` tokens and the same one token later, which the model should say. The text is cut without regard to
sentences; each line ends in the token `<eos>`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from .... import files, nd
from ....base import ArgumentError, FileFormatError, shown
from ....fields import converted
from ....vocabulary import Vocabulary, count_tokens_from_str
from ... import repository
from ...data.dataset import _DownloadedDataset

__all__ = ["WikiText103", "WikiText2"]

EOS_TOKEN = "<eos>"


class _WikiText(_DownloadedDataset):
    """A data set of Wikipedia's articles."""

    namespace: ClassVar[str]
    archive: ClassVar[tuple[str, str]]
    segments: ClassVar[dict[str, tuple[str, str]]]

    def __init__(
        self, root: files.PathLike | None = None, segment: str = "train", vocab: Vocabulary | None = None, seq_len: int = 35
    ) -> None:
        name = type(self).__name__
        if segment not in self.segments:
            raise ArgumentError(f"{name}: segment is {shown(segment)}; choose one of {', '.join(map(repr, self.segments))}")
        if vocab is not None and not isinstance(vocab, Vocabulary):
            raise ArgumentError(f"{name}: vocab must be a contrib.text.vocab.Vocabulary, got {shown(vocab)}")
        self._segment = segment
        self._seq_len = converted(name, "seq_len", "int", seq_len)
        if self._seq_len < 1:
            raise ArgumentError(f"{name}: seq_len is {self._seq_len}; it must be 1 or more")
        self._vocab = vocab
        self._counter: Counter[Any] | None = None
        super().__init__(os.path.join(files.data_dir(), "datasets", self.namespace) if root is None else root, None)

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The tokens and their numbers: those that were given, or of this text."""
        return self._vocab

    @property
    def frequencies(self) -> Counter[Any] | None:
        """How often each token occurs in this text."""
        return self._counter

    def _get_data(self) -> None:
        name, sha1 = self.segments[self._segment]
        archive, archive_sha1 = self.archive
        source = repository.url(f"gluon/dataset/{self.namespace}", archive)
        path = repository.fetch(self._root, name, sha1, source, archive_sha1)
        numbers = self._numbers(path)
        count = (len(numbers) - 1) // self._seq_len * self._seq_len
        if count < self._seq_len:
            raise FileFormatError(f"{path} has {len(numbers)} tokens, which are too few for a sequence of {self._seq_len}")
        # A copy each, as a token is in both
        self._data, self._label = (
            nd.array(numbers[start : start + count].reshape(-1, self._seq_len), dtype="int32") for start in (0, 1)
        )

    def _numbers(self, path: str) -> np.ndarray[Any, np.dtype[np.int32]]:
        """The numbers of all tokens of a text."""
        try:
            with open(path, encoding="utf8") as file:
                text = file.read()
        except UnicodeDecodeError as error:
            raise FileFormatError(f"{path}: byte {error.start} is not UTF-8 text") from None
        self._counter = count_tokens_from_str(text)
        if self._vocab is None:
            self._vocab = Vocabulary(self._counter, reserved_tokens=[EOS_TOKEN])
        find = self._vocab.token_to_idx.get
        return np.fromiter((find(token, 0) for token in _tokens(text)), np.int32)


def _tokens(text: str) -> Iterator[str]:
    """The tokens of a text, with one that says so behind the last of each line."""
    for line in text.splitlines():
        tokens = line.split()
        if tokens:
            yield from tokens
            yield EOS_TOKEN


class WikiText2(_WikiText):
    """WikiText-2: 2 million words of Wikipedia's good and featured articles to train with (S. Merity and others, "Pointer Sentinel Mixture
    Models", https://arxiv.org/abs/1609.07843). Licence: Creative Commons Attribution-ShareAlike.

    **Args** `root`: the folder of the files, `$MXNET_HOME/datasets/wikitext-2` by default; `segment`: "train", "validation" or "test";
    `vocab`: the vocabulary to use, for the other segments that of "train"; by default one of all tokens is made; `seq_len`: how many
    tokens a sample has. **Returns** samples of data and label, arrays (seq_len,) of int32. **Raises** MissingFileError that says where to
    put a file that is not there and cannot be downloaded; FileFormatError for another checksum. **Source** MXNet
    `gluon.contrib.data.text.WikiText2`.
    """

    namespace = "wikitext-2"
    archive = ("wikitext-2-v1.zip", "3c914d17d80b1459be871a5039ac23e752a53cbe")
    segments: ClassVar[dict[str, tuple[str, str]]] = {
        "train": ("wiki.train.tokens", "863f29c46ef9d167fff4940ec821195882fe29d1"),
        "validation": ("wiki.valid.tokens", "0418625c8b4da6e4b5c7a0b9e78d4ae8f7ee5422"),
        "test": ("wiki.test.tokens", "c7b8ce0aa086fb34dab808c5c49224211eb2b172"),
    }


class WikiText103(_WikiText):
    """WikiText-103: 103 million words of such articles. **Args**, **Returns**, **Raises** as WikiText2; `root` is
    `$MXNET_HOME/datasets/wikitext-103` by default. **Source** MXNet `gluon.contrib.data.text.WikiText103`.
    """

    namespace = "wikitext-103"
    archive = ("wikitext-103-v1.zip", "0aec09a7537b58d4bb65362fee27650eeaba625a")
    segments: ClassVar[dict[str, tuple[str, str]]] = {
        "train": ("wiki.train.tokens", "b7497e2dfe77e72cfef5e3dbc61b7b53712ac211"),
        "validation": ("wiki.valid.tokens", "c326ac59dc587676d58c422eb8a03e119582f92b"),
        "test": ("wiki.test.tokens", "8a5befc548865cec54ed4273cf87dbbad60d1e47"),
    }
