"""What an operator's rule says of dtypes when only some of them are known: the unknown ones are tried.

An unknown dtype that the operator takes in one way only is that; where all ways give one result, the result is known; and where the
result is known from elsewhere, it tells the input. The rule needs shapes, too: the known ones, or any that the operator takes.
A dtype is unknown where it is None. Book: chapter 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import DTYPE_OF_CODE, FLOAT32, DTypeError, MXNetError
from ..op import Op, Spec
from .trial import DTypes, Present, Shapes, complete_dtypes, fill, filled, infer, is_whole, remembered, rule


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


@remembered
def _accepted(op: Op, lengths: Shapes, inputs: DTypes, present: Present, unknown: tuple[int, ...]) -> dict[np.dtype[Any], DTypes]:
    """Dtypes that all unknown inputs could have, with those of the outputs then."""
    tried = {dtype: _try(op, lengths, _replaced(inputs, unknown, dtype), present) for dtype in DTYPE_OF_CODE.values()}
    return {dtype: found for dtype, found in tried.items() if found is not None}


def _is_free(
    op: Op, lengths: Shapes, inputs: DTypes, present: Present, unknown: Sequence[int], position: int, dtype: np.dtype[Any]
) -> bool:
    """Whether an input could have another dtype although the others are settled, as indices can."""
    if len(unknown) == 1:
        return False
    settled = _replaced(inputs, unknown, dtype)
    wanted = _try(op, lengths, settled, present)
    others = [other for other in DTYPE_OF_CODE.values() if other != dtype]
    return any(_try(op, lengths, _replaced(settled, (position,), other), present) == wanted for other in others)


@remembered
def _some_shapes(op: Op, present: Present) -> Shapes | None:
    """Shapes of the inputs that the operator takes, found by trying; None if none of the usual is."""
    kinds = complete_dtypes((None,) * len(present), present)
    for length in (60, 1, 4, 5040):
        for ndim in (2, 4, 3, 1, 5):
            for rest in (ndim, 1, 2, ndim - 1):
                try:
                    given = filled(op, ((length,) * ndim, *[None] * (len(present) - 1)), present, kinds)
                    given = tuple(
                        shape if is_whole(shape) or not here else (length,) * rest for shape, here in zip(given, present)
                    )
                    rule(op, given, present, kinds)
                except MXNetError:
                    continue
                return given
    return None
