"""``validate`` of stores that are sound, and of stores that are spoiled in every way."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tiny_store import column, json_bytes, npy_bytes, sample_store, splitmix64

from graphprep.kernels.cpu.ids.check import add_edge_sums, choose_buckets, find_unset, mark_ids
from graphprep.model.errors import StorageError
from graphprep.model.run_options import RunOptions
from graphprep.storage.read.urls import Storage
from graphprep.validate import edges as check_edges
from graphprep.validate import nodes as check_nodes
from graphprep.validate.check import check_store

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
BUYS = "edges/user__buys__item"
LIKES = "edges/user__likes__user"
USER = "nodes/user"


class Silent:
    def stage(self, name, *, total_bytes=None, total_records=None): ...
    def advance(self, *, records=0, num_bytes=0): ...
    def message(self, text): ...


def check(folder, *, limit="64MiB", max_faults=20):
    return check_store(Storage(), str(folder), Silent(), RunOptions(memory_limit=limit, threads=2), max_faults=max_faults)


def faults_of(folder, **options):
    return [str(fault) for fault in check(folder, **options).faults]


@pytest.mark.parametrize("layouts", [("csc",), ("csr",), ("csc", "csr")])
@pytest.mark.parametrize("order", ["input", "id", "weight"])
def test_a_sound_store_has_no_faults(tmp_path, layouts, order):
    report = check(sample_store(layouts, order).write(tmp_path))
    assert [str(fault) for fault in report.faults] == []
    assert report.sound
    assert report.num_nodes == {"user": 5, "item": 3}
    assert report.num_edges == {"user:buys:item": 7, "user:likes:user": 3}
    assert report.num_parts == 2
    assert report.num_bytes == sum(path.stat().st_size for path in tmp_path.rglob("*.npy"))
    assert report.num_arrays == len(list(tmp_path.rglob("*.npy")))


@pytest.mark.parametrize("store", sorted(GOLDEN.glob("*/store")), ids=lambda path: path.parent.name)
def test_golden_stores_are_sound(store):
    assert faults_of(store) == []


# ------------------------------------------------------------------------------------------------ arrays


def put(path, index, value, part=0):
    """Spoil one entry of an array."""

    def spoil(store):
        array = store.parts[part][path].copy()
        array[index] = value
        store.parts[part][path] = array

    return spoil


def swap(path, part, i, j):
    """Exchange two entries of an array."""

    def spoil(store):
        array = store.parts[part][path].copy()
        array[[i, j]] = array[[j, i]]
        store.parts[part][path] = array

    return spoil


def also(*spoils):
    def spoil(store):
        for one in spoils:
            one(store)

    return spoil


def cut(path, part=0):
    """Take the last entry off."""

    def spoil(store):
        store.parts[part][path] = store.parts[part][path][:-1]

    return spoil


def less_at_most(path, part=0):
    """Let offsets end one earlier."""

    def spoil(store):
        offsets = store.parts[part][path]
        store.parts[part][path] = np.minimum(offsets, offsets[-1] - 1)

    return spoil


def meta(*keys, value):
    """Set a value of metadata.json."""

    def spoil(store):
        at = store.metadata
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = value

    return spoil


P0, P1 = "part-00000", "part-00001"
ARRAYS = {
    # raw IDs
    "raw ID order": (
        put(f"{USER}/raw_ids.npy", 1, 9),
        [
            f"{P0}/{USER}/raw_ids.npy[2]: expected a raw ID above 9, the one before, found 8",
        ],
    ),
    "raw ID twice": (
        put(f"{USER}/raw_ids.npy", 1, 8),
        [f"{P0}/{USER}/raw_ids.npy[2]: expected a raw ID above 8, the one before, found 8"],
    ),
    "ranges overlap": (
        put(f"{USER}/raw_ids.npy", 0, 8, part=1),
        [
            f"{P1}/{USER}/raw_ids.npy[0]: expected a raw ID above 8, the last one of the partition before, found 8",
        ],
    ),
    # adjacency
    "indptr begins": (put(f"{LIKES}/csc/indptr.npy", 0, 1), [f"{P0}/{LIKES}/csc/indptr.npy[0]: expected 0, found 1"]),
    "indptr falls": (
        put(f"{LIKES}/csc/indptr.npy", 1, 3),
        [f"{P0}/{LIKES}/csc/indptr.npy[2]: expected at least 3, the one before, found 2"],
    ),
    "indptr ends": (
        put(f"{LIKES}/csc/indptr.npy", 3, 4),
        [f"{P0}/{LIKES}/csc/indptr.npy[3]: expected 3, the number of values, found 4"],
    ),
    "index too large": (
        put(f"{LIKES}/csc/indices.npy", 1, 5),
        [f"{P0}/{LIKES}/csc/indices.npy[1]: expected a typed ID in [0, 5), found 5"],
    ),
    "negative index": (
        put(f"{LIKES}/csr/indices.npy", 0, -2),
        [f"{P0}/{LIKES}/csr/indices.npy[0]: expected a typed ID in [0, 5), found -2"],
    ),
    "edge ID twice": (
        put(f"{LIKES}/csc/edge_ids.npy", 0, 1),
        [
            f"{P0}/{LIKES}/csc/edge_ids.npy[2]: edge ID 1 was there before",
            f"{LIKES}/csc/edge_ids.npy: edge ID 2 is in no partition",
        ],
    ),
    "edge ID out of range": (
        put(f"{LIKES}/csc/edge_ids.npy", 0, 9),
        [
            f"{P0}/{LIKES}/csc/edge_ids.npy[0]: expected an edge ID in [0, 3), found 9",
            f"{LIKES}/csc/edge_ids.npy: edge ID 2 is in no partition",
        ],
    ),
    "input order": (
        also(swap(f"{BUYS}/csc/edge_ids.npy", 0, 0, 1), swap(f"{BUYS}/csc/indices.npy", 0, 0, 1)),
        [
            f"{P0}/{BUYS}/csc/edge_ids.npy[1]: row 0 is not ordered by edge ID (ties by edge ID): 2 stands before 0",
        ],
    ),
    "other edge in csr": (
        swap(f"{LIKES}/csr/indices.npy", 0, 0, 1),
        [
            f"{P0}/{LIKES}/csc/indices.npy[1]: edge 0 -> 1 with edge ID 0 is not in csr",
            f"{P0}/{LIKES}/csc/indices.npy[2]: edge 1 -> 2 with edge ID 1 is not in csr",
            f"{P0}/{LIKES}/csr/indices.npy[0]: edge 0 -> 2 with edge ID 0 is not in csc",
            f"{P0}/{LIKES}/csr/indices.npy[1]: edge 1 -> 1 with edge ID 1 is not in csc",
        ],
    ),
    "other IDs in csr": (
        swap(f"{LIKES}/csr/edge_ids.npy", 0, 0, 1),
        [
            f"{P0}/{LIKES}/csc/indices.npy[1]: edge 0 -> 1 with edge ID 0 is not in csr",
            f"{P0}/{LIKES}/csc/indices.npy[2]: edge 1 -> 2 with edge ID 1 is not in csr",
            f"{P0}/{LIKES}/csr/indices.npy[0]: edge 0 -> 1 with edge ID 1 is not in csc",
            f"{P0}/{LIKES}/csr/indices.npy[1]: edge 1 -> 2 with edge ID 0 is not in csc",
        ],
    ),
    "edge row out of range": (
        put(f"{BUYS}/csr/edge_rows.npy", 0, 7),
        [f"{P0}/{BUYS}/csr/edge_rows.npy[0]: expected an edge row in [0, 7), found 7"],
    ),
    "edge rows exchanged": (
        swap(f"{BUYS}/csr/edge_rows.npy", 0, 0, 1),
        [
            f"{P0}/{BUYS}/csc/indices.npy[0]: edge 0 -> 0 with edge ID 0 in edge row 0 is not in csr",
            f"{P0}/{BUYS}/csc/indices.npy[3]: edge 0 -> 1 with edge ID 3 in edge row 3 is not in csr",
            f"{P0}/{BUYS}/csr/indices.npy[0]: edge 0 -> 0 with edge ID 0 in edge row 3 is not in csc",
            f"{P0}/{BUYS}/csr/indices.npy[1]: edge 0 -> 1 with edge ID 3 in edge row 0 is not in csc",
        ],
    ),
    "edge that csr lacks": (
        also(*(cut(f"{LIKES}/csr/{name}.npy") for name in ("indices", "edge_ids")), less_at_most(f"{LIKES}/csr/indptr.npy")),
        [f"{LIKES}/csr: expected 3 edges over all partitions, found 2"],
    ),
    # columns
    "bool that is none": (
        lambda store: store.parts[0].update({f"{USER}/data/label.npy": np.array([1, 0, 7], np.uint8).view(np.bool_)}),
        [f"{P0}/{USER}/data/label.npy[2]: expected bytes 0 or 1 for bool, found 7"],
    ),
    "absent row that is not zero": (
        put(f"{USER}/data/feat_0.npy", (1, 1), 2.5),
        [f"{P0}/{USER}/data/feat_0.npy[1]: expected zeros in a row without the column, found other values"],
    ),
    "absent row with values": (
        put(f"{USER}/data/feat_1.offsets.npy", slice(1, 3), [1, 2]),
        [f"{P0}/{USER}/data/feat_1.offsets.npy[1]: expected no values in a row without the column, found 1"],
    ),
    "ragged offsets fall": (
        put(f"{USER}/data/feat_1.offsets.npy", 1, 5),
        [f"{P0}/{USER}/data/feat_1.offsets.npy[2]: expected at least 5, the one before, found 2"],
    ),
    "binary offsets end": (
        cut(f"{USER}/data/feat_3.values.npy"),
        [f"{P0}/{USER}/data/feat_3.offsets.npy[3]: expected 3, the number of values, found 4"],
    ),
    "coordinates too few": (
        cut(f"{USER}/data/feat_2.coords.npy"),
        [f"{P0}/{USER}/data/feat_2.coords.npy: expected 4 rows, as many as values, found 3"],
    ),
    "entries out of order": (
        put(f"{USER}/data/feat_4.start.npy", 2, 11),
        [f"{P0}/{USER}/data/feat_4.start.npy[3]: expected a start >= 11, that of the row's entry before, found 9"],
    ),
    "ends too few": (
        cut(f"{USER}/data/feat_4.end.npy"),
        [f"{P0}/{USER}/data/feat_4.end.npy: expected 4 numbers for 4 entries, found 3"],
    ),
    "slots too few": (
        put(f"{USER}/num_slots.npy", 1, 4),
        [f"{P0}/{USER}/num_slots.npy[1]: expected at least 5, since slot 4 is present, found 4"],
    ),
    # metadata against arrays
    "checksum": (
        meta("edge_schema", "user:likes:user", "checksum", value="0" * 16),
        [
            "metadata.json: edge_schema.user:likes:user.checksum: expected %(likes)s, the checksum of the edges, found "
            + "0" * 16
        ],
    ),
    "hash": (
        meta("partition_by", value="modulo"),
        [
            f"{P0}/{USER}/raw_ids.npy[0]: raw ID 3 belongs to partition 1 (partition_by modulo), found in 0",
            f"{P0}/{USER}/raw_ids.npy[1]: raw ID 7 belongs to partition 1 (partition_by modulo), found in 0",
            f"{P1}/{USER}/raw_ids.npy[0]: raw ID 10 belongs to partition 0 (partition_by modulo), found in 1",
            f"{P1}/{USER}/raw_ids.npy[1]: raw ID 20 belongs to partition 0 (partition_by modulo), found in 1",
            f"{P1}/nodes/item/raw_ids.npy[0]: raw ID 300 belongs to partition 0 (partition_by modulo), found in 1",
        ],
    ),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_a_spoiled_value_is_reported_with_its_place(tmp_path, name):
    spoil, wanted = ARRAYS[name]
    store = sample_store()
    likes = store.metadata["edge_schema"]["user:likes:user"]["checksum"]
    spoil(store)
    faults = faults_of(store.write(tmp_path))
    if "raw ID" in wanted[0]:  # the edge checksums differ, too
        faults = [fault for fault in faults if ".checksum: " not in fault]
    assert faults == [text % {"likes": likes} if "%(" in text else text for text in wanted]


def test_an_id_in_two_partitions_is_found_whatever_the_method(tmp_path):
    store = sample_store()
    meta("partition_by", value="file")(store)
    put(f"{USER}/raw_ids.npy", slice(0, 2), [7, 20], part=1)(store)
    place = f"{P1}/{USER}/raw_ids.npy[0]"
    assert faults_of(store.write(tmp_path))[:1] == [f"{place}: raw ID 7 stands in another partition too"]


def test_order_by_id_and_its_ties(tmp_path):
    store = sample_store(order="id")
    swap(f"{BUYS}/csc/edge_ids.npy", 1, 0, 1)(store)
    swap(f"{BUYS}/weight.npy", 1, 0, 1)(store)
    text = "row 0 is not ordered by ID (ties by edge ID): 4 (edge ID 5) stands before 4 (edge ID 1)"
    assert faults_of(store.write(tmp_path)) == [f"{P1}/{BUYS}/csc/indices.npy[1]: {text}"]


def test_multigraph_flag(tmp_path):
    store = sample_store(order="id")
    meta("edge_schema", "user:buys:item", "multigraph", value=False)(store)
    place = "metadata.json: edge_schema.user:buys:item.multigraph"
    assert faults_of(store.write(tmp_path)) == [f"{place}: expected true, found false"]


@pytest.mark.parametrize("layout", ["csc", "csr"])
def test_order_by_weight_in_the_primary_and_the_second_layout(tmp_path, layout):
    """Edge 2 of item 0 (and of user 1) becomes heavier than those before it, which its place does not show."""
    store = sample_store(order="weight")
    weights = store.parts[0][f"{BUYS}/weight.npy"]
    assert weights.tolist() == [3, 1, 0, 7, 4]
    if layout == "csc":
        put(f"{BUYS}/weight.npy", 1, 8)(store)
        wanted = ["row 0 is not ordered by weight (ties by edge ID): 3.0 (edge ID 2) stands before 8.0 (edge ID 0)"]
        wanted = [f"{P0}/{BUYS}/csc/indices.npy[1]: {wanted[0]}"]
        # User 0's edges were 4.0 (edge 3), 1.0 (edge 0): with 8.0 they are out of order in CSR, too.
        text = "row 0 is not ordered by weight (ties by edge ID): 4.0 (edge ID 3) stands before 8.0 (edge ID 0)"
        wanted.append(f"{P0}/{BUYS}/csr/indices.npy[1]: {text}")
    else:
        put(f"{BUYS}/weight.npy", 4, 0.5)(store)
        text = "row 0 is not ordered by weight (ties by edge ID): 0.5 (edge ID 3) stands before 1.0 (edge ID 0)"
        wanted = [f"{P0}/{BUYS}/csr/indices.npy[1]: {text}"]
    assert faults_of(store.write(tmp_path)) == wanted


def test_an_absent_weight_stands_last(tmp_path):
    store = sample_store(order="weight")
    put(f"{BUYS}/weight.present.npy", 2, True)(store)
    put(f"{BUYS}/weight.npy", 2, np.nan)(store)
    assert faults_of(store.write(tmp_path)) == []
    put(f"{BUYS}/weight.npy", 1, 0)(store)
    put(f"{BUYS}/weight.present.npy", 1, False)(store)
    shutil.rmtree(tmp_path)
    text = "row 0 is not ordered by weight (ties by edge ID): no value (edge ID 0) stands before NaN (edge ID 4)"
    assert faults_of(store.write(tmp_path)) == [f"{P0}/{BUYS}/csc/indices.npy[2]: {text}"]


def test_all_faults_are_counted_and_the_first_are_kept(tmp_path):
    store = sample_store()
    put(f"{BUYS}/csc/indices.npy", slice(None), 99)(store)
    report = check(store.write(tmp_path), max_faults=3)
    assert report.num_faults == 5
    assert [fault.place for fault in report.faults] == [f"{P0}/{BUYS}/csc/indices.npy[{i}]" for i in range(3)]


def test_slices_and_windows_do_not_matter(tmp_path, monkeypatch):
    """Every slice, window and block as small as can be."""
    for module, name, size in (
        (check_edges, "_SLICE", 2),
        (check_edges, "_ROWS", 1),
        (check_nodes, "_SLICE", 1),
        (check_nodes, "_MIN_BLOCK", 1),
    ):
        monkeypatch.setattr(module, name, size)
    for layouts, order in ((("csc", "csr"), "input"), (("csc", "csr"), "weight"), (("csr",), "id")):
        assert faults_of(sample_store(layouts, order).write(tmp_path / order), limit="1B") == []
    for name in ("input order", "edge ID twice", "other edge in csr", "edge rows exchanged", "checksum", "indptr falls"):
        spoil, wanted = ARRAYS[name]
        store = sample_store()
        likes = store.metadata["edge_schema"]["user:likes:user"]["checksum"]
        spoil(store)
        wanted = [text % {"likes": likes} if "%(" in text else text for text in wanted]
        assert faults_of(store.write(tmp_path / name.replace(" ", "")), limit="1B") == wanted


# ------------------------------------------------------------------------------------------------ files


def write_sample(folder):
    return sample_store().write(folder)


def spoil_bytes(path, change):
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(bytes(data))


def test_a_changed_byte(tmp_path):
    path = write_sample(tmp_path) / P0 / LIKES / "csc/indices.npy"
    before = [
        entry for entry in json.loads((tmp_path / P0 / "manifest.json").read_text())["arrays"] if entry["path"] in str(path)
    ]
    spoil_bytes(path, lambda data: data.__setitem__(-4, 3))
    import xxhash

    found = xxhash.xxh3_64_hexdigest(path.read_bytes())
    first = f"{P0}/{LIKES}/csc/indices.npy: expected xxh3 {before[0]['xxh3']} (manifest), found {found}"
    faults = faults_of(tmp_path)
    assert faults[0] == first
    assert any("is not in csr" in fault for fault in faults)


def test_a_file_that_is_cut_missing_or_longer(tmp_path):
    write_sample(tmp_path)
    paths = [tmp_path / P0 / USER / name for name in ("raw_ids.npy", "weight.npy", "num_slots.npy")]
    paths[0].write_bytes(paths[0].read_bytes()[:-8])
    paths[1].unlink()
    paths[2].write_bytes(paths[2].read_bytes() + b"x")
    assert faults_of(tmp_path) == [
        f"{P0}/{USER}/num_slots.npy: expected 140 bytes (manifest), found 141",
        f"{P0}/{USER}/raw_ids.npy: expected 152 bytes (manifest), found 144",
        f"{P0}/{USER}/weight.npy: no such file or folder",
    ]


@pytest.mark.parametrize(
    ("array", "found"),
    [
        (np.array([3, 7, 8], ">i8"), "expected int64[3] (manifest), found int64[3] (big-endian)"),
        (np.array([3, 7, 8], np.uint64), "expected int64[3] (manifest), found uint64[3]"),
        (np.array([[3], [7], [8]]), "expected int64[3] (manifest), found int64[3, 1]"),
    ],
)
def test_a_header_that_differs_from_the_manifest(tmp_path, array, found):
    write_sample(tmp_path)
    path = tmp_path / P0 / USER / "raw_ids.npy"
    np.save(path, array)
    faults = faults_of(tmp_path)
    assert f"{P0}/{USER}/raw_ids.npy: {found}" in faults
    assert len(faults) == 2  # the other is the checksum


def test_something_that_is_no_array(tmp_path):
    write_sample(tmp_path)
    path = tmp_path / P0 / USER / "raw_ids.npy"
    path.write_bytes(b"x" * path.stat().st_size)
    assert faults_of(tmp_path)[1:] == [f"{P0}/{USER}/raw_ids.npy: not a .npy file"]


def manifest_of(folder, part=0):
    return json.loads((folder / f"part-{part:05d}" / "manifest.json").read_text())


def write_manifest(store, folder, manifest):
    """Bind a changed manifest in the metadata, as a writer with that mistake would."""
    store.write_manifest(folder, 0, manifest)
    (folder / "metadata.json").write_bytes(json_bytes(store.metadata))


def test_a_manifest_that_is_not_the_one_of_the_metadata(tmp_path):
    write_sample(tmp_path)
    path = tmp_path / P0 / "manifest.json"
    path.write_bytes(path.read_bytes() + b" ")
    size = path.stat().st_size
    assert faults_of(tmp_path) == [f"{P0}/manifest.json: expected {size - 1} bytes (metadata.json), found {size}"]
    path.unlink()
    assert faults_of(tmp_path)[0] == f"{P0}/manifest.json: no such file or folder"


def test_a_manifest_that_lacks_or_adds_an_array(tmp_path):
    store = sample_store()
    store.write(tmp_path)
    manifest = manifest_of(tmp_path)
    lost = manifest["arrays"].pop()
    extra = dict(lost, path=f"{USER}/zzz.npy")
    manifest["arrays"].append(extra)
    write_manifest(store, tmp_path, manifest)
    assert faults_of(tmp_path) == [
        f"{P0}/manifest.json: array {lost['path']!r} is missing",
        f"{P0}/manifest.json: arrays[{len(manifest['arrays']) - 1}]: array '{USER}/zzz.npy' is not part of the schema",
    ]


def test_a_manifest_with_other_shapes_parts_and_order(tmp_path):
    store = sample_store()
    store.write(tmp_path)
    manifest = manifest_of(tmp_path)
    manifest["part"] = 1
    arrays = manifest["arrays"]
    arrays[0], arrays[1] = arrays[1], arrays[0]
    arrays[0]["shape"] = [9]
    write_manifest(store, tmp_path, manifest)
    faults = faults_of(tmp_path)
    assert faults[:3] == [
        f"{P0}/manifest.json: part: expected 0, found 1",
        f"{P0}/manifest.json: arrays[1].path: expected a path after '{arrays[0]['path']}', found '{arrays[1]['path']}'",
        f"{P0}/manifest.json: arrays[0]: expected int32[5] for '{arrays[0]['path']}', found int32[9]",
    ]


def test_a_manifest_against_the_schema(tmp_path):
    store = sample_store()
    store.write(tmp_path)
    manifest = manifest_of(tmp_path)
    manifest["arrays"][0]["bytes"] = "12"
    write_manifest(store, tmp_path, manifest)
    assert faults_of(tmp_path)[0] == f'{P0}/manifest.json: arrays[0].bytes: expected an integer >= 0, found "12"'


# ------------------------------------------------------------------------------------------------ metadata

LABEL = column("label", "dense", "bool")
METADATA = {
    "schema": (meta("num_parts", value="2"), ['num_parts: expected an integer >= 1, found "2"']),
    "two schema faults": (
        also(meta("partition_by", value=""), meta("graph_name", value=3)),
        [
            "graph_name: expected a text, found 3",
            'partition_by: expected range, hash, modulo, random, round-robin, ldg, fennel, metis, file, python or order, found ""',
        ],
    ),
    "parts": (meta("num_parts", value=3), None),
    "counts": (
        meta("num_nodes_per_type", 0, value=6),
        ["num_nodes_per_type[0]: expected 5, the sum of num_nodes_per_chunk[0], found 6"],
    ),
    "cut": (
        meta("num_nodes_per_chunk", 1, value=[1, 2]),
        [
            "num_nodes_per_chunk[1][0]: expected 2, as partition_by range cuts, found 1",
            "num_nodes_per_chunk[1][1]: expected 1, as partition_by range cuts, found 2",
        ],
    ),
    "multigraph without order": (
        meta("edge_schema", "user:likes:user", "multigraph", value=True),
        ["edge_schema.user:likes:user.multigraph: expected null where neighbor_order is input, found true"],
    ),
    "order without column": (
        meta("edge_schema", "user:likes:user", "neighbor_order", value="time"),
        ["edge_schema.user:likes:user.neighbor_order: expected 'input', since there is no such column, found 'time'"],
    ),
    "unknown end": (
        meta("edge_type", value=["user:buys:item", "user:likes:userr"]),
        None,
    ),
    "same column": (
        meta("node_schema", "item", "columns", value=[LABEL, LABEL]),
        ["node_schema.item.columns[1].name: 'label' is there twice"],
    ),
    "column order": (
        meta("node_schema", "item", "columns", value=[LABEL, column("weight", "dense", "float32", role="weight")]),
        ["node_schema.item.columns[1]: column 'weight' stands out of order"],
    ),
    "role's dtype": (
        meta("node_schema", "item", "columns", value=[column("weight", "dense", "int32", role="weight")]),
        ["node_schema.item.columns[0]: expected a dense scalar of float32 or float64 for role weight, found dense int32 []"],
    ),
}


@pytest.mark.parametrize("name", METADATA)
def test_metadata_faults(tmp_path, name):
    spoil, wanted = METADATA[name]
    store = sample_store()
    store.write(tmp_path)
    spoil(store)
    (tmp_path / "metadata.json").write_bytes(json_bytes(store.metadata))
    faults = faults_of(tmp_path)
    assert faults
    if wanted is not None:
        assert faults[: len(wanted)] == [f"metadata.json: {text}" for text in wanted]


def test_metadata_that_is_no_json(tmp_path):
    write_sample(tmp_path)
    (tmp_path / "metadata.json").write_text('{"format": "graphprep-store",}')
    (fault,) = faults_of(tmp_path)
    assert fault.startswith("metadata.json:1:")


def test_no_store_at_all(tmp_path):
    with pytest.raises(StorageError) as caught:
        check(tmp_path)
    assert caught.value.message == "there is no metadata.json, so this is no whole store"


# ------------------------------------------------------------------------------------------------ kernels


def test_mark_ids_and_find_unset_agree_with_sets():
    rng = np.random.default_rng(1)
    ids = rng.integers(-5, 210, 300)
    bits = np.zeros(4, np.uint64)
    repeats = mark_ids(ids, 10, 200, bits).tolist()
    seen, wanted = set(), []
    for i, one in enumerate(ids.tolist()):
        if 10 <= one < 210:
            if one in seen:
                wanted.append(i)
            seen.add(one)
    assert repeats == wanted
    missing = sorted(set(range(10, 210)) - seen)
    count, first = find_unset(bits, 200, 5)
    assert count == len(missing)
    assert first.tolist() == [one - 10 for one in missing[:5]]


def test_edge_sums_tell_multisets_apart_and_keep_buckets_together():
    rng = np.random.default_rng(2)
    keys, ids, src, dst, rows = (rng.integers(0, 50, 100) for _ in range(5))
    order = rng.permutation(100)

    def sums(*arrays):
        out = np.zeros((8, 2), np.uint64)
        add_edge_sums(*arrays, out)
        return out

    one = sums(keys, ids, src, dst, rows)
    assert (one == sums(*(array[order] for array in (keys, ids, src, dst, rows)))).all()
    for spoiled in range(1, 5):
        arrays = [keys, ids, src, dst, rows]
        arrays[spoiled] = arrays[spoiled].copy()
        arrays[spoiled][7] += 1
        differs = (one != sums(*arrays)).all(axis=1)
        assert np.flatnonzero(differs).tolist() == [splitmix64(int(keys[7])) % 8]
        assert choose_buckets(keys, differs).tolist() == [splitmix64(int(key)) % 8 in np.flatnonzero(differs) for key in keys]


def test_npy_bytes_of_the_tiny_store_are_numpys(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(3))
    assert (tmp_path / "a.npy").read_bytes() == npy_bytes(np.arange(3))
