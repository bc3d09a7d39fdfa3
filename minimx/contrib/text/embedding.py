"""`mx.contrib.text.embedding`: vectors of tokens, from files that others trained or from your own.

An embedding is a vocabulary whose tokens have vectors, the rows of `idx_to_vec`, in the order of their numbers: what `gluon.nn.Embedding`
takes as its weight. GloVe and FastText read files that MXNet's project published, CustomEmbedding any file, CompositeEmbedding puts
vectors of several embeddings side by side. Where a vocabulary is given, only its tokens are read, and they keep its numbers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

import numpy as np

from ... import files, nd
from ...base import ArgumentError, UnknownNameError, shown
from ...files import PathLike
from ...gluon import repository
from ...nd import NDArray
from ...registry import Registry
from ...vocabulary import UNKNOWN_IDX, Vocabulary, VocabularyError
from .checksums import FASTTEXT_ARCHIVES, FASTTEXT_FILES, GLOVE_ARCHIVES, GLOVE_FILES
from .vectors import read_vectors

__all__ = ["CompositeEmbedding", "CustomEmbedding", "FastText", "GloVe", "create", "get_pretrained_file_names", "register"]

Class = TypeVar("Class", bound=type)


class _TokenEmbedding(Vocabulary):
    """The base of all embeddings. Keywords go to Vocabulary: `unknown_token`, `reserved_tokens`, `counter`.

    A subclass that is registered has the checksums of its files in `pretrained_file_name_sha1`, and those of the archives that they come
    in, if they do, in `pretrained_archive_name_sha1`. **Source** MXNet `contrib.text.embedding._TokenEmbedding`.
    """

    pretrained_file_name_sha1: ClassVar[Mapping[str, str]] = {}
    pretrained_archive_name_sha1: ClassVar[Mapping[str, str]] = {}

    _vec_len: int | None = None
    _idx_to_vec: NDArray | None = None

    @property
    def vec_len(self) -> Any:
        """How many numbers a vector has."""
        return self._vec_len

    @property
    def idx_to_vec(self) -> Any:
        """The vectors, (tokens, vec_len), by the numbers of their tokens. Row 0 is what an unknown token gets."""
        return self._idx_to_vec

    def get_vecs_by_tokens(self, tokens: Any, lower_case_backup: bool = False) -> NDArray:
        """The vector (vec_len,) of a token, or those (n, vec_len) of a list of tokens; that of the unknown token for unknown ones.

        **Args** `lower_case_backup`: look a token that is not there up in lower case.
        """
        single = not isinstance(tokens, list)
        indices = [self._index(token, lower_case_backup) for token in ([tokens] if single else tokens)]
        vectors = self._rows(indices)
        return vectors[0] if single else vectors

    def _index(self, token: Any, lower_case_backup: bool) -> int:
        found = self._token_to_idx.get(token)
        if found is None and lower_case_backup:
            found = self._token_to_idx.get(token.lower())
        return UNKNOWN_IDX if found is None else found

    def _rows(self, indices: list[int]) -> NDArray:
        vectors = self._checked_vectors()
        if not indices:
            return nd.array(np.empty((0, self._vec_len or 0), np.float32), ctx=vectors.context)
        return nd.take(vectors, nd.array(indices, ctx=vectors.context, dtype="int64"), axis=0)

    def _checked_vectors(self) -> NDArray:
        if self._idx_to_vec is None:
            raise VocabularyError(f"{type(self).__name__}: this embedding has no vectors yet; they are loaded when it is made")
        return self._idx_to_vec

    def update_token_vectors(self, tokens: Any, new_vectors: NDArray) -> None:
        """Give tokens other vectors.

        **Shapes** `new_vectors` (n, vec_len) for a list of n tokens, (vec_len,) will do for one. **Raises** AssertionError (a ValueError
        here, too) for another shape; ValueError for a token that is not there: the unknown one is called by its name.
        """
        vectors = self._checked_vectors()
        listed = tokens if isinstance(tokens, list) else [tokens]
        if not isinstance(new_vectors, NDArray):
            raise VocabularyError(f"update_token_vectors: new_vectors must be an NDArray, got {shown(new_vectors)}")
        values = new_vectors.reshape((1, -1)) if new_vectors.ndim == 1 and len(listed) == 1 else new_vectors
        if values.shape != (len(listed), self._vec_len):
            raise VocabularyError(
                f"update_token_vectors: new_vectors has shape {new_vectors.shape}; {len(listed)} tokens with vectors of {self._vec_len} "
                f"numbers need {(len(listed), self._vec_len)}"
            )
        for token in listed:
            if token not in self._token_to_idx:
                raise ArgumentError(
                    f"update_token_vectors: the token {shown(token)} is not in this embedding. To change the vector that unknown tokens "
                    f"get, name the unknown token, {shown(self.unknown_token)}"
                )
        if listed:
            vectors[nd.array([self._token_to_idx[token] for token in listed], ctx=vectors.context, dtype="int64")] = values

    # ---- loading; subclasses of users call these, by MXNet's names

    def _load_embedding(
        self,
        pretrained_file_path: PathLike,
        elem_delim: str,
        init_unknown_vec: Callable[..., Any],
        encoding: str = "utf8",
        vocabulary: Vocabulary | None = None,
    ) -> None:
        """Read the tokens and vectors of a file; with `vocabulary` those of its tokens only, and take over its numbers."""
        _check_vocabulary(vocabulary)
        wanted = None if vocabulary is None else set(vocabulary.idx_to_token)
        before = len(self)
        found = read_vectors(pretrained_file_path, elem_delim, encoding, self.unknown_token, before, wanted)
        numbers, tokens = found.numbers, found.tokens
        self._vec_len = numbers.shape[1]
        unknown = init_unknown_vec(shape=self._vec_len) if found.unknown is None else found.unknown
        numbers[:before] = unknown.asnumpy() if isinstance(unknown, NDArray) else unknown
        if before > 1:
            # Tokens that have numbers already, reserved ones, may have vectors in the file
            known = [(row, self._token_to_idx[token]) for row, token in enumerate(tokens, before) if token in self._token_to_idx]
            for row, index in known:
                numbers[index] = numbers[row]
            numbers = np.delete(numbers, [row for row, _ in known], axis=0)
            tokens = [token for token in tokens if token not in self._token_to_idx]
        self._token_to_idx.update(zip(tokens, range(before, before + len(tokens))))
        self._idx_to_token += tokens
        self._idx_to_vec = nd.from_numpy(numbers, zero_copy=True)
        if vocabulary is not None:
            self._build_embedding_for_vocabulary(vocabulary)

    def _build_embedding_for_vocabulary(self, vocabulary: Vocabulary | None) -> None:
        """Keep the tokens of `vocabulary`, with its numbers, and forget the others."""
        _check_vocabulary(vocabulary)
        if vocabulary is not None:
            self._set_idx_to_vec_by_embeddings([self], len(vocabulary), vocabulary.idx_to_token)
            self._index_tokens_from_vocabulary(vocabulary)

    def _index_tokens_from_vocabulary(self, vocabulary: Vocabulary) -> None:
        self._token_to_idx = dict(vocabulary.token_to_idx)
        self._idx_to_token = list(vocabulary.idx_to_token)
        self._unknown_token = vocabulary.unknown_token
        reserved = vocabulary.reserved_tokens
        self._reserved_tokens = None if reserved is None else list(reserved)

    def _set_idx_to_vec_by_embeddings(self, token_embeddings: list[Any], vocab_len: int, vocab_idx_to_token: list[Any]) -> None:
        """Put the vectors that `token_embeddings` have of the tokens side by side; the first token is the unknown one."""
        parts = []
        for embedding in token_embeddings:
            rows = [UNKNOWN_IDX, *(embedding._index(token, False) for token in vocab_idx_to_token[1:vocab_len])]
            parts.append(embedding._rows(rows))
        self._idx_to_vec = parts[0] if len(parts) == 1 else nd.concat(*parts, dim=1)
        self._vec_len = self._idx_to_vec.shape[1]

    # ---- files that were published

    @classmethod
    def _get_download_file_name(cls, pretrained_file_name: str) -> str:
        """The archive that a file comes in; the file's own name if it comes alone."""
        return pretrained_file_name

    @classmethod
    def _get_pretrained_file_url(cls, pretrained_file_name: str) -> str:
        return repository.url(f"gluon/embeddings/{cls.__name__.lower()}", cls._get_download_file_name(pretrained_file_name))

    @classmethod
    def _get_pretrained_file(cls, embedding_root: PathLike | None, pretrained_file_name: str) -> str:
        """The path of a file that was published, after its checksum was found right. Raises as `repository.fetch`."""
        root = os.path.join(files.data_dir(), "embeddings") if embedding_root is None else embedding_root
        archive = cls._get_download_file_name(pretrained_file_name)
        return repository.fetch(
            os.path.join(os.path.expanduser(files.as_path(root)), cls.__name__.lower()),
            pretrained_file_name,
            cls.pretrained_file_name_sha1[pretrained_file_name],
            cls._get_pretrained_file_url(pretrained_file_name),
            cls.pretrained_archive_name_sha1.get(archive),
        )

    @classmethod
    def _check_pretrained_file_names(cls, pretrained_file_name: str) -> None:
        """Raises KeyError unless the class has such a file."""
        if pretrained_file_name not in cls.pretrained_file_name_sha1:
            raise UnknownNameError(
                f"{cls.__name__}: there is no pretrained file {shown(pretrained_file_name)}; there are "
                f"{', '.join(cls.pretrained_file_name_sha1)}"
            )


def _check_vocabulary(vocabulary: Any) -> None:
    if vocabulary is not None and not isinstance(vocabulary, Vocabulary):
        raise VocabularyError(f"vocabulary must be a contrib.text.vocab.Vocabulary, got {shown(vocabulary)}")


_registry: Registry[_TokenEmbedding] = Registry(_TokenEmbedding, "token embedding")


def register(embedding_cls: Class) -> Class:
    """Class decorator: let `create` find a subclass of `_TokenEmbedding` by its name."""
    return _registry.register(embedding_cls)


def create(embedding_name: str, **kwargs: Any) -> _TokenEmbedding:
    """The embedding of the class called `embedding_name`, in any case of letters; the other arguments go to the class.

    **Raises** ArgumentError for an unknown name. **Source** MXNet `contrib.text.embedding.create`.
    """
    return _registry.create(embedding_name, **kwargs)


def get_pretrained_file_names(embedding_name: str | None = None) -> Any:
    """The names of the files that `embedding_name` can load, or, without it, a dictionary of such lists.

    **Raises** KeyError for an unknown name. **Source** MXNet `contrib.text.embedding.get_pretrained_file_names`.

    >>> get_pretrained_file_names("glove")[:3]
    ['glove.42B.300d.txt', 'glove.6B.50d.txt', 'glove.6B.100d.txt']
    """
    if embedding_name is None:
        return {name: list(each.pretrained_file_name_sha1) for name, each in _registry.classes.items()}
    if embedding_name not in _registry.classes:
        known = ", ".join(sorted(_registry.classes))
        raise UnknownNameError(f"get_pretrained_file_names: there is no embedding {shown(embedding_name)}; there are {known}")
    return list(_registry.classes[embedding_name].pretrained_file_name_sha1)


@register
class GloVe(_TokenEmbedding):
    """GloVe's vectors (Pennington, Socher, Manning, "GloVe: Global Vectors for Word Representation").

    **Args** `pretrained_file_name`: one of `get_pretrained_file_names("glove")`; `embedding_root`: the folder with the folder `glove` that
    has the file, `$MXNET_HOME/embeddings` by default; `init_unknown_vec`: what makes the vector of unknown tokens from its `shape` if the
    file has none; `vocabulary`: read its tokens only; others go to Vocabulary. **Raises** KeyError for an unknown name; MissingFileError
    that says where to put the file if it is not there and cannot be downloaded; FileFormatError for another checksum. **Source** MXNet
    `contrib.text.embedding.GloVe`.
    """

    pretrained_archive_name_sha1 = GLOVE_ARCHIVES
    pretrained_file_name_sha1 = GLOVE_FILES

    def __init__(
        self,
        pretrained_file_name: str = "glove.840B.300d.txt",
        embedding_root: PathLike | None = None,
        init_unknown_vec: Callable[..., Any] = nd.zeros,
        vocabulary: Vocabulary | None = None,
        **kwargs: Any,
    ) -> None:
        self._check_pretrained_file_names(pretrained_file_name)
        super().__init__(**kwargs)
        path = GloVe._get_pretrained_file(embedding_root, pretrained_file_name)
        self._load_embedding(path, " ", init_unknown_vec, vocabulary=vocabulary)

    @classmethod
    def _get_download_file_name(cls, pretrained_file_name: str) -> str:
        corpus = pretrained_file_name.split(".")[1]
        return next(archive for archive in GLOVE_ARCHIVES if archive.split(".")[1] == corpus)


@register
class FastText(_TokenEmbedding):
    """FastText's vectors (Bojanowski, Grave, Joulin, Mikolov, "Enriching Word Vectors with Subword Information").

    **Args** `pretrained_file_name`: one of `get_pretrained_file_names("fasttext")`; `embedding_root`: the folder with the folder `fasttext`
    that has the file, `$MXNET_HOME/embeddings` by default; the others as GloVe. **Raises** as GloVe. **Source** MXNet
    `contrib.text.embedding.FastText`.
    """

    pretrained_archive_name_sha1 = FASTTEXT_ARCHIVES
    pretrained_file_name_sha1 = FASTTEXT_FILES

    def __init__(
        self,
        pretrained_file_name: str = "wiki.simple.vec",
        embedding_root: PathLike | None = None,
        init_unknown_vec: Callable[..., Any] = nd.zeros,
        vocabulary: Vocabulary | None = None,
        **kwargs: Any,
    ) -> None:
        self._check_pretrained_file_names(pretrained_file_name)
        super().__init__(**kwargs)
        path = FastText._get_pretrained_file(embedding_root, pretrained_file_name)
        self._load_embedding(path, " ", init_unknown_vec, vocabulary=vocabulary)

    @classmethod
    def _get_download_file_name(cls, pretrained_file_name: str) -> str:
        return os.path.splitext(pretrained_file_name)[0] + ".zip"


class CustomEmbedding(_TokenEmbedding):
    """Vectors in a file of your own: a line for each token, `token<elem_delim>number<elem_delim>number...`.

    **Args** `pretrained_file_path`; `elem_delim`; `encoding` of the text; the others as GloVe. A token that comes again, and a line with
    a single number, which is taken for a header, are left out with a warning. **Raises** MissingFileError (a ValueError here, too) if
    there is no file; VectorFileError (a ValueError and an AssertionError), with the line, for what is no vector, or one of another
    length. **Source** MXNet `contrib.text.embedding.CustomEmbedding`; reserved tokens, which confuse MXNet's rows, get vectors here.
    """

    def __init__(
        self,
        pretrained_file_path: PathLike,
        elem_delim: str = " ",
        encoding: str = "utf8",
        init_unknown_vec: Callable[..., Any] = nd.zeros,
        vocabulary: Vocabulary | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._load_embedding(pretrained_file_path, elem_delim, init_unknown_vec, encoding, vocabulary)


class CompositeEmbedding(_TokenEmbedding):
    """For each token of `vocabulary` the vectors that several embeddings have of it, one after the other.

    **Args** `vocabulary`; `token_embeddings`: an embedding or a list of them. **Raises** AssertionError (a ValueError here, too) for
    anything else. **Source** MXNet `contrib.text.embedding.CompositeEmbedding`.
    """

    def __init__(self, vocabulary: Vocabulary, token_embeddings: Any) -> None:
        if not isinstance(vocabulary, Vocabulary):
            raise VocabularyError(
                f"CompositeEmbedding: vocabulary must be a contrib.text.vocab.Vocabulary, got {shown(vocabulary)}"
            )
        embeddings = list(token_embeddings) if isinstance(token_embeddings, (list, tuple)) else [token_embeddings]
        if not embeddings or not all(isinstance(each, _TokenEmbedding) for each in embeddings):
            raise VocabularyError(
                f"CompositeEmbedding: token_embeddings must be an embedding or a list of embeddings, got {shown(token_embeddings)}"
            )
        super().__init__()
        self._index_tokens_from_vocabulary(vocabulary)
        self._set_idx_to_vec_by_embeddings(embeddings, len(self), self.idx_to_token)
