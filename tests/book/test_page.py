"""What is done to pages as Sphinx reads them. test_site.py looks at the pages that come out."""

from __future__ import annotations

import pytest

pytest.importorskip("myst_nb", reason="the extra `site` brings myst-nb")

import page


def test_streams_are_merged_and_the_notebook_stays_as_it_is() -> None:
    pieces = [{"output_type": "stream", "name": "stdout", "text": text} for text in ("one\n", "two\n")]
    assert [output["text"] for output in page.merge_copies_of_streams(pieces)] == ["one\ntwo\n"]
    assert [output["text"] for output in pieces] == ["one\n", "two\n"]
