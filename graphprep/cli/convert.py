"""``graphprep convert``: raw inputs to a store."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from graphprep.cli import export
from graphprep.cli.export import LastStageFlags
from graphprep.cli.help.groups import with_groups
from graphprep.cli.help.pages import FIRST, OF_TABLES, Of
from graphprep.cli.options import AsJson, DeviceFlags, OverwriteStore, ReportFlags, StorageFlags, option
from graphprep.cli.summaries import note_lines, sizes_text, summary_json, types_lines, work_line, wrapped_text
from graphprep.cli.tables import TableFlags, make_graph
from graphprep.cli.words import count
from graphprep.model.shown.texts import display_url

if TYPE_CHECKING:
    from graphprep.model.errors import GraphprepError
    from graphprep.model.export import ExportOptions, ExportSummary
    from graphprep.model.options.convert import ConvertOptions, ConvertSummary
    from graphprep.model.protocols import Reporter
    from graphprep.model.run_options import RunOptions

_INPUT = "Input"
_ERRORS = "Faulty input"
_STORE = "Store"
_TEXT = "Columns and arrays: of tables, plain edge lists (edges), arrays"
_DEEPGNN = "DeepGNN formats (edgelist, json, tsv)"
_PLAIN = ("edges", "triples", "arrays", "mtx", "metis")  # formats without records of nodes
_FLAGS_OF_LISTS = {"columns": "--column", "drop_columns": "--drop-column", "null": "--null"}


@dataclass(frozen=True, eq=False, repr=False)
class InputFlags:
    """Which decoder reads the input, and what is known of the graph beforehand."""

    format: Annotated[
        str | None,
        option(
            "--format -f",
            "Format of the input: edges, triples, arrays, mtx, metis, edgelist, json, tsv, chunked, graph (a config of "
            "tables), neo4j, graphstorm, graphbolt, ogb or an installed decoder.  [default: found in the data]",
            group=_INPUT,
            metavar="NAME",
        ),
        FIRST,
    ] = None
    decoder: Annotated[
        str | None,
        option("--decoder", "Decoder class to use instead: package.module:Class.", group=_INPUT, metavar="MODULE:CLASS"),
    ] = None
    decoder_options: Annotated[
        str | None,
        option(
            "--decoder-options",
            "JSON or YAML file of decoder options; options of the command line win.",
            group=_INPUT,
            metavar="FILE",
        ),
    ] = None
    schema: Annotated[
        str | None,
        option(
            "--schema",
            "Schema file; data that does not fit it is an error.  [default: found in the data]",
            group=_INPUT,
            metavar="FILE",
        ),
    ] = None
    ids: Annotated[
        Literal["auto", "dense", "sparse"] | None,
        option(
            "--ids",
            "Nodes of an edge list: all of 0..max (dense), or only the IDs that occur (sparse).  "
            "[default: auto, dense where max ID + 1 <= 2 x edges]",
            group=_INPUT,
        ),
        Of(_PLAIN),
    ] = None
    num_nodes: Annotated[
        list[str],
        option(
            "--num-nodes",
            "Number of nodes, of TYPE where there are several; may be repeated.",
            group=_INPUT,
            metavar="[TYPE=]N",
        ),
        Of(("tables", *_PLAIN)),
    ] = field(default_factory=list)
    strict: Annotated[
        bool, option("--strict", "Turn warnings about doubtful records into errors.", group=_INPUT, default=False)
    ] = False


@dataclass(frozen=True, eq=False, repr=False)
class ErrorFlags:
    """What to do with records that are wrong."""

    on_error: Annotated[
        Literal["stop", "skip"], option("--on-error", "At a faulty record: stop, or skip and count it.", group=_ERRORS), FIRST
    ] = "stop"
    bad_records: Annotated[
        str | None,
        option(
            "--bad-records",
            "File for skipped records: their place and reason, one JSON object a line.",
            group=_ERRORS,
            metavar="FILE",
        ),
    ] = None
    max_errors: Annotated[
        str | None,
        option(
            "--max-errors",
            "Fail where more records than this were skipped: a number, at once, or a share of all, at the end.  "
            "[default: never]",
            group=_ERRORS,
            metavar="N|P%",
        ),
    ] = None
    fail_if_skipped: Annotated[
        bool,
        option("--fail-if-skipped", "Exit with 1 where records were skipped; OUT is written.", group=_ERRORS, default=False),
    ] = False
    min_nodes: Annotated[int, option("--min-nodes", "Fail where there are fewer nodes in all.", group=_ERRORS, metavar="N")] = 0
    min_edges: Annotated[int, option("--min-edges", "Fail where there are fewer edges in all.", group=_ERRORS, metavar="N")] = 0
    on_missing_node: Annotated[
        Literal["error", "create", "drop"],
        option(
            "--on-missing-node", "At an edge whose node has no record: fail, create the node, or drop the edge.", group=_ERRORS
        ),
    ] = "error"
    missing_node_type: Annotated[
        str | None,
        option("--missing-node-type", "Type of nodes that are created.", group=_ERRORS, metavar="TYPE"),
    ] = None


@dataclass(frozen=True, eq=False, repr=False)
class StoreFlags:
    """What the store looks like."""

    partitions: Annotated[
        int | None, option("--partitions -p", "Number of partitions.  [default: 1]", group=_STORE, metavar="N"), FIRST
    ] = None
    partition_by: Annotated[
        str,
        option(
            "--partition-by",
            "How nodes are assigned to partitions: range, hash, modulo, random, ldg, fennel, metis, a file of assignments, or "
            "python:MODULE:FUNCTION.",
            group=_STORE,
            metavar="METHOD",
        ),
    ] = "range"
    layout: Annotated[
        Literal["csc", "csr", "both"],
        option("--layout", "Arrays by destination (csc), by source (csr), or both.", group=_STORE),
        FIRST,
    ] = "csc"
    neighbor_order: Annotated[
        Literal["input", "id", "time", "weight"],
        option(
            "--neighbor-order",
            "Order of a node's neighbours: as in the input, by ID, oldest first, or heaviest first.",
            group=_STORE,
        ),
    ] = "input"
    no_edge_ids: Annotated[
        bool, option("--no-edge-ids", "Leave out the edge IDs (an edge's place in the input).", group=_STORE, default=False)
    ] = False
    index_dtype: Annotated[
        Literal["auto", "int32", "int64"],
        option("--index-dtype", "dtype of neighbours and edge IDs; auto takes int32 where they fit.", group=_STORE),
    ] = "auto"
    weight_dtype: Annotated[Literal["float32", "float64"], option("--weight-dtype", "dtype of weights.", group=_STORE)] = (
        "float32"
    )
    densify: Annotated[
        list[str],
        option(
            "--densify",
            "Store a sparse column as a dense one, as wide as its largest coordinate says; may be repeated.",
            group=_STORE,
            metavar="[TYPE:]COL",
        ),
    ] = field(default_factory=list)
    undirected: Annotated[
        bool,
        option(
            "--undirected",
            "Add the reverse of every edge, and keep one edge of those with the same ends (transform to-bidirected).",
            group=_STORE,
            default=False,
        ),
    ] = False
    dedup: Annotated[
        bool,
        option("--dedup", "Keep the first of edges with the same ends (transform to-simple).", group=_STORE, default=False),
    ] = False
    drop_self_loops: Annotated[
        bool, option("--drop-self-loops", "Drop edges from a node to itself.", group=_STORE, default=False)
    ] = False
    largest_component: Annotated[
        bool,
        option(
            "--largest-component",
            "Keep the nodes of the largest weakly connected component only.",
            group=_STORE,
            default=False,
        ),
    ] = False
    graph_name: Annotated[
        str | None,
        option("--graph-name", "Name of the graph.  [default: the input's, else graph]", group=_STORE, metavar="NAME"),
    ] = None
    seed: Annotated[
        int, option("--seed", "Seed of --partition-by random, and of the shares of --split.", group=_STORE, metavar="N")
    ] = 0
    overwrite: Annotated[OverwriteStore, FIRST] = False
    allow_empty: Annotated[
        bool,
        option(
            "--allow-empty",
            "With --overwrite, let an empty input replace a store, too.",
            group=_STORE,
            default=False,
        ),
    ] = False


@dataclass(frozen=True, eq=False, repr=False)
class EdgesFlags:
    """Options of tables and of the decoders ``edges`` and ``arrays``; None means: not given. Field names are the decoders'."""

    src_col: Annotated[
        list[str] | None,
        option(
            "--src-col",
            "Column of the source, by name or position from 0.  [default: src, source or from, else 0]",
            group=_TEXT,
            metavar="[SRC:REL:DST=]COL",
        ),
        OF_TABLES,
    ] = None
    dst_col: Annotated[
        list[str] | None,
        option(
            "--dst-col",
            "Column of the destination.  [default: dst, target or to, else 1]",
            group=_TEXT,
            metavar="[SRC:REL:DST=]COL",
        ),
        OF_TABLES,
    ] = None
    relation_col: Annotated[
        list[str] | None,
        option(
            "--relation-col",
            "Column of the relation: each makes an edge type; with --edges 'SRC:*:DST=FILE'.",
            group=_TEXT,
            metavar="[SRC:*:DST=]COL",
        ),
        OF_TABLES,
    ] = None
    relation_as: Annotated[
        Literal["types", "column"] | None,
        option(
            "--relation-as",
            "Make an edge type of each relation, or one edge type with a column 'relation' (edges, triples).  [default: types]",
            group=_TEXT,
        ),
    ] = None
    weight_col: Annotated[
        list[str] | None, option("--weight-col", "Column of the weight.", group=_TEXT, metavar="[TYPE=]COL"), OF_TABLES, FIRST
    ] = None
    time_col: Annotated[
        list[str] | None, option("--time-col", "Column of the time.", group=_TEXT, metavar="[SRC:REL:DST=]COL"), OF_TABLES
    ] = None
    time_unit: Annotated[
        Literal["s", "ms", "us", "ns"] | None,
        option("--time-unit", "Unit in which to store times that are written in seconds.  [default: as written]", group=_TEXT),
        OF_TABLES,
    ] = None
    id_type: Annotated[
        list[str] | None,
        option(
            "--id-type",
            "What IDs are: int (with negative ones), uint, string, or auto: int where all are.  [default: numbers from 0; in "
            "columns of texts string]",
            group=_TEXT,
            metavar="[TYPE=]KIND",
        ),
        OF_TABLES,
        FIRST,
    ] = None
    columns: Annotated[
        list[str] | None,
        option(
            "--column",
            "dtype of a further column, such as age=float32; may be repeated.",
            group=_TEXT,
            metavar="[TYPE:]NAME=DTYPE",
        ),
        OF_TABLES,
    ] = None
    drop_columns: Annotated[
        list[str] | None,
        option("--drop-column", "Column to leave out; may be repeated.", group=_TEXT, metavar="[TYPE:]COL"),
        OF_TABLES,
    ] = None
    delimiter: Annotated[
        str | None,
        option(
            "--delimiter",
            "Character between columns; also of edgelist.  [default: found in the data]",
            group=_TEXT,
            metavar="CHAR",
        ),
        OF_TABLES,
    ] = None
    header: Annotated[
        Literal["auto", "yes", "no"] | None,
        option("--header", "Whether the first line names the columns.  [default: auto]", group=_TEXT),
        OF_TABLES,
    ] = None
    quote: Annotated[
        bool | None,
        typer.Option(
            "--quote/--no-quote",
            help="Whether fields may stand in double quotes.  Line breaks inside are text in tables, in edge lists with "
            "--quote.  [default: where one character separates]",
            rich_help_panel=_TEXT,
            show_default=False,
        ),
        OF_TABLES,
    ] = None
    input_layout: Annotated[
        list[str] | None,
        option(
            "--input-layout",
            "What arrays of edges are: pairs (coo), or indptr and indices of a matrix (csr, csc).  [default: found in the "
            "data]",
            group=_TEXT,
            metavar="[SRC:REL:DST=]LAYOUT",
        ),
        OF_TABLES,
    ] = None
    array_shape: Annotated[
        Literal["auto", "2xe", "ex2"] | None,
        option(
            "--array-shape",
            "What an array of 2 x 2 IDs is: rows of sources and destinations (2xe), or two edges (ex2).  [default: 2xe, which "
            "is told]",
            group=_TEXT,
        ),
    ] = None
    index_base: Annotated[
        int | None,
        option("--index-base", "Number of the first node of an edge list, 0 or 1.  [default: 0]", group=_TEXT, metavar="N"),
    ] = None
    relation: Annotated[
        str | None,
        option(
            "--relation",
            "Edge type of an edge list: REL, or SRC:REL:DST with node types.  [default: _N:_E:_N]",
            group=_TEXT,
            metavar="NAME",
        ),
    ] = None


@dataclass(frozen=True, eq=False, repr=False)
class DeepGnnFlags:
    """Options of the DeepGNN decoders; None means: not given. A default means that its column is absent."""

    length_delimiter: Annotated[
        str | None,
        option(
            "--length-delimiter",
            "Character between a feature's lengths (edgelist).  [default: /]",
            group=_DEEPGNN,
            metavar="CHAR",
        ),
    ] = None
    binary_escape: Annotated[
        str | None,
        option(
            "--binary-escape",
            "Character that escapes delimiters in binary features (edgelist).",
            group=_DEEPGNN,
            metavar="CHAR",
        ),
    ] = None
    temporal: Annotated[
        bool | None,
        typer.Option(
            "--temporal", help="Lines have created_at and removed_at (edgelist).", rich_help_panel=_DEEPGNN, show_default=False
        ),
    ] = None
    default_node_type: Annotated[
        int | None, option("--default-node-type", "Type of all nodes.", group=_DEEPGNN, metavar="N")
    ] = None
    default_node_weight: Annotated[
        float | None,
        option(
            "--default-node-weight", "Weight of all nodes (json, tsv: of those that state none).", group=_DEEPGNN, metavar="X"
        ),
    ] = None
    default_node_feature_types: Annotated[
        str | None,
        option(
            "--default-node-feature-types",
            "dtypes of all nodes' features; - stands in the line.",
            group=_DEEPGNN,
            metavar="A,B,...",
        ),
    ] = None
    default_node_feature_lens: Annotated[
        str | None,
        option(
            "--default-node-feature-lens",
            "Lengths of them: 3, 3/2 or 3/0; - stands in the line.",
            group=_DEEPGNN,
            metavar="A,B,...",
        ),
    ] = None
    default_edge_type: Annotated[
        int | None, option("--default-edge-type", "Type of all edges.", group=_DEEPGNN, metavar="N")
    ] = None
    default_edge_weight: Annotated[
        float | None, option("--default-edge-weight", "Weight of all edges.", group=_DEEPGNN, metavar="X")
    ] = None
    default_edge_feature_types: Annotated[
        str | None,
        option("--default-edge-feature-types", "dtypes of all edges' features.", group=_DEEPGNN, metavar="A,B,..."),
    ] = None
    default_edge_feature_lens: Annotated[
        str | None,
        option("--default-edge-feature-lens", "Lengths of all edges' features.", group=_DEEPGNN, metavar="A,B,..."),
    ] = None
    default_created_at: Annotated[
        int | None, option("--default-created-at", "Creation time of all nodes and edges.", group=_DEEPGNN, metavar="T")
    ] = None
    default_removed_at: Annotated[
        int | None,
        option("--default-removed-at", "Removal time of all nodes and edges; -1 = none.", group=_DEEPGNN, metavar="T"),
    ] = None


@with_groups(
    later=(
        *(InputFlags, StoreFlags, ErrorFlags, TableFlags, EdgesFlags, DeepGnnFlags),
        *(LastStageFlags, DeviceFlags, StorageFlags, ReportFlags),
    )
)
def convert(
    *,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="INPUT...",
            help="Files, folders, globs or URLs; - is stdin. None with --nodes, --edges.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder or URL of the store.", show_default=False)],
    input_flags: InputFlags,
    store_flags: StoreFlags,
    error_flags: ErrorFlags,
    table_flags: TableFlags,
    edges_flags: EdgesFlags,
    deepgnn_flags: DeepGnnFlags,
    last_flags: LastStageFlags,
    run_flags: DeviceFlags,
    storage_flags: StorageFlags,
    report_flags: ReportFlags,
    as_json: AsJson = False,
) -> None:
    """Convert raw graph data into a store of CSC or CSR arrays.

    Examples:
      graphprep convert sample_data/karate/karate.csv karate-store
      graphprep convert --nodes user=user.csv --edges user:buys:item=buys.csv shop
      zcat edges.txt.gz | graphprep convert - store --weight-col 2 --export pyg

    """
    from graphprep import api
    from graphprep.cli.progress import reporting

    decoder_flags = given_decoder_options(input_flags, edges_flags, deepgnn_flags)
    run_options = run_flags.to_options(storage_flags)
    urls = check_inputs(
        inputs, table_flags, "INPUT and OUT are both needed: what to convert, and the folder or URL of the store"
    )
    options = make_input_options(input_flags, table_flags, decoder_flags, run_options, error_flags)
    options, exports = with_store_options(options, store_flags), last_flags.folders(out)
    exported: list[ExportSummary] = []
    failure: GraphprepError | None = None
    if not exports:
        with reporting(report_flags) as reporter:
            summary = api.convert(urls, out, options, reporter)
    else:
        export_options = last_flags.to_options(store_flags.overwrite, run_options)
        with reporting(report_flags) as reporter, api.claim_exports(out, exports, export_options) as release:
            summary = api.convert(urls, out, options, reporter)
            exported, failure = run_exports(out, exports, export_options, reporter, release)
    every = report_flags.verbose > 0
    if as_json:
        typer.echo(summary_json(summary, exported))
    else:
        typer.echo(
            "\n".join([summary_text(summary, every=every), *(export.summary_text(one, every=every) for one in exported)])
        )
    if failure is not None:
        raise failure
    if error_flags.fail_if_skipped:
        refuse_skipped(summary.num_skipped)


def refuse_skipped(num_skipped: int) -> None:
    """Raise DataError where records were skipped."""
    from graphprep.model.errors import DataError

    if num_skipped:
        raise DataError(
            f"{count(num_skipped, 'faulty record')} skipped, and --fail-if-skipped is given",
            fix="repair the input; --bad-records FILE lists what was skipped",
        )


def run_exports(
    store: str,
    exports: Sequence[tuple[str, str]],
    options: ExportOptions,
    reporter: Reporter,
    release: Callable[[str], None],
) -> tuple[list[ExportSummary], GraphprepError | None]:
    """Export a finished store to one target after another; stop at one that fails, and return its error with what is done.

    ``release`` gives up the claim on a place, which the export claims itself.
    """
    from graphprep import api
    from graphprep.model.errors import GraphprepError

    done: list[ExportSummary] = []
    for target, folder in exports:
        release(folder)
        try:
            done.append(api.export(store, folder, target, options, reporter))
        except GraphprepError as error:
            error.fix = (
                f"{error.fix or 'see to that'}; the store is whole, so go on with graphprep export {shlex.quote(store)} ..."
            )
            return done, error
    return done, None


def check_inputs(inputs: list[str] | None, tables: TableFlags, missing: str) -> list[str]:
    """Return the inputs as given: none where tables are named.

    Raises UsageError, with ``missing`` as the message where there is nothing to read.
    """
    from graphprep.model.errors import UsageError

    if tables.named and inputs:
        raise UsageError(
            f"--nodes and --edges name the whole input, but there is {inputs[0]!r} too",
            fix="name that file with --nodes or --edges, or leave these out",
        )
    if not tables.named and not inputs:
        raise UsageError(missing, fix="name the input, or its tables with --nodes and --edges")
    return list(inputs or ())


def given_decoder_options(input_flags: InputFlags, edges: EdgesFlags, deepgnn: DeepGnnFlags) -> dict[str, Any]:
    """Return the decoder's options that the command line gives, by the names of the decoder's fields, and their file."""
    values = dataclasses.asdict(edges) | dataclasses.asdict(deepgnn)
    values |= {"strict": input_flags.strict or None, "decoder_options_file": input_flags.decoder_options}
    return {name: value for name, value in values.items() if value is not None}


def make_input_options(
    input_flags: InputFlags,
    tables: TableFlags,
    decoder_flags: dict[str, Any],
    run: RunOptions,
    errors: ErrorFlags | None = None,
) -> ConvertOptions:
    """Put the flags that say how to read the input into the library's form."""
    from graphprep.model.options.convert import ConvertOptions

    errors = errors or ErrorFlags()
    given = {"missing_node_type": errors.missing_node_type, "num_nodes": input_flags.num_nodes}
    check_words(decoder_flags | dataclasses.asdict(tables) | given)
    num_nodes, decoder_options, graph = parse_num_nodes(input_flags.num_nodes), dict(decoder_flags), None
    if tables.named:
        graph = make_graph(tables, decoder_options, num_nodes)
    else:
        decoder_options = {name: _only(name, value) for name, value in (tables.decoder_options() | decoder_options).items()}
    return ConvertOptions(
        format=input_flags.format,
        decoder=input_flags.decoder,
        decoder_options=decoder_options,
        ids=input_flags.ids,
        num_nodes={} if graph is not None else num_nodes,
        schema=input_flags.schema,
        on_missing_node=errors.on_missing_node,
        missing_node_type=errors.missing_node_type,
        on_error=errors.on_error,
        bad_records=errors.bad_records,
        max_errors=parse_max_errors(errors.max_errors),
        min_nodes=errors.min_nodes,
        min_edges=errors.min_edges,
        graph=graph,
        node_data=tuple(tables.node_data),
        edge_data=tuple(tables.edge_data),
        labels=tuple(tables.label),
        splits=tuple(tables.split),
        seeds=tuple(tables.seeds),
        categories=tuple(tables.category),
        run=run,
    )


def _only(name: str, value: Any) -> Any:
    """Return an option's only value where several are for tables.

    Raises UsageError.
    """
    from graphprep.model.errors import UsageError

    if name in _FLAGS_OF_LISTS or not isinstance(value, list):
        return value
    if len(value) > 1:
        flag = f"--{name.replace('_', '-')}"
        raise UsageError(
            f"{flag} is given {len(value)} times", fix="give it once; for tables, name them with --nodes and --edges"
        )
    return value[0]


def with_store_options(options: ConvertOptions, store: StoreFlags) -> ConvertOptions:
    """Add the flags that say what the store is to look like."""
    check_words({"graph_name": store.graph_name})
    return dataclasses.replace(
        options,
        partitions=store.partitions,
        partition_by=store.partition_by,
        layout=store.layout,
        neighbor_order=store.neighbor_order,
        edge_ids=not store.no_edge_ids,
        index_dtype=store.index_dtype,
        weight_dtype=store.weight_dtype,
        graph_name=store.graph_name,
        densify=tuple(store.densify),
        undirected=store.undirected,
        dedup=store.dedup,
        drop_self_loops=store.drop_self_loops,
        largest_component=store.largest_component,
        overwrite=store.overwrite,
        allow_empty=store.allow_empty,
        seed=store.seed,
    )


def check_words(values: Mapping[str, Any]) -> None:
    """Refuse words that are no UTF-8: names end up in metadata.json. Paths may be any bytes.

    Raises UsageError.
    """
    from graphprep.model.errors import UsageError

    for name, value in values.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and not name.endswith("_file") and any("\ud800" <= char <= "\udfff" for char in text):
                flag = _FLAGS_OF_LISTS.get(name, "--" + name.replace("_", "-"))
                raise UsageError(f"{flag} {text!r} is not UTF-8", fix="use a UTF-8 locale, such as LANG=C.UTF-8")


def parse_max_errors(text: str | None) -> int | str | None:
    """Return a number where one is written; a share stays the text that the library takes."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else text


def parse_num_nodes(texts: list[str]) -> dict[str, int]:
    """Read repeated ``[TYPE=]N``; the type is ``""`` where none is named.

    Raises UsageError where N is no number >= 0, or a type comes twice.
    """
    from graphprep.model.errors import UsageError

    values: dict[str, int] = {}
    for text in texts:
        node_type, _, number = text.rpartition("=")
        if not (number.isascii() and number.isdigit()):
            raise UsageError(f"--num-nodes must be N or TYPE=N, found {text!r}", fix="write N as decimal digits")
        if node_type in values:
            what = f"for type {node_type!r} twice" if node_type else "twice"
            raise UsageError(f"--num-nodes is given {what}", fix="give it once")
        values[node_type] = int(number)
    return values


def summary_text(summary: ConvertSummary, *, every: bool = False) -> str:
    """Write the summary for people; ``every``: with all types, however many."""
    lines = [f"{display_url(summary.out)}: {sizes_text(summary)}"]
    lines += types_lines(summary.num_nodes, summary.num_edges, every=every)
    for number, noun, done in (
        (summary.num_skipped, "faulty record", "skipped"),
        (summary.num_dropped_edges, "edge", "dropped, for want of a node"),
        (summary.num_created_nodes, "node", "created"),
    ):
        if number:
            lines.append(f"  {count(number, noun)} {done}")
    lines.append(work_line(summary))
    return wrapped_text(lines + note_lines(summary.notes, every=every))
