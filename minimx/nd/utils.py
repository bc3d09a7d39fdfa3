"""`nd.utils`: where MXNet keeps the functions on files and the creation of arrays of any storage."""

from .creation import array, empty, zeros
from .serialize import load, load_frombuffer, save

__all__ = ["array", "empty", "load", "load_frombuffer", "save", "zeros"]
