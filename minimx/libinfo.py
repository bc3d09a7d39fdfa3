"""`mx.libinfo`: the version. MXNet's module also finds its shared library, which has no counterpart here."""

from . import __version__ as __version__

__all__ = ["__version__"]
