"""Initializers: values and their statistics, names, JSON, and how a name decides."""

from __future__ import annotations

import json
import logging

import numpy as np
import pytest

import minimx as mx
from minimx import init
from minimx.base import ArgumentError, ShapeError
from minimx.registry import Registry


def filled(initializer, shape, name="layer_weight", attrs=None, dtype="float32"):
    array = mx.nd.full(shape, 7, dtype=dtype)
    initializer(init.InitDesc(name, attrs), array)
    return array.asnumpy()


# ---- constants


@pytest.mark.parametrize(("name", "value"), [("zeros", 0), ("zero", 0), ("ones", 1), ("one", 1), ("Zero", 0)])
def test_by_name(name, value):
    assert (filled(init.create(name), (2, 3)) == value).all()


@pytest.mark.parametrize("value", [2.5, [1, 2, 3], np.array([[1], [2]]), np.float32(3)])
def test_constant_broadcasts(value):
    np.testing.assert_array_equal(filled(init.Constant(value), (2, 3)), np.broadcast_to(value, (2, 3)))


def test_constant_of_an_array():
    values = mx.nd.array([[1, 2], [3, 4]])
    constant = init.Constant(values)
    np.testing.assert_array_equal(filled(constant, (2, 2)), values.asnumpy())
    assert json.loads(constant.dumps()) == ["constant", {"value": [[1, 2], [3, 4]]}]
    assert constant == init.Constant(np.array([[1, 2], [3, 4]]))


def test_lstm_bias():
    bias = filled(init.LSTMBias(2.0), (12,), "lstm_i2h_bias", {"__init__": init.LSTMBias(2.0)})
    np.testing.assert_array_equal(bias, [0] * 3 + [2] * 3 + [0] * 6)


@pytest.mark.parametrize("size", [1, 4, 5, 8])
def test_bilinear_is_separable_and_symmetric(size):
    weight = filled(init.Bilinear(), (2, 1, size, size))
    line = weight[0, 0].max(axis=0)
    np.testing.assert_array_equal(weight[0], weight[1])
    np.testing.assert_allclose(weight[0, 0] * weight[0, 0].max(), np.outer(line, line), rtol=1e-6)
    np.testing.assert_allclose(line, line[::-1])


def test_bilinear_values_and_shapes():
    line = np.array([1, 3, 3, 1]) / 4
    np.testing.assert_array_equal(filled(init.Bilinear(), (1, 1, 4, 4))[0, 0], np.outer(line, line))
    assert filled(init.Bilinear(), (1, 1, 3, 5))[0, 0].max() == 1
    with pytest.raises(ShapeError, match="4 dimensions"):
        filled(init.Bilinear(), (3, 3))


# ---- random ones


def test_uniform_and_normal():
    mx.random.seed(1)
    uniform = filled(init.Uniform(0.5), (100, 100))
    assert abs(uniform).max() <= 0.5
    assert abs(uniform.mean()) < 0.02
    assert abs(uniform.std() - 0.5 / np.sqrt(3)) < 0.01
    normal = filled(init.Normal(0.3), (100, 100))
    assert abs(normal.mean()) < 0.02
    assert abs(normal.std() - 0.3) < 0.01


def test_a_seed_fixes_them():
    def draw():
        mx.random.seed(3)
        return filled(init.Xavier(), (4, 5))

    first = draw()
    assert (draw() == first).all()
    assert (filled(init.Xavier(), (4, 5)) != first).any()


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_random_ones_keep_the_dtype(dtype):
    for initializer in (init.Uniform(), init.Normal(), init.Xavier(), init.Orthogonal()):
        assert filled(initializer, (3, 4), dtype=dtype).dtype == dtype


@pytest.mark.parametrize(("factor", "count"), [("avg", (30 + 20) * 6 / 2), ("in", 20 * 6), ("out", 30 * 6)])
@pytest.mark.parametrize("kind", ["uniform", "gaussian"])
def test_xavier_size(kind, factor, count):
    mx.random.seed(2)
    weight = filled(init.Xavier(kind, factor, 2), (30, 20, 2, 3))
    scale = np.sqrt(2 / count)
    wanted = scale / np.sqrt(3) if kind == "uniform" else scale
    assert abs(weight.std() / wanted - 1) < 0.05
    if kind == "uniform":
        assert abs(weight).max() <= scale * 1.0001


def test_msra_is_xavier_for_rectifiers():
    mx.random.seed(4)
    weight = filled(init.MSRAPrelu("in", 0.0), (100, 50))
    assert abs(weight.std() / np.sqrt(2 / 50) - 1) < 0.05
    assert json.loads(init.MSRAPrelu().dumps()) == ["msraprelu", {"factor_type": "avg", "slope": 0.25}]


@pytest.mark.parametrize("shape", [(3, 8), (8, 3), (4, 2, 3)])
@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_orthogonal_rows_or_columns(shape, kind):
    matrix = filled(init.Orthogonal(2.0, kind), shape).reshape(shape[0], -1)
    product = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(product, 4 * np.eye(len(product)), atol=1e-5)


def test_bad_arguments():
    with pytest.raises(ShapeError, match="at least 2 dimensions"):
        filled(init.Xavier(), (3,))
    with pytest.raises(ValueError, match="factor_type"):
        filled(init.Xavier(factor_type="no"), (3, 3))
    with pytest.raises(ValueError, match="rnd_type"):
        filled(init.Xavier(rnd_type="no"), (3, 3))
    with pytest.raises(ValueError, match="rand_type"):
        init.Orthogonal(rand_type="no")


# ---- by the name of the parameter


@pytest.mark.parametrize(
    ("name", "value"),
    [("a_weight", 3), ("a_bias", 0), ("bn_gamma", 1), ("bn_beta", 0), ("q_min", 0), ("q_max", 1), ("a_bias_quantize", 0)],
)
def test_the_end_of_the_name_decides(name, value):
    assert (filled(init.Constant(3), (2, 2), name) == value).all()


def test_quantized_weights_are_small_integers():
    weight = filled(init.Constant(3), (50,), "a_weight_quantize", dtype="int8")
    assert weight.dtype == np.int8
    assert len(set(weight)) > 5


def test_an_initializer_of_its_own_wins():
    assert (filled(init.Zero(), (2,), "a_bias", {"__init__": '["constant", {"value": 5}]'}) == 5).all()
    assert (filled(init.Zero(), (2,), "a_bias", {"__init__": "ones"}) == 1).all()
    assert (filled(init.Zero(), (2,), "a_bias", {"__init__": init.One()}) == 1).all()


def test_unknown_names_are_an_error():
    with pytest.raises(ValueError, match="Unknown initialization pattern for alpha"):
        filled(init.Zero(), (2,), "alpha")


def test_plain_names_are_deprecated():
    array = mx.nd.full((6,), 7)
    for name, value in [
        ("fc_bias", [0] * 6), ("bn_moving_var", [1] * 6), ("bn_moving_mean", [0] * 6), ("stn_loc_bias", [1, 0, 0, 0, 1, 0]),
    ]:  # fmt: skip
        with pytest.warns(DeprecationWarning, match="InitDesc"):
            init.Constant(3)(name, array)
        np.testing.assert_array_equal(array.asnumpy(), value)
    with pytest.warns(DeprecationWarning, match="InitDesc"), pytest.raises(TypeError):
        init.Zero()("fc_bias", np.zeros(3))


def test_global_init_is_passed_on():
    desc = init.InitDesc("a_weight")
    assert desc == "a_weight"
    one = init.One()
    one(desc, mx.nd.zeros((2,)))
    assert desc.global_init is one


# ---- Mixed and Load


def test_mixed_takes_the_first_pattern_that_matches():
    mixed = init.Mixed(["fc1_.*bias", ".*"], [init.Constant(1), init.Zero()])
    array = mx.nd.zeros((2,))
    with pytest.warns(DeprecationWarning, match="InitDesc"):
        init.Mixed([".*"], [init.One()])("fc_gamma", array)
    assert (array.asnumpy() == 1).all()
    assert (filled(mixed, (2,), "fc2_weight") == 0).all()
    with pytest.raises(ValueError, match="no pattern"):
        filled(init.Mixed(["x"], [init.Zero()]), (2,), "a_weight")
    with pytest.raises(ValueError, match="2 patterns"):
        init.Mixed(["a", "b"], [init.Zero()])


def test_load(tmp_path, caplog):
    path = str(tmp_path / "saved.params")
    mx.nd.save(path, {"arg:a_weight": mx.nd.array([1, 2]), "aux:b": mx.nd.array([3])})
    load = init.Load(path, default_init=init.One(), verbose=True)
    with caplog.at_level(logging.INFO):
        np.testing.assert_array_equal(filled(load, (2,), "a_weight"), [1, 2])
        np.testing.assert_array_equal(filled(load, (1,), "b"), [3])
        assert (filled(load, (3,), "c_weight") == 1).all()
    assert "a_weight by loading" in caplog.text
    assert "c_weight by default" in caplog.text
    with pytest.raises(AssertionError, match="shape"):
        filled(load, (3,), "a_weight")
    with pytest.raises(AssertionError, match="no default"):
        filled(init.Load({"a": mx.nd.ones((1,))}), (2,), "b")
    mx.nd.save(path, [mx.nd.ones((1,))])
    with pytest.raises(ArgumentError, match="without names"):
        init.Load(path)


# ---- registering, text, equality


def test_dumps_and_create_are_inverse():
    for initializer in (
        init.Zero(),
        init.Normal(0.2),
        init.Xavier("gaussian", "in", 2.34),
        init.LSTMBias(),
        init.FusedRNN(init.Normal(0.2), 4, 2, "lstm", True),
        init.Constant([1, 2]),
    ):
        again = init.create(initializer.dumps())
        assert again == initializer
        assert repr(again) == repr(initializer)
    assert init.Xavier(factor_type="in", magnitude=2.34).dumps() == (
        '["xavier", {"rnd_type": "uniform", "factor_type": "in", "magnitude": 2.34}]'
    )
    assert init.Normal(0.2) != init.Normal(0.3)
    assert init.Zero() != init.One()
    assert init.create(init.Zero()) == init.Zero()
    assert init.create('{"initializer": "normal", "sigma": 2}') == init.Normal(2)
    assert init.create("normal", sigma=2) == init.Normal(2)


def test_verbose_logs_what_was_done(caplog):
    with caplog.at_level(logging.INFO):
        filled(init.One().set_verbosity(True), (2, 2))
        filled(init.One().set_verbosity(True, lambda array: "seen"), (2, 2))
    assert "Initialized layer_weight as weight: 1.0" in caplog.text
    assert "seen" in caplog.text


def test_a_class_of_ones_own():
    registry = Registry(init.Initializer, "initializer")

    @registry.register
    @registry.alias("mine", "Also_Mine")
    class Halves(init.Initializer):
        def _init_weight(self, name, arr):
            arr[:] = 0.5

    for name in ("halves", "MINE", "also_mine"):
        assert isinstance(registry.create(name), Halves)
    assert (filled(registry.create("mine"), (2, 2)) == 0.5).all()
    with pytest.warns(UserWarning, match="replaces"):

        @registry.register
        class Mine(init.Initializer):
            pass

    with pytest.raises(NotImplementedError, match="_init_weight"):
        filled(Mine(), (2, 2))
    with pytest.raises(ArgumentError, match="subclasses"):
        registry.register(int)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("nosuch",), "no initializer is called 'nosuch'"),
        ((3,), "a name or an instance"),
        ((init.Zero(), 3), "an instance already"),
        (('["zero", {}]', 3), "its arguments inside"),
        (("[1",), "is no JSON"),
        (("[1, 2]",), "must have the form"),
    ],
)
def test_create_says_what_is_wrong(args, message):
    with pytest.raises(ArgumentError, match=message):
        init.create(*args)
