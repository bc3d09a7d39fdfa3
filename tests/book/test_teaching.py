"""The material for teachers: what the solution and wrong submissions of the assignment get, and the slides."""

from __future__ import annotations

import importlib.util
import re
import sys
from html import unescape
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


def changed(rehearse: Any, path: Path, name: str, old: str, new: str) -> Path:
    """The template with other text in a cell. **Args** `name`: its grade_id, or id; `path`: where to write it."""
    notebook = rehearse.read(ASSIGNMENT / "template.ipynb")
    cell = next(cell for cell in notebook["cells"] if name in (rehearse.about(cell).get("grade_id"), cell["id"]))
    text = "".join(cell["source"])
    assert old in text
    cell["source"] = text.replace(old, new)
    rehearse.write(path, notebook)
    return path


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("answer-1", "    # END SOLUTION", "", "the cell answer-1 has `# BEGIN SOLUTION` and no `# END SOLUTION` after it"),
        ("answer-1", "    # BEGIN SOLUTION\n", "", "the cell answer-1 has `# END SOLUTION` and no `# BEGIN SOLUTION` before it"),
        ("answer-1", "END", "BEGIN", "the cell answer-1 has `# BEGIN SOLUTION` before the `# END SOLUTION` of the one above"),
        ("hidden-1", "# END HIDDEN TESTS", "", "the cell hidden-1 has `# BEGIN HIDDEN TESTS` and no `# END HIDDEN TESTS` after it"),
        (
            "setup", "import minimx as mx", "### BEGIN SOLUTION\n### END SOLUTION",
            'the cell setup has `# BEGIN SOLUTION`, but its metadata do not call it an answer: set "solution": true',
        ),
        ("otter-6", "# END TESTS", "", "the raw cell otter-5 has `# BEGIN TESTS` and no `# END TESTS` after it"),
        ("otter-11", "# END QUESTION", "", "the raw cell otter-8 has `# BEGIN QUESTION` and no `# END QUESTION` after it"),
        ("otter-3", "# BEGIN SOLUTION", "", "the raw cell otter-4 has `# END SOLUTION` and no `# BEGIN SOLUTION` before it"),
    ],
)  # fmt: skip
def test_a_mark_without_its_other_half_is_told(
    name: str, old: str, new: str, said: str, rehearse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = changed(rehearse, tmp_path / "marks.ipynb", name, old, new)
    assert rehearsed(rehearse, monkeypatch, path, tmp_path).splitlines()[0] == f"marks.ipynb: {said}"


@pytest.mark.parametrize(
    ("old", "new", "reasons"),
    [
        ("x * 2", "x * 3", ["public-1: AssertionError: the double of [1, 2] is [2, 4]",
                            "hidden-1: AssertionError: assert np.allclose(double(x).asnumpy(), 2 * x.asnumpy())"]),
        ("x * 2", "x * none", ["public-1: NameError: name 'none' is not defined", "hidden-1: NameError: name 'none' is not defined"]),
    ],
)  # fmt: skip
def test_a_solution_that_fails_says_why(
    old: str, new: str, reasons: list[str], rehearse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = changed(rehearse, tmp_path / "wrong.ipynb", "answer-1", old, new)
    assert rehearsed(rehearse, monkeypatch, path, tmp_path) == "wrong.ipynb: the solution gets 0 of 3 points"
    said = capsys.readouterr()
    assert said.err.splitlines() == [f"solution: {reason}" for reason in reasons]
    assert said.out.splitlines() == ["submission\tpublic-1\thidden-1\tsum", "solution\t0\t0\t0"]


def test_errors_of_submissions_are_told_and_wrong_answers_are_not(
    rehearse: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "colon.py").write_text("# %% answer-1\ndef double(x)\n    return x\n")
    (tmp_path / "leaves.py").write_text("# %% answer-1\nraise SystemExit(3)\n")
    (tmp_path / "wrong.py").write_text("# %% answer-1\ndef double(x):\n    return x\n")
    monkeypatch.setattr(sys, "argv", ["rehearse.py", str(ASSIGNMENT / "template.ipynb"), str(tmp_path)])
    rehearse.main()  # does not exit: the solution has all points
    said = capsys.readouterr()
    assert [line.split("\t") for line in said.out.splitlines()[1:]] == [
        ["solution", "1", "2", "3"], ["colon", "0", "0", "0"], ["leaves", "0", "0", "0"], ["wrong", "0", "0", "0"],
    ]  # fmt: skip
    assert said.err.splitlines() == [
        "colon: answer-1: SyntaxError: expected ':' (answer-1, line 1)",
        "colon: public-1: NameError: name 'double' is not defined",
        "colon: hidden-1: NameError: name 'double' is not defined",
        "leaves: answer-1: SystemExit: 3",
        "leaves: public-1: NameError: name 'double' is not defined",
        "leaves: hidden-1: NameError: name 'double' is not defined",
    ]


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


@pytest.fixture
def slides(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("nbconvert")
    monkeypatch.syspath_prepend(BOOK)
    module = importlib.import_module("slides")
    monkeypatch.setattr(module, "copy_scripts", lambda folder: None)  # whose packages only slides need
    return module


def decked(slides: Any, monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> None:
    monkeypatch.setattr(sys, "argv", ["slides.py", *map(str, arguments)])
    slides.main()


def words(page: str) -> str:
    """The text of a page, without tags."""
    return unescape(re.sub(r"<[^>]+>", "", page[page.index("<body") :]))


def test_what_goes_on_one_slide(slides: Any) -> None:
    nbformat = pytest.importorskip("nbformat.v4")
    text, code = nbformat.new_markdown_cell, nbformat.new_code_cell
    long = code("\n".join(["x = 1"] * 18))
    cells = [
        text("# Title"), text("Words."), long, text("More."), long, text("## Section"), code("y"), text("### Part"), code("z"),
    ]  # fmt: skip
    assert list(slides.kinds(cells)) == ["slide", "-", "-", "subslide", "-", "slide", "-", "subslide", "-"]
    title, page = slides.page(BOOK / "chapters" / "03-imperative-and-symbolic.ipynb")
    assert title == "Imperative and symbolic programs"
    assert '<script src="reveal.js/dist/reveal.js">' in page
    assert '<script src="http' not in page
    assert '<link rel="stylesheet" href="http' not in page
    assert page.count("<section") == page.count("</section>") > 30


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("def f(x):\n    # BEGIN SOLUTION\n    y = x\n    return y\n    # END SOLUTION\nf(1)", "def f(x):\n    ...  # your answer\nf(1)"),
        ("### BEGIN SOLUTION\nx = 1\n### END SOLUTION", "...  # your answer"),
        ("# seen\n### BEGIN HIDDEN TESTS\nassert f(2) == 2\n### END HIDDEN TESTS\nf(3)", "# seen\nf(3)"),
        ("x = 1\n# BEGIN HIDDEN TESTS\n# END SOLUTION\nassert x", "x = 1"),
        ("if x:\n    y = 1  # SOLUTION", "if x:\n    ...  # your answer"),
        ("x = 1\n\n# the solution\ny = 2", "x = 1\n\n# the solution\ny = 2"),
    ],
)  # fmt: skip
def test_lines_that_students_do_not_see(slides: Any, text: str, seen: str) -> None:
    assert slides.cut(text) == seen


def test_cells_that_students_do_not_see(slides: Any) -> None:
    nbformat = pytest.importorskip("nbformat.v4")
    text, code, raw = nbformat.new_markdown_cell, nbformat.new_code_cell, nbformat.new_raw_cell
    solution = {"nbgrader": {"solution": True, "grade": True}}
    printed = [nbformat.new_output("stream", text="42")]
    cells = [
        raw("# ASSIGNMENT CONFIG"), text("## Task"), raw("# BEGIN SOLUTION"), text("Otter's answer"), raw("# END SOLUTION"),
        text("nbgrader's answer", metadata=solution), code("whole = 42", metadata=solution, outputs=printed),
        code("x = (\n# BEGIN SOLUTION\n42\n# END SOLUTION\n)", metadata=solution, outputs=printed),
        code("# HIDDEN\nassert x == 42"), code("# BEGIN HIDDEN TESTS\nassert x == 42\n# END HIDDEN TESTS"),
        code("chapter's answer", metadata={"tags": ["hide-cell"]}), code("seen", outputs=printed), text("Goodbye."),
    ]  # fmt: skip
    seen = slides.for_students(cells)
    assert [cell.source for cell in seen] == ["## Task", "x = (\n...  # your answer\n)", "seen", "Goodbye."]
    assert [cell.get("outputs") for cell in seen] == [None, [], printed, None]


@pytest.mark.parametrize(
    ("name", "title", "secret", "seen"),
    [
        ("template", "Title of the assignment", ["x * 2", "nd.random.normal"], ["def double(x):", "the double of [1, 2] is [2, 4]"]),
        ("engines", "A gradient, a queue, a program", ["s * (1 - s)", "def squared"], ["class Swish", "def logged", "report()"]),
    ],
)  # fmt: skip
def test_slides_of_an_assignment_show_what_students_get(
    slides: Any, name: str, title: str, secret: list[str], seen: list[str]
) -> None:
    found, page = slides.page(ASSIGNMENT / f"{name}.ipynb")
    assert found == title
    assert f"<title>{title} slides</title>" in page
    shown = words(page)
    marks = ("SOLUTION", "HIDDEN", "BEGIN", "ASSIGNMENT CONFIG", "points:", "Students do not see", "Two points for")
    for text in (*marks, *secret):
        assert text not in shown, text
    for text in (*seen, "...  # your answer"):
        assert text in shown, text


def test_the_index_lists_all_decks(
    slides: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    decked(slides, monkeypatch, tmp_path, BOOK / "chapters" / "00-preface.ipynb", ASSIGNMENT / "engines.ipynb")
    assert capsys.readouterr().out.startswith(f"2 chapters; open {tmp_path / 'index.html'} ")
    decked(slides, monkeypatch, tmp_path, ASSIGNMENT / "template.ipynb")
    assert capsys.readouterr().out.startswith("1 chapter; open ")
    links = re.findall(r'<li><a href="(.+?)">(.+?)</a>', (tmp_path / "index.html").read_text(encoding="utf-8"))
    assert [link for link, _ in links] == ["00-preface.html", "engines.html", "template.html"]
    assert [title for _, title in links[1:]] == ["A gradient, a queue, a program", "Title of the assignment"]


def test_slides_of_what_is_no_notebook(slides: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes.md").write_text("# Notes")
    for name, said in (("none.ipynb", "cannot be read: No such file or directory"), ("notes.md", "is no notebook")):
        with pytest.raises(SystemExit) as caught:
            decked(slides, monkeypatch, tmp_path / "decks", ASSIGNMENT / "template.ipynb", tmp_path / name)
        assert caught.value.code == f"slides: {tmp_path / name} {said}"
        assert not (tmp_path / "decks").exists()
