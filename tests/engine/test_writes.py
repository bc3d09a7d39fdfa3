"""Which writes into memory in place are counted, for those who keep something that they made of its values."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import engine, nd
from minimx.engine import writes


def memory(array: Any) -> Any:
    array.wait_to_read()
    return array.var.value


def part(array: Any) -> None:
    array[2:5] = 7


def update(array: Any) -> None:
    nd.sgd_mom_update(array, nd.ones_like(array), nd.zeros_like(array), lr=0.1, out=array)


def pushed(array: Any) -> None:
    engine.push(lambda it: it.fill(3), writes=[array])


def whole(array: Any) -> None:
    array[:] = nd.ones_like(array)


def added(array: Any) -> None:
    array += 1


def update_of_a_part(array: Any) -> None:
    half = array[: array.shape[0] // 2]
    mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.5))([0], [nd.ones_like(half)], [half])


WRITES: list[Callable[[Any], None]] = [part, update, pushed, whole, added, update_of_a_part]


@pytest.mark.parametrize("size", [8, 100_000], ids=["small", "large"])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("mode", ["asynchronous", "naive", "bulk"])
def test_a_write_shows(size: int, write: Any, mode: str, monkeypatch: Any) -> None:
    array, other = nd.zeros((size,)), nd.zeros((size,))
    following = writes.Following([memory(array), memory(other)])
    assert following.unchanged([memory(array), memory(other)])
    if mode == "naive":
        monkeypatch.setattr(engine.front.this_thread, "mode", engine.front.NAIVE)
    if mode == "bulk":
        with engine.bulk(10):
            write(array)
    else:
        write(array)
    assert not following.unchanged([memory(array), memory(other)])
    again = writes.Following([memory(array), memory(other)])
    read = (array + other).asnumpy()
    assert read.shape == (size,)
    assert again.unchanged([memory(array), memory(other)])  # reading changes nothing


def test_memory_is_shared_as_long_as_it_lives() -> None:
    """A later array may have the same id, and is another."""
    array = nd.from_numpy(np.ones(5, "float32"))
    number = id(memory(array))
    assert number in writes._shared
    assert not writes.Following([memory(array)]).unchanged([memory(array)])
    del array
    gc.collect()
    assert number not in writes._shared


def test_nobody_follows_for_ever() -> None:
    array = nd.zeros((4,))
    following = writes.Following([memory(array)])
    assert id(memory(array)) in writes._counts
    del following
    gc.collect()
    writes.forget_ended()
    assert id(memory(array)) not in writes._counts


def test_what_is_kept_of_a_network_goes_with_it() -> None:
    array = np.ones(5, "float32")

    def use() -> None:
        prepared = mx.sym.backends.Prepared(lambda array: array.sum())
        prepared(array)
        assert id(array) in writes._counts

    use()
    gc.collect()
    writes.forget_ended()
    assert id(array) not in writes._counts
    broken = mx.sym.backends.Prepared(lambda array: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        broken(array)


def test_shared_memory_is_known() -> None:
    array = nd.zeros((4,))
    following = writes.Following([memory(array)])
    np.from_dlpack(array)
    assert not following.unchanged([memory(array)])
    assert writes.Following([memory(array)]).blind
    numbers = np.ones(3, "float32")
    assert writes.Following([memory(nd.from_numpy(numbers, zero_copy=True))]).blind
