"""What a key-value store is to a Trainer, and how a store is chosen by its name.

A Trainer asks two things: that all devices, and all processes, begin with the same weights (`broadcast`), and that a gradient becomes
the sum of what all of them computed (`pushpull`). Whoever can do that another way derives a class from KVStoreBase and registers it.
Book: chapter 11.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

from ..base import ArgumentError, shown
from ..nd import NDArray
from ..registry import Registry

__all__ = ["KVStoreBase", "TestStore", "create", "factories", "find"]


class KVStoreBase:
    """The base of all stores. **Source** MXNet `kvstore.KVStoreBase`.

    **Example** a store of one's own:

    >>> @KVStoreBase.register
    ... class Counting(mx.kv.TestStore):
    ...     pushed = 0
    ...     def pushpull(self, key, value, out=None, priority=0):
    ...         self.pushed += 1
    ...         super().pushpull(key, value, out, priority)
    >>> mx.kv.create("counting").type
    'counting'
    """

    #: What `is_capable` may be asked: whether the store updates weights itself.
    OPTIMIZER: ClassVar[str] = "optimizer"
    kv_registry: ClassVar[dict[str, type[KVStoreBase]]]

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Write `value`, that of the process of rank 0, into all arrays of `out` in all processes."""
        self._cannot("broadcast")

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Add the arrays `value` of all devices and processes, and write the sum into `out`, or into `value` without it."""
        self._cannot("pushpull")

    def set_optimizer(self, optimizer: Any) -> None:
        """Update weights with `optimizer` from now on."""
        self._cannot("set_optimizer")

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Whether the store can do what `capability` names: `KVStoreBase.OPTIMIZER`. **Raises** ValueError for another name."""
        return asked(capability) and False

    def save_optimizer_states(self, fname: Any, dump_optimizer: bool = False) -> None:
        """Write the states of the updates to a file."""
        self._cannot("save_optimizer_states")

    def load_optimizer_states(self, fname: Any) -> None:
        """Read the states from a file of `save_optimizer_states`."""
        self._cannot("load_optimizer_states")

    @property
    def type(self) -> str:
        """The name that `create` was given."""
        return type(self).__name__.lower()

    @property
    def rank(self) -> int:
        """The number of this process among `num_workers`."""
        return 0

    @property
    def num_workers(self) -> int:
        """How many processes take part."""
        return 1

    @staticmethod
    def register(klass: Any) -> Any:
        """Class decorator: `create` finds the class under its name, in lower case. **Raises** ArgumentError for other classes."""
        return _registry.register(klass)

    def _cannot(self, what: str) -> NoReturn:
        raise NotImplementedError(f"the store {type(self).__name__} has no {what}")


_registry: Registry[KVStoreBase] = Registry(KVStoreBase, "kvstore")
KVStoreBase.kv_registry = _registry.classes


def asked(capability: Any) -> bool:
    """True. Raises ArgumentError for a capability that no store knows."""
    if not isinstance(capability, str) or capability.lower() != KVStoreBase.OPTIMIZER:
        raise ArgumentError(f"Unknown capability: {shown(capability)}; a kvstore is asked for {KVStoreBase.OPTIMIZER!r} only")
    return True


@KVStoreBase.register
class TestStore(KVStoreBase):
    """A store for one process that only adds: the least that a Trainer needs, and an example to start from."""

    __test__ = False  # its name is MXNet's; it is no test of pytest's

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        for target in out if isinstance(out, (list, tuple)) else [out]:
            if target is not value:
                value.copyto(target)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        arrays: list[NDArray] = list(value) if isinstance(value, (list, tuple)) else [value]
        total = sum((array.as_in_context(arrays[0].context) for array in arrays[1:]), arrays[0].copy())
        for target in arrays if out is None else out if isinstance(out, (list, tuple)) else [out]:
            total.copyto(target)


#: Names of the stores of this package -> what makes one of a name; their modules enter themselves.
factories: dict[str, Any] = {}
#: Names that MXNet has and minimx lacks -> why.
absent = {
    "dist_async": " (its servers update without waiting for each other, and there are no servers)",
    "p3": " (it cuts arrays up for servers, and there are no servers)",
    "byteps": " (a library of its own, which is for MXNet)",
}


def create(name: str = "local") -> KVStoreBase:
    """A key-value store.

    **Args** `name`, in any case: "local" adds in host memory, "device" on the devices, "nccl" by NVIDIA's library; "dist_sync",
    "dist_device_sync" and "horovod" add over the processes that `mpiexec` started, too; or the name of a registered class.
    **Raises** TypeError for anything but a string, ArgumentError for an unknown name. **Source** MXNet `kvstore.create`.

    >>> kv = mx.kv.create("device")
    >>> kv.init("w", mx.nd.zeros((2,)))
    >>> kv.push("w", [mx.nd.ones((2,), ctx=mx.cpu(i)) for i in range(3)])
    >>> out = mx.nd.empty((2,)); kv.pull("w", out=out); out.asnumpy().tolist()
    [3.0, 3.0]
    """
    return find(name)()


def find(name: str) -> Callable[[], KVStoreBase]:
    """What makes the store called `name`. **Raises** as `create`."""
    if not isinstance(name, str):
        raise ArgumentError(f"kvstore.create: the name of a store is wanted, such as 'device', got {shown(name)}")
    key = name.lower()
    if key in factories:
        return functools.partial(factories[key], key)
    if key in _registry.classes:
        return _registry.classes[key]
    known = ", ".join(map(repr, [*factories, *_registry.classes]))
    raise ArgumentError(f"there is no kvstore {name!r} here{absent.get(key, '')}; choose one of {known}")
