"""Parts of graphs in other runtimes: the same numbers, changing weights, threads, a fork; and what is said when one is missing."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import types
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, nd, sym
from minimx.gluon import nn, rnn
from minimx.sym import backends

pytest.importorskip("onnx")

try:
    import tvm

    HAS_TVM = hasattr(tvm, "compile")
except ImportError:
    HAS_TVM = False


def small_net() -> gluon.HybridBlock:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(3, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(2), nn.Dense(4), nn.Dropout(0.5))
    net.initialize(mx.init.Normal(0.5))
    return net


def data(*shape: int) -> Any:
    return nd.array(np.random.default_rng(0).standard_normal(shape))


@pytest.fixture
def runtime() -> Any:
    return pytest.importorskip("onnxruntime")


def test_names_are_known_before_their_modules_are_needed() -> None:
    assert {"ONNXRuntime", "TVM", "TensorRT"} <= set(backends.names())
    assert backends.find("onnxruntime").name == "ONNXRuntime"


@pytest.mark.parametrize(
    "name", ["ONNXRuntime", pytest.param("TVM", marks=pytest.mark.skipif(not HAS_TVM, reason="needs apache-tvm"))]
)
def test_values_gradients_and_changes(name: str) -> None:
    if name == "ONNXRuntime":
        pytest.importorskip("onnxruntime")
    net, x = small_net(), data(2, 3, 6, 6)
    expected = net(x).asnumpy()
    net.optimize_for(x, backend=name)
    np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-4, atol=1e-5)
    assert f"by {name}" in net.program(x).report()
    net[0].bias.set_data(nd.array([1, 2, 3]))
    net[4].weight.data()[1:2] = 0.5  # in place
    changed = net(x).asnumpy()
    net.hybridize(False)
    np.testing.assert_allclose(changed, net(x).asnumpy(), rtol=1e-4, atol=1e-5)
    assert np.abs(changed - expected).max() > 0.01
    net.optimize_for(x, backend=name)
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    with autograd.record(train_mode=False):
        loss = (net(x) ** 2).sum()
    loss.backward()
    trainer.step(1)
    after = net(x).asnumpy()
    net.hybridize(False)
    np.testing.assert_allclose(after, net(x).asnumpy(), rtol=1e-4, atol=1e-5)


def test_a_recurrent_network_in_onnxruntime(runtime: Any) -> None:
    net = nn.HybridSequential()
    net.add(rnn.LSTM(4, num_layers=2, bidirectional=True, input_size=3), nn.Dense(2, flatten=False))
    net.initialize(mx.init.Normal(0.5))
    x = data(5, 2, 3)
    expected = net(x).asnumpy()
    net.hybridize(backend="ONNXRuntime", optimize=1, threads=1)
    np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-4, atol=1e-5)
    assert "by ONNXRuntime" in net.program(x).report()


def test_operators_without_a_form_in_onnx_stay(runtime: Any) -> None:
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            y = F.relu(x) * 2
            return F.exp(F.gamma(F.abs(y) + 1)) + y

    net, x = Net(), nd.array([1, -1, 0.5])
    expected = net(x).asnumpy()
    net.optimize_for(x, backend="ONNXRuntime")
    np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-5)
    assert net.program(x).report().count("by ONNXRuntime") == 2  # before and after it
    assert "gamma" in net.program(x).source


def test_what_onnx_does_not_take_is_declined(runtime: Any) -> None:
    graph = (sym.var("x") + sym.var("y")) * sym.var("x")
    found = graph.optimize_for("ONNXRuntime")
    values = {name: nd.array([1, 2], dtype="uint8") for name in "xy"}
    assert found.eval(**values)[0].asnumpy().tolist() == [2, 8]
    assert "declines" in found.bind(mx.cpu(), values).program.report()


def test_threads_share_a_session(runtime: Any) -> None:
    net, x = small_net(), data(2, 3, 6, 6)
    expected = net(x).asnumpy()
    net.optimize_for(x, backend="ONNXRuntime")
    found: list[Any] = []
    gate = threading.Barrier(4)

    def ask() -> None:
        gate.wait()
        found.append(net(x).asnumpy())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    for each in found:
        np.testing.assert_allclose(each, expected, rtol=1e-4, atol=1e-5)


def _in_child(net: Any, x: Any, answers: Any) -> None:
    answers.put(net(x).asnumpy().tolist())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_has_a_session_of_its_own(runtime: Any) -> None:
    net, x = small_net(), data(1, 3, 6, 6)
    net.optimize_for(x, backend="ONNXRuntime")
    expected = net(x).asnumpy()
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_in_child, args=(net, x, answers))
    child.start()
    np.testing.assert_allclose(answers.get(timeout=60), expected, rtol=1e-5)
    child.join()


def test_options_of_onnxruntime(runtime: Any) -> None:
    net, x = small_net(), data(1, 3, 6, 6)
    with pytest.raises(ValueError, match="optimize=7 0, 1, 2 or 3"):
        net.optimize_for(x, backend="ONNXRuntime", optimize=7)
    with pytest.raises(ValueError, match="unknown option level; it takes threads=0, optimize=3"):
        net.optimize_for(x, backend="ONNXRuntime", level=1)


# ---- packages that are not there


@pytest.mark.parametrize(
    ("name", "missing", "extra"),
    [
        ("ONNXRuntime", "onnxruntime", "onnxruntime"),
        ("TVM", "tvm.relax.frontend.onnx", "tvm"),
        ("TensorRT", "onnxruntime", "tensorrt"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(name: str, missing: str, extra: str, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=rf"needs the package {missing.partition('.')[0]}.*pip install 'minimx\[{extra}\]'"):
        small_net().optimize_for(data(1, 3, 6, 6), backend=name)


def test_without_onnx_nothing_can_be_exported(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'minimx\[onnx\]'"):
        mx.onnx.export_model(sym.relu(sym.var("x")), {}, [(1,)])
    with pytest.raises(ImportError, match=r"pip install 'minimx\[onnx\]'"):
        mx.contrib.onnx.import_model("model.onnx")


def test_tensorrt_says_what_it_needs(runtime: Any) -> None:
    if "TensorrtExecutionProvider" in runtime.get_available_providers():
        pytest.skip("it is here")
    with pytest.raises(mx.MXNetError, match="needs an NVIDIA GPU, the package onnxruntime-gpu"):
        small_net().hybridize(backend="TensorRT")


# ---- TVM's interface, played by a module that computes with ONNX's reference implementation


@pytest.fixture
def played(monkeypatch: Any) -> list[Any]:
    """A package `tvm` with the functions that the backend calls."""
    calls: list[Any] = []
    reference = pytest.importorskip("onnx.reference")

    class Machine:
        def __init__(self, program: Any, device: Any) -> None:
            self.model = program

        def __getitem__(self, name: str) -> Any:
            assert name == "main"

            def main(*tensors: Any) -> Any:
                names = [each.name for each in self.model.graph.input]
                found = reference.ReferenceEvaluator(self.model).run(None, dict(zip(names, (each.array for each in tensors))))
                tensors = [Tensor(each) for each in found]
                return tensors[0] if len(tensors) == 1 else tensors

            return main

    class Tensor:
        def __init__(self, array: Any) -> None:
            self.array = array

        def numpy(self) -> Any:
            return self.array

    def from_onnx(model: Any, shape_dict: Any, keep_params_in_input: bool) -> Any:
        calls.append(("from_onnx", shape_dict, keep_params_in_input))
        return model

    def compile(model: Any, target: str, relax_pipeline: str) -> Any:
        calls.append(("compile", target, relax_pipeline))
        return model

    parts = {
        "tvm": {"compile": compile, "cpu": lambda: "cpu", "runtime": types.SimpleNamespace(tensor=Tensor)},
        "tvm.relax": {"VirtualMachine": Machine}, "tvm.relax.frontend": {}, "tvm.relax.frontend.onnx": {"from_onnx": from_onnx},
    }  # fmt: skip
    for name, members in parts.items():
        module = types.ModuleType(name)
        module.__dict__.update(members, __path__=[])
        monkeypatch.setitem(sys.modules, name, module)
    return calls


def test_what_tvm_is_asked_for(played: list[Any]) -> None:
    net = nn.HybridSequential()
    net.add(nn.Dense(4, in_units=3), nn.Activation("tanh"))
    net.initialize(mx.init.Normal(0.5))
    x = data(2, 3)
    expected = net(x).asnumpy()
    net.optimize_for(x, backend="TVM", target="llvm -mcpu=native")
    np.testing.assert_allclose(net(x).asnumpy(), expected, rtol=1e-5)
    net(x).wait_to_read()
    assert played == [("from_onnx", {"data": [2, 3]}, False), ("compile", "llvm -mcpu=native", "default")]
