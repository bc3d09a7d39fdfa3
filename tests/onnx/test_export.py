"""`export_model` and its way back: what it takes, what it writes, which lengths stay open, and what it says of what it cannot do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import gluon, nd, sym
from minimx.contrib import onnx as contrib
from minimx.gluon import nn

from .support import check, exported, session

onnx = pytest.importorskip("onnx")

from minimx.onnx import converts, export_model, get_operator_support  # noqa: E402  # after it is known that onnx is there
from minimx.onnx.graph import CONVERTERS  # noqa: E402


def dense() -> tuple[sym.Symbol, dict[str, nd.NDArray]]:
    graph = sym.FullyConnected(sym.var("data"), num_hidden=2, name="fc")
    return graph, {"fc_weight": nd.array([[1, 2, 3], [4, 5, 6]]), "fc_bias": nd.array([10, 20])}


X = np.array([[1, 0, 2]], "float32")
Y = [[17, 36]]


# ---- what is given


@pytest.mark.parametrize("form", ["dict", "prefixed", "pair", "numpy"])
def test_forms_of_parameters(form: str, tmp_path: Any) -> None:
    graph, params = dense()
    given: Any = {
        "dict": params, "prefixed": {f"arg:{name}": array for name, array in params.items()}, "pair": [params, {}],
        "numpy": {name: array.asnumpy() for name, array in params.items()},
    }[form]  # fmt: skip
    path = export_model(graph, given, [(1, 3)], onnx_file_path=tmp_path / "m.onnx")
    assert path == str(tmp_path / "m.onnx")
    assert session(path).run(None, {"data": X})[0].tolist() == Y


def test_files_as_mxnet_writes_them(tmp_path: Any) -> None:
    graph, params = dense()
    mx.model.save_checkpoint(str(tmp_path / "m"), 3, graph, params, {})
    path = export_model(
        str(tmp_path / "m-symbol.json"), str(tmp_path / "m-0003.params"), [(1, 3)], np.float32, str(tmp_path / "m.onnx"), False
    )
    running = session(path)
    assert [each.name for each in running.get_outputs()] == ["fc_output"]
    assert running.run(None, {"data": X})[0].tolist() == Y


def test_older_names_and_declared_shapes(tmp_path: Any) -> None:
    graph, params = dense()
    path = export_model(graph, params, input_shape=[(1, 3)], input_type=np.float32, onnx_file_path=tmp_path / "m.onnx")
    assert session(path).run(None, {"data": X})[0].tolist() == Y
    declared = sym.FullyConnected(sym.var("data", shape=(1, 3)), num_hidden=2, name="fc")
    path = contrib.export_model(declared, params, onnx_file_path=tmp_path / "m.onnx", run_shape_inference=True)
    assert session(path).run(None, {"data": X})[0].tolist() == Y


def test_labels_of_losses_are_no_inputs(tmp_path: Any) -> None:
    graph, params = dense()
    path = export_model(sym.SoftmaxOutput(graph, name="softmax"), params, [(1, 3)], onnx_file_path=tmp_path / "m.onnx")
    running = session(path)
    assert [each.name for each in running.get_inputs()] == ["data"]
    np.testing.assert_allclose(running.run(None, {"data": X})[0], [[np.exp(-19), 1]], rtol=1e-5)


def test_outputs_keep_their_names_however_odd(tmp_path: Any) -> None:
    x = sym.var("x")
    y = sym.relu(x, name="y")
    graph = sym.Group([y, x, y, sym.BlockGrad(y, name="same"), sym.zeros((2,), name="zero")])
    path = export_model(graph, {}, [(2,)], onnx_file_path=tmp_path / "m.onnx")
    running = session(path)
    assert [each.name for each in running.get_outputs()][2:] == ["y_output_1", "same_output", "zero_output"]
    got = running.run(None, {"x": np.array([-1, 2], "float32")})
    assert [each.tolist() for each in got] == [[0, 2], [-1, 2], [0, 2], [0, 2], [0, 0]]


def test_several_inputs_of_several_dtypes(tmp_path: Any) -> None:
    graph = sym.where(sym.var("choice"), sym.var("a"), sym.var("b"))
    path = export_model(graph, {}, [(2,), (2,), (2,)], ["int32", "float32", "float32"], tmp_path / "m.onnx")
    feeds = {"choice": np.array([1, 0], "int32"), "a": np.array([1, 2], "float32"), "b": np.array([3, 4], "float32")}
    assert session(path).run(None, feeds)[0].tolist() == [1, 4]


def test_a_partitioned_network_is_exported_with_its_operators(tmp_path: Any) -> None:
    pytest.importorskip("onnxruntime")
    net = nn.HybridSequential()
    net.add(nn.Dense(3, activation="relu"), nn.Dense(2))
    net.initialize()
    x = nd.ones((2, 4))
    net.optimize_for(x, backend="ONNXRuntime")
    expected = net(x).asnumpy()
    symbol_file, param_file = net.export(tmp_path / "net")
    path = export_model(symbol_file, param_file, [(2, 4)], onnx_file_path=tmp_path / "m.onnx")
    np.testing.assert_allclose(session(path).run(None, {"data": x.asnumpy()})[0], expected, rtol=1e-5, atol=1e-6)


def test_what_only_parameters_need_is_computed_beforehand(tmp_path: Any) -> None:
    w = sym.var("w")
    graph = sym.dot(sym.var("data"), sym.transpose(w) * 2 + 1, name="d")
    path = export_model(graph, {"w": nd.ones((2, 3))}, [(1, 3)], onnx_file_path=tmp_path / "m.onnx")
    assert [node.op_type for node in onnx.load(path).graph.node] == ["MatMul"]
    assert session(path).run(None, {"data": X})[0].tolist() == [[9, 9]]


def test_random_numbers_are_drawn_by_the_runtime(tmp_path: Any) -> None:
    x = sym.var("x")
    graph = sym.Group([
        sym.random.uniform(2, 3, shape=(50, 20)), sym.random.normal(5, 2, shape=(50, 20)), sym.contrib.div_sqrt_dim(x),
    ])  # fmt: skip
    found = session(export_model(graph, {}, [(1, 4)], onnx_file_path=tmp_path / "m.onnx")).run(
        None, {"x": np.ones((1, 4), "float32")}
    )
    assert found[0].min() >= 2
    assert found[0].max() <= 3
    assert abs(found[1].mean() - 5) < 0.5
    assert abs(found[1].std() - 2) < 0.5
    assert found[2].tolist() == [[0.5] * 4]


# ---- open lengths


def conv_net() -> gluon.HybridBlock:
    net = nn.HybridSequential()
    net.add(nn.Conv2D(3, 3, strides=2), nn.GlobalAvgPool2D(), nn.Dense(2))
    net.initialize(mx.init.Normal(0.5))
    return net


def test_everything_may_be_open(tmp_path: Any) -> None:
    net = conv_net()
    running = check(net, [np.ones((2, 3, 9, 8), "float32")], tmp_path, dynamic=True)
    assert running.get_inputs()[0].shape == ["batch", 3, "data_2", "data_3"]  # the channels are the weights'
    other = np.random.default_rng(0).standard_normal((5, 3, 12, 17)).astype("float32")
    np.testing.assert_allclose(running.run(None, {"data": other})[0], net(nd.array(other)).asnumpy(), rtol=1e-4, atol=1e-5)


def test_an_open_length_that_cannot_be(tmp_path: Any) -> None:
    with pytest.raises(ValueError, match="axis 1 of data cannot be open"):
        exported(conv_net(), [nd.ones((2, 3, 9, 8))], tmp_path, dynamic=True, dynamic_input_shapes=[(None, None, 9, 8)])


def test_reshapes_keep_open_lengths(tmp_path: Any) -> None:
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            y = F.reshape(x, (-4, -1, 2, 0, 0))  # (N, T, C) -> (N / 2, 2, T, C)
            z = F.reshape(F.transpose(x, (1, 0, 2)), (0, -1))  # (T, N C)
            return [F.reshape(y, (-3, -2)), z, F.tile(F.expand_dims(x, 0), (1, 1, 1, 2)), F.broadcast_like(F.ones((1, 1, 1)), x)]

    net = Net()
    running = check(
        net, [np.random.default_rng(0).standard_normal((4, 3, 2)).astype("float32")], tmp_path, back=False, dynamic=True,
        dynamic_input_shapes=[("n", "t", 2)],
    )  # fmt: skip
    other = np.random.default_rng(0).standard_normal((6, 5, 2)).astype("float32")
    for got, mine in zip(running.run(None, {running.get_inputs()[0].name: other}), net(nd.array(other)), strict=True):
        np.testing.assert_allclose(got, mine.asnumpy())


def test_lengths_that_two_inputs_have_in_common(tmp_path: Any) -> None:
    class Net(gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any, y: Any) -> Any:
            return F.concat(x, y, dim=1)

    running = check(Net(), [np.ones((2, 3), "float32"), np.ones((2, 4), "float32")], tmp_path, dynamic=True)
    assert [each.shape for each in running.get_inputs()] == [["batch", "data0_1"], ["batch", "data1_1"]]


# ---- back


def test_what_a_file_says_of_itself(tmp_path: Any) -> None:
    path = exported(conv_net(), [nd.ones((2, 3, 9, 8))], tmp_path)
    found = contrib.get_model_metadata(path)
    assert found["input_tensor_data"] == [("data", (2, 3, 9, 8))]
    assert [shape for _, shape in found["output_tensor_data"]] == [(2, 2)]


def test_import_model_gives_a_symbol_and_its_parameters(tmp_path: Any) -> None:
    net = nn.HybridSequential()
    net.add(nn.Dense(3, in_units=2), nn.BatchNorm(in_channels=3))
    net.initialize(mx.init.Normal(0.5))
    x = nd.array([[1, 2]])
    graph, arguments, states = contrib.import_model(exported(net, [x], tmp_path))
    assert len(states) == 2
    assert set(graph.list_arguments()) == {"data", *arguments}
    [got] = graph.eval(data=x, **arguments, **states)
    np.testing.assert_allclose(got.asnumpy(), net(x).asnumpy(), rtol=1e-5)


def test_other_writers_models(tmp_path: Any) -> None:
    """Forms that our own files have not: axes as attributes, uneven padding, constants as nodes."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Pad", ["x"], ["p"], mode="constant", pads=[0, 0, 0, 0, 0, 0, 0, 1], value=1.0),
        helper.make_node("Conv", ["p", "w"], ["c"], kernel_shape=[2, 2], pads=[0, 0, 1, 1]),
        helper.make_node("Clip", ["c"], ["k"], min=0.0, max=6.0),
        helper.make_node("ReduceMean", ["k"], ["m"], axes=[2, 3], keepdims=0),
        helper.make_node("Constant", [], ["two"], value=numpy_helper.from_array(np.array([2], "float32"))),
        helper.make_node("Mul", ["m", "two"], ["y"]),
    ]
    weight = np.ones((1, 1, 2, 2), "float32")
    graph = helper.make_graph(
        nodes, "g", [value("x", 1, [1, 1, 2, 2])], [value("y", 1, [1, 1])], [numpy_helper.from_array(weight, "w")]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    block = contrib.import_to_gluon(tmp_path / "m.onnx")
    x = np.array([[[[1, 2], [3, 4]]]], "float32")
    wide = np.pad(np.pad(x, ((0, 0), (0, 0), (0, 0), (0, 1)), constant_values=1), ((0, 0), (0, 0), (0, 1), (0, 1)))[0, 0]
    sums = np.clip([[wide[i : i + 2, j : j + 2].sum() for j in range(3)] for i in range(2)], 0, 6)
    np.testing.assert_allclose(block(nd.array(x)).asnumpy(), [[2 * sums.mean()]], rtol=1e-6)


# ---- converters of one's own


def test_a_converter_for_an_operator_that_has_none(tmp_path: Any) -> None:
    graph = sym.cbrt(sym.var("x"), name="root")
    with pytest.raises(NotImplementedError, match=r"node root: the operator cbrt has no form .*@mx.onnx.converts\('cbrt'\)"):
        export_model(graph, {}, [(2,)], onnx_file_path=tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()
    assert "cbrt" not in get_operator_support()

    @converts("cbrt")
    def cbrt(graph: Any, op: Any, data: Any) -> Any:
        size = graph.node("Pow", graph.node("Abs", data), graph.number(1 / 3, data))
        return graph.node("Mul", graph.node("Sign", data), size)

    try:
        assert "cbrt" in get_operator_support()
        path = export_model(graph, {}, [(2,)], onnx_file_path=tmp_path / "m.onnx")
        np.testing.assert_allclose(session(path).run(None, {"x": np.array([8, -27], "float32")})[0], [2, -3], rtol=1e-6)
        with pytest.raises(ValueError, match="two converters"):
            converts("cbrt")(cbrt)
    finally:
        del CONVERTERS["cbrt"]


def test_what_is_logged(tmp_path: Any, caplog: Any) -> None:
    graph, params = dense()
    export_model(graph, params, [(1, 3)], onnx_file_path=tmp_path / "m.onnx", verbose=True)
    assert "Gemm(data, fc_weight, fc_bias) -> fc_output" in caplog.text


# ---- wrong use


def test_wrong_arguments(tmp_path: Any) -> None:
    graph, params = dense()
    where = tmp_path / "m.onnx"
    for bad, error, message in (
        ({"sym": 3, "params": {}}, ValueError, "sym must be a Symbol"),
        ({"params": 3}, ValueError, "params must be a dict"),
        ({"params": {"fc_weight": 3}}, ValueError, "must hold NDArrays, got 3 for fc_weight"),
        ({"in_shapes": None}, ValueError, "in_shapes is wanted.*data"),
        ({"in_shapes": [(1, 3), (2,)]}, ValueError, "has 2 shapes, the model 1 inputs.*: data"),
        ({"in_shapes": [(1, -3)]}, ValueError, "tuples of positive int"),
        ({"in_shapes": [3]}, ValueError, "tuples of positive int"),
        ({"in_shapes": [(1, 4)]}, ValueError, "fc"),
        ({"in_types": ["float32", "int8"]}, ValueError, "has 2 dtypes"),
        ({"in_types": "float31"}, TypeError, "float31"),
        ({"dynamic": True, "dynamic_input_shapes": [(None,)]}, ValueError, "a tuple of 2 is wanted"),
        ({"dynamic": True, "dynamic_input_shapes": 3}, ValueError, "must be a list of 1 tuples"),
        ({"dynamic": True, "dynamic_input_shapes": [(2, 3)]}, ValueError, "has 2 for axis 0 of data, in_shapes 1"),
        ({"params": str(tmp_path / "absent.params")}, FileNotFoundError, "absent.params"),
        ({"sym": str(tmp_path / "absent.json")}, FileNotFoundError, "absent.json"),
    ):
        given: dict[str, Any] = {"sym": graph, "params": params, "in_shapes": [(1, 3)], "onnx_file_path": where, **bad}
        with pytest.raises(error, match=message):
            export_model(**given)
        assert not where.exists()


def test_nodes_that_cannot_be_converted_are_named(tmp_path: Any) -> None:
    x = sym.var("x")
    for graph, shape, message in (
        (sym.Dropout(x, mode="always", name="d"), (2,), "d: a Dropout that drops in inference"),
        (sym.BatchNorm(x, output_mean_var=True, name="b")[1], (2, 3), "node b: its output 1 has no form"),
        (sym.contrib.foreach(lambda row, state: (row + state, state), x, sym.zeros((3,)), name="loop")[0], (2, 3), "_foreach"),
    ):
        arguments = {name: nd.ones((3,)) for name in graph.list_inputs() if name != "x"}
        with pytest.raises(mx.MXNetError, match=message):
            export_model(graph, arguments, [shape], onnx_file_path=tmp_path / "m.onnx")


def test_files_that_are_no_models(tmp_path: Any) -> None:
    with pytest.raises(FileNotFoundError, match=r"absent\.onnx"):
        contrib.import_model(tmp_path / "absent.onnx")
    path = exported(conv_net(), [nd.ones((2, 3, 9, 8))], tmp_path)
    contents = (tmp_path / "net.onnx").read_bytes()
    for broken in (b"", b"no model", contents[: len(contents) // 2], contents[:-1] + b"\xff"):
        (tmp_path / "broken.onnx").write_bytes(broken)
        with pytest.raises(mx.MXNetError, match=r"broken\.onnx is no ONNX model"):
            contrib.import_model(tmp_path / "broken.onnx")
    assert contrib.import_model(path)


def test_operators_that_cannot_be_read_are_named(tmp_path: Any) -> None:
    helper = onnx.helper
    value = helper.make_tensor_value_info
    for node, message in (
        (helper.make_node("NonZero", ["x"], ["y"], name="n"), "node 'n': the operator NonZero of ONNX cannot be read"),
        (helper.make_node("MaxPool", ["x"], ["y"], name="p", kernel_shape=[2], auto_pad="SAME_UPPER"), "auto_pad=SAME_UPPER"),
    ):
        graph = helper.make_graph([node], "g", [value("x", 1, [1, 1, 4])], [value("y", 1, [1, 1, 2])])
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), tmp_path / "m.onnx")
        with pytest.raises(NotImplementedError, match=message):
            contrib.import_model(tmp_path / "m.onnx")
