"""Tries wrong answers to a chapter's exercises: what a program of its own runs, since chapters change switches of the whole process.

    python -m tests.book.exercises 14-build-your-own-engine

An exercise is a hidden cell with a solution that ends in a check, and what stands before it since the last text. A wrong answer takes the
place of all but the check. Of the cells further up only those run on which the exercise depends: those that bind or change a name which
it uses, and so on. `answers/` holds the wrong answers, a file a chapter; test_exercises.py says what must come out.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import json
import linecache
import os
import symtable
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHAPTERS = Path(__file__).parents[2] / "book" / "chapters"
CHECKS = ("d2l.check(", "examine(")
SHOWS = ("print", "d2l", "figures", "display")  # calls that change nothing


@dataclass
class Cell:
    """A cell of code: the names that it binds, that it uses while it runs or later, in its functions, and whose values it changes."""

    name: str
    source: str
    hidden: bool = False
    fails: bool = False
    group: int = 0  # which text stands before it
    binds: set[str] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)
    later: set[str] = field(default_factory=set)
    changes: set[str] = field(default_factory=set)
    imports: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        tree, top = ast.parse(self.source), symtable.symtable(self.source, self.name, "exec")
        self.imports = {each.get_name() for each in top.get_symbols() if each.is_imported()}
        self.binds = {each.get_name() for each in top.get_symbols() if each.is_assigned()} | self.imports
        self.uses = used_from_elsewhere(tree)
        for inner in inner_tables(top):
            both = inner.get_type() == "class"  # Var = Var: the first is the class's own, the second is not
            self.later |= {s.get_name() for s in inner.get_symbols() if s.is_global() or (both and s.is_referenced())}
        self.changes = changed(tree)

    @property
    def is_exercise(self) -> bool:
        return self.hidden and any(check in self.source for check in CHECKS)


def inner_tables(table: symtable.SymbolTable) -> list[symtable.SymbolTable]:
    """The scopes inside a scope, of all depths."""
    return [each for child in table.get_children() for each in (child, *inner_tables(child))]


def base_name(node: ast.AST | None) -> str:
    """`x` of `x`, `x.y[0].z` and `x.y().z`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def outside(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all in it, without the bodies of functions, which run later."""
    yield node
    parts: Iterable[Any] = ast.iter_child_nodes(node)
    if isinstance(node, (ast.FunctionDef, ast.Lambda)):
        parts = [*getattr(node, "decorator_list", ()), *node.args.defaults, *filter(None, node.args.kw_defaults)]
    for part in parts:
        yield from outside(part)


def changed(tree: ast.Module) -> set[str]:
    """The names whose values are assigned into, or called a method of for what that does."""
    found = set()
    for node in outside(tree):
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        unkept = isinstance(node, ast.Expr) or (isinstance(node, ast.Assign) and base_name(node.targets[0]) == "_")
        value = getattr(node, "value", None)
        if unkept and isinstance(value, ast.Call):
            found |= may_change(value)
        for target in targets:
            elements = target.elts if isinstance(target, ast.Tuple) else [target]
            found |= {base_name(each) for each in elements if isinstance(each, (ast.Attribute, ast.Subscript))}
    return found - {""}


def may_change(call: ast.Call) -> set[str]:
    """What a call without a result may change: the object of a method, and what a function is called with."""
    if base_name(call.func) in SHOWS:
        return set()
    parts = [each for part in (*call.args, *call.keywords) for each in ast.walk(part)]
    return {base_name(call.func)} | {each.id for each in parts if isinstance(each, ast.Name)}


def used_from_elsewhere(tree: ast.Module) -> set[str]:
    """The names that a cell reads before it binds them itself."""
    used: set[str] = set()
    bound: set[str] = set()
    for statement in tree.body:
        names = [node for node in outside(statement) if isinstance(node, ast.Name)]
        read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        if isinstance(statement, ast.AugAssign):  # to ast, the x of `x += ...` is only written
            read.add(base_name(statement.target))
        used |= read - bound
        bound |= {node.id for node in names} - read | {getattr(statement, "name", "")}
    return used


def cells_of(chapter: str) -> list[Cell]:
    """The cells of code of a notebook; the commands of Jupyter in them are left out."""
    cells, group = [], 0
    for each in json.loads((CHAPTERS / f"{chapter}.ipynb").read_text(encoding="utf-8"))["cells"]:
        if each["cell_type"] != "code":
            group += 1
            continue
        tags = each["metadata"].get("tags", [])
        source = "".join(line for line in each["source"] if not line.startswith("%"))
        cells.append(Cell(each["id"], source, "hide-cell" in tags, "raises-exception" in tags, group))
    return cells


def needed(cells: list[Cell], last: list[int]) -> list[int]:
    """The cells that must run before those in `last`, with these, in order."""
    end, modules = max(last), {name for cell in cells for name in cell.imports}
    found, pending = set(last), list(last)
    while pending:
        place = pending.pop()
        cell = cells[place]
        wanted = [(name, place) for name in cell.uses] + [(name, end) for name in cell.later]
        for name, before in wanted:
            binders = [i for i in range(before) if name in cells[i].binds]
            if not binders:
                continue
            changers = [i for i in range(binders[-1] + 1, before) if name in cells[i].changes - modules]
            for i in (binders[-1], *changers):
                if i not in found:
                    found.add(i)
                    pending.append(i)
    return sorted(found)


def split(solution: str) -> tuple[str, str]:
    """A solution's own lines, and its check with what follows."""
    body = ast.parse(solution).body
    first = next(node for node in body if ast.unparse(node).startswith(CHECKS))
    lines = solution.splitlines(keepends=True)
    return "".join(lines[: first.lineno - 1]), "".join(lines[first.lineno - 1 : first.end_lineno])


def execute(source: str, name: str, namespace: dict[str, Any]) -> str:
    """Run the text of a cell and return what it prints. Its lines can be shown in messages, as in a notebook."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, name, "exec"), namespace)
    return printed.getvalue()


def own_cells(cells: list[Cell], place: int) -> list[int]:
    """The cells of the exercise whose solution is at `place`."""
    return [i for i in range(place) if cells[i].group == cells[place].group and not cells[i].hidden]


def prepared(cells: list[Cell], place: int, answers: Any) -> dict[str, Any]:
    """The names that an exercise finds in its notebook."""
    own = own_cells(cells, place)
    also = [i for i in range(place) if cells[i].name in getattr(answers, "ALSO", ())]
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for i in needed(cells, [*also, *own, place]):
        if i in own or i == place or cells[i].name in getattr(answers, "NEVER", ()):
            continue
        with contextlib.suppress(Exception) if cells[i].fails else contextlib.nullcontext():
            execute(cells[i].source, cells[i].name, namespace)
    namespace.update(getattr(answers, "PATIENT", {}))
    return namespace


def answers_to(chapter: str) -> Any:
    """The module with the wrong answers to a chapter's exercises, by its number or letter: chapter_01, chapter_a."""
    return importlib.import_module(f"tests.book.answers.chapter_{chapter.split('-')[0].lower()}")


def verdicts(chapter: str) -> dict[str, list[str]]:
    """By exercise, what its check prints to the cell as a reader finds it, to the solution, and to each of the wrong answers."""
    answers = answers_to(chapter)
    cells = cells_of(chapter)
    told: dict[str, list[str]] = {}
    for place, cell in enumerate(cells):
        if not cell.is_exercise:
            continue
        solution, check = split(cell.source)
        namespace, told[cell.name] = prepared(cells, place, answers), []
        before = dict(namespace)
        for number, text in enumerate([solution, *(wrong for wrong, _ in answers.WRONG.get(cell.name, []))]):
            namespace.clear()  # and no other dict: functions of cells above look for names in this one
            namespace.update(before)
            found = [execute(cells[i].source, cells[i].name, namespace).strip() for i in own_cells(cells, place)]
            if number == 0:
                told[cell.name].append(found[-1])
            told[cell.name].append(execute(f"{text.strip()}\n\n\n{check}", f"answer {number}", namespace).strip())
    return told


if __name__ == "__main__":
    sys.path[0] = str(Path(sys.path[0]).resolve())  # also of the folder to go to
    with tempfile.TemporaryDirectory() as folder:  # for the files that exercises write
        os.chdir(folder)
        print(json.dumps(verdicts(sys.argv[1])))
        os.chdir(sys.path[0])
