"""From gradients to new weights: on each device by itself, or through a store that adds up what the devices have computed.

A *store* has the methods of MXNet's KVStore: `init`, `push`, `pull`, perhaps `broadcast` and `pushpull`, which do two of these at once, and
perhaps `set_optimizer`, by which it updates the weights itself. Several devices have a store; a single one needs none. Here are the few
steps in which `Module` deals with one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..base import ArgumentError, env_int, shown
from ..nd import NDArray
from ..optimizer import Updater
from ..parallel import create

__all__ = ["create_store", "fill_store", "match_states", "update_by_updater", "update_in_store"]

Copies = Sequence[Sequence[Any]]  # for each parameter its array, or its gradient, on each device

LARGE = 1 << 24  # elements: with a parameter of more, "local" stores only add gradients up, as in MXNet


def create_store(kvstore: Any, devices: int, params: Mapping[str, NDArray]) -> tuple[Any, bool]:
    """The store that `kvstore` names, or is, and whether it updates the weights; None where none is needed.

    **Raises** TypeError for anything but a name, a store or None; ArgumentError for an unknown name.
    """
    update = bool(env_int("MXNET_UPDATE_ON_KVSTORE", 1))
    if kvstore is None or (isinstance(kvstore, str) and devices == 1 and "dist" not in kvstore):
        return None, False
    if isinstance(kvstore, str):
        if kvstore == "local" and max((param.size for param in params.values()), default=0) > LARGE:
            update = False
        kvstore = create(kvstore)
    elif not all(hasattr(kvstore, method) for method in ("init", "push", "pull")) and not hasattr(kvstore, "pushpull"):
        raise ArgumentError(f"kvstore must be a KVStore, a name such as 'local' and 'device', or None, got {shown(kvstore)}")
    is_able = kvstore.is_capable("optimizer") if hasattr(kvstore, "is_capable") else hasattr(kvstore, "set_optimizer")
    return kvstore, update and is_able


def fill_store(store: Any, names: Sequence[str], weights: Copies) -> None:
    """Tell a store the parameters, so that all devices, and all processes, begin with the same.

    It gets the first device's own arrays: if it updates them, what is written there between two steps counts.
    """
    for name, copies in zip(names, weights):
        if hasattr(store, "broadcast"):
            store.broadcast(name, copies[0], out=copies)
        else:
            store.init(name, copies[0])
            store.pull(name, out=copies)


def update_in_store(store: Any, names: Sequence[str], weights: Copies, gradients: Copies) -> None:
    """Send gradients to a store that updates, and fetch the new weights. Earlier layers come first, as they are needed first."""
    for index, (name, copies, slopes) in enumerate(zip(names, weights, gradients)):
        if slopes[0] is not None:
            _exchange(store, name, slopes, copies, -index)


def update_by_updater(
    updater: Updater, store: Any, names: Sequence[str], weights: Copies, gradients: Copies, devices: int
) -> None:
    """Update each device's weights by its own gradients; with a store these are those of all devices together.

    The optimizer knows parameter i on device k as number i * devices + k, since each has states of its own.
    """
    updates: list[list[tuple[int, NDArray, NDArray]]] = [[] for _ in range(devices)]
    for index, (name, copies, slopes) in enumerate(zip(names, weights, gradients)):
        if slopes[0] is None:
            continue
        if store is not None:
            _exchange(store, name, slopes, slopes, -index)
        for device, (weight, slope) in enumerate(zip(copies, slopes)):
            updates[device].append((index * devices + device, slope, weight))
    for rows in updates:
        if rows:
            indices, slopes, copies = map(list, zip(*rows))
            updater(indices, slopes, copies)


def match_states(updater: Updater, names: Sequence[str], devices: int) -> None:
    """Give states that were loaded the keys by which they are asked for: numbers for so many `devices`, or names in a store, 0.

    They have names if a store saved them, and the numbers of a single device if that did. Each device gets copies of its own.
    """
    states = updater.states
    by_name = any(isinstance(key, str) for key in states)
    if not by_name and len(states) > len(names):
        return  # numbered for several devices already
    updater.states = {
        key: _apart(states[source])
        for index, name in enumerate(names)
        if (source := name if by_name else index) in states
        for key in (range(index * devices, (index + 1) * devices) if devices else (name,))
    }
    updater.states_synced = dict.fromkeys(updater.states, False)


def _apart(state: Any) -> Any:
    """A copy of an optimizer's state."""
    if isinstance(state, (list, tuple)):
        return type(state)(map(_apart, state))
    return state.copy() if isinstance(state, NDArray) else state


def _exchange(store: Any, name: str, pushed: Sequence[NDArray], pulled: Sequence[NDArray], priority: int) -> None:
    if hasattr(store, "pushpull"):
        store.pushpull(name, pushed, out=pulled, priority=priority)
    else:
        store.push(name, pushed, priority=priority)
        store.pull(name, out=pulled, priority=priority)
