"""What stands between brackets, against NumPy: every key selects what NumPy selects, and says so from shapes alone."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from minimx.base import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from minimx.nd.indexing import Advanced, Basic, Key, classify, region, slices_are_contiguous
from minimx.op import Spec, find
from minimx.ops.subscript import Index, IndexAdjoint, IndexAssign, IndexAssignScalar

SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5)


def counting(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(float(np.prod(shape))).reshape(shape)


def expected(data: np.ndarray, key: Any) -> np.ndarray:
    """NumPy's selection, in MXNet's shape: never without axes."""
    found = np.asarray(data[key])
    return found.reshape(1) if found.ndim == 0 and data.ndim else found


def selected(data: np.ndarray, found: Basic | Advanced) -> np.ndarray:
    return Index(found.key).kernel(np, data)


@st.composite
def basic(draw: st.DrawFn) -> tuple[tuple[int, ...], Any]:
    shape = draw(SHAPES)
    return shape, draw(hnp.basic_indices(shape, allow_newaxis=True, max_dims=7))


@st.composite
def mixed(draw: st.DrawFn) -> tuple[tuple[int, ...], Any]:
    """A key with an index array at least, in some of the ways in which it can be written."""
    shape = draw(SHAPES)
    block = draw(hnp.array_shapes(min_dims=0, max_dims=2, max_side=3))
    used = draw(st.integers(1, len(shape)))
    ellipsis = draw(st.integers(0, used + 1))  # behind which item it stands; used + 1: nowhere
    items: list[Any] = []
    arrays = 0
    for place in range(used + 1):
        if place == ellipsis:
            items.append(Ellipsis)
        if place == used:
            break
        axis = place if place < ellipsis else len(shape) - used + place
        length = shape[axis]
        items += [None] * draw(st.sampled_from([0, 0, 0, 1, 2]))
        kind = draw(st.sampled_from(["int", "slice", "array", "list", "mask"]))
        if place == used - 1 and not arrays and kind in ("int", "slice"):
            kind = "array"
        if kind == "int":
            items.append(draw(st.integers(-length, length - 1)))
        elif kind == "slice":
            items.append(draw(st.slices(length)))
        elif kind == "mask" and block in ((), (1,)):
            mask = np.zeros(length, bool)
            mask[draw(st.integers(0, length - 1))] = True
            items.append(mask)
            arrays += 1
        else:
            sides = tuple(draw(st.sampled_from([n, 1])) for n in block)
            array = draw(hnp.arrays(np.int64, sides, elements=st.integers(-length, length - 1)))
            items.append(array.tolist() if kind == "list" and array.ndim else array)
            arrays += 1
    return shape, tuple(items)


@given(basic())
def test_basic_keys_select_what_numpy_selects(case: tuple[tuple[int, ...], Any]) -> None:
    shape, key = case
    data = counting(shape)
    found = classify(key, shape)
    assert isinstance(found, Basic)
    wanted = expected(data, key)
    assert found.shape == wanted.shape
    np.testing.assert_array_equal(selected(data, found), wanted)
    np.testing.assert_array_equal(np.reshape(data[found.numpy_key], wanted.shape), wanted)


@given(basic())
def test_regions_in_one_piece_are_found_and_no_others(case: tuple[tuple[int, ...], Any]) -> None:
    shape, key = case
    data = counting(shape)
    found = classify(key, shape)
    assert isinstance(found, Basic)
    flat = np.asarray(data[key]).reshape(-1)  # each element is its own position
    in_order = bool(np.all(np.diff(flat) == 1))
    assert found.contiguous == in_order
    if in_order and flat.size:
        assert found.offset == flat[0]
    assert found.whole == (in_order and flat.size == data.size)


@given(basic())
def test_basic_key_is_described_axis_by_axis(case: tuple[tuple[int, ...], Any]) -> None:
    shape, key = case
    found = classify(key, shape)
    assert isinstance(found, Basic)
    spans = list(zip(found.begin, found.end, found.step, strict=True))
    lengths = [len(range(*span)) for axis, span in enumerate(spans) if axis not in found.dropped]
    for place in found.new_axes:
        lengths.insert(place, 1)
    assert found.shape == (tuple(lengths) or (1,))


@given(mixed())
@settings(max_examples=300)
def test_advanced_keys_select_what_numpy_selects(case: tuple[tuple[int, ...], Any]) -> None:
    shape, key = case
    data = counting(shape)
    found = classify(key, shape)
    wanted = expected(data, as_numpy(key))
    assert found.shape == wanted.shape
    assert all(wanted.shape[place] == 1 for place in found.new_axes)
    np.testing.assert_array_equal(selected(data, found), wanted)


def as_numpy(key: Any) -> Any:
    """NumPy takes a 0-dimensional array for an integer as we do; a list inside a tuple is an array in both."""
    return tuple(np.asarray(item) if isinstance(item, list) else item for item in key) if isinstance(key, tuple) else key


@given(mixed(), st.randoms(use_true_random=False))
@settings(max_examples=200)
def test_adjoint_and_assignment(case: tuple[tuple[int, ...], Any], random: Any) -> None:
    """<index(x), g> = <x, adjoint(g)>, and an assignment differs from its data at the key alone."""
    shape, key = case
    rng = np.random.default_rng(random.randrange(2**32))
    data = rng.standard_normal(shape)
    found = classify(key, shape)
    g = rng.standard_normal(found.shape)
    for last_only in (False, True):
        there = Index(found.key, last_only).kernel(np, data)
        back = IndexAdjoint(found.key, shape, last_only).kernel(np, g)
        assert back.shape == shape
        np.testing.assert_allclose(np.vdot(there, g), np.vdot(data, back), atol=1e-9)
    wanted = data.copy()
    wanted[as_numpy(key)] = g.reshape(np.shape(data[as_numpy(key)]))
    np.testing.assert_array_equal(IndexAssign(found.key).kernel(np, data, g), wanted)
    # The gradient of the value: the elements of g that the assignment leaves in its result.
    kept = Index(found.key, True).kernel(np, IndexAssign(found.key).kernel(np, data, g))
    assert np.all((kept == g) | (kept == 0))
    cleared = IndexAssignScalar(found.key, 0.0).kernel(np, data)
    assert np.all(cleared[as_numpy(key)] == 0)
    np.testing.assert_array_equal(cleared[wanted == data], data[wanted == data] * (cleared[wanted == data] != 0))


@given(mixed())
def test_keys_are_values(case: tuple[tuple[int, ...], Any]) -> None:
    """Equal after pickling and after their text was read; hashable, so that operators that hold them are."""
    shape, key = case
    made = classify(key, shape).key
    for other in (classify(key, shape).key, pickle.loads(pickle.dumps(made)), Key.parse(str(made))):
        assert other == made
        assert hash(other) == hash(made)
        assert other.on(shape).shape == made.on(shape).shape
    op = Index(made)
    assert find("_index").from_attrs(op.attrs()) == op
    back = IndexAdjoint(made, shape)
    assert find("_backward_index").from_attrs(back.attrs()) == back


class FakeNDArray:
    """An index that waits for its values."""

    def __init__(self, values: Any, dtype: str = "float32") -> None:
        self.values = np.asarray(values, dtype)

    def asnumpy(self) -> np.ndarray:
        return self.values


@pytest.mark.parametrize(
    ("key", "same"),
    [
        (FakeNDArray([0, 2]), [0, 2]),  # float32, MXNet's default, with whole numbers
        (FakeNDArray([[0, 2], [1, 1]], "int32"), [[0, 2], [1, 1]]),
        ((FakeNDArray([1]), slice(None), FakeNDArray([0], "int64")), ([1], slice(None), [0])),
        (FakeNDArray([True, False, True, False], "bool"), [0, 2]),
        ([True, False, True, False], [0, 2]),
        (FakeNDArray(3, "int64"), 3),
        (([1, 2], (0, 1)), ([1, 2], [0, 1])),  # a tuple inside a tuple is a list
        (((0, 1),), ([0, 1],)),
        (range(1, 3), [1, 2]),
        (np.int32(1), 1),
        ((np.int64(1), np.uint8(2)), (1, 2)),
        (slice(np.int32(1), np.int64(3), None), slice(1, 3)),
        (np.array(2), 2),
        ([], np.zeros(0, int)),
        ((..., FakeNDArray([True, False, True, False, False], "bool")), (..., [0, 2])),
        (np.arange(12).reshape(4, 3) % 2 == 0, np.nonzero(np.arange(12).reshape(4, 3) % 2 == 0)),
    ],
)
def test_ways_to_write_an_index(key: Any, same: Any) -> None:
    data = counting((4, 3, 5))
    found = classify(key, data.shape)
    np.testing.assert_array_equal(selected(data, found), expected(data, same))


def test_reader_of_index_arrays_can_be_chosen() -> None:
    found = classify((object_with_asnumpy := FakeNDArray([9]),), (4,), lambda index: np.array([1]))
    assert object_with_asnumpy.values[0] == 9
    np.testing.assert_array_equal(selected(counting((4,)), found), [1.0])


def test_the_users_array_may_change_later() -> None:
    index = np.array([0, 1])
    found = classify(index, (4,))
    index[:] = 3
    np.testing.assert_array_equal(selected(counting((4,)), found), [0.0, 1.0])


def test_a_key_serves_other_shapes() -> None:
    key = classify((slice(None, -1), -1), (3, 4)).key
    assert key.on((3, 4)).shape == (2,)
    assert key.on((10, 5)).shape == (9,)
    np.testing.assert_array_equal(Index(key).kernel(np, counting((10, 5))), counting((10, 5))[:-1, -1])
    last = classify(-1, (3, 4)).key
    np.testing.assert_array_equal(Index(last).kernel(np, counting((7, 2))), counting((7, 2))[-1])


@pytest.mark.parametrize(
    ("key", "error", "match"),
    [
        (4, OutOfRangeError, "index 4 is out of bounds for axis 0 with size 4"),
        (-5, OutOfRangeError, "index -5 is out of bounds for axis 0 with size 4"),
        ((0, 3), OutOfRangeError, "index 3 is out of bounds for axis 1 with size 3"),
        ((..., 5), OutOfRangeError, "index 5 is out of bounds for axis 2"),
        ([0, 4], OutOfRangeError, "index 4 is out of bounds for axis 0"),
        ((slice(None), [-4]), OutOfRangeError, "index -4 is out of bounds for axis 1"),
        ((0, 0, 0, 0), OutOfRangeError, "4 indices for an array of 3 dimensions"),
        ((0, [0], None, 0, 0), OutOfRangeError, "4 indices for an array of 3 dimensions"),
        ((..., ...), OutOfRangeError, "more than one Ellipsis"),
        (1.5, ArgumentError, "1.5 is a float"),
        (np.float32(1), ArgumentError, "is a float32"),
        (True, ArgumentError, "True is a bool"),
        ("a", ArgumentError, "'a' is a str"),
        ({}, ArgumentError, "a dict cannot be an index"),
        (np.array(True), ArgumentError, "a single bool"),
        (slice(0.5, 2), ArgumentError, "no integer"),
        (slice(None, None, 0), ArgumentError, "step of a slice cannot be zero"),
        ([[0, 1], [2]], ArgumentError, "unequal lists"),
        (np.array(["a"]), ArgumentError, "an array of <U1"),
        ([0.5, 1], DTypeError, "fractions"),
        (FakeNDArray([np.nan]), DTypeError, "fractions"),
        ([True, False], ShapeError, r"a mask of shape \(2,\) does not fit axes of shape \(4,\)"),
        ((0, np.ones((3, 4), bool)), ShapeError, r"does not fit axes of shape \(3, 5\)"),
        (([0, 1], [0, 1, 2]), ShapeError, r"\(2,\) and \(3,\) cannot be broadcast"),
    ],
)
def test_bad_keys(key: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        classify(key, (4, 3, 5))


def test_arrays_without_axes() -> None:
    for key in ((), ..., slice(None)):
        found = classify(key, ())
        assert isinstance(found, Basic)
        assert (found.shape, found.contiguous, found.whole) == ((), True, True)
    assert classify(None, ()).shape == (1,)
    with pytest.raises(OutOfRangeError, match="1 indices for an array of 0 dimensions"):
        classify(0, ())


def test_empty_axes() -> None:
    assert classify(slice(None), (0, 3)).shape == (0, 3)
    assert classify(([], slice(None)), (0, 3)).shape == (0, 3)
    with pytest.raises(OutOfRangeError, match="index 0 is out of bounds for axis 0 with size 0"):
        classify(0, (0, 3))


@pytest.mark.parametrize(
    ("key", "value", "fits"),
    [
        (0, (3, 5), (3, 5)),
        (0, (1, 1, 3, 5), (3, 5)),
        (0, (5,), (5,)),
        ((0, 0, 0), (1,), (1,)),
        ((0, 0, 0), (), ()),
        ((slice(None), None), (4, 1, 3, 5), (4, 1, 3, 5)),
        ((slice(None), None), (4, 3, 5), (4, 1, 3, 5)),  # MXNet ignores None when it writes
        ((slice(None), None), (3, 5), (3, 5)),
        (([0, 1], None, slice(None), [2, 3]), (2, 3), (2, 1, 3)),
        ([0, 1], (1, 1, 2, 3, 5), (2, 3, 5)),
    ],
)
def test_values_that_can_be_written(key: Any, value: Any, fits: Any) -> None:
    data = counting((4, 3, 5))
    found = classify(key, data.shape)
    chosen, shape = found.assignment(value)
    assert shape == fits
    written = IndexAssign(chosen).kernel(np, data, np.full(shape, -1.0))
    assert np.all(written[found.numpy_key] == -1)
    assert np.sum(written != data) == data[found.numpy_key].size


@pytest.mark.parametrize(("key", "value"), [(0, (2, 5)), ((0, 0, 0), (2,)), (0, (2, 3, 5)), ((0, None), (3, 3, 5))])
def test_values_that_cannot_be_written(key: Any, value: Any) -> None:
    found = classify(key, (4, 3, 5))
    with pytest.raises(ShapeError, match="cannot be broadcast"):
        found.assignment(value)
    with pytest.raises(ShapeError, match="cannot be broadcast"):
        IndexAssign(found.key).infer(Spec.of((4, 3, 5), "float32"), Spec.of(value, "float32"))


def test_the_short_way_for_rows_and_batches() -> None:
    """An integer or a plain slice alone is the same as in a tuple."""
    ends = [None, *range(-6, 7)]
    for shape in ((4,), (4, 3), (1, 2)):
        for key in [*range(-shape[0], shape[0]), *(slice(start, stop) for start in ends for stop in ends)]:
            short, long = classify(key, shape), classify((key,), shape)
            assert isinstance(short, Basic)
            assert isinstance(long, Basic)
            for field in ("shape", "step", "dropped", "new_axes", "contiguous", "offset", "whole", "key"):
                assert getattr(short, field) == getattr(long, field), (key, field)
            assert short.shape == expected(counting(shape), key).shape


def test_slices_are_contiguous_as_numpy_says() -> None:
    shape = (3, 4, 5)
    data = counting(shape)
    slices = [
        slice(None), slice(2), slice(20), slice(1, 3), slice(None, None, 2), slice(None, None, 20), slice(0, 1),
        slice(None, None, -1), slice(3, None, -2), slice(2, 1),
    ]  # fmt: skip
    for key in itertools.product(slices, repeat=3):
        assert slices_are_contiguous(key, shape) == data[key].flags.contiguous, key


def test_regions_by_begin_and_end() -> None:
    assert region((0, None), (2, None), (1, -1), (4, 3, 5)) == (slice(0, 2, 1), slice(None, None, -1))
    assert region(1, 3, None, (4,)) == (slice(1, 3, None),)
    assert region((None,), (2,), (), (4,)) == (slice(None, 2, None),)
    with pytest.raises(ArgumentError, match="as long as each other"):
        region((0, 1), (2,), None, (4, 4))


def test_text_that_is_no_key() -> None:
    for text in ("1.5,", "[", "('a',)", "x"):
        with pytest.raises(ArgumentError, match="not the text of an index"):
            Key.parse(text)
    with pytest.raises(TypeError, match="'a'"):
        classify("a", (3,))


def test_scalar_that_an_integer_array_cannot_hold() -> None:
    key = classify(0, (3,)).key
    assert IndexAssignScalar(key, 16800001).kernel(np, np.zeros(3, np.int32))[0] == 16800001
    with pytest.raises(DTypeError, match=r"3\.9, which int32 cannot hold"):
        IndexAssignScalar(key, 3.9).infer(Spec.of((3,), "int32"))
