"""In which order all is measured: what matters most first."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

from bench import LARGE, MAIN, SMALL, TOY, Bench, words_of
from commands import measure_commands
from inputs import TYPES
from kernels import KERNELS, measure_kernel
from rows import measure_csr, measure_streamed, measure_transfers


def measure_all(bench: Bench, slots: Any, make_fast: Any) -> None:
    """Measure everything, what matters most first."""

    def guard(name: str, measure: Callable[..., Any], *args: Any, **values: Any) -> None:
        """Go on with the next cases where the input of these cannot be made."""
        if time.monotonic() > bench.deadline:
            bench.note(name, **values, skipped="left out: 0 s are left")
            return
        try:
            measure(bench, *args)
        except Exception as error:
            bench.note(name, **values, skipped=words_of(error))

    toy = bench.is_toy
    main, large, small, streamed = (TOY, TOY + 1, TOY - 1, 100) if toy else (MAIN, LARGE, SMALL, 256 << 20)

    def csr(size: int, name: str) -> None:
        with slots.room() as room:
            guard("COO to CSR", measure_csr, room, size, name, make_fast, items=size, type=name)
            room.clear()

    def kernels(size: int, type_name: str) -> None:
        with slots.room() as room:
            for name in KERNELS:
                guard(name, measure_kernel, room, name, size, type_name, items=size, type=type_name)
                room.clear()

    guard("transfers", measure_transfers)
    csr(main, "int32")
    guard("COO to CSR, streamed", measure_streamed, slots, streamed, "int32", items=streamed, type="int32")
    guard("commands", measure_commands, 1000 if toy else main)
    kernels(main, "int32")
    csr(large, "int32")
    csr(main, "int64")
    guard("COO to CSR, streamed", measure_streamed, slots, streamed, "int64", items=streamed, type="int64")
    kernels(main, "int64")
    csr(large, "int64")
    for size, name in itertools.product((large, small), TYPES):
        if size == small:
            csr(size, name)
        kernels(size, name)
