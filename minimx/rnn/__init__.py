"""`mx.rnn`: recurrent networks as Symbols, from before Gluon, and sentences in buckets to train them on.

A cell makes the nodes of one step; `unroll` makes those of so many, with the same weights, which are variables of the graph. Such graphs
are trained by `mx.mod.BucketingModule`. The base and the three kinds of cells are in rnn_cell.py, those made of others in combined.py,
convolutional ones in convolutional.py, a whole layer as one operator in fused.py. gluon.rnn has the same cells as blocks.
"""

from .combined import BidirectionalCell, DropoutCell, ModifierCell, ResidualCell, SequentialRNNCell, ZoneoutCell
from .convolutional import BaseConvRNNCell, ConvGRUCell, ConvLSTMCell, ConvRNNCell
from .fused import FusedRNNCell
from .io import BucketSentenceIter, encode_sentences
from .rnn import do_rnn_checkpoint, load_rnn_checkpoint, rnn_unroll, save_rnn_checkpoint
from .rnn_cell import BaseRNNCell, GRUCell, LSTMCell, RNNCell, RNNParams

__all__ = [
    "BaseConvRNNCell", "BaseRNNCell", "BidirectionalCell", "BucketSentenceIter", "ConvGRUCell", "ConvLSTMCell", "ConvRNNCell",
    "DropoutCell", "FusedRNNCell", "GRUCell", "LSTMCell", "ModifierCell", "RNNCell", "RNNParams", "ResidualCell", "SequentialRNNCell",
    "ZoneoutCell", "do_rnn_checkpoint", "encode_sentences", "load_rnn_checkpoint", "rnn_unroll", "save_rnn_checkpoint",
]  # fmt: skip
