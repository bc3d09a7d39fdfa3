"""The three classical cells - RNNCell, LSTMCell, GRUCell - and, under MXNet's name for the module, all others of `gluon.rnn`.

Their arithmetic is that of the layers in rnn_layer.py, written step by step with ordinary operators. Book: chapter 4.
"""

from __future__ import annotations

from typing import Any

from ..parameter import Parameter, ParameterDict
from ..weight import require_length
from .combined_cells import BidirectionalCell, HybridSequentialRNNCell, SequentialRNNCell
from .modifier_cells import DropoutCell, ModifierCell, ResidualCell, ZoneoutCell
from .recurrent_cell import HybridRecurrentCell, RecurrentCell

__all__ = [
    "BidirectionalCell", "DropoutCell", "GRUCell", "HybridRecurrentCell", "HybridSequentialRNNCell", "LSTMCell", "ModifierCell", "RNNCell",
    "RecurrentCell", "ResidualCell", "SequentialRNNCell", "ZoneoutCell",
]  # fmt: skip


class GatedCell(HybridRecurrentCell):
    """What the cells share: products of the input and of the state with weights, in which all gates lie one after the other."""

    gates = 1

    h2h_weight: Parameter
    i2h_bias: Parameter
    h2h_bias: Parameter

    def __init__(
        self, hidden_size: int, i2h_weight_initializer: Any, h2h_weight_initializer: Any, i2h_bias_initializer: Any,
        h2h_bias_initializer: Any, input_size: int, prefix: str | None, params: ParameterDict | None, state_size: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(prefix=prefix, params=params)
        require_length(self, "hidden_size", hidden_size)
        self._hidden_size = hidden_size
        self._input_size = input_size
        rows = self.gates * hidden_size
        self._weights(
            {
                "i2h_weight": (rows, input_size), "h2h_weight": (rows, state_size or hidden_size), "i2h_bias": (rows,),
                "h2h_bias": (rows,),
            },
            {
                "i2h_weight": i2h_weight_initializer, "h2h_weight": h2h_weight_initializer, "i2h_bias": i2h_bias_initializer,
                "h2h_bias": h2h_bias_initializer,
            },
        )  # fmt: skip

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        return [self._state(batch_size, self._hidden_size)]

    def _products(self, F: Any, inputs: Any, state: Any, params: dict[str, Any], stem: str) -> tuple[Any, Any]:
        """Input and state, each times its weights."""
        rows = self._hidden_size * self.gates
        return tuple(
            F.FullyConnected(
                data=data, weight=params[f"{kind}_weight"], bias=params[f"{kind}_bias"], num_hidden=rows, name=f"{stem}{kind}"
            )
            for kind, data in (("i2h", inputs), ("h2h", state))
        )

    def _mapping(self) -> str:
        rows, inputs = self.i2h_weight.shape or (0, 0)
        return f"{inputs or None} -> {rows}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._mapping()})"


class RNNCell(GatedCell):
    """One step of Elman's network: `h' = f(W x + b + U h + b')`; the output is the new state.

    **Shapes** inputs (N, C), state and output (N, H), i2h_weight W (H, C), h2h_weight U (H, H), i2h_bias and h2h_bias (H,).
    **Args** `hidden_size`: H; `activation`: f. `input_size`: C; 0 to learn it from the first inputs. **Source** MXNet `rnn.RNNCell`.

    >>> from minimx.gluon import rnn
    >>> cell = rnn.RNNCell(4)
    >>> cell.initialize()
    >>> output, states = cell(mx.nd.ones((2, 5)), cell.begin_state(batch_size=2))
    >>> output.shape, len(states)
    ((2, 4), 1)
    """

    def __init__(
        self, hidden_size: int, activation: Any = "tanh", i2h_weight_initializer: Any = None, h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros", h2h_bias_initializer: Any = "zeros", input_size: int = 0, prefix: str | None = None,
        params: ParameterDict | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            hidden_size, i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer, input_size, prefix,
            params,
        )  # fmt: skip
        self._require_activation("activation", activation)
        self._activation = activation

    def _alias(self) -> str:
        return "rnn"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, **params: Any) -> Any:  # type: ignore[override]  # with states
        stem = f"t{self._counter}_"
        i2h, h2h = self._products(F, inputs, states[0], params, stem)
        total = F.elemwise_add(i2h, h2h, name=f"{stem}plus0")
        output = self._get_activation(F, total, self._activation, name=f"{stem}out")
        return output, [output]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._mapping()}, {self._activation})"


class LSTMCell(GatedCell):
    """One step of an LSTM: `c' = s(a_f) c + s(a_i) f(a_g)`, `h' = s(a_o) f(c')` with `a = W x + b + U h + b'`, in blocks i, f, g, o.

    **Shapes** inputs (N, C), states h and c and output h' (N, H), i2h_weight W (4 H, C), h2h_weight U (4 H, H), i2h_bias and h2h_bias
    (4 H,). **Args** as RNNCell; `activation`: f, `recurrent_activation`: s. A forget gate that is open at first is made with
    `i2h_bias_initializer=mx.init.LSTMBias(1.0)`. **Source** MXNet `rnn.LSTMCell`; Hochreiter and Schmidhuber, 1997.
    """

    gates = 4

    def __init__(
        self, hidden_size: int, i2h_weight_initializer: Any = None, h2h_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros", input_size: int = 0, prefix: str | None = None, params: ParameterDict | None = None,
        activation: Any = "tanh", recurrent_activation: Any = "sigmoid",
    ) -> None:  # fmt: skip
        super().__init__(
            hidden_size, i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer, input_size, prefix,
            params,
        )  # fmt: skip
        self._require_activation("activation", activation)
        self._require_activation("recurrent_activation", recurrent_activation)
        self._activation = activation
        self._recurrent_activation = recurrent_activation

    def state_info(self, batch_size: int = 0) -> list[dict[str, Any]]:
        return [self._state(batch_size, self._hidden_size) for _ in range(2)]

    def _alias(self) -> str:
        return "lstm"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, **params: Any) -> Any:  # type: ignore[override]  # with states
        stem = f"t{self._counter}_"
        i2h, h2h = self._products(F, inputs, states[0], params, stem)
        gates = F.split(F.elemwise_add(i2h, h2h, name=f"{stem}plus0"), num_outputs=4, name=f"{stem}slice")
        in_gate = self._get_activation(F, gates[0], self._recurrent_activation, name=f"{stem}i")
        forget_gate = self._get_activation(F, gates[1], self._recurrent_activation, name=f"{stem}f")
        transform = self._get_activation(F, gates[2], self._activation, name=f"{stem}c")
        out_gate = self._get_activation(F, gates[3], self._recurrent_activation, name=f"{stem}o")
        kept = F.elemwise_mul(forget_gate, states[1], name=f"{stem}mul0")
        cell = F.elemwise_add(kept, F.elemwise_mul(in_gate, transform, name=f"{stem}mul1"), name=f"{stem}state")
        if isinstance(self._activation, str):
            bent = F.Activation(cell, act_type=self._activation, name=f"{stem}activation0")
        else:
            bent = self._get_activation(F, cell, self._activation, name=f"{stem}activation0")
        output = F.elemwise_mul(out_gate, bent, name=f"{stem}out")
        return output, [output, cell]


class GRUCell(GatedCell):
    """One step of a GRU: `h' = (1 - z) n + z h` with `n = tanh(W_n x + b_n + r (U_n h + b'_n))`, r and z sigmoids of `W x + b + U h + b'`.

    **Shapes** inputs (N, C), state h and output h' (N, H), i2h_weight W (3 H, C), h2h_weight U (3 H, H), i2h_bias and h2h_bias (3 H,), in
    blocks r, z, n. **Args** as RNNCell. **Source** MXNet `rnn.GRUCell`; Cho et al., 2014, but, as in cuDNN, r multiplies the product.
    """

    gates = 3

    def __init__(
        self, hidden_size: int, i2h_weight_initializer: Any = None, h2h_weight_initializer: Any = None, i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros", input_size: int = 0, prefix: str | None = None, params: ParameterDict | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            hidden_size, i2h_weight_initializer, h2h_weight_initializer, i2h_bias_initializer, h2h_bias_initializer, input_size, prefix,
            params,
        )  # fmt: skip

    def _alias(self) -> str:
        return "gru"

    def hybrid_forward(self, F: Any, inputs: Any, states: Any, **params: Any) -> Any:  # type: ignore[override]  # with states
        stem = f"t{self._counter}_"
        before = states[0]
        i2h, h2h = self._products(F, inputs, before, params, stem)
        i2h_r, i2h_z, i2h_n = F.split(i2h, num_outputs=3, name=f"{stem}i2h_slice")
        h2h_r, h2h_z, h2h_n = F.split(h2h, num_outputs=3, name=f"{stem}h2h_slice")
        reset = F.Activation(F.elemwise_add(i2h_r, h2h_r, name=f"{stem}plus0"), act_type="sigmoid", name=f"{stem}r_act")
        update = F.Activation(F.elemwise_add(i2h_z, h2h_z, name=f"{stem}plus1"), act_type="sigmoid", name=f"{stem}z_act")
        gated = F.elemwise_mul(reset, h2h_n, name=f"{stem}mul0")
        new = F.Activation(F.elemwise_add(i2h_n, gated, name=f"{stem}plus2"), act_type="tanh", name=f"{stem}h_act")
        ones = F.ones_like(update, name=f"{stem}ones_like0")
        output = F.elemwise_add(
            F.elemwise_mul(F.elemwise_sub(ones, update, name=f"{stem}minus0"), new, name=f"{stem}mul1"),
            F.elemwise_mul(update, before, name=f"{stem}mul20"),
            name=f"{stem}out",
        )
        return output, [output]
