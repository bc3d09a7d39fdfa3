"""Words that no dictionary knows, words that stand twice, and `a` for `an`: in the pages of the book, and in the prose of the code.

The words come from the package pyspellchecker, which carries a list of English ones. What it lacks is in `spelling.txt` (terms of the
field, names of people), and the words in the names of the code are words, too. Spelling is that of Oxford: colour, neighbour, normalize.
Not looked at are code, formulas, addresses, and names with a capital or a digit within (NumPy, GPUs, W1).

    python book/spelling.py
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from spellchecker import SpellChecker
from translation import BOOK, alt, source
from translation_lint import PARSER

ROOT = BOOK.parent
LIST = BOOK / "spelling.txt"
CODE = ("minimx", "book", "benchmarks")
WORD = re.compile(r"(?<![\w./\\%$@-])[A-Za-z][a-z]+(?:'s\b|(?![\w(\[=']|[./]\w|-\w*[\d_]))")
#: What is no prose within a docstring, a comment or a message: examples, code, addresses, remarks to tools.
NOT_PROSE = re.compile(r"^\s*>>> .*(?:\n[ \t]*\S.*)*|``.*?``|`[^`]*`|https?:\S+|(?:noqa|fmt|type|mypy|ruff): .*$", re.MULTILINE)
COMMENT = re.compile(r"(?:^\s*|  )#:? (.*)$", re.MULTILINE)
TWICE = re.compile(r"(?<![\w`.-])((?!(?:for|had|it|that)\b)[a-z]{2,})\s\1\b(?![.(\[=`-])")
AN = r"an (?:(?!hour|honest|heir)[b-df-hj-np-tv-z][a-z]{2,}|uni(?![dmn])[a-z]+|us[ei][a-z]*)"
A = r"a (?!and\b|as\b|at\b|in\b|is\b|of\b|or\b|one|once|euro|us[ei]|uni(?!n)|ut)[aeiou][a-z]+"
ARTICLE = re.compile(rf"\b(?:{A}|{AN})\b")


def listed() -> list[str]:
    """The words of the list beside this file; lines that begin with # say what follows."""
    return [line for line in LIST.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]


def markdown(text: str) -> str:
    """The prose of a Markdown text, a paragraph each; a backtick stands for code and formulas."""
    blocks = [token.children or [] for token in PARSER.parse(text) if token.type == "inline"]
    return "\n\n".join("".join(content(child.type, child.content) for child in block) for block in blocks)


def content(kind: str, text: str) -> str:
    return text if kind == "text" else "\n" if kind == "softbreak" else "" if kind.endswith(("open", "close")) else "`"


def python(code: str) -> str:
    """The prose of a piece of Python: docstrings, messages, comments."""
    said = COMMENT.findall(code)
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Expr(value=ast.Constant(value=str() as text)):
                said.append(text)
            case ast.Raise(exc=ast.Call(args=args)) | ast.Call(func=ast.Attribute(attr="warn"), args=args):
                said += [text for arg in args for text in messages(arg)]
    return NOT_PROSE.sub("`", "\n\n".join(said))


def messages(node: ast.AST) -> Iterator[str]:
    """The strings in an expression; a backtick stands for what is filled in."""
    if isinstance(node, ast.JoinedStr):
        yield "".join(part.value if isinstance(part, ast.Constant) else "`" for part in node.values)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for part in ast.iter_child_nodes(node):
            yield from messages(part)


def names(code: str) -> set[str]:
    """The words in the names of a piece of Python."""
    found = re.findall(r"\w+", re.sub(r'(?s)""".*?"""|f?"[^"\n]* [^"\n]*"|#[^\n]*', "", code))
    return {word.lower() for name in set(found) for word in re.findall("[A-Z]?[a-z]+", name)}


def cells(path: Path) -> Iterator[tuple[str, str]]:
    """The texts in a notebook, and where each stands."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        place, text = f"{path.relative_to(ROOT)}: {cell['id']}", source(cell)
        if cell["cell_type"] == "markdown":
            yield place, markdown(text)
        elif cell["cell_type"] == "code" and not text.startswith("%%"):
            yield place, python(re.sub("(?m)^[%!].*$", "", text))
            yield f"{place} alt", alt(cell) or ""


def texts() -> Iterator[tuple[str, str]]:
    """All that is looked at, and where each stands."""
    for path in [*ROOT.glob("*.md"), BOOK / "index.md", *BOOK.glob("teaching/*.md")]:
        yield str(path.relative_to(ROOT)), markdown(path.read_text(encoding="utf-8"))
    for path in [*BOOK.glob("chapters/*.ipynb"), *BOOK.glob("teaching/*/*.ipynb")]:
        yield from cells(path)
    for path in sources():
        yield str(path.relative_to(ROOT)), python(path.read_text(encoding="utf-8"))


def sources() -> list[Path]:
    return sorted(path for folder in CODE for path in (ROOT / folder).rglob("*.py"))


class Speller:
    """A dictionary, the list, and the names in the code; `used` notes which words of the list were of use."""

    def __init__(self, *code: str) -> None:
        self.dictionary = SpellChecker()
        self.listed = {word.lower() for word in listed()}
        self.names = set().union(*map(names, code)) if code else set()
        self.used = set[str]()

    def faults(self, text: str) -> Iterator[str]:
        """What is wrong in a text, a sentence each."""
        words = {each: re.sub("'s$", "", each).lower() for each in WORD.findall(text)}
        unknown = {each for each in self.dictionary.unknown(words.values()) if not {each, each.removesuffix("s")} & self.names}
        self.used |= unknown & self.listed
        yield from (
            f"no dictionary knows {each!r}, nor does {LIST.name}" for each, word in words.items() if word in unknown - self.listed
        )
        yield from (f"a word twice: {found[0]!r}" for found in TWICE.finditer(text))
        yield from (f"a for an, or an for a: {found[0]!r}" for found in ARTICLE.finditer(text))


def everywhere() -> Speller:
    """The speller that knows the names of all our code."""
    return Speller(*(path.read_text(encoding="utf-8") for path in sources()))


def faults(speller: Speller) -> list[str]:
    """All that is wrong."""
    return [f"{place}: {fault}" for place, text in texts() for fault in speller.faults(text)]


def main() -> None:
    speller = everywhere()
    found = faults(speller)
    print("\n".join(found))
    unneeded = [word for word in listed() if word.lower() not in speller.used]
    print(f"{len(found)} faults; needed no more in {LIST.name}: {', '.join(unneeded) or 'none'}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
