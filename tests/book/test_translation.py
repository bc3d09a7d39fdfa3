"""The Chinese text of the book: nothing missing, nothing outdated, nothing lost; and the machinery that joins it with the notebooks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("mdit_py_plugins", reason="the extra `site` brings the parser of Markdown")

import translation  # book/, see conftest.py
import translation_lint

TRANSLATED = [name for name in translation.pages() if name not in translation.untranslated("zh")]


@pytest.mark.parametrize("name", TRANSLATED)
def test_a_translation_is_whole_and_as_new_as_its_original(name: str) -> None:
    found = translation_lint.faults(name, "zh")
    assert not found, "\n".join(found)


def test_every_page_is_translated() -> None:
    missing = translation.untranslated("zh")
    assert not missing, f"{missing}: each page needs book/translations/zh/NAME.md; see book/translation.py"


def test_a_file_of_translations_belongs_to_a_page() -> None:
    folder = translation.BOOK / "translations" / "zh"
    files = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.md")}
    assert files - {"glossary", "words"} <= set(translation.pages())


@pytest.mark.parametrize("name", translation.chapters())
def test_cells_have_ids_of_their_own(name: str) -> None:
    ids = [cell["id"] for cell in translation.notebook(name)["cells"]]
    assert len(set(ids)) == len(ids)


def test_running_a_notebook_keeps_the_ids() -> None:
    nbformat = pytest.importorskip("nbformat")
    name = translation.chapters()[0]
    path = translation.BOOK / "chapters" / f"{name}.ipynb"
    again = json.loads(nbformat.writes(nbformat.read(path, as_version=4)))
    assert [cell["id"] for cell in again["cells"]] == [cell["id"] for cell in translation.notebook(name)["cells"]]


ORIGINAL = "## Two *words*\n\nSee `x + 1`, $y^2$ and [the page](page.md).\n\n- one\n- two\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"
CHINESE = "## 两个*词*\n\n见 `x + 1`、$y^2$ 和[这一页](page.md)。\n\n- 一\n- 二\n\n| 甲 | 乙 |\n| --- | --- |\n| 1 | 2 |"


def test_nothing_is_lost() -> None:
    assert list(translation_lint.lost(ORIGINAL, CHINESE)) == []


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("`x + 1`", "`x + 2`", "code lost: x + 1|code not in the original: x + 2"),
        ("$y^2$", "y 的平方", "formula lost: y^2"),
        ("](page.md)", "](other.md)", "link lost: page.md|link not in the original: other.md"),
        ("- 二\n", "", "list: the original has 2"),
        ("## ", "### ", "heading: the original has 1"),
        ("| 1 | 2 |", "| 1 |\n| 2 |", "table: the original has"),
        ("两个*词*", "两个 * 词*", "an asterisk"),
    ],
)
def test_what_is_lost_is_found(old: str, new: str, fault: str) -> None:
    found = list(translation_lint.lost(ORIGINAL, CHINESE.replace(old, new)))
    assert len(found) == len(fault.split("|"))
    assert all(sentence.startswith(each) for sentence, each in zip(found, fault.split("|")))


def test_pictures_blocks_and_text() -> None:
    assert list(translation_lint.lost("![a graph](a.png)", "![计算图](b.png)")) == [
        "picture lost: a.png",
        "picture not in the original: b.png",
    ]
    assert next(translation_lint.lost("```\nx = 1  reads x\n```\nText", "文字")).startswith("block: the original has 1")
    assert list(translation_lint.lost("```\nx = 1  reads x\n```\nText", "```\nx = 1  读 x\n```\n文字")) == []
    assert list(translation_lint.lost("Some text.", "Some text.")) == ["not translated: there is no Chinese in it"]


def test_the_glossary_is_kept() -> None:
    assert list(translation_lint.unlike_glossary("The engine runs.", "引擎在运行。", "zh")) == []
    assert list(translation_lint.unlike_glossary("The engine runs.", "发动机在运行。", "zh")) == [
        "'engine' is 引擎 in the glossary, and the translation has none of these",
        "'发动机' is not the word for 'engine': the glossary says 引擎",
    ]
    assert list(translation_lint.unlike_glossary("See `engine`.", "见 `engine`。", "zh")) == []


def test_lines_of_chinese_are_joined_without_a_space() -> None:
    text = "第一句。\n第二句，\n接着 `code`\n和 Python\nis\n\n- 一\n  续\n- 二\n\n```\na\nb\n```\n\n$$x$$\n\n| 甲 |\n| --- |"
    wanted = "第一句。第二句，接着 `code` 和 Python is\n\n- 一续\n- 二\n\n```\na\nb\n```\n\n$$x$$\n\n| 甲 |\n| --- |"
    assert translation.joined(text) == wanted


def test_breaking_lines_otherwise_changes_no_hash() -> None:
    assert translation.digest("one two\nthree") == translation.digest("one\ntwo three")
    assert translation.digest("one two") != translation.digest("one too")


def test_a_translation_that_takes_the_numbers_of_its_original_fits_any() -> None:
    one, other, text = "Timeline of 12 events: cpu(0) 12", "Timeline of 15 events: cpu(0) 15", "{1} 个事件：cpu(0) {3} 个"
    assert translation.stamp_of("cost alt", one, text) == translation.stamp_of("cost alt", other, text)
    assert translation.stamp_of("cost alt", one, "12 个事件") != translation.stamp_of("cost alt", other, "12 个事件")
    assert translation.stamp_of("cost", one, text) != translation.stamp_of("cost", other, text)
    assert translation.renumbered(text, one, other) == "15 个事件：cpu(0) 15 个"
    assert translation.renumbered(text, one, "Timeline of 15 tasks") == "Timeline of 15 tasks"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("文字\n<!-- a 12345678 -->\n", r"zh\.md:1: text before the first block"),
        ("<!-- a 12345678 -->\n一\n<!-- a 12345678 -->\n", r"zh\.md:3: a second block for 'a'"),
        ("<!-- b 12345678 -->\n<!-- a 123 -->\n一\n", r"zh\.md:2: '<!-- a 123 -->' is no head of a block"),
    ],
)
def test_a_file_that_is_no_translation(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "zh.md"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        translation.read(path)


OUT = {"output_type": "stream", "name": "stdout", "text": "out"}


def picture(alt: str) -> dict[str, object]:
    """An output as figures.show makes it."""
    return {"output_type": "display_data", "data": {"image/svg+xml": "<svg/>"}, "metadata": {"image/svg+xml": {"alt": alt}}}


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A book of two chapters, of which the first has a translation: four new texts, and one of a text that has changed since."""
    line, prompt = {"image": {"alt": "A line."}}, {"code_prompt_show": "Show a solution"}
    pictures = [picture(alt) for alt in ("One.", "Two.", "One.")]
    cells = [
        {"cell_type": "markdown", "id": "title", "metadata": {}, "source": ["# Title\n", "\n", "Text."]},
        {"cell_type": "code", "id": "draw", "metadata": {"mystnb": line}, "source": "1", "outputs": [OUT]},
        {"cell_type": "markdown", "id": "end", "metadata": {}, "source": "The end."},
        {"cell_type": "code", "id": "answer", "metadata": {"mystnb": prompt}, "source": "2", "outputs": []},
        {"cell_type": "code", "id": "figures", "metadata": {}, "source": "3", "outputs": pictures},
    ]
    shutil.copytree(translation.BOOK / "translations", tmp_path / "translations", ignore=shutil.ignore_patterns("[0-9A-Z]*-*"))
    for folder in (tmp_path / "chapters", tmp_path / "site" / "jupyter_execute" / "chapters"):
        folder.mkdir(parents=True)
        for name in ("01-first", "02-second"):
            (folder / f"{name}.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4}), encoding="utf-8")
        cells[-1]["outputs"][1] = picture("Three.")  # run once more, it says something else
    (tmp_path / "site" / "sections.json").write_text("{}", encoding="utf-8")
    shutil.copy(translation.BOOK / "index.md", tmp_path)
    (tmp_path / "teaching" / "assignment").mkdir(parents=True)
    (tmp_path / "teaching" / "assignment" / "tasks.ipynb").write_text("{}", encoding="utf-8")
    (tmp_path / "teaching" / "plan.md").write_text("# Plan\n\nWeeks.", encoding="utf-8")
    (tmp_path / "translations" / "zh" / "teaching" / "plan.md").unlink(missing_ok=True)
    path = tmp_path / "translations" / "zh" / "01-first.md"
    text = "<!-- title -->\n# 标题\n\n文字。\n\n<!-- draw alt -->\n一条线。\n\n<!-- end 00000000 -->\n旧的结尾。\n"
    path.write_text(text + "\n<!-- figures alt -->\n一。\n\n<!-- figures alt 2 -->\n二。\n", encoding="utf-8")
    monkeypatch.setattr(translation, "BOOK", tmp_path)
    return tmp_path


def test_stamping(book: Path) -> None:
    path = book / "translations" / "zh" / "01-first.md"
    assert [fault.split("\n")[0] for fault in translation_lint.faults("01-first", "zh")] == [
        "01-first.md: title: no hash; run python book/translation.py stamp zh 01-first",
        "01-first.md: draw alt: no hash; run python book/translation.py stamp zh 01-first",
        "01-first.md: end: the translation is older than the text; mend it, then stamp zh 01-first end. Now:",
        "01-first.md: figures alt: no hash; run python book/translation.py stamp zh 01-first",
        "01-first.md: figures alt 2: no hash; run python book/translation.py stamp zh 01-first",
    ]
    translation.stamp("zh", "01-first", [])
    assert f"<!-- title {translation.digest('# Title Text.')} -->" in path.read_text(encoding="utf-8")
    assert "<!-- end 00000000 -->" in path.read_text(encoding="utf-8")  # what is old is not taken for new without being told so
    translation.stamp("zh", "01-first", ["end"])
    assert translation_lint.faults("01-first", "zh") == []
    with pytest.raises(ValueError, match=r"has no text \['middle'\]; it has title, draw alt, end, figures alt, figures alt 2"):
        translation.stamp("zh", "01-first", ["middle"])


def test_code_once_and_text_twice(book: Path) -> None:
    translation.stamp("zh", "01-first", [])
    translation.build("zh", book / "site", book / "out")
    first = json.loads((book / "out" / "chapters" / "01-first.ipynb").read_text(encoding="utf-8"))["cells"]
    assert [cell["source"] for cell in first[:4]] == ["# 标题\n\n文字。", "1", "The end.", "2"]  # an old translation is not shown
    assert first[1]["metadata"]["mystnb"]["image"]["alt"] == "一条线。"
    assert first[1]["outputs"] == [OUT]
    alts = [each["metadata"]["image/svg+xml"]["alt"] for each in first[4]["outputs"]]
    assert alts == ["一。", "Three.", "一。"]
    assert [each["data"] for each in first[4]["outputs"]] == [{"image/svg+xml": "<svg/>"}] * 3
    assert first[3]["metadata"]["mystnb"]["code_prompt_show"] == "显示参考答案"
    second = json.loads((book / "out" / "chapters" / "02-second.ipynb").read_text(encoding="utf-8"))["cells"]
    assert second[0]["source"] == "# Title\n\n:::{note}\n本页尚未译成中文，以下是英文原文。\n:::\n\nText."
    plan = (book / "out" / "teaching" / "plan.md").read_text(encoding="utf-8")
    assert plan == "# Plan\n\n:::{note}\n本页尚未译成中文，以下是英文原文。\n:::\n\nWeeks.\n"
    assert (book / "out" / "teaching" / "assignment" / "tasks.ipynb").exists()
    assert list(translation.status("zh")) == [
        "teaching/plan: not translated (1 texts, 3 words)",
        "01-first: missing or older than the original: end",
        "02-second: not translated (5 texts, 9 words)",
        "2 of 4 pages are translated",
    ]


@pytest.mark.parametrize(
    ("now", "said"),
    [
        ("6 of 1,200 bytes by cpu(0) 6", "cpu(0) 6 个，共 1,200 字节，6 个"),
        ("7 of 48 bytes by cpu(0) 7", "cpu(0) 7 个，共 48 字节，7 个"),
        ("7 of 48 bytes by cpu(0) 6", "7 of 48 bytes by cpu(0) 6"),  # which of the two is it?
        ("6 of 1,200 bytes by gpu(0) 6", "6 of 1,200 bytes by gpu(0) 6"),
    ],
)
def test_numbers_of_a_picture_that_was_drawn_again(now: str, said: str) -> None:
    assert translation.renumbered("cpu(0) 6 个，共 1,200 字节，6 个", "6 of 1,200 bytes by cpu(0) 6", now) == said


def test_words_of_the_site() -> None:
    said = {word for name in translation.chapters() for cell in translation.notebook(name)["cells"] for word in prompts(cell)}
    assert said <= set(translation.words("zh"))


def prompts(cell: dict[str, dict[str, dict[str, str]]]) -> list[str]:
    return [text for key, text in cell["metadata"].get("mystnb", {}).items() if key.startswith("code_prompt")]
