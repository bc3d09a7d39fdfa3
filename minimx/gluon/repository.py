"""Files that MXNet's project published: trained parameters, word vectors, data sets.

They are looked for in a folder of this machine first, then in the archive beside, which a user may have brought, and then where
MXNet 1.9.1 gets them from. A file counts only if its SHA-1 checksum is right, and appears under its name only when it is whole; an
archive that was downloaded is deleted after it was unpacked. Where all that fails, the error says which file belongs where.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from typing import IO, Any

from .. import files
from ..base import FileFormatError, MissingFileError, MXNetError, as_sentence, env_text
from .downloading import check_sha1, get

__all__ = ["apache_repo_url", "fetch", "url"]

#: Where MXNet 1.9.1 gets the files; the environment variable MXNET_GLUON_REPO names another place.
apache_repo_url = "https://apache-mxnet.s3-accelerate.dualstack.amazonaws.com/"

#: How often a download is tried. A machine without a network should not have to wait long for the error that says what to do.
ATTEMPTS = 2

CHUNK = 1 << 20


def url(place: str, name: str) -> str:
    """Where the file `name` of the folder `place`, such as "gluon/models", is to be had."""
    return f"{env_text('MXNET_GLUON_REPO', apache_repo_url).rstrip('/')}/{place}/{name}"


def fetch(folder: str, name: str, sha1: str, source: str, archive_sha1: str | None = None, advice: str = "") -> str:
    """The path of the file `name` in `folder`, whose contents have the checksum `sha1`.

    **Args** `source`: the URL of the file itself, or of an archive (.zip, .tar.gz) with a file of its name; `archive_sha1`: the archive's
    checksum, if it is known; `advice`: what else a user may do, for the error. **Raises** MissingFileError if there is no such file and
    none can be downloaded; FileFormatError if one was found or downloaded that has another checksum; OSError for a full disk.
    """
    path = os.path.join(folder, name)
    archive = source.rsplit("/", 1)[-1]
    there = os.path.isfile(path)
    if there and check_sha1(path, sha1):
        return path
    packed = os.path.join(folder, archive)
    brought = archive != name and os.path.isfile(packed) and (archive_sha1 is None or check_sha1(packed, archive_sha1))
    how = (
        f"Get {source}"
        + (f" and unpack it into {folder}" if archive != name else f" into {folder}")
        + ", or copy the file from the same "
        f"folder of a machine where MXNet has used it.{' ' * bool(advice)}{advice}"
    )
    files.make_folder(folder)
    try:
        if archive == name:
            get(source, path, sha1, ATTEMPTS)
        elif brought:
            _unpack(packed, name, path, sha1)
        else:
            _from_archive(source, archive_sha1, packed, name, path, sha1)
    except (MXNetError, OSError) as error:
        if _is_local(error, folder):
            raise
        if there:
            raise FileFormatError(
                f"{path} is damaged, or has other contents: its SHA-1 checksum is not {sha1}. It could not be replaced: "
                f"{as_sentence(error)} {how}"
            ) from error
        if isinstance(error, FileFormatError):
            raise FileFormatError(f"{as_sentence(error)} {how}") from error
        raise MissingFileError(f"there is no file {path}, and it could not be downloaded: {as_sentence(error)} {how}") from error
    return path


def _is_local(error: Exception, folder: str) -> bool:
    """Whether it is this machine's disk that failed, for which a download is no remedy."""
    name = getattr(error, "filename", None)
    return isinstance(error, OSError) and not isinstance(error, MXNetError) and isinstance(name, str) and name.startswith(folder)


def _from_archive(source: str, archive_sha1: str | None, packed: str, name: str, path: str, sha1: str) -> None:
    """Download an archive, take the file out, and delete the archive."""
    temporary = f"{packed}.{os.getpid()}"
    try:
        get(source, temporary, archive_sha1, ATTEMPTS)
        _unpack(temporary, name, path, sha1)
    finally:
        with contextlib.suppress(OSError):
            os.remove(temporary)


def _unpack(packed: str, name: str, path: str, sha1: str) -> None:
    """Write the file `name` of an archive to `path`. Raises FileFormatError for a broken archive, or other contents."""
    import tarfile  # here, as few programs unpack anything
    import zipfile

    try:
        with _member(packed, name) as file:
            files.replace_file(path, _checked(file, packed, name, sha1))
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, KeyError) as error:
        raise FileFormatError(f"{packed} is no archive with a file {name}: {error}") from None


@contextlib.contextmanager
def _member(packed: str, name: str) -> Iterator[IO[bytes]]:
    """The file `name` in an archive, whatever folder of it it is in."""
    import tarfile
    import zipfile

    with contextlib.ExitStack() as stack:
        if zipfile.is_zipfile(packed):
            archive: Any = stack.enter_context(zipfile.ZipFile(packed))
            inside = [each for each in archive.namelist() if each.rsplit("/", 1)[-1] == name]
        else:
            archive = stack.enter_context(tarfile.open(packed))
            inside = [each.name for each in archive if each.isfile() and each.name.rsplit("/", 1)[-1] == name]
        if not inside:
            raise FileFormatError(f"{packed} has no file {name}")
        file = archive.open(inside[0]) if isinstance(archive, zipfile.ZipFile) else archive.extractfile(inside[0])
        yield stack.enter_context(file)


def _checked(file: IO[bytes], packed: str, name: str, sha1: str) -> Iterator[bytes]:
    """The contents of a file, chunk by chunk; raises at the end if the checksum is wrong, so that they are not kept."""
    digest = hashlib.sha1()
    while chunk := file.read(CHUNK):
        digest.update(chunk)
        yield chunk
    if digest.hexdigest() != sha1:
        raise FileFormatError(f"{name} in {packed} has the SHA-1 checksum {digest.hexdigest()}, not {sha1}")
