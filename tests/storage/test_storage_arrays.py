"""Stores are read through their metadata, and nothing in them is believed."""

import json

import fsspec
import numpy as np
import pytest
import xxhash

from graphprep.model.errors import DataError, StorageError
from graphprep.model.metadata import ArrayEntry, GraphMetadata, Manifest, PartEntry, dump_json
from graphprep.model.schema import EdgeTypeSchema, NodeTypeSchema
from graphprep.storage.read import arrays
from graphprep.storage.read.arrays import ArrayReader, StoreReader
from graphprep.storage.read.urls import Storage
from graphprep.storage.write.publish import StoreWriter, npy_header

INDICES = np.array([1, 0, 2], np.int32)
FEATURES = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(params=["local", "memory", "s3"])
def out(request, tmp_path):
    if request.param == "s3":
        return request.getfixturevalue("bucket").url + "/arrays/store"
    if request.param == "local":
        return str(tmp_path / "store")
    memory = fsspec.filesystem("memory")
    if memory.exists("/arrays"):
        memory.rm("/arrays", recursive=True)
    return "memory://arrays/store"


@pytest.fixture
def store(out):
    with Storage() as storage, StoreWriter(storage, out) as writer:
        entries = []
        for path, array in {
            "edges/u__r__u/csc/indices.npy": INDICES,
            "nodes/u/data/feat_0.npy": FEATURES,
            "nodes/u/data/none.npy": np.zeros((3, 0), np.int8),
            "nodes/u/raw_ids.npy": np.zeros(0, np.int64),
        }.items():
            made = writer.open_array("part-00000", path, array.dtype, array.shape)
            made.append(array)
            entries.append(made.close())
        manifest = dump_json(Manifest(0, tuple(entries)).to_json())
        writer.write_file("part-00000/manifest.json", manifest)
        writer.publish(dump_json(metadata_of(manifest).to_json()))
    return out


def metadata_of(manifest: bytes) -> GraphMetadata:
    return GraphMetadata(
        graph_name="graph",
        node_types=("u",),
        edge_types=(("u", "r", "u"),),
        num_nodes_per_chunk=((3,),),
        num_edges_per_chunk=((3,),),
        num_parts=1,
        partition_by="range",
        layouts=("csc",),
        node_schemas=(NodeTypeSchema("identity"),),
        edge_schemas=(EdgeTypeSchema("input", "int32", "int32", None, "0" * 16),),
        parts=(PartEntry("part-00000", len(manifest), xxhash.xxh3_64_hexdigest(manifest)),),
    )


def put(url, data):
    with fsspec.open(url, "wb") as file:
        file.write(data)


def change_metadata(store, **changes):
    value = json.loads(Storage().read_bytes(f"{store}/metadata.json"))
    put(f"{store}/metadata.json", dump_json({**value, **changes}))


def test_what_was_written_is_read(store):
    reader = StoreReader(Storage(), store)
    assert reader.metadata.num_nodes_per_type == (3,)
    assert reader.manifest(0).arrays[0].path == "edges/u__r__u/csc/indices.npy"
    assert reader.has(0, "nodes/u/raw_ids.npy")
    assert not reader.has(0, "nodes/u/no.npy")
    array = reader.array(0, "nodes/u/data/feat_0.npy")
    assert (array.dtype, array.shape) == (np.dtype("float32"), (3, 4))
    assert np.array_equal(array.read(), FEATURES)
    assert np.array_equal(array.map(), FEATURES)
    for start in range(-1, 5):
        for stop in [None, *range(-1, 5)]:
            found = array.read(start, stop)
            assert np.array_equal(found, FEATURES[start:stop])
            assert found.shape == FEATURES[start:stop].shape
    array.read()[:] = 7
    assert np.array_equal(array.read(), FEATURES)
    for path, shape in (("nodes/u/data/none.npy", (3, 0)), ("nodes/u/raw_ids.npy", (0,))):
        assert reader.array(0, path).read().shape == reader.array(0, path).map().shape == shape


def test_a_local_map_is_read_only_and_not_a_copy(tmp_path):
    np.save(tmp_path / "a.npy", INDICES)
    entry = ArrayEntry("a.npy", "int32", (3,), 140, "")
    mapped = ArrayReader(Storage(), str(tmp_path / "a.npy"), entry).map()
    assert isinstance(mapped, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        mapped[0] = 1


AGAIN = "\n  fix: convert the graph again, or copy the store again"


def test_no_store(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(StorageError) as caught:
        StoreReader(Storage(), str(tmp_path / "empty"))
    assert str(caught.value) == (
        f"{tmp_path}/empty: there is no store: metadata.json is missing\n"
        "  fix: convert the graph again; metadata.json is written last"
    )
    with pytest.raises(StorageError) as caught:
        StoreReader(Storage(), str(tmp_path / "no"))
    assert str(caught.value) == f"{tmp_path}/no: there is no store: metadata.json is missing\n  fix: check the path"


@pytest.mark.parametrize(
    ("name", "fix"), [("raw.csv", "make a store of it with graphprep convert"), ("out", "name the store that was exported")]
)
def test_something_else_than_a_store(tmp_path, name, fix):
    (tmp_path / "raw.csv").write_text("0,1\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "export.json").write_text("{}")
    with pytest.raises(StorageError) as caught:
        StoreReader(Storage(), str(tmp_path / name))
    assert str(caught.value) == f"{tmp_path / name}: there is no store: metadata.json is missing\n  fix: {fix}"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"num_parts": "1"}, 'num_parts: expected an integer >= 1, found "1"'),
        ({"num_nodes_per_type": [4]}, "num_nodes_per_type[0]: 4 is not the sum of the partitions, 3"),
        ({"num_nodes_per_chunk": [[1, 2]]}, "num_nodes_per_chunk[0]: expected one number for each of 1 partitions, found 2"),
        ({"num_edges_per_chunk": []}, "num_edges_per_chunk: expected one entry for each of 1 types, found 0"),
        ({"parts": []}, "parts: expected 1 partitions, found 0"),
        ({"edge_type": ["u:r:v"]}, "edge_schema: expected the types u:r:v"),
        ({"node_type": ["x"]}, "node_schema: expected the types x"),
    ],
)
def test_metadata_that_contradicts_itself(store, changes, text):
    change_metadata(store, **changes)
    with pytest.raises(DataError) as caught:
        StoreReader(Storage(), store)
    assert str(caught.value).removesuffix(AGAIN) == f"{store}/metadata.json: {text}"


def test_metadata_of_something_else(store):
    put(f"{store}/metadata.json", b'{"format": "other"}')
    with pytest.raises(DataError) as caught:
        StoreReader(Storage(), store)
    assert str(caught.value) == (
        f"{store}/metadata.json: not the metadata of a store\n  fix: name a folder that graphprep convert wrote"
    )
    put(f"{store}/metadata.json", b"{")
    with pytest.raises(DataError, match=r"metadata\.json:1:2: invalid JSON") as caught:
        StoreReader(Storage(), store)
    assert str(caught.value).endswith(AGAIN)


def test_a_manifest_that_is_not_the_one_named(store):
    url = f"{store}/part-00000/manifest.json"
    data = Storage().read_bytes(url)
    changed = data.replace(b'"float32"', b'"float16"')
    put(url, changed)
    reader = StoreReader(Storage(), store)
    with pytest.raises(DataError) as caught:
        reader.manifest(0)
    assert str(caught.value) == (
        f"{url}: the file has {len(data)} bytes and xxh3 {xxhash.xxh3_64_hexdigest(changed)}, "
        f"metadata.json says {len(data)} and {xxhash.xxh3_64_hexdigest(data)}{AGAIN}"
    )


def test_an_array_that_is_not_listed(store):
    with pytest.raises(DataError) as caught:
        StoreReader(Storage(), store).array(0, "nodes/u/no.npy")
    assert str(caught.value) == f"{store}/part-00000/manifest.json: the array nodes/u/no.npy is missing{AGAIN}"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (npy_header("int32", (3,)) + bytes(11), "the file has 139 bytes, the manifest says 140"),
        (npy_header("int32", (3,)) + bytes(13), "the file has 141 bytes, the manifest says 140"),
        (npy_header("float32", (3,)) + bytes(12), "the file holds float32[3], the manifest says int32[3]"),
        (npy_header("int32", (1, 3)) + bytes(12), "the file holds int32[1, 3], the manifest says int32[3]"),
        (
            npy_header("int32", (3,)).replace(b"'<i4'", b"'>i4'") + bytes(12),
            "the file holds >i4[3], the manifest says int32[3]",
        ),
        (
            npy_header("int32", (3,)).replace(b"False,", b"True, ") + bytes(12),
            "the file holds int32[3], the manifest says int32[3]",
        ),
        (b"x" * 140, "not a .npy file"),
    ],
)
def test_an_array_that_is_not_what_the_manifest_says(store, data, text):
    url = f"{store}/part-00000/edges/u__r__u/csc/indices.npy"
    put(url, data)
    for read in ("read", "map"):
        with pytest.raises(DataError) as caught:
            getattr(StoreReader(Storage(), store).array(0, "edges/u__r__u/csc/indices.npy"), read)()
        assert (caught.value.place, caught.value.message) == (url, text)


def test_a_manifest_entry_that_contradicts_itself(store):
    reader = StoreReader(Storage(), store)
    array = reader.array(0, "edges/u__r__u/csc/indices.npy")
    put(array.url, Storage().read_bytes(array.url) + b"xxxx")
    broken = ArrayReader(Storage(), array.url, array.entry._replace(num_bytes=144))
    with pytest.raises(DataError, match="the array takes 140 bytes, the manifest says 144"):
        broken.read()


def test_an_array_that_is_gone(store):
    reader = StoreReader(Storage(), store)
    fs, path = Storage().filesystem(f"{store}/part-00000/nodes/u/data/feat_0.npy")
    fs.rm_file(path)
    with pytest.raises(StorageError, match=r"feat_0\.npy: no such file or folder"):
        reader.array(0, "nodes/u/data/feat_0.npy").read()


# ---- many rows here and there


def array_at(url, values):
    with Storage() as storage, StoreWriter(storage, url) as writer:
        made = writer.open_array("part-00000", "a.npy", values.dtype, values.shape)
        made.append(values)
        entry = made.close()
        writer.publish(b"{}")
    storage = Storage()
    return ArrayReader(storage, storage.join(url, "part-00000/a.npy"), entry)


@pytest.fixture
def small_steps(monkeypatch):
    """Take so small steps that a little array needs many of each kind."""
    for name, value in {
        "_BLOCK_BYTES": 64,
        "_BATCH_BLOCKS": 3,
        "_MOST_JOINED": 2,
        "_CACHE_BYTES": 300,
        "_BATCH_ROWS": 40,
        "_SCAN_BYTES": 200,
        "_FAN_OUT": 3,
    }.items():
        monkeypatch.setattr(arrays, name, value)


@pytest.fixture(params=["local", "memory"])
def place(request, tmp_path):
    return str(tmp_path / "store") if request.param == "local" else f"memory://gather-{tmp_path.name}"


@pytest.mark.parametrize("shape", [(0,), (1,), (1000,), (301, 3)])
def test_runs_of_rows_are_those_of_the_array(place, shape, small_steps):
    chance = np.random.default_rng(1)
    values = chance.integers(0, 1 << 40, shape)
    reader = array_at(place, values)
    for _ in range(20):
        starts = chance.integers(0, shape[0] + 1, chance.integers(0, 60))
        stops = np.minimum(starts + chance.choice([0, 1, 2, 9, 200], starts.size), shape[0])
        expected = np.concatenate([values[:0], *(values[a:b] for a, b in zip(starts, stops, strict=True))])
        assert np.array_equal(reader.gather(starts, stops), expected)
        if shape[0]:
            rows = chance.integers(0, shape[0], 70)
            assert np.array_equal(reader.take(rows), values[rows])
            start = int(rows[0])
            assert np.array_equal(reader.read(start, start + 3), values[start : start + 3])


@pytest.mark.parametrize("size", [0, 1, 8, 9, 1000, 2048])
@pytest.mark.parametrize("share", [0.0, 0.003, 0.5])
def test_values_are_found_where_they_are(place, size, share, small_steps):
    chance = np.random.default_rng(size)
    values = np.unique(chance.integers(0, 1 << 62, size).astype(np.uint64))
    reader = array_at(place, values)
    there = values[chance.random(values.size) < share]
    wanted = np.sort(np.concatenate([there, values[:1], values[-1:], chance.integers(0, 1 << 62, 3).astype(np.uint64)]))
    found = reader.find_sorted(wanted)
    position = {int(value): i for i, value in enumerate(values)}
    assert found.tolist() == [position.get(int(value), -1) for value in wanted]


def test_a_remote_look_up_reads_few_blocks(tmp_path, monkeypatch):
    values = np.arange(0, 3_000_000, 3, dtype=np.uint64)
    reader = array_at(f"memory://gather-{tmp_path.name}", values)
    asked = []
    whole = Storage.read_ranges

    def count(self, url, ranges):
        asked.extend(ranges)
        return whole(self, url, ranges)

    monkeypatch.setattr(Storage, "read_ranges", count)
    assert reader.find_sorted(np.array([0, 1, 1_500_000, 2_999_997, 3_000_000], np.uint64)).tolist() == [
        0,
        -1,
        500_000,
        999_999,
        -1,
    ]
    assert sum(stop - start for start, stop in asked) < 50 * 65_536 < values.nbytes / 2
    asked.clear()
    assert reader.take(np.array([500_000, 500_001, 500_002])).tolist() == [1_500_000, 1_500_003, 1_500_006]
    assert asked == []  # read lately


def test_a_remote_array_that_became_shorter_since_its_size_was_seen(tmp_path, small_steps, monkeypatch):
    monkeypatch.setattr("graphprep.storage.retries._WAITS_S", (0, 0))
    url = f"memory://gather-{tmp_path.name}"
    reader = array_at(url, np.arange(1000, dtype=np.int64))
    assert reader.read(0, 1).tolist() == [0]
    fs, path = Storage().filesystem(reader.url)
    fs.pipe_file(path, fs.cat_file(path)[:4000])
    with pytest.raises(StorageError) as caught:
        reader.read(0, 1000)
    assert str(caught.value) == (
        f"{url}/part-00000/a.npy: the file ended after 4000 of 8128 bytes\n  fix: run again when it is complete"
    )


def test_a_document_of_this_process_that_was_changed_since_is_held_against_its_schema(store):
    assert StoreReader(Storage(), store).metadata.num_parts == 1
    change_metadata(store, num_parts="one")
    with pytest.raises(DataError, match=r"metadata\.json: num_parts: expected"):
        StoreReader(Storage(), store)
