"""``graphprep convert``: raw inputs to a store."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from graphprep.cli import export
from graphprep.cli.export import LastStageFlags
from graphprep.cli.help.groups import with_groups
from graphprep.cli.help.pages import FIRST, LATER, OF_TABLES, Of
from graphprep.cli.options import AsJson, DeviceFlags, DryRun, OverwriteStore, ReportFlags, StorageFlags, option, values_of
from graphprep.cli.printed.summaries import note_lines, print_result, summary_json, types_lines, work_line, wrapped_text
from graphprep.cli.printed.words import count
from graphprep.cli.tables import TableFlags, make_graph
from graphprep.model.shown.texts import display_url

if TYPE_CHECKING:
    from graphprep.model.errors import GraphprepError
    from graphprep.model.export import ExportOptions, ExportSummary
    from graphprep.model.options.convert import ConvertOptions, ConvertSummary
    from graphprep.model.protocols import Reporter
    from graphprep.model.run_options import RunOptions

_of_input = partial(option, "Input")
_of_resources = partial(option, "Resources")
_of_errors = partial(option, "Faulty input")
_of_store = partial(option, "Store")
_of_columns = partial(option, "Columns and arrays: of tables, plain edge lists (edges), arrays")
_of_deepgnn = partial(option, "DeepGNN formats (edgelist, json, tsv)")
_PLAIN = ("edges", "triples", "arrays", "mtx", "metis")  # formats without records of nodes
_FLAGS_OF_LISTS = {"columns": "--column", "drop_columns": "--drop-column", "null": "--null"}


@dataclass(frozen=True, eq=False, repr=False)
class InputFlags:
    """Which decoder reads the input, and what is known of the graph beforehand."""

    format: Annotated[
        str | None,
        _of_input(
            "Format of the input: edges, triples, arrays, mtx, metis, edgelist, json, tsv, chunked, graph (a config of "
            "tables), neo4j, graphstorm, graphbolt, ogb or an installed decoder.  [default: found in the data]",
            "--format -f",
            metavar="NAME",
        ),
        FIRST,
    ] = None
    decoder: Annotated[str | None, _of_input("Decoder class to use instead: package.module:Class.", metavar="MODULE:CLASS")] = (
        None
    )
    decoder_options: Annotated[
        str | None, _of_input("JSON or YAML file of decoder options; options of the command line win.", metavar="FILE")
    ] = None
    schema: Annotated[
        str | None,
        _of_input("Schema file; data that does not fit it is an error.  [default: found in the data]", metavar="FILE"),
    ] = None
    ids: Annotated[
        Literal["auto", "dense", "sparse"] | None,
        _of_input(
            "Nodes of an edge list: all of 0..max (dense), or only the IDs that occur (sparse).  "
            "[default: auto, dense where max ID + 1 <= 2 x edges]"
        ),
        Of(_PLAIN),
    ] = None
    num_nodes: Annotated[
        list[str],
        _of_input("Number of nodes, of TYPE where there are several; may be repeated.", metavar="[TYPE=]N"),
        Of(("tables", *_PLAIN)),
    ] = field(default_factory=list)
    strict: Annotated[bool, _of_input("Turn warnings about doubtful records into errors.", "--strict", default=False)] = False


@dataclass(frozen=True, eq=False, repr=False)
class ErrorFlags:
    """What to do with records that are wrong."""

    on_error: Annotated[Literal["stop", "skip"], _of_errors("At a faulty record: stop, or skip and count it."), FIRST] = "stop"
    bad_records: Annotated[
        str | None, _of_errors("File for skipped records: their place and reason, one JSON object a line.", metavar="FILE")
    ] = None
    max_errors: Annotated[
        str | None,
        _of_errors(
            "Fail where more records than this were skipped: a number, at once, or a share of all, at the end.  "
            "[default: never]",
            metavar="N|P%",
        ),
    ] = None
    fail_if_skipped: Annotated[
        bool, _of_errors("Exit with 1 where records were skipped; OUT is written.", "--fail-if-skipped", default=False)
    ] = False
    min_nodes: Annotated[int, _of_errors("Fail where there are fewer nodes in all.", metavar="N")] = 0
    min_edges: Annotated[int, _of_errors("Fail where there are fewer edges in all.", metavar="N")] = 0
    on_missing_node: Annotated[
        Literal["error", "create", "drop"],
        _of_errors("At an edge whose node has no record: fail, create the node, or drop the edge."),
    ] = "error"
    missing_node_type: Annotated[str | None, _of_errors("Type of nodes that are created.", metavar="TYPE")] = None


@dataclass(frozen=True, eq=False, repr=False)
class StoreFlags:
    """What the store looks like."""

    partitions: Annotated[
        int | None, _of_store("Number of partitions.  [default: 1]", "--partitions -p", metavar="N"), FIRST
    ] = None
    partition_by: Annotated[
        str,
        _of_store(
            "How nodes are assigned to partitions: range, hash, modulo, random, round-robin, ldg, fennel, metis, a file of "
            "assignments, or python:MODULE:FUNCTION.",
            metavar="METHOD",
        ),
    ] = "range"
    layout: Annotated[
        Literal["csc", "csr", "both"], _of_store("Arrays by destination (csc), by source (csr), or both."), FIRST
    ] = "csc"
    neighbor_order: Annotated[
        Literal["input", "id", "time", "weight"],
        _of_store("Order of a node's neighbours: as in the input, by ID, oldest first, or heaviest first."),
    ] = "input"
    no_edge_ids: Annotated[
        bool, _of_store("Leave out the edge IDs (an edge's place in the input).", "--no-edge-ids", default=False)
    ] = False
    edge_id_col: Annotated[
        list[str],
        _of_store(
            "Column of edge IDs of your own: a whole number for each edge, kept for --edge-id-col of export. May be repeated.",
            metavar="[SRC:REL:DST:]COL",
        ),
    ] = field(default_factory=list)
    index_dtype: Annotated[
        Literal["auto", "int32", "int64"], _of_store("dtype of neighbours and edge IDs; auto takes int32 where they fit.")
    ] = "auto"
    weight_dtype: Annotated[Literal["float32", "float64"], _of_store("dtype of weights.")] = "float32"
    densify: Annotated[
        list[str],
        _of_store(
            "Store a sparse column as a dense one, as wide as its largest coordinate says; may be repeated.",
            metavar="[TYPE:]COL",
        ),
    ] = field(default_factory=list)
    undirected: Annotated[
        bool,
        _of_store(
            "Add the reverse of every edge, and keep one edge of those with the same ends (transform to-bidirected).",
            "--undirected",
            default=False,
        ),
    ] = False
    dedup: Annotated[
        bool, _of_store("Keep the first of edges with the same ends (transform to-simple).", "--dedup", default=False)
    ] = False
    drop_self_loops: Annotated[bool, _of_store("Drop edges from a node to itself.", "--drop-self-loops", default=False)] = False
    largest_component: Annotated[
        bool, _of_store("Keep the nodes of the largest weakly connected component only.", "--largest-component", default=False)
    ] = False
    graph_name: Annotated[str | None, _of_store("Name of the graph.  [default: the input's, else graph]", metavar="NAME")] = (
        None
    )
    seed: Annotated[int, _of_store("Seed of --partition-by random, and of the shares of --split.", metavar="N")] = 0
    overwrite: Annotated[OverwriteStore, FIRST] = False
    resume: Annotated[
        bool,
        _of_store(
            "Go on where an interrupted run of this command stopped; what is finished is kept until OUT is whole.",
            "--resume",
            default=False,
        ),
    ] = False
    allow_empty: Annotated[
        bool, _of_store("With --overwrite, let an empty input replace a store, too.", "--allow-empty", default=False)
    ] = False


@dataclass(frozen=True, eq=False, repr=False)
class EngineFlags(DeviceFlags):
    """What ``convert`` may use of the machine."""

    engine: Annotated[
        Literal["threads", "processes", "dask", "ray"],
        _of_resources("Who decodes: threads; as many processes, for decoders written in Python; or workers of dask or Ray."),
    ] = "threads"
    scheduler: Annotated[
        str | None,
        _of_resources(
            "Address of dask's scheduler, such as tcp://host:8786, or of Ray's head, such as ray://host:10001.  "
            "[default: one that is started here]",
            metavar="ADDRESS",
        ),
    ] = None
    worker_index: Annotated[
        int | None,
        _of_resources(
            "Decode the share of worker N (from 0) only; graphprep merge OUT makes the store when all are done.", metavar="N"
        ),
    ] = None
    worker_count: Annotated[int | None, _of_resources("How many workers share the input.", metavar="N")] = None

    def with_engine(self, options: ConvertOptions) -> ConvertOptions:
        """Add who decodes."""
        from graphprep.model.options.checks import checked

        return checked(
            dataclasses.replace(
                options,
                engine=self.engine,
                scheduler=self.scheduler,
                worker_index=self.worker_index,
                worker_count=self.worker_count,
            )
        )


@dataclass(frozen=True, eq=False, repr=False)
class EdgesFlags:
    """Options of tables and of the decoders ``edges`` and ``arrays``; None means: not given. Field names are the decoders'."""

    src_col: Annotated[
        list[str] | None,
        _of_columns(
            "Column of the source, by name or position from 0.  [default: src, source or from, else 0]",
            metavar="[SRC:REL:DST=]COL",
        ),
        OF_TABLES,
    ] = None
    dst_col: Annotated[
        list[str] | None,
        _of_columns("Column of the destination.  [default: dst, target or to, else 1]", metavar="[SRC:REL:DST=]COL"),
        OF_TABLES,
    ] = None
    relation_col: Annotated[
        list[str] | None,
        _of_columns(
            "Column of the relation: each makes an edge type; with --edges 'SRC:*:DST=FILE'.", metavar="[SRC:*:DST=]COL"
        ),
        OF_TABLES,
    ] = None
    relation_as: Annotated[
        Literal["types", "column"] | None,
        _of_columns(
            "Make an edge type of each relation, or one edge type with a column 'relation' (edges, triples).  [default: types]"
        ),
    ] = None
    weight_col: Annotated[list[str] | None, _of_columns("Column of the weight.", metavar="[TYPE=]COL"), OF_TABLES, FIRST] = None
    time_col: Annotated[list[str] | None, _of_columns("Column of the time.", metavar="[SRC:REL:DST=]COL"), OF_TABLES] = None
    time_unit: Annotated[
        Literal["s", "ms", "us", "ns"] | None,
        _of_columns("Unit in which to store times that are written in seconds.  [default: as written]"),
        OF_TABLES,
    ] = None
    id_type: Annotated[
        list[str] | None,
        _of_columns(
            "What IDs are: int (with negative ones), uint, string, or auto: int where all are.  [default: numbers from 0; in "
            "columns of texts string]",
            metavar="[TYPE=]KIND",
        ),
        OF_TABLES,
        FIRST,
    ] = None
    columns: Annotated[
        list[str] | None,
        _of_columns(
            "dtype of a further column, such as age=float32; may be repeated.", "--column", metavar="[TYPE:]NAME=DTYPE"
        ),
        OF_TABLES,
    ] = None
    drop_columns: Annotated[
        list[str] | None, _of_columns("Column to leave out; may be repeated.", "--drop-column", metavar="[TYPE:]COL"), OF_TABLES
    ] = None
    delimiter: Annotated[
        str | None,
        _of_columns("Character between columns; also of edgelist.  [default: found in the data]", metavar="CHAR"),
        OF_TABLES,
    ] = None
    header: Annotated[
        Literal["auto", "yes", "no"] | None,
        _of_columns("Whether the first line names the columns.  [default: auto]"),
        OF_TABLES,
    ] = None
    quote: Annotated[
        bool | None,
        _of_columns(
            "Whether fields may stand in double quotes.  Line breaks inside are text in tables, in edge lists with "
            "--quote.  [default: where one character separates]",
            "--quote/--no-quote",
            default=False,
        ),
        OF_TABLES,
    ] = None
    input_layout: Annotated[
        list[str] | None,
        _of_columns(
            "What arrays of edges are: pairs (coo), or indptr and indices of a matrix (csr, csc).  [default: found in the "
            "data]",
            metavar="[SRC:REL:DST=]LAYOUT",
        ),
        OF_TABLES,
    ] = None
    array_shape: Annotated[
        Literal["auto", "2xe", "ex2"] | None,
        _of_columns(
            "What an array of 2 x 2 IDs is: rows of sources and destinations (2xe), or two edges (ex2).  [default: 2xe, which "
            "is told]"
        ),
    ] = None
    index_base: Annotated[
        int | None, _of_columns("Number of the first node of an edge list, 0 or 1.  [default: 0]", metavar="N")
    ] = None
    relation: Annotated[
        str | None,
        _of_columns("Edge type of an edge list: REL, or SRC:REL:DST with node types.  [default: _N:_E:_N]", metavar="NAME"),
    ] = None


@dataclass(frozen=True, eq=False, repr=False)
class DeepGnnFlags:
    """Options of the DeepGNN decoders; None means: not given. A default means that its column is absent."""

    length_delimiter: Annotated[
        str | None, _of_deepgnn("Character between a feature's lengths (edgelist).  [default: /]", metavar="CHAR")
    ] = None
    binary_escape: Annotated[
        str | None, _of_deepgnn("Character that escapes delimiters in binary features (edgelist).", metavar="CHAR")
    ] = None
    temporal: Annotated[
        bool | None, _of_deepgnn("Lines have created_at and removed_at (edgelist).", "--temporal", default=False)
    ] = None
    default_node_type: Annotated[int | None, _of_deepgnn("Type of all nodes.", metavar="N")] = None
    default_node_weight: Annotated[
        float | None, _of_deepgnn("Weight of all nodes (json, tsv: of those that state none).", metavar="X")
    ] = None
    default_node_feature_types: Annotated[
        str | None, _of_deepgnn("dtypes of all nodes' features; - stands in the line.", metavar="A,B,...")
    ] = None
    default_node_feature_lens: Annotated[
        str | None, _of_deepgnn("Lengths of them: 3, 3/2 or 3/0; - stands in the line.", metavar="A,B,...")
    ] = None
    default_edge_type: Annotated[int | None, _of_deepgnn("Type of all edges.", metavar="N")] = None
    default_edge_weight: Annotated[float | None, _of_deepgnn("Weight of all edges.", metavar="X")] = None
    default_edge_feature_types: Annotated[str | None, _of_deepgnn("dtypes of all edges' features.", metavar="A,B,...")] = None
    default_edge_feature_lens: Annotated[str | None, _of_deepgnn("Lengths of all edges' features.", metavar="A,B,...")] = None
    default_created_at: Annotated[int | None, _of_deepgnn("Creation time of all nodes and edges.", metavar="T")] = None
    default_removed_at: Annotated[int | None, _of_deepgnn("Removal time of all nodes and edges; -1 = none.", metavar="T")] = (
        None
    )


@with_groups(
    later=(
        *(InputFlags, StoreFlags, ErrorFlags, TableFlags, EdgesFlags, DeepGnnFlags),
        *(LastStageFlags, EngineFlags, StorageFlags, ReportFlags),
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
    run_flags: EngineFlags,
    storage_flags: StorageFlags,
    report_flags: ReportFlags,
    dry_run: Annotated[DryRun, LATER] = False,
    as_json: AsJson = False,
) -> None:
    """Convert raw graph data into a store of CSC or CSR arrays.

    Examples:
      graphprep convert sample_data/karate/karate.csv karate-store
      graphprep convert --nodes user=user.csv --edges user:buys:item=buys.csv shop
      zcat edges.txt.gz | graphprep convert - store --weight-col 2 --export pyg

    """
    from graphprep import api
    from graphprep.cli.printed.plan import report_json, report_text
    from graphprep.cli.progress import reporting

    decoder_flags = given_decoder_options(input_flags, edges_flags, deepgnn_flags)
    run_options = run_flags.to_options(storage_flags)
    urls = check_inputs(
        inputs, table_flags, "INPUT and OUT are both needed: what to convert, and the folder or URL of the store"
    )
    options = make_input_options(input_flags, table_flags, decoder_flags, run_options, error_flags)
    options = run_flags.with_engine(with_store_options(options, store_flags))
    exports = last_flags.folders(out)
    refuse_exports(options, exports)
    targets = targets_of(exports, last_flags, store_flags.overwrite, run_options, options.edge_id_col)
    if dry_run:
        with reporting(report_flags) as reporter:
            planned = api.plan(urls, options, reporter, out=out, export=targets)
        print_result(planned, report_json, report_text, report_flags, as_json=as_json)
        return
    exported: list[ExportSummary] = []
    failure: GraphprepError | None = None
    if not exports:
        with reporting(report_flags) as reporter:
            summary = api.convert(urls, out, options, reporter)
    else:
        export_options = last_flags.to_options(store_flags.overwrite, run_options)
        with reporting(report_flags) as reporter, api.claim_exports(out, exports, export_options) as release:
            summary = api.convert(urls, out, options, reporter, targets=targets)
            exported, failure = run_exports(out, exports, targets, reporter, release)
    to_text = share_text if options.worker_index is not None else summary_text
    print_result(summary, lambda one: summary_json(one, exported), to_text, report_flags, as_json=as_json)
    for one in exported if not as_json else []:
        print_result(one, summary_json, export.summary_text, report_flags, as_json=False)
    if failure is not None:
        raise failure
    if error_flags.fail_if_skipped:
        refuse_skipped(summary.num_skipped)


def refuse_exports(options: ConvertOptions, exports: Sequence[tuple[str, str]]) -> None:
    """Raise UsageError where a worker is to export, which has no store."""
    from graphprep.model.errors import UsageError

    if exports and options.worker_index is not None:
        raise UsageError("a worker makes no store that could be exported", fix="drop --export; graphprep export follows merge")


def share_text(summary: ConvertSummary, *, every: bool = False) -> str:
    """Write what a worker did, for people."""
    own, *others = summary.notes
    return "\n".join([f"{display_url(summary.out)}: {own}", f"  {summary.work_words()}", *(f"  {one}" for one in others)])


def refuse_skipped(num_skipped: int) -> None:
    """Raise DataError where records were skipped."""
    from graphprep.model.errors import DataError

    if num_skipped:
        raise DataError(
            f"{count(num_skipped, 'faulty record')} skipped, and --fail-if-skipped is given",
            fix="repair the input; --bad-records FILE lists what was skipped",
        )


def targets_of(
    exports: Sequence[tuple[str, str]], flags: LastStageFlags, overwrite: bool, run: RunOptions, edge_id_col: Sequence[str] = ()
) -> dict[str, ExportOptions]:
    """Return the targets with their options; ``edge_id_col`` is for those that take it."""
    if not exports:
        return {}  # and nothing of exporters is loaded
    from graphprep.exporters.registry import find_exporter
    from graphprep.model.options.checks import option_types

    options = flags.to_options(overwrite, run)
    own = dataclasses.replace(options, target_options={"edge_id_col": edge_id_col}) if edge_id_col else options
    return {target: own if "edge_id_col" in option_types(find_exporter(target)) else options for target, _ in exports}


def run_exports(
    store: str,
    exports: Sequence[tuple[str, str]],
    targets: Mapping[str, ExportOptions],
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
            done.append(api.export(store, folder, target, targets[target], reporter))
        except GraphprepError as error:
            drop = " --drop-unsupported" if "--drop-unsupported" in (error.fix or "") else ""
            again = f"graphprep export {shlex.quote(store)} {shlex.quote(folder)} --to {target}{drop}"
            error.fix = f"{error.fix or 'see to that'}; the store is whole, so go on with {again}"
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
    names = {"missing_node_type": errors.missing_node_type, "num_nodes": input_flags.num_nodes}
    check_words(decoder_flags | dataclasses.asdict(tables) | names)
    num_nodes, decoder_options, graph = parse_num_nodes(input_flags.num_nodes), dict(decoder_flags), None
    if tables.named:
        graph = make_graph(tables, decoder_options, num_nodes)
    else:
        decoder_options = {name: _only(name, value) for name, value in (tables.decoder_options() | decoder_options).items()}
    given = values_of(input_flags, errors, tables)
    given |= {"labels": given["label"], "splits": given["split"], "categories": given["category"]}
    given |= {"num_nodes": {} if graph is not None else num_nodes, "decoder_options": decoder_options}
    given |= {"max_errors": parse_max_errors(errors.max_errors), "graph": graph, "run": run}
    fields = [field.name for field in dataclasses.fields(ConvertOptions)]
    return ConvertOptions(**{name: given[name] for name in fields if name in given})


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
    given = values_of(store)
    return dataclasses.replace(options, edge_ids=not given.pop("no_edge_ids"), **given)


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
    lines = [f"{display_url(summary.out)}: {summary.sizes_words()}"]
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
