"""Look at what there is, before anything is decoded: which files, which decoder, which spans, which roles of columns."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from graphprep.convert.columns.roles import (
    RoleFlag,
    Roles,
    category_texts,
    check_declared,
    match_types,
    read_flags,
    with_owners,
)
from graphprep.convert.run import Run
from graphprep.decoders.registry import find_decoder, load_class, load_options, make_decoder
from graphprep.engine.budget import DECODED_FACTOR, count_memory
from graphprep.engine.ledger import Need, plan_memory
from graphprep.model.errors import DataError, UsageError
from graphprep.model.graph_config import DataArray, GraphConfig
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.protocols import Decoder, ReadsConfig, Reporter, Sniffed, Sources, StatesIdType, TakesFolders
from graphprep.storage.drivers import URL
from graphprep.store.assign import check_partition_method

if TYPE_CHECKING:
    from graphprep.convert.read.apart import FoundBlock, Reading
    from graphprep.model.graph_schema import GraphSchema
    from graphprep.storage.read.urls import Storage


# Given for a text whose format is not plain, they say that it is an edge list.
_ENDS_OPTIONS = ("src_col", "dst_col", "relation_col")
_EDGES_OPTIONS = ("src_col", "dst_col", "relation_col", "weight_col", "time_col", "id_type", "header")


@dataclass(frozen=True, eq=False)
class Planned:
    """What will be decoded, and by what.

    ``flags`` repeat a choice that was made by sniffing. ``replan`` cuts the spans again for a decoder that was told more.
    ``graph`` is the config of tables, where there is one. ``total_bytes`` is as stored, None where a server does not say, or
    where a pipe has not ended; ``is_packed``: any of it is compressed, as tables are within.
    """

    format: str
    flags: tuple[str, ...]
    decoder: Decoder
    sources: Sources
    replan: Callable[[Decoder], Sources]
    graph: GraphConfig | None = None
    total_bytes: int | None = None
    is_packed: bool = False


class Elsewhere(NamedTuple):
    """An input that others decode: how they read, and what yields their blocks in input order.

    ``lineage`` is what provenance.json says of them.
    """

    reading: Reading
    blocks: Callable[[], Iterator[FoundBlock]]
    lineage: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Plan:
    """What is known before anything is decoded.

    ``fixed`` is the schema that the user gave, ``schema`` what of it the input must look like, and ``roles`` what it says of
    columns; without one, ``flags`` say it once the types are known. ``elsewhere``: others decode it.
    """

    input: Planned
    flags: tuple[RoleFlag, ...]
    fixed: GraphSchema | None = None
    schema: GraphSchema | None = None
    roles: Roles = field(default_factory=Roles)
    elsewhere: Elsewhere | None = None


def plan(run: Run) -> Plan:
    """Look at what there is, hold it against options, flags and schema, and refuse what has no room."""
    options, storage, memory = run.options, run.storage, run.memory
    flags: tuple[RoleFlag, ...] = ()
    if options.labels or options.splits or options.seeds or options.categories:
        flags = read_flags(options.labels, options.splits, options.seeds, options.seed, categories=options.categories)
    documents = Need("documents", memory.working_bytes, "configs, headers and samples, before anything is decoded")
    run.ledger.begin("plan", (documents,))
    planned = plan_input(run.inputs, options, storage, run.reporter)
    if options.partitions is not None or _are_stated(planned.sources, options):
        from graphprep.store.room import check_room

        check_room(planned.sources, options, memory, (run.out, run.tmp_dir))
    graph = planned.graph
    if graph is not None:
        flags += read_flags(graph.labels, graph.splits, graph.seeds, options.seed, graph.place, graph.base, graph.categories)
    if flags:
        flags = with_owners(flags, planned.sources)
        if options.missing_node_type is None:  # else there may be one more
            check_declared(flags, planned.sources, graph)
    if options.schema is None:
        return Plan(_with_dtypes(planned, category_texts(flags, planned.sources)) if flags else planned, flags)
    if options.densify:
        raise UsageError("--densify: the schema says how columns are stored", fix="leave one of them out")
    from graphprep.convert.columns.role_schema import input_schema
    from graphprep.convert.columns.schema_guard import load_schema

    fixed = load_schema(storage, options.schema)
    schema, roles = input_schema(fixed, match_types(flags, fixed.node_types))
    return Plan(_apply_schema(planned, schema), flags, fixed, schema, roles)


def check_stated(sources: Sources, options: ConvertOptions) -> None:
    """Refuse the numbers of nodes that take more memory than ``convert`` would have. Raises what ``check_room`` raises."""
    from graphprep.store.room import check_room

    with count_memory():
        memory = plan_memory(options.run, options.block_bytes, apart=options.engine == "processes")
        check_room(sources, options, memory)


def _are_stated(sources: Sources, options: ConvertOptions) -> bool:
    """Return whether options or metadata state numbers of nodes."""
    return bool(options.num_nodes) or any(node.num_nodes is not None for node in sources.node_types)


def decoded_bytes(planned: Planned) -> int:
    """Return the most that an input takes once it is decoded; the highest number where only decoding tells."""
    return sys.maxsize if planned.is_packed or planned.total_bytes is None else DECODED_FACTOR * planned.total_bytes


def is_packed(url: str) -> bool:
    """Return whether the name of a file says that it is compressed."""
    return url.endswith((".gz", ".bz2", ".xz", ".zst")) or (URL.match(url) is not None and "::" in url)


def plan_input(inputs: Sequence[str], options: ConvertOptions, storage: Storage, reporter: Reporter) -> Planned:
    """Expand the inputs, choose the decoder, and let it cut spans.

    Raises UsageError for flags that contradict each other or the format, StorageError where there is no input.
    """
    _check_flags(options)
    check_partition_method(options.partition_by, storage)
    chosen = _read_by_decoder(inputs, options, storage, reporter) if options.graph is None else _read_tables(options, storage)
    if options.node_data or options.edge_data or chosen.graph is not None:
        chosen = _with_data(chosen, options, storage)
    _check_format_flags(options, chosen.format, chosen.sources)
    if _are_stated(chosen.sources, options):
        from graphprep.store.room import check_fits

        check_fits(chosen.sources, options)
    for text in chosen.sources.messages:
        reporter.message(text)
    urls: set[str] = set()
    packed = False
    for span in chosen.sources.spans:
        urls.add(span.url)
        packed = packed or span.kind == "table" or is_packed(span.url)
    sizes = [-1] if any(map(storage.is_arriving, urls)) else list(map(storage.size, urls))
    return replace(chosen, total_bytes=None if -1 in sizes else sum(sizes), is_packed=packed)


def _read_by_decoder(inputs: Sequence[str], options: ConvertOptions, storage: Storage, reporter: Reporter) -> Planned:
    """Let the decoder of the inputs' format plan."""
    cls, found = _choose(inputs, options, storage, reporter)
    chosen: object = cls
    flags = found.flags if found else ()
    urls = tuple(inputs)
    if not (isinstance(chosen, TakesFolders) and chosen.takes_folder):
        expanded = storage.expand(inputs)
        urls = expanded.files
        for text in expanded.messages:
            reporter.message(text)
    made: Any = make_decoder(cls, {**(found.options if found else {}), **_decoder_options(options, storage)})
    if isinstance(made, ReadsConfig):
        return _plan_graph(made.name, flags, made.read_config(storage, urls), {}, options, storage)
    decoder = _with_weights(made, options.weight_dtype)
    return Planned(decoder.name, flags, decoder, decoder.plan(storage, urls), lambda told: told.plan(storage, urls))


def _read_tables(options: ConvertOptions, storage: Storage) -> Planned:
    """Let the tables decoder plan what the options name.

    Raises UsageError where they name another decoder, too.
    """
    assert options.graph is not None
    for flag, given in (("--format", options.format), ("--decoder", options.decoder)):
        if given is not None:
            raise UsageError(f"{flag} says how one input is read, not tables", fix=f"drop {flag}")
    return _plan_graph("tables", (), options.graph, _decoder_options(options, storage), options, storage)


def _plan_graph(
    name: str,
    flags: tuple[str, ...],
    config: GraphConfig,
    decoder_options: Mapping[str, Any],
    options: ConvertOptions,
    storage: Storage,
) -> Planned:
    """Let the tables decoder plan a graph config."""
    from graphprep.decoders.tables.decoder import TablesDecoder

    decoder: Any = _with_weights(make_decoder(TablesDecoder, decoder_options), options.weight_dtype)
    sources: Sources = decoder.plan_graph(storage, config)
    if config.messages:
        sources = replace(sources, messages=(*config.messages, *sources.messages))
    return Planned(name, flags, decoder, sources, lambda told: cast(Any, told).plan_graph(storage, config), config)


def _with_data(planned: Planned, options: ConvertOptions, storage: Storage) -> Planned:
    """Attach the columns that lie in files of their own, as the config and the flags name them."""
    config = planned.graph or GraphConfig()
    if not (config.node_data or config.edge_data or options.node_data or options.edge_data):
        return planned
    from graphprep.decoders.configs.data_arrays import DataDecoder, attach_data, parse_data

    def based(arrays: Sequence[DataArray]) -> list[DataArray]:
        def joined(path: str | None) -> str | None:
            return None if path is None else storage.join(config.base, path)

        return [replace(one, file=storage.join(config.base, one.file), ids_file=joined(one.ids_file)) for one in arrays]

    node_data = [*based(config.node_data), *parse_data(options.node_data, "node")]
    edge_data = [*based(config.edge_data), *parse_data(options.edge_data, "edge")]

    own = planned.decoder.id_type if isinstance(planned.decoder, StatesIdType) else None
    id_type = config.id_type if planned.graph is not None else own

    def attach(sources: Sources, decoder: DataDecoder) -> Sources:
        return attach_data(storage, sources, node_data, edge_data, tables=decoder.tables, id_type=id_type)

    def replan(told: Decoder) -> Sources:
        assert isinstance(told, DataDecoder)
        return attach(planned.replan(told.inner), told)

    decoder = DataDecoder(planned.decoder)
    return replace(planned, decoder=decoder, sources=attach(planned.sources, decoder), replan=replan)


def _choose(
    inputs: Sequence[str], options: ConvertOptions, storage: Storage, reporter: Reporter
) -> tuple[type[Any], Sniffed | None]:
    """Return the decoder's class and, where it was sniffed, what was found."""
    if options.decoder is not None:
        if options.format is not None:
            raise UsageError("--format and --decoder name two decoders", fix="give one of the two")
        return load_class(options.decoder), None
    from graphprep.decoders.registry import TablesError, refuse_foreign, refuse_made, refuse_node_table, sniff

    if options.format is not None:
        refuse_foreign(storage, inputs, options.format)
        return find_decoder(options.format), None

    try:
        found, why = sniff(storage, inputs), "sniffed"
    except TablesError:
        raise
    except UsageError:
        if not any(name in options.decoder_options for name in _EDGES_OPTIONS):
            raise
        refuse_made(storage, inputs)
        found, why = Sniffed("edges", 1.0, ("--format", "edges")), "for its options"
    if found.decoder == "edges" and not any(name in options.decoder_options for name in _ENDS_OPTIONS):
        refuse_node_table(storage, inputs)
    other = f"; {found.other}" if found.other else ""
    reporter.message(f"format: {found.decoder} ({why}; {shlex.join(found.flags)} repeats this choice{other})")
    return find_decoder(found.decoder), found


def _decoder_options(options: ConvertOptions, storage: Storage) -> Mapping[str, Any]:
    """Put the options file and the flags together; flags win."""
    file = options.decoder_options.get("decoder_options_file")
    given = load_options(storage, str(file)) if file else {}
    for name, value in options.decoder_options.items():
        if value is not None and name != "decoder_options_file":
            given[name] = value
    return given


def _with_weights(decoder: Decoder, dtype: str) -> Decoder:
    """Tell a decoder that makes weights which dtype they are to have."""
    made: Any = decoder
    if "weight_dtype" in getattr(made, "__dataclass_fields__", ()) and made.weight_dtype != dtype:
        made = replace(made, weight_dtype=dtype)
    return cast(Decoder, made)


def _check_flags(options: ConvertOptions) -> None:
    """Refuse flags that contradict each other."""
    if options.on_missing_node != "create" and options.missing_node_type is not None:
        raise UsageError("--missing-node-type belongs to --on-missing-node create", fix="add it, or drop --missing-node-type")
    if options.on_error == "stop" and options.bad_records is not None:
        raise UsageError("--bad-records belongs to --on-error skip", fix="add --on-error skip, or drop --bad-records")
    if options.on_error == "stop" and options.max_errors is not None:
        raise UsageError("--max-errors belongs to --on-error skip", fix="add --on-error skip, or drop --max-errors")
    if options.ids == "sparse" and options.num_nodes:
        raise UsageError(
            "--num-nodes contradicts --ids sparse, with which only IDs that occur are nodes",
            fix="leave out one of them, or use --ids dense",
        )


def _check_num_nodes(options: ConvertOptions, sources: Sources) -> None:
    """Refuse numbers of nodes for types that are not there."""
    names = [node.name for node in sources.node_types if not node.has_records]
    unknown = sorted(set(options.num_nodes) - {""} - set(names))
    if unknown or ("" in options.num_nodes and len(names) > 1):
        wanted = repr(unknown[0]) if unknown else "a number without a type"
        raise UsageError(f"--num-nodes: {wanted} fits no node type", fix=f"write TYPE=N with one of {', '.join(names)}")


def _check_format_flags(options: ConvertOptions, name: str, sources: Sources) -> None:
    """Refuse flags that mean nothing to the format."""
    if options.num_nodes and sources.nodes in ("ends", "tables"):
        _check_num_nodes(options, sources)
    allowed = {"ends": ("--ids", "--num-nodes"), "tables": ("--num-nodes",)}.get(sources.nodes, ())
    for flag, given in (("--ids", options.ids is not None), ("--num-nodes", bool(options.num_nodes))):
        if given and flag not in allowed:
            raise UsageError(f"{flag} belongs to formats without node records, not to {name}", fix=f"drop {flag}")
    if options.on_missing_node != "error" and sources.nodes not in ("records", "tables"):
        raise UsageError(f"--on-missing-node belongs to formats with node records, not to {name}", fix="drop --on-missing-node")
    if options.on_missing_node == "create" and options.missing_node_type is None and sources.nodes == "records":
        raise UsageError("--on-missing-node create needs a type for the nodes", fix="add --missing-node-type T")
    if sources.nodes == "identity" and options.on_error == "skip":
        raise UsageError(
            f"--on-error skip does not go with {name}: its metadata states how many records there are",
            fix="repair the input, or drop --on-error skip",
        )


def _apply_schema(planned: Planned, schema: GraphSchema) -> Planned:
    """Let a schema decide the dtypes of input columns, and hold what the format declares against it.

    Raises DataError where the format's own list of types is another one.
    """
    declared = tuple(node.name for node in planned.sources.node_types)
    if planned.sources.nodes not in ("records", "tables") and declared != schema.node_types:
        raise DataError(
            f"the schema's node types are {', '.join(schema.node_types)}; the input's are {', '.join(declared)}",
            place=schema.place,
            fix="list the input's node types, in its order",
        )
    from graphprep.convert.columns.schema_guard import column_dtypes

    return _with_dtypes(planned, column_dtypes([*schema.nodes.values(), *schema.edges.values()]))


def _with_dtypes(planned: Planned, dtypes: Mapping[str, str]) -> Planned:
    """Decide the dtypes of columns that are else found in the data, as ``Decoder.widen`` takes them."""
    if not dtypes:
        return planned
    decoder = planned.decoder.widen(dtypes)
    stale = planned.sources.nodes == "tables" or planned.sources.replans
    return replace(planned, decoder=decoder, sources=planned.replan(decoder) if stale else planned.sources)
