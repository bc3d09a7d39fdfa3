"""Timelines (minimx/d2l/figures.py), and the way to them through book/figures.py."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from minimx.base import ArgumentError
from minimx.d2l import figures

pytest.importorskip("IPython")
pytest.importorskip("matplotlib").use("Agg")


EVENTS = [("cpu(1)", "dot", 2.001, 2.004), ("cpu(0)", "dot", 2.0, 2.002), ("cpu(0)", "copy", 2.002, 2.003)]


def test_a_timeline_has_a_row_a_lane():
    figure = figures.gantt(EVENTS, title="Two lanes")
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["cpu(0)", "cpu(1)"]
    assert axes.get_xlabel() == "time in ms"
    assert axes.get_xlim() == (0, pytest.approx(4))
    assert sorted(text.get_text() for text in figure.legends[0].get_texts()) == ["copy", "dot"]
    assert sum(len(bars.get_paths()) for bars in axes.collections) == 3
    width, height = figure.get_size_inches()
    assert width <= figures.WIDEST
    assert height <= figures.TALLEST


def test_a_timeline_of_lanes_without_work():
    figure = figures.gantt(EVENTS[:1], lanes=["cpu(0)", "cpu(1)"])
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["cpu(0)", "cpu(1)"]


def test_the_text_of_a_timeline():
    assert figures.alt_of_gantt(EVENTS) == "Timeline of 3 events by lane: cpu(0) 2, cpu(1) 1"


def test_timelines_that_cannot_be():
    with pytest.raises(ArgumentError, match="no events"):
        figures.gantt([])
    with pytest.raises(ArgumentError, match="ends before it starts"):
        figures.gantt([("a", "b", 2.0, 1.0)])
    with pytest.raises(ArgumentError, match="say in `alt`"):
        figures.show(figures.gantt(EVENTS), " ")


def test_the_books_file_is_the_same_module():
    path = Path(__file__).parents[2] / "book" / "figures.py"
    spec = importlib.util.spec_from_file_location("figures", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.gantt is figures.gantt
    assert module.show is figures.show


def test_importing_figures_imports_neither_matplotlib_nor_ipython():
    program = "import sys; from minimx.d2l import figures; print({'matplotlib', 'IPython'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_showing_without_ipython(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with pytest.raises(ImportError, match="IPython is not installed"):
        figures.show(figures.gantt(EVENTS), "a timeline")


def test_names_that_matplotlib_would_leave_out():
    figure = figures.gantt([("cpu(0)", "_copyto", 0.0, 1.0), ("cpu(0)", "dot", 1.0, 2.0)])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["_copyto", "dot"]
    fills = [tuple(bars.get_facecolor()[0]) for bars in figure.axes[0].collections]
    assert [patch.get_facecolor() for patch in figure.legends[0].get_patches()] == fills
