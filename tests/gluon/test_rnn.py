"""Recurrent layers and cells: values that MXNet recorded; a graph against Python code, an exported file, a layer against its cells."""

from __future__ import annotations

import json
import math
import pathlib

import numpy as np
import pytest

import minimx as mx
from minimx import autograd, gluon, init, nd, sym
from minimx.base import ArgumentError, DTypeError, MXNetError, OutOfRangeError, ShapeError
from minimx.gluon import nn, rnn
from minimx.gluon.contrib import rnn as contrib

RECORDED = json.loads((pathlib.Path(__file__).parent.parent / "data" / "mxnet-1.9.1" / "rnn.json").read_text())
LENGTHS = nd.array([1, 3])


def ramp(shape, start=0):
    """Numbers that are easily made again."""
    return nd.array(np.sin(np.arange(math.prod(shape)) * 0.7 + start).reshape(shape) * 0.5)


def filled(net, call):
    """`net` with parameters whose shapes `call` tells, and which both programs filled alike."""
    net.initialize()
    call()
    for number, (_, param) in enumerate(sorted(net.collect_params().items())):
        param.set_data(ramp(param.shape, number))
    return net


def stack(*cells, cls=rnn.HybridSequentialRNNCell):
    result = cls()
    for cell in cells:
        result.add(cell)
    return result


def compare(name, *values):
    for suffix, value in zip(("", " gradient", " state"), values):
        np.testing.assert_allclose(value.asnumpy().ravel(), RECORDED[name + suffix], rtol=2e-5, atol=2e-6, err_msg=suffix)


def weighted(y):
    return (y * ramp(y.shape, 1)).sum()


# ---- layers

LAYERS = {
    "rnn": lambda: rnn.RNN(2, 2, activation="tanh", bidirectional=True),
    "relu": lambda: rnn.RNN(2, layout="NTC"),
    "lstm": lambda: rnn.LSTM(2, 2),
    "gru": lambda: rnn.GRU(2, 2, bidirectional=True),
}


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_layer(name, hybrid):
    x = ramp((3, 2, 2))
    x.attach_grad()
    net = LAYERS[name]()
    filled(net, lambda: net(x))
    if hybrid:
        net.hybridize()
    with autograd.record():
        y = net(x)
        loss = weighted(y)
    loss.backward()
    compare(name, y, x.grad)
    np.testing.assert_allclose(net(x).asnumpy(), y.asnumpy(), rtol=1e-6)  # outside training


class Net(gluon.HybridBlock):
    """A layer in a network, whose states are made in the graph."""

    def __init__(self, layer, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.layer = layer()
            self.out = nn.Dense(3, flatten=False)

    def hybrid_forward(self, F, x):
        return self.out(self.layer(x))


@pytest.mark.parametrize("hidden", [1, 4])
@pytest.mark.parametrize("layer", [
    lambda n: rnn.RNN(n, 2), lambda n: rnn.LSTM(n, 2, bidirectional=True), lambda n: rnn.GRU(n, layout="NTC"),
    lambda n: rnn.LSTM(n, 2, projection_size=2, state_clip_min=-0.1, state_clip_max=0.1, bidirectional=True),
])  # fmt: skip
def test_eager_graph_and_file_agree(layer, hidden, tmp_path):
    net = Net(lambda: layer(hidden))
    net.initialize(init.Normal(0.7))
    x = nd.array(np.random.default_rng(1).normal(size=(4, 2, 3)))
    results = []
    for hybrid in (False, True):
        net.hybridize(hybrid)
        x.attach_grad()
        with autograd.record():
            y = net(x)
            loss = (y * y).sum()
        loss.backward()
        results.append(
            [net(x).asnumpy(), y.asnumpy(), x.grad.asnumpy(), *(p.grad().asnumpy() for p in net.collect_params().values())]
        )
    for eager, graph in zip(*results):
        np.testing.assert_allclose(graph, eager, rtol=1e-5, atol=1e-6)
    files = net.export(str(tmp_path / "net"))
    again = gluon.SymbolBlock.imports(files[0], ["data"], files[1])
    np.testing.assert_allclose(again(x).asnumpy(), results[0][0], rtol=1e-5, atol=1e-6)
    net.save_parameters(str(tmp_path / "params"))
    other = Net(lambda: layer(hidden))
    other.load_parameters(str(tmp_path / "params"))
    np.testing.assert_allclose(other(x).asnumpy(), results[0][0], rtol=1e-6)


@pytest.mark.parametrize("hybrid", [False, True])
def test_states_come_back_if_they_are_given(hybrid):
    layer = rnn.LSTM(4, 2, layout="NTC")
    layer.initialize()
    if hybrid:
        layer.hybridize()
    x = nd.ones((3, 5, 2))
    alone = layer(x)
    output, states = layer(x, layer.begin_state(batch_size=3))
    again, (hidden, cell) = layer(x, states)
    assert alone.shape == (3, 5, 4)
    assert hidden.shape == cell.shape == (2, 3, 4)
    np.testing.assert_array_equal(alone.asnumpy(), output.asnumpy())
    assert abs((again - output).asnumpy()).max() > 0
    np.testing.assert_array_equal(layer(x).asnumpy(), alone.asnumpy())  # and the graph without states is there again
    np.testing.assert_array_equal(again.asnumpy()[:, -1], hidden.asnumpy()[1])
    single = rnn.GRU(4)
    single.initialize()
    output, states = single(x, nd.zeros((1, 5, 4)))  # one tensor counts as a list of one
    assert output.shape == (3, 5, 4)
    assert isinstance(states, list)


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("cls", [rnn.RNN, rnn.LSTM, rnn.GRU])
def test_sequence_lengths_are_those_of_an_unrolled_cell(cls, hybrid):
    layer = cls(4, 2, bidirectional=True, use_sequence_length=True, prefix="same_")
    cells = layer._unfuse()
    layer.initialize(init.Normal(0.5))
    x = nd.array(np.random.default_rng(2).normal(size=(5, 3, 2)))
    lengths = nd.array([1, 5, 3])
    if hybrid:
        layer.hybridize()
    output, states = layer(x, layer.begin_state(batch_size=3), lengths)
    unrolled, cell_states = cells.unroll(5, x, layout="TNC", merge_outputs=True, valid_length=lengths)
    np.testing.assert_allclose(output.asnumpy(), unrolled.asnumpy(), rtol=1e-5, atol=1e-6)
    for number, state in enumerate(states):
        wanted = np.stack([each.asnumpy() for each in cell_states[number :: len(states)]])
        np.testing.assert_allclose(state.asnumpy(), wanted, rtol=1e-5, atol=1e-6)
    assert (output.asnumpy()[1:, 0] == 0).all()


@pytest.mark.parametrize("layer", [
    rnn.RNN(3, 2, activation="tanh"), rnn.LSTM(3, 2, bidirectional=True), rnn.GRU(3, 2, dropout=0.5), rnn.RNN(2, 1, activation="relu"),
])  # fmt: skip
def test_unfused(layer):
    """A stack of cells has the same parameters, values and gradients."""
    cells = layer._unfuse()
    assert cells.collect_params().keys() == layer.collect_params().keys()
    layer.initialize(init.Normal(0.5))
    x = nd.array(np.random.default_rng(2).normal(size=(4, 3, 2)))
    x.attach_grad()
    results = []
    for call in (layer, lambda x: cells.unroll(4, x, layout="TNC", merge_outputs=True)[0]):
        with autograd.record(train_mode=False):
            y = call(x)
            loss = (y * y).sum()
        loss.backward(train_mode=False)
        results.append([y.asnumpy(), x.grad.asnumpy(), *(p.grad().asnumpy() for p in layer.collect_params().values())])
    for fused, unfused in zip(*results):
        np.testing.assert_allclose(fused, unfused, rtol=1e-5, atol=1e-6)


def test_dropout_between_layers():
    """What two layers that copy make of ones: nothing, or twice as much; only in training."""
    layer = rnn.RNN(20, 2, dropout=0.5, input_size=20)
    layer.initialize()
    for name, param in layer.collect_params().items():
        param.set_data(nd.array(np.eye(20)) if name.endswith("i2h_weight") else nd.zeros(param.shape))
    x = nd.ones((10, 5, 20))
    np.testing.assert_array_equal(layer(x).asnumpy(), 1)
    mx.random.seed(1)
    x.attach_grad()
    with autograd.record():
        y = layer(x)
    y.backward()
    assert set(np.unique(y.asnumpy())) == {0, 2}
    assert abs(y.asnumpy().mean() - 1) < 0.2
    np.testing.assert_array_equal(x.grad.asnumpy(), y.asnumpy())
    mx.random.seed(1)
    with autograd.record():
        again = layer(x)
    np.testing.assert_array_equal(again.asnumpy(), y.asnumpy())


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("hybrid", [False, True])
def test_other_dtypes(dtype, hybrid):
    net = nn.HybridSequential()
    net.add(rnn.GRU(4, bidirectional=True), rnn.LSTM(3))
    net.initialize()
    x = nd.array(np.random.default_rng(2).normal(size=(4, 3, 2)))
    wanted = net(x).asnumpy()
    net.cast(dtype)
    if hybrid:
        net.hybridize()
    with autograd.record():
        y = net(x.astype(dtype))
    y.backward()
    assert y.dtype == np.dtype(dtype)
    np.testing.assert_allclose(y.asnumpy(), wanted, rtol=1e-2 if dtype == "float16" else 1e-5, atol=1e-3)
    cell = rnn.LSTMCell(3)
    cell.initialize()
    cell.cast(dtype)
    assert cell.unroll(4, x.astype(dtype), layout="TNC")[0][0].dtype == np.dtype(dtype)


def test_names_and_words():
    layer = rnn.LSTM(4, 2, bidirectional=True, projection_size=3, dropout=0.1, prefix="net_")
    assert repr(layer) == "LSTM(None -> 4, TNC, num_layers=2, dropout=0.1, bidirectional)"
    one = ["i2h_weight", "h2h_weight", "i2h_bias", "h2h_bias", "h2r_weight"]
    assert list(layer.collect_params()) == [f"net_{d}{n}_{each}" for n in (0, 1) for d in "lr" for each in one]
    shapes = [layer.params.get(f"l1_{each}").shape for each in one]
    assert shapes == [(16, 6), (16, 3), (16,), (16,), (3, 4)]
    assert "_unfused.1.r_cell.h2r_weight" in layer._collect_params_with_prefix()
    assert layer.state_info(5)[1] == {"shape": (4, 5, 4), "__layout__": "LNC", "dtype": "float32"}
    outputs = rnn.GRU(4, prefix="g_")(sym.var("data"))
    assert outputs.list_arguments() == ["data", "g_l0_i2h_weight", "g_l0_h2h_weight", "g_l0_i2h_bias", "g_l0_h2h_bias"]
    output, states = rnn.LSTM(4, prefix="q_")(sym.var("data"), [sym.var("h"), sym.var("c")])
    assert output.list_outputs() == ["q_rnn0_output"]
    assert [state.list_outputs()[0] for state in states] == ["q_rnn0_state_output", "q_rnn0_statecell_output"]


def test_initializers():
    layer = rnn.LSTM(2, i2h_bias_initializer=init.LSTMBias(3.0), h2h_weight_initializer="ones", input_size=1)
    layer.initialize()
    assert layer.l0_i2h_bias.data().asnumpy().tolist() == [0, 0, 3, 3, 0, 0, 0, 0]
    assert (layer.l0_h2h_weight.data().asnumpy() == 1).all()
    with pytest.raises(ShapeError, match="no vector of parameters"):
        init.FusedRNN("one", 3, 1, "gru")._init_weight(init.InitDesc("parameters"), nd.zeros((7,)))
    lstm = nd.zeros((4 * 2 * (1 + 2 + 2),))
    init.FusedRNN(init.Constant(5), 2, 1, "lstm", forget_bias=2.0)._init_weight(init.InitDesc("parameters"), lstm)
    assert lstm.asnumpy().tolist() == [5] * 24 + [0, 0, 2, 2, 0, 0, 0, 0] * 2


# ---- cells

CELLS = {
    "rnn cell": lambda: rnn.RNNCell(2, activation="softrelu"),
    "lstm cell": lambda: rnn.LSTMCell(2),
    "gru cell": lambda: rnn.GRUCell(2),
    "projection cell": lambda: contrib.LSTMPCell(2, 1),
    "lengths": lambda: rnn.LSTMCell(2),
    "both ways": lambda: rnn.BidirectionalCell(rnn.GRUCell(1, prefix="l_"), rnn.RNNCell(1, prefix="r_")),
    "stack": lambda: stack(rnn.ResidualCell(rnn.LSTMCell(2, prefix="a_")), rnn.DropoutCell(0), rnn.GRUCell(1, prefix="b_")),
    "residual lengths": lambda: rnn.ResidualCell(rnn.RNNCell(2)),
}
WITH_LENGTHS = ("lengths", "both ways", "residual lengths")


@pytest.mark.parametrize("way", ["eager", "hybrid", "list", "time first", "dynamic"])
@pytest.mark.parametrize("name", CELLS)
def test_cell(name, way):
    cell, x = CELLS[name](), ramp((2, 3, 2))
    filled(cell, lambda: cell.unroll(3, x, merge_outputs=True))
    lengths = LENGTHS if name in WITH_LENGTHS else None
    x.attach_grad()
    if way == "hybrid":
        cell.hybridize()
    if way == "dynamic" and name in ("both ways", "stack"):
        pytest.skip("only for single cells")
    with autograd.record():
        if way == "list":
            steps, states = cell.unroll(3, [x[:, step] for step in range(3)], merge_outputs=False, valid_length=lengths)
            y = nd.stack(*steps, axis=1)
        elif way == "time first":
            y, states = cell.unroll(3, x.swapaxes(0, 1), layout="TNC", merge_outputs=True, valid_length=lengths)
            y = y.swapaxes(0, 1)
        elif way == "dynamic":
            states = cell.begin_state(batch_size=2)
            y, states = contrib.dynamic_unroll(cell, x, states, layout="NTC", valid_length=lengths)
        else:
            y, states = cell.unroll(3, x, merge_outputs=True, valid_length=lengths)
        loss = weighted(y)
    loss.backward()
    compare(name, y, x.grad, states[-1])


CONV = {
    "conv rnn": (lambda: contrib.Conv1DRNNCell((1, 3), 1, 3, 3, i2h_pad=1), (1, 2, 1, 3)),
    "conv lstm": (lambda: contrib.Conv2DLSTMCell((1, 2, 2), 1, 1, 3, activation="relu"), (1, 2, 1, 2, 2)),
    "conv gru": (lambda: contrib.Conv1DGRUCell((1, 3), 1, 1, (3,)), (1, 2, 1, 3)),
}


@pytest.mark.parametrize("hybrid", [False, True])
@pytest.mark.parametrize("name", CONV)
def test_convolutional_cell(name, hybrid):
    make, shape = CONV[name]
    cell, x = make(), ramp(shape)
    filled(cell, lambda: cell.unroll(2, x, merge_outputs=True))
    x.attach_grad()
    if hybrid:
        cell.hybridize()
    with autograd.record():
        y, states = cell.unroll(2, x, merge_outputs=True)
        loss = weighted(y)
    loss.backward()
    compare(name, states[0], x.grad)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
def test_convolutional_cells_with_channels_last(kind, dims):
    cls, lengths = getattr(contrib, f"Conv{dims}D{kind}Cell"), (4, 3, 5)[:dims]
    first = cls((2, *lengths), 3, 3, 3, i2h_pad=1)
    last = cls((*lengths, 2), 3, 3, 3, i2h_pad=1, conv_layout=first._conv_layout.replace("C", "") + "C")
    x = nd.array(np.random.default_rng(1).normal(size=(2, 2, 2, *lengths)))
    first.initialize(init.Normal(0.3))
    last.initialize()
    wanted = first.unroll(2, x, merge_outputs=True)[0].asnumpy()
    for own, other in zip(last.collect_params().values(), first.collect_params().values()):
        value = other.data().asnumpy()
        own.set_data(nd.array(np.moveaxis(value, 1, -1) if value.ndim > 1 else value))
    got = last.unroll(2, nd.array(np.moveaxis(x.asnumpy(), 2, -1)), merge_outputs=True)[0].asnumpy()
    np.testing.assert_allclose(np.moveaxis(got, -1, 2), wanted, rtol=1e-5, atol=1e-6)
    assert repr(first) == f"Conv{dims}D{kind}Cell(2 -> {first.gates * 3}, tanh, {first._conv_layout})"


def test_symbols_and_their_names():
    cell = rnn.LSTMCell(4, prefix="rnn_")
    outputs, states = cell.unroll(2, [sym.var("x0"), sym.var("x1")])
    graph = sym.Group(outputs)
    assert graph.list_outputs() == ["rnn_t0_out_output", "rnn_t1_out_output"]
    assert [state.list_outputs() for state in states] == [["rnn_t1_out_output"], ["rnn_t1_state_output"]]
    _, shapes, _ = graph.infer_shape(x0=(3, 5), x1=(3, 5))
    assert shapes == [(3, 4), (3, 4)]
    merged, _ = cell.unroll(2, sym.var("data"), merge_outputs=True)  # unroll begins anew
    assert "rnn_t0_i2h_weight" not in merged.list_arguments()
    assert "rnn_t1_slice_output0" in merged.get_internals().list_outputs()
    both = rnn.BidirectionalCell(rnn.GRUCell(2), rnn.GRUCell(2), output_prefix="bi_")
    outputs, _ = both.unroll(2, [sym.var("x0"), sym.var("x1")])
    assert sym.Group(outputs).list_outputs() == ["bi_t0_output", "bi_t1_output"]


@pytest.mark.parametrize("make", [
    lambda: rnn.ZoneoutCell(rnn.LSTMCell(30), 0.5, 0.3), lambda: contrib.VariationalDropoutCell(rnn.LSTMCell(30), 0.5, 0.3, 0.4),
    lambda: contrib.VariationalDropoutCell(rnn.LSTMCell(30), 0.5, 0, 0.4),
])  # fmt: skip
@pytest.mark.parametrize("hybrid", [False, True])
def test_random_cells(make, hybrid):
    """Outside training they do nothing (but a zoneout of 0); in training the same seed gives the same, hybridized or not."""
    cell, x = make(), nd.array(np.random.default_rng(3).normal(size=(2, 4, 5)))
    cell.initialize(init.Normal(0.5))
    plain = cell.base_cell
    plain._modified = False
    wanted = plain.unroll(4, x, merge_outputs=True)[0].asnumpy()
    plain._modified = True
    if hybrid:
        cell.hybridize()
    np.testing.assert_allclose(cell.unroll(4, x, merge_outputs=True)[0].asnumpy(), wanted, rtol=1e-6)
    values = []
    for _ in range(2):
        mx.random.seed(4)
        with autograd.record():
            values.append(cell.unroll(4, x, merge_outputs=True)[0].asnumpy())
    np.testing.assert_array_equal(*values)
    assert abs(values[0] - wanted).max() > 0.01


def test_zoneout_keeps_what_was():
    cell = rnn.ZoneoutCell(rnn.RNNCell(50, activation="relu"), 0.5)
    cell.initialize(init.One())
    with autograd.train_mode():
        outputs, _ = cell.unroll(3, nd.ones((4, 3, 1)))
    steps = [each.asnumpy() for each in outputs]
    assert set(np.unique(steps[0])) == {0, 1}  # the first output, or the 0 before it
    assert ((steps[1] == steps[0]) | (steps[1] > 1)).all()
    assert (steps[1] == steps[0]).mean() > 0.2
    assert (steps[1] > 1).mean() > 0.2


def test_variational_dropout_leaves_out_the_same_at_all_steps():
    cell = contrib.VariationalDropoutCell(rnn.RNNCell(1), drop_inputs=0.5, drop_states=0.5)
    cell.initialize()
    with autograd.train_mode():
        cell.unroll(3, nd.ones((2, 3, 40)))
        mask = cell.drop_inputs_mask.asnumpy()
        cell(nd.ones((2, 40)), cell.begin_state(batch_size=2))
        np.testing.assert_array_equal(cell.drop_inputs_mask.asnumpy(), mask)
    assert set(np.unique(mask)) == {0, 2}
    cell.reset()
    assert cell.drop_inputs_mask is None


def test_states_to_begin_with():
    cell = stack(rnn.LSTMCell(3), rnn.ResidualCell(rnn.GRUCell(3)), cls=rnn.SequentialRNNCell)
    assert [state.shape for state in cell.begin_state(batch_size=2)] == [(2, 3)] * 3
    assert (cell.begin_state(batch_size=2, func=nd.ones)[1].asnumpy() == 1).all()
    assert [state.name for state in rnn.LSTMCell(3, prefix="a_").begin_state(func=sym.var)] == [
        "a_begin_state_0",
        "a_begin_state_1",
    ]
    layer = rnn.LSTM(3, prefix="b_")
    assert [state.name for state in layer.begin_state(func=sym.var)] == ["b_h0_0", "b_h0_1"]
    assert (layer.begin_state(2, func=nd.ones, dtype="float64")[0].asnumpy() == np.ones((1, 2, 3))).all()


def test_a_hybrid_stack_steps_and_unrolls():
    cell = stack(rnn.LSTMCell(3), rnn.DropoutCell(0.5), rnn.GRUCell(2))
    cell.initialize()
    x = nd.array(np.random.default_rng(3).normal(size=(2, 3, 4)))
    wanted, _ = cell.unroll(3, x, merge_outputs=False)
    cell.hybridize()
    states = cell.begin_state(batch_size=2)
    for step in range(3):
        output, states = cell(x[:, step], states)
        np.testing.assert_allclose(output.asnumpy(), wanted[step].asnumpy(), rtol=1e-5, atol=1e-6)
    assert len(cell) == 3
    assert isinstance(cell[1], rnn.DropoutCell)
    assert repr(cell).splitlines()[2] == "(1): DropoutCell(rate=0.5, axes=())"


def test_a_cell_has_a_second_derivative():
    cell = rnn.LSTMCell(2)
    cell.initialize(init.Normal(1))
    cell.cast("float64")
    x = nd.array([[[0.3, -0.2], [0.1, 0.4]]], dtype="float64")
    x.attach_grad()

    def slope(at):
        at.attach_grad()
        with autograd.record():
            y = cell.unroll(2, at, merge_outputs=True)[0]
            (first,) = autograd.grad([y], [at], create_graph=True)
            total = (first * first).sum()
        return total

    total = slope(x)
    total.backward()
    step = nd.zeros(x.shape, dtype="float64")
    step[0, 1, 0] = 1e-5
    difference = (slope(x.detach() + step) - slope(x.detach() - step)).asscalar() / 2e-5
    assert difference == pytest.approx(x.grad.asnumpy()[0, 1, 0], rel=1e-6)


# ---- mistakes


def call(layer, *args):
    layer.initialize()
    return layer(*args)


BAD = {
    "layout": (lambda: rnn.LSTM(3, layout="CTN"), ArgumentError, "Invalid layout CTN"),
    "activation": (lambda: rnn.RNN(3, activation="sigmoid"), ArgumentError, "activation='sigmoid' is not known; choose relu or tanh"),
    "state": (lambda: call(rnn.GRU(3, input_size=5), nd.ones((4, 2, 5)), nd.ones((1, 3, 3))), ShapeError, r"got \(1, 3, 3\)"),
    "size": (lambda: call(rnn.GRU(3, input_size=4), nd.ones((4, 2, 5))), ShapeError, r"parameters has shape \(81,\), gru of 1 layer"),
    "axes": (lambda: call(rnn.GRU(3, input_size=4), nd.ones((2, 4))), MXNetError, "needs 3 axes"),
    "dtype": (lambda: call(rnn.GRU(3, input_size=4), nd.ones((2, 3, 4), dtype="float64")), DTypeError, "data is float64 but parameters"),
    "unused lengths": (
        lambda: call(rnn.GRU(3), nd.ones((4, 2, 5)), None, nd.ones((2,))), ArgumentError, "make the layer with use_sequence_length=True",
    ),
    "missing lengths": (lambda: call(rnn.GRU(3, use_sequence_length=True), nd.ones((4, 2, 5))), ArgumentError, "length is missing"),
    "long": (
        lambda: call(rnn.GRU(3, use_sequence_length=True), nd.ones((4, 1, 5)), None, nd.array([5])).asnumpy(), OutOfRangeError, "are 4",
    ),
    "unfuse": (lambda: rnn.LSTM(3, projection_size=2)._unfuse(), ArgumentError, "projection and clipping"),
    "length": (lambda: rnn.GRUCell(3).unroll(2, nd.ones((4, 3, 5))), ShapeError, "length is 2, but axis 1 of inputs"),
    "list": (lambda: rnn.GRUCell(3).unroll(2, [nd.ones((4, 5))]), ShapeError, "length is 2, but there are 1 inputs"),
    "no inputs": (lambda: rnn.GRUCell(3).unroll(2, None), ArgumentError, "inputs are missing"),
    "steps": (lambda: rnn.GRUCell(3).unroll(2, nd.ones((4, 2, 5)), layout="ABC"), ArgumentError, "layout='ABC' does not say where"),
    "group": (lambda: rnn.GRUCell(3).unroll(2, sym.Group([sym.var("a"), sym.var("b")])), ArgumentError, "give list"),
    "bidirectional step": (
        lambda: rnn.BidirectionalCell(rnn.GRUCell(3), rnn.GRUCell(3))(nd.ones((2, 3)), []), NotImplementedError, "cannot be stepped",
    ),
    "states": (lambda: stack(rnn.LSTMCell(3))(nd.ones((2, 3)), [nd.ones((2, 3))]), ArgumentError, "1 states are given, .* have 2"),
    "rate": (lambda: rnn.DropoutCell("half"), ArgumentError, "rate must be a number, got str"),
    "zoneout": (lambda: rnn.ZoneoutCell(rnn.BidirectionalCell(rnn.GRUCell(3), rnn.GRUCell(3))), ArgumentError, "doesn't support zoneout"),
    "kernel": (lambda: contrib.Conv1DRNNCell((2, 5), 3, 3, 2), ArgumentError, "Only support odd number"),
    "dimensions": (lambda: contrib.Conv2DRNNCell((2, 5, 5), 3, (3, 3, 3), 3), ArgumentError, "i2h_kernel=.* must be a number"),
    "conv layout": (lambda: contrib.Conv2DRNNCell((2, 5, 5), 3, 3, 3, conv_layout="NCW"), ArgumentError, "conv_layout='NCW' is none of 2"),
    "input shape": (lambda: contrib.Conv2DRNNCell((2, 5), 3, 3, 3), ArgumentError, "must have 3 lengths"),
    "fused": (lambda: init.FusedRNN(None, 3, 1, "foo"), ArgumentError, "mode='foo' is not known"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_mistakes(name):
    mistake, error, message = BAD[name]
    with pytest.raises(error, match=message):
        mistake()


def test_a_modified_cell_is_called_through_its_modifier():
    cell = rnn.GRUCell(3)
    modifier = rnn.ResidualCell(cell)
    with pytest.raises(ArgumentError, match="must be called in its place"):
        cell.begin_state(batch_size=2)
    with pytest.raises(ArgumentError, match="already modified"):
        rnn.ZoneoutCell(cell)
    assert modifier.begin_state(batch_size=2)[0].shape == (2, 3)
    assert modifier.collect_params().keys() == cell.collect_params().keys()
