"""`gluon.contrib.data.sampler`: the sampler that MXNet 1.x keeps here; it is with the others in gluon/data/sampler.py."""

from ...data.sampler import IntervalSampler

__all__ = ["IntervalSampler"]
