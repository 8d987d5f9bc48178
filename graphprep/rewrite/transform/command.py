"""``graphprep transform``: operations one after another, each on the store that those before it made."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from graphprep.context import Context
from graphprep.edges.moves import Workspace
from graphprep.model.errors import UsageError
from graphprep.model.metadata import METADATA_NAME, GraphMetadata
from graphprep.model.options.transform import TransformOptions, TransformSummary
from graphprep.model.protocols import Reporter
from graphprep.model.schema import ColumnSchema, edge_type_path, edge_type_text, path_name
from graphprep.rewrite.run import StoreRun, array_bytes, room_for
from graphprep.rewrite.transform.names import MadeNames
from graphprep.rewrite.transform.operations import OPERATIONS, Operation, Step, parse_operations, read_names
from graphprep.rewrite.transform.parents import Parents
from graphprep.rewrite.transform.recipe import EdgeRecipe, Ids, Ints, Recipe, as_it_is, count_up, ranks, slices
from graphprep.rewrite.transform.views import WithoutNegatives
from graphprep.rewrite.transform.write import PARENT, RecipeWriter
from graphprep.storage.faults import display_url
from graphprep.storage.private import PrivateFolder
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.spill.scratch import Scratch
from graphprep.storage.write.outputs import FolderOutput
from graphprep.storage.write.places import lies_in, refuse_overlap
from graphprep.storage.write.publish import StoreWriter
from graphprep.store.checked_ids import CheckingStore
from graphprep.store.items import check_arrays
from graphprep.store.room import DiskNeed, compare_disk

if TYPE_CHECKING:
    from graphprep.convert.hooks import Converted

_EDGE_BYTES = 8  # of an edge while it is chosen: ends
_NODE_BYTES = 24


def transform(
    store: str,
    out: str,
    words: Sequence[str],
    options: TransformOptions | None = None,
    reporter: Reporter | None = None,
    origin: Sequence[Any] | None = None,
    writer: StoreWriter | None = None,
) -> TransformSummary:
    """Write to ``out`` what operations, in order, make of the store at ``store``.

    Raises the GraphprepErrors that the command line maps to its exit codes; then nothing is left at ``out``. ``origin`` is what
    provenance.json is to say of the inputs, where these are not the store, and operations are options of what read them;
    ``writer`` is what writes to ``out`` where that is claimed already.
    """
    options = options or TransformOptions()
    operations = parse_operations(words)
    names = read_names(operations, options.as_, options.into)
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(StoreRun(store, out, options.run, reporter))
        outs = [out] if options.maps is None else [out, options.maps]
        if options.maps is not None:
            _check_maps(options.maps, store, out)
        refuse_overlap(run.storage, outs, {"store": [store]}, options, words)
        source = run.open_store()
        compare_disk(out, run.tmp_dir, _disk_need(source), run.reporter)
        writer = writer or stack.enter_context(StoreWriter(run.storage, out, options.overwrite))
        maps = None if options.maps is None else stack.enter_context(_open_maps(run, options.maps))
        room = run.room(source.metadata)
        done = [" ".join([name, *arguments]) for name, arguments in operations]

        def provenance() -> object:
            if origin is not None:
                return {**run.provenance(()), "inputs": origin}
            return run.provenance([run.storage.join(store, METADATA_NAME)], operations=done)

        chain = _Chain(run, source, room, options, out, provenance, run.check_source, names)
        metadata = chain.run(operations, writer)
        if maps is not None and chain.maps is not None:
            chain.maps.write(maps)
            maps.publish()
        return TransformSummary(
            **run.told(source, metadata, writer.num_bytes, room),
            operations=tuple(done),
            num_parts=metadata.num_parts,
            notes=tuple(chain.notes),
        )


def _check_maps(url: str, store: str, out: str) -> None:
    """Raise UsageError where the folder of the maps has no name, or lies in a store."""
    if not url:
        raise UsageError("the folder of the maps has no name", place="--maps", fix="name the folder to write")
    if lies_in(url, store) or lies_in(url, out):
        raise UsageError("the maps lie in a store", place=display_url(url), fix="choose another name for --maps")


def _open_maps(run: StoreRun, url: str) -> FolderOutput:
    """Open the folder of the maps, which must not be there. Raises UsageError."""
    if run.storage.is_taken(url):
        raise UsageError("the output exists", place=display_url(url), fix="choose another name for --maps")
    return FolderOutput(run.storage, url, replaces=None)


@dataclass
class _Folder:
    """Where the stores between two operations lie, and the last one."""

    context: Context
    out: str
    _made: PrivateFolder | None = None
    _count: int = 0

    def next(self) -> str:
        """Return the path of the next store."""
        if self._made is None:
            self._made = PrivateFolder(self.context.tmp_dir)
            self.context.stack.callback(self._made.remove)
        self._count += 1
        return str(Path(self._made.make()) / f"store-{self._count}")


class _Chain:
    """Runs operations: each on a store of its own, but for those that see the same in what is made of the store so far."""

    def __init__(
        self,
        context: Context,
        store: StoreReader,
        room: Workspace,
        options: TransformOptions,
        out: str,
        provenance: Callable[[], object],
        check_source: Callable[[], None] | None = None,
        names: MadeNames | None = None,
    ) -> None:
        self._check_source = check_source
        self._names = names or MadeNames()
        self._storage, self._ledger, self._reporter = context.storage, context.ledger, context.reporter
        self._store = store
        self._room = room
        self._options = options
        self._folder = _Folder(context, out)
        self._provenance = provenance
        self._parents = Parents.at_first(store.metadata)
        self._has_parents = self._with_parents = False  # whether some operation may drop nodes; whether one did
        self.maps = None if options.maps is None else StoreMaps(store.metadata, room.scratch)
        self.notes = [
            f"column {PARENT!r} of {name!r} was there before, and stays"
            for name, columns in _columns(store.metadata)
            if any(column.name == PARENT for column in columns)
        ]

    def run(self, operations: Sequence[tuple[str, tuple[str, ...]]], writer: StoreWriter) -> GraphMetadata:
        """Run all; return the metadata of the last store."""
        left = list(operations)
        self._has_parents = self._options.ids == "compact" and any(OPERATIONS[name].chooses for name, _ in operations)
        while True:
            for part in range(self._store.metadata.num_parts):
                check_arrays(self._store, part)
            with self._room.scratch.inner() as scratch:
                room = replace(self._room, scratch=scratch)
                self._ledger.begin("choose", tuple(room.needs()))
                recipe = whole = as_it_is(self._store, room)
                while left and _is_seen(OPERATIONS[left[0][0]], recipe, whole, self._store.metadata):
                    name, arguments = left.pop(0)
                    is_whole = OPERATIONS[name].reads == "store"
                    store = WithoutNegatives(self._store) if is_whole else self._store
                    step = Step(
                        store,
                        self._storage,
                        recipe,
                        room,
                        self._options.ids == "compact",
                        self.maps is not None,
                        self._names,
                        self._options.into,
                        self._options.other_types == "keep",
                        (self._folder.out, self._folder.context.tmp_dir),
                    )
                    recipe = OPERATIONS[name].apply(step, arguments)
                    self.notes += step.notes
                recipe = self._without_negatives(recipe, whole)
                self._with_parents |= recipe.with_parents
                if not left:
                    return self._write(recipe, writer, room)
                url = self._folder.next()
                with StoreWriter(self._storage, url) as between:
                    self._write(recipe, between, room, is_last=False)
            self._store = CheckingStore(self._storage, url)

    def _without_negatives(self, recipe: Recipe, whole: Recipe) -> Recipe:
        """Leave out the negatives of edge types of which edges or nodes are others than in ``whole``, the store as it is."""
        metadata, dropped = self._store.metadata, []
        for number, columns in enumerate(metadata.without_negatives()[1]):
            if columns and not (recipe.store is None and _is_kept(recipe, whole, metadata, number)):
                dropped += [(metadata.edge_types[number], column.name) for column in columns]
                text = "the negatives of its edges are left out: graphprep split draws others"
                self.notes.append(f"edge type {edge_type_text(metadata.edge_types[number])!r}: {text}")
        return replace(recipe, dropped=(*recipe.dropped, *dropped)) if dropped and recipe.store is None else recipe

    def _write(self, recipe: Recipe, writer: StoreWriter, room: Workspace, *, is_last: bool = True) -> GraphMetadata:
        parents = self._parents if is_last and self._with_parents else None
        writer.on_write = lambda num_bytes: self._reporter.advance(num_bytes=num_bytes)
        nodes_bytes, edges_bytes = _about_bytes(self._store, recipe)
        step = RecipeWriter(recipe.store or self._store, recipe, writer, room, self._reporter, parents)
        needs = tuple(room.needs())
        self._ledger.begin("nodes", needs, total_bytes=nodes_bytes)
        step.write_nodes()
        if self.maps is not None and recipe.store is not None:
            raise UsageError(
                "maps cannot be followed where types become others",
                place="--maps",
                fix="the columns node_id and edge_id say it",
            )
        self._ledger.begin("edges", needs, total_bytes=edges_bytes)
        step.write_edges()
        if self.maps is not None:
            new_ids = [step.new_ids(name) for name in self._store.metadata.node_types]
            self.maps.add(recipe, new_ids, step.row_orders)
        if not is_last and self._has_parents:
            self._parents = self._parents.after(recipe, step.orders, step.row_orders, self._room.scratch)
        self._ledger.begin("publish", needs)
        if self._check_source is not None:
            self._check_source()
            self._check_source = None  # stores after it are our own
        return step.finish(self._provenance)


def _about_bytes(store: StoreReader, recipe: Recipe) -> tuple[int | None, int | None]:
    """Return about how large the files of nodes and of edges become: as large as those that are there, an edge."""
    if recipe.store is not None:  # types are others, or what they have
        return None, None
    old, new = sum(store.metadata.num_edges_per_type), sum(one.size for one in recipe.edges)
    return sum(array_bytes(store, "nodes")), round(sum(array_bytes(store, "edges")) * new / max(1, old))


def rewrite_converted(operations: Sequence[str], made: Converted) -> GraphMetadata:
    """Write to its place what operations, in order, make of a store that was just converted."""
    store, room = CheckingStore(made.context.storage, made.url), room_for(made.context, made.kernels)
    chain = _Chain(made.context, store, room, TransformOptions(), made.url, made.provenance)
    metadata = chain.run(parse_operations(operations), made.writer)
    made.notes.extend(chain.notes)
    return metadata


def _is_seen(operation: Operation, recipe: Recipe, whole: Recipe, metadata: GraphMetadata) -> bool:
    """Return whether an operation finds in a recipe, and the store behind it, what it would in the store that is made of it.

    That recipe must be some of the store's edges, and columns be read as they stand there. Edges without IDs lie otherwise in
    every store.
    """
    if recipe is whole:
        return True
    if operation.reads == "store" or any(schema.edge_id_dtype is None for schema in metadata.edge_schemas):
        return False
    if recipe.changed or (operation.reads == "columns" and recipe.dropped):
        return False
    return (
        all(nodes.kept is None for nodes in recipe.nodes)
        and tuple(edges.edge_type for edges in recipe.edges) == metadata.edge_types
        and recipe.store is None
        and not recipe.merged
        and not any(edges.made for edges in recipe.edges)
    )


def _is_kept(recipe: Recipe, whole: Recipe, metadata: GraphMetadata, number: int) -> bool:
    """Return whether an edge type, and the nodes at its ends, are as they are in the store; so is what is made of it."""
    src, _, dst = metadata.edge_types[number]
    nodes = [recipe.nodes[metadata.node_types.index(name)] for name in (src, dst)]
    made = [edges for edges in recipe.edges if edges.number == number]
    return all(one.kept is None for one in nodes) and all(edges is whole.edges[number] for edges in made)


class StoreMaps:
    """Where the nodes and edges of the first store are in the last: typed IDs and edge IDs, -1 for those that are gone."""

    def __init__(self, metadata: GraphMetadata, scratch: Scratch) -> None:
        self._metadata = metadata
        self._scratch = scratch
        self._nodes = [count_up(size, scratch) for size in metadata.num_nodes_per_type]
        self._edges = [count_up(size, scratch) for size in metadata.num_edges_per_type]
        self._numbers = list(range(len(metadata.edge_types)))  # of the edge types, as they are by now

    def add(self, recipe: Recipe, new_ids: Sequence[Ints | None], row_orders: Sequence[Ids | None]) -> None:
        """Go on to the store that a recipe makes; ``new_ids`` are by old typed ID, None: as they were.

        ``row_orders`` are the recipe's edges in the order of the rows, of edge types that have no IDs.
        """
        for nodes, step in zip(self._nodes, new_ids, strict=True):
            if step is not None:
                _follow(nodes, step)
        for at, number in enumerate(self._numbers):
            made = next(i for i, edges in enumerate(recipe.edges) if edges.number == number)
            edges = recipe.edges[made]
            with self._scratch.inner() as inner:
                step = recipe.maps.get(number)
                if step is None:
                    step = _inverse(edges, self._edges[at], inner)
                _follow(self._edges[at], step)
                rows = row_orders[made]
                if rows is not None:
                    _follow(self._edges[at], ranks(rows, edges.size, inner))
            self._numbers[at] = made

    def write(self, output: FolderOutput) -> None:
        """Write an array for each type: ``nodes/NAME.npy``, ``edges/SRC__REL__DST.npy``, int64 by old ID."""
        for name, array in zip(self._metadata.node_types, self._nodes, strict=True):
            output.write_npy(f"nodes/{path_name(name)}.npy", "int64", array.shape, (array[at] for at in slices(array.size)))
        for edge_type, array in zip(self._metadata.edge_types, self._edges, strict=True):
            path = f"edges/{edge_type_path(edge_type)}.npy"
            output.write_npy(path, "int64", array.shape, (array[at] for at in slices(array.size)))


def _inverse(edges: EdgeRecipe, like: Ints, scratch: Scratch) -> Ints:
    """Return where each old ID is, the first of several; there are no more old IDs than ``like`` names."""
    size = max((int(like[at].max(initial=-1)) for at in slices(like.size)), default=-1) + 1
    out: Ints = scratch.zeros(size, np.int64)
    out[:] = -1
    for at in reversed(list(slices(edges.size))):
        some = edges.ids(at)[::-1]
        inside = (some >= 0) & (some < size)
        out[some[inside]] = np.arange(at.stop - 1, at.start - 1, -1)[inside]
    return out


def _follow(ids: Ints, step: Ints) -> None:
    for at in slices(ids.size):
        some = ids[at]
        ids[at] = np.where(some < 0, -1, step[np.maximum(some, 0)] if step.size else -1)


def _columns(metadata: GraphMetadata) -> list[tuple[str, tuple[ColumnSchema, ...]]]:
    nodes = [(name, schema.columns) for name, schema in zip(metadata.node_types, metadata.node_schemas, strict=True)]
    edges = zip(metadata.edge_types, metadata.edge_schemas, strict=True)
    return nodes + [(edge_type_text(name), schema.columns) for name, schema in edges]


def _disk_need(store: StoreReader) -> DiskNeed:
    """Say what a run takes at least: the store, and what is held of nodes and edges."""
    metadata = store.metadata
    held = _EDGE_BYTES * sum(metadata.num_edges_per_type) + _NODE_BYTES * sum(metadata.num_nodes_per_type)
    return DiskNeed(held, sum(array_bytes(store)))
