"""Stores of one process: values by key, sums over devices by tree and ring, updates, compression, and bad input."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import MXNetError, engine, nd, optimizer
from minimx.base import ArgumentError, ShapeError
from minimx.engine import writes
from minimx.parallel import KVStore, KVStoreBase, TestStore, create, reduction
from minimx.parallel.kvstore import LOCAL

RANDOM = np.random.default_rng(0)
ON_HOST = [mx.cpu(i) for i in range(5)]


def on(devices: list[Any], *shape: int) -> tuple[list[nd.NDArray], np.ndarray[Any, Any]]:
    """An array on each device, and their sum."""
    arrays = [nd.array(RANDOM.normal(size=shape), ctx=device) for device in devices]
    return arrays, np.sum([array.asnumpy() for array in arrays], axis=0)


def read(arrays: list[nd.NDArray]) -> list[Any]:
    return [array.asnumpy().tolist() for array in arrays]


# ---- values


def test_values_of_keys() -> None:
    kv = create()
    assert (kv.type, kv.rank, kv.num_workers) == ("local", 0, 1)
    first = nd.ones((2,))
    kv.init("a", first)
    kv.init(["b", "c"], [nd.zeros((2,)), nd.full((2,), 7)])
    first[:] = 5  # the store has a copy
    out = [nd.empty((2,)), nd.empty((2,), ctx=mx.cpu(1))]
    kv.pull("a", out=out)
    assert read(out) == [[1, 1], [1, 1]]
    kv.push(["a", "b"], [[nd.ones((2,)), nd.ones((2,), ctx=mx.cpu(1))], nd.full((2,), 3)])  # without an updater it replaces
    kv.pull(["a", "b"], out=[out, nd.empty((2,))])
    assert read(out) == [[2, 2], [2, 2]]
    kv.pull(["b", "c"], out=out)
    assert read(out) == [[3, 3], [7, 7]]


@pytest.mark.parametrize("name", [*LOCAL, "DEVICE", "teststore"])
def test_pushpull(name: str) -> None:
    kv = create(name)
    arrays, total = on(ON_HOST[:3], 4, 3)
    out = [nd.empty((4, 3), ctx=array.context) for array in arrays]
    kv.pushpull("w", arrays, out=out)
    for each in out:
        np.testing.assert_allclose(each.asnumpy(), total, rtol=1e-6)
    kv.pushpull("w", arrays)
    for each in arrays:
        np.testing.assert_allclose(each.asnumpy(), total, rtol=1e-6)
    assert kv.type == name.lower()


def test_broadcast_shares_what_is_broadcast_to_itself() -> None:
    kv = create("device")
    weights = [nd.ones((2,), ctx=mx.cpu(i)) * i for i in range(3)]
    kv.broadcast(0, weights[0], weights)
    assert read(weights) == [[0, 0]] * 3
    kv._set_updater(lambda key, pushed, stored: stored.__iadd__(pushed))
    weights[0][:] = 10  # counts
    kv.pushpull(0, [nd.ones((2,), ctx=mx.cpu(i)) for i in range(3)], out=weights)
    assert read(weights) == [[13, 13]] * 3
    value = nd.ones((2,))
    kv.broadcast([1, 2], value, [[nd.empty((2,))], [nd.empty((2,))]])
    value[:] = 5
    out = nd.empty((2,))
    kv.pull(2, out=out)
    assert out.asnumpy().tolist() == [1, 1]


def test_an_updater_gets_key_gradient_and_value() -> None:
    for key in (3, "w"):
        kv, calls = create("device"), []

        def update(key: Any, pushed: Any, stored: Any, calls: list[Any] = calls) -> None:
            calls.append(key)
            stored += 2 * pushed

        kv._set_updater(update)
        kv.init(key, nd.ones((2,)))
        out = nd.empty((2,))
        kv.push(key, [nd.ones((2,), ctx=device) for device in ON_HOST])
        kv.pull(key, out=out)
        assert out.asnumpy().tolist() == [11, 11]
        assert calls == [key]


def test_states_of_an_optimizer(tmp_path: Any) -> None:
    def trained(kv: Any, steps: int, weight: Any) -> list[float]:
        for _ in range(steps):
            kv.pushpull(0, [nd.ones((2,)), nd.ones((2,), ctx=mx.cpu(1))], out=weight)
        return list(weight.asnumpy().tolist())

    def fresh(value: Any) -> tuple[Any, Any]:
        kv, weight = create("device"), nd.array(value)
        kv.set_optimizer(optimizer.SGD(learning_rate=0.1, momentum=0.9))
        kv.init(0, weight)
        return kv, weight

    kv, weight = fresh([1.0, 2.0])
    trained(kv, 2, weight)
    kv.save_optimizer_states(tmp_path / "states", dump_optimizer=True)
    other, again = fresh(weight)
    other.load_optimizer_states(tmp_path / "states")
    assert trained(other, 2, again) == trained(kv, 2, weight)
    with pytest.raises(AssertionError, match="call set_optimizer first"):
        create().save_optimizer_states("x")
    with pytest.raises(ArgumentError, match=r"an Optimizer such as mx.optimizer.SGD\(\) is wanted, got 'sgd'"):
        kv.set_optimizer("sgd")


# ---- ways of adding


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8])
@pytest.mark.parametrize("simulated", [False, True])
def test_every_way_gives_the_sum_everywhere(count: int, simulated: bool) -> None:
    with mx.device.simulate_gpus(8):
        devices = [(mx.gpu if simulated else mx.cpu)(i) for i in range(count)]
        for shape in ((), (1,), (3,), (5, 4), (0, 2)):
            arrays, total = on(devices, *shape)
            np.testing.assert_allclose(reduction.by_tree(arrays).asnumpy(), total, rtol=1e-5, atol=1e-6)
            out = [array.zeros_like() for array in arrays]
            reduction.around_ring(arrays, out)
            for each, device in zip(out, devices):
                assert each.context == device
                np.testing.assert_allclose(each.asnumpy(), total, rtol=1e-5, atol=1e-6)
            before = read(arrays)
            reduction.all_reduce(arrays, out)
            assert read(arrays) == before
            reduction.all_reduce(arrays, arrays)
            for each in (*arrays, *out):
                np.testing.assert_allclose(each.asnumpy(), total, rtol=1e-5, atol=1e-6)


def test_large_arrays_go_around_the_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduction, "LARGE", 10)
    with mx.device.simulate_gpus(4), mx.engine.trace() as events:
        arrays, total = on([mx.gpu(i) for i in range(4)], 5, 4)
        create("device").pushpull("w", arrays)
        for each in arrays:
            np.testing.assert_allclose(each.asnumpy(), total, rtol=1e-5)
    moves = [lane for lane, name, *_ in events if name.startswith("_copyto") and lane.endswith(" in")]
    assert sorted(set(moves)) == [f"gpu({i}) in" for i in range(4)]
    assert all(moves.count(f"gpu({i}) in") == 6 for i in range(4))  # 2 (n - 1) parts come in on each link


def test_the_same_array_may_come_twice() -> None:
    kv, array = create("device"), nd.ones((2,))
    out = [nd.empty((2,))] * 2
    kv.pushpull(0, [array, array], out=out)
    assert read(out) == [[2, 2], [2, 2]]
    kv.pushpull(0, [array, array])
    assert array.asnumpy().tolist() == [2, 2]


def test_a_failure_is_told_by_every_array_that_it_reaches() -> None:
    kv = create("device")
    bad = nd.ones((2,))

    def fail(array: Any) -> None:
        raise RuntimeError("boom")

    mx.engine.push(fail, writes=[bad])
    out = [nd.ones((2,)), nd.ones((2,), ctx=mx.cpu(1))]
    kv.pushpull("w", [bad, nd.ones((2,), ctx=mx.cpu(1))], out=out)
    for each in out:
        with pytest.raises(RuntimeError, match="boom"):
            each.asnumpy()


# ---- compression


def test_two_bits_a_number() -> None:
    """Values recorded from MXNet 1.9.1."""
    kv = create("device")
    kv.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    kv.init(0, nd.zeros((6,)))
    out, found = nd.empty((6,)), []
    for _ in range(3):
        kv.push(0, [nd.array([0.1, 0.3, 0.6, -0.7, -0.2, 1.4], ctx=mx.cpu(i)) for i in range(2)])
        kv.pull(0, out=out)
        found.append(out.asnumpy().tolist())
    assert found == [[0, 0, 1, -1, 0, 1], [0, 1, 1, -1, 0, 1], [0, 0, 1, -1, -1, 1]]


@pytest.mark.parametrize("shape", [(1,), (3, 5), (1000,), (0,)])
def test_nothing_is_lost_for_good(shape: tuple[int, ...]) -> None:
    with mx.device.simulate_gpus(2):
        kv, devices = create("device"), [mx.gpu(0), mx.gpu(1)]
        kv.set_gradient_compression({"type": "2bit", "threshold": 0.25})
        sent, given = np.zeros(shape), np.zeros(shape)
        for _ in range(50):
            arrays, total = on(devices, *shape)
            arrays = [array * 0.1 for array in arrays]
            given += total * 0.1
            kv.pushpull("w", arrays)
            sent += arrays[1].asnumpy()
        assert np.abs(sent - given).max(initial=0) < 2 * 0.5


def test_what_cannot_be_compressed() -> None:
    for params, message in (
        ({"type": "3bit"}, "no type '3bit'; choose one of 'none', '2bit'"),
        ({"type": "2bit", "threshold": -1}, "must be greater than 0, got -1"),
        ({"type": "2bit", "bits": 2}, "it has no 'bits'; wanted are 'type' and perhaps 'threshold'"),
        ({"threshold": 2}, "'type' is missing"),
        ([], r"a dict such as .* is wanted, got \[\]"),
    ):
        with pytest.raises(ArgumentError, match=message):
            create("device").set_gradient_compression(params)
    with pytest.raises(ArgumentError, match="not supported for this type of kvstore, 'local'"):
        create("local").set_gradient_compression({"type": "2bit"})
    create("device").set_gradient_compression({"type": "none"})


# ---- bad input


def test_keys_and_arrays_that_do_not_fit() -> None:
    kv = create()
    kv.init(3, nd.ones((2, 2)))
    for call, error, message in (
        (lambda: kv.init(3, nd.ones((2, 2))), MXNetError, "duplicate init of key 3"),
        (lambda: kv.broadcast(3, nd.ones((2, 2)), nd.ones((2, 2))), MXNetError, "duplicate init of key 3"),
        (lambda: kv.init("a", nd.ones((2, 2))), MXNetError, "Mixed key types are not allowed: 'a'"),
        (lambda: kv.pull(9, out=nd.ones((2, 2))), MXNetError, "key 9 has not been inited"),
        (lambda: kv.push(9, nd.ones((2, 2))), MXNetError, "key 9 has not been inited"),
        (lambda: kv.push(3, nd.ones((3,))), ShapeError, r"has shape \(2, 2\), an array \(3,\)"),
        (lambda: kv.pull(3, out=nd.ones((3,))), ShapeError, r"has shape \(2, 2\), an array \(3,\)"),
        (lambda: kv.pushpull(4, [nd.ones((3,)), nd.ones((2,))]), ShapeError, r"has shape \(3,\), an array \(2,\)"),
        (lambda: kv.pull(3), ArgumentError, "arrays that take the values are wanted"),
        (lambda: kv.init(1.5, nd.ones((2,))), ArgumentError, "a key is a whole number or a string, got 1.5"),
        (lambda: kv.init(True, nd.ones((2,))), ArgumentError, "a key is a whole number or a string"),
        (lambda: kv.init([4, 5], [nd.ones((2,))]), ArgumentError, "2 keys and 1 arrays"),
        (lambda: kv.init(4, np.ones(2)), ArgumentError, "an NDArray, or a list of them, is wanted"),
        (lambda: kv.push(3, []), ArgumentError, "comes with no array"),
        (lambda: kv.row_sparse_pull(3), MXNetError, "no sparse arrays here"),
        (lambda: kv.is_capable("magic"), ValueError, "Unknown capability: 'magic'"),
        (lambda: create("foo"), ArgumentError, "no kvstore 'foo' here; choose one of 'local'"),
        (lambda: create(3), ArgumentError, "the name of a store is wanted"),
        (lambda: create("local")._set_updater("sgd"), ArgumentError, "an updater is a function of key.*got 'sgd'"),
    ):
        with pytest.raises(error, match=message):
            call()  # type: ignore[no-untyped-call]
    out = nd.empty((2, 2))
    kv.pull(3, out=out)
    assert out.asnumpy().sum() == 4


def test_a_store_of_ones_own() -> None:
    @KVStoreBase.register
    class Mine(TestStore):
        pass

    kv = create("MINE")
    assert isinstance(kv, Mine)
    assert kv.is_capable("optimizer") is False
    for call in (kv.set_optimizer, kv.save_optimizer_states, kv.load_optimizer_states):
        with pytest.raises(NotImplementedError, match="the store Mine has no"):
            call(None)
    with pytest.raises(NotImplementedError, match="the store KVStoreBase has no pushpull"):
        KVStoreBase().pushpull(0, nd.ones((1,)))
    with pytest.raises(ArgumentError):
        KVStoreBase.register(int)
    assert isinstance(create("device"), KVStore)


def test_keys_that_come_together_are_one_task() -> None:
    """In one memory: it adds, updates and copies; values are those of keys that come one by one."""
    contexts = [mx.cpu(i) for i in range(3)]

    def values() -> list[list[Any]]:
        return [[nd.full((1000 + key,), 10 * key + i, ctx=context) for i, context in enumerate(contexts)] for key in range(4)]

    alone, together = mx.kv.create("device"), mx.kv.create("device")
    for kv in (alone, together):
        kv.init([0, 1, 2, 3], [each[0] for each in values()])
        kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5, momentum=0.9))
    one, other = values(), values()
    nd.waitall()
    for _ in range(2):
        for key in range(4):
            alone.pushpull(key, one[key], out=one[key])
    with engine.trace() as events:
        together.pushpull([0, 1, 2, 3], other, out=other)
        nd.waitall()
    together.pushpull([0, 1, 2, 3], other, out=other)
    for mine, its in zip(other, one):
        for array, wanted in zip(mine, its):
            np.testing.assert_array_equal(array.asnumpy(), wanted.asnumpy())
    assert len(events) == 1, events


def test_gradients_of_several_keys_are_added_everywhere_by_one_task() -> None:
    kv = mx.kv.create("device")
    arrays = [[nd.full((2000,), key + i, ctx=mx.cpu(i)) for i in range(2)] for key in range(3)]
    nd.waitall()
    with engine.trace() as events:
        kv.pushpull([7, 8, 9], arrays)
        nd.waitall()
    assert [name for _, name, *_ in events] == ["add_everywhere"]
    for key, each in enumerate(arrays):
        for array in each:
            np.testing.assert_array_equal(array.asnumpy(), 2 * key + 1)


def test_a_store_that_says_nothing_of_buckets_gets_keys_one_by_one() -> None:
    calls: list[Any] = []

    class Own(mx.kv.TestStore):
        def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
            calls.append((key, priority, len(value)))
            super().pushpull(key, value, out, priority)

    net = mx.gluon.nn.Dense(2, in_units=3)
    contexts = [mx.cpu(0), mx.cpu(1)]
    net.initialize(ctx=contexts)
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 1.0}, kvstore=Own(), update_on_kvstore=False)
    with mx.autograd.record():
        losses = [net(nd.ones((1, 3), ctx=context)) for context in contexts]
    mx.autograd.backward(losses)
    trainer.step(2)
    assert calls == [(0, 0, 2), (1, -1, 2)]


@pytest.mark.parametrize("keys", [1, 2, 4, 5])
def test_an_optimizer_with_an_update_of_its_own_keeps_it_in_a_store(keys: int) -> None:
    """LARS scales each weight's rate: it takes several weights at once, but its step is not that of SGD alone."""
    results = []
    for store in (mx.kv.create("device"), None):
        weights = [[nd.full((3, 2), 2 + key, ctx=mx.cpu(i)) for i in range(2)] for key in range(keys)]
        gradients = [[nd.full((3, 2), 1 + key, ctx=mx.cpu(i)) for i in range(2)] for key in range(keys)]
        optimizer = mx.optimizer.create("lars", learning_rate=0.5, momentum=0.9)
        if store is None:
            updater = mx.optimizer.get_updater(optimizer)
            for key in range(keys):
                updater(key, gradients[key][0] + gradients[key][1], weights[key][0])
                weights[key][0].copyto(weights[key][1])
        else:
            store.init(list(range(keys)), [each[0] for each in weights])
            store.set_optimizer(optimizer)
            store.pushpull(list(range(keys)), gradients, out=weights)
        results.append([array.asnumpy() for each in weights for array in each])
    for one, other in zip(*results):
        np.testing.assert_allclose(one, other, 1e-6)


@pytest.mark.parametrize("size", [3, 100_000])
def test_a_failed_target_is_overwritten(size: int) -> None:
    for keys in (1, 2):
        kv = mx.kv.create("device")
        names = list(range(keys))
        stored = [nd.ones((size,)) for _ in names]
        kv.init(names, stored)
        kv.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
        out = [[nd.ones((size,), ctx=mx.cpu(i)) for i in range(2)] for _ in names]
        for pushes in (True, False):
            engine.push(fail, writes=[out[0][1]])
            if pushes:
                kv.pushpull(names, [[nd.ones((size,), ctx=mx.cpu(i)) for i in range(2)] for _ in names], out=out)
            else:
                kv.pull(names, out=out)
            for array in (each for listed in out for each in listed):
                assert set(array.asnumpy()) == {-1}
        with contextlib.suppress(Exception):
            nd.waitall()


@pytest.mark.parametrize("size", [3, 100_000])
def test_who_follows_a_copy_hears_that_it_was_written_in_its_place(size: int) -> None:
    kv, names = mx.kv.create("device"), [0, 1]
    weights = [[nd.ones((size,), ctx=mx.cpu(i)) for i in range(2)] for _ in names]
    kv.broadcast(names, [each[0] for each in weights], weights)
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=1.0))
    nd.waitall()
    copies = [each[1].var.value for each in weights]
    following = writes.Following(copies)
    kv.pushpull(names, [[nd.ones((size,), ctx=mx.cpu(i)) for i in range(2)] for _ in names], out=weights)
    nd.waitall()
    assert not following.unchanged([each[1].var.value for each in weights])
    assert all((array.asnumpy() == -1).all() for each in weights for array in each)


def fail(value: Any) -> None:
    raise ValueError("boom")


def test_arrays_of_other_dtypes_take_the_values_of_several_keys() -> None:
    kv = mx.kv.create("device")
    kv.init([0, 1], [nd.ones((3,)), nd.ones((2,))])
    kv.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    out = [nd.zeros((3,), dtype="float16"), nd.zeros((2,), dtype="float64")]
    kv.pull([0, 1], out=out)
    assert [each.asnumpy().tolist() for each in out] == [[1] * 3, [1] * 2]
    kv.pushpull([0, 1], [nd.ones((3,)), nd.ones((2,))], out=out)
    assert [(each.dtype, each.asnumpy().tolist()) for each in out] == [(np.float16, [0.5] * 3), (np.float64, [0.5] * 2)]


def test_no_keys_are_nothing_to_do() -> None:
    kv = mx.kv.create("device")
    kv.set_optimizer(mx.optimizer.SGD())
    kv.pushpull([], [], out=[])
