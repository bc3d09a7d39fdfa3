"""`python -m minimx COMMAND` where nobody reads to the end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import minimx.__main__ as command

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(os.name != "posix", reason="how a pipe breaks is the system's")
@pytest.mark.parametrize("arguments", [["names", "nd."], ["info"], ["--help"], ["run", "--help"]], ids=" ".join)
def test_a_closed_pipe_ends_a_command_quietly(arguments: list[str]) -> None:
    """As `python -m minimx names nd. | head -0`."""
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "minimx", *arguments], stdout=writing, stderr=subprocess.PIPE, cwd=ROOT, timeout=100, check=False
    )
    os.close(writing)
    assert done.returncode in ((0, command.UNREAD) if "--help" in arguments else (command.UNREAD,))  # argparse may not mind
    assert done.stderr == b""


def test_without_a_command_the_help_is_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["minimx"])
    assert command.main() == 2
    assert "usage: python -m minimx" in capsys.readouterr().out
