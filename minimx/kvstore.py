"""`mx.kvstore` and `mx.kv`: the stores of parallel/ under the names that MXNet's module has."""

from .parallel.base import KVStoreBase, TestStore, create
from .parallel.kvstore import KVStore

__all__ = ["KVStore", "KVStoreBase", "TestStore", "create"]
