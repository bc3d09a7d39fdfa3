"""Plots, drawn without a screen and looked at through matplotlib's objects."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx import d2l
from minimx.base import ArgumentError
from minimx.d2l import plots

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def fresh():
    """No figure of another test."""
    d2l.plt.close("all")
    yield
    d2l.plt.close("all")


def lines():
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in d2l.plt.gca().lines]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (([3, 4],), [([0, 1], [3, 4])]),
        (([1, 2], [3, 4]), [([1, 2], [3, 4])]),
        (([1, 2], [[3, 4], [5, 6]]), [([1, 2], [3, 4]), ([1, 2], [5, 6])]),
        (([[1, 2], [1, 2, 3]], [[3, 4], [5, 6, 7]]), [([1, 2], [3, 4]), ([1, 2, 3], [5, 6, 7])]),
        ((np.array([1, 2]), np.array([[3, 4], [5, 6]])), [([1, 2], [3, 4]), ([1, 2], [5, 6])]),
    ],
)
def test_forms_of_curves(arguments, expected):
    d2l.plot(*arguments)
    assert lines() == expected


def test_curves_of_ndarrays():
    d2l.plot(mx.nd.array([1, 2]), [mx.nd.array([3, 4]), mx.nd.array([5, 6])])
    assert lines() == [([1, 2], [3, 4]), ([1, 2], [5, 6])]
    d2l.plot([mx.nd.array([3]), mx.nd.array([4])])
    assert lines() == [([0, 1], [3, 4])]


def test_curves_that_do_not_fit():
    with pytest.raises(ArgumentError, match=r"X has curves of \[3\] points, Y of \[2\]"):
        d2l.plot([1, 2, 3], [1, 2])


def test_what_a_plot_says():
    d2l.plot([1, 10], [[1, 2], [2, 3]], "n", "s", ["one", "two"], xlim=(1, 10), xscale="log", figsize=(4, 2))
    axes = d2l.plt.gca()
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_xscale(), axes.get_xlim()) == ("n", "s", "log", (1, 10))
    assert tuple(axes.figure.get_size_inches()) == (4, 2)
    assert plots.describe(axes) == "Line plot of s over n: one, two"
    assert len({line.get_linestyle() for line in axes.lines}) == 2  # told apart without colour


def test_an_animator_grows_its_curves(tmp_path):
    animator = d2l.Animator("epoch", legend=["train", "test"], ylim=(0, 1))
    animator.add(1, (0.5, None))
    animator.add(2, (mx.nd.array([0.75]), 0.25))
    assert (animator.X, animator.Y) == ([[1, 2], [2]], [[0.5, 0.75], [0.25]])
    assert animator.axes.get_ylim() == (0, 1)
    with pytest.raises(ArgumentError, match="got 1 x and 1 y for 2 curves"):
        animator.add(3, 1.0)
    assert d2l.plt.get_fignums() == []  # pyplot knows nothing of it: a notebook shows it once
    files = []
    for name in ("a.svg", "b.svg"):
        animator.figure.savefig(tmp_path / name, metadata={"Date": None})
        files.append((tmp_path / name).read_text())
    assert files[0] == files[1]


@pytest.mark.parametrize("shape", [(3, 5, 4), (3, 1, 5, 4), (3, 5, 4, 1), (3, 5, 4, 3)])
def test_images_in_a_grid(shape):
    images = np.random.default_rng(0).random(shape)
    for given in (images, list(images), mx.nd.array(images)):
        axes = d2l.show_images(given, 2, 2, titles=["a", "b", "c"])
        assert [ax.get_title() for ax in axes] == ["a", "b", "c", ""]
        assert [len(ax.images) for ax in axes] == [1, 1, 1, 0]
        assert axes[0].images[0].get_array().shape[:2] == (5, 4)


def test_wide_grids_fit_the_page():
    axes = d2l.show_images(np.zeros((20, 4, 4)), 2, 10)
    width, height = axes[0].figure.get_size_inches()
    assert width <= plots.WIDEST
    assert height <= plots.TALLEST


@pytest.mark.parametrize(
    ("images", "rows"), [([], 1), (np.zeros((1, 4, 4)), 0), (np.zeros((2, 4)), 1), (np.zeros((2, 2, 4, 5)), 1)]
)
def test_bad_images(images, rows):
    with pytest.raises(ArgumentError):
        d2l.show_images(images, rows, 2)


def test_a_grid_that_takes_hours_to_draw() -> None:
    with pytest.raises(ArgumentError, match="1000000 rows of 2 are too many to draw"):
        d2l.show_images(np.zeros((2, 4, 4)), 10**6, 2)
    with pytest.raises(ArgumentError, match="num_rows must be an int"):
        d2l.show_images(np.zeros((2, 4, 4)), 1.5, 2)  # type: ignore[arg-type]
