"""The library: one function per command. ``import graphprep`` loads it on first use."""

from __future__ import annotations

import contextlib
import gc
import glob
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from graphprep.engine.budget import compiling_jobs
from graphprep.model.errors import DataError, UsageError
from graphprep.model.metadata import METADATA_NAME
from graphprep.model.option import declared, flag_of
from graphprep.model.options.checks import check_value, make_options
from graphprep.model.options.convert import HEAD, MAX_FAULTS, ConvertOptions, ConvertSummary, FaultOptions, InputOptions
from graphprep.model.options.decoding import DecoderOptions
from graphprep.model.options.words import in_words, python_words
from graphprep.model.protocols import QuietReporter
from graphprep.model.rows import RawTexts
from graphprep.model.run_options import RunOptions
from graphprep.model.shown import compilation
from graphprep.storage.faults import display_url
from graphprep.storage.private import PrivateFolder
from graphprep.storage.read.urls import STDIN, Storage, local_path
from graphprep.store.made import read_made

if TYPE_CHECKING:
    from typing import Unpack

    from graphprep.against.report import AgainstReport
    from graphprep.convert.hooks import Hooks
    from graphprep.convert.memory.graph import MemoryGraph
    from graphprep.convert.pipeline import InputReport
    from graphprep.convert.read.plan import Plan
    from graphprep.convert.run import Run
    from graphprep.graph.graph import Graph
    from graphprep.ids.lookup import GivenIds, IdLookup
    from graphprep.info.guess import GuessedGraph
    from graphprep.info.inspect import GraphInfo
    from graphprep.model.export import ExportOptions, ExportSummary, TargetInfo
    from graphprep.model.options.clean import CleanReport
    from graphprep.model.options.generate import GenerateOptions, GenerateSummary
    from graphprep.model.options.given import (
        ConvertGiven,
        GenerateGiven,
        PartitionGiven,
        ReorderGiven,
        RunGiven,
        SampleGiven,
        SplitGiven,
        StatsCall,
        TargetGiven,
        TransformGiven,
    )
    from graphprep.model.options.partition import PartitionOptions, PartitionSummary
    from graphprep.model.options.plan import PlanReport
    from graphprep.model.options.reorder import ReorderOptions, ReorderSummary
    from graphprep.model.options.sample import SampleOptions, SampleSummary
    from graphprep.model.options.split import SplitOptions, SplitSummary
    from graphprep.model.options.stats import StatsOptions, StatsReport
    from graphprep.model.options.transform import TransformOptions, TransformSummary
    from graphprep.model.protocols import Reporter, Sources
    from graphprep.model.schema import EdgeType, RawIdKind
    from graphprep.storage.read.arrays import StoreReader
    from graphprep.validate.check import StoreReport

S = TypeVar(
    "S",
    ConvertSummary,
    "ExportSummary",
    "PartitionSummary",
    "ReorderSummary",
    "SampleSummary",
    "SplitSummary",
    "TransformSummary",
)
Place = str | os.PathLike[str]  # a path or a URL
_MAX_FAULTS = 20


@python_words(decoder=True)
def convert(
    inputs: Place | Sequence[Place] | object = (),
    out: Place = "",
    options: ConvertOptions | None = None,
    reporter: Reporter | None = None,
    *,
    nodes: Mapping[str, object] | None = None,
    edges: Mapping[str | EdgeType, object] | None = None,
    targets: Mapping[str, ExportOptions] | None = None,
    **given: Unpack[ConvertGiven],
) -> ConvertSummary:
    """Convert raw inputs into a store at ``out``.

    ``inputs`` are paths or URLs, or in memory: a DataFrame, an Arrow table (whatever exports one), a matrix of scipy.sparse, a
    dict of them by type, a networkx graph, or PyG's ``Data`` or ``HeteroData``. ``nodes`` and ``edges`` are tables by type:
    ``convert(nodes={"user": users}, edges={("user", "buys", "item"): buys}, out="store")``. ``given`` are fields of
    ``ConvertOptions`` or ``RunOptions``: ``convert("a.csv", "store", partitions=2, threads=4)``. With ``worker_index`` and
    ``worker_count`` it decodes one worker's share, of which the summary tells bytes and time, and ``merge`` makes the store.
    ``targets`` are those of exports to come, with their options: what one refuses of the graph, as far as samples show it, is
    refused before anything is decoded. Raises GraphprepError.
    """
    from graphprep.convert.hooks import Hooks

    options, share = make_options(ConvertOptions, options, given), None
    if (options.worker_index, options.worker_count, options.scheduler) != (None, None, None):
        from graphprep.convert.units.work import check_share, work

        share = check_share(options)
    hooks = Hooks(check=_check_of(targets, options.partitions or 1)) if targets else None
    run = _converter(options, hooks) if share is None else partial(work, share=share)
    if not os.fspath(out):
        raise UsageError("the output has no name", fix="name the folder or URL of the store")
    found = _read_memory(inputs, nodes, edges, options)
    if found is not None and (share is not None or options.on_cluster):
        raise UsageError("workers read files, not what is in memory", fix="write it to files that all workers see")
    if found is None:
        urls = _as_list(inputs)  # type: ignore[arg-type]
        _check_bad_records(options, urls, os.fspath(out))
        with _reporting(reporter) as told:
            return _worded(run(urls, os.fspath(out), options, told), decoder=True)
    if found.graph is not None:
        options = replace(options, graph=found.graph, decoder_options={}, num_nodes={})
    _check_bad_records(options, (), os.fspath(out))
    with _reporting(reporter) as told:
        in_memory = found.in_memory if found.in_memory.sources else None  # tables of files are read, and recorded, as files
        return _worded(run(found.inputs, os.fspath(out), options, told, in_memory), decoder=True)


@python_words(decoder=True)
def merge(
    out: Place,
    options: RunOptions | None = None,
    reporter: Reporter | None = None,
    *,
    resume: bool = False,
    **given: Unpack[RunGiven],
) -> ConvertSummary:
    """Make the store at ``out`` of what the workers of ``convert(..., out, worker_index=i, worker_count=n)`` decoded.

    Inputs and options are theirs. ``resume`` goes on where an interrupted call stopped. A call behind one that has made the
    store does nothing, and says so in a note. ``given`` are fields of ``RunOptions``.
    Raises GraphprepError, also while workers are missing.
    """
    from graphprep.convert.hooks import Hooks
    from graphprep.convert.units.folder import UnitFolder
    from graphprep.convert.units.merge import TakenOver, find_run, merged_before

    options = make_options(RunOptions, options, given)
    with _open_storage(options) as storage, UnitFolder(storage, os.fspath(out)) as folder:
        before = merged_before(folder, storage)
        if before is not None:
            folder.remove()
            return _worded(before, decoder=True)
        found = find_run(folder, options, resume=check_value("resume", resume, bool))
        run = _converter(found.options, Hooks(elsewhere=TakenOver(os.fspath(out), found.shared)))
        with _reporting(reporter) as told:
            summary = run(found.shared.inputs, os.fspath(out), found.options, told)
        folder.remove()
    return _worded(summary, decoder=True)


def _check_of(targets: Mapping[str, ExportOptions], num_parts: int) -> Callable[[Run, Plan], None]:
    """Return what refuses a planned input that a target would refuse."""
    from graphprep.export.command import check_foreseen
    from graphprep.plan.foresight import foresee

    def check(run: Run, known: Plan) -> None:
        if (graph := foresee(run, known, num_parts)) is not None:
            check_foreseen(graph, targets)

    return check


def _converter(options: ConvertOptions, hooks: Hooks | None = None) -> Callable[..., ConvertSummary]:
    """Return what converts: operations on the graph, and partitioners that look at edges, need a store first."""
    from graphprep.convert import pipeline
    from graphprep.store.assign import GRAPH_METHODS

    hooks = hooks or pipeline.Hooks()
    operations = options.operations()
    if options.partition_by in GRAPH_METHODS:
        from graphprep.rewrite.partition.convert import convert_in_parts

        return partial(convert_in_parts, hooks=hooks, operations=operations)
    if operations:
        from graphprep.rewrite.transform.command import rewrite_converted

        hooks = hooks._replace(rewrite=partial(rewrite_converted, operations))
    return partial(pipeline.convert, hooks=hooks)


@python_words(decoder=True)
def plan(
    inputs: Place | Sequence[Place] = (),
    options: ConvertOptions | None = None,
    reporter: Reporter | None = None,
    *,
    out: Place | None = None,
    export: Sequence[str] | Mapping[str, ExportOptions] = (),
    **given: Unpack[ConvertGiven],
) -> PlanReport:
    """Say what ``convert`` would make of raw inputs, and what that takes, from samples: nothing is written.

    ``out`` is where the store would be, ``export`` names targets, perhaps with their options: what one refuses is an error, as
    far as samples show it. ``given`` are fields of ``ConvertOptions`` or ``RunOptions``:
    ``plan("a.csv", partitions=2, threads=4)``. Raises GraphprepError.
    """
    from graphprep.plan import command as planning

    options, urls = make_options(ConvertOptions, options, given), _as_list(inputs)
    place, more = None if out is None else os.fspath(out), dict[str, Any]()
    if export:
        from graphprep.export.command import check_foreseen
        from graphprep.model.export import ExportOptions

        wanted = export if isinstance(export, Mapping) else dict.fromkeys(export, ExportOptions())
        more = {"targets": tuple(wanted), "check": partial(check_foreseen, exports=wanted)}
    with _reporting(reporter) as told:
        return planning.plan(urls, options, told, out=place, **more)


@python_words(decoder=True)
def info(
    inputs: Place | Sequence[Place],
    *,
    head: int = 0,
    options: ConvertOptions | None = None,
    reporter: Reporter | None = None,
    **given: Unpack[ConvertGiven],
) -> GraphInfo | GuessedGraph:
    """Say what is at a path: a store, a chunked graph or raw files; guess the graph of a folder of tables.

    ``head`` is how many nodes and edges of each type to show; ``options``, or ``given`` one by one, say how ``convert`` would
    read raw files.
    """
    from graphprep.info import inspect

    head, options, urls = check_value("head", head, int, HEAD), make_options(ConvertOptions, options, given), _as_list(inputs)
    with _open_storage(options.run) as storage, _reporting(reporter) as told:
        if _names_store(storage, urls):
            _refuse_input_options(options)
        made = read_made(storage, urls[0]) if len(urls) == 1 else None
        if made is not None:
            from graphprep.info.made import inspect_made

            return inspect_made(urls[0], made, head)
        check = partial(_check_stated, options=options)
        return inspect.inspect(storage, urls, options, told, head=head, check=check)


def _check_stated(sources: Sources, options: ConvertOptions) -> None:
    """Refuse the numbers of nodes for which ``convert`` would have no memory here."""
    if all(node.num_nodes is None for node in sources.node_types) and not options.num_nodes:
        return
    from graphprep.convert import pipeline

    pipeline.check_stated(sources, options)


@python_words(decoder=True)
def validate(
    inputs: Place | Sequence[Place],
    options: ConvertOptions | None = None,
    reporter: Reporter | None = None,
    *,
    max_faults: int = _MAX_FAULTS,
    against: Place | Sequence[Place] | None = None,
    **given: Unpack[ConvertGiven],
) -> StoreReport | InputReport | AgainstReport:
    """Check a store against its schema and invariants, or decode, index and resolve raw inputs without writing anything.

    A store's faults come in the report, the first ``max_faults`` of them; those of raw inputs are raised as GraphprepError.
    With ``against``, raw inputs or a provenance.json that names them, the store is also compared with what they say.
    ``given`` are fields of ``ConvertOptions``.
    """
    max_faults = check_value("max_faults", max_faults, int, MAX_FAULTS)
    urls, options = _as_list(inputs), make_options(ConvertOptions, options, given)
    with _reporting(reporter) as told:
        with _open_storage(options.run) as storage:
            if _names_store(storage, urls):
                from graphprep.validate.check import check_store

                if against is None:
                    _refuse_input_options(options)
                report = check_store(storage, urls[0], told, options.run, max_faults=max_faults)
                storage.check_unchanged()
                if against is None:
                    return report
                from graphprep.against.command import compare_with_input

                return compare_with_input(report, _as_list(against), options, told, _converter, max_faults=max_faults)
            made = read_made(storage, urls[0]) if len(urls) == 1 and against is None else None
            if made is not None:
                from graphprep.validate.made import check_made

                return check_made(storage, urls[0], made, told, max_faults)
            if against is not None:
                raise UsageError("--against compares a store, and this is none", place=_shown(urls), fix="name a store")
        from graphprep.convert import pipeline

        _check_bad_records(options, urls)
        return pipeline.check_input(urls, options, told)


@python_words(decoder=True)
def stats(
    inputs: Place | Sequence[Place],
    options: StatsOptions | None = None,
    reporter: Reporter | None = None,
    *,
    reading: ConvertOptions | None = None,
    **given: Unpack[StatsCall],
) -> StatsReport:
    """Say what a graph is like: ``stats("store", triangles="exact")``. Raw files become a store in a temporary folder first.

    ``reading`` says how ``convert`` would read raw files. ``given`` are fields of ``StatsOptions``, ``RunOptions`` or, with
    other names, of ``reading``. Raises GraphprepError.
    """
    from graphprep.model.options.stats import StatsOptions
    from graphprep.stats import command as looking
    from graphprep.stats.pictures.write import check_plot

    own, rest = _split(given, StatsOptions, RunOptions)
    options, reading = make_options(StatsOptions, options, own), make_options(ConvertOptions, reading, rest)
    urls = _as_list(inputs)
    with contextlib.ExitStack() as stack:
        storage, told = stack.enter_context(_open_storage(options.run)), stack.enter_context(_reporting(reporter))
        if _names_store(storage, urls):
            _refuse_input_options(reading)
            return looking.stats(urls[0], options, told)
        looking.check_seed(options)
        check_plot(options, storage, urls, reading)
        _check_bad_records(reading, urls)
        folder = PrivateFolder(options.run.tmp_dir)
        stack.callback(folder.remove)
        store = os.path.join(folder.make(), "store")  # noqa: PTH118 - a URL for all who take it
        _converter(reading)(urls, store, replace(reading, run=options.run), told)
        gc.collect()  # what converting left counts against the limit
        options = replace(options, overwrite=options.plot is not None)  # what was there is known
        return looking.stats(store, options, told, name=", ".join(urls) or "tables")


def _split(given: Mapping[str, Any], *kinds: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the values whose names are fields of ``kinds``, and the others."""
    names = {field.name for kind in kinds for field in fields(kind)}
    own = {name: value for name, value in given.items() if name in names}
    return own, {name: value for name, value in given.items() if name not in names}


@python_words()
def ids(
    store: Place,
    values: ArrayLike,
    *,
    from_: str,
    to: str,
    type_: str | None = None,
    edges: bool = False,
    parts: ArrayLike | None = None,
    missing: Literal["error", "mark"] = "error",
    storage_options: Mapping[str, str] | None = None,
) -> Any:
    """Convert IDs of a store between raw, typed, homo, part, local and previous (edges: id, row, homo, part, local).

    ``values`` are integers, and ``str`` where a node type's raw IDs are strings; local IDs come with their partitions in
    ``parts``. Returns int64[k]; for raw IDs what the store holds: int64[k], uint64[k], or object[k] of ``str`` (also where
    types differ); (partitions, local IDs) where ``to`` is local. An ID that is not there raises DataError, or becomes -1
    (2^64 - 1 in uint64, None among objects).
    """
    missing = check_value("missing", missing, Literal["error", "mark"])
    with open_ids(store, from_=from_, to=to, type_=type_, edges=edges, storage_options=storage_options) as lookup:
        wanted = _as_given(values, lookup.given_kind)
        if (parts is None) == (lookup.from_ == "local"):
            raise UsageError("parts belongs to local IDs", fix="give parts with from_='local', and only then")
        result = lookup.convert(wanted, None if parts is None else np.asarray(parts, np.int64))
    lost = np.flatnonzero(~result.found)
    if lost.size and missing == "error":
        first = int(lost[0])
        text = repr(wanted.text(first)) if isinstance(wanted, RawTexts) else wanted[first]
        raise DataError(f"there is no {lookup.from_} ID {text} (position {first})", place=os.fspath(store))
    out: Any = result.ids
    out[lost] = {"u": np.uint64(2**64 - 1), "O": None}.get(out.dtype.kind, -1)
    if result.parts is None:
        return out
    result.parts[lost] = -1
    return result.parts, out


@python_words()
def generate(
    kind: str,
    out: Place,
    options: GenerateOptions | None = None,
    reporter: Reporter | None = None,
    **given: Unpack[GenerateGiven],
) -> GenerateSummary:
    """Generate a test graph, ``rmat``, ``grid`` or ``hetero``, into a file, a folder or a URL; ``-`` is stdout.

    ``given`` are fields of ``GenerateOptions``: ``generate("rmat", "rmat.txt", scale=20)``. Raises GraphprepError.
    """
    from graphprep.generate import generate as stage
    from graphprep.model.options.generate import GenerateOptions

    options = make_options(GenerateOptions, options, given)
    with _open_storage(options.run) as storage, _reporting(reporter) as told:
        return stage.generate(kind, os.fspath(out), options, told, storage)


@python_words()
def partition(
    store: Place,
    out: Place,
    options: PartitionOptions | None = None,
    reporter: Reporter | None = None,
    **given: Unpack[PartitionGiven],
) -> PartitionSummary:
    """Write a store again to ``out``, its nodes in other partitions, and everything with them.

    ``given`` are fields of ``PartitionOptions``: ``partition("store", "parts", by="hash", partitions=4)``. Raises
    GraphprepError.
    """
    from graphprep.model.options.partition import PartitionOptions
    from graphprep.rewrite.partition import command as rewrite

    options = make_options(PartitionOptions, options, given)
    with _reporting(reporter) as told:
        return _worded(rewrite.partition(os.fspath(store), os.fspath(out), options, told))


@python_words()
def reorder(
    store: Place,
    out: Place,
    options: ReorderOptions | None = None,
    reporter: Reporter | None = None,
    **given: Unpack[ReorderGiven],
) -> ReorderSummary:
    """Write a store again to ``out``, the nodes of each partition and type in another order: by degree, highest first.

    ``given`` are fields of ``ReorderOptions``: ``reorder("store", "hot", by="in-degree")``. Raises GraphprepError.
    """
    from graphprep.model.options.reorder import ReorderOptions
    from graphprep.rewrite import command as rewrite

    options = make_options(ReorderOptions, options, given)
    with _reporting(reporter) as told:
        return _worded(rewrite.reorder(os.fspath(store), os.fspath(out), options, told))


@python_words()
def split(
    store: Place,
    out: Place,
    shares: str | Sequence[object] | None = "",
    options: SplitOptions | None = None,
    reporter: Reporter | None = None,
    **given: Unpack[SplitGiven],
) -> SplitSummary:
    """Write a store again to ``out``, with a column that says which rows are train, valid and test.

    ``shares`` are a text or numbers. ``given`` are fields of ``SplitOptions``: ``split("store", "parted", (0.8, 0.1, 0.1),
    of=["edges"])``. Raises GraphprepError.
    """
    from graphprep.model.options.split import SplitOptions
    from graphprep.rewrite.split import command as rewrite

    options = make_options(SplitOptions, options, given)
    text = "/".join(map(str, shares)) if isinstance(shares, Iterable) and not isinstance(shares, str) else str(shares or "")
    with _reporting(reporter) as told:
        return _worded(rewrite.split(os.fspath(store), os.fspath(out), text, options, told))


@python_words()
def transform(
    store: Place,
    out: Place,
    operations: str | Sequence[str],
    options: TransformOptions | None = None,
    reporter: Reporter | None = None,
    **given: Unpack[TransformGiven],
) -> TransformSummary:
    """Write to ``out`` what operations, in order, make of a store: ``transform("store", "simple", ["to-simple", "sum"])``.

    ``operations`` are words as on the command line; a text is split at blanks, as a shell does. ``given`` are fields of
    ``TransformOptions``. Raises GraphprepError.
    """
    from shlex import split

    from graphprep.model.options.transform import TransformOptions
    from graphprep.rewrite.transform import command as transforming

    words = split(operations) if isinstance(operations, str) else list(operations)
    options = make_options(TransformOptions, options, given)
    with _reporting(reporter) as told:
        return _worded(transforming.transform(os.fspath(store), os.fspath(out), words, options, told))


@python_words()
def sample(
    store: Place,
    out: Place,
    options: SampleOptions | None = None,
    reporter: Reporter | None = None,
    **given: Unpack[SampleGiven],
) -> SampleSummary:
    """Write to ``out`` flows around seeds: ``sample("store", "flows", seeds="train.txt", fanouts=[15, 10, 5])``.

    ``given`` are fields of ``SampleOptions``. Raises GraphprepError.
    """
    from graphprep.model.options.sample import SampleOptions
    from graphprep.sample import command as sampling

    seeds = given.get("seeds", ())
    if not all(isinstance(one, str | os.PathLike) for one in (seeds if isinstance(seeds, list | tuple) else [seeds])):
        fix = "write IDs to a file, or draw around IDs in memory: graphprep.neighbor_sampling(graph, IDS)"
        raise UsageError(f"seeds must be files, found {seeds!r}", fix=fix)
    options = make_options(SampleOptions, options, given)
    with _reporting(reporter) as told:
        return _worded(sampling.sample(os.fspath(store), os.fspath(out), options, told))


@python_words()
def export(
    store: Place,
    out: Place,
    target: str,
    options: ExportOptions | None = None,
    reporter: Reporter | None = None,
    **given: Unpack[TargetGiven],
) -> ExportSummary:
    """Write a store to ``out`` as the files that ``target`` loads: ``export("store", "parts", "glt", partitions=4)``.

    ``given`` are fields of ``ExportOptions`` or, with other names, options of the target. Raises GraphprepError.
    """
    from graphprep.export import command as exporting
    from graphprep.model.export import ExportOptions

    ours, own = _split(given, ExportOptions, RunOptions)
    options = make_options(ExportOptions, options, ours)
    options = replace(options, target_options={**options.target_options, **own})
    with _reporting(reporter) as told:
        return _worded(exporting.export(os.fspath(store), os.fspath(out), target, options, told))


@contextlib.contextmanager
def claim_exports(store: str, exports: Sequence[tuple[str, str]], options: ExportOptions) -> Iterator[Callable[[str], None]]:
    """Check before a long run that ``exports`` (target, place) of a store that is to be can be written, and claim their places.

    Yields a function that gives up the claim on a place, for the export that is about to claim it itself.

    Raises UsageError for unknown targets and for places that are taken, StorageError for those that cannot be written to.
    """
    from graphprep.export import command as exporting
    from graphprep.storage.private import claim_places
    from graphprep.storage.write.files import check_place

    places = [out for _, out in exports]
    with _open_storage(options.run) as storage:
        exporting.check_places(storage, store, *places, options=options)
        for target, out in exports:
            exporting.check_target(storage, target, out, options)
            check_place(storage, out)
    with claim_places([place for out in places if (place := local_path(out)) is not None]) as release:
        yield lambda out: release(local_path(out) or "")


@python_words()
def export_targets(
    store: Place | None = None,
    storage_options: Mapping[str, str] | None = None,
    target: str | None = None,
    target_options: Mapping[str, Any] | None = None,
) -> list[TargetInfo]:
    """List all targets, or one with its options: what they mean, what it carries, and what of ``store`` it would leave out.

    Raises GraphprepError.
    """
    from graphprep.exporters.registry import describe_targets

    wanted = () if target is None else (target,)
    if store is None:
        return describe_targets(wanted, options=target_options)
    with open_store(store, storage_options) as reader:
        return describe_targets(wanted, reader.metadata, target_options)


@python_words()
def clean(
    *places: Place, dry_run: bool = False, all_dead: bool = False, storage_options: Mapping[str, str] | None = None
) -> CleanReport:
    """Remove what runs that failed or were killed left at ``places``: outputs, or folders in which outputs lie.

    Stores, runs that are alive and what graphprep did not write are left alone. ``dry_run``: remove nothing. ``all_dead``: take
    runs of which nobody can tell, such as those of other machines, for dead. Raises GraphprepError.
    """
    from graphprep.clean import command as cleaning

    if not places:
        raise UsageError("PATH is needed: where to look", fix="name an output, or a folder of outputs")
    with _storage(storage_options) as storage:
        report = cleaning.clean([os.fspath(one) for one in places], storage, dry_run=dry_run, all_dead=all_dead)
    return replace(report, kept=tuple(replace(one, reason=in_words((one.reason,))[0]) for one in report.kept))


@contextlib.contextmanager
def open_ids(
    store: Place,
    *,
    from_: str,
    to: str,
    type_: str | None,
    edges: bool,
    storage_options: Mapping[str, str] | None = None,
) -> Iterator[IdLookup]:
    """Open a store for converting IDs, block after block."""
    from graphprep.ids.lookup import IdLookup
    from graphprep.storage.read.arrays import StoreReader

    edges = check_value("edges", edges, bool)
    with _storage(storage_options) as storage:
        yield IdLookup(storage, StoreReader(storage, os.fspath(store)), from_=from_, to=to, type_=type_, edges=edges)


@contextlib.contextmanager
def open_store(store: Place, storage_options: Mapping[str, str] | None = None) -> Iterator[StoreReader]:
    """Open a store for reading: ``.metadata``, and ``.array(part, path)`` for slices of its arrays."""
    from graphprep.storage.read.arrays import StoreReader

    with _storage(storage_options) as storage:
        yield StoreReader(storage, os.fspath(store))


@python_words()
def load(store: Place, storage_options: Mapping[str, str] | None = None) -> Graph:
    """Open a store for questions: ``.adjacency``, ``.column``, ``.find_edges``, ``.to_pyg`` …; arrays are memory maps.

    A store at a URL is read when it is asked; then ``close``, or use it in a ``with`` statement. Raises GraphprepError.
    """
    from graphprep.graph.graph import Graph

    return Graph(_storage(storage_options), os.fspath(store))


@contextlib.contextmanager
def open_file(url: Place, storage_options: Mapping[str, str] | None = None) -> Iterator[BinaryIO]:
    """Open any file for reading, decompressed where it is compressed."""
    with _storage(storage_options) as storage, storage.open(os.fspath(url)) as handle:
        yield handle


def is_store(storage: Storage, url: str) -> bool:
    """Return whether there is a store, whole or not: a metadata.json that says so, or partitions."""
    from graphprep.storage.read.arrays import is_store as look

    return look(storage, url)


def _names_store(storage: Storage, urls: Sequence[str]) -> bool:
    """Return whether the only input is a store.

    Raises UsageError where a store stands among several inputs.
    """
    if len(urls) == 1:
        return is_store(storage, urls[0])
    stores = [url for url in urls if storage.is_local(url) and is_store(storage, url)]  # servers are not asked of each file
    if not stores or not all(map(storage.exists, urls)):
        return False
    shown = {url: display_url(url) for url in urls}
    for url in urls:
        if url not in stores or not storage.exists(storage.join(url, METADATA_NAME)):
            what = "is no whole store: it has no metadata.json" if url in stores else "is no store"
            whole = [shown[one] for one in stores if one != url]
            is_one = f", and {', '.join(whole)} {'is' if len(whole) == 1 else 'are'}" if whole else ""
            raise UsageError(what + is_one, place=shown[url], fix="name one store, or raw input")
    raise UsageError(f"{' and '.join(shown[url] for url in stores)} are stores", fix="name one at a time")


@contextlib.contextmanager
def _reporting(reporter: Reporter | None) -> Iterator[Reporter]:
    """Report to who is given; else show progress in a notebook, and elsewhere log that kernels are compiled, alone."""
    made = None
    compilation.done.most_jobs = compiling_jobs
    if reporter is None and "IPython" in sys.modules:
        from graphprep.notebook import notebook_reporter

        made = notebook_reporter()
    tell = _log if reporter is None else reporter.message
    with made or contextlib.nullcontext(), compilation.announcing(None if made else tell):
        yield reporter or made or QuietReporter()


def _log(text: str) -> None:
    """Say why a first call takes long, to whoever listens to nothing else."""
    import logging

    logging.getLogger("graphprep").warning(text)


def _worded(summary: S, *, decoder: bool = False) -> S:
    """Return a summary whose sentences are in the caller's words."""
    changes: dict[str, Any] = {}
    for name in ("notes", "dropped"):
        if texts := getattr(summary, name, ()):
            changes[name] = in_words(texts, decoder=decoder)
    return replace(summary, **changes) if changes else summary


def _storage(options: Mapping[str, str] | None) -> Storage:
    return Storage(check_value("storage_options", options, Mapping[str, str] | None))


def _read_memory(
    inputs: object, nodes: Mapping[str, object] | None, edges: Mapping[Any, object] | None, options: ConvertOptions
) -> MemoryGraph | None:
    """Return what is in memory, None where ``inputs`` are paths.

    Raises UsageError for several inputs, and for objects that cannot be read.
    """
    given = inputs if isinstance(inputs, list | tuple) else (inputs,)
    if nodes is None and edges is None and all(map(isinstance, given, repeat((str, os.PathLike)))):
        return None
    from graphprep.convert.memory.graph import read_memory, read_tables

    if nodes is None and edges is None:
        found = read_memory(inputs, options.decoder_options, options.num_nodes)
    elif not isinstance(inputs, list | tuple) or inputs:
        raise UsageError("nodes and edges are the input: there is none beside them", fix="leave out one of the two")
    else:
        found = read_tables(nodes or {}, edges or {}, options.decoder_options, options.num_nodes)
    if found is not None and found.graph is not None:
        for name in ("graph", "format", "decoder"):
            if getattr(options, name) is not None:
                raise UsageError(f"{name} says how files are read, not what is in memory", fix=f"leave out {name}")
    return found


def _open_storage(run: RunOptions) -> Storage:
    return Storage(run.storage_options, run.tmp_dir)


def _as_list(inputs: Place | Sequence[Place]) -> list[str]:
    given: Sequence[Any] = [inputs] if isinstance(inputs, str | os.PathLike) else inputs
    urls = list(map(os.fspath, given))
    if "" in urls:
        raise UsageError("an input has no name", fix="name a file, folder, glob or URL")
    return urls


def _as_given(values: ArrayLike, kind: RawIdKind) -> GivenIds:
    """Return IDs as a lookup takes them: texts where raw IDs are strings, else int64 where one is negative, else uint64.

    Raises UsageError for what is no such ID.
    """
    if kind == "string":
        return _as_texts(values)
    low = -(2**63) if kind == "int64" else 0
    wanted = "ids must be integers" + ("" if low else " >= 0")
    fix = "pass an array of int64 or uint64"
    if isinstance(values, list | tuple) and all(type(value) is int and low <= value < 2**64 for value in values):
        # NumPy would make floats of small and very large ones together.
        if min(values, default=0) >= 0:
            return np.array(values, np.uint64)
        if max(values) >= 2**63:
            raise UsageError("ids must all fit int64, or all uint64", fix=fix)
        return np.array(values, np.int64)
    array = np.asarray(values)
    if array.size and (array.dtype.kind not in "iu" or (array.dtype.kind == "i" and array.min() < low)):
        raise UsageError(wanted, fix=fix)
    is_signed = array.dtype.kind == "i" and array.size and array.min() < 0
    return np.atleast_1d(array).astype(np.int64) if is_signed else np.atleast_1d(array).astype(np.uint64)


def _as_texts(values: ArrayLike) -> RawTexts:
    texts = np.atleast_1d(np.asarray(values, object)).ravel().tolist()
    try:
        return RawTexts.of([text.encode() for text in texts])
    except (AttributeError, UnicodeEncodeError):
        found = next(text for text in texts if not isinstance(text, str) or not text.isascii())
        raise UsageError(f"ids must be str, found {found!r}", fix="the raw IDs of this node type are strings") from None


def _check_bad_records(options: ConvertOptions, inputs: Sequence[str], out: str | None = None) -> None:
    """Refuse a file of rejected records that would replace what is read, or stand in the way of the store."""
    target = None if options.bad_records is None else local_path(options.bad_records)
    if target is None:
        return
    place = "--bad-records " + display_url(options.bad_records or "")
    if target == STDIN:
        raise UsageError("this is standard input, not a file", place=place, fix="name a file")
    store = None if out is None else local_path(out)
    if store is not None and Path(os.path.realpath(target)).is_relative_to(os.path.realpath(store)):
        raise UsageError("this is inside the store", place=place, fix="name a file outside of it")
    graph = options.graph
    tables = [] if graph is None else [*(one.table for one in graph.nodes), *(one.table for one in graph.edges)]
    urls = (*inputs, *(file for table in tables for file in table.files), options.schema, options.partition_by)
    read = [path for url in urls if url and (path := local_path(url)) is not None]
    if Path(target).is_file() and any(_is_read(Path(target), path) for path in read):
        raise UsageError("this file is an input, and would be lost", place=place, fix="name another file")


def _is_read(target: Path, path: str) -> bool:
    """Return whether a file is what ``path`` names, lies in that folder, or fits that glob."""
    for name in [path] if os.path.lexists(path) else glob.glob(path):  # noqa: PTH207 - absolute, too
        found = Path(name)
        if found.exists() and found.samefile(target.parent if found.is_dir() else target):
            return True
    return False


def _shown(urls: Sequence[str]) -> str:
    return ", ".join(map(display_url, urls))


def _refuse_input_options(options: ConvertOptions) -> None:
    """Refuse options that say how raw input is read: a store is read as its metadata.json says."""
    known = {**declared(InputOptions), **declared(FaultOptions)}
    given = [name for name, one in known.items() if getattr(options, name) != one.default] + [*options.decoder_options]
    if given:
        flags = ", ".join(flag_of(name, ConvertOptions, DecoderOptions) for name in given)
        raise UsageError(f"{METADATA_NAME} says that this is a store: raw input only takes {flags}", fix="leave that out")
