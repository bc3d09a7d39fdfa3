"""Vocabularies and counts of tokens are those of MXNet 1.9.1."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import minimx as mx
from minimx.contrib.text.utils import count_tokens_from_str
from minimx.contrib.text.vocab import Vocabulary

COUNTER = Counter(["a", "b", "b", "c", "c", "c", "some_word$"])


def text(token, sequence):
    lines = (("Life", "is", "great", "!"), ("life", "is", "good", "."), ("life", "isn't", "bad", "."))
    return "".join(token + token.join(line) + token + sequence for line in lines)


@pytest.mark.parametrize(("token", "sequence"), [(" ", "\n"), ("IS", "LIFE"), (r"\*", "[|]")])
def test_counting(token, sequence):
    source = text(token.replace("\\", ""), "|" if sequence == "[|]" else sequence)
    counts = {"is": 2, "life": 2, ".": 2, "Life": 1, "great": 1, "!": 1, "good": 1, "isn't": 1, "bad": 1}
    assert count_tokens_from_str(source, token, sequence) == Counter(counts)
    lower = {**counts, "life": 3}
    del lower["Life"]
    assert count_tokens_from_str(source, token, sequence, to_lower=True) == Counter(lower)
    before = Counter({"life": 2})
    assert count_tokens_from_str(source, token, sequence, counter_to_update=before) is before
    assert before["life"] == 4


def test_counting_with_what_is_no_regular_expression():
    with pytest.raises(ValueError, match="is no regular expression"):
        count_tokens_from_str("a*b", "*")


@pytest.mark.parametrize(
    ("options", "tokens"),
    [
        ({}, ["<unk>", "c", "b", "a", "some_word$"]),
        ({"min_freq": 2}, ["<unk>", "c", "b"]),
        ({"min_freq": 100}, ["<unk>"]),
        ({"most_freq_count": 2}, ["<unk>", "c", "b"]),
        ({"most_freq_count": 0}, ["<unk>"]),
        ({"most_freq_count": 2, "reserved_tokens": ["b"]}, ["<unk>", "b", "c", "a"]),
        ({"min_freq": 2, "reserved_tokens": ["b", "a"]}, ["<unk>", "b", "a", "c"]),
        ({"most_freq_count": 1, "min_freq": 2, "reserved_tokens": ["<pad>", "b"]}, ["<unk>", "<pad>", "b", "c"]),
        ({"min_freq": 2, "unknown_token": "b", "reserved_tokens": ["<pad>"]}, ["b", "<pad>", "c"]),
        ({"min_freq": 2, "unknown_token": "a"}, ["a", "c", "b"]),
    ],
)
def test_which_tokens_have_which_numbers(options, tokens):
    vocabulary = Vocabulary(COUNTER, **options)
    assert vocabulary.idx_to_token == tokens
    assert vocabulary.token_to_idx == {token: index for index, token in enumerate(tokens)}
    assert len(vocabulary) == len(tokens)
    assert vocabulary.unknown_token == tokens[0]
    assert vocabulary.reserved_tokens == options.get("reserved_tokens")


def test_tokens_of_other_kinds():
    vocabulary = Vocabulary(Counter([(1, 2), (1, 2), (0, 5)]), unknown_token=None)
    assert vocabulary.idx_to_token == [None, (1, 2), (0, 5)]
    assert vocabulary.to_indices((0, 5)) == 2  # a tuple is a token
    with pytest.raises(ValueError, match="cannot be put in order"):
        Vocabulary(Counter([1, "one"]))


def test_there_and_back():
    vocabulary = Vocabulary(COUNTER)
    assert vocabulary.to_indices("c") == 1
    assert vocabulary.to_indices(["a", "non-exist", "a", "b"]) == [3, 0, 3, 2]
    assert vocabulary.to_indices([]) == []
    assert vocabulary.to_tokens(1) == vocabulary.to_tokens(np.int64(1)) == "c"
    assert vocabulary.to_tokens([3, 0, 3, 2]) == ["a", "<unk>", "a", "b"]
    for wrong in (100, -1):
        with pytest.raises(ValueError, match=f"no token has the number {wrong}; there are 5 tokens"):
            vocabulary.to_tokens(wrong)
    with pytest.raises(ValueError, match="an int, or a list of them is wanted"):
        vocabulary.to_tokens("c")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_freq": 0}, "min_freq is 0"),
        ({"most_freq_count": -1}, "most_freq_count is -1"),
        ({"counter": ["a"]}, r"counter must be a collections.Counter, got \['a'\]; write Counter"),
        ({"reserved_tokens": ["<unk>"]}, "cannot be one of the reserved_tokens too"),
        ({"reserved_tokens": ["x", "x"]}, "the same token stands twice"),
        ({"reserved_tokens": "abc"}, "reserved_tokens must be a list"),
    ],
)
def test_what_is_no_vocabulary(options, message):
    with pytest.raises(AssertionError, match=message):
        Vocabulary(**{"counter": COUNTER, **options})
    assert mx.contrib.text.vocab.Vocabulary is Vocabulary
