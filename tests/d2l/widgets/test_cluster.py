"""A cluster with sliders (minimx/d2l/widgets/cluster.py)."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET

import pytest

from minimx import autograd, d2l, gluon, nd
from minimx.base import ArgumentError, UnknownNameError
from minimx.parallel import simulate


@pytest.fixture
def cluster():
    return d2l.ClusterExplorer("vgg16", devices=16, batch=32, bandwidth=12.5e9, latency=2e-5)


def test_it_says_what_simulate_says(cluster):
    how = {"link": simulate.Link(12.5e9, 2e-5), "batch": 16 * 32}
    for algorithm in ("ring", "tree", "parameter_server"):
        for overlap in (True, False):
            wanted = simulate.data_parallel(simulate.model("vgg16"), 16, algorithm, overlap=overlap, **how)
            found = cluster.predict(algorithm=algorithm, overlap=overlap)
            assert (found.step_time, found.speed_up) == (wanted.step_time, wanted.speed_up)
    how = {"link": "NVLink V100", "network": how["link"], "batch": how["batch"]}
    wanted = simulate.data_parallel(simulate.model("vgg16"), 16, "hierarchical", **how)
    assert cluster.predict(algorithm="hierarchical").step_time == wanted.step_time


def test_one_for_all_is_exact(cluster):
    for algorithm in ("ring", "tree", "parameter_server"):
        for devices in (2, 3, 4):
            cluster.set(algorithm=algorithm, devices=devices)
            last = max(end for *_, end in cluster.bars())
            assert last == pytest.approx(cluster.predict().step_time)


def test_bars_have_names_that_a_reader_knows(cluster):
    assert {name for _, name, *_ in cluster.bars()} == {"forward", "backward", "add", "update"}
    assert len(cluster.bars()) < 20
    cluster.set(devices=2)
    lanes = {lane for lane, *_ in cluster.bars()}
    assert {"gpu(0)", "gpu(1)"} <= lanes
    assert "gradients" in {name for _, name, *_ in cluster.bars()}
    cluster.set(devices=1)
    assert [name for _, name, *_ in cluster.bars()] == ["forward", "backward", "update"]


def test_in_words_and_as_a_table(cluster):
    assert cluster.describe().startswith(
        "16 devices with 32 samples each, over links of 12.5 GB/s and 20.0 µs, ring, overlap on: a step takes "
    )
    lines = str(cluster).splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["1", "4", "16", "64", "256", "1,024", "4,096"]
    assert repr(cluster) == f"<ClusterExplorer: {cluster.describe()}>"
    cluster.set(devices=24)
    assert "24 ←" in str(cluster)


def test_what_was_asked_is_remembered(cluster):
    assert cluster.predict() is cluster.predict(devices=16)
    assert cluster.predict(overlap=False) is not cluster.predict()


def test_the_page(cluster):
    forms = cluster._repr_mimebundle_()
    assert set(forms) == {"text/html", "text/plain"}
    page = ET.fromstring(forms["text/html"])
    picture = page.find(".//{http://www.w3.org/2000/svg}svg")
    assert picture.get("role") == "img"
    assert "vgg16, 16 devices, ring, overlapping: one of them, and its link" in forms["text/html"]
    assert len(page.findall(".//tbody/tr")) == 7
    assert cluster.timeline().lanes.keys() == {"gpu(0)", "network"}


def test_a_recorded_step():
    net = gluon.nn.Dense(200, in_units=200)
    net.initialize()
    x = nd.ones((8, 200))

    def step():
        with autograd.record():
            loss = net(x)
        loss.backward()
        nd.waitall()

    graph = simulate.recorded(step, net.collect_params(), batch=8, repeat=1, warm=1)
    cluster = d2l.ClusterExplorer(graph, devices=4)
    assert cluster.choice.batch == 8
    assert cluster.predict().batch == 32
    assert cluster.predict(batch=16).batch == 64
    assert max(end for *_, end in cluster.bars()) == pytest.approx(cluster.predict().step_time)
    ET.fromstring(cluster.html())


def test_recordings_that_say_too_little():
    with simulate.record() as graph:
        nd.dot(nd.ones((200, 200)), nd.ones((200, 200)))
    with pytest.raises(ArgumentError, match="Record it with a batch"):
        d2l.ClusterExplorer(graph)
    graph.batch = 8
    with pytest.raises(ArgumentError, match="which tasks make gradients"):
        d2l.ClusterExplorer(graph)


def plain(html):
    """A page without the numbers that tell the pictures of a page apart."""
    return re.sub(r"mx-timeline-\d+", "", html)


def test_sliders(cluster):
    widgets = pytest.importorskip("ipywidgets")
    bar, shown = cluster.controls().children
    sliders = {each.description: each for each in bar.children}
    assert plain(shown.value) == plain(cluster.html())
    sliders["devices"].value = 256
    assert cluster.choice.devices == 256
    assert plain(shown.value) == plain(cluster.html())
    sliders["GB/s"].value = 1.0
    sliders["latency in µs"].value = 10.0
    sliders["algorithm"].value = "hierarchical"
    sliders["samples a device"].value = 1
    sliders["send while computing"].value = False
    assert cluster.choice.bandwidth == pytest.approx(1e9)
    assert cluster.choice.latency == pytest.approx(1e-5)
    assert "hierarchical, one after the other" in shown.value
    assert cluster.choice.batch == 1
    assert isinstance(sliders["algorithm"], widgets.Dropdown)


def test_a_combination_that_cannot_be_is_explained(cluster):
    pytest.importorskip("ipywidgets")
    cluster.set(devices=12)
    bar, shown = cluster.controls().children
    sliders = {each.description: each for each in bar.children}
    sliders["algorithm"].value = "hierarchical"
    assert "role='alert'" in shown.value
    assert "must be a multiple" in shown.value
    sliders["devices"].value = 16
    assert "role='alert'" not in shown.value


def test_without_ipywidgets(cluster, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert "<svg" in cluster._repr_mimebundle_()["text/html"]
    with pytest.raises(ImportError, match="ipywidgets is not installed"):
        cluster.controls()


@pytest.mark.parametrize(
    ("choice", "error", "says"),
    [
        ({"devices": 0}, ArgumentError, "devices is 0"),
        ({"devices": 5000}, ArgumentError, "from 1 to 4096"),
        ({"devices": "many"}, ArgumentError, "devices"),
        ({"batch": 0}, ArgumentError, "batch is 0"),
        ({"bandwidth": 0.0}, ArgumentError, "bandwidth is 0"),
        ({"latency": -1.0}, ArgumentError, "latency is -1"),
        ({"algorithm": "bush"}, UnknownNameError, "no algorithm 'bush'"),
        ({"speed": 3}, ArgumentError, "no slider 'speed'"),
    ],
)
def test_sliders_that_stick(cluster, choice, error, says):
    before = cluster.choice
    with pytest.raises(error, match=says):
        cluster.set(**choice)
    assert cluster.choice == before
    with pytest.raises(error, match=says):
        cluster.predict(**choice)


def test_sources_that_cannot_be():
    with pytest.raises(ArgumentError, match="neither a model's name"):
        d2l.ClusterExplorer(3)
    with pytest.raises(UnknownNameError, match="no model 'vgg99'"):
        d2l.ClusterExplorer("vgg99")
