"""`gluon.rnn`: recurrent layers, which do all steps in one operator, and cells, which do one."""

from . import rnn_cell, rnn_layer
from .rnn_cell import (  # fmt: skip
    BidirectionalCell,
    DropoutCell,
    GRUCell,
    HybridRecurrentCell,
    HybridSequentialRNNCell,
    LSTMCell,
    ModifierCell,
    RecurrentCell,
    ResidualCell,
    RNNCell,
    SequentialRNNCell,
    ZoneoutCell,
)
from .rnn_layer import GRU, LSTM, RNN

__all__ = [
    "GRU", "LSTM", "RNN", "BidirectionalCell", "DropoutCell", "GRUCell", "HybridRecurrentCell", "HybridSequentialRNNCell", "LSTMCell",
    "ModifierCell", "RNNCell", "RecurrentCell", "ResidualCell", "SequentialRNNCell", "ZoneoutCell", "rnn_cell", "rnn_layer",
]  # fmt: skip
