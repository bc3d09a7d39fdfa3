"""Published files that cannot be had: the error names them, says why, and what to do, in sentences."""

from __future__ import annotations

import socket
import urllib.request

import pytest

from minimx.base import FileFormatError, MissingFileError, MXNetError
from minimx.gluon import repository, utils

NO_NETWORK = "is there a network, and is the name of the machine right? "


@pytest.fixture
def without_network(monkeypatch):
    """Every download fails as where no name server answers."""

    def no_answer(*args, **kwargs):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", no_answer)


def fetched(folder):
    return repository.fetch(str(folder), "a.params", "0" * 40, "https://example.org/a.params", advice="Or train one.")


@pytest.mark.usefixtures("without_network")
def test_a_question_is_followed_by_no_full_stop(tmp_path):
    with pytest.raises(MissingFileError) as caught:
        fetched(tmp_path)
    assert f"{NO_NETWORK}Get https://example.org/a.params into {tmp_path}, or copy" in str(caught.value)
    assert str(caught.value).endswith(" has used it. Or train one.")
    (tmp_path / "a.params").write_text("damaged")
    with pytest.raises(FileFormatError) as caught:
        fetched(tmp_path)
    assert "It could not be replaced: https://example.org/a.params: " in str(caught.value)
    assert f"{NO_NETWORK}Get " in str(caught.value)


@pytest.mark.usefixtures("without_network")
def test_the_same_of_a_download(tmp_path):
    with pytest.raises(MXNetError, match=r"the name of the machine right[?] If the file can be had in another way, put it at "):
        utils.download("https://example.org/a.params", path=str(tmp_path / "a.params"), retries=1)
