"""Kernels that are compiled once, kept as machine code, and called without Numba ever after.

Importing Numba and calling one kernel of its cache takes 0.7 s, of which the kernel needs nothing: ``llvmlite`` alone loads its
machine code, in a millisecond. So a kernel is compiled as a C function of pointers, lengths and numbers (``numba.cfunc``), its
object file is kept, and Numba is imported only where one is missing.

A file names what decides its code: the kernel, its types, the sources of its module and of all of ours that this imports, the
versions of the compilers, the processor and its features. It has a checksum, too. So no stale, foreign or damaged code is
loaded. Code that needs more than memcpy and its like (since it allocates or raises) is not kept. There, where a NUMBA_ variable
asks for another build, and for what is neither a C-contiguous array nor a number, Numba runs the kernel, from its own cache.

Arrays that may not be written to are no types of their own: a kernel writes to nothing but what its caller means it to.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import functools
import importlib
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from xxhash import xxh3_128_hexdigest

from graphprep.kernels.compiler.compilation import compiling
from graphprep.kernels.compiler.private_files import is_private_folder, read_private, write_private
from graphprep.model.syntax import PARSER

_FORMAT = "graphprep kernel 1"
_OURS = __name__.partition(".")[0]
_IMPORT = re.compile(r"(?:^|[:;])[ \t]*((?:from[\s\\]+[\w.]+[\s\\]+)?import\b(?:\\\n|\([^()]*\)|[^\n;\\(])*)", re.MULTILINE)
_KERNELS = __name__.rpartition(".compiler.")[0]
_C_LIBRARY = frozenset({"memcmp", "memcpy", "memmove", "memset"})
_HARMLESS = frozenset({"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"})
_LOCK = threading.RLock()  # one thread at a time loads or compiles

Function = Callable[..., Any]
Kind = tuple[np.dtype[Any], int]  # of an argument: dtype and number of axes, 0 for a number; None has dtype object
Kinds = tuple[Kind, ...]
Call = Callable[[tuple[Any, ...]], Any]


# ---- what kernels are made of


def njit(**options: Any) -> Callable[[Function], Kernel]:
    """Make a kernel of a function; the options are those of ``numba.njit``."""
    return lambda function: Kernel(function, options)


def intrinsic(function: Function) -> Intrinsic:
    """Make an intrinsic of a function, as ``numba.extending.intrinsic`` does, but import nothing yet."""
    return Intrinsic(function)


class LateModule:
    """A module that is imported when something of it is first asked for: what intrinsics need when they are compiled."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


ir = LateModule("llvmlite.ir")
types = LateModule("numba.types")


class Intrinsic:
    """A function that writes LLVM's instructions, for kernels to call."""

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
        kinds = tuple([_kind_of(arg) for arg in args])
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
        import numba

        _forgive_full_cache()
        names = self.py_func.__globals__  # where Numba looks up what the function calls
        names.update({name: item.of_numba for name, item in list(names.items()) if isinstance(item, Intrinsic)})
        kept = options.get("cache", False) and _may_numba_keep(self.py_func)
        return numba.njit(**options | {"cache": kept})(self.py_func)

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
                self._calls[kinds] = self._load(kinds)
            return self._calls[kinds]

    def _load(self, kinds: tuple[Kind | None, ...]) -> Call:
        known = tuple([kind for kind in kinds if kind is not None])
        if len(known) < len(kinds) or _is_special_build():
            return self._call_numba
        code = read_code(self.py_func, known)
        if code is None:
            with compiling():
                code = compile_code(self, known)
            write_code(self.py_func, known, code)
        return _bind(code, known) if code.data else self._call_numba

    def _call_numba(self, args: tuple[Any, ...]) -> Any:
        return self.outer(*args)


def _kind_of(arg: Any) -> Kind | None:
    """Return what of an argument decides the code; None where Numba must look at it."""
    cls = type(arg)
    if cls is np.ndarray or cls is np.memmap:
        flags = arg.flags
        return (arg.dtype, arg.ndim) if flags.c_contiguous and flags.aligned and _is_plain(arg.dtype) and arg.ndim else None
    if cls is int:
        return _INT if -0x8000000000000000 <= arg <= 0x7FFFFFFFFFFFFFFF else _UINT
    if cls is bool:
        return _BOOL
    if cls is float:
        return _FLOAT
    if arg is None:
        return _NONE
    return (arg.dtype, 0) if isinstance(arg, np.generic) and _is_plain(arg.dtype) else None


_INT, _UINT, _BOOL, _FLOAT, _NONE = ((np.dtype(name), 0) for name in ("int64", "uint64", "bool", "float64", "object"))
_PLAIN = frozenset(map(np.dtype, ("?", "b", "B", "h", "H", "i", "I", "l", "L", "q", "Q", "f", "d")))


def _is_plain(dtype: np.dtype[Any]) -> bool:
    return dtype in _PLAIN


def _is_special_build() -> bool:
    """Return whether a variable asks Numba for code of another kind, such as NUMBA_BOUNDSCHECK."""
    return any(name.startswith("NUMBA_") and name not in _HARMLESS for name in os.environ)


@functools.cache
def _forgive_full_cache() -> None:
    """Let a kernel that Numba cannot keep (full disk, quota, file size limit) cost another compilation, not the run."""
    from numba.core import caching

    save = caching.Cache.save_overload

    def save_or_not(self: Any, sig: Any, data: Any) -> None:
        with contextlib.suppress(OSError):
            save(self, sig, data)

    caching.Cache.save_overload = save_or_not


def _may_numba_keep(function: Function) -> bool:
    """Return whether the folder of Numba's own cache is the user's: what lies there is loaded as it is."""
    from numba import config

    folder = Path(config.CACHE_DIR) if config.CACHE_DIR else Path(function.__code__.co_filename).parent / "__pycache__"
    return not folder.exists() or is_private_folder(folder)


# ---- files


class Code(NamedTuple):
    """An object file that defines the function ``symbol``; ``data`` is empty where Numba must run the kernel.

    ``results`` has a letter for each number that the kernel returns: i (signed), u (unsigned), f (floating) or b (bool); it
    begins with ``(`` where they are a tuple. The C function stores them at pointers, which follow its other parameters.
    """

    symbol: str
    results: str
    data: bytes


def read_code(function: Function, kinds: Kinds) -> Code | None:
    """Return a kernel's code for some types; None where no file holds what would be compiled now."""
    key = _key_of(function, kinds)
    for folder in _folders():
        with contextlib.suppress(OSError, ValueError):
            content = read_private(folder / _file_name(function, kinds))
            checksum, found, head, data = content.split(b"\0", 3)
            if found == key and checksum.decode() == xxh3_128_hexdigest(content[len(checksum) :]):
                symbol, _, results = head.decode().partition(" ")
                return Code(symbol, results, data)
    return None


def write_code(function: Function, kinds: Kinds, code: Code) -> None:
    """Keep a kernel's code in the first folder that takes it; where none does, it is compiled anew in the next process.

    Code is loaded from, and written to, folders and files of the user's own or root's that nobody else may write to.
    """
    content = b"\0".join((b"", _key_of(function, kinds), f"{code.symbol} {code.results}".encode(), code.data))
    content = xxh3_128_hexdigest(content).encode() + content
    for folder in _folders():
        with contextlib.suppress(OSError):
            write_private(folder / _file_name(function, kinds), content)
            return


def _folders() -> Iterator[Path]:
    """Yield where code may be: in NUMBA_CACHE_DIR, else beside the sources, or else with the user's caches."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    yield Path(chosen) if chosen else Path(__file__).parent / "__pycache__"
    with contextlib.suppress(RuntimeError):  # nobody's home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "graphprep"


def _file_name(function: Function, kinds: Kinds) -> str:
    """Name a file: one for each kernel, types and machine, so that code of newer sources takes the place of old code."""
    digest = xxh3_128_hexdigest(f"{_text_of(kinds)}\n{_machine()}".encode())[:16]
    module = function.__module__.removeprefix(f"{_KERNELS}.cpu.")
    return f"{module}.{function.__qualname__}-{digest}.kernel"


def _key_of(function: Function, kinds: Kinds) -> bytes:
    """Write down what decides the code."""
    name = f"{function.__module__}.{function.__qualname__}({_text_of(kinds)})"
    return "\n".join((_FORMAT, name, _digest_of_sources(function.__module__), _machine())).encode()


def _text_of(kinds: Kinds) -> str:
    """Write types: ``u1[1] i8 f8[2]``."""
    return " ".join(f"{dtype.str[1:]}[{axes}]" if axes else dtype.str[1:] for dtype, axes in kinds)


@functools.cache
def _digest_of_sources(module: str) -> str:
    """Hash the sources that decide what the kernels of a module do."""
    sources = _sources_of(module)
    return xxh3_128_hexdigest(b"\0".join(part for name in sorted(sources) for part in (name.encode(), sources[name])))


def _sources_of(module: str) -> dict[str, bytes]:
    """Read a module, all of ours that it imports, and what they import."""
    sources: dict[str, bytes] = {}
    pending = [module, __name__]
    while pending:
        name = pending.pop()
        if name not in sources and (read := _read_source(name)) is not None:
            sources[name], imported = read
            pending += imported
    return sources


@functools.cache
def _read_source(name: str) -> tuple[bytes, list[str]] | None:
    """Read a module's source, and what of ours it imports; None for a name in a package that is no module."""
    spec = _find(name)
    if spec is None or spec.origin is None:
        return None
    source = Path(spec.origin).read_bytes()
    return source, _imports_of(source, name if spec.submodule_search_locations else spec.parent or "")


def _imports_of(source: bytes, package: str) -> list[str]:
    """Return what of ours a source imports, anywhere in it: modules, and names in packages, which may be modules.

    Only its import statements are parsed (the whole takes 10 ms a module), unless one of them cannot be by itself.
    """
    text = source.decode()
    with PARSER:
        try:
            statements = ast.parse("\n".join(_IMPORT.findall(text))).body
        except SyntaxError:
            statements = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)]
    imported: list[str] = []
    for node in statements:
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names if _is_ours(alias.name)]
        elif isinstance(node, ast.ImportFrom):
            module = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            spec = _find(module) if _is_ours(module) else None
            if spec is not None:
                imported.append(module)
                imported += [f"{module}.{alias.name}" for alias in node.names if spec.submodule_search_locations]
    return imported


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == _OURS


@functools.cache
def _find(name: str) -> ModuleSpec | None:
    """Find a module; None where the name is something else."""
    return importlib.util.find_spec(name)


@functools.cache
def _machine() -> str:
    """Name the compilers and the processor."""
    from llvmlite import binding

    compilers = f"numba {version('numba')}, llvmlite {version('llvmlite')}, {sys.implementation.cache_tag}"
    features = binding.get_host_cpu_features().flatten()
    return "\n".join((compilers, binding.get_process_triple(), binding.get_host_cpu_name(), features))


# ---- compiling


def compile_code(kernel: Kernel, kinds: Kinds) -> Code:
    """Compile a kernel for some types as a C function. The code is empty where it must not be kept."""
    import numba
    from numba import types

    signature = tuple(_numba_type(kind) for kind in kinds)
    kernel.inner.compile(signature)
    (returned,) = (one.return_type for one in kernel.inner.nopython_signatures if one.args == signature)
    results = _letters_of(returned)
    if results is None:
        return Code("", "", b"")
    parameters: list[Any] = []
    for dtype, axes in kinds:
        if axes:
            parameters += [types.CPointer(numba.from_dtype(dtype)), *[types.int64] * axes]
        elif dtype.kind in _LETTERS:
            parameters.append(_LETTERS[dtype.kind].numba_type)
    parameters += [types.CPointer(_LETTERS[letter].numba_type) for letter in results.strip("(")]
    compiled = numba.cfunc(types.void(*parameters))(_make_entry(kernel, kinds, results))
    symbol = f"graphprep_{xxh3_128_hexdigest(_key_of(kernel.py_func, kinds))}"
    return Code(symbol, results, _emit(compiled.inspect_llvm(), compiled.native_name, symbol))


def _numba_type(kind: Kind) -> Any:
    import numba
    from numba import types

    dtype, axes = kind
    if axes:
        return types.Array(numba.from_dtype(dtype), axes, "C")
    return types.none if kind == _NONE else numba.from_dtype(dtype)


class _Number(NamedTuple):
    """How numbers of a kind pass to and from C: Numba's name of the type, and ctypes' type."""

    numba_name: str
    c_type: Any

    @property
    def numba_type(self) -> Any:
        return getattr(types, self.numba_name)


_LETTERS = {
    "i": _Number("int64", ctypes.c_int64),
    "u": _Number("uint64", ctypes.c_uint64),
    "f": _Number("float64", ctypes.c_double),
    "b": _Number("uint8", ctypes.c_bool),
}


def _letters_of(returned: Any) -> str | None:
    """Write what a kernel returns, as ``Code.results``; None where it is neither numbers nor nothing."""
    from numba import types

    if isinstance(returned, types.BaseTuple):
        letters = [_letters_of(one) or "-" for one in returned.types]
        return "(" + "".join(letters) if all(letter in _LETTERS for letter in letters) else None
    one = types.unliteral(returned)
    if isinstance(one, types.Integer):
        return "i" if one.signed else "u"
    if isinstance(one, types.Float):
        return "f"
    return "b" if one == types.boolean else "" if one == types.none else None


def _make_entry(kernel: Kernel, kinds: Kinds, results: str) -> Callable[..., None]:
    """Write the C function: it makes arrays of pointers and lengths, calls the kernel and stores what that returns."""
    import numba

    parameters: list[str] = []
    arguments: list[str] = []
    for at, (dtype, axes) in enumerate(kinds):
        if axes:
            lengths = [f"a{at}_{axis}" for axis in range(axes)]
            parameters += [f"a{at}", *lengths]
            arguments.append(f"carray(a{at}, ({', '.join(lengths)},))")
        elif dtype.kind in _LETTERS:
            parameters.append(f"a{at}")
            arguments.append(f"{dtype.name}_(a{at})")
        else:
            arguments.append("None")
    stored = [f"r{at}" for at in range(len(results.strip("(")))]
    lines = [f"def entry({', '.join(parameters + stored)}):", f"    result = kernel({', '.join(arguments)})"]
    for at, pointer in enumerate(stored):
        lines.append(f"    {pointer}[0] = result{f'[{at}]' if results[0] == '(' else ''}")
    numbers = {f"{kind[0].name}_": _numba_type(kind) for kind in kinds if not kind[1]}
    scope: dict[str, Any] = {"kernel": kernel.inner, "carray": numba.carray, **numbers}
    exec("\n".join(lines), scope)
    entry: Callable[..., None] = scope["entry"]
    return entry


def _emit(assembly: str, name: str, symbol: str) -> bytes:
    """Turn LLVM's assembly into an object file that shows ``symbol`` alone; nothing where it needs more than memcpy."""
    from llvmlite import binding

    module = binding.parse_assembly(assembly)
    for one in (*module.functions, *module.global_variables):
        if one.name == name:
            one.name = symbol
        elif not one.is_declaration:
            one.linkage = "internal"
    machine = _target_machine()
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=3))
    passes = binding.create_new_module_pass_manager()
    passes.add_ipsccp_pass()  # finds that a kernel never fails, so that what would report it can go
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, builder)
    if not _stands_alone(module):
        builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module)) if _stands_alone(module) else b""


def _stands_alone(module: Any) -> bool:
    """Return whether a module of LLVM needs nothing but the C library's memory functions."""
    needed = [one.name for one in (*module.functions, *module.global_variables) if one.is_declaration]
    return all(name.startswith("llvm.") or name in _C_LIBRARY for name in needed)


# ---- loading


@functools.cache
def _target_machine() -> Any:
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    target = binding.Target.from_triple(binding.get_process_triple())
    cpu, features = binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    reloc = "static" if target.name.startswith("x86") else "default"  # as Numba has it
    return target.create_target_machine(cpu, features, opt=3, reloc=reloc, jit=True)


@functools.cache
def _engine() -> Any:
    """Return what holds loaded code, as long as the process lives."""
    from llvmlite import binding

    return binding.create_mcjit_compiler(binding.parse_assembly(""), _target_machine())


def _bind(code: Code, kinds: Kinds) -> Call:
    """Load a kernel's code and return what calls it. ctypes lets other threads run meanwhile."""
    from llvmlite import binding

    _engine().add_object_file(binding.ObjectFileRef.from_data(code.data))
    _engine().finalize_object()
    parameters: list[Any] = []
    for dtype, axes in kinds:
        if axes:
            parameters += [ctypes.c_void_p, *[ctypes.c_int64] * axes]
        elif dtype.kind in _LETTERS:
            parameters.append(_LETTERS[dtype.kind].c_type)
    returned = [_LETTERS[letter].c_type for letter in code.results.strip("(")]
    parameters += map(ctypes.POINTER, returned)
    function = ctypes.CFUNCTYPE(None, *parameters)(_engine().get_function_address(code.symbol))
    is_tuple = code.results.startswith("(")

    def call(args: tuple[Any, ...]) -> Any:
        values: list[Any] = []
        for arg in args:
            if isinstance(arg, np.ndarray):
                values.append(arg.ctypes.data)
                values += arg.shape
            elif arg is not None:
                values.append(arg.item() if isinstance(arg, np.generic) else arg)
        results = [kind() for kind in returned]
        function(*values, *map(ctypes.byref, results))
        if is_tuple:
            return tuple([result.value for result in results])
        return results[0].value if results else None

    return call
