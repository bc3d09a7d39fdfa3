"""Vectors of tokens: files are read as MXNet 1.9.1 reads them, and what it stumbles over is an error or a warning that says where."""

from __future__ import annotations

import hashlib
import zipfile
from collections import Counter

import numpy as np
import pytest

import minimx as mx
from minimx import nd
from minimx.base import FileFormatError, MissingFileError
from minimx.contrib.text import embedding, vectors
from minimx.contrib.text.vocab import Vocabulary

VOCABULARY = Vocabulary(Counter(["a", "b", "b", "c", "c", "c", "some_word$"]), reserved_tokens=["<pad>"])


@pytest.fixture
def file(tmp_path):
    """Writes a file of vectors; returns its path."""

    def write(text, name="vectors.txt", encoding="utf8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write


ABC = "a\t0.1\t0.2\t0.3\nb\t0.4\t0.5\t0.6\n"


def values(made):
    return made.idx_to_vec.asnumpy().astype(float).round(4).tolist()


def test_a_file(file):
    made = embedding.CustomEmbedding(file(ABC), "\t")
    assert (len(made), made.vec_len) == (3, 3)
    assert made.idx_to_token == ["<unk>", "a", "b"]
    assert made.token_to_idx == {"<unk>": 0, "a": 1, "b": 2}
    np.testing.assert_array_equal(made.idx_to_vec.asnumpy(), np.array([[0, 0, 0], [0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], np.float32))
    assert made.get_vecs_by_tokens("A").asnumpy().tolist() == [0, 0, 0]
    assert made.get_vecs_by_tokens("A", lower_case_backup=True).shape == (3,)
    found = made.get_vecs_by_tokens(["b", "B", "x"], lower_case_backup=True)
    np.testing.assert_array_equal(found.asnumpy(), made.idx_to_vec.asnumpy()[[2, 2, 0]])
    assert made.get_vecs_by_tokens([]).shape == (0, 3)


def test_the_unknown_token(file):
    path = file(ABC + "<unk1>\t1.5\t2.5\t3.5\n")
    assert values(embedding.CustomEmbedding(path, "\t", init_unknown_vec=nd.ones))[0] == [1, 1, 1]
    made = embedding.CustomEmbedding(path, "\t", init_unknown_vec=nd.ones, unknown_token="<unk1>")
    assert made.idx_to_token == ["<unk1>", "a", "b"]
    assert values(made)[0] == [1.5, 2.5, 3.5]
    assert made.get_vecs_by_tokens("nothing").asnumpy().tolist() == [1.5, 2.5, 3.5]


def test_reserved_tokens_get_vectors(file):
    made = embedding.CustomEmbedding(file(ABC), "\t", init_unknown_vec=nd.ones, reserved_tokens=["<pad>", "b"])
    assert made.idx_to_token == ["<unk>", "<pad>", "b", "a"]
    assert values(made) == [[1, 1, 1], [1, 1, 1], [0.4, 0.5, 0.6], [0.1, 0.2, 0.3]]


def test_with_a_vocabulary(file):
    made = embedding.CustomEmbedding(file(ABC), "\t", init_unknown_vec=nd.ones, vocabulary=VOCABULARY)
    assert made.idx_to_token == VOCABULARY.idx_to_token == ["<unk>", "<pad>", "c", "b", "a", "some_word$"]
    assert made.reserved_tokens == ["<pad>"]
    assert values(made) == [[1, 1, 1], [1, 1, 1], [1, 1, 1], [0.4, 0.5, 0.6], [0.1, 0.2, 0.3], [1, 1, 1]]
    only = Vocabulary(unknown_token="a")
    assert values(embedding.CustomEmbedding(file(ABC), "\t", vocabulary=only)) == [[0, 0, 0]]


def test_several_side_by_side(file):
    one = embedding.CustomEmbedding(file(ABC), "\t", init_unknown_vec=nd.ones)
    two = embedding.CustomEmbedding(file("a 1 2\nc 3 4\n", "two"))
    made = embedding.CompositeEmbedding(VOCABULARY, [one, two])
    assert made.vec_len == 5
    assert values(made) == [
        [1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 3, 4], [0.4, 0.5, 0.6, 0, 0], [0.1, 0.2, 0.3, 1, 2], [1, 1, 1, 0, 0]
    ]  # fmt: skip
    assert values(embedding.CompositeEmbedding(VOCABULARY, one)) == [row[:3] for row in values(made)]
    for arguments in ((VOCABULARY, []), (VOCABULARY, "glove"), ("words", one)):
        with pytest.raises(AssertionError, match="CompositeEmbedding"):
            embedding.CompositeEmbedding(*arguments)


def test_other_vectors(file):
    made = embedding.CustomEmbedding(file(ABC), "\t")
    made.update_token_vectors(["b", "a"], nd.array([[1, 2, 3], [4, 5, 6]]))
    assert values(made) == [[0, 0, 0], [4, 5, 6], [1, 2, 3]]
    for tokens, new in (("<unk>", [7, 7, 7]), (["<unk>"], [7, 7, 7]), ("<unk>", [[7, 7, 7]])):
        made.update_token_vectors(tokens, nd.array(new))
    assert values(made)[0] == [7, 7, 7]
    with pytest.raises(
        ValueError, match=r"the token 'x' is not in this embedding. To change the vector that unknown tokens get, name"
    ):
        made.update_token_vectors("x", nd.zeros(3))
    for tokens, new in (("a", nd.zeros((2, 3))), ("a", nd.zeros(1)), (["a", "b"], nd.zeros(3)), ("a", [1, 2, 3])):
        with pytest.raises(AssertionError, match="update_token_vectors: new_vectors"):
            made.update_token_vectors(tokens, new)


# ---- files with faults


def test_what_is_left_out_with_a_warning(file):
    text = "2 3\na 1 2 3\nb 4 5 6\na 7 8 9\n"
    with pytest.warns(UserWarning, match="is left out") as caught:
        made = embedding.CustomEmbedding(file(text))
    assert [str(each.message).split(", line ")[1] for each in caught] == [
        "1: the token '2' with the single number 3 looks like a header; it is left out",
        "4: the token 'a' has a vector already; this one is left out",
    ]
    assert all(each.filename == __file__ for each in caught)
    assert values(made) == [[0, 0, 0], [1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1 2\nb\n", "line 2: a token and numbers with ' ' between them are wanted, got 'b'"),
        ("a 1 2\n\nb 1 2\n", "line 2: a token and numbers"),
        ("a 1 2\nb 1 2 3\n", "line 2: the token 'b' has a vector of 3 numbers, those before it have 2"),
        ("a 1 2\nb 1 two\n", "line 2: the token 'b' is not followed by numbers: could not convert string to float: 'two'"),
        ("a 1  2\n", "line 1: the token 'a' is not followed by numbers"),
        (". . . 1 2\n", r"line 1: the token '\.' is not followed by numbers"),
        ("", "has no token vectors"),
    ],
)
def test_what_is_no_file_of_vectors(file, text, message):
    for error in (AssertionError, ValueError, FileFormatError):
        with pytest.raises(error, match=message):
            embedding.CustomEmbedding(file(text))


def test_faults_deep_in_a_large_file(file, monkeypatch):
    """Blocks are taken as tables; one with a fault line by line."""
    monkeypatch.setattr(vectors, "BLOCK", 1 << 12)
    numbers = np.random.RandomState(0).normal(size=(3000, 4)).astype(np.float32)
    lines = [f"w{i} " + " ".join(map(repr, row)) for i, row in enumerate(numbers.tolist())]
    made = embedding.CustomEmbedding(file("\n".join(lines)))
    np.testing.assert_array_equal(made.idx_to_vec.asnumpy()[1:], numbers)
    some = Vocabulary(Counter(["w7", "w2999", "w1500", "x"]))
    picked = embedding.CustomEmbedding(file("\n".join(lines)), vocabulary=some)
    np.testing.assert_array_equal(picked.get_vecs_by_tokens(["w7", "w2999", "w1500"]).asnumpy(), numbers[[7, 2999, 1500]])
    repeated = [*lines, lines[5]]
    with pytest.warns(UserWarning, match="line 3001: the token 'w5' has a vector already"):
        made = embedding.CustomEmbedding(file("\n".join(repeated)))
    assert len(made) == 3001
    lines[2500] += " 1"
    with pytest.raises(FileFormatError, match="line 2501: the token 'w2500' has a vector of 5 numbers"):
        embedding.CustomEmbedding(file("\n".join(lines)))
    lines[2500] = "w2500 1 2 3 1_000"  # which Python takes for a number, and MXNet with it
    assert values(embedding.CustomEmbedding(file("\n".join(lines))))[2501] == [1, 2, 3, 1000]


def test_encodings_and_delimiters(file):
    path = file("Größe 1 2\nnaïve\xa0 3 4\n", encoding="latin1")
    with pytest.raises(FileFormatError, match=r"after line 0 there are bytes that are not utf-8 .*; give the file's `encoding`"):
        embedding.CustomEmbedding(path)
    assert embedding.CustomEmbedding(path, encoding="latin1").idx_to_token[1:] == ["Größe", "naïve\xa0"]
    assert values(embedding.CustomEmbedding(file("a, b::1::2\n"), "::"))[1] == [1, 2]
    with pytest.raises(ValueError, match="elem_delim"):
        embedding.CustomEmbedding(path, "")
    with pytest.raises(ValueError, match="encoding='klingon'"):
        embedding.CustomEmbedding(path, encoding="klingon")
    for error in (MissingFileError, ValueError):
        with pytest.raises(error, match=r"there is no file nosuch.txt"):
            embedding.CustomEmbedding("nosuch.txt")
    with pytest.raises(AssertionError, match=r"vocabulary must be a contrib.text.vocab.Vocabulary, got 'words'"):
        embedding.CustomEmbedding(file(ABC), "\t", vocabulary="words")


# ---- files that were published


def test_names():
    assert len(embedding.get_pretrained_file_names("fasttext")) == 327
    assert len(embedding.get_pretrained_file_names("glove")) == 10
    assert {"fasttext", "glove"} <= set(embedding.get_pretrained_file_names())
    with pytest.raises(KeyError, match="there is no embedding 'unknown"):
        embedding.get_pretrained_file_names("unknown$$")
    with pytest.raises(KeyError, match=r"GloVe: there is no pretrained file 'glove.txt'; there are glove.42B.300d.txt, "):
        embedding.create("glove", pretrained_file_name="glove.txt")
    with pytest.raises(ValueError, match="no token embedding is called 'word2vec'"):
        embedding.create("word2vec")


@pytest.mark.parametrize(
    ("name", "file_name", "archive"),
    [("glove", "glove.6B.50d.txt", "glove.6B.zip"), ("glove", "glove.twitter.27B.25d.txt", "glove.twitter.27B.zip"),
     ("fasttext", "wiki.simple.vec", "wiki.simple.zip")],
)  # fmt: skip
def test_a_published_file_that_is_not_there(name, file_name, archive, tmp_path, monkeypatch):
    monkeypatch.setenv("MXNET_GLUON_REPO", (tmp_path / "none").as_uri())
    with pytest.raises(MissingFileError) as caught:
        embedding.create(name, pretrained_file_name=file_name, embedding_root=tmp_path)
    assert f"there is no file {tmp_path / name / file_name}, and it could not be downloaded" in str(caught.value)
    assert f"Get {(tmp_path / 'none').as_uri()}/gluon/embeddings/{name}/{archive} and unpack it into {tmp_path / name}" in str(
        caught.value
    )
    monkeypatch.setenv("MXNET_HOME", str(tmp_path / "home"))
    with pytest.raises(MissingFileError, match=str(tmp_path / "home" / "embeddings" / name)):
        embedding.create(name, pretrained_file_name=file_name)


def test_published_files(tmp_path, monkeypatch):
    text = b"<unk> 9 9\nhello 1 2\nworld 3 4\n"
    digest = hashlib.sha1(text).hexdigest()
    folder = tmp_path / "glove"
    folder.mkdir()
    monkeypatch.setitem(embedding.GLOVE_FILES, "glove.6B.50d.txt", digest)
    with zipfile.ZipFile(folder / "glove.6B.zip", "w") as archive:
        archive.writestr("glove.6B.50d.txt", text)
    monkeypatch.setitem(
        embedding.GLOVE_ARCHIVES, "glove.6B.zip", hashlib.sha1((folder / "glove.6B.zip").read_bytes()).hexdigest()
    )
    made = embedding.create("GloVe", pretrained_file_name="glove.6B.50d.txt", embedding_root=str(tmp_path))
    assert made.idx_to_token == ["<unk>", "hello", "world"]
    assert values(made) == [[9, 9], [1, 2], [3, 4]]
    (folder / "glove.6B.zip").unlink()
    some = Vocabulary(Counter(["world", "peace"]))
    made = embedding.GloVe("glove.6B.50d.txt", tmp_path, vocabulary=some)
    assert values(made) == [[9, 9], [9, 9], [3, 4]]
    (folder / "glove.6B.50d.txt").write_bytes(text[:-5])
    monkeypatch.setenv("MXNET_GLUON_REPO", (tmp_path / "none").as_uri())
    with pytest.raises(FileFormatError, match=f"its SHA-1 checksum is not {digest}. It could not be replaced"):
        embedding.GloVe("glove.6B.50d.txt", tmp_path)


def test_a_class_of_ones_own(tmp_path, monkeypatch):
    """As MXNet's documentation shows it: the file comes alone, not in an archive."""
    text = b"hello 1 2 3 4 5\nworld 6 7 8 9 10\n"

    class Test(embedding._TokenEmbedding):
        pretrained_file_name_sha1 = {"embedding_test.vec": hashlib.sha1(text).hexdigest()}  # noqa: RUF012  # as users write it

        def __init__(self, embedding_root="embeddings", init_unknown_vec=nd.zeros, **kwargs):
            Test._check_pretrained_file_names("embedding_test.vec")
            super().__init__(**kwargs)
            path = Test._get_pretrained_file(embedding_root, "embedding_test.vec")
            self._load_embedding(path, " ", init_unknown_vec)

    monkeypatch.setattr(embedding._registry, "classes", dict(embedding._registry.classes))
    embedding.register(Test)
    published = tmp_path / "gluon" / "embeddings" / "test"
    published.mkdir(parents=True)
    (published / "embedding_test.vec").write_bytes(text)
    monkeypatch.setenv("MXNET_GLUON_REPO", tmp_path.as_uri())
    made = embedding.create("test", embedding_root=str(tmp_path / "root"))
    assert made.token_to_idx["world"] == 2
    assert values(made) == [[0] * 5, [1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]
    assert (tmp_path / "root" / "test" / "embedding_test.vec").read_bytes() == text


def test_as_the_weight_of_a_layer(file):
    made = embedding.CustomEmbedding(file(ABC), "\t")
    layer = mx.gluon.nn.Embedding(*made.idx_to_vec.shape)
    layer.initialize()
    layer.weight.set_data(made.idx_to_vec)
    assert layer(nd.array(made.to_indices(["b", "x"]))).asnumpy().astype(float).round(4).tolist() == [[0.4, 0.5, 0.6], [0, 0, 0]]
