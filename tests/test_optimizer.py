"""Optimizers: steps against MXNet 1.9.1's and NumPy's, multipliers, counts, mixed precision, and states as bytes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import minimx as mx
from minimx import lr_scheduler, nd, optimizer
from minimx.base import FileFormatError
from minimx.optimizer.states import dump, load

BEGIN = [[1, -2], [0.5, 3]]
SLOPE = np.array([[0.3, -0.1], [0.2, 0.7]], "float32")
LIMITS = {"wd": 0.1, "rescale_grad": 0.8, "clip_gradient": 0.5, "learning_rate": 0.05}

#: Name, arguments beside LIMITS, and the weights that MXNet has after three steps with gradients SLOPE, 2 SLOPE, 3 SLOPE.
RECORDED = [
    ("sgd", {}, [0.924315, -1.94623, 0.444697, 2.880599]),
    ("ccsgd", {}, [0.924315, -1.94623, 0.444697, 2.880599]),
    ("sgd", {"momentum": 0.9}, [0.869298, -1.906216, 0.410187, 2.776559]),
    ("nag", {"momentum": 0.9, "wd": 0.0}, [0.846192, -1.941764, 0.383528, 2.798775]),
    ("signum", {}, [0.85, -1.85, 0.35, 2.85]),
    ("signum", {"momentum": 0.0}, [0.835824, -1.820899, 0.343286, 2.805974]),
    ("ftml", {}, [0.885304, -1.8848, 0.37791, 2.89324]),
    ("lars", {"momentum": 0.9}, [0.999652, -1.999744, 0.49977, 2.999356]),
    ("lbsgd", {"batch_scale": 2, "momentum": 0.9, "updates_per_epoch": 1}, [0.9678, -1.9776, 0.4797, 2.944]),
    ("lbsgd", {"batch_scale": 2, "warmup_strategy": "lars"}, [0.948503, -1.964176, 0.467534, 2.910439]),
    ("dcasgd", {}, [0.924337, -1.946232, 0.444708, 2.880639]),
    ("adam", {}, [0.850489, -1.850043, 0.352238, 2.849999]),
    ("adagrad", {}, [0.856992, -1.836062, 0.358449, 2.841677]),
    ("rmsprop", {}, [0.604181, -1.605018, 0.078862, 2.631131]),
    ("rmsprop", {"centered": True}, [0.146749, -1.156971, -0.382982, 2.193681]),
    ("adadelta", {}, [0.696185, -1.423205, 0.329554, 2.159234]),
    ("ftrl", {}, [0.152783, -0.12736, 0.034667, 0.951771]),
    ("adamax", {}, [0.862361, -1.863141, 0.373209, 2.85]),
    ("nadam", {}, [0.862458, -1.861715, 0.354036, 2.871382]),
    ("lamb", {}, [0.745318, -1.723575, 0.258874, 2.694069]),
    ("lamb", {"lower_bound": 0.5, "upper_bound": 1.0}, [0.929424, -1.923415, 0.433199, 2.915206]),
    ("groupadagrad", {"wd": 0.0}, [0.828302, -1.936222, 0.417659, 2.85446]),
    ("test", {}, [2.44, -2.48, 1.46, 6.36]),
]
NAMES = sorted({name for name, _, _ in RECORDED} | {"adamw", "sgld"})


def steps(update, weight, count=3, first=1, index=0):
    for t in range(first, first + count):
        update(index, nd.array(SLOPE * t, dtype=weight.dtype), weight)
    return weight.asnumpy()


def run(name, count=3, dtype="float32", **arguments):
    update = optimizer.get_updater(optimizer.create(name, **arguments))
    return steps(update, nd.array(BEGIN, dtype=dtype), count), update


def flat(state):
    if state is None:
        return []
    return [array for each in state for array in flat(each)] if isinstance(state, (tuple, list)) else [state]


# ---- the steps


@pytest.mark.parametrize(("name", "arguments", "wanted"), RECORDED)
def test_recorded_from_mxnet(name, arguments, wanted):
    weight, _ = run(name, **{**LIMITS, **arguments})
    np.testing.assert_allclose(weight.ravel(), wanted, rtol=1e-4)


@pytest.mark.parametrize(("name", "arguments", "wanted"), [row for row in RECORDED if row[0] != "lars"])
def test_mixed_precision(name, arguments, wanted):
    """The float32 copy of a float16 weight takes the very steps of a float32 weight; the weight is its rounding."""
    weight, update = run(name, dtype="float16", multi_precision=True, **{**LIMITS, **arguments})
    assert weight.dtype == np.float16
    np.testing.assert_allclose(weight.ravel(), wanted, rtol=2e-3)
    state = update.states[0]
    master = state[1] if update.optimizer.master_last else state[0]
    assert master.dtype == np.float32
    np.testing.assert_allclose(master.asnumpy().ravel(), wanted, rtol=1e-3)  # the gradients are rounded to float16
    assert all(array.dtype == np.float32 for array in flat(state))


@pytest.mark.parametrize("name", NAMES)
def test_other_dtypes(name):
    """States have the dtype of the weight. float16 without a float32 copy warns."""
    arguments = {"wd": 0.0} if name == "groupadagrad" else {}
    weight, update = run(name, dtype="float64", **{**LIMITS, **arguments})
    assert weight.dtype == np.float64
    assert all(array.dtype == np.float64 for array in flat(update.states[0]))
    with pytest.warns(UserWarning, match="Accumulating with float16"):
        weight, _ = run(name, dtype="float16", **{**LIMITS, **arguments})
    assert weight.dtype == np.float16
    assert np.isfinite(weight).all()


def test_adamw():
    w, m, v = np.array(BEGIN), 0.0, 0.0
    for t in (1, 2, 3):
        g = np.clip(0.8 * SLOPE * t, -0.5, 0.5)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        factor = np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        w = w - 0.05 * (factor * m / (np.sqrt(v) + 1e-6) + 0.1 * w)
    np.testing.assert_allclose(run("adamw", **LIMITS)[0], w, rtol=1e-5)
    plain = {**LIMITS, "wd": 0.0}
    np.testing.assert_allclose(run("adamw", epsilon=1e-8, **plain)[0], run("adam", **plain)[0], rtol=1e-5)
    one, _ = run("adamw", count=1, correct_bias=False, **plain)
    g = np.clip(0.8 * SLOPE, -0.5, 0.5)
    np.testing.assert_allclose(one, BEGIN - 0.05 * 0.1 * g / (np.sqrt(0.001) * np.abs(g) + 1e-6), rtol=1e-5)


def test_sgld_is_a_step_and_noise():
    mx.random.seed(7)
    weight, _ = run("sgld", count=1, **LIMITS)
    mx.random.seed(7)
    noise = mx.random.normal(0, np.sqrt(0.05), shape=(2, 2)).asnumpy()
    wanted = np.array(BEGIN) - 0.025 * (np.clip(0.8 * SLOPE, -0.5, 0.5) + 0.1 * np.array(BEGIN)) + noise
    np.testing.assert_allclose(weight, wanted, rtol=1e-5)


def test_nag_with_weight_decay():
    """MXNet differs in the third digit: its operator has written the new weight when it reads the weight for the momentum's decay."""
    w, m = np.array(BEGIN), 0.0
    for t in (1, 2, 3):
        move = 0.05 * (np.clip(0.8 * SLOPE * t, -0.5, 0.5) + 0.1 * w)
        m = 0.9 * m - move
        w = w + 0.9 * m - move
    np.testing.assert_allclose(run("nag", momentum=0.9, **LIMITS)[0], w, rtol=1e-5)


def test_dcasgd_with_momentum():
    w = before = np.array(BEGIN)
    m = 0.0
    for t in (1, 2, 3):
        g = SLOPE * t
        m = 0.9 * m - 0.05 * (g + 0.04 * g * g * (w - before))
        before, w = w, w + m
    np.testing.assert_allclose(run("dcasgd", momentum=0.9, learning_rate=0.05)[0], w, rtol=1e-5)


def test_adamax_where_no_gradient_ever_came():
    update, weight = optimizer.get_updater(optimizer.create("adamax")), nd.ones((2,))
    update(0, nd.array([0, 1]), weight)
    np.testing.assert_allclose(weight.asnumpy(), [1, 1 - 0.002], rtol=1e-6)


def test_lbsgd_adds_gradients_even_if_one_buffer_holds_them():
    update, weight, grad = (
        optimizer.get_updater(optimizer.create("lbsgd", batch_scale=2, learning_rate=1)),
        nd.zeros((1,)),
        nd.ones((1,)),
    )
    update(0, grad, weight)
    assert weight.asscalar() == 0
    grad[:] = 3
    update(0, grad, weight)
    assert weight.asscalar() == pytest.approx(-2 * (1 + 2 / 160))  # the mean, at a rate that has begun to warm up


@pytest.mark.parametrize("strategy", ["linear", "power2", "sqrt"])
def test_lbsgd_warms_up(strategy):
    made = optimizer.LBSGD(batch_scale=4, warmup_strategy=strategy, warmup_epochs=1, updates_per_epoch=16)
    rates = [made._get_lbmult(n) for n in range(20)]
    assert rates[0] == 1
    assert rates[16:] == [4.0] * 4
    assert rates == sorted(rates)
    assert rates[4] == pytest.approx(1 + 3 * {"linear": 0.25, "power2": 0.0625, "sqrt": 0.5}[strategy])


def test_lars_keeps_the_rate_of_biases_and_corrects_momentum():
    schedule = lr_scheduler.FactorScheduler(1, 0.5, base_lr=0.4)
    made = optimizer.LARS(momentum=0.5, lr_scheduler=schedule, param_idx2name={0: "a_bias"})
    update, weight = optimizer.get_updater(made), nd.zeros((1,))
    update(0, nd.ones((1,)), weight)
    assert weight.asscalar() == pytest.approx(-0.4)
    update(0, nd.ones((1,)), weight)  # the rate is 0.2 now, and so half of the momentum counts
    assert weight.asscalar() == pytest.approx(-0.4 - 0.2 - 0.25 * 0.4)


@pytest.mark.parametrize("name", ["sgd", "lars", "lamb"])
@pytest.mark.parametrize("mixed", [False, True])
def test_lists(name, mixed):
    """Several weights at once are updated as one after the other."""
    dtype = "float16" if mixed else "float32"
    arguments = {**LIMITS, "multi_precision": mixed, **({} if name == "lamb" else {"momentum": 0.9})}
    results = []
    for together in (True, False):
        made = optimizer.create(name, **arguments)
        weights = [nd.array(np.array(BEGIN) * (i + 1), dtype=dtype) for i in range(3)]
        grads = [nd.array(SLOPE + i, dtype=dtype) for i in range(3)]
        states = [made.create_state_multi_precision(i, weights[i]) for i in range(3)]
        for _ in range(2):
            if together:
                made.update_multi_precision([0, 1, 2], weights, grads, states)
            else:
                for i in range(3):
                    made.update_multi_precision(i, weights[i], grads[i], states[i])
        results.append([array.asnumpy() for array in [*weights, *flat(states)]])
    for one, two in zip(*results):
        np.testing.assert_allclose(one, two, rtol=1e-5)


def test_updater_groups_by_dtype_and_size():
    class Recording(optimizer.Test):
        def __init__(self):
            super().__init__()
            self.aggregate_num = 2
            self.seen = []

        def update_multi_precision(self, index, weight, grad, state):
            self.seen.append(index)

    made = Recording()
    weights = [nd.ones((1,), dtype=dtype) for dtype in ("float32", "float64", "float32", "float32")]
    optimizer.get_updater(made)([0, 1, "b", "c"], weights, weights)
    assert made.seen == [[0, "b"], ["c"], [1]]


# ---- rates and counts


def test_learning_rate():
    made = optimizer.Optimizer()
    assert made.learning_rate == 0.01
    made.set_learning_rate(0.2)
    assert made.learning_rate == 0.2
    schedule = lr_scheduler.FactorScheduler(step=1)
    with pytest.warns(UserWarning, match=r"learning rate 0.01 of the lr_scheduler is overwritten by learning_rate=0.3"):
        scheduled = optimizer.Optimizer(lr_scheduler=schedule, learning_rate=0.3)
    assert scheduled.learning_rate == 0.3
    scheduled.lr_scheduler.base_lr = 0.4
    assert scheduled.learning_rate == 0.4
    with pytest.raises(UserWarning, match="LRScheduler of the optimizer has already been defined"):
        scheduled.set_learning_rate(0.5)
    assert optimizer.Ftrl(lr_scheduler=lambda n: 7.0, learning_rate=None).learning_rate == 7.0


def test_multipliers_by_parameter_index_and_name():
    class Described:
        lr_mult, wd_mult = 2.0, 3.0

    names = {0: "a_weight", 1: "b_weight", 2: "c_bias", 3: "d_gamma"}
    made = optimizer.SGD(learning_rate=1.0, wd=1.0, param_idx2name=names, param_dict={0: Described})
    made.set_lr_mult({0: 9.0, 1: 0.5, "c_bias": 0.0})
    made.set_wd_mult({"b_weight": 0.25})
    assert made._get_lrs([0, 1, 2, 3, 4]) == [2.0, 0.5, 0.0, 1.0, 1.0]
    assert made._get_wds([0, 1, 2, 3, 4]) == [3.0, 0.25, 0.0, 1.0, 1.0]
    Described.lr_mult = 5.0
    assert made._get_lr(0) == 5.0
    assert optimizer.LARS(wd=1.0, param_idx2name=names)._get_wds([0, 3]) == [1.0, 0.0]


def test_multipliers_of_a_symbol():
    data, bias = mx.sym.var("data"), mx.sym.var("fc1_bias", lr_mult=1.0)
    fc1 = mx.sym.FullyConnected(data=data, bias=bias, name="fc1", num_hidden=10, attr={"__lr_mult__": "0"})
    fc2 = mx.sym.FullyConnected(data=fc1, name="fc2", num_hidden=10, attr={"__wd_mult__": "0.5"})
    names = dict(enumerate(["fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"]))
    made = optimizer.SGD(sym=fc2, param_idx2name=names)
    assert made.lr_mult == {"fc1_bias": 1.0, "fc1_weight": 0.0}
    assert made.wd_mult == {"fc2_bias": 0.5, "fc2_weight": 0.5, "fc1_bias": 0.0}


def test_counts():
    made = optimizer.SGD(begin_num_update=10)
    made._update_count([0, 1])
    made._update_count(0)
    made._set_current_context(1)  # copies on another device do not count twice
    made._update_count(0)
    assert made.num_update == 12
    assert made._all_index_update_counts == {0: {0: 12, 1: 11}, 1: {0: 11}}


def test_schedule_drives_the_steps():
    update = optimizer.get_updater(optimizer.SGD(lr_scheduler=lr_scheduler.FactorScheduler(1, 0.5, base_lr=1.0)))
    weight, seen = nd.zeros((1,)), []
    for _ in range(3):
        update(0, nd.ones((1,)), weight)
        seen.append(weight.asscalar())
    assert seen == [-1.0, -1.5, -1.75]


# ---- names


def test_registration():
    @optimizer.register
    class Still(optimizer.Optimizer):
        def update(self, index, weight, grad, state):
            pass

    assert isinstance(optimizer.create("still", wd=0.5), Still)
    assert isinstance(mx.opt.Optimizer.create_optimizer("STILL"), Still)
    assert optimizer.Optimizer.opt_registry["still"] is Still
    assert isinstance(optimizer.create("groupadagrad"), optimizer.contrib.GroupAdaGrad)
    del optimizer.Optimizer.opt_registry["still"]
    with pytest.raises(ValueError, match="no optimizer is called 'still'"):
        optimizer.create("still")


def test_errors():
    with pytest.raises(NotImplementedError, match="Optimizer must override update"):
        optimizer.Optimizer().update(0, None, None, None)
    with pytest.raises(AssertionError, match="param_idx2name must be a dict"):
        optimizer.Optimizer(param_idx2name=["a"])
    with pytest.raises(ValueError, match="warmup_strategy='no'"):
        optimizer.LBSGD(warmup_strategy="no")
    with pytest.raises(ValueError, match="batch_scale=0"):
        optimizer.LBSGD(batch_scale=0)
    with pytest.raises(AssertionError, match=r"GroupAdaGrad: weight 0 has shape \(2,\)"):
        optimizer.create("groupadagrad").create_state(0, nd.ones((2,)))
    with pytest.raises(AssertionError, match="weight decay is not supported"):
        run("groupadagrad", wd=0.1)


# ---- states as bytes


@pytest.mark.parametrize("name", [name for name in NAMES if name != "sgld"])
@pytest.mark.parametrize("dump_optimizer", [False, True])
def test_a_training_goes_on_from_its_states(name, dump_optimizer):
    arguments = {**LIMITS, **({"wd": 0.0} if name == "groupadagrad" else {})}
    through, _ = run(name, count=5, **arguments)
    half, update = run(name, count=2, **arguments)
    saved = update.get_states(dump_optimizer)
    fresh = optimizer.get_updater(optimizer.create(name, **({} if dump_optimizer else arguments)))
    fresh.set_states(saved)
    if not dump_optimizer:
        fresh.optimizer = copy.deepcopy(update.optimizer)
    np.testing.assert_array_equal(steps(fresh, nd.array(half), first=3), through)
    assert fresh.optimizer.num_update == (0 if name == "test" else 5)


def test_states_with_a_schedule_and_mixed_precision():
    schedule = lr_scheduler.MultiFactorScheduler([2, 3], 0.5, base_lr=0.1)
    update = optimizer.get_updater(optimizer.SGD(momentum=0.9, multi_precision=True, lr_scheduler=schedule))
    steps(update, nd.array(BEGIN, dtype="float16"), index="first")
    states, made = load(update.get_states(dump_optimizer=True))
    momentum, master = states["first"]
    np.testing.assert_array_equal(momentum.asnumpy(), update.states["first"][0].asnumpy())
    np.testing.assert_array_equal(master.asnumpy(), update.states["first"][1].asnumpy())
    assert type(made.lr_scheduler) is lr_scheduler.MultiFactorScheduler
    assert vars(made.lr_scheduler) == vars(schedule)
    assert made.lr_scheduler is not schedule
    assert made._index_update_count == {"first": 3}


def test_what_has_no_place_in_a_file_stays():
    def rate(n):
        return 0.5

    saved = optimizer.get_updater(optimizer.SGD(lr_scheduler=rate, momentum=0.25)).get_states(True)
    there = optimizer.get_updater(optimizer.SGD(lr_scheduler=rate))
    there.set_states(saved)
    assert there.optimizer.lr_scheduler is rate
    assert there.optimizer.momentum == 0.25


def test_a_schedule_with_a_function_of_its_own():
    class Mapped(lr_scheduler.LRScheduler):
        def __init__(self, function):
            super().__init__(0.1)
            self.function, self.seen = function, 0

        def __call__(self, num_update):
            self.seen = num_update
            return self.function(num_update)

    saved, there = Mapped(float), Mapped(float)
    saved(5)
    update = optimizer.get_updater(optimizer.SGD(lr_scheduler=there))
    update.set_states(optimizer.get_updater(optimizer.SGD(lr_scheduler=saved)).get_states(True))
    loaded = update.optimizer.lr_scheduler
    assert loaded is not there
    assert loaded.seen == 5
    assert loaded.function is float


def test_an_attribute_of_which_a_part_has_no_place_stays_whole():
    saved, there = optimizer.SGD(), optimizer.SGD()
    saved.mixed, there.mixed = [nd.ones((1,)), len], "there"
    saved.flag = np.bool_(True)
    update = optimizer.get_updater(there)
    update.set_states(optimizer.get_updater(saved).get_states(True))
    assert update.optimizer.mixed == "there"
    assert update.optimizer.flag is True
    with pytest.raises(TypeError, match="states: they hold a value of type ndarray, which has no place"):
        dump({0: np.ones(1)})


def test_states_go_to_the_device_of_the_weight():
    update = optimizer.get_updater(optimizer.SGD(momentum=0.9))
    steps(update, nd.array(BEGIN))
    other = optimizer.get_updater(optimizer.SGD(momentum=0.9))
    other.set_states(update.get_states())
    weight = nd.array(BEGIN, ctx=mx.cpu(1))
    other(0, nd.array(SLOPE, ctx=mx.cpu(1)), weight)
    assert other.states[0].context == mx.cpu(1)


def test_states_of_every_kind():
    states = {0: None, "a": (1, 2.5, float("inf"), True, "text"), 2: [nd.array([1, 2]), {"k": np.float32(0.5)}], 3: ()}
    found, made = load(dump(states))
    assert made is None
    assert found[0] is None
    assert found["a"] == states["a"]
    assert found[2][0].asnumpy().tolist() == [1, 2]
    assert found[2][1] == {"k": 0.5}
    assert found[3] == ()


def test_broken_states():
    update = optimizer.get_updater(optimizer.Adam())
    steps(update, nd.array(BEGIN))
    saved = update.get_states(dump_optimizer=True)
    with pytest.raises(FileFormatError, match="this is a pickle, as MXNet writes it"):
        update.set_states(pickle.dumps({}))
    with pytest.raises(FileFormatError, match="byte"):
        update.set_states(saved[: len(saved) // 2])

    def with_text(text):
        array = nd.array(np.frombuffer(text.encode(), np.uint8), dtype="uint8")
        return dump_arrays({"json": array})

    def dump_arrays(arrays):
        return b"".join(bytes(piece) for piece in nd.serialize.encode([a.asnumpy() for a in arrays.values()], list(arrays)))

    for text, message in [
        ("{", "the text is damaged"),
        ("[]", "the text is damaged"),
        ('{"format": 2}', "format 2 is not known"),
        ('{"format": 1, "states": [[0, {"array": 3}]], "optimizer": null}', "KeyError"),
        ('{"format": 1, "states": [[0, {}]], "optimizer": null}', "StopIteration"),
        ('{"format": 1, "states": [[0, {"function": 3}]], "optimizer": null}', "no kind of value called 'function'"),
        ('{"format": 1, "states": [], "optimizer": {"class": "os", "attributes": []}}', "no optimizer is called 'os'"),
        (
            '{"format": 1, "states": [], "optimizer": {"class": "sgd", "attributes": [["update", 1]]}}',
            "SGD can have no attribute 'update'",
        ),
        (
            '{"format": 1, "states": [], "optimizer": {"class": "sgd", "attributes": [["s", {"scheduler": "X", "attributes": []}]]}}',
            "no lr_scheduler is called 'X'",
        ),
    ]:
        with pytest.raises(FileFormatError, match=message):
            load(with_text(text))
    with pytest.raises(FileFormatError, match="without the text"):
        load(dump_arrays({"w": nd.ones((1,))}))
    assert update.states  # what failed to load changed nothing


def test_copies_go_without_parameters():
    made = optimizer.Adam(param_dict={0: object()})
    made._update_count(0)
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert other.param_dict == {}
        assert other.num_update == 1


# ---- many weights at once


ONE_OPERATOR = ("sgd", "nag", "signum", "adam", "adamw", "adagrad", "rmsprop", "ftrl", "ftml")


def trained(name, size, monkeypatch, dtype="float32", **arguments):
    """Weights and states after two steps of five weights, of which `size` are updated at once, and the names of what ran."""
    if size is None:
        monkeypatch.delenv("MXNET_OPTIMIZER_AGGREGATION_SIZE", raising=False)
    else:
        monkeypatch.setenv("MXNET_OPTIMIZER_AGGREGATION_SIZE", str(size))
    update = optimizer.get_updater(optimizer.create(name, **arguments))
    shapes = [(2, 3), (1,), (70_000, 2), (600, 1000), (4, 1, 2)]
    weights = [nd.array(np.linspace(-1, 1, int(np.prod(shape))).reshape(shape), dtype=dtype) for shape in shapes]
    ran = []
    with mx.engine.trace() as events:
        for _ in range(2):
            update(list(range(5)), [weight * 0.3 + 0.1 for weight in weights], weights)
        nd.waitall()
    ran = [event[1] for event in events if event[1].startswith("update")]
    return [array.asnumpy() for array in [*weights, *(each for i in range(5) for each in flat(update.states[i]))]], ran


@pytest.mark.parametrize("name", ONE_OPERATOR)
@pytest.mark.parametrize(("dtype", "mixed"), [("float32", False), ("float16", False), ("float16", True)])
@pytest.mark.filterwarnings("ignore:Accumulating with float16")
def test_weights_updated_together_are_those_updated_alone(name, dtype, mixed, monkeypatch):
    given = {"wd": 0.01, "rescale_grad": 0.5, "clip_gradient": 0.3, "learning_rate": 0.1, "multi_precision": mixed}
    together, _ = trained(name, None, monkeypatch, dtype, **given)
    for size in (1, 2, 4):
        for one, two in zip(together, trained(name, size, monkeypatch, dtype, **given)[0]):
            np.testing.assert_array_equal(one, two)


def test_all_weights_are_one_operation(monkeypatch):
    assert len(trained("sgd", None, monkeypatch)[1]) == 2
    assert len(trained("sgd", 1, monkeypatch)[1]) >= 2


def test_an_optimizer_that_overrides_update_gets_weights_one_by_one():
    class Bounded(optimizer.SGD):
        def update(self, index, weight, grad, state):
            super().update(index, weight, grad, state)
            weight[:] = nd.clip(weight, -0.1, 0.1)

    update = optimizer.get_updater(Bounded(learning_rate=1.0))
    weights = [nd.ones((2,)), nd.zeros((3,))]
    update([0, 1], [nd.array([0.5, 0.95]), nd.ones((3,))], weights)
    np.testing.assert_allclose(np.concatenate([weight.asnumpy() for weight in weights]), [0.1, 0.05, -0.1, -0.1, -0.1], rtol=1e-6)


def test_weights_stay_where_they_are():
    weight = nd.ones((300, 300))
    weight.wait_to_read()
    part, memory = weight[1], weight.var.value
    optimizer.get_updater(optimizer.create("sgd", learning_rate=0.5))(0, nd.ones((300, 300)), weight)
    assert part.asnumpy().tolist() == [0.5] * 300
    assert weight.var.value is memory


def test_an_update_while_recording_is_refused():
    weight = nd.ones((2,))
    weight.attach_grad()
    with mx.autograd.record(), pytest.raises(mx.MXNetError, match="update would overwrite an array that is in the graph"):
        optimizer.SGD().update(0, weight, nd.ones((2,)), None)


def test_a_gradient_that_failed_spoils_the_weights_it_was_for():
    good, bad = nd.ones((2,)), nd.ones((2,))
    optimizer.get_updater(optimizer.SGD())([0, 1], [nd.ones((2,)), nd.Dropout(nd.ones((2,)), p=1, mode="always")], [good, bad])
    with pytest.raises(mx.MXNetError, match="p=1 drops everything"):
        bad.asnumpy()


def test_shapes_are_checked_before_anything_is_updated():
    weights = [nd.ones((2,)), nd.ones((3,))]
    with pytest.raises(mx.MXNetError, match=r"sgd_update: grad has shape \(2,\), weight has \(3,\)"):
        optimizer.get_updater(optimizer.SGD())([0, 1], [nd.ones((2,)), nd.ones((2,))], weights)
    assert weights[0].asnumpy().tolist() == [1, 1]


def test_a_weight_may_come_twice():
    weight = nd.ones((1500, 1000))
    optimizer.get_updater(optimizer.SGD(learning_rate=0.25))([0, 1], [nd.ones((1500, 1000))] * 2, [weight, weight])
    assert np.unique(weight.asnumpy()).tolist() == [0.5]
    optimizer.SGD(learning_rate=0.25).update([], [], [], [])


@pytest.mark.parametrize(("name", "first"), [("SGD", "momentum"), ("Adam", "learning_rate"), ("RMSProp", "learning_rate")])
def test_a_dict_of_arguments_is_told(name: str, first: str) -> None:
    """As a Trainer takes one; else it would be the first argument."""
    with pytest.raises(
        mx.base.ArgumentError, match=rf"{name} takes its arguments by name, {name}\({first}=...\), and not in a dict"
    ):
        getattr(mx.optimizer, name)({"lr": 0.1})

    class Own(mx.optimizer.Optimizer):
        def __init__(self, options: dict[str, float]) -> None:
            super().__init__(**options)

    assert Own({"learning_rate": 0.25}).lr == 0.25
