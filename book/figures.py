"""The style of the book's figures is defined in `minimx/d2l/figures.py`, so that chapters find it outside a clone, too."""

from minimx.d2l.figures import *  # noqa: F403  # it is the same module under another name, and lists its names
from minimx.d2l.figures import __all__ as __all__
