"""BatchNorm and its gradient over channels that are the last axis, as loops in machine code. The operators are in minimx/ops/batchnorm.py.

Threads share *tiles* of some rows, of which they take one block of channels after the other: registers hold some channels of one row, so
that each channel is added up in a lane of its own. A first loop leaves the sums of each tile; their totals, in double precision, and what
follows from them are a few numbers, which NumPy works out; a second loop writes the results. The last block of channels reaches back so
that it is whole: some channels are computed twice. As in the operators' kernels, one pass is enough for mean and variance: it adds up the
distances from a guess, which is the mean of the first rows, and their squares. Where the channels are not last, NumPy adds up whole rows.
Book: chapter 5.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import storage
from ..device import Context
from ..op import Array, Spec
from .fused import compiles
from .panels import LANES, Job, Loop, shares

if TYPE_CHECKING:
    from ..ops.batchnorm import BatchNormBackward, BatchNormLayer, Channels

FEW = 1 << 12  # elements, below which NumPy takes hardly longer
NS_PER_ELEMENT = 0.02  # of each array in each pass: less than it takes, since another thread has to be woken for each pass
FIRST = 16  # rows whose mean is the guess
ROWS = 256  # of a tile
MOST = 4 if LANES == 16 else 2  # registers for a row of a block: with sums and constants there are several times as many


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

    def loop(self, arrays: Sequence[str], constants: Sequence[str], lines: Sequence[str]) -> Loop:
        """The loop that goes through `lines` for each block of each tile, which has `count` rows."""
        last = f"channels - {self.block.width}"
        body = [
            "for (long tile = low; tile < high; tile++) {",
            f"long count = rows - tile * {ROWS} < {ROWS} ? rows - tile * {ROWS} : {ROWS};",
            f"for (long block = 0; block < (channels + {self.block.width - 1}) / {self.block.width}; block++) {{",
            f"long at = block * {self.block.width} < {last} ? block * {self.block.width} : {last};",
            *self.each(*constants), *lines, "}", "}",
        ]  # fmt: skip
        return Loop(arrays, ("rows", "channels"), body)


@functools.cache
def sums(block: Block, one: str, other: str) -> Loop:
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
def results(block: Block, value: str, constants: tuple[str, ...]) -> Loop:
    """`y`, given in terms of `constants`, numbers for each channel."""
    text = Text(block)
    lines = text.each(f"{{y}} = {value};", row="row")
    written = [f"vector {{{name}_}} = [{name}];" for name in constants]
    return text.loop(("g", "x", "y", *constants), written, ["for (long row = 0; row < count; row++) {", *lines, "}"])


#: What is added up, and what is written, forth and back.
MOMENTS = ("({x} - {middle})", "({x} - {middle}) * ({x} - {middle})")
FORTH = ("({x} - {mean_}) * {slope_} + {shift_}", ("mean", "slope", "shift"))
PRODUCTS = ("{g}", "{g} * ({x} - {middle})")
BACK = ("({g} - {ones_} - ({x} - {mean_}) * {itself_}) * {slope_}", ("mean", "slope", "ones", "itself"))


class Norm:
    """The kernel of an operator with loops."""

    implementation = "loops in machine code"
    summed: tuple[str, str]
    written: tuple[str, tuple[str, ...]]

    def __init__(self, op: Channels, context: Context, data: Spec) -> None:
        self.op = op
        self.context = context
        self.spec = data
        self.rows, self.channels = op.seen(data.shape)[:2]
        self.tiles = math.ceil(self.rows / ROWS)
        block = block_of(self.channels)
        self.sums, self.results = sums(block, *self.summed), results(block, *self.written)

    def __call__(self, xp: Any, *arrays: Array) -> tuple[Array, ...]:
        """What the operator's own kernel gives."""
        if not (self.sums.is_compiled() and self.results.is_compiled()):
            return self.op.kernel(xp, *arrays)
        return self.kernel(*map(np.ascontiguousarray, arrays))

    def kernel(self, *arrays: Array) -> tuple[Array, ...]:
        raise NotImplementedError

    def run(self, loop: Loop, arrays: int, **given: Array) -> None:
        """Run a loop that reads or writes so many arrays as large as the data."""
        parts = shares(self.tiles, 1, NS_PER_ELEMENT * arrays * self.spec.size)
        loop(Job({**given, "rows": self.rows, "channels": self.channels}, parts, {}))

    def totals(self, head: Array, data: Array, centre: Array) -> tuple[Array, Array]:
        """The two sums over all rows, in double precision."""
        found = np.empty((2, self.tiles, self.channels), np.float32)
        self.run(self.sums, 1 if head is data else 2, g=head, x=data, centre=centre, s=found[0], t=found[1])
        one, other = found.sum(axis=1, dtype=np.float64)
        return one, other

    def result(self, head: Array, data: Array, **constants: Array) -> Array:
        """The result of the data's shape."""
        made = storage.empty(self.spec, self.context)
        single = {name: value.astype(np.float32) for name, value in constants.items()}
        self.run(self.results, 2 if head is data else 3, g=head, x=data, y=made, **single)
        return made


class Forward(Norm):
    op: BatchNormLayer
    summed, written = MOMENTS, FORTH

    def kernel(self, data: Array, gamma: Array, beta: Array, moving_mean: Array, moving_var: Array) -> tuple[Array, ...]:
        mean, variance = moving_mean.astype(np.float64), moving_var.astype(np.float64)
        if self.op.of_batch:
            guess = data.reshape(self.rows, self.channels)[:FIRST].mean(axis=0)
            off, square = (total / self.rows for total in self.totals(data, data, guess))
            mean, variance = guess + off, np.maximum(square - off * off, 0)
        scale = 1 / np.sqrt(variance + self.op.eps)
        result = self.result(data, data, mean=mean, slope=scale if self.op.fix_gamma else scale * gamma, shift=beta)
        return result, mean.astype(np.float32), scale.astype(np.float32)


class Backward(Norm):
    op: BatchNormBackward
    summed, written = PRODUCTS, BACK

    def kernel(
        self, head: Array, data: Array, gamma: Array, mean: Array, scale: Array, moving_mean: Array, moving_var: Array
    ) -> tuple[Array, ...]:
        op = self.op
        op.move(moving_mean, mean)
        op.move(moving_var, 1 / (scale * scale) - np.float32(op.eps))
        ones, itself = self.totals(head, data, mean)
        result = self.result(
            head, data, mean=mean, slope=scale if op.fix_gamma else scale * gamma, ones=ones / self.rows,
            itself=itself * scale * scale / self.rows,
        )  # fmt: skip
        to_gamma = np.zeros_like(gamma) if op.fix_gamma else (itself * scale).astype(np.float32)
        return result, to_gamma, ones.astype(np.float32)


def serves(op: Channels, data: Spec) -> bool:
    """Whether there are loops for data of float32: its channels are last, and it is large."""
    return compiles() and op.seen(data.shape)[2] == 1 and data.size >= FEW


def forward(op: BatchNormLayer, context: Context, data: Spec, *vectors: Spec) -> Forward | None:
    return Forward(op, context, data) if serves(op, data) else None


def backward(op: BatchNormBackward, context: Context, head: Spec, data: Spec, *vectors: Spec) -> Backward | None:
    return Backward(op, context, data) if serves(op, data) else None
