"""Blocks that hold others: one after the other (Sequential), or side by side (Concurrent); each for plain and for hybrid ones."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, ClassVar

from ... import nd, sym
from ...base import ArgumentError
from ...nd import NDArray
from ..block import Block, HybridBlock
from ..parameter import ParameterDict

__all__ = ["Concurrent", "HybridConcurrent", "HybridSequential", "Sequential"]


def refuse_layers(container: Block, *given: Any) -> None:
    """Raise ArgumentError if blocks, or a list of them, are among the arguments with which a container is made."""
    for each in given:
        if isinstance(each, (Block, list, tuple)):
            name = type(container).__name__
            made = f"nn.{name}()" if type(container).__module__ == __name__ else f"{name}()"
            some = "*layers" if isinstance(each, (list, tuple)) else "nn.Dense(3), nn.Dense(2)"
            raise ArgumentError(
                f"{name}: layers are not given when it is made, they are added with add(*layers): net = {made}; net.add({some})"
            )


class _Stack(Block):
    """What the containers share: they are lists of blocks."""

    is_container: ClassVar[bool] = True

    def __init__(self, prefix: str | None = None, params: ParameterDict | None = None, *layers: Block) -> None:
        refuse_layers(self, prefix, params, *layers)
        super().__init__(prefix, params, *layers)

    def add(self, *blocks: Block) -> None:
        """Put `blocks` at the end."""
        for block in blocks:
            self.register_child(block)

    def __repr__(self) -> str:
        return self._described(self._children.items())

    def __len__(self) -> int:
        return len(self._children)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._children.values()))

    def __getitem__(self, key: int | slice) -> Any:
        """A block by its number; for a slice a new container with the same blocks."""
        chosen = list(self._children.values())[key]
        if not isinstance(chosen, list):
            return chosen
        part = type(self)(prefix=self._prefix)
        with part.name_scope():
            part.add(*chosen)
        return part


class Sequential(_Stack):
    """Blocks that run one after the other. **Source** MXNet `nn.Sequential`.

    >>> from minimx.gluon import nn
    >>> net = nn.Sequential()
    >>> net.add(nn.Dense(8, activation="relu"), nn.Dense(2))
    >>> net.initialize()
    >>> net(mx.nd.ones((4, 3))).shape
    (4, 2)
    """

    def forward(self, x: Any) -> Any:
        for block in self._children.values():
            x = block(x)
        return x

    def hybridize(self, active: bool = True, **kwargs: Any) -> None:
        """Hybridize all children that can be; each makes a graph of its own. Warns if HybridSequential would make a single one."""
        if self._children and all(isinstance(child, HybridBlock) for child in self._children.values()):
            warnings.warn(
                f"All children of this Sequential layer '{self.prefix}' are HybridBlocks. Consider using HybridSequential for the best "
                "performance.",
                stacklevel=2,
            )
        super().hybridize(active, **kwargs)


class HybridSequential(_Stack, HybridBlock):
    """Hybrid blocks that run one after the other. **Source** MXNet `nn.HybridSequential`."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        for block in self._children.values():
            x = block(x)
        return x


class Concurrent(Sequential):
    """Blocks that all get the same input; their outputs are joined along `axis`. **Source** MXNet `gluon.contrib.nn.Concurrent`."""

    def __init__(self, axis: int = -1, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        refuse_layers(self, axis)
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def forward(self, x: Any) -> Any:
        outputs = [block(x) for block in self._children.values()]
        return (nd if isinstance(outputs[0], NDArray) else sym).concat(*outputs, dim=self.axis)


class HybridConcurrent(HybridSequential):
    """Hybrid blocks that all get the same input; their outputs are joined along `axis`. **Source** MXNet
    `gluon.contrib.nn.HybridConcurrent`.

    >>> from minimx.gluon import nn
    >>> net = nn.HybridConcurrent(axis=1)
    >>> net.add(nn.Dense(8), nn.Identity())
    >>> net.initialize()
    >>> net(mx.nd.ones((4, 3))).shape
    (4, 11)
    """

    def __init__(self, axis: int = -1, prefix: str | None = None, params: ParameterDict | None = None) -> None:
        refuse_layers(self, axis)
        super().__init__(prefix=prefix, params=params)
        self.axis = axis

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.concat(*[block(x) for block in self._children.values()], dim=self.axis)
