"""The build of a wheel: the benchmarks and the book are inside the package, so that `python -m minimx bench` and `python -m minimx book`
work without the source tree.

An editable install has them beside the package, as they are here.
"""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Folders of the source tree that go into the wheel, and where.
BESIDE = {"benchmarks": "minimx/benchmarks", "book/chapters": "minimx/book/chapters", "book/teaching": "minimx/book/teaching"}


class WithBenchmarksAndBook(BuildHookInterface):  # type: ignore[type-arg]  # of any builder
    """Adds them to a wheel that is no editable install."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            build_data["force_include"].update(BESIDE)
