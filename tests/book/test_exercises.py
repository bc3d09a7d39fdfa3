"""Every exercise of every chapter accepts its solution, and tells three wrong answers apart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .exercises import CHAPTERS, answers_to, cells_of

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in CHAPTERS.glob("*.ipynb"))
SLOW = {"03", "07", "08", "10", "14"}  # their exercises compile, train, measure, or wait for what hangs


def wrong_answers(chapter: str) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = answers_to(chapter).WRONG
    return found


@pytest.mark.parametrize("chapter", NAMES)
def test_every_exercise_has_three_wrong_answers(chapter: str) -> None:
    exercises = [cell.name for cell in cells_of(chapter) if cell.is_exercise]
    assert len(exercises) >= (2 if chapter.startswith("00-") else 4)  # the preface only shows what exercises are like
    assert list(wrong_answers(chapter)) == exercises
    for name, answers in wrong_answers(chapter).items():
        assert len(answers) >= 3, name


@pytest.mark.parametrize("chapter", [pytest.param(name, marks=[pytest.mark.slow] if name[:2] in SLOW else []) for name in NAMES])
@pytest.mark.timeout(300)  # training, in some chapters, before each exercise
def test_a_wrong_answer_is_told_what_is_wrong(chapter: str) -> None:
    for package in ("matplotlib", "IPython"):
        pytest.importorskip(package)
    command = [sys.executable, "-m", "tests.book.exercises", chapter]
    environment = {**os.environ, "MPLBACKEND": "agg"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    for name, answers in wrong_answers(chapter).items():
        empty, right, *wrong = (" ".join(text.split()) for text in told[name])
        assert "Not yet. Case " in empty, f"{name}, before anything is written: {empty}"
        assert right.startswith("Right: "), f"{name}, its own solution: {right}"
        for (answer, fragment), verdict in zip(answers, wrong, strict=True):
            assert verdict.startswith("Not yet. "), f"{name}: this was taken for right: {answer}"
            assert fragment in verdict, f"{name}: {answer}"
        assert len(set(wrong)) == len(wrong), f"{name}: two wrong answers are told the same"
