"""The stages of a conversion, in order."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from graphprep.convert.build.write import Checkpoint, Settled, build, provenance_of, publish
from graphprep.convert.hooks import (
    Converted,
    Hooks,
    PlanHook,
    check_disk,
    check_outcome,
    forget_kept,
    kept_stages,
    others,
    private_place,
    refuse_inputs_in_out,
    rejecting,
    tell_where_kept,
)
from graphprep.convert.index.nodes import index
from graphprep.convert.read.decode import decode
from graphprep.convert.read.locate import Locator
from graphprep.convert.read.plan import Plan, check_stated, plan
from graphprep.convert.roles.settle import columns
from graphprep.convert.run import Run
from graphprep.convert.shuffle.route_edges import shuffle
from graphprep.convert.told import InputReport, report_of, summary_of, tell_renumbered
from graphprep.model.options.convert import ConvertOptions, ConvertSummary
from graphprep.model.protocols import Reporter
from graphprep.storage.write.places import refuse_overlap
from graphprep.storage.write.publish import StoreWriter

if TYPE_CHECKING:
    from graphprep.convert.decoded.rows import Decoded
    from graphprep.convert.memory.folder import InMemory

PREPARING: tuple[Callable[[Run, Any], Any], ...] = (decode, index, shuffle, columns)  # of a plan; then build, and publish


def convert(
    inputs: Sequence[str],
    out: str,
    options: ConvertOptions | None = None,
    reporter: Reporter | None = None,
    in_memory: InMemory | None = None,
    hooks: Hooks = Hooks(),  # noqa: B008 - it cannot be changed
) -> ConvertSummary:
    """Convert raw graph files to a store of CSR/CSC partitions and metadata.json.

    ``inputs``: paths, folders, globs or URLs (``-``: stdin), or names of what is ``in_memory``; ``out``: a path or URL that
    does not exist yet. Raises the GraphprepErrors that the command line maps to its exit codes; then nothing is left at
    ``out``.
    """
    options = options or ConvertOptions()
    with Run(inputs, options, reporter, out, hooks.journal) as run:
        refuse_overlap(run.storage, list(filter(None, (out, options.bad_records))), {"input": inputs}, options)
        disk = partial(check_disk, has_copy=hooks.rewrite is not None)
        of_plan = (refuse_inputs_in_out, disk, hooks.check, hooks.elsewhere or others(run, out))
        resumes, kept = options.resume or hooks.elsewhere is not None, None if hooks.rewrite else run.kept
        target = run.stack.enter_context(StoreWriter(run.storage, out, options.overwrite, resumes=resumes, kept=kept))
        tell_where_kept(run, target)
        url = out if hooks.rewrite is None else private_place(run)
        run.writer = target if hooks.rewrite is None else run.stack.enter_context(StoreWriter(run.storage, url, kept=run.kept))
        if in_memory is not None:
            run.from_memory = True
            run.ledger.begin("spool", in_memory.needs())
            in_memory.spool(run.storage)
        settled, checkpoint = _prepare(run, [hook for hook in of_plan if hook is not None])
        check_outcome(run, settled, target)
        metadata, notes = publish(run, build(run, settled, checkpoint)), list[str]()
        if hooks.rewrite is not None:
            kernels = run.kernels(settled.decoded.num_edges)
            made = Converted(run, url, target, kernels, partial(provenance_of, run, settled))
            metadata, notes = hooks.rewrite(made), made.notes
        if target.replaced is not None:
            notes = [*notes, *tell_renumbered(target.replaced, metadata)]
        if hooks.journal is None:
            forget_kept(run, out)
        summary = summary_of(run, settled, target.num_bytes)
        if hooks.rewrite is not None:
            summary = replace(summary, num_nodes=metadata.num_nodes_by_type(), num_edges=metadata.num_edges_by_type())
        return replace(summary, notes=(*(in_memory.notes if in_memory is not None else ()), *summary.notes, *notes))


def check_input(inputs: Sequence[str], options: ConvertOptions | None = None, reporter: Reporter | None = None) -> InputReport:
    """Decode, index and resolve an input without writing anything; raise what ``convert`` would raise."""
    with Run(inputs, options or ConvertOptions(), reporter) as run:
        settled, _ = _prepare(run)
        check_outcome(run, settled)
        run.storage.check_unchanged()
        return report_of(run, settled)


@contextlib.contextmanager
def decode_input(inputs: Sequence[str], options: ConvertOptions) -> Iterator[tuple[Decoded, Locator]]:
    """Decode an input that was read before, for those who look for some of its rows."""
    with Run(inputs, options) as run:
        indexed = index(run, decode(run, plan(run)))
        yield indexed.decoded, Locator(indexed.decoded, run.storage, indexed.settings)
        run.ledger.end()


def _prepare(run: Run, hooks: Iterable[PlanHook | Callable[[Run, Plan], None]] = ()) -> tuple[Settled, Checkpoint | None]:
    """Run the stages from plan to columns; return what is to be written, and what goes on with a store that was begun.

    Records that are rejected are written to --bad-records, also where a stage fails.
    """
    with rejecting(run):
        known = plan(run)
        for hook in hooks:
            known = hook(run, known) or known
        kept = kept_stages(run, known)
        if kept is not None:
            return kept.prepare(), kept.checkpoint
        made: Any = known
        for stage in PREPARING:
            made = stage(run, made)
        return made, None


__all__ = [
    "Hooks",
    "InputReport",
    "check_input",
    "check_stated",
    "convert",
    "decode_input",
]
