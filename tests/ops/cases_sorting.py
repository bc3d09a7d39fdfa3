"""Rows of the operators of order: ops/sorting.py."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from minimx.base import ArgumentError, ShapeError
from minimx.ops.sorting import argsort, sort, topk

from .harness import Bad, Case, distinct


def given(numbers: Any, dtype: str) -> Callable[[np.random.Generator], np.ndarray]:
    """Just these numbers."""
    return lambda rng: np.array(numbers, dtype)


def ties(*shape: int, dtype: str = "float64") -> Callable[[np.random.Generator], np.ndarray]:
    """Few different numbers many times: the order of equals shows."""
    return lambda rng: rng.integers(-2, 3, shape).astype(dtype)


def order(row: np.ndarray, ascending: bool) -> list[int]:
    """Positions in order: by value, NaN the greatest, equals by position."""
    signs = 1 if ascending else -1
    keys = [np.inf if np.isnan(x) else float(x) for x in row]
    return sorted(range(len(row)), key=lambda i: (signs * np.isnan(row[i]), signs * keys[i], i))


def argsort_oracle(x: np.ndarray, axis: int | None = -1, ascending: bool = True) -> np.ndarray:
    if axis is None:
        return np.array(order(x.reshape(-1), ascending), float)
    return np.apply_along_axis(lambda row: np.array(order(row, ascending), float), axis, x)


def sort_oracle(x: np.ndarray, axis: int | None = -1, ascending: bool = True) -> np.ndarray:
    places = argsort_oracle(x, axis, ascending).astype(int)
    return x.reshape(-1)[places] if axis is None else np.take_along_axis(x, places, axis)


def topk_oracle(x: np.ndarray, axis: int | None = -1, k: int = 1, ret_typ: str = "indices", ascending: bool = False) -> Any:
    k = k if k >= 1 else (x.size if axis is None else x.shape[axis])
    first = np.arange(k)
    places = np.take(argsort_oracle(x, axis, ascending), first, -1 if axis is None else axis)
    if ret_typ == "mask":
        mask = np.zeros(x.shape)
        if axis is None:
            mask.reshape(-1)[places.astype(int)] = 1
        else:
            np.put_along_axis(mask, places.astype(int), 1, axis)
        return mask
    values = np.take(sort_oracle(x, axis, ascending), first, -1 if axis is None else axis)
    return {"value": values, "indices": places, "both": (values, places)}[ret_typ]


def topk_case(label: str, make: Any, *args: Any, **fields: Any) -> Case:
    """A row of topk; args are axis, k, ret_typ, is_ascend."""
    fields.setdefault("grad", bool({"value", "both"} & set(args)))  # indices and masks have none
    return Case("topk", lambda x: topk(x, *args), (make,), lambda x: topk_oracle(x, *args), label=label, **fields)


SPECIAL = [2, np.nan, 1, -np.inf, np.inf, np.nan, -0.0, 0.0]

CASES = [
    topk_case(
        "default",
        distinct(3, 5),
        bad=(
            Bad(lambda nd: nd.topk(nd.ones((2, 5)), k=6), ArgumentError, "k is 6, but axis 1 has 5 elements"),
            Bad(lambda nd: nd.topk(nd.ones((2, 5)), axis=None, k=11), ArgumentError, "the array has 10 elements"),
            Bad(lambda nd: nd.topk(nd.ones((2, 5)), axis=2), ShapeError, "axis 2 is out of range"),
            Bad(lambda nd: nd.topk(nd.ones((2, 5)), ret_typ="values"), ArgumentError, "ret_typ 'values' is unknown"),
            Bad(lambda nd: nd.topk(nd.ones((2, 5)), dtype="int8"), ArgumentError, "dtype of the indices is int8; choose one of"),
            Bad(
                lambda nd: nd.topk(nd.ones((257,)), dtype="uint8"),
                ArgumentError,
                "uint8 cannot hold indices up to 256 exactly; pass dtype='int64'",
            ),
            Bad(lambda nd: nd.topk(nd.ones((2050,)), dtype="float16"), ArgumentError, "float16 cannot hold indices up to 2049"),
        ),
    ),
    *[
        topk_case(f"axis{axis}-{ret_typ}-{'least' if ascending else 'greatest'}", distinct(2, 5, 3), axis, 2, ret_typ, ascending)
        for axis, ret_typ, ascending in itertools.product((-1, 1, None), ("value", "indices", "both", "mask"), (False, True))
    ],
    *[
        topk_case(f"ties-{dtype}-{k}-{ascending}", ties(3, 40, dtype=dtype), -1, k, "both", ascending, grad=False)
        for dtype, k, ascending in itertools.product(("float64", "int8", "uint8", "int64"), (1, 3, 39, 0), (False, True))
        if dtype != "uint8"
    ],
    topk_case("uint8", given([3, 250, 0, 250], "uint8"), -1, 3, "both"),
    topk_case("special", given(SPECIAL, "float64"), -1, 5, "indices", grad=False),
    topk_case("special-first", given(SPECIAL, "float64"), -1, 1, "indices", grad=False),
    topk_case("special-least", given(SPECIAL, "float64"), -1, 4, "indices", True, grad=False),
    topk_case("long", distinct(2, 500), -1, 7, "both"),  # partitions, in float64 too
    topk_case("all", distinct(2, 4), -1, -1, "value"),
    topk_case("all-mask", distinct(2, 4), -1, 0, "mask"),
    topk_case("one", distinct(1, 1), 0, 1, "both"),
    Case(
        "topk",
        lambda x: topk(x, k=2, ret_typ="both"),
        (distinct(0, 3),),
        lambda x: (np.zeros((0, 2)), np.zeros((0, 2))),
        label="no-rows",
    ),
    Case(
        "topk",
        lambda x: topk(x, k=2, ret_typ="both", dtype="int32"),
        (distinct(2, 4),),
        lambda x: topk_oracle(x, -1, 2, "both"),
        label="dtype",
    ),
    *[
        Case(
            "sort",
            lambda x, axis=axis, ascending=ascending: sort(x, axis, ascending),
            (distinct(2, 4, 3),),
            lambda x, axis=axis, ascending=ascending: sort_oracle(x, axis, ascending),
            label=f"axis{axis}-{'up' if ascending else 'down'}",
        )
        for axis, ascending in itertools.product((-1, 0, 1, None), (True, False))
    ],
    Case(
        "sort",
        lambda x: sort(x, is_ascend=False),
        (given(SPECIAL, "float64"),),
        lambda x: sort_oracle(x, -1, False),
        False,
        label="special",
    ),
    Case("sort", sort, (ties(2, 9, dtype="int32"),), sort_oracle, label="integers"),
    Case(
        "sort",
        sort,
        (distinct(0, 3),),
        lambda x: x,
        label="empty",
        bad=(Bad(lambda nd: nd.sort(nd.ones((2,)), axis=1), ShapeError, "sort: axis 1 is out of range"),),
    ),
    *[
        Case(
            "argsort",
            lambda x, axis=axis, ascending=ascending: argsort(x, axis, ascending),
            (ties(2, 6, 3),),
            lambda x, axis=axis, ascending=ascending: argsort_oracle(x, axis, ascending),
            grad=False,  # none, and the harness would look for one
            label=f"axis{axis}-{'up' if ascending else 'down'}",
        )
        for axis, ascending in itertools.product((-1, 0, 1, None), (True, False))
    ],
    *[
        Case(
            "argsort",
            lambda x, ascending=ascending: argsort(x, is_ascend=ascending, dtype="int64"),
            (ties(5, 300, dtype=dtype),),
            lambda x, ascending=ascending: argsort_oracle(x, -1, ascending),
            grad=False,
            label=f"stable-{dtype}-{'up' if ascending else 'down'}",
        )
        for dtype, ascending in itertools.product(("float64", "int32", "int64"), (True, False))
    ],
    Case("argsort", argsort, (given([True, False, True], "bool"),), argsort_oracle, label="bool"),
    Case("argsort", argsort, (given(SPECIAL, "float64"),), argsort_oracle, False, label="special"),
    Case(
        "argsort",
        argsort,
        (distinct(0, 3),),
        lambda x: x,
        grad=False,
        label="empty",
        bad=(
            Bad(
                lambda nd: nd.argsort(nd.ones((3000,)), dtype="float16"), ArgumentError, "cannot hold indices up to 2999 exactly"
            ),
            Bad(lambda nd: nd.argsort(nd.ones((3,)), dtype="bool"), ArgumentError, "dtype of the indices is bool"),
        ),
    ),
]
