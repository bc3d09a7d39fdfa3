"""Every layer of gluon.nn and gluon.rnn as an ONNX file: the numbers that it gives here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minimx as mx
from minimx import gluon, nd
from minimx.gluon import contrib, nn, rnn

from .support import check

LINE, IMAGE, VOLUME = (2, 4, 9), (2, 4, 7, 6), (1, 2, 5, 6, 4)

LAYERS: list[tuple[Any, tuple[int, ...]]] = [
    (lambda: nn.Dense(3), (2, 4)),
    (lambda: nn.Dense(3, activation="tanh"), (2, 4, 5)),
    (lambda: nn.Dense(3, flatten=False, use_bias=False), (2, 4, 5)),
    *[(lambda name=name: nn.Activation(name), (2, 5)) for name in ("relu", "sigmoid", "tanh", "softrelu", "softsign")],
    (lambda: nn.LeakyReLU(0.1), (2, 5)),
    (lambda: nn.PReLU(in_channels=4), IMAGE),
    (lambda: nn.ELU(0.5), (2, 5)),
    (lambda: nn.SELU(), (2, 5)),
    (lambda: nn.GELU(), (2, 5)),
    (lambda: nn.Swish(), (2, 5)),
    (lambda: nn.SiLU(), (2, 5)),
    (lambda: nn.Dropout(0.5), (2, 5)),
    (lambda: nn.BatchNorm(), IMAGE),
    (lambda: nn.BatchNorm(axis=-1, scale=False), IMAGE),
    (lambda: nn.BatchNorm(center=False), (3, 4)),
    (lambda: nn.BatchNormReLU(), IMAGE),
    (lambda: contrib.nn.SyncBatchNorm(num_devices=1), IMAGE),
    (lambda: nn.InstanceNorm(), IMAGE),
    (lambda: nn.LayerNorm(), (2, 4, 5)),
    (lambda: nn.LayerNorm(axis=1), (2, 4, 5)),
    (lambda: nn.GroupNorm(2), IMAGE),
    (lambda: nn.Flatten(), IMAGE),
    (lambda: nn.HybridLambda("log_softmax"), (2, 5)),
    (lambda: nn.HybridLambda(lambda F, x: F.clip(x, -0.5, 0.5)), (2, 5)),
    (lambda: nn.Conv1D(3, 3, strides=2, padding=1), LINE),
    (lambda: nn.Conv2D(4, (3, 2), padding=(1, 0), dilation=(2, 1), groups=2), IMAGE),
    (lambda: nn.Conv2D(4, 3, use_bias=False, activation="relu"), IMAGE),
    (lambda: nn.Conv2D(3, 3, layout="NHWC"), IMAGE),
    (lambda: nn.Conv3D(3, 2, padding=1), VOLUME),
    (lambda: nn.Conv1DTranspose(3, 3, strides=2, output_padding=1), LINE),
    (lambda: nn.Conv2DTranspose(4, 3, strides=2, padding=1, groups=2), IMAGE),
    (lambda: nn.Conv3DTranspose(2, 2, strides=2), VOLUME),
    (lambda: nn.MaxPool1D(3, 2), LINE),
    (lambda: nn.MaxPool2D(3, 2, padding=1, ceil_mode=True), IMAGE),
    (lambda: nn.MaxPool3D(2), VOLUME),
    (lambda: nn.AvgPool1D(3, 2, ceil_mode=True), LINE),
    (lambda: nn.AvgPool2D(3, 2, padding=1, count_include_pad=False), IMAGE),
    (lambda: nn.AvgPool2D(3, 2, padding=1, ceil_mode=True), IMAGE),
    (lambda: nn.AvgPool2D((2, 3), layout="NHWC"), IMAGE),
    (lambda: nn.AvgPool3D(2, padding=1), VOLUME),
    (lambda: nn.GlobalMaxPool1D(), LINE),
    (lambda: nn.GlobalMaxPool2D(), IMAGE),
    (lambda: nn.GlobalMaxPool3D(), VOLUME),
    (lambda: nn.GlobalAvgPool1D(), LINE),
    (lambda: nn.GlobalAvgPool2D(layout="NHWC"), IMAGE),
    (lambda: nn.GlobalAvgPool3D(), VOLUME),
    (lambda: nn.ReflectionPad2D(2), IMAGE),
    (lambda: contrib.nn.HybridConcurrent(axis=1), IMAGE),
    (lambda: contrib.nn.PixelShuffle1D(2), LINE),
    (lambda: contrib.nn.PixelShuffle2D(2), IMAGE),
    (lambda: contrib.nn.PixelShuffle3D((1, 2, 1)), VOLUME),
]


def ready(net: gluon.HybridBlock) -> gluon.HybridBlock:
    net.initialize(mx.init.Normal(0.5))
    return net


@pytest.mark.parametrize(("make", "shape"), LAYERS, ids=[type(make()).__name__ for make, _ in LAYERS])
def test_layer(make: Any, shape: tuple[int, ...], tmp_path: Any) -> None:
    net = ready(make())
    if isinstance(net, contrib.nn.HybridConcurrent):
        net.add(nn.Conv2D(2, 1), contrib.nn.Identity())
        ready(net)
    check(net, [np.random.default_rng(0).standard_normal(shape).astype("float32")], tmp_path)


def test_batchnorm_with_statistics(tmp_path: Any) -> None:
    net = ready(nn.BatchNorm(in_channels=3))
    net.running_mean.set_data(nd.array([1, 2, 3]))
    net.running_var.set_data(nd.array([4, 5, 6]))
    check(net, [np.ones((2, 3, 4, 4), "float32")], tmp_path)


def test_embedding_takes_whole_and_floating_numbers(tmp_path: Any) -> None:
    for dtype in ("float32", "int32", "int64"):
        check(ready(nn.Embedding(5, 3)), [np.array([[0, 4], [2, 9]], dtype)], tmp_path)  # 9 is beyond the end: the last row


RECURRENT = [
    (rnn.RNN, {"activation": "relu"}), (rnn.RNN, {"activation": "tanh", "bidirectional": True}), (rnn.LSTM, {}),
    (rnn.LSTM, {"num_layers": 2, "bidirectional": True, "dropout": 0.3}), (rnn.GRU, {"num_layers": 2}), (rnn.GRU, {"layout": "NTC"}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "how"), RECURRENT)
@pytest.mark.parametrize("states", [False, True], ids=["from zero", "with states"])
def test_recurrent_layer(kind: Any, how: dict[str, Any], states: bool, tmp_path: Any) -> None:
    net = ready(kind(4, input_size=3, **how))
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((5, 2, 3)).astype("float32")]
    if not states:
        around = nn.HybridSequential()
        around.add(net)
        check(around, arrays, tmp_path)
        return

    class WithStates(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.net = net

        def hybrid_forward(self, F: Any, x: Any, *states: Any) -> Any:
            output, last = self.net(x, list(states))
            return [output, *last]

    batch = 5 if how.get("layout") == "NTC" else 2
    arrays += [rng.standard_normal(each.shape).astype("float32") for each in net.begin_state(batch)]
    check(WithStates(), arrays, tmp_path)


CELLS = [
    lambda: rnn.RNNCell(4, input_size=3), lambda: rnn.LSTMCell(4, input_size=3), lambda: rnn.GRUCell(4, input_size=3),
    lambda: rnn.BidirectionalCell(rnn.LSTMCell(4, input_size=3), rnn.GRUCell(4, input_size=3)),
    lambda: rnn.ResidualCell(rnn.GRUCell(3, input_size=3)), lambda: rnn.ZoneoutCell(rnn.RNNCell(4, input_size=3), 0.2, 0.2),
    lambda: contrib.rnn.VariationalDropoutCell(rnn.LSTMCell(4, input_size=3), 0.2, 0.2),
    lambda: contrib.rnn.LSTMPCell(4, 2, input_size=3),
]  # fmt: skip


@pytest.mark.parametrize("make", CELLS, ids=[type(make()).__name__ for make in CELLS])
def test_unrolled_cell(make: Any, tmp_path: Any) -> None:
    class Unrolled(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.cell = make()

        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return self.cell.unroll(3, x, layout="NTC", merge_outputs=True)[0]

    net = ready(Unrolled())
    check(net, [np.random.default_rng(0).standard_normal((2, 3, 3)).astype("float32")], tmp_path)


def test_convolutional_cell(tmp_path: Any) -> None:
    class Step(gluon.HybridBlock):
        def __init__(self) -> None:
            super().__init__()
            self.cell = contrib.rnn.Conv2DLSTMCell((2, 5, 5), 3, 3, 3, i2h_pad=1)

        def hybrid_forward(self, F: Any, x: Any, h: Any, c: Any) -> Any:
            output, states = self.cell(x, [h, c])
            return [output, *states]

    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype("float32") for shape in ((1, 2, 5, 5), (1, 3, 5, 5), (1, 3, 5, 5))]
    check(ready(Step()), arrays, tmp_path)


def test_open_lengths_of_a_recurrent_layer(tmp_path: Any) -> None:
    net = ready(rnn.LSTM(4, input_size=3))
    x = np.random.default_rng(0).standard_normal((5, 2, 3)).astype("float32")
    around = nn.HybridSequential()
    around.add(net)
    running = check(around, [x], tmp_path, dynamic=True, dynamic_input_shapes=[("steps", "batch", 3)])
    assert running.get_inputs()[0].shape == ["steps", "batch", 3]
    longer = np.random.default_rng(1).standard_normal((7, 3, 3)).astype("float32")
    [got] = running.run(None, {"data": longer})
    np.testing.assert_allclose(got, net(nd.array(longer)).asnumpy(), rtol=1e-5, atol=1e-5)


def test_half_and_double_precision(tmp_path: Any) -> None:
    for dtype in ("float16", "float64"):
        net = ready(nn.HybridSequential())
        net.add(nn.Dense(4, activation="relu", in_units=3), nn.LayerNorm(in_channels=4))
        ready(net)
        net.cast(dtype)
        check(net, [np.ones((2, 3), dtype)], tmp_path, limit=1e-2 if dtype == "float16" else 1e-6)
