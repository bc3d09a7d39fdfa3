"""`gluon.contrib`: what MXNet keeps apart as contributed."""

from . import nn

__all__ = ["nn"]
