"""What an operator is. The only registry.

An operator is written once, as a frozen dataclass: its fields are its attributes, and its methods are the shape rule
(`infer`), the computation (`kernel`) and the gradient (`vjp`). The function beneath it is what people call. That function is the
same object in `nd` and in `sym`: `apply` looks at the operands and hands the operator to their class, which computes (NDArray)
or builds a graph (Symbol). What rules of shapes share is in rules.py.

Everything else is derived from the registry: the JSON loader, generated programs, the operator tests, the reference pages.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import math
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict, TypeVar, cast

import numpy as np

from .base import ArgumentError, MXNetError, OutOfMemoryError, ShapeError, shown
from .device import Context, CopyLane
from .fields import in_words, initializer, parse_attr, spelt
from .keywords import what_it_takes

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**options: Any) -> Callable[[C], C]:
        """Only type checkers look at it."""
        return lambda decorator: decorator


Shape = tuple[int, ...]
Array = Any  # what a kernel works on: a NumPy array, or a CuPy array on a GPU


SMALL_SIZE = 8192
MOST_AXES = 32  # of a NumPy array before NumPy 2, and more than any real program has


class Spec:
    """Shape and dtype of an array, without its data. Interned: equal specs are the same object.

    >>> Spec.of((2, 3), "float32") is Spec.of((2, 3), np.float32)
    True
    """

    __slots__ = ("shape", "dtype", "size", "nbytes", "small")
    _interned: ClassVar[dict[tuple[Shape, np.dtype[Any]], Spec]] = {}

    shape: Shape
    dtype: np.dtype[Any]
    size: int  # elements
    nbytes: int
    small: bool  # floating point, and so few elements that an elementwise operation takes less time than scheduling it

    @classmethod
    def of(cls, shape: Sequence[int], dtype: Any) -> Spec:
        """The spec of `shape` (a sequence of int) and `dtype` (anything NumPy takes for one)."""
        key = (tuple(shape), np.dtype(dtype))
        found = cls._interned.get(key)
        if found is None:
            found = object.__new__(cls)
            found.shape, found.dtype = tuple(map(operator.index, key[0])), key[1]
            found.size = math.prod(found.shape)
            found.nbytes = found.size * found.dtype.itemsize
            _check_possible(found)
            found.small = found.dtype.kind == "f" and len(found.shape) > 0 and found.size <= SMALL_SIZE
            if len(cls._interned) > 100_000:  # a program that never repeats a shape must not leak
                cls._interned.clear()
            # setdefault: two threads that make the same spec at once must end with one object
            found = cls._interned.setdefault(key, found)
        return found

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def with_shape(self, shape: Sequence[int]) -> Spec:
        return Spec.of(shape, self.dtype)

    def with_dtype(self, dtype: Any) -> Spec:
        return Spec.of(self.shape, dtype)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Spec) and self.shape == other.shape and self.dtype == other.dtype)

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype))

    def __repr__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"


def _check_possible(spec: Spec) -> None:
    """Raise ShapeError or OutOfMemoryError unless NumPy could have an array of `spec`, given the memory."""
    if min(spec.shape, default=0) < 0:
        raise ShapeError(f"an array cannot have the shape {spec.shape}: a length is negative")
    if len(spec.shape) > MOST_AXES:
        raise ShapeError(f"an array cannot have {len(spec.shape)} axes; at most {MOST_AXES} are possible")
    extent = math.prod(length or 1 for length in spec.shape) * spec.dtype.itemsize
    if extent >= 1 << 63:
        raise OutOfMemoryError(
            f"an array of {spec.dtype.name} cannot have the shape {shown(spec.shape)}: it has 2**{extent.bit_length() - 1} bytes or more, "
            "and no memory has 2**63"
        )


class Kind(enum.Enum):
    """What an operator does to its data: which passes and executors may treat it specially."""

    ELEMENTWISE = "elementwise"  # output[i] depends on input[i] alone; broadcasting allowed; kernel takes `out`
    REDUCTION = "reduction"
    GEMM = "gemm"  # time is spent in BLAS, which has threads of its own
    OPAQUE = "opaque"
    PROGRAM = "program"  # many operators as one: it knows its cost, and keeps the promises of an operator's results by itself


class Op:
    """An operator with its attributes. Subclasses are frozen dataclasses, registered under MXNet's name.

    Class variables say what the engine and the passes must know. The four rules are declared here with arguments of any kind,
    because each operator has inputs of its own: `infer(self, data, weight)`, `kernel(self, xp, data, weight)`.
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    name: ClassVar[str] = ""
    kind: ClassVar[Kind] = Kind.OPAQUE
    #: The NumPy ufunc that computes exactly what the kernel does, on *floating* arrays; None if there is no such ufunc.
    ufunc: ClassVar[Any] = None
    #: Names of the inputs, in order. A name with "?" may be absent; a last name with "*" stands for any number.
    inputs: ClassVar[tuple[str, ...]] = ("data",)
    #: Attributes that must be given although they have a default here, 0 or (): inputs that may be left out come before them in a call.
    required: ClassVar[tuple[str, ...]] = ()
    #: Positions of inputs that the kernel changes in place: optimizer states, running means.
    mutates: ClassVar[tuple[int, ...]] = ()
    #: Positions of inputs that are auxiliary states in a Symbol (a subset of `mutates`, or read-only running statistics).
    aux: ClassVar[tuple[int, ...]] = ()
    #: The kernel takes a keyword `key`: a `seeds.Key` from which it may make a generator.
    needs_key: ClassVar[bool] = False
    #: The dataclass has a field `training`, which is set from autograd's mode when the operator is called.
    needs_training: ClassVar[bool] = False
    #: The output is the first input in another shape: the kernel may return a view of it rather than fresh memory.
    aliases: ClassVar[bool] = False
    #: The kernel takes `out`, memory without gaps for its first output, although it is not elementwise (elementwise kernels always do).
    takes_out: ClassVar[bool] = False
    #: The kernel takes, after the inputs, for each output memory that it may write to, or None: what the array had that the output is
    #: written to. A task gives it; elsewhere there is none.
    reuses: ClassVar[bool] = False
    #: The output's shape depends on the data (boolean_mask): the front end waits for the inputs and computes at once.
    data_dependent: ClassVar[bool] = False
    #: The kernel looks at values as it goes along, for which a GPU would wait again and again: it gets NumPy's arrays everywhere. On a GPU
    #: its inputs are copied to the host, and its results back (engine/execute.py).
    on_host: ClassVar[bool] = False
    #: It runs graphs: its `run(operands, context)` is called with arrays instead of `kernel` (sym/composite.py).
    composite: ClassVar[bool] = False
    #: It does nothing but make new arrays of its inputs: nothing above about changes, keys, modes and waiting holds for it.
    pure: ClassVar[bool] = False  # `register` sets it
    #: Which values `vjp` looks at beyond their shape and dtype; the others are not kept alive for it.
    #: A tuple of positions can say which.
    saves_inputs: ClassVar[bool | tuple[int, ...]] = True
    saves_outputs: ClassVar[bool | tuple[int, ...]] = True
    #: Inputs may lie on other devices than the output: copies between devices.
    crosses_devices: ClassVar[bool] = False
    #: An output layer of MXNet (SoftmaxOutput, make_loss): backward starts here and ignores the head gradient.
    is_loss: ClassVar[bool] = False

    @property
    def num_outputs(self) -> int:
        """Outputs of the kernel."""
        return 1

    @property
    def num_visible(self) -> int:
        """Outputs that the caller sees; the others exist for `vjp` (a dropout mask)."""
        return self.num_outputs

    @property
    def meets(self) -> bool:
        """Whether the kernel waits for the kernels of other devices: then a lane runs it, at once even in a lazy scope."""
        return False

    @property
    def cost(self) -> float:
        """Estimated nanoseconds, of a program; those of an operator follow from its kind and the sizes of its arrays."""
        return 0.0

    def lane(self, context: Context) -> Context | CopyLane:
        """The lane in which an operator that `crosses_devices` runs, with its output on `context`."""
        return context.lane

    def wants(self, name: str) -> bool:
        """Whether the optional input `name` is needed after all: a graph makes a variable for it, a call without it is an error."""
        return False

    def infer(self, *args: Any, **kwargs: Any) -> Spec | tuple[Spec, ...]:
        """Spec of the output (a tuple if there are several) from those of the inputs. Raises ShapeError or DTypeError."""
        raise MXNetError(f"{self.name} has no rule of shapes")

    def fill(self, *args: Any, **kwargs: Any) -> tuple[Spec | None, ...]:
        """The specs of the inputs with unknown ones completed where they follow from the known (a weight from its data)."""
        return args

    def kernel(self, *args: Any, **kwargs: Any) -> Any:
        """kernel(xp, *inputs): compute on arrays of the module `xp` (numpy or cupy); an array, or a tuple of arrays.

        An elementwise kernel takes `out=None` and writes into it when it is given; one that draws random numbers takes `key`.
        """
        raise MXNetError(f"{self.name} has no kernel")

    def vjp(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """vjp(g, y, *inputs): gradients of the inputs (None where there is none) from `g`, those of the outputs, and outputs `y`.

        Written with public operators on tensors, so that it serves arrays, graphs and higher orders. `g` and `y` are tensors,
        or tuples of tensors if the kernel has several outputs (an element of `g` may be None).
        """
        raise MXNetError(f"{self.name} has no gradient")

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        # Types are compared, too, for NumPy holds dtype("float64") and None for equal; and zeros as they are written: 0.0 == -0.0.
        pairs = zip(self.__dict__.values(), other.__dict__.values())
        return all(
            mine is its or (type(mine) is type(its) and mine == its and (mine != 0 or repr(mine) == repr(its)))
            for mine, its in pairs
        )

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def __setattr__(self, name: str, value: Any) -> None:
        raise dataclasses.FrozenInstanceError(f"{self.name}: an operator does not change; dataclasses.replace makes another")

    def attrs(self) -> dict[str, str]:
        """The attributes that differ from their defaults, as the strings that MXNet writes into its JSON."""
        given = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.metadata.get("hidden") or (value == field.default and (value is None) == (field.default is None)):
                continue  # NumPy calls float64 and None equal: a dtype that is given must not be lost
            given[spelt(field)] = value.name if isinstance(value, np.dtype) else str(value)
        return given

    @classmethod
    def from_attrs(cls, attrs: dict[str, str]) -> Op:
        """The operator whose attributes are the strings `attrs`; names that start with "__" are not the operator's."""
        types = _field_types(cls)
        values = {}
        for key, text in attrs.items():
            if key.startswith("__"):
                continue
            if key not in types:
                if key in cls.ignored_attrs():
                    continue
                raise ArgumentError(f"{cls.name}: unknown argument {key!r}{what_it_takes(key, list(types))}")
            try:
                field, kind = types[key]
                values[field] = parse_attr(text, kind)
            except (ValueError, SyntaxError, TypeError, KeyError, OverflowError, MemoryError, RecursionError):
                raise ArgumentError(f"{cls.name}: argument {key}={shown(text)} is not {in_words(kind)}") from None
        fields = [field for field in dataclasses.fields(cls) if field.default is dataclasses.MISSING]
        missing = [spelt(field) for field in fields if field.name not in values]
        if missing:
            raise ArgumentError(f"{cls.name}: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} required")
        try:
            return cls(**values)
        except MXNetError:
            raise
        except TypeError as error:
            raise ArgumentError(f"{cls.name}: {error}") from None

    @classmethod
    def ignored_attrs(cls) -> tuple[str, ...]:
        """Attributes that old files carry and that change no value: tuning hints of a GPU library."""
        return ("workspace", "cudnn_tune", "cudnn_off", "cudnn_algo_verbose", "num_args")


# A statement rather than a decorator: type checkers must see `attributes` alone make dataclasses of the subclasses, frozen ones.
dataclasses.dataclass(init=False, repr=False, eq=False)(Op)

C = TypeVar("C", bound=type[Op])
F = TypeVar("F", bound=Callable[..., Any])
REGISTRY: dict[str, type[Op]] = {}  # MXNet's names, the aliases too


def hidden(default: Any) -> Any:
    """A field of an operator that is no attribute of MXNet's: set by the system, never written to JSON."""
    return dataclasses.field(default=default, metadata={"hidden": True})


def called(name: str, default: Any) -> Any:
    """A field for MXNet's attribute `name`, which a method of Op has for its own name."""
    return dataclasses.field(default=default, metadata={"called": name})


@dataclass_transform(frozen_default=True, field_specifiers=(hidden, called))
def attributes(cls: C) -> C:
    """Class decorator: a frozen dataclass whose annotated fields are the attributes of an operator, or of a base of some.

    `dataclasses.dataclass` alone would write and compile six methods for each class, which for all operators would take longer than the
    rest of `import minimx`. The others are inherited from Op, and `__init__` is written only where a class adds fields.
    """
    own = inspect.get_annotations(cls)
    if "__dataclass_fields__" not in cls.__dict__ and any(not str(kind).startswith("ClassVar") for kind in own.values()):
        cls.__doc__ = cls.__doc__ or cls.__name__  # else dataclass composes one, slowly
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
        cls.__init__ = _first_initializer(cls)  # type: ignore[method-assign]  # what dataclass does, too
    return cls


def _first_initializer(cls: type[Op]) -> Any:
    """An `__init__` that writes the real one when the first object is made: a program uses few of all operators."""

    def __init__(self: Op, *args: Any, **kwargs: Any) -> None:
        cls.__init__ = initializer(dataclasses.fields(cls))  # type: ignore[method-assign]  # what dataclass does, too
        cls.__init__(self, *args, **kwargs)

    return __init__


@dataclass_transform(frozen_default=True, field_specifiers=(hidden, called))
def register(name: str, *aliases: str) -> Callable[[C], C]:
    """Class decorator: make the class an operator (see `attributes`) and enter it under MXNet's `name` and `aliases`."""

    def enter(cls: C) -> C:
        cls = attributes(cls)
        cls.name = name
        cls.pure = not (cls.mutates or cls.needs_key or cls.needs_training or cls.data_dependent or cls.composite)
        for each in (name, *aliases):
            if each in REGISTRY:
                raise MXNetError(f"operator {each} is registered twice")
            REGISTRY[each] = cls
        return cls

    return enter


def share_out(items: list[Any], function: Callable[[list[Any]], None]) -> None:
    """Call `function` on parts of `items`, at once as far as there are cores, and return when all are done.

    A kernel may use it for work on NumPy arrays. The engine, a layer above, enters its threads here.
    """
    if sharing:
        sharing[0](items, function)
    else:
        function(items)


sharing: list[Callable[[list[Any], Callable[[list[Any]], None]], None]] = []


def beside(xp: Any, array: Array, shape: Shape, dtype: Any) -> Array:
    """Uninitialized memory for a kernel whose result is not its only large array: from the pool that `array` lies in, if it lies in one.

    Memory that NumPy takes from the system anew costs a fault a page, which can be more than what is computed in it. The storage, a layer
    above, enters its pools here.
    """
    return pooling[0](array, shape, dtype) if pooling and xp is np else xp.empty(shape, dtype)


pooling: list[Callable[[Array, Shape, Any], Array]] = []

#: What gives the name of the device for which the calling thread runs a kernel, None outside the engine. The engine enters it.
placing: list[Callable[[], str | None]] = []


def find(name: str) -> type[Op]:
    """The operator class registered as `name`. Raises ArgumentError if there is none."""
    try:
        return REGISTRY[name]
    except KeyError:
        raise ArgumentError(f"no operator is called {name!r}") from None


def _field_types(cls: type[Op]) -> dict[str, tuple[str, str]]:
    """MXNet's name -> (field, annotation text) of an operator's attributes."""
    return {spelt(f): (f.name, str(f.type)) for f in dataclasses.fields(cls) if not f.metadata.get("hidden")}


class Tensor:
    """What operators are applied to: the base of NDArray (a value) and Symbol (a node of a graph)."""

    __slots__ = ()

    #: Python's operators on two of them stretch axes to fit (NDArray); a Symbol's want equal shapes.
    broadcasts: ClassVar[bool] = True

    #: For error messages: the module with functions of such tensors, and what many of them are called.
    module: ClassVar[str] = "nd"
    plural: ClassVar[str] = "arrays"

    @classmethod
    def _apply(cls, op: Op, operands: Sequence[Any], how: How) -> Any:
        raise NotImplementedError


class Shaped(Tensor):
    """A tensor that knows its `spec`: an array, or a value of a typed graph."""

    __slots__ = ()

    if TYPE_CHECKING:
        spec: Spec

    @property
    def shape(self) -> Shape:
        return self.spec.shape

    @property
    def dtype(self) -> Any:
        """The element type, as NumPy's class (`numpy.float32`)."""
        return self.spec.dtype.type

    @property
    def size(self) -> int:
        return self.spec.size

    @property
    def ndim(self) -> int:
        return len(self.spec.shape)


T = TypeVar("T", bound=Tensor)


class How(TypedDict, total=False):
    """Keywords that every operator takes beside its own."""

    out: Any  # NDArray or list of them that receives the result (nd only)
    name: str | None  # of the node (sym only; nd ignores it)
    attr: dict[str, str] | None  # of the node (sym only)


HOW = frozenset(How.__annotations__)
KNOWN = HOW | {"_hint"}  # what an automatic name begins with, from functions that have several names: see `also_called`

# Attributes of a node of a graph that are not its operator's; any call may carry them, as any `__name__`. Arrays ignore them.
NODE_KEYS = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage")

# How an operator is applied that is called without any tensor, but with a name or without data: `sym` enters the way to make a node with
# variables.
open_calls: list[Callable[[Op, Sequence[Any], Any], Any]] = []


#: The default of an input that may be left out in a call for a Symbol, where a variable takes its place: `sym.softmax(axis=1)`.
NOT_GIVEN: Any = type("NotGiven", (), {"__repr__": lambda self: "<a variable>", "__slots__": ()})()


def is_constant(tensor: Any) -> bool:
    """Whether nobody asks for the gradient of a saved input that a `vjp` got: an array without a place on the tape.

    A `vjp` may give None for it, which is worth a look where that gradient is much work, as for the images of a first layer.
    """
    return getattr(tensor, "node", tensor) is None


def is_node_key(key: str) -> bool:
    """Whether `key` is an attribute that any node may have: `__anything__`, or one that MXNet writes without underscores."""
    return (key.startswith("__") and key.endswith("__")) or key in NODE_KEYS


def apply(op: Op, *operands: Any, **how: Any) -> Any:
    """Apply `op`: compute if the operands are arrays, build a node if they are symbols.

    An operand is a Tensor, or None where the input is absent. Raises ArgumentError for an unknown keyword or operands that are
    no tensors, and whatever the operator's rule of shapes raises.
    """
    if how and not KNOWN.issuperset(how):
        kind = how.get("_kind")
        if isinstance(kind, type) and issubclass(kind, type(op)):  # from `also_called`
            op = how.pop("_kind")(**vars(op))
        unknown = sorted(key for key in how.keys() - KNOWN if not is_node_key(key) and key not in op.ignored_attrs())
        if unknown:
            raise ArgumentError(
                f"{op.name}: unknown argument {', '.join(unknown)}{what_it_takes(unknown[0], _arguments_of(type(op)))}"
            )
    is_open = how.get("name") is not None
    if operands and operands[0] is NOT_GIVEN:
        operands, is_open = (None, *operands[1:]), True
    for operand in operands:
        if isinstance(operand, Tensor):
            return type(operand)._apply(op, operands, how)  # type: ignore[arg-type]
    if operands and is_open and open_calls and all(operand is None for operand in operands):
        return open_calls[0](op, operands, how)
    got = ", ".join(map(kind_of, operands)) or "nothing"
    advice = next(filter(None, (advice_on_list(operand, op) for operand in operands)), "; make one with nd.array(...)")
    raise ArgumentError(f"{op.name}: an NDArray or a Symbol is wanted, got {got}{advice}")


def also_called(name: str, function: F, module: str | None = None, kind: type[Op] | None = None) -> F:
    """`function` under another of MXNet's names, which is what the automatic names of its nodes begin with: `blockgrad0`.

    **Args** `module`: the one whose attribute it becomes, where pickle finds it, if that is not the function's. `kind`: the operator that
    MXNet has by this name, with the attributes of the function's, if that is another one.
    """
    hint = name.lower()

    @functools.wraps(function)
    def call(*args: Any, **how: Any) -> Any:
        if not (args and getattr(args[0], "broadcasts", False)):  # arrays, which broadcast, have no names
            how.setdefault("_hint", hint)  # unless it is called by yet another name
        if kind is not None:
            how["_kind"] = kind
        return function(*args, **how)

    call.__name__ = call.__qualname__ = name
    call.__module__ = module or function.__module__
    return cast("F", call)


def kind_of(operand: Any) -> str:
    """What an operand is that cannot be one, for error messages. NumPy's class is called ndarray, which reads like NDArray."""
    return "a NumPy array" if isinstance(operand, np.ndarray) else type(operand).__name__


def advice_on_list(operand: Any, op: Op | None = None) -> str:
    """What to do with a list of tensors that was given as an operand (of `op`), as the end of a message; "" for anything else."""
    if not isinstance(operand, (list, tuple)):
        return ""
    kind = next((type(each) for each in operand if isinstance(each, Tensor)), None)
    if kind is None:
        return ""
    if len({each.context for each in operand if hasattr(each, "context")}) > 1:
        return "; they are on several devices: call it for each part, as in [net(part) for part in parts]"
    if op is not None and op.inputs and op.inputs[-1].endswith("*"):
        name = op.name.lower() if REGISTRY.get(op.name.lower()) is type(op) else op.name
        place = "" if name.startswith("_") else f"{kind.module}."
        return f"; give the {kind.plural} one by one: {place}{name}(*{kind.plural})"
    return f"; join them with {kind.module}.stack(*{kind.plural}) or {kind.module}.concat(*{kind.plural})"


def _arguments_of(cls: type[Op]) -> list[str]:
    """The arguments of an operator: inputs, attributes, and what all have."""
    return [*(name.rstrip("?*") for name in cls.inputs), *_field_types(cls), *sorted(HOW)]


def input_names(op: Op, count: int) -> list[str]:
    """Names of `count` operands of `op`: `data`, `weight`; or `arg0`, `arg1` where any number may come."""
    names = [n.rstrip("?") for n in op.inputs]
    if names and names[-1].endswith("*"):
        stem = names.pop()[:-1]
        names += [f"{stem}{i}" for i in range(count - len(names))]
    return names[:count]


__all__ = [
    "NOT_GIVEN", "REGISTRY", "Array", "How", "Kind", "Op", "Shape", "Shaped", "Spec", "T", "Tensor", "advice_on_list", "also_called",
    "apply", "beside", "called", "find", "hidden", "input_names", "is_constant", "kind_of", "parse_attr", "register",
]  # fmt: skip
