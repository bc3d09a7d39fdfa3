"""Recurrent layers with all their steps as one loop in machine code.

The operator's NumPy kernel (ops/rnn.py, ops/recurrence.py) calls BLAS and some twenty of NumPy's functions at each step. Here all steps
of a layer in one direction are one call of a loop (recurrent_loops.py), for a part of the batch in each thread. The gradients of the
weights, which need all steps at once, are products by panels.py. The operator still says which layers and directions there are, what
lies where, and what is dropped; it is given a `Machine` in the place of a class of recurrence.py.

The values are NumPy's up to the last digits, so nothing runs before its loops are compiled; where they cannot be, NumPy's kernel serves.
Book: chapter 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..device import Context
from ..op import Array, Spec, beside
from . import panels
from .fused import compiles
from .recurrent_loops import Kind, back, forth

if TYPE_CHECKING:
    from ..ops.recurrence import Course, Recurrence, Weights
    from ..ops.rnn import RecurrentAdjoint, RecurrentLayer

FEWEST_STEPS = 4  # with fewer, arranging the weights takes longer than it saves
FULL = 64  # rows that make a good product with the weights of the input


class Machine:
    """Stands for a class of recurrence.py where an operator asks for one: it is called for each layer and direction."""

    batch_first: ClassVar = True  # in what it saves for the way back

    def __init__(self, recurrence: type[Recurrence], kind: Kind) -> None:
        self.recurrence = recurrence
        self.kind = kind
        self.forth = forth(kind)
        self.back = back(kind) if kind.keeps else None

    def __call__(self, xp: Any, weights: Weights, clip: tuple[float, float, bool] | None) -> Passes:
        return Passes(self, self.recurrence(xp, weights, clip))

    def is_compiled(self) -> bool:
        """Whether its loops are there. It waits for them."""
        return all(loop.is_compiled() for loop in (self.forth, self.back, *panels.loops()) if loop is not None)


class Passes:
    """The way forth and back of one layer in one direction, as in a class of recurrence.py: `plain` is its object."""

    def __init__(self, made: Machine, plain: Recurrence) -> None:
        self.made = made
        self.plain = plain

    def forward(
        self, data: Array, state: Array, cell: Array | None, course: Course, output: Array, saved: Sequence[Array]
    ) -> tuple[Array, Array | None]:
        plain, weights, (steps, batch, length) = self.plain, self.plain.weights, data.shape
        of_data, of_state, *projection = panels.packed(
            *(each.T for each in (weights.i2h, weights.h2h, weights.h2r) if each is not None)
        )
        given = self.sizes(course, steps, batch, course.order)
        given.update(x=np.ascontiguousarray(data), z=of_data, b=plain.bias(), w=of_state, h=state.copy(), y=output)
        given.update(apart=output.strides[1] // 4, inputs=length, count=len(of_state))
        bounds = self.shares(steps, batch)
        block = min(steps, max(1, FULL // bounds[0][1]))
        width, given["block"] = len(of_state) * panels.WIDTH, block
        if saved:
            given.update(kept=saved[0], gates=saved[0], cells=saved[-1])
        if cell is not None:
            given.update(c=cell.copy())
        scratch = {"s": width, "p": block * width, **self.project(given, *projection)}
        self.made.forth(panels.Job(given, bounds, {name: bounds[0][1] * each for name, each in scratch.items()}))
        return given["h"].T, None if cell is None else given["c"].T

    def backward(
        self, head: Array | None, to_state: Array, to_cell: Array | None, data: Array, state: Array, cell: Array | None,
        course: Course, output: Array, saved: Sequence[Array], to_weights: Weights, wants_data: bool,
    ) -> tuple[Array | None, Array, Array | None]:  # fmt: skip
        plain, weights, (steps, batch, length) = self.plain, self.plain.weights, data.shape
        assert self.made.back is not None
        rows = plain.rows * plain.units
        before = plain.states_before(state, output, course)
        gradients = beside(np, data, (steps, batch, rows), np.float32)
        given = self.sizes(course, steps, batch, course.order[::-1])
        sums = np.zeros((-(-batch // panels.ROWS), rows), np.float32)
        given.update(
            g=gradients, sums=sums, rows=rows, e=np.ascontiguousarray(to_state.T), y=output, apart=output.strides[1] // 4
        )
        of_state, *projection = panels.packed(*(each for each in (weights.h2h, weights.h2r) if each is not None))
        given.update(w=of_state, count=len(of_state), states=before)
        given.update(head=np.zeros(output.shape, np.float32) if head is None else np.ascontiguousarray(head))
        bounds = self.shares(steps, batch)
        scratch = {"s": len(of_state) * panels.WIDTH, **self.project(given, *projection)}
        if saved:
            given.update(kept=saved[0], gates=saved[0], cells=saved[-1])
        if to_cell is not None:
            given.update(first=np.ascontiguousarray(cell), f=np.ascontiguousarray(to_cell.T))
            if weights.h2r is not None:
                parts = beside(np, data, (*data.shape[:2], len(weights.h2r)), np.float32)
                hidden = beside(np, data, (*data.shape[:2], plain.units), np.float32)
                given.update(parts=parts, hidden=hidden)
                plain.projected = parts.transpose(2, 0, 1), hidden.transpose(2, 0, 1)
        self.made.back(panels.Job(given, bounds, {name: bounds[0][1] * each for name, each in scratch.items()}))
        plain.products = LargeProducts(sums.sum(axis=0))
        flat = gradients.reshape(steps * batch, rows).T
        plain.weight_gradients(flat, data.reshape(steps * batch, length), before.reshape(steps * batch, -1), to_weights)
        to_data = plain.to_data(flat).reshape(data.shape) if wants_data else None
        return to_data, given["e"].T, None if to_cell is None else given["f"].T

    # ---- what a loop is given

    def sizes(self, course: Course, steps: int, batch: int, order: Sequence[int]) -> dict[str, Any]:
        """Lengths, the order of the steps, the ends of sequences, and the limits of the cells."""
        plain = self.plain
        ends = np.full(batch, steps) if course.over is None else steps - course.over.sum(axis=0)
        length = plain.weights.h2h.shape[1]
        first, second = order[0], order[1]
        found = {"steps": steps, "batch": batch, "units": plain.units, "length": length, "start": first, "way": second - first}
        least, most = (0.0, 0.0) if plain.clip is None else plain.clip[:2]
        return {**found, "ends": ends.astype(np.int64), "spare": 0, "apart": 0, "rows": 0, "least": least, "most": most}

    def project(self, given: dict[str, Any], matrix: Array | None = None) -> dict[str, int]:
        """Enter the product with a projection, if there is one; the scratch memory for it, in numbers a sequence."""
        if matrix is None:
            return {}
        given.update(v=matrix, spare=len(matrix))
        return {"q": len(matrix) * panels.WIDTH, "u": self.plain.units}

    def shares(self, steps: int, batch: int) -> list[tuple[int, int]]:
        """The parts of the batch: whole tiles of rows, one part a thread, if there is enough to do."""
        return panels.shares(batch, panels.ROWS, panels.NS_PER_PRODUCT * steps * batch * self.plain.weights.h2h.size)


class LargeProducts:
    """The products of all steps, without BLAS: see panels.py."""

    def __init__(self, sums: Array) -> None:
        self.sums = sums

    def dot(self, left: Array, right: Array) -> Array:
        """The product of two matrices."""
        result = beside(np, right, (len(left), right.shape[1]), np.float32)
        panels.products(left, (right, result))
        return result

    def write(self, left: Array, *pairs: tuple[Array, Array]) -> None:
        """The products of a matrix with each first one of `pairs`, written into the second one."""
        panels.products(left, *pairs)

    def row_sums(self, array: Array) -> Array:
        """The sum of each row, which the loop has made."""
        return self.sums


class Layers:
    """The kernel of an operator with loops."""

    implementation = "loops in machine code"

    def __init__(self, op: RecurrentLayer | RecurrentAdjoint, made: Machine) -> None:
        self.op = op
        self.made = made

    def __call__(self, xp: Any, *arrays: Array | None, **key: Any) -> Any:
        """What the operator's own kernel gives."""
        if not self.made.is_compiled():
            return self.op.kernel(xp, *arrays, **key)
        given = [each if each is None else np.ascontiguousarray(each) for each in arrays]
        return self.op.run(xp, self.made, *given, **key)


def layers(op: RecurrentLayer | RecurrentAdjoint, context: Context, *specs: Spec | None) -> Layers | None:
    """Loops for an operator in float32; None where NumPy's kernel is as good."""
    data = specs[op.inputs.index("data")]
    assert data is not None
    if not compiles() or data.shape[0] < FEWEST_STEPS:
        return None
    keeps = op.training or "kept?" in op.inputs
    clip = op.clip
    kind = Kind(op.mode, keeps, op.projection_size is not None, clip is not None, clip is not None and clip[2])
    if kind not in _machines:
        _machines[kind] = Machine(op.recurrence, kind)
    return Layers(op, _machines[kind])


_machines: dict[Kind, Machine] = {}  # sizes are arguments of loops: there are few kinds
