"""The material for teachers: what the solution and wrong submissions of the assignment get, and the slides."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BOOK = Path(__file__).parents[2] / "book"
ASSIGNMENT = BOOK / "teaching" / "assignment"
TASKS = {"gradient": 5, "queue": 5, "program": 3}


@pytest.fixture(scope="module")
def rehearse() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rehearse", ASSIGNMENT / "rehearse.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def graded(rehearse: Any) -> dict[str, dict[str, float]]:
    master = ASSIGNMENT / "engines.ipynb"
    given = rehearse.solutions(rehearse.read(master))
    paths = sorted((ASSIGNMENT / "submissions").glob("*.py"))
    return rehearse.plain(master, {path.stem: {**given, **rehearse.answers(path)} for path in paths})


@pytest.mark.parametrize(
    ("submission", "points"),
    [
        ("solution", [1, 2, 2, 2, 1, 2, 1, 2]),
        ("forgets-the-chain-rule", [1, 2, 0, 2, 1, 2, 1, 2]),
        ("looks-names-up-late", [1, 2, 2, 2, 0, 0, 1, 2]),
        ("asks-for-values", [1, 2, 2, 2, 1, 2, 1, 0]),
        ("empty", [0, 0, 0, 0, 0, 0, 0, 0]),
    ],
)
def test_points(graded: dict[str, dict[str, float]], submission: str, points: list[float]) -> None:
    assert list(graded[submission].values()) == points


@pytest.mark.parametrize("submission", ["solution", "forgets-the-chain-rule", "looks-names-up-late", "asks-for-values", "empty"])
def test_the_page_says_the_same(graded: dict[str, dict[str, float]], submission: str) -> None:
    row = next(
        line for line in (BOOK / "teaching" / "assignment.md").read_text().splitlines() if line.startswith(f"| `{submission}`")
    )
    points = graded[submission]
    sums = [sum(value for name, value in points.items() if name.startswith(task)) for task in TASKS]
    assert [float(cell) for cell in row.strip("| ").split("|")[1:]] == [*sums, sum(points.values())]


def test_the_template_passes_its_own_checks(rehearse: Any) -> None:
    master = ASSIGNMENT / "template.ipynb"
    assert rehearse.plain(master, {"solution": {}}) == {"solution": {"public-1": 1.0, "hidden-1": 2.0}}


def test_a_setup_that_fails_ends_the_rehearsal(rehearse: Any, tmp_path: Path) -> None:
    notebook = rehearse.read(ASSIGNMENT / "template.ipynb")
    next(cell for cell in notebook["cells"] if rehearse.about(cell).get("grade_id") == "setup")["source"] = (
        "import no_such_package"
    )
    rehearse.write(tmp_path / "template.ipynb", notebook)
    with pytest.raises(SystemExit, match="the cell setup failed for ada: ModuleNotFoundError"):
        rehearse.plain(tmp_path / "template.ipynb", {"ada": {}})


@pytest.mark.parametrize("name", ["template.ipynb", "engines.ipynb"])
def test_points_stand_twice_and_are_the_same(rehearse: Any, name: str) -> None:
    """Raw cells are Otter's, metadata are nbgrader's; a hidden check is hidden from both, and no check needs another."""
    assert rehearse.faults(rehearse.read(ASSIGNMENT / name)) == []
    for cell in rehearse.read(ASSIGNMENT / name)["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "raw":
            assert cell["metadata"]["tags"] == ["otter"]
        assert ("# HIDDEN" in text) == ("# BEGIN HIDDEN TESTS" in text) == ("# END HIDDEN TESTS" in text)
        assert cell["cell_type"] != "code" or not cell["outputs"]


def rehearsed(rehearse: Any, monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> str:
    """What the command exits with."""
    monkeypatch.setattr(sys, "argv", ["rehearse.py", *map(str, arguments)])
    with pytest.raises(SystemExit) as caught:
        rehearse.main()
    return str(caught.value)


def test_a_name_that_is_given_twice_is_told(rehearse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = rehearse.read(ASSIGNMENT / "template.ipynb")
    hidden = next(cell for cell in notebook["cells"] if rehearse.about(cell).get("grade_id") == "hidden-1")
    hidden["metadata"]["nbgrader"]["grade_id"] = "public-1"
    rehearse.write(tmp_path / "twice.ipynb", notebook)
    said = rehearsed(rehearse, monkeypatch, tmp_path / "twice.ipynb")
    assert said.startswith("twice.ipynb: 2 cells have the grade_id 'public-1', as a copied cell keeps its own; give each another")


def test_points_that_differ_are_told(rehearse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = rehearse.read(ASSIGNMENT / "template.ipynb")
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"]).replace("points: [1, 2]", "points: [1, 3]").replace("points: 2", "points: 4")
    rehearse.write(tmp_path / "points.ipynb", notebook)
    first, second = rehearsed(rehearse, monkeypatch, tmp_path / "points.ipynb").splitlines()
    assert first.startswith(
        "points.ipynb: question 'task-1': `points: [1, 3]` in its raw cell, which Otter reads, but the checks"
    )
    assert "have {'public-1': 1, 'hidden-1': 2}; write the same" in first
    assert "question 'task-2': `points: 4`" in second


@pytest.mark.parametrize(("tool", "package"), [("otter", "otter-grader"), ("nbgrader", "nbgrader")])
def test_a_tool_that_is_absent_is_a_sentence(
    tool: str, package: str, rehearse: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    said = rehearsed(rehearse, monkeypatch, "--tool", tool)
    assert said.startswith(f"{tool} is not installed: {tmp_path / 'python'} -m pip install {package}; or rehearse without --tool")


def test_the_plan_has_the_chapters_of_a_course() -> None:
    """Chapters 1 to 12, in their order; 13 to 15 are for projects."""
    plan = (BOOK / "teaching" / "plan.md").read_text()
    read = re.findall(r"\{doc\}`/chapters/(\d\d)", plan)
    assert read == [f"{number:02}" for number in range(1, 13)]
    assert re.findall(r"^\| (\d+) ", plan, re.M) == [str(week) for week in range(1, 15)]


def test_what_goes_on_one_slide() -> None:
    nbformat = pytest.importorskip("nbformat.v4")
    pytest.importorskip("nbconvert")
    sys.path.insert(0, str(BOOK))
    try:
        slides = importlib.import_module("slides")
    finally:
        sys.path.remove(str(BOOK))
    text, code = nbformat.new_markdown_cell, nbformat.new_code_cell
    long = code("\n".join(["x = 1"] * 18))
    hidden = code("answer", metadata={"tags": ["hide-cell"]})
    cells = [
        text("# Title"),
        text("Words."),
        long,
        text("More."),
        long,
        hidden,
        text("## Section"),
        code("y"),
        text("### Part"),
        code("z"),
    ]
    assert list(slides.kinds(cells)) == ["slide", "-", "-", "subslide", "-", "skip", "slide", "-", "subslide", "-"]
    title, page = slides.page(BOOK / "chapters" / "03-imperative-and-symbolic.ipynb")
    assert title == "Imperative and symbolic programs"
    assert '<script src="reveal.js/dist/reveal.js">' in page
    assert '<script src="http' not in page
    assert '<link rel="stylesheet" href="http' not in page
    assert page.count("<section") == page.count("</section>") > 30
