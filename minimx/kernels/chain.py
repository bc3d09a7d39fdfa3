"""Several kernels, one after the other, as one call that leaves Python only once.

Each call of a kernel from Python costs some microseconds, which count where kernels are short; and while Python makes one device's calls,
another device's lane waits for Python's lock. A program knows beforehand which kernels follow each other and in which memory. So a run of
oneDNN's primitives and of loops in machine code is written down as a list of calls, functions with their arguments as plain numbers, and a
few lines of machine code go down the list: `PLAYER`. Before, they fill in where the arrays of this call lie. Loops share their work among
OpenMP's threads, which oneDNN uses, too.

A `Chain` is called with the arrays, and returns False, having done nothing, where it cannot serve: while a loop is not compiled, for an
array with gaps, in a process without the libraries. Who calls it then calls the kernels one by one. Book: chapter 5.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import storage
from ..device import Context
from ..op import Array, Spec
from . import machine, threads
from .batchnorm import Norm
from .choice import enabled
from .fused import Loop, compiles
from .onednn import library
from .onednn.primitive import ALIGNMENT, KEPT, Frame as Handles, Routine

if TYPE_CHECKING:
    from . import Faster

BRIEF = 30_000.0  # nanoseconds, in which another thread has hardly taken over Python's lock

PLAYER = """\
define i64 @loop(ptr %calls, i64 %many, ptr %patches, i64 %places, ptr %pointers) nounwind {{
entry:
  br label %patch
patch:
  %p = phi i64 [0, %entry], [%p.next, %fill]
  %p.more = icmp slt i64 %p, %places
  br i1 %p.more, label %fill, label %begin
fill:
  %p.row = getelementptr inbounds [3 x i64], ptr %patches, i64 %p
  {patch}
  %p.from = getelementptr inbounds i64, ptr %pointers, i64 %which
  %base = load i64, ptr %p.from
  %address = add i64 %base, %offset
  %target = inttoptr i64 %place to ptr
  store i64 %address, ptr %target
  %p.next = add i64 %p, 1
  br label %patch
begin:
  br label %call
call:
  %c = phi i64 [0, %begin], [%c.next, %after]
  %c.more = icmp slt i64 %c, %many
  br i1 %c.more, label %make, label %good
make:
  %row = getelementptr inbounds [6 x i64], ptr %calls, i64 %c
  {call}
  %function = inttoptr i64 %number to ptr
  %status = call i32 %function(i64 %a1, i64 %a2, i64 %a3, i64 %a4)
  %wrong = icmp ne i32 %status, 0
  %counts = icmp ne i64 %has.status, 0
  %fails = and i1 %wrong, %counts
  br i1 %fails, label %bad, label %after
after:
  %c.next = add i64 %c, 1
  br label %call
good:
  ret i64 0
bad:
  %found = sext i32 %status to i64
  ret i64 %found
}}
""".format(
    patch="\n  ".join(machine.loads("p.row", [("i64", name) for name in ("place", "which", "offset")])),
    call="\n  ".join(machine.loads("row", [("i64", name) for name in ("number", "a1", "a2", "a3", "a4", "has.status")])),
)
#: calls, their number, patches, their number, pointers
PARAMETERS = (machine.POINTER, machine.LONG, machine.POINTER, machine.LONG, machine.POINTER)


def player() -> machine.Code:
    """The machine code that goes down a list of calls. It returns the status of a call that failed, or 0."""
    return machine.code_of(PLAYER, PARAMETERS, machine.LONG)


class Link(NamedTuple):
    """A kernel, and which of the chain's arrays it is called with: first what it reads, then the results."""

    kernel: Faster | Loop
    arrays: tuple[int, ...]


def can_link(kernel: Faster | Loop) -> bool:
    """Whether a kernel can be part of a chain: a routine that serves for all values, or a loop."""
    if isinstance(kernel, Loop):
        return True
    return is_link(kernel.made(threads.share(kernel.work)))


def is_link(made: Any) -> bool:
    """Whether what serves an operator can be part of a chain."""
    return isinstance(made, (Loop, Norm)) or (isinstance(made, Routine) and made.ordinary is None)


def threads_of(link: Link, number: int) -> int:
    """On how many threads a link runs in a chain that has so many."""
    return number if link.kernel.work >= threads.WORTH_SHARING else 1


def exists() -> bool:
    """Whether there can be chains here: with llvmlite and with oneDNN, whose threads are OpenMP's. It loads the library."""
    lib = library.find() if compiles() else None
    return lib is not None and lib.is_parallel


class Chain:
    """Links, in order. It has what a Loop has for those who report on a program: `title`, `operators`, `exact`, `state`, `wait`."""

    def __init__(self, links: Sequence[Link], given: Sequence[int], context: Context) -> None:
        """**Args** `given`: which arrays come from outside the program, and may have gaps."""
        self.links = tuple(links)
        self.given = tuple(given)
        self.context = context
        self.count = 1 + max(number for link in links for number in link.arrays)
        self.work = sum(link.kernel.work for link in links)
        self.player = player()
        self.frames: dict[int, list[Frame]] = {}  # those that no run uses now, by the number of threads
        self.exact = all(loop.exact for loop in self.loops)
        self.operators = len(self.links)
        self.title = "in one call"

    def __call__(self, *arrays: Array) -> bool:
        """Run it; False, and nothing is done, where the kernels must be called one by one."""
        if not enabled() or threads.forked:
            return False
        number = threads.share(self.work)
        frames = self.frames.get(number)
        if frames is None:
            if not self.is_ready or not self.serves(number):
                return False
            frames = self.frames.setdefault(number, [])
        for position in self.given:
            if not arrays[position].flags.c_contiguous:
                return False
        try:
            frame = frames.pop()
        except IndexError:
            frame = Frame(self, number)
        frame.run(arrays)
        frames.append(frame)
        return True

    @property
    def loops(self) -> list[Loop]:
        """The loops among the links."""
        found: list[Loop] = []
        for link in self.links:
            made = link.kernel if isinstance(link.kernel, Loop) else link.kernel.loop
            found += made.loops if isinstance(made, Norm) else [made] if isinstance(made, Loop) else []
        return found

    @property
    def is_ready(self) -> bool:
        """Whether all machine code is there."""
        return self.player.function is not None and all(loop.code.part for loop in self.loops)

    def serves(self, number: int) -> bool:
        """Whether there is code of all links for so many threads."""
        return all(isinstance(link.kernel, Loop) or is_link(link.kernel.made(threads_of(link, number))) for link in self.links)

    def wait(self) -> None:
        """Return when all is compiled, or never will be."""
        machine.wait(self.player)
        for loop in self.loops:
            loop.wait()

    @property
    def state(self) -> str:
        """Whether it is ready, in words."""
        if self.is_ready:
            return "ready"
        return next((loop.state for loop in self.loops if not loop.code.part), "not compiled yet")


class Frame:
    """The list of calls for one run at a time on a number of threads, and all that its numbers stand for."""

    def __init__(self, chain: Chain, number: int) -> None:
        self.lib = lib = library.library()
        self.context = chain.context
        self.number = number
        self.alive: list[Any] = []  # what the list's numbers point to
        self.calls: list[tuple[int, ...]] = []
        self.places: list[tuple[int, int, int, int]] = []  # (row of the list, column, which pointer, offset)
        self.patches: list[tuple[int, int, int]] = []  # (address, which pointer, offset)
        self.nbytes = 0  # of memory between primitives, and of the loops' own
        self.scratch = chain.count  # the pointer to it
        now = number
        for link in chain.links:
            wanted = threads_of(link, number)
            if wanted != now:
                self.calls.append((lib.addresses["omp_set_num_threads"], wanted, 0, 0, 0, 0))
                now = wanted
            made = link.kernel if isinstance(link.kernel, Loop) else link.kernel.made(wanted)
            if isinstance(made, Loop):
                self._add_loop(made, [(which, 0) for which in link.arrays], wanted)
            elif isinstance(made, Norm):
                self._add_several(made, link.arrays, wanted)
            else:
                assert isinstance(made, Routine)
                self._add_routine(made, link.arrays)
        self.restores = now != number
        rows = np.array(self.calls, np.int64)
        start = rows.ctypes.data
        self.patches += [(start + 8 * (6 * row + column), which, offset) for row, column, which, offset in self.places]
        patches = np.array(self.patches, np.int64).reshape(-1, 3)
        self.pointers = np.zeros(chain.count + 1, np.int64)
        self.alive += [rows, patches]
        self.kept: Any = None
        if 0 < self.nbytes <= KEPT:
            self.kept = self._memory()
        function = chain.player.function
        if chain.work < BRIEF:  # it keeps Python's lock
            function = ctypes.PYFUNCTYPE(machine.LONG, *PARAMETERS)(ctypes.cast(function, machine.POINTER).value or 0)
        self.function = function
        self.arguments = (start, len(rows), patches.ctypes.data, len(patches), self.pointers.ctypes.data)

    def _add_routine(self, routine: Routine, arrays: tuple[int, ...]) -> None:
        """The calls of a routine: where its values lie, then its primitives."""
        handles = Handles(routine)
        self.alive += [routine, handles]  # the handles are numbers, which mean nothing when the routine is gone
        addresses = self.lib.addresses
        for memory, position in handles.arrays:
            self.places.append((len(self.calls), 2, arrays[position], 0))
            self.calls.append((addresses["dnnl_memory_set_data_handle"], memory, 0, 0, 0, 1))
        for memory, offset in handles.own:
            self.places.append((len(self.calls), 2, self.scratch, offset))
            self.calls.append((addresses["dnnl_memory_set_data_handle"], memory, 0, 0, 0, 1))
        for _, code, stream, count, listed in handles.steps:
            address = ctypes.addressof(listed)
            self.calls.append((addresses["dnnl_primitive_execute"], code, stream, count, address, 1))
        self.nbytes = max(self.nbytes, routine.nbytes)

    def _add_several(self, norm: Norm, arrays: tuple[int, ...], number: int) -> None:
        """The calls of loops that hand each other what lies in memory of their own."""
        places = {name: (self.scratch, offset) for name, offset in norm.own.items()}
        places.update((name, (which, 0)) for name, which in zip(norm.arrays, arrays, strict=True))
        for call in norm.calls:
            self._add_loop(call.loop, [places[name] for name in call.arrays], number)
        self.nbytes = max(self.nbytes, norm.nbytes)

    def _add_loop(self, loop: Loop, arrays: Sequence[tuple[int, int]], number: int) -> None:
        """The call of a loop, in the calling thread or in a team of OpenMP's. `arrays`: which pointer, and how far behind it."""
        own = -(-4 * loop.scratch // ALIGNMENT) * ALIGNMENT  # bytes that each thread needs for itself
        shared = len(loop.bounds) > 1 and number > 1
        units = loop.bounds[-1][1]
        grain = 64 if shared and loop.bounds[0][1] % 64 == 0 else 1
        pointers = [*arrays, *[(self.scratch, 0)] * bool(own)]
        numbers = [machine.bits(value, kind) for value, kind in zip(loop.numbers, loop.code.parameters[len(pointers) :])]
        addresses = self.lib.addresses
        team = (addresses["omp_get_thread_num"], addresses["omp_get_num_threads"])
        arguments = np.array([*[0] * len(pointers), *numbers, *loop.lengths, units, grain, own, *team], np.int64)
        start = arguments.ctypes.data
        self.alive.append(arguments)
        self.patches += [(start + 8 * position, which, offset) for position, (which, offset) in enumerate(pointers)]
        if shared:
            self.calls.append((addresses["GOMP_parallel"], loop.code.part, start, number, 0, 0))
        else:
            self.calls.append((loop.code.part, start, 0, 0, 0, 0))
        self.nbytes = max(self.nbytes, own * (number if shared else 1))

    def _memory(self) -> Any:
        return storage.empty(Spec.of((self.nbytes + ALIGNMENT,), "uint8"), self.context)

    def run(self, arrays: tuple[Array, ...]) -> None:
        """Run it on arrays without gaps. Raises MXNetError for what oneDNN refuses."""
        machine.addresses(arrays, self.pointers)
        if self.nbytes:
            memory = self._memory() if self.kept is None else self.kept
            self.pointers[-1] = -(-machine.address(memory) // ALIGNMENT) * ALIGNMENT
        lib = self.lib
        before = lib.get_threads()
        if self.number != before:
            lib.set_threads(self.number)
        try:
            status = self.function(*self.arguments)
        finally:
            if self.number != before or self.restores:
                lib.set_threads(before)
        if status:
            lib.check(status, "primitive_execute")
