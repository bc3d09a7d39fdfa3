"""The book in a second language: the code once, the text twice, cell beside cell.

A chapter's notebook is the English original, with the code. `translations/<language>/<chapter>.md` holds its text in another language: a
block for each Markdown cell, headed by the cell's id and a short hash of the English text that was translated,

    <!-- views-question 3f2a9c1d -->
    比较运算得到 1 和 0 ...

and one headed `<!-- cost alt 9c1d3f2a -->` for the alternative text of a picture, which stands in a cell's metadata, or in those of the
picture among its outputs; that of a second picture is headed `cost alt 2`, and `{1}` in it stands for the first number of the original, for
one that each run may change. A block is Markdown that reads and compares well: a sentence a line; where lines meet in the middle of
Chinese, no space is put between them. A page that is no notebook, such as `index` or `teaching/plan`, is one block, `page`.
`words.md` translates single words of the site, `glossary.md` fixes terms (see translation_lint.py, which looks for what is missing,
outdated or lost).

    python book/translation.py status                    what is translated, and what is not or no longer
    python book/translation.py stamp zh CHAPTER [ID...]  say that these blocks translate the text as it is now; without ids, the new blocks
    python book/translation.py build zh SITE FOLDER      the pages of the translated site, with the outputs of the English one

A cell whose translation is missing, or older than its text, is shown in English: an original is never wrong. A chapter without a file is
shown in English as a whole, and says so.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BOOK = Path(__file__).parent
HEAD = re.compile(r"<!-- (?P<key>[\w-]+(?: alt(?: \d+)?)?)(?: (?P<digest>[0-9a-f]{8}))? -->")
#: Han characters, and the punctuation that is set between them.
WIDE = "\u3000-\u303f\u3400-\u9fff\uff00-\uffef\u2014\u2018\u2019\u201c\u201d\u2026"
#: What begins a line that is not the rest of a paragraph.
BEGINS = re.compile(r"\s*(?:[-*+] |\d+\. |[|#>]|```|:::|\$\$|\*\*\d|\\|\([\w-]+\)=)")
NUMBER = re.compile(r"\d[\d,.]*\d|\d")
PLACE = re.compile(r"\{(\d+)\}")  # of a number of the original, in the alternative text of a picture

Notebook = dict[str, Any]


@dataclass(frozen=True)
class Block:
    """A translated text, and the hash of its original; None where it has not been stamped."""

    text: str
    digest: str | None


def digest(text: str) -> str:
    """A short hash of a text that does not change when its lines are broken otherwise."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:8]


def notebook(name: str, folder: Path | None = None) -> Notebook:
    """The notebook of a chapter; in `folder` if it is not the original."""
    path = (folder or BOOK / "chapters") / f"{name}.ipynb"
    found: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return found


def source(cell: Mapping[str, Any]) -> str:
    """The text of a cell."""
    return "".join(cell["source"])


def alt(cell: Mapping[str, Any]) -> str | None:
    """The alternative text in the metadata of a cell that draws a picture."""
    found: str | None = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt")
    return found


def alts(cell: Mapping[str, Any]) -> dict[str, str]:
    """The alternative texts of all pictures of a cell, those among its outputs, too, by the keys of their blocks; equal ones once."""
    given = [alt(cell), *(about["alt"] for about in _pictures(cell))]
    return {f"{cell['id']} alt{f' {n}' * (n > 1)}": text for n, text in enumerate(dict.fromkeys(filter(None, given)), start=1)}


def _pictures(cell: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The metadata of those pictures among a cell's outputs that say what they show (figures.show, d2l.Animator)."""
    metadata = [about for output in cell.get("outputs", ()) for about in output.get("metadata", {}).values()]
    return [about for about in metadata if isinstance(about, dict) and about.get("alt")]


def originals(name: str) -> dict[str, str]:
    """What there is to translate on a page, by the key of its block."""
    if name in plain_pages():
        return {"page": (BOOK / f"{name}.md").read_text(encoding="utf-8")}
    texts: dict[str, str] = {}
    for cell in notebook(name)["cells"]:
        texts |= {cell["id"]: source(cell)} if cell["cell_type"] == "markdown" else alts(cell)
    return texts


def chapters() -> list[str]:
    """The names of the chapters, in order."""
    return sorted(path.stem for path in (BOOK / "chapters").glob("*.ipynb"))


def plain_pages() -> list[str]:
    """The names of the pages that are no notebooks: the first one, and those for teachers."""
    return ["index", *sorted(f"teaching/{path.stem}" for path in (BOOK / "teaching").glob("*.md"))]


def pages() -> list[str]:
    """The names of the pages that are written by hand."""
    return [*plain_pages(), *chapters()]


def path_of(language: str, name: str) -> Path:
    """The file with a page's translation, which may not exist."""
    return BOOK / "translations" / language / f"{name}.md"


def untranslated(language: str) -> list[str]:
    """The pages that have no translation yet."""
    return [name for name in pages() if not path_of(language, name).exists()]


def read(path: Path) -> dict[str, Block]:
    """The blocks of a file, by key. Raises ValueError, with file and line, for what is no block, and for a key that comes twice."""
    blocks: dict[str, Block] = {}
    key, found, lines = "", None, list[str]()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        head = HEAD.fullmatch(line)
        if head is None:
            if not key and line.strip():
                raise ValueError(f"{path}:{number}: text before the first block; each block begins with <!-- cell-id hash -->")
            if line.startswith("<!--"):
                raise ValueError(f"{path}:{number}: {line!r} is no head of a block: it has to be <!-- cell-id hash -->")
            lines.append(line)
            continue
        if key:
            blocks[key] = Block("\n".join(lines).strip(), found)
        key, found, lines = head["key"], head["digest"], []
        if key in blocks:
            raise ValueError(f"{path}:{number}: a second block for {key!r}")
    if key:
        blocks[key] = Block("\n".join(lines).strip(), found)
    return blocks


def table(path: Path) -> list[list[str]]:
    """The rows of the table in a Markdown file, without its head."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def words(language: str) -> dict[str, str]:
    """The single words of the site."""
    return dict(table(path_of(language, "words")))


def stamp_of(key: str, original: str, text: str) -> str:
    """What stands in the head of a block, whose text is a translation of the original."""
    return digest(NUMBER.sub("#", original) if " alt" in key and PLACE.search(text) else original)


def joined(text: str) -> str:
    """A text whose lines are joined where a space between them would be seen in the middle of Chinese."""
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        fence = line.lstrip().startswith(("```", "$$")) and not (len(line.strip()) > 4 and line.strip().endswith("$$"))
        before = lines[-1] if lines else ""
        rest = not (fenced or fence or BEGINS.match(line)) and bool(before.strip()) and bool(line.strip())
        if rest and not re.match(r"\s*(?:[|#]|```|:::|\$\$)", before):
            lines[-1] = before.rstrip() + _between(before.rstrip(), line.lstrip()) + line.lstrip()
        else:
            lines.append(line)
        fenced ^= fence
    return "\n".join(lines)


def _between(before: str, after: str) -> str:
    """What stands between two lines: nothing beside Chinese punctuation and between Han characters, else a space."""
    pair = before[-1], after[0]
    punctuation = any(re.match(f"[{WIDE}]", each) and not re.match("[\u3400-\u9fff]", each) for each in pair)
    return "" if punctuation or all(re.match(f"[{WIDE}]", each) for each in pair) else " "


def current(name: str, language: str) -> dict[str, str]:
    """The translated texts of a page that are there, and translate the original as it is now."""
    blocks = read(path_of(language, name))
    texts = originals(name)
    return {
        key: joined(blocks[key].text)
        for key, text in texts.items()
        if key in blocks and blocks[key].digest == stamp_of(key, text, blocks[key].text)
    }


def translated(chapter: Notebook, texts: Mapping[str, str], single: Mapping[str, str], known: Mapping[str, str]) -> Notebook:
    """A notebook with the texts of another language where there are any; code and outputs are what they were.

    **Args** texts: by the keys of their blocks; known: the originals of these. A picture that says something else when the chapter is run
    keeps its own text; if only numbers are others, so are those of the translation.
    """
    new = copy.deepcopy(chapter)
    for cell in new["cells"]:
        myst = cell["metadata"].get("mystnb", {})
        for prompt in ("code_prompt_show", "code_prompt_hide"):
            if prompt in myst:
                myst[prompt] = single[myst[prompt]]
        if cell["cell_type"] == "markdown":
            cell["source"] = texts.get(cell["id"], source(cell))
            continue
        said = {text: renumbered(texts[key], known[key], text) for key, text in alts(cell).items() if key in texts}
        for about in [*([myst["image"]] if alt(cell) else []), *_pictures(cell)]:
            about["alt"] = said.get(about["alt"], about["alt"])
    return new


def renumbered(text: str, before: str, now: str) -> str:
    """The translation `text` of `before` with the numbers of `now`; `now` itself, if these two differ in more than numbers.

    >>> renumbered("12 个事件，cpu(0) 12 个", "12 events, cpu(0) 12", "15 events, cpu(0) 15")
    '15 个事件，cpu(0) 15 个'
    >>> renumbered("{1} 个事件，cpu(0) {3} 个", "12 events, cpu(0) 12", "15 events, cpu(0) 14")
    '15 个事件，cpu(0) 14 个'
    """
    numbers = NUMBER.findall(now)
    pairs = {*zip(NUMBER.findall(before), numbers)}
    if NUMBER.sub("", before) != NUMBER.sub("", now):
        return now
    if PLACE.search(text):
        return PLACE.sub(lambda place: numbers[int(place[1]) - 1], text)
    if len(dict(pairs)) < len(pairs):
        return now
    return NUMBER.sub(lambda number: dict(pairs).get(number[0], number[0]), text)


def noted(text: str, notice: str) -> str:
    """A text that says, below its title, that it has not been translated."""
    title, _, rest = text.partition("\n")
    return f"{title}\n\n:::{{note}}\n{notice}\n:::\n{rest}"


def with_notice(chapter: Notebook, notice: str) -> Notebook:
    """A notebook that says so in its first cell."""
    new = copy.deepcopy(chapter)
    new["cells"][0]["source"] = noted(source(new["cells"][0]), notice)
    return new


def build(language: str, site: Path, target: Path) -> None:
    """Write the pages of the translated site into `target`, with outputs and anchors of the English site that was built in `site`."""
    (target / "chapters").mkdir(parents=True, exist_ok=True)
    shutil.copy(site / "sections.json", target)
    shutil.copytree(BOOK / "teaching" / "assignment", target / "teaching" / "assignment", dirs_exist_ok=True)  # can be downloaded
    single, missing = words(language), untranslated(language)
    for name in pages():
        texts = {} if name in missing else current(name, language)
        shown = len(originals(name)) - len(texts)
        if shown and name not in missing:
            print(f"{name}: {shown} of {len(originals(name))} texts are shown in English (python book/translation.py status)")
        if name in plain_pages():
            page = texts.get("page") or noted(originals(name)["page"], single["NOTICE"])
            (target / name).parent.mkdir(exist_ok=True)
            (target / f"{name}.md").write_text(page + "\n", encoding="utf-8")
            continue
        chapter = notebook(name, site / "jupyter_execute" / "chapters")
        new = with_notice(chapter, single["NOTICE"]) if name in missing else translated(chapter, texts, single, originals(name))
        (target / "chapters" / f"{name}.ipynb").write_text(json.dumps(new, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def stamp(language: str, name: str, keys: list[str]) -> None:
    """Write the hashes of the originals as they are now into the heads of blocks: of `keys`, or of all that have none yet."""
    path, texts = path_of(language, name), originals(name)
    unknown = set(keys) - set(texts)
    if unknown:
        raise ValueError(f"{name} has no text {sorted(unknown)}; it has {', '.join(texts)}")

    blocks = read(path)

    def stamped(head: re.Match[str]) -> str:
        key = head["key"]
        new = key in texts and (key in keys or (not keys and head["digest"] is None))
        return f"<!-- {key} {stamp_of(key, texts[key], blocks[key].text)} -->" if new else head[0]

    old = path.read_text(encoding="utf-8")
    path.write_text(re.sub(f"(?m)^{HEAD.pattern}$", stamped, old), encoding="utf-8")


def status(language: str) -> Iterator[str]:
    """A line for each page that is not translated, or not in all its parts."""
    missing = untranslated(language)
    for name in pages():
        texts = originals(name)
        fit = len(texts) if name in missing else len(current(name, language))
        if name in missing:
            yield f"{name}: not translated ({len(texts)} texts, {sum(len(text.split()) for text in texts.values())} words)"
        elif fit < len(texts):
            late = [key for key in texts if key not in current(name, language)]
            yield f"{name}: missing or older than the original: {', '.join(late)}"
    yield f"{len(pages()) - len(missing)} of {len(pages())} pages are translated"


def main(arguments: list[str]) -> None:
    match arguments:
        case ["status"]:
            for folder in sorted((BOOK / "translations").iterdir()):
                print("\n".join(f"{folder.name}: {line}" for line in status(folder.name)))
        case ["stamp", language, name, *keys]:
            stamp(language, name, keys)
        case ["build", language, site, target]:
            build(language, Path(site), Path(target))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
