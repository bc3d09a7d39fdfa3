"""`mx.optimizer`: how gradients change weights.

All optimizers share optimizer.py. SGD and its relatives are in descent.py, Adam and others with a step length for each element in
adaptive.py, those for large batches in large_batch.py. An Updater (updater.py) keeps their states, states.py writes them to files. Book:
chapter 4.
"""

from . import contrib, optimizer
from .adaptive import FTML, AdaDelta, AdaGrad, Adam, Adamax, AdamW, Ftrl, Nadam, RMSProp
from .descent import DCASGD, NAG, SGD, SGLD, Signum, Test, ccSGD
from .large_batch import LAMB, LARS, LBSGD
from .optimizer import Optimizer, create, register
from .updater import Updater, get_updater

__all__ = [
    "AdaDelta", "AdaGrad", "Adam", "AdamW", "Adamax", "DCASGD", "FTML", "Ftrl", "LAMB", "LARS", "LBSGD", "NAG", "Nadam", "Optimizer",
    "RMSProp", "SGD", "SGLD", "Signum", "Test", "Updater", "ccSGD", "contrib", "create", "get_updater", "optimizer", "register",
]  # fmt: skip
