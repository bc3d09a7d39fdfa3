"""Search in Chinese: pages and queries are cut into pairs of characters. test_site.py asks a browser, whose half is JavaScript."""

from __future__ import annotations

import pytest

pytest.importorskip("sphinx", reason="the extra `site` brings Sphinx")

import chinese_search


def test_text_is_cut_into_characters_pairs_and_words() -> None:
    language = chinese_search.SearchPairs({})
    assert language.split("用 NDArray 自动微分，x_1 > 0。") == [
        "用", "NDArray", "自", "动", "微", "分", "自动", "动微", "微分", "x_1", "0",
    ]  # fmt: skip
    assert language.split("") == []


def test_which_words_are_kept() -> None:
    language = chinese_search.SearchPairs({})
    assert [language.word_filter(word) for word in ("自", "自动", "nd", "x")] == [True, True, True, False]
    assert language.stem("Broadcasting") == "broadcast"
