"""The pure functions of shapes in minimx/ops/shape.py, against NumPy on shapes and bounds that Hypothesis thinks of."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, strategies as st

from minimx.base import ShapeError
from minimx.ops.shape import resolve_reshape, resolve_slice

shapes = st.lists(st.integers(0, 5), max_size=4).map(tuple)
bound = st.none() | st.integers(-7, 7)
one_slice = st.tuples(bound, bound, st.none() | st.integers(-3, 3).filter(bool))


@given(shapes.filter(len), st.lists(one_slice, min_size=1, max_size=4))
def test_slice(shape: tuple[int, ...], parts: list[tuple[int | None, ...]]) -> None:
    """The slices select what Python's select, and the shape is right."""
    parts = parts[: len(shape)]
    begin, end, step = zip(*parts)
    array = np.arange(math.prod(shape)).reshape(shape)
    slices, result = resolve_slice(shape, begin, end, step)
    want = array[tuple(slice(*part) for part in parts)]
    assert result == want.shape
    np.testing.assert_array_equal(array[slices], want)


@given(shapes, st.lists(st.sampled_from([0, -1, -2, -3, 1, 2, 3, 4]), min_size=1, max_size=4).map(tuple), st.booleans())
def test_reshape(shape: tuple[int, ...], codes: tuple[int, ...], reverse: bool) -> None:
    """Codes give a shape of the same size, or ShapeError; reading from the right is reading the mirrored from the left."""
    try:
        result = resolve_reshape(shape, codes, reverse)
    except ShapeError:
        return
    assert math.prod(result) == math.prod(shape)
    assert resolve_reshape(shape[::-1], codes[::-1], not reverse) == result[::-1]


@given(shapes.filter(lambda shape: 0 not in shape), st.data())
def test_reshape_infers(shape: tuple[int, ...], data: st.DataObject) -> None:
    """-1 in the place of any length stands for that length."""
    hidden = data.draw(st.integers(0, max(0, len(shape) - 1)))
    codes = (*shape[:hidden], -1, *shape[hidden + 1 :])
    assert resolve_reshape(shape, codes) == (shape or (1,))
