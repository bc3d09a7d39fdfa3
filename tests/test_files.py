"""Files are replaced whole or not at all."""

from __future__ import annotations

import os
import pathlib
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator

import pytest

from minimx.base import ArgumentError, FolderError, MissingFileError
from minimx.files import as_path, make_folder, open_file, replace_file

posix = pytest.mark.skipif(os.name != "posix", reason="permissions, links and signals of POSIX")


def test_replace(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "file"
    replace_file(file, [b"one", memoryview(b"two")])
    assert file.read_bytes() == b"onetwo"
    replace_file(str(file), iter([b"three"]))
    assert file.read_bytes() == b"three"
    assert os.listdir(tmp_path) == ["file"]


def test_relative_name(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    replace_file("file", [b"x"])
    assert (tmp_path / "file").read_bytes() == b"x"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_failure_leaves_the_old_file(tmp_path: pathlib.Path, error: type[BaseException]) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"half"
        raise error

    file = tmp_path / "file"
    for before in (None, b"old"):
        if before is not None:
            file.write_bytes(before)
        with pytest.raises(error):
            replace_file(file, chunks())
        assert (file.read_bytes() if file.exists() else None) == before
        assert len(os.listdir(tmp_path)) == (before is not None)


@posix
def test_killed_while_writing(tmp_path: pathlib.Path) -> None:
    """A process that dies between two chunks leaves the old contents under the name."""
    file = tmp_path / "file"
    file.write_bytes(b"old")
    program = f"""
import os, signal
from minimx.files import replace_file
def chunks():
    yield b"new" * 100_000
    os.kill(os.getpid(), signal.SIGKILL)
replace_file({str(file)!r}, chunks())
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == -signal.SIGKILL
    assert file.read_bytes() == b"old"


@posix
def test_permissions_and_links(tmp_path: pathlib.Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    old = os.umask(0o027)
    try:
        replace_file(file, [b"x"])
    finally:
        os.umask(old)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    file.chmod(0o604)
    link.symlink_to("file")
    replace_file(link, [b"y"])
    assert link.is_symlink()
    assert file.read_bytes() == b"y"
    assert stat.S_IMODE(file.stat().st_mode) == 0o604


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_file(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"old")
    file.chmod(0o444)
    with pytest.raises(PermissionError):
        replace_file(file, [b"new"])
    assert file.read_bytes() == b"old"


@posix
def test_device_and_folder(tmp_path: pathlib.Path) -> None:
    replace_file(os.devnull, [b"x"])
    assert not os.path.isfile(os.devnull)
    with pytest.raises(FolderError, match=r"cannot be written: it is a folder; name a file in it$"):
        replace_file(tmp_path, [b"x"])
    with pytest.raises(IsADirectoryError, match=r"cannot be read: it is a folder; name a file in it$"):
        open_file(tmp_path)
    (tmp_path / "a.params").write_bytes(b"")
    with pytest.raises(FolderError, match=r"name a file in it, such as a\.params$"):
        open_file(tmp_path)


def test_missing(tmp_path: pathlib.Path) -> None:
    with pytest.raises(MissingFileError, match=r"the folder .*none is not there"):
        replace_file(tmp_path / "none" / "file", [b"x"])
    with pytest.raises(FileNotFoundError, match=r"there is no file .*none$"):
        open_file(tmp_path / "none")
    (tmp_path / "net-0001.params").write_bytes(b"")
    with pytest.raises(MissingFileError, match=r"net-0000\.params; was .*net-0001\.params meant\?$"):
        open_file(tmp_path / "net-0000.params")
    with pytest.raises(MissingFileError, match=r"there is no file .*: the folder .*none is not there$"):
        open_file(tmp_path / "none" / "deeper" / "file")
    with pytest.raises(MissingFileError, match=r"there is no file .*: the folder .*net-0001\.params is a file$"):
        open_file(tmp_path / "net-0001.params" / "file")


def test_make_folder(tmp_path: pathlib.Path) -> None:
    for _ in range(2):
        make_folder(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").write_bytes(b"")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(MissingFileError, match=r"the folder .*file.* cannot be made: .* is a file; name another folder$"):
            make_folder(str(place))


def test_long_name(tmp_path: pathlib.Path) -> None:
    """The temporary file's name is not longer than the system allows where the file's own is not."""
    file = tmp_path / ("x" * 250)
    replace_file(file, [b"x"])
    assert os.listdir(tmp_path) == [file.name]


def test_as_path() -> None:
    assert as_path("x") == "x"
    assert as_path(pathlib.PurePosixPath("a/b")) == "a/b"
    for bad in (b"x", 3, None):
        with pytest.raises(ArgumentError, match="a str or a path, got"):
            as_path(bad)


def test_open(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"abc")
    opened, size = open_file(file)
    with opened:
        assert (opened.read(), size) == (b"abc", 3)


def test_names_that_no_file_can_have() -> None:
    for name in ("", "a\0b", "\udcff\ud800", b"bytes", None, 3):
        with pytest.raises(ArgumentError, match="file's name"):
            as_path(name)  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform == "win32", reason="has no bound for the size of files")
def test_a_full_disk(tmp_path: pathlib.Path) -> None:
    """The error names the file, which is as it was, and nothing is left beside it."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); "
        "from minimx.files import replace_file; replace_file(sys.argv[1], [bytes(5000)])"
    )
    answer = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert f"File too large: '{path}'" in answer.stderr
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
