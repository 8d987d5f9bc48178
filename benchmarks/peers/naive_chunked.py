"""A naive partitioner of chunked graphs: ``naive_chunked.py FOLDER OUT PARTITIONS``, and ``naive_chunked.py versions``.

What one writes in an afternoon: read everything with pyarrow, group by destination with SciPy, cut, save with NumPy. Node IDs
are cut as ``--partition-by range`` cuts them, so that the arrays equal those of a graphprep store.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import scipy
import scipy.sparse


def main() -> None:
    """Partition, or print the versions."""
    if sys.argv[1:] == ["versions"]:
        print(json.dumps({"numpy": np.__version__, "pyarrow": pa.__version__, "scipy": scipy.__version__}))
        return
    folder, out, num_parts = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    metadata = json.loads((folder / "metadata.json").read_text())
    counts = dict(zip(metadata["node_type"], map(sum, metadata["num_nodes_per_chunk"]), strict=True))
    borders = {name: _borders(count, num_parts) for name, count in counts.items()}
    for name, columns in metadata["node_data"].items():
        for column, entry in columns.items():
            rows = np.concatenate([_load(folder / path, entry["format"]) for path in entry["data"]])
            for part in range(num_parts):
                low, high = borders[name][part : part + 2]
                _save(out, part, f"nodes/{name}/data/{column}", rows[low:high])
    for name, entry in metadata["edges"].items():
        chunks = [_load_ends(folder / path, entry["format"]) for path in entry["data"]]
        ends = [np.concatenate(pieces) for pieces in zip(*chunks, strict=True)]
        data = metadata["edge_data"].get(name, {})
        columns = {key: np.concatenate([_load(folder / p, e["format"]) for p in e["data"]]) for key, e in data.items()}
        _write_edges(out, name, ends, columns, borders[name.split(":")[2]])


def _write_edges(out: Path, name: str, ends: list[np.ndarray], columns: dict[str, np.ndarray], borders: np.ndarray) -> None:
    src, dst = (end.astype(np.int32) for end in ends)
    edge_ids = np.arange(src.size, dtype=np.int32)
    # SciPy sums up repeated entries. With edge IDs as columns there are none; its COO to CSR is a stable counting sort.
    matrix = scipy.sparse.coo_matrix((src, (dst, edge_ids)), shape=(int(borders[-1]), src.size)).tocsr()
    folder = "edges/" + name.replace(":", "__")
    for part in range(borders.size - 1):
        rows = matrix.indptr[borders[part] : borders[part + 1] + 1].astype(np.int64)
        low, high = rows[0], rows[-1]
        _save(out, part, f"{folder}/csc/indptr", rows - low)
        _save(out, part, f"{folder}/csc/indices", matrix.data[low:high])
        _save(out, part, f"{folder}/csc/edge_ids", matrix.indices[low:high])
        for column, values in columns.items():
            _save(out, part, f"{folder}/data/{column}", values[matrix.indices[low:high]])


def _load(path: Path, kind: dict[str, str]) -> np.ndarray:
    if kind["name"] == "numpy":
        return np.load(path)
    if kind["name"] == "parquet":
        return pa.parquet.read_table(path).column(0).to_numpy()[:, None]  # as DGL reads it
    raise ValueError(kind)


def _load_ends(path: Path, kind: dict[str, str]) -> list[np.ndarray]:
    parse = pa.csv.ParseOptions(delimiter=kind["delimiter"])
    types = pa.csv.ConvertOptions(column_types={"src": pa.int32(), "dst": pa.int32()})
    table = pa.csv.read_csv(path, pa.csv.ReadOptions(column_names=["src", "dst"], block_size=8 << 20), parse, types)
    return [column.to_numpy() for column in table.columns]


def _borders(count: int, num_parts: int) -> np.ndarray:
    return np.cumsum([0, *(count // num_parts + (part < count % num_parts) for part in range(num_parts))])


def _save(out: Path, part: int, name: str, array: np.ndarray) -> None:
    path = out / f"part-{part:05d}" / f"{name}.npy"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)


if __name__ == "__main__":
    main()
