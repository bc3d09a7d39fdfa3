"""`nd.contrib`: functions that MXNet keeps apart as contributed."""

from ..ops.attention import (
    div_sqrt_dim,
    interleaved_matmul_encdec_qk,
    interleaved_matmul_encdec_valatt,
    interleaved_matmul_selfatt_qk,
    interleaved_matmul_selfatt_valatt,
)
from ..ops.batchnorm import BatchNormWithReLU
from ..ops.boxes import box_decode, box_encode, box_iou
from ..ops.creation import arange_like, index_array
from ..ops.ctc import CTCLoss, ctc_loss
from ..ops.deformable import DeformableConvolution, ModulatedDeformableConvolution
from ..ops.hawkes import hawkesll
from ..ops.logic import isfinite, isinf, isnan
from ..ops.matching import bipartite_matching
from ..ops.multibox import MultiBoxDetection, MultiBoxPrior
from ..ops.multibox_target import MultiBoxTarget
from ..ops.optim_adam import adamw_update, mp_adamw_update
from ..ops.optim_adaptive import group_adagrad_update
from ..ops.optim_multi_adam import multi_adamw_update, multi_lamb_update, multi_mp_adamw_update, multi_mp_lamb_update
from ..ops.powers import quadratic
from ..ops.proposal import MultiProposal, Proposal
from ..ops.resize import AdaptiveAvgPooling2D, BilinearResize2D
from ..ops.roi_align import ROIAlign
from ..ops.roi_masks import mrcnn_mask_target
from ..ops.roi_points import DeformablePSROIPooling, RROIAlign
from ..ops.roi_position import PSROIPooling
from ..ops.sampling import rand_zipfian
from ..ops.scatter import boolean_mask, index_copy
from ..ops.sketch import count_sketch, fft, ifft
from ..ops.statistics import allclose
from ..ops.straight_through import gradientmultiplier, round_ste, sign_ste
from ..ops.suppression import box_nms, box_non_maximum_suppression
from ..ops.sync_batchnorm import SyncBatchNorm
from .control_flow import cond, foreach, while_loop

__all__ = [
    "AdaptiveAvgPooling2D", "BatchNormWithReLU", "BilinearResize2D", "CTCLoss", "DeformableConvolution",
    "DeformablePSROIPooling", "ModulatedDeformableConvolution", "MultiBoxDetection", "MultiBoxPrior", "MultiBoxTarget",
    "MultiProposal", "PSROIPooling", "Proposal", "ROIAlign", "RROIAlign", "SyncBatchNorm", "adamw_update", "allclose",
    "arange_like", "bipartite_matching", "boolean_mask", "box_decode", "box_encode", "box_iou", "box_nms",
    "box_non_maximum_suppression", "cond", "count_sketch", "ctc_loss", "div_sqrt_dim", "fft", "foreach",
    "gradientmultiplier", "group_adagrad_update", "hawkesll", "ifft", "index_array", "index_copy",
    "interleaved_matmul_encdec_qk", "interleaved_matmul_encdec_valatt", "interleaved_matmul_selfatt_qk",
    "interleaved_matmul_selfatt_valatt", "isfinite", "isinf", "isnan", "mp_adamw_update", "mrcnn_mask_target",
    "multi_adamw_update", "multi_lamb_update", "multi_mp_adamw_update", "multi_mp_lamb_update", "quadratic", "rand_zipfian",
    "round_ste", "sign_ste", "while_loop",
]  # fmt: skip

# Names of MXNet's that are not here, by how they begin.
