"""``validate`` of stores whose raw IDs are strings or negative: sound ones, and ones that are spoiled in every way."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_store import raw_store, splitmix64, text_arrays, text_hash

from graphprep.kernels.cpu.text.check import find_not_above, find_not_utf8
from graphprep.model.rows import RawTexts
from graphprep.model.run_options import RunOptions
from graphprep.storage.read.urls import Storage
from graphprep.validate import edges as check_edges
from graphprep.validate import nodes as check_nodes
from graphprep.validate import offsets as check_offsets
from graphprep.validate import texts as check_texts
from graphprep.validate.check import check_store

NAMES = ["a", "ab", "b", "c" * 50, "é", "日本", "\U0001f600"]
SIGNED = [-(2**63), -12, -1, 0, 7, 2**63 - 1]
PAIRS = ((0, 1), (1, 0), (3, 2), (0, 0), (5, 4), (5, 4))
OFFSETS, VALUES = "nodes/name/raw_ids.offsets.npy", "nodes/name/raw_ids.values.npy"
METHODS = [(NAMES, name) for name in ("range", "hash", "random")]
METHODS += [(SIGNED, name) for name in ("range", "hash", "random", "modulo")]


class Silent:
    def stage(self, name, *, total_bytes=None, total_records=None): ...
    def advance(self, *, records=0, num_bytes=0): ...
    def message(self, text): ...


def faults_of(folder, max_faults=20):
    options = RunOptions(memory_limit="64MiB", threads=1)
    return [str(fault) for fault in check_store(Storage(), str(folder), Silent(), options, max_faults=max_faults).faults]


def sized(store, method, num_parts):
    """Random cuts like range: make the hand-made partitions of these sizes legal by calling them made by a file."""
    if method == "random" and num_parts > 1:
        store.metadata["partition_by"] = "file"
    return store


@pytest.mark.parametrize("num_parts", [1, 3])
@pytest.mark.parametrize(("raw_ids", "method"), METHODS)
@pytest.mark.parametrize("small", [False, True])
def test_sound_stores_have_no_faults(tmp_path, monkeypatch, raw_ids, method, num_parts, small):
    if small:
        sizes = ((check_texts, "_ROWS", 2), (check_texts, "_BYTES", 3), (check_texts, "_LEAST_BYTES", 1))
        for module, name, size in (
            *sizes,
            (check_offsets, "_SLICE", 2),
            (check_nodes, "_SLICE", 1),
            (check_edges, "_SLICE", 2),
        ):
            monkeypatch.setattr(module, name, size)
    store, _ = raw_store(raw_ids, num_parts, method, PAIRS)
    assert faults_of(sized(store, method, num_parts).write(tmp_path / "store")) == []


def replace_part(part, texts):
    """Put other raw IDs into a partition."""

    def spoil(store):
        offsets, values = text_arrays([text for text in texts if isinstance(text, str)]) if texts else (None, None)
        if any(isinstance(text, bytes) for text in texts):
            offsets = np.array([0, *np.cumsum([len(text) for text in texts])], np.int64)
            values = np.frombuffer(b"".join(texts), np.uint8)
        store.parts[part] |= {OFFSETS: offsets, VALUES: values}

    return spoil


def put(path, index, value):
    def spoil(store):
        array = store.parts[0][path].copy()
        array[index] = value
        store.parts[0][path] = array

    return spoil


ROW = "part-0000{}/nodes/name/raw_ids.offsets.npy[{}]"
# "range" over three partitions holds: a ab b | cccc… é | 日本 😀
SPOILED = {
    "offsets begin": ("range", put(OFFSETS, 0, 1), [ROW.format(0, 0) + ": expected 0, found 1"]),
    "offsets fall": (
        "range",
        put(OFFSETS, 1, 4),
        [ROW.format(0, 2) + ": expected at least 4, the one before, found 3"],
    ),
    "offsets end": ("range", put(OFFSETS, 3, 5), [ROW.format(0, 3) + ": expected 4, the number of values, found 5"]),
    "order": (
        "range",
        replace_part(0, ["a", "b", "ab"]),
        [ROW.format(0, 2) + ": expected a raw ID above 'b', the one before, found 'ab'"],
    ),
    "twice": (
        "range",
        replace_part(0, ["a", "b", "b"]),
        [ROW.format(0, 2) + ": expected a raw ID above 'b', the one before, found 'b'"],
    ),
    "ranges overlap": (
        "range",
        replace_part(1, ["b", "é"]),
        [ROW.format(1, 0) + ": expected a raw ID above 'b', the last one of the partition before, found 'b'"],
    ),
    "not UTF-8": ("range", replace_part(0, [b"a", b"b\xe9", b"c"]), [ROW.format(0, 1) + ": expected UTF-8, found 'b\ufffd'"]),
    "half a letter each": (
        "range",
        replace_part(0, [b"a", b"b\xc3", b"\xa9"]),
        [ROW.format(0, 1) + ": expected UTF-8, found 'b\ufffd'", ROW.format(0, 2) + ": expected UTF-8, found '\ufffd'"],
    ),
    "another name": ("range", replace_part(0, ["a", "ab", "bb"]), []),
    "modulo": (
        "range",
        lambda store: store.metadata.update(partition_by="modulo"),
        ["metadata.json: node_schema.name.raw_ids: expected integers, as partition_by modulo places them, found string"],
    ),
}


@pytest.mark.parametrize("case", SPOILED)
def test_spoiled_texts(tmp_path, case):
    method, spoil, wanted = SPOILED[case]
    store, _ = raw_store(NAMES, 3, method, PAIRS)
    spoil(store)
    found = faults_of(store.write(tmp_path / "store"))
    if case in ("offsets fall", "offsets end", "modulo"):  # names cannot be read, or are as they were
        assert found == wanted
        return
    assert found[:-1] == wanted
    assert found[-1] == checksum_fault(store)


def checksum_fault(store):
    """Say what is wrong with the checksum where raw IDs are not those that it was made of."""
    hashes = []
    for arrays in store.parts:
        ends, data = arrays[OFFSETS].tolist(), arrays[VALUES].tobytes()
        hashes += [text_hash(data[start:stop]) for start, stop in itertools.pairwise(ends)]
    total = sum(splitmix64(hashes[src] ^ splitmix64(hashes[dst])) for src, dst in PAIRS) % 2**64
    stated = store.metadata["edge_schema"]["name:to:name"]["checksum"]
    place = "metadata.json: edge_schema.name:to:name.checksum"
    return f"{place}: expected {total:016x}, the checksum of the edges, found {stated}"


def test_a_name_in_the_wrong_partition(tmp_path):
    store, typed = raw_store(NAMES, 2, "hash", PAIRS)
    count = store.metadata["num_nodes_per_chunk"][0][0]
    stranger = next(name for name in map("z{}".format, range(99)) if text_hash(name) % 2)
    replace_part(0, sorted([*typed[: count - 1], stranger], key=str.encode))(store)
    row = sorted([*typed[: count - 1], stranger], key=str.encode).index(stranger)
    wanted = f"{ROW.format(0, row)}: raw ID {stranger!r} belongs to partition 1 (partition_by hash), found in 0"
    assert faults_of(store.write(tmp_path / "store"), 1) == [wanted]


@pytest.mark.parametrize("most_bytes", [1, 1 << 20])
def test_a_name_in_two_partitions(tmp_path, monkeypatch, most_bytes):
    monkeypatch.setattr(check_texts, "_BYTES", most_bytes)
    monkeypatch.setattr(check_texts, "_LEAST_BYTES", most_bytes)
    store, typed = raw_store([f"n{i:02}" for i in range(40)], 4, "random", ((0, 0),))
    store.metadata["partition_by"] = "file"
    bounds = np.cumsum([0, *store.metadata["num_nodes_per_chunk"][0]]).tolist()
    other = typed[bounds[2] + 3]
    first = sorted([*typed[: bounds[1] - 1], other])
    replace_part(0, first)(store)
    found = faults_of(store.write(tmp_path / "store"))
    assert f"{ROW.format(2, 3)}: raw ID {other!r} stands in another partition too" in found


def test_negative_ids_in_the_wrong_place(tmp_path):
    store, _ = raw_store(SIGNED, 3, "modulo", PAIRS)
    path = "nodes/name/raw_ids.npy"
    spoiled = store.parts[0][path].copy()
    spoiled[0] -= np.int64(-1)
    store.parts[0][path] = spoiled
    (fault,) = faults_of(store.write(tmp_path / "store"), 1)
    home = int(spoiled[0]) % 3
    assert fault == f"part-00000/{path}[0]: raw ID {spoiled[0]} belongs to partition {home} (partition_by modulo), found in 0"


texts = st.lists(st.sampled_from([b"", b"a", b"ab", b"\xc3", b"\xa9", b"\xc3\xa9", b"\xed\xa0\x80"]) | st.binary(max_size=5))


def is_utf8(text):
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


@settings(deadline=None, max_examples=100)
@given(texts)
def test_kernels_agree_with_python(texts):
    held = RawTexts.of(texts)
    assert find_not_utf8(held.offsets, held.values).tolist() == [not is_utf8(text) for text in texts]
    assert find_not_above(held.offsets, held.values).tolist() == [
        i > 0 and texts[i - 1] >= text for i, text in enumerate(texts)
    ]
