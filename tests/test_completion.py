"""What editors show: names, signatures and texts, by `inspect`, and by jedi, which completes in Jupyter."""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import Any

import pytest

import minimx as mx
from minimx import nd
from minimx.base import MXNetError
from minimx.compat import alias, differences, names
from minimx.gluon import nn
from minimx.ops.fluent import Fluent

PLACES = [
    "nd", "sym", "nd.contrib", "sym.contrib", "nd.linalg", "nd.random", "sym.random", "nd.image", "gluon", "gluon.nn", "gluon.rnn",
    "gluon.loss", "gluon.data", "gluon.data.vision", "gluon.data.vision.transforms", "gluon.utils", "gluon.contrib.nn", "autograd",
    "optimizer", "metric", "initializer", "lr_scheduler", "io", "image", "recordio", "kvstore", "engine", "profiler", "random", "device",
    "util", "module", "model", "callback", "monitor", "rnn", "parallel", "visualization",
]  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_public_names_have_signatures_and_texts(place: str) -> None:
    module = importlib.import_module(f"minimx.{place}")
    for name in getattr(module, "__all__", None) or [each for each in vars(module) if not each.startswith("_")]:
        thing = getattr(module, name)
        if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, MXNetError)):
            continue
        if not str(getattr(thing, "__module__", "")).startswith("minimx"):
            continue  # what a module without a list of names imports
        assert inspect.getdoc(thing), name
        assert list(inspect.signature(thing).parameters) != ["args", "kwargs"] or name == "create", (
            name
        )  # a family's, as in MXNet


@pytest.mark.parametrize(
    "name", [name for name in nd.random.__all__ if "shape" in inspect.signature(getattr(nd.random, name)).parameters]
)
def test_random_numbers_are_described_in_place(name: str) -> None:
    """A reader of `nd.random.normal?` need not look elsewhere for what it takes."""
    function = getattr(nd.random, name)
    text = inspect.getdoc(function) or ""
    assert " as `uniform`" not in text
    if "ctx" in inspect.signature(function).parameters:
        assert "dtype: " in text
        assert "(the default)" in text


METHODS = [name for name, thing in vars(Fluent).items() if inspect.isfunction(thing) and not name.startswith("_")]


@pytest.mark.parametrize("name", METHODS)
def test_methods_say_what_their_functions_do(name: str) -> None:
    method = getattr(Fluent, name)
    text = inspect.getdoc(method) or ""
    function = getattr(nd, text.rpartition("See `nd.")[2].removesuffix("`."))
    others = set(inspect.signature(method).parameters) - {"self", "axes", "other", "reps", "how"}
    assert others <= {*inspect.signature(function).parameters, "how"}


def all_public_modules() -> list[Any]:
    """Every module that public names lead to, those imported, too, that `import minimx` leaves for later."""
    for path in names.modules():
        alias.find_own(path)
    mx.parallel.simulate  # noqa: B018
    mx.d2l  # noqa: B018
    differences.teach()
    return differences.public_modules()


def test_modules_show_their_public_names_only() -> None:
    modules = all_public_modules()
    assert len(modules) > 95
    for module in modules:
        shown = [name for name in dir(module) if not name.startswith("_")]
        listed = {*vars(module).get("__all__", ()), *vars(module).get("LATER", ())}
        for name in shown:
            thing = getattr(module, name)
            assert name in listed or getattr(thing, "__module__", "") == module.__name__, (module.__name__, name)
        assert not {"Any", "annotations", "np", "sys", "shown", "ArgumentError", "LATER"} & {*shown} - listed, module.__name__


@pytest.mark.parametrize("place", ["", *PLACES])
def test_modules_show_all_that_mxnet_shows(place: str) -> None:
    """All functions and classes that MXNet has in a module, and minimx, too."""
    module = importlib.import_module(f"minimx.{place}".rstrip("."))
    recorded = [path.rpartition(".")[2] for path in names.record() if path.rpartition(".")[0] == place]
    here = {name for name in recorded if inspect.isroutine(vars(module).get(name)) or inspect.isclass(vars(module).get(name))}
    differences.teach()
    assert here - {*dir(module)} <= ({"CachedOp"} if place == "nd" else set())


def test_a_file_is_no_package() -> None:
    """jedi takes whatever has a `__path__` for a package, and finds none of its relative imports then."""
    for name, module in sys.modules.copy().items():
        if name.startswith("minimx.") and hasattr(module, "__path__"):
            assert str(module.__file__).endswith("__init__.py"), name


jedi = pytest.importorskip("jedi", reason="IPython brings it")
NET = nn.HybridSequential()
NET.add(nn.Dense(3, in_units=3))
LIVE: dict[str, Any] = {"mx": mx, "nd": nd, "nn": nn, "F": nd, "x": nd.ones((2, 3)), "net": NET}
HEAD = "import minimx as mx\nfrom minimx import autograd, gluon, nd\nfrom minimx.gluon import nn\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("mx.", {"nd", "gluon", "autograd", "cpu", "gpu"}),
        ("mx.nd.", {"softmax", "FullyConnected", "array", "random"}),
        ("F.", {"softmax", "FullyConnected", "where"}),
        ("x.", {"asnumpy", "attach_grad", "softmax", "shape"}),
        ("x.sum().", {"asnumpy", "reshape", "exp"}),
        ("nd.relu(x).", {"asnumpy", "reshape", "exp"}),
        ("(x + 1).", {"asnumpy", "reshape", "exp"}),
        ("net.", {"add", "hybridize", "initialize", "export", "program"}),
        ("mx.test_utils.", {"assert_almost_equal"}),
    ],
)
def test_completion_in_a_notebook(text: str, names: set[str]) -> None:
    found = {each.name for each in jedi.Interpreter(text, [LIVE]).complete()}
    assert names <= found


@pytest.mark.parametrize(
    "text",
    ["mx.nd.random.", "mx.nd.linalg.", "mx.sym.random.", "mx.gluon.nn.", "mx.autograd.", "mx.engine.", "mx.", "nd.", "nn."],
)
def test_completion_offers_no_imports(text: str) -> None:
    module = eval(text[:-1], LIVE)
    found = {each.name for each in jedi.Interpreter(text, [LIVE]).complete() if not each.name.startswith("_")}
    assert found == {*differences.public(module)} - {"_internal"}


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("mx.nd.softmax(", ["data", "length", "axis"]),
        ("x.softmax(", ["axis", "temperature"]),
        ("nn.Dense(", ["units", "activation", "use_bias"]),
        ("net.initialize(", ["init", "ctx", "verbose"]),
        ("F.Convolution(", ["data", "weight", "bias"]),
    ],
)
def test_signatures_in_a_notebook(text: str, arguments: list[str]) -> None:
    (found,) = jedi.Interpreter(text, [LIVE]).get_signatures()
    assert [each.name for each in found.params][: len(arguments)] == arguments
    assert found.docstring(raw=True)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x = nd.ones((2, 3))\n(x * 2).sum().", {"asnumpy", "reshape", "exp"}),
        ("net = nn.Dense(3)\nnet.", {"hybridize", "weight", "bias"}),
        ("class Net(gluon.HybridBlock):\n    def forward(self, x):\n        return nd.", {"relu", "softmax"}),
    ],
)
def test_completion_in_a_file(text: str, names: set[str]) -> None:
    found = {each.name for each in jedi.Script(HEAD + text).complete()}
    assert names <= found
