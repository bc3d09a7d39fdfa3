"""`mx.runtime`: what this installation can do, under the names with which MXNet lists what it was built with.

Here a feature is not fixed when the library is built: it is there when the package that brings it is. What stands for a library that
minimx never uses (OpenCV, cuDNN, TVM) is off. `python -m minimx info` tells the same in words.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import device, simulated
from .base import ArgumentError, shown

__all__ = ["Feature", "Features", "feature_list"]


@dataclass(frozen=True)
class Feature:
    """A feature by name, and whether it is there. **Source** MXNet `runtime.Feature`."""

    name: str
    enabled: bool

    def __repr__(self) -> str:
        return f"{'✔' if self.enabled else '✖'} {self.name}"


# ---- how to find out


@functools.cache
def _numpy_build() -> dict[str, Any]:
    """What NumPy was built with and what it found on this machine."""
    found: Any = np.show_config(mode="dicts")
    return dict(found or {})


def _instructions() -> set[str]:
    """The vector instructions that NumPy's loops use, or choose from, here; recent ones are named by level (X86_V3 has AVX2)."""
    found = _numpy_build().get("SIMD Extensions", {})
    names = {*found.get("baseline", ()), *found.get("found", ())}
    if "X86_V2" in names:
        names |= {"SSE", "SSE2", "SSE3", "SSE41", "SSE42"}
    if "X86_V3" in names:
        names |= {"AVX", "AVX2", "F16C"}
    return names


def _instruction(name: str) -> Callable[[], bool]:
    return lambda: name in _instructions()


def _blas(*names: str) -> Callable[[], bool]:
    def find() -> bool:
        used = str(_numpy_build().get("Build Dependencies", {}).get("blas", {}).get("name", "")).lower()
        return any(name in used for name in names)

    return find


def _installed(package: str) -> Callable[[], bool]:
    return lambda: importlib.util.find_spec(package) is not None


def _cuda() -> bool:
    return _installed("cupy")() and not simulated.gpus and device.num_gpus() > 0


def _never() -> bool:
    return False


def _always() -> bool:
    return True


#: Who knows whether oneDNN, which MXNet calls MKLDNN, is there: minimx/kernels, a layer above, enters itself.
onednn: list[Callable[[], bool]] = []

#: MXNet's features in its order, and how to find out.
_FEATURES: dict[str, Callable[[], bool]] = {
    "CUDA": _cuda,
    **dict.fromkeys(("CUDNN", "NCCL", "CUDA_RTC", "TENSORRT"), _never),
    "CPU_SSE": _instruction("SSE"),
    "CPU_SSE2": _instruction("SSE2"),
    "CPU_SSE3": _instruction("SSE3"),
    "CPU_SSE4_1": _instruction("SSE41"),
    "CPU_SSE4_2": _instruction("SSE42"),
    "CPU_SSE4A": _never,
    "CPU_AVX": _instruction("AVX"),
    "CPU_AVX2": _instruction("AVX2"),
    **dict.fromkeys(("OPENMP", "SSE"), _never),
    "F16C": _instruction("F16C"),
    "JEMALLOC": _never,
    "BLAS_OPEN": _blas("openblas"),
    "BLAS_ATLAS": _blas("atlas"),
    "BLAS_MKL": _blas("mkl"),
    "BLAS_APPLE": _blas("accelerate"),
    "LAPACK": _always,  # numpy.linalg
    "MKLDNN": lambda: any(find() for find in onednn),
    **dict.fromkeys(("OPENCV", "CAFFE"), _never),
    "PROFILER": _always,  # mx.profiler
    "DIST_KVSTORE": _installed("mpi4py"),
    "CXX14": _never,
    "INT64_TENSOR_SIZE": _always,  # more than 2**31 elements
    **dict.fromkeys(("SIGNAL_HANDLER", "DEBUG", "TVM_OP"), _never),
}


def feature_list() -> list[Feature]:
    """All features. **Source** MXNet `runtime.feature_list`."""
    return [Feature(name, find()) for name, find in _FEATURES.items()]


class Features(dict[str, Feature]):
    """All features by name, as found when it is made. **Source** MXNet `runtime.Features`.

    >>> Features().is_enabled("lapack")
    True
    """

    def __init__(self) -> None:
        super().__init__((feature.name, feature) for feature in feature_list())

    def __repr__(self) -> str:
        return str(list(self.values()))

    def is_enabled(self, feature_name: str) -> bool:
        """Whether a feature is there; upper and lower case are the same. **Raises** ArgumentError (a RuntimeError) for an unknown one."""
        found = self.get(str(feature_name).upper())
        if found is None:
            raise ArgumentError(f"feature {shown(feature_name)} is unknown; known features are {', '.join(self)}")
        return found.enabled
