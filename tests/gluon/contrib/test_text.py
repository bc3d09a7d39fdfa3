"""WikiText: sequences, vocabularies and files are those of MXNet 1.9.1."""

from __future__ import annotations

import hashlib
import zipfile

import numpy as np
import pytest

from minimx import gluon
from minimx.base import FileFormatError, MissingFileError
from minimx.contrib.text.vocab import Vocabulary
from minimx.gluon.contrib.data import text

TRAIN = " \n = A rose = \n \n a rose is a rose \n is a rose . \n"
VALID = " a tulip is no rose . \n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with an archive of a small text, whose checksums are known."""
    contents = {"wiki.train.tokens": TRAIN, "wiki.valid.tokens": VALID, "wiki.test.tokens": ""}
    names = {"train": "wiki.train.tokens", "validation": "wiki.valid.tokens", "test": "wiki.test.tokens"}
    segments = {each: (name, hashlib.sha1(contents[name].encode()).hexdigest()) for each, name in names.items()}
    archive = tmp_path / "wikitext-2-v1.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in contents.items():
            file.writestr(f"wikitext-2/{name}", content)
    monkeypatch.setattr(text.WikiText2, "segments", segments)
    monkeypatch.setattr(text.WikiText2, "archive", (archive.name, hashlib.sha1(archive.read_bytes()).hexdigest()))
    monkeypatch.setenv("MXNET_GLUON_REPO", (tmp_path / "none").as_uri())
    return tmp_path


def test_sequences(folder):
    data = text.WikiText2(root=str(folder), seq_len=4)
    assert isinstance(data, gluon.data.Dataset)
    assert data.vocabulary.idx_to_token == ["<unk>", "<eos>", "rose", "a", "=", "is", ".", "A"]
    assert data.frequencies["rose"] == 4
    words = "= A rose = <eos> a rose is a rose <eos> is a rose . <eos>".split()  # noqa: SIM905  # as the text reads
    numbers = data.vocabulary.to_indices(words)
    assert len(data) == 3  # 15 pairs make three sequences
    for i in range(3):
        sample, label = data[i]
        assert sample.dtype == label.dtype == np.int32
        assert sample.asnumpy().tolist() == numbers[4 * i : 4 * i + 4]
        assert label.asnumpy().tolist() == numbers[4 * i + 1 : 4 * i + 5]
    other = text.WikiText2(root=folder, segment="validation", vocab=data.vocabulary, seq_len=3)
    assert other.vocabulary is data.vocabulary
    assert other[0][0].asnumpy().tolist() == data.vocabulary.to_indices(["a", "tulip", "is"])
    batch, label = next(iter(gluon.data.DataLoader(data, batch_size=2)))
    assert batch.shape == label.shape == (2, 4)


def test_files(folder, tmp_path, monkeypatch):
    with pytest.raises(FileFormatError, match=r"wiki.train.tokens has 16 tokens, which are too few for a sequence of 35"):
        text.WikiText2(root=folder)
    (folder / "wikitext-2-v1.zip").unlink()
    text.WikiText2(root=folder, seq_len=2)  # it was unpacked before
    with pytest.raises(
        MissingFileError, match=r"there is no file .*wiki.valid.tokens, .* Get .*wikitext-2/wikitext-2-v1.zip and unpack"
    ):
        text.WikiText2(root=folder, segment="validation")
    monkeypatch.setenv("MXNET_HOME", str(tmp_path / "home"))
    with pytest.raises(MissingFileError, match="wikitext-103"):
        text.WikiText103()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"segment": "dev"}, "segment is 'dev'; choose one of 'train', 'validation', 'test'"),
        ({"seq_len": 0}, "seq_len is 0"),
        ({"vocab": {"a": 1}}, "vocab must be a contrib.text.vocab.Vocabulary"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        text.WikiText2(**options)
    assert len(Vocabulary()) == 1
