"""Chapters keep to the numbers of the style: cells, their lengths, columns, text beside them, exercises."""

from __future__ import annotations

from typing import Any

import pytest
import style_lint  # book/, see conftest.py
import translation
from style_lint import EXCEPTIONS, LIMITS, Allowed


@pytest.mark.parametrize("name", style_lint.numbered())
def test_a_chapter_keeps_to_the_numbers(name: str) -> None:
    found = style_lint.measures(translation.notebook(name))
    assert set(found) == set(LIMITS)
    faults = list(style_lint.faults(found, EXCEPTIONS.get(name[:2], {})))
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("name", translation.chapters())
def test_no_cell_of_any_page_is_too_wide_or_too_long(name: str) -> None:
    found = style_lint.measures(translation.notebook(name))
    assert found["columns"] <= LIMITS["columns"][1]
    assert found["longest"] <= LIMITS["longest"][1]


def test_exceptions_are_of_chapters_and_have_reasons() -> None:
    assert set(EXCEPTIONS) <= {name[:2] for name in style_lint.numbered()}
    assert all(set(each) <= set(LIMITS) for each in EXCEPTIONS.values())
    assert all(len(allowed.reason.split()) >= 5 for each in EXCEPTIONS.values() for allowed in each.values())


def cell(kind: str, text: str, *tags: str) -> dict[str, Any]:
    return {"cell_type": kind, "source": text, "metadata": {"tags": list(tags)}}


def test_what_is_measured() -> None:
    cells = [
        cell("markdown", "Four words of text"),
        cell("code", "a = 1\n\n\nb = 2"),
        cell("code", "long_name = 12345"),
        cell("code", "1\n2\n3\n4", "hide-cell"),
    ]
    assert style_lint.measures({"cells": cells}) == {
        "cells": 2, "median": 1.5, "longest": 4, "columns": 17, "words": 0.6, "exercises": 1,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "allowed", "fault"),
    [
        (6, None, ""),
        (7, None, "median: 7, and 4 to 6 are wanted"),
        (3, None, "median: 3, and 4 to 6 are wanted"),
        (7, 8, ""),
        (8, 8, ""),
        (9, 8, "median: 9, further from 4 to 6 than the exception says (8)"),
        (3, 3.5, "median: 3, further from 4 to 6 than the exception says (3.5)"),
        (6, 8, "median: 6 is within 4 to 6 now; take the exception out"),
    ],
)
def test_exceptions_may_only_come_nearer(value: float, allowed: float | None, fault: str) -> None:
    given = {} if allowed is None else {"median": Allowed(allowed, "a reason")}
    assert "".join(style_lint.faults({"median": value}, given)) == fault
