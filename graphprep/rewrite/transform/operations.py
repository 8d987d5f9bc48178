"""The operations by name: their arguments, and what recipe each makes of a store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.roles import decoded_name
from graphprep.convert.roles.seeds import find_seeds
from graphprep.edges.moves import Workspace
from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.schema import NeighborOrder, edge_type_text
from graphprep.model.shown.texts import count
from graphprep.rewrite.transform import edge_ops, node_ops, select, views
from graphprep.rewrite.transform.merge_columns import is_merged
from graphprep.rewrite.transform.names import MadeNames, parse_names
from graphprep.rewrite.transform.recipe import EdgeRecipe, Ids, Ints, Recipe
from graphprep.rewrite.transform.select import Owner, edge_owner, node_owner
from graphprep.storage.read.npy import parse_npy_header
from graphprep.storage.read.urls import Storage
from graphprep.storage.spill.scratch import Scratch
from graphprep.store.items import StoredArrays
from graphprep.store.room import refuse_edges

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Step:
    """What an operation works with: a store and what is made of it so far. ``compact``: IDs close up where nodes go.

    ``with_maps``: merged edges are to be found again by their old IDs. ``names`` are those of columns that are made,
    ``into`` that of the edge type that ``flatten`` makes. ``keeps_others``: subgraphs keep what of types is that are not named.
    ``places`` are OUT and the
    folder of temporary files. ``notes`` are sentences for the user.
    """

    store: StoredArrays
    storage: Storage
    recipe: Recipe
    room: Workspace
    compact: bool
    with_maps: bool = False
    names: MadeNames = field(default_factory=MadeNames)
    into: str | None = None
    keeps_others: bool = False
    places: tuple[str, str | None] = ("", None)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Operation:
    """An operation of ``transform``: what it is called with, and what it does.

    ``reads``: whether it looks at nothing but the ends of edges, at columns and their names as well, or at all of a store, edge
    IDs among it. ``chooses``: it may drop nodes.
    ``makes`` are the columns that it adds.
    """

    usage: str
    least: int
    most: int
    apply: Callable[[Step, Sequence[str]], Recipe]
    reads: Literal["ends", "columns", "store"] = "ends"
    chooses: bool = False
    makes: tuple[str, ...] = ()


def parse_operations(words: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Cut words into operations with their arguments: an operation's name begins the next one. Raises UsageError."""
    found: list[tuple[str, list[str]]] = []
    for word in words:
        if word in OPERATIONS and not (found and len(found[-1][1]) < OPERATIONS[found[-1][0]].least):
            found.append((word, []))
        elif not found:
            raise UsageError(f"there is no operation {word!r}", fix=one_of(OPERATIONS, found=word))
        else:
            found[-1][1].append(word)
    for name, arguments in found:
        operation = OPERATIONS[name]
        if not operation.least <= len(arguments) <= operation.most:
            given = " ".join([name, *arguments])
            raise UsageError(f"{given!r} has {len(arguments)} arguments", fix=f"write {name} {operation.usage}".rstrip())
    if not found:
        raise UsageError("there is no operation", fix=one_of(OPERATIONS, "name one or more of"))
    return [(name, tuple(arguments)) for name, arguments in found]


def read_names(operations: Sequence[tuple[str, tuple[str, ...]]], words: Sequence[str], into: str | None) -> MadeNames:
    """Return the names of the columns that operations make. Raises UsageError, also for an ``into`` that nothing takes."""
    given = {name for name, _ in operations}
    if into is not None and "flatten" not in given:
        raise UsageError("--into does nothing without flatten", fix="leave it out")
    if into == "":
        raise UsageError("the edge type has no name", place="--into", fix="name the edge type that flatten makes")
    made: list[str] = []
    for name, arguments in operations:
        if name != "to-simple" or "count" in arguments:
            made += OPERATIONS["to-homogeneous" if name == "flatten" and into is not None else name].makes
        if name == "to-homogeneous" and "raw-ids" in arguments:
            made.append(views.RAW_ID)
    return parse_names(words, list(dict.fromkeys(made)))


def _choice(name: str, value: str, known: Sequence[str]) -> Any:
    if value not in known:
        raise UsageError(f"{value!r} means nothing to {name}", fix=one_of(known, found=value))
    return value


def _self_loops(step: Step, arguments: Sequence[str]) -> Recipe:
    wanted = _choice("self-loops", arguments[0], ("drop", "add", "keep"))
    if wanted == "drop":
        return edge_ops.drop_loops(step.recipe, step.room.scratch)
    return edge_ops.add_loops(step.store, step.recipe, step.room.scratch) if wanted == "add" else step.recipe


def _symmetrize(step: Step, arguments: Sequence[str]) -> Recipe:
    weights, *named = arguments if arguments and arguments[0] in edge_ops.WEIGHTS else ("sum", *arguments)
    metadata = step.store.metadata
    chosen = {edge_owner(metadata, name).number for name in named}
    same = {number for number, (src, _, dst) in enumerate(metadata.edge_types) if src == dst}
    if not named and same:
        chosen = same
        if len(same) < len(metadata.edge_types):
            left = len(metadata.edge_types) - len(same)
            step.notes.append(f"edge types between different node types stay as they are: {left}; add-reverse reverses them")
    chosen = chosen or set(range(len(metadata.edge_types)))
    _tell_unmerged(step, weights, chosen)
    return edge_ops.symmetrize(step.store, step.recipe, step.room, weights, chosen, with_maps=step.with_maps)


def _to_simple(step: Step, arguments: Sequence[str]) -> Recipe:
    merge = _choice("to-simple", arguments[0] if arguments else "first", get_args(edge_ops.Merge))
    _tell_unmerged(step, merge, range(len(step.store.metadata.edge_types)))
    return edge_ops.to_simple(step.store, step.recipe, step.room, merge, with_maps=step.with_maps, names=step.names)


def _tell_unmerged(step: Step, merge: str, chosen: Collection[int]) -> None:
    """Name the columns of numbers and booleans of which no ``sum`` or ``max`` is taken."""
    columns = [column for number in chosen for column in step.store.metadata.edge_schemas[number].columns]
    left = [one.name for one in columns if one.kind == "dense" and not is_merged(one, merge)]
    if merge in ("sum", "max") and left:
        names = ", ".join(map(repr, dict.fromkeys(left)))
        step.notes.append(f"{merge}: dates, codes, booleans, labels and IDs have the value of the first edge: {names}")


def _node_subgraph(step: Step, arguments: Sequence[str]) -> Recipe:
    masks: dict[int, Mask] = {}
    for word in arguments:
        owner, mask = _node_mask(step, word)
        masks[owner.number] = masks[owner.number] & mask if owner.number in masks else mask
    scratch, metadata = step.room.scratch, step.store.metadata
    if not step.keeps_others:
        induced = node_ops.keep_nodes(step.store, step.recipe, masks, scratch, compact=False).edges
        named = {metadata.node_types[number] for number in masks}
        _tell_dropped(step, "node-subgraph", [one for one in induced if not named.issuperset(one.edge_type[::2])])
        sizes = enumerate(metadata.num_nodes_per_type)
        masks |= {number: scratch.zeros(size, np.bool_) for number, size in sizes if number not in masks}
    return node_ops.keep_nodes(step.store, step.recipe, masks, scratch, compact=step.compact)


def _tell_dropped(step: Step, operation: str, edges: Sequence[EdgeRecipe]) -> None:
    """Say how many edges go for their types are not named."""
    if edges:
        words = f"{count(sum(one.size for one in edges), 'edge')} of {count(len(edges), 'type')}"
        step.notes.append(f"{operation}: what is not named went, {words}; --other-types keep keeps it")


def _node_mask(step: Step, word: str) -> tuple[Owner, Mask]:
    """Read ``[TYPE=]FILE`` or ``[TYPE:]@COLUMN[=VALUE]``."""
    metadata = step.store.metadata
    name, column, value = _parse_column(word)
    if column is not None:
        owner = node_owner(metadata, name)
        return owner, select.column_mask(step.store, owner, column, value, step.room.scratch)
    name, url = _parse_file(word, metadata.node_types)
    owner = node_owner(metadata, name)
    index = node_ops.StoreIndex(step.store, step.room.piece_bytes)
    found = find_seeds(step.storage, url, index, owner.number, step.room.held_bytes, "node")
    return owner, node_ops.mask_of(owner.size, found, step.room.scratch)


def _parse_column(word: str) -> tuple[str | None, str | None, str | None]:
    """Split ``TYPE:@COLUMN=VALUE``: (type, column, value); the column is None where none is meant."""
    head, at, rest = word.partition("@")
    if not at or (head and not head.endswith(":")):
        return None, None, None
    column, equals, value = rest.partition("=")
    return head[:-1] or None, decoded_name(column), value if equals else None


def _parse_file(word: str, names: Sequence[str]) -> tuple[str | None, str]:
    """Split ``TYPE=FILE``. Raises UsageError where no file is named."""
    head, equals, url = word.partition("=")
    name = head if head in names else decoded_name(head)
    found = (name, url) if equals and name in names else (None, word)
    if not found[1]:
        raise UsageError(f"{word!r} names no file", fix="write [TYPE=]FILE or [TYPE:]@COLUMN[=VALUE]")
    return found


def _edge_subgraph(step: Step, arguments: Sequence[str]) -> Recipe:
    metadata, scratch = step.store.metadata, step.room.scratch
    recipe, named = step.recipe, set[int]()
    for word in arguments:
        name, column, value = _parse_column(word)
        if column is not None:
            owner = edge_owner(metadata, name)
            named.add(owner.number)
            by_row = select.column_mask(step.store, owner, column, value, scratch)
            recipe = _keep(recipe, owner, by_row, _rows, scratch)
            continue
        names = [name for edge_type in metadata.edge_types for name in (edge_type_text(edge_type), edge_type[1])]
        name, url = _parse_file(word, names)
        owner = edge_owner(metadata, name)
        named.add(owner.number)
        by_id = node_ops.mask_of(owner.size, [_read_edge_ids(step.storage, url, owner)], scratch)
        recipe = _keep(recipe, owner, by_id, EdgeRecipe.ids, scratch)
    others = [one for one in recipe.edges if one.number not in named]
    if others and not step.keeps_others:
        _tell_dropped(step, "edge-subgraph", others)
        none = np.zeros(0, np.int64)
        edges = [one if one.number in named else one.take(none, scratch) for one in recipe.edges]
        recipe = replace(recipe, edges=tuple(edges))
    if not step.compact:
        return recipe
    masks = node_ops.incident(step.store, recipe, scratch)
    return node_ops.keep_nodes(step.store, recipe, masks, scratch, compact=True)


def _read_edge_ids(storage: Storage, url: str, owner: Owner) -> Ints:
    """Read edge IDs, one a line, or a list of them in ``.npy``. Raises DataError."""
    import io

    with storage.open(url) as handle:
        data = handle.read()
    is_array = data[:6] == b"\x93NUMPY"
    if is_array and (said := parse_npy_header(data, url).num_bytes) > len(data):
        raise DataError(f"the file ends after {len(data)} bytes, its header says {said}", place=url, fix="write the file again")
    try:
        ids = np.load(io.BytesIO(data), allow_pickle=False) if is_array else np.array(data.split(), np.int64)
    except (ValueError, OverflowError):
        raise DataError("there is something else than edge IDs", place=url, fix="write one edge ID a line") from None
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise DataError(f"edge IDs must be integers, found {ids.dtype}", place=url, fix="write one edge ID a line")
    return select.check_ids(ids, owner.size, "edge", url)


def _keep(recipe: Recipe, owner: Owner, mask: Mask, key: Callable[[EdgeRecipe, slice], Ids], scratch: Scratch) -> Recipe:
    """Keep the edges of a type whose old row, or old ID (``key``), the mask has; new edges have none, and go."""

    def keep(edges: EdgeRecipe) -> EdgeRecipe:
        def inside(at: slice) -> Mask:
            keys = key(edges, at)
            return np.asarray(mask[np.maximum(keys, 0)] & (keys >= 0))

        return edge_ops.keep_edges(edges, inside, scratch)

    return replace(recipe, edges=tuple(keep(one) if one.number == owner.number else one for one in recipe.edges))


def _rows(edges: EdgeRecipe, at: slice) -> Ids:
    """Return the old rows of some edges of a type that has columns."""
    assert edges.rows is not None
    return edges.rows[at]


def _khop_subgraph(step: Step, arguments: Sequence[str]) -> Recipe:
    word, hops = arguments
    most = node_ops.parse_count(hops)
    if most is None:
        raise UsageError(f"{hops!r} is no number of hops", place="khop-subgraph", fix="write khop-subgraph [TYPE=]FILE K")
    owner, mask = _node_mask(step, word)
    masks = node_ops.reach(step.store, step.recipe, {owner.number: mask}, most, step.room.scratch)
    return node_ops.keep_nodes(step.store, step.recipe, masks, step.room.scratch, compact=step.compact)


def _filter(step: Step, arguments: Sequence[str]) -> Recipe:
    scratch = step.room.scratch
    owner, text = select.expression_owner(step.store.metadata, arguments[0])
    mask = select.expression_mask(step.store, owner, text, scratch)
    if owner.is_node:
        return node_ops.keep_nodes(step.store, step.recipe, {owner.number: mask}, scratch, compact=step.compact)
    return _keep(step.recipe, owner, mask, _rows, scratch)


def _filter_degree(step: Step, arguments: Sequence[str]) -> Recipe:
    low, high = node_ops.parse_degrees(arguments[0])
    masks = node_ops.by_degree(step.store, step.recipe, low, high, step.room)
    return node_ops.keep_nodes(step.store, step.recipe, masks, step.room.scratch, compact=step.compact)


def _largest_component(step: Step, arguments: Sequence[str]) -> Recipe:
    masks = node_ops.largest_component(step.store, step.recipe, step.room.scratch)
    return node_ops.keep_nodes(step.store, step.recipe, masks, step.room.scratch, compact=step.compact)


def _layout(step: Step, arguments: Sequence[str]) -> Recipe:
    if arguments[0] == "coo":
        fix = "use graphprep export, whose target edges has them so, or graph.edges() in Python"
        raise UsageError("a store has rows, CSC or CSR; 'coo' is its edges one after another", place="layout", fix=fix)
    wanted = _choice("layout", arguments[0], ("csc", "csr", "both"))
    return replace(step.recipe, layouts=("csc", "csr") if wanted == "both" else (wanted,))


def _index_dtype(step: Step, arguments: Sequence[str]) -> Recipe:
    return replace(step.recipe, index_dtype=_choice("index-dtype", arguments[0], ("auto", "int32", "int64")))


def _sort_neighbors(step: Step, arguments: Sequence[str]) -> Recipe:
    order = _choice("sort-neighbors", arguments[0] if arguments else "id", get_args(NeighborOrder))
    return replace(step.recipe, neighbor_order=order)


def _drop_columns(step: Step, arguments: Sequence[str]) -> Recipe:
    metadata, dropped = step.store.metadata, list(step.recipe.dropped)
    for word in arguments:
        head, _, text = word.rpartition(":")
        name = decoded_name(text)
        if head:
            owners = [select.any_owner(metadata, head)]
            owners[0].any_column(name)
        else:
            every = select.all_owners(metadata)
            owners = [one for one in every if any(column.name == name for column in one.columns)]
            if not owners:
                known = sorted({column.name for one in every for column in one.columns})
                raise UsageError(f"there is no column {name!r}", place="drop-columns", fix=one_of(known, found=name))
        dropped += [(one.name if one.is_node else metadata.edge_types[one.number], name) for one in owners]
    return replace(step.recipe, dropped=tuple(dropped))


def _to_homogeneous(step: Step, arguments: Sequence[str]) -> Recipe:
    if arguments:
        _choice("to-homogeneous", arguments[0], ("raw-ids",))
    made = views.to_homogeneous(step.store, step.room, step.recipe.layouts, step.names, with_raw_ids=bool(arguments))
    return _noted(step, *made)


def _flatten(step: Step, arguments: Sequence[str]) -> Recipe:
    metadata, layouts = step.store.metadata, step.recipe.layouts
    relations = list(dict.fromkeys(arguments))
    known = {relation for _, relation, _ in metadata.edge_types}
    for name in relations:
        _choice("flatten", name, sorted(known))
    if step.into is not None:
        others = [name for name in metadata.edge_types if name[1] not in relations]
        if others:
            step.notes.append(f"--into: edge types that are not named are left out: {', '.join(map(edge_type_text, others))}")
        edge_type = (views.HOMO, step.into, views.HOMO)
        return _noted(step, *views.to_homogeneous(step.store, step.room, layouts, step.names, edge_type, relations))
    pairs = {(src, dst) for src, relation, dst in metadata.edge_types if relation in relations}
    if len(pairs) > 1:
        step.notes.append(f"flatten makes an edge type for each pair of node types: {len(pairs)}; --into NAME makes one of all")
    return _noted(step, *views.flatten(step.store, relations, step.room, layouts, step.names))


def _noted(step: Step, recipe: Recipe, left: Sequence[str]) -> Recipe:
    if left:
        step.notes.append(f"columns that not all of the types have alike are left out: {', '.join(left)}")
    return recipe


def _line_graph(step: Step, arguments: Sequence[str]) -> Recipe:
    if arguments:
        _choice("line-graph", arguments[0], ("no-backtracking",))
    metadata = step.store.metadata
    if len(metadata.edge_types) != 1 or metadata.edge_types[0][0] != metadata.edge_types[0][2]:
        raise UsageError("a line graph is one of a single node type and edge type", fix="put to-homogeneous before it")

    def check(size: int, item_bytes: int) -> None:
        refuse_edges(
            "the line graph has at most" if arguments else "the line graph has",
            size,
            item_bytes,
            step.places,
            step.room.mapped_bytes,
        )

    return views.line_graph(step.store, 0, step.room, step.recipe.layouts, check, backtracking=not arguments)


def _metagraph(step: Step, arguments: Sequence[str]) -> Recipe:
    return views.metagraph(step.store, step.recipe.layouts)


_SELECTION = "[TYPE=]FILE | [TYPE:]@COLUMN[=VALUE] …"
_MANY = 1 << 30
_NODE_OF, _EDGE_OF = ("node_type", "node_id"), ("edge_type", "edge_id")
OPERATIONS = {
    "reverse": Operation("", 0, 0, lambda step, _: edge_ops.reverse(step.recipe)),
    "transpose": Operation("", 0, 0, lambda step, _: edge_ops.reverse(step.recipe)),
    "add-reverse": Operation("", 0, 0, lambda step, _: edge_ops.add_reverse(step.recipe)),
    "to-bidirected": Operation("[TYPE …]", 0, _MANY, lambda step, named: _symmetrize(step, ("keep", *named))),
    "symmetrize": Operation("[sum|max|keep] [TYPE …]", 0, _MANY, _symmetrize, reads="columns"),
    "to-simple": Operation("[first|last|sum|max|count]", 0, 1, _to_simple, makes=(edge_ops.COUNT,), reads="columns"),
    "self-loops": Operation("drop|add|keep", 1, 1, _self_loops),
    "node-subgraph": Operation(_SELECTION, 1, _MANY, _node_subgraph, reads="columns", chooses=True),
    "edge-subgraph": Operation(_SELECTION, 1, _MANY, _edge_subgraph, reads="store", chooses=True),
    "khop-subgraph": Operation("[TYPE=]FILE K", 2, 2, _khop_subgraph, reads="columns", chooses=True),
    "filter": Operation("'[TYPE:] EXPRESSION'", 1, 1, _filter, reads="columns", chooses=True),
    "filter-degree": Operation("MIN:MAX", 1, 1, _filter_degree, chooses=True),
    "largest-component": Operation("", 0, 0, _largest_component, chooses=True),
    "to-homogeneous": Operation("[raw-ids]", 0, 1, _to_homogeneous, reads="store", makes=(*_NODE_OF, *_EDGE_OF)),
    "flatten": Operation("RELATION …", 1, _MANY, _flatten, reads="store", makes=_EDGE_OF),
    "line-graph": Operation("[no-backtracking]", 0, 1, _line_graph, reads="store"),
    "metagraph": Operation("", 0, 0, _metagraph, reads="store"),
    "layout": Operation("csc|csr|both", 1, 1, _layout),
    "index-dtype": Operation("auto|int32|int64", 1, 1, _index_dtype),
    "sort-neighbors": Operation("[id|weight|time|input]", 0, 1, _sort_neighbors),
    "drop-columns": Operation("[TYPE:]COLUMN …", 1, _MANY, _drop_columns, reads="columns"),
}
