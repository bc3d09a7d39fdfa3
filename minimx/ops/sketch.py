"""Compact bilinear pooling: count_sketch, fft and ifft.

The products of all pairs of features are too many to keep. A *count sketch* adds each feature, with a random sign, to one of few places
drawn at random, and the sketch of all products is the convolution of two sketches: a product of their Fourier transforms. Complex numbers
are stored as their real and imaginary parts side by side. Each operator is linear, and the gradient of fft is ifft, which divides by
nothing, as in MXNet. Gao et al., 2016.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

from ..base import ArgumentError, ShapeError
from ..op import Array, How, Op, Spec, T, apply, attributes, register
from ..rules import require_ndim
from .binary import broadcast_mul
from .checks import accurate, require_float, require_shape
from .indexing import add_rows, resolve, take

if TYPE_CHECKING:
    from typing_extensions import Unpack


@attributes
class FourierTransform(Op):
    """One dimension: the last axis. `compute_size`, how many rows MXNet transforms at a time, changes no value."""

    saves_inputs: ClassVar = False
    saves_outputs: ClassVar = False

    compute_size: int = 128

    def check(self, data: Spec) -> None:
        require_float(self, data)
        require_ndim(self, "data", data, 2, 4)
        if self.compute_size < 1:
            raise ArgumentError(f"{self.name}: compute_size={self.compute_size} must not be less than 1")


@register("_contrib_fft")
class FFT(FourierTransform):
    def infer(self, data: Spec) -> Spec:
        self.check(data)
        return data.with_shape((*data.shape[:-1], 2 * data.shape[-1]))

    def kernel(self, xp: Any, data: Array) -> Array:
        shape = (*data.shape[:-1], 2 * data.shape[-1])
        if not data.size:
            return xp.empty(shape, data.dtype)
        found = xp.fft.fft(accurate(xp, data), axis=-1)
        return xp.stack([found.real, found.imag], axis=-1).reshape(shape).astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (ifft(g, self.compute_size),)


@register("_contrib_ifft")
class InverseFFT(FourierTransform):
    def infer(self, data: Spec) -> Spec:
        self.check(data)
        if data.shape[-1] % 2:
            raise ShapeError(f"{self.name}: data has shape {data.shape}; its last axis has pairs of real and imaginary parts")
        return data.with_shape((*data.shape[:-1], data.shape[-1] // 2))

    def kernel(self, xp: Any, data: Array) -> Array:
        count = data.shape[-1] // 2
        if not data.size:
            return xp.empty((*data.shape[:-1], count), data.dtype)
        pairs = accurate(xp, data).reshape(*data.shape[:-1], count, 2)
        found = xp.fft.ifft(pairs[..., 0] + 1j * pairs[..., 1], axis=-1).real
        return (found * count).astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any) -> tuple[Any, ...]:
        return (fft(g, self.compute_size),)


def fft(data: T, compute_size: int = 128, **how: Unpack[How]) -> T:
    """The Fourier transform along the last axis: `y[k] = sum over n of data[n] exp(-2 pi i k n / D)`.

    **Shapes** data (N, D) or (N1, N2, N3, D), result (..., 2 D): real0, imaginary0, real1, ... **Args** `compute_size` changes nothing.
    **Gradient** `ifft(g)`. **Source** MXNet `contrib.fft` (on GPUs only).
    """
    return apply(FFT(compute_size), data, **how)


def ifft(data: T, compute_size: int = 128, **how: Unpack[How]) -> T:
    """The real part of the inverse Fourier transform along the last axis, times its length D: `ifft(fft(x)) / D` is x.

    **Shapes** data (N, 2 D) or (N1, N2, N3, 2 D): real0, imaginary0, real1, ...; result (..., D). **Args** `compute_size` changes nothing.
    **Gradient** `fft(g)`. **Source** MXNet `contrib.ifft` (on GPUs only).
    """
    return apply(InverseFFT(compute_size), data, **how)


@register("_contrib_count_sketch")
class CountSketch(Op):
    inputs: ClassVar = ("data", "h", "s")
    required: ClassVar = ("out_dim",)
    saves_outputs: ClassVar = False

    out_dim: int = 0
    processing_batch_size: int = 32

    def infer(self, data: Spec, h: Spec, s: Spec) -> Spec:
        if self.out_dim < 1 or self.processing_batch_size < 1:
            raise ArgumentError(
                f"{self.name}: out_dim={self.out_dim} and processing_batch_size={self.processing_batch_size} must not be less than 1"
            )
        require_float(self, data)
        require_ndim(self, "data", data, 2, 4)
        for what, spec in (("h", h), ("s", s)):
            require_shape(self, what, spec, (1, data.shape[-1]), f"the last axis of data {data.shape}")
        return data.with_shape((*data.shape[:-1], self.out_dim))

    def kernel(self, xp: Any, data: Array, h: Array, s: Array) -> Array:
        exact = accurate(xp, data)
        columns = (exact * s.astype(exact.dtype)).reshape(math.prod(data.shape[:-1]), data.shape[-1]).T
        places = resolve(xp, self, h.reshape(-1), self.out_dim, "raise")
        sketch = add_rows(xp, self.out_dim, places, xp.ascontiguousarray(columns))
        return xp.ascontiguousarray(sketch.T).reshape(*data.shape[:-1], self.out_dim).astype(data.dtype, copy=False)

    def vjp(self, g: Any, y: Any, data: Any, h: Any, s: Any) -> tuple[Any, ...]:
        taken = take(g, h.reshape((-1,)), axis=-1)
        return broadcast_mul(taken, s.astype(g.dtype).reshape((*(1,) * (len(data.shape) - 1), data.shape[-1]))), None, None


def count_sketch(data: T, h: T, s: T, out_dim: int = 0, processing_batch_size: int = 32, **how: Unpack[How]) -> T:
    """Features added up in `out_dim` places: feature i, times its sign `s[i]`, in the place `h[i]`.

    **Shapes** data (N, D) or (N1, N2, N3, D), h and s (1, D), result (..., out_dim). **Args** h: whole numbers from 0 to out_dim - 1; s: 1
    or -1; `processing_batch_size` changes nothing. **Raises** OutOfRangeError, when the value is read, for a place that is not there.
    **Gradient** of data: `s[i] * g[h[i]]`; none for h and s. **Source** MXNet `contrib.count_sketch` (on GPUs only).
    """
    return apply(CountSketch(out_dim, processing_batch_size), data, h, s, **how)


__all__ = ["count_sketch", "fft", "ifft"]
