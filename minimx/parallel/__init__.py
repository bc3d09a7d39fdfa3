"""Several devices and several processes: splitting batches, adding gradients.

`split_data` and `split_and_load` share a batch out; a store adds what the devices computed: `kvstore.create` (base.py), for one process
(kvstore.py) by the ways of reduction.py, for several (dist.py) through MPI (world.py). `simulate` predicts what clusters of any size would
do; it is imported when it is first asked for. Book: chapters 9 to 11.
"""

from .base import KVStoreBase, TestStore, create
from .dist import DistStore, Horovod
from .kvstore import KVStore
from .nccl import NCCLStore
from .split import split_and_load, split_data

__all__ = ["DistStore", "Horovod", "KVStore", "KVStoreBase", "NCCLStore", "TestStore", "create", "split_and_load", "split_data"]

#: What few programs need, imported when it is first asked for (compat/differences.py).
LATER = ("simulate",)
