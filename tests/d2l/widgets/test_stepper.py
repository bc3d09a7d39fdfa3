"""The engine's queue, step by step (minimx/d2l/widgets: recording, names, story, stepper)."""

from __future__ import annotations

import builtins
import subprocess
import sys
import threading
import xml.etree.ElementTree as ET

import pytest

import minimx as mx
from minimx import MXNetError, autograd, d2l, engine, gluon, nd
from minimx.base import ArgumentError
from minimx.d2l.widgets import page
from minimx.engine.events import watch
from minimx.engine.lanes import scheduler
from minimx.parallel import simulate


def on(device):
    x = nd.full((200, 200), 0.5, ctx=mx.cpu(device))  # of which products are exact
    x.wait_to_read()
    return x


@pytest.fixture
def two():
    """Two products that meet in a sum, written into what both devices read."""
    x0, x1 = on(0), on(1)
    with d2l.EngineStepper() as steps:
        g0 = nd.dot(x0, x0)
        g1 = nd.dot(x1, x1)
        total = nd.dot(g0, g1.as_in_context(mx.cpu(0)))
        x0[:] = total
    return steps


def kinds(steps):
    return [moment.kind for moment in steps.story.moments]


def test_what_each_task_reads_writes_and_waits_for(two):
    story = two.story
    found = [(act.name, act.lane, story.variables(act.reads), story.variables(act.writes)) for act in story.acts]
    assert found[0] == ("dot", "cpu(0)", "x0", "g0")
    assert found[1] == ("dot", "cpu(1)", "x1", "g1")
    assert found[2][:3] == ("copyto", "cpu(0)", "g1")
    assert found[3][:2] == ("dot", "cpu(0)")
    assert found[3][3] == "total"
    assert found[4][2:] == ("total, x0" if "x0" in found[4][2] else "total", "x0")
    assert [sorted(act.after) for act in story.acts] == [[], [], [1], [0, 2], [0, 3]]
    assert all(act.held for act in story.acts)


def test_lines_of_the_user(two):
    lines = [d2l.widgets.names.line_of(act.where).split(": ", 1)[1] for act in two.story.acts]
    assert lines[0] == "g0 = nd.dot(x0, x0)"
    assert lines[2] == "total = nd.dot(g0, g1.as_in_context(mx.cpu(0)))"
    assert lines[4] == "x0[:] = total"


def test_all_is_queued_before_anything_begins(two):
    assert kinds(two)[:6] == ["queued"] * 5 + ["opened"]
    assert two.story.fullest == 5
    frame = two.frame(5)
    assert set(frame.states.values()) == {"waiting"}
    first, last = frame.queues["x0"]
    assert str(first) == "#0 dot reads"
    assert (last.act.number, last.writes) == (4, True)
    assert frame.lanes == {"cpu(0)": ([], []), "cpu(1)": ([], [])}


def test_states_go_their_way(two):
    """Every task waits, is ready, runs, is done; and none begins before those that it waits for are done."""
    order = ["waiting", "ready", "running", "done"]
    for act in two.story.acts:
        seen = [states[act.number] for states in two.story.states if act.number in states]
        assert list(dict.fromkeys(seen)) == order
        begin = next(step for step, states in enumerate(two.story.states) if states.get(act.number) == "running")
        assert all(two.story.states[begin][before] == "done" for before in act.after)
    assert two.frame(0).says == "Nothing is queued yet."
    assert two.frame(len(two)).queues == {}
    opened = kinds(two).index("opened") + 1
    assert two.frame(opened).lanes["cpu(1)"] == ([], [two.story.acts[1]])


def test_as_text(two):
    assert repr(two) == "<EngineStepper: 5 tasks on cpu(0), cpu(1)>"
    lines = str(two).splitlines()
    assert lines[0].split() == ["task", "queued", "by", "lane", "reads", "writes", "waited", "for", "state"]
    assert len(lines) == 6
    assert "#0 dot" in lines[1]
    assert lines[1].endswith("done")


def test_values_are_right_and_nothing_is_left(two):
    assert watch.recorder is None
    assert not scheduler.in_flight
    with d2l.EngineStepper():
        y = nd.dot(on(0), on(0))
    assert y.asnumpy()[0, 0] == 50


def test_a_wait_opens_the_gate_and_is_told():
    x = on(0)
    with d2l.EngineStepper() as steps:
        y = nd.dot(x, x)
        value = float(y[0, 0].asscalar())
        z = nd.dot(y, x)
    assert value == 50
    assert z.shape == (200, 200)
    told = kinds(steps)
    assert told.index("queued") < told.index("waits") < told.index("opened") < told.index("goes on")
    waits = next(step for step in range(1, len(steps) + 1) if steps.story.moments[step - 1].kind == "waits")
    assert steps.frame(waits).says.startswith("The front end waits: asscalar (line ")
    late = next(act for act in steps.story.acts if steps.story.variables(act.writes) == "z")
    assert not late.held


def test_small_operations_are_no_tasks():
    with d2l.EngineStepper() as steps:
        _ = nd.ones((2,)) + 1
    assert kinds(steps) == ["at once", "at once"]
    assert "computes plus_scalar itself" in steps.frame(2).says
    assert repr(steps) == "<EngineStepper: 0 tasks>"
    assert "no task was queued" in steps._repr_html_()


def test_without_holding():
    x = on(0)
    with d2l.EngineStepper(hold=False) as steps:
        y = nd.dot(x, x)
    assert kinds(steps) == ["queued", "begun", "done"]
    assert not steps.story.acts[0].held
    assert y.shape == (200, 200)


def test_failures_are_shown_and_stay_with_the_arrays():
    x = on(0)

    def bad(array):
        raise ValueError("no <disk>")

    with d2l.EngineStepper() as steps:
        y = nd.dot(x, x)
        engine.push(bad, writes=[y])
        z = nd.dot(y, y)
        w = nd.dot(x, x)
    states = steps.frame(len(steps)).states
    assert [states[number] for number in range(4)] == ["done", "failed", "failed", "done"]
    assert "#1 bad has failed: ValueError: no <disk>" in " ".join(map(steps.story.says, range(len(steps) + 1)))
    assert "no &lt;disk&gt;" in steps._repr_html_()
    with pytest.raises(ValueError, match="no <disk>"):
        z.asnumpy()
    assert w.asnumpy()[0, 0] == 50


def test_an_error_of_the_code_ends_the_recording():
    x, made = on(0), []

    def broken():
        made.append(nd.dot(x, x))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        d2l.EngineStepper(broken)
    assert watch.recorder is None
    assert made[0].asnumpy()[0, 0] == 50
    steps = d2l.EngineStepper()
    with pytest.raises(ZeroDivisionError), steps:
        broken()
    assert watch.recorder is None
    assert len(steps.story.acts) == 1


def test_a_function_and_its_local_names():
    x = on(0)

    def step():
        for _ in range(2):
            inner = nd.dot(x, x)
        return inner

    steps = d2l.EngineStepper(step)
    names = [steps.story.variables(act.writes) for act in steps.story.acts]
    assert names[0].startswith("inner, line ")
    assert names[1] == "inner"
    assert sys.getprofile() is None


def test_source_code():
    x = on(0)
    steps = d2l.EngineStepper("y = nd.dot(x, x)\ny += y\n")
    assert x.shape == (200, 200)
    assert "line 1: y = nd.dot(x, x)" in str(steps).splitlines()[1]
    assert steps.story.variables(steps.story.acts[0].reads) == "x"
    with pytest.raises(SyntaxError):
        d2l.EngineStepper("y = = x")
    assert watch.recorder is None


def test_names_of_values_that_have_none():
    x = on(0)
    with d2l.EngineStepper() as steps, engine.bulk(1):
        for _ in range(2):
            y = nd.dot(x, x) * 2
        x -= 0.5 * y
    names = [steps.story.variables(act.writes).split(", line")[0] for act in steps.story.acts]
    assert names == ["dot", "y", "dot", "y", "mul_scalar", "x"]
    assert steps.story.variables(steps.story.acts[2].writes).endswith(" (2)")
    assert steps.story.variables(steps.story.acts[3].writes) == "y"


def test_names_in_lists_blocks_and_gradients():
    net = gluon.nn.Dense(200, in_units=200, prefix="out_")
    net.initialize()
    parts = [on(0), on(0)]
    named = {"far": on(0)}
    w = on(0)
    w.attach_grad()
    with d2l.EngineStepper(names=named) as steps:
        with autograd.record():
            loss = nd.dot(net(parts[1]), w) + named["far"]
        loss.backward()
    names = set(steps.story.recording.names.values())
    assert {"parts[1]", "far", "w", "w.grad", "loss", "out_weight cpu(0)", "out_weight gradient cpu(0)"} <= names


def test_only_so_many_tasks_are_noted():
    with d2l.EngineStepper(most=3) as steps:
        for _ in range(5):
            engine.push(lambda: None)
    assert len(steps.story.acts) == 3
    assert steps.story.recording.left_out == 2
    assert repr(steps) == "<EngineStepper: 5 tasks on cpu(0)>"
    assert "2 more tasks are not shown" in steps._repr_html_()


def test_other_threads_may_queue():
    x = on(0)
    found = []
    with d2l.EngineStepper() as steps:
        thread = threading.Thread(target=lambda: found.append(nd.dot(x, x)))
        thread.start()
        thread.join()
    assert [act.name for act in steps.story.acts] == ["dot"]


def test_naive_engine_has_nothing_to_show():
    x = on(0)
    with d2l.EngineStepper() as steps, engine.naive():
        y = nd.dot(x, x)
    assert y.shape == (200, 200)
    assert steps.story.acts == []


def test_what_cannot_be():
    with pytest.raises(ArgumentError, match="is no code"):
        d2l.EngineStepper(3)
    with pytest.raises(ArgumentError, match="most is 0"):
        d2l.EngineStepper(most=0)
    steps = d2l.EngineStepper()
    assert repr(steps) == str(steps) == "<EngineStepper: nothing recorded>"
    assert steps._repr_mimebundle_() == {"text/plain": "<EngineStepper: nothing recorded>"}
    with pytest.raises(ArgumentError, match="nothing is recorded yet"):
        steps.frame(0)
    with steps:
        pass
    with pytest.raises(ArgumentError, match="recorded already"), steps:
        pass
    with pytest.raises(ArgumentError, match="there are the steps 0 to 0"):
        steps.frame(1)
    with simulate.record(), pytest.raises(MXNetError, match="recorded already"), d2l.EngineStepper():
        pass
    nd.waitall()


# ---- what is shown


def pictures(html):
    return [ET.fromstring(part.split("</svg>")[0].join(["<svg", "</svg>"])) for part in html.split("<svg")[1:]]


def test_the_static_page(two):
    forms = two._repr_mimebundle_()
    assert set(forms) == {"text/html", "text/plain"}  # nobody sits before it
    html = forms["text/html"]
    (picture,) = pictures(html)
    assert picture.get("role") == "img"
    assert picture.get("aria-label").startswith("5 tasks in 16 steps, a row each. They end in the order ")
    words = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"front end", "#0 dot", "#1 dot", "waiting", "ready", "running"} <= set(words)
    assert "g1 = nd.dot(x1, x1)" in html
    assert html.count("<li>") == len(two)
    assert "After step 5, when the queues are longest" in html
    assert '<th scope="col"' in html
    assert '<th scope="row"' in html
    ET.fromstring(f"<div>{html}</div>")  # all that is opened is closed
    assert two._repr_html_() == html  # the same each time


def test_the_page_of_a_step(two):
    ET.fromstring(f"<div>{two.html(5)}</div>")
    assert two.html(5).count('stroke="#8A6D00"') == 2
    assert "<b>Step 5 of 16.</b>" in two.html(5)


def test_buttons(two):
    widgets = pytest.importorskip("ipywidgets")
    box = two.controls()
    bar, shown = box.children
    slider = next(each for each in bar.children if isinstance(each, widgets.IntSlider))
    start, back, step, end = (each for each in bar.children if isinstance(each, widgets.Button))
    assert "Step 0 of 16" in shown.value
    step.click()
    step.click()
    assert slider.value == 2
    assert shown.value == two.html(2)
    back.click()
    assert slider.value == 1
    end.click()
    assert slider.value == 16
    step.click()
    assert slider.value == 16
    start.click()
    assert shown.value == two.html(0)
    assert all(each.tooltip for each in (start, back, step, end))


def test_where_a_person_sits_there_are_buttons(two, monkeypatch):
    pytest.importorskip("ipywidgets")
    monkeypatch.setattr(page, "can_control", lambda: True)
    forms = two._repr_mimebundle_()
    assert {"application/vnd.jupyter.widget-view+json", "text/html", "text/plain"} <= set(forms)
    assert forms["text/plain"] == repr(two)


def test_without_ipywidgets(two, monkeypatch):
    real = builtins.__import__
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert "<svg" in two._repr_mimebundle_()["text/html"]
    with pytest.raises(ImportError, match=r"ipywidgets is not installed; .*minimx\[book\]"):
        two.controls()
    assert builtins.__import__ is real


def test_importing_the_widgets_imports_no_widgets():
    program = "import sys; from minimx import d2l; print({'matplotlib', 'IPython', 'ipywidgets'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
