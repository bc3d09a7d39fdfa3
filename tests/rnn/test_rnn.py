"""`mx.rnn`: cells against MXNet, what they refuse, checkpoints, sentences in buckets."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import nd, rnn, sym
from minimx.base import ArgumentError, MXNetError

from . import cells

RECORDED: dict[str, Any] = json.loads(cells.RECORD.read_text())


def test_all_cells_are_recorded() -> None:
    assert RECORDED.keys() == cells.CELLS.keys()


@pytest.mark.parametrize("name", cells.CELLS)
def test_equals_mxnet(name: str) -> None:
    found, wanted = cells.results(mx, name), RECORDED[name]
    for key in ("arguments", "outputs", "together"):
        assert found[key] == wanted[key], key
    assert all(found["together"].values())
    for one, other in zip(found["values"], wanted["values"], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)  # six digits are recorded
    assert found["apart"].keys() == wanted["apart"].keys()
    np.testing.assert_allclose(list(found["apart"].values()), list(wanted["apart"].values()), rtol=1e-4, atol=1e-5)


def test_fused_and_single_cells_are_one_network() -> None:
    fused = rnn.FusedRNNCell(3, num_layers=2, mode="gru", bidirectional=True)
    single = fused.unfuse()
    values = []
    weights: dict[str, Any] = {}
    for cell in (fused, single):
        graph, _ = cell.unroll(4, sym.var("data"), merge_outputs=True)
        executor = graph.simple_bind(mx.cpu(), data=(2, 4, 5))
        if not weights:
            executor.arg_dict["gru_parameters"][:] = np.random.RandomState(0).randn(executor.arg_dict["gru_parameters"].size)
            weights = fused.unpack_weights({"gru_parameters": executor.arg_dict["gru_parameters"]})
        else:
            executor.copy_params_from(single.pack_weights(weights))
        executor.arg_dict["data"][:] = np.random.RandomState(1).randn(2, 4, 5)
        values.append(executor.forward()[0].asnumpy())
    np.testing.assert_allclose(values[0], values[1], rtol=1e-5, atol=1e-6)


def test_zoneout_keeps_what_was_before() -> None:
    inside = rnn.RNNCell(50)
    cell = rnn.ZoneoutCell(inside, zoneout_outputs=0.5)
    outputs, _ = cell.unroll(2, [sym.var("data0"), sym.var("data1")])
    executor = sym.Group(outputs).simple_bind(mx.cpu(), data0=(1, 4), data1=(1, 4))
    for array in executor.arg_arrays:
        array[:] = 0.1 * np.random.RandomState(0).randn(*array.shape)
    first, second = (each.asnumpy() for each in executor.forward(is_train=True))
    kept = first == second
    assert 0 < kept.sum() < 50
    assert (first == 0).any()  # before the first step there is nothing to keep
    plain, later = (each.asnumpy() for each in executor.forward(is_train=False))
    assert not (plain == later).any()


def test_states_may_be_variables() -> None:
    cell = rnn.LSTMCell(3)
    begin = cell.begin_state(func=sym.var)
    assert [state.name for state in begin] == ["lstm_begin_state_0", "lstm_begin_state_1"]
    graph, _ = cell.unroll(2, sym.var("data"), begin_state=begin, merge_outputs=True)
    shapes = dict(zip(graph.list_arguments(), graph.infer_shape(data=(2, 2, 4))[0]))
    assert shapes["lstm_begin_state_1"] == (2, 3)


def test_weights_can_be_shared() -> None:
    first = rnn.GRUCell(3, prefix="a_")
    second = rnn.GRUCell(3, prefix="b_", params=first.params)
    graph, _ = second.unroll(1, [sym.var("data")])
    assert graph[0].list_arguments()[1:3] == ["a_i2h_weight", "a_i2h_bias"]
    with pytest.raises(AssertionError, match="Either specify params"):
        rnn.SequentialRNNCell(params=first.params).add(second)


def test_the_bias_of_a_forget_gate_begins_at_one() -> None:
    graph, _ = rnn.LSTMCell(2, forget_bias=3.0).unroll(1, sym.var("data"), merge_outputs=True)
    module = mx.mod.Module(graph, label_names=None)
    module.bind([("data", (1, 1, 2))])
    module.init_params()
    assert module.get_params()[0]["lstm_i2h_bias"].asnumpy().tolist() == [0, 0, 3, 3, 0, 0, 0, 0]


def both() -> Any:
    return rnn.BidirectionalCell(rnn.RNNCell(2, prefix="l_"), rnn.RNNCell(2, prefix="r_"))


def modified() -> Any:
    cell = rnn.RNNCell(2)
    rnn.ResidualCell(cell)
    return cell


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: rnn.RNNCell(2).unroll(2, None), AssertionError, "inputs must be a Symbol or a list"),
        (lambda: rnn.RNNCell(2).unroll(2, [sym.var("x")]), AssertionError, "1 inputs are given for 2 steps"),
        (lambda: rnn.RNNCell(2).unroll(2, sym.Group([sym.var("x"), sym.var("y")])), AssertionError, "a group of Symbols"),
        (lambda: rnn.RNNCell("2"), ArgumentError, "num_hidden must be an int, got '2'"),
        (lambda: both()(sym.var("x"), []), NotImplementedError, "BidirectionalCell cannot be stepped"),
        (lambda: rnn.FusedRNNCell(2)(sym.var("x"), []), NotImplementedError, "FusedRNNCell cannot be stepped"),
        (lambda: rnn.FusedRNNCell(2, mode="elman"), ArgumentError, "mode must be one of rnn_relu"),
        (lambda: rnn.FusedRNNCell(2).unroll(2, sym.var("x"), layout="NCT"), AssertionError, "Unsupported layout NCT"),
        (
            lambda: rnn.FusedRNNCell(2).unpack_weights({"lstm_parameters": nd.ones((7,))}),
            AssertionError,
            "Invalid parameters size",
        ),
        (lambda: rnn.ZoneoutCell(both()), AssertionError, "doesn't support zoneout"),
        (lambda: modified().begin_state(), AssertionError, "Call the modifier cell instead"),
        (lambda: rnn.DropoutCell("half"), AssertionError, "dropout probability must be a number"),
        (lambda: rnn.ConvRNNCell((1, 1, 4, 4), 2, h2h_kernel=(2, 2)), AssertionError, "Only support odd number"),
        (lambda: rnn.SequentialRNNCell().add("lstm"), ArgumentError, "a cell of mx.rnn is wanted"),
        (lambda: rnn.BaseRNNCell().state_info, NotImplementedError, "must override state_info"),
    ],
)
def test_wrong_uses(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_checkpoints_hold_gates_apart(tmp_path: Path) -> None:
    cell = rnn.LSTMCell(2)
    graph, _ = cell.unroll(1, sym.var("data"), merge_outputs=True)
    shapes = dict(zip(graph.list_arguments(), graph.infer_shape(data=(1, 1, 3))[0]))
    args = {name: nd.array(np.random.RandomState(0).randn(*shape)) for name, shape in shapes.items() if name != "data"}
    rnn.do_rnn_checkpoint(cell, tmp_path / "net", period=2)(1, graph, args, {})
    assert "lstm_h2h_f_bias" in mx.model.load_params(tmp_path / "net", 2)[0]
    _, loaded, _ = rnn.load_rnn_checkpoint([cell], tmp_path / "net", 2)
    for name, array in args.items():
        np.testing.assert_array_equal(loaded[name].asnumpy(), array.asnumpy())


def test_rnn_unroll_is_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match=r"call cell\.unroll"):
        outputs, _ = rnn.rnn_unroll(rnn.RNNCell(2), 1, [sym.var("x")])
    assert outputs[0].list_outputs() == ["rnn_t0_out_output"]
    with pytest.warns(DeprecationWarning, match="deprecated"), pytest.raises(ArgumentError, match="inputs are wanted"):
        rnn.rnn_unroll(rnn.RNNCell(2), 1, input_prefix="x_")


# ---- sentences

WORDS = [["a", "b", "c"], ["b", "a"], ["c"], ["d", "a"], ["b", "b", "b"], ["a", "c"]]
BATCHES = [
    (2, [[2, -1], [3, 0]]),
    (2, [[1, 0], [3, 0]]),
    (3, [[1, 1, 1], [1, 1, 1]]),
    (2, [[2, -1], [1, 0]]),
    (3, [[0, 1, 2], [0, 1, 2]]),
    (2, [[0, 2], [2, -1]]),
    (3, [[1, 1, 1], [0, 1, 2]]),
    (2, [[0, 2], [3, 0]]),
    (2, [[0, 2], [1, 0]]),
]


def test_words_become_numbers() -> None:
    coded, vocab = rnn.encode_sentences(WORDS[:2], invalid_label=0, start_label=0)
    assert (coded, vocab) == ([[1, 2, 3], [2, 1]], {"\n": 0, "a": 1, "b": 2, "c": 3})
    coded, vocab = rnn.encode_sentences([["a", "x", "y", "x"]], vocab={"a": 5}, unknown_token="UNK")
    assert (coded, vocab) == ([[5, 0, 0, 0]], {"a": 5, "UNK": 0})
    with pytest.raises(AssertionError, match="Unknown token 'z'"):
        rnn.encode_sentences([["z"]], vocab={"a": 1})


def test_batches_of_sentences_are_those_of_mxnet() -> None:
    """Recorded from MXNet 1.9.1, with the same seeds."""
    random.seed(3)
    np.random.seed(3)
    coded, _ = rnn.encode_sentences(WORDS * 3)
    data = rnn.BucketSentenceIter(coded, 2, buckets=[3, 2])
    assert (data.default_bucket_key, data.buckets, data.provide_data[0].shape) == (3, [2, 3], (2, 3))
    batches = list(data)
    assert [(batch.bucket_key, batch.data[0].asnumpy().tolist()) for batch in batches] == BATCHES
    for batch in batches:
        x, y = batch.data[0].asnumpy(), batch.label[0].asnumpy()
        assert (y[:, :-1] == x[:, 1:]).all()
        assert (y[:, -1] == -1).all()
        assert batch.provide_label[0].shape == y.shape
    data.reset()
    assert len(list(data)) == len(batches)


def test_time_may_come_first() -> None:
    coded, _ = rnn.encode_sentences(WORDS * 3)
    data = rnn.BucketSentenceIter(coded, 3, layout="TN")
    assert data.provide_data[0].shape == (3, 3)
    assert {(batch.bucket_key, batch.data[0].shape) for batch in data} == {(1, (1, 3)), (2, (2, 3)), (3, (3, 3))}


def test_sentences_that_have_no_room(caplog: pytest.LogCaptureFixture) -> None:
    rnn.BucketSentenceIter([[1, 2], [1, 2], [1, 2, 3]], 2, buckets=[2])
    assert "discarded 1 sentences longer than the largest bucket" in caplog.text
    with pytest.raises(ArgumentError, match="no sentence has room"):
        rnn.BucketSentenceIter([[1, 2, 3]], 1, buckets=[2])
    with pytest.raises(ArgumentError, match="Invalid layout 'NTC'"):
        rnn.BucketSentenceIter([[1]], 1, layout="NTC")


def test_a_language_model_in_buckets() -> None:
    """The usual script: cells, buckets, perplexity. The sentences count upwards, which is learnt at once."""
    sentences = [[(start + step) % 5 for step in range(length)] for length in (3, 4) for start in range(5)] * 4
    data = rnn.BucketSentenceIter(sentences, 4, buckets=[3, 4])
    stack = rnn.SequentialRNNCell()
    stack.add(rnn.LSTMCell(16, prefix="l0_"))

    def generate(length: int) -> Any:
        embedded = sym.Embedding(sym.var("data"), input_dim=5, output_dim=8, name="embed")
        outputs, _ = stack.unroll(length, embedded, merge_outputs=True)
        scores = sym.FullyConnected(sym.reshape(outputs, shape=(-1, 16)), num_hidden=5, name="scores")
        label = sym.reshape(sym.var("softmax_label"), shape=(-1,))
        return sym.SoftmaxOutput(scores, label, use_ignore=True, ignore_label=-1, name="softmax"), ("data",), ("softmax_label",)

    mx.random.seed(0)
    module = mx.mod.BucketingModule(generate, default_bucket_key=data.default_bucket_key)
    module.fit(
        data, eval_metric=mx.metric.Perplexity(-1), num_epoch=12, optimizer="adam", optimizer_params={"learning_rate": 0.05},
        initializer=mx.init.Xavier(),
    )  # fmt: skip
    data.reset()
    assert module.score(data, mx.metric.Perplexity(-1))[0][1] < 1.5
    assert isinstance(module._curr_module, mx.mod.Module)
    with pytest.raises(MXNetError):
        module.switch_bucket(7, None)
