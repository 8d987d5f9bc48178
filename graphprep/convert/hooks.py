"""What options and callers install in a conversion: what only some runs want is imported where it is asked for, here alone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from graphprep.convert.build.write import Settled
from graphprep.convert.read.plan import Plan
from graphprep.convert.run import Run
from graphprep.convert.told import num_skipped
from graphprep.storage.private import PrivateFolder
from graphprep.storage.read.urls import local_path
from graphprep.storage.write.places import is_copied, is_roomy, refuse_overlap, resume_folder, workers_folder
from graphprep.storage.write.publish import StoreWriter

if TYPE_CHECKING:
    from graphprep.convert.resume import KeptStages
    from graphprep.kernels.edges import Kernels
    from graphprep.model.metadata import GraphMetadata
    from graphprep.storage.spill.journal import KeptFolder

PlanHook = Callable[[Run, Plan], Plan | None]
_MOST_GROWTH = 16  # of output and temporary files together over text: ``1 2\n`` becomes two layouts
_MOST_PACKED = 20  # what compression makes of text at best, roughly


@dataclass(frozen=True, eq=False)
class Converted:
    """A store in a private folder, at ``url``, that is to be rewritten with ``writer``, and what that may take.

    ``notes`` are sentences for the user of how that went.
    """

    context: Run
    url: str
    writer: StoreWriter
    kernels: Kernels
    provenance: Callable[[], object]
    notes: list[str] = field(default_factory=list)


class Hooks(NamedTuple):
    """What the caller of ``convert`` installs in it.

    ``elsewhere`` is given the plan of an input that others have decoded for this output, and returns it with their blocks;
    ``check`` may refuse what is planned, before anything is decoded. With ``rewrite`` the store is made in a private folder,
    and what that makes of it is at ``out``. ``journal`` is that of a run of which this is the first part.
    """

    elsewhere: Callable[[Run, Plan], Plan] | None = None
    check: Callable[[Run, Plan], None] | None = None
    rewrite: Callable[[Converted], GraphMetadata] | None = None
    journal: KeptFolder | None = None


def refuse_inputs_in_out(run: Run, known: Plan) -> None:
    """Refuse an input that lies in the output, or the other way round, once its files are known. Raises UsageError."""
    refuse_overlap(run.storage, [str(run.out)], {"input": {span.url for span in known.input.sources.spans}})


def check_disk(run: Run, known: Plan, *, has_copy: bool) -> None:
    """Compare what the run takes at least with what is free; tell it to who wants details.

    Most often there is room whatever the input holds, so that nobody need look into it. Of streams, whose size nobody knows,
    nothing is said. ``has_copy``: the store lies with the temporary files, too. Raises StorageError where there is too little.
    """
    planned, out = known.input, str(run.out)
    if planned.total_bytes is None:
        return
    has_copy = has_copy or (run.options.resume and is_copied(out, run.tmp_dir))
    most = planned.total_bytes * _MOST_GROWTH * (_MOST_PACKED if planned.is_packed else 1) * (2 if has_copy else 1)
    if getattr(run.reporter, "details", False) or not is_roomy(out, run.tmp_dir, most):
        from graphprep.convert import disk_need

        options = run.options
        disk_need.check_disk(
            planned,
            run.storage,
            disk_need.DiskRules(
                out=out,
                tmp_dir=run.tmp_dir,
                pool_bytes=run.memory.pool_bytes,
                num_layouts=len(options.layouts),
                edge_ids=options.edge_ids,
                may_drop_edges=options.on_missing_node == "drop",
                is_kept=options.resume,
                has_copy=has_copy,
            ),
            run.reporter,
        )


def others(run: Run, out: str) -> PlanHook | None:
    """Return what lets the workers of a cluster decode, where that is asked for.

    Raises UsageError where other workers decode for the output.
    """
    folder = local_path(workers_folder(out))
    if folder is None or os.path.lexists(folder):
        from graphprep.convert.units.folder import refuse_workers

        refuse_workers(run.storage, out)
    if not run.options.on_cluster:
        return None
    from graphprep.convert.units.cluster import OnCluster

    return run.stack.enter_context(OnCluster(out, run.options))


def private_place(run: Run) -> str:
    """Return the place of a store in a private folder."""
    folder = PrivateFolder(run.tmp_dir)
    run.stack.callback(folder.remove)
    return str(Path(folder.make()) / "store")


def check_outcome(run: Run, settled: Settled, target: StoreWriter | None = None) -> None:
    """Refuse a graph that is smaller, or has more faults, than options allow; ``target`` may replace a store."""
    options, replaced = run.options, None if target is None else target.replaced
    if options.max_errors is None and replaced is None and not options.min_nodes and not options.min_edges:
        return
    from graphprep.storage.faults import display_url
    from graphprep.store import room

    found = room.Outcome(
        display_url(run.inputs[0]) if len(run.inputs) == 1 else "",  # the place of messages
        sum(settled.num_nodes.values()),
        sum(settled.num_edges.values()),
        settled.decoded.num_records,
        num_skipped(run),
        settled.num_dropped_edges,
    )
    room.check_outcome(found, options, replaced)


def forget_kept(run: Run, out: str) -> None:
    """Remove what this run, or one that was interrupted, has kept for ``--resume``."""
    folder = resume_folder(out, run.tmp_dir)
    if run.kept is not None or folder.exists():
        from graphprep.storage.spill.journal import KeptFolder

        (run.kept or KeptFolder(str(folder))).finish()


@contextlib.contextmanager
def rejecting(run: Run) -> Iterator[None]:
    """Let a run list the records that are skipped, where they are, and write them to --bad-records, also where it fails."""
    if run.options.on_error != "skip":
        yield
        return
    from graphprep.convert.decoded.rejects import listing

    with listing(run.storage, run.options) as run.rejects:
        yield


def kept_stages(run: Run, known: Plan) -> KeptStages | None:
    """Return what keeps what the stages make, and goes on behind what was kept; None where nothing is."""
    if run.kept is None:
        return None
    from graphprep.convert.resume import KeptStages

    return KeptStages(run, known)


def tell_where_kept(run: Run, target: StoreWriter) -> None:
    """Say so where a dead run has begun the output, and what that kept lies elsewhere."""
    if run.kept is not None:
        from graphprep.convert import resume

        resume.tell_where_kept(run.kept, target, run.reporter)
