"""What is asked of ``sample``, held against a store: block types with their fan-outs, columns that are drawn by or copied."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.order_keys import order_role
from graphprep.model.errors import UsageError, one_of
from graphprep.model.export import StoreNeed
from graphprep.model.metadata import GraphMetadata
from graphprep.model.options.sample import SampleOptions, parse_fanouts, parse_layer_sizes
from graphprep.model.schema import ColumnSchema, Layout, edge_type_text, path_name
from graphprep.rewrite.transform.select import Owner, all_owners
from graphprep.sample.arrays import BlockType, block_types, visit_type
from graphprep.sample.drawn import FlowPlan, WalkPlan
from graphprep.sample.rows import layout_of
from graphprep.store.columns.times import REFUSE, check_rule

_MOST_HOPS = 10_000  # each makes a layer, of as many nodes as the graph has at most
_MOST_VISITS = 1_000_000  # of the walks of one node
_METAPATH_FIX = (
    "name the steps of a traversal, back to where it begins: '~user:buys:item,user:buys:item' (~: against the edges)"
)
_LAYOUTS: tuple[Layout, ...] = ("csc", "csr")


@dataclass(frozen=True)
class CopiedColumn:
    """A column that is copied: whose it is, and which block types' edges have it (of nodes none)."""

    owner: Owner
    column: ColumnSchema
    block_types: tuple[int, ...] = ()


@dataclass(frozen=True)
class SampleAsked:
    """What is drawn and copied. ``weights`` and ``times`` are columns of each edge type, None where it has none.

    ``missing_time`` is the rule for edges without a time.
    """

    flows: FlowPlan
    weights: tuple[ColumnSchema | None, ...]
    times: tuple[ColumnSchema | None, ...]
    columns: tuple[CopiedColumn, ...]
    missing_time: str

    def metadata(self, metadata: GraphMetadata) -> GraphMetadata:
        """Return the store's metadata without the edge columns that nobody reads."""
        schemas = []
        for number, schema in enumerate(metadata.edge_schemas):
            read = {one.column.name for one in self.columns if not one.owner.is_node and one.owner.number == number}
            read |= {one.name for one in (self.weights[number], self.times[number]) if one is not None}
            orders = order_role(schema.neighbor_order, [one.role for one in schema.columns if one.role is not None])
            columns = tuple(one for one in schema.columns if one.name in read or (one.role is not None and one.role == orders))
            schemas.append(replace(schema, columns=columns, num_slots=False))
        return replace(metadata, edge_schemas=tuple(schemas))

    def need(self, metadata: GraphMetadata) -> StoreNeed:
        """Return what is read of the store."""
        layouts = {layout_of(one) for one in (*self.flows.block_types, *(self.flows.walk.steps if self.flows.walk else ()))}
        others = layouts - {metadata.primary_layout}
        has_columns = any(one is not None for one in (*self.weights, *self.times))
        has_columns = has_columns or any(not one.owner.is_node for one in self.columns)
        wanted = set(_LAYOUTS) if self.flows.layer_method == "fastgcn" and self.flows.layer_sizes else layouts
        return StoreNeed(
            layouts=tuple(one for one in _LAYOUTS if one in wanted),
            edge_columns=next(iter(others)) if others and has_columns else None,
        )


def plan_sample(metadata: GraphMetadata, options: SampleOptions) -> SampleAsked:
    """Hold options against a store. Raises UsageError."""
    _check(options)
    if options.sampler == "random-walk":
        return _plan_walks(metadata, options)
    blocks = block_types(metadata.node_types, metadata.edge_types, options.direction)
    sizes = parse_layer_sizes(options.layer_sizes) if options.layer_sizes else ()
    if options.fanouts:
        fanouts = _fanouts(metadata, options)
    else:
        num_hops = options.full if options.full is not None else len(sizes)
        fanouts = ((-1,) * len(metadata.edge_types),) * num_hops
    weights = _drawn_by(metadata, options.weight_column, "--weight-column")
    times = _drawn_by(metadata, options.time_column, "--time-column")
    if options.untimed == "exclude" and any(times):
        fanouts = tuple(tuple(size if times[number] else 0 for number, size in enumerate(hop)) for hop in fanouts)
    copied = _copied(metadata, options, tuple(block.number for block in blocks))
    flows = FlowPlan(
        node_types=metadata.node_types,
        num_nodes=metadata.num_nodes_per_type,
        block_types=blocks,
        direction=options.direction,
        fanouts=tuple(tuple(hop[block.number] for block in blocks) for hop in fanouts),
        seed=options.seed % 2**64,
        replace=options.replace,
        layer_sizes=sizes,
        layer_method=options.layer_method,
        loops=_loops(metadata) if options.add_self_loop else (),
        keep_positions=any(not one.owner.is_node for one in copied),
    )
    return SampleAsked(flows, weights, times, copied, options.missing_time)


def _plan_walks(metadata: GraphMetadata, options: SampleOptions) -> SampleAsked:
    """Plan random walks. Raises UsageError."""
    steps = _steps(metadata, options.metapath)
    every, own = parse_fanouts(options.fanouts)
    if every is None or own or 0 in every:
        raise UsageError(
            "--fanouts of random walks are numbers of neighbours, one a hop", fix="write them with commas: 10,5 (-1: all)"
        )
    copied = _copied(metadata, options, ())
    if any(not one.owner.is_node for one in copied):
        raise UsageError("--copy-column: edges of random walks are none of the store", fix="copy columns of nodes")
    flows = FlowPlan(
        node_types=metadata.node_types,
        num_nodes=metadata.num_nodes_per_type,
        block_types=(visit_type(metadata.node_types, metadata.node_types[steps[0].destination]),),
        direction="in",
        fanouts=tuple((number,) for number in every),
        seed=options.seed % 2**64,
        walk=WalkPlan(steps, options.walks, options.walk_length, min(int(options.restart_prob * 2**64), 2**64 - 1)),
    )
    nothing = (None,) * len(metadata.edge_types)
    return SampleAsked(flows, nothing, nothing, copied, options.missing_time)


def check_walkers(flows: FlowPlan, types: NDArray[np.int32]) -> None:
    """Raise UsageError where seeds of these types are no beginnings of walks."""
    if flows.walk is None:
        return
    number = flows.block_types[0].destination
    others = types[types != number]
    if others.size:
        names = flows.node_types[number], flows.node_types[int(others[0])]
        raise UsageError(
            "random walks begin at nodes of type {!r}, found seeds of type {!r}".format(*names),
            fix=f"give seeds of type {names[0]!r}, or another --metapath",
        )


def _steps(metadata: GraphMetadata, metapath: tuple[str, ...]) -> tuple[BlockType, ...]:
    """Return whose rows a traversal goes over: those of edges by their source, with ``~`` by their destination."""
    names = list(map(edge_type_text, metadata.edge_types))
    texts = [one.strip() for text in metapath for one in text.split(",")]
    if not texts and (len(names) != 1 or len(metadata.node_types) != 1):
        raise UsageError("random walks over several types need a --metapath", fix=_METAPATH_FIX)
    known = block_types(metadata.node_types, metadata.edge_types, "both")
    steps = []
    for text in texts or names:
        if text.removeprefix("~") not in names:
            raise UsageError(f"--metapath: there is no edge type {text.removeprefix('~')!r}", fix=one_of(names, found=text))
        number, along = names.index(text.removeprefix("~")), not text.startswith("~")
        steps.append(next(one for one in known if one.number == number and one.is_reversed == along))
    for at, one in enumerate(steps):
        last = steps[at - 1]  # the first one follows the last one
        if one.destination != last.source:
            found = (
                f"{metadata.node_types[last.source]!r}, and {texts[at]!r} begins at {metadata.node_types[one.destination]!r}"
            )
            raise UsageError(f"--metapath: {texts[at - 1]!r} ends at {found}", fix=_METAPATH_FIX)
    return tuple(steps)


def _check_walks(options: SampleOptions) -> None:
    """Raise UsageError for options that random walks have not, or that only they have."""
    plain = SampleOptions()
    if options.sampler != "random-walk":
        for name in ("walks", "walk_length", "restart_prob", "metapath"):
            if getattr(options, name) != getattr(plain, name):
                raise UsageError(
                    f"--{name.replace('_', '-')} does nothing without random walks", fix="add --sampler random-walk"
                )
        return
    for name in ("full", "layer_sizes", "direction", "replace", "weight_column", "time_column", "seed_times", "add_self_loop"):
        if getattr(options, name) != getattr(plain, name):
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag} and --sampler random-walk contradict each other", fix=f"leave {flag} out")
    for flag, number in (("--walks", options.walks), ("--walk-length", options.walk_length)):
        if number < 1:
            raise UsageError(f"{flag} must be 1 or more, found {number}", fix="correct the value")
    if options.walks * options.walk_length > _MOST_VISITS:
        found = options.walks * options.walk_length
        raise UsageError(f"--walks times --walk-length must be {_MOST_VISITS:,} or less, found {found}", fix="lower one")
    if not 0 <= options.restart_prob <= 1:
        raise UsageError(f"--restart-prob must lie between 0 and 1, found {options.restart_prob:g}", fix="correct the value")


def _check(options: SampleOptions) -> None:
    """Raise UsageError for options that contradict each other or themselves."""
    if not options.seeds:
        raise UsageError("there are no seeds", fix="give --seeds [TYPE=]FILE")
    _check_walks(options)
    given = [
        flag
        for flag, value in (("--fanouts", options.fanouts), ("--full", options.full), ("--layer-sizes", options.layer_sizes))
        if value not in (None, ())
    ]
    if len(given) != 1:
        words = f"{' and '.join(given)} contradict each other" if given else "nothing says how far flows go"
        raise UsageError(words, fix="give one of --fanouts 15,10,5, --full K and --layer-sizes 512,256")
    for flag, number, most in (
        ("--full", options.full, _MOST_HOPS),
        ("--batch-size", options.batch_size, 2**64),
        ("--epochs", options.epochs, 2**32),
    ):
        if number is not None and not 1 <= number <= most:
            words = f"{most:,} or less" if number > most else "1 or more"
            raise UsageError(f"{flag} must be {words}, found {number}", fix="correct the value")
    if options.layer_sizes:
        for flag, is_given in (
            ("--weight-column", options.weight_column is not None),
            ("--time-column", options.time_column is not None),
            ("--add-self-loop", options.add_self_loop),
        ):
            if is_given:
                raise UsageError(f"{flag} and --layer-sizes contradict each other", fix="draw by --fanouts")
    if options.full is not None and options.replace:
        raise UsageError("--replace and --full contradict each other: all edges are taken", fix="leave one out")
    check_rule(options.missing_time)
    for flag, is_given in (("--missing-time", options.missing_time != REFUSE), ("--untimed", options.untimed != "include")):
        if is_given and options.time_column is None:
            raise UsageError(f"{flag} is of --time-column, which is not given", fix="leave it out, or give both")
    if (options.time_column is None) != (not options.seed_times):
        raise UsageError("--time-column and --seed-times go together", fix="give both, or none")
    if options.seed_times and len(options.seed_times) != len(options.seeds):
        found = f"{len(options.seeds)} and {len(options.seed_times)}"
        raise UsageError(
            f"--seeds and --seed-times must be as many, found {found}", fix="give a file of times for each of seeds"
        )


def _fanouts(metadata: GraphMetadata, options: SampleOptions) -> tuple[tuple[int, ...], ...]:
    """Return the fan-outs by hop and edge type. Types that are not named have those of all, or none."""
    every, own = parse_fanouts(options.fanouts)
    names = list(map(edge_type_text, metadata.edge_types))
    for name in own:
        if name not in names:
            raise UsageError(f"--fanouts: there is no edge type {name!r}", fix=one_of(names, found=name))
    if not any(number for one in (every or (), *own.values()) for number in one):
        raise UsageError("--fanouts are all 0: nothing is drawn", fix="draw 1 neighbour or more in some hop")
    num_hops = len(every if every is not None else next(iter(own.values())))
    found = [own.get(name, every or (0,) * num_hops) for name in names]
    return tuple(tuple(one[hop] for one in found) for hop in range(num_hops))


def _drawn_by(metadata: GraphMetadata, name: str | None, flag: str) -> tuple[ColumnSchema | None, ...]:
    found: list[ColumnSchema | None] = []
    for schema in metadata.edge_schemas:
        mine = [one for one in schema.columns if one.name == name]
        if mine and (mine[0].kind != "dense" or mine[0].item_shape or mine[0].dtype[0] == "c"):
            raise UsageError(f"{flag}: column {name!r} has no single number an edge", fix="name another column")
        found.append(mine[0] if mine else None)
    if name is not None and not any(found):
        names = {one.name: None for schema in metadata.edge_schemas for one in schema.columns}
        raise UsageError(
            f"{flag}: no edge type has a column {name!r}", fix=one_of(names, found=name) if names else "convert with the column"
        )
    return tuple(found)


def _loops(metadata: GraphMetadata) -> tuple[int, ...]:
    """Return for each node type the first edge type from it to itself. Raises UsageError where there is none."""
    found = []
    for name in metadata.node_types:
        numbers = [
            number for number, (source, _, destination) in enumerate(metadata.edge_types) if source == destination == name
        ]
        if not numbers:
            raise UsageError(
                f"--add-self-loop: no edge type goes from {name!r} to {name!r}, under which loops could stand",
                fix="leave it out",
            )
        found.append(numbers[0])
    return tuple(found)


def _copied(metadata: GraphMetadata, options: SampleOptions, numbers: tuple[int, ...]) -> tuple[CopiedColumn, ...]:
    found: dict[tuple[bool, int, str], CopiedColumn] = {}
    owners = all_owners(metadata)
    for text in options.copy_columns:
        mine = [(one, text) for one in owners if any(column.name == text for column in one.columns)]
        for one in owners:
            name = text.removeprefix(f"{one.name}:")
            if name != text and any(column.name == name for column in one.columns):
                mine = [(one, name)]
        if not mine:
            known = [f"{one.name}:{column.name}" for one in owners for column in one.columns]
            raise UsageError(
                f"--copy-column: there is no column {text!r}", fix=one_of(known, found=text) if known else "leave it out"
            )
        for owner, name in mine:
            column = owner.any_column(name)
            if column.kind != "dense":
                raise UsageError(
                    f"--copy-column: column {name!r} of {owner.name!r} is {column.kind}; dense ones can be copied",
                    fix="look it up by the nodes' IDs instead",
                )
            blocks = () if owner.is_node else tuple(at for at, number in enumerate(numbers) if number == owner.number)
            found[owner.is_node, owner.number, name] = CopiedColumn(owner, column, blocks)
    return tuple(found.values())


def member_name(copied: CopiedColumn, *, is_reversed: bool) -> str:
    """Return the member of a shard in which a column lies."""
    folder = copied.owner.folder
    if is_reversed:
        folder = f"reversed/{folder.removeprefix('edges/')}"
    return f"{folder}/{path_name(copied.column.name, column=True)}"
