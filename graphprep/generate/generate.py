"""Generate a graph: check what was asked for, make it block by block, write it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from typing import Any, get_args

from graphprep.edges.device.find import find_kernels
from graphprep.engine.budget import default_threads
from graphprep.generate.edges import EdgeGraph, GridGraph, RmatGraph
from graphprep.generate.files import NPY_NAMES, Advance, Pieces, edge_parquet, edge_text, write_npy
from graphprep.generate.folders import Counts, deepgnn_text, write_chunked, write_tables
from graphprep.generate.hetero import NODE_TYPES, HeteroGraph
from graphprep.kernels.edges import Kernels
from graphprep.model.errors import UsageError, one_of
from graphprep.model.option import flag_of
from graphprep.model.options.generate import (
    DEFAULTS,
    EDGE_FORMATS,
    FOLDER_FORMATS,
    HETERO_FORMATS,
    KINDS,
    GenerateFormat,
    GenerateOptions,
    GenerateSummary,
    GraphKind,
)
from graphprep.model.protocols import Reporter
from graphprep.storage.faults import display_url
from graphprep.storage.read.urls import Storage
from graphprep.storage.write.outputs import STDOUT, FolderOutput, check_output, write_output
from graphprep.storage.write.owned import find_files

_SUFFIXES: dict[str, GenerateFormat] = {".csv": "csv", ".parquet": "parquet"}
_OURS = re.compile(
    rf"{'|'.join(map(re.escape, NPY_NAMES.values()))}|graph\.yaml|metadata\.json|(users|items|follows|buys)\.(csv|parquet)|"
    r"(user|item)-feat-\d+\.npy|user-(follows-user|buys-item)(-\d+\.csv|-weight-\d+\.parquet)"
)


def generate(kind: str, out: str, options: GenerateOptions, reporter: Reporter, storage: Storage) -> GenerateSummary:
    """Generate a graph into ``out``: a file, a folder or a URL, or ``-`` for stdout.

    Raises UsageError for options that do not fit, StorageError where writing fails.
    """
    begin = time.monotonic()
    graph, values = _make_graph(kind, options)
    format = _choose_format(graph_kind := _check_kind(kind), out, options)
    in_folder = format in FOLDER_FORMATS[graph_kind]
    if in_folder and out == STDOUT:
        raise UsageError(f"--format {format} is a folder of files, not a stream", fix="name a folder, or another --format")
    replaces = check_output(storage, out, options.overwrite, partial(_own_files, storage, out) if in_folder else None)
    threads = options.run.threads or default_threads()
    reporter.stage("generate")
    counts = Counts()

    def advance(records: int, num_bytes: int) -> None:
        reporter.advance(records=records, num_bytes=num_bytes)

    if not in_folder:
        pieces = _pieces(graph, format, threads, advance, counts)
        num_bytes = write_output(storage, out, pieces)
    else:
        with FolderOutput(storage, out, replaces=replaces, takes_over=options.overwrite) as folder:
            _write_folder(graph, format, values, folder, threads, advance, counts)
            folder.publish()
        num_bytes = folder.num_bytes
    elapsed_s = time.monotonic() - begin
    return GenerateSummary(display_url(out), graph_kind, format, *_sizes(graph, counts), num_bytes, elapsed_s)


def _check_kind(kind: str) -> GraphKind:
    for known in KINDS:
        if kind == known:
            return known
    raise UsageError(f"there is no kind of graph named {kind!r}", fix=one_of(KINDS, found=kind))


def _make_graph(kind: str, options: GenerateOptions) -> tuple[EdgeGraph | HeteroGraph, dict[str, Any]]:
    """Return the graph, and the options of its kind with their defaults.

    Raises UsageError for options of another kind, or out of range.
    """
    known = DEFAULTS[_check_kind(kind)]
    given = options.given()
    for name in given:
        if name not in known:
            homes = " and ".join(other for other in KINDS if name in DEFAULTS[other])
            raise UsageError(f"{flag_of(name, GenerateOptions)} is an option of {homes}, not of {kind}", fix="leave it out")
    if kind == "rmat" and "edges" in given and "edge_factor" in given:
        raise UsageError("--edges and --edge-factor contradict each other", fix="leave out one of them")
    values = known | given
    makers: dict[str, Callable[[Kernels, dict[str, Any], int], EdgeGraph | HeteroGraph]]
    makers = {"rmat": RmatGraph.of, "grid": GridGraph.of, "hetero": HeteroGraph.of}
    return makers[kind](find_kernels(), values, options.seed), values


def _choose_format(kind: GraphKind, out: str, options: GenerateOptions) -> GenerateFormat:
    """Return the format that is given, else what the name ends in, else the kind's own."""
    formats = HETERO_FORMATS if kind == "hetero" else EDGE_FORMATS
    if options.format is None:
        suffixes = _SUFFIXES if kind != "hetero" else {}
        return next((format for suffix, format in suffixes.items() if out.endswith(suffix)), formats[0])
    if options.format not in formats:
        known = options.format in get_args(GenerateFormat)
        what = f"{kind} is not written as {options.format}" if known else f"there is no format named {options.format!r}"
        raise UsageError(what, fix=one_of(formats, found="" if known else options.format))
    return options.format


def _pieces(graph: EdgeGraph | HeteroGraph, format: GenerateFormat, threads: int, advance: Advance, counts: Counts) -> Pieces:
    if isinstance(graph, HeteroGraph):
        return deepgnn_text(graph, format, threads, advance, counts)
    if format == "parquet":
        return edge_parquet(graph, threads, advance)
    delimiter, header = (",", True) if format == "csv" else (" ", False)
    return edge_text(graph, delimiter, header, threads, advance)


def _write_folder(
    graph: EdgeGraph | HeteroGraph,
    format: GenerateFormat,
    values: dict[str, Any],
    folder: FolderOutput,
    threads: int,
    advance: Advance,
    counts: Counts,
) -> None:
    if not isinstance(graph, HeteroGraph):
        write_npy(graph, folder, threads, advance)
    elif format == "chunked":
        write_chunked(graph, values["chunks"], folder, threads, advance, counts)
    else:
        write_tables(graph, format, folder, threads, advance, counts)


def _sizes(graph: EdgeGraph | HeteroGraph, counts: Counts) -> tuple[dict[str, int], dict[str, int]]:
    """Return the number of nodes and of edges, by type."""
    if isinstance(graph, HeteroGraph):
        return dict(zip(NODE_TYPES, graph.counts, strict=True)), counts.by_type()
    return {"_N": graph.num_nodes}, {"_N:_E:_N": graph.num_edges}


def _own_files(storage: Storage, out: str) -> set[str] | None:
    """Return the files of a graph that was generated into a folder; None where its main file is missing."""
    names = {name for name in find_files(storage, out) if _OURS.fullmatch(name)}
    return names if {"src.npy", "dst.npy"} <= names or not names.isdisjoint(("graph.yaml", "metadata.json")) else None
