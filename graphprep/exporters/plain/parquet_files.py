"""``parquet``: a table of nodes for each node type, a table of edges for each edge type, and a config that reads them again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from graphprep.engine.local import map_ordered
from graphprep.exporters.formats.arrow_files import ArrowSink
from graphprep.exporters.plain.edges_text import column_names
from graphprep.exporters.unsupported import list_unsupported
from graphprep.exporters.view.graph import StoredGraph
from graphprep.model.export import ExportPlan, Side, StoreNeed
from graphprep.model.metadata import GraphMetadata, dump_json
from graphprep.model.schema import FLAG_ESCAPES, ColumnSchema, edge_type_path, escape_name, path_name
from graphprep.storage.read.arrow_arrays import arrow_array
from graphprep.storage.write.outputs import FolderOutput
from graphprep.store.columns.arrow import column_array, column_type, has_names, id_array, id_type, names_array
from graphprep.store.raw_ids import RawLookup

_GROUP_BYTES = 4 << 20  # of a row group: it does not depend on the memory limit, so that files do not
_MOST_ROWS = 1 << 17  # of a row group
_ID_TYPES = {"identity": "int", "int64": "int", "uint64": "uint", "string": "string"}  # in the config
_OTHER_BYTES = 64  # of a value whose size is not known beforehand


@dataclass(frozen=True)
class ParquetExporter:
    """Writes nodes with raw IDs and columns, in typed order; edges with raw ends, edge IDs and columns, by edge ID."""

    name: ClassVar[str] = "parquet"
    loads_in: ClassVar[str] = "any reader of Parquet: pandas, Polars, DuckDB, Spark; graphprep convert OUT/graph.yaml"
    carries: ClassVar[str] = "everything: columns of all kinds, raw IDs, edge IDs; no complex numbers"
    needs: ClassVar[str] = "edges in the order of edge IDs"
    root_file: ClassVar[str] = "graph.yaml"
    node_ids: ClassVar[Literal["dense", "own"]] = "own"

    compression: Annotated[Literal["zstd", "snappy", "gzip", "none"], "of the files"] = "zstd"
    texts: Annotated[Literal["string", "binary"], "type of columns of texts"] = "string"

    def plan(self, metadata: GraphMetadata) -> ExportPlan:
        """See ``Exporter``."""
        return ExportPlan(StoreNeed(edge_columns="input", input_order=True), list_unsupported(metadata, _why_not))

    def export(self, graph: StoredGraph, out: FolderOutput) -> None:
        """See ``Exporter``."""
        ends = [RawLookup(graph.store, number) for number in range(len(graph.metadata.node_types))]
        for number, name in enumerate(graph.metadata.node_types):
            self._write_nodes(graph, number, f"nodes/{path_name(name)}.parquet", out)
            for column in graph.node_columns(number):
                if column.role == "seeds":
                    self._write_seeds(graph, number, column, out)
        for edge, edge_type in enumerate(graph.metadata.edge_types):
            self._write_edges(graph, edge, ends, f"edges/{edge_type_path(edge_type)}.parquet", out)
            graph.reporter.advance(records=graph.metadata.num_edges_per_type[edge])
        out.write(self.root_file, dump_json(_config(graph)))

    def _write_nodes(self, graph: StoredGraph, number: int, path: str, out: FolderOutput) -> None:
        columns, kind = graph.node_columns(number), graph.metadata.node_schemas[number].raw_ids
        names = column_names(("id",), columns)
        schema = self._schema(names, [id_type(kind)], columns)
        ids = RawLookup(graph.store, number)

        def read(part: int, low: int, high: int) -> list[Any]:
            first = int(graph.node_offsets(number)[part])
            found = [id_array(ids.of(np.arange(first + low, first + high)), kind)]
            for column in columns:
                cells = graph.node_cells(number, part, column, low, high)
                found.append(self._array(column, cells, graph.node_present(number, part, column, low, high)))
            return found

        counts = graph.metadata.num_nodes_per_chunk[number]
        self._write(path, schema, _cut(counts, columns), read, out, graph.room.threads)

    def _write_seeds(self, graph: StoredGraph, number: int, column: ColumnSchema, out: FolderOutput) -> None:
        """Write the raw IDs of a type's seeds, in typed order, as ``--seeds`` takes them."""
        import pyarrow as pa

        kind, ids = graph.metadata.node_schemas[number].raw_ids, RawLookup(graph.store, number)

        def read(part: int, low: int, high: int) -> list[Any]:
            chosen = graph.node_cells(number, part, column, low, high).flat != 0
            first = int(graph.node_offsets(number)[part])
            return [id_array(ids.of(np.flatnonzero(chosen) + (first + low)), kind)]

        schema = pa.schema([pa.field("id", id_type(kind), nullable=False)])
        groups = _cut(graph.metadata.num_nodes_per_chunk[number], [column])
        self._write(_seeds_path(graph.metadata.node_types[number]), schema, groups, read, out, graph.room.threads)

    def _write_edges(self, graph: StoredGraph, edge: int, ends: Sequence[RawLookup], path: str, out: FolderOutput) -> None:
        import pyarrow as pa

        columns, numbers = graph.edge_columns(edge), graph.ends_of(edge)
        kinds = [graph.metadata.node_schemas[number].raw_ids for number in numbers]
        names = column_names(("src", "dst", "edge_id"), columns)
        schema = self._schema(names, [*map(id_type, kinds), pa.int64()], columns)
        sides = [
            partial(_read_end, reader, ends[number])
            for reader, number in zip(graph.store.input_ends(edge), numbers, strict=True)
        ]

        def read(part: int, low: int, high: int) -> list[Any]:
            found = [id_array(side(low, high), kind) for side, kind in zip(sides, kinds, strict=True)]
            found.append(arrow_array(np.arange(low, high)))
            for column in columns:
                cells = graph.input_edge_cells(edge, column, low, high)
                found.append(self._array(column, cells, graph.edge_present(edge, "input", 0, column, low, high)))
            return found

        self._write(path, schema, _cut([graph.metadata.num_edges_per_type[edge]], columns), read, out, graph.room.threads)

    def _schema(self, names: Sequence[str], own: Sequence[Any], columns: Sequence[ColumnSchema]) -> Any:
        import pyarrow as pa

        kinds = [*((kind, False) for kind in own), *((self._type(column), column.optional) for column in columns)]
        return pa.schema([pa.field(name, kind, nullable=null) for name, (kind, null) in zip(names, kinds, strict=True)])

    def _type(self, column: ColumnSchema) -> Any:
        import pyarrow as pa

        return pa.string() if has_names(column) else column_type(column, texts=self.texts == "string")

    def _array(self, column: ColumnSchema, cells: Any, present: Any) -> Any:
        values = column_array(column, cells, present, texts=self.texts == "string")
        return names_array(column, values).cast(self._type(column)) if has_names(column) else values

    def _write(
        self,
        path: str,
        schema: Any,
        groups: Iterator[tuple[int, int, int]],
        read: Callable[[int, int, int], list[Any]],
        out: FolderOutput,
        threads: int,
    ) -> None:
        """Write a table, a row group after another; ``read`` returns the arrays of one, on the threads."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        texts = [field.name for field in schema if field.type in (pa.string(), pa.binary())]  # the rest repeats too little
        codec = {"compression": self.compression, "use_dictionary": texts or False}
        with out.open(path) as file, pq.ParquetWriter(ArrowSink(file), schema, **codec) as writer:
            tables = map_ordered(lambda group: pa.Table.from_arrays(read(*group), schema=schema), groups, threads)
            for table in tables:
                writer.write_table(table, row_group_size=max(1, table.num_rows))


def _why_not(side: Side, column: ColumnSchema) -> str | None:
    return "Parquet holds no complex numbers" if np.dtype(column.dtype).kind == "c" else None


def _cut(counts: Sequence[int], columns: Sequence[ColumnSchema]) -> Iterator[tuple[int, int, int]]:
    """Cut the rows of partitions into row groups: (partition, low, high)."""
    dense = [column for column in columns if column.kind == "dense"]
    row_bytes = sum(np.dtype(column.dtype).itemsize * int(np.prod(column.item_shape, dtype=np.int64)) for column in dense)
    row_bytes += _OTHER_BYTES * (len(columns) - len(dense))
    step = max(1, min(_MOST_ROWS, _GROUP_BYTES // max(1, row_bytes)))
    for part, count in enumerate(counts):
        for low in range(0, count, step):
            yield part, low, min(low + step, count)


def _read_end(reader: Any, ids: RawLookup, low: int, high: int) -> Any:
    return ids.of(reader.read(low, high).astype(np.int64))


def _config(graph: StoredGraph) -> dict[str, object]:
    """Return a config that ``graphprep convert`` reads the tables by."""
    metadata = graph.metadata
    nodes, edges = [], []
    roles: dict[str, list[str]] = {"labels": [], "categories": [], "splits": [], "seeds": []}
    for number, name in enumerate(metadata.node_types):
        columns = graph.node_columns(number)
        id_col = column_names(("id",), columns)[0]
        entry: dict[str, object] = {"type": name, "files": f"nodes/{path_name(name)}.parquet", "id_col": id_col}
        entry["id_type"] = _ID_TYPES[metadata.node_schemas[number].raw_ids]
        if seeds := [column.name for column in columns if column.role == "seeds"]:
            entry["drop"] = seeds
            roles["seeds"].append(f"{escape_name(name, FLAG_ESCAPES)}={_seeds_path(name)}")
        nodes.append({**entry, **_named(columns, ("weight",))})
        _add_roles(roles, name, columns)
    for edge, edge_type in enumerate(metadata.edge_types):
        columns = graph.edge_columns(edge)
        src, dst, edge_id = column_names(("src", "dst", "edge_id"), columns)[:3]
        entry = {"type": graph.edge_names[edge], "files": f"edges/{edge_type_path(edge_type)}.parquet"}
        entry |= {"src_col": src, "dst_col": dst, "drop": [edge_id], **_named(columns, ("weight", "time"))}
        edges.append(entry)
        _add_roles(roles, graph.edge_names[edge], columns)
    given = {key: texts for key, texts in roles.items() if texts}
    return {"graph_name": metadata.graph_name, **given, "nodes": nodes, "edges": edges}


def _seeds_path(node_type: str) -> str:
    return f"seeds/{path_name(node_type)}.parquet"


def _named(columns: Sequence[ColumnSchema], roles: Sequence[str]) -> dict[str, str]:
    return {f"{column.role}_col": column.name for column in columns if column.role in roles}


def _add_roles(roles: dict[str, list[str]], name: str, columns: Sequence[ColumnSchema]) -> None:
    for column in columns:
        if column.role in ("label", "split"):
            roles[f"{column.role}s"].append(f"{name}:{escape_name(column.name, FLAG_ESCAPES)}")
        elif has_names(column):
            roles["categories"].append(f"{name}:{escape_name(column.name, FLAG_ESCAPES)}")
