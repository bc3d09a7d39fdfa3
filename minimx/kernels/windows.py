"""The largest of each window, and its gradient, as loops in machine code. The operators are in minimx/ops/pool.py.

NumPy goes over the data once for each point of the kernel; oneDNN has fast code for its own layouts only, and overlooks NaN. Where windows
lie side by side, each within the data, loops do with fewer passes: the way forward takes the largest of whole rows, and then of what is
left of them; the way back finds in one turn the first element of a window that equals its largest. Results are NumPy's to the bit, so
NumPy serves until a loop is compiled. Book: chapter 4.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..device import Context
from ..op import Spec
from .fused import Loop, compiles
from .groups import TYPES

if TYPE_CHECKING:
    from ..ops.pool import PoolingBase, PoolingFirst, PoolingLayer

MOST_POINTS = 16  # of a kernel, of which each becomes some instructions


class Windows(Loop):
    """A loop over images: `source` is its text, `arrays` how many it is called with."""

    exact = True

    def __init__(self, title: str, source: str, arrays: int, units: int, elements: int, lengths: tuple[int, ...] = ()) -> None:
        self.title = title
        self.operators = 1
        self.lengths = lengths
        self.numbers = []
        self.source = source
        self.compile(arrays, ())
        self.share(units, elements)


def fits(op: PoolingBase, data: Spec, result: Spec) -> bool:
    """Whether windows lie side by side, each within the data, on images whose channels come first."""
    if not compiles() or op.pool_type != "max" or op.global_pool or data.ndim != 4 or op.last(data.ndim):
        return False
    window = op.window
    within = all(
        (count - 1) * stride + kernel <= length
        for count, stride, kernel, length in zip(result.shape[2:], window.stride, window.kernel, data.shape[2:])
    )
    apart = all(kernel <= stride for kernel, stride in zip(window.kernel, window.stride))
    return within and apart and not any(window.pad) and math.prod(window.kernel) <= MOST_POINTS


def larger(kind: str, name: str, elements: list[str]) -> list[str]:
    """Lines that make `name` the largest of some elements; NaN, if one is."""
    lines = [f"{kind} {name}0 = {elements[0]};"]
    for number, element in enumerate(elements[1:]):
        here = f"{name}{number}"
        lines.append(f"{kind} e{number} = {element};")
        lines.append(f"{kind} {name}{number + 1} = {here} > e{number} || {here} != {here} ? {here} : e{number};")
    return lines


def largest(op: PoolingLayer, context: Context, data: Spec) -> Loop | None:
    """Max pooling, image by image: the largest of the rows under a window go to `t`, and of these the largest to the result."""
    result = op.infer(data)
    if not fits(op, data, result) or data.dtype.name != "float32":
        return None
    (high, wide), (down, right) = op.window.kernel, op.window.stride
    (length, width), (count, columns) = data.shape[2:], result.shape[2:]
    if columns * right > width:  # what is left of the rows would not lie evenly
        return None
    used = columns * right
    rows = larger("float", "v", [f"x[first + {row * width} + i]" for row in range(high)])
    points = larger("float", "v", [f"t[i * {right} + {column}]" for column in range(wide)])
    lines = [
        "void loop(float *x, float *r, float *t, long low, long high) {",
        "    for (long image = low; image < high; image++) {",
        f"        for (long row = 0; row < {count}; row++) {{",
        f"            long first = image * {length * width} + row * {down * width};",
        f"            for (long i = 0; i < {used}; i++) {{",
        *(f"                {line}" for line in rows),
        f"                t[row * {used} + i] = v{high - 1};",
        "            }",
        "        }",
        f"        for (long i = 0; i < {count * columns}; i++) {{",
        *(f"            {line}" for line in points),
        f"            r[image * {count * columns} + i] = v{wide - 1};",
        "        }",
        "    }",
        "}",
    ]
    made = Windows("Pooling", "\n".join(lines) + "\n", 3, math.prod(data.shape[:2]), data.size * 2)
    made.scratch = count * used
    return made


def first(op: PoolingFirst, context: Context, head: Spec, data: Spec, result: Spec) -> Loop | None:
    """The gradient of max pooling, image by image: each window's goes to its first largest element, the others get 0."""
    if not fits(op, data, result):
        return None
    window = op.window
    (length, width), (count, columns) = data.shape[2:], result.shape[2:]
    kind = TYPES[data.dtype.name]
    places = [f"at + {row * width + column}" for row in range(window.kernel[0]) for column in range(window.kernel[1])]
    inside = [
        f"long at = first + i * {window.stride[1]};",
        f"{kind} top = y[row * columns + i];",
        f"{kind} slope = g[row * columns + i];",
    ]
    inside.append("bool open0 = top == top;")
    for number, place in enumerate(places):
        inside += [
            f"bool hit{number} = open{number} && x[{place}] == top;",
            f"r[{place}] = hit{number} ? slope : 0.0f;",
            f"bool open{number + 1} = open{number} && !hit{number};",
        ]
    covers = window.kernel == window.stride and (length, width) == (count * window.stride[0], columns * window.stride[1])
    zeros = ["        for (long i = 0; i < size; i++) {", "            r[image * size + i] = 0.0f;", "        }"]
    lines = [
        f"void loop({kind} *g, {kind} *x, {kind} *y, {kind} *r, long size, long count, long columns, long low, long high) {{",
        "    for (long image = low; image < high; image++) {",
        *([] if covers else zeros),  # of elements under no window
        "        for (long line = 0; line < count; line++) {",
        f"            long first = image * size + line * {window.stride[0] * width};",
        "            long row = image * count + line;",
        "            for (long i = 0; i < columns; i++) {",
        *(f"                {line}" for line in inside),
        "            }",
        "        }",
        "    }",
        "}",
    ]
    lengths = (length * width, count, columns)
    return Windows("_backward_Pooling_max", "\n".join(lines) + "\n", 4, math.prod(data.shape[:2]), data.size * 2, lengths)
