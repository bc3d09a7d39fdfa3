"""The recurrent layers RNN, LSTM and GRU: all steps, layers and directions in one operator (ops/rnn.py).

Their parameters are kept apart, each with a name of its own (`l0_i2h_weight`: layer 0, input to hidden units; `r0_` in the reversed
direction), and joined into the operator's one vector by each call. Book: chapter 4.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ... import nd, sym
from ...base import ArgumentError, ShapeError, as_dtype
from ...nd import NDArray
from ...ops.joining import rnn_param_concat
from ..block import HybridBlock
from ..parameter import Parameter, ParameterDict, tensor_types
from ..weight import require_length
from . import rnn_cell

__all__ = ["GRU", "LSTM", "RNN"]

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}
NAME = re.compile(r"(l|r)(\d+)_(i2h|h2h|h2r)_(weight|bias)\Z")


class _RNNLayer(HybridBlock):
    """What the layers share. Called with states they return the output and the new states, without them the output alone."""

    def __init__(
        self, mode: str, hidden_size: int, num_layers: int, layout: str, dropout: float, bidirectional: bool, input_size: int, dtype: Any,
        initializers: dict[str, Any], projection_size: int | None = None,
        clip: tuple[float | None, float | None, bool] = (None, None, False), use_sequence_length: bool = False,
        prefix: str | None = None, params: ParameterDict | None = None,
    ) -> None:  # fmt: skip
        super().__init__(prefix=prefix, params=params)
        if layout not in ("TNC", "NTC"):
            raise ArgumentError(f"Invalid layout {layout}; must be one of ['TNC' or 'NTC']")
        if mode not in GATES:
            raise ArgumentError(
                f"{type(self).__name__}: activation={mode.removeprefix('rnn_')!r} is not known; choose relu or tanh"
            )
        require_length(self, "hidden_size", hidden_size)
        self._mode = mode
        self._hidden_size = hidden_size
        self._num_layers = num_layers
        self._layout = layout
        self._dropout = dropout
        self._dir = 2 if bidirectional else 1
        self._input_size = input_size
        self._dtype = dtype
        self._initializers = initializers  # by the end of the parameter's name
        self._projection_size = projection_size or None
        self._lstm_state_clip_min, self._lstm_state_clip_max, self._lstm_state_clip_nan = clip
        self._use_sequence_length = use_sequence_length
        self.skip_states = False  # whether the call that is under way gave no states, and wants none back
        for layer, direction in self._places():
            for name, shape in self._shapes(layer).items():
                self._register_param(f"{direction}{layer}_{name}", shape, initializers.get(name), dtype)

    def _places(self) -> list[tuple[int, str]]:
        """All layers and directions, in the order of the operator's vector."""
        return [(layer, direction) for layer in range(self._num_layers) for direction in ("l", "r")[: self._dir]]

    def _shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        """The shapes of the parameters of one direction of a layer. 0 is a length that is not known yet."""
        rows, state = GATES[self._mode] * self._hidden_size, self._projection_size or self._hidden_size
        inputs = self._input_size if layer == 0 else state * self._dir
        shapes = {"i2h_weight": (rows, inputs), "h2h_weight": (rows, state), "i2h_bias": (rows,), "h2h_bias": (rows,)}
        return shapes if self._projection_size is None else {**shapes, "h2r_weight": (state, self._hidden_size)}

    def _register_param(self, name: str, shape: tuple[int, ...], init: Any, dtype: Any) -> Parameter:
        found = self.params.get(name, shape=shape, init=init, allow_deferred_init=True, dtype=dtype)
        setattr(self, name, found)
        return found

    def __repr__(self) -> str:
        rows, inputs = self.params.get("l0_i2h_weight").shape or (0, 0)
        parts = [f"{inputs or None} -> {rows // GATES[self._mode]}", self._layout]
        parts += [f"num_layers={self._num_layers}"] * (self._num_layers != 1)
        parts += [f"dropout={self._dropout}"] * (self._dropout != 0)
        parts += ["bidirectional"] * (self._dir == 2)
        return f"{type(self).__name__}({', '.join(parts)})"

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Parameter]:
        """Parameters by the places that they would have in a stack of cells: so MXNet's files have them, older ones too."""
        start = prefix + "." if prefix else ""
        found = {}
        for name, param in self._reg_params.items():
            match = NAME.match(name)
            assert match is not None
            direction, layer, kind, what = match.groups()
            cell = f"{direction}_cell." if self._dir == 2 else ""
            found[f"{start}_unfused.{layer}.{cell}{kind}_{what}"] = param
        return found

    def _unfuse(self) -> rnn_cell.HybridSequentialRNNCell:
        """A stack of cells that computes the same, with the same parameters. **Raises** ValueError for a projection or bounds of cells."""
        if self._projection_size or self._lstm_state_clip_min or self._lstm_state_clip_max:
            raise ArgumentError(
                f"{self.name}: cells do not support projection and clipping of states yet, so there is no stack of them"
            )
        stack = rnn_cell.HybridSequentialRNNCell(prefix=self.prefix, params=self.params)
        with stack.name_scope():
            inputs = self._input_size
            for layer in range(self._num_layers):
                if self._dir == 2:
                    stack.add(rnn_cell.BidirectionalCell(self._cell(f"l{layer}_", inputs), self._cell(f"r{layer}_", inputs)))
                else:
                    stack.add(self._cell(f"l{layer}_", inputs))
                if self._dropout > 0 and layer != self._num_layers - 1:
                    stack.add(rnn_cell.DropoutCell(self._dropout))
                inputs = self._hidden_size * self._dir
        return stack

    def _cell(self, prefix: str, input_size: int) -> rnn_cell.HybridRecurrentCell:
        """The cell of one direction of a layer."""
        options: dict[str, Any] = {"prefix": prefix, "input_size": input_size}
        options.update({f"{name}_initializer": init for name, init in self._initializers.items() if name != "h2r_weight"})
        if self._mode == "lstm":
            return rnn_cell.LSTMCell(self._hidden_size, **options)
        if self._mode == "gru":
            return rnn_cell.GRUCell(self._hidden_size, **options)
        return rnn_cell.RNNCell(self._hidden_size, activation=self._mode.removeprefix("rnn_"), **options)

    def cast(self, dtype: Any) -> None:
        """Convert the parameters, and the states to begin with, to `dtype`."""
        super().cast(dtype)
        self._dtype = dtype

    # ---- states

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        """Shape and layout of each state: the hidden units, then an LSTM's cells, as keywords for `nd.zeros` and its like."""
        lengths = [self._projection_size or self._hidden_size, *[self._hidden_size] * (self._mode == "lstm")]
        dtype = as_dtype(self._dtype).name
        return [
            {"shape": (self._num_layers * self._dir, batch_size, each), "__layout__": "LNC", "dtype": dtype} for each in lengths
        ]

    def begin_state(self, batch_size: int = 0, func: Callable[..., Any] = nd.zeros, **kwargs: Any) -> list[Any]:
        """States to begin with: `func(name=, shape=, dtype=, **kwargs)` of each. For a graph give `func=mx.sym.zeros`, or `mx.sym.var`.

        **Args** `batch_size`: needed for arrays; in a graph 0 stands for any.
        """
        infos = enumerate(self.state_info(batch_size))
        return [func(name=f"{self.prefix}h0_{number}", **{**info, **kwargs}) for number, info in infos]

    # ---- calling

    def __call__(self, inputs: Any, states: Any = None, sequence_length: Any = None) -> Any:
        """The output for all steps; with `states` (a tensor, or a list of them) also the new states.

        **Args** `sequence_length` (N,): how many steps of each sequence count, for a layer made with `use_sequence_length=True`.
        """
        if self._traces and self.skip_states != (states is None) and isinstance(inputs, NDArray):
            self._drop_traces()  # a graph has the one kind of outputs or the other
        self.skip_states = states is None
        if states is None:
            if isinstance(inputs, NDArray):
                batch_size = inputs.shape[self._layout.index("N")]
                states = self.begin_state(batch_size, ctx=inputs.context, dtype=inputs.dtype)
            else:
                states = self.begin_state(0, func=sym.zeros)
        if isinstance(states, tensor_types):
            states = [states]
        lengths = (sequence_length,) if self._use_sequence_length else ()
        if sequence_length is not None and not lengths:
            raise ArgumentError(
                f"{self.name}: sequence_length is given but not used; make the layer with use_sequence_length=True"
            )
        return super().__call__(inputs, states, *lengths)

    def hybrid_forward(  # type: ignore[override]  # with states
        self, F: Any, inputs: Any, states: Any, sequence_length: Any = None, **params: Any
    ) -> Any:
        if F is nd:
            batch_size = inputs.shape[self._layout.index("N")] if len(inputs.shape) == 3 else 0
            for state, info in zip(states, self.state_info(batch_size)):
                if batch_size and state.shape != info["shape"]:
                    raise ShapeError(f"Invalid recurrent state shape. Expecting {info['shape']}, got {state.shape}.")
        output, new_states = self._forward_kernel(F, inputs, states, sequence_length, params)
        return output if self.skip_states else (output, new_states)

    def _forward_kernel(
        self, F: Any, inputs: Any, states: list[Any], sequence_length: Any, params: dict[str, Any]
    ) -> tuple[Any, list[Any]]:
        if self._layout == "NTC":
            inputs = F.swapaxes(inputs, 0, 1)
        weights = [f"{direction}{layer}_{kind}_weight" for layer, direction in self._places() for kind in ("i2h", "h2h", "h2r")]
        biases = [f"{direction}{layer}_{kind}_bias" for layer, direction in self._places() for kind in ("i2h", "h2h")]
        vector = rnn_param_concat(*[params[name].reshape(-1) for name in (*weights, *biases) if name in params], dim=0)
        lengths = {"sequence_length": sequence_length} if self._use_sequence_length else {}
        output, *new_states = F.RNN(
            inputs, vector, *states, use_sequence_length=self._use_sequence_length, state_size=self._hidden_size,
            projection_size=self._projection_size, num_layers=self._num_layers, bidirectional=self._dir == 2, p=self._dropout,
            state_outputs=True, mode=self._mode, lstm_state_clip_min=self._lstm_state_clip_min,
            lstm_state_clip_max=self._lstm_state_clip_max, lstm_state_clip_nan=self._lstm_state_clip_nan, **lengths,
        )  # fmt: skip
        return (F.swapaxes(output, 0, 1) if self._layout == "NTC" else output), new_states


class RNN(_RNNLayer):
    """Elman's network: in each layer `h' = f(W x + b + U h + b')`, with x the input or the output of the layer below.

    **Shapes** inputs (T, N, C), states and new states (L D, N, H), output (T, N, D H): L layers, D directions; `layout` "NTC" changes
    inputs and output alone. Parameters for each layer and direction, `l0_` ... and, reversed, `r0_` ...: i2h_weight W (H, C), h2h_weight
    U (H, H), i2h_bias and h2h_bias (H,). **Args** `hidden_size`: H; `num_layers`: L. `activation`: f, "relu" or "tanh". `dropout`: the
    fraction that becomes 0 between layers in training. `input_size`: C; 0 to learn it from the first inputs. `use_sequence_length`: calls
    have a third argument, how many steps of each sequence count. **Returns** the output if it is called without states; else output and
    states. **Source** MXNet `rnn.RNN`.

    >>> from minimx.gluon import rnn
    >>> layer = rnn.RNN(4, num_layers=2, bidirectional=True)
    >>> layer.initialize()
    >>> x = mx.nd.ones((5, 3, 2))
    >>> layer(x).shape
    (5, 3, 8)
    >>> output, states = layer(x, layer.begin_state(batch_size=3))
    >>> [state.shape for state in states]
    [(4, 3, 4)]
    """

    def __init__(
        self, hidden_size: int, num_layers: int = 1, activation: str = "relu", layout: str = "TNC", dropout: float = 0,
        bidirectional: bool = False, i2h_weight_initializer: Any = None, h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros", h2h_bias_initializer: Any = "zeros", input_size: int = 0, dtype: Any = "float32",
        **kwargs: Any,
    ) -> None:  # fmt: skip
        initializers = {
            "i2h_weight": i2h_weight_initializer, "h2h_weight": h2h_weight_initializer, "i2h_bias": i2h_bias_initializer,
            "h2h_bias": h2h_bias_initializer,
        }  # fmt: skip
        super().__init__(
            f"rnn_{activation}",
            hidden_size,
            num_layers,
            layout,
            dropout,
            bidirectional,
            input_size,
            dtype,
            initializers,
            **kwargs,
        )


class LSTM(_RNNLayer):
    """Long short-term memory: `c' = s(a_f) c + s(a_i) tanh(a_g)`, `h' = s(a_o) tanh(c')` with `a = W x + b + U h + b'`, s the sigmoid.

    **Shapes** as RNN, but the states are two, h (L D, N, H) and c (L D, N, H), and the rows of weights and biases 4 H, in blocks i, f, g,
    o. **Args** as RNN; `projection_size`: R, then h is a product h2r_weight (R, H) times h' and has length R. `state_clip_min`,
    `state_clip_max`: bounds of c; `state_clip_nan`: in which NaN is kept, too. A forget gate that is open at first is made with
    `i2h_bias_initializer=mx.init.LSTMBias(1.0)`. **Source** MXNet `rnn.LSTM`; Hochreiter and Schmidhuber, 1997.

    >>> from minimx.gluon import rnn
    >>> layer = rnn.LSTM(4, layout="NTC")
    >>> layer.initialize()
    >>> x = mx.nd.ones((3, 5, 2))
    >>> output, (hidden, cell) = layer(x, layer.begin_state(batch_size=3))
    >>> output.shape, hidden.shape, cell.shape
    ((3, 5, 4), (1, 3, 4), (1, 3, 4))
    """

    def __init__(
        self, hidden_size: int, num_layers: int = 1, layout: str = "TNC", dropout: float = 0, bidirectional: bool = False,
        input_size: int = 0, i2h_weight_initializer: Any = None, h2h_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros", projection_size: int | None = None, h2r_weight_initializer: Any = None,
        state_clip_min: float | None = None, state_clip_max: float | None = None, state_clip_nan: bool = False, dtype: Any = "float32",
        **kwargs: Any,
    ) -> None:  # fmt: skip
        initializers = {
            "i2h_weight": i2h_weight_initializer, "h2h_weight": h2h_weight_initializer, "i2h_bias": i2h_bias_initializer,
            "h2h_bias": h2h_bias_initializer, "h2r_weight": h2r_weight_initializer,
        }  # fmt: skip
        super().__init__(
            "lstm", hidden_size, num_layers, layout, dropout, bidirectional, input_size, dtype, initializers, projection_size,
            (state_clip_min, state_clip_max, state_clip_nan), **kwargs,
        )  # fmt: skip


class GRU(_RNNLayer):
    """Gated recurrent units: `h' = (1 - z) n + z h` with `n = tanh(W_n x + b_n + r (U_n h + b'_n))`, r and z sigmoids of their own rows.

    **Shapes** as RNN, but the rows of weights and biases are 3 H, in blocks r, z, n. **Args** as RNN. **Source** MXNet `rnn.GRU`; Cho et
    al., 2014, but, as in cuDNN, r multiplies the product.
    """

    def __init__(
        self, hidden_size: int, num_layers: int = 1, layout: str = "TNC", dropout: float = 0, bidirectional: bool = False,
        input_size: int = 0, i2h_weight_initializer: Any = None, h2h_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros", dtype: Any = "float32", **kwargs: Any,
    ) -> None:  # fmt: skip
        initializers = {
            "i2h_weight": i2h_weight_initializer, "h2h_weight": h2h_weight_initializer, "i2h_bias": i2h_bias_initializer,
            "h2h_bias": h2h_bias_initializer,
        }  # fmt: skip
        super().__init__(
            "gru", hidden_size, num_layers, layout, dropout, bidirectional, input_size, dtype, initializers, **kwargs
        )
