"""What ``export`` makes of a store: byte for byte what ``convert`` writes for the same input, or what plain Python says."""

from __future__ import annotations

import contextlib
import io
import os
import signal
from dataclasses import replace
from pathlib import Path

import fsspec
import numpy as np
import pytest
from golden.golden_cases import load_cases
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphprep
from graphprep.derived import store as stages_ready_store
from graphprep.derived.derive import derived_store
from graphprep.edges.device.find import find_kernels
from graphprep.edges.moves import Workspace
from graphprep.model.errors import DataError, StorageError, UsageError
from graphprep.model.export import StoreNeed
from graphprep.model.schema import path_name
from graphprep.rewrite.stored_edges import map_edges
from graphprep.storage.read.arrays import ArrayReader, StoreReader
from graphprep.storage.read.urls import Storage
from graphprep.storage.spill.runs import SpillPool
from graphprep.storage.spill.scratch import Scratch
from graphprep.store import room

pytestmark = pytest.mark.usefixtures("flags_named")

CASES = [case for case in load_cases() if (case.store / "metadata.json").exists()]
BY_NAME = {case.name: case for case in CASES}
METADATA = {case.name: StoreReader(Storage(), str(case.store)).metadata for case in CASES}
ROOMS = ((16, 0, 1), (300, 0, 2), (1 << 20, 1 << 20, 4))  # of a piece, of arrays that are held, threads
PARTITIONINGS = (("range", 3), ("hash", 4), ("modulo", 2), ("random", 3), ("range", 1), ("hash", 1), ("random", 9), ("hash", 7))


class Quiet:
    """A reporter that tells nothing."""

    def stage(self, name, *, total_bytes=None, total_records=None):
        pass

    def advance(self, *, records=0, num_bytes=0):
        pass

    def message(self, text):
        pass


@contextlib.contextmanager
def ready_in(room, store, tmp, **need):
    """Yield the store, and what was made of it with so little room; then nothing is left in ``tmp``."""
    piece_bytes, held, threads = room
    before = {*Path(tmp).iterdir()}
    with contextlib.ExitStack() as stack:
        storage = stack.enter_context(Storage())
        reader = StoreReader(storage, str(store))
        pool = stack.enter_context(SpillPool(piece_bytes, str(tmp)))
        scratch = stack.enter_context(Scratch(piece_bytes, str(tmp)))
        room = Workspace(piece_bytes, held, held, threads, pool, scratch, find_kernels())
        with derived_store(reader, StoreNeed(**need), storage, room, Quiet(), str(tmp)) as ready:
            yield reader, ready
    assert {*Path(tmp).iterdir()} <= before


def file_of(store, part, path):
    """The bytes of an array's file: of one that is cut or joined of others, what NumPy would write."""
    reader = store.array(part, path)
    if isinstance(reader, ArrayReader):
        return Path(reader.url).read_bytes()
    out = io.BytesIO()
    np.lib.format.write_array(out, np.ascontiguousarray(reader.read()), version=(1, 0))
    return out.getvalue()


def convert(case, out, **options):
    graphprep.convert([str(path) for path in case.input_paths], str(out), **{**case.resolved_options(), **options})
    return StoreReader(Storage(), str(out))


def assert_same(ready, store, part, paths):
    """Compare arrays; ``paths`` are pairs: where what was made lies, and where ``convert`` wrote it."""
    different = [made for made, wanted in paths if file_of(ready, part, made) != file_of(store, part, wanted)]
    assert not different


def edge_paths(store, part, folder):
    """The columns of an edge type, as paths below its folder, and the arrays of its layouts."""
    paths = [entry.path for entry in store.manifest(part).arrays if entry.path.startswith(f"{folder}/")]
    layouts = [path for path in paths if path.startswith((f"{folder}/csc/", f"{folder}/csr/"))]
    return [path for path in paths if path not in layouts], layouts


# ---------------------------------------------------------------------------------------------------- layouts

WITH_IDS = [case for case in CASES if case.options.get("edge_ids", True)]
PLAIN = [case for case in WITH_IDS if not any(one.columns for one in METADATA[case.name].edge_schemas)]
WITH_IDS = [case for case in WITH_IDS if case not in PLAIN[1::2]]  # without edge columns there is less to see


@pytest.mark.parametrize("number", range(len(WITH_IDS)), ids=[case.name for case in WITH_IDS])
def test_a_missing_layout_and_columns_in_its_order(number, tmp_path):
    case, (have, want) = WITH_IDS[number], (("csc", "csr"), ("csr", "csc"))[number % 2]
    stored = case.store
    if METADATA[case.name].layouts != (have,):
        convert(case, stored := tmp_path / "have", layout=have)
    alone, both = convert(case, tmp_path / "want", layout=want), convert(case, tmp_path / "both", layout="both")
    with ready_in(ROOMS[number % 3], stored, tmp_path, layouts=(want,), edge_columns=want) as (_, ready):
        assert ready.metadata.layouts == (have,)
        for edge in range(len(both.metadata.edge_types)):
            folder = ready.edge_folder(edge)
            for part in range(both.metadata.num_parts):
                layouts = [path for path in edge_paths(both, part, folder)[1] if f"/{want}/" in path]
                assert_same(ready, both, part, [(path, path) for path in layouts])
                columns = edge_paths(alone, part, folder)[0]
                assert_same(ready, alone, part, [(f"{folder}/{want}{path[len(folder) :]}", path) for path in columns])
                for column in alone.metadata.edge_schemas[edge].columns:
                    stem = ready.edge_column_stem(edge, want, column)
                    assert ready.has(part, f"{stem}.{'npy' if column.kind == 'dense' else 'values.npy'}")


@pytest.mark.parametrize("edge_ids", [True, False])
@pytest.mark.parametrize("layout", ["csc", "csr"])
@pytest.mark.parametrize("piece_bytes", [1, 200, 1 << 20])
def test_edges_come_with_both_ends_and_ids(tmp_path, edge_ids, layout, piece_bytes):
    """Whatever the pieces; edge rows stand in for edge IDs that are not stored."""
    pairs = [(i * 7 % 5, 0 if i % 3 else i % 9) for i in range(40)]
    (tmp_path / "edges.txt").write_text("".join(f"{src} {dst}\n" for src, dst in pairs))
    graphprep.convert(
        str(tmp_path / "edges.txt"), str(tmp_path / "store"), format="edges", partitions=3, layout=layout, edge_ids=edge_ids
    )
    own = (lambda pair: pair[1]) if layout == "csc" else (lambda pair: pair[0])
    order = sorted(range(40), key=lambda edge: own(pairs[edge]))
    with ready_in((piece_bytes, 0, 2), tmp_path / "store", tmp_path) as (_, ready), Scratch(100, str(tmp_path)) as scratch:
        room = Workspace(piece_bytes, 0, 0, 2, None, scratch, find_kernels())
        spans = list(map_edges(ready, 0, room, scratch, lambda span: span))
    rows, others, ids, edge_rows = (
        np.concatenate([getattr(span, name) for span in spans]).tolist() for name in ("rows", "others", "ids", "edge_rows")
    )
    assert list(zip(others, rows, strict=True) if layout == "csc" else zip(rows, others, strict=True)) == [
        pairs[edge] for edge in order
    ]
    assert ids == (order if edge_ids else list(range(40)))
    assert edge_rows == list(range(40))


GRAPHS = st.fixed_dictionaries(
    {
        "edges": st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=40),
        "neighbor_order": st.sampled_from(["input", "id", "weight"]),
        "edge_ids": st.booleans(),
        "partitions": st.integers(1, 4),
        "layout": st.sampled_from(["csc", "csr", "both"]),
        "room": st.sampled_from(ROOMS),
        "to": st.sampled_from(PARTITIONINGS),
    }
)


def write_graph(folder, graph, name, **options):
    """Convert random edges, with weights of which some are the same."""
    lines = [f"{3 * src + 1} {3 * dst + 1} {i % 3}\n" for i, (src, dst) in enumerate(graph["edges"])]
    (folder / "edges.txt").write_text("".join(lines))
    given = {key: graph[key] for key in ("neighbor_order", "edge_ids", "partitions", "layout")} | options
    graphprep.convert(str(folder / "edges.txt"), str(folder / name), decoder_options={"weight_col": "2"}, **given)
    return StoreReader(Storage(), str(folder / name))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graph=GRAPHS)
def test_random_graphs_are_partitioned_again(graph, tmp_path_factory):
    folder = tmp_path_factory.mktemp("graph")
    write_graph(folder, graph, "have")
    method, num_parts = graph["to"]
    wanted = write_graph(folder, graph, "want", partitions=num_parts, partition_by=method, seed=11)
    need = {"num_parts": num_parts, "partition_by": method, "seed": 11}
    need |= {"layouts": wanted.metadata.layouts, "edge_columns": wanted.metadata.primary_layout}
    with ready_in(graph["room"], folder / "have", folder, **need) as (_, ready):
        assert_partitioned(ready, wanted)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graph=GRAPHS)
def test_random_graphs_get_the_other_layout(graph, tmp_path_factory):
    """Ties within a row go by edge ID; where none are stored, by edge row."""
    folder = tmp_path_factory.mktemp("graph")
    have, want = ("csr", "csc") if graph["layout"] == "csr" else ("csc", "csr")
    store = write_graph(folder, graph, "have", layout=have)
    with ready_in(graph["room"], folder / "have", folder, layouts=(want,), edge_columns=want) as (_, ready):
        made = read_edges(ready, want)
    rows = read_edges(store, have)
    order = {
        "input": lambda edge: edge["id"],
        "id": lambda edge: (edge["dst" if want == "csr" else "src"], edge["id"]),
        "weight": lambda edge: (-edge["weight"], edge["id"]),
    }[graph["neighbor_order"]]
    owner = "src" if want == "csr" else "dst"
    assert made == sorted(rows, key=lambda edge: (edge[owner], order(edge)))


def read_edges(store, layout):
    """The edges of a store's only type in the row order of a layout; edge rows of the primary one stand in for edge IDs."""
    found, first, row = [], 0, 0
    column = store.metadata.edge_schemas[0].columns[0]
    folder = "edges/_N___E___N"
    stem = store.edge_column_stem(0, layout, column) if hasattr(store, "edge_column_stem") else f"{folder}/weight"
    for part in range(store.metadata.num_parts):

        def get(name, part=part):
            return store.array(part, f"{folder}/{layout}/{name}.npy").read().tolist()

        indptr, others = get("indptr"), get("indices")
        is_primary = layout == store.metadata.primary_layout
        ids = get("edge_ids") if store.has(part, f"{folder}/{layout}/edge_ids.npy") else None
        rows = list(range(row, row + len(others))) if is_primary else get("edge_rows")
        owners = np.repeat(np.arange(first, first + len(indptr) - 1), np.diff(indptr)).tolist()
        weights = store.array(part, f"{stem}.npy").read().tolist()
        for at, (own, other) in enumerate(zip(owners, others, strict=True)):
            src, dst = (other, own) if layout == "csc" else (own, other)
            found.append({"src": src, "dst": dst, "id": (ids or rows)[at], "row": rows[at], "weight": weights[at]})
        first, row = first + len(indptr) - 1, row + len(others)
    return found


# ---------------------------------------------------------------------------------------------------- partitionings


def assert_partitioned(ready, wanted):
    """Compare everything with a store of that partitioning, metadata too."""
    found, expected = ready.metadata.to_json(), wanted.metadata.to_json()
    assert {**found, "parts": []} == {**expected, "parts": []}
    for part in range(wanted.metadata.num_parts):
        paths = [entry.path for entry in wanted.manifest(part).arrays]
        assert_same(ready, wanted, part, [(path, path) for path in paths])


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_another_partitioning(number, tmp_path):
    case, (method, num_parts) = CASES[number], PARTITIONINGS[number % len(PARTITIONINGS)]
    metadata = METADATA[case.name]
    if "string" in {schema.raw_ids for schema in metadata.node_schemas} and method == "modulo":
        method = "hash"
    seed = case.options.get("seed", 0)
    wanted = convert(case, tmp_path / "want", partitions=num_parts, partition_by=method)
    need = {"layouts": metadata.layouts, "edge_columns": metadata.primary_layout}
    need |= {"num_parts": num_parts, "partition_by": method, "seed": seed}
    with ready_in(ROOMS[number % 3], case.store, tmp_path, **need) as (_, ready):
        assert_partitioned(ready, wanted)


@pytest.mark.parametrize("name", ["shop_chunked_parts", "shop_json_random", "names_lesmis_random", "people_tables_hash"])
def test_a_reordered_store_gets_the_order_of_raw_ids_back(name, tmp_path):
    case = BY_NAME[name]
    graphprep.reorder(str(case.store), str(tmp_path / "reordered"), by="degree", shuffle_ratio=0.5)
    wanted = convert(case, tmp_path / "want", partitions=5, partition_by="hash")
    layouts = wanted.metadata.layouts
    need = {"layouts": layouts, "edge_columns": layouts[0], "num_parts": 5, "partition_by": "hash"}
    with ready_in(ROOMS[0], tmp_path / "reordered", tmp_path, **need) as (_, ready):
        assert_partitioned(ready, wanted)


def test_a_file_says_where_nodes_go(tmp_path):
    """Nodes by raw ID, a line each; the highest number says how many partitions there are."""
    case = BY_NAME["karate_csv"]
    (tmp_path / "parts.txt").write_text("".join(f"{(7 * i) % 5}\n" for i in range(34)))
    wanted = convert(case, tmp_path / "want", partitions=None, partition_by=str(tmp_path / "parts.txt"))
    layouts = wanted.metadata.layouts
    need = {"layouts": layouts, "edge_columns": layouts[0], "partition_by": str(tmp_path / "parts.txt")}
    room = (300, 1 << 20, 2)  # counts from outside are held against the limit
    with ready_in(room, case.store, tmp_path, **need) as (_, ready):
        assert ready.metadata.num_parts == 5
        assert_partitioned(ready, wanted)


@pytest.mark.parametrize("name", ["shop_edgelist", "names_lesmis", "edges_timed", "lesmis_weight"])
def test_everything_at_once(name, tmp_path, monkeypatch):
    """Another partitioning, a layout that is not there, columns in its order, and all by edge ID and raw ID."""
    monkeypatch.setattr(stages_ready_store, "_MOST_OPEN", 1)
    case = BY_NAME[name]
    convert(case, tmp_path / "have", layout="csc", partitions=2, partition_by="hash")
    wanted = convert(case, tmp_path / "want", layout="csr", partitions=3, partition_by="random", seed=4)
    need = {"num_parts": 3, "partition_by": "random", "seed": 4, "layouts": ("csr",), "input_order": True}
    room = ROOMS[1]
    with contextlib.ExitStack() as stack:
        _, ready = stack.enter_context(ready_in(room, tmp_path / "have", tmp_path, edge_columns="csr", **need))
        _, by_id = stack.enter_context(ready_in(room, tmp_path / "want", tmp_path, edge_columns="input", input_order=True))
        for edge in range(len(wanted.metadata.edge_types)):
            folder = ready.edge_folder(edge)
            for part in range(3):
                columns, layouts = edge_paths(wanted, part, folder)
                assert_same(ready, wanted, part, [(path, path) for path in layouts])
                assert_same(ready, wanted, part, [(f"{folder}/csr{path[len(folder) :]}", path) for path in columns])
            for made, other in zip(ready.input_ends(edge), by_id.input_ends(edge), strict=True):
                assert made.read().tolist() == other.read().tolist()
        for number in range(len(wanted.metadata.node_types)):
            assert ready.raw_order(number).read().tolist() == by_id.raw_order(number).read().tolist()


def test_what_is_partitioned_so_already_is_not_moved(tmp_path):
    store = BY_NAME["shop_edgelist_both_parts"].store
    metadata = StoreReader(Storage(), str(store)).metadata
    need = {"num_parts": metadata.num_parts, "partition_by": metadata.partition_by, "edge_columns": "csc"}
    with ready_in(ROOMS[2], store, tmp_path, **need) as (reader, ready):
        assert ready.metadata == reader.metadata
        path = reader.manifest(0).arrays[0].path
        assert ready.array(0, path).url == reader.array(0, path).url
    with ready_in(ROOMS[2], BY_NAME["shop_edgelist"].store, tmp_path, num_parts=1, partition_by="hash") as (reader, ready):
        assert ready.metadata == replace(reader.metadata, partition_by="hash")
        assert ready.array(0, path).url == reader.array(0, path).url


@pytest.mark.parametrize("name", ["shop_edgelist", "names_lesmis", "town_chunked", "dtypes_json"])
def test_other_cuts_copy_nothing(name, tmp_path, monkeypatch):
    """Nodes in the order of their raw IDs stay in it: ranges are parts of what is stored."""
    case = BY_NAME[name]
    wanted = convert(case, tmp_path / "want", partitions=4, partition_by="range")
    need = {"num_parts": 4, "partition_by": "range"}
    need |= {"layouts": wanted.metadata.layouts, "edge_columns": wanted.metadata.primary_layout}
    monkeypatch.setattr(room, "free_bytes", lambda _: 0)
    with ready_in(ROOMS[0], case.store, tmp_path, **need) as (_, ready):
        assert_partitioned(ready, wanted)
        for part in range(4):
            for entry in wanted.manifest(part).arrays:
                assert ready.array(part, entry.path).url.startswith(str(case.store))


def test_a_file_that_is_not_named_cannot_be_used_again(tmp_path):
    with pytest.raises(UsageError) as caught, ready_in(ROOMS[2], BY_NAME["karate_partition_file"].store, tmp_path, num_parts=4):
        pass
    assert caught.value.message == "the store is partitioned by a file, which says nothing about another number of partitions"
    assert caught.value.fix == "give --partition-by: range, hash, modulo, random, round-robin, ldg, fennel, metis, or a file"


# ---------------------------------------------------------------------------------------------------- by edge ID, by raw ID


def rows_of(store, part, stem, column, size):
    """All rows of a column as Python values."""

    def get(name):
        return store.array(part, f"{stem}{name}.npy").read()

    present = get(".present").tolist() if column.optional else [True] * size
    if column.kind == "dense":
        return [*zip(present, (row.tobytes() for row in get("")), strict=True)]
    offsets, values = get(".offsets"), get(".values")
    if column.kind == "temporal":
        entries, start = get(".entry_offsets"), get(".start").tolist()
        end = get(".end").tolist() if column.end else start
        items = [(start[i], end[i], values[offsets[i] : offsets[i + 1]].tobytes()) for i in range(len(start))]
        return [(present[row], items[entries[row] : entries[row + 1]]) for row in range(size)]
    coords = get(".coords") if column.kind == "sparse" else values
    spans = [slice(offsets[row], offsets[row + 1]) for row in range(size)]
    return [(present[row], values[span].tobytes(), coords[span].tobytes()) for row, span in enumerate(spans)]


def raw_ids_of(store, number):
    """The raw IDs of all nodes in typed order, strings as bytes."""
    metadata, found = store.metadata, []
    folder, kind = f"nodes/{path_name(metadata.node_types[number])}", metadata.node_schemas[number].raw_ids
    if kind == "identity":
        return list(range(metadata.num_nodes_per_type[number]))
    for part in range(metadata.num_parts):
        if kind == "string":
            offsets = store.array(part, f"{folder}/raw_ids.offsets.npy").read().tolist()
            values = store.array(part, f"{folder}/raw_ids.values.npy").read().tobytes()
            found += [values[offsets[i] : offsets[i + 1]] for i in range(len(offsets) - 1)]
        else:
            found += store.array(part, f"{folder}/raw_ids.npy").read().tolist()
    return found


def assert_input_order(store, ready):
    metadata, parts = store.metadata, range(store.metadata.num_parts)
    for number, schema in enumerate(metadata.node_schemas):
        raw = raw_ids_of(store, number)
        order = sorted(range(len(raw)), key=raw.__getitem__)
        assert ready.raw_order(number).read().tolist() == order
        for column in schema.columns:
            stem, sizes = f"{ready.node_folder(number)}/{column.path}", metadata.num_nodes_per_chunk[number]
            rows = [row for part in parts for row in rows_of(store, part, stem, column, sizes[part])]
            found = rows_of(ready, 0, ready.node_column_stem(number, column), column, len(raw))
            assert found == [rows[at] for at in order]
    for number, schema in enumerate(metadata.edge_schemas):
        folder, layout = ready.edge_folder(number), metadata.primary_layout
        owners, others, ids, first = [], [], [], 0
        for part in parts:
            indptr, indices = (store.array(part, f"{folder}/{layout}/{name}.npy").read() for name in ("indptr", "indices"))
            owners += np.repeat(np.arange(first, first + indptr.size - 1), np.diff(indptr)).tolist()
            others += indices.tolist()
            first += indptr.size - 1
            if schema.edge_id_dtype is not None:
                ids += store.array(part, f"{folder}/{layout}/edge_ids.npy").read().tolist()
        order = sorted(range(len(owners)), key=(ids or range(len(owners))).__getitem__)
        src, dst = (others, owners) if layout == "csc" else (owners, others)
        found = [end.read().tolist() for end in ready.input_ends(number)]
        assert found == [[side[at] for at in order] for side in (src, dst)]
        for column in schema.columns:
            sizes = metadata.num_edges_per_chunk[number]
            rows = [row for part in parts for row in rows_of(store, part, f"{folder}/{column.path}", column, sizes[part])]
            found = rows_of(ready, 0, ready.edge_column_stem(number, "input", column), column, len(owners))
            assert found == [rows[at] for at in order]


@pytest.mark.parametrize("number", range(len(CASES)), ids=[case.name for case in CASES])
def test_edges_by_edge_id_and_nodes_by_raw_id(number, tmp_path):
    with ready_in(ROOMS[number % 3], CASES[number].store, tmp_path, edge_columns="input", input_order=True) as found:
        assert_input_order(*found)


@pytest.mark.parametrize("name", ["shop_chunked_parts", "names_lesmis_random", "names_signed_modulo", "karate_csv"])
def test_nodes_of_a_reordered_store_by_raw_id(name, tmp_path):
    graphprep.reorder(str(BY_NAME[name].store), str(tmp_path / "reordered"), by="in-degree", shuffle_ratio=0.7)
    with ready_in(ROOMS[0], tmp_path / "reordered", tmp_path, edge_columns="input", input_order=True) as found:
        assert_input_order(*found)


def test_what_stands_in_order_is_not_copied(tmp_path):
    """A graph whose edges ascend by destination: only the destinations are written out."""
    (tmp_path / "edges.txt").write_text("2 0 1.5\n1 0 2.5\n0 1 3.5\n2 1 4.5\n")
    options = {"decoder_options": {"weight_col": "2"}}
    graphprep.convert(str(tmp_path / "edges.txt"), str(tmp_path / "store"), **options)
    with ready_in(ROOMS[2], tmp_path / "store", tmp_path, edge_columns="input", input_order=True) as (store, ready):
        src, dst = ready.input_ends(0)
        column = store.metadata.edge_schemas[0].columns[0]
        weight = ready.array(0, f"{ready.edge_column_stem(0, 'input', column)}.npy")
        assert str(tmp_path / "store") in src.url
        assert str(tmp_path / "store") in weight.url
        assert str(tmp_path / "store") not in dst.url
        assert (src.read().tolist(), dst.read().tolist()) == ([2, 1, 0, 2], [0, 0, 1, 1])


# ---------------------------------------------------------------------------------------------------- places, faults


def test_what_a_killed_run_leaves_goes_with_the_next_one(tmp_path):
    """A process dies while it reads; the next one that needs the folder for temporary files removes what it made."""
    store, tmp = BY_NAME["karate_csv"].store, tmp_path / "tmp"
    tmp.mkdir()
    child = os.fork()
    if child == 0:
        with ready_in(ROOMS[2], store, tmp, layouts=("csr",)):
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    (left,) = tmp.iterdir()
    with ready_in(ROOMS[2], store, tmp, layouts=("csr",)) as (_, ready):
        assert Path(ready.array(0, f"{ready.edge_folder(0)}/csr/indptr.npy").url).exists()
        assert not left.exists()


@pytest.mark.parametrize("name", ["shop_chunked_parts", "names_awkward_hash"])
def test_a_store_far_away(name, tmp_path):
    case, url = BY_NAME[name], f"memory://ready-{name}"
    fsspec.filesystem("memory").put(str(case.store), f"/ready-{name}", recursive=True)
    with ready_in(ROOMS[0], url, tmp_path, edge_columns="input", input_order=True) as (_, ready):
        assert_input_order(StoreReader(Storage(), str(case.store)), ready)
    wanted = convert(case, tmp_path / "want", partitions=3, partition_by="random")
    need = {"num_parts": 3, "partition_by": "random", "edge_columns": wanted.metadata.primary_layout}
    with ready_in(ROOMS[1], url, tmp_path, layouts=wanted.metadata.layouts, **need) as (_, ready):
        assert_partitioned(ready, wanted)


def spoil(folder, path, at, value):
    """Change a number in an array of a store; the manifest stays."""
    array = np.load(folder / path)
    array.reshape(-1)[at] = value
    np.save(folder / path, array)


FAULTS = [
    ("edges/_N___E___N/csc/indices.npy", 2, 9, {"layouts": ("csr",)}, "expected a typed ID in [0, 3), found 9"),
    (
        "edges/_N___E___N/csc/indices.npy",
        1,
        -1,
        {"num_parts": 2, "partition_by": "hash"},
        "expected a typed ID in [0, 3), found -1",
    ),
    ("edges/_N___E___N/csc/edge_ids.npy", 3, 4, {"input_order": True}, "expected an edge ID in [0, 4), found 4"),
    ("edges/_N___E___N/csc/edge_ids.npy", 3, 0, {"input_order": True}, "edge ID 2 is missing"),
    ("edges/_N___E___N/csc/indptr.npy", 1, 3, {"layouts": ("csr",)}, "offsets must not descend, found 2"),
    ("edges/_N___E___N/csc/indptr.npy", 2, 0, {"num_parts": 3}, "offsets must begin at 0 and not descend"),
    ("edges/_N___E___N/csr/edge_rows.npy", 0, -2, {"edge_columns": "csr"}, "expected an edge row in [0, 4), found -2"),
]


@pytest.mark.parametrize(("path", "at", "value", "need", "message"), FAULTS)
def test_a_faulty_store(path, at, value, need, message, tmp_path):
    (tmp_path / "edges.txt").write_text("0 2 5\n1 0 6\n2 2 7\n1 1 8\n")
    layout = "both" if "csr" in path else "csc"
    options = {"decoder_options": {"weight_col": "2"}, "layout": layout}
    graphprep.convert(str(tmp_path / "edges.txt"), str(tmp_path / "store"), **options)
    spoil(tmp_path / "store/part-00000", path, at, value)
    with pytest.raises(DataError) as caught, ready_in(ROOMS[2], tmp_path / "store", tmp_path, **need):
        pass
    assert caught.value.message == message
    assert caught.value.place.startswith(str(tmp_path / "store/part-00000" / path))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["edges.txt", "store"]


def test_a_raw_order_that_is_none(tmp_path):
    graphprep.reorder(str(BY_NAME["karate_csv"].store), str(tmp_path / "store"))
    spoil(tmp_path / "store/part-00000", "nodes/_N/raw_order.npy", 5, 34)
    with pytest.raises(DataError) as caught, ready_in(ROOMS[2], tmp_path / "store", tmp_path, input_order=True):
        pass
    assert caught.value.message == "expected a number in [0, 33], found 34"
    assert caught.value.place == f"{tmp_path}/store/part-00000/nodes/_N/raw_order.npy[5]"


def test_an_array_that_was_not_made(tmp_path):
    with ready_in(ROOMS[2], BY_NAME["karate_csv"].store, tmp_path, num_parts=2, partition_by="hash") as (_, ready):
        path = f"{ready.edge_folder(0)}/csr/indptr.npy"
        assert not ready.has(1, path)
        with pytest.raises(DataError) as caught:
            ready.array(1, path)
    assert caught.value.message == f"the array {path} is missing"
    assert caught.value.place == "part-00001"


INDPTR, NUMBERS = 128 + 6 * 8, 128 + 8 * 4  # files of the five nodes' offsets, and of a number for each of the eight edges
NEEDS = [
    ({"layouts": ("csr",)}, 8 * (4 + 4 + 8)),
    ({"edge_columns": "csr"}, 8 * (4 + 4 + 8) + NUMBERS),
    ({"input_order": True}, 8 * 4),
    ({"num_parts": 3, "partition_by": "hash", "edge_columns": "csc"}, INDPTR + 3 * NUMBERS),
    ({"num_parts": 3, "partition_by": "modulo"}, INDPTR + 2 * NUMBERS),
]


@pytest.mark.parametrize(("need", "num_bytes"), NEEDS)
def test_the_disk_is_looked_at_first(need, num_bytes, tmp_path, monkeypatch):
    (tmp_path / "edges.txt").write_text("".join(f"{i % 5} {(3 * i) % 5} {i}\n" for i in range(8)))
    graphprep.convert(str(tmp_path / "edges.txt"), str(tmp_path / "store"), decoder_options={"weight_col": "2"})
    monkeypatch.setattr(room, "free_bytes", lambda _: num_bytes - 1)
    with pytest.raises(StorageError) as caught, ready_in(ROOMS[2], tmp_path / "store", tmp_path, **need):
        pass
    assert caught.value.message == f"temporary files take at least {num_bytes} B, and {num_bytes - 1} B are free"
    assert caught.value.fix == "free some space, or choose another disk with --tmp-dir"
    monkeypatch.setattr(room, "free_bytes", lambda _: num_bytes)
    with ready_in(ROOMS[2], tmp_path / "store", tmp_path, **need):
        pass
