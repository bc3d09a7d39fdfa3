"""Python runs this file when it starts, where `python -m minimx run` has put its folder on the path: old names are lent.

There may be another file of this name further on the path, which then would not be run: it is, after this one.
"""

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import module_from_spec, spec_from_file_location

_here = os.path.dirname(os.path.abspath(__file__))

if os.environ.get("MINIMX_LEND") == "1":
    # By its path: minimx itself is not to be imported yet.
    _spec = spec_from_file_location("minimx_lent", os.path.join(os.path.dirname(_here), "lent.py"))
    if _spec is not None and _spec.loader is not None:
        _lent = module_from_spec(_spec)
        sys.modules["minimx_lent"] = _lent
        _spec.loader.exec_module(_lent)
        _lent.lend()

_spec = PathFinder.find_spec("sitecustomize", [entry for entry in sys.path if os.path.abspath(entry or ".") != _here])
if _spec is not None and _spec.loader is not None:
    _other = module_from_spec(_spec)
    sys.modules["sitecustomize"] = _other
    _spec.loader.exec_module(_other)
