"""`gluon.contrib.estimator`: training loops without writing them.

An Estimator (estimator.py) goes through epochs and batches and calls handlers at events (events.py); they update, measure, evaluate, log,
save and stop (event_handler.py). What is done with a batch is in batch_processor.py.
"""

from . import batch_processor, estimator, event_handler
from .batch_processor import BatchProcessor
from .estimator import Estimator
from .event_handler import (
    BatchBegin,
    BatchEnd,
    CheckpointHandler,
    EarlyStoppingHandler,
    EpochBegin,
    EpochEnd,
    GradientUpdateHandler,
    LoggingHandler,
    MetricHandler,
    StoppingHandler,
    TrainBegin,
    TrainEnd,
    ValidationHandler,
)

__all__ = [
    "BatchBegin", "BatchEnd", "BatchProcessor", "CheckpointHandler", "EarlyStoppingHandler", "EpochBegin", "EpochEnd", "Estimator",
    "GradientUpdateHandler", "LoggingHandler", "MetricHandler", "StoppingHandler", "TrainBegin", "TrainEnd", "ValidationHandler",
    "batch_processor", "estimator", "event_handler",
]  # fmt: skip
