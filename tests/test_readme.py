"""README.md promises: its example prints what it says, its links and make targets exist."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text()


def test_the_example_prints_what_stands_below_it() -> None:
    code, printed = re.findall(r"```python\n(.*?)```\s*prints\s*```\n(.*?)```", TEXT, re.S)[0]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, {})
    assert out.getvalue().strip() == printed.strip()


def test_the_other_examples_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    names: dict[str, object] = {}
    for code in blocks:
        exec(code, names)


@pytest.mark.parametrize("target", ["book", "lab", "test", "bench", "clean"])
def test_make_targets(target: str) -> None:
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M)


def test_files_that_it_names_exist() -> None:
    for name in re.findall(r"`([\w/]+(?:\.\w+|/))`", TEXT):
        if "/" in name or name.endswith(".md"):
            assert (ROOT / name).exists() or "_build" in name, name


def test_architecture_is_short_and_true() -> None:
    lines = (ROOT / "ARCHITECTURE.md").read_text().splitlines()
    assert len(lines) <= 60
    for name in re.findall(r"`([\w/]+\.(?:py|md))`", "\n".join(lines)):
        assert any((ROOT / folder / name).exists() for folder in (".", "minimx")), name
