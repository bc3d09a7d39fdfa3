"""With MXNET_ENFORCE_DETERMINISM each run gives the same bits, on several devices and whatever runs at the same time."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

import minimx as mx
from minimx import nd

SCRIPT = """
import hashlib, sys
import numpy as np
import minimx as mx
from minimx import autograd, gluon, nd
from minimx.gluon import nn

devices = [mx.cpu(0), mx.cpu(1)]
random = np.random.default_rng(0)
images, classes = random.standard_normal((100, 1, 28, 28), np.float32), random.integers(0, 10, 100)


def trained():
    mx.random.seed(0)
    net = nn.HybridSequential()
    net.add(nn.Conv2D(6, 5, activation="relu"), nn.MaxPool2D(2, 2), nn.Conv2D(16, 5, activation="relu"), nn.Dense(10))
    net.initialize(mx.init.Xavier(), ctx=devices)
    if sys.argv[1] == "hybridized":
        net.hybridize()
    loss, trainer = gluon.loss.SoftmaxCrossEntropyLoss(), gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    for _ in range(4):
        with autograd.record():
            losses = [loss(net(x), y) for x, y in zip(*(gluon.utils.split_and_load(a, devices) for a in (images, classes)))]
        autograd.backward(losses)
        trainer.step(100)
    return b"".join(each.data(devices[0]).asnumpy().tobytes() for each in net.collect_params().values())


print(hashlib.sha256(b"".join(sorted({trained() for _ in range(6)}))).hexdigest(), len({trained() for _ in range(6)}))
"""


@pytest.mark.parametrize("how", ["eager", "hybridized"])
def test_each_run_gives_the_same_bits(how: str) -> None:
    environment = {**os.environ, "MXNET_ENFORCE_DETERMINISM": "1"}
    found = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT, how], env=environment, capture_output=True, text=True, check=True, timeout=120
        )
        for _ in range(2)
    ]
    assert found[0].stdout == found[1].stdout
    assert found[0].stdout.split()[1] == "1"


@pytest.mark.parametrize("rows", [2, 50, 200])
def test_a_product_is_the_same_whether_its_operands_are_there_or_not(rows: int) -> None:
    random = np.random.default_rng(0)
    x, weight, bias = (nd.array(random.standard_normal(shape)) for shape in ((rows, 1024), (10, 1024), (10,)))
    nd.waitall()
    at_once = [nd.FullyConnected(x, weight, bias, num_hidden=10), nd.dot(x, weight, transpose_b=True)]
    with mx.engine.lazy():
        later = [nd.FullyConnected(x, weight, bias, num_hidden=10), nd.dot(x, weight, transpose_b=True)]
    for one, other in zip(at_once, later, strict=True):
        np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())
