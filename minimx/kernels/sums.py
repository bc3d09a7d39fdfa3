"""Sums over all axes but one, as the gradient of a bias is: a loop in machine code, which can be part of a chain (chain.py).

Where the axis that is kept is not the last, each row is added up in a register, and their totals in double precision. Where it is the
last, and short, so many rows are taken as one that it fills whole registers: 8 rows of 6 channels are three registers of 16 numbers. Those
are added up, 256 at a time and then their totals, and at last the 8 parts of each channel. So last digits may differ from NumPy's:
programs use it, which wait until it is compiled. The operator is in minimx/ops/reduce.py. Book: chapter 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..op import Op, Spec
from ..ops.reduce import Sum
from .fused import Loop, compiles
from .panels import LANES

LARGE = 1 << 12  # elements from which on a loop is sooner than NumPy by itself, and not only in a chain


class Sums(Loop):
    """A loop over the axis that is kept, which has `before` axes' elements before it and `after` behind it."""

    exact = False

    def __init__(self, before: int, channels: int, after: int) -> None:
        self.title = "sum"
        self.operators = 1
        self.axes = self.lengths = (before, channels, after)
        self.numbers = []
        together = LANES // math.gcd(channels, LANES)  # rows that fill whole registers
        units = channels
        if after > 1 or channels == 1:
            self.source = IMAGES
        elif together * channels > LONGEST or together > before:
            self.source = VECTORS
        elif together == 1:
            vectors = 1 if channels % (4 * LANES) else 4
            self.source, units = of_rows(vectors), channels // (vectors * LANES)
        else:
            self.source, units = TOGETHER, 1  # at the end each channel looks into several registers
            self.scratch = together * channels
            self.lengths = (before, channels, together)
        self.compile(2 + bool(self.scratch), ())
        work = before * channels * after
        self.share(
            units, work if self.source in (IMAGES, VECTORS) else work // 8
        )  # elements, or registers and what leads to them

    def sliced(self, part: int, whole: int) -> Sums:
        """The same for so many of the first axis' elements, of which there are `whole`."""
        before, channels, after = self.axes
        return Sums(before * part // whole, channels, after)


LONGEST = 1 << 11  # numbers of rows that are added together: 256 such rows stay in a core's cache
VECTORS = """\
void loop(float *x, float *r, long before, long channels, long after, long low, long high) {
    for (long i = low; i < high; i++) {
        r[i] = 0.0f;
    }
    for (long row = 0; row < before; row++) {
        for (long i = low; i < high; i++) {
            r[i] = r[i] + x[row * channels + i];
        }
    }
}
"""


def registers(rows: str, width: str, vectors: int, target: str) -> str:
    """Lines that add up so many rows of `width` numbers; of each, what is in the blocks of `vectors` registers from `low` to `high`."""
    parts = 4 // vectors  # rows at a time, so that no addition waits for the one before
    block, start = vectors * LANES, "x[(start * 256 + {row}) * {width} + at{vector} : {lanes}]"
    cells = [(part, vector) for part in range(parts) for vector in range(vectors)]
    at = [f" + {vector * LANES}" if vector else "" for vector in range(vectors)]

    def number(row: str, vector: int) -> str:
        return start.format(row=row, width=width, vector=at[vector], lanes=LANES)

    lines = [
        "for (long block = low; block < high; block++) {",
        *(f"    {target}[block * {block}{each} : {LANES}] = float{LANES}(0.0f);" for each in at),
        "}",
        f"for (long start = 0; start < ({rows} + 255) / 256; start++) {{",
        f"    long count = {rows} - start * 256 < 256 ? {rows} - start * 256 : 256;",
        "    for (long block = low; block < high; block++) {",
        f"        long at = block * {block};",
        *(f"        float{LANES} sum{part}_{vector} = float{LANES}(0.0f);" for part, vector in cells),
        f"        for (long row = 0; row < count / {parts}; row++) {{",
        *(
            f"            sum{part}_{vector} = sum{part}_{vector} + {number(f'row * {parts} + {part}', vector)};"
            for part, vector in cells
        ),
        "        }",
        f"        for (long row = count / {parts} * {parts}; row < count; row++) {{",
        *(f"            sum0_{vector} = sum0_{vector} + {number('row', vector)};" for vector in range(vectors)),
        "        }",
    ]
    for vector, each in enumerate(at):
        total = " + ".join(f"sum{part}_{vector}" for part in range(parts))
        lines.append(f"        {target}[at{each} : {LANES}] = {target}[at{each} : {LANES}] + ({total});")
    return "\n".join(f"    {line}" for line in [*lines, "    }", "}"])


def of_rows(vectors: int) -> str:
    """A loop over rows of whole blocks."""
    return f"""\
void loop(float *x, float *r, long before, long channels, long after, long low, long high) {{
{registers("before", "channels", vectors, "r")}
}}
"""


#: The third array is for the sums of the rows that are taken together.
TOGETHER = f"""\
void loop(float *x, float *r, float *t, long before, long channels, long together, long first, long last) {{
    long low = 0;
    long width = together * channels;
    long high = width / {LANES};
{registers("before / together", "width", 1, "t")}
    for (long channel = 0; channel < channels; channel++) {{
        float total = 0.0f;
        for (long part = 0; part < together; part++) {{
            total += t[part * channels + channel];
        }}
        for (long row = before / together * together; row < before; row++) {{
            total += x[row * channels + channel];
        }}
        r[channel] = total;
    }}
}}
"""
IMAGES = """\
void loop(float *x, float *r, long before, long channels, long after, long low, long high) {
    for (long channel = low; channel < high; channel++) {
        double total = 0.0;
        for (long image = 0; image < before; image++) {
            for (long start = 0; start < (after + 4095) / 4096; start++) {
                float part = 0.0f;
                long end = start * 4096 + 4096 < after ? start * 4096 + 4096 : after;
                for (long i = start * 4096; i < end; i++) {
                    part += x[(image * channels + channel) * after + i];
                }
                total += double(part);
            }
        }
        r[channel] = float(total);
    }
}
"""


def fits(op: Op, specs: Sequence[Spec | None]) -> bool:
    """Whether an operator is a sum over all axes but one."""
    data = specs[0] if specs else None
    if type(op) is not Sum or data is None or data.dtype.name != "float32" or not data.size or not compiles():
        return False
    return len(op.plan(data.shape)[0]) == data.ndim - 1


def loop_of(op: Op, specs: Sequence[Spec | None]) -> Loop:
    """The loop of an operator that `fits`."""
    data = specs[0]
    assert isinstance(op, Sum)
    assert data is not None
    axes = op.plan(data.shape)[0]
    [kept] = [axis for axis in range(data.ndim) if axis not in axes]
    return Sums(math.prod(data.shape[:kept]), data.shape[kept], math.prod(data.shape[kept + 1 :]))
