"""Files of parameters under both naming schemes, their flags, and files of a whole network."""

from __future__ import annotations

import json

import numpy as np
import pytest

import minimx as mx
from minimx import gluon, init
from minimx.base import FileFormatError, MissingFileError
from minimx.gluon import nn


class Net(gluon.HybridBlock):
    def __init__(self, units=3, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.features = nn.HybridSequential()
            with self.features.name_scope():
                self.features.add(nn.Dense(4, activation="tanh"), nn.Dropout(0.5), nn.Dense(units))
            self.output = nn.Dense(2, use_bias=False)

    def hybrid_forward(self, F, x):
        return self.output(self.features(x))


X = mx.nd.array(np.linspace(-1, 1, 10).reshape(2, 5))


def trained(**kwargs):
    net = Net(**kwargs)
    net.initialize(init.Normal(1))
    net(X)
    return net


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "net.params")


def same(one, two):
    np.testing.assert_array_equal(one(X).asnumpy(), two(X).asnumpy())


# ---- by places in the tree


def test_places_do_not_depend_on_prefixes(path):
    net = trained(prefix="one_")
    net.save_parameters(path)
    assert sorted(mx.nd.load(path)) == [
        "features.0.bias", "features.0.weight", "features.2.bias", "features.2.weight", "output.weight",
    ]  # fmt: skip
    other = Net(prefix="two_")
    other.load_parameters(path)
    assert other.features[0].weight.shape == (4, 5)
    same(net, other)
    other.hybridize()
    same(net, other)


def test_a_single_layer(path):
    dense = nn.Dense(3, prefix="one_")
    dense.initialize()
    dense(X)
    dense.save_parameters(path)
    assert sorted(mx.nd.load(path)) == ["bias", "weight"]
    other = nn.Dense(3, prefix="two_")
    other.load_parameters(path)
    same(dense, other)


def test_loading_gives_values_to_what_waited(path):
    trained().save_parameters(path)
    net = Net()
    net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    net.load_parameters(path)
    assert net.output.weight.list_ctx() == [mx.cpu(0), mx.cpu(1)]
    assert net.features[0].weight.data(mx.cpu(1)).shape == (4, 5)
    with pytest.raises(AssertionError, match="initialized on"):
        net.load_parameters(path, ctx=mx.cpu(3))


def test_on_which_devices(path):
    trained().save_parameters(path)
    net = Net()
    net.load_parameters(path)
    assert net.output.weight.list_ctx() == [mx.cpu(0)]
    net = Net()
    net.load_parameters(path, ctx=[mx.cpu(1), mx.cpu(2)])
    assert net.output.weight.list_ctx() == [mx.cpu(1), mx.cpu(2)]


def test_missing_extra_and_misfit(path):
    net = trained()
    net.save_parameters(path)
    larger = Net()
    larger.more = nn.Dense(1)
    with pytest.raises(AssertionError, match=r"'more\.weight' is missing in file"):
        larger.load_parameters(path)
    larger.load_parameters(path, allow_missing=True)
    same(net, larger)
    smaller = gluon.HybridBlock()
    smaller.output = nn.Dense(2, use_bias=False)
    with pytest.raises(ValueError, match=r"'features\.0\.weight' loaded from file .* is not present"):
        smaller.load_parameters(path)
    smaller.load_parameters(path, ignore_extra=True)
    with pytest.raises(AssertionError, match="shape incompatible expected \\(7, 0\\) vs saved \\(3, 4\\)"):
        Net(units=7).load_parameters(path)
    with pytest.raises(MissingFileError):
        net.load_parameters(path + ".nosuch")


def test_dtypes(path):
    net = trained()
    net.save_parameters(path)
    net.cast("float16")
    with pytest.raises(AssertionError, match="Set cast_dtype=True"):
        net.load_parameters(path)
    net.load_parameters(path, cast_dtype=True)
    assert net.output.weight.data().dtype == np.float16
    net.load_parameters(path, cast_dtype=True, dtype_source="saved")
    assert net.output.weight.dtype == np.float32
    assert net.output.weight.data().dtype == np.float32


def test_shared_parameters(path):
    net = nn.Sequential()
    first = nn.Dense(5, in_units=5)
    net.add(first, nn.Dense(5, params=first.params))
    net.initialize()
    net.save_parameters(path)
    assert len(mx.nd.load(path)) == 4
    net.save_parameters(path, deduplicate=True)
    assert len(mx.nd.load(path)) == 2
    other = nn.Sequential()
    first = nn.Dense(5)
    other.add(first, nn.Dense(5, params=first.params))
    other.load_parameters(path)
    same(net, other)


def test_nothing_to_load(path):
    nn.Sequential().save_parameters(path)
    nn.Sequential().load_parameters(path)
    with pytest.raises(AssertionError, match="missing"):
        Net().load_parameters(path)


# ---- by full names


def test_full_names(path):
    net = trained(prefix="one_")
    net.collect_params().save(path)
    assert "one_hybridsequential0_dense0_weight" in mx.nd.load(path)
    other = Net(prefix="one_")
    other.collect_params().load(path)
    same(net, other)


def test_full_names_without_the_prefix(path):
    net = trained(prefix="one_")
    with pytest.warns(DeprecationWarning, match="save_params is deprecated"):
        net.save_params(path)
    other = Net(prefix="two_")
    with pytest.warns(DeprecationWarning, match="load_params is deprecated"):
        other.load_params(path)
    same(net, other)
    other = Net(prefix="three_")
    other.load_parameters(path)
    same(net, other)
    with pytest.raises(AssertionError, match="missing in file"):
        trained(prefix="two_").output.load_parameters(path)


# ---- a whole network


def test_save_and_load_of_a_hybridized_network(tmp_path):
    net = trained(prefix="one_")
    net.hybridize()
    before = net(X).asnumpy()
    net.save(str(tmp_path / "net"))
    described = json.loads((tmp_path / "net-model.json").read_text())
    assert described["net0"]["orig_name"] == "one"
    assert described["net0"]["hybridized"]
    assert described["net0"]["children"] == {"one_hybridsequential0": "features", "one_dense0": "output"}
    assert "dense2" in described["net0"]["hybridsequential1"]

    class Silent(Net):
        def hybrid_forward(self, F, x):
            raise AssertionError("the saved graph is run, not this")

    Silent.__name__ = "Net"
    other = Silent(prefix="two_")
    other.load(str(tmp_path / "net"))
    assert other.name == "one"
    np.testing.assert_array_equal(other(X).asnumpy(), before)


def test_save_and_load_of_plain_blocks(tmp_path):
    def make():
        net = nn.Sequential()
        net.add(nn.Dense(3), nn.Sequential())
        net[1].add(nn.Dense(2))
        return net

    net = make()
    net.initialize()
    net(X)
    net.save(str(tmp_path / "net"))
    other = make()
    other.load(str(tmp_path / "net"))
    same(net, other)
    assert not other[0]._active


def test_another_network_is_told_apart(tmp_path):
    trained().save(str(tmp_path / "net"))
    with pytest.raises(FileFormatError, match="does not describe this network"):
        nn.Dense(3).load(str(tmp_path / "net"))
    (tmp_path / "net-model.json").write_text("{")
    with pytest.raises(FileFormatError, match="does not describe this network"):
        Net().load(str(tmp_path / "net"))
    with pytest.raises(MissingFileError):
        Net().load(str(tmp_path / "nosuch"))


def test_a_damaged_tree_changes_nothing(tmp_path):
    def made():
        net = nn.HybridSequential(prefix="a_")
        net.add(nn.Dense(3, in_units=5, prefix="b_"), nn.Dense(2, in_units=3, prefix="c_"))
        net.initialize()
        net.hybridize()
        net(X)
        return net

    made().save(str(tmp_path / "net"))
    file = tmp_path / "net-model.json"
    whole = json.loads(file.read_text())
    damages = [
        lambda tree: tree["dense2"].pop("orig_name"), lambda tree: tree["dense2"].update(orig_name=5),
        lambda tree: tree.update(children={}),
        lambda tree: tree.update(children={"b": "0", "c": 1}), lambda tree: tree["dense2"].update(params=["one", "one"]),
        lambda tree: tree["dense2"].update(params="ab"), lambda tree: tree.update(symbol="{}"), lambda tree: tree.update(in_format=[0, 0]),
        lambda tree: tree.update(in_format="x"), lambda tree: tree.update(out_format=3), lambda tree: tree.update(answers={"mood": True}),
        lambda tree: tree.update(answers=[1]), lambda tree: tree.update(inputs=3), lambda tree: tree.pop("hybridized"),
        lambda tree: tree.update(dense2=[]),
    ]  # fmt: skip
    for damage in damages:
        tree = json.loads(json.dumps(whole))
        damage(tree["hybridsequential0"])
        file.write_text(json.dumps(tree))
        net = nn.HybridSequential(prefix="x_")
        net.add(nn.Dense(3, in_units=5, prefix="y_"), nn.Dense(2, in_units=3, prefix="z_"))
        net.initialize()
        before = net(X).asnumpy()
        with pytest.raises(FileFormatError):
            net.load(str(tmp_path / "net"))
        assert [net.name, net[0].name, net[1].name, *net.collect_params()] == [
            "x", "y", "z", "y_weight", "y_bias", "z_weight", "z_bias",
        ]  # fmt: skip
        assert np.array_equal(net(X).asnumpy(), before)


def test_a_block_that_is_there_twice_is_there_twice_after_loading(tmp_path):
    def made():
        net, layer = nn.HybridSequential(), nn.Dense(5, in_units=5, flatten=False)
        net.add(layer, nn.Activation("tanh"), layer)
        net.initialize()
        return net

    net, other = made(), made()
    net.save(str(tmp_path / "net"))
    other.load(str(tmp_path / "net"))
    assert len(other) == 3
    assert np.array_equal(other(X).asnumpy(), net(X).asnumpy())


class Outside(gluon.HybridBlock):
    """Its layers are made outside name_scope(), as a beginner's are: their names lack its prefix."""

    def __init__(self):
        super().__init__()
        self.first = nn.Dense(3)
        self.second = nn.Dense(2)

    def hybrid_forward(self, F, x):
        return self.second(self.first(x))


def test_a_file_of_export_is_told_from_one_of_save_parameters(path, tmp_path):
    net = Outside()
    net.initialize()
    net.hybridize()
    net(X)
    file, exported = net.export(str(tmp_path / "net"))
    other = Outside()
    missing = rf"'{other.first.weight.name}' is missing .*written by export, .*arg: .*read it with SymbolBlock\.imports"
    for make in (lambda: other, nn.HybridSequential, lambda: nn.Dense(3)):
        with pytest.raises(AssertionError, match=r"written by export, .*SymbolBlock\.imports"):
            make().load_parameters(exported)
    with pytest.raises(AssertionError, match=missing):
        other.load_parameters(exported)
    with pytest.raises(AssertionError, match=r"'dense\d+_weight' loaded from .* is not present .*written by export"):
        other.load_parameters(exported, allow_missing=True)
    mx.nd.save(path, {"arg:first.weight": mx.nd.ones((3, 5))})
    with pytest.raises(AssertionError, match=r"'first\.weight' is missing .*written by export"):
        other.load_parameters(path)
    with pytest.raises(AssertionError, match=r"'arg:first\.weight' loaded .*written by export"):
        other.load_parameters(path, allow_missing=True)

    net.save_parameters(path)
    for flags in ({}, {"allow_missing": True}):
        with pytest.raises(AssertionError, match=r"written by save_parameters, .*load_parameters"):
            gluon.SymbolBlock.imports(file, "data", path, **flags)
        with pytest.raises(AssertionError, match=r"written by save_parameters, .*load_parameters"):
            net.collect_params().load(path, **flags)
    mx.nd.save(path, {"weight": mx.nd.ones((3, 5)), "bias": mx.nd.ones((3,))})  # of a single layer: without dots
    with pytest.raises(AssertionError, match="written by save_parameters"):
        gluon.SymbolBlock.imports(file, "data", path)
