"""Processors for which machine code is made: this one, or a level that many have, of x86-64 or the least of aarch64."""

from __future__ import annotations

import functools
import os
from typing import Any

VARIABLE = "GRAPHPREP_CPU"  # names a level, whose code is then used in place of this processor's own

# What a level has beyond those before it, as LLVM calls it: the x86-64 psABI, 3.1.1.
_FEATURES = {
    "x86-64-v2": ("cx16", "popcnt", "sse3", "sse4.1", "sse4.2", "ssse3"),
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"),
    "x86-64-v4": ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
}
_ARM = "aarch64"


@functools.cache
def of_this_processor() -> tuple[str, ...]:
    """Return the levels whose code this processor runs, best first."""
    from llvmlite import binding

    triple = binding.get_process_triple()
    if not triple.startswith("x86_64"):
        return (_ARM,) if triple.startswith((_ARM, "arm64")) else ()
    has = binding.get_host_cpu_features()
    found: list[str] = []
    for level, features in _FEATURES.items():
        if not all(has.get(name, False) for name in features):
            break
        found.insert(0, level)
    return tuple(found)


def chosen() -> str | None:
    """Return the level that GRAPHPREP_CPU names; None where it names none that this processor has."""
    name = os.environ.get(VARIABLE)
    return name if name in of_this_processor() else None


def usable() -> tuple[str, ...]:
    """Return the levels whose shipped code is to be used, best first."""
    level = chosen()
    return of_this_processor() if level is None else (level,)


def target(level: str | None = None) -> tuple[str, str]:
    """Return the processor and its features, as LLVM has them, for which code is made: of a level, or ``chosen``."""
    from llvmlite import binding

    level = level or chosen()
    if level is None:
        return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    return ("generic", "+neon") if level == _ARM else (level, "")


def processor(level: str | None = None) -> str:
    """Name the kind of process and the processor for which code is made."""
    from llvmlite import binding

    return "\n".join((binding.get_process_triple(), *target(level)))


@functools.cache
def target_machine() -> Any:
    """Return LLVM's machine for ``target``."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    kind = binding.Target.from_triple(binding.get_process_triple())
    reloc = "static" if kind.name.startswith("x86") else "default"  # as Numba has it
    return kind.create_target_machine(*target(), opt=3, reloc=reloc, jit=True)
