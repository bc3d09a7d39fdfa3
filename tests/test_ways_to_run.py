"""Every way to run a network gives the same: outputs, gradients, gradients of gradients, running means, and parameters after training.

Hypothesis draws a network (networks.py), what is done with it, and a few ways to do it: as a graph with all flags, with passes switched
off, exported and imported, pickled, in machine code, by an executor, under NaiveEngine, lazily, by two threads, on a simulated GPU. What
plain Python gives, operator by operator, is right; the operators themselves are tested elsewhere. MINIMX_EXAMPLES=5000 looks longer.
"""

from __future__ import annotations

import contextlib
import copy
import os
import pickle
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

import minimx as mx
from minimx import autograd, engine, gluon, nd, storage, sym
from minimx.base import MXNetError
from minimx.engine import execute
from minimx.kernels import machine
from minimx.op import Kind
from minimx.sym import passes
from minimx.sym.passes import fusion, mirror
from minimx.sym.passes.memory import Where, _Planner, takes_out
from minimx.sym.passes.typed import operator

from .networks import Net, Plan, plans

EXAMPLES = int(os.environ.get("MINIMX_EXAMPLES", "0"))
TOLERANCES = {
    "float64": 1e-9,
    "float32": 2e-3,
    "float16": 5e-2,
}  # relative to the largest element; the last two: of chains of layers


@dataclass(frozen=True)
class Step:
    """What is done once: see `Runner`."""

    what: str
    batch: int
    seed: int


@dataclass(frozen=True)
class Case:
    plan: Plan
    steps: tuple[Step, ...]
    reqs: tuple[str, ...]  # grad_req of the parameters, in turn
    dtype: str
    small: bool  # whether small arrays are treated as large ones are
    first: int  # size of the batch from which a network learns its shapes
    number: int  # for choices that a way makes


Log = list[tuple[str, Any]]


def flat(values: Any) -> list[Any]:
    return [each for value in values for each in flat(value)] if isinstance(values, (list, tuple)) else [values]


# ---- data


def numbers(case: Case, step: Step) -> list[np.ndarray]:
    """What goes into the network: examples, and labels and weights of samples if there is a loss."""
    plan, rng = case.plan, np.random.default_rng(step.seed)
    shape, result = (step.batch, *plan.shape), (step.batch, *plan.result)
    given = [rng.integers(0, plan.tokens, shape).astype(float) if plan.tokens else rng.normal(size=shape)]
    if plan.loss is not None:
        labels: dict[str, Callable[[], Any]] = {
            "values": lambda: rng.normal(size=result),
            "positive": lambda: rng.exponential(size=result),
            "probabilities": lambda: rng.dirichlet(np.ones(result[-1]), result[:-1]),
            "classes": lambda: rng.integers(0, result[-1], result[:-1]).astype(float),
            "signs": lambda: rng.choice([-1.0, 1.0], result),
            "sequence": lambda: rng.integers(0, result[-1] - 1, (step.batch, 1)).astype(float),
        }
        given.append(labels[plan.label]())
        if plan.label not in ("classes", "sequence") and case.number % 2:
            given.append(rng.random((step.batch, *(1 for _ in plan.result))))
    return given


def head_gradient(output: Any, number: int, context: Any) -> Any:
    return nd.array(np.random.default_rng(number).normal(size=output.shape), context, output.dtype)


def initial(params: dict[str, Any], case: Case) -> dict[str, np.ndarray]:
    """A value for each parameter."""
    rng = np.random.default_rng(case.number)
    values = {}
    for name in sorted(params):
        shape = params[name].shape
        values[name] = rng.random(shape) + 0.5 if name.endswith("running_var") else rng.normal(size=shape) * 0.7
    return values


def fresh(case: Case, hybrid: bool = False, **flags: Any) -> Net:
    """The network with its parameters."""
    net = case.plan.build(tame=case.dtype != "float64")
    net.initialize()
    net.cast(case.dtype)
    if hybrid:
        net.hybridize(**flags)
    net(*arrays(case, Step("", case.first, 1), mx.cpu()))
    params = dict(net.collect_params())
    for name, value in initial(params, case).items():
        params[name].set_data(nd.array(value, dtype=params[name].dtype))
    learned = [name for name in sorted(params) if params[name].grad_req != "null"]
    for position, name in enumerate(learned):
        params[name].grad_req = case.reqs[position % len(case.reqs)]
    return net


def arrays(case: Case, step: Step, context: Any) -> list[Any]:
    return [nd.array(each, context, case.dtype) for each in numbers(case, step)]


# ---- what is done with a network


class Runner:
    """Does the steps of a case with a block, and logs what can be seen."""

    def __init__(self, case: Case, block: Any, context: Any = None) -> None:
        self.case, self.block, self.context = case, block, context or mx.cpu()
        self.log: Log = []
        self.trainer: Any = None
        self.kept: list[tuple[Any, np.ndarray]] = []  # arrays that later steps must leave alone, and their values
        self.views: dict[str, Any] = {}  # of some gradients, by the name of the parameter: they see what becomes of them

    @property
    def params(self) -> dict[str, Any]:
        return dict(sorted(self.block.collect_params().items()))

    def run(self, before: Callable[[int], None] = lambda number: None) -> Log:
        """The log of all steps; it ends at the first that raises. **Args** `before`: called with the number of each step."""
        for number, step in enumerate(self.case.steps):
            before(number)
            mx.random.seed(step.seed, self.context)
            try:
                getattr(self, step.what)(step)
            except MXNetError as error:
                self.note("raises", str(error))
                break
        for array, value in self.kept:
            np.testing.assert_array_equal(array.asnumpy(), value, "an array that was handed out has changed")
        return self.log

    def note(self, what: str, value: Any) -> None:
        self.log.append((what, value.asnumpy() if isinstance(value, nd.NDArray) else value))

    def note_all(self, step: Step, outputs: Sequence[Any] = (), x: Any = None) -> None:
        for number, output in enumerate(outputs):
            self.note(f"{step.what}: output {number}", output)
        if x is not None and x.grad is not None:
            self.note(f"{step.what}: gradient of data", x.grad)
        for name, param in self.params.items():
            if param.grad_req == "null":
                self.note(f"{step.what}: {name}", param.data(self.context))
            elif x is not None:
                gradient = param.grad(self.context)
                if step.seed % 2:
                    self.views.setdefault(name, gradient.reshape((-1,)))
                if name in self.views:
                    np.testing.assert_array_equal(self.views[name].asnumpy(), gradient.asnumpy().ravel())
                self.note(f"{step.what}: gradient of {name}", gradient)

    def keep(self, *kept: Any) -> None:
        self.kept += [(array, array.asnumpy()) for array in kept]

    def given(self, step: Step) -> list[Any]:
        made = arrays(self.case, step, self.context)
        if step.seed % 3 == 0:  # a part of a larger array
            made = [nd.concat(each, each, each, dim=0)[step.batch : 2 * step.batch] for each in made]
        self.keep(*made)
        if not self.case.plan.tokens:
            made[0].attach_grad()
        return made

    def differentiate(self, outputs: Sequence[Any], **how: Any) -> None:
        autograd.backward(
            list(outputs), [head_gradient(each, number, self.context) for number, each in enumerate(outputs)], **how
        )

    def predict(self, step: Step) -> None:
        """Twice: the second call may go a shorter way."""
        args = self.given(step)
        for _ in range(2):
            outputs = flat(self.block(*args))
            self.keep(*outputs)
            self.note_all(step, outputs)

    def predict_as_in_training(self, step: Step) -> None:
        with autograd.train_mode():
            outputs = flat(self.block(*self.given(step)))
        self.note_all(step, outputs)

    def train(self, step: Step) -> None:
        args = self.given(step)
        with autograd.record():
            outputs = flat(self.block(*args))
        self.keep(*outputs)
        self.differentiate(outputs)
        self.note_all(step, outputs, args[0])

    def train_twice(self, step: Step) -> None:
        """backward again, and then from the first output alone."""
        args = self.given(step)
        with autograd.record():
            outputs = flat(self.block(*args))
        for again in range(2):
            self.differentiate(outputs, retain_graph=True)
            self.note_all(step, outputs if not again else (), args[0])
        self.differentiate(outputs[:1])
        self.note_all(step, (), args[0])

    def train_frozen(self, step: Step) -> None:
        """Gradients of inference."""
        args = self.given(step)
        with autograd.record(train_mode=False):
            outputs = flat(self.block(*args))
        self.differentiate(outputs, train_mode=False)
        self.note_all(step, outputs, args[0])

    def train_inside(self, step: Step) -> None:
        """As a part of a larger computation, in which the network is used twice."""
        args = self.given(step)
        with autograd.record():
            first = flat(self.block(*args))
            second = flat(self.block(args[0] if self.case.plan.tokens else args[0] * 1.5, *args[1:]))
            outputs = [one * other + one for one, other in zip(first, second)]
        self.differentiate(outputs)
        self.note_all(step, outputs, args[0])

    def second(self, step: Step) -> None:
        """Gradients of gradients."""
        args = self.given(step)
        wanted = [
            *([] if self.case.plan.tokens else args[:1]),
            *(each.data(self.context) for each in self.params.values() if each.grad_req != "null"),
        ]
        with autograd.record():
            outputs = flat(self.block(*args))
            heads = [head_gradient(each, number, self.context) for number, each in enumerate(outputs)]
            first = autograd.grad(outputs, wanted, heads, retain_graph=True, create_graph=True)
            total = nd.add_n(*[(each * head_gradient(each, 7, self.context)).sum().reshape((1,)) for each in first])
        self.keep(*outputs, *first)
        for number, each in enumerate(first):
            self.note(f"second: gradient {number}", each)
        if total.node is None:
            return
        states = {name: param.data(self.context) for name, param in self.params.items() if "running" in name}
        values = {name: state.asnumpy() for name, state in states.items()}
        for param in self.params.values():
            param.zero_grad()  # what backward does not reach keeps its gradient, and a graph is reached as a whole
        total.backward()
        for name, state in states.items():
            state[:] = values[name]  # how often backward of backward moves them depends on how often a graph computes them again
        self.note_all(step, outputs, args[0])

    def learn(self, step: Step) -> None:
        """A step of training."""
        if self.trainer is None:
            how = {"learning_rate": 0.05, "momentum": 0.9, "multi_precision": self.case.dtype == "float16"}
            self.trainer = gluon.Trainer(self.block.collect_params(), "sgd", how)
        args = self.given(step)
        with autograd.record():
            outputs = flat(self.block(*args))
        self.differentiate(outputs)
        self.trainer.step(step.batch, ignore_stale_grad=True)
        self.note_all(step, outputs, args[0])
        for name, param in self.params.items():
            self.note(f"learn: {name}", param.data(self.context))


STEPS = ("predict", "predict_as_in_training", "train", "train_twice", "train_frozen", "train_inside", "second", "learn")


# ---- ways: each gives the log that it has, and the steps that it has done

Way = Callable[[Case], Log]


def eager(case: Case) -> Log:
    return Runner(case, fresh(case)).run()


def hybrid(case: Case) -> Log:
    flags = {
        "static_alloc": bool(case.number & 1), "static_shape": bool(case.number & 3 == 3), "inline_limit": (2, 0, 100)[case.number % 3]
    }  # fmt: skip
    return Runner(case, fresh(case, True, **flags)).run()


def hybrid_after(case: Case) -> Log:
    """Python code first, and a graph from the second step on, or in turns."""
    net = fresh(case)
    return Runner(case, net).run(lambda number: net.hybridize(number % 3 != 0) if case.number % 2 else net.hybridize(number > 0))


def hybrid_parts(case: Case) -> Log:
    """Some parts as graphs, in a network that is Python code."""
    net = fresh(case)
    for number, block in enumerate(net.body):
        block.hybridize((case.number >> number) % 2 == 0)
    return Runner(case, net).run()


def without_a_pass(case: Case) -> Log:
    names = [*passes.PASSES, *passes.LATE_PASSES]
    with passes.without(names[case.number % len(names)]):
        return hybrid(case)


def without_passes(case: Case) -> Log:
    with passes.without(*passes.PASSES, *passes.LATE_PASSES):
        return hybrid(case)


def mirrored(case: Case) -> Log:
    """What is cheap is computed again for the gradients, however small it is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MXNET_BACKWARD_DO_MIRROR", "1")
        patch.setattr(mirror, "LOOPED", 1)
        patch.setattr(mirror, "CHAIN", 1 + case.number % 8)
        return hybrid(case)


def in_machine_code(case: Case) -> Log:
    """Groups are loops from the first run on, however small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "MODE", "eager")
        for name in ("LOOPED", "FOLDED"):
            patch.setattr(fusion, name, 4)
        return hybrid(case)


def imported(case: Case) -> Log:
    """Exported, and imported as a SymbolBlock."""
    block = through_files(case)
    if case.number % 2:
        block.hybridize(static_alloc=bool(case.number & 2))
    return Runner(case, block).run()


def through_files(case: Case) -> Any:
    net = fresh(case, True)
    with tempfile.TemporaryDirectory() as folder:
        files = net.export(os.path.join(folder, "net"))
        block = gluon.SymbolBlock.imports(files[0], inputs_of(case), files[1])
    copied = block.collect_params()
    for name, param in net.collect_params().items():
        if name in copied:
            copied[name].grad_req = param.grad_req
    return block


def inputs_of(case: Case) -> list[str]:
    count = len(numbers(case, Step("", 1, 1)))
    return ["data"] if count == 1 else [f"data{number}" for number in range(count)]


def copied(case: Case) -> Log:
    """Pickled, or copied deep, with or without a graph."""
    net = fresh(case, bool(case.number & 1))
    for param in net.collect_params().values():
        param.data().wait_to_read()
    other = pickle.loads(pickle.dumps(net)) if case.number & 2 else copy.deepcopy(net)
    return Runner(case, other).run()


def naive(case: Case) -> Log:
    with engine.naive():
        return Runner(case, fresh(case, bool(case.number & 1))).run()


def lazy(case: Case) -> Log:
    with engine.lazy():
        return Runner(case, fresh(case, bool(case.number & 1))).run()


def bulked(case: Case) -> Log:
    """Operator by operator, with other sizes of segments."""
    with engine.bulk((1, 3, 100)[case.number % 3]):
        return Runner(case, fresh(case, bool(case.number & 1))).run()


def inside_another(case: Case) -> Log:
    """A part of a network that is hybridized as a whole."""

    class Outer(gluon.HybridBlock):
        def hybrid_forward(self, F: Any, *args: Any) -> Any:
            return self.inner(*args)

    net = fresh(case)
    outer = Outer()
    outer.inner = net
    outer.hybridize()
    return Runner(case, outer).run()


def on_a_gpu(case: Case) -> Log:
    with mx.device.simulate_gpus(1):
        net = fresh(case, bool(case.number & 1))
        net.collect_params().reset_ctx(mx.gpu(0))
        return Runner(case, net, mx.gpu(0)).run()


def by_threads(case: Case) -> Log:
    """Two threads that predict with one network at the same time get what one gets after the other."""
    net = fresh(case, True, static_alloc=bool(case.number & 1))
    logs: list[Any] = [None, None]

    def work(number: int) -> None:
        try:
            logs[number] = Runner(case, net).run()
        except Exception as error:
            logs[number] = [("failed", repr(error))]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    compare(case, logs[1], logs[0], "two threads")
    return logs[0]


class ByExecutor(Runner):
    """The steps of a case with executors: one for each shape, which share their arrays."""

    def __init__(self, case: Case, net: Net, graph: Any) -> None:
        super().__init__(case, net)
        self.graph, self.names = graph, inputs_of(case)
        self.executor: Any = None

    def at(self, step: Step) -> Any:
        shapes = {name: each.shape for name, each in zip(self.names, numbers(self.case, step))}
        if self.executor is None:
            params = self.block.collect_params()
            of_params = {name: param.dtype for name, param in params.items()}
            kinds = {name: param.grad_req for name, param in params.items()}
            kinds.update(dict.fromkeys(self.names, "null"))
            if not self.case.plan.tokens:
                kinds[self.names[0]] = "write"
            dtypes = {**of_params, **dict.fromkeys(self.names, self.case.dtype)}
            asked = {name: kinds[name] for name in self.graph.list_arguments()}
            self.executor = self.graph.simple_bind(mx.cpu(), grad_req=asked, type_dict=dtypes, **shapes)
            for name, array in (*self.executor.arg_dict.items(), *self.executor.aux_dict.items()):
                if name in params:
                    array[:] = params[name].data()
        else:
            self.executor = self.executor.reshape(allow_up_sizing=True, **shapes)
        return self.executor

    def forward(self, step: Step, is_train: bool) -> list[Any]:
        bound = self.at(step)
        return bound.forward(is_train, **dict(zip(self.names, arrays(self.case, step, mx.cpu()))))

    def backward(self, outputs: Sequence[Any], **how: Any) -> None:
        self.executor.backward([head_gradient(each, number, mx.cpu()) for number, each in enumerate(outputs)], **how)

    def note_all(self, step: Step, outputs: Sequence[Any] = (), x: Any = None) -> None:
        for number, output in enumerate(outputs):
            self.note(f"{step.what}: output {number}", output)
        values = {**self.executor.arg_dict, **self.executor.aux_dict}
        gradients = self.executor.grad_dict
        if x is not None and not self.case.plan.tokens:
            self.note(f"{step.what}: gradient of data", gradients[self.names[0]])
        for name, param in self.params.items():
            if param.grad_req == "null":
                self.note(f"{step.what}: {name}", values[name] if name in values else param.data())
            elif x is not None:
                self.note(f"{step.what}: gradient of {name}", gradients[name] if name in gradients else param.grad())

    def predict(self, step: Step) -> None:
        for _ in range(2):
            self.note_all(step, self.forward(step, False))

    def train(self, step: Step) -> None:
        outputs = self.forward(step, True)
        self.backward(outputs)
        self.note_all(step, outputs, True)

    def train_twice(self, step: Step) -> None:
        outputs = self.forward(step, True)
        for again in range(2):
            self.backward(outputs)
            self.note_all(step, outputs if not again else (), True)
        self.from_the_first(outputs)
        self.note_all(step, (), True)

    def from_the_first(self, outputs: Sequence[Any]) -> None:
        rest = [nd.zeros(each.shape, dtype=each.dtype) for each in outputs[1:]]
        self.executor.backward([head_gradient(outputs[0], 0, mx.cpu()), *rest])

    def train_frozen(self, step: Step) -> None:
        outputs = self.forward(step, False)
        self.backward(outputs, is_train=False)
        self.note_all(step, outputs, True)


def by_executor(case: Case) -> Log:
    """The graph that is exported, which broadcasts by name: as it is, or written and read."""
    net = fresh(case, True)
    with tempfile.TemporaryDirectory() as folder:
        graph = sym.load(net.export(os.path.join(folder, "net"))[0])
    if case.number % 2:
        graph = sym.load_json(graph.tojson())
    return ByExecutor(case, net, graph).run()


ANY = (
    hybrid, hybrid_after, hybrid_parts, without_a_pass, without_passes, mirrored, imported, copied, naive, lazy, bulked, inside_another,
    on_a_gpu,
)  # fmt: skip

#: With the steps that each can do.
WAYS: dict[str, tuple[Way, tuple[str, ...]]] = {
    **{way.__name__: (way, STEPS) for way in ANY},
    "by_executor": (by_executor, ("predict", "train", "train_twice", "train_frozen")),
    "by_threads": (by_threads, ("predict",)),
    "in_machine_code": (in_machine_code, STEPS),
}


# ---- the property


def compare(case: Case, got: Log, want: Log, way: str) -> None:
    """Raise AssertionError where two logs differ."""
    tolerance = TOLERANCES[case.dtype]
    for (what, one), (title, other) in zip(got, want):
        if "raises" in (what, title):
            may_go_on = "do not depend" in str(other) or ("cannot differentiate" in str(other) and way == "by_executor")
            assert what == title or may_go_on, f"{way}: {what} {one}; eager: {title} {other}"
            return
        assert what == title, f"{way}: {what} stands where {title} should"
        spec, wanted = (one.dtype.name, one.shape), (other.dtype.name, other.shape)
        assert spec == wanted, f"{way}: {what} is {spec}, not {wanted}"
        scale = max(1.0, float(np.abs(other[np.isfinite(other)]).max(initial=0)))
        np.testing.assert_allclose(one, other, tolerance, tolerance * scale, err_msg=f"{way}: {what}")
    assert len(got) == len(want), f"{way}: {len(got)} entries, not {len(want)}"


@contextlib.contextmanager
def small_is_large(wanted: bool) -> Iterator[None]:
    """A scope in which tiny arrays take the ways of large ones: groups run tile by tile, memory is pooled."""
    with pytest.MonkeyPatch.context() as patch:
        if wanted:
            patch.setattr(execute, "_scratch", execute.Scratch())
            for module in (execute, fusion):
                patch.setattr(module, "TILE", 8)
                patch.setattr(module, "GROUPED", 4)
            patch.setattr(storage, "SMALL", 32)
        try:
            yield
        finally:
            with contextlib.suppress(Exception):
                engine.waitall()


def check(case: Case, ways: Sequence[str]) -> None:
    """All `ways` give what Python gives."""
    logs: dict[tuple[str, ...], Log] = {}
    with small_is_large(case.small), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", ".*is not used by any computation"
        )  # parameters behind a stopped gradient, in drawn networks
        for name in ways:
            way, able = WAYS[name]
            steps = tuple(step for step in case.steps if step.what in able)
            if not steps:
                continue
            part = Case(**{**case.__dict__, "steps": steps})
            if able not in logs:
                logs[able] = eager(part)
            compare(case, way(part), logs[able], name)


steps = st.builds(Step, st.sampled_from(STEPS), st.sampled_from([2, 1, 3, 5]), st.integers(0, 99))


def cases(large: bool = False, **more: Any) -> st.SearchStrategy[Case]:
    choices: dict[str, Any] = {
        "plan": plans(large=large),
        "steps": st.lists(steps, min_size=1, max_size=4).map(tuple),
        "reqs": st.lists(st.sampled_from(["write", "add", "null"]), min_size=1, max_size=3).map(tuple),
        "dtype": st.sampled_from(["float64"] * 8 + ["float32", "float16"]),
        "small": st.booleans(),
        "first": st.sampled_from([2, 1, 3]),
        "number": st.integers(0, 99),
    }
    return st.builds(Case, **{**choices, **more})


# To compile takes time: unless somebody looks longer, loops have a test of their own.
drawn_ways = sorted(way for way in WAYS if EXAMPLES or way != "in_machine_code")
ways = st.lists(st.sampled_from(drawn_ways), min_size=1, max_size=4, unique=True)
quiet = settings(
    deadline=None, report_multiple_bugs=False, suppress_health_check=list(HealthCheck), derandomize=not EXAMPLES,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)  # fmt: skip


@pytest.mark.timeout(0 if EXAMPLES else 120)
def test_all_ways_give_the_same() -> None:
    settings(quiet, max_examples=EXAMPLES or 200)(given(cases(), ways)(check))()


@pytest.mark.timeout(0 if EXAMPLES else 120)
def test_loops_in_machine_code() -> None:
    """In single precision there are loops with functions, and with sums over rows."""
    pytest.importorskip("llvmlite")
    drawn = cases(dtype=st.just("float32"))
    settings(quiet, max_examples=EXAMPLES // 4 or 25)(given(drawn, st.just(["in_machine_code"]))(check))()


@pytest.mark.timeout(0 if EXAMPLES else 120)
def test_large_arrays() -> None:
    """Elementwise operators run tile by tile, on several cores."""
    drawn = cases(
        True,
        small=st.just(False),
        dtype=st.sampled_from(["float64", "float32"]),
        steps=st.lists(steps, min_size=1, max_size=2).map(tuple),
    )
    settings(quiet, max_examples=EXAMPLES // 10 or 10)(given(drawn, ways)(check))()


def _careless(self: Any, number: int, node: Any, entry: Any, *_: Any) -> Any:
    """The deliberate fault: an operator writes over an operand although another reads that later."""
    if operator(node).kind is Kind.ELEMENTWISE and takes_out(node):
        for operand in node.inputs:
            if (
                self.plan.buffers[operand].where in (Where.ARENA, Where.KERNEL)
                and self.graph.specs[operand] is self.graph.specs[entry]
            ):
                return operand
    return None


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="a deliberate fault: values are written over before they are read")
def test_the_twin_whose_plan_forgets_readers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Planner, "_operand_to_write_over", _careless)
    once = settings(quiet, max_examples=50, phases=[Phase.generate], database=None, derandomize=True)
    once(given(cases(), st.just(["hybrid"]))(check))()
