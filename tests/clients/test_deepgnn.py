"""Our files against those of DeepGNN's own converter, byte for byte, and against what its engine answers."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import json
import random
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clients.checksums import Rows, checksum, id_map, store_edges, store_nodes
from clients.deepgnn_graphs import edgelist, json_lines, random_graph, tsv
from clients.dgl_environment import Environment
from clients.graphs import GRAPHS, Edges, Graph, make_store

import graphprep
from graphprep.kernels.cpu.ids.alias import fill_alias, scale_weights
from graphprep.model.schema import edge_type_text

pytestmark = [pytest.mark.client("deepgnn-ge"), pytest.mark.xdist_group("deepgnn-ge")]

CLIENT = Path(__file__).with_name("deepgnn_client.py")
DEEPGNN = Environment("deepgnn", "GRAPHPREP_DEEPGNN_PYTHON", "make clients", in_ci=True)
_MODULES = ("deepgnn", "opencensus", "tenacity")  # installed without what it needs, it serves only its decoders


def find_python() -> str:
    """Return a Python that has deepgnn-ge with all that it imports: one of its own, or this one."""
    if not DEEPGNN.is_there() and all(map(importlib.util.find_spec, _MODULES)):
        return sys.executable
    return DEEPGNN.find_python()


def run_client(*jobs: list[Any]) -> list[Any]:
    done = subprocess.run(
        [find_python(), CLIENT], input=json.dumps(jobs), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


@dataclass(frozen=True)
class Case:
    """An input, and how both sides convert it."""

    name: str
    format: str
    text: str
    convert: dict[str, Any] = field(default_factory=dict)
    export: dict[str, Any] = field(default_factory=dict)
    theirs: dict[str, Any] = field(default_factory=dict)


def _cases() -> list[Case]:
    found = []
    for seed in range(4):
        dyadic = seed < 2
        found += [
            Case(f"edgelist {seed}", "edgelist", edgelist(random_graph(seed, "dst", dyadic=dyadic))),
            Case(f"json {seed}", "json", json_lines(random_graph(seed, "dstmh", dyadic=dyadic))),
            Case(f"tsv {seed}", "tsv", tsv(random_graph(seed, "dt", dyadic=dyadic))),
        ]
    graph = random_graph(7, "dst", nodes=60)
    for how, parts in (("modulo", 2), ("hash", 3)):
        split = {"partitions": parts, "partition_by": how}
        found += [
            Case(f"edgelist {how}", "edgelist", edgelist(graph), split, {}, {"parts": parts, "how": how}),
            Case(f"json {how}", "json", json_lines(graph), split, {}, {"parts": parts, "how": how}),
        ]
    found.append(
        Case(
            "re-partitioned",
            "edgelist",
            edgelist(graph),
            {},
            {"partitions": 2, "partition_by": "modulo"},
            {"parts": 2, "how": "modulo"},
        )
    )
    dated = random_graph(8, "dt", dated=True)
    options = {"temporal": True}
    found += [
        Case("edgelist dated", "edgelist", edgelist(dated, dated=True), {"decoder_options": options}, {"target_options": {"watermark": 99}, "drop_unsupported": True}, {"watermark": 99, "is_temporal": True}),
        Case("json dated", "json", json_lines(dated, dated=True), {}, {"target_options": {"watermark": 0}, "drop_unsupported": True}, {"watermark": 0}),
        Case("undated with watermark", "tsv", tsv(random_graph(9, "d")), {}, {"target_options": {"watermark": 5}}, {"watermark": 5}),
    ]  # fmt: skip
    missing = random_graph(10, "dst", missing=True, nodes=50)
    assert any(node.is_missing and node.edges for node in missing)
    assert any(node.is_missing and not node.edges for node in missing)
    create = {"on_missing_node": "create", "missing_node_type": "0"}
    found += [
        Case("created", "edgelist", edgelist(missing), create),
        Case("created in parts", "edgelist", edgelist(missing), {**create, "partitions": 3, "partition_by": "modulo"}, {}, {"parts": 3, "how": "modulo"}),
        Case("no samplers", "json", json_lines(graph), {}, {"target_options": {"skip_node_sampler": True, "skip_edge_sampler": True}}, {"skip_node_sampler": True, "skip_edge_sampler": True}),
        Case("no node samplers", "tsv", tsv(random_graph(11, "dt")), {}, {"target_options": {"skip_node_sampler": "true"}}, {"skip_node_sampler": True}),
        Case("nodes alone", "edgelist", "5,-1,0,1.5\n7,-1,2,0.5\n"),
        Case("a loop", "tsv", "9\t0\t1\t\t9,0,2,\n"),
        Case("weights of zero", "edgelist", "1,-1,0,0\n1,0,1,0\n1,0,2,0\n2,-1,0,0\n"),
        Case("IDs beyond int64", "edgelist", "5,-1,1,1\n5,0,9223372036854775809,1\n9223372036854775809,-1,0,1\n18446744073709551615,-1,1,1\n18446744073709551615,0,5,1\n"),
        Case("one type far up", "edgelist", "1,-1,40,1\n1,30,1,2\n"),
        Case("wide", "edgelist", edgelist(random_graph(12, "d", nodes=150))),
    ]  # fmt: skip
    return found


CASES = {case.name: case for case in _cases()}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Convert all inputs with DeepGNN's converter, in one process."""
    folder = tmp_path_factory.mktemp("deepgnn")
    jobs = []
    for case in CASES.values():
        source = folder / f"{case.name}.txt"
        source.write_text(case.text, encoding="utf-8", newline="")
        jobs.append(["convert", case.format, str(source), str(folder / case.name), case.theirs])
    run_client(*jobs)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_every_file_is_that_of_their_converter(name, theirs, tmp_path):
    case = CASES[name]
    graphprep.convert(str(theirs / f"{name}.txt"), str(tmp_path / "store"), format=case.format, **case.convert)
    graphprep.export(str(tmp_path / "store"), str(tmp_path / "out"), "deepgnn", **case.export)
    _check_files(tmp_path / "out", theirs / name)


def _check_files(ours: Path, theirs: Path) -> None:
    """Compare byte by byte; numbers in meta.json may have other spellings."""
    expected = {path.name: path.read_bytes() for path in theirs.iterdir()}
    found = {path.name: path.read_bytes() for path in ours.iterdir()}
    assert set(found) - {"export.json", "types.json"} == set(expected)
    different = [file for file, data in expected.items() if file != "meta.json" and found[file] != data]
    assert not different
    meta, their_meta = json.loads(found["meta.json"]), json.loads(expected["meta.json"])
    assert list(meta) == list(their_meta)
    partitions, their_partitions = meta.pop("partitions"), their_meta.pop("partitions")
    assert meta == their_meta
    assert list(partitions) == list(their_partitions)
    for part, sums in partitions.items():
        for key, values in sums.items():
            assert values == pytest.approx(their_partitions[part][key], rel=1e-6, nan_ok=True)


def test_times_of_an_edge_list(tmp_path):
    """The column that --time-col names is when edges were created: in our files, and by our lines in those of their converter."""
    rng = np.random.default_rng(1)
    rows = [f"{src},{dst},{weight / 8},{time}\n" for src, dst, weight, time in rng.integers(1, 30, (200, 4)).tolist()]
    (tmp_path / "edges.csv").write_text("src,dst,weight,time\n" + "".join(rows))
    graphprep.convert(str(tmp_path / "edges.csv"), str(tmp_path / "store"), format="edges", decoder_options={"weight_col": "weight", "time_col": "time"})  # fmt: skip
    jobs = []
    for name, file, order, given in (
        ("edgelist", "graph.csv", "destination", {"is_temporal": True}),
        ("json", "graph.json", "auto", {}),
    ):
        graphprep.export(str(tmp_path / "store"), str(tmp_path / f"lines-{name}"), f"deepgnn-{name}")
        options = {"watermark": 40, "edge_order": order}
        graphprep.export(str(tmp_path / "store"), str(tmp_path / f"ours-{name}"), "deepgnn", target_options=options)
        source = str(tmp_path / f"lines-{name}" / file)
        jobs.append(["convert", name, source, str(tmp_path / f"theirs-{name}"), {"watermark": 40, **given}])
    run_client(*jobs)
    for name in ("edgelist", "json"):
        times = np.frombuffer((tmp_path / f"theirs-{name}" / "edge_0_0.timestamp").read_bytes(), "<i8")[1:].reshape(-1, 2)
        assert sorted(times[:, 0].tolist()) == sorted(int(row.split(",")[3]) for row in rows)
        assert (times[:, 1] == -1).all()
        _check_files(tmp_path / f"ours-{name}", tmp_path / f"theirs-{name}")


def test_tables_of_a_million_elements(tmp_path):
    """Where rounding tells one order of adding from another."""
    paths = []
    for size in (50_000, 1_000_000):
        paths.append(str(tmp_path / str(size)))
        np.save(f"{paths[-1]}.npy", np.random.default_rng(size).pareto(1.5, size).astype(np.float32))
    run_client(*(["vose", path] for path in paths))
    for path in paths:
        wanted, scaled = np.load(f"{path}.npz"), np.load(f"{path}.npy")
        aliases, stack = np.empty(scaled.size, np.int32), np.empty(scaled.size, np.int32)
        scale_weights(scaled)
        fill_alias(scaled, aliases, stack)
        assert (scaled.view(np.uint32) == wanted["prob"].view(np.uint32)).all()
        assert (aliases == wanted["alias"]).all()


# ---------------------------------------------------------------------------------------------------- lines


def test_their_decoders_read_our_lines_as_theirs(tmp_path):
    """What the decoders make of what we wrote is what they make of the input that the store came from."""
    jobs = []
    names = {"edgelist": "graph.csv", "json": "graph.json", "tsv": "graph.tsv"}
    for name in ("edgelist 3", "json 2", "tsv 3", "json dated", "created", "one type far up"):
        case = CASES[name]
        folder = tmp_path / case.name
        folder.mkdir()
        (folder / "input").write_text(case.text, encoding="utf-8", newline="")
        graphprep.convert(str(folder / "input"), str(folder / "store"), format=case.format, **case.convert)
        graphprep.export(str(folder / "store"), str(folder / "out"), f"deepgnn-{case.format}")
        files = (folder / "input", folder / "out" / names[case.format])
        jobs += [["decode", case.format, str(file)] for file in files]
    answers = run_client(*jobs)
    for job, wanted, found in zip(jobs[::2], answers[::2], answers[1::2], strict=True):
        assert wanted, job
        assert found == wanted, job


# ---------------------------------------------------------------------------------------------------- the engine


def _shuffled(seed: int, dated: bool) -> list[Any]:
    """Make nodes in any order, each with its edges by type, else in any order, of which no two are parallel."""
    graph = random_graph(seed, "dst", nodes=50, dated=dated)
    rng = random.Random(seed)
    for node in graph:
        node.edges = list({(edge.type, edge.dst): edge for edge in node.edges}.values())
        if not dated:
            rng.shuffle(node.edges)
            node.edges.sort(key=lambda edge: edge.type)
    rng.shuffle(graph)
    return graph


@pytest.mark.parametrize("dated", [False, True])
def test_the_engine_says_the_same_of_any_order(dated, tmp_path):
    """Theirs of one partition, ours of one and of several, of unsorted input."""
    jobs, asked = [], []
    for seed in (20, 23):
        graph = _shuffled(seed, dated)
        nodes = sorted(node.id for node in graph)
        text, folder = edgelist(graph, dated=dated), tmp_path / str(seed)
        folder.mkdir()
        (folder / "input").write_text(text, encoding="utf-8", newline="")
        given = {"watermark": 60, "is_temporal": True} if dated else {}
        jobs.append(["convert", "edgelist", str(folder / "input"), str(folder / "theirs"), given])
        asked.append(["ask", str(folder / "theirs"), 1, nodes, 30 if dated else None])
        decoder = {"decoder_options": {"temporal": True}} if dated else {}
        target = {"target_options": {"watermark": 60}, "drop_unsupported": True} if dated else {}
        graphprep.convert(str(folder / "input"), str(folder / "store"), format="edgelist", **decoder)
        for parts, how in ((1, "range"), (3, "random")):
            graphprep.export(str(folder / "store"), str(folder / how), "deepgnn", partitions=parts, partition_by=how, **target)
            asked.append(["ask", str(folder / how), parts, nodes, 30 if dated else None])
    answers = run_client(*jobs, *asked)[len(jobs) :]
    for wanted, *others in zip(answers[::3], answers[1::3], answers[2::3], strict=True):
        assert sum(map(len, wanted["neighbors"])) > 50
        assert len(wanted["edges drawn"]) > 100
        for found in others:
            for key in wanted:
                assert found[key] == wanted[key], key


@dataclass(frozen=True)
class Asked:
    """A graph's store, what was exported of it, and what the engine says: now, and for a graph with times earlier."""

    graph: Graph
    store: Path
    out: Path
    now: dict[str, Any]
    earlier: dict[str, Any] | None

    @functools.cached_property
    def numbers(self) -> dict[str, Any]:
        """Return types.json."""
        return json.loads((self.out / "types.json").read_text())

    @functools.cached_property
    def nodes(self) -> dict[int, tuple[str, Any]]:
        """Return the type and the raw ID of every ID of the engine, in the order in which it is asked of them."""
        found = {}
        for name, entry in self.numbers["node_types"].items():
            raws = store_nodes(self.store, name).ids.tolist()
            if "first_id" in entry:
                raws = id_map(self.out, self.store, name).tolist()
            ids = range(entry["first_id"], entry["first_id"] + len(raws)) if "first_id" in entry else raws
            found.update(zip(ids, ((name, raw) for raw in raws), strict=True))
        return found

    def edges(self, edge_type: tuple[str, str, str], answer: dict[str, Any]) -> list[Any]:
        """Return (source, destination, weight, slots) of the edges of a type, by raw IDs."""
        number = self.numbers["edge_types"][edge_type_text(edge_type)]["number"]
        found = []
        for (name, src), edges in zip(self.nodes.values(), answer["neighbors"], strict=True):
            for dst, kind, weight, slots in edges:
                if kind == number:
                    assert (name, self.nodes[dst][0]) == edge_type[::2]
                    found.append((src, self.nodes[dst][1], weight, slots))
        return found


_NOW, _EARLIER = 40, 20  # of times from 0 to 39


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Asked]:
    """Ask the engine of all kinds of graphs, in one process."""
    graphs, jobs = {}, []
    for name, make in GRAPHS.items():
        folder = tmp_path_factory.mktemp(name)
        graph = _with_dyadic_weights(make())
        store = make_store(graph, folder, **{"partitions": 3, **graph.options})
        is_dated = any(edges.time for edges in graph.edges.values())
        graphprep.export(str(store), str(folder / "out"), "deepgnn", watermark=_NOW if is_dated else None)
        graphs[name] = Asked(graph, store, folder / "out", {}, None)
        ask = ["ask", str(folder / "out"), graphprep.load(str(store)).metadata.num_parts, list(graphs[name].nodes)]
        jobs += [[*ask, _NOW if is_dated else None], *([[*ask, _EARLIER]] if is_dated else [])]
    answers = iter(run_client(*jobs))
    for name, one in graphs.items():
        is_dated = any(edges.time for edges in one.graph.edges.values())
        graphs[name] = dataclasses.replace(one, now=next(answers), earlier=next(answers) if is_dated else None)
    return graphs


def _with_dyadic_weights(graph: Graph) -> Graph:
    """Let weights be such that sums of them are exact: the engine answers with differences of sums in float32."""

    def dyadic(edges: Edges) -> Edges:
        if edges.weight is None:
            return edges
        weights = np.round(edges.columns[edges.weight] * 16 + 1).astype(np.float32) / 16
        return dataclasses.replace(edges, columns={**edges.columns, edges.weight: weights})

    return dataclasses.replace(graph, edges={name: dyadic(edges) for name, edges in graph.edges.items()})


def _ids(raws: list[Any]) -> np.ndarray:
    return np.array(raws, object if raws and isinstance(raws[0], str) else np.int64)


def _slot(slots: list[Any], number: int, like: np.ndarray) -> np.ndarray:
    """Return what a slot holds, as the rows of a column; zeros where it is empty."""
    data = bytes.fromhex(slots[number][0])
    return np.frombuffer(data or bytes(like[:1].nbytes), like.dtype).reshape(like.shape[1:])


@pytest.mark.parametrize("name", GRAPHS)
def test_the_engine_knows_the_nodes_of_every_graph(name, asked):
    """Types and all columns: their checksum is that of the store; a value that is missing is an empty slot."""
    one = asked[name]
    rows = list(zip(one.nodes.values(), one.now["types"], one.now["features"], strict=True))
    for kind, nodes in one.graph.nodes.items():
        entry, stored = one.numbers["node_types"][kind], store_nodes(one.store, kind)
        own = [(raw, number, slots) for (its, raw), number, slots in rows if its == kind]
        assert {number for _, number, _ in own} <= {entry["number"]}
        columns = {}
        for column, slot in entry["slots"].items():
            like = stored.columns[column]
            columns[column] = np.array([_slot(slots, slot, like) for *_, slots in own], like.dtype).reshape(like.shape)
            missing = sum(not slots[slot][0] for *_, slots in own)
            assert missing == np.ma.count_masked(nodes.columns.get(column, like)), column
        assert set(columns) >= set(nodes.columns)
        assert checksum(kind, Rows(_ids([raw for raw, *_ in own]), columns=columns)) == checksum(kind, stored)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_engine_knows_the_edges_of_every_graph(name, asked):
    """Neighbours, relations and weights, and columns of edges that are not parallel: their checksums are those of the store."""
    one = asked[name]
    num_edges = 0
    for edge_type, edges in one.graph.edges.items():
        found, stored = one.edges(edge_type, one.now), store_edges(one.store, edge_type)
        assert len(found) == len(edges.src)
        num_edges += len(found)
        weights = np.array([weight for _, _, weight, _ in found], np.float32)
        names = ["weight"] if edges.weight else []
        assert edges.weight or (weights == 1).all()
        own = Rows(_ids([src for src, *_ in found]), _ids([dst for _, dst, *_ in found]), None, {"weight": weights})
        assert checksum(edge_type, own.only(names)) == checksum(edge_type, stored.only(names, edge_ids=False))
        slots = one.numbers["edge_types"][edge_type_text(edge_type)]["slots"]
        for column, slot in slots.items():
            like = stored.columns[column]
            own.columns[column] = np.array([_slot(one, slot, like) for *_, one in found], like.dtype).reshape(like.shape)
            assert _cells(own, column) <= _cells(stored, column)  # of parallel edges the engine finds one
        assert set(slots) == set(edges.columns) - {edges.weight, edges.time}
        names += slots
        assert checksum(edge_type, _single(own).only(names)) == checksum(edge_type, _single(stored).only(names, edge_ids=False))
    assert num_edges == sum(one.now["counts"])


def _cells(rows: Rows, column: str) -> set[tuple[Any, Any, bytes]]:
    cells = (one.tobytes() for one in rows.columns[column])
    return set(zip(rows.ids.tolist(), rows.dst.tolist(), cells, strict=True))


def _single(rows: Rows) -> Rows:
    """Return the edges that have no parallel one: the engine looks columns up by both ends and the type."""
    ends = list(zip(rows.ids.tolist(), rows.dst.tolist(), strict=True))
    counts = Counter(ends)
    kept = np.array([counts[one] == 1 for one in ends], bool)
    return Rows(rows.ids[kept], rows.dst[kept], None, {name: values[kept] for name, values in rows.columns.items()})


def test_the_engine_knows_when_edges_were_created(asked):
    one = asked["temporal"]
    ((edge_type, _),) = one.graph.edges.items()
    found, stored = one.edges(edge_type, one.earlier), store_edges(one.store, edge_type)
    kept = stored.columns["time"] <= _EARLIER
    assert 0 < len(found) < kept.size
    own = Rows(
        _ids([src for src, *_ in found]),
        _ids([dst for _, dst, *_ in found]),
        None,
        {"weight": np.array([w for *_, w, _ in found], np.float32)},
    )
    wanted = Rows(stored.ids[kept], stored.dst[kept], None, {"weight": stored.columns["weight"][kept]})
    assert checksum(edge_type, own) == checksum(edge_type, wanted)
