"""Random edge lists with labels and splits: convert against the slow reference builder, byte by byte."""

from __future__ import annotations

import tempfile
from pathlib import Path

from golden.golden_cases import read_store
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.build import build_reference, file_bytes
from reference.readers import read_graph

from graphprep.convert.pipeline import convert
from graphprep.model.options.convert import ConvertOptions

labels = st.sampled_from(["", "a", "Z", "é", "10", "aa", "word of many bytes"])
parts = st.sampled_from(["", "train", "VALID", "val", "Test", "0", "2"])
masks = st.sampled_from(["1,0,0", "0,1,0", "0,0,1", "0,0,0", ",,"])
fractions = st.sampled_from(["0.8/0.1/0.1", "0.5/0/0.25", "0/1/0", "0.1/0.1/0.1"])
raw_ids = st.sampled_from([0, 1, 2, 3, 9, 2**40, 2**63, 2**64 - 1])


@settings(max_examples=25, deadline=None)
@given(
    edges=st.lists(st.tuples(raw_ids, raw_ids, labels, parts, masks), min_size=1, max_size=25),
    split=st.one_of(st.just("part"), st.just("tr,va,te"), st.just(",va,te"), fractions),
    nodes=fractions,
    seeds=st.lists(st.integers(0, 30), max_size=4),
    types=st.sampled_from(["_N:_E:_N", "a:r:b"]),
    options=st.fixed_dictionaries(
        {
            "partitions": st.integers(1, 3),
            "partition_by": st.sampled_from(["range", "hash", "random"]),
            "layout": st.sampled_from(["csc", "csr", "both"]),
            "neighbor_order": st.sampled_from(["input", "id"]),
            "seed": st.integers(0, 3),
            "block_bytes": st.sampled_from([0, 1, 60]),
        }
    ),
)
def test_labels_splits_and_seeds_equal_the_reference(edges, split, nodes, seeds, types, options):
    with tempfile.TemporaryDirectory() as folder:
        path, out, listed = Path(folder, "input.csv"), Path(folder, "store"), Path(folder, "seeds.txt")
        lines = "".join(",".join(map(str, edge)) + "\n" for edge in edges)
        path.write_text(f"src,dst,kind,part,tr,va,te\n{lines}", "utf-8")
        owner = types.partition(":")[0]
        ends = [end for edge in edges for end in edge[: 2 if types == "_N:_E:_N" else 1]]
        listed.write_text("".join(f"{ends[at % len(ends)]}\n" for at in seeds))
        flags = {
            "labels": (f"{types}:kind",),
            "splits": (f"{types}:{split}", f"{owner}:{nodes}"),
            "seeds": (f"{owner}={listed}",),
        }
        decoder_options = {"header": "yes", "relation": types}
        options = {"format": "edges", "ids": "sparse", "decoder_options": decoder_options, **options, **flags}
        convert([str(path)], str(out), ConvertOptions(**options))
        graph = read_graph("edges", [path], options)
        expected = {name: file_bytes(value) for name, value in build_reference(graph, options).items()}
        got = read_store(out)
    assert got["metadata.json"].decode() == expected["metadata.json"].decode()
    assert sorted(got) == sorted(expected)
    assert [name for name in got if got[name] != expected[name]] == []
