"""The scoreboard: what a race measures, what a row has to be, and what becomes of rows in files."""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import pytest

from minimx import d2l, kernels, nd
from minimx.base import ArgumentError
from minimx.d2l import scoreboard
from minimx.d2l.scoreboard import ANSWER, ROWS, TRAINING, Run

BY_HAND, HYBRIDIZED, ASKED = "by hand, waiting", "hybridized", "asked by hand"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the user's in which there is nothing yet."""
    monkeypatch.setenv("MINIMX_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(scoreboard, "unwritten", {})
    return tmp_path / "home" / "scoreboard"


def by_hand():
    params = d2l.lenet_params()
    return lambda X, y: d2l.lenet_step(params, X, y)


def asked():
    params = d2l.lenet_params()
    return lambda X, y: d2l.lenet(X, params)


def run_of(what: str, seconds: float) -> Run:
    return Run(seconds, seconds, scoreboard.expected(what))


def test_a_race_trains_and_its_run_is_taken(home):
    runs = scoreboard.race({"a": by_hand, "b": asked}, rounds=2)
    assert runs["a"].results.shape == (10, 1)
    assert runs["b"].results.shape == (10, 160)
    assert runs["a"].results[:, 0][-3:].mean() < runs["a"].results[:, 0][:3].mean()  # it learns
    scoreboard.add(BY_HAND, runs["a"])
    scoreboard.add(ASKED, runs["b"])
    assert scoreboard.rows() == {BY_HAND: runs["a"].seconds, ASKED: runs["b"].seconds}
    assert [path.name for path in home.iterdir()] == ["chapter-01.json"]


def test_a_race_takes_turns_keeps_the_best_and_does_not_time_the_first_batch():
    log: list[str] = []
    naps = iter([0.02, 0.002])

    def sleeper():
        nap, calls = next(naps), []
        log.append("slow")

        def step(X, y):
            calls.append(1)
            time.sleep(nap if len(calls) > 1 else 0.3)
            return nd.ones(1)

        return step

    def quick():
        log.append("quick")
        return lambda X, y: 1.0

    runs = scoreboard.race({"slow": sleeper, "quick": quick}, rounds=2)
    assert log == ["slow", "quick"] * 2
    assert 0.002 <= runs["slow"].written <= runs["slow"].seconds < 0.02
    np.testing.assert_array_equal(runs["quick"].results, np.ones((10, 1)))
    with pytest.raises(ArgumentError, match="0 manners in 5 rounds"):
        scoreboard.race({})


def test_a_race_that_takes_long_ends_after_two_rounds(monkeypatch):
    monkeypatch.setattr(scoreboard, "PATIENCE", 0.0)
    rounds = []

    def manner():
        rounds.append(1)
        return lambda X, y: 1.0

    scoreboard.race({"a": manner})
    assert len(rounds) == 2


def test_a_race_uses_the_kernels_that_were_asked_for_and_leaves_things_as_they_were():
    seen: list[str] = []

    def manner():
        seen.append(kernels.enabled())
        return lambda X, y: 1.0

    def faulty():
        raise ZeroDivisionError

    before = kernels.enabled()
    scoreboard.race({"a": manner}, rounds=1)
    scoreboard.race({"a": manner}, rounds=1, kernels="auto")
    assert seen == [False, True]
    with pytest.raises(ZeroDivisionError):
        scoreboard.race({"a": faulty})
    assert kernels.enabled() == before
    with pytest.raises(ArgumentError, match="nympy"):
        scoreboard.race({"a": manner}, kernels="nympy")


def test_a_row_that_computes_something_else_is_refused():
    def lazy():
        params = d2l.lenet_params()
        return lambda X, y: d2l.lenet_loss(d2l.lenet(X, params), y).mean()  # and no update

    run = scoreboard.race({"lazy": lazy}, rounds=1)["lazy"]
    with pytest.raises(ArgumentError, match=r"'hybridized'\): at batch 1 the results are .* from those of chapter 1"):
        scoreboard.add(HYBRIDIZED, run)
    with pytest.raises(ArgumentError, match="at batch 0 the results are nan"):
        scoreboard.add(HYBRIDIZED, Run(1.0, 1.0, np.full((10, 1), np.nan)))
    with pytest.raises(ArgumentError, match=r"results of shape \(10, 160\), wanted \(10, 1\)"):
        scoreboard.add(HYBRIDIZED, run_of(ANSWER, 1.0))
    assert scoreboard.rows() == {}


@pytest.mark.parametrize(
    ("name", "run", "message"),
    [
        ("hybridised", 1.0, "no row 'hybridised'; the rows are by hand, waiting, "),
        (3, 1.0, "no row 3"),
        (HYBRIDIZED, 0.5, r"a Run, as race\(\) returns it is wanted, got 0.5"),
        ("the roofline of one core", Run(0.5, 0.5, np.ones((10, 1))), "the seconds that the model computed is wanted"),
        ("the roofline of one core", 0.0, "0.0 seconds is no time"),
        ("the roofline of one core", float("nan"), "nan seconds is no time"),
    ],
)
def test_what_is_no_row(name, run, message):
    with pytest.raises(ArgumentError, match=message):
        scoreboard.add(name, run)


def test_the_table_names_the_chapter_of_a_missing_row(capsys):
    scoreboard.show()
    table = capsys.readouterr().out.splitlines()
    assert len(table) == len(ROWS) + 2
    assert table[1].split() == ["by", "hand,", "waiting", "1", "-", "run", "chapter", "1"]
    scoreboard.add(HYBRIDIZED, run_of(TRAINING, 0.004))
    scoreboard.show()
    assert "hybridized                         4   4.000" in capsys.readouterr().out  # and no gain yet
    scoreboard.add(BY_HAND, run_of(TRAINING, 0.01))
    scoreboard.add("the roofline of one core", 0.001)
    scoreboard.show()
    table = capsys.readouterr().out.splitlines()
    assert table[0] == "a training step of 16 images, chapter      ms   gain"
    assert table[1] == "by hand, waiting                   1  10.000   1.00"
    assert table[4] == "hybridized                         4   4.000   2.50"
    assert table[7] == "the roofline of one core           8   1.000  10.00  (computed)"


def test_a_row_is_replaced_and_other_chapters_stay():
    scoreboard.add(BY_HAND, run_of(TRAINING, 0.02))
    scoreboard.add(ASKED, run_of(ANSWER, 0.003))
    scoreboard.add(HYBRIDIZED, run_of(TRAINING, 0.01))
    scoreboard.add(BY_HAND, run_of(TRAINING, 0.03))
    assert scoreboard.rows() == {BY_HAND: 0.03, HYBRIDIZED: 0.01, ASKED: 0.003}


@pytest.mark.parametrize(
    "contents", ["", "{", "[]", '{"where": "here"}', '{"where": "elsewhere, 64 cores", "rows": {"hybridized": 1}}']
)
def test_a_file_that_is_damaged_or_from_elsewhere_is_none(home, contents):
    home.mkdir(parents=True)
    (home / "chapter-04.json").write_text(contents)
    assert scoreboard.rows() == {}
    scoreboard.add(HYBRIDIZED, run_of(TRAINING, 0.5))
    assert scoreboard.rows() == {HYBRIDIZED: 0.5}
    assert set(json.loads((home / "chapter-04.json").read_text())) == {"where", "rows"}


def test_where_nothing_can_be_written_a_row_lasts_as_long_as_the_program(home, capsys):
    home.parent.mkdir()
    home.write_text("a file stands where the folder should be")
    scoreboard.add(HYBRIDIZED, run_of(TRAINING, 0.5))
    assert "hybridized: kept until this program ends, since " in capsys.readouterr().out
    assert scoreboard.rows() == {HYBRIDIZED: 0.5}


def test_every_row_has_a_name_of_its_own_that_fits_the_table():
    assert len(scoreboard.BY_NAME) == len(ROWS)
    assert all(len(row.name) < scoreboard.NAME_WIDTH for row in ROWS)
    assert {row.what for row in ROWS} == {TRAINING, ANSWER}
