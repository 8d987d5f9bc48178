"""Look at, compile and remove kept machine code: ``graphprep kernels``, and the wheel's build."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphprep.kernels.compiler import build, kept, shipped
from graphprep.kernels.compiler.kept import Code
from graphprep.kernels.compiler.shipped import Signature
from graphprep.model.errors import StorageError

Tell = Callable[[int, int], None]  # how many of how many are compiled
PACKAGED, MISSING = "packaged", "missing"


@dataclass(frozen=True)
class KernelPlace:
    """Where the code of a kernel for some types is: the folder of a cache, ``packaged``, or ``missing``."""

    kernel: str
    types: str
    place: str


def list_kernels() -> Iterator[KernelPlace]:
    """Yield every kernel that signatures.txt names, and where its code would be loaded from now."""
    for one in shipped.read_list():
        function = one.load().py_func
        folder = kept.find_folder(function, one.kinds)
        packaged = shipped.read_code(function, one.kinds)
        yield KernelPlace(one.kernel, one.types, str(folder) if folder else PACKAGED if packaged else MISSING)


def known_uses() -> list[str]:
    """Return what kernels are for: ``convert-json``, ``export-pyg``, ``reorder`` and so on."""
    return sorted(frozenset().union(*(mostly | sometimes for mostly, sometimes in shipped.read_list().values())))


def build_kernels(jobs: int, tell: Tell, uses: Collection[str] = ()) -> int:
    """Compile for this processor what neither a cache nor the package has; return how many.

    With ``uses``, what most runs of these need. Raises StorageError where no folder takes them.
    """
    wanted = [one for one, (mostly, _) in shipped.read_list().items() if not uses or not mostly.isdisjoint(uses)]
    missing = [one for one in wanted if shipped.find_code(one.load().py_func, one.kinds) is None]

    def keep(one: Signature, code: Code) -> None:
        if not kept.write_code(one.load().py_func, one.kinds, code):
            raise _homeless()

    if missing and kept.find_place() is None:
        raise _homeless()
    _compile(missing, jobs, None, keep, tell)
    return len(missing)


def _homeless() -> StorageError:
    return StorageError(
        "no folder takes compiled kernels",
        place=", ".join(map(str, kept.folders())),
        fix="set NUMBA_CACHE_DIR to a folder of your own, which nobody else may write to",
    )


def build_levels(
    names: Sequence[str], folder: Path, jobs: int, tell: Tell, signatures: Sequence[Signature] | None = None
) -> int:
    """Compile kernels for levels of processors into ``folder/LEVEL``, as the wheel has them; return how many files.

    Without ``signatures``, all that signatures.txt names.
    """
    found = list(shipped.read_list()) if signatures is None else signatures
    num_done = 0
    for level in names:
        into = folder / level
        into.mkdir(parents=True, exist_ok=True)

        def write(one: Signature, code: Code, into: Path = into, level: str = level) -> None:
            name, key = kept.name_code(one.load().py_func, one.kinds, level)
            (into / name).write_bytes(kept.pack(code, key))

        def told(num: int, _: int, before: int = num_done) -> None:
            tell(before + num, len(found) * len(names))

        _compile(found, jobs, level, write, told)
        num_done += len(found)
    return num_done


def clean_kernels() -> tuple[int, int]:
    """Remove kept code, but not the package's; return how many files, and their bytes."""
    num, num_bytes = 0, 0
    for path in list(kept.files()):
        with contextlib.suppress(FileNotFoundError):  # of a process that has just given it its name
            size = path.stat().st_size
            path.unlink()
            num, num_bytes = num + 1, num_bytes + size
    return num, num_bytes


def _compile(
    signatures: Sequence[Signature], jobs: int, level: str | None, keep: Callable[[Signature, Code], None], tell: Tell
) -> None:
    """Compile in processes; raises what ``keep`` raises, and RuntimeError where a kernel cannot be compiled."""
    errors: list[Exception] = []
    num_done = 0
    tell(0, len(signatures))

    def take(one: Signature, code: Code | None) -> None:
        nonlocal num_done
        try:
            if code is None:
                raise RuntimeError(f"{one} cannot be compiled")
            if not errors:
                keep(one, code)
        except Exception as error:
            errors.append(error)
        num_done += 1
        tell(num_done, len(signatures))

    for thread in build.compile_behind(signatures, jobs, take, level):
        thread.join()
    if errors:
        raise errors[0]
