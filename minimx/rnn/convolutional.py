"""Cells whose input and state are images: convolutions in the place of fully connected layers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, ClassVar

from .. import sym
from ..sym import Symbol
from .rnn_cell import BaseRNNCell, CellError, RNNParams, gru_step, lstm_step

__all__ = ["BaseConvRNNCell", "ConvGRUCell", "ConvLSTMCell", "ConvRNNCell"]

Pair = tuple[int, int]
LEAKY = functools.partial(sym.LeakyReLU, act_type="leaky", slope=0.2)


class BaseConvRNNCell(BaseRNNCell):
    """The base of the convolutional cells.

    **Args** `input_shape`: of the images of a step, with the batch's axis; `num_hidden`: channels of the state. `i2h_...`: of the
    convolution of the input; `h2h_...`: of that of the state, whose kernel must be odd, so that it keeps its size. `..._initializer`: of
    weights and biases. `activation`: a name, or a function. `conv_layout`: "NCHW". **Source** MXNet `rnn.BaseConvRNNCell`.
    """

    states: ClassVar[int] = 1
    usual_prefix: ClassVar[str] = ""

    def __init__(
        self, input_shape: tuple[int, ...], num_hidden: int, h2h_kernel: Pair = (3, 3), h2h_dilate: Pair = (1, 1),
        i2h_kernel: Pair = (3, 3), i2h_stride: Pair = (1, 1), i2h_pad: Pair = (1, 1), i2h_dilate: Pair = (1, 1),
        i2h_weight_initializer: Any = None, h2h_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros", activation: Any = LEAKY, prefix: str | None = None, params: RNNParams | None = None,
        conv_layout: str = "NCHW",
    ) -> None:  # fmt: skip
        super().__init__(self.usual_prefix if prefix is None else prefix, params)
        if h2h_kernel[0] % 2 == 0 or h2h_kernel[1] % 2 == 0:
            raise CellError(f"{type(self).__name__}: Only support odd number, get h2h_kernel= {h2h_kernel}")
        self._num_hidden = num_hidden
        self._activation = activation
        self._conv_layout = conv_layout
        self._input: dict[str, Any] = {
            "kernel": i2h_kernel,
            "stride": i2h_stride,
            "pad": i2h_pad,
            "dilate": i2h_dilate,
            "layout": conv_layout,
        }
        h2h_pad = tuple(dilate * (length - 1) // 2 for dilate, length in zip(h2h_dilate, h2h_kernel))
        self._state: dict[str, Any] = {
            "kernel": h2h_kernel,
            "stride": (1, 1),
            "pad": h2h_pad,
            "dilate": h2h_dilate,
            "layout": conv_layout,
        }
        convolved = sym.Convolution(sym.var("data"), num_filter=num_hidden, **self._input)
        self._state_shape = (0, *convolved.infer_shape(data=tuple(input_shape))[1][0][1:])
        self._iW = self.params.get("i2h_weight", init=i2h_weight_initializer)
        self._hW = self.params.get("h2h_weight", init=h2h_weight_initializer)
        self._iB = self.params.get("i2h_bias", init=i2h_bias_initializer)
        self._hB = self.params.get("h2h_bias", init=h2h_bias_initializer)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        return [{"shape": self._state_shape, "__layout__": self._conv_layout}] * self.states

    def _convolved(self, inputs: Symbol, state: Symbol, name: str) -> tuple[Symbol, Symbol]:
        size = self._num_hidden * len(self._gate_names)
        return (
            sym.Convolution(inputs, self._iW, self._iB, num_filter=size, name=f"{name}i2h", **self._input),
            sym.Convolution(state, self._hW, self._hB, num_filter=size, name=f"{name}h2h", **self._state),
        )

    def _activated(self, x: Symbol, **how: Any) -> Symbol:
        return self._get_activation(x, self._activation, **how)


class ConvRNNCell(BaseConvRNNCell):
    """h' = activation(W * x + U * h + b). **Source** MXNet `rnn.ConvRNNCell`."""

    usual_prefix = "ConvRNN_"

    @property
    def _gate_names(self) -> Sequence[str]:
        return ("",)

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        i2h, h2h = self._convolved(inputs, states[0], name)
        output = self._activated(i2h + h2h, name=f"{name}out")
        return output, [output]


class ConvLSTMCell(BaseConvRNNCell):
    """An LSTM of images. **Source** MXNet `rnn.ConvLSTMCell`."""

    states = 2

    usual_prefix = "ConvLSTM_"

    @property
    def _gate_names(self) -> Sequence[str]:
        return ("_i", "_f", "_c", "_o")

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        i2h, h2h = self._convolved(inputs, states[0], name)
        return lstm_step(i2h + h2h, states[1], name, self._activated, self._conv_layout.find("C"))


class ConvGRUCell(BaseConvRNNCell):
    """A GRU of images. **Source** MXNet `rnn.ConvGRUCell`."""

    usual_prefix = "ConvGRU_"

    @property
    def _gate_names(self) -> Sequence[str]:
        return ("_r", "_z", "_o")

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        name = self._step_name()
        i2h, h2h = self._convolved(inputs, states[0], name)
        return gru_step(i2h, h2h, states[0], name, self._activated)
