"""The material for teachers: what the solution and wrong submissions of the assignment get, and the slides."""

from __future__ import annotations

import importlib.util
import json
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
    points: list[int] = []
    claimed: list[int] = []
    for cell in rehearse.read(ASSIGNMENT / name)["cells"]:
        text, noted = "".join(cell["source"]), rehearse.about(cell)
        if cell["cell_type"] == "raw":
            assert cell["metadata"]["tags"] == ["otter"]
            line = next((line for line in text.splitlines() if line.startswith("points: ")), None)
            claimed += [] if line is None else [json.loads(line.removeprefix("points: "))]
        elif noted["grade"]:
            points.append(noted["points"])
        assert ("# HIDDEN" in text) == ("# BEGIN HIDDEN TESTS" in text) == ("# END HIDDEN TESTS" in text)
        assert cell["cell_type"] != "code" or not cell["outputs"]
    flat = [each for entry in claimed for each in (entry if isinstance(entry, list) else [entry])]
    assert flat == points


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
