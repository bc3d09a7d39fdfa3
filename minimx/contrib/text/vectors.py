"""Reading a text file of word vectors: a token and its numbers a line, as GloVe and fastText publish them.

Such files have millions of lines and many bad ones: a header, a token twice, a token with a space in it. A block of lines is first taken
for good, split by C code as a table of numbers; only where that fails are its lines looked at one by one, which says what is wrong
with which. Numbers go into an array that grows, never through a list of Python's numbers, which would take eight times the memory.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Container
from typing import Any, NamedTuple

import numpy as np

from ... import files
from ...base import ArgumentError, FileFormatError, MissingFileError, shown
from ...files import PathLike

__all__ = ["VectorFileError", "Vectors", "read_vectors"]

#: How much text makes a block, in characters.
BLOCK = 1 << 20

Numbers = np.ndarray[Any, np.dtype[np.float32]]


class VectorFileError(FileFormatError, AssertionError):
    """A line that is no token with a vector. (MXNet asserts some of it: hence the last base.)"""


class Vectors(NamedTuple):
    """What a file holds: the tokens in their order, the vector of each in a row of `numbers`, and that of the unknown token, if any.

    The first rows of `numbers`, as many as were asked for, are zeros and belong to no token.
    """

    tokens: list[str]
    numbers: Numbers
    unknown: Numbers | None


def read_vectors(
    path: PathLike, elem_delim: str, encoding: str, unknown_token: Any, rows_before: int = 1, wanted: Container[str] | None = None
) -> Vectors:
    """The vectors in the file `path`.

    **Args** `elem_delim`: what stands between the token and the numbers; `unknown_token`: whose vector is given apart; `rows_before`: how
    many rows of zeros come before those of the tokens; `wanted`: read the vectors of these tokens only. A token that comes again, and a
    vector of one number, which will be a header, are left out with a warning. **Raises** MissingFileError (a ValueError here, too) if
    there is no file; VectorFileError, with the line, for anything else.
    """
    if not isinstance(elem_delim, str) or not elem_delim:
        raise ArgumentError(f"elem_delim, what stands between a token and its numbers, must be a str, got {shown(elem_delim)}")
    name = os.path.expanduser(files.as_path(path))
    if not os.path.isfile(name):
        raise NoVectorsError(f"there is no file {name} with token vectors")
    reader = _Reader(name, elem_delim, unknown_token, rows_before, wanted)
    try:
        with open(name, encoding=encoding) as file:
            while lines := file.readlines(BLOCK):
                reader.take(lines)
    except UnicodeDecodeError as error:
        raise VectorFileError(
            f"{name}: after line {reader.line} there are bytes that are not {error.encoding} ({error.reason}); give the file's `encoding`"
        ) from None
    except LookupError as error:
        raise ArgumentError(f"encoding={shown(encoding)}: {error}") from None
    return reader.finish()


class NoVectorsError(MissingFileError, ValueError):
    """There is no such file. (MXNet raises ValueError: hence the second base.)"""


class _Reader:
    """What has been read so far."""

    def __init__(self, name: str, delimiter: str, unknown_token: Any, rows_before: int, wanted: Container[str] | None) -> None:
        self.name = name
        self.delimiter = delimiter
        self.unknown_token = unknown_token
        self.wanted = wanted
        self.line = 0  # how many have been read
        self.tokens: list[str] = []
        self.seen: set[str] = set()
        self.unknown: Numbers | None = None
        self.length: int | None = None  # of a vector, known after the first
        self.rows = rows_before  # in use, of `numbers`
        self.numbers: Numbers = np.empty((rows_before, 0), np.float32)

    def take(self, lines: list[str]) -> None:
        """Take the next lines of the file."""
        if not self._as_table(lines):
            for number, line in enumerate(lines, self.line + 1):
                self._one(number, line)
        self.line += len(lines)

    def _as_table(self, lines: list[str]) -> bool:
        """Take the lines together if all are good: a token that is new, and as many numbers as everywhere. Says whether they were."""
        parts = [line.rstrip().partition(self.delimiter) for line in lines]
        tokens = [token for token, _, _ in parts]
        fresh = set(tokens)
        if self.length is None or len(fresh) < len(tokens) or self.unknown_token in fresh or not self.seen.isdisjoint(fresh):
            return False
        between = self.length - 1
        if len(self.delimiter) > 1 or any(rest.count(self.delimiter) != between or not rest for _, _, rest in parts):
            return False
        if self.wanted is not None:
            parts = [part for part in parts if part[0] in self.wanted]
            tokens = [token for token, _, _ in parts]
        try:
            rows = [rest for _, _, rest in parts]
            table = (
                np.loadtxt(rows, np.float32, comments=None, delimiter=self.delimiter, ndmin=2, encoding=None) if rows else None
            )
        except (ValueError, TypeError):
            return False
        if table is not None:
            if table.shape != (len(tokens), self.length):
                return False
            self._add(tokens, table)
        return True

    def _one(self, number: int, line: str) -> None:
        """Take a line that may be bad."""
        token, *fields = line.rstrip().split(self.delimiter)
        where = f"{self.name}, line {number}"
        if not fields:
            raise VectorFileError(
                f"{where}: a token and numbers with {self.delimiter!r} between them are wanted, got {shown(line.rstrip())}"
            )
        is_unknown = token == self.unknown_token
        if token in self.seen or (is_unknown and self.unknown is not None):
            warnings.warn(f"{where}: the token {token!r} has a vector already; this one is left out", stacklevel=6)
            return
        if len(fields) == 1 and not is_unknown:
            warnings.warn(
                f"{where}: the token {token!r} with the single number {fields[0]} looks like a header; it is left out",
                stacklevel=6,
            )
            return
        try:
            vector = np.array([float(each) for each in fields], np.float32)
        except ValueError as error:
            raise VectorFileError(f"{where}: the token {token!r} is not followed by numbers: {error}") from None
        if self.length is None:
            self.length = len(vector)
            self.numbers = np.zeros((self.rows, self.length), np.float32)
        elif len(vector) != self.length:
            raise VectorFileError(
                f"{where}: the token {token!r} has a vector of {len(vector)} numbers, those before it have {self.length}"
            )
        if is_unknown:
            self.unknown = vector
        elif self.wanted is None or token in self.wanted:
            self._add([token], vector[None])

    def _add(self, tokens: list[str], table: Numbers) -> None:
        """Enter tokens and their vectors."""
        end = self.rows + len(tokens)
        if end > len(self.numbers):
            # In place, where the memory behind is free: no second array is needed
            self.numbers.resize((max(end, len(self.numbers) * 5 // 4), table.shape[1]), refcheck=False)
        self.numbers[self.rows : end] = table
        self.rows = end
        self.tokens += tokens
        self.seen.update(tokens)

    def finish(self) -> Vectors:
        """Everything, at the end of the file."""
        if self.length is None:
            raise VectorFileError(f"{self.name} has no token vectors")
        self.numbers.resize((self.rows, self.length), refcheck=False)
        return Vectors(self.tokens, self.numbers, self.unknown)
