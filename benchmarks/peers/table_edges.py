"""Plain edge lists by a table reader and SciPy: ``table_edges.py polars|pyarrow INPUT OUT`` or ``table_edges.py … versions``.

Reads all columns as the dtypes that they are stored in, builds CSC with SciPy in memory, and saves the arrays that a graphprep
store holds: indptr, indices, edge IDs, and the weight where there is a third column.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import scipy
import scipy.sparse


def main() -> None:
    """Convert, or print the versions."""
    reader, source, *rest = sys.argv[1:]
    if source == "versions":
        module = __import__(reader)
        print(json.dumps({reader: module.__version__, "scipy": scipy.__version__, "numpy": np.__version__}))
        return
    with Path(source).open("rb") as file:
        width = len(file.readline().split())
    src, dst, *weights = {"polars": read_with_polars, "pyarrow": read_with_pyarrow}[reader](source, width)
    write_csc(Path(rest[0]), src, dst, weights)


def write_csc(out: Path, src: np.ndarray, dst: np.ndarray, weights: list[np.ndarray]) -> None:
    """Build CSC of int32 ends, and save it."""
    num_nodes = int(max(src.max(), dst.max())) + 1
    edge_ids = np.arange(src.size, dtype=np.int32)
    # SciPy sums up repeated entries. With edge IDs as columns there are none; its COO to CSR is a stable counting sort.
    matrix = scipy.sparse.coo_matrix((src, (dst, edge_ids)), shape=(num_nodes, src.size)).tocsr()
    folder = out / "part-00000" / "edges" / "_N___E___N"
    (folder / "csc").mkdir(parents=True)
    np.save(folder / "csc" / "indptr.npy", matrix.indptr.astype(np.int64))
    np.save(folder / "csc" / "indices.npy", matrix.data)
    np.save(folder / "csc" / "edge_ids.npy", matrix.indices)
    if weights:
        np.save(folder / "weight.npy", weights[0][matrix.indices])


def read_with_polars(source: str, width: int) -> list[np.ndarray]:
    """Read all columns."""
    import polars as pl

    schema = {"src": pl.Int32, "dst": pl.Int32, "weight": pl.Float32}
    schema = dict(list(schema.items())[:width])
    frame = pl.read_csv(source, separator=" ", has_header=False, schema=schema)
    return [series.to_numpy() for series in frame.get_columns()]


def read_with_pyarrow(source: str, width: int) -> list[np.ndarray]:
    """Read all columns."""
    import pyarrow as pa
    import pyarrow.csv as csv

    names = ["src", "dst", "weight"][:width]
    types = {"src": pa.int32(), "dst": pa.int32(), "weight": pa.float32()}
    table = csv.read_csv(
        source,
        csv.ReadOptions(column_names=names, block_size=8 << 20),
        csv.ParseOptions(delimiter=" "),
        csv.ConvertOptions(column_types={name: types[name] for name in names}),
    )
    return [column.to_numpy() for column in table.columns]


if __name__ == "__main__":
    main()
