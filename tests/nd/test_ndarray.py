"""NDArray from the outside: making, looking, converting, sharing memory, writing, and what bad calls say."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp

import minimx as mx
from minimx import engine, nd
from minimx.base import ArgumentError, DeviceError, DTypeError, MXNetError, OutOfRangeError, ShapeError


def filled(*shape: int) -> nd.NDArray:
    return nd.array(np.arange(np.prod(shape)).reshape(shape))


class TestCreation:
    def test_default_dtype_is_float32(self) -> None:
        assert nd.array([1, 2]).dtype is np.float32
        assert nd.array(np.arange(3, dtype=np.int64)).dtype is np.float32
        assert nd.array([1, 2], dtype="int32").dtype is np.int32
        assert nd.array(nd.array([1, 2], dtype="int8")).dtype is np.int8
        assert nd.array(5).shape == (1,)
        assert nd.array(np.zeros((0, 3))).shape == (0, 3)

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool"])
    def test_dtypes(self, dtype: str) -> None:
        x = nd.ones((2, 2), dtype=dtype)
        assert x.dtype is np.dtype(dtype).type
        assert x.asnumpy().dtype == dtype
        assert x.astype("float64").asnumpy().tolist() == [[1, 1], [1, 1]]

    def test_makers(self) -> None:
        assert nd.zeros((2,)).asnumpy().tolist() == [0, 0]
        assert nd.full((2,), 7).asnumpy().tolist() == [7, 7]
        assert nd.arange(4).asnumpy().tolist() == [0, 1, 2, 3]
        assert nd.arange(1, 3, 0.5, repeat=2).asnumpy().tolist() == [1, 1, 1.5, 1.5, 2, 2, 2.5, 2.5]
        assert nd.linspace(0, 1, 3).asnumpy().tolist() == [0, 0.5, 1]
        assert nd.linspace(0, 1, 2, endpoint=False).asnumpy().tolist() == [0, 0.5]
        assert nd.eye(2, 3, 1).asnumpy().tolist() == [[0, 1, 0], [0, 0, 1]]
        assert nd.empty((3, 4)).shape == (3, 4)
        assert nd.concatenate([nd.ones((1, 2)), nd.zeros((1, 2))]).asnumpy().tolist() == [[1, 1], [0, 0]]
        assert nd.moveaxis(nd.zeros((2, 3, 4)), 0, -1).shape == (3, 4, 2)

    @pytest.mark.parametrize("shape", [(0,), (2, 0), (), (-1,)])
    def test_unknown_lengths(self, shape: tuple[int, ...]) -> None:
        for make in (nd.zeros, nd.ones, nd.empty, lambda s: nd.full(s, 1)):
            with pytest.raises(ShapeError, match="at least 1"):
                make(shape)

    def test_bad_values(self) -> None:
        with pytest.raises(ArgumentError, match="no float32 array"):
            nd.array([[1, 2], [3]])
        with pytest.raises(ArgumentError, match="str"):
            nd.array("text")
        with pytest.raises(DTypeError, match=r"complex64.*use one of float32"):
            nd.zeros((2,), dtype="complex64")
        with pytest.raises(ArgumentError, match="ctx must be a Context"):
            nd.zeros((2,), ctx="gpu")
        with pytest.raises(ArgumentError, match="unknown argument cxt"):
            nd.zeros((2,), cxt=mx.cpu())
        with pytest.raises(ValueError, match="destinations"):
            nd.moveaxis(nd.zeros((2, 3)), [0, 1], [0])

    def test_more_than_there_is(self) -> None:
        huge = nd.zeros((1 << 20, 1 << 20, 1 << 10))
        with pytest.raises(MXNetError):
            huge.asnumpy()


class TestLooks:
    def test_shape_and_friends(self) -> None:
        x = filled(2, 3)
        assert (x.shape, x.size, x.ndim, len(x), x.context, x.ctx) == ((2, 3), 6, 2, 2, mx.cpu(), mx.cpu())
        assert x.T.shape == (3, 2)
        assert x.stype == "default"
        assert [row.asnumpy().tolist() for row in x] == [[0, 1, 2], [3, 4, 5]]

    def test_repr(self) -> None:
        assert repr(nd.array([[1, 2], [3, 4]])) == "\n[[1. 2.]\n [3. 4.]]\n<NDArray 2x2 @cpu(0)>"

    def test_html_does_not_wait(self) -> None:
        gate = threading.Event()
        x = nd.ones((2,))
        engine.push(lambda _: gate.wait(), writes=[x])
        assert "pending" in x._repr_html_()
        gate.set()
        x.wait_to_read()
        assert "[1. 1.]" in x._repr_html_()
        assert "shape (2,), float32, cpu(0)" in x._repr_html_()
        failed = nd.random.normal(0, -1, (2,))
        assert "failed" in failed._repr_html_()
        with pytest.raises(MXNetError):
            nd.waitall()

    def test_printing_waits_for_nothing_else(self) -> None:
        gate = threading.Event()
        other = nd.ones((2,), ctx=mx.cpu(1))
        engine.push(lambda _: gate.wait(), writes=[other])
        assert "[1. 1.]" in repr(nd.ones((2,)))
        assert "pending" in other._repr_html_()
        gate.set()
        nd.waitall()

    def test_truth(self) -> None:
        assert nd.ones((1,))
        assert not nd.zeros((1, 1))
        assert not nd.array(np.zeros((0,)))
        with pytest.raises(ValueError, match="ambiguous"):
            bool(nd.ones((2,)))

    def test_scalars(self) -> None:
        x = nd.array([3.5])
        assert isinstance(x.asscalar(), np.float32)
        assert (float(x), int(x), x.item()) == (3.5, 3, 3.5)
        assert [10, 20, 30][nd.array([1], dtype="int32")] == 20
        with pytest.raises(ValueError, match=r"shape \(2,\)"):
            nd.ones((2,)).asscalar()
        with pytest.raises(TypeError, match="cannot be an index"):
            [1, 2][nd.ones((1,))]


class TestOthers:
    def test_numpy_takes_it(self) -> None:
        x = filled(2, 2)
        assert np.asarray(x).tolist() == [[0, 1], [2, 3]]
        assert np.array(x, dtype="int64").dtype == np.int64
        result = np.exp(x)
        assert isinstance(result, nd.NDArray)
        np.testing.assert_allclose(result.asnumpy(), np.exp(x.asnumpy()), rtol=1e-6)
        for mixed in (np.ones((2, 2)) + x, x + np.ones((2, 2))):
            assert isinstance(mixed, nd.NDArray)
            assert mixed.dtype is np.float32
            assert mixed.asnumpy().tolist() == [[1, 2], [3, 4]]
        assert np.add.reduce(x).tolist() == [2, 4]

    def test_asnumpy_is_a_copy(self) -> None:
        x = nd.ones((2,))
        x.asnumpy()[0] = 5
        assert x.asnumpy().tolist() == [1, 1]

    def test_from_numpy_shares(self) -> None:
        source = np.arange(4.0)
        x = nd.from_numpy(source)
        with pytest.raises(ValueError, match="read-only"):
            source[0] = 1
        x[:] = 7
        x[1:2] += 1
        x *= 2
        nd.waitall()
        assert source.tolist() == [14, 16, 14, 14]
        assert nd.from_numpy(source)[1].asscalar() == 16
        with pytest.raises(ValueError, match="C-contiguous"):
            nd.from_numpy(np.ones((2, 3)).T)
        copied = nd.from_numpy(source, zero_copy=False)
        copied[:] = 0
        assert source[1] == 16

    def test_dlpack_both_ways(self) -> None:
        x = filled(2, 3)
        shared = np.from_dlpack(x)
        x[:] = 9
        x.wait_to_read()
        assert shared.tolist() == [[9, 9, 9], [9, 9, 9]]
        source = np.arange(6.0, dtype=np.float32)
        y = nd.from_dlpack(source)
        y += 1
        y.wait_to_read()
        assert source.tolist() == [1, 2, 3, 4, 5, 6]
        assert nd.from_dlpack(nd.to_dlpack_for_read(x)).asnumpy().tolist() == [[9, 9, 9], [9, 9, 9]]

    @pytest.mark.parametrize("make", [pickle.dumps, None])
    def test_pickle_and_deepcopy(self, make: Any) -> None:
        x = nd.array([1, 2], ctx=mx.cpu(1), dtype="int8")
        y = pickle.loads(pickle.dumps(x)) if make else copy.deepcopy(x)
        x[:] = 0
        assert (y.dtype, y.context, y.asnumpy().tolist()) == (np.int8, mx.cpu(1), [1, 2])

    def test_copies_between_devices(self) -> None:
        x = filled(3)
        y = x.as_in_context(mx.cpu(1))
        assert x.as_in_context(mx.cpu(0)) is x
        assert y.context == mx.cpu(1)
        z = nd.zeros((3,), ctx=mx.cpu(2), dtype="float64")
        assert y.copyto(z) is z
        assert z.asnumpy().tolist() == [0, 1, 2]
        assert x.astype("float32", copy=False) is x
        with pytest.raises(ShapeError, match="must be equal"):
            x.copyto(nd.zeros((4,)))
        with pytest.raises(ArgumentError, match="to itself"):
            x.copyto(x)

    def test_a_gpu_that_is_not_there(self) -> None:
        if mx.num_gpus():
            pytest.skip("there is a GPU")
        with pytest.raises(DeviceError, match=r"pip install|simulate_gpus"):
            nd.zeros((2,), ctx=mx.gpu(0))

    def test_operands_on_different_devices(self) -> None:
        with mx.device.simulate_gpus(2):
            x, y = nd.ones((2,), ctx=mx.gpu(0)), nd.ones((2,), ctx=mx.gpu(1))
            with pytest.raises(DeviceError, match="as_in_context"):
                x + y
            assert (x + y.as_in_context(mx.gpu(0))).asnumpy().tolist() == [2, 2]


class TestViews:
    @pytest.mark.parametrize(
        "view",
        [
            lambda x: x[1],
            lambda x: x[1:3],
            lambda x: x[1, 1:3],
            lambda x: x[None],
            lambda x: x.reshape((2, -1)),
            lambda x: x.detach(),
            lambda x: x.expand_dims(1, inplace=True),
            lambda x: x.squeeze(inplace=True),
            lambda x: x.flatten(inplace=True),
            lambda x: x[2][1:2],
        ],
    )
    def test_shares_memory(self, view: Any) -> None:
        x = filled(4, 5)
        part = view(x)
        part[:] = -1
        assert (x.asnumpy() == -1).sum() == part.size

    @pytest.mark.parametrize(
        "copied",
        [
            lambda x: x[:, 1],
            lambda x: x[::2],
            lambda x: x[::-1],
            lambda x: x[[0, 1]],
            lambda x: x.T,
            lambda x: x.copy(),
            lambda x: x.flatten(),
            lambda x: x.expand_dims(0),
            lambda x: x.slice_axis(axis=0, begin=0, end=2),
            lambda x: x.astype("float32"),
        ],
    )
    def test_copies(self, copied: Any) -> None:
        x = filled(4, 5)
        part = copied(x)
        part[:] = -1
        assert (x.asnumpy() == filled(4, 5).asnumpy()).all()

    def test_a_view_sees_later_writes(self) -> None:
        x = filled(4)
        part = x[1:3]
        x += 10
        x[2] = 0
        assert part.asnumpy().tolist() == [11, 0]

    def test_reshape_codes_and_errors(self) -> None:
        x = filled(2, 3, 4)
        assert x.reshape((0, -1)).shape == (2, 12)
        assert x.reshape(-1, 4).shape == (6, 4)
        assert x.reshape((-2,)).shape == (2, 3, 4)
        assert x.reshape((-3, 0)).shape == (6, 4)
        assert x.reshape((-4, 1, 2, -2)).shape == (1, 2, 3, 4)
        assert x.reshape(shape=(0, 0, -1), reverse=True).shape == (2, 3, 4)
        with pytest.raises(ValueError):
            x.reshape((5, 5))
        with pytest.raises(ArgumentError, match="unknown argument order"):
            x.reshape((24,), order="F")


class TestWriting:
    def test_values_broadcast(self) -> None:
        x = nd.zeros((2, 3))
        x[:] = nd.array([1, 2, 3])
        assert x.asnumpy().tolist() == [[1, 2, 3], [1, 2, 3]]
        x[:, 1] = [[7], [8]][0]
        x[1] = np.float64(5)
        x[0, ::2] = np.array([[9, 9]])
        assert x.asnumpy().tolist() == [[9, 7, 9], [5, 5, 5]]
        x[[0, 1], [1, 2]] = nd.array([-1, -2])
        assert x.asnumpy().tolist() == [[9, -1, 9], [5, 5, -2]]

    def test_bad_values(self) -> None:
        x = nd.zeros((2, 3))
        with pytest.raises(ShapeError, match="cannot be broadcast"):
            x[:] = nd.ones((4,))
        with pytest.raises(ShapeError, match="cannot be broadcast"):
            x[:, ::2] = nd.ones((3, 3))
        with pytest.raises(OutOfRangeError, match="out of bounds for axis 0 with size 2"):
            x[2] = 1
        with pytest.raises(IndexError, match="3 indices"):
            x[0, 0, 0]
        with pytest.raises((TypeError, ValueError)):
            x[0] = "text"

    def test_in_place_keeps_the_array(self) -> None:
        x = same = filled(3)
        x += 1
        x *= nd.array([1, 2, 3])
        x -= 1
        x /= 2
        x **= 2
        x %= 3
        assert same is x
        assert x.asnumpy().tolist() == [0, 2.25, 1]

    def test_in_place_needs_its_own_shape(self) -> None:
        x = nd.ones((1, 3))
        with pytest.raises(ShapeError, match="out has shape"):
            x += nd.ones((2, 3))
        with pytest.raises(DTypeError, match="astype"):
            x += nd.ones((1, 3), dtype="float64")

    def test_out(self) -> None:
        x, y = filled(3), nd.zeros((3,))
        assert nd.square(x, out=y) is y
        assert y.asnumpy().tolist() == [0, 1, 4]
        big = nd.zeros((2, 3))
        nd.square(x, out=big[1])
        assert big.asnumpy().tolist() == [[0, 0, 0], [0, 1, 4]]
        with pytest.raises(ShapeError, match="out has shape"):
            nd.square(x, out=nd.zeros((4,)))
        with pytest.raises(DTypeError, match="out is int32"):
            nd.square(x, out=nd.zeros((3,), dtype="int32"))
        with pytest.raises(ArgumentError, match="out must be an NDArray"):
            nd.square(x, out=np.zeros(3))


class TestArithmetic:
    def test_nothing_is_promoted(self) -> None:
        with pytest.raises(DTypeError, match=r"float32.*float64"):
            nd.ones((2,)) + nd.ones((2,), dtype="float64")

    def test_comparisons_keep_the_dtype(self) -> None:
        x = filled(3)
        assert (x > 1).dtype is np.float32
        assert (1 < x).asnumpy().tolist() == [0, 0, 1]  # noqa: SIM300  # the reversed form is what is tested
        assert (x == nd.array([0, 5, 2])).asnumpy().tolist() == [1, 0, 1]

    def test_unfit_shapes(self) -> None:
        with pytest.raises(ShapeError, match="broadcast"):
            nd.ones((2, 3)) + nd.ones((4,))

    def test_unknown_arguments(self) -> None:
        with pytest.raises(TypeError):
            nd.softmax(nd.ones((2,)), axes=0)
        with pytest.raises(ArgumentError, match="must be an NDArray, got list"):
            nd.dot(nd.ones((2,)), [1, 2])
        with pytest.raises(ArgumentError, match=r"nd\.array"):
            nd.exp([1, 2])

    @given(
        hnp.arrays(np.float32, hnp.array_shapes(max_dims=2, max_side=4), elements=st.floats(-100, 100, width=32)),
        st.sampled_from(["+", "-", "*", "/"]),
        st.one_of(st.none(), st.integers(-5, 5), st.floats(-5, 5)),
    )
    def test_the_short_way_equals_the_long_way(self, values: Any, symbol: str, number: float | None) -> None:
        """Tiny arrays skip the engine; the bits must be those of the recorded operation."""
        expression = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b}[symbol]
        x = nd.array(values)
        other = x * 3 + 1 if number is None else number
        short = expression(x, other)
        with engine.lazy():
            long = expression(x, other)
            np.testing.assert_array_equal(short.asnumpy(), long.asnumpy())

    def test_overflow_is_silent(self) -> None:
        x = nd.array([3e38])
        assert np.isinf((x * 10).asscalar())
        assert np.isnan((x / 0 - x / 0).asscalar())


def test_a_ufunc_that_would_write_past_the_engine() -> None:
    x = nd.ones((3,))
    with pytest.raises(ArgumentError, match=r"np\.add\.at would write into an NDArray"):
        np.add.at(x, [0], 1)
    assert x.asnumpy().tolist() == [1, 1, 1]

    def test_matrix_product_operator(self) -> None:
        x = filled(2, 3)
        assert (x @ x.T).asnumpy().tolist() == [[5, 14], [14, 50]]
        assert (x @ nd.ones((3,))).asnumpy().tolist() == [3, 12]
        with pytest.raises(ShapeError, match="batch_dot"):
            filled(2, 2, 2) @ x
        with pytest.raises(TypeError):
            x @ 2


def test_format() -> None:
    assert f"{nd.array([1.25]):.1f}" == "1.2"
    assert f"{nd.ones((2,))}" == str(nd.ones((2,)))
    with pytest.raises(ValueError, match="asscalar"):
        f"{nd.ones((2,)):.3f}"


def test_absent_names_say_what_to_use() -> None:
    with pytest.raises(AttributeError, match="not planned"):
        mx.np  # noqa: B018
    assert not hasattr(mx, "nonsense")
    with pytest.raises(ArgumentError, match="one tuple"):
        nd.ones(2, 3)
