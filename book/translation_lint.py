"""What a translation lacks: cells without one or with an old one, and formulas, code, links and pictures that got lost on the way.

`translation.py` explains the files. Both texts are parsed as Markdown, and what no language changes is compared: code spans, formulas (but
for words in them), targets of links and pictures, and the shape: headings, blocks of code, tables, items of lists. `glossary.md` in the
folder of a language is a table of terms: the English word, its translations (separated by `、`; if the English one is in a text, one of
them has to be, or the English word itself), and forms that are not to be used.

    python book/translation_lint.py zh
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.amsmath import amsmath_plugin
from mdit_py_plugins.colon_fence import colon_fence_plugin
from mdit_py_plugins.dollarmath import dollarmath_plugin
from translation import NUMBER, PLACE, joined, originals, pages, path_of, read, stamp_of, table, untranslated

PARSER = (
    MarkdownIt("commonmark")
    .enable("table")
    .use(dollarmath_plugin, double_inline=True)
    .use(amsmath_plugin)
    .use(colon_fence_plugin)
)
#: What is compared one by one, and what is compared as a whole.
CONTENTS = ("code", "formula", "link", "picture")
SHAPES = ("heading", "block", "table", "list")
#: Han characters that a translation consists of; a text without any is none.
HAN = re.compile(r"[\u3400-\u9fff]")


def tokens(text: str) -> Iterator[Token]:
    """All tokens of a text, those within paragraphs as well."""
    for token in PARSER.parse(text):
        yield token
        yield from token.children or []


def parts(text: str) -> dict[str, list[str]]:
    """What no language changes in a text, by kind, in order."""
    found: dict[str, list[str]] = {kind: [] for kind in (*CONTENTS, *SHAPES)}
    for token in tokens(text):
        match token.type:
            case "code_inline":
                found["code"].append(" ".join(token.content.split()))
            case "math_inline" | "math_inline_double" | "math_block" | "amsmath":
                found["formula"].append("".join(re.sub(r"\\(?:text|mathrm)\{[^}]*\}", "", token.content).split()).strip(".,;"))
            case "link_open":
                found["link"].append(str(token.attrs["href"]))
            case "image":
                found["picture"].append(str(token.attrs["src"]))
            case "heading_open":
                found["heading"].append(token.tag)
            case "fence" | "colon_fence":
                entries = "\n".join(line for line in token.content.splitlines() if not line.startswith(":caption:"))
                found["block"].append(token.info.strip() + (entries if "toctree" in token.info else ""))
            case "td_open" | "th_open" | "tr_open":
                found["table"].append(token.tag)
            case "list_item_open":
                found["list"].append(token.info)
    return found


def lost(original: str, text: str) -> Iterator[str]:
    """Sentences about what a translation lost of its original, or added to it."""
    ours, theirs = parts(original), parts(text)
    for kind in CONTENTS:
        gone, new = set(ours[kind]) - set(theirs[kind]), set(theirs[kind]) - set(ours[kind])
        yield from (f"{kind} lost: {each}" for each in sorted(gone))
        yield from (f"{kind} not in the original: {each}" for each in sorted(new))
    for kind in SHAPES:
        if ours[kind] != theirs[kind]:
            yield f"{kind}: the original has {len(ours[kind])} {ours[kind]}, the translation {len(theirs[kind])} {theirs[kind]}"
    if not HAN.search(text):
        yield "not translated: there is no Chinese in it"
    if any(re.search(r"\*(?=\S)|(?<=\S)\*", token.content) for token in tokens(text) if token.type == "text"):
        yield "an asterisk that Markdown does not take for emphasis: put the punctuation outside of it, or a space around it"


def prose(text: str) -> str:
    """A text without code and formulas."""
    return " ".join(token.content for token in tokens(text) if token.type == "text")


def terms(language: str) -> list[tuple[str, list[str], list[str]]]:
    """The glossary: English word, translations, forms that are not to be used."""
    rows = table(path_of(language, "glossary"))
    return [(row[0], row[1].split("、"), [each for each in row[2].split("、") if each]) for row in rows]


def unlike_glossary(original: str, text: str, language: str) -> Iterator[str]:
    """Sentences about terms that are translated otherwise than the glossary says."""
    english, chinese = prose(original), prose(text)
    for term, wanted, unwanted in terms(language):
        if re.search(rf"\b{term}(?:s|es|d|ed|ing)?\b", english, re.IGNORECASE) and not any(
            each.lower() in chinese.lower() for each in [*wanted, term]
        ):
            yield f"{term!r} is {' or '.join(wanted)} in the glossary, and the translation has none of these"
        yield from (
            f"{each!r} is not the word for {term!r}: the glossary says {wanted[0]}" for each in unwanted if each in chinese
        )


def faults(name: str, language: str) -> list[str]:
    """What is wrong with the translation of a page, a sentence each."""
    path, texts = path_of(language, name), originals(name)
    blocks = read(path)
    found = [f"{key}: the original has no such cell any more" for key in blocks if key not in texts]
    for key, text in texts.items():
        if key not in blocks:
            found.append(f"{key}: no translation of\n{text}")
        elif blocks[key].digest is None:
            found.append(f"{key}: no hash; run python book/translation.py stamp {language} {name}")
        elif blocks[key].digest != stamp_of(key, text, blocks[key].text):
            found.append(
                f"{key}: the translation is older than the text; mend it, then stamp {language} {name} {key}. Now:\n{text}"
            )
        else:
            body = joined(blocks[key].text)
            places = [int(place) for place in PLACE.findall(body)] if " alt" in key else []
            if places and not 1 <= min(places) <= max(places) <= len(NUMBER.findall(text)):
                found.append(f"{key}: the original has {len(NUMBER.findall(text))} numbers, places are {places}")
            found += [f"{key}: {each}" for each in (*lost(text, body), *unlike_glossary(text, body, language))]
    order = [key for key in blocks if key in texts]
    if order != [key for key in texts if key in blocks]:
        found.append("the blocks do not stand in the order of the cells")
    return [f"{path.name}: {each}" for each in found]


def main(language: str) -> None:
    missing = untranslated(language)
    translated = [name for name in pages() if name not in missing]
    found = [fault for name in translated for fault in faults(name, language)]
    print("\n".join(found))
    print(f"{len(found)} faults in {len(translated)} pages; not translated: {', '.join(missing) or 'none'}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main(sys.argv[1])
