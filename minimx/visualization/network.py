"""The picture that `plot_network(symbol)` makes of a graph: what is drawn, and how it becomes DOT or SVG text.

DOT is the language of Graphviz. Where the package `graphviz` is installed the picture is one of its objects, as in MXNet; otherwise it is
a NetworkPlot, which writes the same DOT and draws its SVG itself. The data stands at the bottom, the output at the top.
"""

from __future__ import annotations

import html
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..base import ArgumentError, DTypeError, shown
from ..files import PathLike, as_path, replace_file
from ..sym import Symbol
from ..sym.graph import Entry, Node, topological_order
from .layered import Point, arrange
from .summary import shapes_of

WEIGHT_LIKE = (
    "_weight", "_bias", "_beta", "_gamma", "_moving_var", "_moving_mean", "_running_var", "_running_mean",
)  # fmt: skip
BOX = {"shape": "box", "fixedsize": "true", "width": "1.3", "height": "0.8034", "style": "filled"}
INPUT, WITH_WEIGHTS, ACTIVATION, NORMALIZATION, POOLING, SHAPING, OTHER = (
    "#8dd3c7", "#fb8072", "#ffffb3", "#bebada", "#80b1d3", "#fdb462", "#fccde5",
)  # fmt: skip
COLORS = {
    "Convolution": WITH_WEIGHTS, "FullyConnected": WITH_WEIGHTS, "Activation": ACTIVATION, "LeakyReLU": ACTIVATION,
    "BatchNorm": NORMALIZATION, "Pooling": POOLING, "Concat": SHAPING, "Flatten": SHAPING, "Reshape": SHAPING,
}  # fmt: skip

#: What graphviz's pictures have beyond these.
GRAPHVIZ = (
    "view",
    "pipe",
    "unflatten",
    "attr",
    "node",
    "edge",
    "edges",
    "subgraph",
    "clear",
    "copy",
    "format",
    "engine",
    "graph_attr",
)


class Box(NamedTuple):
    """A node as it is drawn."""

    name: str
    label: str
    kind: str  # of operator; "" for a variable
    attrs: dict[str, str]


class Arrow(NamedTuple):
    """An edge from the box `start`, a number, to the box `end` that uses it."""

    start: int
    end: int
    label: str


def plot_network(
    symbol: Symbol,
    title: str = "plot",
    save_format: str = "pdf",
    shape: Mapping[str, Sequence[int]] | None = None,
    dtype: Mapping[str, Any] | None = None,
    node_attrs: Mapping[str, str] | None = None,
    hide_weights: bool = True,
) -> Any:
    """A picture of the graph of `symbol`, which a notebook shows.

    **Args** `shape`, `dtype`: shapes and dtypes of the data by name; edges are then labelled with those of what flows along them, shapes
    without the batch. `node_attrs`: attributes of Graphviz for all nodes. `hide_weights`: leave out parameters, which are recognized by
    their names. `title`: names the files; `save_format`: of the picture that Graphviz renders. **Returns** a `graphviz.Digraph` if that
    package is installed, else a NetworkPlot. **Raises** TypeError for anything but a Symbol; ValueError if shapes or dtypes do not follow
    from those given. Warns of several nodes with one name, which are one node in DOT. **Source** MXNet `visualization.plot_network`.

    >>> from minimx import sym
    >>> net = sym.Activation(sym.FullyConnected(sym.var("data"), num_hidden=8, name="fc"), act_type="relu", name="relu")
    >>> picture = plot_network(net, shape={"data": (2, 3)})
    >>> picture.source.count("->")
    2
    """
    if not isinstance(symbol, Symbol):
        raise ArgumentError(f"plot_network: symbol must be a Symbol, got {shown(symbol)}")
    texts = node_attrs or {}
    if not isinstance(texts, Mapping) or not all(isinstance(each, str) for each in (*texts, *texts.values())):
        raise ArgumentError(f"plot_network: node_attrs must be a dict of strings, got {shown(node_attrs)}")
    order = topological_order(symbol.entries)
    _warn_of_repeated([node.name for node in order])
    shapes = None if shape is None else shapes_of(symbol, shape, "plot_network")
    dtypes = None if dtype is None else _dtypes_of(symbol, dtype)
    drawn = [node for node in order if not (hide_weights and node.op is None and node.name.endswith(WEIGHT_LIKE))]
    number = {node: position for position, node in enumerate(drawn)}
    boxes = [_box(node, texts) for node in drawn]
    arrows = [
        Arrow(number[entry[0]], number[node], _flow(entry, shapes, dtypes))
        for node in drawn
        for entry in node.inputs
        if entry is not None and entry[0] in number
    ]
    try:
        from graphviz import Digraph
    except ImportError:
        return NetworkPlot(title, boxes, arrows)
    picture = Digraph(name=title, format=save_format)
    for box in boxes:
        picture.node(name=box.name, label=box.label, **box.attrs)
    for arrow in arrows:
        ends = {"tail_name": boxes[arrow.end].name, "head_name": boxes[arrow.start].name}
        picture.edge(**ends, label=arrow.label, dir="back", arrowtail="open")
    return picture


def _warn_of_repeated(names: Sequence[str]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if repeated:
        message = (
            "There are multiple variables with the same name in your graph, "
            f"this may result in cyclic graph. Repeated names: {','.join(repeated)}"
        )
        warnings.warn(message, RuntimeWarning, stacklevel=3)


def _dtypes_of(symbol: Symbol, dtype: Mapping[str, Any]) -> dict[Entry, Any]:
    internals = symbol.get_internals()
    found = internals.infer_type(**dtype)[1]
    if found is None:
        raise DTypeError(f"plot_network: the dtypes given, of {', '.join(dtype) or 'nothing'}, do not determine all others")
    return dict(zip(internals.entries, found))


def _flow(entry: Entry, shapes: Mapping[Entry, Any] | None, dtypes: Mapping[Entry, Any] | None) -> str:
    """What to write at an edge: "64x32x32(float32)"."""
    text = "" if shapes is None else "x".join(map(str, shapes[entry][1:]))
    return text if dtypes is None else f"{text}({dtypes[entry].__name__})"


def _box(node: Node, attrs: Mapping[str, str]) -> Box:
    if node.op is None:
        return Box(node.name, node.name, "", {**BOX, **attrs, "shape": "oval", "fillcolor": INPUT})
    kind, own = node.op.name, node.attrs
    label = node.name
    if kind == "Convolution":
        label = f"Convolution\n{_lengths(own, 'kernel')}/{_lengths(own, 'stride') or '1'}, {own.get('num_filter')}"
    elif kind == "FullyConnected":
        label = f"FullyConnected\n{own.get('num_hidden')}"
    elif kind == "Activation":
        label = f"Activation\n{own.get('act_type')}"
    elif kind == "LeakyReLU":
        label = f"LeakyReLU\n{own.get('act_type', 'leaky')}"
    elif kind == "Pooling":
        pool = own.get("pool_type", "max")
        label = f"Pooling\n{pool}, {_lengths(own, 'kernel') or '[]'}/{_lengths(own, 'stride') or '1'}"
    return Box(node.name, label, kind, {**BOX, **attrs, "fillcolor": COLORS.get(kind, OTHER)})


def _lengths(attrs: Mapping[str, str], key: str) -> str:
    """A tuple in an attribute as "3x3"."""
    return "x".join(re.findall(r"\d+", attrs.get(key, "")))


class NetworkPlot:
    """A picture of a graph: SVG for a notebook and for files, DOT as text. Made by `plot_network`."""

    def __init__(self, title: str, boxes: Sequence[Box], arrows: Sequence[Arrow]) -> None:
        self.name = title
        self._boxes = list(boxes)
        self._arrows = list(arrows)

    def __str__(self) -> str:
        return self.source

    @property
    def source(self) -> str:
        """The picture in DOT, for Graphviz to draw."""
        lines = [f"digraph {_quoted(self.name)} {{"]
        for box in self._boxes:
            attrs = "".join(f" {key}={_quoted(value)}" for key, value in sorted(box.attrs.items()))
            lines.append(f"\t{_quoted(box.name)} [label={_quoted(box.label)}{attrs}]")
        for arrow in self._arrows:
            ends = f"{_quoted(self._boxes[arrow.end].name)} -> {_quoted(self._boxes[arrow.start].name)}"
            lines.append(f"\t{ends} [label={_quoted(arrow.label)} arrowtail=open dir=back]")
        return "\n".join([*lines, "}"])

    def save(self, filename: PathLike | None = None) -> str:
        """Write the DOT text to a file, `<title>.gv` unless told otherwise. **Returns** its name."""
        path = as_path(f"{self.name}.gv" if filename is None else filename)
        replace_file(path, [self.source.encode(), b"\n"])
        return path

    def render(self, filename: PathLike | None = None) -> str:
        """Write the picture to `<filename>.svg`, `filename` being the title unless told otherwise. **Returns** the file's name.

        Only SVG can be written without Graphviz, whatever `save_format` said.
        """
        path = as_path(self.name if filename is None else filename)
        path = path if path.endswith(".svg") else f"{path}.svg"
        replace_file(path, [self._repr_svg_().encode(), b"\n"])
        return path

    def __getattr__(self, name: str) -> Any:
        if name in GRAPHVIZ:
            raise AttributeError(
                f"plot_network: {name} is a method of the package graphviz, which is not installed: pip install graphviz"
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _repr_svg_(self) -> str:
        """The picture as SVG; Jupyter asks for it."""
        lines = [_lines(box) for box in self._boxes]
        widths = [max(7 * max(map(len, each)) + 20, 90.0) for each in lines]
        layout = arrange(widths, [(arrow.start, arrow.end) for arrow in self._arrows])

        def at(point: Point) -> Point:
            return point[0] + MARGIN, (layout.layers - 1 - point[1]) * LAYER + HEIGHT / 2 + MARGIN

        width, height = layout.width + 2 * MARGIN, max(layout.layers - 1, 0) * LAYER + HEIGHT + 2 * MARGIN
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="sans-serif" font-size="12">',
            f"<title>{html.escape(self.name)}</title>",
            f"<desc>{html.escape(self._in_words())}</desc>",
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
        ]
        parts += [_drawn_arrow([at(point) for point in path]) for path in layout.paths]
        parts += [
            _drawn_box(box, each, at(place), room) for box, each, place, room in zip(self._boxes, lines, layout.places, widths)
        ]
        for start, labels in self._labels().items():
            x, y = at(layout.places[start])
            text = html.escape(", ".join(labels))
            halo = 'paint-order="stroke" stroke="white" stroke-width="3"'
            parts.append(f'<text x="{x + 5:.1f}" y="{y - HEIGHT / 2 - 6:.1f}" font-size="11" fill="#333" {halo}>{text}</text>')
        return "\n".join([*parts, "</svg>"])

    def _labels(self) -> dict[int, list[str]]:
        """What is written above each box: the labels of the arrows that leave it, each once."""
        found: dict[int, list[str]] = {}
        for arrow in self._arrows:
            known = found.setdefault(arrow.start, [])
            if arrow.label and arrow.label not in known:
                known.append(arrow.label)
        return {start: labels for start, labels in found.items() if labels}

    def _in_words(self) -> str:
        """The graph for those who hear the picture read."""
        sources: list[list[str]] = [[] for _ in self._boxes]
        for arrow in self._arrows:
            sources[arrow.end].append(self._boxes[arrow.start].name)
        told = []
        for box, names in zip(self._boxes, sources):
            what = "an input" if not box.kind else " ".join(dict.fromkeys([box.kind, *box.label.split("\n")[1:]]))
            told.append(f"{box.name}, {what}" + (f", of {' and '.join(names)}" if names else ""))
        return f"A graph of {len(told)} nodes: {'; '.join(told)}."


def _quoted(text: str) -> str:
    """A word of DOT: as it is if it is a name or a number, else in quotation marks."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*|-?(\.[0-9]+|[0-9]+(\.[0-9]*)?)", text) and text.lower() not in KEYWORDS:
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


KEYWORDS = frozenset(("node", "edge", "graph", "digraph", "subgraph", "strict"))

# ---- SVG

LAYER, HEIGHT, MARGIN = 84.0, 40.0, 12.0  # from layer to layer, of a box, around it all


def _lines(box: Box) -> list[str]:
    """The text in a box: its label, and its operator where the label has the name alone."""
    lines = box.label.split("\n")
    return [*lines, box.kind] if box.kind and len(lines) == 1 else lines


def _drawn_box(box: Box, lines: Sequence[str], centre: Point, width: float) -> str:
    x, y = centre
    radius = HEIGHT / 2 if box.attrs["shape"] in ("oval", "ellipse") else 4
    fill = html.escape(box.attrs["fillcolor"])
    texts = [
        f'<text x="{x:.1f}" y="{y + 4 + 16 * (position - (len(lines) - 1) / 2):.1f}" text-anchor="middle" fill="#111">'
        f"{html.escape(line)}</text>"
        for position, line in enumerate(lines)
    ]
    return (
        f"<g><title>{html.escape(f'{box.name}: {box.kind}' if box.kind else box.name)}</title>"
        f'<rect x="{x - width / 2:.1f}" y="{y - HEIGHT / 2:.1f}" width="{width:.1f}" height="{HEIGHT:.1f}" rx="{radius:.1f}" '
        f'fill="{fill}" stroke="#444"/>{"".join(texts)}</g>'
    )


def _drawn_arrow(centres: Sequence[Point]) -> str:
    """A curve through `centres` that leaves and meets the boxes at its ends upright, and passes upright between those on its way."""
    (x, y), *between, (last_x, last_y) = centres
    curve, height = f"M{x:.1f},{y - HEIGHT / 2:.1f}", y - HEIGHT / 2
    for next_x, next_y in [*between, (last_x, last_y + 6)]:
        bottom, middle = next_y + HEIGHT / 2, (height + next_y + HEIGHT / 2) / 2
        curve += f" C{x:.1f},{middle:.1f} {next_x:.1f},{middle:.1f} {next_x:.1f},{bottom:.1f}"
        x, height = next_x, next_y - HEIGHT / 2
        curve += f" V{height:.1f}" if next_y != last_y + 6 else ""
    head = f"M{last_x:.1f},{last_y + HEIGHT / 2:.1f} l-4,7 h8 z"
    return f'<path d="{curve}" fill="none" stroke="#444"/><path d="{head}" fill="#444"/>'
