"""How Chinese is set: punctuation, spaces, characters. (`translation_lint.py` compares a translation with its original.)

The rules are those that the texts follow: punctuation beside Han characters is of full width; a space stands between these and Latin
letters, digits, code and formulas, and none beside punctuation of full width; characters are simplified ones.

    python book/typography.py zh
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from translation import joined, pages, path_of, read, untranslated
from translation_lint import PARSER

HAN = "\u3400-\u9fff"
#: Punctuation of full width that brings its own white space. Quotation marks and dashes are as wide in Chinese, and have the same codes.
MARKS = "，。；：！？、（）《》「」【】"
CODE = "\u25a1"  # what stands for code and formulas here
CLOSED = "\u200b"  # and for the end of what is emphasized, after which Markdown needs a space: **Why.** Because ...

RULES = {
    "punctuation of half width beside Chinese": rf"[{HAN}][,;:!?()]|[,;!?()][{HAN}]|[{HAN}]\.(?![\w./])",
    "straight quotation marks beside Chinese": rf"[{HAN}][\"']|[\"'][{HAN}]",
    "no space between Chinese and what is not": rf"[{HAN}][A-Za-z0-9{CODE}]|[A-Za-z0-9{CODE}%][{HAN}]",
    "a space beside punctuation of full width": rf" [{MARKS}]|[{MARKS}] ",
    "a space between Chinese characters": rf"[{HAN}] +[{HAN}]",
    "three dots; Chinese has six, ……": rf"[{HAN}]\s*\.\.\.|\.\.\.\s*[{HAN}]|(?<!…)…(?!…)",
    "a mark after a mark": r"[，。；：！？、]{2,}|（）",
    "a word twice": r"((?<!现)在|[的了是和与或把被将也都而及对从向为以我它这那]|我们|它们|可以|因为|所以|如果|就是|没有)\1",
    "quotation marks that do not pair": r"“[^”]*(?:“|$)|^[^“]*”",
}


def paragraphs(text: str) -> Iterator[str]:
    """The prose of a Markdown text, a paragraph each; a box stands for code and formulas."""
    for token in PARSER.parse(text):
        if token.type == "inline":
            yield "".join(content(child.type, child.content) for child in token.children or [])


def content(kind: str, text: str) -> str:
    """What a part of a paragraph looks like: signs of Markdown like nothing, a break of lines like a space."""
    if kind in ("text", "softbreak", "hardbreak"):
        return text or " "
    if kind in ("strong_close", "em_close"):
        return CLOSED
    return "" if kind.endswith(("_open", "_close")) else CODE


def faults(text: str) -> Iterator[str]:
    """What is wrong in a text, a sentence each."""
    for paragraph in paragraphs(text):
        for rule, pattern in RULES.items():
            for found in re.finditer(pattern, paragraph):
                yield f"{rule}: {paragraph[max(0, found.start() - 10) : found.end() + 10]!r}"
        for each in sorted(set(re.findall(f"[{HAN}]", paragraph))):
            if not is_simplified(each):
                yield f"no simplified character: {each}"


def is_simplified(character: str) -> bool:
    """Whether GB 2312 has it, which has no traditional characters (and all that a textbook needs)."""
    try:
        character.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return True


def main(language: str) -> None:
    missing = untranslated(language)
    found = []
    for name in pages():
        if name not in missing:
            for key, block in read(path_of(language, name)).items():
                found += [f"{name}.md: {key}: {fault}" for fault in faults(joined(block.text))]
    print("\n".join(found))
    print(f"{len(found)} faults")
    sys.exit(bool(found))


if __name__ == "__main__":
    main(sys.argv[1])
