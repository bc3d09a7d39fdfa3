"""The words of the book, of the project's pages and of the prose in its code; and how Chinese is set."""

from __future__ import annotations

import pytest

pytest.importorskip("mdit_py_plugins", reason="the extra `site` brings the parser of Markdown")
pytest.importorskip("spellchecker", reason="the extra `test` brings the package pyspellchecker")

import spelling  # book/, see conftest.py
import translation
import typography

TRANSLATED = [name for name in translation.pages() if name not in translation.untranslated("zh")]


@pytest.mark.timeout(600)  # it reads every file of the project, ten seconds' work for a core that has nothing else to do
def test_all_words_are_words() -> None:
    found = spelling.faults(spelling.everywhere())
    assert not found, "\n".join(found)


@pytest.fixture(scope="module")
def speller() -> spelling.Speller:
    return spelling.Speller('def back_pressure(dtypeOf): return "unheardof words"  # unheardof')


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It recieves a task.", ["no dictionary knows 'recieves', nor does spelling.txt"]),
        ("Numpy's arrays", ['no dictionary knows "Numpy\'s", nor does spelling.txt']),
        ("unheardof", ["no dictionary knows 'unheardof', nor does spelling.txt"]),
        ("It waits for the\nthe result.", ["a word twice: 'the\\nthe'"]),
        ("a array, an unit, a user, an hour", ["a for an, or an for a: 'a array'", "a for an, or an for a: 'an unit'"]),
        ("Its dtype is what NumPy has; W1 asks for 3x, at x.shpe and net_nme; she had had one.", []),
        ("The dtypeOf is a neighbour; its behaviour is peculiar.", []),
    ],
)
def test_what_is_misspelt_is_found(speller: spelling.Speller, text: str, found: list[str]) -> None:
    assert list(speller.faults(text)) == found


def test_what_is_prose() -> None:
    text = "Text with `cde`, $alfa$ and [a link](adress.md).\n\n```\nfenced\n```\n\n- an `op`\n  goes on"
    assert spelling.markdown(text) == "Text with `, ` and a link.\n\nan `\ngoes on"
    code = '''
def f(x):
    """Computes `xy`.

    >>> f(1)
    outpt

    That is all.
    """
    size = 1  # the sise  # noqa: E501
    if x:
        raise ValueError(f"{x}th valu: " + "wrong one")
    return "no sentnce"
'''
    assert " ".join(spelling.python(code).split()) == "the sise # ` Computes `. ` That is all. `th valu: wrong one"
    assert spelling.names(code) == {"def", "f", "x", "size", "if", "raise", "value", "error", "return"}


@pytest.mark.parametrize("name", TRANSLATED)
def test_chinese_is_set_as_chinese(name: str) -> None:
    blocks = translation.read(translation.path_of("zh", name))
    found = [f"{key}: {fault}" for key, block in blocks.items() for fault in typography.faults(translation.joined(block.text))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("引擎运行,任务结束。", "punctuation of half width beside Chinese: '引擎运行,任务结束。'"),
        ("两个数组(或一个)相加。", "punctuation of half width"),
        ("任务结束.", "punctuation of half width"),
        ('所谓"惰性"。', "straight quotation marks"),
        ("用Python写。", "no space between Chinese and what is not"),
        ("调用`x + 1`返回。", "no space between Chinese and what is not"),
        ("值是$x$。", "no space between Chinese and what is not"),
        ("引擎 ，任务", "a space beside punctuation of full width"),
        ("引擎 运行", "a space between Chinese characters"),
        ("如此等等...", "three dots"),
        ("结束。。", "a mark after a mark"),
        ("引擎的的任务", "a word twice"),
        ("引擎運行", "no simplified character: 運"),
        ("所谓“惰性。", "quotation marks that do not pair"),
    ],
)
def test_what_is_set_otherwise_is_found(text: str, fault: str) -> None:
    found = list(typography.faults(text))
    assert found
    assert all(each.startswith(fault) for each in found)


def test_what_is_set_well() -> None:
    text = "**为什么。** 因为 `x` 和 $y$ 在 CPU 上（见[第 2 章](b.md)），所以“惰性”*不是*异步……现在在 3.5 GHz 上，约 10% 的时间。"
    assert list(typography.faults(text)) == []
