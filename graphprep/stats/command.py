"""``stats``: what a store is like. The stages in order."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, replace

from graphprep.edges.moves import Workspace
from graphprep.engine.budget import format_size
from graphprep.engine.ledger import Need
from graphprep.model.errors import MemoryLimitError, UsageError
from graphprep.model.metadata import GraphMetadata
from graphprep.model.options.reorder import GapCost
from graphprep.model.options.stats import ComponentStats, EdgeTypeStats, NodeTypeStats, StatsOptions, StatsReport
from graphprep.model.protocols import Reporter
from graphprep.model.schema import edge_type_text
from graphprep.rewrite.gaps import type_gaps
from graphprep.rewrite.run import StoreRun
from graphprep.rewrite.stored_edges import derive_needs
from graphprep.stats.columns import column_needs, describe_columns
from graphprep.stats.degrees import DegreeCounts, TypeDegrees
from graphprep.stats.pairs import PairCounts, pair_edges
from graphprep.stats.partitions import describe_parts
from graphprep.stats.pictures.write import check_plot, picture_needs, write_plot
from graphprep.stats.triangles import find_triangles, triangle_needs
from graphprep.storage.read.arrays import StoreReader
from graphprep.store.items import check_arrays
from graphprep.store.paths import edge_folder, node_folder

_HUB_BYTES = 1024  # of a node that is named, about: as objects, and as the texts of JSON


def stats(
    store: str, options: StatsOptions | None = None, reporter: Reporter | None = None, *, name: str | None = None
) -> StatsReport:
    """Look at a store: degrees, components, repeated edges, locality, partitions, columns, and triangles if asked.

    The report calls it ``name``, else by its URL. The numbers are the same for any number of threads and any memory limit;
    ``triangles`` ``auto`` chooses by the limit between two ways. Raises the GraphprepErrors that the command line maps to its
    exit codes.
    """
    options = options or StatsOptions()
    check_seed(options)
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(StoreRun(store, None, replace(options.run, device="cpu"), reporter))
        check_plot(options, run.storage, [store])
        source = run.open_store()
        step = _Stages(run, source, run.room(source.metadata), options)
        degrees, nodes, components = step.degrees()
        pairs, gaps = step.pairs(), step.locality()
        step.begin("partitions")
        parts = describe_parts(source, step.room)
        triangles = None
        if options.triangles is not None:
            step.begin("triangles", triangle_needs(step.room))
            triangles = find_triangles(source, options, step.room)
        step.begin("columns", column_needs(step.room), total_records=sum(source.metadata.num_nodes_per_type))
        report = StatsReport(
            path=name or store,
            graph_name=source.metadata.graph_name,
            num_parts=source.metadata.num_parts,
            nodes=step.with_columns(nodes),
            edges=tuple(map(step.edge_type, range(len(degrees)), degrees, pairs, gaps)),
            components=components,
            triangles=triangles,
            parts=parts,
            plot=options.plot,
            elapsed_s=0.0,
            peak_memory_bytes=0,
            spilled_bytes=step.room.pool.spilled_bytes,
        )
        run.storage.check_unchanged()
        if options.plot is not None:
            step.begin("pictures", picture_needs())
            write_plot(report, options.plot, run.storage)
        peak = run.finish()
        return replace(report, peak_memory_bytes=peak, elapsed_s=run.elapsed_s, stage_s=dict(run.ledger.seconds))


def check_seed(options: StatsOptions) -> None:
    """Refuse a seed where nothing is drawn. Raises UsageError."""
    if options.seed and options.triangles in (None, "exact"):
        words = "without --triangles" if options.triangles is None else "with --triangles exact, which draws no sample"
        raise UsageError(f"--seed does nothing {words}", fix="leave it out, or give --triangles sampled")


def check_hubs(metadata: GraphMetadata, top: int, most_bytes: int) -> None:
    """Refuse more hubs than may be held, and written as JSON. Raises MemoryLimitError."""
    sizes = metadata.num_nodes_by_type()
    lists = [sizes[end] for src, _, dst in metadata.edge_types for end in (src, dst)] + list(sizes.values())
    num_bytes = _HUB_BYTES * sum(min(size, top) for size in lists)
    if num_bytes > max(most_bytes, _HUB_BYTES * len(lists) * StatsOptions.top):
        raise MemoryLimitError(
            f"--top {top:,} names {num_bytes // _HUB_BYTES:,} nodes in {len(lists)} lists, which take {format_size(num_bytes)}",
            fix=f"ask for {max(StatsOptions.top, most_bytes // _HUB_BYTES // len(lists)):,} or fewer, or raise --memory-limit",
        )


@dataclass(frozen=True)
class _Stages:
    """The stages of a run."""

    run: StoreRun
    store: StoreReader
    room: Workspace
    options: StatsOptions

    @property
    def metadata(self) -> GraphMetadata:
        """Return what is known of the store."""
        return self.store.metadata

    @property
    def histograms(self) -> bool:
        """Return whether the values of columns are counted in bins."""
        return self.options.histograms or self.options.plot is not None

    def begin(self, stage: str, needs: Iterable[Need] | None = None, *, total_records: int | None = None) -> None:
        """Begin a stage."""
        declared = tuple(derive_needs(self.room) if needs is None else needs)
        self.run.ledger.begin(stage, declared, total_records=total_records)

    def degrees(self) -> tuple[list[TypeDegrees], list[NodeTypeStats], ComponentStats]:
        """Count degrees, by edge type and in all, and components."""
        check_hubs(self.metadata, self.options.top, self.room.held_bytes)
        self.begin("degrees", total_records=sum(self.metadata.num_edges_per_type))
        for part in range(self.metadata.num_parts):
            check_arrays(self.store, part)
        with self.room.scratch.inner() as scratch:
            counts = DegreeCounts(self.store, replace(self.room, scratch=scratch), self.options.top)
            edges = list(map(counts.count, range(len(self.metadata.edge_types))))
            return edges, list(map(counts.nodes, range(len(self.metadata.node_types)))), counts.components()

    def pairs(self) -> list[PairCounts]:
        """Count repeated and reciprocal edges."""
        self.begin("pairs", total_records=sum(self.metadata.num_edges_per_type))
        return [pair_edges(self.store, number, self.room) for number in range(len(self.metadata.edge_types))]

    def locality(self) -> list[GapCost]:
        """Measure the gaps between neighbours."""
        self.begin("locality", total_records=sum(self.metadata.num_edges_per_type))
        found = []
        for number, num_edges in enumerate(self.metadata.num_edges_per_type):
            found.append(type_gaps(self.store, number, self.room))
            self.run.reporter.advance(records=num_edges)
        return found

    def with_columns(self, nodes: list[NodeTypeStats]) -> tuple[NodeTypeStats, ...]:
        """Look at the columns of nodes."""
        found = []
        for one, schema in zip(nodes, self.metadata.node_schemas, strict=True):
            columns = describe_columns(self.store, node_folder(one.name), schema.columns, self.room, histograms=self.histograms)
            found.append(replace(one, columns=columns))
            self.run.reporter.advance(records=one.num_nodes)
        return tuple(found)

    def edge_type(self, number: int, degrees: TypeDegrees, pairs: PairCounts, gaps: GapCost) -> EdgeTypeStats:
        """Put together what is known of an edge type, and look at its columns."""
        edge_type, schema = self.metadata.edge_types[number], self.metadata.edge_schemas[number]
        columns = describe_columns(self.store, edge_folder(edge_type), schema.columns, self.room, histograms=self.histograms)
        return EdgeTypeStats(
            name=edge_type_text(edge_type),
            num_edges=self.metadata.num_edges_per_type[number],
            num_self_loops=degrees.num_self_loops,
            num_repeated=pairs.num_repeated,
            reciprocity=pairs.reciprocity,
            in_degrees=degrees.in_degrees,
            out_degrees=degrees.out_degrees,
            in_hubs=degrees.in_hubs,
            out_hubs=degrees.out_hubs,
            locality=gaps,
            columns=columns,
        )
