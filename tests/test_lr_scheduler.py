"""Schedules: values recorded from MXNet 1.9.1, warm-up, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from minimx.lr_scheduler import CosineScheduler, FactorScheduler, LRScheduler, MultiFactorScheduler, PolyScheduler

#: How to make a schedule, and its rates at updates 0 to 10 in MXNet.
RECORDED = [
    (
        lambda: FactorScheduler(3, 0.5, 0.1, base_lr=1.0, warmup_steps=2, warmup_begin_lr=0.5),
        [0.5, 0.75, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125],
    ),
    (
        lambda: FactorScheduler(2, 0.5, base_lr=1.0, warmup_steps=3, warmup_begin_lr=0.25, warmup_mode="constant"),
        [0.25, 0.25, 0.25, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125, 0.0625, 0.0625],
    ),
    (
        lambda: MultiFactorScheduler([3, 6], 0.1, base_lr=1.0),
        [1.0, 1.0, 1.0, 1.0, 0.1, 0.1, 0.1, 0.01, 0.01, 0.01, 0.01],
    ),
    (
        lambda: MultiFactorScheduler([3, 4], 0.5, 1.0, 2, 0.5),
        [0.5, 0.75, 1.0, 1.0, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25],
    ),
    (
        lambda: PolyScheduler(8, 1.0, final_lr=0.25),
        [1.0, 0.824219, 0.671875, 0.542969, 0.4375, 0.355469, 0.296875, 0.261719, 0.25, 0.25, 0.25],
    ),
    (
        lambda: PolyScheduler(8, 1.0, 3, 0.1, 3, 0.4),
        [0.4, 0.6, 0.8, 1.0, 0.5608, 0.2944, 0.1576, 0.1072, 0.1, 0.1, 0.1],
    ),
    (
        lambda: CosineScheduler(8, 1.0, 0.2),
        [1.0, 0.969552, 0.882843, 0.753073, 0.6, 0.446927, 0.317157, 0.230448, 0.2, 0.2, 0.2],
    ),
    (
        lambda: CosineScheduler(6, 1.0, warmup_steps=2),
        [0.0, 0.5, 1.0, 0.853553, 0.5, 0.146447, 0.0, 0.0, 0.0, 0.0, 0.0],
    ),
]


@pytest.mark.parametrize(("make", "rates"), RECORDED)
def test_recorded_from_mxnet(make, rates):
    schedule = make()
    np.testing.assert_allclose([schedule(n) for n in range(11)], rates, atol=1e-6)


@pytest.mark.parametrize(("make", "rates"), RECORDED)
def test_a_jump_ends_where_single_steps_do(make, rates):
    """A training that is continued asks for a late update first."""
    assert make()(10) == pytest.approx(rates[10], abs=1e-6)


def test_factor_stops():
    schedule = FactorScheduler(1, 0.1, stop_factor_lr=1e-3, base_lr=1.0)
    assert schedule(100) == 1e-3


def test_changes_are_logged_as_in_mxnet(caplog):
    """MXNet's words, in which old tools find the rate in a log; a rate that has stopped says no more."""
    caplog.set_level("INFO")
    factor = FactorScheduler(1, 0.1, stop_factor_lr=1e-3, base_lr=1.0)
    several = MultiFactorScheduler([1, 3], 0.1, base_lr=1.0)
    for schedule in (factor, several):
        for update in range(1, 7):
            schedule(update)
    assert caplog.messages == [
        "Update[2]: Change learning rate to 1.00000e-01",
        "Update[3]: Change learning rate to 1.00000e-02",
        "Update[4]: Change learning rate to 1.00000e-03",
        "Update[2]: Change learning rate to 1.00000e-01",
        "Update[4]: Change learning rate to 1.00000e-02",
    ]


def test_a_rate_set_in_between_is_continued_from():
    schedule = FactorScheduler(2, 0.5, base_lr=1.0)
    assert schedule(2) == 1.0
    schedule.base_lr = 0.4
    assert schedule(2) == 0.4
    assert schedule(3) == 0.2


def test_formulas_without_warm_up():
    poly, cosine = PolyScheduler(100, 0.5, pwr=1.5), CosineScheduler(100, 0.5)
    for n in (0, 1, 37, 99, 100):
        assert poly(n) == pytest.approx(0.5 * (1 - n / 100) ** 1.5)
        assert cosine(n) == pytest.approx(0.25 * (1 + math.cos(math.pi * n / 100)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FactorScheduler(0), "step=0"),
        (lambda: FactorScheduler(1, factor=2), "factor=2 lets the learning rate grow"),
        (lambda: MultiFactorScheduler([], 0.1), r"step=\[\]"),
        (lambda: MultiFactorScheduler([5, 5], 0.1), "increasing"),
        (lambda: MultiFactorScheduler([0, 5], 0.1), "from 1 on"),
        (lambda: MultiFactorScheduler([1], 1.5), "factor=1.5"),
        (lambda: PolyScheduler(0), "max_update=0"),
        (lambda: CosineScheduler(2.5), "max_update=2.5"),
        (lambda: CosineScheduler(10, warmup_steps=10), "more than the warm-up"),
        (lambda: LRScheduler(0.1, warmup_begin_lr=0.2), "warmup_begin_lr=0.2"),
        (lambda: LRScheduler(0.1, warmup_steps=-1), "warmup_steps=-1"),
        (lambda: LRScheduler(0.1, warmup_mode="fast"), "choose 'linear' or 'constant'"),
        (lambda: LRScheduler(0.1).get_warmup_lr(0), "after the warm-up"),
    ],
)
def test_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_base():
    with pytest.raises(NotImplementedError, match="LRScheduler must override __call__"):
        LRScheduler()(1)
