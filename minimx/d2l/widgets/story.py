"""A recording, step by step: after each moment which task is in which state, what each lane runs, and who queues at each variable.

States are those of engine/task.py, as far as they can be seen: a task *waits* for others (or behind the gate), is *ready* in its lane's
queue, is *running*, is *done* or has *failed*. All follows from the order of the moments: a task is ready when the last of those that it
came after is done. Book: chapter 7.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from ...profiler.layout import row_order
from .names import line_of
from .recording import AT_ONCE, BEGUN, GOES_ON, OPENED, QUEUED, WAITS, Act, Moment, Recording

WAITING, READY, RUNNING, FINISHED, FAILED = "waiting", "ready", "running", "done", "failed"
FRONT = "front end"


class Claim(NamedTuple):
    """A task in the queue of a variable: what it does to it, and its state."""

    act: Act
    reads: bool
    writes: bool
    state: str

    def __str__(self) -> str:
        verb = "writes" if not self.reads else "reads and writes" if self.writes else "reads"
        return f"{self.act.title} {verb}" + (" now" if self.state == RUNNING else "")


class Frame(NamedTuple):
    """How things stand after a moment. A task that is not in `states` has not been queued. `says`: what happened, in words."""

    says: str
    states: dict[int, str]
    lanes: dict[str, tuple[list[Act], list[Act]]]  # of each lane what it runs, and what is ready
    queues: dict[str, list[Claim]]  # of each variable with a queue those in it, first the oldest


class Story:
    """All frames of a recording, the first before anything has happened."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.acts = recording.acts
        self.moments = recording.moments
        self.lanes = sorted({act.lane for act in self.acts}, key=row_order)

    def __len__(self) -> int:
        """How many moments there are; one frame more."""
        return len(self.moments)

    @functools.cached_property
    def states(self) -> list[dict[int, str]]:
        """For each frame the state of each task that has been queued."""
        found: list[dict[int, str]] = [{}]
        now: dict[int, str] = {}
        shut = any(moment.kind == OPENED for moment in self.moments)
        for moment in self.moments:
            if moment.kind == OPENED:
                shut = False
            elif moment.act is not None:
                now[moment.act] = self._after(moment.kind, self.acts[moment.act])
            for number, state in now.items():
                if state == WAITING:
                    act = self.acts[number]
                    free = not (act.held and shut) and all(now.get(before) in (FINISHED, FAILED) for before in act.after)
                    now[number] = READY if free else WAITING
            found.append(dict(now))
        return found

    @staticmethod
    def _after(kind: str, act: Act) -> str:
        """The state of a task after a moment of its own."""
        return {QUEUED: WAITING, BEGUN: RUNNING}.get(kind, FAILED if act.failure else FINISHED)

    def frame(self, step: int) -> Frame:
        """How things stand after `step` moments."""
        states = self.states[step]
        lanes: dict[str, tuple[list[Act], list[Act]]] = {lane: ([], []) for lane in self.lanes}
        queues: dict[str, list[Claim]] = {}
        for number, state in states.items():
            act = self.acts[number]
            if state in (RUNNING, READY):
                lanes[act.lane][state == READY].append(act)
            if state in (FINISHED, FAILED):
                continue
            for var in dict.fromkeys((*act.reads, *act.writes)):
                claim = Claim(act, var in act.reads, var in act.writes, state)
                queues.setdefault(self.recording.names[var], []).append(claim)
        return Frame(self.says(step), states, lanes, dict(sorted(queues.items())))

    @functools.cached_property
    def fullest(self) -> int:
        """The step after which most tasks are queued and not done; of equals the first."""
        open_ones = [sum(state not in (FINISHED, FAILED) for state in states.values()) for states in self.states]
        return open_ones.index(max(open_ones))

    # ---- in words

    def says(self, step: int) -> str:
        """What the moment before a frame was."""
        if step == 0:
            return "Nothing is queued yet."
        moment = self.moments[step - 1]
        if moment.act is not None:
            return self._says_of(moment, self.acts[moment.act], step)
        place = f" ({line_of(moment.where)})" if moment.where is not None else ""
        return {
            AT_ONCE: f"The front end computes {moment.what} itself, as that costs less than a task{place}.",
            WAITS: f"The front end waits: {moment.what}{place}.",
            GOES_ON: f"The front end goes on after {moment.what}{place}.",
            OPENED: "The gate opens: from now on the lanes run.",
        }[moment.kind]

    def _says_of(self, moment: Moment, act: Act, step: int) -> str:
        """What a task did."""
        if moment.kind == QUEUED:
            place = f" ({line_of(act.where)})" if act.where is not None else ""
            return f"{act.title} is queued on {act.lane}{place}; it waits for {self.waits_for(act) or 'nothing'}."
        who = f"The {FRONT}, which waits, runs" if act.by_front else f"{act.lane} runs"
        if moment.kind == BEGUN:
            return f"{who} {act.title}."
        before, now = self.states[step - 1], self.states[step]
        freed = [self.acts[each].title for each, state in now.items() if state == READY and before.get(each) == WAITING]
        ready = f"; ready now: {', '.join(freed)}" if freed else ""
        return f"{act.title} has failed: {act.failure}{ready}." if act.failure else f"{act.title} is done{ready}."

    def waits_for(self, act: Act) -> str:
        """Whom a task came after when it was queued; the gate is named where there is nobody else."""
        others = [self.acts[number].title for number in sorted(act.after)]
        return ", ".join(others or ["the gate"] * act.held)

    def variables(self, numbers: tuple[int, ...]) -> str:
        """The names of variables."""
        return ", ".join(self.recording.names[number] for number in numbers)


__all__ = ["FAILED", "FINISHED", "FRONT", "READY", "RUNNING", "WAITING", "Claim", "Frame", "Story"]
