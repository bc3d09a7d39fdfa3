"""From a loop's source to machine code that Python can call, through LLVM (llvmlite): when, in which thread, and what if that cannot be.

To compile a loop takes some 20 ms, and the first time 60 ms more, to load LLVM. A thread of its own does it while a program is made and
begins to run; LLVM works without Python's lock. Until a loop is there NumPy's kernels serve. That must not be seen in results: a program
whose loops round otherwise than NumPy does waits for them before it runs, so that all its runs give the same bits. The others start at
once. MINIMX_JIT=eager waits for all where the program is made, as `hybridize(static_alloc=True)` does; MINIMX_JIT=off and
MINIMX_KERNELS=numpy compile nothing, and so it is where llvmlite is not installed.

Numba, which is made of the same LLVM, would compile such loops from Python; but it takes most of a second for each, and holds Python's
lock meanwhile. Nothing is kept on disk: to read and check a file would save 15 ms a loop, and machine code from a file is a thing to be
trusted. Book: chapter 5.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import importlib.util
import os
import queue
import sys
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import MXNetError, env_choice
from ..storage import address as address
from .compiler import compiled
from .vectormath import prelude

LEAST_LLVMLITE = (0, 45)  # the first with LLVM 20: its pointers, and its way of optimizing
MODE = env_choice("MINIMX_JIT", "auto", ("auto", "eager", "off"))
MOST_CODES = 4096  # machine code stays until the process ends
POINTER, LONG = ctypes.c_void_p, ctypes.c_int64
NUMBERS = {"float32": ctypes.c_float, "float64": ctypes.c_double}


@functools.cache
def installed() -> bool:
    """Whether llvmlite is there, as far as can be seen without loading it."""
    return importlib.util.find_spec("llvmlite") is not None


def is_wide() -> bool:
    """Whether a register of this processor holds 16 numbers of float32, as those of AVX-512 do. NumPy looks, which is loaded anyway."""
    try:
        module = importlib.import_module(
            "numpy._core._multiarray_umath" if hasattr(np, "_core") else "numpy.core._multiarray_umath"
        )
    except ImportError:
        return False
    return bool(getattr(module, "__cpu_features__", {}).get("AVX512F"))


#: Behind its head, which all objects of Python have, a NumPy array begins with the address of its elements: every extension module that
#: takes arrays has that compiled in. To read 170 at once takes an eighth of what `address` of each does.
GATHER = f"""\
define void @loop(ptr %objects, ptr %found, i64 %many) nounwind {{
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%i.next, %read]
  %more = icmp slt i64 %i, %many
  br i1 %more, label %read, label %end
read:
  %place = getelementptr inbounds i64, ptr %objects, i64 %i
  %object = load ptr, ptr %place
  %field = getelementptr inbounds i8, ptr %object, i64 {object.__basicsize__}
  %address = load i64, ptr %field
  %target = getelementptr inbounds i64, ptr %found, i64 %i
  store i64 %address, ptr %target
  %i.next = add i64 %i, 1
  br label %next
end:
  ret void
}}
"""


def addresses(arrays: Sequence[np.ndarray[Any, Any]], target: np.ndarray[Any, Any]) -> None:
    """Write where the elements of each array begin into the first numbers of `target`, of int64."""
    function = _gatherer()
    if function:
        objects = np.fromiter(map(id, arrays), np.int64, len(arrays))
        function(address(objects), address(target), len(arrays))
    else:
        target[: len(arrays)] = [address(array) for array in arrays]


class Code:
    """The machine code of a source: `function` when it is there, or `error`, why it never will be. `done` is set in either case.

    `part` is the address of the same as a thread of a team runs it, with its arguments in one row: see `as_part`.
    """

    def __init__(self, source: str, parameters: tuple[Any, ...], result: Any = None) -> None:
        self.source = source
        self.parameters = parameters  # ctypes' types
        self.result = result  # that of the result
        self.function: Any = None
        self.part = 0
        self.error: str | None = None
        self.done = threading.Event()

    def compile(self) -> None:
        """Compile, unless that was done. Never raises: a program without a loop is slower, and as right."""
        with _llvm_lock:
            if self.done.is_set():
                return
            try:
                address, self.part = _llvm().addresses_of(self.text)
                self.function = ctypes.CFUNCTYPE(self.result, *self.parameters)(address)
            except Exception as error:  # whatever LLVM has against it
                self.error = f"{type(error).__name__}: {error}"
            self.done.set()

    @property
    def text(self) -> str:
        """It in LLVM's language."""
        if self.source.lstrip().startswith("define"):
            return self.source
        return translated(self.source) + as_part(self.parameters)


def translated(source: str) -> str:
    """A loop in LLVM's language, with the functions that it calls."""
    return compiled(f"{prelude(source)}\n{source}")


def loads(row: str, fields: Sequence[tuple[str, str]]) -> list[str]:
    """Instructions that load the 8-byte fields of a row, each given as (type, name), in order from the first."""
    return [
        line
        for number, (kind, name) in enumerate(fields)
        for line in (
            f"%at.{name} = getelementptr inbounds i64, ptr %{row}, i64 {number}",
            f"%{name} = load {kind}, ptr %at.{name}",
        )
    ]


def as_part(parameters: tuple[Any, ...]) -> str:
    """A function `part` that calls `loop`, whose last parameters are `low` and `high`, for the share of one thread of a team.

    It is called with the address of a row of 8-byte fields: all arguments but those two, then how many units there are in all, of how many
    a share is a multiple, how many bytes further the last pointer lies for each next thread, and the addresses of OpenMP's functions that
    say which thread this is, and of how many: 0, where one is to do all of it, whatever team it is in.
    """
    names = {POINTER: "ptr", LONG: "i64", NUMBERS["float32"]: "float", NUMBERS["float64"]: "double"}
    kinds = [names[each] for each in parameters[:-2]]
    fields = [(kind, f"x{number}") for number, kind in enumerate(kinds)]
    fields += [("i64", "units"), ("i64", "grain"), ("i64", "own"), ("ptr", "which"), ("ptr", "many")]
    lines = [
        *loads("row", fields),
        "%alone = icmp eq ptr %which, null",
        "br i1 %alone, label %go, label %ask",
        "ask:",
        "%thread.short = call i32 %which()",
        "%threads.short = call i32 %many()",
        "%thread.asked = sext i32 %thread.short to i64",
        "%threads.asked = sext i32 %threads.short to i64",
        "br label %go",
        "go:",
        "%thread = phi i64 [0, %entry], [%thread.asked, %ask]",
        "%threads = phi i64 [1, %entry], [%threads.asked, %ask]",
        "%less = sub i64 %threads, 1",
        "%more = add i64 %units, %less",
        "%even = sdiv i64 %more, %threads",
        "%grain.less = sub i64 %grain, 1",
        "%even.more = add i64 %even, %grain.less",
        "%grains = sdiv i64 %even.more, %grain",
        "%share = mul i64 %grains, %grain",
        "%low = mul i64 %thread, %share",
        "%end = add i64 %low, %share",
        "%before = icmp slt i64 %end, %units",
        "%high = select i1 %before, i64 %end, i64 %units",
        "%further = mul i64 %thread, %own",
    ]
    arguments = [f"{kind} %x{number}" for number, kind in enumerate(kinds)]
    last = max((number for number, kind in enumerate(kinds) if kind == "ptr"), default=-1)
    if last >= 0:
        lines.append(f"%mine = getelementptr inbounds i8, ptr %x{last}, i64 %further")
        arguments[last] = "ptr %mine"
    lines.append(f"call void @loop({', '.join([*arguments, 'i64 %low', 'i64 %high'])}) noinline")
    return "\n".join(
        ["define void @part(ptr %row) nounwind {", "entry:", *(f"  {line}" for line in lines), "  ret void", "}", ""]
    )


class _Llvm:
    """LLVM, for the processor that this is. The calling thread has `_llvm_lock`."""

    def __init__(self) -> None:
        import llvmlite
        import llvmlite.binding as binding

        version = tuple(int(part) for part in llvmlite.__version__.split(".")[:2])
        if version < LEAST_LLVMLITE:
            least = ".".join(map(str, LEAST_LLVMLITE))
            raise MXNetError(f"llvmlite {llvmlite.__version__} is too old; loops are compiled by {least} and newer ones")
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        self.binding = binding
        self.target = binding.Target.from_default_triple().create_target_machine(
            cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=3, codemodel="jitdefault"
        )

    def optimized(self, text: str) -> Any:
        """LLVM's module of a text in its language, optimized."""
        module = self.binding.parse_assembly(text)
        module.triple = self.target.triple
        module.data_layout = str(self.target.target_data)
        module.verify()
        options = self.binding.create_pipeline_tuning_options(3)
        options.loop_vectorization = options.loop_interleaving = options.slp_vectorization = True
        builder = self.binding.create_pass_builder(self.target, options)
        builder.getModulePassManager().run(module, builder)
        return module

    def addresses_of(self, text: str) -> tuple[int, int]:
        """Where the machine code of the functions `loop` and `part` lies; 0 for one that there is not."""
        engine = self.binding.create_mcjit_compiler(self.optimized(text), self.target)
        engine.finalize_object()
        loop, part = (int(engine.get_function_address(name)) for name in ("loop", "part"))
        engine.detach()  # the machine code stays until the process ends
        return loop, part


_llvm_lock = threading.Lock()
_found: _Llvm | None = None
_codes: dict[str, Code] = {}
_queue: queue.SimpleQueue[Code | None] = queue.SimpleQueue()
_thread: threading.Thread | None = None
_start_lock = threading.Lock()
_forked = False


def _llvm() -> _Llvm:
    global _found
    if _found is None:
        _found = _Llvm()
    return _found


def code_of(source: str, parameters: tuple[Any, ...], result: Any = None) -> Code:
    """The code of a source, one for all who want it. It is compiled when it is first asked for, by `MODE`."""
    code = _codes.get(source)
    if code is None:
        code = _codes.setdefault(source, Code(source, parameters, result))
        if len(_codes) > MOST_CODES:
            code.error = f"there is machine code of {MOST_CODES} loops already"
            code.done.set()
        elif _forked:
            pass
        elif MODE == "eager":
            code.compile()
        else:
            _queue.put(code)
            _start()
    return code


def wait(code: Code) -> None:
    """Return when the code is there, or never will be. It is compiled in the calling thread if it has not been begun."""
    if not code.done.is_set() and not _forked:
        code.compile()


_gather: Any = None  # GATHER's function when it is there; False where arrays do not begin so


def _gatherer() -> Any:
    """What calls GATHER; None while it is not compiled, False where it cannot serve. It keeps Python's lock, and so the arrays."""
    global _gather
    if _gather is None and MODE != "off" and installed():
        code = code_of(GATHER, (POINTER, POINTER, LONG))
        if code.function is not None:
            called = ctypes.PYFUNCTYPE(None, *code.parameters)(ctypes.cast(code.function, POINTER).value or 0)
            _gather = called if _begin_with_address() else False
    return _gather


def _begin_with_address() -> bool:
    """Whether an array's object is as GATHER takes it."""
    if sys.implementation.name != "cpython":
        return False
    probe = np.zeros(1)
    return ctypes.c_int64.from_address(id(probe) + object.__basicsize__).value == address(probe)


def assembly(source: str) -> str:
    """The machine code of a source as text, for those who want to read it. **Raises** ImportError where llvmlite is not installed."""
    with _llvm_lock:
        llvm = _llvm()
        return str(llvm.target.emit_assembly(llvm.optimized(translated(source))))


# ---- the thread


def bits(value: float, kind: Any) -> int:
    """A number of a ctypes type as the 8 bytes of a field in a row of arguments."""
    return int.from_bytes(bytes(kind(value)).ljust(8, b"\0"), sys.byteorder, signed=True)


def _start() -> None:
    global _thread
    with _start_lock:
        if _thread is None:
            _thread = threading.Thread(target=_work, name="minimx-compiler", daemon=True)
            try:
                _thread.start()
            except RuntimeError:  # no threads here: NumPy's kernels serve
                return


def _work() -> None:
    """The life of the compiler's thread."""
    while (code := _queue.get()) is not None:
        code.compile()


@atexit.register
def _stop() -> None:
    """At exit: a thread must not be inside LLVM while the process takes that apart, nor may Python be left to close LLVM's objects."""
    if _forked:
        return
    while not _queue.empty():
        _queue.get()
    if _thread is not None:
        _queue.put(None)
        _thread.join(30)
    if _found is not None and _llvm_lock.acquire(timeout=1):
        _found.target.close()


def _after_fork() -> None:
    """In a forked child LLVM's locks may be held by a thread that did not come along: what is compiled serves on, nothing is added."""
    global _forked, _llvm_lock
    _forked = True
    _llvm_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
