"""Errors about unknown keywords name the one that was meant."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import gluon
from minimx.base import ArgumentError
from minimx.gluon import nn
from minimx.keywords import ELSEWHERE, arguments_of, meant, what_it_takes

NAMES: dict[str, Any] = {"mx": mx, "nn": nn, "np": np, "x": mx.nd.ones((2, 3))}


@pytest.mark.parametrize(
    ("text", "unknown", "instead"),
    [
        ("nn.Dense(3, bias=False)", "bias", "'use_bias'"),
        ("nn.Dense(out_features=3)", "out_features", "'units'"),
        ("nn.Dense(3, in_unit=2)", "in_unit", "'in_units'"),
        ("nn.Conv2D(3, 3, stride=2)", "stride", "'strides'"),
        ("nn.MaxPool2D(kernel_size=2)", "kernel_size", "'pool_size'"),
        ("nn.Dropout(p=0.5)", "p", "'rate'"),
        ("nn.BatchNorm(eps=1e-3)", "eps", "'epsilon'"),
        ("nn.LayerNorm(eps=1e-3)", "eps", "'epsilon'"),
        ("nn.BatchNorm(affine=False)", "affine", "'center' and 'scale'"),
        ("nn.Embedding(num_embeddings=3, embedding_dim=2)", "num_embeddings", "'input_dim'"),
        ("mx.gluon.HybridBlock(prefx='a_')", "prefx", "'prefix'"),
        ("mx.gluon.Block(prefx='a_')", "prefx", "'prefix'"),
        ("mx.gluon.rnn.LSTM(3, batch_first=True)", "batch_first", "'layout'"),
        ("mx.gluon.loss.SoftmaxCELoss(from_logit=True)", "from_logit", "'from_logits'"),
        ("mx.gluon.data.DataLoader([1], batch=2)", "batch", "'batch_size'"),
        ("mx.init.Normal(std=0.1)", "std", "'sigma'"),
        ("mx.init.Xavier(gain=2)", "gain", "'magnitude'"),
        ("mx.init.create('normal', sigm=1)", "sigm", "'sigma'"),
        ("mx.metric.Accuracy(axs=1)", "axs", "'axis'"),
        ("mx.metric.create('acc', axs=1)", "axs", "'axis'"),
        ("mx.lr_scheduler.FactorScheduler(2, gamma=0.5)", "gamma", "'factor'"),
        ("mx.lr_scheduler.FactorScheduler(2, lr=0.5)", "lr", "'base_lr'"),
        ("mx.optimizer.SGD(lr=0.1)", "lr", "'learning_rate'"),
        ("mx.optimizer.Adam(eps=1e-3)", "eps", "'epsilon'"),
        ("mx.optimizer.SGLD(lr=0.1)", "lr", "'learning_rate'"),
        ("mx.optimizer.Optimizer(lr=0.1)", "lr", "'learning_rate'"),
        ("mx.optimizer.RMSProp(rho=0.9)", "rho", "'gamma1'"),
        ("mx.optimizer.create('sgd', lr=0.1)", "lr", "'learning_rate'"),
        ("mx.optimizer.create('sgd', learning_rat=0.1)", "learning_rat", "'learning_rate'"),
        ("mx.optimizer.create('adam', weight_decay=0.1)", "weight_decay", "'wd'"),
        ("mx.optimizer.create('adam', betas=(0.9, 0.99))", "betas", "'beta1' and 'beta2'"),
        ("mx.io.NDArrayIter(np.ones(3), batch=2)", "batch", "'batch_size'"),
    ],
)
def test_classes(text: str, unknown: str, instead: str) -> None:
    with pytest.raises(TypeError, match=rf"\w takes no argument '{unknown}'; did you mean {instead}\? It takes \w") as caught:
        eval(text, NAMES)
    assert caught.value.__suppress_context__  # the error of Python's own says less


@pytest.mark.parametrize(
    ("text", "unknown", "instead"),
    [
        ("mx.nd.softmax(x, dim=0)", "dim", "axis"),
        ("mx.nd.sum(x, keepdim=True)", "keepdim", "keepdims"),
        ("x.sum(axs=0)", "axs", "axis"),
        ("mx.sym.softmax(mx.sym.var('x'), dim=0)", "dim", "axis"),
        ("mx.nd.Convolution(x, x, kernel=(1,), num_filter=1, no_bias=True, strides=1)", "strides", "stride"),
    ],
)
def test_operators(text: str, unknown: str, instead: str) -> None:
    with pytest.raises(ArgumentError, match=rf"unknown argument {unknown}; did you mean '{instead}'\? It takes data, "):
        eval(text, NAMES)


def test_a_keyword_that_is_near_to_none() -> None:
    with pytest.raises(ArgumentError, match=r"^Activation takes no argument 'inplace'; it takes activation, prefix, params$"):
        nn.Activation("relu", inplace=True)
    assert meant("zzz", ["axis"]) == ""
    assert what_it_takes("zzz", []) == "; it takes none"


def test_names_of_elsewhere_are_proposed_only_where_they_are() -> None:
    assert meant("lr", ["base_lr"]) == "; did you mean 'base_lr'?"
    assert meant("lr", ["units"]) == ""
    assert meant("betas", ["beta1"]) == "; did you mean 'beta1'?"  # by its letters


def test_what_is_proposed_is_an_argument_of_something() -> None:
    """No row of the table is about an argument that nothing here has."""
    classes = [thing for module in (nn, gluon.loss, gluon.rnn, gluon.data, mx.init, mx.optimizer, mx.lr_scheduler, mx.metric)
               for thing in vars(module).values() if inspect.isclass(thing)]  # fmt: skip
    known = {name for cls in classes for name in arguments_of(cls)}
    known |= {name for function in (mx.nd.sum, mx.nd.transpose, mx.nd.ones, mx.nd.LeakyReLU, mx.nd.FullyConnected)
              for name in inspect.signature(function).parameters}  # fmt: skip
    assert not {name for row in ELSEWHERE.values() for names in row for name in names.split()} - known


class Wide(nn.Dense):
    """A class of a user's."""

    def __init__(self, units: int, broken: bool = False, **kwargs: Any) -> None:
        super().__init__(units, **kwargs)
        if broken:
            int(nothing=1)  # type: ignore[call-overload]


def test_classes_of_users() -> None:
    with pytest.raises(ArgumentError, match=r"^Wide takes no argument 'bias'; did you mean 'use_bias'"):
        Wide(3, bias=False)
    with pytest.raises(TypeError, match=r"Wide.__init__\(\) missing 1 required positional argument: 'units'"):
        Wide()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="int") as caught:  # an error of another function
        Wide(3, broken=True)
    assert not isinstance(caught.value, ArgumentError)


def test_other_errors_stay_as_they_are() -> None:
    with pytest.raises(TypeError, match=r"Dense.__init__\(\) missing 1 required positional argument: 'units'"):
        nn.Dense()
    with pytest.raises(TypeError, match=r"Dense.__init__\(\) missing 1 required positional argument: 'units'"):
        nn.Dense(use_bias=False)


def test_signatures_stay_as_they_are() -> None:
    assert list(inspect.signature(nn.Dense).parameters)[:3] == ["units", "activation", "use_bias"]
    assert inspect.getsource(nn.Dense.__init__).lstrip().startswith("def __init__(")


def test_warnings_name_the_line_of_the_call() -> None:
    """The step between a call and `__init__` is counted."""
    with pytest.warns(UserWarning, match="only 4 are used") as told:
        mx.io.NDArrayIter({"a": np.ones((4, 2)), "b": np.ones((6, 2))}, batch_size=2)
    assert told[0].filename == __file__
    with pytest.warns(UserWarning, match="num_devices is not given") as told:
        gluon.contrib.nn.SyncBatchNorm()
    assert told[0].filename == __file__
