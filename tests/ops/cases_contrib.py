"""Rows of ops/attention.py, straight_through.py, sketch.py, hawkes.py, first_editions.py, and of single operators of other files."""

from __future__ import annotations

import numpy as np

from minimx.base import ArgumentError, DTypeError, OutOfRangeError, RankError, ShapeError
from minimx.op import apply
from minimx.ops import attention, casting, first_editions, hawkes, powers, sketch, statistics, straight_through

from .cases_conv import convolution
from .harness import Bad, Case, distinct, integers, normal, uniform

# ---- attention


def heads_of(x: np.ndarray, heads: int, parts: int) -> list[np.ndarray]:
    """The parts of each head, an array (steps, batch, heads, size) for each."""
    steps, batch, width = x.shape
    apart = x.reshape(steps, batch, heads, parts, width // (heads * parts))
    return [apart[:, :, :, part] for part in range(parts)]


def scores(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    found = np.einsum("qnhd,knhd->nhqk", queries, keys) / np.sqrt(queries.shape[3])
    return found.reshape(-1, *found.shape[2:])


def weighted(attention: np.ndarray, values: np.ndarray) -> np.ndarray:
    _, batch, heads, _ = values.shape
    found = np.einsum("nhqk,knhd->qnhd", attention.reshape(batch, heads, *attention.shape[1:]), values)
    return found.reshape(*found.shape[:2], -1)


ATTENTION = [
    Case(
        "_contrib_div_sqrt_dim",
        attention.div_sqrt_dim,
        (normal(2, 3, 5),),
        lambda x: x / np.sqrt(5),
        bad=(Bad(lambda nd: nd.contrib.div_sqrt_dim(nd.ones((2,), dtype="int32")), DTypeError, "data is int32"),),
    ),
    Case(
        "_contrib_interleaved_matmul_selfatt_qk",
        lambda x: attention.interleaved_matmul_selfatt_qk(x, heads=2),
        (normal(4, 3, 2 * 3 * 5),),
        lambda x: scores(*heads_of(x, 2, 3)[:2]),
        bad=(
            Bad(
                lambda nd: nd.contrib.interleaved_matmul_selfatt_qk(nd.ones((4, 3, 10)), heads=2),
                ShapeError,
                "whose last axis is not 3 x heads=2 parts",
            ),
            Bad(lambda nd: nd.contrib.interleaved_matmul_selfatt_qk(nd.ones((4, 3, 6))), ArgumentError, "heads=0, wants the"),
            Bad(lambda nd: nd.contrib.interleaved_matmul_selfatt_qk(nd.ones((4, 6)), heads=1), RankError, "needs 3 axes"),
        ),
    ),
    Case(
        "_contrib_interleaved_matmul_selfatt_valatt",
        lambda x, a: attention.interleaved_matmul_selfatt_valatt(x, a, heads=2),
        (normal(4, 3, 2 * 3 * 5), normal(6, 4, 4)),
        lambda x, a: weighted(a, heads_of(x, 2, 3)[2]),
        bad=(
            Bad(
                lambda nd: nd.contrib.interleaved_matmul_selfatt_valatt(nd.ones((4, 3, 6)), nd.ones((3, 4, 4)), heads=2),
                ShapeError,
                r"attention has shape \(3, 4, 4\), as many heads and steps of values needs \(6, 4, 4\)",
            ),
        ),
    ),
    Case(
        "_contrib_interleaved_matmul_encdec_qk",
        lambda q, kv: attention.interleaved_matmul_encdec_qk(q, kv, heads=2),
        (normal(3, 2, 2 * 5), normal(4, 2, 2 * 2 * 5)),
        lambda q, kv: scores(heads_of(q, 2, 1)[0], heads_of(kv, 2, 2)[0]),
        bad=(
            Bad(
                lambda nd: nd.contrib.interleaved_matmul_encdec_qk(nd.ones((3, 2, 4)), nd.ones((4, 2, 12)), heads=2),
                ShapeError,
                "their batch must be equal and the last axis twice as long",
            ),
        ),
    ),
    Case(
        "_contrib_interleaved_matmul_encdec_valatt",
        lambda kv, a: attention.interleaved_matmul_encdec_valatt(kv, a, heads=2),
        (normal(4, 3, 2 * 2 * 5), normal(6, 2, 4)),
        lambda kv, a: weighted(a, heads_of(kv, 2, 2)[1]),
    ),
]

# ---- gradients that are not those of the value: what they are is in test_straight_through.py

STRAIGHT = [
    Case(
        "_contrib_round_ste",
        straight_through.round_ste,
        (normal(3, 4),),
        lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
        grad=False,
        rtol={"float16": np.inf},  # a number that is rounded to half a unit may end on either side
    ),
    Case("_contrib_sign_ste", straight_through.sign_ste, (normal(3, 4),), np.sign, grad=False),
    Case(
        "_contrib_gradientmultiplier",
        lambda x: straight_through.gradientmultiplier(x, scalar=-0.5),
        (normal(3, 4),),
        lambda x: x,
        grad=False,
    ),
    Case(
        "IdentityAttachKLSparseReg",
        lambda x, mean: straight_through.IdentityAttachKLSparseReg(x, moving_avg=mean),
        (uniform(0.1, 0.9, 3, 4), uniform(0.1, 0.9, 4)),
        lambda x, mean: x,
        grad=False,
        bad=(
            Bad(
                lambda nd: nd.IdentityAttachKLSparseReg(nd.ones((2, 3)), moving_avg=nd.ones((2,))),
                ShapeError,
                r"moving_avg has shape \(2,\), data of shape \(2, 3\) needs \(3,\)",
            ),
            Bad(
                lambda nd: nd.IdentityAttachKLSparseReg(nd.ones((2, 3)), momentum=2, moving_avg=nd.ones((3,))),
                ArgumentError,
                "momentum=2 must be from 0 to 1",
            ),
        ),
    ),
    Case(
        "_backward_IdentityAttachKLSparseReg",
        lambda g, x, mean: apply(straight_through.SparseRegularizationBackward(0.2, 0.5, 0.75), g, x, mean),
        (normal(3, 4), uniform(0.1, 0.9, 3, 4), uniform(0.1, 0.9, 4)),
        lambda g, x, mean: g + 0.5 * (0.8 / (1 - moved(x, mean)) - 0.2 / moved(x, mean)),
        grad=False,
    ),
]


def moved(x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    return 0.75 * mean + 0.25 * x.mean(axis=0)


# ---- sketches


def transformed(x: np.ndarray) -> np.ndarray:
    """The sum that defines it."""
    length = x.shape[-1]
    waves = np.exp(-2j * np.pi * np.outer(np.arange(length), np.arange(length)) / length)
    found = x @ waves
    return np.stack([found.real, found.imag], axis=-1).reshape(*x.shape[:-1], 2 * length)


def inverse(x: np.ndarray) -> np.ndarray:
    length = x.shape[-1] // 2
    pairs = x.reshape(*x.shape[:-1], length, 2)
    waves = np.exp(2j * np.pi * np.outer(np.arange(length), np.arange(length)) / length)
    return ((pairs[..., 0] + 1j * pairs[..., 1]) @ waves).real


def places(rng: np.random.Generator) -> np.ndarray:
    return np.array([[2, 0, 2, 1, 0]])


def signs(rng: np.random.Generator) -> np.ndarray:
    return np.array([[1, -1, -1, 1, 1]])


def count_sketched(x: np.ndarray, h: np.ndarray, s: np.ndarray) -> np.ndarray:
    return (x * s) @ np.eye(4)[h[0]]


SKETCH = [
    Case(
        "_contrib_fft",
        sketch.fft,
        (normal(3, 5),),
        transformed,
        bad=(
            Bad(lambda nd: nd.contrib.fft(nd.ones((2, 3, 4))), RankError, "data needs 2 or 4 axes"),
            Bad(lambda nd: nd.contrib.fft(nd.ones((2, 3)), compute_size=0), ArgumentError, "compute_size=0 must not be less"),
        ),
    ),
    Case("_contrib_fft", lambda x: sketch.fft(x, compute_size=1), (normal(2, 1, 3, 4),), transformed, label="4D"),
    Case(
        "_contrib_ifft",
        sketch.ifft,
        (normal(3, 10),),
        inverse,
        bad=(Bad(lambda nd: nd.contrib.ifft(nd.ones((2, 3))), ShapeError, "pairs of real and imaginary parts"),),
    ),
    Case("_contrib_ifft", sketch.ifft, (normal(2, 1, 3, 8),), inverse, label="4D"),
    Case(
        "_contrib_count_sketch",
        lambda x, h, s: sketch.count_sketch(x, h, s, out_dim=4),
        (normal(3, 5), places, signs),
        count_sketched,
        bad=(
            Bad(lambda nd: nd.contrib.count_sketch(*[nd.ones((1, 3))] * 3), ArgumentError, "out_dim=0"),
            Bad(
                lambda nd: nd.contrib.count_sketch(nd.ones((2, 3)), nd.ones((1, 2)), nd.ones((1, 3)), out_dim=4),
                ShapeError,
                r"h has shape \(1, 2\), the last axis of data \(2, 3\) needs \(1, 3\)",
            ),
            Bad(
                lambda nd: nd.contrib.count_sketch(nd.ones((2, 3)), nd.ones((1, 3)) * 4, nd.ones((1, 3)), out_dim=4),
                OutOfRangeError,
                "index 4 is out of bounds",
            ),
        ),
    ),
    Case(
        "_contrib_count_sketch",
        lambda x, h, s: sketch.count_sketch(x, h, s, out_dim=4),
        (normal(2, 1, 3, 5), places, signs),
        count_sketched,
        label="4D",
    ),
    Case(
        "_contrib_count_sketch",
        lambda x, h, s: sketch.count_sketch(x, h, s, out_dim=4),
        (normal(2, 0), lambda rng: np.zeros((1, 0), int), lambda rng: np.zeros((1, 0), int)),
        lambda x, h, s: np.zeros((2, 4)),
        label="empty",
    ),
]


# ---- Hawkes processes


def likelihood(
    lda: np.ndarray,
    alpha: np.ndarray,
    beta: np.ndarray,
    state: np.ndarray,
    lags: np.ndarray,
    marks: np.ndarray,
    valid_length: np.ndarray,
    max_time: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """By definition: the intensity of each event from all events before, and the integral of each exponential to the end."""
    total, final = np.zeros(len(lda)), np.zeros_like(lda)
    for n in range(len(lda)):
        times = np.cumsum(lags[n])[: int(valid_length[n])]
        kinds = marks[n, : len(times)]
        for i, (time, k) in enumerate(zip(times, kinds)):
            past = state[n, k] * np.exp(-beta[k] * time)
            past += sum(np.exp(-beta[k] * (time - t)) for t, kind in zip(times[:i], kinds[:i]) if kind == k)
            total[n] += np.log(lda[n, k] + alpha[k] * beta[k] * past)
        end = max_time[n]
        for k in range(lda.shape[1]):
            decays = [np.exp(-beta[k] * (end - t)) for t, kind in zip(times, kinds) if kind == k]
            start = state[n, k] * np.exp(-beta[k] * end)
            total[n] -= lda[n, k] * end + alpha[k] * (state[n, k] - start + sum(1 - decay for decay in decays))
            final[n, k] = start + sum(decays)
    return total, final


def hawkes_gradient(head: np.ndarray, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
    """Central differences of lda, alpha and beta, which are right to about ten digits."""
    found = []
    for position in range(3):
        slope = np.zeros_like(inputs[position])
        for place in np.ndindex(slope.shape):
            ends = []
            for step in (1e-5, -1e-5):
                changed = [each.copy() for each in inputs]
                changed[position][place] += step
                ends.append((head * likelihood(*changed)[0]).sum())
            slope[place] = (ends[0] - ends[1]) / 2e-5
        found.append(slope)
    return tuple(found)


EVENTS = (
    uniform(0.5, 2, 3, 4), uniform(0.1, 0.9, 4), uniform(0.5, 2, 4), uniform(0, 2, 3, 4), uniform(0.1, 1, 3, 5), integers(0, 4, 3, 5),
    lambda rng: np.array([5, 0, 3.0]), lambda rng: np.array([6, 7, 8.0]),
)  # fmt: skip


def likelihood_of(*inputs: object) -> object:
    *before, marks, valid_length, max_time = inputs
    return hawkes.hawkesll(*before, marks.astype("int32"), valid_length, max_time)  # type: ignore[attr-defined]


HAWKES = [
    Case(
        "_contrib_hawkesll",
        likelihood_of,
        EVENTS,
        likelihood,
        grad=False,  # that of the events and of the state at the start is not defined; lda, alpha, beta: the next row
        rtol={
            "float32": 1e-4,
            "float16": np.inf,
        },  # sums of logarithms and integrals, which cancel; 16 bits are too few for times
        bad=(
            Bad(
                lambda nd: nd.contrib.hawkesll(*hawkes_inputs(nd, marks="float32")),
                DTypeError,
                "marks are float32, int32 is wanted",
            ),
            Bad(lambda nd: nd.contrib.hawkesll(*hawkes_inputs(nd, kinds=3)), ShapeError, r"alpha has shape \(3,\), lda of"),
            Bad(lambda nd: nd.contrib.hawkesll(*hawkes_inputs(nd, mark=2)), OutOfRangeError, "index 2 is out of bounds"),
        ),
    ),
    Case(
        "_contrib_backward_hawkesll",
        lambda g, *inputs: apply(hawkes.HawkesBackward(), g, *inputs[:5], inputs[5].astype("int32"), *inputs[6:]),
        (normal(3), *EVENTS),
        hawkes_gradient,
        grad=False,
        rtol={"float64": 1e-8, "float32": 1e-4, "float16": np.inf},  # differences, and as above
    ),
]


def hawkes_inputs(nd: object, marks: str = "int32", kinds: int = 2, mark: int = 0) -> list[object]:
    """Legal inputs for one sequence of one event, but for what is given."""
    one = nd.ones  # type: ignore[attr-defined]
    return [
        one((1, 2)),
        one((kinds,)),
        one((2,)),
        one((1, 2)),
        one((1, 1)),
        one((1, 1), dtype=marks) * mark,
        one((1,)),
        one((1,)) * 9,
    ]


# ---- others


def trained(*inputs: object) -> object:
    data, gamma, beta, mean, variance = inputs
    return first_editions.BatchNorm_v1(
        data, gamma, beta, eps=0.01, fix_gamma=False, output_mean_var=True, moving_mean=mean, moving_var=variance
    )


def windows(x: np.ndarray) -> np.ndarray:
    """What is under windows of 2 x 3 that move by 1 and 2, in data within a frame of zeros: (N, C, h, w, 2, 3)."""
    framed = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    return np.lib.stride_tricks.sliding_window_view(framed, (2, 3), axis=(2, 3))[:, :, :, ::2]


OTHERS = [
    *(
        Case(
            "Pooling_v1",
            lambda x, kind=kind: first_editions.Pooling_v1(x, (2, 3), kind, stride=(1, 2), pad=(1, 1)),
            (lambda rng: distinct(2, 2, 3, 5)(rng) - 1,),  # most are negative: zeros of the frame are largest somewhere
            lambda x, kind=kind: {"max": np.max, "avg": np.mean, "sum": np.sum}[kind](windows(x), axis=(4, 5)),
            label=kind,
        )
        for kind in ("max", "avg", "sum")
    ),
    Case(
        "Pooling_v1",
        lambda x: first_editions.Pooling_v1(x, global_pool=True, pool_type="avg"),
        (normal(2, 3, 2, 3),),
        lambda x: x.mean(axis=(2, 3), keepdims=True),
        label="global",
        bad=(
            Bad(lambda nd: nd.Pooling_v1(nd.ones((1, 1, 2, 2)), (1, 1), "lp"), ArgumentError, "pool_type='lp' is not known"),
            Bad(
                lambda nd: nd.Pooling_v1(nd.ones((1, 1, 2, 2)), (1, 1), pooling_convention="same"),
                ArgumentError,
                "pooling_convention='same' is not known; choose one of valid, full",
            ),
        ),
    ),
    Case(
        "Convolution_v1",
        lambda x, w, b: first_editions.Convolution_v1(
            x, w, b, kernel=(3, 2), num_filter=4, num_group=2, stride=(2, 1), pad=(1, 0), dilate=(1, 2)
        ),
        (normal(2, 4, 5, 6), normal(4, 2, 3, 2), normal(4)),
        lambda x, w, b: convolution(x, w, b, stride=(2, 1), dilate=(1, 2), pad=(1, 0), groups=2),
        rtol={"float32": 1e-4, "float16": 5e-2, "float64": 1e-11},  # sums of many products whose terms cancel
        bad=(
            Bad(
                lambda nd: nd.Convolution_v1(nd.ones((1, 2, 4)), nd.ones((1, 2, 3)), kernel=(3,), no_bias=True),
                ArgumentError,
                "Convolution_v1: num_filter=0 is not positive",
            ),
        ),
    ),
    Case(
        "BatchNorm_v1",
        trained,
        (normal(4, 3, 2, 2), normal(3), normal(3), normal(3), uniform(0.5, 2, 3)),
        lambda x, gamma, beta, mean, variance: (
            (x - mean.reshape(1, 3, 1, 1)) / np.sqrt(variance.reshape(1, 3, 1, 1) + 0.01) * gamma.reshape(1, 3, 1, 1)
            + beta.reshape(1, 3, 1, 1),
            mean,
            variance,
        ),
        grad=False,  # the statistics are constants here; as those of BatchNorm, whose they are
        rtol={"float16": np.inf},  # 16 bits hold no variance
    ),
    Case(
        "_contrib_quadratic",
        lambda x: powers.quadratic(x, 0.5, -2, 3),
        (normal(3, 4),),
        lambda x: 0.5 * x * x - 2 * x + 3,
        rtol={"float32": 1e-4},  # terms that cancel
        bad=(Bad(lambda nd: nd.contrib.quadratic(nd.ones((2,), dtype="int32")), DTypeError, "data is int32"),),
    ),
    Case(
        "_square_sum",
        lambda x: statistics.square_sum(x, axis=1, keepdims=True),
        (normal(3, 4, 2),),
        lambda x: (x * x).sum(axis=1, keepdims=True),
    ),
    Case("_square_sum", statistics.square_sum, (normal(3, 4),), lambda x: (x * x).sum(), label="all"),
    Case(
        "cast_storage",
        lambda x: casting.cast_storage(x, "default"),
        (normal(3, 4),),
        lambda x: x,
        bad=(
            Bad(
                lambda nd: nd.cast_storage(nd.ones((2, 2)), "csr"),
                ArgumentError,
                "stype is 'csr'; arrays here store all their elements",
            ),
        ),
    ),
]

CASES = [*ATTENTION, *STRAIGHT, *SKETCH, *HAWKES, *OTHERS]
