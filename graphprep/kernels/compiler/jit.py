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
import stat
import sys
import threading
from collections.abc import Callable
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, cast

import numpy as np
from xxhash import xxh3_128, xxh3_128_hexdigest

from graphprep.model.syntax import PARSER

_FORMAT = "graphprep kernel 1"
_OURS = f"{__name__.partition('.')[0]}."
_IMPORT = re.compile(r"(?:^|[:;])[ \t]*((?:from[\s\\]+[\w.]+[\s\\]+)?import\b(?:\\\n|\([^()]*\)|[^\n;\\(])*)", re.MULTILINE)
_KERNELS = __name__.rpartition(".compiler.")[0]
_HARMLESS = frozenset({"NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS"})
_find = functools.cache(importlib.util.find_spec)  # of a module by its name; None where that is something else
_LOCK = threading.RLock()  # one thread at a time loads or compiles
_C_TYPES: dict[str, Any] = {"i": ctypes.c_int64, "u": ctypes.c_uint64, "f": ctypes.c_double, "b": ctypes.c_bool}
_name_of, _value_of = attrgetter("name"), attrgetter("value")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH

Function = Callable[..., Any]
Kind = tuple[np.dtype[Any], int]  # of an argument: dtype and number of axes, 0 for a number; None has dtype object
Kinds = tuple[Kind, ...]
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
        code = read_code(self.py_func, kinds)
        if code is None:
            from graphprep.kernels.compiler.compilation import compiling
            from graphprep.kernels.compiler.machine_code import compile_code

            with compiling():
                symbol = f"graphprep_{xxh3_128_hexdigest(_name_code(self.py_func, kinds)[1])}"
                code = Code(symbol, *compile_code(self.inner, kinds, symbol, _target_machine()))
            write_code(self.py_func, kinds, code)
        return _bind(code, kinds) if code.data else self._call_numba

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
    name, key = _name_code(function, kinds)
    for folder in _folders():
        with contextlib.suppress(OSError, ValueError):
            content = read_private(folder / name)
            checksum, found, head, data = content.split(b"\0", 3)
            if found == key and checksum.decode() == xxh3_128_hexdigest(content[len(checksum) :]):
                symbol, _, results = head.decode().partition(" ")
                return Code(symbol, results, data)
    return None


def write_code(function: Function, kinds: Kinds, code: Code) -> None:
    """Keep a kernel's code in the first folder that takes it; where none does, it is compiled anew in the next process.

    Code is loaded from, and written to, folders and files of the user's own or root's that nobody else may write to.
    """
    name, key = _name_code(function, kinds)
    content = b"\0".join((b"", key, f"{code.symbol} {code.results}".encode(), code.data))
    content = xxh3_128_hexdigest(content).encode() + content
    for folder in _folders():
        with contextlib.suppress(OSError):
            write_private(folder / name, content)
            return


def _folders() -> list[Path]:
    """Return where code may be: in NUMBA_CACHE_DIR, else beside the sources, or else with the user's caches."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    folders = [Path(chosen) if chosen else Path(__file__).parent / "__pycache__"]
    with contextlib.suppress(RuntimeError):  # nobody's home
        folders.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "graphprep")
    return folders


def _name_code(function: Function, kinds: Kinds) -> tuple[str, bytes]:
    """Return the name of a kernel's file, and what decides its code.

    There is one file for each kernel, types and machine, so that code of newer sources takes the place of old code.
    """
    name, types = f"{function.__module__}.{function.__qualname__}", text_of(kinds)
    digest = xxh3_128_hexdigest(f"{types}\n{_machine()}".encode())[:16]
    key = "\n".join((_FORMAT, f"{name}({types})", _digest_of_sources(function.__module__), _machine()))
    return f"{name.removeprefix(f'{_KERNELS}.cpu.')}-{digest}.kernel", key.encode()


def text_of(kinds: Kinds) -> str:
    """Write types: ``u1[1] i8 f8[2]``."""
    text = ""
    for dtype, axes in kinds:
        text += f" {dtype.str[1:]}[{axes}]" if axes else f" {dtype.str[1:]}"
    return text[1:]


@functools.cache
def _digest_of_sources(module: str) -> str:
    """Hash the sources that decide what the kernels of a module do."""
    digest = xxh3_128()
    for name, source in sorted(_sources_of(module).items()):
        digest.update(f"{name} {len(source)} ".encode() + source)
    return digest.hexdigest()


def _sources_of(module: str) -> dict[str, bytes]:
    """Read a module, all of ours that it imports, and what they import: sources by name."""
    sources: dict[str, bytes] = {}
    pending = [module, __name__]
    while pending:
        name = pending.pop()
        is_wanted = name not in sources and (name == module or f"{name}.".startswith(_OURS))
        if is_wanted and (read := _read_source(name)) is not None:
            sources[name], imported = read
            pending += imported
    return sources


@functools.cache
def _read_source(name: str) -> tuple[bytes, list[str]] | None:
    """Read a module's source, and what it imports; None for a name in a package that is no module."""
    spec = _find(name)
    if spec is None or spec.origin is None:
        return None
    source = Path(spec.origin).read_bytes()
    return source, _imports_of(source, name if spec.submodule_search_locations else spec.parent or "")


def _imports_of(source: bytes, package: str) -> list[str]:
    """Return what a source imports, anywhere in it: modules, and names in packages of ours, which may be modules.

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
            imported += map(_name_of, node.names)
        elif isinstance(node, ast.ImportFrom):
            module = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            spec = _find(module) if f"{module}.".startswith(_OURS) else None
            imported.append(module)
            if spec is not None and spec.submodule_search_locations:
                imported += map(f"{module}.".__add__, map(_name_of, node.names))
    return imported


@functools.cache
def _machine() -> str:
    """Name the compilers and the processor."""
    from llvmlite import binding

    compilers = f"numba {version('numba')}, llvmlite {version('llvmlite')}, {sys.implementation.cache_tag}"
    features = binding.get_host_cpu_features().flatten()
    return "\n".join((compilers, binding.get_process_triple(), binding.get_host_cpu_name(), features))


# ---- files that nobody but the user (or root) can have written: machine code is loaded from no others


def read_private(path: Path) -> bytes:
    """Return what is in a file. Raises OSError where it cannot be read or somebody else may have written it."""
    folder = _open_private(path.parent, os.O_DIRECTORY)
    try:
        # O_NONBLOCK: opening a FIFO must not wait for its writer
        with os.fdopen(_open_private(path.name, os.O_NOFOLLOW | os.O_NONBLOCK, folder), "rb") as file:
            return file.read()
    finally:
        os.close(folder)


def write_private(path: Path, content: bytes) -> None:
    """Write a file for the user alone, so that nobody sees half of it, whoever else writes it now.

    Makes the folder where there is none. Raises OSError where that fails or somebody else may write to the folder.
    """
    _make_folder(path.parent)
    part = f"{path.name}.{os.urandom(6).hex()}"
    folder = _open_private(path.parent, os.O_DIRECTORY)
    try:
        number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            with os.fdopen(number, "wb") as file:
                os.fchmod(number, 0o600)  # whatever the umask
                file.write(content)
            os.replace(part, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(part, dir_fd=folder)
            raise
    finally:
        os.close(folder)


def is_private_folder(path: Path) -> bool:
    """Return whether a folder is there and nobody else may write to it."""
    try:
        os.close(_open_private(path, os.O_DIRECTORY))
    except OSError:
        return False
    return True


def _make_folder(path: Path) -> None:
    """Make a folder, and those above that are not there, for the user alone."""
    missing = [folder for folder in (*reversed(path.parents), path) if not folder.exists()]
    for folder in missing:
        with contextlib.suppress(FileExistsError):  # another process was quicker
            folder.mkdir(mode=0o700)
            folder.chmod(0o700)  # whatever the umask


def _open_private(path: Path | str, flags: int, folder: int | None = None) -> int:
    """Open a folder, or a regular file in ``folder``, for reading; PermissionError where somebody else may write to it.

    It belongs to the user or to root, and neither its group nor others may write to it. Whoever may write to a folder may
    exchange its files, so it is opened first, and looked at once it is open.
    """
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags, dir_fd=folder)
    found = os.fstat(number)
    is_kind = stat.S_ISDIR if flags & os.O_DIRECTORY else stat.S_ISREG
    if not is_kind(found.st_mode) or found.st_uid not in {0, os.geteuid()} or found.st_mode & _OTHERS_WRITE:
        os.close(number)
        raise PermissionError("others may write here")
    return number


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
