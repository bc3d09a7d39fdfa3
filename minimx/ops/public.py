"""The operators that `mx.nd` and `mx.sym` export: the same functions under both.

One list for both, written out, so that editors, type checkers and `help()` see every name.
"""

from .activation import Activation, hard_sigmoid, relu, sigmoid, smooth_l1, softsign
from .batchnorm import BatchNorm
from .binary import (  # fmt: skip
    ElementWiseSum,
    add,
    add_n,
    broadcast_add,
    broadcast_div,
    broadcast_minus,
    broadcast_mod,
    broadcast_mul,
    broadcast_plus,
    broadcast_sub,
    divide,
    elemwise_add,
    elemwise_div,
    elemwise_mul,
    elemwise_sub,
    modulo,
    multiply,
    subtract,
    true_divide,
)
from .broadcast import broadcast_axes, broadcast_axis, broadcast_like, broadcast_to
from .casting import (  # fmt: skip
    BlockGrad,
    Cast,
    amp_cast,
    amp_multicast,
    cast,
    cast_storage,
    identity,
    make_loss,
    ones_like,
    stop_gradient,
    zeros_like,
)
from .columns import col2im, im2col
from .conv import Convolution
from .creation import ravel_multi_index, shape_array, size_array, unravel_index
from .ctc import CTCLoss, ctc_loss
from .deconv import Deconvolution
from .density import (  # fmt: skip
    random_pdf_dirichlet,
    random_pdf_exponential,
    random_pdf_gamma,
    random_pdf_generalized_negative_binomial,
    random_pdf_negative_binomial,
    random_pdf_normal,
    random_pdf_poisson,
    random_pdf_uniform,
)
from .first_editions import BatchNorm_v1, Convolution_v1, Pooling_v1
from .indexing import Embedding, batch_take, choose_element_0index, one_hot, onehot_encode, pick, take
from .joining import Concat, SliceChannel, concat, repeat, split, split_v2, stack, tile
from .layout import SwapAxis, depth_to_space, space_to_depth, swapaxes, transpose
from .linalg import batch_dot, dot, khatri_rao, linalg_gemm, linalg_gemm2, linalg_syrk, linalg_trmm
from .linalg_factor import (  # fmt: skip
    linalg_det,
    linalg_gelqf,
    linalg_inverse,
    linalg_potrf,
    linalg_potri,
    linalg_slogdet,
    linalg_sumlogdiag,
    linalg_trsm,
)
from .linalg_packing import linalg_extractdiag, linalg_extracttrian, linalg_makediag, linalg_maketrian
from .logic import (  # fmt: skip
    broadcast_equal,
    broadcast_greater,
    broadcast_greater_equal,
    broadcast_lesser,
    broadcast_lesser_equal,
    broadcast_logical_and,
    broadcast_logical_or,
    broadcast_logical_xor,
    broadcast_not_equal,
    equal,
    greater,
    greater_equal,
    lesser,
    lesser_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
    where,
)
from .loss import (  # fmt: skip
    LinearRegressionOutput,
    LogisticRegressionOutput,
    MAERegressionOutput,
    MakeLoss,
    Softmax,
    SoftmaxOutput,
    SVMOutput,
    softmax_cross_entropy,
)
from .lrn import LRN
from .nn import Dropout, FullyConnected, LeakyReLU
from .norm import GroupNorm, InstanceNorm, L2Normalization, LayerNorm
from .optim import (  # fmt: skip
    mp_nag_mom_update,
    mp_sgd_mom_update,
    mp_sgd_update,
    nag_mom_update,
    sgd_mom_update,
    sgd_update,
    signsgd_update,
    signum_update,
)
from .optim_adam import adam_update, lamb_update_phase1, lamb_update_phase2, mp_lamb_update_phase1, mp_lamb_update_phase2
from .optim_adaptive import ftml_update, ftrl_update, rmsprop_update, rmspropalex_update
from .optim_checks import all_finite, multi_all_finite, multi_lars, multi_sum_sq, reset_arrays
from .optim_multi import (  # fmt: skip
    multi_mp_sgd_mom_update,
    multi_mp_sgd_update,
    multi_sgd_mom_update,
    multi_sgd_update,
    preloaded_multi_mp_sgd_mom_update,
    preloaded_multi_mp_sgd_update,
    preloaded_multi_sgd_mom_update,
    preloaded_multi_sgd_update,
)
from .padding import Pad, diag, flip, pad, reverse
from .patch_correlation import Correlation
from .pool import Pooling
from .powers import broadcast_hypot, broadcast_maximum, broadcast_minimum, broadcast_power, maximum, minimum, power
from .random import (  # fmt: skip
    sample_exponential,
    sample_gamma,
    sample_generalized_negative_binomial,
    sample_negative_binomial,
    sample_normal,
    sample_poisson,
    sample_uniform,
)
from .reduce import (  # fmt: skip
    argmax,
    argmax_channel,
    argmin,
    max,
    max_axis,
    mean,
    min,
    min_axis,
    nanprod,
    nansum,
    norm,
    prod,
    sum,
    sum_axis,
)
from .resize import Crop
from .rnn import RNN
from .roi import ROIPooling
from .sampling import sample_multinomial, shuffle
from .scatter import fill_element_0index, gather_nd, scatter_nd
from .sequence import SequenceLast, SequenceMask, SequenceReverse
from .shape import Flatten, Reshape, expand_dims, flatten, reshape, reshape_like, squeeze
from .slicing import crop, slice, slice_axis, slice_like
from .softmax import SoftmaxActivation, log_softmax, softmax, softmin
from .sorting import argsort, sort, topk
from .special import erf, erfinv, gamma, gammaln
from .statistics import cumsum, histogram, moments
from .straight_through import IdentityAttachKLSparseReg
from .trigonometry import (  # fmt: skip
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctanh,
    cos,
    cosh,
    degrees,
    radians,
    sin,
    sinh,
    tan,
    tanh,
)
from .unary import (  # fmt: skip
    abs,
    cbrt,
    ceil,
    clip,
    exp,
    expm1,
    fix,
    floor,
    log,
    log1p,
    log2,
    log10,
    negative,
    rcbrt,
    reciprocal,
    rint,
    round,
    rsqrt,
    sign,
    sqrt,
    square,
    trunc,
)
from .upsampling import UpSampling
from .warp import BilinearSampler, GridGenerator, SpatialTransformer

__all__ = [
    "Activation", "BatchNorm", "BatchNorm_v1", "BilinearSampler", "BlockGrad", "CTCLoss", "Cast", "Concat", "Convolution",
    "Convolution_v1", "Correlation", "Crop", "Deconvolution", "Dropout", "ElementWiseSum", "Embedding", "Flatten",
    "FullyConnected", "GridGenerator", "GroupNorm", "IdentityAttachKLSparseReg", "InstanceNorm", "L2Normalization", "LRN",
    "LayerNorm", "LeakyReLU", "LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput", "MakeLoss", "Pad",
    "Pooling", "Pooling_v1", "RNN", "ROIPooling", "Reshape", "SVMOutput", "SequenceLast", "SequenceMask", "SequenceReverse", "SliceChannel",
    "Softmax", "SoftmaxActivation", "SoftmaxOutput", "SpatialTransformer", "SwapAxis", "UpSampling", "abs", "adam_update",
    "add", "add_n", "all_finite", "amp_cast", "amp_multicast", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh",
    "argmax", "argmax_channel", "argmin", "argsort", "batch_dot", "batch_take", "broadcast_add", "broadcast_axes",
    "broadcast_axis", "broadcast_div", "broadcast_equal", "broadcast_greater", "broadcast_greater_equal", "broadcast_hypot",
    "broadcast_lesser", "broadcast_lesser_equal", "broadcast_like", "broadcast_logical_and", "broadcast_logical_or",
    "broadcast_logical_xor", "broadcast_maximum", "broadcast_minimum", "broadcast_minus", "broadcast_mod", "broadcast_mul",
    "broadcast_not_equal", "broadcast_plus", "broadcast_power", "broadcast_sub", "broadcast_to", "cast", "cast_storage", "cbrt",
    "ceil", "choose_element_0index", "clip", "col2im", "concat", "cos", "cosh", "crop", "ctc_loss", "cumsum", "degrees",
    "depth_to_space", "diag", "divide", "dot", "elemwise_add", "elemwise_div", "elemwise_mul", "elemwise_sub", "equal", "erf",
    "erfinv", "exp", "expand_dims", "expm1", "fill_element_0index", "fix", "flatten", "flip", "floor", "ftml_update",
    "ftrl_update", "gamma", "gammaln", "gather_nd", "greater", "greater_equal", "hard_sigmoid", "histogram", "identity",
    "im2col", "khatri_rao", "lamb_update_phase1", "lamb_update_phase2", "lesser", "lesser_equal", "linalg_det",
    "linalg_extractdiag", "linalg_extracttrian", "linalg_gelqf", "linalg_gemm", "linalg_gemm2", "linalg_inverse",
    "linalg_makediag", "linalg_maketrian", "linalg_potrf", "linalg_potri", "linalg_slogdet", "linalg_sumlogdiag", "linalg_syrk",
    "linalg_trmm", "linalg_trsm", "log", "log10", "log1p", "log2", "log_softmax", "logical_and", "logical_not", "logical_or",
    "logical_xor", "make_loss", "max", "max_axis", "maximum", "mean", "min", "min_axis", "minimum", "modulo", "moments",
    "mp_lamb_update_phase1", "mp_lamb_update_phase2", "mp_nag_mom_update", "mp_sgd_mom_update", "mp_sgd_update",
    "multi_all_finite", "multi_lars", "multi_mp_sgd_mom_update", "multi_mp_sgd_update", "multi_sgd_mom_update",
    "multi_sgd_update", "multi_sum_sq", "multiply", "nag_mom_update", "nanprod", "nansum", "negative", "norm", "not_equal",
    "one_hot", "onehot_encode", "ones_like", "pad", "pick", "power", "preloaded_multi_mp_sgd_mom_update",
    "preloaded_multi_mp_sgd_update", "preloaded_multi_sgd_mom_update", "preloaded_multi_sgd_update", "prod", "radians",
    "random_pdf_dirichlet", "random_pdf_exponential", "random_pdf_gamma", "random_pdf_generalized_negative_binomial",
    "random_pdf_negative_binomial", "random_pdf_normal", "random_pdf_poisson", "random_pdf_uniform", "ravel_multi_index",
    "rcbrt", "reciprocal", "relu", "repeat", "reset_arrays", "reshape", "reshape_like", "reverse", "rint", "rmsprop_update",
    "rmspropalex_update", "round", "rsqrt", "sample_exponential", "sample_gamma", "sample_generalized_negative_binomial",
    "sample_multinomial", "sample_negative_binomial", "sample_normal", "sample_poisson", "sample_uniform", "scatter_nd",
    "sgd_mom_update", "sgd_update", "shape_array", "shuffle", "sigmoid", "sign", "signsgd_update", "signum_update", "sin",
    "sinh", "size_array", "slice", "slice_axis", "slice_like", "smooth_l1", "softmax", "softmax_cross_entropy", "softmin",
    "softsign", "sort", "space_to_depth", "split", "split_v2", "sqrt", "square", "squeeze", "stack", "stop_gradient",
    "subtract", "sum", "sum_axis", "swapaxes", "take", "tan", "tanh", "tile", "topk", "transpose", "true_divide", "trunc",
    "unravel_index", "where", "zeros_like",
]  # fmt: skip
