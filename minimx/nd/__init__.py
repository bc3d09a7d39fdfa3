"""`mx.nd`: arrays, the functions on them, and their files.

The functions are the operators themselves, the same objects as in `mx.sym`; see minimx/ops. What only arrays have is in this package.
"""

from .. import autograd
from . import contrib, linalg, op, random, utils
from ..ops.activation import Activation, hard_sigmoid, relu, sigmoid, smooth_l1, softsign
from ..ops.binary import (  # fmt: skip
    ElementWiseSum, add, add_n, broadcast_add, broadcast_div, broadcast_minus, broadcast_mod, broadcast_mul, broadcast_plus,
    broadcast_sub, divide, elemwise_add, elemwise_div, elemwise_mul, elemwise_sub, modulo, multiply, subtract, true_divide,
)
from ..ops.broadcast import broadcast_axes, broadcast_axis, broadcast_like, broadcast_to
from ..ops.casting import (  # fmt: skip
    BlockGrad, Cast, amp_cast, amp_multicast, cast, identity, make_loss, ones_like, stop_gradient, zeros_like,
)
from ..ops.creation import ravel_multi_index, shape_array, size_array, unravel_index
from ..ops.density import (  # fmt: skip
    random_pdf_dirichlet, random_pdf_exponential, random_pdf_gamma, random_pdf_generalized_negative_binomial,
    random_pdf_negative_binomial, random_pdf_normal, random_pdf_poisson, random_pdf_uniform,
)
from ..ops.indexing import Embedding, batch_take, choose_element_0index, one_hot, onehot_encode, pick, take
from ..ops.joining import Concat, SliceChannel, concat, repeat, split, split_v2, stack, tile
from ..ops.layout import SwapAxis, depth_to_space, space_to_depth, swapaxes, transpose
from ..ops.linalg import (  # fmt: skip
    batch_dot, dot, khatri_rao, linalg_extractdiag, linalg_extracttrian, linalg_gemm, linalg_gemm2, linalg_makediag,
    linalg_maketrian, linalg_syrk, linalg_trmm,
)
from ..ops.linalg_factor import (  # fmt: skip
    linalg_det, linalg_gelqf, linalg_inverse, linalg_potrf, linalg_potri, linalg_slogdet, linalg_sumlogdiag, linalg_trsm,
)
from ..ops.logic import (  # fmt: skip
    broadcast_equal, broadcast_greater, broadcast_greater_equal, broadcast_lesser, broadcast_lesser_equal,
    broadcast_logical_and, broadcast_logical_or, broadcast_logical_xor, broadcast_not_equal, equal, greater, greater_equal,
    lesser, lesser_equal, logical_and, logical_not, logical_or, logical_xor, not_equal, where,
)
from ..ops.loss import (  # fmt: skip
    LinearRegressionOutput, LogisticRegressionOutput, MAERegressionOutput, MakeLoss, SVMOutput, Softmax, SoftmaxOutput,
    softmax_cross_entropy,
)
from ..ops.nn import Dropout, FullyConnected, LeakyReLU, SoftmaxActivation, log_softmax, softmax, softmin
from ..ops.norm import GroupNorm, InstanceNorm, L2Normalization, LayerNorm
from ..ops.optim import (  # fmt: skip
    mp_nag_mom_update, mp_sgd_mom_update, mp_sgd_update, nag_mom_update, sgd_mom_update, sgd_update, signsgd_update,
    signum_update,
)
from ..ops.optim_adaptive import (  # fmt: skip
    adam_update, ftml_update, ftrl_update, lamb_update_phase1, lamb_update_phase2, mp_lamb_update_phase1,
    mp_lamb_update_phase2, rmsprop_update, rmspropalex_update,
)
from ..ops.optim_multi import (  # fmt: skip
    all_finite, multi_all_finite, multi_lars, multi_mp_sgd_mom_update, multi_mp_sgd_update, multi_sgd_mom_update,
    multi_sgd_update, multi_sum_sq, preloaded_multi_mp_sgd_mom_update, preloaded_multi_mp_sgd_update,
    preloaded_multi_sgd_mom_update, preloaded_multi_sgd_update, reset_arrays,
)
from ..ops.padding import Pad, diag, flip, pad, reverse
from ..ops.powers import broadcast_hypot, broadcast_maximum, broadcast_minimum, broadcast_power, maximum, minimum, power
from ..ops.random import (  # fmt: skip
    sample_exponential, sample_gamma, sample_generalized_negative_binomial, sample_negative_binomial, sample_normal,
    sample_poisson, sample_uniform,
)
from ..ops.reduce import (  # fmt: skip
    argmax, argmax_channel, argmin, max, max_axis, mean, min, min_axis, nanprod, nansum, norm, prod, sum, sum_axis,
)
from ..ops.sampling import sample_multinomial, shuffle
from ..ops.scatter import fill_element_0index, gather_nd, scatter_nd
from ..ops.sequence import SequenceLast, SequenceMask, SequenceReverse
from ..ops.shape import Flatten, Reshape, expand_dims, flatten, reshape, reshape_like, squeeze
from ..ops.slicing import crop, slice, slice_axis, slice_like
from ..ops.sorting import argsort, sort, topk
from ..ops.special import erf, erfinv, gamma, gammaln
from ..ops.statistics import cumsum, histogram, moments
from ..ops.trigonometry import (  # fmt: skip
    arccos, arccosh, arcsin, arcsinh, arctan, arctanh, cos, cosh, degrees, radians, sin, sinh, tan, tanh,
)
from ..ops.unary import (  # fmt: skip
    abs, cbrt, ceil, clip, exp, expm1, fix, floor, log, log10, log1p, log2, negative, rcbrt, reciprocal, rint, round, rsqrt,
    sign, sqrt, square, trunc,
)
from ..engine import waitall
from .creation import (  # fmt: skip
    arange, array, concatenate, empty, eye, from_dlpack, from_numpy, full, linspace, moveaxis, ones, to_dlpack_for_read,
    to_dlpack_for_write, zeros,
)
from .ndarray import NDArray
from .random import (  # fmt: skip
    normal, random_exponential, random_gamma, random_generalized_negative_binomial, random_negative_binomial, random_normal,
    random_poisson, random_randint, random_uniform, uniform,
)
from .serialize import load, load_frombuffer, save

autograd.NDArray = NDArray  # type: ignore[attr-defined]  # MXNet scripts import this name from autograd, too
