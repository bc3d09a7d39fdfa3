"""Rows of CTCLoss (ops/ctc.py). The oracle adds up all paths, one after another."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from minimx.base import ArgumentError, DTypeError, OutOfRangeError, ShapeError
from minimx.op import apply
from minimx.ops.ctc import CTCLoss, TemporalClassificationGradient, TemporalClassificationLoss

from .harness import Bad, Case, normal


def whole(*rows: Any, dtype: str = "int32") -> Callable[[np.random.Generator], np.ndarray]:
    return lambda rng: np.array(rows, dtype)


def spelt(path: tuple[int, ...], blank: int) -> list[int]:
    """What remains of a path when repeated classes are merged and blanks removed."""
    return [number for number, _ in itertools.groupby(path) if number != blank]


def probabilities(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def oracle(
    data: np.ndarray,
    label: np.ndarray,
    data_lengths: np.ndarray | None = None,
    label_lengths: np.ndarray | None = None,
    blank_label: str = "first",
) -> np.ndarray:
    steps, batch, classes = data.shape
    blank, padding = (0, 0) if blank_label == "first" else (classes - 1, -1)
    losses = []
    for n in range(batch):
        length = steps if data_lengths is None else int(data_lengths[n])
        wanted = label[n].astype(int).tolist()
        if label_lengths is not None:
            wanted = wanted[: int(label_lengths[n])]
        elif padding in wanted:
            wanted = wanted[: wanted.index(padding)]
        p = probabilities(data[:length, n])
        paths = itertools.product(range(classes), repeat=length)
        total = sum(np.prod([p[t, c] for t, c in enumerate(path)]) for path in paths if spelt(path, blank) == wanted)
        losses.append(-np.log(total) if total else 0.0)
    return np.array(losses)


def slope(head: np.ndarray, data: np.ndarray, *others: Any, **how: Any) -> np.ndarray:
    """The gradient of `oracle` by differences."""
    gradient, step = np.zeros_like(data), 1e-5
    for index in np.ndindex(data.shape):
        high, low = data.copy(), data.copy()
        high[index] += step
        low[index] -= step
        gradient[index] = ((oracle(high, *others, **how) - oracle(low, *others, **how)) * head).sum() / (2 * step)
    return gradient


# What the loss hands to its gradient.
DATA, LABEL = np.random.default_rng(5).normal(size=(3, 2, 3)), np.array([[1, 2], [2, 0]])
LOSS, ALPHA = TemporalClassificationLoss().kernel(np, DATA, LABEL)

CASES = [
    Case(
        "CTCLoss",
        CTCLoss,
        (normal(4, 4, 3), whole([1, 2], [2, 2], [1, 0], [0, 1])),  # the last label is empty
        oracle,
        second=False,
        bad=(
            Bad(
                lambda nd: nd.CTCLoss(nd.ones((3, 2)), nd.ones((2, 1))),
                ShapeError,
                r"data needs 3 axes \(steps, batch, classes\), got \(3, 2\)",
            ),
            Bad(
                lambda nd: nd.CTCLoss(nd.ones((3, 2, 4)), nd.ones((2,))),
                ShapeError,
                r"label needs 2 axes \(batch, labels\), got \(2,\)",
            ),
            Bad(lambda nd: nd.CTCLoss(nd.ones((3, 2, 4)), nd.ones((3, 2))), ShapeError, r"of 2 sequences needs \(2, 2\)"),
            Bad(
                lambda nd: nd.CTCLoss(nd.ones((3, 2, 4)), nd.ones((2, 4))),
                ShapeError,
                "label has 4 classes a sequence, data has 3",
            ),
            Bad(lambda nd: nd.CTCLoss(nd.ones((3, 2, 4), dtype="int32"), nd.ones((2, 2))), DTypeError, "data is int32"),
            Bad(lambda nd: nd.CTCLoss(nd.ones((3, 2, 4)), nd.ones((2, 2)), blank_label="none"), ArgumentError, "first, last"),
            Bad(
                lambda nd: nd.CTCLoss(nd.ones((3, 2, 4)), nd.ones((2, 2)), use_label_lengths=True),
                ArgumentError,
                "label_lengths is missing; it goes together with use_label_lengths=True",
            ),
            Bad(
                lambda nd: nd.CTCLoss(nd.ones((3, 2, 4)), nd.ones((2, 2)), nd.array([3, 3])),
                ArgumentError,
                "data_lengths is given but not used",
            ),
            Bad(
                lambda nd: nd.CTCLoss(nd.ones((3, 2, 4)), nd.ones((2, 2)), nd.ones((3,)), use_data_lengths=True),
                ShapeError,
                r"data_lengths has shape \(3,\).*needs \(2,\)",
            ),
            Bad(
                lambda nd: nd.CTCLoss(nd.ones((3, 2, 4)), nd.ones((2, 2)), nd.array([3, 4]), use_data_lengths=True),
                OutOfRangeError,
                "data_lengths has 4; 0 to 3 are possible",
            ),
            Bad(
                lambda nd: nd.CTCLoss(nd.ones((3, 1, 4)), nd.array([[1, 4]])),
                OutOfRangeError,
                "label has 4, which is no class; data has 4",
            ),
            Bad(
                lambda nd: nd.CTCLoss(nd.ones((3, 1, 4)), nd.array([[1, -2]]), blank_label="last"),
                OutOfRangeError,
                "label has -2, which is no class; data has 4, of which 3 is the blank, and -1 fills up",
            ),
        ),
    ),
    Case(
        "CTCLoss",
        lambda x, y: CTCLoss(x, y, blank_label="last"),
        (normal(4, 3, 3), whole([0, 1], [1, 1], [1, -1])),
        lambda x, y: oracle(x, y, blank_label="last"),
        second=False,
        label="last",
    ),
    Case("CTCLoss", CTCLoss, (normal(4, 2, 3), whole([1, 2], [1, 0], dtype="float32")), oracle, grad=False, label="float-labels"),
    Case(
        "CTCLoss",
        lambda x, y, t, n: CTCLoss(x, y, t, n, use_data_lengths=True, use_label_lengths=True),
        (normal(5, 4, 3), whole([1, 2, 1], [2, 2, 9], [1, 9, 9], [9, 9, 9]), whole(4, 3, 5, 2), whole(3, 2, 1, 0)),
        oracle,
        second=False,
        label="lengths",
    ),
    Case(
        "CTCLoss",
        lambda x, y, n: CTCLoss(x, y, None, n, use_label_lengths=True, blank_label="last"),
        (normal(3, 2, 4), whole([0, 2], [2, 0]), whole(2, 1)),
        lambda x, y, n: oracle(x, y, None, n, "last"),
        second=False,
        label="label-lengths",
    ),
    Case(
        "CTCLoss",  # a label that needs four steps, and sequences without any
        lambda x, y, t: CTCLoss(x, y, t, use_data_lengths=True),
        (normal(3, 3, 3), whole([1, 1, 1], [1, 0, 0], [0, 0, 0]), whole(3, 0, 0)),
        oracle,
        second=False,
        label="impossible",
    ),
    Case("CTCLoss", CTCLoss, (normal(3, 2, 3), lambda rng: np.zeros((2, 0))), oracle, second=False, label="no-labels"),
    Case("CTCLoss", CTCLoss, (normal(2, 0, 3), lambda rng: np.zeros((0, 2))), oracle, second=False, label="no-sequences"),
    Case("CTCLoss", CTCLoss, (normal(0, 2, 3), lambda rng: np.zeros((2, 0))), oracle, second=False, label="no-steps"),
    Case("CTCLoss", CTCLoss, (normal(2, 2, 1), lambda rng: np.zeros((2, 1))), oracle, second=False, label="only-blanks"),
    Case(
        "_backward_ctc_loss",
        lambda g, *kept: apply(TemporalClassificationGradient(), g, *kept),
        (normal(2), *(lambda rng, array=array: array for array in (LOSS, ALPHA, DATA, LABEL))),
        lambda g, loss, alpha, x, y: slope(g, x, y),
        grad=False,
        rtol={"float32": 1e-5, "float64": 1e-8},  # the oracle takes differences
    ),
]
