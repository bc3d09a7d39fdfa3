"""`nd.contrib`: functions that MXNet keeps apart as contributed."""

from ..ops.batchnorm import BatchNormWithReLU
from ..ops.creation import arange_like, index_array
from ..ops.logic import isfinite, isinf, isnan
from ..ops.optim_adam import adamw_update, mp_adamw_update
from ..ops.optim_adaptive import group_adagrad_update
from ..ops.optim_multi_adam import multi_adamw_update, multi_lamb_update, multi_mp_adamw_update, multi_mp_lamb_update
from ..ops.sampling import rand_zipfian
from ..ops.scatter import boolean_mask, index_copy
from ..ops.statistics import allclose

__all__ = [
    "BatchNormWithReLU", "adamw_update", "allclose", "arange_like", "boolean_mask", "group_adagrad_update", "index_array",
    "index_copy", "isfinite", "isinf", "isnan", "mp_adamw_update", "multi_adamw_update", "multi_lamb_update",
    "multi_mp_adamw_update", "multi_mp_lamb_update", "rand_zipfian",
]  # fmt: skip
