"""`gluon.contrib`: what MXNet keeps apart as contributed."""

from . import cnn, data, estimator, nn, rnn

__all__ = ["cnn", "data", "estimator", "nn", "rnn"]
