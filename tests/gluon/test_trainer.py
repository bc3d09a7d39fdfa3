"""Trainer: steps on one device and on several, stale gradients, stores, and states in files."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, init, lr_scheduler, nd, optimizer
from minimx.base import ArgumentError, FileFormatError
from minimx.gluon import nn
from minimx.parallel.kvstore import LOCAL, KVStore

TWO = [mx.cpu(0), mx.cpu(1)]
MODES = [True, False]  # update_on_kvstore


def parameter(name="x", devices=None, shape=(3,), **kwargs):
    param = gluon.Parameter(name, shape=shape, **kwargs)
    param.initialize("zeros", ctx=devices)
    return param


def backward(*params, factor=1.0):
    """A gradient of `factor` on every device."""
    for param in params:
        for array in param.list_data():
            with autograd.record():
                y = array * factor
            y.backward()


def values(param):
    """The value of a parameter on each device: all its elements are equal."""
    found = [array.asnumpy() for array in param.list_data()]
    assert all((each == each[0]).all() for each in found)
    return [float(each[0]) for each in found]


# ---- one device


def test_a_step_divides_by_the_batch():
    x = parameter()
    trainer = gluon.Trainer([x], "sgd", {"learning_rate": 1.0, "momentum": 0.5, "rescale_grad": 2.0})
    backward(x)
    trainer.step(4)
    assert values(x) == [-0.5]
    backward(x)
    trainer.step(1)
    assert values(x) == [-0.5 - 2.0 - 0.25]
    assert trainer._kvstore is None
    assert trainer._update_on_kvstore is None


def test_both_halves_of_a_step():
    x = parameter()
    trainer = gluon.Trainer([x], "sgd", {"learning_rate": 1.0})
    backward(x)
    trainer.allreduce_grads()
    x.grad()[:] = 5
    trainer.update(2)
    assert values(x) == [-2.5]


def test_a_network_learns():
    mx.random.seed(0)
    net = nn.HybridSequential()
    net.add(nn.Dense(8, activation="tanh"), nn.Dense(1))
    net.initialize(init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.05})
    loss, x = gluon.loss.L2Loss(), nd.random.normal(shape=(32, 4))
    y = (x * nd.array([1, -2, 3, 0.5])).sum(axis=1)
    history = []
    for _ in range(60):
        with autograd.record():
            error = loss(net(x), y)
        error.backward()
        trainer.step(32)
        history.append(error.mean().asscalar())
    assert history[-1] < 0.1 * history[0]


def test_parameters_without_gradient_stay():
    x, fixed = parameter(), parameter("fixed", grad_req="null")
    trainer = gluon.Trainer([x, fixed], "sgd", {"learning_rate": 1.0})
    backward(x)
    trainer.step(1)
    assert values(fixed) == [0]


def test_multipliers_are_read_at_each_step():
    x = parameter(lr_mult=0.5)
    trainer = gluon.Trainer([x], "sgd", {"learning_rate": 1.0})
    for mult, wanted in ((0.5, -0.5), (2.0, -2.5), (0.0, -2.5)):
        x.lr_mult = mult
        backward(x)
        trainer.step(1)
        assert values(x) == [wanted]


def test_order_of_parameters():
    params = {name: parameter(name) for name in ("b", "a", "c")}
    assert [param.name for param in gluon.Trainer(params, "sgd")._params] == ["a", "b", "c"]
    assert [param.name for param in gluon.Trainer(list(params.values()), "sgd")._params] == ["b", "a", "c"]


@pytest.mark.parametrize("devices", [None, TWO])
def test_learning_rate(devices):
    x = parameter(devices=devices)
    trainer = gluon.Trainer([x], "sgd", {"learning_rate": 0.5})
    trainer.set_learning_rate(0.25)
    assert trainer.learning_rate == trainer.optimizer.learning_rate == 0.25
    scheduled = gluon.Trainer([x], "sgd", {"lr_scheduler": lr_scheduler.FactorScheduler(2, 0.5, base_lr=1.0)})
    rates = []
    for _ in range(5):
        backward(x)
        scheduled.step(1)
        rates.append(scheduled.learning_rate)
    assert rates == [1.0, 1.0, 0.5, 0.5, 0.25]  # devices do not count twice
    with pytest.raises(UserWarning, match="LRScheduler of the optimizer"):
        scheduled.set_learning_rate(1.0)


# ---- stale gradients


@pytest.mark.parametrize(("devices", "on_store"), [(None, None), (TWO, True), (TWO, False)])
def test_stale_gradients(devices, on_store):
    used, unused = parameter("used", devices), parameter("unused", devices)
    trainer = gluon.Trainer([used, unused], "sgd", {"learning_rate": 1.0}, update_on_kvstore=on_store)
    count = len(used.list_data())
    backward(used)
    with pytest.raises(UserWarning, match=r"^Gradient of Parameter `unused` on context cpu"):
        trainer.step(1)
    assert values(used) == [0] * count  # nothing was updated
    trainer.step(1, ignore_stale_grad=True)
    assert values(used) == [-count] * count
    assert values(unused) == [0] * count
    with pytest.raises(UserWarning, match="`used`"):
        trainer.step(1)
    trainer.step(1, ignore_stale_grad=True)
    assert values(used) == [-count] * count


@pytest.mark.parametrize("devices", [None, TWO])
def test_a_step_without_backward(devices):
    x = parameter("x", devices)
    trainer = gluon.Trainer([x], "sgd", {"learning_rate": 1.0}, update_on_kvstore=False)
    (x.list_data()[0] * 2).sum()  # not recorded
    for call in (trainer.step, trainer.update):
        with pytest.raises(UserWarning) as caught:
            call(1)
        text = str(caught.value)
        assert text.startswith(
            "No gradient was written since the last step: backward() was not called, or the loss was computed outside autograd.record(). "
            "Gradient of Parameter `x` on context cpu(0) has not been updated by backward since last `step`."
        )
        assert "call step with ignore_stale_grad=True to suppress this warning" in text


@pytest.mark.parametrize("on_store", [True, False])
@pytest.mark.parametrize("devices", [None, TWO])
def test_a_step_inside_record(devices, on_store):
    x = parameter("x", devices)
    trainer = gluon.Trainer([x], "sgd", {"learning_rate": 1.0}, update_on_kvstore=on_store)
    backward(x)
    with autograd.record():
        with pytest.raises(
            mx.MXNetError, match=r"Trainer.step: weights .* inside autograd.record\(\); call it after the with block"
        ):
            trainer.step(1)
        with pytest.raises(mx.MXNetError, match=r"Trainer.update: .*; call it after the with block"):
            trainer.update(1)
    trainer.step(1)  # nothing was lost
    assert values(x) == [-len(x.list_data())] * len(x.list_data())


@pytest.mark.parametrize("on_store", MODES)
def test_a_device_that_computed_nothing_adds_nothing(on_store):
    x = parameter(devices=TWO)
    trainer = gluon.Trainer([x], "sgd", {"learning_rate": 1.0}, update_on_kvstore=on_store)
    backward(x)
    trainer.step(1)
    with autograd.record():
        y = x.data(mx.cpu(1)) * 10
    y.backward()
    trainer.step(1, ignore_stale_grad=True)
    assert values(x) == [-12, -12]


# ---- several devices


@pytest.mark.parametrize("on_store", MODES)
@pytest.mark.parametrize("kvstore", LOCAL)
def test_gradients_are_added(kvstore, on_store):
    x = parameter(devices=TWO)
    trainer = gluon.Trainer([x], "sgd", {"learning_rate": 1.0, "momentum": 0.5}, kvstore, update_on_kvstore=on_store)
    backward(x)
    trainer.step(1)
    assert values(x) == [-2, -2]
    assert trainer._kvstore.type == kvstore
    assert trainer._update_on_kvstore is on_store
    x.lr_mult = 0.5
    backward(x)
    trainer.step(1)
    assert values(x) == [-4, -4]


def test_allreduce_between():
    x = parameter(devices=TWO)
    trainer = gluon.Trainer([x], "sgd", {"learning_rate": 1.0}, update_on_kvstore=False)
    for i, array in enumerate(x.list_data()):
        with autograd.record():
            y = array * i
        y.backward()
    trainer.allreduce_grads()
    assert [gradient.asnumpy().tolist() for gradient in x.list_grad()] == [[1, 1, 1]] * 2
    trainer.update(1)
    assert values(x) == [-1, -1]


def test_the_store_updates_unless_asked_not_to(monkeypatch):
    x = parameter(devices=TWO)
    trainer = gluon.Trainer([x], "sgd")
    for method in (trainer.update, trainer.allreduce_grads):
        with pytest.raises(AssertionError, match="Try setting `update_on_kvstore` to False"):
            method(*([1] if method == trainer.update else []))
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", "0")
    asked = gluon.Trainer([x], "sgd")
    backward(x)
    asked.step(1)
    assert asked._update_on_kvstore is False


def test_without_a_store_devices_go_their_own_way():
    x = parameter(devices=TWO)
    trainer = gluon.Trainer([x], "sgd", {"learning_rate": 1.0}, kvstore=None)
    for i, array in enumerate(x.list_data()):
        with autograd.record():
            y = array * (i + 1)
        y.backward()
    trainer.step(1)
    assert values(x) == [-1, -2]


@pytest.mark.parametrize("on_store", MODES)
@pytest.mark.parametrize("name", ["sgd", "adam", "lamb"])
def test_two_devices_are_one_device_on_the_whole_batch(name, on_store):
    data, label = np.random.default_rng(0).normal(size=(8, 5)), np.random.default_rng(1).normal(size=(8, 2))
    results = []
    for devices in ([mx.cpu(0)], TWO):
        mx.random.seed(3)
        net = nn.Dense(2)
        net.initialize(init.Normal(0.5), ctx=devices)
        trainer = gluon.Trainer(net.collect_params(), name, {"learning_rate": 0.1, "wd": 0.01}, update_on_kvstore=on_store)
        for _ in range(3):
            with autograd.record():
                losses = [
                    gluon.loss.L2Loss()(net(x), y)
                    for x, y in zip(gluon.utils.split_and_load(data, devices), gluon.utils.split_and_load(label, devices))
                ]
            for loss in losses:
                loss.backward()
            trainer.step(8)
        results.append([array.asnumpy() for param in net.collect_params().values() for array in param.list_data()])
    for one, first, second in zip(results[0], results[1][::2], results[1][1::2]):
        np.testing.assert_allclose(first, one, rtol=1e-4, atol=1e-6)
        np.testing.assert_array_equal(first, second)


def test_a_store_of_ones_own():
    class Adding:
        type = "mine"

        def __init__(self):
            self.calls = []

        def is_capable(self, capability):
            return False

        def broadcast(self, key, value, out, priority=0):
            self.calls.append(("broadcast", key))

        def pushpull(self, key, value, out=None, priority=0):
            self.calls.append(("pushpull", key))
            KVStore("device").pushpull(key, value, out)

    x, store = parameter(devices=TWO), Adding()
    trainer = gluon.Trainer([x], "sgd", {"learning_rate": 1.0}, kvstore=store)
    backward(x)
    trainer.step(1)
    assert trainer._update_on_kvstore is False
    assert values(x) == [-2, -2]
    assert store.calls == [("broadcast", 0), ("pushpull", 0)]
    with pytest.raises(ValueError, match="Please set update_on_kvstore=False"):
        gluon.Trainer([x], "sgd", kvstore=store, update_on_kvstore=True)._init_kvstore()


def two_weights():
    """Two weights of zeros on two devices, their Trainer, and a step whose gradients are ones on each device, divided by 2."""
    devices = [mx.cpu(0), mx.cpu(1)]
    weights = [gluon.Parameter(name, shape=(2,)) for name in "ab"]
    for weight in weights:
        weight.initialize(mx.init.Zero(), ctx=devices)
    trainer = gluon.Trainer(weights, "sgd", {"learning_rate": 1.0})

    def step():
        with autograd.record():
            losses = [(weights[0].data(device) + weights[1].data(device)).sum() for device in devices]
        autograd.backward(losses)
        trainer.step(2)

    return weights, trainer, step


def test_arrays_that_are_replaced_are_written_from_then_on():
    weights, _, step = two_weights()
    step()
    step()
    weights[0].list_data()[1] = nd.array([5, 5], ctx=mx.cpu(1))
    autograd.mark_variables(weights[0].list_data(), weights[0].list_grad())
    step()
    for weight in weights:
        assert [array.asnumpy().tolist() for array in weight.list_data()] == [[-3, -3]] * 2


@pytest.mark.parametrize("where", ["instance", "class"])
def test_a_pushpull_put_in_place_of_the_stores_is_called(where, monkeypatch):
    weights, trainer, step = two_weights()
    step()
    step()
    store, calls = trainer._kvstore, []
    own = store.pushpull

    def counting(*args, **kwargs):
        calls.append(len(args))
        return own(*args[where == "class" :], **kwargs)

    monkeypatch.setattr(store if where == "instance" else type(store), "pushpull", counting)
    step()
    assert len(calls) == 1
    assert weights[1].data(mx.cpu(1)).asnumpy().tolist() == [-3, -3]


def test_weights_written_by_the_user_count():
    """MXNet's store has a copy of its own, which would overwrite them."""
    x = parameter(devices=TWO)
    trainer = gluon.Trainer([x], "sgd", {"learning_rate": 1.0})
    backward(x)
    trainer.step(1)
    for array in x.list_data():
        array[:] = 10
    backward(x)
    trainer.step(1)
    assert values(x) == [8, 8]


@pytest.mark.parametrize("kvstore", ["local", "device"])
def test_loading_parameters_resets_the_store(tmp_path, kvstore):
    params = gluon.ParameterDict()
    x = params.get("x", shape=(3,))
    params.initialize(init="zeros", ctx=TWO)
    trainer = gluon.Trainer(params, "sgd", {"learning_rate": 0.1, "momentum": 0.9}, kvstore)
    params.save(str(tmp_path / "x.params"))
    backward(x)
    trainer.step(1)
    params.load(str(tmp_path / "x.params"))
    assert trainer._kvstore is None
    assert trainer._kv_initialized is False
    backward(x)
    trainer.step(1)
    np.testing.assert_allclose(values(x), [-0.2, -0.2], rtol=1e-6)


# ---- files


@pytest.mark.parametrize(("devices", "on_store"), [(None, None), (TWO, True), (TWO, False)])
def test_states_in_a_file(tmp_path, devices, on_store):
    path = str(tmp_path / "states")
    x = parameter(devices=devices)
    arguments = {"learning_rate": 0.1, "lr_scheduler": lr_scheduler.FactorScheduler(1, 0.5, base_lr=0.1)}
    trainer = gluon.Trainer([x], "adam", arguments, update_on_kvstore=on_store)
    for _ in range(2):
        backward(x)
        trainer.step(1)
    trainer.save_states(path)
    kept = [array.copy() for array in x.list_data()]
    for factor in (1.0, 3.0):
        backward(x, factor=factor)
        trainer.step(1)
    wanted = values(x)

    other = parameter(devices=devices)
    for target, array in zip(other.list_data(), kept):
        target[:] = array
    second = gluon.Trainer([other], "adam", update_on_kvstore=on_store)
    second.load_states(path)
    assert second.learning_rate == pytest.approx(0.05)
    for factor in (1.0, 3.0):
        backward(other, factor=factor)
        second.step(1)
    assert values(other) == wanted
    other.lr_mult = 2.0  # the loaded optimizer knows the parameters of the trainer
    assert second._optimizer._get_lr(0) == pytest.approx(2 * second.learning_rate)
    updater = second._kvstore._updater if on_store else second._updaters[0]
    assert updater.optimizer is second._optimizer


@pytest.mark.parametrize(("saved", "loaded", "on_store"), [
    (TWO[:1], TWO, False), (TWO, TWO, False), (TWO[1:], TWO[:1], None), (TWO[:1], TWO, True), (TWO, TWO[1:], None),
])  # fmt: skip
@pytest.mark.parametrize("optimizer", ["adam", "nadam", "adamax", "ftml", "sgd"])
def test_states_go_on_from_the_same_step_on_other_devices(tmp_path, saved, loaded, on_store, optimizer):
    """Adam's step depends on how many there were: a device that is new goes on from the count of those that there were."""
    path = str(tmp_path / "states")
    x = parameter(devices=saved)
    trainer = gluon.Trainer([x], optimizer, {"learning_rate": 0.1})
    for _ in range(3):
        backward(x, factor=1 / len(saved))
        trainer.step(1)
    trainer.save_states(path)
    kept = x.list_data()[0].copy()
    backward(x, factor=3 / len(saved))
    trainer.step(1)

    other = parameter(devices=loaded)
    for target in other.list_data():
        target[:] = kept.as_in_context(target.context)
    second = gluon.Trainer([other], optimizer, {"learning_rate": 0.1}, update_on_kvstore=on_store)
    second.load_states(path)
    backward(other, factor=3 / len(loaded))
    second.step(1)
    for array in other.list_data():
        np.testing.assert_allclose(array.asnumpy(), x.list_data()[0].asnumpy(), rtol=1e-6)


@pytest.mark.parametrize(("batch_size", "message"), [
    (0, "batch_size is 0; gradients are divided by it, so it must be above 0"),
    (-2, "must be above 0"),
    (float("nan"), "must be above 0"),
    ("many", "batch_size must be a number, got 'many'"),
    (None, "batch_size must be a number, got None"),
])  # fmt: skip
def test_batch_sizes_that_divide_nothing(batch_size, message):
    net = nn.Dense(1, in_units=1)
    net.initialize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", update_on_kvstore=False)
    for method in (trainer.step, trainer.update):
        with pytest.raises(ArgumentError, match=message):
            method(batch_size)


def test_learning_rates_that_are_no_numbers():
    net = nn.Dense(1, in_units=1)
    net.initialize()
    with pytest.raises(ArgumentError, match="SGD: learning_rate must be a number, got 'fast'"):
        gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": "fast"})
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": np.float32(0.5)})
    with pytest.raises(ArgumentError, match="learning_rate must be a number, got None"):
        trainer.set_learning_rate(None)
    assert trainer.learning_rate == 0.5


def test_a_device_that_is_named_twice():
    with pytest.raises(AssertionError, match=r"on \[cpu\(0\), cpu\(0\)\], a device twice"):
        gluon.Trainer([parameter(devices=[mx.cpu(0), mx.cpu(0)])], "sgd")


def test_errors_about_states_name_the_file(tmp_path):
    net = nn.Dense(1, in_units=1)
    net.initialize()
    (tmp_path / "cut.states").write_bytes(b"\x12\x01")
    for on_store in (False, True):
        trainer = gluon.Trainer(net.collect_params(), "sgd", kvstore=KVStore("local"), update_on_kvstore=on_store)
        with pytest.raises(FileFormatError, match=r"cut\.states: .*byte 0"):
            trainer.load_states(tmp_path / "cut.states")


def test_states_of_mxnet_are_refused(tmp_path):
    path = tmp_path / "states"
    path.write_bytes(pickle.dumps({0: None}))
    trainer = gluon.Trainer([parameter()], "sgd")
    with pytest.raises(FileFormatError, match="this is a pickle"):
        trainer.load_states(str(path))
    with pytest.raises(FileNotFoundError):
        trainer.load_states(str(tmp_path / "absent"))


# ---- what is refused


def test_errors():
    x = parameter()
    with pytest.raises(ValueError, match="must be a list or dict of Parameters, got <class 'str'>"):
        gluon.Trainer("x", "sgd")
    with pytest.raises(ValueError, match="got list of <class 'int'>"):
        gluon.Trainer([1], "sgd")
    with pytest.raises(ValueError, match=r"list or dict of Parameters, got .*Dense.*net\.collect_params\(\): pass these"):
        gluon.Trainer(nn.Dense(2), "sgd")
    for name in ("sgd", "adam"):
        with pytest.raises(TypeError, match=rf"(?i:{name}) takes no argument 'lr'; did you mean 'learning_rate'\? It takes "):
            gluon.Trainer([x], name, {"lr": 1})
    with pytest.raises(ValueError, match="there are no parameters"):
        gluon.Trainer(nn.Flatten().collect_params(), "sgd")
    with pytest.raises(RuntimeError, match="'y' has not been initialized"):
        gluon.Trainer([gluon.Parameter("y", shape=(1,))], "sgd")
    with pytest.raises(AssertionError, match="same set of contexts"):
        gluon.Trainer([x, parameter("y", TWO)], "sgd")
    with pytest.raises(AssertionError, match="optimizer_params must be None"):
        gluon.Trainer([x], optimizer.SGD(), {"wd": 1})
    with pytest.raises(ValueError, match="no optimizer is called 'sdg'"):
        gluon.Trainer([x], "sdg")
    with pytest.raises(ArgumentError, match=r"no kvstore 'dist_async' here \(its servers .*\); choose one of 'local', 'device'"):
        gluon.Trainer([x], "sgd", kvstore="dist_async")
    with pytest.raises(ArgumentError, match="kvstore is 3; the name of a store is wanted"):
        gluon.Trainer([x], "sgd", kvstore=3)
    with pytest.raises(ArgumentError, match="TestStore does not compress"):
        gluon.Trainer([x], "sgd", kvstore=mx.kv.TestStore(), compression_params={"type": "2bit"})._init_kvstore()


def test_parameters_that_moved():
    x = parameter()
    trainer = gluon.Trainer([x], "sgd")
    x.reset_ctx(TWO)
    backward(x)
    with pytest.raises(mx.base.DeviceError, match="make a new Trainer after reset_ctx"):
        trainer.step(1)


def test_deferred_parameters():
    net = nn.Dense(2)
    net.initialize(ctx=TWO)
    trainer = gluon.Trainer([net.weight], "sgd")
    with pytest.raises(gluon.DeferredInitializationError):
        trainer.step(1)


def test_copies_of_parameters_have_no_trainer():
    x = parameter()
    trainer = gluon.Trainer([x], "sgd")
    assert x._trainer is trainer
    assert copy.deepcopy(x)._trainer is None
    x._set_trainer(None)
    assert x._trainer is None


LARS = {"learning_rate": 1.0, "momentum": 0.9, "eta": 0.01}
LBSGD = {"learning_rate": 0.05, "momentum": 0.9, "batch_scale": 2, "warmup_epochs": 1, "updates_per_epoch": 4}


@pytest.mark.parametrize(
    ("name", "given", "on_store", "changes", "weights"),
    [  # of the first device and of the second; MXNet 1.9.1's, where nothing else is said
        ("sgd", {"learning_rate": 0.1, "momentum": 0.9}, False, True, (1.46578026, 1.46578026)),
        ("lars", LARS, False, False, (1.4510304, 1.4510304)),
        ("lars", LARS, False, True, (1.65382397, 1.54932690)),
        ("lars", LARS, True, True, (1.6538198, 1.6538198)),  # MXNet: 1.5491945, as if the momentum were not corrected
        ("lbsgd", {**LBSGD, "batch_scale": 1}, False, True, (1.614029, 1.614029)),
        ("lbsgd", LBSGD, False, False, (1.76405239, 1.28860748)),
        ("lbsgd", LBSGD, True, False, (1.6185429, 1.6185429)),  # MXNet: 1.5966656
        ("nadam", {"learning_rate": 0.1}, True, False, (1.13158917, 1.13158917)),
        ("nadam", {"learning_rate": 0.1}, False, False, (1.13158917, 1.13158917)),  # MXNet: 1.1345445 and 1.1470830
    ],
)
def test_two_devices_after_eight_steps(name, given, on_store, changes, weights):
    """Optimizers that remember something of all steps, which a Trainer with update_on_kvstore=False shares among the devices."""
    numbers = np.random.RandomState(0)
    net = nn.Dense(3, in_units=4)
    net.initialize(ctx=TWO)
    net.weight.set_data(nd.array(numbers.randn(3, 4)))
    net.bias.set_data(nd.array(numbers.randn(3)))
    trainer = gluon.Trainer(net.collect_params(), name, dict(given), kvstore="device", update_on_kvstore=on_store)
    for step in range(8):
        if changes and step == 4:
            trainer.set_learning_rate(given["learning_rate"] * 0.1)
        with autograd.record():
            losses = [(net(nd.array(numbers.randn(5, 4), ctx=device)) ** 2).mean() for device in TWO]
        autograd.backward(losses)
        trainer.step(10)
    found = [float(array[0, 0].asscalar()) for array in net.weight.list_data()]
    np.testing.assert_allclose(found, weights, rtol=1e-5)
