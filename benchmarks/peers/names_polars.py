"""Edges between names by polars and SciPy: ``names_polars.py INPUT OUT``, and ``names_polars.py versions``.

Names are numbered in ascending order, as graphprep does: distinct names sorted, and each end's rank joined on. The arrays of
the edges equal those of a graphprep store; the names go into a Parquet file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import scipy
from table_edges import write_csc


def main() -> None:
    """Convert, or print the versions."""
    if sys.argv[1:] == ["versions"]:
        print(json.dumps({"polars": pl.__version__, "scipy": scipy.__version__, "numpy": np.__version__}))
        return
    source, out = sys.argv[1:]
    frame = pl.read_csv(source, has_header=False, schema={"src": pl.String, "dst": pl.String})
    names = pl.concat([frame["src"].unique(), frame["dst"].unique()]).unique().sort()
    # An Enum's codes are the ranks: the fastest way that polars has from texts to ranks among known texts.
    ends = frame.select(pl.all().cast(pl.Enum(names)).to_physical().cast(pl.Int32))
    del frame
    write_csc(Path(out), ends["src"].to_numpy(), ends["dst"].to_numpy(), [])
    pl.DataFrame({"name": names}).write_parquet(Path(out) / "names.parquet")


if __name__ == "__main__":
    main()
