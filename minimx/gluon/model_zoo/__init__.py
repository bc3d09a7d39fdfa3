"""`gluon.model_zoo`: well-known networks, made by a call."""

from . import model_store, vision

__all__ = ["model_store", "vision"]
