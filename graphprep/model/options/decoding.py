"""Options of decoders, ours and those of tables: keys of ``decoder_options``."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated, Any, Literal

from graphprep.model.option import TABLES, Option, declared

_of_input = partial(Option, "Input")
_of_columns = partial(Option, "Columns and arrays: of tables, plain edge lists (edges), arrays")
_of_deepgnn = partial(Option, "DeepGNN formats (edgelist, json, tsv)")
_of_tables = partial(Option, "Tables and arrays of several types (--nodes, --edges)")


@dataclass(frozen=True, eq=False, repr=False)
class DecoderOptions:
    """What decoders take, by their own names; None means: not given.

    A default of DeepGNN's formats means that its column is absent.
    """

    decoder_options_file: Annotated[
        str | None,
        _of_input(
            "JSON or YAML file of decoder options; options of the command line win.", metavar="FILE", flags="--decoder-options"
        ),
    ] = None
    strict: Annotated[bool | None, _of_input("Turn warnings about doubtful records into errors.")] = None
    id_col: Annotated[
        list[str] | None,
        _of_tables(
            "Column of a node's ID.  Such options hold for every table, or for the TYPE in front.  [default: id, else the "
            "first]",
            metavar="[TYPE=]COL",
            formats=TABLES,
        ),
    ] = None
    type_col: Annotated[
        str | None, _of_tables("Column of a node's type, for --nodes '*=FILE'.", metavar="COL", formats=TABLES)
    ] = None
    id_space: Annotated[
        Literal["per-type", "global"] | None,
        _of_tables("Whether IDs are unique within their node type, or among all.  [default: per-type]", formats=TABLES),
    ] = None
    null: Annotated[
        list[str] | None, _of_tables("Further spelling of an absent cell; may be repeated.", metavar="TEXT", formats=TABLES)
    ] = None
    escape: Annotated[
        str | None,
        _of_tables(
            "Character that makes text of the quote, delimiter or line break behind it, such as '\\'.  [default: none]",
            metavar="CHAR",
            formats=TABLES,
        ),
    ] = None
    comment: Annotated[
        str | None,
        _of_tables(
            "Character that begins lines that are no records, such as '#'.  [default: none; # and % where blanks separate]",
            metavar="CHAR",
            formats=TABLES,
        ),
    ] = None
    src_col: Annotated[
        list[str] | None,
        _of_columns(
            "Column of the source, by name or position from 0.  [default: src, source or from, else 0]",
            metavar="[SRC:REL:DST=]COL",
            formats=TABLES,
        ),
    ] = None
    dst_col: Annotated[
        list[str] | None,
        _of_columns(
            "Column of the destination.  [default: dst, target or to, else 1]", metavar="[SRC:REL:DST=]COL", formats=TABLES
        ),
    ] = None
    relation_col: Annotated[
        list[str] | None,
        _of_columns(
            "Column of the relation: each makes an edge type; with --edges 'SRC:*:DST=FILE'.",
            metavar="[SRC:*:DST=]COL",
            formats=TABLES,
        ),
    ] = None
    relation_as: Annotated[
        Literal["types", "column"] | None,
        _of_columns(
            "Make an edge type of each relation, or one edge type with a column 'relation' (edges, triples).  [default: types]"
        ),
    ] = None
    weight_col: Annotated[
        list[str] | None, _of_columns("Column of the weight.", metavar="[TYPE=]COL", formats=TABLES, is_first=True)
    ] = None
    time_col: Annotated[list[str] | None, _of_columns("Column of the time.", metavar="[SRC:REL:DST=]COL", formats=TABLES)] = (
        None
    )
    time_unit: Annotated[
        Literal["s", "ms", "us", "ns"] | None,
        _of_columns("Unit in which to store times that are written in seconds.  [default: as written]", formats=TABLES),
    ] = None
    id_type: Annotated[
        list[str] | None,
        _of_columns(
            "What IDs are: int (with negative ones), uint, string, or auto: int where all are.  [default: numbers from 0; "
            "in columns of texts string]",
            metavar="[TYPE=]KIND",
            formats=TABLES,
            is_first=True,
            words="int|uint|string|auto",
        ),
    ] = None
    columns: Annotated[
        list[str] | None,
        _of_columns(
            "dtype of a further column, such as age=float32; may be repeated.",
            flags="--column",
            metavar="[TYPE:]NAME=DTYPE",
            formats=TABLES,
        ),
    ] = None
    drop_columns: Annotated[
        list[str] | None,
        _of_columns("Column to leave out; may be repeated.", flags="--drop-column", metavar="[TYPE:]COL", formats=TABLES),
    ] = None
    delimiter: Annotated[
        str | None,
        _of_columns(
            "Character between columns; also of edgelist.  [default: found in the data]", metavar="CHAR", formats=TABLES
        ),
    ] = None
    header: Annotated[
        Literal["auto", "yes", "no"] | None,
        _of_columns("Whether the first line names the columns.  [default: auto]", formats=TABLES),
    ] = None
    quote: Annotated[
        bool | None,
        _of_columns(
            "Whether fields may stand in double quotes.  Line breaks inside are text in tables, in edge lists with "
            "--quote.  [default: where one character separates]",
            flags="--quote/--no-quote",
            formats=TABLES,
        ),
    ] = None
    input_layout: Annotated[
        list[str] | None,
        _of_columns(
            "What arrays of edges are: pairs (coo), or indptr and indices of a matrix (csr, csc).  [default: found in the "
            "data]",
            metavar="[SRC:REL:DST=]LAYOUT",
            formats=TABLES,
            words="coo|csr|csc",
        ),
    ] = None
    array_shape: Annotated[
        Literal["auto", "2xe", "ex2"] | None,
        _of_columns(
            "What an array of 2 x 2 IDs is: rows of sources and destinations (2xe), or two edges (ex2).  [default: 2xe, "
            "which is told]"
        ),
    ] = None
    index_base: Annotated[
        int | None, _of_columns("Number of the first node of an edge list, 0 or 1.  [default: 0]", metavar="N")
    ] = None
    relation: Annotated[
        str | None,
        _of_columns("Edge type of an edge list: REL, or SRC:REL:DST with node types.  [default: _N:_E:_N]", metavar="NAME"),
    ] = None
    length_delimiter: Annotated[
        str | None, _of_deepgnn("Character between a feature's lengths (edgelist).  [default: /]", metavar="CHAR")
    ] = None
    binary_escape: Annotated[
        str | None, _of_deepgnn("Character that escapes delimiters in binary features (edgelist).", metavar="CHAR")
    ] = None
    temporal: Annotated[bool | None, _of_deepgnn("Lines have created_at and removed_at (edgelist).")] = None
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

    def given(self) -> dict[str, Any]:
        """Return what is given."""
        return {one.name: value for one in fields(self) if (value := getattr(self, one.name)) not in (None, [])}


_FILE = "decoder_options_file"  # of options, which is none itself
DECODER_OPTIONS = tuple(name for name in declared(DecoderOptions) if name != _FILE)
# Of tables that are named by --nodes and --edges, and of nothing else.
OF_TABLES_ALONE = ("id_col", "type_col", "id_space", "null", "escape", "comment")
SHARED_WITH_TABLES = tuple(
    name for name, one in declared(DecoderOptions).items() if one.option.formats == TABLES and name not in OF_TABLES_ALONE
)
