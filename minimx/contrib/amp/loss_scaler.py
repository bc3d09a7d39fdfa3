"""The scale of the loss: as large as gradients allow, found by trying.

float16 has nothing between 0 and 6e-8. Gradients that are smaller vanish, unless the loss, and with it all gradients, is multiplied by
a scale before `backward`, and divided again before the update. The scale is halved when a gradient is not finite, and doubled after so
many steps in which all were. P. Micikevicius and others, "Mixed Precision Training", https://arxiv.org/abs/1710.03740.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from ... import autograd, nd

__all__ = ["LossScaler"]


class LossScaler:
    """The scale, and what it changes after. **Source** MXNet `contrib.amp.loss_scaler.LossScaler`."""

    def __init__(self) -> None:
        self._loss_scale = 2.0**16
        self._next_loss_scale = self._loss_scale
        self._max_loss_scale = 2.0**24
        self._scale_seq_len = 2000  # steps
        self._unskipped = 0  # steps since the scale was changed

    @property
    def loss_scale(self) -> float:
        """The scale now."""
        return self._loss_scale

    def has_overflow(self, params: Iterable[Any]) -> bool:
        """Whether a gradient of these parameters is not finite; waits for them. What was decided after the last call holds from now on."""
        with autograd.pause():
            gradients = [gradient for param in params if param.grad_req != "null" for gradient in param.list_grad()]
            finite = [nd.all_finite(gradient) for gradient in gradients]
            overflow = any(not each.asscalar() for each in finite)
        self._loss_scale = self._next_loss_scale
        if overflow:
            self._next_loss_scale = self._loss_scale / 2
            self._unskipped = 0
            logging.getLogger().info("AMP: decreasing loss scale to %f", self._next_loss_scale)
        else:
            self._unskipped += 1
        if self._unskipped == self._scale_seq_len:
            self._unskipped = 0
            self._next_loss_scale = min(self._max_loss_scale, self._loss_scale * 2)
            logging.getLogger().info("AMP: increasing loss scale to %f", self._next_loss_scale)
        return overflow
