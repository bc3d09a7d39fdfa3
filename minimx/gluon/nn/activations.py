"""Activation functions as layers. PReLU learns its slope; the others have no parameters."""

from __future__ import annotations

from typing import Any

from ... import initializer
from ...base import ArgumentError, shown
from ...ops.activation import ACTIVATIONS
from ..block import Block, HybridBlock

__all__ = ["ELU", "GELU", "SELU", "Activation", "LeakyReLU", "PReLU", "SiLU", "Swish"]


def require_activation(layer: Block, argument: str, value: Any) -> None:
    """Raise ArgumentError unless `value`, an argument of `layer`, is the name of an activation function."""
    if not isinstance(value, str) or value not in ACTIVATIONS:
        hint = "; add such a layer behind this one" if isinstance(value, Block) else ""
        raise ArgumentError(
            f"{type(layer).__name__}: {argument} is {shown(value)}; choose one of {', '.join(map(repr, ACTIVATIONS))}{hint}"
        )


def activation_of(layer: Block, activation: str | None) -> Activation | None:
    """The activation at the end of `layer`, inside whose scope this is called. **Raises** ArgumentError for an unknown name."""
    if activation is None:
        return None
    require_activation(layer, "activation", activation)
    return Activation(activation, prefix=f"{activation}_")


class Activation(HybridBlock):
    """The function `activation`: "relu", "sigmoid", "tanh", "softrelu" or "softsign". The layer is named after it.

    **Shapes** data and result (...). **Raises** ValueError for another name. **Source** MXNet `nn.Activation`.
    """

    def __init__(self, activation: str, **kwargs: Any) -> None:
        require_activation(self, "activation", activation)
        self._act_type = activation
        super().__init__(**kwargs)

    def _alias(self) -> str:
        return self._act_type

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.Activation(x, act_type=self._act_type, name="fwd")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._act_type})"


class LeakyReLU(HybridBlock):
    """`x` where it is positive, else `alpha x`. **Raises** AssertionError for a negative alpha. **Source** MXNet `nn.LeakyReLU`."""

    def __init__(self, alpha: float, **kwargs: Any) -> None:
        assert alpha >= 0, f"LeakyReLU: alpha={alpha}, the slope on the left of 0, must not be negative"
        super().__init__(**kwargs)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.LeakyReLU(x, act_type="leaky", slope=self._alpha, name="fwd")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._alpha})"


class PReLU(HybridBlock):
    """`x` where it is positive, else `alpha x` with a slope alpha that is learned.

    **Args** `in_channels`: 1 for one slope, or the length of axis 1 for one each. **Source** MXNet `nn.PReLU`; He et al., 2015.
    """

    def __init__(self, alpha_initializer: Any = None, in_channels: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        init = initializer.Constant(0.25) if alpha_initializer is None else alpha_initializer
        with self.name_scope():
            self.alpha = self.params.get("alpha", shape=(in_channels,), init=init)

    def hybrid_forward(self, F: Any, x: Any, alpha: Any) -> Any:
        return F.LeakyReLU(x, gamma=alpha, act_type="prelu", name="fwd")


class ELU(HybridBlock):
    """`x` where it is positive, else `alpha (e^x - 1)`. **Source** MXNet `nn.ELU`; Clevert et al., 2016."""

    def __init__(self, alpha: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._alpha = alpha

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.LeakyReLU(x, act_type="elu", slope=self._alpha)


class SELU(HybridBlock):
    """ELU with constants that keep mean 0 and variance 1 from layer to layer. **Source** MXNet `nn.SELU`; Klambauer et al., 2017."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.LeakyReLU(x, act_type="selu", name="fwd")


class GELU(HybridBlock):
    """`x P(X < x)`, X normal. **Source** MXNet `nn.GELU`; Hendrycks and Gimpel, 2016."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.LeakyReLU(x, act_type="gelu", name="fwd")


class Swish(HybridBlock):
    """`x sigmoid(beta x)`. **Source** MXNet `nn.Swish`; Ramachandran et al., 2017."""

    def __init__(self, beta: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if isinstance(beta, bool) or not isinstance(beta, (int, float)):
            raise ArgumentError(f"Swish: beta must be a number, got {type(beta).__name__}")
        self._beta = beta

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return x * F.sigmoid(self._beta * x, name="fwd")


class SiLU(HybridBlock):
    """`x sigmoid(x)`: Swish without its factor. **Source** MXNet 2 `nn.SiLU`."""

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return x * F.sigmoid(x, name="fwd")
