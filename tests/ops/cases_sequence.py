"""Rows of the operators on sequences of different lengths: ops/sequence.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minimx.base import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from minimx.op import apply
from minimx.ops.sequence import LastOfSequenceAdjoint, SequenceLast, SequenceMask, SequenceReverse

from .harness import Bad, Case, normal


def lengths(*numbers: float, dtype: str = "int32") -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: np.array(numbers, dtype)


# ---- oracles: one sequence at a time


def mask_oracle(x: np.ndarray, n: np.ndarray, value: float = 0.0, axis: int = 0) -> np.ndarray:
    result = np.moveaxis(x.copy(), 1 - axis, 0)  # batch, time, ...
    for sequence, length in zip(result, n):
        sequence[max(int(length), 0) :] = value
    return np.moveaxis(result, 0, 1 - axis)


def reverse_oracle(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    result = x.copy()
    for i, length in enumerate(n):
        head = x[: int(length), i]
        result[: len(head), i] = head[::-1]
    return result


def last_oracle(x: np.ndarray, n: np.ndarray, axis: int = 0) -> np.ndarray:
    return np.stack([np.moveaxis(x, axis, 1)[i, int(length) - 1] for i, length in enumerate(n)])


def bads(name: str, axes: str) -> tuple[Bad, ...]:
    """The calls that none of the operators takes."""
    return (
        Bad(lambda nd: getattr(nd, name)(nd.ones((3,))), ShapeError, "at least 2 dimensions, time and batch"),
        Bad(lambda nd: getattr(nd, name)(nd.ones((3, 2)), axis=-1), ArgumentError, f"axis is -1; time must be axis {axes}"),
        Bad(
            lambda nd: getattr(nd, name)(nd.ones((3, 2)), nd.array([1, 2, 3]), True),
            ShapeError,
            r"sequence_length has shape \(3,\); \(2,\), the batch, is needed",
        ),
        Bad(
            lambda nd: getattr(nd, name)(nd.ones((3, 2)), nd.array([1, 2])),
            ArgumentError,
            "sequence_length is given but not used; pass use_sequence_length=True",
        ),
        Bad(
            lambda nd: getattr(nd, name)(nd.ones((3, 2)), use_sequence_length=True),
            ArgumentError,
            "sequence_length is missing; pass the lengths",
        ),
    )


def mask_case(label: str, make: Any, n: Any, value: float = 0.0, axis: int = 0, **fields: Any) -> Case:
    return Case(
        "SequenceMask",
        lambda x, n: SequenceMask(x, n, True, value, axis),
        (make, n),
        lambda x, n: mask_oracle(x, n, value, axis),
        label=label,
        **fields,
    )


CASES = [
    mask_case("lengths", normal(4, 3, 2), lengths(1, 4, 2)),
    mask_case("axis1", normal(3, 4, 2), lengths(1, 4, 2, dtype="int64"), -1.5, 1),
    mask_case("matrix", normal(4, 3), lengths(0, 9, -2), 0.5),  # lengths beyond the ends
    mask_case("fractions", normal(4, 3), lengths(1.7, 2.2, 0.9, dtype="float32"), grad=False),
    mask_case("integers", lambda rng: rng.integers(1, 9, (4, 3)).astype(np.int32), lengths(1, 4, 2), -1),
    mask_case("no-sequences", normal(4, 0), lengths()),
    Case(
        "SequenceMask",
        SequenceMask,
        (normal(4, 3),),
        lambda x: x,
        label="all",
        bad=(
            *bads("SequenceMask", "0 or 1"),
            Bad(
                lambda nd: nd.SequenceMask(nd.ones((3, 2), dtype="int32"), nd.array([1, 2]), True, 0.5),
                DTypeError,
                r"value is 0\.5, which int32 cannot hold",
            ),
        ),
    ),
    Case("SequenceReverse", lambda x, n: SequenceReverse(x, n, True), (normal(4, 3, 2), lengths(1, 4, 3)), reverse_oracle),
    Case(
        "SequenceReverse",
        lambda x, n: SequenceReverse(x, n, use_sequence_length=True),
        (normal(4, 3), lengths(0, 9, 2.7, dtype="float32")),
        reverse_oracle,
        grad=False,
        label="odd-lengths",
    ),
    Case("SequenceReverse", lambda x, n: SequenceReverse(x, n, True), (normal(1, 1, 1), lengths(1)), reverse_oracle, label="one"),
    Case(
        "SequenceReverse",
        SequenceReverse,
        (normal(4, 3),),
        lambda x: x[::-1],
        label="all",
        bad=(
            *bads("SequenceReverse", "0"),
            Bad(lambda nd: nd.SequenceReverse(nd.ones((3, 2)), axis=1), ArgumentError, "axis is 1; time must be axis 0"),
        ),
    ),
    Case("SequenceLast", lambda x, n: SequenceLast(x, n, True), (normal(4, 3, 2), lengths(1, 4, 3)), last_oracle),
    Case(
        "SequenceLast",
        lambda x, n: SequenceLast(x, n, True, 1),
        (normal(3, 4, 2), lengths(1, 4, 2)),
        lambda x, n: last_oracle(x, n, 1),
        label="axis1",
    ),
    Case(
        "SequenceLast",
        lambda x, n: SequenceLast(x, n, True),
        (normal(4, 2), lengths(1.7, 2.2, dtype="float32")),
        last_oracle,
        grad=False,
        label="fractions",
    ),
    Case(
        "SequenceLast",
        SequenceLast,
        (normal(4, 3),),
        lambda x: x[-1],
        label="all",
        bad=(
            *bads("SequenceLast", "0 or 1"),
            *(
                Bad(
                    lambda nd, wrong=wrong: nd.SequenceLast(nd.ones((3, 2)), nd.array([1, wrong]), True),
                    OutOfRangeError,
                    f"sequence_length has {wrong}; with 3 steps, 1 to 3 can be a length",
                )
                for wrong in (0, 4)
            ),
        ),
    ),
    Case("SequenceLast", lambda x: SequenceLast(x, axis=1), (normal(3, 4, 2),), lambda x: x[:, -1], label="all-axis1"),
    Case(
        "_backward_SequenceLast",
        lambda g, n: apply(LastOfSequenceAdjoint(True, 0, 4), g, n),
        (normal(3, 2), lengths(1, 4, 3)),
        lambda g, n: np.stack([[g[i] * (t == n[i] - 1) for i in range(3)] for t in range(4)]),
    ),
    Case(
        "_backward_SequenceLast",
        lambda g: apply(LastOfSequenceAdjoint(False, 1, 3), g, None),
        (normal(2, 2),),
        lambda g: np.stack([0 * g, 0 * g, g], 1),
        label="all-axis1",
    ),
]
