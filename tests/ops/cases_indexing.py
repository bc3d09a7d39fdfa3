"""Rows of the operators that read and write at indices: ops/indexing.py, scatter.py, subscript.py."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from minimx.base import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from minimx.nd.indexing import classify
from minimx.op import apply
from minimx.ops import indexing, scatter, subscript

from .harness import Bad, Case, integers, normal


def whole(numbers: Any, dtype: str = "int64") -> Callable[[np.random.Generator], np.ndarray]:
    """Just these numbers: indices at the edges."""
    return lambda rng: np.array(numbers, dtype)


def row_numbers(*shape: int) -> Callable[[np.random.Generator], np.ndarray]:
    """Distinct numbers along the first axis: rows that are written once."""
    return lambda rng: rng.permuted(np.broadcast_to(np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1)), shape), axis=0)


# ---- oracles: one element at a time


def truncated(index: Any) -> int:
    return int(np.trunc(index))


def take_oracle(a: np.ndarray, indices: np.ndarray, axis: int = 0, mode: str = "clip") -> np.ndarray:
    moved = np.moveaxis(a, axis, 0)
    n = len(moved)
    slices = []
    for index in indices.reshape(-1):
        place = truncated(index)
        slices.append(moved[place % n if mode == "wrap" else min(max(place, 0), n - 1)])
    stacked = np.stack(slices) if slices else moved[:0]
    back = stacked.reshape(indices.shape + moved.shape[1:])
    first = axis % a.ndim
    return np.moveaxis(back, list(range(indices.ndim)), list(range(first, first + indices.ndim)))


def take_adjoint_oracle(grad: np.ndarray, indices: np.ndarray, axis: int, length: int) -> np.ndarray:
    result = np.zeros((*grad.shape[:axis], length, *grad.shape[axis + indices.ndim :]))
    for place in np.ndindex(indices.shape):
        before = (slice(None),) * axis
        result[(*before, indices[place])] += grad[(*before, *place)]
    return result


def pick_oracle(data: np.ndarray, index: np.ndarray, axis: int = -1, keepdims: bool = False, mode: str = "clip") -> np.ndarray:
    moved = np.moveaxis(data, axis, -1)
    flat_index = np.moveaxis(index, axis, -1).reshape(-1) if index.ndim == data.ndim else index.reshape(-1)
    n = moved.shape[-1]
    found = []
    for values, at in zip(moved.reshape(-1, n), flat_index):
        place = truncated(at)
        found.append(values[place % n if mode == "wrap" else min(max(place, 0), n - 1)])
    result = np.array(found).reshape(moved.shape[:-1])
    return np.expand_dims(result, axis) if keepdims else result


def one_hot_oracle(indices: np.ndarray, depth: int, on: float = 1, off: float = 0, dtype: str = "float32") -> np.ndarray:
    result = np.full((*indices.shape, depth), off, dtype)
    for place in np.ndindex(indices.shape):
        if 0 <= truncated(indices[place]) < depth:
            result[(*place, truncated(indices[place]))] = on
    return result


def gather_oracle(data: np.ndarray, indices: np.ndarray) -> np.ndarray:
    return np.stack(
        [data[tuple(truncated(i) for i in column)] for column in indices.reshape(len(indices), -1).T]
    ).reshape(indices.shape[1:] + data.shape[len(indices) :])  # fmt: skip


def scatter_oracle(data: np.ndarray, indices: np.ndarray, start: np.ndarray, add: bool = False) -> np.ndarray:
    result = np.array(start, float)
    count = len(indices)
    for place in np.ndindex(indices.shape[1:]):
        target = tuple(int(indices[(axis, *place)]) for axis in range(count))
        result[target] = result[target] + data[place] if add else data[place]
    return result


def fill_oracle(lhs: np.ndarray, mhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    result = lhs.copy()
    for i, j in enumerate(rhs):
        if 0 <= truncated(j) < lhs.shape[1]:
            result[i, truncated(j)] = mhs[i]
    return result


def copy_oracle(old: np.ndarray, index: np.ndarray, new: np.ndarray) -> np.ndarray:
    result = old.copy()
    for i, row in zip(index, new):
        result[int(i)] = row
    return result


# ---- take and Embedding

TAKE = [
    Case(
        "take",
        indexing.take,
        (normal(5, 3), integers(0, 5, 4)),
        take_oracle,
        bad=(
            Bad(lambda nd: nd.take(nd.ones((3, 2)), nd.array([0]), axis=2), ShapeError, "take: axis 2 is out of range"),
            Bad(lambda nd: nd.take(nd.ones((3, 2)), nd.array([0]), mode="near"), ArgumentError, "mode 'near' is unknown"),
            Bad(lambda nd: nd.take(nd.ones((3, 2)), nd.array([0, 3]), mode="raise"), OutOfRangeError, "index 3 is out of bounds"),
            Bad(lambda nd: nd.take(nd.ones((3, 2)), nd.array([-1]), mode="raise"), IndexError, "index -1 .* mode='clip'"),
        ),
    ),
    *[
        Case(
            "take",
            lambda a, indices, axis=axis, mode=mode: indexing.take(a, indices, axis=axis, mode=mode),
            (normal(2, 4, 3), whole([[-5, -1, 0], [3, 4, 9]])),
            lambda a, indices, axis=axis, mode=mode: take_oracle(a, indices, axis, mode),
            label=f"axis{axis}-{mode}",
        )
        for axis, mode in itertools.product((0, 1, -1), ("clip", "wrap"))
    ],
    Case("take", lambda a, i: indexing.take(a, i, mode="raise"), (normal(4), integers(0, 4, 2, 2)), take_oracle, label="raise"),
    Case("take", indexing.take, (normal(3, 2), whole([0.9, 1.5, -0.5, -1.5])), take_oracle, grad=False, label="fractions"),
    Case("take", indexing.take, (normal(3, 2), whole([2, 0], "uint8")), take_oracle, label="uint8"),
    Case("take", indexing.take, (normal(3, 2), whole([], "int32")), take_oracle, label="no-indices"),
    Case("take", indexing.take, (normal(0, 2), whole([], "int32")), lambda a, i: np.zeros((0, 2)), label="empty-axis"),
    Case("take", indexing.take, (normal(1, 1), whole([0])), take_oracle, label="single"),
    Case("take", indexing.take, (whole([[True, False]], "bool"), whole([0, 0])), lambda a, i: a[i], label="bool"),
    Case(
        "_backward_take",
        lambda g, i: apply(indexing.TakeAdjoint(0, "clip", 6), g, i),
        (normal(4, 3), whole([5, 0, 5, 2])),
        lambda g, i: take_adjoint_oracle(g, i, 0, 6),
    ),
    Case(
        "_backward_take",
        lambda g, i: apply(indexing.TakeAdjoint(1, "clip", 5), g, i),
        (normal(2, 3, 2, 4), whole([[4, 0], [4, 4], [1, 0]])),
        lambda g, i: take_adjoint_oracle(g, i, 1, 5),
        label="middle",
    ),
    Case(
        "_backward_take",
        lambda g, i: apply(indexing.TakeAdjoint(1, "clip", 3), g, i),
        (normal(2, 200), integers(0, 3, 200)),
        lambda g, i: take_adjoint_oracle(g, i, 1, 3),
        label="last",
    ),
    Case(
        "_backward_take",
        lambda g, i: apply(indexing.TakeAdjoint(0, "clip", 7), g, i),
        (normal(90, 1000), integers(0, 7, 90)),  # several blocks of the addition
        lambda g, i: take_adjoint_oracle(g, i, 0, 7),
        grad=False,  # the same kernel as in the small rows
        label="wide",
    ),
    Case(
        "_backward_take",
        lambda g, i: apply(indexing.TakeAdjoint(0, "clip", 3), g, i),
        (whole([[1, 2], [3, 4], [5, 6]], "int32"), whole([1, 1, 0])),
        lambda g, i: take_adjoint_oracle(g, i, 0, 3),
        label="integers",
        bad=(
            Bad(
                lambda nd: apply(indexing.TakeAdjoint(0, "clip", 3), nd.ones((2, 2)), nd.array([0])),
                ShapeError,
                r"grad has shape \(2, 2\), wants \(1,\) from axis 0 on",
            ),
        ),
    ),
    Case(
        "Embedding",
        lambda i, w: indexing.Embedding(i, w, input_dim=6, output_dim=4),
        (whole([[0, 5], [2, 2], [-1, 9]]), normal(6, 4)),
        lambda i, w: w[np.clip(i, 0, 5)],
        bad=(
            Bad(
                lambda nd: nd.Embedding(nd.array([0]), nd.ones((3, 2)), input_dim=4, output_dim=2),
                ShapeError,
                r"weight has shape \(3, 2\), wants \(input_dim, output_dim\) = \(4, 2\)",
            ),
            Bad(
                lambda nd: nd.Embedding(nd.array([0]), nd.ones((3, 2)), input_dim=3),
                ArgumentError,
                "input_dim and output_dim must be at least 1",
            ),
            Bad(
                lambda nd: nd.Embedding(nd.array([0]), nd.ones((3, 2)), input_dim=3, output_dim=2, dtype="complex64"),
                DTypeError,
                "complex64",
            ),
        ),
    ),
    Case(
        "Embedding",
        lambda i, w: indexing.Embedding(i, w, input_dim=50, output_dim=3, dtype="float64", sparse_grad=True),
        (lambda rng: rng.integers(0, 50, (4, 5)).astype(np.int32), normal(50, 3)),
        lambda i, w: w[i],
        label="weight-decides-dtype",
    ),
]

# ---- one element a row

PICK = [
    Case(
        "pick",
        indexing.pick,
        (normal(4, 3), integers(0, 3, 4)),
        pick_oracle,
        bad=(
            Bad(lambda nd: nd.pick(nd.ones((3, 2)), nd.array([0, 1])), ShapeError, r"index has shape \(2,\), data \(3, 2\)"),
            Bad(lambda nd: nd.pick(nd.ones((3, 2)), nd.array([0, 1, 0]), axis=3), ShapeError, "axis 3 is out of range"),
            Bad(lambda nd: nd.pick(nd.ones((3, 2)), nd.array([0]), axis=None), ArgumentError, "axis=None is not supported"),
            Bad(
                lambda nd: nd.pick(nd.ones((3, 2)), nd.array([0, 1, 0]), mode="raise"), ArgumentError, "choose one of clip, wrap"
            ),
        ),
    ),
    *[
        Case(
            "pick",
            lambda x, i, axis=axis, keepdims=keepdims, mode=mode: indexing.pick(x, i, axis, keepdims, mode),
            (normal(2, 3, 4), integers(-9, 9, *[n for a, n in enumerate((2, 3, 4)) if a != axis % 3])),
            lambda x, i, axis=axis, keepdims=keepdims, mode=mode: pick_oracle(x, i, axis, keepdims, mode),
            label=f"axis{axis}-{'keep' if keepdims else 'drop'}-{mode}",
        )
        for axis, keepdims, mode in itertools.product((0, 1, -1), (False, True), ("clip", "wrap"))
    ],
    *[
        Case(
            "pick",
            lambda x, i, keepdims=keepdims: indexing.pick(x, i, 1, keepdims),
            (normal(2, 3, 4), integers(0, 3, 2, 1, 4)),
            lambda x, i, keepdims=keepdims: pick_oracle(x, i, 1, keepdims),
            label=f"index-keeps-axis-{keepdims}",
        )
        for keepdims in (False, True)
    ],
    Case("pick", indexing.pick, (normal(5), whole([3])), lambda x, i: x[i], label="vector"),
    Case("pick", indexing.pick, (normal(3, 2), whole([0.9, 1.5, -0.5])), pick_oracle, grad=False, label="fractions"),
    Case("pick", indexing.pick, (normal(0, 2), whole([])), lambda x, i: np.zeros(0), label="no-rows"),
    Case("choose_element_0index", indexing.choose_element_0index, (normal(3, 2), integers(0, 2, 3)), pick_oracle),
    Case(
        "batch_take",
        indexing.batch_take,
        (normal(4, 3), lambda rng: rng.integers(-2, 5, 4).astype(np.int32)),
        pick_oracle,
        bad=(
            Bad(
                lambda nd: nd.batch_take(nd.ones((3, 2)), nd.array([0, 1])), ShapeError, r"indices have shape \(2,\), a \(3, 2\)"
            ),
        ),
    ),
    Case("batch_take", indexing.batch_take, (normal(2, 3, 4), integers(0, 4, 2, 3)), pick_oracle, label="more-axes"),
    Case(
        "_take_along_axis",
        lambda x, i: apply(indexing.TakeAlongAxis(1), x, i),
        (normal(2, 5, 3), lambda rng: np.stack([rng.permutation(5)[:3] for _ in range(6)], 1).reshape(3, 2, 3).swapaxes(0, 1)),
        lambda x, i: np.take_along_axis(x, i, 1),
        bad=(
            Bad(
                lambda nd: apply(indexing.TakeAlongAxis(0), nd.ones((3, 2)), nd.ones((3,))),
                ShapeError,
                r"indices have shape \(3,\), data \(3, 2\); only axis 0 may differ",
            ),
        ),
    ),
    Case(
        "_put_along_axis",
        lambda g, i: apply(indexing.PutAlongAxis(0, "clip", 4), g, i),
        (normal(3, 2), row_numbers(3, 2)),
        lambda g, i: np.stack([[sum(g[j, c] * (i[j, c] == r) for j in range(3)) for c in range(2)] for r in range(4)]),
        bad=(
            Bad(
                lambda nd: apply(indexing.PutAlongAxis(0, "clip", 4), nd.ones((3, 2)), nd.ones((3,))),
                ShapeError,
                "they must be equal",
            ),
        ),
    ),
    Case(
        "one_hot",
        lambda i: indexing.one_hot(i, 4),
        (whole([[0, 3], [-1, 4]]),),
        lambda i: one_hot_oracle(i, 4),
        bad=(
            Bad(lambda nd: nd.one_hot(nd.array([0]), -1), ArgumentError, "depth is -1"),
            Bad(
                lambda nd: nd.one_hot(nd.array([0]), 2, 1.5, dtype="int32"),
                DTypeError,
                r"on_value is 1\.5, which int32 cannot hold",
            ),
        ),
    ),
    Case(
        "one_hot",
        lambda i: indexing.one_hot(i, 3, 8, 1, "uint8"),
        (whole([2.7, -0.5, 1.0], "float32"),),
        lambda i: one_hot_oracle(i, 3, 8, 1, "uint8"),
        grad=False,
        label="values",
    ),
    Case("one_hot", lambda i: indexing.one_hot(i, 0), (whole([1, 0]),), lambda i: np.zeros((2, 0)), label="depth0"),
    Case("one_hot", lambda i: indexing.one_hot(i, 3), (whole([]),), lambda i: np.zeros((0, 3)), label="no-indices"),
    Case(
        "one_hot",
        lambda i, out: indexing.onehot_encode(i, out),
        (whole([1, 0, 5]), lambda rng: np.ones((3, 2), np.int32)),
        lambda i, out: one_hot_oracle(i, 2),
        label="onehot_encode",
    ),
]

# ---- indices of several axes

ND = [
    Case(
        "gather_nd",
        scatter.gather_nd,
        (normal(3, 4, 2), whole([[0, 2, 0, -1], [1, 3, 1, -4]])),
        gather_oracle,
        bad=(
            Bad(lambda nd: nd.gather_nd(nd.ones((3, 2)), nd.array([1, 0])), ShapeError, "at least 2 dimensions are needed"),
            Bad(lambda nd: nd.gather_nd(nd.ones((3, 2)), nd.array([[1], [0], [0]])), ShapeError, "with M up to 2 axes"),
            Bad(lambda nd: nd.gather_nd(nd.ones((3, 2)), nd.array([[3], [0]])), OutOfRangeError, "index 3 is out of bounds .* 3"),
            Bad(lambda nd: nd.gather_nd(nd.ones((3, 2)), nd.array([[0], [-3]])), IndexError, "index -3 is out of bounds"),
        ),
    ),
    Case("gather_nd", scatter.gather_nd, (normal(3, 4), integers(0, 3, 2, 2, 2)), gather_oracle, label="elements"),
    Case("gather_nd", scatter.gather_nd, (normal(3, 4, 2), integers(0, 3, 1, 5)), gather_oracle, label="rows"),
    Case(
        "gather_nd", scatter.gather_nd, (normal(3, 2), whole([[1.9, -1.5], [0, 1]])), gather_oracle, grad=False, label="fractions"
    ),
    Case("gather_nd", scatter.gather_nd, (normal(3), whole(np.zeros((1, 0)))), lambda x, i: np.zeros(0), label="no-indices"),
    Case(
        "_backward_gather_nd",
        lambda x, i: scatter._backward_gather_nd(x, i, (2, 3, 2)),
        (normal(4, 2), whole([[1, 1, 0, -1], [2, 2, 0, -1]])),
        lambda x, i: scatter_oracle(x, i, np.zeros((2, 3, 2)), add=True),
    ),
    Case(
        "_backward_gather_nd",
        lambda x, i: scatter._backward_gather_nd(x, i, shape=(1,)),
        (whole([2123162361283621, -31231236374787, -112372937128970, -1378278798172378]), whole([[0, 0, 0, 0]], "int32")),
        lambda x, i: x.sum(keepdims=True),
        label="int64-exact",
    ),
    Case(
        "scatter_nd",
        lambda x, i: scatter.scatter_nd(x, i, (2, 3)),
        (normal(3), whole([[1, 0, 0], [2, 0, -1]])),
        lambda x, i: scatter_oracle(x, i, np.zeros((2, 3))),
        bad=(
            Bad(
                lambda nd: nd.scatter_nd(nd.ones((2, 2)), nd.array([[1, 2]]), shape=(4, 3)),
                ShapeError,
                r"data has shape \(2, 2\); for indices \(1, 2\) and shape \(4, 3\) it must be \(2, 3\)",
            ),
            Bad(lambda nd: nd.scatter_nd(nd.ones((2,)), nd.array([[1, 1], [0, 0]]), shape=(2,)), ShapeError, "M up to 1 axes"),
            Bad(
                lambda nd: nd.scatter_nd(nd.ones((1,)), nd.array([[2]]), shape=(2,)), OutOfRangeError, "index 2 is out of bounds"
            ),
        ),
    ),
    Case(
        "scatter_nd",
        lambda x, i: scatter.scatter_nd(x, i, [4, 2]),
        (normal(2, 2), whole([[1, 2]])),
        lambda x, i: scatter_oracle(x, i, np.zeros((4, 2))),
        label="rows",
    ),
    Case(
        "_scatter_set_nd",
        lambda lhs, rhs, i: scatter._scatter_set_nd(lhs, rhs, i, (2, 3)),
        (normal(2, 3), normal(3), whole([[1, 0, 0], [2, 0, -1]])),
        lambda lhs, rhs, i: scatter_oracle(rhs, i, lhs),
        bad=(
            Bad(
                lambda nd: scatter._scatter_set_nd(nd.ones((2, 2)), nd.ones((1,)), nd.array([[1], [0]]), (3, 2)),
                ShapeError,
                "they must be equal",
            ),
            Bad(
                lambda nd: scatter._scatter_set_nd(nd.ones((2, 2)), nd.ones((1,), dtype="float64"), nd.array([[1], [0]]), (2, 2)),
                DTypeError,
                "lhs is float32 but rhs is float64",
            ),
        ),
    ),
]

# ---- rows of an array

ROWS = [
    Case(
        "_contrib_boolean_mask",
        scatter.boolean_mask,
        (normal(4, 3), whole([0, 2, -1, 0])),
        lambda x, i: x[1:3],
        bad=(
            Bad(lambda nd: nd.contrib.boolean_mask(nd.ones((3, 2)), nd.array([0, 1])), ShapeError, r"index \(3,\) is needed"),
            Bad(lambda nd: nd.contrib.boolean_mask(nd.ones((3, 2)), nd.array([0, 1]), axis=1), ArgumentError, "only axis 0"),
        ),
    ),
    Case("_contrib_boolean_mask", scatter.boolean_mask, (normal(2, 3), whole([0, 0])), lambda x, i: x[:0], label="none"),
    Case("_contrib_boolean_mask", scatter.boolean_mask, (normal(3), whole([1, 0, 1], "bool")), lambda x, i: x[::2], label="bool"),
    Case(
        "_backward_contrib_boolean_mask",
        lambda g, i: apply(scatter.BooleanMaskAdjoint(), g, i),
        (normal(2, 3), whole([0, 1, 1, 0])),
        lambda g, i: np.stack([0 * g[0], g[0], g[1], 0 * g[0]]),
    ),
    Case(
        "_contrib_index_copy",
        scatter.index_copy,
        (normal(5, 3), whole([0, 4, 2]), normal(3, 3)),
        copy_oracle,
        bad=(
            Bad(
                lambda nd: nd.contrib.index_copy(nd.ones((3, 2)), nd.array([0]), nd.ones((2, 2))),
                ShapeError,
                r"old_tensor \(3, 2\), index_vector \(1,\), new_tensor \(2, 2\)",
            ),
            Bad(
                lambda nd: nd.contrib.index_copy(nd.ones((3, 2)), nd.array([3]), nd.ones((1, 2))),
                OutOfRangeError,
                "index 3 is out of bounds",
            ),
            Bad(
                lambda nd: nd.contrib.index_copy(nd.ones((3, 2)), nd.array([-1]), nd.ones((1, 2))),
                OutOfRangeError,
                "index -1 is out of bounds for an axis of size 3; correct the indices\n",
            ),
            Bad(
                lambda nd: nd.contrib.index_copy(nd.ones((3, 2)), nd.array([0]), nd.ones((1, 2), dtype="float64")),
                DTypeError,
                "new_tensor is float64",
            ),
        ),
    ),
    Case(
        "fill_element_0index",
        scatter.fill_element_0index,
        (normal(4, 3), normal(4), whole([0, 2, 3, -1])),
        fill_oracle,
        bad=(
            Bad(
                lambda nd: nd.fill_element_0index(nd.ones((3, 2)), nd.ones((2,)), nd.array([0, 1, 0])),
                ShapeError,
                r"lhs \(3, 2\), mhs \(2,\), rhs \(3,\); lhs \(N, C\), mhs \(N,\) and rhs \(N,\) are needed",
            ),
        ),
    ),
]

# ---- brackets

KEYS: dict[str, Any] = {
    "row": 1,
    "last": -1,
    "element": (1, 2, 0),
    "slice": slice(1, 3),
    "steps": (slice(None, None, -2), slice(1, None, 2)),
    "new-axes": (None, ..., None, 1),
    "empty": (slice(2, 1), 0),
    "list": [0, 2, 2],
    "block": (slice(None), [[0, 1], [1, 1]]),
    "apart": ([0, 2, 2], slice(None), [1, 0, 0]),
    "side-by-side": (slice(None), [0, 3, 3], [1, 0, 0], None),
    "rows": ([2, 0, 2, 2], 1),
    "behind-ellipsis": (..., [1, 0, 1]),
    "mask": np.arange(12).reshape(3, 4) % 5 == 1,
}
DATA = (3, 4, 2)


def at_least_1d(array: np.ndarray) -> np.ndarray:
    return np.asarray(array).reshape(np.shape(array) or (1,))


def added(g: np.ndarray, key: Any) -> np.ndarray:
    """Zeros with `g` added at the key, one element at a time."""
    result = np.zeros(DATA)
    places = np.arange(result.size).reshape(DATA)[key]
    for place, value in zip(np.reshape(places, -1), g.reshape(-1)):
        result.reshape(-1)[place] += value
    return result


def assigned(x: np.ndarray, value: Any, key: Any) -> np.ndarray:
    result = x.copy()
    result[key] = np.reshape(value, np.shape(value)[-np.ndim(x[key]) :] if np.ndim(x[key]) else ())
    return result


BRACKETS = [
    case
    for label, key in KEYS.items()
    for made in [classify(key, DATA)]
    for case in (
        Case(
            "_index",
            lambda x, made=made: subscript.index(x, made.key),
            (normal(*DATA),),
            lambda x, key=key: at_least_1d(x[key]),
            label=label,
        ),
        Case(
            "_backward_index",
            lambda g, made=made: apply(subscript.IndexAdjoint(made.key, DATA), g),
            (normal(*made.shape),),
            lambda g, key=key: added(g, key),
            label=label,
        ),
        Case(
            "_index_assign",
            lambda x, value, made=made: subscript.index_assign(x, made.key, value),
            (normal(*DATA), normal(*made.shape)),
            lambda x, value, key=key: assigned(x, value, key),
            label=label,
        ),
        Case(
            "_index_assign_scalar",
            lambda x, made=made: subscript.index_assign(x, made.key, 2.5),
            (normal(*DATA),),
            lambda x, key=key: assigned(x, 2.5, key),
            label=label,
        ),
    )
] + [
    Case(
        "_index_assign",
        lambda x, value: subscript.index_assign(x, classify([0, 2], DATA).key, value),
        (normal(*DATA), normal(4, 1)),
        lambda x, value: assigned(x, np.broadcast_to(value, (2, 4, 2)), [0, 2]),
        label="broadcast",
        bad=(
            Bad(
                lambda nd: subscript.index_assign(nd.ones((3, 2)), classify(0, (3, 2)).key, nd.ones((3,))),
                ShapeError,
                r"value has shape \(3,\); it cannot be broadcast to the \(2,\)",
            ),
            Bad(
                lambda nd: subscript.index_assign(nd.ones((3, 2)), classify(0, (3, 2)).key, nd.ones((2,), dtype="int32")),
                DTypeError,
                "data is float32 but value is int32",
            ),
            Bad(
                lambda nd: subscript.index_assign(nd.ones((3, 2), dtype="int32"), classify(0, (3, 2)).key, 0.5),
                DTypeError,
                r"the value is 0\.5, which int32 cannot hold",
            ),
        ),
    ),
    Case(
        "_backward_index",
        lambda g: apply(subscript.IndexAdjoint(classify([0, 2, 0], DATA).key, DATA, True), g),
        (normal(3, 4, 2),),
        lambda g: np.stack([g[2], 0 * g[0], g[1]]),
        label="last-only",
        bad=(
            Bad(
                lambda nd: apply(subscript.IndexAdjoint(classify(0, (3, 2)).key, (3, 2)), nd.ones((3,))),
                ShapeError,
                r"grad has shape \(3,\), wants \(2,\)",
            ),
        ),
    ),
]

CASES = [*TAKE, *PICK, *ND, *ROWS, *BRACKETS]
