"""Rehearses an assignment before a class gets it: what would the solution get, and what would wrong submissions get?

    python rehearse.py                      runs the notebook's cells here, without any grading tool
    python rehearse.py --tool nbgrader      the whole way with nbgrader: generate_assignment, autograde, export
    python rehearse.py --tool otter         the whole way with Otter-Grader: assign, run

A submission is a file of submissions/: cells that begin with `# %% NAME` take the place of the notebook's cells of that name, its
`grade_id`; what a file does not mention stays as the solution has it. The notebook itself is one, `solution`. Each prints a line: the
points of every check, and their sum. Without a tool, standard error says which cell raised an error and what it was; of a check that finds
an answer wrong it says so for the solution only. The exit status is 1 if the solution does not get all points.
A notebook in which a name stands twice, a mark has no end, or Otter's points are not nbgrader's, is refused before anything runs.
With a tool everything happens in a temporary folder. Points that a person gives are not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SOLUTION = "solution"  # the submission that is the notebook itself
MARK = re.compile(r"#+ *(BEGIN|END) (SOLUTION|HIDDEN TESTS)\b")
STRUCTURE = re.compile(r"# (BEGIN|END) (QUESTION|SOLUTION|TESTS|PROMPT)\b")  # Otter's raw cells
Notebook = dict[str, Any]
Points = dict[str, float]  # of each check, by its name


# ---- notebooks and submissions


def read(path: Path) -> Notebook:
    """A notebook as JSON."""
    found: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return found


def write(path: Path, notebook: Notebook) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def about(cell: dict[str, Any]) -> dict[str, Any]:
    """What nbgrader notes of a cell: `grade_id`, `grade`, `solution`, `points`."""
    noted: dict[str, Any] = cell["metadata"].get("nbgrader", {})
    return noted


def answers(path: Path) -> dict[str, str]:
    """The cells of a submission, by the names of the cells whose places they take."""
    parts = re.split(r"^# %% (\S+)\n", path.read_text(encoding="utf-8"), flags=re.M)[1:]
    return {name: text.strip() for name, text in zip(parts[::2], parts[1::2])}


def known(path: Path, found: dict[str, str], given: dict[str, str]) -> dict[str, str]:
    """What a submission has, if each name is one of `given`, the cells that students write; else exits, and lists these."""
    for name in found:
        if name not in given:
            sys.exit(f"{path.name}: there is no answer cell {name!r}; the notebook has {', '.join(given)}")
    return found


def solutions(notebook: Notebook) -> dict[str, str]:
    """The cells that students are to write, as the master has them."""
    return {about(cell)["grade_id"]: "".join(cell["source"]) for cell in notebook["cells"] if about(cell).get("solution")}


def pairs(marks: list[tuple[str, str, str]], nested: bool) -> list[str]:
    """What is wrong with marks that begin and end something. **Args** `marks`: place, BEGIN or END, and what; `nested`: if one may be in
    another.
    """
    found: list[str] = []
    begun: list[tuple[str, str]] = []
    for place, side, what in marks:
        if side == "BEGIN" and begun and not nested:
            found.append(f"{place} has `# BEGIN {what}` before the `# END {begun[-1][1]}` of the one above")
        elif side == "BEGIN":
            begun.append((place, what))
        elif begun and begun[-1][1] == what:
            begun.pop()
        elif what not in (kind for _, kind in begun):
            found.append(f"{place} has `# END {what}` and no `# BEGIN {what}` before it")
        else:  # what was begun last has lost its end
            while begun[-1][1] != what:
                lost, kind = begun.pop()
                found.append(f"{lost} has `# BEGIN {kind}` and no `# END {kind}` after it")
            begun.pop()
    return found + [f"{place} has `# BEGIN {what}` and no `# END {what}` after it" for place, what in begun]


def mark_faults(notebook: Notebook) -> list[str]:
    """Marks without their other half, in the code of a cell and among Otter's raw cells, and marks in a cell that is not of their kind."""
    found: list[str] = []
    structure: list[tuple[str, str, str]] = []
    for number, cell in enumerate(notebook["cells"], 1):
        text = "".join(cell["source"])
        name = about(cell).get("grade_id") or cell.get("id") or f"number {number}"
        if cell["cell_type"] == "raw":
            structure += [(f"the raw cell {name}", *mark) for mark in STRUCTURE.findall(text)[:1]]
        elif cell["cell_type"] == "code":
            marks = MARK.findall(text)
            found += pairs([(f"the cell {name}", *mark) for mark in marks], nested=False)
            for what, kind, role in (("SOLUTION", "solution", "an answer"), ("HIDDEN TESTS", "grade", "a check")):
                if about(cell) and any(mark[1] == what for mark in marks) and not about(cell).get(kind):
                    found.append(
                        f'the cell {name} has `# BEGIN {what}`, but its metadata do not call it {role}: set "{kind}": true'
                    )
    return found + pairs(structure, nested=True)


def faults(notebook: Notebook) -> list[str]:
    """What one of the tools would stumble over: names that are given twice, marks without an end, and points that differ between both."""
    ids = [about(cell)["grade_id"] for cell in notebook["cells"] if "grade_id" in about(cell)]
    found = [
        f"{ids.count(name)} cells have the grade_id {name!r}, as a copied cell keeps its own; give each another, in its metadata"
        for name in dict.fromkeys(ids)
        if ids.count(name) > 1
    ] + mark_faults(notebook)
    question, promised = "", ""
    checks: dict[str, float] = {}
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "raw" and text.startswith("# BEGIN QUESTION"):
            named, listed = (re.search(rf"^{key}: *(.+)$", text, re.M) for key in ("name", "points"))
            question, promised, checks = named[1] if named else "?", listed[1] if listed else "", {}
        elif cell["cell_type"] == "raw" and text.startswith("# END QUESTION"):
            if promised and [float(each) for each in re.findall(r"[\d.]+", promised)] != list(checks.values()):
                found.append(
                    f"question {question!r}: `points: {promised}` in its raw cell, which Otter reads, but the checks, as nbgrader "
                    f"reads them, have {checks}; write the same numbers in both"
                )
            promised = ""
        elif about(cell).get("grade"):
            checks[about(cell)["grade_id"]] = about(cell)["points"]
    return found


def whole(notebook: Notebook) -> float:
    """The points of all checks."""
    checks = [about(cell) for cell in notebook["cells"] if about(cell).get("grade") and cell["cell_type"] == "code"]
    return float(sum(noted.get("points", 0) for noted in checks))


def filled(notebook: Notebook, given: dict[str, str]) -> Notebook:
    """The notebook with other text in the cells that `given` names."""
    made = copy.deepcopy(notebook)
    for cell in made["cells"]:
        name = about(cell).get("grade_id")
        if name in given and about(cell).get("solution"):
            text = given[name]
            cell["source"] = text if cell["cell_type"] == "code" else re.sub("^# ?", "", text, flags=re.M)
    return made


# ---- three ways to grade


def environment() -> dict[str, str]:
    """Variables for a tool: it finds the programs that are installed beside this Python, as nbgrader looks for alembic."""
    return {**os.environ, "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))}


def call(folder: Path, *line: str) -> None:
    """Run a program in `folder`, quietly; show what it said if it fails."""
    done = subprocess.run(line, cwd=folder, env=environment(), capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(f"{' '.join(line)}\n{done.stdout}{done.stderr}")


def reason(error: BaseException, name: str, text: str) -> str:
    """What an error says, on a line; the line of the cell that raised it, if it says nothing. **Args** the cell's name and text."""
    said = " ".join(str(error).split())
    if not said:
        numbers = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == name and frame.lineno]
        said = text.splitlines()[numbers[-1] - 1].strip() if numbers else ""
    return f"{type(error).__name__}: {said}".rstrip(": ")


def plain(master: Path, submissions: dict[str, dict[str, str]]) -> dict[str, Points]:
    """Run the cells one after the other in this process; a check that raises gives nothing. Standard error says why it did."""
    found: dict[str, Points] = {}
    for student, given in submissions.items():
        names: dict[str, Any] = {"__name__": "__main__"}
        points = found[student] = {}
        for cell in filled(read(master), given)["cells"]:
            if cell["cell_type"] != "code":
                continue
            worth, name, text = float(about(cell).get("points", 0)), about(cell).get("grade_id", "?"), "".join(cell["source"])
            try:
                with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of the students' code
                    exec(compile(text, name, "exec", dont_inherit=True), names)
            except (Exception, SystemExit) as error:
                if not (about(cell).get("grade") or about(cell).get("solution")):  # an import, say
                    sys.exit(f"{master.name}: the cell {about(cell).get('grade_id')} failed for {student}: {error!r}")
                if student == SOLUTION or not (about(cell).get("grade") and isinstance(error, AssertionError)):
                    print(f"{student}: {name}: {reason(error, name, text)}", file=sys.stderr)
                worth = 0.0
            if about(cell).get("grade"):
                points[about(cell)["grade_id"]] = worth
    return found


def by_nbgrader(master: Path, submissions: dict[str, dict[str, str]]) -> dict[str, Points]:
    """A course of its own: what students get is made, each submission is handed in, graded and exported."""
    name = master.stem
    checks = [
        about(cell)["grade_id"] for cell in read(master)["cells"] if about(cell).get("grade") and cell["cell_type"] == "code"
    ]
    with tempfile.TemporaryDirectory() as made:
        course = Path(made)
        shutil.copy(HERE / "nbgrader_config.py", course)
        write(course / "source" / name / master.name, read(master))
        call(course, *program("nbgrader"), "generate_assignment", name)
        released = read(course / "release" / name / master.name)
        for student, given in submissions.items():
            write(course / "submitted" / student / name / master.name, filled(released, given))
        call(course, *program("nbgrader"), "autograde", name)
        read_grades = (
            "import json; from nbgrader.api import Gradebook\n"
            f"with Gradebook('sqlite:///gradebook.db') as book:\n"
            f"    print(json.dumps({{s.student.id: {{g.name: g.auto_score for n in s.notebooks for g in n.grades}} "
            f"for s in book.assignment_submissions({name!r})}}))"
        )
        line = [sys.executable, "-c", read_grades]
        done = subprocess.run(line, cwd=course, env=environment(), capture_output=True, text=True, timeout=100, check=True)
        grades: dict[str, Points] = json.loads(done.stdout)
    return {student: {check: float(grades[student][check] or 0) for check in checks} for student in submissions}


def by_otter(master: Path, submissions: dict[str, dict[str, str]]) -> dict[str, Points]:
    """What students get is made, and each submission is run against the checks that Otter has packed."""
    found: dict[str, Points] = {}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        shutil.copy(master, folder)
        call(folder, *program("otter"), "assign", "--no-pdfs", master.name, "made")
        package = next((folder / "made" / "autograder").glob("*.zip"))
        released = read(folder / "made" / "student" / master.name)
        for student, given in submissions.items():
            write(folder / student / master.name, filled(released, given))
            call(folder / student, *program("otter"), "run", "-a", str(package), "-o", ".", master.name)
            results = json.loads((folder / student / "results.json").read_text(encoding="utf-8"))["tests"]
            found[student] = {each["name"]: float(each.get("score", 0)) for each in results if each.get("max_score")}
    return found


def program(name: str) -> list[str]:
    """A tool beside this Python, or on the path; exits, and says what to type, where it is neither."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        package = {"otter": "otter-grader"}.get(name, name)
        sys.exit(
            f"{name} is not installed: {sys.executable} -m pip install {package}; or rehearse without --tool, which needs none"
        )
    return [found]


TOOLS: dict[str, Callable[[Path, dict[str, dict[str, str]]], dict[str, Points]]] = {
    "plain": plain, "nbgrader": by_nbgrader, "otter": by_otter,
}  # fmt: skip


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", choices=TOOLS, default="plain")
    parser.add_argument("notebook", nargs="?", type=Path, default=HERE / "engines.ipynb", help="the master; engines.ipynb")
    parser.add_argument("submissions", nargs="?", type=Path, default=HERE / "submissions", help="the folder of submissions")
    chosen = parser.parse_args()
    for path in (chosen.notebook, chosen.submissions):
        if not path.exists():
            sys.exit(f"there is no {path}")
    notebook = read(chosen.notebook)
    if found := faults(notebook):
        sys.exit("\n".join(f"{chosen.notebook.name}: {fault}" for fault in found))
    given = solutions(notebook)
    paths = sorted(chosen.submissions.glob("*.py"))
    submissions = {SOLUTION: given}
    submissions |= {path.stem: {**given, **known(path, answers(path), given)} for path in paths}
    graded = TOOLS[chosen.tool](chosen.notebook.resolve(), submissions)
    writer = csv.writer(sys.stdout, delimiter="\t", lineterminator=os.linesep)
    writer.writerow(["submission", *next(iter(graded.values()), {}), "sum"])
    for student, points in graded.items():
        writer.writerow([student, *(f"{each:g}" for each in points.values()), f"{sum(points.values()):g}"])
    got, all_points = sum(graded[SOLUTION].values()), whole(notebook)
    if got < all_points:
        more = "" if chosen.tool == "plain" else "; rehearse without --tool, which says why"
        sys.exit(f"{chosen.notebook.name}: the solution gets {got:g} of {all_points:g} points{more}")


if __name__ == "__main__":
    main()
