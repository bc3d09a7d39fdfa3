"""`gluon.block`: the classes from which layers and networks are made, under the name that MXNet's module has."""

from .hybrid_block import HybridBlock
from .plain_block import Block
from .scope import _BlockScope
from .symbol_block import SymbolBlock

__all__ = ["Block", "HybridBlock", "SymbolBlock", "_BlockScope"]
