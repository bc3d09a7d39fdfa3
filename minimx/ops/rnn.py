"""The recurrent layers RNN, LSTM and GRU as one operator: all steps, layers and directions at once.

All parameters come as one vector, as MXNet and cuDNN have them: for each layer and, in it, each direction the weights of the input, those
of the state, and those of the projection; after all weights, in the same order, the biases. Layers run one after the other, in a
bidirectional one the second direction from the end; what a step computes is in recurrence.py. Cells, which do one step with ordinary
operators, are in gluon/rnn. Book: chapter 4.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..base import ArgumentError, MXNetError, OutOfRangeError
from ..op import NOT_GIVEN, Array, How, Kind, Op, Shape, Spec, T, apply, attributes, beside, hidden, is_constant, register
from ..rules import filled, require_ndim, same_dtype
from .checks import accurate, require_choice, require_float, require_input, require_shape
from .recurrence import RECURRENCES, Course, Recurrence, Weights, weight_shapes

if TYPE_CHECKING:
    from typing_extensions import Unpack


@attributes
class Recurrent(Op):
    """What the layer and its gradient share: the attributes, and where everything lies in the vectors."""

    kind = Kind.GEMM

    state_size: int
    num_layers: int
    mode: str
    bidirectional: bool = False
    p: float = 0.0
    state_outputs: bool = False
    projection_size: int | None = None
    lstm_state_clip_min: float | None = None
    lstm_state_clip_max: float | None = None
    lstm_state_clip_nan: bool = False
    use_sequence_length: bool = False
    training: bool = hidden(default=False)

    @property
    def has_cell(self) -> bool:
        return self.mode == "lstm"

    @property
    def directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def length(self) -> int:
        """Of the state of one direction."""
        return self.projection_size or self.state_size

    @property
    def recurrence(self) -> type[Recurrence]:
        return RECURRENCES[self.mode]

    @property
    def drops(self) -> bool:
        return self.training and self.p > 0 and self.num_layers > 1

    @property
    def states(self) -> int:
        """How many arrays of states there are: with an LSTM the cells, too."""
        return 2 if self.has_cell else 1

    def check(self) -> None:
        """Raise ArgumentError for attributes that make no layer."""
        require_choice(self, "mode", self.mode, *RECURRENCES)
        for what in ("state_size", "num_layers", "projection_size"):
            value = getattr(self, what)
            if value is not None and value < 1:
                raise ArgumentError(f"RNN: {what}={value} is not positive")
        if not 0 <= self.p < 1:
            raise ArgumentError(f"RNN: p={self.p} is not a fraction of [0, 1)")
        bounds = self.lstm_state_clip_min, self.lstm_state_clip_max
        if not self.has_cell:
            for what in ("projection_size", "lstm_state_clip_min", "lstm_state_clip_max"):
                if getattr(self, what) is not None:
                    raise ArgumentError(f"RNN: {what} is for mode='lstm' only, got mode={self.mode!r}")
        if bounds != (None, None) and (None in bounds or not bounds[0] <= bounds[1]):  # type: ignore[operator]  # they are numbers then
            raise ArgumentError(
                f"RNN: lstm_state_clip_min={bounds[0]} and lstm_state_clip_max={bounds[1]} are no interval; give both, the smaller first"
            )

    @property
    def clip(self) -> tuple[float, float, bool] | None:
        if self.lstm_state_clip_min is None or self.lstm_state_clip_max is None:
            return None
        return self.lstm_state_clip_min, self.lstm_state_clip_max, self.lstm_state_clip_nan

    # ---- the vector of parameters

    def parameter_shapes(self, inputs: int) -> list[Weights]:
        """The shapes of the parameters of all layers and directions, for data whose last axis is `inputs` long."""
        lengths = [inputs, *[self.directions * self.length] * (self.num_layers - 1)]
        shapes = (weight_shapes(self.recurrence.gates, self.state_size, length, self.projection_size) for length in lengths)
        return [each for each in shapes for _ in range(self.directions)]

    def parameter_count(self, inputs: int) -> int:
        """How many numbers the parameters are: by a formula, as somebody may ask for any number of layers."""

        def count(length: int) -> int:
            weights = weight_shapes(self.recurrence.gates, self.state_size, length, self.projection_size)
            return sum(math.prod(shape) for shape in weights if shape is not None)

        return self.directions * (count(inputs) + (self.num_layers - 1) * count(self.directions * self.length))

    def inputs_for(self, count: int) -> int:
        """The length of the data's last axis with which there are `count` parameters (roughly, if there is none)."""
        fixed = self.parameter_count(0)
        return (count - fixed) // (self.directions * self.recurrence.gates * self.state_size)

    def unpacked(self, vector: Array, inputs: int) -> list[list[Weights]]:
        """Views of the parameters, for each layer a list of its directions."""
        shapes = self.parameter_shapes(inputs)
        found: list[dict[str, Any]] = [{} for _ in shapes]
        low = 0
        for names in (("i2h", "h2h", "h2r"), ("i2h_bias", "h2h_bias")):  # first all weights, then all biases
            for views, each in zip(found, shapes):
                for name in names:
                    shape = getattr(each, name)
                    size = 0 if shape is None else math.prod(shape)
                    views[name] = None if shape is None else vector[low : low + size].reshape(shape)
                    low += size
        weights = [Weights(**views) for views in found]
        return [weights[low : low + self.directions] for low in range(0, len(weights), self.directions)]

    # ---- what a forward pass in training keeps for the backward pass, in one vector

    def kept_shapes(self, data: Shape) -> list[Shape]:
        """For each layer and direction what a recurrence saves; then the outputs of all layers but the last, and what dropped them."""
        steps, batch, _ = data
        each = self.recurrence.saved_shapes(steps, batch, self.state_size)
        outputs = [(steps, batch, self.directions * self.length)] * (self.num_layers - 1)
        return each * (self.num_layers * self.directions) + outputs * (2 if self.drops else 1)

    def kept_count(self, data: Shape) -> int:
        """The numbers of all, and one more, which says in which order the axes of what is saved lie: see `turned`."""
        return sum(map(math.prod, self.kept_shapes(data))) + 1

    def kept(self, vector: Array, data: Shape) -> tuple[list[list[Array]], list[Array], list[Array]]:
        """Views: saved arrays for each layer and direction, outputs of the layers but the last, and dropout's factors of those."""
        views = []
        low = 0
        for shape in self.kept_shapes(data):
            views.append(vector[low : low + math.prod(shape)].reshape(shape))
            low += math.prod(shape)
        between = self.num_layers - 1
        count = len(views) - between * (2 if self.drops else 1)
        each = count // (self.num_layers * self.directions)
        saved = [views[number * each : (number + 1) * each] for number in range(self.num_layers * self.directions)]
        return saved, views[count : count + between], views[count + between :]

    def turned(self, vector: Array, saved: list[list[Array]]) -> list[list[Array]]:
        """What was saved in the other order: with the batch first, where it is wanted last, or the other way."""

        def other(array: Array) -> Array:
            steps, rows, batch = array.shape
            if vector[-1]:
                return array.reshape(steps, batch, rows).transpose(0, 2, 1)
            return array.transpose(0, 2, 1).copy().reshape(array.shape)

        return [[other(array) for array in each] for each in saved]

    def of_direction(self, output: Array, direction: int) -> Array:
        """The part of a layer's output (T, N, D R) that one direction makes."""
        return output[:, :, direction * self.length : (direction + 1) * self.length]

    def courses(self, xp: Any, steps: int, lengths: Array | None) -> list[Course]:
        """The order of the steps of each direction. Raises OutOfRangeError for lengths that are none."""
        if lengths is not None and lengths.size and not (float(lengths.min()) >= 0 and float(lengths.max()) <= steps):
            raise OutOfRangeError(f"RNN: sequence_length has numbers outside [0, {steps}], but there are {steps} steps")
        return [Course.of(xp, steps, bool(direction), lengths) for direction in range(self.directions)]

    def forward(
        self,
        xp: Any,
        recurrence: Any,
        data: Array,
        parameters: Array,
        states: Sequence[Array],
        lengths: Array | None,
        vector: Array | None,
        key: Any,
    ) -> tuple[Array, list[Array]]:
        """The output and the last states, all of one floating dtype; `vector` takes what the backward pass needs, if it is there.

        `recurrence`: a class of recurrence.py, or what is called as they are.
        """
        saved, between, masks = ([], [], []) if vector is None else self.kept(vector, data.shape)
        finals = [xp.empty(each.shape, data.dtype) for each in states]
        courses = self.courses(xp, len(data), lengths)
        generator = key.generator(xp) if self.drops and vector is not None else None
        output = data
        for layer, weights in enumerate(self.unpacked(parameters, data.shape[2])):
            is_last = layer == self.num_layers - 1
            inputs = output
            shape = (*data.shape[:2], self.directions * self.length)
            output = between[layer] if between and not is_last else beside(xp, parameters, shape, data.dtype)
            for direction, each in enumerate(weights):
                number = layer * self.directions + direction
                first = [state[number] for state in states]
                last = recurrence(xp, each, self.clip).forward(
                    inputs, first[0], first[1] if self.has_cell else None, courses[direction],
                    self.of_direction(output, direction), saved[number] if saved else (),
                )  # fmt: skip
                for final, value in zip(finals, last):
                    final[number] = value.T
            if masks and generator is not None and not is_last:
                drawn = generator.random(output.shape, dtype=xp.float32)
                xp.multiply(drawn >= self.p, data.dtype.type(1 / (1 - self.p)), out=masks[layer], dtype=data.dtype)
                output = output * masks[layer]
        if vector is not None:
            vector[-1] = recurrence.batch_first
        return output, finals


@register("RNN")
class RecurrentLayer(Recurrent):
    inputs: ClassVar = ("data", "parameters", "state", "state_cell?", "sequence_length?")
    required = ("state_size", "num_layers", "mode")
    needs_key = True
    needs_training = True
    saves_outputs: ClassVar[bool | tuple[int, ...]] = True

    @property
    def num_outputs(self) -> int:
        return 1 + self.states + (1 if self.training else 0)

    @property
    def num_visible(self) -> int:
        return 1 + self.states if self.state_outputs else 1

    def wants(self, name: str) -> bool:
        return self.has_cell if name == "state_cell" else self.use_sequence_length

    def infer(
        self, data: Spec, parameters: Spec, state: Spec, state_cell: Spec | None = None, sequence_length: Spec | None = None
    ) -> tuple[Spec, ...]:
        self.check()
        require_float(self, data)
        require_ndim(self, "data", data, 3, axes=("steps", "batch", "features"))
        advice = "an LSTM has it, with state_size units, the others do not"
        require_input(self, "state_cell", state_cell, self.has_cell, advice)
        advice = "pass it with use_sequence_length=True, or leave it out"
        require_input(self, "sequence_length", sequence_length, self.use_sequence_length, advice)
        same_dtype(self, data, parameters, state, *(() if state_cell is None else (state_cell,)))
        steps, batch, inputs = data.shape
        layers = self.num_layers * self.directions
        reason = f"{self._words()} for data of shape {data.shape}"
        require_shape(self, "parameters", parameters, (self.parameter_count(inputs),), reason)
        require_shape(self, "state", state, (layers, batch, self.length), reason)
        if state_cell is not None:
            require_shape(self, "state_cell", state_cell, (layers, batch, self.state_size), reason)
        if sequence_length is not None:
            require_shape(self, "sequence_length", sequence_length, (batch,), f"data of shape {data.shape}")
        output = data.with_shape((steps, batch, self.directions * self.length))
        found = (output, state) if state_cell is None else (output, state, state_cell)
        wide = "float32" if data.dtype == "float16" else data.dtype
        return (*found, Spec.of((self.kept_count(data.shape),), wide)) if self.training else found

    def _words(self) -> str:
        return f"{self.mode} of {self.num_layers} layer{'s' * (self.num_layers > 1)}{', bidirectional' * self.bidirectional},"

    def fill(
        self, data: Spec | None, parameters: Spec | None, state: Spec | None, *others: Spec | None
    ) -> tuple[Spec | None, ...]:
        self.check()
        if data is None or data.ndim != 3:
            return data, parameters, state, *others
        _, batch, inputs = data.shape
        layers = self.num_layers * self.directions
        if inputs:
            parameters = filled(parameters, (self.parameter_count(inputs),), data)
        state = filled(state, (layers, batch, self.length), data)
        cell, lengths = (*others, None, None)[:2]
        cell = filled(cell, (layers, batch, self.state_size), data) if self.has_cell else cell
        lengths = filled(lengths, (batch,), data) if self.use_sequence_length else lengths
        return (data, parameters, state, cell, lengths)[: 3 + len(others)]

    def kernel(self, xp: Any, *arrays: Any, key: Any = None) -> tuple[Array, ...]:
        return self.run(xp, self.recurrence, *arrays, **({} if key is None else {"key": key}))

    def run(
        self, xp: Any, recurrence: Any, data: Array, parameters: Array, state: Array, state_cell: Array | None = None,
        sequence_length: Array | None = None, key: Any = None,
    ) -> tuple[Array, ...]:  # fmt: skip
        """The outputs, with steps as `recurrence` makes them."""
        wide = [accurate(xp, each) for each in (data, parameters, state, state_cell) if each is not None]
        vector = beside(xp, parameters, (self.kept_count(data.shape),), wide[0].dtype) if self.training else None
        output, finals = self.forward(xp, recurrence, wide[0], wide[1], wide[2:], sequence_length, vector, key)
        results = [each.astype(data.dtype, copy=False) for each in (output, *finals)]
        return tuple(results) if vector is None else (*results, vector)

    def vjp(self, g: Any, y: Any, *inputs: Any) -> tuple[Any, ...]:
        heads = g[: 1 + self.states]
        heads = (*heads, *[None] * (3 - len(heads)))
        wants_data = not is_constant(inputs[0])
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        adjoint = RecurrentAdjoint(**fields, wants_data=wants_data)
        operands = (*inputs, *[None] * (5 - len(inputs)))
        found = apply(adjoint, *heads, *operands, *((y[0], y[-1]) if self.training else (None, None)))
        to_data = found[0] if wants_data else None
        return (to_data, *found[int(wants_data) :], *[None] * (5 - 2 - self.states))[: len(inputs)]


@register("_backward_RNN")
class RecurrentAdjoint(Recurrent):
    """Gradients of data (if it `wants_data`), parameters, state and state_cell from those of the outputs, which may be absent.

    `output` and `kept` are what the forward pass made in training; outside training the steps are taken again.
    """

    wants_data: bool = hidden(default=True)

    inputs: ClassVar = (
        "head?", "state_head?", "cell_head?", "data", "parameters", "state", "state_cell?", "sequence_length?", "output?", "kept?",
    )  # fmt: skip

    @property
    def num_outputs(self) -> int:
        return int(self.wants_data) + 1 + self.states

    def infer(
        self, head: Spec | None, state_head: Spec | None, cell_head: Spec | None, data: Spec, parameters: Spec, state: Spec,
        state_cell: Spec | None = None, *rest: Spec | None,
    ) -> tuple[Spec, ...]:  # fmt: skip
        found = (parameters, state) if state_cell is None else (parameters, state, state_cell)
        return (data, *found) if self.wants_data else found

    def kernel(self, xp: Any, *arrays: Array) -> tuple[Array, ...]:
        return self.run(xp, self.recurrence, *arrays)

    def run(
        self, xp: Any, recurrence: Any, head: Array | None, state_head: Array | None, cell_head: Array | None, data: Array,
        parameters: Array, state: Array, state_cell: Array | None = None, sequence_length: Array | None = None,
        output: Array | None = None, kept: Array | None = None,
    ) -> tuple[Array, ...]:  # fmt: skip
        """The gradients, with steps as `recurrence` makes them."""
        narrow = data.dtype
        data, parameters, *states = (accurate(xp, each) for each in (data, parameters, state, state_cell) if each is not None)
        if output is None or kept is None:
            kept = beside(xp, parameters, (self.kept_count(data.shape),), data.dtype)
            output, _ = self.forward(xp, recurrence, data, parameters, states, sequence_length, kept, None)
        output = accurate(xp, output)
        to_output = None if head is None else accurate(xp, head)
        # Gradients of the last states become, direction by direction, those of the first ones.
        heads = (state_head, cell_head)[: self.states]
        to_states = [xp.zeros_like(each) if of is None else of.astype(each.dtype) for each, of in zip(states, heads)]
        gradient = beside(xp, parameters, parameters.shape, parameters.dtype)
        to_data = self._backward(
            xp, recurrence, to_output, data, parameters, states, sequence_length, output, kept, to_states, gradient
        )
        found = [gradient, *to_states] if to_data is None else [to_data, gradient, *to_states]
        return tuple(each.astype(narrow, copy=False) for each in found)

    def _backward(
        self, xp: Any, recurrence: Any, to_output: Array | None, data: Array, parameters: Array, states: Sequence[Array],
        lengths: Array | None, output: Array, vector: Array, to_states: Sequence[Array], gradient: Array,
    ) -> Array | None:  # fmt: skip
        """The gradient of `data`; those of the states and parameters are written into `to_states` and `gradient`."""
        saved, between, masks = self.kept(vector, data.shape)
        if xp is np and vector[-1] != recurrence.batch_first:  # a GPU has one kind, and would be waited for
            saved = self.turned(vector, saved)
        courses = self.courses(xp, len(data), lengths)
        weights, to_weights = (self.unpacked(each, data.shape[2]) for each in (parameters, gradient))
        for layer in range(self.num_layers - 1, -1, -1):
            result = output if layer == self.num_layers - 1 else between[layer]
            if to_output is not None and masks and layer < self.num_layers - 1:
                to_output = to_output * masks[layer]
            inputs = data if layer == 0 else between[layer - 1] * masks[layer - 1] if masks else between[layer - 1]
            to_inputs = None
            for direction in range(self.directions):
                number = layer * self.directions + direction
                first = [state[number] for state in states]
                last = [xp.ascontiguousarray(each[number].T) for each in to_states]
                part, *to_first = recurrence(xp, weights[layer][direction], self.clip).backward(
                    None if to_output is None else self.of_direction(to_output, direction), last[0], last[1] if self.has_cell else None,
                    inputs, first[0], first[1] if self.has_cell else None, courses[direction],
                    self.of_direction(result, direction), saved[number], to_weights[layer][direction], layer > 0 or self.wants_data,
                )  # fmt: skip
                for to_state, value in zip(to_states, to_first):
                    to_state[number] = value.T
                to_inputs = part if to_inputs is None else to_inputs + part
            to_output = to_inputs
        return to_output

    def vjp(self, g: Any, y: Any, *inputs: Any) -> tuple[Any, ...]:
        raise MXNetError(
            "RNN has no second derivative; unroll a cell of gluon.rnn, such as LSTMCell, which is made of operators that have one"
        )


def RNN(
    data: T | None = NOT_GIVEN,
    parameters: T | None = None,
    state: T | None = None,
    state_cell: T | None = None,
    sequence_length: T | None = None,
    state_size: int = 0,
    num_layers: int = 0,
    bidirectional: bool = False,
    mode: str = "",
    p: float = 0.0,
    state_outputs: bool = False,
    projection_size: int | None = None,
    lstm_state_clip_min: float | None = None,
    lstm_state_clip_max: float | None = None,
    lstm_state_clip_nan: bool = False,
    use_sequence_length: bool = False,
    **how: Unpack[How],
) -> T:
    """Recurrent layers, over all steps: with `a = W x + b + U h + b'` of the input x and the state h, each step makes the next state.

    `mode` "rnn_relu": `h' = max(a, 0)`; "rnn_tanh": `h' = tanh(a)`; "lstm": `c' = s(a_f) c + s(a_i) tanh(a_g)`,
    `h' = s(a_o) tanh(c')`, with blocks of a in the order i, f, g, o, s the sigmoid and c the cell; "gru": `h' = (1 - z) n + z h` with
    `r = s(a_r)`, `z = s(a_z)`, `n = tanh(W_n x + b_n + r (U_n h + b'_n))`, blocks in the order r, z, n.

    **Shapes** data (T, N, C), parameters (P,), state (L D, N, R), state_cell (L D, N, H), sequence_length (N,), result (T, N, D R): L
    layers, D directions, H `state_size`, R `projection_size` or else H. **Args** `parameters`: for each layer and direction W, U (and the
    projection), then for each b and b'. `p`: dropout between layers in training. `projection_size`: an LSTM's state is a matrix times h'.
    `lstm_state_clip_min`, `lstm_state_clip_max`: bounds of the cells, which with `lstm_state_clip_nan` NaN keeps, too, as the upper one.
    `sequence_length`: with `use_sequence_length`, the steps of each sequence; beyond them the output is 0 and the state stays, and a
    reversed direction begins at the last of them. **Returns** the result; with `state_outputs` a list of it, the last states and, of an
    LSTM, the last cells. **Raises** OutOfRangeError when a value is read, for a length outside [0, T]. **Gradient** exact; it has no
    gradient of its own. **Source** MXNet `RNN`, which on a CPU takes no notice of sequence_length and of the bounds.
    """
    op = RecurrentLayer(
        state_size, num_layers, mode, bidirectional, p, state_outputs, projection_size, lstm_state_clip_min, lstm_state_clip_max,
        lstm_state_clip_nan, use_sequence_length,
    )  # fmt: skip
    if op.use_sequence_length and not op.has_cell and sequence_length is None:
        state_cell, sequence_length = None, state_cell  # in a call by position only an LSTM has a cell before the lengths
    return apply(op, data, parameters, state, state_cell, sequence_length, **how)


__all__ = ["RNN"]
