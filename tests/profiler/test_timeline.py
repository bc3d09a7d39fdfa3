"""The picture and its tables."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

import minimx as mx
from minimx import MXNetError, engine, nd, profiler
from minimx.base import ArgumentError
from minimx.engine.events import OPERATOR, PROGRAM, WAIT, Event
from minimx.profiler.layout import checked, in_words, placed, row_order, ticks, unit_of

from .helpers import LARGE

SVG = "{http://www.w3.org/2000/svg}"

EVENTS = [
    Event("cpu(0)", "net", 0.000, 0.006, PROGRAM),
    Event("cpu(0)", "dot", 0.000, 0.004, OPERATOR, node="fc1"),
    Event("cpu(0)", "relu", 0.004, 0.006, OPERATOR, node="relu1", about="a < b & c"),
    Event("gpu(0)", "dot", 0.002, 0.010, OPERATOR),
    Event("thread MainThread", "asnumpy", 0.001, 0.010, WAIT, where=(__file__, 1)),
]


def parsed(picture: str) -> ET.Element:
    return ET.fromstring(picture)


def texts(root: ET.Element, tag: str) -> list[str]:
    return [element.text or "" for element in root.iter(SVG + tag)]


# ---- layout


def test_bars_are_placed_as_they_nest() -> None:
    bars = {bar.event.name: bar[1:] for bar in placed(EVENTS[:3])}
    assert bars == {"net": (0, 0, True), "dot": (0, 1, False), "relu": (0, 1, False)}
    apart = [
        Event("r", "a", 0, 2, thread=1),
        Event("r", "b", 1, 3, thread=1),
        Event("r", "c", 1, 1.5, thread=2),
        Event("r", "d", 2, 4, thread=2),
    ]
    assert {bar.event.name: bar.track for bar in placed(apart)} == {"a": 0, "b": 1, "c": 2, "d": 0}
    assert not any(bar.parent for bar in placed(apart))
    assert placed([]) == []


def test_rows_stand_in_order() -> None:
    rows = ["thread MainThread", "gpu(0) out", "gpu(10)", "cpu(1)", "gpu(0)", "gpu(2) in", "gpu(0) in", "network", "cpu(0)"]
    order = ["cpu(0)", "cpu(1)", "gpu(0) in", "gpu(0)", "gpu(0) out", "gpu(2) in", "gpu(10)", "network", "thread MainThread"]
    assert sorted(rows, key=row_order) == order


def test_numbers_are_round() -> None:
    assert ticks(0, 10, 6) == [0, 2, 4, 6, 8, 10]
    assert ticks(3, 3) == [3]
    assert all(len(ticks(low, low + span)) <= 12 for low in (0, 0.3, 17) for span in (1e-9, 1e-6, 0.7, 3, 12345))
    assert (unit_of(2), unit_of(0.5), unit_of(2e-4), unit_of(0)) == (("s", 1.0), ("ms", 1e3), ("µs", 1e6), ("ns", 1e9))
    assert [in_words(seconds) for seconds in (12.345, 0.0205, 3e-6, 0)] == ["12.3 s", "20.5 ms", "3.00 µs", "0 ns"]


# ---- figures


def test_the_tables() -> None:
    timeline = profiler.timeline(EVENTS)
    assert timeline.table().splitlines() == [
        "lane               events  busy or waiting  of the time",
        "cpu(0)                  2          6.00 ms          60%",
        "gpu(0)                  1          8.00 ms          80%",
        "thread MainThread       1          9.00 ms          90%",
        "",
        "operator       events    total     mean  of all work",
        "dot                 2  12.0 ms  6.00 ms          86%",
        "relu                1  2.00 ms  2.00 ms          14%",
        "wait: asnumpy       1  9.00 ms  9.00 ms",
    ]
    assert repr(timeline) == "<Timeline of 4 events by lane: cpu(0) 2, gpu(0) 1, thread MainThread 1>"
    assert sorted(timeline.events) == sorted(EVENTS)


def test_a_part_can_be_looked_at() -> None:
    timeline = profiler.timeline(EVENTS, start=0.0065)
    assert {event.name for event in timeline.events} == {"dot", "asnumpy"}
    assert "8.00 ms" in profiler.timeline(EVENTS, start=0.002, end=0.010).describe()
    labels = texts(parsed(timeline._repr_svg_()), "text")
    assert {"7", "8", "9", "10"} <= set(labels)


# ---- the picture


@pytest.mark.parametrize("by", ["lane", "operator", "scope"])
def test_the_picture_can_be_read_without_seeing_it(by: str) -> None:
    root = parsed(profiler.timeline(EVENTS, by=by, title="Two <lanes> & more")._repr_svg_())
    assert root.get("role") == "img"
    title, text = root.find(SVG + "title"), root.find(SVG + "desc")
    assert title is not None
    assert text is not None
    assert title.text == "Two <lanes> & more"
    assert root.get("aria-labelledby") == f"{title.get('id')} {text.get('id')}"
    assert text.text is not None
    assert text.text.startswith(
        f"Timeline of 4 events over 10.0 ms, a row for each {by}. cpu(0) has 2 events and is busy for 6.00 ms, 60%"
    )
    tips = [tip for tip in texts(root, "title") if "\n" in tip]
    assert len(tips) == (5 if by == "lane" else 3)
    assert "relu: 2.00 ms\nfrom 4.00 ms to 6.00 ms\nnode relu1\na < b & c" in tips


def test_the_picture_has_rows_bars_and_a_legend() -> None:
    labels = texts(parsed(profiler.timeline(EVENTS)._repr_svg_()), "text")
    assert labels[:2] == ["cpu(0)", "busy 60%"]
    assert {"gpu(0)", "busy 80%", "thread MainThread", "waits 90%", "net", "dot", "relu", "asnumpy", "time in ms"} <= set(labels)
    assert labels[-3:] == ["dot (12.0 ms)", "relu (2.00 ms)", "the front end waits"]
    labels = texts(parsed(profiler.timeline(EVENTS, by="operator")._repr_svg_()), "text")
    assert labels[:2] == ["dot", "2 in 12.0 ms"]
    assert labels[-2:] == ["gpu(0) (8.00 ms)", "cpu(0) (6.00 ms)"]
    assert "fc1" in labels  # in its bar


def test_looks_differ_in_pattern_and_pictures_do_not_share_names() -> None:
    one, two = (profiler.timeline(EVENTS)._repr_svg_() for _ in range(2))
    ids = [set(re.findall(r'id="([^"]+)"', picture)) for picture in (one, two)]
    assert ids[0].isdisjoint(ids[1])
    assert set(re.findall(r"url\(#([^)]+)\)", one)) <= ids[0]


def test_many_short_bars_are_drawn_as_few() -> None:
    many = [Event("cpu(0)", f"op{number % 3}", number * 1e-6, number * 1e-6 + 5e-7, OPERATOR) for number in range(20_000)]
    timeline = profiler.timeline(many)
    picture = timeline._repr_svg_()
    assert len(picture) < 60_000
    assert any(re.fullmatch(r"\d+ events from .*: op0 \d+, op1 \d+, op2 \d+", tip) for tip in texts(parsed(picture), "title"))
    assert "op0" in timeline.table()
    assert "20000" in timeline.table()


def test_many_names_share_a_row() -> None:
    names = [Event("cpu(0)", f"op{number:02}", number * 1.0, number + 0.5 + number / 100, OPERATOR) for number in range(40)]
    labels = texts(parsed(profiler.timeline(names, by="operator")._repr_svg_()), "text")
    assert "16 others" in labels
    assert "others" in texts(parsed(profiler.timeline(names)._repr_svg_()), "text")
    assert "and 28 more: see table()" in profiler.timeline(names)._repr_html_()


def test_the_notebooks_form_has_tables() -> None:
    page = profiler.timeline(EVENTS)._repr_html_()
    root = ET.fromstring(page)
    tables = root.findall(".//table")
    assert [table.findtext("caption") for table in tables] == ["How long each lane was busy", "What took the time"]
    cells = [["".join(cell.itertext()) for cell in row] for row in tables[1].iter("tr")]
    assert cells[0] == ["operator", "events", "total", "mean", "of all work"]
    assert cells[1] == ["dot", "2", "12.0 ms", "6.00 ms", "86%"]
    assert all(head.get("scope") for head in root.iter("th"))


def test_names_are_escaped() -> None:
    name = "<script>\"&'é数</script>"
    timeline = profiler.timeline([(name, name, 0.0, 1.0)], title=name)
    assert texts(parsed(timeline._repr_svg_()), "text").count(name) >= 2
    assert "<script>" not in timeline._repr_html_()
    unspeakable = profiler.timeline([("cpu(0)", "a\0b\ud800c\x1b", 0.0, 1.0)])
    assert "a\ufffdb\ufffdc\ufffd" in texts(parsed(unspeakable._repr_svg_()), "text")
    unspeakable._repr_html_().encode()


def test_events_of_a_trace_and_of_the_profiler(record: Callable[..., None]) -> None:
    with pytest.raises(MXNetError, match="has not run"):
        profiler.timeline()
    record()
    with engine.trace() as log:
        (nd.ones((LARGE,)) + 1).wait_to_read()
    assert "cpu(0)" in repr(profiler.timeline(log))
    timeline = profiler.timeline(lanes=["cpu(1)"])
    assert "cpu(1) 0" in repr(timeline)
    parsed(timeline._repr_svg_())
    assert {event.name for event in timeline.work} == {"_ones", "_plus_scalar"}
    profiler.set_state("stop")


def test_it_is_saved_in_three_forms(tmp_path: Path) -> None:
    timeline = profiler.timeline(EVENTS, title="<t>")
    for name in ("t.svg", "t.html", "t.json"):
        timeline.save(tmp_path / name)
    parsed((tmp_path / "t.svg").read_text("utf-8"))
    assert "&lt;t&gt;" in (tmp_path / "t.html").read_text("utf-8")
    entries = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert [entry["name"] for entry in entries if entry["ph"] == "X"] == ["net", "dot", "relu", "dot", "asnumpy"]
    with pytest.raises(ArgumentError, match=r"must end in \.svg, \.html or \.json"):
        timeline.save(tmp_path / "t.png")
    with pytest.raises(mx.base.MissingFileError):
        timeline.save(tmp_path / "nowhere" / "t.svg")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"events": []}, "no events"),
        ({"events": [("a", "b", 2.0, 1.0)]}, "ends before it starts"),
        ({"events": [("a", "b", 0.0)]}, r"an event is \(lane, name, start, end\)"),
        ({"events": ["abcd"]}, "an event is"),
        ({"events": [("a", "b", "0", "1")]}, "an event is"),
        ({"events": [("a", "b", 0.0, float("nan"))]}, "no number"),
        ({"events": EVENTS, "by": "colour"}, "choose one of lane, operator, scope"),
        ({"events": EVENTS, "start": 2.0}, "no event from 2.0 to None s; the last one ends at 0.010000 s|must not end before"),
        ({"events": EVENTS, "start": 0.5, "end": 0.1}, "must not end before it starts"),
        ({"events": EVENTS, "start": "soon"}, "start must be a number"),
    ],
)
def test_bad_calls(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        profiler.timeline(**arguments)  # type: ignore[arg-type]


def test_checked_sorts() -> None:
    assert checked("w", [("a", "x", 1.0, 2.0), ("a", "y", 0.0, 1.0), ("a", "z", 0.0, 3.0)]) == [
        ("a", "z", 0.0, 3.0), ("a", "y", 0.0, 1.0), ("a", "x", 1.0, 2.0),
    ]  # fmt: skip


def test_the_picture_has_an_alternative_text_in_a_notebook():
    forms, about = profiler.timeline(EVENTS)._repr_mimebundle_()
    assert set(forms) == {"image/svg+xml", "text/html", "text/plain"}
    assert about == {"image/svg+xml": {"alt": "Timeline of 4 events by lane: cpu(0) 2, gpu(0) 1, thread MainThread 1"}}
    formatter = pytest.importorskip("IPython.core.formatters").DisplayFormatter()
    assert formatter.format(profiler.timeline(EVENTS))[1] == about
