"""What an operator's rule of shapes and dtypes says when only a part of its inputs is known.

An operator has one rule, `infer`: from complete inputs to outputs. A graph often knows less (the batch size is open), or knows it
elsewhere (the shape of the result, but not of the data). Rather than ask every operator for more rules, this module tries the one
that it has. An unknown length is *dyed*: replaced by a large number that nobody uses. Lengths of the result that are that number, or
change with it, are unknown as well; all others are known. And where the result's length is known from elsewhere, the dye shows which
unknown length it is. Unknown dtypes are found in the same way, by trying them all.

A length is unknown where it is 0, a whole shape or a dtype where it is None. infer.py spreads what is found here over a graph.
Book: chapter 2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from ..base import DTYPE_OF_CODE, FLOAT32, DTypeError, MXNetError, ShapeError
from ..op import Op, Shape, Spec

Shapes: TypeAlias = tuple["Shape | None", ...]
DTypes: TypeAlias = tuple["np.dtype[Any] | None", ...]
Present: TypeAlias = tuple[bool, ...]  # which of an operator's inputs are there at all

# Dyes are divisible by all small numbers, so that they may be split, folded and strided, and have a prime factor of their own.
DIVISIBLE = 10080
PRIMES = (
    (1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049, 1051, 1061, 1063, 1069, 1087, 1091, 1093, 1097),
    (2003, 2011, 2017, 2027, 2029, 2039, 2053, 2063, 2069, 2081, 2083, 2087, 2089, 2099, 2111, 2113),
)

# Operators that tell nothing until the whole shape of every input is known, as in MXNet.
NEEDS_WHOLE_SHAPES = frozenset({"where"})

# Dtypes of the inputs while shapes are asked for: the first that the operator takes.
GUESSES: tuple[tuple[np.dtype[Any], np.dtype[Any]], ...] = tuple(
    (np.dtype(first), np.dtype(rest))
    for first, rest in (("float32", "float32"), ("float32", "int32"), ("int32", "int32"), ("int64", "int64"), ("uint8", "float32"), ("float16", "float32"))
)


def is_whole(shape: Shape | None) -> bool:
    """Whether all of a shape is known."""
    return shape is not None and 0 not in shape


def infer(op: Op, specs: Sequence[Spec | None]) -> tuple[Spec, ...]:
    """The operator's rule, with a tuple even for one output."""
    found = op.infer(*specs)
    return found if type(found) is tuple else (found,)  # type: ignore[return-value]  # Spec | tuple[Spec, ...]


def fill(op: Op, specs: Sequence[Spec | None], present: Present) -> list[Spec | None]:
    """The inputs as far as they follow from each other; what the operator cannot complete, or refuses, stays as it is."""
    try:
        found = op.fill(*specs)
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
    inputs = _with_kept_shape(op, inputs, outputs, present)
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


def rule(op: Op, inputs: Shapes, present: Present, kinds: Sequence[tuple[np.dtype[Any], ...]]) -> tuple[Spec, ...]:
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


def filled(op: Op, inputs: Shapes, present: Present, kinds: Sequence[tuple[np.dtype[Any], ...]]) -> Shapes:
    """Shapes completed by the operator's `fill`, such as a weight's from its data's."""
    specs = [None if shape is None else Spec.of(shape, dtype) for shape, dtype in zip(inputs, kinds[0])]
    return _shapes(fill(op, specs, present))


def _shapes(specs: Iterable[Spec | None]) -> Shapes:
    return tuple(None if spec is None else spec.shape for spec in specs)


class Dye:
    """One way of replacing unknown lengths: `labels` remembers where each number was put."""

    def __init__(self, primes: tuple[int, ...], same: int | None = None) -> None:
        self.primes = primes
        self.same = same  # one length for all of them
        self.labels: dict[int, tuple[int, int]] = {}  # dye -> input and axis

    def next(self, position: int, axis: int) -> int:
        if self.same is not None:
            return self.same
        count = len(self.labels)
        dye = DIVISIBLE * self.primes[count % len(self.primes)] * (1 + count // len(self.primes))
        self.labels[dye] = (position, axis)
        return dye


def _dyed(op: Op, inputs: Shapes, present: Present, kinds: Sequence[tuple[np.dtype[Any], ...]], dye: Dye) -> tuple[Shapes, Shapes] | None:
    """Inputs with dyes for unknown lengths, and the outputs that follow; None if the operator refuses them.

    One input is dyed at a time, and the others completed from it: lengths that must be equal get one dye.
    """
    current = inputs
    for position, here in enumerate(present):
        shape = current[position]
        if here and shape is not None and 0 in shape:
            coloured = tuple(length or dye.next(position, axis) for axis, length in enumerate(shape))
            current = filled(op, (*current[:position], coloured, *current[position + 1 :]), present, kinds)
    try:
        return current, _shapes(rule(op, current, present, kinds))
    except MXNetError:
        return None


def _by_dye(
    op: Op, inputs: Shapes, outputs: Shapes, present: Present, kinds: Sequence[tuple[np.dtype[Any], ...]]
) -> tuple[Shapes, Shapes] | None:
    """Outputs from inputs of known rank, and lengths of the inputs from known lengths of the outputs. None if the operator refuses."""
    dyes = Dye(PRIMES[0]), Dye(PRIMES[1])
    first, second = (_dyed(op, inputs, present, kinds, dye) for dye in dyes)
    if first is None or second is None:
        return None
    results = [_undyed(one, two) for one, two in zip(first[1], second[1])]
    for size in (1, 2, 4, 8, 16, 64, 256):  # a length that large ones do not change may depend on small ones: a slice, cut at the end
        small = _dyed(op, inputs, present, kinds, Dye((), size))
        if small is not None:
            results = [_undyed(known, other) for known, other in zip(results, small[1])]
    lengths = _solve(first[1], second[1], outputs, dyes, lambda where: _with_one_more(op, inputs, present, kinds, where))
    completed = []
    for position, (one, two) in enumerate(zip(first[0], second[0])):
        shape = _undyed(one, two)
        if shape is not None:
            shape = tuple(length or lengths.get((position, axis), 0) for axis, length in enumerate(shape))
        completed.append(shape)
    return tuple(completed), tuple(results)


def _undyed(one: Shape | None, two: Shape | None) -> Shape | None:
    """The lengths that two trials have in common; 0 where they differ."""
    if one is None or two is None or len(one) != len(two):
        return None
    return tuple(length if length == other else 0 for length, other in zip(one, two))


def _with_one_more(op: Op, inputs: Shapes, present: Present, kinds: Sequence[tuple[np.dtype[Any], ...]], where: tuple[int, int]) -> Shapes | None:
    """The outputs of the first trial if the dye at `where` were larger by 1; None if the operator refuses that."""

    class Neighbour(Dye):
        def next(self, position: int, axis: int) -> int:
            return super().next(position, axis) + ((position, axis) == where)

    found = _dyed(op, inputs, present, kinds, Neighbour(PRIMES[0]))
    return None if found is None else found[1]


def _solve(
    first: Shapes, second: Shapes, outputs: Shapes, dyes: tuple[Dye, Dye], neighbour: Callable[[tuple[int, int]], Shapes | None]
) -> dict[tuple[int, int], int]:
    """Unknown lengths (input, axis) that known lengths of the outputs determine.

    A dyed length of an output is a function of a dyed length of an input if both trials show the same difference (padding, a
    convolution, a concatenation) or the same quotient (a split, a tile). A quotient counts if the next length gives another result.
    """
    found: dict[tuple[int, int], int] = {}
    pairs = [(a, b, where) for (a, where), b in zip(dyes[0].labels.items(), dyes[1].labels)]
    for number, (one, two, known) in enumerate(zip(first, second, outputs)):
        if one is None or two is None or known is None or not len(one) == len(two) == len(known):
            continue
        for axis, (a, b, length) in enumerate(zip(one, two, known)):
            if not length or a == b:
                continue
            for dye, other, where in pairs:
                wanted: Fraction | int
                if a - dye == b - other:
                    wanted = length - (a - dye)
                elif a * other == b * dye:
                    wanted = Fraction(length * dye, a)
                    after = neighbour(where)
                    if after is not None and after[number] is not None and after[number][axis] == a:  # type: ignore[index]  # checked
                        continue
                else:
                    continue
                if wanted > 0 and wanted == int(wanted):
                    found.setdefault(where, int(wanted))
    return found


def _with_kept_shape(op: Op, inputs: Shapes, outputs: Shapes, present: Present) -> Shapes:
    """Inputs that must have the output's shape get all that is known of it, and of each other. Raises ShapeError if that differs."""
    known = [shape for shape in (*inputs, *outputs[:1]) if shape is not None]
    for rank in dict.fromkeys(len(shape) for shape in known):
        keeps = keeps_shape(op, present, rank)
        if not any(keeps) or (outputs[0] is None and all(shape is None for shape, kept in zip(inputs, keeps) if kept)):
            continue
        together: Shape | None = outputs[0]
        for shape, kept in zip(inputs, keeps):
            if kept:
                together = merged(together, shape)
        return tuple(together if kept else shape for shape, kept in zip(inputs, keeps))
    return inputs


def merged(old: Shape | None, new: Shape | None) -> Shape | None:
    """What two sources say about one shape, together. Raises ShapeError if they contradict each other."""
    if old is None or new is None:
        return old if new is None else new
    if len(old) == len(new) and all(a == b or not a or not b for a, b in zip(old, new)):
        return tuple(a or b for a, b in zip(old, new))
    raise ShapeError(f"a shape is {old} by one neighbour, and {new} by another (0 stands for any length); they must agree")


@lru_cache(maxsize=4096)
def keeps_shape(op: Op, present: Present, rank: int) -> tuple[bool, ...]:
    """For each input, whether its shape is that of the first output wherever the output has `rank` axes.

    Tried out: the output's shape must be the inputs', at this rank and at others, with lengths of 1 too, and none may be stretched.
    """
    nothing = (False,) * len(present)
    same: tuple[bool, ...] = nothing
    kinds = complete_dtypes((None,) * len(present), present)
    for ndim in sorted({1, 2, 3, 4, rank, rank + 1}, key=lambda ndim: ndim != rank):
        dyes = tuple(DIVISIBLE * prime for prime in PRIMES[0][:ndim])
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


def _all_of_shape(op: Op, present: Present, shape: Shape, kinds: Sequence[tuple[np.dtype[Any], ...]]) -> tuple[Shapes, Shapes] | None:
    """Inputs and outputs if the first input has `shape`, and those that do not follow from it have it, too."""
    given: Shapes = (shape, *[None] * (len(present) - 1))
    given = filled(op, given, present, kinds)
    given = tuple(each if each is not None or not here else shape for each, here in zip(given, present))
    try:
        return given, _shapes(rule(op, given, present, kinds))
    except MXNetError:
        return None


def _stretches(
    op: Op, present: Present, rank: int, same: tuple[bool, ...], position: int, kinds: Sequence[tuple[np.dtype[Any], ...]]
) -> bool:
    """Whether an input of lengths 1 beside larger ones would be taken: then an output's shape does not tell the input's."""
    dyes = tuple(DIVISIBLE * prime for prime in PRIMES[0][:rank])
    given: Shapes = tuple(((1,) * rank if each == position else dyes) if kept else None for each, kept in enumerate(same))
    if sum(same) < 2:
        return False
    given = tuple(shape if kept or shape is not None else dyes for shape, kept in zip(filled(op, given, present, kinds), same))
    try:
        rule(op, given, present, kinds)
    except MXNetError:
        return False
    return True


# ---- dtypes


def dtypes(op: Op, inputs: DTypes, outputs: DTypes, present: Present, known: Shapes) -> tuple[DTypes, DTypes]:
    """All that follows for the dtypes of the inputs and of the outputs from those that are known.

    Raises what the operator's rule raises if the inputs are known completely and do not fit.
    """
    is_real = all(is_whole(shape) for shape, here in zip(known, present) if here)
    lengths = known if is_real else _some_shapes(op, present)
    if lengths is None:
        return inputs, outputs
    if all(dtype is not None for dtype, here in zip(inputs, present) if here):
        return inputs, _try(op, lengths, inputs, present, strict=True) or outputs
    specs = [None if dtype is None else Spec.of(shape or (), dtype) for shape, dtype in zip(lengths, inputs)]
    inputs = tuple(None if spec is None else spec.dtype for spec in fill(op, specs, present))
    unknown = [position for position, here in enumerate(present) if here and inputs[position] is None]
    if not unknown:
        return inputs, _try(op, lengths, inputs, present, strict=True) or outputs
    accepted = _accepted(op, lengths, inputs, present, tuple(unknown))
    results = [_common([found[number] for found in accepted.values()]) for number in range(len(outputs))]
    fitting = {
        dtype: found
        for dtype, found in accepted.items()
        if all(wanted is None or wanted == got for wanted, got in zip(outputs, found))
    }
    if len(fitting) == 1 and len(accepted) >= 1:
        (dtype,) = fitting
        settled = [position for position in unknown if not _is_free(op, lengths, inputs, present, unknown, position, dtype)]
        inputs = tuple(dtype if position in settled else each for position, each in enumerate(inputs))
        results = list(fitting[dtype])
    return inputs, tuple(wanted or got for wanted, got in zip(outputs, results))


def _common(found: Sequence[np.dtype[Any] | None]) -> np.dtype[Any] | None:
    """The dtype that all trials agree on, if they do."""
    return found[0] if found and all(dtype == found[0] for dtype in found) else None


def _replaced(inputs: DTypes, positions: Sequence[int], dtype: np.dtype[Any]) -> DTypes:
    return tuple(dtype if position in positions else each for position, each in enumerate(inputs))


def _try(op: Op, lengths: Shapes, inputs: DTypes, present: Present, strict: bool = False) -> DTypes | None:
    """Dtypes of the outputs; None, or the rule's DTypeError if `strict`, where the operator refuses the inputs."""
    specs = [Spec.of(shape or (), dtype or FLOAT32) if here else None for shape, dtype, here in zip(lengths, inputs, present)]
    try:
        return tuple(spec.dtype for spec in infer(op, specs))
    except DTypeError:
        if strict:
            raise
    except MXNetError:
        pass
    return None


@lru_cache(maxsize=4096)
def _accepted(op: Op, lengths: Shapes, inputs: DTypes, present: Present, unknown: tuple[int, ...]) -> dict[np.dtype[Any], DTypes]:
    """Dtypes that all unknown inputs could have, with those of the outputs then."""
    tried = {dtype: _try(op, lengths, _replaced(inputs, unknown, dtype), present) for dtype in DTYPE_OF_CODE.values()}
    return {dtype: found for dtype, found in tried.items() if found is not None}


def _is_free(op: Op, lengths: Shapes, inputs: DTypes, present: Present, unknown: Sequence[int], position: int, dtype: np.dtype[Any]) -> bool:
    """Whether an input could have another dtype although the others are settled, as indices can."""
    if len(unknown) == 1:
        return False
    settled = _replaced(inputs, unknown, dtype)
    wanted = _try(op, lengths, settled, present)
    others = [other for other in DTYPE_OF_CODE.values() if other != dtype]
    return any(_try(op, lengths, _replaced(settled, (position,), other), present) == wanted for other in others)


@lru_cache(maxsize=4096)
def _some_shapes(op: Op, present: Present) -> Shapes | None:
    """Shapes of the inputs that the operator takes, found by trying; None if none of the usual is."""
    kinds = complete_dtypes((None,) * len(present), present)
    for length in (60, 1, 4, DIVISIBLE):
        for ndim in (2, 4, 3, 1, 5):
            for rest in (ndim, 1, 2, ndim - 1):
                given = filled(op, ((length,) * ndim, *[None] * (len(present) - 1)), present, kinds)
                given = tuple(shape if shape is not None or not here else (length,) * rest for shape, here in zip(given, present))
                try:
                    rule(op, given, present, kinds)
                except MXNetError:
                    continue
                return given
    return None
