"""`mx.gluon.data`: data sets, the order in which they are gone through, and batches.

A data set has a length and a sample at every index (dataset.py; well-known ones in `vision`); a sampler says which samples are visited when
(sampler.py); a DataLoader makes batches of them (dataloader.py), with functions that say how samples become arrays (batchify.py). How
workers make batches ahead of time is in team.py and what it names.
"""

from . import batchify, dataloader, dataset, sampler, vision
from .dataloader import DataLoader
from .dataset import ArrayDataset, Dataset, RecordFileDataset, SimpleDataset
from .sampler import BatchSampler, FilterSampler, IntervalSampler, RandomSampler, Sampler, SequentialSampler

__all__ = [
    "ArrayDataset", "BatchSampler", "DataLoader", "Dataset", "FilterSampler", "IntervalSampler", "RandomSampler", "RecordFileDataset",
    "Sampler", "SequentialSampler", "SimpleDataset", "batchify", "dataloader", "dataset", "sampler", "vision",
]  # fmt: skip
