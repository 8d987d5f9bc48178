"""Kernels that are compiled once, kept as machine code, and called without Numba ever after.

Importing Numba and calling one kernel of its cache takes 0.7 s, of which the kernel needs nothing: ``llvmlite`` alone loads its
machine code, in a millisecond. So a kernel is compiled as a C function of pointers, lengths and numbers (``numba.cfunc``), its
object file comes with the package (``shipped``) or is kept (``kept``), and Numba is imported only where one is missing.
Code that needs more than memcpy and its like (since it allocates or raises) is not kept. There, where a NUMBA_ variable asks
for another build, and for what is neither a C-contiguous array nor a number, Numba runs the kernel, from its own cache.

Arrays that may not be written to are no types of their own: a kernel writes to nothing but what its caller means it to.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
import threading
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import numpy as np

from graphprep.kernels.compiler import levels, shipped
from graphprep.kernels.compiler.kept import Code, Function, Kind, Kinds, is_private_folder, symbol_of, write_code
from graphprep.model.shown.compilation import compiling

_HARMLESS = frozenset({"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"})
_called: list[tuple[Function, Kinds]] = []  # in this process, each once
_LOCK = threading.RLock()  # one thread at a time loads or compiles
_C_TYPES: dict[str, Any] = {"i": ctypes.c_int64, "u": ctypes.c_uint64, "f": ctypes.c_double, "b": ctypes.c_bool}
_value_of = attrgetter("value")

Call = Callable[[tuple[Any, ...]], Any]


# ---- what kernels are made of


def njit(**options: Any) -> Callable[[Function], Kernel]:
    """Make a kernel of a function; the options are those of ``numba.njit``."""
    return functools.partial(Kernel, options=options)


class LateModule(ModuleType):
    """A module that is imported when something of it is first asked for: what intrinsics need when they are compiled."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


ir = LateModule("llvmlite.ir")
types = LateModule("numba.types")


class Intrinsic:
    """A function that writes LLVM's instructions, for kernels to call: ``numba.extending.intrinsic``, imported late."""

    def __init__(self, function: Function) -> None:
        functools.update_wrapper(self, function)
        self._function = function

    @functools.cached_property
    def of_numba(self) -> Any:
        """Numba's own object."""
        from numba.extending import intrinsic as make

        return make(self._function)


class Kernel:
    """A compiled function of arrays and numbers. Kernels may call each other; then they are compiled into one."""

    def __init__(self, function: Function, options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._options = options
        self._calls: dict[tuple[Any, ...], Call] = {}

    def __call__(self, *args: Any) -> Any:
        """Run the kernel, compiled for the types of the arguments."""
        kinds = tuple(map(_kind_of, args))
        call = self._calls.get(kinds) or self._find(kinds)
        return call(args)

    @functools.cached_property
    def inner(self) -> Any:
        """Numba's function, for C functions and other kernels alone.

        Numba keeps it nowhere: its cache does not see what changes in the files of the kernels it calls.
        """
        return self._jit(self._options | {"cache": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True})

    @functools.cached_property
    def outer(self) -> Any:
        """Numba's function, to be called by itself."""
        return self._jit(self._options)

    def _jit(self, options: dict[str, Any]) -> Any:
        from graphprep.kernels.compiler.machine_code import make_function

        names = self.py_func.__globals__  # where Numba looks up what the function calls
        names.update({name: item.of_numba for name, item in list(names.items()) if isinstance(item, Intrinsic)})
        kept = options.get("cache", False) and _may_numba_keep(self.py_func)
        return make_function(self.py_func, options | {"cache": kept})

    @property
    def _numba_type_(self) -> Any:
        """Say what this is, where another kernel calls it: Numba asks for this name."""
        import numba

        return numba.typeof(self.inner)

    @property
    def targetoptions(self) -> Any:
        """Say whether to inline the function, where another kernel calls it: Numba asks for this name."""
        return self.inner.targetoptions

    def _find(self, kinds: tuple[Kind | None, ...]) -> Call:
        with _LOCK:
            if kinds not in self._calls:
                by_numba = None in kinds or _is_special_build()
                self._calls[kinds] = self._call_numba if by_numba else self._load(cast(Kinds, kinds))
            return self._calls[kinds]

    def _load(self, kinds: Kinds) -> Call:
        _called.append((self.py_func, kinds))
        code = shipped.find_code(self.py_func, kinds)
        if code is None:
            from graphprep.kernels.compiler.ahead import foresight

            with compiling():
                code = foresight.compile(self.py_func, kinds, _called)
                if code is None:
                    code = self.compile(kinds)
                    write_code(self.py_func, kinds, code)
        return _bind(code, kinds) if code.data else self._call_numba

    def compile(self, kinds: Kinds) -> Code:
        """Compile the kernel for some types, for this processor or what GRAPHPREP_CPU names."""
        from graphprep.kernels.compiler.machine_code import compile_code

        symbol = symbol_of(self.py_func, kinds)
        return Code(symbol, *compile_code(self.inner, kinds, symbol, levels.target_machine()))

    def _call_numba(self, args: tuple[Any, ...]) -> Any:
        return self.outer(*args)


def _kind_of(arg: Any) -> Kind | None:
    """Return what of an argument decides the code; None where Numba must look at it."""
    cls = type(arg)
    if cls is np.ndarray or cls is np.memmap:
        flags = arg.flags
        return (arg.dtype, arg.ndim) if flags.c_contiguous and flags.aligned and arg.dtype in _PLAIN and arg.ndim else None
    if cls is int:
        return _INT if -0x8000000000000000 <= arg <= 0x7FFFFFFFFFFFFFFF else _UINT
    if cls is bool:
        return _BOOL
    if cls is float:
        return _FLOAT
    if arg is None:
        return _NONE
    return (arg.dtype, 0) if isinstance(arg, np.generic) and arg.dtype in _PLAIN else None


_INT, _UINT = (np.dtype("int64"), 0), (np.dtype("uint64"), 0)
_BOOL, _FLOAT, _NONE = (np.dtype("bool"), 0), (np.dtype("float64"), 0), (np.dtype("object"), 0)
_PLAIN = frozenset(map(np.dtype, ("?", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "f", "d")))


def _is_special_build() -> bool:
    """Return whether a variable asks Numba for code of another kind, such as NUMBA_BOUNDSCHECK."""
    for name in os.environ:
        if name.startswith("NUMBA_") and name not in _HARMLESS:
            return True
    return False


def _may_numba_keep(function: Function) -> bool:
    """Return whether the folder of Numba's own cache is the user's: what lies there is loaded as it is."""
    from numba import config

    folder = Path(config.CACHE_DIR) if config.CACHE_DIR else Path(function.__code__.co_filename).parent / "__pycache__"
    return not folder.exists() or is_private_folder(folder)


# ---- loading


@functools.cache
def _engine() -> Any:
    """Return what holds loaded code, as long as the process lives."""
    from llvmlite import binding

    return binding.create_mcjit_compiler(binding.parse_assembly(""), levels.target_machine())


def _bind(code: Code, kinds: Kinds) -> Call:
    """Load a kernel's code and return what calls it. ctypes lets other threads run meanwhile."""
    from llvmlite import binding

    _engine().add_object_file(binding.ObjectFileRef.from_data(code.data))
    _engine().finalize_object()
    parameters: list[Any] = []
    for dtype, axes in kinds:
        if axes:
            parameters += [ctypes.c_void_p, *[ctypes.c_int64] * axes]
        elif dtype.kind in _C_TYPES:
            parameters.append(_C_TYPES[dtype.kind])
    returned = list(map(_C_TYPES.__getitem__, code.results.strip("(")))
    function = ctypes.CFUNCTYPE(None, *parameters, *map(ctypes.POINTER, returned))(_engine().get_function_address(code.symbol))
    is_tuple = code.results.startswith("(")

    def call(args: tuple[Any, ...]) -> Any:
        values: list[Any] = []
        for arg in args:
            if isinstance(arg, np.ndarray):
                values.append(arg.ctypes.data)
                values += arg.shape
            elif arg is not None:
                values.append(arg.item() if isinstance(arg, np.generic) else arg)
        results = []
        for kind in returned:
            results.append(kind())
            values.append(ctypes.byref(results[-1]))
        function(*values)
        found = tuple(map(_value_of, results))
        if is_tuple:
            return found
        return found[0] if found else None

    return call
