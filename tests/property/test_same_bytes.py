"""The same bytes for any number of threads, block size, memory limit, split of the input and compression."""

from __future__ import annotations

import bz2
import gzip
import itertools
import json
import lzma
import random
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from golden.golden_cases import Case, load_cases, read_store
from reference.build import build_reference, file_bytes
from reference.readers import read_graph

from graphprep import context
from graphprep.convert import pipeline
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.run_options import RunOptions

# One case a format and trait: features, two layouts, times, created nodes, skipped records, file partitions, tables.
NAMES = [
    "dtypes_edgelist",
    "edges_columns",
    "edges_parquet",
    "edges_tsv_hash",
    "edges_wide_ids",
    "faulty_edges",
    "faulty_json",
    "shop_chunked_parts",
    "shop_create_in_type",
    "shop_edgelist_both_parts",
    "shop_json_random",
    "shop_temporal_json",
    "shop_tsv_modulo",
]
CASES = {case.name: case for case in load_cases()}
BLOCK_SIZES = (1, 64, 1000)


def run(case: Case, out: Path, *, inputs: list[Path] | None = None, block_bytes: int = 0, **run_options) -> dict[str, bytes]:
    options = ConvertOptions(**case.resolved_options())
    options = replace(options, block_bytes=block_bytes, run=RunOptions(**run_options), overwrite=True)
    pipeline.convert([str(path) for path in inputs or case.input_paths], str(out), options)
    return read_store(out)


@pytest.mark.parametrize("name", NAMES)
def test_threads_and_blocks(name, tmp_path):
    expected = read_store(CASES[name].store)
    for threads, block_bytes in zip(itertools.cycle((1, 2, 4)), BLOCK_SIZES, strict=False):
        assert run(CASES[name], tmp_path / "store", threads=threads, block_bytes=block_bytes) == expected, (
            threads,
            block_bytes,
        )


@pytest.fixture
def starve(monkeypatch):
    """Leave the stages next to no memory, so that every run spills and a few nodes are a bucket."""
    plan_memory = context.plan_memory

    def starve_to(pool_bytes: int, cap_bytes: int, bucket_bytes: int) -> None:
        sizes = {"pool_bytes": pool_bytes, "cap_bytes": cap_bytes, "bucket_bytes": bucket_bytes, "task_bytes": bucket_bytes}
        monkeypatch.setattr(context, "plan_memory", lambda *given, **more: plan_memory(*given, **more)._replace(**sizes))

    return starve_to


@pytest.mark.parametrize("name", NAMES)
def test_spilled_runs_and_small_buckets(name, starve, tmp_path):
    starve(1, 1, 1 << 10)
    assert run(CASES[name], tmp_path / "store", threads=2, block_bytes=200) == read_store(CASES[name].store)


def test_memory_limit(tmp_path):
    case = CASES["shop_json_random"]
    assert run(case, tmp_path / "store", memory_limit="90%") == read_store(case.store)
    assert run(case, tmp_path / "store", memory_limit="300MiB") == read_store(case.store)


def write_larger_graph(folder: Path) -> list[Path]:
    """JSON of 700 nodes of three types with gaps in their IDs, a hub, and features; in two files."""
    draw = random.Random(9)
    ids = draw.sample(range(10**12), 700)
    lines = []
    for i, node in enumerate(ids):
        ends = [ids[0] if draw.random() < 0.3 else draw.choice(ids) for _ in range(draw.randrange(12))]
        edges = [
            {
                "src_id": node,
                "dst_id": dst,
                "edge_type": dst % 2,
                "weight": draw.randrange(5),
                "int16_feature": {"0": [k] * (k % 3)},
            }
            for k, dst in enumerate(ends)
        ]
        features = {"float_feature": {"0": [draw.random(), i]}, "binary_feature": {"2": "x" * (i % 7)} if i % 3 else {}}
        lines.append(json.dumps({"node_id": node, "node_type": i % 3, "node_weight": 1, "edge": edges} | features))
    return write_split([line.encode() for line in lines], [300], folder)


@pytest.mark.parametrize("bucket_bytes", [1 << 9, 1 << 12, 1 << 17])
@pytest.mark.parametrize(
    "options",
    [
        {"neighbor_order": "input", "partitions": 3, "partition_by": "random"},
        {"neighbor_order": "input", "partitions": 2, "layout": "csr"},
        {"neighbor_order": "input", "layout": "both"},
        {"neighbor_order": "id", "layout": "both", "partitions": 2, "partition_by": "modulo"},
        {"neighbor_order": "weight", "partitions": 5, "partition_by": "hash", "layout": "both"},
    ],
    ids=["csc", "csr", "both", "both by id", "both by weight"],
)
def test_a_larger_graph_spilled_equals_the_reference(options, bucket_bytes, starve, tmp_path):
    starve(1 << 14, 1 << 12, bucket_bytes)
    paths = write_larger_graph(tmp_path)
    case = Case("larger", (), {"format": "json", **options})
    reference = build_reference(read_graph("json", paths, case.options), case.options)
    expected = {path: file_bytes(value) for path, value in reference.items()}
    got = run(case, tmp_path / "store", inputs=paths, threads=3, block_bytes=5000)
    assert sorted(got) == sorted(expected)
    assert [path for path in got if got[path] != expected[path]] == []


def write_split(lines: list[bytes], cuts: list[int], folder: Path) -> list[Path]:
    """Cut lines into files at ``cuts``; the last line of a file lacks its line feed."""
    paths = []
    for number, (start, stop) in enumerate(itertools.pairwise([0, *sorted(cuts), len(lines)])):
        path = folder / f"piece-{number:02d}.txt"
        path.write_bytes(b"\n".join(lines[start:stop]))
        paths.append(path)
    return paths


@pytest.mark.parametrize("name", ["edges_plain", "shop_edgelist", "shop_json", "shop_tsv", "shop_temporal_edgelist"])
@pytest.mark.parametrize("seed", range(3))
def test_input_split_into_files(name, seed, tmp_path):
    case = CASES[name]
    lines = case.input_paths[0].read_bytes().removesuffix(b"\n").split(b"\n")
    draw = random.Random(seed)
    cuts = [draw.randrange(len(lines) + 1) for _ in range(draw.randrange(1, 6))]
    paths = write_split(lines, cuts, tmp_path)
    assert run(case, tmp_path / "store", inputs=paths, threads=2, block_bytes=draw.choice(BLOCK_SIZES)) == read_store(
        case.store
    )


COMPRESSORS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("name", ["edges_tsv_hash", "shop_edgelist", "shop_json", "shop_tsv"])
@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_compressed_input(name, suffix, tmp_path):
    """The content decides, so the name says nothing of the compression here."""
    path = tmp_path / "input"
    path.write_bytes(COMPRESSORS[suffix](CASES[name].input_paths[0].read_bytes()))
    assert run(CASES[name], tmp_path / "store", inputs=[path], block_bytes=300) == read_store(CASES[name].store)


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_compressed_samples_are_the_plain_sample(suffix, sample_data, tmp_path):
    case = CASES["edges_plain"]
    path = sample_data / f"edges/plain.txt.{suffix}"
    assert run(case, tmp_path / "store", inputs=[path]) == read_store(case.store)


def test_lines_of_a_deepgnn_format_need_no_order(tmp_path):
    """Node lines and edge lines shuffled: only edge IDs may follow the input, so edges keep their own order here."""
    case = CASES["shop_edgelist"]
    lines = case.input_paths[0].read_bytes().splitlines()
    nodes = [line for line in lines if line.split(b",")[1] == b"-1"]
    edges = [line for line in lines if line.split(b",")[1] != b"-1"]
    random.Random(1).shuffle(nodes)
    paths = write_split(edges + nodes, [7, len(edges) + 3], tmp_path)
    assert run(case, tmp_path / "store", inputs=paths, threads=2, block_bytes=100) == read_store(case.store)


def test_a_bom_and_crlf_change_nothing(tmp_path):
    for name in ("edges_plain", "shop_edgelist", "shop_json", "shop_tsv"):
        path = tmp_path / "input"
        path.write_bytes(b"\xef\xbb\xbf" + CASES[name].input_paths[0].read_bytes().replace(b"\n", b"\r\n"))
        assert run(CASES[name], tmp_path / "store", inputs=[path], block_bytes=90) == read_store(CASES[name].store), name
