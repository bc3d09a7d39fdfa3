"""SymbolBlock: made from a graph or from files, in other networks, with shared parameters; and export, which writes such files."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, init, nd, sym
from minimx.base import ArgumentError, FileFormatError, MissingFileError, MXNetError
from minimx.gluon import SymbolBlock, nn

X = nd.array(np.linspace(-1, 1, 10).reshape(2, 5))


def mlp(**kwargs):
    net = nn.HybridSequential(**kwargs)
    with net.name_scope():
        net.add(nn.Dense(4, activation="tanh"), nn.BatchNorm(), nn.Dense(3))
    net.initialize(init.Normal(1))
    return net


def exported(path, **kwargs):
    """A network, and the names of its files."""
    net = mlp(prefix="net_", **kwargs)
    net.hybridize()
    net(X)
    return net, net.export(str(path / "net"))


def same(one, two, x=X):
    np.testing.assert_array_equal(one(x).asnumpy(), two(x).asnumpy())


# ---- export


def test_what_export_writes(tmp_path):
    net, files = exported(tmp_path)
    assert files == (str(tmp_path / "net-symbol.json"), str(tmp_path / "net-0000.params"))
    graph = sym.load(files[0])
    assert graph.list_arguments() == ["data", "net_dense0_weight", "net_dense0_bias", "net_batchnorm0_gamma", "net_batchnorm0_beta",
                                      "net_dense1_weight", "net_dense1_bias"]  # fmt: skip
    saved = nd.load(files[1])
    assert list(saved) == [
        "arg:net_dense0_weight", "arg:net_dense0_bias", "arg:net_batchnorm0_gamma", "arg:net_batchnorm0_beta",
        "aux:net_batchnorm0_running_mean", "aux:net_batchnorm0_running_var", "arg:net_dense1_weight", "arg:net_dense1_bias",
    ]  # fmt: skip
    np.testing.assert_array_equal(saved["arg:net_dense1_weight"].asnumpy(), net[2].weight.data().asnumpy())
    assert net.export(str(tmp_path / "net"), epoch=12)[1] == str(tmp_path / "net-0012.params")
    net.collect_params().load(files[1])


def test_several_inputs_are_numbered(tmp_path):
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x, pair, nothing=None):
            return x + pair[0] * pair[1]

    net = Net()
    net.hybridize()
    ones = nd.ones((2,))
    net(ones, [ones * 2, ones * 3])
    files = net.export(str(tmp_path / "net"))
    assert sorted(sym.load(files[0]).list_arguments()) == ["data0", "data1", "data2"]
    assert nd.load(files[1]) == []
    block = SymbolBlock.imports(files[0], ["data0", "data1", "data2"], None)
    assert block(ones, ones * 2, ones * 3).asnumpy().tolist() == [7, 7]


def test_export_needs_a_graph(tmp_path):
    net = mlp()
    for prepare in (lambda: None, lambda: net(X), net.hybridize):
        prepare()
        with pytest.raises(RuntimeError, match=r"first call block\.hybridize\(\) and then run forward"):
            net.export(str(tmp_path / "net"))
    net(X)
    net.export(str(tmp_path / "net"))
    net.hybridize()
    with pytest.raises(RuntimeError, match="hybridize"):
        net.export(str(tmp_path / "net"))


def test_an_export_that_fails_leaves_the_old_files(tmp_path, monkeypatch):
    net, files = exported(tmp_path)
    before = [Path(file).read_bytes() for file in files]
    net[2].weight.set_data(net[2].weight.data() + 1)
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", lambda *names: (_ for _ in ()).throw(OSError(28, "disk full")))
        with pytest.raises(OSError, match="disk full"):
            net.export(str(tmp_path / "net"))
    assert [Path(file).read_bytes() for file in files] == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net-0000.params", "net-symbol.json"]
    with pytest.raises(MissingFileError):
        net.export(str(tmp_path / "nosuch" / "net"))


def test_values_are_the_mean_over_devices(tmp_path):
    net = mlp(prefix="net_")
    net.initialize(init.One(), ctx=[mx.cpu(0), mx.cpu(1)], force_reinit=True)
    net.hybridize()
    net(X)
    net[2].weight.data(mx.cpu(1))[:] = 3
    _, params = net.export(str(tmp_path / "net"))
    assert (nd.load(params)["arg:net_dense1_weight"].asnumpy() == 2).all()


def test_casts_of_mixed_precision_are_left_out_unless_wanted(tmp_path):
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.exp(F.amp_cast(x, dtype="float32"))

    net = Net()
    net.hybridize()
    net(X)
    for remove, operators in ((True, ["null", "exp"]), (False, ["null", "amp_cast", "exp"])):
        file, _ = net.export(str(tmp_path / "net"), remove_amp_cast=remove)
        assert [node["op"] for node in json.loads(Path(file).read_text())["nodes"]] == operators


def test_the_graph_of_inference_is_exported(tmp_path):
    class Net(gluon.HybridBlock):
        def __init__(self, **kwargs):
            super().__init__(**kwargs)
            with self.name_scope():
                self.a, self.b = nn.Dense(1, in_units=5), nn.Dense(1, in_units=5)

        def hybrid_forward(self, F, x):
            return self.a(x) if autograd.is_training() else self.b(x) * 2

    net = Net(prefix="net_")
    net.initialize()
    net.hybridize()
    with autograd.record():
        net(X)
    file, params = net.export(str(tmp_path / "net"))
    assert sorted(nd.load(params)) == ["arg:net_dense1_bias", "arg:net_dense1_weight"]
    same(net, SymbolBlock.imports(file, "data", params))
    net.save(str(tmp_path / "net"))
    other = Net(prefix="other_")
    other.load(str(tmp_path / "net"))
    same(net, other)
    with autograd.train_mode():
        same(net, other)


def test_where_shapes_are_equal_mxnets_own_operators_are_exported(tmp_path):
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            x = (x + x) * (x > x)
            return F.maximum(x, F.mean(x, axis=0, keepdims=True)) - x

    net = Net()
    net.hybridize()
    net(X[:1])  # a batch of one does not tell that it broadcasts
    file, _ = net.export(str(tmp_path / "net"))
    operators = [node["op"] for node in json.loads(Path(file).read_text())["nodes"]]
    assert operators == ["null", "elemwise_add", "_greater", "elemwise_mul", "mean", "broadcast_maximum", "elemwise_sub"]
    same(net, SymbolBlock.imports(file, "data"))


# ---- imports


def test_imports(tmp_path):
    net, (file, params) = exported(tmp_path)
    for names in ("data", ["data"], ("data",)):
        block = SymbolBlock.imports(file, names, params)
        assert set(block.collect_params()) == set(net.collect_params())
        same(net, block)
    lines = str(block).splitlines()
    assert lines == ["SymbolBlock(", "<Symbol net_dense1_fwd> : 1 -> 1", ")"]
    assert block.collect_params()["net_batchnorm0_running_mean"].grad_req == "null"
    block = SymbolBlock.imports(file, "data", params, ctx=[mx.cpu(1), mx.cpu(2)])
    assert block(X.as_in_context(mx.cpu(2))).context == mx.cpu(2)
    with pytest.raises(RuntimeError, match="not initialized on context cpu\\(0\\)"):
        block(X)


def test_imports_without_parameters(tmp_path):
    _, (file, _) = exported(tmp_path)
    block = SymbolBlock.imports(file, ["data"])
    with pytest.raises(RuntimeError, match="has not been initialized"):
        block(X)
    block.initialize()
    assert block(X).shape == (2, 3)
    assert block.collect_params()["net_dense0_weight"].shape == (4, 5)


def test_parameters_that_are_missing_or_too_many(tmp_path):
    _, (file, params) = exported(tmp_path)
    saved = nd.load(params)
    extra = str(tmp_path / "extra.params")
    nd.save(extra, {**saved, "arg:more": nd.ones((1,))})
    with pytest.raises(AssertionError, match=r"'more' loaded from file .* is not present"):
        SymbolBlock.imports(file, "data", extra)
    SymbolBlock.imports(file, "data", extra, ignore_extra=True)
    fewer = str(tmp_path / "fewer.params")
    del saved["arg:net_dense1_bias"]
    nd.save(fewer, saved)
    with pytest.raises(AssertionError, match="'net_dense1_bias' is missing"):
        SymbolBlock.imports(file, "data", fewer)
    block = SymbolBlock.imports(file, "data", fewer, allow_missing=True)
    with pytest.raises(RuntimeError, match="net_dense1_bias' has not been initialized"):
        block(X)


def test_files_that_cannot_be_read(tmp_path):
    _, (file, params) = exported(tmp_path)
    with pytest.raises(MXNetError):
        SymbolBlock.imports(str(tmp_path / "nosuch"), "data", params)
    with pytest.raises(MissingFileError):
        SymbolBlock.imports(file, "data", str(tmp_path / "nosuch"))
    with pytest.raises(FileFormatError):
        SymbolBlock.imports(params, "data", params)
    with pytest.raises(FileFormatError):
        SymbolBlock.imports(file, "data", file)


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_dtypes_of_the_file(tmp_path, dtype):
    net = mlp(prefix="net_")
    net.cast(dtype)
    net.hybridize()
    x = X.astype(dtype)
    net(x)
    file, params = net.export(str(tmp_path / "net"))
    block = SymbolBlock.imports(file, "data", params)
    assert block.params["net_dense0_weight"].dtype == np.dtype(dtype)
    same(net, block, x)
    declared = SymbolBlock(sym.load(file), sym.var("data", dtype=dtype))
    assert declared.params["net_dense0_weight"].dtype == np.dtype(dtype)
    declared.collect_params().load(params)
    same(net, declared, x)
    declared.cast("float32")
    assert declared(X).dtype == np.float32


def test_batchnorms_stay_float32_for_float16(tmp_path):
    _, (file, params) = exported(tmp_path)
    block = SymbolBlock.imports(file, "data", params)
    block.cast("float16")
    kinds = {name: np.dtype(param.dtype).name for name, param in block.params.items()}
    assert {kind for name, kind in kinds.items() if "batchnorm" in name} == {"float32"}
    assert {kind for name, kind in kinds.items() if "dense" in name} == {"float16"}
    assert block(X.astype("float16")).dtype == np.float16


def test_training_an_imported_network(tmp_path):
    net, (file, params) = exported(tmp_path)
    block = SymbolBlock.imports(file, "data", params)
    gradients = []
    for each in (net, block):
        trainer = gluon.Trainer(each.collect_params(), "sgd", {"learning_rate": 0.1})
        for _ in range(2):
            with autograd.record():
                loss = (each(X) ** 2).sum()
            loss.backward()
            trainer.step(2)
        gradients.append(each(X).asnumpy())
    np.testing.assert_allclose(*gradients, rtol=1e-5)


# ---- from a graph


def features():
    net = mlp(prefix="net_")
    net(X)
    data = sym.var("data")
    return net, data, net(data).get_internals()


def test_every_output_of_a_network():
    net, data, internals = features()
    block = SymbolBlock(internals, data, params=net.collect_params())
    outputs = block(X)
    assert len(outputs) == len(internals.list_outputs())
    np.testing.assert_array_equal(outputs[-1].asnumpy(), net(X).asnumpy())
    assert len(block(sym.var("in"))) == len(outputs)
    chosen = SymbolBlock(
        [internals["net_dense0_tanh_fwd_output"], internals["net_dense1_fwd_output"]], [data], net.collect_params()
    )
    hidden, output = chosen(X)
    assert (hidden.shape, output.shape) == ((2, 4), (2, 3))
    single = SymbolBlock([internals["net_dense0_tanh_fwd_output"]], data, dict(net.collect_params().items()))
    np.testing.assert_array_equal(single(X).asnumpy(), hidden.asnumpy())


def test_parameters_are_shared():
    net, data, internals = features()
    block = SymbolBlock(internals["net_dense0_fwd_output"], data, params=net.collect_params())
    assert block.params["net_dense0_weight"] is net[0].weight
    net[0].weight.set_data(nd.zeros((4, 5)))
    net[0].bias.set_data(nd.ones((4,)))
    assert (block(X).asnumpy() == 1).all()


def test_several_and_nested_inputs():
    a, b, c = map(sym.var, "abc")
    block = SymbolBlock([a + b, [b * c]], [a, [b, c]])
    ones = nd.ones((2,))
    for _ in range(2):
        first, [second] = block(ones, [ones * 2, ones * 3])
        assert (first.asnumpy().tolist(), second.asnumpy().tolist()) == ([3, 3], [6, 6])
        block.hybridize(static_alloc=True)
    with pytest.raises(ValueError, match=r"block\(a, \[b, c\]\); got an array, an array, an array"):
        block(ones, ones, ones)
    with pytest.raises(ValueError, match=r"block\(a, \[b, c\]\); got"):
        block(sym.var("x"), sym.var("y"), sym.var("z"))
    group = SymbolBlock(a - b, sym.Group([a, b]))
    assert group(ones * 3, ones).asnumpy().tolist() == [2, 2]


def test_inputs_must_be_variables_and_dense():
    x = sym.var("x")
    with pytest.raises(AssertionError, match="must be variables"):
        SymbolBlock(x + 1, x * 2)
    with pytest.raises(AssertionError, match="must be variables"):
        SymbolBlock(x + 1, [nd.ones((1,))])
    with pytest.raises(AssertionError, match="weight is sparse"):
        SymbolBlock(sym.dot(x, sym.var("weight", __storage_type__="1")), x)


def test_an_input_that_the_graph_does_not_use(tmp_path):
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F, x, y):
            return x * 2

    net = Net()
    net.hybridize()
    ones = nd.ones((2,))
    with pytest.warns(UserWarning, match="1-th input"):
        net(ones, ones)
    file, params = net.export(str(tmp_path / "net"))
    block = SymbolBlock.imports(file, ["data0", "data1"], params)
    with pytest.warns(UserWarning, match="1-th input"):
        assert block(ones, ones).asnumpy().tolist() == [2, 2]
    assert block(sym.var("a"), sym.var("b")).list_arguments() == ["a"]


def test_an_output_that_is_an_input():
    x = sym.var("x")
    block = SymbolBlock([x, x + 1], x)
    assert block(sym.var("y")).__len__() == 2
    assert [each.list_arguments() for each in block(sym.var("y"))] == [["y"], ["y"]]
    assert [each.asscalar() for each in block(nd.ones((1,)))] == [1, 2]


# ---- in other networks


class Body(gluon.HybridBlock):
    """A SymbolBlock between other layers, used twice."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            _, data, internals = features()
            [hidden] = [name for name in internals.list_outputs() if name.endswith("dense0_tanh_fwd_output")]
            self.first = nn.Dense(5)
            self.backbone = SymbolBlock(internals[hidden], data)
            self.last = nn.Dense(2)

    def hybrid_forward(self, F, x):
        return self.last(F.concat(self.backbone(self.first(x)), self.backbone(x)))


@pytest.mark.parametrize("flags", [{}, {"static_alloc": True, "static_shape": True}])
def test_as_a_part_of_a_network(tmp_path, flags):
    net = Body()
    net.initialize(init.Normal(1))
    wanted = net(X).asnumpy()

    def gradients():
        with autograd.record():
            loss = (net(X) ** 2).sum()
        loss.backward()
        return [param.grad().asnumpy() for param in net.collect_params().values()]

    before = gradients()
    net.hybridize(**flags)
    np.testing.assert_allclose(net(X).asnumpy(), wanted, rtol=1e-6)
    for one, two in zip(gradients(), before):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)
    arguments = net._cached_graph[1].list_arguments()
    assert sum(name.endswith("net_dense0_weight") for name in arguments) == 1
    file, params = net.export(str(tmp_path / "net"))
    again = SymbolBlock.imports(file, "data", params)
    np.testing.assert_allclose(again(X).asnumpy(), wanted, rtol=1e-6)
    net.save_parameters(str(tmp_path / "places.params"))
    assert "backbone.weight" in nd.load(str(tmp_path / "places.params"))
    other = Body()
    other.load_parameters(str(tmp_path / "places.params"))
    np.testing.assert_allclose(other(X).asnumpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("hybrid", [False, True])
def test_save_and_load_of_a_network_with_one(tmp_path, hybrid):
    net = Body(prefix="one_")
    net.initialize(init.Normal(1))
    net.hybridize(hybrid)
    wanted = net(X).asnumpy()
    net.save(str(tmp_path / "net"))
    other = Body(prefix="two_")
    other.load(str(tmp_path / "net"))
    np.testing.assert_allclose(other(X).asnumpy(), wanted, rtol=1e-6)
    assert "one_net_dense0_weight" in other.backbone.params
    other.hybridize(not hybrid)
    np.testing.assert_allclose(other(X).asnumpy(), wanted, rtol=1e-6)


def test_random_numbers_are_drawn_in_the_same_order():
    data = sym.var("data")
    part = SymbolBlock(sym.Dropout(sym.Dropout(data, name="a") + sym.Dropout(data * 2, name="b")), data)
    net = nn.HybridSequential()
    net.add(nn.Dropout(0.5), part)
    x = nd.ones((50,))

    def draw():
        mx.random.seed(3)
        with autograd.train_mode():
            return net(x).asnumpy()

    wanted = draw()
    net.hybridize()
    np.testing.assert_array_equal(draw(), wanted)


def test_hybridize_and_summary(tmp_path, capsys):
    net, (file, params) = exported(tmp_path)
    block = SymbolBlock.imports(file, "data", params)
    block.summary(X)
    assert "SymbolBlock-1" in capsys.readouterr().out
    for flags in ({"static_alloc": True}, {"active": False}, {}):
        block.hybridize(**flags)
        same(net, block)
    with pytest.raises(AssertionError, match="must not be hybridized"):
        block.summary(X)
    with pytest.raises(NotImplementedError):
        block.hybrid_forward(nd, X)


def test_copies(tmp_path):
    _, (file, params) = exported(tmp_path)
    block = SymbolBlock.imports(file, "data", params)
    wanted = block(X).asnumpy()
    for other in (copy.deepcopy(block), pickle.loads(pickle.dumps(block))):
        np.testing.assert_array_equal(other(X).asnumpy(), wanted)
        other.collect_params()["net_dense1_bias"].set_data(nd.ones((3,)) * 9)
        np.testing.assert_array_equal(block(X).asnumpy(), wanted)
        assert (other(X).asnumpy() != wanted).all()


def test_moving_to_another_device(tmp_path):
    net, (file, params) = exported(tmp_path)
    block = SymbolBlock.imports(file, "data", params)
    same(net, block)
    block.reset_ctx(mx.cpu(1))
    assert block(X.as_in_context(mx.cpu(1))).context == mx.cpu(1)
    block.reset_ctx([mx.cpu(0), mx.cpu(1)])
    same(net, block)


def test_other_blocks_that_change_do_not_make_it_anew(tmp_path):
    _, (file, params) = exported(tmp_path)
    block = SymbolBlock.imports(file, "data", params)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        block(X)
        op = block._cached_op
        nn.HybridSequential().add(nn.Dense(2))
        block(X)
    assert block._cached_op is op


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda x: SymbolBlock(None, x), "outputs must be a Symbol .*, got None"), (lambda x: SymbolBlock(X, x), "got an NDArray"),
        (lambda x: SymbolBlock(x * sym.var("w"), x, params={"w": 3}), "params must hold Parameters, got 3 for w"),
        (lambda x: SymbolBlock.imports(__file__.replace(".py", ".absent"), "data"), "there is no file"),
    ],
)  # fmt: skip
def test_odd_arguments(make, match):
    with pytest.raises(MXNetError, match=match):
        make(sym.var("x"))


def test_odd_names_of_inputs(tmp_path):
    _, files = exported(tmp_path)
    with pytest.raises(MXNetError, match="input_names must be a str or a list of them, got 5"):
        SymbolBlock.imports(files[0], 5)


def test_two_kinds_of_one_name():
    with pytest.raises(AssertionError, match="both 'arg:' and 'aux:' arrays of one name"):
        gluon.ParameterDict().load_dict({"arg:w": X, "aux:w": X}, ignore_extra=True)


def test_names_of_inputs_that_the_graph_does_not_have(tmp_path):
    _, (file, params) = exported(tmp_path)
    with pytest.raises(
        AssertionError, match=r"inputs given are \['x'\]; the graph's variables without a value in the file: 'data'\."
    ):
        SymbolBlock.imports(file, ["x"], params)
    both = sym.FullyConnected(sym.var("a") * sym.var("b"), num_hidden=2, name="fc")
    both.save(file)
    nd.save(params, {"arg:fc_weight": nd.ones((2, 3)), "arg:fc_bias": nd.ones((2,))})
    with pytest.raises(
        AssertionError, match=r"inputs given are \['a'\]; the graph's variables without a value in the file: 'b'\."
    ):
        SymbolBlock.imports(file, "a", params)
    nd.save(params, {"arg:fc_weight": nd.ones((2, 3))})
    with pytest.raises(AssertionError, match=r"'fc_bias' is missing .*same prefix\.$"):
        SymbolBlock.imports(file, ["a", "b"], params)


def test_a_wrong_number_of_inputs_is_told_with_their_names():
    data, mask, extra = sym.var("data"), sym.var("mask"), sym.var("extra")
    block = SymbolBlock(data * mask, [data, mask])
    one = nd.ones((2,))
    for arguments, got in (
        ((), "nothing"),
        ((one,), "an array"),
        ((one, one, one), "an array, an array, an array"),
        ((one, None), "an array, None"),
        (([one, one],), "a list of 2"),
        ((data,), "an array"),
        ((data, sym.split(data, 2)), "an array, a Symbol of 2 outputs"),
    ):
        with pytest.raises(ArgumentError) as caught:
            block(*arguments)
        assert str(caught.value).startswith(f"SymbolBlock: call it with its inputs, block(data, mask); got {got}. ")
    assert block(one, one).asnumpy().tolist() == [1, 1]
    nested = SymbolBlock(data * mask + extra, [data, [mask, extra]])
    with pytest.raises(ArgumentError, match=r"block\(data, \[mask, extra\]\); got an array, an array, an array\."):
        nested(one, one, one)
    assert nested(one, [one, one]).asnumpy().tolist() == [2, 2]
    single = SymbolBlock(sym.relu(data), data)
    with pytest.raises(ArgumentError, match=r"block\(data\); got an array, an array\."):
        single(one, one)
