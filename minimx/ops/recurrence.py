"""The arithmetic of recurrent layers: one layer in one direction, step after step, and the way back. rnn.py makes the operator of it.

All products of a layer's input with its weights are one product, before the first step; what is left for a step is the product of the
state with its weights, and the gates. Arrays of a step lie with the units along the first axis and the batch along the second: so the
weights are the left factor as they are, which BLAS likes best when a batch is small, and each gate is a block of its own. A forward pass
in training keeps the gates of all steps; the backward pass goes through them in reverse, writes the gradients of all products into one
array, and makes those of the weights from it by one product each. Book: chapter 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from ..op import Array, Shape, beside


class Weights(NamedTuple):
    """The parameters of one layer in one direction: G gates of H units, inputs of length C, states of length R."""

    i2h: Array  # (G H, C)
    h2h: Array  # (G H, R)
    h2r: Array | None  # (R, H): makes a shorter state of the hidden units
    i2h_bias: Array  # (G H,)
    h2h_bias: Array  # (G H,)


def weight_shapes(gates: int, units: int, inputs: int, projection: int | None) -> Weights:
    """The shapes of all parameters, in the place of the parameters."""
    rows, state = gates * units, projection or units
    return Weights((rows, inputs), (rows, state), None if projection is None else (state, units), (rows,), (rows,))


class Course(NamedTuple):
    """In which order the steps are taken, and which sequences are over at each."""

    order: Sequence[int]
    over: Array | None  # (T, N) of bool: beyond the end of the sequence, where the state stays and the output is 0
    some_over: Sequence[bool]  # whether there are any at a step

    @classmethod
    def of(cls, xp: Any, steps: int, backwards: bool, lengths: Array | None) -> Course:
        order = range(steps - 1, -1, -1) if backwards else range(steps)
        if lengths is None:
            return cls(order, None, [False] * steps)
        over = xp.arange(steps)[:, None] >= lengths[None]
        return cls(order, over, [bool(each) for each in over.any(axis=1)])

    def over_at(self, step: int) -> Array | None:
        return self.over[step] if self.over is not None and self.some_over[step] else None


class Products(Protocol):
    """Who makes the products that the way back needs of all steps at once."""

    def dot(self, left: Array, right: Array) -> Array:
        """The product of two matrices."""

    def write(self, left: Array, *pairs: tuple[Array, Array]) -> None:
        """The products of a matrix with each first one of `pairs`, written into the second one."""

    def row_sums(self, array: Array) -> Array:
        """The sum of each row."""


class Plain:
    """Products by the library that `xp` has for them, BLAS with NumPy."""

    def __init__(self, xp: Any) -> None:
        self.xp = xp

    def dot(self, left: Array, right: Array) -> Array:
        return self.xp.dot(left, right)

    def write(self, left: Array, *pairs: tuple[Array, Array]) -> None:
        for right, out in pairs:
            self.xp.dot(left, right, out=out)

    def row_sums(self, array: Array) -> Array:
        """As a product with ones, which takes a fifth of the time."""
        return self.xp.dot(array, self.xp.ones(array.shape[1], array.dtype))


class Recurrence:
    """One layer in one direction. Subclasses say what a step does, and how a gradient goes back through it.

    `saved` has the arrays of `saved_shapes`, which the forward pass fills and the backward pass reads, or nothing if there will be none.
    """

    gates: ClassVar[int]  # blocks of rows in the weights
    rows: ClassVar[int]  # blocks of rows in the gradients of a step's products
    has_cell: ClassVar[bool] = False
    batch_first: ClassVar[bool] = False  # whether the arrays that are saved have the batch before the units

    def __init__(self, xp: Any, weights: Weights, clip: tuple[float, float, bool] | None = None) -> None:
        self.xp = xp
        self.products: Products = Plain(xp)
        self.weights = weights
        self.clip = clip  # least and largest number in a cell, and whether NaN counts as the largest
        self.projected: tuple[Array, Array] | None = None  # of all steps: gradients (R, T, N), and hidden units (H, T, N)
        self.units = len(weights.i2h_bias) // self.gates

    @classmethod
    def saved_shapes(cls, steps: int, batch: int, units: int) -> list[Shape]:
        """What a backward pass needs beside inputs and outputs: gates, cells."""
        raise NotImplementedError

    # ---- forth

    def forward(
        self, data: Array, state: Array, cell: Array | None, course: Course, output: Array, saved: Sequence[Array]
    ) -> tuple[Array, Array | None]:
        """Fill `output` (T, N, R) from `data` (T, N, C); the last state (R, N) and cell (H, N)."""
        xp, (steps, batch, length) = self.xp, data.shape
        rows = self.gates * self.units
        products = beside(xp, data, (rows, steps, batch), data.dtype)
        xp.dot(self.weights.i2h, data.reshape(steps * batch, length).T, out=products.reshape(rows, steps * batch))
        # To add a vector to each column would take four times as long.
        self.biases = xp.repeat(self.bias()[:, None], batch, axis=1)
        state = xp.ascontiguousarray(state.T)
        cell = None if cell is None else xp.ascontiguousarray(cell.T)
        for step in course.order:
            new, new_cell = self.step(products[:, step], state, cell, [each[step] for each in saved])
            over = course.over_at(step)
            if over is not None:
                xp.copyto(new, state, where=over)
                if new_cell is not None:
                    xp.copyto(new_cell, cell, where=over)
            output[step] = new.T
            if over is not None:
                output[step][over] = 0
            state, cell = new, new_cell
        return state, cell

    def bias(self) -> Array:
        """What is added to the products of a step with each sequence."""
        return self.weights.i2h_bias + self.weights.h2h_bias

    def step(self, products: Array, state: Array, cell: Array | None, saved: Sequence[Array]) -> tuple[Array, Array | None]:
        """The next state and cell, in memory of their own."""
        raise NotImplementedError

    # ---- back

    def backward(
        self, head: Array | None, to_state: Array, to_cell: Array | None, data: Array, state: Array, cell: Array | None,
        course: Course, output: Array, saved: Sequence[Array], to_weights: Weights, wants_data: bool,
    ) -> tuple[Array | None, Array, Array | None]:  # fmt: skip
        """Gradients of the data (T, N, C), the first state (R, N) and cell (H, N), from those of the output and of the last ones.

        Those of the weights are written into `to_weights`. `state`, `cell`: the first ones, (N, R) and (N, H).
        """
        xp, (steps, batch, length) = self.xp, data.shape
        before = self.states_before(state, output, course)
        first_cell = None if cell is None else xp.ascontiguousarray(cell.T)
        gradients = beside(xp, data, (self.rows * self.units, steps, batch), output.dtype)
        self.begin_backward(steps, batch, output.dtype)
        for step, cell_before in backwards(course.order, saved, first_cell):
            over = course.over_at(step)
            kept = None if over is None else (to_state.copy(), None if to_cell is None else to_cell.copy())
            if head is not None:
                given = head[step].T
                to_state = to_state + (given if over is None else xp.where(over, 0, given))
            to_products, to_state, to_cell = self.step_back(
                to_state, to_cell, before[step].T, cell_before, output[step].T, [each[step] for each in saved], step, over
            )
            gradients[:, step] = to_products
            if over is not None and kept is not None:
                xp.copyto(to_state, kept[0], where=over)
                if to_cell is not None:
                    xp.copyto(to_cell, kept[1], where=over)
        flat = gradients.reshape(self.rows * self.units, steps * batch)
        self.weight_gradients(
            flat, data.reshape(steps * batch, length), before.reshape(steps * batch, before.shape[2]), to_weights
        )
        return self.to_data(flat).reshape(data.shape) if wants_data else None, to_state, to_cell

    def states_before(self, first: Array, output: Array, course: Course) -> Array:
        """The state before each step, (T, N, R): that of the step before, or the first one."""
        before = beside(self.xp, output, output.shape, output.dtype)
        order = course.order
        if len(order):
            before[order[0]] = first
            if order[0] == 0:
                before[1:] = output[:-1]
            else:
                before[:-1] = output[1:]
                if course.over is not None:  # a sequence that is read from its end begins there
                    self.xp.copyto(before[:-1], first[None], where=course.over[1:, :, None])
        return before

    def begin_backward(self, steps: int, batch: int, dtype: Any) -> None:
        """Make room for what the steps leave behind."""

    def step_back(
        self, to_state: Array, to_cell: Array | None, state: Array, cell: Array | None, new: Array, saved: Sequence[Array], step: int,
        over: Array | None,
    ) -> tuple[Array, Array, Array | None]:  # fmt: skip
        """Gradients of the products, the state and the cell before a step, from those of the state and cell after it (`new`).

        Those of the products are 0 where sequences are over. `to_state` and `to_cell` may be written over.
        """
        raise NotImplementedError

    def weight_gradients(self, gradients: Array, data: Array, before: Array, to: Weights) -> None:
        """Write the gradients of the weights: `gradients` (rows, T N), the products' other factors `data` (T N, C), `before` (T N, R)."""
        self.products.write(gradients, (data, to.i2h), (before, to.h2h))
        to.i2h_bias[...] = to.h2h_bias[...] = self.products.row_sums(gradients)
        if to.h2r is not None and self.projected is not None:
            parts, hidden = (each.reshape(len(each), len(data)) for each in self.projected)
            self.products.write(parts, (hidden.T, to.h2r))

    def to_data(self, gradients: Array) -> Array:
        """The gradient (T N, C) of the data."""
        return self.products.dot(gradients.T, self.weights.i2h)


def backwards(order: Sequence[int], saved: Sequence[Array], first_cell: Array | None) -> Iterator[tuple[int, Array | None]]:
    """The steps in reverse, each with the cell before it."""
    for place in range(len(order) - 1, -1, -1):
        yield order[place], None if first_cell is None else saved[1][order[place - 1]] if place else first_cell


def squash(xp: Any, array: Array) -> None:
    """The sigmoid of an array in place, as `(tanh(x / 2) + 1) / 2`: NumPy's tanh takes half the time of its exp."""
    array *= 0.5
    xp.tanh(array, out=array)
    array *= 0.5
    array += 0.5


def silence(gradients: Array, over: Array | None) -> None:
    """Set gradients (rows, N) to 0 where sequences are over."""
    if over is not None:
        gradients[:, over] = 0


class Elman(Recurrence):
    """`h' = f(W x + U h + b)`."""

    gates = rows = 1

    @classmethod
    def saved_shapes(cls, steps: int, batch: int, units: int) -> list[Shape]:
        return []  # the slope of f follows from the output

    def step(self, products: Array, state: Array, cell: Array | None, saved: Sequence[Array]) -> tuple[Array, Array | None]:
        new = self.xp.dot(self.weights.h2h, state)
        new += products
        new += self.biases
        self.activate(new)
        return new, None

    def activate(self, array: Array) -> None:
        raise NotImplementedError

    def slope(self, new: Array) -> Array:
        """The derivative of f where its value is `new`."""
        raise NotImplementedError

    def step_back(
        self, to_state: Array, to_cell: Array | None, state: Array, cell: Array | None, new: Array, saved: Sequence[Array], step: int,
        over: Array | None,
    ) -> tuple[Array, Array, Array | None]:  # fmt: skip
        gradients = to_state * self.slope(new)
        silence(gradients, over)
        return gradients, self.xp.dot(self.weights.h2h.T, gradients), None


class ReluElman(Elman):
    def activate(self, array: Array) -> None:
        self.xp.maximum(array, 0, out=array)

    def slope(self, new: Array) -> Array:
        return new > 0


class TanhElman(Elman):
    def activate(self, array: Array) -> None:
        self.xp.tanh(array, out=array)

    def slope(self, new: Array) -> Array:
        return 1 - self.xp.square(new)


class LSTM(Recurrence):
    """Gates i, f, g, o of `W x + U h + b`: `c' = f c + i g`, `h' = o tanh(c')`, of which a projection makes the state."""

    gates = rows = 4
    has_cell = True

    @classmethod
    def saved_shapes(cls, steps: int, batch: int, units: int) -> list[Shape]:
        return [(steps, 4 * units, batch), (steps, units, batch)]

    def step(self, products: Array, state: Array, cell: Array | None, saved: Sequence[Array]) -> tuple[Array, Array | None]:
        xp, units = self.xp, self.units
        gates = xp.dot(self.weights.h2h, state, out=saved[0]) if saved else xp.dot(self.weights.h2h, state)
        gates += products
        gates += self.biases
        out = gates[3 * units :]
        # One tanh for all: the sigmoids are `squash`ed with half of its argument.
        for sigmoids in (gates[: 2 * units], out):
            sigmoids *= 0.5
        xp.tanh(gates, out=gates)
        for sigmoids in (gates[: 2 * units], out):
            sigmoids *= 0.5
            sigmoids += 0.5
        new_cell = xp.multiply(gates[units : 2 * units], cell, out=saved[1] if saved else None)
        hidden = gates[:units] * gates[2 * units : 3 * units]
        new_cell += hidden
        if self.clip is not None:
            least, largest, also_nan = self.clip
            (xp.fmin if also_nan else xp.minimum)(new_cell, largest, out=new_cell)
            xp.maximum(new_cell, least, out=new_cell)
        xp.tanh(new_cell, out=hidden)
        hidden *= out
        return hidden if self.weights.h2r is None else xp.dot(self.weights.h2r, hidden), new_cell

    def begin_backward(self, steps: int, batch: int, dtype: Any) -> None:
        xp, units = self.xp, self.units
        self.gradients = xp.empty((4 * units, batch), dtype)
        self.slopes = xp.empty((4 * units, batch), dtype)
        if self.weights.h2r is not None:
            self.projected = xp.empty((len(self.weights.h2r), steps, batch), dtype), xp.empty((units, steps, batch), dtype)

    def step_back(
        self, to_state: Array, to_cell: Array | None, state: Array, cell: Array | None, new: Array, saved: Sequence[Array], step: int,
        over: Array | None,
    ) -> tuple[Array, Array, Array | None]:  # fmt: skip
        xp, units, (gates, new_cell) = self.xp, self.units, saved
        assert to_cell is not None
        remember, out = gates[units : 2 * units], gates[3 * units :]
        bent = xp.tanh(new_cell)
        if self.weights.h2r is not None and self.projected is not None:
            silence(to_state, over)
            for all_steps, value in zip(self.projected, (to_state, bent * out)):
                all_steps[:, step] = value
            to_state = xp.dot(self.weights.h2r.T, to_state)
        gradients, slopes = self.gradients, self.slopes
        xp.multiply(to_state, bent, out=gradients[3 * units :])
        xp.multiply(bent, bent, out=bent)
        xp.subtract(1, bent, out=bent)
        bent *= out
        bent *= to_state
        to_cell += bent
        if self.clip is not None:
            to_cell *= (new_cell > self.clip[0]) & (new_cell < self.clip[1])
        xp.multiply(to_cell, gates[2 * units : 3 * units], out=gradients[:units])
        xp.multiply(to_cell, cell, out=gradients[units : 2 * units])
        xp.multiply(to_cell, gates[:units], out=gradients[2 * units : 3 * units])
        to_cell *= remember
        xp.subtract(1, gates, out=slopes)  # of a sigmoid s, the slope is s (1 - s)
        slopes *= gates
        transform, slope = gates[2 * units : 3 * units], slopes[2 * units : 3 * units]
        xp.multiply(transform, transform, out=slope)  # of tanh 1 - g^2
        xp.subtract(1, slope, out=slope)
        gradients *= slopes
        silence(gradients, over)
        return gradients, xp.dot(self.weights.h2h.T, gradients), to_cell


class GRU(Recurrence):
    """Gates r, z of `W x + U h + b`, `n = tanh(W x + b + r (U h + b'))`: `h' = (1 - z) n + z h`.

    Kept are n, r, z and the product with the state that r is multiplied with: the input's products come first, the state's last.
    """

    gates = 3
    rows = 4

    @classmethod
    def saved_shapes(cls, steps: int, batch: int, units: int) -> list[Shape]:
        return [(steps, 4 * units, batch)]

    def bias(self) -> Array:
        units, weights = self.units, self.weights
        both = weights.i2h_bias[: 2 * units] + weights.h2h_bias[: 2 * units]
        return self.xp.concatenate([weights.i2h_bias[2 * units :], both, weights.h2h_bias[2 * units :]])

    def step(self, products: Array, state: Array, cell: Array | None, saved: Sequence[Array]) -> tuple[Array, Array | None]:
        xp, units = self.xp, self.units
        kept = saved[0] if saved else xp.empty((4 * units, state.shape[1]), state.dtype)
        new, both, gated = kept[:units], kept[units : 3 * units], kept[3 * units :]
        xp.dot(self.weights.h2h, state, out=kept[units:])
        kept[units:] += self.biases[units:]
        both += products[: 2 * units]
        squash(xp, both)
        xp.multiply(both[:units], gated, out=new)
        new += products[2 * units :]
        new += self.biases[:units]
        xp.tanh(new, out=new)
        result = state - new
        result *= both[units:]
        result += new
        return result, None

    def step_back(
        self, to_state: Array, to_cell: Array | None, state: Array, cell: Array | None, new: Array, saved: Sequence[Array], step: int,
        over: Array | None,
    ) -> tuple[Array, Array, Array | None]:  # fmt: skip
        xp, units = self.xp, self.units
        new, reset, update, gated = (saved[0][low : low + units] for low in range(0, 4 * units, units))
        gradients = xp.empty_like(saved[0])
        to_new, to_reset, to_update, to_gated = (gradients[low : low + units] for low in range(0, 4 * units, units))
        passed = to_state * update
        xp.subtract(to_state, passed, out=to_new)
        xp.subtract(state, new, out=to_update)
        to_update *= passed
        to_update *= 1 - update
        to_new *= 1 - new * new
        xp.multiply(to_new, reset, out=to_gated)
        xp.multiply(to_gated, gated, out=to_reset)
        to_reset *= 1 - reset
        silence(gradients, over)
        passed += xp.dot(self.weights.h2h.T, gradients[units:])
        return gradients, passed, None

    def weight_gradients(self, gradients: Array, data: Array, before: Array, to: Weights) -> None:
        units, write = self.units, self.products.write
        write(gradients[units : 3 * units], (data, to.i2h[: 2 * units]))
        write(gradients[:units], (data, to.i2h[2 * units :]))
        write(gradients[units:], (before, to.h2h))
        sums = self.products.row_sums(gradients)
        to.h2h_bias[...] = sums[units:]
        to.i2h_bias[: 2 * units] = sums[units : 3 * units]
        to.i2h_bias[2 * units :] = sums[:units]

    def to_data(self, gradients: Array) -> Array:
        units, i2h = self.units, self.weights.i2h
        result = self.products.dot(gradients[units : 3 * units].T, i2h[: 2 * units])
        result += self.products.dot(gradients[:units].T, i2h[2 * units :])
        return result


RECURRENCES: dict[str, type[Recurrence]] = {"gru": GRU, "lstm": LSTM, "rnn_relu": ReluElman, "rnn_tanh": TanhElman}
