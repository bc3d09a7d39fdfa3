"""Primitives, and routines: what a kernel makes of some of them.

A *primitive* is one computation that oneDNN has compiled for given layouts. A `Routine` runs several in order on the arrays of a call:
reorders into the layouts that a primitive likes best, the primitive itself, and a reorder back. It knows beforehand what memory it needs
between them, and takes it from the device's pool in one piece. Several threads may run a routine at once: each takes a *frame*, the
library's handles of memory, of its own. Book: chapter 5.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

from ... import storage
from ...device import Context
from ...op import Spec
from .. import machine
from .layout import Layout
from .library import IMPLEMENTATION, LAYOUT_OF, RESULT, SCRATCHPAD, SOURCE, USER_SCRATCHPAD, Argument, Library, library

ALIGNMENT = 64  # bytes: a cache line, and a register
BRIEF = 1 << 18  # bytes that are reordered in less time than it takes to hand Python's lock over
KEPT = 1 << 15  # bytes of memory between primitives that a frame keeps; more goes back to the pool after each call


class Eltwise(NamedTuple):
    """A function applied to a primitive's results before they are written."""

    algorithm: int
    alpha: float = 0.0
    beta: float = 0.0


class Sum(NamedTuple):
    """The results are added to what is in their memory."""

    scale: float = 1.0


PostOps = tuple["Eltwise | Sum", ...]


class Primitive:
    """A compiled primitive. It owns its description, which knows its layouts."""

    def __init__(self, lib: Library, kind: str, description: int) -> None:
        self.lib = lib
        self.kind = kind
        self.description = description
        self.handle = lib.new("primitive_create", description)

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self.lib.quick.dnnl_primitive_destroy(self.handle)
        self.lib.quick.dnnl_primitive_desc_destroy(self.description)

    def layout(self, argument: int) -> Layout:
        """In which layout it takes or gives an argument: what was asked for, or its choice."""
        borrowed = self.lib.quick.dnnl_primitive_desc_query_md(self.description, LAYOUT_OF[argument], 0)
        return Layout.copy(self.lib, borrowed)

    @property
    def implementation(self) -> str:
        """What oneDNN calls the code, as "brgconv:avx512_core"."""
        text = ctypes.c_char_p()
        self.lib.quick.dnnl_primitive_desc_query(self.description, IMPLEMENTATION, 0, ctypes.byref(text))
        return (text.value or b"").decode()

    @property
    def is_reference(self) -> bool:
        """Whether it is code for any processor, written to be compared with."""
        return self.kind != "reorder" and self.implementation.startswith(("ref", "simple"))


def primitive(kind: str, *arguments: Any, post: PostOps = ()) -> Primitive | None:
    """The primitive `kind` ("convolution_forward") for what dnnl.h lists between the engine and the attributes; None if there is none."""
    lib = library()
    attributes = lib.new("primitive_attr_create")
    operations = lib.new("post_ops_create")
    try:
        lib.check(lib.quick.dnnl_primitive_attr_set_scratchpad_mode(attributes, USER_SCRATCHPAD), "scratchpad_mode")
        for each in post:
            if isinstance(each, Sum):
                lib.check(lib.quick.dnnl_post_ops_append_sum(operations, each.scale, 0, 0), "append_sum")
            else:
                lib.check(lib.quick.dnnl_post_ops_append_eltwise(operations, *each), "append_eltwise")
        lib.check(lib.quick.dnnl_primitive_attr_set_post_ops(attributes, operations), "set_post_ops")
        handles = [_handle(each) for each in arguments]
        if kind == "reorder":
            handles = [handles[0], lib.engine, handles[1], lib.engine]
        else:
            handles.insert(0, lib.engine)
        description = lib.made(f"{kind}_primitive_desc_create", *handles, attributes)
    finally:
        lib.quick.dnnl_post_ops_destroy(operations)
        lib.quick.dnnl_primitive_attr_destroy(attributes)
    return None if description is None else Primitive(lib, kind, description)


def _handle(argument: Any) -> Any:
    """What the C API takes for an argument."""
    if isinstance(argument, Layout):
        return argument.handle
    return argument.description if isinstance(argument, Primitive) else argument


class Value(NamedTuple):
    """Something that primitives of a routine read or write: an array of the call, or memory between them."""

    layout: Layout
    array: int  # its position among the arrays, or -1
    offset: int  # in the routine's own memory, or -1


class Frame:
    """The library's handles for one run at a time: memory for each value, a stream, and the primitives' arguments."""

    def __init__(self, routine: Routine) -> None:
        self.lib = lib = library()
        self.stream = lib.new("stream_create", lib.engine, 1)
        self.memories = [lib.new("memory_create", value.layout.handle, lib.engine, None) for value in routine.values]
        self.arrays = [(memory, value.array) for memory, value in zip(self.memories, routine.values) if value.array >= 0]
        self.own = [(memory, value.offset) for memory, value in zip(self.memories, routine.values) if value.array < 0]
        self.steps = []
        for code, arguments, brief in routine.steps:
            execute = lib.execute_quickly if brief or routine.brief else lib.execute
            listed = (Argument * len(arguments))(*(Argument(number, self.memories[value]) for number, value in arguments.items()))
            self.steps.append((execute, code.handle, self.stream, len(arguments), listed))
        self.kept: Any = None  # memory of the routine's own, if it is little

    def place(self, memory: Any) -> None:
        """Lay the values between primitives into `memory`."""
        start = -(-memory.ctypes.data // ALIGNMENT) * ALIGNMENT
        for handle, offset in self.own:
            self.lib.set_handle(handle, start + offset)

    def __del__(self) -> None:
        for memory in getattr(self, "memories", ()):
            self.lib.quick.dnnl_memory_destroy(memory)
        if hasattr(self, "stream"):
            self.lib.quick.dnnl_stream_destroy(self.stream)


class Routine:
    """Primitives in order. Built by `array`, `own`, `reordered` and `add`; then called with arrays.

    It runs on as many threads as were set (`library.threads`) when it was built: code is generated for a number of threads.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.threads = library().get_threads()
        self.values: list[Value] = []
        self.steps: list[tuple[Primitive, dict[int, int], bool]] = []
        self.ordinary: int | None = (
            None  # the array that must not hold NaN or infinity, of which the primitives make something else
        )
        self.small = False  # NumPy starts so little work sooner
        self.brief = False  # all of it takes less time than another thread needs to take over Python's lock
        self.count = 0  # arrays of a call
        self.nbytes = 0  # of its own memory
        self.idle: list[Frame] = []

    # ---- building

    def _value(self, layout: Layout, array: int, offset: int) -> int:
        self.values.append(Value(layout, array, offset))
        return len(self.values) - 1

    def array(self, layout: Layout) -> int:
        """The next array of a call."""
        self.count += 1
        return self._value(layout, self.count - 1, -1)

    def own(self, layout: Layout) -> int:
        """Memory between primitives."""
        offset = self.nbytes
        self.nbytes += -(-layout.nbytes // ALIGNMENT) * ALIGNMENT
        return self._value(layout, -1, offset)

    def add(self, code: Primitive, arguments: dict[int, int], brief: bool = False) -> None:
        """Run `code`, with {number of an argument: value}. What is `brief` keeps Python's lock."""
        scratchpad = code.layout(SCRATCHPAD)
        if scratchpad.nbytes:
            arguments = {**arguments, SCRATCHPAD: self.own(scratchpad)}
        self.steps.append((code, arguments, brief))

    def read(self, layout: Layout, code: Primitive, argument: int) -> int:
        """The next array of a call, as `code` wants it for an argument: reordered if it must be."""
        return self.reordered(self.array(layout), code.layout(argument))

    def reordered(self, value: int, wanted: Layout) -> int:
        """`value` in another layout."""
        if self.values[value].layout == wanted:
            return value
        target = self.own(wanted)
        self.move(value, target)
        return target

    def write(self, layout: Layout, code: Primitive, argument: int) -> tuple[int, int]:
        """The next array of a call, and the value to let `code` write an argument to: see `finish`."""
        array, wanted = self.array(layout), code.layout(argument)
        return array, array if layout == wanted else self.own(wanted)

    def finish(self, *written: tuple[int, int]) -> None:
        """What `write` gave goes to the arrays, when the primitives that write it have been added."""
        for array, value in written:
            if array != value:
                self.move(value, array)

    def move(self, source: int, target: int) -> None:
        """Copy a value to another of another layout."""
        code = primitive("reorder", self.values[source].layout, self.values[target].layout)
        assert code is not None
        self.add(code, {SOURCE: source, RESULT: target}, self.values[target].layout.nbytes < BRIEF)

    @property
    def is_reference(self) -> bool:
        """Whether some of it is code that is there to be right, not to be fast: NumPy's is faster. (Reorders are all `simple`.)"""
        return any(code.is_reference for code, _, _ in self.steps)

    @property
    def implementation(self) -> str:
        """The names of the code it runs."""
        return ", ".join(code.implementation for code, _, _ in self.steps)

    # ---- running

    def __call__(self, *arrays: Any) -> None:
        """Run it on arrays, contiguous and with the dtypes of their layouts; those that are results are written."""
        lib = library()
        try:
            frame = self.idle.pop()
        except IndexError:
            frame = Frame(self)
        memory = frame.kept
        if memory is None and self.nbytes:
            memory = self._memory()
            frame.place(memory)
            if self.nbytes <= KEPT:
                frame.kept = memory
        for handle, position in frame.arrays:
            lib.set_handle(handle, machine.address(arrays[position]))
        before = lib.get_threads()
        if self.threads != before:
            lib.set_threads(self.threads)
        try:
            for execute, *step in frame.steps:
                status = execute(*step)
                if status:
                    lib.check(status, "primitive_execute")
        finally:
            if self.threads != before:
                lib.set_threads(before)
        self.idle.append(frame)

    def _memory(self) -> Any:
        """Memory of its own, for one run."""
        return storage.empty(Spec.of((self.nbytes + ALIGNMENT,), "uint8"), self.context)


class Several(NamedTuple):
    """A kernel with several outputs, which it makes itself: a routine, and the function that calls it."""

    run: Routine
    kernel: Callable[..., tuple[Any, ...]]

    @property
    def implementation(self) -> str:
        """See Routine."""
        return self.run.implementation
