"""What an operator's rule of shapes and dtypes says when only a part of its inputs is known.

An operator has one rule, `infer`: from complete inputs to outputs. A graph often knows less (the batch size is open), or knows it
elsewhere (the shape of the result, but not of the data). Rather than ask every operator for more rules, this module tries the one
that it has. An unknown length is *dyed*: replaced by a large number that nobody uses. Lengths of the result that are that number, or
change with it, are unknown as well; all others are known. And where the result's length is known from elsewhere, the dye shows which
unknown length it is.

A length is unknown where it is 0, a whole shape where it is None. Dtypes are tried in dtype_trial.py; infer.py spreads what is found
over a graph. Book: chapter 3.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..base import FLOAT32, DTypeError, MXNetError, RankError, ShapeError
from ..op import Op, Shape, Spec

Shapes: TypeAlias = tuple["Shape | None", ...]
DTypes: TypeAlias = tuple["np.dtype[Any] | None", ...]
Present: TypeAlias = tuple[bool, ...]  # which of an operator's inputs are there at all
Kinds: TypeAlias = "Sequence[tuple[np.dtype[Any], ...]]"  # dtypes of all inputs to try, the first that the operator takes
Label: TypeAlias = tuple[int, int]  # the place of a length: which input, and which axis

# A dye is divisible by small numbers, so that it may be split, folded and strided, and has a prime factor of its own. There are two
# trials. The primes grow in the one and fall in the other, so that no difference or quotient of two dyes is the same in both.
# The first multiple with which all arrays stay of a size that could exist is taken.
DIVISIBLE = (5040, 60, 1)
PRIMES = ((11, 17, 23, 31, 41, 47, 59, 67), (73, 61, 53, 43, 37, 29, 19, 13))

# Operators that tell nothing until the whole shape of every input is known, as in MXNet.
NEEDS_WHOLE_SHAPES = frozenset({"where"})

# Dtypes of the inputs while shapes are asked for: the first that the operator takes.
GUESSES: tuple[tuple[np.dtype[Any], np.dtype[Any]], ...] = tuple(
    (np.dtype(first), np.dtype(rest))
    for first, rest in (
        ("float32", "float32"),
        ("float32", "int32"),
        ("int32", "int32"),
        ("int64", "int64"),
        ("uint8", "float32"),
        ("float16", "float32"),
    )
)


R = TypeVar("R")


def remembered(function: Callable[..., R]) -> Callable[..., R]:
    """The function of an operator and more, which is asked once for equal arguments (unless the operator cannot be hashed)."""
    cached = functools.lru_cache(maxsize=4096)(function)

    @functools.wraps(function)
    def call(op: Op, *args: Any) -> R:
        try:
            hash(op)
        except TypeError:
            return function(op, *args)
        return cached(op, *args)

    return call


def is_whole(shape: Shape | None) -> bool:
    """Whether all of a shape is known."""
    return shape is not None and 0 not in shape


def infer(op: Op, specs: Sequence[Spec | None]) -> tuple[Spec, ...]:
    """The operator's rule, with a tuple even for one output."""
    found = op.infer(*specs)
    return found if type(found) is tuple else (found,)  # type: ignore[return-value]  # Spec | tuple[Spec, ...]


def fill(op: Op, specs: Sequence[Spec | None], present: Present) -> list[Spec | None]:
    """The inputs as far as they follow from each other; what the operator cannot complete, or refuses, stays as it is.

    Raises RankError for a wrong number of axes.
    """
    try:
        found = op.fill(*specs)
    except RankError:
        raise
    except MXNetError:
        return list(specs)
    return [spec if here else None for spec, here in zip(found, present)]


# ---- shapes


def shapes(op: Op, inputs: Shapes, outputs: Shapes, present: Present, dtypes: DTypes) -> tuple[Shapes, Shapes]:
    """All that follows for the shapes of the inputs and of the outputs from those that are known.

    Raises what the operator's rule raises if the inputs are known completely and do not fit.
    """
    kinds = complete_dtypes(dtypes, present)
    if _all_whole(inputs, present):
        return inputs, _shapes(rule(op, inputs, present, kinds))
    if op.name not in NEEDS_WHOLE_SHAPES:
        inputs, outputs = _with_kept_shape(op, inputs, outputs, present)
        inputs = _with_kept_size(op, inputs, outputs)
    base = filled(op, inputs, present, kinds)
    if _all_whole(base, present):
        return base, _shapes(rule(op, base, present, kinds))
    if op.name in NEEDS_WHOLE_SHAPES:
        return inputs, outputs
    for start in (base, inputs) if base != inputs else (inputs,):
        if all(shape is not None for shape, here in zip(start, present) if here):
            found = _by_dye(op, start, outputs, present, kinds)
            if found is not None:
                return found
    has_open_lengths = any(shape is not None and 0 in shape for shape in inputs)  # `fill` may have computed with the 0
    return inputs if has_open_lengths else base, outputs


def _all_whole(inputs: Shapes, present: Present) -> bool:
    return all(is_whole(shape) for shape, here in zip(inputs, present) if here)


def complete_dtypes(dtypes: DTypes, present: Present) -> list[tuple[np.dtype[Any], ...]]:
    """The dtypes with which to ask for shapes: the known ones, or guesses."""
    if all(dtype is not None for dtype, here in zip(dtypes, present) if here):
        return [tuple(dtype or FLOAT32 for dtype in dtypes)]
    return [(first, *[rest] * (len(dtypes) - 1)) for first, rest in GUESSES]


def rule(op: Op, inputs: Shapes, present: Present, kinds: Kinds) -> tuple[Spec, ...]:
    """Outputs from known shapes, in the first dtypes that the operator takes. Raises if the shapes do not fit."""
    error: MXNetError | None = None
    for dtypes in kinds:
        specs = [Spec.of(shape or (), dtype) if here else None for shape, dtype, here in zip(inputs, dtypes, present)]
        try:
            return infer(op, specs)
        except DTypeError as wrong:
            error = error or wrong
    assert error is not None
    raise error


def filled(op: Op, inputs: Shapes, present: Present, kinds: Kinds) -> Shapes:
    """Shapes completed by the operator's `fill`, such as a weight's from its data's."""
    specs = [None if shape is None else Spec.of(shape, dtype) for shape, dtype in zip(inputs, kinds[0])]
    return _shapes(fill(op, specs, present))


def _shapes(specs: Iterable[Spec | None]) -> Shapes:
    return tuple(None if spec is None else spec.shape for spec in specs)


class Dye:
    """One way of replacing unknown lengths: `labels` remembers where each number was put."""

    def __init__(self, number: int, multiple: int, shared: bool = False, shifted: tuple[Label, int] | None = None) -> None:
        self.primes = PRIMES[number]
        self.multiple = multiple
        self.shared = shared  # one dye for an axis of all inputs
        self.shifted = shifted  # a place whose dye is larger by this
        self.labels: dict[int, Label] = {}

    def next(self, position: int, axis: int) -> int:
        if self.shared:
            return self.multiple * self.primes[axis % len(self.primes)]
        rounds, number = divmod(len(self.labels), len(self.primes))
        dye = self.multiple * self.primes[number] * (1 + rounds)
        self.labels[dye] = (position, axis)
        return dye + self.shifted[1] if self.shifted is not None and self.shifted[0] == (position, axis) else dye


class Same:
    """One length for all unknown ones."""

    def __init__(self, length: int) -> None:
        self.length = length

    def next(self, position: int, axis: int) -> int:
        return self.length


def _dyed(op: Op, inputs: Shapes, present: Present, kinds: Kinds, dye: Dye | Same) -> tuple[Shapes, Shapes] | None:
    """Inputs with dyes for unknown lengths, and the outputs that follow; None if the operator refuses them.

    One input is dyed at a time, and the others completed from it: lengths that must be equal get one dye. Raises RankError for a wrong
    number of axes, which is wrong without dyes, too.
    """
    current = inputs
    try:
        for position, here in enumerate(present):
            shape = current[position]
            if here and shape is not None and 0 in shape:
                coloured = tuple(length or dye.next(position, axis) for axis, length in enumerate(shape))
                current = filled(op, (*current[:position], coloured, *current[position + 1 :]), present, kinds)
        return current, _shapes(rule(op, current, present, kinds))
    except RankError as error:
        raise _without_dyes(op, inputs, present, kinds) or error from None
    except MXNetError:
        return None


def _without_dyes(op: Op, inputs: Shapes, present: Present, kinds: Kinds) -> RankError | None:
    """What the operator says to the number of axes of the inputs as they are, with 0 for an unknown length."""
    try:
        rule(op, inputs, present, kinds)
    except RankError as error:
        return error
    except MXNetError:
        pass
    return None


def _by_dye(op: Op, inputs: Shapes, outputs: Shapes, present: Present, kinds: Kinds) -> tuple[Shapes, Shapes] | None:
    """Outputs from inputs of known rank, and lengths of the inputs from known lengths of the outputs. None if the operator refuses."""
    trials = _two_trials(op, inputs, present, kinds)
    if trials is None:
        return None
    first, second, dyes = trials
    results = [_undyed(one, two) for one, two in zip(first[1], second[1])]
    for size in (
        1,
        2,
        4,
        8,
        16,
        64,
        256,
    ):  # a length that large ones do not change may depend on small ones: a slice, cut at the end
        small = _dyed(op, inputs, present, kinds, Same(size))
        if small is not None:
            results = [_undyed(known, other) for known, other in zip(results, small[1])]

    def near(where: Label, shift: int) -> Shapes | None:
        """The outputs of the first trial if one dye were larger by `shift`; None if the operator refuses that."""
        found = _dyed(op, inputs, present, kinds, Dye(0, dyes[0].multiple, shifted=(where, shift)))
        return None if found is None else found[1]

    lengths = _solve(first[1], second[1], outputs, dyes, near)
    completed = []
    for position, (one, two) in enumerate(zip(first[0], second[0])):
        shape = _undyed(one, two)
        if shape is not None:
            shape = tuple(length or lengths.get((position, axis), 0) for axis, length in enumerate(shape))
        completed.append(shape)
    return tuple(completed), tuple(results)


def _two_trials(
    op: Op, inputs: Shapes, present: Present, kinds: Kinds
) -> tuple[tuple[Shapes, Shapes], tuple[Shapes, Shapes], tuple[Dye, Dye]] | None:
    """The two trials and their dyes; None if the operator refuses all of them.

    Where different dyes are refused an axis has one dye in all inputs: perhaps it must be as long in one as in another.
    """
    for shared in (False, True):
        for multiple in DIVISIBLE:
            dyes = Dye(0, multiple, shared), Dye(1, multiple, shared)
            first, second = (_dyed(op, inputs, present, kinds, dye) for dye in dyes)
            if first is not None and second is not None:
                return first, second, dyes
    return None


def _undyed(one: Shape | None, two: Shape | None) -> Shape | None:
    """The lengths that two trials have in common; 0 where they differ."""
    if one is None or two is None or len(one) != len(two):
        return None
    return tuple(length if length == other else 0 for length, other in zip(one, two))


def _solve(
    first: Shapes, second: Shapes, outputs: Shapes, dyes: tuple[Dye, Dye], near: Callable[[Label, int], Shapes | None]
) -> dict[Label, int]:
    """Unknown lengths of inputs that known lengths of the outputs determine.

    A dyed length of an output is a function of a dyed length of an input if both trials show the same difference (padding, a
    convolution, a concatenation) or the same quotient (a split, a tile). A quotient counts if the lengths beside it give other results.
    Last, it may be a multiple and something more (a concatenation that has the length twice), if the length beside it says so, too.
    """
    found: dict[Label, int] = {}
    pairs = [(a, b, where) for (a, where), b in zip(dyes[0].labels.items(), dyes[1].labels)]
    for number, (one, two, known) in enumerate(zip(first, second, outputs)):
        if one is None or two is None or known is None or not len(one) == len(two) == len(known):
            continue
        for axis, (a, b, length) in enumerate(zip(one, two, known)):
            if not length or a == b:
                continue
            for dye, other, where in pairs:
                if a - dye == b - other:
                    wanted = Fraction(length - (a - dye))
                elif a * other == b * dye and not any(_same_at(near(where, shift), number, axis, a) for shift in (1, -1)):
                    wanted = Fraction(length * dye, a)
                elif (a - b) % (dye - other) == 0 and _same_at(
                    near(where, 1), number, axis, a + (times := (a - b) // (dye - other))
                ):
                    wanted = Fraction(length - (a - times * dye), times)
                else:
                    continue
                if wanted > 0 and wanted.denominator == 1:
                    found.setdefault(where, int(wanted))
    return found


def _same_at(outputs: Shapes | None, number: int, axis: int, length: int) -> bool:
    """Whether an output has this length."""
    shape = None if outputs is None else outputs[number]
    return shape is not None and shape[axis] == length


def _with_kept_shape(op: Op, inputs: Shapes, outputs: Shapes, present: Present) -> tuple[Shapes, Shapes]:
    """Where an operator keeps shapes, all that is known of its first output and of those inputs, together.

    Raises ShapeError if they contradict each other.
    """
    known = [shape for shape in (*inputs, *outputs[:1]) if shape is not None]
    for rank in dict.fromkeys(len(shape) for shape in known):
        keeps = keeps_shape(op, present, rank)
        same = [shape for shape, kept in zip(inputs, keeps) if kept]
        if any(shape is not None for shape in (*same, *outputs[:1])) and same:
            together = functools.reduce(merged, same, outputs[0])
            return tuple(together if kept else shape for shape, kept in zip(inputs, keeps)), (together, *outputs[1:])
    return inputs, outputs


def _with_kept_size(op: Op, inputs: Shapes, outputs: Shapes) -> Shapes:
    """Where the output is the first input in another shape, its one unknown length: the output has as many elements."""
    if not op.aliases or not inputs or inputs[0] is None or inputs[0].count(0) != 1 or not is_whole(outputs[0]):
        return inputs
    known, size = math.prod(filter(None, inputs[0])), math.prod(outputs[0] or ())
    if size % known:
        return inputs
    return tuple(length or size // known for length in inputs[0]), *inputs[1:]


def merged(old: Shape | None, new: Shape | None) -> Shape | None:
    """What two sources say about one shape, together. Raises ShapeError if they contradict each other."""
    if old is None or new is None:
        return old if new is None else new
    if len(old) == len(new) and all(a == b or not a or not b for a, b in zip(old, new)):
        return tuple(a or b for a, b in zip(old, new))
    raise ShapeError(f"a shape is {old} by one neighbour, and {new} by another (0 stands for any length); they must agree")


@remembered
def keeps_shape(op: Op, present: Present, rank: int) -> tuple[bool, ...]:
    """For each input, whether its shape is that of the first output wherever the output has `rank` axes.

    Tried out: the output's shape must be the inputs', at this rank and at others, with lengths of 1 too, and none may be stretched.
    """
    nothing = (False,) * len(present)
    same: tuple[bool, ...] = nothing
    kinds = complete_dtypes((None,) * len(present), present)
    for ndim in sorted({1, 2, 3, 4, rank, rank + 1}, key=lambda ndim: ndim != rank):
        dyes = tuple(12 * prime for prime in PRIMES[0][:ndim])
        for shape in (dyes, (1,) * ndim, (*dyes[:-1], 1), (1, *dyes[1:])):
            found = _all_of_shape(op, present, shape, kinds)
            if found is None:
                if ndim == rank and shape is dyes:
                    return nothing
                continue
            given, outputs = found
            if outputs[0] != shape:
                return nothing
            if ndim == rank and shape is dyes:
                same = tuple(each == shape for each in given)
    for position, kept in enumerate(same):
        if kept and rank and _stretches(op, present, rank, same, position, kinds):
            return nothing
    return same


def _all_of_shape(op: Op, present: Present, shape: Shape, kinds: Kinds) -> tuple[Shapes, Shapes] | None:
    """Inputs and outputs if the first input has `shape`, and those that do not follow from it have it, too."""
    given: Shapes = (shape, *[None] * (len(present) - 1))
    try:
        given = filled(op, given, present, kinds)
        given = tuple(each if is_whole(each) or not here else shape for each, here in zip(given, present))
        return given, _shapes(rule(op, given, present, kinds))
    except MXNetError:
        return None


def _stretches(op: Op, present: Present, rank: int, same: tuple[bool, ...], position: int, kinds: Kinds) -> bool:
    """Whether an input of lengths 1 beside larger ones would be taken: then an output's shape does not tell the input's."""
    dyes = tuple(12 * prime for prime in PRIMES[0][:rank])
    given: Shapes = tuple(((1,) * rank if each == position else dyes) if kept else None for each, kept in enumerate(same))
    if sum(same) < 2:
        return False
    try:
        given = tuple(shape if kept or is_whole(shape) else dyes for shape, kept in zip(filled(op, given, present, kinds), same))
        rule(op, given, present, kinds)
    except MXNetError:
        return False
    return True
