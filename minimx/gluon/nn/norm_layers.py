"""Layers that bring values to mean 0 and variance 1, and then scale and shift them as they learn.

BatchNorm takes mean and variance over the examples of a batch, the others over parts of a single example.
"""

from __future__ import annotations

import warnings
from typing import Any

from ...base import as_dtype
from ...device import num_gpus
from ..block import HybridBlock
from ..parameter import ParameterDict
from ..weight import Parameter

__all__ = ["BatchNorm", "BatchNormReLU", "GroupNorm", "InstanceNorm", "LayerNorm"]


class _Norm(HybridBlock):
    """What they share: a scale `gamma` and a shift `beta`, each of which can be left as it is."""

    def __init__(
        self, length: int, center: bool, scale: bool, beta_initializer: Any, gamma_initializer: Any, prefix: str | None,
        params: ParameterDict | None,
    ) -> None:  # fmt: skip
        super().__init__(prefix=prefix, params=params)
        self._kwargs: dict[str, Any] = {}  # the arguments, for repr
        self.gamma = self.params.get(
            "gamma", grad_req="write" if scale else "null", shape=(length,), init=gamma_initializer, allow_deferred_init=True
        )
        self.beta = self.params.get(
            "beta", grad_req="write" if center else "null", shape=(length,), init=beta_initializer, allow_deferred_init=True
        )

    def _arguments(self) -> str:
        return ", ".join(f"{key}={value!r}" for key, value in self._kwargs.items())

    def __repr__(self) -> str:
        shape = self.gamma.shape
        return f"{type(self).__name__}({self._arguments()}, in_channels={shape[0] if shape else None})"


class InstanceNorm(_Norm):
    """Each channel of each example brought to mean 0 and variance 1: `(x - mean) / sqrt(variance + epsilon) gamma + beta`.

    **Shapes** data and result (N, C, ...) with the channels at `axis`, gamma and beta (C,). **Args** `center`, `scale`: whether beta and
    gamma are learned. `in_channels`: C; 0 to learn it from the first batch. **Source** MXNet `nn.InstanceNorm`; Ulyanov et al., 2016.
    """

    def __init__(
        self, axis: int = 1, epsilon: float = 1e-5, center: bool = True, scale: bool = False, beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones", in_channels: int = 0, prefix: str | None = None, params: ParameterDict | None = None,
    ) -> None:  # fmt: skip
        super().__init__(in_channels, center, scale, beta_initializer, gamma_initializer, prefix, params)
        self._kwargs = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        self._axis = axis
        self._epsilon = epsilon

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any) -> Any:
        if self._axis == 1:
            return F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._epsilon)
        result = F.InstanceNorm(x.swapaxes(1, self._axis), gamma, beta, name="fwd", eps=self._epsilon)
        return result.swapaxes(1, self._axis)


class LayerNorm(_Norm):
    """The values along `axis` brought to mean 0 and variance 1: `(x - mean) / sqrt(variance + epsilon) gamma + beta`.

    **Shapes** data and result (..., C, ...) with C at `axis`, gamma and beta (C,). **Args** as InstanceNorm. **Source** MXNet
    `nn.LayerNorm`; Ba et al., 2016.
    """

    def __init__(
        self, axis: int = -1, epsilon: float = 1e-5, center: bool = True, scale: bool = True, beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones", in_channels: int = 0, prefix: str | None = None, params: ParameterDict | None = None,
    ) -> None:  # fmt: skip
        super().__init__(in_channels, center, scale, beta_initializer, gamma_initializer, prefix, params)
        self._kwargs = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        self._axis = axis
        self._epsilon = epsilon

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        return F.LayerNorm(data, gamma=gamma, beta=beta, axis=self._axis, eps=self._epsilon)


class GroupNorm(_Norm):
    """The channels in `num_groups` groups, each group of each example brought to mean 0 and variance 1.

    **Shapes** data and result (N, C, ...), gamma and beta (num_groups,), as in MXNet 1.x. **Args** as InstanceNorm. **Source** MXNet
    `nn.GroupNorm`; Wu and He, 2018.
    """

    def __init__(
        self, num_groups: int = 1, epsilon: float = 1e-5, center: bool = True, scale: bool = True, beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones", prefix: str | None = None, params: ParameterDict | None = None,
    ) -> None:  # fmt: skip
        super().__init__(num_groups, center, scale, beta_initializer, gamma_initializer, prefix, params)
        self._kwargs = {"eps": epsilon, "num_groups": num_groups, "center": center, "scale": scale}
        self._num_groups = num_groups
        self._epsilon = epsilon

    def hybrid_forward(self, F: Any, data: Any, gamma: Any, beta: Any) -> Any:
        return F.GroupNorm(data, gamma=gamma, beta=beta, num_groups=self._num_groups, eps=self._epsilon)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._arguments()})"


class BatchNorm(HybridBlock):
    """Each channel brought to mean 0 and variance 1 over a batch: `(x - mean) / sqrt(variance + epsilon) gamma + beta`.

    In training mean and variance are those of the batch, and backward moves the running ones towards them, by `1 - momentum` of the way;
    otherwise they are the running ones. **Shapes** data and result (N, C, ...) with the channels at `axis`, gamma, beta, running_mean and
    running_var (C,). **Args** `center`, `scale`: whether beta and gamma are learned. `use_global_stats`: the running ones in training, too.
    `in_channels`: C; 0 to learn it from the first batch. **Source** MXNet `nn.BatchNorm`; Ioffe and Szegedy, 2015.

    >>> from minimx.gluon import nn
    >>> nn.BatchNorm(in_channels=4)
    BatchNorm(axis=1, eps=1e-05, momentum=0.9, fix_gamma=False, use_global_stats=False, in_channels=4)
    """

    def __init__(
        self, axis: int = 1, momentum: float = 0.9, epsilon: float = 1e-5, center: bool = True, scale: bool = True,
        use_global_stats: bool = False, beta_initializer: Any = "zeros", gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros", running_variance_initializer: Any = "ones", in_channels: int = 0, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        self._kwargs: dict[str, Any] = {
            "axis": axis, "eps": epsilon, "momentum": momentum, "fix_gamma": not scale, "use_global_stats": use_global_stats
        }  # fmt: skip
        if in_channels != 0:
            self.in_channels = in_channels

        def vector(name: str, init: Any, is_learned: bool) -> Parameter:
            return self.params.get(
                name, grad_req="write" if is_learned else "null", shape=(in_channels,), init=init, allow_deferred_init=True,
                differentiable=is_learned,
            )  # fmt: skip

        self.gamma = vector("gamma", gamma_initializer, scale)
        self.beta = vector("beta", beta_initializer, center)
        self.running_mean = vector("running_mean", running_mean_initializer, False)
        self.running_var = vector("running_var", running_variance_initializer, False)

    def cast(self, dtype: Any) -> None:
        """Convert the parameters; they stay float32 for float16, which is too little for sums."""
        super().cast("float32" if as_dtype(dtype) == "float16" else dtype)

    def hybrid_forward(self, F: Any, x: Any, gamma: Any, beta: Any, running_mean: Any, running_var: Any) -> Any:
        return self._operator(F)(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)

    def _operator(self, F: Any) -> Any:
        return F.BatchNorm

    def __repr__(self) -> str:
        shape = self.gamma.shape
        arguments = ", ".join(f"{key}={value!r}" for key, value in self._kwargs.items())
        return f"{type(self).__name__}({arguments}, in_channels={(shape[0] if shape else 0) or None})"


class BatchNormReLU(BatchNorm):
    """BatchNorm and relu in one operator. **Args** as BatchNorm. **Source** MXNet `nn.BatchNormReLU`."""

    def _operator(self, F: Any) -> Any:
        return F.contrib.BatchNormWithReLU


class SyncBatchNorm(BatchNorm):
    """BatchNorm with one mean and variance for the parts of a batch that lie on `num_devices` devices.

    In training it is to be called on all devices before any result is read: each waits for the others. **Args** as BatchNorm, of which it
    lacks `axis` (1); `num_devices`: as many as there are GPUs unless it is given. **Source** MXNet `contrib.nn.SyncBatchNorm`; Zhang et
    al., 2018.
    """

    def __init__(
        self, in_channels: int = 0, num_devices: int | None = None, momentum: float = 0.9, epsilon: float = 1e-5, center: bool = True,
        scale: bool = True, use_global_stats: bool = False, beta_initializer: Any = "zeros", gamma_initializer: Any = "ones",
        running_mean_initializer: Any = "zeros", running_variance_initializer: Any = "ones", **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(
            1, momentum, epsilon, center, scale, use_global_stats, beta_initializer, gamma_initializer, running_mean_initializer,
            running_variance_initializer, in_channels, **kwargs,
        )  # fmt: skip
        if num_devices is None:
            num_devices = max(num_gpus(), 1)
            message = (
                f"SyncBatchNorm: num_devices is not given and taken to be {num_devices}; set it if you use fewer than all GPUs"
            )
            warnings.warn(message, UserWarning, stacklevel=3)  # the call, beyond `name_unknown`
        del self._kwargs["axis"]
        self._kwargs.update(ndev=num_devices, key=self.prefix)

    def _operator(self, F: Any) -> Any:
        return F.contrib.SyncBatchNorm
