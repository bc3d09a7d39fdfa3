"""The short way of a small program: its function at once, in the calling thread, on arrays that were looked up beforehand.

A network of a few small layers takes less time than asking for its parameters, its program and a place in the engine. So a block that
has run such a program remembers it with the parameters' memory, as a `DirectCall`. It serves a call like that one; for any other it
declines, and the call goes the long way. Whoever holds it must drop it when the block or its parameters are replaced. Book: chapter 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..autograd import state
from ..device import Context
from ..engine.front import HAND_OVER, shortcuts
from ..engine.var import Var
from ..nd.direct import quiet
from ..nd.ndarray import NDArray
from .compiled import CompiledGraph


class DirectCall:
    """A program as a function of one array, the others being given."""

    __slots__ = ("spec", "context", "part", "before", "after", "result", "training")

    def __init__(self, graph: CompiledGraph, arrays: Sequence[NDArray], position: int, context: Context) -> None:
        program = graph.program_for(arrays, context)
        assert program is not None
        self.part = program.forward
        self.spec = arrays[position].spec
        self.context = arrays[position].context
        for array in arrays:
            array.var.viewed = True  # so that no other memory takes its place, as a gradient's could
        self.before = [array.var for array in arrays[:position]]
        self.after = [array.var for array in arrays[position + 1 :]]
        self.result = program.forward.specs[0]
        self.training = state.training

    @staticmethod
    def serves(graph: CompiledGraph, arrays: Sequence[NDArray], context: Context) -> bool:
        """Whether the program for these arrays is one that can be called directly: small, with one output, and without effects."""
        if graph.interpreted or shortcuts.blocked or not context.host or any(array.offset >= 0 for array in arrays):
            return False
        found = graph.program_for(arrays, context)
        if found is None or found.draws or len(found.forward.specs) != 1:
            return False
        return len(found.steps) == 1 and found.forward.cost <= HAND_OVER and found.forward.keeps and not found.forward.mutates

    def __call__(self, data: Any) -> NDArray | None:
        """The output for `data`; None if it must be computed the long way."""
        if type(data) is not NDArray or data.spec is not self.spec or data.offset >= 0 or data.context is not self.context:
            return None
        if shortcuts.blocked or state.training is not self.training or not data.var.ready:
            return None
        arrays = []
        for var in self.before:
            if not var.ready:
                return None
            arrays.append(var.value)
        arrays.append(data.var.value)
        for var in self.after:
            if not var.ready:
                return None
            arrays.append(var.value)
        part = self.part
        try:
            memory = part.idle.pop()
        except IndexError:
            return None  # another thread uses it
        try:
            value = quiet.run(part.function, memory, None, *arrays)[0]
        except Exception:  # it will fail again on the long way, where the error is kept for whoever reads the result
            return None
        finally:
            part.idle.append(memory)
        return NDArray(Var(value), self.result, self.context)
