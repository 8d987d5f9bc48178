"""``sample``: flows around seeds, as files. The stages in order."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import itertools
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from graphprep.derived.derive import derived_store
from graphprep.derived.store import DerivedStore
from graphprep.edges.moves import Workspace
from graphprep.engine.budget import format_size
from graphprep.engine.ledger import MemoryPlan, Need
from graphprep.engine.local import map_ordered, num_in_flight
from graphprep.model.errors import MemoryLimitError, UsageError
from graphprep.model.metadata import MANIFEST_NAME
from graphprep.model.options.sample import SampleOptions, SampleSummary
from graphprep.model.protocols import Reporter
from graphprep.model.schema import edge_type_text
from graphprep.rewrite.run import StoreRun
from graphprep.rewrite.stored_edges import derive_needs
from graphprep.sample.drawn import FlowSeeds
from graphprep.sample.flows import SEED_BYTES, GrownFlow, TooLargeError, grow_flows
from graphprep.sample.manifest import FORMAT
from graphprep.sample.order import describe_store
from graphprep.sample.plan import SampleAsked, check_walkers, plan_sample
from graphprep.sample.rows import BlockArrays, HeldRows, Rows, hold_or_stream, open_rows
from graphprep.sample.seeds import Seeds, read_seeds
from graphprep.sample.write import SHARD_BYTES, ShardWriter
from graphprep.storage.private import remove_leftovers
from graphprep.storage.read.urls import Storage
from graphprep.storage.write.outputs import FolderOutput, check_output
from graphprep.storage.write.owned import read_json
from graphprep.storage.write.places import refuse_overlap
from graphprep.store.columns.times import DROP, FilledTimes, edges_words

_NO_OPTIONS = ("run", "overwrite", "seeds", "seed_times")  # the bytes do not depend on them, or on more than their names


def sample(store: str, out: str, options: SampleOptions, reporter: Reporter | None = None) -> SampleSummary:
    """Write to ``out`` flows around seeds of the store at ``store``.

    The files are the same for any number of threads, memory limit and number of range partitions. Raises the GraphprepErrors
    that the command line maps to its exit codes; then nothing is left at ``out``.
    """
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(StoreRun(store, out, replace(options.run, device="cpu"), reporter))
        if not out:
            raise UsageError("the output has no name", fix="name the folder or URL to write")
        refuse_overlap(run.storage, [out], {"store": [store]}, options)
        replaces = check_output(run.storage, out, options.overwrite, lambda: _own_files(run.storage, out), "sample")
        remove_leftovers(run.tmp_dir or tempfile.gettempdir())
        source = run.open_store()
        asked = plan_sample(source.metadata, options)
        folder = stack.enter_context(
            FolderOutput(run.storage, out, replaces=replaces, last=MANIFEST_NAME, takes_over=options.overwrite)
        )
        room = run.room(source.metadata)
        run.ledger.begin("seeds", derive_needs(room))
        seeds = read_seeds(run.storage, source, options, room)
        check_walkers(asked.flows, seeds.types)
        run.ledger.begin("prepare", derive_needs(room))
        narrow = copy.copy(source)
        narrow.metadata = asked.metadata(source.metadata)
        need = asked.need(source.metadata)
        ready = stack.enter_context(derived_store(narrow, need, run.storage, room, run.reporter, run.tmp_dir))
        run.ledger.begin("sample", _needs(run.memory, room), total_records=options.epochs * seeds.nodes.size)
        begin = time.perf_counter()
        writer = ShardWriter(folder, asked, ready, room, options.format)
        blocks = open_blocks(asked, ready)
        parent = describe_store(source.metadata, ready, options.direction)
        rows = hold_or_stream(blocks, room)
        for flow in grow_all(asked, rows, seeds, options, run.memory.working_bytes, run.memory.threads):
            writer.add(flow)
            run.reporter.advance(records=flow.arrays.num_seeds)
        num_batches = seeds.num_batches(options.batch_size)
        writer.finish(parent, _told_options(options), options.epochs, num_batches)
        folder.publish()
        num_edges = sum(one.num_edges for one in writer.shards)
        return SampleSummary(
            **run.told(source, source.metadata, folder.num_bytes, room),
            num_parts=source.metadata.num_parts,
            num_seeds=seeds.nodes.size,
            num_flows=options.epochs * num_batches,
            num_layers=asked.flows.num_hops + 1,
            num_sampled_nodes=sum(one.num_nodes for one in writer.shards),
            num_sampled_edges=num_edges,
            sampled_edges_per_s=num_edges / max(time.perf_counter() - begin, 1e-6),
            num_files=folder.num_files,
            notes=draw_notes(asked, options, blocks),
        )


def _own_files(storage: Storage, out: str) -> set[str] | None:
    """Return the files of the samples at ``out``, by their manifest; None where it does not say."""
    value = read_json(storage, storage.join(out, MANIFEST_NAME))
    try:
        shards = value["shards"] if value["format"] == FORMAT else None
        return None if shards is None else {MANIFEST_NAME, *(str(one["path"]) for one in shards)}
    except (TypeError, KeyError):
        return None


def _needs(memory: MemoryPlan, room: Workspace) -> Iterator[Need]:
    yield from room.needs()
    yield Need("flows", memory.working_bytes, "those that grow, and those of a shard, of {} or more", (SHARD_BYTES,))


def _told_options(options: SampleOptions) -> dict[str, Any]:
    """Return what the bytes depend on beside the seeds."""
    given = dataclasses.asdict(options)
    return {name: value for name, value in given.items() if name not in _NO_OPTIONS}


def draw_notes(asked: SampleAsked, options: SampleOptions, blocks: Sequence[BlockArrays]) -> tuple[str, ...]:
    """Say of which edge types edges are drawn otherwise than by the columns that are asked for."""
    notes = []
    untimed = "are not drawn (--untimed include draws them)"
    if options.untimed == "include":
        untimed = "are drawn whatever the time of the seed (--untimed exclude leaves them out)"
    for flag, columns, what in (
        ("--weight-column", asked.weights, "are drawn as if they weighed the same"),
        ("--time-column", asked.times, untimed),
    ):
        lacking = {one.edge_type: None for one in asked.flows.block_types if any(columns) and columns[one.number] is None}
        notes += [f"edge type {edge_type_text(one)!r} has no column of {flag}: its edges {what}" for one in lacking]
    names = {edge_type_text(one.edge_type): rows.times for one, rows in zip(asked.flows.block_types, blocks, strict=False)}
    for name, times in names.items():
        if isinstance(times, FilledTimes):
            what = "never drawn" if asked.missing_time == DROP else "drawn as if of that time"
            notes.append(f"{edges_words(times.missing, name)} no time: {what} (--missing-time {asked.missing_time})")
    return tuple(notes)


def open_blocks(asked: SampleAsked, store: DerivedStore) -> list[BlockArrays]:
    """Open the arrays of all block types; with FastGCN's draws, then those of the same edges the other way round."""
    if asked.flows.walk is not None:
        return [open_rows(store, one, None, None) for one in asked.flows.walk.steps]
    blocks = list(asked.flows.block_types)
    columns = [(asked.weights[one.number], asked.times[one.number]) for one in blocks]
    found = [open_rows(store, one, *some, asked.missing_time) for one, some in zip(blocks, columns, strict=True)]
    if asked.flows.layer_sizes and asked.flows.layer_method == "fastgcn":
        turned = (
            replace(one, source=one.destination, destination=one.source, is_reversed=not one.is_reversed) for one in blocks
        )
        found += [open_rows(store, one, None, None) for one in turned]
    return found


def grow_all(
    asked: SampleAsked, rows: Sequence[Rows], seeds: Seeds, options: SampleOptions, most_bytes: int, threads: int
) -> Iterator[GrownFlow]:
    """Yield all flows in order: each on a thread where arrays are held, else in groups, as large as memory has room for.

    Raises MemoryLimitError where one flow is too large.
    """
    done, first_bytes = 0, min(options.batch_size, seeds.nodes.size) * SEED_BYTES
    if first_bytes > most_bytes:
        raise too_large(TooLargeError(first_bytes), most_bytes)
    if all(isinstance(one, HeldRows) for one in rows):
        share = most_bytes // num_in_flight(threads, threads)

        def grow(flow: FlowSeeds) -> GrownFlow:
            return grow_flows(asked.flows, rows, [flow], share)[0]

        try:
            for flow in map_ordered(grow, seeds.flows(options), threads, threads):
                yield flow
                done += 1
            return
        except TooLargeError:
            pass  # from this flow on, one at a time has the memory of all
    yield from _grow_groups(asked, rows, seeds, options, most_bytes // 2, done)


def _grow_groups(
    asked: SampleAsked, rows: Sequence[Rows], seeds: Seeds, options: SampleOptions, most_bytes: int, done: int
) -> Iterator[GrownFlow]:
    """Yield the flows from number ``done`` on, in groups: of twice as many flows while they fit, of half as many where not."""
    size, most = 1, 1 << 30
    flows: Iterator[FlowSeeds] = seeds.flows(options, done)
    group: list[FlowSeeds] = []
    while group := [*group, *itertools.islice(flows, size - len(group))]:
        try:
            grown = grow_flows(asked.flows, rows, group, most_bytes)
        except TooLargeError as error:
            if size == 1:
                raise too_large(error, most_bytes) from None
            size = most = max(1, size // 2)
            flows, group = itertools.chain(group[size:], flows), group[:size]
            continue
        yield from grown
        group = []
        size = min(2 * size, most)


def too_large(error: TooLargeError, most_bytes: int) -> MemoryLimitError:
    """Return the error of a flow that has no room."""
    return MemoryLimitError(
        f"a flow takes at least {format_size(error.num_bytes)}, and the memory limit leaves {format_size(most_bytes)} for one",
        fix="raise --memory-limit, or lower --batch-size or the fan-outs",
    )
