"""Edges sorted by destination within a memory limit: ``duckdb_sorted.py INPUT OUT LIMIT``, ``… check OUT``, ``… versions``.

``COPY (SELECT … ORDER BY dst, src)`` into uncompressed Parquet, what comes nearest to CSC partitions out of core.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb


def main() -> None:
    """Sort, check or print the versions."""
    if sys.argv[1:] == ["versions"]:
        print(json.dumps({"duckdb": duckdb.__version__}))
    elif sys.argv[1] == "check":
        check(Path(sys.argv[2]))
    else:
        sort(*sys.argv[1:])


def sort(source: str, out: str, limit: str) -> None:
    """Read, sort and write."""
    folder = Path(out)
    folder.mkdir(parents=True)
    database = duckdb.connect()
    database.execute(f"SET memory_limit = '{limit}'; SET temp_directory = '{folder / 'tmp'}'; SET threads = 2")
    columns = "{'src': 'INTEGER', 'dst': 'INTEGER'}"
    database.execute(
        f"COPY (SELECT * FROM read_csv('{source}', delim = ' ', header = false, columns = {columns}) ORDER BY dst, src) "
        f"TO '{folder / 'edges.parquet'}' (FORMAT parquet, COMPRESSION uncompressed)"
    )


def check(folder: Path) -> None:
    """Print the number of edges, their checksum, and whether they are sorted."""
    import numpy as np
    import pyarrow.parquet as pq

    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from inputs import edge_checksum

    num_edges, checksum, is_sorted, last = 0, 0, True, -1
    for batch in pq.ParquetFile(folder / "edges.parquet").iter_batches(1 << 20):
        src, dst = (batch.column(name).to_numpy().astype(np.int64) for name in ("src", "dst"))
        keys = np.concatenate([[last], dst << 32 | src])
        is_sorted &= bool((keys[1:] >= keys[:-1]).all())
        last = int(keys[-1])
        num_edges += src.size
        checksum = (checksum + edge_checksum(src, dst)) % 2**64
    print(json.dumps({"num_edges": num_edges, "checksum": f"{checksum:016x}", "sorted": is_sorted}))


if __name__ == "__main__":
    main()
