"""plot_network: DOT as MXNet 1.9.1 makes it, SVG of our own, and an object of the package `graphviz` where that is installed."""

from __future__ import annotations

import sys
import types
import warnings
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import minimx as mx
from minimx import sym
from minimx.visualization import NetworkPlot

DOT = """\
digraph "a plot" {
	data [label=data fillcolor="#8dd3c7" fixedsize=false height=0.8034 shape=oval style=filled width=1.3]
	fc [label="FullyConnected\\n128" fillcolor="#fb8072" fixedsize=false height=0.8034 shape=box style=filled width=1.3]
	relu1 [label="Activation\\nrelu" fillcolor="#ffffb3" fixedsize=false height=0.8034 shape=box style=filled width=1.3]
	fc2 [label="FullyConnected\\n10" fillcolor="#fb8072" fixedsize=false height=0.8034 shape=box style=filled width=1.3]
	out_label [label=out_label fillcolor="#8dd3c7" fixedsize=false height=0.8034 shape=oval style=filled width=1.3]
	out [label=out fillcolor="#fccde5" fixedsize=false height=0.8034 shape=box style=filled width=1.3]
	fc -> data [label="200(float32)" arrowtail=open dir=back]
	relu1 -> fc [label="128(float32)" arrowtail=open dir=back]
	fc2 -> relu1 [label="128(float32)" arrowtail=open dir=back]
	out -> fc2 [label="10(float32)" arrowtail=open dir=back]
	out -> out_label [label="(float32)" arrowtail=open dir=back]
}"""


@pytest.fixture(autouse=True)
def without_graphviz(monkeypatch):
    monkeypatch.setitem(sys.modules, "graphviz", None)


def network(second="fc2"):
    net = sym.FullyConnected(sym.var("data"), num_hidden=128, name="fc")
    net = sym.FullyConnected(sym.Activation(net, act_type="relu", name="relu1"), num_hidden=10, name=second)
    return sym.SoftmaxOutput(net, name="out")


SHAPE, DTYPE = {"data": (100, 200)}, {"data": np.float32}


def test_dot():
    picture = mx.visualization.plot_network(network(), "a plot", shape=SHAPE, dtype=DTYPE, node_attrs={"fixedsize": "false"})
    assert isinstance(picture, NetworkPlot)
    assert picture.source == str(picture) == DOT


def test_weights():
    hidden = mx.viz.plot_network(network()).source
    shown = mx.viz.plot_network(network(), hide_weights=False).source
    assert "fc_weight" not in hidden
    assert "fc -> fc_weight [label=" in shown
    assert "\tfc_weight [label=fc_weight" in shown


def test_labels_of_layers():
    data = sym.var("data")
    net = sym.Convolution(data, kernel=(3, 5), stride=(2, 1), num_filter=4, name="conv")
    net = sym.Pooling(sym.LeakyReLU(net, act_type="elu", name="elu"), pool_type="avg", kernel=(2, 2), name="pool")
    net = sym.Pooling(sym.Convolution(net, kernel=(1, 1), num_filter=2), global_pool=True, pool_type="max", name="whole")
    source = mx.viz.plot_network(sym.Concat(net, net, name="both")).source
    for label in (
        "Convolution\\n3x5/2x1, 4",
        "Convolution\\n1x1/1, 2",
        "LeakyReLU\\nelu",
        "Pooling\\navg, 2x2/1",
        "Pooling\\nmax, []/1",
    ):
        assert f'[label="{label}"' in source
    assert source.count("both -> whole") == 2


def test_outputs_of_one_node_have_their_own_shapes():
    parts = sym.split_v2(sym.var("data"), (2,), axis=1, name="parts")
    picture = mx.viz.plot_network(sym.Concat(parts[1], parts[0], name="both"), shape={"data": (3, 5)})
    assert "both -> parts [label=3 " in picture.source
    assert "both -> parts [label=2 " in picture.source
    assert ">3, 2</text>" in picture._repr_svg_()


def test_repeated_names():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        picture = mx.viz.plot_network(network("fc"), shape=SHAPE, dtype=DTYPE, node_attrs={"fixedsize": "false"})
    (warning,) = caught
    assert "There are multiple variables with the same name in your graph" in str(warning.message)
    assert "fc,fc_bias,fc_weight" in str(warning.message)
    assert warning.category is RuntimeWarning
    assert picture._repr_svg_().count("<g>") == 6  # drawn as the two nodes that they are


def texts(svg):
    return ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_svg():
    picture = mx.viz.plot_network(network(), "1 < 2", shape=SHAPE)
    svg = picture._repr_svg_()
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img"
    title, described, *_ = root
    assert title.text == "1 < 2"
    assert described.text.startswith(
        "A graph of 6 nodes: data, an input; fc, FullyConnected 128, of data; relu1, Activation relu, of fc; "
    )
    assert described.text.endswith("out, SoftmaxOutput, of fc2 and out_label.")
    assert texts(svg) == [
        "data", "FullyConnected", "128", "Activation", "relu", "FullyConnected", "10", "out_label", "out", "SoftmaxOutput",
        "200", "128", "128", "10",
    ]  # fmt: skip
    assert mx.viz.plot_network(sym.var("x"))._repr_svg_().count("<g>") == 1


def test_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    picture = mx.viz.plot_network(network(), title="net")
    assert (picture.save(), picture.render()) == ("net.gv", "net.svg")
    assert (tmp_path / "net.gv").read_text() == picture.source + "\n"
    assert (tmp_path / "net.svg").read_text() == picture._repr_svg_() + "\n"
    assert picture.render(tmp_path / "other.svg") == str(tmp_path / "other.svg")
    assert picture.save(tmp_path / "other.dot") == str(tmp_path / "other.dot")


def test_names_that_dot_would_misread():
    source = mx.viz.plot_network(sym.exp(sym.var('a "b"'), name="node"), title="graph").source
    assert source.startswith('digraph "graph" {')
    assert '\t"node" -> "a \\"b\\"" [label="" arrowtail' in source


def test_with_graphviz(monkeypatch):
    class Digraph:
        def __init__(self, name, format):
            self.what, self.nodes, self.edges = (name, format), [], []

        def node(self, **attrs):
            self.nodes.append(attrs)

        def edge(self, **attrs):
            self.edges.append(attrs)

    monkeypatch.setitem(sys.modules, "graphviz", types.SimpleNamespace(Digraph=Digraph))
    picture = mx.viz.plot_network(network(), "title", "png", node_attrs={"shape": "circle"})
    assert isinstance(picture, Digraph)
    assert picture.what == ("title", "png")
    assert [node["name"] for node in picture.nodes] == ["data", "fc", "relu1", "fc2", "out_label", "out"]
    assert [node["shape"] for node in picture.nodes] == ["oval", "circle", "circle", "circle", "oval", "circle"]
    assert picture.edges[0] == {"tail_name": "fc", "head_name": "data", "label": "", "dir": "back", "arrowtail": "open"}


def test_errors():
    with pytest.raises(TypeError, match="symbol must be a Symbol, got an NDArray"):
        mx.viz.plot_network(mx.nd.ones((1,)))
    with pytest.warns(UserWarning, match="Cannot"), pytest.raises(ValueError, match="do not determine all others"):
        mx.viz.plot_network(network(), shape={})


@pytest.mark.parametrize("attrs", [5, {"shape": 5}, {5: "oval"}, ["shape"]])
def test_odd_attributes_of_nodes(attrs):
    with pytest.raises(TypeError, match="node_attrs must be a dict of strings"):
        mx.viz.plot_network(sym.var("a") + 1, node_attrs=attrs)


def test_what_only_graphviz_can_do_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "graphviz", None)
    picture = mx.viz.plot_network(mx.sym.relu(mx.sym.var("data"), name="relu"))
    with pytest.raises(AttributeError, match="pip install graphviz"):
        picture.view()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        picture.nothing  # noqa: B018  # the access is what is tested
