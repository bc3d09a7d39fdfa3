"""Backends: what may compute parts of a graph beside this package.

    class Backend:  name, takes(node), compile(graph, context, options)

A backend says which nodes it takes (backend.py). Partitioning joins them to the largest parts that leave the graph without cycles, and puts
one node in the place of each (partition.py). Where a program is made for inference, each part is offered to the backend for the shapes,
dtypes and device at hand (compiling.py); what it gives computes the part, and what it declines is computed as ever. `optimize_for` of
Symbols and blocks, and `hybridize(backend=...)`, begin here.
"""

from .backend import Backend, Options, find, names, provide, register, registered
from .partition import partition
from .prepared import Prepared

for _name in ("ONEDNN", "MKLDNN"):
    provide(_name, f"{__name__}.onednn")

__all__ = ["Backend", "Options", "Prepared", "find", "names", "partition", "provide", "register", "registered"]
