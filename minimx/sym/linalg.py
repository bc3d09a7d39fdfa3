"""`sym.linalg`: linear algebra on the last two axes; the same functions as in `nd.linalg`."""

from ..nd.linalg import *
from ..nd.linalg import __all__ as __all__
