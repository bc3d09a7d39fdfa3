"""Links and references in the pages, the chapters, their translations and the prose of the code lead somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("mdit_py_plugins", reason="the extra `site` brings the parser of Markdown")
pytest.importorskip("spellchecker", reason="the extra `test` brings the package pyspellchecker")

import links  # book/, see conftest.py


def test_all_lead_somewhere() -> None:
    found = links.all_faults()
    assert not found, "\n".join(found)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "other.md").write_text("# A `first` title\n\n(label-1)=\n## Second, and last\n\n#### Fourth", encoding="utf-8")
    path = tmp_path / "page.md"
    path.write_text("# This one", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[a](other.md) [b](other.md#a-first-title) [c](other.md#second-and-last) [d](other.md#label-1) [e](#this-one)", []),
        ("[a](https://arxiv.org/abs/1512.00567) <https://example.org>", []),
        ("[a](gone.md)", ["a link to nothing: gone.md"]),
        ("![a](gone.png)", ["a link to nothing: gone.png"]),
        ("[a](other.md#third)", ["no such heading or label there: other.md#third"]),
        ("[a](other.md#fourth)", ["no such heading or label there: other.md#fourth"]),  # the site has anchors for three levels
        ("[a](#that-one)", ["no such heading or label there: #that-one"]),
        ("[a](https:/arxiv.org/abs)", ["no address of the form https://host/path: https:/arxiv.org/abs"]),
        ("[a](http://arxiv.org/abs)", ["no address of the form https://host/path: http://arxiv.org/abs"]),
        ("See `roi.py`, book/index.md, ops/roi.py and chapters 1, 2 and 14.", []),
        ("See `roy.py` and book/ops/roi.py.", ["no file is called roy.py", "no file is called book/ops/roi.py"]),
        ("See chapters 1, 2 and 99.", ["there is no such chapter: chapters 1, 2 and 99"]),
        ("见第 99 章。", ["there is no such chapter: 第 99 章"]),
        ("See appendix Q.", ["there is no such chapter: appendix Q"]),
    ],
)
def test_what_leads_nowhere_is_found(page: Path, text: str, found: list[str]) -> None:
    assert list(links.faults(text, page)) == found
