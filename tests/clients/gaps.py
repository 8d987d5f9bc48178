"""A graph whose columns have gaps: labels, splits, seeds and features that some nodes and edges lack, and what is to come of it.

``from clients.gaps import make_gaps, PYG, DGL``: both hold the tensors of each type, written by hand, nodes by ID and edges by
edge ID, as (dtype, values).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import graphprep

NAN = float("nan")
BUYS = ("user", "buys", "item")
SRC, DST = [4, 0, 2, 0, 1, 4], [1, 0, 1, 0, 0, 1]
AT = [30, 10, 20, 5, 40, 10]
_FEAT = [[0.0, 0.5], [1.0, 1.5], [2.0, 2.5], [3.0, 3.5], [4.0, 4.5]]
_AGE = [31.0, 25.0, None, 40.0, None]
_TABLES: dict[str, dict[str, tuple[str, list[Any]]]] = {
    "user": {
        "id": ("int64", [0, 1, 2, 3, 4]),
        "feat": ("list", _FEAT),
        "age": ("float32", _AGE),
        "level": ("uint16", [7, None, 65535, 9, 8]),
        "big": ("uint64", [2**63 - 1, 1, 2, 3, 4]),
        "new": ("bool", [True, None, False, True, False]),
        "country": ("string", ["UK", "DE", None, "UK", None]),
        "score": ("float64", [0.5, None, 1.5, 2.5, 3.5]),
        "part": ("string", ["train", "valid", None, "test", "train"]),
        "name": ("string", ["a", "b", "c", "d", "e"]),
    },
    "item": {"id": ("int64", [0, 1]), "price": ("int32", [5, None])},
    "buys": {
        "src": ("int64", SRC),
        "dst": ("int64", DST),
        "at": ("int64", AT),
        "much": ("float32", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        "how": ("int8", [0, None, 2, 1, None, 0]),
        "part": ("string", ["train", None, "test", "valid", "train", None]),
        "rate": ("float32", [0.25, 0.5, None, 1.0, 2.0, None]),
    },
}


def make_gaps(folder: Path, **options: Any) -> Path:
    """Convert the graph to a store below ``folder``, and return its path. Rows of the tables stand in another order than IDs."""
    from graphprep.model.graph_config import EdgeTable, GraphConfig, NodeTable, TableConfig

    folder.mkdir(parents=True, exist_ok=True)
    tables = {name: TableConfig((str(_write(folder, name)),), place=name) for name in _TABLES}
    (folder / "seeds.txt").write_text("4\n1\n")
    config = GraphConfig(
        (NodeTable("user", tables["user"]), NodeTable("item", tables["item"])),
        (EdgeTable(*BUYS, table=tables["buys"], weight_col="much", time_col="at"),),
        id_type="int",
        labels=("user:country", "user:score", "user:buys:item:how"),
        splits=("user:part", "user:buys:item:part"),
        seeds=(f"user={folder / 'seeds.txt'}",),
    )
    graphprep.convert([], str(folder / "store"), graph=config, **options)
    return folder / "store"


def _write(folder: Path, name: str) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"list": pa.list_(pa.float32(), 2), "float32": pa.float32(), "float64": pa.float64(), "bool": pa.bool_()}
    order = range(len(SRC)) if name == "buys" else [3, 0, 4, 1, 2] if name == "user" else [1, 0]
    columns = {
        column: pa.array([values[row] for row in order], kinds[kind] if kind in kinds else getattr(pa, kind)())
        for column, (kind, values) in _TABLES[name].items()
    }
    path = folder / f"{name}.parquet"
    pq.write_table(pa.table(columns), path)
    return path


_TRUE, _FALSE = True, False
# Users 1 and 4, and edges 4, lack a label: they are in no part.
_USER_MASKS = {
    "train_mask": ("bool", [_TRUE, _FALSE, _FALSE, _FALSE, _FALSE]),
    "val_mask": ("bool", [_FALSE, _FALSE, _FALSE, _FALSE, _FALSE]),
    "test_mask": ("bool", [_FALSE, _FALSE, _FALSE, _TRUE, _FALSE]),
}
_EDGE_MASKS = {
    "train_mask": ("bool", [_TRUE, _FALSE, _FALSE, _FALSE, _FALSE, _FALSE]),
    "val_mask": ("bool", [_FALSE, _FALSE, _FALSE, _TRUE, _FALSE, _FALSE]),
    "test_mask": ("bool", [_FALSE, _FALSE, _TRUE, _FALSE, _FALSE, _FALSE]),
}
_AGE_PRESENT = ("bool", [_TRUE, _TRUE, _FALSE, _TRUE, _FALSE])
_LEVEL, _BIG, _NEW = [7, 0, 65535, 9, 8], [2**63 - 1, 1, 2, 3, 4], [_TRUE, _FALSE, _FALSE, _TRUE, _FALSE]
_USER = {
    "level_present": ("bool", [_TRUE, _FALSE, _TRUE, _TRUE, _TRUE]),
    "new_present": ("bool", [_TRUE, _FALSE, _TRUE, _TRUE, _TRUE]),
    "age_present": _AGE_PRESENT,
    "score": ("float32", [0.5, NAN, 1.5, 2.5, 3.5]),
    **_USER_MASKS,
}
_COUNTRY = ("int64", [1, 0, -1, 1, -1])  # DE is 0, UK is 1
_SEEDS = ("bool", [_FALSE, _TRUE, _FALSE, _FALSE, _TRUE])
_HOW = ("int64", [0, -1, 2, 1, -1, 0])
_RATE = [0.25, 0.5, 0.0, 1.0, 2.0, 0.0]
_RATE_PRESENT = ("bool", [_TRUE, _TRUE, _FALSE, _TRUE, _TRUE, _FALSE])
_PRICE_PRESENT = ("bool", [_TRUE, _FALSE])

PYG: dict[Any, dict[str, tuple[str, list[Any]]]] = {
    "user": {
        "x": (
            "float32",
            [
                [*feat, age or 0.0, level, float(np.float32(big)), float(new)]
                for feat, age, level, big, new in zip(_FEAT, _AGE, _LEVEL, _BIG, _NEW, strict=True)
            ],
        ),
        "y": _COUNTRY,
        "seed_mask": _SEEDS,
        **_USER,
    },
    "item": {"x": ("float32", [[5], [0]]), "price_present": _PRICE_PRESENT},
    BUYS: {
        "edge_attr": ("float32", [[one] for one in _RATE]),
        "edge_rate_present": _RATE_PRESENT,
        "edge_label": _HOW,
        "edge_time": ("int64", AT),
        "edge_weight": ("float32", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        **{f"edge_{name}": values for name, values in _EDGE_MASKS.items()},
    },
}
DGL: dict[Any, dict[str, tuple[str, list[Any]]]] = {
    "user": {
        "feat": ("float32", _FEAT),
        "age": ("float32", [age or 0.0 for age in _AGE]),
        "level": ("int32", _LEVEL),
        "big": ("int64", _BIG),
        "new": ("bool", _NEW),
        "country": _COUNTRY,
        "country_present": ("bool", [_TRUE, _TRUE, _FALSE, _TRUE, _FALSE]),
        "score_present": ("bool", [_TRUE, _FALSE, _TRUE, _TRUE, _TRUE]),
        "seeds": _SEEDS,
        **_USER,
    },
    "item": {"price": ("int32", [5, 0]), "price_present": _PRICE_PRESENT},
    BUYS: {
        "rate": ("float32", _RATE),
        "rate_present": _RATE_PRESENT,
        "how": _HOW,
        "how_present": ("bool", [_TRUE, _FALSE, _TRUE, _TRUE, _FALSE, _TRUE]),
        "time": ("int64", AT),
        "weight": ("float32", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        **_EDGE_MASKS,
    },
}
