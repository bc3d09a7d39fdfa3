"""`mx.init`: with which numbers parameters begin.

An initializer is called with a description of a parameter, its name above all, and the array to fill. One that the parameter itself
asks for decides alone. The default one fills weights; what it does to others follows from how the name ends: biases and betas become
0, gammas 1. Random ones draw with `mx.random`, so that `mx.random.seed` fixes them. Book: chapter 4.
"""

from __future__ import annotations

import json
import logging
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from . import random
from .base import ArgumentError, ShapeError
from .nd import NDArray, load
from .ops.rnn import RecurrentLayer
from .registry import Registry

__all__ = [
    "Bilinear", "Constant", "FusedRNN", "InitDesc", "Initializer", "LSTMBias", "Load", "MSRAPrelu", "Mixed", "Normal", "One", "Orthogonal",
    "Uniform", "Xavier", "Zero", "alias", "create", "register",
]  # fmt: skip


class InitDesc(str):
    """The name of a parameter, with its attributes: what an initializer is called with.

    **Args** `attrs`: of the variable, as `Symbol.attr_dict` gives them; `"__init__"` names an initializer of its own.
    `global_init`: the default initializer, for one that initializes parts. **Source** MXNet `initializer.InitDesc`.
    """

    attrs: Mapping[str, Any]
    global_init: Any

    def __new__(cls, name: str, attrs: Mapping[str, Any] | None = None, global_init: Any = None) -> InitDesc:
        made = super().__new__(cls, name)
        made.attrs = attrs or {}
        made.global_init = global_init
        return made


class Initializer:
    """The base of all initializers. A subclass overrides `_init_weight(name, array)`, and others where it differs there.

    **Args** the arguments of the subclass, by name: they are what `dumps` writes and `==` compares. **Source** MXNet
    `initializer.Initializer`.
    """

    #: How a name ends, and the method for it. The first that fits counts.
    RULES: ClassVar[tuple[tuple[str, str], ...]] = (
        ("weight", "_init_weight"), ("bias", "_init_bias"), ("gamma", "_init_gamma"), ("beta", "_init_beta"),
        ("min", "_init_zero"), ("max", "_init_one"), ("weight_quantize", "_init_quantized_weight"),
        ("bias_quantize", "_init_quantized_bias"),
    )  # fmt: skip
    #: The same where the name is a plain string, for scripts older than InitDesc.
    OLD_RULES: ClassVar[tuple[tuple[str, str], ...]] = (
        *RULES[:4], ("moving_mean", "_init_zero"), ("moving_var", "_init_one"), ("moving_inv_var", "_init_zero"),
        ("moving_avg", "_init_zero"), *RULES[4:6],
    )  # fmt: skip

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs
        self._verbose = False
        self._print_func: Callable[[NDArray], str] | None = None

    def set_verbosity(self, verbose: bool = False, print_func: Callable[[NDArray], str] | None = None) -> Initializer:
        """Log each array that is initialized, with what `print_func` says of it (its root mean square by default)."""
        self._verbose = verbose
        self._print_func = print_func or (lambda array: str((array.norm() / math.sqrt(array.size)).asscalar()))
        return self

    def _verbose_print(self, desc: str, how: Any, array: NDArray) -> None:
        if self._verbose and self._print_func is not None:
            logging.getLogger().info("Initialized %s as %s: %s", desc, how, self._print_func(array))

    def dumps(self) -> str:
        """Name and arguments as JSON, which `create` reads.

        >>> Normal(0.5).dumps()
        '["normal", {"sigma": 0.5}]'
        """
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, desc: str, arr: NDArray) -> None:
        """Fill `arr`, the parameter `desc`.

        **Raises** ArgumentError if neither its attributes nor its name say how.
        """
        if not isinstance(desc, InitDesc):
            self._legacy_init(desc, arr)
            return
        if desc.global_init is None:
            desc.global_init = self
        own = desc.attrs.get("__init__")
        if own:
            create(own)._init_weight(desc, arr)
            self._verbose_print(desc, own, arr)
            return
        for ending, method in self.RULES:
            if desc.endswith(ending):
                getattr(self, method)(desc, arr)
                self._verbose_print(desc, ending, arr)
                return
        self._init_default(desc, arr)

    def _legacy_init(self, name: str, arr: NDArray) -> None:
        """Fill `arr` by a plain name: what MXNet did before names had attributes."""
        warnings.warn(
            "calling an initializer with a plain name is deprecated; call it with mx.init.InitDesc(name) instead",
            DeprecationWarning,
            stacklevel=3,
        )
        if not isinstance(name, str) or not isinstance(arr, NDArray):
            raise ArgumentError(
                f"initializer: a name and an NDArray are wanted, got {type(name).__name__} and {type(arr).__name__}"
            )
        if name.startswith("upsampling"):
            self._init_bilinear(name, arr)
            return
        if name.startswith("stn_loc") and name.endswith(("weight", "bias")):  # of a spatial transformer: starts as the identity
            (self._init_zero if name.endswith("weight") else self._init_loc_bias)(name, arr)
            return
        for ending, method in self.OLD_RULES:
            if name.endswith(ending):
                getattr(self, method)(name, arr)
                return
        self._init_default(name, arr)

    def _init_bilinear(self, name: Any, arr: NDArray) -> None:
        """Weights with which a transposed convolution stretches an image, interpolating between its pixels."""
        if len(arr.shape) != 4:
            raise ShapeError(f"bilinear initializer: {name} has shape {arr.shape}; 4 dimensions are needed")
        rows, columns = arr.shape[2:]
        half = math.ceil(columns / 2)
        centre = (2 * half - 1 - half % 2) / (2.0 * half)
        weight = np.outer(1 - np.abs(np.arange(rows) / half - centre), 1 - np.abs(np.arange(columns) / half - centre))
        arr[:] = np.broadcast_to(weight, arr.shape)

    def _init_loc_bias(self, name: Any, arr: NDArray) -> None:
        if arr.shape != (6,):
            raise ShapeError(f"initializer: {name}, an affine map, has shape {arr.shape}; wants (6,)")
        arr[:] = np.array([1.0, 0, 0, 0, 1.0, 0])

    def _init_zero(self, name: Any, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_one(self, name: Any, arr: NDArray) -> None:
        arr[:] = 1.0

    def _init_bias(self, name: Any, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_gamma(self, name: Any, arr: NDArray) -> None:
        arr[:] = 1.0

    def _init_beta(self, name: Any, arr: NDArray) -> None:
        arr[:] = 0.0

    def _init_quantized_bias(self, name: Any, arr: NDArray) -> None:
        arr[:] = 0

    def _init_quantized_weight(self, name: Any, arr: NDArray) -> None:
        arr[:] = random.randint(-127, 127, shape=arr.shape, dtype="int32")

    def _init_weight(self, name: Any, arr: NDArray) -> None:
        raise NotImplementedError(f"{type(self).__name__} must override _init_weight")

    def _init_default(self, name: str, arr: NDArray) -> None:
        raise ArgumentError(
            f"Unknown initialization pattern for {name}. By default only names that end in weight, bias, gamma (1) or beta (0) are "
            "initialized; give the variable or parameter an initializer of its own, init=mx.init.Normal()"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Initializer):
            return NotImplemented
        return type(self) is type(other) and self._kwargs == other._kwargs

    __hash__ = None  # type: ignore[assignment]  # equal ones may change: they hold lists

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._kwargs.items())})"


_registry: Registry[Initializer] = Registry(Initializer, "initializer")
register = _registry.register
alias = _registry.alias
create = _registry.create


# ---- chosen by name or taken from a file; these are no Initializers: they hand on to others


class Load:
    """Takes parameters from a file or a dict, and others from `default_init`.

    **Args** `param`: a file of `nd.save`, or name -> NDArray; "arg:" and "aux:" before a name do not count. `verbose`: log where each
    came from. **Raises** AssertionError when it is called for an array of another shape, or for one that is not there.
    **Source** MXNet `initializer.Load`.
    """

    def __init__(self, param: str | Mapping[str, NDArray], default_init: Any = None, verbose: bool = False) -> None:
        loaded = load(param) if isinstance(param, str) else param
        if not isinstance(loaded, Mapping):
            raise ArgumentError("initializer.Load: the file holds arrays without names")
        self.param = {name[4:] if name.startswith(("arg:", "aux:")) else name: array for name, array in loaded.items()}
        self.default_init = default_init
        self.verbose = verbose

    def __call__(self, name: str, arr: NDArray) -> None:
        found = self.param.get(name)
        if found is not None:
            assert found.shape == arr.shape, (
                f"Parameter {name} cannot be initialized from the loaded one: it has shape {arr.shape}, that one {found.shape}"
            )
            arr[:] = found
        else:
            assert self.default_init is not None, (
                f"Parameter {name} is not among the loaded ones, and no default initializer is given"
            )
            self.default_init(name, arr)
        if self.verbose:
            logging.getLogger().info("Initialized %s by %s", name, "loading" if found is not None else "default")


class Mixed:
    """The first initializer whose pattern, a regular expression, matches the beginning of the name.

    **Raises** ArgumentError if the lists differ in length, and when it is called with a name that no pattern matches.
    **Source** MXNet `initializer.Mixed`.
    """

    def __init__(self, patterns: Sequence[str], initializers: Sequence[Any]) -> None:
        if len(patterns) != len(initializers):
            raise ArgumentError(
                f"initializer.Mixed: {len(patterns)} patterns have {len(initializers)} initializers; one each is wanted"
            )
        self.map = [(re.compile(pattern), initializer) for pattern, initializer in zip(patterns, initializers)]

    def __call__(self, name: str, arr: NDArray) -> None:
        for pattern, initializer in self.map:
            if pattern.match(name):
                initializer(name, arr)
                return
        raise ArgumentError(f"initializer.Mixed: no pattern matches the parameter {name}; add '.*' at the end, with a default")


# ---- the initializers


@register
@alias("zeros")
class Zero(Initializer):
    """All weights 0."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: Any, arr: NDArray) -> None:
        arr[:] = 0


@register
@alias("ones")
class One(Initializer):
    """All weights 1."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: Any, arr: NDArray) -> None:
        arr[:] = 1


@register
class Constant(Initializer):
    """All weights `value`: a number, or an array (of any kind) that broadcasts to their shape.

    >>> Constant(1).dumps()
    '["constant", {"value": 1}]'
    """

    def __init__(self, value: Any) -> None:
        self.value = value
        super().__init__(value=value if np.isscalar(value) else np.asarray(value).tolist())

    def _init_weight(self, name: Any, arr: NDArray) -> None:
        arr[:] = self.value


@register
class Uniform(Initializer):
    """Each weight from [-scale, scale), each number as likely as any other."""

    def __init__(self, scale: float = 0.07) -> None:
        super().__init__(scale=scale)
        self.scale = scale

    def _init_weight(self, name: Any, arr: NDArray) -> None:
        random.uniform(-self.scale, self.scale, arr.shape, out=arr)


@register
class Normal(Initializer):
    """Each weight normal with mean 0 and standard deviation `sigma`."""

    def __init__(self, sigma: float = 0.01) -> None:
        super().__init__(sigma=sigma)
        self.sigma = sigma

    def _init_weight(self, name: Any, arr: NDArray) -> None:
        random.normal(0, self.sigma, arr.shape, out=arr)


@register
class Orthogonal(Initializer):
    """A matrix whose rows, or columns if there are fewer, are at right angles and have length `scale`.

    **Args** `rand_type`: "uniform" or "normal", from what random matrix it is made, by singular values. **Source** MXNet
    `initializer.Orthogonal`; Saxe et al., 2013.
    """

    def __init__(self, scale: float = 1.414, rand_type: str = "uniform") -> None:
        super().__init__(scale=scale, rand_type=rand_type)
        if rand_type not in ("uniform", "normal"):
            raise ArgumentError(f"initializer.Orthogonal: rand_type={rand_type!r}; choose uniform or normal")
        self.scale = scale
        self.rand_type = rand_type

    def _init_weight(self, name: Any, arr: NDArray) -> None:
        shape = (arr.shape[0], math.prod(arr.shape[1:]))
        drawn = random.uniform(-1.0, 1.0, shape) if self.rand_type == "uniform" else random.normal(0.0, 1.0, shape)
        left, _, right = np.linalg.svd(drawn.asnumpy(), full_matrices=False)
        arr[:] = self.scale * (left if left.shape == shape else right).reshape(arr.shape)


@register
class Xavier(Initializer):
    """Random weights whose size keeps that of the values: `c = sqrt(magnitude / n)`, n the number of inputs or outputs of a neuron.

    **Args** `rnd_type`: "uniform" draws from [-c, c), "gaussian" normal with standard deviation c. `factor_type`: n is the number
    of inputs ("in"), of outputs ("out"), or their mean ("avg"). `magnitude`: 3 makes uniform weights with variance 1 / n.
    **Shapes** weight (outputs, inputs, ...); further axes, those of a convolution's window, count for both. **Raises** ShapeError for
    fewer than 2 axes. **Source** MXNet `initializer.Xavier`; Glorot and Bengio, 2010.
    """

    def __init__(self, rnd_type: str = "uniform", factor_type: str = "avg", magnitude: float = 3) -> None:
        super().__init__(rnd_type=rnd_type, factor_type=factor_type, magnitude=magnitude)
        self.rnd_type = rnd_type
        self.factor_type = factor_type
        self.magnitude = float(magnitude)

    def _init_weight(self, name: Any, arr: NDArray) -> None:
        if len(arr.shape) < 2:
            raise ShapeError(
                f"Xavier initializer: {name} has shape {arr.shape}; at least 2 dimensions are needed, outputs and inputs. "
                "Give a vector an initializer of its own, such as init='zeros'"
            )
        window = math.prod(arr.shape[2:])
        inputs, outputs = arr.shape[1] * window, arr.shape[0] * window
        counts = {"avg": (inputs + outputs) / 2, "in": inputs, "out": outputs}
        if self.factor_type not in counts:
            raise ArgumentError(f"Xavier initializer: factor_type={self.factor_type!r}; choose avg, in or out")
        scale = math.sqrt(self.magnitude / counts[self.factor_type])
        if self.rnd_type == "uniform":
            random.uniform(-scale, scale, arr.shape, out=arr)
        elif self.rnd_type == "gaussian":
            random.normal(0, scale, arr.shape, out=arr)
        else:
            raise ArgumentError(f"Xavier initializer: rnd_type={self.rnd_type!r}; choose uniform or gaussian")


@register
class MSRAPrelu(Xavier):
    """Xavier's gaussian weights for rectifiers whose slope on the left is `slope`: magnitude `2 / (1 + slope^2)`.

    **Source** MXNet `initializer.MSRAPrelu`; He et al., 2015.
    """

    def __init__(self, factor_type: str = "avg", slope: float = 0.25) -> None:
        super().__init__("gaussian", factor_type, 2.0 / (1 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


@register
class Bilinear(Initializer):
    """Weights (channels, 1, height, width) with which a transposed convolution stretches images by interpolation."""

    def __init__(self) -> None:
        super().__init__()

    def _init_weight(self, name: Any, arr: NDArray) -> None:
        self._init_bilinear(name, arr)


@register
class LSTMBias(Initializer):
    """0, but `forget_bias` for the forget gate, the second quarter: at first an LSTM remembers. **Source** MXNet
    `initializer.LSTMBias`; Jozefowicz et al., 2015."""

    def __init__(self, forget_bias: float = 1.0) -> None:
        super().__init__(forget_bias=forget_bias)
        self.forget_bias = forget_bias

    def _init_weight(self, name: Any, arr: NDArray) -> None:
        hidden = arr.shape[0] // 4
        arr[:] = 0.0
        arr[hidden : 2 * hidden] = self.forget_bias


@register
class FusedRNN(Initializer):
    """The vector of all parameters of the operator RNN, gate by gate: weights as `init` makes them, biases 0.

    **Args** `init`: an initializer, its name or JSON; None: that of all parameters. `num_hidden`, `num_layers`, `mode`, `bidirectional`:
    as the operator has them. `forget_bias`: both biases of an LSTM's forget gates. **Source** MXNet `initializer.FusedRNN`.
    """

    def __init__(
        self, init: Any, num_hidden: int, num_layers: int, mode: str, bidirectional: bool = False, forget_bias: float = 1.0
    ) -> None:
        self._init = None if init is None else create(init)
        self._operator = RecurrentLayer(num_hidden, num_layers, mode, bidirectional)
        self._operator.check()
        super().__init__(
            init=None if self._init is None else self._init.dumps(), num_hidden=num_hidden, num_layers=num_layers, mode=mode,
            bidirectional=bidirectional, forget_bias=forget_bias,
        )  # fmt: skip
        self._forget_bias = forget_bias

    def _init_weight(self, name: Any, arr: NDArray) -> None:
        op = self._operator
        gates = {"lstm": ("_i", "_f", "_c", "_o"), "gru": ("_r", "_z", "_o")}.get(op.mode, ("",))
        inputs = op.inputs_for(arr.size)
        if len(arr.shape) != 1 or op.parameter_count(inputs) != arr.size or inputs < 1:
            raise ShapeError(f"FusedRNN initializer: {name} has shape {arr.shape}, which is no vector of parameters of {op}")
        around = getattr(name, "global_init", None)
        init = self._init or around
        if init is None:
            raise ArgumentError(f"FusedRNN initializer: {name} has no initializer for its weights; give one as init")
        for layer, directions in enumerate(op.unpacked(arr, inputs)):
            for direction, weights in zip("lr", directions):
                for kind, array in weights._asdict().items():
                    if array is None:
                        continue
                    what, _, suffix = kind.partition("_")
                    for number, gate in enumerate(gates):
                        part = array[number * op.state_size : (number + 1) * op.state_size]
                        if op.mode == "lstm" and gate == "_f" and suffix:
                            part[:] = self._forget_bias
                        else:
                            desc = InitDesc(f"{direction}{layer}_{what}{gate}_{suffix or 'weight'}", global_init=around)
                            init(desc, part)
