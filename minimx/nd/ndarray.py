"""NDArray: an array of numbers on a device, computed asynchronously.

An NDArray is a part of an engine's memory (`View`) with a place on autograd's tape (`Array`, entry.py) and the operators as
methods (`Fluent`). Every operation ends in `invoke` (entry.py), which returns arrays whose values may still be pending.
Only what needs a value waits: `asnumpy`, `asscalar`, `wait_to_read`, printing, `bool`.

Basic indices whose elements lie in one run, `reshape` and `detach` give views that share memory; everything else copies.
Book: chapter 1.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import autograd
from ..autograd import IN_PLACE, Leaf, place
from ..base import ArgumentError, DTypeError, MXNetError, ShapeError, as_dtype, shown
from ..device import Context
from ..engine import writes
from ..engine.front import value_of, wait as engine_wait
from ..engine.lanes import scheduler
from ..op import Op, Shaped
from ..ops import binary, broadcast as _broadcast_ops, casting, creation, logic, powers, shape as _shape_ops, subscript
from ..ops.fluent import Fluent
from ..ops.reduce import as_axes
from . import indexing, transfer, ufuncs
from .direct import copied
from .entry import Array, autograd_state, from_array, host_numbers, invoke, record
from .shortcut import operator_method

if TYPE_CHECKING:
    from typing_extensions import Self


class NDArray(Array, Shaped, Fluent):
    """An array: `shape`, `dtype`, `context`, and a value that may still be pending.

    Made by `nd.array`, `nd.zeros`, ... and by operators. **Source** MXNet `mxnet.ndarray.NDArray`. **Book** chapter 1.
    """

    __slots__ = ("__weakref__",)

    __array_priority__: ClassVar[float] = 1000.0  # NumPy hands `numpy_array + ndarray` over to us
    stype: ClassVar[str] = "default"

    # ---- what it is; never waits

    @property
    def ctx(self) -> Context:
        return self.context

    @property
    def T(self) -> Self:
        """The array with its axes reversed, as a copy."""
        return self.transpose()

    def __len__(self) -> int:
        if not self.spec.shape:
            raise MXNetError("len: an array without axes has no length")
        return self.spec.shape[0]

    __hash__ = object.__hash__  # by identity: == is elementwise

    # ---- values; these wait

    def asnumpy(self) -> np.ndarray[Any, Any]:
        """The value as a NumPy array of its own. Waits for it, and raises the error that prevented it."""
        return transfer.to_numpy(value_of(self), self.context)

    def asscalar(self) -> Any:
        """The value of an array of one element, as a NumPy scalar. **Raises** ValueError for another size."""
        if self.spec.size != 1:
            raise ShapeError(f"asscalar: the array has shape {self.shape}; only one of a single element is a scalar")
        return self.asnumpy().reshape(-1)[0]

    def item(self) -> Any:
        """The value of an array of one element, as a Python number."""
        return self.asscalar().item()

    def tolist(self) -> Any:
        """The value as nested lists of Python numbers."""
        return self.asnumpy().tolist()

    def wait_to_read(self) -> None:
        """Return when the value is there. Raises the error that prevented it."""
        engine_wait(self)

    def wait_to_write(self) -> None:
        """Return when nothing that is queued reads or writes this array's memory."""
        scheduler.wait_to_write(self.var)

    def __bool__(self) -> bool:
        if self.spec.size == 0:
            return False
        if self.spec.size == 1:
            return bool(self.asscalar())
        raise ShapeError(
            f"The truth value of an NDArray with {self.size} elements is ambiguous; compare with .sum() or .asnumpy().all()"
        )

    __nonzero__ = __bool__

    def __float__(self) -> float:
        return float(self.asscalar())

    def __int__(self) -> int:
        return int(self.asscalar())

    def __format__(self, spec: str) -> str:
        """`f"{x}"` is its print; a format such as ".3f" is for an array of one element."""
        return format(self.item(), spec) if spec else str(self)

    def __index__(self) -> int:
        if self.spec.dtype.kind not in "iu":
            raise DTypeError(f"an array of {self.spec.dtype.name} cannot be an index; use astype('int64')")
        return int(self.asscalar())

    def __repr__(self) -> str:
        shape_text = "x".join(str(length) for length in self.shape)
        return f"\n{self.asnumpy()!s}\n<NDArray {shape_text} @{self.context}>"

    def _repr_html_(self) -> str:
        """What Jupyter shows: the value if it is there, else that it is pending; never waits."""
        about = f"shape {self.shape}, {self.spec.dtype.name}, {self.context}"
        if self.var.failure is not None:
            about, value = about + ", failed", str(self.var.failure.error)
        elif not self.var.ready:
            about, value = about + ", pending", "not computed yet; printing it or asnumpy() waits"
        else:
            value = str(self.asnumpy())
        return f"<pre>{html.escape(value)}</pre><small>NDArray: {html.escape(about)}</small>"

    # ---- into and out of NumPy and others

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """NumPy's protocol. The result is a copy; `copy=False`, which forbids that, raises ValueError."""
        if copy is False:
            raise ValueError("an NDArray cannot become a NumPy array without a copy: later writes would show through")
        array = self.asnumpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy's ufuncs on NDArrays: `np.exp(x)` and `numpy_array + x` give NDArrays."""
        return ufuncs.array_ufunc(ufunc, method, inputs, kwargs)

    def __dlpack__(self, **kwargs: Any) -> Any:
        """DLPack's protocol: share the memory with another library, without a copy."""
        value = value_of(self)
        scheduler.wait_to_write(self.var)
        self.var.shared = True
        writes.shared(value)
        writes.shared(self.var.value)
        return value.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return value_of(self).__dlpack_device__()

    def to_dlpack_for_read(self) -> Any:
        """A DLPack capsule that shares this array's memory, when its value is there."""
        return self.__dlpack__()

    def to_dlpack_for_write(self) -> Any:
        """A DLPack capsule that shares this array's memory, when nothing queued uses it."""
        return self.__dlpack__()

    def __reduce__(self) -> tuple[Any, ...]:
        return from_array, (self.asnumpy(), self.context)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def __copy__(self) -> Self:
        return self.copy()

    # ---- copies

    def copy(self) -> Self:
        """A copy on the same device."""
        return casting.identity(self)

    def copyto(self, other: NDArray | Context) -> NDArray:
        """Copy into the array `other`, or to a new array on the device `other`. **Returns** the target."""
        if isinstance(other, Context):
            return invoke(transfer.CopyTo(self.spec.dtype, self.context, other), [self], None, other)[0]
        if not isinstance(other, NDArray):
            raise ArgumentError(f"copyto: an NDArray or a Context is wanted, got {shown(other)}")
        if other is self:
            raise ArgumentError("copyto: an array cannot be copied to itself")
        if other.shape != self.shape:
            raise ShapeError(f"copyto: the array has shape {self.shape}, the target {other.shape}; they must be equal")
        invoke(transfer.CopyTo(other.spec.dtype, self.context, other.context), [self], other, other.context)
        return other

    def as_in_context(self, context: Context) -> NDArray:
        """This array if it is on `context` already, else a copy there."""
        if not isinstance(context, Context):
            raise ArgumentError(f"as_in_context: a Context such as mx.cpu() is wanted, got {shown(context)}")
        return self if context is self.context else self.copyto(context)

    as_in_ctx = as_in_context
    to_device = as_in_context

    def astype(self, dtype: Any, copy: bool = True) -> Self:
        """The array converted to `dtype`. `copy=False` gives the array itself where nothing is to be converted."""
        wanted = as_dtype(dtype)
        if not copy and wanted == self.spec.dtype:
            return self
        return casting.cast(self, wanted)

    def as_nd_ndarray(self) -> Self:
        return self

    def tostype(self, stype: str) -> Self:
        """The array itself: only dense storage exists."""
        if not isinstance(stype, str) or stype != "default":
            raise ArgumentError(f"tostype: storage type {shown(stype)} does not exist here; only 'default' (dense) does")
        return self

    # ---- views that share memory

    def _view(self, offset: int, shape: Sequence[int]) -> NDArray:
        """`shape` elements that begin `offset` elements into this array, sharing its memory; not recorded."""
        base = max(self.offset, 0)
        self.var.viewed = True
        return NDArray(self.var, self.spec.with_shape(shape), self.context, base + offset)

    def _recorded(self, view: NDArray, op: Op) -> NDArray:
        """`view` entered on the tape as the result of `op` on this array."""
        if autograd_state.recording and place(self):
            record(op, [self], [view])
        return view

    def reshape(self, *shape: Any, **kwargs: Any) -> NDArray:
        """The same memory seen with another shape.

        **Args** `shape`: lengths, with MXNet's codes: 0 keeps the axis, -1 takes what is left, -2 all further axes, -3 the
        product of two, -4 splits one in two. `reverse=True` matches from the right. **Raises** ValueError if the number of
        elements differs.
        """
        reverse = kwargs.pop("reverse", False)
        codes = kwargs.pop("shape", shape[0] if len(shape) == 1 and not isinstance(shape[0], (int, np.integer)) else shape)
        if kwargs:
            raise ArgumentError(f"reshape: unknown argument {', '.join(kwargs)}; it takes shape and reverse")
        op = _shape_ops.Reshaping(codes, reverse=reverse)
        if not op.shape:
            raise ArgumentError("reshape: a shape is missing")
        return self._recorded(self._view(0, op.infer(self.spec).shape), op)

    def flatten(self, inplace: bool = False, **how: Any) -> NDArray:
        """All axes but the first joined into one: a copy, or with `inplace=True` a view."""
        if not inplace:
            return _shape_ops.flatten(self, **how)
        op = _shape_ops.Flattening()
        return self._recorded(self._view(0, op.infer(self.spec).shape), op)

    def expand_dims(self, axis: int, inplace: bool = False, **how: Any) -> NDArray:
        """A new axis of length 1 before `axis`: a copy, or with `inplace=True` a view."""
        if not inplace:
            return _shape_ops.expand_dims(self, axis, **how)
        op = _shape_ops.ExpandDims(axis)
        return self._recorded(self._view(0, op.infer(self.spec).shape), op)

    def squeeze(self, axis: Any = None, inplace: bool = False, **how: Any) -> NDArray:
        """Axes of length 1 left out: a copy, or with `inplace=True` a view."""
        if not inplace:
            return _shape_ops.squeeze(self, axis, **how)
        op = _shape_ops.Squeeze(as_axes(axis))
        return self._recorded(self._view(0, op.infer(self.spec).shape), op)

    def detach(self) -> NDArray:
        """A view of the same memory that autograd does not track."""
        self.var.viewed = True
        return NDArray(self.var, self.spec, self.context, self.offset)

    # ---- indexing

    def __getitem__(self, key: Any) -> NDArray:
        """NumPy's indexing. One contiguous run shares memory; everything else is a copy."""
        found = indexing.classify(key, self.shape)
        op = subscript.Index(found.key)
        if isinstance(found, indexing.Basic) and found.contiguous:
            return self._recorded(self._view(found.offset, found.shape), op)
        return invoke(op, [self])[0]

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write `value`, broadcast, into the selected elements. While autograd records see semantics of `record`."""
        found = indexing.classify(key, self.shape)
        if isinstance(found, indexing.Basic) and found.contiguous:
            self._overwrite(self if found.whole else self._view(found.offset, found.shape), value, found)
            return
        self._check_partial_write(value)
        source = self._as_value(value)
        chosen, shape = found.assignment(source.shape)
        invoke(transfer.IndexWrite(chosen), [self, source.reshape(shape) if shape and shape != source.shape else source])

    def _as_value(self, value: Any) -> NDArray:
        """What is assigned, as an array of this dtype on this device."""
        if not isinstance(value, NDArray):
            value = from_array(host_numbers(value, self.spec.dtype, "x[...] = value"), self.context)
        elif value.spec.dtype != self.spec.dtype or value.context is not self.context:
            value = value.as_in_context(self.context).astype(self.spec.dtype, copy=False)
        return value

    def _overwrite(self, target: NDArray, value: Any, found: indexing.Basic) -> None:
        """Write `value` into `target`, the part of this array, in one piece, that `found` selects."""
        if not found.whole:
            self._check_partial_write(value)
        if isinstance(value, (bool, int, float, np.generic)):
            number = value.item() if isinstance(value, np.generic) else value
            invoke(creation.Full(number, target.shape, self.spec.dtype), [], target, self.context)
            return
        source = self._as_value(value)
        _, shape = found.assignment(source.shape)
        if shape and shape != source.shape:
            source = source.reshape(shape)
        if source.shape != found.shape:
            source = _broadcast_ops.broadcast_to(
                source.reshape((1,) * (len(found.shape) - source.ndim) + source.shape), found.shape
            )
        if source.shape != target.shape:
            source = source.reshape(target.shape)
        invoke(casting.Identity(), [source], target)

    def _become(self, value: NDArray) -> None:
        """`self[:] = value` for what `backward` computed, outside `record`."""
        if self.take_over(value):
            return
        if value.spec is not self.spec or value.context is not self.context:
            self[:] = value
        elif not copied(value, self):
            invoke(casting.Identity(), [value], self)

    def _check_partial_write(self, value: Any) -> None:
        """Raise MXNetError if autograd records and a write into a part of this array would hide a gradient."""
        if not autograd_state.recording:
            return
        if place(self) or (isinstance(value, NDArray) and place(value)):
            raise MXNetError(
                IN_PLACE.format(what="a part of an array is overwritten, and the array or the value is in the graph")
            )

    def __iter__(self) -> Iterator[NDArray]:
        for position in range(len(self)):
            yield self[position]

    def slice_assign(self, rhs: NDArray, begin: Any, end: Any, step: Any) -> NDArray:
        """Write `rhs` into the region from `begin` to `end`; this array."""
        self[indexing.region(begin, end, step, self.shape)] = rhs
        return self

    def slice_assign_scalar(self, value: float, begin: Any, end: Any, step: Any) -> NDArray:
        """Write `value` into the region from `begin` to `end`; this array."""
        self[indexing.region(begin, end, step, self.shape)] = value
        return self

    # ---- arithmetic: as in Fluent, with a short way for tiny arrays

    __add__ = operator_method(np.add, binary.ADD)
    __sub__ = operator_method(np.subtract, binary.SUBTRACT)
    __mul__ = operator_method(np.multiply, binary.MULTIPLY)
    __truediv__ = operator_method(np.true_divide, binary.DIVIDE)
    __mod__ = operator_method(None, binary.MODULO)
    __pow__ = operator_method(None, powers.POWER)
    __gt__ = operator_method(None, logic.GREATER)
    __ge__ = operator_method(None, logic.GREATER_EQUAL)
    __lt__ = operator_method(None, logic.LESSER)
    __le__ = operator_method(None, logic.LESSER_EQUAL)
    __eq__ = operator_method(None, logic.EQUAL)
    __ne__ = operator_method(None, logic.NOT_EQUAL)

    def __matmul__(self, other: NDArray) -> NDArray:
        """The matrix product `nd.dot`, of arrays of one or two axes. MXNet 1.x has no `@`; NumPy has."""
        if not isinstance(other, NDArray):
            return NotImplemented
        if self.ndim > 2 or other.ndim > 2:
            raise ShapeError(f"@: the arrays have {self.ndim} and {other.ndim} axes; for batches of matrices use nd.batch_dot")
        return self.dot(other)

    # ---- in-place arithmetic

    def __iadd__(self, other: Any) -> Self:
        return self._in_place(binary.ADD, other)

    def __isub__(self, other: Any) -> Self:
        return self._in_place(binary.SUBTRACT, other)

    def __imul__(self, other: Any) -> Self:
        return self._in_place(binary.MULTIPLY, other)

    def __itruediv__(self, other: Any) -> Self:
        return self._in_place(binary.DIVIDE, other)

    def __imod__(self, other: Any) -> Self:
        return self._in_place(binary.MODULO, other)

    def __ipow__(self, other: Any) -> Self:
        return self._in_place(powers.POWER, other)

    def _in_place(self, forms: Any, other: Any) -> Self:
        if isinstance(other, np.ndarray):
            other = from_array(host_numbers(other, self.spec.dtype, "arithmetic with a NumPy array"), self.context)
        forms(self, other, out=self)
        return self

    # ---- autograd

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Make this array a leaf: backward puts its gradient into `.grad`, which starts as zeros.

        **Args** `grad_req`: "write", "add" or "null". **Raises** KeyError for another. Attaching again starts anew and cuts
        earlier graphs.
        """
        autograd.check_req(grad_req)
        gradient = (
            None if grad_req == "null" else NDArray._apply(creation.Zeros(self.shape, self.spec.dtype), (), {"ctx": self.context})
        )
        self.node, self.index = Leaf(gradient, grad_req), 0

    @property
    def grad(self) -> NDArray | None:
        """The gradient's buffer of a leaf; None for any other array."""
        return self.node.grad if isinstance(self.node, Leaf) else None

    @property
    def _fresh_grad(self) -> bool:
        """Whether backward wrote `.grad` since this was set to False."""
        return isinstance(self.node, Leaf) and self.node.fresh

    @_fresh_grad.setter
    def _fresh_grad(self, state: bool) -> None:
        if isinstance(self.node, Leaf):
            self.node.fresh = bool(state)

    def backward(self, out_grad: NDArray | None = None, retain_graph: bool = False, train_mode: bool = True) -> None:
        """Differentiate this array with respect to all leaves: see `autograd.backward`."""
        autograd.backward([self], None if out_grad is None else [out_grad], retain_graph, train_mode)

    # ---- entering operators

    @classmethod
    def _apply(cls, op: Op, operands: Sequence[Any], how: Any) -> Any:
        """Compute `op`: one array, or a list where the operator has several outputs."""
        outputs = invoke(op, operands, how.get("out"), how.get("ctx")) if how else invoke(op, operands)
        if len(outputs) == 1:
            return outputs[0]
        visible = op.num_visible
        return outputs[0] if visible == 1 else outputs[:visible]


Array.make = NDArray
