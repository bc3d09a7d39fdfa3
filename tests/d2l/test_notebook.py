"""The progress bar, shown source, and what importing costs."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

import minimx as mx
from minimx import progress
from minimx.base import ArgumentError
from minimx.d2l import timing


def test_progress_yields_the_items_and_is_silent_where_nobody_watches(capsys):
    assert list(mx.d2l.progress(iter("abc"), "letters")) == ["a", "b", "c"]
    assert capsys.readouterr() == ("", "")


def test_progress_draws_a_bar_on_request(monkeypatch, capsys):
    pytest.importorskip("tqdm")
    monkeypatch.setenv("MINIMX_PROGRESS", "1")
    assert list(mx.d2l.progress([1, 2], "numbers")) == [1, 2]
    out, err = capsys.readouterr()
    assert out == ""
    assert "numbers: 100%" in err


def test_progress_without_tqdm(monkeypatch):
    monkeypatch.setenv("MINIMX_PROGRESS", "1")
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert list(mx.d2l.progress([1, 2])) == [1, 2]


@pytest.mark.parametrize("asks", [True, False])
def test_a_notebook_is_watched_where_its_front_end_takes_input(monkeypatch, asks):
    shell = types.SimpleNamespace(kernel=types.SimpleNamespace(_allow_stdin=asks))
    monkeypatch.delenv("MINIMX_PROGRESS", raising=False)
    monkeypatch.setattr(progress, "ipython_shell", lambda: shell)
    assert progress.someone_watches() is asks


class Sample:
    """Kept where a method is shown."""

    @property
    def twice(self) -> int:
        """Two.

        Lines.
        """
        return 2

    def only_a_docstring(self) -> None:
        """Nothing."""


def test_source_is_shown_as_text(capsys):
    mx.d2l.show_source(timing.Timer.stop)
    shown = capsys.readouterr().out
    assert shown.startswith("def stop(self) -> float:\n")
    assert shown.endswith("return self.times[-1]\n")


def test_source_without_its_docstring(capsys):
    mx.d2l.show_source(Sample.twice, docstring=False)
    assert capsys.readouterr().out == "@property\ndef twice(self) -> int:\n    return 2\n"
    mx.d2l.show_source(Sample.only_a_docstring, docstring=False)
    assert '"""Nothing."""' in capsys.readouterr().out
    mx.d2l.show_source(timing, docstring=False)
    assert capsys.readouterr().out.lstrip().startswith("from __future__")
    mx.d2l.show_source(Sample, docstring=False)
    shown = capsys.readouterr().out
    assert "Kept" not in shown
    assert "Two." in shown


@pytest.mark.parametrize("thing", [len, 3, "text"])
def test_what_has_no_source(thing):
    with pytest.raises(ArgumentError, match="has no Python source"):
        mx.d2l.show_source(thing)


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_importing_minimx_does_not_import_the_book_nor_what_draws():
    heavy = "{'minimx.d2l', 'matplotlib', 'IPython', 'tqdm', 'urllib.request', 'pandas', 'scipy'}"
    assert run(f"import sys, minimx; print({heavy} & sys.modules.keys())") == "set()\n"


def test_importing_the_helpers_does_not_import_what_draws():
    heavy = "{'matplotlib', 'IPython', 'tqdm', 'ipywidgets', 'urllib.request'}"
    assert run(f"import sys; from minimx import d2l; print({heavy} & sys.modules.keys())") == "set()\n"


def test_plots_without_matplotlib_name_the_extra():
    code = """
import sys
sys.modules["matplotlib"] = sys.modules["matplotlib.pyplot"] = None
from minimx import d2l
try:
    d2l.plot([1, 2])
except ImportError as error:
    print(error)
"""
    assert run(code) == "matplotlib is not installed; the book's helpers need it: pip install 'minimx[book]'\n"
