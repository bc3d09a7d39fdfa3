"""W14: data parallel training: a step of LeNet and of a small ResNet on one device, and on two that share the batch. BLAS has one thread.

Devices are cpu(0) and cpu(1), so that a speed-up needs two cores that nobody else uses. With OMP_NUM_THREADS=1 all
else that has threads has one, too, so that a step on one device uses one core, and what a second is worth can be seen. "two / one" is
what is left of the time: 0.5 would be perfect. Adding the gradients, and the Python that queues a step, take the same time
whatever the size of the batch: so each network is here with a batch that is usual for one device, and with a larger one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from harness import Bar, Unit, Workload, timed

ONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
Build = Callable[[Any], Any]
COUNT = 10  # steps of a measurement
RATIO = "two / one (ratio)"

work = Workload(
    __file__,
    "training step on two devices that share the batch, BLAS on one thread",
    bars=tuple(
        Bar(RATIO, round(1 / 1.7, 3), variants=(f"{name} hybridized",), absolute=True)
        for name in ("lenet", "lenet of 1024", "resnet", "resnet of 128")
    ),
)


def lenet(mx: Any) -> Any:
    """LeNet with the API of `mx`."""
    nn = mx.gluon.nn
    net = nn.HybridSequential()
    net.add(
        nn.Conv2D(6, 5, activation="sigmoid"), nn.MaxPool2D(2, 2), nn.Conv2D(16, 5, activation="sigmoid"), nn.MaxPool2D(2, 2),
        nn.Dense(120, activation="sigmoid"), nn.Dense(84, activation="sigmoid"), nn.Dense(10),
    )  # fmt: skip
    return net


def resnet(mx: Any) -> Any:
    """Three residual blocks of 16, 32 and 64 channels."""
    nn = mx.gluon.nn

    class Residual(mx.gluon.HybridBlock):  # type: ignore[misc]  # a class of the module that is measured
        def __init__(self, channels: int, stride: int) -> None:
            super().__init__()
            self.body = nn.HybridSequential()
            self.body.add(
                nn.Conv2D(channels, 3, stride, 1),
                nn.BatchNorm(),
                nn.Activation("relu"),
                nn.Conv2D(channels, 3, 1, 1),
                nn.BatchNorm(),
            )
            self.beside = nn.Conv2D(channels, 1, stride) if stride > 1 else None

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return F.relu(self.body(x) + (x if self.beside is None else self.beside(x)))

    net = nn.HybridSequential()
    net.add(nn.Conv2D(16, 3, 1, 1), nn.BatchNorm(), nn.Activation("relu"))
    net.add(Residual(16, 1), Residual(32, 2), Residual(64, 2), nn.GlobalAvgPool2D(), nn.Dense(10))
    return net


def stepper(mx: Any, build: Build, devices: list[Any], batch: int, shape: tuple[int, ...], hybridize: bool) -> Callable[[], None]:
    """A function that makes some steps of training on `devices`."""
    import numpy as np

    random, split = np.random.default_rng(0), mx.gluon.utils.split_and_load
    images = mx.nd.array(random.standard_normal((batch, *shape)).astype(np.float32))
    classes = mx.nd.array(random.integers(0, 10, batch))
    net, loss = build(mx), mx.gluon.loss.SoftmaxCrossEntropyLoss()
    net.initialize(mx.init.Xavier(), ctx=devices)
    if hybridize:
        net.hybridize(static_alloc=True)
        loss.hybridize()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1, "momentum": 0.9})

    def steps() -> None:
        for _ in range(COUNT):
            with mx.autograd.record():
                losses = [loss(net(x), y) for x, y in zip(split(images, devices), split(classes, devices))]
            mx.autograd.backward(losses)
            trainer.step(batch)
        mx.nd.waitall()

    steps()
    return steps


def both(name: str, build: Build, batch: int, shape: tuple[int, ...], hybridize: bool) -> Unit:
    """A unit that makes steps on one device and on two, by turns."""
    mx = importlib.import_module(name)
    one, two = (stepper(mx, build, [mx.cpu(i) for i in range(n)], batch, shape, hybridize) for n in (1, 2))

    def run() -> dict[str, float]:
        alone, shared = timed(one) / COUNT, timed(two) / COUNT
        return {"a step on one": alone, "a step on two": shared, RATIO: shared / alone}

    return run


def enter(title: str, build: Build, batch: int, shape: tuple[int, ...], variants: Sequence[str]) -> None:
    """Register a network for both libraries, eager or hybridized."""

    def setup(name: str, hybridize: bool) -> Callable[[], Unit]:
        return lambda: both(name, build, batch, shape, hybridize)

    for name in ("minimx", "mxnet"):
        for variant in variants:
            work.peer(name, f"{title} {variant}", **ONE)(setup(name, variant == "hybridized"))


enter("lenet", lenet, 256, (1, 28, 28), ("eager", "hybridized"))
enter("lenet of 1024", lenet, 1024, (1, 28, 28), ("hybridized",))
enter("resnet", resnet, 64, (3, 32, 32), ("eager", "hybridized"))
enter("resnet of 128", resnet, 128, (3, 32, 32), ("hybridized",))

if __name__ == "__main__":
    work.main()
