"""`import mxnet` means minimx: the same module objects, under MXNet's names, unchanged; and errors that say what to use instead."""

from __future__ import annotations

import copyreg
import importlib
import importlib.util
import inspect
import pickle
import subprocess
import sys
import threading
import types
from pathlib import Path

import pytest

import minimx
from minimx.compat import alias, differences, names

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture(autouse=True)
def mxnet():
    alias.install()
    yield
    alias.uninstall()


SAME = {
    "mxnet": "minimx",
    "mxnet.nd": "minimx.nd",
    "mxnet.ndarray": "minimx.nd",
    "mxnet.ndarray.ndarray": "minimx.nd.ndarray",
    "mxnet.ndarray.contrib": "minimx.nd.contrib",
    "mxnet.nd.random": "minimx.nd.random",
    "mxnet.sym": "minimx.sym",
    "mxnet.symbol": "minimx.sym",
    "mxnet.symbol.contrib": "minimx.sym.contrib",
    "mxnet.symbol.symbol": "minimx.sym.symbol",
    "mxnet.gluon": "minimx.gluon",
    "mxnet.gluon.nn": "minimx.gluon.nn",
    "mxnet.gluon.nn.basic_layers": "minimx.gluon.nn.basic_layers",
    "mxnet.gluon.contrib.nn.basic_layers": "minimx.gluon.contrib.nn",
    "mxnet.gluon.model_zoo.vision.resnet": "minimx.gluon.model_zoo.vision.resnet",
    "mxnet.gluon.data.vision.transforms": "minimx.gluon.data.vision.transforms",
    "mxnet.initializer": "minimx.initializer",
    "mxnet.init": "minimx.initializer",
    "mxnet.optimizer": "minimx.optimizer",
    "mxnet.opt": "minimx.optimizer",
    "mxnet.optimizer.optimizer": "minimx.optimizer.optimizer",
    "mxnet.visualization": "minimx.visualization",
    "mxnet.viz": "minimx.visualization",
    "mxnet.random": "minimx.random",
    "mxnet.rnd": "minimx.random",
    "mxnet.executor": "minimx.sym.executor",
    "mxnet.io.io": "minimx.io",
    "mxnet.contrib.ndarray": "minimx.nd.contrib",
    "mxnet.test_utils": "minimx.test_utils",
    "mxnet.util": "minimx.util",
    "mxnet.metric": "minimx.metric",
}


@pytest.mark.parametrize(("theirs", "ours"), SAME.items())
def test_modules_are_the_same_objects(theirs, ours):
    module = importlib.import_module(theirs)
    assert module is importlib.import_module(ours)
    assert sys.modules[theirs] is module
    assert module.__name__ == ours
    assert module.__spec__.name == ours


def test_the_ways_to_write_an_import():
    code = """
import mxnet
import mxnet as mx
import mxnet.gluon.nn
import mxnet.symbol as S
from mxnet import nd, gluon, autograd, init, sym
from mxnet.gluon import nn
from mxnet.gluon.data.vision import transforms
from mxnet.ndarray import NDArray
from mxnet.ndarray.contrib import foreach
from mxnet.gluon.nn import *
from mxnet.ndarray.ndarray import array
from mxnet.symbol.symbol import Variable
from mxnet.base import MXNetError, string_types
"""
    found: dict[str, object] = {}
    exec(code, found)
    assert found["mxnet"] is found["mx"] is minimx
    assert found["nd"] is minimx.nd
    assert found["S"] is found["sym"] is minimx.sym
    assert found["NDArray"] is minimx.nd.NDArray
    assert found["array"] is minimx.nd.array
    assert found["Variable"] is minimx.sym.Variable
    assert found["Dense"] is minimx.gluon.nn.Dense


def test_every_module_of_mxnet_is_here_or_in_the_table():
    lacking = [path for path in names.modules() if alias.find_own(path) is None and differences.advice(path) is None]
    assert not lacking, lacking
    for path in names.modules():
        if alias.find_own(path) is not None:
            importlib.import_module(f"mxnet.{path}".rstrip("."))


def test_the_modules_stay_what_they_were():
    before = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "minimx"}
    specs = {name: (module.__spec__, getattr(module, "__path__", None)) for name, module in before.items()}
    for theirs in SAME:
        importlib.import_module(theirs)
    for name, module in before.items():
        assert sys.modules[name] is module
        assert (module.__spec__, getattr(module, "__path__", None)) == specs[name], name
    assert minimx.nd.ndarray.__name__ == "minimx.nd.ndarray"  # no submodule was hidden by another
    importlib.import_module("mxnet.gluon.model_zoo.vision.alexnet")
    assert inspect.isfunction(minimx.gluon.model_zoo.vision.alexnet)


def test_reloading_pickling_and_inspecting():
    import mxnet.lr_scheduler
    import mxnet.util

    kept = vars(sys.modules["minimx.util"]).copy()
    try:
        assert importlib.reload(mxnet.util) is minimx.util
    finally:
        vars(minimx.util).update(kept)
    block = pickle.loads(pickle.dumps(mxnet.gluon.nn.Dense))
    assert block is minimx.gluon.nn.Dense
    assert inspect.getsource(mxnet.lr_scheduler.FactorScheduler).startswith("class FactorScheduler")
    assert inspect.getmodule(mxnet.gluon.nn.Dense).__name__.startswith("minimx.")
    assert importlib.util.find_spec("mxnet.util").name == "minimx.util"
    assert importlib.util.find_spec("mxnet.callback") is not None


def test_pickles_of_mxnet_find_their_classes():
    """A class is written down with the file that MXNet has it in."""
    written = b"\x80\x02cmxnet.ndarray.ndarray\nNDArray\n."
    assert pickle.loads(written) is minimx.nd.NDArray
    assert copyreg is not None


# ---- what is not here


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import mxnet.numpy", "mxnet.numpy is not in minimx: the NumPy interface that MXNet 1.6 added"),
        ("from mxnet import np", "cannot import name 'np' from 'minimx': the NumPy interface .*Write mx.nd for mx.np"),
        ("from mxnet import np, npx", "mx.nd for mx.np"),
        ("from mxnet import rtc", "cannot import name 'rtc' from 'minimx': .*cupy.RawKernel"),
        ("import mxnet.executor_manager", "use gluon.Trainer with gluon.utils.split_and_load"),
        ("from mxnet.contrib import quantization", "8-bit integers are not planned"),
        ("from mxnet.numpy.random import uniform", "mx.nd for mx.np"),
        ("import mxnet.nonsense", "mxnet.nonsense is neither in minimx nor in MXNet 1.9.1"),
        ("from mxnet.gluon import Nonsense", "cannot import name 'Nonsense' from 'minimx.gluon'"),
        (
            "from mxnet.base import check_call",
            "cannot import name 'check_call' from 'minimx.base': it hands something to MXNet's C",
        ),
        ("from mxnet.ndarray.ndarray import imdecode", "cannot import name 'imdecode' from 'minimx.nd': use mx.image.imdecode"),
        ("from minimx import npx", "leave npx.set_np"),
    ],
)
def test_imports_of_absent_names(code, says):
    with pytest.raises(ImportError, match=says):
        exec(code, {})


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("mx.np", "no attribute 'np': the NumPy interface that MXNet 1.6 added"),
        ("mx.npx.set_np()", "leave npx.set_np"),
        ("mx.rtc.CudaModule", "cupy.RawKernel"),
        ("mx.nd.imdecode", r"mx.image.imdecode\(bytes\)"),
        ("mx.nd.contrib.quantize", "8-bit integers"),
        ("mx.sym.contrib.dgl_subgraph", "graphs as sparse matrices"),
        ("mx.operator.NumpyOp", "CustomOp"),
        ("mx.nd.nonsense", "module 'minimx.nd' has no attribute 'nonsense'$"),
    ],
)
def test_absent_attributes(expression, says):
    with pytest.raises(AttributeError, match=says):
        eval(expression, {"mx": minimx})


def test_an_absent_name_can_be_asked_for():
    assert not hasattr(minimx, "np")
    assert getattr(minimx.nd, "imdecode", None) is None
    with pytest.raises(ImportError):
        importlib.util.find_spec("mxnet.numpy")


# ---- installing


def test_installing_twice_and_uninstalling(monkeypatch):
    alias.install()
    assert sum(isinstance(finder, alias.Alias) for finder in sys.meta_path) == 1
    importlib.import_module("mxnet.contrib.ndarray")
    alias.uninstall()
    assert not any(name.split(".")[0] == "mxnet" for name in sys.modules)
    assert alias.installed() is None
    alias.uninstall()
    with pytest.raises(ModuleNotFoundError, match="No module named 'mxnet'"):
        importlib.import_module("mxnet")


def test_uninstalling_takes_added_attributes_back():
    alias.uninstall()
    before = set(vars(minimx.io))
    alias.install()
    importlib.import_module("mxnet.io.io")
    assert minimx.io.io is minimx.io
    alias.uninstall()
    assert set(vars(minimx.io)) == before


def test_a_real_mxnet_that_is_imported_already(monkeypatch):
    alias.uninstall()
    real = types.ModuleType("mxnet")
    real.__version__, real.__file__ = "1.9.1", "/somewhere/mxnet/__init__.py"
    monkeypatch.setitem(sys.modules, "mxnet", real)
    with pytest.raises(ImportError, match=r"MXNet 1\.9\.1 \(/somewhere.*is imported already.*before anything that imports mxnet"):
        alias.install()
    assert alias.installed() is None


def test_a_real_mxnet_that_is_installed_is_hidden(tmp_path):
    (tmp_path / "mxnet.py").write_text("raise SystemExit('the real one')")
    code = "import minimx.compat.mxnet, mxnet, minimx; assert mxnet is minimx"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": f"{tmp_path}:{ROOT}"}, timeout=60)


def test_a_module_that_lacks_something_says_so(tmp_path, monkeypatch):
    """An error inside a module is not taken for the module's absence."""
    monkeypatch.setitem(sys.modules, "minimx.test_utils.statistics", None)
    for name in ("minimx.test_utils", "mxnet.test_utils"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delattr(minimx, "test_utils", raising=False)
    with pytest.raises(ModuleNotFoundError, match="statistics"):
        importlib.import_module("mxnet.test_utils")


def test_private_names_that_toolkits_take(monkeypatch):
    from mxnet.base import _as_list
    from mxnet.gluon.data.dataloader import _as_in_context
    from mxnet.gluon.utils import _get_repo_file_url, _get_repo_url
    from mxnet.image.image import _get_interp_method

    monkeypatch.setenv("MXNET_GLUON_REPO", "https://example.org/files")
    assert _get_repo_url() == "https://example.org/files/"
    assert _get_repo_file_url("gluon/dataset", "a.zip") == "https://example.org/files/gluon/dataset/a.zip"
    assert (_as_list(1), _as_list([1]), _as_list((1,))) == ([1], [1], (1,))
    batch = _as_in_context([minimx.nd.ones((1,)), (minimx.nd.ones((1,)), "a")], minimx.cpu(1))
    assert batch[0].context == batch[1][0].context == minimx.cpu(1)
    assert batch[1][1] == "a"
    methods = [_get_interp_method(9, sizes) for sizes in ((4, 4, 8, 8), (8, 8, 4, 4), (4, 4, 8, 2), ())]
    assert methods == [2, 3, 1, 2]  # as MXNet
    assert _get_interp_method(3) == 3
    assert _get_interp_method(10) in range(5)
    with pytest.raises(ValueError, match=r"an interpolation from 0 to 4, 9 or 10"):
        _get_interp_method(7)
    with pytest.raises(ValueError, match=r"made of parts of MXNet's DataLoader"):
        importlib.import_module("mxnet.gluon.data.dataloader")._MultiWorkerIter(None)
    alias.uninstall()
    assert not hasattr(minimx.gluon.utils, "_get_repo_url")


def test_the_version_that_is_lent(capsys):
    own = minimx.__version__
    alias.lend_version()
    alias.lend_version()
    assert minimx.__version__ == "1.9.1"
    assert minimx.__version__ == "1.9.1"
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith(f"minimx lends minimx.__version__, the version of MXNet that it follows; its own is {own} (")
    with pytest.raises(AttributeError, match=r"mx\.nd for mx\.np"):
        _ = minimx.np
    assert minimx.libinfo.__version__ == "1.9.1"
    alias.uninstall()
    assert minimx.__version__ == minimx.libinfo.__version__ == own


def test_many_threads_import_at_once():
    wanted = list(SAME)
    found: list[object] = []

    def work(number):
        for position in range(len(wanted)):
            path = wanted[(position + 5 * number) % len(wanted)]
            found.append(importlib.import_module(path) is sys.modules[SAME[path]])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * (8 * len(wanted))
