"""Random inputs of every format: convert against the slow reference builder, byte by byte."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
from golden.golden_cases import read_store
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference.build import build_reference, file_bytes
from reference.readers import read_graph

from graphprep.convert import pipeline
from graphprep.model.options.convert import ConvertOptions

quick = settings(max_examples=15, deadline=None)


def assert_equals_reference(format_name: str, text: str, **options) -> None:
    """Convert a text file, and compare."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input"
        path.write_bytes(text.encode())
        compare(path, Path(folder) / "store", {"format": format_name, **options})


def compare(path: Path, store: Path, options: dict) -> None:
    pipeline.convert([str(path)], str(store), ConvertOptions(**options))
    graph = read_graph(options["format"], [path], options)
    expected = {name: file_bytes(value) for name, value in build_reference(graph, options).items()}
    got = read_store(store)
    if got != expected:  # metadata.json first: it says most
        assert got["metadata.json"].decode() == expected["metadata.json"].decode()
    assert sorted(got) == sorted(expected)
    assert [name for name in got if got[name] != expected[name]] == []


partitioning = st.fixed_dictionaries(
    {
        "partitions": st.integers(1, 4),
        "partition_by": st.sampled_from(["range", "hash", "modulo", "random"]),
        "seed": st.integers(0, 3),
        "layout": st.sampled_from(["csc", "csr", "both"]),
        "neighbor_order": st.sampled_from(["input", "id", "weight", "time"]),
        "edge_ids": st.booleans(),
        "block_bytes": st.sampled_from([0, 1, 40]),
    }
)
raw_ids = st.sampled_from([0, 1, 2, 3, 5, 9, 2**31, 2**40, 2**63 - 1, 2**63, 2**64 - 1])
weights = st.sampled_from(["0", "1", "-2.5", "0.1", "nan", "inf", "1e-50", "3"])


@quick
@given(edges=st.lists(st.tuples(raw_ids, raw_ids, weights), min_size=1, max_size=40), options=partitioning)
def test_sparse_ids_equal_the_reference(edges, options):
    text = "".join(f"{src},{dst},{weight}\n" for src, dst, weight in edges)
    assert_equals_reference("edges", text, ids="sparse", decoder_options={"weight_col": "2"}, **options)


@st.composite
def heterogeneous(draw):
    """DeepGNN JSON: nodes of up to three types in any order; features that are missing, ragged, text or sparse."""
    ids = draw(st.lists(raw_ids, min_size=1, max_size=8, unique=True))
    number = st.integers(-5, 5)
    rows = st.integers(1, 2).flatmap(
        lambda width: st.lists(st.lists(number, min_size=width, max_size=width), min_size=1, max_size=2)
    )
    dense = st.lists(number, max_size=3) | number | rows
    floats = st.lists(st.none() | number | st.sampled_from([0.1, -0.0, 1e-50]), max_size=3)
    dated = st.fixed_dictionaries(
        {"values": st.lists(number, max_size=2), "created_at": st.integers(0, 3)}, optional={"removed_at": number}
    )
    sparse = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 4)), max_size=3).map(
        lambda pairs: {"coordinates": [c for c, _ in pairs], "values": [v for _, v in pairs]}
    )
    dated_list = st.lists(dated, min_size=1, max_size=3)
    groups = {
        "int8_feature": dense | dated_list,
        "float_feature": floats | dense,
        "double_feature": dated_list,
        "binary_feature": st.text(max_size=4),
        "sparse_uint8_feature": sparse,
    }

    def features() -> dict:
        slots = draw(
            st.lists(st.tuples(st.sampled_from(sorted(groups)), st.integers(0, 4)), max_size=3, unique_by=lambda s: s[1])
        )
        out: dict = {}
        for group, slot in slots:
            out.setdefault(group, {})[str(slot)] = draw(groups[group])
        return out

    lines = []
    for i in ids:
        edges = [
            {"src_id": i, "dst_id": dst, "edge_type": draw(st.sampled_from([0, 2, 10])), "weight": draw(st.integers(-3, 3))}
            | features()
            for dst in draw(st.lists(st.sampled_from(ids), max_size=5))
        ]
        record = {"node_id": i, "node_type": draw(st.sampled_from([0, 1, 12])), "node_weight": 1.5, "edge": edges} | features()
        for one in (record, *edges):
            if draw(st.booleans()):
                one[draw(st.sampled_from(["created_at", "removed_at"]))] = draw(st.integers(0, 9))
        lines.append(json.dumps(record, ensure_ascii=False))
    return "\n".join(lines)


@quick
@given(text=heterogeneous(), options=partitioning)
def test_heterogeneous_json_equals_the_reference(text, options):
    assert_equals_reference("json", text, **options)


@st.composite
def edgelist_texts(draw):
    """DeepGNN EdgeList: node and edge lines in any order, over at most six nodes of two types."""
    ids = draw(st.lists(raw_ids, min_size=1, max_size=6, unique=True))
    tails = st.sampled_from(
        ["", ",int8,2,1,2", ",int8,1,-7", ",float32,0,binary,1,x", ",float64,1/2,3,4,0.1", ",bool,2,0,TRUE"]
    )
    nodes = [f"{i},-1,{draw(st.integers(0, 1))},{draw(weights)}{draw(tails)}" for i in ids]
    ends = st.tuples(st.sampled_from(ids), st.integers(0, 1), st.sampled_from(ids))
    edges = [f"{src},{kind},{dst},{draw(weights)}{draw(tails)}" for src, kind, dst in draw(st.lists(ends, max_size=20))]
    return "\n".join(draw(st.permutations(nodes + edges)))


@quick
@given(text=edgelist_texts(), options=partitioning)
def test_edgelist_equals_the_reference(text, options):
    assert_equals_reference("edgelist", text, **options)


@st.composite
def incomplete_edgelists(draw):
    """EdgeList with lifetimes, whose edges name nodes that have no line."""
    ids = draw(st.lists(raw_ids, min_size=1, max_size=6, unique=True))
    known = ids[: draw(st.integers(0, len(ids)))]
    times = st.tuples(st.integers(0, 4), st.sampled_from([-1, 0, 9]))
    lines = []
    for i in known:
        created, removed = draw(times)
        lines.append(f"{i},-1,{draw(st.integers(0, 1))},1,{created},{removed}{draw(st.sampled_from(['', ',int8,1,3']))}")
    for _ in range(draw(st.integers(0, 12))):
        created, removed = draw(times)
        lines.append(
            f"{draw(st.sampled_from(ids))},{draw(st.integers(0, 1))},{draw(st.sampled_from(ids))},2,{created},{removed}"
        )
    return "\n".join(draw(st.permutations(lines)))


@quick
@given(
    text=incomplete_edgelists(),
    policy=st.sampled_from([("drop", None), ("create", "0"), ("create", "5")]),
    partitions=st.integers(1, 3),
    order=st.sampled_from(["input", "time"]),
)
def test_missing_nodes_and_times_equal_the_reference(text, policy, partitions, order):
    decoder_options = {"temporal": True, "default_node_weight": None}
    assert_equals_reference(
        "edgelist",
        text,
        decoder_options=decoder_options,
        on_missing_node=policy[0],
        missing_node_type=policy[1],
        partitions=partitions,
        neighbor_order=order,
    )


tsv_values = {
    "f": st.sampled_from(["0.5", "-1e-3", "nan", "7"]),
    "d": st.sampled_from(["0.1", "inf"]),
    "i": st.integers(-(2**63), 2**63 - 1).map(str),
    "u8": st.integers(0, 255).map(str),
}
tsv_feature = st.one_of(
    st.just(""),
    st.text("ab:é ", max_size=4).map(lambda text: f"b:{text}"),
    *(
        st.lists(values, min_size=1, max_size=3).map(lambda v, code=code: f"{code}:{' '.join(v)}")
        for code, values in tsv_values.items()
    ),
)
tsv_cell = st.lists(tsv_feature, max_size=3).map(";".join)


@st.composite
def tsv_texts(draw):
    ids = draw(st.lists(raw_ids, min_size=1, max_size=6, unique=True))
    rows = []
    for i in ids:
        neighbors = []
        for dst in draw(st.lists(st.sampled_from(ids), max_size=4)):
            features = draw(tsv_cell)
            neighbors.append(f"{dst},{draw(st.integers(0, 2))},{draw(weights)}" + (f",{features}" if features else ""))
        cells = [str(i), draw(st.sampled_from(["", "0", "2"])), draw(weights), draw(tsv_cell), "|".join(neighbors)]
        rows.append("\t".join(cells).rstrip("\t") if draw(st.booleans()) else "\t".join(cells))
    return "\n".join(rows) + "\n"


@quick
@given(text=tsv_texts(), options=partitioning)
def test_tsv_equals_the_reference(text, options):
    assert_equals_reference("tsv", text, **options)


times = st.sampled_from(["", "5", "5.0", "1.25", "-3", "1e2"])
cells = {
    "int": st.integers(-9, 9).map(str),
    "large": st.integers(2**63 - 1, 2**63).map(str),
    "float": st.sampled_from(["0.5", "-1e3", "nan", "1e4"]),
    "text": st.sampled_from(["x", " y ", '"a,b"', '"say ""hi"""', "1x"]),
    "empty": st.just(""),
}


@st.composite
def csv_tables(draw):
    """A CSV edge list with a header and two further columns of mixed cells, and a weight that may be empty."""
    kinds = [draw(st.lists(st.sampled_from(sorted(cells)), min_size=1, max_size=2)) for _ in range(2)]
    lines = ["u,v,w,t,a,b"]
    for _ in range(draw(st.integers(1, 15))):
        src, dst = draw(st.integers(1, 9)), draw(st.integers(1, 9))
        further = [draw(st.sampled_from(kind).flatmap(cells.__getitem__)) for kind in kinds]
        lines.append(",".join([str(src), str(dst), draw(weights | st.just("")), draw(times), *further]))
    return "\n".join(lines)


@quick
@given(
    text=csv_tables(),
    ids=st.sampled_from(["auto", "dense", "sparse"]),
    index_base=st.integers(0, 1),
    relation=st.sampled_from([None, "r", "a:r:b", "a:r:a"]),
    options=partitioning,
)
def test_csv_tables_equal_the_reference(text, ids, index_base, relation, options):
    decoder_options = {"weight_col": "w", "time_col": "t", "time_unit": "ms", "index_base": index_base, "relation": relation}
    assert_equals_reference("edges", text, ids=ids, decoder_options=decoder_options, **options)


def test_a_header_without_rows_still_has_columns():
    assert_equals_reference("edges", "u,v,w,a\n", decoder_options={"weight_col": "w"})


# How a file of a feature lies: as a store has it, in the other byte order, column after column, or as text.
forms = st.sampled_from(["C", "swapped", "fortran"])


@st.composite
def chunked_graphs(draw):
    """Counts, edges and features of a chunked graph of two node types and up to three edge types, some of them empty."""
    counts = {"a": draw(st.integers(0, 5)), "b:x": draw(st.integers(1, 4))}
    edges = {}
    for src, relation, dst in draw(
        st.lists(st.sampled_from([("a", "r", "a"), ("a", "r", "b:x"), ("b:x", "s%", "a")]), unique=True)
    ):
        if counts[src] and counts[dst]:
            pair = st.tuples(st.integers(0, counts[src] - 1), st.integers(0, counts[dst] - 1))
            edges[src, relation, dst] = draw(st.lists(pair, max_size=8))
        else:
            edges[src, relation, dst] = []
    dtype = draw(st.sampled_from(["float16", "float32", "int8", "uint64", "bool", "complex64"]))
    shape = draw(st.sampled_from([(), (1,), (2, 2)]))
    files = st.lists(forms, min_size=1, max_size=3) | st.just(["csv"])
    features = draw(st.dictionaries(st.sampled_from(["x.y", "a", "z"]), files, min_size=1))
    return counts, edges, dtype, shape, features, draw(st.sampled_from(["csv", "numpy"])), draw(st.integers(1, 3))


def write_chunked_graph(folder: Path, graph) -> None:
    counts, edges, dtype, shape, features, form, num_chunks = graph
    folder.mkdir(exist_ok=True)
    names = {edge_type: ":".join(name.replace("%", "%25").replace(":", "%3A") for name in edge_type) for edge_type in edges}
    metadata: dict = {"node_type": list(counts), "num_nodes_per_type": list(counts.values()), "edge_type": list(names.values())}
    metadata["num_edges_per_chunk"] = [[len(pairs)] for pairs in edges.values()]
    metadata["edges"] = {}
    for number, (edge_type, name) in enumerate(names.items()):
        pieces = np.array_split(np.array(edges[edge_type], np.int64).reshape(-1, 2), num_chunks)
        paths = [f"edges-{number}-{piece}.{form}" for piece in range(num_chunks)]
        for path, rows in zip(paths, pieces, strict=True):
            np.save(folder / path, rows) if form == "numpy" else np.savetxt(folder / path, rows, "%d", "\t")
        paths = [f"{path}.npy" for path in paths] if form == "numpy" else paths
        metadata["edges"][name] = {"format": {"name": form, "delimiter": "\t"}, "data": paths}
    sizes = {"node_data": counts, "edge_data": {names[edge_type]: len(pairs) for edge_type, pairs in edges.items()}}
    for key, owners in sizes.items():
        metadata[key] = {
            name: {
                feature: write_feature(folder, f"{key}-{number}-{feature}", files, (count, *shape), dtype)
                for feature, files in features.items()
            }
            for number, (name, count) in enumerate(owners.items())
        }
    (folder / "metadata.json").write_text(json.dumps(metadata))


def write_feature(folder: Path, stem: str, files: list[str], shape: tuple[int, ...], dtype: str) -> dict:
    """Write the files of a feature as ``files`` says, of about equally many rows; return the metadata's entry."""
    values = (np.arange(int(np.prod(shape))) % 3).astype(dtype).reshape(shape)
    if files == ["csv"]:
        np.savetxt(folder / stem, values.real.reshape(shape[0], int(np.prod(shape[1:]))).astype(int), "%d", ",")
        return {"format": {"name": "csv"}, "data": [stem]}
    paths = [f"{stem}-{number}.npy" for number in range(len(files))]
    cuts = [number * shape[0] // len(files) for number in range(1, len(files))]  # of few rows, the first files have none
    for path, form, rows in zip(paths, files, np.split(values, cuts), strict=True):
        stored = rows.astype(rows.dtype.newbyteorder("S")) if form == "swapped" else rows
        np.save(folder / path, np.asfortranarray(stored) if form == "fortran" else stored)
    return {"format": {"name": "numpy"}, "data": paths}


def two_types(num_a: int, features: dict[str, list[str]]):
    """A chunked graph with ``num_a`` nodes of type "a" and as many edges among them."""
    pairs = [(node, 0) for node in range(num_a)]
    return {"a": num_a, "b:x": 1}, {("a", "r", "a"): pairs}, "float32", (2, 2), features, "numpy", 1


@quick
@given(graph=chunked_graphs(), options=partitioning)
@example(graph=two_types(4, {"x.y": ["C", "swapped"], "a": ["C", "fortran", "C"]}), options={})
@example(graph=two_types(1, {"x.y": ["C", "swapped"], "a": ["C", "fortran"]}), options={})  # the first file is empty
@example(graph=two_types(0, {"z": ["csv"], "x.y": ["swapped"], "a": ["C"]}), options={})  # a type without rows
def test_chunked_equals_the_reference(graph, options):
    with tempfile.TemporaryDirectory() as folder:
        write_chunked_graph(Path(folder, "graph"), graph)
        compare(Path(folder, "graph"), Path(folder, "store"), {"format": "chunked", **options})
