"""IDs against a naive enumeration: every ID, every border, empty types and partitions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.model.errors import DataError, UsageError
from graphprep.model.ids import IDConverter, PartitionBook
from graphprep.model.metadata import GraphMetadata, PartEntry
from graphprep.model.schema import EdgeTypeSchema, NodeTypeSchema, edge_type_text

SHOP = {
    "node_type": ["user", "nobody", "item"],
    "num_nodes_per_chunk": [[2, 1], [0, 0], [3, 0]],
    "edge_type": ["user:buys:item", "user:a%3Ab:user"],
    "num_edges_per_chunk": [[3, 1], [0, 2]],
}


def without(key: str, **more: object) -> dict[str, object]:
    return {k: v for k, v in SHOP.items() if k != key} | more


@st.composite
def metadata(draw: st.DrawFn) -> dict[str, object]:
    num_parts = draw(st.integers(1, 4))
    chunk = st.lists(st.integers(0, 3), min_size=num_parts, max_size=num_parts)
    node_counts = draw(st.lists(chunk, min_size=1, max_size=5))
    edge_counts = draw(st.lists(chunk, max_size=5))
    return {
        "node_type": [f"t{i}" for i in range(len(node_counts))],
        "num_nodes_per_chunk": node_counts,
        "edge_type": [f"t0:r{i}:t0" for i in range(len(edge_counts))],
        "num_edges_per_chunk": edge_counts,
    }


def sides(value: dict[str, object]) -> list[tuple[str, list[str], list[list[int]]]]:
    return [
        ("n", value["node_type"], value["num_nodes_per_chunk"]),
        ("e", value["edge_type"], value["num_edges_per_chunk"]),
    ]


@settings(deadline=None, max_examples=60)
@given(value=metadata(), per_type=st.booleans())
def test_converter_agrees_with_enumeration(value, per_type):
    value = dict(value)
    if per_type:
        for side in ("nodes", "edges"):
            value[f"num_{side}_per_type"] = [sum(chunk) for chunk in value[f"num_{side}_per_chunk"]]
    counts = sides(value)
    if per_type:
        del value["num_nodes_per_chunk"], value["num_edges_per_chunk"]
    converter = IDConverter(value)
    for side, names, chunks in counts:
        het2hom, hom2het = getattr(converter, f"{side}id_het2hom"), getattr(converter, f"{side}id_hom2het")
        pairs = [(t, i) for t, chunk in enumerate(chunks) for i in range(sum(chunk))]
        for homo, (t, i) in enumerate(pairs):
            assert het2hom(names[t], i) == homo
            assert hom2het(homo) == (names[t], i)
            assert type(hom2het(homo)[1]) is int
            assert type(het2hom(t, np.int32(i))) is int
        types, typed = hom2het(np.arange(len(pairs), dtype=np.uint32))
        assert list(zip(types.tolist(), typed.tolist(), strict=True)) == pairs
        assert het2hom(types, typed).tolist() == list(range(len(pairs)))
        assert types.dtype == typed.dtype == np.int64
        with pytest.raises(DataError):
            hom2het(len(pairs))
        for t, chunk in enumerate(chunks):
            with pytest.raises(DataError):
                het2hom(names[t], sum(chunk))


@settings(deadline=None, max_examples=60)
@given(value=metadata())
def test_partition_book_agrees_with_enumeration(value):
    book = PartitionBook(value)
    for side, names, chunks in sides(value):
        space = book.nodes if side == "n" else book.edges
        per_type = book.map_to_per_ntype if side == "n" else book.map_to_per_etype
        to_part = book.map_to_homo_nid if side == "n" else book.map_to_homo_eid
        ranges = book.node_range if side == "n" else book.edge_range
        num_parts = len(chunks[0]) if chunks else 0
        expected = []  # (type, typed, partition, local) by part ID
        for part, t in product(range(num_parts), range(len(names))):
            first = sum(chunks[t][:part])
            assert ranges(part, names[t]) == (first, first + chunks[t][part])
            assert space.part_range(part, names[t]) == (len(expected), len(expected) + chunks[t][part])
            expected += [(t, first + local, part, local) for local in range(chunks[t][part])]
        for part_id, (t, typed, part, local) in enumerate(expected):
            assert per_type(part_id) == (t, typed)
            assert to_part(typed, names[t]) == part_id
            assert space.to_local(names[t], typed) == (part, local)
            assert space.from_local(names[t], part, local) == typed
            assert space.partition_of(names[t], typed) == part
            assert space.partition_of_part(part_id) == part
            assert type(to_part(typed, names[t])) is type(per_type(part_id)[0]) is int
        if not expected:
            continue
        types, typed, parts, local = (np.array(column) for column in zip(*expected, strict=True))
        assert np.array_equal(per_type(np.arange(len(expected))), (types, typed))
        assert np.array_equal(to_part(typed, types), np.arange(len(expected)))
        assert np.array_equal(space.to_local(types, typed), (parts, local))
        assert np.array_equal(space.from_local(types, parts, local), typed)
        assert np.array_equal(space.partition_of_part(np.arange(len(expected))), parts)
        for t, name in enumerate(names):
            mine = types == t
            assert np.array_equal(to_part(typed[mine], name), np.flatnonzero(mine))
            assert np.array_equal(space.to_local(name, typed[mine])[0], parts[mine])
        for bad in (-1, len(expected)):
            with pytest.raises(DataError):
                per_type(bad)


def test_names_of_types():
    converter = IDConverter(SHOP)
    assert converter.ntype2id("item") == 2
    assert converter.ntype2id(["item", "user"]).tolist() == [2, 0]
    assert converter.id2ntype(1) == "nobody"
    assert converter.id2ntype(np.array([2, 0])) == ["item", "user"]
    assert converter.etype2id("user:buys:item") == 0
    assert converter.etype2id(("user", "a:b", "user")) == 1
    assert converter.etype2id(["user:a%3ab:user", ("user", "buys", "item")]).tolist() == [1, 0]
    assert converter.id2etype(1) == "user:a%3Ab:user"
    assert converter.eid_hom2het(5) == ("user:a%3Ab:user", 1)
    assert (converter.num_nodes, converter.num_edges) == ([3, 0, 3], [4, 2])  # as the guide's class has them


def test_a_store_is_read_like_a_chunked_graph():
    store = GraphMetadata(
        graph_name="shop",
        node_types=("user", "nobody", "item"),
        edge_types=(("user", "buys", "item"), ("user", "a:b", "user")),
        num_nodes_per_chunk=((2, 1), (0, 0), (3, 0)),
        num_edges_per_chunk=((3, 1), (0, 2)),
        num_parts=2,
        partition_by="range",
        layouts=("csc",),
        node_schemas=(NodeTypeSchema("identity"),) * 3,
        edge_schemas=(EdgeTypeSchema("input", "int32", "int32", None, "0" * 16),) * 2,
        parts=(PartEntry("part-00000", 1, "0" * 16), PartEntry("part-00001", 1, "0" * 16)),
    )
    ids = np.arange(6)
    for value in (store, store.to_json(), SHOP):
        assert np.array_equal(IDConverter(value).nid_hom2het(ids), ([0, 0, 0, 2, 2, 2], [0, 1, 2, 0, 1, 2]))
        book = PartitionBook(value)
        assert book.num_parts == 2
        assert np.array_equal(book.map_to_per_ntype(ids), ([0, 0, 2, 2, 2, 0], [0, 1, 0, 1, 2, 2]))
        assert np.array_equal(book.map_to_per_etype(ids), ([0, 0, 0, 0, 1, 1], [0, 1, 2, 3, 0, 1]))
        assert book.map_to_homo_eid([0, 1], ("user", "a:b", "user")).tolist() == [4, 5]
    assert edge_type_text(store.edge_types[1]) == "user:a%3Ab:user"


def test_shapes_and_empty_arrays_are_kept():
    converter = IDConverter(SHOP)
    assert converter.nid_het2hom("item", np.array([[0, 1], [2, 0]])).tolist() == [[3, 4], [5, 3]]
    assert converter.nid_hom2het([])[0].size == 0
    assert converter.nid_het2hom("nobody", []).size == 0
    assert converter.nid_hom2het(np.array(5)) == ("item", 2)
    assert PartitionBook(SHOP).nodes.to_part("nobody", np.zeros(0, np.int32)).size == 0


def test_last_ids_of_large_graphs():
    value = {"node_type": ["a", "b"], "num_nodes_per_type": [2**62, 2**62 - 1], "edge_type": [], "num_edges_per_type": []}
    assert IDConverter(value).nid_hom2het(2**63 - 2) == ("b", 2**62 - 2)
    assert IDConverter(value).nid_hom2het(2**62) == ("b", 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: c.nid_hom2het(6), "homogeneous node id 6 is out of range: valid ids are in [0, 6)"),
        (lambda c: c.nid_hom2het(-1), "homogeneous node id -1 is out of range: valid ids are in [0, 6)"),
        (lambda c: c.nid_hom2het([0, 7]), "homogeneous node id 7 is out of range: valid ids are in [0, 6) (position 1)"),
        (lambda c: c.nid_hom2het(2**80), f"homogeneous node id {2**80} is out of range: valid ids are in [0, 6)"),
        (
            lambda c: c.nid_hom2het(np.array([1, 2**63], np.uint64)),
            f"homogeneous node id {2**63} is out of range: valid ids are in [0, 6) (position 1)",
        ),
        (lambda c: c.eid_hom2het(6), "homogeneous edge id 6 is out of range: valid ids are in [0, 6)"),
        (lambda c: c.nid_het2hom("item", 3), "node id 3 of type 'item' is out of range: valid ids are in [0, 3)"),
        (lambda c: c.nid_het2hom("nobody", 0), "node id 0 of type 'nobody' is out of range: there is none"),
        (lambda c: c.nid_het2hom([0, 2], [2, 3]), "node id 3 is out of range: valid ids are in [0, 3) (position 1)"),
        (lambda c: c.nid_het2hom("shop", 0), "unknown node type 'shop'\n  fix: use one of user, nobody, item"),
        (lambda c: c.ntype2id(3), "node type id 3 is out of range: valid ids are in [0, 3)"),
        (lambda c: c.id2ntype(-1), "node type id -1 is out of range: valid ids are in [0, 3)"),
        (
            lambda c: c.etype2id("buys"),
            "unknown edge type 'buys'\n  fix: did you mean 'user:buys:item'? use one of user:buys:item, user:a%3Ab:user",
        ),
    ],
)
def test_what_is_out_of_range_is_named(call, message):
    with pytest.raises(DataError) as caught:
        call(IDConverter(SHOP))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        (1.0, "float64"),
        (True, "bool"),
        (np.array([1.0]), "float64"),
        (np.array([True]), "bool"),
        ("1", "<U1"),
        (None, "object"),
    ],
)
def test_ids_that_are_no_integers_are_refused(ids, found):
    for call in (IDConverter(SHOP).nid_hom2het, PartitionBook(SHOP).map_to_per_ntype):
        with pytest.raises(UsageError) as caught:
            call(ids)
        assert str(caught.value) == f"ids must be integers, found {found}\n  fix: convert them to int64 first"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (without("node_type"), "metadata: key 'node_type' is missing"),
        (without("num_nodes_per_chunk"), "metadata: neither num_nodes_per_type nor num_nodes_per_chunk is there"),
        (without("num_edges_per_chunk"), "metadata: neither num_edges_per_type nor num_edges_per_chunk is there"),
        (without("node_type", node_type=["a", "b", "a"]), "metadata: node_type[2]: 'a' is listed twice"),
        (
            without("edge_type", edge_type=["a:b"]),
            "metadata: edge_type[0]: expected 'source:relation:destination', found 'a:b'",
        ),
        (
            without("num_nodes_per_chunk", num_nodes_per_chunk=[[2, 1], [0, "12"], [3, 0]]),
            "metadata: num_nodes_per_chunk[1][1]: expected an integer >= 0, found '12'",
        ),
        (
            without("num_nodes_per_chunk", num_nodes_per_chunk=[[2, 1]]),
            "metadata: num_nodes_per_chunk: expected one entry for each of 3 types, found 1",
        ),
        (
            {**SHOP, "num_nodes_per_type": [3, 0, 4]},
            "metadata: num_nodes_per_type[2]: says 4, but num_nodes_per_chunk[2] adds up to 3\n"
            "  fix: correct one of the two, or leave one out",
        ),
        ({**SHOP, "num_edges_per_type": 3}, "metadata: num_edges_per_type: expected a list, found 3"),
    ],
)
def test_wrong_metadata_is_named(value, message):
    with pytest.raises(DataError) as caught:
        IDConverter(value)
    assert str(caught.value) == message


def test_a_partition_book_needs_the_counts_of_every_partition():
    with pytest.raises(DataError) as caught:
        PartitionBook(without("num_edges_per_chunk", num_edges_per_type=[4, 2]))
    assert str(caught.value) == (
        "metadata: num_edges_per_chunk is missing: a partition book needs the counts of every partition"
    )
    with pytest.raises(DataError) as caught:
        PartitionBook(without("num_edges_per_chunk", num_edges_per_chunk=[[3], [0, 2]]))
    assert str(caught.value) == ("metadata: num_edges_per_chunk[0]: expected one count for each of 2 partitions, found 1")
