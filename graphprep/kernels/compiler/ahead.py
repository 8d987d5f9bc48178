"""Compile in parallel what a run is about to need, from the first kernel on that is missing.

``signatures.txt`` says of each kernel what used it when the list was written: ``convert-json`` in most of such runs,
``export-dgl?`` in some. What uses all kernels that this process has called so far may be what it is at; then the others that
this needs are compiled beside the one that is waited for, in processes. What is not foreseen is compiled when it is called.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from graphprep.kernels.compiler import build, kept, shipped
from graphprep.kernels.compiler.kept import Code, Function, Kinds
from graphprep.kernels.compiler.shipped import Signature, Uses
from graphprep.model.shown.compilation import done

_MIN_BATCH = 3  # fewer are not worth processes that each import Numba


class Foresight:
    """What is compiled ahead in this process. Its methods are called by one thread at a time, but for ``_take``."""

    def __init__(self) -> None:
        self._asked: set[Signature] = set()
        self._made: dict[Signature, Code | None] = {}
        self._changed = threading.Condition()

    def compile(self, function: Function, kinds: Kinds, called: Sequence[tuple[Function, Kinds]]) -> Code | None:
        """Return a kernel's code once a process has made it; None where no process does.

        Begins to compile what is foreseen of what was called so far.
        """
        wanted = shipped.signature_of(function, kinds)
        self._begin(wanted, [shipped.signature_of(*one) for one in called])
        with self._changed:
            if wanted not in self._asked:
                return None
            self._changed.wait_for(lambda: wanted in self._made)
            return self._made[wanted]

    def _begin(self, wanted: Signature, called: list[Signature]) -> None:
        missing = [one for one in foreseen(called, shipped.read_list()) if one not in self._asked and is_missing(one)]
        if wanted not in self._asked and wanted not in missing:
            missing.append(wanted)
        jobs = done.most_jobs()
        if len(missing) < _MIN_BATCH or jobs < 2:
            return
        self._asked.update(missing)
        done.num_foreseen = max(done.num_foreseen, done.num_kernels) + len(missing)
        missing.sort(key=wanted.__ne__)  # what is waited for comes first
        build.compile_behind(missing, jobs, self._take)

    def _take(self, signature: Signature, code: Code | None) -> None:
        if code is not None:
            kept.write_code(signature.load().py_func, signature.kinds, code)
        with self._changed:
            self._made[signature] = code
            done.num_made += 1
            self._changed.notify_all()


def foreseen(called: Iterable[Signature], uses: Uses) -> list[Signature]:
    """Return the kernels that whatever calls these most often needs, in the list's order."""
    possible: frozenset[str] = frozenset()
    for one in called:
        mostly, sometimes = uses.get(one, (frozenset(), frozenset()))
        now = mostly | sometimes
        possible = possible & now or now  # a process may run one command after the other
    return [one for one, (mostly, _) in uses.items() if possible and possible <= mostly]


def is_missing(signature: Signature) -> bool:
    """Return whether neither the package nor a cache has a kernel's code."""
    try:
        return shipped.find_code(signature.load().py_func, signature.kinds) is None
    except (ImportError, AttributeError):
        return False  # a list of other sources


foresight = Foresight()
