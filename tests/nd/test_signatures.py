"""Public functions take MXNet's parameters, by its names and in its order, so that any call of a script means the same here.

signatures.txt was recorded from MXNet 1.9.1: a section for each module, in `sym` what differs from `nd`. A function here may take more, at
the end or by keyword only.
"""

from __future__ import annotations

import inspect
import operator
import re
from pathlib import Path

import pytest

import minimx as mx

LEFT_OUT = {"out", "name", "attr", "how", "kwargs"}


def recorded() -> dict[str, list[str]]:
    """The names of the parameters, by function: `{"nd.relu": ["data"]}`."""
    found, module = {}, ""
    for line in (Path(__file__).parent / "signatures.txt").read_text().splitlines():
        if line.startswith("["):
            module = line[1:-1]
        elif line.startswith("("):
            names, functions = re.fullmatch(r"\((.*)\) (.*)", line).groups()  # type: ignore[union-attr]
            found.update({f"{module}.{function}": names.split(", ") if names else [] for function in functions.split()})
    return found


RECORDED = recorded()


def parameters(path: str) -> list[str]:
    """The names of a function's parameters that can be given by position."""
    function = operator.attrgetter(path)(mx)
    kinds = inspect.Parameter
    names = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is kinds.VAR_POSITIONAL:
            names.append("*" + name)
        elif parameter.kind is kinds.POSITIONAL_OR_KEYWORD and name not in LEFT_OUT:
            names.append(name)
    return names


@pytest.mark.parametrize("path", RECORDED)
def test_parameters(path: str) -> None:
    wanted, got = RECORDED[path], parameters(path)
    if wanted and wanted[0].startswith("*"):
        assert got[0].startswith("*"), f"{path} takes {got}, MXNet's any number"
    else:
        assert got[: len(wanted)] == wanted


def test_help_names_no_type_variables() -> None:
    """What `help()` and Shift-Tab show names classes and keywords, in every namespace and of every method."""
    shown = str(inspect.signature(mx.nd.relu)).replace("'", "")
    assert shown == "(data: NDArray | Symbol, **how: out=None, name=None, attr=None) -> NDArray | Symbol"
    both = "NDArray | Symbol"
    assert inspect.signature(mx.nd.concat).parameters["data"].annotation == both
    assert inspect.signature(mx.nd.softmax).parameters["length"].annotation == f"{both} | None"
    assert inspect.signature(mx.nd.NDArray.relu).return_annotation == both
    assert inspect.signature(mx.sym.linalg.syevd).return_annotation == f"list[{both}]"
    seen = 0
    for path in ("nd", "sym"):
        for inner in ("contrib", "image", "linalg", "op", "random", "sparse", {"nd": "NDArray", "sym": "Symbol"}[path], ""):
            names = operator.attrgetter(f"{path}.{inner}".rstrip("."))(mx)
            for name, function in inspect.getmembers(names, inspect.isfunction):
                seen += 1
                assert not re.search(r"\bT\b|Unpack|\bHow\b", str(inspect.signature(function))), f"{path}.{inner}.{name}"
    assert seen > 1500


def test_all_are_recorded() -> None:
    """As many as MXNet has, less what works on sparse arrays and on 8-bit integers."""
    assert len(RECORDED) == 418
