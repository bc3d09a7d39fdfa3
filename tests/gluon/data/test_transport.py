"""Batches through shared memory: what is laid out is what comes, and the memory is used again."""

from __future__ import annotations

import errno
import mmap
import os
import pickle
from collections import deque
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import minimx as mx
from minimx import nd
from minimx.base import CODE_OF_DTYPE, OutOfMemoryError
from minimx.gluon.data import transport
from minimx.gluon.data.transport import SMALL, Inbox, Outbox, Parcel

pytestmark = pytest.mark.skipif(os.name != "posix", reason="files cannot be handed to other processes here")


class Way:
    """A worker's outbox and its parent's inbox, without processes."""

    def __init__(self) -> None:
        file = transport.memory_file()
        assert file is not None
        self.outbox, self.inbox, self.file = Outbox(file), Inbox(file.twin()), file
        self.answers = 0

    def send(self, batch: Any) -> Parcel:
        return pickle.loads(pickle.dumps(self.outbox.pack(batch)))

    def receive(self, parcel: Parcel) -> Any:
        self.answers += 1
        return self.inbox.unpack(parcel)

    def __call__(self, batch: Any) -> Any:
        received = self.receive(self.send(batch))
        self.outbox.forget(self.answers)
        return received

    def close(self) -> None:
        self.inbox.close()
        self.file.close()


@pytest.fixture
def way():
    made = Way()
    yield made
    made.close()


@pytest.mark.parametrize("dtype", sorted(each.name for each in CODE_OF_DTYPE))
@pytest.mark.parametrize("shape", [(1,), (3, 4), (50, 70), (1, 5000, 1)])
def test_arrays(way: Way, dtype: str, shape: tuple[int, ...]) -> None:
    numbers = (np.random.default_rng(0).normal(size=shape) * 50).astype(dtype)
    array, plain = way((nd.array(numbers, dtype=dtype), numbers))
    assert (type(array), array.shape, np.dtype(array.dtype), array.context) == (nd.NDArray, shape, np.dtype(dtype), mx.cpu())
    assert (type(plain), plain.shape, plain.dtype) == (np.ndarray, shape, np.dtype(dtype))
    np.testing.assert_array_equal(array.asnumpy(), numbers)
    np.testing.assert_array_equal(plain, numbers)
    way((np.zeros(shape, dtype), np.zeros(shape, dtype)))  # in the same place
    array[:], plain[:] = array.copy(), plain.copy()  # both can be written
    np.testing.assert_array_equal(array.asnumpy(), numbers)
    np.testing.assert_array_equal(plain, numbers)


def test_other_values(way: Way) -> None:
    big = np.arange(20_000.0).reshape(100, 200)
    batch = {
        "fortran": np.asfortranarray(big), "strided": big[::2, ::-3], "empty": np.empty((0, 3)), "readonly": np.broadcast_to(1.0, (5000,)),
        "view": nd.array(big)[10:20], "pinned": nd.array(big, ctx=mx.cpu_pinned()), "text": "x" * 50_000, "none": None, "big": 1 << 100,
        "bytes": bytes(20_000), "objects": np.array([None, "a"]), "dates": np.array(["2020-01-01"], "M8[D]"),
    }  # fmt: skip
    came = way(batch)
    assert came.keys() == batch.keys()
    for name, value in batch.items():
        if isinstance(value, (np.ndarray, nd.NDArray)):
            value, other = (each.asnumpy() if isinstance(each, nd.NDArray) else each for each in (value, came[name]))
            assert (value.shape, value.dtype) == (other.shape, other.dtype)
            np.testing.assert_array_equal(value, other)
        else:
            assert came[name] == value
    assert came["pinned"].context == mx.cpu()


def test_the_pipe_gets_little(way: Way) -> None:
    for batch in (nd.ones((1000, 1000)), [nd.ones((SMALL,))] * 20, "x" * (1 << 20), list(range(100_000))):
        assert len(pickle.dumps(way.outbox.pack(batch))) < 2 * SMALL


def test_failed_arrays_raise_here(way: Way) -> None:
    with pytest.raises(mx.MXNetError, match="scale"):
        way.outbox.pack([nd.ones(3), nd.random.normal(0, -1, (2, 2))])


@given(
    sizes=st.lists(st.lists(st.integers(0, 5 * SMALL), max_size=3), max_size=30),
    delays=st.lists(st.integers(0, 3), min_size=30, max_size=30),
)
@settings(max_examples=100, deadline=None)
def test_places_are_free_when_they_were_read(sizes: list[list[int]], delays: list[int]) -> None:
    """Some answers are unread while more are laid out; none is overwritten, and the file stays as small as that allows."""
    way, unread, most = Way(), deque[tuple[int, list[int], Parcel]](), 0
    for number, (lengths, delay) in enumerate(zip(sizes, delays)):
        unread.append((number % 256, lengths, way.send([np.full(length, number % 256, np.uint8) for length in lengths])))
        most = max(most, sum(sum(each) for _, each, _ in unread))
        while len(unread) > delay:
            value, wanted, parcel = unread.popleft()
            came = way.receive(parcel)
            assert [len(part) for part in came] == wanted
            assert all((part == value).all() for part in came)
        way.outbox.forget(way.answers)
    assert way.outbox.size <= 4 * most + 4 * mmap.PAGESIZE
    way.close()


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="memory is not reserved here")
def test_no_memory_left(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    way(np.ones(1000))
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OutOfMemoryError, match=r"no shared memory for a batch.*smaller batches"):
        way.outbox.pack(np.ones(1_000_000))
    monkeypatch.undo()
    assert way(np.ones(1_000_000)).sum() == 1_000_000


def test_without_memory_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*arguments: Any) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(os, "memfd_create", absent, raising=False)
    way = Way()
    assert (way(np.arange(10_000)) == np.arange(10_000)).all()
    way.close()


def test_without_shared_memory() -> None:
    batch = [nd.ones((100, 100)), "a"]
    array, text = Inbox(None).unpack(Outbox(None).pack(batch))
    assert (array.sum().asscalar(), text) == (10_000, "a")
