"""The three maps of convolution, in each of the forms in which their products are made, against sums over windows."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from minimx import op
from minimx.ops import correlation
from minimx.ops.windows import Window

# How the constants must stand for a form to be taken wherever it is possible.
FORMS = {
    "stacked": {"REORDER": 0, "FEW": 1, "LONG_ROW": 1 << 30},
    "by row": {"REORDER": 0, "LONG_ROW": 1, "LONG_PRODUCT": 1},
    "whole windows": {"REORDER": 1 << 30},
}
PLAIN = {name: getattr(correlation, name) for name in dir(correlation) if name.isupper()}


def set_constants(**constants: int) -> None:
    for name, value in {**PLAIN, **constants}.items():
        setattr(correlation, name, value)


@pytest.fixture(autouse=True)
def restored() -> Any:
    yield
    set_constants()


def results_by_sums(data: np.ndarray, weight: np.ndarray, window: Window, groups: int) -> np.ndarray:
    """One point of the kernel after the other, on data in a frame of zeros."""
    counts = window.counts(data.shape[2:])
    framed = np.pad(data, [(0, 0), (0, 0), *((pad, pad) for pad in window.pad)])
    result = np.zeros((data.shape[0], groups, weight.shape[0] // groups, *counts))
    for point in itertools.product(*map(range, window.kernel)):
        axes = zip(point, window.dilate, window.stride, counts)
        place = [
            slice(number * dilate, number * dilate + (count - 1) * stride + 1, stride) for number, dilate, stride, count in axes
        ]
        under = framed[(..., *place)].reshape(data.shape[0], groups, data.shape[1] // groups, *counts)
        filters = weight[(..., *point)].reshape(groups, weight.shape[0] // groups, weight.shape[1])
        result += np.einsum("ngc...,gmc->ngm...", under, filters)
    return result.reshape(data.shape[0], weight.shape[0], *counts)


def require_maps(window: Window, lengths: tuple[int, ...], batch: int, groups: int, channels: int, filters: int) -> None:
    """The results are those of the oracle, and the other two maps are its transposes: all inner products agree."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(batch, groups * channels, *lengths))
    weight = rng.normal(size=(groups * filters, channels, *window.kernel))
    bias = rng.normal(size=groups * filters)
    wanted = results_by_sums(data, weight, window, groups)
    results, shifted, to_data, to_weight = (np.full(each.shape, np.nan) for each in (wanted, wanted, data, weight))
    correlation.correlate(np, data, weight, window, groups, results)
    np.testing.assert_allclose(results, wanted, atol=1e-10)
    correlation.correlate(np, data, weight, window, groups, shifted, bias)
    np.testing.assert_allclose(shifted - wanted, np.broadcast_to(bias.reshape(-1, *[1] * len(lengths)), wanted.shape), atol=1e-10)
    head = rng.normal(size=wanted.shape)
    correlation.spread(np, head, weight, window, groups, to_data)
    correlation.relate(np, data, head, window, groups, to_weight)
    other = rng.normal(size=data.shape)
    np.testing.assert_allclose((to_data * other).sum(), (results_by_sums(other, weight, window, groups) * head).sum(), atol=1e-8)
    other = rng.normal(size=weight.shape)
    np.testing.assert_allclose((to_weight * other).sum(), (results_by_sums(data, other, window, groups) * head).sum(), atol=1e-8)


WINDOWS = {
    "one axis": (Window((3,), (1,), (1,), (1,)), (9,)),
    "3 x 3": (Window((3, 3), (1, 1), (1, 1), (1, 1)), (6, 5)),
    "no padding": (Window((2, 3), (1, 1), (1, 1), (0, 0)), (6, 5)),
    "strides": (Window((3, 3), (2, 1), (1, 1), (1, 0)), (7, 6)),
    "long strides": (Window((2, 1), (3, 2), (1, 1), (0, 0)), (8, 5)),
    "dilated": (Window((3, 2), (1, 1), (2, 3), (2, 1)), (6, 7)),
    "dilated strides": (Window((3, 3), (2, 3), (3, 2), (4, 1)), (7, 9)),
    "points": (Window((1, 1), (1, 1), (1, 1), (0, 0)), (4, 3)),
    "every other point": (Window((1, 1), (2, 2), (1, 1), (0, 0)), (5, 4)),
    "all at once": (Window((4, 5), (1, 1), (1, 1), (0, 0)), (4, 5)),
    "more padding than kernel": (Window((2, 2), (1, 1), (1, 1), (3, 3)), (2, 3)),
    "three axes": (Window((2, 3, 2), (1, 2, 1), (1, 1, 1), (1, 1, 0)), (4, 5, 3)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("groups", [1, 3])
def test_forms(form: str, name: str, groups: int) -> None:
    window, lengths = WINDOWS[name]
    for examples in (1, 1 << 20):  # one example at a time, and all
        for short in (0, 100):  # their axis before those of the results, and after
            set_constants(**FORMS[form], SHORT=short, COLUMNS=examples, FEW_SUMMED=examples)
            require_maps(window, lengths, 3, groups, 2, 4)


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_any_window(data: Any) -> None:
    axes = data.draw(st.integers(1, 3))

    def lengths(low: int, high: int) -> tuple[int, ...]:
        return tuple(data.draw(st.integers(low, high)) for _ in range(axes))

    window = Window(lengths(1, 4), lengths(1, 3), lengths(1, 3), lengths(0, 4))
    # Twice the padding is room for a window at most twice as long; data that is shorter has no results.
    size = tuple(max(length, span - 2 * pad) for length, span, pad in zip(lengths(1, 8), window.spans, window.pad))
    set_constants(
        **FORMS[data.draw(st.sampled_from(list(FORMS)))],
        **{name: data.draw(st.sampled_from([1, 20, 1 << 20])) for name in ("COLUMNS", "MANY", "FEW_SUMMED", "QUICK", "SHARED")},
        SHORT=data.draw(st.sampled_from([0, 4])),
    )
    require_maps(window, size, data.draw(st.integers(0, 3)), *(data.draw(st.integers(1, 3)) for _ in range(3)))


def test_sharing_changes_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many cores there are, the same sums are rounded."""
    rng = np.random.default_rng(1)
    data, weight = rng.normal(size=(40, 2, 9, 8)).astype("float32"), rng.normal(size=(3, 2, 3, 3)).astype("float32")
    window = Window((3, 3), (1, 1), (1, 1), (1, 1))
    head = rng.normal(size=(40, 3, 9, 8)).astype("float32")
    set_constants(SHARED=1, COLUMNS=2000)

    def computed() -> list[np.ndarray]:
        found = [np.empty_like(head), np.empty_like(data), np.empty_like(weight)]
        correlation.correlate(np, data, weight, window, 1, found[0])
        correlation.spread(np, head, weight, window, 1, found[1])
        correlation.relate(np, data, head, window, 1, found[2])
        return found

    calls: list[int] = []

    def backwards(items: list[Any], function: Any) -> None:
        calls.append(len(items))
        for item in reversed(items):
            function([item])

    monkeypatch.setattr(op, "sharing", [backwards])
    shared = computed()
    assert len(calls) == 3
    assert min(calls) > 1
    monkeypatch.setattr(op, "sharing", [])
    for got, wanted in zip(shared, computed()):
        np.testing.assert_array_equal(got, wanted)


def test_what_is_outside_has_no_say() -> None:
    """A number that is none stays among the results whose windows it is under, and among the examples it belongs to."""
    data = np.zeros((3, 1, 5, 5), "float32")
    data[1, 0, 2, 2] = np.nan
    result = np.empty((3, 2, 5, 5), "float32")
    window = Window((3, 3), (1, 1), (1, 1), (1, 1))
    for form in FORMS:
        set_constants(**FORMS[form])
        correlation.correlate(np, data, np.ones((2, 1, 3, 3), "float32"), window, 1, result)
        assert np.argwhere(np.isnan(result)).tolist() == [[1, m, y, x] for m in (0, 1) for y in (1, 2, 3) for x in (1, 2, 3)]


def test_the_transpose_along_an_axis() -> None:
    """With stride 2, even and odd elements lie under different points of the kernel."""
    found = correlation.transposed(Window((3,), (2,), (1,), (1,)), 0, 6)
    assert [(range(6)[elements], list(range(3)[points]), dilate, pad) for elements, points, dilate, pad in found] == [
        (range(0, 6, 2), [1], 1, 0),
        (range(1, 6, 2), [2, 0], 1, 0),
    ]
