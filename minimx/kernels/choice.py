"""Whether faster kernels than the operators' own are used: the switch MINIMX_KERNELS. Book: chapter 5."""

from __future__ import annotations

from ..base import ArgumentError, env_choice, shown

CHOICES = ("auto", "numpy")

_choice = env_choice("MINIMX_KERNELS", "auto", CHOICES)


def set(choice: str) -> str:
    """Choose the kernels from now on: "auto", the fastest that are installed, or "numpy", the operators' own. Returns the choice before.

    It is for the whole process, and for programs that are compiled already, too.
    """
    global _choice
    if not isinstance(choice, str) or choice not in CHOICES:
        raise ArgumentError(f"kernels {shown(choice)}: choose one of {', '.join(CHOICES)}")
    before, _choice = _choice, choice
    return before


def enabled() -> bool:
    """Whether other kernels than the operators' own may be used."""
    return _choice != "numpy"
