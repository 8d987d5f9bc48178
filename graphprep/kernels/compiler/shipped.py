"""Machine code that comes with the package: of the kernels and types that ``signatures.txt`` names, for levels of processors.

It lies in ``graphprep/kernels/shipped/LEVEL/``, where the wheel has it, and is trusted as the sources beside it are: by its
checksum, and since it is of these very sources, whoever owns the files.
"""

from __future__ import annotations

import contextlib
import importlib
from pathlib import Path
from typing import Any, NamedTuple

from graphprep.kernels.compiler import kept, levels
from graphprep.kernels.compiler.kept import Code, Function, Kinds, kinds_of, name_code, text_of, unpack

FOLDER = Path(__file__).parent.parent / "shipped"
LIST = Path(__file__).parent / "signatures.txt"
_PACKAGE = f"{__name__.rpartition('.compiler.')[0]}.cpu."


class Signature(NamedTuple):
    """A kernel (its module below ``kernels.cpu``, and name) and the types of its arguments: ``ids.move.gather i8[1] i8[1]``."""

    kernel: str
    types: str

    @property
    def module(self) -> str:
        """Return the module's whole name."""
        return _PACKAGE + self.kernel.rpartition(".")[0]

    @property
    def kinds(self) -> Kinds:
        """Return the types as ``Kernel`` has them."""
        return kinds_of(self.types)

    def load(self) -> Any:
        """Import the kernel (``jit.Kernel``). Raises ImportError or AttributeError where the list is of other sources."""
        return getattr(importlib.import_module(self.module), self.kernel.rpartition(".")[2])

    def __str__(self) -> str:
        return f"{self.kernel} {self.types}".rstrip()


def signature_of(function: Function, kinds: Kinds) -> Signature:
    """Return how the list names a kernel and its types."""
    return Signature(f"{function.__module__}.{function.__qualname__}".removeprefix(_PACKAGE), text_of(kinds))


Uses = dict[Signature, tuple[frozenset[str], frozenset[str]]]  # what calls a kernel: in most of such runs, in some


def read_list() -> Uses:
    """Read signatures.txt."""
    found: Uses = {}
    for line in LIST.read_text().splitlines():
        if line and not line.startswith("#"):
            text, _, uses = line.partition(" : ")
            kernel, _, types = text.partition(" ")
            tags = uses.split()
            mostly = frozenset(tag for tag in tags if not tag.endswith("?"))
            found[Signature(kernel, types)] = mostly, frozenset(tag[:-1] for tag in tags if tag.endswith("?"))
    return found


def find_code(function: Function, kinds: Kinds) -> Code | None:
    """Return a kernel's code where a cache or the package has it."""
    return kept.read_code(function, kinds) or read_code(function, kinds)


def read_code(function: Function, kinds: Kinds) -> Code | None:
    """Return a kernel's code for the best level that this processor has; None where the package brings none."""
    if FOLDER.is_dir():
        for level in levels.usable():
            name, key = name_code(function, kinds, level)
            with contextlib.suppress(OSError, ValueError):
                code = unpack((FOLDER / level / name).read_bytes(), key)
                if code is not None:
                    return code
    return None
