"""Rows of ops/optim*.py: a step of each optimizer, with the states that it leaves behind.

The oracles are the formulas of the papers, in float64. A row's outputs are the new weight and all states.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minimx.base import ArgumentError, DTypeError, ShapeError
from minimx.ops import (
    optim,
    optim_adam as adam_ops,
    optim_adaptive as adaptive,
    optim_checks as checks,
    optim_multi as multi,
    optim_multi_adam as multi_adam,
)

from .harness import Bad, Case, Maker, normal, uniform

SHAPE = (3, 4)
LIMITED = {"rescale_grad": 0.5, "clip_gradient": 0.3}  # most gradients are clipped, some are not
MIXED = {"float32": 2e-3, "float16": np.inf}  # the result is float16; the row chooses its dtypes itself
STATES = {"float16": 4e-2}  # a state is rounded to float16 before it is read again by the formula


def limit(grad: np.ndarray, rescale_grad: float = 1.0, clip_gradient: float = np.inf) -> np.ndarray:
    return np.clip(grad * rescale_grad, -clip_gradient, clip_gradient)


def step(
    op: str,
    function: Callable[..., Any],
    oracle: Callable[..., Any],
    *states: Maker,
    label: str = "",
    bad: tuple[Bad, ...] = (),
    shape: tuple[int, ...] = SHAPE,
    **attributes: Any,
) -> Case:
    """A row of an update: the new weight, then the states that it has changed."""

    def call(weight: Any, grad: Any, *held: Any) -> list[Any]:
        return [function(weight, grad, *held, **attributes), *held]

    def formula(weight: np.ndarray, grad: np.ndarray, *held: np.ndarray) -> Any:
        return oracle(weight, grad, *held, **attributes)

    inputs = (normal(*shape), normal(*shape), *states)
    return Case(op, call, inputs, formula, grad=False, rtol=STATES, label=label, bad=bad)


def mixed(op: str, function: Callable[..., Any], oracle: Callable[..., Any], *states: Maker, **attributes: Any) -> Case:
    """The row of the same step in mixed precision: a float16 weight and gradient, float32 states, the weight in float32 last."""

    def call(weight: Any, grad: Any, *held: Any) -> list[Any]:
        halves = [array.astype("float16") for array in (weight, grad)]
        return [function(*halves, *held, weight, **attributes), *held, weight]

    def formula(weight: np.ndarray, grad: np.ndarray, *held: np.ndarray) -> Any:
        new, *changed = oracle(weight, grad.astype("float16").astype(float), *held, **attributes)
        return (new, *changed, new)

    inputs = (normal(*SHAPE), normal(*SHAPE), *states)
    return Case(op, call, inputs, formula, grad=False, dtypes=("float32",), rtol=MIXED)


def positive(*shape: int) -> Maker:
    return uniform(0.1, 2, *(shape or SHAPE))


# ---- the formulas


def sgd(w: np.ndarray, g: np.ndarray, lr: float, wd: float = 0.0, **how: Any) -> Any:
    return (w - lr * (limit(g, **how) + wd * w),)


def sgd_mom(w: np.ndarray, g: np.ndarray, mom: np.ndarray, lr: float, momentum: float = 0.0, wd: float = 0.0, **how: Any) -> Any:
    mom = momentum * mom - lr * (limit(g, **how) + wd * w)
    return w + mom, mom


def nag(w: np.ndarray, g: np.ndarray, mom: np.ndarray, lr: float, momentum: float = 0.0, wd: float = 0.0, **how: Any) -> Any:
    move = lr * (limit(g, **how) + wd * w)
    mom = momentum * mom - move
    return w + momentum * mom - move, mom


def signsgd(w: np.ndarray, g: np.ndarray, lr: float, wd: float = 0.0, **how: Any) -> Any:
    return (w - lr * (np.sign(g) + wd * w),)


def signum(w: np.ndarray, g: np.ndarray, mom: np.ndarray, lr: float, momentum: float, wd: float, wd_lh: float, **how: Any) -> Any:
    mom = momentum * mom - (1 - momentum) * (limit(g, **how) + wd * w)
    return w + lr * (np.sign(mom) - wd_lh * w), mom


def adam(
    w: np.ndarray, g: np.ndarray, mean: np.ndarray, var: np.ndarray, lr: float, beta1: float = 0.9, beta2: float = 0.999,
    epsilon: float = 1e-8, wd: float = 0.0, rescale_grad: float = 1.0, clip_gradient: float = np.inf,
) -> Any:  # fmt: skip
    g = limit(rescale_grad * g + wd * w, clip_gradient=clip_gradient)
    mean, var = beta1 * mean + (1 - beta1) * g, beta2 * var + (1 - beta2) * g**2
    return w - lr * mean / (np.sqrt(var) + epsilon), mean, var


def adamw(
    w: np.ndarray, g: np.ndarray, mean: np.ndarray, var: np.ndarray, rescale_grad: float, lr: float, eta: float, beta1: float = 0.9,
    beta2: float = 0.999, epsilon: float = 1e-8, wd: float = 0.0, clip_gradient: float = np.inf,
) -> Any:  # fmt: skip
    if not np.isfinite(rescale_grad) or rescale_grad == 0:
        return w, mean, var
    g = limit(g, rescale_grad, clip_gradient)
    mean, var = beta1 * mean + (1 - beta1) * g, beta2 * var + (1 - beta2) * g**2
    return w - eta * (lr * mean / (np.sqrt(var) + epsilon) + wd * w), mean, var


def adagrad(w: np.ndarray, g: np.ndarray, history: np.ndarray, lr: float, epsilon: float, wd: float, **how: Any) -> Any:
    g = limit(g, **how)
    history = history + g**2
    return w - lr * (g / np.sqrt(history + epsilon) + wd * w), history


def group_adagrad(w: np.ndarray, g: np.ndarray, history: np.ndarray, lr: float, epsilon: float, **how: Any) -> Any:
    g = limit(g, **how)
    history = history + np.mean(g**2, axis=1, keepdims=True)
    return w - lr * g / np.sqrt(history + epsilon), history


def rmsprop(
    w: np.ndarray, g: np.ndarray, n: np.ndarray, lr: float, gamma1: float = 0.95, epsilon: float = 1e-8, wd: float = 0.0,
    rescale_grad: float = 1.0, clip_gradient: float = np.inf, clip_weights: float = np.inf,
) -> Any:  # fmt: skip
    g = limit(rescale_grad * g + wd * w, clip_gradient=clip_gradient)
    n = gamma1 * n + (1 - gamma1) * g**2
    return limit(w - lr * g / np.sqrt(n + epsilon), clip_gradient=clip_weights), n


def rmspropalex(
    w: np.ndarray, g: np.ndarray, n: np.ndarray, mean: np.ndarray, delta: np.ndarray, lr: float, gamma1: float, gamma2: float,
    epsilon: float, wd: float, rescale_grad: float, clip_gradient: float, clip_weights: float,
) -> Any:  # fmt: skip
    g = limit(rescale_grad * g + wd * w, clip_gradient=clip_gradient)
    n, mean = gamma1 * n + (1 - gamma1) * g**2, gamma1 * mean + (1 - gamma1) * g
    delta = gamma2 * delta - lr * g / np.sqrt(n - mean**2 + epsilon)
    return limit(w + delta, clip_gradient=clip_weights), n, mean, delta


def ftrl(
    w: np.ndarray, g: np.ndarray, z: np.ndarray, n: np.ndarray, lr: float, lamda1: float, beta: float, wd: float, **how: Any
) -> Any:
    g = limit(g, **how)
    z = z + g - (np.sqrt(n + g**2) - np.sqrt(n)) * w / lr
    n = n + g**2
    return np.where(np.abs(z) > lamda1, (np.sign(z) * lamda1 - z) / ((beta + np.sqrt(n)) / lr + wd), 0), z, n


def ftml(
    w: np.ndarray, g: np.ndarray, d: np.ndarray, v: np.ndarray, z: np.ndarray, lr: float, t: int, beta1: float, beta2: float,
    epsilon: float, wd: float, rescale_grad: float, clip_grad: float,
) -> Any:  # fmt: skip
    g = limit(rescale_grad * g + wd * w, clip_gradient=clip_grad)
    v = beta2 * v + (1 - beta2) * g**2
    after = (1 - beta1**t) / lr * (np.sqrt(v / (1 - beta2**t)) + epsilon)
    z = beta1 * z + (1 - beta1) * g - (after - beta1 * d) * w
    return -z / after, after, v, z


def lamb1(
    w: np.ndarray, g: np.ndarray, mean: np.ndarray, var: np.ndarray, t: int, wd: float, beta1: float = 0.9, beta2: float = 0.999,
    epsilon: float = 1e-6, bias_correction: bool = True, **how: Any,
) -> Any:  # fmt: skip
    g = limit(g, **how)
    mean, var = beta1 * mean + (1 - beta1) * g, beta2 * var + (1 - beta2) * g**2
    m, v = (mean / (1 - beta1**t), var / (1 - beta2**t)) if bias_correction else (mean, var)
    return m / (np.sqrt(v) + epsilon) + wd * w, mean, var


def lamb2(
    w: np.ndarray, g: np.ndarray, r1: np.ndarray, r2: np.ndarray, lr: float, lower_bound: float = 0.0, upper_bound: float = np.inf
) -> np.ndarray:
    r1 = np.clip(r1, lower_bound, upper_bound)
    return w - lr * (r1 / r2 if r1 != 0 and r2 != 0 else 1.0) * g


# ---- descent, with and without momentum

WEIGHT_CHECKS = (
    Bad(
        lambda nd: nd.sgd_update(nd.ones((2, 3)), nd.ones((3, 2)), lr=0.1),
        ShapeError,
        r"sgd_update: grad has shape \(3, 2\), weight has \(2, 3\); they must be equal",
    ),
    Bad(
        lambda nd: nd.sgd_update(nd.ones((2,)), nd.ones((2,), dtype="float64"), lr=0.1),
        DTypeError,
        "grad is float64, wants float32",
    ),
    Bad(
        lambda nd: nd.sgd_update(nd.ones((2,), dtype="int32"), nd.ones((2,), dtype="int32"), lr=0.1),
        DTypeError,
        "weight is int32, wants a floating dtype",
    ),
    Bad(
        lambda nd: nd.mp_sgd_update(
            nd.ones((2,), dtype="float16"), nd.ones((2,), dtype="float16"), nd.ones((2,), dtype="float16"), lr=0.1
        ),
        DTypeError,
        "weight32 is float16, wants float32",
    ),
)


def in_place(weight: Any, grad: Any, mom: Any) -> list[Any]:
    """Three steps into the weight itself, as an optimizer makes them."""
    for _ in range(3):
        optim.sgd_mom_update(weight, grad, mom, 0.1, 0.9, out=weight)
    return [weight, mom, grad]


def three_steps(w: np.ndarray, g: np.ndarray, mom: np.ndarray) -> Any:
    for _ in range(3):
        w, mom = sgd_mom(w, g, mom, 0.1, 0.9)
    return w, mom, g


MOMENTUM = {"lr": 0.1, "momentum": 0.9, "wd": 0.1, **LIMITED}
DESCENT = [
    step("sgd_update", optim.sgd_update, sgd, lr=0.1, bad=WEIGHT_CHECKS),
    step("sgd_update", optim.sgd_update, sgd, lr=0.1, wd=0.1, **LIMITED, label="all"),
    step("sgd_update", optim.sgd_update, sgd, lr=0.1, shape=(0,), label="empty"),
    step("sgd_update", optim.sgd_update, sgd, lr=0.1, wd=0.1, shape=(401, 301), label="tiles"),
    mixed("mp_sgd_update", optim.mp_sgd_update, sgd, lr=0.1, wd=0.1, **LIMITED),
    step("sgd_mom_update", optim.sgd_mom_update, sgd_mom, normal(*SHAPE), lr=0.1),
    step("sgd_mom_update", optim.sgd_mom_update, sgd_mom, normal(*SHAPE), label="all", **MOMENTUM),
    step("sgd_mom_update", optim.sgd_mom_update, sgd_mom, normal(401, 301), shape=(401, 301), label="tiles", **MOMENTUM),
    Case("sgd_mom_update", in_place, (normal(*SHAPE),) * 3, three_steps, grad=False, label="in-place", rtol=STATES),
    mixed("mp_sgd_mom_update", optim.mp_sgd_mom_update, sgd_mom, normal(*SHAPE), **MOMENTUM),
    step("nag_mom_update", optim.nag_mom_update, nag, normal(*SHAPE), lr=0.1),
    step("nag_mom_update", optim.nag_mom_update, nag, normal(*SHAPE), label="all", **MOMENTUM),
    mixed("mp_nag_mom_update", optim.mp_nag_mom_update, nag, normal(*SHAPE), **MOMENTUM),
    step("signsgd_update", optim.signsgd_update, signsgd, lr=0.1, wd=0.1, **LIMITED),
    step("signum_update", optim.signum_update, signum, normal(*SHAPE), wd_lh=0.05, **MOMENTUM),
]


# ---- adaptive methods

ADAM = {"lr": 0.1, "beta1": 0.7, "beta2": 0.8, "epsilon": 1e-2, "wd": 0.1}
MOMENTS = (normal(*SHAPE), positive())


def with_factor(op: str, function: Callable[..., Any], factor: float, label: str) -> Case:
    """AdamW, whose factor of the gradient is an input."""
    return step(
        op,
        lambda w, g, mean, var, **how: function(w, g, mean, var, factor, **how),
        lambda w, g, mean, var, **how: adamw(w, g, mean, var, factor, **how),
        *MOMENTS,
        eta=0.5,
        clip_gradient=0.3,
        label=label,
        **ADAM,
    )


ADAPTIVE = [
    step("adam_update", adam_ops.adam_update, adam, *MOMENTS, lr=0.1),
    step("adam_update", adam_ops.adam_update, adam, *MOMENTS, label="all", **ADAM, **LIMITED),
    with_factor("_adamw_update", adam_ops.adamw_update, 0.5, "plain"),
    with_factor("_adamw_update", adam_ops.adamw_update, np.nan, "overflow"),
    with_factor("_adamw_update", adam_ops.adamw_update, 0.0, "zero"),
    mixed(
        "_mp_adamw_update",
        lambda w, g, mean, var, w32, **how: adam_ops.mp_adamw_update(w, g, mean, var, w32, 0.5, **how),
        lambda w, g, mean, var, **how: adamw(w, g, mean, var, 0.5, **how),
        *MOMENTS,
        eta=0.5,
        **ADAM,
    ),
    step("_sparse_adagrad_update", adaptive.adagrad_update, adagrad, positive(), lr=0.1, epsilon=1e-2, wd=0.1, **LIMITED),
    step(
        "_contrib_group_adagrad_update",
        adaptive.group_adagrad_update,
        group_adagrad,
        positive(3, 1),
        lr=0.1,
        epsilon=1e-2,
        **LIMITED,
        bad=(
            Bad(
                lambda nd: nd.contrib.group_adagrad_update(nd.ones((3, 4)), nd.ones((3, 4)), nd.ones((3,)), lr=0.1),
                ShapeError,
                r"history is float32\[3\], weight of shape \(3, 4\) needs float32\[3, 1\]",
            ),
        ),
    ),
    step("rmsprop_update", adaptive.rmsprop_update, rmsprop, positive(), lr=0.1),
    step(
        "rmsprop_update", adaptive.rmsprop_update, rmsprop, positive(), lr=0.1, gamma1=0.7, epsilon=1e-2, wd=0.1, clip_weights=0.5,
        label="all", **LIMITED,
    ),
    step(
        "rmspropalex_update", adaptive.rmspropalex_update, rmspropalex, uniform(2, 3, *SHAPE), uniform(-1, 1, *SHAPE), normal(*SHAPE),
        lr=0.1, gamma1=0.7, gamma2=0.8, epsilon=1e-2, wd=0.1, clip_weights=0.5, **LIMITED,
    ),
    step("ftrl_update", adaptive.ftrl_update, ftrl, normal(*SHAPE), positive(), lr=0.1, lamda1=0.5, beta=0.3, wd=0.1, **LIMITED),
    step(
        "ftml_update", adaptive.ftml_update, ftml, positive(), positive(), normal(*SHAPE),
        lr=0.1, t=3, beta1=0.7, beta2=0.9, epsilon=1e-3, wd=0.1, rescale_grad=0.5, clip_grad=0.3,
        bad=(
            Bad(
                lambda nd: nd.ftml_update(*[nd.ones((2,))] * 5, lr=0.1),
                ArgumentError,
                "t=0 is no number of a step; count steps from 1",
            ),
        ),
    ),
    step("lamb_update_phase1", adam_ops.lamb_update_phase1, lamb1, *MOMENTS, t=3, wd=0.1, **LIMITED),
    step(
        "lamb_update_phase1", adam_ops.lamb_update_phase1, lamb1, *MOMENTS, t=3, wd=0.0, bias_correction=False, beta1=0.7, beta2=0.8,
        epsilon=1e-2, label="biased",
        bad=(Bad(lambda nd: nd.lamb_update_phase1(*[nd.ones((2,))] * 4, wd=0.1), ArgumentError, "t=0 is no number of a step"),),
    ),
    Case(
        "mp_lamb_update_phase1",
        lambda w, g, mean, var: [
            adam_ops.mp_lamb_update_phase1(w.astype("float16"), g.astype("float16"), mean, var, w, t=3, wd=0.1), mean, var,
        ],
        (normal(*SHAPE), normal(*SHAPE), *MOMENTS),
        lambda w, g, mean, var: lamb1(w, g.astype("float16").astype(float), mean, var, t=3, wd=0.1),
        grad=False, dtypes=("float32",), rtol=MIXED,
    ),
    *(
        Case(
            "lamb_update_phase2",
            lambda w, g, how=how, r1=r1, r2=r2: adam_ops.lamb_update_phase2(
                w, g, (w * 0 + r1).max(), (w * 0 + r2).max(), lr=0.1, **how
            ),
            (normal(5), normal(5)),
            lambda w, g, how=how, r1=r1, r2=r2: lamb2(w, g, r1, r2, lr=0.1, **how),
            grad=False,
            label=f"{r1}-{r2}{''.join(how)}",
        )
        for r1, r2, how in ((2, 3, {}), (0, 3, {}), (2, 0, {}), (2, 3, {"lower_bound": 2.5}), (2, 3, {"upper_bound": 1.5}))
    ),
    Case(
        "mp_lamb_update_phase2",
        lambda w, g, r1, r2: [adam_ops.mp_lamb_update_phase2(w.astype("float16"), g, r1, r2, w, lr=0.1), w],
        (normal(5), normal(5), positive(1), positive(1)),
        lambda w, g, r1, r2: (lamb2(w, g, r1, r2, lr=0.1),) * 2,
        grad=False, dtypes=("float32",), rtol=MIXED,
        bad=(
            Bad(
                lambda nd: nd.lamb_update_phase2(nd.ones((2,)), nd.ones((2,)), nd.ones((2,)), nd.ones((1,)), lr=0.1),
                ShapeError,
                r"r1 has shape \(2,\), wants a single number",
            ),
        ),
    ),
]  # fmt: skip


# ---- many weights


SHAPES = ((3, 4), (5,))
RATES = ((0.1, 0.2), (0.0, 0.3))


def multi_sgd(preloaded: bool, half: bool, momentum: bool) -> Case:
    """A row of one of the eight operators for SGD of two weights."""
    name = f"{'preloaded_' if preloaded else ''}multi_{'mp_' if half else ''}sgd_{'mom_' if momentum else ''}update"
    function = getattr(multi, name)
    attributes: dict[str, Any] = {"num_weights": 2, **LIMITED, **({"momentum": 0.9} if momentum else {})}

    def call(*arrays: Any) -> list[Any]:
        *data, lrs, wds = arrays
        size = 3 if momentum else 2
        listed, states = [], []
        for first in (0, size):
            weight, grad, *mom = data[first : first + size]
            held = [*mom, weight] if half else mom
            listed += [*([weight.astype("float16"), grad.astype("float16")] if half else [weight, grad]), *held]
            states += held
        rates = {} if preloaded else {"lrs": RATES[0], "wds": RATES[1]}
        return [function(*listed, *((lrs, wds) if preloaded else ()), **rates, **attributes), *states]

    def oracle(*arrays: np.ndarray) -> Any:
        size = 3 if momentum else 2
        weights, states = [], []
        for first, lr, wd in zip((0, size), *RATES):
            weight, grad, *mom = arrays[first : first + size]
            grad = grad.astype("float16").astype(float) if half else grad
            new, *changed = (
                sgd_mom(weight, grad, *mom, lr, 0.9, wd, **LIMITED) if momentum else sgd(weight, grad, lr, wd, **LIMITED)
            )
            weights.append(new)
            states += [*changed, new] if half else changed
        return weights + states

    inputs = [normal(*shape) for shape in SHAPES for _ in range(3 if momentum else 2)]
    rates = [lambda rng, values=values: np.array(values) for values in RATES]
    kinds: dict[str, Any] = {"dtypes": ("float32",), "rtol": MIXED} if half else {"rtol": STATES}
    return Case(name, call, (*inputs, *rates), oracle, grad=False, **kinds)


def groups(arrays: tuple[Any, ...], size: int) -> list[list[Any]]:
    """One list for each kind of array, from arrays that come weight by weight."""
    return [list(arrays[kind::size]) for kind in range(size)]


TWO_WEIGHTS = tuple(maker for shape in SHAPES for maker in (normal(*shape), normal(*shape), normal(*shape), positive(*shape)))
PAIR = {"lrs": RATES[0], "wds": RATES[1]}


def adamw_oracle(*arrays: np.ndarray) -> Any:
    done = [
        adamw(w, g, mean, var, 0.5, lr, eta, wd=wd)
        for w, g, mean, var, lr, wd, eta in zip(*groups(arrays, 4), *RATES, (1.0, 0.5))
    ]
    return [each[i] for i in range(3) for each in done]


def lamb_oracle(*arrays: np.ndarray) -> Any:
    done = []
    for w, g, mean, var, lr, wd, t in zip(*groups(arrays, 4), *RATES, (1, 3)):
        direction, mean, var = lamb1(w, g, mean, var, t, wd)
        done.append((lamb2(w, direction, np.linalg.norm(w), np.linalg.norm(direction), lr), mean, var))
    return [each[i] for i in range(3) for each in done]


def halves(arrays: list[Any]) -> list[Any]:
    return [array.astype("float16") for array in arrays]


def rounded(oracle: Callable[..., Any]) -> Callable[..., Any]:
    """The oracle for float16 gradients; the new weights come once more at the end, in float32."""

    def formula(*arrays: np.ndarray) -> Any:
        coarse = [array.astype("float16").astype(float) if i % 4 == 1 else array for i, array in enumerate(arrays)]
        found = oracle(*coarse)
        return found + found[:2]

    return formula


def multi_adamw(*arrays: Any) -> list[Any]:
    weights, grads, means, variances = groups(arrays, 4)
    new = multi_adam.multi_adamw_update(weights, grads, means, variances, 0.5, etas=(1.0, 0.5), **PAIR)
    return [new, means, variances]


def multi_mp_adamw(*arrays: Any) -> list[Any]:
    weights, grads, means, variances = groups(arrays, 4)
    new = multi_adam.multi_mp_adamw_update(
        halves(weights), halves(grads), means, variances, weights, 0.5, etas=(1.0, 0.5), **PAIR
    )
    return [new, means, variances, weights]


def multi_lamb(*arrays: Any) -> list[Any]:
    weights, grads, means, variances = groups(arrays, 4)
    return [multi_adam.multi_lamb_update(weights, grads, means, variances, (1, 3), **PAIR), means, variances]


def multi_mp_lamb(*arrays: Any) -> list[Any]:
    weights, grads, means, variances = groups(arrays, 4)
    new = multi_adam.multi_mp_lamb_update(halves(weights), halves(grads), means, variances, weights, (1, 3), **PAIR)
    return [new, means, variances, weights]


def reset(a: Any, b: Any) -> list[Any]:
    assert checks.reset_arrays(a, b, num_arrays=2) == []
    return [a, b]


def lars(lrs: np.ndarray, w2: np.ndarray, g2: np.ndarray, wds: np.ndarray) -> np.ndarray:
    w, g = np.sqrt(w2), np.sqrt(g2) * 0.5
    return np.array([lr * 0.5 * a / (b + wd * a + 0.01) if a and b else lr for lr, a, b, wd in zip(lrs, w, g, wds)])


def with_earlier(earlier: float) -> Callable[..., Any]:
    """all_finite into an array that holds an earlier answer."""

    def call(data: Any) -> Any:
        answer = (data * 0).max().astype("float32") + earlier
        return checks.all_finite(data, init_output=False, out=answer)

    return call


def with_earlier_of_many(earlier: float) -> Callable[..., Any]:
    def call(*data: Any) -> Any:
        answer = (data[0] * 0).max().astype("float32") + earlier
        return checks.multi_all_finite(*data, num_arrays=len(data), init_output=False, out=answer)

    return call


def infinite(rng: np.random.Generator) -> np.ndarray:
    return np.array([1.0, np.inf, 2.0])


MULTI = [multi_sgd(preloaded, half, mom) for preloaded in (False, True) for half in (False, True) for mom in (False, True)] + [
    Case("_multi_adamw_update", multi_adamw, TWO_WEIGHTS, adamw_oracle, grad=False, rtol=STATES),
    Case(
        "_multi_mp_adamw_update", multi_mp_adamw, TWO_WEIGHTS, rounded(adamw_oracle), grad=False, dtypes=("float32",), rtol=MIXED
    ),
    Case("_multi_lamb_update", multi_lamb, TWO_WEIGHTS, lamb_oracle, grad=False, rtol=STATES),
    Case("_multi_mp_lamb_update", multi_mp_lamb, TWO_WEIGHTS, rounded(lamb_oracle), grad=False, dtypes=("float32",), rtol=MIXED),
    Case(
        "multi_sgd_update",
        lambda w, g: multi.multi_sgd_update(w, g, lrs=[0.1], wds=[0.0]),
        (normal(3), normal(3)),
        lambda w, g: w - 0.1 * g,
        grad=False,
        label="one",
        bad=(
            Bad(
                lambda nd: nd.multi_sgd_update(
                    nd.ones((2,)), nd.ones((2,)), nd.ones((2,)), lrs=(1, 1), wds=(0, 0), num_weights=2
                ),
                ArgumentError,
                "3 arrays are given, 4 are wanted: for each of 2 weights weight, grad",
            ),
            Bad(
                lambda nd: nd.multi_sgd_update(nd.ones((2,)), nd.ones((2,)), lrs=(1, 1), wds=(0,), num_weights=1),
                ArgumentError,
                "lrs has 2 elements for 1 weights; give one each",
            ),
            Bad(
                lambda nd: nd.contrib.multi_lamb_update([nd.ones((2,))], [], [], [], (1,), (1,), (0,)),
                ArgumentError,
                "wants lists of one length, got 1, 0, 0, 0",
            ),
            Bad(
                lambda nd: nd.preloaded_multi_sgd_update(nd.ones((2,)), nd.ones((2,)), nd.ones((2,)), nd.ones((1,))),
                ShapeError,
                r"lrs has shape \(2,\), 1 weights need \(1,\)",
            ),
        ),
    ),
    Case(
        "multi_sum_sq",
        lambda a, b: checks.multi_sum_sq(a, b, num_arrays=2),
        (normal(3, 4), normal(5)),
        lambda a, b: np.array([(a**2).sum(), (b**2).sum()]),
        grad=False,
        rtol={"float64": 1e-6},  # the result is float32
        bad=(
            Bad(
                lambda nd: nd.multi_sum_sq(nd.ones((2,)), nd.ones((2,), dtype="float16"), num_arrays=2),
                DTypeError,
                "data1 is float16, data0 is float32; one floating dtype",
            ),
            Bad(lambda nd: nd.multi_sum_sq(nd.ones((2,)), num_arrays=2), ArgumentError, "1 arrays are given, num_arrays=2"),
        ),
    ),
    Case(
        "multi_lars",
        lambda lrs, w2, g2, wds: checks.multi_lars(lrs, w2, g2, wds, eta=0.5, eps=0.01, rescale_grad=0.5),
        tuple(
            lambda rng, values=values: np.array(values)
            for values in ((0.1, 0.2, 0.3, 0.4), (4.0, 0.0, 9.0, 1.0), (1.0, 1.0, 0.0, 4.0), (0.1, 0.1, 0.1, 0.2))
        ),
        lars,
        grad=False,
    ),
    Case("all_finite", checks.all_finite, (normal(3),), lambda a: np.ones(1), grad=False),
    Case("all_finite", checks.all_finite, (infinite,), lambda a: np.zeros(1), grad=False, label="infinite"),
    Case("all_finite", with_earlier(0), (normal(3),), lambda a: np.zeros(1), grad=False, label="earlier0"),
    Case("all_finite", with_earlier(1), (normal(3),), lambda a: np.ones(1), grad=False, label="earlier1"),
    Case(
        "multi_all_finite",
        lambda a, b: checks.multi_all_finite(a, b, num_arrays=2),
        (normal(3), infinite),
        lambda a, b: np.zeros(1),
        grad=False,
    ),
    Case(
        "multi_all_finite",
        with_earlier_of_many(0),
        (normal(3), normal(2)),
        lambda a, b: np.zeros(1),
        grad=False,
        label="earlier0",
    ),
    Case(
        "multi_all_finite", with_earlier_of_many(1), (normal(3), normal(2)), lambda a, b: np.ones(1), grad=False, label="earlier1"
    ),
    Case("reset_arrays", reset, (normal(3), normal(2, 2)), lambda a, b: (a * 0, b * 0), grad=False),
]

CASES = DESCENT + ADAPTIVE + MULTI
