"""Generated graphs, against the definition in docs/generate.md written down once more in plain Python."""

from __future__ import annotations

import collections
import csv
import io
import itertools
import json
import math
import os
import shlex
import subprocess
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphprep
from graphprep.cli.main import run
from graphprep.edges.device.find import find_kernels
from graphprep.generate import edges as generate_edges
from graphprep.generate import hetero as generate_hetero
from graphprep.generate.streams import permutation_rounds
from graphprep.model.errors import StorageError, UsageError
from graphprep.model.run_options import RunOptions

# ---------------------------------------------------------------------------------------------- the definition

MASK = 2**64 - 1


def h(x):
    z = (x + 0x9E3779B97F4A7C15) & MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


class Draws:
    def __init__(self, seed):
        self.inner = h(seed % 2**64)

    def draw(self, stream, n):
        return h((h(self.inner ^ stream) + n * 0x9E3779B97F4A7C15) & MASK)

    def below(self, stream, n, k):
        return (self.draw(stream, n) >> 32) * k >> 32

    def unit(self, stream, n):
        return (self.draw(stream, n) >> 11) * 2.0**-53


def rmat(seed, scale, edges, a=0.57, b=0.19, c=0.19, permute=True):
    draws = Draws(seed)
    limits = [round(share * 2**20) for share in itertools.accumulate((a, b, c))]
    per_edge = math.ceil(scale / 3)
    for e in range(edges):
        ends = [0, 0]
        for d, lane in itertools.product(range(per_edge), range(3)):
            level = lane * per_edge + d
            value = draws.draw(0, e * per_edge + d) >> 21 * lane & (2**20 - 1)
            quarter = sum(value >= limit for limit in limits)
            if level < scale:
                ends[0] |= (quarter >> 1) << level
                ends[1] |= (quarter & 1) << level
        if permute:
            for r in range(4):
                factor, summand = draws.draw(1, 2 * r) | 1, draws.draw(1, 2 * r + 1)
                ends = [(x * factor + summand) % 2**scale for x in ends]
                ends = [x ^ (x >> math.ceil(scale / 2)) for x in ends]
        yield tuple(ends)


def grid(rows, cols, torus):
    for row, col in itertools.product(range(rows), range(cols)):
        for down, right in ((-1, 0), (0, -1), (0, 1), (1, 0)):
            near = (row + down, col + right)
            if torus:
                near = (near[0] % rows, near[1] % cols)
            if 0 <= near[0] < rows and 0 <= near[1] < cols:
                yield row * cols + col, near[0] * cols + near[1]


def with_columns(edges, seed, weights, times):
    draws = Draws(seed)
    for e, ends in enumerate(edges):
        row = list(map(str, ends))
        row += [f"{draws.below(2, e, 10**6) / 1e6:.6f}"] if weights else []
        row += [str(1_577_836_800 + draws.below(3, e, 31_622_400))] if times else []
        yield row


def users_and_items(seed, nodes, edges, features):
    """Return (nodes: (type, typed ID, weight, label, features), edges: (source, relation, destination, weight))."""
    draws = Draws(seed)
    users = max(1, nodes * 6 // 10)
    found = []
    for n in range(nodes):
        numbers = [draws.below(9, n * features + i, 10**5) for i in range(features)]
        typed = n if n < users else n - users
        found.append((int(n >= users), typed, (1 + draws.below(7, n, 64)) / 8, draws.below(8, n, 10), numbers))
    ends = []
    for e in range(edges):
        x = (e + draws.unit(4, e)) / edges
        source = min(int(x * math.sqrt(x) * users), users - 1)
        buys = draws.unit(5, e) < 0.4
        spread = draws.unit(6, e)
        ends.append((source, int(buys), int(spread * spread * (nodes - users if buys else users))))
    assert [source for source, _, _ in ends] == sorted(source for source, _, _ in ends)
    return found, [(*one, (1 + draws.below(2, e, 64)) / 8) for e, one in enumerate(sorted(ends))]


# ---------------------------------------------------------------------------------------------- R-MAT and grids


def text_of(tmp_path, kind, **given):
    path = tmp_path / "out.txt"
    path.unlink(missing_ok=True)
    graphprep.generate(kind, str(path), **given)
    return path.read_text()


@pytest.fixture
def small_blocks(monkeypatch):
    """Many blocks, and numbers of nodes that they do not divide."""
    monkeypatch.setattr(generate_hetero, "BLOCK_NODES", 7)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**64 - 1),
    scale=st.integers(0, 48),
    edges=st.integers(0, 40),
    shares=st.sampled_from([(0.57, 0.19, 0.19), (0.25, 0.25, 0.25), (1, 0, 0), (0, 0, 0), (0, 0, 1), (0.1, 0.3, 0.6)]),
    permute=st.booleans(),
    columns=st.tuples(st.booleans(), st.booleans()),
)
def test_rmat_is_what_the_definition_says(tmp_path_factory, seed, scale, edges, shares, permute, columns):
    given = dict(zip("abc", map(float, shares), strict=True), seed=seed, scale=scale, edges=edges, permute=permute)
    found = text_of(tmp_path_factory.mktemp("rmat"), "rmat", weights=columns[0], times=columns[1], **given)
    wanted = with_columns(rmat(**given), seed, *columns)
    assert found == "".join(" ".join(row) + "\n" for row in wanted)


@settings(deadline=None, max_examples=40)
@given(
    rows=st.integers(1, 9),
    cols=st.integers(1, 9),
    torus=st.booleans(),
    seed=st.integers(0, 5),
    columns=st.tuples(st.booleans(), st.booleans()),
    block_edges=st.sampled_from([4, 12, 1 << 16]),
)
def test_grids_are_what_the_definition_says(tmp_path_factory, rows, cols, torus, seed, columns, block_edges):
    if torus and min(rows, cols) < 3:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generate_edges.GridGraph.__init__, "__defaults__", (block_edges,))
        found = text_of(
            tmp_path_factory.mktemp("grid"), "grid", rows=rows, cols=cols, torus=torus, seed=seed, weights=columns[0],
            times=columns[1],
        )  # fmt: skip
    wanted = [" ".join(row) + "\n" for row in with_columns(grid(rows, cols, torus), seed, *columns)]
    assert found == "".join(wanted)
    values = {"rows": rows, "cols": cols, "torus": torus, "weights": False, "times": False}
    graph = generate_edges.GridGraph.of(find_kernels(), values, seed)
    assert graph.num_edges == len(wanted)


@pytest.mark.parametrize("scale", range(15))
def test_labels_are_a_bijection(scale):
    from graphprep.kernels.cpu.edges import generate

    ids = np.arange(1 << scale)
    generate._permute(permutation_rounds(scale), scale, ids)
    assert sorted(ids.tolist()) == list(range(1 << scale))


def test_degrees_are_skewed_as_the_shares_say(tmp_path):
    """Shares of the quarters within five standard deviations, and no label left of another."""
    edges = np.loadtxt(io.StringIO(text_of(tmp_path, "rmat", scale=10, edges=40_000, permute=False)), dtype=np.int64)
    quarters = collections.Counter(zip((edges[:, 0] >> 9).tolist(), (edges[:, 1] >> 9).tolist(), strict=True))
    for quarter, share in {(0, 0): 0.57, (0, 1): 0.19, (1, 0): 0.19, (1, 1): 0.05}.items():
        assert abs(quarters[quarter] / 40_000 - share) < 5 * math.sqrt(share * (1 - share) / 40_000)
    permuted = np.loadtxt(io.StringIO(text_of(tmp_path, "rmat", scale=10, edges=40_000)), dtype=np.int64)
    degrees = [np.sort(np.bincount(some[:, 0], minlength=1024)) for some in (edges, permuted)]
    assert (degrees[0] == degrees[1]).all()
    assert np.bincount(permuted[:, 0], minlength=1024).argmax() != 0


@pytest.mark.parametrize("format", ["edges", "csv", "parquet", "npy"])
@pytest.mark.parametrize("given", [{"kind": "rmat", "scale": 9, "edges": 1001}, {"kind": "grid", "rows": 20, "cols": 13}])
def test_threads_and_blocks_do_not_matter(tmp_path, monkeypatch, format, given):
    def made(name, threads, block_edges):
        for graph in (generate_edges.RmatGraph, generate_edges.GridGraph):
            monkeypatch.setattr(graph.__init__, "__defaults__", (block_edges,))
        out = tmp_path / name
        graphprep.generate(**given, out=str(out), format=format, weights=True, times=True, run=RunOptions(threads=threads))
        return [(path.name, path.read_bytes()) for path in sorted(out.iterdir())] if out.is_dir() else out.read_bytes()

    wanted = made("wanted", 1, 1 << 16)
    for threads, block_edges in ((1, 64), (2, 64), (4, 4), (4, 1 << 16)):
        assert made(f"out-{threads}-{block_edges}", threads, block_edges) == wanted


@pytest.mark.parametrize("given", [{"kind": "rmat", "scale": 9, "edges": 1001}, {"kind": "grid", "rows": 20, "cols": 13}])
def test_formats_agree(tmp_path, given):
    def made(format):
        out = tmp_path / format
        graphprep.generate(**given, out=str(out), format=format, weights=True, times=True, seed=3)
        return out

    lines = [line.split() for line in made("edges").read_text().splitlines()]
    head, *rows = csv.reader(made("csv").read_text().splitlines())
    assert (head, rows) == (["src", "dst", "weight", "time"], lines)
    columns = [
        np.array(column, np.float64 if place == 2 else np.int64) for place, column in enumerate(zip(*lines, strict=True))
    ]
    columns[2] = columns[2].astype(np.float32)
    table = pq.read_table(made("parquet"))
    folder = made("npy")
    for place, (name, file) in enumerate((("src", "src"), ("dst", "dst"), ("weight", "weight"), ("time", "edge_time"))):
        for found in (table[name].to_numpy(), np.load(folder / f"{file}.npy")):
            assert found.dtype == columns[place].dtype
            assert (found == columns[place]).all()


@pytest.mark.parametrize("format", ["edges", "csv", "parquet", "npy"])
def test_what_is_made_converts(tmp_path, format):
    made = graphprep.generate("rmat", str(tmp_path / "made"), scale=8, weights=True, format=format)
    found = graphprep.convert(made.out, str(tmp_path / "store"), num_nodes={"": 256}, decoder_options=WEIGHT[format])
    assert (found.num_nodes, found.num_edges) == (made.num_nodes, made.num_edges)
    assert made.output_bytes == sum(path.stat().st_size for path in (tmp_path / "made").rglob("*") if path.is_file()) or (
        made.output_bytes == (tmp_path / "made").stat().st_size
    )


WEIGHT = {"edges": {"weight_col": "2"}, "csv": {"weight_col": "weight"}, "parquet": {"weight_col": "weight"}, "npy": {}}


@pytest.mark.parametrize("format", ["edges", "csv", "parquet", "npy"])
def test_no_edges_are_fine(tmp_path, format):
    made = graphprep.generate("rmat", str(tmp_path / "made"), scale=3, edges=0, format=format)
    assert made.num_edges == {"_N:_E:_N": 0}
    if format == "parquet":
        assert pq.read_table(made.out).num_rows == 0


# ---------------------------------------------------------------------------------------------- users and items


def lines_of(format, seed, nodes, edges, features):
    """The lines of a DeepGNN format, by the definition."""
    found, ends = users_and_items(seed, nodes, edges, features)
    users = sum(not kind for kind, *_ in found)
    own = collections.defaultdict(list)
    for source, relation, dst, weight in ends:
        own[source].append((source, relation, dst + relation * users, weight))
    for n, (kind, _, weight, _, numbers) in enumerate(found):
        texts = [f"{number / 1e5:.5f}" for number in numbers]
        if format == "edgelist":
            yield f"{n},-1,{kind},{weight:g},float32,{features},{','.join(texts)}"
            yield from (f"{src},{relation},{dst},{w:g}" for src, relation, dst, w in own[n])
        elif format == "tsv":
            yield f"{n}\t{kind}\t{weight:g}\tf:{' '.join(texts)}\t" + "|".join(f"{d},{r},{w:g}" for _, r, d, w in own[n])
        else:
            yield {
                "node_id": n, "node_type": kind, "node_weight": weight, "float_feature": {"0": [x / 1e5 for x in numbers]},
                "edge": [{"src_id": s, "dst_id": d, "edge_type": r, "weight": w} for s, r, d, w in own[n]],
            }  # fmt: skip


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("size", [(30, 100, 2), (2, 5, 1), (41, 0, 3)])
@pytest.mark.parametrize("format", ["edgelist", "json", "tsv"])
def test_deepgnn_lines_are_what_the_definition_says(tmp_path, format, size):
    nodes, edges, features = size
    given = {"nodes": nodes, "edges": edges, "features": features, "seed": 5}
    found = text_of(tmp_path, "hetero", format=format, **given).splitlines()
    wanted = list(lines_of(format, **given))
    assert [json.loads(line) for line in found] == wanted if format == "json" else found == wanted


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_tables_are_what_the_definition_says(tmp_path, format):
    nodes, edges = users_and_items(9, 50, 300, 3)
    folder = tmp_path / "out"
    made = graphprep.generate("hetero", str(folder), nodes=50, edges=300, features=3, seed=9, format=format)
    assert made.num_nodes == {"user": 30, "item": 20}
    for kind, name in enumerate(("users", "items")):
        wanted = [(typed, weight, label, numbers) for own, typed, weight, label, numbers in nodes if own == kind]
        if format == "csv":
            text = "".join(f"{i},{w:g},{label},{';'.join(f'{x / 1e5:.5f}' for x in xs)}\n" for i, w, label, xs in wanted)
            assert (folder / f"{name}.csv").read_text() == "id,weight,label,feat\n" + text
        else:
            table = pq.read_table(folder / f"{name}.parquet")
            rows = list(zip(*(table[column].to_pylist() for column in ("id", "weight", "label", "feat")), strict=True))
            assert rows == [(i, w, label, [float(np.float32(x / 1e5)) for x in xs]) for i, w, label, xs in wanted]
    for relation, name in enumerate(("follows", "buys")):
        wanted = [(src, dst, weight) for src, own, dst, weight in edges if own == relation]
        assert made.num_edges[list(made.num_edges)[relation]] == len(wanted)
        if format == "csv":
            assert (folder / f"{name}.csv").read_text() == "src,dst,weight\n" + "".join(
                f"{s},{d},{w:g}\n" for s, d, w in wanted
            )
        else:
            table = pq.read_table(folder / f"{name}.parquet")
            assert list(zip(*(table[column].to_pylist() for column in ("src", "dst", "weight")), strict=True)) == wanted


@pytest.mark.usefixtures("small_blocks")
def test_chunks_are_what_the_definition_says(tmp_path):
    nodes, edges = users_and_items(2, 50, 300, 3)
    folder = tmp_path / "out"
    graphprep.generate("hetero", str(folder), nodes=50, edges=300, features=3, seed=2, format="chunked", chunks=40)
    metadata = json.loads((folder / "metadata.json").read_text())
    assert metadata["num_nodes_per_type"] == [sum(own == kind for own, *_ in nodes) for kind in range(2)]
    assert metadata["num_edges_per_type"] == [sum(own == relation for _, own, *_ in edges) for relation in range(2)]
    for kind, name in enumerate(metadata["node_type"]):
        entry = metadata["node_data"][name]["feat"]
        found = np.concatenate([np.load(folder / path) for path in entry["data"]])
        assert found.dtype == np.float32
        assert (found == np.array([[x / 1e5 for x in xs] for own, *_, xs in nodes if own == kind], np.float32)).all()
        assert [np.load(folder / path).shape[0] for path in entry["data"]] == metadata["num_nodes_per_chunk"][kind]
    for relation, name in enumerate(metadata["edge_type"]):
        wanted = [(src, dst, weight) for src, own, dst, weight in edges if own == relation]
        texts = [(folder / path).read_text() for path in metadata["edges"][name]["data"]]
        assert "".join(texts) == "".join(f"{src} {dst}\n" for src, dst, _ in wanted)
        assert [text.count("\n") for text in texts] == metadata["num_edges_per_chunk"][relation]
        weights = [pq.read_table(folder / path)["weight"].to_pylist() for path in metadata["edge_data"][name]["weight"]["data"]]
        assert list(itertools.chain(*weights)) == [weight for *_, weight in wanted]


@pytest.mark.parametrize("format", ["csv", "parquet", "edgelist", "json", "tsv", "chunked"])
def test_users_and_items_convert_and_threads_do_not_matter(tmp_path, format):
    outs = []
    for threads in (1, 2, 4):
        out = tmp_path / f"{threads}"
        made = graphprep.generate(
            "hetero", str(out), nodes=9000, edges=9000, features=2, format=format, run=RunOptions(threads=threads)
        )
        files = sorted(out.iterdir()) if out.is_dir() else [out]
        outs.append([path.read_bytes() for path in files])
        assert made.output_bytes == sum(map(len, outs[-1]))
    assert outs[0] == outs[1] == outs[2]
    source = out / "graph.yaml" if format in ("csv", "parquet") else out
    found = graphprep.convert(str(source), str(tmp_path / "store"))
    assert list(found.num_nodes.values()) == list(made.num_nodes.values())
    assert list(found.num_edges.values()) == list(made.num_edges.values())
    assert sum(made.num_edges.values()) == 9000


# ---------------------------------------------------------------------------------------------- places and mistakes


def test_stdout_takes_text_and_the_summary_goes_to_stderr(capfd):
    assert run(["generate", "grid", "-", "--rows", "1", "--cols", "2"]) == 0
    said = capfd.readouterr()
    assert said.out == "0 1\n1 0\n"
    assert said.err.startswith("-: edges, 2 nodes, 2 edges\n  wrote 8 B in ")
    assert run(["generate", "grid", "-", "--rows", "1", "--cols", "2", "-q"]) == 0
    assert capfd.readouterr() == ("0 1\n1 0\n", "")


def test_the_summary_as_json(tmp_path, capsys):
    out = str(tmp_path / "out")
    assert run(["generate", "hetero", out, "--nodes", "5", "--edges", "7", "--format", "tsv", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said.pop("elapsed_s") >= 0
    assert sum(said.pop("num_edges").values()) == 7
    size = (tmp_path / "out").stat().st_size
    assert said == {"out": out, "kind": "hetero", "format": "tsv", "num_nodes": {"user": 3, "item": 2}, "output_bytes": size}


MISTAKES = [
    (["tree", "OUT"], "there is no kind of graph named 'tree'\n  fix: use one of rmat, grid, hetero"),
    (["grid", "OUT", "--scale", "3"], "--scale is an option of rmat, not of grid\n  fix: leave it out"),
    (["grid", "OUT", "--edges", "3"], "--edges is an option of rmat and hetero, not of grid\n  fix: leave it out"),
    (["hetero", "OUT", "--no-permute"], "--no-permute is an option of rmat, not of hetero\n  fix: leave it out"),
    (
        ["rmat", "OUT", "--edges", "3", "--edge-factor", "2"],
        "--edges and --edge-factor contradict each other\n  fix: leave out one of them",
    ),
    (["rmat", "OUT", "--scale", "49"], "--scale must be between 0 and 48, found 49\n  fix: give a number in that range"),
    (["rmat", "OUT", "--edges", "-1"], "--edges must be between 0 and 1,125,899,906,842,624, found -1\n  fix: give"),
    (
        ["rmat", "OUT", "--a", "0.7", "--b", "0.4"],
        "--a, --b and --c must be 0 or more and 1 at most together, found 0.7, 0.4, ",
    ),
    (["grid", "OUT", "--torus", "--rows", "2"], "--rows must be between 3 and 2,147,483,648 with --torus, found 2\n"),
    (["hetero", "OUT", "--nodes", "1"], "--nodes must be between 2 and 4,294,967,296, found 1\n"),
    (
        ["hetero", "OUT", "--format", "npy"],
        "hetero is not written as npy\n  fix: use one of csv, parquet, edgelist, json, tsv, ",
    ),
    (["grid", "OUT", "--threads", "-1"], "--threads must be 0 or more, found -1\n"),
    (["grid", "-", "--format", "npy"], "--format npy is a folder of files, not a stream\n  fix: name a folder, or another"),
]


@pytest.mark.parametrize(("args", "error"), MISTAKES, ids=[" ".join(args) for args, _ in MISTAKES])
def test_mistakes_are_told_and_nothing_is_written(tmp_path, capsys, args, error):
    out = tmp_path / "out"
    assert run(["generate", *(str(out) if arg == "OUT" else arg for arg in args)]) == 2
    assert capsys.readouterr().err.startswith(f"error: {error}")
    assert list(tmp_path.iterdir()) == []


def test_a_nan_is_no_share(tmp_path):
    with pytest.raises(UsageError, match="must be 0 or more"):
        graphprep.generate("rmat", str(tmp_path / "out"), a=math.nan)


def test_what_exists_stays_without_overwrite(tmp_path):
    out = tmp_path / "out"
    out.write_text("mine")
    with pytest.raises(UsageError, match="the output exists"):
        graphprep.generate("grid", str(out), rows=1, cols=2)
    assert out.read_text() == "mine"
    graphprep.generate("grid", str(out), rows=1, cols=2, overwrite=True)
    assert out.read_text() == "0 1\n1 0\n"
    with pytest.raises(UsageError, match="holds files that generate does not write"):
        graphprep.generate("grid", str(out), format="npy", overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_folder_is_replaced_only_where_all_of_it_was_written_here(tmp_path):
    out = tmp_path / "out"
    graphprep.generate("hetero", str(out), nodes=9, edges=9)
    with pytest.raises(UsageError, match="the output exists"):
        graphprep.generate("grid", str(out), format="npy")
    graphprep.generate("grid", str(out), rows=1, cols=2, format="npy", overwrite=True)
    assert sorted(path.name for path in out.iterdir()) == ["dst.npy", "src.npy"]
    with pytest.raises(UsageError, match="is a folder, and a file is to be written"):
        graphprep.generate("grid", str(out), overwrite=True)
    (out / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"graphprep did not write there: notes\.txt"):
        graphprep.generate("grid", str(out), format="npy", overwrite=True)
    assert (out / "notes.txt").read_text() == "mine"


def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch):
    out = tmp_path / "out"
    out.write_text("mine")
    calls = []

    def fail(descriptor, data):
        calls.append(len(data))
        if len(calls) > 2:
            raise OSError(28, "No space left on device")
        return len(data)

    monkeypatch.setattr(os, "write", fail)
    with pytest.raises(StorageError, match="no space left"):
        graphprep.generate("rmat", str(out), scale=14, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert out.read_text() == "mine"


def test_a_reader_that_leaves_is_no_error():
    code = f"{shlex.quote(sys.executable)} -m graphprep generate rmat - -q --scale 18 | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")
    assert len(done.stdout.splitlines()) == 1


def test_a_fifo_is_written_to(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", str(fifo)], stdout=subprocess.PIPE) as reader:
        graphprep.generate("grid", str(fifo), rows=1, cols=2)
        assert reader.stdout.read() == b"0 1\n1 0\n"
    assert not fifo.is_file()


@pytest.mark.parametrize("format", ["edges", "parquet", "npy"])
def test_urls_get_the_same_bytes(tmp_path, format):
    from fsspec.implementations.memory import MemoryFileSystem

    graphprep.generate("rmat", str(tmp_path / "out"), scale=8, format=format)
    graphprep.generate("rmat", "memory://generated/out", scale=8, format=format)
    local = {path.name: path.read_bytes() for path in (tmp_path / "out", *tmp_path.glob("out/*")) if path.is_file()}
    remote = {
        name.rsplit("/", 1)[1]: bytes(file.getvalue())
        for name, file in MemoryFileSystem.store.items()
        if name.startswith("/generated/")
    }
    MemoryFileSystem.store.clear()
    assert remote == local


@pytest.mark.parametrize("format", ["edges", "npy"])
def test_urls_are_replaced_only_with_overwrite(format):
    from fsspec.implementations.memory import MemoryFileSystem

    out = f"memory://replaced-{format}/out"
    graphprep.generate("grid", out, rows=1, cols=2, format=format)
    with pytest.raises(UsageError, match="the output exists"):
        graphprep.generate("grid", out, rows=1, cols=3, format=format)
    graphprep.generate("grid", out, rows=1, cols=3, format=format, overwrite=True)
    found = {name: bytes(file.getvalue()) for name, file in MemoryFileSystem.store.items() if f"replaced-{format}" in name}
    MemoryFileSystem.store.clear()
    if format == "edges":
        assert list(found.values()) == [b"0 1\n1 0\n1 2\n2 1\n"]
    else:
        arrays = {name.rsplit("/", 1)[1]: np.load(io.BytesIO(data)).tolist() for name, data in found.items()}
        assert arrays == {"src.npy": [0, 1, 1, 2], "dst.npy": [1, 0, 2, 1]}
