"""What a reader is told about an answer to an exercise."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx import d2l
from minimx.base import ArgumentError


def told(capsys, *args, **kwargs):
    d2l.check(*args, **kwargs)
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 79 for line in lines)
    return " ".join(lines)


def test_right_answers_of_every_kind(capsys):
    assert told(capsys, lambda x: x + 1, lambda x: 1 + x, 1, 2.0) == "Right: 2 of 2 cases agree."
    assert told(capsys, lambda x, y: mx.nd.dot(x, y), [[[2.0]]], (mx.nd.ones((1, 2)), mx.nd.ones((2, 1)))).startswith("Right")
    assert told(capsys, lambda name: name.upper(), ["A"], "a").startswith("Right")
    assert told(capsys, lambda x: x > 1, [True, False], 2, 1).startswith("Right")
    # an array of one element, as MXNet's sums are, is that number
    assert told(capsys, lambda x: x.sum(), [6], mx.nd.array([1, 2, 3])).startswith("Right")


@pytest.fixture(autouse=True)
def none_answered_wrongly(monkeypatch):
    monkeypatch.setattr("minimx.d2l.exercises._answered_wrongly", set())


def test_the_first_difference_is_told_with_its_case(capsys):
    text = told(capsys, lambda x: x * x, lambda x: 2 * x, 2, 3, 4)
    assert text == "Not yet. Case 2 of 3, x = 3: got 9, wanted 6."
    text = told(capsys, lambda x, f: x, [[1.0, 2.5]], (mx.nd.array([1, 2]), len))
    assert text == "Not yet. Case 1 of 1, x = [1.0, 2.0], f = len: got [1.0, 2.0], wanted [1.0, 2.5]."


def test_the_hint_comes_with_the_second_wrong_answer_to_the_same_exercise(capsys):
    hint = "Not the square."
    # what is not written yet is no answer
    for _ in range(3):
        assert told(capsys, lambda x: None, [6], 3, hint=hint).endswith("run the cell again.")
        text = told(capsys, lambda x: raises(NotImplementedError("your code")), [6], 3, hint=hint)
        assert text.endswith("it raised NotImplementedError in `raise error`: your code.")
    assert told(capsys, lambda x: x * x, [6], 3, hint=hint) == "Not yet. Case 1 of 1, x = 3: got 9, wanted 6."
    assert told(capsys, lambda x: x + 1, [6], 3, hint="Of another.") == "Not yet. Case 1 of 1, x = 3: got 4, wanted 6."
    assert told(capsys, lambda x: x + 1, [6], 3, hint=hint) == "Not yet. Case 1 of 1, x = 3: got 4, wanted 6. Not the square."
    assert told(capsys, lambda x: None, [6], 3, hint=hint).endswith("run the cell again. Not the square.")


def test_a_name_that_is_not_defined_is_of_a_cell_that_has_not_run(capsys):
    advice = "run the cells above first, and if they have run, it is misspelt."
    for _ in range(2):  # the answer is not to blame, so that no hint comes
        text = told(capsys, lambda x: grid + x, [2], 1, hint="Not that.")  # noqa: F821
        assert text.startswith("Not yet. Case 1 of 1, x = 1: nothing is called grid in `text = told(")
        assert text.endswith(f"; {advice}")
    # it may be the exercise that needs it, not the answer
    text = told(capsys, lambda x: x, lambda x: grid + x, 1)  # noqa: F821
    assert text.startswith("Not yet. Case 1 of 1, x = 1: nothing is called grid in `")

    def answer(x):
        if x > 1:
            total = x
        return total

    assert "it raised UnboundLocalError in `return total`: " in told(capsys, answer, [1], 1)


def test_of_large_arrays_the_place_is_told(capsys):
    wrong = np.zeros((3, 4))
    wrong[1, 2] = 5
    text = told(capsys, lambda x: wrong, lambda x: x, np.zeros((3, 4)))
    assert text == ("Not yet. Case 1 of 1, x = an array of shape (3, 4): got 5.0 at [1, 2], where they differ most, wanted 0.0.")


def test_missing_answers_wrong_shapes_and_errors(capsys):
    assert "the answer is None; write the function's body" in told(capsys, lambda x: None, [1], 0)
    assert "got [1, 2], wanted [1, 2, 3]." in told(capsys, lambda x: [1, 2], [[1, 2, 3]], 0)
    assert "got [1, 2], wanted 1." in told(capsys, lambda x: [1, 2], [1], 0)
    assert "got 1, wanted (2, 3)." in told(capsys, lambda x: 1, [(2, 3)], 0)
    assert "got 1, wanted an array of shape (3, 4)." in told(capsys, lambda x: 1, [np.zeros((3, 4))], 0)
    assert "got an array of shape (0,), wanted 1." in told(capsys, lambda x: [], [1], 0)
    text = told(capsys, lambda x: x + mx.nd.ones(3), [0], mx.nd.ones(2))
    assert "it raised ShapeError in `" in text
    assert "`: broadcast_add:" in text
    assert "got 'b', wanted 'a'" in told(capsys, lambda x: "b", ["a"], 0)


def test_lists_of_unequal_items(capsys):
    arrays = (mx.nd.ones((2, 2)), mx.nd.ones(2))
    text = told(capsys, lambda x: arrays, [np.ones((2, 2))], 0)
    assert "got a tuple of 2 items of different shapes, (2, 2) and (2,), wanted [[1.0, 1.0], [1.0, 1.0]]." in text
    assert "got a list of 3 items of different shapes, (1,) and ()" in told(capsys, lambda x: [[[1], 2, 3], [0]], [0], 0)


def raises(error):
    raise error


def test_errors_are_told_with_the_line_of_the_answer(capsys):
    text = told(capsys, lambda x: raises(IndexError("list index out of range")), [0], 0)
    assert "0: it raised IndexError in `raise error`: list index out of range." in text
    # a library's own lines would tell the reader nothing
    text = told(capsys, lambda x: np.broadcast_shapes((x,), (3,)), [0], 2)
    assert "it raised ValueError in `text = told(capsys, lambda x: np.broadcast_shapes((x,), (3,)), [0], 2)`: shape" in text
    assert "0: it raised ValueError in `raise error`." in told(capsys, lambda x: raises(ValueError()), [0], 0)


def test_a_verdict_ends_in_one_full_stop(capsys):
    assert told(capsys, lambda x: raises(ValueError("Give more.")), [0], 0, hint="So.").endswith("Give more.")
    assert told(capsys, lambda x: raises(ValueError("Give more.")), [0], 0, hint="So.").endswith("Give more. So.")
    assert told(capsys, lambda x: raises(ValueError("Why?")), [0], 0).endswith(": Why?")


def test_an_exercise_says_by_assert_what_form_it_wants(capsys):
    text = told(capsys, lambda x: raises(AssertionError(f"place returned {x} offsets, wants 5")), [0], 2)
    assert text == "Not yet. Case 1 of 1, x = 2: place returned 2 offsets, wants 5."
    assert "it raised AssertionError in `raise error`." in told(capsys, lambda x: raises(AssertionError()), [0], 0)


def test_arguments_may_be_lists_of_unequal_lengths(capsys):
    assert "graph = [('a',), ('b', 'a')]: got 0, wanted 2" in told(capsys, lambda graph: 0, len, [("a",), ("b", "a")])


def test_a_case_is_named_by_its_arguments(capsys):
    assert "x = 1, y = [(0, 1, 2), (3, 4, 5), (6, 7, 8)]: got 0" in told(
        capsys, lambda x, y: 0, [1], (1, [(0, 1, 2), (3, 4, 5), (6, 7, 8)])
    )
    assert "Case 1 of 1, x = [0, 1, 2, ... 50 in all]: got" in told(capsys, lambda x: 0, [1], list(range(50)))
    assert "Case 1 of 1, x = 'x[:, 1]': got 'x changed', wanted True." in told(capsys, lambda x: "x changed", [True], "x[:, 1]")
    # without names: of as many arguments as one likes, of a built-in, and where the call does not fit
    assert "Case 1 of 1, (1, 2): got 0, wanted 1." in told(capsys, lambda *x: 0, [1], (1, 2))
    assert "Case 1 of 1, (0, 2): got 2, wanted 1." in told(capsys, max, [1], (0, 2))
    assert "Case 1 of 1, (1, 2): it raised TypeError" in told(capsys, lambda x: 0, [1], (1, 2))


def test_zero_and_false_are_answers(capsys):
    assert told(capsys, lambda x: x, [0.0, False], 0.0, False).startswith("Right")
    assert "got 0.0, wanted 1." in told(capsys, lambda x: 0.0, [1], 2)


def test_a_failure_that_waits_in_the_result_is_the_answers(capsys):
    assert "it raised MXNetError" in told(capsys, lambda x: mx.nd.random.normal(0, -1, shape=(2,)), [[0, 0]], 0)


def test_faults_of_the_exercise_raise():
    with pytest.raises(ArgumentError, match="0 cases"):
        d2l.check(len, [])
    with pytest.raises(ArgumentError, match="expected value for each"):
        d2l.check(len, [1], "a", "b")
