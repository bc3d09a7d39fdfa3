"""`mx.metric`: how good predictions are, added up over batches.

metric.py says what a metric is; those of classification are in classes.py, those of probabilities and numbers in values.py.
"""

from . import metric
from .classes import F1, MCC, PCC, Accuracy, TopKAccuracy
from .metric import (
    Caffe,
    CompositeEvalMetric,
    CustomMetric,
    EvalMetric,
    Loss,
    Torch,
    alias,
    check_label_shapes,
    create,
    np,
    register,
)
from .values import MAE, MSE, RMSE, CrossEntropy, NegativeLogLikelihood, PearsonCorrelation, Perplexity

__all__ = [
    "Accuracy", "Caffe", "CompositeEvalMetric", "CrossEntropy", "CustomMetric", "EvalMetric", "F1", "Loss", "MAE", "MCC", "MSE",
    "NegativeLogLikelihood", "PCC", "PearsonCorrelation", "Perplexity", "RMSE", "TopKAccuracy", "Torch", "alias",
    "check_label_shapes", "create", "metric", "np", "register",
]  # fmt: skip
