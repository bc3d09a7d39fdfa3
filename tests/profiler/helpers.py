"""What the tests of the profiler ask of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

from minimx import profiler
from minimx.engine.events import Event
from minimx.profiler import control

LARGE = 300_000  # elements: too many to be computed by the thread that asks


def tables(**options: Any) -> dict[str, Any]:
    """The tables."""
    return json.loads(profiler.dumps(format="json", **options))  # type: ignore[no-any-return]


def counts(category: str = "operator") -> dict[str, int]:
    """How often each name of a category ran."""
    return {name: entry["Count"] for name, entry in tables()["Time"].get(category, {}).items()}


def events(kind: str | None = None) -> list[Event]:
    """What was recorded, of one kind."""
    contents = control.profiler.contents()
    assert contents is not None
    return [event for event in contents.events if kind in (None, event.kind)]


def trace(path: str | Path = "profile.json") -> list[dict[str, Any]]:
    """The entries of a trace file."""
    return json.loads(Path(path).read_text())["traceEvents"]  # type: ignore[no-any-return]


def script(source: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source), *arguments], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environment},
    )  # fmt: skip
