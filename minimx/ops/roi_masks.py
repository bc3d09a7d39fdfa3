"""mrcnn_mask_target: what Mask R-CNN's last branch should have said of each region, cut from the masks of the objects in the image.

The branch says for each region and class which of a few bins belong to the object. The truth is a mask of the whole image for each object;
ROIAlign (roi_align.py) on it, with the region as the region of interest, makes bins of it. Book: chapter 4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ArgumentError, OutOfRangeError, ShapeError
from ..op import Array, How, Op, Spec, T, apply, register
from ..rules import require_ndim, same_dtype
from .boxes import require_boxes
from .checks import accurate, require_shape
from .roi import require_lengths
from .roi_align import RegionAlign
from .shape import as_shape

if TYPE_CHECKING:
    from typing_extensions import Unpack


@register("_contrib_mrcnn_mask_target")
class MaskTarget(Op):
    on_host = True
    inputs: ClassVar = ("rois", "gt_masks", "matches", "cls_targets")
    required = ("num_rois", "num_classes", "mask_size")
    saves_inputs = False
    saves_outputs = False

    num_rois: int = 0
    num_classes: int = 0
    mask_size: tuple[int, ...] = ()
    sample_ratio: int = 2
    aligned: bool = False

    @property
    def num_outputs(self) -> int:
        return 2

    def infer(self, rois: Spec, gt_masks: Spec, matches: Spec, cls_targets: Spec) -> tuple[Spec, ...]:
        require_lengths(self, self.mask_size, "mask_size")
        same_dtype(self, rois, gt_masks, matches, cls_targets)
        require_boxes(self, "rois", rois)
        require_ndim(self, "rois", rois, 3, axes=("batch", "regions", "4"))
        require_ndim(self, "gt_masks", gt_masks, 4, axes=("batch", "objects", "height", "width"))
        if 0 in gt_masks.shape[2:]:
            raise ShapeError(f"{self.name}: gt_masks has shape {gt_masks.shape}, masks without pixels")
        if self.num_classes < 1:
            raise ArgumentError(f"{self.name}: num_classes={self.num_classes}, wants 1 or more")
        batch = rois.shape[0]
        require_shape(self, "rois", rois, (batch, self.num_rois, 4), f"num_rois={self.num_rois}")
        require_shape(self, "gt_masks", gt_masks, (batch, *gt_masks.shape[1:]), f"rois of shape {rois.shape}")
        for what, spec in (("matches", matches), ("cls_targets", cls_targets)):
            require_shape(self, what, spec, rois.shape[:2], f"rois of shape {rois.shape}")
        result = gt_masks.with_shape((batch, self.num_rois, self.num_classes, *self.mask_size))
        return result, result

    def kernel(self, xp: Any, rois: Array, gt_masks: Array, matches: Array, cls_targets: Array) -> tuple[Array, ...]:
        batch, objects, height, width = gt_masks.shape
        regions = xp.empty((batch * self.num_rois, 5), accurate(xp, rois).dtype)
        regions[:, 1:] = rois.reshape(-1, 4)
        number = matches.reshape(-1)
        if not ((number > -1) & (number < objects)).all():
            raise OutOfRangeError(f"{self.name}: matches has a number that is none of the {objects} masks of an image")
        regions[:, 0] = xp.repeat(xp.arange(batch), self.num_rois) * objects + xp.trunc(number)  # each mask is an image
        align = RegionAlign(self.mask_size, 1.0, self.sample_ratio, False, self.aligned)
        bins = align.kernel(xp, accurate(xp, gt_masks).reshape(-1, 1, height, width), regions)
        shape = (batch, self.num_rois, self.num_classes, *self.mask_size)
        sampled = bins.reshape(batch, self.num_rois, 1, *self.mask_size)
        own = cls_targets[:, :, None] == xp.arange(self.num_classes)
        results = (sampled, own[..., None, None])
        return tuple(xp.array(xp.broadcast_to(each, shape), gt_masks.dtype, order="C") for each in results)

    def vjp(self, g: Any, y: Any, *inputs: Any) -> tuple[Any, ...]:
        return (None,) * 4


def mrcnn_mask_target(
    rois: T | None = None,
    gt_masks: T | None = None,
    matches: T | None = None,
    cls_targets: T | None = None,
    num_rois: int = 0,
    num_classes: int = 0,
    mask_size: tuple[int, ...] = (),
    sample_ratio: int = 2,
    aligned: bool = False,
    **how: Unpack[How],
) -> list[T]:
    """The part of an object's mask in each region, in bins, for every class, and which class counts.

    **Shapes** rois (B, N, 4) by edges, in pixels of the masks; gt_masks (B, M, H, W), one for each object; matches (B, N), the number of
    each region's object; cls_targets (B, N), its class; two results (B, N, C, *mask_size): the means of the bins, the same for all
    classes, and 1 for the region's class, 0 for the others. **Args** `num_rois`: N; `num_classes`: C; `mask_size`: height and width of the
    results, in bins; `sample_ratio` and `aligned` as in ROIAlign. **Raises** OutOfRangeError for a match that is no object (when a result
    is read). **Gradient** 0. **Source** MXNet `contrib.mrcnn_mask_target`, which runs on GPUs only; the formulas are those of its source.
    """
    op = MaskTarget(num_rois, num_classes, as_shape(mask_size), sample_ratio, aligned)
    return apply(op, rois, gt_masks, matches, cls_targets, **how)


__all__ = ["mrcnn_mask_target"]
