"""Rows of ops/pool.py: pooling, against a loop over results."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from minimx import nd
from minimx.base import ArgumentError, DTypeError, ShapeError
from minimx.op import apply
from minimx.ops import pool

from .harness import Bad, Case, Maker, distinct, normal, uniform


def windows(length: int, kernel: int, stride: int, pad: int, convention: str) -> list[tuple[range, int]]:
    """For each result along an axis: the elements under its window, and how many there are with those of the padding."""
    rest = length + 2 * pad - kernel
    count = {"valid": rest // stride, "full": -(-rest // stride), "same": -(-length // stride) - 1}[convention] + 1
    found = []
    for number in range(count):
        start = number * stride - pad
        end = min(start + kernel, length + pad)
        found.append((range(max(start, 0), max(min(end, length), 0)), max(end - start, 1)))
    return found


def pooling(
    x: np.ndarray,
    kernel: tuple[int, ...] = (),
    stride: tuple[int, ...] = (),
    pad: tuple[int, ...] = (),
    pool_type: str = "max",
    pooling_convention: str = "valid",
    p_value: int = 2,
    count_include_pad: bool = True,
    global_pool: bool = False,
) -> np.ndarray:
    """One result at a time, from a list of the elements under its window."""
    ndim = x.ndim - 2
    if global_pool:
        kernel, stride, pad, pooling_convention = x.shape[2:], (), (), "valid"
    stride, pad = stride or (1,) * ndim, pad or (0,) * ndim
    axes = [windows(*each, pooling_convention) for each in zip(x.shape[2:], kernel, stride, pad)]
    result = np.zeros((*x.shape[:2], *map(len, axes)))
    for place in np.ndindex(*result.shape[2:]):
        chosen = [axes[axis][number] for axis, number in enumerate(place)]
        under = x[(slice(None), slice(None), *np.ix_(*[list(elements) for elements, _ in chosen]))]
        under = under.reshape(*x.shape[:2], math.prod(under.shape[2:]))
        size = int(np.prod([count for _, count in chosen])) if count_include_pad else max(under.shape[-1], 1)
        result[(slice(None), slice(None), *place)] = {
            "max": lambda u=under: u.max(-1),
            "sum": lambda u=under: u.sum(-1),
            "avg": lambda u=under, n=size: u.sum(-1) / n,
            "lp": lambda u=under: {1: u.sum(-1), 2: np.sqrt((u**2).sum(-1)), 3: np.cbrt((u**3).sum(-1))}[p_value],
        }[pool_type]()
    return result


def row(label: str, data: Maker, **given: Any) -> Case:
    """A row of Pooling."""
    return Case("Pooling", lambda x: pool.Pooling(x, **given), (data,), lambda x: pooling(x, **given), label=label)


def bad(match: str, error: type[Exception] = ArgumentError, data: tuple[int, ...] = (1, 2, 5, 5), **given: Any) -> Bad:
    """A bad call of Pooling."""
    wanted: dict[str, Any] = {"kernel": (2, 2), **given}
    dtype = wanted.pop("dtype", "float32")
    return Bad(lambda nd: nd.Pooling(nd.ones(data, dtype=dtype), **wanted), error, match)


BAD = (
    bad("kernel is required: 1, 2 or 3 lengths", kernel=()),
    bad(r"stride=\(0, 1\) must not be less than 1", stride=(0, 1)),
    bad(r"pad=\(1,\) has 1 lengths, kernel=\(2, 2\) has 2", pad=1),
    bad("pool_type='median' is not known; choose one of max, avg, sum, lp", pool_type="median"),
    bad("pooling_convention='half' is not known", pooling_convention="half"),
    bad("p_value=None, pool_type='lp' wants 1, 2 or 3", pool_type="lp"),
    bad("p_value=4, pool_type='lp' wants 1, 2 or 3", pool_type="lp", p_value=4),
    bad("layout='NCW' is not one for 2 axes", layout="NCW"),
    bad("pooling_convention='same' has no padding", pooling_convention="same", pad=(1, 1)),
    bad(r"data needs 4 axes \(batch, channels, height, width\), got \(1, 2, 5\)", ShapeError, (1, 2, 5)),
    bad(
        r"data needs 3 or 4 or 5 axes \(batch, channels, and those of the image\), got \(1, 2\)",
        ShapeError,
        (1, 2),
        global_pool=True,
    ),
    bad(r"kernel=\(6, 2\) reaches over \(6, 2\), but data has \(5, 5\)", ShapeError, kernel=(6, 2)),
    bad("data is int32, wants a floating dtype", DTypeError, dtype="int32"),
)

TYPES: dict[str, dict[str, Any]] = {
    "max": {},
    "sum": {"pool_type": "sum"},
    "avg": {"pool_type": "avg"},
    "avg-inside": {"pool_type": "avg", "count_include_pad": False},
    "lp1": {"pool_type": "lp", "p_value": 1},
    "lp2": {"pool_type": "lp", "p_value": 2},
    "lp3": {"pool_type": "lp", "p_value": 3},
}


def maker(kind: str, *shape: int) -> Maker:
    """Data without ties or, for a norm, far from where it has no slope."""
    return uniform(0.5, 1.5, *shape) if kind.startswith("lp") else distinct(*shape)


POOLING = [
    Case("Pooling", lambda x: pool.Pooling(x, (2, 2)), (distinct(2, 3, 4, 5),), lambda x: pooling(x, (2, 2)), bad=BAD),
    *[
        row(f"{kind}-{label}", maker(kind, *shape), **attributes, **given)
        for kind, attributes in TYPES.items()
        for label, shape, given in (
            ("overlapping", (2, 2, 5, 6), {"kernel": (3, 2), "stride": (2, 1), "pad": (1, 0)}),
            ("apart", (1, 2, 7), {"kernel": (2,), "stride": (3,)}),
            ("full", (1, 2, 7, 6), {"kernel": (2, 3), "stride": (3, 2), "pad": (0, 1), "pooling_convention": "full"}),
            ("global", (2, 3, 3, 4), {"global_pool": True}),
        )
    ],
    row("3D", distinct(1, 2, 3, 4, 5), kernel=(2, 2, 3), stride=(1, 2, 2)),
    row("3D-avg", normal(1, 2, 3, 4, 5), kernel=(2, 2, 3), stride=(1, 2, 2), pad=(1, 1, 0), pool_type="avg"),
    row("same", distinct(2, 1, 7), kernel=(3,), stride=(2,), pooling_convention="same"),
    Case(
        "Pooling",
        lambda x: pool.Pooling(x, 2, stride=2, pad=(0, 0, 0)),  # more zeros than axes, as MXNet takes them
        (distinct(2, 1, 7),),
        lambda x: pooling(x, (2,), (2,)),
        label="zeros of padding",
    ),
    row("one", distinct(1, 1, 1, 1), kernel=(1, 1)),
    row("empty", normal(0, 2, 4), kernel=(2,)),
    row("global-3D", distinct(1, 2, 2, 3, 2), global_pool=True, kernel=(2, 2, 2)),
    *[
        Case(
            "Pooling",
            lambda x, kind=kind: pool.Pooling(x, (2, 3), kind, stride=(2, 2), pad=(0, 1), layout="NHWC"),
            (distinct(2, 4, 5, 3),),
            lambda x, kind=kind: np.moveaxis(pooling(np.moveaxis(x, -1, 1), (2, 3), (2, 2), (0, 1), pool_type=kind), 1, -1),
            label=f"channels-last-{kind}",
        )
        for kind in ("max", "avg")
    ],
    Case(
        "Pooling",
        lambda x: pool.Pooling(x, (3, 3), stride=(2, 2), pad=(2, 2), pooling_convention="full"),
        (distinct(1, 1, 4, 4),),
        lambda x: np.where(np.isfinite(found := padded_max(x)), found, np.finfo("float32").min),
        dtypes=("float32",),  # a window without any element has the least number of the dtype, as in MXNet
        rtol={"float16": np.inf},  # as above
        label="windows-of-padding",
    ),
]


def padded_max(x: np.ndarray) -> np.ndarray:
    """3 x 3 windows, 2 apart, over data framed by 2 infinitely small numbers, and by what the last windows need."""
    framed = np.pad(x, [(0, 0), (0, 0), (2, 4), (2, 4)], constant_values=-np.inf)
    return np.array([[framed[0, 0, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3].max() for j in range(4)] for i in range(4)])[None, None]


# ---- the operators that are its gradients

GEOMETRY: dict[str, Any] = {"kernel_size": (3, 2), "stride": (2, 1), "pad": (1, 0)}
DATA = distinct(2, 2, 5, 4)(np.random.default_rng(3))  # a constant: only `head` has a gradient
POOLED = pooling(DATA, (3, 2), (2, 1), (1, 0))


def winners() -> np.ndarray:
    """For each result of DATA the flat place of its maximum."""
    flat = {value: place for place, value in enumerate(DATA.reshape(-1))}
    return np.vectorize(flat.__getitem__)(POOLED)


def constants(dtype: Any) -> tuple[Any, Any]:
    return nd.array(DATA, dtype=dtype), nd.array(POOLED.astype(DATA.dtype), dtype=dtype)


def scattered(g: np.ndarray) -> np.ndarray:
    total = np.zeros(DATA.size)
    np.add.at(total, winners().reshape(-1), g.reshape(-1))
    return total.reshape(DATA.shape)


def averaged(g: np.ndarray) -> np.ndarray:
    """Mean pooling is linear: g times its value for each unit."""
    result = np.zeros((2, 2, 5, 4))
    for place in np.ndindex(*result.shape):
        unit = np.zeros_like(result)
        unit[place] = 1
        result[place] = (pooling(unit, (3, 2), (2, 1), (1, 0), "avg") * g).sum()
    return result


def calling(op: Any, *shapes: tuple[int, ...]) -> Callable[[Any], Any]:
    return lambda nd: apply(op, *[nd.ones(shape) for shape in shapes])


SPREAD = pool.PoolingSpread(**GEOMETRY, pool_type="avg", lengths=(5, 4))
FIRST, CHOSEN = pool.PoolingFirst(**GEOMETRY), pool.PoolingChosen(**GEOMETRY)

GRADIENTS = [
    Case(
        "_backward_Pooling",
        lambda g: apply(SPREAD, g),
        (normal(2, 2, 3, 3),),
        averaged,
        bad=(
            Bad(
                calling(SPREAD, (2, 2, 3, 4)),
                ShapeError,
                r"head has shape \(2, 2, 3, 4\), data of lengths \(5, 4\) needs \(2, 2, 3, 3\)",
            ),
        ),
    ),
    Case(
        "_backward_Pooling_max",
        lambda g: apply(FIRST, g, *constants(g.dtype)),
        (normal(2, 2, 3, 3),),
        scattered,
        bad=(
            Bad(calling(FIRST, (1, 1, 3, 3), (1, 1, 5, 4), (1, 1, 3, 4)), ShapeError, r"result has shape \(1, 1, 3, 4\)"),
            Bad(calling(FIRST, (1, 1, 3, 4), (1, 1, 5, 4), (1, 1, 3, 3)), ShapeError, r"head has shape \(1, 1, 3, 4\)"),
        ),
    ),
    Case(
        "_backward_Pooling_chosen",
        lambda h: apply(CHOSEN, h, *constants(h.dtype)),
        (normal(2, 2, 5, 4),),
        lambda h: h.reshape(-1)[winners()],
        bad=(
            Bad(
                calling(CHOSEN, (1, 1, 5, 5), (1, 1, 5, 4), (1, 1, 3, 3)),
                ShapeError,
                r"head has shape \(1, 1, 5, 5\), data needs",
            ),
        ),
    ),
]

CASES = [*POOLING, *GRADIENTS]
