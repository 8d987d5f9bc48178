"""Whether kernels are being compiled, for whoever waits: it happens in first runs alone, and takes a second or so a kernel."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from graphprep.model.shown.texts import count, duration


@dataclass(eq=False)
class Compilations:
    """What this process has compiled: kernels, and the seconds that it waited for them."""

    num_kernels: int = 0
    num_foreseen: int = 0  # those that processes make or have made
    num_made: int = 0  # of these
    waited_s: float = 0.0
    since_s: float | None = None  # when the wait that goes on began
    most_jobs: Callable[[], int] = lambda: 1  # processes that may compile; who knows the machine says more

    @property
    def elapsed_s(self) -> float:
        """Return the seconds of waiting so far."""
        return self.waited_s + (0.0 if self.since_s is None else time.monotonic() - self.since_s)

    def describe(self) -> str:
        """Return ``compiling kernels 7 of 21, 12 s``; nothing where none is compiled."""
        if self.since_s is None:
            return ""
        made, of = max(self.num_made, self.num_kernels), max(self.num_foreseen, self.num_kernels + 1)
        return f"compiling kernels {min(made + 1, of)} of {of}, {self.elapsed_s:.0f} s"


done = Compilations()
_listener: Callable[[], None] | None = None
_is_told = False


def announce(listener: Callable[[], None] | None) -> None:
    """Call a function when the next kernel is compiled, once, from the thread that needs it; None: no longer."""
    global _listener
    _listener = listener


@contextlib.contextmanager
def announcing(tell: Callable[[str], None] | None) -> Iterator[None]:
    """Say why a first run takes long, when it begins to compile, and how long that took; None: say nothing.

    Of contexts inside each other the outermost tells: a command, what Python called.
    """
    global _is_told
    if _is_told:
        yield
        return
    num_before, before_s, _is_told = done.num_kernels, done.elapsed_s, True
    announce(tell and partial(tell, "compiling kernels: once, a second or two each"))
    try:
        yield
    finally:
        _is_told = False
        announce(None)
    num = done.num_kernels - num_before
    if tell and num:
        tell(f"compiled {count(num, 'kernel')} in {duration(done.elapsed_s - before_s)}")


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Tell that the block waits for a kernel. One thread at a time."""
    listener = _listener
    announce(None)
    done.since_s = time.monotonic()
    try:
        if listener is not None:
            listener()
        yield
    finally:
        done.num_kernels += 1
        done.waited_s, done.since_s = done.elapsed_s, None


@contextlib.contextmanager
def compiling_all() -> Iterator[Callable[[int, int], None]]:
    """Tell that the block compiles kernels, for their own sake; it calls what it gets with how many of how many are made.

    Nobody waits for something else meanwhile, so ``waited_s`` stays.
    """

    def tell(num: int, total: int) -> None:
        done.num_made, done.num_foreseen = num, total

    done.since_s = time.monotonic()
    try:
        yield tell
    finally:
        done.since_s = None
