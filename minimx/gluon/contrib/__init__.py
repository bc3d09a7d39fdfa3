"""`gluon.contrib`: what MXNet keeps apart as contributed."""

from . import nn, rnn

__all__ = ["nn", "rnn"]
