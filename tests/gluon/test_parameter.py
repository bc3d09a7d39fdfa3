"""One parameter, and dicts of them: beginning, devices, gradients, changes, sharing, text and files."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, init
from minimx.base import ArgumentError, DTypeError, MXNetError
from minimx.gluon.parameter import DeferredInitializationError, ParameterError

CPUS = [mx.cpu(0), mx.cpu(1)]


def parameter(shape=(2, 3), **kwargs):
    return gluon.Parameter("weight", shape=shape, **kwargs)


def started(shape=(2, 3), ctx=None, **kwargs):
    param = parameter(shape, **kwargs)
    param.initialize(init.One() if param.init is None else None, ctx)
    return param


# ---- beginning


def test_values_and_gradients_on_every_device():
    param = parameter(init="xavier")
    param.initialize(ctx=CPUS)
    assert [array.context for array in param.list_data()] == CPUS
    assert [array.context for array in param.list_grad()] == CPUS
    assert param.list_ctx() == CPUS
    np.testing.assert_array_equal(param.data(mx.cpu(0)).asnumpy(), param.data(mx.cpu(1)).asnumpy())
    assert (param.grad(mx.cpu(1)).asnumpy() == 0).all()
    with mx.cpu(1):
        assert param.data().context == mx.cpu(1)
    with pytest.raises(RuntimeError, match="was not initialized on context cpu\\(2\\)"):
        param.data(mx.cpu(2))


def test_pinned_memory_is_the_cpu():
    assert started().data(mx.cpu_pinned()).context == mx.cpu()


def test_the_current_context_is_the_default():
    with mx.cpu(3):
        assert started().list_ctx() == [mx.cpu(3)]


@pytest.mark.parametrize(
    ("own", "given", "default", "value"),
    [
        ("ones", None, None, 1),
        (None, None, init.Constant(3), 3),
        ("ones", init.Constant(2), None, 2),
        ("ones", None, init.Zero(), 1),
    ],
)
def test_which_initializer_counts(own, given, default, value):
    param = parameter(init=own)
    param.initialize(given, default_init=default)
    assert (param.data().asnumpy() == value).all()


def test_without_any_initializer_values_are_uniform():
    mx.random.seed(1)
    param = parameter((50, 50))
    param.initialize()
    assert 0.06 < abs(param.data().asnumpy()).max() <= 0.07


def test_mixed_and_load_are_initializers_of_a_network():
    params = gluon.ParameterDict("net_")
    params.get("a", shape=(2,))
    params.get("b", shape=(2,), init="zeros")
    params.initialize(init.Mixed([".*a", ".*"], [init.Load({"net_a": mx.nd.array([5, 6])}), init.One()]))
    assert params["net_a"].data().asnumpy().tolist() == [5, 6]
    assert params["net_b"].data().asnumpy().tolist() == [0, 0]


def test_a_second_initialize_is_ignored_with_a_warning():
    param = started()
    with pytest.warns(UserWarning, match="already initialized, ignoring"):
        param.initialize(init.Zero())
    assert (param.data().asnumpy() == 1).all()
    param.initialize(init.Zero(), force_reinit=True)
    assert (param.data().asnumpy() == 0).all()


def test_before_initialize_there_is_nothing():
    param = parameter()
    for ask in (param.data, param.list_data, param.grad, param.list_grad, param.list_ctx):
        with pytest.raises(RuntimeError, match="has not been initialized") as raised:
            ask()
        assert not isinstance(raised.value, DeferredInitializationError)
    with pytest.raises(AssertionError, match="has not been initialized"):
        param.set_data(mx.nd.ones((2, 3)))
    with pytest.raises(ValueError, match="has not been initialized"):
        param.reset_ctx(mx.cpu(1))


@pytest.mark.parametrize("shape", [(2, 0), None, (0,)])
def test_an_unknown_shape_must_be_allowed(shape):
    with pytest.raises(ValueError, match="invalid shape"):
        parameter(shape).initialize()
    param = parameter(shape, allow_deferred_init=True)
    param.initialize()
    for ask in (param.data, param.list_data, param.grad, param.list_grad):
        with pytest.raises(DeferredInitializationError, match="deferred"):
            ask()
    assert issubclass(DeferredInitializationError, MXNetError)
    with pytest.raises(AssertionError, match="specify in_units"):
        param._finish_deferred_init()


def test_deferred_initialization_is_completed():
    param = parameter((2, 0), allow_deferred_init=True)
    param.initialize(init.Constant(4), ctx=CPUS)
    assert param.list_ctx() == CPUS
    param.reset_ctx(mx.cpu(2))
    param.shape = (2, 5)
    param._finish_deferred_init()
    assert param.list_ctx() == [mx.cpu(2)]
    assert param.data().shape == (2, 5)
    assert (param.data().asnumpy() == 4).all()
    param._finish_deferred_init()  # nothing waits any more


def test_set_data_while_deferred_is_kept():
    param = parameter((2, 0), allow_deferred_init=True, dtype="float16")
    param.initialize()
    param.set_data([[1, 2, 3], [4, 5, 6]])
    assert param.shape == (2, 3)
    param._finish_deferred_init()
    assert param.data().dtype == np.float16
    assert param.data().asnumpy().tolist() == [[1, 2, 3], [4, 5, 6]]
    param = parameter((2, 0), allow_deferred_init=True)
    param.initialize()
    param.set_data(mx.nd.ones((2, 3)))
    param.cast("float64")
    param._finish_deferred_init()
    assert param.data().dtype == np.float64


@pytest.mark.parametrize("value", [3, "cpu", [], [mx.cpu(), 3]])
def test_devices_must_be_contexts(value):
    with pytest.raises((ArgumentError, TypeError)):
        parameter().initialize(ctx=value)


# ---- shapes, dtypes, storage


def test_shapes_can_only_be_completed():
    param = parameter((0, 3))
    with pytest.raises(AssertionError, match="incompatible"):
        param.shape = (2, 4)
    with pytest.raises(AssertionError, match="incompatible"):
        param.shape = (2, 3, 1)
    param.shape = (2, 3)
    assert param.shape == (2, 3)
    assert parameter(4).shape == (4,)
    assert parameter((-1, 3)).shape == (0, 3)
    nothing = parameter(None)
    nothing.shape = (5,)
    assert nothing.shape == (5,)
    with pytest.raises(ValueError, match="negative"):
        parameter((-2, 3))


def test_cast_keeps_values_and_the_place_on_the_tape():
    param = started(ctx=CPUS)
    param.cast("float64")
    assert {array.dtype for array in [*param.list_data(), *param.list_grad()]} == {np.float64}
    assert param.dtype == "float64"
    with autograd.record():
        loss = (param.data(mx.cpu(1)) * 3).sum()
    loss.backward()
    assert (param.grad(mx.cpu(1)).asnumpy() == 3).all()
    param.dtype = "float16"
    assert param.data(mx.cpu(0)).dtype == np.float16
    early = parameter()
    early.cast("float16")
    early.initialize()
    assert early.data().dtype == np.float16


def test_what_does_not_exist_is_refused():
    with pytest.raises(AssertionError, match="stype='invalid'"):
        parameter(stype="invalid")
    with pytest.raises(AssertionError, match="grad_stype='invalid'"):
        parameter(grad_stype="invalid")
    with pytest.raises(RuntimeError, match="only dense arrays"):
        parameter(stype="row_sparse")
    with pytest.raises(DTypeError):
        parameter(dtype="complex64")
    assert parameter(grad_stype="row_sparse").grad_req == "write"


# ---- gradients


def backward(param, factor=3):
    with autograd.record():
        loss = (param.data() * factor).sum()
    loss.backward()


def test_grad_req_write_add_and_null():
    param = started()
    backward(param)
    backward(param)
    assert (param.grad().asnumpy() == 3).all()
    param.grad_req = "add"
    backward(param)
    backward(param)
    assert (param.grad().asnumpy() == 6).all()
    param.zero_grad()
    assert (param.grad().asnumpy() == 0).all()
    param.grad_req = "null"
    assert param._grad is None
    for ask in (param.grad, param.list_grad):
        with pytest.raises(RuntimeError, match="grad_req='null'"):
            ask()
    with pytest.raises(MXNetError):
        backward(param)
    param.zero_grad()
    param.grad_req = "write"
    backward(param)
    assert (param.grad().asnumpy() == 3).all()


def test_grad_req_before_initialize():
    param = parameter(grad_req="null")
    param.initialize()
    assert param._grad is None
    with pytest.raises(AssertionError, match="grad_req must be one of"):
        param.grad_req = "sum"
    fixed = parameter(differentiable=False)
    assert fixed.grad_req == "null"
    fixed.grad_req = "write"
    assert fixed.grad_req == "null"


def test_set_data_reaches_every_device_and_keeps_the_gradient():
    param = started(ctx=CPUS)
    param.set_data(mx.nd.full((2, 3), 5))
    assert [array.asnumpy().max() for array in param.list_data()] == [5, 5]
    with pytest.raises(AssertionError, match="incompatible"):
        param.set_data(mx.nd.ones((3, 3)))
    with mx.cpu(0):
        backward(param)
    assert (param.grad(mx.cpu(0)).asnumpy() == 3).all()


def test_reset_ctx_takes_the_mean_along():
    param = started(ctx=CPUS)
    param.data(mx.cpu(1))[:] = 3
    param.reset_ctx([mx.cpu(1), mx.cpu(2)])
    assert param.list_ctx() == [mx.cpu(1), mx.cpu(2)]
    assert (param.data(mx.cpu(2)).asnumpy() == 2).all()


# ---- as a variable


def test_var_is_one_variable_with_what_is_known():
    param = parameter((2, 0), lr_mult=0.5, wd_mult=2.0, init=init.Normal(0.1), dtype="float16")
    variable = param.var()
    assert variable is param.var()
    assert variable.name == "weight"
    attrs = variable.list_attr()
    assert attrs["__shape__"] == "(2, 0)"
    assert attrs["__dtype__"] == "2"
    assert (attrs["lr_mult"], attrs["wd_mult"]) == ("0.5", "2.0")
    assert attrs["__init__"] == '["normal", {"sigma": 0.1}]'
    param.cast("float32")
    assert param.var().attr("__dtype__") == "0"


# ---- copies


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_copies_are_independent_and_differentiable(duplicate):
    param = started()
    backward(param)
    other = duplicate(param)
    other.set_data(mx.nd.full((2, 3), 4))
    assert (param.data().asnumpy() == 1).all()
    assert (other.grad().asnumpy() == 0).all()
    backward(other, 5)
    assert (other.grad().asnumpy() == 5).all()
    assert (param.grad().asnumpy() == 3).all()
    assert duplicate(parameter((2, 0))).shape == (2, 0)


# ---- constants


def test_constants_never_learn():
    constant = gluon.Constant("c", [[1, 2], [3, 4]])
    constant.initialize()
    assert constant.data().asnumpy().tolist() == [[1, 2], [3, 4]]
    assert constant.grad_req == "null"
    with pytest.warns(UserWarning, match="is ignored"):
        constant.grad_req = "write"
    assert constant.grad_req == "null"
    assert str(constant) == "Constant c (shape=(2, 2), dtype=<class 'numpy.float32'>)"
    x = mx.nd.ones((2, 2))
    x.attach_grad()
    with autograd.record():
        loss = (x * constant.data()).sum()
    loss.backward()
    assert x.grad.asnumpy().tolist() == [[1, 2], [3, 4]]
    constant.set_data(mx.nd.zeros((2, 2)))
    assert (constant.data().asnumpy() == 0).all()
    constant.initialize(force_reinit=True)
    assert constant.data().asnumpy().tolist() == [[1, 2], [3, 4]]
    assert copy.deepcopy(constant).data().asnumpy().tolist() == [[1, 2], [3, 4]]


# ---- dicts


def test_get_makes_shares_and_completes():
    params = gluon.ParameterDict("net_")
    weight = params.get("weight", shape=(3, 0), dtype="float32")
    assert weight.name == "net_weight"
    assert params.get("weight", shape=(0, 4), dtype=np.float32) is weight
    assert weight.shape == (3, 4)
    assert params.get("weight", init="ones").init == "ones"
    assert params.get("weight", allow_deferred_init=True) is weight
    shared = gluon.ParameterDict("net_", params)
    assert list(shared) == []
    assert shared.get("weight") is weight
    assert list(shared.keys()) == ["net_weight"]
    assert "net_weight" in shared
    assert "net_bias" not in shared
    assert shared.get("bias", shape=3) is not params.get("bias", shape=3)


@pytest.mark.parametrize(
    ("key", "value"),
    [("shape", (3, 5)), ("shape", (3,)), ("dtype", "float16"), ("grad_req", "null"), ("init", "ones"), ("lr_mult", 2.0)],
)
def test_get_refuses_another_attribute(key, value):
    params = gluon.ParameterDict()
    params.get("w", shape=(3, 4), init="zeros")
    with pytest.raises(AssertionError, match=f"attribute '{key}'"):
        params.get("w", **{key: value})
    with pytest.raises(TypeError, match="no attribute 'colour'"):
        params.get("w", colour=1)


def test_get_constant():
    params = gluon.ParameterDict("net_")
    with pytest.raises(KeyError, match="No constant named 'net_c'"):
        params.get_constant("c")
    constant = params.get_constant("c", [1, 2])
    assert params.get_constant("c") is constant
    assert params.get_constant("c", mx.nd.array([1, 2])) is constant
    with pytest.raises(AssertionError, match="value doesn't match"):
        params.get_constant("c", [1, 3])
    params.get("w", shape=(2,))
    with pytest.raises(AssertionError, match="not a constant"):
        params.get_constant("w", [1, 2])


def test_update_refuses_two_of_one_name():
    first, second = gluon.ParameterDict("a_"), gluon.ParameterDict("a_")
    first.get("w", shape=(1,))
    second.update(first)
    second.update(first)
    assert second["a_w"] is first["a_w"]
    third = gluon.ParameterDict("a_")
    third.get("w", shape=(1,))
    with pytest.raises(AssertionError, match="different Parameters with the same name 'a_w'"):
        third.update(first)
    assert list(third.values()) != list(first.values())


def test_all_at_once():
    params = gluon.ParameterDict()
    params.get("a", shape=(2,), init="ones")
    params.get("b", shape=(2,))
    params.initialize("zeros", ctx=CPUS, verbose=True)
    assert [float(p.data(mx.cpu(0)).asnumpy()[0]) for p in params.values()] == [1, 0]
    assert params.list_ctx() == CPUS
    params.reset_ctx(mx.cpu(2))
    assert params.list_ctx() == [mx.cpu(2)]
    params.setattr("lr_mult", 3)
    assert params["b"].lr_mult == 3
    params.setattr("grad_req", "add")
    backward(params["a"])
    params.zero_grad()
    assert (params["a"].grad().asnumpy() == 0).all()
    assert dict(params.items()).keys() == params.keys()


def test_text():
    params = gluon.ParameterDict("net1_")
    params.get("weight", shape=(10, 5), dtype="float32")
    params.get("scale")
    assert str(params) == (
        "net1_ (\n  Parameter net1_weight (shape=(10, 5), dtype=float32)\n"
        "  Parameter net1_scale (shape=None, dtype=<class 'numpy.float32'>)\n)"
    )
    assert str(gluon.ParameterDict()) == "(\n\n)"


# ---- files


def two(prefix="net_", dtypes=("float32", "int8"), **kwargs):
    params = gluon.ParameterDict(prefix)
    for name, dtype in zip(("a", "b"), dtypes):
        params.get(name, shape=(2, 2), dtype=dtype, **kwargs)
    return params


@pytest.fixture
def saved(tmp_path):
    params = two()
    params.initialize(init.Constant(3), ctx=CPUS)
    params.save(str(tmp_path / "two.params"))
    return str(tmp_path / "two.params")


def test_save_and_load(saved):
    assert sorted(mx.nd.load(saved)) == ["net_a", "net_b"]
    params = two()
    params.load(saved, ctx=CPUS)
    assert params.list_ctx() == CPUS
    assert (params["net_a"].data(mx.cpu(1)).asnumpy() == 3).all()
    waiting = two(allow_deferred_init=True)
    waiting.setattr("_shape", (2, 0))
    waiting.initialize(ctx=CPUS)
    waiting.load(saved)
    assert waiting["net_a"].shape == (2, 2)
    assert waiting.list_ctx() == CPUS
    with pytest.raises(AssertionError, match="initialized on"):
        params.load(saved, ctx=mx.cpu(5))


def test_prefixes_in_files(saved, tmp_path):
    other = two("other_")
    with pytest.raises(AssertionError, match="missing in file"):
        other.load(saved)
    stripped = str(tmp_path / "stripped.params")
    params = two()
    params.load(saved)
    params.save(stripped, strip_prefix="net_")
    assert sorted(mx.nd.load(stripped)) == ["a", "b"]
    other.load(stripped, restore_prefix="other_")
    assert (other["other_a"].data().asnumpy() == 3).all()
    with pytest.raises(ValueError, match="does not start with"):
        params.save(stripped, strip_prefix="other_")
    with pytest.raises(AssertionError, match="does not start with"):
        params.load(stripped, restore_prefix="other_")


def test_missing_and_extra(saved):
    more = two()
    more.get("c", shape=(1,))
    with pytest.raises(AssertionError, match=r"'net_c' is missing in file .*'net_a', 'net_b'"):
        more.load(saved)
    more.load(saved, allow_missing=True)
    fewer = gluon.ParameterDict("net_")
    fewer.get("a", shape=(2, 2))
    with pytest.raises(AssertionError, match=r"'net_b' loaded from file .* is not present"):
        fewer.load(saved)
    fewer.load(saved, ignore_extra=True)
    fewer.load_dict({"arg:net_a": mx.nd.zeros((2, 2))})
    assert (fewer["net_a"].data().asnumpy() == 0).all()


def test_dtypes_of_files(saved):
    params = two(dtypes=("float16", "float64"))
    with pytest.raises(AssertionError, match="dtype incompatible expected float16 vs saved float32"):
        params.load(saved)
    params.load(saved, cast_dtype=True)
    assert [param.data().dtype for param in params.values()] == [np.float16, np.float64]
    params.load(saved, cast_dtype=True, dtype_source="saved")
    assert [param.data().dtype for param in params.values()] == [np.float32, np.int8]
    with pytest.raises(ParameterError, match="dtype_source"):
        params.load(saved, cast_dtype=True, dtype_source="other")


def test_shapes_of_files(saved):
    params = gluon.ParameterDict("net_")
    params.get("a", shape=(3, 2))
    with pytest.raises(AssertionError, match="shape incompatible expected \\(3, 2\\) vs saved \\(2, 2\\)"):
        params.load(saved, ignore_extra=True)
    params = gluon.ParameterDict("net_")
    params.get("a", shape=(2,))
    with pytest.raises(AssertionError, match="shape incompatible"):
        params.load(saved, ignore_extra=True)


def test_a_file_without_names(tmp_path):
    path = str(tmp_path / "list.params")
    mx.nd.save(path, [mx.nd.ones((2,))])
    with pytest.raises(ParameterError, match="without names"):
        two().load(path)
