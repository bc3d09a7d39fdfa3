"""Matching two sets one to one, the best pair first: bipartite_matching, and how MultiBoxTarget finds an anchor for each object.

The scores of all pairs are a matrix. The best of all is a match, which takes its row and its column out; then the best of what is left,
and so on. To search the whole matrix each time would be slow, and to sort it, too: anchors are many, and matches as few as objects. So
each line of the shorter side remembers where its own best is, and has to look again only when another line has taken that. Book: chapter 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import ShapeError
from ..op import Array, How, Op, Spec, T, apply, register
from .checks import require_float

if TYPE_CHECKING:
    from typing_extensions import Unpack


def greedy_matches(
    xp: Any, scores: Array, threshold: float, most: int | None = None, lines_first: bool = False
) -> list[tuple[int, int]]:
    """The pairs (line, place) of a matrix (lines, places) that are matched, the best first; `scores` are spoilt.

    Only scores above `threshold` count, and `most` matches are made. Of equal scores that at the lower place comes first, and at one
    place that of the lower line; `lines_first`: the lower line comes first.
    """
    found: list[tuple[int, int]] = []
    limit = min(scores.shape) if most is None else min(most, *scores.shape)
    if limit < 1:
        return found
    places = scores.argmax(axis=1)
    best = xp.take_along_axis(scores, places[:, None], axis=1)[:, 0]
    while len(found) < limit:
        top = best.max()
        if not top > threshold:
            break
        equal = xp.flatnonzero(best == top)
        line = int(equal[0] if lines_first else equal[places[equal].argmin()])
        place = int(places[line])
        found.append((line, place))
        scores[:, place] = -np.inf
        scores[line] = -np.inf
        stale = xp.flatnonzero(places == place)
        places[stale] = scores[stale].argmax(axis=1)
        best[stale] = scores[stale, places[stale]]
    return found


@register("_contrib_bipartite_matching")
class BipartiteMatching(Op):
    on_host = True
    saves_inputs = False
    saves_outputs = False

    threshold: float
    is_ascend: bool = False
    topk: int = -1

    @property
    def num_outputs(self) -> int:
        return 2

    def infer(self, data: Spec) -> tuple[Spec, ...]:
        require_float(self, data)
        if data.ndim < 2:
            raise ShapeError(
                f"{self.name}: data has shape {data.shape}, wants (..., N, M): a score for each pair of a row and a column"
            )
        return data.with_shape(data.shape[:-1]), data.with_shape((*data.shape[:-2], data.shape[-1]))

    def kernel(self, xp: Any, data: Array) -> tuple[Array, ...]:
        of_row = xp.full(data.shape[:-1], -1, data.dtype)
        of_column = xp.full((*data.shape[:-2], data.shape[-1]), -1, data.dtype)
        rows, columns = data.shape[-2:]
        if not data.size:
            return of_row, of_column
        sign = -1 if self.is_ascend else 1
        turned = columns < rows  # the shorter side makes the lines
        # MXNet counts before it compares: there is one match more than `topk` says.
        most = self.topk + 1 if self.topk > 0 else None
        examples = zip(data.reshape(-1, rows, columns), of_row.reshape(-1, rows), of_column.reshape(-1, columns))
        for matrix, row_marks, column_marks in examples:
            scores = xp.array(matrix.T if turned else matrix, order="C")
            scores *= sign
            scores[xp.isnan(scores)] = -np.inf
            threshold = scores.dtype.type(sign * self.threshold)
            for line, place in greedy_matches(xp, scores, threshold, most, lines_first=not turned):
                row, column = (place, line) if turned else (line, place)
                row_marks[row], column_marks[column] = column, row
        return of_row, of_column

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (None,)


def bipartite_matching(
    data: T, is_ascend: bool = False, threshold: float | None = None, topk: int = -1, **how: Unpack[How]
) -> list[T]:
    """Pair off rows and columns by their scores: the best pair first, then the best of the rows and columns that are left, and so on.

    **Shapes** data (..., N, M); two results: the column of each row (..., N), and the row of each column (..., M), -1 where there is none.
    **Args** `is_ascend`: the lowest score is the best; `threshold` is required: only scores above it are matched (below it, with
    `is_ascend`); `topk`: if more than 0, at most topk + 1 pairs, as in MXNet. Of equal scores the first in memory counts. **Gradient** 0.
    **Source** MXNet `contrib.bipartite_matching`.

    **Example**

    >>> from minimx import nd
    >>> rows, columns = nd.contrib.bipartite_matching(nd.array([[0.5, 0.6], [0.1, 0.2], [0.3, 0.4]]), threshold=1e-12)
    >>> rows.asnumpy().tolist(), columns.asnumpy().tolist()
    ([1.0, -1.0, 0.0], [2.0, 0.0])
    """
    return apply(BipartiteMatching(threshold, is_ascend, topk), data, **how)  # type: ignore[arg-type]  # None is refused with an error


__all__ = ["bipartite_matching"]
