"""BatchNorm and its gradient over channels that are the last axis, as loops in machine code. The operators are in minimx/ops/batchnorm.py.

Threads share *tiles* of some rows, of which they take one block of channels after the other: registers hold some channels of one row, so
that each channel is added up in a lane of its own. A first loop leaves the sums of each tile; a second one adds these up in double
precision and works out from the totals the few numbers of each channel that a third one writes the results with. The last block of
channels reaches back so that it is whole: some channels are computed twice. As in the operators' kernels, one pass is enough for mean and
variance: it adds up the distances from a guess, which is the mean of the first rows, and their squares. The loops are called one by one,
or as links of a chain (chain.py), with the same result to the bit. Where the channels are not last, NumPy adds up whole rows.
Book: chapter 5.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from .. import storage
from ..device import Context
from ..op import Array, Spec
from . import machine
from .fused import Loop, compiles
from .panels import LANES, indented

if TYPE_CHECKING:
    from ..ops.batchnorm import BatchNormBackward, BatchNormLayer, Channels

FEW = 1 << 12  # elements, below which NumPy takes hardly longer
EASE = 10  # elements that count as one of other loops for whether threads share them: one has to be woken for each pass
FIRST = 16  # rows whose mean is the guess
ROWS = 256  # of a tile
MOST = 4 if LANES == 16 else 2  # registers for a row of a block: with sums and constants there are several times as many
ALIGNMENT = 64  # bytes


class Block(NamedTuple):
    """How many channels are worked on together: some registers, of so many lanes."""

    vectors: int
    lanes: int

    @property
    def width(self) -> int:
        return self.vectors * self.lanes


def block_of(channels: int) -> Block:
    """As many channels as the registers take."""
    kinds = [Block(vectors, LANES) for vectors in (4, 2) if vectors <= MOST]
    kinds += [Block(1, lanes) for lanes in (16, 8, 4) if lanes <= LANES]
    return next((each for each in kinds if each.width <= channels), Block(1, 1))


class Text:
    """Lines of a loop over the tiles from `low` to `high`, written once for all registers of a block, in which

    {g} {x} {y}   are its part of a row,          [name]   its part of an array with a number for each channel,
    {name}        is a variable of its own,       <name>   its part of an array with such numbers for each tile,
    {name+}       such a variable for each of several rows at a time, and `vector` its type.
    """

    def __init__(self, block: Block) -> None:
        self.block = block
        self.kind = f"float{block.lanes}" if block.lanes > 1 else "float"
        self.parts = 4 // block.vectors  # rows at a time, so that no addition waits for the one before

    def each(self, *lines: str, row: str = "", part: int = 0) -> list[str]:
        """Lines for each register of a block. `row` counts within the tile."""
        return [self._line(line, row, vector, part) for vector in range(self.block.vectors) for line in lines]

    def _line(self, line: str, row: str, vector: int, part: int) -> str:
        lanes = self.block.lanes
        begins = {"[": "at", "<": "tile * channels + at", "{": f"(tile * {ROWS} + {row}) * channels + at"}

        def written(found: re.Match[str]) -> str:
            bracket, name, several = found[1], found[2], found[3]
            if bracket == "{" and name not in ("g", "x", "y"):
                return f"{name}{vector}_{part}" if several else f"{name}{vector}"
            return f"{name}[{begins[bracket]} + {vector * lanes}{f' : {lanes}' if lanes > 1 else ''}]"

        return re.sub(r"([\[<{])([a-z]\w*)(\+?)[\]>}]", written, line).replace("vector ", f"{self.kind} ")

    def loop(self, arrays: Sequence[str], constants: Sequence[str], lines: Sequence[str]) -> str:
        """The loop that goes through `lines` for each block of each tile, which has `count` rows."""
        last = f"channels - {self.block.width}"
        body = [
            "for (long tile = low; tile < high; tile++) {",
            f"long count = rows - tile * {ROWS} < {ROWS} ? rows - tile * {ROWS} : {ROWS};",
            f"for (long block = 0; block < (channels + {self.block.width - 1}) / {self.block.width}; block++) {{",
            f"long at = block * {self.block.width} < {last} ? block * {self.block.width} : {last};",
            *self.each(*constants), *lines, "}", "}",
        ]  # fmt: skip
        return written(arrays, (), ("rows", "channels"), body)


def written(arrays: Sequence[str], numbers: Sequence[str], lengths: Sequence[str], body: Sequence[str]) -> str:
    """The text of a loop of arrays of float, but for `totals`, of `numbers`, given with their types, and of whole numbers."""
    parameters = [f"{'double' if name == 'totals' else 'float'} *{name}" for name in arrays]
    parameters += [*numbers, *(f"long {name}" for name in (*lengths, "low", "high"))]
    return indented([f"void loop({', '.join(parameters)}) {{", *body, "}"])


@functools.cache
def sums(block: Block, one: str, other: str) -> str:
    """The sums of two values over the rows of each tile, written to `s` and `t`. `centre` is a number for each channel."""
    text = Text(block)
    parts, values = range(text.parts), {"s": one, "t": other}

    def added(row: str, part: int) -> list[str]:
        return text.each(*(f"{{{name}+}} = {{{name}+}} + {value};" for name, value in values.items()), row=row, part=part)

    lines = [
        line for part in parts for line in text.each(*(f"vector {{{name}+}} = {text.kind}(0.0f);" for name in values), part=part)
    ]
    lines += [f"for (long row = 0; row < count / {text.parts}; row++) {{"]
    lines += [line for part in parts for line in added(f"row * {text.parts} + {part}", part)]
    lines += ["}", f"for (long row = count / {text.parts} * {text.parts}; row < count; row++) {{", *added("row", 0), "}"]
    others = [(part, vector, name) for part in parts[1:] for vector in range(block.vectors) for name in values]
    lines += [f"{name}{vector}_0 = {name}{vector}_0 + {name}{vector}_{part};" for part, vector, name in others]
    lines += text.each(*(f"<{name}> = {{{name}+}};" for name in values))
    return text.loop(("g", "x", "centre", "s", "t"), ["vector {middle} = [centre];"], lines)


@functools.cache
def results(block: Block, value: str, constants: tuple[str, ...]) -> str:
    """`y`, given in terms of `constants`, numbers for each channel."""
    text = Text(block)
    lines = text.each(f"{{y}} = {value};", row="row")
    held = [f"vector {{{name}_}} = [{name}];" for name in constants]
    return text.loop(("g", "x", "y", *constants), held, ["for (long row = 0; row < count; row++) {", *lines, "}"])


#: What is added up, and what is written, forth and back.
MOMENTS = ("({x} - {middle})", "({x} - {middle}) * ({x} - {middle})")
FORTH = ("({x} - {mean_}) * {slope_} + {shift_}", ("mean", "slope", "shift"))
PRODUCTS = ("{g}", "{g} * ({x} - {middle})")
BACK = ("({g} - {ones_} - ({x} - {mean_}) * {itself_}) * {slope_}", ("mean", "slope", "ones", "itself"))


#: The mean of the first rows.
GUESS = written(
    ("x", "guess"), (), ("first", "channels"),
    [
        "for (long channel = low; channel < high; channel++) {", "float sum = 0.0f;", "for (long row = 0; row < first; row++) {",
        "sum += x[row * channels + channel];", "}", "guess[channel] = sum / float(first);", "}",
    ],
)  # fmt: skip


def channelwise(arrays: Sequence[str], numbers: Sequence[str], lines: Sequence[str]) -> str:
    """A loop that adds up the sums `s` and `t` of all tiles and goes through `lines` for each channel, with their totals `one` and `other`.

    In them, [name] is the channel's number in an array.
    """
    body = [
        "for (long i = 2 * low; i < 2 * high; i++) {", "totals[i] = 0.0;", "}",
        "for (long tile = 0; tile < tiles; tile++) {", "for (long channel = low; channel < high; channel++) {",
        "totals[2 * channel] = totals[2 * channel] + double(s[tile * channels + channel]);",
        "totals[2 * channel + 1] = totals[2 * channel + 1] + double(t[tile * channels + channel]);", "}", "}",
        "for (long channel = low; channel < high; channel++) {", "double one = totals[2 * channel];",
        "double other = totals[2 * channel + 1];", *(re.sub(r"\[(\w+)\]", r"\1[channel]", line) for line in lines), "}",
    ]  # fmt: skip
    return written(("s", "t", "totals", *arrays), numbers, ("rows", "tiles", "channels"), body)


@functools.cache
def scales(of_batch: bool, fix_gamma: bool) -> str:
    """`mean`, `scale = 1 / sqrt(variance + eps)`, and `slope`, which is gamma times that."""
    of_sums = [
        "double off = one / double(rows);", "double square = other / double(rows) - off * off;",
        "double variance = square < 0.0 ? 0.0 : square;", "[mean] = float(double([guess]) + off);",
    ]  # fmt: skip
    lines = of_sums if of_batch else ["double variance = double([moving_var]);", "[mean] = [moving_mean];"]
    lines += ["double factor = 1.0 / sqrt(variance + eps);", "[scale] = float(factor);"]
    lines += [f"[slope] = float({'factor' if fix_gamma else 'factor * double([gamma])'});"]
    arrays = ("guess", "gamma", "moving_mean", "moving_var", "mean", "scale", "slope")
    return channelwise(arrays, ["double eps"], lines)


@functools.cache
def slopes(fix_gamma: bool) -> str:
    """The gradients of gamma and beta, what the data's is made with, and the running means moved on."""
    lines = [
        "[moving_mean] = [moving_mean] * keep + [mean] * new;",
        "[moving_var] = [moving_var] * keep + (1.0f / ([scale] * [scale]) - eps) * new;",
        f"[to_gamma] = {'0.0f' if fix_gamma else 'float(other * double([scale]))'};", "[to_beta] = float(one);",
        "[ones] = float(one / double(rows));",
        "[itself] = float(other * double([scale]) * double([scale]) / double(rows));",
        f"[slope] = [scale]{'' if fix_gamma else ' * [gamma]'};",
    ]  # fmt: skip
    arrays = ("gamma", "mean", "scale", "moving_mean", "moving_var", "to_gamma", "to_beta", "ones", "itself", "slope")
    return channelwise(arrays, ["float keep", "float new", "float eps"], lines)


#: What is added up, and what is written, forth and back.
MOMENTS = ("({x} - {middle})", "({x} - {middle}) * ({x} - {middle})")
FORTH = ("({x} - {mean_}) * {slope_} + {shift_}", ("mean", "slope", "shift"))
PRODUCTS = ("{g}", "{g} * ({x} - {middle})")
BACK = ("({g} - {ones_} - ({x} - {mean_}) * {itself_}) * {slope_}", ("mean", "slope", "ones", "itself"))


class Stage(Loop):
    """A loop of a kernel. Its last digits are not NumPy's."""

    exact = False
    operators = 1

    def __init__(self, source: str, arrays: int, numbers: Sequence[Any], lengths: Sequence[int], units: int, work: int) -> None:
        self.title = "BatchNorm"
        self.source = source
        self.numbers = [float(number) for number in numbers]
        self.lengths = tuple(lengths)
        self.compile(arrays, numbers)
        self.share(units, work)


class Call(NamedTuple):
    """A loop, and the names of the arrays that it is called with."""

    loop: Stage
    arrays: tuple[str, ...]


class Norm:
    """The kernel of an operator: loops, one after the other, over its inputs, its outputs and memory of its own."""

    implementation = "loops in machine code"
    outputs: ClassVar[tuple[str, ...]]

    def __init__(self, op: Channels, context: Context, data: Spec) -> None:
        self.op = op
        self.context = context
        self.spec = data
        self.rows, self.channels = op.seen(data.shape)[:2]
        self.tiles = math.ceil(self.rows / ROWS)
        self.block = block_of(self.channels)
        self.arrays = (*op.inputs, *self.outputs)  # what it is called with, in order
        self.calls: list[Call] = []
        self.own: dict[str, int] = {}  # where each array of its own begins, in bytes
        self.nbytes = 0  # of them all

    def _take(self, **counts: int) -> None:
        """Have memory for arrays of so many numbers of float32."""
        for name, count in counts.items():
            self.own[name] = self.nbytes
            self.nbytes += -(-4 * count // ALIGNMENT) * ALIGNMENT

    def _over_rows(self, source: str, *arrays: str) -> None:
        """Call a loop over the tiles."""
        large = {*arrays} & {"head", "data", self.outputs[0]}
        work = self.spec.size * len(large) // EASE
        self.calls.append(Call(Stage(source, len(arrays), (), (self.rows, self.channels), self.tiles, work), arrays))

    def _over_channels(self, source: str, *arrays: str, lengths: Sequence[int], numbers: Sequence[Any] = ()) -> None:
        """Call a loop over the channels."""
        work = lengths[-1] * self.channels
        self.calls.append(Call(Stage(source, len(arrays), numbers, (*lengths, self.channels), self.channels, work), arrays))

    @property
    def loops(self) -> list[Stage]:
        return [call.loop for call in self.calls]

    def __call__(self, xp: Any, *arrays: Array, out: Array | None = None) -> tuple[Array, ...]:
        """What the operator's own kernel gives, the first of it in `out` if that is given."""
        for loop in self.loops:
            loop.wait()
        if any(loop.code.function is None for loop in self.loops):
            return self.op.kernel(xp, *arrays, out=out)
        given = [np.ascontiguousarray(each) for each in arrays]
        vector = (self.channels,)
        made = [storage.empty(self.spec, self.context) if out is None else out]
        made += [np.empty(vector, np.float32) for _ in self.outputs[1:]]
        memory = np.empty(self.nbytes, np.uint8)
        places = dict(zip(self.arrays, map(machine.address, (*given, *made))))
        start = machine.address(memory)
        places.update((name, start + offset) for name, offset in self.own.items())
        for call in self.calls:
            call.loop.start([places[name] for name in call.arrays])
        for position in self.op.mutates:
            if given[position] is not arrays[position]:  # it has gaps
                arrays[position][...] = given[position]
        return tuple(made)


class Forward(Norm):
    outputs = ("result", "mean", "scale")

    def __init__(self, op: BatchNormLayer, context: Context, data: Spec) -> None:
        super().__init__(op, context, data)
        tiles = self.tiles if op.of_batch else 0  # of which there are sums
        count = tiles * self.channels
        self._take(s=count, t=count, totals=4 * self.channels, guess=self.channels, slope=self.channels)
        if op.of_batch:
            self._over_channels(GUESS, "data", "guess", lengths=(min(FIRST, self.rows),))
            self._over_rows(sums(self.block, *MOMENTS), "data", "data", "guess", "s", "t")
        arrays = ("s", "t", "totals", "guess", "gamma", "moving_mean", "moving_var", "mean", "scale", "slope")
        source, numbers = scales(op.of_batch, op.fix_gamma), [np.float64(op.eps)]
        self._over_channels(source, *arrays, lengths=(self.rows, tiles), numbers=numbers)
        self._over_rows(results(self.block, *FORTH), "data", "data", "result", "mean", "slope", "beta")


class Backward(Norm):
    outputs = ("to_data", "to_gamma", "to_beta")

    def __init__(self, op: BatchNormBackward, context: Context, data: Spec) -> None:
        super().__init__(op, context, data)
        count = self.tiles * self.channels
        self._take(s=count, t=count, totals=4 * self.channels, ones=self.channels, itself=self.channels, slope=self.channels)
        numbers = [np.float32(number) for number in (op.momentum, 1 - op.momentum, op.eps)]
        self._over_rows(sums(self.block, *PRODUCTS), "head", "data", "mean", "s", "t")
        arrays = ("s", "t", "totals", "gamma", "mean", "scale", "moving_mean", "moving_var", "to_gamma", "to_beta")
        found = ("ones", "itself", "slope")
        self._over_channels(slopes(op.fix_gamma), *arrays, *found, lengths=(self.rows, self.tiles), numbers=numbers)
        self._over_rows(results(self.block, *BACK), "head", "data", "to_data", "mean", "slope", "ones", "itself")


def serves(op: Channels, data: Spec) -> bool:
    """Whether there are loops for data of float32: its channels are last, and it is large."""
    return compiles() and op.seen(data.shape)[2] == 1 and data.size >= FEW


def forward(op: BatchNormLayer, context: Context, data: Spec, *vectors: Spec) -> Forward | None:
    return Forward(op, context, data) if serves(op, data) else None


def backward(op: BatchNormBackward, context: Context, head: Spec, data: Spec, *vectors: Spec) -> Backward | None:
    return Backward(op, context, data) if serves(op, data) else None
