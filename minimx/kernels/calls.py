"""A list of calls of kernels, functions with their arguments as plain numbers, and the machine code that goes down it: `PLAYER`.

Where the arrays lie is known only when the list is to be played: `PLAYER` writes that first, by a list of places. In a list stand the calls
of oneDNN's primitives, of loops, and of *teams*: OpenMP's threads that play a list of their own each. chain.py and steps.py write lists.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from . import machine
from .batchnorm import Norm
from .fused import Loop
from .onednn.library import Library
from .onednn.primitive import ALIGNMENT, Frame as Handles, Routine

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

define void @part(ptr %team) nounwind {{
entry:
  {team}
  %thread.short = call i32 %which()
  %threads.short = call i32 %many()
  %thread = sext i32 %thread.short to i64
  %threads = sext i32 %threads.short to i64
  br label %next
next:
  %list = phi i64 [%thread, %entry], [%list.next, %play]
  %more = icmp slt i64 %list, %count
  br i1 %more, label %play, label %end
play:
  %row = getelementptr inbounds [3 x i64], ptr %lists, i64 %list
  {share}
  %status = call i64 @loop(ptr %calls, i64 %length, ptr null, i64 0, ptr null)
  store i64 %status, ptr %at.found
  %list.next = add i64 %list, %threads
  br label %next
end:
  ret void
}}
""".format(
    patch="\n  ".join(machine.loads("p.row", [("i64", name) for name in ("place", "which", "offset")])),
    call="\n  ".join(machine.loads("row", [("i64", name) for name in ("number", "a1", "a2", "a3", "a4", "has.status")])),
    team="\n  ".join(machine.loads("team", [("ptr", "lists"), ("i64", "count"), ("ptr", "which"), ("ptr", "many")])),
    share="\n  ".join(machine.loads("row", [("ptr", "calls"), ("i64", "length"), ("i64", "found")])),
)
#: calls, their number, patches, their number, pointers
PARAMETERS = (machine.POINTER, machine.LONG, machine.POINTER, machine.LONG, machine.POINTER)
OWN, SHARED = -1, -2  # the pointers to a list's own memory, and to what all lists of a frame have in common


def player() -> machine.Code:
    """The machine code that goes down a list of calls. It returns the status of a call that failed, or 0.

    Its `part` is what the threads of a team run: each goes down a list, and those left over if they are fewer, and leaves the status there.
    """
    return machine.code_of(PLAYER, PARAMETERS, machine.LONG)


def aligned(nbytes: int) -> int:
    """The next number of bytes at which memory for a kernel may begin."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


class Place(NamedTuple):
    """Where an array begins: which of the pointers, and how many bytes behind it."""

    pointer: int
    offset: int = 0


class Calls:
    """A list of calls as it is written."""

    def __init__(self, lib: Library) -> None:
        self.lib = lib
        self.nbytes = 0  # of its own memory, which each of its kernels has for itself while it runs
        self.alive: list[Any] = []  # what the list's numbers point to
        self.rows: list[tuple[int, ...]] = []
        self.places: list[tuple[int, int, Place]] = []  # the row and the column in which an address is to be written
        self.fields: list[tuple[int, Place]] = []  # the same in memory elsewhere
        self.handles: dict[Routine, Handles] = {}
        self.teams: list[Team] = []

    def set_threads(self, number: int) -> None:
        """From here on, what is called may use so many threads."""
        self.rows.append((self.lib.addresses["omp_set_num_threads"], number, 0, 0, 0, 0))

    def add(self, made: Loop | Norm | Routine, arrays: Sequence[Place], number: int) -> None:
        """Call a kernel on arrays, on so many threads."""
        if isinstance(made, Loop):
            self.add_loop(made, arrays, number)
        elif isinstance(made, Norm):
            self._add_norm(made, arrays, number)
        else:
            self._add_routine(made, arrays)

    def _add_routine(self, routine: Routine, arrays: Sequence[Place]) -> None:
        """The calls of a routine: where its values lie, then its primitives."""
        handles = self.handles.get(routine)
        if handles is None:
            handles = self.handles[routine] = Handles(routine)
        addresses = self.lib.addresses
        where = [(memory, arrays[position]) for memory, position in handles.arrays]
        where += [(memory, Place(OWN, offset)) for memory, offset in handles.own]
        for memory, place in where:
            self.places.append((len(self.rows), 2, place))
            self.rows.append((addresses["dnnl_memory_set_data_handle"], memory, 0, 0, 0, 1))
        for _, code, stream, count, listed in handles.steps:
            self.rows.append((addresses["dnnl_primitive_execute"], code, stream, count, ctypes.addressof(listed), 1))
        self._needs(routine.nbytes)

    def _add_norm(self, norm: Norm, arrays: Sequence[Place], number: int) -> None:
        """The calls of loops that hand each other what lies in memory of their own."""
        places = {name: Place(OWN, offset) for name, offset in norm.own.items()}
        places.update(zip(norm.arrays, arrays, strict=True))
        for call in norm.calls:
            self.add_loop(call.loop, [places[name] for name in call.arrays], number)
        self._needs(norm.nbytes)

    def add_loop(self, loop: Loop, arrays: Sequence[Place], number: int, units: int | None = None) -> None:
        """The call of a loop, of the first `units` of it if they are given, in the calling thread or in a team of OpenMP's."""
        own = aligned(4 * loop.scratch)  # bytes that each thread needs for itself
        shared = len(loop.bounds) > 1 and number > 1
        grain = 64 if shared and loop.bounds[0][1] % 64 == 0 else 1
        pointers = [*arrays, *[Place(OWN)] * bool(own)]
        numbers = [machine.bits(value, kind) for value, kind in zip(loop.numbers, loop.code.parameters[len(pointers) :])]
        addresses = self.lib.addresses
        team = (addresses["omp_get_thread_num"], addresses["omp_get_num_threads"]) if shared else (0, 0)
        fields = [*[0] * len(pointers), *numbers, *loop.lengths, loop.units if units is None else units, grain, own, *team]
        arguments = np.array(fields, np.int64)
        start = machine.address(arguments)
        self.alive += [loop.code, arguments]
        self.fields += [(start + 8 * position, place) for position, place in enumerate(pointers)]
        if shared:
            self.rows.append((addresses["GOMP_parallel"], loop.code.part, start, number, 0, 0))
        else:
            self.rows.append((loop.code.part, start, 0, 0, 0, 0))
        self._needs(own * (number if shared else 1))

    def add_team(self, lists: list[Calls]) -> None:
        """Play lists at the same time, each in a thread of its own."""
        team = Team(lists, self.lib)
        self.teams.append(team)
        self.rows.append((self.lib.addresses["GOMP_parallel"], player().part, machine.address(team.arguments), len(lists), 0, 0))

    def _needs(self, nbytes: int) -> None:
        self.nbytes = max(self.nbytes, nbytes)


class Team:
    """Lists that are played at the same time. `table`: where the rows of each begin, how many there are, and its status."""

    def __init__(self, lists: list[Calls], lib: Library) -> None:
        self.lists = lists
        self.table = np.zeros((len(lists), 3), np.int64)
        asked = (lib.addresses["omp_get_thread_num"], lib.addresses["omp_get_num_threads"])
        self.arguments = np.array([machine.address(self.table), len(lists), *asked], np.int64)
