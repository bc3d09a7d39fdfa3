"""`d2l.EngineStepper`: go through the engine's queue for a piece of your own code, step by step, forward and back.

What is shown is one real run, recorded and then replayed. The other way would be to hold the real tasks and let one go at each press of a
button. We record, because of a recording there is a way back; because its timings are those of the engine, not of a finger; because
nothing is ever held that somebody could wait for, so that a notebook left in the middle does not hang; and because the same steps can be
shown where there is no kernel. One thing is arranged: with `hold`, a gate keeps tasks from beginning while the front end still queues, or
else a queue of small tasks would be empty before one could see it. It opens when the code ends, or waits for a value: engine/gate.py.
Book: chapter 7.
"""

from __future__ import annotations

import itertools
import linecache
import sys
from collections.abc import Callable, Mapping
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from ...base import ArgumentError, shown
from ...fields import converted
from ...profiler.svg import escape
from .chart import MOST_ROWS, Chart
from .names import line_of, name_all
from .page import Widget, ipywidgets, table, text_table
from .recording import DONE, Noting, recording
from .story import FAILED, Frame, Story

if TYPE_CHECKING:
    from typing_extensions import Self

Program = Callable[[], object] | str
MOST_TASKS = 1000
MOST_SAID = 150  # steps that the static page tells in words
MOST_LINES = 100  # of a page's table of tasks
TITLES = ("task", "queued by", "lane", "reads", "writes", "waited for", "state")
_numbers = itertools.count(1)


class EngineStepper(Widget):
    """The steps that the engine takes for some code: tasks, lanes, the queue of each variable, and the line that queued each task.

    **Args** `program`: a function without arguments, or source code, which is run once; None: the block of a `with` statement. `hold`:
    keep tasks from beginning until the code ends, or waits for one, so that the queue can be seen; False: let them run as they come.
    `names`: arrays that have no name in the code, by the name that they are to have. `most`: tasks that are noted; what comes after them
    is only counted. **Returns** an object that a notebook shows, with buttons where there are some (`controls`), and that `print` writes as
    a table; `story` has all steps. When it is there everything has run, lazy work too. On a real GPU a task ends when its kernels are
    launched. **Raises** ArgumentError; MXNetError if somebody records already (`simulate.record`); whatever the code raises. **Book**
    chapter 7.

    >>> from minimx import d2l, nd
    >>> with d2l.EngineStepper() as steps:
    ...     x = nd.ones((300, 300)); y = nd.dot(x, x)
    >>> steps
    <EngineStepper: 2 tasks on cpu(0)>
    """

    def __init__(
        self, program: Program | None = None, *, hold: bool = True, names: Mapping[str, Any] | None = None, most: int = 200
    ) -> None:
        most = converted("EngineStepper", "most", "int", most)
        if not 1 <= most <= MOST_TASKS:
            raise ArgumentError(f"EngineStepper: most is {most}; a number of tasks from 1 to {MOST_TASKS} is wanted")
        if not (program is None or isinstance(program, str) or callable(program)):
            raise ArgumentError(
                f"EngineStepper: {shown(program)} is no code; give a function without arguments, source code, or nothing"
            )
        self._hold, self._most, self._names = bool(hold), most, dict(names or {})
        self._scope: Any = None
        self._story: Story | None = None
        if program is not None:
            frame = sys._getframe(1)
            scope = self._record()
            noting, found = _run_source(program, scope, frame) if isinstance(program, str) else _run(program, scope)
            self._end(noting, found, frame.f_locals, frame.f_globals)

    def _record(self) -> Any:
        return recording(self._hold, self._most)

    def _end(self, noting: Noting, *namespaces: Mapping[str, Any]) -> None:
        name_all(noting, self._names, *namespaces)
        self._story = Story(noting.recording)

    def __enter__(self) -> Self:
        if self._scope is not None or self._story is not None:
            raise ArgumentError("EngineStepper: it has recorded already; make another one for another block")
        scope = self._record()
        self._noting = scope.__enter__()
        self._scope = scope
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        scope, self._scope = self._scope, None
        scope.__exit__(kind, error, trace)
        frame = sys._getframe(1)
        self._end(self._noting, frame.f_locals, frame.f_globals)

    # ---- the steps

    @property
    def story(self) -> Story:
        """All steps. **Raises** ArgumentError before there are any."""
        if self._story is None:
            raise ArgumentError(
                "EngineStepper: nothing is recorded yet; run code in it first: `with d2l.EngineStepper() as steps:`"
            )
        return self._story

    def __len__(self) -> int:
        """How many steps there are."""
        return len(self.story)

    def frame(self, step: int) -> Frame:
        """How things stand after so many steps, from 0 to `len`. **Raises** ArgumentError for another number."""
        step = converted("EngineStepper.frame", "step", "int", step)
        if not 0 <= step <= len(self):
            raise ArgumentError(f"EngineStepper.frame: step is {step}; there are the steps 0 to {len(self)}")
        return self.story.frame(step)

    def __repr__(self) -> str:
        if self._story is None:
            return "<EngineStepper: nothing recorded>"
        lanes = ", ".join(self._story.lanes)
        count = len(self._story.acts) + self._story.recording.left_out
        return f"<EngineStepper: {count} task{'s' * (count != 1)}{' on ' * bool(lanes)}{lanes}>"

    def __str__(self) -> str:
        return text_table(TITLES, self._task_lines(len(self))) if self._story is not None else repr(self)

    # ---- as a page

    def _task_lines(self, step: int) -> list[tuple[str, ...]]:
        story = self.story
        lines: list[tuple[str, ...]] = []
        for act in story.acts:
            state = story.states[step].get(act.number, "not queued yet")
            cells = act.title, line_of(act.where), act.lane, story.variables(act.reads), story.variables(act.writes)
            after = ", ".join(f"#{number}" for number in sorted(act.after)) or "the gate" * act.held
            lines.append((*cells, after, f"failed: {act.failure}" if state == FAILED else state))
        return lines

    def _task_table(self, step: int) -> str:
        """The tasks; their states only where these differ, as a page is narrow."""
        columns = len(TITLES) if len(set(self.story.states[step].values())) > 1 else len(TITLES) - 1
        lines = [line[:columns] for line in self._task_lines(step)]
        if len(lines) > MOST_LINES:
            lines[MOST_LINES:] = [(f"and {len(lines) - MOST_LINES} more: print them", *[""] * (columns - 1))]
        return table("Tasks, as they were queued", TITLES[:columns], lines)

    @staticmethod
    def _lane_table(frame: Frame) -> str:
        lines = [
            (lane, *(", ".join(act.title for act in acts) or "nothing" for acts in both)) for lane, both in frame.lanes.items()
        ]
        return table("Lanes", ("lane", "runs", "ready in its queue"), lines)

    @staticmethod
    def _queue_table(frame: Frame) -> str:
        lines = [(name, "; ".join(map(str, claims))) for name, claims in frame.queues.items()] or [("none", "nobody queues")]
        return table("Queues of the variables, the oldest first", ("variable", "queue"), lines)

    def describe(self) -> str:
        """The picture in words."""
        story = self.story
        done = [story.acts[moment.act].title for moment in story.moments if moment.kind == DONE and moment.act is not None]
        ends = f" They end in the order {', '.join(done[:MOST_ROWS])}." if done else ""
        return f"{len(story.acts)} tasks in {len(story)} steps, a row each.{ends}"

    def html(self, step: int) -> str:
        """How things stand after so many steps, as a page: what has happened, the picture with a mark, and three tables."""
        frame = self.frame(step)
        said = f"<p role='status'><b>Step {step} of {len(self)}.</b> {escape(frame.says)}</p>\n"
        picture = Chart(self.story, step).svg(f"{self.describe()} Step {step} is marked.")
        return f"{said}{picture}{self._lane_table(frame)}{self._queue_table(frame)}{self._task_table(step)}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": repr(self)} if self._story is None else super()._repr_mimebundle_(include, exclude)

    def _repr_html_(self) -> str:
        """All steps at once, for a page without a kernel."""
        story = self.story
        left_out = f" {story.recording.left_out} more tasks are not shown." * bool(story.recording.left_out)
        full = story.frame(story.fullest)
        said = "".join(f"<li>{escape(story.says(step))}</li>\n" for step in range(1, min(len(story), MOST_SAID) + 1))
        if len(story) > MOST_SAID:
            said += f"<li>and {len(story) - MOST_SAID} more: see frame(step)</li>\n"
        return (
            f'<div class="mx-stepper">\n{Chart(story).svg(self.describe())}'
            f"<p>{escape(repr(self).strip('<>'))}; {len(story)} steps.{left_out}</p>\n"
            + self._task_table(len(story))
            + f"<details><summary>After step {story.fullest}, when the queues are longest</summary>\n"
            + f"{self._lane_table(full)}{self._queue_table(full)}</details>\n"
            + f"<details><summary>All steps in words</summary>\n<ol>\n{said}</ol></details>\n</div>\n"
        )

    def controls(self) -> Any:
        """Buttons for to and fro and for running on, a slider for the step, and the page of the step."""
        widgets = ipywidgets()
        last = len(self)
        slider = widgets.IntSlider(value=0, min=0, max=last, description="Step", continuous_update=False, tooltip="Step")
        play = widgets.Play(value=0, min=0, max=last, interval=800, description="Run", tooltip="Run on, or pause")
        page = widgets.HTML(value=self.html(0))

        def button(text: str, tip: str, target: Callable[[int], int]) -> Any:
            made = widgets.Button(description=text, tooltip=tip, layout=widgets.Layout(width="auto"))

            def go(_: Any) -> None:
                slider.value = min(max(target(slider.value), 0), last)

            made.on_click(go)
            return made

        def show(change: Any) -> None:
            page.value = self.html(change["new"])

        widgets.jslink((play, "value"), (slider, "value"))
        slider.observe(show, "value")
        buttons = [
            button("Start", "To the beginning", lambda _: 0),
            button("Back", "One step back", lambda step: step - 1),
            button("Step", "One step on", lambda step: step + 1),
            button("End", "To the end", lambda _: last),
        ]
        return widgets.VBox([widgets.HBox([*buttons, play, slider]), page])


def _run(program: Callable[[], object], scope: Any) -> tuple[Noting, dict[str, Any]]:
    """Call a function in `scope`; what its local names hold when it returns."""
    found: dict[str, Any] = {}
    code: CodeType | None = getattr(program, "__code__", None)

    def look(called: FrameType, event: str, value: Any) -> None:
        if event == "return" and called.f_code is code:
            found.update(called.f_locals)

    with scope as noting:
        before = sys.getprofile()
        sys.setprofile(look)
        try:
            program()
        finally:
            sys.setprofile(before)
    return noting, found


def _run_source(source: str, scope: Any, frame: FrameType) -> tuple[Noting, dict[str, Any]]:
    """Run source code in `scope`, with the names of the caller; what its names hold then."""
    file = f"<engine stepper {next(_numbers)}>"
    code = compile(source, file, "exec")
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # so that its lines can be shown
    namespace = {**frame.f_globals, **frame.f_locals}
    with scope as noting:
        exec(code, namespace)
    return noting, namespace


__all__ = ["EngineStepper"]
