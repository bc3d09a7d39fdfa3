"""`mx.test_utils`: what MXNet's own tests, and tests written for it, compare and check with.

Comparing arrays within a tolerance (comparison.py), random arrays and NumPy references (arrays.py), a graph's outputs and gradients against
expected values and finite differences (gradients.py), one computation in several ways (consistency.py), random generators
(statistics.py), the first data sets (data.py), and what a test needs around it (surroundings.py). What only serves sparse arrays is
left out: arrays are dense here.
"""

# A test file that begins with `from mxnet.test_utils import *` has these from it, too.
import json
import logging
import numbers
import os
import sys
import time
from collections import OrderedDict
from contextlib import contextmanager

import numpy as np
import numpy.random as rnd
import numpy.testing as npt

from ..device import Context, current_context
from ..nd import array
from ..runtime import Features
from ..sym import Symbol
from ..util import get_cuda_compute_capability, getenv, setenv, use_np
from .arrays import *
from .arrays import __all__ as _arrays
from .comparison import *
from .comparison import __all__ as _comparison
from .consistency import *
from .consistency import __all__ as _consistency
from .data import *
from .data import __all__ as _data
from .gradients import *
from .gradients import __all__ as _gradients
from .statistics import *
from .statistics import __all__ as _statistics
from .surroundings import *
from .surroundings import __all__ as _surroundings

mx = sys.modules[__name__.partition(".")[0]]  # an import would be one of all layers at once

__all__ = [
    "Context", "Features", "OrderedDict", "Symbol", "array", "contextmanager", "current_context", "get_cuda_compute_capability", "getenv",
    "json", "logging", "mx", "np", "npt", "numbers", "os", "rnd", "setenv", "sys", "time", "use_np",
]  # fmt: skip
__all__ += _arrays + _comparison + _consistency + _data + _gradients + _statistics + _surroundings
