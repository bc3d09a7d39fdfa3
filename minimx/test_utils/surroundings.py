"""What a test needs around it: devices, environment variables, errors that must come, repeated attempts, silence.

`environment`, `set_default_context` and `discard_stderr` act on the whole process or thread, as their counterparts in MXNet do.
"""

from __future__ import annotations

import contextlib
import functools
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..base import ArgumentError, shown
from ..device import Context, current_context, num_gpus
from ..io import DataBatch, DataIter
from ..nd import waitall
from ..runtime import Features
from ..util import setenv

__all__ = [
    "DummyIter", "assert_exception", "default_context", "discard_stderr", "environment", "has_tvm_ops", "is_aarch64_run",
    "is_cd_run", "is_op_runnable", "list_gpus", "retry", "set_default_context",
]  # fmt: skip


# ---- devices


def default_context() -> Context:
    """The device on which tests run: the current one. **Source** MXNet `test_utils`, like all names here."""
    return current_context()


def set_default_context(ctx: Context) -> None:
    """Make `ctx` the default device of the calling thread, until it is set again."""
    Context.default_ctx = ctx


def list_gpus() -> range:
    """The numbers of the GPUs, real or simulated."""
    return range(num_gpus())


def is_op_runnable() -> bool:
    """Whether operators can be tested here: always, as none is built for a device that could be too old."""
    return True


def has_tvm_ops() -> bool:
    """Whether there are operators that TVM generated: never here."""
    return Features().is_enabled("TVM_OP")


def is_cd_run() -> bool:
    """Whether the variable CD_JOB says that a release is being tested."""
    return os.environ.get("CD_JOB") == "1"


def is_aarch64_run() -> bool:
    """Whether the machine is a 64-bit ARM."""
    return platform.machine() == "aarch64"


# ---- scopes


@contextlib.contextmanager
def environment(*args: Any) -> Iterator[None]:
    """A scope with other environment variables: `environment("NAME", value)`, or a dict of several; None removes one.

    Before they are restored, all work is waited for. What minimx reads once, when it is imported, does not follow.

    >>> with environment("MXNET_TEST", "1"):
    ...     os.environ["MXNET_TEST"]
    '1'
    """
    if len(args) == 2:
        wanted: Mapping[str, str | None] = {args[0]: args[1]}
    elif len(args) == 1 and isinstance(args[0], Mapping):
        wanted = args[0]
    else:
        raise ArgumentError("environment: a name and a value are wanted, or one dict")
    before = {name: os.environ.get(name) for name in wanted}
    try:
        for name, value in wanted.items():
            setenv(name, value)
        yield
    finally:
        waitall()
        for name, value in before.items():
            setenv(name, value)


@contextlib.contextmanager
def discard_stderr() -> Iterator[None]:
    """A scope in which what this process writes to its standard error is lost, from C code as well."""
    try:
        number = sys.stderr.fileno()
        kept = os.dup(number)
    except (AttributeError, OSError, ValueError):  # no file beneath it, as in a notebook
        yield
        return
    try:
        with open(os.devnull, "wb") as nowhere:
            sys.stderr.flush()
            os.dup2(nowhere.fileno(), number)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, number)
        os.close(kept)


# ---- errors


def assert_exception(f: Callable[..., Any], exception_type: type[BaseException], *args: Any, **kwargs: Any) -> None:
    """**Raises** AssertionError unless `f(*args, **kwargs)` raises `exception_type`; another exception comes through.

    >>> assert_exception(int, ValueError, "x")
    """
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{getattr(f, '__name__', f)} raised no {exception_type.__name__}")


def retry(n: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator for tests that depend on chance: up to `n` attempts, until one raises no AssertionError."""
    if not isinstance(n, int) or n < 1:
        raise ArgumentError(f"retry: n={shown(n)}; a number of attempts, at least 1, is wanted")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def attempt(*args: Any, **kwargs: Any) -> Any:
            for _ in range(n - 1):
                try:
                    return function(*args, **kwargs)
                except AssertionError:
                    waitall()
            return function(*args, **kwargs)

        return attempt

    return decorate


# ---- data


class DummyIter(DataIter):
    """An iterator that gives the first batch of another one for ever: what remains of a loop's time is not reading."""

    def __init__(self, real_iter: DataIter) -> None:
        super().__init__()
        self.real_iter = real_iter
        self.provide_data = real_iter.provide_data
        self.provide_label = real_iter.provide_label
        self.batch_size = real_iter.batch_size
        self.the_batch: DataBatch = next(real_iter)

    def next(self) -> DataBatch:
        """The batch."""
        return self.the_batch
