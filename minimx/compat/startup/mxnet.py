"""What `import mxnet` finds where `python -m minimx run` has put this folder on the path: it makes the name mean minimx.

The folder is on PYTHONPATH, so that worker processes and programs that a script starts find it as well. minimx is imported here and not
earlier, as a script may set environment variables first; and it is the minimx that the command was run with, installed or not.
"""

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

stands_for_minimx = True  # what tells this file from MXNet

_folder = str(Path(__file__).parents[3])
sys.path.insert(0, _folder)
try:
    import minimx.compat.mxnet
finally:
    sys.path.remove(_folder)
if os.environ.get("MINIMX_LEND") == "1":
    minimx.compat.alias.lend_version()
    minimx.compat.scalars.lend()
if PathFinder.find_spec("minimx") is None:
    sys.path.append(_folder)  # processes that multiprocessing spawns take the path from here
