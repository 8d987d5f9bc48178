"""More columns than files may be open: 1,100 of them under ulimit -n 1024, here 200 under 100."""

import gzip
import resource
from pathlib import Path

import numpy as np
import pytest

import graphprep
from graphprep import RunOptions
from graphprep.convert.decoded.aligned import AlignedRuns
from graphprep.model.graph_config import EdgeTable, GraphConfig, NodeTable, TableConfig
from graphprep.model.rows import AlignedColumn, ColumnChunk, ColumnKey
from graphprep.storage.spill.runs import SpillPool

NUM_COLUMNS, NUM_ROWS = 200, 40
VALUES = {f"c{i}": [(7 * row + i) % 100 for row in range(NUM_ROWS)] for i in range(NUM_COLUMNS)}
NODES = {"id": list(range(NUM_ROWS)), **VALUES}
EDGES = {"src": list(range(NUM_ROWS)), "dst": [7 * row % NUM_ROWS for row in range(NUM_ROWS)], **VALUES}


@pytest.fixture
def few_files():
    """Let a hundred more files be opened than are open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 100, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def write_csv(path, table, gaps=False):
    names = [list(table)]
    rows = [["" if gaps and (row + k) % 5 == 0 and k > 1 else column[row] for k, column in enumerate(table.values())]
            for row in range(NUM_ROWS)]  # fmt: skip
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in names + rows))
    return str(path)


def check_store(store, edge_type, gaps=False):
    """Compare some columns, on both sides of every border, with what was written."""
    edges = store / "part-00000/edges" / edge_type
    edge_ids = np.load(edges / "csc/edge_ids.npy")
    assert sorted(edge_ids) == list(range(NUM_ROWS))
    for i in (0, 63, 64, 127, NUM_COLUMNS - 1):
        name, wanted = f"c{i}", np.array(VALUES[f"c{i}"])[edge_ids]
        there = (edge_ids + i + 2) % 5 != 0 if gaps else np.full(NUM_ROWS, True)
        assert np.load(edges / f"data/{name}.npy")[there].tolist() == wanted[there].tolist()
        if gaps:
            assert np.load(edges / f"data/{name}.present.npy").tolist() == there.tolist()


@pytest.mark.parametrize("gaps", [False, True])
def test_text(tmp_path, few_files, gaps):
    nodes, edges = (write_csv(tmp_path / name, table, gaps) for name, table in (("n.csv", NODES), ("e.csv", EDGES)))
    graphprep.convert(edges, tmp_path / "plain", format="edges", layout="both")
    check_store(tmp_path / "plain", "_N___E___N", gaps)
    node_table, edge_table = TableConfig(files=(nodes,)), TableConfig(files=(edges,))
    config = GraphConfig((NodeTable("n", node_table),), (EdgeTable("n", "e", "n", edge_table),))
    graphprep.convert([], tmp_path / "tables", graph=config)
    check_store(tmp_path / "tables", "n__e__n", gaps)
    assert np.load(tmp_path / "tables/part-00000/nodes/n/data/c199.npy")[1:3].tolist() == VALUES["c199"][1:3]


def test_parquet(tmp_path, few_files):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet as pq

    pq.write_table(pa.table(EDGES), tmp_path / "e.parquet")
    graphprep.convert(tmp_path / "e.parquet", tmp_path / "store")
    check_store(tmp_path / "store", "_N___E___N")


@pytest.mark.parametrize("ending", ["npy", "npy.gz"])
def test_files_of_columns(tmp_path, few_files, ending):
    (tmp_path / "e.csv").write_text("".join(f"{src},{dst}\n" for src, dst in zip(EDGES["src"], EDGES["dst"], strict=True)))
    for name, values in VALUES.items():
        np.save(tmp_path / f"{name}.npy", np.array(values))
        if ending == "npy.gz":
            (tmp_path / f"{name}.npy.gz").write_bytes(gzip.compress((tmp_path / f"{name}.npy").read_bytes()))
    data = tuple(f"{name}={tmp_path / name}.{ending}" for name in VALUES)
    graphprep.convert(tmp_path / "e.csv", tmp_path / "store", edge_data=data)
    check_store(tmp_path / "store", "_N___E___N")


def test_columns_in_spill_files_are_read_side_by_side(tmp_path, few_files):
    """Every piece lies in a spill file, none stays open, and none is larger than asked."""
    with SpillPool(0, str(tmp_path)) as pool:
        columns = []
        for i in range(NUM_COLUMNS):
            runs = AlignedRuns(pool, most_bytes=64)
            for start in (0, 16):
                rows = np.arange(0, 16, 1 + i % 2)
                key = ColumnKey("x", "numbers", "int64")
                chunk = ColumnChunk(key, rows, np.ones(rows.size, np.int64), 100 * i + start + rows, item_shape=())
                runs.append(AlignedColumn("n", start, 16, chunk), 0)
            columns.append(runs)
        pieces = list(zip(*(runs.read() for runs in columns[::2]), strict=True))
        assert len(pieces) == 4  # 8 values a piece
        for i in (0, 2, NUM_COLUMNS - 2):
            assert [one for piece in pieces for one in piece[i // 2][0]] == list(range(32))
            values = [value for piece in pieces for value in piece[i // 2][1].values[:, 0]]
            assert values == list(range(100 * i, 100 * i + 32))
        assert [row for rows, *_ in columns[1].read() for row in rows] == list(range(0, 32, 2))
        assert pool.in_memory_bytes == 0
        for runs in columns:
            runs.close()
        assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_edges_with_many_columns_are_scattered_out_a_few_at_a_time(tmp_path, monkeypatch):
    """Fewer than 16,384 edges are a group of their own where their columns take more than their share of the limit."""
    from graphprep.convert.shuffle import route_edges

    sizes = []
    add_group = route_edges._add_group

    def count(routing, group, aligned):
        sizes.append(sum(scattered.edges.batch.num_edges for scattered in group.batches))
        add_group(routing, group, aligned)

    monkeypatch.setattr(route_edges, "_add_group", count)
    names = ",".join(f"c{i}" for i in range(600))
    row = ",".join(str(i % 10) for i in range(600))
    (tmp_path / "e.csv").write_text(f"src,dst,{names}\n" + "".join(f"{i},{i * 7 % 4000},{row}\n" for i in range(4000)))
    graphprep.convert(tmp_path / "e.csv", tmp_path / "store", format="edges", run=RunOptions(memory_limit="256MiB", threads=2))
    assert sum(sizes) == 4000
    assert max(sizes) < 4000
