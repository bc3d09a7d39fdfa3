"""A script for `mpiexec -n N python train.py ACTION ...`: what test_dist.py runs. Rank 0 writes what it has to tell into a file."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import minimx as mx
from minimx import autograd, gluon
from minimx.gluon import nn

STEPS, BATCH = 12, 8


def network() -> Any:
    """A net with weights that differ from rank to rank, until a Trainer gives all of them those of rank 0."""
    mx.random.seed(int(os.environ.get("PMI_RANK", "0")) + 1)
    net = nn.HybridSequential()
    net.add(nn.Dense(6, activation="tanh", in_units=4), nn.Dense(3))
    net.initialize(mx.init.Normal(0.5), ctx=[mx.cpu(i) for i in range(2)])
    net.hybridize()
    return net


def train(net: Any, trainer: Any, steps: range) -> None:
    """One batch a step, the same whoever computes it: a process takes every `size`-th row."""
    loss, contexts = gluon.loss.L2Loss(), [mx.cpu(0), mx.cpu(1)]
    rank, size = int(os.environ.get("PMI_RANK", "0")), int(os.environ.get("PMI_SIZE", "1"))
    for step in steps:
        random = np.random.default_rng(step)
        batch = [random.normal(size=(BATCH, width)).astype(np.float32)[rank::size] for width in (4, 3)]
        parts = [gluon.utils.split_and_load(each, contexts, even_split=False) for each in batch]
        with autograd.record():
            losses = [loss(net(x), y) for x, y in zip(*parts)]
        autograd.backward(losses)
        trainer.step(BATCH)


def parameters(net: Any) -> list[Any]:
    return [param.data(mx.cpu(0)).asnumpy().tolist() for param in net.collect_params().values()]


def trained(kvstore: str, on_store: str, first: str = "0", last: str = str(STEPS), folder: str = "") -> Any:
    """Steps `first` to `last`; from the files in `folder` if there are any, and into them."""
    net = network()
    options = {"update_on_kvstore": {"True": True, "False": False, "None": None}[on_store]}
    store: Any = mx.kv.create(kvstore) if kvstore == "horovod" else kvstore
    trainer = gluon.Trainer(net.collect_params(), "adam", {"learning_rate": 0.01}, store, **options)
    if int(first):
        net.load_parameters(f"{folder}/net.params", ctx=[mx.cpu(0), mx.cpu(1)])
        trainer.load_states(f"{folder}/net.states")
    train(net, trainer, range(int(first), int(last)))
    found = parameters(net)
    if folder and not int(first) and int(os.environ.get("PMI_RANK", "0")) == 0:
        net.save_parameters(f"{folder}/net.params")
        trainer.save_states(f"{folder}/net.states")
    return found


def values() -> Any:
    """What the methods of a store do."""
    kv = mx.kv.create("dist_sync")
    kv.init(["a", "b"], [mx.nd.full((2,), kv.rank + 3), mx.nd.zeros((2,))])
    out, found = mx.nd.empty((2,)), {"rank": kv.rank, "size": kv.num_workers, "type": kv.type}
    kv.pull("a", out=out)
    found["first"] = out.asnumpy().tolist()
    kv.push("b", [mx.nd.full((2,), kv.rank + 1), mx.nd.ones((2,), ctx=mx.cpu(1))])
    kv.pull("b", out=out)
    found["pushed"] = out.asnumpy().tolist()
    big = [mx.nd.full((700_000,), kv.rank + 1) for _ in range(3)]
    kv.pushpull(["x", "y", "z"], big)
    found["big"] = [float(each[-1].asscalar()) for each in big]
    mixed = [mx.nd.ones((3,), dtype=dtype) for dtype in ("float64", "int32", "float32")]
    kv.pushpull(["u", "v", "w"], mixed)
    found["mixed"] = [each.asnumpy().tolist() for each in mixed]
    kv._barrier()
    packed = mx.kv.create("dist_sync")
    packed.set_gradient_compression({"type": "2bit", "threshold": 0.5})
    gradient = mx.nd.array([0.6, -0.7, 0.1, 0.3])
    packed.pushpull("g", gradient)
    found["compressed"] = gradient.asnumpy().tolist()
    horovod = mx.kv.create("horovod")
    horovod.broadcast("h", mx.nd.full((2,), kv.rank), out)
    found["horovod"] = [out.asnumpy().tolist(), horovod.rank, horovod.local_rank, horovod.num_workers]
    return found


def lost(how: str) -> Any:
    """The last rank goes in the middle of training; what the others hear of it."""
    kv = mx.kv.create("dist_sync")
    gradient = mx.nd.ones((1000,))
    kv.pushpull("g", gradient)
    gradient.wait_to_read()
    if kv.rank == kv.num_workers - 1:
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        elif how == "raises":
            raise ValueError("a mistake")
        return None
    start = time.monotonic()
    try:
        kv.pushpull("g", gradient)
        gradient.asnumpy()
    except mx.MXNetError as error:
        return {"error": str(error), "seconds": time.monotonic() - start}
    return None


if __name__ == "__main__":
    output, action, *arguments = sys.argv[1:]
    result = {"trained": trained, "values": values, "lost": lost}[action](*arguments)
    if result is not None:
        Path(f"{output}-{os.environ.get('PMI_RANK', '0')}").write_text(json.dumps(result))
