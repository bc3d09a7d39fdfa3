"""What the steps of recurrent layers do, as the text of loops in machine code: forth and back, for each kind of layer.

A loop does all steps of one layer in one direction for the sequences `low` to `high` of a batch, so that threads that share out a batch
never wait for each other. A step is a product of the state with the weights (panels.py), written into scratch memory, and a loop over the
units that makes of it, of the products of the input `x` with its weights `z`, and of the biases `b` the next state. The formulas are
those of ops/recurrence.py; here they stand for one unit of one sequence, and arrays of a step lie with the batch along their first axis and
the units along their second.

`h` and `c` hold the state and the cell and are written over at each step; `y` is the output, whose rows are `apart` numbers from each
other, and `head` its gradient. `e` and `f` hold the gradients of the state and the cell, `g` takes those of the products of all steps, and
`sums` their sums, a row for each part of the batch. Where a sequence is over (`t >= end`) the state stays, the output is 0, and so are the
gradients of products. Book: chapter 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .panels import ROWS, WIDTH, Loop, product


class Kind(NamedTuple):
    """What loops depend on; sizes are arguments of theirs."""

    mode: str
    keeps: bool = False  # what a way back needs; going forth only
    projects: bool = False
    clips: bool = False
    clips_nan: bool = False


LENGTHS = ("steps", "batch", "units", "length", "count", "spare", "apart", "start", "way", "rows")
SIGMOID = "float sigmoid(float x) { return 1.0f / (1.0f + exp(-x)); }"
BATCH = ["for (long row = low; row < high; row++) {", "long own = (row - low) * width;", "long end = ends[row];"]
UNITS = "for (long i = 0; i < units; i++) {"
PLACE = "long at = (t * batch + row) * units;"
PRODUCTS = "long from = (turn * tall + row - low) * width;"


def _written(arrays: str, body: list[str], numbers: tuple[str, ...] = ()) -> Loop:
    """The loop over all steps around `body`, which knows its step `t`."""
    before = [f"long width = count * {WIDTH};", f"long wide = spare * {WIDTH};", f"long part = low / {ROWS} * rows;"]
    before += ["for (long turn = 0; turn < steps; turn++) {", "long t = start + turn * way;"]
    return Loop(arrays.split(), LENGTHS, [*before, *body, "}"], numbers, SIGMOID)


def _written_forth(arrays: str, body: list[str], numbers: tuple[str, ...] = ()) -> Loop:
    """The same with the input's products `p`, of `block` steps at a time: those of one take longer, those of all fit no cache."""
    source = "x[((start + (done + {row} / tall) * way) * batch + low + {row} % tall) * inputs + k]"
    before = [
        f"long width = count * {WIDTH};", f"long wide = spare * {WIDTH};", "long tall = high - low;",
        "for (long group = 0; group < (steps + block - 1) / block; group++) {", "long done = group * block;",
        "long many = steps - done < block ? steps - done : block;", *product(source, "z", "p", "inputs", "count", "(many * tall)"),
        "for (long turn = 0; turn < many; turn++) {", "long t = start + (done + turn) * way;",
    ]  # fmt: skip
    return Loop(("x", "z", *arrays.split()), (*LENGTHS, "inputs", "block"), [*before, *body, "}", "}"], numbers, SIGMOID)


STATE = product("h[(low + {row}) * length + k]", "w", "s", "length", "count")
NEXT = [
    "h[row * length + i] = t < end ? new : h[row * length + i];",
    "y[(t * batch + row) * apart + i] = t < end ? new : 0.0f;",
]


def _gradients(start: str, each: Sequence[str]) -> list[str]:
    """Lines that write the gradients of a unit's products, one for each block of rows."""
    lines = []
    for number, value in enumerate(each):
        block = f"{number} * units + i"
        lines += [f"float d{number} = t < end ? {value} : 0.0f;", f"g[{start} + {block}] = d{number};"]
        lines.append(f"sums[part + {block}] = sums[part + {block}] + d{number};")
    return lines


def forth(kind: Kind) -> Loop:
    """The loop that goes forth."""
    if kind.mode == "lstm":
        return _lstm_forth(kind)
    return _gru_forth(kind) if kind.mode == "gru" else _elman_forth(kind)


def back(kind: Kind) -> Loop:
    """The loop that goes back."""
    if kind.mode == "lstm":
        return _lstm_back(kind)
    return _gru_back() if kind.mode == "gru" else _elman_back(kind)


# ---- h' = f(W x + U h + b)


def _elman_forth(kind: Kind) -> Loop:
    total = "float total = s[own + i] + p[from + i] + b[i];"
    new = "float new = tanh(total);" if kind.mode == "rnn_tanh" else "float new = total < 0.0f ? 0.0f : total;"
    return _written_forth("p b w h y ends s", [*STATE, *BATCH, PRODUCTS, UNITS, total, new, *NEXT, "}", "}"])


def _elman_back(kind: Kind) -> Loop:
    slope = "1.0f - new * new" if kind.mode == "rnn_tanh" else "(new > 0.0f ? 1.0f : 0.0f)"
    body = [
        *BATCH, PLACE, UNITS, "float new = y[(t * batch + row) * apart + i];",
        *_gradients("at", [f"(e[row * units + i] + head[at + i]) * ({slope})"]), "}", "}",
        *product("g[(t * batch + low + {row}) * units + k]", "w", "s", "units", "count"),
        *BATCH, UNITS, "e[row * units + i] = t < end ? s[own + i] : e[row * units + i];", "}", "}",
    ]  # fmt: skip
    return _written("w y head e g sums ends s", body)


# ---- LSTM: gates i, f, g, o, called enter, stay, fresh, leave


GATES = ("enter", "stay", "fresh", "leave")


def _lstm_forth(kind: Kind) -> Loop:
    """`gates` and `cells` take all gates and cells, for the way back."""
    body = [*STATE, *BATCH, PRODUCTS, "long to = (t * batch + row) * 4 * units;", UNITS]
    for number, gate in enumerate(GATES):
        function = "tanh" if gate == "fresh" else "sigmoid"
        place = f"{number} * units + i"
        body.append(f"float {gate} = {function}(s[own + {place}] + p[from + {place}] + b[{place}]);")
        if kind.keeps:
            body.append(f"gates[to + {place}] = {gate};")
    body += ["float before = c[row * units + i];", "float cell = stay * before + enter * fresh;"]
    if kind.clips:
        body.append("cell = cell < most ? cell : most;" if kind.clips_nan else "cell = cell > most ? most : cell;")
        body.append("cell = cell < least ? least : cell;")
    body += ["float new = leave * tanh(cell);", "float kept = t < end ? cell : before;", "c[row * units + i] = kept;"]
    if kind.keeps:
        body.append("cells[(t * batch + row) * units + i] = kept;")
    if kind.projects:
        body += ["u[(row - low) * units + i] = new;", "}", "}"]
        body += product("u[{row} * units + k]", "v", "q", "units", "spare")
        body += [*BATCH, "for (long i = 0; i < length; i++) {", "float new = q[(row - low) * wide + i];"]
    arrays = "p b w h c y ends" + " gates cells" * kind.keeps + " v" * kind.projects + " s" + " q u" * kind.projects
    return _written_forth(arrays, [*body, *NEXT, "}", "}"], ("least", "most") if kind.clips else ())


def _lstm_back(kind: Kind) -> Loop:
    """`gates` and `cells` are those of all steps, `first` is the cell before them.

    With a projection `parts` takes the gradients of what it made, and `hidden` what it made it of.
    """
    head = "e[row * length + i] + (t < end ? head[(t * batch + row) * length + i] : 0.0f)"
    body = []
    if kind.projects:
        body += [*BATCH, "for (long i = 0; i < length; i++) {"]
        body += [f"parts[(t * batch + row) * length + i] = t < end ? {head} : 0.0f;", "}", "}"]
        body += product("parts[(t * batch + low + {row}) * length + k]", "v", "q", "length", "spare")
    body += [
        "long earlier = turn == steps - 1 ? t : t + way;", *BATCH, PLACE, "long then = (earlier * batch + row) * units;",
        "long from = (t * batch + row) * 4 * units;", UNITS,
    ]  # fmt: skip
    body += [f"float {gate} = gates[from + {number} * units + i];" for number, gate in enumerate(GATES)]
    body += [
        "float before = turn == steps - 1 ? first[row * units + i] : cells[then + i];", "float cell = cells[at + i];",
        "float bent = tanh(cell);", f"float slope = {'q[(row - low) * wide + i]' if kind.projects else head};",
        "float through = f[row * units + i] + slope * leave * (1.0f - bent * bent);",
    ]  # fmt: skip
    if kind.projects:
        body.append("hidden[at + i] = bent * leave;")
    if kind.clips:
        body.append("through = through * (cell > least && cell < most ? 1.0f : 0.0f);")
    slopes = (
        "through * fresh * enter * (1.0f - enter)", "through * before * stay * (1.0f - stay)",
        "through * enter * (1.0f - fresh * fresh)", "slope * bent * leave * (1.0f - leave)",
    )  # fmt: skip
    body += _gradients("from", slopes)
    body += ["f[row * units + i] = t < end ? through * stay : f[row * units + i];", "}", "}"]
    body += product("g[(t * batch + low + {row}) * 4 * units + k]", "w", "s", "4 * units", "count")
    body += [*BATCH, "for (long i = 0; i < length; i++) {", "e[row * length + i] = t < end ? s[own + i] : e[row * length + i];"]
    arrays = "gates cells first w head e f g sums ends" + " parts hidden v" * kind.projects + " s" + " q" * kind.projects
    return _written(arrays, [*body, "}", "}"], ("least", "most") if kind.clips else ())


# ---- GRU: gates r, z, n, called reset, keep, fresh; `kept` has fresh, reset, keep, and the product that reset is multiplied with


def _gru_forth(kind: Kind) -> Loop:
    body = [
        *STATE, *BATCH, PRODUCTS, "long to = (t * batch + row) * 4 * units;", UNITS,
        "float reset = sigmoid(s[own + i] + p[from + i] + b[units + i]);",
        "float keep = sigmoid(s[own + units + i] + p[from + units + i] + b[2 * units + i]);",
        "float gated = s[own + 2 * units + i] + b[3 * units + i];",
        "float fresh = tanh(p[from + 2 * units + i] + b[i] + reset * gated);", "float new = fresh + keep * (h[row * length + i] - fresh);",
    ]  # fmt: skip
    if kind.keeps:
        body += [f"kept[to + {number} * units + i] = {each};" for number, each in enumerate(("fresh", "reset", "keep", "gated"))]
    return _written_forth("p b w h y ends" + " kept" * kind.keeps + " s", [*body, *NEXT, "}", "}"])


def _gru_back() -> Loop:
    """`states` are those before each step."""
    body = [*BATCH, PLACE, "long from = (t * batch + row) * 4 * units;", UNITS]
    body += [
        f"float {each} = kept[from + {number} * units + i];" for number, each in enumerate(("fresh", "reset", "keep", "gated"))
    ]
    body += [
        "float state = states[at + i];", "float slope = e[row * units + i] + (t < end ? head[at + i] : 0.0f);",
        "float passed = slope * keep;", "float inner = (slope - passed) * (1.0f - fresh * fresh);",
    ]  # fmt: skip
    slopes = ("inner", "inner * reset * gated * (1.0f - reset)", "(state - fresh) * passed * (1.0f - keep)", "inner * reset")
    body += _gradients("from", slopes)
    body += ["e[row * units + i] = t < end ? passed : e[row * units + i];", "}", "}"]
    body += product("g[((t * batch + low + {row}) * 4 + 1) * units + k]", "w", "s", "3 * units", "count")
    body += [*BATCH, UNITS, "e[row * units + i] = e[row * units + i] + (t < end ? s[own + i] : 0.0f);", "}", "}"]
    return _written("kept states w head e g sums ends s", body)
