"""`mx.runtime` and `mx.libinfo`: what this installation can do, truthfully."""

from __future__ import annotations

import numpy as np
import pytest

import minimx as mx
from minimx import libinfo, runtime
from minimx.kernels.onednn import library

# Of MXNet 1.9.1, in its order.
NAMES = (  # noqa: SIM905  # a list would be one name a line
    "CUDA CUDNN NCCL CUDA_RTC TENSORRT CPU_SSE CPU_SSE2 CPU_SSE3 CPU_SSE4_1 CPU_SSE4_2 CPU_SSE4A CPU_AVX CPU_AVX2 OPENMP SSE F16C "
    "JEMALLOC BLAS_OPEN BLAS_ATLAS BLAS_MKL BLAS_APPLE LAPACK MKLDNN OPENCV CAFFE PROFILER DIST_KVSTORE CXX14 INT64_TENSOR_SIZE "
    "SIGNAL_HANDLER DEBUG TVM_OP"
).split()


def test_the_features_are_those_of_mxnet():
    features = runtime.Features()
    assert list(features) == NAMES
    assert [feature.name for feature in runtime.feature_list()] == NAMES
    assert all(isinstance(feature.enabled, bool) for feature in features.values())
    assert repr(features).startswith("[✖ CUDA, ✖ CUDNN" if not features["CUDA"].enabled else "[✔ CUDA")
    assert repr(features["LAPACK"]) == "✔ LAPACK"


def test_asking_for_one():
    features = runtime.Features()
    assert features.is_enabled("lapack")
    assert features.is_enabled("INT64_TENSOR_SIZE")
    assert not features.is_enabled("TVM_OP")
    with pytest.raises(RuntimeError, match="feature 'XX' is unknown; known features are CUDA, CUDNN"):
        features.is_enabled("XX")


def test_onednn_under_its_older_name():
    assert runtime.Features().is_enabled("MKLDNN") == (library.find() is not None)


def test_simulated_gpus_are_no_cuda():
    with mx.device.simulate_gpus(2):
        assert not runtime.Features().is_enabled("CUDA")


@pytest.mark.parametrize(
    ("found", "enabled"),
    [
        (
            {"baseline": ["SSE", "SSE2", "SSE3"], "found": ["SSE41", "SSE42", "AVX", "F16C", "AVX2"]},
            {"CPU_SSE4_2", "CPU_AVX2", "F16C"},
        ),
        ({"baseline": ["X86_V2"], "found": ["X86_V3", "X86_V4"]}, {"CPU_SSE4_2", "CPU_AVX2", "F16C"}),
        ({"baseline": ["X86_V2"]}, {"CPU_SSE4_2"}),
        ({"baseline": ["NEON", "NEON_FP16"], "found": ["ASIMDHP"]}, set()),
    ],
)
def test_vector_instructions(monkeypatch, found, enabled):
    """NumPy names them one by one, or, since 2.4, by level."""
    monkeypatch.setattr(runtime, "_numpy_build", lambda: {"SIMD Extensions": found})
    features = runtime.Features()
    assert {name for name in ("CPU_SSE4_2", "CPU_AVX2", "F16C") if features.is_enabled(name)} == enabled
    assert features.is_enabled("CPU_SSE2") == bool(enabled)


@pytest.mark.parametrize(
    ("blas", "feature"), [("scipy-openblas", "BLAS_OPEN"), ("mkl-sdl", "BLAS_MKL"), ("accelerate", "BLAS_APPLE"), ("blas", None)]
)
def test_blas(monkeypatch, blas, feature):
    monkeypatch.setattr(runtime, "_numpy_build", lambda: {"Build Dependencies": {"blas": {"name": blas}}})
    features = runtime.Features()
    assert [name for name in features if name.startswith("BLAS_") and features.is_enabled(name)] == [feature] * (
        feature is not None
    )


def test_several_processes_need_mpi(monkeypatch):
    for found in (None, object()):
        monkeypatch.setattr(runtime.importlib.util, "find_spec", lambda name, found=found: found)
        monkeypatch.setattr(runtime.device, "num_gpus", lambda: 0)
        assert runtime.Features().is_enabled("DIST_KVSTORE") is (found is not None)


def test_version():
    assert libinfo.__version__ == mx.libinfo.__version__ == mx.__version__
    assert np.__version__ != mx.__version__
