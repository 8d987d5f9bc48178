"""Plain edge lists by a table reader and SciPy: ``table_edges.py polars|pyarrow INPUT OUT`` or ``table_edges.py … versions``.

Reads all columns, builds CSC with SciPy in memory, and saves the arrays that a graphprep store holds: indptr, indices,
edge IDs, and the weight where there is a third column.
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
    columns = {"polars": read_with_polars, "pyarrow": read_with_pyarrow}[reader](source)
    src, dst = columns[:2]
    num_nodes = int(max(src.max(), dst.max())) + 1
    edge_ids = np.arange(src.size, dtype=np.int32)
    # SciPy sums up repeated entries. With edge IDs as columns there are none; its COO to CSR is a stable counting sort.
    matrix = scipy.sparse.coo_matrix((src.astype(np.int32), (dst, edge_ids)), shape=(num_nodes, src.size)).tocsr()
    out = Path(rest[0]) / "part-00000" / "edges" / "_N___E___N"
    (out / "csc").mkdir(parents=True)
    np.save(out / "csc" / "indptr.npy", matrix.indptr.astype(np.int64))
    np.save(out / "csc" / "indices.npy", matrix.data)
    np.save(out / "csc" / "edge_ids.npy", matrix.indices.astype(np.int32))
    if len(columns) == 3:
        np.save(out / "weight.npy", columns[2].astype(np.float32)[matrix.indices])


def read_with_polars(source: str) -> list[np.ndarray]:
    """Read all columns."""
    import polars

    frame = polars.read_csv(source, separator=" ", has_header=False)
    return [series.to_numpy() for series in frame.get_columns()]


def read_with_pyarrow(source: str) -> list[np.ndarray]:
    """Read all columns."""
    import pyarrow.csv as csv

    table = csv.read_csv(source, csv.ReadOptions(autogenerate_column_names=True), csv.ParseOptions(delimiter=" "))
    return [column.to_numpy() for column in table.columns]


if __name__ == "__main__":
    main()
