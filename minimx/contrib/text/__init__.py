"""`mx.contrib.text`: words as numbers and as vectors.

>>> from minimx.contrib import text
>>> vocabulary = text.vocab.Vocabulary(text.utils.count_tokens_from_str("a rose is a rose"))
>>> vocabulary.to_indices(["rose", "tulip"])
[2, 0]
"""

from . import embedding, utils, vocab

__all__ = ["embedding", "utils", "vocab"]
