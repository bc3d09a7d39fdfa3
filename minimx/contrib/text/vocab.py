"""`mx.contrib.text.vocab`: MXNet's name for the vocabulary, which is made in minimx/vocabulary.py."""

from ...vocabulary import Vocabulary

__all__ = ["Vocabulary"]
