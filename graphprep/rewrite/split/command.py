"""``graphprep split``: its stages in order."""

from __future__ import annotations

import contextlib

from graphprep.model.metadata import METADATA_NAME
from graphprep.model.options.split import SplitOptions, SplitSummary
from graphprep.model.protocols import Reporter
from graphprep.rewrite.run import StoreRun, array_bytes
from graphprep.rewrite.split.negatives import Negatives, draw_negatives
from graphprep.rewrite.split.parts import PartFinder
from graphprep.rewrite.split.reverses import with_reverses
from graphprep.rewrite.split.rules import read_rules
from graphprep.rewrite.split.write import SplitWriter
from graphprep.storage.write.places import refuse_overlap
from graphprep.storage.write.publish import StoreWriter
from graphprep.store.items import check_arrays
from graphprep.store.room import DiskNeed, compare_disk


def split(
    store: str, out: str, shares: str = "", options: SplitOptions | None = None, reporter: Reporter | None = None
) -> SplitSummary:
    """Write the store at ``store`` again to ``out``, with a column that says which rows are train, valid and test.

    Raises the GraphprepErrors that the command line maps to its exit codes; then nothing is left at ``out``.
    """
    options = options or SplitOptions()
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(StoreRun(store, out, options.run, reporter))
        refuse_overlap(run.storage, [out], {"store": [store]}, options)
        source = run.open_store()
        rules, drawn = read_rules(source.metadata, shares, options), dict[str, Negatives]()
        compare_disk(out, run.tmp_dir, DiskNeed(0, sum(array_bytes(source))), run.reporter)
        writer = stack.enter_context(StoreWriter(run.storage, out, options.overwrite))
        run.follow(writer)
        for part in range(source.metadata.num_parts):
            check_arrays(source, part)
        room = run.room(source.metadata)
        needs = tuple(room.needs())
        run.ledger.begin("reverses", needs)
        rules = with_reverses(source, rules, options, room)
        run.ledger.begin("split", needs)
        finder = PartFinder(source, rules, room)
        splits = finder.find()
        if rules.negatives is not None:
            run.ledger.begin("negatives", needs)
            drawn = {
                one.owner.name: draw_negatives(source, one.owner.number, one.parts, rules.negatives, rules.seed, room)
                for one in splits
                if not one.owner.is_node
            }
        run.ledger.begin("copy", needs, total_bytes=sum(array_bytes(source)))
        made = {name: one.columns for name, one in drawn.items()}
        step = SplitWriter(source, writer, splits, made, room, run.reporter)
        step.copy()
        step.write_splits()
        run.ledger.begin("publish", needs)
        inputs = [run.storage.join(store, METADATA_NAME)]
        counts = {one.owner: one.count() for one in splits}
        metadata = step.finish(lambda: run.provenance(inputs, split=[owner.name for owner in counts]))
        return SplitSummary(
            **run.told(source, metadata, writer.num_bytes, room),
            by=options.by,
            num_parts=metadata.num_parts,
            node_splits={owner.name: parts for owner, parts in counts.items() if owner.is_node},
            edge_splits={owner.name: parts for owner, parts in counts.items() if not owner.is_node},
            negatives={name: one.total for name, one in drawn.items()},
            notes=(*finder.notes, *(note for name, one in drawn.items() for note in one.notes(name))),
        )
