"""`check`: tries a reader's answer to an exercise and says, in a sentence, whether it is right or what it gets wrong first.

It prints and never raises, so that a chapter with open exercises runs from top to bottom. Where an exercise calls the reader's
function itself and finds its answer of the wrong form, it says so by `assert ..., "what is wrong with it"`: that text is the verdict.
Book: the end of every chapter.
"""

from __future__ import annotations

import inspect
import linecache
import sysconfig
import textwrap
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import PACKAGE_FOLDER, ArgumentError, as_sentence

WIDTH = 79  # of a line in the notebook
LONGEST = 6  # elements of an array that a message spells out; of a larger one it gives the shape
FIRST = 3  # items of a longer list that a message shows
LIBRARIES = (PACKAGE_FOLDER, *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")))


def check(
    answer: Callable[..., Any], expected: Callable[..., Any] | Sequence[Any], *cases: Any, hint: str = "", tolerance: float = 1e-4
) -> None:
    """Try `answer` on each of `cases` and print the verdict, with the first difference where there is one.

    **Args** expected: a function of the same arguments, or a list with the value for each case. cases: a tuple holds the arguments
    of a call; anything else is the only argument. hint: added from the second wrong answer on. tolerance: of numbers, absolute and
    relative. **Raises** ArgumentError where there is no case, or not one value a case: a fault of the exercise, not of the answer.

    >>> check(lambda x: x + x, lambda x: 2 * x, 1, 2.5)
    Right: 2 of 2 cases agree.
    >>> check(lambda x: x * x, [2, 5], 1, 2.5, hint="Is it the double?")
    Not yet. Case 1 of 2, x = 1: got 1, wanted 2.
    >>> check(lambda x: x + 1, [2, 5], 1, 2.5, hint="Is it the double?")
    Not yet. Case 2 of 2, x = 2.5: got 3.5, wanted 5. Is it the double?
    """
    if not cases or not (callable(expected) or len(expected) == len(cases)):
        raise ArgumentError(f"check: {len(cases)} cases; give at least one, and an expected value for each")
    for number, case in enumerate(cases, 1):
        arguments = case if isinstance(case, tuple) else (case,)
        told = name_arguments(answer, arguments)
        try:
            wanted = expected(*arguments) if callable(expected) else expected[number - 1]
            fault = find_fault(answer, arguments, wanted, tolerance)
        except NameError as error:  # the exercise's own lines use what cells above define
            fault = describe_error(error)
        if fault:
            shown = hint if hint in _answered_wrongly else ""
            if not isinstance(fault, Untried):
                _answered_wrongly.add(hint)
            print(textwrap.fill(f"Not yet. Case {number} of {len(cases)}, {told}: {as_sentence(fault)} {shown}", WIDTH))
            return
    print(f"Right: {len(cases)} of {len(cases)} cases agree.")


_answered_wrongly: set[str] = set()  # exercises, by their hints


class Untried(str):
    """A fault that is none of the answer's: that is not written yet, or cells above it have not run."""


def name_arguments(answer: Callable[..., Any], arguments: Sequence[Any]) -> str:
    """A case by its arguments, as in "x = 1, size = 2"; without names where `answer` has none to give."""
    values = [describe(argument) for argument in arguments]
    try:
        names = list(inspect.signature(answer).bind(*arguments).arguments)
    except (TypeError, ValueError):  # a built-in, or a call that does not fit, which the verdict says
        names = []
    if len(names) != len(values):  # *arguments
        return f"({', '.join(values)})"
    return ", ".join(f"{name} = {value}" for name, value in zip(names, values))


def find_fault(answer: Callable[..., Any], arguments: Sequence[Any], wanted: Any, tolerance: float) -> str:
    """What is wrong with one answer, in words; nothing if it is right."""
    wanted_value = np.asarray(wanted)
    try:
        got = answer(*arguments)
        if got is None:
            return Untried("the answer is None; write the function's body, end it with return, and run the cell again")
        unequal = describe_unequal(got)
        if unequal:
            return f"got {unequal}, wanted {describe_form(wanted)}"
        got_value = np.asarray(got)
    except Exception as error:  # whatever a reader's code does is an answer
        return describe_error(error)
    if got_value.shape != wanted_value.shape and not got_value.size == wanted_value.size == 1:  # MXNet's numbers have shape (1,)
        return f"got {describe_form(got)}, wanted {describe_form(wanted)}"
    if agree(got_value.reshape(wanted_value.shape), wanted_value, tolerance):
        return ""
    where = ""
    if wanted_value.size > LONGEST and got_value.dtype.kind in "biuf":
        distance = np.abs(got_value.astype("float64") - wanted_value)
        place = tuple(int(i) for i in np.unravel_index(distance.argmax(), distance.shape))
        where, got, wanted = f" at {list(place)}, where they differ most", got_value[place], wanted_value[place]
    return f"got {describe(got)}{where}, wanted {describe(wanted)}"


def agree(got: Any, wanted: Any, tolerance: float) -> bool:
    """Whether two NumPy arrays hold the same: numbers up to `tolerance`, all else exactly."""
    if got.dtype.kind in "biuf" and wanted.dtype.kind in "biuf":
        return bool(np.allclose(got, wanted, tolerance, tolerance, equal_nan=True))
    return bool(np.array_equal(got, wanted))


def describe_error(error: Exception) -> str:
    """What was raised, and in which line of the reader's; of an assertion that explains itself, the explanation."""
    text = str(error).strip()
    if text and isinstance(error, AssertionError):
        return text
    line = ""
    for frame, number in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if not file.startswith(LIBRARIES):
            line = linecache.getline(file, number).strip() or line
    where = line and f" in `{line}`"
    if type(error) is NameError and error.name:  # its subclass, of a local variable that has no value yet, is the answer's own
        return Untried(f"nothing is called {error.name}{where}; run the cells above first, and if they have run, it is misspelt")
    verdict = f"it raised {type(error).__name__}{where}{text and f': {text}'}"
    return Untried(verdict) if isinstance(error, NotImplementedError) else verdict


def describe_unequal(value: Any) -> str:
    """What keeps a list or tuple from being an array, its items' shapes, in words; nothing if all are equal.

    >>> describe_unequal([[1], [1, 2]])
    'a list of 2 items of different shapes, (1,) and (2,)'
    """
    if not isinstance(value, (list, tuple)):
        return ""
    inner = next(filter(None, map(describe_unequal, value)), "")
    shapes = [] if inner else [str(shape) for shape in dict.fromkeys(map(np.shape, value))]
    if len(shapes) > 1:
        inner = f"a {type(value).__name__} of {len(value)} items of different shapes, {shapes[0]} and {shapes[1]}"
    return inner


def describe_form(value: Any) -> str:
    """A value whose form is in question: what is short is given itself, a longer or empty array by its shape."""
    array = np.asarray(value)
    return describe(value) if 0 < array.size <= LONGEST else f"an array of shape {array.shape}"


def describe(value: Any) -> str:
    """A value in a few words: numbers rounded, lists by their (first) items, large arrays by their shape, functions by their name.

    >>> describe([(0, 1, 2), (3, 4, 5)]), describe(list(range(50))), describe(np.zeros((3, 4)))
    ('[(0, 1, 2), (3, 4, 5)]', '[0, 1, 2, ... 50 in all]', 'an array of shape (3, 4)')
    """
    if callable(value):
        return str(getattr(value, "__name__", type(value).__name__))
    if type(value) in (list, tuple):
        return describe_items(value)
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        return repr(value)
    if array.ndim and array.size > LONGEST:
        return f"an array of shape {array.shape}"
    rounded = np.round(array.astype("float64"), 4).tolist() if array.dtype.kind == "f" else array.tolist()
    return str(rounded)


def describe_items(items: Sequence[Any]) -> str:
    """A list or a tuple, as Python writes it; of a long one the first items and how many there are."""
    shown = [describe(item) for item in (items if len(items) <= LONGEST else items[:FIRST])]
    if len(items) > LONGEST:
        shown.append(f"... {len(items)} in all")
    comma = "," if isinstance(items, tuple) and len(items) == 1 else ""
    opening, closing = "()" if isinstance(items, tuple) else "[]"
    return f"{opening}{', '.join(shown)}{comma}{closing}"
