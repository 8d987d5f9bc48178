"""``plan``: what a conversion will be like. The steps in order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphprep.convert.decoded.rows import IdSpaces
from graphprep.convert.index.partition_file import look_at_parts, outside
from graphprep.convert.read.apart import Reading
from graphprep.convert.read.decode import DecodeSettings, decode_settings
from graphprep.convert.read.plan import Plan, Planned
from graphprep.convert.read.plan import plan as look
from graphprep.convert.resume import about_files
from graphprep.convert.run import Run
from graphprep.convert.units.cut import cut_input, share_of
from graphprep.convert.units.work import check_share
from graphprep.engine.budget import trim_heap
from graphprep.model.errors import UsageError
from graphprep.model.metadata import GraphMetadata
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.options.plan import DiskRoom, PlanReport
from graphprep.model.protocols import Reporter
from graphprep.model.shown.compilation import done as compilations
from graphprep.model.shown.texts import count, display_url, size
from graphprep.plan.exports import plan_exports
from graphprep.plan.foresight import foreseen_graph
from graphprep.plan.guesses import guesses
from graphprep.plan.kernels import COMPILE_S, IMPORT_S, missing_kernels
from graphprep.plan.memory import MemoryRoom
from graphprep.plan.rates import probe, stage_seconds
from graphprep.plan.sample import Stratum, take_samples
from graphprep.plan.sizes import GraphSizes, measure, spills
from graphprep.plan.tally import Tally, tally
from graphprep.storage.read.urls import STDIN
from graphprep.storage.write.places import find_folders, free_bytes, is_copied
from graphprep.storage.write.publish import check_store_place
from graphprep.store.assign import method_name
from graphprep.store.room import check_parts

_ARROW_BYTES = 44 << 20  # Arrow, and what its pool keeps


def plan(
    inputs: Sequence[str],
    options: ConvertOptions | None = None,
    reporter: Reporter | None = None,
    *,
    out: str | None = None,
    targets: Sequence[str] = (),
    check: Callable[[GraphMetadata], Mapping[str, Sequence[str]]] = lambda _: {},
) -> PlanReport:
    """Estimate what ``convert`` would make of an input, and what that takes; ``out`` is where the store would be.

    ``check`` refuses a graph that ``targets`` cannot hold, as far as samples show it, and says what each would leave out.

    Only samples, headers and footers are read, and nothing is written. Raises what ``convert`` raises for options that do not
    fit and for what is wrong with the samples, UsageError for stdin, of which nothing can be looked at beforehand.
    """
    options = options or ConvertOptions()
    if STDIN in inputs:
        raise UsageError("stdin cannot be sampled: what is read of it is gone", place=STDIN, fix="write it to a file first")
    with Run(inputs, options, reporter, out) as run:
        tmp_dir = run.tmp_dir
        if out is not None:
            check_store_place(run.storage, out.rstrip("/") or out, options.overwrite)
        known = look(run)
        settings, compiled = decode_settings(run, known), compilations.elapsed_s
        strata = take_samples(run, known.input)
        compiled = compilations.elapsed_s - compiled
        spaces = IdSpaces(known.input.sources)
        found = tally(strata, spaces.of_end)
        num_parts, parts_at_least = _count_parts(run, known, found)
        graph = foreseen_graph(options, known, found, num_parts, is_whole=all(one.is_whole for one in strata))
        left_out = {} if graph is None else check(graph)
        sizes = measure(run, known.input.sources, found, settings, num_parts)
        seconds = stage_seconds(run, sizes, strata, probe())
        trim_heap()
        code = _code_bytes(strata)
        room = MemoryRoom(run, known.input, settings, sizes, strata, code)
        spilled = sum(spills(sizes, 0 if options.resume else run.memory.pool_bytes))
        copied = options.resume and out is not None and is_copied(out, tmp_dir)
        return PlanReport(
            **_about_input(inputs, known.input, strata),
            num_nodes=sizes.num_nodes,
            num_edges=sizes.num_edges,
            distinct_ids=sizes.distinct_ids,
            num_parts=num_parts,
            parts_at_least=parts_at_least,
            raw_ids=sizes.raw_ids,
            stages=room.stages(seconds.__getitem__),
            memory_limit_bytes=run.memory.limit_bytes,
            threads=run.memory.threads,
            store_bytes=sizes.store_bytes,
            spill_bytes=spilled,
            disks=_disks(out, tmp_dir, sizes, spilled + copied * sum(sizes.store_bytes.values())),
            **_about_kernels(known.input.format),
            compiled_s=compiled,
            guesses=guesses(run, known.input, sizes),
            exports=plan_exports(targets, sizes, left_out),
            notes=(*_share_note(run, known, settings), *_notes(run, known.input, strata, sizes, found.warnings)),
            elapsed_s=run.elapsed_s,
        )


def _about_input(inputs: Sequence[str], planned: Planned, strata: Sequence[Stratum]) -> dict[str, Any]:
    """Return what the report says of the input itself."""
    return {
        "inputs": tuple(inputs),
        "format": planned.format,
        "format_flags": planned.flags,
        "num_files": len({span.url for span in planned.sources.spans}),
        "input_bytes": sum(one.stored_bytes for one in strata),
        "text_bytes": round(sum(one.text_bytes for one in strata)),
        "read_bytes": sum(one.read_bytes for one in strata),
    }


def _about_kernels(name: str) -> dict[str, Any]:
    """Return what the report says of kernels that a format would have compiled first."""
    missing = missing_kernels(name)
    return {"missing_kernels": missing, "compile_s": len(missing) * COMPILE_S + (IMPORT_S if missing else 0.0)}


def _count_parts(run: Run, known: Plan, found: Tally) -> tuple[int, bool]:
    """Return the number of partitions, and whether it is the least: of a large file of assignments only the beginning is read.

    Raises what ``convert`` raises for what was read of it.
    """
    options, sources = run.options, known.input.sources
    if method_name(options.partition_by) != "file":
        return options.partitions or 1, False
    names = dict.fromkeys([*(node.name for node in sources.node_types), *found.node_rows])
    highest = look_at_parts(run.storage, options.partition_by, names)
    if options.partitions is None:
        check_parts(highest.part + 1, display_url(options.partition_by), sources, options, run.memory, (run.out, run.tmp_dir))
        return highest.part + 1, not highest.is_known
    if highest.part >= options.partitions:
        raise outside(highest.part, options.partitions, highest.place)
    return options.partitions, False


def _share_note(run: Run, known: Plan, settings: DecodeSettings) -> tuple[str, ...]:
    """Say what a worker would decode, where it is one that was asked for. Raises what ``convert`` raises."""
    share = check_share(run.options)
    if share is None:
        return ()
    about_files(run, known, "--worker-index")
    reading = Reading(settings.block_bytes, settings.limit_bytes, settings.max_rows)
    units = cut_input(known, run.storage, reading, share.count).units
    own = share_of(units, share.index, share.count)
    some = f"{len(own):,} of {count(len(units), 'unit')}, {size(sum(unit.num_bytes for unit in own))}"
    return (f"worker {share.index} of {share.count} decodes {some}; all else here is what one machine takes for the whole run",)


def _code_bytes(strata: Sequence[Stratum]) -> int:
    """Return what modules that decoding loads hold, and what they keep."""
    return _ARROW_BYTES if "pyarrow" in sys.modules and any(one.kind == "table" for one in strata) else 0


def _disks(out: str | None, tmp_dir: str | None, sizes: GraphSizes, spilled: int) -> tuple[DiskRoom, ...]:
    """Return what is written to each file system, by the first folder of it."""
    if out is None:
        return ()
    folder, tmp = find_folders(out, tmp_dir)
    needs: dict[int | str, tuple[str, int]] = {}
    for one, num_bytes in ((folder, sum(sizes.store_bytes.values())), (tmp, spilled)):
        if one is not None and num_bytes:
            key = Path(one).stat().st_dev if Path(one).exists() else one
            first, before = needs.get(key, (one, 0))
            needs[key] = first, before + num_bytes
    return tuple(DiskRoom(one, num_bytes, free_bytes(one)) for one, num_bytes in needs.values())


def _notes(
    run: Run, planned: Planned, strata: Sequence[Stratum], sizes: GraphSizes, warnings: dict[str, int]
) -> tuple[str, ...]:
    notes = list(sizes.notes)
    notes += [f"{text} (in samples)" for text in warnings]
    if any(one.is_packed for one in strata if not one.is_whole):
        notes.append("compressed files were looked at from their beginning only: what comes later may be another")
    if operations := run.options.operations():
        notes.append(f"{', '.join(operations)}: done on the store, which takes about as long again; counts are those before")
    if "*" in "".join(sizes.num_edges):
        notes.append("types of ends (*) are told by the nodes' records, wherever these stand")
    return tuple(notes)


__all__ = ["plan"]
