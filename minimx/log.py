"""`mx.log`: loggers whose lines say in colour how grave they are, and where they come from.

logger = mx.log.get_logger("training", level=mx.log.INFO)
logger.info("begins")  # I0505 00:31:30 3525 train.py:main:12] begins
"""

from __future__ import annotations

import logging
import warnings
from logging import CRITICAL, DEBUG, ERROR, INFO, NOTSET, WARNING

from .files import PathLike, as_path

__all__ = ["CRITICAL", "DEBUG", "ERROR", "INFO", "NOTSET", "WARNING", "getLogger", "get_logger"]

LETTERS = {CRITICAL: "C", ERROR: "E", WARNING: "W", INFO: "I", DEBUG: "D"}
RED, GREEN, BLUE, PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[34m", "\x1b[0m"


class _Formatter(logging.Formatter):
    """A letter for the level, time, process, file, function and line, in the level's colour; then the message."""

    def __init__(self) -> None:
        super().__init__(datefmt="%m%d %H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:
        colour = RED if record.levelno >= WARNING else GREEN if record.levelno >= INFO else BLUE
        time = self.formatTime(record, self.datefmt)
        place = f"{record.pathname}:{record.funcName}:{record.lineno}"
        return f"{colour}{LETTERS.get(record.levelno, 'U')}{time} {record.process} {place}]{PLAIN} {record.message}"


def root_logger() -> logging.Logger:
    """Python's root logger, to which a training tells how it goes.

    Many scripts begin with `logging.getLogger().setLevel(logging.DEBUG)` and no handler: then it gets one, as `logging.info` would give it.
    Where nobody has asked for messages it stays as it is, so that a later `basicConfig` does not come too late.
    """
    found = logging.getLogger()
    if found.level <= INFO and not found.handlers:
        logging.basicConfig()
    return found


def get_logger(
    name: str | None = None, filename: PathLike | None = None, filemode: str | None = None, level: int = WARNING
) -> logging.Logger:
    """The logger `name`. When it is asked for first it gets a handler: the screen, or the file `filename`, and `level`.

    **Args** `filemode`: how the file is opened, "a" by default. Without a name it is the root logger, as it is. **Source** MXNet
    `log.get_logger`.
    """
    logger = logging.getLogger(name)
    if name is None or getattr(logger, "_init_done", False):
        return logger
    handler: logging.Handler
    if filename is not None:
        handler = logging.FileHandler(as_path(filename), filemode or "a")
    else:
        handler = logging.StreamHandler()
        handler.setFormatter(_Formatter())
    logger.addHandler(handler)
    logger.setLevel(level)
    logger._init_done = True  # type: ignore[attr-defined]  # the logger is one for the whole process: so must be this
    return logger


def getLogger(
    name: str | None = None, filename: PathLike | None = None, filemode: str | None = None, level: int = WARNING
) -> logging.Logger:
    """`get_logger` under its old name, with a warning. **Source** MXNet `log.getLogger`."""
    warnings.warn("getLogger is deprecated, use get_logger instead.", DeprecationWarning, stacklevel=2)
    return get_logger(name, filename, filemode, level)
