"""Pictures of graphs and of memory (minimx/d2l/diagrams.py)."""

from __future__ import annotations

import subprocess
import sys

import pytest

from minimx.base import ArgumentError
from minimx.d2l import diagrams, figures

pytest.importorskip("IPython")
pytest.importorskip("matplotlib").use("Agg")

SQUARE = [("x", "mul"), ("x", "mul"), ("mul", "exp"), ("x", "add"), ("exp", "add")]
LIVES = [("x", 0, 2, 0, 4096), ("y", 1, 3, 4096, 8192), ("z", 3, 4, 0, 4096)]


def texts_of(axes):
    return [text.get_text() for text in axes.texts]


def test_a_graph_has_a_box_a_name_and_an_arrow_an_edge():
    figure = diagrams.graph(SQUARE, titles=["square"])
    (axes,) = figure.axes
    assert axes.get_title() == "square"
    boxes = {text.get_text(): text.get_position() for text in axes.texts if text.get_bbox_patch() is not None}
    assert boxes.keys() == {"x", "mul", "exp", "add"}
    assert boxes["x"][1] < boxes["mul"][1] < boxes["exp"][1] < boxes["add"][1]
    assert sum(text.arrow_patch is not None for text in axes.texts if hasattr(text, "arrow_patch")) == 4
    assert " 2" in texts_of(axes)  # x goes into mul twice
    assert figure.get_size_inches().tolist() == [figures.WIDEST, figures.TALLEST]


def test_graphs_beside_each_other_and_names_that_look_alike():
    figure = diagrams.graph(SQUARE, [("x", "exp"), ("exp", "exp ")])
    assert len(figure.axes) == 2
    assert sorted(filter(None, texts_of(figure.axes[1]))) == ["exp", "exp", "x"]


def test_graphs_that_cannot_be():
    with pytest.raises(ArgumentError, match="no edges"):
        diagrams.graph([])
    with pytest.raises(ArgumentError, match="b, c: these depend on each other"):
        diagrams.graph([("a", "b"), ("b", "c"), ("c", "b")])
    with pytest.raises(ArgumentError, match="31 rows"):
        diagrams.graph([(str(number), str(number + 1)) for number in range(30)])


def test_an_order_in_which_all_comes_after_what_it_needs():
    assert diagrams.in_order([("b", "c"), ("a", "b"), ("a", "c")]) == ["a", "b", "c"]


def test_the_text_of_a_graph():
    assert diagrams.alt_of_graph([("a", "exp "), ("exp ", "add"), ("a", "add")]) == "exp from a; add from exp and a"


def test_lives_are_boxes_of_steps_and_bytes():
    figure = diagrams.lives({"alone": LIVES, "shared": LIVES[:2]})
    left, right = figure.axes
    assert left.get_title() == "alone"
    assert right.get_title() == "shared"
    assert left.get_ylabel() == "KiB"
    assert [len(axes.collections) for axes in figure.axes] == [3, 2]
    corners = left.collections[1].get_paths()[0].get_extents()
    assert (corners.ymin, corners.ymax) == (4, 12)
    assert (round(corners.xmin), round(corners.xmax)) == (1, 3)
    assert set(texts_of(left)) == {"x", "y", "z"}


def test_a_box_without_room_has_no_name():
    (axes,) = diagrams.lives({"": [("large", 0, 1, 0, 1000), ("s", 0, 1, 1000, 4)]}).axes
    assert texts_of(axes) == ["large"]
    assert axes.get_ylabel() == "bytes"


def test_lives_that_cannot_be():
    with pytest.raises(ArgumentError, match="no values to draw"):
        diagrams.lives({"alone": []})
    with pytest.raises(ArgumentError, match="ends before it begins"):
        diagrams.lives({"alone": [("x", 2, 1, 0, 4)]})
    with pytest.raises(ArgumentError, match="x and y live at the same time and share bytes"):
        diagrams.lives({"alone": [("x", 0, 2, 0, 8), ("y", 2, 3, 4, 8)]})


def test_the_text_of_lives():
    assert diagrams.alt_of_lives({"alone": LIVES}) == "alone: 3 values in 12,288 bytes"


def test_importing_diagrams_imports_no_matplotlib():
    program = "import sys; from minimx.d2l import diagrams; print({'matplotlib', 'IPython'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
