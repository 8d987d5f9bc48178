"""What a conversion tells its user when it is done: the summary, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphprep.convert.build.write import Settled
from graphprep.convert.columns.routes import StoredColumn
from graphprep.convert.run import Run
from graphprep.model.metadata import GraphMetadata
from graphprep.model.options.convert import ConvertSummary
from graphprep.model.shown.results import Card, Showable, type_rows
from graphprep.model.shown.texts import count


@dataclass(frozen=True, repr=False)
class InputReport(Showable):
    """What a checked input holds: counts by type, and every type's columns."""

    format: str
    num_nodes: dict[str, int]
    num_edges: dict[str, int]
    num_records: int
    num_skipped: int
    node_columns: dict[str, tuple[StoredColumn, ...]]
    edge_columns: dict[str, tuple[StoredColumn, ...]]
    notes: tuple[str, ...]

    def card(self) -> Card:
        """See ``Showable``."""
        columns = {name: [one.schema.name for one in some] for name, some in {**self.node_columns, **self.edge_columns}.items()}
        skipped = f", {self.num_skipped:,} skipped" if self.num_skipped else ""
        title = f"{self.format}: {count(self.num_records, 'record')}{skipped}"
        return Card(title, type_rows(self.num_nodes, self.num_edges, columns), tuple(f"note: {one}" for one in self.notes))


def notes_of(run: Run, settled: Settled) -> tuple[str, ...]:
    """Return the sentences for the user: of what may be a mistake, of decoding, of IDs, and of columns.

    A terminal shows the first ones alone.
    """
    doubts = [ids.note for ids in settled.decoded.id_columns.values() if ids.note is not None]
    # What was guessed of the input is among them where the reporter tells nobody.
    untold = settled.plan.input.sources.messages if getattr(run.reporter, "is_quiet", False) else ()
    notes = [*untold, *settled.index.notes]
    for text, times in sorted(settled.decoded.warnings.items()):
        notes.append(text if times == 1 else f"{text} ({times} times)")
    joined: set[str] = set()
    for node in settled.nodes:
        _note_slots(notes, node.name, node.columns)
    for edge in settled.edges:
        _note_slots(notes, ":".join(edge.edge_type), edge.columns)
        joined.update(edge.edge_type[::2] if edge.route.num_edges else ())
    for node in settled.nodes:  # mostly, edges name other IDs than these, or another type
        if node.columns and node.name not in joined and node.route.num_rows:
            own = [column.schema.name for column in node.columns if column.schema.role in (None, "label", "split")]
            columns = f"column {own[0]!r}" if len(own) == 1 else f"{len(own):,} columns"
            if own:
                doubts.append(f"node type {node.name!r} has {columns}, but no edge begins or ends in it")
    return (*doubts, *notes, *settled.notes)


def _note_slots(notes: list[str], owner: str, columns: Sequence[StoredColumn]) -> None:
    """Say where one feature slot became several columns."""
    slots: dict[int, list[str]] = {}
    for column in columns:
        if column.schema.slot is not None:
            slots.setdefault(column.schema.slot, []).append(column.schema.name)
    for slot, names in slots.items():
        if len(names) > 1:
            notes.append(f"{owner}: slot {slot} became {', '.join(names)}; --schema fixes the kinds beforehand")


def summary_of(run: Run, settled: Settled, output_bytes: int) -> ConvertSummary:
    """End the last stage, and say what was converted."""
    peak = run.finish()
    return ConvertSummary(
        out=str(run.out),
        format=settled.plan.input.format,
        format_flags=settled.plan.input.flags,
        num_nodes=settled.num_nodes,
        num_edges=settled.num_edges,
        num_parts=settled.index.partition.num_parts,
        num_records=settled.decoded.num_records,
        num_skipped=num_skipped(run),
        num_dropped_edges=settled.num_dropped_edges,
        num_created_nodes=sum(settled.index.num_created),
        splits=settled.splits,
        input_bytes=settled.decoded.input_bytes,
        output_bytes=output_bytes,
        spilled_bytes=run.pool.spilled_bytes,
        elapsed_s=run.elapsed_s,
        peak_memory_bytes=peak,
        stage_s=run.ledger.seconds,
        notes=notes_of(run, settled),
    )


def report_of(run: Run, settled: Settled) -> InputReport:
    """Say what an input holds that was looked at alone."""
    return InputReport(
        format=settled.plan.input.format,
        num_nodes=settled.num_nodes,
        num_edges=settled.num_edges,
        num_records=settled.decoded.num_records,
        num_skipped=num_skipped(run),
        node_columns={node.name: node.columns for node in settled.nodes},
        edge_columns={edge.name: edge.columns for edge in settled.edges},
        notes=notes_of(run, settled),
    )


def num_skipped(run: Run) -> int:
    """Return how many records were skipped."""
    return 0 if run.rejects is None else run.rejects.num


def tell_renumbered(replaced: Mapping[str, Any], made: GraphMetadata) -> Iterator[str]:
    """Say of which node types raw IDs may have other typed IDs than in the store that was replaced: its graph was another."""
    try:
        before = GraphMetadata.from_json(dict(replaced))
    except (KeyError, TypeError, ValueError, AttributeError):  # it was no sound store
        return
    known = dict(zip(before.edge_types, before.edge_schemas, strict=True))
    others = [
        one
        for one, schema in zip(made.edge_types, made.edge_schemas, strict=True)
        if known.get(one, schema).checksum != schema.checksum
    ]
    touched = {end for edge_type in others for end in edge_type[::2]}
    nodes = [
        dict(zip(one.node_types, zip(one.num_nodes_per_chunk, one.node_schemas, strict=True), strict=True))
        for one in (before, made)
    ]
    for name, (parts, schema) in nodes[1].items():
        old_parts, old_schema = nodes[0].get(name, (parts, schema))
        has_raw = {schema.raw_ids, old_schema.raw_ids} != {"identity"}
        if name in nodes[0] and has_raw and (name in touched or list(old_parts) != list(parts)):
            yield (
                f"node type {name!r}: a raw ID may have another typed ID than in the store that was replaced; what is to last "
                "goes by raw IDs"
            )
