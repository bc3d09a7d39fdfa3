"""W8: inference of ResNet-50 on eight images of 224 x 224, one after the other and all at once. Seconds an image."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networks
from exported import export, session
from gluon_peers import MODES, STATIC, hybridized
from harness import Bar, Unit, Workload, timed

SIDE, CLASSES = 224, 1000
ONE, EIGHT = "an image, one at a time", "an image, eight at a time"

work = Workload(
    __file__,
    "inference of ResNet-50",
    bars=(Bar(ONE, 1.0, against=("onnxruntime",)), Bar(EIGHT, 1.0, against=("onnxruntime",))),
)


def shape(count: int) -> tuple[int, ...]:
    """Of a batch, channels first."""
    return (count, 3, SIDE, SIDE)


def unit(calls: dict[int, Callable[[], Any]]) -> Unit:
    """The unit of work: eight calls on an image, and one on eight images."""

    def one_by_one() -> None:
        for _ in range(8):
            calls[1]()

    def run() -> dict[str, float]:
        found = {}
        for title, call in ((ONE, one_by_one), (EIGHT, calls[8])):
            call()  # what was measured before leaves other memory in caches, and threads that go on turning for a while
            found[title] = timed(call) / 8
        return found

    return run


def of_both(call: Callable[[Any], Any], images: dict[int, Any]) -> Unit:
    """The unit of work of a function that does not return before it is done."""
    return unit({count: functools.partial(call, each) for count, each in images.items()})


def in_gluon(mx: Any, prepare: Callable[[Any, Any], Any]) -> Unit:
    """The unit of work in MXNet's API. `prepare(net, images)` hybridizes it, or optimizes it for a backend."""

    def calling(count: int) -> Callable[[], Any]:
        net = mx.gluon.model_zoo.vision.resnet50_v1(classes=CLASSES)
        net.initialize(mx.init.Xavier())
        images = mx.nd.random.normal(shape=shape(count))
        net(images).wait_to_read()
        prepare(net, images)
        for _ in range(2):
            net(images).wait_to_read()
        return lambda: net(images).wait_to_read()

    return unit({count: calling(count) for count in (1, 8)})


def entered(name: str, prepare: Callable[[Any, Any], Any]) -> Callable[[], Unit]:
    """What measures the library `name`."""
    return lambda: in_gluon(importlib.import_module(name), prepare)


def in_mode(how: dict[str, bool] | None) -> Callable[[Any, Any], Any]:
    """What hybridizes a network with the options `how`, or leaves it as it is."""
    return lambda net, images: hybridized(net, how)


def optimized(backend: str) -> Callable[[Any, Any], Any]:
    """What optimizes a network for a backend."""
    return lambda net, images: net.optimize_for(images, backend=backend, **STATIC)


for variant, how in MODES.items():
    for library in ("minimx", "mxnet"):
        work.peer(library, variant)(entered(library, in_mode(how)))
for backend in ("ONEDNN", "ONNXRuntime"):
    work.peer("minimx", f"optimized for {backend}")(entered("minimx", optimized(backend)))
work.peer("mxnet", "optimized for MKLDNN")(entered("mxnet", optimized("MKLDNN")))


@work.peer("torch", "inference")
def _() -> Unit:
    import torch

    torch.set_num_threads(2)
    net = torch.inference_mode()(networks.in_torch(torch.nn, networks.RESNET50, CLASSES).eval())
    images = {count: torch.randn(*shape(count)) for count in (1, 8)}
    return of_both(net, images)


@work.peer("torch", "frozen")
def _() -> Unit:
    import torch

    torch.set_num_threads(2)
    images = {count: torch.randn(*shape(count)) for count in (1, 8)}
    with torch.no_grad():
        traced = torch.jit.trace(networks.in_torch(torch.nn, networks.RESNET50, CLASSES).eval(), images[1])
        net = torch.inference_mode()(torch.jit.optimize_for_inference(torch.jit.freeze(traced)))
    for count in (1, 1, 8, 8):  # it compiles once more for what it has seen
        net(images[count])
    return of_both(net, images)


@work.peer("jax", "jit")
def _() -> Unit:
    import jax

    net = networks.InJax(networks.RESNET50, CLASSES, training=False)
    forward = jax.jit(net.forward)
    parameters = jax.tree.map(jax.numpy.asarray, net.parameters)
    images = {count: jax.random.normal(jax.random.key(0), (count, SIDE, SIDE, 3)) for count in (1, 8)}
    return of_both(lambda x: forward(parameters, x).block_until_ready(), images)


@work.files
def _(folder: Path) -> None:
    import minimx as mx

    for count in (1, 8):
        net = mx.gluon.model_zoo.vision.resnet50_v1(classes=CLASSES)
        net.initialize(mx.init.Xavier())
        export(net, shape(count), folder / f"resnet50-{count}.onnx")


@work.peer("onnxruntime")
def _() -> Unit:
    return unit({count: session(f"resnet50-{count}.onnx", shape(count)) for count in (1, 8)})


if __name__ == "__main__":
    work.main()
