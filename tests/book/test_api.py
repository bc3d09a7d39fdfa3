"""The pages of the reference: every public module has one, and every public name is on it."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType

import pytest

import minimx as mx
from minimx.op import REGISTRY

#: Public modules whose names stand on another page, or that have nothing to say beyond their file.
ELSEWHERE = {
    "attribute", "base", "context", "contrib", "executor", "image", "img", "init", "kv", "libinfo", "log", "mod", "mon", "name",
    "ndarray", "opt", "registry", "rnd", "symbol", "viz",
}  # fmt: skip


def load() -> ModuleType:
    path = Path(__file__).parents[2] / "book" / "api.py"
    spec = importlib.util.spec_from_file_location("api_of_the_book", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


api = load()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("reference")
    (folder / "old.md").write_text("of a module that is gone")
    api.write(folder)
    return {path.stem: path.read_text(encoding="utf-8") for path in folder.iterdir()}


def test_every_public_module_has_a_page(pages: dict[str, str]) -> None:
    listed = {path for paths in api.MODULES.values() for path in paths}
    assert listed | {"index", "names", "operators"} == set(pages)
    public = {name for name in mx.__all__ if inspect.ismodule(getattr(mx, name))}
    assert public - listed - ELSEWHERE == set()


def test_every_public_name_is_on_its_page(pages: dict[str, str]) -> None:
    for path in ("nd", "gluon.nn", "optimizer", "io"):
        module = importlib.import_module(f"minimx.{path}")
        for name, _ in api.public(module):
            assert f"\n## {name}\n" in pages[path]
    assert "```python\nsoftmax(data, length=None, axis=-1," in pages["nd"]
    assert "### NDArray.asnumpy" in pages["nd"]
    assert "softmax" not in pages["sym"].split("## ")[1]


def test_every_operator_is_in_the_table(pages: dict[str, str]) -> None:
    for name in REGISTRY:
        assert f"`{name}`" in pages["operators"]
    assert "| `Pooling`" in pages["operators"]
    assert "`start`, `stop=None`, `step=1.0`, `repeat=1`, `infer_range=False`, `dtype=float32`" in pages["operators"]


def test_no_page_depends_on_where_objects_lie(pages: dict[str, str]) -> None:
    found = [f"{name}: {line}" for name, page in pages.items() for line in page.splitlines() if " at 0x" in line]
    assert found == []


def test_functions_and_classes_as_defaults_have_names() -> None:
    def draw(kind: type = float, of: object = len, key: object = lambda: 0, count: int = 1) -> None:
        pass

    assert api.signature("draw", draw) == "draw(kind=float, of=len, key=..., count=1)"


def test_what_has_no_docstring_is_an_error() -> None:
    def silent() -> None:
        pass

    with pytest.raises(ValueError, match=r"nd\.silent has no docstring"):
        api.section("silent", silent, "nd")


def test_code_that_goes_on_in_the_next_line_is_code() -> None:
    assert (
        api.prose("The sum `y[n] = a[n]\n+ b[n]`, and\n`|x| < 1` [m].") == "The sum `y[n] = a[n] + b[n]`, and\n`|x| < 1` \\[m\\]."
    )


def test_the_contents_of_a_translation_name_pages_in_its_language(tmp_path: Path) -> None:
    api.write(tmp_path, {"Operators": "算子"})
    contents = (tmp_path / "index.md").read_text(encoding="utf-8")
    assert "\n算子 <operators>\n" in contents
    assert "\nnames\n" in contents
    api.write(tmp_path)
    assert "\nnames\noperators\n" in (tmp_path / "index.md").read_text(encoding="utf-8")
    for name, title in api.COMING.items():
        assert (tmp_path / f"{name}.md").read_text(encoding="utf-8").startswith(f"# {title}\n")


def test_examples_and_signs_of_markdown() -> None:
    text = api.prose("Adds [a, b] `x[0]`.\n\n>>> 1 + 1\n2\n\nThat < this.")
    assert text == "Adds \\[a, b\\] `x[0]`.\n\n\n```python\n>>> 1 + 1\n2\n```\n\n\nThat \\< this."
