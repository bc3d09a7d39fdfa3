"""`mx.profiler`: what took the time, and when.

    profiler.set_config(filename="profile.json", aggregate_stats=True)
    profiler.set_state("run")
    train()
    profiler.set_state("stop")
    print(profiler.dumps())   # a table of operators
    profiler.timeline()       # a picture, in a notebook
    profiler.dump()           # a file for ui.perfetto.dev

Recorded are: each run of an operator, also inside hybridized blocks and executors; what the engine makes of them, tasks and groups; copies,
pushed functions; calls that wait, with their line; bytes in use on each device; and what a program tells itself (Domain, Task, Frame,
Event, Counter, Marker, scope). Times are those of the work, not of the call that queued it. A profiler that does not run costs nothing.

Order of reading: engine/events.py, from which all comes; log.py, which keeps it; control.py, the functions above; statistics.py and
chrome.py, what they give; objects.py; layout.py, svg.py and timeline.py, the picture. Source: MXNet `mxnet.profiler`. Book: chapter 2.
"""

from .control import (
    dump,
    dump_profile,
    dumps,
    pause,
    profiler_set_config,
    profiler_set_state,
    resume,
    set_config,
    set_state,
)
from .objects import Counter, Domain, Event, Frame, Marker, Scope, Task, scope
from .timeline import Timeline, timeline

__all__ = [
    "Counter", "Domain", "Event", "Frame", "Marker", "Scope", "Task", "Timeline", "dump", "dump_profile", "dumps", "pause",
    "profiler_set_config", "profiler_set_state", "resume", "scope", "set_config", "set_state", "timeline",
]  # fmt: skip
