"""Files of machine code: what names them, where they lie, and whom they are trusted from.

A file names what decides its code: the kernel, its types, the sources of its module and of all of ours that this imports, the
versions of the compilers, the processor and its features. It has a checksum, too. So no stale, foreign or damaged code is
loaded.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib.util
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from xxhash import xxh3_128, xxh3_128_hexdigest

from graphprep.kernels.compiler import levels
from graphprep.model.syntax import PARSER

_FORMAT = "graphprep kernel 1"
_OURS = f"{__name__.partition('.')[0]}."
_IMPORT = re.compile(r"(?:^|[:;])[ \t]*((?:from[\s\\]+[\w.]+[\s\\]+)?import\b(?:\\\n|\([^()]*\)|[^\n;\\(])*)", re.MULTILINE)
_KERNELS = __name__.rpartition(".compiler.")[0]
_COMPILERS = tuple(f"{__package__}.{name}" for name in ("jit", "levels", "machine_code"))  # what decides code, beside kernels
_find = functools.cache(importlib.util.find_spec)  # of a module by its name; None where that is something else
_name_of = attrgetter("name")
_FILE = re.compile(r".+-[0-9a-f]{16}\.kernel(\.[0-9a-f]{12})?")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_HAS_OWNERS = hasattr(os, "geteuid")  # on Windows folders of a user are that user's unless somebody was let in

Function = Callable[..., Any]
Kind = tuple[np.dtype[Any], int]  # of an argument: dtype and number of axes, 0 for a number; None has dtype object
Kinds = tuple[Kind, ...]


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
    found = _find_code(function, kinds)
    return None if found is None else found[1]


def find_folder(function: Function, kinds: Kinds) -> Path | None:
    """Return the folder that holds a kernel's code for some types."""
    found = _find_code(function, kinds)
    return None if found is None else found[0]


def _find_code(function: Function, kinds: Kinds) -> tuple[Path, Code] | None:
    name, key = name_code(function, kinds, _machine())
    for folder in folders():
        with contextlib.suppress(OSError, ValueError):
            code = unpack(read_private(folder / name), key)
            if code is not None:
                return folder, code
    return None


def unpack(content: bytes, key: bytes) -> Code | None:
    """Return the code that a file holds; None where it is another's. Raises ValueError where it is none of ours."""
    checksum, found, head, data = content.split(b"\0", 3)
    if found != key or checksum.decode() != xxh3_128_hexdigest(content[len(checksum) :]):
        return None
    symbol, _, results = head.decode().partition(" ")
    return Code(symbol, results, data)


def pack(code: Code, key: bytes) -> bytes:
    """Return what is in the file of a kernel's code."""
    content = b"\0".join((b"", key, f"{code.symbol} {code.results}".encode(), code.data))
    return xxh3_128_hexdigest(content).encode() + content


def write_code(function: Function, kinds: Kinds, code: Code) -> bool:
    """Keep a kernel's code in the first folder that takes it; return False where none does: it is compiled anew next time.

    Code is loaded from, and written to, folders and files of the user's own or root's that nobody else may write to.
    """
    name, key = name_code(function, kinds, _machine())
    content = pack(code, key)
    for folder in folders():
        with contextlib.suppress(OSError):
            write_private(folder / name, content)
            return True
    return False


def find_place() -> Path | None:
    """Return the folder that takes code, which is made where it is not there; None where there is none."""
    for folder in folders():
        with contextlib.suppress(OSError):
            _make_folder(folder)
            if is_private_folder(folder) and os.access(folder, os.W_OK):
                return folder
    return None


def files() -> Iterator[Path]:
    """Yield the files of code in ``folders``, also those of which a killed process wrote a part."""
    for folder in folders():
        if folder.is_dir():
            yield from (path for path in folder.iterdir() if _FILE.fullmatch(path.name) and path.is_file())


def folders() -> list[Path]:
    """Return where code may be: in NUMBA_CACHE_DIR, else beside the sources, or else with the user's caches."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    found = [Path(chosen) if chosen else Path(__file__).parent / "__pycache__"]
    with contextlib.suppress(RuntimeError):  # nobody's home
        found.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "graphprep")
    return found


def name_code(function: Function, kinds: Kinds, machine: str) -> tuple[str, bytes]:
    """Return the name of a kernel's file, and what decides its code.

    There is one file for each kernel, types and machine, so that code of newer sources takes the place of old code.
    """
    name, types = f"{function.__module__}.{function.__qualname__}", text_of(kinds)
    digest = xxh3_128_hexdigest(f"{types}\n{machine}".encode())[:16]
    key = "\n".join((_FORMAT, f"{name}({types})", _digest_of_sources(function.__module__), machine))
    return f"{name.removeprefix(f'{_KERNELS}.cpu.')}-{digest}.kernel", key.encode()


def symbol_of(function: Function, kinds: Kinds, level: str | None = None) -> str:
    """Return what the C function of a kernel is called, which tells all that decides its code."""
    return f"graphprep_{xxh3_128_hexdigest(name_code(function, kinds, _machine(level))[1])}"


def text_of(kinds: Kinds) -> str:
    """Write types: ``u1[1] i8 f8[2]``."""
    text = ""
    for dtype, axes in kinds:
        text += f" {dtype.str[1:]}[{axes}]" if axes else f" {dtype.str[1:]}"
    return text[1:]


def kinds_of(text: str) -> Kinds:
    """Read what ``text_of`` wrote."""
    found = []
    for word in text.split():
        dtype, _, axes = word.rstrip("]").partition("[")
        found.append((np.dtype(dtype), int(axes or 0)))
    return tuple(found)


@functools.cache
def _digest_of_sources(module: str) -> str:
    """Hash the sources that decide what the kernels of a module do."""
    digest = xxh3_128()
    for name, source in sorted(_sources_of(module).items()):
        digest.update(f"{name} {len(source)} ".encode() + source)
    return digest.hexdigest()


def _sources_of(module: str) -> dict[str, bytes]:
    """Read a module, all of ours that it imports, and what they import, and what compiles: sources by name."""
    sources = {name: read[0] for name in _COMPILERS if (read := _read_source(name)) is not None}
    pending = [module]
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
def _machine(level: str | None = None) -> str:
    """Name the compilers and the processor."""
    compilers = f"numba {version('numba')}, llvmlite {version('llvmlite')}, {sys.implementation.cache_tag}"
    return f"{compilers}\n{levels.processor(level)}"


# ---- files that nobody but the user (or root) can have written: machine code is loaded from no others


def read_private(path: Path) -> bytes:
    """Return what is in a file. Raises OSError where it cannot be read or somebody else may have written it."""
    if not _HAS_OWNERS:
        return path.read_bytes()
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
    if not _HAS_OWNERS:
        path.with_name(part).write_bytes(content)
        path.with_name(part).replace(path)
        return
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
    if not _HAS_OWNERS:
        return path.is_dir()
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
