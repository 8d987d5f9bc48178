"""Triples ``head relation tail``: known by their middle column, decoded as edges with relations."""

import numpy as np
import pytest

import graphprep
from graphprep.decoders.edges.decoder import EdgesDecoder
from graphprep.decoders.edges.triples import TriplesDecoder
from graphprep.decoders.registry import bid_of, sniff
from graphprep.model.protocols import SniffedFile, Span, TextBlock
from graphprep.model.rows import RawTexts
from graphprep.storage.read.urls import Storage

LINES = b"alga\tisa\tplant\nfish\tisa\tanimal\nfish\teats\talga\nman\teats\tfish\n"


def texts(ids) -> list[str]:
    assert isinstance(ids, RawTexts)
    return [ids.text(row) for row in range(ids.size)]


def test_triples_are_edges_with_relations():
    found = TriplesDecoder().decode(TextBlock(LINES, Span("x")))
    edges = found.edges
    assert edges is not None
    assert texts(edges.src) == ["alga", "fish", "fish", "man"]
    assert texts(edges.dst) == ["plant", "animal", "alga", "fish"]
    assert [edges.relation_names[code].name for code in edges.relations.tolist()] == ["isa", "isa", "eats", "eats"]


def test_triples_are_the_edges_decoder_with_flags(tmp_path):
    path = tmp_path / "t.txt"
    path.write_bytes(LINES)
    with Storage() as storage:
        ours = TriplesDecoder().plan(storage, [str(path)])
        edges = EdgesDecoder(dst_col="2", relation_col="1", id_type="auto").plan(storage, [str(path)])
    assert ours == edges


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        (["train.txt", "valid.txt", "test.txt"], [0, 1, 2]),
        (["TEST.tsv.gz", "Train.tsv", "valid"], [2, 0, 1]),
        (["train.txt", "test.txt"], None),
        (["train.txt", "valid.txt", "test.txt", "more.txt"], None),
        (["train.txt", "valid.txt", "test1.txt"], None),
        (["train.txt", "train.tsv", "test.txt"], None),
    ],
)
def test_files_called_train_valid_and_test_make_a_split(tmp_path, names, parts):
    for name in names:
        (tmp_path / name).write_bytes(LINES)
    decoder = TriplesDecoder()
    with Storage() as storage:
        sources = decoder.plan(storage, [str(tmp_path / name) for name in names])
    columns = [decoder.decode(TextBlock(LINES, span)).edges.columns for span in sources.spans]
    if parts is None:
        assert (sources.edge_split, sources.messages, columns) == (None, (), [()] * len(names))
        return
    assert sources.edge_split == "split"
    assert sources.messages == (f"{', '.join(names)}: column 'split' says in which file an edge stands",)
    assert [chunk.values.tolist() for (chunk,) in columns] == [[part] * 4 for part in parts]


def test_a_column_called_split_stays_as_it_is(tmp_path):
    for name in ("train", "valid", "test"):
        (tmp_path / name).write_text("h\tr\tt\tsplit\na\tx\tb\t1\n")
    with Storage() as storage:
        urls = [str(tmp_path / name) for name in ("train", "valid", "test")]
        assert TriplesDecoder(header="yes").plan(storage, urls).edge_split is None


@pytest.mark.parametrize(
    ("data", "decoder"),
    [
        (LINES, "triples"),
        (b"/m/027rn\t/location/country/form\t/m/06cx9\n" * 3, "triples"),
        (b"1\t7\t2\n1\t7\t3\n2\t7\t3\n", "edges"),
        (b"a\tb\tc\nd\te\tf\ng\th\ti\n", None),
        (b"a\tb\t3\na\tc\t2\nc\td\t1\n", None),
        (b"a b c\na b d\nb b a\n", None),
        (b"a\tb\t3\na\tb\t2\nc\tb\t1\n", None),
        (b"a\tb\tfriend\na\tb\tfoe\nc\td\tfoe\nd\te\tfoe\nd\te\tfoe\n", None),
    ],
)
def test_sniff(tmp_path, data, decoder):
    path = tmp_path / "t.txt"
    path.write_bytes(data)
    with Storage() as storage:
        if decoder is None:
            with pytest.raises(Exception, match="cannot tell the format"):
                sniff(storage, [str(path)])
        else:
            assert sniff(storage, [str(path)]).decoder == decoder


def test_umls(real_samples):
    path = real_samples / "kg_small" / "umls" / "train.txt"
    with Storage() as storage:
        assert sniff(storage, [str(path)]).decoder == "triples"
        assert sniff(storage, [str(path.parent)]).flags == ("--format", "triples")
    edges = TriplesDecoder().decode(TextBlock(path.read_bytes(), Span("x"))).edges
    assert edges is not None
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    names = [relation.name for relation in edges.relation_names]
    assert list(zip(texts(edges.src), np.array(names)[edges.relations], texts(edges.dst), strict=True)) == [
        (head, relation, tail) for head, relation, tail in rows
    ]


@pytest.mark.parametrize(
    ("header", "row"),
    [("head,relation,tail", "a,r,b"), ("subject,predicate,object", "a,r,b"), ("tail,relation,head", "b,r,a")],
)
def test_a_header_that_names_a_triple_is_none(tmp_path, header, row):
    path = tmp_path / "t.csv"
    path.write_text(f"{header}\n{row}\nb,r,b\n")
    out = tmp_path / "out"
    summary = graphprep.convert(str(path), str(out), format="triples")
    assert dict(summary.num_nodes) == {"_N": 2}
    assert dict(summary.num_edges) == {"_N:r:_N": 2}
    indices = np.load(out / "part-00000" / "edges" / "_N__r___N" / "csc" / "indices.npy")
    assert indices.tolist() == [0, 1]  # both edges lead to b


def test_a_tab_in_quotes_is_no_delimiter():
    head = b'"7\t007"\tknows\tb\nb\tknows\tc\nc\tlikes\t"d"\nd\tlikes\te\n'
    found = bid_of("triples", SniffedFile("x", head, complete=True))
    assert found is not None
    assert found.decoder == "triples"


def test_named_ends_beside_a_named_relation(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("src,dst,w,rel\na,b,7,r\n")
    summary = graphprep.convert(str(path), str(tmp_path / "out"), format="triples", decoder_options={"relation_col": "rel"})
    assert dict(summary.num_nodes) == {"_N": 2}
    assert dict(summary.num_edges) == {"_N:r:_N": 1}
