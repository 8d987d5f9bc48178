"""What compiles kernels: from Numba's functions to object files that need nothing but memcpy and its like.

It is loaded where machine code is missing, and Numba with it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import binding
from numba import types
from numba.core import caching

from graphprep.kernels.compiler import levels

Kinds = tuple[tuple[np.dtype[Any], int], ...]  # as jit has them

_C_LIBRARY = frozenset({"memcmp", "memcpy", "memmove", "memset"})
_TYPES = {"i": types.int64, "u": types.uint64, "f": types.float64, "b": types.uint8}  # by which numbers pass to and from C


if levels.chosen() is not None:  # Numba vectorises for the processor that it knows
    numba.config.CPU_NAME, numba.config.CPU_FEATURES = levels.target()


def make_function(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Make Numba's own function of a kernel."""
    _forgive_full_cache()
    return numba.njit(**options)(function)


@functools.cache
def _forgive_full_cache() -> None:
    """Let a kernel that Numba cannot keep (full disk, quota, file size limit) cost another compilation, not the run."""
    save = caching.Cache.save_overload

    def save_or_not(self: Any, sig: Any, data: Any) -> None:
        with contextlib.suppress(OSError):
            save(self, sig, data)

    caching.Cache.save_overload = save_or_not


def compile_code(kernel: Any, kinds: Kinds, symbol: str, machine: Any) -> tuple[str, bytes]:
    """Compile one of Numba's functions for some types as the C function ``symbol``, for LLVM's ``machine``.

    Returns ``results`` and ``data`` as ``kept.Code`` has them; no data where it must not be kept.
    """
    signature = tuple(map(_numba_type, kinds))
    kernel.compile(signature)
    (returned,) = (one.return_type for one in kernel.nopython_signatures if one.args == signature)
    results = _letters_of(returned)
    if results is None:
        return "", b""
    parameters: list[Any] = []
    for dtype, axes in kinds:
        if axes:
            parameters += [types.CPointer(numba.from_dtype(dtype)), *[types.int64] * axes]
        elif dtype.kind in _TYPES:
            parameters.append(_TYPES[dtype.kind])
    parameters += [types.CPointer(_TYPES[letter]) for letter in results.strip("(")]
    compiled = numba.cfunc(types.void(*parameters))(_make_entry(kernel, kinds, results))
    return results, _emit(compiled.inspect_llvm(), compiled.native_name, symbol, machine)


def _numba_type(kind: tuple[np.dtype[Any], int]) -> Any:
    dtype, axes = kind
    if axes:
        return types.Array(numba.from_dtype(dtype), axes, "C")
    return types.none if dtype.kind == "O" else numba.from_dtype(dtype)


def _letters_of(returned: Any) -> str | None:
    """Write what a kernel returns, as ``Code.results``; None where it is neither numbers nor nothing."""
    if isinstance(returned, types.BaseTuple):
        letters = [_letters_of(one) or "-" for one in returned.types]
        return "(" + "".join(letters) if _TYPES.keys() >= set(letters) else None
    one = types.unliteral(returned)
    if isinstance(one, types.Integer):
        return "i" if one.signed else "u"
    if isinstance(one, types.Float):
        return "f"
    return "b" if one == types.boolean else "" if one == types.none else None


def _make_entry(kernel: Any, kinds: Kinds, results: str) -> Callable[..., None]:
    """Write the C function: it makes arrays of pointers and lengths, calls the kernel and stores what that returns."""
    parameters: list[str] = []
    arguments: list[str] = []
    for at, (dtype, axes) in enumerate(kinds):
        if axes:
            lengths = [f"a{at}_{axis}" for axis in range(axes)]
            parameters += [f"a{at}", *lengths]
            arguments.append(f"carray(a{at}, ({', '.join(lengths)},))")
        elif dtype.kind in _TYPES:
            parameters.append(f"a{at}")
            arguments.append(f"{dtype.name}_(a{at})")
        else:
            arguments.append("None")
    stored = [f"r{at}" for at in range(len(results.strip("(")))]
    lines = [f"def entry({', '.join(parameters + stored)}):", f"    result = kernel({', '.join(arguments)})"]
    for at, pointer in enumerate(stored):
        lines.append(f"    {pointer}[0] = result{f'[{at}]' if results[0] == '(' else ''}")
    numbers = {f"{kind[0].name}_": _numba_type(kind) for kind in kinds if not kind[1]}
    scope: dict[str, Any] = {"kernel": kernel, "carray": numba.carray, **numbers}
    exec("\n".join(lines), scope)
    entry: Callable[..., None] = scope["entry"]
    return entry


def _emit(assembly: str, name: str, symbol: str, machine: Any) -> bytes:
    """Turn LLVM's assembly into an object file that shows ``symbol`` alone; nothing where it needs more than memcpy."""
    module = binding.parse_assembly(assembly)
    for one in (*module.functions, *module.global_variables):
        if one.name == name:
            one.name = symbol
        elif not one.is_declaration:
            one.linkage = "internal"
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
