"""What a worker does: its share of the units of an input, each into a segment that ``merge`` reads."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from graphprep.convert.read.apart import Reading
from graphprep.convert.read.decode import decode_needs, decode_settings
from graphprep.convert.read.plan import decoded_bytes, plan
from graphprep.convert.resume import about_run
from graphprep.convert.run import Run
from graphprep.convert.units.cut import Unit, cut_input, share_of
from graphprep.convert.units.folder import SharedRun, UnitFolder
from graphprep.model.errors import UsageError
from graphprep.model.options.convert import ConvertOptions, ConvertSummary
from graphprep.model.options.recorded import written
from graphprep.model.protocols import Reporter
from graphprep.model.shown.texts import count, hide_secrets
from graphprep.storage.drivers import protocol_of
from graphprep.storage.faults import display_url

_MOST_NAMED = 8
_ALONE = "memory:// is this process's own: workers and merge in other processes find nothing there"


@dataclass(frozen=True)
class Share:
    """Which worker of how many."""

    index: int
    count: int


def check_share(options: ConvertOptions) -> Share | None:
    """Return which worker this is; None where there are none.

    Raises UsageError where that is said by halves, or does not go with other options.
    """
    index, number = options.worker_index, options.worker_count
    _check_scheduler(options)
    if index is None and number is None:
        return None
    if index is None or number is None:
        given, other = ("--worker-index", "--worker-count") if number is None else ("--worker-count", "--worker-index")
        raise UsageError(f"{given} needs {other}", fix="give both: which worker this is, from 0, and how many there are")
    if index >= number:
        raise UsageError(
            f"--worker-index {index} is not below --worker-count {number}", fix=f"number the workers from 0 to {number - 1}"
        )
    if options.resume:
        raise UsageError("--resume is for merge: a worker that is started again goes on by itself", fix="drop --resume")
    if options.on_cluster:
        raise UsageError(
            f"--engine {options.engine} does not go with --worker-index: a cluster has workers of its own",
            fix="drop one of them",
        )
    return Share(index, number)


def _check_scheduler(options: ConvertOptions) -> None:
    """Raise UsageError where an address is given and no cluster, or one of the other kind of clusters."""
    if options.scheduler is None:
        return
    if not options.on_cluster:
        raise UsageError("--scheduler belongs to --engine dask and --engine ray", fix="add one of them, or drop --scheduler")
    kind, _, rest = options.scheduler.rpartition("://")
    if options.engine == "ray" and not (kind in ("", "ray") and rest.rpartition(":")[2].isdecimal()):
        fix = "give HOST:PORT or ray://HOST:PORT, or take --engine dask"
        raise UsageError(f"--scheduler {options.scheduler} is no address of Ray", fix=fix)
    if options.engine == "dask" and kind == "ray":
        fix = "give tcp://HOST:PORT, or take --engine ray"
        raise UsageError(f"--scheduler {options.scheduler} is no address of dask", fix=fix)


def work(
    inputs: Sequence[str], out: str, options: ConvertOptions, reporter: Reporter | None = None, *, share: Share
) -> ConvertSummary:
    """Decode what is the worker's turn and not yet done. The summary tells of records and bytes only.

    Raises UsageError where workers of another run, or with other options, have the output, and what decoding raises.
    """
    if hide_secrets(list(inputs)) != list(inputs):
        raise UsageError("an input has a secret in its URL, which would be written to a file", fix="give it in the environment")
    with (
        Run(inputs, options, reporter) as run,
        UnitFolder(run.storage, out) as folder,
    ):
        run.storage.load_drivers((out,))
        known = plan(run)
        settings = decode_settings(run, known)
        reading = Reading(settings.block_bytes, settings.limit_bytes, settings.max_rows)
        about = about_run(run, known, "--worker-index")
        shared = folder.join(SharedRun(about, share.count, list(inputs), written(options), reading), options.overwrite)
        cut = cut_input(known, run.storage, shared.reading, share.count)
        units = share_of(cut.units, share.index, share.count)
        before = folder.done(shared)
        num_bytes = sum(unit.num_bytes for unit in units)
        needs = decode_needs(replace(settings, early=None, block_bytes=shared.reading.block_bytes), decoded_bytes(known.input))
        run.ledger.begin("decode", needs, total_bytes=num_bytes)
        left = [unit for unit in units if unit.number not in before]
        written_bytes = 0
        for unit in left:
            task = cut.task(
                unit, run.storage, folder.url, folder.new_name(shared, unit.number), settings.skip, settings.room_bytes
            )
            segment = task.write(settings.threads, run.engine)
            folder.add(segment)
            written_bytes += segment.num_bytes
            run.reporter.advance(num_bytes=unit.num_bytes)
        run.storage.check_unchanged()
        missing = missing_workers(cut.units, folder.done(shared), share.count)
        return ConvertSummary(
            out=out,
            format=known.input.format,
            format_flags=known.input.flags,
            num_nodes={},
            num_edges={},
            num_parts=0,
            input_bytes=num_bytes,
            output_bytes=written_bytes,
            elapsed_s=run.elapsed_s,
            peak_memory_bytes=run.finish(),
            stage_s=run.ledger.seconds,
            notes=_notes(share, len(units), len(units) - len(left), missing, out),
        )


def missing_workers(units: Sequence[Unit], done: Container[int], num_workers: int) -> dict[int, int]:
    """Return how many units each worker has still to decode, without those that have none."""
    found = {}
    for index in range(num_workers):
        left = sum(unit.number not in done for unit in share_of(units, index, num_workers))
        if left:
            found[index] = left
    return found


def _notes(share: Share, num_units: int, num_before: int, missing: Mapping[int, int], out: str) -> tuple[str, ...]:
    """Say what the worker did, and what comes next."""
    before = f", {num_before:,} of them before" if num_before else ""
    own = f"worker {share.index} of {share.count} is done: {count(num_units, 'unit')} decoded{before}"
    to_come = f"still to come: {workers_words(missing)}" if missing else ""
    notes = own, to_come or f"all workers are done: graphprep merge {display_url(out)} makes the store"
    return (*notes, _ALONE) if protocol_of(out) == "memory" else notes


def workers_words(missing: Mapping[int, int]) -> str:
    """Name workers with the number of units that they have left; of many the first ones."""
    shown = [f"worker {index} ({count(left, 'unit')})" for index, left in islice(missing.items(), _MOST_NAMED)]
    more = len(missing) - len(shown)
    return ", ".join([*shown, f"{more:,} more"] if more else shown)
