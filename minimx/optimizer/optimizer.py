"""What all optimizers have in common: learning rate and weight decay of each parameter, counting of updates, mixed precision.

An optimizer changes a weight in place: `update(index, weight, grad, state)`. It does not own the states (momentum and the like): it makes
them, `create_state(index, weight)`, and the caller, usually an Updater (updater.py), keeps them. A parameter is known by its *index*, any
number or name; `param_dict[index]` is the Parameter, or `idx2name[index]` its name, by which multipliers are found. The steps themselves
are operators (ops/optim.py). Book: chapter 4.
"""

from __future__ import annotations

import itertools
import numbers
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from .. import nd
from ..base import ArgumentError, MXNetError, env_int, shown
from ..kernels import steps as steps  # it gives the operators of ops/optim.py their loops
from ..lr_scheduler import LRScheduler
from ..nd import NDArray
from ..op import apply
from ..ops.optim import Update
from ..ops.optim_multi import Steps
from ..registry import Registry

__all__ = ["LearningRateError", "Optimizer", "create", "register"]


class LearningRateError(MXNetError, UserWarning):
    """A learning rate was set that a scheduler would overwrite. (MXNet raises a UserWarning: hence the second base.)"""


class Optimizer:
    """The base of all optimizers. A subclass overrides `create_state` and `update`.

    **Args** `rescale_grad`: factor of gradients, before anything else; `param_idx2name`: names of parameters, by index; `wd`: weight
    decay, the strength of an L2 penalty; `clip_gradient`: bound of the rescaled gradient's elements, None for none; `learning_rate`: 0.01
    by default; `lr_scheduler`: gives the learning rate instead; `sym`: a Symbol whose attributes `__lr_mult__` and `__wd_mult__` count;
    `begin_num_update`: how many updates were made before; `multi_precision`: keep a float32 copy of float16 weights, and update that;
    `param_dict`: Parameters by index. **Source** MXNet `optimizer.Optimizer`.
    """

    #: The classes by their names, in lower case.
    opt_registry: ClassVar[dict[str, type[Optimizer]]]
    #: Whether a float32 copy comes after the other states, or before them.
    master_last: ClassVar[bool] = False

    def __init__(
        self, rescale_grad: float = 1.0, param_idx2name: Mapping[Any, str] | None = None, wd: float = 0.0,
        clip_gradient: float | None = None, learning_rate: float | None = None, lr_scheduler: Any = None, sym: Any = None,
        begin_num_update: int = 0, multi_precision: bool = False, param_dict: Mapping[Any, Any] | None = None,
    ) -> None:  # fmt: skip
        if not (param_idx2name is None or isinstance(param_idx2name, Mapping)):
            raise OptimizerArgumentError(f"param_idx2name must be a dict of indices and names, got {param_idx2name!r}")
        self.rescale_grad = rescale_grad
        self.lr_scheduler = lr_scheduler
        if learning_rate is None:
            learning_rate = 0.01 if lr_scheduler is None else None
        elif isinstance(lr_scheduler, LRScheduler) and lr_scheduler.base_lr != learning_rate:
            warnings.warn(
                f"learning rate {lr_scheduler.base_lr} of the lr_scheduler is overwritten by learning_rate={learning_rate}",
                UserWarning,
                stacklevel=3,
            )
            lr_scheduler.base_lr = learning_rate
        self.lr: Any = None if learning_rate is None else self._number("learning_rate", learning_rate)
        self.wd: Any = self._number("wd", wd)
        self.begin_num_update = begin_num_update
        self.num_update = begin_num_update
        self._all_index_update_counts: dict[int, dict[Any, int]] = {0: {}}  # by number of the device
        self._loaded_counts: dict[Any, int] = {}  # with which a device begins that had none when the states were saved
        self._set_current_context(0)
        self.clip_gradient = clip_gradient
        self.multi_precision = multi_precision
        self.aggregate_num = 0  # how many weights an Updater hands over at once; 0: one, and no list
        self.idx2name = dict(param_idx2name or {})
        self.sym_info = (sym.attr_dict(), sym.list_arguments()) if sym is not None else ()
        self.param_dict = param_dict or {}
        self.lr_mult: dict[Any, float] = {}
        self.wd_mult: dict[Any, float] = {}
        self.set_lr_mult({})
        self.set_wd_mult({})

    @staticmethod
    def register(klass: type) -> type:
        """Class decorator: make an optimizer known by its name, in lower case."""
        return _registry.register(klass)

    @staticmethod
    def create_optimizer(name: str, **kwargs: Any) -> Optimizer:
        """The optimizer called `name`. **Raises** ValueError for an unknown name."""
        return _registry.create(name, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles go without parameters."""
        return {name: value for name, value in self.__dict__.items() if name != "param_dict"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.param_dict = {}

    # ---- states and steps

    def create_state(self, index: Any, weight: NDArray) -> Any:
        """What the optimizer keeps for a weight besides the weight itself: None, an array, or a tuple of them."""
        return None

    def create_state_multi_precision(self, index: Any, weight: NDArray) -> Any:
        """`create_state`, together with a float32 copy of the weight if that is float16 and `multi_precision` is on."""
        if self._is_mixed(weight):
            master = weight.astype("float32")
            state = self.create_state(index, master)
            return (state, master) if self.master_last else (master, state)
        if weight.dtype == np.float16:
            warnings.warn(
                "Accumulating with float16 in optimizer can lead to poor accuracy or slow convergence. Consider using "
                f"multi_precision=True option of the {type(self).__name__} optimizer",
                stacklevel=2,
            )
        return self.create_state(index, weight)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Change `weight` and `state` in place by one step along `grad`."""
        raise NotImplementedError(f"{type(self).__name__} must override update")

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """`update`; of the float32 copy in the state, if that is kept, and then of the weight from it."""
        if not self._is_mixed(weight):
            self.update(index, weight, grad, state)
            return
        master, rest = reversed(state) if self.master_last else state
        self.update(index, master, grad.astype("float32"), rest)
        nd.cast(master, dtype=weight.dtype, out=weight)

    def _is_mixed(self, weight: NDArray) -> bool:
        """Whether a float32 copy of this weight is kept."""
        return self.multi_precision and weight.dtype == np.float16

    def _limits(self) -> dict[str, Any]:
        """The arguments of update operators that say what is done to gradients first."""
        return {"rescale_grad": self.rescale_grad, "clip_gradient": self.clip_gradient or -1.0}

    def _limited(self, grad: NDArray, decay: float = 0.0, weight: NDArray | None = None) -> NDArray:
        """`clip(rescale_grad grad + decay weight)`, for optimizers that are no single operator."""
        slope = grad * self.rescale_grad
        if weight is not None and decay:
            slope = slope + decay * weight
        bound = self.clip_gradient
        return nd.clip(slope, -bound, bound) if bound and bound > 0 else slope

    # ---- counting

    def _set_current_context(self, device_id: int) -> None:
        """Count updates for this device from now on: copies of a parameter on several devices are updated once each."""
        self._device_id = device_id
        self._index_update_count = self._all_index_update_counts.setdefault(device_id, {})
        if not self._index_update_count:
            self._index_update_count.update(self._loaded_counts)

    def _resume(self) -> None:
        """Called when its attributes have been read from a file: all devices go on from them, also those that had none of their own."""
        longest: dict[Any, int] = max(self._all_index_update_counts.values(), key=len, default={})
        self._loaded_counts = longest.copy()
        self._set_current_context(0)

    def _update_count(self, index: Any) -> None:
        """Count an update of the parameter `index`, or of each in a list."""
        for each in index if isinstance(index, (list, tuple)) else [index]:
            count = self._index_update_count.get(each, self.begin_num_update) + 1
            self._index_update_count[each] = count
            self.num_update = max(count, self.num_update)

    # ---- learning rates and weight decay

    @property
    def learning_rate(self) -> float:
        """The learning rate now, before multipliers."""
        return self.lr if self.lr_scheduler is None else self.lr_scheduler(self.num_update)

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate. **Raises** UserWarning if there is a scheduler, whose `base_lr` can be set instead."""
        if self.lr_scheduler is not None:
            raise LearningRateError(
                "LRScheduler of the optimizer has already been defined. Note that set_learning_rate can mutate the value of the learning "
                "rate of the optimizer only when the LRScheduler of the optimizer is undefined; optimizer.lr_scheduler.base_lr can be set."
            )
        self.lr = self._number("learning_rate", lr)

    def _number(self, name: str, value: Any) -> Any:
        """`value`. Raises OptimizerArgumentError for what is no number, with which the first step would fail."""
        if isinstance(value, numbers.Real) or (isinstance(value, np.ndarray) and value.ndim == 0):
            return value
        raise OptimizerArgumentError(f"{type(self).__name__}: {name} must be a number, got {shown(value)}")

    def set_lr_mult(self, args_lr_mult: Mapping[Any, float]) -> None:
        """Factors of the learning rate, by name or index of a parameter; those of `sym` stay. 0 freezes a parameter."""
        self.lr_mult = {**self._symbol_mults("__lr_mult__"), **args_lr_mult}

    def set_wd_mult(self, args_wd_mult: Mapping[Any, float]) -> None:
        """Factors of the weight decay, by name or index. Those of named parameters that are no weight and no gamma are 0 before."""
        none = {name: 0.0 for name in self.idx2name.values() if not self._decays(name)}
        self.wd_mult = {**none, **self._symbol_mults("__wd_mult__"), **args_wd_mult}

    def _decays(self, name: str) -> bool:
        """Whether a parameter of this name has weight decay unless something else is said."""
        return name.endswith(("_weight", "_gamma"))

    def _symbol_mults(self, key: str) -> dict[Any, float]:
        if not self.sym_info:
            return {}
        attributes, names = self.sym_info
        return {name: float(attributes[name][key]) for name in names if key in attributes.get(name, {})}

    def _mult(self, index: Any, mults: Mapping[Any, float], attribute: str) -> float:
        """The factor for a parameter: of the Parameter itself, else by index, else by name, else 1."""
        if index in self.param_dict:
            return getattr(self.param_dict[index], attribute)
        if index in mults:
            return mults[index]
        return mults.get(self.idx2name[index], 1.0) if index in self.idx2name else 1.0

    def _get_lrs(self, indices: Sequence[Any]) -> list[float]:
        """The learning rates of parameters."""
        lr = self.learning_rate
        return [lr * self._mult(index, self.lr_mult, "lr_mult") for index in indices]

    def _get_lr(self, index: Any) -> float:
        """The learning rate of a parameter."""
        return self._get_lrs([index])[0]

    def _get_wds(self, indices: Sequence[Any]) -> list[float]:
        """The weight decays of parameters."""
        return [self.wd * self._mult(index, self.wd_mult, "wd_mult") for index in indices]

    def _get_wd(self, index: Any) -> float:
        """The weight decay of a parameter."""
        return self._get_wds([index])[0]

    def _begin(self, index: Any) -> tuple[float, float, int]:
        """Count an update: the parameter's learning rate and weight decay, and the number of its update, from 1."""
        self._update_count(index)
        return self._get_lr(index), self._get_wd(index), self._index_update_count[index]


class Stepwise(Optimizer):
    """The base of optimizers whose step is one update operator. A subclass overrides `_operator`.

    The steps of several weights become one operation of the engine, in which the cores share and which writes into the memory that is
    there. An Updater hands over all weights of one dtype, or MXNET_OPTIMIZER_AGGREGATION_SIZE of them at once if that is set; where a
    subclass overrides an `update`, one by one.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if (type(self).update, type(self).update_multi_precision) == (Stepwise.update, Stepwise.update_multi_precision):
            self.aggregate_num = aggregation(1 << 30)

    def _operator(self, state: Any, lr: float, wd: float, t: int) -> Update:
        """The operator for update `t` of a weight, whose inputs are the weight, its gradient, and the arrays of its `state`.

        It serves all weights with as many arrays, and the same other arguments.
        """
        raise NotImplementedError(f"{type(self).__name__} must override _operator")

    def _mixed_operator(self, state: Any, lr: float, wd: float, t: int) -> Update:
        """The operator for a float16 weight with a float32 copy, for an optimizer that has one."""
        raise NotImplementedError

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Change `weight` and `state` in place by one step along `grad`; all may be lists, for several weights."""
        self._advance(self._operator, *as_lists(index, weight, grad, state))

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        rows = as_lists(index, weight, grad, state)
        if not self._is_mixed(rows[1][0]):
            self.update(index, weight, grad, state)
        elif type(self)._mixed_operator is not Stepwise._mixed_operator:
            self._advance(self._mixed_operator, *rows)
        else:
            for each in zip(*rows):
                super().update_multi_precision(*each)

    def update_copies(
        self, indices: Sequence[Any], weights: Sequence[Any], grads: Sequence[Sequence[Any]], states: Sequence[Any],
        copies: Sequence[Sequence[Any]],
    ) -> None:  # fmt: skip
        """One step along the sum of each weight's gradients, whose copies then become equal to it, as a single operation. All is in one
        memory, nothing twice, and as much for each weight as for the first; no weight is in mixed precision.
        """
        self._advance(self._operator, indices, weights, grads, states, copies)

    def _advance(
        self, operator: Callable[..., Update], indices: Sequence[Any], weights: Sequence[Any], grads: Sequence[Any],
        states: Sequence[Any], copies: Sequence[Sequence[Any]] = (),
    ) -> None:  # fmt: skip
        """Make one step of each weight, as a single operation. With `copies`, `grads` has a sequence for each weight, too."""
        self._update_count(indices)
        steps, arrays = [], []
        counts = (self._index_update_count[each] for each in indices)
        rates = zip(self._get_lrs(indices), self._get_wds(indices), counts)
        made: dict[tuple[Any, ...], Update] = {}
        for weight, grad, state, given in zip(weights, grads, states, rates):
            held = [array for array in (state if isinstance(state, (tuple, list)) else (state,)) if array is not None]
            key = (len(held), *given)
            if key not in made:
                made[key] = operator(state, *given)
            steps.append(made[key])
            arrays.append([weight, *(grad if copies else (grad,)), *held])
        if copies:
            op = Steps(tuple(steps), len(grads[0]), len(copies[0]))
            apply(op, *itertools.chain.from_iterable(arrays), out=list(itertools.chain.from_iterable(copies)))
        elif steps and len({weight.var for weight in weights}) == len(weights):
            apply(Steps(tuple(steps)), *itertools.chain.from_iterable(arrays))
        else:  # some share memory: one after the other
            for step, own in zip(steps, arrays):
                apply(Steps((step,)), *own)


class OptimizerArgumentError(ArgumentError, AssertionError):
    """An argument that does not fit. (MXNet asserts: hence the second base.)"""


_registry: Registry[Optimizer] = Registry(Optimizer, "optimizer")
Optimizer.opt_registry = _registry.classes
register = _registry.register
create = _registry.create


def zeros_like(weight: NDArray) -> NDArray:
    """A state that begins with 0, beside the weight."""
    return nd.zeros(weight.shape, weight.context, weight.dtype)


def as_lists(*values: Any) -> list[list[Any]]:
    """Index, weight, gradient and state as lists, whether they were that or one each."""
    several = isinstance(values[0], (list, tuple))
    return [list(value) if several else [value] for value in values]


def aggregation(default: int) -> int:
    """How many weights are updated at once: MXNET_OPTIMIZER_AGGREGATION_SIZE, if that is set."""
    return env_int("MXNET_OPTIMIZER_AGGREGATION_SIZE", default, minimum=1)
