"""Tokens and their numbers: the vocabulary of a text, `mx.contrib.text.vocab.Vocabulary`, and the counting that comes before it.

Number 0 stands for whatever is not in the vocabulary, then come the reserved tokens, then the tokens of the text, the frequent ones
first. It knows no arrays, so that embeddings (contrib/text) and data sets of text (gluon/contrib/data) can both stand on it.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from .base import ArgumentError, shown

__all__ = ["UNKNOWN_IDX", "Vocabulary", "VocabularyError", "count_tokens_from_str"]

#: The number of the token that stands for all unknown ones.
UNKNOWN_IDX = 0


class VocabularyError(ArgumentError, AssertionError):
    """Tokens from which no vocabulary can be made. (MXNet asserts it: hence the last base.)"""


def count_tokens_from_str(
    source_str: str,
    token_delim: str = " ",
    seq_delim: str = "\n",
    to_lower: bool = False,
    counter_to_update: Counter[Any] | None = None,
) -> Counter[Any]:
    """How often each token occurs in a text.

    **Args** `token_delim`, `seq_delim`: what stands between tokens and between sequences of them, as regular expressions; `to_lower`:
    count tokens in lower case; `counter_to_update`: add to this counter and return it. **Raises** ArgumentError for a delimiter that is
    no regular expression. **Source** MXNet `contrib.text.utils.count_tokens_from_str`.

    >>> sorted(count_tokens_from_str(" Life is great ! \\n life is good . \\n", to_lower=True).items())
    [('!', 1), ('.', 1), ('good', 1), ('great', 1), ('is', 2), ('life', 2)]
    """
    try:
        tokens = re.split(token_delim + "|" + seq_delim, source_str)
    except re.error as error:
        raise ArgumentError(
            f"count_tokens_from_str: {token_delim!r} or {seq_delim!r} is no regular expression ({error}); "
            "write a backslash before a character with a meaning in them, such as *"
        ) from None
    counter: Counter[Any] = Counter() if counter_to_update is None else counter_to_update
    counter.update(token.lower() if to_lower else token for token in tokens if token)
    return counter


class Vocabulary:
    """Tokens and their numbers.

    **Args** `counter`: how often each token occurs in the text; tokens get numbers in the order of their frequencies, equally frequent
    ones in that of `<`. `most_freq_count`: so many of them at most, reserved ones not counted; `min_freq`: leave out those that occur less
    often; `unknown_token`: what has number 0 and stands for all other tokens; `reserved_tokens`: what is given numbers in any case, from 1
    on. Tokens may be anything hashable. **Raises** VocabularyError for tokens or limits that make no sense. **Source** MXNet
    `contrib.text.vocab.Vocabulary`.

    >>> vocabulary = Vocabulary(Counter("a rose is a rose is a rose".split()), reserved_tokens=["<pad>"])
    >>> vocabulary.idx_to_token
    ['<unk>', '<pad>', 'a', 'rose', 'is']
    >>> vocabulary.to_indices(["a", "tulip"]), vocabulary.to_tokens(3)
    ([2, 0], 'rose')
    """

    def __init__(
        self,
        counter: Counter[Any] | None = None,
        most_freq_count: int | None = None,
        min_freq: int = 1,
        unknown_token: Hashable = "<unk>",
        reserved_tokens: Sequence[Hashable] | None = None,
    ) -> None:
        if not min_freq > 0:
            raise VocabularyError(f"Vocabulary: min_freq is {shown(min_freq)}; it must be more than 0")
        if most_freq_count is not None and most_freq_count < 0:
            raise VocabularyError(f"Vocabulary: most_freq_count is {shown(most_freq_count)}; it must be 0 or more, or None")
        if counter is not None and not isinstance(counter, Counter):
            raise VocabularyError(
                f"Vocabulary: counter must be a collections.Counter, got {shown(counter)}; write Counter(tokens)"
            )
        if isinstance(reserved_tokens, str):
            raise VocabularyError(f"Vocabulary: reserved_tokens must be a list of tokens, got {shown(reserved_tokens)}")
        reserved = [] if reserved_tokens is None else list(reserved_tokens)
        if unknown_token in reserved:
            raise VocabularyError(f"Vocabulary: unknown_token {shown(unknown_token)} cannot be one of the reserved_tokens too")
        if len(set(reserved)) < len(reserved):
            raise VocabularyError("Vocabulary: the same token stands twice in reserved_tokens")
        self._unknown_token = unknown_token
        self._reserved_tokens = None if reserved_tokens is None else reserved
        self._idx_to_token: list[Any] = [unknown_token, *reserved]
        if counter is not None:
            self._idx_to_token += self._chosen(counter, most_freq_count, min_freq)
        self._token_to_idx: dict[Any, int] = {token: index for index, token in enumerate(self._idx_to_token)}

    def _chosen(self, counter: Counter[Any], most_freq_count: int | None, min_freq: int) -> list[Any]:
        """The tokens of `counter` that get numbers, in order."""
        known = set(self._idx_to_token)
        try:
            ordered = sorted(counter.items(), key=operator.itemgetter(0))
        except TypeError as error:
            raise VocabularyError(
                f"Vocabulary: the tokens of counter cannot be put in order ({error}); they must be of one kind"
            ) from None
        ordered.sort(key=operator.itemgetter(1), reverse=True)
        return [token for token, frequency in ordered if frequency >= min_freq and token not in known][:most_freq_count]

    def __len__(self) -> int:
        return len(self._idx_to_token)

    @property
    def token_to_idx(self) -> dict[Any, int]:
        """The number of each token."""
        return self._token_to_idx

    @property
    def idx_to_token(self) -> list[Any]:
        """The token of each number."""
        return self._idx_to_token

    @property
    def unknown_token(self) -> Any:
        """What number 0 stands for."""
        return self._unknown_token

    @property
    def reserved_tokens(self) -> list[Any] | None:
        """The tokens after the unknown one that are there in any case, or None."""
        return self._reserved_tokens

    def to_indices(self, tokens: Any) -> Any:
        """The number of a token, or those of a list of tokens; 0 for what is unknown."""
        if not isinstance(tokens, list):
            return self._token_to_idx.get(tokens, UNKNOWN_IDX)
        return [self._token_to_idx.get(token, UNKNOWN_IDX) for token in tokens]

    def to_tokens(self, indices: Any) -> Any:
        """The token of a number, or those of a list of numbers. **Raises** ValueError for a number that no token has."""
        return [self._token(each) for each in indices] if isinstance(indices, list) else self._token(indices)

    def _token(self, index: Any) -> Any:
        try:
            number = operator.index(index)
        except TypeError:
            raise ArgumentError(
                f"Vocabulary: the number of a token is an int, or a list of them is wanted; got {shown(index)}"
            ) from None
        if not 0 <= number < len(self._idx_to_token):
            raise ArgumentError(f"Vocabulary: no token has the number {number}; there are {len(self)} tokens, numbered from 0")
        return self._idx_to_token[number]
