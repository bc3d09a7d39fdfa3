"""Scripts for mixed precision: the loss is scaled, steps with gradients that are not finite are left out, and precision stays."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, nd
from minimx.contrib import amp


@pytest.fixture
def initialized(monkeypatch):
    monkeypatch.setattr(amp, "_state", {"initialized": False})
    with pytest.warns(UserWarning, match="computes in the dtype of the arrays"):
        amp.init()
    amp.init("bfloat16")  # says it once


def parameter_and_trainer(value=(1.0, 2.0)):
    weight = gluon.Parameter("weight", shape=(2,))
    weight.initialize(mx.init.Zero())
    weight.set_data(nd.array(value))
    return weight, gluon.Trainer([weight], "sgd", {"learning_rate": 0.5})


def test_a_step_is_the_same_with_and_without(initialized):
    results = []
    for scaled in (False, True):
        weight, trainer = parameter_and_trainer()
        if scaled:
            amp.init_trainer(trainer)
        with autograd.record():
            losses = [(weight.data() * nd.array([1, 3])).sum()]
            if scaled:
                with amp.scale_loss(losses, trainer) as larger:
                    autograd.backward(larger)
            else:
                autograd.backward(losses)
        assert weight.grad().asnumpy()[0] == (65536 if scaled else 1)
        trainer.step(2)
        results.append(weight.data().asnumpy().tolist())
    assert results[0] == results[1] == [0.75, 1.25]


def test_unscaled_gradients(initialized):
    weight, trainer = parameter_and_trainer()
    amp.init_trainer(trainer)
    with autograd.record(), amp.scale_loss((weight.data() * 3).sum(), trainer) as loss:
        loss.backward()
    amp.unscale(trainer)
    assert weight.grad().asnumpy().tolist() == [3, 3]
    trainer.step(1)
    assert weight.data().asnumpy().tolist() == [-0.5, 0.5]


def test_gradients_that_are_not_finite(initialized):
    weight, trainer = parameter_and_trainer()
    amp.init_trainer(trainer)
    for factor, scale in ((np.inf, 65536), (1.0, 65536), (1.0, 32768)):
        before = weight.data().asnumpy()
        with autograd.record(), amp.scale_loss((weight.data() * factor).sum(), trainer) as loss:
            loss.backward()
        assert trainer._amp_loss_scaler.loss_scale == scale
        trainer.step(1)
        assert (weight.data().asnumpy() != before).all() == (factor == 1)
    scaler = trainer._amp_loss_scaler
    scaler._unskipped = 1999
    scaler.has_overflow([weight])
    scaler.has_overflow([weight])
    assert scaler.loss_scale == 65536  # doubled after 2000 steps


@pytest.mark.parametrize("on_store", [None, True, False])
def test_a_step_on_two_devices_is_left_out(initialized, on_store):
    devices = [mx.cpu(0), mx.cpu(1)]
    weights = [gluon.Parameter(name, shape=(2,)) for name in "ab"]
    for weight in weights:
        weight.initialize(mx.init.One(), ctx=devices)
    trainer = gluon.Trainer(weights, "sgd", {"learning_rate": 0.5}, update_on_kvstore=on_store)
    amp.init_trainer(trainer)
    for factor, wanted in ((1.0, 0.5), (np.inf, 0.5), (1.0, 0.0)):
        with autograd.record():
            losses = [(weights[0].data(device) * factor + weights[1].data(device)).sum() for device in devices]
            with amp.scale_loss(losses, trainer) as scaled:
                autograd.backward(scaled)
        trainer.step(2)
        for weight in weights:
            assert [array.asnumpy().tolist() for array in weight.list_data()] == [[wanted] * 2] * 2


def test_wrong_calls(monkeypatch):
    _, trainer = parameter_and_trainer()
    monkeypatch.setattr(amp, "_state", {"initialized": False})
    with pytest.raises(AssertionError, match=r"did you forget to call amp\.init"):
        amp.init_trainer(trainer)
    with pytest.raises(AssertionError, match=r"did you forget to call amp\.init_trainer"), amp.scale_loss(nd.ones(1), trainer):
        pass
    with pytest.raises(AssertionError, match="supports only float16 or bfloat16"):
        amp.init("int8")
    with pytest.raises(ValueError, match="fp32_ops chooses operators"):
        amp.init(fp32_ops=["exp"])
    with pytest.raises(TypeError, match="AMP is currently only compatible with Gluon Trainer"):
        amp.unscale(mx.optimizer.SGD())
    with pytest.raises(TypeError, match=r"a gluon.Trainer is wanted, got 'sgd'"):
        amp.unscale("sgd")
    with pytest.raises(NotImplementedError, match=r"net.cast\('float16'\) converts the whole network"):
        amp.convert_hybrid_block(None)
    with pytest.raises(NotImplementedError, match="the model runs as it is"):
        amp.convert_model(None, {}, {})


@pytest.mark.parametrize("name", ["quantization", "svrg_optimization", "amp.list_fp32_ops"])
def test_what_is_absent(name):
    where, _, last = name.rpartition(".")
    with pytest.raises(AttributeError, match=f"{last}.*: "):  # and why
        getattr(amp if where else mx.contrib, last)
