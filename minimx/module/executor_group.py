"""One graph on several devices: each gets a part of every batch, and has parameters of its own.

The batch is cut along its axis "N" (`DataDesc.layout`), in proportion to the devices' workloads. A group that is given another, of a graph
with the same parameters, shares its arrays: so do the buckets of a BucketingModule. Executors for other shapes of the data, as of a last,
smaller batch, are made when they are needed and kept.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from .. import nd
from ..base import DTYPE_OF_CODE, ArgumentError, ShapeError, shown
from ..checkpoint import Params
from ..device import Context, cpu
from ..io import DataDesc
from ..nd import NDArray
from ..sym import Symbol
from ..sym.executor import Executor
from .base_module import ModuleStateError, as_descriptions

__all__ = ["DataParallelExecutorGroup"]

MOST_SHAPES = 8  # for which executors are kept


# ---- cutting and joining batches


def split_batch(batch_size: int, workloads: Sequence[float]) -> list[slice]:
    """Which examples each device gets. Raises ArgumentError if one would get none.

    >>> split_batch(10, [1, 1, 1])
    [slice(0, 3, None), slice(3, 6, None), slice(6, 10, None)]
    """
    counts = [round(each * batch_size / sum(workloads)) for each in workloads]
    counts[-1] += max(batch_size - sum(counts), 0)
    slices = []
    end = 0
    for count in counts:
        begin, end = end, min(end + count, batch_size)
        if begin >= end:
            raise ArgumentError(
                f"Too many slices. Some splits are empty: {batch_size} examples for workloads {list(workloads)}; use fewer devices, or a "
                "larger batch"
            )
        slices.append(slice(begin, end))
    return slices


def part_of(array: NDArray, part: slice, axis: int) -> NDArray:
    """The examples `part` of an array; all of it if it has no axis of examples (-1)."""
    if axis < 0 or (part.start == 0 and part.stop == array.shape[axis]):
        return array
    return array[part] if axis == 0 else array.slice_axis(axis=axis, begin=part.start, end=part.stop)


def part_shape(desc: DataDesc, part: slice) -> DataDesc:
    """The description of the examples `part`."""
    axis = DataDesc.get_batch_axis(desc.layout)
    shape = list(desc.shape)
    if axis >= 0:
        shape[axis] = part.stop - part.start
    return DataDesc(desc.name, tuple(shape), desc.dtype, desc.layout)


def joined(parts: Sequence[NDArray], axis: int) -> NDArray:
    """What the devices have computed, as one array on the first; without an axis of examples that of the first device."""
    if len(parts) == 1 or axis < 0:
        return parts[0]
    return nd.concat(*[part.as_in_context(parts[0].context) for part in parts], dim=axis)


def groups_of_devices(group2ctxs: Any, devices: int) -> list[dict[str, Context] | None]:
    """For each device of the group, where nodes of each `ctx_group` run. Raises ArgumentError for anything but such dicts."""
    if group2ctxs is None:
        return [None] * devices
    if isinstance(group2ctxs, dict):
        columns = {}
        for group, given in group2ctxs.items():
            contexts = [given] if isinstance(given, Context) else list(given)
            columns[group] = contexts * devices if len(contexts) == 1 else contexts
        if all(len(contexts) == devices for contexts in columns.values()):
            return [{group: contexts[device] for group, contexts in columns.items()} for device in range(devices)]
    elif isinstance(group2ctxs, list) and len(group2ctxs) == devices:
        return group2ctxs
    raise ArgumentError(
        f"group2ctxs must be a dict of a device or of {devices} devices for each group, or a list of {devices} dicts, got "
        f"{shown(group2ctxs)}"
    )


# ---- the group


class DataParallelExecutorGroup:
    """Executors of `symbol`, one for each of `contexts`.

    **Args** `workload`: numbers in proportion to which a batch is cut. `data_shapes`, `label_shapes`: of whole batches. `param_names`: the
    arguments that are parameters. `shared_group`: another group, whose arrays for these parameters, and for data, are used.
    `fixed_param_names`: parameters without gradients. `grad_req`: what to do with gradients, for all, or a list or dict of arguments.
    `state_names`: arguments that are neither data nor parameters. `group2ctxs`: see `Module`. **Source** MXNet
    `module.executor_group.DataParallelExecutorGroup`.
    """

    def __init__(
        self, symbol: Symbol, contexts: Sequence[Context], workload: Sequence[float] | None, data_shapes: Any, label_shapes: Any,
        param_names: Sequence[str], for_training: bool, inputs_need_grad: bool, shared_group: DataParallelExecutorGroup | None = None,
        logger: Any = logging, fixed_param_names: Sequence[str] | None = None, grad_req: Any = "write",
        state_names: Sequence[str] | None = None, group2ctxs: Any = None,
    ) -> None:  # fmt: skip
        self.symbol = symbol
        self.contexts = list(contexts)
        self.workload = workload or [1] * len(self.contexts)
        self.param_names = list(param_names)
        self.arg_names = symbol.list_arguments()
        self.aux_names = symbol.list_auxiliary_states()
        self.output_names = symbol.list_outputs()
        self.state_names = list(state_names or ())
        self.for_training = for_training
        self.inputs_need_grad = inputs_need_grad
        self.logger = logger
        self._group2ctxs = groups_of_devices(group2ctxs, len(self.contexts))
        self._shared = shared_group
        #: Memory by name for data and labels, on each device.
        self.shared_data_arrays: list[dict[str, NDArray]] = (
            [{} for _ in self.contexts] if shared_group is None else shared_group.shared_data_arrays
        )
        data = as_descriptions(data_shapes, "data")
        labels = None if label_shapes is None else as_descriptions(label_shapes, "label")
        self.grad_req = self._requests(grad_req, fixed_param_names or (), [each.name for each in data])
        self.output_layouts = [DataDesc.get_batch_axis(node.attrs.get("__layout__")) for node, _ in symbol.entries]
        self._kept: OrderedDict[Any, list[Executor]] = OrderedDict()  # executors by shapes of the data
        self._first: list[Executor] = []  # those that were bound first, whose arrays the others use
        self._take_shapes(data, labels)

    def _requests(self, grad_req: Any, fixed: Sequence[str], data_names: Sequence[str]) -> dict[str, str]:
        """What to do with the gradient of each argument."""
        if isinstance(grad_req, (list, tuple)):
            if len(grad_req) != len(self.arg_names):
                raise ArgumentError(f"grad_req has {len(grad_req)} entries, the symbol {len(self.arg_names)} arguments")
            found = dict(zip(self.arg_names, grad_req))
        else:
            if not isinstance(grad_req, (str, dict)):
                raise ArgumentError(f"grad_req must be a str, a list, a tuple or a dict, got {shown(grad_req)}")
            usual = grad_req if isinstance(grad_req, str) else "write"
            found = dict.fromkeys(self.arg_names, "null")
            found.update((name, usual) for name in self.param_names if name not in fixed)
            if self.inputs_need_grad:
                found.update((name, usual) for name in data_names)
            if isinstance(grad_req, dict):
                found.update(grad_req)
        return found if self.for_training else dict.fromkeys(found, "null")

    # ---- binding

    def _take_shapes(self, data: list[DataDesc], labels: list[DataDesc] | None) -> None:
        """Make executors for batches of these shapes, or take those that are there, the current ones."""
        batch_size, slices = self._cut([*data, *(labels or [])])
        key = tuple((each.name, tuple(each.shape)) for each in [*data, *(labels or [])])
        found = self._kept.get(key)
        if found is None:
            found = [self._executor(device, part, data, labels or []) for device, part in enumerate(slices)]
        self._kept[key] = found
        self._kept.move_to_end(key)
        self._first = self._first or found
        if len(self._kept) > MOST_SHAPES:
            del self._kept[next(each for each, executors in self._kept.items() if executors is not self._first)]
        self.execs = found
        self.batch_size, self.slices = batch_size, slices
        self.data_shapes, self.label_shapes = data, labels
        self._collect(data, labels or [])

    def _cut(self, shapes: Sequence[DataDesc]) -> tuple[int | None, list[slice]]:
        """The size of the batch, and which part of it each device gets. Raises ShapeError if the arrays differ in it."""
        size = None
        for each in shapes:
            axis = DataDesc.get_batch_axis(each.layout)
            if axis < 0:
                continue
            if axis >= len(each.shape):
                raise ShapeError(
                    f"{each.name} has shape {each.shape}, and no axis {axis}, which its layout {each.layout!r} calls N"
                )
            if size is not None and each.shape[axis] != size:
                raise BatchSizeError(
                    f"all data must have the same batch size: {size} according to {shapes[0].name}, but {each.name} has shape {each.shape}"
                )
            size = each.shape[axis]
        if size is None:  # nothing is cut: every device gets all
            return None, [slice(device, device + 1) for device in range(len(self.contexts))]
        return size, split_batch(size, self.workload)

    def _executor(self, device: int, part: slice, data: list[DataDesc], labels: list[DataDesc]) -> Executor:
        """An executor for one device's part of batches of these shapes."""
        parts = [part_shape(each, part) for each in [*data, *labels]]
        shapes = {each.name: each.shape for each in parts if each.name in self.arg_names}
        if self._first:
            return self._first[device].reshape(allow_up_sizing=True, **shapes)
        attrs = self.symbol.attr_dict()
        dtypes = {each.name: each.dtype for each in parts}
        for each in data:  # what a variable says of itself counts more
            code = attrs.get(each.name, {}).get("__dtype__", "-1")
            if code != "-1":
                dtypes[each.name] = DTYPE_OF_CODE[int(code)]
        shared = None if self._shared is None else self._shared.execs[device]
        return self.symbol.simple_bind(
            self.contexts[device], grad_req=self.grad_req, type_dict=dtypes, group2ctx=self._group2ctxs[device],
            shared_arg_names=self.param_names, shared_exec=shared, shared_buffer=self.shared_data_arrays[device], **shapes,
        )  # fmt: skip

    def _collect(self, data: list[DataDesc], labels: list[DataDesc]) -> None:
        """List the current executors' arrays by what they are for: for each name, one of each device."""
        arguments = [each.arg_dict for each in self.execs]
        gradients = [each.grad_dict for each in self.execs]

        def on_devices(arrays: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[list[Any]]:
            return [[of_device.get(name) for of_device in arrays] for name in names]

        parameters = [name for name in self.arg_names if name in self.param_names]
        self.data_arrays = on_devices(arguments, [each.name for each in data])
        self.label_arrays = on_devices(arguments, [each.name for each in labels])
        self.state_arrays = on_devices(arguments, self.state_names)
        self.param_arrays = on_devices(arguments, parameters)
        self.grad_arrays = on_devices(gradients, parameters)
        self.input_grad_arrays = on_devices(gradients, [each.name for each in data if each.name in self.arg_names])
        self.aux_arrays = [[each.aux_arrays[number] for each in self.execs] for number in range(len(self.aux_names))]

    def reshape(self, data_shapes: list[DataDesc], label_shapes: list[DataDesc] | None) -> None:
        """Get ready for batches of other shapes. Parameters stay the same arrays."""
        self._take_shapes(data_shapes, label_shapes)

    # ---- parameters

    def set_params(self, arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray], allow_extra: bool = False) -> None:
        """Copy parameters and states to all devices. **Raises** ValueError for unknown names unless `allow_extra`."""
        for executor in self.execs:
            executor.copy_params_from(arg_params, aux_params, allow_extra_params=allow_extra)

    def get_params(self, arg_params: Params, aux_params: Params) -> None:
        """Write parameters and states, their means over the devices, into the arrays of two dicts."""
        parameters = [name for name in self.arg_names if name in self.param_names]
        for names, arrays, targets in (
            (parameters, self.param_arrays, arg_params),
            (self.aux_names, self.aux_arrays, aux_params),
        ):
            for name, copies in zip(names, arrays):
                mean = copies[0]
                if len(copies) > 1:
                    mean = nd.add_n(*[copy.as_in_context(cpu()) for copy in copies]) / len(copies)
                mean.copyto(targets[name])

    # ---- computing

    def forward(self, data_batch: Any, is_train: bool | None = None) -> None:
        """Give each device its part of a batch, or its batch of a list of them, and run."""
        batches = data_batch if isinstance(data_batch, list) else None
        self._load(self.data_shapes, self.data_arrays, [each.data for each in batches] if batches else data_batch.data, batches)
        labels = getattr(batches[0] if batches else data_batch, "label", None)
        if self.label_shapes and labels:
            self._load(self.label_shapes, self.label_arrays, [each.label for each in batches] if batches else labels, batches)
        for executor in self.execs:
            executor.forward(is_train=self.for_training if is_train is None else is_train)

    def _load(self, shapes: Sequence[DataDesc], targets: Sequence[Sequence[Any]], arrays: Any, batches: Any) -> None:
        """Copy arrays, or a list of them for each device, into those of the executors; what the graph does not use is left out."""
        if any(len(each) < len(shapes) for each in (arrays if batches else [arrays])):
            raise ArgumentError(f"the batch lacks arrays: {', '.join(each.name for each in shapes)} are wanted")
        for number, (desc, copies) in enumerate(zip(shapes, targets)):
            axis = DataDesc.get_batch_axis(desc.layout)
            for device, target in enumerate(copies):
                if target is None:
                    continue
                source = arrays[device][number] if batches else part_of(arrays[number], self.slices[device], axis)
                if not isinstance(source, NDArray):
                    raise ArgumentError(f"{desc.name} must be an NDArray, got {shown(source)}; make one with nd.array(...)")
                if source.shape != target.shape:
                    raise ShapeError(
                        f"{desc.name} has shape {source.shape} on {target.context}, it was bound for {target.shape}; reshape() binds "
                        "for other shapes"
                    )
                source.copyto(target)

    def backward(self, out_grads: Any = None) -> None:
        """Compute gradients from those of the outputs, an array or a list of them for whole batches; losses need none."""
        if not self.for_training:
            raise ModuleStateError("backward: re-bind with for_training=True to run backward")
        listed = [] if out_grads is None else list(out_grads) if isinstance(out_grads, (list, tuple)) else [out_grads]
        for executor, context, part in zip(self.execs, self.contexts, self.slices):
            pairs = zip(listed, self.output_layouts)
            executor.backward([part_of(gradient, part, axis).as_in_context(context) for gradient, axis in pairs])

    def update_metric(self, eval_metric: Any, labels: Any, pre_sliced: bool = False) -> None:
        """Tell a metric what each device has computed, and its labels. `pre_sliced`: a list of labels for each device."""
        shapes = self.label_shapes or []
        names = [each.name for each in shapes]
        axes = [DataDesc.get_batch_axis(each.layout) for each in shapes]
        for device, (executor, part) in enumerate(zip(self.execs, self.slices)):
            own = labels[device] if pre_sliced else [part_of(label, part, axis) for label, axis in zip(labels or [], axes)]
            eval_metric.update_dict(OrderedDict(zip(names, own)), OrderedDict(zip(self.output_names, executor.outputs)))

    # ---- results

    def get_output_shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Names and shapes of the outputs for whole batches."""
        found = []
        for name, output, axis in zip(self.output_names, self.execs[0].outputs, self.output_layouts):
            shape = list(output.shape)
            if axis >= 0 and self.batch_size is not None:
                shape[axis] = self.batch_size
            found.append((name, tuple(shape)))
        return found

    def get_outputs(self, merge_multi_context: bool = True) -> list[Any]:
        """The outputs, joined; or for each a list of those of all devices."""
        outputs = [list(copies) for copies in zip(*(executor.outputs for executor in self.execs))]
        if not merge_multi_context:
            return outputs
        return [joined(copies, axis) for copies, axis in zip(outputs, self.output_layouts)]

    def get_input_grads(self, merge_multi_context: bool = True) -> list[Any]:
        """The gradients of the data, as `get_outputs`. **Raises** AssertionError if the group was made without them."""
        if not self.inputs_need_grad:
            raise ModuleStateError("get_input_grads: re-bind with inputs_need_grad=True")
        if not merge_multi_context:
            return self.input_grad_arrays
        axes = [DataDesc.get_batch_axis(each.layout) for each in self.data_shapes if each.name in self.arg_names]
        return [joined(copies, axis) for copies, axis in zip(self.input_grad_arrays, axes)]

    def get_states(self, merge_multi_context: bool = True) -> list[Any]:
        """The states, a list of arrays on each device for each. **Raises** AssertionError for merged ones, which MXNet has not either."""
        if merge_multi_context:
            raise ModuleStateError("get_states: merge_multi_context=True is not supported; pass merge_multi_context=False")
        return self.state_arrays

    def set_states(self, states: Any = None, value: Any = None) -> None:
        """Set the states, from a list as of `get_states` or `get_outputs(False)`, or all to a number."""
        if (states is None) == (value is None):
            raise ModuleStateError("set_states: one of states and value must be given, and not both")
        for number, copies in enumerate(self.state_arrays):
            for device, target in enumerate(copies):
                if states is None:
                    target[:] = value
                else:
                    states[number][device].copyto(target)

    def install_monitor(self, mon: Any) -> None:
        """Have a monitor watch all executors; it lists the parameters of the current ones, which all share."""
        for executors in self._kept.values():
            for executor in executors:
                if executors is self.execs:
                    mon.install(executor)
                else:
                    executor.set_monitor_callback(mon.stat_helper, mon.monitor_all)


class BatchSizeError(ShapeError, AssertionError):
    """Arrays of a batch that have different numbers of examples. (MXNet asserts it: hence the second base.)"""
