"""`mx.mod`, as scripts call `mx.module`: `import minimx.mod` gives that very module."""

import sys

from . import module

sys.modules[__name__] = module
