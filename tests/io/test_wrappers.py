"""Iterators over other iterators: longer and shorter passes, and batches that are fetched ahead by a thread."""

from __future__ import annotations

import gc
import os
import signal
import threading

import numpy as np
import pytest

from minimx import nd
from minimx.io import DataBatch, DataIter, NDArrayIter, PrefetchingIter, ResizeIter

from .test_arrays import numbers


def counting(count=4, name="data"):
    return NDArrayIter({name: np.arange(count)}, {f"{name}_label": np.arange(count)}, 2)


# ---- other lengths


def test_resize():
    batches = ResizeIter(counting(), 3)
    assert batches.provide_data == [("data", (2,))]
    assert batches.provide_label == [("data_label", (2,))]
    assert batches.batch_size == 2
    assert numbers(batches) == [[0, 1], [2, 3], [0, 1]]
    assert list(batches) == []
    batches.reset()
    assert numbers(batches) == [[0, 1], [2, 3], [0, 1]]
    assert (batches.getpad(), batches.getindex().tolist()) == (0, [0, 1])


def test_resize_that_goes_on():
    batches = ResizeIter(counting(6), 2, reset_internal=False)
    assert numbers(batches) == [[0, 1], [2, 3]]
    batches.reset()
    assert numbers(batches) == [[4, 5], [0, 1]]


def test_resize_keeps_the_key_of_buckets():
    source = counting()
    source.default_bucket_key = 7
    assert ResizeIter(source, 1).default_bucket_key == 7
    assert not hasattr(ResizeIter(counting(), 1), "default_bucket_key")


# ---- ahead


def test_prefetching():
    batches = PrefetchingIter(counting(5))
    assert batches.batch_size == 2
    for _ in range(3):
        seen = list(batches)
        assert numbers(seen) == [[0, 1], [2, 3], [4, 0]]
        assert [batch.pad for batch in seen] == [0, 0, 1]
        assert seen[0].provide_data == batches.provide_data == [("data", (2,))]
        assert seen[0].label[0].asnumpy().tolist() == [0, 1]
        assert list(batches) == []
        batches.reset()
    next(batches)
    batches.reset()  # in the middle of a pass
    assert numbers(batches) == [[0, 1], [2, 3], [4, 0]]


def test_prefetching_several():
    batches = PrefetchingIter(
        [counting(), counting()],
        rename_data=[{"data": "first"}, {"data": "second"}],
        rename_label=[{"data_label": "y"}, {"data_label": "z"}],
    )
    assert batches.provide_data == [("first", (2,)), ("second", (2,))]
    assert batches.provide_label == [("y", (2,)), ("z", (2,))]
    batch = next(batches)
    assert [array.asnumpy().tolist() for array in batch.data + batch.label] == [[0, 1]] * 4
    assert batches.getdata() is batch.data


def test_the_next_batch_is_fetched_before_it_is_asked_for():
    fetched = threading.Semaphore(0)

    class Slow(DataIter):
        provide_data = [("data", (1,))]  # noqa: RUF012
        provide_label = []  # noqa: RUF012

        def next(self):
            fetched.release()
            return DataBatch([nd.ones((1,))], [], 0)

    batches = PrefetchingIter(Slow(1))
    assert fetched.acquire(timeout=30)
    next(batches)
    assert fetched.acquire(timeout=30)


def test_failures_arrive_where_the_batch_is_asked_for():
    class Broken(DataIter):
        provide_data = [("data", (1,))]  # noqa: RUF012
        provide_label = []  # noqa: RUF012
        works = False

        def next(self):
            if not self.works:
                raise OSError("the disk is gone")
            return DataBatch([nd.ones((1,))], [], 0)

        def reset(self):
            self.works = True

    batches = PrefetchingIter(Broken(1))
    with pytest.raises(OSError, match="the disk is gone"):
        next(batches)
    assert list(batches) == []  # the pass is over
    batches.reset()
    assert next(batches).data[0].shape == (1,)


def test_iterators_that_do_not_fit():
    batches = PrefetchingIter([counting(4), counting(6)])
    for _ in range(2):
        next(batches)
    with pytest.raises(ValueError, match="do not end at the same time"):
        next(batches)
    with pytest.raises(ValueError, match="do not end at the same time"):
        list(PrefetchingIter([counting(3), counting(4)]))  # the last batches are padded differently
    with pytest.raises(ValueError, match="iters has no iterator"):
        PrefetchingIter([])
    with pytest.raises(ValueError, match="rename_data has 1 dictionaries for 2 iterators"):
        PrefetchingIter([counting(), counting()], rename_data=[{}])


def test_the_thread_ends_with_its_iterator():
    def running():
        return [thread for thread in threading.enumerate() if thread.name == "minimx-prefetch"]

    gc.collect()
    for thread in running():
        thread.join(timeout=30)
    batches = PrefetchingIter(counting())
    next(batches)
    (thread,) = running()
    del batches
    gc.collect()
    thread.join(timeout=30)
    assert not thread.is_alive()


# ---- what does not fit


class Empty(DataIter):
    provide_data = ()
    provide_label = ()


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: PrefetchingIter(None), "an iterator needs provide_data, .* got None"), (lambda: PrefetchingIter(Empty()), "got an Empty"),
        (lambda: ResizeIter(counting(), -1), "size is -1; it must be 0 or more"),
    ],
)  # fmt: skip
def test_odd_arguments(make, match):
    with pytest.raises(ValueError, match=match):
        make()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12: it has several threads, which is the point
def test_after_a_fork_it_says_that_its_threads_are_gone():
    batches = PrefetchingIter(counting(6))
    batches.next()
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # ends the child if it waits for a thread
        try:
            for use in (batches.next, batches.reset):
                with pytest.raises(ValueError, match="make it after the fork"):
                    use()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(list(batches)) == 2
