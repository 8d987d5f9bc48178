"""A naive NumPy partitioner of chunked graphs: ``naive_chunked.py FOLDER OUT PARTITIONS``, and ``naive_chunked.py versions``.

What one writes in an afternoon: read everything, sort by destination, cut, save. Node IDs are cut as ``--partition-by range``
cuts them, so that the arrays equal those of a graphprep store.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet


def main() -> None:
    """Partition, or print the versions."""
    if sys.argv[1:] == ["versions"]:
        print(json.dumps({"numpy": np.__version__, "pyarrow": pa.__version__}))
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
        ends = np.concatenate([_load(folder / path, entry["format"]) for path in entry["data"]])
        data = metadata["edge_data"].get(name, {})
        columns = {key: np.concatenate([_load(folder / p, e["format"]) for p in e["data"]]) for key, e in data.items()}
        _write_edges(out, name, ends, columns, borders[name.split(":")[2]])


def _write_edges(out: Path, name: str, ends: np.ndarray, columns: dict[str, np.ndarray], borders: np.ndarray) -> None:
    order = np.argsort(ends[:, 1], kind="stable")
    src, dst = ends[order, 0], ends[order, 1]
    cuts = np.searchsorted(dst, borders)
    folder = "edges/" + name.replace(":", "__")
    for part in range(borders.size - 1):
        low, high = cuts[part : part + 2]
        rows = np.arange(borders[part], borders[part + 1] + 1)
        _save(out, part, f"{folder}/csc/indptr", np.searchsorted(dst[low:high], rows))
        _save(out, part, f"{folder}/csc/indices", src[low:high].astype(np.int32))
        _save(out, part, f"{folder}/csc/edge_ids", order[low:high].astype(np.int32))
        for column, values in columns.items():
            _save(out, part, f"{folder}/data/{column}", values[order[low:high]])


def _load(path: Path, kind: dict[str, str]) -> np.ndarray:
    if kind["name"] == "numpy":
        return np.load(path)
    if kind["name"] == "parquet":
        return pa.parquet.read_table(path).column(0).to_numpy()[:, None]  # as DGL reads it
    parse = pa.csv.ParseOptions(delimiter=kind["delimiter"])
    table = pa.csv.read_csv(path, pa.csv.ReadOptions(column_names=["src", "dst"]), parse)
    return np.stack([column.to_numpy() for column in table.columns], axis=1)


def _borders(count: int, num_parts: int) -> np.ndarray:
    return np.cumsum([0, *(count // num_parts + (part < count % num_parts) for part in range(num_parts))])


def _save(out: Path, part: int, name: str, array: np.ndarray) -> None:
    path = out / f"part-{part:05d}" / f"{name}.npy"
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)


if __name__ == "__main__":
    main()
