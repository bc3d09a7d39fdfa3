"""Groups of operators in a program's source: a loop in machine code, and what NumPy does while there is none.

    if not loop0(x, y):                   # minimx/kernels/fused.py and folds.py
        def group0(tiles): ...            # a walk over tiles that fit a core's cache
        share_out(tiles_of_300000, group0)

Which operators form a group the pass of fusion says (passes/fusion.py). On a GPU a group is a kernel. Book: chapter 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..engine import execute
from ..kernels import cupy, folds, fused, groups
from ..op import Op, Spec
from .graph import Entry, Node
from .names import Names
from .passes.fusion import fits_tiles, shape_of_rows
from .passes.memory import Plan, Where, takes_out
from .passes.typed import TypedGraph, operator
from .ufuncs import written

if TYPE_CHECKING:
    from .runs import Kernel, Run


class GroupWriter:
    """The part of codegen.Writer that writes groups: lines of the function, `lines`, and what it knows of values."""

    graph: TypedGraph
    plan: Plan
    names: Names
    values: dict[Entry, str]  # their names in the function
    loops: dict[str, Any]  # groups in machine code, and chains, by the function's names for them
    run: Run  # kernels that may become one call
    chains: bool
    head: list[str]
    lines: list[str]

    def _write_group(self, number: int, step: tuple[Node, ...]) -> None:
        """A loop in machine code, and what NumPy does while there is none: a walk over tiles, or one operator after the other."""
        inside = {(node, 0) for node in step}
        operands = list(
            dict.fromkeys(entry for node in step for entry in node.inputs if entry is not None and entry not in inside)
        )
        outer = {entry: self.values[entry] for entry in operands}  # operand or result -> the name of its array
        made = [(node, 0) for node in step if self.plan.buffers[node, 0].where is not Where.TILE]
        places = []
        for node, _ in made:
            outer[node, 0] = self._name(node, 0)
            memory = self._memory(node) or self._fresh(self.graph.specs[node, 0])
            places.append(f"{outer[node, 0]} = {memory}  # {self.graph.specs[node, 0].shape}")
        loop = self._loop(number, step, operands, made)
        if loop is None:
            self._end_run()
            self.lines += places
        before = len(self.lines)
        if self._is_tiled(step) and (loop is None or self.graph.specs[step[0], 0].size > execute.TILE):
            self._write_tiles(number, step, outer)
        else:
            self._write_one_by_one(step, outer)
        if loop is None:
            return
        arrays = list(outer.values())
        lines = [f"if not {loop}({', '.join(arrays)}):", *(f"    {line}" for line in self.lines[before:])]
        del self.lines[before:]
        self._add(self.loops[loop], arrays, [*places, *lines], places, lambda: lines)

    def _is_tiled(self, step: tuple[Node, ...]) -> bool:
        return all(fits_tiles(self.graph, node) for node in step)

    def _write_one_by_one(self, step: tuple[Node, ...], outer: dict[Entry, str]) -> None:
        """The operators of a group, each on whole arrays; what nobody else reads lies in fresh memory."""
        values = dict(outer)
        for node in step:
            op, entry = operator(node), (node, 0)
            arguments = [values[operand] for operand in node.inputs if operand is not None]
            inputs = [self.graph.specs[operand] for operand in node.inputs if operand is not None]
            name = outer.get(entry) or self.names.new(node.name)
            out = name if entry in outer and takes_out(node) else ""
            values[entry] = name
            keywords = [f"out={out}"] if out else []
            lines = written(op, name, arguments, inputs, self.graph.specs[entry], out)
            if lines is None:
                kernel = self._kernel(op, [self.graph.specs[entry]], bool(out))
                lines = [f"{name} = {kernel}({', '.join(['np', *arguments, *keywords])})"]
            self.lines += lines

    def _write_tiles(self, number: int, step: tuple[Node, ...], arrays: dict[Entry, str]) -> None:
        """A function that goes over tiles, and a call that shares them out among the cores."""
        size = self.graph.specs[step[0], 0].size
        specs = self.graph.specs
        outer = {
            entry: self._flat(name, specs[entry], "-1" if specs[entry].size == size else "()") for entry, name in arrays.items()
        }
        function = self.names.new(f"group{number}")
        tiles = _Tiles(self, step, outer, size)
        self.lines += [
            f"def {function}(tiles):  # {', '.join(dict.fromkeys(operator(node).name.strip('_') for node in step))}",
            *(f"    {name} = take({dtype!r})" for name, dtype in tiles.scratch.items()),
            "    for low, high in tiles:",
            *(f"        {line}" for line in tiles.lines),
            *(f"    give_back({name})" for name in tiles.scratch),
            f"share_out({self._bounds(size)}, {function})",
        ]

    def _loop(self, number: int, step: tuple[Node, ...], operands: list[Entry], made: list[Entry]) -> str | None:
        """The name of the group's loop in machine code; None if it has none."""
        loop = self._compiled_loop(step, operands, made) if fused.compiles() else None
        return None if loop is None else self._enter_loop(number, loop)

    def _enter_loop(self, number: int, loop: fused.Loop) -> str:
        """A name for a loop."""
        name = self._called(("loop", number), f"loop{number}", loop)
        self.loops[name] = loop
        self.head.append(f"# {name} is a loop in machine code: {loop.title}")
        return name

    def _compiled_loop(self, step: tuple[Node, ...], operands: list[Entry], made: list[Entry]) -> fused.Loop | None:
        specs = self.graph.specs
        group = self._grouped(step, operands, made)
        if any(folds.folds(operator(node)) for node in step):
            given, results = [specs[entry] for entry in operands], [specs[node, 0] for node in step]
            return folds.RowLoop(folds.group_of(shape_of_rows(self.graph, step), given, group.steps, results, group.wanted))
        if not all(fused.fits(operator(node), [specs[each] for each in node.inputs if each], specs[node, 0]) for node in step):
            return None
        walk = fused.walk_of(group.shape, [specs[entry].shape for entry in operands])
        return None if walk is None else fused.Loop(group, walk)

    def _grouped(self, step: tuple[Node, ...], operands: list[Entry], made: list[Entry]) -> groups.Group:
        """A group as those who write its source want it. `made`: the values that somebody will read."""
        specs = self.graph.specs
        numbers = {entry: number for number, entry in enumerate([*operands, *((node, 0) for node in step)])}
        steps = tuple(
            groups.Step(operator(node), tuple(numbers[entry] for entry in node.inputs if entry), specs[node, 0].dtype)
            for node in step
        )
        dtypes = tuple(specs[entry].dtype for entry in operands)
        return groups.Group(specs[step[0], 0].shape, dtypes, steps, tuple(numbers[entry] for entry in made))

    def _write_fused(self, number: int, step: tuple[Node, ...]) -> None:
        """A call of one kernel of a GPU for a group; values that nobody else reads are never stored."""
        inside = {(node, 0) for node in step}
        outer = list(dict.fromkeys(entry for node in step for entry in node.inputs if entry is not None and entry not in inside))
        wanted = [node for node in step if self.plan.buffers[node, 0].where is not Where.TILE]
        group = self._grouped(step, outer, [(node, 0) for node in wanted])
        name = self._called(("fused", number), f"fused{number}", cupy.Fused(group))
        self.head.append(f"# {name} is one kernel of the GPU: {', '.join(operator(node).name.strip('_') for node in step)}")
        operands = [self.values[entry] for entry in outer]
        targets = ", ".join(self._name(node, 0) for node in wanted)
        self.lines.append(f"[{targets}] = {name}({', '.join(['np', *operands])})  # {group.shape}")

    def after_tile(self, node: Node, step: tuple[Node, ...]) -> Sequence[str]:
        """Lines to follow those that compute a tile of `node`, one of the group `step`: see timing.py."""
        return ()

    def _flat(self, name: str, spec: Spec, shape: str) -> str:
        if len(spec.shape) == 1 and shape == "-1":
            return name
        flat = self.names.new(f"{name}_flat")
        self.lines.append(f"{flat} = {name}.reshape({shape})")
        return flat

    def _bounds(self, size: int) -> str:
        tiles = [(low, min(low + execute.TILE, size)) for low in range(0, size, execute.TILE)]
        return self._called(("tiles", size), f"tiles_of_{size}", tiles)

    # ---- what Writer has for them

    def _name(self, node: Node, index: int) -> str:
        raise NotImplementedError

    def _memory(self, node: Node) -> str | None:
        raise NotImplementedError

    def _fresh(self, spec: Spec) -> str:
        raise NotImplementedError

    def _add(
        self, kernel: Kernel, arrays: list[str], plain: list[str], memory: list[str], otherwise: Callable[[], list[str]]
    ) -> None:
        raise NotImplementedError

    def _end_run(self) -> None:
        raise NotImplementedError

    def _kernel(self, op: Op, specs: list[Spec], writes: bool) -> str:
        raise NotImplementedError

    def _called(self, key: Any, wish: str, value: Any) -> str:
        raise NotImplementedError


class _Tiles:
    """The lines that a group does for one tile, and the names of the scratch tiles it needs."""

    def __init__(self, writer: GroupWriter, step: tuple[Node, ...], outer: dict[Entry, str], size: int) -> None:
        self.scratch: dict[str, str] = {}
        self.lines: list[str] = []
        specs = writer.graph.specs
        names = writer.names
        last = {entry: node for node in step for entry in node.inputs if entry is not None}
        values: dict[Entry, str] = {}
        idle: dict[str, list[str]] = {}  # dtype -> scratch tiles that nobody reads any more
        home: dict[Entry, str] = {}  # value that exists as a tile only -> its scratch
        for node in step:
            op = operator(node)
            for entry in node.inputs:
                assert entry is not None
                if entry not in values:
                    if specs[entry].size == size:
                        values[entry] = names.new(f"{outer[entry]}_tile")
                        self.lines.append(f"{values[entry]} = {outer[entry]}[low:high]")
                    else:
                        values[entry] = outer[entry]
            entry = (node, 0)
            for operand in dict.fromkeys(node.inputs):
                if operand in home and last[operand] is node:
                    idle.setdefault(specs[operand].dtype.name, []).append(home.pop(operand))
            if entry in outer:
                out = f"{outer[entry]}[low:high]"
            else:
                dtype = specs[entry].dtype.name
                tile = idle[dtype].pop() if idle.get(dtype) else names.new(f"t{len(self.scratch)}")
                self.scratch.setdefault(tile, dtype)
                if last.get(entry) is not None:
                    home[entry] = tile
                else:
                    idle.setdefault(dtype, []).append(tile)
                out = f"{tile}[: high - low]"
            values[entry] = name = names.new(node.name)
            arguments = [values[operand] for operand in node.inputs if operand is not None]
            inputs = [specs[operand] for operand in node.inputs if operand is not None]
            lines = written(op, name, arguments, inputs, specs[entry], out)
            self.lines += lines or [
                f"{name} = {writer._kernel(op, [specs[entry]], True)}({', '.join(['np', *arguments])}, out={out})"
            ]
            self.lines += writer.after_tile(node, step)
