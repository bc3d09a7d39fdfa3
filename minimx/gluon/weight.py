"""One parameter: numbers that training changes, with a copy and a gradient on each device.

A Parameter may be made before its shape is known; then `initialize` only notes what is to be done, and the first batch that goes
through the network completes it (*deferred initialization*). For graphs it gives a variable, `var()`. Blocks keep their parameters in
the dict of parameter.py, which also exports what is here. Book: chapter 4.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import autograd, initializer, nd, sym
from ..base import ArgumentError, DeviceError, MXNetError, ShapeError, as_dtype
from ..device import Context, cpu, current_context
from ..fields import converted
from ..initializer import InitDesc, Initializer
from ..nd import NDArray
from ..op import Shape
from ..sym import Symbol
from .editions import editions

Devices = Context | Sequence[Context] | None  # one or several; None is the current one, or those that there are
STORAGE_TYPES = ("default", "row_sparse", "csr")


class DeferredInitializationError(MXNetError):
    """The value of a parameter was asked for whose shape is not known yet."""


class ParameterError(MXNetError, AssertionError, ValueError):
    """A parameter, or a file of parameters, that does not fit. (MXNet asserts: hence the second base.)"""


def require_length(layer: Any, argument: str, value: Any, least: int = 1) -> None:
    """Raise ArgumentError unless `value`, an argument of `layer`, is an integer, and at least `least`."""
    if converted(type(layer).__name__, argument, "int", value) < least:
        raise ArgumentError(f"{type(layer).__name__}: {argument} is {value}, wants 1 or more")


def is_known(shape: Shape | None) -> bool:
    """Whether all of a shape is known: 0 stands for an unknown length."""
    return bool(shape) and all(length > 0 for length in shape or ())


def as_contexts(ctx: Devices) -> list[Context]:
    """The devices that `ctx` names; None is the current one."""
    found = [current_context()] if ctx is None else [ctx] if isinstance(ctx, Context) else list(ctx)
    if not found or not all(isinstance(each, Context) for each in found):
        raise ArgumentError(f"ctx must be a Context such as mx.cpu(), or a list of them, got {ctx!r}")
    return found


def fill(name: str, init: Any, default: Any, array: NDArray) -> None:
    """Fill the parameter `name` by `init`: an initializer, its name or JSON, or a function of name and array (Mixed, Load)."""
    if not isinstance(init, (str, Initializer)):
        init(InitDesc(name), array)
        return
    first = initializer.create(default if isinstance(default, (str, Initializer)) else init)
    first(InitDesc(name, {"__init__": init}), array)


class Parameter:
    """Numbers that training changes, on one device or several.

    **Args** `grad_req`: "write" (each backward overwrites the gradient), "add" (it adds; `zero_grad` is yours to call) or "null" (no
    gradient). `shape`: an int or a tuple, 0 for an unknown length, None for an unknown shape. `lr_mult`, `wd_mult`: factors for the
    optimizer. `init`: an initializer, or its name; None for the one of the network. `allow_deferred_init`: `initialize` may wait for
    the first batch. `differentiable`: False makes `grad_req` "null" for good. `grad_stype`: "row_sparse" is accepted; gradients are
    dense. **Source** MXNet `gluon.Parameter`.

    >>> from minimx import gluon
    >>> weight = gluon.Parameter("weight", shape=(2, 3))
    >>> weight.initialize(mx.init.One())
    >>> weight.data().sum().item()
    6.0
    """

    def __init__(
        self, name: str, grad_req: str = "write", shape: int | Sequence[int] | None = None, dtype: Any = np.float32,
        lr_mult: float = 1.0, wd_mult: float = 1.0, init: Any = None, allow_deferred_init: bool = False,
        differentiable: bool = True, stype: str = "default", grad_stype: str = "default",
    ) -> None:  # fmt: skip
        for key, given in (("stype", stype), ("grad_stype", grad_stype)):
            if given not in STORAGE_TYPES:
                raise ParameterError(f"Parameter {name!r}: {key}={given!r}; must be one of {', '.join(STORAGE_TYPES)}")
        if stype != "default":
            raise ArgumentError(f"Parameter {name!r}: stype={stype!r}; only dense arrays exist here, use stype='default'")
        as_dtype(dtype)
        self.name = name
        self.lr_mult = lr_mult
        self.wd_mult = wd_mult
        self.init = init
        self._shape = as_shape(shape)
        self._dtype = dtype
        self._differentiable = differentiable
        self._allow_deferred_init = allow_deferred_init
        self._var: Symbol | None = None
        self._trainer: Any = None  # the Trainer that updates it, if there is one
        self._data: list[NDArray] | None = None  # one for each device
        self._grad: list[NDArray] | None = None
        self._ctx_list: list[Context] = []
        self._ctx_map: dict[tuple[bool, int], int] = {}
        # How to begin when the shape is known: initializer, devices, default initializer, value. Empty: nothing waits
        self._deferred_init: tuple[Any, ...] = ()
        self._grad_req = ""
        self.grad_req = grad_req

    def __repr__(self) -> str:
        return f"{type(self).__name__} {self.name} (shape={self.shape}, dtype={self.dtype})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_grad": None, "_var": None, "_trainer": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy (deepcopy, pickle) has arrays of its own, with gradients of its own, all 0."""
        self.__dict__.update(state)
        if self._data is not None:
            self._init_grad()

    # ---- what it is

    @property
    def grad_req(self) -> str:
        """What happens to the gradient: "write", "add" or "null". Setting it drops or makes the arrays for gradients."""
        return self._grad_req

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req not in autograd.GRAD_REQS:
            raise ParameterError(f"Parameter {self.name!r}: grad_req must be one of 'write', 'add', or 'null', but got {req!r}")
        req = req if self._differentiable else "null"
        if req == self._grad_req:
            return
        self._grad_req = req
        if self._data is not None:
            if req == "null":
                self._hold([array.detach() for array in self._data])
            self._init_grad()

    @property
    def dtype(self) -> Any:
        """The dtype, as it was given. Setting it converts the values."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        self.cast(dtype)

    @property
    def shape(self) -> Shape | None:
        """The shape; 0 stands for an unknown length. Setting it can only add what was not known."""
        return self._shape

    @shape.setter
    def shape(self, new_shape: int | Sequence[int]) -> None:
        new, old = as_shape(new_shape), self._shape
        if old is not None and (
            new is None or len(old) != len(new) or any(known > 0 and known != other for known, other in zip(old, new))
        ):
            raise ParameterError(f"Parameter {self.name!r}: its shape is {old}, which is incompatible with {new}")
        self._shape = new

    def var(self) -> Symbol:
        """The variable that stands for this parameter in graphs; always the same one."""
        if self._var is None:
            init = self.init if isinstance(self.init, (str, Initializer)) else None
            self._var = sym.var(self.name, None, self.shape, self.lr_mult, self.wd_mult, self.dtype, init, stype="default")
        return self._var

    def _rename(self, name: str) -> None:
        """Take another name, in graphs that are made from now on."""
        if name != self.name:
            self.name, self._var = name, None

    def cast(self, dtype: Any) -> None:
        """Convert values and gradients to `dtype`; before there are any, note that it is to be their dtype."""
        if as_dtype(dtype) != as_dtype(self._dtype):
            self._var = None  # it says the dtype
        self._dtype = dtype
        if self._data is None:
            return
        with autograd.pause():
            self._hold([array.astype(dtype) for array in self._data])
            if self._grad is not None:
                self._grad = [array.astype(dtype) for array in self._grad]
                autograd.mark_variables(self._data, self._grad, self._grad_req)

    # ---- beginning

    def initialize(self, init: Any = None, ctx: Devices = None, default_init: Any = None, force_reinit: bool = False) -> None:
        """Make the values on the devices `ctx` (the current one by default), now or, if the shape is not known, with the first batch.

        **Args** `init`: the initializer to use; None: the parameter's own, and without one `default_init` (Uniform() by default).
        `force_reinit`: begin anew if there are values already, which otherwise stay, with a warning. **Raises** ValueError if the
        shape is not known and must be.
        """
        if self._data is not None and not force_reinit:
            warnings.warn(
                f"Parameter '{self.name}' is already initialized, ignoring. Set force_reinit=True to re-initialize.", stacklevel=2
            )
            return
        contexts = as_contexts(ctx)
        default = initializer.Uniform() if default_init is None else default_init
        chosen = init if init is not None else self.init if self.init is not None else default
        if not is_known(self._shape) and not self._allow_deferred_init:
            raise ShapeError(
                f"Cannot initialize Parameter '{self.name}' because it has invalid shape: {self.shape}. Give all lengths."
            )
        self._hold(None)
        self._grad = None
        self._deferred_init = (chosen, contexts, default, None)
        if is_known(self._shape):
            self._finish_deferred_init()

    def _finish_deferred_init(self) -> None:
        """Do what `initialize` left to be done, now that the shape is known."""
        if not self._deferred_init:
            return
        init, contexts, default, data = self._deferred_init
        shape = self._shape
        if shape is None or not is_known(shape):
            raise ParameterError(
                f"Cannot initialize Parameter '{self.name}' because it has invalid shape: {shape}. Please specify in_units, "
                "in_channels, etc for `Block`s."
            )
        with autograd.pause():
            if data is None:
                data = nd.zeros(shape, cpu(), self._dtype)
                fill(self.name, init, default, data)
            self._init_impl(data.astype(self._dtype, copy=False), contexts)
        self._deferred_init = ()
        if self._trainer is not None:
            with autograd.pause():
                self._trainer._initialized(self)

    def _init_impl(self, data: NDArray, contexts: Sequence[Context]) -> None:
        """Make copies of `data` on all devices, and gradients."""
        self._ctx_list = list(contexts)
        self._ctx_map = {place_of(context): i for i, context in enumerate(contexts)}
        self._hold([data.copyto(context) for context in contexts])
        self._init_grad()

    def _hold(self, arrays: list[NDArray] | None) -> None:
        """Have other arrays from now on."""
        self._data = arrays
        if self._trainer is not None:
            self._trainer._value_replaced(self)
        editions.next()

    def _init_grad(self) -> None:
        """Make fresh gradients, unless none are wanted."""
        if self._grad_req == "null" or self._data is None:
            self._grad = None
            return
        self._grad = [nd.zeros(array.shape, array.context, array.dtype) for array in self._data]
        autograd.mark_variables(self._data, self._grad, self._grad_req)

    def _load_init(self, data: NDArray, ctx: Devices, cast_dtype: bool = False, dtype_source: str = "current") -> None:
        """Take the value `data` from a file; begin with it, on `ctx`, if there was none yet."""
        self._check_loaded(data, cast_dtype, dtype_source)
        contexts = None if ctx is None else as_contexts(ctx)
        if self._data is not None or self._deferred_init:
            current = self.list_ctx()
            if contexts is not None and set(contexts) != set(current):
                raise ParameterError(
                    f"Failed to load Parameter '{self.name}' on {contexts} because it was initialized on {current}."
                )
            contexts = current
        if cast_dtype and dtype_source == "saved":
            self.cast(data.dtype)
        self.shape = data.shape
        with autograd.pause():
            if self._data is None:
                self._init_impl(data.astype(self._dtype, copy=False), contexts or [cpu()])
            else:
                self.set_data(data.astype(self._dtype, copy=False))
        self._deferred_init = ()

    def _check_loaded(self, data: NDArray, cast_dtype: bool, dtype_source: str) -> None:
        """Raise ParameterError unless the loaded `data` fits: it has the shape, and the dtype or a floating one of less precision."""
        if dtype_source not in ("current", "saved"):
            raise ParameterError(f"dtype_source={dtype_source!r}; choose 'current' or 'saved'")
        known = self._shape
        if known is not None and (len(known) != len(data.shape) or any(a > 0 and a != b for a, b in zip(known, data.shape))):
            raise ParameterError(
                f"Failed loading Parameter '{self.name}' from saved params: shape incompatible expected {known} vs saved {data.shape}"
            )
        wanted, saved = as_dtype(self._dtype), as_dtype(data.dtype)
        if not cast_dtype and wanted != saved and not (saved.kind == wanted.kind == "f" and saved.itemsize < wanted.itemsize):
            raise ParameterError(
                f"Failed loading Parameter '{self.name}' from saved params: dtype incompatible expected {wanted.name} vs "
                f"saved {saved.name}. Set cast_dtype=True to cast the dtype of saved params."
            )

    def reset_ctx(self, ctx: Devices) -> None:
        """Move to other devices. **Raises** ValueError before `initialize`."""
        contexts = as_contexts(ctx)
        if self._data is not None:
            with autograd.pause():
                self._init_impl(self._reduce(), contexts)
        elif self._deferred_init:
            init, _, default, data = self._deferred_init
            self._deferred_init = (init, contexts, default, data)
        else:
            raise ParameterError(f"Cannot reset context for Parameter '{self.name}' because it has not been initialized.")

    # ---- values and gradients

    def _check_and_get(self, arrays: list[NDArray] | None, ctx: Context | None) -> NDArray:
        """The one of `arrays` on `ctx`; None: the only one, or that on the current device."""
        if arrays is None:
            raise self._not_initialized()
        if ctx is None and len(arrays) == 1:
            return arrays[0]
        place = current_context() if ctx is None else ctx
        position = self._ctx_map.get(place_of(place))
        if position is None:
            remedy = (
                "Without an argument the current device is meant; name one of these"
                if ctx is None
                else "Copy the data to one of these with as_in_context(), or name the device in initialize(ctx=...)"
            )
            raise DeviceError(
                f"Parameter '{self.name}' was not initialized on context {place}. It was only initialized on {self._ctx_list}. {remedy}"
            )
        return arrays[position]

    def _not_initialized(self) -> MXNetError:
        if self._deferred_init:
            return DeferredInitializationError(
                f"Parameter '{self.name}' has not been initialized yet because initialization was deferred. Actual initialization "
                "happens during the first forward pass. Please pass one batch of data through the network before accessing Parameters. "
                "You can also avoid deferred initialization by specifying in_units, num_features, etc., for network layers."
            )
        return MXNetError(
            f"Parameter '{self.name}' has not been initialized. Call initialize() on the network (or on collect_params(); params alone "
            "has not those of nested blocks) before you use it or make a Trainer."
        )

    def data(self, ctx: Context | None = None) -> NDArray:
        """The value on the device `ctx`; without it the only one, or that on the current device.

        **Raises** DeferredInitializationError before the first batch, if the shape was not known; RuntimeError before `initialize`, and
        for a device that it did not name.
        """
        return self._check_and_get(self._data, ctx)

    def list_data(self) -> list[NDArray]:
        """The values on all devices. **Raises** as `data`."""
        if self._data is None:
            raise self._not_initialized()
        return self._data

    def grad(self, ctx: Context | None = None) -> NDArray:
        """The gradient on the device `ctx`. **Raises** as `data`, and RuntimeError if `grad_req` is "null"."""
        self._require_grad()
        return self._check_and_get(self._grad, ctx)

    def list_grad(self) -> list[NDArray]:
        """The gradients on all devices. **Raises** as `grad`."""
        self._require_grad()
        if self._grad is None:
            raise self._not_initialized()
        return self._grad

    def _require_grad(self) -> None:
        if self._data is not None and self._grad is None:
            raise MXNetError(f"Cannot get gradient array for Parameter '{self.name}' because grad_req='null'")

    def list_ctx(self) -> list[Context]:
        """The devices. **Raises** RuntimeError before `initialize`."""
        if self._data is None:
            if not self._deferred_init:
                raise self._not_initialized()
            return list(self._deferred_init[1])
        return self._ctx_list

    def set_data(self, data: Any) -> None:
        """Overwrite the value on all devices; before the first batch, note the value to begin with.

        **Raises** AssertionError if the shape differs, and before `initialize`.
        """
        array = data if isinstance(data, NDArray) else nd.array(data, cpu(), self._dtype)
        self.shape = array.shape
        if self._data is None:
            if not self._deferred_init:
                raise ParameterError(f"Parameter '{self.name}' has not been initialized; call initialize() before set_data()")
            self._deferred_init = (*self._deferred_init[:3], array.astype(self._dtype, copy=False))
            return
        if self._trainer is not None:
            self._trainer._value_replaced(self)
        for target in self._data:
            target[:] = array

    def _set_trainer(self, trainer: Any) -> None:
        """Note the Trainer that updates this parameter; None for none."""
        self._trainer = trainer

    def zero_grad(self) -> None:
        """Set the gradients to 0, if there are any."""
        with autograd.pause():
            for gradient in self._grad or ():
                gradient[:] = 0

    def _reduce(self) -> NDArray:
        """The mean over all devices, on the CPU: what is saved."""
        arrays = [array.copyto(cpu()) for array in self.list_data()]
        return arrays[0] if len(arrays) == 1 else nd.add_n(*arrays) / len(arrays)


def as_shape(shape: int | Sequence[int] | None) -> Shape | None:
    """A shape as a tuple. Raises ArgumentError for negative lengths."""
    if shape is None:
        return None
    found = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(int(length) for length in shape)
    if any(length < -1 for length in found):
        raise ArgumentError(f"shape {found} has negative lengths; 0 stands for an unknown one")
    return tuple(max(length, 0) for length in found)  # MXNet's other mark for an unknown length is -1


def place_of(context: Context) -> tuple[bool, int]:
    """GPUs are one kind of place, host memory of every kind the other."""
    return context.device_typeid == 2, context.device_id


class Constant(Parameter):
    """A parameter that training never changes: it has no gradient. `set_data` does change it.

    **Args** `value`: an NDArray, or what `nd.array` takes. **Source** MXNet `gluon.Constant`.
    """

    def __init__(self, name: str, value: Any) -> None:
        self.value = value if isinstance(value, NDArray) else nd.array(value)
        super().__init__(name, "null", self.value.shape, self.value.dtype, init=self._begin)

    def _begin(self, name: str, array: NDArray) -> None:
        """The initializer: copy the value."""
        self.value.copyto(array)

    @property
    def grad_req(self) -> str:
        """Always "null"; setting it to something else has no effect, and warns."""
        return "null"

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req != "null":
            warnings.warn(f"Constant parameter '{self.name}' has no gradient; grad_req={req!r} is ignored", stacklevel=2)
        self._grad_req = "null"
