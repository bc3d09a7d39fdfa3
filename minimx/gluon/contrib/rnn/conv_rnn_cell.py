"""Recurrent cells in which convolutions stand for the products with matrices: states are images (or lines, or volumes) with channels.

Each kind of cell is one class; a cell for one, two or three dimensions only says which layouts it takes.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ....base import ArgumentError
from ...parameter import Parameter, ParameterDict
from ...rnn.recurrent_cell import HybridRecurrentCell
from ...weight import require_length

__all__ = [
    "Conv1DGRUCell", "Conv1DLSTMCell", "Conv1DRNNCell", "Conv2DGRUCell", "Conv2DLSTMCell", "Conv2DRNNCell", "Conv3DGRUCell",
    "Conv3DLSTMCell", "Conv3DRNNCell",
]  # fmt: skip

Sizes = int | tuple[int, ...]
LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


class _ConvCell(HybridRecurrentCell):
    """What all these cells share.

    **Shapes** inputs (N, *input_shape), state and output (N, hidden_channels, ...) with the lengths that the convolution of the inputs
    gives; that of the state keeps them. **Args** `input_shape`: channels and lengths, as `conv_layout` orders them. `i2h_kernel`,
    `i2h_pad`, `i2h_dilate`: of the convolution of the inputs, a number or one for each dimension; `h2h_kernel`, `h2h_dilate`: of the
    state's, whose windows have odd lengths. `conv_layout`: "NCW", "NCHW", "NCDHW", or with the channels last. `activation`: the name of
    one, or a block.
    """

    dims: ClassVar[int]
    gates: ClassVar[int] = 1

    h2h_weight: Parameter
    i2h_bias: Parameter
    h2h_bias: Parameter

    def __init__(
        self, input_shape: tuple[int, ...], hidden_channels: int, i2h_kernel: Sizes, h2h_kernel: Sizes, i2h_pad: Sizes = 0,
        i2h_dilate: Sizes = 1, h2h_dilate: Sizes = 1, i2h_weight_initializer: Any = None, h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros", h2h_bias_initializer: Any = "zeros", conv_layout: str | None = None, activation: Any = "tanh",
        prefix: str | None = None, params: ParameterDict | None = None,
    ) -> None:  # fmt: skip
        super().__init__(prefix=prefix, params=params)
        require_length(self, "hidden_channels", hidden_channels)
        self._hidden_channels = hidden_channels
        self._input_shape = tuple(input_shape)
        self._conv_layout = conv_layout or LAYOUTS[self.dims]
        self._require_activation("activation", activation)
        self._activation = activation
        self._channel_axis = self._conv_layout.find("C")
        if len(self._conv_layout) != self.dims + 2 or self._channel_axis < 1:
            raise ArgumentError(f"{self.name}: conv_layout={self._conv_layout!r} is none of {self.dims} dimensions")
        if len(self._input_shape) != self.dims + 1:
            raise ArgumentError(
                f"{self.name}: input_shape={input_shape} must have {self.dims + 1} lengths, the channels among them"
            )
        self._i2h = {
            "kernel": self._sizes("i2h_kernel", i2h_kernel), "pad": self._sizes("i2h_pad", i2h_pad),
            "dilate": self._sizes("i2h_dilate", i2h_dilate),
        }  # fmt: skip
        kernel, dilate = self._sizes("h2h_kernel", h2h_kernel), self._sizes("h2h_dilate", h2h_dilate)
        if any(length % 2 == 0 for length in kernel):
            raise ArgumentError(f"Only support odd number, get h2h_kernel= {h2h_kernel}; the state must keep its lengths")
        self._h2h = {"kernel": kernel, "pad": tuple(d * (k - 1) // 2 for d, k in zip(dilate, kernel)), "dilate": dilate}
        rows = hidden_channels * self.gates
        in_channels = self._input_shape[self._channel_axis - 1]
        self._weights(
            {
                "i2h_weight": (rows, *self._ordered(in_channels, self._i2h["kernel"])),
                "h2h_weight": (rows, *self._ordered(hidden_channels, kernel)), "i2h_bias": (rows,), "h2h_bias": (rows,),
            },
            {
                "i2h_weight": i2h_weight_initializer, "h2h_weight": h2h_weight_initializer, "i2h_bias": i2h_bias_initializer,
                "h2h_bias": h2h_bias_initializer,
            },
        )  # fmt: skip

    def _sizes(self, what: str, value: Sizes) -> tuple[int, ...]:
        sizes = (value,) * self.dims if isinstance(value, int) else tuple(value)
        if len(sizes) != self.dims:
            raise ArgumentError(f"{self.name}: {what}={value} must be a number, or {self.dims} of them")
        return sizes

    def _ordered(self, channels: int, lengths: tuple[int, ...]) -> tuple[int, ...]:
        """Channels and lengths in the order of the layout."""
        return (channels, *lengths) if self._channel_axis == 1 else (*lengths, channels)

    @property
    def _state_shape(self) -> tuple[int, ...]:
        """Of a state without the batch; a length of the input that is 0 is not known."""
        lengths = self._input_shape[1:] if self._channel_axis == 1 else self._input_shape[:-1]
        windows = zip(lengths, self._i2h["kernel"], self._i2h["pad"], self._i2h["dilate"])
        left = tuple(length + 2 * pad - dilate * (kernel - 1) if length else 0 for length, kernel, pad, dilate in windows)
        return self._ordered(self._hidden_channels, left)

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        return [self._state(batch_size, *self._state_shape, layout=self._conv_layout)]

    def _products(self, F: Any, inputs: Any, state: Any, params: dict[str, Any], stem: str) -> tuple[Any, Any]:
        """Input and state, each convolved with its weights."""
        return tuple(
            F.Convolution(
                data=data, weight=params[f"{kind}_weight"], bias=params[f"{kind}_bias"], num_filter=self._hidden_channels * self.gates,
                stride=(1,) * self.dims, layout=self._conv_layout, name=f"{stem}{kind}", **window,
            )
            for kind, data, window in (("i2h", inputs, self._i2h), ("h2h", state, self._h2h))
        )  # fmt: skip

    def __repr__(self) -> str:
        shape = self.i2h_weight.shape or (0,) * (self.dims + 2)
        channels = shape[1 if self._channel_axis == 1 else -1]
        return f"{type(self).__name__}({channels or None} -> {shape[0]}, {self._activation}, {self._conv_layout})"


class _ConvRNNCell(_ConvCell):
    """`h' = f(W * x + b + U * h + b')`, with convolutions `*`."""

    def _alias(self) -> str:
        return "conv_rnn"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, **params: Any) -> Any:  # type: ignore[override]  # with states
        stem = f"t{self._counter}_"
        i2h, h2h = self._products(F, inputs, states[0], params, stem)
        output = self._get_activation(F, i2h + h2h, self._activation, name=f"{stem}out")
        return output, [output]


class _ConvLSTMCell(_ConvCell):
    """LSTMCell with convolutions for its products; `activation` bends the new values and the cells."""

    gates = 4

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        return super().state_info(batch_size) * 2

    def _alias(self) -> str:
        return "conv_lstm"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, **params: Any) -> Any:  # type: ignore[override]  # with states
        stem = f"t{self._counter}_"
        i2h, h2h = self._products(F, inputs, states[0], params, stem)
        gates = F.split(i2h + h2h, num_outputs=4, axis=self._channel_axis, name=f"{stem}slice")
        in_gate = F.Activation(gates[0], act_type="sigmoid", name=f"{stem}i")
        forget_gate = F.Activation(gates[1], act_type="sigmoid", name=f"{stem}f")
        transform = self._get_activation(F, gates[2], self._activation, name=f"{stem}c")
        out_gate = F.Activation(gates[3], act_type="sigmoid", name=f"{stem}o")
        cell = F.elemwise_add(forget_gate * states[1], in_gate * transform, name=f"{stem}state")
        output = F.elemwise_mul(out_gate, self._get_activation(F, cell, self._activation), name=f"{stem}out")
        return output, [output, cell]


class _ConvGRUCell(_ConvCell):
    """GRUCell with convolutions for its products; `activation` bends the new values."""

    gates = 3

    def _alias(self) -> str:
        return "conv_gru"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, **params: Any) -> Any:  # type: ignore[override]  # with states
        stem = f"t{self._counter}_"
        i2h, h2h = self._products(F, inputs, states[0], params, stem)
        i2h_r, i2h_z, i2h_n = F.split(i2h, num_outputs=3, axis=self._channel_axis, name=f"{stem}i2h_slice")
        h2h_r, h2h_z, h2h_n = F.split(h2h, num_outputs=3, axis=self._channel_axis, name=f"{stem}h2h_slice")
        reset = F.Activation(i2h_r + h2h_r, act_type="sigmoid", name=f"{stem}r_act")
        update = F.Activation(i2h_z + h2h_z, act_type="sigmoid", name=f"{stem}z_act")
        new = self._get_activation(F, i2h_n + reset * h2h_n, self._activation, name=f"{stem}h_act")
        output = F.elemwise_add((1.0 - update) * new, update * states[0], name=f"{stem}out")
        return output, [output]


class Conv1DRNNCell(_ConvRNNCell):
    """RNNCell with convolutions of lines (N, C, W) for its products. **Source** MXNet `contrib.rnn.Conv1DRNNCell`."""

    dims = 1


class Conv2DRNNCell(_ConvRNNCell):
    """RNNCell with convolutions of images (N, C, H, W) for its products. **Source** MXNet `contrib.rnn.Conv2DRNNCell`."""

    dims = 2


class Conv3DRNNCell(_ConvRNNCell):
    """RNNCell with convolutions of volumes (N, C, D, H, W) for its products. **Source** MXNet `contrib.rnn.Conv3DRNNCell`."""

    dims = 3


class Conv1DLSTMCell(_ConvLSTMCell):
    """LSTMCell with convolutions of lines (N, C, W) for its products. **Source** MXNet `contrib.rnn.Conv1DLSTMCell`."""

    dims = 1


class Conv2DLSTMCell(_ConvLSTMCell):
    """LSTMCell with convolutions of images (N, C, H, W) for its products. **Source** MXNet `contrib.rnn.Conv2DLSTMCell`; Shi, 2015."""

    dims = 2


class Conv3DLSTMCell(_ConvLSTMCell):
    """LSTMCell with convolutions of volumes (N, C, D, H, W) for its products. **Source** MXNet `contrib.rnn.Conv3DLSTMCell`."""

    dims = 3


class Conv1DGRUCell(_ConvGRUCell):
    """GRUCell with convolutions of lines (N, C, W) for its products. **Source** MXNet `contrib.rnn.Conv1DGRUCell`."""

    dims = 1


class Conv2DGRUCell(_ConvGRUCell):
    """GRUCell with convolutions of images (N, C, H, W) for its products. **Source** MXNet `contrib.rnn.Conv2DGRUCell`."""

    dims = 2


class Conv3DGRUCell(_ConvGRUCell):
    """GRUCell with convolutions of volumes (N, C, D, H, W) for its products. **Source** MXNet `contrib.rnn.Conv3DGRUCell`."""

    dims = 3
