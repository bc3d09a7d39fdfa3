"""A heavy operation as a task of its own: a matrix product, a convolution, a copy to another device.

Such work gains nothing from a segment, which exists to join small neighbours, so it is spared the writing down of slots:
the push of a large product returns sooner. It serves operations that make arrays or change their operands; those that write into a
part of memory, or into memory that somebody outside sees (`out=` a view), are recorded like all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..device import Context, CopyLane
from ..op import Kind, Op, Spec
from . import execute, writes
from .events import watch
from .task import Task
from .var import Failure, Var, View, as_error, lost, window, without_arrays

if TYPE_CHECKING:
    from .lanes import Scheduler


class OpTask(Task):
    """One operation. `enter` is called with the engine's lock held, `run` without."""

    __slots__ = (
        "op", "operands", "parts", "given", "specs", "outputs", "changed", "key", "where", "values", "dying", "failure",
    )  # fmt: skip

    def __init__(
        self, op: Op, specs: Sequence[Spec], context: Context, key: Any, where: tuple[str, int] | None, lane: Context | CopyLane
    ) -> None:
        super().__init__(context, op.name, lane)
        self.op = op
        self.specs = specs
        self.key = key
        self.where = where
        self.operands: list[Var | None] = []  # the memory that it reads
        self.parts: dict[int, tuple[int, Spec]] = {}  # of operands that are a part of it: where that begins, and its spec
        self.given: list[Spec] = []  # specs of the operands: only for those who watch
        self.outputs: list[Var] = []
        self.changed: list[Var] = []  # what the operator changes in place
        self.values: list[Any] = []
        self.dying: list[Any] = []  # what the targets were before; it is not freed while the engine's lock is held
        self.failure: Failure | None = None

    @property
    def queued_by(self) -> tuple[str, int] | None:
        return self.where

    @property
    def uses_blas(self) -> bool:
        return self.op.kind is Kind.GEMM or self.op.kind is Kind.PROGRAM

    @staticmethod
    def serves(targets: Sequence[View | None]) -> bool:
        """Whether results can be had as new memory: of all targets that there are."""
        return all(target is None or (target.offset < 0 and not target.var.shared) for target in targets)

    def enter(self, inputs: Sequence[View | None], scheduler: Scheduler, targets: Sequence[View | None]) -> list[Var]:
        """Become a reader of the inputs, and the writer of those that are changed, of the targets, and of new Vars for the outputs that
        have none; the Vars of the outputs."""
        if watch.recorder is not None:
            self.given = [view.spec for view in inputs if view is not None]
        self.operands = [None if view is None else view.var for view in inputs]
        self.parts = {
            position: (view.offset, view.spec) for position, view in enumerate(inputs) if view is not None and view.offset >= 0
        }
        self.read = dict.fromkeys([var for var in self.operands if var is not None], 0)
        self.reads(self.read, scheduler)
        changed = [self.operands[position] for position in self.op.mutates]
        self.changed = list(dict.fromkeys([var for var in changed if var is not None]))
        self.writes(self.changed, scheduler)
        for spec, target in zip(self.specs, targets):
            if target is None:
                var = Var()
                var.ready, var.writer = False, self
            else:
                var = target.var
                self.writes((var,), scheduler)
            self.outputs.append(var)
            self.nbytes += spec.nbytes
        return self.outputs

    def written_vars(self) -> list[Var]:
        return self.outputs + self.changed

    def run(self) -> None:
        for var in self.read:
            if var.failure is not None:
                self.failure = var.failure
                return
        try:
            self.values = self._compute()
        except BaseException as error:  # whatever it is, whoever reads the result must see it
            self.abandon(error)

    def _compute(self) -> list[Any]:
        writes.all_noted([var.value for var in self.changed])
        arrays = [None if var is None else var.value for var in self.operands]
        for position, part in self.parts.items():
            arrays[position] = window(arrays[position], *part)
        if self.op.reuses:  # nobody reads the targets any more
            memory = [var.value if _is_like(var, spec) else None for var, spec in zip(self.outputs, self.specs)]
            writes.all_noted(memory)
            arrays += memory
        return execute.run_now(self.op, arrays, list(self.specs), self.key, self.context, self.where)

    def abandon(self, error: BaseException) -> None:
        if isinstance(error, Exception) and any(var is not None and var.value is None for var in self.operands):
            error = lost()  # whatever the kernel said of what is not there
        self.failure = self.failed(as_error(without_arrays(error), self.name), self.name, self.where)

    def publish(self) -> list[Failure]:
        for position, var in enumerate(self.outputs):
            if self.failure is None:
                self.dying.append(var.value)
                var.value = self.values[position]
            self.release(var, self.failure)
        for var in self.changed:
            self.release(var, self.failure)
        return [] if self.failure is None or self.failure.seen else [self.failure]

    def forget(self) -> None:
        super().forget()
        self.operands, self.outputs, self.changed, self.values, self.dying = [], [], [], [], []
        self.parts = {}


def _is_like(var: Var, spec: Spec) -> bool:
    """Whether the memory of a Var is an array of `spec` in host memory."""
    value = var.value
    return var.failure is None and type(value) is np.ndarray and value.dtype is spec.dtype and value.shape == spec.shape
