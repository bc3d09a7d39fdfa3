"""W15: a training step on two lanes as it is predicted from one on a single lane, beside the measured one. BLAS has one thread a lane.

Lanes are cpu(0) and cpu(1), or two simulated GPUs with links of 1 GB/s. "off by" is the part by which the prediction is too long or too
short. See minimx/parallel/simulate/comparison.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness import Bar, Unit, Workload

ONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
Build = Callable[[Any], Any]
OFF = "off by (ratio)"

VARIANTS = ("mlp eager", "mlp hybridized", "mlp hybridized, GPUs", "lenet eager", "lenet hybridized")

work = Workload(
    __file__,
    "training step on two lanes, predicted and measured",
    bars=tuple(Bar(OFF, 0.15, variants=(name,), absolute=True) for name in VARIANTS),
)


def mlp(nn: Any) -> Any:
    net = nn.HybridSequential()
    net.add(nn.Dense(512, activation="relu"), nn.Dense(512, activation="relu"), nn.Dense(10))
    return net


def lenet(nn: Any) -> Any:
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(20, 5, activation="tanh"), nn.MaxPool2D(2, 2), nn.Conv2D(50, 5, activation="tanh"), nn.MaxPool2D(2, 2),
        nn.Dense(500, activation="tanh"), nn.Dense(10),
    )  # fmt: skip
    return net


def compared(build: Build, shape: tuple[int, ...], batch: int, hybridize: bool, simulated: bool = False) -> Unit:
    """A unit that predicts a step on two devices, and measures it."""
    import numpy as np

    import minimx as mx
    from minimx import autograd, gluon
    from minimx.parallel import simulate

    random = np.random.default_rng(0)
    if simulated:
        mx.device.simulate_gpus(2, bandwidth=1e9, latency=1e-4)
    contexts = [(mx.gpu if simulated else mx.cpu)(number) for number in range(2)]

    def make(devices: Any, batch: int) -> tuple[Callable[[], object], Any]:
        net, loss = build(gluon.nn), gluon.loss.SoftmaxCrossEntropyLoss()
        net.initialize(mx.init.Xavier(), ctx=devices)
        if hybridize:
            net.hybridize()
            loss.hybridize()
        data, labels = random.standard_normal((batch, *shape), np.float32), random.integers(0, 10, batch)
        parts, classes = (gluon.utils.split_and_load(mx.nd.array(array), devices) for array in (data, labels))
        trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore="device")

        def step() -> None:
            with autograd.record():
                losses = [loss(net(x), y) for x, y in zip(parts, classes)]
            autograd.backward(losses)
            trainer.step(batch)
            mx.nd.waitall()

        step()
        return step, net.collect_params()

    def run() -> dict[str, float]:
        found = simulate.compare(make, contexts, batch)
        return {
            "1 lane, half the batch": found.alone,
            "2 lanes, predicted": found.predicted,
            "2 lanes, measured": found.measured,
            OFF: abs(found.error),
            "arithmetic on 2 lanes / on 1 (ratio)": found.machine.slowdown(2, 1.0),
            "memory on 2 lanes / on 1 (ratio)": found.machine.slowdown(2, 0.0),
        }

    return run


for _name, _build, _shape, _batch in (("mlp", mlp, (784,), 1024), ("lenet", lenet, (1, 28, 28), 128)):
    for _way, _hybridize in (("eager", False), ("hybridized", True)):

        @work.peer("minimx", f"{_name} {_way}", **ONE)
        def _(how: tuple[Any, ...] = (_build, _shape, _batch, _hybridize)) -> Unit:
            return compared(*how)


@work.peer("minimx", "mlp hybridized, GPUs", **ONE)
def _() -> Unit:
    return compared(mlp, (784,), 1024, True, simulated=True)


if __name__ == "__main__":
    work.main()
