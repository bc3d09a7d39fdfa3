"""`mx.model`: checkpoints, and FeedForward. What it computes is compared with MXNet in tests/module."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import nd, sym
from minimx.base import ArgumentError, FileFormatError, MissingFileError, MXNetError
from minimx.model import FeedForward, load_checkpoint, load_params, save_checkpoint

pytestmark = pytest.mark.filterwarnings("ignore:model.FeedForward has been deprecated:DeprecationWarning")

X = np.random.RandomState(0).randn(30, 2).astype(np.float32)
Y = (X[:, 0] > X[:, 1]).astype(np.float32)


def graph() -> Any:
    return sym.SoftmaxOutput(sym.FullyConnected(sym.var("data"), num_hidden=2, name="fc"), name="softmax")


def fitted(**how: Any) -> FeedForward:
    model = FeedForward(graph(), num_epoch=20, learning_rate=1.0, numpy_batch_size=10, **how)
    model.fit(X, Y)
    return model


# ---- checkpoints


def test_a_checkpoint_comes_back(tmp_path: Path) -> None:
    args, aux = {"w": nd.array([1, 2]), "b": nd.zeros((3,), ctx=mx.cpu(1))}, {"mean": nd.array([4], dtype="float64")}
    save_checkpoint(tmp_path / "net", 7, graph(), args, aux)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["net-0007.params", "net-symbol.json"]
    symbol, loaded, states = load_checkpoint(tmp_path / "net", 7)
    assert symbol.tojson() == graph().tojson()
    assert {name: array.asnumpy().tolist() for name, array in loaded.items()} == {"w": [1, 2], "b": [0, 0, 0]}
    assert states["mean"].dtype == np.float64
    save_checkpoint(tmp_path / "other", 1, None, args, {})
    assert not (tmp_path / "other-symbol.json").exists()
    assert load_params(tmp_path / "other", 1)[1] == {}


def test_a_block_is_exported_to_a_checkpoint(tmp_path: Path) -> None:
    block = mx.gluon.nn.Dense(2, in_units=2)
    block.initialize()
    block.hybridize()
    wanted = block(nd.array(X)).asnumpy()
    block.export(str(tmp_path / "net"), epoch=3)
    symbol, args, aux = load_checkpoint(tmp_path / "net", 3)
    module = mx.mod.Module(symbol, label_names=None)
    module.bind([("data", X.shape)], for_training=False)
    module.init_params(arg_params=args, aux_params=aux)
    np.testing.assert_array_equal(module.predict(nd.array(X)).asnumpy(), wanted)


def test_files_that_are_no_checkpoint(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(MissingFileError):
        load_checkpoint(tmp_path / "absent", 0)
    with pytest.raises(MissingFileError):
        save_checkpoint(tmp_path / "no folder" / "net", 0, graph(), {}, {})
    for name, arrays in (("list", [nd.ones((1,))]), ("names", {"w": nd.ones((1,))}), ("kind", {"opt:w": nd.ones((1,))})):
        nd.save(str(tmp_path / f"{name}-0000.params"), arrays)
        with pytest.raises(FileFormatError, match=r"'arg:\.\.\.' and"):
            load_params(tmp_path / name, 0)
    nd.save(str(tmp_path / "empty-0000.params"), {})
    assert load_params(tmp_path / "empty", 0) == ({}, {})
    assert "is empty" in caplog.text


# ---- FeedForward


def test_it_learns_predicts_and_scores() -> None:
    model = fitted()
    assert model.score(mx.io.NDArrayIter(X, Y, batch_size=7)) > 0.9
    assert ((model.predict(X)[:, 1] > 0.5) == Y).mean() > 0.9
    assert model.predict(nd.array(X)).shape == (30, 2)
    assert model.predict(mx.io.NDArrayIter(X, Y, batch_size=4), num_batch=2).shape == (8, 2)


def test_labels_may_be_a_column() -> None:
    model = FeedForward(graph(), num_epoch=1)
    model.fit(X, Y.reshape(-1, 1))
    assert set(model.arg_params or {}) == {"fc_weight", "fc_bias"}


def test_create_save_and_load(tmp_path: Path) -> None:
    model = FeedForward.create(graph(), X, Y, num_epoch=3, learning_rate=0.5, eval_data=(X.tolist(), Y.tolist()))
    model.save(tmp_path / "net")
    again = FeedForward.load(tmp_path / "net", 3)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.begin_epoch == 3
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def test_buckets() -> None:
    class Buckets(mx.io.NDArrayIter):
        default_bucket_key = 2

        def next(self) -> Any:
            batch = super().next()
            batch.bucket_key, batch.provide_data, batch.provide_label = 2, self.provide_data, self.provide_label
            return batch

    model = FeedForward(lambda key: graph(), num_epoch=20, learning_rate=1.0)
    model.fit(Buckets(X, Y, batch_size=10))
    assert model.score(mx.io.NDArrayIter(X, Y, batch_size=10)) > 0.9


def test_extra_parameters() -> None:
    extra = {"fc_weight": nd.ones((2, 2)), "fc_bias": nd.zeros((2,)), "other": nd.ones((1,))}
    model = FeedForward(graph(), arg_params=extra, allow_extra_params=True)
    assert set(model.arg_params or {}) == {"fc_weight", "fc_bias"}
    assert model.predict(X).shape == (30, 2)


def test_it_is_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match=r"Please use mod\.Module instead"):
        FeedForward(graph())


TWICE = sym.FullyConnected(sym.var("data"), weight=sym.var("w"), bias=sym.var("w"), num_hidden=2)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: FeedForward(3), ArgumentError, "symbol must be a Symbol"),
        (lambda: FeedForward(TWICE), ValueError, "several arguments of the symbol are called w"),
        (lambda: FeedForward(graph()).fit(X, Y), AssertionError, "num_epoch was not given"),
        (lambda: FeedForward(graph(), num_epoch=1).fit(X), ValueError, "y must be specified"),
        (lambda: FeedForward(graph(), num_epoch=1).fit(X, Y[:3]), ValueError, "30 examples, and y 3 labels"),
        (lambda: FeedForward(graph(), num_epoch=1).fit(X, np.zeros((30, 2))), ValueError, r"y has shape \(30, 2\)"),
        (lambda: FeedForward(graph(), num_epoch=1).fit(X, [1]), TypeError, "y must be an array"),
        (lambda: FeedForward(graph(), num_epoch=1).fit([1], Y), TypeError, "X must be DataIter"),
        (lambda: FeedForward(graph(), num_epoch=1).fit(X, Y, eval_data=3), TypeError, "Eval data must be DataIter"),
        (lambda: FeedForward(graph(), num_epoch=1).fit(X, Y, eval_data=(None, Y)), ValueError, "Eval data is NONE"),
        (lambda: FeedForward(graph()).predict(X), MXNetError, "there are no parameters"),
        (lambda: FeedForward(graph()).save("x"), AssertionError, "epoch is missing"),
    ],
)
def test_wrong_uses(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
