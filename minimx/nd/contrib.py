"""`nd.contrib`: functions that MXNet keeps apart as contributed."""

from ..ops.batchnorm import BatchNormWithReLU
from ..ops.creation import arange_like, index_array
from ..ops.ctc import CTCLoss, ctc_loss
from ..ops.logic import isfinite, isinf, isnan
from ..ops.optim_adam import adamw_update, mp_adamw_update
from ..ops.optim_adaptive import group_adagrad_update
from ..ops.optim_multi_adam import multi_adamw_update, multi_lamb_update, multi_mp_adamw_update, multi_mp_lamb_update
from ..ops.sampling import rand_zipfian
from ..ops.scatter import boolean_mask, index_copy
from ..ops.statistics import allclose
from ..ops.sync_batchnorm import SyncBatchNorm
from .control_flow import cond, foreach, while_loop

__all__ = [
    "BatchNormWithReLU", "CTCLoss", "SyncBatchNorm", "adamw_update", "allclose", "arange_like", "boolean_mask", "cond",
    "ctc_loss", "foreach", "group_adagrad_update", "index_array", "index_copy", "isfinite", "isinf", "isnan",
    "mp_adamw_update", "multi_adamw_update", "multi_lamb_update", "multi_mp_adamw_update", "multi_mp_lamb_update",
    "rand_zipfian", "while_loop",
]  # fmt: skip
