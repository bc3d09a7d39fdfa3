"""`sym.image`: functions of images, which MXNet keeps apart; the same ones as in `nd.image`."""

from ..nd.image import *
from ..nd.image import __all__ as __all__
