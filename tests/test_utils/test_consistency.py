"""One computation in several ways: settings of a graph, a block hybridized or not, two optimizers."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx import gluon, nd, optimizer
from minimx.base import ArgumentError
from minimx.test_utils import check_consistency, check_gluon_hybridize_consistency, compare_optimizer, same_symbol_structure

DENSE = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")


def settings(*dtypes, **more):
    return [{"ctx": mx.cpu(number), "data": (2, 4), "type_dict": {"data": dtype}, **more} for number, dtype in enumerate(dtypes)]


def test_dtypes_and_devices():
    truth = check_consistency(DENSE, settings("float32", "float64", "float16"))
    assert set(truth) == {"fc_output", "data", "fc_weight", "fc_bias"}
    assert truth["fc_output"].dtype == np.float64
    check_consistency([DENSE, DENSE], settings("float32", "float64"), grad_req="add", use_uniform=True, scale=0.1)
    assert set(check_consistency(DENSE, settings("float32", "float64"), grad_req="null")) == {"fc_output"}


def test_given_values_and_truth(capsys):
    given = {"data": np.ones((2, 4)), "fc_weight": np.ones((3, 4)), "fc_bias": np.zeros(3)}
    right = {"fc_output": np.full((2, 3), 4.0)}
    check_consistency(DENSE, settings("float64", "float64"), arg_params=dict(given), ground_truth=right)
    wrong = {"fc_output": np.full((2, 3), 5.0)}
    with pytest.raises(AssertionError, match="prediction with setting 1 and 0, fc_output"):
        check_consistency(DENSE, settings("float64", "float64"), arg_params=dict(given), ground_truth=wrong)
    check_consistency(DENSE, settings("float64", "float64"), arg_params=dict(given), ground_truth=wrong, raise_on_err=False)
    assert "training with setting 1 and 0, fc_output" in capsys.readouterr().out


def test_settings_that_cannot_be_compared():
    with pytest.raises(ArgumentError, match="at least 2"):
        check_consistency(DENSE, settings("float32"))
    with pytest.raises(ArgumentError, match="the same arguments and outputs"):
        check_consistency([DENSE, mx.sym.Variable("x")], settings("float32", "float64"))


def build(prefix):
    net = gluon.nn.HybridSequential(prefix=prefix)
    with net.name_scope():
        net.add(gluon.nn.Dense(4, activation="tanh"), gluon.nn.Dense(2))
    return net


class Fickle(gluon.HybridBlock):
    """Gives something else when it is traced."""

    def hybrid_forward(self, F, x):
        return x * 2 if F is nd else x * 3


def test_hybridized_or_not():
    data = [nd.random.normal(shape=(3, 5))]
    check_gluon_hybridize_consistency(build, data)
    check_gluon_hybridize_consistency(lambda prefix: Fixed(prefix=prefix), data, lambda x: x * 2)
    with pytest.raises(AssertionError):
        check_gluon_hybridize_consistency(lambda prefix: Fickle(prefix=prefix), data, test_grad=False)
    with pytest.raises(AssertionError):
        check_gluon_hybridize_consistency(lambda prefix: Fixed(prefix=prefix), data, lambda x: x * 5)


class Fixed(gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return x * 2


def test_optimizers():
    compare_optimizer(optimizer.SGD(learning_rate=0.1), optimizer.SGD(learning_rate=0.1), (3, 4), "float32")
    compare_optimizer(optimizer.Adam(), optimizer.Adam(), (3,), "float64")
    two = [(2, 3), (4,)]
    compare_optimizer(optimizer.SGD(momentum=0.9), optimizer.SGD(momentum=0.9), two, "float32", ntensors=2)
    with pytest.raises(AssertionError):
        compare_optimizer(optimizer.SGD(learning_rate=0.1), optimizer.SGD(learning_rate=0.9), (3, 4), "float32")
    with pytest.raises(ArgumentError, match="arrays are dense"):
        compare_optimizer(optimizer.SGD(), optimizer.SGD(), (3,), "float32", w_stype="row_sparse")
    with pytest.raises(ArgumentError, match="ntensors=1, but shape has 2"):
        compare_optimizer(optimizer.SGD(), optimizer.SGD(), two, "float32")


def test_structures():
    assert same_symbol_structure(DENSE, mx.sym.FullyConnected(mx.sym.Variable("other"), num_hidden=9))
    assert not same_symbol_structure(DENSE, mx.sym.exp(DENSE))
    assert not same_symbol_structure(mx.sym.exp(DENSE), mx.sym.log(DENSE))
