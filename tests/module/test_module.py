"""`mx.mod`: what modules refuse and why, in which order they must be used, stores, monitors, files."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import nd, sym
from minimx.base import ArgumentError, FileFormatError, MissingFileError, MXNetError, ShapeError
from minimx.module.base_module import ModuleStateError
from minimx.module.executor_group import DataParallelExecutorGroup, split_batch

from .scenarios import X, batch, iterator, perceptron, values

SHAPES = [("data", (4, 3))], [("softmax_label", (4,))]


def bound(**how: Any) -> Any:
    module = mx.mod.Module(perceptron(mx), **how)
    module.bind(*SHAPES)
    module.init_params(arg_params=values(mx))
    return module


# ---- the order of things


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda module: module.init_params(), "bind"), (lambda module: module.forward(batch(mx, 0, 4)), "bind"),
        (lambda module: module.update(), "bind"), (lambda module: module.get_params(), "init_params"),
        (lambda module: module.data_shapes, "bind"), (lambda module: module.output_shapes, "bind"),
        (lambda module: module.save_optimizer_states("x"), "init_optimizer"), (lambda module: module.score(iterator(mx), "acc"), "bind"),
        (lambda module: module.predict(X), "bind"), (lambda module: list(module.iter_predict(iterator(mx))), "bind"),
        (lambda module: module.install_monitor(mx.mon.Monitor(1)), "bind"), (lambda module: module.reshape(*SHAPES), "bind"),
    ],
)  # fmt: skip
def test_what_is_asked_for_too_early(call: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message) as caught:
        call(mx.mod.Module(perceptron(mx)))
    assert isinstance(caught.value, MXNetError)


def test_update_needs_an_optimizer_and_backward_training() -> None:
    module = bound()
    module.forward_backward(batch(mx, 0, 4))
    with pytest.raises(ModuleStateError, match="init_optimizer"):
        module.update()
    with pytest.raises(ModuleStateError, match="inputs_need_grad=True"):
        module.get_input_grads()
    module.bind(*SHAPES, for_training=False, force_rebind=True)
    module.forward(batch(mx, 0, 4))
    with pytest.raises(ModuleStateError, match="for_training=True"):
        module.backward()
    with pytest.raises(ModuleStateError, match="needs for_training=True"):
        module.bind(*SHAPES, for_training=False, inputs_need_grad=True, force_rebind=True)


def test_what_is_done_twice_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    module = bound()
    module.bind([("data", (9, 9))])
    assert module.data_shapes[0].shape == (4, 3)
    module.init_optimizer()
    module.init_optimizer(optimizer="adam")
    assert isinstance(module._optimizer, mx.optimizer.SGD)
    assert ["ignoring" in record.message for record in caplog.records] == [True, True]
    with pytest.warns(UserWarning, match="init_params call ignored"):
        module.init_params(mx.init.One())
    module.init_optimizer(optimizer="adam", force_init=True)
    assert isinstance(module._optimizer, mx.optimizer.Adam)


# ---- arguments


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mx.mod.Module("net"), "symbol must be a Symbol, got 'net'"),
        (lambda: mx.mod.Module(perceptron(mx), data_names=["x"]), "'x' is no argument of its symbol. Did you mean one of data"),
        (lambda: mx.mod.Module(perceptron(mx), state_names=["s"]), "'s' is no argument"),
        (lambda: mx.mod.Module(perceptron(mx), fixed_param_names=["w"]), "'w' is no argument"),
        (lambda: mx.mod.Module(perceptron(mx), context="cpu"), "context must be a device"),
        (lambda: mx.mod.Module(perceptron(mx), context=[]), "context must be a device"),
        (lambda: mx.mod.Module(perceptron(mx), work_load_list=[1, 2]), "2 workloads are given for 1 devices"),
    ],
)  # fmt: skip
def test_wrong_modules(make: Any, message: str) -> None:
    with pytest.raises(MXNetError, match=message):
        make()


def test_unknown_labels_are_a_warning() -> None:
    with pytest.warns(UserWarning, match="'other' is no argument"):
        module = mx.mod.Module(perceptron(mx), label_names=["other"])
    with pytest.warns(UserWarning, match=r"label_shapes describe \[\], but the module's label_names are \['other'\]"):
        module.bind([("data", (4, 3))], for_training=False)


@pytest.mark.parametrize(
    ("shapes", "error", "message"),
    [
        ([("x", (4, 3))], ArgumentError, r"data_shapes describe \['x'\], but the module's data_names are \['data'\]"),
        ([("data", nd.array([4, 3]))], TypeError, "a name and a tuple of int are wanted"),
        ([("data", 4)], ArgumentError, "a name and a tuple of int are wanted"),
        (["data"], ArgumentError, "pairs such as"),
        ([("data", (4, 3), np.float32, "CTN")], ShapeError, "no axis 2, which its layout 'CTN' calls N"),
    ],
)
def test_wrong_shapes(shapes: Any, error: type[Exception], message: str) -> None:
    module = mx.mod.Module(perceptron(mx))
    with pytest.raises(error, match=message):
        module.bind(shapes, [("softmax_label", (4,))])
    assert not module.binded


def test_batches_that_do_not_fit() -> None:
    module = mx.mod.Module(perceptron(mx))
    with pytest.raises(AssertionError, match=r"same batch size: 4 according to data, but softmax_label has shape \(5,\)"):
        module.bind([("data", (4, 3))], [("softmax_label", (5,))])
    module = bound()
    with pytest.raises(ArgumentError, match="2 arrays of data, the module wants data"):
        module.forward(mx.io.DataBatch([nd.ones((4, 3))] * 2, [nd.ones((4,))]))
    with pytest.raises(ArgumentError, match="data must be an NDArray, got a NumPy array"):
        module.forward(mx.io.DataBatch([X[:4]], [nd.ones((4,))]))
    with pytest.raises(MXNetError, match="fc1"):
        module.forward(mx.io.DataBatch([nd.ones((4, 9))], [nd.ones((4,))]))
    with pytest.raises(ArgumentError, match=r"Too many slices\. Some splits are empty: 4 examples for workloads"):
        bound(context=[mx.cpu(i) for i in range(5)])
    module.forward(batch(mx, 0, 4))  # it still works
    assert module.get_outputs()[0].shape == (4, 2)


@pytest.mark.parametrize(
    ("size", "loads", "ends"), [(10, [1, 1], [5, 10]), (5, [1, 1], [2, 5]), (9, [1, 3], [2, 9]), (7, [1, 1, 1], [2, 4, 7]), (3, [2], [3])]
)  # fmt: skip
def test_split_batch(size: int, loads: list[int], ends: list[int]) -> None:
    slices = split_batch(size, loads)
    assert [part.stop for part in slices] == ends
    assert [part.start for part in slices] == [0, *ends[:-1]]


def test_parameters_that_do_not_fit() -> None:
    module = bound()
    with pytest.raises(RuntimeError, match="fc1_bias is not presented"):
        module.set_params({"fc1_weight": nd.ones((3, 3))}, {})
    with pytest.raises(ValueError, match="unknown"):
        module.set_params({"unknown": nd.ones((1,))}, {}, allow_missing=True)
    module.set_params({"unknown": nd.ones((1,))}, {}, allow_missing=True, allow_extra=True)
    with pytest.raises(ShapeError, match=r"fc1_bias has shape \(9,\), the symbol wants \(3,\)"):
        module.set_params({**values(mx), "fc1_bias": nd.ones((9,))}, {})
    with pytest.raises(ArgumentError, match="fc1_bias must be an NDArray, got a NumPy array"):
        module.set_params({**values(mx), "fc1_bias": np.ones(3)}, {})
    with pytest.raises(ArgumentError, match=r"neither a value for .* nor an initializer"):
        module.init_params(None, force_init=True)


def test_missing_values_stay_as_they_were_trained() -> None:
    module = bound()
    module.init_optimizer(optimizer_params={"learning_rate": 1.0})
    module.forward_backward(batch(mx, 0, 4))
    module.update()
    trained = module._exec_group.param_arrays[0][0].asnumpy()
    module.init_params(None, {"fc1_bias": nd.ones((3,))}, {}, allow_missing=True, force_init=True)
    params = module.get_params()[0]
    np.testing.assert_array_equal(params["fc1_weight"].asnumpy(), trained)
    assert params["fc1_bias"].asnumpy().tolist() == [1, 1, 1]


def test_initializers_follow_the_variables() -> None:
    weight = sym.var("w_weight", init=mx.init.Constant(7), shape=(2, 3))
    module = mx.mod.Module(sym.FullyConnected(sym.var("data"), weight=weight, num_hidden=2, name="fc"), label_names=None)
    module.bind([("data", (4, 3))])
    module.init_params(mx.init.One())
    params = module.get_params()[0]
    assert (params["w_weight"].asnumpy().max(), params["fc_bias"].asnumpy().max()) == (7, 0)


def test_fit_wants_epochs_and_data() -> None:
    module = mx.mod.Module(perceptron(mx))
    with pytest.raises(AssertionError, match="number of epochs"):
        module.fit(iterator(mx))
    data = iterator(mx)
    list(data)  # used up
    with pytest.raises(ArgumentError, match="train_data gives no batch"):
        module.fit(data, num_epoch=1)
    with pytest.raises(ArgumentError, match="eval_data must be a DataIter or an array"):
        module.predict([1, 2])


# ---- devices and stores


def test_a_layout_says_where_the_examples_are() -> None:
    graph = sym.Activation(sym.var("data"), act_type="relu", __layout__="TNC")
    module = mx.mod.Module(graph, label_names=None, context=[mx.cpu(0), mx.cpu(1)])
    module.bind([mx.io.DataDesc("data", (3, 8, 7), layout="TNC")])
    module.init_params()
    data = nd.array(np.arange(3 * 8 * 7).reshape(3, 8, 7))
    module.forward(mx.io.DataBatch([data]))
    assert [part.shape for part in module.get_outputs(False)[0]] == [(3, 4, 7), (3, 4, 7)]
    np.testing.assert_array_equal(module.get_outputs()[0].asnumpy(), data.asnumpy())


class Store:
    """The least that a store can be: values by key, and sums."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.calls: list[str] = []

    def init(self, key: str, value: Any) -> None:
        self.values[key] = value.copy()

    def push(self, key: str, arrays: Any, priority: int = 0) -> None:
        self.calls.append(key)
        self.values[key] = nd.add_n(*[array.as_in_context(mx.cpu()) for array in arrays])

    def pull(self, key: str, out: Any, priority: int = 0) -> None:
        for array in out:
            self.values[key].copyto(array)


def trained_with(kvstore: Any, **how: Any) -> dict[str, Any]:
    module = bound(context=[mx.cpu(0), mx.cpu(1)], **how)
    module.init_optimizer(kvstore, optimizer_params={"learning_rate": 0.5, "momentum": 0.9})
    for _ in range(3):
        module.forward_backward(batch(mx, 0, 4))
        module.update()
    return {name: array.asnumpy() for name, array in module.get_params()[0].items()}


def test_a_store_of_ones_own() -> None:
    store = Store()
    mine, usual = trained_with(store), trained_with("local")
    assert store.calls[:4] == ["fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"]
    for name, array in usual.items():
        np.testing.assert_allclose(mine[name], array, rtol=1e-6)


def test_the_store_need_not_update(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = trained_with("device")
    monkeypatch.setenv("MXNET_UPDATE_ON_KVSTORE", "0")
    for name, array in trained_with("device").items():
        np.testing.assert_allclose(array, usual[name], rtol=1e-6)


def test_what_is_written_between_steps_counts_in_a_store() -> None:
    module = bound(context=[mx.cpu(0), mx.cpu(1)])
    module.init_optimizer("local", optimizer_params={"learning_rate": 0.0})
    module.set_params({name: array * 2 for name, array in values(mx).items()}, {})
    module.forward_backward(batch(mx, 0, 4))
    module.update()
    np.testing.assert_allclose(module.get_params()[0]["fc1_weight"].asnumpy(), values(mx)["fc1_weight"].asnumpy() * 2)


@pytest.mark.parametrize("wrong", ["no such store", 3, object()])
def test_wrong_stores(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match="store"):
        bound(context=[mx.cpu(0), mx.cpu(1)]).init_optimizer(wrong)


def test_compression_goes_to_the_store() -> None:
    plain, two_bits = trained_with("device"), trained_with("device", compression_params={"type": "2bit", "threshold": 0.5})
    assert any((plain[name] != two_bits[name]).any() for name in plain)


def test_states_of_momentum_go_from_one_number_of_devices_to_another(tmp_path: Path) -> None:
    how = {"optimizer_params": {"learning_rate": 0.2, "momentum": 0.9}}
    results = []
    for saving, loading in ((1, 1), (2, 1), (1, 2), (2, 2)):
        prefix, data = str(tmp_path / f"{saving}{loading}"), iterator(mx)
        module = mx.mod.Module(perceptron(mx), context=[mx.cpu(i) for i in range(saving)])
        module.fit(data, num_epoch=1, arg_params=values(mx), **how)
        module.save_checkpoint(prefix, 1, save_optimizer_states=True)
        again = mx.mod.Module.load(prefix, 1, load_optimizer_states=True, context=[mx.cpu(i) for i in range(loading)])
        data.reset()
        again.fit(data, num_epoch=2, begin_epoch=1, **how)
        results.append(again.get_params()[0]["fc1_weight"].asnumpy())
    for found in results[1:]:
        np.testing.assert_allclose(found, results[0], rtol=1e-5, atol=1e-6)


# ---- files


def test_files_that_are_none(tmp_path: Path) -> None:
    module = bound()
    module.init_optimizer()
    with pytest.raises(MissingFileError):
        mx.mod.Module.load(str(tmp_path / "absent"), 1)
    with pytest.raises(MissingFileError):
        module.load_optimizer_states(str(tmp_path / "absent"))
    (tmp_path / "bad").write_bytes(b"nonsense")
    with pytest.raises(FileFormatError):
        module.load_params(str(tmp_path / "bad"))
    with pytest.raises(FileFormatError):
        module.load_optimizer_states(str(tmp_path / "bad"))
    (tmp_path / "old").write_bytes(b"\x80\x03}q\x00.")
    with pytest.raises(FileFormatError, match=r"old: states: this is a pickle.*without load_optimizer_states=True"):
        module.load_optimizer_states(str(tmp_path / "old"))
    nd.save(str(tmp_path / "plain"), {"w": nd.ones((1,))})
    with pytest.raises(FileFormatError, match="an array called 'w'"):
        module.load_params(str(tmp_path / "plain"))
    with pytest.raises(ArgumentError, match="epoch must be an int"):
        module.save_checkpoint(str(tmp_path / "x"), "1")  # type: ignore[arg-type]


def test_save_and_load_params(tmp_path: Path) -> None:
    module = bound()
    module.save_params(tmp_path / "net.params")
    other = mx.mod.Module(perceptron(mx))
    other.bind(*SHAPES)
    other.init_params()
    other.load_params(tmp_path / "net.params")
    for name, array in other.get_params()[0].items():
        np.testing.assert_array_equal(array.asnumpy(), values(mx)[name].asnumpy())


# ---- the rest


def test_executors_for_a_few_shapes_are_kept() -> None:
    module = bound()
    for size in (4, 3, 4, 3):
        module.forward(batch(mx, 0, size), is_train=False)
    assert len(module._exec_group._kept) == 2
    for size in range(1, 12):
        module.forward(batch(mx, 0, size), is_train=False)
    kept = module._exec_group._kept
    assert len(kept) == 8
    assert module._exec_group._first in kept.values()
    arrays = {id(executors[0].arg_dict["fc1_weight"].var) for executors in kept.values()}
    assert len(arrays) == 1


def test_states() -> None:
    state = sym.var("state", shape=(0, 3))
    module = mx.mod.Module(sym.var("data") + state, label_names=None, state_names=["state"], context=[mx.cpu(0), mx.cpu(1)])
    module.bind([("data", (4, 3))], for_training=False)
    module.init_params()
    module.set_states(value=2)
    module.forward(mx.io.DataBatch([nd.ones((4, 3))]))
    assert module.get_outputs()[0].asnumpy().tolist() == [[3] * 3] * 4
    module.set_states(states=module.get_outputs(merge_multi_context=False))
    assert [part.asnumpy().max() for part in module.get_states(merge_multi_context=False)[0]] == [3, 3]
    with pytest.raises(AssertionError, match="not supported"):
        module.get_states()
    with pytest.raises(AssertionError, match="one of states and value"):
        module.set_states()


def test_groups_of_devices() -> None:
    with mx.AttrScope(ctx_group="one"):
        hidden = sym.var("data") * 2
    with mx.AttrScope(ctx_group="two"):
        graph = hidden + sym.var("other")
    how = {"data_names": ["data", "other"], "label_names": None, "context": [mx.cpu(0), mx.cpu(1)]}
    for groups in (
        {"one": mx.cpu(2), "two": [mx.cpu(3), mx.cpu(4)]}, [{"one": mx.cpu(2), "two": mx.cpu(3)}, {"one": mx.cpu(4), "two": mx.cpu(5)}],
    ):  # fmt: skip
        module = mx.mod.Module(graph, group2ctxs=groups, **how)
        module.bind([("data", (4, 3)), ("other", (4, 3))], inputs_need_grad=True)
        module.init_params()
        module.forward(mx.io.DataBatch([nd.ones((4, 3)), nd.ones((4, 3))]), is_train=True)
        module.backward(nd.ones((4, 3)))
        assert module.get_outputs()[0].asnumpy().max() == 3
        assert [gradient.asnumpy().max() for gradient in module.get_input_grads()] == [2, 1]
    with pytest.raises(ArgumentError, match="group2ctxs must be"):
        mx.mod.Module(graph, group2ctxs=[{}], **how).bind([("data", (4, 3)), ("other", (4, 3))])


def test_grad_req() -> None:
    names = perceptron(mx).list_arguments()
    for given, wanted in (
        ("add", {"fc1_weight": "add", "fc1_bias": "add", "data": "null"}),
        ({"fc1_weight": "null"}, {"fc1_weight": "null", "fc1_bias": "write"}),
        (["write"] * len(names), {"data": "write"}),
    ):  # fmt: skip
        module = mx.mod.Module(perceptron(mx))
        module.bind(*SHAPES, grad_req=given)
        assert wanted.items() <= module._exec_group.grad_req.items()
    with pytest.raises(ArgumentError, match=r"grad_req has 1 entries, the symbol 6 arguments"):
        mx.mod.Module(perceptron(mx)).bind(*SHAPES, grad_req=["write"])
    with pytest.raises(ArgumentError, match="grad_req must be"):
        mx.mod.Module(perceptron(mx)).bind(*SHAPES, grad_req=3)


def test_an_optimizer_made_elsewhere() -> None:
    module = bound()
    with pytest.warns(UserWarning, match=r"not normalized to 1.0/batch_size/num_workers \(1.0 vs. 0.25\)"):
        module.init_optimizer(optimizer=mx.optimizer.SGD())
    assert module._optimizer.idx2name == {0: "fc1_weight", 1: "fc1_bias", 2: "fc2_weight", 3: "fc2_bias"}
    with pytest.raises(ArgumentError, match="an Optimizer or its name is wanted, got 3"):
        module.init_optimizer(optimizer=3, force_init=True)


def test_shared_modules_have_the_same_arrays() -> None:
    first, second = bound(), mx.mod.Module(perceptron(mx))
    first.init_optimizer(optimizer_params={"learning_rate": 1.0})
    second.bind([("data", (2, 3))], [("softmax_label", (2,))], shared_module=first)
    assert second.params_initialized
    assert second._optimizer is first._optimizer
    second.forward_backward(batch(mx, 0, 2))
    second.update()
    first.forward(batch(mx, 0, 4), is_train=False)
    second.forward(batch(mx, 0, 4), is_train=False)
    np.testing.assert_array_equal(first.get_outputs()[0].asnumpy(), second.get_outputs()[0].asnumpy())
    with pytest.raises(ModuleStateError, match="shared_module must be a Module that is bound and initialized"):
        mx.mod.Module(perceptron(mx)).bind(*SHAPES, shared_module=mx.mod.Module(perceptron(mx)))


def test_executor_groups_share_memory_for_data_and_parameters() -> None:
    graph = perceptron(mx)
    names = [name for name in graph.list_arguments() if name not in ("data", "softmax_label")]
    first = DataParallelExecutorGroup(graph, [mx.cpu()], [1], *SHAPES, names, True, False)
    second = DataParallelExecutorGroup(graph, [mx.cpu()], [1], *SHAPES, names, True, False, first)
    assert set(first.shared_data_arrays[0]) == {"data", "softmax_label"}
    for name in names:
        assert first.execs[0].arg_dict[name] is second.execs[0].arg_dict[name]
        assert first.execs[0].grad_dict[name] is second.execs[0].grad_dict[name]


def test_fit_logs_and_watches(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    monitor = mx.mon.Monitor(2, pattern="fc1_output|fc2_backward.*|fc1_weight")
    module = mx.mod.Module(perceptron(mx))
    module.fit(
        iterator(mx), eval_data=iterator(mx), num_epoch=1, monitor=monitor, batch_end_callback=mx.callback.Speedometer(4, 1)
    )
    text = [record.getMessage() for record in caplog.records]
    assert [line.split("=")[0] for line in text if line.startswith("Epoch[0] ") and "Speed" not in line] == [
        "Epoch[0] Train-accuracy", "Epoch[0] Time cost", "Epoch[0] Validation-accuracy",
    ]  # fmt: skip
    assert sum("Speed" in line for line in text) == 2
    watched = [line.split()[2] for line in text if line.startswith("Batch:")]
    assert watched == ["fc1_output", "fc2_backward_output0", "fc2_backward_output1", "fc2_backward_output2", "fc1_weight"] * 2


def test_callbacks_see_the_loop() -> None:
    seen: list[dict[str, Any]] = []
    module = mx.mod.Module(perceptron(mx))
    module.fit(iterator(mx), num_epoch=1, batch_end_callback=lambda param: seen.append(dict(param.locals)))
    assert all(each["self"] is module for each in seen)
    assert [each["nbatch"] for each in seen] == [0, 1, 2]


def test_a_metric_that_a_callback_resets_is_logged_whole(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    module = mx.mod.Module(perceptron(mx))
    module.fit(
        iterator(mx),
        num_epoch=1,
        arg_params=values(mx),
        optimizer_params={"learning_rate": 0.0},
        batch_end_callback=mx.callback.log_train_metric(1, True),
    )
    whole = next(
        record.getMessage()
        for record in caplog.records
        if "Train-accuracy" in record.getMessage() and "Epoch" in record.getMessage()
    )
    assert float(whole.split("=")[1]) == pytest.approx(module.score(iterator(mx), "acc")[0][1], abs=1e-6)


def test_base_module_says_what_is_missing() -> None:
    module = mx.mod.BaseModule()
    for call in (
        lambda: module.bind(None), lambda: module.forward(None), lambda: module.backward(), lambda: module.update(),
        lambda: module.get_outputs(), lambda: module.get_params(), lambda: module.data_names, lambda: module.output_shapes,
    ):  # fmt: skip
        with pytest.raises(NotImplementedError, match="BaseModule must override"):
            call()


# ---- the other kinds


def test_bucketing_refuses() -> None:
    def generate(key: Any) -> Any:
        return perceptron(mx), ("data",), ("softmax_label",)

    with pytest.raises(ModuleStateError, match="default_bucket_key is missing"):
        mx.mod.BucketingModule(generate)
    with pytest.raises(ArgumentError, match="sym_gen must give"):
        mx.mod.BucketingModule(lambda key: perceptron(mx), default_bucket_key=1)
    module = mx.mod.BucketingModule(generate, default_bucket_key="long")
    assert module.data_names == ("data",) or module.data_names == ["data"]
    assert module.output_names == ["softmax_output"]
    with pytest.raises(ModuleStateError, match="bind"):
        module.symbol  # noqa: B018
    with pytest.raises(ModuleStateError, match="Empty BucketingModule"):
        module.save_checkpoint("x", 0)
    module.bind(*SHAPES)
    module.init_params()
    with pytest.raises(ArgumentError, match="whole numbers to be saved"):
        module.save_checkpoint("x", 0)
    with pytest.raises(ModuleStateError, match="sym_gen and default_bucket_key are required"):
        mx.mod.BucketingModule.load("x", 0)
    with pytest.raises(ModuleStateError, match="arg_params needs to be provided"):
        mx.mod.BucketingModule.load_dict({}, generate, 1)


def test_chains_refuse() -> None:
    chain = mx.mod.SequentialModule()
    with pytest.raises(ModuleStateError, match="empty SequentialModule"):
        chain.bind(*SHAPES)
    with pytest.raises(ModuleStateError, match='Unknown meta "take_label", a typo'):
        chain.add(mx.mod.Module(perceptron(mx)), take_label=True)
    twice = mx.mod.SequentialModule()
    first = sym.FullyConnected(sym.var("data"), num_hidden=3, name="fc")
    twice.add(mx.mod.Module(first, label_names=None)).add(mx.mod.Module(first, label_names=None), auto_wiring=True)
    twice.bind([("data", (4, 3))])
    with pytest.raises(AssertionError, match=r'name "fc_weight" in layer 1 .* already used in layer 0'):
        twice.init_params()


def test_python_modules_refuse() -> None:
    loss = mx.mod.PythonLossModule()
    with pytest.raises(AssertionError, match=r"data_shapes describe \['x'\]"):
        loss.bind([("x", (4, 2))], [("softmax_label", (4,))])
    loss.bind([("data", (4, 2))], [("softmax_label", (4,))])
    loss.forward(mx.io.DataBatch([nd.ones((4, 2))], [nd.ones((4,))]))
    assert loss.output_shapes == [("pyloss_output", (4, 2))]
    with pytest.raises(NotImplementedError, match="_backward_impl, or pass grad_func"):
        loss.backward()
    with pytest.raises(AssertionError, match="out_grads should be None"):
        loss.backward([nd.ones((4, 2))])
    with pytest.raises(AssertionError, match="grad_func must be a function"):
        mx.mod.PythonLossModule(grad_func=3)
