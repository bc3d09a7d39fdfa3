"""`gluon.contrib.data`: what MXNet keeps apart of `gluon.data`."""

from . import sampler, text
from .sampler import IntervalSampler

__all__ = ["IntervalSampler", "sampler", "text"]
