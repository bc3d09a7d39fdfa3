"""`nd.contrib`: functions that MXNet keeps apart as contributed."""

from ..ops.creation import arange_like, index_array
from ..ops.logic import isfinite, isinf, isnan
from ..ops.optim_adaptive import adamw_update, group_adagrad_update, mp_adamw_update
from ..ops.optim_multi import multi_adamw_update, multi_lamb_update, multi_mp_adamw_update, multi_mp_lamb_update
from ..ops.scatter import boolean_mask, index_copy
from .random import rand_zipfian
