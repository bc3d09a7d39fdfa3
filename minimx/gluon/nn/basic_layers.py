"""Layers without which hardly a network does: Dense, Dropout, Embedding, Flatten; and functions as layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import nd, sym
from ...base import ArgumentError, as_dtype, shown
from ..block import Block, HybridBlock
from ..weight import require_length
from .activations import activation_of
from .containers import Concurrent, HybridConcurrent, HybridSequential, Sequential
from .norm_layers import BatchNorm, BatchNormReLU, GroupNorm, InstanceNorm, LayerNorm

__all__ = [
    "BatchNorm", "BatchNormReLU", "Concurrent", "Dense", "Dropout", "Embedding", "Flatten", "GroupNorm", "HybridConcurrent", "HybridLambda",
    "HybridSequential", "Identity", "InstanceNorm", "Lambda", "LayerNorm", "Sequential",
]  # fmt: skip


class Dense(HybridBlock):
    """A fully connected layer: `activation(data weight' + bias)`.

    **Shapes** data (N, ...) is taken as (N, K) if `flatten`, else (..., K); weight (units, K), bias (units,); result (N, units) or
    (..., units). **Args** `activation`: the name of one, or None. `in_units`: K; 0 to learn it from the first batch.
    **Source** MXNet `nn.Dense`. **Book** chapter 4.

    >>> from minimx.gluon import nn
    >>> nn.Dense(3, activation="relu", in_units=5)
    Dense(5 -> 3, Activation(relu))
    """

    def __init__(
        self, units: int, activation: str | None = None, use_bias: bool = True, flatten: bool = True, dtype: Any = "float32",
        weight_initializer: Any = None, bias_initializer: Any = "zeros", in_units: int = 0, **kwargs: Any,
    ) -> None:  # fmt: skip
        require_length(self, "units", units, least=0)  # one of 0 can be made, as in MXNet, but not used
        super().__init__(**kwargs)
        self._units = units
        self._in_units = in_units
        self._flatten = flatten
        with self.name_scope():
            self.weight = self.params.get(
                "weight", shape=(units, in_units), init=weight_initializer, dtype=dtype, allow_deferred_init=True
            )
            self.bias = (
                self.params.get("bias", shape=(units,), init=bias_initializer, dtype=dtype, allow_deferred_init=True)
                if use_bias
                else None
            )
            self.act = activation_of(self, activation)

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        result = F.FullyConnected(x, weight, bias, self._units, bias is None, self._flatten, name="fwd")
        return result if self.act is None else self.act(result)

    def __repr__(self) -> str:
        units, inputs = self.weight.shape or (self._units, 0)
        return f"{type(self).__name__}({inputs or None} -> {units}, {'linear' if self.act is None else self.act})"


class Dropout(HybridBlock):
    """In training, a random fraction `rate` of the elements becomes 0, and the others grow by `1 / (1 - rate)`; else nothing happens.

    **Shapes** data and result (...). **Args** `axes`: along these all elements share their fate. **Source** MXNet `nn.Dropout`;
    Srivastava et al., 2014.
    """

    def __init__(self, rate: float, axes: tuple[int, ...] = (), **kwargs: Any) -> None:
        if not isinstance(rate, (int, float, np.number)) or rate > 1:
            raise ArgumentError(f"Dropout: rate is {shown(rate)}; a number from 0 to below 1 is wanted")
        super().__init__(**kwargs)
        self._rate = rate
        self._axes = axes

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        if self._rate > 0:
            return F.Dropout(x, p=self._rate, axes=self._axes, name="fwd", cudnn_off=False)
        return F.identity(x)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p = {self._rate}, axes={self._axes})"


class Embedding(HybridBlock):
    """A vector of length `output_dim` for each of the numbers 0 to `input_dim - 1`: rows of a table that is learned.

    **Shapes** data (...), weight (input_dim, output_dim), result (..., output_dim). **Args** `sparse_grad`: accepted; the gradient
    is dense. **Source** MXNet `nn.Embedding`.
    """

    def __init__(
        self, input_dim: int, output_dim: int, dtype: Any = "float32", weight_initializer: Any = None, sparse_grad: bool = False,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        require_length(self, "input_dim", input_dim)
        require_length(self, "output_dim", output_dim)
        super().__init__(**kwargs)
        self._kwargs = {
            "input_dim": input_dim, "output_dim": output_dim, "dtype": as_dtype(dtype).name, "sparse_grad": sparse_grad
        }  # fmt: skip
        self.weight = self.params.get(
            "weight", shape=(input_dim, output_dim), init=weight_initializer, dtype=dtype, allow_deferred_init=True,
            grad_stype="row_sparse" if sparse_grad else "default",
        )  # fmt: skip

    def hybrid_forward(self, F: Any, x: Any, weight: Any) -> Any:
        return F.Embedding(x, weight, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        return "{name}({input_dim} -> {output_dim}, {dtype})".format(name=type(self).__name__, **self._kwargs)


class Flatten(HybridBlock):
    """All axes but the first joined into one: (N, ...) becomes (N, K). **Source** MXNet `nn.Flatten`."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.flatten(x)

    def __repr__(self) -> str:
        return type(self).__name__


class Identity(HybridBlock):
    """The input itself: a branch of a HybridConcurrent that does nothing. **Source** MXNet `gluon.contrib.nn.Identity`."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return x


class Lambda(Block):
    """A function of arrays as a block: a Python function of any arguments, or the name of one of `mx.nd`.

    **Raises** AssertionError for a name that `mx.nd` has not, ValueError for anything else. **Source** MXNet `nn.Lambda`.
    """

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None) -> None:
        super().__init__(prefix=prefix)
        if isinstance(function, str):
            assert hasattr(nd, function), f"Function name {function} is not found in ndarray."
            function = getattr(nd, function)
        if not callable(function):
            raise ArgumentError(f"Lambda: a function or the name of one is wanted, got a {type(function).__name__}")
        self._func_impl = function

    def forward(self, *args: Any) -> Any:
        return self._func_impl(*args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_name_of(self._func_impl)})"


class HybridLambda(HybridBlock):
    """A function of arrays or Symbols as a block: a Python function `f(F, x, ...)`, or the name of one of `mx.nd` and `mx.sym`.

    **Raises** AssertionError for a name that these have not, ValueError for anything else. **Source** MXNet `nn.HybridLambda`.
    """

    def __init__(self, function: str | Callable[..., Any], prefix: str | None = None) -> None:
        super().__init__(prefix=prefix)
        if isinstance(function, str):
            assert all(hasattr(F, function) for F in (nd, sym)), f"Function name {function} is not found in symbol/ndarray."
        elif not callable(function):
            raise ArgumentError(f"HybridLambda: a function or the name of one is wanted, got a {type(function).__name__}")
        self._func = function

    def hybrid_forward(self, F: Any, x: Any, *args: Any) -> Any:
        if isinstance(self._func, str):
            return getattr(F, self._func)(x, *args)
        return self._func(F, x, *args)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_name_of(self._func)})"


def _name_of(function: Any) -> str:
    return function if isinstance(function, str) else getattr(function, "__name__", repr(function))
