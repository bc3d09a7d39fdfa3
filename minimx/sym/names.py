"""Names and lines of generated source: identifiers that are given once, and lines that are short enough to read."""

from __future__ import annotations

import builtins
import itertools
import keyword
import re
import unicodedata

WIDTH = 88  # of a line of source
RESERVED = {"np", "memory", "keys", "empty", "take", "give_back", "share_out", "tiles", "low", "high", "inf", "nan"}


class Names:
    """Identifiers, each given once."""

    def __init__(self) -> None:
        self.taken = RESERVED | set(dir(builtins))

    def new(self, wish: str) -> str:
        """An identifier like `wish`."""
        stem = re.sub(r"\W", "_", unicodedata.normalize("NFKC", wish)) or "value"  # the form in which Python compares them
        if not stem.isidentifier() or keyword.iskeyword(stem) or stem == "_":
            stem = f"v{stem}"
        if not stem.isidentifier():  # a letter that none may have
            stem = re.sub(r"\W", "_", stem, flags=re.ASCII)
        name = stem
        for number in itertools.count(1):
            if name not in self.taken:
                break
            name = f"{stem}_{number}"
        self.taken.add(name)
        return name


def wrapped(line: str) -> list[str]:
    """A line of source, its first brackets on several lines if it is too long to read."""
    code = line.partition("  # ")[0]
    start = min((code.find(bracket) for bracket in "([" if bracket in code), default=-1)
    if len(line) <= WIDTH or start < 0:
        return [line]
    depth, parts, end = 0, [""], len(line)
    for position, letter in enumerate(line[start:], start):
        depth += (letter in "([") - (letter in ")]")
        if not depth:
            end = position
            break
        if letter == "," and depth == 1:
            parts.append("")
        elif position > start:
            parts[-1] += letter
    if len(parts) == 1:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    inside = [f"{indent}   "]
    for part in parts:
        if len(inside[-1]) + len(part.strip()) + 2 > WIDTH and inside[-1].strip():
            inside.append(f"{indent}   ")
        inside[-1] += f" {part.strip()},"
    return [line[: start + 1], *inside, indent + line[end:]]
