"""What nobody said and a conversion will assume, with the flags that fix it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from graphprep.convert.read.plan import Planned
from graphprep.convert.run import Run
from graphprep.decoders.registry import find_decoder
from graphprep.engine.budget import format_size
from graphprep.model.options.checks import option_types
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.options.plan import Guess
from graphprep.plan.sizes import GraphSizes
from graphprep.store.assign import method_name

_BLANKS = "blanks"


def guesses(run: Run, planned: Planned, sizes: GraphSizes) -> tuple[Guess, ...]:
    """Return what is assumed of the input, and of the store."""
    return (*_of_input(run.options, planned), *_of_ids(run.options, planned.format, sizes), *_of_run(run, sizes))


def _of_input(options: ConvertOptions, planned: Planned) -> Iterator[Guess]:
    if planned.flags:
        yield Guess("format", planned.format, shlex.join(planned.flags))
    given = options.decoder_options
    first = next((span for span in planned.sources.spans if span.detail is not None), None)
    detail: Any = None if first is None else first.detail
    delimiter = _delimiter(detail)
    if delimiter is not None and given.get("delimiter") is None and _takes(planned.format, "delimiter"):
        shown = delimiter or " "
        yield Guess("delimiter", repr(shown) if delimiter else _BLANKS, f"--delimiter {shlex.quote(shown)}")
    line = getattr(detail, "header_line", None)
    if line is not None and given.get("header") is None and _takes(planned.format, "header"):
        yield Guess("header", f"line {line}" if line else "none", f"--header {'yes' if line else 'no'}")
    is_named = line or (first is not None and first.kind == "table")
    names = getattr(detail, "names", None) if is_named else None
    for what, flag, place in _columns(detail):
        if given.get(flag) is None and _takes(planned.format, flag):
            name = names[place] if names and place < len(names) else str(place)
            yield Guess(f"column of the {what}", name, f"--{flag.replace('_', '-')} {shlex.quote(str(name))}")


def _takes(format: str, option: str) -> bool:
    """Return whether a format takes an option of decoders: of others it is no flag, but written in the input."""
    return format == "tables" or option in option_types(find_decoder(format))


def _delimiter(detail: Any) -> str | None:
    """Return the character between columns of a text, empty where blanks are; None for what has none."""
    grammar = getattr(detail, "grammar", None) or getattr(detail, "dialect", None)
    found = getattr(grammar, "delimiter", getattr(detail, "delimiter", None))
    return found.decode(errors="replace") if isinstance(found, bytes) else found if isinstance(found, str) else None


def _columns(detail: Any) -> Iterator[tuple[str, str, int]]:
    for name, what in (("src", "sources"), ("dst", "destinations"), ("weight", "weights")):
        place = getattr(detail, name, None)
        if isinstance(place, int):
            yield what, f"{name}_col", place


def _of_ids(options: ConvertOptions, format: str, sizes: GraphSizes) -> Iterator[Guess]:
    given = options.decoder_options
    kinds = {"identity": "integers from 0", "int64": "integers", "uint64": "integers", "string": "texts"}
    if _takes(format, "id_type") and given.get("id_type") is None and sizes.raw_ids:
        words = ", ".join(dict.fromkeys(kinds[one] for one in sizes.raw_ids.values()))
        yield Guess("raw IDs", words, f"--id-type {'string' if 'string' in sizes.raw_ids.values() else 'uint'}")
    if sizes.amounts.by_ends and options.ids is None and not sizes.amounts.has_texts and not options.num_nodes:
        dense = "identity" in sizes.raw_ids.values()
        yield Guess("nodes", "all of 0..max" if dense else "the IDs that occur", f"--ids {'dense' if dense else 'sparse'}")


def _of_run(run: Run, sizes: GraphSizes) -> Iterator[Guess]:
    options = run.options
    if options.partitions is None and method_name(options.partition_by) != "file":  # which says it itself
        yield Guess("partitions", f"{sizes.shape.num_parts} by {options.partition_by}", f"--partitions {sizes.shape.num_parts}")
    if options.index_dtype == "auto":
        most = max((one.value for one in (*sizes.num_nodes.values(), *sizes.num_edges.values())), default=0)
        dtype = "int32" if most < 2**31 else "int64"
        yield Guess("dtype of neighbours and edge IDs", dtype, f"--index-dtype {dtype}")
    if options.run.memory_limit == "auto":
        limit = run.memory.limit_bytes
        yield Guess("memory limit", format_size(limit), f"--memory-limit {max(1, limit >> 20)}MiB")
    if not options.run.threads:
        yield Guess("threads", str(run.memory.threads), f"--threads {run.memory.threads}")
