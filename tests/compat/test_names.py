"""Every public name of MXNet 1.9.1 is here in the same form, or has a row in the table of differences; and no row outlives what it says."""

from __future__ import annotations

import fnmatch
import inspect
import re
import subprocess
import sys
import types

import pytest

import minimx
from minimx import __main__ as command
from minimx.compat import alias, differences, names
from minimx.compat.names import REQUIRED, UNKNOWN, Name, Parameter
from minimx.compat.rows import TABLE, Row

RECORD = names.record()
ROWS = [(name, row) for row in TABLE for name in row.names.split()]


def covered(name):
    """The recorded names and modules that a name of the table is about."""
    everything = [*map(differences.canonical, RECORD), *names.modules()]
    return [path for path in everything if fnmatch.fnmatchcase(path, name) or path.startswith(f"{name}.")]


# ---- the table against MXNet


def test_every_name_is_here_or_in_the_table():
    lacking = []
    for path, name in RECORD.items():
        found, row = names.difference(name), differences.find(path)
        if found is not None and (row is None or (found == "absent") != row.absent):
            lacking.append(f"{path}: {found}")
    assert not lacking, "\n".join(lacking)


def test_what_is_called_absent_is_absent():
    here = [path for path, name in RECORD.items() if differences.advice(path) and names.difference(name) != "absent"]
    assert not here, here


def test_every_row_is_about_something():
    assert not [name for name, _ in ROWS if not covered(name)]
    assert len({name for name, _ in ROWS}) == len(ROWS), "a name stands in two rows"


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.names.split()[0])
def test_notes_are_sentences_without_their_ends(row):
    assert not row.note.endswith((".", " "))
    assert "\n" not in row.note
    assert "|" not in row.note  # the table's cells end with it
    assert len(row.note) > 8


def test_the_record():
    assert len(RECORD) > 3500
    assert RECORD["gluon.nn.Dense"].parameters[:3] == (
        Parameter("units", REQUIRED), Parameter("activation", None), Parameter("use_bias", True),
    )  # fmt: skip
    assert RECORD["nd.FullyConnected"].parameters[-1] == Parameter("flatten", UNKNOWN)
    assert RECORD["nd.concat"].parameters == (Parameter("*data", REQUIRED), Parameter("**kwargs", REQUIRED))
    assert RECORD["nd.NDArray.abs"].parameters is None
    assert names.bases()["gluon.nn.Dense"] == ("gluon.HybridBlock", "gluon.Block")
    assert names.bases()["gluon.Block"] == ()
    assert RECORD["gluon.rnn.LSTM.begin_state"].parameters[0] == Parameter("batch_size", 0)  # of a base that is not public
    assert RECORD["operators.FullyConnected"] == Name("operators.FullyConnected", None)
    assert {"nd", "sym.contrib", "gluon.data.vision.transforms", "module", "test_utils"} <= set(names.modules())
    assert not any("/" in str(parameter.default) for name in RECORD.values() for parameter in name.parameters or ())


# ---- how names are compared


def sample(units, activation=None, *, flag=True):
    """A function to compare with."""


@pytest.mark.parametrize(
    ("theirs", "found"),
    [
        ("units,activation=None", None),
        ("units,activation=", None),
        ("units,activation=None,flag=True", "has the parameter flag elsewhere"),
        ("units,activation=3", "has the default activation=None, not 3"),
        ("activation=None,units=1", "has the parameter activation elsewhere"),
        ("units,size=1", "has no parameter size"),
        ("units=1", "needs the parameter units"),
        ("", "needs the parameter units, which MXNet has not"),
        ("**kwargs", None),
        ("units,*args", None),
    ],
)
def test_comparing_parameters(theirs, found, monkeypatch):
    monkeypatch.setattr(minimx, "sample", sample, raising=False)
    assert names.difference(Name("sample", names.parameters_of(theirs))) == found


def test_comparing_other_things(monkeypatch):
    class Made:
        """A class to compare with."""

        def __init__(self, x=1):
            self.kept = x

        @staticmethod
        def static(a):
            """Static."""

        @classmethod
        def of_class(cls, a):
            """Of the class."""

        @property
        def value(self):
            """A property."""

    monkeypatch.setattr(minimx, "Made", Made, raising=False)
    for path, text in (
        ("Made", "x=1"),
        ("Made.static", "a"),
        ("Made.of_class", "a"),
        ("Made.value", "..."),
        ("Made.kept", "..."),
    ):
        assert names.difference(Name(path, names.parameters_of(text))) is None, path
    assert names.difference(Name("Made.value", ())) == "not callable"
    assert names.difference(Name("Made.nothing", None)) == "absent"
    assert names.difference(Name("nothing.at.all", None)) == "absent"
    assert names.difference(Name("operators.no_such_operator", None)) == "absent"


def test_defaults_that_say_the_same():
    """A number for as many as are wanted; a list for a tuple; None for an empty dict, and for the layout that the axes say."""
    for ours, theirs in ((0, (0, 0)), ((1, 2), [1, 2]), (None, {}), (None, ())):
        assert names._equal(ours, theirs)
    for ours, theirs in ((0, (0, 1)), ((1, 2), [2, 1]), (None, 0), ("a", "b")):
        assert not names._equal(ours, theirs)
    parameter = inspect.Parameter("layout", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None)
    assert names._compare((Parameter("layout", "NCHW"),), [parameter], False) is None


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("a,b=1", (("a", REQUIRED), ("b", 1))),
        ("a='x,y',b=(1,2),*,c=[]", (("a", "x,y"), ("b", (1, 2)), ("c", []))),
        ("a=inf,b=-0.5", (("a", UNKNOWN), ("b", -0.5))),
        ("*a,**b", (("*a", REQUIRED), ("**b", REQUIRED))),
        ("", ()),
        ("...", None),
    ],
)
def test_reading_parameters(text, parameters):
    assert names.parameters_of(text) == (None if parameters is None else tuple(Parameter(*each) for each in parameters))


# ---- what is made of the table


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("ndarray.ndarray.array", "nd.array"), ("numpy.ones", "np.ones"), ("mod.Module", "module.Module"), ("gluon.nn", "gluon.nn"),
        ("contrib.symbol.quantize", "sym.contrib.quantize"), ("symbol", "sym"), ("", ""),
    ],
)  # fmt: skip
def test_second_names(path, canonical):
    assert differences.canonical(path) == canonical


def test_finding_a_row(monkeypatch):
    table = (Row("a.b a.c*", "one"), Row("a.b.d", "two", absent=False))
    monkeypatch.setattr(differences, "TABLE", table)
    differences._rows.cache_clear()
    try:
        assert differences.find("a.b.x.y") == table[0]
        assert differences.find("a.cat") == table[0]
        assert differences.find("a.b.d") == table[1]
        assert differences.find("a") is None
        assert differences.find("a.b.d.e") == table[0]  # what is in a.b, which is absent; a.b.d itself is not
        assert differences.advice("a.b.d") is None
        assert [name for name, _ in differences.rows("a.b*")] == ["a.b", "a.b.d"]
    finally:
        differences._rows.cache_clear()


def test_modules_answer_for_what_they_lack():
    module = types.ModuleType("minimx.nd")
    module.__getattr__ = differences.explaining("minimx.nd")
    with pytest.raises(
        AttributeError, match=r"module 'minimx\.nd' has no attribute 'imdecode': use mx\.image\.imdecode"
    ) as caught:
        _ = module.imdecode
    assert caught.value.name == "imdecode"
    assert not hasattr(module, "__path__")


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("mx.ndd", "nd"), ("mx.nd.rleu", "relu"), ("mx.nd.op.rleu", "relu"), ("mx.sym.Convoluton", "Convolution"),
        ("mx.nd.convolution", "Convolution"), ("mx.gluon.nn.Dens", "Dense"), ("mx.gluon.data.DataLoder", "DataLoader"),
        ("mx.init.Xaver", "Xavier"), ("mx.optimizer.SDG", "SGD"), ("mx.metric.Acuracy", "Accuracy"), ("mx.image.imred", "imread"),
        ("mx.nd.random.norml", "normal"), ("mx.sym.linalg.gem", "gemm"), ("mx.autograd.recrd", "record"), ("mx.engine.blk", "bulk"),
        ("mx.device.gp", "gpu"), ("mx.d2l.Timr", "Timer"), ("mx.nd.ndarray.arrray", "array"), ("mx.sym.var('x').reshap", "reshape"),
    ],
)  # fmt: skip
def test_a_name_that_is_nearly_right(text, near):
    with pytest.raises(AttributeError, match=rf"has no attribute '\w+'; did you mean '{near}'\?$"):
        eval(text, {"mx": minimx})


def test_an_import_that_is_nearly_right():
    with pytest.raises(ImportError, match=r"^cannot import name 'Dens' from 'minimx\.gluon\.nn'; did you mean 'Dense'\?$"):
        from minimx.gluon.nn import Dens  # noqa: F401


def test_a_name_that_is_near_to_none():
    with pytest.raises(AttributeError, match=r"^module 'minimx\.nd' has no attribute 'qqqqqqqq'$"):
        _ = minimx.nd.qqqqqqqq
    with pytest.raises(AttributeError, match=r"^module 'minimx\.nd' has no attribute '__path'$"):
        getattr(minimx.nd, "__path")


def test_names_are_not_compared_before_one_is_wrong():
    """Importing minimx, and modules of it, does not load what finds near names."""
    code = "import sys, minimx; from minimx import gluon; from minimx.gluon import data; sys.exit('difflib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_page():
    page = differences.table()
    lines = page.splitlines()
    assert lines[0] == "# What is otherwise than in MXNet 1.9.1"
    assert sum(line.startswith("| `") for line in lines) == len(TABLE)
    assert all(line.count("|") == 3 for line in lines if line.startswith("|"))
    assert "| `mx.np`, `mx.npx` | the NumPy interface" in page
    assert page.endswith(" |\n")


# ---- the command


def run(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["minimx", "names", *arguments])
    return command.main()


def test_the_command(monkeypatch, capsys):
    assert run(monkeypatch, "mx.gluon.nn.Dense") == 0
    assert capsys.readouterr().out == f"mx.{'gluon.nn.Dense':<40} as in MXNet\n"
    assert run(monkeypatch, "nd.imdecode") == 0
    assert capsys.readouterr().out == f"mx.{'nd.imdecode':<40} absent: use mx.image.imdecode(bytes)\n"
    assert run(monkeypatch, "nd.arg*") == 0
    found = capsys.readouterr().out.split()
    assert {"mx.nd.argmax", "mx.nd.argsort"} <= set(found)
    assert "mx.sym.argmax" not in found
    assert run(monkeypatch, "optimizer.NAG") == 0
    assert "weight decay in the momentum" in capsys.readouterr().out


def test_the_command_with_several_patterns(monkeypatch, capsys):
    """What one of them matches."""
    assert run(monkeypatch, "nd.argmax", "optimizer.NAG") == 0
    said = capsys.readouterr().out
    assert "mx.nd.argmax" in said
    assert "mx.optimizer.NAG" in said


def test_the_command_with_a_name_that_mxnet_has_not(monkeypatch, capsys):
    assert run(monkeypatch, "mx.gluon.nn.Denze") == 1
    assert capsys.readouterr().out.startswith("MXNet 1.9.1 has no public name like mx.gluon.nn.Denze. Near to it: gluon.nn.Dense")


@pytest.mark.parametrize("prefix", ["", "mx.", "mxnet."])
def test_the_command_knows_second_names_and_prefixes(prefix, monkeypatch, capsys):
    assert run(monkeypatch, f"{prefix}mod.*") == 0
    said = capsys.readouterr().out.split()
    assert "mx.module.Module" in said
    assert "mx.mod.Module" not in said
    assert run(monkeypatch, f"{prefix}init.Xavier") == 0
    assert capsys.readouterr().out == f"mx.{'initializer.Xavier':<40} as in MXNet\n"
    assert run(monkeypatch, f"{prefix}np.ones") == 0
    assert capsys.readouterr().out.startswith(f"mx.{'np.ones':<40} absent: the NumPy interface that MXNet 1.6 added")


@pytest.mark.parametrize(
    ("asked", "path", "base"),
    [
        ("mod.Module.fit", "module.Module.fit", "module.BaseModule"),
        ("mx.gluon.nn.Dense.initialize", "gluon.nn.Dense.initialize", "gluon.Block"),
        ("optimizer.Adam.set_learning_rate()", "optimizer.Adam.set_learning_rate", "optimizer.Optimizer"),
        ("BatchNorm.collect_params", "gluon.nn.BatchNorm.collect_params", "gluon.Block"),
    ],
)
def test_the_command_finds_methods_of_bases(asked, path, base, monkeypatch, capsys):
    assert run(monkeypatch, asked) == 0
    assert f"mx.{path:<40} as in MXNet (it comes from {base})\n" in capsys.readouterr().out


def test_the_command_answers_for_the_method_of_the_base(monkeypatch, capsys):
    assert run(monkeypatch, "gluon.nn.Dense.hybridize") == 0
    told = names.described("gluon.HybridBlock.hybridize")
    assert told != names.AS_IN_MXNET
    assert capsys.readouterr().out == f"mx.{'gluon.nn.Dense.hybridize':<40} {told} (it comes from gluon.HybridBlock)\n"
    assert run(monkeypatch, "gluon.nn.Dense.nonsense") == 1
    assert "no public name like gluon.nn.Dense.nonsense. Near to it: gluon.nn.Dense" in capsys.readouterr().out


def test_what_classes_inherit_is_here():
    """Every method of a public base is found in minimx's class, in the same form, or has a row."""
    lacking = []
    for cls, above in names.bases().items():
        for method in {path.rpartition(".")[2] for path in RECORD if path.rpartition(".")[0] in above}:
            if f"{cls}.{method}" in RECORD:
                continue
            for path, name in names.inherited(f"{cls}.{method}").items():
                found, row = names.difference(Name(path, name.parameters)), differences.find(path) or differences.find(name.path)
                if found is not None and row is None:
                    lacking.append(f"{path}: {found}")
    assert not lacking, "\n".join(lacking)


def test_the_command_says_what_to_type(monkeypatch, capsys):
    assert run(monkeypatch, "nonsense", "np.ones") == 1
    nonsense, ones = capsys.readouterr().out.splitlines()
    assert nonsense.endswith("like nonsense. Type a part of a name, such as nd.topk, or a pattern, such as 'gluon.rnn.*'.")
    assert ones.startswith("mx.np.ones ")


def test_the_command_shows_only_what_differs(monkeypatch, capsys):
    assert run(monkeypatch, "gluon.data.*") == 0
    whole = capsys.readouterr().out.splitlines()
    for flag in ("-d", "--different"):
        assert run(monkeypatch, flag, "gluon.data.*") == 0
        assert capsys.readouterr().out.splitlines() == [line for line in whole if not re.fullmatch(r"mx\S+ +as in MXNet", line)]
    assert run(monkeypatch, "-d", "nd.topk") == 0
    assert capsys.readouterr().out == "1 name like nd.topk: all as in MXNet\n"


def test_every_module_that_is_here_is_found():
    assert alias.find_own("nd") is minimx.nd
    assert alias.find_own("no.such.module") is None


def test_modules_that_are_loaded_late_answer_too() -> None:
    code = """
from minimx.contrib import amp
import minimx.image
for module, name in ((amp, "list_fp32_ops"), (minimx.image, "ImageItr")):
    try:
        getattr(module, name)
    except AttributeError as error:
        print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.splitlines()
    assert said[0].startswith("module 'minimx.contrib.amp' has no attribute 'list_fp32_ops': no operator computes")
    assert said[1] == "module 'minimx.image' has no attribute 'ImageItr'; did you mean 'ImageIter'?"


def test_modules_introduce_themselves_by_mxnets_names() -> None:
    """A script prints `F`, and MXNet's output is compared."""
    assert repr(minimx.sym).startswith("<module 'minimx.symbol' from ")
    assert repr(minimx.nd).startswith("<module 'minimx.ndarray' from ")
