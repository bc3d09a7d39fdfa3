"""`gluon.contrib.rnn`: cells that MXNet keeps apart as contributed."""

from . import conv_rnn_cell, rnn_cell
from .conv_rnn_cell import (  # fmt: skip
    Conv1DGRUCell,
    Conv1DLSTMCell,
    Conv1DRNNCell,
    Conv2DGRUCell,
    Conv2DLSTMCell,
    Conv2DRNNCell,
    Conv3DGRUCell,
    Conv3DLSTMCell,
    Conv3DRNNCell,
)
from .rnn_cell import LSTMPCell, VariationalDropoutCell, dynamic_unroll

__all__ = [
    "Conv1DGRUCell", "Conv1DLSTMCell", "Conv1DRNNCell", "Conv2DGRUCell", "Conv2DLSTMCell", "Conv2DRNNCell", "Conv3DGRUCell",
    "Conv3DLSTMCell", "Conv3DRNNCell", "LSTMPCell", "VariationalDropoutCell", "conv_rnn_cell", "dynamic_unroll", "rnn_cell",
]  # fmt: skip
