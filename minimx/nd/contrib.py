"""`nd.contrib`: functions that MXNet keeps apart as contributed."""

from ..ops.creation import arange_like, index_array
from ..ops.logic import isfinite, isinf, isnan
from ..ops.scatter import boolean_mask, index_copy
