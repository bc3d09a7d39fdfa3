"""Several kernels, one after the other, as one call that leaves Python only once.

Each call of a kernel from Python costs some microseconds, which count where kernels are short; and while Python makes one device's calls,
another device's lane waits for Python's lock. A program knows beforehand which kernels follow each other and in which memory. So a run of
oneDNN's primitives and of loops in machine code is written down as a list of calls, functions with their arguments as plain numbers, and a
few lines of machine code go down the list: calls.py. Before, they fill in where the arrays of this call lie. Loops share their work among
OpenMP's threads, which oneDNN uses, too; or each thread has a list of its own, of calls for a part of the batch: slices.py.

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
from . import machine, slices, threads
from .batchnorm import Norm
from .calls import OWN, PARAMETERS, SHARED, Calls, Place, aligned, player
from .choice import enabled
from .fused import Loop, compiles
from .onednn import library
from .onednn.primitive import ALIGNMENT, KEPT, Routine
from .slices import Section, Value

if TYPE_CHECKING:
    from . import Faster

BRIEF = 30_000.0  # nanoseconds, in which another thread has hardly taken over Python's lock


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

    def __init__(self, links: Sequence[Link], given: Sequence[int], context: Context, values: Sequence[Value | None]) -> None:
        """**Args** `given`: which arrays come from outside the program, and may have gaps; `values`: what is known of all of them."""
        self.links = tuple(links)
        self.steps = slices.sections(links, values)
        self.given = tuple(given)
        self.context = context
        self.count = 1 + max(number for link in links for number in link.arrays)
        self.work = sum(link.kernel.work for link in links)
        self.player = player()
        self.frames: dict[int, list[Frame]] = {}  # those that no run uses now, by the number of threads
        self.exact = all(loop.exact for loop in self.loops) and not any(section.sums for section in self.sections)
        self.operators = len(self.links)
        sliced = sum(len(section.parts) for section in self.sections)
        self.title = f"in one call, {sliced} of them slice by slice" if sliced else "in one call"

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
        for section in self.sections:
            found += section.adding.values()
        return found

    @property
    def sections(self) -> list[Section]:
        """The links that run slice by slice."""
        return [step for step in self.steps if isinstance(step, Section)]

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
        self.lib = library.library()
        self.context = chain.context
        self.number = number
        self.nbytes = 0  # of memory that all lists have in common; in the end of all memory between kernels
        calls = Calls(self.lib)
        now = number
        for step in chain.steps:
            if isinstance(step, Section) and step.write(calls, number, self._take):
                continue
            for link in [step] if isinstance(step, Link) else step.links:
                wanted = threads_of(link, number)
                if wanted != now:
                    calls.set_threads(wanted)
                    now = wanted
                made = link.kernel if isinstance(link.kernel, Loop) else link.kernel.made(wanted)
                assert isinstance(made, (Loop, Norm, Routine))
                calls.add(made, [Place(which) for which in link.arrays], wanted)
        self.restores = now != number
        self.statuses: list[Any] = []  # of each team, the numbers that its threads leave
        self.alive: list[Any] = []  # what the lists' numbers point to
        self.pointers = np.zeros(chain.count + 1, np.int64)
        rows, found = self._settle(calls, chain.count, self.nbytes)
        patches = np.array(found, np.int64).reshape(-1, 3)
        self.alive.append(patches)
        self.kept: Any = None
        if 0 < self.nbytes <= KEPT:
            self.kept = self._memory()
        function = chain.player.function
        if chain.work < BRIEF:  # it keeps Python's lock
            function = ctypes.PYFUNCTYPE(machine.LONG, *PARAMETERS)(ctypes.cast(function, machine.POINTER).value or 0)
        self.function = function
        addresses = [machine.address(each) for each in (rows, patches, self.pointers)]
        self.arguments = (addresses[0], len(rows), addresses[1], len(patches), addresses[2])

    def _take(self, nbytes: int) -> Place:
        """A place for so many bytes in the memory that all lists have in common."""
        place = Place(SHARED, self.nbytes)
        self.nbytes += aligned(nbytes)
        return place

    def _settle(self, calls: Calls, own: int, base: int) -> tuple[Array, list[tuple[int, int, int]]]:
        """Lay down a list, and those of its teams: its rows, and the addresses that each run has to fill in, in all of them.

        **Args** `own`: the number of the pointer to memory between kernels; `base`: where in it that of this list begins. Its teams use the
        same: while they run, it waits.
        """
        rows = np.array(calls.rows, np.int64).reshape(-1, 6)
        self.alive += [calls, rows]
        start = machine.address(rows)
        fields = [*calls.fields, *((start + 8 * (6 * row + column), place) for row, column, place in calls.places)]
        offsets = {OWN: base, SHARED: 0}
        patches = [
            (address, place.pointer, place.offset)
            if place.pointer >= 0
            else (address, own, offsets[place.pointer] + place.offset)
            for address, place in fields
        ]
        self.nbytes = max(self.nbytes, base + calls.nbytes)
        for team in calls.teams:
            self.statuses.append(team.table[:, 2])
            begin = base
            for number, each in enumerate(team.lists):
                listed, more = self._settle(each, own, begin)
                patches += more
                team.table[number, :2] = machine.address(listed), len(listed)
                begin += aligned(each.nbytes)
        return rows, patches

    def _memory(self) -> Any:
        return storage.empty(Spec.of((self.nbytes + ALIGNMENT,), "uint8"), self.context)

    def run(self, arrays: tuple[Array, ...]) -> None:
        """Run it on arrays without gaps. Raises MXNetError for what oneDNN refuses."""
        machine.addresses(arrays, self.pointers)
        if self.nbytes:
            memory = self._memory() if self.kept is None else self.kept
            self.pointers[-1] = aligned(machine.address(memory))
        lib = self.lib
        before = lib.get_threads()
        if self.number != before:
            lib.set_threads(self.number)
        try:
            status = self.function(*self.arguments)
        finally:
            if self.number != before or self.restores:
                lib.set_threads(before)
        for found in (status, *(max(each) for each in self.statuses)):
            lib.check(found, "primitive_execute")
