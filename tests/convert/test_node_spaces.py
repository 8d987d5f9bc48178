"""Typed IDs of types with and without records, in ID spaces of their own and shared, against dictionaries."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.convert.decoded import keys as keys_stage
from graphprep.convert.pipeline import convert
from graphprep.kernels.cpu.text import texts as text_kernels
from graphprep.model.errors import DataError
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.protocols import DeclaredNodes, Sources, Span
from graphprep.model.rows import ColumnChunk, ColumnKey, RawEdges, RawNodes, RawRows, RawTexts, Relation
from graphprep.model.run_options import RunOptions


@dataclass(frozen=True)
class LinesDecoder:
    """Decodes lines of JSON: ``["node", type, id]``, ``["more", type, id, x]`` or ``["edge", relation number, src, dst]``."""

    setup: str = "{}"
    integers: str = ""

    name: ClassVar[str] = "lines"

    def plan(self, storage, urls: Sequence[str]) -> Sources:
        value = json.loads(self.setup)
        found = tuple(filter(None, self.integers.split(",")))
        kinds = value["kinds"]
        return Sources(
            tuple(Span(url) for url in urls),
            nodes="tables",
            node_types=tuple(DeclaredNodes(**node) for node in value["nodes"]),
            edge_types=self._relations(value),
            signed_ids=tuple(space for space, kind in kinds.items() if kind == "int" or space in found),
            auto_ids=tuple(space for space, kind in kinds.items() if kind == "auto" and space not in found),
            default_space=value.get("default"),
        )

    def _relations(self, value) -> tuple[Relation, ...]:
        return tuple(Relation(**relation) for relation in value["relations"])

    def settle_ids(self, spaces):
        return LinesDecoder(self.setup, ",".join([self.integers, *spaces]))

    def widen(self, columns):
        return self

    def _ids(self, value, space, ids):
        kind = value["kinds"][space]
        if kind == "int" or space in self.integers.split(","):
            return np.array([int(one) for one in ids], np.int64).view(np.uint64)
        rows = [one.encode() for one in ids]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        return RawTexts(offsets, np.frombuffer(b"".join(rows), np.uint8))

    def decode(self, block, places=False):
        value = json.loads(self.setup)
        space_of = {node["name"]: node.get("space") or node["name"] for node in value["nodes"]}
        starts, at = [], 0
        for line in block.data.splitlines(keepends=True):
            starts.append(at)
            at += len(line)
        lines = [json.loads(line) for line in block.data.splitlines()]
        kind = lines[0][0] if lines else "edge"
        if kind != "edge":
            names = tuple(dict.fromkeys(line[1] for line in lines))
            spaces = {space_of.get(name, value.get("default") or name) for name in names}
            assert len(spaces) == 1
            ids = self._ids(value, spaces.pop(), [line[2] for line in lines])
            columns = ()
            if kind == "more":
                rows, x = np.arange(len(lines)), np.array([line[3] for line in lines], np.int64)
                columns = (ColumnChunk(ColumnKey("x", "numbers", "int64"), rows, np.ones(x.size, np.int64), x, ()),)
            types = np.array([names.index(line[1]) for line in lines], np.int32)
            at = np.array(starts, np.int64) if places else None
            nodes = RawNodes(ids, types, names, columns, at=at, declares=kind == "node")
            return RawRows(nodes=nodes, num_records=len(lines))
        relations = self._relations(value)
        used = sorted({line[1] for line in lines})
        src, dst = (
            self._ids(value, self._end(relations[used[0]], side, space_of, value), [line[2 + side] for line in lines])
            for side in range(2)
        )
        codes = np.array([used.index(line[1]) for line in lines], np.int32)
        edges = RawEdges(
            src,
            dst,
            codes,
            tuple(relations[code] for code in used),
            at_src=np.array(starts, np.int64) if places else None,
            at_dst=np.array(starts, np.int64) if places else None,
        )
        return RawRows(edges=edges, num_records=len(lines))

    def _end(self, relation, side, space_of, value):
        name, space = (relation.dst_type, relation.dst_space) if side else (relation.src_type, relation.src_space)
        return space_of[name] if name else space or value["default"]


def run(folder: Path, setup, files, **options):
    """Convert files of lines (each of one kind); return what the store says, as plain lists."""
    urls = []
    for number, lines in enumerate(files):
        path = folder / f"{number}.txt"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        urls.append(str(path))
    out = folder / "out"
    decoder = f"{__name__}:LinesDecoder"
    options = ConvertOptions(decoder=decoder, decoder_options={"setup": json.dumps(setup)}, overwrite=True, **options)
    summary = convert(urls, str(out), options)
    return summary, read(out)


def read(out: Path):
    """Read nodes (raw IDs in typed order) and edges (pairs of raw IDs in the order of edge IDs) by type."""
    metadata = json.loads((out / "metadata.json").read_text())
    parts = [out / part["path"] for part in metadata["parts"]]
    nodes, columns = {}, {}
    for name, counts in zip(metadata["node_type"], metadata["num_nodes_per_chunk"], strict=True):
        kind = metadata["node_schema"][name]["raw_ids"]
        raw = []
        for part, count in zip(parts, counts, strict=True):
            folder = part / "nodes" / name
            if kind == "identity":
                raw += range(len(raw), len(raw) + count)
            elif kind == "string":
                offsets, values = np.load(folder / "raw_ids.offsets.npy"), np.load(folder / "raw_ids.values.npy")
                raw += [bytes(values[a:b]).decode() for a, b in itertools.pairwise(offsets.tolist())]
            else:
                assert np.load(folder / "raw_ids.npy").dtype == kind
                raw += np.load(folder / "raw_ids.npy").tolist()
            if metadata["node_schema"][name]["columns"]:
                columns.setdefault(name, []).append({p.name: np.load(p).tolist() for p in (folder / "data").iterdir()})
        nodes[name] = raw
    edges = {}
    for name, schema in metadata["edge_schema"].items():
        src, _, dst = name.split(":")
        found = {}
        start = 0
        for part in parts:
            folder = part / "edges" / name.replace(":", "__") / "csc"
            indptr, indices = np.load(folder / "indptr.npy"), np.load(folder / "indices.npy")
            ids = np.load(folder / "edge_ids.npy")
            for row, (low, high) in enumerate(itertools.pairwise(indptr.tolist())):
                for at in range(low, high):
                    found[int(ids[at])] = (nodes[src][int(indices[at])], nodes[dst][start + row])
            start += indptr.size - 1
        assert sorted(found) == list(range(len(found)))
        edges[name] = [found[number] for number in sorted(found)], schema["checksum"]
    return nodes, edges, columns


def _mix(x):
    z = (x + 0x9E3779B97F4A7C15) % 2**64
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) % 2**64
    return z ^ z >> 31


def _h(raw):
    if isinstance(raw, int):
        return _mix(raw % 2**64)
    data = raw.encode()
    value = _mix(len(data))
    for at in range(0, len(data), 8):
        value = _mix(value ^ int.from_bytes(data[at : at + 8], "little"))
    return value


def checksum(pairs):
    return f"{sum(_mix(_h(src) ^ _mix(_h(dst))) for src, dst in pairs) % 2**64:016x}"


def part_of(raw, method, num_parts, rank, count):
    if method == "hash":
        return _h(raw) % num_parts
    if method == "modulo":
        return raw % num_parts
    size, longer = divmod(count, num_parts)
    return next(p for p in range(num_parts) if rank < (p + 1) * size + min(p + 1, longer))


def order(raws, method, num_parts):
    ranked = sorted(raws, key=lambda raw: raw if isinstance(raw, int) else raw.encode())
    parts = [part_of(raw, method, num_parts, rank, len(ranked)) for rank, raw in enumerate(ranked)]
    return [raw for _, raw in sorted(zip(parts, ranked, strict=True), key=lambda pair: pair[0])]


_NAMES = st.sampled_from(["", "a", "b", "ab", "ß", "zebra", "a long name that shares its beginning/1", "-1", "7", "07", "\0"])
_NUMBERS = st.one_of(st.integers(-5, 5), st.integers(-(2**63), 2**63 - 1)).map(str)
_DENSE = st.integers(0, 6).map(str)


@settings(deadline=None, max_examples=80)
@given(
    kinds=st.tuples(*[st.sampled_from(["string", "int", "auto"])] * 2),
    data=st.data(),
    method=st.sampled_from(["range", "hash", "random"]),
    num_parts=st.integers(1, 3),
    on_missing=st.sampled_from(["create", "drop"]),
    starved=st.booleans(),
)
def test_spaces_of_their_own(kinds, data, method, num_parts, on_missing, starved):
    ids = [
        st.sampled_from([_NAMES, _DENSE, _NUMBERS]) if kind != "int" else st.sampled_from([_NUMBERS, _DENSE]) for kind in kinds
    ]
    of_user, of_item = (data.draw(one) for one in ids)
    users = data.draw(st.lists(of_user, unique=True, max_size=8))
    if kinds[0] != "string":
        users = list({str(int(one)) if one.lstrip("-").isdigit() and kinds[0] == "int" else one: None for one in users})
    edges = data.draw(st.lists(st.tuples(of_user, of_item), min_size=1, max_size=12))
    setup = {
        "nodes": [{"name": "user", "has_records": True}, {"name": "item"}],
        "relations": [{"name": "buys", "src_type": "user", "dst_type": "item"}],
        "kinds": {"user": kinds[0], "item": kinds[1]},
    }

    def is_int(text):
        return text.lstrip("-").isdigit() and text.isascii() and -(2**63) <= int(text) < 2**63

    def settled(kind, texts):
        if kind == "int" or (kind == "auto" and texts and all(map(is_int, texts))):
            return int
        return str

    user_raw = settled(kinds[0], users + [src for src, _ in edges])
    item_raw = settled(kinds[1], [dst for _, dst in edges])
    declared = [user_raw(one) for one in users]
    if len(set(declared)) != len(declared):
        return
    pairs = [(user_raw(src), item_raw(dst)) for src, dst in edges]
    if on_missing == "drop":
        kept = [pair for pair in pairs if pair[0] in declared]
        all_users = set(declared)
    else:
        kept = pairs
        all_users = {*declared, *(src for src, _ in pairs)}
    items = {dst for _, dst in pairs}
    files = [[["node", "user", one] for one in users], [["edge", 0, *edge] for edge in edges]]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if starved:
            starve(patch)
        options = {"partitions": num_parts, "partition_by": method, "on_missing_node": on_missing, "block_bytes": 64}
        summary, (nodes, found, _) = run(Path(folder), setup, files, **options)
    if method == "random":
        assert sorted(nodes["user"], key=str) == sorted(all_users, key=str)
        assert sorted(nodes["item"], key=str) == sorted(items, key=str)
    else:
        assert nodes == {"user": order(all_users, method, num_parts), "item": order(items, method, num_parts)}
    assert found == {"user:buys:item": (kept, checksum(kept))}
    assert summary.num_created_nodes == (len(all_users) - len(set(declared)) if on_missing == "create" else 0)


def starve(patch):
    """Let everything be sorted and joined out of core."""
    from graphprep import context

    original = context.plan_memory

    def plan(*given, **more):
        return original(*given, **more)._replace(pool_bytes=1, cap_bytes=1, bucket_bytes=64)

    patch.setattr(context, "plan_memory", plan)


@settings(deadline=None, max_examples=40)
@given(
    rows=st.lists(st.tuples(st.sampled_from(["user", "item"]), _NAMES), unique_by=lambda row: row[1], min_size=1, max_size=8),
    data=st.data(),
    kind=st.sampled_from(["string", "auto"]),
    starved=st.booleans(),
)
def test_a_space_for_all(rows, data, kind, starved):
    ids = [one for _, one in rows]
    type_of = {one: name for name, one in rows}
    edges = data.draw(st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(ids)), max_size=10))
    setup = {
        "nodes": [{"name": name, "has_records": True, "space": "all"} for name in ("user", "item")],
        "relations": [],
        "kinds": {"all": kind},
        "default": "all",
    }
    setup["relations"] = [{"name": "to", "src_space": "all"}]
    raw = int if kind == "auto" and all(one.lstrip("-").isdigit() for one in ids) else str
    if len({raw(one) for one in ids}) < len(ids):
        return
    files = [[["node", name, one] for name, one in rows], [["edge", 0, *edge] for edge in edges]]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if starved:
            starve(patch)
        _, (nodes, found, _) = run(Path(folder), setup, files)
    for name in ("user", "item"):
        own = [raw(one) for one in ids if type_of[one] == name]
        assert nodes[name] == order(own, "range", 1)
    wanted = {}
    for src, dst in edges:
        wanted.setdefault(f"{type_of[src]}:to:{type_of[dst]}", []).append((raw(src), raw(dst)))
    assert found == {name: (pairs, checksum(pairs)) for name, pairs in wanted.items()}


SETUP = {
    "nodes": [{"name": "user", "has_records": True}, {"name": "item"}],
    "relations": [{"name": "buys", "src_type": "user", "dst_type": "item"}],
    "kinds": {"user": "string", "item": "string"},
}


@pytest.mark.parametrize("seeds", [1, 2])
@pytest.mark.parametrize("at_index", [False, True])
def test_two_names_with_one_key_start_again(tmp_path, monkeypatch, seeds, at_index):
    """Keys of the first seeds collide: within a batch, or only between batches."""

    def colliding(offsets, values, seed=None):
        keys = text_kernels.hash_texts(offsets, values, seed or 0)
        return keys if seed is None or seed >= seeds else keys % np.uint64(3 if at_index else 2)

    monkeypatch.setattr(keys_stage, "hash_texts", colliding)
    users = [f"u{number}" for number in range(20)]
    edges = [["edge", 0, user, f"i{number % 7}"] for number, user in enumerate(users)]
    options = {"block_bytes": 24} if at_index else {}
    _, (nodes, found, _) = run(tmp_path, SETUP, [[["node", "user", user] for user in users], edges], **options)
    pairs = [(src, dst) for _, _, src, dst in edges]
    assert nodes == {"user": sorted(users), "item": sorted({dst for _, dst in pairs})}
    assert found == {"user:buys:item": (pairs, checksum(pairs))}


def test_faults_are_told(tmp_path):
    files = [[["node", "user", "ann"], ["node", "user", "bob"]], [["edge", 0, "ann", "x"], ["edge", 0, "eve", "x"]]]
    with pytest.raises(DataError) as caught:
        run(tmp_path, SETUP, files)
    assert str(caught.value) == (
        f"{tmp_path}/1.txt:2:1: the edge's source 'eve' is not a node of type 'user'\n"
        "  fix: add its record, or use --on-missing-node create or drop"
    )
    files[0].append(["node", "user", "ann"])
    with pytest.raises(DataError) as caught:
        run(tmp_path, SETUP, files)
    assert str(caught.value) == (
        f"{tmp_path}/0.txt:3:1: node 'ann' is declared twice, first at {tmp_path}/0.txt:1:1\n"
        "  fix: keep one record for each node, or use --on-error skip to keep the first"
    )


def test_an_end_of_another_type_is_told(tmp_path):
    setup = {
        "nodes": [{"name": name, "has_records": True, "space": "all"} for name in ("user", "item")],
        "relations": [{"name": "buys", "src_type": "user", "dst_type": "item"}],
        "kinds": {"all": "string"},
    }
    files = [[["node", "user", "ann"], ["node", "item", "tea"]], [["edge", 0, "ann", "tea"], ["edge", 0, "ann", "ann"]]]
    with pytest.raises(DataError) as caught:
        run(tmp_path, setup, files)
    assert str(caught.value) == (
        f"{tmp_path}/1.txt:2:1: the edge's destination 'ann' is a node of type 'user', not 'item'\n"
        "  fix: correct the edge, or its type"
    )


def test_equal_ids_in_two_spaces_are_two_nodes(tmp_path):
    setup = {**SETUP, "kinds": {"user": "int", "item": "int"}}
    files = [[["node", "user", "5"], ["node", "user", "-6"]], [["edge", 0, "5", "5"], ["edge", 0, "-6", "5"]]]
    _, (nodes, found, _) = run(tmp_path, setup, files)
    assert nodes == {"user": [-6, 5], "item": [5]}
    assert found["user:buys:item"] == ([(5, 5), (-6, 5)], checksum([(5, 5), (-6, 5)]))


def test_numbers_and_strings_in_one_space_are_told(tmp_path):
    class Mixed(LinesDecoder):
        def _ids(self, value, space, ids):
            if ids[0].isdigit():
                return np.array(ids, np.uint64)
            return super()._ids(value, space, ids)

    globals()["Mixed"] = Mixed
    path, other = tmp_path / "a", tmp_path / "b"
    path.write_text('["node", "user", "ann"]\n')
    other.write_text('["edge", 0, "5", "x"]\n')
    options = ConvertOptions(decoder=f"{__name__}:Mixed", decoder_options={"setup": json.dumps(SETUP)})
    with pytest.raises(DataError) as caught:
        convert([str(path), str(other)], str(tmp_path / "out"), options)
    assert str(caught.value) == (
        f"{other}: raw IDs of node type 'user' are numbers here, but strings in {path}\n"
        "  fix: read them all as strings with --id-type string, or make them alike in the files"
    )


@pytest.mark.parametrize("kind", ["string", "int"])
def test_rows_that_bring_columns_alone(tmp_path, kind):
    setup = {**SETUP, "kinds": {"user": kind, "item": kind}}
    files = [
        [["node", "user", "3"], ["node", "user", "1"]],
        [["more", "user", "1", 10]],
        [["more", "item", "8", 80], ["more", "item", "9", 90]],
        [["edge", 0, "1", "9"]],
    ]
    _, (nodes, _, columns) = run(tmp_path, setup, files)
    raw = str if kind == "string" else int
    assert nodes == {"user": [raw(1), raw(3)], "item": [raw(8), raw(9)]}
    assert columns["user"] == [{"x.npy": [10, 0], "x.present.npy": [True, False]}]
    assert columns["item"] == [{"x.npy": [80, 90]}]
    words = "'7'" if kind == "string" else "7"
    files[1].append(["more", "user", "7", 70])
    with pytest.raises(DataError, match=f"1.txt:2:1: {words} is not a node of type 'user'"):
        run(tmp_path, setup, files)
    files[1][1] = ["more", "user", "1", 70]
    with pytest.raises(DataError, match=r"1\.txt:2:1: node .* has two values of 'x'"):
        run(tmp_path, setup, files)


def test_the_memory_limit_does_not_show_in_the_bytes(tmp_path):
    users = [f"user number {number * 7919 % 50021}" for number in range(3000)]
    files = [[["node", "user", user] for user in users], [["edge", 0, user, str(hash(user) % 97)] for user in users]]
    digests = []
    for threads, starved in ((1, False), (2, True)):
        with pytest.MonkeyPatch.context() as patch:
            if starved:
                starve(patch)
            run(tmp_path, SETUP, files, partitions=3, partition_by="hash", run=RunOptions(threads=threads), block_bytes=4096)
        out = tmp_path / "out"
        digests.append({p.relative_to(out): p.read_bytes() for p in out.rglob("*.*") if p.name != "provenance.json"})
    assert digests[0] == digests[1]


@pytest.mark.parametrize("kind", ["string", "dictionary", "int", "digits"])
def test_a_partition_file_goes_by_raw_ids(tmp_path, kind):
    raws = ["b", "a", "ß", "c"] if kind in ("string", "dictionary") else [3, -1, 2**40, 10]
    parts = [1, 0, 1, 0]
    ids = pa.array(list(map(str, raws)) if kind == "digits" else raws)
    ids = ids.dictionary_encode() if kind == "dictionary" else ids
    folder = tmp_path / "parts"
    folder.mkdir()
    pq.write_table(pa.table({"id": ids, "part": parts}), folder / "user.parquet")
    pq.write_table(pa.table({"id": ids[:1], "part": parts[:1]}), folder / "item.parquet")
    raw_kind = "int" if kind in ("int", "digits") else "string"
    setup = {**SETUP, "kinds": {"user": raw_kind, "item": raw_kind}}
    files = [[["node", "user", str(raw)] for raw in raws], [["edge", 0, str(raws[1]), str(raws[0])]]]
    _, (nodes, found, _) = run(tmp_path, setup, files, partition_by=str(folder))
    in_order = sorted(
        zip(parts, raws, strict=True), key=lambda pair: (pair[0], pair[1] if raw_kind == "int" else pair[1].encode())
    )
    assert nodes == {"user": [raw for _, raw in in_order], "item": raws[:1]}
    assert found["user:buys:item"][0] == [(raws[1], raws[0])]
    pq.write_table(pa.table({"id": ids.take(pa.array([0, 1, 2, 2])), "part": parts}), folder / "user.parquet")
    with pytest.raises(DataError, match=r"user\.parquet: row 3: node .* is assigned twice"):
        run(tmp_path, setup, files, partition_by=str(folder))
    files[0][2][2] = "9"
    pq.write_table(pa.table({"id": ids, "part": parts}), folder / "user.parquet")
    with pytest.raises(DataError, match=r"user\.parquet: no assignment for node '?9'? of type 'user'"):
        run(tmp_path, setup, files, partition_by=str(folder), on_missing_node="drop")


def test_a_partition_file_with_a_node_too_many(tmp_path):
    path = tmp_path / "parts" / "user.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"id": ["a", "b", "c"], "part": [0, 1, 0]}), path)
    (path.parent / "item.txt").write_text("")
    files = [[["node", "user", "a"], ["node", "user", "b"]], [["edge", 0, "a", "b"]]]
    with pytest.raises(DataError) as caught:
        run(tmp_path, {**SETUP, "kinds": {"user": "string", "item": "string"}}, files, partition_by=str(path.parent))
    assert str(caught.value) == (
        f"{path}: 3 assignments, but node type 'user' has 2 nodes\n  fix: give each node exactly one partition"
    )


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])  # edges with columns are not scattered while they are decoded
def test_nodes_without_edges_are_counted(tmp_path, threads, weighted):
    rng = np.random.default_rng(5)
    pairs = rng.integers(0, 300, (400, 2))
    pairs[0] = 299
    (tmp_path / "edges.txt").write_text("".join(f"{src} {dst} 1\n" if weighted else f"{src} {dst}\n" for src, dst in pairs))
    options = {"weight_col": "2"} if weighted else {}
    summary = convert(
        [str(tmp_path / "edges.txt")],
        str(tmp_path / "out"),
        ConvertOptions(format="edges", block_bytes=64, run=RunOptions(threads=threads), decoder_options=options),
    )
    idle = 300 - np.unique(pairs).size
    assert idle > 1
    assert any(note.endswith(f"; {idle} of them have no edge") for note in summary.notes), summary.notes
