"""Convolution and pooling beyond the rows: work in parts, what is not computed, shapes and files of graphs."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from minimx import autograd, nd, sym
from minimx.base import ArgumentError, MXNetError
from minimx.nd import entry
from minimx.op import find
from minimx.ops import correlation, depthwise, pool

RANDOM = np.random.default_rng(4)


def gradients(function: Any, *arrays: np.ndarray, constant: tuple[int, ...] = ()) -> list[np.ndarray]:
    """The value of a function and the gradients of its arrays, but for those that are `constant`."""
    given = [nd.array(array) for array in arrays]
    for number, array in enumerate(given):
        if number not in constant:
            array.attach_grad()
    with autograd.record():
        y = function(*given)
    y.backward(nd.array(np.cos(np.arange(y.size)).reshape(y.shape)))
    return [y.asnumpy(), *[array.grad.asnumpy() for number, array in enumerate(given) if number not in constant]]


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("transposed", [False, True])
def test_parts_make_the_whole(groups: int, transposed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few examples are worked on together, values and gradients are the same."""
    x, w = RANDOM.normal(size=(7, 4, 6, 5)), RANDOM.normal(size=(4, 4 // groups, 3, 3))
    function = nd.Deconvolution if transposed else nd.Convolution
    how = {"kernel": (3, 3), "num_filter": 4, "num_group": groups, "no_bias": True, "pad": (1, 1), "stride": (1, 2)}
    whole = gradients(lambda x, w: function(x, w, **how), x, w)
    monkeypatch.setattr(correlation, "COLUMNS", 2 * x[0].size * 9)
    monkeypatch.setattr(correlation, "FEW", 1)
    monkeypatch.setattr(correlation, "FEW_SUMMED", 1)
    monkeypatch.setattr(depthwise, "TOGETHER", 2 * x[0].size)
    for got, wanted in zip(gradients(lambda x, w: function(x, w, **how), x, w), whole):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("how", [{"pool_type": "max"}, {"pool_type": "avg", "pad": (1, 0)}, {"global_pool": True}])
def test_pooling_in_parts(how: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    x = RANDOM.normal(size=(7, 3, 6, 5))
    whole = gradients(lambda x: nd.Pooling(x, kernel=(3, 2), **how), x)
    monkeypatch.setattr(pool, "TOGETHER", 2 * x[0].size)
    for got, wanted in zip(gradients(lambda x: nd.Pooling(x, kernel=(3, 2), **how), x), whole):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


@pytest.mark.parametrize("transposed", [False, True])
def test_gradients_that_nobody_asks_for_are_not_computed(transposed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first layer of a network has no use for the gradient of the images."""
    x, w = RANDOM.normal(size=(2, 3, 6, 5)), RANDOM.normal(size=(3, 3, 3, 3))
    function = nd.Deconvolution if transposed else nd.Convolution

    def call(x: Any, w: Any) -> Any:
        return function(x, w, kernel=(3, 3), num_filter=3, no_bias=True)

    everything = gradients(call, x, w)
    log: list[str] = []
    submit = entry.submit

    def logged(op: Any, *rest: Any) -> Any:
        log.append(op.name)
        return submit(op, *rest)

    monkeypatch.setattr(entry, "submit", logged)
    monkeypatch.setattr(entry, "computed", lambda *rest: None)  # the short way of small operators does without `submit`
    to_data = "Convolution" if transposed else "_backward_Convolution_data"
    np.testing.assert_allclose(gradients(call, x, w, constant=(0,))[1], everything[2], rtol=1e-6)
    assert log.count("_backward_Convolution_weight") == 1
    assert to_data not in log
    np.testing.assert_allclose(gradients(call, x, w, constant=(1,))[1], everything[1], rtol=1e-6)
    assert log.count("_backward_Convolution_weight") == log.count(to_data) == 1


def test_equal_elements_of_a_window_give_the_gradient_to_the_first() -> None:
    _, slope = gradients(lambda x: nd.Pooling(x, kernel=(3, 3), pad=(1, 1)), np.ones((1, 1, 4, 4)))
    _, ones = gradients(lambda x: nd.Pooling(x, kernel=(2, 2), stride=(2, 2)), np.ones((1, 1, 4, 4)))
    assert (ones[0, 0] != 0).tolist() == [[True, False, True, False], [False] * 4] * 2
    assert (slope[0, 0] != 0).tolist() == [[True, True, True, False]] * 3 + [[False] * 4]  # as in MXNet


def test_not_a_number_stays() -> None:
    x = np.ones((1, 1, 4, 4), "float32")
    x[0, 0, 1, 1] = np.nan
    for kind in ("max", "avg", "sum"):
        y = nd.Pooling(nd.array(x), kernel=(2, 2), stride=(2, 2), pool_type=kind).asnumpy()
        assert np.isnan(y[0, 0]).tolist() == [[True, False], [False, False]]


# ---- graphs


def test_shapes_of_graphs() -> None:
    net = sym.Convolution(sym.var("x"), kernel=(7, 7), num_filter=64, num_group=2, stride=(2, 2), pad=(3, 3), name="c")
    assert net.list_arguments() == ["x", "c_weight", "c_bias"]
    assert net.infer_shape(x=(2, 4, 9, 9)) == ([(2, 4, 9, 9), (64, 2, 7, 7), (64,)], [(2, 64, 5, 5)], [])
    partial = net.infer_shape_partial(x=(0, 0, 9, 9))
    assert partial[0][1:] == [(64, 0, 7, 7), (64,)]
    assert partial[1] == [(0, 64, 5, 5)]
    known = sym.Convolution(sym.var("x"), sym.var("w", shape=(8, 3, 1, 0)), kernel=(1, 2), num_filter=8, no_bias=True)
    assert known.infer_shape(x=(2, 0, 4, 4))[0] == [(2, 3, 4, 4), (8, 3, 1, 2)]
    back = sym.Deconvolution(sym.var("x"), kernel=(4,), num_filter=6, num_group=2, stride=(2,), no_bias=False, name="d")
    assert back.infer_shape(x=(2, 4, 5)) == ([(2, 4, 5), (4, 3, 4), (6,)], [(2, 6, 12)], [])
    pooled = sym.Pooling(sym.var("x"), kernel=(2, 2), stride=(2, 2), name="p")
    assert pooled.infer_shape_partial(x=(0, 3, 8, 0))[1] == [(0, 3, 4, 0)]
    assert pooled.list_outputs() == ["p_output"]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: sym.Convolution(x, kernel=(3, 3), num_filter=2, workspace=512, cudnn_tune="off", dilate=(2, 2)),
        lambda x: sym.Deconvolution(x, kernel=(3,), num_filter=2, target_shape=(8,), no_bias=False, layout="NCW"),
        lambda x: sym.Pooling(x, kernel=(2, 2), pool_type="lp", p_value=2, count_include_pad=False),
        lambda x: sym.Pooling(x, global_pool=True, pool_type="avg"),
        lambda x: sym.BatchNorm(x, eps=1e-5, fix_gamma=False, axis=-1),
        lambda x: sym.im2col(x, kernel=(2, 2), pad=(1, 1)),
        lambda x: sym.col2im(x, output_size=(4, 4), kernel=(2, 2)),
        lambda x: sym.UpSampling(x, sym.var("y"), scale=2, sample_type="nearest"),
        lambda x: sym.UpSampling(x, scale=2, sample_type="bilinear", num_filter=3),
        lambda x: sym.LRN(x, nsize=5),
    ],
)
def test_operators_come_back_as_they_were(make: Any) -> None:
    net = make(sym.var("x"))
    back = sym.load_json(net.tojson())
    assert back.tojson() == net.tojson()
    assert [node.op for node, _ in back.entries] == [node.op for node, _ in net.entries]


def test_mxnets_attributes_are_understood() -> None:
    op = find("Pooling").from_attrs({"kernel": "(2L, 2L)", "pool_type": "avg", "dilate": "(1, 1)", "stride": "[2, 2]"})
    assert op.attrs() == {"kernel": "(2, 2)", "pool_type": "avg", "stride": "(2, 2)"}
    with pytest.raises(ArgumentError, match="argument kernel='x' is not a"):
        find("Convolution").from_attrs({"kernel": "x"})
    with pytest.raises(ArgumentError, match="unknown argument 'kernel_size'"):
        find("Convolution").from_attrs({"kernel_size": "(1,)"})


def test_how_often_a_state_was_written_to_is_kept() -> None:
    """MXNet counts the operators that were ever made over a state; a file says it, and is written again as it was."""
    net = sym.BatchNorm(sym.var("x"), name="bn")
    again = sym.BatchNorm(net, moving_mean=net.get_internals()["bn_moving_mean"], name="second")
    graph = json.loads(again.tojson())
    counts = {graph["nodes"][each[0]]["name"]: each[2] for node in graph["nodes"] for each in node["inputs"]}
    assert counts["bn_moving_mean"] == 2
    text = net.tojson().replace("[3, 0, 1], [4, 0, 1]", "[3, 0, 5], [4, 0, 5]")
    assert text != net.tojson()
    assert sym.load_json(text).tojson() == text


def test_errors_in_graphs_name_the_node() -> None:
    net = sym.Convolution(sym.var("x"), kernel=(3, 3), num_filter=4, name="stem")
    with pytest.raises(MXNetError, match=r"Error in operator stem: .*reaches over \(3, 3\)"):
        net.infer_shape(x=(1, 3, 2, 2))
