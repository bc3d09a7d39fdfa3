"""An operator that runs graphs: the base of loops and branches (control_flow.py).

Such an operator holds *subgraphs*: what a step of a loop computes, or a branch. A subgraph has variables of its own; `places` says which
input of the operator each of them stands for. Files write subgraphs with their node.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from ..base import FileFormatError
from ..fields import spelt
from ..op import Op, Shape
from .graph import Entry, auxiliary, topological_order

Shapes: TypeAlias = "Sequence[Shape | None]"
DTypes: TypeAlias = "Sequence[np.dtype[Any] | None]"


class Subgraph:
    """A graph with the order of its variables. Two are equal only if they are the same object."""

    __slots__ = ("heads", "order", "program", "states", "variables")

    def __init__(self, heads: Sequence[Entry]) -> None:
        self.heads = tuple(heads)
        self.order = topological_order(heads)
        self.variables = [node for node in self.order if node.op is None]
        states = auxiliary(self.order)
        self.states = [position for position, node in enumerate(self.variables) if node in states]
        self.program: Any = None  # what runs it, made when it is first run


class Composite(Op):
    """An operator on any number of inputs with `subgraphs`."""

    composite: ClassVar[bool] = True
    inputs: ClassVar[tuple[str, ...]] = ("data*",)
    #: How many subgraphs there are.
    graphs: ClassVar[int] = 1

    if TYPE_CHECKING:
        num_args: int  # inputs and subgraphs together
        subgraphs: tuple[Subgraph, ...]  # a hidden field of each subclass

    def places(self, number: int) -> tuple[int, ...]:
        """For each variable of subgraph `number`, the input that it stands for."""
        raise NotImplementedError

    @property
    def aux(self) -> tuple[int, ...]:  # type: ignore[override]  # known only when the subgraphs are
        """Inputs that an operator in a subgraph keeps its state in."""
        found = {self.places(number)[position] for number, graph in enumerate(self.subgraphs) for position in graph.states}
        return tuple(sorted(found))

    def with_subgraphs(self, graphs: Sequence[Sequence[Entry]], inputs: int) -> Op:
        """This operator with the graphs of a file, for a node of so many inputs. Raises FileFormatError if they do not belong to it."""
        if len(graphs) != self.graphs:
            raise FileFormatError(f"{self.name}: the file has {len(graphs)} subgraphs, {self.graphs} are needed")
        op = dataclasses.replace(self, subgraphs=tuple(Subgraph(heads) for heads in graphs))
        op.check(inputs)
        return op

    def check(self, inputs: int) -> None:
        """Raise FileFormatError unless attributes, subgraphs and the number of inputs belong together."""
        self.require(self.num_args == inputs + self.graphs, f"num_args is {self.num_args}, but there are {inputs} inputs")
        for number, graph in enumerate(self.subgraphs):
            places = self.places(number)
            self.require(
                len(places) == len(graph.variables) and all(0 <= each < inputs for each in places),
                f"subgraph {number} has {len(graph.variables)} variables, which do not stand for the inputs {list(places)}",
            )

    def require(self, condition: bool, what: str) -> None:
        if not condition:
            raise FileFormatError(f"{self.name}: the attributes do not fit the node: {what}")

    def attrs(self) -> dict[str, str]:
        """The attributes as MXNet writes them: locations as lists."""
        values = {
            spelt(field): getattr(self, field.name) for field in dataclasses.fields(self) if not field.metadata.get("hidden")
        }
        return {key: str(list(value) if isinstance(value, tuple) else value) for key, value in values.items()}

    def vjp(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Never asked: the tape has the operators that `run` called. It is here because there is a gradient."""
        raise NotImplementedError

    def broadcasting(self) -> Composite:
        """The operator with Python's operators in its subgraphs broadcasting; itself if there are none. See broadcasting.py."""
        raise NotImplementedError

    def fitted(self, shapes: Shapes) -> Composite:
        """The operator with Python's operators broadcasting where inputs of these shapes ask for it; itself if nowhere."""
        raise NotImplementedError

    def run(self, operands: Sequence[Any], context: Any) -> list[Any]:
        """The output arrays on the device `context`, computed by operators that the tape records."""
        raise NotImplementedError

    def deduced_shapes(self, inputs: Shapes, outputs: Shapes) -> tuple[Shapes, Shapes]:
        """All that follows for the shapes of inputs and outputs from those that are known (0 for an unknown length, None for a shape)."""
        raise NotImplementedError

    def deduced_dtypes(self, inputs: DTypes, outputs: DTypes, shapes: Shapes) -> tuple[DTypes, DTypes]:
        """All that follows for the dtypes of inputs and outputs from those that are known; `shapes` of the inputs may help."""
        raise NotImplementedError
