"""Backends that run parts of a graph in other runtimes, by way of ONNX: ONNX Runtime, TVM, TensorRT.

Each takes the operators that have a form in ONNX. A part becomes an ONNX model whose parameters are constants, so that the runtime can fold
and repack them; it is made once, and again when a parameter has changed (`Prepared`). Book: chapter 13.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..base import ArgumentError, MXNetError
from ..device import Context
from ..kernels import threads
from ..op import Op, Spec
from ..sym.backends import Backend, Options, Prepared, register
from ..sym.composite import Subgraph
from ..sym.graph import Node
from ..sym.passes.typed import TypedGraph, operator
from .graph import CONVERTERS, TYPES, Graph, UnsupportedError, Value
from .model import MissingPackageError, model_of, package_onnx, require_types
from .walk import Source, walk

__all__ = ["ONNXRuntime", "TVM", "TensorRT", "model_for"]

#: Called with the model of a part; returns what runs it, on the arrays of its inputs.
Runner = Callable[..., Sequence[np.ndarray[Any, Any]]]


def imported(module: str, called: str, extra: str) -> Any:
    """An optional module. **Raises** MissingPackageError, which says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingPackageError(
            f"the backend {called} needs the package {package}, which cannot be imported ({error}): pip install 'minimx[{extra}]'"
        ) from None


def converted(graph: TypedGraph, parameters: Sequence[np.ndarray[Any, Any]]) -> tuple[Graph, list[Value]]:
    """A part whose `graph.parameters` have these values, in ONNX. **Raises** UnsupportedError for what has no form there."""
    constants = dict(zip(graph.parameters, parameters))
    inputs = [node for node in graph.variables if node not in constants]
    ops: dict[Node, Op] = {node: operator(node) for node in graph.order}
    source = Source([*graph.variables, *graph.order], ops, graph.heads, [graph.specs], inputs, constants)
    found, outputs = walk(source, [f"output{number}" for number in range(len(graph.heads))])
    for node in found.nodes:
        require_types(found, node)
    return found, outputs


def model_for(graph: TypedGraph, parameters: Sequence[np.ndarray[Any, Any]]) -> Any:
    """The ONNX model of a part."""
    return model_of(*converted(graph, parameters), {})


#: Operators whose result is a constant of the file.
CONSTANT = ("_arange", "_eye", "_full", "_ones", "_zeros")


class ThroughONNX(Backend):
    """What the backends here have in common: they take what has a form in ONNX, and compile an ONNX model."""

    def takes(self, node: Node) -> bool:
        assert node.op is not None
        return node.op.name in CONVERTERS or node.op.name in CONSTANT

    def accepts(self, graph: Subgraph) -> bool:
        """A part of single cheap operators is not worth the way to another runtime."""
        return sum(node.op is not None for node in graph.order) > 1

    def runner(self, model: Any, graph: TypedGraph, options: Any) -> Runner:
        """What runs a model: a function from the arrays of its inputs to those of its outputs."""
        raise NotImplementedError

    def compile(self, graph: TypedGraph, context: Context, options: Any) -> Callable[..., Sequence[Any]] | None:
        if not context.host or any(spec.dtype.name not in TYPES or not spec.size for spec in graph.specs.values()):
            return None
        places = [graph.variables.index(node) for node in graph.parameters]
        others = [place for place in range(len(graph.variables)) if place not in places]
        specs = [graph.specs[node, 0] for node in graph.parameters]
        try:  # with numbers that take no memory
            converted(graph, [np.broadcast_to(np.ones((), spec.dtype), spec.shape) for spec in specs])
        except UnsupportedError:
            return None
        prepared: Prepared[Runner] = Prepared(lambda *arrays: self.runner(model_for(graph, arrays), graph, options))

        def run(*arrays: np.ndarray[Any, Any]) -> Sequence[np.ndarray[Any, Any]]:
            runner = prepared(*[arrays[place] for place in places])
            return runner(*[arrays[place] for place in others])

        return run


# ---- ONNX Runtime


@dataclass(frozen=True)
class RuntimeOptions(Options):
    """`threads` that one part may use, 0: as many as the cores; `optimize`: how much the runtime rewrites the graph, 0 to 3."""

    threads: int = 0
    optimize: int = 3


@register
class ONNXRuntime(ThroughONNX):
    """Microsoft's ONNX Runtime, on the CPU."""

    name: ClassVar[str] = "ONNXRuntime"
    options: ClassVar[type[Options]] = RuntimeOptions

    def require(self) -> None:
        package_onnx()
        imported("onnxruntime", self.name, "onnxruntime")

    def chosen(self, given: Any) -> Options:
        found = super().chosen(given)
        assert isinstance(found, RuntimeOptions)
        if found.threads < 0 or not 0 <= found.optimize <= 3:
            raise ArgumentError(
                f"backend {self.name}: threads={found.threads} must be 0 or more, optimize={found.optimize} 0, 1, 2 or 3"
            )
        return found

    def runner(self, model: Any, graph: TypedGraph, options: RuntimeOptions) -> Runner:
        return Sessions(model, [graph.specs[head] for head in graph.heads], options)


class Sessions:
    """A model in ONNX Runtime, with sessions for as many threads as a task may use now.

    The number of threads of a session is fixed, so there is one for all cores, and one with a single thread for when several lanes compute.
    Inputs and outputs are bound to memory of ours, so that nothing is copied.
    """

    LEVELS: ClassVar = ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL")

    def __init__(self, model: Any, specs: Sequence[Spec], options: RuntimeOptions) -> None:
        self.specs = specs
        self.contents = model.SerializeToString()
        self.inputs = [each.name for each in model.graph.input]
        self.outputs = [each.name for each in model.graph.output]
        self.options = options
        self.full = options.threads or threads.FULL
        self.lock = threading.Lock()
        self.sessions: dict[int, Any] = {}
        self.process = os.getpid()
        self.left_behind: list[dict[int, Any]] = []  # sessions of a parent process, whose threads nobody could end here

    def session(self) -> Any:
        """The session for the threads that are free now; after a fork a new one, as a runtime's threads stay behind."""
        wanted = self.full if threads.running < 2 and not threads.forked else 1
        if self.process != os.getpid():
            self.left_behind.append(self.sessions)
            self.lock, self.sessions, self.process = threading.Lock(), {}, os.getpid()
        with self.lock:
            if wanted not in self.sessions:
                self.sessions[wanted] = self.started(wanted)
            return self.sessions[wanted]

    def started(self, count: int) -> Any:
        runtime = importlib.import_module("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = count
        options.inter_op_num_threads = 1
        options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, self.LEVELS[self.options.optimize])
        options.add_session_config_entry("session.force_spinning_stop", "1")  # idle threads leave the cores to our lanes
        options.log_severity_level = 3
        try:
            return runtime.InferenceSession(self.contents, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # of the runtime, each of a class of its own
            raise MXNetError(f"backend ONNXRuntime: the model cannot be loaded: {error}") from None

    def __call__(self, *arrays: np.ndarray[Any, Any]) -> Sequence[np.ndarray[Any, Any]]:
        session = self.session()
        binding = session.io_binding()
        for name, array in zip(self.inputs, arrays):
            binding.bind_cpu_input(name, array)
        outputs = [np.empty(spec.shape, spec.dtype) for spec in self.specs]
        for name, output in zip(self.outputs, outputs):
            binding.bind_output(name, "cpu", 0, output.dtype, output.shape, output.ctypes.data)
        session.run_with_iobinding(binding)
        return outputs


# ---- TVM


@dataclass(frozen=True)
class TVMOptions(Options):
    """`target`: what code is made for, as TVM writes it; `pipeline`: the name of the sequence of TVM's passes."""

    target: str = "llvm"
    pipeline: str = "default"


@register
class TVM(ThroughONNX):
    """Apache TVM: a part becomes machine code, by its importer of ONNX models and its compiler."""

    name: ClassVar[str] = "TVM"
    options: ClassVar[type[Options]] = TVMOptions

    def require(self) -> None:
        package_onnx()
        imported("tvm.relax.frontend.onnx", self.name, "tvm")

    def runner(self, model: Any, graph: TypedGraph, options: TVMOptions) -> Runner:
        tvm = importlib.import_module("tvm")
        relax = importlib.import_module("tvm.relax")
        frontend = importlib.import_module("tvm.relax.frontend.onnx")
        shapes = {each.name: [length.dim_value for length in each.type.tensor_type.shape.dim] for each in model.graph.input}
        try:
            module = frontend.from_onnx(model, shape_dict=shapes, keep_params_in_input=False)
            program = tvm.compile(module, target=options.target, relax_pipeline=options.pipeline)
            machine = relax.VirtualMachine(program, tvm.cpu())
        except Exception as error:  # of TVM, of many classes
            raise MXNetError(f"backend TVM: the part cannot be compiled: {error}") from error
        lock = threading.Lock()  # a machine serves one thread at a time

        def run(*arrays: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
            with lock:
                found = machine["main"](*[tvm.runtime.tensor(array) for array in arrays])
                single = hasattr(found, "numpy")
                return [each.numpy() for each in ([found] if single else found)]

        return run


# ---- TensorRT


@register
class TensorRT(ThroughONNX):
    """NVIDIA TensorRT, by ONNX Runtime's provider of that name, on a GPU."""

    name: ClassVar[str] = "TensorRT"

    def require(self) -> None:
        """Raise MXNetError, which says what is missing: the runtime with TensorRT, or a GPU."""
        package_onnx()
        runtime = imported("onnxruntime", self.name, "tensorrt")
        if "TensorrtExecutionProvider" not in runtime.get_available_providers():
            raise MissingPackageError(
                "the backend TensorRT needs an NVIDIA GPU, the package onnxruntime-gpu and NVIDIA's TensorRT: "
                f"pip install 'minimx[tensorrt]' in the place of onnxruntime; here are {', '.join(runtime.get_available_providers())}"
            )

    def runner(self, model: Any, graph: TypedGraph, options: Any) -> Runner:
        runtime = importlib.import_module("onnxruntime")
        providers = ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]
        session = runtime.InferenceSession(model.SerializeToString(), providers=providers)
        names = [each.name for each in session.get_inputs()]

        def run(*arrays: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
            return list(session.run(None, dict(zip(names, arrays))))

        return run
