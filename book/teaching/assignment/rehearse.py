"""Rehearses an assignment before a class gets it: what would the solution get, and what would wrong submissions get?

    python rehearse.py                      runs the notebook's cells here, without any grading tool
    python rehearse.py --tool nbgrader      the whole way with nbgrader: generate_assignment, autograde, export
    python rehearse.py --tool otter         the whole way with Otter-Grader: assign, run

A submission is a file of submissions/: cells that begin with `# %% NAME` take the place of the notebook's cells of that name, its
`grade_id`; what a file does not mention stays as the solution has it. Each prints a line: the points of every check, and their sum.
A notebook in which a name stands twice, or Otter's points are not nbgrader's, is refused before anything runs.
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
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
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


def faults(notebook: Notebook) -> list[str]:
    """What one of the tools would stumble over: names that are given twice, and points that differ between the two."""
    ids = [about(cell)["grade_id"] for cell in notebook["cells"] if "grade_id" in about(cell)]
    found = [
        f"{ids.count(name)} cells have the grade_id {name!r}, as a copied cell keeps its own; give each another, in its metadata"
        for name in dict.fromkeys(ids)
        if ids.count(name) > 1
    ]
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


def plain(master: Path, submissions: dict[str, dict[str, str]]) -> dict[str, Points]:
    """Run the cells one after the other in this process; a check that raises gives nothing."""
    found: dict[str, Points] = {}
    for student, given in submissions.items():
        names: dict[str, Any] = {"__name__": "__main__"}
        points = found[student] = {}
        for cell in filled(read(master), given)["cells"]:
            if cell["cell_type"] != "code":
                continue
            worth = float(about(cell).get("points", 0))
            try:
                with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of the students' code
                    exec("".join(cell["source"]), names)
            except Exception as error:
                if not (about(cell).get("grade") or about(cell).get("solution")):  # an import, say
                    sys.exit(f"{master.name}: the cell {about(cell).get('grade_id')} failed for {student}: {error!r}")
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
    submissions = {path.stem: {**given, **known(path, answers(path), given)} for path in paths}
    graded = TOOLS[chosen.tool](chosen.notebook.resolve(), submissions)
    writer = csv.writer(sys.stdout, delimiter="\t", lineterminator=os.linesep)
    writer.writerow(["submission", *next(iter(graded.values()), {}), "sum"])
    for student, points in graded.items():
        writer.writerow([student, *(f"{each:g}" for each in points.values()), f"{sum(points.values()):g}"])


if __name__ == "__main__":
    main()
