"""Does `hybridize()` ever make anything slower? Networks of many kinds, in inference and in training, eager and hybridized in turns.

    python benchmarks/hybridize.py [--rounds 9] [name ...]

Prints microseconds a call and the ratio hybridized / eager, medians of rounds that alternate, so that a disturbance meets both.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import minimx as mx
from minimx import autograd, gluon, nd
from minimx.gluon import nn

SECONDS = 0.03  # of one round


class Function(gluon.HybridBlock):
    """A function of F and an array as a block."""

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.function = function

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.function(F, x)


def sequence(*layers: Any) -> Any:
    net = nn.HybridSequential()
    net.add(*layers)
    return net


def convolutional() -> Any:
    return sequence(
        nn.Conv2D(16, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(2), nn.Conv2D(32, 3, padding=1),
        nn.BatchNorm(), nn.Activation("relu"), nn.GlobalAvgPool2D(), nn.Dense(10),
    )  # fmt: skip


def lenet() -> Any:
    return sequence(
        nn.Conv2D(6, 5, padding=2, activation="sigmoid"), nn.AvgPool2D(2, 2), nn.Conv2D(16, 5, activation="sigmoid"),
        nn.AvgPool2D(2, 2), nn.Dense(120, activation="sigmoid"), nn.Dense(84, activation="sigmoid"), nn.Dense(10),
    )  # fmt: skip


#: name -> (makes the network, shape of its input)
CASES: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "two operators on two numbers": (lambda: Function(lambda F, x: x * x + 2), (1, 2)),
    "dense 512-256-128-2, batch 1": (
        lambda: sequence(nn.Dense(256, activation="relu"), nn.Dense(128, activation="relu"), nn.Dense(2)),
        (1, 512),
    ),
    "dense 784-256-10, batch 256": (lambda: sequence(nn.Dense(256, activation="relu"), nn.Dense(10)), (256, 784)),
    "chain on 10,000 numbers": (lambda: Function(lambda F, x: F.exp(F.tanh(2 * x + 1) * x - 0.5)), (100, 100)),
    "chain on 4,000,000 numbers": (lambda: Function(lambda F, x: F.exp(F.tanh(2 * x + 1) * x - 0.5)), (4000, 1000)),
    "three branches of products": (
        lambda: Function(lambda F, x: F.dot(x, x) + F.dot(F.relu(x), x) + F.dot(F.tanh(x), x)),
        (500, 500),
    ),
    "layer normalization": (lambda: sequence(nn.Dense(64), nn.LayerNorm(), nn.Activation("tanh"), nn.Dense(10)), (32, 64)),
    "convolutions, BatchNorm, batch 32": (convolutional, (32, 3, 32, 32)),
    "LeNet, batch 256": (lenet, (256, 1, 28, 28)),
}


def call(net: Any, x: Any, training: bool) -> Callable[[], None]:
    def infer() -> None:
        net(x)

    def train() -> None:
        with autograd.record():
            y = net(x).sum()
        y.backward()

    return train if training else infer


def timed(function: Callable[[], None], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        function()
    nd.waitall()
    return (time.perf_counter() - start) / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of the names of networks")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    print(f"{'network':<34} {'':<9} {'eager us':>10} {'hybridized':>10} {'ratio':>6}")
    for name, (make, shape) in CASES.items():
        if options.names and not any(part in name for part in options.names):
            continue
        for training in (False, True):
            x = nd.random.normal(shape=shape)
            if training and isinstance(make(), Function):
                x.attach_grad()  # there is no parameter to learn
            ways = []
            for active in (False, True):
                net = make()
                net.initialize(mx.init.Xavier())
                net.hybridize(active)
                ways.append(call(net, x, training))
                ways[-1]()
            count = max(1, int(SECONDS / max(timed(ways[0], 2), 1e-7)))
            rounds = [[timed(way, count) for way in ways] for _ in range(options.rounds)]
            eager, hybrid = (1e6 * median(column) for column in zip(*rounds))
            ratio = median(hybridized / plain for plain, hybridized in rounds)
            print(f"{name:<34} {'training' if training else 'inference':<9} {eager:>10.1f} {hybrid:>10.1f} {ratio:>6.2f}")


if __name__ == "__main__":
    main()
