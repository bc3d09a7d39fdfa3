"""`mx.contrib.text.utils`: MXNet's name for the counting of tokens, which is made in minimx/vocabulary.py."""

from ...vocabulary import count_tokens_from_str

__all__ = ["count_tokens_from_str"]
