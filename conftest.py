"""What all of pytest's inputs share: tests/, the examples in docstrings, and the chapters (nbval)."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import minimx as mx

#: Not searched for examples: to import the first two is to let `import mxnet` mean minimx, the next three are second names of other
#: modules, and the others are run by MXNet's own interpreter.
collect_ignore = [
    "minimx/compat/mxnet.py", "minimx/compat/startup", "minimx/mod.py", "minimx/ndarray.py", "minimx/symbol.py",
    "tests/compat/record_names.py", "tests/record_io.py", "tests/record_model_zoo.py", "tests/roundtrip_mxnet.py",
]  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Chapters are compared with what book/nbval.cfg says, and import this checkout, however pytest was called."""
    root = Path(__file__).parent
    if getattr(config.option, "nbval_sanitize_with", "absent") is None:
        config.option.nbval_sanitize_with = str(root / "book" / "nbval.cfg")
    # Their kernels are processes that start in book/chapters.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """tests/test_tiny.py comes first: whatever is badly broken shows within seconds."""
    items.sort(key=lambda item: item.path.name != "test_tiny.py")


@pytest.fixture(autouse=True)
def names_of_examples(doctest_namespace: dict[str, object]) -> None:
    """Examples in docstrings are short: they know `mx`, `nd` and `np`."""
    doctest_namespace.update(mx=mx, nd=mx.nd, np=np)
