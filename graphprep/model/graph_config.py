"""Which files are the tables and arrays of which types: the graph config, and what ``--nodes`` and ``--edges`` say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

IdType = Literal["int", "uint", "string", "auto"]
TableFormat = Literal["csv", "tsv", "parquet", "arrow", "jsonl", "npy", "npz", "mtx", "metis"]


@dataclass(frozen=True)
class TableConfig:
    """How the files of one table are read. None and () mean: found in the data, or the graph's default.

    ``files`` are paths, folders, globs or URLs, relative to the config's folder. ``names`` are the columns' names where the
    files have no header of their own (``header`` is then ``no``). ``columns`` fixes dtypes, ``renamed`` gives columns another
    name in the store (pairs: name in the file, new name), ``dropped`` leaves columns out, ``kept`` leaves out all but these,
    ``nulls`` are further spellings of an absent cell. ``escape`` is a character that makes text of the one behind it,
    ``comment`` one that begins lines that are no records. ``place`` says where the table is asked for
    (``graph.yaml: nodes[0]``, ``--nodes user=u.csv``), for messages.
    """

    files: tuple[str, ...] = ()
    format: TableFormat | None = None
    delimiter: str | None = None
    header: Literal["auto", "yes", "no"] = "auto"
    names: tuple[str, ...] | None = None
    quote: bool | None = None
    escape: str | None = None
    comment: str | None = None
    nulls: tuple[str, ...] = ()
    columns: tuple[tuple[str, str], ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    kept: tuple[str, ...] | None = None
    id_type: IdType | None = None
    list_delimiter: str | None = None
    place: str = ""


@dataclass(frozen=True)
class NodeTable:
    """A node type's tables.

    ``type`` names the type, or ``type_col`` the column that does, row by row; with ``type_delimiter``, it is what stands before
    that in the cell. Without ``table.files``, ``num_nodes`` declares nodes 0..n-1; without both, the type's nodes are the IDs
    that occur. ``id_col`` None: row r is node r where ``row_ids``, else the column ``id`` if there is one, else the first.
    ``space`` names the ID space; None: the type's own. ``declares``: whether each row declares a node, or brings columns of
    nodes that others declare or that occur; None: it declares one, unless an earlier table of the type has none of its columns.
    ``num_nodes_by`` is the place that states ``num_nodes``.
    """

    type: str | None
    table: TableConfig = TableConfig()
    type_col: str | None = None
    type_delimiter: str | None = None
    id_col: str | None = None
    row_ids: bool = False
    num_nodes: int | None = None
    space: str | None = None
    weight_col: str | None = None
    declares: bool | None = None
    num_nodes_by: str = field(default="", compare=False)


@dataclass(frozen=True)
class PairFile:
    """An array of pairs of raw IDs that are in one part of a split; with ``labels``, those whose label is not 0. URLs."""

    pairs: str
    labels: str | None = None
    place: str = ""


@dataclass(frozen=True)
class EdgeTable:
    """An edge type's tables.

    ``src_type`` and ``dst_type`` None: found by ID in ``src_space`` and ``dst_space``. ``relation`` None: the column
    ``relation_col`` names it, row by row. Columns None: ``src`` and ``dst``, or ``source`` and ``target``, where the table has
    them, else the first two. ``layout`` says that the files are arrays of a CSR or CSC matrix. ``parts`` name the edges of the
    train, valid and test parts by their ends, integers from 0: they become the column ``split``.
    """

    src_type: str | None
    relation: str | None
    dst_type: str | None
    table: TableConfig = TableConfig()
    relation_col: str | None = None
    src_col: str | None = None
    dst_col: str | None = None
    src_space: str | None = None
    dst_space: str | None = None
    weight_col: str | None = None
    time_col: str | None = None
    time_unit: Literal["s", "ms", "us", "ns"] | None = None
    layout: Literal["coo", "csr", "csc"] = "coo"
    parts: tuple[PairFile | None, PairFile | None, PairFile | None] | None = None


@dataclass(frozen=True)
class DataArray:
    """A column that lies in a file of its own: row r belongs to raw ID r of a node type, or to edge ID r of an edge type.

    ``owner`` is a node type's name, or ``src:rel:dst``. With ``id_col`` the file is a table, and rows belong to the IDs in that
    column; with ``ids_file`` it is an array, and row r belongs to the raw ID in row r of that array: several such files may
    make one column.
    """

    owner: str
    name: str
    file: str
    id_col: str | None = None
    column: str | None = None
    place: str = ""
    ids_file: str | None = None


def split_files(owner: str, files: Sequence[str]) -> str:
    """Write what ``splits`` holds where three files name the nodes of a type's train, valid and test parts."""
    for char, code in (("%", "%25"), (":", "%3A"), ("=", "%3D")):
        owner = owner.replace(char, code)
    return f"{owner}={','.join(file.replace(',', '%2C') for file in files)}"


@dataclass(frozen=True)
class GraphConfig:
    """A heterogeneous graph as its files hold it. Types are numbered in the order in which they are listed.

    ``id_space``: an ID space per node type, or one for all. ``columns`` and ``dropped`` are those of ``TableConfig`` for every
    table that has such a column; a table's own win. ``labels``, ``splits``, ``seeds`` and ``categories`` are written as the
    flags of these names. ``base`` is the URL of the folder that relative paths start from; ``place`` is the config's URL, for
    messages.
    ``messages`` are for the user: what a config of another tool says that a store cannot hold.
    """

    nodes: tuple[NodeTable, ...] = ()
    edges: tuple[EdgeTable, ...] = ()
    node_data: tuple[DataArray, ...] = ()
    edge_data: tuple[DataArray, ...] = ()
    graph_name: str | None = None
    id_space: Literal["per-type", "global"] = "per-type"
    id_type: IdType | None = None
    columns: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    base: str = ""
    place: str = ""
    messages: tuple[str, ...] = ()
