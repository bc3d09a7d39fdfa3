"""`mx.log`: loggers with coloured lines."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest

import minimx as mx


def test_lines_say_how_grave_and_where(capsys: pytest.CaptureFixture[str]) -> None:
    logger = mx.log.get_logger("test_log.screen", level=mx.log.DEBUG)
    logger.error("three %s", "words")
    logger.info("fine")
    logger.debug("details")
    logger.log(5, "less than debugging is not shown")
    lines = capsys.readouterr().err.splitlines()
    form = r"\x1b\[{}m{}\d{{4}} \d\d:\d\d:\d\d \d+ \S+test_log.py:test_lines_say_how_grave_and_where:\d+\]\x1b\[0m {}"
    for line, colour, letter, text in zip(lines, (31, 32, 34), "EID", ("three words", "fine", "details"), strict=True):
        assert re.fullmatch(form.format(colour, letter, text), line)


def test_it_gets_one_handler() -> None:
    logger = mx.log.get_logger("test_log.once")
    assert mx.log.get_logger("test_log.once", level=mx.log.DEBUG) is logger
    assert len(logger.handlers) == 1
    assert logger.level == logging.WARNING
    assert mx.log.get_logger() is logging.getLogger()


def test_a_file(tmp_path: Path) -> None:
    logger = mx.log.get_logger("test_log.file", tmp_path / "log.txt", "w", mx.log.INFO)
    logger.info("kept")
    for handler in logger.handlers:
        handler.close()
    assert (tmp_path / "log.txt").read_text() == "kept\n"


def test_the_old_name_warns() -> None:
    with pytest.warns(DeprecationWarning, match="use get_logger instead"):
        assert mx.log.getLogger("test_log.old") is logging.getLogger("test_log.old")


def test_a_level_without_a_handler_is_a_wish_to_see_messages() -> None:
    """As scripts of MXNet begin; where nothing was said, logging stays as it is."""
    script = """
import logging, sys
from minimx.log import root_logger
root_logger()
assert not logging.getLogger().handlers
logging.getLogger().setLevel(logging.DEBUG)
root_logger().info("Epoch[0] %s", "is shown")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == "INFO:root:Epoch[0] is shown\n"
