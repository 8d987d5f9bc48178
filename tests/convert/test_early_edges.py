"""Edges that are scattered while they are decoded: the same stores, errors and raw edges as when that waits."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.convert import pipeline
from graphprep.convert import run as run_parts
from graphprep.convert.decoded.early_edges import EarlyEdges, EarlyRules, EarlyScatterer, Marks
from graphprep.convert.read import decode as decode_stage
from graphprep.convert.shuffle import route_edges
from graphprep.convert.shuffle.adopt_edges import adopt_edges
from graphprep.edges.buckets import scatter_all
from graphprep.kernels.cpu.edges import kernels
from graphprep.kernels.edges import Packing
from graphprep.model.errors import DataError, GraphprepError
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.run_options import RunOptions
from graphprep.storage.spill.runs import SpillPool

RULES = EarlyRules(kernels, owner_side=1, group_bytes=100, most_edges=1, mark_bytes=1 << 20)


def _batches(rng, sizes, highs) -> list[tuple[np.ndarray, np.ndarray]]:
    return [
        tuple(rng.integers(0, high + 1, size).astype(np.uint32) for _ in range(2))
        for size, high in zip(sizes, highs, strict=True)
    ]


def _highs(batches) -> tuple[int, ...]:
    return tuple(max(int(ends[side].max(initial=0)) for ends in batches) for side in range(2))


@given(
    owners=st.lists(st.integers(0, 2**14 - 1), max_size=60),
    shift=st.integers(0, 14),
    spare=st.integers(0, 20),
    seed=st.integers(0, 9),
)
@settings(max_examples=60, deadline=None)
def test_what_is_scattered_out_comes_back_in_order(owners, shift, spare, seed):
    rng = np.random.default_rng(seed)
    ends = [np.array(owners, np.uint32), rng.integers(0, 2**20, len(owners)).astype(np.uint32)]
    packing = Packing(20, 44 - max(1, shift) - spare)
    words, offsets = scatter_all(kernels, [tuple(ends)], packing, shift, (2**14 >> shift) + 1)
    found = np.empty((2, len(owners)), np.uint32)
    kernels.gather_edges(words, packing, shift, offsets, *found)
    assert all((one == other).all() for one, other in zip(found, ends, strict=True))


@pytest.mark.parametrize("owner_side", [0, 1])
@pytest.mark.parametrize("cap_bytes", [0, 300, 1 << 20])
def test_segments_with_growing_ids_settle_on_the_widest_buckets(tmp_path, owner_side, cap_bytes):
    rng = np.random.default_rng(4)
    highs = [3, 70, 5_000, 90, 70_000, 1_000_000, 2]
    batches = _batches(rng, [5, 40, 100, 0, 200, 300, 9], highs)
    with SpillPool(cap_bytes, str(tmp_path)) as pool:
        early = EarlyEdges.begin(EarlyRules(kernels, owner_side, 100, 1, 1 << 20), pool, is_one_type=False)
        first = 0
        for some in (batches[:1], batches[1:2], batches[2:4], batches[4:5], batches[5:6], batches[6:]):
            segment = early.scatterer.scatter(some, _highs(some), 100)
            assert segment is not None
            early.add(segment, first)
            first += sum(src.size for src, _ in some)
        for (src, dst), found in zip([ends for ends in batches if ends[0].size], early.read(), strict=True):
            assert (found[0] == src).all()
            assert (found[1] == dst).all()
        for side in range(2):
            ids = np.concatenate([ends[side] for ends in batches])
            bits = early.scatterer.marks(side).merged(1 << 17)
            assert np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist() == np.unique(ids).tolist()
        shift = early.settle(1_000_001, 4)
        owners = np.concatenate([ends[owner_side] for ends in batches])
        assert shift == int(owners.max()).bit_length() - 10
        assert early.runs.num_records.tolist() == np.bincount(owners >> shift, minlength=(1_000_000 >> shift) + 1).tolist()


def test_ids_that_leave_no_room_are_not_scattered_out():
    for ids in ([2**31], [2**30 - 1, 2**29]):
        many = np.repeat(np.array(ids, np.uint32), 2**14 + 1)
        scatterer = EarlyScatterer(RULES, is_one_type=True)
        assert scatterer.scatter([(many, many)], _highs([(many, many)]), 100) is None
        assert scatterer.is_stopped


def test_few_edges_between_many_nodes_are_not_scattered_out():
    ids = np.array([10_000, 5], np.uint32)
    for total_bytes, stops in ((0, False), (1_000, True), (1_000_000, False)):
        scatterer = EarlyScatterer(EarlyRules(kernels, 1, 100, 1, 100, total_bytes), is_one_type=True)
        assert (scatterer.scatter([(ids, ids)], (10_000, 10_000), 20) is None) == stops == scatterer.is_stopped


def test_an_early_segment_may_have_too_few_bits_in_the_end(tmp_path):
    with SpillPool(1 << 20, str(tmp_path)) as pool:
        early = EarlyEdges.begin(RULES, pool, is_one_type=True)
        wide = np.full(2**13, 2**27 - 1, np.uint32)
        segment = early.scatterer.scatter([(wide, wide)], (2**27 - 1, 2**27 - 1), 100)
        early.add(segment, 0)
        assert early.settle(2**28, 28) is None
        assert next(early.read())[0].tolist() == wide.tolist()
        assert early.settle(2**28, 18) == 18


def test_marks_beyond_their_room_are_given_up():
    marks = Marks(200)
    marks.add([np.array([5, 700], np.uint32)], 700)
    assert marks.is_complete
    marks.add([np.array([2**20], np.uint32)], 2**20)
    assert not marks.is_complete


def _convert(text: str, folder: Path, monkeypatch, *, early: bool, group_bytes: int = 300, **options) -> dict[str, bytes]:
    path = folder / "edges.txt"
    path.write_text(text)
    monkeypatch.setattr(decode_stage, "_MOST_GROUP", group_bytes)
    monkeypatch.setattr(decode_stage, "_LEAST_EARLY", 1)
    if not early:
        monkeypatch.setattr(decode_stage, "_early_rules", lambda *_: None)
    out = folder / f"store-{early}"
    run = RunOptions(threads=options.pop("threads", 2), memory_limit="512MiB")
    pipeline.convert([str(path)], str(out), ConvertOptions(run=run, block_bytes=100, overwrite=True, **options))
    files = {str(file.relative_to(out)): file.read_bytes() for file in out.rglob("*") if file.is_file()}
    assert json.loads(files.pop("provenance.json"))
    return files


def _lines(rng, count: int, high: int) -> list[str]:
    return [f"{src} {dst}" for src, dst in np.sort(rng.integers(0, high + 1, (count, 2)), axis=0).tolist()]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"partitions": 7},
        {"layout": "csr", "partitions": 3, "threads": 1},
        {"layout": "both"},
        {"neighbor_order": "id", "threads": 3},
        {"edge_ids": False, "num_nodes": {"": 9_000}},
        {"ids": "sparse"},
        {"partition_by": "hash", "partitions": 2},
        {"decoder_options": {"relation": "user:likes:item"}},
    ],
)
@pytest.mark.parametrize("late", ["", "# a remark\n\n 5\t7 \n", "4000000000 1\n", "18446744073709551615 1\n"])
def test_stores_do_not_tell_when_edges_were_scattered_out(tmp_path, monkeypatch, options, late):
    """``late`` is the first line that ends what could be done at once, or is unusual."""
    if "num_nodes" in options and late[:1].isdigit():
        options = {}
    rng = np.random.default_rng(8)
    text = "\n".join([*_lines(rng, 500, 8_000), late + "1 2", *_lines(rng, 300, 8_500)]) + "\n"
    wanted = _convert(text, tmp_path, monkeypatch, early=True, **options)
    assert _convert(text, tmp_path, monkeypatch, early=False, **options) == wanted


def test_buckets_that_came_out_too_large_are_cut(tmp_path, monkeypatch):
    rng = np.random.default_rng(9)
    monkeypatch.setattr("graphprep.edges.build.EDGE_BYTES", 1 << 16)
    text = "".join(f"{src} {dst}\n" for src, dst in (rng.integers(0, 60, (4_000, 2)) ** 2).tolist())
    for options in ({}, {"neighbor_order": "id", "partitions": 3}):
        wanted = _convert(text, tmp_path, monkeypatch, early=True, **options)
        assert _convert(text, tmp_path, monkeypatch, early=False, **options) == wanted


@pytest.mark.parametrize("group_bytes", [100, 10_000])
@pytest.mark.parametrize("faults", [(250,), (60, 250), (250, 251, 260)])
def test_the_first_fault_is_told(tmp_path, monkeypatch, group_bytes, faults):
    lines = [f"{row} {row + 1}" for row in range(400)]
    for row in faults:
        lines[row] = "1 x"
    with pytest.raises(DataError) as found:
        _convert("\n".join(lines) + "\n", tmp_path, monkeypatch, early=True, group_bytes=group_bytes)
    assert found.value.place.endswith(f"edges.txt:{faults[0] + 1}:3")


@pytest.mark.parametrize("group_bytes", [100, 10_000])
def test_rejected_lines_count_in_input_order(tmp_path, monkeypatch, group_bytes):
    """One too many before a line that is too long for the memory limit is what ends the run."""
    lines = [f"{row} {row + 1}" for row in range(400)]
    lines[100] = lines[200] = "1 x"
    lines[210] = "# " + "x" * 5_000
    monkeypatch.setattr(run_parts, "record_bytes", lambda limit_bytes: 512)
    with pytest.raises(GraphprepError, match="more than 1 bad records") as found:
        _convert(
            "\n".join(lines) + "\n",
            tmp_path,
            monkeypatch,
            early=True,
            group_bytes=group_bytes,
            on_error="skip",
            max_errors=1,
        )
    assert "memory" not in found.value.message


def test_blocks_without_edges_are_no_obstacle(tmp_path, monkeypatch):
    """Of rejected lines nothing is left; comments hold no edges."""
    adopted = []
    monkeypatch.setattr(route_edges, "adopt_edges", lambda routing: adopted.append(adopt_edges(routing)) or adopted[-1])
    edges = [f"{row} {row + 1}\n" for row in range(100)]
    text = "".join([*edges, *["1 x\n"] * 60, *edges, *["# 1 x\n"] * 60, *edges])
    found = _convert(text, tmp_path, monkeypatch, early=True, on_error="skip")
    assert adopted == [True]
    assert _convert(text, tmp_path, monkeypatch, early=False, on_error="skip") == found


def test_a_node_beyond_the_stated_number_is_placed(tmp_path, monkeypatch):
    lines = [f"{row} {row + 1}" for row in range(400)]
    with pytest.raises(DataError, match="node 301 is outside") as found:
        _convert("\n".join(lines) + "\n", tmp_path, monkeypatch, early=True, num_nodes={"": 301})
    assert found.value.place.endswith("edges.txt:301:5")
