"""Downloads: whole and checked, or not at all; what has come is used again where it is sure to be the same file's."""

from __future__ import annotations

import errno
import hashlib
import http.server
import shutil
import threading
from collections import namedtuple

import pytest

from minimx.base import FileFormatError
from minimx.gluon import downloading, utils
from minimx.gluon.downloading import DownloadError, check_sha1, download, get

CONTENTS = bytes(range(256)) * 1000
SHA1 = hashlib.sha1(CONTENTS).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers with `contents`, as the path says: /cut breaks off after 1000 bytes of the first answer, /busy fails at first."""

    contents = CONTENTS
    tag: str | None = '"1"'
    ranges = True
    asked: list[tuple[str, str | None]] = []  # noqa: RUF012  # paths and ranges; emptied for each test

    def do_GET(self):
        wanted = self.headers.get("Range")
        self.asked.append((self.path, wanted))
        first = len(self.asked) == 1
        if self.path.startswith("/missing") or (self.path.startswith("/busy") and first):
            self.send_error(404 if self.path.startswith("/missing") else 503)
            return
        begin = int(wanted[len("bytes=") : -1]) if wanted and self.ranges and self.same() else 0
        if begin > len(self.contents):
            self.send_error(416)
            return
        rest = self.contents[begin:]
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(self.contents) - 1}/{len(self.contents)}")
        if self.tag:
            self.send_header("ETag", self.tag)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest[:1000] if self.path.startswith("/cut") and first else rest)

    def same(self):
        """Whether the file is the one of which the asker has the beginning."""
        return self.headers.get("If-Range") in (None, self.tag)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(downloading, "PAUSE", 0.001)
    monkeypatch.setattr(Handler, "asked", [])
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# ---- what it is called, and when it is asked for


def test_names(server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert download(f"{server}/file.bin?x=1#y") == "file.bin"
    assert (tmp_path / "file.bin").read_bytes() == CONTENTS
    (tmp_path / "folder").mkdir()
    assert download(f"{server}/file.bin", path=tmp_path / "folder") == str(tmp_path / "folder" / "file.bin")
    new = tmp_path / "new" / "folder" / "name"
    assert utils.download(f"{server}/file.bin", str(new), sha1_hash=SHA1.upper()) == str(new)
    assert check_sha1(new, SHA1)
    copied = download((tmp_path / "file.bin").as_uri(), tmp_path / "copy", sha1_hash=SHA1)
    assert check_sha1(copied, SHA1)
    assert names(tmp_path / "folder") == ["file.bin"]


def test_what_is_there_stays(server, tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    assert download(f"{server}/a", path) == str(path)
    assert Handler.asked == []
    download(f"{server}/a", path, sha1_hash=SHA1)  # it has another checksum
    download(f"{server}/b", path, sha1_hash=SHA1)  # it has the right one
    download(f"{server}/c", path, overwrite=True)
    assert [asked for asked, _ in Handler.asked] == ["/a", "/c"]
    assert path.read_bytes() == CONTENTS


def test_what_is_said(server, tmp_path, capsys):
    download(f"{server}/file", tmp_path / "one")
    assert f"Downloading {tmp_path / 'one'} from {server}/file..." in capsys.readouterr().out
    download(f"{server}/file", tmp_path / "two", quiet=True)
    assert capsys.readouterr().out == ""
    with pytest.warns(UserWarning, match="^Unverified HTTPS request"):
        download(f"{server}/file", tmp_path / "three", verify_ssl=False)


@pytest.mark.parametrize("url", ["https://example.org/", "file.bin", 3, "ftp://example.org/file"])
def test_what_is_no_address(url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="download"):
        download(url)


def test_other_wrong_arguments(tmp_path):
    with pytest.raises(AssertionError, match="Number of retries should be at least 0, currently it's -1"):
        download("https://example.org/file", tmp_path / "file", retries=-1)
    with pytest.raises(ValueError, match="sha1_hash must be hexadecimal digits, got 3"):
        download("https://example.org/file", tmp_path / "file", sha1_hash=3)


# ---- failures


def test_final_answers_are_not_asked_for_again(server, tmp_path):
    with pytest.raises(
        OSError, match=r"missing: the server says 404 Not Found\. If the file can be had in another way, put it at"
    ):
        download(f"{server}/missing", tmp_path / "file", retries=3)
    assert len(Handler.asked) == 1
    assert names(tmp_path) == []


def test_a_busy_server_is_asked_again(server, tmp_path, capsys):
    download(f"{server}/busy", tmp_path / "file", retries=2)
    assert (tmp_path / "file").read_bytes() == CONTENTS
    assert "503" in capsys.readouterr().out
    Handler.asked.clear()
    with pytest.raises(DownloadError, match="503"):
        download(f"{server}/busy", tmp_path / "other", retries=1)


def test_another_checksum_is_not_kept(server, tmp_path):
    with pytest.raises(FileFormatError, match=f"what came has the SHA-1 checksum {SHA1}, not {'0' * 40}"):
        download(f"{server}/file", tmp_path / "file", sha1_hash="0" * 40, retries=0)
    assert names(tmp_path) == []


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/file", "file:///no/such/file", "http://no.such.host.invalid/file"])
def test_nobody_answers(url, tmp_path, monkeypatch):
    monkeypatch.setattr(downloading, "PAUSE", 0.001)
    with pytest.raises(DownloadError, match="put it at"):
        download(url, tmp_path / "file", retries=2)
    assert names(tmp_path) == []


def test_a_silent_server_is_given_up(tmp_path, monkeypatch):
    import socket

    monkeypatch.setattr(downloading, "PATIENCE", 0.1)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        with pytest.raises(DownloadError, match="timed out"):
            download(f"http://127.0.0.1:{listening.getsockname()[1]}/file", tmp_path / "file", retries=1)


# ---- going on


def test_the_next_try_asks_for_the_rest(server, tmp_path):
    download(f"{server}/cut", tmp_path / "file", retries=2)
    assert (tmp_path / "file").read_bytes() == CONTENTS
    assert Handler.asked == [("/cut", None), ("/cut", "bytes=1000-")]
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("options", [{"ranges": False}, {"tag": None}])
def test_or_for_all_of_it(server, tmp_path, monkeypatch, options):
    """If the server cannot, or nothing says that the file is the same."""
    for name, value in options.items():
        monkeypatch.setattr(Handler, name, value)
    download(f"{server}/cut", tmp_path / "file", retries=2)
    assert (tmp_path / "file").read_bytes() == CONTENTS
    assert len(Handler.asked) == 2


def test_another_call_goes_on_with_a_checksum(server, tmp_path):
    path = tmp_path / "file"
    with pytest.raises(DownloadError, match="1000 of 256000 bytes"):
        download(f"{server}/cut", path, sha1_hash=SHA1, retries=1)
    assert len(names(tmp_path)) == 1
    assert not path.exists()
    download(f"{server}/cut", path, sha1_hash=SHA1, retries=1)
    assert Handler.asked == [("/cut", None), ("/cut", "bytes=1000-")]
    assert path.read_bytes() == CONTENTS
    assert names(tmp_path) == ["file"]


def test_without_a_checksum_it_begins_anew(server, tmp_path):
    path = tmp_path / "file"
    with pytest.raises(DownloadError):
        download(f"{server}/cut", path, retries=1)
    assert names(tmp_path) == []
    download(f"{server}/cut", path, retries=1)
    assert Handler.asked == [("/cut", None), ("/cut", None)]


@pytest.mark.parametrize("length", [500, 300000])
def test_a_file_that_changed_meanwhile(server, tmp_path, monkeypatch, length):
    new = b"other" * (length // 5)
    with pytest.raises(DownloadError):
        download(f"{server}/cut", tmp_path / "file", sha1_hash=hashlib.sha1(new).hexdigest(), retries=1)
    monkeypatch.setattr(Handler, "contents", new)
    monkeypatch.setattr(Handler, "tag", '"2"')
    download(f"{server}/file", tmp_path / "file", sha1_hash=hashlib.sha1(new).hexdigest(), retries=1)
    assert (tmp_path / "file").read_bytes() == new
    assert names(tmp_path) == ["file"]


def test_several_at_once(server, tmp_path):
    """Each gets the file, whoever is first; nothing else is left."""
    errors = []

    def run():
        try:
            get(f"{server}/file", str(tmp_path / "file"), SHA1, 2, quiet=True, go_on=True)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert (tmp_path / "file").read_bytes() == CONTENTS
    assert names(tmp_path) == ["file"]


# ---- full disks


def test_a_disk_without_room(server, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: namedtuple("usage", "total used free")(100, 50, 50))
    with pytest.raises(OSError, match="No space left on device: 256000 bytes are to come, but 50 are free") as caught:
        download(f"{server}/file", tmp_path / "file", sha1_hash=SHA1, retries=3)
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(tmp_path / "file")
    assert len(Handler.asked) == 1
    assert names(tmp_path) == []


def test_a_disk_that_becomes_full(server, tmp_path, monkeypatch):
    class Full:
        """A file that takes 100 bytes."""

        def __init__(self, file):
            self.file = file
            self.room = 100

        def write(self, data):
            if not self.room:
                raise OSError(errno.ENOSPC, "No space left on device")
            written = self.file.write(data[: self.room])
            self.room -= written
            return written

        def __getattr__(self, name):
            return getattr(self.file, name)

    opened = downloading._Part._opened
    monkeypatch.setattr(downloading._Part, "_opened", lambda part: ((found := opened(part))[0], Full(found[1])))
    old = tmp_path / "file"
    old.write_text("old")
    with pytest.raises(OSError, match="No space left on device") as caught:
        download(f"{server}/file", old, overwrite=True, sha1_hash=SHA1)
    assert caught.value.filename == str(old)
    assert old.read_text() == "old"
    assert names(tmp_path) == ["file"]
