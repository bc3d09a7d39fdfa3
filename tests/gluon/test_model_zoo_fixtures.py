"""Files that MXNet 1.9.1 wrote of networks of its zoo are read, run and written again: by the graph, and by the network of the same
name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import minimx as mx
from minimx import gluon, nd

from . import model_zoo_nets as nets

FILES = Path(__file__).parents[1] / "data" / "model_zoo"
SCORES = json.loads((FILES / "scores.json").read_text())["scores"]


def assert_scores(net, image, name):
    expected = np.array([SCORES[name]])
    # float32 sums in another order: up to 50 layers, of which each may add an error of its last digits
    np.testing.assert_allclose(net(image).asnumpy(), expected, rtol=2e-4, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("name", nets.SMALL)
def test_graph_and_parameters_of_an_export(name):
    net = gluon.SymbolBlock.imports(str(FILES / f"{name}-symbol.json"), ["data"], str(FILES / f"{name}-0000.params"))
    _, image = nets.made(mx, name)
    assert_scores(net, image, name)


@pytest.mark.parametrize("name", nets.SMALL)
def test_parameters_into_the_network_of_that_name(name):
    make, _ = nets.SMALL[name]
    net = make(mx.gluon.model_zoo.vision, classes=10)
    net.load_parameters(str(FILES / f"{name}.params"))
    _, image = nets.made(mx, name)
    assert_scores(net, image, name)
    net.hybridize()
    assert_scores(net, image, name)


@pytest.mark.parametrize("name", nets.SMALL)
def test_minimx_writes_the_same_files(name, tmp_path):
    net, _ = nets.made(mx, name)
    net.export(str(tmp_path / name))
    net.save_parameters(str(tmp_path / f"{name}.params"))
    assert (tmp_path / f"{name}-symbol.json").read_text() == (FILES / f"{name}-symbol.json").read_text()
    assert (tmp_path / f"{name}-0000.params").read_bytes() == (FILES / f"{name}-0000.params").read_bytes()
    assert (tmp_path / f"{name}.params").read_bytes() == (FILES / f"{name}.params").read_bytes()


@pytest.mark.parametrize("name", nets.LARGE)
def test_graph_of_a_large_network(name, tmp_path):
    net, image = nets.made(mx, name)
    kinds = {param.name: "aux" if param.grad_req == "null" else "arg" for param in net.collect_params().values()}
    nd.save(str(tmp_path / "net.params"), {f"{kinds[each]}:{each}": param.data() for each, param in net.collect_params().items()})
    imported = gluon.SymbolBlock.imports(str(FILES / f"{name}-symbol.json"), ["data"], str(tmp_path / "net.params"))
    assert_scores(imported, image, name)
    assert_scores(net, image, name)
    graph = net(mx.sym.var("data"))
    recorded = mx.sym.load(str(FILES / f"{name}-symbol.json"))
    assert graph.list_arguments() == recorded.list_arguments()
    assert graph.list_auxiliary_states() == recorded.list_auxiliary_states()
