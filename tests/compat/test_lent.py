"""Old names of NumPy, Python and others are given to who asks for them, and standard error says so once."""

from __future__ import annotations

import collections
import collections.abc
import importlib
import inspect
import sys
import time
import types

import numpy as np
import pytest

from minimx.compat import lent, scalars


@pytest.fixture
def lending():
    lent.lend()
    yield
    lent.take_back()


def test_a_name_is_lent_and_told_once(lending, capsys):
    assert np.float is float
    assert np.float is float
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith("minimx lends np.float, gone since NumPy 1.24: write float (")
    assert said[0].endswith(")")
    assert "test_lent.py, line " in said[0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(lent.LENT["numpy"]))
def test_every_name_of_numpy(lending, name):
    """Whether NumPy still has it or it is lent: it can be had, under every version of NumPy."""
    assert getattr(np, name) is not None


@pytest.mark.filterwarnings("ignore")
def test_what_lent_functions_do(lending):
    assert np.in1d([[1, 2], [3, 4]], [2, 4]).tolist() == [False, True, False, True]
    assert np.in1d([1, 2], [2], invert=True).tolist() == [True, False]
    assert np.asfarray([1]).dtype == np.float64
    assert np.asfarray([1], dtype=int).dtype == np.float64
    assert np.asfarray([1], dtype=np.float32).dtype == np.float32
    assert np.asscalar(np.ones(1)) == 1.0
    assert np.msort(np.array([[2, 1], [1, 3]])).tolist() == [[1, 1], [2, 3]]
    assert np.NINF == -np.inf
    assert np.product([2, 3]) == 6
    assert np.object is object
    assert (np.int0, np.uint0, np.bool8) == (np.intp, np.uintp, np.bool_)
    assert (np.bytes0, np.str0, np.void0, np.object0) == (np.bytes_, np.str_, np.void, np.object_)


@pytest.mark.filterwarnings("ignore")
def test_bytes_to_fromstring(lending, capsys):
    """As in the readers of MNIST's files that every script had; text and errors go the way they went. An older NumPy needs no loan."""
    data = np.fromstring(b"\x01\x02\x03", dtype=np.uint8)
    data[0] = 9
    assert data.tolist() == [9, 2, 3]
    assert np.fromstring(b"\x01\x00\x02\x00", np.int16, 1).tolist() == [1]
    assert np.fromstring("ab", np.uint8).tolist() == [97, 98]
    assert capsys.readouterr().err.count("write np.frombuffer(data, dtype).copy()") <= 1
    assert np.fromstring("1 2", sep=" ").tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"size must be a multiple of element size"):
        np.fromstring(b"\x01\x02\x03", np.int16)


@pytest.mark.filterwarnings("ignore")
def test_python(lending):
    assert collections.Mapping is collections.abc.Mapping
    from collections import Iterable

    assert Iterable is collections.abc.Iterable
    spec = inspect.getargspec(lambda a, b=1, *c, **d: None)
    assert (spec.args, spec.varargs, spec.keywords, spec.defaults) == (["a", "b"], "c", "d", (1,))
    assert time.clock() > 0
    assert importlib.import_module("fractions").gcd(4, 6) == 2
    assert importlib.import_module("base64").encodestring(b"a") == b"YQ==\n"


@pytest.mark.filterwarnings("ignore")
def test_modules_that_are_gone(lending, monkeypatch, tmp_path):
    for name in ("distutils", "distutils.version", "distutils.util", "imp"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [lent._maker, *sys.meta_path])  # in front of what this Python may still have
    from distutils.util import strtobool
    from distutils.version import LooseVersion

    import imp

    assert LooseVersion("1.10.0") > LooseVersion("1.9.1")
    assert LooseVersion("1.9.1") >= "1.9"
    assert str(LooseVersion("1.9")) == "1.9"
    assert {LooseVersion("1"), LooseVersion("1")} == {LooseVersion("1")}
    assert strtobool("Yes") == 1
    assert strtobool("off") == 0
    with pytest.raises(ValueError, match="invalid truth value 'perhaps'"):
        strtobool("perhaps")
    assert imp.reload(importlib.import_module("colorsys")).__name__ == "colorsys"
    (tmp_path / "thing.py").write_text("x = 3")
    assert imp.load_source("thing", str(tmp_path / "thing.py")).x == 3
    del sys.modules["thing"]
    with pytest.raises(ImportError):
        from distutils.core import setup  # noqa: F401
    for name in ("distutils", "distutils.version", "distutils.util", "imp"):
        sys.modules.pop(name, None)


def test_modules_that_are_imported_later(lending, tmp_path, monkeypatch):
    """A module is taught when it is imported; its spec and loader stay its own."""
    (tmp_path / "later.py").write_text("here = 1\ndef __getattr__(name):\n    return f'own {name}'\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(lent.LENT, "later", {"old": lent.Lent("gone", lambda: "lent")})
    module = importlib.import_module("later")
    assert (module.old, module.other, module.here) == ("lent", "own other", 1)
    assert importlib.reload(module).old == "lent"
    del sys.modules["later"]


def test_a_replacement_that_is_absent_too(lending, monkeypatch):
    """A name whose replacement this version lacks is as absent as it was."""
    gone = lent.Lent("gone", lent._named("no_such_module:name"))
    monkeypatch.setitem(lent.LENT["collections"], "vanished", gone)
    with pytest.raises(AttributeError, match="module 'collections' has no attribute 'vanished'"):
        _ = collections.vanished


def test_other_names_are_absent_as_ever(lending):
    with pytest.raises(AttributeError, match="module 'numpy' has no attribute 'nonsense'"):
        _ = np.nonsense
    assert not hasattr(collections, "nonsense")
    with pytest.raises(ImportError):
        exec("from collections import nonsense", {})


def test_taking_back():
    before, function = vars(np).get("__getattr__"), np.fromstring
    lent.lend()
    lent.lend()
    assert np.fromstring is not function
    lent.take_back()
    assert np.fromstring is function
    assert vars(np).get("__getattr__") is before
    assert not hasattr(collections, "Mapping")
    assert not hasattr(types.ModuleType("x"), "Mapping")


def test_an_error_that_cannot_be_helped_is_explained(capsys, monkeypatch):
    """After the traceback, and for that error alone; the hook that was there comes first."""
    shown = []
    monkeypatch.setattr(sys, "excepthook", lambda *error: shown.append(error[1]))
    before = sys.excepthook
    lent.lend()
    try:
        for error in (TypeError(lent.REFUSED), TypeError("other"), ValueError(lent.REFUSED)):
            sys.excepthook(type(error), error, None)
            assert shown[-1] is error
    finally:
        lent.take_back()
    assert capsys.readouterr().err == f"{lent.INSTEAD}\n"
    assert sys.excepthook is before
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module("d2lzh")
    assert lent.advice("ModuleNotFoundError", str(caught.value)) == lent.D2LZH
    assert lent.advice("ModuleNotFoundError", "No module named 'other'") is None
    if scalars.refused():  # it is what NumPy says
        with pytest.raises(TypeError, match=f"^{lent.REFUSED}$"):
            float(np.ones(1))


def test_workers_are_silent(lending, monkeypatch, capsys):
    parent = types.SimpleNamespace(parent_process=lambda: object())
    monkeypatch.setitem(sys.modules, "multiprocessing.process", parent)
    assert np.int is int
    assert capsys.readouterr().err == ""
