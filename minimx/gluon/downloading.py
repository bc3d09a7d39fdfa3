"""Getting a file from an address: `gluon.utils.download`.

What comes goes to a partial file beside the wanted one (`.name.*.part`), which takes the wanted name when it is complete, its checksum was
found right and the disk has it: a download that was cut off, or a full disk, leaves nothing that could be taken for the file. When the
connection breaks, the next try asks for the rest, if the server says that the file is still the same, or if there is a checksum to tell.
With a checksum even another call, of a program that was started again, goes on where the last one ended.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .. import files, progress
from ..base import ArgumentError, FileFormatError, MXNetError, as_sentence, shown
from ..fields import converted

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["DownloadError", "check_sha1", "download", "get"]

CHUNK = 1 << 20
SCHEMES = ("http", "https", "file")

#: So long an address may stay silent, in seconds, before it counts as failed.
PATIENCE = 30
#: Seconds before the second try; they double from one to the next.
PAUSE = 0.2
#: Answers of a server after which it may help to ask again; all others from 400 on are final.
BUSY = (408, 425, 429, 500, 502, 503, 504)


class DownloadError(MXNetError, OSError):
    """A file that could not be had from its address."""

    final = False  # trying again is no use


class RetriesError(ArgumentError, AssertionError):
    """A download that cannot be tried. (MXNet asserts: hence the second base.)"""


def sha1_digest() -> Any:
    """What SHA-1 is computed with."""
    import hashlib  # here, as `import minimx` should not take long

    return hashlib.sha1()


def check_sha1(filename: files.PathLike, sha1_hash: str) -> bool:
    """Whether the contents of a file have the SHA-1 hash `sha1_hash`, in hexadecimal digits."""
    digest = sha1_digest()
    with open(filename, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest() == sha1_hash.lower()


def download(
    url: str,
    path: files.PathLike | None = None,
    overwrite: bool = False,
    sha1_hash: str | None = None,
    retries: int = 5,
    verify_ssl: bool = True,
    *,
    quiet: bool = False,
) -> str:
    """Get the file at the address `url` (http, https or file), unless it is there already.

    **Args** `path`: what to call it, or the folder to put it into; None: the current folder; `overwrite`: get it even if it is there;
    `sha1_hash`: the SHA-1 checksum that it must have, in hexadecimal digits; a file with another one is replaced; `retries`: how often to
    try; `verify_ssl`: whether to check the certificate of the address; `quiet`: print nothing. **Returns** the file's path.
    **Raises** DownloadError (an OSError), which says what to do, if it cannot be had; FileFormatError for another checksum; OSError for a
    disk that is full. There is the whole file, the old one, or none. **Source** MXNet `gluon.utils.download`, which starts from the
    beginning after each failure, and leaves a file with a wrong checksum.
    """
    target = _target(url, path)
    if sha1_hash is not None and not isinstance(sha1_hash, str):
        raise ArgumentError(f"download: sha1_hash must be hexadecimal digits, got {shown(sha1_hash)}")
    if not verify_ssl:
        warnings.warn(
            "Unverified HTTPS request: verify_ssl=False accepts whoever answers; check what came by its sha1_hash", stacklevel=2
        )
    if not overwrite and os.path.exists(target) and (sha1_hash is None or check_sha1(target, sha1_hash)):
        return target
    try:
        get(url, target, sha1_hash, retries, verify_ssl, quiet=quiet, go_on=True)
    except DownloadError as error:
        raise DownloadError(
            f"{as_sentence(error)} If the file can be had in another way, put it at {os.path.abspath(target)}: whatever is there is not "
            "downloaded."
        ) from error
    return target


def _target(url: str, path: files.PathLike | None) -> str:
    """The path that a download is to have."""
    scheme, mark, rest = url.partition("://") if isinstance(url, str) else ("", "", "")
    if not mark:
        raise ArgumentError(f"download: url must be an address such as https://example.org/file, got {shown(url)}")
    if scheme.lower() not in SCHEMES:
        raise ArgumentError(f"download: {shown(url)}: only addresses that begin with {', '.join(SCHEMES)} can be downloaded")
    name = rest.split("?")[0].split("#")[0].rsplit("/", 1)[-1]
    if path is None:
        target = name
    else:
        target = os.path.expanduser(files.as_path(path))
        if os.path.isdir(target) or target.endswith(os.sep):
            target = os.path.join(target, name)
    if not os.path.basename(target):
        raise RetriesError(f"download: {url} ends in no file's name; give `path`")
    return target


def get(
    url: str,
    target: str,
    sha1_hash: str | None,
    retries: int,
    verify_ssl: bool = True,
    *,
    quiet: bool = False,
    go_on: bool = False,
) -> None:
    """Put the file at the address `url` at `target`, whatever is there. Raises as `download`.

    **Args** `go_on`: keep what has come when the connection fails for good, for the next call, and use what the last one has kept. Only a
    checksum makes that safe, so there must be one.
    """
    retries = converted("download", "retries", "int", retries)
    if retries < 0:
        raise RetriesError(f"download: Number of retries should be at least 0, currently it's {retries}")
    files.make_folder(os.path.dirname(os.path.abspath(target)))
    if not quiet:
        print(f"Downloading {target} from {url}...")
    with _Part(target, sha1_hash, go_on) as part:
        for attempt in range(max(retries, 1)):
            try:
                _fetch(url, part, verify_ssl, quiet)
                break
            except (DownloadError, FileFormatError) as error:
                left = retries - attempt - 1
                if left <= 0 or getattr(error, "final", False):
                    raise
                if not quiet:
                    print(f"download failed: {error}; {left} attempt{'s' * (left > 1)} left")
                time.sleep(PAUSE * 2**attempt)
        part.finish()


# ---- the partial file


class _Part:
    """The file that is being filled."""

    def __init__(self, target: str, sha1: str | None, go_on: bool) -> None:
        self.target = os.path.realpath(target)
        self.sha1 = None if sha1 is None else sha1.lower()
        self.go_on = go_on and sha1 is not None
        self.validator: str | None = None  # by which the server knows the file whose beginning this is
        self.size = 0
        self.digest = sha1_digest()
        self.spoilt = False  # not to be kept
        self.path, self.file = self._opened()
        if self.go_on:
            self._take_over()

    def _opened(self) -> tuple[str, Any]:
        """The partial file: always the same one, so that what a killed program left is used or at least removed; if another download is
        at work in that, one of its own."""
        folder, base = os.path.split(self.target)
        begin = os.path.join(folder, f".{base[:100]}.")
        path = f"{begin}{self.sha1[:12] if self.sha1 and self.go_on else 'download'}.part"
        for _ in range(3):
            file: Any = open(path, "ab+", buffering=0)  # noqa: SIM115  # closed when the `with` block around this object is left
            if _lock(file.fileno()) and _is_still(path, file.fileno()):
                return path, file
            file.close()
        path = f"{begin}{os.urandom(8).hex()}.part"
        self.go_on = False  # nobody would find it
        return path, open(path, "ab+", buffering=0)

    def _take_over(self) -> None:
        """Count what an earlier call has left."""
        self.file.seek(0)
        while chunk := self.file.read(CHUNK):
            self.digest.update(chunk)
            self.size += len(chunk)

    @property
    def right(self) -> bool:
        return self.sha1 is None or self.digest.hexdigest() == self.sha1

    @property
    def may_go_on(self) -> bool:
        """Whether the rest may be asked for alone: it is sure, or will be found out, that it belongs to the beginning."""
        return self.size > 0 and (self.sha1 is not None or self.validator is not None)

    def restart(self, validator: str | None) -> None:
        self.file.truncate(0)
        self.size, self.digest, self.validator = 0, sha1_digest(), validator

    def expect(self, count: int) -> None:
        """Raise OSError if the disk has no room for so many bytes more."""
        import shutil  # here, as `import minimx` should not take long

        free = shutil.disk_usage(os.path.dirname(self.target)).free
        if count > free:
            self._disk(OSError(errno.ENOSPC, f"No space left on device: {count} bytes are to come, but {free} are free"))

    def write(self, chunk: bytes) -> None:
        rest = memoryview(chunk)
        while rest:
            try:
                written = self.file.write(rest)
            except OSError as error:
                self._disk(error)
            self.digest.update(rest[:written])
            self.size += written
            rest = rest[written:]

    def _disk(self, error: OSError) -> None:
        """Raise what the disk says, with the name of the file."""
        self.spoilt = True
        error.filename = self.target
        raise error

    def finish(self) -> None:
        """Give the file its name, when it has reached the disk."""
        try:
            os.fsync(self.file.fileno())
            if os.path.exists(self.target):
                os.chmod(self.path, stat.S_IMODE(os.stat(self.target).st_mode))
            if os.name == "nt":  # where an open file cannot be renamed
                self.file.close()
            os.replace(self.path, self.target)
        except OSError as error:
            self._disk(error)
        files.sync_folder(os.path.dirname(self.target))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *exc: object) -> None:
        if kind is not None and not (self.go_on and self.size and not self.spoilt and self.sha1 is not None):
            with contextlib.suppress(OSError):
                os.unlink(self.path)
        self.file.close()


def _lock(descriptor: int) -> bool:
    """Whether no other download, of whatever process, has this file; until it is closed."""
    try:
        import fcntl
    except ImportError:  # Windows
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_still(path: str, descriptor: int) -> bool:
    """Whether `path` is the open file: another download may have finished and given it its name meanwhile."""
    try:
        there, own = os.stat(path), os.fstat(descriptor)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)


# ---- asking for it


def _fetch(url: str, part: _Part, verify_ssl: bool, quiet: bool) -> None:
    """Fill the partial file. Raises DownloadError if not all comes, FileFormatError if it is something else."""
    if part.go_on and part.size and part.right:
        return  # all of it was there
    begin = part.size if part.may_go_on else 0
    with _answer(url, verify_ssl, begin, part.validator) as answer:
        length = _number(answer.headers.get("Content-Length"))
        if begin and not _continues(answer, begin):
            begin = 0
        if not begin:
            part.restart(_validator(answer.headers))
        if length is not None:
            part.expect(length)
        total = None if length is None else begin + length
        with progress.Bytes(os.path.basename(part.target), total, begin, quiet) as bar:
            while True:
                with _told(url):
                    chunk = answer.read1(CHUNK)
                if not chunk:
                    break
                part.write(chunk)
                bar.add(len(chunk))
    if total is not None and part.size < total:
        raise DownloadError(f"{url}: {part.size} of {total} bytes came")
    if not part.right:
        found = part.digest.hexdigest()
        part.restart(None)
        if begin:  # the beginning may have been another file's
            _fetch(url, part, verify_ssl, quiet)
            return
        raise FileFormatError(f"{url}: what came has the SHA-1 checksum {found}, not {part.sha1}; it was not kept")


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def _validator(headers: Any) -> str | None:
    """What names the contents of an answer for certain."""
    tag: str | None = headers.get("ETag")
    if tag is not None and not tag.startswith("W/"):  # a weak one names something that is much the same
        return tag
    return headers.get("Last-Modified") if tag is None else None


def _continues(answer: Any, begin: int) -> bool:
    """Whether an answer is the rest of the file, from `begin`, rather than all of it."""
    return getattr(answer, "status", None) == 206 and str(answer.headers.get("Content-Range", "")).startswith(f"bytes {begin}-")


def _answer(url: str, verify_ssl: bool, begin: int, validator: str | None) -> Any:
    """An open answer to the question for an address, from byte `begin` if the server can do that and has the same file."""
    import ssl  # here, as they take longer to import than all of minimx
    import urllib.error
    import urllib.request

    headers = {"User-Agent": "minimx"}
    if begin:
        headers["Range"] = f"bytes={begin}-"
        if validator is not None:
            headers["If-Range"] = validator
    unchecked = None if verify_ssl else ssl._create_unverified_context()
    with _told(url):
        request = urllib.request.Request(url, headers=headers)
        try:
            return urllib.request.urlopen(request, timeout=PATIENCE, context=unchecked)
        except urllib.error.HTTPError as error:
            error.close()
            if begin and error.code == 416:  # the file is shorter than what we have of it: it has changed
                return _answer(url, verify_ssl, 0, None)
            raise _final(DownloadError(f"{url}: the server says {error.code} {error.reason}"), error.code not in BUSY) from None


@contextlib.contextmanager
def _told(url: str) -> Iterator[None]:
    """Failures of the network, as DownloadError."""
    import http.client
    import socket
    import ssl

    try:
        yield
    except DownloadError:
        raise
    except (OSError, http.client.HTTPException, ValueError) as error:  # ValueError: no address
        reason = getattr(error, "reason", None) or error
        text = f"{url}: {reason}" if str(reason) else f"{url}: {type(reason).__name__}"
        if isinstance(reason, socket.gaierror):
            raise _final(DownloadError(f"{text}; is there a network, and is the name of the machine right?")) from error
        if isinstance(reason, ssl.SSLCertVerificationError):
            advice = "SSL_CERT_FILE may name the certificates of your network; verify_ssl=False accepts whoever answers"
            raise _final(DownloadError(f"{text}; {advice}")) from error
        never = isinstance(error, ValueError) or isinstance(reason, (FileNotFoundError, IsADirectoryError, PermissionError, str))
        raise _final(DownloadError(text), never) from error


def _final(error: DownloadError, final: bool = True) -> DownloadError:
    error.final = final
    return error
