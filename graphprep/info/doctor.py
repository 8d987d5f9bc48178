"""What graphprep finds on this machine: versions, processor, kernels, extras, devices, memory and places to write to."""

from __future__ import annotations

import itertools
import os
import platform
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

from graphprep.edges.device.find import DeviceChoice, look
from graphprep.engine.budget import (
    MemoryLimit,
    available_memory,
    compiling_jobs,
    default_threads,
    format_size,
    memory_limit,
    memory_limits,
    total_memory,
)
from graphprep.kernels.compiler import kept, levels
from graphprep.kernels.compiler.manage import MISSING, list_kernels
from graphprep.kernels.cuda.probe import NO_DRIVER
from graphprep.model.errors import UsageError

_NAME = "graphprep"
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9._-]+)")  # what a requirement begins with
_FEW_FILES, _ENOUGH_FILES = 256, 65536  # open at a time
_OF_DEVELOPERS = {"bench", "dev", "docs", "test-all"}
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")


@dataclass(frozen=True)
class Finding:
    """A line of the report; ``fix`` says how to mend what is not well."""

    topic: str
    text: str
    fix: str = ""


def examine() -> Iterator[Finding]:
    """Look at all of it; nothing is changed."""
    yield Finding("version", f"graphprep {metadata.version(_NAME)}, Python {platform.python_version()} ({sys.executable})")
    needed, extras = _requirements()
    yield Finding("packages", ", ".join(f"{name} {_version_of(name)}" for name in needed))
    yield from _processor()
    yield from _kernels()
    for extra, names in extras.items():
        missing = [name for name in names if _version_of(name) is None]
        found = ", ".join(f"{name} {_version_of(name)}" for name in names if name not in missing)
        yield Finding(f"extra {extra}", f"{', '.join(missing)} not installed" if missing else found)
    yield from _devices()
    yield _memory()
    folder = tempfile.gettempdir()
    yield Finding("temporary files", f"{folder}, {format_size(shutil.disk_usage(folder).free)} free")
    yield from _open_files()


def _requirements() -> tuple[list[str], dict[str, list[str]]]:
    """Return the names of what graphprep needs, and of what each of its extras brings, but for those of its developers."""
    needed: list[str] = []
    extras: dict[str, list[str]] = {}
    for line in metadata.requires(_NAME) or ():
        found, extra = _REQUIREMENT.match(line), _EXTRA.search(line)
        name = found.group(1) if found else line
        if extra is None:
            needed.append(name)
        elif extra.group(1) not in _OF_DEVELOPERS and name != _NAME:
            extras.setdefault(extra.group(1), []).append(name)
    return needed, extras


def _version_of(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _processor() -> Iterator[Finding]:
    names = ", ".join(levels.of_this_processor()) or "none of which graphprep ships code"
    kind = f"{platform.machine()}; code is made for {levels.target()[0]}; levels: {names}"
    yield Finding("processor", f"{kind}; threads: {default_threads()}, compiling: {compiling_jobs()}")
    given = os.environ.get(levels.VARIABLE)
    if given and levels.chosen() is None:
        yield Finding(
            "processor", f"{levels.VARIABLE}={given} is not one of them, and has no effect", f"unset {levels.VARIABLE}"
        )


def _kernels() -> Iterator[Finding]:
    numbers = Counter(one.place for one in list_kernels())
    told = ", ".join(f"{num} {place if place == MISSING else f'from {place}'}" for place, num in sorted(numbers.items()))
    missing = "they are compiled when they are first needed; graphprep kernels build does it now" * (MISSING in numbers)
    yield Finding("kernels", told, missing)
    for folder in kept.folders():
        own = "set NUMBA_CACHE_DIR to a folder of your own"
        if folder.exists() and not folder.is_dir():
            yield Finding("kernels", f"{folder} is not used: it is no folder", own)
        elif folder.exists() and not kept.is_private_folder(folder):
            yield Finding("kernels", f"{folder} is not used: others may write to it", f"chmod go-w {folder}, or {own}")


def _devices() -> Iterator[Finding]:
    for index in itertools.count():
        try:
            found = look(DeviceChoice("cuda", index, "GPU"))
            yield Finding("GPU", f"{found.name}, {format_size(found.free_bytes)} free")
        except UsageError as error:
            if index == 0:
                told = f"none that can be used: {error.message}; graphprep needs none"
                yield Finding("GPU", told, error.fix if error.message != NO_DRIVER.reason else "")
            return


def _memory() -> Finding:
    """Tell what may be taken, of how much, and of each kind of limit the one that leaves least."""
    total = total_memory()
    tightest: dict[str, MemoryLimit] = {}
    for one in sorted(memory_limits(), key=lambda one: one.left_bytes):
        tightest.setdefault(one.name, one)
    told = f"{format_size(available_memory())} may be taken" + f", of {format_size(total)} in all" * (total > 0)
    limits = [f"{one.name} {format_size(one.most_bytes)}" + f" ({one.place})" * bool(one.place) for one in tightest.values()]
    told += f"; limits: {', '.join(limits)}" * bool(limits)
    return Finding("memory", f"{told}; --memory-limit auto is {format_size(memory_limit('auto'))}")


def _open_files() -> Iterator[Finding]:
    try:
        import resource
    except ImportError:  # no POSIX
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _ENOUGH_FILES if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH_FILES)
    fix = f"ulimit -n {most}" if most > soft else f"let the administrator raise the hard limit, which is {hard}, too"
    yield Finding("open files", f"at most {soft}", fix * (0 <= soft < _FEW_FILES))
