"""Writing a file so that a crash leaves the old one whole, and opening one to read.

New contents go to a temporary file beside the old one, which takes its name when every byte has reached the disk: whoever looks,
and whenever the machine stops, there is the old file or the new one. Used for parameters, graphs and states of a training.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import stat
from collections.abc import Iterable
from typing import BinaryIO

from .base import ArgumentError, FolderError, MissingFileError, data_dir as data_dir, near, shown

PathLike = str | os.PathLike[str]


def as_path(name: PathLike) -> str:
    """`name` as a string. Raises ArgumentError for anything but a string or a path."""
    path = os.fspath(name) if isinstance(name, os.PathLike) else name
    if not isinstance(path, str):
        raise ArgumentError(f"a file's name is wanted, a str or a path, got {shown(name)}")
    try:
        possible = path and "\0" not in path and os.fsencode(path)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise ArgumentError(f"{shown(path)} cannot be a file's name: it is empty, or has a character that no name can have")
    return path


def replace_file(name: PathLike, chunks: Iterable[bytes | memoryview]) -> None:
    """Write `chunks` one after the other as the new contents of the file `name`.

    A link is followed, and the file's permissions stay. A device or a pipe is written to directly.
    **Raises** MissingFileError if the folder is not there, FolderError for one instead of a file; OSError as the system does, and then the
    old file is as it was.
    """
    path = os.path.realpath(as_path(name))
    there = os.path.exists(path)
    if os.path.isdir(path):
        raise FolderError(f"{path} cannot be written: it is a folder; name a file in it")
    try:
        if there and (not os.path.isfile(path) or not os.access(path, os.W_OK)):
            with open(path, "wb") as file:  # raises PermissionError where that is due
                file.writelines(chunks)
            return
        folder, base = os.path.split(path)
        temporary = os.path.join(folder, f".{base[:100]}.{os.urandom(8).hex()}.tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    except FileNotFoundError:
        raise MissingFileError(f"{path} cannot be written: the folder {os.path.dirname(path)} is not there") from None
    try:
        with open(descriptor, "wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(descriptor)
        if there:
            os.chmod(temporary, stat.S_IMODE(os.stat(path).st_mode))
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = path  # the system does not say which file the disk is too full for
        raise
    sync_folder(folder)


def sync_folder(folder: str) -> None:
    """Let the new name reach the disk too, where the system can be told to."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def open_file(name: PathLike) -> tuple[BinaryIO, int]:
    """The file `name`, opened to read and to seek in, and its size. What cannot seek (a pipe) is read at once.

    **Raises** MissingFileError if it is not there, FolderError for a folder; OSError as the system does.
    """
    path = as_path(name)
    try:
        file = open(path, "rb")  # noqa: SIM115  # the caller closes it
    except (FileNotFoundError, NotADirectoryError):
        raise missing(path) from None
    except OSError:
        if not os.path.isdir(path):
            raise
        raise FolderError(f"{path} cannot be read: it is a folder; name a file in it{_some_of(path)}") from None
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode):
        return file, status.st_size
    with file:
        contents = file.read()
    return io.BytesIO(contents), len(contents)


def missing(path: str) -> MissingFileError:
    """The error for a file that is not there: how far its folders are, or which name in the last is near to its own."""
    folder, base = os.path.split(path)
    if folder and not os.path.isdir(folder):
        absent = _first_absent(folder)
        what = "is a file" if os.path.lexists(absent) else "is not there"
        return MissingFileError(f"there is no file {path}: the folder {absent} {what}")
    found = near(base, _names_in(folder), cutoff=0.8)
    return MissingFileError(f"there is no file {path}" + (f"; was {os.path.join(folder, found[0])} meant?" if found else ""))


def _first_absent(folder: str) -> str:
    """Of a folder that is not there and those that it lies in, the uppermost that is not there."""
    above = os.path.dirname(folder)
    return _first_absent(above) if above not in ("", folder) and not os.path.isdir(above) else folder


def make_folder(path: str) -> None:
    """Make the folder `path` and those that it lies in, as far as they are not there. **Raises** MissingFileError where one is a file."""
    try:
        os.makedirs(path, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise MissingFileError(f"the folder {path} cannot be made: {error.filename} is a file; name another folder") from None


MOST = 10_000  # names of a folder that an error may look at


def _names_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder or os.curdir) as entries:
            return sorted(entry.name for entry in itertools.islice(entries, MOST))
    except OSError:
        return []


def _some_of(folder: str) -> str:
    """ ", such as a.params", for an error."""
    names = [name for name in _names_in(folder) if not name.startswith(".") and os.path.isfile(os.path.join(folder, name))]
    return f", such as {names[0]}" if names else ""
