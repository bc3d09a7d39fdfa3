"""Trainer: the optimizer of a network, one step for each batch.

After `backward` every parameter has a gradient on each device that computed with it. `step` adds these up, divides by the size of the
batch and updates: either once, in the store (parallel/kvstore.py), from which the weights go back to all devices, or on each device with
the summed gradient. Both give the same weights. Book: chapter 4; several devices: chapters 9 and 10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .. import autograd, optimizer as opt
from ..base import ArgumentError, DeviceError, MXNetError, env_int, shown
from ..device import Context
from ..fields import converted
from ..nd import NDArray
from ..parallel.base import create, find
from ..parallel.kvstore import KVStore, in_file, read_states, write_states
from .parameter import Parameter, ParameterDict, ParameterError

__all__ = ["StaleGradientError", "Trainer"]


#: How the message about stale gradients begins where there is no other one.
NO_BACKWARD = (
    "No gradient was written since the last step: backward() was not called, or the loss was computed outside autograd.record(). "
)


class StaleGradientError(MXNetError, UserWarning):
    """A step is to be made with a gradient that no backward wrote since the last one. (MXNet raises a UserWarning: the second base.)"""


class Trainer:
    """Updates parameters with an optimizer.

    **Args** `params`: a ParameterDict or a dict of Parameters, taken in the order of their names, or a list of them, all initialized on
    the same devices. `optimizer`: an Optimizer or its name; `optimizer_params`: the arguments for a name. `kvstore`: how gradients of
    several devices or processes come together: a name for `kvstore.create` ("device": added on the devices, "local": in host memory,
    "dist_sync": over processes, too), a store, or None (not at all: each device is updated by its own gradient). Within one process a
    single device has nothing to add, and needs no store. `compression_params`: {"type": "2bit", "threshold": 0.5}, for stores that
    compress. `update_on_kvstore`: update once and send weights to all devices (True), or update on each device (False); None is True if
    the store can, unless MXNET_UPDATE_ON_KVSTORE is 0.

    **Raises** ValueError for other things than parameters, or an unknown store; RuntimeError for parameters that are not initialized;
    AssertionError for an Optimizer together with `optimizer_params`. **Source** MXNet `gluon.Trainer`.

    >>> from minimx import autograd, gluon
    >>> weight = gluon.Parameter("weight", shape=(2,))
    >>> weight.initialize("ones")
    >>> trainer = gluon.Trainer([weight], "sgd", {"learning_rate": 0.5})
    >>> with autograd.record():
    ...     loss = (weight.data() * mx.nd.array([1, 2])).sum()
    >>> loss.backward()
    >>> trainer.step(batch_size=1)
    >>> weight.data().asnumpy().tolist()
    [0.5, 0.0]
    """

    def __init__(
        self, params: ParameterDict | Mapping[str, Parameter] | Sequence[Parameter], optimizer: str | opt.Optimizer,
        optimizer_params: Mapping[str, Any] | None = None, kvstore: Any = "device",
        compression_params: Mapping[str, Any] | None = None, update_on_kvstore: bool | None = None,
    ) -> None:  # fmt: skip
        self._params = as_parameters(params)
        if isinstance(kvstore, str):
            find(kvstore)  # raises if there is none
        elif kvstore is not None and not all(
            callable(getattr(kvstore, name, None)) for name in ("broadcast", "pushpull", "is_capable")
        ):
            raise ArgumentError(
                f"Trainer: kvstore is {shown(kvstore)}; the name of a store is wanted, an object with the methods broadcast, pushpull and "
                "is_capable, or None"
            )
        self._param2idx = {param: i for i, param in enumerate(self._params)}
        self._contexts = self._check_contexts()
        self._init_optimizer(optimizer, dict(optimizer_params or {}))
        for param in self._params:
            param._set_trainer(self)
        self._scale = self._optimizer.rescale_grad
        self._amp_loss_scaler: Any = None  # contrib.amp puts one here: a step with gradients that are not finite is left out
        self._amp_original_scale = self._scale
        self._listed: list[tuple[int, list[NDArray], list[NDArray]]] | None = None
        self._kvstore_params = {"kvstore": kvstore, "update_on_kvstore": update_on_kvstore}
        self._compression_params = compression_params
        self._reset_kvstore()
        if "dist" in kvstore.lower() if isinstance(kvstore, str) else getattr(kvstore, "together", False):
            self._begin()  # all processes compute with the values of rank 0 from the first batch on

    def _check_contexts(self) -> list[Context]:
        """The devices of all parameters, which must be the same."""
        contexts = self._params[0].list_ctx()
        for param in self._params[1:]:
            if param.list_ctx() != contexts:
                raise ParameterError(
                    f"All Parameters must be initialized on the same set of contexts, but Parameter {param.name} is initialized on "
                    f"{param.list_ctx()} while previous Parameters are initialized on {contexts}."
                )
        if len(set(contexts)) < len(contexts):
            raise ParameterError(
                f"Trainer: the parameters are on {contexts}, a device twice, and backward writes the gradient of one of its copies only; "
                "name each device once in initialize(ctx=...)"
            )
        return list(contexts)

    def _init_optimizer(self, optimizer: str | opt.Optimizer, arguments: dict[str, Any]) -> None:
        param_dict = dict(enumerate(self._params))
        if isinstance(optimizer, opt.Optimizer):
            if arguments:
                raise ParameterError("optimizer_params must be None if optimizer is an instance of Optimizer instead of str")
            self._optimizer = optimizer
            optimizer.param_dict = param_dict
        else:
            self._optimizer = opt.create(optimizer, param_dict=param_dict, **arguments)
        self._updaters = [opt.get_updater(self._optimizer) for _ in self._contexts]

    # ---- the store

    def _reset_kvstore(self) -> None:
        """Begin with a new store at the next step. One that updates loses its states."""
        self._kv_initialized = False
        self._kvstore: Any = None
        self._together = False  # whether the store takes all gradients in one call
        self._update_on_kvstore: bool | None = None
        self._params_to_init = list(self._params)

    def _value_replaced(self, param: Parameter) -> None:
        """A parameter got a value from outside: the states of updates in the store are about another one."""
        if self._kv_initialized and self._update_on_kvstore and all(param is not other for other in self._params_to_init):
            self._reset_kvstore()

    def _initialized(self, param: Parameter) -> None:
        """A parameter whose shape was not known has its first value."""
        if self._kv_initialized and self._together:
            self._init_params()

    def _init_kvstore(self) -> None:
        """Make the store, if one is needed."""
        kvstore, wanted = self._kvstore_params["kvstore"], self._kvstore_params["update_on_kvstore"]
        if isinstance(kvstore, str):
            kvstore = create(kvstore) if len(self._contexts) > 1 or "dist" in kvstore.lower() else None
        if kvstore is not None and self._compression_params:
            if not hasattr(kvstore, "set_gradient_compression"):
                raise ArgumentError(
                    f"Trainer: a store of type {type(kvstore).__name__} does not compress; leave compression_params out"
                )
            kvstore.set_gradient_compression(self._compression_params)
        if kvstore is not None:
            update = env_int("MXNET_UPDATE_ON_KVSTORE", 1) != 0 if wanted is None else wanted
            if update and not kvstore.is_capable("optimizer"):
                if wanted:
                    raise ArgumentError(f"Please set update_on_kvstore=False when training with {type(kvstore)}")
                update = False
            if update:
                kvstore.set_optimizer(self._optimizer)
            self._update_on_kvstore = update
        self._kvstore = kvstore
        self._together = bool(getattr(kvstore, "together", False))
        self._kv_initialized = True

    def _init_params(self) -> None:
        """Let all devices begin with the same values; parameters whose shape is not known yet come later."""
        known = [param for param in self._params_to_init if not param._deferred_init]
        self._params_to_init = [param for param in self._params_to_init if param._deferred_init]
        if self._kvstore is not None and known:
            keys, arrays = [self._param2idx[param] for param in known], [param.list_data() for param in known]
            if self._together:
                self._kvstore.broadcast(keys, [each[0] for each in arrays], arrays)
            else:
                for key, each in zip(keys, arrays):
                    self._kvstore.broadcast(key, each[0], each)

    def _begin(self) -> None:
        """What comes before every step."""
        if not self._kv_initialized:
            self._init_kvstore()
        if self._params_to_init:
            self._init_params()

    # ---- learning rate

    @property
    def learning_rate(self) -> float:
        """The learning rate of the optimizer now."""
        return self._optimizer.learning_rate

    @property
    def optimizer(self) -> opt.Optimizer:
        """The optimizer."""
        return self._optimizer

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate. **Raises** UserWarning if the optimizer has a scheduler."""
        self._optimizer.set_learning_rate(lr)

    # ---- steps

    def step(self, batch_size: float, ignore_stale_grad: bool = False) -> None:
        """Add up the gradients of all devices, divide them by `batch_size`, and update.

        To be called after `backward` and outside `record`. **Args** `batch_size`: of all devices together; 1 if the loss is a mean
        already. `ignore_stale_grad`: parameters whose gradient no backward wrote since the last step stay as they are. **Raises**
        UserWarning for such a parameter otherwise, and then nothing is updated; MXNetError inside `record`.
        """
        require_not_recording("step")
        self._check_and_rescale_grad(self._scale / as_batch_size("step", batch_size))
        self._begin()
        self._listed = self._trained()
        try:
            if not ignore_stale_grad:
                self._check_fresh()
            if self._updates_in_store and self._overflows():
                return
            self._allreduce_grads()
            self._update(ignore_stale_grad)
        finally:
            self._listed = None

    @property
    def _updates_in_store(self) -> bool:
        """Whether `_allreduce_grads` updates, in a store that belongs to this process alone."""
        return bool(self._update_on_kvstore) and not self._together

    def _overflows(self) -> bool:
        """Whether this step is left out, since a gradient is not finite and automatic mixed precision looks for that."""
        return self._amp_loss_scaler is not None and self._amp_loss_scaler.has_overflow(self._params)

    def allreduce_grads(self) -> None:
        """Only the first half of `step`: every device gets the sum of the gradients, which can then be changed before `update`.

        **Raises** AssertionError if the store updates; make the Trainer with `update_on_kvstore=False`.
        """
        self._begin()
        self._refuse_on_kvstore("allreduce_grads()")
        self._allreduce_grads()

    def update(self, batch_size: float, ignore_stale_grad: bool = False) -> None:
        """Only the second half of `step`: divide the gradients by `batch_size`, and update.

        **Args** and **Raises** as `step`; AssertionError if the store updates.
        """
        require_not_recording("update")
        self._begin()
        self._refuse_on_kvstore("update()")
        self._check_and_rescale_grad(self._scale / as_batch_size("update", batch_size))
        if not ignore_stale_grad:
            self._check_fresh()
        self._update(ignore_stale_grad)

    def _refuse_on_kvstore(self, what: str) -> None:
        if self._update_on_kvstore:
            raise ParameterError(
                f"{what} when parameters are updated on kvstore is not supported. Try setting `update_on_kvstore` to False when creating "
                "trainer."
            )

    def _check_and_rescale_grad(self, scale: float) -> None:
        """Have the optimizer multiply gradients by `scale`."""
        self._optimizer.rescale_grad = scale

    def _trained(self) -> list[tuple[int, list[NDArray], list[NDArray]]]:
        """The parameters that have gradients: index, values, and gradients, one for each device of this trainer. `step` lists them once."""
        if self._listed is not None:
            return self._listed
        found = [(i, param.list_data(), param.list_grad()) for i, param in enumerate(self._params) if param.grad_req != "null"]
        count = len(self._contexts)
        for i, arrays, _ in found:
            if len(arrays) != count:
                param = self._params[i]
                raise DeviceError(
                    f"Parameter '{param.name}' is on {param.list_ctx()} now, but was on {self._contexts} when this Trainer was made; make "
                    "a new Trainer after reset_ctx"
                )
        return found

    def _check_fresh(self) -> None:
        """Raise StaleGradientError unless all gradients were written since the last step."""
        stale = [(i, array) for i, arrays, _ in self._trained() for array in arrays if not array._fresh_grad]
        if stale:
            i, array = stale[0]
            cause = "" if any(array._fresh_grad for _, arrays, _ in self._trained() for array in arrays) else NO_BACKWARD
            raise StaleGradientError(
                f"{cause}Gradient of Parameter `{self._params[i].name}` on context {array.context} has not been updated by backward since "
                "last `step`. This could mean a bug in your model that made it only use a subset of the Parameters (Blocks) for this "
                "iteration. If you are intentionally only using a subset, call step with ignore_stale_grad=True to suppress this "
                "warning and skip updating of Parameters with stale gradient"
            )

    def _allreduce_grads(self) -> None:
        """Send gradients through the store, if there is one. Devices that computed nothing since the last step add nothing."""
        if self._kvstore is None:
            return
        if self._together:
            self._allreduce_together()
            return
        sent: list[tuple[int, list[NDArray], list[NDArray]]] = []  # keys, gradients, and the arrays that receive
        for i, arrays, gradients in self._trained():
            fresh = [gradient for array, gradient in zip(arrays, gradients) if array._fresh_grad]
            if fresh or not self._update_on_kvstore:
                values = fresh if 0 < len(fresh) < len(gradients) else gradients
                sent.append((i, values, arrays if self._update_on_kvstore else gradients))
        for bucket in self._buckets(sent):  # a store that does not speak of buckets gets one key at a time, as from MXNet
            keys, values, targets = bucket[0] if len(bucket) == 1 else map(list, zip(*bucket))
            several = len(bucket) > 1 and isinstance(self._kvstore, KVStore)
            send = self._kvstore.pushpull_again if several else self._kvstore.pushpull
            send(keys, values, out=targets, priority=-bucket[0][0])

    def _buckets(self, sent: Sequence[tuple[int, list[NDArray], list[NDArray]]]) -> Iterator[Sequence[Any]]:
        """As many keys and arrays at a time as the store would have in one call."""
        most, begin, nbytes = getattr(self._kvstore, "bucket", 0), 0, 0
        for end, (_, values, _) in enumerate(sent, 1):
            nbytes += values[0].spec.nbytes
            if nbytes >= most or end == len(sent):
                yield sent[begin:end]
                begin, nbytes = end, 0

    def _allreduce_together(self) -> None:
        """Send all gradients through a store over several processes. All take part, also those that computed nothing.

        The last layers come first: their gradients are the first to be there, and travel while backward computes the others.
        """
        keys, values, targets = [], [], []
        for i, arrays, gradients in reversed(self._trained()):
            for array, gradient in zip(arrays, gradients):
                if not array._fresh_grad:
                    gradient[:] = 0
                array._fresh_grad = True
            keys.append(i)
            values.append(gradients)
            targets.append(arrays if self._update_on_kvstore else gradients)
        if keys:
            self._kvstore.pushpull(keys, values, out=targets)

    def _update(self, ignore_stale_grad: bool = False) -> None:
        """Update on each device, unless the store did. Gradients are stale from then on."""
        if not self._updates_in_store and self._overflows():
            return
        trained = self._trained()
        batches: list[list[tuple[int, NDArray, NDArray]]] = []
        if not self._update_on_kvstore:
            for device in range(len(self._updaters)):
                batches.append([
                    (i, gradients[device], arrays[device])
                    for i, arrays, gradients in trained
                    if arrays[device]._fresh_grad or (self._kvstore is not None and any(each._fresh_grad for each in arrays))
                ])  # fmt: skip
        for _, arrays, _ in trained:
            for array in arrays:
                array._fresh_grad = False
        for updater, batch in zip(self._updaters, batches):
            if batch:
                updater(*map(list, zip(*batch)))

    # ---- files

    def save_states(self, fname: Any) -> None:
        """Write the states of the optimizer (momentum, counts, schedule ...) to a file; multipliers of parameters are not among them.

        The file is one of arrays, and holds no code: optimizer/states.py describes it. **Source** MXNet `Trainer.save_states`, which
        writes a pickle.
        """
        self._begin()
        if self._update_on_kvstore:
            self._kvstore.save_optimizer_states(fname, dump_optimizer=True)
        else:
            write_states(fname, self._updaters[0])

    def load_states(self, fname: Any) -> None:
        """Read the states from a file of `save_states`. The optimizer becomes the one that was saved, for the parameters of this trainer.

        **Raises** FileFormatError for another file, a pickle of MXNet among them; MissingFileError.
        """
        self._begin()
        if self._update_on_kvstore:
            self._kvstore.load_optimizer_states(fname)
            self._optimizer = self._kvstore._updater.optimizer
        else:
            data = read_states(fname)
            for updater in self._updaters:
                with in_file(fname):
                    updater.set_states(data)
                updater.optimizer = self._updaters[0].optimizer
            self._optimizer = self._updaters[0].optimizer
        self._optimizer.param_dict = dict(enumerate(self._params))


def require_not_recording(method: str) -> None:
    """Raise MXNetError inside `autograd.record()`: weights that are in the graph cannot be overwritten."""
    if autograd.is_recording():
        raise MXNetError(
            f"Trainer.{method}: weights cannot be updated inside autograd.record(); call it after the with block and loss.backward()"
        )


def as_batch_size(method: str, batch_size: Any) -> float:
    """By what gradients are divided. Raises ArgumentError for what is no number above 0."""
    number = converted(f"Trainer.{method}", "batch_size", "float", batch_size)
    if not number > 0:
        raise ArgumentError(
            f"Trainer.{method}: batch_size is {shown(batch_size)}; gradients are divided by it, so it must be above 0"
        )
    return float(number)


def as_parameters(params: Any) -> list[Parameter]:
    """The parameters of a dict, by name, or of a list. Raises ArgumentError for anything else."""
    if callable(getattr(params, "collect_params", None)):
        raise ArgumentError(
            f"First argument must be a list or dict of Parameters, got {type(params)}. Its parameters are net.collect_params(): pass these."
        )
    if isinstance(params, (Mapping, ParameterDict)):
        params = [params[name] for name in sorted(params.keys())]
    if not isinstance(params, (list, tuple)):
        raise ArgumentError(f"First argument must be a list or dict of Parameters, got {type(params)}.")
    for param in params:
        if not isinstance(param, Parameter):
            raise ArgumentError(f"First argument must be a list or dict of Parameters, got list of {type(param)}.")
    if not params:
        raise ArgumentError("Trainer: there are no parameters; does the network have layers that learn?")
    return list(params)
